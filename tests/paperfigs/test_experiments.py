"""How the experiments of the papers are run and compared."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paperfigs import experiments
from paperfigs.experiments import compare, explore_then_commit
from paperlib import allocation, estimators, regret
from paperlib.policies import ExploreThenCommit, Greedy, GreedyNCIS, Rates
from paperlib.signals import SignalledPages
from paperlib.worlds import crawl, draw_world

# ------------------------------ several numbers of pages


def test_windows_are_weighed_run_by_run():
    windows = {
        5: {
            "steady": np.array([0.5, 0.7]),
            "greedy": np.array([[0.0, 1.0], [0.2, 0.6]]),
        }
    }
    means = experiments.window_mean(windows, [0.25, 0.75])
    assert means.keys() == {5}
    assert_array_equal(means[5]["steady"], [0.5, 0.7])
    assert_allclose(means[5]["greedy"], [0.75, 0.5], rtol=1e-15)


def test_a_run_depends_on_seed_size_and_number_alone():
    def one_run(rng, m):
        return pd.DataFrame({"size": np.full(m, m), "x": rng.random(m)})

    table = experiments.tables(one_run, [2, 3], 4, seed=1)
    assert table.index.names == ["m", "run", "page"]
    assert len(table) == 4 * (2 + 3)
    assert (table["size"] == table.index.get_level_values("m")).all()
    assert table["x"].is_unique
    fewer = experiments.tables(one_run, [3], 2, seed=1)
    pd.testing.assert_frame_equal(fewer, table.loc[[3], slice(0, 1), :])
    other = experiments.tables(one_run, [3], 2, seed=2)
    assert not np.isin(other["x"], table["x"]).any()


# ------------------------------ the best exploration

LENGTH, HORIZON = np.geomspace(3, 3000, 12), np.geomspace(100, 1e5, 6)


def parabolas(exploration, horizon, runs):
    """runs x sqrt(T) (1 + (log(exploration) - log(T) / 2 - 0.3)^2).

    The least is runs x sqrt(T), at the exploration 1.35 sqrt(T).
    """
    away = np.log(exploration)[:, np.newaxis] - np.log(horizon) / 2 - 0.3
    return np.reshape(runs, (len(runs), 1, -1)) * np.sqrt(horizon) * (1 + away**2)


def test_the_best_exploration_of_a_parabola():
    values = parabolas(LENGTH, HORIZON, [1.0, 2.0, 6.0])
    values[:, LENGTH[:, np.newaxis] > HORIZON] = np.nan
    at, least = experiments.best_exploration(values, LENGTH)
    assert_allclose(at, np.exp(0.3) * np.sqrt(HORIZON), rtol=1e-10)
    assert_allclose(least, 3.0 * np.sqrt(HORIZON), rtol=1e-10)


def test_the_best_exploration_at_an_end_of_the_grid_is_not_known():
    exploration, horizon = (
        np.geomspace(3, 300, 8),
        np.array([1.0, 100.0, 1e3, 1e8, 9.0]),
    )
    values = parabolas(exploration, horizon, [1.0])
    values[..., -1] = np.nan  # a horizon shorter than every exploration
    at, least = experiments.best_exploration(values, exploration)
    assert_array_equal(np.isnan(at), [True, False, False, True, True])
    assert_array_equal(np.isnan(least), np.isnan(at))


def test_the_best_exploration_needs_three_lengths_that_rise():
    with pytest.raises(
        ValueError, match="exploration must be rising, at least 3 numbers"
    ):
        experiments.best_exploration([[[1.0]] * 3], [10.0, 1.0, 100.0])


# ------------------------------ policies in the same worlds


def draw(rng, n_pages=15):
    numbers = rng.random(n_pages), rng.random(n_pages)
    recall, false_rate = rng.beta(0.25, 0.25, n_pages), rng.uniform(0.1, 0.6, n_pages)
    return SignalledPages(*numbers, recall, false_rate)


def first_page(time, signals, crawl):
    """A policy that crawls nothing else."""
    return np.zeros(time.size, dtype=int)


def greedy_family(pages, rng):
    return {"greedy": Greedy(pages), "ncis": GreedyNCIS(pages)}


def test_a_run_of_a_comparison_depends_on_the_seed_and_its_number_alone():
    five, three = (
        compare(draw, greedy_family, 5.0, 20.0, n_runs=n, rng=3) for n in (5, 3)
    )
    for name, freshness in five.items():
        assert np.unique(freshness).size == 5
        assert_array_equal(freshness[:3], three[name])
    assert not (five["greedy"] == five["ncis"]).any()


def test_a_comparison_runs_the_same_policies_in_every_run_and_changes_none():
    policies = {"first": first_page}
    result = compare(draw, lambda pages, rng: policies, 5.0, 20.0, n_runs=3, rng=3)
    assert np.unique(result["first"]).size == 3
    assert set(policies) == {"first"}


def test_a_comparison_is_draws_and_crawls_of_four_streams():
    def numbers(pages):
        best = allocation.optimal_interval(pages.change_rate, pages.importance, 5.0)
        return {"bound": best.freshness}

    def noisy(pages):
        return {"ncis": GreedyNCIS(pages, discard_window=0.1)}

    def policies(pages, rng):
        return {"rates": Rates(rng.random(15))} | noisy(pages)

    borders, windows = [5.0, 10.0, 20.0], (lambda run: run.window_freshness)
    result = compare(
        draw,
        policies,
        5.0,
        20.0,
        n_runs=3,
        rng=5,
        keep=windows,
        borders=borders,
        numbers=numbers,
        delayed=noisy,
        delays={
            "soon": lambda rng, n: rng.random(n),
            "drawn": lambda rng, n: rng.exponential(2.0, n),
        },
    )
    assert result["bound"].shape == (3,)
    for k, stream in enumerate(np.random.default_rng(5).spawn(3)):
        of_pages, of_world, of_policies, of_delays = stream.spawn(4)
        world = draw_world(draw(of_pages), 20.0, rng=of_world)
        chosen, n = policies(world.pages, of_policies), world.sent.size
        assert result["bound"][k] == numbers(world.pages)["bound"]
        soon = world.delayed(of_delays.random(n))
        drawn = world.delayed(of_delays.exponential(2.0, n))
        by_hand = {
            "rates": crawl(world, chosen["rates"], 5.0, borders=borders),
            "ncis": crawl(world, chosen["ncis"], 5.0, borders=borders),
            "ncis, soon": crawl(soon, chosen["ncis"], 5.0, borders=borders),
            "ncis, drawn": crawl(drawn, chosen["ncis"], 5.0, borders=borders),
        }
        for name, run in by_hand.items():
            assert_array_equal(result[name][k], run.window_freshness)


# ------------------------------ many lengths of exploration

CHANGE = np.array([0.2, 0.5, 1.0, 3.0, 0.8, 0.3, 4.9, 0.15])
IMPORTANCE = np.array([1.0, 4.0, 0.5, 2.0, 6.0, 0.2, 3.0, 1.0])
PAGES = (CHANGE, IMPORTANCE, 4.0)  # one round takes 2

etc = partial(ExploreThenCommit, bounds=(0.1, 5.0))


def agree(one, other):
    """Means within 5 standard errors of their difference."""
    se = np.sqrt(np.var(one, axis=0) / len(one) + np.var(other, axis=0) / len(other))
    assert (np.abs(np.mean(one, axis=0) - np.mean(other, axis=0)) <= 5 * se).all()


@pytest.mark.parametrize("explore", ["interval", "rate"])
@pytest.mark.parametrize("exploration", [1.5, 6.9, 28.0])
def test_one_length_is_the_expected_regret_of_the_policy(explore, exploration):
    policy = etc(exploration=exploration, estimator=estimators.mle, explore=explore)
    options, lengths = {"n_runs": 4, "rng": 10}, {"exploration": [exploration]}
    horizon = [31.0, 50.0, 1e4]  # to simulate the third would take long
    got = explore_then_commit(policy, *PAGES, horizon=horizon, **lengths, **options)
    assert got.shape == (4, 1, 3)
    for k, end in enumerate(horizon[:2]):
        run = policy.run(*PAGES, end, **options)
        found = run.regret[:, -1]
        assert_allclose(got[:, 0, k], found, rtol=1e-9, atol=1e-9)


def test_many_lengths_have_the_mean_of_each_alone():
    lengths, options = [4.0, 10.0, 40.0], {"horizon": [30.0, 200.0], "n_runs": 100}
    explored = partial(explore_then_commit, etc(), *PAGES, **options)
    many = explored(exploration=lengths, rng=1)
    assert np.isnan(many).tolist() == [[[False] * 2] * 2 + [[True, False]]] * 100
    for k, length in enumerate(lengths):
        alone, known = explored(exploration=[length], rng=2), ~np.isnan(many[0, k])
        agree(many[:, k, known], alone[:, 0, known])


def test_the_bound_of_theorem_1_holds():
    rng, horizon = np.random.default_rng(8), np.array([3000.0, 3e4])
    bounds = {"bounds": (0.5, 1.0)}
    change, importance = rng.uniform(0.5, 1.0, 20), rng.lognormal(0, 1, 20)
    exploration = regret.optimal_exploration(20, 40.0, horizon=horizon, **bounds)
    options = {"exploration": exploration, "horizon": horizon}
    runs = explore_then_commit(
        ExploreThenCommit(**bounds),
        change,
        importance,
        40.0,
        **options,
        n_runs=30,
        rng=9,
    )
    bound = (
        regret.regret_bound(importance, 40.0, **options, **bounds) / importance.sum()
    )
    assert (bound < horizon).all()  # it says something
    assert (np.diagonal(runs, axis1=1, axis2=2) <= bound).mean() >= 0.9


lengths = partial(explore_then_commit, etc(), horizon=99.0)
RISE = "exploration in rounds must be rising, at least 1 numbers, got"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: lengths(*PAGES[:2], 0.0, exploration=[6.0]),
            "bandwidth must be positive and finite, got 0.0",
        ),
        (lambda: lengths(*PAGES, exploration=[6.0, 4.0]), f"{RISE} [3. 2.]"),
        (lambda: lengths(*PAGES, exploration=[6.0, 6.1]), f"{RISE} [3. 3.]"),
    ],
)
def test_lengths_of_exploration_must_rise(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


# ------------------------------ arrays of any kind

FORMS = {
    "list": np.ndarray.tolist,
    "Series": lambda x: pd.Series(x, index=range(x.size - 1, -1, -1)),
    "single": np.float32,
    "strided": lambda x: np.repeat(x, 2)[::2],
    "nothing masked": np.ma.masked_array,
}
RATE, SHARE = np.array([0.5, 2.0, 0.25]), np.array([0.5, 0.25, 0.75])
ROUNDS = np.array([4.0, 8.0, 16.0])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_any_kind_of_array_gives_what_a_plain_one_gives(form):
    def call(form):
        lengths = {"exploration": form(ROUNDS), "horizon": form(ROUNDS * 4)}
        pages = form(RATE), form(SHARE)
        return explore_then_commit(etc(), *pages, 2.0, **lengths, rng=1)

    got = call(form)
    assert not isinstance(got, np.ma.MaskedArray)
    assert_array_equal(got, call(np.copy))
