"""Policies that set crawl rates, phase by phase, while the change rates are being learnt."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from paperlib import allocation, checks, estimators, schedules
from paperlib.errors import BoundsWarning, UnexploredWarning
from paperlib.simulate.copies import EXPLORE, Copies


def checked(change_rate, importance, bandwidth):
    """The three as floats: arrays of one shape, (n_pages,), and a number."""
    change_rate, importance = (
        checks.non_negative("change_rate", change_rate),
        checks.non_negative("importance", importance),
    )
    change_rate, importance = checks.broadcast(
        change_rate=np.atleast_1d(change_rate), importance=importance
    )
    if change_rate.ndim != 1 or not change_rate.size:
        raise ValueError(
            f"change_rate and importance must be flat arrays of at least one page, got shape {change_rate.shape}"
        )
    return (
        change_rate,
        importance,
        checks.scalar(checks.positive, "bandwidth", bandwidth),
    )


@dataclass(frozen=True, eq=False)
class LearningRun:
    """What a learning policy did, in a number of runs.

    time : array, shape (n_phases + 1,); the borders of the phases
    expected : array, shape (n_runs, n_phases); requests served fresh, in expectation given the crawls before the phase; NaN for a schedule
        that is none of `schedules`
    simulated : the same, given the times of crawls and changes in the phase too
    fresh, stale : int arrays of that shape; requests served fresh and stale, Poisson counts given those times
    n_crawls : int array of that shape; without those at time 0 that fill the cache
    believed : array, shape (n_runs, n_pages); the change rates that the last allocation was made from, 1/time
    """

    time: np.ndarray
    expected: np.ndarray
    simulated: np.ndarray
    fresh: np.ndarray
    stale: np.ndarray
    n_crawls: np.ndarray
    believed: np.ndarray
    _pages: tuple = field(repr=False)

    def regret(
        self,
        *,
        kind="expected",
        against=allocation.optimal_poisson,
        normalise=None,
        path=False,
    ):
        """Requests served stale that the best policy with known change rates would have served fresh, shape (n_runs,).

        Parameters
        ----------
        kind : "expected", "simulated" or "fresh"
            Which count of requests is taken, see the class. All have the same mean, in this order of variance.
        against : function such as `allocation.optimal_poisson` or `allocation.optimal_interval`
            The best policy: its freshness in the long run, without the time it takes to get there. Regret against the best Poisson
            policy, that of [aaai20], can be negative: crawls at equal intervals beat it.
        normalise : None or "mass"
            In requests, or divided by the total importance: then 1 is the regret of a stale cache in a unit of time.
        path : bool
            At all borders of phases after time 0 instead of at the end only: shape (n_runs, n_phases).
        """
        if kind not in ("expected", "simulated", "fresh"):
            raise ValueError(
                f"kind must be 'expected', 'simulated' or 'fresh', got {kind!r}"
            )
        if normalise not in (None, "mass"):
            raise ValueError(f"normalise must be None or 'mass', got {normalise!r}")
        mass = self._pages[1].sum()
        lost = mass * against(*self._pages).freshness * self.time[1:] - getattr(
            self, kind
        ).cumsum(axis=-1)
        lost = lost if path else lost[:, -1]
        return lost / mass if normalise else lost


@dataclass(frozen=True, kw_only=True)
class _Learner:
    """Phases, at the start of each of which the change rates are estimated from all bits so far.

    In every phase, pages are crawled at (1 - share) x allocated rate + share x uniform rate; share None is exploration.
    """

    exploration: float | Callable
    bounds: tuple
    estimator: Callable | object = estimators.moment_matching
    allocation: Callable = allocation.optimal_poisson
    schedule: Callable = schedules.poisson
    explore: str = "interval"

    def __post_init__(self):
        low, high = self.bounds
        if not 0 <= low < high < np.inf:
            raise ValueError(
                f"bounds must satisfy 0 <= low < high, finite, got {self.bounds!r}"
            )
        if self.explore not in EXPLORE:
            raise ValueError(
                f"explore must be 'interval' or 'rate', got {self.explore!r}"
            )
        if not callable(self.exploration):
            checks.scalar(checks.positive, "exploration", self.exploration)

    def _rounds(self, horizon, one_round, name="horizon"):
        """The time to explore within `horizon`, rounded to whole rounds."""
        wanted = (
            self.exploration(horizon)
            if callable(self.exploration)
            else self.exploration
        )
        wanted = checks.scalar(checks.positive, "exploration", wanted)
        exploration = max(1, round(wanted / one_round)) * one_round
        if horizon <= exploration:
            raise ValueError(
                f"{name} must be longer than the exploration, {exploration:g} (rounds of n_pages / bandwidth = {one_round:g}), "
                f"got {horizon:g}"
            )
        return exploration

    def run(self, change_rate, importance, bandwidth, horizon, *, n_runs=1, rng=None):
        """Run the policy on simulated Poisson pages.

        Parameters
        ----------
        change_rate, importance : arrays, shape (n_pages,), 1/time
            The true change rates, and the request rates.
        bandwidth : float, 1/time
        horizon : float, time
        n_runs : int
        rng : seed or numpy Generator
            Run i depends on the seed and i alone.

        Returns
        -------
        LearningRun

        Raises
        ------
        ValueError
            An argument out of range; a horizon without time to exploit; phases so short that the bandwidth does not reach all pages once.

        Warns
        -----
        UnexploredWarning
            Pages of which no bit was seen are believed to change as the median of the others (the middle of the bounds, if there is none).
        BoundsWarning
            The bounds exclude true change rates.
        """
        change_rate, importance, bandwidth = checked(change_rate, importance, bandwidth)
        horizon = checks.scalar(checks.positive, "horizon", horizon)
        streams = np.random.default_rng(rng).spawn(checks.count("n_runs", n_runs))
        outside = (change_rate < self.bounds[0]) | (change_rate > self.bounds[1])
        if outside.any():
            warnings.warn(
                f"bounds {self.bounds} exclude the change rates of {outside.sum()} of {outside.size} pages",
                BoundsWarning,
                stacklevel=2,
            )
        phases = self._phases(horizon, change_rate.size / bandwidth)
        results, unexplored = zip(
            *(
                self._one_run(change_rate, importance, bandwidth, phases, s)
                for s in streams
            ),
            strict=True,
        )
        if any(unexplored):
            warnings.warn(
                f"in {np.count_nonzero(unexplored)} of {n_runs} runs pages were allocated a rate without a bit seen, "
                f"at most {max(unexplored)} of {change_rate.size}; they are believed to change as the median of the others, "
                "or in the middle of the bounds",
                UnexploredWarning,
                stacklevel=2,
            )
        time = np.concatenate([[0.0], np.cumsum([duration for duration, _ in phases])])
        return LearningRun(
            time,
            *(np.stack(values) for values in zip(*results, strict=True)),
            (change_rate, importance, bandwidth),
        )

    def believe(self, copies):
        """The change rates believed from what `copies` have seen, and how many of them without a bit."""
        believed = copies.estimate(self.estimator)
        unknown = np.isnan(believed)
        believed = np.clip(believed, *self.bounds)
        believed[unknown] = (
            np.mean(self.bounds) if unknown.all() else np.median(believed[~unknown])
        )
        return believed, unknown.sum()

    def _one_run(self, change_rate, importance, bandwidth, phases, rng):
        copies = Copies(change_rate, filled=self.explore == "interval", rng=rng)
        uniform = np.full(change_rate.size, bandwidth / change_rate.size)
        counts = np.empty((5, len(phases)))
        unexplored = 0
        for k, (duration, share) in enumerate(phases):
            rate, schedule = uniform, EXPLORE[self.explore]
            if share is not None:
                believed, unknown = self.believe(copies)
                unexplored = max(unexplored, unknown)
                rate = (1 - share) * self.allocation(
                    believed, importance, bandwidth
                ).crawl_rate + share * uniform
                schedule = self.schedule
            expected, fresh, n_crawls = copies.follow(schedule, rate, duration)
            fresh = fresh @ importance
            requests = copies.rng.poisson(
                [fresh, max(duration * importance.sum() - fresh, 0.0)]
            )
            counts[:, k] = expected @ importance, fresh, *requests, n_crawls
        return (*counts[:2], *counts[2:].astype(np.int64), believed), unexplored


@dataclass(frozen=True, kw_only=True)
class ExploreThenCommit(_Learner):
    """Crawl all pages alike, estimate once, and commit to the rates allocated for the estimates. Section 5 of [aaai20].

    Parameters
    ----------
    exploration : float or function of the horizon, time
        How long to explore, rounded to whole rounds of n_pages / bandwidth; `regret.exploration_horizon` is Theorem 1's.
    bounds : (low, high)
        Known bounds of the change rates, 1/time; estimates are clipped to them.
    first_horizon : float, time, optional
        For an unknown horizon: explore and commit within it, then within twice that, and so on (the doubling trick); bits are kept.
        `exploration` must then be a function. By default the horizon is known.
    estimator : function of a History, such as `estimators.mle`, or an online estimator
        The online ones rest on crawls at Poisson times: use them with ``explore="rate"``. Those that count (LLN, Naive) begin anew
        when a page's rate changes.
    allocation : function of change rates, importance and bandwidth
    schedule : function such as `schedules.poisson` and `schedules.regular`
        How the allocated rates become crawl times.
    explore : "interval" or "rate"
        Every page at equal intervals, after a crawl of all at time 0; or at Poisson times, from an empty cache.
    """

    first_horizon: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.first_horizon is not None:
            checks.scalar(checks.positive, "first_horizon", self.first_horizon)
            if not callable(self.exploration):
                raise ValueError(
                    f"exploration must be a function of the horizon where it is doubled, got {self.exploration!r}"
                )

    def _phases(self, horizon, one_round):
        if self.first_horizon is None:
            exploration = self._rounds(horizon, one_round)
            return [(exploration, None), (horizon - exploration, 0.0)]
        phases, left, length = [], horizon, self.first_horizon
        while left > 1e-9 * horizon:  # beyond a rounding error
            exploration = min(
                self._rounds(
                    length,
                    one_round,
                    "the doubled first_horizon" if phases else "first_horizon",
                ),
                left,
            )
            phases += [(exploration, None), (min(length, left) - exploration, 0.0)]
            left -= min(length, left)
            length *= 2
        if not phases[1][0] > 0:
            raise ValueError(
                f"horizon must be longer than the first exploration, got {horizon:g}"
            )
        return [(duration, share) for duration, share in phases if duration > 0]


@dataclass(frozen=True, kw_only=True)
class PhasedEpsilonGreedy(_Learner):
    """Explore once, then phases of equal length at rates (1 - epsilon) x allocated + epsilon x uniform. Section 6.3 of [aaai20].

    At the start of each phase the rates are allocated anew, from the estimates of all bits so far. One phase with epsilon 0 is
    `ExploreThenCommit`. The paper's text lacks the details: that exploration comes first and how epsilon enters is our reading.

    Parameters
    ----------
    exploration, bounds, estimator, allocation, schedule, explore : as in `ExploreThenCommit`
    n_phases : int
    epsilon : float in [0, 1]
    """

    n_phases: int
    epsilon: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        checks.count("n_phases", self.n_phases)
        if not 0 <= checks.scalar(checks.finite, "epsilon", self.epsilon) <= 1:
            raise ValueError(f"epsilon must be from 0 to 1, got {self.epsilon!r}")

    def _phases(self, horizon, one_round):
        exploration = self._rounds(horizon, one_round)
        length = (horizon - exploration) / self.n_phases
        if length < one_round:
            raise ValueError(
                f"n_phases must leave each phase the time that the bandwidth needs for all pages once, {one_round:g}, "
                f"got {self.n_phases} phases of {length:g}"
            )
        return [(exploration, None)] + [(length, self.epsilon)] * self.n_phases
