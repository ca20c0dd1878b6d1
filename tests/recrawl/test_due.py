"""Due dates of production crawlers.

Rules by hand, slots by brute force, and where the rules settle by identities
and by histories.
"""

import dataclasses
import math
import re

import numpy as np
import pytest

from paperlib.signals import SignalledPages
from recrawl.science import policies, simulate
from recrawl.science.policies import Nutch, StormCrawler
from recrawl.science.simulate import World, crawl, draw_world
from tests.recrawl.crawl_logs import adapted

MULTIPLIED = Nutch(sync_delta=None, cap=None)


def world_of(changes, *, horizon=1000.0, start=0.0, stop=np.inf):
    """A world by hand; every change, (time, page), is signalled, to no effect."""
    changes = sorted((page, time) for time, page in changes)
    page, time = (
        np.array([change[k] for change in changes], kind)
        for k, kind in enumerate((np.int32, float))
    )
    start, stop = (
        np.atleast_1d(np.asarray(start, float)),
        np.atleast_1d(np.asarray(stop, float)),
    )
    n_pages = max(start.size, stop.size, page.max(initial=0) + 1)
    pages = SignalledPages(np.ones(n_pages), 1.0, 1.0, 0.0)
    start, stop = (np.array(np.broadcast_to(edge, n_pages)) for edge in (start, stop))
    return World(
        pages, horizon, time, page, time, np.ones(page.size, bool), start, stop
    )


def crawls(policy, changes, *, page=0, bandwidth=100.0, horizon=250.0, **options):
    """When a page is crawled."""
    run = crawl(world_of(changes, horizon=horizon), policy, bandwidth, **options)
    return run.time[run.page == page]


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("policy", "changes", "due"),
    [
        (MULTIPLIED, [], [30, 72, 130.8, 213.12]),
        (MULTIPLIED, [10, 40, 41, 200], [30, 54, 73.2, 100.08, 137.712, 190.3968]),
        (
            Nutch(grow=1.2, sync_delta=None, cap=None),
            [10, 31],
            [30, 54, 73.2, 96.24, 123.888, 157.0656, 196.87872, 244.654464],
        ),
        # delta 30: 42 - 9; delta 63: 63 - 18.9; delta 107.1: 107.1 - 32.13;
        # delta 182.07: 127.4 is beyond the cap, and so it stays
        (Nutch(), [], [30, 63, 107.1, 182.07, *np.arange(183.07, 250.0)]),
        (Nutch(cap=None), [], [30, 63, 107.1, 182.07]),
        (Nutch(cycle=30.0), [], [30, 63, 107.1, 182.07, 212.07, 242.07]),
        # found at 30: 24; delta 24: 33.6 - 7.2; delta 50.4: 50.4 - 15.12;
        # found at 115.68: 40.32; delta 40.32: 56.448 - 12.096; then 84.672
        (Nutch(), [5, 85], [30, 54, 80.4, 115.68, 156, 200.352]),
        # the interval is delta at least, also without a shift
        (Nutch(sync_delta=0.0, cap=None), [], [30, 72, 144]),
        # 58.8 x 1.4 = 82.32 is within the cap, 115.248 is not, and neither is 81 x 1.4
        (Nutch(sync_delta=None), [], [30, 72, 130.8, *np.arange(213.12, 250.0)]),
        # the shift grows up to the upper limit: 7, 4.9, 3.43, ... until the lower one;
        # then, at delta 33.6, it is left out
        (
            Nutch(limits=(1.0, 10.0), initial=10.0, cap=None),
            [],
            [
                *[10, 17, 21.9, 25.33, 27.731, 29.4117],
                *np.arange(30.5882, 34),
                *np.arange(43.5882, 250, 10),
            ],
        ),
        (
            StormCrawler(),
            [],
            [
                *[1, 2.5, 4.75, 8.125, 13.1875, 20.78125, 32.171875],
                *np.arange(46.171875, 250, 14),
            ],
        ),
        (
            StormCrawler(limits=(0.5, 14.0)),
            [0.1, 0.9, 1.1, 2.0],
            [1, 1.75, 2.375, 2.9375, 3.78125],
        ),
        # 0.5 + 0.8 (w - 0.5): 0.9, 0.82, 0.756
        (
            StormCrawler(limits=(0.5, 14.0), shrink=0.8),
            [0.1, 1.1, 2.0],
            [1, 1.9, 2.72, 3.476],
        ),
    ],
)
def test_crawls_by_hand(policy, changes, due):
    time = crawls(policy, [(t, 0) for t in changes], bandwidth=4e3)[: len(due)]
    np.testing.assert_allclose(time, due, atol=1e-2)  # each crawl waits for a slot


def test_a_crawl_finds_a_change_of_the_very_same_moment():
    rule = StormCrawler(limits=(0.5, 14.0))
    changed, unchanged = 1.0 + 0.75, 1.0 + 1.5
    for moment, then in ((1.0, changed), (np.nextafter(1.0, 2.0), unchanged)):
        assert crawls(rule, [(moment, 0)], horizon=3.0)[:2].tolist() == [1.0, then]
    # and so do the histories of runs
    world = simulate.replay([[1.0, 2.5], []], 4.0)
    history = world.observe(np.array([0.5, 1.0, 2.0]), np.array([0, 0, 0]))
    assert history.changed.tolist() == [True, False]


def test_interval_does_not_leave_the_limits():
    time = crawls(
        StormCrawler(), [(t, 0) for t in np.arange(0.0, 250.0, 1e-2)], bandwidth=4800.0
    )
    np.testing.assert_allclose(np.diff(time)[-500:], 1 / 24, atol=1 / 4800)
    time = crawls(
        Nutch(limits=(0.25, 365.0), initial=1.0),
        [(t, 0) for t in np.arange(0.0, 250.0, 1e-2)],
        bandwidth=100.0,
    )
    np.testing.assert_allclose(np.diff(time)[-500:], 0.25, rtol=1e-9)
    time = crawls(Nutch(cap=None, sync_delta=None), [], horizon=5000.0)
    np.testing.assert_allclose(np.diff(time)[-5:], 365.0, atol=0.02)


# ---------------------------------------------------------------- slots


def brute(policy, world, slots, initial):
    """Every slot looks at every page; the rules as their projects describe them."""
    day, n_pages = policy.day, world.start.size
    last = np.where((world.start == 0) & (initial == "fresh"), 0.0, -np.inf)
    interval, found = np.full(n_pages, policy.initial * day), last.copy()
    due = np.where(np.isinf(last), world.start, interval)
    low, high = (limit * day for limit in policy.limits)
    time, offsets = world.changes
    out = []
    for t in slots:
        waiting = [(due[i], i) for i in range(n_pages) if due[i] <= t < world.stop[i]]
        if not waiting:
            out.append(-1)
            continue
        _, i = min(waiting)
        out.append(i)
        own = time[offsets[i] : offsets[i + 1]]
        changed, before, last[i] = ((last[i] < own) & (own <= t)).any(), last[i], t
        if before == -np.inf:
            found[i], due[i] = t, t + interval[i]
            continue
        if changed:
            found[i] = t
        if isinstance(policy, StormCrawler):
            x = (
                interval[i] - (1 - policy.shrink) * (interval[i] - low)
                if changed
                else interval[i] * policy.grow
            )
            interval[i] = min(x, high)
            due[i] = t + interval[i]
            continue
        x, shift = interval[i] * (policy.shrink if changed else policy.grow), 0.0
        if policy.sync_delta is not None:
            x = max(x, t - found[i])
            shift = policy.sync_delta * (t - found[i])
            shift *= shift <= high
        interval[i] = np.clip(x, low, high)
        due[i] = t + max(interval[i] - shift, low)
        if policy.cap is not None and due[i] - t > policy.cap * day:
            interval[i], due[i] = (
                min(interval[i], 0.9 * policy.cap * day),
                t + policy.cycle * day,
            )
    return np.array(out)


@pytest.mark.parametrize("seed", range(60))
def test_slots_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    n_pages, day, horizon = rng.integers(1, 12), rng.uniform(0.5, 3.0), 60.0
    pages = SignalledPages(
        rng.choice([0.0, 0.05, 1.0, 5.0], n_pages),
        rng.random(n_pages),
        rng.choice([0.0, 0.5, 1.0], n_pages),
        0.3,
    )
    arrivals = (
        (
            rng.choice([0.0, 0.0, 20.0], n_pages),
            rng.choice([np.inf, 20.0, 41.3], n_pages),
        )
        if seed % 2
        else None
    )
    world = draw_world(pages, horizon, arrivals=arrivals, rng=rng)
    policy = [
        StormCrawler(day=day, limits=(0.04, 5.0)),
        Nutch(
            day=day,
            initial=2.0,
            limits=(0.3, 20.0),
            sync_delta=rng.choice([0.0, 0.3, 1.0]),
            cap=rng.choice([4.0, 15.0]),
            cycle=0.7,
        ),
        Nutch(day=day, initial=1.0, grow=1.2, sync_delta=None, cap=None),
    ][seed % 3]
    bandwidth, initial = rng.choice([0.5, 3.0, 40.0]), ["fresh", "empty"][seed // 3 % 2]
    run = crawl(world, policy, bandwidth, initial=initial)
    np.testing.assert_array_equal(run.page, brute(policy, world, run.time, initial))


def test_empty_slots_are_counted_within_the_windows():
    run = crawl(
        world_of([], horizon=20.0), StormCrawler(limits=(0.5, 2.0)), 2.0
    )  # due at 1, 2.5, 4.5, 6.5, ...
    assert (run.n_idle, run.n_crawls.sum()) == (30, 10)
    run = crawl(
        world_of([], horizon=20.0),
        StormCrawler(limits=(0.5, 2.0)),
        2.0,
        borders=[10.0, 20.0],
    )
    assert (run.n_idle, run.n_crawls.sum()) == (16, 5)
    run = crawl(world_of([(1.0, 2)], horizon=20.0), policies.Rates(np.ones(3)), 2.0)
    assert run.n_idle == 0


def test_with_too_small_a_budget_the_most_overdue_page_comes_first():
    n_pages = 50
    pages = SignalledPages(
        np.full(n_pages, 20.0), 1.0, 0.0, 0.0
    )  # all change, all the time: each wants a crawl an hour
    run = crawl(draw_world(pages, 200.0, rng=1), StormCrawler(), 10.0)
    first = np.flatnonzero(run.page >= 0)[0]
    assert run.time[first] == 1.0
    assert (run.page[first:] >= 0).all()
    # intervals shrink to the limit, far below what a round takes: the pages take turns
    np.testing.assert_array_equal(run.page[-500:], np.resize(run.page[-500:-450], 500))
    assert sorted(run.page[-50:]) == list(range(n_pages))


def test_ties_go_to_the_lower_index_and_pages_that_go_are_not_crawled():
    run = crawl(
        world_of(
            [], horizon=4.0, start=[0.0, 0.0, 2.0, 0.0], stop=[np.inf, 3.0, np.inf, 0.0]
        ),
        StormCrawler(),
        1.0,
        initial="empty",
    )
    # at 2 pages 0 and 2 are due, at 3 page 2 since 2; page 1 would be due since 3,
    # when it goes
    assert run.page.tolist() == [0, 1, 0, 2]


# ---------------------------------------------------------------- worlds


def test_changes_of_a_world_are_poisson_with_signals_and_without():
    pages = SignalledPages(
        np.tile([0.5, 2.0, 0.0, 3.0], 500),
        1.0,
        np.tile([0.5, 1.0, 0.3, 0.0], 500),
        np.tile([1.0, 0.0, 0.3, 0.0], 500),
    )
    world = draw_world(pages, 40.0, rng=1)
    time, offsets = world.changes
    assert offsets[-1] == time.size
    mean, n = np.array([20.0, 80.0, 0.0, 120.0]), 500
    count = np.diff(offsets).reshape(n, 4)
    assert (np.abs(count.mean(axis=0) - mean) <= 4 * np.sqrt(mean / n)).all()
    assert (
        np.abs(count.var(axis=0) - mean) <= 4 * np.sqrt((mean + 2 * mean**2) / n)
    ).all()
    for i in range(8):
        own = time[offsets[i] : offsets[i + 1]]
        assert (np.diff(own) > 0).all()
        assert np.isin(
            world.signal_time[world.true & (world.signal_page == i)], own
        ).all()


def test_changes_are_always_the_same_and_take_nothing_from_the_stream_of_the_world():
    pages = SignalledPages(np.ones(5), 1.0, 0.5, 0.5)
    rng = np.random.default_rng(2)
    world = draw_world(pages, 30.0, rng=rng)
    state = rng.bit_generator.state
    time, offsets = world.changes
    assert rng.bit_generator.state == state
    for same in (draw_world(pages, 30.0, rng=2), dataclasses.replace(world)):
        np.testing.assert_array_equal(same.changes[0], time)
        np.testing.assert_array_equal(same.changes[1], offsets)
    other = draw_world(pages, 30.0, rng=rng)
    assert not np.isin(other.changes[0], time).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        Nutch(initial=2.0),
        StormCrawler(),
        Nutch(initial=1.0, grow=1.2, sync_delta=None, cap=None),
    ],
)
@pytest.mark.parametrize("bandwidth", [4.0, 40.0])
def test_expected_fresh_time_is_the_mean_of_what_the_changes_make_it(policy, bandwidth):
    pages = SignalledPages(
        [0.1, 0.5, 1.0, 3.0, 10.0],
        1.0,
        [0.0, 0.5, 0.0, 0.3, 0.0],
        [0.0, 0.2, 0.0, 0.0, 0.0],
    )
    horizon, difference = 40.0, []
    for seed in range(300):
        world = draw_world(pages, horizon, rng=seed)
        run = crawl(world, policy, bandwidth)
        time, offsets = world.changes
        fresh = np.empty(5)
        for i in range(5):
            begin = np.append(0.0, run.time[run.page == i])
            own = np.append(time[offsets[i] : offsets[i + 1]], horizon)
            first = own[
                np.searchsorted(own, begin, side="right").clip(max=own.size - 1)
            ]
            fresh[i] = (np.minimum(first, np.append(begin[1:], horizon)) - begin).sum()
        difference.append(fresh - run.fresh[0])
    difference = np.array(difference)
    assert (
        np.abs(difference.mean(axis=0))
        <= 4 * difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    ).all()


def test_unit_of_time_and_importance_do_not_matter():
    rng = np.random.default_rng(3)
    rate, sent = (
        rng.uniform(0.01, 2.0, 20),
        [
            (t, i)
            for i in range(20)
            for t in np.cumsum(rng.exponential(3.0, 30))
            if t < 100
        ],
    )
    for policy in (Nutch(initial=4.0), StormCrawler()):
        days = crawl(world_of(sent, horizon=100.0, start=np.zeros(20)), policy, 8.0)
        double = world_of(
            [(2 * t, i) for t, i in sent], horizon=200.0, start=np.zeros(20)
        )
        half = crawl(double, dataclasses.replace(policy, day=2.0), 4.0)
        np.testing.assert_array_equal(days.page, half.page)
        assert days.n_idle == half.n_idle > 0
        (rates, fresh), (halved, same) = (
            policy.settled(rate[:4]),
            dataclasses.replace(policy, day=2.0).settled(rate[:4] / 2),
        )
        np.testing.assert_allclose(halved, rates / 2, rtol=1e-9)
        np.testing.assert_allclose(same, fresh, rtol=1e-9)
    pages = SignalledPages(rate, 1.0, 0.0, 0.0)
    other = SignalledPages(rate, rng.random(20), 0.0, 0.0)
    runs = [
        crawl(draw_world(p, 100.0, rng=4), StormCrawler(), 5.0) for p in (pages, other)
    ]
    np.testing.assert_array_equal(runs[0].page, runs[1].page)


# ---------------------------------------------------------------- where they settle

FREE = {  # crawls per change far from the limits
    "x 0.8, x 1.4": (Nutch(sync_delta=None, cap=None), 1.0),
    "x 0.8, x 1.2": (Nutch(grow=1.2, sync_delta=None, cap=None), 1.6),
    "x 0.5, x 1.5": (StormCrawler(limits=(1e-6, 1e3)), 1.9),
}


@pytest.mark.parametrize(("policy", "per_change"), FREE.values(), ids=FREE)
def test_multiplied_intervals_settle_at_the_proportional_policy(policy, per_change):
    rates = np.array([0.5, 1.0, 4.0, 20.0])
    crawl_rate, fresh = policy.settled(rates)
    np.testing.assert_allclose(crawl_rate / rates, crawl_rate[1], rtol=2e-4)
    np.testing.assert_allclose(fresh, fresh[1], rtol=2e-4)
    assert round(crawl_rate[1], 1) == per_change
    # the logarithm of the interval does not drift: its steps balance
    down, up = -math.log(policy.shrink), math.log(policy.grow)
    np.testing.assert_allclose(fresh * rates / crawl_rate, up / (up + down), rtol=1e-3)


@pytest.mark.parametrize(("policy", "per_change"), FREE.values(), ids=FREE)
def test_multiplied_intervals_against_histories(policy, per_change):
    rng, n = np.random.default_rng(4), 400
    history = adapted(
        np.ones(n),
        initial=1.0,
        shrink=policy.shrink,
        grow=policy.grow,
        limits=policy.limits,
        n_crawls=3000,
        rng=rng,
    )
    time, found = (
        history.interval[:, 200:].sum(axis=1),
        history.changed[:, 200:].sum(axis=1),
    )
    for measured, expected in zip(
        (2800 / time, found / time), policy.settled(1.0), strict=True
    ):
        assert (
            abs(measured.mean() - expected)
            <= 4 * measured.std(ddof=1) / np.sqrt(n) + 1e-3
        )  # and the grid


def test_an_interval_below_the_limits_is_one_at_the_lower_limit():
    # After a change a page waits for 1, the lower limit. Else 1.4 is beyond the cap:
    # the interval becomes 0.945, and the page waits for a cycle.
    rule = Nutch(sync_delta=None, cap=1.05, limits=(1.0, 365.0), cycle=3.0)
    change_rate = np.array([0.05, 0.4, 2.0])
    after_change, after_none = 1 - np.exp(-change_rate), 1 - np.exp(-3 * change_rate)
    found = after_none / (after_none + 1 - after_change)
    wait = 3 - 2 * found
    np.testing.assert_allclose(
        rule.settled(change_rate),
        (1 / wait, found / (wait * change_rate)),
        rtol=1e-9,
    )


def test_limits_of_the_rule_against_histories():
    policy, rates = (
        Nutch(sync_delta=None, cap=None, limits=(0.2, 4.0), initial=1.0),
        np.array([0.05, 0.5, 20.0]),
    )
    crawl_rate, fresh = policy.settled(rates)
    history = adapted(
        np.repeat(rates, 200),
        initial=1.0,
        shrink=0.8,
        grow=1.4,
        limits=policy.limits,
        n_crawls=3000,
        rng=5,
    )
    time = history.interval[:, 200:].sum(axis=1).reshape(3, 200)
    measured = np.stack(
        [
            2800 / time,
            history.changed[:, 200:].sum(axis=1).reshape(3, 200)
            / time
            / rates[:, np.newaxis],
        ]
    )
    error = 4 * measured.std(axis=2, ddof=1) / np.sqrt(200)
    assert (
        np.abs(measured.mean(axis=2) - [crawl_rate, fresh])
        <= error + 1e-3 * np.array([crawl_rate, fresh])
    ).all()
    np.testing.assert_allclose(crawl_rate[[0, 2]], [1 / 4.0, 1 / 0.2], rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [Nutch(), Nutch(grow=1.2, sync_delta=0.2, cap=None), StormCrawler()]
)
def test_simulated_pages_settle_there_when_the_budget_is_ample(policy):
    rates, n = np.array([0.02, 0.1, 1.0, 4.0]), 60
    pages = SignalledPages(np.repeat(rates, n), 1.0, 0.0, 0.0)
    run = crawl(draw_world(pages, 3000.0, rng=6), policy, 3e3, borders=[1000.0, 3000.0])
    crawl_rate, fresh = policy.settled(rates)
    for measured, expected in (
        (run.crawl_rate, crawl_rate),
        (run.page_freshness, fresh),
    ):
        measured = measured.reshape(4, n)
        error = 4 * measured.std(axis=1, ddof=1) / np.sqrt(n)
        assert (
            np.abs(measured.mean(axis=1) - expected) <= error + 2e-3 * expected
        ).all()
    assert run.n_idle == np.count_nonzero(run.page[run.time >= 1000.0] < 0) > 0


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Nutch, {"day": 0.0}, "day must be positive and finite, got 0.0"),
        (StormCrawler, {"day": -1.0}, "day must be positive and finite, got -1.0"),
        (Nutch, {"initial": np.inf}, "initial must be positive and finite, got inf"),
        (Nutch, {"shrink": 1.0}, "shrink must be strictly between 0 and 1, got 1.0"),
        (Nutch, {"grow": 1.0}, "grow must be above 1, got 1.0"),
        (StormCrawler, {"grow": np.nan}, "grow must be positive and finite, got nan"),
        (
            Nutch,
            {"limits": (2.0, 1.0)},
            "limits must be two numbers, the lower one first, got (2.0, 1.0)",
        ),
        (
            Nutch,
            {"limits": (1.0, 1.0)},
            "limits must be two numbers, the lower one first, got (1.0, 1.0)",
        ),
        (
            Nutch,
            {"limits": 1.0},
            "limits must be two numbers, the lower one first, got 1.0",
        ),
        (
            Nutch,
            {"limits": (0.0, 1.0)},
            "limits must be positive and finite, got 0.0 at index (0,)",
        ),
        (Nutch, {"sync_delta": 1.5}, "sync_delta must be in [0, 1], got 1.5"),
        (Nutch, {"cap": 0.0}, "cap must be positive and finite, got 0.0"),
        (Nutch, {"cycle": 0.0}, "cycle must be positive and finite, got 0.0"),
    ],
)
def test_bad_rules(kind, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(**options)


def test_bad_change_rates():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "change_rate must be positive and finite, got 0.0 at index (1,)"
        ),
    ):
        Nutch().settled([1.0, 0.0])


def test_replicated_runs_are_paired_and_repeatable():
    def kinds(pages, rng):
        return {
            "Nutch": Nutch(initial=1.0),
            "StormCrawler": StormCrawler(),
            "again": Nutch(initial=1.0),
        }

    def draw(rng):
        return SignalledPages(rng.random(10), 1.0, 0.0, 0.0)

    runs = simulate.compare(draw, kinds, 5.0, 30.0, n_runs=3, rng=1)
    same = simulate.compare(draw, kinds, 5.0, 30.0, n_runs=2, rng=1)
    np.testing.assert_array_equal(runs["Nutch"], runs["again"])
    assert all((runs[name][:2] == same[name]).all() for name in runs)
