"""Crawls at fixed rates: LDS of Busa-Fekete et al. (2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike, NDArray

from .. import schedules


@dataclass(frozen=True, eq=False)
class Rates:
    """Follow fixed crawl rates by `paperlib.schedules.low_discrepancy`.

    With the rates of `paperlib.allocation.optimal_interval` this is LDS of section
    6.4 of Busa-Fekete et al. (2025).

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time
        Only the shares of the sum count.
    """

    crawl_rate: ArrayLike

    def choose(self, time: NDArray, signals: Any = None, crawl: Any = None) -> NDArray:
        """Page of each slot; see `paperlib.worlds`."""
        return schedules.low_discrepancy(self.crawl_rate, time.size)
