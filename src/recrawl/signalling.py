"""Precision and recall of signals of changes beside a log, page by page.

A signal is a ping (IndexNow, WebSub), a new date in a sitemap, or an entry of a
feed. It says that a page may have changed: some changes send none, and some
signals come without a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from recrawl.database import first_line, run, sql
from recrawl.files import temporary_folder
from recrawl.formats.checking import mended
from recrawl.formats.tables import check, selected
from recrawl.science.signal_quality import fit
from recrawl.types import PathLike

if TYPE_CHECKING:
    from recrawl.science.processes import History
    from recrawl.tally import Tally

__all__ = ["Quality", "attach"]

# Precision and recall of a page count if both standard errors are at most this;
# else those of its host, or of the whole log, stand in.
_PRECISE = 0.1
_ENOUGH = 100  # signals, and changes, of a host


def attach(connection: Any, path: PathLike, tally: Tally) -> None:
    r"""Read signals, and write how many came before each crawl of a log.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        With the tables ``page`` and ``sorted``.
    path : path
        A CSV or Parquet file with the columns url and time; repeats of a page
        within a minute count once. Of a damaged gzip file the sound lines are
        used, as of a log.
    tally : Tally
        Gets the signals that cannot be read, or belong to no page of the log.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        A file without these columns.

    Examples
    --------
    >>> import tempfile
    >>> from recrawl import reading
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, pings = Path(folder, "log.csv"), Path(folder, "pings.csv")
    ...     _ = log.write_text("url,time,changed\na,2026-01-01,0\na,2026-01-03,1\n")
    ...     _ = pings.write_text("url,time\na,2026-01-02\n")
    ...     with reading.opened(log, signals=pings) as opened:  # calls this function
    ...         opened.sample(1).n_signals
    array([1], dtype=int32)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    with temporary_folder() as folder:
        whole = mended(path, folder, check(path, {}), 0, tally)
        _read(connection, whole, path)
    _count(connection, path.name, tally)
    for statement in connection.extract_statements(sql("count_signals")):
        connection.execute(statement)


def _read(connection, file, given):
    """Read a file into the table ``signal``; errors name the file as given."""
    try:
        query = selected(connection, file, ("url", "time"))
        connection.execute(f"create or replace temp view signals_text as {query}")
        run(connection, sql("read_signals"), "signals")
    except duckdb.InvalidInputException as error:
        raise ValueError(
            f"signals cannot be read, {given}: {first_line(error)}"
        ) from None


def _count(connection, name, tally):
    """Count the signals that are not used."""
    rows = connection.execute(
        "select coalesce(reason, 'of pages that the log does not have') as why, "
        "count(*), min((row, coalesce(signal.url, '')), 3) "
        "from signal left join page using (url) "
        "where reason is not null or page.url is null group by why"
    ).fetchall()
    for why, n, places in rows:
        where = [(0, row, f"{name} row {row}: {url}") for row, url in places]
        tally.add(f"signals {why}", n, where)


class Quality:
    """Precision and recall of signals, of pages, of hosts, and of all.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random; intervals in days.
    n_signals : ndarray of int, shape (n_intervals,)
        Signals in each interval.
    host : sequence, shape (n_pages,)
        Host of each page.

    Attributes
    ----------
    of_all : list of float
        Precision and recall of the signals of all pages.

    Notes
    -----
    A page's own estimates (`signal_quality.fit`) are taken where its crawls tell
    both to a standard error of 0.1; else those of its host, if the sample has 100
    signals and 100 changes of it; else those of all pages. Those of several pages are
    the sums of their estimated numbers: signals with a change over all signals,
    and over all changes. (One fit of their crawls together would be biased, for it
    takes them for one page with one change rate.) With few crawls of each page the
    recall of a host comes out too low: .75 in place of .8 from 60 crawls of each of
    400 pages, .785 from 150. A page that has had no signal
    has the recall 0: nothing tells that one would come.

    Examples
    --------
    >>> from recrawl.science.processes import History
    >>> history = History([1.0] * 400, [True, False] * 200, [0, 200, 400])
    >>> n_signals = np.tile([1, 0], 200)
    >>> quality = Quality(history, n_signals, ["a.org", "b.org"])
    >>> quality.columns(history, n_signals, ["a.org", "b.org"])["recall"]
    array([1., 1.])
    """

    def __init__(
        self, sample: History, n_signals: NDArray[np.integer], host: Sequence[Any]
    ) -> None:
        found, days = fit(sample, n_signals), sample.total(sample.interval)
        self._hosts, number = np.unique(np.asarray(host, str), return_inverse=True)
        with np.errstate(invalid="ignore"):
            true = found.precision * sample.total(n_signals)
            n_changes = found.change_rate * days
        counts = true, sample.total(n_signals), n_changes
        known = np.isfinite(true) & np.isfinite(n_changes)
        of_host = np.array(
            [np.bincount(number[known], n[known], self._hosts.size) for n in counts]
        )
        self._of_host, self.of_all = _ratios(of_host), _ratios(of_host.sum(axis=1))
        self._enough = (of_host[1:] >= _ENOUGH).all(axis=0)

    def columns(
        self, history: History, n_signals: NDArray[np.integer], host: Sequence[Any]
    ) -> dict[str, NDArray[Any]]:
        """Find precision, recall and rate of false signals of pages.

        Parameters
        ----------
        history : History, shape (n_pages,)
            The pages' crawls; intervals in days.
        n_signals : ndarray of int, shape (n_intervals,)
            Signals in each interval.
        host : sequence, shape (n_pages,)
            Host of each page.

        Returns
        -------
        dict of ndarray
            ``recall``, ``precision``, ``false_rate`` (1/day), and
            ``signals_from``: "page", "host", "all", or "none" of pages without a
            signal.
        """
        own, host = fit(history, n_signals), np.asarray(host, str)
        with np.errstate(invalid="ignore"):
            precise = (own.precision_stderr <= _PRECISE) & (
                own.recall_stderr <= _PRECISE
            )
        place = np.searchsorted(self._hosts[:-1], host)
        known = (self._hosts[place] == host) & self._enough[place]
        found = {
            name: np.select([precise, known], [mine, of_host[place]], of_all)
            for name, mine, of_host, of_all in zip(
                ("precision", "recall"),
                (own.precision, own.recall),
                self._of_host,
                self.of_all,
                strict=True,
            )
        }
        silent = own.gamma == 0
        found["recall"][silent] = 0.0
        found["false_rate"] = np.nan_to_num(own.gamma) * (1 - found["precision"])
        sources = [silent, precise, known], ["none", "page", "host"]
        found["signals_from"] = np.select(*sources, "all")
        return found


def _ratios(counts):
    """Precision and recall from numbers of true signals, signals and changes."""
    true, n_signals, n_changes = counts
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = true / n_signals, true / n_changes
    return [np.nan_to_num(ratio) for ratio in ratios]
