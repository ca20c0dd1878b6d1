"""What the readers in Python share: batches of rows, dates, and the root of XML."""

import calendar
import gzip
import itertools
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from recrawl.formats.base import COLUMNS, is_packed
from recrawl.types import PathLike

__all__ = ["LOST", "batches", "downloaded", "http_date", "root", "unpacked", "w3c"]

#: Reason of the row that stands for the lost end of a file.
LOST = "end of a truncated or damaged file"

_ROWS = 50_000  # in a batch: some 20 MB of rows as Python objects
_TIME = pa.timestamp("us", "UTC")
_TYPES = {
    "status": pa.int32(),
    "row": pa.int64(),
    "same": pa.bool_(),
    "changed": pa.bool_(),
    **dict.fromkeys(("time", "start", "stop", "last_modified"), _TIME),
}
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:\d\d))?)?)?"
)
# What may precede the root: comments, processing instructions, a document type.
_PROLOG = re.compile(rb"<!--.*?-->|<\?.*?\?>|<![^>\[]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ROOT = re.compile(rb"\s*<(?:[\w.-]+:)?([\w.-]+)")


def batches(rows: Iterable[dict[str, Any]], kind: str) -> Iterator[Any]:
    """Collect rows into record batches, in bounded memory.

    Parameters
    ----------
    rows : iterable of dict
        By column; what is missing is null.
    kind : str
        A key of `base.COLUMNS`.

    Yields
    ------
    pyarrow.RecordBatch
        With the columns of the kind, and row, given and reason.

    Examples
    --------
    >>> (batch,) = batches([{"row": 1, "url": "a", "status": 200}], "fetches")
    >>> batch.num_rows, batch.column("status")[0].as_py()
    (1, 200)
    """
    columns = ("row", "given", *COLUMNS[kind], "reason")
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])
    rows = iter(rows)
    while some := list(itertools.islice(rows, _ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema)


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


def downloaded(path: PathLike, as_of: Any) -> Any:
    """Time at which a file was downloaded: as given, or when it was written.

    Parameters
    ----------
    path : path
        The file.
    as_of : datetime.datetime or None
        With a time zone.

    Returns
    -------
    datetime.datetime
        In UTC.

    Examples
    --------
    >>> downloaded("sitemap.xml", datetime(2026, 10, 1, tzinfo=UTC)).isoformat()
    '2026-10-01T00:00:00+00:00'
    """
    return as_of or datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)


def w3c(text: str) -> Any:
    """Read a date in the W3C's format, which may lack its day or its month.

    Parameters
    ----------
    text : str
        The date.

    Returns
    -------
    tuple of datetime.datetime or None
        The first moment that the text can mean, and the first one after it
        that it cannot; None of a text that is no such date.

    Examples
    --------
    >>> [str(time) for time in w3c("2026-10")]
    ['2026-10-01 00:00:00+00:00', '2026-11-01 00:00:00+00:00']
    >>> w3c("yesterday")
    """
    if not (found := _W3C.fullmatch(text.strip())):
        return None
    year, month, day, hour, minute, second, decimals, zone = found.groups()
    fields = (int(field or 1) for field in (year, month, day))
    clock = (int(field or 0) for field in (hour, minute, second))
    microsecond = int(((decimals or "") + "000000")[:6])
    try:
        zone = datetime.strptime(zone, "%z").tzinfo if zone else UTC
        first = datetime(*fields, *clock, microsecond, zone)
        if abs(first.utcoffset()) > timedelta(hours=14):
            return None
        if hour:
            return first, first + timedelta(seconds=1 if second else 60)
        days = 365 + calendar.isleap(first.year)
        if month:
            days = 1 if day else calendar.monthrange(first.year, first.month)[1]
        return first, first + timedelta(days=days)
    except (ValueError, OverflowError):  # month 13, or after the year 9999
        return None


def http_date(text: str | None) -> Any:
    """Read a date of an HTTP header.

    Parameters
    ----------
    text : str or None
        Such as ``Wed, 30 Sep 2026 20:00:00 GMT``.

    Returns
    -------
    datetime.datetime or None

    Examples
    --------
    >>> str(http_date("Wed, 30 Sep 2026 20:00:00 GMT"))
    '2026-09-30 20:00:00+00:00'
    """
    try:
        found = datetime.strptime((text or "").strip(), "%a, %d %b %Y %H:%M:%S GMT")
    except ValueError:
        return None
    return found.replace(tzinfo=UTC)


def root(head: bytes) -> str:
    """Name of the first element of a file of XML.

    Parameters
    ----------
    head : bytes
        The beginning of the file.

    Returns
    -------
    str
        Without its prefix; empty if the file does not begin as XML does.

    Examples
    --------
    >>> root(b"<?xml version='1.0'?><!-- <a> --><rss version='2.0'>")
    'rss'
    """
    found = _ROOT.match(_PROLOG.sub(b"", head.removeprefix(b"\xef\xbb\xbf")))
    return found[1].decode() if found else ""
