"""Crawl logs of any size, read, checked, sorted and grouped by DuckDB in bounded memory; out come batches of whole pages."""

import contextlib
import csv
import difflib
import errno
import gzip
import re
import tempfile
import warnings
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from tqdm import tqdm

from paperlib import checks
from paperlib.processes import History

REQUIRED, OPTIONAL = ("url", "time", "changed"), ("importance", "host", "status")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
DAY = 86_400_000_000  # microseconds
YEARS = (
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
)  # 1 to 9999, microseconds since 1970
CRAWL = {
    "url": "varchar", "t": "bigint", "changed": "boolean", "importance": "double", "status": "integer", "host": "varchar",
    "file": "integer", "row": "bigint", "reason": "varchar", "given": "varchar",
}  # fmt: skip
STATE = {
    "url": "varchar", "host": "varchar", "importance": "double", "first_crawl": "timestamptz", "last_crawl": "timestamptz",
    "last_row": "timestamptz", "gone": "boolean", "n_failed": "bigint", "interval": "double[]", "bits": "boolean[]", "n": "bigint[]",
    "lag": "double", "lag_squares": "double",
}  # fmt: skip
HOST = "'^[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)'"
FAILED, KNOWN = "of failed fetches", "not after the last row of their page in the state"
TORN = "two crawls at one time that disagree, taken as changed"
_ROWS = 1_000_000  # of a batch, those that the state stands for included


class BadRowsWarning(UserWarning):
    """Rows of a log that were left out, or taken with a grain of salt: how many, why, and where the first of them are."""


@dataclass(frozen=True)
class Batch:
    """Pages in random order, complete.

    page : pyarrow Table, one row a page: url, host, importance, first_crawl, last_crawl, gone, n_failed, and what the state holds
    history : History of shape (n_pages,), days; the crawls of this log
    time : array of int, one for each crawl of the history, microseconds since 1970
    """

    page: pa.Table
    history: History
    time: np.ndarray


class Tally:
    """Rows by what became of them: how many, and where the first of them are, as (file, row, text) or (url, time, text)."""

    def __init__(self):
        self.counts, self.places = Counter(), {}

    def add(self, reason, n, places=()):
        self.counts[reason] += n
        if places:
            self.places[reason] = sorted([*self.places.get(reason, ()), *places])[:3]

    def update(self, other):
        for reason, n in other.counts.items():
            self.add(reason, n, other.places.get(reason, ()))

    def report(self, path):
        """Warn of bad rows, once, and raise where there are no others."""
        listed = [
            (r, f"{self.counts[r]:,} ", f"({'; '.join(text for *_, text in places)})")
            for r, places in sorted(self.places.items())
        ]
        self.places.clear()
        if left_out := ", ".join(
            f"{n}{reason} {where}" for reason, n, where in listed if reason != TORN
        ):
            warnings.warn(
                f"rows left out of {path}: {left_out}", BadRowsWarning, stacklevel=5
            )
        for reason, n, where in listed:
            if reason == TORN:
                warnings.warn(
                    f"{n}times {reason} {where}", BadRowsWarning, stacklevel=5
                )
        if not self.counts.keys() & {"rows", KNOWN}:
            raise ValueError(
                f"{path} must hold at least one row that can be used, got {dict(sorted(self.counts.items())) or 'none at all'}"
            )


@dataclass(frozen=True)
class Log:
    """An opened log: the tally of its rows, complete after the last batch, and the number of pages."""

    connection: duckdb.DuckDBPyConnection
    tally: Tally
    n_pages: int

    @property
    def counts(self):
        return dict(self.tally.counts)

    def batches(self):
        """All pages, under a progress bar if that takes more than two seconds."""
        ends = self.connection.execute(
            f"select max(i) + 1 from page group by before // {_ROWS} order by all"
        ).fetchall()
        start = 0
        self.tally.add("repeated", 0)
        with tqdm(
            total=self.n_pages, unit=" URLs", delay=2, disable=None, leave=False
        ) as bar:
            for (end,) in ends:
                batch, repeated, torn = self._batch(start, end)
                self.tally.add("repeated", repeated)
                if torn:
                    self.tally.add(
                        TORN,
                        len(torn),
                        [
                            (url, t, f"{url} at {np.datetime64(t, 'us')}")
                            for url, t in sorted(torn)[:3]
                        ],
                    )
                yield batch
                bar.update(end - start)
                start = end

    def map(self, function):
        """What a function gives for each batch."""
        return map(function, self.batches())

    def sample(self, n_pages):
        """One batch of so many pages, or all if there are fewer."""
        return self._batch(0, min(n_pages, self.n_pages))[0]

    def time_at(self, share):
        """When this share of the rows had been crawled, microseconds since 1970."""
        return _one(self.connection, f"select quantile_disc(t, {share}) from sorted")

    def _batch(self, start, end):
        """Pages from `start` to before `end`, how many of their rows were repeated, and (url, time) of those that disagree."""
        within = f"where i >= {start} and i < {end} order by i"
        rows = self.connection.sql(
            f"select i, t, changed from sorted {within}, t"
        ).to_arrow_table()
        pages = self.connection.sql(
            f"select * exclude (i, before) from page {within}"
        ).to_arrow_table()
        page, time, changed = (column.to_numpy() for column in rows.columns)
        # crawls of one page at one time are one
        starts = np.flatnonzero(
            (np.diff(page, prepend=-1) != 0) | (np.diff(time, prepend=0) != 0)
        )
        found = np.add.reduceat(np.append(changed, 0), starts)
        n_rows = np.diff(np.append(starts, page.size))
        torn = starts[(found > 0) & (found < n_rows)]
        where = [
            (pages["url"][int(i)].as_py(), t)
            for i, t in zip(page[torn] - start, time[torn].tolist(), strict=True)
        ]
        repeated = page.size - starts.size - torn.size
        page, time, changed = page[starts], time[starts], found > 0

        offsets = np.searchsorted(page, np.arange(start, end + 1))
        known = pages["known_crawl"].cast(pa.int64())
        previous = np.roll(time, 1)
        first = offsets[:-1][offsets[:-1] < offsets[1:]]
        previous[first] = known.fill_null(YEARS[0] - 1).to_numpy()[
            offsets[:-1] < offsets[1:]
        ]
        kept = previous >= YEARS[0]  # the first crawl of all of a page has no interval
        history = History(
            (time - previous)[kept] / DAY,
            changed[kept],
            np.append(0, np.cumsum(kept))[offsets],
        )
        return Batch(pages, history, time[kept]), repeated, where


@contextlib.contextmanager
def opened(path, *, state=None, memory="1GiB"):
    """Read a log into a database in the system's folder for temporary files, which goes when the context ends.

    Parameters
    ----------
    path : path of a CSV or TSV (also gzipped) or Parquet file, or of a folder of them
    state : path of a Parquet file that `crawl_log.estimate` wrote, optional
    memory : str
        What the database may use, such as "1GiB"; what does not fit goes to disk, where logs larger than memory are sorted.

    Yields
    ------
    Log

    Warns
    -----
    BadRowsWarning
        Not of failed fetches, which are only counted.

    Raises
    ------
    FileNotFoundError, ValueError
        No such file; a file of another kind, empty, truncated, or without a column that is needed; not a single row that can be used;
        memory that is not enough, or no size at all.
    OSError
        No space left for the database.
    """
    with part(path, state=state, memory=memory) as log:
        log.tally.report(path)
        yield log
        log.tally.report(path)


@contextlib.contextmanager
def part(path, share=None, *, state=None, memory="1GiB"):
    """What `opened` does, but silently, and of share (k, n) only the k-th of n parts, in a single thread.

    Parts are ranges of the order of pages, so that one after the other they are the whole; rows without a URL are in one of them, what is
    no row at all in the first.
    """
    files = files_of(path)
    with _database(memory) as (connection, folder):
        if share is not None:
            connection.execute("set threads = 1")
        connection.execute(
            f"create table crawl ({', '.join(f'{name} {kind}' for name, kind in CRAWL.items())})"
        )
        tally = Tally()
        with tqdm(
            total=len(files),
            unit=" files",
            delay=2,
            disable=None if len(files) > 1 else True,
            leave=False,
        ) as bar:
            for number, file in enumerate(files):
                bar.set_postfix_str(file.name)
                for reason, n, places in _read(connection, number, file, folder, share):
                    if share is None or not share[0]:
                        tally.add(
                            reason, n, [(number, row, text) for row, text in places]
                        )
                bar.update()
        _pages(connection, state, share)
        for reason, n in connection.execute(
            "select coalesce(reason, 'rows'), count(*) from crawl group by all order by all"
        ).fetchall():
            first = "select file, row, coalesce(given, url) from crawl where reason = ? order by file, row limit 3"
            places = (
                []
                if reason in ("rows", FAILED)
                else connection.execute(first, [reason]).fetchall()
            )
            tally.add(
                reason,
                n,
                [
                    (number, row, f"{files[number].name} row {row}: {given}")
                    for number, row, given in places
                ],
            )
        query = "create table sorted as select i, t, changed from page join crawl using (url) where reason is null order by i, t"
        _run(connection, query, "sorting")
        connection.execute("drop table crawl")
        yield Log(connection, tally, _one(connection, "select count(*) from page"))


def save(log, folder):
    """Write an opened log to a folder, from which `saved` opens it again."""
    for table in ("page", "sorted"):
        log.connection.execute(
            f"copy {table} to {_quoted(f'{folder}/{table}.parquet')}"
        )


@contextlib.contextmanager
def saved(folder, *, memory="1GiB"):
    """The log that `save` wrote, in a single thread; its tally is that of its batches alone."""
    with _database(memory) as (connection, _):
        connection.execute("set threads = 1")
        for table in ("page", "sorted"):
            connection.execute(
                f"create view {table} as from read_parquet({_pattern(f'{folder}/{table}.parquet')})"
            )
        yield Log(connection, Tally(), _one(connection, "select count(*) from page"))


@contextlib.contextmanager
def _database(memory):
    with (
        tempfile.TemporaryDirectory(prefix="paperlib-") as folder,
        duckdb.connect() as connection,
    ):
        try:
            connection.execute(f"set memory_limit = {_quoted(memory)}")
        except duckdb.Error as error:
            raise ValueError(
                f"memory must be a size such as '1GiB', got {memory!r}: {_first_line(error)}"
            ) from None
        connection.execute(
            f"set temp_directory = {_quoted(f'{folder}/spilled')}; set TimeZone = 'UTC'"
        )
        with contextlib.suppress(duckdb.Error):  # as some notebooks answer
            connection.execute(
                "set enable_progress_bar = true; set enable_progress_bar_print = false"
            )
        try:
            yield connection, Path(folder)
        except duckdb.OutOfMemoryException as error:
            raise ValueError(
                f"memory must be enough to sort the log, got {memory!r}: {_first_line(error)}"
            ) from None
        except duckdb.IOException as error:
            raise OSError(
                errno.ENOSPC if "No space" in str(error) else errno.EIO,
                _first_line(error),
                folder,
            ) from None


def _run(connection, query, what):
    """Execute a query under a progress bar, if it takes more than two seconds."""
    bar = tqdm(
        total=100,
        desc=what,
        bar_format="{desc} |{bar:20}| {n:.0f}% {elapsed}",
        delay=2,
        disable=None,
        leave=False,
    )
    with bar, ThreadPoolExecutor(1) as thread:
        running = thread.submit(connection.execute, query)
        try:
            while not wait([running], 0.1).done:
                bar.update(max(connection.query_progress() - bar.n, 0.0))
        except BaseException:
            connection.interrupt()
            raise
        running.result()


def _read(connection, number, file, folder, share):
    """Insert one file's rows, those of a share; what its CSV reader could not make rows of, as (reason, number, [(line, text), ...])."""
    try:
        lost = _insert(connection, number, file, share)
    except (duckdb.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "No space" in str(error):
            raise
        if file.suffix != ".gz" or "GZIP" not in str(error):
            raise ValueError(f"{file} cannot be read: {_first_line(error)}") from None
        whole = folder / file.name.removesuffix(".gz")
        _rescue(file, whole)
        lost = [
            *_read(connection, number, whole, folder, share),
            ("lost with the end of a truncated file, at least", 1, [(0, file.name)]),
        ]
        whole.unlink()
    return lost


def _rescue(file, whole):
    """Write what a truncated gzip still gives, up to its last line break."""
    with (
        gzip.open(file) as source,
        open(whole, "wb") as target,
        contextlib.suppress(EOFError, zlib.error, gzip.BadGzipFile),
    ):
        rest = b""
        while block := source.read1(1 << 20):
            lines, line_break, rest = (rest + block).rpartition(b"\n")
            target.write(lines + line_break)


def files_of(path):
    """The files of a log, in their order; raises FileNotFoundError or ValueError where there are none, or others."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    found = (
        sorted(p for p in path.rglob("*") if p.name.endswith(SUFFIXES))
        if path.is_dir()
        else [path]
    )
    if not found:
        raise ValueError(
            f"{path} must hold files that end in {', '.join(SUFFIXES)}, got none"
        )
    for file in found:
        if not file.name.endswith(SUFFIXES):
            raise ValueError(f"{file} must end in one of {', '.join(SUFFIXES)}")
        if not file.stat().st_size:
            raise ValueError(f"{file} must not be empty")
    return found


def _insert(connection, number, file, share):
    """Read a file and check every value, or say why the row is left out; what is no row at all as in `_read`."""
    if file.suffix == ".parquet":
        source = f"read_parquet({_pattern(file)}, file_row_number = true)"
        described = connection.sql(f"describe select * from {source}").fetchall()
        types = {
            name: (kind, '"' + name.replace('"', '""') + '"')
            for name, kind, *_ in described
            if name != "file_row_number"
        }
        _run(connection, _checked(file, types, source, number, share), file.name)
        return []
    # the header is ours to read: a guess at the dialect from what the rows look like goes wrong with rows that are bad
    with (gzip.open if file.suffix == ".gz" else open)(
        file, "rt", encoding="utf-8-sig", errors="replace", newline=""
    ) as lines:
        line = lines.readline()
    delimiter = max(",;\t", key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    types = {name: ("VARCHAR", f"c{k}") for k, name in enumerate(names)}
    options = f"auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', escape = '\"', store_rejects = true"
    columns = ", ".join(f"c{k}: 'varchar'" for k in range(len(names)))
    for strict in (
        True,
        False,
    ):  # the strict parser knows too long rows, but cannot do with line breaks of two kinds
        source = f"read_csv({_pattern(file)}, {options}, columns = {{{columns}}}, strict_mode = {strict})"
        source = (
            f"(select *, row_number() over () - 1 as file_row_number from {source})"
        )
        try:
            _run(connection, _checked(file, types, source, number, share), file.name)
            break
        except duckdb.InvalidInputException as error:
            if not strict or "invalid state" not in str(error):
                raise
    rows = connection.execute(
        "select line, any_value(error_message) from reject_errors group by line order by line"
    ).fetchall()
    for table in ("reject_errors", "reject_scans"):
        connection.execute(f"drop table {table}")
    return (
        [
            (
                "that do not fit the columns",
                len(rows),
                [(n, f"{file.name} line {n}: {message}") for n, message in rows[:3]],
            )
        ]
        if rows
        else []
    )


def _checked(file, types, source, number, share):
    """The statement that inserts what `source` reads; types : type and SQL of each column by name."""
    types = {name.strip().lower(): column for name, column in types.items()}
    missing = [name for name in REQUIRED if name not in types]
    if missing:
        near = [
            name
            for wanted in missing
            for name in difflib.get_close_matches(
                wanted, types.keys() - set(REQUIRED), n=2, cutoff=0.4
            )
        ]
        hint = f"; is it {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(
            f"{file} must have a column {' and '.join(map(repr, missing))}, got {', '.join(types) or 'none'}{hint}"
        )
    given = {name: types.get(name, ("", "null")) for name in REQUIRED + OPTIONAL}
    text = ", ".join(
        f"coalesce(trim(cast({column} as varchar)), '') as {name}_"
        for name, (_, column) in given.items()
    )
    if given["time"][0].startswith(("TIMESTAMP", "DATE")):
        text += f", epoch_us(cast({given['time'][1]} as timestamptz)) as t"
    else:  # ISO 8601, or a number of seconds, or milli-, micro- or nanoseconds by its size
        epoch = "try_cast(time_ as double)"
        scale = " ".join(
            f"when abs({epoch}) < 1e{size} then {unit}"
            for size, unit in ((11, 1e6), (14, 1e3), (17, 1.0), (308, 1e-3))
        )
        text += f", coalesce(try_cast(round({epoch} * case {scale} end) as bigint), epoch_us(try_cast(time_ as timestamptz))) as t"
    if share is not None:
        source += f" where {_within('url_', share)}"
    bit = "lower(changed_)"
    return f"""
        insert into crawl by name select url_ as url, t, bit as changed, importance, status, {number} as file, case
                when url_ = '' then 'without a url'
                when not coalesce(t between {YEARS[0]} and {YEARS[1]}, false) then 'whose time cannot be read'
                when status is null and status_ <> '' then 'whose status is not a number'
                when status not between 200 and 299 and status <> 304 then '{FAILED}'
                when bit is null then 'whose changed is neither yes nor no'
                when importance_ <> '' and not coalesce(importance >= 0 and importance < 'inf', false)
                    then 'whose importance is not a number from 0'
            end as reason,
            case when reason is not null then concat_ws(',', url_, time_, changed_, importance_, status_) end as given,
            nullif(host_, '') as host, file_row_number + 1 as row
        from (
            select *, try_cast(importance_ as double) as importance, try_cast(status_ as integer) as status, case
                    when {bit} in ('1', '1.0', 'true', 't', 'yes', 'y', 'changed') then true
                    when {bit} in ('0', '0.0', 'false', 'f', 'no', 'n', 'unchanged') then false
                end as bit
            from (select {text}, file_row_number from {source})
        )"""


def _one(connection, query):
    return connection.sql(query).fetchall()[0][0]


def _quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def _pattern(file):
    """A path for the readers of DuckDB, which look for the files that match a pattern."""
    return _quoted(re.sub(r"[*?\[]", r"[\g<0>]", str(file)))


def _within(url, share):
    """SQL that is true where a URL is in a share (k, n): the k-th of n ranges of the hash, by which pages are ordered."""
    low, high = ((share[0] + k) * 2**64 // share[1] for k in (0, 1))
    return f"hash({url}) between {low}::ubigint and {high - 1}::ubigint"


def _pages(connection, state, share):
    """The table of pages, numbered in an order that has nothing to do with them; `before` is the work of all pages before."""
    columns = ", ".join(f"{name} {kind}" for name, kind in STATE.items())
    connection.execute(f"create table state ({columns})")
    if state is not None:
        try:
            within = "" if share is None else f"where {_within('url', share)}"
            connection.execute(
                f"insert into state select {', '.join(STATE)} from read_parquet({_pattern(state)}) {within}"
            )
        except duckdb.Error as error:
            raise ValueError(
                f"state must be a file that estimate wrote, got {state}: {_first_line(error)}"
            ) from None
        connection.execute(
            f"""update crawl set reason = '{KNOWN}' from state
            where crawl.url = state.url and (reason is null or reason = '{FAILED}') and t <= epoch_us(last_row)"""
        )
    # the last row of a page, of those at one time the most important; keys of fixed size, for others stay in memory
    gone, last = (
        "coalesce(status in (404, 410), false)",
        "t::hugeint * 1000000000000000000 + least(importance * 1e6, 1e17)::hugeint",
    )
    query = f"""create table page as
        select row_number() over (order by hash(url), url) - 1 as i, url,
            coalesce(new.host, state.host, regexp_extract(url, {HOST}, 1)) as host,
            coalesce(new.importance, state.importance, 1.0) as importance,
            coalesce(state.first_crawl, make_timestamptz(first)) as first_crawl,
            coalesce(make_timestamptz(last), state.last_crawl) as last_crawl, state.last_crawl as known_crawl,
            coalesce(make_timestamptz(new.last_row), state.last_row) as last_row, coalesce(new.gone, state.gone, false) as gone,
            coalesce(new.n_failed, 0) + coalesce(state.n_failed, 0) as n_failed,
            coalesce(state.interval, []) as interval, coalesce(state.bits, []) as bits, coalesce(state.n, []) as n,
            coalesce(state.lag, 0) as lag, coalesce(state.lag_squares, 0) as lag_squares,
            (sum(1 + coalesce(n_rows, 0) + coalesce(list_sum(state.n), 0)) over (order by hash(url), url))::bigint as before
        from (
            select url, max(host) as host, arg_max(importance, {last}) as importance, min(t) filter (reason is null) as first,
                max(t) filter (reason is null) as last, max(t) as last_row, max(2 * t + {gone}::int) % 2 = 1 as gone,
                count(*) filter (reason is null) as n_rows, count(*) - n_rows as n_failed
            from crawl where reason is null or reason = '{FAILED}' group by url
        ) as new full join state using (url)"""
    _run(connection, query, "grouping")


def _first_line(error):
    return str(error).strip().splitlines()[0]


@dataclass(frozen=True, eq=False)
class CrawlLog:
    """What a crawler knows about its pages. The arrays are read-only views of what was passed in.

    Parameters
    ----------
    url : array, shape (n_pages,)
        Address or identifier of each page.
    history : History of shape (n_pages,)
        Intervals in days.
    importance : array of float, shape (n_pages,)
        Non-negative, any unit.
    host : array, shape (n_pages,)
        Name or identifier of each page's host.
    constrained : array of bool, shape (n_pages,), optional
        True where the host limits how often it is crawled.
    known_rate : array of float, shape (n_pages,), optional
        Change rate known from elsewhere, 1/day; NaN where it is not.

    Raises
    ------
    ValueError
        Arrays that are not flat and as long as the history has pages; importance or known rate negative or infinite; bits that are not 0/1.
    """

    url: np.ndarray
    history: History
    importance: np.ndarray
    host: np.ndarray
    constrained: np.ndarray | None = None
    known_rate: np.ndarray | None = None

    def __post_init__(self):
        columns = {"url": np.asarray(self.url), "host": np.asarray(self.host)}
        columns["importance"] = checks.non_negative("importance", self.importance)
        if self.constrained is not None:
            columns["constrained"] = checks.bits("constrained", self.constrained)
        if self.known_rate is not None:
            rate = columns["known_rate"] = np.asarray(self.known_rate, dtype=float)
            good = np.isnan(rate) | ((rate >= 0) & (rate < np.inf))
            checks.require("known_rate", rate, "non-negative and finite, or NaN", good)
        for name, column in columns.items():
            if column.shape != self.history.shape:
                raise ValueError(
                    f"{name} must have one entry per page of history, shape {self.history.shape}, got {column.shape}"
                )
            column = column.view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)


def read_crawl_log(path, *, memory="1GiB"):
    """A crawl log in memory, as a `CrawlLog` whose pages are in no particular order: for all estimators of a `History`.

    path, memory : as in `crawl_log.estimate`, which needs no more memory for a longer log. Warns and raises as it does; importance is 1
    where the log has none.
    """
    with opened(path, memory=memory) as log:
        batch = log.sample(log.n_pages)
    url, importance, host = (
        batch.page[name].to_numpy() for name in ("url", "importance", "host")
    )
    return CrawlLog(url, batch.history, importance, host)
