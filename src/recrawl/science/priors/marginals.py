r"""Likelihood of a gamma distribution of change rates, given histories.

If the change rate of a page has a gamma distribution, the probability of what
its crawls found, the *marginal* likelihood, is an integral over the rate. In
general it is a sum over a grid of logarithms of the rate. If every changed
crawl reveals when the page changed, or how often, the likelihood of a rate is
:math:`\Delta^K e^{-\Delta S}`, a gamma density itself, and the integral has a
closed form, that of a negative binomial variable. Both forms have the same
methods, whose arguments are the logarithms of the shape and of the mean of the
gamma distribution: numbers, or arrays of shape (n,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammainc, gammaincc, gammaln

from recrawl.kernels import priors as kernels
from recrawl.kernels import threads_for
from recrawl.science.priors.grid import grid_posterior
from recrawl.science.processes import History
from recrawl.types import Array, Values

__all__ = []

# Bounds of the shape of a gamma distribution that is learnt: at the least, nine
# of ten rates are below a thousandth of their mean; at the greatest all are
# within some 5% of it.
LEAST_SHAPE, MOST_SHAPE = 0.01, 400.0
# Changes in the mean interval of a page beyond which a change is certain, and in
# all its intervals below which there is none: the likelihood is constant.
_CERTAIN, _NONE = 40.0, 1e-6
# Below this a probability counts as this: the logarithm stays finite.
TINY = 1e-300
# Logarithm of a marginal likelihood, relative to the likelihoods of the grid, below
# which their products with the weights underflow.
_FAR = np.log(1e-200)


def marginal(history: History, mean: float | None = None, shape: float = 0.0) -> Any:
    """Marginal likelihood of the pages of a history, in closed form if it has one.

    With a `mean`, the grid is for distributions of this mean, however large or
    small it is. `shape` is the greatest shape of the distributions.
    """
    interval, unknown, _, n_known = history.likelihood_terms()
    n_changes, time = (
        np.reshape(history.total(of.reshape(history.interval.shape)), -1)
        for of in (n_known, interval)
    )
    n_told = n_changes + history.n_crawls.reshape(-1)
    seen = time > 0
    if not seen.any():
        raise ValueError(
            "history must hold an interval, of a crawl or known by an age, got none"
        )
    # the mean time, because the shortest one may be any accident
    shortest = (time[seen] / n_told[seen]).min()
    ends = np.array([_NONE / time.max(), _CERTAIN / shortest])
    if mean is not None and not ends[0] < mean < ends[1]:
        ends = np.array([min(ends[0], _NONE * mean), max(ends[1], _CERTAIN * mean)])
    ends = np.log(ends)
    if unknown.any():
        return GridMarginal(history, ends, max(n_told.max(), shape, MOST_SHAPE))
    return CountMarginal(n_changes, time, ends)


class GridMarginal:
    """Marginal likelihood of any histories, by the trapezoidal rule.

    Parameters
    ----------
    history : History
        In either form.
    ends : ndarray, shape (2,)
        Logarithms of rates beyond which the likelihoods are constant.
    size : float
        The most crawls and known changes of a page, or a shape if that is greater.
    """

    def __init__(self, history: History, ends: Array, size: float) -> None:
        self.ends, self._terms = ends, history.likelihood_terms()
        # The likelihood of n crawls is no narrower in log rate than n^-1/2, because
        # the information of a crawl is at most 0.65, and of a known change 1; nor is
        # a prior of such a shape
        step = size**-0.5
        n = 1 + int(np.ceil(np.diff(ends).item() / step))
        self._log_rate = np.linspace(*ends, n)
        likelihood = grid_posterior(history, np.exp(self._log_rate), np.ones(n))
        self._likelihood = likelihood.reshape(-1, n)

    def log(self, log_shape: Values, log_mean: Values) -> Any:
        """Logarithm of the marginal likelihood of each page, up to a constant.

        The constant is one of the page. Shape (n_pages, n).
        """
        return np.log(
            self._integral(gamma_weights(log_shape, log_mean, self._log_rate))
        )

    def moments(self, log_shape: Values, log_mean: Values) -> Any:
        """Posterior means of the rate and of its logarithm, shape (n_pages, n)."""
        shape, x = np.exp(log_shape), self._log_rate
        weights = gamma_weights(log_shape, log_mean, x)
        # the rate times its density is the mean times a density of shape + 1
        more = np.log1p(shape)
        of_rate = gamma_weights(more, log_mean + more - log_shape, x)
        log_rate = x.copy()
        log_rate[0] -= 1 / shape  # mean logarithm below the grid
        total = self._integral(weights)
        mean = np.exp(log_mean) * self._integral(of_rate) / total
        return mean, self._likelihood @ (weights * log_rate).T / total

    def posterior(self, shape: float, rate: float) -> Any:
        """Moments under one distribution, however far from it a page is.

        Two arrays of shape (n_pages,).
        """
        logs = np.log(shape), np.log(shape / rate)
        found = [moment[:, 0] for moment in self.moments(*logs)]
        far = self.log(*logs)[:, 0] < _FAR
        if far.any():
            found = np.where(far, self._far_moments(shape, rate), found)
        return found

    def _far_moments(self, shape, rate):
        """Moments by sums of logarithms, which do not underflow.

        The distribution enters the terms of each page as a count that is the shape,
        in the time `rate`. The probability beyond the grid is neglected.
        """
        interval, changed, offsets, n_known = self._terms
        terms = (
            np.insert(interval, offsets[:-1], rate),
            np.insert(changed, offsets[:-1], False),
            offsets + np.arange(offsets.size),
            np.insert(n_known, offsets[:-1], shape),
        )
        grid, flat = np.exp(self._log_rate), np.ones((1, self._log_rate.size))
        share = np.empty_like(self._likelihood)
        with threads_for(terms[0].size * grid.size):
            kernels.grid_posteriors(*terms, grid, flat, share)
        return share @ grid, share @ self._log_rate

    def _integral(self, weights):
        return np.maximum(self._likelihood @ weights.T, TINY)


class CountMarginal:
    """Marginal likelihood of pages with known numbers of changes.

    Parameters
    ----------
    n_changes : ndarray, shape (n_pages,)
        The exponent K.
    time : ndarray, shape (n_pages,), time
        The time S in which they were counted.
    ends : ndarray, shape (2,)
        As in `GridMarginal`.
    """

    def __init__(self, n_changes: Array, time: Array, ends: Array) -> None:
        self.ends = ends
        self._n_changes, self._time = n_changes[:, np.newaxis], time[:, np.newaxis]

    def log(self, log_shape: Values, log_mean: Values) -> Any:
        """Logarithm of the marginal likelihood of each page, shape (n_pages, n)."""
        shape, rate = np.exp(log_shape), np.exp(log_shape - log_mean)
        return (
            gammaln(shape + self._n_changes)
            - gammaln(shape)
            - shape * np.log1p(self._time / rate)
            - self._n_changes * np.log(rate + self._time)
        )

    def moments(self, log_shape: Values, log_mean: Values) -> Any:
        """Posterior means of the rate and of its logarithm, shape (n_pages, n)."""
        shape = np.exp(log_shape) + self._n_changes
        rate = np.exp(log_shape - log_mean) + self._time
        return shape / rate, digamma(shape) - np.log(rate)

    def posterior(self, shape: float, rate: float) -> Any:
        """Moments under one distribution, two arrays of shape (n_pages,)."""
        logs = np.log(shape), np.log(shape / rate)
        return [moment[:, 0] for moment in self.moments(*logs)]


def gamma_weights(log_shape: Values, log_mean: Values, log_rate: Values) -> Values:
    """Weights of the integral over gamma distributions of the change rate.

    `log_rate` are equidistant points. What lies beyond them has the weight of
    the distribution there, because the likelihood is constant. The weights of
    each distribution are a row.
    """
    log_shape, log_mean = np.reshape(log_shape, (-1, 1)), np.reshape(log_mean, (-1, 1))
    log_scaled = log_rate + log_shape - log_mean  # of the rate b Delta
    shape, scaled = np.exp(log_shape), np.exp(log_scaled)
    density = np.exp(shape * log_scaled - scaled - gammaln(shape))
    weights = density * (log_rate[1] - log_rate[0])
    weights[:, [0, -1]] /= 2
    weights[:, :1] += gammainc(shape, scaled[:, :1])
    weights[:, -1:] += gammaincc(shape, scaled[:, -1:])
    return weights
