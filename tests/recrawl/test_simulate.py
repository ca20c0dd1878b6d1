"""Simulation: slots, worlds, fresh time, and runs.

Slots are exact; fresh time agrees with a plain integral and with changes that
are drawn one by one; comparisons are paired.
"""

import bisect
import dataclasses
import itertools
import math
import re
import sys
from fractions import Fraction
from operator import attrgetter

import numpy as np
import pytest
from scipy import stats

from paperlib.signals import SignalledPages
from recrawl.science import allocation, policies
from recrawl.science.simulate import (
    World,
    compare,
    crawl,
    draw_world,
    replicate,
    slot_times,
)


@dataclasses.dataclass
class Given:
    """A policy that gives the slots to given pages, in turn."""

    page: np.ndarray

    def choose(self, world, time, last):
        self.last = last.copy()
        last[:] = np.nan  # its own copy
        return np.resize(np.asarray(self.page, np.int64), time.size)


def world_of(pages, signals=(), *, horizon=4.0, start=0.0, stop=np.inf):
    """A world by hand; signals are (time, page)."""
    signals = sorted((page, sent) for sent, page in signals)
    page, sent = (
        np.array([signal[k] for signal in signals], kind)
        for k, kind in enumerate((np.int32, float))
    )
    there = (
        np.array(np.broadcast_to(edge, pages.change_rate.size), float)
        for edge in (start, stop)
    )
    return World(pages, horizon, sent, page, sent, np.ones(page.size, bool), *there)


def some_pages(rng, n_pages):
    """Pages of all kinds: no changes, recall 0 and 1, precision 1, no signals, few."""
    return SignalledPages(
        rng.choice([0.0, 1e-9, 0.3, 2.0, 20.0], n_pages),
        rng.random(n_pages),
        rng.choice([0.0, 0.5, 1.0 - 1e-9, 1.0], n_pages),
        rng.choice([0.0, 0.0, 0.4, 3.0], n_pages),
    )


# ---------------------------------------------------------------- slots


@pytest.mark.parametrize(
    ("bandwidth", "horizon", "expected"),
    [
        (4.0, 1.0, [0.25, 0.5, 0.75, 1.0]),
        (4.0, 0.2, []),
        (0.0, 5.0, []),
        (([0.0], [2.0]), 1.9, [0.5, 1.0, 1.5]),
        (([0.0, 1.0, 2.0], [2.0, 0.0, 4.0]), 3.0, [0.5, 1.0, 2.25, 2.5, 2.75, 3.0]),
        (
            ([0.0, 1.25], [2.0, 4.0]),
            2.0,
            [0.5, 1.0, 1.375, 1.625, 1.875],
        ),  # half a slot is carried over
        (
            ([0.0, 1.25, 3.25], [2.0, 0.0, 1.0]),
            5.0,
            [0.5, 1.0, 3.75, 4.75],
        ),  # through a pause too
        (([0.0, 1.0, 2.0], [0.0, 0.0, 1.0]), 3.0, [3.0]),
        (([0.0, 1.0], [2.0, 0.0]), 10.0, [0.5, 1.0]),
        (([0.0, 1.0, 9.0], [1.0, 2.0, 100.0]), 2.0, [1.0, 1.5, 2.0]),
        (([0, 1], [1, 2]), 2, [1.0, 1.5, 2.0]),
        (
            (np.arange(11.0), [0.1] * 10 + [0.0]),
            20.0,
            [10.0],
        ),  # the sum is 0.9999999999999999
    ],
)
def test_slots_by_hand(bandwidth, horizon, expected):
    np.testing.assert_allclose(slot_times(bandwidth, horizon), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("rate", "horizon", "n"),
    [(0.1, 1000.0, 100), (1 / 3, 300.0, 100), (100.0, 0.07, 7), (7.0, 1e5 / 7, 10**5)],
)
def test_slots_of_a_constant_bandwidth_are_multiples_of_its_inverse(rate, horizon, n):
    time = slot_times(rate, horizon)
    np.testing.assert_allclose(time, np.arange(1, n + 1) / rate, rtol=1e-12)
    assert time[-1] <= horizon


def test_slots_are_where_the_exact_sum_of_the_bandwidth_is_a_whole_number():
    n_slots = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        times = np.append(0, np.cumsum(rng.integers(1, 40, 7))) / 16
        rates = rng.choice([0, 0, 1, 3, 8, 50], 8) / 8
        horizon, expected, total = rng.integers(1, 200) / 16, [], Fraction(0)
        for begin, end, rate in zip(
            map(Fraction, times),
            [*map(Fraction, times[1:]), Fraction(10**6)],
            map(Fraction, rates),
            strict=True,
        ):
            end = min(end, Fraction(horizon))
            if end > begin:
                new = total + rate * (end - begin)
                expected += [
                    begin + (number - total) / rate
                    for number in range(math.floor(total) + 1, math.floor(new) + 1)
                ]
                total = new
        np.testing.assert_allclose(
            slot_times((times, rates), horizon),
            np.array(expected, float),
            rtol=1e-13,
            err_msg=f"seed {seed}",
        )
        n_slots += len(expected)
    assert n_slots > 1000


def test_bandwidth_that_ends_after_many_pieces():
    time = slot_times((np.arange(1001.0), np.append(np.full(1000, 0.1), 0.0)), 2000.0)
    np.testing.assert_allclose(time, np.arange(1, 101) * 10.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("bandwidth", "message"),
    [
        (-1.0, "bandwidth must be non-negative and finite, got -1.0"),
        (np.nan, "bandwidth must be non-negative and finite, got nan"),
        (np.inf, "bandwidth must be non-negative and finite, got inf"),
        (
            ([0.0, 1.0], [1.0, -2.0]),
            "bandwidth must be non-negative and finite, got -2.0 at index (1,)",
        ),
        (
            ([0.0, np.nan], [1.0, 2.0]),
            "bandwidth times must be non-negative and finite, got nan at index (1,)",
        ),
        (
            ([-1.0, 0.0], [1.0, 2.0]),
            "bandwidth times must be non-negative and finite, got -1.0 at index (0,)",
        ),
        (
            ([1.0, 2.0], [1.0, 2.0]),
            "bandwidth must be a number, or rates and the times from which they "
            "hold, rising from 0",
        ),
        (([0.0, 2.0, 2.0], [1.0, 2.0, 3.0]), "bandwidth must be a number, or rates"),
        (([0.0, 2.0, 1.0], [1.0, 2.0, 3.0]), "bandwidth must be a number, or rates"),
        (([0.0, 1.0], [1.0]), "bandwidth must be a number, or rates"),
        (([[0.0, 1.0]], [[1.0, 2.0]]), "bandwidth must be a number, or rates"),
        (([], []), "bandwidth must be a number, or rates"),
        ((0.0, 1.0), "bandwidth must be a number, or rates"),
        (([[0.0]], [[1.0]]), "bandwidth must be a number, or rates"),
    ],
)
def test_bad_bandwidth(bandwidth, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        slot_times(bandwidth, 3.0)
    with pytest.raises(ValueError, match=re.escape(message)):
        crawl(world_of(SignalledPages(1.0, 1.0, 0.0, 0.0)), Given([0]), bandwidth)


# ---------------------------------------------------------------- worlds

PAGES = SignalledPages(
    [0.5, 2.0, 1.0, 0.0, 3.0], 1.0, [0.5, 0.9, 0.0, 0.7, 0.0], [0.3, 0.0, 1.0, 0.2, 0.0]
)
GAMMA, PRECISION = (
    np.array([0.55, 1.8, 1.0, 0.2, 0.0]),
    np.array([0.25 / 0.55, 1.0, 0.0, 0.0]),
)


@pytest.mark.slow
def test_signals_of_every_page_are_poisson_and_independent():
    n, mean = 4000, 3.0 * GAMMA
    rng = np.random.default_rng(1)
    count = np.array(
        [
            np.bincount(draw_world(PAGES, 3.0, rng=rng).signal_page, minlength=5)
            for _ in range(n)
        ]
    )
    assert (np.abs(count.mean(axis=0) - mean) <= 5 * np.sqrt(mean / n)).all()
    assert (
        np.abs(count.var(axis=0) - mean) <= 5 * np.sqrt((mean + 2 * mean**2) / n)
    ).all()  # fourth moment of Poisson
    covariance = np.cov(count[:, :4].T)
    assert (np.abs(covariance) <= 5 * np.sqrt(np.outer(mean, mean)[:4, :4] / n))[
        ~np.eye(4, dtype=bool)
    ].all()


def test_signals_are_uniform_in_time_true_at_the_precision_and_rising():
    n = 5000
    pages = SignalledPages(
        *(
            np.tile(getattr(PAGES, name), n)
            for name in ("change_rate", "importance", "recall", "false_rate")
        )
    )
    world = draw_world(pages, 4.0, rng=2)
    kind = world.signal_page % 5
    assert (np.diff(world.signal_page) >= 0).all()
    assert (np.diff(world.signal_time)[np.diff(world.signal_page) == 0] >= 0).all()
    assert ((world.signal_time >= 0) & (world.signal_time <= 4.0)).all()
    for i in range(4):
        true = world.true[kind == i]
        assert abs(true.mean() - PRECISION[i]) <= 5 * math.sqrt(
            PRECISION[i] * (1 - PRECISION[i]) / true.size
        )
        assert stats.kstest(world.signal_time[kind == i] / 4, "uniform").pvalue > 1e-5
        of_pages = np.bincount(world.signal_page[kind == i] // 5, minlength=n)
        assert stats.chisquare(of_pages).pvalue > 1e-5
    assert world.true.dtype == bool
    assert (kind < 4).all()
    assert abs(
        np.corrcoef(world.true[kind == 0], world.signal_time[kind == 0])[0, 1]
    ) <= 5 / math.sqrt((kind == 0).sum())


def test_very_unequal_rates_of_signals():
    rate = np.array([0.0, 1e-12, 1e-3, 0.0, 1.0, 1e4])
    world = draw_world(SignalledPages(1.0, 1.0, 0.0, rate), 10.0, rng=3)
    count = np.bincount(world.signal_page, minlength=6)
    assert (np.abs(count - 10 * rate) <= 5 * np.sqrt(10 * rate) + 1e-3).all()


def test_no_signals_at_all():
    world = draw_world(
        SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0), 5.0, signal_delay=1.0, rng=4
    )
    assert (
        world.signal_time.size
        == world.signal_page.size
        == world.arrival.size
        == world.true.size
        == 0
    )


def test_the_same_seed_is_the_same_world_whatever_comes_after_it():
    first, same, other = (
        draw_world(PAGES, 50.0, rng=seed) for seed in (5, np.random.default_rng(5), 6)
    )
    late = draw_world(
        PAGES,
        50.0,
        signal_delay=lambda rng, n: rng.exponential(2.0, n),
        arrivals=(1.0, 30.0),
        rng=5,
    )
    for name in ("signal_time", "signal_page", "true"):
        np.testing.assert_array_equal(getattr(first, name), getattr(same, name))
        np.testing.assert_array_equal(getattr(first, name), getattr(late, name))
    assert (
        first.signal_time.size != other.signal_time.size
        or (first.signal_time != other.signal_time).any()
    )
    np.testing.assert_array_equal(first.arrival, first.signal_time)


def test_delays_are_a_number_or_drawn():
    np.testing.assert_allclose(
        *(
            draw_world(PAGES, 50.0, signal_delay=d, rng=7).arrival + 0.5 - d
            for d in (0.5, 2.0)
        ),
        rtol=1e-15,
    )
    world = draw_world(
        PAGES, 5000.0, signal_delay=lambda rng, n: rng.exponential(2.0, n), rng=8
    )
    delay = world.arrival - world.signal_time
    assert stats.kstest(delay / 2, "expon").pvalue > 1e-5
    assert abs(np.corrcoef(delay, world.signal_time)[0, 1]) <= 5 / math.sqrt(delay.size)


def test_pages_come_and_go():
    world = draw_world(
        PAGES,
        10.0,
        arrivals=([0.0, 1.0, 2.0, 3.0, 12.0], [10.0, 9.0, 2.0, 11.0, 13.0]),
        rng=9,
    )
    assert world.start.tolist() == [0.0, 1.0, 2.0, 3.0, 12.0]
    assert world.stop.tolist() == [np.inf, 9.0, 2.0, np.inf, np.inf]
    always = draw_world(PAGES, 10.0, rng=9)
    assert always.start.tolist() == [0.0] * 5
    assert np.isinf(always.stop).all()
    assert (
        draw_world(PAGES, 10.0, arrivals=(2.0, 3.0), rng=9).stop.tolist() == [3.0] * 5
    )


@pytest.mark.parametrize(
    ("horizon", "options", "message"),
    [
        (0.0, {}, "horizon must be positive and finite, got 0.0"),
        (np.inf, {}, "horizon must be positive and finite, got inf"),
        ([1.0, 2.0], {}, "horizon must be a single number, got shape (2,)"),
        (
            9.0,
            {"signal_delay": -1.0},
            "signal_delay must be non-negative and finite, got -1.0",
        ),
        (
            9.0,
            {"signal_delay": lambda rng, n: np.full(n, np.nan)},
            "signal_delay must be non-negative and finite, got nan",
        ),
        (
            9.0,
            {"arrivals": (5.0, [6.0, 7.0, 4.0, 8.0, 9.0])},
            "arrivals must not end before they start, got 5.0 to 4.0 at index (2,)",
        ),
        (
            9.0,
            {"arrivals": (-1.0, 4.0)},
            "arrivals must be non-negative and finite, got -1.0",
        ),
        (
            9.0,
            {"arrivals": (np.nan, 4.0)},
            "arrivals must be non-negative and finite, got nan",
        ),
        (
            9.0,
            {"arrivals": (1.0,)},
            "arrivals must be a pair, start and stop, got (1.0,)",
        ),
        (9.0, {"arrivals": 1.0}, "arrivals must be a pair, start and stop, got 1.0"),
        (9.0, {"arrivals": ()}, "arrivals must be a pair, start and stop, got ()"),
    ],
)
def test_worlds_refuse(horizon, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        draw_world(PAGES, horizon, **options, rng=10)


@pytest.mark.parametrize("delay", [None, 0.5, lambda rng, n: rng.exponential(5.0, n)])
def test_signals_page_by_page_as_sent_and_as_received(delay):
    for there in (
        None,
        ([0.0, 3.0, 0.0, 0.0, 5.0], [np.inf, 20.0, 7.0, np.inf, np.inf]),
    ):
        world = draw_world(PAGES, 30.0, signal_delay=delay, arrivals=there, rng=5)
        assert world.offsets[0] == 0
        assert world.offsets[-1] == world.received.size == world.signal_time.size > 80
        for i in range(5):
            own = slice(world.offsets[i], world.offsets[i + 1])
            sent, arrival = world.signal_time[own], world.arrival[own]
            np.testing.assert_array_equal(world.signal_page[own], i)
            received = np.where(
                (world.start[i] <= sent) & (arrival < world.stop[i]), arrival, np.inf
            )
            np.testing.assert_array_equal(world.received[own], np.sort(received))
        page, arrival = world.in_order
        assert (np.diff(arrival) >= 0).all()
        assert sorted(zip(page, arrival, strict=True)) == sorted(
            zip(world.signal_page, world.arrival, strict=True)
        )


def test_delays_of_any_length_are_sorted():
    world = draw_world(SignalledPages([2.0, 0.0, 5.0], 1.0, 1.0, 0.0), 2000.0, rng=1)
    for delay in (
        lambda rng, n: rng.exponential(1e4, n),
        lambda rng, n: np.linspace(1e4, 0.0, n),
    ):
        late = world.delayed(delay, rng=2)
        assert late.signal_time is world.signal_time
        for i in range(3):
            own = slice(world.offsets[i], world.offsets[i + 1])
            np.testing.assert_array_equal(
                late.received[own], np.sort(late.arrival[own])
            )


# ---------------------------------------------------------------- fresh time


def plain_fresh(world, run, initial):
    """The integral of exp(-alpha t) (1 - precision)^n between all events of a page."""
    pages, fresh = world.pages, np.zeros((run.borders.size - 1, world.start.size))
    for i in range(world.start.size):
        d, recall, nu, start, stop = (
            pages.change_rate[i],
            pages.recall[i],
            pages.false_rate[i],
            world.start[i],
            world.stop[i],
        )
        alpha, precision = (
            (1 - recall) * d,
            recall * d / (recall * d + nu) if recall * d + nu else math.nan,
        )
        crawls = [
            t
            for t, page in zip(run.time, run.page, strict=True)
            if page == i and start <= t < stop
        ]
        crawls = ([0.0] if start == 0 and initial == "fresh" else []) + crawls
        sent = [
            t
            for t, page in zip(world.signal_time, world.signal_page, strict=True)
            if page == i
        ]
        edges = sorted(
            {
                *crawls,
                *sent,
                *run.borders,
                *(e for e in (start, stop) if e <= run.borders[-1]),
            }
        )
        for begin, end in itertools.pairwise(edges):
            before = crawls[: bisect.bisect(crawls, begin)]
            if (
                run.borders[0] <= begin < run.borders[-1]
                and start <= begin
                and end <= stop
                and before
            ):
                n = bisect.bisect(sent, begin) - bisect.bisect_left(sent, before[-1])
                window = np.searchsorted(run.borders, begin, side="right") - 1
                length = (
                    -math.expm1(-alpha * (end - begin)) / alpha
                    if alpha > 0
                    else end - begin
                )
                fresh[window, i] += (
                    math.exp(-alpha * (begin - before[-1]))
                    * length
                    * ((1 - precision) ** n if n else 1.0)
                )
    return fresh


def random_run(seed, initial):
    rng = np.random.default_rng(seed)
    n_pages, horizon = int(rng.choice([1, 2, 6])), 20.0
    pages = some_pages(rng, n_pages)
    arrivals = None
    if rng.random() < 0.6:
        start, stop = np.sort(horizon * rng.random((2, n_pages)), axis=0)
        start[rng.random(n_pages) < 0.4], stop[rng.random(n_pages) < 0.4] = 0.0, horizon
        arrivals = start, stop
    world = draw_world(
        pages, horizon, arrivals=arrivals, signal_delay=rng.choice([0.0, 3.0]), rng=rng
    )
    borders = [
        None,
        np.sort(horizon * rng.random(4)),
        np.array([0.0, 0.1, 7.0, horizon]),
    ][rng.integers(3)]
    bandwidth = [1.5, ([0.0, 5.0, 9.0], [2.0, 0.0, 4.0]), 0.01][rng.integers(3)]
    return world, crawl(
        world,
        Given(rng.integers(-1, n_pages, 97)),
        bandwidth,
        initial=initial,
        borders=borders,
    )


@pytest.mark.slow
@pytest.mark.parametrize("initial", ["fresh", "empty"])
def test_fresh_time_is_the_plain_integral(initial):
    n_fresh = n_part = 0
    for seed in range(150):
        world, run = random_run(seed, initial)
        expected = plain_fresh(world, run, initial)
        np.testing.assert_allclose(
            run.fresh, expected, rtol=1e-11, atol=1e-13, err_msg=f"seed {seed}"
        )
        assert (run.fresh <= run.there * (1 + 1e-12)).all()
        n_fresh, n_part = (
            n_fresh + (expected > 0).sum(),
            n_part + ((expected > 0) & (expected < 0.99 * run.there)).sum(),
        )
        total = world.pages.importance @ run.there.sum(axis=0)
        if total > 0:
            np.testing.assert_allclose(
                run.freshness,
                world.pages.importance @ expected.sum(axis=0) / total,
                rtol=1e-11,
            )
    assert n_fresh > 300
    assert n_part > 200


def test_windows_add_up_and_what_is_outside_of_them_is_not_counted():
    world, run = random_run(3, "fresh")
    policy = Given(run.page)
    whole = crawl(world, policy, 1.5)
    parts = crawl(world, policy, 1.5, borders=[0.0, 2.0, 2.5, 11.0, world.horizon])
    late = crawl(world, policy, 1.5, borders=[2.5, 11.0])
    np.testing.assert_allclose(parts.fresh.sum(axis=0), whole.fresh[0], rtol=1e-12)
    np.testing.assert_allclose(late.fresh[0], parts.fresh[2], rtol=1e-12)
    assert late.fresh.shape == (1, world.start.size)


def real_world(rng, pages, horizon, delay):
    """Changes one by one, their signals and false ones: a world, and the changes."""
    changes, sent, page, true = [], [], [], []
    for i in range(pages.change_rate.size):
        change = np.sort(
            horizon * rng.random(rng.poisson(pages.change_rate[i] * horizon))
        )
        false = horizon * rng.random(rng.poisson(pages.false_rate[i] * horizon))
        signalled = change[rng.random(change.size) < pages.recall[i]]
        changes.append(change)
        sent.append(np.concatenate([signalled, false]))
        page.append(np.full(sent[-1].size, i, np.int32))
        true.append(np.arange(sent[-1].size) < signalled.size)
    sent, page, true = map(np.concatenate, (sent, page, true))
    order = np.lexsort((sent, page))
    sent, page, true = sent[order], page[order], true[order]
    arrival = sent + delay(rng, sent.size) if delay else sent
    start = np.where(np.arange(pages.change_rate.size) % 3 == 2, 2.0, 0.0)
    stop = np.where(np.arange(pages.change_rate.size) % 5 == 4, 6.0, np.inf)
    return World(pages, horizon, sent, page, arrival, true, start, stop), changes


def counted_fresh(world, changes, run):
    """How long each copy was fresh in every window, from the times of changes."""
    fresh = np.zeros_like(run.fresh)
    for i, change in enumerate(changes):
        crawled = run.time[(run.page == i) & (run.time < world.stop[i])]
        crawled = np.append(0.0, crawled) if world.start[i] == 0 else crawled
        until = np.minimum(
            np.append(crawled[1:], min(world.stop[i], world.horizon)),
            np.append(change, np.inf)[np.searchsorted(change, crawled)],
        )
        overlap = np.minimum(until, run.borders[1:, np.newaxis]) - np.maximum(
            crawled, run.borders[:-1, np.newaxis]
        )
        fresh[:, i] = np.maximum(overlap, 0.0).sum(axis=1)
    return fresh


@pytest.mark.slow
@pytest.mark.parametrize(
    "delay", [None, lambda rng, n: rng.exponential(0.7, n)], ids=["at once", "delayed"]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda pages: policies.Rates(np.ones(pages.change_rate.size)),
        policies.GreedyNCIS,
        lambda pages: policies.GreedyCIS(dataclasses.replace(pages, change_rate=1.0)),
    ],
    ids=["rates", "ncis", "cis"],
)
def test_expected_fresh_time_is_the_mean_of_what_changes_drawn_one_by_one_leave(
    make, delay
):
    kinds, n = 6, 600
    change_rate, recall, false_rate = np.tile(
        [
            [1.0, 0.3, 2.0, 0.7, 1.0, 0.5],
            [0.5, 0.9, 0.3, 0.0, 1.0, 0.6],
            [0.3, 0, 1, 0.5, 0.4, 2],
        ],
        n,
    )
    pages = SignalledPages(change_rate, 1.0, recall, false_rate)
    world, changes = real_world(np.random.default_rng(11), pages, 10.0, delay)
    run = crawl(world, make(pages), 0.6 * kinds * n, borders=[0.0, 1.0, 5.0, 9.0])
    difference = (counted_fresh(world, changes, run) - run.fresh).reshape(3, n, kinds)
    stderr = difference.std(axis=1) / math.sqrt(
        n
    )  # independent given slots and signals
    assert (np.abs(difference.mean(axis=1)) <= 5 * stderr).all()
    total = difference.sum(axis=(0, 2))
    assert (
        abs(total.mean()) <= 5 * total.std() / math.sqrt(n) < 0.03 * run.fresh.sum() / n
    )


# ---------------------------------------------------------------- what is left of a run


def test_a_run_by_hand():
    pages = SignalledPages(
        [1.0, 2.0, 1.0], [3.0, 1.0, 5.0], [0.0, 0.5, 0.0], [0.0, 1.0, 0.0]
    )
    world = world_of(pages, [(0.5, 1), (2.25, 1)], start=[0.0, 0.0, 9.0])
    run = crawl(world, Given([0, 1, -1, 0]), 1.0, borders=[0.0, 2.0, 4.0])

    def f(begin, end):  # of both, alpha is 1
        return math.exp(-begin) - math.exp(-end)

    fresh = [
        [2 * f(0, 1), f(0, 0.5) + 0.5 * f(0.5, 2), 0.0],
        [f(1, 3), f(0, 0.25) + 0.5 * f(0.25, 2), 0.0],
    ]
    np.testing.assert_allclose(run.fresh, fresh, rtol=1e-14)
    assert run.time.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert run.page.tolist() == [0, 1, -1, 0]
    assert run.there.tolist() == [[2.0, 2.0, 0.0]] * 2
    assert run.n_crawls.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(run.crawl_rate, [0.5, 0.25, np.nan])
    by_page = np.sum(fresh, axis=0)
    np.testing.assert_allclose(
        run.page_freshness, [by_page[0] / 4, by_page[1] / 4, np.nan], rtol=1e-14
    )
    np.testing.assert_allclose(
        run.window_freshness, [(3 * a + b) / 8 for a, b, _ in fresh], rtol=1e-14
    )
    np.testing.assert_allclose(
        run.freshness, (3 * by_page[0] + by_page[1]) / 16, rtol=1e-14
    )


def test_time_there_is_the_part_of_every_window_between_start_and_stop():
    world = world_of(
        SignalledPages(1.0, np.ones(4), 0.0, 0.0),
        start=[0.0, 1.5, 3.5, 0.0],
        stop=[np.inf, 2.5, np.inf, 0.5],
    )
    run = crawl(world, Given([-1]), 1.0, borders=[1.0, 2.0, 4.0])
    assert run.there.tolist() == [[1.0, 0.5, 0.0, 0.0], [2.0, 0.5, 0.5, 0.0]]


def test_crawl_rate_is_of_the_windows_as_the_time_is():
    world = world_of(SignalledPages(1.0, np.ones(2), 0.0, 0.0), stop=[1.5, np.inf])
    run = crawl(world, Given([0, 1, 1, 1]), 1.0, borders=[1.75, 3.75])
    np.testing.assert_array_equal(run.crawl_rate, [np.nan, 1.0])


def test_a_copy_is_fresh_or_empty_at_first_and_that_of_a_page_that_comes_later_empty():
    pages = SignalledPages(0.0, np.ones(2), 0.0, 0.0)
    for initial, expected, last in [
        ("fresh", [4.0, 1.0], [0.0, -np.inf]),
        ("empty", [2.0, 1.0], [-np.inf, -np.inf]),
    ]:
        policy = Given([-1, 0, 1])
        run = crawl(world_of(pages, start=[0.0, 2.5]), policy, 1.0, initial=initial)
        np.testing.assert_allclose(run.fresh, [expected])
        np.testing.assert_array_equal(policy.last, last)


def test_a_crawl_of_a_page_that_is_not_there_does_nothing():
    pages = SignalledPages(0.0, np.ones(2), 0.0, 0.0)
    run = crawl(
        world_of(pages, start=[2.5, 0.0], stop=[np.inf, 1.5]),
        Given([0, 1]),
        2.0,
        initial="empty",
    )
    np.testing.assert_allclose(run.fresh, [[1.5, 0.5]])  # from 2.5, and from 1.0 on


@pytest.mark.parametrize(
    "policy",
    [
        policies.Greedy,
        policies.GreedyNCIS,
        lambda pages: policies.Rates(pages.importance),
    ],
)
def test_no_slot_falls_into_a_pause_and_freshness_decays_through_it(policy):
    rng = np.random.default_rng(12)
    pages = SignalledPages(rng.uniform(0.2, 1, 20), rng.random(20), 0.5, 0.1)
    world = draw_world(pages, 30.0, rng=13)
    bandwidth = ([0.0, 10.0, 20.0], [40.0, 0.0, 40.0])
    run = crawl(
        world,
        policy(pages),
        bandwidth,
        borders=[0.0, 5.0, 10.0, 12.0, 20.0, 22.0, 30.0],
    )
    assert run.time.size == run.n_crawls.sum() == 800
    assert not ((run.time > 10.0) & (run.time <= 20.0)).any()
    before, kept, decayed, _, again = run.window_freshness[1:]
    assert decayed < kept < before
    assert again > 0.6
    assert decayed < 0.2
    np.testing.assert_array_equal(
        crawl(world, policy(pages), 0.0).n_crawls, np.zeros(20)
    )
    np.testing.assert_allclose(run.fresh, plain_fresh(world, run, "fresh"), rtol=1e-11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": "full"}, "initial must be 'fresh' or 'empty', got 'full'"),
        ({"initial": None}, "initial must be 'fresh' or 'empty', got None"),
        (
            {"borders": [0.0]},
            "borders must rise within the horizon, 4, at least two of them",
        ),
        ({"borders": [2.0, 1.0]}, "borders must rise within the horizon"),
        ({"borders": [1.0, 1.0]}, "borders must rise within the horizon"),
        ({"borders": [0.0, 4.5]}, "borders must rise within the horizon"),
        ({"borders": 3.0}, "borders must rise within the horizon"),
        ({"borders": [[0.0, 1.0]]}, "borders must rise within the horizon"),
        (
            {"borders": [-1.0, 1.0]},
            "borders must be non-negative and finite, got -1.0 at index (0,)",
        ),
        (
            {"borders": [0.0, np.nan]},
            "borders must be non-negative and finite, got nan at index (1,)",
        ),
    ],
)
def test_crawl_refuses(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        crawl(world_of(SignalledPages(1.0, 1.0, 0.0, 0.0)), Given([0]), 1.0, **options)


# ---------------------------------------------------------------- runs


def draw(rng):
    return SignalledPages(
        rng.random(15),
        rng.random(15),
        rng.beta(0.25, 0.25, 15),
        rng.uniform(0.1, 0.6, 15),
    )


def greedy_family(pages, rng):
    return {
        "greedy": policies.Greedy(pages),
        "cis": policies.GreedyCIS(pages),
        "ncis": policies.GreedyNCIS(pages),
    }


def test_runs_depend_on_the_seed_and_their_number_alone():
    def numbers(
        rng,
    ):  # here: for a function of the file the two processes would import all of it
        return rng.random(3).tolist()

    five = replicate(numbers, 5, rng=1)
    assert replicate(numbers, 3, rng=1) == five[:3]
    assert replicate(numbers, 5, rng=np.random.default_rng(1)) == five
    assert replicate(numbers, 5, rng=1, jobs=2) == five
    assert len({x for run in [*five, *replicate(numbers, 5, rng=2)] for x in run}) == 30
    assert replicate(lambda rng: None, 2, rng=1) == [None, None]


def test_one_job_needs_no_joblib(monkeypatch):
    expected = replicate(lambda rng: rng.random(), 3, rng=1)
    monkeypatch.setitem(sys.modules, "joblib", None)  # as if not installed
    assert replicate(lambda rng: rng.random(), 3, rng=1) == expected
    message = "jobs other than 1 need joblib: pip install 'paperlib-crawl[dask]'"
    with pytest.raises(ImportError, match=re.escape(message)):
        replicate(lambda rng: rng.random(), 3, rng=1, jobs=2)


@pytest.mark.parametrize("n_runs", [0, -1, 2.0, True])
def test_replicate_refuses(n_runs):
    with pytest.raises(ValueError, match="n_runs must be a positive integer"):
        replicate(draw, n_runs, rng=1)


def equal(one, other, first=None):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name][:first], other[name])


def test_comparisons_depend_on_the_seed_and_the_number_of_the_run_alone():
    five = compare(draw, greedy_family, 5.0, 20.0, n_runs=5, rng=3)
    assert all(
        freshness.shape == (5,) and np.unique(freshness).size == 5
        for freshness in five.values()
    )
    earlier = compare(
        draw, greedy_family, 5.0, 20.0, n_runs=5, rng=3, keep=attrgetter("freshness")
    )
    equal(five, earlier)
    assert not (five["greedy"] == five["ncis"]).any()
    equal(five, compare(draw, greedy_family, 5.0, 20.0, n_runs=3, rng=3), 3)
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="threading"):
        equal(five, compare(draw, greedy_family, 5.0, 20.0, n_runs=5, rng=3, jobs=2))


def test_policies_meet_the_same_worlds_whatever_else_runs():
    def twice(pages, rng):
        rng.random(7)
        return {
            "ncis": policies.GreedyNCIS(pages),
            "greedy": policies.Greedy(pages),
            "again": policies.GreedyNCIS(pages),
        }

    def alone(pages, rng):
        return {"ncis": policies.GreedyNCIS(pages)}

    options = {"n_runs": 4, "rng": 4}
    many = compare(draw, twice, 5.0, 20.0, **options)
    np.testing.assert_array_equal(many["ncis"], many["again"])
    np.testing.assert_array_equal(
        many["ncis"], compare(draw, alone, 5.0, 20.0, **options)["ncis"]
    )
    np.testing.assert_array_equal(
        many["greedy"], compare(draw, greedy_family, 5.0, 20.0, **options)["greedy"]
    )


def test_a_comparison_is_draws_and_crawls_of_four_streams():
    def noisy(pages, rng):
        ncis = policies.GreedyNCIS(pages, discard_window=0.1)
        return {
            "rates": policies.Rates(rng.random(15)),
            "ncis": ncis,
            "late": (ncis, "soon"),
            "later": (ncis, "drawn"),
        }

    options = {"initial": "empty", "borders": [5.0, 10.0, 20.0]}
    delays = {"soon": 0.2, "drawn": lambda rng, n: rng.exponential(2.0, n)}
    found = compare(
        draw,
        noisy,
        5.0,
        20.0,
        n_runs=3,
        rng=5,
        keep=lambda run: run.window_freshness,
        delays=delays,
        **options,
    )
    for k, stream in enumerate(np.random.default_rng(5).spawn(3)):
        of_pages, of_world, of_policies, of_delays = stream.spawn(4)
        pages = draw(of_pages)
        world = draw_world(pages, 20.0, rng=of_world)
        late = {
            name: world.delayed(delay, rng=of_delays) for name, delay in delays.items()
        }
        chosen = noisy(pages, of_policies)
        worlds = {
            "rates": world,
            "ncis": world,
            "late": late["soon"],
            "later": late["drawn"],
        }
        for name, policy in chosen.items():
            policy = policy[0] if isinstance(policy, tuple) else policy
            np.testing.assert_array_equal(
                found[name][k],
                crawl(worlds[name], policy, 5.0, **options).window_freshness,
            )


def test_an_allocation_stands_for_its_freshness_and_greedy_comes_near_it():
    def with_bound(pages, rng):
        return {
            "bound": allocation.optimal(pages.change_rate, pages.importance, 10.0),
            "greedy": policies.Greedy(pages),
        }

    found = compare(draw, with_bound, 10.0, 200.0, n_runs=3, rng=6)
    for k, stream in enumerate(np.random.default_rng(6).spawn(3)):
        pages = draw(stream.spawn(3)[0])
        assert (
            found["bound"][k]
            == allocation.optimal(pages.change_rate, pages.importance, 10.0).freshness
        )
    np.testing.assert_allclose(found["greedy"], found["bound"], atol=0.02)


def test_keep_says_what_is_kept():
    found = compare(
        draw, greedy_family, 5.0, 20.0, n_runs=2, rng=7, keep=lambda run: run.n_crawls
    )
    assert all(
        count.shape == (2, 15) and (count.sum(axis=1) == 100).all()
        for count in found.values()
    )


def test_pages_of_a_policy_are_those_of_the_world():
    world = world_of(SignalledPages(1.0, 1.0, 0.0, 0.0))
    with pytest.raises(
        ValueError, match=re.escape("pages must hold the pages of the world, 1, got 3")
    ):
        crawl(world, policies.Greedy(SignalledPages(np.ones(3), 1.0, 0.0, 0.0)), 1.0)
    with pytest.raises(
        ValueError,
        match=re.escape("crawl_rate must hold the pages of the world, 1, got 2"),
    ):
        crawl(world, policies.Rates([1.0, 2.0]), 1.0)


def test_shapes_of_delays_and_arrivals():
    pages = SignalledPages(np.ones(3), 1.0, 0.5, 0.1)
    with pytest.raises(
        ValueError, match="signal_delay must give one delay for each of"
    ):
        draw_world(pages, 10.0, signal_delay=lambda rng, n: np.zeros(n + 1), rng=1)
    with pytest.raises(
        ValueError, match="start and stop and pages must have shapes that broadcast"
    ):
        draw_world(pages, 10.0, arrivals=([0.0, 1.0], 10.0), rng=1)
    with pytest.raises(ValueError, match="arrivals must be numbers or of shape"):
        draw_world(pages, 10.0, arrivals=(np.zeros((2, 3)), 10.0), rng=1)
    assert draw_world(
        pages, 10.0, arrivals=(0.0, [np.inf, 10.0, 3.0]), rng=1
    ).stop.tolist() == [np.inf, np.inf, 3.0]
    both = np.array([[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]])
    world = draw_world(pages, 10.0, arrivals=both, rng=1)
    np.testing.assert_array_equal([world.start, world.stop], both)


def test_windows_without_a_page_are_nan_without_a_warning():
    run = crawl(
        world_of(SignalledPages(1.0, 1.0, 0.0, 0.0), start=[3.0]),
        Given([0, 0]),
        1.0,
        borders=[0.0, 1.0],
    )
    assert np.isnan(run.freshness)
    assert np.isnan(run.window_freshness).all()
