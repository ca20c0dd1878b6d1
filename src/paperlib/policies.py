"""Who is crawled next, and how often while the change rates are still being learnt."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from paperlib import _checks, _due, _kernels, _slots, _value, allocation, estimators, freshness, schedules
from paperlib.processes import History, join, simulate_history
from paperlib.signals import SignalledPages


class UnexploredWarning(UserWarning):
    """Pages were given crawl rates although no bit of theirs had been seen."""


class BoundsWarning(UserWarning):
    """The bounds of the change rates exclude true rates."""


# a round of exploration by interval ends with a crawl of every page
EXPLORE = {"interval": partial(schedules.regular, phase=1.0), "rate": schedules.poisson}
_FRESH_TIME = {
    EXPLORE["interval"]: partial(freshness.interval_time, phase=1.0),
    schedules.poisson: freshness.poisson_time,
    schedules.regular: freshness.interval_time,
}


class Copies:
    """The copies of Poisson pages that a crawler keeps, and the bits it has seen.

    Parameters
    ----------
    change_rate : array, shape (n_pages,), 1/time
    filled : bool
        Every page is crawled at time 0; otherwise the cache is empty then.
    rng : seed or numpy Generator

    Attributes
    ----------
    now : float, time
    history : ragged History, or None before the first bit
        A page's first crawl has nothing to compare with and yields none.
    """

    def __init__(self, change_rate, *, filled, rng=None):
        self.change_rate, self.rng = change_rate, np.random.default_rng(rng)
        self.now, self.history = 0.0, None
        self._rates, self._counts = [], []
        self._last = np.full(change_rate.size, 0.0 if filled else -np.inf)
        with np.errstate(divide="ignore"):
            self._change_at = self.rng.standard_exponential(change_rate.size) / change_rate if filled else self._last.copy()

    def follow(self, schedule, crawl_rate, duration):
        """Crawl by a schedule for some time.

        Returns each page's fresh time within it, in expectation given what happened before (NaN for a schedule without a formula) and
        as it was, and the number of crawls.
        """
        fresh_time = _FRESH_TIME.get(schedule)
        expected = fresh_time(self.change_rate, crawl_rate, duration, initial=self.probability()) if fresh_time else np.nan * crawl_rate
        time, offsets = schedule(crawl_rate, duration, rng=self.rng)
        start, self.now = self.now, self.now + duration
        interval, changed = np.empty(time.size), np.empty(time.size, dtype=bool)
        fresh = np.empty(self.change_rate.size)
        with _kernels.threads_for(time.size):
            _kernels.crawl_pages(
                start + time, offsets, start, self.now, self.rng.standard_exponential(time.size), self.change_rate,
                self._last, self._change_at, interval, changed, fresh,
            )  # fmt: skip
        seen = np.isfinite(interval)
        if seen.any():
            counts = np.concatenate([[0], np.cumsum(seen)])
            bits = History(interval[seen], changed[seen], counts[offsets])
            self.history = bits if self.history is None else join(self.history, bits)
            self._rates.append(crawl_rate)
            self._counts.append(bits.n_crawls)
        return expected, fresh, time.size

    def probability(self):
        """Probability that each copy is fresh now, given the crawls so far."""
        crawled = self._last >= 0
        return np.where(crawled, np.exp(-self.change_rate * np.where(crawled, self.now - self._last, 0.0)), 0.0)

    def estimate(self, estimator):
        """Change rates from all bits so far, NaN for a page without: by a function of a History, or an online estimator."""
        if self.history is None:
            return np.full(self.change_rate.size, np.nan)
        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
            if callable(estimator):
                return estimator(self.history)
            rate = np.repeat(np.stack(self._rates, axis=1), np.stack(self._counts, axis=1).ravel())
            after = estimators.path(estimator, self.history, crawl_rate=rate)
            return np.where(self.history.n_crawls > 0, after[self.history.offsets[1:] - 1], np.nan)


def checked(change_rate, importance, bandwidth):
    """The three as floats: arrays of one shape, (n_pages,), and a number."""
    change_rate, importance = _checks.non_negative("change_rate", change_rate), _checks.non_negative("importance", importance)
    change_rate, importance = _checks.broadcast(change_rate=np.atleast_1d(change_rate), importance=importance)
    if change_rate.ndim != 1 or not change_rate.size:
        raise ValueError(f"change_rate and importance must be flat arrays of at least one page, got shape {change_rate.shape}")
    return change_rate, importance, _checks.scalar(_checks.positive, "bandwidth", bandwidth)


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

    def regret(self, *, kind="expected", against=allocation.optimal_poisson, normalise=None, path=False):
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
            raise ValueError(f"kind must be 'expected', 'simulated' or 'fresh', got {kind!r}")
        if normalise not in (None, "mass"):
            raise ValueError(f"normalise must be None or 'mass', got {normalise!r}")
        mass = self._pages[1].sum()
        lost = mass * against(*self._pages).freshness * self.time[1:] - getattr(self, kind).cumsum(axis=-1)
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
            raise ValueError(f"bounds must satisfy 0 <= low < high, finite, got {self.bounds!r}")
        if self.explore not in EXPLORE:
            raise ValueError(f"explore must be 'interval' or 'rate', got {self.explore!r}")
        if not callable(self.exploration):
            _checks.scalar(_checks.positive, "exploration", self.exploration)

    def _rounds(self, horizon, one_round, name="horizon"):
        """The time to explore within `horizon`, rounded to whole rounds."""
        wanted = self.exploration(horizon) if callable(self.exploration) else self.exploration
        wanted = _checks.scalar(_checks.positive, "exploration", wanted)
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
        horizon = _checks.scalar(_checks.positive, "horizon", horizon)
        streams = np.random.default_rng(rng).spawn(_checks.count("n_runs", n_runs))
        outside = (change_rate < self.bounds[0]) | (change_rate > self.bounds[1])
        if outside.any():
            warnings.warn(
                f"bounds {self.bounds} exclude the change rates of {outside.sum()} of {outside.size} pages", BoundsWarning, stacklevel=2
            )
        phases = self._phases(horizon, change_rate.size / bandwidth)
        results, unexplored = zip(*(self._one_run(change_rate, importance, bandwidth, phases, s) for s in streams), strict=True)
        if any(unexplored):
            warnings.warn(
                f"in {np.count_nonzero(unexplored)} of {n_runs} runs pages were allocated a rate without a bit seen, "
                f"at most {max(unexplored)} of {change_rate.size}; they are believed to change as the median of the others, "
                "or in the middle of the bounds",
                UnexploredWarning,
                stacklevel=2,
            )
        time = np.concatenate([[0.0], np.cumsum([duration for duration, _ in phases])])
        return LearningRun(time, *(np.stack(values) for values in zip(*results, strict=True)), (change_rate, importance, bandwidth))

    def believe(self, copies):
        """The change rates believed from what `copies` have seen, and how many of them without a bit."""
        believed = copies.estimate(self.estimator)
        unknown = np.isnan(believed)
        believed = np.clip(believed, *self.bounds)
        believed[unknown] = np.mean(self.bounds) if unknown.all() else np.median(believed[~unknown])
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
                rate = (1 - share) * self.allocation(believed, importance, bandwidth).crawl_rate + share * uniform
                schedule = self.schedule
            expected, fresh, n_crawls = copies.follow(schedule, rate, duration)
            fresh = fresh @ importance
            requests = copies.rng.poisson([fresh, max(duration * importance.sum() - fresh, 0.0)])
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
            _checks.scalar(_checks.positive, "first_horizon", self.first_horizon)
            if not callable(self.exploration):
                raise ValueError(f"exploration must be a function of the horizon where it is doubled, got {self.exploration!r}")

    def _phases(self, horizon, one_round):
        if self.first_horizon is None:
            exploration = self._rounds(horizon, one_round)
            return [(exploration, None), (horizon - exploration, 0.0)]
        phases, left, length = [], horizon, self.first_horizon
        while left > 1e-9 * horizon:  # beyond a rounding error
            exploration = min(self._rounds(length, one_round, "the doubled first_horizon" if phases else "first_horizon"), left)
            phases += [(exploration, None), (min(length, left) - exploration, 0.0)]
            left -= min(length, left)
            length *= 2
        if not phases[1][0] > 0:
            raise ValueError(f"horizon must be longer than the first exploration, got {horizon:g}")
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
        _checks.count("n_phases", self.n_phases)
        if not 0 <= _checks.scalar(_checks.finite, "epsilon", self.epsilon) <= 1:
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


def reoptimise(estimator, change_rate, importance, bandwidth, *, n_phases, n_crawls=50, min_rate=1e-3, n_runs=1, rng=None):
    """Crawl rates that are re-optimised from the estimates after every phase, section 5 of [peva22].

    All pages start at the uniform rate. In a phase every page is crawled `n_crawls` times, at Poisson times of its present rate; then
    `allocation.optimal_poisson` of the estimates gives the next rates. The estimator goes on over phases as its class does when the
    crawl rate changes: SA and SAM keep iterate and step index, LLN and Naive restart their counts.

    Deviates from the paper in two guards, without which a page estimated at 0 would never be seen again: estimates and crawl
    rates are kept at `min_rate` or above.

    Parameters
    ----------
    estimator : online estimator, fresh; it is copied
    change_rate, importance : arrays, shape (n_pages,)
        The true change rates, 1/time, and the weights of the pages.
    bandwidth : float, 1/time
    n_phases, n_crawls, n_runs : int
    min_rate : float, 1/time
    rng : seed or numpy Generator
        Run i depends on the seed and i alone.

    Returns
    -------
    array, shape (n_runs, n_phases + 1, n_pages), 1/time
        The rates in use in every phase, the uniform ones first.
    """
    change_rate, importance = np.broadcast_arrays(_checks.non_negative("change_rate", change_rate), importance)
    min_rate = _checks.scalar(_checks.positive, "min_rate", min_rate)
    estimator = copy.deepcopy(estimator)
    rates = np.empty((_checks.count("n_runs", n_runs), _checks.count("n_phases", n_phases) + 1, change_rate.size))
    rates[:, 0] = allocation.uniform(change_rate, importance, bandwidth).crawl_rate
    streams = np.random.default_rng(rng).spawn(n_runs)
    for phase in range(n_phases):
        now = rates[:, phase]
        runs = [simulate_history(change_rate, crawl_rate=p, n_crawls=n_crawls, rng=s) for p, s in zip(now, streams, strict=True)]
        for changed in np.moveaxis([run.changed for run in runs], -1, 0):
            estimate = estimator.update(changed, crawl_rate=now)
        believed = np.maximum(estimate, min_rate)
        rates[:, phase + 1] = allocation.optimal_poisson(believed, importance, bandwidth, min_rate=min_rate).crawl_rate
    return rates


@dataclass(frozen=True, eq=False)
class Rates:
    """Fixed crawl rates: each slot goes to the page that a schedule says. BASELINE rates with LDS slots, in [www25].

    Parameters
    ----------
    crawl_rate : array, shape (n_pages,), 1/time; only the shares count
    schedule : function of crawl rates and a number of slots
    """

    crawl_rate: np.ndarray
    schedule: Callable = schedules.low_discrepancy

    def choose(self, world, time, last):
        """The page of each slot, shape (n_slots,), -1 where that page is not there."""
        _of_the_world("crawl_rate", np.size(self.crawl_rate), world)
        page = self.schedule(self.crawl_rate, time.size) if time.size else np.empty(0, dtype=np.int64)
        return np.where((world.start[page] <= time) & (time < world.stop[page]), page, -1)


def _of_the_world(name, n_pages, world):
    if n_pages != world.start.size:
        raise ValueError(f"{name} must hold the pages of the world, {world.start.size}, got {n_pages}")


@dataclass(frozen=True, eq=False)
class Greedy:
    """Each slot goes to the page of largest `freshness.crawl_value`, without signals. GREEDY of algorithm 1 of [www25].

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    """

    pages: SignalledPages
    terms = None
    discard_window = 0.0

    @property
    def listens(self):
        """Pages whose signals count, bool array of shape (n_pages,)."""
        return np.zeros(self.pages.change_rate.size, dtype=bool)

    @property
    def believed(self):
        """The pages as the crawl value takes them: without signals where it does not listen."""
        recall, false_rate = self.pages.recall * self.listens, self.pages.false_rate * self.listens
        return SignalledPages(self.pages.change_rate, self.pages.importance, recall, false_rate)

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, shape (n_slots,), -1 where there is no page.

        time : array, shape (n_slots,); last : array, shape (n_pages,), the last crawl of each page, -inf for none
        """
        _of_the_world("pages", self.pages.change_rate.size, world)
        believed = self.believed
        rows = _value.rows(*(getattr(believed, name) for name in ("change_rate", "importance", "recall", "false_rate")), self.terms or 0)
        signals = {}
        if self.listens.any():
            start, stop = world.offsets[:-1], world.offsets[1:]
            signals = {"signals": world.heard, "start": start, "stop": np.where(self.listens, stop, start)}
        state = _slots.make(rows, last, np.zeros(last.size, dtype=np.int32), world.start == 0, self.discard_window, **signals)
        out = np.empty(time.size, dtype=np.int64)
        none = np.empty(0, dtype=np.int64), np.empty(0)
        moves = np.unique(np.concatenate([world.start[world.start > 0], world.stop[np.isfinite(world.stop)]]))
        edges = np.concatenate([[0], np.searchsorted(time, moves), [time.size]])
        for k, moment in enumerate([*moves, None]):
            s = slice(edges[k], edges[k + 1])
            _slots.greedy_slots(*state, time[s], *none, out[s])
            if moment is not None:
                # in this order, for a page that goes as it comes
                _slots.change(*state, np.flatnonzero(world.start == moment), True, moment)
                _slots.change(*state, np.flatnonzero(world.stop == moment), False, moment)
        return out


@dataclass(frozen=True, eq=False)
class GreedyNCIS(Greedy):
    """Greedy with noisy signals: the crawl value of elapsed time and signals. GREEDY-NCIS of [www25].

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    terms : int, optional
        APPROX-j: so many terms of the crawl value instead of all.
    discard_window : float, time
        Signals that come within it after a crawl of their page do not count: they may tell of changes before it. NCIS-D.
    """

    terms: int | None = None
    discard_window: float = 0.0

    def __post_init__(self):
        if self.terms is not None:
            _checks.count("terms", self.terms)
        _checks.scalar(_checks.non_negative, "discard_window", self.discard_window)

    @property
    def listens(self):
        """All pages."""
        return np.ones(self.pages.change_rate.size, dtype=bool)


@dataclass(frozen=True, eq=False)
class GreedyCIS(Greedy):
    """Greedy with signals that are all taken for true: a page that sent one is surely stale. GREEDY-CIS of [www25].

    With false signals the draft does not say what is believed; here gamma is, that is, recall x change_rate.
    """

    @property
    def listens(self):
        """All pages."""
        return np.ones(self.pages.change_rate.size, dtype=bool)

    @property
    def believed(self):
        """The pages without false signals."""
        silent = super().believed
        return SignalledPages(silent.change_rate, silent.importance, silent.recall, 0.0)


@dataclass(frozen=True, eq=False)
class GreedyCISPlus(GreedyCIS):
    """GreedyCIS on the pages whose believed precision and recall are high, Greedy on the others. GREEDY-CIS+ of section 6.7 of [www25].

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    min_precision, min_recall : float in [0, 1]
        A page is listened to above both.
    """

    min_precision: float = 0.7
    min_recall: float = 0.6

    @property
    def listens(self):
        """The pages of high precision and recall."""
        return (np.nan_to_num(self.pages.precision) > self.min_precision) & (self.pages.recall > self.min_recall)


@dataclass(frozen=True, eq=False, kw_only=True)
class _DueDates:
    """Every page has an interval that a crawl shortens if it found a change and lengthens if not; the most overdue page gets the slot.

    A slot without a page that is due stays empty. Ties go to the lower index. A page never crawled is due at once.
    """

    day: float
    initial: float
    shrink: float
    grow: float
    limits: tuple

    def __post_init__(self):
        _checks.scalar(_checks.positive, "day", self.day)
        _checks.scalar(_checks.positive, "initial", self.initial)
        _checks.probability("shrink", self.shrink)
        if not _checks.scalar(_checks.positive, "grow", self.grow) > 1:
            raise ValueError(f"grow must be above 1, got {self.grow!r}")
        limits = _checks.positive("limits", self.limits)
        if limits.shape != (2,) or not limits[0] < limits[1]:
            raise ValueError(f"limits must be two numbers, the lower one first, got {self.limits!r}")

    def _rule(self, base=0.0, sync=_due.NO_SYNC, cap=np.inf, cycle=0.0):
        low, high, base, cap, cycle = (float(length) * self.day for length in (*self.limits, base, cap, cycle))
        return base, float(self.shrink), float(self.grow), low, high, float(sync), cap, cycle

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, shape (n_slots,), -1 where no page is due.

        time : array, shape (n_slots,); last : array, shape (n_pages,), the last crawl of each page, -inf for none
        """
        initial = float(self.initial) * self.day
        due = np.where(last == -np.inf, world.start, last + initial)
        out = np.empty(time.size, dtype=np.int64)
        _due.due_slots(time, *world.changes, last, world.stop, due, np.argsort(due, kind="stable"), initial, self._rule(), out)
        return out

    def settled(self, change_rate):
        """Where the rule settles on Poisson pages that are crawled as soon as they are due.

        The intervals from one crawl that finds a change to the next follow from the interval at the first: a Markov chain, here on a grid
        of steps of 2%. Accurate to a relative 1e-3; near the change rates at which `Nutch.cap` begins to matter, to 5%.

        Parameters
        ----------
        change_rate : array, 1/time, positive

        Returns
        -------
        crawl_rate : array, 1/time, in the long run
        freshness : array
            The share of changes that a crawl is the first to find, for after it the copy is fresh until the next change.
        """
        change_rate = _checks.positive("change_rate", change_rate)
        rule = self._rule()
        low, high = self.limits
        grid = self.day * np.geomspace(low, high, 2 + int(np.log(high / low) / 0.02))
        found = np.empty((2, change_rate.size))
        for k, rate in enumerate(change_rate.ravel()):
            transition, crawls, time = np.zeros((grid.size, grid.size)), np.zeros(grid.size), np.zeros(grid.size)
            _due.from_change_to_change(grid, rate, rule, transition, crawls, time)
            balance = transition.T - np.eye(grid.size)
            balance[-1] = 1.0
            law = np.linalg.solve(balance, np.append(np.zeros(grid.size - 1), 1.0))
            found[:, k] = law @ crawls / (law @ time), 1.0 / (law @ time * rate)
        return tuple(found.reshape(2, *change_rate.shape))


@dataclass(frozen=True, eq=False, kw_only=True)
class Nutch(_DueDates):
    """Due dates by AdaptiveFetchSchedule of Apache Nutch 1.x since NUTCH-1564 is repaired; the defaults are those of nutch-default.xml.

    A crawl multiplies the interval by `shrink` if it found a change, else by `grow`. Without a change and with `sync_delta`, where delta
    is the time since a crawl last found one: the interval is at least delta; kept within the limits, it starts sync_delta x delta
    before the crawl (at the crawl itself where that is more than the upper limit).

    Not as in Nutch: the most overdue page comes first, not the one of best score; a page is due no sooner than the lower limit after its
    crawl; crawls do not come in cycles of generate, fetch and update.

    Parameters
    ----------
    day : float, time
        The length of a day in the unit of the world; all times below are in days.
    initial : float
        First interval; db.fetch.interval.default.
    shrink, grow : float
        1 - dec_rate and 1 + inc_rate. Where no configuration is read, the code falls back on 0.8 and 1.2.
    limits : (low, high)
        min_interval and max_interval: a minute and a year.
    sync_delta : float in [0, 1], or None for off
        sync_delta_rate; the code falls back on 0.2.
    cap : float, or None for none
        db.fetch.interval.max. It is no bound of the interval: a page due later than this is taken for lost, gets the interval 0.9 cap
        and is fetched in the next cycle. Without a change it is soon due too late again, and so it is fetched in every cycle.
    cycle : float
        From one cycle to the next, which Nutch leaves to who runs it; matters only with `cap`.
    """

    day: float = 1.0
    initial: float = 30.0
    shrink: float = 0.8
    grow: float = 1.4
    limits: tuple = (1 / 1440, 365.0)
    sync_delta: float | None = 0.3
    cap: float | None = 90.0
    cycle: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.sync_delta is not None:
            _checks.scalar(_checks.share, "sync_delta", self.sync_delta)
        if self.cap is not None:
            _checks.scalar(_checks.positive, "cap", self.cap)
        _checks.scalar(_checks.positive, "cycle", self.cycle)

    def _rule(self):
        sync, cap = (other if value is None else value for value, other in ((self.sync_delta, _due.NO_SYNC), (self.cap, np.inf)))
        return super()._rule(sync=sync, cap=cap, cycle=self.cycle)


@dataclass(frozen=True, eq=False, kw_only=True)
class StormCrawler(_DueDates):
    """Due dates by AdaptiveScheduler of Apache StormCrawler, with its defaults.

    A crawl that found a change takes the interval the share 1 - `shrink` of the way to the lower limit, another one multiplies it by
    `grow`, up to the upper limit. Not rounded down to minutes.

    Parameters
    ----------
    day : float, time
        The length of a day in the unit of the world; all times below are in days.
    initial : float
        First interval; fetchInterval.default.
    shrink, grow : float
        1 - rate.decr and 1 + rate.incr.
    limits : (low, high)
        scheduler.adaptive.fetchInterval.min and max: an hour and two weeks.
    """

    day: float = 1.0
    initial: float = 1.0
    shrink: float = 0.5
    grow: float = 1.5
    limits: tuple = (1 / 24, 14.0)

    def _rule(self):
        return super()._rule(base=self.limits[0])
