r"""Crawl rates that spend a bandwidth: uniform, proportional, and three optima.

`optimal_poisson` is eq. (6) of Upadhyay et al. (2020), and below eq. (10) of
Avrachenkov, Patil, Thoppe (2020); `optimal_interval` is BASELINE, eq. (5) of
Busa-Fekete et al. (2025); `optimal_thresholds` is their Theorem 1, with signals.

The optima share their theory. The sum over pages of importance x freshness is
concave in the crawl rates, so that rates are optimal where one more crawl gains
the same everywhere, the multiplier :math:`\lambda`, and less than that on pages
that are not crawled:

.. math:: \mu_i\,\frac{\partial F_i}{\partial p_i} = \lambda
          \quad\text{where } p_i > 0, \qquad \le \lambda \quad\text{elsewhere.}

Change rates and importances broadcast to shape (..., n_pages); each leading index
is a problem of its own. A page that never changes, or has no importance, gets no
crawls. The rates of each problem sum to the bandwidth, unless no page gains by a
crawl: then they are 0, and so is the multiplier.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaincinv

from . import checks, freshness
from .signals import SignalledPages

# Strides by which the search for the multiplier looks for a bracket.
STRIDE = 8.0
# Half the relative distance of the two points that the search ends with: more than
# the rounding of rates, so that their sums differ.
NEXT = 1e-12
# Recall 1 is taken as a little less, so that effective times are finite.
ALMOST_ALL = 1 - 1e-15
# A step of Newton's method leaves at least this share of iota, of exp(-alpha iota).
LEAST_LEFT = 0.1
# Error of a crawl value, relative to itself and to w.
VALUE_ERROR = 1e-13


@dataclass(frozen=True, eq=False)
class Allocation:
    """Crawl rates that spend a bandwidth.

    Parameters
    ----------
    crawl_rate : ndarray, shape (..., n_pages), 1/time
        Crawls of each page.
    multiplier : ndarray, shape (...), importance x time
        What a little more bandwidth adds to the sum of importance x freshness;
        None for a heuristic.
    freshness : ndarray, shape (...)
        Expected mean over pages, weighted by importance.
    threshold : ndarray, shape (n_pages,), time, optional
        Of `optimal_thresholds`: effective elapsed time at which a page is
        crawled, inf for a page that is not crawled.
    """

    crawl_rate: NDArray
    multiplier: NDArray | None
    freshness: NDArray
    threshold: NDArray | None = None


def _problem(change_rate, importance, bandwidth):
    """The checked arguments, broadcast."""
    d, mu = checks.broadcast(
        change_rate=np.atleast_1d(change_rate), importance=importance
    )
    return d, mu, checks.number("bandwidth", bandwidth, above=True)


def uniform(
    change_rate: ArrayLike, importance: ArrayLike, bandwidth: float
) -> Allocation:
    """Crawl every page at the same rate, bandwidth / n_pages.

    R / m of Upadhyay et al. (2020); the first rates B / N in section 5 of
    Avrachenkov, Patil, Thoppe (2022).

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit; for the freshness at Poisson times.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, freshness.
    """
    d, mu, bandwidth = _problem(change_rate, importance, bandwidth)
    rate = np.full(d.shape, bandwidth / d.shape[-1])
    return Allocation(rate, None, freshness.mean(freshness.poisson(d, rate), mu))


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
        1/time, and any unit; for the freshness at Poisson times.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, freshness.

    Examples
    --------
    Uniform rates are fresher, whatever the pages (Cho and Garcia-Molina 2003):

    >>> pages = [9.0, 1.0], [1.0, 1.0], 10.0
    >>> proportional(*pages).freshness, uniform(*pages).freshness.round(3)
    (np.float64(0.5), np.float64(0.595))
    """
    d, mu, bandwidth = _problem(change_rate, importance, bandwidth)
    total = d.sum(axis=-1, keepdims=True)
    checks.require("change_rate", total, "positive for at least one page", total > 0)
    rate = bandwidth * d / total
    return Allocation(rate, None, freshness.mean(freshness.poisson(d, rate), mu))


def _start(d, mu, low=0.0):
    """From which v = multiplier^-1/2 on a page gets more than its least rate.

    And the slope of the Poisson rate in v from there. inf and 0 for a page that
    gains nothing by crawls.
    """
    slope = np.sqrt(mu) * np.sqrt(d)
    start = np.full(d.shape, np.inf)
    return np.divide(d + low, slope, out=start, where=slope > 0), slope


def _spend(rates, bandwidth, *pages):
    """Rates that spend the bandwidth, and v = multiplier^-1/2, of each problem.

    ``rates(v, *pages)`` gives the rates of one problem at v. They rise with v, nearly
    in proportion, from the least start on, which is the first of the arrays.
    """

    def one(*pages):
        first = pages[0].min(initial=np.inf)
        if first == np.inf:  # no page gains by a crawl
            return rates(1.0, *pages), first

        def excess(u):
            return rates(u * first, *pages).sum() / bandwidth - 1

        high = STRIDE
        while excess(high) < 0:
            high *= STRIDE
        # Interpolate between two points next to the root. Rates may jump there: at
        # much fewer crawls than changes, for pages of equal value, at a whole number
        # of signals.
        u = 1.0
        if excess(u) < 0:  # more than the least rates is spent
            u = brentq(excess, high / STRIDE, high, xtol=NEXT / 2)
        v = first * np.maximum([u - NEXT * u, u + NEXT * u], 1.0)
        few, many = (rates(x, *pages) for x in v)
        share = (bandwidth - few.sum()) / max((many - few).sum(), 1e-300)
        return few + share * (many - few), v[0] + share * (v[1] - v[0])

    inputs = ",".join(["(n)"] * len(pages))
    return np.vectorize(one, signature=f"{inputs}->(n),()")(*pages)


def optimal_poisson(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    min_rate: float = 0.0,
) -> Allocation:
    r"""Crawl rates of highest freshness when pages are crawled at Poisson times.

    Azar et al. (2018), with `min_rate` BinaryLambdaCrawl of Kolobov et al. (2019);
    eq. (6) of Upadhyay et al. (2020), below eq. (10) of
    Avrachenkov, Patil, Thoppe (2020), section 5 of the same (2022): :math:`p_i =
    \sqrt{\mu_i \Delta_i / \lambda} - \Delta_i` where that is above the least rate.
    The papers find :math:`\lambda` by sorting; here it is the search that serves all
    optima, and the result is the same.

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit.
    bandwidth : float, 1/time
        Crawls of all pages together.
    min_rate : float, 1/time, default 0
        Least rate of each page, also of one that gains nothing by it.

    Returns
    -------
    Allocation
        Rates, multiplier, freshness.

    Examples
    --------
    >>> optimal_poisson([1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 5.0).crawl_rate.round(3)
    array([1.386, 1.374, 1.133, 0.772, 0.335])
    """
    d, mu, bandwidth = _problem(change_rate, importance, bandwidth)
    even = bandwidth / d.shape[-1]
    low = checks.number("min_rate", min_rate, high=even)

    def rates(v, start, slope):
        return low + slope * np.maximum(v - start, 0.0)

    rate, v = _spend(rates, bandwidth, *_start(d, mu, low))
    return Allocation(rate, v**-2, freshness.mean(freshness.poisson(d, rate), mu))


def optimal_interval(
    change_rate: ArrayLike, importance: ArrayLike, bandwidth: float
) -> Allocation:
    r"""Crawl rates of highest freshness when pages are crawled at equal intervals.

    BASELINE, eq. (5) of Busa-Fekete et al. (2025), the problem of Cho and
    Garcia-Molina (2003):
    :math:`\frac{\mu_i}{\Delta_i} (1 - (1 + x) e^{-x}) = \lambda` with
    :math:`x = \Delta_i / p_i`, where :math:`\mu_i / \Delta_i > \lambda`.

    Parameters
    ----------
    change_rate, importance : array_like, shape (..., n_pages)
        1/time, and any unit.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, multiplier, freshness. Where one page is crawled less than once in
        some 30 changes, the next crawl of several such pages gains the same up to
        rounding, and how they share their crawls does not matter.

    Examples
    --------
    >>> optimal_interval([1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 5.0).crawl_rate.round(3)
    array([1.15 , 1.358, 1.354, 1.138, 0.   ])
    """
    d, mu, bandwidth = _problem(change_rate, importance, bandwidth)

    def rates(v, start, _, d):  # 1 - (1 + x) exp(-x) = (start / v)^2
        return d / gammaincinv(2, np.minimum(start / v, 1.0) ** 2)

    rate, v = _spend(rates, bandwidth, *_start(d, mu), d)
    return Allocation(rate, v**-2, freshness.mean(freshness.interval(d, rate), mu))


@np.errstate(invalid="ignore")  # inf / inf, where no page gains by a crawl
def optimal_thresholds(pages: SignalledPages, bandwidth: float) -> Allocation:
    r"""Thresholds of highest freshness for pages with signals.

    Theorem 1 and Lemma 2 of Busa-Fekete et al. (2025): a page is crawled when its
    effective elapsed time reaches :math:`\iota_i`, where :math:`V_i(\iota_i) =
    \Lambda`, or never where :math:`V_i(\infty) = \mu_i / \Delta_i \le \Lambda`; its
    crawl rate is :math:`1 / \psi_i(\iota_i)`.

    Parameters
    ----------
    pages : SignalledPages
        Pages and their signals. Recall 1 is taken as 1 - 1e-15.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    Allocation
        Rates, multiplier, freshness, thresholds. The rate jumps with the threshold
        of a page whose signals are all true, or all of its changes signalled: then
        it may lie between those of two thresholds, which take turns.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> plan = optimal_thresholds(pages, 2.0)
    >>> plan.crawl_rate.round(3), plan.threshold.round(3)
    (array([0.834, 1.166]), array([2.117, 2.509]))
    """
    d, mu, bandwidth = _problem(pages.change_rate, pages.importance, bandwidth)
    start, _ = _start(d, mu)
    d, mu = np.where(start < np.inf, (d, mu), 1.0)
    recall = np.minimum(pages.recall, ALMOST_ALL)
    believed = SignalledPages(d, mu, recall, pages.false_rate)

    def thresholds(v):
        """Where V is the multiplier, by Newton's method from those without signals.

        V is a convex function of exp(-alpha iota): it converges from anywhere.
        """
        share = np.where(start < v, start / v, 0.5) ** 2  # of V(inf) / mu = 1 / d
        goal, iota, close = share / d, gammaincinv(2, share) / d, False
        while not np.all(close):
            rest = goal - freshness.crawl_value(iota, 0, believed) / mu
            psi = freshness.mean_crawl_interval(iota, believed)
            slope = psi * np.exp(-believed.alpha * iota)
            step = np.log1p(-np.minimum(rest / slope, 1 - LEAST_LEFT)) / believed.alpha
            close = np.abs(rest) < VALUE_ERROR * (goal + slope)
            iota = np.where(close, iota, np.maximum(iota - step, LEAST_LEFT * iota))
        return iota

    def rates(v, start):
        psi = freshness.mean_crawl_interval(thresholds(v), believed)
        return np.where(start < v, 1 / psi, 0.0)

    rate, v = _spend(rates, bandwidth, start)
    threshold = np.where(start < v, thresholds(v), np.inf)
    # w / psi = V / (mu psi) + exp(-alpha iota), by Lemma 4
    fresh = rate / (mu * v**2) + np.exp(-believed.alpha * threshold)
    fresh = np.where(start < np.inf, fresh, pages.change_rate == 0)
    fresh = freshness.mean(fresh, pages.importance)
    return Allocation(rate, v**-2, fresh, threshold)
