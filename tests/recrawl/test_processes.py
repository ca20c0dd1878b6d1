"""Poisson pages: the distribution of simulated bits, and what History accepts."""

import itertools
import re
from functools import partial

import numpy as np
import pytest

from recrawl.science.estimators import mle
from recrawl.science.priors import FakeIntervals
from recrawl.science.processes import History, join
from tests.recrawl.made import observe, simulate_history
from paperlib.processes import poisson_times

# ---------------------------------------------------------------- History


@pytest.mark.parametrize(
    "offsets",
    [[0, 2, 5], [0, 0, 2, 5], [0, 2, 2, 5], [0, 2, 5, 5, 5]],
    ids=["full", "first", "middle", "last"],
)
def test_ragged_history_sums_per_page_also_where_pages_are_empty(offsets):
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    history = History(values, values > 3, np.array(offsets))
    pages = [values[a:b] for a, b in itertools.pairwise(offsets)]
    assert history.shape == (len(pages),)
    np.testing.assert_array_equal(history.n_crawls, [p.size for p in pages])
    np.testing.assert_array_equal(
        history.total(history.interval), [p.sum() for p in pages]
    )
    np.testing.assert_array_equal(
        history.total(history.changed), [(p > 3).sum() for p in pages]
    )


def test_times_of_a_page_do_not_depend_on_the_other_pages():
    history = History([1e9, 1e-8, 1e-8], [1, 0, 1], [0, 1, 3])
    assert history.time.tolist() == [1e9, 1e-8, 2e-8]
    interval = np.random.default_rng(1).lognormal(0.0, 9.0, (40, 25))
    dense = History(interval, interval > 1)
    np.testing.assert_array_equal(dense.time, np.cumsum(interval, axis=-1))
    ragged = History(*dense.ragged())
    np.testing.assert_array_equal(ragged.time, dense.time.ravel())


def test_dense_history_is_the_ragged_one_of_equal_pages():
    interval = np.arange(1.0, 25).reshape(2, 3, 4)
    dense = History(interval, interval % 3 == 0)
    flat, changed, offsets = dense.ragged()
    assert dense.shape == (2, 3)
    np.testing.assert_array_equal(offsets, np.arange(0, 25, 4))
    for values in (dense.interval, dense.changed):
        ragged = History(flat, changed, offsets)
        np.testing.assert_array_equal(
            ragged.total(values.ravel()), dense.total(values).ravel()
        )
    np.testing.assert_array_equal(ragged.n_crawls, dense.n_crawls.ravel())


def test_history_cannot_be_written_to_and_leaves_the_callers_arrays_alone():
    interval, changed = np.ones(3), np.array([0, 1, 1])
    history = History(interval, changed)
    assert history.changed.dtype == bool
    with pytest.raises(ValueError, match="read-only"):
        history.interval[0] = 2.0
    interval[0] = 2.0  # still the caller's to write


NO_PAGE = (
    "offsets must be a flat array of at least two integers beside flat arrays, "
    "got shape"
)
RISE = "offsets must rise from 0 to the number of crawls, 3, got"


@pytest.mark.parametrize(
    ("interval", "changed", "offsets", "message"),
    [
        (
            [1, np.nan],
            [0, 1],
            None,
            "interval must be positive and finite, got nan at index (1,)",
        ),
        (
            [[1, 1], [1, np.inf]],
            [[0, 1], [0, 1]],
            None,
            "interval must be positive and finite, got inf at index (1, 1)",
        ),
        (
            [-0.5, 1],
            [0, 1],
            None,
            "interval must be positive and finite, got -0.5 at index (0,)",
        ),
        (
            [1, 0],
            [0, 1],
            None,
            "interval must be positive and finite, got 0.0 at index (1,)",
        ),
        (["soon"], [1], None, "interval must be positive and finite, got ['soon']"),
        (["1", "2"], [0, 1], None, "interval must be positive and finite, got ['1', "),
        (
            np.ma.array([1.0, 2.0], mask=[False, True]),
            [0, 1],
            None,
            "interval must be positive and finite, got masked_array",
        ),
        ([1, 1], [0, 2], None, "changed must be boolean or 0/1, got 2 at index (1,)"),
        (
            [1, 1],
            [0.5, 1],
            None,
            "changed must be boolean or 0/1, got 0.5 at index (0,)",
        ),
        (
            [1, 1],
            [0, np.nan],
            None,
            "changed must be boolean or 0/1, got nan at index (1,)",
        ),
        ([1, 1], ["yes", "no"], None, "changed must be boolean or 0/1, got dtype <U3"),
        (
            [1, 1, 1],
            [0, 1],
            None,
            "changed must have the shape of interval, (3,), got (2,)",
        ),
        ([], [], None, "interval must hold at least one crawl, got shape (0,)"),
        (
            np.ones((3, 0)),
            np.ones((3, 0), bool),
            None,
            "interval must hold at least one crawl, got shape (3, 0)",
        ),
        (1.0, True, None, "interval must hold at least one crawl, got shape ()"),
        ([1, 1, 1], [0, 1, 1], [0, 2], f"{RISE} [0 2]"),
        ([1, 1, 1], [0, 1, 1], [1, 3], f"{RISE} [1 3]"),
        ([1, 1, 1], [0, 1, 1], [0, 2, 1, 3], f"{RISE} [0 2 1 3]"),
        (
            [1, 1, 1],
            [0, 1, 1],
            [0.0, 3.0],
            f"{NO_PAGE} (2,) and dtype float64 beside shape (3,)",
        ),
        (
            [1, 1, 1],
            [0, 1, 1],
            [3],
            f"{NO_PAGE} (1,) and dtype int64 beside shape (3,)",
        ),
        (
            [[1, 1, 1]],
            [[0, 1, 1]],
            [0, 3],
            f"{NO_PAGE} (2,) and dtype int64 beside shape (1, 3)",
        ),
    ],
)
def test_history_refuses(interval, changed, offsets, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        History(interval, changed, offsets)


# ---------------------------------------------------------------- observe


def test_observe_by_hand():
    # 0 is when the page becomes known: nothing up to then is a change. The
    # change at 2 falls on a crawl, which sees it.
    changes = [-1.0, 0.0, 2.0, 2.5, 2.5, 7.0]
    history = observe(changes, [1.0, 2.0, 3.0, 4.0, 6.5])
    np.testing.assert_array_equal(history.interval, [1.0, 1.0, 1.0, 1.0, 2.5])
    np.testing.assert_array_equal(history.changed, [False, True, True, False, False])
    runs = observe(changes, [[[1.0, 2.0], [3.0, 4.0]], [[6.5, 6.6], [6.9, 7.0]]])
    np.testing.assert_array_equal(
        runs.changed, [[[False, True], [True, False]], [[True, False], [True, True]]]
    )
    assert not observe([], [1.0, 2.0]).changed.any()


# -------------------------------------------------- the distribution of the simulation


@pytest.mark.slow
def test_poisson_times_have_poisson_counts_and_uniform_places():
    rate, horizon, n = 4.0, 5.0, 4000
    draws = [
        poisson_times(rate, horizon, rng=stream)
        for stream in np.random.default_rng(1).spawn(n)
    ]
    assert all(
        (np.diff(t) >= 0).all() and (t > 0).all() and (t <= horizon).all()
        for t in draws
    )
    counts, places = np.array([t.size for t in draws]), np.concatenate(draws) / horizon
    mean = rate * horizon
    assert abs(counts.mean() - mean) < 5 * np.sqrt(mean / n)
    assert abs(counts.var() - mean) < 5 * np.sqrt(
        (mean + 2 * mean**2) / n
    )  # s.e. of the variance of a Poisson sample
    for moment, variance in ((1, 1 / 12), (2, 4 / 45)):  # of U and U^2
        assert abs((places**moment).mean() - 1 / (moment + 1)) < 5 * np.sqrt(
            variance / places.size
        )
    assert poisson_times(0.0, horizon, rng=1).size == 0


@pytest.mark.parametrize(
    ("change_rate", "crawl_rate"), [(5.0, 3.0), (0.01, 3.0), (500.0, 3.0)]
)
def test_share_of_changed_crawls_is_eq_4_of_valuetools20(change_rate, crawl_rate):
    n = 200_000
    history = simulate_history(change_rate, crawl_rate=crawl_rate, n_crawls=n, rng=2)
    q = change_rate / (change_rate + crawl_rate)
    assert abs(history.changed.mean() - q) < 5 * np.sqrt(q * (1 - q) / n)
    assert abs(history.interval.mean() * crawl_rate - 1) < 5 / np.sqrt(n)
    # successive bits are independent
    both = (history.changed[1:] & history.changed[:-1]).mean() - q**2
    assert abs(both) < 5 * np.sqrt(
        q**2 * (1 - q**2) * 3 / n
    )  # at most three times the variance of independent pairs


def test_given_intervals_change_with_their_own_probability():
    n, rate = 100_000, 0.7
    interval = np.array([[0.1], [1.0], [4.0]]) * np.ones(n)
    history = simulate_history(rate, interval=interval, rng=3)
    np.testing.assert_array_equal(history.interval, interval)
    q = 1 - np.exp(-rate * interval[:, 0])
    assert (
        np.abs(history.changed.mean(axis=1) - q) < 5 * np.sqrt(q * (1 - q) / n)
    ).all()


def test_observed_and_simulated_bits_have_the_same_distribution():
    rate, crawl_rate, n = 2.0, 1.5, 150_000
    rng = np.random.default_rng(4)
    crawls = np.cumsum(rng.exponential(1 / crawl_rate, n))
    seen = observe(poisson_times(rate, crawls[-1], rng=rng), crawls)
    drawn = simulate_history(rate, crawl_rate=crawl_rate, n_crawls=n, rng=5)
    for low, high in itertools.pairwise(
        [0, 0.1, 0.3, 0.6, 1.2, np.inf]
    ):  # the joint distribution of interval and bit, bin by bin
        a, b = (
            (h.changed & (low < h.interval) & (h.interval <= high)).mean()
            for h in (seen, drawn)
        )
        assert abs(a - b) < 5 * np.sqrt(2 * max(a, b) / n)
    a, b = ((h.changed[1:] & h.changed[:-1]).mean() for h in (seen, drawn))
    assert abs(a - b) < 5 * np.sqrt(3 * 2 * a / n)


def test_run_i_does_not_depend_on_the_number_of_runs():
    few, many = (
        simulate_history([1.0, 2.0], crawl_rate=3.0, n_crawls=7, n_runs=n, rng=6)
        for n in (2, 5)
    )
    assert many.interval.shape == (5, 2, 7)
    np.testing.assert_array_equal(few.interval, many.interval[:2])
    np.testing.assert_array_equal(few.changed, many.changed[:2])
    assert (
        np.unique(many.interval).size == many.interval.size
    )  # and no two runs or pages share their draws


def test_pages_and_runs_have_the_shapes_promised():
    assert simulate_history(1.0, crawl_rate=2.0, n_crawls=5, rng=0).interval.shape == (
        5,
    )
    assert simulate_history(1.0, interval=2.0, n_crawls=5, rng=0).interval.shape == (5,)
    assert simulate_history(
        [1.0, 2.0, 3.0], crawl_rate=2.0, n_crawls=5, rng=0
    ).interval.shape == (3, 5)
    assert simulate_history(
        [1.0, 2.0, 3.0], interval=np.ones((3, 5)), n_runs=2, rng=0
    ).interval.shape == (2, 3, 5)
    assert not simulate_history(0.0, crawl_rate=2.0, n_crawls=50, rng=0).changed.any()
    assert simulate_history(1e12, crawl_rate=1e-12, n_crawls=50, rng=0).changed.all()


simulate = partial(simulate_history, rng=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: poisson_times(-1.0, 5),
            "rate must be non-negative and finite, got -1.0",
        ),
        (
            lambda: poisson_times(np.nan, 5),
            "rate must be non-negative and finite, got nan",
        ),
        (
            lambda: poisson_times([1.0, 2.0], 5),
            "rate must be a single number, got shape (2,)",
        ),
        (lambda: poisson_times(1.0, 0), "horizon must be positive and finite, got 0.0"),
        (
            lambda: observe([2.0, 1.0], [3.0]),
            "change_times must be flat and sorted, got shape (2,)",
        ),
        (
            lambda: observe([1.0, np.nan], [3.0]),
            "change_times must be finite, got nan at index (1,)",
        ),
        (
            lambda: observe([1.0], [2.0, 2.0]),
            "crawl_times must be rising strictly, got 2.0 at index (1,)",
        ),
        (
            lambda: observe([1.0], [[1.0, 2.0], [2.0, 1.5]]),
            "crawl_times must be rising strictly, got 1.5 at index (1, 1)",
        ),
        (
            lambda: observe([1.0], [0.0, 2.0]),
            "crawl_times must be positive and finite, got 0.0 at index (0,)",
        ),
        (
            lambda: observe([1.0], 2.0),
            "crawl_times must be an array, got the single number 2.0",
        ),
        (
            lambda: observe([1.0], []),
            "interval must hold at least one crawl, got shape (0,)",
        ),
        (
            lambda: simulate(-1.0, crawl_rate=1, n_crawls=3),
            "change_rate must be non-negative and finite, got -1.0",
        ),
        (
            lambda: simulate([1, np.inf], crawl_rate=1, n_crawls=3),
            "change_rate must be non-negative and finite, got inf at index (1,)",
        ),
        (
            lambda: simulate(1.0, crawl_rate=0.0, n_crawls=3),
            "crawl_rate must be positive and finite, got 0.0",
        ),
        (
            lambda: simulate(1.0, interval=[1.0, 0.0]),
            "interval must be positive and finite, got 0.0 at index (1,)",
        ),
        (
            lambda: simulate([1.0, 2.0, 3.0], crawl_rate=[1.0, 2.0], n_crawls=3),
            "change_rate and crawl_rate and false_change must have shapes that "
            "broadcast",
        ),
        (
            lambda: simulate(1.0, n_crawls=3),
            "exactly one of crawl_rate and interval must be given",
        ),
        (
            lambda: simulate(1.0, crawl_rate=1, interval=1, n_crawls=3),
            "exactly one of crawl_rate and interval must be given",
        ),
        (
            lambda: simulate(1.0, crawl_rate=1),
            "n_crawls must be a positive integer, got None",
        ),
        (
            lambda: simulate(1.0, interval=2.0),
            "n_crawls must be a positive integer, got None",
        ),
        (
            lambda: simulate(1.0, crawl_rate=1, n_crawls=0),
            "n_crawls must be a positive integer, got 0",
        ),
        (
            lambda: simulate(1.0, crawl_rate=1, n_crawls=True),
            "n_crawls must be a positive integer, got True",
        ),
        (
            lambda: simulate(1.0, crawl_rate=1, n_crawls=2.5),
            "n_crawls must be a positive integer, got 2.5",
        ),
        (
            lambda: simulate(1.0, crawl_rate=1, n_crawls=3, n_runs=0),
            "n_runs must be a positive integer, got 0",
        ),
        (
            lambda: simulate(1.0, interval=[1, 2, 3], n_crawls=4),
            "n_crawls must be the length of interval, 3, got 4",
        ),
    ],
)
def test_processes_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# ---------------------------------------------------------------- join


def filed(sizes, seed):
    rng = np.random.default_rng(seed)
    return History(
        rng.exponential(size=sum(sizes)),
        rng.random(sum(sizes)) < 0.5,
        np.append(0, np.cumsum(sizes)),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([2, 0, 3, 1], [1, 4, 0, 2]),
        ([0, 5], [3, 0]),
        ([3], [2]),
        ([0, 1, 0], [0, 0, 7]),
    ],
)
def test_join_appends_page_by_page(first, second):
    a, b = filed(first, 8), filed(second, 9)
    both = join(a, b)
    np.testing.assert_array_equal(both.n_crawls, np.add(first, second))
    for name in ("interval", "changed"):
        parts = [np.split(getattr(h, name), h.offsets[1:-1]) for h in (a, b, both)]
        for one, other, together in zip(*parts, strict=True):
            np.testing.assert_array_equal(together, np.append(one, other))
    c = filed(first, 10)
    for left, right in zip(
        join(join(a, b), c).ragged(), join(a, join(b, c)).ragged(), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_join_takes_dense_histories_too():
    both = simulate_history([1.0, 2.0, 3.0], crawl_rate=2.0, n_crawls=9, rng=11)
    first, second = (
        History(both.interval[:, k], both.changed[:, k])
        for k in (slice(0, 4), slice(4, 9))
    )
    for got, expected in zip(join(first, second).ragged(), both.ragged(), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(
        join(first, History(*second.ragged())).interval, both.interval.ravel()
    )


def test_join_refuses_other_pages():
    with pytest.raises(
        ValueError,
        match=re.escape("second must hold as many pages as first, (2,), got (3,)"),
    ):
        join(filed([1, 2], 12), filed([1, 2, 3], 13))


# ----------------------------------------------------------- histories without a crawl


def test_a_ragged_history_may_hold_no_crawl_at_all():
    nothing = History(np.empty(0), np.empty(0, dtype=bool), [0, 0, 0])
    assert nothing.shape == (2,)
    np.testing.assert_array_equal(nothing.n_crawls, [0, 0])
    np.testing.assert_array_equal(nothing.total(nothing.interval), [0.0, 0.0])
    np.testing.assert_array_equal(mle(nothing), [np.nan, np.nan])
    prior = FakeIntervals(1.0, 2.0)
    np.testing.assert_allclose(prior.estimate(nothing), np.log1p(1.0 / 2.0))
    some = History(np.array([1.0, 2.0]), np.array([True, False]), [0, 0, 2])
    for both in (join(nothing, some), join(some, nothing)):
        for name in ("interval", "changed", "offsets"):
            np.testing.assert_array_equal(getattr(both, name), getattr(some, name))
    with pytest.raises(
        ValueError, match=r"interval must hold at least one crawl, got shape \(0,\)"
    ):
        History(np.empty(0), np.empty(0, dtype=bool))
    with pytest.raises(
        ValueError, match=r"interval must hold at least one crawl, got shape \(3, 0\)"
    ):
        History(np.empty((3, 0)), np.empty((3, 0), dtype=bool))
