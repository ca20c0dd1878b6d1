"""Logs read and estimated by the workers of a Dask cluster.

As many tasks as the workers have threads read a part of the log each (`pieces`) and
store its rows by ranges of the hash that orders the pages, in a folder beside the
output. As many others bring the rows of a range together, and store them sorted;
then each range is estimated, and tables are stored that this process puts together.
Each kind of task begins when those before it are done. So each task reads an n-th
of the log, or of what was stored; one that is lost is run again by itself, for its
files are whole or not used. Workers have the file system of this process and its
version of this package.

Dask's own shuffle would bring the rows together without files, but starts anew
when a worker is lost, needs pandas, and would take rows out of the database
that checks and sorts them.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paperlib.errors import ArgumentError
from recrawl.log import reading
from recrawl.log.database import MEMORY, assign, database, pattern, quoted, run, sql
from recrawl.log.files import temporary_folder
from recrawl.log.formats import recognise
from recrawl.log.formats.inserting import insert
from recrawl.log.formats.source import Source
from recrawl.log.tally import Tally
from recrawl.progress import bar
from recrawl.types import PathLike

__all__ = ["DistributedLog", "connected", "opened", "pieces"]

TIMEOUT = 8  # seconds; a scheduler that is there answers within one
_ALL_ROWS = (0, 2**63 - 1)
_READ = ("crawl", "fetches", "page_state", "change", "state")  # what is read into
_GROUPED = ("page", "sorted")  # what is left of a log when it has been read


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler whose workers have this version of the package.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.5:8786".

    Yields
    ------
    distributed.Client
        A client of the scheduler.

    Raises
    ------
    ImportError
        The package distributed is missing.
    ValueError
        No scheduler answers in time; no workers; workers with another version
        than this process, whose results would differ.
    RuntimeError
        The scheduler went away.

    Examples
    --------
    >>> from distributed import LocalCluster
    >>> with LocalCluster(n_workers=2) as cluster:  # doctest: +SKIP
    ...     with connected(cluster.scheduler_address) as client:
    ...         len(client.nthreads())
    2
    """
    try:
        from distributed.client import Client, ClosedClientError
        from distributed.comm import CommClosedError, get_address_host_port
    except ImportError:
        raise ImportError(
            "dask needs the package distributed: pip install '.[dask]' in a clone"
        ) from None
    try:
        get_address_host_port(address)  # else a client may wait for ever
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
    except Exception as error:  # of many kinds, by what the address can mean
        why = str(error) or type(error).__name__
        rule = f"must be the address of a running scheduler, got {address!r}: {why}"
        raise ArgumentError("dask", rule) from None
    log = logging.getLogger("distributed.client")
    log.disabled = True  # else it prints how it tries to come back
    try:
        with client:
            _check_versions(client, address)
            yield client
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise RuntimeError(f"the Dask scheduler {address} went away") from error
    finally:
        log.disabled = False


def _check_versions(client, address):
    """Raise a ValueError unless there are workers, all of this version."""

    def version():  # sent to the workers as it is here
        import duckdb

        import recrawl

        return f"recrawl {recrawl.__version__}, DuckDB {duckdb.__version__}"

    workers, here = client.run(version, on_error="return"), version()
    others = [f"{name} has {there}" for name, there in workers.items() if there != here]
    if others or not workers:
        rule = f"must be the address of a scheduler with workers that have {here}"
        why = "; ".join(others) or "it has no workers"
        raise ArgumentError("dask", f"{rule}, as here, got {address!r}: {why}")


def _on_workers(client, function, arguments, what):
    """Results of a function of each tuple of arguments, under a progress bar.

    What a lost worker ran or held is run again by others; a call that has lost four
    is given up.
    """
    from distributed import KilledWorker, as_completed

    futures = client.map(function, *zip(*arguments, strict=True), pure=False)
    done = as_completed(futures, loop=client.loop)
    try:
        for _ in bar(done, total=len(futures), desc=what, unit=" parts"):
            pass
        return client.gather(futures)
    except KilledWorker as error:
        last = error.last_worker.address
        raise RuntimeError(
            f"{what} was given up: one part lost worker after worker, {last} the last; "
            "if they needed more memory than they have, lower --memory"
        ) from error
    finally:
        client.cancel(futures)


@dataclass(frozen=True)
class DistributedLog(reading.OpenedLog):
    """A log whose parts are stored in files, and mapped over by the workers.

    Parameters
    ----------
    connection, tally, n_pages, what
        As of an `OpenedLog`; the database is in this process and reads the same files.
    client : distributed.Client
        Of `connected`.
    folders : dict of int
        Number of pages by the folder of a part, in the order of pages.
    memory : str
        Memory that the database of each part may use.
    """

    client: object
    folders: dict
    memory: str

    def map(self, function: Callable[..., Any]) -> Iterator[Any]:
        """Apply a function to each batch, on the workers.

        All parts are done before the first result comes.

        Parameters
        ----------
        function : callable
            Of one batch; returns several tables.

        Yields
        ------
        list of pyarrow.Table
            The tables of each batch, in the order of pages.
        """
        arguments = [(*part, self.memory, function) for part in self.folders.items()]
        for tally, batches in _on_workers(self.client, _map, arguments, "estimating"):
            self.tally.update(tally)
            for paths in batches:
                yield [pq.ParquetFile(path).read() for path in paths]


@contextlib.contextmanager
def opened(
    address: str,
    folder: PathLike,
    path: PathLike,
    *,
    state: PathLike | None = None,
    memory: str = MEMORY,
) -> Iterator[DistributedLog]:
    """Read a log as `reading.opened` does, with all workers of a cluster.

    Parameters
    ----------
    address : str
        Of the scheduler.
    folder : path
        Where the parts are stored until the context ends.
    path, state
        As in `reading.opened`.
    memory : str, default "50%"
        As in `reading.opened`, for each thread of a worker; a share is one of the
        machine's, for all of its threads together.

    Yields
    ------
    DistributedLog
        As many parts as the workers have threads.

    Raises
    ------
    ImportError, ValueError
        As in `connected` and `reading.opened`.
    RuntimeError
        A part has lost four workers, or the scheduler went away.

    Warns
    -----
    BadRowsWarning
        As in `reading.opened`.

    Examples
    --------
    >>> address = "tcp://10.0.0.5:8786"
    >>> with opened(address, "out", "log") as log:  # doctest: +SKIP
    ...     log.n_pages
    1000
    """
    source = Source.of(path).absolute()
    # a wrong path is reported before any connection
    found, unknown = source.files()
    files, what = [file for file, _ in found], found[0][1].what
    with connected(address) as client, temporary_folder(folder) as scratch:
        n, state = sum(client.nthreads().values()), state and Path(state).absolute()
        memory = _shared(memory, client.nthreads())
        arguments = [
            (source, part, n, scratch, memory) for part in pieces(found, state, n)
        ]
        tally, stored, folders = reading.not_read(unknown), [], {}
        for counts, where in _on_workers(client, _scatter, arguments, "reading"):
            tally.update(counts)
            stored.append(where)
        arguments = [(files, stored, k, scratch, memory) for k in range(n)]
        for counts, *part in _on_workers(client, _gather, arguments, "grouping"):
            tally.update(counts)
            folders |= [part]
        for where in stored:  # their rows are sorted now, in other files
            shutil.rmtree(where, ignore_errors=True)
        tally.report(path, state=state)
        with _saved(folders, what, memory) as log:
            yield DistributedLog(
                log.connection, tally, log.n_pages, what, client, folders, memory
            )
        tally.report(path, state=state)


def _shared(memory, n_threads):
    """Memory for one thread: a share of a machine's is one for all of its threads."""
    if not memory.endswith("%"):
        return memory
    on_machine = Counter()
    for worker, n in n_threads.items():
        on_machine[worker.rpartition(":")[0]] += n
    return f"{float(memory[:-1]) / max(on_machine.values())}%"


def pieces(
    files: list[tuple[Path, Any]], state: Path | None, n: int
) -> list[list[tuple[Path, int | None, tuple[int, int]]]]:
    """Cut a log into at most n parts of about the same number of bytes.

    Parameters
    ----------
    files : list of tuple of pathlib.Path and Format
        Of `Source.files`. A table in Parquet, or the state, that is more than a
        part by itself is cut into n; other files are not cut.
    state : pathlib.Path or None
        A Parquet file that `recrawl.estimate` wrote.
    n : int
        How many parts.

    Returns
    -------
    list of list of tuple
        Of each piece of each part the file, its number in the log, or None of the
        state, and its first row, from 0, and the row after the last.

    Examples
    --------
    >>> from recrawl.log.formats.tables import FORMATS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.parquet")
    ...     pq.write_table(pa.table({"url": ["a"] * 9}), path)
    ...     parts = pieces([(path, FORMATS[1])], None, 2)
    >>> [rows for part in parts for _, _, rows in part]
    [(0, 4), (4, 9)]
    """
    found: list[tuple[Any, int | None, bool]] = [
        (file, k, format.kind == "table") for k, (file, format) in enumerate(files)
    ]
    if state is not None:
        found.append((state, None, True))
    found.sort(key=lambda given: given[0].stat().st_size)
    total = sum(file.stat().st_size for file, *_ in found)
    cut = []
    for file, number, may_cut in found:
        large = may_cut and file.stat().st_size > total / n
        n_rows = large and _n_rows(file)
        cuts = [n_rows * k // n for k in range(n + 1)] if n_rows else _ALL_ROWS
        cut += [(file, number, rows) for rows in itertools.pairwise(cuts)]
    return [cut[k::n] for k in range(min(n, len(cut)))]


def _n_rows(file):
    """Rows of a Parquet file; 0 of others, and what reads them says what they are."""
    with contextlib.suppress(pa.ArrowInvalid):
        return pq.ParquetFile(file).metadata.num_rows
    return 0


def _scatter(source, part, n, folder, memory):
    """Task: store the rows of a part of the log by page; its tally and folder."""
    # a folder of this attempt alone: a worker that was thought lost may still
    # be at work on the same part
    where, tally = tempfile.mkdtemp(dir=folder), Tally()
    with database(memory) as (connection, temporary):
        connection.execute("set threads = 1")
        connection.execute(sql("tables"))
        for file, number, rows in part:
            if number is None:
                reading.read_state(connection, file, rows)
                continue
            given = recognise(file, source.format), source, temporary, tally
            insert(connection, number, file, *given, rows)
        for table in _READ:
            assign(connection, folder=f"{where}/{table}")
            query = (
                f"copy (select *, share_of(url, {n}) as share from {table}) to "
                "(getvariable('folder')) (format parquet, partition_by (share))"
            )
            run(connection, query, "storing")
    return tally, where


def _gather(files, stored, share, folder, memory):
    """Task: group and save a share of the pages; its tally, folder and pages."""
    where, tally = tempfile.mkdtemp(dir=folder), Tally()
    parts = {
        table: [
            file
            for one in stored
            for file in Path(one, table, f"share={share}").glob("*.parquet")
        ]
        for table in _READ
    }
    everything = itertools.chain.from_iterable(parts.values())
    with database(memory, everything) as (connection, _):
        connection.execute("set threads = 1")
        connection.execute(sql("tables"))
        for table, some in parts.items():
            source = "read_parquet($files, hive_partitioning = false)"
            query = f"insert into {table} by name from {source}"
            if some:
                run(connection, query, "gathering", files=[*map(pattern, some)])
        reading.collect(connection, files, tally)
        n_pages = reading.grouped(connection, tally, "").n_pages
        for table in _GROUPED:
            assign(connection, file=f"{where}/{table}.parquet")
            connection.execute(
                f"copy {table} to (getvariable('file')) (format parquet)"
            )
    return tally, where, n_pages


def _map(folder, n_pages, memory, function):
    """Task: save a function's tables of each batch; tally and files."""
    where, batches = tempfile.mkdtemp(dir=folder), []
    with _saved({folder: n_pages}, "", memory) as log:
        for number, batch in enumerate(log.batches()):
            batches.append([])
            for k, table in enumerate(function(batch)):
                path = f"{where}/{number}-{k}.parquet"
                pq.write_table(table, path, compression="zstd")
                batches[-1].append(path)
    return log.tally, batches


@contextlib.contextmanager
def _saved(folders, what, memory):
    """Open the parts in some folders, with their numbers of pages, as one log."""
    starts = itertools.accumulate(folders.values(), initial=0)
    with database(memory) as (connection, _):
        connection.execute("set threads = 1")
        offsets = dict(zip(folders, starts, strict=False))
        for table in _GROUPED:
            parts = " union all ".join(
                f"select * replace (i + {start} as i) "
                f"from read_parquet({quoted(f'{pattern(folder)}/{table}.parquet')}, "
                "hive_partitioning = false)"
                for folder, start in offsets.items()
            )
            connection.execute(f"create view {table} as {parts}")
        yield reading.OpenedLog(connection, Tally(), sum(folders.values()), what)
