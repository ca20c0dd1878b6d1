"""Tables with our own columns: CSV, TSV and JSON Lines, perhaps gzipped, and Parquet.

JSON Lines have one object a line, whose keys are the columns; a key may be absent
where nothing is known. `scrapy runspider spider.py -o fetched.jsonl` appends such
lines; see docs/recrawl/scrapy_spider.py for a spider.

Pitfalls: a digest of raw bytes sees every advertisement, token and clock. Log the
fetches that failed too, with their status or with -1, and the answers 304.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import json
import re
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recrawl.database import pattern, quoted, run, sql
from recrawl.formats.base import Format, beginning, is_packed, unpacked
from recrawl.formats.checking import Quotes, Utf8
from recrawl.formats.pieces import fields, first_object
from recrawl.tally import FAILED, BadRowsWarning
from recrawl.types import PathLike

if TYPE_CHECKING:
    from recrawl.tally import Tally

__all__ = [
    "FORMATS",
    "OPTIONAL",
    "REQUIRED",
    "SIGNALS",
    "ColumnsWarning",
    "check",
    "header",
    "insert",
    "selected",
    "within_range",
]

REQUIRED = ("url", "time")
#: Columns from which bits are derived where there is no column "changed".
SIGNALS = ("digest", "etag", "last_modified")
OPTIONAL = ("changed", "start", "importance", "host", "status")
_TEXT_SUFFIXES = (".csv", ".tsv")
_DELIMITERS = ",;\t|"
_UTF16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_MICROSECONDS = {"s": 1_000_000, "ms": 1000}
_FARTHEST = 9 * 10**18  # microseconds since 1970, near the ends of DuckDB's calendar
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_NONE = "null", "VARCHAR"  # in place of a column that is not there: SQL and type
_TEXTS = ("url", "importance", "host", "status", "digest", "etag")
_TIMES = {"time": "t", "start": "start", "last_modified": "last_modified"}
# What else columns are called, to suggest one where ours is missing.
_OTHER_NAMES = {
    "url": ("uri", "address", "link", "page", "location"),
    "time": ("timestamp", "date", "datetime", "fetched_at", "crawled_at", "when"),
    "changed": ("has_changed", "modified", "is_new"),
    "digest": ("hash", "checksum", "sha1", "sha256", "md5", "content_hash"),
}
_OTHER_STATUS = {"http_status", "http_code", "status_code", "response_code"}


class ColumnsWarning(UserWarning):
    """A name looks like that of one of our columns, and is not read as such.

    It is that of a folder, such as ``changed=1``; or of a column, such as
    http_status where none is named status, so that failed fetches count as crawls.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ColumnsWarning)  # on purpose
    """


def _is_text(head, path):
    """Whether a file is a table in text, by its name or by our names in line 1."""
    text = head.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    first = "".join(text.splitlines()[:1])
    names = {_plain(name.strip('"')) for name in re.split(f"[{_DELIMITERS}]", first)}
    return _is_named(head, path, _TEXT_SUFFIXES) or names >= {*REQUIRED}


def _is_named(head, path, suffixes):
    """Whether a file has a name of tables, and is no page of a server's error."""
    named = path.name.removesuffix(".gz").endswith(suffixes)
    return named and not head.lstrip().startswith(b"<")


def _is_parquet(head, path):
    """Whether a file is a table in Parquet."""
    return head.startswith(b"PAR1") or path.suffix == ".parquet"


def _is_json(head, path):
    """Whether a file is in JSON Lines, by its name or by our keys in the first one."""
    return _is_named(head, path, _JSON_SUFFIXES) or first_object(head).keys() >= {
        *REQUIRED
    }


def _kind(file):
    """How a table is to be read: one of "parquet", "json" and "text"."""
    head = beginning(file)
    if _is_parquet(head, file):
        return "parquet"
    # that it is a table is known, so that any object will do
    return "json" if _is_json(head, file) or first_object(head) else "text"


FORMATS = (
    Format("csv", "a table in text", "table", _is_text),
    Format("csv", "a table in Parquet", "table", _is_parquet),
    Format("jsonl", "JSON Lines", "table", _is_json),
    # the same with digests, ETags or dates in place of bits, by the name of those
    # who look for it
    Format("http", "a table in text", "table", _is_text),
    Format("http", "JSON Lines", "table", _is_json),
)


def insert(
    connection: Any,
    number: int,
    file: Path,
    columns: Mapping[str, str],
    tally: Tally,
    rows: tuple[int, ...] | None = None,
) -> None:
    r"""Insert the rows of one table into the table ``crawl`` or ``fetches``.

    Rows that have a reason to be left out are inserted too.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables and macros of ``sql/tables.sql``.
    number : int
        The file's number, written with each row.
    file : pathlib.Path
        The file.
    columns : mapping from str to str
        The column to take for some of ours.
    tally : Tally
        Gets the lines that do not parse into a row at all.
    rows : tuple of int, optional
        Of a file in Parquet, the first row to be inserted, from 0, and the row
        after the last; by default all rows are.

    Raises
    ------
    ValueError
        The file lacks a required column.

    Examples
    --------
    >>> from recrawl.database import database
    >>> from recrawl.tally import Tally
    >>> with database("200MiB") as (connection, folder):
    ...     _ = connection.execute(sql("tables"))
    ...     file = folder / "log.csv"
    ...     _ = file.write_text("url,time,changed\na,2026-01-01,0\na,2026-01-02,?\n")
    ...     insert(connection, 0, file, {}, Tally())
    ...     connection.sql("select changed, reason from crawl order by t").fetchall()
    [(False, None), (False, 'whose changed is neither yes nor no')]
    """
    kind = _kind(file)
    if kind == "parquet":
        _insert_parquet(connection, number, file, columns, rows)
    elif kind == "json":
        _insert_json(connection, number, file, columns, tally)
    else:
        _insert_text(connection, number, file, columns, tally)


def check(file: Path, columns: Mapping[str, str]) -> Quotes | Utf8 | None:
    r"""Choose what is checked in each line of a table.

    Parameters
    ----------
    file : pathlib.Path
        The file.
    columns : mapping from str to str
        The column to take for some of ours.

    Returns
    -------
    Quotes, Utf8 or None
        None of a table in Parquet, or without a column of times.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.csv")
    ...     _ = file.write_text("url,time,changed\n")
    ...     check(file, {}).is_faulty(b'"a,2026,0\n')
    True
    """
    kind = _kind(file)
    if kind != "text":
        return Utf8() if kind == "json" else None
    try:
        names, delimiter = header(file)
    except (EOFError, OSError, zlib.error):  # a damaged gzip file, which `mended` tells
        return None
    names, time = [_plain(name) for name in names], _plain(columns.get("time", "time"))
    if time not in names:
        return None
    return Quotes(delimiter, len(names), names.index(time))


def header(file: Path) -> tuple[list[str], str]:
    """Find the names of columns of a table in text, and their delimiter.

    Parameters
    ----------
    file : Path
        In UTF-8, gzipped or not.

    Returns
    -------
    names : list of str
        As they stand in the first line.
    delimiter : str
        The one of comma, semicolon, tab and bar that is there most often.

    Raises
    ------
    ValueError
        A file in UTF-16.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "limits.csv")
    ...     _ = file.write_text("pattern;rate\\n")
    ...     header(file)
    (['pattern', 'rate'], ';')
    """
    if beginning(file).startswith(_UTF16):
        raise ValueError(f"{file} must be in UTF-8, got UTF-16")
    text = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    with io.TextIOWrapper(unpacked(file), **text) as lines:
        line = lines.readline()
    delimiter = max(_DELIMITERS, key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter


def _plain(name):
    """Name of a column without what does not distinguish it."""
    return name.strip().lower()


def selected(connection: Any, file: Path, names: tuple[str, ...]) -> str:
    r"""SELECT of some columns of a table as text, in Parquet or in CSV and its kin.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        A database.
    file : pathlib.Path
        The file.
    names : tuple of str
        Names of columns; the last one may hold decimal commas.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        The file is no table, or lacks a column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "views.csv")
    ...     _ = file.write_text("url;views\na;1,5\n")
    ...     query = selected(duckdb, file, ("url", "views"))
    ...     duckdb.sql(query).fetchall()
    [('a', '1.5')]
    """
    if not file.is_file():
        raise FileNotFoundError(f"no such file: {file}")
    if _is_parquet(beginning(file), file):
        columns, source = _parquet(connection, file)
    else:
        columns, source = _text(file, names[-1])
    found = {_plain(name): field for name, (field, _) in columns}
    if missing := [name for name in names if name not in found]:
        raise ValueError(
            f"{file} must be a table with the columns {' and '.join(names)}, "
            f"got one without {' and '.join(missing)}"
        )
    fields = ", ".join(f"cast({found[name]} as varchar) as {name}" for name in names)
    return f"select {fields} from {source}"


def _parquet(connection, file):
    """Columns of a Parquet file, ``(name, (SQL, type))``, and the SQL of its rows."""
    # keys in the names of folders would hide columns of the file
    source = (
        f"read_parquet({quoted(pattern(file))}, file_row_number = true, "
        "hive_partitioning = false)"
    )
    found = [
        ('"' + name.replace('"', '""') + '"', kind)
        for name, kind, *_ in connection.execute(f"describe from {source}").fetchall()
        if name != "file_row_number"
    ]
    # DuckDB gives other names to columns whose names differ in case alone
    return list(zip(pq.read_schema(file).names, found, strict=True)), source


def _text(file, weight, options="strict_mode = true"):
    """The same of a CSV or TSV file, in which one column may have decimal commas."""
    names, delimiter = header(file)
    columns = [(name, (f"c{k}", "VARCHAR")) for k, name in enumerate(names)]
    if delimiter in ";\t":  # a comma is then a decimal point
        comma, point = r"'^\s*(\d+),(\d+)\s*$'", r"'\1.\2'"
        columns = [
            (name, (f"regexp_replace({c}, {comma}, {point})", kind))
            if _plain(name) == weight
            else (name, (c, kind))
            for name, (c, kind) in columns
        ]
    types = ", ".join(f"c{k}: 'varchar'" for k in range(len(names)))
    # DuckDB's guesses, of the dialect from the rows, fail where rows are bad
    return columns, (
        f"read_csv({quoted(pattern(file))}, "
        f"auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', "
        f"escape = '\"', columns = {{{types}}}, hive_partitioning = false, {options})"
    )


def within_range(file: Path, folder: PathLike) -> Path:
    """Copy a Parquet file with its times within the range of microseconds.

    DuckDB brings times in milliseconds to microseconds before a query can tell that
    one of them is too large, and then refuses the file.

    Parameters
    ----------
    file : pathlib.Path
        The file.
    folder : path
        For the copy.

    Returns
    -------
    pathlib.Path
        The copy, in which the first or last time stands for those beyond it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.parquet")
    ...     pq.write_table(pa.table({"t": pa.array([2**62], pa.timestamp("ms"))}), file)
    ...     pq.read_table(within_range(file, folder))["t"].cast("int64").to_pylist()
    [9000000000000000]
    """
    given, copy = pq.ParquetFile(file), Path(folder, f"copy-{file.name}")
    with pq.ParquetWriter(copy, given.schema_arrow) as writer:
        for batch in given.iter_batches():
            columns = [_clipped(column) for column in batch.columns]
            rows = pa.record_batch(columns, schema=given.schema_arrow)
            writer.write_batch(rows)
    return copy


def _clipped(column):
    """A column, with times in seconds or milliseconds in the range of microseconds."""
    unit = getattr(column.type, "unit", None)
    if unit not in _MICROSECONDS or not pa.types.is_timestamp(column.type):
        return column
    most = _FARTHEST // _MICROSECONDS[unit]
    time = pc.min_element_wise(column.cast(pa.int64()), most, skip_nulls=False)
    return pc.max_element_wise(time, -most, skip_nulls=False).cast(column.type)


def _insert_parquet(connection, number, file, renamed, rows):
    """Insert rows of a Parquet file."""
    columns, source = _parquet(connection, file)
    if rows is not None:  # DuckDB reads the row groups that hold them only
        within = "where file_row_number >= {} and file_row_number < {}"
        source += " " + within.format(*rows)
    row = "file_row_number + 1"
    _insert(connection, number, file, columns, renamed, row, source)


def _insert_text(connection, number, file, renamed, tally):
    """Insert the rows of a CSV or TSV file; count the lines that are none."""
    weight = _plain(renamed.get("importance", "importance"))
    # Only the strict parser rejects rows with too many values, but it cannot
    # parse a file with line breaks of two kinds.
    for strict in (True, False):
        options = f"store_rejects = true, strict_mode = {strict}"
        columns, source = _text(file, weight, options)
        last = [_plain(name) for name, _ in columns[-1:]]
        if strict and last == [_plain(renamed.get("url", "url"))] and _is_cut(file):
            message = (
                f"{file}: the last line ends without a line break, perhaps in a URL"
            )
            warnings.warn(message, BadRowsWarning, stacklevel=2)
        try:
            row = "row_number() over ()"
            _insert(connection, number, file, columns, renamed, row, source)
            break
        except duckdb.InvalidInputException as error:
            if not strict or "invalid state" not in str(error):
                raise
    rejected = connection.execute(
        "select line, any_value(error_message) from reject_errors "
        "group by line order by line"
    ).fetchall()
    connection.execute("drop table reject_errors; drop table reject_scans")
    _count(tally, number, file, "that do not fit the columns", rejected)


def _is_cut(file):
    """Whether no line break ends a file; a gzip file that is cut shows otherwise."""
    with open(file, "rb") as lines:
        lines.seek(-1, io.SEEK_END)
        return not is_packed(file) and lines.read() not in b"\r\n"


def _insert_json(connection, number, file, renamed, tally):
    """Insert the rows of a file in JSON Lines; count the lines that are no JSON."""
    lines = f"lines({quoted(pattern(file))})"
    # all keys: the first lines may lack some
    keys = connection.execute(
        f"select distinct unnest(try(json_keys(line))) as key from {lines} order by key"
    ).fetchall()
    columns = [(key, (f"f[{k}]", "VARCHAR")) for k, (key,) in enumerate(keys, 1)]
    objects = fields(*(f"$.{json.dumps(key, ensure_ascii=False)}" for (key,) in keys))
    source = f"({objects.replace('lines($file)', lines)}) where f is not null"
    _insert(connection, number, file, columns, renamed, "row", source)
    rejected = connection.execute(
        f"select n, line from {lines} where trim(line) <> '' and not json_valid(line)"
    ).fetchall()
    _count(tally, number, file, "that are no JSON", rejected)


def _count(tally, number, file, reason, rejected):
    """Count lines that make no row, given with what is shown of each."""
    places = [(number, n, f"{file.name} line {n}: {text}") for n, text in rejected[:3]]
    if places:
        tally.add(reason, len(rejected), places)


def _insert(connection, number, file, columns, renamed, row, source):
    """Insert the rows of a file whose columns, ``(SQL, type)``, have names."""
    given = [name for name, _ in columns]
    columns = {_plain(name): column for name, column in columns}
    theirs = {ours: _plain(name) for ours, name in renamed.items()}
    _check_names(file, columns.keys(), theirs)
    names = (*_TEXTS, *_TIMES, "changed")
    for wanted in (theirs.get(name, name) for name in names):
        same = [repr(name) for name in given if _plain(name) == wanted]
        if len(same) > 1:
            raise ValueError(
                f"{file} must have one column {wanted!r}, got {', '.join(same)}"
            )
    ours = {name: columns.get(theirs.get(name, name), _NONE) for name in names}
    unread = sorted(columns.keys() & _OTHER_STATUS)
    if ours["status"] is _NONE and unread:
        warnings.warn(
            f"{file}: without a column status all fetches count as good; "
            f"do you mean --column status={unread[0]}?",
            ColumnsWarning,
            stacklevel=2,
        )
    fields = [
        f"coalesce(trim(cast({ours[name][0]} as varchar)), '') as {name}_text"
        for name in _TEXTS
    ]
    fields += [f"{_time(*ours[name])} as {field}" for name, field in _TIMES.items()]
    fields.append(f"{_bit(*ours['changed'])} as changed")
    # as they stand, for rows that are shown: texts of all times take long
    fields += [f"{ours[n][0]} as {n}_given" for n in ("time", "changed", "start")]
    connection.execute(
        f"create or replace temp view fields as select {', '.join(fields)}, "
        f"{row} as row from {source}"
    )
    query = "check_fetches" if ours["changed"] is _NONE else "check_rows"
    run(connection, sql(query), file.name, file=number, failed=FAILED)


def _bit(column, kind):
    """SQL of the Boolean value of a column, or null."""
    if kind == "BOOLEAN":
        return column
    return f"parse_changed(trim(cast({column} as varchar)))"


def _time(column, kind):
    """SQL of the microseconds since 1970 of a column, or null."""
    if kind.startswith(("TIMESTAMP", "DATE")):
        return f"epoch_us(try_cast({column} as timestamptz))"
    return f"parse_time(trim(cast({column} as varchar)))"


def _check_names(file, names, theirs):
    """Raise a ValueError if a required column is missing."""
    wanted = [theirs.get(name, name) for name in REQUIRED]
    wanted += {*theirs.values()} - {*wanted}
    signs = [theirs.get(name, name) for name in ("changed", *SIGNALS)]
    missing = [name for name in wanted if name not in names]
    unsigned = names.isdisjoint(signs)
    if not missing and not unsigned:
        return
    ours = {their: our for our, their in theirs.items()}
    if any("\ufffd" in name for name in names):
        hint = (
            "; they are not in UTF-8, as tables must be, but perhaps in Windows-1252: "
            "iconv -f WINDOWS-1252 -t UTF-8 makes a copy in UTF-8"
        )
    elif not names or any(name[:1].isdigit() for name in names):
        hint = "; the first line of a table must name its columns"
    else:
        looked_for = [*missing, *(signs if unsigned else [])]
        looked_for = {ours.get(name, name): name for name in looked_for}
        near = names - {*wanted, *signs}
        hint = _hint(looked_for, {n for n in near if not {*n} & {*_DELIMITERS}})
    needed = [f"{n!r} for {ours[n]}" if n in ours else repr(n) for n in missing]
    if unsigned:
        needed.append(f"{signs[0]!r} (or {', '.join(map(repr, signs[1:]))})")
    raise ValueError(
        f"{file} must have a column {' and '.join(needed)}, "
        f"got {', '.join(names) or 'none'}{hint}"
    )


def _hint(missing, names):
    """Which columns may be meant, and how to say so.

    `missing` has the names that were looked for, by our names of these columns.
    """
    near = {}
    for ours, theirs in missing.items():
        for known in (theirs, *_OTHER_NAMES.get(ours, ())):
            close = difflib.get_close_matches(known, names - {*near.values()}, n=1)
            if close:
                near[ours] = close[0]
                break
    given = " ".join(f"--column {ours}={theirs}" for ours, theirs in near.items())
    return f"; do you mean {given} (columns={near})?" if near else ""
