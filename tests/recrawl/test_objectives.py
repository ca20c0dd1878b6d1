"""Objectives: reference numbers, quadrature, 130 digits, simulation, limits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from recrawl.plan import objectives
from recrawl.plan.objectives import cost, rates
from tests.recrawl import plain

each = pytest.mark.parametrize("name", objectives.CODES)
points = pytest.mark.parametrize(
    ("change_rate", "time"), [(2.0, 0.5), (0.2, 3.0), (5.0, 1.0), (0.03, 0.9)]
)


@each
@points
def test_costs_and_gains_are_integrals_of_the_cost_per_unit_of_time(
    name, change_rate, time
):
    def at(t):
        return plain.objective_cost(name, t, change_rate)

    mean = quad(at, 0, time, epsrel=1e-12)[0] / time
    assert cost(name, change_rate, 1 / time) == pytest.approx(mean, rel=1e-9)
    value = plain.objective_value(name, time, change_rate)
    assert plain.gain(name, change_rate, 1 / time) == pytest.approx(value, rel=1e-7)


# ------------------------------------------------------------------- precision

EULER = Decimal("0.577215664901532860606512090082402431042159335939923598805767")


def ein(x):
    """Ein in decimals: its series, and log(x) + gamma where E1 is below 1e-30."""
    if x > 70:
        return EULER + x.ln()
    term, total, k = Decimal(1), Decimal(0), 0
    while k < 10 or abs(term) > Decimal("1e-90"):
        k += 1
        term *= -x / k
        total -= term / k
    return total


def exact(name, t, d):
    """Gain and cost at the interval t in decimals, which cancel freely."""
    x = d * t
    e = (-x).exp()
    if name == "freshness":
        return (1 - (1 + x) * e) / d, 1 - (1 - e) / x
    if name == "age":
        mean = t * (Decimal("0.5") - 1 / x + (1 - e) / x / x)
        return t * t / 2 - (1 - (1 + x) * e) / d / d, mean
    return t - (1 - e) / d, ein(x) - 1 + (1 - e) / x


@each
@pytest.mark.parametrize("change_rate", [1e-6, 0.7, 1e6])
def test_right_to_a_millionth_from_frequent_to_rare_crawls(name, change_rate):
    for x in [*10.0 ** np.arange(-12, 13), 0.3, 0.99999, 1.00001, 3.0, 44.9, 45.1]:
        crawl_rate = change_rate / float(x)
        with localcontext() as context:
            context.prec = 130
            wanted = exact(name, 1 / Decimal(crawl_rate), Decimal(change_rate))
            wanted = [float(number) for number in wanted]
        found = (
            plain.gain(name, change_rate, crawl_rate),
            cost(name, change_rate, crawl_rate),
        )
        assert_allclose(found, wanted, rtol=1e-6)


@each
def test_rates_are_the_inverse_of_the_crawl_value(name):
    change_rate = np.array([[1e-6], [0.7], [1e6]])
    x = np.geomspace(1e-12, 15.0 if name == "freshness" else 1e12, 101)
    v = plain.gain(name, change_rate, change_rate / x) ** -0.5
    found = rates(objectives.CODES[name], change_rate, 1.0, 0.0, np.inf, v)
    assert_allclose(found * x / change_rate, np.ones_like(v), rtol=1e-8)
    # limits, and pages without changes or importance
    assert rates(objectives.CODES[name], 0.7, 1.0, 2.0, 3.0, 1e-6) == 2.0
    assert rates(objectives.CODES[name], 0.7, 1.0, 2.0, 3.0, 1e6) == 3.0
    assert rates(objectives.CODES[name], 0.0, 1.0, 2.0, 3.0, 1e6) == 2.0
    assert rates(objectives.CODES[name], 0.7, 0.0, 2.0, 3.0, 1e6) == 2.0


# ------------------------------------------------------------------------ limits


@each
def test_pages_that_are_never_crawled_or_never_change(name):
    assert cost(name, 0.7, 0.0) == (1.0 if name == "freshness" else np.inf)
    assert cost(name, 0.0, [0.0, 1.0]).tolist() == [0.0, 0.0]
