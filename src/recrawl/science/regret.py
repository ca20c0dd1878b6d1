r"""What it costs not to know the change rates.

[aaai20]_ compares a crawler that learns the change rates with the best Poisson
crawls for the true ones. The functions answer, in the order of its lemmas:

* how many requests are served fresh (`utility`), and how long until that is
  the long-run rate (`burn_in`, Lemma 1);
* how much is lost by rates that are optimal for estimates (`suboptimality`,
  and its bound `sensitivity_bound`, Lemma 4);
* how good the estimates are after exploration (`exploration_radius`, Lemma 5),
  and what that means for explore-then-commit (`regret_bound`,
  `exploration_horizon`, Theorem 1);
* what experiments say about it (`explore_then_commit`, `best_exploration`,
  `slopes`).

Arguments come in one order: change rates, estimated rates, importances (or the
number of pages), the bandwidth, and then what is crawled or explored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.science import allocation, freshness
from recrawl.science.simulate.explore_then_commit import explore_then_commit
from recrawl.types import Array, Seed, Values

__all__ = [
    "best_exploration",
    "burn_in",
    "exploration_horizon",
    "exploration_radius",
    "explore_then_commit",
    "regret_bound",
    "sensitivity_bound",
    "slopes",
    "suboptimality",
    "utility",
]


def utility(
    change_rate: ArrayLike,
    importance: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    elapsed: ArrayLike = np.inf,
    initial: ArrayLike = 0.0,
) -> Array:
    r"""Requests served fresh per unit time under Poisson crawls.

    Eq. (4) of [aaai20]_, a time t after the copies were fresh with probability
    s; at t = inf it is eq. (5):

    .. math:: \sum_i \mu_i \Bigl(p_i + (s_i - p_i)
              e^{-(\rho_i + \Delta_i) t}\Bigr), \qquad
              p_i = \frac{\rho_i}{\rho_i + \Delta_i} .

    Parameters
    ----------
    change_rate : array_like, shape (..., n_pages), 1/time, non-negative
        Change rates.
    importance : array_like, shape (..., n_pages), 1/time, non-negative
        Request rates.
    crawl_rate : array_like, shape (..., n_pages), 1/time, non-negative
        Crawl rates.
    elapsed : float or array_like, shape (...), time, default inf
        Time since the copies were as `initial` says.
    initial : float or array_like, shape (..., n_pages), default 0
        Probability that each copy was fresh then, in [0, 1].

    Returns
    -------
    ndarray, shape (...), 1/time
        Sum over pages.

    Raises
    ------
    ValueError
        Arguments out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.plain.utility`.

    Examples
    --------
    >>> utility([1.0, 2.0], [3.0, 1.0], [1.0, 2.0]).round(3)
    np.float64(2.0)
    """
    stationary = freshness.poisson(change_rate, crawl_rate)
    rate = np.add(change_rate, crawl_rate, dtype=float)
    importance = checks.non_negative("importance", importance)
    elapsed = checks.non_negative_or_inf("elapsed", elapsed)[..., np.newaxis]
    initial = checks.share("initial", initial)
    with np.errstate(invalid="ignore"):
        decay = np.exp(-rate * elapsed)
    # 0 x inf: a page that neither changes nor is crawled stays as it is
    decay = np.nan_to_num(decay, nan=1.0)
    return np.sum(importance * (stationary + (initial - stationary) * decay), axis=-1)


def burn_in(importance: ArrayLike, tolerance: ArrayLike, *, min_rate: float) -> Array:
    r"""Time after which the utility is close to its long-run value.

    Lemma 1 of [aaai20]_: from any state and for any crawl rates, `utility` is
    within `tolerance` of eq. (5) after

    .. math:: \frac{1}{\Delta_{\min}} \log \frac{\sum_i \mu_i}{\epsilon} ,

    which is 0 where the tolerance exceeds the total importance. Derived; a
    factor of 2 inside the logarithm, which the paper seems to have, is not
    needed.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), 1/time, non-negative
        Request rates.
    tolerance : float or array_like, 1/time, positive
        Largest deviation of the utility.
    min_rate : float, 1/time, positive
        Lower bound of the change rates.

    Returns
    -------
    ndarray, shape of `tolerance`, time
        How long to wait.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.burn_in`.

    Examples
    --------
    >>> burn_in([3.0, 1.0], 0.1, min_rate=0.5).round(3)
    np.float64(7.378)
    """
    min_rate = checks.positive_number("min_rate", min_rate)
    tolerance = checks.positive("tolerance", tolerance)
    total = np.sum(checks.non_negative("importance", importance))
    return np.log(np.maximum(total / tolerance, 1.0)) / min_rate


def suboptimality(
    change_rate: ArrayLike,
    estimated_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Array:
    r"""Utility lost by crawl rates that are optimal for estimates.

    The left-hand side of Lemma 4 of [aaai20]_, with F of its eq. (5),

    .. math:: F(\rho^*; \Delta) - F(\hat\rho; \Delta), \qquad
              F(\rho; \Delta) = \sum_i \mu_i \frac{\rho_i}{\rho_i + \Delta_i} .

    Parameters
    ----------
    change_rate : array_like, shape (..., n_pages), 1/time, non-negative
        True change rates; each leading index is a problem of its own.
    estimated_rate : array_like, shape (..., n_pages), 1/time, non-negative
        The estimates of them.
    importance : array_like, shape (..., n_pages), 1/time, non-negative
        Request rates.
    bandwidth : float, 1/time, positive
        Crawls of all pages.

    Returns
    -------
    ndarray, shape (...), 1/time
        Requests per unit time, non-negative but for rounding.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.suboptimality`.

    Examples
    --------
    >>> suboptimality([1.0, 1.0], [1.0, 4.0], [1.0, 1.0], 2.0).round(3)
    np.float64(0.029)
    """
    change_rate = checks.non_negative("change_rate", change_rate)
    importance = checks.non_negative("importance", importance)
    best, chosen = (
        allocation.optimal_poisson(rate, importance, bandwidth).crawl_rate
        for rate in (change_rate, estimated_rate)
    )
    # Term by term: the difference of the sums would lose what is small. A page
    # that never changes loses nothing.
    lost = (best - chosen) * change_rate
    both = (best + change_rate) * (chosen + change_rate)
    each = np.divide(lost, both, out=np.zeros_like(both), where=both > 0)
    return np.sum(importance * each, axis=-1)


def sensitivity_bound(
    change_rate: ArrayLike,
    estimated_rate: ArrayLike,
    importance: ArrayLike,
    *,
    crawl_rate: ArrayLike | None = None,
    constant: float = 1.0,
) -> Array:
    r"""Upper bound of `suboptimality`.

    Lemma 4 of [aaai20]_, for change rates :math:`\Delta` and estimates
    :math:`\hat\Delta`:

    .. math:: c \sum_i \mu_i \frac{(\hat\Delta_i - \Delta_i)^2}
              {\hat\Delta_i \min(\hat\Delta_i, \Delta_i)} .

    The constant c = 1 is the paper's, as far as known; 1/4 is enough
    (derived). With the `crawl_rate` that is optimal for the estimates the
    sharper bound is taken instead, below both (derived):

    .. math:: \sum_i \mu_i (\hat\rho_i + \Delta_i) \left(
              \frac{\sqrt{\Delta_i}}{\hat\rho_i + \Delta_i}
              - \frac{\sqrt{\hat\Delta_i}}{\hat\rho_i + \hat\Delta_i}
              \right)^2 .

    Parameters
    ----------
    change_rate : array_like, shape (..., n_pages), 1/time, positive
        True change rates.
    estimated_rate : array_like, shape (..., n_pages), 1/time, positive
        The estimates of them.
    importance : array_like, shape (..., n_pages), 1/time, non-negative
        Request rates.
    crawl_rate : array_like, shape (..., n_pages), 1/time, optional
        Optimal rates for the estimates; gives the sharper bound.
    constant : float, default 1
        The factor c of the first bound.

    Returns
    -------
    ndarray, shape (...), 1/time
        Requests per unit time.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.sensitivity_bound`.

    Examples
    --------
    >>> sensitivity_bound([1.0], [4.0], [3.0])
    np.float64(6.75)
    """
    true = checks.positive("change_rate", change_rate)
    believed = checks.positive("estimated_rate", estimated_rate)
    importance = checks.non_negative("importance", importance)
    constant = checks.positive_number("constant", constant)
    if crawl_rate is None:
        squared = (believed - true) ** 2
        least = believed * np.minimum(believed, true)
        return constant * np.sum(importance * squared / least, axis=-1)
    crawl_rate = checks.non_negative("crawl_rate", crawl_rate)
    now, meant = crawl_rate + true, crawl_rate + believed
    apart = np.sqrt(true) / now - np.sqrt(believed) / meant
    return np.sum(importance * now * apart**2, axis=-1)


def exploration_radius(
    n_pages: ArrayLike,
    bandwidth: ArrayLike,
    exploration: ArrayLike,
    *,
    max_rate: ArrayLike,
    level: float,
) -> Values:
    r"""Radius around the estimates that holds all true rates at once.

    Lemma 5 of [aaai20]_, after an exploration of length tau at equal intervals
    d = m / R, with probability `level` = 1 - delta:

    .. math:: e^{\Delta_{\max} m / R}
              \sqrt{\frac{R \log(2 m / \delta)}{2 \tau m}} .

    Derived: `estimators.confidence_radius` (Lemma 3) at delta / m, and a union
    bound.

    Parameters
    ----------
    n_pages : int or array_like, positive
        Number of pages, m.
    bandwidth : float or array_like, 1/time, positive
        Crawls of all pages, R.
    exploration : float or array_like, time, positive
        Length of the exploration, tau.
    max_rate : float or array_like, 1/time, positive
        Upper bound of the change rates.
    level : float
        Probability, strictly between 0 and 1.

    Returns
    -------
    float or ndarray, 1/time
        The radius.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.exploration_radius`.

    Examples
    --------
    >>> exploration_radius(100, 100.0, 200.0, max_rate=1.0, level=0.9).round(3)
    np.float64(0.375)
    """
    level = checks.probability("level", level)
    n_pages = checks.positive("n_pages", n_pages)
    interval = n_pages / checks.positive("bandwidth", bandwidth)
    n_crawls = checks.positive("exploration", exploration) / interval
    steepest = np.exp(checks.positive("max_rate", max_rate) * interval) / interval
    return steepest * np.sqrt(np.log(2 * n_pages / (1 - level)) / (2 * n_crawls))


def regret_bound(
    importance: ArrayLike,
    bandwidth: float,
    *,
    exploration: ArrayLike,
    horizon: ArrayLike,
    bounds: tuple[float, float],
    level: float = 0.9,
    constant: float = 1.0,
) -> Array:
    r"""Bound on the regret of explore-then-commit, in requests.

    Eq. (12) of [aaai20]_ (derived), which holds with probability `level`, for
    the radius r of `exploration_radius`:

    .. math:: \sum_i \mu_i \left(\tau + c\,(T - \tau)
              \frac{r(\tau)^2}{\Delta_{\min}^2}\right) .

    Parameters
    ----------
    importance : array_like, shape (n_pages,), 1/time, non-negative
        Request rates.
    bandwidth : float, 1/time, positive
        Crawls of all pages.
    exploration : float or array_like, time, positive
        Length of the exploration, tau.
    horizon : float or array_like, time
        End of the run, T.
    bounds : (float, float), 1/time, positive
        Lower and upper bound of the change rates.
    level : float, default 0.9
        Probability, strictly between 0 and 1.
    constant : float, default 1
        The factor c, that of `sensitivity_bound`.

    Returns
    -------
    ndarray
        Requests; NaN where horizon < exploration.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.regret_bound`.

    Examples
    --------
    >>> regret_bound(
    ...     [1.0, 2.0], 4.0, exploration=50.0, horizon=1e4, bounds=(0.5, 1.0)
    ... ).round(1)
    np.float64(24095.5)
    """
    importance = checks.non_negative("importance", importance)
    constant = checks.positive_number("constant", constant)
    exploration = checks.positive("exploration", exploration)
    min_rate, max_rate = checks.low_high("bounds", bounds, equal=True)
    radius = exploration_radius(
        importance.size, bandwidth, exploration, max_rate=max_rate, level=level
    )
    left = checks.positive("horizon", horizon) - exploration
    left = np.where(left >= 0, left, np.nan)
    lost = constant * left * (radius / min_rate) ** 2
    return importance.sum() * (exploration + lost)


def exploration_horizon(
    n_pages: int,
    bandwidth: float,
    *,
    horizon: ArrayLike,
    bounds: tuple[float, float],
    level: float = 0.9,
    constant: float = 1.0,
) -> Array:
    r"""Exploration that minimises `regret_bound`.

    Theorem 1 of [aaai20]_ (derived; the paper misprints "maximum"), rounded to
    a multiple of a round of all pages, m / R:

    .. math:: \tau^* = \frac{e^{\Delta_{\max} m / R}}{\Delta_{\min}}
              \sqrt{\frac{c\,T R \log(2 m / \delta)}{2 m}} .

    At this exploration the bound is twice the exploration times the total
    importance, minus a constant: it grows as the root of the horizon. For
    bounds as wide as real pages need, it exceeds the horizon.

    Parameters
    ----------
    n_pages : int
        Number of pages, m.
    bandwidth : float, 1/time, positive
        Crawls of all pages, R.
    horizon : float or array_like, time, positive
        End of the run, T.
    bounds : (float, float), 1/time, positive
        Lower and upper bound of the change rates.
    level : float, default 0.9
        Probability 1 - delta, strictly between 0 and 1.
    constant : float, default 1
        The factor c, that of `sensitivity_bound`.

    Returns
    -------
    ndarray, shape of `horizon`, time
        At least one round.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.optimal_exploration`.

    Examples
    --------
    >>> exploration_horizon(20, 200.0, horizon=1e4, bounds=(0.5, 1.0)).round(1)
    np.float64(1209.8)
    """
    one_round = n_pages / checks.positive_number("bandwidth", bandwidth)
    min_rate, max_rate = checks.low_high("bounds", bounds, equal=True)
    constant = checks.positive_number("constant", constant)
    # The bound is tau + c T (r(1) / min_rate)^2 / tau, as r(tau)^2 falls as
    # 1 / tau: least where both terms are equal.
    unit = exploration_radius(n_pages, bandwidth, 1.0, max_rate=max_rate, level=level)
    unit = unit / min_rate
    wanted = unit * np.sqrt(constant * checks.positive("horizon", horizon))
    return np.maximum(np.round(wanted / one_round), 1.0) * one_round


def best_exploration(regret: ArrayLike, exploration: ArrayLike) -> tuple[Array, Array]:
    r"""Exploration of least mean regret for each horizon, and that regret.

    .. math:: \tau^*(T) = \arg\min_\tau \bar R(\tau, T)

    Between the lengths of the grid: the minimum of the parabola through the
    lowest point and its neighbours, in the logarithm of the exploration.

    Parameters
    ----------
    regret : array_like, shape (n_runs, n, k)
        Regret of n lengths of exploration at k horizons, as from
        `explore_then_commit`.
    exploration : array_like, shape (n,), time
        The lengths, rising; at least three.

    Returns
    -------
    exploration : ndarray, shape (k,), time
        NaN where the lowest point is at an end of the grid, so that the
        minimum is not known.
    regret : ndarray, shape (k,)
        Mean regret there; NaN likewise.

    Raises
    ------
    ValueError
        Fewer than three lengths, or regret of another shape.

    Examples
    --------
    >>> regret = [[[4.0], [1.0], [4.0]]]  # one run, three lengths, one horizon
    >>> length, least = best_exploration(regret, [1.0, 10.0, 100.0])
    >>> length.round(3), least.round(3)
    (array([10.]), array([1.]))
    """
    exploration = checks.rising("exploration", exploration, least=3)
    regret = checks.numbers("regret", regret)
    if regret.ndim != 3 or regret.shape[1] != exploration.size:
        raise ValueError(
            f"regret must have shape (n_runs, {exploration.size}, n_horizons), "
            f"got {regret.shape}"
        )
    mean = regret.mean(axis=0).T
    known = np.where(np.isnan(mean), np.inf, mean)
    lowest = known.argmin(axis=-1)[:, np.newaxis]
    last = exploration.size - 2
    around = np.add(np.clip(lowest, 1, last), [-1, 0, 1])
    inside = (lowest >= 1) & (lowest <= last)
    y = np.where(inside, np.take_along_axis(mean, around, axis=-1), np.nan)
    vertex, value = _vertex(np.log(exploration)[around], y)
    return np.exp(vertex), value


def _vertex(x, y):
    """Lowest points of parabolas through three points, by Newton's form."""
    (x0, x1, x2), (y0, y1, y2) = x.T, y.T
    with np.errstate(divide="ignore", invalid="ignore"):  # a straight line has none
        first = (y1 - y0) / (x1 - x0)
        second = ((y2 - y1) / (x2 - x1) - first) / (x2 - x0)
        vertex = (x0 + x1) / 2 - first / (2 * second)
        return vertex, y0 + (vertex - x0) * (first + second * (vertex - x1))


def slopes(
    regret: Array,
    exploration: ArrayLike,
    horizon: ArrayLike,
    *,
    n_bootstrap: int = 500,
    rng: Seed = None,
) -> dict[str, tuple[float, float]]:
    r"""Exponents of the horizon in the best exploration and in its regret.

    .. math:: \tau^*(T) \propto T^a, \qquad \bar R(\tau^*(T), T) \propto T^b

    Theorem 1 of [aaai20]_ has 1/2 for both. Least squares on logarithms, with
    bootstrap standard errors over runs.

    Parameters
    ----------
    regret : ndarray, shape (n_runs, n, k)
        Regret of n lengths of exploration at k horizons, as from
        `explore_then_commit`.
    exploration : array_like, shape (n,), time
        The lengths, rising; at least three.
    horizon : array_like, shape (k,), time
        The horizons. Those are left out whose best exploration is at an end of
        the grid, or whose regret is negative, in any bootstrap sample.
    n_bootstrap : int, default 500
        Number of bootstrap samples.
    rng : None, int, SeedSequence or Generator, optional
        Draws the bootstrap samples.

    Returns
    -------
    dict of str to (float, float)
        Slope and standard error of "exploration" and of "regret".

    Raises
    ------
    ValueError
        Fewer than two horizons are left.

    Examples
    --------
    >>> length, horizon = 10.0 ** np.arange(6), np.array([1e4, 1e6])
    >>> loss = length[:, np.newaxis] + horizon / length[:, np.newaxis]
    >>> found = slopes(np.stack([loss, loss]), length, horizon, rng=1)
    >>> {name: slope.round(3).item() for name, (slope, _) in found.items()}
    {'exploration': 0.5, 'regret': 0.5}
    """
    rng, regret = np.random.default_rng(rng), checks.numbers("regret", regret)
    drawn = rng.integers(len(regret), size=(n_bootstrap, len(regret)))
    samples = (regret, *(regret[runs] for runs in drawn))
    found = [best_exploration(sample, exploration) for sample in samples]
    with np.errstate(invalid="ignore"):  # a negative regret has no logarithm
        found = np.log(found)  # shape (samples, 2, k)
    inside = np.isfinite(found).all(axis=(0, 1))
    if inside.sum() < 2:
        raise ValueError(
            "exploration must reach beyond the best one, and regret be positive, "
            f"for at least two horizons, got {inside.sum()}"
        )
    found, x = found[..., inside], np.log(horizon)[inside]
    x = x - x.mean()
    slope = found @ x / (x @ x)
    return {
        name: (slope[0, i], slope[1:, i].std(ddof=1))
        for i, name in enumerate(("exploration", "regret"))
    }
