"""The rows of a log brought together by page, in two steps over files.

In the first step, each of n tasks reads a piece of the log (`pieces`) and
stores its rows in n folders, by ranges of the hash that orders the pages
(`scatter`). In the second, each task reads what all have stored for its range
(`gather`). So each reads an n-th of the log and an n-th of what was stored.
A task that is lost is run again by itself, for its files are whole or not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from recrawl.database import database, pattern, quoted, run, sql
from recrawl.formats import recognise
from recrawl.formats.inserting import insert
from recrawl.reading import read_state
from recrawl.tally import Tally
from recrawl.types import PathLike

if TYPE_CHECKING:
    from recrawl.formats.base import Format
    from recrawl.formats.source import Source

__all__ = ["Piece", "gather", "pieces", "scatter", "stored"]

_TABLES = ("crawl", "fetches", "page_state", "change", "state")
_ALL = (0, 2**63 - 1)  # rows of a file


@dataclass(frozen=True)
class Piece:
    """Some rows of one file.

    Parameters
    ----------
    file : pathlib.Path
        A file of a log, or a state.
    number : int or None
        The file's number in the log; None for a state.
    rows : tuple of int
        The first row, from 0, and the row after the last.

    Examples
    --------
    >>> Piece(Path("log.parquet"), 0, (0, 500)).rows
    (0, 500)
    """

    file: Path
    number: int | None
    rows: tuple


def pieces(
    files: list[tuple[Path, Format]], state: PathLike | None, n: int
) -> list[list[Piece]]:
    """Cut a log into at most n parts of about the same number of bytes.

    Tables in Parquet and the state are cut between row groups, other files
    are not cut.

    Parameters
    ----------
    files : list of tuple of pathlib.Path and Format
        Of `Source.files`.
    state : path or None
        A Parquet file that `recrawl.estimate` wrote.
    n : int
        How many parts.

    Returns
    -------
    list of list of Piece
        None of them empty; in the order of the files.

    Examples
    --------
    >>> import tempfile
    >>> from recrawl.formats.tables import FORMATS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.parquet")
    ...     pq.write_table(pa.table({"url": ["a"] * 9}), path, row_group_size=2)
    ...     parts = pieces([(path, FORMATS[1])], None, 2)
    >>> [piece.rows for part in parts for piece in part]
    [(0, 4), (4, 9)]
    """
    found = [
        (Piece(file, number, rows), size)
        for number, (file, format) in enumerate(files)
        for rows, size in _cuts(file, format.kind == "table")
    ]
    if state is not None:
        found += [(Piece(state, None, rows), size) for rows, size in _cuts(state, True)]
    sizes = [size for _, size in found]
    middles = [
        end - size / 2
        for end, size in zip(itertools.accumulate(sizes), sizes, strict=True)
    ]
    parts = {}
    for (piece, _), middle in zip(found, middles, strict=True):
        part = parts.setdefault(int(n * middle / max(sum(sizes), 1)), [])
        if part and (part[-1].file, part[-1].number) == (piece.file, piece.number):
            first, _ = part.pop().rows
            piece = Piece(piece.file, piece.number, (first, piece.rows[1]))
        part.append(piece)
    return list(parts.values())


def _cuts(file, may_cut):
    """Yield ranges of rows of a file, one for each row group, with their bytes."""
    size = file.stat().st_size
    try:
        groups = pq.ParquetFile(file).metadata if may_cut else None
    except pa.ArrowInvalid:  # no Parquet; what reads it says whether it must be
        groups = None
    if groups is None or not groups.num_rows:
        yield _ALL, size
        return
    end = 0
    for k in range(groups.num_row_groups):
        first, end = end, end + groups.row_group(k).num_rows
        yield (first, end), size * (end - first) / groups.num_rows


def scatter(
    source: Source, part: list[Piece], n: int, folder: PathLike, memory: str
) -> Tally:
    """Read a part of a log, and store its rows in a folder for each share.

    Parameters
    ----------
    source : Source
        The log.
    part : list of Piece
        Of `pieces`.
    n : int
        Number of shares of the pages.
    folder : path
        An empty folder, for `gather`.
    memory : str
        Memory that the database may use.

    Returns
    -------
    Tally
        Of the lines that do not parse into a row.

    Raises
    ------
    ValueError
        A file that cannot be read, or lacks a required column.

    Examples
    --------
    >>> import tempfile
    >>> from recrawl.formats.source import Source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder, "log.csv")
    ...     _ = log.write_text("url,time,changed\\na,2026-01-01,0\\n")
    ...     stored = Path(folder, "stored")
    ...     stored.mkdir()
    ...     _ = scatter(Source(log), [Piece(log, 0, _ALL)], 2, stored, "200MiB")
    ...     sorted(path.name for path in stored.rglob("share=*"))
    ['share=1']
    """
    tally = Tally()
    with database(memory) as (connection, temporary):
        connection.execute("set threads = 1")
        connection.execute(sql("tables"))
        for piece in part:
            if piece.number is None:
                read_state(connection, piece.file, piece.rows)
                continue
            format = recognise(piece.file, source.format)
            file = piece.number, piece.file, format, source, temporary, tally
            insert(connection, *file, piece.rows)
        for table in _TABLES:
            target = quoted(f"{folder}/{table}")
            query = (
                f"copy (select *, share_of(url, {n}) as share from {table}) "
                f"to {target} (format parquet, partition_by (share))"
            )
            run(connection, query, "storing")
    return tally


def stored(folders: Sequence[PathLike], share: int) -> dict[str, list[Path]]:
    """Files of one share of the pages, by table.

    Parameters
    ----------
    folders : list of path
        Those of all calls of `scatter`.
    share : int
        Number of the share, from 0.

    Returns
    -------
    dict of list of pathlib.Path
        Of the tables that have any.

    Examples
    --------
    >>> stored([], 0)
    {}
    """
    found = {
        table: [
            file
            for folder in folders
            for file in Path(folder, table, f"share={share}").glob("*.parquet")
        ]
        for table in _TABLES
    }
    return {table: files for table, files in found.items() if files}


def gather(connection: Any, files: dict[str, list[Path]]) -> None:
    """Read what was stored for one share of the pages.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables of ``sql/tables.sql``, which are filled.
    files : dict of list of pathlib.Path
        Of `stored`.

    Examples
    --------
    >>> with database("200MiB") as (connection, _):
    ...     _ = connection.execute(sql("tables"))
    ...     gather(connection, {})
    ...     connection.sql("from crawl").fetchall()
    []
    """
    for table, parts in files.items():
        source = "read_parquet($files, hive_partitioning = false)"
        query = f"insert into {table} by name from {source}"
        run(connection, query, "gathering", files=[pattern(file) for file in parts])
