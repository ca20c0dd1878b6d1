"""Signals of changes beside a log: pings, dates in sitemaps, entries of feeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from recrawl.log.database import first_line, run, sql
from recrawl.log.files import temporary_folder
from recrawl.log.formats.checking import mended
from recrawl.log.formats.tables import check, selected
from recrawl.log.output import sound
from recrawl.types import PathLike

if TYPE_CHECKING:
    from recrawl.log.tally import Tally

__all__ = ["attach"]


def attach(connection: Any, path: PathLike, tally: Tally) -> None:
    r"""Read signals, and write how many came before each crawl of a log.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables ``page`` and ``sorted``.
    path : path
        A CSV or Parquet file with the columns url and time; repeats of a page
        within a minute count once. Of a damaged gzip file the sound lines are
        used, as of a log.
    tally : Tally
        Gets the signals that cannot be read, or belong to no page of the log.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        A file without these columns.

    Examples
    --------
    >>> import tempfile
    >>> from recrawl.log import reading
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, pings = Path(folder, "log.csv"), Path(folder, "pings.csv")
    ...     _ = log.write_text("url,time,changed\na,2026-01-01,0\na,2026-01-03,1\n")
    ...     _ = pings.write_text("url,time\na,2026-01-02\n")
    ...     with reading.opened(log, signals=pings) as opened:  # calls this function
    ...         opened.sample(1).n_signals
    array([1], dtype=int32)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    with temporary_folder() as folder, sound(path):
        whole = mended(path, folder, check(path, {}), 0, tally)
        query = selected(connection, path, ("url", "time"), whole)
        connection.execute(f"create or replace temp view signals_text as {query}")
        try:
            run(connection, sql("read_signals"), "signals")
        except duckdb.InvalidInputException as error:
            raise ValueError(f"{path} cannot be read: {first_line(error)}") from None
    rows = connection.execute(
        "select coalesce(reason, 'of pages that the log does not have') as why, "
        "count(*), min((row, coalesce(signal.url, '')), 3) "
        "from signal left join page using (url) "
        "where reason is not null or page.url is null group by why"
    ).fetchall()
    for why, n, places in rows:
        where = [(0, row, f"{path.name} row {row}: {url}") for row, url in places]
        tally.add(f"signals {why}", n, where)
    for statement in connection.extract_statements(sql("count_signals")):
        connection.execute(statement)
