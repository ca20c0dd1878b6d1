"""A place for what numba compiles, also if nothing can be written to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import paperlib

IMPORT = """
import os
import paperlib
from paperlib import copies, policies, priors
print(os.environ.get("NUMBA_CACHE_DIR", "its own"))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, in whose folders no cache can be made."""
    copy = tmp_path / "paperlib"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(paperlib.__file__).parent, copy, ignore=ignored)
    for folder in (copy, *(path for path in copy.iterdir() if path.is_dir())):
        (folder / "__pycache__").touch()
    return copy


def imported(package, **variables):
    """Import a package in a process with this environment; what it prints."""
    kept = {k: v for k, v in os.environ.items() if "CACHE" not in k}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env=kept | {"PYTHONPATH": str(package.parent)} | variables,
        cwd=package.parent,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="the home has other variables")
def test_paperlib_is_imported_where_nothing_can_be_written_to(package):
    folder = imported(package, HOME="/dev/null")
    assert Path(folder).name.startswith("paperlib-numba-")
    assert not Path(folder).exists()  # gone with the process


def test_a_cache_that_can_be_written_to_is_left_as_it_is(package, tmp_path):
    named = tmp_path / "named"
    assert imported(package, HOME="/dev/null", NUMBA_CACHE_DIR=str(named)) == str(named)
    assert imported(package, XDG_CACHE_HOME=str(tmp_path / "home")) == "its own"
