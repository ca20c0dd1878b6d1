r"""Spend a bandwidth on pages: the crawl rate of each page.

The mean cost is a sum over pages of convex functions of the crawl rates. So rates are
optimal where one more unit of bandwidth saves the same everywhere, the multiplier
:math:`\lambda`, and less than that on pages that are not crawled. Given the multiplier,
each crawl rate is known by itself, and `paperlib.allocation.spend` finds the multiplier
at which a bandwidth is spent: for each objective of `recrawl.plan.objectives` under
limits of pages and hosts (`optimal`), and for rates that are all the same (`even`).

Results are right to a relative error of 1e-9 where change rates, importances and
limits lie within twelve decades either way of the typical ones, and sum to the
bandwidth. Where a page is crawled less than once in some 30 changes, one more crawl of
several such pages gains the same up to rounding, and how they share their crawls does
not matter.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from paperlib import checks
from paperlib.allocation import spend
from recrawl.plan import objectives
from recrawl.types import Array

__all__ = ["Allocation", "even", "optimal"]

# Error of log v at which the search ends, and half the distance of the two points
# between which rates are interpolated: more than the rounding of rates.
_CLOSE, _NEXT = 1e-12, 8e-12
_ROUNDING = 1e-12  # of a sum of rates


@dataclass(frozen=True, eq=False)
class Allocation:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (n_pages,), 1/time
        They spend the bandwidth, or less where no page gains by more crawls or
        limits allow no more.
    multiplier : float
        By how much a little more bandwidth lowers the cost; 0 where bandwidth is
        left over, inf where the least rates need all of it.
    """

    crawl_rate: np.ndarray
    multiplier: float


@np.errstate(all="ignore")  # v from 0 to inf
def _spend_by_host(rates, pages, limit, slope, host):
    """Rates at which the pages of each host spend its limit.

    The search of `paperlib.allocation.spend` for many limits at once: v is inf for a
    host that does not reach its limit, 0 where the least rates need all of it.
    """

    def total(rate):
        return np.bincount(host, rate, limit.size)

    def excess(log_v, searched):
        v[searched] = np.exp(log_v)
        return total(rates(v[host], *pages))[searched] / limit[searched] - 1

    least = rates(np.zeros(slope.size), *pages)
    most = rates(np.full(slope.size, np.inf), *pages)
    v = np.where(total(most) <= limit, np.inf, 0.0)
    searched = np.flatnonzero((v == 0) & (total(least) < limit))
    if not searched.size:
        return np.where(v[host] > 0, most, least)
    start = np.log(limit / total(slope))[searched]

    def outward(log_v, sign):
        stride = 1.0
        while (inside := sign * excess(log_v, searched) < 0).any():
            log_v = log_v + sign * stride * inside
            stride *= 2
        return log_v

    bracket = outward(start, -1), outward(start + 1.0, 1)
    tolerances = {"xatol": _CLOSE, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0}
    root = elementwise.find_root(
        excess, bracket, args=(searched,), tolerances=tolerances
    )
    # Rates may jump at the root: interpolate between two points next to it.
    v[searched] = np.exp(root.x - _NEXT)
    low = rates(v[host], *pages)
    v[searched] = np.exp(root.x + _NEXT)
    high = rates(v[host], *pages)
    few = total(low)
    many = total(high)
    share = np.clip((limit - few) / (many - few), 0.0, 1.0)
    share = np.where(many > few, share, 0.0)[host]
    return np.where(high > low, low + share * (high - low), low)


@np.errstate(all="ignore")
def _limited(rates, pages, slope, bandwidth, min_rate, max_rate, host, limit):
    """The `Allocation` of rates under limits; they rise with v, as in `spend`."""
    bandwidth = checks.number("bandwidth", bandwidth, above=True)
    low = np.broadcast_to(np.asarray(min_rate, float), slope.shape)
    high = np.broadcast_to(np.asarray(max_rate, float), slope.shape)
    checks.require("min_rate", low, "at most max_rate", low <= high)
    if low.sum() > bandwidth * (1 + _ROUNDING):
        raise ValueError(
            f"min_rate must spend at most the bandwidth, {bandwidth}, got {low.sum()}"
        )
    pages = *pages, low, high
    if host is not None:
        limit = np.asarray(limit, float)
        least = np.bincount(host, low, limit.size)
        fits = least <= limit * (1 + _ROUNDING)
        checks.require("min_rate", least, "within the limits of hosts", fits)
        at_limit = _spend_by_host(rates, pages, limit, slope, host)

    def limited(v):
        rate = rates(v, *pages)
        if host is not None:
            full = np.bincount(host, rate, limit.size) > limit
            rate = np.where(full[host], at_limit, rate)
        return rate

    v = 0.0
    rate = limited(v)
    most = limited(np.inf)
    if np.sum(most) <= bandwidth:
        v = np.inf
        rate = most
    elif np.sum(rate) < bandwidth:
        rate, v = spend(limited, bandwidth, bandwidth / slope.sum())
    return Allocation(rate, (np.float64(v) ** -2.0).item())


@np.errstate(over="ignore")
def optimal(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    objective: str = "freshness",
    min_rate: ArrayLike = 0.0,
    max_rate: ArrayLike = np.inf,
    host: ArrayLike | None = None,
    host_limit: ArrayLike | None = None,
) -> Allocation:
    r"""Crawl at equal intervals with the rates of least cost, under limits.

    For the mean cost J of a page, see `objectives`,

    .. math:: \min \sum_i \mu_i J_i(\rho_i) \quad\text{subject to }
              \sum_i \rho_i \le R, \quad \sum_{i \in h} \rho_i \le R_h, \quad
              l_i \le \rho_i \le u_i .

    Parameters
    ----------
    change_rate, importance : array_like, shape (n_pages,)
        1/time, and any unit. A page that never changes, or has no importance, gets
        its least rate.
    bandwidth : float, 1/time
        Crawls of all pages together.
    objective : str, default "freshness"
        A key of `objectives.CODES`.
    min_rate, max_rate : array_like, 1/time, default 0 and inf
        Least and greatest rate of each page.
    host : int ndarray, shape (n_pages,), optional
        Index of the host of each page.
    host_limit : array_like, shape (n_hosts,), 1/time
        Crawls that each host allows, inf for no limit.

    Returns
    -------
    Allocation
        Rates and multiplier.

    Raises
    ------
    ValueError
        A bandwidth, change rate or importance out of range; `min_rate` above
        `max_rate`, or more than the bandwidth or a host allow.
    ConvergenceError
        Numbers so far apart that no rates spend the bandwidth.

    Examples
    --------
    >>> optimal([0.2, 1.0, 5.0], [1.0, 1.0, 2.0], 3.0, min_rate=0.1).crawl_rate.round(3)
    array([0.487, 0.863, 1.65 ])
    """
    d, mu = checks.broadcast(change_rate=change_rate, importance=importance)
    code = objectives.CODES[objective]

    def rates(v, d, mu, low, high):
        return objectives.rates(code, d, mu, low, high, v)

    slope = np.sqrt(mu * (1.0 if objective == "age" else d))
    return _limited(
        rates, (d, mu), slope, bandwidth, min_rate, max_rate, host, host_limit
    )


def even(
    importance: Array,
    bandwidth: float,
    *,
    min_rate: ArrayLike = 0.0,
    max_rate: ArrayLike = np.inf,
    host: ArrayLike | None = None,
    host_limit: ArrayLike | None = None,
) -> Allocation:
    """Crawl all pages of importance at one rate, except where limits forbid it.

    Parameters
    ----------
    importance, bandwidth, min_rate, max_rate, host, host_limit
        As in `optimal`.

    Returns
    -------
    Allocation
        As that of `optimal`.
    """
    counts = np.where(importance > 0, 1.0, 0.0)
    no_limits = host is None and np.all(min_rate == 0) and np.all(max_rate == np.inf)
    if no_limits and counts.any():  # there is nothing to search
        rate = checks.number("bandwidth", bandwidth, above=True) / counts.sum()
        return Allocation(counts * rate, rate**-2.0)

    def rates(v, counts, low, high):
        return np.clip(np.where(counts > 0, v, 0.0), low, high)

    return _limited(
        rates, (counts,), counts, bandwidth, min_rate, max_rate, host, host_limit
    )
