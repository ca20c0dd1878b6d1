"""The copies that a crawler keeps while it follows schedules."""

import warnings
from functools import partial

import numpy as np

from paperlib import estimators, freshness, schedules
from paperlib._kernels import simulate as kernels
from paperlib._kernels import threads_for
from paperlib.processes import History, join

# a round of exploration by interval ends with a crawl of every page
EXPLORE = {"interval": partial(schedules.regular, phase=1.0), "rate": schedules.poisson}
_FRESH_TIME = {
    EXPLORE["interval"]: partial(freshness.interval_time, phase=1.0),
    schedules.poisson: freshness.poisson_time,
    schedules.regular: freshness.interval_time,
}


class Copies:
    """The copies of Poisson pages that a crawler keeps, and the bits it has seen.

    Parameters
    ----------
    change_rate : array, shape (n_pages,), 1/time
    filled : bool
        Every page is crawled at time 0; otherwise the cache is empty then.
    rng : seed or numpy Generator

    Attributes
    ----------
    now : float, time
    history : ragged History, or None before the first bit
        A page's first crawl has nothing to compare with and yields none.
    """

    def __init__(self, change_rate, *, filled, rng=None):
        self.change_rate, self.rng = change_rate, np.random.default_rng(rng)
        self.now, self.history = 0.0, None
        self._rates, self._counts = [], []
        self._last = np.full(change_rate.size, 0.0 if filled else -np.inf)
        with np.errstate(divide="ignore"):
            self._change_at = (
                self.rng.standard_exponential(change_rate.size) / change_rate
                if filled
                else self._last.copy()
            )

    def follow(self, schedule, crawl_rate, duration):
        """Crawl by a schedule for some time.

        Returns each page's fresh time within it, in expectation given what happened before (NaN for a schedule without a formula) and
        as it was, and the number of crawls.
        """
        fresh_time = _FRESH_TIME.get(schedule)
        expected = (
            fresh_time(
                self.change_rate, crawl_rate, duration, initial=self.probability()
            )
            if fresh_time
            else np.nan * crawl_rate
        )
        time, offsets = schedule(crawl_rate, duration, rng=self.rng)
        start, self.now = self.now, self.now + duration
        interval, changed = np.empty(time.size), np.empty(time.size, dtype=bool)
        fresh = np.empty(self.change_rate.size)
        with threads_for(time.size):
            kernels.crawl_pages(
                start + time, offsets, start, self.now, self.rng.standard_exponential(time.size), self.change_rate,
                self._last, self._change_at, interval, changed, fresh,
            )  # fmt: skip
        seen = np.isfinite(interval)
        if seen.any():
            counts = np.concatenate([[0], np.cumsum(seen)])
            bits = History(interval[seen], changed[seen], counts[offsets])
            self.history = bits if self.history is None else join(self.history, bits)
            self._rates.append(crawl_rate)
            self._counts.append(bits.n_crawls)
        return expected, fresh, time.size

    def probability(self):
        """Probability that each copy is fresh now, given the crawls so far."""
        crawled = self._last >= 0
        return np.where(
            crawled,
            np.exp(-self.change_rate * np.where(crawled, self.now - self._last, 0.0)),
            0.0,
        )

    def estimate(self, estimator):
        """Change rates from all bits so far, NaN for a page without: by a function of a History, or an online estimator."""
        if self.history is None:
            return np.full(self.change_rate.size, np.nan)
        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
            if callable(estimator):
                return estimator(self.history)
            rate = np.repeat(
                np.stack(self._rates, axis=1), np.stack(self._counts, axis=1).ravel()
            )
            after = estimators.path(estimator, self.history, crawl_rate=rate)
            return np.where(
                self.history.n_crawls > 0, after[self.history.offsets[1:] - 1], np.nan
            )
