"""What decides a schedule: rates, tables of weights and limits, as arrays."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from paperlib import checks
from paperlib.errors import ArgumentError
from recrawl.log.output import description, opened, sound
from recrawl.plan.limits import Limit, page_limits
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

    def read(self, columns: list[str]) -> pa.Table:
        """Table of columns; the file may lack some."""
        with sound(self._path):
            return self._file.read(columns=columns)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the same in batches, to hold only one of them."""
        with sound(self._path):
            yield from self._file.iter_batches(PAGES_PER_BATCH, columns=columns)


@dataclass(frozen=True)
class Pages:
    """What is known of the pages, from the rates and tables of weights.

    Parameters
    ----------
    columns : dict of ndarray, shape (n_pages,)
        By name.
    kinds : dict of bool ndarray
        Pages of which little is known, by the reason, and those that are gone.
    hosts : pyarrow.DictionaryArray or None
        If hosts have limits.
    counts : dict
        Those of `weighted`, by column.
    """

    columns: dict
    kinds: dict
    hosts: pa.DictionaryArray | None
    counts: dict

    @property
    def unknown(self) -> Array:
        """Pages for which no freshness is predicted, a mask."""
        return self.kinds["unfetched"] | self.kinds["incomparable"]


def read_pages(file: Rates, needed: list[str], tables: Mapping[str, PathLike]) -> Pages:
    """Read what decides the crawl rates; gone pages have no importance."""
    optional = {"log_stderr", "log_rate", "n_crawls", "n_incomparable", "last_crawl"}
    optional |= {"url"} if tables else set()
    names = {"change_rate", "importance", "gone", *needed, *tables}
    table = file.read(list(names | optional))
    columns = {name: column(table, name) for name in names - {"host"}}
    hosts, counts = None, {}
    if "host" in names:
        hosts = table["host"].dictionary_encode().combine_chunks()
    if "log_stderr" in table.column_names:
        stderr = np.nan_to_num(column(table, "log_stderr"))  # unknown: none
        columns["log_stderr"] = checks.numbers("log_stderr", stderr)
    if "log_rate" in table.column_names:
        columns["log_rate"] = column(table, "log_rate")
    for name, path in tables.items():
        found = weighted(path, table["url"], columns[name], name)
        columns[name], counts[name] = found
    weight = np.where(columns["gone"], 0.0, columns["importance"])
    columns["importance"] = checks.numbers("column importance", weight)
    with np.errstate(over="ignore"):
        total = columns["importance"].sum()
    if total == np.inf:
        raise ValueError(
            "column importance must have a finite sum, got inf; use another unit"
        )
    if not columns["importance"].any():
        rule = "must hold a page with importance that is not gone, got none of "
        raise ArgumentError("rates", f"{rule}{columns['importance'].size}")
    return Pages(columns, _kinds(table, columns["gone"]), hosts, counts)


def _kinds(table, gone):
    """Masks of pages of which little is known, by the reason, and of those gone."""
    no_interval = np.zeros(table.num_rows, dtype=bool)
    if "n_crawls" in table.column_names:
        no_interval = (column(table, "n_crawls") == 0) & ~gone
    no_crawl = no_interval
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
    file: Rates,
    pages: Pages,
    rows: list[Limit],
    intervals: tuple,
    per_host: Any,
) -> dict[str, Array]:
    """Limits of pages and hosts as arrays of a `Problem`, only those in force."""
    found = {}
    least, greatest = intervals
    if any(intervals) or rows:
        names = ["change_rate"]
        if rows:
            names = ["url"] if pages.hosts is None else ["url", "host"]
        low, high = page_limits(file.batches(names), rows, least, greatest)
        low = np.where(pages.kinds["gone"], 0.0, low)
        found |= {"min_rate": low} if low.any() else {}
        found |= {"max_rate": high} if (high < np.inf).any() else {}
    if pages.hosts is not None:
        names = pages.hosts.dictionary.to_pylist()
        given = per_host if isinstance(per_host, Mapping) else {None: per_host}
        given = {host: limit for host, limit in given.items() if limit is not None}
        _check_hosts("per_host", given.keys() - {None}, names)
        of_rows = {row.pattern: row.rate for row in rows if row.rate is not None}
        _check_hosts("limits", of_rows.keys(), names)
        given |= of_rows
        if given:
            others = given.get(None, np.inf)
            limit = np.array([float(given.get(name, others)) for name in names])
            found |= {"host": np.asarray(pages.hosts.indices), "host_limit": limit}
    return found


def _check_hosts(argument, named, hosts):
    """Raise a ValueError if hosts are named that have no page."""
    if unknown := sorted(named - set(hosts)):
        some = ", ".join(map(repr, unknown[:5]))
        rule = f"must name hosts that have pages, got {len(unknown)} without: {some}"
        raise ArgumentError(argument, rule)
