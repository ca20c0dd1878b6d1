"""Greedy crawling under limits of hosts."""

from dataclasses import dataclass

import numpy as np

from paperlib._kernels import crawl_value
from paperlib._kernels import polite as kernels
from paperlib.hosts import _hosts
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
        _hosts(self.host, self.host_limit, self.pages.change_rate.size)

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, -1 where all hosts have to wait; arguments as in `policies.Greedy.choose`."""
        crawler = _Crawler(
            world,
            time,
            last,
            _hosts(self.host, self.host_limit, self.pages.change_rate.size),
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
        self._change_time, offsets = (
            world.changes
            if look
            else (np.empty(0), np.zeros(member.size + 1, dtype=np.int64))
        )
        self._pages = np.zeros(member.size, kernels.PAGE)
        self._pages["last"], self._pages["host"] = last, member
        self._pages["next_change"], self._pages["stop_change"] = (
            offsets[:-1],
            offsets[1:],
        )
        self._hosts = np.zeros(limit.size, kernels.HOST)
        self._hosts["spacing"] = 1.0 / limit
        self._slots = np.zeros(time.size, kernels.SLOT)
        self._slots["time"] = time
        self._done, self._told, self._again = 0, 0, -1

    @property
    def page(self):
        """The page of each slot, -1 for none."""
        return self._slots["page"].copy()

    def crawl(self, pages, explore):
        """The next slots: by the crawl value of `pages`, or to the page crawled longest ago (all of them, if pages is None)."""
        slots = self._slots[self._done : self._done + explore.size]
        self._done += explore.size
        if slots.size:
            slots["explore"] = explore
            heard = slice(
                self._told,
                int(np.searchsorted(self._signals[1], slots["time"][-1], side="right")),
            )
            self._told = heard.stop
            if pages:
                self._pages["constants"] = crawl_value.page_constants(
                    *(getattr(pages, name) for name in _PARAMETERS), crawl_value.EXACT
                )
                self._pages["importance"] = pages.importance
            self._again = kernels.polite_slots(
                self._pages,
                self._hosts,
                slots,
                tuple(a[heard] for a in self._signals),
                self._change_time,
                self._again,
                pages is not None,
            )

    def seen(self):
        """Page, interval, signals and bit of every crawl so far that had one before."""
        done = self._slots[: self._done]
        done = done[(done["page"] >= 0) & np.isfinite(done["interval"])]
        return tuple(
            done[name] for name in ("page", "interval", "n_signals", "changed")
        )

    def heard(self, now):
        """Rate of signals of each page until now; half a one is added, for none yet is not none ever."""
        page, arrival = self._signals
        return (
            np.bincount(
                page[: np.searchsorted(arrival, now)], minlength=self._pages.size
            )
            + 0.5
        ) / now
