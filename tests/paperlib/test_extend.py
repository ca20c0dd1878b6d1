"""The recipes of docs/extend.md, and the programs of other pages."""

import importlib
import re
import sys
import types
from pathlib import Path

import pytest

from tests import recipes

ROOT = Path(__file__).parents[2]
SECTIONS = {
    heading: [(path, text) for path, kind, text in blocks if kind == "python"]
    for heading, blocks in recipes.sections().items()
}


def run_module(path, text, monkeypatch):
    """Run a module of a package, and offer its names there, as the recipe says."""
    name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(text, vars(module))
    package = importlib.import_module(name.rpartition(".")[0])
    for public, member in vars(module).items():
        if getattr(member, "__module__", None) == name:
            monkeypatch.setattr(package, public, member, raising=False)


def run_tests(text):
    """Run the functions of a module of tests."""
    module = {}
    exec(text, module)
    tests = [member for name, member in module.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


@pytest.mark.parametrize(
    "heading", [heading for heading, blocks in SECTIONS.items() if blocks]
)
def test_the_printed_code_runs(heading, monkeypatch):
    """One block after another. A notebook is run by the test of the whole recipe."""
    script = {}
    for path, text in SECTIONS[heading]:
        if path is None:
            exec(text, script)
        elif path.startswith("src/"):
            run_module(path, text, monkeypatch)
        elif path.startswith("tests/"):
            run_tests(text)


def test_the_recipes_have_blocks():
    assert {"An estimator", "A policy", "A figure"} <= SECTIONS.keys()
    paths = [path for blocks in SECTIONS.values() for path, _ in blocks]
    assert len([path for path in paths if path and path.startswith("tests/")]) >= 2


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("README.md", 3),
        ("src/paperlib/README.md", 1),
        ("docs/tour.md", 6),
        ("docs/lesson.md", 1),
    ],
)
def test_the_programs_of_a_page_run(page, lines, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    if "paperfigs" in blocks[0]:  # it draws: more than the science needs
        pytest.importorskip("matplotlib")
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
