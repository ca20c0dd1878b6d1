"""Poisson pages: the distribution of simulated bits, and what History accepts."""

import itertools
import re
from functools import partial

import numpy as np
import pytest

from recrawl.science.estimators import LLN, DegenerateHistoryWarning, mle
from recrawl.science.priors import FakeIntervals
from recrawl.science.processes import (
    History,
    join,
    observe,
    poisson_times,
    recrawl,
    simulate_adaptive_history,
    simulate_history,
    simulate_sequential_history,
)

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


def test_recrawl_draws_uniform_crawl_times_of_one_page():
    changes, horizon, n, runs = np.array([1.0, 2.5, 7.0]), 10.0, 4, 5_000
    history = recrawl(changes, horizon, n_crawls=n, n_runs=runs, rng=7)
    times = np.cumsum(history.interval, axis=-1)
    assert times.shape == (runs, n)
    assert (times[:, -1] <= horizon * (1 + 1e-15)).all()
    # order statistics of n uniform times: means i / (n + 1), 5 standard errors
    i = np.arange(1, n + 1)
    sd = horizon * np.sqrt(i * (n + 1 - i) / (n + 1) ** 2 / (n + 2))
    assert (
        np.abs(times.mean(axis=0) - horizon * i / (n + 1)) < 5 * sd / np.sqrt(runs)
    ).all()
    for row in (0, 1, 2):
        np.testing.assert_array_equal(
            history.changed[row], observe(changes, times[row]).changed
        )
    np.testing.assert_array_equal(
        recrawl(changes, horizon, n_crawls=n, n_runs=2, rng=7).interval,
        history.interval[:2],
    )


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
            lambda: recrawl([1.0], -1.0, n_crawls=2, n_runs=2),
            "horizon must be positive and finite, got -1.0",
        ),
        (
            lambda: recrawl([1.0], 1.0, n_crawls=0, n_runs=2),
            "n_crawls must be a positive integer, got 0",
        ),
        (
            lambda: recrawl([1.0], 1.0, n_crawls=2, n_runs=-1),
            "n_runs must be a positive integer, got -1",
        ),
        (
            lambda: recrawl([2.0, 1.0], 1.0, n_crawls=2, n_runs=1),
            "change_times must be flat and sorted, got shape (2,)",
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


# ------------------------------------------------------ crawls that depend on the bits

ADAPTIVE = {"initial": 1.0, "shrink": 0.8, "grow": 1.2, "limits": (0.1, 8.0)}


def test_adaptive_intervals_follow_the_bit_just_seen():
    history = simulate_adaptive_history(
        [0.0, 0.2, 0.7, 1e9], **ADAPTIVE, n_crawls=300, n_runs=5, rng=1
    )
    before, bit, after = (
        history.interval[..., :-1],
        history.changed[..., :-1],
        history.interval[..., 1:],
    )
    np.testing.assert_allclose(
        after, np.clip(before * np.where(bit, 0.8, 1.2), 0.1, 8.0), rtol=1e-15
    )
    assert (history.interval[..., 0] == 1.0).all()
    assert history.interval.min() == 0.1
    assert history.interval.max() == 8.0
    assert not history.changed[:, 0].any()
    assert (history.interval[:, 0, -1] == 8.0).all()
    assert history.changed[:, 3].all()
    assert (history.interval[:, 3, -1] == 0.1).all()


def test_adaptive_bits_given_the_interval_are_those_of_a_poisson_page():
    rates = np.array([[0.15], [0.5], [0.9]])
    history = simulate_adaptive_history(
        rates[:, 0],
        initial=2.0,
        shrink=0.5,
        grow=2.0,
        limits=(0.25, 8.0),
        n_crawls=400,
        n_runs=400,
        rng=2,
    )
    seen = 0
    for interval in 0.25 * 2.0 ** np.arange(
        6
    ):  # with factors of 2 these are all there are
        here = (history.interval == interval).swapaxes(0, 1).reshape(3, -1)
        n, hits = (
            here.sum(axis=1),
            (history.changed.swapaxes(0, 1).reshape(3, -1) & here).sum(axis=1),
        )
        q = -np.expm1(-rates[:, 0] * interval)
        # given the interval the past does not matter: hits - n q is a
        # martingale, of variance E[n] q (1 - q)
        assert (np.abs(hits - n * q) < 5 * np.sqrt(n * q * (1 - q))).all()
        seen += n.sum()
    assert seen == history.changed.size
    # nor does the bit before: 0.5 is reached from 1 by a change and from 0.25 by none
    q = -np.expm1(-rates[1, 0] * 0.5)
    after = (history.interval[:, 1, 1:] == 0.5)[..., np.newaxis] & (
        history.changed[:, 1, :-1, np.newaxis] == [True, False]
    )
    hits, n = (
        (history.changed[:, 1, 1:, np.newaxis] & after).sum(axis=(0, 1)),
        after.sum(axis=(0, 1)),
    )
    assert (n > 1000).all()
    assert (np.abs(hits - n * q) < 5 * np.sqrt(n * q * (1 - q))).all()


def test_adaptive_with_factors_of_one_is_crawling_at_fixed_intervals():
    for n_runs in (None, 4):
        options = {"n_crawls": 50, "n_runs": n_runs, "rng": 3}
        adaptive = simulate_adaptive_history(
            [0.3, 2.0], initial=0.7, shrink=1.0, grow=1.0, limits=(0.7, 0.7), **options
        )
        fixed = simulate_history([0.3, 2.0], interval=0.7, **options)
        np.testing.assert_array_equal(adaptive.interval, fixed.interval)
        np.testing.assert_array_equal(adaptive.changed, fixed.changed)


def test_adaptive_shapes_and_runs():
    few, many = (
        simulate_adaptive_history([0.3, 2.0], **ADAPTIVE, n_crawls=30, n_runs=n, rng=4)
        for n in (2, 5)
    )
    assert many.interval.shape == many.changed.shape == (5, 2, 30)
    np.testing.assert_array_equal(few.interval, many.interval[:2])
    np.testing.assert_array_equal(few.changed, many.changed[:2])
    assert len({run.tobytes() for run in many.changed.reshape(10, 30)}) == 10, (
        "no two runs or pages share their draws"
    )
    assert simulate_adaptive_history(1.0, **ADAPTIVE, n_crawls=7, rng=0).shape == ()
    started = simulate_adaptive_history(
        1.0, **(ADAPTIVE | {"initial": [[1.0], [2.0]]}), n_crawls=7, rng=0
    )
    assert started.interval.shape == (2, 1, 7)
    np.testing.assert_array_equal(started.interval[..., 0], [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"change_rate": [0.1, -1.0]},
            "change_rate must be non-negative and finite, got -1.0 at index (1,)",
        ),
        ({"initial": 0.0}, "initial must be positive and finite, got 0.0"),
        (
            {"initial": [1.0, 9.0]},
            "initial must be within limits, 0.1 to 8, got 9.0 at index (1,)",
        ),
        ({"initial": 0.05}, "initial must be within limits, 0.1 to 8, got 0.05"),
        ({"shrink": 1.5}, "shrink must be at most 1, got 1.5"),
        ({"shrink": 0.0}, "shrink must be positive and finite, got 0.0"),
        ({"shrink": [0.5, 0.8]}, "shrink must be a single number, got shape (2,)"),
        ({"grow": 0.9}, "grow must be at least 1, got 0.9"),
        ({"grow": np.inf}, "grow must be positive and finite, got inf"),
        (
            {"limits": (8.0, 0.1)},
            "limits must be two numbers, the lower one first, got (8.0, 0.1)",
        ),
        ({"limits": 8.0}, "limits must be two numbers, the lower one first, got 8.0"),
        (
            {"limits": (0.0, 8.0)},
            "limits must be positive and finite, got 0.0 at index (0,)",
        ),
        ({"n_crawls": 0}, "n_crawls must be a positive integer, got 0"),
        ({"n_runs": 0}, "n_runs must be a positive integer, got 0"),
        (
            {"change_rate": [1.0, 2.0], "initial": [1.0, 2.0, 3.0]},
            "change_rate and initial must have shapes that broadcast",
        ),
    ],
)
def test_adaptive_refuses(bad, message):
    options = {"change_rate": 1.0, **ADAPTIVE, "n_crawls": 5} | bad
    with pytest.raises(ValueError, match=re.escape(message)):
        simulate_adaptive_history(options.pop("change_rate"), **options, rng=0)


# ---------------------------------------- crawls at a multiple of the estimated period

SEQUENTIAL = {"initial": 2.0, "limits": (0.1, 50.0), "n_crawls": 12}


@pytest.mark.parametrize(
    "estimate",
    [partial(mle, edges="substitute"), FakeIntervals(1.0, 2.0).estimate],
    ids=["mle", "pseudo-observations"],
)
def test_sequential_intervals_follow_the_estimates(estimate):
    history, estimates = simulate_sequential_history(
        [0.05, 0.5, 3.0], estimate, factor=0.8, **SEQUENTIAL, n_runs=4, rng=1
    )
    assert history.shape == (4, 3)
    np.testing.assert_allclose(
        history.interval[..., 1:],
        np.clip(0.8 / estimates[..., :-1], 0.1, 50.0),
        rtol=1e-15,
    )
    for k in range(12):
        so_far = History(history.interval[..., : k + 1], history.changed[..., : k + 1])
        np.testing.assert_allclose(estimates[..., k], estimate(so_far), rtol=1e-12)


def test_sequential_takes_the_limits_where_there_is_no_estimate():
    """An estimate of 0 asks for the longest interval, inf for the shortest."""
    with pytest.warns(DegenerateHistoryWarning):
        history, estimates = simulate_sequential_history(
            [0.0, 1e9], mle, **SEQUENTIAL, rng=2
        )
    np.testing.assert_array_equal(estimates, [[0.0] * 12, [np.inf] * 12])
    np.testing.assert_array_equal(history.interval[:, 1:], [[50.0] * 11, [0.1] * 11])


def test_sequential_bits_are_those_of_a_poisson_page():
    """Whatever chose the intervals, bits minus probabilities are a martingale."""
    history, _ = simulate_sequential_history(
        np.full(20_000, 0.3), FakeIntervals(1.0, 2.0).estimate, **SEQUENTIAL, rng=3
    )
    q = -np.expm1(-0.3 * history.interval)
    assert (
        np.abs((history.changed - q).sum(axis=0))
        < 5 * np.sqrt((q * (1 - q)).sum(axis=0))
    ).all()


def test_sequential_with_an_online_estimator_leaves_it_alone():
    online = LLN(crawl_rate=1.0)
    history, estimates = simulate_sequential_history(
        [0.3, 2.0], online, **SEQUENTIAL, n_runs=3, rng=4
    )
    again = LLN(crawl_rate=1.0)
    expected = [again.update(history.changed[..., k]) for k in range(12)]
    np.testing.assert_array_equal(estimates, np.stack(expected, axis=-1))
    assert online.estimate == 0.0


def test_sequential_runs_and_draws_are_those_of_adaptive():
    few, many = (
        simulate_sequential_history(
            [0.3, 2.0], FakeIntervals(1.0, 2.0).estimate, **SEQUENTIAL, n_runs=n, rng=5
        )[0]
        for n in (2, 5)
    )
    np.testing.assert_array_equal(few.interval, many.interval[:2])
    constant, _ = simulate_sequential_history(
        [0.3, 2.0],
        lambda history: np.full(history.shape, 0.5),
        **SEQUENTIAL,
        n_runs=2,
        rng=5,
    )
    fixed = simulate_history([0.3, 2.0], interval=2.0, n_crawls=12, n_runs=2, rng=5)
    np.testing.assert_array_equal(constant.interval, fixed.interval)
    np.testing.assert_array_equal(constant.changed, fixed.changed)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"factor": 0.0}, "factor must be positive and finite, got 0.0"),
        ({"factor": np.inf}, "factor must be positive and finite, got inf"),
        ({"initial": 60.0}, "initial must be within limits, 0.1 to 50, got 60.0"),
        (
            {"limits": (5.0, 1.0)},
            "limits must be two numbers, the lower one first, got (5.0, 1.0)",
        ),
        (
            {"limits": (0.1, np.inf)},
            "limits must be positive and finite, got inf at index (1,)",
        ),
        (
            {"estimate": lambda history: np.full(history.shape, np.nan)},
            "estimate must give a non-negative change rate for each page, shape ()",
        ),
        (
            {"estimate": lambda history: -1.0},
            "estimate must give a non-negative change rate for each page, shape "
            "(), got -1.0",
        ),
        (
            {"estimate": lambda history: [1.0, 2.0]},
            "estimate must give a non-negative change rate for each page, shape "
            "(), got [1. 2.]",
        ),
    ],
)
def test_sequential_refuses(bad, message):
    options = {
        "change_rate": 1.0,
        "estimate": FakeIntervals(1.0, 1.0).estimate,
        **SEQUENTIAL,
    } | bad
    with pytest.raises(ValueError, match=re.escape(message)):
        simulate_sequential_history(
            options.pop("change_rate"), options.pop("estimate"), **options, rng=0
        )


# ----------------------------------------------------------- histories without a crawl


def test_a_ragged_history_may_hold_no_crawl_at_all():
    nothing = History(np.empty(0), np.empty(0, dtype=bool), [0, 0, 0])
    assert nothing.shape == (2,)
    np.testing.assert_array_equal(nothing.n_crawls, [0, 0])
    np.testing.assert_array_equal(nothing.total(nothing.interval), [0.0, 0.0])
    np.testing.assert_array_equal(mle(nothing), [np.nan, np.nan])
    prior = FakeIntervals(1.0, 2.0)
    np.testing.assert_allclose(prior.estimate(nothing), prior.mode)
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
