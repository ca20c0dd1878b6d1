"""A DuckDB database for one log, in bounded memory, and SQL by name.

Text of users is never text of a query. Names of files, keys of JSON and times are
parameters, or variables of the connection (`assign`) where a view cannot have
parameters; columns are read by their numbers. What is put into a query is quoted by
`quoted`.
"""

import contextlib
import errno
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb

from paperlib.errors import ArgumentError
from recrawl.log.files import temporary_folder
from recrawl.progress import bar
from recrawl.types import PathLike

__all__ = [
    "MEMORY",
    "assign",
    "database",
    "first_line",
    "pattern",
    "quoted",
    "run",
    "sql",
]

#: Memory that a database may use by default: a share of the machine's.
MEMORY = "50%"
_SHOWN = 80  # characters of a line of a file in a message
_POLL = 0.1  # seconds between two looks at a running query
# DuckDB compresses tables that are in a file, but not those in memory. A Parquet log
# of half the memory limit took equally long both ways; one of a sixth took 1.4 times as
# long with a file; one of twice the limit could not be read without a file.
_LARGE = 0.5


@contextlib.contextmanager
def database(memory: str, files: Iterable[Path] = ()) -> Iterator[tuple[Any, Path]]:
    """Open an empty database that is deleted when the context ends.

    Parameters
    ----------
    memory : str
        Memory that the database may use, such as "1GiB" or "50%" of the machine's;
        what does not fit goes to the system's folder for temporary files (TMPDIR).
    files : iterable of pathlib.Path, optional
        What will be read. If it is large for the memory, all tables are in a file
        in that folder.

    Yields
    ------
    connection : duckdb.DuckDBPyConnection
        With the time zone UTC.
    folder : pathlib.Path
        The temporary folder, free for other use too.

    Raises
    ------
    ValueError
        `memory` is no size, or not enough.
    OSError
        No space left on the device, or another error of input or output.

    Examples
    --------
    >>> with database("200MiB") as (connection, folder):
    ...     connection.sql("select 6 * 7").fetchall()
    [(42,)]
    """
    with (
        temporary_folder() as folder,
        _connected(folder, memory) as connection,
    ):
        try:
            size = sum(file.stat().st_size for file in files)
            query = "select parse_formatted_bytes(current_setting('memory_limit'))"
            ((limit,),) = connection.execute(query).fetchall()  # bytes
            if size > _LARGE * limit:
                file = str(folder / "tables.duckdb")
                connection.execute("attach $file as large", {"file": file})
                connection.execute("use large")
            yield connection, folder
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            text = str(error)  # it names the file, which may be on another disk
            full = "No space" in text and str(folder) in text
            if full or "failed to offload" in text:
                reason = "no space left for temporary files; TMPDIR names another place"
                raise OSError(errno.ENOSPC, reason, str(folder.parent)) from None
            if isinstance(error, duckdb.IOException):
                raise OSError(errno.EIO, first_line(error)) from None
            rule = (
                f"must be enough to sort the log, got {memory!r}: {first_line(error)}"
            )
            raise ArgumentError("memory", rule) from None


def _connected(folder, memory):
    """Connect to a new database that spills to a folder."""
    config = {
        "memory_limit": memory,
        "temp_directory": f"{folder}/spilled",
        # the name of a file that is an address must not download anything
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(config=config)
    except duckdb.Error as error:
        rule = f"must be a size such as '1GiB', got {memory!r}: {first_line(error)}"
        raise ArgumentError("memory", rule) from None
    connection.execute("set TimeZone = 'UTC'")
    # DuckDB measures progress only if it may draw its own bar; where it thinks
    # that it runs in a notebook it refuses, and `run` then shows none
    with contextlib.suppress(duckdb.Error):
        connection.execute(
            "set enable_progress_bar = true; set enable_progress_bar_print = false"
        )
    return connection


def run(connection: Any, query: str, what: str, **parameters: Any) -> Any:
    """Execute a long query under a progress bar; an interrupt stops it.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Of a `database`.
    query : str
        One statement.
    what : str
        The text before the bar.
    **parameters
        Values of the query's parameters, ``$name`` in the query.

    Returns
    -------
    duckdb.DuckDBPyConnection
        With the result; of INSERT, the number of rows.

    Examples
    --------
    >>> with database("200MiB") as (connection, _):
    ...     run(connection, "select $n", "adding", n=3).fetchall()
    [(3,)]
    """
    layout = "{desc} |{bar:20}| {n:.0f}% {elapsed}"
    percent = bar(total=100, desc=what, bar_format=layout)
    with percent, ThreadPoolExecutor(1) as thread:
        running = thread.submit(connection.execute, query, parameters)
        try:
            while not wait([running], _POLL).done:
                percent.update(max(connection.query_progress() - percent.n, 0.0))
        except BaseException:
            connection.interrupt()
            raise
        return running.result()


@cache
def sql(name: str, room: str = "log") -> str:
    """Text of a file of statements in the folder ``sql`` of a room.

    Parameters
    ----------
    name : str
        Name of the file, without its suffix.
    room : str, default "log"
        Folder of the package.

    Returns
    -------
    str

    Examples
    --------
    >>> "create table sorted" in sql("sort_crawls")
    True
    """
    folder = resources.files("recrawl") / room / "sql"
    return (folder / f"{name}.sql").read_text(encoding="utf-8")


def assign(connection: Any, **values: Any) -> None:
    """Set variables of a connection, which its queries and views read.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Of a `database`.
    **values
        By name; a query reads ``getvariable('name')``.

    Examples
    --------
    >>> with database("200MiB") as (connection, _):
    ...     assign(connection, file="it's")
    ...     connection.sql("select getvariable('file')").fetchall()
    [("it's",)]
    """
    for name, value in values.items():
        connection.execute(f"set variable {name} = $value", {"value": value})


def quoted(text: Any) -> str:
    """An SQL literal of a text.

    Parameters
    ----------
    text : object
        Text, or what has a text, such as a path.

    Returns
    -------
    str

    Examples
    --------
    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + str(text).replace("'", "''") + "'"


def pattern(file: PathLike) -> str:
    """A glob pattern that matches one file only, for DuckDB's readers.

    Parameters
    ----------
    file : path
        The file.

    Returns
    -------
    str
        Absolute: relative names may begin as an address or a home folder does.

    Raises
    ------
    ValueError
        A name that no pattern can match: DuckDB takes a backslash before a sign of
        patterns away.

    Examples
    --------
    >>> pattern("/log[1].csv")
    '/log[[]1].csv'
    """
    path = str(Path(file).absolute())
    escaped = re.sub(r"[*?\[]", r"[\g<0>]", path)
    if "\\" in path and escaped != path:
        raise ValueError(
            f"{path!r} must be a name without a backslash beside *, ? or [: rename it"
        )
    return escaped


def first_line(error: Exception) -> str:
    """What an error's message says, without the query that DuckDB adds below.

    Parameters
    ----------
    error : Exception
        Any. Of an error in a CSV file, the line and the rule are told too.

    Returns
    -------
    str

    Examples
    --------
    >>> first_line(ValueError("no such file\\nLINE 1: select"))
    'no such file'
    """
    first, *others = str(error).strip().splitlines()
    if "CSV Error on Line" not in first:
        return first
    # the next lines are that line of the file, and what is wrong with it
    return "; ".join([first, *(line[:_SHOWN] for line in others[:2])])
