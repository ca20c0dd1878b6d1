import os

import numpy as np
import pytest

from recrawl.science import policies, signals, simulate
from paperfigs import running, sharing
from paperfigs.project import SHARED_RESULTS
from paperfigs.sharing import Shared, SharedSlots


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "shared.sqlite"
    monkeypatch.setenv(SHARED_RESULTS, str(path))
    return path


def refuse():
    raise AssertionError("computed again")


def test_without_a_build_everything_is_computed(monkeypatch):
    monkeypatch.delenv(SHARED_RESULTS, raising=False)
    shared = Shared()
    assert [shared("a", lambda k=k: k) for k in range(2)] == [0, 1]


def test_an_equal_call_of_another_notebook_finds_the_result(file):
    expected = {"x": np.linspace(0, 1, 7), "none": None}
    depends_on = "a", np.arange(3), np.random.default_rng(1)
    Shared()(depends_on, lambda: expected)
    again = "a", np.arange(3), np.random.default_rng(1)
    found = Shared()(again, refuse)
    np.testing.assert_array_equal(found["x"], expected["x"])
    assert found["none"] is None


def test_what_differs_in_anything_is_computed(file):
    drawn = np.random.default_rng(1)
    drawn.random()
    shared, rng = Shared(), np.random.default_rng(1)
    calls = [
        ("a", np.arange(3), rng),
        ("b", np.arange(3), rng),
        ("a", np.arange(3.0), rng),
        ("a", np.array([0, 1, 3]), rng),
        ("a", np.arange(3), drawn),
    ]
    found = [shared(call, lambda k=k: k) for k, call in enumerate(calls)]
    assert found == list(range(len(calls)))


def test_other_code_computes_again(file, monkeypatch):
    assert Shared()("a", lambda: 1) == 1
    monkeypatch.setattr(sharing, "_code", lambda: b"edited")
    assert Shared()("a", lambda: 2) == 2


def test_a_computation_that_fails_leaves_nothing(file):
    with pytest.raises(AssertionError, match="computed again"):
        Shared()("a", refuse)
    assert Shared()("a", lambda: 1) == 1


def draw(rng):
    return signals.SignalledPages(rng.random(5), rng.random(5), 0.5, 0.1)


def both(pages, rng):
    return {
        "greedy": policies.Greedy(pages),
        "ncis": policies.GreedyNCIS(pages),
        "approx": policies.GreedyNCIS(pages, terms=1),
        "late": (policies.GreedyNCIS(pages), "soon"),
    }


def compare(rng=1, horizon=20.0, **options):
    delays = {"soon": 0.5}
    return simulate.compare(
        draw, both, 5.0, horizon, n_runs=3, rng=rng, delays=delays, **options
    )


def test_comparisons_share_runs_and_find_the_same(file, monkeypatch):
    alone = compare()
    first = compare(remember=Shared())
    computed, crawl = [], simulate.runs.crawl

    def count(world, policy, *args, **options):
        computed.append(policy)
        return crawl(world, policy, *args, **options)

    monkeypatch.setattr(simulate.runs, "crawl", count)
    again = compare(remember=Shared())
    assert len(computed) == 3, "only the runs with delays, one in each of 3 runs"
    for name, values in alone.items():
        np.testing.assert_array_equal(first[name], values)
        np.testing.assert_array_equal(again[name], values)


@pytest.mark.parametrize(
    "other", [{"rng": 2}, {"horizon": 21.0}, {"borders": [1.0, 20.0]}]
)
def test_other_runs_are_not_shared(file, other):
    compare(remember=Shared())
    found, alone = compare(remember=Shared(), **other), compare(**other)
    for name, values in alone.items():
        np.testing.assert_array_equal(found[name], values)


def test_greedy_shares_its_slots_whatever_the_signals(file, monkeypatch):
    rates = np.random.default_rng(1).random((2, 5))

    def slots(share, recall=0.0, false_rate=0.0, rates=rates):
        pages = signals.SignalledPages(*rates, recall, false_rate)
        world = simulate.draw_world(pages, 20.0, rng=1)
        policy = share(policies.Greedy(pages))
        return simulate.crawl(world, policy, 5.0).page.tolist()

    alone, other = slots(lambda policy: policy), rates[::-1]
    assert slots(SharedSlots) == alone
    assert slots(SharedSlots, rates=other) == slots(lambda policy: policy, rates=other)
    monkeypatch.setattr(policies.Greedy, "choose", lambda *_: refuse())
    assert slots(SharedSlots, 0.5, 0.1) == alone


def test_notebooks_inherit_variables_of_the_build(tmp_path):
    found = []

    def work(name):
        found.append(os.environ.get("PAPERLIB_TEST"))
        return 0.0

    file = tmp_path / "seconds.json"
    running.run_all(
        ["a"], work, seconds_file=file, environment={"PAPERLIB_TEST": "here"}
    )
    assert found == ["here"]
    assert "PAPERLIB_TEST" not in os.environ


@pytest.mark.parametrize(
    ("machine", "given", "kept"),
    [("x86_64", None, "Haswell"), ("x86_64", "Zen", "Zen"), ("arm64", None, None)],
)
def test_notebooks_round_alike_on_every_x86_processor(
    tmp_path, monkeypatch, machine, given, kept
):
    """A kernel of OpenBLAS that the user has chosen stays."""
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    if given:
        monkeypatch.setenv("OPENBLAS_CORETYPE", given)
    monkeypatch.setattr("platform.machine", lambda: machine)
    found = []
    running.run_all(
        ["a"],
        lambda name: found.append(os.environ.get("OPENBLAS_CORETYPE")) or 0.0,
        seconds_file=tmp_path / "seconds.json",
    )
    assert found == [kept]
