"""`allocation.optimal` under limits: conditions, prices, solvers, invariances."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog, minimize

from recrawl.errors import ConvergenceError
from recrawl.kernels import allocation as kernels
from recrawl.science import allocation, freshness, objectives
from recrawl.science.allocation import optimal
from tests import plain

SMOOTH = [
    objectives.freshness,
    objectives.age,
    objectives.delay,
    objectives.harmonic,
    objectives.age_of_information,
]
EVERY = [*SMOOTH, objectives.deadline(0.5)]
each = pytest.mark.parametrize("objective", EVERY, ids=repr)
smooth = pytest.mark.parametrize("objective", SMOOTH, ids=repr)
both = pytest.mark.parametrize("crawls", ["interval", "poisson"])


def problem(seed, n=60, n_hosts=8, spread=1.0):
    """Arguments of `optimal` with all kinds of limits, most of them active."""
    rng = np.random.default_rng(seed)
    change_rate, importance = rng.lognormal(0, spread, (2, n))
    cost = rng.uniform(0.5, 2, n)
    bandwidth = rng.uniform(0.3, 2) * n
    low = np.where(rng.random(n) < 0.4, rng.uniform(0, 0.3, n), 0.0)
    high = np.where(rng.random(n) < 0.4, low + rng.uniform(0, 2, n), np.inf)
    host = rng.integers(0, n_hosts, n)
    host[:n_hosts] = np.arange(n_hosts)  # each has a page
    least = np.bincount(host, cost * low)
    limit = least + bandwidth / n_hosts * rng.uniform(0.05, 0.5, n_hosts)
    limit[n_hosts // 2 :] = np.inf
    limits = {
        "min_rate": low,
        "max_rate": high,
        "cost": cost,
        "host": host,
        "host_limit": dict(enumerate(limit)),
    }
    return (change_rate, importance, bandwidth), limits


def gain(objective, crawls, rate, change_rate):
    """What one more crawl saves."""
    if crawls == "poisson":
        return objective.poisson_value(change_rate, rate)
    with np.errstate(divide="ignore"):
        return objective.value(1 / rate, change_rate)


def total_cost(objective, crawls, rate, change_rate, importance):
    mean = getattr(objective, f"{crawls}_cost")
    return importance @ mean(change_rate, rate)


# ------------------------------ the conditions of optimality


@both
@smooth
@pytest.mark.parametrize("seed", range(6))
def test_the_optimality_conditions_hold_under_all_limits(objective, crawls, seed):
    (change_rate, importance, bandwidth), limits = problem(seed)
    best = optimal(
        change_rate, importance, bandwidth, objective=objective, crawls=crawls, **limits
    )
    rate, low, high = best.crawl_rate, limits["min_rate"], limits["max_rate"]
    cost, host = limits["cost"], limits["host"]
    limit = np.array(list(limits["host_limit"].values()))
    assert (low <= rate).all()
    assert (rate <= high).all()
    assert cost @ rate == pytest.approx(bandwidth, rel=1e-12, abs=0)
    spent = np.bincount(host, cost * rate)
    assert (spent <= limit * (1 + 1e-12)).all()
    price = np.zeros(limit.size)
    price[list(best.price_host)] = list(best.price_host.values())
    assert 0 < (price > 0).sum() < limit.size
    assert_allclose(spent[price > 0], limit[price > 0], rtol=1e-12)
    due = cost * (best.multiplier + price[host])
    saved = importance * gain(objective, crawls, rate, change_rate)
    between = (low < rate) & (rate < high)
    assert 5 < between.sum() < 60
    assert_allclose(saved[between], due[between], rtol=1e-9)
    assert (saved[rate == low] <= due[rate == low] * (1 + 1e-9)).all()
    assert (saved[rate == high] >= due[rate == high] * (1 - 1e-9)).all()
    # prices are what the conditions leave over
    assert_allclose(
        best.price_max_rate - best.price_min_rate,
        np.where(between, 0.0, saved - due),
        rtol=1e-12,
        atol=1e-12,
    )
    assert best.cost == pytest.approx(
        total_cost(objective, crawls, rate, change_rate, importance), rel=1e-12
    )
    model = getattr(freshness, crawls)
    assert best.freshness == pytest.approx(
        model(change_rate, rate) @ importance / importance.sum(), rel=1e-12
    )


@both
@pytest.mark.parametrize("seed", range(20, 24))
def test_every_price_is_a_derivative_of_the_cost(crawls, seed):
    """Central differences of the cost in each limit, in turn."""
    given, limits = problem(seed, n=24, n_hosts=4)
    objective = SMOOTH[seed % len(SMOOTH)]

    def cost_at(shift=0.0, **shifted):
        bandwidth = given[2] + shift
        arguments = limits | shifted
        return optimal(
            *given[:2], bandwidth, objective=objective, crawls=crawls, **arguments
        ).cost

    def slope(change, step=1e-5):
        down, up = (change(s) for s in (-step, step))
        return (down - up) / (2 * step)

    best = optimal(*given, objective=objective, crawls=crawls, **limits)
    scale = best.multiplier
    assert slope(cost_at) == pytest.approx(scale, rel=1e-5, abs=0)
    for host, price in best.price_host.items():

        def moved(step, host=host):
            raised = limits["host_limit"][host] + step
            return cost_at(host_limit=limits["host_limit"] | {host: raised})

        assert slope(moved) == pytest.approx(price, rel=1e-5, abs=1e-6 * scale)
    found = {"max_rate": best.price_max_rate, "min_rate": best.price_min_rate}
    for name, price in found.items():
        sign = 1 if name == "max_rate" else -1
        for page in np.flatnonzero(price > 0):
            if limits[name][page] == 0:
                continue  # a rate cannot fall below 0

            def moved(step, name=name, page=page, sign=sign):
                limit = limits[name].copy()
                limit[page] += sign * step
                return cost_at(**{name: limit})

            assert slope(moved) == pytest.approx(
                price[page], rel=1e-5, abs=1e-6 * scale
            )
    own = np.zeros(24)
    own[:] = [best.price_host.get(h, 0.0) for h in limits["host"]]
    for page in range(0, 24, 5):

        def moved(step, page=page):
            cost = limits["cost"].copy()
            cost[page] += step
            return cost_at(cost=cost)

        # a crawl that costs more takes its price from the bandwidth and the host
        expected = -(best.multiplier + own[page]) * best.crawl_rate[page]
        assert slope(moved) == pytest.approx(expected, rel=1e-5, abs=1e-6 * scale)


def test_the_price_of_a_first_crawl():
    """The cost rises by the price of a least rate 0 when it is raised."""
    change_rate, importance = [1.0, 50.0], [1.0, 1.0]
    best = optimal(change_rate, importance, 1.0)
    assert best.crawl_rate[1] == 0
    step = 1e-6
    forced = optimal(change_rate, importance, 1.0, min_rate=[0.0, step])
    rise = (forced.cost - best.cost) / step
    assert rise == pytest.approx(best.price_min_rate[1], rel=1e-5)


# ------------------------------ reference numbers


@pytest.mark.parametrize(
    ("objective", "crawls", "rate", "multiplier", "cost"),
    [
        ("age", "poisson", [0.8454029997, 1.2038158692, 1.9507811311],
         0.484152205, 1.340725215),
        ("delay", "poisson", [0.3880806542, 0.8677747235, 2.7441446223],
         1.327963102, 5.311852409),
        ("delay", "interval", [0.3880806542, 0.8677747235, 2.7441446223],
         0.663981551, 2.655926205),
        ("harmonic", "poisson", [0.5228163777, 0.9627033882, 2.5144802341],
         0.529240203, 3.225789117),
        ("age_of_information", "poisson", [1.1715728753, 1.1715728753, 1.6568542495],
         0.728553391, 2.914213562),
        ("freshness", "interval", [0.5658523762, 1.0473289087, 2.386818715],
         0.247622393, 1.676183151),
    ],
)  # fmt: skip
def test_reference_allocations(objective, crawls, rate, multiplier, cost):
    best = optimal(
        [0.2, 1.0, 5.0], [1.0, 1.0, 2.0], 4.0,
        objective=getattr(objectives, objective), crawls=crawls,
    )  # fmt: skip
    assert_allclose(best.crawl_rate, rate, rtol=0, atol=1e-10)
    assert best.multiplier == pytest.approx(multiplier, abs=1e-9)
    assert best.cost == pytest.approx(cost, abs=1e-9)


def test_reference_deadline():
    best = optimal(
        [0.2, 1.0, 5.0], [1.0, 1.0, 2.0], 4.0,
        objective=objectives.deadline(0.5), crawls="poisson",
    )  # fmt: skip
    assert_array_equal(best.crawl_rate, [0.0, 0.0, 4.0])
    assert best.multiplier == pytest.approx(0.6766764162, abs=1e-10)
    in_time = 1 - best.cost / ([0.2, 1.0, 5.0] @ np.array([1.0, 1.0, 2.0]))
    assert in_time == pytest.approx(0.7720220685, abs=1e-10)


def test_reference_limits():
    best = optimal(
        [0.2, 1.0, 5.0, 0.5], [1.0, 1.0, 2.0, 0.5], 4.0, crawls="poisson",
        cost=[1.0, 2.0, 1.0, 0.5],
        min_rate=[0.0, 0.1, 0.0, 0.3], max_rate=[0.6, 9.0, 9.0, 9.0],
    )  # fmt: skip
    expected = [0.6, 0.52750894, 1.83122765, 1.02750894]
    assert_allclose(best.crawl_rate, expected, rtol=0, atol=1e-8)
    assert best.multiplier == pytest.approx(0.2142902853, abs=1e-10)
    assert 4.5 - best.cost == pytest.approx(1.9678084613, abs=1e-10)
    assert_allclose(best.price_max_rate, [0.0982097147, 0, 0, 0], rtol=0, atol=1e-10)
    assert_array_equal(best.price_min_rate, 0.0)
    assert best.price_host == {}


# ------------------------------ independent solvers


def conic(change_rate, importance, bandwidth, limits):
    """Poisson freshness under all limits by interior points."""
    import cvxpy as cp

    rate, late = cp.Variable(change_rate.size), cp.Variable(change_rate.size)
    cost, host = limits["cost"], limits["host"]
    half = np.full(change_rate.size, 0.5)  # late >= 1 / (rate + change_rate)
    bounded = limits["max_rate"] < np.inf
    constraints = [
        cp.PowCone3D(rate + change_rate, late, np.ones(change_rate.size), half),
        cost @ rate <= bandwidth,
        rate >= limits["min_rate"],
        rate[bounded] <= limits["max_rate"][bounded],
    ]
    for h, limit in limits["host_limit"].items():
        if limit < np.inf:
            constraints.append(cost[host == h] @ rate[host == h] <= limit)
    program = cp.Problem(cp.Minimize((importance * change_rate) @ late), constraints)
    tight = {f"tol_{name}": 1e-15 for name in ("gap_abs", "gap_rel", "feas")} | {
        "iterative_refinement_reltol": 1e-16,
        "iterative_refinement_abstol": 1e-16,
        "static_regularization_constant": 1e-14,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot certify the tolerances asked of it
        program.solve(solver=cp.CLARABEL, max_iter=500, max_step_fraction=0.8, **tight)
    return rate.value


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 330))
def test_rates_agree_with_a_convex_solver_under_all_limits(seed):
    given, limits = problem(seed, n=30, n_hosts=5)
    best = optimal(*given, crawls="poisson", **limits)
    theirs = conic(*given, limits)
    assert_allclose(best.crawl_rate, theirs, rtol=0, atol=1e-8)


@both
@smooth
def test_no_other_solver_finds_a_lower_cost(objective, crawls):
    for seed in range(40, 43):
        (change_rate, importance, bandwidth), limits = problem(seed, n=8, n_hosts=3)
        limits["min_rate"] = limits["min_rate"] + 0.01
        limits["max_rate"] = limits["max_rate"] + 0.01
        cost, host = limits["cost"], limits["host"]
        least = np.bincount(host, cost * limits["min_rate"])
        limit = least + np.array([0.2, 0.5, 2.0]) * bandwidth / 3
        limits["host_limit"] = dict(enumerate(limit))
        best = optimal(
            change_rate, importance, bandwidth,
            objective=objective, crawls=crawls, **limits,
        )  # fmt: skip
        asked = [(cost, min(bandwidth, limit.sum()))]
        asked += [(cost * (host == h), limit[h]) for h in range(3)]

        def cost_and_slope(p, d=change_rate, mu=importance):
            slope = -mu * gain(objective, crawls, p, d)
            return total_cost(objective, crawls, p, d, mu), slope

        found = minimize(
            cost_and_slope,
            limits["min_rate"] + 1e-3,
            jac=True,
            bounds=np.transpose([limits["min_rate"], limits["max_rate"]]),
            constraints=[
                {"type": "ineq", "fun": lambda p, w=w, r=r: r - w @ p}
                for w, r in asked
            ],
            options={"maxiter": 1000, "ftol": 1e-15},
        )  # fmt: skip
        over = max((w @ found.x - r for w, r in asked), default=0.0)
        worth = max(best.multiplier + max(best.price_host.values()), 0.0)
        assert best.cost <= found.fun * (1 + 1e-10) + 4 * worth * max(over, 0.0)
        assert best.cost == pytest.approx(found.fun, rel=1e-6)
        assert_allclose(best.crawl_rate, found.x, atol=1e-2)


@pytest.mark.parametrize("seed", range(10))
def test_deadlines_at_equal_intervals_are_a_linear_program(seed):
    (change_rate, importance, bandwidth), limits = problem(seed, n=40)
    objective, cost, host = objectives.deadline(0.5), limits["cost"], limits["host"]
    bandwidth *= 0.5
    asked = np.concatenate([[cost], cost * (host == np.arange(8)[:, np.newaxis])])
    granted = np.append(bandwidth, list(limits["host_limit"].values()))
    low, high = limits["min_rate"], limits["max_rate"]
    best = optimal(change_rate, importance, bandwidth, objective=objective, **limits)
    gained = 0.5 * importance * change_rate
    # rates beyond 1 / tau gain nothing
    exact = linprog(
        -gained, asked[granted < np.inf], granted[granted < np.inf],
        bounds=np.transpose([low, np.clip(2.0, low, high)]),
    )  # fmt: skip
    assert exact.success
    assert_allclose(best.crawl_rate, exact.x, rtol=0, atol=1e-8)
    assert best.cost == pytest.approx(importance @ change_rate + exact.fun, rel=1e-9)
    in_part = (low < best.crawl_rate) & (best.crawl_rate < np.clip(2.0, low, high))
    assert 1 <= in_part.sum() <= 1 + len(best.price_host)


@both
@each
def test_against_all_rates_on_a_grid(objective, crawls):
    """Two pages: no point of the line on which the bandwidth is spent is better."""
    change_rate, importance = np.array([0.3, 2.0]), np.array([1.0, 3.0])
    cost, bandwidth = np.array([1.0, 0.5]), 2.0
    low, high = np.array([0.2, 0.1]), np.array([1.9, 2.8])
    best = optimal(
        change_rate, importance, bandwidth, objective=objective, crawls=crawls,
        min_rate=low, max_rate=high, cost=cost,
    )  # fmt: skip
    first = np.linspace(low[0], high[0], 20_001)
    rate = np.stack([first, (bandwidth - first) / 0.5], axis=1)
    rate = rate[(rate[:, 1] >= low[1]) & (rate[:, 1] <= high[1])]
    mean = getattr(objective, f"{crawls}_cost")
    costs = mean(change_rate, rate) @ importance
    assert best.cost <= costs.min() * (1 + 1e-12)
    # the costs of both pages change by less than this from point to point
    saved = importance * gain(objective, crawls, low, change_rate)
    apart = (first[1] - first[0]) * (saved[0] + 2 * saved[1])
    assert best.cost == pytest.approx(costs.min(), abs=apart)


def test_harmonic_cost_is_the_mean_over_time_of_a_simulation():
    """1 + 1/2 + ... + 1/n at n unseen changes, from drawn times; the time average."""
    rng = np.random.default_rng(50)
    change_rate, importance = np.array([0.3, 1.0, 4.0]), np.array([1.0, 2.0, 1.0])
    best = optimal(
        change_rate, importance, 3.0, objective=objectives.harmonic, crawls="poisson"
    )
    horizon, runs = 200.0, 200
    costs = np.zeros(runs)
    for page, (d, p) in enumerate(zip(change_rate, best.crawl_rate, strict=True)):
        for run in range(runs):
            crawls = np.sort(rng.uniform(0, horizon, rng.poisson(p * horizon)))
            changes = np.sort(rng.uniform(0, horizon, rng.poisson(d * horizon)))
            starts = np.append(0.0, crawls)
            ends = np.append(crawls, horizon)
            cycle = np.searchsorted(crawls, changes)
            before = np.searchsorted(changes, starts[cycle])
            rank = np.arange(changes.size) - before + 1
            # the k-th change of a cycle adds 1 / k until the next crawl
            costs[run] += importance[page] * ((ends[cycle] - changes) / rank).sum()
    costs /= horizon
    error = costs.std(ddof=1) / np.sqrt(runs)
    # all copies are fresh at the start: the cost settles within some 1 / rate
    settling = importance @ np.log1p(change_rate / best.crawl_rate) * 2 / horizon
    assert costs.mean() == pytest.approx(best.cost, abs=4 * error + settling)
    assert error < 0.01 * best.cost


# ------------------------------ special cases


@pytest.mark.parametrize("seed", range(5))
def test_without_limits_it_is_the_known_optimum(seed):
    (change_rate, importance, bandwidth), limits = problem(seed)
    low = limits["min_rate"] / 2
    known = plain.optimal_interval(change_rate, importance, bandwidth)
    for found, (rate, multiplier) in (
        (optimal(change_rate, importance, bandwidth), known),
        *(
            (
                optimal(
                    change_rate, importance, bandwidth, crawls="poisson", min_rate=least
                ),
                plain.optimal_poisson(change_rate, importance, bandwidth, least),
            )
            for least in (0.0, low)
        ),
    ):
        assert_allclose(found.crawl_rate, rate, rtol=1e-9, atol=1e-12)
        assert found.multiplier == pytest.approx(multiplier, rel=1e-9)


def test_equal_least_and_greatest_rates_leave_nothing_to_choose():
    rate = np.array([0.5, 1.5, 2.0])
    for bandwidth, multiplier in [(4.0, 0.0), (5.0, 0.0)]:
        best = optimal([1.0, 2.0, 0.0], 1.0, bandwidth, min_rate=rate, max_rate=rate)
        assert_array_equal(best.crawl_rate, rate)
        assert best.multiplier == multiplier


@both
@each
def test_least_rates_that_use_the_bandwidth_up(objective, crawls):
    change_rate, importance = np.array([0.5, 1.0, 2.0]), np.array([1.0, 5.0, 1.0])
    low = np.array([1.0, 0.5, 0.25])
    best = optimal(
        change_rate, importance, 1.75, objective=objective, crawls=crawls, min_rate=low
    )
    assert_array_equal(best.crawl_rate, low)
    saved = importance * gain(objective, crawls, low, change_rate)
    assert best.multiplier == pytest.approx(saved.max(), rel=1e-12)


@both
@each
def test_where_all_greatest_rates_fit_bandwidth_is_left_over(objective, crawls):
    best = optimal(
        [1.0, 2.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], 100.0,
        objective=objective, crawls=crawls, min_rate=0.1, max_rate=[0.5, 1.0, 9.0, 9.0],
    )  # fmt: skip
    # age of information does not need changes
    third = 9.0 if objective is objectives.age_of_information else 0.1
    assert_array_equal(best.crawl_rate, [0.5, 1.0, third, 0.1])
    assert best.multiplier == 0
    assert (best.price_max_rate[:2] > 0).all()
    assert_array_equal(best.price_min_rate, 0.0)


def test_deadlines_need_no_more_than_one_crawl_in_tau():
    best = optimal([1.0, 2.0], 1.0, 9.0, objective=objectives.deadline(0.5))
    assert_array_equal(best.crawl_rate, [2.0, 2.0])
    assert best.multiplier == best.cost == 0


@both
@each
def test_pages_that_no_crawl_helps_get_their_least_rate(objective, crawls):
    best = optimal(
        [1.0, 0.0, 2.0, 3.0], [1.0, 1.0, 0.0, 2.0], 2.0,
        objective=objective, crawls=crawls, min_rate=[0.0, 0.25, 0.5, 0.0],
    )  # fmt: skip
    assert best.crawl_rate[2] == 0.5
    if objective is objectives.age_of_information:  # it does not need changes
        assert best.crawl_rate[1] > 0.25
    else:
        assert best.crawl_rate[1] == 0.25
        assert best.price_min_rate[1] == pytest.approx(best.multiplier, rel=1e-12)
    assert best.crawl_rate.sum() == pytest.approx(2.0, rel=1e-12)


@both
@each
def test_a_host_without_limit_gets_what_others_leave(objective, crawls):
    options = {"objective": objective, "crawls": crawls}
    change_rate, importance = np.random.default_rng(51).lognormal(0, 1, (2, 20))
    host = np.arange(20) % 2
    best = optimal(
        change_rate, importance, 8.0, host=host, host_limit={0: 1.0}, **options
    )
    for h, bandwidth in [(0, 1.0), (1, 7.0)]:
        here = host == h
        alone = optimal(change_rate[here], importance[here], bandwidth, **options)
        assert_allclose(best.crawl_rate[here], alone.crawl_rate, rtol=1e-9, atol=1e-12)
        if h == 1:
            assert best.multiplier == pytest.approx(alone.multiplier, rel=1e-9)
        else:
            price = alone.multiplier - best.multiplier
            assert best.price_host == pytest.approx({0: price}, rel=1e-9)


@smooth
def test_a_host_limit_of_zero_has_the_price_of_a_first_crawl(objective):
    best = optimal(
        [1.0, 2.0, 3.0], 1.0, 3.0, objective=objective, host=["a", "b", "b"],
        host_limit={"a": 0},
    )  # fmt: skip
    assert best.crawl_rate[0] == 0
    expected = objective.limit(1.0) - best.multiplier
    assert list(best.price_host) == ["a"]
    assert best.price_host["a"] == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(best.price_min_rate).all()


# ------------------------------ invariances and scale


@both
@each
@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_units_of_time_importance_and_cost_rescale(objective, crawls, unit):
    (change_rate, importance, bandwidth), limits = problem(52)
    there = objective
    if objective not in SMOOTH:
        there = objectives.deadline(objective.tau * unit)
    options = {"objective": objective, "crawls": crawls}
    here = optimal(change_rate, importance, bandwidth, **options, **limits)
    scaled = {name: limits[name] / unit for name in ("min_rate", "max_rate")}
    scaled["host_limit"] = {h: r / unit for h, r in limits["host_limit"].items()}
    in_time = optimal(
        change_rate / unit, importance, bandwidth / unit,
        objective=there, crawls=crawls, **limits | scaled,
    )  # fmt: skip
    tolerance = {"rtol": 1e-9, "atol": 1e-12}
    assert_allclose(in_time.crawl_rate * unit, here.crawl_rate, **tolerance)
    in_importance = optimal(
        change_rate, importance * unit, bandwidth, **options, **limits
    )
    assert_allclose(in_importance.crawl_rate, here.crawl_rate, **tolerance)
    assert in_importance.multiplier / unit == pytest.approx(here.multiplier, rel=1e-9)
    scaled = {"cost": limits["cost"] * unit}
    scaled["host_limit"] = {h: r * unit for h, r in limits["host_limit"].items()}
    in_cost = optimal(
        change_rate, importance, bandwidth * unit, **options, **limits | scaled
    )
    assert_allclose(in_cost.crawl_rate, here.crawl_rate, **tolerance)
    assert in_cost.multiplier * unit == pytest.approx(here.multiplier, rel=1e-9)


@both
@each
def test_permuting_pages_permutes_rates_and_prices(objective, crawls):
    (change_rate, importance, bandwidth), limits = problem(53)
    order = np.random.default_rng(54).permutation(60)
    moved = {
        name: limit if name == "host_limit" else limit[order]
        for name, limit in limits.items()
    }
    options = {"objective": objective, "crawls": crawls}
    here = optimal(change_rate, importance, bandwidth, **options, **limits)
    there = optimal(
        change_rate[order], importance[order], bandwidth, **options, **moved
    )
    for name in ("crawl_rate", "price_min_rate", "price_max_rate"):
        assert_allclose(
            getattr(there, name), getattr(here, name)[order], rtol=1e-9, atol=1e-10
        )
    assert there.price_host == pytest.approx(here.price_host, rel=1e-9)


@both
@each
def test_more_bandwidth_never_raises_the_cost(objective, crawls):
    (change_rate, importance, _), limits = problem(55)
    plans = [
        optimal(
            change_rate, importance, bandwidth,
            objective=objective, crawls=crawls, **limits,
        )
        for bandwidth in np.geomspace(15, 1e4, 30)
    ]  # fmt: skip
    costs = np.array([plan.cost for plan in plans])
    assert (np.diff(costs) <= 1e-12 * costs[1:]).all()
    assert (np.diff([plan.multiplier for plan in plans]) <= 1e-12).all()


@both
@each
def test_each_leading_index_is_a_problem_of_its_own(objective, crawls):
    rng = np.random.default_rng(56)
    change_rate, importance = rng.lognormal(0, 1, (2, 3, 20)), rng.lognormal(0, 1, 20)
    high, cost = rng.uniform(0.2, 2, (3, 20)), rng.uniform(0.5, 2, 20)
    options = {"objective": objective, "crawls": crawls, "min_rate": 0.1}
    together = optimal(
        change_rate, importance, 5.0, max_rate=high, cost=cost, **options
    )
    assert together.price_max_rate.shape == (2, 3, 20)
    for i in np.ndindex(2, 3):
        alone = optimal(
            change_rate[i], importance, 5.0, max_rate=high[i[1]], cost=cost, **options
        )
        for name in ("crawl_rate", "multiplier", "cost", "price_max_rate"):
            assert_array_equal(getattr(together, name)[i], getattr(alone, name))


@both
@each
@pytest.mark.parametrize("bandwidth", [1e-9, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("spread", [0.0, 5.0])
def test_the_bandwidth_is_spent_at_any_scale(objective, crawls, bandwidth, spread):
    change_rate, importance = np.random.default_rng(57).lognormal(0, spread, (2, 50))
    best = optimal(
        change_rate, importance, bandwidth, objective=objective, crawls=crawls
    )
    if best.multiplier > 0:
        assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-12)
    else:
        enough = 2.0 if crawls == "interval" else 1200.0  # every deadline is kept
        assert_array_equal(best.crawl_rate, enough)
    assert (best.crawl_rate >= 0).all()
    if spread == 0:
        assert_allclose(best.crawl_rate, best.crawl_rate.mean(), rtol=1e-10)


# ------------------------------ bad input


D, M = [1.0, 2.0], [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"objective": "age"},
            "objective must be an objectives.Objective (age, age_of_information, "
            "deadline, delay, freshness, harmonic), got 'age'",
        ),
        ({"crawls": "daily"}, "crawls must be 'interval' or 'poisson', got 'daily'"),
        (
            {"min_rate": [0.0, -0.5]},
            "min_rate must be non-negative and finite, got -0.5 at index (1,)",
        ),
        ({"max_rate": -1.0}, "max_rate must be non-negative, got -1.0"),
        ({"max_rate": np.nan}, "max_rate must be non-negative, got nan"),
        (
            {"min_rate": [0.1, 0.3], "max_rate": 0.2},
            "min_rate must be at most max_rate, got 0.3 at index (1,)",
        ),
        ({"cost": [1.0, 0.0]}, "cost must be positive and finite, got 0.0"),
        (
            {"min_rate": [0.75, 0.5]},
            "min_rate must spend at most the bandwidth, 1.0, got 1.25, "
            "0.25 too much (1 of 2 limits are exceeded, this one most)",
        ),
        (
            {"min_rate": 0.375, "cost": 2.0, "host": ["a", "b"],
             "host_limit": {"b": 0.125}},
            "min_rate must spend at most the limit of host 'b', 0.125, "
            "got 0.75, 0.625 too much (2 of 3 limits are exceeded, this one most)",
        ),
        (
            {"host": [1, 2], "host_limit": {3: 1.0}},
            "host_limit must name hosts that have pages, got 1 without: [3]",
        ),
        (
            {"host": [1, 2, 3]},
            "host must have one label for each page, shape (2,), got shape (3,)",
        ),
        (
            {"max_rate": [[1.0], [2.0]], "host_limit": 1.0},
            "host_limit must be inf for problems of shape (2,), got 1.0",
        ),
        ({"cost": [1.0, 1.0, 1.0]}, "must have shapes that broadcast"),
        ({"host": ["a", None]}, "host must be labels that can be sorted"),
        (
            {"host": [1, "a"], "host_limit": {1: 1.0}},
            "host must be labels of one type, got strings and others",
        ),
    ],
)  # fmt: skip
def test_optimal_refuses(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        optimal(D, M, 1.0, **options)


@pytest.mark.parametrize("kernel", ["limited_rates", "host_rates"])
def test_a_search_that_gives_up_hands_over_its_last_iterate(monkeypatch, kernel):
    def gives_up(*arguments):
        arguments[-1][:] = np.nan
        return np.nan

    monkeypatch.setattr(kernels, kernel, gives_up)
    with pytest.raises(
        ConvergenceError, match="the allocation did not converge"
    ) as error:
        optimal(D, M, 1.0, host=[1, 2], host_limit=0.1)
    assert error.value.last.shape == (2,)


def test_bandwidth_that_no_page_may_take_is_worth_nothing():
    plan = allocation.optimal([1.0, 2.0], [1.0, 1.0], 10.0, max_rate=2.0)
    assert plan.crawl_rate.tolist() == [2.0, 2.0]
    assert plan.multiplier == 0.0


def test_a_price_of_nothing_is_no_negative_zero():
    plan = allocation.optimal([0.0, 1.0], 1.0, 10.0, max_rate=2.0)
    assert plan.crawl_rate.tolist() == [0.0, 2.0]
    assert not np.signbit([plan.price_min_rate, plan.price_max_rate]).any()


def test_pages_without_importance_are_refused_before_a_search(monkeypatch):
    monkeypatch.setattr(freshness, "mean", None)  # which refuses them, too
    with pytest.raises(ValueError, match="importance must be positive for at least"):
        optimal([0.2, 1.0], 0.0, 1.0)
    with pytest.raises(ValueError, match="importance must be positive for at least"):
        optimal([0.2, 1.0], [[1.0, 0.0], [0.0, 0.0]], 1.0)
