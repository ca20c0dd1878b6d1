"""Tables, in Parquet or CSV, that are whole or absent."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from paperlib import checks
from paperlib.errors import ArgumentError
from recrawl import __version__
from recrawl.log.database import database, first_line, pattern
from recrawl.log.files import named, replacing, target
from recrawl.types import PathLike

__all__ = [
    "check_once",
    "check_output",
    "check_pages",
    "description",
    "opened",
    "sound",
    "table",
]

# By an argument that is the output of a command: the command, and what it is given.
_WRITERS = {
    "rates": ("estimate", "LOG"),
    "schedule": ("schedule", "rates.parquet --bandwidth RATE"),
}
_MEMORY = "1GiB"  # to find URLs that occur twice
_FORMULA = "^[=+@\t\r-]"  # of a cell that a spreadsheet would execute


class _ParquetOutput:
    """Tables with the same columns, each a row group of one Parquet file."""

    def __init__(self, path):
        self._path, self._writer = path, None

    def write(self, table):
        """Write a table; the first one opens the file."""
        with named(self._path):
            if self._writer is None:
                self._writer = self._opened(table)
            self._writer.write_table(table)

    def _opened(self, table):
        """A writer of tables such as this one."""
        # Least and largest URL of a row group help no reader, and cost as much as
        # the rest of the encoding of URLs.
        limits = [name for name in table.column_names if name != "url"]
        return pq.ParquetWriter(
            self._path,
            table.schema,
            compression="snappy",
            use_dictionary=False,
            write_statistics=limits,
            write_page_checksum=True,
        )

    def describe(self, what):
        """Add a dict that JSON can hold, with this version, to the metadata."""
        text = json.dumps({"version": __version__} | what)
        self._writer.add_key_value_metadata({"recrawl": text})

    def close(self):
        """Finish the file."""
        if self._writer is not None:
            with named(self._path):
                self._writer.close()


class _CsvOutput(_ParquetOutput):
    """The same in one CSV file, which holds no description."""

    def write(self, table):
        """Write a table, with ' before a text that a spreadsheet would execute."""
        for k, column in enumerate(table.columns):
            if pa.types.is_string(column.type):
                safe = pc.replace_substring_regex(column, _FORMULA, r"'\0")
                table = table.set_column(k, table.field(k), safe)
        super().write(table)

    def _opened(self, table):
        return pyarrow.csv.CSVWriter(self._path, table.schema)

    def describe(self, what):
        """Do nothing."""


def check_output(
    path: PathLike,
    force: bool,
    inputs: Iterable[PathLike | None] = (),
    *,
    endings: Sequence[str] = ("", ".parquet", ".csv"),
    argument: str = "output",
) -> None:
    """Raise an error if a file cannot be written, before all is computed for it.

    Parameters
    ----------
    path : path
        The file.
    force : bool
        True if a file that exists may be overwritten.
    inputs : iterable of path, optional
        What is read, and must stay; None stands for no file.
    endings : sequence of str, optional
        Of the names whose promise the file keeps; none stands for all.
    argument : str, default "output"
        The argument that names the file, for errors.

    Raises
    ------
    ValueError
        The output is one of the inputs, or has another ending.
    FileExistsError
        The file exists, and `force` is false.
    OSError
        There is no such folder, or no file can be written in it; or the path is
        that of a folder, a pipe or a device.

    Examples
    --------
    >>> check_output("no/such/rates.parquet", force=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FileNotFoundError: cannot write in no/such: ...
    """
    name, path = path, target(path)
    for file in inputs if path.exists() else ():
        if file is not None and os.path.exists(file) and path.samefile(file):
            rule = f"must be another file than those that are read, got {path}"
            raise ArgumentError(argument, rule)
    if endings and Path(name).suffix.lower() not in endings:
        rule = f"must end in {' or '.join(filter(None, endings))}, got {name}"
        raise ArgumentError(argument, rule)
    if path.exists() and not force:
        raise FileExistsError(
            f"{path} exists; say --force (force=True) to write over it"
        )
    try:  # permissions alone do not tell it
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise type(error)(f"cannot write in {path.parent}: {error.strerror}") from None


def check_pages(path: PathLike) -> None:
    """Raise an error if a Parquet file is damaged, by the checksums of its pages.

    Parameters
    ----------
    path : path
        The file; files that this package writes have such checksums.

    Raises
    ------
    ValueError
        A checksum is wrong, or the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table(f"{folder}/rates.parquet") as output:
    ...         output.write(pa.table({"url": ["a"]}))
    ...     check_pages(f"{folder}/rates.parquet")
    """
    with sound(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        for k in range(file.num_row_groups):
            file.read_row_group(k)


def opened(path: PathLike, argument: str, needed: Sequence[str]) -> pq.ParquetFile:
    """Open the output of a command; its pages are checked when they are read.

    Parameters
    ----------
    path : path
        The file.
    argument : {"rates", "schedule"}
        The argument that names it, for errors.
    needed : sequence of str
        Columns that the command always writes.

    Returns
    -------
    pyarrow.parquet.ParquetFile

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        The file is not Parquet, or lacks a column.

    Examples
    --------
    >>> opened("no/rates.parquet", "rates", ["url"])
    Traceback (most recent call last):
    FileNotFoundError: no such file: no/rates.parquet
    """
    got = path
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        if missing := [n for n in needed if n not in file.schema_arrow.names]:
            got = f"{path} without {', '.join(missing)}"
        elif pa.types.is_binary(file.schema_arrow.field("url").type):
            got = f"{path} with bytes in the column 'url', not text"
        else:
            return file
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # what it lacks would help nobody who gives a log
        if getattr(error, "errno", None):
            raise
    command, given = _WRITERS[argument]
    raise ArgumentError(
        argument,
        f"must be the Parquet file that `recrawl {command}` wrote, got {got}: "
        f"run `recrawl {command} {given} -o {argument}.parquet`",
    )


def description(path: PathLike) -> dict[str, Any]:
    """Read what `describe` has added to the metadata of a Parquet file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    dict
        Empty if nothing was added.

    Raises
    ------
    ValueError
        The file or its metadata are damaged, or its drift is no list of factors.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table(f"{folder}/rates.parquet") as output:
    ...         output.write(pa.table({"url": ["a"]}))
    ...         output.describe({"drift": [1.25]})
    ...     description(f"{folder}/rates.parquet")["drift"]
    [1.25]
    """
    with sound(path):
        metadata = pq.read_metadata(path).metadata or {}
    try:
        found = json.loads(metadata.get(b"recrawl", b"{}"))
        factors = [*(found.get("drift") or ()), found.get("usual") or 1.0]
        checks.numbers("drift", factors, above=True)
        pa.array([each["host"] for each in found.get("suspects", ())], pa.string())
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        rule = "its metadata must be as estimate or schedule wrote them"
        raise ValueError(f"{path} is damaged: {rule}") from None
    return found


@contextlib.contextmanager
def sound(path: PathLike) -> Iterator[None]:
    """Context in which errors of reading a Parquet file say that it is damaged.

    Parameters
    ----------
    path : path
        The file, opened with ``page_checksum_verification``.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        In place of errors of pyarrow and DuckDB.

    Examples
    --------
    >>> with sound("rates.parquet"):
    ...     raise pa.ArrowInvalid("no page")
    Traceback (most recent call last):
    ValueError: rates.parquet is damaged: no page
    """
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException):
        raise  # a `database` names what is wanting
    except (pa.ArrowException, duckdb.Error, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None):  # of the system, as that of a full disk
            raise
        raise ValueError(f"{path} is damaged: {first_line(error)}") from None


@contextlib.contextmanager
def table(path: PathLike, force: bool = True) -> Iterator[Any]:
    """Open a file of tables that appears when the context ends without an error.

    Parameters
    ----------
    path : path
        The file: CSV if its name ends in .csv, else Parquet. One that is there
        already is left as it is until then: see `check_output`.
    force : bool, optional
        False if a file that another run has made meanwhile must stay.

    Yields
    ------
    output
        With the methods ``write(table)`` and ``describe(dict)``.

    Raises
    ------
    OSError
        The file cannot be written, for want of space perhaps.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table(f"{folder}/rates.csv") as output:
    ...         output.write(pa.table({"url": ["a", "=1+1"]}))
    ...     print(Path(f"{folder}/rates.csv").read_text())
    "url"
    "a"
    "'=1+1"
    <BLANKLINE>
    """
    kind = _CsvOutput if Path(path).suffix.lower() == ".csv" else _ParquetOutput
    with (
        replacing(path, force) as temporary,
        contextlib.closing(kind(temporary)) as output,
    ):
        yield output


def check_once(rates: PathLike) -> None:
    """Raise an error if a URL occurs twice in a file of rates, or in a state.

    Parameters
    ----------
    rates : path
        A Parquet file with the column url.
    """
    file, given = "read_parquet(?, hive_partitioning = false)", pattern(rates)
    with database(_MEMORY) as (connection, _), sound(rates):
        # To sort hashes takes half the time of grouping by URL, and less memory.
        query = connection.execute(f"select hash(url) as h from {file}", [given])
        hashes = query.fetchnumpy()["h"]
        hashes.sort()
        twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not twice.size:
            return
        connection.register("twice", pa.table({"h": twice}))
        query = (  # two URLs may have one hash
            f"select url from {file} where hash(url) in (select h from twice) "
            "group by url having count(*) > 1 limit 1"
        )
        for (url,) in connection.execute(query, [given]).fetchall():
            raise ValueError(f"{rates} must name each URL once, got {url!r} again")
