"""Logs of any size, checked, sorted and grouped by DuckDB in bounded memory.

A log is read once, into a database of its own: `opened` inserts the rows of
each file, gives each bad row the reason why it is left out, numbers the pages
in random order and sorts the crawls by page and time. What comes out are
batches of whole pages, each a `History`. The steps are SQL, one file a step,
in the folder ``sql`` beside this module.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from paperlib.errors import ArgumentError
from recrawl.log.database import MEMORY, database, pattern, run, sql
from recrawl.log.formats.inserting import insert
from recrawl.log.formats.source import Source
from recrawl.log.history import CrawlLog, History
from recrawl.log.output import check_pages, sound
from recrawl.log.signals import attach
from recrawl.log.state import expand, kept
from recrawl.log.tally import (
    DATED_NOW,
    FAILED,
    KNOWN,
    OVERLAP,
    TORN,
    UNSIGNED,
    USED,
    BadRowsWarning,
    Tally,
    warn,
)
from recrawl.progress import bar
from recrawl.types import PathLike
from recrawl.units import as_text, counted

__all__ = [
    "Batch",
    "OpenedLog",
    "collect",
    "gathered",
    "grouped",
    "inputs",
    "not_read",
    "opened",
    "read_crawl_log",
    "read_state",
]

ROWS_PER_BATCH = 1_000_000  # with those that the state stands for; some 200 MB
_DAY = 86_400_000_000  # microseconds
_NEVER = np.iinfo(np.int64).min  # before all times of a log
_LITTLE = 0.1  # of an interval: whose bit is taken for that of the rest
_LAST = "last_start", "last_change"  # of each page's last row, for the state
_ALL_ROWS = 0, 2**63 - 1
# Tables that a log may be read into beside ``crawl``, and the step from each.
_STEPS = {"fetches": "fetches", "page_state": "states", "change": "changes"}
# Bits of a table that cannot be read are reported; if they are more than a few, and
# than this share, the column is a different one than it seems.
_FEW, _SHARE = 10, 0.05
_VALUES = 5  # that are shown of them


@dataclass(frozen=True)
class Batch:
    """Some pages with all of their crawls, in random order.

    Parameters
    ----------
    page : pyarrow.Table
        One row for each page: url, host, importance, first_crawl, last_crawl,
        gone, n_failed, n_incomparable, and what the state holds.
    history : History, shape (n_pages,)
        The crawls of this log; intervals in days.
    time : ndarray of int64, shape (n_intervals,)
        When each interval ended, microseconds since 1970.
    crawled : ndarray of bool, shape (n_intervals,)
        True where a crawl of the log, or of the state, began the interval: the
        bits of the others were not asked for.
    n_signals : ndarray of int, shape (n_intervals,), optional
        Signals of changes in each interval, if there is a file of them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,2026-01-01,0\\na,2026-01-02,1\\n")
    ...     with opened(path) as log:
    ...         batch = log.sample(1)
    >>> batch.page["url"].to_pylist(), batch.history.interval, batch.time
    (['a'], array([1.]), array([1767312000000000]))
    """

    page: pa.Table
    history: History
    time: np.ndarray
    crawled: np.ndarray
    n_signals: np.ndarray | None = None

    @property
    def bits(self) -> History:
        """History of the intervals between crawls, without ages."""
        return kept(self.history, self.crawled)

    @property
    def all_bits(self) -> History:
        """The same with the crawls that the state holds."""
        known = expand(self.page)
        if known.age is not None:
            known = kept(known, np.isnan(known.age))
        return known.join(self.bits)

    @property
    def all_crawls(self) -> History:
        """History of these pages with the crawls that the state holds."""
        return expand(self.page).join(self.history)


@dataclass(frozen=True)
class OpenedLog:
    """A log that has been read, as `opened` gives it.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The database, with the tables ``page`` and ``sorted``.
    tally : Tally
        Of its rows; complete after the last batch.
    n_pages : int
        Number of pages.
    what : str
        The format that its files were taken for.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,2026-01-01,0\\na,2026-01-02,1\\n")
    ...     with opened(path) as log:
    ...         sizes = [batch.history.shape for batch in log.batches()]
    >>> sizes, dict(log.tally.counts)
    ([(1,)], {'rows': 2, 'repeated': 0})
    """

    connection: duckdb.DuckDBPyConnection
    tally: Tally
    n_pages: int
    what: str

    def __str__(self):
        return "the log"  # in messages

    def batches(self) -> Iterator[Batch]:
        """Read all pages, in batches of about a million rows.

        Yields
        ------
        Batch
            Of at least one page.
        """
        ends = self.connection.execute(
            "select max(i) + 1 from page "
            f"group by before // {ROWS_PER_BATCH} order by all"
        ).fetchall()
        with bar(total=self.n_pages, unit=" URLs") as done:
            for (start,), (end,) in itertools.pairwise([(0,), *ends]):
                batch, tally = self._batch(start, end)
                self.tally.update(tally)
                yield batch
                done.update(end - start)

    def map(self, function: Callable[..., Any]) -> Any:
        """Apply a function to each batch.

        Parameters
        ----------
        function : callable
            Of one batch.

        Returns
        -------
        iterator
            Of the results, in the order of `batches`.
        """
        return map(function, self.batches())

    def sample(self, n_pages: int) -> Batch:
        """Read the first pages, which are a random sample, as one batch.

        Parameters
        ----------
        n_pages : int
            How many, or all if there are fewer.

        Returns
        -------
        Batch
        """
        return self._batch(0, min(n_pages, self.n_pages))[0]

    def time_at(self, share: float) -> int:
        """Find the time by which a share of the rows had been crawled.

        Parameters
        ----------
        share : float
            In [0, 1].

        Returns
        -------
        int
            Microseconds since 1970.
        """
        query = f"select quantile_disc(t, {share}) from sorted"
        return self.connection.execute(query).fetchone()[0]

    def _batch(self, first, end):
        """Pages from `first` to before `end`, and the tally of merged rows."""
        within = f"where i >= {first} and i < {end}"
        # in the order in which it was written, which the database keeps
        table = f"select * from sorted {within}"
        page, time, *columns = self.connection.execute(table).fetchnumpy().values()
        without = "i, before, in_log, in_state"
        table = f"select * exclude ({without}) from page {within} order by i"
        pages = self.connection.sql(table).to_arrow_table()
        changed, start, modified = columns[0], *map(_filled, columns[1:3])
        starts, changed, torn = _merged(page, time, changed)
        tally = _tally_of(TORN, pages["url"], page[torn] - first, time[torn])
        tally.add("repeated", page.size - starts.size - torn.size)
        modified = np.maximum.reduceat(np.append(modified, _NEVER), starts)
        n_signals = columns[3][starts] if len(columns) > 3 else None
        page, time, start = page[starts], time[starts], start[starts]
        offsets = np.searchsorted(page, np.arange(first, end + 1))
        crawls = time, changed, start, modified
        *intervals, used, lost, last = _intervals(*crawls, offsets, _known(pages))
        for name, values in zip(_LAST, last, strict=True):
            pages = pages.append_column(name, pa.array(values))
        tally.update(_tally_of(OVERLAP, pages["url"], page[lost] - first, time[lost]))
        n_signals = None if n_signals is None else n_signals[used]
        return Batch(pages, *intervals, n_signals), tally


def _known(pages):
    """Last crawl that the state knows of each page, its interval's begin and bit."""
    times = (pages[f"known_{name}"].cast(pa.int64()) for name in ("crawl", "start"))
    times = [time.fill_null(_NEVER).to_numpy() for time in times]
    return *times, pages["known_change"].to_numpy()


def _filled(times):
    """Times with the least integer where they are null."""
    return np.ma.filled(times, _NEVER) if np.ma.isMA(times) else times


def _merged(page, time, changed):
    """Merge the rows of one page at one time, which are neighbours.

    Returns where they start, whether one of them found a change, and which of
    the starts are of rows that disagree. A masked row is a copy of another one.
    """
    same_page, same_time = np.diff(page, prepend=-1) == 0, np.diff(time, prepend=0) == 0
    starts = np.flatnonzero(~(same_page & same_time))
    n_changed = np.add.reduceat(np.append(np.ma.filled(changed, False), 0), starts)
    n_rows = np.add.reduceat(np.append(~np.ma.getmaskarray(changed), 0), starts)
    return starts, n_changed > 0, starts[(n_changed > 0) & (n_changed < n_rows)]


def _tally_of(reason, url, page, time):
    """Count rows of some pages at some times, if there are any, and show them."""
    tally = Tally()
    if page.size:
        where = zip(url.take(page).to_pylist(), time.tolist(), strict=True)
        places = [(name, t, f"{name} at {np.datetime64(t, 'us')}") for name, t in where]
        tally.add(reason, page.size, places)
    return tally


def _intervals(time, changed, start, modified, offsets, known):
    """History, time of each interval's end, whether a crawl began it, and its row.

    Then the rows that are reported because their interval is left out, and when the
    interval of each page's last row began, and its bit.

    The first crawl of a page follows the last one that the state knows. If the
    state knows none, it begins the first interval and has none itself, unless
    it tells when the page last changed. Times are `_NEVER` where unknown.
    """
    previous = np.roll(time, 1)
    present = offsets[:-1] < offsets[1:]
    firsts = offsets[:-1][present]
    crawl, began, found = known
    previous[firsts] = crawl[present]
    crawled = (start == _NEVER) & (previous > _NEVER)
    new = firsts[(previous[firsts] == _NEVER) & (modified[firsts] > _NEVER)]
    changed[new], start[new] = True, modified[new]
    began_here = np.where(start > _NEVER, start, previous)
    before, found_before = np.roll(began_here, 1), np.roll(changed, 1)
    before[firsts], found_before[firsts] = began[present], found[present]
    lasts, last = offsets[1:][present] - 1, (began.copy(), found.copy())
    last[0][present], last[1][present] = began_here[lasts], changed[lasts]
    rows = previous, time, changed, start, modified
    lost = _cut_at_rows_before(*rows, before, found_before)
    previous = np.where(start > _NEVER, start, previous)
    used = (previous > _NEVER) & (previous < time)
    interval = (time[used] - previous[used]) / _DAY
    # within the interval of a crawl that found a change, or else contradictory
    dated = (changed & (modified >= previous) & (modified <= time))[used]
    age = np.where(dated, (time[used] - modified[used]) / _DAY, np.nan)
    offsets = np.append(0, np.cumsum(used))[offsets]
    given = {"age": age} if dated.any() else {}
    history = History(interval, changed[used], offsets, **given)
    return history, time[used], crawled[used], used, lost, last


def _cut_at_rows_before(previous, time, changed, start, modified, before, found_before):
    """Keep only the new part of an interval that overlaps the page's previous row.

    A sitemap that is downloaded every day thus tells of each change once. `before` and
    `found_before` are when the interval of that row began, and its bit. Arrays are
    written in place. Returned are the rows of which nothing is left, except those that
    repeat the row before.
    """
    cut = (start > _NEVER) & (start < previous)
    later = cut & (start > before)  # else it covers all that the row before covered
    little = later & (previous - start < _LITTLE * (time - start))
    undated = cut & ~little & (modified == _NEVER)  # a change may be known, or new
    # without the changed rows alone, the others would make the rate too low
    left_out = undated & (changed | later)
    again = (start == before) & found_before
    start[cut] = previous[cut]
    start[left_out] = time[left_out]
    known = cut & (modified > _NEVER) & (modified <= previous)
    changed[known], modified[known] = False, _NEVER
    return np.flatnonzero(left_out & ~again)


@contextlib.contextmanager
def opened(
    path: PathLike | Sequence[PathLike] | Source | OpenedLog,
    *,
    state: PathLike | None = None,
    signals: PathLike | None = None,
    memory: str = MEMORY,
) -> Iterator[OpenedLog]:
    """Read a log into a database, which is deleted when the context ends.

    Parameters
    ----------
    path : path, sequence of path, Source, or OpenedLog
        The log; one that is open already is read no second time, and its bad
        rows are not reported again.
    state : path, optional
        A Parquet file that `recrawl.estimate` wrote.
    signals : path, optional
        Signals of changes, as in `signals.attach`.
    memory : str, default "50%"
        Memory that the database may use, such as "1GiB", or a share of the
        machine's; larger logs are sorted on disk, in the system's folder for
        temporary files.

    Yields
    ------
    OpenedLog
        Whose pages and crawls can be read in batches.

    Raises
    ------
    FileNotFoundError
        No such log.
    ValueError
        A file of another kind, empty, truncated, or without a required column;
        not a single row that can be used; a `memory` that is no size, or not
        enough.
    OSError
        No space left for the database.

    Warns
    -----
    BadRowsWarning
        Rows were left out; failed fetches are only counted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,2026-01-01,0\\na,2026-01-02,1\\n")
    ...     with opened(path) as log:
    ...         dict(log.tally.counts), log.n_pages
    ({'rows': 2}, 1)
    """
    if isinstance(path, OpenedLog):
        # each reader counts the rows that are merged in its own batches
        tally = Tally()
        tally.update(path.tally)
        tally.places.clear()
        yield replace(path, tally=tally)
        return
    source = Source.of(path)
    with gathered(source, state=state, memory=memory) as read:
        log = grouped(*read)
        if signals is not None:
            attach(log.connection, signals, log.tally)
        log.tally.report(source, state=state)
        yield log
        log.tally.report(source, state=state)


def inputs(
    path: PathLike | Sequence[PathLike] | Source | OpenedLog,
) -> Iterator[Path]:
    """Files of a log, which no output may replace.

    Parameters
    ----------
    path : path, sequence of path, Source, or OpenedLog
        The log; none of one that is open.

    Yields
    ------
    pathlib.Path
        The next file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.csv").write_text("url,time,changed\\n")
    ...     [file.name for file in inputs(folder)]
    ['log.csv']
    """
    if not isinstance(path, OpenedLog):
        yield from (file for file, _ in Source.of(path).files()[0])


def grouped(connection: Any, tally: Any, what: Any) -> OpenedLog:
    """Number the pages of what `gathered` has read, and sort their crawls.

    Parameters
    ----------
    connection, tally, what
        As `gathered` yields them.

    Returns
    -------
    OpenedLog

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,2026-01-01,no\\n")
    ...     with gathered(path) as read:
    ...         grouped(*read).n_pages
    1
    """
    reasons = {"failed": FAILED, "incomparable": [UNSIGNED, DATED_NOW], "known": KNOWN}
    run(connection, sql("pages"), "grouping", **reasons)
    run(connection, sql("sort_crawls"), "sorting")
    connection.execute("drop table crawl")
    ((n_pages,),) = connection.execute("select count(*) from page").fetchall()
    return OpenedLog(connection, tally, n_pages, what)


@contextlib.contextmanager
def gathered(
    path: Any, *, state: Any = None, memory: str = MEMORY
) -> Iterator[tuple[Any, Tally, str]]:
    """Read a log, in any order, into the table ``crawl``.

    Parameters
    ----------
    path, state, memory
        As in `opened`.

    Yields
    ------
    connection : duckdb.DuckDBPyConnection
        The database.
    tally : Tally
        Of all rows.
    what : str
        The format that the files were taken for.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,2026-01-01,no\\n")
    ...     with gathered(path) as (connection, tally, what):
    ...         what, connection.sql("select url, changed from crawl").fetchall()
    ('a table in text', [('a', False)])
    """
    source = Source.of(path)
    found, unknown = source.files()
    tally = not_read(unknown)
    files = [file for file, _ in found]
    with database(memory, files) as (connection, folder):
        connection.execute(sql("tables"))
        for number, (file, format) in enumerate(bar(found, unit=" files")):
            insert(connection, number, file, format, source, folder, tally)
        _warn_of_steps_back(connection, files)
        if state is not None:
            read_state(connection, state)
        collect(connection, files, tally)
        yield connection, tally, found[0][1].what


def _warn_of_steps_back(connection, files):
    """Say where files in order of time go back, or begin too early, as of a clock."""
    for n, step in connection.execute(sql("find_first_rows")).fetchall():
        warn(
            f"{counted(n, 'row')} of the log: {as_text(step / _DAY)} before the rest, "
            "which is far shorter. If the clock of the crawler was wrong, rates are "
            "too low; the rows are used as they are",
            BadRowsWarning,
        )
    found = connection.execute(sql("find_steps_back")).fetchall()
    for number, row, step, n, n_late in found[:1]:
        more = f" and in {len(found) - 1:,} more files" if found[1:] else ""
        warn(
            f"{files[number]} is in order of time, but goes back {counted(n, 'time')}, "
            f"by up to {as_text(step / _DAY)}, first at row {row:,}{more}: "
            f"{counted(n_late, 'row')} are earlier than rows before. The clock of the "
            "crawler may have been set back; they are used as they are",
            BadRowsWarning,
        )


def not_read(unknown: list[Path]) -> Tally:
    """Count the files of a log that no format recognises.

    Parameters
    ----------
    unknown : list of pathlib.Path
        The files.

    Returns
    -------
    Tally

    Examples
    --------
    >>> from pathlib import Path
    >>> dict(not_read([Path("README")]).counts)
    {'files of a format that is not known': 1}
    """
    tally = Tally()
    for number, file in enumerate(unknown):
        tally.add("files of a format that is not known", 1, [(number, 0, file.name)])
    return tally


def collect(connection: Any, files: list[Path], tally: Tally) -> None:
    """Bring what was read into the table ``crawl``, and count its rows.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables of ``sql/tables.sql``, filled; rows that the table
        ``state`` knows are left out.
    files : list of pathlib.Path
        The files by their numbers.
    tally : Tally
        Gets the numbers of rows by the reason why they are left out.

    Raises
    ------
    ValueError
        A twentieth of the bits of a table cannot be read, or there is none.

    Examples
    --------
    >>> with database("200MiB") as (connection, _):
    ...     _ = connection.execute(sql("tables"))
    ...     _ = connection.execute("insert into crawl (url, t) values ('a', 0)")
    ...     tally = Tally()
    ...     collect(connection, [], tally)
    ...     dict(tally.counts)
    {'rows': 1}
    """
    _derive(connection)
    _count_rows(connection, files, tally)
    _check_bits(connection)


def _derive(connection):
    """Bring what was read into the table ``crawl``, without what a state knows."""
    parameters = {"known": KNOWN, "failed": FAILED}
    with_state = _filled_table(connection, "state")
    if with_state:
        _execute(connection, "leave_out_known", parameters)
    for table, step in _STEPS.items():
        if _filled_table(connection, table):
            reasons = {"unsigned": UNSIGNED, "dated_now": DATED_NOW}
            reasons = reasons if table == "fetches" else {}
            run(connection, sql(f"derive_{step}"), "comparing", **reasons)
            if table == "fetches":
                _execute(connection, "find_suspects")
        connection.execute(f"drop table {table}")
    if with_state:
        _execute(connection, "leave_out_known_crawls", parameters)


def _execute(connection, name, parameters=None):
    """Execute the statements of a file."""
    for statement in connection.extract_statements(sql(name)):
        connection.execute(statement, parameters)


def _filled_table(connection, table):
    """Whether a table has a row."""
    return bool(connection.execute(f"select 1 from {table} limit 1").fetchall())


def read_state(
    connection: Any, state: PathLike, rows: tuple[int, ...] = _ALL_ROWS
) -> None:
    """Read what earlier logs left into the table ``state``.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables of ``sql/tables.sql``.
    state : path
        A Parquet file that `recrawl.estimate` wrote.
    rows : tuple of int, optional
        Its first row to be read, from 0, and the row after the last.

    Raises
    ------
    ValueError
        The file is no state, or damaged.

    Examples
    --------
    >>> with database("200MiB") as (connection, folder):
    ...     state = folder / "state.parquet"
    ...     _ = connection.execute(sql("tables"))
    ...     _ = connection.execute(f"copy state to '{state}'")
    ...     read_state(connection, state)
    ...     connection.sql("select url from state").fetchall()
    []
    """
    first, end = rows
    parameters = {"state": pattern(state), "first": first, "end": end}
    with sound(state):
        try:
            connection.execute(sql("read_state"), parameters)
        except duckdb.BinderException:
            raise ArgumentError(
                "state",
                "must be a state that this version of estimate wrote, and not its "
                f"rates; got {state}, which lacks columns of a state",
            ) from None
    if rows == _ALL_ROWS:  # a part is read by a worker, and others read the rest
        check_pages(state)
    if damaged := connection.execute(sql("check_state")).fetchall():
        raise ArgumentError(
            "state",
            f"must be as estimate wrote it, got {state}, which is damaged: no page can "
            f"be as {damaged[0][0]!r} is there",
        )


def _count_rows(connection, files, tally):
    """Count the rows by the reason why they are left out."""
    parameters = {"used": USED, "failed": FAILED}
    for reason, status, n, places in connection.execute(
        sql("count_rows"), parameters
    ).fetchall():
        if reason == FAILED:
            tally.failed[status] += n
        named = [
            (number, row, f"{files[number].name} row {row}: {given}")
            for number, row, given in places or ()
        ]
        tally.add(reason, n, named)


def _check_bits(connection):
    """Raise an error if the bits of a table are something else, or none."""
    ((n, empty, refused),) = connection.execute(
        "select count(*), count(*) filter (refused = ''), "
        "count(*) filter (refused <> '') from crawl where used(reason)"
    ).fetchall()
    if refused > max(_FEW, _SHARE * (n - empty)):
        values = connection.execute(
            "select refused from crawl where used(reason) and refused <> '' "
            f"group by refused order by count(*) desc, refused limit {_VALUES}"
        ).fetchall()
        raise ValueError(
            "changed must be yes or no, 1 or 0, or the like, got "
            f"{', '.join(repr(value) for (value,) in values)} in {refused:,} of {n:,} "
            "rows; if these are counts or codes, write yes or no in their place, or "
            "name another column (--column changed=NAME)"
        )
    urls = "select count(distinct url) from crawl where used(reason)"
    if n and n == empty and n > connection.execute(urls).fetchall()[0][0]:
        raise ValueError(
            f"changed must be yes or no in some rows, got nothing in all {n:,}; name "
            "another column (--column changed=NAME), or leave it out if there are "
            "digests, ETags or dates to compare"
        )


def read_crawl_log(path: PathLike, *, memory: str = MEMORY) -> CrawlLog:
    """Read a crawl log into memory, for all estimators of a `History`.

    `recrawl.estimate` needs no more memory for a longer log; this does.

    Parameters
    ----------
    path : path
        A log with the columns that `recrawl.estimate` documents.
    memory : str, default "50%"
        Memory that the database may use to sort.

    Returns
    -------
    CrawlLog
        Pages in random order; importance is 1 where the log has none.

    Raises
    ------
    FileNotFoundError, ValueError, OSError
        As `recrawl.estimate`.

    Warns
    -----
    BadRowsWarning
        Rows were left out; failed fetches are only counted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,2026-01-01,0\\na,2026-01-02,1\\n")
    ...     log = read_crawl_log(path)
    >>> log.history.interval, log.history.changed
    (array([1.]), array([ True]))
    """
    with opened(path, memory=memory) as log:
        batch = log.sample(log.n_pages)
    url, importance, host = (
        batch.page[name].to_numpy() for name in ("url", "importance", "host")
    )
    return CrawlLog(url, batch.history, importance, host)
