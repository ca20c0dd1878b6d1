"""Intervals that follow the estimate: sections 4.1 and 5 of Grimes and Ford (2008)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..processes import History, change_probability, each_run


@np.errstate(divide="ignore")
def next_interval(
    change_rate: ArrayLike, *, factor: float = 1.0, limits: tuple[float, float]
) -> NDArray:
    r"""Time until the next crawl of a page, given an estimate of its change rate.

    .. math:: w_{n+1} = \mathrm{factor} / \hat\Delta_n

    The factor is 0.8 in section 4.1 of Grimes and Ford (2008) and 1 in section 5. The
    interval is clipped to limits (our choice).

    Parameters
    ----------
    change_rate : array_like, 1/time
        Estimates. A rate of 0 gets the longest interval, inf the shortest.
    factor : float, default 1.0
        Ratio of the interval to the estimated mean time between changes.
    limits : (float, float), time
        Shortest and longest interval.
    """
    factor = checks.number("factor", factor, above=True)
    return np.divide(factor, checks.floats("change_rate", change_rate)).clip(*limits)


def simulate_sequential_history(
    change_rate: ArrayLike,
    estimate: Callable[[History], ArrayLike],
    *,
    initial: ArrayLike,
    factor: float = 1.0,
    limits: tuple[float, float],
    n_crawls: int,
    n_runs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> tuple[History, NDArray]:
    r"""Simulate crawls of Poisson pages at intervals that follow the estimates.

    Each crawl updates the estimate, which sets the `next_interval`: sections 4.1 and
    5 of Grimes and Ford (2008).

    Parameters
    ----------
    change_rate : array_like, 1/time
        One number, or one for each page, non-negative.
    estimate : callable
        A function of the `History` so far that returns a change rate for each
        page, 1/time, such as `estimators.mle`. A rate of 0 gives the longest
        interval, inf the shortest.
    initial : array_like, time
        The first interval, within the limits; broadcasts with the pages.
    factor : float, default 1.0
        As in `next_interval`.
    limits : (float, float), time
        As in `next_interval`.
    n_crawls : int
        Crawls of each page.
    n_runs : int, optional
        Independent runs along a new first axis.
    rng : None, int or Generator, optional
        Source of random numbers. Run i depends on the seed and i alone.

    Returns
    -------
    history : History
        Shape ``(*pages, n_crawls)``, with n_runs before it if it is set.
    estimates : ndarray, shape of ``history.changed``, 1/time
        Estimates after each crawl.
    """
    change_rate = checks.numbers("change_rate", change_rate)
    now = checks.numbers("initial", initial, *limits)
    shape = (*np.broadcast(change_rate, now).shape, n_crawls)
    chance = each_run(lambda stream: stream.random(shape), n_runs, rng)
    history = History(np.ones_like(chance), np.zeros_like(chance))  # to be filled
    estimates = np.empty_like(chance)
    for k in range(n_crawls):
        history.interval[..., k] = now
        found = chance[..., k] < change_probability(change_rate, interval=now)
        history.changed[..., k] = found
        estimates[..., k] = estimate(history.prefix(k + 1))
        now = next_interval(estimates[..., k], factor=factor, limits=limits)
    return History(history.interval, history.changed), estimates
