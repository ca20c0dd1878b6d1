"""Crawl value under a gamma distribution: printed numbers, 60 digits, limits."""

import itertools
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

from recrawl.kernels import bayes
from recrawl.science.freshness import bayes_crawl_value, crawl_value
from recrawl.science.signals import SignalledPages

SHAPES = [
    *(1e-3, 0.03, 0.2, 0.4999, 0.5, 0.9, 1 - 1e-9, np.nextafter(1.0, 0.0), 1.0),
    *(np.nextafter(1.0, 2.0), 1 + 1e-9, 1.1, 2.0, 2.5, 17.0, 1e3, 1e6),
]


def exact(shape, rate, elapsed):
    """The value and its slope in decimals; they cancel freely."""
    with localcontext() as context:
        context.prec = 100
        a, b, t = Decimal(shape), Decimal(rate), Decimal(elapsed)
        ratio = b / (b + t)
        power = ratio**a
        slope = t * a * power / (b + t)
        if a == 1:
            return b * (-ratio.ln() - t / (b + t)), slope
        return (b - (b + a * t) * power) / (a - 1), slope


# ------------------------------------------------------------------ closed forms


def test_printed_numbers():
    known = {"shape": 2.5, "rate": 1.3}
    assert bayes_crawl_value(0.8, 1.0, **known) == pytest.approx(
        0.2033318013, abs=6e-11
    )
    for time, value in [(1.6476483496, 0.4), (3.3484910230, 0.6)]:
        assert bayes.elapsed_at(2.5, 1.3, value) == pytest.approx(time, abs=6e-11)
        assert bayes_crawl_value(time, 1.0, **known) == pytest.approx(value, abs=6e-11)


def test_limits():
    shape = np.array([0.5, 1.0, 1.25, 3.0])
    limit = np.array([np.inf, np.inf, 8.0, 1.0])
    np.testing.assert_array_equal(
        bayes_crawl_value(np.inf, 1.0, shape=shape, rate=2.0), limit
    )
    assert (bayes_crawl_value(0.0, 1.0, shape=shape, rate=2.0) == 0).all()
    assert (bayes_crawl_value([0.0, np.inf], 0.0, shape=0.5, rate=2.0) == 0).all()
    # a t^2 / (2 b) where little time has passed
    assert_allclose(
        bayes_crawl_value(1e-9, 7.0, shape=shape, rate=2.0),
        7.0 * shape * 1e-18 / 4.0,
        rtol=1e-8,
    )


@pytest.mark.parametrize("shape", [1e3, 1e5, 1e7])
def test_a_certain_change_rate_has_the_crawl_value_without_signals(shape):
    change_rate, elapsed = 0.7, np.geomspace(1e-3, 10.0, 20)
    expected = crawl_value(
        elapsed[:, np.newaxis], 0, SignalledPages([change_rate], 3.0, 0.0, 0.0)
    ).ravel()
    found = bayes_crawl_value(elapsed, 3.0, shape=shape, rate=shape / change_rate)
    # the change rate has a relative variance of 1 / shape
    assert (np.abs(found / expected - 1) < 1 / shape).all()


# --------------------------------------------------------------------- precision


@pytest.mark.parametrize("shape", SHAPES)
def test_twelve_digits_from_the_shortest_to_the_longest_time(shape):
    # about 0.02, 1 and 1 / shape the formula in use changes
    x = np.concatenate([10.0 ** np.arange(-12, 13), np.geomspace(0.01, 3.0, 40)])
    for rate in (1e-12, 0.7, 1e12):
        for elapsed in np.concatenate([x, x / shape]) * rate:
            found = bayes_crawl_value(elapsed, 1.0, shape=shape, rate=rate)
            expected = exact(shape, rate, elapsed)[0]
            assert abs(Decimal(float(found)) / expected - 1) < Decimal("1e-11")


@pytest.mark.parametrize("shape", SHAPES)
def test_elapsed_at_has_ten_digits(shape):
    x = np.concatenate([10.0 ** np.arange(-12, 13), np.geomspace(0.01, 3.0, 20)])
    for rate, x_ in itertools.product(
        (1e-12, 0.7, 1e12), np.concatenate([x, x / shape])
    ):
        elapsed = x_ * rate
        expected, slope = exact(shape, rate, elapsed)
        value = float(expected)
        again = bayes.elapsed_at(shape, rate, value)
        if again == np.inf:  # the value is the limit, to rounding
            assert value >= (1 - 1e-15) * rate / (shape - 1)
            continue
        assert abs(exact(shape, rate, again)[0] / Decimal(value) - 1) < Decimal("1e-10")
        if expected < 1000 * slope * Decimal(elapsed):  # not near the limit
            assert again == pytest.approx(elapsed, rel=1e-10)


def test_elapsed_at_of_values_that_are_never_reached():
    assert bayes.elapsed_at(3.0, 2.0, 0.0) == 0.0
    assert bayes.elapsed_at(3.0, 2.0, 1.0) == np.inf
    assert bayes.elapsed_at(3.0, 2.0, 0.9999) < np.inf
    # near the largest number products of finite numbers may overflow
    for shape in (0.95, 1.0, 1.001):
        late = bayes_crawl_value(1e297, 1.0, shape=shape, rate=1.0)
        assert bayes.elapsed_at(shape, 1.0, late) == pytest.approx(1e297, rel=1e-10)
    for shape in (0.5, 1.0, 3.0):
        assert bayes.elapsed_at(shape, 2.0, np.inf) == np.inf
    assert bayes.elapsed_at(1.0, 2.0, 1e4) == np.inf  # beyond the largest number


def test_elapsed_at_just_below_the_limit_is_finite_and_late():
    for shape in (1.5, 3.0, 40.0, 1e5):
        limit = 2.0 / (shape - 1)
        found = [
            bayes.elapsed_at(shape, 2.0, limit * (1 - 2.0**-k)) for k in range(1, 53)
        ]
        assert np.isfinite(found).all()
        # later and later, up to the last bits of the value
        assert (np.diff(found[:40]) > 0).all()
        assert (np.array(found[40:]) > found[38]).all()


# --------------------------------------------------------------- order and units


@pytest.mark.parametrize("shape", SHAPES)
def test_value_rises_with_time_and_falls_with_what_is_known(shape):
    time = np.geomspace(1e-9, 1e9, 300)
    value = bayes_crawl_value(time, 1.0, shape=shape, rate=1.0)
    assert (value[1:] >= value[:-1] * (1 - 1e-13)).all()
    # at one mean rate, the surest has the lowest limit
    known = np.array([1.0, 2.0, 4.0, 8.0])
    limit = bayes_crawl_value(np.inf, 1.0, shape=known * shape, rate=known)
    assert (limit[1:] < limit[:-1])[np.isfinite(limit[1:])].all()


def test_another_unit_of_time_and_of_importance():
    time, shape = np.geomspace(1e-3, 1e3, 30), np.array([[0.3], [1.0], [4.0]])
    assert_allclose(
        bayes_crawl_value(60 * time, 5.0, shape=shape, rate=60 * 0.7),
        300 * bayes_crawl_value(time, 1.0, shape=shape, rate=0.7),
        rtol=1e-12,
    )


def test_shapes():
    found = bayes_crawl_value([[1.0], [2.0]], [1.0, 2.0, 3.0], shape=2.0, rate=1.0)
    assert found.shape == (2, 3)
    assert isinstance(bayes_crawl_value(1.0, 1.0, shape=2.0, rate=1.0), float)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"elapsed": -1.0}, "elapsed must be non-negative, got -1.0"),
        ({"elapsed": np.nan}, "elapsed must be non-negative, got nan"),
        ({"importance": -1.0}, "importance must be non-negative and finite, got -1.0"),
        ({"importance": np.inf}, "importance must be non-negative and finite, got inf"),
        ({"shape": 0.0}, "shape must be positive and finite, got 0.0"),
        ({"shape": np.inf}, "shape must be positive and finite, got inf"),
        (
            {"rate": [1.0, 0.0]},
            "rate must be positive and finite, got 0.0 at index (1,)",
        ),
        (
            {"rate": [1.0, 2.0], "shape": [1.0, 2.0, 3.0]},
            "elapsed and importance and shape and rate must have shapes that broadcast",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        bayes_crawl_value(
            **{"elapsed": 1.0, "importance": 1.0, "shape": 1.0, "rate": 1.0} | arguments
        )
