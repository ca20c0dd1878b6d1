"""Files of a log, CSV, TSV or Parquet: their columns, and rows into DuckDB."""

import contextlib
import csv
import difflib
import gzip
import zlib
from pathlib import Path

import duckdb

from paperlib.crawl_log.database import first_line, pattern, quoted, run, sql
from paperlib.crawl_log.tally import FAILED

__all__ = ["files_of", "insert"]

_REQUIRED, _OPTIONAL = ("url", "time", "changed"), ("importance", "host", "status")
_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_BLOCK = 1 << 20  # bytes of text that are unpacked at a time
_SIMILAR = 0.4  # of names to be suggested; by 0.6, date is not like time


def files_of(path):
    """Files of a log, in the order in which they are read.

    Parameters
    ----------
    path : path
        A file, or a folder that holds files at any depth.

    Returns
    -------
    list of pathlib.Path

    Raises
    ------
    FileNotFoundError
        No such file or folder.
    ValueError
        A folder without files of a log, a file of another kind, an empty one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "b.csv").write_text("url,time,changed")
    ...     _ = Path(folder, "a.tsv").write_text("url,time,changed")
    ...     [file.name for file in files_of(folder)]
    ['a.tsv', 'b.csv']
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    found = [path]
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.name.endswith(_SUFFIXES))
    suffixes = ", ".join(_SUFFIXES)
    if not found:
        raise ValueError(f"{path} must hold files that end in {suffixes}, got none")
    for file in found:
        if not file.name.endswith(_SUFFIXES):
            raise ValueError(f"{file} must end in one of {suffixes}")
        if not file.stat().st_size:
            raise ValueError(f"{file} must not be empty")
    return found


def insert(connection, number, file, folder, tally):
    r"""Insert the rows of one file into the table ``crawl``.

    Rows that have a reason to be left out are inserted too. Of a truncated
    gzip file, the rows up to the last whole line are inserted.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables and macros of ``sql/tables.sql``.
    number : int
        The file's number, written with each row.
    file : pathlib.Path
        One of `files_of`.
    folder : pathlib.Path
        For temporary files.
    tally : Tally
        Gets the lines that do not parse into a row at all.

    Raises
    ------
    ValueError
        A file that cannot be read, or lacks a required column.

    Examples
    --------
    >>> from paperlib.crawl_log.database import database
    >>> from paperlib.crawl_log.tally import Tally
    >>> with database("200MiB") as (connection, folder):
    ...     _ = connection.execute(sql("tables"))
    ...     file = folder / "log.csv"
    ...     _ = file.write_text("url,time,changed\na,0,no\na,86400,maybe\n")
    ...     insert(connection, 0, file, folder, Tally())
    ...     connection.sql("select t, reason from crawl order by t").fetchall()
    [(0, None), (86400000000, 'whose changed is neither yes nor no')]
    """
    kind = _insert_parquet if file.suffix == ".parquet" else _insert_text
    try:
        kind(connection, number, file, tally)
    except (duckdb.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "No space" in str(error):
            raise
        if file.suffix != ".gz" or "GZIP" not in str(error):
            raise ValueError(f"{file} cannot be read: {first_line(error)}") from None
        rescued = folder / file.name.removesuffix(".gz")
        _rescue(file, rescued)
        insert(connection, number, rescued, folder, tally)
        rescued.unlink()
        reason = "lost with the end of a truncated file, at least"
        tally.add(reason, 1, [(number, 0, file.name)])


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


def _insert_parquet(connection, number, file, tally):
    """Insert the rows of a Parquet file."""
    source = f"read_parquet({quoted(pattern(file))}, file_row_number = true)"
    columns = {
        name: ('"' + name.replace('"', '""') + '"', kind)
        for name, kind, *_ in connection.sql(f"describe from {source}").fetchall()
        if name != "file_row_number"
    }
    _insert(connection, number, file, columns, "file_row_number + 1", source)


def _insert_text(connection, number, file, tally):
    """Insert the rows of a CSV or TSV file; count the lines that are none."""
    names, delimiter = _header(file)
    columns = {name: (f"c{k}", "VARCHAR") for k, name in enumerate(names)}
    types = ", ".join(f"c{k}: 'varchar'" for k in range(len(names)))
    # DuckDB's guesses, of the dialect from the rows, fail where rows are bad
    options = (
        f"auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', "
        f"escape = '\"', store_rejects = true, columns = {{{types}}}"
    )
    # Only the strict parser rejects rows with too many values, but it cannot
    # parse a file with line breaks of two kinds.
    for strict in (True, False):
        source = f"read_csv({quoted(pattern(file))}, {options}, strict_mode = {strict})"
        try:
            _insert(connection, number, file, columns, "row_number() over ()", source)
            break
        except duckdb.InvalidInputException as error:
            if not strict or "invalid state" not in str(error):
                raise
    rejected = connection.execute(
        "select line, any_value(error_message) from reject_errors "
        "group by line order by line"
    ).fetchall()
    connection.execute("drop table reject_errors; drop table reject_scans")
    if rejected:
        places = [(number, n, f"{file.name} line {n}: {m}") for n, m in rejected[:3]]
        tally.add("that do not fit the columns", len(rejected), places)


def _header(file):
    """Names in the first line of a text file, and their delimiter."""
    unpacked = gzip.open if file.suffix == ".gz" else open
    with unpacked(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as f:
        line = f.readline()
    delimiter = max(",;\t", key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter


def _insert(connection, number, file, columns, row, source):
    """Insert the rows of a file whose columns, ``(SQL, type)``, have names."""
    columns = {name.strip().lower(): column for name, column in columns.items()}
    _check_names(file, columns.keys())
    fields = [
        f"coalesce(trim(cast({columns.get(name, ['null'])[0]} as varchar)), '') "
        f"as {name}_text"
        for name in _REQUIRED + _OPTIONAL
    ]
    time, kind = columns["time"]
    typed = kind.startswith(("TIMESTAMP", "DATE"))
    t = f"epoch_us(cast({time} as timestamptz))" if typed else "parse_time(time_text)"
    connection.execute(
        f"create or replace temp view fields as select {', '.join(fields)}, "
        f"{t} as t, {row} as row from {source}"
    )
    run(connection, sql("check_rows"), file.name, file=number, failed=FAILED)


def _check_names(file, names):
    """Raise a ValueError if a required column is missing."""
    missing = [name for name in _REQUIRED if name not in names]
    if not missing:
        return
    others = names - set(_REQUIRED)
    near = [
        name
        for wanted in missing
        for name in difflib.get_close_matches(wanted, others, n=2, cutoff=_SIMILAR)
    ]
    hint = f"; is it {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"{file} must have a column {' and '.join(map(repr, missing))}, "
        f"got {', '.join(names) or 'none'}{hint}"
    )
