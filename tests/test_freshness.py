"""Freshness of one page: printed values, limits, order, and the share of simulated time in which a copy is fresh."""

import re

import numpy as np
import pytest

from paperlib import freshness
from paperlib.processes import poisson_times

RATES = np.geomspace(1e-6, 1e6, 49)


def test_values_of_papers_0():
    # at one change per crawl: 0.500 under Poisson crawls, 0.6321 under equal intervals
    assert freshness.poisson(2.0, 2.0) == pytest.approx(0.5, rel=1e-12, abs=0)
    assert freshness.interval(2.0, 2.0) == pytest.approx(1 - np.exp(-1), rel=1e-12, abs=0)


def test_formulas():
    x = RATES[:, np.newaxis]
    np.testing.assert_allclose(freshness.poisson(x, RATES), RATES / (x + RATES), rtol=1e-10)
    ratio = x / RATES
    series = 1 - ratio / 2 + ratio**2 / 6 - ratio**3 / 24  # where 1 - exp cancels
    with np.errstate(invalid="ignore"):
        closed = np.where(ratio < 1e-4, series, (1 - np.exp(-ratio)) / ratio)
    np.testing.assert_allclose(freshness.interval(x, RATES), closed, rtol=1e-10)


@pytest.mark.parametrize("fresh", [freshness.poisson, freshness.interval])
def test_limits_and_order(fresh):
    assert fresh(1.0, 0.0) == 0  # never crawled
    assert fresh(0.0, 1.0) == fresh(0.0, 0.0) == 1  # never changes
    assert fresh(1e12, 1e-12) == pytest.approx(1e-24, rel=1e-10, abs=0)
    assert fresh(1e-12, 1e12) == 1
    values = fresh(RATES[:, np.newaxis], RATES)
    assert ((values > 0) & (values <= 1)).all()
    assert (np.diff(values, axis=1) >= 0).all()  # more crawls
    assert (np.diff(values, axis=0) <= 0).all()  # more changes
    np.testing.assert_allclose(fresh(60 * RATES, 60 * RATES[::-1]), fresh(RATES, RATES[::-1]), rtol=1e-12)
    assert isinstance(fresh(1.0, 2.0), float)
    assert fresh(np.ones((3, 1)), np.ones(4)).shape == (3, 4)


def test_equal_intervals_are_at_least_as_fresh_as_poisson_crawls():
    change = np.geomspace(1e-3, 1e3, 200)
    assert (freshness.interval(change, 1.0) > freshness.poisson(change, 1.0)).all()


@pytest.mark.parametrize("fresh", [freshness.poisson, freshness.interval])
@pytest.mark.parametrize(("change_rate", "crawl_rate"), [(1.0, 1.0), (0.3, 2.0), (4.0, 0.5)])
def test_share_of_simulated_time_in_which_the_copy_is_fresh(fresh, change_rate, crawl_rate):
    rng, n = np.random.default_rng(1), 100_000
    interval = rng.exponential(1 / crawl_rate, n) if fresh is freshness.poisson else np.full(n, 1 / crawl_rate)
    crawls = np.cumsum(interval)
    changes = np.append(poisson_times(change_rate, crawls[-1], rng=rng), np.inf)
    start = np.append(0.0, crawls[:-1])
    time = np.minimum(changes[np.searchsorted(changes, start, side="right")], crawls) - start
    share = fresh(change_rate, crawl_rate)
    # a ratio of means over crawls: 5 standard errors of its linearisation
    error = (time - share * interval).std() / interval.mean() / np.sqrt(n)
    assert time.sum() / crawls[-1] == pytest.approx(share, abs=5 * error)


def test_mean_is_weighted_by_importance():
    assert freshness.mean([0.5, 1.0], [3.0, 1.0]) == pytest.approx(0.625, rel=1e-12, abs=0)
    np.testing.assert_allclose(freshness.mean([[0.5, 1.0], [0.2, 0.4]], [1.0, 0.0]), [0.5, 0.2], rtol=1e-12)
    assert freshness.mean([0.5, 0.7], 2.0) == pytest.approx(0.6, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[
            (lambda f=f, a=a: f(*a), f"{name} must be non-negative and finite, got {value}")
            for f in (freshness.poisson, freshness.interval)
            for a, name, value in [
                ((-1.0, 1.0), "change_rate", "-1.0"),
                ((1.0, -1.0), "crawl_rate", "-1.0"),
                (([1.0, np.nan], 1.0), "change_rate", "nan at index (1,)"),
                ((1.0, [[np.inf]]), "crawl_rate", "inf at index (0, 0)"),
            ]
        ],
        (lambda: freshness.mean([1.0, 1.0], [1.0, -1.0]), "importance must be non-negative and finite, got -1.0 at index (1,)"),
    ],
)
def test_freshness_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_mean_needs_a_page_that_counts():
    with pytest.raises(ValueError, match="importance must be positive for at least one page, got only zeros"):
        freshness.mean([0.5, 0.5], [0.0, 0.0])


def test_shapes_that_do_not_match_are_named():
    with pytest.raises(
        ValueError, match=re.escape("change_rate and crawl_rate must have shapes that broadcast, got change_rate (2,), crawl_rate (3,)")
    ):
        freshness.poisson([1, 2], [1, 2, 3])


def test_harmonic_penalty():
    # the mean of the harmonic number of the changes missed: the sum over k of P(N >= k) / k, a geometric tail
    k = np.arange(1, 5000)
    for change_rate, crawl_rate in [(1.0, 1.0), (0.3, 2.0), (40.0, 0.5)]:
        series = ((change_rate / (change_rate + crawl_rate)) ** k / k).sum()
        assert freshness.harmonic_penalty(change_rate, crawl_rate) == pytest.approx(series, rel=1e-10, abs=0)
    np.testing.assert_array_equal(freshness.harmonic_penalty([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]), [np.inf, 0.0, 0.0])
    assert freshness.harmonic_penalty(1e-12, 1e8) == pytest.approx(1e-20, rel=1e-10, abs=0)  # no cancellation
    assert freshness.harmonic_penalty(np.ones((3, 1)), np.ones(4)).shape == (3, 4)


def test_harmonic_penalty_is_the_mean_over_simulated_crawls():
    rng, n, change_rate, crawl_rate = np.random.default_rng(2), 100_000, 2.0, 0.75
    missed = rng.poisson(change_rate * rng.exponential(1 / crawl_rate, n))
    penalty = np.append(0.0, np.cumsum(1 / np.arange(1, missed.max() + 1)))[missed]
    assert penalty.mean() == pytest.approx(freshness.harmonic_penalty(change_rate, crawl_rate), abs=5 * penalty.std() / np.sqrt(n))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1.0), "change_rate must be non-negative and finite, got -1.0"),
        ((1.0, [1.0, np.nan]), "crawl_rate must be non-negative and finite, got nan at index (1,)"),
        (([1, 2], [1, 2, 3]), "change_rate and crawl_rate must have shapes that broadcast, got change_rate (2,), crawl_rate (3,)"),
    ],
)
def test_harmonic_penalty_refuses(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        freshness.harmonic_penalty(*arguments)
