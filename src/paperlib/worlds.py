"""Draw a world of pages and signals, crawl it with a policy, measure freshness.

The simulations of section 6 of Busa-Fekete et al. (2025); freshness is their eq. (2).

A `World` is one draw of changes and signals. All policies run in the same world, so
that comparisons are paired. A policy that picks pages is an object with a method
``choose(time, signals, crawl)``, or a plain function of these arguments. It
returns the page of each slot, -1 for none, as an int array. The arguments:

* `time`, shape (n_slots,): times of the slots. All pages are crawled at time 0.
* `signals`: the times at which the crawler receives signals, as `Signals`.
* `crawl`: a function for policies that learn, called once for each slot in order.
  It crawls a page and returns whether the page has changed since its last crawl;
  page -1 leaves the slot unused. The policy still returns all pages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks, freshness, schedules
from .lemma_4 import compiled
from .signals import SignalledPages

# Relative rounding error of a sum of bandwidth over some thousand pieces. A sum this
# close to a whole number counts as whole.
ROUNDING = 1e-12


class Signals(NamedTuple):
    """Arrival times of signals; page i has ``time[offsets[i]:offsets[i + 1]]``."""

    offsets: NDArray
    time: NDArray


@dataclass(frozen=True, eq=False)
class World:
    """One draw of changes and signals.

    Parameters
    ----------
    pages : SignalledPages
        The pages with their true parameters.
    horizon : float, time
        End of the world.
    offsets : int ndarray, shape (n_pages + 1,)
        Page i has the signals ``offsets[i]:offsets[i + 1]``.
    sent, received : ndarray, shape (n_signals,), time
        Times at which signals are sent and arrive, both rising for each page.
    true : ndarray of bool, shape (n_signals,)
        Whether each signal, in the order of `sent`, reports a change.
    silent : SeedSequence
        Seed of the changes without a signal.
    """

    pages: SignalledPages
    horizon: float
    offsets: NDArray
    sent: NDArray
    received: NDArray
    true: NDArray
    silent: Any

    def delayed(self, delay: ArrayLike) -> World:
        """Return the same world with signals that arrive later.

        Figure 8 and appendix C of Busa-Fekete et al. (2025) have Poisson delays of
        mean 6. The paper prints no unit; our figure uses slots.

        Parameters
        ----------
        delay : float or array_like, shape (n_signals,), time
            Delay of each signal, in the order of `sent`.
        """
        received = self.sent + checks.numbers("delay", delay)
        for page in np.split(received, self.offsets[1:-1]):
            page.sort()
        return replace(self, received=received)

    def changes(self, page: int) -> NDArray:
        """Times of all changes of a page, with and without a signal, rising."""
        time, offsets = self._unsignalled
        own = slice(self.offsets[page], self.offsets[page + 1])
        silent = time[offsets[page] : offsets[page + 1]]
        return np.sort(np.append(silent, self.sent[own][self.true[own]]))

    @cached_property
    def _unsignalled(self):
        """Changes without a signal, drawn at first use: most policies need none."""
        rng = np.random.default_rng(self.silent)
        return schedules.poisson(self.pages.alpha, self.horizon, rng=rng)


def draw_world(pages: SignalledPages, horizon: float, *, rng: Any = None) -> World:
    """Draw a world of Poisson pages.

    Signals are sent at Poisson times of rate gamma. Each is true with
    probability precision (section 3 of Busa-Fekete et al. 2025).

    Parameters
    ----------
    pages : SignalledPages
        The pages with their true parameters.
    horizon : float, time
        End of the world.
    rng : None, int or Generator, optional
        Source of random numbers. Changes without a signal have a separate
        stream.

    Returns
    -------
    World
        Signals arrive without delay; see `World.delayed`.

    Examples
    --------
    >>> pages = SignalledPages([0.5, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> world = draw_world(pages, 100.0, rng=1).delayed(0.5)
    >>> bool((world.received == world.sent + 0.5).all())
    True
    """
    checks.instance("pages", pages, SignalledPages)
    horizon = checks.number("horizon", horizon, above=True)
    rng = np.random.default_rng(rng)
    sent, offsets = schedules.poisson(pages.gamma, horizon, rng=rng)
    true = rng.random(sent.size) < np.repeat(pages.precision, np.diff(offsets))
    (silent,) = rng.bit_generator.seed_seq.spawn(1)
    return World(pages, horizon, offsets, sent, sent, true, silent)


def slot_times(
    bandwidth: float | tuple[ArrayLike, ArrayLike], horizon: float
) -> NDArray:
    r"""Times of slots: slot j comes when the integral of the bandwidth is j.

    .. math:: \int_0^{t_j} B(s)\,ds = j

    Parameters
    ----------
    bandwidth : float, or tuple of array_like, 1/time
        A number, or ``(times, rates)`` with rising times: each rate holds from
        its time on. A rate may be 0, and before the first time it is 0.
    horizon : float, time
        Latest time of a slot.

    Examples
    --------
    >>> slot_times(([0.0, 1.0, 3.0], [1.0, 0.0, 2.0]), 4.0).tolist()
    [1.0, 3.5, 4.0]
    """
    if not isinstance(bandwidth, tuple):
        bandwidth = [0.0], [bandwidth]
    times, rates = bandwidth
    times = checks.rising("bandwidth times", times, 1)
    _, rates = checks.broadcast(times=times, bandwidth=rates)
    edges = np.minimum([*times, horizon], checks.number("horizon", horizon, above=True))
    total = np.append(0.0, np.cumsum(rates * np.diff(edges)))
    number = np.arange(1, int(total[-1] * (1 + ROUNDING)) + 1)
    # the piece in which the sum first reaches the number: it may then stay there
    piece = np.searchsorted(total[:-1], number * (1 - ROUNDING)) - 1
    return np.minimum(edges[piece] + (number - total[piece]) / rates[piece], horizon)


@dataclass(frozen=True, eq=False)
class CrawlRun:
    """Crawls of a policy in a world, and the freshness of the copies.

    Parameters
    ----------
    time : ndarray, shape (n_slots,), time
        Times of the slots.
    page : int ndarray, shape (n_slots,)
        The page that was crawled in each slot, -1 for none.
    borders : ndarray, shape (n_windows + 1,), time
        Borders of the windows that count.
    fresh : ndarray, shape (n_windows, n_pages), time
        Expected fresh time of each copy, given slots and signals.
    importance : ndarray, shape (n_pages,)
        Weight of each page.
    """

    time: NDArray
    page: NDArray
    borders: NDArray
    fresh: NDArray
    importance: NDArray

    @property
    def window_freshness(self) -> NDArray:
        """Share of requests served fresh in each window, shape (n_windows,).

        As in figure 9 of Busa-Fekete et al. (2025).
        """
        return freshness.mean(self.fresh, self.importance) / np.diff(self.borders)

    @property
    def freshness(self) -> float:
        """Share of requests served fresh: eq. (2) of Busa-Fekete et al. (2025)."""
        return np.average(self.window_freshness, weights=np.diff(self.borders))


def crawl(
    world: World,
    policy: Any,
    bandwidth: float | tuple[ArrayLike, ArrayLike],
    *,
    borders: ArrayLike | None = None,
) -> CrawlRun:
    r"""Crawl a world with a policy.

    Eqs. (1) and (2) of Busa-Fekete et al. (2025): if n signals were sent in the time
    t since the last crawl, whether or not they have arrived, the copy is fresh with
    probability

    .. math:: e^{-\alpha t} (1 - precision)^n .

    Freshness is this expectation, given slots and signals, so that no request has
    to be drawn.

    Parameters
    ----------
    world : World
        The world to crawl.
    policy : object or callable
        A policy that picks pages, see `paperlib.worlds`. The first call of a
        policy such as `Greedy` compiles it, which takes some seconds, once.
    bandwidth : float or tuple, 1/time
        As in `slot_times`.
    borders : array_like, shape (n_windows + 1,), time, optional
        Borders of the windows that count, rising; by default the whole time.

    Raises
    ------
    ValueError
        An argument is out of range; or the policy does not return one page of the
        world, or -1, for each slot; or it returns other pages than it crawled.

    Examples
    --------
    >>> pages = SignalledPages([0.5, 2.0], 1.0)
    >>> world = draw_world(pages, 50.0, rng=1)
    >>> run = crawl(world, lambda time, *_: np.arange(time.size) % 2, bandwidth=2.0)
    >>> run.freshness.round(3)
    np.float64(0.611)
    """
    checks.instance("world", world, World)
    if borders is None:
        borders = [0.0, world.horizon]
    borders = checks.rising("borders", borders)
    checks.require("borders", borders, "within the horizon", borders <= world.horizon)
    pages = world.pages
    time = slot_times(bandwidth, world.horizon)
    page = _chosen(world, policy, time)
    order = np.argsort(page, kind="stable")
    offsets = np.searchsorted(page[order], np.arange(pages.alpha.size + 1))
    crawls = Signals(offsets, time[order])
    signals = Signals(world.offsets, world.sent)
    fresh = _fresh_time(crawls, signals, pages.alpha, 1 - pages.precision, borders)
    return CrawlRun(time, page, borders, fresh, pages.importance)


def _chosen(world, policy, time):
    """The page of each slot that a policy chooses, checked."""
    n_pages = world.offsets.size - 1
    crawled = []
    last = np.zeros(n_pages)

    def crawl_next(page):
        now = time[len(crawled)]
        crawled.append(page)
        if page < 0:
            return False
        changes = world.changes(page)
        changed = (last[page] < changes) & (changes <= now)
        last[page] = now
        return bool(changed.any())

    choose = checks.function("policy", policy, "choose")
    signals = Signals(world.offsets, world.received)
    page = np.asarray(choose(time, signals, crawl_next))
    checks.shape("page", page, time.shape)
    known = page.dtype.kind == "i" and (page >= -1) & (page < n_pages)
    checks.require("page", page, f"integers from -1 to {n_pages - 1}", known)
    if not np.array_equal(crawled, page[: len(crawled)]):
        raise ValueError("policy must return the pages that it has crawled")
    return page


@compiled
def _fresh_time(crawls, signals, alpha, doubt, borders):
    """Integral of the probability p of freshness for each window and page.

    Between two events at distance x it is p (1 - exp(-alpha x)) / alpha, and p falls
    by the factor exp(-alpha x). A signal lowers p by the factor `doubt`.
    """
    fresh = np.zeros((borders.size - 1, alpha.size))
    for i in range(alpha.size):
        crawl = _own(crawls, i)
        signal = _own(signals, i)
        j = k = 0
        window = -1  # before the first border
        p = 1.0
        now = 0.0
        while window < borders.size - 1:
            border = borders[window + 1]
            end = min(crawl[j], signal[k], border)
            length = end - now
            stale = -math.expm1(-alpha[i] * length)
            if window >= 0:
                if stale > 0.0:
                    length = stale / alpha[i]
                fresh[window, i] += p * length
            p *= 1.0 - stale
            now = end
            if end == signal[k]:
                p *= doubt[i]
                k += 1
            elif end == crawl[j]:
                p = 1.0
                j += 1
            else:
                window += 1
    return fresh


@compiled
def _own(events, i):
    """Times of the events of page i, and then inf."""
    return np.append(events.time[events.offsets[i] : events.offsets[i + 1]], np.inf)
