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
from recrawl.log.history import History
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
    "read_state",
]

ROWS_PER_BATCH = 1_000_000  # with those that the state stands for; some 200 MB
_DAY = 86_400_000_000  # microseconds
_NEVER = np.iinfo(np.int64).min  # before all times of a log
_LITTLE = 0.1  # of an interval: whose bit is taken for that of the rest
_ALL_ROWS = 0, 2**63 - 1
# Tables that a log may be read into beside ``crawl``; what the step from each is given.
_STEPS = {
    "fetches": {"unsigned": UNSIGNED, "dated_now": DATED_NOW},
    "page_state": {},
    "change": {},
}
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
        return kept(known, np.isnan(known.all_ages)).join(self.bits)

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
        rows = self.connection.execute(f"select * from sorted {within}").fetchnumpy()
        without = "i, before, in_log, in_state"
        query = f"select * exclude ({without}) from page {within} order by i"
        pages = self.connection.sql(query).to_arrow_table()
        starts, changed, torn = _merged(rows["i"], rows["t"], rows["changed"])
        tally = _tally_of(TORN, pages["url"], rows["i"][torn] - first, rows["t"][torn])
        tally.add("repeated", rows["i"].size - starts.size - torn.size)
        modified = np.append(np.ma.filled(rows["last_modified"], _NEVER), _NEVER)
        page = rows["i"][starts]
        crawls = _Crawls(
            page=page,
            offsets=np.searchsorted(page, np.arange(first, end + 1)),
            time=rows["t"][starts],
            changed=changed,
            start=np.ma.filled(rows["start"], _NEVER)[starts],
            modified=np.maximum.reduceat(modified, starts),
        )
        last_start, last_change, lost = _follow(crawls, pages)
        pages = pages.append_column("last_start", pa.array(last_start))
        pages = pages.append_column("last_change", pa.array(last_change))
        places = page[lost] - first, crawls.time[lost]
        tally.update(_tally_of(OVERLAP, pages["url"], *places))
        used = (crawls.begin > _NEVER) & (crawls.begin < crawls.time)
        n_signals = None
        if "n_signals" in rows:
            n_signals = rows["n_signals"][starts][used]
        history = _history(crawls, used)
        found = history, crawls.time[used], crawls.crawled[used], n_signals
        return Batch(pages, *found), tally


@dataclass
class _Crawls:
    """Crawls of some pages, by page and time; times are `_NEVER` where unknown.

    Page and time of each crawl; whether it found a change; when its interval started
    (`start` of the log) and began (`begin`), and whether a crawl began it; when the
    page had changed last. The crawls of page k are those from offsets[k] on.
    """

    page: np.ndarray
    offsets: np.ndarray
    time: np.ndarray
    changed: np.ndarray
    start: np.ndarray
    modified: np.ndarray
    begin: np.ndarray | None = None
    crawled: np.ndarray | None = None


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


def _follow(crawls, pages):
    """Find when the interval of each crawl began, and cut those that overlap.

    The first crawl of a page follows the last one that the state knows. If the
    state knows none, it begins the first interval and has none itself, unless
    it tells when the page last changed.

    Returns the begin of the last interval of each page and its bit, which the state
    keeps, and the crawls whose interval is left out.
    """
    last_start = pages["known_start"].to_numpy().copy()
    last_change = pages["known_change"].to_numpy().copy()
    present = crawls.offsets[:-1] < crawls.offsets[1:]
    firsts = crawls.offsets[:-1][present]
    lasts = crawls.offsets[1:][present] - 1
    start, changed, modified = crawls.start, crawls.changed, crawls.modified
    previous = np.roll(crawls.time, 1)
    previous[firsts] = pages["known_crawl"].to_numpy()[present]
    crawls.crawled = (start == _NEVER) & (previous > _NEVER)
    new = firsts[(previous[firsts] == _NEVER) & (modified[firsts] > _NEVER)]
    changed[new] = True
    start[new] = modified[new]
    begin = np.where(start > _NEVER, start, previous)
    # of the row before
    begin_before = np.roll(begin, 1)
    begin_before[firsts] = last_start[present]
    changed_before = np.roll(changed, 1)
    changed_before[firsts] = last_change[present]
    last_start[present] = begin[lasts]
    last_change[present] = changed[lasts]
    lost = _cut_at_rows_before(crawls, previous, begin_before, changed_before)
    crawls.begin = np.where(start > _NEVER, start, previous)
    return last_start, last_change, lost


def _cut_at_rows_before(crawls, previous, begin_before, changed_before):
    """Keep only the new part of an interval that overlaps the page's previous row.

    A sitemap that is downloaded every day thus tells of each change once. Of the
    previous row, the time, the begin of the interval and the bit are given. The crawls
    are written in place. Returned are those of which nothing is left, except those
    that repeat the row before.
    """
    start, modified = crawls.start, crawls.modified
    cut = (start > _NEVER) & (start < previous)
    later = cut & (start > begin_before)  # else it covers all of the row before
    little = later & (previous - start < _LITTLE * (crawls.time - start))
    undated = cut & ~little & (modified == _NEVER)  # a change may be known, or new
    # without the changed rows alone, the others would make the rate too low
    left_out = undated & (crawls.changed | later)
    again = (start == begin_before) & changed_before
    start[cut] = previous[cut]
    start[left_out] = crawls.time[left_out]
    known = cut & (modified > _NEVER) & (modified <= previous)
    crawls.changed[known] = False
    modified[known] = _NEVER
    return np.flatnonzero(left_out & ~again)


def _history(crawls, used):
    """History of the crawls that are used, with the ages of the changes found."""
    begin, time = crawls.begin[used], crawls.time[used]
    changed, modified = crawls.changed[used], crawls.modified[used]
    offsets = np.append(0, np.cumsum(used))[crawls.offsets]
    # within the interval of a crawl that found a change, or else contradictory
    dated = changed & (modified >= begin) & (modified <= time)
    age = None
    if dated.any():
        age = np.where(dated, (time - modified) / _DAY, np.nan)
    return History((time - begin) / _DAY, changed, offsets, age=age)


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
    """Say where files in order of time go back, as of a clock that was set back."""
    found = connection.execute(sql("find_steps_back")).fetchall()
    for number, row, step, n, n_late in found:
        warn(
            f"{files[number]} is in order of time, but goes back {counted(n, 'time')}, "
            f"by {as_text(step / _DAY)} at row {row:,}: {counted(n_late, 'row')} from "
            "there on are earlier than the row before. The clock of the crawler may "
            "have been set back; they are used as they are",
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
    for table in ("fetches", "page_state"):
        _leave_out_known(connection, table)
    connection.execute(sql("find_suspects"))
    for table, reasons in _STEPS.items():
        if _filled_table(connection, table):
            run(connection, sql(f"derive_{table}"), "comparing", **reasons)
        connection.execute(f"drop table {table}")
    _leave_out_known(connection, "crawl")


def _leave_out_known(connection, table):
    """Leave out what the state of earlier logs knows."""
    query = sql("leave_out_known").format(table=table)
    connection.execute(query, {"known": KNOWN, "failed": FAILED})


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
