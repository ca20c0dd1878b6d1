"""Policies that set rates.

The oracle is a simulator that steps from event to event. Three counts of one
regret agree, and rescaled problems have rescaled results.
"""

import functools
import inspect
import re
from functools import partial

import numba
import numpy as np
import pytest
from scipy import stats

from recrawl.science import (
    allocation,
    estimators,
    freshness,
    policies,
    regret,
    schedules,
    simulate,
)
from recrawl.science.policies import (
    EXPLORE,
    BoundsWarning,
    Copies,
    ExploreThenCommit,
    PhasedEpsilonGreedy,
    UnexploredWarning,
)
from recrawl.science.processes import History, poisson_times

BOUNDS = (0.1, 5.0)
CHANGE = np.array([0.2, 0.5, 1.0, 3.0, 0.8, 0.3, 4.9, 0.15])
IMPORTANCE = np.array([1.0, 4.0, 0.5, 2.0, 6.0, 0.2, 3.0, 1.0])
PAGES = (CHANGE, IMPORTANCE, 4.0)  # one round takes 2
MASS = IMPORTANCE.sum()

etc, greedy = (
    partial(ExploreThenCommit, bounds=BOUNDS),
    partial(PhasedEpsilonGreedy, bounds=BOUNDS),
)
FIELDS = ("expected", "simulated", "fresh", "stale", "n_crawls", "believed")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """One thread: on a busy machine many small problems wait for each other."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


def same(one, other, runs=slice(None)):
    for name in FIELDS:
        np.testing.assert_array_equal(
            getattr(one, name)[runs], getattr(other, name)[runs], err_msg=name
        )


def agree(one, other):
    """Means within 5 standard errors of their difference."""
    se = np.sqrt(np.var(one, axis=0) / len(one) + np.var(other, axis=0) / len(other))
    assert (np.abs(np.mean(one, axis=0) - np.mean(other, axis=0)) <= 5 * se).all()


# ------------------------------------ copies, and a simulator event by event


def step_through(change_rate, phases, filled, rng):
    """One page from event to event.

    Fresh time in every phase, what the crawls found, and whether the copy is
    fresh in the end.
    """
    events, start = [], 0.0
    for k, (schedule, crawl_rate, duration) in enumerate(phases):
        events += [
            (start + t, "crawl") for t in schedule([crawl_rate], duration, rng=rng)[0]
        ]
        start += duration
        events.append((start, k))
    events += [(t, "change") for t in poisson_times(change_rate, start, rng=rng)]
    now, fresh, last, changed, time, total, found = (
        0.0,
        filled,
        0.0 if filled else None,
        False,
        [],
        0.0,
        [],
    )
    for t, what in sorted(
        events, key=lambda event: (event[0], event[1] not in ("change", "crawl"))
    ):
        total += (t - now) * fresh
        now = t
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
    "rounds": [(EXPLORE["interval"], 0.5, 6.0)],
    "poisson": [(schedules.poisson, 0.8, 5.0)],
    "etc": [(EXPLORE["interval"], 0.5, 4.0), (schedules.poisson, 1.5, 5.0)],
    "regular": [(schedules.poisson, 0.5, 4.0), (schedules.regular, 1.1, 5.3)],
    "rare": [
        (schedules.regular, 0.15, 4.0),
        (schedules.poisson, 0.0, 1.0),
        (EXPLORE["interval"], 0.6, 5.0),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("name", PHASES)
def test_copies_have_the_distribution_of_a_simulation_event_by_event(name, filled):
    n, n_slow, change_rate, phases = 8000, 1500, 0.7, PHASES[name]
    copies, at = Copies(np.full(n, change_rate), filled=filled, rng=1), 0.0
    expected, fresh = [], []
    for schedule, rate, duration in phases:
        mean, was, n_crawls = copies.follow(schedule, np.full(n, rate), duration)
        expected.append(mean)
        fresh.append(was)
        at += duration
        assert copies.now == at
        assert n_crawls == pytest.approx(
            n * rate * duration, abs=5 * np.sqrt(n * rate * duration)
        )
        assert ((was >= 0) & (was <= duration * (1 + 1e-12))).all()
    expected, fresh = np.array(expected).T, np.array(fresh).T
    rng = np.random.default_rng(2)
    slow_fresh, slow_found, slow_end = zip(
        *(step_through(change_rate, phases, filled, rng) for _ in range(n_slow)),
        strict=True,
    )
    agree(fresh, slow_fresh)
    agree(expected, slow_fresh)
    difference = expected - fresh  # paired
    assert (
        np.abs(difference.mean(axis=0))
        <= 5 * difference.std(axis=0) / np.sqrt(n) + 1e-12
    ).all()
    agree(copies.probability(), slow_end)
    history = copies.history
    agree(history.n_crawls, [len(found) for found in slow_found])
    agree(
        history.total(history.changed),
        [sum(changed for _, changed in found) for found in slow_found],
    )
    agree(
        history.total(history.interval**2),
        [sum(w**2 for w, _ in found) for found in slow_found],
    )
    agree(
        history.total(history.interval * history.changed),
        [sum(w * changed for w, changed in found) for found in slow_found],
    )


def test_changes_have_the_probability_of_their_interval():
    copies = Copies(np.repeat([0.1, 1.0, 6.0], 3000), filled=True, rng=3)
    for schedule, rate, duration in PHASES["regular"]:
        copies.follow(schedule, np.full(9000, rate), duration)
    history = copies.history
    p = -np.expm1(-np.repeat(copies.change_rate, history.n_crawls) * history.interval)
    for low, high in [(0.0, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.999)]:
        here = (p >= low) & (p < high)
        assert here.sum() > 500
        assert abs((history.changed[here] - p[here]).sum()) < 5 * np.sqrt(
            (p * (1 - p))[here].sum()
        )
    # and one observation says nothing of the next
    residual = (history.changed - p) / np.sqrt(p * (1 - p))
    pairs = (residual[1:] * residual[:-1])[
        np.diff(np.repeat(np.arange(9000), history.n_crawls)) == 0
    ]
    assert abs(pairs.sum()) < 5 * np.sqrt((pairs**2).sum())


@pytest.mark.parametrize("filled", [True, False])
def test_intervals_make_up_the_time_from_the_first_crawl_to_the_last(filled):
    copies, rate, first, last = (
        Copies(CHANGE, filled=filled, rng=4),
        np.full(8, 0.7),
        np.full(8, 0.0 if filled else np.inf),
        0.0,
    )
    crawled = []

    def recording(crawl_rate, duration, *, rng):
        time, offsets = schedules.poisson(crawl_rate, duration, rng=rng)
        crawled.append([copies.now + t for t in np.split(time, offsets[1:-1])])
        return time, offsets

    for duration in (0.5, 7.0, 20.0):
        copies.follow(recording, rate, duration)
    times = [np.concatenate(page) for page in zip(*crawled, strict=True)]
    first = np.zeros(8) if filled else np.array([t[0] for t in times])
    last = np.array([t[-1] for t in times])
    np.testing.assert_allclose(
        copies.history.total(copies.history.interval), last - first, rtol=1e-12
    )
    np.testing.assert_array_equal(
        copies.history.n_crawls, [t.size - (not filled) for t in times]
    )
    np.testing.assert_allclose(
        copies.probability(), np.exp(-CHANGE * (27.5 - last)), rtol=1e-10
    )


def test_a_border_between_phases_changes_nothing():
    crawls = np.sort(np.random.default_rng(5).uniform(0, 20, 40))

    def part(start, stop):
        here = crawls[(crawls > start) & (crawls <= stop)] - start
        return lambda rate, duration, *, rng: (here, np.array([0, here.size]))

    whole, halves = (Copies(np.array([1.3]), filled=True, rng=6) for _ in range(2))
    expected, total, n = whole.follow(part(0, 20), np.array([2.0]), 20.0)
    assert np.isnan(expected).all()  # no formula is known
    first, second = (
        halves.follow(part(0, 7), np.array([2.0]), 7.0),
        halves.follow(part(7, 20), np.array([2.0]), 13.0),
    )
    assert first[2] + second[2] == n == 40
    np.testing.assert_allclose(first[1] + second[1], total, rtol=1e-12)
    np.testing.assert_array_equal(whole.history.changed, halves.history.changed)
    np.testing.assert_allclose(
        whole.history.interval, halves.history.interval, rtol=1e-10
    )
    # the copy is fresh throughout an interval without a change, and for a part of
    # an interval with one
    w, changed = whole.history.interval, whole.history.changed
    assert w[~changed].sum() < total[0] < w.sum() + 20 - crawls[-1]


def test_history_is_the_same_whether_it_is_asked_for_late_or_in_between():
    late, between = (Copies(np.array([0.3, 2.0]), filled=False, rng=8) for _ in "ab")
    for rate in ([0.05, 1.0], [2.0, 1.0], [0.0, 3.0]):
        for copies in (late, between):
            copies.follow(schedules.poisson, np.array(rate), 9.0)
        assert between.history is not None
    for one, other in zip(late.history.ragged(), between.history.ragged(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert late.history is late.history  # and joined once


def test_copies_that_do_not_change_or_are_not_crawled():
    copies = Copies(np.array([0.0, 0.0, 1.0]), filled=False, rng=7)
    np.testing.assert_array_equal(copies.probability(), 0.0)
    assert copies.history is None
    np.testing.assert_array_equal(copies.estimate(estimators.mle), np.nan)
    expected, fresh, n = copies.follow(
        schedules.poisson, np.array([0.0, 2.0, 0.0]), 50.0
    )
    np.testing.assert_array_equal(fresh[[0, 2]], 0.0)
    np.testing.assert_array_equal(expected[[0, 2]], 0.0)
    assert expected[1] == pytest.approx(
        49.5, rel=1e-12, abs=0
    )  # but for the time to the first crawl
    np.testing.assert_array_equal(copies.probability(), [0, 1, 0])
    assert not copies.history.changed.any()
    np.testing.assert_array_equal(copies.history.n_crawls, [0, n - 1, 0])
    np.testing.assert_array_equal(
        copies.estimate(estimators.mle), [np.nan, 0.0, np.nan]
    )


@pytest.mark.parametrize(
    "make", [estimators.Naive, estimators.LLN, estimators.SA, estimators.SAM]
)
def test_online_estimators_get_the_rate_of_every_crawl(make):
    copies, counts = (
        Copies(np.array([2.0, 0.7, 1.0, 3.0]), filled=False, rng=8),
        [np.zeros(4, dtype=int)],
    )
    rates = np.array(
        [[1.0, 1.0, 1.0, 0.0], [3.0, 1.0, 0.0, 0.0], [0.5, 2.0, 0.01, 0.0]]
    )
    for rate in rates:
        copies.follow(schedules.poisson, rate, 15.0)
        counts.append(copies.history.n_crawls)
    mine = copies.estimate(make(9.0))
    for page, found in enumerate(
        np.split(copies.history.changed, copies.history.offsets[1:-1])
    ):
        estimator = make(9.0)
        for bit, rate in zip(
            found,
            np.repeat(rates[:, page], np.diff([c[page] for c in counts])),
            strict=True,
        ):
            estimator.update(bit, crawl_rate=rate)
        assert mine[page] == estimator.estimate if found.size else np.isnan(mine[page])


# ---------------------------------------------------------------- what is believed


def test_beliefs_are_clipped_and_unseen_pages_get_the_median_of_the_others():
    def schedule(
        crawl_rate, duration, *, rng
    ):  # pages 0, 2, 4, 5 are seen, 1 and 3 are not
        counts = np.array([3, 0, 3, 0, 3, 3])
        return np.tile([1.0, 2.0, 3.0], 4), np.append(0, np.cumsum(counts))

    estimates = iter([[9.0, 0.5, 1.5, 0.01], [0.5, 0.5, 2.0, 4.0]])
    given = []

    def estimator(history):
        given.append(history)
        values = np.full(6, np.nan)
        values[history.n_crawls > 0] = next(estimates)
        return values

    copies, policy = (
        Copies(np.ones(6), filled=True, rng=9),
        etc(exploration=1.0, estimator=estimator),
    )
    believed, unknown = policy.believe(copies)
    np.testing.assert_array_equal(believed, [(0.1 + 5.0) / 2] * 6)  # before any crawl
    assert unknown == 6
    assert not given
    copies.follow(schedule, np.ones(6), 3.0)
    believed, unknown = policy.believe(copies)
    np.testing.assert_allclose(believed, [5.0, 1.0, 0.5, 1.0, 1.5, 0.1], rtol=1e-12)
    assert unknown == 2
    assert given == [copies.history]
    np.testing.assert_allclose(
        policy.believe(copies)[0], [0.5, 1.25, 0.5, 1.25, 2.0, 4.0], rtol=1e-12
    )


def test_unexplored_pages_are_warned_of():
    one = etc(exploration=2.0, explore="rate")
    message = (
        r"in 1\d of 20 runs pages .* at most 1 of 1; they are believed .* "
        "the median of the others, or in the middle of the bounds"
    )
    with pytest.warns(UnexploredWarning, match=message) as caught:
        run = one.run(
            0.5, 1.0, 0.5, 40.0, n_runs=20, rng=3
        )  # Poisson(1) crawls; the first gives no interval
    assert f"in {(run.believed == 2.55).sum()} of 20 runs" in str(caught[0].message)
    with pytest.warns(UnexploredWarning, match="in 20 of 20 runs"):
        believed = one.run(*PAGES, 40.0, n_runs=20, rng=10).believed
    middling = [
        row for row in believed if np.unique(row).size > 2
    ]  # two pages or more are seen
    assert len(middling) > 3
    for row in middling:
        assert np.count_nonzero(row == np.median(row)) >= 2
    # also where later phases have seen all
    with pytest.warns(UnexploredWarning, match="in 1 of 1 runs"):
        run = greedy(exploration=2.0, n_phases=2, epsilon=1.0, explore="rate").run(
            *PAGES, 200.0, rng=10
        )
    assert np.unique(run.believed).size == 8
    # every page is seen in a round
    etc(exploration=2.0).run(*PAGES, 40.0, n_runs=20, rng=10)


def test_bounds_that_exclude_true_rates_are_warned_of():
    with pytest.warns(
        BoundsWarning,
        match=re.escape("bounds (0.25, 3.0) exclude the change rates of 3 of 8 pages"),
    ):
        run = etc(exploration=20.0, bounds=(0.25, 3.0)).run(
            *PAGES, 40.0, n_runs=5, rng=11
        )
    assert ((run.believed >= 0.25) & (run.believed <= 3.0)).all()
    assert (run.believed[:, 6] == 3.0).any()


# ---------------------------------------------------------------- regret in closed form


@pytest.mark.parametrize("explore", ["interval", "rate"])
@pytest.mark.parametrize("schedule", [schedules.poisson, schedules.regular])
def test_regret_with_known_rates_is_that_of_exploration_and_the_transient(
    explore, schedule
):
    """Only exploration at Poisson times leaves expected counts random."""
    plan = (
        allocation.optimal_poisson
        if schedule is schedules.poisson
        else allocation.optimal
    )
    policy = etc(
        exploration=10.0,
        explore=explore,
        schedule=schedule,
        allocation=plan,
        estimator=lambda history: CHANGE,
    )
    run = policy.run(*PAGES, 50.0, n_runs=30, rng=12)
    np.testing.assert_array_equal(run.borders, [0, 10, 50])
    np.testing.assert_array_equal(run.believed, np.tile(CHANGE, (30, 1)))
    best = plan(*PAGES)
    later = (
        freshness.poisson_time
        if schedule is schedules.poisson
        else freshness.interval_time
    )
    if explore == "interval":
        first = (
            freshness.interval_time(CHANGE, 0.5, 10.0, initial=1.0, phase=1.0)
            @ IMPORTANCE
        )
        second = later(CHANGE, best.crawl_rate, 40.0, initial=1.0) @ IMPORTANCE
        np.testing.assert_allclose(run.expected[:, 1], second, rtol=1e-10)
    else:
        first = freshness.poisson_time(CHANGE, 0.5, 10.0, initial=0.0) @ IMPORTANCE
        then = 0.5 / (0.5 + CHANGE) * -np.expm1(-(0.5 + CHANGE) * 10)
        second = later(CHANGE, best.crawl_rate, 40.0, initial=then) @ IMPORTANCE
        agree(run.expected[:, 1], [second])
    np.testing.assert_allclose(run.expected[:, 0], first, rtol=1e-10)
    path = MASS * best.freshness * run.borders[1:] - np.cumsum(run.expected, axis=1)
    np.testing.assert_allclose(
        run.regret(against=plan, path=True), path, rtol=1e-12, atol=1e-9
    )
    np.testing.assert_allclose(
        run.regret(against=plan), path[:, -1], rtol=1e-12, atol=1e-9
    )
    np.testing.assert_allclose(
        run.regret(against=plan, normalise="mass", path=True),
        path / MASS,
        rtol=1e-12,
        atol=1e-9,
    )
    poisson = run.regret(kind="fresh")
    np.testing.assert_allclose(
        poisson,
        MASS * allocation.optimal_poisson(*PAGES).freshness * 50
        - run.fresh.sum(axis=1),
        rtol=1e-12,
    )


# ---------------------------------------------------------------- Monte Carlo

HOW = {
    "poisson": {},
    "regular": {
        "schedule": schedules.regular,
        "allocation": allocation.optimal,
    },
}
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::recrawl.science.policies.UnexploredWarning")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("explore", ["interval", "rate"])
@pytest.mark.parametrize("kind", POLICY)
def test_three_counts_of_one_regret(kind, explore, how):
    (make, time), n = POLICY[kind], 100 if how == "poisson" else 50
    run = make(explore=explore, **HOW[how]).run(*PAGES, 45.0, n_runs=n, rng=13)
    np.testing.assert_allclose(run.borders, time, rtol=1e-12)
    duration = np.diff(run.borders)
    assert run.expected.shape == run.stale.shape == (n, duration.size)
    for name in ("fresh", "stale", "n_crawls"):
        assert getattr(run, name).dtype.kind == "i"
    # per phase and in all, differences are paired: 5 standard errors
    for one, other in [
        ("expected", "simulated"),
        ("simulated", "fresh"),
        ("expected", "fresh"),
    ]:
        difference = getattr(run, one) - getattr(run, other)
        assert (
            np.abs(difference.mean(axis=0)) < 5 * difference.std(axis=0) / np.sqrt(n)
        ).all()
        difference = run.regret(kind=one) - run.regret(kind=other)
        assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(n)
    assert (
        run.regret(kind="fresh").std()
        > run.regret(kind="simulated").std()
        > run.regret().std()
    )
    requests, mean = run.fresh + run.stale, MASS * duration
    assert (np.abs(requests.mean(axis=0) - mean) < 5 * np.sqrt(mean / n)).all()
    dispersion = (
        (requests - mean) ** 2 / mean
    ).sum()  # of Poisson counts: chi2, but for O(1 / mean)
    assert 1e-5 < stats.chi2.sf(dispersion, requests.size) < 1 - 1e-5
    crawls = 4.0 * duration
    assert (np.abs(run.n_crawls.mean(axis=0) - crawls) < 5 * np.sqrt(crawls / n)).all()
    if explore == "interval":
        explored = [0, 2] if kind == "doubled" else [0]
        np.testing.assert_array_equal(
            run.n_crawls[:, explored], np.tile(crawls[explored], (n, 1))
        )


@pytest.mark.slow
def test_fresh_requests_are_poisson_given_the_time():
    run = etc(exploration=8.0).run(*PAGES, 45.0, n_runs=400, rng=14)
    for seen, mean in [
        (run.fresh, run.simulated),
        (run.stale, MASS * np.diff(run.borders) - run.simulated),
    ]:
        assert (
            1e-5
            < stats.chi2.sf(((seen - mean) ** 2 / mean).sum(), seen.size)
            < 1 - 1e-5
        )


@pytest.mark.slow
def test_more_exploration_costs_at_first_and_learning_pays():
    short, long = (
        etc(exploration=t).run(*PAGES, 400.0, n_runs=40, rng=15) for t in (2.0, 40.0)
    )
    assert short.regret().mean() > long.regret().mean() + 3 * np.hypot(
        short.regret().std(), long.regret().std()
    ) / np.sqrt(40)
    many = greedy(exploration=2.0, n_phases=16, epsilon=0.1).run(
        *PAGES, 400.0, n_runs=40, rng=15
    )
    assert short.regret().mean() > many.regret().mean() + 3 * np.hypot(
        short.regret().std(), many.regret().std()
    ) / np.sqrt(40)


# ---------------------------------------------------------------- phases


@pytest.mark.parametrize(
    ("wanted", "rounds"), [(0.1, 1), (2.9, 1), (3.1, 2), (8.0, 4), (9.5, 5)]
)
def test_exploration_is_rounded_to_whole_rounds(wanted, rounds):
    for policy in (
        etc(exploration=wanted),
        greedy(exploration=wanted, n_phases=1),
        etc(exploration=lambda horizon: wanted * horizon / 20),
    ):
        assert policy.run(*PAGES, 20.0, rng=0).borders[1] == 2 * rounds
    with pytest.raises(ValueError, match="horizon"):
        etc(exploration=wanted).run(*PAGES, 2.0 * rounds)


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


def test_observations_are_kept_over_phases():
    n_seen, plans = [], []

    def estimator(history):
        n_seen.append(history.interval.size)
        return estimators.moment_matching(history)

    def plan(*problem):
        plans.append(problem)
        return allocation.optimal_poisson(*problem)

    run = greedy(exploration=4.0, n_phases=3, estimator=estimator, allocation=plan).run(
        *PAGES, 34.0, rng=16
    )
    np.testing.assert_array_equal(n_seen, run.n_crawls[0].cumsum()[:-1])
    np.testing.assert_array_equal(plans[-1][0], run.believed[0])
    assert all(problem[1] is plans[0][1] and problem[2] == 4.0 for problem in plans)


# ---------------------------------------------------------------- invariances


@pytest.mark.filterwarnings("ignore::recrawl.science.policies.UnexploredWarning")
@pytest.mark.parametrize("explore", ["interval", "rate"])
@pytest.mark.parametrize(
    "make",
    [partial(etc, exploration=6.0), partial(greedy, exploration=6.0, n_phases=2)],
)
def test_a_run_depends_on_the_seed_and_its_number_alone(make, explore):
    policy = make(explore=explore)
    same(
        policy.run(*PAGES, 30.0, n_runs=3, rng=17),
        policy.run(*PAGES, 30.0, n_runs=5, rng=17),
        slice(3),
    )
    one, other = policy.run(*PAGES, 30.0, n_runs=2, rng=17).simulated
    assert (one != other).all()


@pytest.mark.filterwarnings("ignore::recrawl.science.policies.UnexploredWarning")
@pytest.mark.parametrize("explore", ["interval", "rate"])
@pytest.mark.parametrize("make", [etc, partial(greedy, n_phases=3, epsilon=0.3)])
@pytest.mark.parametrize("how", HOW)
def test_another_unit_of_time(make, explore, how):
    c, options = 64, {"explore": explore, **HOW[how]}
    one = make(exploration=6.0, **options).run(*PAGES, 30.0, n_runs=2, rng=18)
    scaled = make(exploration=6.0 * c, bounds=(0.1 / c, 5.0 / c), **options)
    other = scaled.run(CHANGE / c, IMPORTANCE / c, 4.0 / c, 30.0 * c, n_runs=2, rng=18)
    np.testing.assert_array_equal(other.borders, one.borders * c)
    for name in FIELDS[:-1]:
        np.testing.assert_allclose(
            getattr(other, name), getattr(one, name), rtol=1e-9, err_msg=name
        )
    np.testing.assert_allclose(other.believed * c, one.believed, rtol=1e-9)
    np.testing.assert_allclose(other.regret(), one.regret(), rtol=1e-7)


def test_importance_in_another_unit():
    one, other = (
        etc(exploration=6.0).run(CHANGE, c * IMPORTANCE, 4.0, 30.0, n_runs=3, rng=19)
        for c in (1.0, 8.0)
    )
    np.testing.assert_allclose(other.simulated, 8 * one.simulated, rtol=1e-9)
    np.testing.assert_allclose(
        other.regret(normalise="mass"), one.regret(normalise="mass"), rtol=1e-8
    )


@pytest.mark.parametrize("explore", ["interval", "rate"])
def test_one_phase_without_exploration_is_explore_then_commit(explore):
    options = {"exploration": 12.0, "explore": explore}
    run = etc(**options).run(*PAGES, 40.0, n_runs=3, rng=20)
    same(
        greedy(**options, n_phases=1, epsilon=0.0).run(*PAGES, 40.0, n_runs=3, rng=20),
        run,
    )
    same(
        etc(
            exploration=lambda horizon: 0.3 * horizon,
            explore=explore,
            first_horizon=40.0,
        ).run(*PAGES, 40.0, n_runs=3, rng=20),
        run,
    )


@pytest.mark.filterwarnings("ignore::recrawl.science.policies.UnexploredWarning")
@pytest.mark.parametrize("explore", ["interval", "rate"])
def test_what_comes_later_does_not_change_exploration(explore):
    options = {"exploration": 6.0, "explore": explore}
    first = etc(**options).run(*PAGES, 30.0, n_runs=2, rng=21)
    for policy, horizon in [
        (etc(**options), 50.0),
        (etc(**options, **HOW["regular"]), 30.0),
        *[
            (greedy(**options, n_phases=n, epsilon=e), 30.0)
            for n in (1, 4)
            for e in (0.0, 0.5, 1.0)
        ],
    ]:
        run = policy.run(*PAGES, horizon, n_runs=2, rng=21)
        for name in FIELDS[:-1]:
            np.testing.assert_array_equal(
                getattr(run, name)[:, 0], getattr(first, name)[:, 0]
            )


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_phases_may_be_shorter_than_a_round(how):
    """Days in which a page is crawled 0.2 times on average; rounds of 5 days."""
    policy = greedy(exploration=5.0, n_phases=21, epsilon=0.4, **HOW[how])
    run = policy.run(CHANGE, IMPORTANCE, 0.2 * CHANGE.size, 26.0, n_runs=50, rng=25)
    np.testing.assert_allclose(run.borders, [0.0, *range(5, 27)], rtol=1e-12)
    np.testing.assert_array_equal(run.n_crawls[:, 0], CHANGE.size)
    spent = run.n_crawls[:, 1:].sum(axis=1)
    # Crawls on different days are independent given the rates, and Poisson
    # counts vary the most.
    expected = 0.2 * CHANGE.size * 21
    assert abs(spent.mean() - expected) < 4 * np.sqrt(expected / 50)


def test_epsilon_1_is_uniform_rates_throughout():
    run = greedy(exploration=6.0, n_phases=3, epsilon=1.0).run(
        *PAGES, 30.0, n_runs=2, rng=22
    )
    same(
        greedy(
            exploration=6.0, n_phases=3, epsilon=0.0, allocation=allocation.uniform
        ).run(*PAGES, 30.0, n_runs=2, rng=22),
        run,
    )
    assert np.isfinite(run.regret()).all()


def test_rates_are_a_mixture_of_allocated_and_uniform_ones():
    rates = []

    def schedule(crawl_rate, duration, *, rng):
        rates.append(crawl_rate)
        return schedules.poisson(crawl_rate, duration, rng=rng)

    run = greedy(exploration=6.0, n_phases=1, epsilon=0.25, schedule=schedule).run(
        *PAGES, 30.0, rng=23
    )
    best = allocation.optimal_poisson(run.believed[0], *PAGES[1:]).crawl_rate
    np.testing.assert_allclose(rates[0], 0.75 * best + 0.25 * 0.5, rtol=1e-12)
    assert np.isnan(run.regret()).all()  # of a schedule without a formula
    assert np.isfinite(run.regret(kind="simulated")).all()


# -------------------------------------- the library's estimators and allocations

BATCH = (estimators.mle, estimators.moment_matching, estimators.naive)
ONLINE = (estimators.LLN, estimators.SA, estimators.SAM, estimators.Naive)


@functools.cache
def learnt(estimator, explore):
    """What is believed after 3000 crawls of each page at rate 1."""
    policy = etc(
        exploration=3000.0,
        estimator=estimator,
        explore=explore,
        bounds=(0.01, 50.0),
        allocation=allocation.uniform,
    )
    return policy.run(TRUE, 1.0, 4.0, 3000.5, n_runs=3, rng=24).believed


TRUE = np.array([0.3, 0.7, 1.5, 2.5])


@pytest.mark.parametrize("estimator", BATCH)
@pytest.mark.parametrize("explore", ["interval", "rate"])
def test_batch_estimators_learn_the_truth_or_their_limit(estimator, explore):
    q = np.exp(-TRUE)
    if explore == "interval":
        limit, variance = TRUE, (1 - q) / q
    else:
        limit, variance = (
            TRUE,
            1.3 / estimators.fisher_information(TRUE, crawl_rate=1.0),
        )  # moment matching, PAPERS 1.5: below 1.3 here
    if estimator is estimators.naive:
        limit, variance = (1 - q if explore == "interval" else TRUE / (1 + TRUE)), 1.0
    assert (
        np.abs(learnt(estimator, explore) - limit) < 5 * np.sqrt(variance / 2800)
    ).all()


@pytest.mark.slow
@pytest.mark.parametrize("make", ONLINE)
def test_online_estimators_learn_the_truth_or_their_limit(make):
    estimator = make(1.0)
    bias, root = np.array(estimator.moments(TRUE, [2800]))[
        ..., 0
    ]  # 5 standard errors about the mean that they have by then
    assert (
        np.abs(learnt(estimator, "rate") - (TRUE + bias))
        < 5 * np.sqrt(root**2 - bias**2) + 0.1 * np.abs(bias)
    ).all()
    assert (np.abs(TRUE + bias - estimator.limit(TRUE)) < 0.1 * TRUE + 1e-9).all()


@pytest.mark.filterwarnings("ignore::recrawl.science.policies.UnexploredWarning")
@pytest.mark.parametrize(
    "estimator",
    [*BATCH, *(make(0.5) for make in ONLINE)],
    ids=lambda e: getattr(e, "__name__", type(e).__name__),
)
@pytest.mark.parametrize("make", [etc, partial(greedy, n_phases=4)])
def test_every_estimator_runs_in_every_policy(estimator, make):
    run = make(exploration=6.0, estimator=estimator, explore="rate").run(
        *PAGES, 40.0, n_runs=3, rng=25
    )
    assert np.isfinite(run.regret()).all()
    assert ((run.believed >= 0.1) & (run.believed <= 5.0)).all()
    assert np.unique(run.believed).size > 5


@pytest.mark.parametrize(
    "make",
    [partial(etc, exploration=6.0), partial(greedy, exploration=6.0, n_phases=3)],
)
@pytest.mark.parametrize(
    "plan",
    [
        allocation.uniform,
        allocation.proportional,
        partial(allocation.optimal_poisson, min_rate=0.1),
        partial(allocation.optimal, host=np.repeat([0, 1], 4), host_limit={0: 1.0}),
    ],
    ids=["uniform", "proportional", "least", "limited"],
)
def test_other_allocations(make, plan):
    run = make(allocation=plan).run(*PAGES, 30.0, n_runs=3, rng=26)
    assert np.isfinite(run.regret()).all()
    assert (
        run.regret(path=True)[:, 0]
        == make().run(*PAGES, 30.0, n_runs=3, rng=26).regret(path=True)[:, 0]
    ).all()
    crawls = 4.0 * np.diff(run.borders)
    assert (
        np.abs(run.n_crawls.sum(axis=0) - 3 * crawls) < 5 * np.sqrt(3 * crawls)
    ).all()


# ---------------------------------------------------------------- bad input

run = partial(etc(exploration=6.0).run, rng=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: etc(exploration=1.0, bounds=(2.0, 1.0)),
            "bounds must be two numbers, the lower one first, got (2.0, 1.0)",
        ),
        (
            lambda: etc(exploration=1.0, bounds=(1.0, 1.0)),
            "bounds must be two numbers, the lower one first, got (1.0, 1.0)",
        ),
        (
            lambda: etc(exploration=1.0, bounds=(-1.0, 1.0)),
            "bounds must be non-negative and finite, got -1.0 at index (0,)",
        ),
        (
            lambda: etc(exploration=1.0, bounds=(0.0, np.inf)),
            "bounds must be non-negative and finite, got inf at index (1,)",
        ),
        (
            lambda: etc(exploration=1.0, bounds=(np.nan, 1.0)),
            "bounds must be non-negative and finite, got nan at index (0,)",
        ),
        (
            lambda: etc(exploration=1.0, explore="intervals"),
            "explore must be 'interval' or 'rate', got 'intervals'",
        ),
        *[
            (
                lambda make=make, bad=bad: make(exploration=bad),
                f"exploration must be positive and finite, got {bad}",
            )
            for make in (etc, partial(greedy, n_phases=2))
            for bad in (0.0, -1.0, np.nan, np.inf)
        ],
        (
            lambda: etc(exploration=[1.0, 2.0]),
            "exploration must be a single number, got shape (2,)",
        ),
        (
            lambda: etc().run(*PAGES, 20.0),
            "exploration must be given for a policy that is run",
        ),
        (
            lambda: greedy(n_phases=2).run(*PAGES, 20.0),
            "exploration must be given for a policy that is run",
        ),
        (
            lambda: etc(exploration=5.0, first_horizon=10.0),
            "exploration must be a function of the horizon where it is doubled, "
            "got 5.0",
        ),
        (
            lambda: etc(exploration=lambda h: h / 2, first_horizon=0.0),
            "first_horizon must be positive and finite, got 0.0",
        ),
        *[
            (
                lambda e=e: greedy(exploration=1.0, n_phases=2, epsilon=e),
                f"epsilon must be in [0, 1], got {e}",
            )
            for e in (-0.1, 1.1)
        ],
        (
            lambda: greedy(exploration=1.0, n_phases=2, epsilon=np.nan),
            "epsilon must be in [0, 1], got nan",
        ),
        *[
            (
                lambda n=n: greedy(exploration=1.0, n_phases=n),
                f"n_phases must be a positive integer, got {n}",
            )
            for n in (0, -1, 2.0, True, None)
        ],
        (
            lambda: run(*PAGES, 1.0),
            "horizon must be longer than the exploration, 6 (rounds "
            "of n_pages / bandwidth = 2), got 1",
        ),
        (
            lambda: run(*PAGES, 6.0),
            "horizon must be longer than the exploration, 6 (rounds "
            "of n_pages / bandwidth = 2), got 6",
        ),
        (
            lambda: etc(exploration=0.1).run(*PAGES, 1.5),
            "horizon must be longer than the exploration, 2 (rounds",
        ),
        (
            lambda: greedy(exploration=6.0, n_phases=2).run(*PAGES, 5.0),
            "horizon must be longer than the exploration, 6 (rounds",
        ),
        (
            lambda: etc(exploration=lambda h: h / 2, first_horizon=1.0).run(
                *PAGES, 20.0
            ),
            "first_horizon must be longer than the exploration, 2 "
            "(rounds of n_pages / bandwidth = 2), got 1",
        ),
        (
            lambda: etc(exploration=lambda h: h / 2, first_horizon=20.0).run(
                *PAGES, 10.0
            ),
            "horizon must be longer than the first exploration, got 10",
        ),
        (
            lambda: etc(exploration=lambda h: np.nan).run(*PAGES, 20.0),
            "exploration must be positive and finite, got nan",
        ),
        (
            lambda: etc(exploration=lambda h: h - 20).run(*PAGES, 20.0),
            "exploration must be positive and finite, got 0.0",
        ),
        (
            lambda: run([1.0, -1.0], 1.0, 4.0, 20.0),
            "change_rate must be non-negative and finite, got -1.0 at index (1,)",
        ),
        (
            lambda: run([1.0, np.nan], 1.0, 4.0, 20.0),
            "change_rate must be non-negative and finite, got nan at index (1,)",
        ),
        (
            lambda: run([1.0, 1.0], [1.0, -2.0], 4.0, 20.0),
            "importance must be non-negative and finite, got -2.0 at index (1,)",
        ),
        (
            lambda: run([1.0, 1.0], 0.0, 4.0, 20.0),
            "importance must be positive for at least one page, got only zeros",
        ),
        (
            lambda: run([1.0, 1.0], 1.0, 0.0, 20.0),
            "bandwidth must be positive and finite, got 0.0",
        ),
        (
            lambda: run([1.0, 1.0], 1.0, [4.0], 20.0),
            "bandwidth must be a single number, got shape (1,)",
        ),
        (
            lambda: run([1.0, 1.0], 1.0, 4.0, -20.0),
            "horizon must be positive and finite, got -20.0",
        ),
        (
            lambda: run(*PAGES, 20.0, n_runs=0),
            "n_runs must be a positive integer, got 0",
        ),
        (
            lambda: run([1.0, 1.0], [1.0, 1.0, 1.0], 4.0, 20.0),
            "change_rate and importance must have shapes that broadcast, "
            "got change_rate (2,), importance (3,)",
        ),
        (
            lambda: run(np.ones((2, 2)), 1.0, 4.0, 20.0),
            "must be flat arrays of at least one page, got shape (2, 2)",
        ),
        (
            lambda: run([], 1.0, 4.0, 20.0),
            "must be flat arrays of at least one page, got shape (0,)",
        ),
        (
            lambda: run(*PAGES, 20.0).regret(kind="expect"),
            "kind must be 'expected', 'simulated' or 'fresh', got 'expect'",
        ),
        (
            lambda: run(*PAGES, 20.0).regret(normalise="pages"),
            "normalise must be None or 'mass', got 'pages'",
        ),
    ],
)
def test_policies_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_single_page_may_be_a_number():
    one, other = (
        etc(exploration=3.0).run(c, w, 1.0, 20.0, rng=27)
        for c, w in [(0.5, 2.0), ([0.5], [2.0])]
    )
    same(one, other)


def test_pages_that_never_change_are_learnt_and_cost_nothing():
    with pytest.warns(BoundsWarning, match="exclude the change rates of 1 of 2 pages"):
        run = etc(exploration=40.0).run([0.0, 1.0], 1.0, 2.0, 60.0, n_runs=5, rng=28)
    np.testing.assert_array_equal(run.believed[:, 0], 0.1)
    run = etc(exploration=40.0, bounds=(0.0, 5.0)).run(
        [0.0, 1.0], 1.0, 2.0, 60.0, n_runs=5, rng=28
    )
    np.testing.assert_array_equal(run.believed[:, 0], 0.0)
    assert (run.regret(against=allocation.optimal, path=True)[:, 1] < 20).all()


def test_a_history_of_copies_is_a_history_of_pages():
    copies = Copies(CHANGE, filled=True, rng=29)
    copies.follow(EXPLORE["interval"], np.full(8, 0.5), 20.0)
    np.testing.assert_array_equal(copies.history.n_crawls, 10)
    np.testing.assert_allclose(copies.history.interval, 2.0, rtol=1e-12)
    assert isinstance(copies.history, History)


# ---------------------------------------------------------------- two protocols

PICK_PAGES = (
    policies.Rates,
    policies.Greedy,
    policies.GreedyCIS,
    policies.GreedyCISPlus,
    policies.GreedyNCIS,
    policies.Nutch,
    policies.StormCrawler,
)


@pytest.mark.parametrize("kind", PICK_PAGES)
def test_policies_that_pick_pages_have_one_protocol(kind):
    assert list(inspect.signature(kind.choose).parameters)[1:] == [
        "world",
        "time",
        "last",
    ]
    assert not hasattr(kind, "run")


@pytest.mark.parametrize("kind", [ExploreThenCommit, PhasedEpsilonGreedy])
def test_policies_that_set_rates_have_one_protocol(kind):
    parameters = inspect.signature(kind.run).parameters
    assert [*parameters][1:] == [
        "change_rate",
        "importance",
        "bandwidth",
        "horizon",
        "n_runs",
        "rng",
    ]
    assert not hasattr(kind, "choose")


def test_explore_then_commit_at_many_lengths_needs_no_length_of_the_policy():
    found = [
        simulate.explore_then_commit(
            policy,
            *PAGES,
            exploration=[8.0],
            horizon=[6.0, 50.0],
            n_runs=3,
            rng=32,
        )
        for policy in (etc(), etc(exploration=1.0))
    ]
    np.testing.assert_array_equal(*found)
    assert simulate.explore_then_commit is regret.explore_then_commit
    run = etc(exploration=8.0).run(*PAGES, 50.0, n_runs=3, rng=32)
    np.testing.assert_allclose(found[0][:, 0, 1], run.regret(normalise="mass"))
