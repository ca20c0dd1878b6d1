"""The Bing crawl data set: text files into one Parquet cache, and from there into a `CrawlLog`. Public through `traces`."""

import contextlib
import io
import itertools
import json
import os
import re
import tempfile
import warnings
from array import array
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from paperlib import checks
from paperlib.crawl_log import CrawlLog
from paperlib.processes import History
from paperlib.repro import _bing_text as kernels

URLS, HOSTS, IMPORTANCE = (
    "url_urlid_hostid.txt",
    "host_hostid_isconstrained.txt",
    "urlid_imp.txt",
)
HISTORY, RATES = "urlid_offset_history.txt", "urlid_chrate_compl_obs_hist.txt"
CACHE = "paperlib_bing.parquet"
SOURCE = "https://github.com/microsoft/Optimal-Freshness-Crawl-Scheduling"

_VERSION = 1
_BLOCK = 8 << 20  # bytes of text parsed at a time
_LONGEST = 1 << 28
_GROUP_URLS, _GROUP_CRAWLS = (
    1 << 16,
    1 << 24,
)  # a row group ends at either: bytes of a column must stay below 2 GiB
_BATCH = (
    1 << 12
)  # URLs read at a time: fits into the processor's cache, twice as fast as a row group at once
_N_NAMED = 3
# bytes, not lists: a list column takes twice as long to write, and the bytes are the array
_COLUMNS_OF_URL = {
    "url": pa.int64(),
    "importance": pa.float64(),
    "host": pa.int64(),
    "constrained": pa.bool_(),
    "known_rate": pa.float64(),
}
_SCHEMA = pa.schema(
    {**_COLUMNS_OF_URL, "interval": pa.binary(), "changed": pa.binary()}
)
_FLAT = {"interval": np.float64, "changed": np.bool_}

_REASONS = (
    "",
    "wrong number of columns, or cut off",
    "a number that cannot be read",
    "a bit that is not 0 or 1",
    "an interval that is not positive and finite (history out of order)",
    "an importance or rate that is negative or not finite",
    "an id that an earlier line has",
    "a URL without importance",
    "a URL without host",
    "a URL of an unknown host",
    "blank",
)


class MalformedLinesWarning(UserWarning):
    """Lines that were left out of a data set; attribute `counts`, a dict of file, then reason, to their number."""

    def __init__(self, folder, malformed):
        self.counts = {
            file: {reason: count for reason, (count, _) in reasons.items()}
            for file, reasons in malformed.items()
        }
        super().__init__(
            f"malformed lines in {folder} were left out: {_told(malformed)}"
        )


def _told(malformed):
    return "; ".join(
        f"{file}: {reason}: {count:,} (line {', '.join(map(str, lines))}{', ...' * (count > len(lines))})"
        for file, reasons in malformed.items()
        for reason, (count, lines) in reasons.items()
    )


def bing(folder, *, sample=None, rng=None, progress=True):
    """The Bing crawl data set [Kolobov et al. 2019]: 18.5 million URLs crawled about daily for 14 weeks.

    The first call reads the text files and keeps what it finds in ``paperlib_bing.parquet`` beside them; later calls read that file
    alone, as long as the sizes and modification times of the text files are what they were. Neither needs more than 1 GiB of memory.

    Parameters
    ----------
    folder : path
        Holds, unpacked, ``url_urlid_hostid.txt``, ``host_hostid_isconstrained.txt``, ``urlid_imp.txt``, ``urlid_offset_history.txt`` and,
        if there, ``urlid_chrate_compl_obs_hist.txt``. The cache is written here.
    sample : int, optional
        So many URLs drawn without replacement, in the order of the file. By default all: the arrays are then mapped from a nameless file
        in `folder`, on the full set some 17 GB of disk, which is free again once the log is no longer used.
    rng : seed or numpy Generator
        For `sample`.
    progress : bool
        Show a progress bar while the text files are read.

    Returns
    -------
    CrawlLog
        In the order of the history file. ``url`` and ``host`` are the integer ids of the data set; the addresses stand in
        ``url_urlid_hostid.txt`` and ``host_hostid_isconstrained.txt``. Intervals in days, counted from a first crawl that is itself not
        in the history; a history may be empty. ``known_rate``, 1/day, from sitemaps.

    Raises
    ------
    FileNotFoundError
        No such folder, or a file is missing.
    ValueError
        No URL, or no crawl, that could be used; a `sample` that is no positive integer, is more than there is, or has no crawl; a line
        of 256 MiB.

    Warns
    -----
    MalformedLinesWarning
        Lines were left out, now or when the cache was written: by file and reason, how many, and which came first.
    """
    folder = Path(folder)
    required = [URLS, HOSTS, IMPORTANCE, HISTORY]
    if missing := [name for name in required if not (folder / name).is_file()]:
        raise FileNotFoundError(
            f"folder must hold the Bing data set, which {SOURCE} describes; missing in {folder}: {', '.join(missing)}"
        )
    sources = {
        name: (folder / name).stat()
        for name in [*required, RATES]
        if (folder / name).is_file()
    }
    sources = {name: [stat.st_size, stat.st_mtime_ns] for name, stat in sources.items()}
    if sample is not None:
        sample = checks.count("sample", sample)
    cache = folder / CACHE
    if (found := _description(cache)).get("sources") != sources or found.get(
        "version"
    ) != _VERSION:
        _convert(folder, sources, progress)
        found = _description(cache)
    if found["malformed"]:
        warnings.warn(MalformedLinesWarning(folder, found["malformed"]), stacklevel=2)
    return _read(cache, sample, rng)


def _description(cache):
    """What the cache says about itself; nothing if it is not there or not whole."""
    try:
        return json.loads(pq.read_metadata(cache).metadata[b"paperlib"])
    except (FileNotFoundError, pa.ArrowInvalid, KeyError, TypeError):
        return {}


# from the cache to arrays


def _read(cache, sample, rng):
    with (
        pq.ParquetFile(cache, memory_map=True) as file,
        contextlib.ExitStack() as stack,
    ):
        rows, n_urls = None, file.metadata.num_rows
        if sample is not None:
            if sample > n_urls:
                raise ValueError(
                    f"sample must be at most {n_urls:,}, the number of URLs in {cache.parent}, got {sample:,}"
                )
            rows = np.sort(
                np.random.default_rng(rng).choice(
                    n_urls, sample, replace=False, shuffle=False
                )
            )
        # all histories need not fit into memory: they go into files without a name, which last as long as the arrays mapped from them
        sinks = {
            name: stack.enter_context(tempfile.TemporaryFile(dir=cache.parent))
            if rows is None
            else io.BytesIO()
            for name in _SCHEMA.names
        }
        ends = [np.zeros(1, np.int64)]
        for batch in _batches(file, rows):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                if column.type != pa.binary():
                    sinks[name].write(column.to_numpy(zero_copy_only=False))
                    continue
                places = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][
                    : len(column) + 1
                ]
                sinks[name].write(
                    memoryview(column.buffers()[2])[places[0] : places[-1]]
                )
                if name == "changed":  # a byte a crawl
                    ends.append(places[1:] - places[0] + ends[-1][-1])
        columns = {
            name: _array(
                sink, _FLAT.get(name) or _SCHEMA.field(name).type.to_pandas_dtype()
            )
            for name, sink in sinks.items()
        }
    return CrawlLog(
        history=History(
            columns.pop("interval"), columns.pop("changed"), np.concatenate(ends)
        ),
        **columns,
    )


def _batches(file, rows):
    """The rows of the file, or `rows` alone; a row group without one of them is not decoded."""
    stop = 0
    for group in range(file.num_row_groups):
        start, stop = stop, stop + file.metadata.row_group(group).num_rows
        if rows is None:
            yield from file.iter_batches(_BATCH, row_groups=[group])
        elif (wanted := rows[slice(*np.searchsorted(rows, (start, stop)))]).size:
            for batch in file.iter_batches(_BATCH, row_groups=[group]):
                here = (
                    wanted[
                        slice(*np.searchsorted(wanted, (start, start + batch.num_rows)))
                    ]
                    - start
                )
                start += batch.num_rows
                if here.size:
                    yield batch.take(here)


def _array(sink, dtype):
    if isinstance(sink, io.BytesIO):
        return np.frombuffer(sink.getbuffer(), dtype)
    sink.flush()
    return np.memmap(sink, dtype, "r")


# from text to the cache


def _convert(folder, sources, progress):
    """Write the cache: under a name of its own, renamed when whole, so that an interruption leaves the old one or none."""
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{CACHE}.")
    os.close(handle)
    try:
        with (
            tqdm(
                total=sum(size for size, _ in sources.values()),
                unit="B",
                unit_scale=True,
                desc="Bing",
                disable=not progress,
            ) as bar,
            ThreadPoolExecutor(os.cpu_count()) as pool,
        ):
            text = _Text(folder, pool, bar)
            tables = _tables(text, RATES in sources)
            _write(
                temporary,
                tables,
                lambda: {
                    "version": _VERSION,
                    "sources": sources,
                    "malformed": text.malformed,
                },
            )
        os.replace(temporary, folder / CACHE)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _write(path, tables, description):
    """Row groups of about _GROUP_URLS URLs; while one is written, the next is gathered."""
    options = {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": False,
    }  # compression halves the speed
    with (
        ThreadPoolExecutor(1) as thread,
        pq.ParquetWriter(path, _SCHEMA, **options) as file,
    ):
        written, parts, n_urls, n_crawls = None, [], 0, 0
        for table, crawls in itertools.chain(tables, [(None, 0)]):
            if (
                table is None
                or n_urls >= _GROUP_URLS
                or n_crawls + crawls > _GROUP_CRAWLS
            ):
                if written:
                    written.result()
                if parts:
                    written = thread.submit(file.write_table, pa.concat_tables(parts))
                parts, n_urls, n_crawls = [], 0, 0
            parts.append(table)
            n_urls, n_crawls = (
                n_urls + (0 if table is None else table.num_rows),
                n_crawls + crawls,
            )
        if written:
            written.result()
        file.add_key_value_metadata({"paperlib": json.dumps(description())})


class _Text:
    """The text files, parsed block by block in a pool of threads, and the count of their malformed lines."""

    def __init__(self, folder, pool, bar):
        self.folder, self.pool, self.bar, self.malformed = folder, pool, bar, {}

    def blocks(self, name, parse):
        """What `parse` makes of each block, in order. Its first array, the reasons, is counted once the block has been dealt with."""
        waiting, line = deque(), 1
        for block in itertools.chain(self._read(name), itertools.repeat(None)):
            if block is not None:
                waiting.append(self.pool.submit(parse, block))
            if not waiting:
                return
            if block is None or len(waiting) > 2 * os.cpu_count():
                result = waiting.popleft().result()
                yield result
                for code in np.unique(result[0][result[0] != kernels.GOOD]):
                    self.note(name, code, np.flatnonzero(result[0] == code) + line)
                line += result[0].size

    def note(self, name, code, lines):
        """Count malformed lines; the first few are named."""
        entry = self.malformed.setdefault(name, {}).setdefault(_REASONS[code], [0, []])
        entry[0] += lines.size
        entry[1] = (entry[1] + lines[:_N_NAMED].tolist())[:_N_NAMED]

    def none(self, name, rule):
        """The error for a file that leaves nothing."""
        return ValueError(
            f"{self.folder / name} must hold at least one {rule}, got none; malformed lines: {_told(self.malformed) or 'none'}"
        )

    def _read(self, name):
        """Blocks of whole lines, each line with its line break. Blank lines at the end of the file are left out."""
        size = _BLOCK
        with open(self.folder / name, "rb", buffering=0) as file:
            while True:
                data = file.read(size)
                end = len(data.rstrip(b" \r\n"))
                if len(data) < size:  # the end of the file
                    self.bar.update(len(data))
                    if end:
                        yield data[:end] + b"\n"
                    return
                # up to the break after the last line that is not blank, or before it: blank lines wait for what follows
                stop = end and (
                    data.find(b"\n", end) + 1 or data.rfind(b"\n", 0, end) + 1
                )
                file.seek(
                    stop - size, os.SEEK_CUR
                )  # cheaper than to copy the rest to the front of the next block
                if stop:
                    self.bar.update(stop)
                    yield memoryview(data)[:stop]
                elif size >= _LONGEST:
                    raise ValueError(
                        f"{self.folder / name} must have lines of less than {size:,} bytes, got a longer one"
                    )
                else:
                    size *= 2


def _tables(text, with_rates):
    """Arrow tables of the good lines of the history file, each with its number of crawls."""
    hosts, constrained = _table(text, HOSTS, partial(_pairs, whole=True, highest=1))
    urls, host = _table(text, URLS, partial(_pairs, whole=True))
    importance, seen = np.full(urls.size, np.nan), np.zeros(urls.size, dtype=bool)
    for reason, url, value in text.blocks(IMPORTANCE, _pairs):
        place = _find(
            urls, url
        )  # not there: an importance that nobody asks for does no harm
        kernels.mark_repeated(seen, place, reason)
        good = (reason == kernels.GOOD) & (place >= 0)
        importance[place[good]] = value[good]
    rated, rates = (
        _table(text, RATES, _pairs) if with_rates else (urls[:0], importance[:0])
    )
    rates = np.append(rates, np.nan)  # where -1 points to
    seen[:] = False
    total = np.zeros(2, np.int64)
    for reason, url, n_crawls, interval, changed in text.blocks(HISTORY, _histories):
        place = _find(urls, url)
        in_hosts = _find(hosts, host[place])
        for code, bad in (
            (kernels.NO_HOST, place < 0),
            (kernels.NO_IMPORTANCE, np.isnan(importance[place])),
            (kernels.UNKNOWN_HOST, in_hosts < 0),
        ):
            reason[bad & (reason == kernels.GOOD)] = code
        kernels.mark_repeated(seen, place, reason)
        good = reason == kernels.GOOD
        if not good.all():
            of_good = np.repeat(good, n_crawls)
            interval, changed = interval[of_good], changed[of_good]
            url, place, in_hosts, n_crawls = (
                url[good],
                place[good],
                in_hosts[good],
                n_crawls[good],
            )
        ends = np.cumsum(np.append(0, n_crawls), dtype=np.int32)
        columns = [
            url,
            importance[place],
            host[place],
            constrained[in_hosts] == 1,
            rates[_find(rated, url)],
        ]
        histories = [
            pa.Array.from_buffers(
                pa.binary(),
                url.size,
                [None, pa.py_buffer(ends * flat.itemsize), pa.py_buffer(flat)],
            )
            for flat in (interval, changed)
        ]
        total += url.size, interval.size
        yield pa.Table.from_arrays(columns + histories, schema=_SCHEMA), interval.size
    if not total.all():
        raise text.none(HISTORY, "crawl of a URL that has a host and an importance")


def _table(text, name, parse):
    """Sorted ids of a file and their values; of lines with the same id, the first."""
    none = np.iinfo(np.int64).min
    ids, values = array("q"), None
    for reason, block_ids, block_values in text.blocks(name, parse):
        block_ids[reason != kernels.GOOD] = none  # kept, so that an index is a line
        values = array(block_values.dtype.char) if values is None else values
        ids.frombytes(block_ids.view(np.uint8))
        values.frombytes(block_values.view(np.uint8))
    ids, values = (
        np.asarray(ids),
        np.asarray(values if values is not None else array("d")),
    )
    if not (ids[1:] > ids[:-1]).all():
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        first = np.append(True, ids[1:] != ids[:-1])
        if (lines := np.sort(order[~first & (ids != none)]) + 1).size:
            text.note(name, kernels.REPEATED, lines)
        first &= ids != none
        if not first.all():
            order = order[first]
            ids = ids[first]
        values = values[
            order
        ]  # one array after the other: four of 18.5 million numbers are alive at most
    if not ids.size and name != RATES:
        raise text.none(name, "good line")
    return ids, values


def _find(keys, wanted):
    """Where each of `wanted` stands in the sorted `keys`, -1 if it does not."""
    if not keys.size:
        return np.full(wanted.shape, -1)
    place = np.searchsorted(keys, wanted)
    place[place == keys.size] = 0
    return np.where(keys[place] == wanted, place, -1)


def _pairs(block, whole=False, highest=None):
    """Reason, id and value of each line: id and number, or with `whole` a name, id and integer, not above `highest`."""
    text, words, n_lines = _views(block)
    reason, start, ids = (
        np.zeros(n_lines, np.int8),
        np.zeros(n_lines + 1, np.int64),
        np.zeros(n_lines, np.int64),
    )
    values = np.zeros(n_lines, np.int64 if whole else np.float64)
    kernels.pair_lines(text, words, whole, start, reason, ids, values)
    for line in np.flatnonzero(reason == kernels.HARD):
        reason[line], values[line] = (
            kernels.GOOD,
            float(bytes(block[start[line] : start[line + 1]]).split(b"\t")[1]),
        )
    if not whole or highest is not None:
        good = (values >= 0) & (values <= (highest if whole else np.finfo(float).max))
        reason[(reason == kernels.GOOD) & ~good] = (
            kernels.BIT if whole else kernels.RANGE
        )
    return reason, ids, values


def _views(block):
    """The bytes, the eight from each on as one number, and how many lines there are."""
    block = (
        block if len(block) > 8 else bytes(block).ljust(9)
    )  # fewer than two numbers are another type of array to the compiler
    text = np.frombuffer(block, np.uint8)
    return (
        text,
        np.ndarray(len(block) - 7, "<u8", block, strides=1),
        kernels.count(text, kernels.NEWLINE),
    )


def _histories(block):
    """Reason, URL and number of crawls of each line, and the intervals and bits of all; those of a bad line may be among them."""
    text, words, n_lines = _views(block)
    reason, start, url = (
        np.zeros(n_lines, np.int8),
        np.zeros(n_lines + 1, np.int64),
        np.zeros(n_lines, np.int64),
    )
    n_crawls = np.zeros(n_lines, np.int64)
    most = kernels.count(text, kernels.OPEN)
    interval, changed = np.empty(most), np.empty(most, dtype=bool)
    total = kernels.history_lines(
        text, words, start, reason, url, n_crawls, interval, changed
    )
    ends = np.cumsum(n_crawls)
    for line in np.flatnonzero(reason == kernels.HARD):
        numbers = re.findall(rb"[^\s,\[\]]+", block[start[line] : start[line + 1]])
        lengths = interval[ends[line] - n_crawls[line] : ends[line]]
        lengths[:] = [float(number) for number in numbers[2::2]]
        reason[line] = (
            kernels.GOOD
            if ((lengths > 0) & (lengths < np.inf)).all()
            else kernels.INTERVAL
        )
    return reason, url, n_crawls, interval[:total], changed[:total]
