"""The bounds of Upadhyay et al. (2020) against what they bound."""

import decimal
import re

import numpy as np
import pytest
from scipy import optimize

from paperlib import allocation, estimators, regret
from paperlib.processes import simulate_history
from tests import plain


def problems(seed, n=1000, n_pages=8):
    """Change rates, estimates from good to useless, importances."""
    rng = np.random.default_rng(seed)
    true = rng.lognormal(0, 1, (n, n_pages))
    error = rng.lognormal(-2, 2, (n, 1)) * rng.normal(size=(n, n_pages))
    return true, true * np.exp(np.clip(error, -5, 5)), rng.lognormal(0, 1, (n, n_pages))


# ------------------------------ utility and burn-in


def test_utility_is_the_plain_form():
    rng = np.random.default_rng(1)
    change, crawl, importance = rng.lognormal(0, 1, (3, 20, 6))
    initial, t = rng.random((20, 6)), np.geomspace(0.05, 3, 20)
    found = regret.utility(change, importance, crawl, elapsed=t, initial=initial)
    rows = zip(change, importance, crawl, t, initial, strict=True)
    expected = [plain.utility(*row) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("elapsed", [0.0, 1e9, np.inf])
def test_utility_at_the_beginning_and_in_the_end(elapsed):
    pages = [1.0, 0.0, 2.0, 0.0], [1.0, 10.0, 100.0, 1000.0], [3.0, 1.0, 0.0, 0.0]
    initial = np.array([0.1, 0.2, 0.3, 0.4])
    # a page that neither changes nor is crawled stays as it is
    expected = 0.75 + 10.0 + 0.0 + 400.0 if elapsed else initial @ pages[1]
    found = regret.utility(*pages, elapsed=[[elapsed]], initial=initial)
    np.testing.assert_allclose(found, [[expected]], rtol=1e-12)


def test_copies_are_stale_in_the_beginning_by_default():
    assert regret.utility([1.0, 0.0], [3.0, 2.0], [1.0, 0.0], elapsed=0.0) == 0.0


def test_after_the_burn_in_utility_is_within_tolerance_from_any_state():
    change, _, importance = problems(3)
    crawl = allocation.optimal_poisson(change, importance, 5.0).crawl_rate
    limit, nearest = regret.utility(change, importance, crawl), np.inf
    for tolerance in (1e-3, 0.1, 1.0, 5.0):
        pairs = list(zip(importance, change.min(axis=1), strict=True))
        t = [regret.burn_in(w, tolerance, min_rate=low) for w, low in pairs]
        expected = [plain.burn_in(w, tolerance, low) for w, low in pairs]
        np.testing.assert_allclose(t, expected, rtol=1e-12)
        for initial in (0.0, 1.0, np.random.default_rng(2).random(change.shape)):
            state = {"elapsed": np.array(t), "initial": initial}
            gap = np.abs(regret.utility(change, importance, crawl, **state) - limit)
            assert (gap <= tolerance).all()
            nearest = min(nearest, (1 - gap / tolerance).min())
    assert nearest < 0.5


def test_the_burn_in_is_attained_by_a_page_without_crawls():
    t = regret.burn_in([3.0], [0.1, 1.0, 4.0], min_rate=0.7)
    found = regret.utility([0.7], [3.0], [0.0], elapsed=t, initial=1.0)
    np.testing.assert_allclose(found, [0.1, 1.0, 3.0], rtol=1e-12)
    assert t[2] == 0


# ------------------------------ sensitivity, Lemma 4


@pytest.mark.parametrize("power", range(11))
def test_suboptimality_over_ten_decades_of_error(power):
    """Two equal pages, of which one is estimated 1 + error times as fast, in 60 digits.

    At the estimates the two sums of crawl rate and believed change rate have the ratio
    sqrt(1 + error). The rates carry a rounding error of 1e-16, which is relative to the
    error what the loss can be wrong by.
    """
    with decimal.localcontext(prec=60):
        rate, bandwidth = decimal.Decimal(2), decimal.Decimal(6)
        error = decimal.Decimal(10) ** -power
        root = (1 + error).sqrt()
        smaller = (bandwidth + rate * (2 + error)) / (1 + root)
        chosen = root * smaller - rate * (1 + error), smaller - rate
        best = bandwidth / (bandwidth / 2 + rate)
        lost = best - sum(one / (one + rate) for one in chosen)
    estimated = [float(rate * (1 + error)), 2.0]
    found = regret.suboptimality([2.0, 2.0], estimated, [1.0, 1.0], 6.0)
    tolerance = max(1e-12, 1e-14 / 10.0**-power)
    assert found == pytest.approx(float(lost), rel=tolerance, abs=0)


def test_suboptimality_is_the_utility_that_is_lost():
    pages = problems(4)
    lost = regret.suboptimality(*pages, 4.0)
    expected = [plain.suboptimality(*row, 4.0) for row in zip(*pages, strict=True)]
    np.testing.assert_allclose(lost, expected, atol=1e-10)
    assert (lost >= -1e-14).all()
    true, _, importance = pages
    same = regret.suboptimality(true, true, importance, 4.0)
    np.testing.assert_array_equal(same, 0.0)
    # the belief that a page changes, which never does, takes crawls from the other
    plan = allocation.optimal_poisson([1.0, 1.0], 1.0, 2.0).crawl_rate
    found = regret.suboptimality([0.0, 1.0], [1.0, 1.0], [1.0, 1.0], 2.0)
    assert found == pytest.approx(2 / 3 - plan[1] / (plan[1] + 1), rel=1e-12)


@pytest.mark.parametrize("second", [1e-9, 1e-4, 1e6])
def test_suboptimality_of_any_unit_of_time(second):
    """All rates times the same, requests as they are: the share lost is the same."""
    true, believed, importance = problems(6)
    lost = regret.suboptimality(true, believed, importance, 4.0)
    rates = true * second, believed * second
    found = regret.suboptimality(*rates, importance, 4.0 * second)
    np.testing.assert_allclose(found, lost, rtol=1e-9, atol=1e-12)
    assert (lost > 1e-3).any()


@pytest.mark.parametrize("bandwidth", [0.1, 4.0, 100.0])
def test_the_bounds_of_lemma_4_are_in_order(bandwidth):
    true, believed, importance = pages = problems(5)
    lost = regret.suboptimality(*pages, bandwidth)
    quarter = regret.sensitivity_bound(*pages) / 4
    expected = [plain.sensitivity_bound(*row) / 4 for row in zip(*pages, strict=True)]
    np.testing.assert_allclose(quarter, expected, rtol=1e-12)
    crawl = allocation.optimal_poisson(believed, importance, bandwidth).crawl_rate
    rows = zip(*pages, crawl, strict=True)
    sharp = np.array([plain.sharp_sensitivity_bound(*row) for row in rows])
    assert (lost <= sharp * (1 + 1e-9)).all()
    assert (sharp <= quarter * (1 + 1e-12)).all()
    assert (lost / sharp).max() > 0.5  # sharp indeed
    # without crawls and near the truth 1/4 is the constant
    near = true, true * (1 + 1e-4), importance
    rows = zip(*near, np.zeros_like(crawl), strict=True)
    sharp = [plain.sharp_sensitivity_bound(*row) for row in rows]
    np.testing.assert_allclose(sharp, regret.sensitivity_bound(*near) / 4, rtol=1e-3)


# ------------------------------ Lemma 5 and Theorem 1

SIZES = [(10, 5.0, 40, 1.0, 0.9), (500, 100.0, 7, 0.3, 0.5), (3, 30.0, 1000, 20, 0.999)]


@pytest.mark.parametrize(("m", "bandwidth", "n", "max_rate", "level"), SIZES)
def test_the_radius_is_that_of_lemma_3_with_a_union_bound(
    m, bandwidth, n, max_rate, level
):
    history = simulate_history(1.0, interval=m / bandwidth, n_crawls=n, rng=0)
    each = {"max_rate": max_rate, "level": 1 - (1 - level) / m}
    lemma_3 = estimators.confidence_radius(history, **each)
    options = {"max_rate": max_rate, "level": level}
    found = regret.exploration_radius(m, bandwidth, n * m / bandwidth, **options)
    assert found == pytest.approx(lemma_3, rel=1e-10)
    formula = plain.exploration_radius(m, bandwidth, n * m / bandwidth, max_rate, level)
    assert found == pytest.approx(formula, rel=1e-12)
    options["level"] = 1.0  # nothing is certain
    assert regret.exploration_radius(m, bandwidth, n, **options) == np.inf


@pytest.mark.parametrize(
    ("m", "bandwidth", "bounds"),
    [(100, 300.0, (0.5, 1.5)), (20, 20.0, (0.3, 1.0)), (1, 2.0, (0.5, 0.6))],
)
def test_the_exploration_of_theorem_1_minimises_the_bound(m, bandwidth, bounds):
    importance = np.random.default_rng(7).lognormal(0, 1, m)
    options = {"horizon": 1e5, "bounds": bounds, "level": 0.95}
    chosen = regret.optimal_exploration(m, bandwidth, **options)
    one_round = m / bandwidth
    assert chosen / one_round == pytest.approx(round(chosen / one_round), abs=1e-9)
    printed = plain.optimal_exploration(1e5, m, bandwidth, bounds, 0.95)
    assert chosen == pytest.approx(printed, abs=0.5001 * one_round)

    def bound(length):
        return regret.regret_bound(importance, bandwidth, exploration=length, **options)

    grid = np.arange(1, int(1e5 / one_round)) * one_round
    assert bound(chosen) == pytest.approx(bound(grid).min(), rel=1e-12)
    formula = plain.regret_bound(chosen, 1e5, importance, bandwidth, bounds, 0.95)
    assert bound(chosen) == pytest.approx(formula, rel=1e-12)
    free = optimize.minimize_scalar(
        bound, bounds=(one_round, 1e5), method="bounded", options={"xatol": 1e-6}
    )
    assert chosen == pytest.approx(free.x, abs=0.5001 * one_round)
    short = regret.optimal_exploration(m, bandwidth, **options | {"horizon": 1e-9})
    assert short == one_round
    assert np.isnan(bound([1e6])).all()  # beyond the horizon


# ------------------------------ bad input

POSITIVE, RISE = "must be positive and finite, got", "must be rising, at least"
ONE = ([1.0], [1.0], [1.0])


def radius(n_pages=4, exploration=8.0, level=0.9):
    return regret.exploration_radius(
        n_pages, 2.0, exploration, max_rate=1.0, level=level
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: regret.utility([-1.0], [1.0], [1.0]),
            "change_rate must be non-negative and finite, got -1.0 at index (0,)",
        ),
        (lambda: regret.burn_in([1.0], 0.0, min_rate=1), f"tolerance {POSITIVE} 0.0"),
        (lambda: regret.burn_in([1.0], 0.1, min_rate=0), f"min_rate {POSITIVE} 0.0"),
        (lambda: regret.suboptimality(*ONE, 0.0), f"bandwidth {POSITIVE} 0.0"),
        (lambda: radius(level=0.0), "level must be in (0, 1], got 0.0"),
        (lambda: radius(n_pages=0), "n_pages must be an integer of at least 1, got 0"),
        (lambda: radius(exploration=-8.0), f"exploration {POSITIVE} -8.0"),
        (
            lambda: regret.optimal_exploration(4, 2.0, horizon=9.0, bounds=(1.0, 0.5)),
            f"bounds {RISE} 2 numbers, got [1.  0.5]",
        ),
    ],
)
def test_regret_refuses(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
