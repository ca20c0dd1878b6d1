r"""Crawl rates that spend a bandwidth: uniform, proportional, and three optima.

`optimal_poisson` is eq. (6) of Upadhyay et al. (2020), also stated below eq. (10) of
Avrachenkov, Patil, Thoppe (2020). `optimal_interval` is BASELINE, eq. (5) of
Busa-Fekete et al. (2025). `optimal_thresholds` is their Theorem 1, with signals.

The three optima share one theory. The sum of importance x freshness over pages is
concave in the crawl rates. Rates are therefore optimal if one more crawl gains the
multiplier :math:`\lambda` on each crawled page, and at most :math:`\lambda` on the
other pages:

.. math:: \mu_i\,\frac{\partial F_i}{\partial p_i} = \lambda
          \quad\text{if } p_i > 0, \qquad \le \lambda \quad\text{otherwise.}

Change rates and importances broadcast to shape (..., n_pages). Each leading index
is a separate problem. A page that never changes, or has no importance, gets no
crawls. The rates of each problem sum to the bandwidth. If no page gains from a
crawl, all rates and the multiplier are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from . import checks, freshness
from .errors import ConvergenceError
from .lemma_4 import compiled, inverse_value, lemma_4_rates, threshold
from .signals import SignalledPages

# Rates are interpolated between two points, at this relative distance below and above
# the root. It exceeds the rounding of rates, so that the two sums of rates differ.
NEXT = 1e-12
SMALLEST = 1e-300  # v with which the search begins
SPENT = 1e-9  # largest relative difference between the sum of rates and the bandwidth
# Recall 1 is replaced by this number, so that effective times are finite.
ALMOST_ALL = 1 - 1e-15


@dataclass(frozen=True, eq=False)
class Allocation:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (..., n_pages), 1/time
        Crawl rate of each page.
    multiplier : ndarray, shape (...), importance x time
        Derivative of the sum of importance x freshness with respect to
        bandwidth; None for a heuristic.
    freshness : ndarray, shape (...)
        Expected mean over pages, weighted by importance.
    threshold : ndarray, shape (n_pages,), time, optional
        Effective elapsed time at which a page is crawled, inf for a page that
        is not crawled. Only `optimal_thresholds` returns it.
    """

    crawl_rate: NDArray
    multiplier: NDArray | None
    freshness: NDArray
    threshold: NDArray | None = None


def problem(
    change_rate: ArrayLike, importance: ArrayLike, bandwidth: float
) -> tuple[NDArray, NDArray, float]:
    """Check the arguments of an allocation and broadcast them."""
    d, mu = checks.broadcast(
        change_rate=np.atleast_1d(change_rate), importance=importance
    )
    if not d.shape[-1]:
        raise ValueError("change_rate must have at least one page, got none")
    return d, mu, checks.number("bandwidth", bandwidth, above=True)


def _at_poisson_times(d, mu, rate, multiplier=None):
    """Rates, and their freshness under crawls at Poisson times."""
    fresh = freshness.mean(freshness.poisson(d, rate), mu)
    return Allocation(rate, multiplier, fresh)


def uniform(
    change_rate: ArrayLike, importance: ArrayLike, bandwidth: float
) -> Allocation:
    """Crawl every page at the same rate, bandwidth / n_pages.

    R / m in Upadhyay et al. (2020); the initial rates B / N in section 5 of
    Avrachenkov, Patil, Thoppe (2022).

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, and freshness under crawls at Poisson times.
    """
    d, mu, bandwidth = problem(change_rate, importance, bandwidth)
    return _at_poisson_times(d, mu, np.full(d.shape, bandwidth / d.shape[-1]))


def proportional(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    r"""Crawl pages in proportion to their change rates.

    A heuristic: :math:`p_i = R\,\Delta_i / \sum_j \Delta_j`.

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, and freshness under crawls at Poisson times.

    Examples
    --------
    Uniform rates give more freshness (Cho and Garcia-Molina 2003):

    >>> pages = [9.0, 1.0], [1.0, 1.0], 10.0
    >>> proportional(*pages).freshness, uniform(*pages).freshness.round(3)
    (np.float64(0.5), np.float64(0.595))
    """
    d, mu, bandwidth = problem(change_rate, importance, bandwidth)
    total = checks.total("change_rate", d)[..., np.newaxis]
    return _at_poisson_times(d, mu, bandwidth * d / total)


def _start(d, mu, low=0.0):
    """Smallest v = multiplier^(-1/2) at which a page gets more than its minimum rate.

    inf for a page that gains nothing from a crawl.
    """
    start = np.full(d.shape, np.inf)
    gains = (d > 0) & (mu > 0)
    return np.divide(d + low, np.sqrt(mu) * np.sqrt(d), out=start, where=gains)


def _each_problem(solve, d, mu):
    """Rates and v of each leading index; 0 and inf if no page gains from a crawl."""
    rate = np.zeros(d.shape)
    v = np.full(d.shape[:-1], np.inf)
    gains = np.any((d > 0) & (mu > 0), axis=-1)
    for index in map(tuple, np.argwhere(gains)):
        rate[index], v[index] = solve(d[index], mu[index])
    return rate, v


def spend(
    rates: Callable[[float], NDArray],
    bandwidth: float,
    guess: float,
) -> tuple[NDArray, float]:
    """Find the multiplier at which crawl rates sum to a bandwidth.

    Parameters
    ----------
    rates : callable
        ``rates(v)``: the rates of all pages at v = multiplier^(-1/2). They rise with v,
        and their sum rises from 0 without bound.
    bandwidth : float
        Sum of the rates.
    guess : float
        Initial v. A good guess saves steps.

    Returns
    -------
    rate : ndarray
        The rates. If they jump at v, they are interpolated across the jump.
    v : float
        multiplier^(-1/2).

    Raises
    ------
    ConvergenceError
        No rates sum to the bandwidth, because the arguments are too far apart.
    """

    def excess(v):
        return np.sum(rates(v)) / bandwidth - 1

    low = high = max(float(guess), SMALLEST)
    while excess(low) > 0:
        low /= 2
    while excess(high) < 0:
        low = high
        high *= 2
    v = low
    if low < high < np.inf:
        v = brentq(excess, low, high, xtol=NEXT * low / 2, rtol=NEXT / 2, maxiter=500)
    few = rates(v - NEXT * v)
    many = rates(v + NEXT * v)
    # Rates may jump between the two: if pages of equal value change much more often
    # than they are crawled, or if a threshold is a whole number of signals.
    jump = many - few
    rest = bandwidth - np.sum(few)
    share = rest / max(np.sum(jump), SMALLEST)
    rate = few + np.clip(share, 0.0, 1.0) * jump
    spent = np.sum(rate)
    if not abs(spent - bandwidth) <= SPENT * bandwidth:
        raise ConvergenceError(f"rates must spend {bandwidth}, got {spent}")
    return rate, v


def optimal_poisson(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    min_rate: float = 0.0,
) -> Allocation:
    r"""Crawl rates of highest freshness when pages are crawled at Poisson times.

    :math:`p_i = \sqrt{\mu_i \Delta_i / \lambda} - \Delta_i`, or the minimum rate if
    that is larger: Azar et al. (2018); with `min_rate`, BinaryLambdaCrawl of Kolobov
    et al. (2019). The formula is also eq. (6) of Upadhyay et al. (2020), below eq. (10)
    of Avrachenkov, Patil, Thoppe (2020), and in section 5 of the same authors (2022).
    Pages are sorted to find :math:`\lambda`, as in the papers.

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit.
    bandwidth : float, 1/time
        Crawls of all pages together.
    min_rate : float, 1/time, default 0
        Minimum rate of each page, also of a page that gains nothing from crawls.

    Returns
    -------
    Allocation
        Rates, multiplier, freshness.

    Examples
    --------
    >>> optimal_poisson([1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 5.0).crawl_rate.round(3)
    array([1.386, 1.374, 1.133, 0.772, 0.335])
    """
    d, mu, bandwidth = problem(change_rate, importance, bandwidth)
    low = checks.number("min_rate", min_rate, high=bandwidth / d.shape[-1])
    rate, v = _each_problem(partial(_sorted_poisson, bandwidth, low), d, mu)
    rate = np.maximum(rate, low)  # also if no page gains from a crawl
    return _at_poisson_times(d, mu, rate, v**-2)


def _sorted_poisson(bandwidth, low, d, mu):
    """Rates and v of one problem; pages are added in the order of their start."""
    start = _start(d, mu, low)
    slope = np.sqrt(mu) * np.sqrt(d)
    order = np.argsort(start)
    starts = start[order]
    slopes = slope[order].cumsum()
    rest = bandwidth - low * d.size
    with np.errstate(invalid="ignore"):  # inf - inf, for pages that gain nothing
        # What the pages before spend of the rest until v comes to the start of a page.
        spent = np.append(0.0, np.cumsum(slopes[:-1] * np.diff(starts)))
        last = max(np.count_nonzero(spent < rest) - 1, 0)
        more = (rest - spent[last]) / slopes[last]
        # Not slope (v - start), because that difference may be lost to rounding.
        above = slope * (starts[last] - start + more)
    rate = low + np.where(start <= starts[last], above, 0.0)
    return rate, starts[last] + more


def optimal_interval(
    change_rate: ArrayLike, importance: ArrayLike, bandwidth: float
) -> Allocation:
    r"""Crawl rates of highest freshness when pages are crawled at equal intervals.

    BASELINE, eq. (5) of Busa-Fekete et al. (2025), the problem of Cho and
    Garcia-Molina (2003). If :math:`\mu_i / \Delta_i > \lambda`, the rate solves
    :math:`\frac{\mu_i}{\Delta_i} (1 - (1 + x) e^{-x}) = \lambda` with
    :math:`x = \Delta_i / p_i`; otherwise it is 0.

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, multiplier, freshness. If several pages are crawled less than once
        in some 30 changes, one more crawl may gain the same on each, up to
        rounding. How these pages share their crawls then does not matter.

    Examples
    --------
    >>> optimal_interval([1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 5.0).crawl_rate.round(3)
    array([1.15 , 1.358, 1.354, 1.138, 0.   ])
    """
    d, mu, bandwidth = problem(change_rate, importance, bandwidth)

    def solve(d, mu):
        start = _start(d, mu)
        rates = partial(_interval_rates, start, d)
        return spend(rates, bandwidth, _guess(start, d, bandwidth))

    rate, v = _each_problem(solve, d, mu)
    fresh = freshness.mean(freshness.interval(d, rate), mu)
    return Allocation(rate, v**-2, fresh)


# inf / inf, if no page gains from a crawl
@np.errstate(invalid="ignore", divide="ignore")
def optimal_thresholds(pages: SignalledPages, bandwidth: float) -> Allocation:
    r"""Thresholds of highest freshness for pages with signals.

    Theorem 1 and Lemma 2 of Busa-Fekete et al. (2025): a page is crawled when its
    effective elapsed time reaches the :math:`\iota_i` with :math:`V_i(\iota_i) =
    \Lambda`, and never if :math:`V_i(\infty) = \mu_i / \Delta_i \le \Lambda`. Its
    crawl rate is :math:`1 / \psi_i(\iota_i)`.

    Parameters
    ----------
    pages : SignalledPages
        Pages and their signals. Recall 1 is replaced by 1 - 1e-15.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, multiplier, freshness, thresholds. The rate of a page jumps with its
        threshold if all its signals are true, or if all its changes are signalled.
        It may then lie between the rates of two thresholds that take turns.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> plan = optimal_thresholds(pages, 2.0)
    >>> plan.crawl_rate.round(3), plan.threshold.round(3)
    (array([0.834, 1.166]), array([2.117, 2.509]))
    """
    d, mu, bandwidth = problem(pages.change_rate, pages.importance, bandwidth)
    start = _start(d, mu)
    gains = start < np.inf
    recall = np.minimum(pages.recall, ALMOST_ALL)
    # any change rate will do for a page that gains nothing from a crawl
    believed = SignalledPages(np.where(gains, d, 1.0), mu, recall, pages.false_rate)
    known = believed.change_rate, believed.false_rate, *lemma_4_rates(believed)

    def rates(v):
        return 1 / _thresholds((start / v) ** 2, *known)[1]

    guess = _guess(start, d, bandwidth)
    # one problem, whose arguments `rates` knows
    rate, v = _each_problem(lambda *_: spend(rates, bandwidth, guess), d, mu)
    at, _ = _thresholds((start / v) ** 2, *known)
    # w / psi = V / (mu psi) + exp(-alpha iota), by Lemma 4
    fresh = rate / (mu * v**2) + np.exp(-believed.alpha * at)
    fresh = np.where(gains, fresh, d == 0)
    return Allocation(rate, v**-2, freshness.mean(fresh, mu), at)


def _guess(start, d, bandwidth):
    """The v at which pages without signals would spend an abundant bandwidth.

    At abundant bandwidth d / p is sqrt(2) start / v.
    """
    return np.sqrt(2.0) * bandwidth / np.sum(d / start)


@compiled
def _interval_rates(start, d, v):
    """Rates at which 1 - (1 + x) exp(-x) = (start / v)^2 for x = d / rate."""
    rate = np.zeros(d.size)
    for i in range(d.size):
        share = (start[i] / v) ** 2
        if share < 1.0:
            rate[i] = d[i] / inverse_value(share)
    return rate


@compiled
def _thresholds(share, change_rate, false_rate, alpha, gamma, beta):
    """Thresholds at which crawl values reach a share of their limit, and psi there."""
    at = np.empty(share.size)
    psi = np.empty(share.size)
    for i in range(share.size):
        at[i], psi[i] = threshold(
            share[i], change_rate[i], false_rate[i], alpha[i], gamma[i], beta[i]
        )
    return at, psi
