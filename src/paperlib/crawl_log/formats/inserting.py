"""The rows of a file, of any format, into the tables of a database."""

import contextlib
import gzip
import itertools
import shutil
import zlib

import duckdb
import pyarrow as pa

from paperlib.crawl_log.database import first_line, pattern, quoted, run, sql
from paperlib.crawl_log.formats import tables
from paperlib.crawl_log.tally import FAILED

__all__ = ["insert"]

_BLOCK = 1 << 20  # bytes of text that are unpacked at a time


def insert(connection, number, file, format, source, folder, tally, rows=None):
    r"""Insert the rows of one file into the table of its format's kind.

    Rows that have a reason to be left out are inserted too. Of a truncated
    gzip file, the rows up to the last whole line are inserted.

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
    >>> from paperlib.crawl_log.database import database
    >>> from paperlib.crawl_log.formats import tables
    >>> from paperlib.crawl_log.formats.source import Source
    >>> from paperlib.crawl_log.tally import Tally
    >>> with database("200MiB") as (connection, folder):
    ...     _ = connection.execute(sql("tables"))
    ...     file = folder / "log.csv"
    ...     _ = file.write_text("url,time,digest\na,2026-01-01,x\na,2026-01-02,y\n")
    ...     given = tables.FORMATS[0], Source(file), folder, Tally()
    ...     insert(connection, 0, file, *given)
    ...     connection.sql("select url, digest from fetches order by t").fetchall()
    [('a', 'digest:x'), ('a', 'digest:y')]
    """
    try:
        if format.kind == "table":
            tables.insert(connection, number, file, source.columns, tally, rows)
        else:
            _insert(connection, number, file, format, source)
    except (duckdb.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "No space" in str(error):
            raise
        if file.suffix != ".gz" or "GZIP" not in str(error):
            raise ValueError(f"{file} cannot be read: {first_line(error)}") from None
        rescued = folder / file.name.removesuffix(".gz")
        _rescue(file, rescued)
        shutil.copystat(file, rescued)  # its time may be that of the download
        insert(connection, number, rescued, format, source, folder, tally)
        rescued.unlink()
        reason = "lost with the end of a truncated file, at least"
        tally.add(reason, 1, [(number, 0, file.name)])


def _insert(connection, number, file, format, source):
    """Insert what a format's query or reader gives, as the view ``found``."""
    if format.read is None:
        query = format.query.replace("$file", quoted(pattern(file)))
        connection.execute(f"create or replace temp view found as {query}")
    else:
        batches = iter(format.read(file, source.as_of))
        first = next(batches, None)
        if first is None:
            return
        all_batches = itertools.chain([first], batches)
        reader = pa.RecordBatchReader.from_batches(first.schema, all_batches)
        connection.execute("drop view if exists found")
        connection.register("found", reader)
    parameters = {"file": number}
    if format.kind in ("fetches", "states"):
        parameters["failed"] = FAILED
    run(connection, sql(f"insert_{format.kind}"), file.name, **parameters)
    if format.read is not None:
        connection.unregister("found")


def _rescue(file, target):
    """Write what a truncated gzip file gives, up to its last line break."""
    truncated = (EOFError, zlib.error, gzip.BadGzipFile)
    with (
        gzip.open(file) as source,
        open(target, "wb") as whole,
        contextlib.suppress(*truncated),
    ):
        rest = b""
        while block := source.read1(_BLOCK):
            lines, line_break, rest = (rest + block).rpartition(b"\n")
            whole.write(lines + line_break)
