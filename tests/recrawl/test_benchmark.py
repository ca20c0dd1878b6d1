"""The benchmark of the field: worlds, measures, policies, and their table."""

import csv
import dataclasses
import itertools
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paperfigs import benchmarking, traces
from recrawl import cli
from recrawl.errors import DegeneratePriorWarning
from recrawl.kernels import indices as kernels
from recrawl.scheduler import Scheduler
from recrawl.science import field, freshness, policies, priors, simulate
from recrawl.science.policies.in_phases import at_intervals
from recrawl.science.signals import SignalledPages
from tests import plain as reference

ROOT = Path(__file__).parents[2]


def draw(rng, n_pages=20, horizon=30.0):
    rate = np.exp(1.5 * rng.standard_normal(n_pages))
    pages = SignalledPages(rate, rng.random(n_pages), 0.0, 0.0)
    return simulate.draw_world(pages, horizon, rng=rng)


SMALL = {"small": simulate.Nature(draw, 1.0)}
MAKERS = {
    "greedy": lambda at: policies.Greedy(at.pages),
    "bayes": lambda at: policies.BayesGreedy(at.importance, **at.prior._asdict()),
    "thompson": lambda at: policies.PosteriorGreedy(
        at.importance, how="thompson", rng=at.rng, **at.prior._asdict()
    ),
    "uniform": lambda at: policies.Rates(np.ones(at.importance.size)),
}


def bench(makers=MAKERS, worlds=SMALL, budgets=(1.0,), **options):
    given = {"n_runs": 3, "rng": 7} | options
    return simulate.benchmark(worlds, makers, budgets, **given)


def equal(one, other, names):
    for name in names:
        cell = "small", 1.0, name
        np.testing.assert_array_equal(one.runs[cell], other.runs[cell])


# ------------------------------------------------------------- what crawls find


def test_a_world_observes_what_processes_observe_finds():
    world = draw(np.random.default_rng(1))
    time = simulate.slot_times(20.0, 30.0)
    page = np.random.default_rng(2).integers(-1, 20, time.size)
    last = np.zeros(20)
    last[3] = -np.inf
    found = world.observe(time, page, last, ages=True)
    change, offsets = world.changes
    for i in range(20):
        crawls = np.append([] if i == 3 else [0.0], time[page == i])
        own = change[offsets[i] : offsets[i + 1]]
        here = slice(*found.offsets[i : i + 2])
        np.testing.assert_allclose(found.interval[here], np.diff(crawls))
        for j, (before, now) in enumerate(itertools.pairwise(crawls)):
            new = own[(before < own) & (own <= now)]
            assert found.changed[here][j] == (new.size > 0)
            age = now - new[-1] if new.size else np.nan
            np.testing.assert_allclose(found.age[here][j], age)


def test_false_changes_come_to_all_policies_in_the_same_slots():
    world = draw(np.random.default_rng(1)).with_false_changes(0.3, rng=5)
    time = simulate.slot_times(400.0, 30.0)
    page = np.tile(np.arange(20), 600)
    honest = dataclasses.replace(world, false_change=0.0)
    told, true = (w.observe(time, page) for w in (world, honest))
    quiet = ~true.changed
    assert (told.changed >= true.changed).all()
    share, n = told.changed[quiet].mean(), quiet.sum()
    assert share == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / n))


def test_false_changes_reach_every_policy_that_is_told_what_it_finds():
    quiet = simulate.replay([[]] * 4, 100.0)
    noisy = quiet.with_false_changes(0.5, rng=1)
    prior = {"shape": 0.5, "rate": 5.0}
    importance = np.array([1.0, 0.8, 0.5, 0.3])
    for policy in (
        policies.BayesGreedy(importance, **prior),
        policies.PosteriorGreedy(importance, **prior),
        policies.LearningGreedy(importance, 5.0, use_signals=False),
        policies.Nutch(initial=2.0),
        policies.RatesInPhases(
            importance, [5.0, 20.0], lambda h: 0.1 + h.total(h.changed)
        ),
    ):
        runs = [simulate.crawl(world, policy, 1.0) for world in (quiet, noisy)]
        assert not np.array_equal(runs[0].page, runs[1].page), policy
        # A false change does not make a copy stale.
        assert runs[1].freshness == 1.0


def test_ages_update_the_posterior_as_a_conjugate_prior_does():
    world = simulate.replay([[0.25, 0.75], []], 2.0)
    policy = policies.BayesGreedy(
        [1.0, 0.0], shape=0.5, rate=1.0, observation="last_modified"
    )
    state = policy.start(np.zeros(2))
    out = np.empty(2, np.int64)
    kernels.slots(state, np.array([1.0, 2.0]), world.unseen(2), True, out)
    assert out.tolist() == [0, 0]
    # One known change, 0.25 ago, then none in one unit of time.
    assert state.pages["gamma_shape"][0] == pytest.approx(1.5)
    assert state.pages["rate"][0] == pytest.approx(1.0 + 0.25 + 1.0)


def test_ages_help_the_bayes_value():
    makers = {
        "bit": MAKERS["bayes"],
        "age": lambda at: policies.BayesGreedy(
            at.importance, observation="last_modified", **at.prior._asdict()
        ),
    }
    gain, stderr = bench(makers, n_runs=60).gain("small", 1.0, "age", over="bit")
    assert gain > 3 * stderr


# ----------------------------------------------------------------------- measures


def test_costs_are_those_of_the_plain_form():
    world = draw(np.random.default_rng(3))
    run = simulate.crawl(world, policies.Nutch(day=0.1), bandwidth=15.0)
    change, offsets = world.changes
    changes = np.split(change, offsets[1:-1])
    crawls = [run.time[run.page == i].tolist() for i in range(20)]
    expected = reference.costs(
        [own.tolist() for own in changes], crawls, run.importance.tolist(), 30.0
    )
    np.testing.assert_allclose(simulate.costs(run, world), expected, rtol=1e-12)


def test_costs_without_changes_or_crawls():
    quiet = simulate.replay([[], []], 5.0)
    nobody = simulate.crawl(quiet, policies.Nutch(initial=90.0), bandwidth=1.0)
    delay, late, age, harmonic = simulate.costs(nobody, quiet)
    assert np.isnan([delay, late]).all()
    assert (age, harmonic) == (0.0, 0.0)
    busy = simulate.replay([[1.0], []], 5.0)
    missed = simulate.crawl(busy, policies.Nutch(initial=90.0), bandwidth=1.0)
    assert simulate.costs(missed, busy) == (4.0, 4.0, 16 / 2 / 10, 4 / 10)
    ignored = dataclasses.replace(missed, importance=np.zeros(2))
    assert np.isnan(simulate.costs(ignored, busy)).all()


@pytest.mark.slow
def test_uniform_crawling_has_the_costs_of_theory():
    def alike(rng):
        pages = SignalledPages(np.ones(50), 1.0, 0.0, 0.0)
        return simulate.draw_world(pages, 200.0, rng=rng)

    with pytest.warns(DegeneratePriorWarning):  # of pages that are all alike
        found = bench(MAKERS, {"small": simulate.Nature(alike, 1.0)}, n_runs=10)
    means = {m: found.measure("small", 1.0, "uniform", m) for m in simulate.MEASURES}
    fresh = freshness.interval([1.0], [1.0]).item()
    assert means["freshness"][0] == pytest.approx(fresh, abs=0.005)
    mean, stderr = means["delay"]  # of a change, uniform in an interval of 1
    assert mean == pytest.approx(0.5, abs=4 * stderr + 0.005)
    assert means["late"][0] == pytest.approx(0.95, abs=0.01)
    assert means["age"][0] == pytest.approx(0.5 - np.exp(-1.0), abs=0.005)
    assert means["used"] == (1.0, 0.0)
    assert means["never_crawled"] == (0.0, 0.0)


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
        return np.array([1.0, 100.0])  # too fast to be worth a crawl

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


# ------------------------------------------------------------------ the benchmark


@pytest.mark.slow
def test_other_cells_policies_and_jobs_change_no_run():
    whole = bench(budgets=[0.5, 1.0], jobs=2)
    alone = bench({"thompson": MAKERS["thompson"]})
    equal(whole, alone, ["thompson"])
    other = bench({"thompson": MAKERS["thompson"]}, rng=8)
    assert not np.array_equal(
        other.runs["small", 1.0, "thompson"], alone.runs["small", 1.0, "thompson"]
    )


def test_any_source_of_randomness_is_a_seed():
    few = {"greedy": MAKERS["greedy"]}
    runs = [
        bench(few, rng=rng).runs["small", 1.0, "greedy"]
        for rng in (0, np.random.default_rng(5), np.random.default_rng(5), None)
    ]
    np.testing.assert_array_equal(runs[1], runs[2])
    for first, second in ((0, 1), (1, 3)):
        assert not np.array_equal(runs[first], runs[second])


def test_finished_cells_are_kept_and_missing_policies_added(tmp_path):
    made = []

    def counted(at):
        made.append(at)
        return policies.Greedy(at.pages)

    few = bench(MAKERS, folder=tmp_path)
    more = bench(MAKERS | {"counted": counted}, folder=tmp_path)
    assert len(made) == 3
    equal(few, more, MAKERS)
    again = bench(MAKERS | {"counted": counted}, folder=tmp_path)
    assert len(made) == 3
    equal(again, more, [*MAKERS, "counted"])
    bench({"counted": counted}, folder=tmp_path, rng=8)  # another seed: run anew
    assert len(made) == 6
    other = {"small": simulate.Nature(partial(draw, horizon=31.0), 1.0)}
    bench({"counted": counted}, other, folder=tmp_path, rng=8)  # other worlds, too
    assert len(made) == 9


@pytest.mark.parametrize(
    "other",
    [
        simulate.Nature(draw, 3.0),
        simulate.Nature(lambda rng: draw(rng).with_false_changes(0.9, rng=1), 1.0),
    ],
)
def test_a_kept_cell_of_another_nature_is_run_anew(tmp_path, other):
    nutch = {"nutch": lambda at: policies.Nutch(day=0.1)}
    bench(nutch, folder=tmp_path)
    found, alone = (bench(nutch, {"small": other}, folder=f) for f in (tmp_path, None))
    equal(found, alone, nutch)


def test_a_kept_cell_of_another_format_is_run_anew(tmp_path):
    few = {"uniform": MAKERS["uniform"]}
    np.savez(tmp_path / "small-1.npz", **{"": [3, 7, 20, 1], "uniform": np.zeros(3)})
    equal(bench(few, folder=tmp_path), bench(few), few)
    equal(bench(few, folder=tmp_path), bench(few), few)


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\3\4", None])
def test_a_kept_cell_that_is_damaged_is_named(tmp_path, content):
    bench(folder=tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(ValueError, match=r"small-1\.npz .* damaged: delete it"):
        bench(folder=tmp_path)


def test_any_text_is_the_name_of_a_policy(tmp_path):
    odd = dict.fromkeys(("", "file", "settings", "a/b"), MAKERS["uniform"])
    equal(bench(odd, folder=tmp_path), bench(odd, folder=tmp_path), odd)


def test_progress_is_that_of_the_work_that_is_left(tmp_path):
    seen = []

    def noted(share, seconds):
        seen.append(share)

    bench(budgets=[1.0], folder=tmp_path, progress=noted)
    bench(budgets=[1.0, 3.0], folder=tmp_path, progress=noted)
    bench(budgets=[1.0, 3.0], folder=tmp_path, progress=noted)
    assert seen == [1.0, 0.0, 1.0, 1.0, 1.0]


def test_gains_are_paired_differences():
    found = bench(n_runs=5)
    runs = {name: found.runs["small", 1.0, name] for name in MAKERS}
    difference = runs["greedy"][:, 0] - runs["uniform"][:, 0]
    mean, stderr = found.gain("small", 1.0, "greedy", over="uniform")
    assert mean == pytest.approx(difference.mean())
    assert stderr == pytest.approx(difference.std(ddof=1) / np.sqrt(5))
    windows, _ = found.gain_over_time("small", 1.0, "greedy", "uniform")
    assert windows.mean() == pytest.approx(mean)  # windows of equal length
    given = {"small": simulate.Nature(draw, 1.0, bootstrap=True)}
    _, spread = bench(worlds=given, n_runs=5).gain("small", 1.0, "greedy", "uniform")
    assert spread == pytest.approx(difference.std(ddof=1))


def test_one_run_has_no_standard_error():
    mean, stderr = bench(n_runs=1).measure("small", 1.0, "greedy", "freshness")
    assert 0.0 < mean < 1.0
    assert np.isnan(stderr)


def test_a_scheduler_that_is_told_crawls_as_its_policy_does():
    asked = {
        "bayes": lambda at: Scheduler(MAKERS["bayes"](at), crawled=0.0),
        # Its Scheduler refuses reports, for it learns nothing.
        "greedy": lambda at: _Silent(Scheduler(MAKERS["greedy"](at), crawled=0.0)),
    }
    equal(bench(), bench(asked), asked)


class _Silent:
    def __init__(self, scheduler):
        self.next = scheduler.next


def test_the_prior_is_learnt_from_other_pages():
    priors = []
    bench({"kept": lambda at: priors.append(at.prior) or policies.Greedy(at.pages)})
    assert len({id(prior) for prior in priors}) == 1
    # lognormal with sigma 1.5 and median 1: a gamma distribution of similar spread
    low, high = priors[0].interval(level=0.5)
    assert 0.1 < low < 1.0 < high < 10.0


def test_rows_have_every_measure_and_comparison():
    rows = bench().rows(over=["uniform", "nobody"])
    assert [row["policy"] for row in rows] == list(MAKERS)
    for row in rows:
        names = [*simulate.MEASURES, "over uniform"]
        assert set(row) >= {*names, *(f"{name} ±" for name in names)}
        assert "over nobody" not in row
    assert rows[-1]["over uniform"] == 0.0
    over_time = bench(n_windows=4).rows_over_time("uniform")
    assert len(over_time) == 4 * len(MAKERS)
    assert [row["until"] for row in over_time[:4]] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"budgets": [0.0]}, "budgets must be positive"),
        ({"n_runs": 0}, "n_runs must be a positive integer"),
        ({"n_runs": [3, 3]}, "one for each of the 1 budgets, got \\[3, 3\\]"),
        ({"n_windows": 0}, "n_windows must be a positive integer"),
        ({"budgets": [[1.0, 2.0]]}, "budgets must be numbers in one list"),
        ({"budgets": []}, "budgets must not be empty"),
        ({"worlds": {}}, "worlds must not be empty"),
        ({"makers": {}}, "policies must not be empty"),
        ({"jobs": 0}, "jobs must be positive, or -1"),
    ],
)
def test_bad_arguments(changed, message):
    with pytest.raises(ValueError, match=message):
        bench(**changed)


def test_a_measure_that_is_none():
    found = bench({"uniform": MAKERS["uniform"]}, n_runs=1)
    cell = "small", 1.0, "uniform"
    message = "name must be 'freshness', .*, got 'speed'"
    with pytest.raises(ValueError, match=message):
        found.measure(*cell, "speed")
    with pytest.raises(ValueError, match=message):
        found.gain(*cell, over="uniform", name="speed")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (lambda n: np.zeros(n - 1, int), "integer for each of 600 slots"),
        (lambda n: np.zeros(n), "integer for each of 600 slots, got float64"),
        (lambda n: np.full(n, 20), "pages from 0 to 19, or -1, got 20"),
        (lambda n: np.full(n, -2), "got -2"),
    ],
)
def test_a_policy_that_chooses_what_is_no_page(page, message):
    class Wrong:
        def choose(self, world, time, last):
            return page(time.size)

    with pytest.raises(ValueError, match=message):
        bench({"wrong": lambda at: Wrong()})


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("page", [10**9, 20, -2, 10**30, 1.5, np.nan, None, "3"])
def test_a_scheduler_whose_next_is_no_page(page, told):
    class Wrong:
        def next(self, time):
            return page

    if told:
        Wrong.report = lambda self, page, changed: None
    with pytest.raises(ValueError, match="next must return an integer from 0 to 19"):
        bench({"wrong": lambda at: Wrong()})


# ---------------------------------------------------------------------- the field


@pytest.mark.slow
def test_every_policy_of_the_field_competes_where_it_can():
    natures = field.worlds(n_pages=8, horizon=12.0)
    makers = {name: entry.make for name, entry in field.POLICIES.items()}
    found = simulate.benchmark(natures, makers, [1.0], n_runs=1, rng=1)
    for world in natures:
        ran = {policy for w, _, policy in found.runs if w == world}
        signals = {n for n, entry in field.POLICIES.items() if entry.sees == "signals"}
        assert ran == set(makers) - (set() if world == "signals" else signals)
    for runs in found.runs.values():
        assert np.isfinite(runs[:, [0, 5, 6]]).all()
        assert (runs[:, 0] >= 0).all()
        assert (runs[:, 0] <= 1).all()


def test_a_hedge_of_learnt_rates_gives_no_page_up():
    n_pages, horizon = 30, 100.0
    nature = field.worlds(n_pages=n_pages, horizon=horizon)["lognormal 1.5"]
    world = nature.draw(np.random.default_rng(1))
    prior = priors.GammaPrior(1.0, 1.0)
    at = simulate.Situation(
        world.pages, world.pages.importance, n_pages, horizon, prior, None
    )
    least = {}
    for name in ("phases", "phases, hedged"):
        policy = field.POLICIES[name].make(at)
        run = simulate.crawl(world, policy, bandwidth=n_pages)
        late = run.page[run.time > horizon / 2]
        least[name] = np.bincount(late, minlength=n_pages).min()
    # equal rates would be one crawl in a unit of time
    share = 0.25 * horizon / 2
    assert least["phases"] == 0
    assert least["phases, hedged"] == pytest.approx(share, abs=1.5)


@pytest.mark.parametrize("name", list(field.worlds()))
def test_worlds_change_as_often_as_their_pages_are_said_to(name):
    nature = field.worlds(n_pages=400, horizon=40.0)[name]
    world = nature.draw(np.random.default_rng(4))
    rate, (time, offsets) = world.pages.change_rate, world.changes
    assert np.median(rate) == pytest.approx(1.0, rel=0.35)
    count = np.diff(offsets)
    # Of a renewal process with shape 0.4 counts vary 2.5 times as much as Poisson's.
    assert count.sum() == pytest.approx(
        40.0 * rate.sum(), abs=4 * np.sqrt(2.5 * 40.0 * rate.sum())
    )
    assert time.min() > 0.0
    # From the start on: a renewal process does not begin with a change.
    soon = 0.1 * rate.sum()
    near = pytest.approx(soon, abs=4 * np.sqrt(2.5 * soon))
    assert name == "office hours" or np.count_nonzero(time < 0.1) == near
    first = np.count_nonzero(time < 20.0)
    assert first == pytest.approx(count.sum() / 2, rel=0.25 if name == "drift" else 0.1)


def test_shapes_of_the_worlds():
    natures = field.worlds(n_pages=300, horizon=60.0)

    def variation(name):
        time, offsets = natures[name].draw(np.random.default_rng(5)).changes
        gaps = [np.diff(own) for own in np.split(time, offsets[1:-1]) if own.size > 40]
        return np.mean([own.std() / own.mean() for own in gaps])

    assert variation("regular") == pytest.approx(3**-0.5, rel=0.1)
    assert variation("bursty") == pytest.approx(0.4**-0.5, rel=0.1)
    assert variation("lognormal 1") == pytest.approx(1.0, rel=0.1)
    office, _ = natures["office hours"].draw(np.random.default_rng(5)).changes
    assert ((office % 1 >= 8 / 24) & (office % 1 <= 18 / 24)).all()
    assert natures["false changes"].draw(np.random.default_rng(5)).false_change == 0.05


def test_real_worlds_take_pages_that_were_observed_long_enough():
    pages = traces.panel()
    nature = field.real_worlds(pages, least_window=14 * 365.25, n_pages=30)
    assert nature.bootstrap
    old = pages.window >= 14 * 365.25
    assert nature.change_rate == np.median(pages.change_rate[old])
    world = nature.draw(np.random.default_rng(1))
    assert world.horizon == pages.window[old].min()
    assert set(world.pages.importance) <= set(pages.importance[old])


def test_real_worlds_have_as_many_pages_as_there_are_to_draw_from():
    pages = traces.panel()
    nature = field.real_worlds(pages, least_window=14 * 365.25)
    world = nature.draw(np.random.default_rng(1))
    assert world.start.size == np.count_nonzero(pages.window >= 14 * 365.25)
    with pytest.raises(ValueError, match=r"longest window, 10\d+\.\d, got 1e"):
        field.real_worlds(pages, least_window=1e9)


# -------------------------------------------------------------------- the command


ENTRANT = """
class Mine:
    def __init__(self, situation):
        self.n, self.page = situation.importance.size, -1

    def next(self, time):
        self.page = (self.page + 1) % self.n
        return self.page


class Nutch(Mine):
    pass


nothing = 3
"""


@pytest.mark.slow
def test_the_command_runs_an_entrant_beside_others(tmp_path, monkeypatch, capsys):
    preview = {
        "worlds": ("lognormal 1.5", "real pages, 14 years"),
        "policies": ("GREEDY", "Nutch", "uniform"),
        "budgets": (0.3,),
        "n_runs": 2,
    }
    monkeypatch.setattr(benchmarking, "PREVIEW", preview)
    (tmp_path / "mine.py").write_text(ENTRANT)
    call = ["benchmark", f"{tmp_path / 'mine.py'}:Mine", "--preview", "--jobs", "1"]
    assert not cli.main([*call, "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.count("Mine") == 2
    with open(tmp_path / "benchmark.csv", newline="") as file:
        rows = {(row["world"], row["policy"]): row for row in csv.DictReader(file)}
    assert len(rows) == 8
    # In turn is what uniform crawling is.
    mine, uniform = (rows["lognormal 1.5", name] for name in ("Mine", "uniform"))
    assert mine["freshness"] == uniform["freshness"]
    with open(tmp_path / "benchmark_over_time.csv", newline="") as file:
        found = {row["world"] for row in csv.DictReader(file)}
    assert found == {"real pages, 14 years"}
    with open(tmp_path / "benchmark_delay.csv", newline="") as file:
        for row in csv.DictReader(file):  # the pair is the difference of the means
            means = (rows[row["world"], name] for name in (row["policy"], "uniform"))
            one, other = (float(mean["delay"]) for mean in means)
            assert float(row["over uniform"]) == pytest.approx(one - other, rel=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine", "must be given as FILE.py:NAME, got 'mine'"),
        ("mine.py:", "must be given as FILE.py:NAME"),
        ("mine.py:Nobody", "must have a function or class Nobody, got None"),
        ("mine.py:nothing", "must have a function or class nothing, got 3"),
        ("mine.py:Nutch", "the field has a Nutch; give yours another name"),
        ("other.py:Mine", "No such file"),
    ],
)
def test_an_entrant_that_is_none(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(ENTRANT)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        benchmarking.entrant(text)


@pytest.mark.parametrize(
    ("code", "message", "jobs"),
    [
        ("def Mine(at):\n    raise OSError('boom')", ", line 2: OSError: boom", "1"),
        ("class Mine:\n    def __init__(self): pass", ": TypeError: .*takes 1", "1"),
        ("class Mine:\n    def __init__(self, at)", ", line 2: SyntaxError", "1"),
        ("import nowhere_to_be_found", ", line 1: ModuleNotFoundError", "1"),
        pytest.param(
            ENTRANT.replace("return", "1 / 0 #"),
            ", line 8: ZeroDivisionError",
            "2",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_error_of_an_entrant_has_its_line(tmp_path, capsys, code, message, jobs):
    (tmp_path / "mine.py").write_text(code)
    call = ["benchmark", f"{tmp_path / 'mine.py'}:Mine", "--preview", "--jobs", jobs]
    assert cli.main(call) == 2
    printed = capsys.readouterr().err
    assert re.search(f"recrawl: .*mine.py{message}", printed)
    assert "field:" not in printed  # the others have not been run


def test_a_folder_that_does_not_exist_shows_before_the_run(tmp_path, capsys):
    assert cli.main(["benchmark", "--preview", "--output", f"{tmp_path}/new"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("recrawl: --output must be a folder that exists, got")
    assert not list(tmp_path.iterdir())


def test_two_entrants_need_two_names(tmp_path):
    (tmp_path / "mine.py").write_text(ENTRANT)
    with pytest.raises(ValueError, match="names of their own, got two Mine"):
        benchmarking.run([f"{tmp_path / 'mine.py'}:Mine"] * 2, preview=True)


def test_pages_need_a_name_of_their_own():
    with pytest.raises(ValueError, match="that is not named as a world is"):
        benchmarking.worlds("bursty.csv")


# ------------------------------------------------------------- the committed table


def committed(name="benchmark.csv"):
    with open(ROOT / "data" / name, newline="") as file:
        return {
            (row["world"], float(row["budget"]), row["policy"]): row
            for row in csv.DictReader(file)
        }


PLACES = "lognormal 1.5", "real pages, 14 years"


@pytest.mark.slow
def test_the_committed_table_is_what_the_code_measures():
    of = "GREEDY", "interval optimum", "Bayes value", "uniform", "Nutch"
    kinds = {name: benchmarking.worlds()[name] for name in PLACES}
    makers = {name: field.POLICIES[name].make for name in of}
    budget, n_runs = field.BUDGETS[-1], field.RUNS[-1]
    found = bench(makers, kinds, [budget], n_runs=n_runs, rng=20)
    rows, table = found.rows(over=["GREEDY", "uniform"]), committed()
    assert len(rows) == len(PLACES) * len(of)
    for row in rows:
        kept = table[row["world"], budget, row["policy"]]
        for name in set(row) - {"world", "policy"}:
            # five digits are kept, and rounding may swap two crawls
            assert row[name] == pytest.approx(float(kept[name]), rel=1e-3, abs=1e-6)


def test_the_page_on_policies_says_what_the_benchmark_measured():
    measured = committed()
    page = (ROOT / "docs" / "which-policy.md").read_text().splitlines()
    table = [line.strip("| ").split(" | ") for line in page if line.startswith("| ")]
    heads = [k for k, row in enumerate(table) if "world" in row]
    gains, costs = table[1 : heads[1]], table[heads[1] + 1 :]
    assert heads[0] == 0
    assert len(gains) > 12
    assert len(costs) > 12
    shown = []
    for _, policy, world, *cells in gains:
        of = [("uniform", budget) for budget in field.BUDGETS]
        of += [("Nutch", 0.1), ("Nutch", 1.0)]
        for cell, (other, budget) in zip(cells, of, strict=True):
            shown.append((cell, measured[world, budget, policy], f"over {other}", 1e3))
    paired = committed("benchmark_delay.csv")
    delays = (measured, "delay"), (paired, "over uniform")
    for world, policy, *cells in costs:
        at = [(world, budget, policy) for budget in (0.1, 1.0)]
        of = [(of_delay, name, cell) for cell in at for of_delay, name in delays]
        of += [(measured, "harmonic", cell) for cell in at]
        for cell, (table, name, where) in zip(cells, of, strict=True):
            shown.append((cell, table[where], name, 1))
    for cell, row, name, unit in shown:
        for text, sign in zip(cell.split(" ± "), ("", " ±"), strict=True):
            half = 0.51 * 10.0 ** -len(text.partition(".")[2])  # of the last digit
            assert float(text) == pytest.approx(
                unit * float(row[name + sign]), abs=half
            )
