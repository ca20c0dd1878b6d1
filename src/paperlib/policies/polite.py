"""Greedy crawling under limits of hosts."""

from dataclasses import dataclass

import numpy as np

from paperlib._kernels import crawl_value
from paperlib._kernels.polite import _polite_slots
from paperlib.hosts import members
from paperlib.signals import SignalledPages

__all__ = ["PoliteGreedy"]

_PARAMETERS = "change_rate", "importance", "recall", "false_rate"


@dataclass(frozen=True, eq=False)
class PoliteGreedy:
    """GREEDY-NCIS of [www25]_ among the pages whose hosts can be crawled now.

    Every host has a bucket of at most two tokens that come at its limit. A
    crawl takes one token, and while there is a token the pages of the host can
    be crawled: in any time w a host is crawled at most limit w + 2 times. No
    bandwidth is allocated to hosts. A host whose pages have larger crawl
    values than others is crawled as often as its limit allows, and the others
    share the remaining slots, which comes near the optimum,
    `polite_thresholds`.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be.
    host : array_like, shape (n_pages,), optional
        The host of each page, integers or strings; by default all pages have
        one host.
    host_limit : float or mapping, 1/time, positive, default inf
        Crawls of a host per unit of time, or a mapping from host to limit, as
        in `allocation.polite`; ``inf`` is no limit.

    Raises
    ------
    ValueError
        Hosts or limits that do not fit the pages; a world with other pages, or
        with pages that come and go.

    Examples
    --------
    >>> from paperlib import simulate
    >>> pages = SignalledPages([0.5, 1.0], 1.0, recall=0.5, false_rate=0.1)
    >>> world = simulate.draw_world(pages, 40.0, rng=1)
    >>> policy = PoliteGreedy(pages, host=["a", "b"], host_limit={"a": 0.25})
    >>> simulate.crawl(world, policy, bandwidth=1.0).n_crawls.tolist()
    [11, 29]
    """

    pages: SignalledPages
    host: np.ndarray | None = None
    host_limit: float = np.inf

    def __post_init__(self):
        members(self.host, self.host_limit, self.pages.change_rate.size)

    def choose(self, world, time, last):
        """Page of each slot.

        Parameters
        ----------
        world : World
            Signals; all pages are there all the time.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none; it is brought up to date.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where all hosts have to wait.
        """
        hosts = members(self.host, self.host_limit, self.pages.change_rate.size)
        crawler = _Crawler(world, time, last, hosts)
        crawler.crawl(self.pages, np.zeros(time.size, dtype=bool))
        return crawler.page


class _Crawler:
    """Give the slots of a world to pages, some slots at a time.

    With `use_signals`, signals count; with `look`, it is recorded what the
    crawls find. `last` is brought up to date.
    """

    def __init__(self, world, time, last, hosts, *, use_signals=True, look=False):
        member, limit = hosts
        if member.size != world.start.size:
            raise ValueError(
                f"world must hold the pages of the policy, {member.size}, "
                f"got {world.start.size}"
            )
        if world.n_moving:
            raise ValueError(
                "world must hold all pages all the time, "
                f"got {world.n_moving} that come or go"
            )
        none = world.signal_page[:0], world.arrival[:0]
        self._signals = world.in_order if use_signals else none
        change_time, offsets = (
            world.changes
            if look
            else (np.empty(0), np.zeros(member.size + 1, dtype=np.int64))
        )
        self._time, self._done, self._received = time, 0, 0
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
        """Give the next slots by the crawl value of `pages`.

        Where `explore` is true, and in all slots if `pages` is None, the page
        crawled longest ago gets the slot.
        """
        now = slice(self._done, self._done + explore.size)
        self._done += explore.size
        time = self._time[now]
        if time.size:
            arrived = np.searchsorted(self._signals[1], time[-1], side="right")
            new = slice(self._received, int(arrived))
            self._received = new.stop
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
            signals = (a[new] for a in self._signals)
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
        """Page, interval, signals, change of each crawl that had one before."""
        crawled = self.page[: self._done] >= 0
        good = np.flatnonzero(crawled & np.isfinite(self._bits[0][: self._done]))
        return self.page[good], *(a[good] for a in self._bits)

    def signal_rate(self, now):
        """Rate of signals of each page until `now`.

        Half a signal is added: none so far does not mean that the rate is 0.
        """
        page, arrival = self._signals
        arrived = page[: np.searchsorted(arrival, now)]
        return (np.bincount(arrived, minlength=self._state[0].size) + 0.5) / now
