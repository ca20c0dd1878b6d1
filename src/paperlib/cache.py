"""A folder for the compiled functions of numba, if it can write to no other."""

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


def ensure() -> None:
    """Give numba a temporary folder if the package and the home are read-only.

    In a container with a read-only package and a user without a home, numba refuses
    to compile functions that it should cache. The temporary folder belongs to this
    process alone, because code that another user can write must not run. To keep the
    compiled functions, name a folder in the variable ``NUMBA_CACHE_DIR``.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for folder in (Path(__file__).parent / "__pycache__", Path(user, "numba")):
        with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
            folder.expanduser().mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder.expanduser()).close()
            return
    folder = tempfile.mkdtemp(prefix="paperlib-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
