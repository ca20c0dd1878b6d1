"""The copies that a crawler keeps while it follows crawl rates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from . import checks, freshness, schedules
from .processes import History, join

# How to explore: at equal intervals, where a round ends with a crawl of every
# page, or at Poisson times.
EXPLORE = {"interval": partial(schedules.regular, phase=1.0), "rate": schedules.poisson}
# The expected fresh time of a page under each schedule, in closed form.
FRESH_TIME = {
    EXPLORE["interval"]: partial(freshness.interval_time, phase=1.0),
    schedules.poisson: freshness.poisson_time,
    schedules.regular: freshness.interval_time,
}


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
    now : float, time
        How far the simulation has come.
    history : History
        What the crawls found, ragged. The first crawl of a page has nothing to
        compare with and yields no observation.

    Examples
    --------
    >>> copies = Copies([0.5, 2.0], filled=True, rng=1)
    >>> _, fresh, n_crawls = copies.follow(EXPLORE["interval"], np.ones(2), 10.0)
    >>> n_crawls, copies.history.n_crawls
    (20, array([10, 10]))
    """

    def __init__(self, change_rate: ArrayLike, *, filled: bool, rng: Any = None):
        self.change_rate = checks.numbers("change_rate", change_rate)
        self.rng, self.now = np.random.default_rng(rng), 0.0
        self.history = History([], [], np.zeros(self.change_rate.size + 1, dtype=int))
        # the last crawl of each page, and its first change after that
        self._last = np.full(self.change_rate.size, 0.0 if filled else -np.inf)
        self._change = self._last.copy()
        if filled:
            wait = self.rng.standard_exponential(self._last.size)
            with np.errstate(divide="ignore"):
                self._change = wait / self.change_rate

    def follow(
        self, schedule: Callable, crawl_rate: NDArray, duration: float
    ) -> tuple[NDArray, NDArray, int]:
        """Crawl by a schedule for some time.

        Parameters
        ----------
        schedule : callable
            One of `EXPLORE`, `schedules.poisson` or `schedules.regular`.
        crawl_rate : ndarray, shape (n_pages,), 1/time
            Crawl rates.
        duration : float, time
            How long to follow the schedule.

        Returns
        -------
        expected : ndarray, shape (n_pages,), time
            Expected fresh time of each page, given what happened before.
        fresh : ndarray, shape (n_pages,), time
            Fresh time of each page as simulated.
        n_crawls : int
            Number of crawls.
        """
        expected = FRESH_TIME[schedule](
            self.change_rate, crawl_rate, duration, initial=self.probability()
        )
        time, offsets = schedule(crawl_rate, duration, rng=self.rng)
        wait = self.rng.standard_exponential(time.size)
        start, self.now = self.now, self.now + duration
        fresh, interval, changed = _crawl(
            self.change_rate,
            self._last,
            self._change,
            offsets,
            start + time,
            wait,
            (start, self.now),
        )
        seen = np.isfinite(interval)
        offsets = np.append(0, np.cumsum(seen))[offsets]
        found = History(interval[seen], changed[seen], offsets)
        self.history = join(self.history, found)
        return expected, fresh, time.size

    def probability(self) -> NDArray:
        """Probability that each copy is fresh now, given the crawls so far.

        It is exp(-change_rate t) at time t after the last crawl, and 0 for a
        page that was never crawled.
        """
        elapsed = self.now - np.maximum(self._last, 0.0)
        return (self._last >= 0) * np.exp(-self.change_rate * elapsed)


@njit(cache=True, error_model="numpy")
def _crawl(change_rate, last, change, offsets, time, wait, period):
    """Fresh time of each page in the period; interval and bit of each crawl.

    `last` and `change`, the first change after it, are updated, -inf in both
    for a page that was never crawled. A Poisson process has no memory: from
    each crawl to the next change it takes an exponential time, whatever
    happened before, so that one exponential number a crawl, `wait`, is enough.
    """
    fresh = np.zeros(last.size)
    interval, changed = np.empty(time.size), np.empty(time.size, np.bool_)
    for i in range(last.size):
        begin, end = period
        for j in range(offsets[i], offsets[i + 1]):
            interval[j], changed[j] = time[j] - last[i], change[i] <= time[j]
            fresh[i] += max(min(change[i], time[j]) - begin, 0.0)
            begin = last[i] = time[j]
            change[i] = begin + wait[j] / change_rate[i]
        fresh[i] += max(min(change[i], end) - begin, 0.0)
    return fresh, interval, changed
