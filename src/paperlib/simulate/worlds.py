"""Draw a world."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paperlib import checks, schedules
from paperlib._kernels import simulate as kernels
from paperlib.signals import SignalledPages


@dataclass(frozen=True, eq=False)
class World:
    """One draw of nature, in which every policy is run, so that comparisons are paired.

    Parameters
    ----------
    pages : SignalledPages, as they truly are
    horizon : float, time
    signal_time, arrival : arrays, shape (n_signals,), time
        When each signal was sent, page after page and rising for each of them, and when it gets to the crawler.
    signal_page : int array, shape (n_signals,), rising
    true : bool array, shape (n_signals,)
        Whether the signal tells of a change.
    start, stop : arrays, shape (n_pages,), time
        When each page comes and goes; inf for one that stays.
    silent : seed
        Of the changes without a signal.
    """

    pages: SignalledPages
    horizon: float
    signal_time: np.ndarray
    signal_page: np.ndarray
    arrival: np.ndarray
    true: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    silent: int | np.random.SeedSequence = 0

    @cached_property
    def offsets(self):
        """The signals of page i are those from offsets[i] to offsets[i + 1], int array of shape (n_pages + 1,)."""
        return np.searchsorted(self.signal_page, np.arange(self.start.size + 1))

    @cached_property
    def heard(self):
        """When the crawler gets them, rising for each page; inf for what comes from a page, or to one, that is not there."""
        time, i = self.arrival, self.signal_page
        if self.n_moving:
            time = np.where(
                (self.start[i] <= self.signal_time) & (time < self.stop[i]),
                time,
                np.inf,
            )
        if time is not self.signal_time:
            time = time.copy()
            kernels.sort_pages(time, self.offsets)
        return time

    @property
    def n_moving(self):
        """How many pages come or go."""
        return np.count_nonzero((self.start > 0) | np.isfinite(self.stop))

    def delayed(self, signal_delay, *, rng=None):
        """The same world, but for signals that come later than in this one.

        signal_delay : float, or function of a Generator and a number of signals; non-negative, time. rng : seed or numpy Generator
        """
        n = self.signal_time.size
        delay = (
            signal_delay(np.random.default_rng(rng), n)
            if callable(signal_delay)
            else np.full(n, signal_delay)
        )
        delay = checks.non_negative("signal_delay", delay)
        if delay.shape != (n,):
            raise ValueError(
                f"signal_delay must give one delay for each of {n} signals, got shape {delay.shape}"
            )
        return replace(self, arrival=self.arrival + delay)

    @property
    def in_order(self):
        """(page, time) of all signals in the order of their arrival."""
        order = np.argsort(self.arrival, kind="stable")
        return self.signal_page[order], self.arrival[order]

    @cached_property
    def changes(self):
        """When pages change, with a signal and without: (time, offsets), those of page i being time[offsets[i]:offsets[i + 1]], rising.

        Drawn when first asked for, for most policies need none, and always the same.
        """
        time, offsets = schedules.poisson(
            self.pages.alpha, self.horizon, rng=np.random.default_rng(self.silent)
        )
        page = np.concatenate(
            [
                np.repeat(np.arange(offsets.size - 1), np.diff(offsets)),
                self.signal_page[self.true],
            ]
        )
        time = np.concatenate([time, self.signal_time[self.true]])
        return time[np.lexsort((time, page))], np.append(
            0, np.cumsum(np.bincount(page, minlength=offsets.size - 1))
        )


def draw_world(pages, horizon, *, signal_delay=None, arrivals=None, rng=None):
    """A `World`: signals at Poisson times of rate gamma, each of them true with probability precision.

    Parameters
    ----------
    pages : SignalledPages
    horizon : float, time
    signal_delay : float, or function of a Generator and a number of signals, optional
        Time from a signal to its arrival, non-negative.
    arrivals : (start, stop), optional
        When pages come and go, time; numbers or arrays of shape (n_pages,), inf for one that stays. By default all are there from 0 on.
    rng : seed or numpy Generator
    """
    horizon = checks.scalar(checks.positive, "horizon", horizon)
    rng = np.random.default_rng(rng)
    n_pages = pages.change_rate.size
    start, stop = arrivals or (0.0, np.inf)
    start, stop = (
        checks.non_negative("arrivals", np.minimum(edge, np.finfo(float).max))
        for edge in (start, stop)
    )  # inf is well
    start, stop = (
        edge.copy()
        for edge in checks.broadcast(start=start, stop=stop, pages=np.empty(n_pages))[
            :2
        ]
    )
    if start.ndim > 1:
        raise ValueError(
            f"arrivals must be numbers or of shape {(n_pages,)}, got {start.shape}"
        )
    if not (start <= stop).all():
        first = np.flatnonzero(start > stop)[0]
        raise ValueError(
            f"arrivals must not end before they start, got {start[first]} to {stop[first]} at index ({first},)"
        )
    time, offsets = schedules.poisson(pages.gamma, horizon, rng=rng)
    n = np.diff(offsets)
    true = rng.random(time.size) < np.repeat(np.nan_to_num(pages.precision), n)
    (silent,) = rng.bit_generator.seed_seq.spawn(1)
    page = np.repeat(np.arange(n_pages, dtype=np.int32), n)
    world = World(
        pages,
        horizon,
        time,
        page,
        time,
        true,
        start,
        np.where(stop < horizon, stop, np.inf),
        silent,
    )
    return world if signal_delay is None else world.delayed(signal_delay, rng=rng)


def replay(change_times, horizon, *, importance=1.0):
    """A `World` of pages whose changes are known, such as real ones; no signal tells a policy of them.

    Parameters
    ----------
    change_times : list of arrays, time, one for each page
        What lies outside (0, horizon] is left out.
    horizon : float, time
    importance : float, or array of pages
    """
    horizon = checks.scalar(checks.positive, "horizon", horizon)
    times = [checks.finite("change_times", time).ravel() for time in change_times]
    page = np.repeat(np.arange(len(times)), [time.size for time in times])
    time = np.concatenate(times) if times else np.empty(0)
    order = np.lexsort((time, page))
    order = order[(time[order] > 0) & (time[order] <= horizon)]
    time, page = time[order], page[order].astype(np.int32)
    # changes are signals, all of them true, that never arrive
    pages = SignalledPages(
        np.bincount(page, minlength=len(times)) / horizon, importance, 1.0, 0.0
    )
    n_pages = pages.change_rate.size
    never = np.full(time.size, np.inf)
    return World(
        pages,
        horizon,
        time,
        page,
        never,
        np.ones(time.size, dtype=bool),
        np.zeros(n_pages),
        np.full(n_pages, np.inf),
    )
