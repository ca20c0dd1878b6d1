"""The copies that a crawler keeps while it follows crawl rates, simulated.

For policies that learn: how long the copies are fresh (appendix C of Upadhyay et al.,
2020), and what the crawls find.
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
    """How crawl rates become crawl times, and how long copies are then fresh.

    Parameters
    ----------
    times : callable
        ``times(crawl_rate, duration, rng=...)``: crawl times and offsets, as
        `schedules.poisson` returns them.
    fresh_time : callable, optional
        ``fresh_time(change_rate, crawl_rate, duration, initial=...)``: the expected
        fresh time of each page, as `freshness.poisson_time` gives it. By default the
        fresh time of the simulated copies is taken in its place.

    Examples
    --------
    Pages crawled together, at the mean rate:

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
# At equal intervals, where a round ends with a crawl of every page.
ROUNDS = Schedule(
    partial(schedules.regular, phase=1.0), partial(freshness.interval_time, phase=1.0)
)
# How a policy can explore.
EXPLORE = {"interval": ROUNDS, "rate": POISSON}


class Copies:
    """Copies of Poisson pages that a crawler keeps, and what its crawls found.

    Parameters
    ----------
    change_rate : array_like, shape (n_pages,), 1/time
        True change rates.
    filled : bool
        Whether every page is crawled at time 0; otherwise there are no copies.
    rng : None, int or Generator, optional
        Draws crawls and changes.

    Attributes
    ----------
    history : History
        What the crawls found, ragged. The first crawl of a page has nothing to
        compare with and yields no observation.

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
        # the last crawl of each page, and its first change after that, from now
        self._last = np.full(n_pages, 0.0 if filled else -np.inf)
        self._change = self._last.copy()
        if filled:
            self._change += self._until_change(np.arange(n_pages))

    def _until_change(self, page):
        """Time from a crawl of each page to its next change, whatever was before."""
        with np.errstate(divide="ignore"):
            return self.rng.standard_exponential(page.size) / self.change_rate[page]

    def follow(
        self, schedule: Schedule, crawl_rate: ArrayLike, duration: float
    ) -> tuple[NDArray, NDArray]:
        """Crawl by a schedule for some time.

        Parameters
        ----------
        schedule : Schedule
            `POISSON`, `REGULAR`, `ROUNDS`, or one of your own.
        crawl_rate : array_like, shape (n_pages,), 1/time
            Crawl rates.
        duration : float, time
            How long to follow the schedule.

        Returns
        -------
        expected : ndarray, shape (n_pages,), time
            Expected fresh time of each page, given what happened before; that of
            the simulation if the schedule has no closed form.
        fresh : ndarray, shape (n_pages,), time
            Fresh time of each page as simulated.
        """
        crawl_rate = checks.numbers("crawl_rate", crawl_rate)
        before = self.probability()
        time, offsets = schedule.times(crawl_rate, duration, rng=self.rng)
        pages = np.arange(offsets.size - 1)
        page = np.repeat(pages, np.diff(offsets))
        # Copies that a page has in this time: from the last crawl before, and from
        # each crawl, to the next one; the last copy, to the end.
        start = np.insert(time, offsets[:-1], self._last)
        change = time + self._until_change(page)
        change = np.insert(change, offsets[:-1], self._change)
        end = np.insert(time, offsets[1:], duration)
        fresh = np.maximum(np.minimum(change, end) - np.maximum(start, 0.0), 0.0)
        fresh = np.add.reduceat(fresh, offsets[:-1] + pages)
        last = offsets[1:] + pages
        self._last, self._change = start[last] - duration, change[last] - duration
        seen = start > -np.inf  # by the crawl at the end
        seen[last] = False
        offsets = np.append(0, np.cumsum(seen)[last])
        later = History((end - start)[seen], (change <= end)[seen], offsets)
        self.history = self.history.join(later)
        if schedule.fresh_time is None:
            return fresh, fresh
        rates = self.change_rate, crawl_rate
        return schedule.fresh_time(*rates, duration, initial=before), fresh

    def probability(self) -> NDArray:
        """Probability that each copy is fresh now, given the crawls so far.

        It is exp(-change_rate t) at time t after the last crawl, and 0 for a
        page that was never crawled.
        """
        elapsed = -np.nan_to_num(self._last, neginf=0.0)
        return np.isfinite(self._last) * np.exp(-self.change_rate * elapsed)
