"""Tables, in Parquet or CSV, that are whole or absent."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from recrawl import __version__
from recrawl.database import first_line
from recrawl.files import replacing, target
from recrawl.types import PathLike

__all__ = [
    "CsvOutput",
    "ParquetOutput",
    "check_output",
    "check_pages",
    "opened",
    "parquet",
    "sound",
    "table",
]

# By an argument that is the output of a command: the command, and what it is given.
_WRITERS = {
    "rates": ("estimate", "LOG"),
    "schedule": ("schedule", "rates.parquet --bandwidth RATE"),
}


class _Output:
    """Tables of one file, which the first one opens.

    Parameters
    ----------
    path : path
        The file.
    """

    def __init__(self, path):
        self._path, self._writer = path, None

    def close(self):
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


class ParquetOutput(_Output):
    """Tables written one after the other to one Parquet file.

    Parameters
    ----------
    path : path
        The file; `parquet` gives a temporary one that it renames at the end.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = ParquetOutput(f"{folder}/rates.parquet")
    ...     output.write(pa.table({"url": ["a"], "change_rate": [0.5]}))
    ...     output.close()
    ...     pq.read_table(f"{folder}/rates.parquet").num_rows
    1
    """

    def write(self, table: Any) -> None:
        """Write a table as one row group.

        Parameters
        ----------
        table : pyarrow.Table
            With the columns of the first one.
        """
        if self._writer is None:
            # Least and largest URL of a row group help no reader, and cost as
            # much as the rest of the encoding of URLs.
            limits = [name for name in table.column_names if name != "url"]
            self._writer = pq.ParquetWriter(
                self._path,
                table.schema,
                compression="snappy",
                use_dictionary=False,
                write_statistics=limits,
                write_page_checksum=True,
            )
        self._writer.write_table(table)

    def describe(self, what: dict[str, Any]) -> None:
        """Add a description, with this version, to the file's metadata.

        Parameters
        ----------
        what : dict
            Of what JSON can hold; written under the key "recrawl".
        """
        text = json.dumps({"version": __version__} | what)
        self._writer.add_key_value_metadata({"recrawl": text})


class CsvOutput(_Output):
    """Tables written one after the other to one CSV file.

    Parameters
    ----------
    path : path
        The file; `table` gives a temporary one that it renames at the end.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = CsvOutput(f"{folder}/rates.csv")
    ...     output.write(pa.table({"url": ["a"], "change_rate": [0.5]}))
    ...     output.close()
    ...     print(Path(f"{folder}/rates.csv").read_text())
    "url","change_rate"
    "a",0.5
    <BLANKLINE>
    """

    def write(self, table: Any) -> None:
        """Write a table.

        Parameters
        ----------
        table : pyarrow.Table
            With the columns of the first one.
        """
        if self._writer is None:
            self._writer = pyarrow.csv.CSVWriter(self._path, table.schema)
        self._writer.write_table(table)

    def describe(self, what: dict[str, Any]) -> None:
        """Do nothing: a CSV file holds no description.

        Parameters
        ----------
        what : dict
            What `ParquetOutput.describe` writes.
        """


def check_output(
    path: PathLike, force: bool, inputs: Iterable[PathLike | None] = ()
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

    Raises
    ------
    ValueError
        The output is one of the inputs.
    FileExistsError
        The file exists, and `force` is false.
    OSError
        There is no such folder, or no file can be written in it; or the path is
        that of a folder, a pipe or a device.

    Examples
    --------
    >>> check_output("no/such/rates.parquet", force=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] cannot write in the folder, ...: 'no/such'
    """
    path = target(path)
    for file in inputs if path.exists() else ():
        if file is not None and os.path.exists(file) and path.samefile(file):
            raise ValueError(
                f"output must be another file than those that are read, got {path}"
            )
    if path.exists() and not force:
        raise FileExistsError(
            f"{path} exists; say --force (force=True) to write over it"
        )
    try:  # permissions alone do not tell it
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        reason = f"cannot write in the folder, {error.strerror}"
        raise OSError(error.errno, reason, str(path.parent)) from None


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
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with parquet(f"{folder}/rates.parquet") as output:
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
        if not (missing := [n for n in needed if n not in file.schema_arrow.names]):
            return file
        got = f"{path} without {', '.join(missing)}"
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except pa.ArrowInvalid:
        pass  # what it lacks would help nobody who gives a log
    command, given = _WRITERS[argument]
    raise ValueError(
        f"{argument} must be the Parquet file that `recrawl {command}` wrote, "
        f"got {got}: run `recrawl {command} {given} -o {argument}.parquet`"
    )


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
        In place of errors of pyarrow.

    Examples
    --------
    >>> with sound("rates.parquet"):
    ...     raise pa.ArrowInvalid("no page")
    Traceback (most recent call last):
    ValueError: rates.parquet is damaged: no page
    """
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is damaged: {first_line(error)}") from None


@contextlib.contextmanager
def parquet(path: PathLike) -> Iterator[ParquetOutput]:
    """Open a Parquet file that appears when the context ends without an error.

    Parameters
    ----------
    path : path
        The file; one that is there already is left as it is until then, and
        then replaced: see `check_output`.

    Yields
    ------
    ParquetOutput
        To which tables are written.

    Raises
    ------
    OSError
        The file cannot be written, for want of space perhaps.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with parquet(f"{folder}/rates.parquet") as output:
    ...         output.write(pa.table({"url": ["a"], "change_rate": [0.5]}))
    ...         output.describe({"estimator": "mle"})
    ...     pq.read_table(f"{folder}/rates.parquet")["url"].to_pylist()
    ['a']
    """
    with _written(path, ParquetOutput) as output:
        yield output


@contextlib.contextmanager
def table(path: PathLike) -> Iterator[Any]:
    """Open a CSV file, if its name ends in .csv, else as `parquet` does.

    Parameters
    ----------
    path : path
        The file.

    Yields
    ------
    CsvOutput or ParquetOutput
        To which tables are written.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table(f"{folder}/rates.csv") as output:
    ...         output.write(pa.table({"url": ["a"]}))
    ...     print(Path(f"{folder}/rates.csv").read_text().split())
    ['"url"', '"a"']
    """
    kind = CsvOutput if Path(path).suffix == ".csv" else ParquetOutput
    with _written(path, kind) as output:
        yield output


@contextlib.contextmanager
def _written(path, kind):
    """Output of a kind that replaces a file when the context ends."""
    with (
        replacing(path) as temporary,
        contextlib.closing(kind(temporary)) as output,
    ):
        yield output
