"""The field: worlds, policies in phases, and the table of the benchmark."""

import csv
import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from paperlib.signals import SignalledPages
from recrawl.science import field, policies, simulate
from recrawl.science.policies.in_phases import at_intervals

DATA = Path(__file__).parents[2] / "data"
KINDS = field.worlds(n_pages=30, horizon=30.0)
FEW = {name: field.POLICIES[name] for name in ("uniform", "GREEDY", "Bayes value")}


def draw(rng, n_pages=20, horizon=30.0):
    rate = np.exp(1.5 * rng.standard_normal(n_pages))
    pages = SignalledPages(rate, rng.random(n_pages), 0.0, 0.0)
    return simulate.draw_world(pages, horizon, rng=rng)


# ------------------------------------------------------------- what crawls find


def test_a_world_observes_what_its_changes_say():
    world = draw(np.random.default_rng(1))
    time = simulate.slot_times(20.0, 30.0)
    page = np.random.default_rng(2).integers(-1, 20, time.size)
    last = np.zeros(20)
    last[3] = -np.inf
    found = world.observe(time, page, last)
    change, offsets = world.changes
    for i in range(20):
        crawls = np.append([] if i == 3 else [0.0], time[page == i])
        own = change[offsets[i] : offsets[i + 1]]
        here = slice(*found.offsets[i : i + 2])
        np.testing.assert_allclose(found.interval[here], np.diff(crawls))
        for j, (before, now) in enumerate(itertools.pairwise(crawls)):
            new = own[(before < own) & (own <= now)]
            assert found.changed[here][j] == (new.size > 0)


def test_false_changes_come_to_all_policies_in_the_same_slots():
    world = draw(np.random.default_rng(1)).with_false_changes(0.3, rng=5)
    time = simulate.slot_times(400.0, 30.0)
    page = np.tile(np.arange(20), 600)
    honest = dataclasses.replace(world, false_change=0.0)
    noisy, true = (w.observe(time, page) for w in (world, honest))
    quiet = ~true.changed
    assert (noisy.changed >= true.changed).all()
    share, n = noisy.changed[quiet].mean(), quiet.sum()
    assert share == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / n))


def test_false_changes_reach_every_policy_that_learns():
    quiet = simulate.replay([[]] * 4, 100.0)
    noisy = quiet.with_false_changes(0.5, rng=1)
    prior = {"shape": 0.5, "rate": 5.0}
    importance = np.array([1.0, 0.8, 0.5, 0.3])
    for policy in (
        policies.BayesGreedy(importance, **prior),
        policies.PosteriorGreedy(importance, **prior),
        policies.Nutch(initial=2.0),
        policies.RatesInPhases(
            importance, [5.0, 20.0], lambda h: 0.1 + h.total(h.changed)
        ),
    ):
        runs = [simulate.crawl(world, policy, 1.0) for world in (quiet, noisy)]
        assert not np.array_equal(runs[0].page, runs[1].page), policy
        # A false change does not make a copy stale.
        assert runs[1].freshness == 1.0


# ----------------------------------------------------------------- rates in phases


def test_at_intervals_crawls_each_page_at_equal_intervals():
    rate = np.array([5.0, 2.0, 1.0, 0.0])
    page = at_intervals(rate, np.zeros(4), 0.0, 800)
    assert np.bincount(page, minlength=4).tolist() == [500, 200, 100, 0]
    for i in range(3):  # in slots: within two slots of the interval
        gaps = np.diff(np.flatnonzero(page == i))
        assert abs(gaps - 8.0 / rate[i]).max() <= 2.0


def test_at_intervals_begins_with_pages_that_are_overdue():
    page = at_intervals(np.ones(3), np.array([9.0, -np.inf, 9.5]), 10.0, 3)
    assert page.tolist() == [0, 1, 2]


def test_rates_in_phases_go_by_the_estimates():
    seen = []

    def estimator(history):
        seen.append(history)
        return np.array([1.0, 4.0])

    world = draw(np.random.default_rng(1), n_pages=2, horizon=40.0)
    policy = policies.RatesInPhases([1.0, 1.0], [10.0, 20.0], estimator)
    run = simulate.crawl(world, policy, bandwidth=5.0)
    # What the estimator sees is what the crawls of the first two phases found.
    for history, end in zip(seen, (10.0, 20.0), strict=True):
        early = run.time < end
        of_first = history.interval[history.offsets[0] : history.offsets[1]]
        crawls = np.append(0.0, run.time[early & (run.page == 0)])
        np.testing.assert_allclose(of_first, np.diff(crawls))
    best = policy.allocation([1.0, 4.0], [1.0, 1.0], 5.0).crawl_rate
    late = run.page[run.time >= 10.0]
    np.testing.assert_allclose(np.bincount(late) / 30.0, best, rtol=0.02)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_rates_in_phases_explore_by_epsilon(epsilon):
    def estimator(_):
        return np.array([1.0, 100.0])  # changes too fast for any crawl

    world = draw(np.random.default_rng(1), n_pages=2, horizon=200.0)
    policy = policies.RatesInPhases(
        [1.0, 1.0], [1.0], estimator, epsilon=epsilon, spacing="poisson", rng=1
    )
    page = simulate.crawl(world, policy, bandwidth=5.0).page[5:]
    n = page.size * epsilon / 2
    assert (page == 1).sum() == pytest.approx(n, abs=4 * np.sqrt(n) + 1e-9)


def test_a_page_without_an_estimate_is_taken_for_the_median():
    world = draw(np.random.default_rng(1), n_pages=3)
    rates = [[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]]
    runs = [
        simulate.crawl(
            world,
            policies.RatesInPhases(np.ones(3), [1.0], lambda _, r=r: np.array(r)),
            3.0,
        )
        for r in rates
    ]
    np.testing.assert_array_equal(runs[0].page, runs[1].page)


# ------------------------------------------------------------------------- worlds


@pytest.mark.parametrize("name", KINDS)
def test_worlds_have_the_rates_that_they_name(name):
    nature = KINDS[name]
    rng = np.random.default_rng(1)
    drawn = [nature.draw(stream) for stream in rng.spawn(40)]
    counts = np.concatenate([np.diff(world.changes[1]) for world in drawn])
    rate = np.concatenate([world.pages.change_rate for world in drawn])
    assert np.median(rate) == pytest.approx(nature.change_rate, rel=0.15)
    assert counts.sum() == pytest.approx(30.0 * rate.sum(), rel=0.05)
    assert (drawn[0].false_change > 0) == (name == "false changes")


def test_real_worlds_have_the_changes_of_the_panel():
    short = field.real_worlds(DATA)
    long = field.real_worlds(DATA, least_window=14 * 365.25)
    assert long.bootstrap
    worlds = [nature.draw(np.random.default_rng(1)) for nature in (short, long)]
    assert [world.pages.importance.size for world in worlds] == [106, 53]
    assert [round(world.horizon) for world in worlds] == [1219, 5328]
    assert round(long.change_rate, 4) == 0.0069


# ------------------------------------------------------------------ the benchmark


def bench(makers=FEW, n_runs=3, **options):
    kinds = {"bursty": KINDS["bursty"]}
    rows = field.benchmark(kinds, makers, [1.0], n_runs=n_runs, **options)
    return {row["policy"]: row for row in rows}


def test_every_policy_runs_and_has_every_measure():
    found = bench(field.POLICIES)
    assert list(found) == list(field.POLICIES)
    assert len(field.POLICIES) == 14
    for row in found.values():
        assert 0 < row["freshness"] < 1
        assert 0.5 < row["used"] <= 1
        for name in field.MEASURES:
            assert np.isfinite([row[name], row[f"{name} ±"]]).all()
    for name in ("GREEDY", "interval optimum", "Bayes value"):
        assert found[name]["over uniform"] > 3 * found[name]["over uniform ±"]
    assert found["by change rate"]["over uniform"] < 0


def test_other_policies_and_jobs_change_no_run():
    alone = bench({"uniform": field.POLICIES["uniform"]})["uniform"]
    whole = bench(jobs=2)["uniform"]
    for name, value in alone.items():
        assert whole[name] == value


def test_gains_are_paired_differences():
    found = bench(n_runs=5)
    gain = found["GREEDY"]["freshness"] - found["uniform"]["freshness"]
    assert found["GREEDY"]["over uniform"] == pytest.approx(gain)
    assert found["uniform"]["over uniform"] == 0.0
    # in the same worlds: the error is below that of two independent means
    error = np.hypot(found["GREEDY"]["freshness ±"], found["uniform"]["freshness ±"])
    assert found["GREEDY"]["over uniform ±"] < error
    assert np.isnan(bench(n_runs=1)["GREEDY"]["freshness ±"])


@pytest.mark.filterwarnings("ignore::recrawl.errors.DegeneratePriorWarning")
def test_the_delay_is_that_of_each_change():
    world = simulate.replay([[1.5, 2.0], [3.5]], 4.0, importance=[1.0, 3.0])
    nature = field.Nature(lambda rng: world, 1.0)

    def make(at):
        return policies.Rates(np.array([1.0, 0.0]))

    (row,) = field.benchmark({"one": nature}, {"first": make}, [0.5], n_runs=1)
    # page 0 is crawled at 1, 2, 3, 4, page 1 never: delays of .5, 0, and .5
    assert row["delay"] == pytest.approx((0.5 + 0.0 + 3 * 0.5) / 5)
    assert row["never_crawled"] == 0.5


@pytest.mark.slow
def test_the_table_is_that_of_the_program():
    """One cell of data/benchmark.csv, run again."""
    world, budget = "real pages, 14 years", 3.0
    with open(DATA / "benchmark.csv", encoding="utf-8") as file:
        table = {
            row["policy"]: row
            for row in csv.DictReader(file)
            if (row["world"], float(row["budget"])) == (world, budget)
        }
    assert list(table) == list(field.POLICIES)
    nature = field.real_worlds(DATA, least_window=14 * 365.25)
    for row in field.benchmark({world: nature}, FEW, [budget], n_runs=30):
        for name in ("freshness", "freshness ±", "over uniform", "delay"):
            kept = float(table[row["policy"]][name])
            assert row[name] == pytest.approx(kept, rel=2e-4, abs=1e-9)
