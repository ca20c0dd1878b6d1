"""The prior of [grimes08]_: a changed and an unchanged pseudo-observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
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
from recrawl.types import Array, Seed, Values

__all__ = ["FakeIntervals"]

# Two annealings must agree on the distance to this relative difference.
_AGREEMENT = 1e-3


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
    The plain forms are `tests.plain.prior_density`,
    ``prior_moments``, ``prior_mode``, ``prior_probabilities`` and
    ``prior_distance``.

    Examples
    --------
    >>> from recrawl.science.priors import FakeIntervals
    >>> from recrawl.science.processes import History
    >>> prior = FakeIntervals(changed=2.0, unchanged=1.0)
    >>> round(prior.mean, 3), round(prior.mode, 3)
    (1.333, 0.549)
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

    @property
    def mode(self) -> float:
        """Most likely change rate, log(1 + a / b) / a, 1/time."""
        return np.log1p(self.changed / self.unchanged).item() / self.changed

    @property
    def initial_interval(self) -> float:
        """First interval of a page never crawled before, 1 / mode, time."""
        return 1 / self.mode

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

    def probabilities(
        self, period: ArrayLike, *, base: Literal["period", "rate"] = "period"
    ) -> Array:
        r"""Distribution of the mean time between changes on a grid.

        .. math:: p_k \propto (1 - e^{-a / T_k})\,e^{-b / T_k}\,f(T_k)\,
                  \delta T_k, \qquad f(T) = 1 \text{ or } T^{-2} \text{, see base.}

        Parameters
        ----------
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising.
        base : {"period", "rate"}, default "period"
            What is flat without the two pseudo-observations: the period, as
            in [grimes08]_, where the prior has no finite integral without a
            largest period, or the rate, as in `density`.

        Returns
        -------
        ndarray, shape (n_grid,)
            Probabilities of sum 1.
        """
        checks.one_of("base", base, ("period", "rate"))
        rate = 1 / checks.rising("period", period)
        # relative to the longest period, so that not all of them vanish
        unchanged = np.exp(-self.unchanged * (rate - rate[-1]))
        weight = -np.expm1(-self.changed * rate) * unchanged
        weight *= np.gradient(period) * (rate**2 if base == "rate" else 1.0)
        return weight / weight.sum()

    def distance(
        self,
        change_rate: ArrayLike,
        period: ArrayLike,
        *,
        base: Literal["period", "rate"] = "period",
    ) -> float:
        r"""L2 distance of the prior to a population of pages, on a grid.

        Section 4.4 of [grimes08]_: with the `probabilities` p of the grid, and
        the shares s of the pages that are nearest to its points,

        .. math:: \sqrt{\textstyle\sum_k (p_k - s_k)^2} .

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Change rates of two pages or more, positive.
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising.
        base : {"period", "rate"}, default "period"
            As in `probabilities`.

        Returns
        -------
        float
            Distance between `probabilities` and the shares of the pages.
        """
        shares = _shares(change_rate, period)
        return np.linalg.norm(self.probabilities(period, base=base) - shares).item()

    @classmethod
    def fit(
        cls,
        change_rate: ArrayLike,
        period: ArrayLike,
        *,
        base: Literal["period", "rate"] = "period",
        method: Literal["search", "annealing"] = "search",
        max_iterations: int = 1000,
        rng: Seed = None,
    ) -> FakeIntervals:
        """Fit the prior to known change rates by the least `distance`.

        Section 4.4 of [grimes08]_.

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Change rates of two pages or more, positive.
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising; both intervals stay
            within this grid.
        base : {"period", "rate"}, default "period"
            As in `probabilities`.
        method : {"search", "annealing"}, default "search"
            "annealing": simulated annealing as in the paper, twice, which
            must agree on the distance to 0.1%. "search": a grid, and the
            simplex of Nelder and Mead from its best point.
        max_iterations : int, default 1000
            Iterations of the annealing or of the simplex.
        rng : None, int, SeedSequence or Generator, optional
            Source of random numbers of the annealing.

        Returns
        -------
        FakeIntervals
            The fitted prior.

        Raises
        ------
        ValueError
            Fewer than two pages, a rate that is not positive and finite, a
            grid that does not rise.
        ConvergenceError
            Not within `max_iterations`; ``last`` holds the last prior.

        Warns
        -----
        DegeneratePriorWarning
            An interval ended at its bound, as `changed` does for a population
            with a heavy tail of periods and base "period": its prior is close
            to exp(-unchanged / period) / period. Both do where no pair is
            near the population.
        """
        checks.one_of("method", method, ("annealing", "search"))
        wanted, period = _shares(change_rate, period), checks.rising("period", period)
        max_iterations = checks.count("max_iterations", max_iterations)

        def losses(logs):
            priors = [cls(*pair) for pair in np.exp(logs)]
            found = [prior.probabilities(period, base=base) for prior in priors]
            return np.array([np.linalg.norm(each - wanted) for each in found])

        bounds = np.log(period[[0, -1]])
        if method == "annealing":
            best, converged = _anneal(losses, bounds, max_iterations, rng)
        else:
            best, converged = search(losses, [bounds] * 2, max_iterations)
        return cls._fitted(best, converged, bounds, max_iterations)

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


def _anneal(losses, bounds, max_iterations, rng):
    """Minimum by simulated annealing, and whether a second one agrees."""
    first, second = (
        scipy.optimize.dual_annealing(
            lambda logs: losses([logs])[0], [bounds] * 2, maxiter=max_iterations, rng=r
        )
        for r in np.random.default_rng(rng).spawn(2)
    )
    return first.x, abs(first.fun - second.fun) <= _AGREEMENT * first.fun


def _shares(change_rate, period):
    """Share of the pages nearest to each period of the grid."""
    change_rate = checks.positive("change_rate", change_rate)
    period = checks.rising("period", period)
    if change_rate.ndim != 1 or change_rate.size < 2:
        raise ValueError(
            f"change_rate must hold at least two pages, got shape {change_rate.shape}"
        )
    nearest = np.searchsorted(0.5 * (period[1:] + period[:-1]), 1 / change_rate)
    return np.bincount(nearest, minlength=period.size) / change_rate.size
