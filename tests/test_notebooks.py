"""Guards on the notebooks, and on the records beside the figures.

What nbval compares must be real, and what is committed must agree.
"""

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

from paperlib.repro import build, ledger

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(
    p for p in ROOT.glob("notebooks/**/*.ipynb") if ".ipynb_checkpoints" not in p.parts
)
pytestmark = pytest.mark.parametrize(
    "path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}"
)


def _cells(path):
    return [
        c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"
    ]


def test_outputs_are_stored_and_compared(path):
    cells = _cells(path)
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    compared = [
        c
        for c in cells
        if c["outputs"] and "nbval-ignore-output" not in c["metadata"].get("tags", [])
    ]
    assert len(compared) >= 2, (
        "numbers and claims are printed in cells that nbval compares"
    )
    outputs = [o for c in cells for o in c["outputs"]]
    assert any("image/png" in o.get("data", {}) for o in outputs), (
        "the figure is stored"
    )
    assert not [
        o for o in outputs if o.get("name") == "stderr" or o["output_type"] == "error"
    ]
    text = "".join("".join(o.get("text", "")) for o in outputs)
    assert not re.search(r"0x[0-9a-f]{6,}|/home/|/root/|/work/|/tmp/", text)


def test_nothing_of_the_machine_is_stored(path):
    content = json.loads(path.read_text())
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    assert content["metadata"]["language_info"] == {"name": "python"}
    assert all(set(c["metadata"]) <= {"tags"} for c in content["cells"])


def test_notebooks_hold_no_algorithm(path):
    if path.stem == "explore":
        pytest.skip("holds the functions that its sliders call")
    cells = _cells(path)
    assert len(cells) <= 9
    nodes = [node for c in cells for node in ast.walk(ast.parse("".join(c["source"])))]
    assert not [
        node
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.For, ast.While))
    ]


def test_parameters_are_documented_scalars(path):
    values = build.defaults(path)
    assert isinstance(values["seed"], int)
    assert "output_dir" in values or path.parent == ROOT / "notebooks", (
        "the build passes a folder to every figure"
    )
    assert values.get("output_dir") is None
    assert all(
        isinstance(v, (bool, int, float, str, type(None))) for v in values.values()
    )


def test_paper_profile_and_committed_record_agree(path):
    if path.parent == ROOT / "notebooks":
        pytest.skip("a guide, which makes no figure of a paper")
    figure = {p: i for i, p in build.notebooks().items()}[path]
    record = json.loads((ROOT / "figures" / f"{figure}.json").read_text())
    injected = (
        yaml.safe_load((ROOT / "notebooks" / "paper.yaml").read_text()) or {}
    ).get(figure, {})
    expected = {
        k: v for k, v in (build.defaults(path) | injected).items() if v is not None
    }
    assert record["parameters"] == expected, (
        "the committed figure was drawn with the paper's parameters"
    )
    assert record["claims"], "every figure measures at least one claim"
    for claim in record["claims"]:
        assert claim["status"] in ("holds", "differs", "too few runs", *ledger.DECLARED)
        assert claim["reason"] or claim["status"] in ("holds", "too few runs"), (
            f"{claim['name']} differs without a reason"
        )
    for suffix in (".png", ".svg", ".npz"):
        assert (ROOT / "figures" / f"{figure}{suffix}").stat().st_size > 0
    assert (ROOT / "figures" / f"{figure}.npz").stat().st_size < 250_000
