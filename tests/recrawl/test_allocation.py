"""Allocations: optimality, printed examples, solvers, invariances, errors."""

import functools
import re
import warnings

import numba
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammainc, gammaincc

from recrawl.kernels import allocation as _rates
from recrawl.kernels.objectives import inverse_gamma2
from recrawl.science import allocation, freshness
from recrawl.science import hosts as host_module
from recrawl.science.allocation import (
    Allocation,
    optimal,
    proportional,
    uniform,
)
from recrawl.science.estimators import ConvergenceError

at_poisson_times = functools.partial(optimal, crawls="poisson")
OPTIMAL = {"poisson": at_poisson_times, "interval": optimal}
MODEL = {"poisson": freshness.poisson, "interval": freshness.interval}
both = pytest.mark.parametrize("kind", OPTIMAL)
# The example of Cho and Garcia-Molina (2003).
CHO = np.arange(1.0, 6.0), np.ones(5), 5.0


def polite(change_rate, importance, bandwidth, host, host_limit, crawls="poisson"):
    """The rates of highest freshness under limits of hosts."""
    limits = {"host": host, "host_limit": host_limit}
    return optimal(change_rate, importance, bandwidth, crawls=crawls, **limits)


def population(seed, n=60, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.lognormal(0, spread, n), rng.lognormal(0, spread, n)


def marginal(kind, change_rate, importance, crawl_rate):
    """Derivative of importance x freshness in the crawl rate, as printed."""
    if kind == "poisson":
        return importance * change_rate / (crawl_rate + change_rate) ** 2
    with np.errstate(divide="ignore"):
        return (
            importance / change_rate * gammainc(2, change_rate / crawl_rate)
        )  # 1 - (1 + x) exp(-x)


# ------------------------------ closed forms and optimality


def test_the_example_of_cho_and_garcia_molina():
    np.testing.assert_allclose(
        optimal(*CHO).crawl_rate,
        [1.150, 1.358, 1.354, 1.138, 0.000],
        atol=5e-4,
    )
    np.testing.assert_allclose(
        at_poisson_times(*CHO).crawl_rate,
        [1.386, 1.374, 1.133, 0.772, 0.335],
        atol=5e-4,
    )


@both
@pytest.mark.parametrize("bandwidth", [0.1, 10.0, 60.0, 1e4])
@pytest.mark.parametrize("spread", [0.5, 1.0, 3.0])
def test_the_optimality_conditions_hold(kind, bandwidth, spread):
    change_rate, importance = population(1, spread=spread)
    best = OPTIMAL[kind](change_rate, importance, bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-10, abs=0)
    assert (best.crawl_rate >= 0).all()
    gain, crawled = (
        marginal(kind, change_rate, importance, best.crawl_rate),
        best.crawl_rate > 0,
    )
    np.testing.assert_allclose(gain[crawled], best.multiplier, rtol=1e-10)
    assert (
        importance[~crawled] / change_rate[~crawled] <= best.multiplier * (1 + 1e-10)
    ).all()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99, 1.0])
def test_the_optimality_conditions_hold_with_minimum_rates(share):
    (change_rate, importance), bandwidth = population(2), 20.0
    least = np.random.default_rng(3).dirichlet(np.ones(60)) * share * bandwidth
    best = at_poisson_times(change_rate, importance, bandwidth, min_rate=least)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-10, abs=0)
    assert (best.crawl_rate >= least).all()
    gain = marginal("poisson", change_rate, importance, best.crawl_rate)
    above = best.crawl_rate > least * (1 + 1e-10)
    assert above.any() == (share < 1)
    np.testing.assert_allclose(gain[above], best.multiplier, rtol=1e-10)
    assert (gain[~above] <= best.multiplier * (1 + 1e-10)).all()


def test_poisson_rates_are_the_sorted_closed_form():
    """Azar et al. 2018: of the pages sorted by ratio, a prefix is crawled.

    The multiplier follows from the sums over the prefix.
    """
    (change_rate, importance), bandwidth = population(4), 15.0
    order = np.argsort(-importance / change_rate)
    d, m = change_rate[order], importance[order]
    roots, rest = np.cumsum(np.sqrt(m * d)), bandwidth + np.cumsum(d)
    kept = np.count_nonzero(np.sqrt(m / d) * rest > roots)
    c = rest[kept - 1] / roots[kept - 1]
    expected = np.zeros(60)
    expected[order[:kept]] = c * np.sqrt(m * d)[:kept] - d[:kept]
    assert 0 < kept < 60
    best = at_poisson_times(change_rate, importance, bandwidth)
    np.testing.assert_allclose(best.crawl_rate, expected, rtol=1e-10, atol=1e-12)
    assert best.multiplier == pytest.approx(c**-2, rel=1e-10, abs=0)


def test_heuristics():
    change_rate, importance, bandwidth = (
        np.array([1.0, 3.0, 0.0]),
        np.array([2.0, 1.0, 1.0]),
        8.0,
    )
    np.testing.assert_allclose(
        uniform(change_rate, importance, bandwidth).crawl_rate, [8 / 3] * 3, rtol=1e-12
    )
    np.testing.assert_allclose(
        proportional(change_rate, importance, bandwidth).crawl_rate,
        [2.0, 6.0, 0.0],
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        proportional(change_rate, importance, bandwidth, to="importance").crawl_rate,
        [4.0, 2.0, 2.0],
        rtol=1e-12,
    )
    for model in MODEL.values():
        for heuristic in (uniform, proportional):
            plan = heuristic(change_rate, importance, bandwidth, model=model)
            assert np.isnan(plan.multiplier)
            assert plan.freshness == pytest.approx(
                model(change_rate, plan.crawl_rate) @ importance / 4, rel=1e-12, abs=0
            )
    # Cho and Garcia-Molina's theorem: uniform is at least as fresh as
    # proportional, whatever the change rates
    d = population(5)[0]
    for model in MODEL.values():
        assert (
            uniform(d, 1.0, 30.0, model=model).freshness
            > proportional(d, 1.0, 30.0, model=model).freshness
        )


@both
def test_the_optimum_is_a_little_below_at_every_point_around_it(kind):
    (change_rate, importance), bandwidth = population(6), 20.0
    best = OPTIMAL[kind](change_rate, importance, bandwidth)
    assert best.freshness == pytest.approx(
        MODEL[kind](change_rate, best.crawl_rate) @ importance / importance.sum(),
        rel=1e-12,
        abs=0,
    )
    for shift in np.random.default_rng(7).normal(size=(200, 60)) * 1e-3:
        rate = np.maximum(best.crawl_rate + shift, 0)
        rate *= bandwidth / rate.sum()
        assert (
            freshness.mean(MODEL[kind](change_rate, rate), importance) < best.freshness
        )
    for plan in (uniform, proportional):
        assert (
            plan(change_rate, importance, bandwidth, model=MODEL[kind]).freshness
            < best.freshness
        )


@both
def test_the_multiplier_is_the_marginal_value_of_bandwidth(kind):
    change_rate, importance = population(8)
    step = 1e-4
    low, here, high = (
        OPTIMAL[kind](change_rate, importance, 20 * (1 + s)) for s in (-step, 0, step)
    )
    slope = (high.freshness - low.freshness) * importance.sum() / (40 * step)
    assert slope == pytest.approx(
        here.multiplier, rel=1e-6, abs=0
    )  # central difference: step^2 and 1e-16 / step


# ------------------------------ an independent convex solver


def conic(kind, change_rate, importance, bandwidth, least=0.0, limits=()):
    """The same problem by interior points.

    Cones are chosen for accuracy in the *rates*, about 1e-9 at these settings.
    Of the harmonic problems it leaves about one in thirty at 1e-6, none of the
    ten here; other step fractions leave others there. SLSQP, trust-constr and
    the second-order cone form of 1 / x stop at 1e-8 to 2e-7 in the rates, as
    the objective is flat there.
    """
    import cvxpy as cp

    rate, z = cp.Variable(change_rate.size), cp.Variable(change_rate.size)
    if kind in ("poisson", "harmonic"):  # z >= 1 / (rate + change_rate)
        cone = cp.PowCone3D(
            rate + change_rate,
            z,
            np.ones(change_rate.size),
            np.full(change_rate.size, 0.5),
        )
        cost = (importance * change_rate) @ z
        # log(1 + x / rate) = -log(1 - x / (rate + x)) for the change rate x
        if kind == "harmonic":
            cost = -importance @ cp.log(1 - cp.multiply(change_rate, z))
    else:  # z >= rate exp(-change_rate / rate)
        cone = cp.ExpCone(cp.Constant(-change_rate), rate, z)
        cost = (importance / change_rate) @ (z - rate)
    hosts = [cp.sum(rate[pages]) <= limit for pages, limit in limits]
    total = cp.sum(rate) <= bandwidth if limits else cp.sum(rate) == bandwidth
    problem = cp.Problem(cp.Minimize(cost), [cone, total, rate >= least, *hosts])
    tight = {f"tol_{name}": 1e-15 for name in ("gap_abs", "gap_rel", "feas")}
    refine = {
        "iterative_refinement_reltol": 1e-16,
        "iterative_refinement_abstol": 1e-16,
        "static_regularization_constant": 1e-14,
    }
    problem.solve(
        solver=cp.CLARABEL, max_iter=500, max_step_fraction=0.8, **tight, **refine
    )
    return rate.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed", "n", "bandwidth", "least"),
    [
        ("poisson", None, 5, 5.0, 0.0),
        ("poisson", 9, 30, 10.0, 0.0),
        ("poisson", 10, 30, 100.0, 0.0),
        ("poisson", 11, 30, 10.0, 0.05),
        ("poisson", 12, 50, 25.0, np.linspace(0, 0.9, 50)),
        ("interval", None, 5, 5.0, 0.0),
        ("interval", 13, 30, 10.0, 0.0),
        ("interval", 14, 30, 100.0, 0.0),
        ("interval", 15, 50, 25.0, 0.0),
    ],
)
def test_rates_agree_with_a_convex_solver(kind, seed, n, bandwidth, least):
    change_rate, importance = CHO[:2] if seed is None else population(seed, n)
    options = {"min_rate": least} if kind == "poisson" else {}
    best = OPTIMAL[kind](change_rate, importance, bandwidth, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot certify the tolerances asked of it
        theirs = conic(kind, change_rate, importance, bandwidth, least)
    np.testing.assert_allclose(best.crawl_rate, theirs, rtol=0, atol=1e-8)
    assert (
        freshness.mean(MODEL[kind](change_rate, np.maximum(theirs, 0)), importance)
        <= best.freshness + 1e-12
    )


def test_tabulated_intervals_are_the_inverse_of_the_incomplete_gamma_function():
    rng = np.random.default_rng(17)
    y = np.concatenate(
        [
            10 ** rng.uniform(-300, 0, 2000),
            rng.random(20_000),
            1 - 10 ** rng.uniform(-15.9, 0, 2000),
        ]
    )
    few, x = y < 0.5, np.array([inverse_gamma2(level) for level in y])
    np.testing.assert_allclose(
        gammainc(2, x)[few], y[few], rtol=2e-13
    )  # of scipy's, for tiny y
    np.testing.assert_allclose(
        gammaincc(2, x)[~few], (1 - y)[~few], rtol=1e-13
    )  # up to 37 times as far off as x


@pytest.mark.slow
def test_compiled_rates_are_their_plain_bodies(monkeypatch):
    change_rate, importance = population(16, n=12)
    change_rate[3] = importance[4] = 0.0
    calls = [
        lambda k=k, r=r: OPTIMAL[k](change_rate, importance, r).crawl_rate
        for k in OPTIMAL
        for r in (0.01, 3.0, 500.0)
    ]
    calls.append(
        lambda: at_poisson_times(change_rate, importance, 3.0, min_rate=0.1).crawl_rate
    )
    calls.append(
        lambda: polite(change_rate, importance, 3.0, np.arange(12) % 3, 0.7).crawl_rate
    )
    compiled = [call() for call in calls]
    for name, kernel in vars(_rates).copy().items():
        if hasattr(kernel, "py_func"):
            monkeypatch.setattr(_rates, name, kernel.py_func)
    with np.errstate(all="ignore"):  # as compiled: 1 / 0 is inf without a word
        plain = [call() for call in calls]
    for rates, expected in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(rates, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.slow
def test_several_threads_give_what_one_gives():
    n = 250_000  # smaller arrays are left to one thread
    change_rate, importance = population(27, n=n)
    host = np.arange(n) // 1000
    limited = {"max_rate": 0.5, "host": host, "host_limit": 200.0}
    calls = [
        lambda: at_poisson_times(change_rate, importance, n / 5),
        lambda: optimal(change_rate, importance, n / 5),
        lambda: allocation.optimal(change_rate, importance, n / 5, **limited),
    ]
    before, rates = numba.get_num_threads(), []
    try:
        for n_threads in (1, before):
            numba.set_num_threads(n_threads)
            rates.append([call().crawl_rate for call in calls])
    finally:
        numba.set_num_threads(before)
    for one, several in zip(*rates, strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-10, atol=1e-13)


# ------------------------------ invariances


@both
@pytest.mark.parametrize("unit", [1e-12, 24.0, 1e12])
def test_another_unit_of_time_rescales_rates(kind, unit):
    change_rate, importance = population(17)
    here, there = (
        OPTIMAL[kind](change_rate, importance, 20.0),
        OPTIMAL[kind](change_rate / unit, importance, 20.0 / unit),
    )
    np.testing.assert_allclose(
        there.crawl_rate * unit, here.crawl_rate, rtol=1e-10, atol=1e-10
    )
    assert there.freshness == pytest.approx(here.freshness, rel=1e-10, abs=0)
    assert there.multiplier / unit == pytest.approx(here.multiplier, rel=1e-10, abs=0)


@both
@pytest.mark.parametrize("scale", [1e-12, 7.0, 1e12])
def test_only_ratios_of_importance_matter(kind, scale):
    change_rate, importance = population(18)
    here, there = (
        OPTIMAL[kind](change_rate, importance, 20.0),
        OPTIMAL[kind](change_rate, importance * scale, 20.0),
    )
    np.testing.assert_allclose(
        there.crawl_rate, here.crawl_rate, rtol=1e-10, atol=1e-10
    )
    assert there.multiplier == pytest.approx(here.multiplier * scale, rel=1e-10, abs=0)


@both
def test_permuting_pages_permutes_rates(kind):
    (change_rate, importance), order = (
        population(19),
        np.random.default_rng(20).permutation(60),
    )
    shuffled = OPTIMAL[kind](change_rate[order], importance[order], 20.0)
    np.testing.assert_allclose(
        shuffled.crawl_rate,
        OPTIMAL[kind](change_rate, importance, 20.0).crawl_rate[order],
        rtol=1e-10,
        atol=1e-12,
    )


@both
def test_more_bandwidth_never_lowers_freshness_nor_any_rate(kind):
    change_rate, importance = population(21)
    plans = [
        OPTIMAL[kind](change_rate, importance, r) for r in np.geomspace(1e-3, 1e5, 60)
    ]
    assert (np.diff([p.freshness for p in plans]) > 0).all()
    multiplier = np.array([p.multiplier for p in plans])
    assert (
        multiplier[1:] <= multiplier[:-1] * (1 + 2e-10)
    ).all()  # under equal intervals flat where bandwidth is scarce
    assert multiplier[-1] < 1e-3 * multiplier[0]
    rates = np.array([p.crawl_rate for p in plans])
    assert (np.diff(rates, axis=0) >= -1e-12 * rates[1:]).all()


@both
def test_each_leading_index_is_a_problem_of_its_own(kind):
    change_rate = np.stack([population(seed, n=20)[0] for seed in range(6)]).reshape(
        2, 3, 20
    )
    importance = population(22, n=20)[1]
    together = OPTIMAL[kind](change_rate, importance, 5.0)
    assert together.crawl_rate.shape == (2, 3, 20)
    assert together.multiplier.shape == together.freshness.shape == (2, 3)
    for i in np.ndindex(2, 3):
        alone = OPTIMAL[kind](change_rate[i], importance, 5.0)
        np.testing.assert_allclose(together.crawl_rate[i], alone.crawl_rate, rtol=1e-12)
        np.testing.assert_allclose(
            [together.multiplier[i], together.freshness[i]],
            [alone.multiplier, alone.freshness],
            rtol=1e-12,
        )


# ------------------------------ edges and extremes


@both
def test_pages_that_never_change_or_do_not_matter_get_nothing(kind):
    change_rate, importance = (
        np.array([0.0, 1.0, 2.0, 0.0, 3.0]),
        np.array([1.0, 0.0, 2.0, 0.0, 1.0]),
    )
    best = OPTIMAL[kind](change_rate, importance, 4.0)
    np.testing.assert_array_equal(best.crawl_rate[[0, 1, 3]], 0)
    np.testing.assert_allclose(
        best.crawl_rate[[2, 4]],
        OPTIMAL[kind]([2.0, 3.0], [2.0, 1.0], 4.0).crawl_rate,
        rtol=1e-10,
    )
    # the page that never changes counts as fresh
    fresh = MODEL[kind](np.array([2.0, 3.0]), best.crawl_rate[[2, 4]])
    assert best.freshness == pytest.approx(
        (1.0 + fresh @ [2.0, 1.0]) / 4, rel=1e-10, abs=0
    )


@both
def test_where_no_page_can_gain_bandwidth_is_left_over(kind):
    best = OPTIMAL[kind]([0.0, 5.0], [1.0, 0.0], 4.0)
    np.testing.assert_array_equal(best.crawl_rate, 0)
    assert best.multiplier == 0
    assert best.freshness == 1


def test_minimum_rates_go_to_idle_pages_too():
    best = at_poisson_times(
        [0.0, 2.0, 2.0], [1.0, 0.0, 1.0], 4.0, min_rate=[0.5, 0.25, 0.0]
    )
    np.testing.assert_allclose(best.crawl_rate, [0.5, 0.25, 3.25], rtol=1e-12)
    np.testing.assert_allclose(
        at_poisson_times([1.0, 2.0], 1.0, 4.0, min_rate=2.0).crawl_rate,
        [2.0, 2.0],
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        at_poisson_times([0.0, 0.0], 1.0, 4.0, min_rate=1.0).crawl_rate,
        [1.0, 1.0],
        rtol=1e-12,
    )


@both
@pytest.mark.parametrize("bandwidth", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("n", [1, 7])
def test_equal_pages_get_equal_rates(kind, bandwidth, n):
    best = OPTIMAL[kind](np.full(n, 2.0), 3.0, bandwidth)
    np.testing.assert_allclose(best.crawl_rate, bandwidth / n, rtol=1e-10)
    assert best.freshness == pytest.approx(
        MODEL[kind](2.0, bandwidth / n), rel=1e-10, abs=0
    )


@both
@pytest.mark.parametrize("bandwidth", [1e-15, 1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("spread", [0.0, 0.5, 6.0])  # decades either way
def test_the_budget_is_spent_and_the_optimum_found_at_any_scale(
    kind, bandwidth, spread
):
    rng = np.random.default_rng(23)
    change_rate, importance = 10 ** rng.uniform(-spread, spread, (2, 40))
    best = OPTIMAL[kind](change_rate, importance, bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-10, abs=0)
    assert (best.crawl_rate >= 0).all()
    gain = marginal(kind, change_rate, importance, best.crawl_rate)
    # under equal intervals all multipliers within 1e-9 give any scarce
    # bandwidth: the conditions hold to that, not to 1e-10
    assert (gain <= best.multiplier * (1 + 1e-9)).all()
    # freshness lost to what is not optimal, rate x (multiplier - gain), as a
    # share of bandwidth x multiplier
    assert (
        best.crawl_rate @ (best.multiplier - gain) <= 1e-9 * bandwidth * best.multiplier
    )


@both
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_change_rates(kind, scale):
    best = OPTIMAL[kind](CHO[0] * scale, CHO[1], CHO[2] * scale)
    np.testing.assert_allclose(
        best.crawl_rate / scale, OPTIMAL[kind](*CHO).crawl_rate, rtol=1e-10, atol=1e-12
    )
    mixed = OPTIMAL[kind]([1e-12, 1.0, 1e12], 1.0, 1.0)
    assert mixed.crawl_rate.sum() == pytest.approx(1.0, rel=1e-10, abs=0)
    assert mixed.crawl_rate[2] == 0
    gain = marginal(kind, np.array([1e-12, 1.0]), 1.0, mixed.crawl_rate[:2])
    np.testing.assert_allclose(gain, mixed.multiplier, rtol=1e-9)


# ------------------------------ bad input

D, M = [1.0, 2.0], [1.0, 1.0]
every = [
    uniform,
    proportional,
    at_poisson_times,
    optimal,
]


@pytest.mark.parametrize("plan", every)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *[
            ((D, M, bad), f"bandwidth must be positive and finite, got {float(bad)!r}")
            for bad in (0, -1.0, np.nan, np.inf)
        ],
        ((D, M, [1.0, 2.0]), "bandwidth must be a single number, got shape (2,)"),
        (
            ([1.0, -2.0], M, 1.0),
            "change_rate must be non-negative and finite, got -2.0 at index (1,)",
        ),
        (
            ([np.nan, 2.0], M, 1.0),
            "change_rate must be non-negative and finite, got nan at index (0,)",
        ),
        (
            ([[1.0, np.inf]], M, 1.0),
            "change_rate must be non-negative and finite, got inf at index (0, 1)",
        ),
        (
            (D, [1.0, -1.0], 1.0),
            "importance must be non-negative and finite, got -1.0 at index (1,)",
        ),
        (
            (D, [np.nan, 1.0], 1.0),
            "importance must be non-negative and finite, got nan at index (0,)",
        ),
        (
            (D, 0.0, 1.0),
            "importance must be positive for at least one page, got only zeros",
        ),
        ((1.0, 1.0, 1.0), "change_rate must be an array of pages, got a single number"),
        (([], [], 1.0), "change_rate must hold at least one page, got shape (0,)"),
    ],
)
def test_every_allocation_refuses(plan, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plan(*arguments)


def test_minimum_rates_may_have_leading_axes_of_their_own():
    least = np.array([[0.1, 0.2], [0.3, 0.0]])
    together = at_poisson_times(D, M, 1.0, min_rate=least)
    assert together.freshness.shape == together.multiplier.shape == (2,)
    for i in range(2):
        alone = at_poisson_times(D, M, 1.0, min_rate=least[i])
        np.testing.assert_array_equal(together.crawl_rate[i], alone.crawl_rate)
    same = at_poisson_times(D, M, 1.0, min_rate=[[0.1], [0.3]]).crawl_rate
    assert same.shape == (2, 2)


@pytest.mark.parametrize("plan", [at_poisson_times, optimal])
def test_minimum_rates_may_need_all_of_the_bandwidth_and_no_more(plan):
    change_rate, least = np.ones(3), np.array([0.1, 0.2, 0.3])  # of sum 0.6 + 1e-16
    spent = plan(change_rate, 1.0, 0.6, min_rate=least).crawl_rate
    np.testing.assert_allclose(spent, least, rtol=1e-15)
    rule = r"must (sum to|spend) at most the bandwidth, 0\.6"
    with pytest.raises(ValueError, match=rule):
        plan(change_rate, 1.0, 0.6, min_rate=least * (1 + 1e-9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: at_poisson_times(D, M, 1.0, min_rate=[0.0, -0.1]),
            "min_rate must be non-negative and finite, got -0.1 at index (1,)",
        ),
        (
            lambda: at_poisson_times(D, M, 1.0, min_rate=np.nan),
            "min_rate must be non-negative and finite, got nan",
        ),
        (
            lambda: proportional([0.0, 0.0], M, 1.0),
            "change_rate must be positive for at least one page, got only zeros",
        ),
        (
            lambda: proportional(D, M, 1.0, to="size"),
            "to must be 'change_rate' or 'importance', got 'size'",
        ),
    ],
)
def test_allocations_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_solver_that_gives_up_hands_over_its_last_iterate(monkeypatch):
    monkeypatch.setattr(_rates, "limited_rates", lambda *_: np.nan)
    with pytest.raises(
        ConvergenceError, match="the allocation did not converge"
    ) as error:
        at_poisson_times(D, M, 1.0)
    assert error.value.last.shape == (2,)


def test_an_allocation_cannot_be_changed():
    best = at_poisson_times(*CHO)
    assert isinstance(best, Allocation)
    assert best.threshold is None
    with pytest.raises(AttributeError):
        best.crawl_rate = np.zeros(5)


# ------------------------------ limits of hosts


def hosts(seed, n=30):
    """Pages, bandwidth, hosts, and limits of most hosts; about half bind."""
    rng = np.random.default_rng(seed)
    change_rate, importance = rng.lognormal(0, 1, (2, n))
    host, bandwidth = rng.integers(0, 6, n), rng.uniform(5, 60)
    return (
        change_rate,
        importance,
        bandwidth,
        host,
        {
            h: bandwidth * rng.uniform(0.02, 0.4)
            for h in range(6)
            if rng.random() < 0.75
        },
    )


@pytest.mark.parametrize("bandwidth", [1e-12, 1.0, 50.0, 1e4, 1e12])
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_the_optimality_conditions_hold_for_polite(bandwidth, spread):
    rng = np.random.default_rng(35)
    change_rate, importance = population(36, 2000, spread)
    host, limit = rng.integers(0, 200, 2000), bandwidth / 200 * rng.lognormal(0, 1, 200)
    limit[:100] *= 2
    best = polite(change_rate, importance, bandwidth, host, dict(enumerate(limit)))
    spent = np.bincount(host, best.crawl_rate)
    assert (spent <= limit * (1 + 1e-10)).all()
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-10, abs=0)
    assert (best.crawl_rate >= 0).all()
    gain, crawled = (
        marginal("poisson", change_rate, importance, best.crawl_rate),
        best.crawl_rate > 0,
    )
    full = spent >= limit * (1 - 1e-10)
    assert 20 < full.sum() < 180
    # one multiplier on all pages of hosts that are not full; one of its own,
    # and not a lower one, in each that is
    multiplier = np.full(200, best.multiplier)
    np.maximum.at(multiplier, host[full[host]], gain[full[host]])
    np.testing.assert_allclose(gain[crawled], multiplier[host[crawled]], rtol=1e-10)
    assert (gain <= multiplier[host] * (1 + 1e-10)).all()
    assert (multiplier[full] >= best.multiplier * (1 - 1e-10)).all()


def test_hosts_that_saturate_only_after_others_are_found():
    change_rate, importance = population(37, 400)
    host = np.arange(400) % 40
    free = np.bincount(
        host, at_poisson_times(change_rate, importance, 100.0).crawl_rate
    )
    limit = free * np.repeat([0.5, 1.1, 10.0], [15, 15, 10])
    spent = np.bincount(
        host,
        polite(change_rate, importance, 100.0, host, dict(enumerate(limit))).crawl_rate,
    )
    assert spent.sum() == pytest.approx(100.0, rel=1e-10, abs=0)
    full = spent >= limit * (1 - 1e-10)
    np.testing.assert_array_equal(full, np.repeat([True, True, False], [15, 15, 10]))


@pytest.mark.parametrize(
    "seed", [6, 9, 16]
)  # here the limits sum to more than the bandwidth, but for rounding to less
def test_limits_a_rounding_error_below_what_is_asked_for(seed):
    change_rate, importance = population(seed, 40)
    change_rate[-1] = 1e9
    free = at_poisson_times(change_rate, importance, 10.0).crawl_rate
    limit = np.append(np.nextafter(free, 0)[:-1], 10.0)
    best = polite(change_rate, importance, 10.0, np.arange(40), dict(enumerate(limit)))
    np.testing.assert_allclose(best.crawl_rate, free, rtol=1e-12, atol=1e-12)


def test_host_labels_are_only_names():
    change_rate, importance, bandwidth, host, limit = hosts(41)
    best = polite(change_rate, importance, bandwidth, host, limit).crawl_rate
    assert not np.allclose(
        best, at_poisson_times(change_rate, importance, bandwidth).crawl_rate
    )
    name = np.array(["z.org", "b.com", "ä.de", "", "c", "b"])
    for labels in (
        name,
        name.astype(object),
        -7 * np.arange(6) + 3,
        np.arange(6, dtype=np.uint8),
    ):
        named = {labels[h]: limit[h] for h in limit}
        np.testing.assert_allclose(
            polite(change_rate, importance, bandwidth, labels[host], named).crawl_rate,
            best,
            rtol=1e-12,
        )
    same = polite(change_rate, importance, bandwidth, host, 0.2 * bandwidth).crawl_rate
    np.testing.assert_allclose(
        same,
        polite(
            change_rate,
            importance,
            bandwidth,
            host,
            dict.fromkeys(range(6), 0.2 * bandwidth),
        ).crawl_rate,
    )


LIMIT = "host_limit must be a non-negative number, or a mapping from host to such, got "


def test_members_number_hosts_by_their_sorted_labels():
    labels, member, limit = host_module.members(["b", "c", "b"], {"c": 0}, 3)
    assert labels == ["b", "c"]
    assert member.tolist() == [0, 1, 0]
    assert limit.tolist() == [np.inf, 0.0]
    for of_all in (3, {None: 3.0}):
        labels, member, limit = host_module.members(None, of_all, 4)
        assert labels == [None]
        assert member.tolist() == [0, 0, 0, 0]
        assert limit.tolist() == [3.0]


def test_pages_without_hosts_share_one_limit():
    for plan in (
        optimal(D, M, 9.0, host_limit=2.0),
        polite(D, M, 9.0, None, 2.0, "interval"),
    ):
        alone = optimal(D, M, 2.0)
        np.testing.assert_allclose(plan.crawl_rate, alone.crawl_rate, rtol=1e-12)
        assert plan.multiplier == 0.0
        assert plan.price_host == pytest.approx({None: alone.multiplier})


@pytest.mark.parametrize(
    ("host", "limit", "message"),
    [
        ([1, 2], 1.0, "host must have one label for each page, shape (3,), got"),
        ([[1], [1, 2], [3]], 1.0, "host must have one label for each page, shape"),
        (None, -1.0, LIMIT + "-1.0"),
        (None, {0: 1.0}, "host_limit must name hosts that have pages"),
        ([1, 2, 2], {3: 1.0}, "host_limit must name hosts that have pages"),
        ([1, 2, 2], "fast", LIMIT + "'fast'"),
    ],
)
def test_members_refuse(host, limit, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        host_module.members(host, limit, 3)


# ------------------------------ equal intervals: hosts


@pytest.mark.parametrize("bandwidth", [4.0, 12.0, 60.0])
@pytest.mark.parametrize("limits", [{0: 0.5}, {0: 0.5, 1: 2.0, 2: 0.0}, 3.0, np.inf])
def test_polite_at_equal_intervals_against_brute_force(bandwidth, limits):
    change_rate, importance = population(46, n=9)
    host = np.arange(9) % 3
    plan = polite(change_rate, importance, bandwidth, host, limits, "interval")
    limit = np.array(
        [
            limits.get(h, np.inf) if isinstance(limits, dict) else limits
            for h in range(3)
        ]
    )
    spent = np.bincount(host, plan.crawl_rate)
    assert (spent <= limit * (1 + 1e-9)).all()
    assert spent.sum() == pytest.approx(min(bandwidth, limit.sum()), rel=1e-9)

    def stale(x):
        return -freshness.mean(
            freshness.interval(change_rate, np.maximum(x, 1e-9)), importance
        )

    constraints = [{"type": "ineq", "fun": lambda x: bandwidth - x.sum()}]
    constraints += [
        {"type": "ineq", "fun": lambda x, h=h: limit[h] - x[host == h].sum()}
        for h in range(3)
        if limit[h] < np.inf
    ]
    start = np.minimum(bandwidth / 9, limit[host] / 3)
    other = minimize(
        stale,
        start,
        bounds=[(0, bandwidth)] * 9,
        constraints=constraints,
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert plan.freshness >= -other.fun - 1e-9
    assert plan.freshness == pytest.approx(-other.fun, abs=1e-6)
    np.testing.assert_allclose(plan.crawl_rate, other.x, atol=2e-2 * bandwidth / 9)
    if limits == np.inf:
        np.testing.assert_allclose(
            plan.crawl_rate,
            optimal(change_rate, importance, bandwidth).crawl_rate,
            rtol=1e-9,
        )
