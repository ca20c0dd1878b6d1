"""Draw a world: changes, signals with their delays, pages that come and go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperlib import schedules
from paperlib.signals import SignalledPages
from recrawl import checks
from recrawl.kernels.changes import Changes
from recrawl.science.processes import History
from recrawl.types import Array, Function, Ints, Seed

__all__ = ["World", "draw_world", "replay"]


@dataclass(frozen=True, eq=False)
class World:
    """One draw of nature, in which every policy is run.

    Because all policies meet the same world, comparisons are paired.

    Parameters
    ----------
    pages : SignalledPages
        The pages with their true parameters.
    horizon : float, time
        End of the world.
    signal_time : ndarray, shape (n_signals,), time
        When each signal was sent, page after page and rising for each page.
    signal_page : ndarray of int, shape (n_signals,), rising
        The page of each signal.
    arrival : ndarray, shape (n_signals,), time
        When each signal arrives at the crawler.
    true : ndarray of bool, shape (n_signals,)
        Whether the signal reports a change.
    start, stop : ndarray, shape (n_pages,), time
        When each page comes and goes; inf for a page that stays.
    silent : int or SeedSequence, default 0
        Seed of the changes without a signal.
    false_change : float, in [0, 1], default 0.0
        Probability that a crawl reports a change although there was none, see
        `with_false_changes`.
    false_seed : int or SeedSequence, default 0
        Seed of the changes that are reported falsely.

    Examples
    --------
    >>> pages = SignalledPages([0.5, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> world = draw_world(pages, 10.0, rng=1)
    >>> bool((world.received == world.signal_time).all())
    True
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
    false_change: float = 0.0
    false_seed: int | np.random.SeedSequence = 0

    @cached_property
    def offsets(self) -> Ints:
        """Signals of page i are those from offsets[i] to offsets[i + 1]."""
        return np.searchsorted(self.signal_page, np.arange(self.start.size + 1))

    @cached_property
    def received(self) -> Array:
        """When the crawler receives the signals, page after page, time.

        Rising for each page; inf for a signal that is sent before its page
        comes, or that arrives after the page has gone.
        """
        time, page = self.arrival, self.signal_page
        if self.n_moving:
            there = (self.start[page] <= self.signal_time) & (time < self.stop[page])
            time = np.where(there, time, np.inf)
        if time is not self.signal_time:
            time = time.copy()
            for own in np.split(time, self.offsets[1:-1]):
                own.sort()
        return time

    @property
    def n_moving(self) -> int:
        """How many pages come or go."""
        return np.count_nonzero((self.start > 0) | np.isfinite(self.stop))

    def delayed(self, signal_delay: float | Function, *, rng: Seed = None) -> World:
        """Delay the signals further.

        Parameters
        ----------
        signal_delay : float or callable, time
            One delay for all signals, or a function of a Generator and a
            number of signals that returns the delay of each; non-negative.
        rng : None, int, SeedSequence or Generator, optional
            Source of random numbers for the function.

        Returns
        -------
        World
            The same world with later arrivals of signals.

        Raises
        ------
        ValueError
            Delays that are negative, not finite, or of another number.
        """
        n_signals = self.signal_time.size
        if callable(signal_delay):
            signal_delay = signal_delay(np.random.default_rng(rng), n_signals)
        else:
            signal_delay = np.full(n_signals, signal_delay)
        delay = checks.non_negative("signal_delay", signal_delay)
        if delay.shape != (n_signals,):
            raise ValueError(
                "signal_delay must give one delay for each of "
                f"{n_signals} signals, got shape {delay.shape}"
            )
        return replace(self, arrival=self.arrival + delay)

    def with_false_changes(self, probability: float, *, rng: Seed = None) -> World:
        """Let crawls report changes that did not happen.

        Such are new advertisements or dates on a page whose content is the
        same. They do not make a copy stale.

        Parameters
        ----------
        probability : float, in [0, 1]
            Of such a report at a crawl, whether the page changed or not.
        rng : None, int, SeedSequence or Generator, optional
            Source of the random numbers: one for each slot, so that every
            policy meets the same ones.

        Returns
        -------
        World
            The same world with these reports.

        Raises
        ------
        ValueError
            A probability out of range.
        """
        probability = checks.scalar(checks.share, "probability", probability)
        (seed,) = np.random.default_rng(rng).bit_generator.seed_seq.spawn(1)
        return replace(self, false_change=probability, false_seed=seed)

    def unseen(self, n_slots: int) -> Any:
        """Changes that no crawl has seen, for the kernels that crawl.

        Parameters
        ----------
        n_slots : int
            Number of slots.

        Returns
        -------
        Changes
            The changes of each page, and the slots in which a change is reported
            falsely.
        """
        time, offsets = self.changes
        false = np.empty(0, dtype=bool)
        if self.false_change:
            draws = np.random.default_rng(self.false_seed).random(n_slots)
            false = draws < self.false_change
        return Changes(time, offsets[:-1].copy(), offsets[1:], false)

    def observe(self, time: Array, page: Ints, last: Array | None = None) -> History:
        """History of what given crawls find.

        Parameters
        ----------
        time : ndarray, shape (n_slots,), time
            The first n_slots slots of the world, none left out.
        page : ndarray of int, shape (n_slots,)
            The page that is crawled in each slot, -1 for none.
        last : ndarray, shape (n_pages,), time, optional
            Crawls before the first slot, -inf for none, the default.

        Returns
        -------
        History
            Intervals and changes of every page, ragged. The first crawl of a
            page has nothing to compare with and gives no interval.
        """
        changes = self.unseen(time.size)
        last = np.full(changes.stop.size, -np.inf) if last is None else last
        before, slot = np.flatnonzero(last > -np.inf), np.flatnonzero(page >= 0)
        time = np.append(last[before], time[slot])
        page = np.append(before, page[slot])
        # short integers are sorted by radix: in a tenth of the time
        short = np.min_scalar_type(changes.stop.size)
        order = np.argsort(page.astype(short), kind="stable")
        page, time = page[order], time[order]
        # One search for all pages: their times laid end to end.
        ends = 2 * self.horizon * np.arange(changes.stop.size)
        laid = np.repeat(ends, changes.stop - changes.next) + changes.time
        seen = np.searchsorted(laid, ends[page] + time, side="right")
        again = page[1:] == page[:-1]
        changed = (np.diff(seen) > 0)[again]
        if changes.false.size:
            false = np.append(np.zeros(before.size, bool), changes.false[slot])
            changed |= false[order][1:][again]
        return History(
            np.diff(time)[again],
            changed,
            np.searchsorted(page[1:][again], np.arange(changes.stop.size + 1)),
        )

    @property
    def in_order(self) -> tuple[Ints, Array]:
        """Page and time of all signals in the order of their arrival."""
        order = np.argsort(self.arrival, kind="stable")
        return self.signal_page[order], self.arrival[order]

    @cached_property
    def changes(self) -> tuple[Array, Ints]:
        """When pages change, with a signal and without: (time, offsets).

        The changes of page i are time[offsets[i] : offsets[i + 1]], rising.
        They are drawn when first asked for, because most policies need none,
        and are always the same.
        """
        time, offsets = schedules.poisson(
            self.pages.alpha, self.horizon, rng=np.random.default_rng(self.silent)
        )
        pages = np.arange(offsets.size)
        silent = np.repeat(pages[:-1], np.diff(offsets))
        page = np.append(silent, self.signal_page[self.true])
        time = np.append(time, self.signal_time[self.true])
        order = np.lexsort((time, page))
        return time[order], np.searchsorted(page[order], pages)


def draw_world(
    pages: SignalledPages,
    horizon: float,
    *,
    signal_delay: float | Function | None = None,
    arrivals: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    rng: Seed = None,
) -> World:
    """Draw a `World` of Poisson pages.

    Signals are sent at Poisson times of rate gamma, each of them true with
    probability precision; section 2 of [www25]_.

    Parameters
    ----------
    pages : SignalledPages
        The pages with their true parameters.
    horizon : float, time
        End of the world.
    signal_delay : float or callable, time, optional
        Time from a signal to its arrival, as in `World.delayed`; by default
        none.
    arrivals : tuple of float or array_like, shape (n_pages,), time, optional
        ``(start, stop)``: when pages come and go, inf for a page that stays.
        By default all pages are there from 0 on.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers. Changes without a signal are drawn from a
        stream of their own.

    Returns
    -------
    World
        The draw.

    Raises
    ------
    ValueError
        Arguments out of range or of other shapes; a page that goes before it
        comes.

    Examples
    --------
    >>> pages = SignalledPages([0.5, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> world = draw_world(pages, 100.0, signal_delay=0.5, rng=1)
    >>> bool((world.arrival == world.signal_time + 0.5).all())
    True
    """
    horizon = checks.positive_number("horizon", horizon)
    rng = np.random.default_rng(rng)
    n_pages = pages.change_rate.size
    start, stop = _presence((0.0, np.inf) if arrivals is None else arrivals, n_pages)
    time, offsets = schedules.poisson(pages.gamma, horizon, rng=rng)
    page = np.repeat(np.arange(n_pages, dtype=np.int32), np.diff(offsets))
    true = rng.random(time.size) < np.nan_to_num(pages.precision)[page]
    (silent,) = rng.bit_generator.seed_seq.spawn(1)
    stop = np.where(stop < horizon, stop, np.inf)
    world = World(pages, horizon, time, page, time, true, start, stop, silent)
    return world if signal_delay is None else world.delayed(signal_delay, rng=rng)


def _presence(arrivals, n_pages):
    """When each page comes and goes; the largest float stands for inf."""
    try:
        start, stop = arrivals
    except (TypeError, ValueError):
        raise ValueError(
            f"arrivals must be a pair, start and stop, got {arrivals!r}"
        ) from None
    start, stop = (
        checks.non_negative("arrivals", np.minimum(edge, np.finfo(float).max))
        for edge in (start, stop)
    )
    start, stop, _ = checks.broadcast(start=start, stop=stop, pages=np.empty(n_pages))
    if start.ndim > 1:
        raise ValueError(
            f"arrivals must be numbers or of shape {(n_pages,)}, got {start.shape}"
        )
    if not (start <= stop).all():
        first = np.argmax(start > stop)
        raise ValueError(
            "arrivals must not end before they start, "
            f"got {start[first]} to {stop[first]} at index ({first},)"
        )
    return start.copy(), stop


def replay(
    change_times: ArrayLike,
    horizon: float,
    *,
    importance: ArrayLike = 1.0,
    change_rate: ArrayLike | None = None,
) -> World:
    """Make a `World` of pages whose changes are known, such as real ones.

    No signal reports the changes to a policy.

    Parameters
    ----------
    change_times : sequence of array_like, time
        Change times of each page; times outside (0, horizon] are left out.
    horizon : float, time
        End of the world.
    importance : float or array_like, shape (n_pages,), default 1.0
        Weight of each page.
    change_rate : array_like, shape (n_pages,), 1/time, optional
        Change rates that policies may know; by default the number of changes of
        each page, divided by the horizon.

    Returns
    -------
    World
        The pages.

    Raises
    ------
    ValueError
        A horizon that is not positive, times that are not finite, a negative
        importance.

    Examples
    --------
    >>> world = replay([[1.0, 3.0], [2.5]], 4.0)
    >>> world.pages.change_rate.tolist(), world.changes[0].tolist()
    ([0.5, 0.25], [1.0, 3.0, 2.5])
    """
    horizon = checks.positive_number("horizon", horizon)
    times = [checks.finite("change_times", time).ravel() for time in change_times]
    n_pages = len(times)
    page = np.repeat(np.arange(n_pages, dtype=np.int32), [t.size for t in times])
    time = np.concatenate(times) if times else np.empty(0)
    inside = (time > 0) & (time <= horizon)
    time, page = time[inside], page[inside]
    order = np.lexsort((time, page))
    time, page = time[order], page[order]
    # Every change is a true signal, so that fresh time is exact; it never
    # arrives.
    if change_rate is None:
        change_rate = np.bincount(page, minlength=n_pages) / horizon
    pages = SignalledPages(change_rate, importance, 1.0, 0.0)
    never, true = np.full(time.size, np.inf), np.ones(time.size, dtype=bool)
    start, stop = np.zeros(n_pages), np.full(n_pages, np.inf)
    return World(pages, horizon, time, page, never, true, start, stop)
