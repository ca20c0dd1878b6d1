"""A place for the compiled functions of numba, if it would find none."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def ensure() -> None:
    """Let numba compile also if neither the package nor the home can be written to.

    In a container with a read-only package and a user without a home, numba refuses
    to compile what it should cache. The folder that it gets instead belongs to this
    process alone, because code that another user can write must not run. The
    variable ``NUMBA_CACHE_DIR`` names a folder that is kept.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for folder in (Path(__file__).parent / "__pycache__", Path(user, "numba")):
        try:
            folder.expanduser().mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder.expanduser()).close()
            return
        except (OSError, RuntimeError):  # RuntimeError: the user has no home
            continue
    folder = tempfile.mkdtemp(prefix="paperlib-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
