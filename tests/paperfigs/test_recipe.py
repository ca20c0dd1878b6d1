"""A user who follows docs/extend.md word by word ends with all tests green."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import recipes

ROOT = Path(__file__).parents[2]
LINT = ["ruff check .", "ruff format --check ."]
# The quick tests of the houses that an estimator of one's own touches; those of recrawl
# run beside this test anyway.
FAST = (
    "pytest -n 2 --dist loadfile -p no:nbval --doctest-modules -m 'not slow' "
    "src/paperlib src/paperfigs tests/paperlib tests/paperfigs tests/test_names.py"
)


def run(root, *arguments):
    """Run a module of Python in a checkout; returns what it printed."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=root,
        env=own | {"PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, (done.stdout + done.stderr)[-5000:]
    return done.stdout


def copy_of_the_checkout(root):
    """Copy the files that Git knows, and those that it would add, to a repository."""
    subprocess.run(["git", "init", "--quiet", root], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)


@pytest.mark.slow
def test_the_whole_recipe(tmp_path):
    copy_of_the_checkout(tmp_path)
    commands, notebooks = [], []
    for blocks in recipes.sections().values():
        for path, kind, text in blocks:
            if path is not None:
                recipes.put(tmp_path, path, kind, text)
                notebooks += [path] * path.endswith(".ipynb")
            elif kind == "sh":
                commands += [
                    shlex.split(line, comments=True) for line in text.splitlines()
                ]
    assert commands[-1] == ["make", "test"]
    for command in commands[:-1]:
        run(tmp_path, *command)
    for command in (*LINT, FAST):
        run(tmp_path, *shlex.split(command))
    guards = "tests/paperfigs/test_notebooks.py"
    run(tmp_path, "pytest", "--nbval", "--nbval-current-env", guards, *notebooks)
