"""The prior of [grimes08]_: a changed and an unchanged pseudo-observation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.science.estimators import mle
from recrawl.science.priors.grid import grid_posterior
from recrawl.science.priors.searching import (
    require_convergence,
    search,
    warn_at_bound,
)
from recrawl.science.processes import History, join
from recrawl.types import Array, Values

__all__ = ["FakeIntervals"]


@dataclass(frozen=True)
class FakeIntervals:
    r"""Prior given by two pseudo-observations, one changed and one unchanged.

    Section 4.4 of [grimes08]_: every page gets a crawl that found a change
    after an interval a and one that found none after an interval b. If all
    change rates are equally likely before the two, the density after them is

    .. math:: \pi(\Delta) = \frac{b (a + b)}{a}
        (1 - e^{-a \Delta})\,e^{-b \Delta} ,

    which is that of the sum of two exponential variables of means 1/b and
    1/(a + b) (derived).

    Parameters
    ----------
    changed, unchanged : float, time
        The intervals a and b, positive.

    Raises
    ------
    ValueError
        An interval that is not positive and finite.

    Notes
    -----
    The plain forms are `tests.plain.prior_density` and ``prior_moments``.

    Examples
    --------
    >>> from recrawl.science.priors import FakeIntervals
    >>> from recrawl.science.processes import History
    >>> prior = FakeIntervals(changed=2.0, unchanged=1.0)
    >>> round(prior.mean, 3)
    1.333
    >>> float(prior.estimate(History([1.0, 1.0], [False, False])).round(3))
    0.255
    """

    changed: float
    unchanged: float

    def __post_init__(self):
        for name in ("changed", "unchanged"):
            # in place, because the dataclass is frozen
            vars(self)[name] = checks.positive_number(name, vars(self)[name])

    def density(self, rate: ArrayLike) -> Array:
        """Density of the change rate.

        Parameters
        ----------
        rate : array_like, 1/time
            Change rates, non-negative.

        Returns
        -------
        ndarray, time
            The density at each rate.
        """
        rate = checks.non_negative("rate", rate)
        return _density(self.changed, self.unchanged, rate)

    @property
    def mean(self) -> float:
        """Mean change rate, 1/time."""
        return 1 / self.unchanged + 1 / (self.changed + self.unchanged)

    @property
    def variance(self) -> float:
        """Variance of the change rate, 1/time^2."""
        return 1 / self.unchanged**2 + 1 / (self.changed + self.unchanged) ** 2

    def estimate(self, history: History) -> Values:
        r"""Posterior mode of the change rate.

        .. math:: \arg\max_\Delta \; (1 - e^{-a\Delta})\,e^{-b\Delta}
                  \prod_k P(\mathrm{bit}_k \mid \Delta)

        It is `estimators.mle` with the two pseudo-observations among the
        crawls, so that no history is degenerate; section 4.4 of [grimes08]_.

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
        shape = history.shape
        pseudo = History(
            np.broadcast_to([self.changed, self.unchanged], (*shape, 2)),
            np.broadcast_to([True, False], (*shape, 2)),
        )
        return join(pseudo, history)

    @classmethod
    def learn(
        cls, history: History, rate: ArrayLike, *, max_iterations: int = 1000
    ) -> FakeIntervals:
        r"""Fit the prior to histories by maximum marginal likelihood.

        The two intervals that maximise the probability of the bits,

        .. math:: \prod_\mathrm{pages} \int
            P(\mathrm{bits} \mid \Delta)\,\pi(\Delta)\,d\Delta ,

        an empirical-Bayes prior of base "rate". Beyond [grimes08]_: the rates
        of the pages need not be known, one bit of each page is enough.

        Parameters
        ----------
        history : History
            In either form, two pages or more.
        rate : array_like, shape (n_grid,), 1/time
            The grid of rates for the integral, positive, rising; both
            intervals stay within the periods that it spans.
        max_iterations : int, default 1000
            Iterations of the simplex.

        Returns
        -------
        FakeIntervals
            The fitted prior.

        Raises
        ------
        ValueError
            Fewer than two pages, a grid that does not rise from above 0.
        ConvergenceError
            Not within `max_iterations`; ``last`` holds the last prior.

        Warns
        -----
        DegeneratePriorWarning
            An interval ended at its bound.
        """
        rate = checks.rising("rate", rate)
        if np.prod(history.shape, dtype=int) < 2:
            raise ValueError(
                f"history must hold at least two pages, got shape {history.shape}"
            )
        max_iterations = checks.count("max_iterations", max_iterations)
        likelihood = grid_posterior(history, rate, np.ones(rate.size))
        likelihood = likelihood.reshape(-1, rate.size)
        width = np.gradient(rate)

        # a prior that makes a history almost impossible has a loss of inf
        @np.errstate(divide="ignore")
        def losses(logs):
            density = _density(*np.exp(logs).T[..., np.newaxis], rate)
            return -np.log(likelihood @ (density * width).T).sum(axis=0)

        bounds = -np.log(rate[[-1, 0]])
        best, converged = search(losses, [bounds] * 2, max_iterations)
        return cls._fitted(best, converged, bounds, max_iterations)

    @classmethod
    def _fitted(cls, best, converged, bounds, max_iterations):
        """The prior of two logarithms, if the search for them converged."""
        prior = cls(*np.exp(best))
        require_convergence(prior, converged, max_iterations)
        for name, value in zip(("changed", "unchanged"), best, strict=True):
            warn_at_bound(name, value, bounds, stacklevel=4)
        return prior


def _density(a, b, rate):
    """Density of `FakeIntervals.density`; `a` and `b` are numbers or arrays."""
    return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)
