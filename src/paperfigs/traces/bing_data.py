"""The Bing crawl data set: five text files, read once into a Parquet cache.

DuckDB reads the text, as bing_data.sql says. The histories, nearly all of the
data, are in one Parquet file in the order of their lines; a smaller one,
the cache proper, holds the URLs that can be used, each with the number of
the line of its history, and in its metadata from which files it was made
and which lines were left out. `bing` reads both into arrays.
"""

import glob
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recrawl import checks
from recrawl.files import replacing
from recrawl.science.processes import CrawlLog, History
from recrawl.types import PathLike, Seed

__all__ = ["MalformedLinesWarning", "bing"]

_REQUIRED = (
    "url_urlid_hostid.txt",
    "host_hostid_isconstrained.txt",
    "urlid_imp.txt",
    "urlid_offset_history.txt",
)
_RATES = "urlid_chrate_compl_obs_hist.txt"  # older archives do not have it
_PAGES, _HISTORIES = "paperlib_bing.parquet", "paperlib_bing_histories.parquet"
_VERSION = "2"  # of the cache; 1 was one file
_MEMORY = "768MiB"  # for DuckDB, which beyond it goes on in files in the folder
_BATCH = 1 << 12  # histories decoded at a time: they fit into the processor's cache


class MalformedLinesWarning(UserWarning):
    """Lines that were left out of a data set.

    Parameters
    ----------
    folder : path
        Where the data set is.
    malformed : list of (str, str, int, str)
        File, reason, number of lines, and the first of them.

    Attributes
    ----------
    counts : dict of str to dict of str to int
        By file, then by reason: the number of lines.

    Examples
    --------
    >>> lines = [("urlid_imp.txt", "missing columns", 2, "line 7")]
    >>> print(MalformedLinesWarning("data", lines))
    malformed lines in data were left out: urlid_imp.txt: missing columns: 2 (line 7)
    """

    def __init__(self, folder: PathLike, malformed: Any) -> None:
        self.counts, texts = {}, []
        for file, reason, count, first in malformed:
            self.counts.setdefault(file, {})[reason] = int(count)
            texts.append(f"{file}: {reason}: {int(count):,} ({first})")
        super().__init__(
            f"malformed lines in {folder} were left out: {'; '.join(texts)}"
        )


def bing(
    folder: PathLike,
    *,
    sample: int | None = None,
    rng: Seed = None,
    progress: bool = True,
) -> CrawlLog:
    """Crawl data set of Bing: 18.5 million URLs, crawled daily for 14 weeks.

    The data set of [kolobov19]_. The first call reads the text
    files and keeps the result in ``paperlib_bing.parquet`` and
    ``paperlib_bing_histories.parquet`` beside them. Later calls read these
    alone, as long as the sizes and modification times of the text files are
    unchanged. No call needs much more than 1 GiB of memory.

    Parameters
    ----------
    folder : path
        Holds, unpacked, ``url_urlid_hostid.txt``,
        ``host_hostid_isconstrained.txt``, ``urlid_imp.txt``,
        ``urlid_offset_history.txt`` and, optionally,
        ``urlid_chrate_compl_obs_hist.txt``. The cache is written here.
    sample : int, optional
        Number of URLs, drawn without replacement; default all.
    rng : None, int, SeedSequence or Generator, optional
        Source of the sample.
    progress : bool, optional
        Show DuckDB's progress bar while the text files are read.

    Returns
    -------
    CrawlLog
        In the order of the history file. ``url`` and ``host`` are the integer
        ids of the data set. Intervals in days, counted from a first crawl
        that is itself not in the history; a history may be empty.
        ``known_rate``, 1/day, from sitemaps, NaN where there is none. The
        arrays of the history are mapped from files without a name in
        `folder`, some 17 GB for the full set, which the system frees once
        the log is no longer used.

    Raises
    ------
    FileNotFoundError
        There is no such folder, or a file is missing.
    ValueError
        No URL, or no crawl, can be used; `sample` is not a positive integer,
        exceeds the number of URLs, or finds no crawl.

    Warns
    -----
    MalformedLinesWarning
        Lines were left out, now or when the cache was written: by file and
        reason, how many, and one place.

    References
    ----------
    .. [kolobov19] A. Kolobov, Y. Peres, C. Lu, E. Horvitz, "Staying up to
       Date with Online Content Changes Using Reinforcement Learning for
       Scheduling", NeurIPS 2019.

    Examples
    --------
    >>> bing("no such folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: folder must hold the Bing data set, ...
    """
    folder = Path(folder)
    if missing := [name for name in _REQUIRED if not (folder / name).is_file()]:
        raise FileNotFoundError(
            "folder must hold the Bing data set, which "
            "https://github.com/microsoft/Optimal-Freshness-Crawl-Scheduling "
            f"describes; missing in {folder}: {', '.join(missing)}"
        )
    if sample is not None:
        sample = checks.count("sample", sample)
    sources = _VERSION
    for path in sorted(folder.glob("*id_*.txt")):
        sources += f" {path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"
    if _about(folder).get("sources") != sources:
        _convert(folder, sources, progress)
    if malformed := _about(folder)["malformed"]:
        warnings.warn(MalformedLinesWarning(folder, malformed), stacklevel=2)
    return _read(folder, sample, rng)


def _about(folder):
    """Sources and malformed lines of the cache; empty if it is not whole."""
    try:
        pq.read_metadata(folder / _HISTORIES)
        return json.loads(pq.read_metadata(folder / _PAGES).metadata[b"paperlib"])
    except (FileNotFoundError, pa.ArrowInvalid, KeyError):
        return {}


def _convert(folder, sources, progress):
    """Write both files of the cache, or neither."""
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        replacing(folder / _PAGES) as pages,
        replacing(folder / _HISTORIES) as histories,
        duckdb.connect(
            config={"memory_limit": _MEMORY, "temp_directory": scratch}
        ) as db,
    ):
        rates = folder / _RATES
        if not rates.exists():
            rates = Path(scratch, _RATES)
            rates.touch()
        for name, value in {
            "folder": glob.escape(str(folder)),  # a path is a pattern to DuckDB
            "rates": glob.escape(str(rates)),
            "sources": sources,
            "histories": histories,
            "pages": pages,
        }.items():
            db.execute(f"SET VARIABLE {name} = ?", [value])
        db.execute("SET enable_progress_bar = ?", [progress])
        script = Path(__file__).with_name("bing_data.sql").read_text()
        if not db.execute(script).fetchone()[0]:
            raise ValueError(
                f"{folder} must hold at least one crawl of a URL that has a host and "
                "an importance; malformed lines: "
                f"{db.execute('FROM malformed').fetchall()}"
            )


def _read(folder, sample, rng):
    """The whole cache, or a sample of its URLs."""
    pages = pq.read_table(folder / _PAGES)
    if sample is not None:
        if sample > len(pages):
            raise ValueError(
                f"sample must be at most {len(pages):,}, the number of URLs in "
                f"{folder}, got {sample:,}"
            )
        rng = np.random.default_rng(rng)
        rows = rng.choice(len(pages), sample, replace=False, shuffle=False)
        pages = pages.take(np.sort(rows))
    columns = {name: pages[name].to_numpy() for name in pages.column_names}
    lines, n_crawls = columns.pop("line"), columns.pop("n_crawls")
    if not n_crawls.any():
        raise ValueError("sample must find at least one crawl, got none")
    return CrawlLog(history=_histories(folder, lines, n_crawls), **columns)


def _histories(folder, lines, n_crawls):
    """Histories of the given lines, mapped from files that have no name.

    All histories need not fit into memory, and the system frees such files
    once no array is mapped from them.
    """
    start = 0
    with (
        pq.ParquetFile(folder / _HISTORIES, memory_map=True) as histories,
        tempfile.TemporaryFile(dir=folder) as interval,
        tempfile.TemporaryFile(dir=folder) as changed,
    ):
        for batch in histories.iter_batches(_BATCH, columns=["interval", "changed"]):
            stop = start + len(batch)
            wanted = lines[slice(*np.searchsorted(lines, (start, stop)))] - start
            used = batch.take(pa.array(wanted))
            interval.write(used["interval"].flatten().to_numpy())
            changed.write(used["changed"].flatten().to_numpy(zero_copy_only=False))
            start = stop
        interval.flush()
        changed.flush()
        return History(
            np.memmap(interval, float, "r"),
            np.memmap(changed, bool, "r"),
            np.append(0, np.cumsum(n_crawls)),
        )
