"""Crawl rates for pages with estimated change rates, and what limits cost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from paperlib.signals import SignalledPages
from recrawl.calibrating import Calibration
from recrawl.science import allocation, freshness, objectives
from recrawl.types import Array

__all__ = ["OBJECTIVES", "POLICIES", "Plan", "Problem", "expected"]

# Freshness at crawl rates, by policy; that of thresholds depends on signals too.
MODELS = {"interval": freshness.interval, "poisson": freshness.poisson}
POLICIES = (*MODELS, "thresholds")
OBJECTIVES = {
    name: getattr(objectives, name)
    for name in ("freshness", "delay", "age", "harmonic")
}
SAMPLE = 100_000  # pages that are enough for prices, where there are no hosts
# Of Gauss and Hermite. With 15 the error of the mean freshness is below 4e-4
# for standard deviations up to 2 (measured).
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Standard deviations of the logarithm between which the shape is looked for. A gamma
# distribution has a mode from shape 1 on, where this is 1.28. Below .001 mean and mode
# are the same to 1e-6.
_STDERRS = 1e-3, 1.2
_STEPS = 5
_DIGITS = 12  # after the point: differences of means are not known better
_ROUNDING = 1e-9  # relative: a rate so close to a limit is at it
_ALL = slice(None)


def expected(
    function: Callable[..., Any],
    change_rate: Array,
    log_stderr: Array | None = None,
    log_rate: Array | None = None,
) -> Array:
    r"""Mean of a function of the change rate over its posterior.

    The logarithm of the rate is taken as normal with the mean and the standard
    deviation that it has in the posterior, so that a sum by the rule of Gauss and
    Hermite with 15 nodes will do:

    .. math:: \frac{1}{\sqrt{2\pi}} \int f(m e^{\sigma z}) e^{-z^2/2}\,dz .

    Where its mean ln m is not known, it is that of the gamma distribution of shape
    a whose mode is the estimate, and whose logarithm has this standard deviation:

    .. math:: \psi_1(a) = \sigma^2, \qquad m = \Delta\,\frac{e^{\psi(a)}}{a - 1} .

    Above 1.2 the shape is that of 1.2, for from 1.28 on there is no mode that m could
    be the multiple of; the spread remains what was given. (No page of the example
    log, and none of 3,000 pages of three crawls each, was above .84.)

    Parameters
    ----------
    function : callable
        From change rates to an array of the same shape.
    change_rate : ndarray, 1/time
        Estimated change rates, the modes of their posteriors.
    log_stderr : ndarray, optional
        Standard deviations of the logarithm of the rate; without them the
        estimates are taken as exact.
    log_rate : ndarray, optional
        Means of the logarithm of the rate, NaN where they are not known.

    Returns
    -------
    ndarray
        The means.

    Examples
    --------
    >>> rate, stderr = np.array([1.0, 1.0]), np.array([0.0, 1.0])
    >>> expected(lambda r: r, rate, stderr).round(2)
    array([1.  , 3.74])
    >>> expected(lambda r: r, rate, stderr, np.log([2.0, np.nan])).round(2)
    array([2.  , 3.74])
    """
    if log_stderr is None:
        return function(change_rate)
    middle = change_rate * _above_mode(log_stderr)
    if log_rate is not None:
        middle = np.where(np.isnan(log_rate), middle, np.exp(log_rate))
    terms = zip(_NODES, _WEIGHTS, strict=True)
    return sum(w * function(middle * np.exp(z * log_stderr)) for z, w in terms)


def _cycle(threshold, pages, rate):
    """Fresh time and time between crawls at thresholds, if the change rates are others.

    A signal counts for the time beta that the believed rates give. Of the true
    rates, the fresh time depends on change and false rate alone, and the other on
    the rate of signals: so both are those of other pages with this beta. The first
    have the recall that solves log(1 + recall rate / false rate) = (1 - recall) rate
    beta, by Wright's omega function; of the second, one signal in e is false.
    """
    recall, false_rate, beta = pages.recall, pages.false_rate, pages.beta
    gamma = recall * rate + false_rate
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = beta * false_rate
        odds = scipy.special.wrightomega(np.log(x) + x + beta * rate) / x - 1
        alike = np.clip(odds * false_rate / rate, 0, 1)
        signalled = -np.expm1(-1) * gamma
        others = signalled + 1 / beta, signalled / (signalled + 1 / beta), gamma / np.e
    # signals of no value, or that are enough alone, are so at all rates
    middle = (beta > 0) & (beta < np.inf) & (rate > 0)
    alike = SignalledPages(rate, 1.0, np.where(middle, alike, recall), false_rate)
    own = rate, recall, false_rate
    rates, recalls, falses = (
        np.where(middle, *both) for both in zip(others, own, strict=True)
    )
    length = freshness.cycle_length(
        threshold, SignalledPages(rates, 1.0, recalls, falses)
    )
    with np.errstate(divide="ignore"):  # without a threshold, the first signal counts
        length = np.where(np.isfinite(threshold), length, 1 / gamma)
    return freshness.fresh_time(threshold, alike), length


def _above_mode(log_stderr):
    """Geometric mean of a gamma distribution, in units of its mode."""
    variance = np.clip(log_stderr, *_STDERRS) ** 2
    shape = 0.5 + 1 / variance
    for _ in range(_STEPS):  # Newton's, of 1 / trigamma, which is nearly linear
        value, slope = (scipy.special.polygamma(k, shape) for k in (1, 2))
        shape += value * (1 - value / variance) / slope
    ratio = np.exp(scipy.special.digamma(shape)) / (shape - 1)
    return np.where(log_stderr < _STDERRS[0], 1.0, ratio)


@dataclass(frozen=True, eq=False)
class Plan:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (n_pages,), 1/day
        With the hedge.
    best : allocation.Allocation
        The optimum without a hedge.

    Examples
    --------
    >>> Plan(np.ones(2), None).crawl_rate
    array([1., 1.])
    """

    crawl_rate: np.ndarray
    best: allocation.Allocation


@dataclass(frozen=True, eq=False)
class Problem:
    """What decides the crawl rates of pages.

    Parameters
    ----------
    change_rate, importance : ndarray, shape (n_pages,)
        Pages without importance are crawled where `min_rate` says so.
    policy : str
        One of `POLICIES`.
    objective : str
        A key of `OBJECTIVES`.
    hedge : float
        Share of the bandwidth that is spent at equal rates.
    log_stderr, log_rate : ndarray, optional
        As in `expected`.
    signals : tuple of ndarray, optional
        Recall and rate of false signals, for thresholds.
    min_rate, max_rate, cost : ndarray, optional
        As in `allocation.optimal`.
    host, host_limit : ndarray, optional
        Index of the host of each page, and the limit of each host.
    promised : bool ndarray, optional
        Pages that count in `freshness` and `loss`; by default all.

    Examples
    --------
    >>> problem = Problem(np.array([1.0, 3.0]), np.ones(2), hedge=0.5)
    >>> problem.solve(2.0).crawl_rate.round(3)
    array([0.997, 1.003])
    """

    change_rate: np.ndarray
    importance: np.ndarray
    policy: str = "interval"
    objective: str = "freshness"
    hedge: float = 0.0
    log_stderr: np.ndarray | None = None
    log_rate: np.ndarray | None = None
    signals: tuple | None = None
    min_rate: np.ndarray | None = None
    max_rate: np.ndarray | None = None
    cost: np.ndarray | None = None
    host: np.ndarray | None = None
    host_limit: np.ndarray | None = None
    promised: np.ndarray | None = None

    @property
    def _limits(self):
        """Arguments of `allocation.optimal`, only those that are there."""
        given = {
            name: getattr(self, name)
            for name in ("min_rate", "max_rate", "cost", "host")
            if getattr(self, name) is not None
        }
        if self.host is not None:
            given["host_limit"] = dict(enumerate(self.host_limit.tolist()))
        return given

    def spent(self, crawl_rate: Array) -> Array:
        """What crawls spend a day.

        Parameters
        ----------
        crawl_rate : ndarray, shape (n_pages,), 1/day
            Crawls of each page.

        Returns
        -------
        ndarray, shape (n_pages,)
            By page.
        """
        return crawl_rate if self.cost is None else crawl_rate * self.cost

    def least_spent(self) -> Array:
        """What the greatest intervals spend a day.

        Returns
        -------
        ndarray, shape (n_pages,)
            By page.
        """
        if self.min_rate is None:
            return np.zeros(self.importance.size)
        return self.spent(self.min_rate)

    def signalled(self, here: slice = _ALL) -> SignalledPages:
        """Pages with their signals, for thresholds.

        Parameters
        ----------
        here : slice, optional
            The pages.

        Returns
        -------
        signals.SignalledPages
        """
        given = self.change_rate, self.importance, *self.signals
        return SignalledPages(*(each[here] for each in given))

    def solve(self, bandwidth: float) -> Plan:
        """Optimal crawl rates, mixed with equal ones.

        Parameters
        ----------
        bandwidth : float
            What may be spent a day.

        Returns
        -------
        Plan
            Both keep all limits, and so does their mixture.
        """
        pages = self.change_rate, self.importance
        if self.policy == "thresholds":
            best = allocation.optimal_thresholds(self.signalled(), bandwidth)
            return Plan(best.crawl_rate, best)
        best = allocation.optimal(
            *pages,
            bandwidth,
            objective=OBJECTIVES[self.objective],
            crawls=self.policy,
            **self._limits,
        )
        if not self.hedge:
            return Plan(best.crawl_rate, best)
        even = self._even(bandwidth)
        return Plan(best.crawl_rate + self.hedge * (even - best.crawl_rate), best)

    def _even(self, bandwidth):
        """Rates that are equal, except where limits forbid it."""
        counts = self.importance > 0
        if not self._limits:
            return np.where(counts, bandwidth / counts.sum(), 0.0)
        # Rates of the least age of information are proportional to the root of
        # importance / cost.
        weight = np.where(counts, 1.0 if self.cost is None else self.cost, 0.0)
        return allocation.optimal(
            1.0,
            weight,
            bandwidth,
            objective=objectives.age_of_information,
            **self._limits,
        ).crawl_rate

    def freshness(self, plan: Plan) -> float:
        """Expected freshness of a plan, weighted by importance.

        Parameters
        ----------
        plan : Plan
            Of `solve`.

        Returns
        -------
        float
            In [0, 1], under the posterior of the change rates; with signals, at
            the thresholds and the value of a signal that the estimates give.
        """
        return self.mean(self.page_freshness(plan))

    def page_freshness(self, plan: Plan) -> Array:
        """Expected freshness of each page under a plan.

        Parameters
        ----------
        plan : Plan
            Of `solve`.

        Returns
        -------
        ndarray
            As in `freshness`.
        """
        if self.policy != "thresholds":
            model = MODELS[self.policy]
            return self._expected(lambda rate: model(rate, plan.crawl_rate))
        followed = self._followed(plan)
        return self._expected(lambda rate: followed(rate)[0])

    def expected_crawls(self, plan: Plan) -> float:
        """Crawls a day that thresholds lead to, under the posterior of the rates.

        Parameters
        ----------
        plan : Plan
            Of `solve`.

        Returns
        -------
        float
            As many as planned if the estimates are exact.
        """
        followed = self._followed(plan)
        return self._expected(lambda rate: followed(rate)[1]).sum().item()

    def _followed(self, plan):
        """Function from change rates to freshness and crawls a day of thresholds."""
        crawl_rate, pages = plan.crawl_rate, self.signalled()
        cycle = functools.partial(_cycle, plan.best.threshold, pages)
        _, planned = cycle(pages.change_rate)

        def followed(rate):
            fresh, length = cycle(rate)
            with np.errstate(invalid="ignore"):  # of pages without crawls
                crawls = np.where(crawl_rate > 0, crawl_rate * planned / length, 0.0)
                return np.where(crawl_rate > 0, crawls * fresh, rate == 0), crawls

        return followed

    def calibrated(self, plan: Plan, calibration: Calibration) -> float:
        """Freshness of a plan of equal intervals, as measured on a log.

        Parameters
        ----------
        plan : Plan
            Of `solve`.
        calibration : Calibration
            Of the log.

        Returns
        -------
        float
            In [0, 1], weighted by importance.
        """
        return self.mean(calibration.freshness(self.change_rate, plan.crawl_rate))

    def loss(self, plan: Plan, fresh: Array | None = None) -> float:
        """Mean cost of a plan, weighted by importance.

        Parameters
        ----------
        plan : Plan
            Of `solve`.
        fresh : ndarray, optional
            Its `page_freshness`, if that is known already.

        Returns
        -------
        float
            In the unit of the objective; 1 - freshness for freshness.
        """
        if self.objective == "freshness":
            fresh = self.page_freshness(plan) if fresh is None else fresh
            return 1.0 - self.mean(fresh)
        of = OBJECTIVES[self.objective]
        cost = of.interval_cost if self.policy == "interval" else of.poisson_cost
        return self.mean(self._expected(lambda rate: cost(rate, plan.crawl_rate)))

    def _expected(self, function):
        """Expectation of a function of the change rate, by page."""
        return expected(function, self.change_rate, self.log_stderr, self.log_rate)

    def mean(self, value: Array) -> float:
        """Mean of a value of each page that is promised, weighted by importance.

        Parameters
        ----------
        value : ndarray, shape (n_pages,)
            Of pages.

        Returns
        -------
        float
            NaN if no page is promised.
        """
        counts = self.importance > 0  # 0 of an infinite cost is 0
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
            What may be spent a day.
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
        if self.hedge:
            costs["hedge"] = loss - few.loss(Plan(solved.best.crawl_rate, solved.best))
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
        rate, counts = plan.best.crawl_rate, self.importance > 0
        if kind == "hedge":
            return self.hedge
        if kind == "hosts":
            spent = np.bincount(self.host, self.spent(rate), self.host_limit.size)
            return np.mean(spent >= self.host_limit * (1 - _ROUNDING)).item()
        if kind == "greatest interval":
            at = (self.min_rate > 0) & (rate <= self.min_rate * (1 + _ROUNDING))
        else:
            at = rate >= self.max_rate * (1 - _ROUNDING)
        return np.mean(at[counts]).item()
