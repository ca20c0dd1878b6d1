"""Policies that set rates while they learn, and the copies that they keep.

The oracle of the copies is a simulator that steps from event to event; that of
the policies, besides the plain form, known rates, for which regret is closed.
"""

import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from paperlib import allocation, estimators, freshness, schedules
from paperlib.copies import POISSON, REGULAR, ROUNDS, Copies, Schedule
from paperlib.policies import (
    ExploreThenCommit,
    PhasedEpsilonGreedy,
    reoptimise,
)
from paperlib.processes import simulate_history
from tests import plain

BOUNDS = (0.1, 5.0)
CHANGE = np.array([0.2, 0.5, 1.0, 3.0, 0.8, 0.3, 4.9, 0.15])
IMPORTANCE = np.array([1.0, 4.0, 0.5, 2.0, 6.0, 0.2, 3.0, 1.0])
PAGES = (CHANGE, IMPORTANCE, 4.0)  # one round takes 2
MASS = IMPORTANCE.sum()
AT_INTERVALS = {"schedule": REGULAR}
HOW = {"poisson": {}, "regular": AT_INTERVALS}

etc = partial(ExploreThenCommit, bounds=BOUNDS)
greedy = partial(PhasedEpsilonGreedy, bounds=BOUNDS, n_phases=2, epsilon=0.1)
explores = pytest.mark.parametrize("explore", ["interval", "rate"])


def agree(one, other):
    """Means within 5 standard errors of their difference."""
    se = np.sqrt(np.var(one, axis=0) / len(one) + np.var(other, axis=0) / len(other))
    assert (np.abs(np.mean(one, axis=0) - np.mean(other, axis=0)) <= 5 * se).all()


def same(one, other, runs=slice(None)):
    np.testing.assert_array_equal(one.borders, other.borders)
    for name in ("utility", "believed"):
        np.testing.assert_array_equal(getattr(one, name)[runs], getattr(other, name))


# ------------------------------ copies


def step_through(change_rate, phases, filled, rng):
    """One page from event to event.

    Fresh time in each phase, what the crawls found, and whether the copy is
    fresh in the end.
    """
    events, start = [], 0.0
    for schedule, crawl_rate, duration in phases:
        times = schedule.times([crawl_rate], duration, rng=rng)[0]
        events += [(start + t, 1, "crawl") for t in times]
        start += duration
        events.append((start, 2, "border"))
    changes, _ = schedules.poisson([change_rate], start, rng=rng)
    events += [(t, 0, "change") for t in changes]
    now, fresh, last, changed = 0.0, filled, 0.0 if filled else None, False
    time, total, found = [], 0.0, []
    for t, _, what in sorted(events):
        total, now = total + (t - now) * fresh, t
        if what == "change":
            fresh, changed = False, True
        elif what == "crawl":
            if last is not None:
                found.append((t - last, changed))
            fresh, last, changed = True, t, False
        else:
            time.append(total)
            total = 0.0
    return time, found, fresh


PHASES = {
    "etc": [(ROUNDS, 0.5, 4.0), (POISSON, 1.5, 5.0)],
    "regular": [(POISSON, 0.5, 4.0), (REGULAR, 1.1, 5.3)],
    "rare": [(REGULAR, 0.15, 4.0), (POISSON, 0.0, 1.0), (ROUNDS, 0.6, 5.0)],
}


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("name", PHASES)
def test_copies_are_as_in_a_simulation_event_by_event(name, filled):
    n, n_slow, change_rate, phases = 8000, 1500, 0.7, PHASES[name]
    copies = Copies(np.full(n, change_rate), filled=filled, rng=1)
    expected, fresh = [], []
    for schedule, rate, duration in phases:
        before = copies.history.interval.size
        mean, was = copies.follow(schedule, np.full(n, rate), duration)
        expected.append(mean)
        fresh.append(was)
        crawls, n_crawls = n * rate * duration, copies.history.interval.size - before
        assert n_crawls <= crawls + 5 * np.sqrt(crawls)
        assert ((was >= 0) & (was <= duration * (1 + 1e-12))).all()
    expected, fresh = np.array(expected).T, np.array(fresh).T
    rng = np.random.default_rng(2)
    slow = [step_through(change_rate, phases, filled, rng) for _ in range(n_slow)]
    slow_fresh, found, slow_end = zip(*slow, strict=True)
    agree(fresh, slow_fresh)
    agree(expected, slow_fresh)
    paired = expected - fresh
    stderr = paired.std(axis=0) / np.sqrt(n)
    assert (np.abs(paired.mean(axis=0)) <= 5 * stderr + 1e-12).all()
    agree(copies.probability(), slow_end)
    history = copies.history
    agree(history.n_crawls, [len(crawls) for crawls in found])
    w, bit = history.interval, history.changed
    agree(history.total(bit), [sum(b for _, b in crawls) for crawls in found])
    agree(history.total(w**2), [sum(w**2 for w, _ in crawls) for crawls in found])
    agree(history.total(w * bit), [sum(w * b for w, b in crawls) for crawls in found])


def test_pages_that_do_not_change_or_are_not_crawled():
    copies = Copies([0.0, 0.0, 1.0], filled=False, rng=7)
    np.testing.assert_array_equal(copies.probability(), 0.0)
    np.testing.assert_array_equal(copies.history.n_crawls, 0)
    rate = np.array([0.0, 2.0, 0.0])
    expected, fresh = copies.follow(POISSON, rate, 50.0)
    np.testing.assert_array_equal(fresh[[0, 2]], 0.0)
    # but for the time to the first crawl
    np.testing.assert_allclose(expected, [0.0, 49.5, 0.0], rtol=1e-12)
    np.testing.assert_array_equal(copies.probability(), [0, 1, 0])
    assert not copies.history.changed.any()
    n_crawls = copies.history.n_crawls
    np.testing.assert_array_equal(n_crawls > 0, rate > 0)
    assert n_crawls[1] == pytest.approx(100, abs=50)


def test_a_schedule_of_ones_own():
    """Without a closed form its expected fresh time is that of the simulation."""
    own = Schedule(
        lambda rate, duration, *, rng: schedules.poisson(rate, duration, rng=rng)
    )
    policy = partial(etc, exploration=6.0)
    runs = [
        policy(schedule=schedule).run(*PAGES, 30.0, n_runs=400, rng=21)
        for schedule in (own, POISSON)
    ]
    np.testing.assert_array_equal(runs[0].believed, runs[1].believed)
    explored, later = np.subtract(runs[0].utility, runs[1].utility).T
    np.testing.assert_array_equal(explored, 0.0)
    assert np.abs(later).min() > 0
    assert abs(later.mean()) < 5 * later.std() / np.sqrt(400)


# ------------------------------ beliefs


def test_beliefs_are_clipped_and_pages_without_crawls_get_the_median():
    estimates = np.array([9.0, np.nan, 0.5, np.nan, 1.5, 0.01])
    policy = etc(estimator=lambda history: estimates)
    copies = Copies(np.ones(6), filled=True, rng=9)
    believed, rate = policy.plan(copies, np.ones(6), 3.0)
    np.testing.assert_allclose(believed, [5.0, 1.0, 0.5, 1.0, 1.5, 0.1], rtol=1e-12)
    best = allocation.optimal_poisson(believed, 1.0, 3.0).crawl_rate
    np.testing.assert_array_equal(rate, best)
    believed, _ = etc().plan(copies, np.ones(6), 3.0)  # before any crawl
    np.testing.assert_array_equal(believed, (0.1 + 5.0) / 2)


def test_bounds_that_exclude_true_rates_are_kept():
    policy = etc(exploration=20.0, bounds=(0.25, 3.0))
    run = policy.run(*PAGES, 40.0, n_runs=5, rng=11)
    assert ((run.believed >= 0.25) & (run.believed <= 3.0)).all()


def test_plans_in_several_threads_leave_the_filters_of_warnings_as_they_were():
    """The filters are of the process: the first to change them may end first."""
    first_began = threading.Event()
    second_began = threading.Event()
    first_ended = threading.Event()

    def first(history):
        first_began.set()
        second_began.wait(timeout=0.3)  # in vain, because one plans at a time
        return CHANGE

    def second(history):
        second_began.set()
        first_ended.wait(timeout=10)
        return CHANGE

    def plan(estimator):
        copies = Copies(CHANGE, filled=True, rng=9)
        return etc(estimator=estimator).plan(copies, *PAGES[1:])

    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(plan, first)
        first_began.wait(timeout=10)
        other = pool.submit(plan, second)
        one.result()
        first_ended.set()
        other.result()
    assert warnings.filters == before


# ------------------------------ regret


@pytest.mark.parametrize("how", HOW)
def test_regret_with_known_rates_is_that_of_exploration_and_the_transient(how):
    policy = etc(exploration=10.0, estimator=lambda history: CHANGE, **HOW[how])
    run = policy.run(*PAGES, 50.0, n_runs=3, rng=12)
    np.testing.assert_array_equal(run.borders, [0, 10, 50])
    np.testing.assert_array_equal(run.believed, np.tile(CHANGE, (3, 1)))
    rate = allocation.optimal_poisson(*PAGES).crawl_rate
    later = freshness.poisson_time if how == "poisson" else freshness.interval_time
    first = freshness.interval_time(CHANGE, 0.5, 10.0, initial=1.0, phase=1.0)
    served = [first @ IMPORTANCE, later(CHANGE, rate, 40.0, initial=1.0) @ IMPORTANCE]
    np.testing.assert_allclose(run.utility, np.tile(served, (3, 1)), rtol=1e-10)
    best = MASS * allocation.optimal_poisson(*PAGES).freshness * run.borders[1:]
    path = (best - np.cumsum(run.utility, axis=1)) / MASS
    np.testing.assert_allclose(run.regret, path, rtol=1e-12, atol=1e-9)


quarter = partial(etc, exploration=lambda horizon: horizon / 4)
POLICY = {
    "commit": (partial(etc, exploration=8.0), [0, 8, 45]),
    "doubled": (partial(quarter, first_horizon=15.0), [0, 4, 15, 23, 45]),
    "phased": (partial(greedy, exploration=6.0, n_phases=3), [0, 6, 19, 32, 45]),
}


@pytest.mark.parametrize("kind", POLICY)
def test_phases_end_at_their_borders(kind):
    make, borders = POLICY[kind]
    run = make().run(*PAGES, 45.0, rng=13)
    np.testing.assert_allclose(run.borders, borders, rtol=1e-12)


def test_a_policy_has_the_distribution_of_its_plain_form():
    pages, n = (CHANGE[:4], IMPORTANCE[:4], 4.0), 60
    policy = greedy(exploration=4.0, n_phases=3, epsilon=0.2)
    run, rng = policy.run(*pages, 25.0, n_runs=4 * n, rng=31), np.random.default_rng(32)
    options = 4.0, 25.0, BOUNDS, 3, 0.2, rng
    slow = [plain.phased_epsilon_greedy(*pages, *options) for _ in range(n)]
    fresh, believed = zip(*slow, strict=True)
    agree(run.utility.sum(axis=1), fresh)
    agree(run.believed, believed)


# ------------------------------ phases


@pytest.mark.parametrize(
    "time",
    [[0, 2, 10, 14, 30], [0, 2, 3], [0, 2, 10, 14, 30, 38, 40], [0, 2, 10, 12]],
)
def test_the_horizon_is_doubled_and_explorations_are_whole_rounds(time):
    asked = []

    def exploration(h):
        asked.append(h)
        return h / 5 + 0.9

    run = etc(exploration=exploration, first_horizon=10.0).run(*PAGES, time[-1], rng=0)
    np.testing.assert_array_equal(run.borders, time)
    assert asked == [10.0, 20.0, 40.0][: len(asked)]


def test_observations_are_kept_and_rates_are_a_mixture(monkeypatch):
    n_seen, planned = [], []

    def estimator(history):
        n_seen.append(history.interval.size)
        return estimators.moment_matching(history)

    optimal = allocation.optimal_poisson

    def plan(*pages):
        planned.append(optimal(*pages).crawl_rate)
        return optimal(*pages)

    monkeypatch.setattr(allocation, "optimal_poisson", plan)
    options = {"n_phases": 3, "epsilon": 0.25, "estimator": estimator}
    run = greedy(exploration=4.0, **options).run(*PAGES, 34.0, rng=16)
    assert n_seen[0] == 16  # two rounds
    crawls = 16 + 4.0 * np.array([10.0, 20.0])
    assert (np.abs(n_seen[1:] - crawls) < 5 * np.sqrt(crawls)).all()
    best = optimal(run.believed[0], *PAGES[1:])
    np.testing.assert_array_equal(planned[-1], best.crawl_rate)
    # in the first phase all copies are fresh at first
    mixture = 0.75 * planned[0] + 0.25 * 0.5
    fresh = freshness.poisson_time(CHANGE, mixture, 10.0, initial=1.0) @ IMPORTANCE
    assert run.utility[0, 1] == pytest.approx(fresh, rel=1e-10)


# ------------------------------ invariances


@explores
@pytest.mark.parametrize("make", [etc, partial(greedy, n_phases=2)])
def test_a_run_depends_on_the_seed_and_its_number_alone(make, explore):
    policy = make(exploration=6.0, explore=explore)
    five, three = (policy.run(*PAGES, 30.0, n_runs=n, rng=17) for n in (5, 3))
    same(five, three, slice(3))
    assert np.unique(five.believed.sum(axis=1)).size > 1


@explores
@pytest.mark.parametrize("how", HOW)
def test_other_units(explore, how):
    c, options = 64, {"explore": explore, "n_phases": 3, "epsilon": 0.3, **HOW[how]}
    one = greedy(exploration=6.0, **options).run(*PAGES, 30.0, n_runs=2, rng=18)
    policy = greedy(exploration=6.0 * c, **options | {"bounds": (0.1 / c, 5.0 / c)})
    problem = CHANGE / c, IMPORTANCE / c, 4.0 / c, 30.0 * c
    other = policy.run(*problem, n_runs=2, rng=18)
    np.testing.assert_array_equal(other.borders, one.borders * c)
    np.testing.assert_allclose(other.utility, one.utility, rtol=1e-9)
    np.testing.assert_allclose(other.believed * c, one.believed, rtol=1e-9)
    np.testing.assert_allclose(other.regret, c * one.regret, rtol=1e-7)


def test_one_page_and_numbers():
    run = etc(exploration=6.0).run(0.5, 1.0, 1.0, 30.0, n_runs=2, rng=19)
    assert run.believed.shape == (2, 1)
    assert np.isfinite(run.regret).all()


@explores
def test_one_phase_is_explore_then_commit(explore):
    options = {"exploration": 12.0, "explore": explore}
    run = etc(**options).run(*PAGES, 40.0, n_runs=3, rng=20)
    same(
        greedy(**options, n_phases=1, epsilon=0.0).run(*PAGES, 40.0, n_runs=3, rng=20),
        run,
    )
    doubled = etc(**options, first_horizon=40.0)
    same(doubled.run(*PAGES, 40.0, n_runs=3, rng=20), run)


# ------------------------------ re-optimisation


@pytest.mark.parametrize("make", [estimators.SA, estimators.SAM, estimators.LLN])
def test_reoptimise_is_the_plain_form(make):
    """The plain form gets the bits that are drawn from the same stream."""
    change_rate, weight = np.array([0.5, 3.0, 1.0]), np.array([1.0, 2.0, 1.0])
    options = {"n_phases": 4, "n_crawls": 30, "min_rate": 1.2, "rng": 5}
    pages, estimator = (change_rate, weight, 4.0), make(1.0)
    rates = reoptimise(estimator, *pages, n_runs=2, **options)
    assert rates.shape == (2, 5, 3)
    np.testing.assert_allclose(rates.sum(axis=-1), 4.0, rtol=1e-10)
    stream, mine, seen = np.random.default_rng(5).spawn(1)[0], make(1.0), []

    def observe(p):
        rates = {"crawl_rate": p, "n_crawls": 30, "rng": stream}
        changed = simulate_history(change_rate, **rates).changed
        seen.extend(mine.update(bits, crawl_rate=p) for bits in changed.T)
        return changed

    expected = plain.reoptimise(lambda _: seen[-1], observe, weight, 4.0, 4, 1.2)
    np.testing.assert_allclose(rates[0], expected, rtol=1e-8)
    # the estimator is left as it was
    again = reoptimise(estimator, *pages, n_runs=2, **options)
    np.testing.assert_array_equal(again, rates)


# ------------------------------ bad input

run = partial(etc(exploration=6.0).run, *PAGES)
halved = partial(etc, exploration=lambda horizon: horizon / 2)
POSITIVE, RISE = "must be positive and finite, got", "must be rising, at least"
ROUNDED = "(rounds of n_pages / bandwidth = 2)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: etc(bounds=(2.0, 1.0)), f"bounds {RISE} 2 numbers, got [2. 1.]"),
        (lambda: greedy(epsilon=1.1), "epsilon must be in [0, 1], got 1.1"),
        (
            lambda: etc(exploration=-1.0).run(*PAGES, 9.0),
            f"exploration {POSITIVE} -1.0",
        ),
        (lambda: run(6.0), f"exploration must be shorter than 6, got 6 {ROUNDED}"),
        (
            lambda: halved(first_horizon=20.0).run(*PAGES, 10.0),
            f"exploration must be shorter than 10, got 10 {ROUNDED}",
        ),
        (lambda: run(-20.0), f"horizon {POSITIVE} -20.0"),
        (lambda: run(20.0, n_runs=0), "n_runs must be an integer of at least 1, got 0"),
        (
            lambda: Copies([1.0, np.nan], filled=True),
            "change_rate must be non-negative and finite, got nan at index (1,)",
        ),
    ],
)
def test_policies_refuse(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
