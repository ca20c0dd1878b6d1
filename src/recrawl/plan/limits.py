"""Limits of pages and hosts: for all of them, and from a file of patterns."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from paperlib import checks
from paperlib.errors import ArgumentError
from recrawl.log.formats.base import unpacked
from recrawl.log.formats.tables import header
from recrawl.types import Array, PathLike
from recrawl.units import as_text, days, per_day

__all__ = ["CrawlLimits", "Limit", "page_limits", "read_limits"]

_NOTHING = re.compile("(?i)|-|n/?a|nan|null|none")
_PARSERS = {"least_interval": days, "greatest_interval": days, "rate": per_day}


@dataclass(frozen=True)
class CrawlLimits:
    """How often pages and hosts may be crawled; None where there is no limit.

    Parameters
    ----------
    least_interval, greatest_interval : float, optional
        Days between crawls of a page, at least and at most. Pages that are gone have
        none.
    per_host : float, optional
        Crawls a day that each host allows.
    exceptions : path, optional
        A CSV file of other limits by host or URL, see `read_limits`.

    Examples
    --------
    >>> CrawlLimits(least_interval=2.0, greatest_interval=1.0)
    Traceback (most recent call last):
    paperlib.errors.ArgumentError: least_interval must be at most greatest_interval, \
1 days, got 2
    """

    least_interval: float | None = None
    greatest_interval: float | None = None
    per_host: float | None = None
    exceptions: PathLike | None = None

    def __post_init__(self):
        for name in ("least_interval", "greatest_interval", "per_host"):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), above=True)
        least, greatest = self.least_interval, self.greatest_interval
        if None not in (least, greatest) and least > greatest:
            rule = f"at most greatest_interval, {greatest:g} days, got {least:g}"
            raise ArgumentError("least_interval", f"must be {rule}")


@dataclass(frozen=True)
class Limit:
    """One row of a file of limits; None where it says nothing.

    Parameters
    ----------
    pattern : str
        A host or a URL, in which each * stands for any text.
    least_interval, greatest_interval : float, optional
        Limits of the time between crawls of a page, days.
    rate : float, optional
        Crawls a day that a host allows.

    Examples
    --------
    >>> Limit("example.org", rate=24.0).is_host
    True
    """

    pattern: str
    least_interval: float | None = None
    greatest_interval: float | None = None
    rate: float | None = None

    @property
    def is_host(self) -> bool:
        """Whether the pattern is a host."""
        return "/" not in self.pattern

    def matches(self, batch: Any) -> NDArray[np.bool_]:
        """Which pages of a batch the pattern names.

        Parameters
        ----------
        batch : pyarrow.RecordBatch or Table
            With the column host, or url for a URL.

        Returns
        -------
        bool ndarray, shape (n_pages,)
            True where it does.
        """
        pattern = re.escape(self.pattern).replace(r"\*", ".*")
        column = batch["host" if self.is_host else "url"]
        mask = pc.match_substring_regex(column, f"(?s)^{pattern}$")
        return np.asarray(mask.fill_null(False))


def read_limits(path: PathLike) -> list[Limit]:
    """Read a CSV file of limits, perhaps gzipped; see `header` for delimiters.

    Parameters
    ----------
    path : path
        With the column pattern and any of least_interval, greatest_interval
        (such as 12h or 30d) and rate (such as 10/hour, of a host); an empty
        cell, or a word such as NA, leaves the limit to shorter patterns.

    Returns
    -------
    list of Limit
        In the order in which they overrule each other: the longest is last.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Another column, no row, or a cell that cannot be read, with its line;
        a rate of a URL or of several hosts; a pattern that occurs twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "limits.csv")
    ...     _ = path.write_text("pattern,greatest_interval\\nexample.org,12h\\n")
    ...     read_limits(path)[0].greatest_interval
    0.5
    """
    try:
        _, delimiter, n_before = header(Path(path))
        with io.TextIOWrapper(unpacked(path), "utf-8-sig", newline="") as file:
            for _ in range(n_before):
                next(file)
            reader = csv.DictReader(file, delimiter=delimiter, skipinitialspace=True)
            _check_columns(path, reader.fieldnames or [])
            rows = {}
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                limit = _limit(where, row)
                if limit.pattern in rows:
                    raise ValueError(
                        f"{where}: pattern must stand once, got {limit.pattern!r} again"
                    )
                rows[limit.pattern] = limit
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} must be a CSV file in UTF-8: {error}") from None
    if not rows:
        raise ValueError(f"{path} must hold at least one pattern, got none")
    return sorted(rows.values(), key=lambda limit: len(limit.pattern))


def _check_columns(path, names):
    """Raise a ValueError unless the columns are those of a file of limits."""
    known = ["pattern", *_PARSERS]
    if "pattern" not in names or set(names) - set(known):
        raise ValueError(
            f"{path} must have the column pattern, and others only of "
            f"{', '.join(_PARSERS)}, got {', '.join(map(str, names)) or 'none'}"
        )


def _limit(where, row):
    """The `Limit` of one row of a file."""
    pattern = (row["pattern"] or "").strip()
    if not pattern or None in row:
        got = "no pattern" if not pattern else "more cells than columns"
        raise ValueError(f"{where} must hold a pattern and its limits, got {got}")
    values = {}
    for name, parse in _PARSERS.items():
        text = (row.get(name) or "").strip()
        try:
            values[name] = None if _NOTHING.fullmatch(text) else parse(text)
        except ValueError as error:
            raise ValueError(f"{where}: {name} {error}") from None
    limit = Limit(pattern, **values)
    if limit.rate is not None and (not limit.is_host or "*" in pattern):
        raise ValueError(
            f"{where}: rate must be that of one host, got one for {pattern!r}"
        )
    return limit


def page_limits(
    batches: Any, exceptions: list[Limit], limits: CrawlLimits
) -> tuple[Array, Array]:
    """Least and greatest crawl rate of each page.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Pages, with the column url and, for hosts, host; without exceptions any.
    exceptions : list of Limit
        Of `read_limits`: a later one overrules those before.
    limits : CrawlLimits
        For pages on which no pattern says something else.

    Returns
    -------
    min_rate, max_rate : ndarray, shape (n_pages,), 1/day
        0 and inf where there is no limit.

    Raises
    ------
    ValueError
        A pattern that no page matches; a least interval above the greatest.

    Examples
    --------
    >>> import pyarrow as pa
    >>> pages = pa.record_batch({"url": ["https://a/", "https://a/news/1"]})
    >>> news = Limit("https://a/news/*", greatest_interval=0.5)
    >>> month = CrawlLimits(greatest_interval=30.0)
    >>> page_limits([pages], [news], month)[0].round(3)
    array([0.033, 2.   ])
    """
    unmatched, found = {limit.pattern for limit in exceptions}, []
    for batch in batches:
        least = np.full(batch.num_rows, limits.least_interval or 0.0)
        greatest = np.full(batch.num_rows, limits.greatest_interval or np.inf)
        for limit in exceptions:
            here = limit.matches(batch)
            if here.any():
                unmatched.discard(limit.pattern)
            if limit.least_interval is not None:
                least[here] = limit.least_interval
            if limit.greatest_interval is not None:
                greatest[here] = limit.greatest_interval
        crossed = np.flatnonzero(least > greatest)
        if crossed.size:
            k = crossed[0]
            raise ValueError(
                "the least interval of a page must be at most its greatest, got "
                f"{as_text(least[k])} and {as_text(greatest[k])} for "
                f"{batch['url'][k].as_py()!r}"
            )
        found.append((least, greatest))
    if unmatched:
        shown = ", ".join(map(repr, sorted(unmatched)[:5]))
        raise ValueError(
            "the patterns of limits must match pages, got "
            f"{len(unmatched)} without: {shown}"
        )
    least, greatest = np.concatenate(found, axis=1)
    with np.errstate(divide="ignore"):
        return 1 / greatest, 1 / least
