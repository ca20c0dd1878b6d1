"""Explore, then commit; phases; re-optimisation: crawl rates from learnt change rates.

`ExploreThenCommit` is that of sections 5 and 6 of Upadhyay et al. (2020), with its
phased epsilon-greedy form; `explore_then_commit` has its expected regret for many
horizons at once. `reoptimise` is section 5 of Avrachenkov, Patil, Thoppe (2022).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import allocation, checks, estimators, freshness, schedules
from ..copies import EXPLORE, Copies
from ..errors import DegenerateHistoryWarning
from ..processes import replicate, simulate_history

# Relative rest of a horizon that is a rounding error and no phase of its own.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LearningRun:
    """What a policy that sets rates did, in a number of runs.

    Utility, eq. (2) of Upadhyay et al. (2020), in expectation, and regret (section 2).

    Parameters
    ----------
    borders : ndarray, shape (n_phases + 1,), time
        Borders of the phases.
    expected : ndarray, shape (n_runs, n_phases)
        Requests served fresh, in expectation given the crawls before the phase.
    believed : ndarray, shape (n_runs, n_pages), 1/time
        Change rates that the last phase used.
    pages : tuple
        True change rates, importance, and bandwidth of the runs.
    """

    borders: NDArray
    expected: NDArray
    believed: NDArray
    pages: tuple

    @property
    def regret(self) -> NDArray:
        r"""Fresh requests that the best Poisson policy with known rates would add.

        At the end of each phase, shape (n_runs, n_phases), over the total
        importance: 1 is the regret of stale copies in a unit of time. Section 2
        of Upadhyay et al. (2020), with F of their eq. (5) in the long run:

        .. math:: \Bigl(T F(\rho^*) - \text{requests served fresh up to } T\Bigr)
                  / \sum_i \mu_i

        It can be negative: crawls at equal intervals are better.
        """
        best = allocation.optimal_poisson(*self.pages).freshness
        return (
            best * self.borders[1:] - self.expected.cumsum(axis=1) / self.pages[1].sum()
        )


@dataclass(frozen=True, kw_only=True)
class ExploreThenCommit:
    r"""Explore-then-commit, section 5 of Upadhyay et al. (2020).

    Crawl all pages alike, estimate the change rates, and commit to the crawl
    rates that are allocated for the estimates.

    With more phases, phased epsilon-greedy of section 6.3: phases of equal
    length at the rates

    .. math:: (1 - \epsilon)\,\hat\rho + \epsilon\,R / m ,

    where :math:`\hat\rho` is allocated at the start of each phase, from all
    observations so far. The paper lacks the details: that exploration comes
    first and how epsilon enters is our reading.

    Parameters
    ----------
    bounds : tuple of float, 1/time
        Known bounds of the change rates, to which estimates are clipped.
    exploration : float or callable, time, optional
        Length of exploration, or a function of the horizon that returns it,
        rounded to whole rounds of n_pages / bandwidth. `explore_then_commit`,
        which tries many lengths, does not need it.
    estimator : callable, default `estimators.moment_matching`
        Function of a History.
    allocation : callable, default `allocation.optimal_poisson`
        Function of change rates, importance and bandwidth.
    schedule : callable, default `schedules.poisson`
        How the allocated rates become crawl times.
    explore : {"interval", "rate"}, default "interval"
        Explore at equal intervals, after a crawl of all pages at time 0; or at
        Poisson times, without copies at first.
    n_phases : int, default 1
        Number of phases after exploration.
    epsilon : float, in [0, 1], default 0
        Share of the bandwidth that goes on exploring.
    first_horizon : float, time, optional
        For an unknown horizon: run within it, then within twice that, and so on
        (the doubling trick); observations are kept. By default the horizon is
        known.

    Examples
    --------
    >>> policy = ExploreThenCommit(
    ...     exploration=lambda horizon: horizon / 5,
    ...     first_horizon=10.0,
    ...     bounds=(0.1, 5.0),
    ... )
    >>> policy.run([0.5, 2.0], 1.0, 2.0, horizon=30.0, rng=1).borders
    array([ 0.,  2., 10., 14., 30.])
    """

    bounds: tuple[float, float]
    exploration: float | Callable | None = None
    estimator: Callable = estimators.moment_matching
    allocation: Callable = allocation.optimal_poisson
    schedule: Callable = schedules.poisson
    explore: str = "interval"
    n_phases: int = 1
    epsilon: float = 0.0
    first_horizon: float | None = None

    def __post_init__(self):
        checks.rising("bounds", self.bounds)
        checks.choice("explore", self.explore, EXPLORE)
        checks.count("n_phases", self.n_phases)
        checks.number("epsilon", self.epsilon, 0.0, 1.0)

    def run(
        self,
        change_rate: ArrayLike,
        importance: ArrayLike,
        bandwidth: float,
        horizon: float,
        *,
        n_runs: int = 1,
        rng: Any = None,
    ) -> LearningRun:
        """Run the policy on simulated Poisson pages.

        Parameters
        ----------
        change_rate, importance : array_like, shape (n_pages,), 1/time
            True change rates and request rates.
        bandwidth : float, 1/time
            Crawls of all pages together.
        horizon : float, time
            End of the runs.
        n_runs : int, default 1
            Number of runs.
        rng : None, int or Generator, optional
            Run i depends on it and i alone.
        """
        pages, uniform = _problem(change_rate, importance, bandwidth)
        horizon = checks.number("horizon", horizon, above=True)
        phases = self._phases(horizon, uniform.size / bandwidth)
        one_run = partial(self._one_run, *pages, uniform, phases)
        runs = replicate(one_run, n_runs, rng=rng)
        expected, believed = map(np.array, zip(*runs, strict=True))
        borders = np.cumsum([0.0, *(duration for duration, _ in phases)])
        return LearningRun(borders, expected, believed, pages)

    def plan(
        self, copies: Copies, importance: NDArray, bandwidth: float
    ) -> tuple[NDArray, NDArray]:
        """Estimated change rates after some crawls, and the rates allocated for them.

        Estimates are clipped to the bounds. A page without an observation gets
        the median of the others, or the middle of the bounds if there is none.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateHistoryWarning)
            believed = np.clip(self.estimator(copies.history), *self.bounds)
        known = believed[~np.isnan(believed)]
        middle = np.median(known) if known.size else np.mean(self.bounds)
        believed = np.nan_to_num(believed, nan=middle)
        return believed, self.allocation(believed, importance, bandwidth).crawl_rate

    def _phases(self, horizon, one_round):
        """Duration and epsilon of each phase; those that explore have None."""
        length = horizon if self.first_horizon is None else self.first_horizon
        left = horizon
        phases = []
        while left > ROUNDING * horizon:
            wanted = self.exploration
            wanted = wanted(length) if callable(wanted) else wanted
            rounds = round(checks.number("exploration", wanted, above=True) / one_round)
            exploration = max(1, rounds) * one_round
            if min(length, horizon) <= exploration:
                raise ValueError(
                    f"exploration must be shorter than {min(length, horizon):g}, got "
                    f"{exploration:g} (rounds of n_pages / bandwidth = {one_round:g})"
                )
            within, exploration = min(length, left), min(exploration, left)
            each = (within - exploration) / self.n_phases
            phases += [(exploration, None)] + [(each, self.epsilon)] * self.n_phases
            length, left = 2 * length, left - within
        return [phase for phase in phases if phase[0] > 0]

    def _one_run(self, change_rate, importance, bandwidth, uniform, phases, rng):
        """Expected fresh requests of each phase, and the last beliefs."""
        copies = Copies(change_rate, filled=self.explore == "interval", rng=rng)
        served = []
        for duration, epsilon in phases:
            rate = uniform
            schedule = EXPLORE[self.explore]
            if epsilon is not None:
                believed, best = self.plan(copies, importance, bandwidth)
                rate, schedule = (1 - epsilon) * best + epsilon * uniform, self.schedule
            expected, _ = copies.follow(schedule, rate, duration)
            served.append(expected @ importance)
        return served, believed


def _problem(change_rate, importance, bandwidth):
    """Pages as arrays with the bandwidth, and uniform rates, which check them."""
    uniform = allocation.uniform(change_rate, importance, bandwidth).crawl_rate
    pages = np.broadcast_arrays(np.atleast_1d(change_rate), importance)
    return (*pages, bandwidth), uniform


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

    Section 5 of Upadhyay et al. (2020). With :math:`\tau` the length of
    exploration, T the horizon and :math:`\hat\rho` the rates allocated for the
    estimates, it is

    .. math:: T F(\rho^*) - \int_0^\tau F_{explore}(t)\, dt
              - \int_0^{T - \tau} F(\hat\rho, t)\, dt ,

    in expectation given the observations of each run. One exploration of a run
    serves all lengths, and the second integral is `freshness.poisson_time`: a
    horizon of a million days takes no longer than one of a hundred.

    Parameters
    ----------
    policy : ExploreThenCommit
        How to explore, to estimate and to allocate; Poisson crawls follow.
        Other parameters do not count.
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
    pages, uniform = _problem(change_rate, importance, bandwidth)
    change_rate, importance, _ = pages
    one_round = change_rate.size / bandwidth
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
    best = allocation.optimal_poisson(*pages).freshness
    lost = best * horizon - np.array(runs) / importance.sum()
    return np.where(left >= 0, lost, np.nan)


def reoptimise(
    estimator: Any,
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    n_phases: int,
    n_crawls: int,
    min_rate: float = 1e-3,
    n_runs: int = 1,
    rng: Any = None,
) -> NDArray:
    r"""Re-optimise crawl rates from online estimates after each phase.

    Section 5 of Avrachenkov, Patil and Thoppe (2022):

    .. math:: \rho^{(k+1)} = \arg\max_\rho F(\rho; \hat\Delta^{(k)}) .

    All pages start at the uniform rate. In a phase each page is crawled
    `n_crawls` times, at Poisson times of its present rate. SA and SAM keep their
    iterate when the rate changes, LLN and Naive restart their counts.

    Our choice: estimates and crawl rates are at least `min_rate`; a page that
    is estimated at 0 would never be crawled again.

    Parameters
    ----------
    estimator : OnlineEstimator
        In its initial state; it is copied.
    change_rate, importance : array_like, shape (n_pages,)
        True change rates, 1/time, and weights of the pages.
    bandwidth : float, 1/time
        Crawls of all pages together.
    n_phases : int
        Number of phases.
    n_crawls : int
        Crawls of each page in a phase.
    min_rate : float, 1/time, default 1e-3
        Lower bound of estimates and crawl rates.
    n_runs : int, default 1
        Number of runs.
    rng : None, int or Generator, optional
        Run i depends on it and i alone.

    Returns
    -------
    ndarray, shape (n_runs, n_phases + 1, n_pages), 1/time
        The rates of each phase, the uniform ones first, and those after the
        last phase.
    """
    start = allocation.uniform(change_rate, importance, bandwidth).crawl_rate

    def one_run(stream):
        mine, rates = copy.deepcopy(estimator), [start]
        for _ in range(n_phases):
            crawls = {"crawl_rate": rates[-1], "n_crawls": n_crawls, "rng": stream}
            for changed in simulate_history(change_rate, **crawls).changed.T:
                estimate = mine.update(changed, crawl_rate=rates[-1])
            believed = np.maximum(estimate, min_rate)
            best = allocation.optimal_poisson(
                believed, importance, bandwidth, min_rate=min_rate
            )
            rates.append(best.crawl_rate)
        return rates

    return np.array(replicate(one_run, n_runs, rng=rng))
