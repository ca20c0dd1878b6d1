"""Fixed crawl rates."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paperlib import schedules


@dataclass(frozen=True, eq=False)
class Rates:
    """Fixed crawl rates: each slot goes to the page that a schedule says. BASELINE rates with LDS slots, in [www25].

    Parameters
    ----------
    crawl_rate : array, shape (n_pages,), 1/time; only the shares count
    schedule : function of crawl rates and a number of slots
    """

    crawl_rate: np.ndarray
    schedule: Callable = schedules.low_discrepancy

    def choose(self, world, time, last):
        """The page of each slot, shape (n_slots,), -1 where that page is not there."""
        _of_the_world("crawl_rate", np.size(self.crawl_rate), world)
        page = (
            self.schedule(self.crawl_rate, time.size)
            if time.size
            else np.empty(0, dtype=np.int64)
        )
        return np.where(
            (world.start[page] <= time) & (time < world.stop[page]), page, -1
        )


def _of_the_world(name, n_pages, world):
    if n_pages != world.start.size:
        raise ValueError(
            f"{name} must hold the pages of the world, {world.start.size}, got {n_pages}"
        )
