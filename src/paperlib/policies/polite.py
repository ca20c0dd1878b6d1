"""Greedy crawling under limits of hosts."""

from dataclasses import dataclass

import numpy as np

from paperlib._kernels import crawl_value
from paperlib._kernels.polite import _polite_slots
from paperlib.hosts import members
from paperlib.signals import SignalledPages

_PARAMETERS = "change_rate", "importance", "recall", "false_rate"


@dataclass(frozen=True, eq=False)
class PoliteGreedy:
    """GREEDY-NCIS of [www25] among the pages whose hosts can be crawled now.

    Every host has a bucket of at most two tokens that come at its limit; a crawl takes one, and while there is one its pages can be
    crawled: in any time w a host is crawled at most limit w + 2 times. No bandwidth is allocated to hosts: one whose pages are worth more
    than others' is crawled as often as its limit allows, and the others share the slots left over, which comes near the optimum,
    `polite_thresholds`.

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    host : array of integers or strings, shape (n_pages,), optional
        The host of each page; by default all have one.
    host_limit : float, or mapping from host to float, 1/time, positive
        As in `allocation.polite`; ``inf``, the default, is none.
    """

    pages: SignalledPages
    host: np.ndarray | None = None
    host_limit: float = np.inf

    def __post_init__(self):
        members(self.host, self.host_limit, self.pages.change_rate.size)

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, -1 where all hosts have to wait; arguments as in `policies.Greedy.choose`."""
        crawler = _Crawler(
            world,
            time,
            last,
            members(self.host, self.host_limit, self.pages.change_rate.size),
        )
        crawler.crawl(self.pages, np.zeros(time.size, dtype=bool))
        return crawler.page


class _Crawler:
    """A world's slots, given to pages some at a time."""

    def __init__(self, world, time, last, hosts, *, listen=True, look=False):
        member, limit = hosts
        if member.size != world.start.size:
            raise ValueError(
                f"world must hold the pages of the policy, {member.size}, got {world.start.size}"
            )
        if world.n_moving:
            raise ValueError(
                f"world must hold all pages all the time, got {world.n_moving} that come or go"
            )
        self._signals = (
            world.in_order if listen else (world.signal_page[:0], world.arrival[:0])
        )
        change_time, offsets = (
            world.changes
            if look
            else (np.empty(0), np.zeros(member.size + 1, dtype=np.int64))
        )
        self._time, self._done, self._told = time, 0, 0
        self.page = np.empty(time.size, dtype=np.int64)
        self._bits = (
            np.empty(time.size),
            np.empty(time.size, dtype=np.int64),
            np.empty(time.size, dtype=bool),
        )
        self._fixed = change_time, offsets[1:], member, 1.0 / limit
        self._state = (
            last,
            np.zeros(member.size, dtype=np.int64),
            offsets[:-1].copy(),
            np.zeros(limit.size),
            np.array([-1]),
        )

    def crawl(self, pages, explore):
        """The next slots: by the crawl value of `pages`, or to the page crawled longest ago (all of them, if pages is None)."""
        now = slice(self._done, self._done + explore.size)
        self._done += explore.size
        time = self._time[now]
        if time.size:
            heard = slice(
                self._told,
                int(np.searchsorted(self._signals[1], time[-1], side="right")),
            )
            self._told = heard.stop
            rows = np.empty((0, crawl_value.N_CONSTANTS)), np.empty(0), np.empty(0)
            if pages:
                rows = (
                    crawl_value.rows(
                        *(getattr(pages, name) for name in _PARAMETERS),
                        crawl_value.EXACT,
                    ),
                    pages.alpha,
                    pages.importance.copy(),
                )
            signals = (a[heard] for a in self._signals)
            _polite_slots(
                *rows,
                time,
                explore,
                *signals,
                *self._fixed,
                *self._state,
                self.page[now],
                *(a[now] for a in self._bits),
            )

    def seen(self):
        """Page, interval, signals and bit of every crawl so far that had one before."""
        good = np.flatnonzero(
            (self.page[: self._done] >= 0) & np.isfinite(self._bits[0][: self._done])
        )
        return self.page[good], *(a[good] for a in self._bits)

    def heard(self, now):
        """Rate of signals of each page until now; half a one is added, for none yet is not none ever."""
        page, arrival = self._signals
        return (
            np.bincount(
                page[: np.searchsorted(arrival, now)], minlength=self._state[0].size
            )
            + 0.5
        ) / now
