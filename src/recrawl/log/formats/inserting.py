"""The rows of a file, of any format, into the tables of a database."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from recrawl.log.database import assign, first_line, run, sql
from recrawl.log.formats import tables
from recrawl.log.formats.base import Format, read_from
from recrawl.log.formats.checking import Utf8, mended
from recrawl.log.formats.records import batches
from recrawl.log.formats.source import Source
from recrawl.log.tally import FAILED, Tally

__all__ = ["insert"]


def insert(
    connection: Any,
    number: int,
    file: Path,
    format: Format,
    source: Source,
    folder: Path,
    tally: Tally,
    rows: tuple[int, ...] | None = None,
) -> None:
    r"""Insert the rows of one file into the table of its format's kind.

    Rows that have a reason to be left out are inserted too. Of a damaged gzip
    file, the lines are inserted that are sound (`checking.mended`).

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables and macros of ``sql/tables.sql``.
    number : int
        The file's number, written with each row.
    file : pathlib.Path
        The file.
    format : Format
        Its format.
    source : Source
        The log that the file belongs to.
    folder : pathlib.Path
        For temporary files.
    tally : Tally
        Gets the lines that do not parse into a row at all.
    rows : tuple of int, optional
        Of a table in Parquet, the first row to be inserted, from 0, and the row
        after the last; by default all rows are.

    Raises
    ------
    ValueError
        A file that cannot be read, or lacks a required column.

    Examples
    --------
    >>> from recrawl.log.database import database
    >>> from recrawl.log.formats import tables
    >>> from recrawl.log.formats.source import Source
    >>> from recrawl.log.tally import Tally
    >>> with database("200MiB") as (connection, folder):
    ...     _ = connection.execute(sql("tables"))
    ...     file = folder / "log.csv"
    ...     _ = file.write_text("url,time,digest\na,2026-01-01,x\na,2026-01-02,y\n")
    ...     given = tables.FORMATS[0], Source(file), folder, Tally()
    ...     insert(connection, 0, file, *given)
    ...     connection.sql("select url, digest from fetches order by t").fetchall()
    [('a', 'digest:x'), ('a', 'digest:y')]
    """
    if source.as_of is not None:
        assign(connection, as_of=source.as_of)
    whole = file
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            if not format.checks_itself:
                check = _check(file, format, source)
                whole = mended(file, scratch, check, number, tally)
            if format.kind != "table":
                _insert(connection, number, whole, format, source)
                return
            tables.insert(
                connection,
                number,
                file,
                source.columns,
                tally,
                rows,
                whole,
                format.name,
            )
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "No space" in str(error):
            raise
        if getattr(error, "errno", None):  # of the system, and not of pyarrow
            raise
        why = first_line(error).replace(str(whole), str(file))  # not the copy
        raise ValueError(f"{file} cannot be read: {why}") from None


def _check(file, format, source):
    """What is checked in each line of a file, or None."""
    if format.kind == "table":
        return tables.check(file, source.columns, format.name)
    return Utf8() if format.read is None and format.in_utf8 else None


def _insert(connection, number, file, format, source):
    """Insert what a format's query or reader gives, as the view ``found``."""
    if format.read is None:
        read_from(connection, file)
    else:
        kind = "captures" if format.query else format.kind
        rows = format.read(file, source.as_of)
        connection.register("records", batches(rows, kind))
    query = format.query or "from records"
    connection.execute(f"create or replace temp view found as {query}")
    given = {"failed": FAILED} if format.kind in ("fetches", "states") else {}
    run(connection, sql(f"insert_{format.kind}"), file.name, file=number, **given)
