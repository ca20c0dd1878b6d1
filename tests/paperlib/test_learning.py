"""Policies that set rates while they learn, and the copies that they keep.

The oracle of the copies is a simulator that steps from event to event; that of
the policies, besides the plain form, known rates, for which regret is closed.
"""

import re
from functools import partial

import numpy as np
import pytest

from paperlib import allocation, estimators, freshness, schedules
from paperlib.copies import EXPLORE, Copies
from paperlib.errors import BoundsWarning, UnexploredWarning
from paperlib.policies import (
    ExploreThenCommit,
    PhasedEpsilonGreedy,
    explore_then_commit,
    reoptimise,
)
from paperlib.processes import poisson_times, simulate_history
from tests import plain

BOUNDS = (0.1, 5.0)
CHANGE = np.array([0.2, 0.5, 1.0, 3.0, 0.8, 0.3, 4.9, 0.15])
IMPORTANCE = np.array([1.0, 4.0, 0.5, 2.0, 6.0, 0.2, 3.0, 1.0])
PAGES = (CHANGE, IMPORTANCE, 4.0)  # one round takes 2
MASS = IMPORTANCE.sum()
HOW = {
    "poisson": {},
    "regular": {
        "schedule": schedules.regular,
        "allocation": allocation.optimal_interval,
    },
}
COUNTS = ("expected", "fresh", "n_crawls")

etc = partial(ExploreThenCommit, bounds=BOUNDS)
greedy = partial(PhasedEpsilonGreedy, bounds=BOUNDS)
unexplored = pytest.mark.filterwarnings("ignore::paperlib.errors.UnexploredWarning")
explores = pytest.mark.parametrize("explore", ["interval", "rate"])


def agree(one, other):
    """Means within 5 standard errors of their difference."""
    se = np.sqrt(np.var(one, axis=0) / len(one) + np.var(other, axis=0) / len(other))
    assert (np.abs(np.mean(one, axis=0) - np.mean(other, axis=0)) <= 5 * se).all()


def same(one, other, runs=slice(None)):
    np.testing.assert_array_equal(one.borders, other.borders)
    for name in (*COUNTS, "believed"):
        np.testing.assert_array_equal(getattr(one, name)[runs], getattr(other, name))


# ------------------------------ copies


def step_through(change_rate, phases, filled, rng):
    """One page from event to event.

    Fresh time in each phase, what the crawls found, and whether the copy is
    fresh in the end.
    """
    events, start = [], 0.0
    for schedule, crawl_rate, duration in phases:
        times = schedule([crawl_rate], duration, rng=rng)[0]
        events += [(start + t, 1, "crawl") for t in times]
        start += duration
        events.append((start, 2, "border"))
    events += [(t, 0, "change") for t in poisson_times(change_rate, start, rng=rng)]
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
    "etc": [(EXPLORE["interval"], 0.5, 4.0), (schedules.poisson, 1.5, 5.0)],
    "regular": [(schedules.poisson, 0.5, 4.0), (schedules.regular, 1.1, 5.3)],
    "rare": [
        (schedules.regular, 0.15, 4.0),
        (schedules.poisson, 0.0, 1.0),
        (EXPLORE["interval"], 0.6, 5.0),
    ],
}


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("name", PHASES)
def test_copies_are_as_in_a_simulation_event_by_event(name, filled):
    n, n_slow, change_rate, phases = 8000, 1500, 0.7, PHASES[name]
    copies, expected, fresh = (
        Copies(np.full(n, change_rate), filled=filled, rng=1),
        [],
        [],
    )
    for schedule, rate, duration in phases:
        mean, was, n_crawls = copies.follow(schedule, np.full(n, rate), duration)
        expected.append(mean)
        fresh.append(was)
        crawls = n * rate * duration
        assert n_crawls == pytest.approx(crawls, abs=5 * np.sqrt(crawls))
        assert ((was >= 0) & (was <= duration * (1 + 1e-12))).all()
    assert copies.now == sum(duration for *_, duration in phases)
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


@pytest.mark.parametrize("filled", [True, False])
def test_expected_fresh_time_is_the_plain_form(filled):
    rng = np.random.default_rng(6)
    for schedule in (EXPLORE["interval"], schedules.poisson):
        rate, copies = rng.lognormal(0, 1, 8), Copies(CHANGE, filled=filled, rng=7)
        copies.follow(schedules.poisson, np.full(8, 2.0), 5.0)
        start = copies.probability()
        found, _, _ = copies.follow(schedule, rate, 3.0)
        pages = CHANGE, rate, np.full(8, 3.0), start
        expected = [
            plain.poisson_fresh_time(*page)
            if schedule is schedules.poisson
            else plain.interval_fresh_time(*page, 1.0)
            for page in zip(*pages, strict=True)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_pages_that_do_not_change_or_are_not_crawled():
    copies = Copies([0.0, 0.0, 1.0], filled=False, rng=7)
    np.testing.assert_array_equal(copies.probability(), 0.0)
    np.testing.assert_array_equal(copies.history.n_crawls, 0)
    rate = np.array([0.0, 2.0, 0.0])
    expected, fresh, n = copies.follow(schedules.poisson, rate, 50.0)
    np.testing.assert_array_equal(fresh[[0, 2]], 0.0)
    # but for the time to the first crawl
    np.testing.assert_allclose(expected, [0.0, 49.5, 0.0], rtol=1e-12)
    np.testing.assert_array_equal(copies.probability(), [0, 1, 0])
    assert not copies.history.changed.any()
    np.testing.assert_array_equal(copies.history.n_crawls, [0, n - 1, 0])
    full = Copies([0.0, 1.0], filled=True, rng=7)
    assert full.follow(schedules.poisson, np.zeros(2), 9.0)[1][0] == 9.0


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


def test_pages_without_an_observation_are_warned_of():
    message = "^pages are allocated a rate without an observation$"
    with pytest.warns(UnexploredWarning, match=message):
        run = etc(exploration=2.0, explore="rate").run(*PAGES, 40.0, n_runs=20, rng=10)
    assert np.isfinite(run.regret()).all()
    etc(exploration=2.0).run(*PAGES, 40.0, n_runs=20, rng=10)  # a round sees all pages


def test_bounds_that_exclude_true_rates_are_warned_of():
    policy = etc(exploration=20.0, bounds=(0.25, 3.0))
    message = "bounds (0.25, 3.0) exclude true change rates"
    with pytest.warns(BoundsWarning, match=f"^{re.escape(message)}$"):
        run = policy.run(*PAGES, 40.0, n_runs=5, rng=11)
    assert ((run.believed >= 0.25) & (run.believed <= 3.0)).all()


# ------------------------------ regret


@unexplored
@explores
@pytest.mark.parametrize("how", HOW)
def test_regret_with_known_rates_is_that_of_exploration_and_the_transient(explore, how):
    """Only exploration at Poisson times leaves expected counts random."""
    known = {"estimator": lambda history: CHANGE, "explore": explore}
    run = etc(exploration=10.0, **known, **HOW[how]).run(
        *PAGES, 50.0, n_runs=30, rng=12
    )
    np.testing.assert_array_equal(run.borders, [0, 10, 50])
    np.testing.assert_array_equal(run.believed, np.tile(CHANGE, (30, 1)))
    plan = HOW[how].get("allocation", allocation.optimal_poisson)
    later = freshness.poisson_time if how == "poisson" else freshness.interval_time
    rates = CHANGE, plan(*PAGES).crawl_rate, 40.0
    if explore == "interval":
        first = freshness.interval_time(CHANGE, 0.5, 10.0, initial=1.0, phase=1.0)
        second = later(*rates, initial=1.0) @ IMPORTANCE
        np.testing.assert_allclose(run.expected[:, 1], second, rtol=1e-10)
    else:
        first = freshness.poisson_time(CHANGE, 0.5, 10.0, initial=0.0)
        then = 0.5 / (0.5 + CHANGE) * -np.expm1(-(0.5 + CHANGE) * 10)
        agree(run.expected[:, 1], [later(*rates, initial=then) @ IMPORTANCE])
    np.testing.assert_allclose(run.expected[:, 0], first @ IMPORTANCE, rtol=1e-10)
    best = MASS * allocation.optimal_poisson(*PAGES).freshness * run.borders[1:]
    path, close = best - np.cumsum(run.expected, axis=1), {"rtol": 1e-12, "atol": 1e-9}
    np.testing.assert_allclose(run.regret(path=True), path, **close)
    np.testing.assert_allclose(run.regret(), path[:, -1], **close)
    np.testing.assert_allclose(
        run.regret(normalise="mass"), path[:, -1] / MASS, **close
    )
    served = best[-1] - run.fresh.sum(axis=1)
    np.testing.assert_allclose(run.regret(kind="fresh"), served, **close)


POLICY = {
    "commit": (partial(etc, exploration=8.0), [0, 8, 45]),
    "doubled": (
        partial(etc, exploration=lambda horizon: horizon / 4, first_horizon=15.0),
        [0, 4, 15, 23, 45],
    ),
    "phased": (
        partial(greedy, exploration=6.0, n_phases=3, epsilon=0.2),
        [0, 6, 19, 32, 45],
    ),
}


@unexplored
@pytest.mark.parametrize("how", HOW)
@explores
@pytest.mark.parametrize("kind", POLICY)
def test_both_counts_have_one_mean(kind, explore, how):
    (make, borders), n = POLICY[kind], 60
    run = make(explore=explore, **HOW[how]).run(*PAGES, 45.0, n_runs=n, rng=13)
    np.testing.assert_allclose(run.borders, borders, rtol=1e-12)
    paired = run.expected - run.fresh
    assert (np.abs(paired.mean(axis=0)) < 5 * paired.std(axis=0) / np.sqrt(n)).all()
    total = run.regret() - run.regret(kind="fresh")
    assert abs(total.mean()) < 5 * total.std() / np.sqrt(n)
    assert run.regret(kind="fresh").std() > run.regret().std()
    crawls = 4.0 * np.diff(run.borders)
    assert (np.abs(run.n_crawls.mean(axis=0) - crawls) < 5 * np.sqrt(crawls / n)).all()
    if explore == "interval":
        explored = [0, 2] if kind == "doubled" else [0]
        np.testing.assert_array_equal(run.n_crawls[:, explored], [crawls[explored]] * n)


def test_a_policy_has_the_distribution_of_its_plain_form():
    pages, n = (CHANGE[:4], IMPORTANCE[:4], 4.0), 60
    policy = greedy(exploration=4.0, n_phases=3, epsilon=0.2)
    run, rng = policy.run(*pages, 25.0, n_runs=4 * n, rng=31), np.random.default_rng(32)
    fresh, believed = zip(
        *(
            plain.phased_epsilon_greedy(*pages, 4.0, 25.0, BOUNDS, 3, 0.2, rng)
            for _ in range(n)
        ),
        strict=True,
    )
    agree(run.expected.sum(axis=1), fresh)
    agree(run.believed, believed)


# ------------------------------ phases


@pytest.mark.parametrize(
    ("wanted", "rounds"), [(0.1, 1), (2.9, 1), (3.1, 2), (8.0, 4), (9.5, 5)]
)
def test_exploration_is_rounded_to_whole_rounds(wanted, rounds):
    by_horizon = etc(exploration=lambda horizon: wanted * horizon / 20)
    for policy in (etc(exploration=wanted), greedy(exploration=wanted), by_horizon):
        assert policy.run(*PAGES, 20.0, rng=0).borders[1] == 2 * rounds


@pytest.mark.parametrize(
    ("horizon", "time"),
    [
        (35.0, [0, 2, 10, 14, 30, 35]),
        (30.0, [0, 2, 10, 14, 30]),
        (3.0, [0, 2, 3]),
        (40.0, [0, 2, 10, 14, 30, 38, 40]),
        (10.0, [0, 2, 10]),
    ],
)
def test_the_horizon_is_doubled(horizon, time):
    asked = []

    def exploration(h):
        asked.append(h)
        return h / 5

    run = etc(exploration=exploration, first_horizon=10.0).run(*PAGES, horizon, rng=0)
    np.testing.assert_array_equal(run.borders, time)
    assert asked == [10.0, 20.0, 40.0][: len(asked)]


def test_observations_are_kept_and_rates_are_a_mixture():
    n_seen, planned, rates = [], [], []

    def estimator(history):
        n_seen.append(history.interval.size)
        return estimators.moment_matching(history)

    def plan(change_rate, importance, bandwidth):
        planned.append(change_rate)
        found = allocation.optimal_poisson(change_rate, importance, bandwidth)
        rates.append(found.crawl_rate)
        return found

    policy = greedy(
        exploration=4.0,
        n_phases=3,
        epsilon=0.25,
        estimator=estimator,
        allocation=plan,
        schedule=schedules.poisson,
    )
    run = policy.run(*PAGES, 34.0, rng=16)
    np.testing.assert_array_equal(n_seen, run.n_crawls[0].cumsum()[:-1])
    np.testing.assert_array_equal(planned[-1], run.believed[0])
    even = greedy(exploration=6.0, n_phases=3, allocation=allocation.uniform)
    uniform = greedy(exploration=6.0, n_phases=3, epsilon=1.0)
    np.testing.assert_array_equal(
        even.run(*PAGES, 30.0, rng=22).expected,
        uniform.run(*PAGES, 30.0, rng=22).expected,
    )
    # in the first phase all copies are fresh at first
    mixture = 0.75 * rates[0] + 0.25 * 0.5
    fresh = freshness.poisson_time(CHANGE, mixture, 10.0, initial=1.0) @ IMPORTANCE
    assert run.expected[0, 1] == pytest.approx(fresh, rel=1e-10)


# ------------------------------ invariances


@unexplored
@explores
@pytest.mark.parametrize("make", [etc, partial(greedy, n_phases=2)])
def test_a_run_depends_on_the_seed_and_its_number_alone(make, explore):
    policy = make(exploration=6.0, explore=explore)
    five, three = (policy.run(*PAGES, 30.0, n_runs=n, rng=17) for n in (5, 3))
    same(five, three, slice(3))
    assert np.unique(five.fresh.sum(axis=1)).size > 1


@unexplored
@explores
@pytest.mark.parametrize("how", HOW)
def test_other_units(explore, how):
    c, options = 64, {"explore": explore, "n_phases": 3, "epsilon": 0.3, **HOW[how]}
    one = greedy(exploration=6.0, **options).run(*PAGES, 30.0, n_runs=2, rng=18)
    policy = greedy(exploration=6.0 * c, **options | {"bounds": (0.1 / c, 5.0 / c)})
    problem = CHANGE / c, IMPORTANCE / c, 4.0 / c, 30.0 * c
    other = policy.run(*problem, n_runs=2, rng=18)
    np.testing.assert_array_equal(other.borders, one.borders * c)
    np.testing.assert_allclose(other.expected, one.expected, rtol=1e-9)
    np.testing.assert_allclose(other.believed * c, one.believed, rtol=1e-9)
    np.testing.assert_allclose(other.regret(), one.regret(), rtol=1e-7)


def test_one_page_and_numbers():
    run = etc(exploration=6.0).run(0.5, 1.0, 1.0, 30.0, n_runs=2, rng=19)
    np.testing.assert_array_equal(run.n_crawls[:, 0], 6)
    assert run.believed.shape == (2, 1)
    assert np.isfinite(run.regret()).all()


@explores
def test_one_phase_is_explore_then_commit(explore):
    options = {"exploration": 12.0, "explore": explore}
    run = etc(**options).run(*PAGES, 40.0, n_runs=3, rng=20)
    same(greedy(**options, epsilon=0.0).run(*PAGES, 40.0, n_runs=3, rng=20), run)
    doubled = etc(**options, first_horizon=40.0)
    same(doubled.run(*PAGES, 40.0, n_runs=3, rng=20), run)


# ------------------------------ many lengths of exploration


@unexplored
@explores
@pytest.mark.parametrize("exploration", [1.5, 6.9, 28.0])
@pytest.mark.parametrize(
    ("estimator", "plan"), [("mle", "optimal_poisson"), ("moment_matching", "uniform")]
)
def test_one_length_is_the_expected_regret_of_the_policy(
    explore, exploration, estimator, plan
):
    policy = etc(
        exploration=exploration,
        explore=explore,
        estimator=getattr(estimators, estimator),
        allocation=getattr(allocation, plan),
    )
    options, lengths = {"n_runs": 4, "rng": 10}, {"exploration": [exploration]}
    horizon = [31.0, 50.0, 1e4]  # to simulate the third would take long
    got = explore_then_commit(policy, *PAGES, horizon=horizon, **lengths, **options)
    assert got.shape == (4, 1, 3)
    for k, end in enumerate(horizon[:2]):
        run = policy.run(*PAGES, end, **options)
        found = run.regret(normalise="mass")
        np.testing.assert_allclose(got[:, 0, k], found, rtol=1e-9, atol=1e-9)


def test_many_lengths_have_the_mean_of_each_alone():
    lengths, options = [4.0, 10.0, 40.0], {"horizon": [30.0, 200.0], "n_runs": 100}
    explored = partial(explore_then_commit, etc(), *PAGES, **options)
    many = explored(exploration=lengths, rng=1)
    assert np.isnan(many).tolist() == [[[False] * 2] * 2 + [[True, False]]] * 100
    for k, length in enumerate(lengths):
        alone, known = explored(exploration=[length], rng=2), ~np.isnan(many[0, k])
        agree(many[:, k, known], alone[:, 0, known])


def test_known_rates_cost_exploration_and_the_transient():
    policy = etc(estimator=lambda history: CHANGE)
    options = {"exploration": [8.0], "horizon": [1e3, 1e9], "n_runs": 2, "rng": 13}
    got = explore_then_commit(policy, *PAGES, **options)
    best = allocation.optimal_poisson(*PAGES)
    explored = freshness.interval_time(CHANGE, 0.5, 8.0, initial=1.0, phase=1.0)
    # from fresh copies on: the integral of (1 - p) exp(-(rho + D) t)
    extra = CHANGE / (best.crawl_rate + CHANGE) ** 2
    expected = best.freshness * 8 - (explored + extra) @ IMPORTANCE / MASS
    np.testing.assert_allclose(got[:, 0, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(got[:, 0, 1], expected, atol=1e-5)  # 1e-16 of 1e9


# ------------------------------ re-optimisation


@pytest.mark.parametrize("make", [estimators.SA, estimators.SAM, estimators.LLN])
def test_reoptimise_is_the_plain_form(make):
    """The plain form gets the bits that are drawn from the same stream."""
    change_rate, weight = np.array([0.5, 3.0, 1.0]), np.array([1.0, 2.0, 1.0])
    options = {"n_phases": 4, "n_crawls": 30, "min_rate": 0.01, "n_runs": 2, "rng": 5}
    estimator = make(1.0)
    rates = reoptimise(estimator, change_rate, weight, 4.0, **options)
    assert rates.shape == (2, 5, 3)
    for k, stream in enumerate(np.random.default_rng(5).spawn(2)):
        mine, estimates = make(1.0), []

        def observe(p, mine=mine, estimates=estimates, stream=stream):
            history = simulate_history(
                change_rate, crawl_rate=p, n_crawls=30, rng=stream
            )
            for bits in history.changed.T:
                estimate = mine.update(bits, crawl_rate=p)
            estimates.append(np.array(estimate))
            return history.changed

        def estimate(phases, estimates=estimates):
            return estimates[-1]

        expected = plain.reoptimise(estimate, observe, weight, 4.0, 4, 0.01)
        np.testing.assert_allclose(rates[k], expected, rtol=1e-8)
    again = reoptimise(estimator, change_rate, weight, 4.0, **options)
    np.testing.assert_array_equal(again, rates)  # the estimator is left as it was


def test_reoptimised_rates_come_near_the_optimum():
    rates = reoptimise(
        estimators.SA(1.0), [0.5, 3.0], 1.0, 4.0, n_phases=30, n_runs=30, rng=1
    )
    np.testing.assert_array_equal(rates[:, 0], 2.0)
    np.testing.assert_allclose(rates.sum(axis=-1), 4.0, rtol=1e-10)
    assert (rates >= 1e-3 * (1 - 1e-9)).all()
    best = allocation.optimal_poisson([0.5, 3.0], 1.0, 4.0).crawl_rate
    off = np.abs(rates - best).mean(axis=(0, 2))
    assert off[-1] < 0.5 * off[0]


# ------------------------------ bad input

run, lengths = (
    partial(etc(exploration=6.0).run, *PAGES),
    partial(explore_then_commit, etc()),
)
halved = partial(etc, exploration=lambda horizon: horizon / 2)
again = partial(reoptimise, estimators.SA(1.0), *PAGES)
POSITIVE, RISE = "must be positive and finite, got", "must rise, at least"
ROUNDS = "(rounds of n_pages / bandwidth = 2)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: etc(bounds=(2.0, 1.0)), f"bounds {RISE} 2 numbers, got (2.0, 1.0)"),
        (lambda: greedy(epsilon=1.1), "epsilon must be in [0, 1], got 1.1"),
        (
            lambda: etc(exploration=-1.0).run(*PAGES, 9.0),
            f"exploration {POSITIVE} -1.0",
        ),
        (lambda: run(6.0), f"exploration must be shorter than 6, got 6 {ROUNDS}"),
        (
            lambda: halved(first_horizon=1.0).run(*PAGES, 20.0),
            f"exploration must be shorter than 1, got 2 {ROUNDS}",
        ),
        (
            lambda: halved(first_horizon=20.0).run(*PAGES, 10.0),
            f"exploration must be shorter than 10, got 10 {ROUNDS}",
        ),
        (lambda: run(-20.0), f"horizon {POSITIVE} -20.0"),
        (lambda: run(20.0, n_runs=0), "n_runs must be a positive integer, got 0"),
        (
            lambda: Copies([1.0, np.nan], filled=True),
            "change_rate must be non-negative and finite, got nan at index (1,)",
        ),
        (
            lambda: lengths(*PAGES[:2], 0.0, exploration=[6.0], horizon=99.0),
            f"bandwidth {POSITIVE} 0.0",
        ),
        (
            lambda: lengths(*PAGES, exploration=[6.0, 4.0], horizon=99.0),
            f"exploration {RISE} 1 numbers, got [6.0, 4.0]",
        ),
        (
            lambda: lengths(*PAGES, exploration=[6.0, 6.1], horizon=99.0),
            f"exploration in rounds {RISE} 1 numbers, got [3. 3.]",
        ),
        (
            lambda: lengths(*PAGES, exploration=[6.0], horizon=[99.0, -1.0]),
            f"horizon {POSITIVE} -1.0 at index (1,)",
        ),
        (lambda: again(n_phases=0), "n_phases must be a positive integer, got 0"),
        (lambda: again(n_phases=2, min_rate=0.0), f"min_rate {POSITIVE} 0.0"),
    ],
)
def test_policies_refuse(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
