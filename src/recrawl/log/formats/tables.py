"""Tables with our own columns: CSV, TSV and JSON Lines, perhaps gzipped, and Parquet.

JSON Lines have one object a line, whose keys are the columns; a key may be absent
where nothing is known. `scrapy runspider spider.py -o fetched.jsonl` appends such
lines; see docs/recrawl/scrapy_spider.py for a spider.

Pitfalls: a digest of raw bytes sees every advertisement, token and clock. Log the
fetches that failed too, with their status or with -1, and the answers 304.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from recrawl.log.database import assign, quoted, run, sql
from recrawl.log.formats.base import Format, beginning, read_from, unpacked
from recrawl.log.formats.checking import SHOWN, Quotes, Utf8
from recrawl.log.formats.pieces import first_object
from recrawl.log.tally import FAILED, Tally, warn

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
]

REQUIRED = ("url", "time")
#: Columns from which bits are derived where there is no column "changed".
SIGNALS = ("digest", "etag", "last_modified")
OPTIONAL = ("changed", "start", "importance", "host", "status")
_TEXT_SUFFIXES, _JSON_SUFFIXES = (".csv", ".tsv"), (".jsonl", ".ndjson", ".jl")
_DELIMITERS = ",;\t|"
# In place of a column that is not there: SQL and type. A date, as the macro that reads
# texts as times would take DuckDB 5 ms to plan for each column.
_NONE = "null", "DATE"
_TEXTS = ("importance", "host", "status", "digest", "etag")
_TIMES = {"time": "t", "start": "start", "last_modified": "last_modified"}
_LINES = "lines(getvariable('file'))"
_OURS = ("url", *_TIMES, "changed", *_TEXTS)
# Cells of a row in these columns; texts of all times would take long.
_CELLS = (
    "[url, text_of(time_given), text_of(start_given), text_of(last_modified_given), "
    "text_of(changed_given), importance_text, host_text, status_text, digest_text, "
    "etag_text]"
)
# Names that mean one of our columns, as `_plain` has them. They are not read,
# for statuses that are words, for example, are none of HTTP, but they are named.
_NEARLY = {
    "status": "stat[ue]|estado|respuesta|httpresp|^code|codehttp|"
    "(http|res(p|ponse|ult)?|ret(urn)?|reply|fetch|crawl|protocol|error|wort)code",
    "changed": "^(has|is|was|page|content|body)changed?$",
    "digest": "digest",
    "etag": "etag",
    "last_modified": "lastmod",
    "importance": "importance",
    "host": "^hostname$",
}
# Names of the values in JSON Lines, those that are read or warned of first. The first
# lines tell which objects are in them.
_KEYS = f"""
with objects as (select line, try(json_keys(line)) as keys from {_LINES}),
named as (
    select distinct [unnest(keys)] as path from objects
    union all
    select distinct unnest(flatten(list_transform(keys[:50], lambda key:
        list_transform(json_keys(line, '/' || key), lambda below: [key, below])
    ))) from (from objects limit 100)
),
plain as (select path, plain_name(array_to_string(path, '.')) as name from named)
select path
from plain
order by list_contains($wanted, name) desc, regexp_matches(name, $nearly) desc, path
limit 100
"""
_CUT = "truncated$"
_MISFIT = "that do not fit the columns"
_MOST_LISTED = 50_000  # of them, in some 100 MB
_LONGEST = 1 << 20  # characters of the names of all columns together
# Lines of Excel and PowerShell before the names.
_BEFORE = re.compile(
    rf'"?sep=([{_DELIMITERS}])"?[{_DELIMITERS}\s]*|#type .*\s*', re.IGNORECASE
)


class ColumnsWarning(UserWarning):
    """A column is called nearly like one of ours, and is not read as such.

    Such as http_status where none is named status: failed fetches count as crawls.
    """


def _is_text(head, path):
    """Whether a file is a table in text, by its name or by our names in line 1."""
    text = head.decode("utf-8-sig", "replace")
    names = {_plain(name) for name in _names(io.StringIO(text, newline=""))[0]}
    return _is_named(head, path, _TEXT_SUFFIXES) or names >= {*REQUIRED}


def _is_named(head, path, suffixes):
    """Whether a file has a name of tables, and is no page of a server's error."""
    named = path.name.lower().removesuffix(".gz").endswith(suffixes)
    return named and not head.lstrip().startswith(b"<")


def _is_parquet(head, path):
    """Whether a file is a table in Parquet."""
    return head.startswith(b"PAR1") or path.suffix.lower() == ".parquet"


def _is_json(head, path):
    """Whether a file is in JSON Lines, by its name or by our keys in the first one."""
    keys = first_object(head).keys()
    return _is_named(head, path, _JSON_SUFFIXES) or keys >= {*REQUIRED}


FORMATS = (
    Format("csv", "a table in text", "table", _is_text),
    Format("csv", "a table in Parquet", "table", _is_parquet),
    Format("jsonl", "JSON Lines", "table", _is_json),
)


def insert(
    connection: Any,
    number: int,
    file: Path,
    columns: Mapping[str, str],
    tally: Tally,
    rows: tuple[int, ...] | None = None,
    whole: Path | None = None,
    format: str = "csv",
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
        The file, which errors name.
    columns : mapping from str to str
        The column to take for some of ours.
    tally : Tally
        Gets the lines that do not parse into a row at all.
    rows : tuple of int, optional
        Of a file in Parquet, the first row to be inserted, from 0, and the row
        after the last; by default all rows are.
    whole : pathlib.Path, optional
        What is read: a copy without what is damaged, by default the file itself.
    format : str
        Name of its format, which what is no object at first may have.

    Raises
    ------
    ValueError
        The file lacks a required column, or no line of it is JSON.

    Examples
    --------
    >>> from recrawl.log.database import database
    >>> from recrawl.log.tally import Tally
    >>> with database("200MiB") as (connection, folder):
    ...     _ = connection.execute(sql("tables"))
    ...     file = folder / "log.csv"
    ...     _ = file.write_text("url,time,changed\na,2026-01-01,0\na,2026-01-02,so\n")
    ...     insert(connection, 0, file, {}, Tally())
    ...     connection.sql("select changed, reason from crawl order by t").fetchall()
    [(False, None), (False, 'whose changed is neither yes nor no')]
    """
    given = connection, number, file, columns
    kind, whole = _kind(file, format), whole or file
    read_from(connection, whole)
    if kind == "parquet":
        names, source = _parquet(connection, whole)
        if rows is not None:  # DuckDB reads the row groups that hold them only
            assign(connection, rows=rows)
            source += (
                " where file_row_number >= getvariable('rows')[1]"
                " and file_row_number < getvariable('rows')[2]"
            )
        _insert(*given, names, "file_row_number + 1", source)
    elif kind == "json":
        _insert(*given, *_json(connection, file, columns))
        bad = "where trim(line) <> '' and not json_valid(line)"
        bad = f"select n as line, line as given from {_LINES} {bad}"
        _count(connection, number, file, "that are no JSON", bad, tally)
    else:
        _insert_text(*given, whole, tally)


def _kind(file, format):
    """How a table is to be read: one of "parquet", "json" and "text"."""
    head = beginning(file)
    if _is_parquet(head, file):
        return "parquet"
    # that it is a table is known, so that any object will do
    return "json" if format == "jsonl" or first_object(head) else "text"


def check(
    file: Path, columns: Mapping[str, str], format: str = "csv"
) -> Quotes | Utf8 | None:
    r"""Choose what is checked in each line of a table.

    Parameters
    ----------
    file : pathlib.Path
        The file.
    columns : mapping from str to str
        The column to take for some of ours.
    format : str
        As of `insert`.

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
    kind = _kind(file, format)
    if kind != "text":
        return Utf8() if kind == "json" else None
    try:
        names, delimiter, _ = header(file)
    except (EOFError, OSError, zlib.error):  # a damaged gzip file, which `mended` tells
        return None
    names, time = [_plain(name) for name in names], _plain(columns.get("time", "time"))
    return Quotes(delimiter, len(names), names.index(time)) if time in names else None


def header(file: Path) -> tuple[list[str], str, int]:
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
        The one of comma, semicolon, tab and bar that is there most often, or
        that a line ``sep=;`` before the names gives.
    n_before : int
        Number of lines before the names.

    Raises
    ------
    ValueError
        Names of more than 1,048,576 characters together, or 131,072 of one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "limits.csv")
    ...     _ = file.write_text("pattern;rate\\n")
    ...     header(file)
    (['pattern', 'rate'], ';', 0)
    """
    text = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    with io.TextIOWrapper(unpacked(file), **text) as lines:
        try:
            return _names(lines)
        except csv.Error as error:
            raise ValueError(
                f"{file} must have names of at most {_LONGEST:,} characters in its "
                f"first line, and {csv.field_size_limit():,} each, got {error}"
            ) from None


def _names(lines):
    """Find what `header` returns in the first lines of a text."""
    line, n_before, delimiter = lines.readline(_LONGEST), 0, None
    while found := _BEFORE.fullmatch(line):
        delimiter = found[1] or delimiter
        n_before += 1
        line = lines.readline(_LONGEST)
    if len(line) == _LONGEST:
        raise csv.Error(f"more: {line[:SHOWN]!r}")
    delimiter = delimiter or max(_DELIMITERS, key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter, n_before


def _plain(name):
    """Name of a column without what does not distinguish it: Last-Modified is ours."""
    return re.sub(r'[\s_.\-"\ufeff]', "", name).lower()


def selected(
    connection: Any, file: Path, names: tuple[str, ...], whole: Path | None = None
) -> str:
    r"""SELECT of some columns of a table as text, in Parquet or in CSV and its kin.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        A database.
    file : pathlib.Path
        The file, which errors name.
    names : tuple of str
        Names of columns; the last one may hold decimal commas.
    whole : pathlib.Path, optional
        As of `insert`.

    Returns
    -------
    str
        It reads the file until the connection reads another one.

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
    whole = whole or file
    read_from(connection, whole)
    if _is_parquet(beginning(file), file):
        columns, source = _parquet(connection, whole)
    else:
        columns, source = _text(whole, names[-1])
    found = {_plain(name): column for name, column in columns}
    if missing := [name for name in names if _plain(name) not in found]:
        raise ValueError(
            f"{file} must be a table with the columns {' and '.join(names)}, "
            f"got one without {' and '.join(missing)}"
        )
    fields = (_decoded(name, *found[_plain(name)])[0] for name in names)
    fields = (
        f"cast({f} as varchar) as {n}" for f, n in zip(fields, names, strict=True)
    )
    return f"select {', '.join(fields)} from {source}"


def _parquet(connection, file):
    """Columns of a Parquet file, ``(name, (SQL, type))``, and the SQL of its rows."""
    # keys in the names of folders would hide columns of the file
    source = "read_parquet(getvariable('file'), hive_partitioning = false)"
    found = connection.execute(f"describe from {source}").fetchall()
    columns = [(f"c{k}", kind) for k, (_, kind, *_) in enumerate(found)]
    source += f" as numbered({', '.join(column for column, _ in columns)})"
    # DuckDB gives other names to columns whose names differ in case alone
    return list(zip(pq.read_schema(file).names, columns, strict=True)), source


def _text(file, weight, options="strict_mode = true"):
    """The same of a CSV or TSV file, in which one column may have decimal commas."""
    names, delimiter, n_before = header(file)
    columns = [(name, (f"c{k}", "VARCHAR")) for k, name in enumerate(names)]
    for k, name in enumerate(names):
        if _plain(name) == _plain(weight) and delimiter in ";\t":
            point = rf"regexp_replace(c{k}, '^\s*(\d+),(\d+)\s*$', '\1.\2')"
            columns[k] = name, (point, "VARCHAR")
    types = ", ".join(f"c{k}: 'varchar'" for k in range(len(names)))
    # DuckDB's guesses, of the dialect from the rows, fail where rows are bad
    return columns, (
        "read_csv(getvariable('file'), compression = getvariable('compression'), "
        f"auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', "
        f"escape = '\"', columns = {{{types}}}, skip = {n_before}, "
        f"hive_partitioning = false, {options})"
    )


def _json(connection, file, theirs):
    """The same of JSON Lines, with the SQL of the row's number before its rows."""
    wanted = [_plain(name) for name in _wanted(theirs).values()]
    given = {"wanted": wanted, "nearly": "|".join([_CUT, *_NEARLY.values()])}
    keys = [key for (key,) in connection.execute(_KEYS, given).fetchall()]
    if not keys:
        line = beginning(file)[:SHOWN].decode("utf-8", "replace").partition("\n")[0]
        raise ValueError(
            f"{file} must have one object of JSON a line, but no line is JSON; the "
            f"first is {line!r}{_in_utf8(line)}"
        )
    columns, pointers, ends = [], [], []
    for key in keys:
        name = ".".join(key)
        if _plain(name) in wanted:
            # as of RFC 6901, in which two signs are written in another way
            escaped = [k.replace("~", "~0").replace("/", "~1") for k in key]
            pointers.append("/" + "/".join(escaped))
            ends.append(key[-1])
            k = len(pointers)
            value = f"as_written(f[{k}], given, getvariable('ends')[{k}])"
            columns.append((name, (value, "VARCHAR")))
        else:
            columns.append((name, _NONE))
    assign(connection, pointers=pointers, ends=ends)
    values = "try(json_extract_string(line, getvariable('pointers')))"
    objects = f"select n as row, line as given, {values} as f from {_LINES}"
    return columns, "row", f"({objects}) where f is not null"


def _insert_text(connection, number, file, theirs, whole, tally):
    """Insert the rows of a CSV or TSV file; count the lines that are none."""
    weight, row = theirs.get("importance", "importance"), "row_number() over ()"
    # Only the strict parser rejects rows with too many values, but it cannot
    # parse a file with line breaks of two kinds.
    for strict in (True, False):
        options = f"strict_mode = {strict}"
        try:
            columns, source = _text(whole, weight, f"{options}, ignore_errors = true")
            n_rows = _insert(connection, number, file, theirs, columns, row, source)
            break
        except duckdb.InvalidInputException as error:
            if not strict or "invalid state" not in str(error):
                raise
    for table in ("crawl", "fetches"):
        query = sql("leave_out_misnamed").format(table=table)
        connection.execute(query, {"file": number})
    n_lines = _n_rows(connection, f"{_LINES} where line <> ''")
    if n_lines == n_rows + 1:  # with that of the names
        return
    # DuckDB needs 2 KB for each row that it lists, outside of its bounded memory;
    # lines inside of values are none, but they are fewer in most logs
    if n_lines - n_rows > _MOST_LISTED:
        options = "strict_mode = false, null_padding = true, parallel = false"
        _, source = _text(whole, "", f"{options}, ignore_errors = true")
        if n := _n_rows(connection, source) - n_rows:
            tally.add(_MISFIT, n, [(number, 0, file.name)])
        return
    _, source = _text(whole, "", f"{options}, store_rejects = true")
    _n_rows(connection, source)
    bad = "select line, min(error_message) as given from reject_errors group by 1"
    _count(connection, number, file, _MISFIT, bad, tally)
    connection.execute("drop table reject_errors; drop table reject_scans")


def _n_rows(connection, source):
    """Number of rows."""
    # rejects are stored when the last row has been fetched
    return connection.execute(f"select count(*) from {source}").fetchall()[0][0]


def _count(connection, number, file, reason, query, tally):
    """Count lines that make no row, with what is shown of the first ones."""
    n, first = connection.execute(
        f"select count(*), min((line, given), 3) from ({query})"
    ).fetchone()
    if n:
        places = [(number, k, f"{file.name} line {k}: {text}") for k, text in first]
        tally.add(reason, n, places)


def _insert(connection, number, file, theirs, columns, row, source):
    """Insert the rows of a file with named columns, ``(SQL, type)``; how many."""
    names = [name for name, _ in columns]
    wanted = _wanted(theirs)
    _check_names(file, names, theirs, wanted)
    wanted = {ours: _plain(name) for ours, name in wanted.items()}
    columns = {_plain(name): column for name, column in columns}
    ours = {name: _decoded(name, *columns.get(wanted[name], _NONE)) for name in _OURS}
    fields = [
        f"coalesce(value_of(trim(cast({ours[name][0]} as varchar))), '') as {name}_text"
        for name in _TEXTS
    ]
    # (a copy of all URLs would take memory)
    fields.append(f"text_of({ours['url'][0]}) as url")
    fields.append("weight_of(importance_text) as importance")
    fields.append("try_cast(status_text as integer) as status")
    fields += [f"{_time(*ours[name])} as {field}" for name, field in _TIMES.items()]
    fields.append(f"{_bit(*ours['changed'])} as changed")
    # as they stand, for rows that are shown: texts of all times take long
    fields += [f"{ours[n][0]} as {n}_given" for n in (*_TIMES, "changed")]
    connection.execute(
        f"create or replace temp view fields as select {', '.join(fields)}, "
        f"{row} as row from {source}"
    )
    assign(
        connection,
        # numbers and flags of a row are no names
        names=[name for name in columns if re.search("[a-z]{2}", name)],
        ours=[name if name in columns else "" for name in wanted.values()],
    )
    judged = sql("judge_rows").format(cells=_CELLS, failed=quoted(FAILED))
    connection.execute(judged)
    query = "check_rows" if wanted["changed"] in columns else "check_fetches"
    return run(connection, sql(query), file.name, file=number).fetchall()[0][0]


def _wanted(theirs):
    """Names of the columns to be taken for ours."""
    return {ours: theirs.get(ours, ours) for ours in _OURS}


def _decoded(name, column, kind):
    """SQL and type of a column of ours, with a text for bytes and short numbers."""
    if kind == "BLOB":  # Parquet without the mark of text
        other = f"hex({column})" if name == "digest" else "null"
        return f"coalesce(try(decode({column})), {other})", "VARCHAR"
    if kind == "FLOAT" and name in _TIMES:  # of seven digits
        return f"format('{{:.6e}}', {column})", "VARCHAR"
    return column, kind


def _bit(column, kind):
    """SQL of the Boolean value of a column, or null."""
    if kind == "BOOLEAN":
        return column
    return f"parse_changed(trim(cast({column} as varchar)))"


def _time(column, kind):
    """SQL of the microseconds since 1970 of a column, or null."""
    if kind.startswith(("TIMESTAMP", "DATE")):
        return f"epoch_us(try_cast({column} as timestamptz))"
    if kind == "DOUBLE":
        return f"parse_number({column})"
    return f"parse_time(nullif(trim(cast({column} as varchar)), ''))"


def _check_names(file, names, theirs, wanted):
    """Raise a ValueError if a required column is missing, or is there twice."""
    given = [_plain(name) for name in names]
    for name in wanted.values():
        if given.count(_plain(name)) > 1:
            raise ValueError(f"{file} must have one column {name!r}, got several")
    unread = {ours for ours, name in wanted.items() if _plain(name) not in given}
    needed = {*REQUIRED, *theirs} & unread
    missing = [repr(name) for ours, name in wanted.items() if ours in needed]
    signs = "changed", *SIGNALS
    if unread.issuperset(signs):
        others = ", ".join(repr(wanted[name]) for name in SIGNALS)
        missing.append(f"{wanted['changed']!r} (or {others})")
    if missing:
        names = ", ".join(names) or "none"
        raise ValueError(
            f"{file} must have a column {' and '.join(missing)} in its first line, "
            f"got {names}{_in_utf8(names)}; --column OURS=THEIRS takes another one"
        )
    cut = [name for name in names if re.search(_CUT, _plain(name))]
    if "changed" not in unread:
        unread -= {*SIGNALS}
    elif cut:
        warn(
            f"{file}: the column {cut[0]!r} is not read: a part of a body counts as a "
            "changed one; leave such rows out",
            ColumnsWarning,
        )
    taken = {_plain(name) for name in wanted.values()}
    for ours in sorted(unread & _NEARLY.keys()):
        nearly = re.compile(_NEARLY[ours])
        what = ours.replace("status", "status of HTTP, and some fetches failed")
        for name in names:
            if nearly.search(_plain(name)) and _plain(name) not in taken:
                warn(
                    f"{file}: the column {name!r} is not read; if it holds the {what}, "
                    f"do you mean --column {ours}={shlex.quote(name)}?",
                    ColumnsWarning,
                )
                break


def _in_utf8(text):
    """What to say of a text that seems to be in another encoding."""
    hint = "; its text must be in UTF-8"
    return hint if {"\ufffd", "\0"} & {*text} else ""
