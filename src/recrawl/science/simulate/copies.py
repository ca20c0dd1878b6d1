"""The copies that a crawler keeps while it follows schedules."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import simulate as kernels
from recrawl.kernels import threads_for
from recrawl.science import estimators, freshness, schedules
from recrawl.science.processes import History, join
from recrawl.types import Array, Function, Seed

__all__ = ["EXPLORE", "Copies", "checked_pages"]

# How to explore: at equal intervals, where a round ends with a crawl of every
# page, or at Poisson times.
EXPLORE = {"interval": partial(schedules.regular, phase=1.0), "rate": schedules.poisson}
# the expected fresh time of a page under each schedule, in closed form
_FRESH_TIME = {
    EXPLORE["interval"]: partial(freshness.interval_time, phase=1.0),
    schedules.poisson: freshness.poisson_time,
    schedules.regular: freshness.interval_time,
}


def checked_pages(
    change_rate: ArrayLike, importance: ArrayLike, bandwidth: float
) -> tuple[Array, Array, float]:
    """Validate the pages and the bandwidth of a simulation.

    Parameters
    ----------
    change_rate, importance : array_like, shape (n_pages,), non-negative
        Change rates, 1/time, and weights; they broadcast, numbers too.
    bandwidth : float, 1/time, positive
        Crawls per unit of time over all pages.

    Returns
    -------
    change_rate, importance : ndarray, shape (n_pages,)
        The same as floats.
    bandwidth : float
        The same as a float.

    Raises
    ------
    ValueError
        Arguments out of range, of other shapes, or without any page.

    Examples
    --------
    >>> change_rate, importance, bandwidth = checked_pages([1, 2], 1, 4)
    >>> importance.tolist(), bandwidth
    ([1.0, 1.0], 4.0)
    """
    change_rate, importance = checks.broadcast(
        change_rate=np.atleast_1d(checks.non_negative("change_rate", change_rate)),
        importance=checks.non_negative("importance", importance),
    )
    if change_rate.ndim != 1 or not change_rate.size:
        raise ValueError(
            "change_rate and importance must be flat arrays of at least one page, "
            f"got shape {change_rate.shape}"
        )
    bandwidth = checks.positive_number("bandwidth", bandwidth)
    return change_rate, importance, bandwidth


class Copies:
    """Copies of Poisson pages that a crawler keeps, and what its crawls found.

    Parameters
    ----------
    change_rate : ndarray, shape (n_pages,), 1/time
        True change rates.
    filled : bool
        Whether every page is crawled at time 0; otherwise the cache is empty.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers, passed to `numpy.random.default_rng`.

    Attributes
    ----------
    now : float, time
        How far the simulation has come.

    Examples
    --------
    >>> import numpy as np
    >>> copies = Copies(np.array([0.5, 2.0]), filled=True, rng=1)
    >>> schedule = EXPLORE["interval"]
    >>> _, fresh, n_crawls = copies.follow(schedule, np.ones(2), 10.0)
    >>> n_crawls, copies.history.n_crawls.tolist()
    (20, [10, 10])
    """

    def __init__(self, change_rate: Array, *, filled: bool, rng: Seed = None) -> None:
        change_rate = checks.non_negative("change_rate", change_rate)
        self.change_rate, self.rng = change_rate, np.random.default_rng(rng)
        self.now = 0.0
        # of each schedule followed: crawl rates, and crawls that count
        self._rates, self._counts = [], []
        self._found = []  # histories of the same pages, one after the other
        self._pages = np.empty(change_rate.size, kernels.COPY)
        self._pages["change_rate"] = change_rate
        self._pages["last"] = self._pages["change_at"] = 0.0 if filled else -np.inf
        if filled:
            wait = self.rng.standard_exponential(change_rate.size)
            with np.errstate(divide="ignore"):
                self._pages["change_at"] = wait / change_rate

    @property
    def history(self) -> History | None:
        """What the crawls found, ragged; None before the first observation.

        The first crawl of a page has nothing to compare with and yields none.
        """
        while len(self._found) > 1:
            self._found[:2] = [join(*self._found[:2])]
        return self._found[0] if self._found else None

    def follow(
        self, schedule: Function, crawl_rate: Array, duration: float
    ) -> tuple[Array, Array, int]:
        """Crawl by a schedule for some time.

        Parameters
        ----------
        schedule : callable
            Function of crawl rates, a duration and ``rng=``, such as
            `schedules.poisson`.
        crawl_rate : ndarray, shape (n_pages,), 1/time
            Crawl rates.
        duration : float, time
            How long to follow the schedule.

        Returns
        -------
        expected : ndarray, shape (n_pages,), time
            Expected fresh time of each page, given what happened before; NaN
            for a schedule without a closed form.
        fresh : ndarray, shape (n_pages,), time
            Fresh time of each page as simulated.
        n_crawls : int
            Number of crawls.
        """
        expected = self._expected_time(schedule, crawl_rate, duration)
        time, offsets = schedule(crawl_rate, duration, rng=self.rng)
        exponential = self.rng.standard_exponential(time.size)
        interval, changed = np.empty(time.size), np.empty(time.size, dtype=bool)
        start, self.now = self.now, self.now + duration
        with threads_for(time.size):
            kernels.crawl_pages(
                self._pages,
                offsets,
                start,
                self.now,
                start + time,
                exponential,
                interval,
                changed,
            )
        self._remember(interval, changed, offsets, crawl_rate)
        return expected, self._pages["fresh"].copy(), time.size

    def _expected_time(self, schedule, crawl_rate, duration):
        """Expected fresh time of each page under a schedule."""
        if schedule not in _FRESH_TIME:
            return np.nan * crawl_rate
        return _FRESH_TIME[schedule](
            self.change_rate, crawl_rate, duration, initial=self.probability()
        )

    def _remember(self, interval, changed, offsets, crawl_rate):
        """Keep the crawls that had one before for the history."""
        seen = np.isfinite(interval)
        if not seen.any():
            return
        if not seen.all():
            counts = np.append(0, np.cumsum(seen))
            interval, changed, offsets = interval[seen], changed[seen], counts[offsets]
        self._found.append(History(interval, changed, offsets))
        self._rates.append(crawl_rate)
        self._counts.append(np.diff(offsets))

    def probability(self) -> Array:
        r"""Probability that each copy is fresh now, given the crawls so far.

        .. math:: e^{-\Delta t} \quad\text{at time t after the last crawl}

        Returns
        -------
        ndarray, shape (n_pages,)
            0 for a page that was never crawled.
        """
        last = self._pages["last"]
        elapsed = np.where(last >= 0, self.now - last, 0.0)
        return np.where(last >= 0, np.exp(-self.change_rate * elapsed), 0.0)

    def estimate(self, estimator: Any) -> Array:
        """Estimate the change rates from all crawls so far.

        Parameters
        ----------
        estimator : callable or online estimator
            Function of a History, such as `estimators.mle`, or an object such
            as ``estimators.SA(1.0)``, which gets the crawl rate of every
            crawl.

        Returns
        -------
        ndarray, shape (n_pages,), 1/time
            Estimates; NaN for a page without an observation.
        """
        if self.history is None:
            return np.full(self.change_rate.size, np.nan)
        degenerate = estimators.DegenerateHistoryWarning
        with (
            warnings.catch_warnings(action="ignore", category=degenerate),
            np.errstate(divide="ignore", invalid="ignore"),
        ):
            if callable(estimator):
                return estimator(self.history)
            counts = np.stack(self._counts, axis=1).ravel()
            rate = np.repeat(np.stack(self._rates, axis=1), counts)
            after = estimators.path(estimator, self.history, crawl_rate=rate)
            return np.where(
                self.history.n_crawls > 0, after[self.history.offsets[1:] - 1], np.nan
            )
