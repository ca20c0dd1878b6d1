"""Crawling by an index under limits: the full arg max, slot for slot."""

import dataclasses
import pickle

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_array_equal

from paperlib.signals import SignalledPages
from recrawl.errors import NoPageError
from recrawl.kernels import indices as kernels
from recrawl.kernels.changes import UNTOLD, Changes
from recrawl.kernels.hosts import spend_token
from recrawl.scheduler import Scheduler
from recrawl.science import allocation, objectives, policies, simulate

OBJECTIVES = [
    objectives.freshness,
    objectives.age,
    objectives.delay,
    objectives.harmonic,
    objectives.age_of_information,
    objectives.deadline(1.3),
]
KINDS = [*map(repr, OBJECTIVES), "bayes"]


@njit
def full_argmax(state, times, changes, out):
    """Page of each slot by the index of every page in every slot."""
    pages, (change_time, unseen, stop, false) = state.pages, changes
    for j in range(times.size):
        t, best, winner = times[j], -1.0, -1
        for i in range(pages.size):
            page = pages[i]
            if page.place != kernels.ABSENT and kernels._may(state, page, t):
                v = kernels._value(state, page, t)
                if v > best:
                    best, winner = v, i
        out[j] = winner
        if winner < 0:
            continue
        pages[winner].last = t
        spend_token(state.hosts[pages[winner].host], t)
        changed = false[j]
        while unseen[winner] < stop[winner] and change_time[unseen[winner]] <= t:
            unseen[winner] += 1
            changed = True
        if pages[winner].kind == kernels.BAYES:
            interval = pages[winner].last - pages[winner].seen
            kernels._learn(pages[winner], changed, interval, 0.0)


def random_pages(rng, n_pages):
    change_rate = rng.choice([0.01, 1.0, 30.0]) * rng.lognormal(0.0, 2.0, n_pages)
    importance = rng.choice([1.0, 1e-6]) * rng.random(n_pages)
    extreme = rng.random()
    if extreme < 0.2:
        change_rate[:], importance[:] = 0.7, 0.3
    elif extreme < 0.4:
        importance = rng.choice([0.0, 1e-90, 1.0], n_pages)
        change_rate = rng.choice([0.0, 1e-12, 0.3, 1e4], n_pages)
    return SignalledPages(change_rate, importance, 0.0, 0.0)


def random_limits(rng, n_pages):
    limits = {}
    if rng.random() < 0.4:
        limits["min_interval"] = rng.choice([0.0, 0.5, 3.0], n_pages)
    if rng.random() < 0.4:
        least = limits.get("min_interval", 0.0)
        limits["max_interval"] = least + rng.choice([1.0, 20.0, np.inf], n_pages)
    if rng.random() < 0.4:
        limits["host"] = rng.integers(0, 3, n_pages)
        limits["host_limit"] = float(rng.choice([0.1, 1.0, 10.0]))
    return limits


def random_policy(rng, kind, n_pages):
    pages, limits = random_pages(rng, n_pages), random_limits(rng, n_pages)
    if kind == "bayes":
        shape = rng.choice([0.1, 0.5, 1.0, 2.0, 30.0], n_pages)
        rate = rng.choice([0.1, 1.0, 9.0])
        return policies.BayesGreedy(pages.importance, shape=shape, rate=rate, **limits)
    objective = OBJECTIVES[KINDS.index(kind)]
    return policies.Greedy(pages, objective=objective, **limits)


def random_slots(rng, n_slots, begin):
    """Slots at one time, pauses, any speed."""
    gap = rng.choice([1.0, 0.1]) * rng.choice([0.0, 1.0, 1.0, 1.0], n_slots)
    gap *= rng.choice([0.003, 0.05, 1.0])
    if rng.random() < 0.5:
        gap[:] = gap[-1]
    gap[rng.random(n_slots) < 0.01] = rng.choice([1.0, 300.0])
    return begin + np.cumsum(gap)


def instance(seed, kind, n_slots=1500):
    """A random policy and a random world, given to both."""
    rng = np.random.default_rng(seed)
    n_pages = int(rng.choice([1, 2, 7, 40, 300, 1000]))
    policy = random_policy(rng, kind, n_pages)
    begin = float(rng.choice([0.0, 1e4, 1.7e9]))
    last = rng.choice([begin, -np.inf, begin - 3.0], n_pages)
    if rng.random() < 0.5:
        last[:] = rng.choice([begin, -np.inf])
    present = rng.random(n_pages) < rng.choice([0.8, 1.0])
    times = random_slots(rng, n_slots, begin)
    changes = np.sort(rng.uniform(begin, times[-1] + 1.0, (n_pages, 20))).ravel()
    offsets = np.arange(n_pages + 1) * 20
    false = rng.random(n_slots) < rng.choice([0.0, 0.3])
    out = np.zeros((2, n_slots), np.int64)
    for crawl, pages in zip((kernels.slots, full_argmax), out, strict=True):
        told = UNTOLD
        if kind == "bayes" or crawl is full_argmax:
            told = Changes(changes, offsets[:-1].copy(), offsets[1:], false)
        crawl(policy.start(last, present=present, time=begin), times, told, pages)
    np.testing.assert_array_equal(*out)
    return n_slots


@pytest.mark.parametrize(
    "n_instances",
    [pytest.param(12, id="few"), pytest.param(70, id="many", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_slot_goes_to_the_page_of_largest_index(kind, n_instances):
    seeds = range(KINDS.index(kind), 8 * n_instances, 8)
    slots = sum(instance(seed, kind) for seed in seeds)
    assert slots == 1500 * n_instances


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_the_index_is_the_crawl_value_of_the_objective(objective):
    pages = SignalledPages([0.0, 0.3, 4.0], [1.0, 2.0, 0.5], 0.0, 0.0)
    state = policies.Greedy(pages, objective=objective).start(np.zeros(3))
    for elapsed in (0.01, 1.0, 20.0):
        index = [kernels.index(page, elapsed) for page in state.pages]
        value = pages.importance * objective.value(elapsed, pages.change_rate)
        np.testing.assert_allclose(index, value, rtol=2e-11)


def crawls_of(policy, n_pages, bandwidth, n_slots):
    """Page and time of each slot; pages that do not change, crawled at 0."""
    world = simulate.replay([[] for _ in range(n_pages)], n_slots / bandwidth)
    run = simulate.crawl(world, policy, bandwidth)
    return run.page, run.time


def test_limits_of_pages_are_kept_and_overdue_pages_come_by_deadline():
    rng = np.random.default_rng(1)
    pages = SignalledPages(rng.lognormal(0.0, 1.0, 30), rng.random(30), 0.0, 0.0)
    least, most = np.full(30, 2.0), np.full(30, np.inf)
    most[:10] = 8.0 + np.arange(10) / 16
    policy = policies.Greedy(pages, min_interval=least, max_interval=most)
    page, time = crawls_of(policy, 30, 5.0, 4000)
    for i in range(30):
        between = np.diff(np.append(0.0, time[page == i]))
        assert between.min(initial=2.0) >= 2.0 - 1e-6
        if i < 10:  # a slot is 0.2, and ten pages can be due at once
            assert between.max() <= most[i] + 10 * 0.2
    # pages of no importance are crawled at their deadlines alone, in their order
    idle = SignalledPages(1.0, np.append(1.0, np.zeros(10)), 0.0, 0.0)
    late = np.append(np.inf, most[:10][::-1])
    page, _ = crawls_of(policies.Greedy(idle, max_interval=late), 11, 20.0, 200)
    assert page[page > 0].tolist() == list(range(10, 0, -1))


def test_hosts_are_crawled_within_their_limits():
    rng = np.random.default_rng(2)
    pages = SignalledPages(rng.lognormal(0.0, 1.0, 60), rng.random(60), 0.0, 0.0)
    host = np.repeat(["a", "b", "c"], 20)
    policy = policies.Greedy(pages, host=host, host_limit={"a": 1.0, "b": 0.25})
    page, time = crawls_of(policy, 60, 6.0, 3000)
    assert (page >= 0).all()
    for label, limit in {"a": 1.0, "b": 0.25}.items():
        own = time[host[page] == label]
        for width in (3.0, 20.0, 200.0):
            most = np.searchsorted(own, own + width) - np.arange(own.size)
            assert most.max() <= limit * width + 2
        assert own.size >= 0.98 * limit * time[-1]


SIX = SignalledPages([1.0, 2.0, 0.5, 3.0, 1.5, 0.1], 1.0, 0.0, 0.0)


@pytest.mark.parametrize("initial", ["fresh", "empty"])
@pytest.mark.parametrize(
    "make",
    [
        lambda pages, **hosts: policies.Greedy(pages, max_interval=9.0, **hosts),
        lambda pages, **hosts: policies.Greedy(
            pages, objective=objectives.age, **hosts
        ),
        lambda pages, **hosts: policies.BayesGreedy(
            pages.importance, shape=0.5, rate=0.5, **hosts
        ),
    ],
)
def test_at_a_limit_of_zero_slots_go_as_if_the_host_were_not_there(make, initial):
    host, kept = ["a", "a", "b", "a", "b", "b"], [2, 4, 5]
    some = SignalledPages(*(array[kept] for array in vars(SIX).values()))
    rng, runs = np.random.default_rng(3), []
    changes = [np.sort(50.0 * rng.random(40)) for _ in range(6)]
    for policy, times in (
        (make(SIX, host=host, host_limit={"a": 0, "b": 0.7}), changes),
        (make(some, host_limit=0.7), [changes[i] for i in kept]),
    ):
        world = simulate.replay(times, 50.0)
        runs.append(simulate.crawl(world, policy, 1.0, initial=initial))
    limited, alone = runs
    assert 0 < alone.n_idle < 20
    np.testing.assert_array_equal(limited.page, np.append(kept, -1)[alone.page])


def test_a_limit_of_all_pages_together_holds_without_labels():
    world = simulate.draw_world(SIX, 50.0, rng=1)
    run = simulate.crawl(world, policies.Greedy(SIX, host_limit=0.5), 2.0)
    assert 24 <= run.n_crawls.sum() <= 27
    none = simulate.crawl(world, policies.Greedy(SIX, host_limit=0.0), 2.0)
    assert none.n_idle == 100
    scheduler = Scheduler(policies.Greedy(SIX, host_limit=0), crawled=0.0)
    with pytest.raises(NoPageError, match=r"no page to crawl at time 1\.0$"):
        scheduler.next(1.0)


def test_a_pickled_greedy_policy_is_as_fast_as_before(monkeypatch):
    pages = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    again = pickle.loads(pickle.dumps(policies.Greedy(pages)))
    expected, _ = crawls_of(policies.Greedy(pages), 2, 1.0, 12)
    monkeypatch.delattr(policies.IndexPolicy, "choose")  # the slower way
    assert_array_equal(crawls_of(again, 2, 1.0, 12)[0], expected)


def test_slots_are_left_empty_where_no_page_may_be_crawled():
    pages = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    page, _ = crawls_of(policies.Greedy(pages, min_interval=4.0), 2, 1.0, 12)
    assert page.tolist() == [-1, -1, -1, 0, 1, -1, -1, 0, 1, -1, -1, 0]
    scheduler = Scheduler(policies.Greedy(pages, min_interval=4.0), crawled=0.0)
    with pytest.raises(LookupError, match="no page to crawl"):
        scheduler.next(1.0)
    assert scheduler.next(4.0) == 0


def policy_of(policy, pages):
    """The policy for some of its pages, in another order."""
    order = pages[::-1]
    fields = {f.name: getattr(policy, f.name) for f in dataclasses.fields(policy)}
    for name, value in fields.items():
        if isinstance(value, SignalledPages):
            fields[name] = SignalledPages(*(a[order] for a in vars(value).values()))
        elif np.ndim(value):
            fields[name] = np.asarray(value)[order]
    return type(policy)(**fields)


def next_of(scheduler, time):
    try:
        return scheduler.next(time)
    except LookupError:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_scheduler_goes_on_as_before_when_saved_changed_and_restored(kind, tmp_path):
    rng = np.random.default_rng(KINDS.index(kind))
    policy = random_policy(rng, kind, 50)
    first, second = (Scheduler(policy, crawled=0.0) for _ in range(2))
    now, learns = 0.0, kind == "bayes"
    for step in range(6):
        times = now + np.cumsum(rng.exponential(0.3, 40))
        now = times[-1]
        chosen = []
        for time in times:
            page, again = (next_of(scheduler, time) for scheduler in (first, second))
            assert page == again
            if page is None:
                continue
            chosen.append(page)
            if learns and rng.random() < 0.8:
                for scheduler in (first, second):
                    scheduler.report(chosen[-1], time % 1.0 < 0.5)
        assert chosen
        for scheduler in (first, second):
            if step == 1:
                scheduler.remove([3, 4])
            if step == 2:
                new = scheduler.add(policy, crawled=now - 1.0)
                assert new.tolist() == list(range(50, 100))
            if step == 3:
                here = np.setdiff1d(np.arange(50), [3, 4])
                scheduler.update(here, policy_of(policy, here))
        second.save(tmp_path / "state.npz")
        second = Scheduler.load(tmp_path / "state.npz")
        assert len(second) == len(first)


def test_a_page_is_crawled_as_often_as_equal_intervals_would():
    rng = np.random.default_rng(3)
    pages = SignalledPages(rng.lognormal(0.0, 1.0, 300), rng.random(300), 0.0, 0.0)
    for objective in OBJECTIVES[:5]:
        policy = policies.Greedy(pages, objective=objective)
        page, time = crawls_of(policy, 300, 150.0, 60_000)
        late = time > 40.0
        rate = np.bincount(page[late], minlength=300) / (time[-1] - 40.0)
        best = allocation.optimal(
            pages.change_rate, pages.importance, 150.0, objective=objective
        ).crawl_rate
        assert np.abs(rate - best).sum() < 0.02 * 150.0


def test_both_kernels_give_greedy_the_same_slots():
    rng = np.random.default_rng(4)
    pages = SignalledPages(rng.lognormal(0.0, 2.0, 200), rng.random(200), 0.5, 0.1)
    start = np.where(np.arange(200) < 150, 0.0, 30.0 * rng.random(200))
    world = simulate.draw_world(pages, 40.0, rng=rng, arrivals=(start, np.inf))
    policy = policies.Greedy(pages)
    times = simulate.slot_times(150.0, 40.0)
    last = np.where(world.start == 0.0, 0.0, -np.inf)
    page = policy.choose(world, times, last.copy())
    assert np.unique(page).size > 100
    by_index = policies.IndexPolicy.choose(policy, world, times, last)
    np.testing.assert_array_equal(page, by_index)


@pytest.mark.parametrize("kind", [*map(repr, OBJECTIVES[:5]), "bayes"])
def test_the_bound_of_a_deferred_page_is_above_its_index_and_near_it_when_young(kind):
    rng = np.random.default_rng(5)
    state = random_policy(rng, kind, 40).start(np.zeros(40))
    for page in state.pages:
        for elapsed in (1e-3, 0.1, 3.0, 100.0):
            index = kernels.index(page, elapsed)
            bound = kernels._bound(page, elapsed)
            assert index <= bound * (1 + 1e-7)
        if page["scale"] > 0.0:
            early = 1e-5 * (page["rate"] if kind == "bayes" else 1 / page["rate"])
            index = kernels.index(page, early)
            bound = kernels._bound(page, early)
            np.testing.assert_allclose(index, bound, rtol=1e-3)


@pytest.mark.parametrize("kind", [*map(repr, OBJECTIVES[:5]), "bayes"])
def test_the_line_of_a_page_is_above_its_index_and_touches_it(kind):
    rng = np.random.default_rng(6)
    state = random_policy(rng, kind, 40).start(np.zeros(40))
    for page in state.pages:
        for drawn in (1e-3, 0.1, 3.0):
            index = kernels.index(page, drawn)
            kernels._draw(page, drawn, index)
            for growth in (1.0, 1.001, 1.1, 3.0, 100.0):
                index = kernels.index(page, growth * drawn)
                line = kernels._upper_bound(page, growth * drawn)
                assert index <= line * (1 + 1e-7)
            if np.isfinite(line):  # not where the index is too small for one
                index = kernels.index(page, 1.001 * drawn)
                line = kernels._upper_bound(page, 1.001 * drawn)
                np.testing.assert_allclose(index, line, rtol=1e-5)


def test_equal_pages_are_crawled_in_turn():
    n_pages = 2000  # more than are activated before the first slot
    policy = policies.BayesGreedy(np.ones(n_pages), shape=0.5, rate=0.5)
    scheduler = Scheduler(policy, crawled=0.0)
    found = scheduler.run(simulate.slot_times(n_pages, 2.0))
    np.testing.assert_array_equal(found, np.tile(np.arange(n_pages), 2))
    # not one value for each of the pages in each slot
    assert scheduler.n_values < 100 * found.size


def test_deferred_pages_are_activated_when_the_thresholds_fall():
    """The highest bounds may belong to pages that change too fast to be worth much."""
    sizes = [100, 300, 50]
    rate = np.repeat([1.0, 100.0, 0.5], sizes)
    importance = np.repeat([4.0, 0.02, 1.0], sizes)
    times = 1.0 + 1e-6 * np.arange(200)
    policy = policies.Greedy(SignalledPages(rate, importance, 0.0, 0.0))
    scheduler = Scheduler(policy, crawled=0.0)
    found, last = scheduler.run(times), np.zeros(rate.size)
    for k, time in enumerate(times):
        value = importance * objectives.freshness.value(time - last, rate)
        assert value[found[k]] >= value.max() * (1 - 1e-12)
        last[found[k]] = time
