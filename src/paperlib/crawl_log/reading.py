"""Logs of any size, checked, sorted and grouped by DuckDB in bounded memory.

A log is read once, into a database of its own: `opened` inserts the rows of
each file, gives each bad row the reason why it is left out, numbers the pages
in random order and sorts the crawls by page and time. What comes out are
batches of whole pages, each a `History`. The steps are SQL, one file a step,
in the folder ``sql`` beside this module.
"""

import contextlib
import itertools
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from paperlib.crawl_log.database import database, first_line, pattern, quoted, run, sql
from paperlib.crawl_log.formats import files_of, insert
from paperlib.crawl_log.pages import CrawlLog
from paperlib.crawl_log.progress import bar
from paperlib.crawl_log.state import expand
from paperlib.crawl_log.tally import FAILED, KNOWN, TORN, USED, Tally
from paperlib.processes import History, join

__all__ = ["Batch", "OpenedLog", "opened", "part", "read_crawl_log", "save", "saved"]

ROWS_PER_BATCH = 1_000_000  # with those that the state stands for; some 200 MB
_DAY = 86_400_000_000  # microseconds
_NEVER = np.iinfo(np.int64).min  # before all times of a log
_TABLES = ("page", "sorted")  # what is left of a log when it has been read


@dataclass(frozen=True)
class Batch:
    """Some pages with all of their crawls, in random order.

    Parameters
    ----------
    page : pyarrow.Table
        One row for each page: url, host, importance, first_crawl, last_crawl,
        gone, n_failed, and what the state holds.
    history : History, shape (n_pages,)
        The crawls of this log; intervals in days.
    time : ndarray of int64, shape (n_intervals,)
        When each interval ended, microseconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,0,no\\na,86400,yes\\n")
    ...     with opened(path) as log:
    ...         batch = log.sample(1)
    >>> batch.page["url"].to_pylist(), batch.history.interval, batch.time
    (['a'], array([1.]), array([86400000000]))
    """

    page: pa.Table
    history: History
    time: np.ndarray

    @property
    def all_crawls(self):
        """History of these pages with the crawls that the state holds."""
        return join(expand(self.page), self.history)


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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,0,no\\na,86400,yes\\n")
    ...     with opened(path) as log:
    ...         sizes = [batch.history.shape for batch in log.batches()]
    >>> sizes, dict(log.tally.counts)
    ([(1,)], {'rows': 2, 'repeated': 0})
    """

    connection: duckdb.DuckDBPyConnection
    tally: Tally
    n_pages: int

    def batches(self):
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

    def map(self, function):
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

    def sample(self, n_pages):
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

    def time_at(self, share):
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

    def _batch(self, start, end):
        """Pages from `start` to before `end`, and the tally of merged rows."""
        within = f"where i >= {start} and i < {end} order by i"
        table = f"select i, t, changed from sorted {within}, t"
        page, time, changed = self.connection.execute(table).fetchnumpy().values()
        table = f"select * exclude (i, before) from page {within}"
        pages = self.connection.sql(table).to_arrow_table()
        starts, changed, torn = _merged(page, time, changed)
        tally = _tally(pages["url"], page - start, time, starts, torn)
        page, time = page[starts], time[starts]
        offsets = np.searchsorted(page, np.arange(start, end + 1))
        known = pages["known_crawl"].cast(pa.int64()).fill_null(_NEVER)
        history, time = _intervals(time, changed, offsets, known.to_numpy())
        return Batch(pages, history, time), tally


def _merged(page, time, changed):
    """Merge the rows of one page at one time, which are neighbours.

    Returns where they start, whether one of them found a change, and which of
    the starts are of rows that disagree.
    """
    same_page, same_time = np.diff(page, prepend=-1) == 0, np.diff(time, prepend=0) == 0
    starts = np.flatnonzero(~(same_page & same_time))
    n_changed = np.add.reduceat(np.append(changed, 0), starts)
    n_rows = np.diff(np.append(starts, page.size))
    return starts, n_changed > 0, starts[(n_changed > 0) & (n_changed < n_rows)]


def _tally(url, page, time, starts, torn):
    """Count the rows that were merged, and show where they disagree."""
    tally = Tally()
    tally.add("repeated", page.size - starts.size - torn.size)
    if torn.size:
        where = zip(url.take(page[torn]).to_pylist(), time[torn].tolist(), strict=True)
        places = [(name, t, f"{name} at {np.datetime64(t, 'us')}") for name, t in where]
        tally.add(TORN, torn.size, places)
    return tally


def _intervals(time, changed, offsets, known):
    """History of the crawls of each page, and the time of each interval's end.

    The first crawl of a page follows the last one that the state knows; if the
    state knows none, it starts the first interval and has none itself.
    """
    previous = np.roll(time, 1)
    crawled = offsets[:-1] < offsets[1:]
    previous[offsets[:-1][crawled]] = known[crawled]
    kept = previous > _NEVER
    interval = (time[kept] - previous[kept]) / _DAY
    offsets = np.append(0, np.cumsum(kept))[offsets]
    return History(interval, changed[kept], offsets), time[kept]


@contextlib.contextmanager
def opened(path, *, state=None, memory="1GiB"):
    """Read a log into a database, which is deleted when the context ends.

    Parameters
    ----------
    path : path
        A CSV or TSV (also gzipped) or Parquet file, or a folder of them.
    state : path, optional
        A Parquet file that `crawl_log.estimate` wrote.
    memory : str
        Memory that the database may use, such as "1GiB"; larger logs are
        sorted on disk, in the system's folder for temporary files.

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
    ...     _ = path.write_text("url,time,changed\\na,0,no\\na,86400,yes\\n")
    ...     with opened(path) as log:
    ...         dict(log.tally.counts), log.n_pages
    ({'rows': 2}, 1)
    """
    with part(path, state=state, memory=memory) as log:
        log.tally.report(path)
        yield log
        log.tally.report(path)


@contextlib.contextmanager
def part(path, share=None, *, state=None, memory="1GiB"):
    """Read a share of a log as `opened` does, but without a warning.

    Shares are ranges of the order of pages, so that one after the other they
    are the whole log. Rows without a URL are in one of the shares; lines that
    do not parse into a row are counted by the first.

    Parameters
    ----------
    path : path
        As in `opened`.
    share : tuple of int, optional
        ``(k, n)`` reads the k-th of n shares, k from 0, in a single thread;
        by default all pages are read.
    state : path, optional
        As in `opened`.
    memory : str
        As in `opened`.

    Yields
    ------
    OpenedLog
        Of the pages of this share.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,0,no\\nb,86400,yes\\n")
    ...     sizes = []
    ...     for k in range(2):
    ...         with part(path, (k, 2)) as log:
    ...             sizes.append(log.n_pages)
    >>> sum(sizes)
    2
    """
    files, tally = files_of(path), Tally()
    with database(memory) as (connection, folder):
        connection.execute(sql("tables"))
        if share is not None:
            connection.execute("set threads = 1")
            _restrict(connection, *share)
        first = share is None or share[0] == 0
        lines = tally if first else Tally()
        for number, file in enumerate(bar(files, unit=" files")):
            insert(connection, number, file, folder, lines)
        if state is not None:
            _read_state(connection, state)
        run(connection, sql("pages"), "grouping", failed=FAILED)
        _count_rows(connection, files, tally)
        run(connection, sql("sort_crawls"), "sorting")
        connection.execute("drop table crawl")
        yield _log(connection, tally)


def _restrict(connection, k, n):
    """Keep the pages of the k-th of n ranges of the hash that orders them."""
    low, high = (part * 2**64 // n for part in (k, k + 1))
    connection.execute(
        "create or replace macro in_share(url) as "
        f"hash(url) between {low}::ubigint and {high - 1}::ubigint"
    )


def _read_state(connection, state):
    """Read what earlier logs left, and leave out the rows that it knows."""
    try:
        connection.execute(sql("read_state"), {"state": pattern(state)})
    except duckdb.Error as error:
        raise ValueError(
            f"state must be a file that estimate wrote, got {state}: "
            f"{first_line(error)}"
        ) from None
    parameters = {"known": KNOWN, "failed": FAILED}
    connection.execute(sql("leave_out_known"), parameters)


def _count_rows(connection, files, tally):
    """Count the rows by the reason why they are left out."""
    parameters = {"used": USED, "failed": FAILED}
    for reason, n, places in connection.execute(
        sql("count_rows"), parameters
    ).fetchall():
        named = [
            (number, row, f"{files[number].name} row {row}: {given}")
            for number, row, given in places or ()
        ]
        tally.add(reason, n, named)


def _log(connection, tally):
    (n_pages,) = connection.execute("select count(*) from page").fetchone()
    return OpenedLog(connection, tally, n_pages)


def save(log, folder):
    """Write an opened log to files, from which `saved` opens it again.

    Parameters
    ----------
    log : OpenedLog
        The log.
    folder : path
        An existing folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,0,no\\na,86400,yes\\n")
    ...     with opened(path) as log:
    ...         save(log, folder)
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['log.csv', 'page.parquet', 'sorted.parquet']
    """
    for table in _TABLES:
        file = quoted(f"{folder}/{table}.parquet")
        log.connection.execute(f"copy {table} to {file}")


@contextlib.contextmanager
def saved(folders, *, memory="1GiB"):
    """Open logs that `save` wrote as one, in a single thread.

    Parameters
    ----------
    folders : dict of int
        Number of pages by folder, in the order of pages.
    memory : str
        As in `opened`.

    Yields
    ------
    OpenedLog
        Whose tally is that of its batches alone.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed\\na,0,no\\na,86400,yes\\n")
    ...     with opened(path) as log:
    ...         save(log, folder)
    ...     with saved({folder: 1}) as log:
    ...         log.sample(1).page["url"].to_pylist()
    ['a']
    """
    sizes = folders.values()
    starts = dict(zip(folders, itertools.accumulate(sizes, initial=0), strict=False))
    with database(memory) as (connection, _):
        connection.execute("set threads = 1")
        for table in _TABLES:
            parts = " union all ".join(
                f"select * replace (i + {start} as i) "
                f"from {quoted(f'{pattern(folder)}/{table}.parquet')}"
                for folder, start in starts.items()
            )
            connection.execute(f"create view {table} as {parts}")
        yield _log(connection, Tally())


def read_crawl_log(path, *, memory="1GiB"):
    """Read a crawl log into memory, for all estimators of a `History`.

    `crawl_log.estimate` needs no more memory for a longer log; this does.

    Parameters
    ----------
    path : path
        A log with the columns that `crawl_log.estimate` documents.
    memory : str
        Memory that the database may use to sort.

    Returns
    -------
    CrawlLog
        Pages in random order; importance is 1 where the log has none.

    Raises
    ------
    FileNotFoundError, ValueError, OSError
        As `crawl_log.estimate`.

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
    ...     _ = path.write_text("url,time,changed\\na,0,no\\na,86400,yes\\n")
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
