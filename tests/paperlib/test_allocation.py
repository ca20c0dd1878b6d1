"""Allocations: optimality, other solvers, invariances, edges, errors."""

import itertools
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize
from scipy.special import gammainc

from paperlib import freshness, lemma_4
from paperlib.allocation import (
    optimal_interval,
    optimal_poisson,
    optimal_thresholds,
    proportional,
    uniform,
)
from paperlib.errors import ConvergenceError
from paperlib.signals import SignalledPages
from tests import plain

OPTIMAL = {"poisson": optimal_poisson, "interval": optimal_interval}
MODEL = {"poisson": freshness.poisson, "interval": freshness.interval}
both = pytest.mark.parametrize("kind", OPTIMAL)
# The example of Cho and Garcia-Molina (2003), with their rates to two decimals.
CHO = np.arange(1.0, 6.0), np.ones(5), 5.0
PRINTED = [1.15, 1.36, 1.35, 1.14, 0.00]


def population(seed, n=60, spread=1.0):
    """Lognormal change rates and importances."""
    return np.random.default_rng(seed).lognormal(0, spread, (2, n))


def noisy_pages(seed, n, recall=None):
    """Pages as in figure 4 of Busa-Fekete et al. (2025)."""
    rng = np.random.default_rng(seed)
    rates, drawn = rng.random((2, n)), rng.beta(0.25, 0.25, n)
    recall = np.clip(drawn, 1e-3, 0.999) if recall is None else recall
    return SignalledPages(*rates, recall, rng.uniform(0.1, 0.6, n))


def marginal(kind, change_rate, importance, crawl_rate):
    """Derivative of importance x freshness in the crawl rate."""
    if kind == "poisson":
        return importance * change_rate / (crawl_rate + change_rate) ** 2
    with np.errstate(divide="ignore"):  # 1 - (1 + x) exp(-x) of x = d / p
        return importance / change_rate * gammainc(2, change_rate / crawl_rate)


# ------------------------------------------------- closed forms and optimality


def test_the_printed_example():
    assert_allclose(optimal_interval(*CHO).crawl_rate, PRINTED, atol=5e-3)
    expected = [1.386, 1.374, 1.133, 0.772, 0.335]
    assert_allclose(optimal_poisson(*CHO).crawl_rate, expected, atol=5e-4)


@both
@pytest.mark.parametrize("bandwidth", [0.1, 10.0, 60.0, 1e4])
@pytest.mark.parametrize("spread", [0.5, 1.0, 3.0])
def test_one_more_crawl_gains_the_same_everywhere(kind, bandwidth, spread):
    change_rate, importance = population(1, spread=spread)
    best = OPTIMAL[kind](change_rate, importance, bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-12, abs=0)
    gain = marginal(kind, change_rate, importance, best.crawl_rate)
    crawled = best.crawl_rate > 0
    assert_allclose(gain[crawled], best.multiplier, rtol=1e-10)
    limit = (importance / change_rate)[~crawled]
    assert (limit <= best.multiplier * (1 + 1e-10)).all()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99, 1.0])
def test_least_rates(share):
    change_rate, importance = population(2)
    least = share * 20.0 / 60
    best = optimal_poisson(change_rate, importance, 20.0, min_rate=least)
    assert best.crawl_rate.sum() == pytest.approx(20.0, rel=1e-12, abs=0)
    assert (best.crawl_rate >= least * (1 - 1e-14)).all()
    gain = marginal("poisson", change_rate, importance, best.crawl_rate)
    above = best.crawl_rate > least * (1 + 1e-10)
    assert above.any() == (share < 1)
    assert_allclose(gain[above], best.multiplier, rtol=1e-10)
    assert (gain[~above] <= best.multiplier * (1 + 1e-10)).all()


def test_poisson_rates_by_sorting():
    """Azar et al. (2018): of the pages sorted by importance / rate, a prefix."""
    change_rate, importance = population(4)
    order = np.argsort(-importance / change_rate)
    d, mu = change_rate[order], importance[order]
    roots, rest = np.cumsum(np.sqrt(mu * d)), 15.0 + np.cumsum(d)
    n = np.count_nonzero(np.sqrt(mu / d) * rest > roots)
    v = rest[n - 1] / roots[n - 1]
    expected = np.zeros(60)
    expected[order[:n]] = (v * np.sqrt(mu * d) - d)[:n]
    assert 0 < n < 60
    best = optimal_poisson(change_rate, importance, 15.0)
    assert_allclose(best.crawl_rate, expected, rtol=1e-10, atol=1e-12)
    assert best.multiplier == pytest.approx(v**-2, rel=1e-10, abs=0)


def test_heuristics():
    problem = [1.0, 3.0, 0.0], [2.0, 1.0, 1.0], 8.0
    for plan, rate in ((uniform, 8 / 3 * np.ones(3)), (proportional, [2, 6, 0])):
        found = plan(*problem)
        assert_allclose(found.crawl_rate, rate, rtol=1e-12)
        expected = freshness.mean(freshness.poisson(problem[0], rate), problem[1])
        assert found.freshness == pytest.approx(expected, rel=1e-12)
        assert found.multiplier is None
        assert found.freshness < optimal_poisson(*problem).freshness


@both
def test_rates_around_the_optimum_are_less_fresh(kind):
    change_rate, importance = population(6)
    best = OPTIMAL[kind](change_rate, importance, 20.0)
    here = freshness.mean(MODEL[kind](change_rate, best.crawl_rate), importance)
    assert best.freshness == pytest.approx(here, rel=1e-12)
    shift = 1e-3 * np.random.default_rng(7).normal(size=(200, 60))
    rate = np.maximum(best.crawl_rate + shift, 0)
    rate *= 20.0 / rate.sum(axis=-1, keepdims=True)
    around = freshness.mean(MODEL[kind](change_rate, rate), importance)
    assert (around < best.freshness).all()


@both
def test_the_multiplier_is_the_value_of_bandwidth(kind):
    change_rate, importance = population(8)
    step = 1e-4
    less, here, more = (
        OPTIMAL[kind](change_rate, importance, 20 * (1 + s)) for s in (-step, 0, step)
    )
    slope = (more.freshness - less.freshness) * importance.sum() / (40 * step)
    # a central difference: errors of step^2, and of 1e-16 / step
    assert slope == pytest.approx(here.multiplier, rel=1e-6, abs=0)


# ------------------------------------------------------ an independent solver


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed", "n", "bandwidth", "least"),
    [
        ("poisson", 9, 30, 10.0, 0.0),
        ("poisson", 10, 30, 100.0, 0.0),
        ("poisson", 12, 50, 25.0, 0.4),
        ("interval", 13, 30, 10.0, 0.0),
        ("interval", 14, 30, 100.0, 0.0),
    ],
)
def test_rates_agree_with_a_convex_solver(kind, seed, n, bandwidth, least):
    cp = pytest.importorskip("cvxpy")
    d, mu = population(seed, n)
    rate, z = cp.Variable(n), cp.Variable(n)
    if kind == "poisson":  # z >= 1 / (rate + d)
        cone = cp.PowCone3D(rate + d, z, np.ones(n), np.full(n, 0.5))
        cost, options = (mu * d) @ z, {"min_rate": least}
    else:  # z >= rate exp(-d / rate)
        cone = cp.ExpCone(cp.Constant(-d), rate, z)
        cost, options = (mu / d) @ (z - rate), {}
    constraints = [cone, cp.sum(rate) == bandwidth, rate >= least]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot certify these tolerances
        cp.Problem(cp.Minimize(cost), constraints).solve(
            solver=cp.CLARABEL,
            max_iter=500,
            max_step_fraction=0.8,
            **{f"tol_{name}": 1e-15 for name in ("gap_abs", "gap_rel", "feas")},
            iterative_refinement_reltol=1e-16,
            iterative_refinement_abstol=1e-16,
            static_regularization_constant=1e-14,
        )
    best = OPTIMAL[kind](d, mu, bandwidth, **options)
    assert_allclose(best.crawl_rate, rate.value, rtol=0, atol=1e-8)


# ---------------------------------------------------------------- thresholds


@pytest.mark.parametrize("bandwidth", [0.05, 1.0, 5.0, 60.0])
def test_thresholds_are_where_the_crawl_value_is_the_multiplier(bandwidth):
    """Theorem 1, and the freshness w / psi, in the plain forms of Lemma 4."""
    pages = noisy_pages(1, 8)
    best = optimal_thresholds(pages, bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-12, abs=0)
    fresh = []
    page = pages.change_rate, pages.importance, pages.recall, pages.false_rate
    for i, (d, mu, recall, false_rate) in enumerate(zip(*page, strict=True)):
        iota, others = best.threshold[i], (d, recall, false_rate)
        if np.isinf(iota):
            assert best.crawl_rate[i] == 0
            assert mu / d <= best.multiplier
            fresh.append(0.0)
            continue
        value = plain.crawl_value(iota, 0, d, mu, recall, false_rate)
        # the plain form cancels
        assert value == pytest.approx(best.multiplier, rel=1e-9, abs=1e-13 * mu / d)
        psi = plain.mean_crawl_interval(iota, *others)
        assert 1 / psi == pytest.approx(best.crawl_rate[i], rel=1e-11)
        fresh.append(plain.fresh_time(iota, *others) / psi)
    expected = freshness.mean(fresh, pages.importance)
    assert best.freshness == pytest.approx(expected, rel=1e-10)


def test_no_other_thresholds_are_fresher():
    pages = noisy_pages(2, 3, recall=[0.2, 0.5, 0.7])
    page = list(zip(pages.change_rate, pages.recall, pages.false_rate, strict=True))

    def rates(logs):
        pairs = zip(np.exp(logs), page, strict=True)
        return [1 / plain.mean_crawl_interval(iota, *one) for iota, one in pairs]

    def stale(logs):
        pairs = zip(np.exp(logs), rates(logs), page, strict=True)
        fresh = [rate * plain.fresh_time(iota, *one) for iota, rate, one in pairs]
        return -freshness.mean(fresh, pages.importance)

    best = optimal_thresholds(pages, 2.0)
    spend = {"type": "eq", "fun": lambda logs: sum(rates(logs)) - 2.0}
    other = minimize(stale, np.zeros(3), constraints=spend, options={"ftol": 1e-12})
    assert -other.fun == pytest.approx(best.freshness, abs=1e-9)
    assert_allclose(rates(other.x), best.crawl_rate, atol=1e-3)  # flat there


@pytest.mark.parametrize("false_rate", [0.0, 0.3])
def test_thresholds_without_informative_signals_are_equal_intervals(false_rate):
    change_rate, importance = population(3, 20)
    pages = SignalledPages(change_rate, importance, 0.0, false_rate)
    found = optimal_thresholds(pages, 6.0)
    expected = optimal_interval(change_rate, importance, 6.0)
    assert_allclose(found.crawl_rate, expected.crawl_rate, rtol=1e-10, atol=1e-12)
    assert found.multiplier == pytest.approx(expected.multiplier, rel=1e-12)
    assert found.freshness == pytest.approx(expected.freshness, rel=1e-12)


@pytest.mark.parametrize("bandwidth", [0.3, 2.0, 4.0, 9.0, 1e3])
def test_pages_of_recall_1_are_crawled_after_whole_numbers_of_signals(bandwidth):
    """The best of many splits; each signal multiplies the freshness by nu / gamma."""
    d, mu, nu = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]])
    best = optimal_thresholds(SignalledPages(d, mu, 1.0, nu), bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-12)

    def fresh(i, rate):  # crawled after n signals, or after n and n + 1 in turn
        n = max((d + nu)[i] / rate, 1.0)
        decay, whole = (nu / (d + nu))[i], n // 1
        fresh = (1 - decay**whole) / (1 - decay) + n % 1 * decay**whole
        return mu[i] * fresh / n

    split = np.linspace(1e-9, bandwidth - 1e-9, 4001)
    highest = max(fresh(0, one) + fresh(1, bandwidth - one) for one in split)
    assert best.freshness == pytest.approx(highest / mu.sum(), abs=1e-4)


@pytest.mark.parametrize("recall", [0.0, 0.5, 1.0])
def test_signals_without_false_ones(recall):
    pages = SignalledPages([1.0, 3.0, 0.5], [1.0, 2.0, 0.1], recall, 0.0)
    freshest = [optimal_thresholds(pages, r) for r in (0.05, 0.5, 5.0, 50.0)]
    for best, r in zip(freshest, (0.05, 0.5, 5.0, 50.0), strict=True):
        assert best.crawl_rate.sum() == pytest.approx(r, rel=1e-12)
    # crawl values, of which these are sums, are right to 1e-13
    assert (np.diff([best.freshness for best in freshest]) >= -1e-13).all()
    signalled = recall * pages.change_rate
    if recall > 0:  # crawled at every signal at least, or never, but for one page
        rate = freshest[2].crawl_rate
        assert np.sum((rate > 0) & (rate < signalled * (1 - 1e-9))) <= 1


def test_a_least_crawl_rate_with_signals_is_the_optimum_of_the_other_pages():
    """Appendix A of Busa-Fekete et al. (2025): no page is abandoned."""
    pages, bandwidth, least = noisy_pages(7, 30), 4.0, 0.02
    parameters = tuple(vars(pages).values())

    def of(which):
        return SignalledPages(*(x[which] for x in parameters))

    free = np.ones(30, dtype=bool)
    for _ in range(30):  # those below the least rate get it, the others share the rest
        plan = optimal_thresholds(of(free), bandwidth - least * (~free).sum())
        low = np.flatnonzero(free)[plan.crawl_rate < least]
        if not low.size:
            break
        free[low] = False
    assert 0 < (~free).sum() < 30

    def too_rare(log, i):
        threshold = np.where(np.arange(30) == i, np.exp(log), 1.0)
        return freshness.mean_crawl_interval(threshold, pages)[i] - 1 / least

    for i in np.flatnonzero(~free):  # a crawl more would gain less than elsewhere
        threshold = np.exp(brentq(too_rare, -10, 20, args=(i,)))
        value = freshness.crawl_value(threshold, 0, pages)[i]
        assert value < plan.multiplier * (1 + 1e-9)
    assert_allclose(plan.crawl_rate.sum() + least * (~free).sum(), bandwidth)


# ---------------------------------------------------------------- invariances


def every_optimum(seed):
    """Each optimum as a function of change rate, importance and bandwidth."""
    recall = np.random.default_rng(seed).random(12)

    def thresholds(change_rate, importance, bandwidth, order=slice(None)):
        false_rate = change_rate / (1 + np.arange(12))[order]
        pages = SignalledPages(change_rate, importance, recall[order], false_rate)
        return optimal_thresholds(pages, bandwidth)

    return [optimal_poisson, optimal_interval, thresholds]


@pytest.mark.parametrize("which", range(3))
def test_units_order_and_bandwidth(which):
    optimal, (d, mu) = every_optimum(17)[which], population(17, 12)
    here = optimal(d, mu, 4.0)
    for unit, weight in itertools.product((1e-6, 24.0, 1e6), repeat=2):
        there = optimal(d / unit, mu * weight, 4.0 / unit)
        close = {"rtol": 1e-10, "atol": 1e-10}
        assert_allclose(there.crawl_rate * unit, here.crawl_rate, **close)
        assert_allclose(there.multiplier / unit / weight, here.multiplier, rtol=1e-10)
        assert_allclose(there.freshness, here.freshness, rtol=1e-10)
    order = np.random.default_rng(20).permutation(12)
    options = {"order": order} if which == 2 else {}
    there = optimal(d[order], mu[order], 4.0, **options).crawl_rate
    assert_allclose(there, here.crawl_rate[order], rtol=1e-10, atol=1e-12)
    plans = [optimal(d, mu, r) for r in np.geomspace(1e-3, 1e5, 40)]
    # near freshness 1, and where bandwidth is scarce, differences are rounding
    assert (np.diff([p.freshness for p in plans]) > -1e-14).all()
    multiplier = np.array([p.multiplier for p in plans])
    assert (multiplier[1:] <= multiplier[:-1] * (1 + 1e-9)).all()
    rate = np.array([p.crawl_rate for p in plans])
    assert (np.diff(rate, axis=0) >= -1e-9 * rate[1:]).all()


@both
def test_each_leading_index_is_a_problem_of_its_own(kind):
    change_rate = np.stack([population(s, 20)[0] for s in range(6)]).reshape(2, 3, 20)
    importance = population(22, 20)[1]
    change_rate[1, 1] = 0.0  # where nothing can be gained
    together = OPTIMAL[kind](change_rate, importance, 5.0)
    assert together.crawl_rate.shape == (2, 3, 20)
    assert together.multiplier.shape == together.freshness.shape == (2, 3)
    for i in np.ndindex(2, 3):
        alone = OPTIMAL[kind](change_rate[i], importance, 5.0)
        for name in ("crawl_rate", "multiplier", "freshness"):
            assert_array_equal(getattr(together, name)[i], getattr(alone, name))
    assert_array_equal(uniform(change_rate, importance, 5.0).crawl_rate, 0.25)


# ----------------------------------------------------------- edges and extremes


@pytest.mark.parametrize("which", range(3))
def test_pages_that_never_change_or_do_not_matter_get_nothing(which):
    def optimal(change_rate, importance):
        if which == 2:
            return optimal_thresholds(SignalledPages(change_rate, importance, 0.4), 4.0)
        return (optimal_poisson, optimal_interval)[which](change_rate, importance, 4.0)

    best = optimal([0.0, 1.0, 2.0, 0.0, 3.0], [1.0, 0.0, 2.0, 0.0, 1.0])
    assert_array_equal(best.crawl_rate[[0, 1, 3]], 0)
    alone = optimal([2.0, 3.0], [2.0, 1.0])
    assert_allclose(best.crawl_rate[[2, 4]], alone.crawl_rate, rtol=1e-10)
    # a page that never changes is fresh
    assert best.freshness == pytest.approx((1 + 3 * alone.freshness) / 4, rel=1e-10)
    idle = optimal([0.0, 5.0], [1.0, 0.0])
    assert not idle.crawl_rate.any()
    assert (idle.multiplier, idle.freshness) == (0, 1)


def test_least_rates_go_to_idle_pages_too():
    for problem, least, expected in (
        (([0.0, 2.0, 2.0], [1.0, 0.0, 1.0], 4.0), 0.5, [0.5, 0.5, 3.0]),
        (([1.0, 2.0], 1.0, 4.0), 2.0, [2.0, 2.0]),
        (([0.0, 0.0], 1.0, 4.0), 1.0, [1.0, 1.0]),
    ):
        found = optimal_poisson(*problem, min_rate=least).crawl_rate
        assert_allclose(found, expected, rtol=1e-12)


@both
@pytest.mark.parametrize("bandwidth", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("n", [1, 7])
def test_equal_pages_get_equal_rates(kind, bandwidth, n):
    best = OPTIMAL[kind](np.full(n, 2.0), 3.0, bandwidth)
    assert_allclose(best.crawl_rate, bandwidth / n, rtol=1e-12)
    assert best.freshness == pytest.approx(MODEL[kind](2.0, bandwidth / n), rel=1e-12)


@both
@pytest.mark.parametrize("bandwidth", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("spread", [0.0, 0.5, 6.0])  # decades either way
def test_twelve_decades(kind, bandwidth, spread):
    powers = np.random.default_rng(23).uniform(-spread, spread, (2, 40))
    change_rate, importance = 10**powers
    best = OPTIMAL[kind](change_rate, importance, bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-12, abs=0)
    gain = marginal(kind, change_rate, importance, best.crawl_rate)
    # Where bandwidth is scarce, all multipliers within 1e-9 give these rates.
    assert (gain <= best.multiplier * (1 + 1e-9)).all()
    lost = best.crawl_rate @ (best.multiplier - gain)
    assert lost <= 1e-9 * bandwidth * best.multiplier


def test_a_scarce_bandwidth_among_huge_change_rates():
    """Over 21 decades. A crawl of page 0 gains mu / d, whatever its rate."""
    second = np.sqrt(4.1e-10 * 1.8e-7 / (2.88e9 / 8.16e14)) - 1.8e-7
    best = optimal_poisson([8.16e14, 1.8e-7], [2.88e9, 4.1e-10], 5e-4)
    assert_allclose(best.crawl_rate, [5e-4 - second, second], rtol=1e-9)


def test_thresholds_of_pages_far_from_typical_ones():
    """Newton's method alone takes more than ten thousand steps."""
    pages = SignalledPages(
        [3.98587196779933e-05, 19.925183909260156],
        [0.006753540932692304, 4.739903752498171e-12],
        [0.6756780879691183, 0.2039073800978377],
        [9796080238.732967, 5.29446874268064e-05],
    )
    best = optimal_thresholds(pages, 2222681859840.446)
    assert best.crawl_rate.sum() == pytest.approx(2222681859840.446, rel=1e-9)


def test_rates_that_do_not_spend_the_bandwidth_are_an_error():
    """Signals are 1e8 times as frequent as changes: crawl values are rounding."""
    page = SignalledPages([3.8e-05], [7.3e-07], [0.41], [5000.0])
    message = r"rates must spend 78\.0, got 78\.0000001"
    with pytest.raises(ConvergenceError, match=message):
        optimal_thresholds(page, 78.0)


def test_the_inverse_of_the_value_without_signals():
    """1 - (1 + x) exp(-x), which is x^2 / 2 for small x."""
    share = 10.0 ** np.arange(-300.0, -30.0, 7.0)
    x = [lemma_4.inverse_value(y) for y in share]
    assert_allclose(x, np.sqrt(2 * share), rtol=5e-15)
    share = np.concatenate([10.0 ** np.arange(-14.0, 0.0), 1 - 0.5 ** np.arange(1, 53)])
    x = [lemma_4.inverse_value(y) for y in share]
    assert_allclose(gammainc(2, x), share, rtol=2e-14)


# -------------------------------------------------------------------- bad input

D, M = [1.0, 2.0], [1.0, 1.0]


@pytest.mark.parametrize(
    "plan", [uniform, proportional, optimal_poisson, optimal_interval]
)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((D, M, 0), "bandwidth must be positive and finite, got 0.0"),
        ((D, M, np.nan), "bandwidth must be positive and finite, got nan"),
        ((D, M, D), "bandwidth must be one number, got shape (2,)"),
        (([1, -2], M, 1), "change_rate must be non-negative and finite, got -2.0 at"),
        (([[1, np.inf]], M, 1), "change_rate must be non-negative and finite, got inf"),
        ((D, [1, -1], 1), "importance must be non-negative and finite, got -1.0 at"),
        ((D, 0.0, 1), "importance must be positive for at least one page, got 0.0"),
        ((D, [1, 1, 1], 1), "shapes must fit together, got change_rate (2,), importa"),
    ],
)
def test_every_allocation_refuses(plan, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plan(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: optimal_poisson(D, M, 1.0, min_rate=0.6),
            "min_rate must be in [0, 0.5], got 0.6",
        ),
        (
            lambda: optimal_poisson(D, M, 1.0, min_rate=-0.1),
            "min_rate must be in [0, 0.5], got -0.1",
        ),
        (
            lambda: proportional([0.0, 0.0], M, 1.0),
            "change_rate must be positive for at least one page, got 0.0",
        ),
        (
            lambda: optimal_poisson([], [], 1.0),
            "change_rate must have at least one page, got none",
        ),
        (
            lambda: uniform(np.empty((2, 0)), 1.0, 1.0),
            "change_rate must have at least one page, got none",
        ),
        (
            lambda: optimal_thresholds(SignalledPages(D, M), -1.0),
            "bandwidth must be positive and finite, got -1.0",
        ),
    ],
)
def test_allocations_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@both
def test_rates_stay_within_the_bandwidth_over_forty_decades(kind):
    rng = np.random.default_rng(17)
    for n in rng.integers(1, 6, 300):
        rate, importance = 10 ** rng.uniform(-20, 20, (2, n))
        bandwidth = 10 ** rng.uniform(-20, 20)
        best = OPTIMAL[kind](rate, importance, bandwidth).crawl_rate
        assert (best >= 0).all()
        assert best.sum() <= bandwidth * (1 + 1e-9)
