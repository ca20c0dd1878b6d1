"""Learning while crawling, and polite hosts.

The oracle is the full arg max by brute force; what is seen and what is believed
follow from the crawls, and limits are never exceeded.
"""

import re

import numpy as np
import pytest
from scipy.optimize import brentq

from recrawl.science import allocation, freshness, simulate
from recrawl.science.policies import (
    GreedyNCIS,
    LearningGreedy,
    PoliteGreedy,
    estimate,
    parameter_errors,
    polite_thresholds,
)
from recrawl.science.processes import observe
from recrawl.science.signals import SignalledPages, fit, simulate_signalled_history
from tests.recrawl.thinned import every

BANDWIDTH, HORIZON = 12.0, 40.0
ESTIMATE = "recrawl.science.policies.learning.estimate"


def draw(n_pages=30, seed=1):
    rng = np.random.default_rng(seed)
    pages = SignalledPages(
        rng.random(n_pages),
        rng.random(n_pages),
        rng.beta(0.5, 0.5, n_pages),
        rng.uniform(0.1, 0.6, n_pages),
    )
    return (
        pages,
        simulate.draw_world(pages, HORIZON, rng=rng),
        rng.integers(0, 4, n_pages),
    )


def learner(pages, first=5.0, **options):
    return LearningGreedy(pages.importance, first, **options)


def course(pages, world, **options):
    return learner(pages, **options).learn(
        world, simulate.slot_times(BANDWIDTH, HORIZON), np.zeros(pages.change_rate.size)
    )


def most_above(run, host, limit):
    """Most crawls of one host in a time w, both ends counted, above limit w."""
    worst = -np.inf
    for h in np.unique(host):
        time = run.time[(run.page >= 0) & (host[run.page] == h)]
        count = np.arange(1, time.size + 1)
        worst = max(
            worst,
            (
                count - np.minimum.accumulate(count - 1 - limit * time) - limit * time
            ).max(initial=-np.inf),
        )
    return worst


@pytest.mark.parametrize("initial", ["fresh", "empty"])
@pytest.mark.parametrize("delay", [None, 0.3])
def test_without_limits_it_is_greedy_ncis(initial, delay):
    rng = np.random.default_rng(5)
    # pages without signals, with true signals only, with sure signals, pages that
    # never change or do not matter
    recall, false_rate = (
        np.array([0, 1, 0.5, 1, 0.7, 0.2, 0.9, 0.4]),
        np.array([0, 0, 0, 0.3, 0.5, 2.0, 0.1, 0.0]),
    )
    pages = SignalledPages(
        [1.0, 1, 1, 1, 2, 0.3, 0, 1], [1.0, 1, 1, 1, 1, 1, 1, 0], recall, false_rate
    )
    world = simulate.draw_world(pages, 200.0, signal_delay=delay, rng=rng)
    runs = [
        simulate.crawl(world, policy(pages), 3.0, initial=initial)
        for policy in (GreedyNCIS, PoliteGreedy)
    ]
    np.testing.assert_array_equal(runs[1].page, runs[0].page)


def test_limits_are_those_of_the_full_arg_max():
    pages, world, host = draw(12)
    limit = np.array([1.0, 2.0, 3.0, np.inf])
    time, last, n, full_at = (
        simulate.slot_times(8.0, 20.0),
        np.zeros(12),
        np.zeros(12),
        np.zeros(4),
    )
    page = PoliteGreedy(
        pages, host=host, host_limit=dict(enumerate(limit.tolist()))
    ).choose(world, time, last.copy())
    chosen, before = [], 0.0
    for t in time:
        arrived = world.signal_page[(before < world.arrival) & (world.arrival <= t)]
        n += np.bincount(arrived, minlength=12)
        value = np.where(full_at - 1 / limit <= t, 1.0, np.nan)[
            host
        ] * freshness.crawl_value(t - last, n, pages)
        chosen.append(np.nanargmax(value) if np.isfinite(value).any() else -1)
        i, before = chosen[-1], t
        if i >= 0:
            last[i], n[i], full_at[host[i]] = (
                t,
                0,
                max(full_at[host[i]], t) + 1 / limit[host[i]],
            )
    np.testing.assert_array_equal(page, chosen)
    assert len(set(page.tolist())) > 8


@pytest.mark.parametrize("limit", every(3, [1.5, 3.0, 6.0]))
@pytest.mark.parametrize("learns", [False, True])
def test_limits_and_bandwidth_are_never_exceeded(limit, learns):
    pages, world, host = draw()
    policy = (
        learner(pages, host=host, host_limit=limit)
        if learns
        else PoliteGreedy(pages, host=host, host_limit=limit)
    )
    run = simulate.crawl(world, policy, BANDWIDTH)
    assert most_above(run, host, limit) <= 2 + 1e-9
    assert run.page.size == BANDWIDTH * HORIZON
    # some host is held back, and would be crawled more
    assert most_above(run, host, limit) > 1
    free = simulate.crawl(
        world, learner(pages) if learns else PoliteGreedy(pages), BANDWIDTH
    )
    assert limit == 6.0 or most_above(free, host, limit) > 2


def test_one_host_leaves_slots_empty():
    pages, world, _ = draw()
    run = simulate.crawl(world, PoliteGreedy(pages, host_limit=5.0), BANDWIDTH)
    # two saved up, and five a day, each taken by the slot that follows
    assert run.n_crawls.sum() in (5 * HORIZON, 5 * HORIZON + 1, 5 * HORIZON + 2)
    assert run.n_idle == run.page.size - run.n_crawls.sum()


@pytest.mark.parametrize("hosts", [False, True])
def test_phases_do_not_matter_to_a_policy_that_believes_the_truth(hosts, monkeypatch):
    pages, world, host = draw()
    monkeypatch.setattr(ESTIMATE, lambda *_, **__: pages)
    limits = {"host": host, "host_limit": 4.0} if hosts else {}
    found = course(
        pages, world, first=0.01, growth=1.3, exploration=0.0, **limits
    )  # before the first slot
    assert len(found.beliefs) > 20
    np.testing.assert_array_equal(
        found.page, simulate.crawl(world, PoliteGreedy(pages, **limits), BANDWIDTH).page
    )
    if not hosts:
        np.testing.assert_array_equal(
            found.page, simulate.crawl(world, GreedyNCIS(pages), BANDWIDTH).page
        )


def test_what_is_seen(monkeypatch):
    pages, world, _ = draw()
    seen = []
    monkeypatch.setattr(
        ESTIMATE, lambda *found, gamma: seen.append((*found, gamma)) or pages
    )
    found = course(pages, world)
    time = simulate.slot_times(BANDWIDTH, HORIZON)
    change_time, offsets = world.changes
    assert len(seen) == len(found.beliefs) == 6  # 5 to 5 x 1.5^5
    edges = [0.0, *5.0 * 1.5 ** np.arange(6), HORIZON]
    np.testing.assert_allclose(found.borders, edges)
    for now, (page, interval, n_signals, changed, importance, gamma) in zip(
        found.borders[1:-1], seen, strict=True
    ):
        np.testing.assert_array_equal(page, found.page[time < now])
        np.testing.assert_array_equal(importance, pages.importance)
        np.testing.assert_allclose(
            gamma * now - 0.5,
            np.bincount(world.signal_page[world.arrival < now], minlength=30),
            atol=1e-9,
        )
        for i in range(30):
            crawls = time[(time < now) & (found.page == i)]
            if crawls.size:
                of = observe(change_time[offsets[i] : offsets[i + 1]], crawls)
                np.testing.assert_allclose(interval[page == i], of.interval)
                np.testing.assert_array_equal(changed[page == i], of.changed)
                edges = np.append(0.0, crawls)
                np.testing.assert_array_equal(
                    n_signals[page == i],
                    np.histogram(world.arrival[world.signal_page == i], edges)[0],
                )


def test_the_first_crawls_into_an_empty_cache_are_no_observations(monkeypatch):
    pages, world, _ = draw()
    seen = []
    monkeypatch.setattr(
        ESTIMATE, lambda *found, gamma: seen.append((*found, gamma)) or pages
    )
    simulate.crawl(world, learner(pages), BANDWIDTH, initial="empty")
    assert (
        seen[0][0].size == BANDWIDTH * 5.0 - 1 - 30
    )  # a slot falls on the end of the first phase
    assert np.isfinite(seen[-1][1]).all()


def test_exploration(monkeypatch):
    pages, world, _ = draw()
    believed = SignalledPages(pages.change_rate, 0.0, pages.recall, pages.false_rate)
    monkeypatch.setattr(ESTIMATE, lambda *_, **__: believed)
    time = simulate.slot_times(BANDWIDTH, HORIZON)
    first = np.count_nonzero(time < 5.0)
    # round robin, then nothing but pairs
    np.testing.assert_array_equal(
        course(pages, world).page[:first], np.arange(first) % 30
    )
    pairs = course(pages, world, exploration=1.0, growth=np.inf).page[first:]
    np.testing.assert_array_equal(
        pairs,
        np.repeat(np.roll(np.arange(30), -first % 30), 2)[np.arange(pairs.size) % 60],
    )
    # when no page is believed to matter, the value takes the first page, and
    # exploration the others
    never, some = (course(pages, world, exploration=e).page[first:] for e in (0.0, 0.3))
    assert (never == 0).all()
    edges = 5.0 * 1.5 ** np.arange(6)
    n_slots, explored = (
        np.histogram(of, [*edges, HORIZON])[0] for of in (time, time[first:][some > 0])
    )
    np.testing.assert_array_equal(
        explored, np.floor(0.3 * np.sqrt(5.0 / edges) * n_slots)
    )
    pairs = some[some > 0]
    np.testing.assert_array_equal(pairs[:-1:2], pairs[1::2])


@pytest.mark.slow
def test_estimates_tend_to_the_truth():
    rng = np.random.default_rng(3)
    pages = SignalledPages.from_precision(
        rng.uniform(0.2, 1.0, 40),
        1.0,
        precision=rng.uniform(0.3, 0.9, 40),
        recall=rng.uniform(0.3, 0.9, 40),
    )
    errors = []
    for n in (5, 100, 2000, 20000):
        history, n_signals = simulate_signalled_history(
            pages, crawl_rate=1.0, n_crawls=n, rng=4
        )
        flat = (
            np.repeat(np.arange(40), n),
            history.interval.ravel(),
            n_signals.ravel(),
            history.changed.ravel(),
        )
        order = rng.permutation(flat[0].size)  # crawls come in any order of pages
        found = estimate(
            *(a[order] for a in flat), 1.0 * np.ones(40), gamma=pages.gamma
        )
        errors.append(parameter_errors(pages, found))
    assert (np.diff(errors, axis=0) < 0).all()
    # the crawls made up move an estimate by a few 1 / n
    alone = fit(history, n_signals, signal_rate=pages.gamma)
    for name in ("change_rate", "recall", "false_rate"):
        off = (getattr(found, name) - getattr(alone, name)) / getattr(
            alone, f"{name}_stderr"
        )
        assert np.abs(off).max() < 0.1
        z = (getattr(found, name) - getattr(pages, name)) / getattr(
            alone, f"{name}_stderr"
        )
        assert np.abs(z).max() < 5


def test_estimates_without_signals_solve_the_score():
    rng = np.random.default_rng(2)
    page, interval, changed = (
        rng.integers(0, 3, 50),
        rng.exponential(size=50),
        rng.random(50) < 0.5,
    )
    found = estimate(page, interval, np.zeros(50, int), changed, np.ones(3))
    assert (found.recall == 0).all()
    assert (found.false_rate == 0).all()
    time = np.log(2) * interval.sum() / (1 + changed.sum())
    for i in range(3):
        w, z = (
            np.append(interval[page == i], [time, time]),
            np.append(changed[page == i], [False, True]),
        )
        root = brentq(
            lambda x, w=w, z=z: (w[z] / np.expm1(x * w[z])).sum() - w[~z].sum(),
            1e-6,
            50.0,
        )
        np.testing.assert_allclose(found.change_rate[i], root, rtol=1e-8)


def test_estimates_are_inside_their_bounds_whatever_was_seen():
    nothing = np.empty(0, int), np.empty(0), np.empty(0, int), np.empty(0, bool)
    for crawls in (
        nothing,
        *(
            (np.arange(3), np.ones(3), np.full(3, n), np.full(3, z))
            for n in (0, 2)
            for z in (False, True)
        ),
    ):
        for gamma in (None, np.ones(3)):
            found = estimate(*crawls, np.ones(3), gamma=gamma)
            assert ((found.change_rate > 0) & (found.change_rate < np.inf)).all()
            assert (
                gamma is None
                or (
                    (found.recall > 0) & (found.recall < 1) & (found.false_rate > 0)
                ).all()
            )


def test_without_use_of_signals_none_are_believed():
    pages, world, _ = draw()
    found = course(pages, world, use_signals=False)
    assert all((believed.gamma == 0).all() for believed in found.beliefs)
    assert (course(pages, world).believed.recall > 0).all()


def test_a_course_is_a_policy_and_always_the_same():
    pages, world, host = draw()
    options = {"host": host, "host_limit": 4.0}
    found = course(pages, world, **options)
    np.testing.assert_array_equal(found.page, course(pages, world, **options).page)
    run = simulate.crawl(world, learner(pages, **options), BANDWIDTH)
    np.testing.assert_array_equal(
        simulate.crawl(world, found, BANDWIDTH).page, run.page
    )
    np.testing.assert_array_equal(run.page, found.page)


@pytest.mark.slow
def test_less_is_lost_the_longer_it_learns():
    def one_run(rng):
        pages = SignalledPages(
            rng.random(40),
            rng.random(40),
            rng.beta(0.5, 0.5, 40),
            rng.uniform(0.1, 0.6, 40),
        )
        world = simulate.draw_world(pages, 150.0, rng=rng)
        borders = [8.0, 30.0, 100.0, 150.0]
        return np.subtract(
            *(
                simulate.crawl(world, policy, 10.0, borders=borders).window_freshness
                for policy in (PoliteGreedy(pages), learner(pages))
            )
        )

    lost = np.array(simulate.replicate(one_run, 12, rng=1))
    less = lost[:, 0] - lost[:, 2]
    assert less.mean() > 3 * less.std(ddof=1) / np.sqrt(12)
    assert lost.mean(axis=0)[2] > 0


def test_parameter_errors():
    pages = SignalledPages(
        [1.0, 2.0, 0.0, 1.0], 1.0, [0.5, 0.5, 0.5, 0.0], [0.5, 1.0, 1.0, 0.0]
    )
    np.testing.assert_array_equal(parameter_errors(pages, pages), 0.0)
    believed = SignalledPages(
        [np.e, 2.0 / np.e, 1.0, 9.0],
        1.0,
        [0.7, 0.5, 0.0, 1.0],
        [0.0, 1.0 / np.e, 5.0, 5.0],
    )
    np.testing.assert_allclose(parameter_errors(pages, believed), [1.0, 0.1, 0.25])


@pytest.mark.slow
def test_polite_thresholds():
    pages, _, host = draw()
    free = allocation.optimal_thresholds(pages, BANDWIDTH)
    for plan in (
        polite_thresholds(pages, BANDWIDTH, host, np.inf),
        polite_thresholds(pages, BANDWIDTH, np.zeros(30), BANDWIDTH * 1.001),
    ):
        np.testing.assert_allclose(plan.crawl_rate, free.crawl_rate)
        assert plan.freshness == pytest.approx(free.freshness)
    total = np.bincount(host, free.crawl_rate)
    limit = {int(np.argmax(total)): 0.5 * total.max()}
    plan = polite_thresholds(pages, BANDWIDTH, host, limit)
    rates = np.bincount(host, plan.crawl_rate)
    assert rates[np.argmax(total)] == pytest.approx(0.5 * total.max())
    assert rates.sum() == pytest.approx(BANDWIDTH)
    assert plan.freshness < free.freshness
    # the value at the threshold is one multiplier for all hosts below their limits,
    # and more in the other host
    value = freshness.crawl_value(plan.threshold, 0, pages)
    inside, crawled = host == np.argmax(total), plan.crawl_rate > 0
    np.testing.assert_allclose(value[crawled & ~inside], plan.multiplier, rtol=1e-6)
    assert (value[crawled & inside] > plan.multiplier).all()
    assert polite_thresholds(pages, BANDWIDTH, host, 1.0).multiplier == 0.0


def test_hosts_below_their_limits_may_have_no_page_worth_a_crawl():
    pages = SignalledPages([1.0, 3.0, 2.0], [1.0, 2.0, 0.0], 0.5, 0.1)
    first = SignalledPages([1.0, 3.0], [1.0, 2.0], 0.5, 0.1)
    alone = allocation.optimal_thresholds(first, 2.0)
    for limit in ({"a": 2.0}, {"a": 2.0, "b": 1.0}):
        plan = polite_thresholds(pages, 6.0, ["a", "a", "b"], limit)
        np.testing.assert_allclose(plan.crawl_rate, [*alone.crawl_rate, 0.0])
        np.testing.assert_allclose(plan.threshold, [*alone.threshold, np.inf])
        assert plan.freshness == pytest.approx(alone.freshness, rel=1e-12)
        assert plan.multiplier == 0.0
    worthless = SignalledPages([1.0, 2.0], 0.0, 0.5, 0.1)
    with pytest.raises(ValueError, match="importance must be positive for at least"):
        polite_thresholds(worthless, 6.0, ["a", "b"], {"a": 2.0})


def test_polite_thresholds_without_signals_are_those_of_polite():
    pages, _, host = draw()
    silent = SignalledPages(pages.change_rate, pages.importance, 0.0, 0.0)
    for limit in (1.0, 3.0, {0: 0.5, 2: 4.0}):
        plan = polite_thresholds(silent, BANDWIDTH, host, limit)
        oracle = allocation.polite(
            pages.change_rate,
            pages.importance,
            BANDWIDTH,
            host,
            limit,
            model=freshness.interval,
        )
        np.testing.assert_allclose(plan.crawl_rate, oracle.crawl_rate, atol=1e-6)
        assert plan.freshness == pytest.approx(oracle.freshness, rel=1e-6)


def test_bad_input():
    pages, world, host = draw()
    cases = [
        ("first must be positive", lambda: learner(pages, first=0.0)),
        ("growth must be above 1", lambda: learner(pages, growth=1.0)),
        ("exploration must be in [0, 1]", lambda: learner(pages, exploration=1.5)),
        ("importance must be non-negative", lambda: LearningGreedy([-1.0], 1.0)),
        (
            "host must have one label for each page, shape (30,)",
            lambda: learner(pages, host=host[1:]),
        ),
        (
            "host_limit must be a non-negative number",
            lambda: PoliteGreedy(pages, host=host, host_limit=-1.0),
        ),
        (
            "host_limit must name hosts",
            lambda: learner(pages, host=host, host_limit={9: 1.0}),
        ),
        *[
            (
                f"bandwidth must be positive and finite, got {bad}",
                lambda bad=bad: polite_thresholds(pages, bad, host, 1.0),
            )
            for bad in (0.0, -1.0)
        ],
        (
            "world must hold the pages of the policy, 3, got 30",
            lambda: simulate.crawl(world, LearningGreedy(np.ones(3), 1.0), BANDWIDTH),
        ),
        (
            "world must hold",
            lambda: simulate.crawl(
                simulate.draw_world(pages, 9.0, arrivals=(1.0, np.inf), rng=1),
                PoliteGreedy(pages),
                1.0,
            ),
        ),
    ]
    for message, call in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
