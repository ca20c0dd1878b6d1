"""Worlds: slots are exact, signals Poisson, and freshness is that of the changes."""

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from paperlib.policies import Greedy, GreedyCIS, GreedyNCIS, Rates
from paperlib.signals import SignalledPages
from paperlib.worlds import World, crawl, draw_world, slot_times
from tests import plain

NAMES = "change_rate", "importance", "recall", "false_rate"


def fixed(page):
    """A policy that gives the slots to given pages, in turn."""
    return lambda time, signals, crawl: np.resize(page, time.size)


def world_of(pages, signals=(), horizon=4.0):
    """A world by hand; signals are (page, time), in this order."""
    page = np.array([page for page, _ in signals], dtype=int)
    sent = np.array([sent for _, sent in signals], dtype=float)
    offsets = np.searchsorted(page, np.arange(pages.alpha.size + 1))
    true = np.ones(page.size, dtype=bool)
    silent = np.random.SeedSequence(1)
    return World(pages, horizon, offsets, sent, sent, true, silent)


def draw(rng, n_pages=15):
    numbers = rng.random(n_pages), rng.random(n_pages)
    recall, false_rate = rng.beta(0.25, 0.25, n_pages), rng.uniform(0.1, 0.6, n_pages)
    return SignalledPages(*numbers, recall, false_rate)


# ------------------------------ slots


@pytest.mark.parametrize(
    ("bandwidth", "horizon", "expected"),
    [
        (4.0, 1.0, [0.25, 0.5, 0.75, 1.0]),
        (4.0, 0.2, []),
        (0.0, 5.0, []),
        (([0.0, 1.0, 2.0], [2.0, 0.0, 4.0]), 3.0, [0.5, 1.0, 2.25, 2.5, 2.75, 3.0]),
        (([1.0], [2.0]), 2.0, [1.5, 2.0]),
        # half a slot is carried over, through a pause too
        (([0.0, 1.25], [2.0, 4.0]), 2.0, [0.5, 1.0, 1.375, 1.625, 1.875]),
        (([0.0, 1.25, 3.25], [2.0, 0.0, 1.0]), 5.0, [0.5, 1.0, 3.75, 4.75]),
        # the sum is 0.9999999999999999
        ((np.arange(11.0), [0.1] * 10 + [0.0]), 20.0, [10.0]),
    ],
)
def test_slots_by_hand(bandwidth, horizon, expected):
    np.testing.assert_allclose(slot_times(bandwidth, horizon), expected, rtol=1e-15)


@pytest.mark.parametrize("seed", range(30))
def test_slots_are_where_the_exact_sum_is_a_whole_number(seed):
    rng = np.random.default_rng(seed)
    times = np.append(0, np.cumsum(rng.integers(1, 40, 7))) / 16
    rates = rng.choice([0, 0, 1, 3, 8, 50], 8) / 8
    horizon, expected, total = Fraction(rng.integers(1, 200)) / 16, [], Fraction(0)
    for (begin, end), rate in zip(pairwise([*times, 1e6]), rates, strict=True):
        begin, end, rate = Fraction(begin), min(Fraction(end), horizon), Fraction(rate)
        new = total + rate * max(end - begin, 0)
        whole = range(math.floor(total) + 1, math.floor(new) + 1)
        expected += [float(begin + (number - total) / rate) for number in whole]
        total = new
    found = slot_times((times, rates), float(horizon))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


# ------------------------------ worlds


def test_signals_are_poisson_uniform_and_true_at_the_precision():
    n, kinds = 5000, 5
    change_rate = np.tile([0.5, 2.0, 1.0, 0.0, 3.0], n)
    recall = np.tile([0.5, 0.9, 0.0, 0.7, 0.0], n)
    false_rate = np.tile([0.3, 0.0, 1.0, 0.2, 0.0], n)
    world = draw_world(SignalledPages(change_rate, 1.0, recall, false_rate), 4.0, rng=2)
    count = np.diff(world.offsets)
    page = np.repeat(np.arange(count.size), count)
    assert (np.diff(world.sent)[np.diff(page) == 0] >= 0).all()
    assert ((world.sent > 0) & (world.sent <= 4.0)).all()
    assert count.reshape(n, kinds)[:, 4].sum() == 0
    kind = [(0.55, 0.25 / 0.55), (1.8, 1.0), (1.0, 0.0), (0.2, 0.0)]
    for i, (gamma, right) in enumerate(kind):
        own = count.reshape(n, kinds)[:, i]
        assert abs(own.mean() - 4 * gamma) <= 5 * np.sqrt(4 * gamma / n)
        assert 1e-5 < stats.chi2.sf(own.var() * n / (4 * gamma), n - 1) < 1 - 1e-5
        assert stats.kstest(world.sent[page % kinds == i] / 4, "uniform").pvalue > 1e-5
        true = world.true[page % kinds == i]
        stderr = math.sqrt(right * (1 - right) / true.size)
        assert abs(true.mean() - right) <= 5 * stderr


def test_changes_are_poisson_and_contain_the_true_signals():
    world = draw_world(SignalledPages(np.full(3000, 0.8), 1.0, 0.4, 0.5), 5.0, rng=3)
    changes = [world.changes(i) for i in range(3000)]
    count = np.array([times.size for times in changes])
    assert abs(count.mean() - 4.0) <= 5 * np.sqrt(4.0 / 3000)
    assert 1e-5 < stats.chi2.sf(count.var() * 3000 / 4.0, 2999) < 1 - 1e-5
    assert stats.kstest(np.concatenate(changes) / 5, "uniform").pvalue > 1e-5
    for i in range(50):
        own = slice(world.offsets[i], world.offsets[i + 1])
        assert np.isin(world.sent[own][world.true[own]], changes[i]).all()
        assert (np.diff(changes[i]) > 0).all()
        np.testing.assert_array_equal(changes[i], world.changes(i))


def test_the_same_seed_is_the_same_world():
    pages = draw(np.random.default_rng(1))
    first, same, other = (draw_world(pages, 50.0, rng=seed) for seed in (5, 5, 6))
    for name in ("sent", "offsets", "true"):
        np.testing.assert_array_equal(getattr(first, name), getattr(same, name))
    np.testing.assert_array_equal(first.changes(0), same.changes(0))
    assert not np.array_equal(first.sent, other.sent)
    silent = SignalledPages([5.0], 1.0)
    one, two = (draw_world(silent, 50.0, rng=seed).changes(0) for seed in (5, 6))
    assert not np.array_equal(one, two)


def test_delayed_signals_come_in_order_and_are_sent_as_before():
    world = draw_world(SignalledPages([2.0, 0.0, 5.0], 1.0, 1.0, 0.0), 2000.0, rng=1)
    delay = np.random.default_rng(2).exponential(1e4, world.sent.size)
    late, arrival = world.delayed(delay), world.sent + delay
    assert late.sent is world.sent
    for own in map(slice, world.offsets[:-1], world.offsets[1:]):
        np.testing.assert_array_equal(late.received[own], np.sort(arrival[own]))
    np.testing.assert_array_equal(late.delayed(0.5).received, world.sent + 0.5)


# ------------------------------ freshness


@pytest.mark.parametrize("seed", range(20))
def test_freshness_is_the_plain_integral(seed):
    rng = np.random.default_rng(seed)
    n_pages, horizon = int(rng.choice([1, 2, 6])), 20.0
    rates = rng.choice([1e-9, 0.3, 2.0, 20.0], n_pages), rng.random(n_pages)
    recall = rng.choice([0.1, 0.5, 1 - 1e-9, 1.0], n_pages)
    pages = SignalledPages(*rates, recall, rng.choice([0.0, 0.4, 3.0], n_pages))
    world = draw_world(pages, horizon, rng=rng).delayed(3.0)
    borders = np.append(np.sort(horizon * rng.random(3)), horizon)
    bandwidth = [1.5, ([0.0, 5.0, 9.0], [2.0, 0.0, 4.0]), 0.01][seed % 3]
    policy = fixed(rng.integers(-1, n_pages, 97))
    run = crawl(world, policy, bandwidth, borders=borders)
    rows = np.transpose([getattr(pages, name) for name in NAMES])
    sender = np.repeat(np.arange(n_pages), np.diff(world.offsets))

    def fresh_until(t):
        crawls, sent = run.time <= t, world.sent <= t
        events = run.time[crawls], run.page[crawls], world.sent[sent], sender[sent]
        return t * plain.accuracy(rows, *events, t)

    found = np.cumsum(run.window_freshness * np.diff(borders))
    expected = [fresh_until(t) - fresh_until(borders[0]) for t in borders[1:]]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    length = horizon - borders[0]
    np.testing.assert_allclose(run.freshness, expected[-1] / length, atol=1e-10)
    assert (run.fresh.sum(axis=0) <= length * (1 + 1e-12)).all()
    whole = crawl(world, policy, bandwidth)
    np.testing.assert_allclose(whole.freshness * horizon, fresh_until(horizon))


def test_a_run_by_hand():
    pages = SignalledPages([1.0, 2.0, 0.0], [3.0, 1.0, 0.0], [0, 0.5, 0], [0, 1.0, 0])
    world = world_of(pages, [(1, 0.5), (1, 2.25)])
    run = crawl(world, fixed([0, 1, -1, 0]), 1.0, borders=[0.0, 2.0, 4.0])

    def f(begin, end):  # of both, alpha is 1
        return math.exp(-begin) - math.exp(-end)

    fresh = [
        [2 * f(0, 1), f(0, 0.5) + 0.5 * f(0.5, 2), 2.0],
        [f(1, 3), f(0, 0.25) + 0.5 * f(0.25, 2), 2.0],
    ]
    np.testing.assert_allclose(run.fresh, fresh, rtol=1e-14)
    windows = [(3 * a + b) / 8 for a, b, _ in fresh]
    np.testing.assert_allclose(run.window_freshness, windows, rtol=1e-14)
    assert run.freshness == pytest.approx(np.mean(windows), rel=1e-14)


def learn(time, signals, crawl):
    """Learns: crawls a page again at once if it had changed, else the next one."""
    page, chosen = 0, []
    for _ in time:
        chosen.append(page)
        page = page if crawl(page) else (page + 1) % (signals.offsets.size - 1)
    return np.array(chosen, dtype=int)


@pytest.mark.parametrize(
    "make",
    [GreedyNCIS, GreedyCIS, lambda pages: Rates(pages.importance), lambda _: learn],
    ids=["ncis", "cis", "rates", "learns"],
)
def test_expected_freshness_is_the_mean_of_what_changes_leave(make):
    kinds, n, horizon = 6, 300, 10.0
    change_rate = np.tile([1.0, 0.3, 2.0, 0.7, 1.0, 0.5], n)
    recall = np.tile([0.5, 0.9, 0.3, 0.0, 1.0, 0.6], n)
    false_rate = np.tile([0.3, 0.0, 1.0, 0.5, 0.4, 2.0], n)
    pages = SignalledPages(change_rate, 1.0, recall, false_rate)
    world = draw_world(pages, horizon, rng=11)
    delay = np.random.default_rng(12).exponential(0.7, world.sent.size)
    world = world.delayed(delay)
    run = crawl(world, make(pages), 0.6 * kinds * n)
    counted = np.zeros(kinds * n)
    for i in range(kinds * n):
        crawls = np.append(0.0, run.time[run.page == i])
        later = np.append(world.changes(i), np.inf)
        change = later[np.searchsorted(later, crawls, side="right")]
        fresh = np.minimum(change, np.append(crawls[1:], horizon)) - crawls
        counted[i] = fresh.sum()
    # independent between pages, given slots and signals
    difference = (counted - run.fresh[0]).reshape(n, kinds)
    stderr = difference.std(axis=0) / math.sqrt(n)
    assert (np.abs(difference.mean(axis=0)) <= 5 * stderr).all()
    assert 0.2 < run.freshness < 0.9


def test_invariances():
    pages = draw(np.random.default_rng(20))
    world = draw_world(pages, 30.0, rng=21)
    run = crawl(world, GreedyNCIS(pages), 5.0)
    # another unit of time
    rates = {name: getattr(pages, name) / 64 for name in ("change_rate", "false_rate")}
    slow = replace(pages, **rates)
    scaled = crawl(draw_world(slow, 64 * 30.0, rng=21), GreedyNCIS(slow), 5.0 / 64)
    np.testing.assert_array_equal(scaled.page, run.page)
    np.testing.assert_allclose(scaled.fresh, 64 * run.fresh, rtol=1e-12)
    # pages in another order
    order = np.random.default_rng(22).permutation(15)
    shuffled = SignalledPages(*(getattr(pages, name)[order] for name in NAMES))
    parts = np.split(world.sent, world.offsets[1:-1])
    signals = [(k, t) for k, i in enumerate(order) for t in parts[i]]
    other = crawl(world_of(shuffled, signals, 30.0), GreedyNCIS(shuffled), 5.0)
    np.testing.assert_array_equal(order[other.page], run.page)
    np.testing.assert_allclose(other.fresh, run.fresh[:, order], rtol=1e-12)
    # importance in another unit, and more bandwidth
    heavy = replace(pages, importance=8 * pages.importance)
    same = crawl(replace(world, pages=heavy), GreedyNCIS(heavy), 5.0)
    assert same.freshness == pytest.approx(run.freshness, rel=1e-12)
    more = [crawl(world, Greedy(pages), rate).freshness for rate in (1, 5, 20, 100)]
    assert np.all(np.diff(more) > 0)


# ------------------------------ the protocol of policies


@dataclass
class Recent:
    """A user's own policy: crawl the page of the latest signal that has arrived."""

    seen: list

    def choose(self, time, signals, crawl):
        self.seen += [time, signals]
        count = np.diff(signals.offsets)
        sender = np.repeat(np.arange(count.size), count)
        order = np.argsort(signals.time, kind="stable")
        latest = np.searchsorted(signals.time[order], time, side="right") - 1
        return np.where(latest >= 0, sender[order][latest], -1)


def test_a_policy_sees_slots_and_received_signals_and_nothing_else():
    pages = SignalledPages(np.ones(2), 1.0, 0.5, 0.1)
    world = world_of(pages, [(0, 0.6), (0, 1.2), (1, 0.9)], horizon=3.0).delayed(0.5)
    policy = Recent([])
    run = crawl(world, policy, 2.0)
    assert run.page.tolist() == [-1, -1, 1, 0, 0, 0]
    time, signals = policy.seen
    assert time.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert signals.offsets.tolist() == [0, 2, 3]
    np.testing.assert_allclose(signals.time, [1.1, 1.7, 1.4])
    same = crawl(world, policy.choose, 2.0)  # as a plain function
    np.testing.assert_array_equal(same.page, run.page)


@pytest.mark.parametrize("seed", range(5))
def test_crawls_of_a_policy_that_learns_reveal_whether_the_page_changed(seed):
    world = draw_world(draw(np.random.default_rng(seed), 4), 30.0, rng=seed)
    found, page = [], np.random.default_rng(seed).integers(-1, 4, 60)

    def policy(time, signals, crawl):
        found.extend(crawl(i) for i in page[: 20 * seed])  # and then no more
        return page

    run = crawl(world, policy, 2.0)
    for j, bit in enumerate(found):
        before = run.time[:j][run.page[:j] == run.page[j]]
        last = before[-1] if before.size else 0.0
        times = world.changes(page[j]) if page[j] >= 0 else np.empty(0)
        assert bit is bool(((last < times) & (times <= run.time[j])).any())
    assert 0 < sum(found) < len(found) or seed == 0


PAGES = SignalledPages(np.ones(3), 1.0)
WORLD = world_of(PAGES)
run = partial(crawl, WORLD)
FINITE, RISE = (
    "must be non-negative and finite, got",
    "must be rising, at least",
)
PAGE_CLASS = "must be a SignalledPages, got"
OBJECT = "policy must be a function, or an object with `choose`, got"
INTEGER = "page must be integers from -1 to 2, got"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run(fixed([0.0]), 1.0), f"{INTEGER} [0. 0. 0. 0.]"),
        (lambda: run("greedy", 1.0), f"{OBJECT} greedy"),
        (lambda: run(Greedy, 1.0), f"{OBJECT} {Greedy}"),
        (
            lambda: run(lambda *_: np.zeros(3, int), 1.0),
            "page must be of shape (4,), got (3,)",
        ),
        (
            lambda: run(fixed([0, 3]), 1),
            f"{INTEGER} 3 at index (1,)",
        ),
        (
            lambda: run(fixed([-2]), 1),
            f"{INTEGER} -2 at index (0,)",
        ),
        (
            lambda: run(lambda time, signals, crawl: np.full(4, int(crawl(2))), 1.0),
            "policy must return the pages that it has crawled",
        ),
        (lambda: run(fixed([0]), -1.0), f"bandwidth {FINITE} -1.0 at index (0,)"),
        (lambda: slot_times(np.inf, 3.0), f"bandwidth {FINITE} inf at index (0,)"),
        (
            lambda: slot_times(([0, 2, 1], [1, 2, 3]), 3.0),
            f"bandwidth times {RISE} 1 numbers, got [0. 2. 1.]",
        ),
        (lambda: slot_times(1, 0.0), "horizon must be positive and finite, got 0.0"),
        (
            lambda: run(fixed([0]), 1.0, borders=[0.0, 4.5]),
            "borders must be within the horizon, got 4.5 at index (1,)",
        ),
        (
            lambda: run(fixed([0]), 1.0, borders=[2.0]),
            f"borders {RISE} 2 numbers, got [2.]",
        ),
        (lambda: draw_world(PAGES, 0), "horizon must be positive and finite, got 0.0"),
        (lambda: draw_world([1.0], 4.0), f"pages {PAGE_CLASS} <class 'list'>"),
        (
            lambda: crawl(PAGES, fixed([0]), 1.0),
            f"world must be a World, got {SignalledPages}",
        ),
        (lambda: WORLD.delayed(-1.0), f"delay {FINITE} -1.0"),
    ],
)
def test_worlds_refuse(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
