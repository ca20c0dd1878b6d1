"""Limits of hosts: how many crawls per unit time each host allows.

`members` is the one place where labels of hosts become indices and limits are
checked; `allocation.optimal` and `policies` keep the limits.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.types import Array, Ints

__all__ = ["members"]


def members(
    host: ArrayLike | None, host_limit: float | Mapping[Any, float], n_pages: int
) -> tuple[list[Any], Ints, Array]:
    """Label and limit of each host, and the host of each page.

    Parameters
    ----------
    host : array_like, shape (n_pages,), or None
        Label of the host of each page; None puts all pages on one host, whose
        label is None.
    host_limit : float, or mapping from label to float, 1/time, non-negative
        The limit of every host; or of the hosts named, the others have none.
        ``inf`` is no limit; at 0 no page of the host is crawled.
    n_pages : int
        Number of pages.

    Returns
    -------
    labels : list
        Labels of the hosts, sorted.
    member : int ndarray, shape (n_pages,)
        Index of each page's host.
    limit : ndarray, shape (n_hosts,), 1/time
        ``inf`` for a host without a limit.

    Raises
    ------
    ValueError
        Labels that are not one for each page; a limit that is negative or no
        number; a limit for a host that has no page.

    Examples
    --------
    >>> labels, member, limit = members(["b", "a", "b"], {"b": 2.0}, 3)
    >>> labels, member.tolist(), limit.tolist()
    (['a', 'b'], [1, 0, 1], [inf, 2.0])
    """
    labels, member = [None], np.zeros(n_pages, dtype=np.int64)
    if host is not None:
        found, member = checks.labels("host", host, (n_pages,))
        labels = found.tolist()
    named = isinstance(host_limit, Mapping)
    for label, value in host_limit.items() if named else [(None, host_limit)]:
        if not (isinstance(value, Real) and value >= 0):
            where = f" for host {label!r}" if named else ""
            raise ValueError(
                "host_limit must be a non-negative number, or a mapping from host "
                f"to such, got {value!r}{where}"
            )
    if not named:
        return labels, member, np.full(len(labels), float(host_limit))
    unknown = sorted(host_limit.keys() - set(labels), key=str)
    if unknown:
        raise ValueError(
            "host_limit must name hosts that have pages, "
            f"got {len(unknown)} without: {unknown[:5]}"
        )
    limit = np.array([float(host_limit.get(label, np.inf)) for label in labels])
    return labels, member, limit
