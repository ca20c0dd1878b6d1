"""Histories, what crawls of given changes see, and the distribution of simulations."""

import itertools
import os
import re
import threading
from functools import partial

import numpy as np
import pytest

from paperlib.errors import ArgumentError
from paperlib.processes import (
    History,
    change_probability,
    observe,
    replicate,
    simulate_history,
)
from tests import plain


def binomial_error(probability, n):
    """Five standard errors of a share of n independent bits."""
    return 5 * np.sqrt(probability * (1 - probability) / n)


def same(a, b):
    """Whether two histories are equal in the ragged form."""
    return all(map(np.array_equal, a.ragged(), b.ragged()))


@pytest.mark.parametrize(
    "offsets",
    [[0, 2, 5], [0, 0, 2, 5], [0, 2, 2, 5], [0, 2, 5, 5, 5], np.uint32([0, 5])],
)
def test_ragged_history_sums_over_the_crawls_of_each_page(offsets):
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    history = History(values, values > 3, offsets)
    pages = [values[a:b] for a, b in itertools.pairwise(offsets)]
    assert history.shape == (len(pages),)
    assert history.n_crawls.tolist() == [page.size for page in pages]
    assert history.total(values).tolist() == [page.sum() for page in pages]
    assert history.total(values > 3).tolist() == [(page > 3).sum() for page in pages]
    numbers = np.arange(len(pages))
    repeated = np.repeat(numbers, [page.size for page in pages])
    np.testing.assert_array_equal(history.per_crawl(numbers), repeated)
    np.testing.assert_array_equal(history.per_crawl(7), np.full(5, 7))


def test_dense_history_is_the_ragged_one_of_equal_pages():
    interval = np.arange(1.0, 25).reshape(2, 3, 4)
    dense = History(interval, interval % 3 == 0)
    ragged = History(*dense.ragged())
    assert dense.shape == (2, 3)
    assert ragged.offsets.tolist() == [0, 4, 8, 12, 16, 20, 24]
    assert dense.n_crawls.tolist() == [[4] * 3] * 2
    for values in (dense.interval, dense.changed):
        totals = ragged.total(values.ravel())
        np.testing.assert_array_equal(dense.by_page(totals), dense.total(values))
    numbers = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(
        (dense.per_crawl(numbers) * np.ones(4)).ravel(), ragged.per_crawl(range(6))
    )
    first = dense.prefix(3)
    np.testing.assert_array_equal(first.interval, interval[..., :3])
    np.testing.assert_array_equal(first.changed, dense.changed[..., :3])


@pytest.mark.parametrize(
    "nothing",
    [History([], [], [0, 0, 0]), History(np.ones((2, 0)), np.ones((2, 0)))],
)
def test_history_may_hold_no_crawl_at_all(nothing):
    assert nothing.shape == (2,)
    zeros = nothing.total(nothing.interval)
    assert nothing.n_crawls.tolist() == zeros.tolist() == [0, 0]
    some = History([1.0, 2.0], [True, False], [0, 0, 2])
    assert same(nothing.join(some), some)
    assert same(some.join(nothing), some)


SHAPE = "interval and changed must be arrays of one shape, got"
RISE = "offsets must be integers that rise from 0 to"
FLAT = f"{RISE} 3, beside flat arrays, got"
POSITIVE = "interval must be positive and finite, got"
THREE = [1, 1, 1], [0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, np.nan], [0, 1]), f"{POSITIVE} nan at index (1,)"),
        (([[1, 1], [1, np.inf]], [[0, 1]] * 2), f"{POSITIVE} inf at index (1, 1)"),
        (([-0.5, 1], [0, 1]), f"{POSITIVE} -0.5 at index (0,)"),
        (([1, 0], [0, 1]), f"{POSITIVE} 0.0 at index (1,)"),
        ((["2", 1], [0, 1]), "interval must be numbers, got ['2', 1]"),
        ((np.array([1, 2], "M8[D]"), [0, 1]), "interval must be numbers, got array(["),
        ((np.array([1, 2], "m8[h]"), [0, 1]), "interval must be numbers, got array(["),
        (([1, 1], [0, 2]), "changed must be boolean, or 0 and 1, got 2 at index (1,)"),
        (([1, 1, 1], [0, 1]), f"{SHAPE} (3,) and (2,)"),
        ((1.0, True), f"{SHAPE} () and ()"),
        (
            ([[1, 1], [1]], [[0, 1], [1]]),
            "interval must be rectangular, got [[1, 1], [1",
        ),
        (([[1], [1]], [[0], [0, 1]]), "changed must be rectangular, got [[0], [0, 1]]"),
        ((*THREE, [[0], [0, 3]]), "offsets must be rectangular, got [[0], [0, 3]]"),
        ((*THREE, [0, 2]), f"{FLAT} [0 2]"),
        ((*THREE, [1, 3]), f"{FLAT} [1 3]"),
        ((*THREE, [0, 2, 1, 3]), f"{FLAT} [0 2 1 3]"),
        (([[1, 1]], [[0, 1]], [0, 2]), f"{RISE} 2, beside flat arrays, got [0 2]"),
        ((*THREE, [0.0, 3.0]), f"{FLAT} [0. 3.]"),
        ((*THREE, [[0, 3]]), f"{FLAT} [[0 3]]"),
        (([], [], np.arange(0)), f"{RISE} 0, beside flat arrays, got []"),
    ],
)
def test_history_refuses(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        History(*arguments)


def ragged(sizes, seed):
    """A random history of pages of these numbers of crawls."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    bits = rng.random(n) < 0.5
    return History(rng.exponential(size=n), bits, np.append(0, np.cumsum(sizes)))


@pytest.mark.parametrize(
    ("first", "second"),
    [([2, 0, 3, 1], [1, 4, 0, 2]), ([3], [2]), ([0, 1, 0], [0, 0, 7])],
)
def test_join_appends_page_by_page(first, second):
    a, b, c = ragged(first, 8), ragged(second, 9), ragged(first, 10)
    both = a.join(b)
    for name in ("interval", "changed"):
        parts = [np.split(getattr(h, name), h.offsets[1:-1]) for h in (a, b, both)]
        for one, other, together in zip(*parts, strict=True):
            np.testing.assert_array_equal(together, np.append(one, other))
    assert same(both.join(c), a.join(b.join(c)))
    dense = simulate_history([1.0, 2.0, 3.0], crawl_rate=2.0, n_crawls=9, rng=11)
    rest = History(dense.interval[:, 4:], dense.changed[:, 4:])
    for second in (rest, History(*rest.ragged())):
        assert same(dense.prefix(4).join(second), dense)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (ragged([1, 2, 3], 13), "later must be of shape (2,), got (3,)"),
        (ragged([1], 13), "later must be of shape (2,), got (1,)"),
        ([1.0], "later must be a History, got <class 'list'>"),
    ],
)
def test_join_refuses_other_pages(later, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        ragged([1, 2], 12).join(later)


def test_join_does_not_check_again_what_two_histories_held(monkeypatch):
    first, second = ragged([2, 1], 8), ragged([0, 3], 9)

    def refuse(self):
        raise AssertionError

    monkeypatch.setattr(History, "__post_init__", refuse)
    assert first.join(second).n_crawls.tolist() == [2, 4]
    assert first.offsets.tolist() == [0, 2, 3]


def test_observe_by_hand():
    # 0 is when the page becomes known: nothing up to then is a change. The
    # change at 2 falls on a crawl, which sees it.
    changes = [-1.0, 0.0, 2.0, 2.5, 2.5, 7.0]
    history = observe(changes, [1.0, 2.0, 3.0, 4.0, 6.5])
    assert history.interval.tolist() == [1.0, 1.0, 1.0, 1.0, 2.5]
    assert history.changed.tolist() == [False, True, True, False, False]
    runs = observe(changes, [[[1.0, 2.0], [3.0, 4.0]], [[6.5, 6.6], [6.9, 7.0]]])
    expected = [[[False, True], [True, False]], [[True, False], [True, True]]]
    assert runs.changed.tolist() == expected
    assert not observe([], [1.0, 2.0]).changed.any()


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("interval", plain.predicted_probability),
        ("crawl_rate", plain.predicted_probability_poisson),
    ],
)
def test_the_probability_of_a_change_is_the_plain_one(argument, expected):
    rate = np.geomspace(1e-3, 1e3, 7)[:, np.newaxis]
    other = np.geomspace(1e-2, 1e2, 5)
    found = change_probability(rate, **{argument: other})
    # the plain difference cancels at short intervals
    np.testing.assert_allclose(found, expected(rate, other), rtol=1e-10)
    np.testing.assert_array_equal(change_probability(0.0, **{argument: other}), 0.0)


def test_a_change_within_a_very_short_interval_keeps_its_digits():
    found = change_probability([1e-12, 3.0], interval=[1e-9, 1e-20])
    np.testing.assert_allclose(found, [1e-21, 3e-20], rtol=1e-14)


@pytest.mark.parametrize("change_rate", [0.01, 5.0, 500.0])
def test_share_of_changed_poisson_crawls(change_rate):
    """Eq. (4) of Avrachenkov, Patil, Thoppe (2020), and independent bits."""
    n, crawl_rate = 200_000, 3.0
    history = simulate_history(change_rate, crawl_rate=crawl_rate, n_crawls=n, rng=2)
    q = change_rate / (change_rate + crawl_rate)
    assert abs(history.changed.mean() - q) < binomial_error(q, n)
    assert abs(history.interval.mean() * crawl_rate - 1) < 5 / np.sqrt(n)
    both = (history.changed[1:] & history.changed[:-1]).mean()
    # pairs that overlap: at most three times the variance of separate ones
    assert abs(both - q**2) < np.sqrt(3) * binomial_error(q**2, n)


def test_given_intervals_change_with_their_own_probability():
    n, rate = 100_000, 0.7
    interval = np.array([[0.1], [1.0], [4.0]]) * np.ones(n)
    history = simulate_history(rate, interval=interval, rng=3)
    np.testing.assert_array_equal(history.interval, interval)
    q = 1 - np.exp(-rate * interval[:, 0])
    assert (np.abs(history.changed.mean(axis=1) - q) < binomial_error(q, n)).all()


@pytest.mark.parametrize(
    ("rate", "options", "shape"),
    [
        (1.0, {"crawl_rate": 2.0, "n_crawls": 5}, (5,)),
        (1.0, {"interval": 2.0, "n_crawls": 5}, (5,)),
        ([1.0, 2.0], {"interval": [1.0, 2.0, 3.0]}, (2, 3)),
        ([[1.0], [2.0]], {"crawl_rate": [1.0, 2.0, 3.0], "n_crawls": 4}, (2, 3, 4)),
        ([1.0, 2.0, 3.0], {"interval": np.ones((3, 5)), "n_runs": 2}, (2, 3, 5)),
    ],
)
def test_shapes(rate, options, shape):
    assert simulate_history(rate, **options, rng=0).interval.shape == shape


SIMULATIONS = {
    "poisson": partial(simulate_history, [0.3, 2.0], crawl_rate=3.0, n_crawls=12),
    "given": partial(simulate_history, [0.3, 2.0], interval=2.0, n_crawls=12),
}


def test_what_is_replicated_depends_on_the_seed_and_its_number_alone():
    five = replicate(lambda rng: rng.random(), 5, rng=1)
    assert replicate(lambda rng: rng.random(), 3, rng=1) == five[:3]
    assert len({*five, *replicate(lambda rng: rng.random(), 5, rng=2)}) == 10


def test_runs_in_threads_give_what_a_plain_loop_gives():
    def run(rng):
        return rng.random(1000).cumsum()

    plain_loop = [run(stream) for stream in np.random.default_rng(4).spawn(50)]
    np.testing.assert_array_equal(replicate(run, 50, rng=4), plain_loop)


def test_as_many_runs_go_on_at_a_time_as_there_are_cores_and_keep_their_order(
    monkeypatch,
):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    values = [stream.random() for stream in np.random.default_rng(4).spawn(3)]
    together = threading.Barrier(3)  # which three pass together, or none
    ended = [threading.Event() for _ in range(4)]
    ended[3].set()

    def run(rng):
        value = rng.random()
        together.wait(timeout=10)
        number = values.index(value)
        ended[number + 1].wait(timeout=10)  # the last run ends first
        ended[number].set()
        return value

    assert replicate(run, 3, rng=4) == values


def test_an_error_of_a_run_is_raised():
    third = np.random.default_rng(4).spawn(3)[2].random()

    def run(rng):
        if rng.random() == third:
            raise ArithmeticError("the third run")

    with pytest.raises(ArithmeticError, match="the third run"):
        replicate(run, 5, rng=4)
    assert replicate(run, 2, rng=4) == [None, None]


@pytest.mark.parametrize("simulate", SIMULATIONS.values(), ids=SIMULATIONS)
def test_run_i_depends_on_the_seed_and_i_alone(simulate):
    few, many = (simulate(n_runs=n, rng=6) for n in (2, 5))
    assert same(few, History(many.interval[:2], many.changed[:2]))
    for i, stream in enumerate(np.random.default_rng(6).spawn(5)):
        alone = simulate(n_runs=None, rng=stream)
        assert same(alone, History(many.interval[i], many.changed[i]))


def test_another_unit_of_time_changes_the_intervals_alone():
    days = SIMULATIONS["poisson"](rng=1)
    rates = [0.3 / 24, 2.0 / 24]
    hours = simulate_history(rates, crawl_rate=3.0 / 24, n_crawls=12, rng=1)
    np.testing.assert_allclose(hours.interval, 24 * days.interval, rtol=1e-14)
    np.testing.assert_array_equal(hours.changed, days.changed)


given, poisson = partial(simulate_history, 1.0), partial(simulate_history, 1.0)
chance, runs = change_probability, partial(replicate, np.ones)
GOOD = {
    observe: {"change_times": [1.0], "crawl_times": [3.0]},
    poisson: {"crawl_rate": 1.0},
    given: {"interval": 1.0},
    chance: {"change_rate": 1.0, "interval": 1.0},
    runs: {},
}
ONE_OF = "exactly one of crawl_rate and interval must be given"
FIT = "shape mismatch: objects cannot be broadcast to a single shape"


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (observe, {"change_times": [2, 1]}, "change_times must be sorted, got 1.0"),
        (observe, {"change_times": [np.nan]}, "change_times must be sorted, got nan"),
        (observe, {"crawl_times": [2, 2]}, f"{POSITIVE} 0.0 at index (1,)"),
        (observe, {"crawl_times": [[1], [-2]]}, f"{POSITIVE} -2.0 at index (1, 0)"),
        (poisson, {"crawl_rate": 0.0}, "crawl_rate must be positive and finite, got 0"),
        (poisson, {"crawl_rate": None}, ONE_OF),
        (poisson, {"interval": 1.0}, ONE_OF),
        (given, {"interval": [1.0, 0.0]}, f"{POSITIVE} 0.0 at index (1,)"),
        (given, {"interval": [1, 2, 3], "n_crawls": 4}, FIT),
        (chance, {"change_rate": [1, -1]}, "change_rate must be non-negative and"),
        (chance, {"interval": [1.0, -1.0]}, "interval must be"),
        (chance, {"interval": None, "crawl_rate": np.nan}, "crawl_rate must be"),
        (runs, {"n_runs": 0}, "n_runs must be an integer of at least 1, got 0"),
    ],
)
def test_processes_refuse(function, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(**GOOD[function] | arguments)
