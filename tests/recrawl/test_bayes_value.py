"""Crawl value under a gamma distribution: printed numbers, 60 digits, limits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from paperlib.freshness import crawl_value
from paperlib.signals import SignalledPages
from recrawl.live import bayes

SHAPES = [
    *(1e-3, 0.03, 0.2, 0.4999, 0.5, 0.9, 1 - 1e-9, np.nextafter(1.0, 0.0), 1.0),
    *(np.nextafter(1.0, 2.0), 1 + 1e-9, 1.1, 2.0, 2.5, 17.0, 1e3, 1e6),
]


value_of = np.vectorize(bayes.value)


def exact(shape, rate, elapsed):
    """The value in decimals; they cancel freely."""
    with localcontext() as context:
        context.prec = 100
        a, b, t = Decimal(shape), Decimal(rate), Decimal(elapsed)
        ratio = b / (b + t)
        if a == 1:
            return b * (-ratio.ln() - t / (b + t))
        return (b - (b + a * t) * ratio**a) / (a - 1)


def test_limits():
    shape = np.array([0.5, 1.0, 1.25, 3.0])
    limit = np.array([np.inf, np.inf, 8.0, 1.0])
    np.testing.assert_array_equal(value_of(shape, 2.0, np.inf), limit)
    assert (value_of(shape, 2.0, 0.0) == 0).all()


@pytest.mark.parametrize("shape", [1e3, 1e5, 1e7])
def test_a_certain_change_rate_has_the_crawl_value_without_signals(shape):
    change_rate, elapsed = 0.7, np.geomspace(1e-3, 10.0, 20)
    expected = crawl_value(
        elapsed[:, np.newaxis], 0, SignalledPages([change_rate], 1.0, 0.0, 0.0)
    ).ravel()
    found = value_of(shape, shape / change_rate, elapsed)
    # the change rate has a relative variance of 1 / shape
    assert (np.abs(found / expected - 1) < 1 / shape).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_twelve_digits_from_the_shortest_to_the_longest_time(shape):
    # about 0.02, 1 and 1 / shape the formula in use changes
    x = np.concatenate([10.0 ** np.arange(-12, 13), np.geomspace(0.01, 3.0, 40)])
    for rate in (1e-12, 0.7, 1e12):
        for elapsed in np.concatenate([x, x / shape]) * rate:
            found = bayes.value(shape, rate, elapsed)
            expected = exact(shape, rate, elapsed)
            assert abs(Decimal(float(found)) / expected - 1) < Decimal("1e-11")


@pytest.mark.parametrize("shape", SHAPES)
def test_value_rises_with_time_and_falls_with_what_is_known(shape):
    time = np.geomspace(1e-9, 1e9, 300)
    value = value_of(shape, 1.0, time)
    assert (value[1:] >= value[:-1] * (1 - 1e-13)).all()
    # at one mean rate, the surest has the lowest limit
    known = np.array([1.0, 2.0, 4.0, 8.0])
    limit = value_of(known * shape, known, np.inf)
    assert (limit[1:] < limit[:-1])[np.isfinite(limit[1:])].all()
