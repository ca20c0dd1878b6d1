"""Policies that set crawl rates in phases while they learn."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from recrawl import checks
from recrawl.errors import BoundsWarning, UnexploredWarning
from recrawl.science import allocation, estimators, schedules
from recrawl.science.simulate.copies import EXPLORE, Copies, checked_pages
from recrawl.types import Array, Function

__all__ = ["ExploreThenCommit", "LearningRun", "PhasedEpsilonGreedy"]

# Relative rest of a horizon that is a rounding error and no phase of its own.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LearningRun:
    """What a policy that sets rates did, in a number of runs.

    Parameters
    ----------
    borders : ndarray, shape (n_phases + 1,), time
        Borders of the phases.
    expected : ndarray, shape (n_runs, n_phases)
        Requests served fresh, in expectation given the crawls before the
        phase; NaN for a schedule that is none of `schedules`.
    simulated : ndarray, shape (n_runs, n_phases)
        The same, given the times of crawls and changes in the phase too.
    fresh, stale : ndarray of int, shape (n_runs, n_phases)
        Requests served fresh and stale: Poisson counts given those times.
    n_crawls : ndarray of int, shape (n_runs, n_phases)
        Crawls, without those at time 0 that fill the cache.
    believed : ndarray, shape (n_runs, n_pages), 1/time
        Change rates that the last phase used.
    pages : tuple
        True change rates, importance, and bandwidth of the runs.

    Examples
    --------
    >>> policy = ExploreThenCommit(exploration=5.0, bounds=(0.1, 5.0))
    >>> run = policy.run([0.5, 2.0], 1.0, 2.0, horizon=20.0, n_runs=3, rng=1)
    >>> run.borders.tolist(), run.believed.shape, run.regret().shape
    ([0.0, 5.0, 20.0], (3, 2), (3,))
    """

    borders: np.ndarray
    expected: np.ndarray
    simulated: np.ndarray
    fresh: np.ndarray
    stale: np.ndarray
    n_crawls: np.ndarray
    believed: np.ndarray
    pages: tuple = field(repr=False)

    def regret(
        self,
        *,
        kind: Literal["expected", "simulated", "fresh"] = "expected",
        against: Function = allocation.optimal_poisson,
        normalise: Literal[None, "mass"] = None,
        path: bool = False,
    ) -> Array:
        r"""Fresh requests that the best policy with known rates would add.

        .. math:: R(T) = T \sum_i \mu_i F_i^*
                  - \text{requests served fresh up to } T

        Parameters
        ----------
        kind : {"expected", "simulated", "fresh"}, default "expected"
            Which count of requests served fresh to take, see the class. All
            have the same mean; the variance rises in this order.
        against : callable, default `allocation.optimal_poisson`
            The best policy, a function of change rates, importance and
            bandwidth: its freshness in the long run, without the time that it
            takes to get there. Regret against the best Poisson policy, that of
            [aaai20]_, can be negative: crawls at equal intervals are better.
        normalise : {None, "mass"}, optional
            In requests, or divided by the total importance: then 1 is the
            regret of a stale cache in a unit of time.
        path : bool, default False
            At all borders of phases after time 0, instead of the end only.

        Returns
        -------
        ndarray, shape (n_runs,), or (n_runs, n_phases) with `path`
            Regret.

        Raises
        ------
        ValueError
            An unknown `kind` or `normalise`.
        """
        checks.one_of("kind", kind, ("expected", "simulated", "fresh"))
        checks.one_of("normalise", normalise, (None, "mass"))
        mass = self.pages[1].sum()
        best = mass * against(*self.pages).freshness * self.borders[1:]
        lost = best - getattr(self, kind).cumsum(axis=-1)
        lost = lost if path else lost[:, -1]
        return lost / mass if normalise else lost


@dataclass(frozen=True, kw_only=True)
class _Learner:
    """Phases, each of which starts with estimates from all crawls so far.

    In a phase with a share, pages are crawled at (1 - share) x allocated rate
    + share x uniform rate; a phase whose share is None explores.
    """

    bounds: tuple
    exploration: float | Callable | None = None
    estimator: Callable | object = estimators.moment_matching
    allocation: Callable = allocation.optimal_poisson
    schedule: Callable = schedules.poisson
    explore: str = "interval"

    def __post_init__(self):
        checks.low_high("bounds", self.bounds, checks.non_negative)
        checks.one_of("explore", self.explore, EXPLORE)
        if not (self.exploration is None or callable(self.exploration)):
            checks.positive_number("exploration", self.exploration)

    def run(self, change_rate, importance, bandwidth, horizon, *, n_runs=1, rng=None):
        """Run the policy on simulated Poisson pages.

        Parameters
        ----------
        change_rate, importance : array_like, shape (n_pages,), 1/time
            True change rates and request rates.
        bandwidth : float, 1/time
            Crawls per unit of time over all pages.
        horizon : float, time
            End of the runs.
        n_runs : int, default 1
            Number of runs.
        rng : None, int, SeedSequence or Generator, optional
            Source of random numbers; run i depends on it and i alone.

        Returns
        -------
        LearningRun
            Requests, crawls and beliefs.

        Raises
        ------
        ValueError
            Arguments out of range; a policy without `exploration`; a horizon
            without time to exploit.

        Warns
        -----
        UnexploredWarning
            Pages without an observation are believed to change at the median
            rate of the others (the middle of the bounds if there is none).
        BoundsWarning
            The bounds exclude true change rates.
        """
        if self.exploration is None:
            raise ValueError("exploration must be given for a policy that is run")
        pages = checked_pages(change_rate, importance, bandwidth)
        horizon = checks.positive_number("horizon", horizon)
        streams = np.random.default_rng(rng).spawn(checks.count("n_runs", n_runs))
        self._warn_of_bounds(pages[0])
        phases = self._phases(horizon, pages[0].size / pages[2])
        results, unexplored = zip(
            *(self._one_run(*pages, phases, stream) for stream in streams), strict=True
        )
        if any(unexplored):
            warnings.warn(
                f"in {np.count_nonzero(unexplored)} of {n_runs} runs pages were "
                "allocated a rate without an observation, at most "
                f"{max(unexplored)} of {pages[0].size}; they are believed to change "
                "as the median of the others, or in the middle of the bounds",
                UnexploredWarning,
                stacklevel=2,
            )
        borders = np.cumsum([0.0, *(duration for duration, _ in phases)])
        return LearningRun(borders, *map(np.stack, zip(*results, strict=True)), pages)

    def believe(self, copies):
        """Estimated change rates after some crawls.

        Parameters
        ----------
        copies : Copies
            The copies, and what their crawls found.

        Returns
        -------
        believed : ndarray, shape (n_pages,), 1/time
            Estimates, clipped to the bounds; for a page without an observation
            the median of the others, or the middle of the bounds.
        n_unknown : int
            Number of pages without an observation.
        """
        believed = copies.estimate(self.estimator)
        unknown = np.isnan(believed)
        believed = np.clip(believed, *self.bounds)
        believed[unknown] = (
            np.mean(self.bounds) if unknown.all() else np.median(believed[~unknown])
        )
        return believed, unknown.sum()

    def _warn_of_bounds(self, change_rate):
        low, high = self.bounds
        outside = (change_rate < low) | (change_rate > high)
        if outside.any():
            warnings.warn(
                f"bounds {self.bounds} exclude the change rates of {outside.sum()} of "
                f"{outside.size} pages",
                BoundsWarning,
                stacklevel=3,
            )

    def _rounds(self, horizon, one_round, name="horizon"):
        """The time to explore within `horizon`, rounded to whole rounds."""
        wanted = self.exploration
        wanted = wanted(horizon) if callable(wanted) else wanted
        wanted = checks.positive_number("exploration", wanted)
        exploration = max(1, round(wanted / one_round)) * one_round
        if horizon <= exploration:
            raise ValueError(
                f"{name} must be longer than the exploration, {exploration:g} (rounds "
                f"of n_pages / bandwidth = {one_round:g}), got {horizon:g}"
            )
        return exploration

    def _one_run(self, change_rate, importance, bandwidth, phases, rng):
        """Counts of each phase, the last beliefs; pages without observation."""
        copies = Copies(change_rate, filled=self.explore == "interval", rng=rng)
        uniform = np.full(change_rate.size, bandwidth / change_rate.size)
        counts, unexplored = np.empty((5, len(phases))), 0
        for k, (duration, share) in enumerate(phases):
            rate, schedule = uniform, EXPLORE[self.explore]
            if share is not None:
                believed, unknown = self.believe(copies)
                unexplored = max(unexplored, unknown)
                plan = self.allocation(believed, importance, bandwidth)
                rate = (1 - share) * plan.crawl_rate + share * uniform
                schedule = self.schedule
            expected, fresh, n_crawls = copies.follow(schedule, rate, duration)
            fresh = fresh @ importance
            # below 0 only by rounding
            stale = max(duration * importance.sum() - fresh, 0.0)
            requests = copies.rng.poisson([fresh, stale])
            counts[:, k] = expected @ importance, fresh, *requests, n_crawls
        return (*counts[:2], *counts[2:].astype(np.int64), believed), unexplored


@dataclass(frozen=True, kw_only=True)
class ExploreThenCommit(_Learner):
    """Explore-then-commit, section 5 of [aaai20]_.

    Crawl all pages alike, estimate once, and commit to the rates that are
    allocated for the estimates.

    Parameters
    ----------
    bounds : tuple of float, 1/time
        Known bounds of the change rates, ``(low, high)``; estimates are
        clipped to them.
    exploration : float or callable, time, optional
        Length of exploration, or a function of the horizon that returns it,
        rounded to whole rounds of n_pages / bandwidth;
        `regret.exploration_horizon` is that of Theorem 1. Only
        `simulate.explore_then_commit`, which tries many lengths, does not need
        it.
    estimator : callable or online estimator, default `moment_matching`
        Function of a History, such as `estimators.mle`, or an object such as
        ``estimators.SA(1.0)``. The latter rest on crawls at Poisson times: use
        them with ``explore="rate"``. Those that count (LLN, Naive) begin anew
        when the crawl rate of a page changes.
    allocation : callable, default `allocation.optimal_poisson`
        Function of change rates, importance and bandwidth.
    schedule : callable, default `schedules.poisson`
        How the allocated rates become crawl times.
    explore : {"interval", "rate"}, default "interval"
        Explore at equal intervals, after a crawl of all pages at time 0; or at
        Poisson times, from an empty cache.
    first_horizon : float, time, optional
        For an unknown horizon: explore and commit within it, then within twice
        that, and so on (the doubling trick); observations are kept.
        `exploration` must then be a function. By default the horizon is known.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    With an exploration of one crawl a page, the default estimator loses to
    uniform crawling, because every page is estimated at one of the bounds. The
    mean of a posterior under a prior that was learnt from other pages wins. In
    30 worlds "lognormal 1.5" of `field`, with crawls at equal intervals and bounds
    that hold 99.8% of the prior, the freshness less that of uniform crawling
    was -.295 (standard error .004) against +.029 (.002) at one crawl a page in
    the median time between changes, and -.483 (.008) against +.024 (.001) at
    three.

    The plain form is `tests.plain.phased_epsilon_greedy` with one phase
    and epsilon 0.

    Examples
    --------
    >>> policy = ExploreThenCommit(
    ...     exploration=lambda horizon: horizon / 5,
    ...     first_horizon=10.0,
    ...     bounds=(0.1, 5.0),
    ... )
    >>> policy.run([0.5, 2.0], 1.0, 2.0, horizon=30.0, rng=1).borders.tolist()
    [0.0, 2.0, 10.0, 14.0, 30.0]
    """

    first_horizon: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.first_horizon is not None:
            checks.positive_number("first_horizon", self.first_horizon)
            if not callable(self.exploration):
                raise ValueError(
                    "exploration must be a function of the horizon where it is "
                    f"doubled, got {self.exploration!r}"
                )

    def _phases(self, horizon, one_round):
        """Duration and share of each phase."""
        length, name = self.first_horizon, "first_horizon"
        if length is None:
            length, name = horizon, "horizon"
        phases, left = [], horizon
        while left > _ROUNDING * horizon:
            exploration = min(self._rounds(length, one_round, name), left)
            phases += [(exploration, None), (min(length, left) - exploration, 0.0)]
            left -= min(length, left)
            length, name = 2 * length, "the doubled first_horizon"
        if not phases[1][0] > 0:
            raise ValueError(
                f"horizon must be longer than the first exploration, got {horizon:g}"
            )
        return [(duration, share) for duration, share in phases if duration > 0]


@dataclass(frozen=True, kw_only=True)
class PhasedEpsilonGreedy(_Learner):
    r"""Phased epsilon-greedy, section 6.3 of [aaai20]_.

    Explore once, then phases of equal length at the rates

    .. math:: (1 - \epsilon)\,\hat\rho + \epsilon\,R / m ,

    where :math:`\hat\rho` is allocated anew at the start of each phase, from
    the estimates of all observations so far, and R / m is the uniform rate.
    One phase with epsilon 0 is `ExploreThenCommit`. The paper lacks the
    details: that exploration comes first and how epsilon enters is our
    reading.

    Parameters
    ----------
    bounds : tuple of float, 1/time
        As in `ExploreThenCommit`.
    exploration : float or callable, time
        As in `ExploreThenCommit`.
    estimator : callable or online estimator, default `moment_matching`
        As in `ExploreThenCommit`.
    allocation : callable, default `allocation.optimal_poisson`
        As in `ExploreThenCommit`.
    schedule : callable, default `schedules.poisson`
        As in `ExploreThenCommit`.
    explore : {"interval", "rate"}, default "interval"
        As in `ExploreThenCommit`.
    n_phases : int
        Number of phases after exploration. They may be shorter than a round,
        such as days in which a fifth of the pages can be crawled, as long as
        `schedule` begins each phase at random: one whose first crawl comes
        after a whole interval would leave out pages of long intervals.
    epsilon : float, in [0, 1], default 0.1
        Share of the bandwidth that goes on exploring.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.phased_epsilon_greedy`.

    Examples
    --------
    >>> policy = PhasedEpsilonGreedy(
    ...     exploration=4.0, bounds=(0.1, 5.0), n_phases=2
    ... )
    >>> policy.run([0.5, 2.0], 1.0, 2.0, horizon=20.0, rng=1).borders.tolist()
    [0.0, 4.0, 12.0, 20.0]
    """

    n_phases: int
    epsilon: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        checks.count("n_phases", self.n_phases)
        checks.scalar(checks.share, "epsilon", self.epsilon)

    def _phases(self, horizon, one_round):
        """Duration and share of each phase."""
        exploration = self._rounds(horizon, one_round)
        length = (horizon - exploration) / self.n_phases
        return [(exploration, None)] + [(length, self.epsilon)] * self.n_phases
