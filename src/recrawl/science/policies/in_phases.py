"""Crawl rates that are set anew in every phase, from what the crawls found."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import numpy as np

from recrawl import checks
from recrawl.errors import DegenerateHistoryWarning
from recrawl.science import allocation
from recrawl.science.policies.fixed_rates import check_n_pages
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Ints, Seed, Values

__all__ = ["RatesInPhases"]


@dataclass(frozen=True, eq=False)
class RatesInPhases:
    r"""Set crawl rates at the start of each phase, from all crawls so far.

    The first phase crawls all pages alike; the later ones at the rates

    .. math:: (1 - \epsilon)\,\rho(\hat\Delta) + \epsilon\,R / m .

    With one more phase this is explore,
    then commit; with a share of uniform rates, phased epsilon-greedy; with
    rates of least harmonic cost, Poisson times and a phase a day it is
    LambdaLearnAndCrawl of Kolobov et al. (NeurIPS 2019). It picks pages, in any
    world, while the policies of `paperlib` that learn in phases set rates.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), non-negative
        Importances.
    borders : array_like, shape (n_phases - 1,), time, rising, positive
        Inner borders of the phases: when those after the first begin.
    estimator : callable
        Function of a History: change rates, shape (n_pages,), 1/time. A page
        without an estimate (NaN) gets the median of the others. Infinite rates
        are refused: `estimators.mle` gives one to a page that changed at every
        crawl, the estimates of `priors` are finite.
    allocation : callable, default `allocation.optimal`
        Function of change rates, importance and bandwidth.
    spacing : {"interval", "poisson"}, default "interval"
        Crawl a page at equal intervals, or give each slot to a page at random.
    epsilon : float, in [0, 1], default 0.0
        Share of the bandwidth at uniform rates after the first phase.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers for Poisson spacing.

    Raises
    ------
    ValueError
        Arguments out of range.

    Examples
    --------
    >>> from recrawl.science import priors, simulate
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.2, 1.0, 20.0], 1.0, 0.0, 0.0)
    >>> world = simulate.draw_world(pages, 300.0, rng=1)
    >>> estimate = priors.FakeIntervals(0.5, 0.5).estimate
    >>> policy = RatesInPhases(pages.importance, [30.0, 90.0], estimate)
    >>> simulate.crawl(world, policy, bandwidth=2.0).n_crawls.tolist()
    [184, 258, 158]
    """

    importance: Values
    borders: Values
    estimator: Callable
    _: KW_ONLY
    allocation: Callable = allocation.optimal
    spacing: str = "interval"
    epsilon: float = 0.0
    rng: Seed = None

    def __post_init__(self):
        importance = checks.per_page("importance", self.importance)
        checks.scalar(checks.share, "epsilon", self.epsilon)
        borders = checks.positive("borders", np.atleast_1d(self.borders))
        if not (np.diff(borders) > 0).all():
            raise ValueError(f"borders must rise, got {self.borders!r}")
        checks.one_of("spacing", self.spacing, ("interval", "poisson"))
        # in place, because the dataclass is frozen
        vars(self).update(importance=importance, borders=borders)

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            What the crawls find.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            A page for every slot, whether it is there or not.
        """
        check_n_pages("importance", self.importance.size, world)
        rng, bandwidth = np.random.default_rng(self.rng), time.size / world.horizon
        uniform = np.full(last.size, bandwidth / last.size)
        page, rate, latest = np.empty(time.size, dtype=np.int64), uniform, last.copy()
        edges = np.searchsorted(time, [0.0, *self.borders, np.inf])
        for first, end in pairwise(edges):
            if first == end:
                continue
            if first:
                found = world.observe(time[:first], page[:first], last)
                plan = self._plan(found, bandwidth)
                rate = (1 - self.epsilon) * plan + self.epsilon * uniform
            if self.spacing == "poisson":
                page[first:end] = rng.choice(
                    last.size, end - first, p=rate / rate.sum()
                )
            else:
                start = time[first - 1] if first else 0.0
                page[first:end] = at_intervals(rate, latest, start, end - first)
            np.maximum.at(latest, page[first:end], time[first:end])
        return page

    def _plan(self, history, bandwidth):
        """Crawl rates for the estimates from a history."""
        degenerate = DegenerateHistoryWarning
        with warnings.catch_warnings(action="ignore", category=degenerate):
            believed = np.array(self.estimator(history), dtype=float)
        unknown = np.isnan(believed)
        # Without an estimate of any page all rates are equal; the value does not
        # matter.
        believed[unknown] = 1.0 if unknown.all() else np.median(believed[~unknown])
        plan = self.allocation(believed, self.importance, bandwidth)
        return plan.crawl_rate


def at_intervals(crawl_rate, last, start, n_slots):
    """Page of each slot, so that a page comes at equal intervals.

    A page is due one interval after its last crawl, and no sooner than the start;
    later visits follow at equal intervals. The slots take the visits in the order
    of their due dates.

    Parameters
    ----------
    crawl_rate : ndarray, shape (n_pages,), 1/time
        Crawl rates, not all 0.
    last : ndarray, shape (n_pages,), time
        Last crawls, -inf for none.
    start : float, time
        The moment before the first slot.
    n_slots : int
        Number of slots.

    Returns
    -------
    ndarray of int, shape (n_slots,)
        The pages.
    """
    crawled = np.flatnonzero(crawl_rate > 0)
    interval = 1.0 / crawl_rate[crawled]
    due = np.maximum(last[crawled] + interval, start)
    # Twice the share of a page: others may be due late.
    count = 2 + np.ceil(2 * n_slots / interval / crawl_rate.sum()).astype(np.int64)
    which = np.repeat(np.arange(crawled.size), count)
    number = np.arange(which.size) - np.repeat(np.cumsum(count) - count, count)
    order = np.argsort(due[which] + number * interval[which], kind="stable")
    return crawled[which[order[:n_slots]]]
