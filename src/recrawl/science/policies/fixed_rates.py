"""Fixed crawl rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from paperlib import schedules
from recrawl import checks
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Ints, Values

__all__ = ["Rates"]


@dataclass(frozen=True, eq=False)
class Rates:
    """Fixed crawl rates: a schedule gives each slot to a page.

    With the rates of `allocation.optimal` and low discrepancy this is
    LDS of section 6 of [www25]_.

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time
        Only the shares count.
    schedule : callable, default `schedules.low_discrepancy`
        Function of crawl rates and a number of slots: the page of each slot.

    Raises
    ------
    ValueError
        Crawl rates that are negative or have several axes.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> world = simulate.replay([[0.5], []], 3.0)
    >>> simulate.crawl(world, Rates([1.0, 2.0]), bandwidth=2.0).page.tolist()
    [1, 0, 1, 1, 0, 1]
    """

    crawl_rate: Values
    _: KW_ONLY
    schedule: Callable = schedules.low_discrepancy

    def __post_init__(self):
        checks.per_page("crawl_rate", self.crawl_rate)

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            Where the pages are.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page; it does not matter here.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where the page of the schedule is not there.
        """
        check_n_pages("crawl_rate", np.size(self.crawl_rate), world)
        if not time.size:
            return np.empty(0, dtype=np.int64)
        page = self.schedule(self.crawl_rate, time.size)
        there = (world.start[page] <= time) & (time < world.stop[page])
        return np.where(there, page, -1)


def check_n_pages(name, n_pages, world):
    """Raise unless a policy is of as many pages as the world has."""
    if n_pages != world.start.size:
        raise ValueError(
            f"{name} must hold the pages of the world, {world.start.size}, "
            f"got {n_pages}"
        )
