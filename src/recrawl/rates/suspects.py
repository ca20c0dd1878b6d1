"""Hosts whose pages are not what they seem, with the likely cause.

A page that has changed at every crawl mostly has false changes: a clock, an
advertisement or a token is in what is compared. Many addresses of a host with one
body are mostly an error page that is sent with the status 200 (a "soft 404"). Many
addresses that differ in what a server ignores are one page, crawled many times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import duckdb

from recrawl.log.database import sql

__all__ = ["Suspect", "Suspects"]

_CRAWLS = 5  # of a page, before "at every crawl" means something
_PAGES = 3  # of a host that changed at every crawl, and half of its pages
_MADE_UP = "Last-Modified is the time of the fetch"


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
        found = [
            (host, n, "changed at every crawl", self._cause(host))
            for host, n in self._always.items()
            if n >= _PAGES and 2 * n >= self._often[host]
        ]
        bodies = "select host, max(n_urls) from shared_body group by host"
        found += [
            (host, n, f"one body under {n:,} addresses", "a soft 404")
            for host, n in self._rows(bodies)
        ]
        undated = (
            "select host, count(*) from page where first_crawl is null "
            "and n_incomparable > 0 and host_of(url) in (from dated_now) group by host"
        )
        cause = "nothing can be compared: let the crawler keep a digest of the content"
        found += [
            (host, n, f"without digest or ETag, and {_MADE_UP}", cause)
            for host, n in self._rows(undated)
        ]
        cause = "one page under many addresses; a crawler should remove these parts"
        parts = "without fragments and parameters of tracking or sessions"
        found += [
            (host, n, f"that are {n_pages:,} {parts}", cause)
            for host, n, n_pages in self._rows(sql("find_variants", "rates"))
        ]
        found = [Suspect(*each) for each in found]
        return sorted(found, key=lambda each: (-each.n_pages, each.host, each.what))

    def _rows(self, query):
        """Rows of a query, none where the log has no such table."""
        try:
            return self._connection.execute(query).fetchall()
        except duckdb.CatalogException:  # the parts of a log on a cluster
            return []

    def _cause(self, host):
        """The likely cause of pages that changed at every crawl."""
        if (host,) in self._rows("select host from dated_now"):
            return _MADE_UP
        return (
            "crawled too rarely to tell, or false changes: a clock, an advertisement, "
            "a token, or digests of chunked bodies"
        )
