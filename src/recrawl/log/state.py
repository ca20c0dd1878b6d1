r"""What is kept of the crawls of earlier logs, in a fraction of their bytes.

Crawls of one page with the same bit and nearly the same interval are one
group: their mean interval, and how many they are. With 64 groups to each
doubling of the interval, intervals in a group differ by less than
:math:`2^{1/64} - 1 = 1.1\%`. The log-likelihood of a group is replaced by that
of its mean, which is exact for unchanged crawls (it is linear in the interval)
and of second order in the spread for changed ones. Where the age of the last
change is known, it stands for the interval, and the mean is exact too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recrawl.log.history import History

__all__ = ["compress", "expand", "kept"]

_GROUPS = 64  # to a doubling of the interval
_KEPT = (
    "url",
    "host",
    "importance",
    "first_crawl",
    "last_crawl",
    "last_row",
    "last_start",
    "last_change",
    "gone",
    "n_failed",
    "signal",
)
_SHORTEST = 1e-9  # days; an interval cannot be 0, an age can


def compress(
    page: Any,
    history: History,
    counts: Sequence[NDArray[np.integer]],
    dispersion: Sequence[NDArray[Any]],
) -> Any:
    """Group the crawls of each page, and make of them a table to be stored.

    Parameters
    ----------
    page : pyarrow.Table
        Of a `reading.Batch`.
    history : History, shape (n_pages,)
        All crawls of these pages; intervals in days.
    counts : sequence of two ndarray of int, shape (n_pages,)
        Crawls that had one before, of all logs, and how many of them found a change.
        The history may also have intervals that no crawl began.
    dispersion : sequence of two ndarray, shape (n_pages,)
        Of `dependence.measured`.

    Returns
    -------
    pyarrow.Table
        One row for each page; the columns are in ``sql/tables.sql``.

    Examples
    --------
    >>> page = pa.table({name: ["a"] for name in _KEPT})
    >>> changed = [True, True, False, True]
    >>> history = History([1.0, 2.0, 4.0, 2.01], changed, [0, 4])
    >>> table = compress(page, history, [[4], [3]], np.zeros((2, 1)))
    >>> table["interval"].to_pylist(), table["n"].to_pylist()
    ([[1.0, 2.005, 4.0]], [[1, 2, 1]])
    """
    owner = np.repeat(np.arange(page.num_rows), history.n_crawls)
    age = history.all_ages
    aged = ~np.isnan(age)
    length = np.where(aged, np.maximum(age, _SHORTEST), history.interval)
    order, starts = _groups(owner, length, history.changed, aged)
    n = np.diff(np.append(starts, owner.size))
    total = np.add.reduceat(np.append(length[order], 0.0), starts)
    offsets = np.searchsorted(owner[order][starts], np.arange(page.num_rows + 1))
    lists = {
        "interval": total / n,
        "bits": history.changed[order][starts],
        "n": n,
        "aged": aged[order][starts],
    }
    return pa.table(
        {name: page[name] for name in _KEPT}
        | {
            name: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)
            for name, flat in lists.items()
        }
        | {"n_crawls": counts[0], "n_changed": counts[1]}
        | {"dispersion": dispersion[0], "freedom": dispersion[1]}
    )


def _groups(owner, length, changed, aged):
    """Order the crawls by group, and find where in this order groups start."""
    # the shortest intervals of a page stay apart and exact: the substitute for
    # a rate without an upper limit is one change in the shortest interval
    shortest = np.full(owner[-1] + 1 if owner.size else 0, np.inf)
    np.minimum.at(shortest, owner, length)
    level = np.floor(np.log2(length) * _GROUPS)
    level[length == shortest[owner]] = -np.inf
    order = np.lexsort((aged, changed, level, owner))
    keys = [key[order] for key in (owner, level, changed, aged)]
    starts = np.ones(owner.size, dtype=bool)
    starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return order, np.flatnonzero(starts)


def expand(page: Any) -> History:
    """Make a history of what a state holds: each group's mean, repeated.

    Parameters
    ----------
    page : pyarrow.Table
        With the columns interval, bits, n and aged that `compress` wrote.

    Returns
    -------
    History, shape (n_pages,)
        Intervals in days.

    Examples
    --------
    >>> lists = {"bits": [[True, False]], "n": [[1, 2]], "aged": [[False] * 2]}
    >>> history = expand(pa.table({"interval": [[1.0, 2.5]]} | lists))
    >>> history.interval, history.changed
    (array([1. , 2.5, 2.5]), array([ True, False, False]))
    """
    names = ("interval", "bits", "n", "aged")
    interval, bits, n, aged = (np.asarray(pc.list_flatten(page[k])) for k in names)
    n_groups = np.append(0, np.cumsum(pc.list_value_length(page["n"])))
    offsets = np.append(0, np.cumsum(n))[n_groups]
    interval = np.repeat(interval, n)
    age = {"age": np.where(np.repeat(aged, n), interval, np.nan)} if aged.any() else {}
    return History(interval, np.repeat(bits, n), offsets, **age)


def kept(history: History, keep: NDArray[np.bool_]) -> History:
    """History of some of the crawls of each page, without ages.

    Parameters
    ----------
    history : History, shape (n_pages,)
        All crawls.
    keep : bool ndarray, shape (n_intervals,)
        Those that are kept.

    Returns
    -------
    History, shape (n_pages,)

    Examples
    --------
    >>> history = History([1.0, 2.0, 3.0], [0, 1, 1], [0, 2, 3])
    >>> kept(history, np.array([False, True, True])).interval
    array([2., 3.])
    """
    interval, changed, offsets = history.ragged()
    starts = np.append(0, np.cumsum(keep))[offsets]
    return History(interval[keep], changed[keep], starts)
