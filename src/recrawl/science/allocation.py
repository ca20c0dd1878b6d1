r"""Spend a bandwidth on pages: the crawl rate of each page.

The mean cost is a sum over pages of convex functions of the crawl rates. So rates are
optimal where one more unit of bandwidth saves the same everywhere, the multiplier
:math:`\lambda`, and less than that on pages that are not crawled. Given the multiplier,
each crawl rate is known by itself, and `spend` finds the multiplier at which a
bandwidth is spent: for each objective of `recrawl.science.objectives` under limits of
pages and hosts (`optimal`), for rates that are all the same (`even`), and for
thresholds of pages with signals (`optimal_thresholds`).

Results are right to a relative error of 1e-9 where change rates, importances and
limits lie within twelve decades either way of the typical ones, and sum to the
bandwidth. Where a page is crawled less than once in some 30 changes, one more crawl of
several such pages gains the same up to rounding, and how they share their crawls does
not matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from paperlib import freshness
from paperlib.allocation import ALMOST_ALL
from paperlib.signals import SignalledPages
from recrawl import checks
from recrawl.errors import ConvergenceError
from recrawl.kernels import allocation, objectives
from recrawl.science.objectives import CODES
from recrawl.types import Array

__all__ = ["Allocation", "even", "optimal", "optimal_thresholds", "spend"]

# Error of log v at which the search ends, and half the distance of the two points
# between which rates are interpolated: more than the rounding of rates.
_CLOSE, _NEXT = 1e-12, 8e-12
_SPENT = 1e-9  # relative error to which rates must sum to the bandwidth
_ROUNDING = 1e-12  # of a sum of rates
# The search begins with so many pages, and near the result for these in log v.
_FEW, _NEAR = 20_000, 0.02


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
    host_price : ndarray, shape (n_hosts,), optional
        By how much the cost falls per unit by which the limit of the host is raised.
    threshold : ndarray, shape (n_pages,), time, optional
        Effective elapsed time at which a page is crawled, inf for never.
    """

    crawl_rate: np.ndarray
    multiplier: float
    host_price: np.ndarray | None = None
    threshold: np.ndarray | None = None


@np.errstate(all="ignore")  # v from 0 to inf
def spend(
    rates: Callable[..., Array],
    pages: tuple[Array, ...],
    price: Array,
    budget: Array,
    slope: Array,
    group: Any,
    near: float | None = None,
) -> tuple[Array, Array]:
    """Rates at which each group of pages spends its budget.

    Parameters
    ----------
    rates : callable
        ``rates(v, *pages)`` are the crawl rates at v = multiplier^-1/2, which rise
        with v.
    pages : tuple of ndarray, shape (n_pages,)
        What is known of the pages.
    price : ndarray, shape (n_pages,)
        What a crawl spends.
    budget : ndarray, shape (n_groups,)
        What is spent per unit of time; inf for no limit.
    slope : ndarray, shape (n_pages,)
        The rates are of the order of v times this, where bandwidth is abundant.
    group : int ndarray, shape (n_pages,)
        Of each page.
    near : float, optional
        Guess of v.

    Returns
    -------
    v : ndarray, shape (n_groups,)
        inf where budget is left over.
    rate : ndarray, shape (n_pages,), 1/time
        Crawl rates.
    """

    def total(spent):
        spent = price * spent
        if budget.size == 1:  # its rounding does not grow with the number of pages
            return spent.sum(keepdims=True)
        return np.bincount(group, spent, budget.size)

    def excess(t, searched):
        v[searched] = np.exp(t)
        return total(rates(v[group], *pages))[searched] / budget[searched] - 1

    least = rates(np.zeros(slope.size), *pages)
    most = rates(np.full(slope.size, np.inf), *pages)
    # an infinite rate of a page, at no price, is no number
    v = np.where(total(most) <= budget, np.inf, 0.0)
    searched = np.flatnonzero((v == 0) & (total(least) < budget))
    start, width = np.log(budget / total(slope))[searched], 1.0
    if near is not None:
        start, width = np.log(near) - _NEAR, 2 * _NEAR
    if not searched.size:
        return v, np.where(v[group] > 0, most, least)

    def outward(t, sign):
        stride = 1.0
        while (inside := sign * excess(t, searched) < 0).any():
            t, stride = t + sign * stride * inside, 2 * stride
        return t

    bracket = outward(start, -1), outward(start + width, 1)
    tolerances = {"xatol": _CLOSE, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0}
    root = elementwise.find_root(
        excess, bracket, args=(searched,), tolerances=tolerances
    )
    # Interpolate between two points next to the root. Rates may jump there: at much
    # fewer crawls than changes, for pages of equal value, at whole numbers of signals.
    ends = []
    for shift in (-_NEXT, _NEXT):
        v[searched] = np.exp(root.x + shift)
        rate = rates(v[group], *pages)
        ends.append((rate, total(rate)))
    (low, too_little), (high, too_much) = ends
    share = np.clip((budget - too_little) / (too_much - too_little), 0.0, 1.0)
    share = np.where(too_much > too_little, share, 0.0)[group]
    return v, np.where(high > low, low + share * (high - low), low)


@np.errstate(all="ignore")
def _limited(rates, pages, slope, bandwidth, min_rate, max_rate, price, host, limit):
    """The `Allocation` of rates under limits; they rise with v, as in `spend`."""
    bandwidth = checks.positive_number("bandwidth", bandwidth)
    low, high, price = (
        np.broadcast_to(np.asarray(each, float), slope.shape)
        for each in (min_rate, max_rate, price)
    )
    checks.require("min_rate", low, "at most max_rate", low <= high)
    if (price * low).sum() > bandwidth * (1 + _ROUNDING):
        raise ValueError(
            f"min_rate must spend at most the bandwidth, {bandwidth}, "
            f"got {(price * low).sum()}"
        )
    pages = *pages, low, high
    budget, together = np.array([bandwidth]), np.zeros(slope.size, dtype=np.intp)
    near = None
    if slope.size > _FEW:
        few = slice(None, None, slope.size // _FEW)
        some = [array[few].copy() for array in (price, slope, together, *pages)]
        share = some[0].size / slope.size
        near, _ = spend(rates, some[3:], some[0], budget * share, *some[1:3])
        near = near[0] if 0 < near[0] < np.inf else None
    if host is None:
        host_price = None
        v, rate = spend(rates, pages, price, budget, slope, together, near)
    else:
        limit = np.asarray(limit, float)
        least = np.bincount(host, price * low, limit.size)
        fits = least <= limit * (1 + _ROUNDING)
        checks.require("min_rate", least, "within the limits of hosts", fits)
        of_host, at_limit = spend(rates, pages, price, limit, slope, host)

        def within(v, at_limit, *pages):
            rate = rates(v, *pages)
            full = np.bincount(host, price * rate, limit.size) > limit
            return np.where(full[host], at_limit, rate)

        known = at_limit, *pages
        v, rate = spend(within, known, price, budget, slope, together, near)
        host_price = np.maximum(of_host**-2.0 - v**-2.0, 0.0)
    spent = (price * rate).sum()
    if not (v[0] == np.inf or abs(spent - bandwidth) <= _SPENT * bandwidth):
        raise ConvergenceError(f"rates must spend {bandwidth}, got {spent}", rate)
    return Allocation(rate, (v[0] ** -2.0).item(), host_price)


@np.errstate(over="ignore")
def optimal(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    objective: str = "freshness",
    min_rate: ArrayLike = 0.0,
    max_rate: ArrayLike = np.inf,
    price: ArrayLike = 1.0,
    host: ArrayLike | None = None,
    host_limit: ArrayLike | None = None,
) -> Allocation:
    r"""Crawl at equal intervals with the rates of least cost, under limits.

    For the mean cost J of a page, see `objectives`, and the price c of a crawl,

    .. math:: \min \sum_i \mu_i J_i(\rho_i) \quad\text{subject to }
              \sum_i c_i \rho_i \le R, \quad
              \sum_{i \in h} c_i \rho_i \le R_h, \quad
              l_i \le \rho_i \le u_i .

    Parameters
    ----------
    change_rate, importance : array_like, shape (n_pages,)
        1/time, and any unit. A page that never changes, or has no importance, gets
        its least rate.
    bandwidth : float, price/time
        What may be spent: crawls per unit of time where each costs 1.
    objective : str, default "freshness"
        A key of `objectives.CODES`.
    min_rate, max_rate : array_like, 1/time, default 0 and inf
        Least and greatest rate of each page.
    price : array_like, positive, default 1
        What one crawl of a page spends.
    host : int ndarray, shape (n_pages,), optional
        Index of the host of each page.
    host_limit : array_like, shape (n_hosts,), price/time
        What each host allows to be spent, inf for no limit.

    Returns
    -------
    Allocation
        Rates, multiplier, prices of the limits of hosts.

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
    d, mu = checks.broadcast(
        change_rate=checks.non_negative("change_rate", change_rate),
        importance=checks.non_negative("importance", importance),
    )
    code, value = CODES[objective], mu / price

    def rates(v, d, value, low, high):
        return objectives.rates(code, d, value, low, high, v)

    slope = np.sqrt(value * (1.0 if objective == "age" else d))
    pages, limits = (d, value), (min_rate, max_rate, price, host, host_limit)
    return _limited(rates, pages, slope, bandwidth, *limits)


def even(
    importance: Array,
    bandwidth: float,
    *,
    min_rate: ArrayLike = 0.0,
    max_rate: ArrayLike = np.inf,
    price: ArrayLike = 1.0,
    host: ArrayLike | None = None,
    host_limit: ArrayLike | None = None,
) -> Allocation:
    """Crawl all pages of importance at one rate, except where limits forbid it.

    Parameters
    ----------
    importance, bandwidth, min_rate, max_rate, price, host, host_limit
        As in `optimal`.

    Returns
    -------
    Allocation
        As that of `optimal`.
    """
    counts = np.where(importance > 0, 1.0, 0.0)
    no_limits = host is None and np.all(min_rate == 0) and np.all(max_rate == np.inf)
    if no_limits and counts.any():  # there is nothing to search
        rate = checks.positive_number("bandwidth", bandwidth) / np.sum(counts * price)
        return Allocation(counts * rate, rate**-2.0)

    def rates(v, counts, low, high):
        return np.clip(np.where(counts > 0, v, 0.0), low, high)

    limits = min_rate, max_rate, price, host, host_limit
    return _limited(rates, (counts,), counts, bandwidth, *limits)


@np.errstate(all="ignore")  # pages that are not crawled
def optimal_thresholds(pages: SignalledPages, bandwidth: float) -> Allocation:
    r"""Thresholds of highest freshness for pages with signals.

    As `paperlib.allocation.optimal_thresholds`, with the search of this module and
    compiled steps, 20 times as fast.

    Parameters
    ----------
    pages : SignalledPages
        Pages and their signals. Recall 1 is taken as 1 - 1e-15.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, multiplier, thresholds.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> plan = optimal_thresholds(pages, 2.0)
    >>> plan.crawl_rate.round(3), plan.threshold.round(3)
    (array([0.834, 1.166]), array([2.117, 2.509]))
    """
    counts = (pages.change_rate > 0) & (pages.importance > 0)
    d, mu = np.where(counts, (pages.change_rate, pages.importance), 1.0)
    start = np.where(counts, np.sqrt(d / mu), np.inf)
    recall = np.minimum(pages.recall, ALMOST_ALL)
    lemma = freshness.lemma_4_rates(SignalledPages(d, mu, recall, pages.false_rate))
    known = tuple(map(np.array, (start, d, pages.false_rate, *lemma)))

    def cycle(v, start, *lemma):
        threshold, psi = np.empty((2, start.size))
        allocation.thresholds((start / v) ** 2, *lemma, threshold, psi)
        return threshold, psi

    def rates(v, *known):
        return 1 / cycle(v, *known[:-2])[1]

    slope = np.where(counts, np.sqrt(mu * d), 0.0)
    limits = 0.0, np.inf, 1.0, None, None
    plan = _limited(rates, known, slope, bandwidth, *limits)
    threshold, _ = cycle(plan.multiplier**-0.5, *known)
    return Allocation(plan.crawl_rate, plan.multiplier, threshold=threshold)
