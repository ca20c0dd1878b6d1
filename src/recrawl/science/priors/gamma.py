"""A gamma distribution of change rates, learnt from a population of pages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaincinv, polygamma

from recrawl import checks
from recrawl.science.priors.marginals import LEAST_SHAPE, MOST_SHAPE, marginal
from recrawl.science.priors.searching import require_convergence, search, warn_at_bound
from recrawl.science.processes import History
from recrawl.types import Values

__all__ = ["GammaPrior", "gamma_prior"]


# Relative error of the starting shape is below 2%; each step squares it.
_NEWTON = 3
# The shape at which `posterior` needs some 300 kB for each page.
_MOST = 1e6


class GammaPrior(NamedTuple):
    r"""Gamma distribution of change rates: of a population, or one for each page.

    .. math:: f(\Delta) = \frac{b^a}{\Gamma(a)}\, \Delta^{a-1} e^{-b\Delta}

    with shape a and rate b.

    `gamma_prior` and `host_priors` learn such distributions.

    Parameters
    ----------
    shape : float or ndarray
        Shape, positive.
    rate : float or ndarray, time
        Rate, positive: shape / rate is the mean change rate.
    """

    shape: Values
    rate: Values

    @property
    def mean(self) -> Values:
        """Mean change rates, 1/time."""
        return self.shape / self.rate

    def interval(self, *, level: float = 0.95) -> tuple[Values, Values]:
        r"""Quantiles of the change rate that leave out equal probabilities.

        .. math:: P(\Delta < \mathrm{low}) = P(\Delta > \mathrm{high})
                  = (1 - \mathrm{level}) / 2

        Parameters
        ----------
        level : float, default 0.95
            Probability of the interval, in (0, 1).

        Returns
        -------
        low, high : float or ndarray, 1/time
            The quantiles.
        """
        tail = (1 - checks.probability("level", level)) / 2
        low, high = (
            gammaincinv(self.shape, share) / self.rate for share in (tail, 1 - tail)
        )
        return low, high

    def posterior(self, history: History) -> GammaPrior:
        r"""Posterior distribution of each page after its crawls.

        .. math:: f(\Delta \mid \mathrm{crawls}) \propto
                  \Delta^{a-1} e^{-b\Delta} \prod_k P(\mathrm{bit}_k \mid \Delta)

        Parameters
        ----------
        history : History
            In either form, with an interval at least.

        Returns
        -------
        GammaPrior
            With arrays of ``history.shape``: the gamma distributions that have
            the posterior means of the rate and of its logarithm. Without a
            changed crawl, and where all changes are counted, they are the
            posteriors themselves.

        Raises
        ------
        ValueError
            Several distributions, one that is not positive and finite, or of a
            shape above 1e6; a history without an interval.

        Notes
        -----
        The plain form of the mean is `tests.recrawl.plain.gamma_bits`. The quadrature
        needs some 4 kB for each page, and more for a shape above 400: with its root.

        Examples
        --------
        >>> from recrawl.science.processes import History
        >>> prior = GammaPrior(shape=0.5, rate=2.0)
        >>> posterior = prior.posterior(History([[3.0], [1.0]], [[False], [True]]))
        >>> posterior.mean.round(3)
        array([0.1  , 0.621])
        """
        shape = checks.positive_number("shape", self.shape)
        rate = checks.positive_number("rate", self.rate)
        if shape > _MOST:
            raise ValueError(f"shape must be at most {_MOST:g}, got {shape:g}")
        known = marginal(history, shape / rate, shape)
        shape, rate = gamma_of(*known.posterior(shape, rate))
        return GammaPrior(history.by_page(shape), history.by_page(rate))


def gamma_of(mean, mean_log):
    """Gamma distributions of given means of a variable and of its logarithm.

    Of all gamma distributions it has the least Kullback-Leibler divergence from
    the distribution that has these means.
    """
    gap = np.log(mean) - mean_log  # ln a - psi(a), positive
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(_NEWTON):  # in 1 / shape, in which the equation is almost linear
        slope = 1 / shape - polygamma(1, shape)
        off = np.log(shape) - digamma(shape) - gap
        shape = 1 / (1 / shape + off / (shape**2 * slope))
    return GammaPrior(shape, shape / mean)


def gamma_prior(history: History, *, max_iterations: int = 1000) -> GammaPrior:
    r"""Learn the gamma distribution of change rates from the histories of pages.

    Shape a and rate b of maximum marginal likelihood: those that maximise the
    probability of the bits of all pages, or of their known ages and counts,

    .. math:: \prod_\mathrm{pages} \int P(\mathrm{bits} \mid \Delta)\,
        \frac{b^a \Delta^{a - 1}}{\Gamma(a)}\,e^{-b \Delta}\,d\Delta ,

    the prior of `policies.BayesGreedy` for other pages of the same kind. As in
    `FakeIntervals.learn`, two or three crawls of each page are enough. A gamma
    distribution of small shape has many slow pages and a few fast ones, which two
    pseudo-observations cannot describe.

    Parameters
    ----------
    history : History
        In either form, at any intervals, two pages or more: some thousand are
        plenty. The quadrature needs some 4 kB for each page, and is not needed
        where the age or count of every change is known.
    max_iterations : int, default 1000
        Iterations of the simplex.

    Returns
    -------
    GammaPrior
        Shape and rate.

    Raises
    ------
    ValueError
        Fewer than two pages; crawls of which all have found a change, or none
        has; one crawl of each page, and all at one interval: bits of all of
        these fit distributions of any shape.
    ConvergenceError
        Not within `max_iterations`; ``last`` holds the last prior.

    Warns
    -----
    DegeneratePriorWarning
        The shape ended at a bound: at 400 if the pages differ no more than
        pages of one change rate do, or at 0.01. Or the mean ended at one.

    Notes
    -----
    The plain form is `tests.recrawl.plain.gamma_prior`, and of the likelihood of
    ages and counts `tests.recrawl.plain.count_marginal`. Trapezoidal rule on the
    logarithm of the rate, relative error of the likelihood below 1e-5.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.priors import gamma_prior
    >>> from recrawl.science.processes import simulate_history
    >>> rates = np.random.default_rng(3).gamma(0.5, 1 / 2.0, 5000)
    >>> history = simulate_history(rates, interval=1.0, n_crawls=10, rng=2)
    >>> shape, rate = gamma_prior(history)
    >>> round(shape, 2), round(rate, 2)
    (0.52, 2.16)
    """
    require_telling(history)
    max_iterations = checks.count("max_iterations", max_iterations)
    likelihood = marginal(history)

    def losses(logs):
        return -likelihood.log(*np.transpose(logs)).sum(axis=0)

    bounds = [np.log([LEAST_SHAPE, MOST_SHAPE]), likelihood.ends]
    best, converged = search(losses, bounds, max_iterations)
    prior = GammaPrior(np.exp(best[0]).item(), np.exp(best[0] - best[1]).item())
    require_convergence(prior, converged, max_iterations)
    for name, value, of in zip(("shape", "mean"), best, bounds, strict=True):
        warn_at_bound(name, value, of, stacklevel=3)
    return prior


def require_telling(history):
    """Refuse a history that fits gamma distributions of any shape."""
    n_pages = np.prod(history.shape, dtype=int)
    if n_pages < 2:
        raise ValueError(
            f"history must hold at least two pages, got shape {history.shape}"
        )
    interval, _, _, n_known = history.likelihood_terms()
    if n_known.any() and interval.any():
        return  # ages and counts determine rates of any size
    n_changed = np.count_nonzero(history.changed)
    if n_changed in (0, history.changed.size):
        raise ValueError(
            "history must hold crawls with a change and crawls without, "
            f"got {n_changed} of {history.changed.size} with a change"
        )
    if history.n_crawls.max() < 2 and np.ptp(history.interval) == 0:
        raise ValueError(
            "history must hold a page of two crawls or two different intervals, "
            f"got one crawl of a page, at the interval {history.interval.flat[0]:g}"
        )
