"""Days on which many pages of a log changed at once: a redesign, a new template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recrawl.log.reading import Batch
    from recrawl.types import Array

__all__ = ["BulkDay", "bulk_days"]

_HOUR = 3_600_000_000  # microseconds; at one hour a page has one interval, mostly
_LEAST = 30  # intervals that an hour lies in
_SHARE = 0.3  # of them that ended with a change, and so many times as predicted
_TIMES = 3.0


@dataclass(frozen=True)
class BulkDay:
    """A day on which many pages changed at once.

    Parameters
    ----------
    day : str
        Its date, in UTC; between rare crawls the middle of those that it may be.
    share : float
        Share of the intervals between crawls around it that ended with a change.
    """

    day: str
    share: float


def bulk_days(batch: Batch, change_rate: Array) -> list[BulkDay]:
    """Find the days around which far more crawls saw a change than rates predict.

    Of the intervals between crawls in which an hour lies, 30% or more ended with a
    change, and three times as many as the change rates of their pages predict. Of
    such hours in a row those of the largest share count.

    Parameters
    ----------
    batch : Batch
        Pages drawn at random from a log.
    change_rate : ndarray, shape (n_pages,), 1/day

    Returns
    -------
    list of BulkDay
        In order.

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> from recrawl.log.reading import Batch
    >>> bits = np.zeros((40, 9), bool)
    >>> bits[:, 4] = True
    >>> history = History(*History(np.ones((40, 9)), bits).ragged())
    >>> time = np.tile(np.arange(1, 10) * 86_400_000_000, 40)
    >>> bulk_days(Batch(None, history, time, np.ones(360, bool)), np.full(40, 0.1))
    [BulkDay(day='1970-01-05', share=1.0)]
    """
    interval, changed, _ = batch.history.ragged()
    rate = batch.history.per_crawl(change_rate)
    end = batch.time / _HOUR
    begin = np.floor(end - 24 * interval)
    if not begin.size:
        return []
    origin = begin.min()
    first, behind = (begin - origin).astype(int), np.ceil(end - origin).astype(int)

    def covering(weight):
        """Sum of the weights of the intervals in which each hour lies."""
        weight, n = weight * batch.crawled, behind.max() + 1
        steps = np.bincount(first, weight, n) - np.bincount(behind, weight, n)
        return np.cumsum(steps)[:-1]

    n, found = covering(np.ones(rate.size)), covering(changed)
    expected = covering(-np.expm1(-rate * interval))
    share = np.where(n >= _LEAST, found / np.maximum(n, 1), 0.0)
    hours = np.flatnonzero((share >= _SHARE) & (found >= _TIMES * expected))
    runs = np.split(hours, np.flatnonzero(np.diff(hours) > 24) + 1)
    named = []
    for run in runs if hours.size else []:
        top = run[share[run] >= share[run].max() * (1 - 1e-9)]
        hour = np.datetime64(int(origin + top[top.size // 2]), "h")
        named.append(BulkDay(str(hour.astype("M8[D]")), float(share[top[0]])))
    return named
