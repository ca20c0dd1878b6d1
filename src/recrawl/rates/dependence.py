"""How the changes of a log's pages depend on each other, page by page and host.

The intervals of `estimate` are widened by it. Few crawls do not show it: the
figure of a page is shrunk to that of its host, and this one to that of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy
from numpy.typing import NDArray

from recrawl.rates import dispersion, likelihood
from recrawl.types import Array

if TYPE_CHECKING:
    from recrawl.log.history import History

__all__ = ["Dependence", "encoded", "measured"]


def measured(history: History, change_rate: Array, page: Any) -> tuple[Array, Array]:
    """Dispersion of pages, from their crawls and from earlier logs.

    Parameters
    ----------
    history : History, shape (n_pages,)
        Crawls of this log.
    change_rate : ndarray, shape (n_pages,)
        Their rates.
    page : pyarrow.Table
        With the columns dispersion and freedom of earlier logs.

    Returns
    -------
    value, freedom : ndarray, shape (n_pages,)
        The mean of this log's and the earlier ones', by degrees of freedom, and
        the sum of these. Dependence of crawls of different logs does not show.

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> before = pa.table({"dispersion": [2.0], "freedom": [3.0]})
    >>> measured(History([1.0], [True], [0, 1]), np.ones(1), before)
    (array([2.]), array([3.]))
    """
    value, freedom = dispersion.dispersion(history, change_rate)
    before, known = (np.asarray(page[name]) for name in ("dispersion", "freedom"))
    total = freedom + known
    mean = (freedom * value + known * before) / np.maximum(total, 1.0)
    return np.where(total > 0, mean, value), total


@dataclass(frozen=True)
class Dependence:
    """Dispersion of a log and of its hosts, as `dispersion.dispersion` has it.

    Parameters
    ----------
    mean : float
        Mean dispersion of the log.
    weight : float
        Degrees of freedom that a mean counts as, beside those of a page.
    hosts : dict of float
        Dispersion by host, of those in the sample.

    Examples
    --------
    >>> Dependence(1.0, 30.0, {"example.org": 2.5}).hosts["example.org"]
    2.5
    """

    mean: float
    weight: float
    hosts: dict

    @classmethod
    def learn(cls, history: History, change_rate: Array, page: Any) -> Dependence:
        """Learn it from a random sample of pages.

        Parameters
        ----------
        history : History, shape (n_pages,)
            Their crawls.
        change_rate : ndarray, shape (n_pages,)
            Their rates.
        page : pyarrow.Table
            As in `measured`, and with the column host.

        Returns
        -------
        Dependence
            With a mean of 1 and no weight to speak of from a sample that shows
            nothing.
        """
        value, freedom = measured(history, change_rate, page)
        mean, weight = dispersion.pooled_dispersion(value, freedom)
        names, member = encoded(page["host"])
        own = np.bincount(member, freedom, len(names))
        total = np.bincount(member, freedom * value, len(names))
        value = total / np.maximum(own, 1.0)
        value = dispersion.shrunk_dispersion(value, own, mean, weight)
        return cls(mean, weight, dict(zip(names, value.tolist(), strict=True)))

    def of(self, value: Array, freedom: Array, host: Any) -> Array:
        """Find the dispersion by which the intervals of pages are widened.

        Parameters
        ----------
        value, freedom : ndarray, shape (n_pages,)
            Of `measured`, of any pages of the log.
        host : pyarrow.Array or ChunkedArray
            Host of each page.

        Returns
        -------
        ndarray, shape (n_pages,)
            At least 1. A dispersion that is not known well is raised by the
            squared ratio of the quantiles of Student's t and of the normal
            distribution.
        """
        names, member = encoded(host)
        mean = np.array([self.hosts.get(name, self.mean) for name in names])[member]
        value = dispersion.shrunk_dispersion(value, freedom, mean, self.weight)
        # degrees of freedom of pages are small whole numbers: one quantile for each
        tail = (1 + likelihood.LEVEL) / 2
        each = np.arange(int(freedom.max(initial=0)) + 1)
        wider = scipy.stats.t.ppf(tail, each + self.weight) / scipy.special.ndtri(tail)
        return np.maximum(value * wider[freedom.astype(int)] ** 2, 1.0)


def encoded(host: Any) -> tuple[list[str], NDArray[np.integer]]:
    """Names of hosts, and the number of each page's host.

    Parameters
    ----------
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Returns
    -------
    names : list of str
        Each host once.
    member : ndarray of int, shape (n_pages,)
        Places in the list.

    Examples
    --------
    >>> encoded(pa.array(["b", "a", "b"]))
    (['b', 'a'], array([0, 1, 0], dtype=int32))
    """
    if isinstance(host, pa.ChunkedArray):
        host = host.combine_chunks()
    named = pc.dictionary_encode(host, null_encoding="encode")
    return named.dictionary.to_pylist(), np.asarray(named.indices)
