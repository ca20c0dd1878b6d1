"""Simulated copies of a crawler that follows crawl rates.

Policies that learn use the fresh time of the copies (appendix C of Upadhyay et al.,
2020) and the bits of the crawls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks, freshness, schedules
from .processes import History


@dataclass(frozen=True)
class Schedule:
    """Crawl times for crawl rates, and the expected fresh time of the copies.

    Parameters
    ----------
    times : callable
        ``times(crawl_rate, duration, rng=...)``: crawl times and offsets, as
        `schedules.poisson` returns them.
    fresh_time : callable, optional
        ``fresh_time(change_rate, crawl_rate, duration, initial=...)``: the expected
        fresh time of each page, as `freshness.poisson_time` returns it. By default
        the fresh time of the simulated copies replaces it.

    Examples
    --------
    A schedule that crawls all pages together, at their mean rate:

    >>> def together(crawl_rate, duration, *, rng=None):
    ...     same = np.full_like(crawl_rate, np.mean(crawl_rate))
    ...     return schedules.regular(same, duration, phase=1.0)
    >>> copies = Copies([0.5, 2.0], filled=True, rng=1)
    >>> expected, fresh = copies.follow(Schedule(together), np.array([1.0, 3.0]), 4.0)
    >>> copies.history.n_crawls, bool((expected == fresh).all())
    (array([8, 8]), True)
    """

    times: Callable
    fresh_time: Callable | None = None


POISSON = Schedule(schedules.poisson, freshness.poisson_time)
REGULAR = Schedule(schedules.regular, freshness.interval_time)
# Equal intervals; each round ends with a crawl of every page.
ROUNDS = Schedule(
    partial(schedules.regular, phase=1.0), partial(freshness.interval_time, phase=1.0)
)
# Schedules for exploration.
EXPLORE = {"interval": ROUNDS, "rate": POISSON}


class Copies:
    """Simulated copies of Poisson pages, and the observations of their crawls.

    Parameters
    ----------
    change_rate : array_like, shape (n_pages,), 1/time
        True change rates.
    filled : bool
        Whether every page is crawled at time 0. Otherwise there are no copies
        at first.
    rng : None, int or Generator, optional
        Draws crawls and changes.

    Attributes
    ----------
    history : History
        Observations so far, ragged. The first crawl of a page yields none,
        because there is no earlier copy to compare with.

    Examples
    --------
    >>> copies = Copies([0.5, 2.0], filled=True, rng=1)
    >>> expected, fresh = copies.follow(ROUNDS, np.ones(2), 10.0)
    >>> copies.history.n_crawls
    array([10, 10])
    """

    def __init__(self, change_rate: ArrayLike, *, filled: bool, rng: Any = None):
        self.change_rate = checks.numbers("change_rate", change_rate)
        self.rng = np.random.default_rng(rng)
        n_pages = self.change_rate.size
        self.history = History([], [], np.zeros(n_pages + 1, dtype=int))
        # times, from now, of each page's last crawl and of the first change after it
        self._last = np.full(n_pages, 0.0 if filled else -np.inf)
        self._change = self._last.copy()
        if filled:
            self._change += self._until_change(np.arange(n_pages))

    def _until_change(self, page):
        """Time from a crawl of each page to its next change."""
        with np.errstate(divide="ignore"):
            return self.rng.standard_exponential(page.size) / self.change_rate[page]

    def follow(
        self, schedule: Schedule, crawl_rate: ArrayLike, duration: float
    ) -> tuple[NDArray, NDArray]:
        """Crawl the pages by a schedule.

        Parameters
        ----------
        schedule : Schedule
            `POISSON`, `REGULAR`, `ROUNDS`, or your own.
        crawl_rate : array_like, shape (n_pages,), 1/time
            Crawl rates.
        duration : float, time
            How long to follow the schedule.

        Returns
        -------
        expected : ndarray, shape (n_pages,), time
            Expected fresh time of each page, given the earlier crawls. It is
            `fresh` if the schedule has no closed form.
        fresh : ndarray, shape (n_pages,), time
            Simulated fresh time of each page.
        """
        crawl_rate = checks.numbers("crawl_rate", crawl_rate)
        before = self.probability()
        time, offsets = schedule.times(crawl_rate, duration, rng=self.rng)
        pages = np.arange(offsets.size - 1)
        page = np.repeat(pages, np.diff(offsets))
        # Copies of a page in this time: the first starts at the last earlier crawl,
        # the others at each crawl. A copy ends at the next crawl or at the end.
        start = np.insert(time, offsets[:-1], self._last)
        change = np.insert(time + self._until_change(page), offsets[:-1], self._change)
        end = np.insert(time, offsets[1:], duration)
        fresh = np.maximum(np.minimum(change, end) - np.maximum(start, 0.0), 0.0)
        fresh = np.add.reduceat(fresh, offsets[:-1] + pages)
        last = offsets[1:] + pages
        self._last, self._change = start[last] - duration, change[last] - duration
        seen = start > -np.inf  # copies that the crawl at their end observes
        seen[last] = False
        offsets = np.append(0, np.cumsum(seen)[last])
        later = History((end - start)[seen], (change <= end)[seen], offsets)
        self.history = self.history.join(later)
        if schedule.fresh_time is None:
            return fresh, fresh
        expected = schedule.fresh_time(
            self.change_rate, crawl_rate, duration, initial=before
        )
        return expected, fresh

    def probability(self) -> NDArray:
        """Probability that each copy is fresh now, given the crawls so far.

        It is exp(-change_rate t) at time t after the last crawl, and 0 for a
        page that was never crawled.
        """
        elapsed = -np.nan_to_num(self._last, neginf=0.0)
        return np.isfinite(self._last) * np.exp(-self.change_rate * elapsed)
