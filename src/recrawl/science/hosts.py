"""Limits of hosts: how many crawls per unit time each host allows.

`members` is the one place where labels of hosts become indices and limits are
checked. `within_limits` brings any allocation below the limits, and
`allocation.polite_thresholds` uses it; `allocation.optimal` and `policies` keep
limits in kernels of their own. `by_samples` is a policy for hosts without a history.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.types import Array, Bits, Function, Ints

__all__ = ["by_samples", "members", "within_limits"]

# Relative error of a share of downloads: what is a whole number but for rounding, as
# 28.999999999999996, is not rounded down. Of fewer than 1e12 downloads the shares
# cannot add up to one more.
_ROUNDING = 1e-12


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


def within_limits(
    allocate: Function,
    bandwidth: float,
    member: Ints,
    limit: Array,
) -> tuple[Bits, Array, float]:
    r"""Allocate a bandwidth so that no host exceeds its limit.

    Kolobov et al. 2019 (SIGIR, algorithm 2): allocate to all hosts; take out
    those above their limits, with the bandwidth that they may use; allocate
    the rest to the others; repeat until none is above its limit.

    Parameters
    ----------
    allocate : callable
        Called with the hosts that are left, a bool array of shape (n_hosts,),
        and the bandwidth that is left; returns the crawl rates of all pages,
        0 on other hosts, and the multiplier.
    bandwidth : float, 1/time
        Crawls of all pages.
    member : int ndarray, shape (n_pages,)
        Index of each page's host.
    limit : ndarray, shape (n_hosts,), 1/time
        ``inf`` for a host without a limit.

    Returns
    -------
    within : bool ndarray, shape (n_hosts,)
        Hosts that stay within their limits by themselves. The others are
        saturated: they use all of theirs, and the caller spends it.
    crawl_rate : ndarray, shape (n_pages,), 1/time
        What `allocate` returned last.
    multiplier : float
        Likewise.

    Notes
    -----
    The result is the exact optimum if that of `allocate` is. Taking out a host
    above its limit leaves the other hosts more bandwidth than they had, so
    that the multiplier falls from round to round and every page asks for more.
    A host that was above its limit in one round would be above it in every
    later one: it is saturated in the optimum too.

    Examples
    --------
    Two hosts share a bandwidth of 6 equally, but the first allows only 2:

    >>> def equally(hosts, rest):
    ...     return np.where(hosts, rest / max(hosts.sum(), 1), 0.0), 0.0
    >>> member, limit = np.array([0, 1]), np.array([2.0, np.inf])
    >>> within, crawl_rate, _ = within_limits(equally, 6.0, member, limit)
    >>> within.tolist(), crawl_rate.tolist()
    ([False, True], [0.0, 4.0])
    """
    within = np.ones(limit.size, dtype=bool)
    while True:
        # negative by rounding at most, as the limits were exceeded
        rest = max(bandwidth - limit[~within].sum(), 0.0)
        rate, multiplier = allocate(within, rest)
        above = within & (np.bincount(member, rate) > limit)
        if not above.any():
            return within, rate, multiplier
        within &= ~above


def by_samples(
    share: ArrayLike,
    n_left: ArrayLike,
    n_downloads: int,
    *,
    how: Literal["greedy", "proportional"] = "greedy",
) -> Ints:
    """Downloads from each host, by samples of their pages.

    The policy of Cho and Ntoulas (VLDB 2002): a few pages of each host are
    downloaded, and the rest goes where most of them have changed. It needs no
    history, and counts changes that are found, not freshness. Where samples are all
    that is known of hosts of the same kind, "greedy" finds most of them.

    Parameters
    ----------
    share : array_like, shape (n_hosts,), in [0, 1]
        Share of the sample of each host that has changed.
    n_left : array_like of int, shape (n_hosts,)
        Pages of each host that are not in its sample.
    n_downloads : int
        Downloads that are left, at most as many as pages.
    how : {"greedy", "proportional"}, default "greedy"
        All pages of the host of largest share first; or shares of the downloads in
        proportion, and what is left by rounding, or beyond the pages of a host,
        greedily.

    Returns
    -------
    ndarray of int, shape (n_hosts,)
        Downloads from each host, of sum `n_downloads`.

    Raises
    ------
    ValueError
        Arguments out of range; more downloads than pages.

    Examples
    --------
    Of five pages each, four and one have changed:

    >>> by_samples([0.8, 0.2], [95, 95], 90).tolist()
    [90, 0]
    >>> by_samples([0.8, 0.2], [95, 95], 90, how="proportional").tolist()
    [72, 18]
    """
    share, left = checks.broadcast(
        share=checks.share("share", share),
        n_left=_whole("n_left", n_left),
    )
    if share.ndim > 1:
        raise ValueError(
            "share and n_left must be flat, an entry for each host, "
            f"got shape {share.shape}"
        )
    n_downloads = int(checks.scalar(_whole, "n_downloads", n_downloads))
    if n_downloads > left.sum():
        raise ValueError(
            f"n_downloads must be at most the {left.sum():g} pages that are left, "
            f"got {n_downloads}"
        )
    checks.one_of("how", how, ("greedy", "proportional"))
    found = np.zeros(left.size, dtype=np.int64)
    if how == "proportional" and share.any():
        part = n_downloads * share / share.sum()
        found[:] = np.minimum(part * (1 + _ROUNDING), left)
    order = np.argsort(-share, kind="stable")
    room = (left - found)[order]
    before = room.cumsum() - room
    found[order] += np.clip(n_downloads - found.sum() - before, 0, room).astype(int)
    return found


def _whole(name, value):
    """`value` as a float array; all entries are whole, non-negative and finite."""
    array = checks.non_negative(name, value)
    checks.require(name, array, "a whole number", array == np.floor(array))
    return array
