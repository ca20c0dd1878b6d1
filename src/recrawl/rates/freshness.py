"""Freshness of pages whose crawl times are known; the rest is in paperlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exprel

from recrawl.types import Array

if TYPE_CHECKING:
    from recrawl.log.history import History

__all__ = ["crawled"]


@np.errstate(invalid="ignore")  # 0 / 0 of a page without crawls
def crawled(history: History, change_rate: ArrayLike) -> Array:
    r"""Expected freshness of pages between their crawls.

    For intervals :math:`w_k`, at the beginning of which copies are fresh (derived),

    .. math:: \sum_k \int_0^{w_k} e^{-\Delta \tau}\,d\tau \Big/ \sum_k w_k .

    Parameters
    ----------
    history : History
        Only the intervals are used, not whether crawls found a change.
    change_rate : array_like, shape of the history, 1/time

    Returns
    -------
    ndarray, shape of the history
        In [0, 1]; NaN for a page without crawls.

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> crawled(History([1.0, 1.0, 2.0], [0, 1, 1]), 1.0).round(3)
    np.float64(0.532)
    """
    length = history.interval
    fresh = length * exprel(-history.per_crawl(change_rate) * length)
    return history.total(fresh) / history.total(length)
