"""The tests of paperlib need only pytest, hypothesis and what paperlib needs."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN = [re.match(r"[\w-]+", needed)[0] for needed in PROJECT["dependencies"]]
# Used where it is installed, and only then.
OPTIONAL = {("conftest.py", "psutil")}


def files():
    yield from (ROOT / "src" / "paperlib").rglob("*.py")
    for folder in ("paperlib", "plain"):
        yield from (ROOT / "tests" / folder).rglob("*.py")
    yield from (ROOT / "tests").glob("conftest.py")


def imported(path):
    """Packages that a file imports anywhere in it, also within a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_no_file_imports_anything_else():
    allowed = {*OWN, "pytest", "hypothesis", "paperlib", "tests"}
    allowed |= sys.stdlib_module_names
    used = {(path.name, name) for path in files() for name in imported(path)}
    assert len(used) > 50
    assert {each for each in used if each[1] not in allowed} == OPTIONAL


def needed(*names):
    """Installed distributions of some names, and all that they need here."""
    found = {}
    while names := [name for name in names if name not in found]:
        found |= {name: distribution(name) for name in names}
        lines = [line for name in names for line in found[name].requires or ()]
        each = map(Requirement, lines)
        names = [
            r.name for r in each if not r.marker or r.marker.evaluate({"extra": ""})
        ]
    return found.values()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_bare_environment_collects_them(tmp_path):
    """All are imported, and those of pages of the documentation run."""
    (tmp_path / "paperlib").symlink_to(ROOT / "src" / "paperlib")
    for each in needed("pytest", *OWN):
        for top in {file.parts[0] for file in each.files} - {"..", "__pycache__"}:
            if not (tmp_path / top).is_symlink():
                (tmp_path / top).symlink_to(each.locate_file(top))
    start = "import sys; sys.path[:0] = sys.argv[1:3]; import pytest; "
    start += "sys.exit(pytest.main(sys.argv[3:]))"
    options = ["-p", "no:cacheprovider", "-k", "test_docs or test_extend"]
    done = subprocess.run(
        [sys.executable, "-ISc", start, ROOT, tmp_path, *options, "tests/paperlib"],
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST")},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stdout + done.stderr
    assert re.search(r"\d{2,} passed", done.stdout)
