"""The bounds of aaai20 against what they bound; regret against policies."""

import re
from functools import partial

import numba
import numpy as np
import pytest
from scipy import optimize

from recrawl.science import (
    allocation,
    estimators,
    freshness,
    regret,
    schedules,
)
from recrawl.science.policies import (
    ExploreThenCommit,
    PhasedEpsilonGreedy,
)
from recrawl.science.processes import simulate_history

BOUNDS = (0.1, 5.0)
CHANGE = np.array([0.2, 0.5, 1.0, 3.0, 0.8, 0.3])
IMPORTANCE = np.array([1.0, 4.0, 0.5, 2.0, 6.0, 0.2])
PAGES = (CHANGE, IMPORTANCE, 4.0)  # one round takes 1.5


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Use one thread: in thousands of tiny problems threads only wait."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


def problems(seed, n=2000, n_pages=8):
    """Change rates, estimates from good to useless, importances."""
    rng = np.random.default_rng(seed)
    true = rng.lognormal(0, 1, (n, n_pages))
    error = rng.lognormal(-2, 2, (n, 1)) * rng.normal(size=(n, n_pages))
    return true, true * np.exp(np.clip(error, -5, 5)), rng.lognormal(0, 1, (n, n_pages))


# ------------------------------ utility and burn-in


def test_utility_is_the_derivative_of_fresh_time():
    change, crawl, initial, importance = np.random.default_rng(1).lognormal(
        0, 1, (4, 20, 6)
    )
    initial /= initial.max()
    t, h = np.geomspace(0.05, 3, 20), 1e-4
    later, sooner = (
        freshness.poisson_time(change, crawl, t[:, np.newaxis] + s, initial=initial)
        for s in (h, -h)
    )
    slope = (importance * (later - sooner)).sum(axis=-1) / (2 * h)
    np.testing.assert_allclose(
        regret.utility(change, importance, crawl, elapsed=t, initial=initial),
        slope,
        rtol=1e-5,
    )  # h^2 rates^2


def test_utility_at_the_beginning_and_in_the_end():
    change, crawl, initial = (
        np.array([1.0, 0.0, 2.0, 0.0]),
        np.array([3.0, 1.0, 0.0, 0.0]),
        np.array([0.1, 0.2, 0.3, 0.4]),
    )
    importance = np.array([1.0, 10.0, 100.0, 1000.0])
    at = partial(regret.utility, change, importance, crawl, initial=initial)
    assert at(elapsed=0.0) == pytest.approx(importance @ initial, rel=1e-12, abs=0)
    # a page that neither changes nor is crawled stays as it is
    assert (
        at()
        == at(elapsed=1e9)
        == pytest.approx(0.75 + 10.0 + 0.0 + 400.0, rel=1e-12, abs=0)
    )
    assert at(elapsed=np.array([[0.0, 1.0, np.inf]])).shape == (1, 3)
    best = allocation.optimal_poisson(*PAGES)
    assert regret.utility(*PAGES[:2], best.crawl_rate) == pytest.approx(
        best.freshness * IMPORTANCE.sum(), rel=1e-12, abs=0
    )


@pytest.mark.slow
def test_after_the_burn_in_utility_is_within_tolerance_from_any_state():
    rng = np.random.default_rng(2)
    change, _, importance = problems(3)
    crawl = allocation.optimal_poisson(change, importance, 5.0).crawl_rate
    limit, nearest = regret.utility(change, importance, crawl), np.inf
    for tolerance in (1e-3, 0.1, 1.0, 5.0):
        t = np.array(
            [
                regret.burn_in(w, tolerance, min_rate=d.min())
                for w, d in zip(importance, change, strict=True)
            ]
        )
        for initial in (
            0.0,
            1.0,
            rng.random(change.shape),
            rng.random(change.shape) < 0.5,
        ):
            gap = np.abs(
                regret.utility(change, importance, crawl, elapsed=t, initial=initial)
                - limit
            )
            assert (gap <= tolerance).all()
            nearest = min(nearest, (1 - gap / tolerance).min())
    assert nearest < 0.5  # and not by far


def test_the_burn_in_is_attained():
    # a page that is fresh at first and never crawled: utility w exp(-rate t)
    t = regret.burn_in([3.0], np.array([0.1, 1.0]), min_rate=0.7)
    np.testing.assert_allclose(3.0 * np.exp(-0.7 * t), [0.1, 1.0], rtol=1e-12)
    np.testing.assert_allclose(
        regret.utility([0.7], [3.0], [0.0], elapsed=t, initial=1.0),
        [0.1, 1.0],
        rtol=1e-12,
    )
    assert regret.burn_in([1.0, 1.0], 2.5, min_rate=0.7) == 0
    assert regret.burn_in([0.0, 0.0], 0.1, min_rate=0.7) == 0
    assert regret.burn_in([60.0], 6.0, min_rate=60.0) * 60 == pytest.approx(
        np.log(10), rel=1e-12, abs=0
    )


# ------------------------------ sensitivity, Lemma 4


def test_suboptimality_is_the_utility_that_is_lost():
    true, believed, importance = problems(4)
    lost = regret.suboptimality(true, believed, importance, 4.0)
    best, chosen = (
        allocation.optimal_poisson(d, importance, 4.0).crawl_rate
        for d in (true, believed)
    )
    mass = importance.sum(axis=-1)
    direct = regret.utility(true, importance, best) - regret.utility(
        true, importance, chosen
    )
    np.testing.assert_allclose(lost / mass, direct / mass, atol=1e-12)
    assert (lost >= -1e-15 * mass).all()
    assert (lost > 0.01 * mass).sum() > 100
    np.testing.assert_array_equal(
        regret.suboptimality(true, true, importance, 4.0), 0.0
    )
    assert regret.suboptimality(
        list(true[0]), list(believed[0]), list(importance[0]), 4.0
    ) == pytest.approx(lost[0], rel=1e-12, abs=0)


def test_suboptimality_where_pages_never_change():
    # such a page is always fresh; here the belief that it changes takes crawls
    # from the other page
    plan = allocation.optimal_poisson([1.0, 1.0], 1.0, 2.0).crawl_rate
    expected = 2 / 3 - plan[1] / (plan[1] + 1)
    assert regret.suboptimality(
        [0.0, 1.0], [1.0, 1.0], [1.0, 1.0], 2.0
    ) == pytest.approx(expected, rel=1e-12, abs=0)
    assert regret.suboptimality([0.0, 1.0], [0.0, 3.0], [1.0, 1.0], 2.0) == 0


@pytest.mark.parametrize("bandwidth", [0.1, 4.0, 100.0])
def test_the_bounds_of_lemma_4_are_in_order(bandwidth):
    true, believed, importance = problems(5)
    crawl = allocation.optimal_poisson(believed, importance, bandwidth).crawl_rate
    lost = regret.suboptimality(true, believed, importance, bandwidth)
    sharp = regret.sensitivity_bound(true, believed, importance, crawl_rate=crawl)
    quarter, papers = (
        regret.sensitivity_bound(true, believed, importance, constant=c)
        for c in (0.25, 1.0)
    )
    assert (lost <= sharp * (1 + 1e-9)).all()
    assert (sharp <= quarter * (1 + 1e-12)).all()
    np.testing.assert_allclose(4 * quarter, papers, rtol=1e-12)
    assert (lost / sharp).max() > 0.5  # sharp indeed
    # without crawls and near the truth 1/4 is the constant
    near, sharp = true * (1 + 1e-4), {"crawl_rate": np.zeros(8)}
    quarter = regret.sensitivity_bound(true, near, importance, constant=0.25)
    np.testing.assert_allclose(
        regret.sensitivity_bound(true, near, importance, **sharp), quarter, rtol=1e-3
    )


def test_the_bounds_of_lemma_4_by_hand():
    # D = 1, D^ = 4, importance 3: 3 x 9 / (4 x 1)
    # and with rho^ = 2: 3 x 3 x (1/3 - 2/6)^2 = 0
    assert regret.sensitivity_bound([1.0], [4.0], [3.0]) == pytest.approx(
        6.75, rel=1e-12, abs=0
    )
    assert regret.sensitivity_bound([4.0], [1.0], [3.0]) == pytest.approx(
        27.0, rel=1e-12, abs=0
    )
    assert regret.sensitivity_bound(
        [1.0], [4.0], [3.0], crawl_rate=[2.0]
    ) == pytest.approx(0.0, abs=1e-30)
    # rho^ = 5: 3 x 6 x (1/6 - 2/9)^2
    assert regret.sensitivity_bound(
        [1.0], [4.0], [3.0], crawl_rate=[5.0]
    ) == pytest.approx(18 / 18**2, rel=1e-12, abs=0)


# ------------------------------ Lemma 5 and Theorem 1


def test_the_radius_is_that_of_lemma_3_at_the_union_bound():
    for n_pages, bandwidth, n, max_rate, level in [
        (10, 5.0, 40, 1.0, 0.9),
        (500, 100.0, 7, 0.3, 0.5),
        (3, 30.0, 1000, 20.0, 0.999),
    ]:
        d = n_pages / bandwidth
        history = simulate_history(1.0, interval=d, n_crawls=n, rng=0)
        lemma3 = estimators.confidence_radius(
            history, max_rate=max_rate, level=1 - (1 - level) / n_pages
        )
        got = regret.exploration_radius(
            n_pages, bandwidth, n * d, max_rate=max_rate, level=level
        )
        assert got == pytest.approx(lemma3, rel=1e-10, abs=0)
        assert got == pytest.approx(
            np.exp(max_rate * d)
            * np.sqrt(
                bandwidth * np.log(2 * n_pages / (1 - level)) / (2 * n_pages * n * d)
            )
        )


def test_the_radius_holds_all_rates_at_once():
    rates, level = np.linspace(0.2, 1.0, 20), 0.6
    history = simulate_history(rates, interval=1.0, n_crawls=50, n_runs=300, rng=6)
    error = np.abs(estimators.moment_matching(history, bounds=(0.1, 1.0)) - rates).max(
        axis=1
    )
    assert (
        error <= regret.exploration_radius(20, 20.0, 50.0, max_rate=1.0, level=level)
    ).mean() >= level


@pytest.mark.parametrize("constant", [1.0, 0.25])
@pytest.mark.parametrize(
    ("n_pages", "bandwidth", "bounds"),
    [(100, 300.0, (0.5, 1.5)), (20, 20.0, (0.3, 1.0))],
)
def test_the_exploration_of_theorem_1_minimises_the_bound(
    n_pages, bandwidth, bounds, constant
):
    importance, horizon, one_round = (
        np.random.default_rng(7).lognormal(0, 1, n_pages),
        1e5,
        n_pages / bandwidth,
    )
    options = {"bounds": bounds, "level": 0.95, "constant": constant}
    chosen = regret.exploration_horizon(n_pages, bandwidth, horizon=horizon, **options)
    assert chosen / one_round == pytest.approx(round(chosen / one_round), abs=1e-9)
    assert one_round < chosen < horizon / 2

    def bound(exploration):
        return regret.regret_bound(
            importance,
            bandwidth,
            exploration=exploration,
            horizon=horizon,
            **options,
        )

    grid = np.arange(1, int(horizon / one_round)) * one_round
    assert bound(chosen) == pytest.approx(bound(grid).min(), rel=1e-12, abs=0)
    free = optimize.minimize_scalar(
        bound, bounds=(one_round, horizon), method="bounded", options={"xatol": 1e-6}
    )
    assert chosen == pytest.approx(free.x, abs=0.5001 * one_round)
    # before rounding both terms are equal: twice the exploration, minus the
    # term that does not grow with the horizon
    fixed = (
        constant
        * (
            regret.exploration_radius(
                n_pages, bandwidth, 1.0, max_rate=bounds[1], level=0.95
            )
            / bounds[0]
        )
        ** 2
    )
    exact = np.sqrt(fixed * horizon)
    assert chosen == pytest.approx(exact, abs=0.5001 * one_round)
    assert bound(exact) == pytest.approx(
        importance.sum() * (2 * exact - fixed), rel=1e-12, abs=0
    )
    printed = (
        np.exp(bounds[1] * one_round)
        / bounds[0]
        * np.sqrt(
            constant * horizon * bandwidth * np.log(2 * n_pages / 0.05) / (2 * n_pages)
        )
    )
    assert exact == pytest.approx(printed, rel=1e-12, abs=0)


def test_theorem_1_grows_as_the_root_of_the_horizon_and_keeps_to_its_units():
    options = {"bounds": (0.5, 1.0), "level": 0.9}
    chosen = regret.exploration_horizon(
        20, 200.0, horizon=np.array([1e6, 4e6, 1e-9]), **options
    )
    assert chosen[1] / chosen[0] == pytest.approx(2.0, abs=1e-3)
    assert chosen[2] == 0.1  # one round at least
    day = regret.regret_bound(
        IMPORTANCE, 40.0, exploration=300.0, horizon=1e6, **options
    )
    hour = regret.regret_bound(
        IMPORTANCE / 24,
        40.0 / 24,
        exploration=7200.0,
        horizon=24e6,
        bounds=(0.5 / 24, 1.0 / 24),
        level=0.9,
    )
    assert day == pytest.approx(hour, rel=1e-12, abs=0)
    by_hand = IMPORTANCE.sum() * (
        300
        + (1e6 - 300)
        * (regret.exploration_radius(6, 40.0, 300.0, max_rate=1.0, level=0.9) / 0.5)
        ** 2
    )
    assert day == pytest.approx(by_hand, rel=1e-12, abs=0)
    around = regret.regret_bound(
        IMPORTANCE, 40.0, exploration=300.0, horizon=[200.0, 300.0], **options
    )
    assert np.isnan(around).tolist() == [True, False]


def test_lengths_and_horizons_go_by_name():
    """By position, one could be taken for another in silence."""
    with pytest.raises(TypeError, match="positional"):
        regret.regret_bound(300.0, 1e6, IMPORTANCE, 40.0, bounds=(0.5, 1.0))
    with pytest.raises(TypeError, match="positional"):
        regret.exploration_horizon(1e6, 20, 200.0, bounds=(0.5, 1.0))


def test_the_bound_of_theorem_1_holds():
    rng = np.random.default_rng(8)
    change, importance, horizon = (
        rng.uniform(0.5, 1.0, 20),
        rng.lognormal(0, 1, 20),
        np.array([3000.0, 3e4]),
    )
    policy = ExploreThenCommit(exploration=1.0, bounds=(0.5, 1.0))
    exploration = regret.exploration_horizon(
        20, 40.0, horizon=horizon, bounds=(0.5, 1.0), level=0.9
    )
    runs = regret.explore_then_commit(
        policy,
        change,
        importance,
        40.0,
        exploration=exploration,
        horizon=horizon,
        n_runs=30,
        rng=9,
    )
    bound = (
        regret.regret_bound(
            importance,
            40.0,
            exploration=exploration,
            horizon=horizon,
            bounds=(0.5, 1.0),
            level=0.9,
        )
        / importance.sum()
    )
    assert (bound < horizon).all()  # it says something
    assert (np.diagonal(runs, axis1=1, axis2=2) <= bound).mean() >= 0.9


# ------------------------------ explore-then-commit at many lengths


@pytest.mark.parametrize("explore", ["interval", "rate"])
@pytest.mark.parametrize("exploration", [1.5, 6.9, 30.0])
@pytest.mark.parametrize(
    ("estimator", "plan"), [("mle", "optimal_poisson"), ("naive", "uniform")]
)
@pytest.mark.filterwarnings("ignore::recrawl.science.policies.UnexploredWarning")
def test_one_length_is_the_expected_regret_of_the_policy(
    explore, exploration, estimator, plan
):
    policy = ExploreThenCommit(
        exploration=exploration,
        bounds=BOUNDS,
        explore=explore,
        estimator=getattr(estimators, estimator),
        allocation=getattr(allocation, plan),
    )
    horizon = [31.0, 50.0, 1e4]
    got = regret.explore_then_commit(
        policy, *PAGES, exploration=[exploration], horizon=horizon, n_runs=4, rng=10
    )
    assert got.shape == (4, 1, 3)
    for k, h in enumerate(horizon[:2]):  # the simulation of the third would take long
        run = policy.run(*PAGES, h, n_runs=4, rng=10)
        np.testing.assert_allclose(
            got[:, 0, k],
            run.regret(kind="expected", normalise="mass"),
            rtol=1e-9,
            atol=1e-9,
        )


@pytest.mark.slow
@pytest.mark.parametrize("explore", ["interval", "rate"])
def test_many_lengths_at_once(explore):
    policy = ExploreThenCommit(exploration=1.0, bounds=BOUNDS, explore=explore)
    lengths, horizon, n = (
        np.array([3.0, 6.0, 15.0, 30.0, 60.0]),
        np.array([20.0, 60.0, 1000.0]),
        150,
    )
    many = regret.explore_then_commit(
        policy, *PAGES, exploration=lengths, horizon=horizon, n_runs=n, rng=11
    )
    np.testing.assert_array_equal(
        np.isnan(many).all(axis=0), lengths[:, np.newaxis] > horizon
    )
    np.testing.assert_array_equal(
        np.isnan(many).any(axis=0), lengths[:, np.newaxis] > horizon
    )
    few = regret.explore_then_commit(
        policy, *PAGES, exploration=lengths[:2], horizon=1000.0, n_runs=2, rng=11
    )
    np.testing.assert_allclose(
        few[..., 0], many[:2, :2, 2], rtol=1e-12
    )  # run i, length j and horizon k each by itself
    other = [
        regret.explore_then_commit(
            policy, *PAGES, exploration=t, horizon=1000.0, n_runs=n, rng=12
        )[:, 0, 0]
        for t in lengths[2:]
    ]
    # the same distribution: 5 standard errors
    for mine, alone in zip(many[:, 2:, 2].T, other, strict=True):
        assert abs(mine.mean() - alone.mean()) < 5 * np.hypot(
            mine.std(), alone.std()
        ) / np.sqrt(n)
    # exploration alone, where the horizon is its end
    if explore == "interval":
        fresh = (
            freshness.interval_time(CHANGE, 4.0 / 6, 60.0, initial=1.0, phase=1.0)
            @ IMPORTANCE
            / IMPORTANCE.sum()
        )
    else:
        fresh = (
            freshness.poisson_time(CHANGE, 4.0 / 6, 60.0)
            @ IMPORTANCE
            / IMPORTANCE.sum()
        )
        assert many[:, -1, 1].mean() == pytest.approx(
            allocation.optimal_poisson(*PAGES).freshness * 60 - fresh,
            abs=5 * many[:, -1, 1].std() / np.sqrt(n),
        )
        return
    np.testing.assert_allclose(
        many[:, -1, 1],
        allocation.optimal_poisson(*PAGES).freshness * 60 - fresh,
        rtol=1e-10,
    )


def test_regret_against_known_rates_is_that_of_exploration_and_the_transient():
    policy = ExploreThenCommit(
        exploration=1.0, bounds=BOUNDS, estimator=lambda history: CHANGE
    )
    got = regret.explore_then_commit(
        policy, *PAGES, exploration=[9.0], horizon=[1e3, 1e9], n_runs=2, rng=13
    )
    best = allocation.optimal_poisson(*PAGES)
    explored = freshness.interval_time(CHANGE, 4.0 / 6, 9.0, initial=1.0, phase=1.0)
    # from fresh copies on: the integral of (1 - p) exp(-(rho + D) t)
    extra = CHANGE / (best.crawl_rate + CHANGE) ** 2
    expected = best.freshness * 9 - (explored + extra) @ IMPORTANCE / IMPORTANCE.sum()
    np.testing.assert_allclose(got[:, 0, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(got[:, 0, 1], expected, atol=1e-5)  # 1e-16 of a billion


# ------------------------------ the best exploration and its slopes


def parabolas(exploration, horizon, runs):
    """runs x sqrt(T) (1 + (log(exploration) - log(T) / 2 - 0.3)^2).

    The least is runs x sqrt(T), at the exploration 1.35 sqrt(T).
    """
    away = np.log(exploration)[:, np.newaxis] - np.log(horizon) / 2 - 0.3
    return np.reshape(runs, (-1, 1, 1)) * np.sqrt(horizon) * (1 + away**2)


def test_the_best_exploration_of_a_parabola():
    exploration, horizon = np.geomspace(3, 3000, 12), np.geomspace(100, 1e5, 6)
    values = parabolas(exploration, horizon, [1.0, 2.0, 6.0])
    values[:, exploration[:, np.newaxis] > horizon] = np.nan
    at, least = regret.best_exploration(values, exploration)
    np.testing.assert_allclose(at, np.exp(0.3) * np.sqrt(horizon), rtol=1e-10)
    np.testing.assert_allclose(least, 3.0 * np.sqrt(horizon), rtol=1e-10)
    found = regret.slopes(values, exploration, horizon, rng=14)
    assert found["exploration"] == (
        pytest.approx(0.5, rel=1e-10, abs=0),
        pytest.approx(0.0, abs=1e-10),
    )
    assert found["regret"] == (
        pytest.approx(0.5, rel=1e-10, abs=0),
        pytest.approx(0.0, abs=1e-10),
    )


def test_the_best_exploration_at_an_end_of_the_grid_is_not_known():
    exploration, horizon = np.geomspace(3, 300, 8), np.array([1.0, 100.0, 1000.0, 1e8])
    at, least = regret.best_exploration(
        parabolas(exploration, horizon, [1.0]), exploration
    )
    np.testing.assert_array_equal(np.isnan(at), [True, False, False, True])
    np.testing.assert_array_equal(np.isnan(least), np.isnan(at))


def test_standard_errors_of_slopes():
    exploration, horizon, n, sd = (
        np.geomspace(3, 3000, 12),
        np.geomspace(100, 1e5, 6),
        400,
        0.1,
    )
    noise = np.random.default_rng(15).normal(1.0, sd, (n, 1, 6))
    found = regret.slopes(
        noise * parabolas(exploration, horizon, [1.0]), exploration, horizon, rng=16
    )
    x = np.log(horizon) - np.log(horizon).mean()
    se = (
        sd / np.sqrt(n) / np.sqrt(x @ x)
    )  # of a slope through means of relative error sd / sqrt(n)
    assert found["regret"][0] == pytest.approx(0.5, abs=5 * se)
    assert found["regret"][1] == pytest.approx(
        se, rel=0.25
    )  # 5 x 1 / sqrt(2 x 400), and as much for 500 bootstrap samples


# ------------------------------ bad input

POLICY = ExploreThenCommit(exploration=1.0, bounds=BOUNDS)
etc = partial(regret.explore_then_commit, POLICY)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: regret.utility([-1.0], [1.0], [1.0]),
            "change_rate must be non-negative and finite, got -1.0",
        ),
        (
            lambda: regret.utility([1.0], [1.0], [-1.0]),
            "crawl_rate must be non-negative and finite, got -1.0",
        ),
        (
            lambda: regret.burn_in([1.0], 0.0, min_rate=1.0),
            "tolerance must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.burn_in([1.0], 0.1, min_rate=0.0),
            "min_rate must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.burn_in([-1.0], 0.1, min_rate=1.0),
            "importance must be non-negative and finite, got -1.0",
        ),
        (
            lambda: regret.suboptimality([-1.0], [1.0], [1.0], 1.0),
            "change_rate must be non-negative and finite, got -1.0",
        ),
        (
            lambda: regret.suboptimality([1.0], [1.0], [1.0], 0.0),
            "bandwidth must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.sensitivity_bound([1.0], [0.0], [1.0]),
            "estimated_rate must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.sensitivity_bound([0.0], [1.0], [1.0]),
            "change_rate must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.sensitivity_bound([1.0], [1.0], [-1.0]),
            "importance must be non-negative and finite, got -1.0",
        ),
        *[
            (
                lambda level=level: regret.exploration_radius(
                    4, 2.0, 8.0, max_rate=1.0, level=level
                ),
                f"strictly between 0 and 1, got {level}",
            )
            for level in (0.0, 1.0, -0.5, np.nan)
        ],
        (
            lambda: regret.exploration_radius(0, 2.0, 8.0, max_rate=1.0, level=0.9),
            "n_pages must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.exploration_radius(4, 2.0, -8.0, max_rate=1.0, level=0.9),
            "exploration must be positive and finite, got -8.0",
        ),
        (
            lambda: regret.exploration_radius(4, 2.0, 8.0, max_rate=0.0, level=0.9),
            "max_rate must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.regret_bound(
                IMPORTANCE, 2.0, exploration=8.0, horizon=99.0, bounds=(0.0, 1.0)
            ),
            "bounds must be positive and finite, got 0.0 at index (0,)",
        ),
        (
            lambda: regret.regret_bound(
                IMPORTANCE, 2.0, exploration=0.0, horizon=99.0, bounds=(0.1, 1.0)
            ),
            "exploration must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.regret_bound(
                IMPORTANCE,
                2.0,
                exploration=8.0,
                horizon=99.0,
                bounds=(0.1, 1.0),
                level=1.0,
            ),
            "level must be strictly between 0 and 1",
        ),
        (
            lambda: regret.exploration_horizon(4, 2.0, horizon=0.0, bounds=(0.1, 1.0)),
            "horizon must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.exploration_horizon(4, 0.0, horizon=9.0, bounds=(0.1, 1.0)),
            "bandwidth must be positive and finite, got 0.0",
        ),
        (
            lambda: regret.exploration_horizon(4, 2.0, horizon=9.0, bounds=(0.0, 1.0)),
            "bounds must be positive and finite, got 0.0 at index (0,)",
        ),
        (
            lambda: regret.exploration_horizon(
                4, 2.0, horizon=9.0, bounds=(0.1, 1.0), level=2
            ),
            "level must be strictly between 0 and 1, got 2.0",
        ),
        (
            lambda: etc(*PAGES, exploration=[6.0, 3.0], horizon=99.0),
            "exploration must rise by whole rounds of 1.5, got [6. 3.]",
        ),
        (
            lambda: etc(*PAGES, exploration=[6.0, 6.1], horizon=99.0),
            "exploration must rise by whole rounds of 1.5, got [6.  6.1]",
        ),
        (
            lambda: etc(*PAGES, exploration=[0.0, 6.0], horizon=99.0),
            "exploration must be positive and finite, got 0.0 at index (0,)",
        ),
        (
            lambda: etc(*PAGES, exploration=[6.0], horizon=[99.0, -1.0]),
            "horizon must be positive and finite, got -1.0 at index (1,)",
        ),
        (
            lambda: etc(*PAGES, exploration=[6.0], horizon=99.0, n_runs=0),
            "n_runs must be a positive integer, got 0",
        ),
        (
            lambda: etc(CHANGE, IMPORTANCE, 0.0, exploration=[6.0], horizon=99.0),
            "bandwidth must be positive and finite, got 0.0",
        ),
        (
            lambda: etc(CHANGE, -IMPORTANCE, 4.0, exploration=[6.0], horizon=99.0),
            "importance must be non-negative and finite, got -1.0",
        ),
        (
            lambda: etc(-CHANGE, IMPORTANCE, 4.0, exploration=[6.0], horizon=99.0),
            "change_rate must be non-negative and finite, got -0.2",
        ),
        (
            lambda: etc(CHANGE, IMPORTANCE[:2], 4.0, exploration=[6.0], horizon=99.0),
            "change_rate and importance must have shapes that broadcast, "
            "got change_rate (6,), importance (2,)",
        ),
        (
            lambda: regret.explore_then_commit(
                ExploreThenCommit(
                    exploration=1.0, bounds=BOUNDS, schedule=schedules.regular
                ),
                *PAGES,
                exploration=[6.0],
                horizon=99.0,
            ),
            "policy must have schedules.poisson as its schedule, got <function regular",
        ),
        (
            lambda: regret.slopes(
                parabolas(np.array([1.0, 2.0, 4.0]), np.array([1e6, 1e8]), [1.0, 1.0]),
                [1.0, 2.0, 4.0],
                [1e6, 1e8],
            ),
            "exploration must reach beyond the best one, and regret be positive, "
            "for at least two horizons, got 0",
        ),
        (
            lambda: regret.best_exploration([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
            "regret must have shape (n_runs, 3, n_horizons), got (3,)",
        ),
        (
            lambda: regret.exploration_horizon(2, 1.0, horizon=9.0, bounds=(1.0, 0.5)),
            "bounds must be two numbers, the lower one first, got (1.0, 0.5)",
        ),
        (
            lambda: regret.best_exploration([[[1.0]] * 3], [10.0, 1.0, 100.0]),
            "exploration must rise along one axis of at least 3 points, got [ 10.",
        ),
        (
            lambda: regret.exploration_horizon(
                2, 1.0, horizon=9.0, bounds=(0.5, 1.0), constant=-1.0
            ),
            "constant must be positive and finite, got -1.0",
        ),
        (
            lambda: regret.sensitivity_bound([1.0], [4.0], [3.0], crawl_rate=[-5.0]),
            "crawl_rate must be non-negative and finite, got -5.0",
        ),
        (
            lambda: regret.sensitivity_bound([1.0], [4.0], [3.0], constant=-3.0),
            "constant must be positive and finite, got -3.0",
        ),
        (
            lambda: regret.utility([1.0], [1.0], [1.0], elapsed=-1.0),
            "elapsed must be non-negative, got -1.0",
        ),
        (
            lambda: regret.utility([1.0], [-1.0], [1.0]),
            "importance must be non-negative and finite, got -1.0",
        ),
        (
            lambda: regret.utility([10**400], [1.0], [1.0]),
            "change_rate must be non-negative and finite, got [1000",
        ),
    ],
)
def test_regret_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_lengths_that_no_page_is_seen_in_are_filled_with_the_middle_of_the_bounds():
    policy = ExploreThenCommit(exploration=1.0, bounds=BOUNDS, explore="rate")
    greedy = PhasedEpsilonGreedy(
        exploration=1.0, bounds=BOUNDS, explore="rate", n_phases=1, epsilon=0.0
    )
    pages = ([0.5, 2.0], [1.0, 1.0], 2.0)
    got = [
        regret.explore_then_commit(
            p, *pages, exploration=[1.0], horizon=[50.0], n_runs=20, rng=17
        )
        for p in (policy, greedy)
    ]
    assert np.isfinite(got[0]).all()
    np.testing.assert_array_equal(*got)


# ------------------------------ policies that pick pages


def test_a_horizon_without_regret_has_no_best_exploration():
    """All NaN, as where the horizon is shorter than every exploration."""
    grid = [[[4.0, np.nan], [1.0, np.nan], [4.0, np.nan]]]
    length, least = regret.best_exploration(grid, [1.0, 10.0, 100.0])
    np.testing.assert_allclose(length, [10.0, np.nan])
    np.testing.assert_allclose(least, [1.0, np.nan])


def test_slopes_of_lists():
    length, horizon = 10.0 ** np.arange(6), np.array([1e4, 1e6])
    loss = length[:, np.newaxis] + horizon / length[:, np.newaxis]
    runs = [loss, loss]
    assert regret.slopes(
        np.array(runs).tolist(), length.tolist(), horizon.tolist(), rng=1
    ) == regret.slopes(np.array(runs), length, horizon, rng=1)
