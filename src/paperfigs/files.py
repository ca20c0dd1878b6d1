"""Files that are whole or absent, and their checksums."""

import hashlib
import os
import tempfile
from pathlib import Path

STAGING = ".staging"  # prefix of folders with unfinished files
PathLike = str | os.PathLike[str]


def sha256(path: PathLike) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_atomic(path: PathLike, text: str) -> None:
    """Write a text file that is whole or, after an error, as it was before.

    Parameters
    ----------
    path : path
        The file. A missing folder is created.
    text : str
        The new content.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A rename is atomic only within one file system, hence the same folder.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=STAGING) as folder:
        new = Path(folder, path.name)
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
