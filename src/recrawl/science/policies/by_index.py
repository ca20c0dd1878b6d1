"""The page of largest index in every slot, under limits: what policies share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import indices as kernels
from recrawl.kernels.changes import UNTOLD
from recrawl.kernels.hosts import HOST
from recrawl.science.hosts import members
from recrawl.science.policies.fixed_rates import check_n_pages
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Ints, Values

__all__ = ["IndexPolicy"]


@dataclass(frozen=True, eq=False, kw_only=True)
class IndexPolicy:
    """A policy that gives each slot to the page of largest index, under limits.

    The base of `Greedy` and `BayesGreedy`. The index of a page is a function of
    the time since its crawl that never falls; ties go to the lower page.

    Parameters
    ----------
    min_interval : float or array_like, shape (n_pages,), time, default 0
        A page is not crawled again before this time has passed.
    max_interval : float or array_like, shape (n_pages,), time, default inf
        A page that was not crawled for this time comes before all others, the
        earliest deadline first. If 1 / max_interval sums to more than the
        bandwidth, deadlines are missed, and no other page is crawled.
    host : array_like, shape (n_pages,), optional
        The host of each page, integers or strings; by default all pages have
        one host.
    host_limit : float or mapping, 1/time, non-negative, default inf
        Crawls of a host per unit of time, or a mapping from host to limit. A
        host has a bucket of at most two tokens that come at this rate, and a
        crawl takes one; at 0 no page of the host is crawled.

    Raises
    ------
    ValueError
        Limits out of range, a least interval above the greatest one, hosts that
        do not fit the pages.

    Examples
    --------
    >>> from recrawl.science.policies import Greedy
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    >>> Greedy(pages, host=["a", "b"], host_limit={"a": 0.5}).labels
    ['a', 'b']
    """

    min_interval: Values = 0.0
    max_interval: Values = np.inf
    host: Values | None = None
    host_limit: float | Mapping[Any, float] = np.inf

    def __post_init__(self):
        least = checks.non_negative("min_interval", self.min_interval)
        most = checks.positive_or_inf("max_interval", self.max_interval)
        least, most, _ = checks.broadcast(
            min_interval=least, max_interval=most, pages=np.empty(self.n_pages)
        )
        checks.require("min_interval", least, "at most max_interval", least <= most)
        checks.per_page("pages, min_interval and max_interval", least)
        labels, member, limit = members(self.host, self.host_limit, self.n_pages)
        # in place, because the dataclass is frozen
        vars(self).update(_labels=labels, _limits=(least, most, member, limit))

    @property
    def labels(self) -> list[Any]:
        """Labels of the hosts, sorted; None for the one host of all pages."""
        return self._labels

    def records(self) -> tuple[Any, Any]:
        """Records of pages and of hosts, for the kernels.

        Returns
        -------
        pages, hosts : records of dtype `PAGE` and `HOST` of the kernels
            With everything but the last crawls.
        """
        pages = np.zeros(self.n_pages, kernels.PAGE)
        pages["least"], pages["most"], pages["host"], limit = self._limits
        hosts = np.zeros(limit.size, HOST)
        with np.errstate(divide="ignore"):  # inf: no page is crawled
            hosts["spacing"], hosts["full_at"] = 1.0 / limit, -np.inf
        pages["kind"], pages["place"] = self.kind, kernels.IDLE
        self._describe(pages)
        return pages, hosts

    def start(
        self, last: Array, *, present: ArrayLike = True, time: float = 0.0
    ) -> Any:
        """State of the kernels at a time, for pages last crawled at `last`.

        Parameters
        ----------
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.
        present : array_like of bool, shape (n_pages,), default True
            Which pages are there.
        time : float, time, default 0
            The present time.

        Returns
        -------
        object
            For `scheduler.Scheduler`.
        """
        pages, hosts = self.records()
        pages["last"] = pages["seen"] = last
        pages["place"][~np.broadcast_to(present, last.size)] = kernels.ABSENT
        return kernels.new_state(pages, hosts, time)

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            When pages come and go, and when they change for a policy that learns.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where no page can be crawled.
        """
        check_n_pages("pages", self.n_pages, world)
        state = self.start(last, present=world.start == 0)
        changes = self._told(world, time.size)

        def crawl(span, out):
            told = changes._replace(false=changes.false[span])
            kernels.slots(state, time[span], told, out)

        return in_spans(
            world, time, crawl, lambda *move: kernels.change_pages(state, *move)
        )

    def _told(self, world, n_slots):
        """Changes that crawls of the policy find."""
        return UNTOLD


def in_spans(world, time, crawl, move):
    """Crawl between the moments at which pages of a world come and go.

    Parameters
    ----------
    world : World
        Its pages come and go.
    time : ndarray, shape (n_slots,), time
        The slots.
    crawl : callable
        ``crawl(span, out)`` writes the pages of a span, a slice of the slots.
    move : callable
        ``move(which, present, moment)`` lets pages come or go.

    Returns
    -------
    ndarray of int, shape (n_slots,)
        The page of each slot.
    """
    out = np.empty(time.size, dtype=np.int64)
    come, gone = world.start[world.start > 0], world.stop[np.isfinite(world.stop)]
    moves = np.unique(np.concatenate([come, gone]))
    edges = [0, *np.searchsorted(time, moves), time.size]
    for k, moment in enumerate([*moves, None]):
        s = slice(edges[k], edges[k + 1])
        crawl(s, out[s])
        if moment is not None:
            # in this order, for a page that goes as it comes
            move(np.flatnonzero(world.start == moment), True, moment)
            move(np.flatnonzero(world.stop == moment), False, moment)
    return out
