"""Freshness: printed values, limits, order, and shares of simulated time."""

import itertools
import re

import numpy as np
import pytest
from scipy import integrate

from recrawl.science import freshness
from recrawl.science.processes import History
from tests.recrawl.made import observe, simulate_history
from tests.recrawl.made import poisson_times

RATES = np.geomspace(1e-6, 1e6, 49)


@pytest.mark.slow
def test_values_of_papers_0():
    # at one change per crawl: 0.500 under Poisson crawls, 0.6321 under equal
    # intervals
    assert freshness.poisson(2.0, 2.0) == pytest.approx(0.5, rel=1e-12, abs=0)
    assert freshness.interval(2.0, 2.0) == pytest.approx(
        1 - np.exp(-1), rel=1e-12, abs=0
    )


def test_formulas():
    x = RATES[:, np.newaxis]
    np.testing.assert_allclose(
        freshness.poisson(x, RATES), RATES / (x + RATES), rtol=1e-10
    )
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
    np.testing.assert_allclose(
        fresh(60 * RATES, 60 * RATES[::-1]), fresh(RATES, RATES[::-1]), rtol=1e-12
    )
    assert isinstance(fresh(1.0, 2.0), float)
    assert fresh(np.ones((3, 1)), np.ones(4)).shape == (3, 4)


def test_equal_intervals_are_at_least_as_fresh_as_poisson_crawls():
    change = np.geomspace(1e-3, 1e3, 200)
    assert (freshness.interval(change, 1.0) > freshness.poisson(change, 1.0)).all()


@pytest.mark.parametrize("fresh", [freshness.poisson, freshness.interval])
@pytest.mark.parametrize(
    ("change_rate", "crawl_rate"), [(1.0, 1.0), (0.3, 2.0), (4.0, 0.5)]
)
def test_share_of_simulated_time_in_which_the_copy_is_fresh(
    fresh, change_rate, crawl_rate
):
    rng, n = np.random.default_rng(1), 100_000
    interval = (
        rng.exponential(1 / crawl_rate, n)
        if fresh is freshness.poisson
        else np.full(n, 1 / crawl_rate)
    )
    crawls = np.cumsum(interval)
    changes = np.append(poisson_times(change_rate, crawls[-1], rng=rng), np.inf)
    start = np.append(0.0, crawls[:-1])
    time = (
        np.minimum(changes[np.searchsorted(changes, start, side="right")], crawls)
        - start
    )
    share = fresh(change_rate, crawl_rate)
    # a ratio of means over crawls: 5 standard errors of its linearisation
    error = (time - share * interval).std() / interval.mean() / np.sqrt(n)
    assert time.sum() / crawls[-1] == pytest.approx(share, abs=5 * error)


def test_mean_is_weighted_by_importance():
    assert freshness.mean([0.5, 1.0], [3.0, 1.0]) == pytest.approx(
        0.625, rel=1e-12, abs=0
    )
    np.testing.assert_allclose(
        freshness.mean([[0.5, 1.0], [0.2, 0.4]], [1.0, 0.0]), [0.5, 0.2], rtol=1e-12
    )
    assert freshness.mean([0.5, 0.7], 2.0) == pytest.approx(0.6, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[
            (
                lambda f=f, a=a: f(*a),
                f"{name} must be non-negative and finite, got {value}",
            )
            for f in (freshness.poisson, freshness.interval)
            for a, name, value in [
                ((-1.0, 1.0), "change_rate", "-1.0"),
                ((1.0, -1.0), "crawl_rate", "-1.0"),
                (([1.0, np.nan], 1.0), "change_rate", "nan at index (1,)"),
                ((1.0, [[np.inf]]), "crawl_rate", "inf at index (0, 0)"),
            ]
        ],
        (
            lambda: freshness.mean([1.0, 1.0], [1.0, -1.0]),
            "importance must be non-negative and finite, got -1.0 at index (1,)",
        ),
    ],
)
def test_freshness_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_mean_needs_a_page_that_counts():
    with pytest.raises(
        ValueError,
        match="importance must be positive for at least one page, got only zeros",
    ):
        freshness.mean([0.5, 0.5], [0.0, 0.0])


def test_shapes_that_do_not_match_are_named():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "change_rate and crawl_rate must have shapes that broadcast, "
            "got change_rate (2,), crawl_rate (3,)"
        ),
    ):
        freshness.poisson([1, 2], [1, 2, 3])


# ------------------------------ crawls that are known


@pytest.mark.parametrize("horizon", [None, 2.0, 7.0, 100.0])
def test_crawled_against_quadrature(horizon):
    """Crawls after the horizon do not count.

    Copies grow stale after the last crawl, or from the start if there is none.
    """
    history = History([1.0, 2.5, 0.5, 4.0, 9.0], [0, 1, 1, 0, 0], [0, 3, 3, 5])
    np.testing.assert_array_equal(history.time, [1.0, 3.5, 4.0, 4.0, 13.0])
    rates = np.array([0.3, 0.7, 2.0])
    got = freshness.crawled(history, rates, horizon=horizon)
    for value, rate, start, end in zip(
        got, rates, history.offsets[:-1], history.offsets[1:], strict=True
    ):
        times = np.append(0.0, history.time[start:end])
        until = times[-1] if horizon is None else horizon
        if not until:
            assert np.isnan(value)
            continue
        cuts = [*times[times < until], until]
        whole = sum(
            integrate.quad(lambda t, a=a, rate=rate: np.exp(-rate * (t - a)), a, b)[0]
            for a, b in itertools.pairwise(cuts)
        )
        assert value == pytest.approx(whole / until, rel=1e-12)


def test_crawled_at_equal_intervals_and_in_both_forms():
    history = simulate_history([0.2, 5.0], interval=0.5, n_crawls=40, n_runs=3, rng=1)
    got = freshness.crawled(history, [0.2, 5.0])
    np.testing.assert_allclose(
        got, np.broadcast_to(freshness.interval([0.2, 5.0], 2.0), (3, 2)), rtol=1e-12
    )
    ragged = History(*history.ragged())
    np.testing.assert_allclose(
        freshness.crawled(ragged, np.tile([0.2, 5.0], 3), horizon=7.3),
        freshness.crawled(history, [0.2, 5.0], horizon=7.3).ravel(),
        rtol=1e-12,
    )


def test_crawled_is_the_share_of_fresh_time_of_simulated_changes():
    rng = np.random.default_rng(2)
    crawls = np.sort(rng.uniform(0, 10, 8))
    grid = np.linspace(0, 10, 2001)[1:]
    last = np.append(0.0, crawls)[np.searchsorted(crawls, grid)]
    shares = []
    for _ in range(1500):
        changes = poisson_times(0.6, 10.0, rng=rng)
        shares.append(
            np.mean(np.searchsorted(changes, grid) == np.searchsorted(changes, last))
        )
    expected = freshness.crawled(observe([], crawls), 0.6, horizon=10.0)
    assert abs(np.mean(shares) - expected) < 5 * np.std(shares) / np.sqrt(1500) + 1e-3


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"change_rate": -1.0}, "change_rate must be non-negative"),
        ({"horizon": 0.0}, "horizon must be positive"),
    ],
)
def test_crawled_refuses(bad, message):
    options = {"change_rate": 1.0, "horizon": 1.0} | bad
    with pytest.raises(ValueError, match=message):
        freshness.crawled(
            observe([], [1.0]), options["change_rate"], horizon=options["horizon"]
        )
