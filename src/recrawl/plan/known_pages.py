"""Pages that a crawler knows, and of which its log has no row: a list of URLs."""

from __future__ import annotations

import io
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paperlib.errors import ArgumentError
from paperlib.priors import PseudoObservations
from recrawl.log.database import database, sql
from recrawl.log.formats.base import unpacked
from recrawl.types import PathLike

__all__ = ["new_pages", "read_urls"]

_MEMORY = "1GiB"
_LONGEST = 65_536  # characters of a line
_URL = re.compile(r"(?i)https?://[^/?#][^\s\x00-\x1f\x7f-\x9f]*")


def read_urls(path: PathLike) -> tuple[list[str], int]:
    """Read a list of URLs, one a line, perhaps gzipped; empty lines do not count.

    Parameters
    ----------
    path : path
        A text in UTF-8.

    Returns
    -------
    urls : list of str
        Each once, in the order of the file.
    repeated : int
        How many lines name a URL again.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        A line that is no URL of http or https, with its number; no URL at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pages.txt")
    ...     _ = path.write_text("https://a.org/1\\n\\nhttps://a.org/1\\n")
    ...     read_urls(path)
    (['https://a.org/1'], 1)
    """
    urls, n_lines = {}, 0
    try:
        with io.TextIOWrapper(unpacked(path), "utf-8-sig") as file:
            lines = iter(lambda: file.readline(_LONGEST), "")
            for number, line in enumerate(map(str.strip, lines), 1):
                if not line:
                    continue
                if not _URL.fullmatch(line):
                    raise ValueError(
                        f"{path}, line {number}: must be a URL of http or https "
                        f"without spaces, got {line[:80]!r}"
                    )
                urls[line] = None
                n_lines += 1
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be a text in UTF-8: {error}") from None
    if not urls:
        raise ValueError(f"{path} must hold at least one URL, got none")
    return list(urls), n_lines - len(urls)


def new_pages(
    urls: list[str], known: pa.ChunkedArray, estimates: dict[str, Any]
) -> pa.Table:
    """Rows of rates for the URLs that have none, by the prior of the rates.

    Parameters
    ----------
    urls : list of str
        Each once.
    known : pyarrow.ChunkedArray of str
        URLs of the rates.
    estimates : dict
        What `estimate` wrote into the metadata: with its prior, and the scales of hosts
        that have their own.

    Returns
    -------
    pyarrow.Table
        Pages that were never fetched.

    Raises
    ------
    ValueError
        There is no prior.
    """
    if not {"changed", "unchanged"} <= estimates.keys():
        rule = "must be None unless `recrawl estimate` wrote the rates, with its prior"
        raise ArgumentError("pages", rule)
    prior = PseudoObservations(estimates["changed"], estimates["unchanged"])
    given = pa.array(urls, pa.string())
    given = given.filter(pc.invert(pc.is_in(given, known.cast(pa.string()))))
    with database(_MEMORY) as (connection, _):
        connection.execute(sql("tables"))
        connection.register("page", pa.table({"url": given}))
        named = connection.sql("select url, host_of(url) as host from page")
        page = named.to_arrow_table()
    scales = estimates.get("scales") or {}
    rates = [prior.mode * scales.get(host, 1.0) for host in page["host"].to_pylist()]
    page = page.append_column("change_rate", pa.array(rates, pa.float64()))
    constants = {"importance": 1.0, "gone": False, "n_crawls": 0, "n_incomparable": 0}
    for name, value in constants.items():
        page = page.append_column(name, pa.repeat(value, page.num_rows))
    return page
