"""Runs with other seeds and readings, with a stand-in for the kernel."""

import json
import os
import time
from pathlib import Path

import pytest

from paperfigs import build, cli, project, robust, verdicts

PARAMETERS = "n = 5\nn_runs = 9\nk = 1\nm = 'x'\nseed = 1\noutput_dir = None"
FREE = {
    "n": {"ours": 6, "others": [7, 8], "words": "Many."},
    "pages": {
        "ours": {"k": 1, "m": "x"},
        "others": [{"k": 2, "m": "y"}],
        "words": "Some.",
    },
}
SETTINGS = {"paper": {"n": 6, "n_runs": 100}, "robust": {"n_runs": 20}, "free": FREE}
SEEDS = [("seed", seed) for seed in (11, 12, 13, 14, 15)]
READINGS = [("n", 7), ("n", 8), ("pages", {"k": 2, "m": "y"})]


class StandIn:
    """In place of `build.execute`: a run measures its seed, and is kept in a list."""

    def __init__(self, checkout):
        self.checkout = checkout
        self.calls = []
        self.plots = 0
        self.failing = lambda parameters: False
        self.during = lambda: None

    def __call__(self, notebook, executed, *, output_dir, **parameters):
        assert "NUMBA_CACHE_DIR" in os.environ, "prepared"
        if notebook.name == "claims.ipynb":
            assert notebook.parent == self.checkout.root / "notebooks"
            assert output_dir == str(self.checkout.root / "figures")
            self.plots += 1
            return
        assert Path(output_dir).parent == self.checkout.root / "build"
        figure = f"{notebook.parent.name}/{notebook.stem.split('_')[0]}"
        self.calls.append((figure, parameters))
        self.during()
        if self.failing(parameters):
            raise RuntimeError("many lines\nno luck")
        measured = parameters.get("seed", 0.0)
        claims = [
            {"id": name, "measured": measured, "stderr": 0.0}
            for name in project.claims(figure)
        ]
        record = json.dumps({"figure": figure, "claims": claims})
        self.checkout.write(f"{output_dir}/{figure}.json", record)

    def run(self, *ids, **options):
        """Run, and return the parameters with which notebooks ran."""
        self.calls.clear()
        self.errors = robust.run(ids, **({"jobs": 1} | options))
        return [parameters for _, parameters in self.calls]


@pytest.fixture
def stand_in(packages, monkeypatch):
    packages.notebook("a/fig1_x", parameters=PARAMETERS)
    packages.claims("a/fig1", {"id": "one", "at_least": 12})
    packages.settings(a_fig1=SETTINGS)
    packages.built("a/fig1", one=1.0)
    stand_in = StandIn(packages)
    monkeypatch.setattr(build, "execute", stand_in)
    return stand_in


def plan():
    return robust.plan("a/fig1", project.notebooks()["a/fig1"])


def of_plan():
    """The parameters of all runs of the plan."""
    return [one["parameters"] for runs in plan().values() for one in runs]


def recorded():
    """Setting and value of all runs of the record, in its order."""
    runs = verdicts.runs("a/fig1")
    return [(one["setting"], one["value"]) for one in runs["seeds"] + runs["readings"]]


# ---- the plan


def test_seeds_are_run_with_smaller_sizes_and_readings_with_the_first_seed(stand_in):
    usual = {"n": 6, "n_runs": 20}
    seeds, readings = plan().values()
    assert [(one["setting"], one["value"]) for one in seeds] == SEEDS
    for _, seed in SEEDS:
        assert seeds[seed - 11]["parameters"] == usual | {"seed": seed}
    assert [(one["setting"], one["value"]) for one in readings] == READINGS
    assert [one["parameters"] for one in readings] == [
        usual | {"seed": 11, "n": 7},
        usual | {"seed": 11, "n": 8},
        usual | {"seed": 11, "k": 2, "m": "y"},
    ]


def test_a_notebook_without_a_seed_is_run_once_and_by_each_reading(stand_in):
    stand_in.checkout.notebook("a/fig1_x", parameters="n = 5\nk = 1\noutput_dir = None")
    seeds, readings = plan().values()
    usual = {"n": 6, "n_runs": 20}
    assert seeds == [{"setting": "seed", "value": None, "parameters": usual}]
    assert readings[0]["parameters"] == usual | {"n": 7}
    assert len(stand_in.run()) == 4
    assert recorded() == [("seed", None), *READINGS]


def test_a_figure_without_settings_is_run_with_the_seeds_alone(stand_in):
    stand_in.checkout.settings()
    seeds = [{"seed": seed} for _, seed in SEEDS]
    assert of_plan() == seeds
    assert stand_in.run() == seeds


# ---- the runs


def test_the_record_has_the_runs_of_the_plan_with_their_claims(stand_in):
    assert stand_in.run() == of_plan()
    record = verdicts.runs("a/fig1")
    for kind, wanted in plan().items():
        for run, one in zip(record[kind], wanted, strict=True):
            assert isinstance(run.pop("seconds"), int)
            seed = one["parameters"]["seed"]
            claims = [{"id": "one", "measured": seed, "stderr": 0.0}]
            assert run == one | {"claims": claims}


def test_a_run_leaves_the_figure_as_it_is_and_nothing_else(stand_in):
    root = stand_in.checkout.root
    before = (root / "figures/a/fig1.json").read_bytes()
    stand_in.run()
    assert (root / "figures/a/fig1.json").read_bytes() == before
    assert {path.name for path in (root / "build").iterdir()} == {"lock"}
    assert {path.name for path in (root / "figures/robust/a").iterdir()} == {
        "fig1.json"
    }


def test_pages_and_the_plot_of_all_claims_are_made_of_all_runs(stand_in):
    stand_in.run()
    assert stand_in.plots == 1
    page = (stand_in.checkout.root / "figures/CLAIMS.md").read_text()
    assert "(11 to 15; 5 seeds) | varies |" in page
    settings = (stand_in.checkout.root / "figures/SETTINGS.md").read_text()
    assert "| `n`: Many. | 6 | 7 / 8 |" in settings


def test_figures_of_papers_alone_are_run_and_the_longest_first(stand_in):
    made = stand_in.checkout
    for figure in ("b/fig1", "beyond/x"):
        made.notebook(f"{figure}_x")
        made.claims(figure, {"id": "one", "at_least": 1})
    made.settings(a_fig1=SETTINGS | {"seconds": 20}, b_fig1={"seconds": 30})
    stand_in.run()
    assert [figure for figure, _ in stand_in.calls] == ["b/fig1"] * 5 + ["a/fig1"] * 8
    assert not (made.root / "figures/robust/beyond").exists()
    assert len(stand_in.run("b", force=True)) == 5


def test_the_record_is_written_after_each_run_in_the_order_of_the_plan(stand_in):
    written = []
    stand_in.during = lambda: written.append(recorded())
    stand_in.run()
    everything = SEEDS + READINGS
    assert written == [everything[:number] for number in range(8)]
    path = verdicts.path("a/fig1")
    record = json.loads(path.read_text())
    del record["seeds"][1], record["readings"][0]
    path.write_text(json.dumps(record))
    stand_in.run()
    assert recorded() == everything


def test_runs_at_a_time_do_not_lose_one_another(stand_in, monkeypatch):
    read = verdicts.runs

    def slowly(figure):
        found = read(figure)
        time.sleep(0.02)  # in which another thread could write
        return found

    monkeypatch.setattr(verdicts, "runs", slowly)
    stand_in.run(jobs=8)
    assert recorded() == SEEDS + READINGS


# ---- what is repeated


def test_a_run_that_the_record_has_is_not_repeated_unless_it_is_asked_for(stand_in):
    wanted = stand_in.run()
    before = verdicts.path("a/fig1").read_bytes()
    assert stand_in.run() == []
    assert verdicts.path("a/fig1").read_bytes() == before
    assert stand_in.plots == 2
    assert stand_in.run(force=True) == wanted


@pytest.mark.parametrize("ids", [["one", "two"], ["two"], []])
def test_after_another_list_of_claims_all_runs_are_repeated(stand_in, ids):
    wanted = stand_in.run()
    stand_in.checkout.claims("a/fig1", *({"id": name, "at_least": 1} for name in ids))
    assert stand_in.run() == wanted
    found = verdicts.runs("a/fig1")["readings"][-1]["claims"]
    assert [claim["id"] for claim in found] == ids


def test_another_criterion_repeats_nothing(stand_in):
    stand_in.run()
    stand_in.checkout.claims("a/fig1", {"id": "one", "at_most": 20})
    assert stand_in.run() == []


def test_a_new_reading_is_run_and_one_that_is_no_longer_listed_leaves_the_record(
    stand_in,
):
    stand_in.run()
    n = FREE["n"] | {"others": [8, 9]}
    stand_in.checkout.settings(a_fig1=SETTINGS | {"free": {"n": n}})
    assert [parameters["n"] for parameters in stand_in.run()] == [9]
    assert recorded() == [*SEEDS, ("n", 8), ("n", 9)]
    stand_in.checkout.settings(a_fig1=SETTINGS | {"free": {}})
    assert stand_in.run() == []
    assert recorded() == [*SEEDS, ("n", 8), ("n", 9)], "until the next run"
    stand_in.run(force=True)
    assert recorded() == SEEDS


def test_runs_with_other_sizes_are_repeated(stand_in):
    stand_in.run()
    stand_in.checkout.settings(a_fig1=SETTINGS | {"robust": {"n_runs": 30}})
    assert stand_in.run() == of_plan()
    assert len(recorded()) == 8


# ---- errors


def test_after_an_error_the_record_has_the_other_runs_and_the_next_go_that_one(
    stand_in,
):
    stand_in.failing = lambda parameters: parameters["n"] == 7
    stand_in.run()
    assert stand_in.errors == {"a/fig1 n 7": "no luck"}
    assert recorded() == [*SEEDS, *READINGS[1:]]
    stand_in.failing = lambda parameters: False
    assert [parameters["n"] for parameters in stand_in.run()] == [7]
    assert recorded() == SEEDS + READINGS


def test_an_error_leaves_the_record_as_it_was(stand_in):
    stand_in.run()
    before = verdicts.path("a/fig1").read_bytes()
    stand_in.failing = lambda parameters: True
    stand_in.run(force=True)
    assert len(stand_in.errors) == 8
    assert verdicts.path("a/fig1").read_bytes() == before


@pytest.mark.parametrize(
    "name", ["src/paperlib/__init__.py", "data/trace.csv", ".ci/requirements.lock"]
)
def test_a_run_during_which_the_code_was_edited_is_refused(stand_in, name):
    texts = iter("123456789")
    stand_in.during = lambda: stand_in.checkout.write(name, next(texts))
    stand_in.run()
    assert set(stand_in.errors.values()) == {
        "the code was edited during the run; repeat it"
    }
    assert len(stand_in.errors) == 8
    assert not verdicts.path("a/fig1").exists()


def test_it_does_not_run_beside_a_build(stand_in):
    with (
        build.prepared(),
        pytest.raises(project.BuildError, match="another build is running"),
    ):
        stand_in.run()
    assert stand_in.calls == []


def test_the_command_ends_with_1_after_an_error_and_2_for_an_unknown_figure(
    stand_in, capsys
):
    assert cli.main(["robust", "a", "--jobs", "1"]) == 0
    assert len(stand_in.calls) == 8
    stand_in.failing = lambda parameters: True
    assert cli.main(["robust", "a/fig1"]) == 0
    assert cli.main(["robust", "a/fig1", "--force"]) == 1
    assert "a/fig1 seed 11: no luck" in capsys.readouterr().out
    assert cli.main(["robust", "b"]) == 2
    assert "unknown figure 'b'" in capsys.readouterr().err
