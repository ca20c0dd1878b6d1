"""Crawl rates for pages with estimated change rates, and what limits cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from paperlib import freshness
from recrawl.plan import allocation
from recrawl.rates.posterior import expected
from recrawl.types import Array

__all__ = ["Plan", "Problem"]

SAMPLE = 100_000  # pages that are enough to compare budgets
# By kind of limit, the arguments of an allocation that hold it.
_KINDS = {
    "greatest intervals": ("min_rate",),
    "least intervals": ("max_rate",),
    "limits of hosts": ("host", "host_limit"),
}
_DIGITS = 12  # after the point: differences of means are not known better
_UNEXPLAINED = 0.02  # of freshness: what no factor explains, see `Problem.promise`


@dataclass(frozen=True, eq=False)
class Plan:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (n_pages,), 1/day
        With the hedge.
    """

    crawl_rate: np.ndarray


@dataclass(frozen=True, eq=False)
class Problem:
    """What decides the crawl rates of pages, and what they are expected to give.

    Parameters
    ----------
    change_rate, importance : ndarray, shape (n_pages,)
        1/day, and any unit. A page without importance gets its least rate.
    objective : str
        A key of `objectives.CODES`.
    hedge : float
        Share of the bandwidth that is spent at equal rates.
    log_stderr, log_rate : ndarray, optional
        As in `expected`.
    limits : dict of ndarray
        Limits in force, as `allocation.optimal` takes them.
    promised : bool ndarray, optional
        Pages that count in means; by default all.

    Examples
    --------
    >>> problem = Problem(np.array([1.0, 3.0]), np.ones(2), hedge=0.5)
    >>> problem.solve(2.0).crawl_rate.round(3)
    array([0.997, 1.003])
    """

    change_rate: np.ndarray
    importance: np.ndarray
    objective: str = "freshness"
    hedge: float = 0.0
    log_stderr: np.ndarray | None = None
    log_rate: np.ndarray | None = None
    limits: dict[str, np.ndarray] = field(default_factory=dict)
    promised: np.ndarray | None = None

    @property
    def least_rate(self) -> Array:
        """Crawls a day that the greatest intervals need, shape (n_pages,)."""
        return self.limits.get("min_rate", np.zeros(self.importance.size))

    def solve(self, bandwidth: float) -> Plan:
        """Optimal crawl rates, mixed with equal ones.

        Parameters
        ----------
        bandwidth : float
            Crawls a day.

        Returns
        -------
        Plan
            Both rates keep all limits, and so does their mixture.
        """
        best = allocation.optimal(
            self.change_rate,
            self.importance,
            bandwidth,
            objective=self.objective,
            **self.limits,
        ).crawl_rate
        even = self.in_turn(bandwidth).crawl_rate
        return Plan(best + self.hedge * (even - best))

    def in_turn(self, bandwidth: float) -> Plan:
        """Equal crawl rates, except where limits forbid them.

        Parameters
        ----------
        bandwidth : float
            Crawls a day.

        Returns
        -------
        Plan
            Keeps all limits.
        """
        found = allocation.even(self.importance, bandwidth, **self.limits)
        return Plan(found.crawl_rate)

    def page_freshness(self, plan: Plan, factor: float = 1.0) -> Array:
        """Expected freshness of each page under a plan, shape (n_pages,).

        Under the posterior of the change rates, or at rates that are so many times as
        high.
        """
        return self._expected(
            lambda rate: freshness.interval(factor * rate, plan.crawl_rate)
        )

    def promise(
        self, plan: Plan, factors: list[float] | None, usual: float | None = None
    ) -> tuple[float, float, float] | None:
        """Freshness that a plan promises, and the range around it.

        Parameters
        ----------
        plan : Plan
            A solution.
        factors : list of float or None
            Of `drift.drift`.
        usual : float, optional
            Of `drift.usual_factor`; by default the geometric mean of the factors.

        Returns
        -------
        low, middle, high : float
            At the usual factor for the middle, within the range. For the range,
            factors reach from the least of them and 1 to the greatest, and by half of
            this ratio further on both sides, and the freshness by 0.02: chosen on the
            sources of ``benchmarks/promise.py``. None without factors, or if no page
            counts.
        """
        if not factors or self.mean(self.change_rate) is None:
            return None
        log = np.log(factors)
        least, most = min(log.min(), 0.0), max(log.max(), 0.0)
        further = (most - least) / 2
        middle = log.mean() if usual is None else np.log(usual)
        middle = np.clip(middle, least - further, most + further)
        low, middle, high = (
            self.mean(self.page_freshness(plan, np.exp(each)))
            for each in (most + further, middle, least - further)
        )
        return max(low - _UNEXPLAINED, 0.0), middle, min(high + _UNEXPLAINED, 1.0)

    def _expected(self, function):
        """Expectation of a function of the change rate, by page."""
        return expected(function, self.change_rate, self.log_stderr, self.log_rate)

    def mean(self, value: Array) -> float | None:
        """Mean of a value of each promised page, by importance.

        Pages of which it is NaN do not count; None if no page counts.
        """
        counts = (self.importance > 0) & ~np.isnan(value)
        if self.promised is not None:
            counts &= self.promised
        if not counts.any():
            return None
        return freshness.mean(value[counts], self.importance[counts]).item()

    def sample(self) -> tuple[Problem, float]:
        """A problem of at most 100,000 pages, every n-th one, without hosts.

        Returns
        -------
        problem : Problem
            Of these pages.
        share : float
            How many of the pages these are.
        """
        n_pages = self.importance.size
        every = -(-n_pages // SAMPLE)

        def some(arrays):  # copies, for strided views are slow to pass over
            return {
                name: value[::every].copy()
                for name, value in arrays.items()
                if isinstance(value, np.ndarray)
                and name not in _KINDS["limits of hosts"]
            }

        few = replace(self, **some(vars(self)), limits=some(self.limits))
        return few, few.importance.size / n_pages

    def prices(self, bandwidth: float, plan: Plan) -> dict[str, float]:
        """By kind of limit in force, the freshness that the schedule without it gains.

        Parameters
        ----------
        bandwidth : float
            Crawls a day.
        plan : Plan
            The solution.

        Returns
        -------
        dict of float
            Negative where the schedule is fresher with the limit: where rates are
            uncertain, the optimum for the estimates is not the best.
        """
        fresh = self.mean(self.page_freshness(plan))
        prices = {}
        for kind, names in _KINDS.items():
            others = {k: v for k, v in self.limits.items() if k not in names}
            if len(others) < len(self.limits) and fresh is not None:
                free = replace(self, limits=others)
                gain = free.mean(free.page_freshness(free.solve(bandwidth))) - fresh
                prices[kind] = round(gain, _DIGITS) + 0.0
        return prices
