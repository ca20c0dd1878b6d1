"""Explore-then-commit for many lengths of exploration at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.science import allocation, freshness, schedules
from recrawl.science.simulate.copies import EXPLORE, Copies, checked_pages
from recrawl.types import Array, Seed

if TYPE_CHECKING:
    from recrawl.science.policies.phases import ExploreThenCommit, PhasedEpsilonGreedy

__all__ = ["explore_then_commit"]


def explore_then_commit(
    policy: ExploreThenCommit | PhasedEpsilonGreedy,
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    exploration: ArrayLike,
    horizon: ArrayLike,
    n_runs: int = 1,
    rng: Seed = None,
) -> Array:
    r"""Expected regret of explore-then-commit for many lengths at once.

    Section 5 of [aaai20]_. With :math:`\tau` the length of exploration, T the
    horizon and :math:`\hat\rho` the rates allocated for the estimates, it is

    .. math:: T F(\rho^*) - \int_0^\tau F_{explore}(t)\, dt
              - \int_0^{T - \tau} F(\hat\rho, t)\, dt ,

    in expectation given the observations of each run. One exploration of a run
    serves all lengths, and the second integral is the closed form of
    `freshness.poisson_time`: a horizon of a million days takes no longer than
    one of a hundred.

    Parameters
    ----------
    policy : ExploreThenCommit or PhasedEpsilonGreedy
        How to explore, to estimate and to allocate, with Poisson crawls after
        exploration. A policy made without ``exploration=`` will do.
    change_rate, importance : array_like, shape (n_pages,), 1/time
        True change rates and request rates.
    bandwidth : float, 1/time
        Crawls per unit of time over all pages.
    exploration : array_like, shape (n,), time, rising
        Lengths of exploration, rounded to whole rounds of n_pages / bandwidth.
    horizon : array_like, shape (k,), time
        Horizons.
    n_runs : int, default 1
        Number of runs.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers; run i depends on it and i alone.

    Returns
    -------
    ndarray, shape (n_runs, n, k), time
        Regret against the best Poisson policy in the long run, divided by the
        total importance; NaN where the horizon is shorter than exploration.

    Raises
    ------
    ValueError
        Arguments out of range; a schedule other than `schedules.poisson`;
        explorations that round to the same number of rounds.

    Examples
    --------
    >>> from recrawl.science.policies import ExploreThenCommit
    >>> policy = ExploreThenCommit(bounds=(0.1, 5.0))
    >>> regret = explore_then_commit(
    ...     policy,
    ...     change_rate=[0.5, 2.0],
    ...     importance=1.0,
    ...     bandwidth=2.0,
    ...     exploration=[2.0, 20.0],
    ...     horizon=10.0,
    ...     rng=1,
    ... )
    >>> regret.shape, bool(regret[0, 0, 0] < 10.0), float(regret[0, 1, 0])
    ((1, 2, 1), True, nan)
    """
    change_rate, importance, bandwidth = checked_pages(
        change_rate, importance, bandwidth
    )
    if policy.schedule is not schedules.poisson:
        raise ValueError(
            "policy must have schedules.poisson as its schedule, "
            f"got {policy.schedule!r}"
        )
    horizon = np.atleast_1d(checks.positive("horizon", horizon))
    ends = _whole_rounds(exploration, change_rate.size / bandwidth)
    left = horizon - ends[:, np.newaxis]
    pages = change_rate, importance, bandwidth
    served = np.array(
        [
            _served_fresh(policy, *pages, ends, np.maximum(left, 0.0), stream)
            for stream in np.random.default_rng(rng).spawn(
                checks.count("n_runs", n_runs)
            )
        ]
    )
    best = allocation.optimal_poisson(*pages).freshness
    regret = best * horizon - served / importance.sum()
    return np.where(left >= 0, regret, np.nan)


def _whole_rounds(exploration, one_round):
    """Ends of exploration, rounded to whole rounds and checked to rise."""
    wanted = np.atleast_1d(checks.positive("exploration", exploration))
    ends = np.maximum(np.round(wanted / one_round), 1.0) * one_round
    if not (np.diff(ends) > 0).all():
        raise ValueError(
            f"exploration must rise by whole rounds of {one_round:g}, "
            f"got {np.asarray(exploration)}"
        )
    return ends


def _served_fresh(policy, change_rate, importance, bandwidth, ends, left, rng):
    """Expected requests served fresh in one run, shape (n, k)."""
    copies = Copies(change_rate, filled=policy.explore == "interval", rng=rng)
    uniform = np.full(change_rate.size, bandwidth / change_rate.size)
    explored, served = 0.0, np.empty(left.shape)
    for k, duration in enumerate(np.diff(ends, prepend=0.0)):
        expected, _, _ = copies.follow(EXPLORE[policy.explore], uniform, duration)
        explored += expected @ importance
        believed, _ = policy.believe(copies)
        later = freshness.poisson_time(
            change_rate,
            policy.allocation(believed, importance, bandwidth).crawl_rate,
            left[k, :, np.newaxis],
            initial=copies.probability(),
        )
        served[k] = explored + later @ importance
    return served
