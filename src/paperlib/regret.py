"""What it costs not to know the change rates: the bounds of aaai20, and the expected regret of explore-then-commit."""

import numpy as np

from paperlib import allocation, checks, freshness
from paperlib.simulate.explore_then_commit import explore_then_commit  # noqa: F401


def utility(change_rate, importance, crawl_rate, *, elapsed=np.inf, initial=0.0):
    """Requests served fresh per unit of time under Poisson crawls, `elapsed` after the state was `initial`. Eq. (4) of [aaai20].

    sum importance (p + (initial - p) exp(-(crawl_rate + change_rate) elapsed)) with p = `freshness.poisson`; elapsed = inf is eq. (5).

    Parameters
    ----------
    change_rate, importance, crawl_rate, initial : arrays, shape (..., n_pages); they broadcast
        Rates in 1/time; `initial` the probability that each copy is fresh, in [0, 1].
    elapsed : float or array, shape (...), time

    Returns
    -------
    array, shape (...), 1/time
    """
    change_rate, crawl_rate = (
        checks.non_negative("change_rate", change_rate),
        checks.non_negative("crawl_rate", crawl_rate),
    )
    stationary = freshness.poisson(change_rate, crawl_rate)
    with np.errstate(
        invalid="ignore"
    ):  # 0 x inf, for a page that neither changes nor is crawled
        decay = np.nan_to_num(
            np.exp(-(change_rate + crawl_rate) * np.asarray(elapsed)[..., np.newaxis]),
            nan=1.0,
        )
    return np.sum(importance * (stationary + (initial - stationary) * decay), axis=-1)


def burn_in(importance, tolerance, *, min_rate):
    """Time after which the utility is within `tolerance` of eq. (5), from any state and for any crawl rates. Lemma 1 of [aaai20].

    log(sum importance / tolerance) / min_rate, 0 where the tolerance exceeds the total importance. Derived; a factor of 2 inside the
    logarithm, which the paper seems to have, is not needed.

    Parameters
    ----------
    importance : array, shape (n_pages,), 1/time
    tolerance : float or array, 1/time
    min_rate : float, lower bound of the change rates, 1/time
    """
    min_rate = checks.scalar(checks.positive, "min_rate", min_rate)
    tolerance = checks.positive("tolerance", tolerance)
    return (
        np.log(
            np.maximum(
                np.sum(checks.non_negative("importance", importance)) / tolerance, 1.0
            )
        )
        / min_rate
    )


def suboptimality(change_rate, estimated_rate, importance, bandwidth):
    """Utility lost per unit of time by rates that are optimal for the estimates: F(rho*) - F(rho^) of Lemma 4 of [aaai20].

    Arrays of shape (..., n_pages), each leading index a problem of its own; returns shape (...), 1/time.
    """
    best = allocation.optimal_poisson(change_rate, importance, bandwidth).crawl_rate
    chosen = allocation.optimal_poisson(
        estimated_rate, importance, bandwidth
    ).crawl_rate
    # term by term, as the difference of the sums would lose what is small; a page that never changes loses nothing
    lost, both = (
        (best - chosen) * np.asarray(change_rate),
        (best + change_rate) * (chosen + change_rate),
    )
    return np.sum(
        importance * np.divide(lost, both, out=np.zeros_like(both), where=both > 0),
        axis=-1,
    )


def sensitivity_bound(
    change_rate, estimated_rate, importance, *, crawl_rate=None, constant=1.0
):
    """Upper bound of `suboptimality`. Lemma 4 of [aaai20].

    constant x sum importance (D^ - D)^2 / (D^ min(D^, D)) for change rates D and estimates D^. The constant 1 is the paper's, as far
    as known; 1/4 is enough (derived). With the `crawl_rate` that is optimal for the estimates, rho^, the sharper bound
    sum importance (rho^ + D) (sqrt(D) / (rho^ + D) - sqrt(D^) / (rho^ + D^))^2 is taken instead (derived), below both.

    Parameters
    ----------
    change_rate, estimated_rate, importance, crawl_rate : arrays, shape (..., n_pages), rates positive
    constant : float

    Returns
    -------
    array, shape (...), 1/time
    """
    true, believed = (
        checks.positive("change_rate", change_rate),
        checks.positive("estimated_rate", estimated_rate),
    )
    importance = checks.non_negative("importance", importance)
    if crawl_rate is None:
        return constant * np.sum(
            importance
            * (believed - true) ** 2
            / (believed * np.minimum(believed, true)),
            axis=-1,
        )
    now, meant = crawl_rate + true, crawl_rate + believed
    return np.sum(
        importance * now * (np.sqrt(true) / now - np.sqrt(believed) / meant) ** 2,
        axis=-1,
    )


def exploration_radius(n_pages, bandwidth, exploration, *, max_rate, level):
    """Radius around the estimates of all pages that holds all true rates at once with probability `level`. Lemma 5 of [aaai20].

    exp(max_rate d) sqrt(log(2 n_pages / (1 - level)) / (2 n)) / d, after n = exploration / d crawls at the interval
    d = n_pages / bandwidth: `estimators.confidence_radius` at 1 - (1 - level) / n_pages, and a union bound. Derived.

    Arguments are numbers or arrays, times and rates in one unit; returns 1/time.
    """
    level = checks.probability("level", level)
    interval = checks.positive("n_pages", n_pages) / checks.positive(
        "bandwidth", bandwidth
    )
    n = checks.positive("exploration", exploration) / interval
    return (
        np.exp(checks.positive("max_rate", max_rate) * interval)
        / interval
        * np.sqrt(np.log(2 * n_pages / (1 - level)) / (2 * n))
    )


def regret_bound(
    exploration, horizon, importance, bandwidth, *, bounds, level=0.9, constant=1.0
):
    """Bound on the regret of explore-then-commit, in requests, that holds with probability `level`. Eq. (12) of [aaai20].

    sum importance (exploration + constant (horizon - exploration) (`exploration_radius` / min_rate)^2). Derived; the constant is that
    of `sensitivity_bound`.

    Parameters
    ----------
    exploration, horizon : floats or arrays, time; the bound is NaN where horizon < exploration
    importance : array, shape (n_pages,), 1/time
    bandwidth : float, 1/time
    bounds : (min_rate, max_rate) of the change rates, 1/time
    """
    importance = checks.non_negative("importance", importance)
    min_rate, max_rate = checks.positive("bounds", bounds)
    radius = exploration_radius(
        importance.size, bandwidth, exploration, max_rate=max_rate, level=level
    )
    left = np.asarray(horizon) - exploration
    return importance.sum() * (
        exploration
        + constant * np.where(left >= 0, left, np.nan) * (radius / min_rate) ** 2
    )


def exploration_horizon(
    horizon, n_pages, bandwidth, *, bounds, level=0.9, constant=1.0
):
    """The exploration that minimises `regret_bound`, a multiple of n_pages / bandwidth. Theorem 1 of [aaai20].

    exp(max_rate n_pages / bandwidth) / min_rate x sqrt(constant horizon bandwidth log(2 n_pages / (1 - level)) / (2 n_pages)), rounded;
    the bound there is twice that, times the total importance (minus a term that does not grow with the horizon). Derived. For bounds
    as wide as real pages need it exceeds the horizon.

    horizon : float or array, time; the others as in `regret_bound`. Returns time, at least one round.
    """
    one_round = n_pages / checks.scalar(checks.positive, "bandwidth", bandwidth)
    min_rate, max_rate = checks.positive("bounds", bounds)
    # where exploration and exploitation cost the same: radius^2 falls as 1 / exploration
    unit = (
        exploration_radius(n_pages, bandwidth, 1.0, max_rate=max_rate, level=level)
        / min_rate
    )
    wanted = unit * np.sqrt(constant * checks.positive("horizon", horizon))
    return np.maximum(np.round(wanted / one_round), 1.0) * one_round


def best_exploration(regret, exploration):
    """The exploration of least mean regret for every horizon, and that regret: between grid points, by a parabola in the logarithm.

    regret : array, shape (n_runs, n, k), as from `explore_then_commit`; exploration : shape (n,). Returns two arrays, shape (k,); NaN
    where the least is at an end of the grid, and so not known.
    """
    if len(exploration) < 3:
        raise ValueError(
            f"exploration must hold at least three lengths, got {len(exploration)}"
        )
    mean = np.mean(regret, axis=0).T
    lowest = np.nanargmin(mean, axis=-1)[:, np.newaxis] + [-1, 0, 1]
    inside = (lowest[:, 0] >= 0) & (lowest[:, 2] < len(exploration))
    lowest = np.clip(lowest, 0, len(exploration) - 1)
    x, y = (
        np.log(exploration)[lowest],
        np.where(
            inside[:, np.newaxis], np.take_along_axis(mean, lowest, axis=-1), np.nan
        ),
    )
    # Newton's form of the parabola through three points
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.diff(y) / np.diff(x)
        second = np.diff(first)[:, 0] / (x[:, 2] - x[:, 0])
        vertex = (x[:, 0] + x[:, 1]) / 2 - first[:, 0] / (2 * second)
    return np.exp(vertex), y[:, 0] + (vertex - x[:, 0]) * (
        first[:, 0] + second * (vertex - x[:, 1])
    )


def slopes(regret, exploration, horizon, *, n_bootstrap=500, rng=None):
    """Exponents of the horizon in `best_exploration` and in its regret: log-log least squares, with bootstrap standard errors over runs.

    Theorem 1 of [aaai20] has 1/2 for both. Arguments as in `best_exploration`, horizon of shape (k,); those are left out whose best
    exploration is at an end of the grid, or whose regret is negative.

    Returns
    -------
    dict of (slope, standard error): "exploration" and "regret"
    """
    drawn = np.random.default_rng(rng).integers(
        len(regret), size=(n_bootstrap, len(regret))
    )
    with np.errstate(invalid="ignore"):  # a negative regret has no logarithm
        found = np.log(
            [
                best_exploration(sample, exploration)
                for sample in (regret, *(regret[runs] for runs in drawn))
            ]
        )  # (samples, 2, k)
    inside = np.isfinite(found).all(axis=(0, 1))
    if inside.sum() < 2:
        raise ValueError(
            f"exploration must reach beyond the best one, and regret be positive, for at least two horizons, got {inside.sum()}"
        )
    found, x = found[..., inside], np.log(horizon)[inside]
    x = x - x.mean()
    slope = found @ x / (x @ x)
    return {
        name: (slope[0, i], slope[1:, i].std(ddof=1))
        for i, name in enumerate(("exploration", "regret"))
    }
