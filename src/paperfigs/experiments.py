"""How the experiments of the papers are run and compared.

Policies in the same worlds (`compare`), many lengths of exploration at once
(`explore_then_commit`, `best_exploration`), and several numbers of pages.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib import allocation, checks, freshness, worlds
from paperlib.copies import EXPLORE, Copies
from paperlib.policies import ExploreThenCommit
from paperlib.processes import replicate


def window_mean(
    windows: Mapping[Any, Mapping[Any, NDArray]], weights: ArrayLike
) -> dict[Any, dict[Any, NDArray]]:
    """Weigh the freshness in windows of time, run by run.

    Parameters
    ----------
    windows : dict of dict of ndarray
        By number of pages and policy: freshness of shape (n_runs, n_windows), or
        of shape (n_runs,) for a policy whose freshness does not depend on time.
    weights : array_like, shape (n_windows,)
        Weights of the windows, of sum 1.

    Returns
    -------
    dict of dict of ndarray, shape (n_runs,)
        Freshness by number of pages and policy.
    """

    def weigh(runs):
        return runs @ np.asarray(weights) if runs.ndim > 1 else runs

    return {
        size: {name: weigh(runs) for name, runs in policies.items()}
        for size, policies in windows.items()
    }


def tables(
    one_run: Callable[[np.random.Generator, int], Any],
    sizes: Sequence[int],
    n_runs: int,
    *,
    seed: int,
) -> Any:
    """Repeat an experiment with several numbers of pages, in one table.

    Parameters
    ----------
    one_run : callable
        Function of a random generator and a number of pages, which returns a
        DataFrame with one row per page.
    sizes : sequence of int
        Numbers of pages.
    n_runs : int
        Runs with every number of pages. Run i depends on `seed`, the number of
        pages and i alone.
    seed : int
        Seed of all random numbers.

    Returns
    -------
    pandas.DataFrame
        All rows, by number of pages ("m"), "run" and "page".
    """
    import pandas as pd

    by_size = {}
    for size in sizes:
        runs = replicate(lambda rng, m=size: one_run(rng, m), n_runs, rng=[seed, size])
        by_size[size] = pd.concat(runs, keys=range(n_runs), names=["run", "page"])
    return pd.concat(by_size, names=["m"])


def best_exploration(
    regret: ArrayLike, exploration: ArrayLike
) -> tuple[NDArray, NDArray]:
    r"""Exploration of least mean regret for each horizon, and that regret.

    For section 6.2 of Upadhyay et al. (2020):

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
    """
    x = np.log(checks.rising("exploration", exploration, 3, above=True))
    mean = np.mean(regret, axis=0)
    least = np.full((2, mean.shape[1]), np.nan)
    for k, y in enumerate(mean.T):
        lowest = np.nan_to_num(y, nan=np.inf).argmin()
        near = slice(lowest - 1, lowest + 2)
        if np.isfinite(y[near]).sum() == 3:
            a, b, c = np.polyfit(x[near] - x[lowest], y[near], 2)
            least[:, k] = np.exp(x[lowest] - b / (2 * a)), c - b**2 / (4 * a)
    return tuple(least)


# ---- Busa-Fekete et al. (2025)


def compare(
    draw: Callable,
    policies: Callable,
    bandwidth: float | tuple[ArrayLike, ArrayLike],
    horizon: float,
    *,
    n_runs: int,
    rng: Any = None,
    keep: Callable = attrgetter("freshness"),
    numbers: Callable = lambda pages: {},
    delays: dict[str, Callable] | None = None,
    delayed: Callable | None = None,
    borders: ArrayLike | None = None,
) -> dict[Any, NDArray]:
    """Run policies in the same worlds; each run has new pages and a new world.

    Parameters
    ----------
    draw : callable
        Function of a Generator: the SignalledPages of a run.
    policies : callable
        Function of those pages and a Generator: a dictionary of policies by
        name, as for `paperlib.worlds.crawl`.
    bandwidth : float or tuple, 1/time
        As in `paperlib.worlds.slot_times`.
    horizon : float, time
        End of the worlds.
    n_runs : int
        Number of runs.
    rng : None, int or Generator, optional
        Run i depends on it and i alone.
    keep : callable, optional
        Function of a CrawlRun that returns the result to keep; by default the
        freshness.
    numbers : callable, optional
        Function of the pages: a dictionary of other numbers of the run by name, such
        as the freshness of an optimum.
    delays : dict of callable, optional
        By name, a function of a Generator and the number of signals: the delay
        of each.
    delayed : callable, optional
        Function of the pages: a dictionary of policies, which are run under each of
        the delays.
    borders : array_like, time, optional
        As in `paperlib.worlds.crawl`.

    Returns
    -------
    dict of ndarray, shape (n_runs, ...)
        What was kept, by the name of the policy or number; for a policy under a
        delay, by both names: ``"policy, delay"``.
    """

    def one_run(stream):
        of_pages, of_world, of_policies, of_delays = stream.spawn(4)
        pages = draw(of_pages)
        world = worlds.draw_world(pages, horizon, rng=of_world)
        results = dict(numbers(pages))

        def kept(world, policy):
            return keep(worlds.crawl(world, policy, bandwidth, borders=borders))

        for name, policy in policies(pages, of_policies).items():
            results[name] = kept(world, policy)
        for delay, draw_delay in (delays or {}).items():
            late = world.delayed(draw_delay(of_delays, world.sent.size))
            for name, policy in delayed(pages).items():
                results[f"{name}, {delay}"] = kept(late, policy)
        return results

    runs = replicate(one_run, n_runs, rng=rng)
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


# ---- Upadhyay et al. (2020)


def explore_then_commit(
    policy: ExploreThenCommit,
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    exploration: ArrayLike,
    horizon: ArrayLike,
    n_runs: int = 1,
    rng: Any = None,
) -> NDArray:
    r"""Expected regret of explore-then-commit for many lengths at once.

    Section 5 of Upadhyay et al. (2020). Let :math:`\tau` be the length of
    exploration, T the horizon and :math:`\hat\rho` the rates allocated for the
    estimates. The regret is

    .. math:: T F(\rho^*) - \int_0^\tau F_{explore}(t)\, dt
              - \int_0^{T - \tau} F(\hat\rho, t)\, dt ,

    in expectation given the observations of each run. One exploration of a run
    serves all lengths, and the second integral is `freshness.poisson_time`: a
    horizon of a million days takes no longer than one of a hundred.

    Parameters
    ----------
    policy : ExploreThenCommit
        Its way to explore, to estimate and to allocate is used, and Poisson crawls
        follow. Its other parameters have no effect.
    change_rate, importance : array_like, shape (n_pages,), 1/time
        True change rates and request rates.
    bandwidth : float, 1/time
        Crawls of all pages together.
    exploration : array_like, shape (n,), time, rising
        Lengths of exploration, rounded to whole rounds of n_pages / bandwidth.
    horizon : array_like, shape (k,), time
        Horizons.
    n_runs : int, default 1
        Number of runs.
    rng : None, int or Generator, optional
        Run i depends on it and i alone.

    Returns
    -------
    ndarray, shape (n_runs, n, k), time
        Regret against the best Poisson policy in the long run, divided by the
        total importance; NaN where the horizon is shorter than exploration.
    """
    change_rate, importance, bandwidth = allocation.problem(
        change_rate, importance, bandwidth
    )
    one_round = change_rate.size / bandwidth
    uniform = np.full(change_rate.size, 1 / one_round)
    rounds = np.maximum(np.round(np.divide(exploration, one_round)), 1.0)
    ends = checks.rising("exploration in rounds", rounds, 1) * one_round
    durations = np.diff(ends, prepend=0.0)
    filled = policy.explore == "interval"
    schedule = EXPLORE[policy.explore]
    horizon = np.atleast_1d(horizon)
    left = horizon - ends[:, np.newaxis]

    def served(stream):
        copies = Copies(change_rate, filled=filled, rng=stream)
        explored = 0.0
        for duration, rest in zip(durations, np.maximum(left, 0.0), strict=True):
            fresh, _ = copies.follow(schedule, uniform, duration)
            explored += fresh @ importance
            _, rate = policy.plan(copies, importance, bandwidth)
            later = freshness.poisson_time(
                change_rate, rate, rest[:, np.newaxis], initial=copies.probability()
            )
            yield explored + later @ importance

    runs = replicate(lambda stream: list(served(stream)), n_runs, rng=rng)
    best = allocation.optimal_poisson(change_rate, importance, bandwidth).freshness
    lost = best * horizon - np.array(runs) / importance.sum()
    return np.where(left >= 0, lost, np.nan)
