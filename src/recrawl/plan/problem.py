"""Crawl rates for pages with estimated change rates, and what limits cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paperlib import freshness
from paperlib.allocation import optimal_thresholds
from paperlib.signals import SignalledPages
from recrawl.plan import allocation, objectives
from recrawl.rates.posterior import expected
from recrawl.types import Array

__all__ = ["Plan", "Problem"]

SAMPLE = 100_000  # pages that are enough for prices, where there are no hosts
_DIGITS = 12  # after the point: differences of means are not known better
_ROUNDING = 1e-9  # relative: a rate so close to a limit is at it
_UNEXPLAINED = 0.02  # of freshness: what no factor explains, see `Problem.promise`


def _seen(change_rate, crawl_rate):
    """Crawls a day that find a change, at equal intervals."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = -crawl_rate * np.expm1(-change_rate / crawl_rate)
    return np.where(crawl_rate > 0, found, 0.0)


@dataclass(frozen=True, eq=False)
class Plan:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (n_pages,), 1/day
        With the hedge.
    best : ndarray, shape (n_pages,), 1/day
        The optimum without a hedge.
    threshold : ndarray, shape (n_pages,), days, optional
        Effective elapsed times at which pages with signals are crawled.
    """

    crawl_rate: np.ndarray
    best: np.ndarray
    threshold: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """What decides the crawl rates of pages, and what they are expected to give.

    Parameters
    ----------
    change_rate, importance : ndarray, shape (n_pages,)
        1/day, and any unit. Pages without importance are crawled where `min_rate`
        says so.
    objective : str
        A key of `objectives.CODES`.
    hedge : float
        Share of the bandwidth that is spent at equal rates.
    log_stderr, log_rate : ndarray, optional
        As in `expected`.
    signals : tuple of ndarray, optional
        Recall and rate of false signals: then pages are crawled at thresholds.
    min_rate, max_rate : ndarray, optional
        Limits of crawl rates, 1/day.
    host, host_limit : ndarray, optional
        Index of the host of each page, and the limit of each host.
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
    signals: tuple | None = None
    min_rate: np.ndarray | None = None
    max_rate: np.ndarray | None = None
    host: np.ndarray | None = None
    host_limit: np.ndarray | None = None
    promised: np.ndarray | None = None

    def least_spent(self) -> Array:
        """Crawls a day that the greatest intervals need, shape (n_pages,)."""
        if self.min_rate is None:
            return np.zeros(self.importance.size)
        return self.min_rate

    def signalled(self, here: slice = slice(None)) -> SignalledPages:
        """Pages with their signals, for thresholds; those `here`."""
        given = self.change_rate, self.importance, *self.signals
        return SignalledPages(*(each[here] for each in given))

    def solve(self, bandwidth: float) -> Plan:
        """Optimal crawl rates, mixed with equal ones.

        Parameters
        ----------
        bandwidth : float
            Crawls a day.

        Returns
        -------
        Plan
            Both keep all limits, and so does their mixture.
        """
        if self.signals:
            best = optimal_thresholds(self.signalled(), bandwidth)
            return Plan(best.crawl_rate, best.crawl_rate, best.threshold)
        best = allocation.optimal(
            self.change_rate,
            self.importance,
            bandwidth,
            objective=self.objective,
            **self._limits(),
        ).crawl_rate
        if not self.hedge:
            return Plan(best, best)
        even = self.in_turn(bandwidth).crawl_rate
        return Plan(best + self.hedge * (even - best), best)

    def in_turn(self, bandwidth: float) -> Plan:
        """Equal crawl rates, but for the limits.

        Parameters
        ----------
        bandwidth : float
            Crawls a day.

        Returns
        -------
        Plan
            Keeps all limits.
        """
        rate = allocation.even(self.importance, bandwidth, **self._limits()).crawl_rate
        return Plan(rate, rate)

    def _limits(self):
        """Limits, as the allocations take them."""
        given = {
            "min_rate": self.min_rate,
            "max_rate": self.max_rate,
            "host": self.host,
            "host_limit": self.host_limit,
        }
        return {name: value for name, value in given.items() if value is not None}

    def page_freshness(self, plan: Plan, factor: float = 1.0) -> Array:
        """Expected freshness of each page under a plan, shape (n_pages,).

        Under the posterior of the change rates, or at rates that are so many times as
        high; at thresholds, if the estimates are exact.
        """
        if self.signals:
            fresh = freshness.fresh_time(plan.threshold, self.signalled())
            fresh[plan.crawl_rate == 0] = 0.0  # time without end
            return np.where(self.change_rate == 0, 1.0, plan.crawl_rate * fresh)
        return self._expected(
            lambda rate: freshness.interval(factor * rate, plan.crawl_rate)
        )

    def promise(self, plan: Plan, factors: list[float]) -> tuple[float, float, float]:
        """Freshness that a plan promises, and the range around it.

        Parameters
        ----------
        plan : Plan
            A solution.
        factors : list of float
            Of `drift.drift`.

        Returns
        -------
        low, middle, high : float
            At the geometric mean of the factors for the middle. For the range, factors
            reach from the least of them and 1 to the greatest, and by half of this
            ratio further on both sides, and the freshness by 0.02: chosen on the
            sources of ``benchmarks/promise.py``.
        """
        log = np.log(factors)
        least, most = min(log.min(), 0.0), max(log.max(), 0.0)
        further = (most - least) / 2
        low, middle, high = (
            self.mean(self.page_freshness(plan, np.exp(each)))
            for each in (most + further, log.mean(), least - further)
        )
        return max(low - _UNEXPLAINED, 0.0), middle, min(high + _UNEXPLAINED, 1.0)

    def unseen(self, plan: Plan) -> float:
        """Share of the changes that no crawl sees, as others come before it.

        With the importance of their pages, at equal intervals.
        """
        seen = self._expected(lambda rate: _seen(rate, plan.crawl_rate))
        changes = self._expected(lambda rate: rate) @ self.importance
        return 1 - (seen @ self.importance).item() / changes.item() if changes else 0.0

    def loss(self, plan: Plan) -> float:
        """Mean cost of a plan, in the unit of the objective; 1 - freshness for that."""
        if self.signals:
            return 1.0 - self.mean(self.page_freshness(plan))
        rate = plan.crawl_rate
        cost = self._expected(lambda d: objectives.cost(self.objective, d, rate))
        return self.mean(cost)

    def _expected(self, function):
        """Expectation of a function of the change rate, by page."""
        return expected(function, self.change_rate, self.log_stderr, self.log_rate)

    def mean(self, value: Array) -> float:
        """Mean of a value of each promised page, by importance.

        Pages of which it is NaN do not count; NaN if none does.
        """
        # 0 of an infinite cost is 0
        counts = (self.importance > 0) & ~np.isnan(value)
        if self.promised is not None:
            counts &= self.promised
        if not counts.any():
            return np.nan
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
        # copies, for strided views are slow to pass over
        arrays = {
            name: value[::every].copy()
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name not in ("host", "host_limit")
        }
        if self.signals:
            arrays["signals"] = tuple(each[::every].copy() for each in self.signals)
        few = replace(self, host=None, host_limit=None, **arrays)
        return few, few.importance.size / n_pages

    def prices(
        self, bandwidth: float, plan: Plan
    ) -> tuple[dict[str, dict[str, Any]], float, float | None]:
        """What each kind of limit costs, and the value of a crawl a day.

        Each is the difference in `loss` to the solution without the limit, or
        with one crawl a day more or less.

        Parameters
        ----------
        bandwidth : float
            Crawls a day.
        plan : Plan
            The solution.

        Returns
        -------
        prices : dict of dict
            By kind of limit in force, what it costs ("cost"), and which share
            of the pages (or hosts) is at it ("share").
        one_more : float
            What one more crawl a day saves.
        one_fewer : float or None
            What one crawl less a day costs; None if the limits forbid it.
        """
        few, share = self, 1.0
        if self.host is None and self.min_rate is None:
            few, share = self.sample()
        here = bandwidth * share
        solved = plan if share == 1.0 else few.solve(here)
        loss = few.loss(solved)

        def saved(problem, bandwidth):
            return loss - problem.loss(problem.solve(bandwidth))

        costs = {
            kind: saved(replace(few, **dict.fromkeys(names)), here)
            for kind, names in self._kinds().items()
        }
        prices = {
            kind: {
                "cost": round(cost, _DIGITS) + 0.0,
                "share": self._at_limit(kind, plan),
            }
            for kind, cost in costs.items()
        }
        less = here - share
        possible = less > 0 and few.least_spent().sum() <= less
        one_fewer = 0.0 - saved(few, less) if possible else None
        return prices, saved(few, here + share), one_fewer

    def _kinds(self):
        """By kind of limit in force, the attributes that hold it."""
        kinds = {
            "greatest interval": ("min_rate",),
            "least interval": ("max_rate",),
            "hosts": ("host", "host_limit"),
        }
        return {k: v for k, v in kinds.items() if getattr(self, v[0]) is not None}

    def _at_limit(self, kind, plan):
        """The share of pages or hosts that a kind of limit holds."""
        rate, counts = plan.best, self.importance > 0
        if kind == "hosts":
            spent = np.bincount(self.host, rate, self.host_limit.size)
            return np.mean(spent >= self.host_limit * (1 - _ROUNDING)).item()
        if kind == "greatest interval":
            at = (self.min_rate > 0) & (rate <= self.min_rate * (1 + _ROUNDING))
        else:
            at = rate >= self.max_rate * (1 - _ROUNDING)
        return np.mean(at[counts]).item()
