"""Allocations: conditions of optimality, plain forms, limits, invariances, errors."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from recrawl.plan import objectives
from recrawl.plan.allocation import even, optimal
from tests import plain
from tests.recrawl import plain as reference

each = pytest.mark.parametrize("objective", objectives.CODES)
far = pytest.mark.parametrize("unit", [1e-12, 24.0, 1e12])
searched = settings(deadline=None, derandomize=True, database=None, max_examples=30)


def problem(seed, n=60, n_hosts=8, spread=1.0):
    """Arguments of `optimal` with all kinds of limits, most of them active."""
    rng = np.random.default_rng(seed)
    change_rate, importance = rng.lognormal(0, spread, (2, n))
    bandwidth = rng.uniform(0.3, 2) * n
    low = np.where(rng.random(n) < 0.4, rng.uniform(0, 0.3, n), 0.0)
    high = np.where(rng.random(n) < 0.4, low + rng.uniform(0, 2, n), np.inf)
    host = rng.integers(0, n_hosts, n)
    host[:n_hosts] = np.arange(n_hosts)  # each has a page
    least = np.bincount(host, low)
    limit = least + bandwidth / n_hosts * rng.uniform(0.05, 0.5, n_hosts)
    limit[n_hosts // 2 :] = np.inf
    limits = {"min_rate": low, "max_rate": high, "host": host, "host_limit": limit}
    return (change_rate, importance, bandwidth), limits


# ------------------------------ optimality


@each
@pytest.mark.parametrize("seed", range(6))
def test_the_optimality_conditions_hold_under_all_limits(objective, seed):
    (change_rate, importance, bandwidth), limits = problem(seed)
    best = optimal(change_rate, importance, bandwidth, objective=objective, **limits)
    rate, low, high, host, limit = best.crawl_rate, *limits.values()
    assert (low <= rate).all()
    assert (rate <= high).all()
    assert rate.sum() == pytest.approx(bandwidth, rel=1e-12, abs=0)
    spent = np.bincount(host, rate)
    assert (spent <= limit * (1 + 1e-12)).all()
    full = spent > limit * (1 - 1e-9)
    assert 0 < full.sum() < limit.size
    saved = importance * reference.gain(objective, change_rate, rate)
    between = (low < rate) & (rate < high)
    # One more crawl saves the multiplier, or one number above it for each full host.
    due = np.full(limit.size, best.multiplier)
    for k in np.flatnonzero(full):
        due[k] = saved[between & (host == k)].mean()
    assert (due >= best.multiplier * (1 - 1e-9)).all()
    due = due[host]
    assert 5 < between.sum() < 60
    assert_allclose(saved[between], due[between], rtol=1e-9)
    assert (saved[rate == low] <= due[rate == low] * (1 + 1e-9)).all()
    assert (saved[rate == high] >= due[rate == high] * (1 - 1e-9)).all()


@pytest.mark.parametrize("spread", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("bandwidth", [0.1, 10.0, 60.0, 1e4])
def test_without_limits_it_is_the_optimum_of_the_papers(spread, bandwidth):
    (change_rate, importance, _), _ = problem(1, spread=spread)
    best = optimal(change_rate, importance, bandwidth)
    rate, multiplier = plain.optimal_interval(change_rate, importance, bandwidth)
    # where bandwidth is scarce, gains are equal up to rounding
    assert_allclose(best.crawl_rate, rate, rtol=1e-8, atol=1e-9 * bandwidth)
    assert best.multiplier == pytest.approx(multiplier, rel=1e-9)


# ------------------------------ nothing is spent that is not there


def decades(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


@st.composite
def problems(draw):
    """Pages and a bandwidth within twelve decades."""
    n = draw(st.integers(1, 8))
    each_page = st.lists(decades(-6, 6), min_size=n, max_size=n)
    rates, weights = np.array(draw(each_page)), np.array(draw(each_page))
    return rates, weights, draw(decades(-6, 6))


@each
@searched
@given(of=problems())
@example(of=(np.full(3, 1.13), np.full(3, 6.0), 0.18))
@example(of=(np.array([8.16e14, 1.8e-7]), np.array([2.88e9, 4.1e-10]), 5e-4))
@example(of=(np.array([1e6, 1e6, 1e-6]), np.array([1.0, 1.0, 1e-6]), 1e-6))
def test_no_allocation_spends_more_or_less_than_the_bandwidth(objective, of):
    change_rate, importance, bandwidth = of
    best = optimal(*of, objective=objective)
    rate = best.crawl_rate
    assert rate.sum() == pytest.approx(bandwidth, rel=1e-12, abs=0)
    assert (rate >= 0).all()
    saved = importance * reference.gain(objective, change_rate, rate)
    assert (saved <= best.multiplier * (1 + 1e-9)).all()
    lost = rate @ (best.multiplier - saved)  # by crawls that gain less
    assert lost <= 1e-9 * bandwidth * best.multiplier


def test_the_bandwidth_is_spent_on_pages_450_decades_apart():
    best = optimal([1e103, 1e-181, 1e265], [1e-81, 1e-237, 1e77], 1e256)
    assert best.crawl_rate.sum() == pytest.approx(1e256, rel=1e-9)


# ------------------------------ even rates


def test_even_rates_keep_all_limits():
    (_, importance, bandwidth), limits = problem(61)
    importance[:5] = 0.0
    best = even(importance, bandwidth, **limits)
    rate, low, high, host, limit = best.crawl_rate, *limits.values()
    assert rate.sum() == pytest.approx(bandwidth, rel=1e-12)
    spent = np.bincount(host, rate)
    full = (spent > limit * (1 - 1e-9))[host]
    free = (low < rate) & (rate < high) & ~full & (importance > 0)
    assert 5 < free.sum() < 60
    assert np.ptp(rate[free]) < 1e-10 * rate.max()
    assert_array_equal(rate[:5], low[:5])
    assert (spent <= limit * (1 + 1e-12)).all()


def test_even_rates_without_limits_are_those_of_the_search():
    importance = np.array([2.0, 0.0, 1.0])
    best, searched = (even(importance, 4.0, max_rate=x) for x in (np.inf, 1e9))
    assert_allclose(best.crawl_rate, [2.0, 0.0, 2.0], rtol=1e-12)
    assert best.multiplier == pytest.approx(searched.multiplier, rel=1e-9)
    assert_allclose(searched.crawl_rate, best.crawl_rate, rtol=1e-12)


# ------------------------------ invariances


@each
@far
def test_units_of_time_and_importance_rescale(objective, unit):
    (change_rate, importance, bandwidth), limits = problem(52)
    per_time = {n: limits[n] / unit for n in ("min_rate", "max_rate", "host_limit")}
    here, sooner, weighty = (
        optimal(*given, objective=objective, **limits | rescaled)
        for given, rescaled in (
            ((change_rate, importance, bandwidth), {}),
            ((change_rate / unit, importance, bandwidth / unit), per_time),
            ((change_rate, importance * unit, bandwidth), {}),
        )
    )
    for rate in sooner.crawl_rate * unit, weighty.crawl_rate:
        assert_allclose(rate, here.crawl_rate, rtol=1e-9, atol=1e-12)
    assert weighty.multiplier / unit == pytest.approx(here.multiplier, rel=1e-9)


# ------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be positive and finite, got 0.0"),
        ({"bandwidth": np.nan}, "bandwidth must be positive and finite, got nan"),
        ({"change_rate": [1.0, -2.0]}, "change_rate must be non-negative and finite"),
        ({"importance": [1.0, np.inf]}, "importance must be non-negative and finite"),
        ({"importance": [1.0, 1.0, 1.0]}, "shapes must fit together"),
        (
            {"min_rate": [0.1, 0.3], "max_rate": 0.2},
            "min_rate must be at most max_rate",
        ),
        ({"min_rate": [0.75, 0.5]}, "min_rate must spend at most the bandwidth, 1.0"),
        (
            {"min_rate": 0.375, "host": [0, 1], "host_limit": [np.inf, 0.25]},
            "min_rate must be within the limits of hosts, got 0.375 at index (1,)",
        ),
    ],
)
def test_optimal_refuses(change, message):
    given = {"change_rate": [1.0, 2.0], "importance": [1.0, 1.0], "bandwidth": 1.0}
    with pytest.raises(ValueError, match=re.escape(message)):
        optimal(**given | change)
