"""What the reader of a format is: how files are recognised, and how they are read."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.log.database import assign, pattern
from recrawl.log.files import named
from recrawl.types import PathLike

__all__ = [
    "Format",
    "beginning",
    "is_packed",
    "members",
    "read_from",
    "unpacked",
]

_HEAD = 1 << 16  # bytes that are enough to recognise a format
_BLOCK = 1 << 16  # bytes of a gzip file that are read at a time


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
        `recrawl.estimate`; `records` has the columns of the others.
    recognises : callable
        From the first bytes of a file, unpacked, and its path, whether it is
        of this format.
    query : str, optional
        A SELECT of the columns of the kind, from the file of `read_from`; or, if
        there is a reader too, from its captures, ``records``.
    read : callable, optional
        From path and ``as_of``, the time at which the file was downloaded, an
        iterator of rows, dicts by the names of the columns.
    in_utf8 : bool
        Whether the query reads lines that must be in UTF-8.
    checks_itself : bool
        Whether the reader itself leaves out what is damaged in a gzip file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from recrawl.log.formats import tables
    >>> tables.FORMATS[0].recognises(b"url,time,changed", Path("log.csv"))
    True
    """

    name: str
    what: str
    kind: str
    recognises: Callable
    query: str = ""
    read: Callable | None = None
    in_utf8: bool = True
    checks_itself: bool = False


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
    with unpacked(path) as file:
        try:
            return file.read1(_HEAD)
        except (EOFError, OSError, zlib.error):
            return b""


def is_packed(path: PathLike) -> bool:
    """Whether a file is gzipped, by its first bytes.

    Parameters
    ----------
    path : path
        A file.

    Returns
    -------
    bool
    """
    with named(path), open(path, "rb", buffering=0) as file:
        return file.read(2) == b"\x1f\x8b"


def unpacked(path: PathLike) -> Any:
    """Open a file to read its bytes, unpacked if it is gzipped.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    file object

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "text")
    ...     _ = path.write_bytes(gzip.compress(b"text"))
    ...     with unpacked(path) as file:
    ...         file.read()
    b'text'
    """
    return gzip.open(path) if is_packed(path) else open(path, "rb")


def read_from(connection: Any, file: Path) -> None:
    """Let the queries of a connection read a file, as ``getvariable('file')``.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        A database.
    file : pathlib.Path
        The file. Whether it is gzipped tell its first bytes, not its name.
    """
    compression = "gzip" if is_packed(file) else "none"
    assign(connection, file=pattern(file), compression=compression)


class _Member(io.RawIOBase):
    """A gzip member, unpacked; checksum and length are compared at its end."""

    def __init__(self, file):
        self.file, self.inflate = file, zlib.decompressobj(wbits=31)

    def readable(self):
        return True

    def readinto(self, out):
        block = b""
        while not block and not self.inflate.eof:
            data = self.inflate.unconsumed_tail or self.file.read(_BLOCK)
            if not data:
                raise EOFError("the file ends inside of a gzip member")
            block = self.inflate.decompress(data, len(out))
        out[: len(block)] = block
        return len(block)


def members(file: Any, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Read a gzip file member by member.

    Parameters
    ----------
    file : file object
        The file, in bytes.
    start : int, default 0
        Where the first member begins.

    Yields
    ------
    start : int
        Where the member begins.
    stream : file object
        Its bytes, unpacked. Those that are left are read before the next one.

    Raises
    ------
    EOFError
        The file ends inside of a member, while that is read.
    zlib.error
        A member that is not sound, while that is read.

    Examples
    --------
    >>> two = io.BytesIO(gzip.compress(b"one", mtime=0) + gzip.compress(b"two"))
    >>> [(start, stream.read()) for start, stream in members(two)]
    [(0, b'one'), (23, b'two')]
    """
    file.seek(start)
    while file.read(1):
        file.seek(start)
        member = _Member(file)
        stream = io.BufferedReader(member, _BLOCK)
        yield start, stream
        while stream.read1(_BLOCK):
            pass
        start = file.seek(file.tell() - len(member.inflate.unused_data))
