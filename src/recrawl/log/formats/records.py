"""What the readers in Python share: batches of rows, their limits, and dates."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from recrawl.log.database import assign, sql
from recrawl.types import PathLike

__all__ = [
    "LONGEST",
    "LOST",
    "TOO_LONG",
    "batches",
    "downloaded",
    "in_order",
    "moments",
]

#: Reason of the row that stands for the lost end of a file.
LOST = "end of a truncated or damaged file"

#: Bytes of a line or an entry, the most that are read, as in DuckDB's reader.
LONGEST = 2_000_000
#: Reason of one that is longer.
TOO_LONG = f"of more than {LONGEST:,} bytes"

# Columns that a reader in Python gives, by what one row of its files tells of; beside
# these, `row` (line or record in the file), `given` (the row as it stands) and
# `reason` (why it cannot be used, or null). Queries give the same, and of fetches url,
# time, status, digest, etag, last_modified and same; of states url, last_fetch,
# last_change and status.
_COLUMNS = {
    "changes": ("url", "start", "stop", "time"),
    "observations": ("url", "start", "time", "changed", "last_modified"),
    "captures": ("f",),  # for the query of `captures.query`
}
_ROWS = 50_000  # in a batch: some 20 MB of rows as Python objects
_MOST = 10_000_000  # characters of the rows of a batch, as soon as which it is full
_SHOWN = 1000  # characters of a row as it stands; messages show fewer
_TYPES = {
    "f": pa.list_(pa.string()),
    "row": pa.int64(),
    "changed": pa.bool_(),
    **dict.fromkeys(
        ("time", "start", "stop", "last_modified"), pa.timestamp("us", "UTC")
    ),
}


def batches(rows: Iterable[dict[str, Any]], kind: str) -> pa.RecordBatchReader:
    """Collect rows into record batches, in bounded memory.

    Parameters
    ----------
    rows : iterable of dict
        By column, `given` among them; what is missing is null.
    kind : str
        "changes", "observations", or "captures".

    Returns
    -------
    pyarrow.RecordBatchReader
        With the columns of the kind, and row, given and reason.

    Examples
    --------
    >>> batches([{"row": 1, "given": "a 200"}], "changes").read_all().num_rows
    1
    """
    columns = ("row", "given", *_COLUMNS[kind], "reason")
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])
    some = (pa.RecordBatch.from_pylist(each, schema) for each in _groups(rows))
    return pa.RecordBatchReader.from_batches(schema, some)


def _groups(rows):
    """Lists of rows of bounded size, whose texts are no longer than they are shown."""
    some, n_characters = [], 0
    for row in rows:
        some.append(row)
        n_characters += len(str(row))
        row["given"] = row["given"][:_SHOWN]
        if len(some) == _ROWS or n_characters > _MOST:
            yield some
            some, n_characters = [], 0
    yield some


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


def moments(texts: Iterable[str], as_of: datetime | None = None) -> dict[str, Any]:
    """Read times as those of tables are read, by the same macros of SQL.

    Parameters
    ----------
    texts : iterable of str
        Texts, also of numbers since 1970.
    as_of : datetime.datetime, optional
        When the file was downloaded, by default now.

    Returns
    -------
    dict of datetime.datetime
        In UTC, by text, of those texts that are times from 1990 to a year from
        `as_of`.

    Examples
    --------
    >>> found = moments(["2026/11/19", "Thu, 01 Jan 1970 00:00:00 GMT", "yesterday"])
    >>> {text: str(time) for text, time in found.items()}
    {'2026/11/19': '2026-11-19 00:00:00+00:00'}
    """
    with _database().cursor() as cursor:
        cursor.execute("set TimeZone = 'UTC'")
        assign(cursor, as_of=as_of)
        found = cursor.sql(
            "select text, sound(time_of(text)) as time from "
            "(select distinct unnest($1::varchar[]) as text) where time is not null",
            params=[list(texts)],
        ).to_arrow_table()
    return {row["text"]: row["time"] for row in found.to_pylist()}


def in_order(times: Sequence[datetime], latest: datetime) -> tuple[int, datetime]:
    """Find the longest part of some times that is in order of days, newest first.

    Patience sorting: `days` has the last day on which a part of each length can end,
    counted backwards.

    Parameters
    ----------
    times : sequence of datetime.datetime
        In the order of a file.
    latest : datetime.datetime
        In place of the oldest time where there is none.

    Returns
    -------
    n : int
        Length of the part; of two of one length, that of the shortest time.
    oldest : datetime.datetime
        The first of the times on its oldest day.

    Examples
    --------
    >>> days = [datetime(2026, 11, day, tzinfo=UTC) for day in (5, 4, 1, 3)]
    >>> n, oldest = in_order(days, days[0])
    >>> n, oldest.day
    (3, 3)
    """
    days = []
    for time in times:
        day = -time.toordinal()
        place = bisect_right(days, day)
        days[place : place + 1] = [day]
    kept = (time for time in times if -time.toordinal() <= days[-1])
    return len(days), min(kept, default=latest)


@cache
def _database():
    """A database that has the macros of a log, and nothing else."""
    connection = duckdb.connect()
    connection.execute(sql("tables"))
    return connection
