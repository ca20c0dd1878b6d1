r"""Spend a bandwidth on pages: the crawl rate of each page.

All functions here answer one question: of `bandwidth` crawls per unit time,
how many should each page get? They differ in how pages are crawled and in what
is to be maximised.

============================ ============================ ====================
function                     crawls, and what is optimal  source
============================ ============================ ====================
`uniform`, `proportional`    any; heuristics              valuetools20, aaai20
`optimal`                    equal intervals or Poisson   www25, eq. (5)
                             times; any objective, under
                             limits of pages and hosts
`optimal_thresholds`         when signals and time reach  www25, Theorem 1
                             a threshold; freshness
============================ ============================ ====================

The optima share their theory. The objective is a sum over pages of concave
functions of the crawl rates, so that rates are optimal if and only if the
marginal gain of every crawled page is one number, the multiplier, and that of
every other page at most as large:

.. math:: \mu_i\,\frac{\partial F_i}{\partial \rho_i} = \lambda
          \quad\text{where } \rho_i > 0, \qquad
          \mu_i\,\frac{\partial F_i}{\partial \rho_i} \le \lambda
          \quad\text{where } \rho_i = 0 .

(Deadlines at equal intervals are a knapsack, see `optimal`.)
The total of the rates falls as the multiplier grows; each function finds the
multiplier at which it is the bandwidth. Change rates and importances have
shape (..., n_pages), and each leading index is a problem of its own.

All numbers that are given must be 0 or between 1e-100 and 1e100, or inf where that
stands for no limit. With `optimal`, costs and objectives other than freshness may
need them between 1e-50 and 1e50, or the search may fail with a ConvergenceError.
A multiplier or a price beyond floating point is 0 or inf.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paperlib.signals import SignalledPages
from recrawl import checks
from recrawl.checks import parameters
from recrawl.errors import ConvergenceError
from recrawl.kernels import allocation as kernels
from recrawl.kernels import crawl_value, threads_for
from recrawl.science import freshness, hosts, objectives

if TYPE_CHECKING:
    from recrawl.science.objectives import Objective

__all__ = [
    "Allocation",
    "optimal",
    "optimal_thresholds",
    "proportional",
    "uniform",
]


# Relative error to which rates sum to the bandwidth: the sum of millions of
# rates is not known better.
_SPENT = 1e-12
# Between numbers that differ by a larger factor the search bisects the exponent.
_BISECT_EXPONENT_ABOVE = 1e3
# The first bracket of v = 1 / sqrt(multiplier) for pages with signals is this
# factor to either side of the v without signals, and widened where needed.
_NEAR = 1.05
# Rates above 1 / tau miss no deadline at equal intervals; at Poisson times,
# above this / tau, the share of late changes, exp(-rate tau), is below 1e-260.
_NEVER_LATE = 600.0
# The dimension of the multiplier is importance x time^k; k is 1 except here.
_POWERS_OF_TIME = {"age": 2, "age_of_information": 2, "deadline": 0}
# A problem with a number beyond this or its inverse is solved in other units: the
# search multiplies and divides several such numbers.
_RESCALE_BEYOND = 1e30
# Change rates are clipped to this times the bandwidth, and to its inverse: the page is
# never fresh then, or always.
_CLIP_RATE = 1e120
# Arguments must lie between these, so that two of them can be multiplied or divided.
_LEAST, _GREATEST = 1e-100, 1e100
# Relative width of the last bracket of v, some rounding errors: where crawl values are
# flat, thresholds and rates differ by far more between its ends.
_WIDTH = 2e-15
# Bounds of v = 1 / sqrt(multiplier), as v^2 is a number too.
_LEAST_V, _GREATEST_V = 1e-150, 1e150


@dataclass(frozen=True, eq=False)
class Allocation:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (..., n_pages), 1/time
        Sums to the bandwidth over the last axis, or to less where no page
        gains by more crawls or limits of hosts leave some over.
    multiplier : ndarray, shape (...), importance x time
        What a little more bandwidth adds to the sum of importance x freshness;
        0 where bandwidth is left over, NaN for a heuristic. For `optimal`: by
        how much a little more bandwidth lowers the cost.
    freshness : ndarray, shape (...)
        Expected freshness over pages weighted by importance, in [0, 1].
    threshold : ndarray, shape (n_pages,), time, default None
        Effective elapsed time at which a page is due; None unless the
        allocation is one of thresholds.
    cost : ndarray, shape (...), default None
        Sum over pages of importance x cost of the objective, which `optimal`
        minimises; None for other allocations, as are the prices.
    price_min_rate, price_max_rate : ndarray, shape (..., n_pages), optional
        Prices of the limits of each page: by how much the cost falls per unit
        by which the least rate of the page is lowered, or its greatest rate
        raised. 0 where the limit is not active. For a page that is not crawled,
        `price_min_rate` is by how much the first crawl per unit of time would
        cost more, at the multiplier, than it saves.
    price_host : dict, default None
        From the label of each host that uses its limit up to the price of the
        limit: by how much the cost falls per unit by which it is raised.

    Examples
    --------
    >>> plan = uniform([1.0, 3.0], 1.0, 4.0)
    >>> plan.crawl_rate, plan.freshness.round(3)
    (array([2., 2.]), np.float64(0.533))
    """

    crawl_rate: np.ndarray
    multiplier: np.ndarray
    freshness: np.ndarray
    threshold: np.ndarray | None = None
    cost: np.ndarray | None = None
    price_min_rate: np.ndarray | None = None
    price_max_rate: np.ndarray | None = None
    price_host: dict | None = None


def _in_range(**arguments):
    """Raise unless all positive numbers are in the range that is computed with."""
    for name, array in arguments.items():
        array = np.asarray(array)
        inside = (array >= _LEAST) & (array <= _GREATEST)
        if not inside.all():
            inside |= (array == 0) | (array == np.inf)
            rule = f"between {_LEAST} and {_GREATEST} where it is not 0 or inf"
            checks.require(name, array, rule, inside)


def _problem(change_rate, importance, bandwidth):
    """The checked arguments of an allocation, broadcast."""
    change_rate = checks.non_negative("change_rate", change_rate)
    importance = checks.non_negative("importance", importance)
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    _in_range(change_rate=change_rate, importance=importance, bandwidth=bandwidth)
    if change_rate.ndim == importance.ndim == 0:
        raise ValueError("change_rate must be an array of pages, got a single number")
    change_rate, importance = checks.broadcast(
        change_rate=change_rate, importance=importance
    )
    if not change_rate.shape[-1]:
        raise ValueError(
            f"change_rate must hold at least one page, got shape {change_rate.shape}"
        )
    if not importance.any(axis=-1).all():
        raise ValueError(
            "importance must be positive for at least one page, got only zeros"
        )
    return change_rate, importance, bandwidth


def _allocation(crawl_rate, multiplier, change_rate, importance, model):
    fresh = model(change_rate, crawl_rate)
    return Allocation(crawl_rate, multiplier, freshness.mean(fresh, importance))


def _in_proportion(share, change_rate, importance, bandwidth, model):
    share = share / _power_of_4(share.max())
    unit = _power_of_4(bandwidth)
    rate = bandwidth / unit * share / share.sum(axis=-1, keepdims=True) * unit
    none = np.full(rate.shape[:-1], np.nan)[()]
    return _allocation(rate, none, change_rate, importance, model)


def uniform(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    model: Callable[..., Any] = freshness.poisson,
) -> Allocation:
    r"""Crawl every page at the same rate.

    .. math:: p_i = R / n

    Parameters
    ----------
    change_rate : array_like, shape (..., n_pages), 1/time, non-negative
        Used for the freshness that is reported.
    importance : array_like, shape (..., n_pages), non-negative
        Likewise; broadcasts with `change_rate`.
    bandwidth : float, 1/time, positive
        Crawls of all pages.
    model : callable, default `freshness.poisson`
        Freshness from change rate and crawl rate: `freshness.poisson` or
        `freshness.interval`.

    Returns
    -------
    Allocation
        With multiplier NaN.

    Raises
    ------
    ValueError
        Arguments out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form of freshness is `tests.plain.poisson_freshness`.

    Examples
    --------
    >>> uniform([1.0, 2.0, 3.0], 1.0, 6.0).crawl_rate
    array([2., 2., 2.])
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    share = np.ones(change_rate.shape)
    return _in_proportion(share, change_rate, importance, bandwidth, model)


def proportional(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    to: Literal["change_rate", "importance"] = "change_rate",
    model: Callable[..., Any] = freshness.poisson,
) -> Allocation:
    r"""Crawl pages in proportion to their change rates or importances.

    .. math:: p_i = R\, \Delta_i / \sum_j \Delta_j \quad\text{or}\quad
        p_i = R\, \mu_i / \sum_j \mu_j

    Parameters
    ----------
    change_rate : array_like, shape (..., n_pages), 1/time, non-negative
        Change rates.
    importance : array_like, shape (..., n_pages), non-negative
        Importances; they broadcast with `change_rate`.
    bandwidth : float, 1/time, positive
        Crawls of all pages.
    to : {"change_rate", "importance"}, default "change_rate"
        What the crawl rates are proportional to.
    model : callable, default `freshness.poisson`
        Freshness from change rate and crawl rate: `freshness.poisson` or
        `freshness.interval`.

    Returns
    -------
    Allocation
        With multiplier NaN.

    Raises
    ------
    ValueError
        Arguments out of range; what the rates are proportional to is zero for
        all pages.

    Examples
    --------
    >>> proportional([1.0, 3.0], [2.0, 1.0], 8.0).crawl_rate
    array([2., 6.])
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    checks.one_of("to", to, ("change_rate", "importance"))
    share = change_rate if to == "change_rate" else importance
    if not share.any(axis=-1).all():
        raise ValueError(f"{to} must be positive for at least one page, got only zeros")
    return _in_proportion(share, change_rate, importance, bandwidth, model)


def optimal(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    objective: Objective = objectives.freshness,
    crawls: Literal["interval", "poisson"] = "interval",
    min_rate: ArrayLike = 0.0,
    max_rate: ArrayLike = np.inf,
    cost: ArrayLike = 1.0,
    host: ArrayLike | None = None,
    host_limit: float | Mapping[Any, float] = np.inf,
) -> Allocation:
    r"""Crawl with the rates of least cost, under limits of pages and hosts.

    For an objective with the mean cost J(rho) of a page, see `objectives`,

    .. math:: \min \sum_i \mu_i J_i(\rho_i) \quad\text{subject to }
              \sum_i c_i \rho_i \le R, \quad
              \sum_{i \in h} c_i \rho_i \le R_h, \quad
              l_i \le \rho_i \le u_i .

    Rates are optimal if and only if each is between its limits where its
    marginal gain is what it spends at the multiplier and at the price of its
    host, and is at a limit where it would be beyond:

    .. math:: -\mu_i J_i'(\rho_i) = c_i (\lambda + \nu_{h(i)})
              \quad\text{where } l_i < \rho_i < u_i .

    Parameters
    ----------
    change_rate : array_like, shape (..., n_pages), 1/time, non-negative
        Change rates; each leading index is a problem of its own.
    importance : array_like, shape (..., n_pages), non-negative
        Importances; they broadcast with `change_rate`, as do the limits.
    bandwidth : float, cost/time, positive
        What may be spent: crawls per unit of time where each costs 1.
    objective : objectives.Objective, default `objectives.freshness`
        What a stale copy costs.
    crawls : {"interval", "poisson"}, default "interval"
        Crawls of a page at equal intervals, or at Poisson times.
    min_rate : float or array_like, 1/time, default 0
        Least rate: a greatest interval w is ``min_rate=1 / w``.
    max_rate : float or array_like, 1/time, default inf
        Greatest rate: a least interval w is ``max_rate=1 / w``.
    cost : float or array_like, positive, default 1
        What one crawl of a page spends, in the unit of the bandwidth.
    host : array_like of int or str, shape (n_pages,), optional
        Label of the host of each page; None puts all pages on one host.
    host_limit : float, or mapping from host to float, cost/time, default inf
        What each host allows to be spent; or the hosts named, the others have
        no limit. At 0 no page of the host is crawled. With limits, there is
        one problem, of shape (n_pages,).

    Returns
    -------
    Allocation
        With cost, and the price of each active limit. `freshness` is that of
        the rates, whatever the objective. A page that no crawl helps (one that
        never changes, or has no importance) gets `min_rate`. Where limits
        leave bandwidth over, the multiplier is 0.

    Raises
    ------
    ValueError
        Arguments out of range; no page with importance; an unknown objective;
        `min_rate` above `max_rate`, or more than the bandwidth or a host allow;
        host labels not one for each page; a limit for a host that has no page.
    ConvergenceError
        No solution was found.

    Notes
    -----
    The plain form is `tests.recrawl.plain.optimal`. Rates sum to the bandwidth
    to a relative error of 1e-12. Deadlines at equal intervals are a knapsack:
    pages get 1 / tau in order of falling importance x change_rate / cost, and
    the last one what remains. Pages whose values differ by rounding only
    share the bandwidth that is left for them.

    Examples
    --------
    >>> plan = optimal(
    ...     [0.2, 1.0, 5.0, 0.5], [1.0, 1.0, 2.0, 0.5], 4.0, crawls="poisson",
    ...     min_rate=[0.0, 0.1, 0.0, 0.3], max_rate=[0.6, 9.0, 9.0, 9.0],
    ...     cost=[1.0, 2.0, 1.0, 0.5],
    ... )
    >>> plan.crawl_rate.round(3), plan.price_max_rate.round(3)
    (array([0.6  , 0.528, 1.831, 1.028]), array([0.098, 0.   , 0.   , 0.   ]))
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    if not isinstance(objective, objectives.Objective):
        known = ", ".join(objectives.__all__[1:])
        raise ValueError(
            f"objective must be an objectives.Objective ({known}), got {objective!r}"
        )
    checks.one_of("crawls", crawls, ("interval", "poisson"))
    pages = _limited_pages(change_rate, importance, min_rate, max_rate, cost)
    labels, member, limit = hosts.members(host, host_limit, pages.cost.shape[-1])
    if pages.cost.ndim > 1 and limit.min() < np.inf:
        raise ValueError(
            f"host_limit must be inf for problems of shape {pages.cost.shape[:-1]}, "
            f"got {host_limit!r}"
        )
    _in_range(host_limit=limit, tau=objective.tau)
    _check_least(pages, bandwidth, labels, member, limit)
    poisson = crawls == "poisson"
    rate, multiplier, price = _limited(
        pages, objective, poisson, bandwidth, member, limit
    )
    return _priced(pages, objective, poisson, rate, multiplier, price, member, labels)


def optimal_thresholds(pages: SignalledPages, bandwidth: float) -> Allocation:
    r"""Crawl pages with signals at the thresholds of highest freshness.

    Theorem 1 and Lemma 2 of [www25]_: a page is crawled when its effective
    elapsed time reaches its threshold iota, at the crawl rate 1 / psi(iota);
    the thresholds are optimal where

    .. math:: V_i(\iota_i) = \lambda
              \quad\text{for the pages that are crawled},
              \qquad \mu_i / \Delta_i \le \lambda \quad\text{for the others.}

    Parameters
    ----------
    pages : SignalledPages
        Pages and their signals.
    bandwidth : float, 1/time, positive
        Crawls of all pages.

    Returns
    -------
    Allocation
        The threshold is inf for a page that is never crawled, and also for one
        whose changes are all signalled (recall 1), which no time alone makes
        due: its crawl_rate, positive, says that it is crawled after
        gamma / crawl_rate signals. Where no page gains by more crawls,
        bandwidth is left over and the multiplier is 0: pages that never change
        or have no importance get none, and one of recall 1 is crawled at each
        signal.

    Raises
    ------
    ValueError
        A bandwidth that is not positive and finite.
    ConvergenceError
        No solution was found.

    Notes
    -----
    The plain form is `tests.plain.optimal_thresholds`; those of V and
    psi are `tests.plain.crawl_value` and
    `tests.plain.mean_crawl_interval`. At recall 1, or within about 1e-12 of
    it, the crawl rate is a step function of the multiplier, one step for each
    whole number of signals. Where the bandwidth lies between the two sides of a
    step, the crawl rate of that page is interpolated;
    it is the only one that is not 1 / `freshness.cycle_length`.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> plan = optimal_thresholds(pages, 2.0)
    >>> plan.crawl_rate.round(3), plan.threshold.round(3)
    (array([0.834, 1.166]), array([2.117, 2.509]))
    """
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    checks.instance("pages", pages, SignalledPages)
    constants = crawl_value.page_constants(**parameters(pages), terms=crawl_value.EXACT)
    limit, alpha, gamma = constants["limit"], constants["alpha"], pages.gamma
    gains = limit > 0
    state, rate = np.zeros(limit.size), np.where(gains, gamma, 0.0)
    multiplier = 0.0
    if (gains & (alpha > 0)).any() or rate.sum() > bandwidth:
        at_one = crawl_value.values_at_one(constants)

        def spent(multiplier):
            return crawl_value.threshold_rates(
                multiplier, constants, at_one, gamma, state, rate
            )

        unsignalled = optimal(pages.change_rate, pages.importance, bandwidth)
        guess = 1.0 / np.sqrt(unsignalled.multiplier)
        multiplier = _spend(spent, rate, bandwidth, guess / _NEAR, guess * _NEAR)
        if np.isnan(multiplier) or np.isnan(rate).any():
            raise ConvergenceError("the thresholds did not converge", rate)
        # the states at the multiplier itself; the rates stay interpolated
        crawl_value.threshold_rates(
            multiplier, constants, at_one, gamma, state, np.empty_like(rate)
        )
    return _threshold_allocation(pages, rate, multiplier, alpha, state)


def _threshold_allocation(pages, rate, multiplier, alpha, state):
    """Allocation of pages that are crawled at u = alpha iota = state."""
    crawled = rate > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = np.where(crawled & (alpha > 0), state / alpha, np.inf)
        # w / psi = V / (importance psi) + exp(-alpha iota), by Lemma 4
        fresh = multiplier * rate / pages.importance + np.exp(-state)
    fresh = np.where(crawled, fresh, pages.change_rate == 0)
    return Allocation(
        rate, multiplier, freshness.mean(fresh, pages.importance), threshold
    )


# ------------------------------ limits of pages and hosts


class _Pages(NamedTuple):
    """The pages of `optimal`: arrays of one shape, (..., n_pages)."""

    change_rate: np.ndarray
    importance: np.ndarray
    min_rate: np.ndarray
    max_rate: np.ndarray
    cost: np.ndarray


def _limited_pages(change_rate, importance, min_rate, max_rate, cost):
    """The checked `_Pages`, broadcast."""
    limits = {
        "min_rate": checks.non_negative("min_rate", min_rate),
        "max_rate": checks.non_negative_or_inf("max_rate", max_rate),
        "cost": checks.positive("cost", cost),
    }
    _in_range(**limits)
    pages = _Pages(
        *checks.broadcast(change_rate=change_rate, importance=importance, **limits)
    )
    below = pages.min_rate <= pages.max_rate
    checks.require("min_rate", pages.min_rate, "at most max_rate", below)
    return pages


def _check_least(pages, bandwidth, labels, member, limit):
    """Raise unless the least rates fit the bandwidth and the limits of hosts."""
    least = (pages.cost * pages.min_rate).reshape(-1, member.size)
    if not least.any():
        return
    of_hosts = [np.bincount(member, problem) for problem in least]
    needed = np.append(np.max(of_hosts, axis=0), least.sum(axis=1).max())
    allowed = np.append(limit, bandwidth)
    above = needed > allowed * (1 + _SPENT)
    if above.any():
        worst = np.argmax(needed - allowed)
        name = "bandwidth"
        if worst < limit.size:
            name = f"limit of host {labels[worst]!r}"
        raise ValueError(
            f"min_rate must spend at most the {name}, {allowed[worst]}, "
            f"got {needed[worst]}, {needed[worst] - allowed[worst]:.6g} too much "
            f"({above.sum()} of {above.size} limits are exceeded, this one most)"
        )


def _records(pages, objective, tau, poisson):
    """The pages of one problem, as the kernels take them."""
    records = np.empty(pages.cost.size, kernels.PAGE)
    gains = objective.limit(pages.change_rate) > 0
    records["change_rate"], records["cost"] = pages.change_rate, pages.cost
    records["value_per_cost"] = np.where(gains, pages.importance / pages.cost, 0.0)
    records["low"], records["high"] = pages.min_rate, pages.max_rate
    if tau < np.inf:
        enough = _NEVER_LATE if poisson else 1.0
        records["high"] = np.clip(enough / tau, pages.min_rate, pages.max_rate)
    return records


def _limited(pages, objective, poisson, bandwidth, member, limit):
    """Rates, multiplier, and price of the limit of each host."""
    # a power of 4, by which division is exact
    cost_unit = _power_of_4(math.sqrt(pages.cost.min()) * math.sqrt(pages.cost.max()))
    pages = pages._replace(cost=pages.cost / cost_unit)
    bandwidth, limit = bandwidth / cost_unit, limit / cost_unit
    offsets = np.append(0, np.cumsum(np.bincount(member)))
    by_host = slice(None)
    if limit.size > 1:
        by_host = kernels.pages_by_host(member, offsets)
    price = np.zeros(limit.size)
    power = _POWERS_OF_TIME.get(objective.name, 1)

    def one_problem(scaled_bandwidth, *arrays):
        row, rate = _Pages(*arrays[:-1]), arrays[-1]
        unit = bandwidth / scaled_bandwidth  # of rates here
        tau, allowed = objective.tau * unit, limit / unit
        records = _records(row, objective, tau, poisson)
        asked = np.empty(limit.size)  # what each host spends at the multiplier alone
        given = records, (objective.code, tau, poisson), offsets, allowed
        multiplier = kernels.limited_rates(*given, scaled_bandwidth, rate, asked)
        full = asked > allowed
        if full.any():
            own = np.zeros(limit.size)  # multipliers of these hosts
            kernels.host_rates(*given, asked, rate, own)
            price[full] = np.maximum(own[full] - multiplier, 0.0)
        return np.append(multiplier, price) * unit ** (1 - power)

    change_rate, importance, low, high, cost = (a[..., by_host] for a in pages)
    rate, found = _each_problem(
        one_problem, bandwidth, change_rate, importance, (low, high), (cost,)
    )
    unsorted = np.empty_like(rate)
    unsorted[..., by_host] = rate
    with np.errstate(over="ignore"):
        found = found / cost_unit
    return unsorted, found[0], found[1:] if rate.ndim == 1 else price


# Beyond floating point costs and prices are inf, and inf - inf on a host that
# allows nothing is NaN, which fmax takes for 0: no warning.
@np.errstate(over="ignore", invalid="ignore")
def _priced(pages, objective, poisson, rate, multiplier, price, member, labels):
    """What `optimal` returns: with the cost and the prices of the limits."""
    change_rate, importance, low, high, cost = pages
    model = freshness.poisson if poisson else freshness.interval
    mean_cost = objective.poisson_cost if poisson else objective.interval_cost
    matters = importance > 0  # 0 of an infinite cost is 0
    paid = np.multiply(
        importance,
        mean_cost(change_rate, rate),
        where=matters,
        out=np.zeros(rate.shape),
    )
    at_low, at_high = rate == low, rate == high
    more = -cost * (np.expand_dims(multiplier, -1) + price[member])
    here = (at_low | at_high) & matters
    gain = _marginal(objective, poisson, rate[here], change_rate[here])
    more[here] += importance[here] * gain
    return Allocation(
        rate,
        multiplier,
        freshness.mean(model(change_rate, rate), importance),
        cost=paid.sum(axis=-1),
        price_min_rate=np.where(at_low, np.fmax(-more, 0.0) + 0.0, 0.0),  # not -0
        price_max_rate=np.where(at_high, np.fmax(more, 0.0) + 0.0, 0.0),
        price_host=_by_label(labels, price),
    )


def _by_label(labels, price):
    """The prices that are not 0, by label."""
    return {
        label: value
        for label, value in zip(labels, price.tolist(), strict=True)
        if value > 0
    }


def _marginal(objective, poisson, rate, change_rate):
    """What one more crawl per unit of time saves at a rate."""
    if poisson:
        return objective.poisson_value(change_rate, rate)
    with np.errstate(divide="ignore"):
        return objective.value(1.0 / rate, change_rate)


# ------------------------------ the searches for the multiplier


def _spend(spent, rate, bandwidth, left, right):
    """The multiplier at which a bandwidth is spent; sets the rates.

    ``spent(multiplier)`` writes `rate` and returns its sum, which falls as the
    multiplier grows. The search is in v = 1 / sqrt(multiplier), in which the
    sum rises, often nearly in proportion; left < right are guesses of v. NaN
    where no v in floating point spends the bandwidth.
    """
    # Imported here, because it takes as long as the rest of this module.
    from scipy.optimize import brentq

    # On both sides of the bandwidth: v, what it spends too much, and its rates. The
    # last v that is tried on a side is the nearest one. The rates are kept, as
    # `spent` may depend on the v before.
    below = above = None

    @functools.cache  # each is a pass over all pages
    def excess(v):
        nonlocal below, above
        over = spent(1.0 / v / v) - bandwidth
        if over > 0:
            above = v, over, rate.copy()
        else:
            below = v, over, rate.copy()
        return over

    while excess(left) > 0 and left > _LEAST_V:  # with growing strides
        left, right = max(left * (left / right) ** 2, _LEAST_V), left
    while excess(right) < 0 and right < _GREATEST_V:
        stride = right / left
        left, right = right, min(right * stride * stride, _GREATEST_V)
    while right > _BISECT_EXPONENT_ABOVE * left:  # halve the range of the exponents
        middle = math.sqrt(left) * math.sqrt(right)
        left, right = (left, middle) if excess(middle) > 0 else (middle, right)
    if not excess(left) <= 0 <= excess(right):
        return math.nan
    brentq(excess, left, right, xtol=_LEAST_V, rtol=_WIDTH, maxiter=1000)
    # Interpolate between the rates at the ends of the last bracket: the error is
    # of the order of its width squared. Where the sum jumps across the bandwidth
    # between neighbouring numbers (bandwidth is scarce, or pages are equal), this
    # takes the share of the jump that spends the bandwidth.
    left, too_little, rate[:] = below
    right, too_much, upper = above or below
    share = too_little / (too_little - too_much) if too_much > too_little else 0.0
    rate += (upper - rate) * share
    return (left + share * (right - left)) ** -2


def _each_problem(solve, bandwidth, change_rate, importance, rates=(), others=()):
    """Rates and multipliers of the problems of all leading indices.

    ``solve(bandwidth, *rows, rate)`` gets one row of each array, writes the rates
    and returns the multiplier, or an array that begins with it; NaN means that it
    did not converge.
    Where products of several numbers might leave the range of floating point,
    `solve` gets the arguments in other units of time and of importance. These
    are powers of 4: division by them, and by their roots, is exact.
    """
    shape = change_rate.shape
    rows = [
        np.ascontiguousarray(a, dtype=float).reshape(-1, a.shape[-1])
        for a in (change_rate, importance, *rates, *others)
    ]
    rate, found = np.empty(rows[0].shape), []
    extremes = bandwidth, rows[0].max(), rows[1].max()
    far = not 1 / _RESCALE_BEYOND < min(extremes) <= max(extremes) < _RESCALE_BEYOND
    unit = _power_of_4(bandwidth) if far else 1.0
    importance_unit = np.ones(len(rate))
    with threads_for(shape[-1]), np.errstate(over="ignore"):
        for i, given in enumerate(zip(*rows, strict=True)):
            if far:
                importance_unit[i], given = _rescaled(given, unit, len(rates))
            # Read-only, whatever came in: for numba that is part of the type, and a
            # kernel would be compiled once more for arrays that can be written.
            for row in given:
                row.flags.writeable = False
            found.append(solve(bandwidth / unit, *given, rate[i]))
    found = np.array(found).T
    if far:
        rate *= unit
        with np.errstate(over="ignore"):
            found *= importance_unit / unit
    if np.isnan(found).any() or np.isnan(rate).any():
        raise ConvergenceError("the allocation did not converge", rate.reshape(shape))
    return rate.reshape(shape), found.reshape(found.shape[:-1] + shape[:-1])[()]


def _rescaled(row, unit, n_rates):
    """Unit of importance of one problem, and its row in that and the unit of rates."""
    d, mu, *more = row
    importance_unit = _power_of_4(mu.max(where=d > 0, initial=0.0))
    d = np.where(d > 0, np.clip(d / unit, 1 / _CLIP_RATE, _CLIP_RATE), 0)
    rates = (x / unit for x in more[:n_rates])
    return importance_unit, (d, mu / importance_unit, *rates, *more[n_rates:])


def _power_of_4(x):
    """The power of 4 next to x, or 1 where x is 0."""
    return 4.0 ** round(math.log(x, 4)) if x else 1.0
