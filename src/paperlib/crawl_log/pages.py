"""A crawl log in memory: what a crawler knows about its pages."""

from dataclasses import dataclass

import numpy as np

from paperlib import checks
from paperlib.processes import History

__all__ = ["CrawlLog"]


@dataclass(frozen=True, eq=False)
class CrawlLog:
    """What a crawler knows about its pages.

    The arrays are read-only views of those that are given.

    Parameters
    ----------
    url : array_like, shape (n_pages,)
        Address or identifier of each page.
    history : History, shape (n_pages,)
        Intervals in days, and whether each crawl found a change.
    importance : array_like of float, shape (n_pages,)
        Importance of each page, non-negative, in any unit.
    host : array_like, shape (n_pages,)
        Name or identifier of each page's host.
    constrained : array_like of bool, shape (n_pages,), optional
        True where the host limits how often it is crawled.
    known_rate : array_like of float, shape (n_pages,), optional
        Change rate known from elsewhere, 1/day; NaN where it is unknown.

    Raises
    ------
    ValueError
        An array that is not flat and as long as the history has pages; an
        importance or a known rate that is negative or infinite; `constrained`
        that is neither boolean nor 0/1.

    Examples
    --------
    >>> history = History([1.0, 2.0, 0.5], [True, False, True], [0, 2, 3])
    >>> log = CrawlLog(["a", "b"], history, [1.0, 3.0], ["h", "h"])
    >>> log.importance
    array([1., 3.])
    """

    url: np.ndarray
    history: History
    importance: np.ndarray
    host: np.ndarray
    constrained: np.ndarray | None = None
    known_rate: np.ndarray | None = None

    def __post_init__(self):
        columns = {
            "url": np.asarray(self.url),
            "host": np.asarray(self.host),
            "importance": checks.non_negative("importance", self.importance),
        }
        if self.constrained is not None:
            columns["constrained"] = checks.bits("constrained", self.constrained)
        if self.known_rate is not None:
            columns["known_rate"] = _rate_or_nan(self.known_rate)
        for name, column in columns.items():
            if column.shape != self.history.shape:
                raise ValueError(
                    f"{name} must have one entry per page of history, shape "
                    f"{self.history.shape}, got {column.shape}"
                )
            column = column.view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)


def _rate_or_nan(rate):
    """Array of change rates that are non-negative and finite, or NaN."""
    rate = np.asarray(rate, dtype=float)
    bad = (rate < 0) | np.isinf(rate)
    checks.require("known_rate", rate, "non-negative and finite, or NaN", ~bad)
    return rate
