"""The prior of Grimes and Ford (2008) by two pseudo-observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl.kernels import priors as kernels
from recrawl.kernels import threads_for
from recrawl.science.estimators import mle
from recrawl.science.processes import History, join
from recrawl.types import Array, Values

__all__ = ["FakeIntervals"]


@dataclass(frozen=True)
class FakeIntervals:
    r"""Prior given by two pseudo-observations, one changed and one unchanged.

    Section 4.4 of Grimes and Ford (2008): every page gets a crawl that found a change
    after an interval a and one that found none after an interval b. If all
    change rates are equally likely before the two, the density after them is

    .. math:: \pi(\Delta) = \frac{b (a + b)}{a}
        (1 - e^{-a \Delta})\,e^{-b \Delta} .

    Parameters
    ----------
    changed, unchanged : float, time
        The intervals a and b, positive.

    Examples
    --------
    >>> from recrawl.science.priors import FakeIntervals
    >>> from recrawl.science.processes import History
    >>> prior = FakeIntervals(changed=2.0, unchanged=1.0)
    >>> float(prior.estimate(History([1.0, 1.0], [False, False])).round(3))
    0.255
    """

    changed: float
    unchanged: float

    def density(self, rate: ArrayLike) -> Array:
        """Density (time) of non-negative change rates (1/time)."""
        a, b, rate = self.changed, self.unchanged, np.asarray(rate)
        return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)

    def estimate(self, history: History) -> Values:
        r"""Posterior mode of the change rate.

        .. math:: \arg\max_\Delta \; (1 - e^{-a\Delta})\,e^{-b\Delta}
                  \prod_k P(\mathrm{bit}_k \mid \Delta)

        It is `estimators.mle` with the two pseudo-observations among the
        crawls, so that no history is degenerate.

        Parameters
        ----------
        history : History
            In either form.

        Returns
        -------
        ndarray or float, shape ``history.shape``, 1/time
            Change rates; the mode of the prior for a page without crawls.
        """
        return history.by_page(mle(self.observed(history)))

    def observed(self, history: History) -> History:
        """Append a history to the two pseudo-observations.

        Its likelihood is the posterior, where all rates are equally likely
        before the two.

        Parameters
        ----------
        history : History
            In either form.

        Returns
        -------
        History
            In the ragged form; no page of it is degenerate.
        """
        pages = (*history.shape, 1)
        interval = np.tile([self.changed, self.unchanged], pages)
        return join(History(interval, np.tile([True, False], pages)), history)

    @classmethod
    def learn(cls, history: History, rate: ArrayLike) -> FakeIntervals:
        r"""Fit the prior to histories by maximum marginal likelihood.

        The two intervals that maximise the probability of the bits,

        .. math:: \prod_\mathrm{pages} \int
            P(\mathrm{bits} \mid \Delta)\,\pi(\Delta)\,d\Delta ,

        an empirical-Bayes prior. Beyond Grimes and Ford (2008): the rates
        of the pages need not be known, one bit of each page is enough.

        Parameters
        ----------
        history : History
            In either form, two pages or more.
        rate : array_like, shape (n_grid,), 1/time
            The grid of rates for the integral, positive, rising; both
            intervals stay within the periods that it spans.

        Returns
        -------
        FakeIntervals
        """
        rate = np.asarray(rate, dtype=float)
        likelihood = np.empty((np.prod(history.shape, dtype=int), rate.size))
        with threads_for(history.interval.size * rate.size):
            kernels.likelihoods(*history.likelihood_terms(), rate, likelihood)
        width = np.gradient(rate)[:, None]

        # of many priors at once, shape (2, n_priors) to (n_priors,); one that makes a
        # history almost impossible has a loss of inf
        @np.errstate(divide="ignore")
        def losses(logs):
            weight = cls(*np.exp(logs)).density(rate[:, None]) * width
            return -np.log(likelihood @ weight).sum(axis=0)

        axis = np.linspace(*-np.log(rate[[-1, 0]]), 20)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"))
        # a row at a time, which takes a twentieth of the memory of all
        first = np.array([losses(row) for row in grid.swapaxes(0, 1)])
        found = scipy.optimize.minimize(
            lambda logs: losses(logs[:, None])[0],
            grid[:, *np.unravel_index(np.argmin(first), first.shape)],
            method="Nelder-Mead",
            bounds=[axis[[0, -1]]] * 2,
            options={
                "xatol": 1e-6,  # of a logarithm: six digits of an interval
                "fatol": 1e-12 * abs(first.min()),  # rounding of a loss
                "maxiter": 1000,  # of which it takes some hundred
            },
        )
        return cls(*np.exp(found.x).tolist())
