r"""Utility F of crawl rates, and the regret of a crawler that learns.

Upadhyay et al. (2020): eqs. (4), (5) and Lemma 1 (burn-in), Lemma 4 (sensitivity to
errors of the rates), Lemma 5 and Theorem 1 (exploration, regret bound).

Arguments always have the same order: change rates, estimated rates, importances (or
the number of pages), the bandwidth, and then crawl rates or the exploration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log1p

from . import allocation, checks, freshness

FOREVER = 1e200  # replaces inf, so that its product with 0 is 0


def utility(
    change_rate: ArrayLike,
    importance: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    elapsed: ArrayLike = np.inf,
    initial: ArrayLike = 0.0,
) -> NDArray:
    r"""Requests served fresh per unit of time under Poisson crawls.

    Eqs. (3), (4) of Upadhyay et al. (2020) (derived), at a time t after the copies were
    fresh with probabilities :math:`s_i`. At t = inf it is F of eq. (5), with one
    exception: pages that neither change nor are crawled keep the probability `initial`,
    while `freshness.poisson` counts them as fresh.

    .. math:: \sum_i \mu_i \Bigl(p_i + (s_i - p_i)
              e^{-(\rho_i + \Delta_i) t}\Bigr), \qquad
              p_i = \frac{\rho_i}{\rho_i + \Delta_i} .

    Parameters
    ----------
    change_rate, importance, crawl_rate : array_like, shape (..., n_pages), 1/time
        Change rates, request rates and crawl rates.
    elapsed : float or array_like, shape (...), time, default inf
        t, time since the copies were fresh with probability `initial`.
    initial : float or array_like, shape (..., n_pages), default 0
        Initial probability that each copy is fresh, in [0, 1].

    Returns
    -------
    ndarray, shape (...), 1/time

    Examples
    --------
    >>> utility([1.0, 2.0], [3.0, 1.0], [1.0, 2.0]).round(3)
    np.float64(2.0)
    """
    change_rate, crawl_rate = checks.broadcast(
        change_rate=change_rate, crawl_rate=crawl_rate
    )
    importance = checks.numbers("importance", importance)
    initial = checks.numbers("initial", initial, 0.0, 1.0)
    stationary = freshness.poisson(change_rate, crawl_rate)
    time = np.expand_dims(np.minimum(elapsed, FOREVER), -1)
    checks.require("elapsed", time, "non-negative", time >= 0)
    decay = np.exp(-(change_rate + crawl_rate) * time)
    return np.sum(importance * (stationary + (initial - stationary) * decay), axis=-1)


def burn_in(importance: ArrayLike, tolerance: ArrayLike, *, min_rate: float) -> NDArray:
    r"""Time after which the utility is close to its long-run value.

    Lemma 1 of Upadhyay et al. (2020): from any state and for any crawl rates,
    `utility` is within `tolerance` of eq. (5) after

    .. math:: \frac{1}{\Delta_{\min}} \log \frac{\sum_i \mu_i}{\epsilon} .

    Derived, because our text of the paper lacks the formula.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), 1/time
        Request rates.
    tolerance : float or array_like, 1/time
        Largest deviation of the utility.
    min_rate : float, 1/time
        Lower bound of the change rates.

    Returns
    -------
    ndarray, shape of `tolerance`, time
        0 if the tolerance exceeds the total importance.
    """
    tolerance = checks.numbers("tolerance", tolerance, above=True)
    min_rate = checks.number("min_rate", min_rate, above=True)
    importance = checks.numbers("importance", importance)
    return np.log(np.maximum(importance.sum() / tolerance, 1.0)) / min_rate


def suboptimality(
    change_rate: ArrayLike,
    estimated_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> NDArray:
    r"""Utility lost by crawl rates that are optimal for estimated change rates.

    The left-hand side of Lemma 4 of Upadhyay et al. (2020), with F of their eq.
    (5): :math:`F(\rho^*; \Delta) - F(\hat\rho; \Delta)`.

    Parameters
    ----------
    change_rate, estimated_rate : array_like, shape (..., n_pages), 1/time
        True change rates and estimates of them.
    importance : array_like, shape (..., n_pages), 1/time
        Request rates.
    bandwidth : float, 1/time
        Crawls of all pages together.

    Returns
    -------
    ndarray, shape (...), 1/time

    Notes
    -----
    The loss is of second order in the errors, so that a difference of two utilities
    would lose it to rounding. F_i is concave: its value at the chosen rate is the value
    of the tangent at the best rate, minus a positive rest. Both sets of rates sum to
    the bandwidth. The slope of the tangent is the multiplier :math:`\lambda` on each
    page with a positive best rate. The loss is therefore (derived)

    .. math:: \sum_i \frac{\mu_i \Delta_i (\rho^*_i - \hat\rho_i)^2}
              {(\rho^*_i + \Delta_i)^2 (\hat\rho_i + \Delta_i)}
              + \sum_{\rho^*_i = 0} \hat\rho_i
              \left(\lambda - \frac{\mu_i}{\Delta_i}\right) .
    """
    change_rate, estimated_rate, importance = checks.broadcast(
        change_rate=change_rate, estimated_rate=estimated_rate, importance=importance
    )
    best = allocation.optimal_poisson(change_rate, importance, bandwidth)
    rate = best.crawl_rate
    chosen = allocation.optimal_poisson(
        estimated_rate, importance, bandwidth
    ).crawl_rate
    changes = change_rate > 0  # a page that never changes loses nothing
    d = np.where(changes, change_rate, 1.0)
    mu = np.where(changes, importance, 0.0)
    rest = mu * d * (rate - chosen) ** 2 / ((rate + d) ** 2 * (chosen + d))
    wasted = chosen * (np.expand_dims(best.multiplier, -1) - mu / d)
    return np.sum(rest + np.where(rate == 0, wasted, 0.0), axis=-1)


def sensitivity_bound(
    change_rate: ArrayLike, estimated_rate: ArrayLike, importance: ArrayLike
) -> NDArray:
    r"""Upper bound of `suboptimality`.

    Lemma 4 of Upadhyay et al. (2020), for change rates :math:`\Delta` and
    estimates :math:`\hat\Delta`. Our text of the paper lacks the constant, which is 1
    here. A quarter of the bound also holds (derived; see docs/formulas.md).

    .. math:: \sum_i \mu_i \frac{(\hat\Delta_i - \Delta_i)^2}
              {\hat\Delta_i \min(\hat\Delta_i, \Delta_i)}

    Parameters
    ----------
    change_rate, estimated_rate : array_like, shape (..., n_pages), 1/time, positive
        True change rates and estimates of them.
    importance : array_like, shape (..., n_pages), 1/time
        Request rates.

    Returns
    -------
    ndarray, shape (...), 1/time

    Examples
    --------
    >>> sensitivity_bound([1.0], [4.0], [3.0])
    np.float64(6.75)
    """
    true, believed = checks.broadcast(
        above=True, change_rate=change_rate, estimated_rate=estimated_rate
    )
    error = (believed - true) ** 2 / (believed * np.minimum(believed, true))
    return np.sum(checks.numbers("importance", importance) * error, axis=-1)


def exploration_radius(
    n_pages: int,
    bandwidth: float,
    exploration: ArrayLike,
    *,
    max_rate: float,
    level: float,
) -> NDArray:
    r"""Radius around the estimates that contains all true rates at once.

    Lemma 5 of Upadhyay et al. (2020), after an exploration of length tau at
    equal intervals m / R, with probability `level` = 1 - delta:

    .. math:: e^{\Delta_{\max} m / R}
              \sqrt{\frac{R \log(2 m / \delta)}{2 \tau m}} .

    Derived: `estimators.confidence_radius` (Lemma 3) at delta / m, and a union
    bound.

    Parameters
    ----------
    n_pages : int
        Number of pages, m.
    bandwidth : float, 1/time
        Crawls of all pages together, R.
    exploration : float or array_like, time
        Length of the exploration, tau.
    max_rate : float, 1/time
        Upper bound of the change rates.
    level : float, in (0, 1]
        Probability.

    Returns
    -------
    ndarray, shape of `exploration`, 1/time
    """
    exploration = checks.numbers("exploration", exploration, above=True)
    one_round = checks.count("n_pages", n_pages) / checks.number(
        "bandwidth", bandwidth, above=True
    )
    max_rate = checks.number("max_rate", max_rate, above=True)
    with np.errstate(over="ignore"):  # inf if a round is far too long to learn
        steepest = np.exp(max_rate * one_round)
    # SciPy's log1p is -inf at level 1 without a warning
    unlikely = np.log(2 * n_pages) - log1p(
        -checks.number("level", level, 0.0, 1.0, above=True)
    )
    return steepest * np.sqrt(unlikely / exploration / one_round / 2)


def regret_bound(
    importance: ArrayLike,
    bandwidth: float,
    *,
    exploration: ArrayLike,
    horizon: ArrayLike,
    bounds: tuple[float, float],
    level: float = 0.9,
) -> NDArray:
    r"""Bound on the regret of explore-then-commit, in requests.

    Eq. (12) of Upadhyay et al. (2020) (derived). It holds with probability `level`;
    r is `exploration_radius`:

    .. math:: \sum_i \mu_i \left(\tau + (T - \tau)
              \frac{r(\tau)^2}{\Delta_{\min}^2}\right) .

    Parameters
    ----------
    importance : array_like, shape (n_pages,), 1/time
        Request rates.
    bandwidth : float, 1/time
        Crawls of all pages together.
    exploration : float or array_like, time
        Length of the exploration, tau.
    horizon : float or array_like, time
        End of the run, T.
    bounds : (float, float), 1/time, positive
        Lower and upper bound of the change rates.
    level : float, in (0, 1], default 0.9
        Probability.

    Returns
    -------
    ndarray
        Requests; NaN if horizon < exploration, and at level 1 also if they are equal.
    """
    min_rate, max_rate = checks.rising("bounds", bounds, above=True)
    radius = exploration_radius(
        len(importance), bandwidth, exploration, max_rate=max_rate, level=level
    )
    importance = checks.numbers("importance", importance)
    exploration = np.asarray(exploration)  # checked for the radius
    left = checks.numbers("horizon", horizon) - exploration
    left = np.where(left >= 0, left, np.nan)
    return np.sum(importance) * (exploration + left * (radius / min_rate) ** 2)


def optimal_exploration(
    n_pages: int,
    bandwidth: float,
    *,
    horizon: ArrayLike,
    bounds: tuple[float, float],
    level: float = 0.9,
) -> NDArray:
    r"""Exploration that minimises `regret_bound`.

    Theorem 1 of Upadhyay et al. (2020) (derived), rounded to a multiple of m / R,
    the time of one round of all pages:

    .. math:: \tau^* = \frac{e^{\Delta_{\max} m / R}}{\Delta_{\min}}
              \sqrt{\frac{T R \log(2 m / \delta)}{2 m}} .

    Corrected: the bound has its minimum here; the paper prints "maximum". Without
    rounding, the minimum is less than :math:`2 \sum_i \mu_i \tau^*`, which grows
    as :math:`\sqrt T`. If the bounds of the change rates are as wide as real pages
    need, the exploration exceeds the horizon.

    Parameters
    ----------
    n_pages : int
        Number of pages, m.
    bandwidth : float, 1/time
        Crawls of all pages together, R.
    horizon : float or array_like, time
        End of the run, T.
    bounds : (float, float), 1/time, positive
        Lower and upper bound of the change rates.
    level : float, in (0, 1], default 0.9
        Probability 1 - delta.

    Returns
    -------
    ndarray, shape of `horizon`, time
        At least one round.

    Examples
    --------
    >>> optimal_exploration(20, 200.0, horizon=1e4, bounds=(0.5, 1.0)).round(1)
    np.float64(1209.8)
    """
    min_rate, max_rate = checks.rising("bounds", bounds, above=True)
    # r(tau)^2 falls as 1 / tau. Up to constants, the bound is therefore
    # tau + T (r(1) / min_rate)^2 / tau, which is minimal if both terms are equal.
    unit = exploration_radius(n_pages, bandwidth, 1.0, max_rate=max_rate, level=level)
    wanted = unit / min_rate * np.sqrt(checks.numbers("horizon", horizon, above=True))
    one_round = n_pages / bandwidth
    return np.maximum(np.round(wanted / one_round), 1.0) * one_round
