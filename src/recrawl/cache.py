"""A place for what numba compiles, where it would find none."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["ensure"]


def ensure() -> None:
    """Let numba compile also where it can write neither here nor for the user.

    It then refuses to compile, as in a container with a user without a home. The
    folder that it gets instead is this process's own: what another user could
    write is never run. ``NUMBA_CACHE_DIR`` names one that is kept.

    Examples
    --------
    >>> ensure()
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
    folder = tempfile.mkdtemp(prefix="recrawl-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
