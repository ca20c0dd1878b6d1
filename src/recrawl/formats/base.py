"""What the reader of a format is: how files are recognised, and how they are read."""

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recrawl.types import PathLike

__all__ = ["COLUMNS", "Format", "beginning", "is_packed"]

_HEAD = 1 << 16  # bytes that are enough to recognise a format

#: Columns that a reader gives, by what one row of its files tells of; beside
#: these, `row` (line or record in the file), `given` (the row as it stands) and
#: `reason` (why it cannot be used, or null).
COLUMNS = {
    "fetches": ("url", "time", "status", "digest", "etag", "last_modified", "same"),
    "states": ("url", "last_fetch", "last_change", "status"),
    "changes": ("url", "start", "stop", "time"),
    "observations": ("url", "start", "time", "changed", "last_modified"),
}


@dataclass(frozen=True)
class Format:
    """A kind of file that crawlers write.

    Parameters
    ----------
    name : str
        As users name it; several formats of one program may share a name.
    what : str
        What it is, with its article, for messages.
    kind : {"table", "fetches", "states", "changes", "observations"}
        What one row tells of: "table" for files with the columns of
        `recrawl.estimate`, else a key of `COLUMNS`.
    recognises : callable
        From the first bytes of a file, unpacked, and its path, whether it is
        of this format.
    query : str, optional
        A SELECT that reads the file ``$file``, a pattern that matches this file
        alone, and gives the columns of the kind.
    read : callable, optional
        In place of the query: from path and ``as_of``, the time at which the
        file was downloaded, an iterator of `pyarrow.RecordBatch`.
    checks_members : bool
        Whether the reader itself checks the members of a gzip file that has
        several, and leaves out what is damaged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from recrawl.formats import tables
    >>> tables.FORMATS[0].recognises(b"url,time,changed", Path("log.csv"))
    True
    """

    name: str
    what: str
    kind: str
    recognises: Callable
    query: str = ""
    read: Callable | None = None
    checks_members: bool = False


def beginning(path: PathLike) -> bytes:
    """First bytes of a file, unpacked if it is gzipped; none of a folder.

    Parameters
    ----------
    path : path
        A file or folder.

    Returns
    -------
    bytes
        At most 64 KiB, and what can be read of a truncated file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed")
    ...     beginning(path), beginning(folder)
    (b'url,time,changed', b'')
    """
    if Path(path).is_dir():
        return b""
    if not is_packed(path):
        with open(path, "rb", buffering=0) as file:
            return file.read(_HEAD)
    with gzip.open(path) as file:
        try:
            return file.read1(_HEAD)
        except (EOFError, OSError, zlib.error):
            return b""


def is_packed(path: PathLike) -> bool:
    """Whether a file is gzipped, by its first bytes.

    Parameters
    ----------
    path : path
        A file or folder.

    Returns
    -------
    bool

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_bytes(gzip.compress(b"url,time,changed"))
    ...     is_packed(path), is_packed(folder)
    (True, False)
    """
    if Path(path).is_dir():
        return False
    # a buffer would read 128 KiB, and each worker asks
    with open(path, "rb", buffering=0) as file:
        return file.read(2) == b"\x1f\x8b"
