"""Policies that set crawl rates from learnt change rates.

`ExploreThenCommit` is section 5 of Upadhyay et al. (2020), and `PhasedEpsilonGreedy`
is their section 6.3. `reoptimise` is section 5 of Avrachenkov, Patil, Thoppe (2022).
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import allocation, checks, estimators
from ..copies import EXPLORE, POISSON, Copies, Schedule
from ..errors import DegenerateHistoryWarning
from ..processes import replicate, simulate_history

# Warnings are switched off for all threads of a process, so one thread at a time.
_QUIET = threading.Lock()

# A rest of the horizon below this share is a rounding error, not a phase.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LearningRun:
    """Results of several runs of a policy that sets crawl rates.

    Parameters
    ----------
    borders : ndarray, shape (n_phases + 1,), time
        Borders of the phases.
    utility : ndarray, shape (n_runs, n_phases)
        Expected requests served fresh in each phase, given the crawls before it: U of
        eq. (2) of Upadhyay et al. (2020).
    believed : ndarray, shape (n_runs, n_pages), 1/time
        Change rates that the last phase used.
    change_rate, importance : ndarray, shape (n_pages,), 1/time
        True change rates and request rates.
    bandwidth : float, 1/time
        Crawls of all pages together.
    """

    borders: NDArray
    utility: NDArray
    believed: NDArray
    change_rate: NDArray
    importance: NDArray
    bandwidth: float

    @property
    def regret(self) -> NDArray:
        r"""Fresh requests that the best Poisson policy with known rates would add.

        Total up to the end of each phase, divided by the total importance, shape
        (n_runs, n_phases): 1 stands for all requests of a unit of time. Section 2
        of Upadhyay et al. (2020), with F of their eq. (5) in the long run:

        .. math:: \Bigl(T F(\rho^*) - \text{requests served fresh up to } T\Bigr)
                  / \sum_i \mu_i

        It can be negative, because crawls at equal intervals are better.
        """
        best = allocation.optimal_poisson(
            self.change_rate, self.importance, self.bandwidth
        )
        served = self.utility.cumsum(axis=1) / self.importance.sum()
        return best.freshness * self.borders[1:] - served


@dataclass(frozen=True, kw_only=True)
class ExploreThenCommit:
    r"""Explore-then-commit, section 5 of Upadhyay et al. (2020).

    Crawl all pages at one rate, estimate the change rates, and commit to the
    crawl rates that are allocated for the estimates.

    Parameters
    ----------
    bounds : tuple of float, 1/time
        Known bounds of the change rates. Estimates are clipped to them.
    exploration : float or callable, time, optional
        Length of exploration, or a function that returns it for a horizon. It is
        rounded to whole rounds of n_pages / bandwidth. `run` needs it.
    estimator : callable, default `estimators.moment_matching`
        Function of a History that returns change rates.
    schedule : Schedule, default `copies.POISSON`
        Crawl times for the allocated rates.
    explore : {"interval", "rate"}, default "interval"
        Explore at equal intervals, after a crawl of all pages at time 0; or at
        Poisson times, without copies at first.
    first_horizon : float, time, optional
        For an unknown horizon (the doubling trick): the horizon is first this
        time, then twice as long, and so on; observations are kept. By default
        the horizon is known.

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
    schedule: Schedule = POISSON
    explore: str = "interval"
    first_horizon: float | None = None

    def __post_init__(self):
        checks.rising("bounds", self.bounds)
        checks.one_of("explore", self.explore, EXPLORE)

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
            Source of random numbers. Run i depends on the seed and i alone.
        """
        change_rate, importance, bandwidth = allocation.problem(
            change_rate, importance, bandwidth
        )
        horizon = checks.number("horizon", horizon, above=True)
        phases = self._phases(horizon, change_rate.size / bandwidth)
        one_run = partial(self._one_run, change_rate, importance, bandwidth, phases)
        runs = replicate(one_run, n_runs, rng=rng)
        utility, believed = map(np.array, zip(*runs, strict=True))
        borders = np.cumsum([0.0, *(duration for duration, _ in phases)])
        return LearningRun(
            borders, utility, believed, change_rate, importance, bandwidth
        )

    def plan(
        self, copies: Copies, importance: NDArray, bandwidth: float
    ) -> tuple[NDArray, NDArray]:
        """Estimated change rates after some crawls, and crawl rates allocated for them.

        Estimates are clipped to the bounds. A page without observations gets the
        median of the other pages, or the middle of the bounds if there is none.
        """
        with _QUIET, warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateHistoryWarning)
            believed = np.clip(self.estimator(copies.history), *self.bounds)
        known = believed[~np.isnan(believed)]
        middle = np.median(known) if known.size else np.mean(self.bounds)
        believed = np.nan_to_num(believed, nan=middle)
        best = allocation.optimal_poisson(believed, importance, bandwidth)
        return believed, best.crawl_rate

    def _phases(self, horizon, one_round):
        """Duration of each phase, and whether it explores."""
        length = self.first_horizon or horizon
        left = horizon
        phases = []
        while left > ROUNDING * horizon:
            exploration = self._exploration(length, min(length, horizon), one_round)
            within = min(length, left)
            exploration = min(exploration, left)
            phases.append((exploration, True))
            phases += [(part, False) for part in self._split(within - exploration)]
            left -= within
            length *= 2
        return [phase for phase in phases if phase[0] > 0]

    def _exploration(self, horizon, longest, one_round):
        """Length of exploration for a horizon, in whole rounds."""
        length = self.exploration
        if callable(length):
            length = length(horizon)
        n_rounds = round(checks.number("exploration", length, above=True) / one_round)
        exploration = max(1, n_rounds) * one_round
        if longest <= exploration:
            raise ValueError(
                f"exploration must be shorter than {longest:g}, got "
                f"{exploration:g} (rounds of n_pages / bandwidth = {one_round:g})"
            )
        return exploration

    def _split(self, duration):
        """Durations of the phases after exploration."""
        return [duration]

    def _mix(self, best, uniform):
        """Crawl rates of a phase after exploration."""
        return best

    def _one_run(self, change_rate, importance, bandwidth, phases, rng):
        """Expected fresh requests of each phase, and the last estimates."""
        copies = Copies(change_rate, filled=self.explore == "interval", rng=rng)
        uniform = np.full(change_rate.size, bandwidth / change_rate.size)
        utility = []
        for duration, explores in phases:
            rate = uniform
            schedule = EXPLORE[self.explore]
            if not explores:
                believed, best = self.plan(copies, importance, bandwidth)
                rate = self._mix(best, uniform)
                schedule = self.schedule
            expected, _ = copies.follow(schedule, rate, duration)
            utility.append(expected @ importance)
        return utility, believed


@dataclass(frozen=True, kw_only=True)
class PhasedEpsilonGreedy(ExploreThenCommit):
    r"""Phased epsilon-greedy, section 6.3 of Upadhyay et al. (2020).

    After exploration, phases of equal length have the crawl rates

    .. math:: (1 - \epsilon)\,\hat\rho + \epsilon\,R / m .

    :math:`\hat\rho` is allocated at the start of each phase, from all observations so
    far. The paper lacks the details: the exploration before the phases and the role of
    epsilon are our reading.

    Parameters
    ----------
    n_phases : int
        Number of phases after exploration.
    epsilon : float, in [0, 1]
        Share of the bandwidth that is spent on exploring.
    **options
        As for `ExploreThenCommit`.
    """

    n_phases: int
    epsilon: float

    def __post_init__(self):
        super().__post_init__()
        checks.count("n_phases", self.n_phases)
        checks.number("epsilon", self.epsilon, 0.0, 1.0)

    def _split(self, duration):
        return [duration / self.n_phases] * self.n_phases

    def _mix(self, best, uniform):
        return (1 - self.epsilon) * best + self.epsilon * uniform


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
    `n_crawls` times, at Poisson times of its current rate. When the rate changes,
    SA and SAM keep their estimate, and LLN and Naive reset their counts.

    Our choice: estimates and crawl rates are at least `min_rate`, because a page
    with estimate 0 would never be crawled again.

    Parameters
    ----------
    estimator : OnlineEstimator
        Estimator in its initial state; it is copied.
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
        Source of random numbers. Run i depends on the seed and i alone.

    Returns
    -------
    ndarray, shape (n_runs, n_phases + 1, n_pages), 1/time
        Crawl rates of each phase, first the uniform rates, and the rates after
        the last phase.
    """
    start = allocation.uniform(change_rate, importance, bandwidth).crawl_rate

    def one_run(stream):
        mine = copy.deepcopy(estimator)
        rates = [start]
        for _ in range(n_phases):
            history = simulate_history(
                change_rate, crawl_rate=rates[-1], n_crawls=n_crawls, rng=stream
            )
            for changed in history.changed.T:
                estimate = mine.update(changed, crawl_rate=rates[-1])
            believed = np.maximum(estimate, min_rate)
            best = allocation.optimal_poisson(
                believed, importance, bandwidth, min_rate=min_rate
            )
            rates.append(best.crawl_rate)
        return rates

    return np.array(replicate(one_run, n_runs, rng=rng))
