"""Explore-then-commit for many lengths of exploration at once."""

import numpy as np

from paperlib import allocation, checks, freshness, schedules
from paperlib.policies.phases import checked
from paperlib.simulate.copies import EXPLORE, Copies


def explore_then_commit(
    policy,
    change_rate,
    importance,
    bandwidth,
    *,
    exploration,
    horizon,
    n_runs=1,
    rng=None,
):
    """Expected regret of explore-then-commit for many lengths of exploration and horizons at once, given the bits of each run.

    In every run one exploration serves all lengths, and what follows it is summed in closed form (`freshness.poisson_time`), so that a
    horizon of a million days takes no longer than one of a hundred.

    Parameters
    ----------
    policy : `policies.ExploreThenCommit` with Poisson crawls after exploration; its own exploration is not looked at
    change_rate, importance : arrays, shape (n_pages,), 1/time; the true rates
    bandwidth : float, 1/time
    exploration : array, shape (n,), time, rising; rounded to whole rounds of n_pages / bandwidth
    horizon : array, shape (k,), time
    n_runs : int
    rng : seed or numpy Generator
        Run i depends on the seed and i alone.

    Returns
    -------
    array, shape (n_runs, n, k)
        Regret against the best Poisson policy in the long run, divided by the total importance; NaN where horizon < exploration.
    """
    change_rate, importance, bandwidth = checked(change_rate, importance, bandwidth)
    if policy.schedule is not schedules.poisson:
        raise ValueError(
            f"policy must have schedules.poisson as its schedule, got {policy.schedule!r}"
        )
    horizon = np.atleast_1d(checks.positive("horizon", horizon))
    one_round = change_rate.size / bandwidth
    ends = (
        np.maximum(
            np.round(
                np.atleast_1d(checks.positive("exploration", exploration)) / one_round
            ),
            1.0,
        )
        * one_round
    )
    if not (np.diff(ends) > 0).all():
        raise ValueError(
            f"exploration must rise by whole rounds of {one_round:g}, got {np.asarray(exploration)}"
        )
    uniform = np.full(change_rate.size, bandwidth / change_rate.size)
    left = horizon - ends[:, np.newaxis]
    best = allocation.optimal_poisson(change_rate, importance, bandwidth).freshness
    out = np.empty((checks.count("n_runs", n_runs), *left.shape))
    for run, stream in enumerate(np.random.default_rng(rng).spawn(n_runs)):
        copies = Copies(change_rate, filled=policy.explore == "interval", rng=stream)
        explored = 0.0
        for k, duration in enumerate(np.diff(ends, prepend=0.0)):
            expected, _fresh, _n = copies.follow(
                EXPLORE[policy.explore], uniform, duration
            )
            explored += expected @ importance
            rate = policy.allocation(
                policy.believe(copies)[0], importance, bandwidth
            ).crawl_rate
            later = freshness.poisson_time(
                change_rate,
                rate,
                np.maximum(left[k], 0.0)[:, np.newaxis],
                initial=copies.probability(),
            )
            out[run, k] = (
                best * horizon - (explored + later @ importance) / importance.sum()
            )
    return np.where(left >= 0, out, np.nan)
