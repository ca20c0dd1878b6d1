"""What decides a schedule: rates, tables of weights and limits, as arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paperlib import checks
from paperlib.errors import ArgumentError
from recrawl.log.output import description, opened, sound
from recrawl.plan.known_pages import new_pages, read_urls
from recrawl.plan.limits import CrawlLimits, Limit, page_limits
from recrawl.plan.weights import weighted
from recrawl.types import Array, PathLike

__all__ = ["Pages", "Rates", "column", "limit_arrays", "read_pages"]

PAGES_PER_BATCH = 1_000_000  # some 200 MB

_DEFAULTS = {
    "importance": 1.0,
    "gone": False,
    "n_crawls": 0.0,
    "n_incomparable": 0,
    "first_crawl": np.datetime64("NaT", "us"),
    "last_crawl": np.datetime64("NaT", "us"),
    "freshness_now": np.nan,
}


class Rates:
    """A file of rates, with the columns that are needed.

    The checksums of its pages are compared when they are read.

    Parameters
    ----------
    path : path
        Parquet file with the columns url and change_rate.
    needed : sequence of str
        Other columns that it must have.
    """

    def __init__(self, path: PathLike, needed: Sequence[str]) -> None:
        self._path, self._file = path, opened(path, "rates", ("url", "change_rate"))
        self.names = self._file.schema_arrow.names
        for name in needed:
            if name not in self.names:
                rule = f"must have a column {name!r}, got {', '.join(self.names)}"
                raise ArgumentError("rates", rule)
        if not self._file.metadata.num_rows:
            raise ArgumentError("rates", "must hold at least one page, got none")
        #: What `estimate` wrote into the metadata.
        self.metadata = description(path)
        self._added = pa.table({})

    def add(self, path: PathLike) -> dict[str, int]:
        """Append the pages of a list of URLs that have no row; counts of its lines."""
        urls, repeated = read_urls(path)
        added = new_pages(urls, self.read(["url"])["url"], self.metadata)
        self._added = added.select([n for n in added.column_names if n in self.names])
        n_new = self._added.num_rows
        return {"new": n_new, "known": len(urls) - n_new, "repeated": repeated}

    def read(self, columns: list[str]) -> pa.Table:
        """Table of columns; the file may lack some."""
        with sound(self._path):
            table = self._file.read(columns=columns)
        added = self._added.select(set(columns) & set(self._added.column_names))
        return pa.concat_tables([table, added], promote_options="permissive")

    def batches(self, columns: list[str]) -> Iterator[pa.Table]:
        """Yield the same in parts, to hold only one of them."""
        with sound(self._path):
            for batch in self._file.iter_batches(PAGES_PER_BATCH, columns=columns):
                yield pa.table(batch)
        if self._added.num_rows:
            yield self._added


@dataclass(frozen=True)
class Pages:
    """What is known of the pages, from the rates and a table of importance.

    Parameters
    ----------
    columns : dict of ndarray, shape (n_pages,)
        By name, as a `Problem` takes them.
    kinds : dict of bool ndarray
        Pages of which little is known, by the reason; those that are gone, and those
        on hosts that `estimate` flagged.
    hosts : pyarrow.DictionaryArray or None
        If hosts have limits.
    counts : dict
        Those of `weighted`; empty without a table of importance.
    n_crawls : float
        Median number of intervals between crawls of a page that has any; 0 if that
        is not known.
    end : datetime64
        The last crawl of all; NaT if none is known.
    """

    columns: dict
    kinds: dict
    hosts: pa.DictionaryArray | None
    counts: dict
    n_crawls: float
    end: np.datetime64

    @property
    def unknown(self) -> Array:
        """Pages for which no freshness is predicted, a mask."""
        return self.kinds["unfetched"] | self.kinds["incomparable"]


def read_pages(file: Rates, needed: list[str], importance: PathLike | None) -> Pages:
    """Read what decides the crawl rates; gone pages have no importance."""
    names = ["change_rate", "importance", "gone", "log_stderr", "log_rate", *needed]
    names += ["n_crawls", "n_incomparable", "last_crawl"]
    names += ["url"] if importance else []
    table = file.read(names)
    kinds = _kinds(table)
    weight, counts = column(table, "importance"), {}
    if importance is not None:
        weight, counts = weighted(importance, table["url"], weight)
    columns = {"change_rate": column(table, "change_rate")}
    columns["importance"] = _importance(np.where(kinds["gone"], 0.0, weight))
    if "log_rate" in table.column_names:
        columns["log_rate"] = column(table, "log_rate")
    if "log_stderr" in table.column_names:
        stderr = np.nan_to_num(column(table, "log_stderr"))  # unknown: none
        columns["log_stderr"] = checks.numbers("log_stderr", stderr)
    hosts = None
    if "host" in needed:
        hosts = table["host"].dictionary_encode().combine_chunks()
    n_crawls = column(table, "n_crawls")
    crawled = n_crawls[n_crawls > 0]
    median = np.median(crawled).item() if crawled.size else 0.0
    end = np.fmax.reduce(column(table, "last_crawl"))
    return Pages(columns, kinds, hosts, counts, median, end)


def _importance(weight):
    """The weights, checked."""
    weight = checks.numbers("column importance", weight)
    with np.errstate(over="ignore"):
        total = weight.sum()
    if total == np.inf:
        raise ValueError(
            "column importance must have a finite sum, got inf; use another unit"
        )
    if total == 0:
        rule = "must hold a page with importance that is not gone, got none of "
        raise ArgumentError("rates", f"{rule}{weight.size}")
    return weight


def _kinds(table):
    """Masks of pages of which little is known, by the reason, and of other kinds."""
    gone = column(table, "gone")
    no_interval = no_crawl = np.zeros(table.num_rows, dtype=bool)
    if "n_crawls" in table.column_names:
        no_interval = no_crawl = (column(table, "n_crawls") == 0) & ~gone
    if "last_crawl" in table.column_names:
        no_crawl = np.isnat(column(table, "last_crawl")) & ~gone
    incomparable = no_crawl & (column(table, "n_incomparable") > 0)
    return {
        "unfetched": no_crawl & ~incomparable,
        "incomparable": incomparable,
        "unmeasured": no_interval & ~no_crawl,
        "gone": gone,
    }


def column(table: pa.Table, name: str) -> Array:
    """Array of a column of a table, or of its default."""
    if name not in table.column_names:
        return np.broadcast_to(_DEFAULTS[name], table.num_rows)
    given, types = table[name], pa.types
    wanted = {"gone": "boolean", "first_crawl": "timestamp", "last_crawl": "timestamp"}
    kind = wanted.get(name, "floating" if types.is_floating(given.type) else "integer")
    if not (types.is_null(given.type) or getattr(types, f"is_{kind}")(given.type)):
        what = {"boolean": "true or false", "timestamp": "times"}.get(kind, "numbers")
        rule = f"must hold {what} in the column {name!r}, got {given.type}"
        raise ArgumentError("rates", rule)
    if types.is_timestamp(given.type):
        given = given.cast(pa.timestamp("us"))
    return given.to_numpy()


def limit_arrays(
    file: Rates, pages: Pages, exceptions: list[Limit], limits: CrawlLimits
) -> dict[str, Array]:
    """Limits of pages and hosts as arguments of an allocation, only those in force."""
    found = {}
    if exceptions or limits.least_interval or limits.greatest_interval:
        batches = file.batches(["url", "host"] if exceptions else ["change_rate"])
        low, high = page_limits(batches, exceptions, limits)
        low[pages.kinds["gone"]] = 0.0
        found |= {"min_rate": low} if low.any() else {}
        found |= {"max_rate": high} if (high < np.inf).any() else {}
    rates = {each.pattern: each.rate for each in exceptions if each.rate is not None}
    if rates or limits.per_host:
        others = limits.per_host or np.inf
        names = pages.hosts.dictionary.to_pylist()
        found["host"] = np.asarray(pages.hosts.indices)
        found["host_limit"] = np.array([rates.get(name, others) for name in names])
    return found
