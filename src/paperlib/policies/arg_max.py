"""Algorithm 1 of Busa-Fekete et al. (2025) as it is printed, for any crawl value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks


@dataclass(frozen=True, eq=False)
class ArgMax:
    r"""Crawl the page of largest crawl value, any function of time and signals.

    Algorithm 1 of Busa-Fekete et al. (2025). In each slot the value of every page is
    computed. `Greedy` and its variants choose the same pages, some 20 to 200 times as
    fast. Start with `ArgMax` for a crawl value of your own. All pages are crawled at
    time 0 (our choice). Ties go to the lower index.

    Parameters
    ----------
    crawl_value : callable
        ``crawl_value(elapsed, n_signals)``: the values of all pages, given the time and
        the number of signals since the last crawl of each, both of shape (n_pages,).
    discard_window : float, time, default 0
        Signals that arrive sooner than this after a crawl of their page are ignored.

    Examples
    --------
    >>> from paperlib import worlds
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([1.0, 1.0, 1.0], [1.0, 1.1, 0.3])
    >>> world = worlds.draw_world(pages, 4.0, rng=1)
    >>> longest_wait = ArgMax(lambda elapsed, n_signals: elapsed * pages.importance)
    >>> worlds.crawl(world, longest_wait, bandwidth=1.0).page
    array([1, 0, 1, 0])
    """

    crawl_value: Callable
    discard_window: float = 0.0

    def __post_init__(self):
        checks.instance("crawl_value", self.crawl_value, Callable)

    def choose(self, time: NDArray, signals: Any, crawl: Any = None) -> NDArray:
        """Page of each slot; see `paperlib.worlds`."""
        n_pages = signals.offsets.size - 1
        sender = np.repeat(np.arange(n_pages), np.diff(signals.offsets))
        last = np.zeros(n_pages)
        page = np.empty(time.size, dtype=int)
        for slot, now in enumerate(time):
            since = signals.time - last[sender]  # last crawl of the sender
            new = (since > 0) & (since >= self.discard_window) & (signals.time <= now)
            n_signals = np.bincount(sender[new], minlength=n_pages)
            value = self.crawl_value(now - last, n_signals)
            checks.shape("crawl_value", value, last.shape)
            page[slot] = np.argmax(value)
            last[page[slot]] = now
        return page
