"""Greedy crawling under limits of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from recrawl import checks
from recrawl.kernels import crawl_value
from recrawl.kernels import polite as kernels
from recrawl.kernels.changes import UNTOLD
from recrawl.science.hosts import members
from recrawl.science.signals import SignalledPages
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Ints, Values

__all__ = ["PoliteGreedy"]


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
    host_limit : float or mapping, 1/time, non-negative, default inf
        Crawls of a host per unit of time, or a mapping from host to limit, as
        in `allocation.polite`; ``inf`` is no limit, and at 0 no page of the
        host is crawled.

    Raises
    ------
    ValueError
        Hosts or limits that do not fit the pages; a world with other pages, or
        with pages that come and go.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> pages = SignalledPages([0.5, 1.0], 1.0, recall=0.5, false_rate=0.1)
    >>> world = simulate.draw_world(pages, 40.0, rng=1)
    >>> policy = PoliteGreedy(pages, host=["a", "b"], host_limit={"a": 0.25})
    >>> simulate.crawl(world, policy, bandwidth=1.0).n_crawls.tolist()
    [11, 29]
    """

    pages: SignalledPages
    _: KW_ONLY
    host: Values | None = None
    host_limit: float | Mapping[Any, float] = np.inf

    def __post_init__(self):
        checks.instance("pages", self.pages, SignalledPages)
        members(self.host, self.host_limit, self.pages.change_rate.size)

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            Signals; all pages are there all the time.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

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

    With `use_signals`, signals count; with `look`, the results of the crawls
    are recorded.
    """

    def __init__(self, world, time, last, hosts, *, use_signals=True, look=False):
        _, member, limit = hosts
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
        self._changes = world.unseen(time.size) if look else UNTOLD
        self._pages = np.zeros(member.size, kernels.PAGE)
        self._pages["last"], self._pages["host"] = last, member
        self._hosts = np.zeros(limit.size, kernels.HOST)
        with np.errstate(divide="ignore"):  # inf: no page is crawled
            self._hosts["spacing"] = 1.0 / limit
        self._slots = np.zeros(time.size, kernels.SLOT)
        self._slots["time"] = time
        self._done, self._received, self._again = 0, 0, -1

    @property
    def page(self):
        """The page of each slot, -1 for none."""
        return self._slots["page"].copy()

    def crawl(self, pages, explore):
        """Give the next slots by the crawl value of `pages`.

        Where `explore` is true, and in all slots if `pages` is None, the page
        crawled longest ago gets the slot.
        """
        span = slice(self._done, self._done + explore.size)
        slots = self._slots[span]
        self._done += explore.size
        if slots.size:
            slots["explore"] = explore
            end = slots["time"][-1]
            arrived = np.searchsorted(self._signals[1], end, side="right")
            new = slice(self._received, int(arrived))
            self._received = new.stop
            if pages:
                self._pages["constants"] = crawl_value.page_constants(
                    **vars(pages), terms=crawl_value.EXACT
                )
                self._pages["importance"] = pages.importance
            self._again = kernels.polite_slots(
                self._pages,
                self._hosts,
                slots,
                tuple(a[new] for a in self._signals),
                self._changes._replace(false=self._changes.false[span]),
                self._again,
                pages is not None,
            )

    def seen(self):
        """Page, interval, signals, change of each crawl that had one before."""
        done = self._slots[: self._done]
        done = done[(done["page"] >= 0) & np.isfinite(done["interval"])]
        return tuple(
            done[name] for name in ("page", "interval", "n_signals", "changed")
        )

    def signal_rate(self, now):
        """Rate of signals of each page until `now`.

        Half a signal is added: none so far does not mean that the rate is 0.
        """
        page, arrival = self._signals
        arrived = page[: np.searchsorted(arrival, now)]
        return (np.bincount(arrived, minlength=self._pages.size) + 0.5) / now
