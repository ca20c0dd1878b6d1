"""What in a log makes rates of pages doubtful, with the likely cause.

A page that has changed at every crawl mostly has false changes: a clock, an
advertisement or a token is in what is compared. Many addresses of a host with one
body are mostly an error page that is sent with the status 200 (a "soft 404"). Many
addresses that differ in what a server ignores are one page, crawled many times. A day
on which many pages changed at once was a redesign or a new template.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from recrawl.log.database import sql

if TYPE_CHECKING:
    from recrawl.log.reading import Batch
    from recrawl.types import Array

__all__ = ["BulkDay", "Suspect", "Suspects", "bulk_days"]

_CRAWLS = 5  # of a page, before "at every crawl" means something
_PAGES = 3  # of a host that changed at every crawl, and half of its pages
_MADE_UP = "Last-Modified is the time of the fetch"
_FALSE = (
    "crawled too rarely to tell, or false changes: a clock, an advertisement, "
    "a token, or digests of chunked bodies"
)
# Each gives rows of `Suspect`.
_SHARED_BODY = (
    "select host, max(n_urls), format('one body under {:,} addresses', max(n_urls)), "
    "'a soft 404' from shared_body group by host"
)
_WITHOUT_DIGEST = (
    f"select host, count(*), 'without digest or ETag, and {_MADE_UP}', 'nothing can "
    "be compared: let the crawler keep a digest of the content' from page where "
    "first_crawl is null and n_incomparable > 0 and host_of(url) in (from dated_now) "
    "group by host"
)
_VARIANTS = (
    "select host, n_urls, format('that are {:,} without fragments and parameters of "
    "tracking or sessions', n_pages), 'one page under many addresses; a crawler should "
    "remove these parts' from "
)

_HOUR = 3_600_000_000  # microseconds; at one hour a page has one interval, mostly
_LEAST = 30  # intervals that an hour lies in
_SHARE = 0.3  # of them that ended with a change, and so many times as predicted
_TIMES = 3.0


@dataclass(frozen=True)
class Suspect:
    """A host whose pages are not what they seem.

    Parameters
    ----------
    host : str
        Its name.
    n_pages : int
        How many of its pages are concerned.
    what : str
        What was seen.
    cause : str
        The likely cause.
    """

    host: str
    n_pages: int
    what: str
    cause: str


class Suspects:
    """Finds suspects while the rates of a log are computed, batch by batch.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Of an `OpenedLog`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("create table shared_body (host text, n_urls int)")
    >>> _ = connection.execute("create table dated_now as select 'a.org' as host")
    >>> suspects = Suspects(connection)
    >>> columns = {"host": ["a.org"] * 3, "n_crawls": [9] * 3, "n_changed": [9] * 3}
    >>> suspects.add(pa.table(columns))
    >>> [(found.host, found.cause) for found in suspects.found()]
    [('a.org', 'Last-Modified is the time of the fetch')]
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._often = Counter()
        self._always = Counter()

    def add(self, rates: Any) -> None:
        """Count the pages of a batch that changed at every crawl.

        Parameters
        ----------
        rates : pyarrow.Table
            With the columns host, n_crawls and n_changed.
        """
        n, changed = (rates[name].to_numpy() for name in ("n_crawls", "n_changed"))
        often, host = n >= _CRAWLS, rates["host"]
        self._often.update(host.filter(often).to_pylist())
        self._always.update(host.filter(often & (n == changed)).to_pylist())

    def found(self) -> list[Suspect]:
        """List the suspects, those with the most pages first.

        Returns
        -------
        list of Suspect
        """
        made_up = self._rows("from dated_now")
        found = []
        for host, n in self._always.items():
            if n >= _PAGES and 2 * n >= self._often[host]:
                cause = _MADE_UP if (host,) in made_up else _FALSE
                found.append((host, n, "changed at every crawl", cause))
        variants = f"{_VARIANTS} ({sql('find_variants', 'rates')})"
        for query in (_SHARED_BODY, _WITHOUT_DIGEST, variants):
            found += self._rows(query)
        found = [Suspect(*each) for each in found]
        return sorted(found, key=lambda each: (-each.n_pages, each.host, each.what))

    def _rows(self, query):
        """Rows of a query, none where the log has no such table."""
        try:
            return self._connection.execute(query).fetchall()
        except duckdb.CatalogException:  # the parts of a log on a cluster
            return []


@dataclass(frozen=True)
class BulkDay:
    """A day on which many pages changed at once.

    Parameters
    ----------
    day : str
        Its date, in UTC; between rare crawls the middle of those that it may be.
    share : float
        Share of the intervals between crawls around it that ended with a change.
    """

    day: str
    share: float


def bulk_days(batch: Batch, change_rate: Array) -> list[BulkDay]:
    """Find the days around which far more crawls saw a change than rates predict.

    Of the intervals between crawls in which an hour lies, 30% or more ended with a
    change, and three times as many as the change rates of their pages predict. Of
    such hours in a row those of the largest share count.

    Parameters
    ----------
    batch : Batch
        Pages drawn at random from a log.
    change_rate : ndarray, shape (n_pages,), 1/day

    Returns
    -------
    list of BulkDay
        In order.

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> from recrawl.log.reading import Batch
    >>> bits = np.zeros((40, 9), bool)
    >>> bits[:, 4] = True
    >>> history = History(*History(np.ones((40, 9)), bits).ragged())
    >>> time = np.tile(np.arange(1, 10) * 86_400_000_000, 40)
    >>> bulk_days(Batch(None, history, time, np.ones(360, bool)), np.full(40, 0.1))
    [BulkDay(day='1970-01-05', share=1.0)]
    """
    interval, changed, _ = batch.history.ragged()
    if not interval.size:
        return []
    predicted = -np.expm1(-batch.history.per_crawl(change_rate) * interval)
    end = batch.time / _HOUR
    begin = np.floor(end - 24 * interval)
    origin = begin.min()
    first, behind = (begin - origin).astype(int), np.ceil(end - origin).astype(int)

    # the sums of each weight over the intervals in which an hour lies
    size = behind.max() + 1
    n, found, expected = (
        np.cumsum(np.bincount(first, each, size) - np.bincount(behind, each, size))[:-1]
        for each in batch.crawled * [np.ones(end.size), changed, predicted]
    )
    share = np.where(n >= _LEAST, found / np.maximum(n, 1), 0.0)
    hours = np.flatnonzero((share >= _SHARE) & (found >= _TIMES * expected))
    days = []
    runs = np.split(hours, np.flatnonzero(np.diff(hours) > 24) + 1)
    for run in filter(len, runs):
        top = run[share[run] >= share[run].max() * (1 - 1e-9)]
        hour = np.datetime64(int(origin + top[top.size // 2]), "h")
        days.append(BulkDay(str(hour.astype("M8[D]")), float(share[top[0]])))
    return days
