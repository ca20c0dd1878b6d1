"""Schedules: exact regular times, the distribution of Poisson times, fair shares."""

import re

import numpy as np
import pytest
from scipy import stats

from paperlib import schedules
from tests import plain

both = pytest.mark.parametrize("schedule", [schedules.poisson, schedules.regular])


def by_page(time, offsets):
    return np.split(time, offsets[1:-1])


# ------------------------------ crawl times


@both
@pytest.mark.parametrize("duration", [1e-3, 7.0, 1e6])
def test_times_rise_within_the_duration(schedule, duration):
    rate = np.random.default_rng(1).lognormal(0, 1, 50) * 10 / duration
    rate[[0, 17, 18, 49]] = 0.0
    time, offsets = schedule(rate, duration, rng=2)
    assert offsets.shape == (51,)
    assert offsets[-1] == time.size > 300
    for r, t in zip(rate, by_page(time, offsets), strict=True):
        assert r > 0 or t.size == 0
        assert ((t > 0) & (t <= duration)).all()
        assert (np.diff(t) > 0).all()
    assert schedule(0.0, duration)[1].tolist() == [0, 0]


@both
def test_the_mean_number_is_rate_times_duration(schedule):
    rate, n = np.array([0.07, 0.3, 1.0, 4.9]), 4000
    _, offsets = schedule(np.repeat(rate, n), 3.0, rng=4)
    count = np.diff(offsets).reshape(4, n)
    if schedule is schedules.regular:
        assert (np.abs(count - 3 * rate[:, np.newaxis]) < 1).all()
        sd = count.std(axis=1)
    else:
        sd = np.sqrt(3 * rate)
    assert (np.abs(count.mean(axis=1) - 3 * rate) <= 5 * sd / np.sqrt(n)).all()


@both
def test_another_unit_of_time(schedule):
    rate = np.random.default_rng(11).lognormal(0, 1, 20)
    time, offsets = schedule(rate, 6.0, rng=12)
    scaled, same = schedule(rate / 64, 6.0 * 64, rng=12)
    np.testing.assert_array_equal(offsets, same)
    np.testing.assert_array_equal(time * 64, scaled)  # a power of two: to the bit


def test_poisson_times_given_their_number_are_uniform_order_statistics():
    time, offsets = schedules.poisson(np.full(20_000, 0.5), 8.0, rng=6)
    assert stats.kstest(time / 8, "uniform").pvalue > 1e-5
    of_three = np.array([t for t in by_page(time, offsets) if t.size == 3]) / 8
    # the k-th of n uniform times is Beta(k, n + 1 - k), and a gap between two
    # neighbours has the distribution of the first
    for k in range(3):
        assert stats.kstest(of_three[:, k], stats.beta(k + 1, 3 - k).cdf).pvalue > 1e-5
    gap = of_three[:, 1] - of_three[:, 0]
    assert stats.kstest(gap, stats.beta(1, 3).cdf).pvalue > 1e-5
    count = np.diff(offsets).reshape(-1, 2)
    assert stats.spearmanr(*count.T).pvalue > 1e-5  # pages are independent


def test_regular_crawls_are_where_they_should_be():
    rng, duration = np.random.default_rng(9), 5.0
    rate = rng.lognormal(0, 1.5, 200)
    for phase in (0.01, 0.3, 1.0):
        found = by_page(*schedules.regular(rate, duration, phase=phase))
        for r, t in zip(rate, found, strict=True):
            expected = (np.arange(500) + phase) / r
            np.testing.assert_allclose(t, expected[expected <= duration], rtol=1e-12)
    _, offsets = schedules.regular([0.0, 1.0], 2.0, phase=1e-12)
    assert offsets.tolist() == [0, 0, 3]  # a page of rate 0 has no crawl


def test_phases_are_uniform_and_independent_by_default():
    rate = np.tile([0.5, 2.0], 5000)
    time, offsets = schedules.regular(rate, 10.0, rng=10)
    phase = np.array([t[0] for t in by_page(time, offsets)]) * rate
    assert ((phase > 0) & (phase <= 1)).all()
    assert stats.kstest(phase, "uniform").pvalue > 1e-5
    assert stats.spearmanr(phase[::2], phase[1::2]).pvalue > 1e-5


@pytest.mark.parametrize("n_rounds", [1, 2, 3, 7, 49, 1000, 99_999])
@pytest.mark.parametrize("pages", [(3, 0.7), (7, 0.1), (49, 1 / 3), (500, 100.0)])
def test_whole_rounds_end_with_a_crawl_however_they_are_rounded(n_rounds, pages):
    n_pages, bandwidth = pages
    duration, rate = n_rounds * (n_pages / bandwidth), bandwidth / n_pages
    time, offsets = schedules.regular(np.full(2, rate), duration, phase=1.0)
    np.testing.assert_array_equal(offsets, [0, n_rounds, 2 * n_rounds])
    assert time.max() <= duration
    np.testing.assert_allclose(time[n_rounds - 1 :: n_rounds], duration, rtol=1e-12)


# ------------------------------ low discrepancy


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ([1.0, 1.0, 1.0], [0, 1, 2, 0, 1, 2, 0]),
        ([2.0, 1.0, 1.0], [0, 1, 0, 2, 0, 1, 0, 2]),
        ([1.0, 3.0], [1, 1, 0, 1, 1, 1, 0, 1]),
        ([0.0, 5.0, 0.0, 5.0], [1, 3, 1, 3]),
        (0.3, [0, 0, 0]),
        ([1.0, 2.0], []),
    ],
)
def test_low_discrepancy_by_hand(rate, expected):
    assert schedules.low_discrepancy(rate, len(expected)).tolist() == expected


@pytest.mark.parametrize("total", [8, 10, 64, 1024])
def test_low_discrepancy_is_the_plain_form(total):
    rng = np.random.default_rng(total)
    for _ in range(8):
        weight = rng.multinomial(
            total, rng.dirichlet(np.full(rng.integers(1, 12), 0.7))
        )
        rate = weight[weight > 0].astype(float)
        expected = plain.low_discrepancy(rate, 300)
        np.testing.assert_array_equal(schedules.low_discrepancy(rate, 300), expected)
    rate = rng.lognormal(0, 2, 100)
    expected = plain.low_discrepancy(rate, 500)
    np.testing.assert_array_equal(schedules.low_discrepancy(rate, 500), expected)


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 15.0])
def test_every_page_has_its_share_at_all_times_within_one_visit(spread):
    rng = np.random.default_rng(13)
    for n_pages in (1, 2, 10, 200):
        rate = rng.lognormal(0, spread, n_pages) * (rng.random(n_pages) < 0.8)
        rate[0] = 1.0
        rate[rate < 1e-18 * rate.sum()] = 0.0
        page = schedules.low_discrepancy(rate, 3000)
        visits = np.cumsum(page[:, np.newaxis] == np.arange(n_pages), axis=0)
        due = rate / rate.sum() * np.arange(1, 3001)[:, np.newaxis]
        assert np.abs(visits - due).max() <= 1 + 1e-9
        assert (visits[-1, rate == 0] == 0).all()


@pytest.mark.parametrize("tiny", [1e-19, 1e-300, 5e-324])
def test_a_share_whose_first_visit_is_beyond_all_integers(tiny):
    assert not schedules.low_discrepancy([1.0, tiny], 3000).any()


# ------------------------------ bad input

NEGATIVE = "crawl_rate must be non-negative and finite, got"
ZEROS = "crawl_rate must be positive for at least one page, got 0.0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: schedules.poisson([1, -1], 5.0), f"{NEGATIVE} -1.0 at index (1,)"),
        (lambda: schedules.regular(np.nan, 5.0), f"{NEGATIVE} nan"),
        (lambda: schedules.low_discrepancy(np.inf, 5), f"{NEGATIVE} inf"),
        (lambda: schedules.low_discrepancy([0.0, 0.0], 5), ZEROS),
        (
            lambda: schedules.low_discrepancy(1.0, 2.5),
            "n_slots must be an integer of at least 0, got 2.5",
        ),
        (
            lambda: schedules.low_discrepancy(1.0, -1),
            "n_slots must be an integer of at least 0, got -1",
        ),
        (
            lambda: schedules.poisson(1.0, 0.0),
            "duration must be positive and finite, got 0.0",
        ),
        (
            lambda: schedules.regular(1.0, [1.0, 2.0]),
            "duration must be one number, got shape (2,)",
        ),
    ],
)
def test_schedules_refuse(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
