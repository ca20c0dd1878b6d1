"""Logs read and estimated by the workers of a Dask cluster.

As many tasks as the workers have threads read a part of the log each and store
its rows by a hash of their pages (`shuffling`), in a folder beside the output.
As many others bring the rows of a range of the hash together, and store them
sorted; then each range is estimated, and tables are stored that this process
puts together. Each kind of task begins when those before it are done.
Workers have the file system of this process and its version of paperlib.

Dask's own shuffle would bring the rows together without files, but starts anew
when a worker is lost, needs pandas, and would take rows out of the database
that checks and sorts them.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from recrawl import reading, shuffling
from recrawl.database import database, sql
from recrawl.errors import ArgumentError
from recrawl.formats.source import Source
from recrawl.progress import bar
from recrawl.tally import Tally
from recrawl.types import PathLike

__all__ = ["DistributedLog", "connected", "opened", "run"]

# The user's own line, above `Source.warn_of_keys`, `opened`, its `__enter__`, and the
# function that entered it.
_USER = 5
TIMEOUT = 8  # seconds; a scheduler that is there answers within one


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler whose workers have this version of paperlib.

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

    Examples
    --------
    >>> from distributed import LocalCluster
    >>> with LocalCluster(n_workers=2) as cluster:  # doctest: +SKIP
    ...     with connected(cluster.scheduler_address) as client:
    ...         len(client.nthreads())
    2
    """
    with _client(address) as client:
        _check_versions(client, address)
        yield client


def _client(address):
    """Client of a scheduler, which answers in time."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ImportError(
            "dask needs the package distributed: pip install 'paperlib-crawl[dask]'"
        ) from None
    try:
        get_address_host_port(address)  # else a client may wait for ever
        return Client(address, timeout=TIMEOUT, set_as_default=False)
    except Exception as error:  # of many kinds, by what the address can mean
        why = str(error) or type(error).__name__
        rule = f"must be the address of a running scheduler, got {address!r}: {why}"
        raise ArgumentError("dask", rule) from None


def _check_versions(client, address):
    """Raise a ValueError unless there are workers, all of this version."""

    def version():  # sent to the workers, for their recrawl may differ
        import hashlib
        from pathlib import Path

        import duckdb

        import recrawl

        sources = b"".join(
            path.read_bytes()
            for path in sorted(Path(recrawl.__file__).parent.rglob("*"))
            if path.suffix in (".py", ".sql")
        )
        digest = hashlib.sha256(sources).hexdigest()[:8]
        return f"recrawl {recrawl.__version__} ({digest}), DuckDB {duckdb.__version__}"

    workers, here = client.run(version, on_error="return"), version()
    if not workers:
        rule = f"must be the address of a scheduler with workers, got {address!r}"
        raise ArgumentError("dask", f"{rule}, which has none")
    others = [f"{name} has {there}" for name, there in workers.items() if there != here]
    if others:
        rule = f"must have workers with {here}, as here, but {'; '.join(others)}"
        raise ArgumentError("dask", rule)


def run(
    client: Any,
    function: Callable[..., Any],
    arguments: list[tuple[Any, ...]],
    what: str,
) -> list[Any]:
    """Call a function on the workers, under a progress bar.

    What a lost worker ran or held is run again by others.

    Parameters
    ----------
    client : distributed.Client
        Of `connected`.
    function : callable
        Of each tuple of arguments.
    arguments : list of tuple
        One for each call.
    what : str
        What is done, for the bar and for errors.

    Returns
    -------
    list
        Results in the order of `arguments`.

    Raises
    ------
    RuntimeError
        A call has lost four workers.

    Examples
    --------
    >>> run(client, divmod, [(7, 2), (9, 4)], "dividing")  # doctest: +SKIP
    [(3, 1), (2, 1)]
    """
    from distributed import KilledWorker, as_completed

    futures = [client.submit(function, *given, pure=False) for given in arguments]
    done = {}
    try:
        with bar(total=len(futures), desc=what, unit=" parts") as parts:
            finished = as_completed(futures, loop=client.loop, with_results=True)
            for future, result in finished:
                done[future.key] = result
                parts.update()
    except (KilledWorker, CancelledError) as error:
        why = error or "the scheduler is lost"
        raise RuntimeError(f"{what} was given up: {why}") from error
    finally:
        client.cancel(futures)
    return [done[future.key] for future in futures]


@dataclass(frozen=True)
class DistributedLog(reading.OpenedLog):
    """A log whose parts are stored in files, and mapped over by the workers.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        A database in this process that reads the same files.
    tally : Tally
        Of the rows of all parts.
    n_pages : int
        Number of pages.
    what : str
        The format that its files were taken for.
    client : distributed.Client
        Of `connected`.
    folders : dict of int
        Number of pages by the folder that `reading.save` wrote, in the order
        of pages.
    memory : str
        Memory that the database of each part may use.

    Examples
    --------
    >>> DistributedLog(None, Tally(), 2, "a table", None, {"part0": 2}, "1GiB").n_pages
    2
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
        arguments = [
            (folder, n_pages, self.memory, function)
            for folder, n_pages in self.folders.items()
        ]
        for tally, batches in run(self.client, _map, arguments, "estimating"):
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
    memory: str = "1GiB",
) -> Iterator[DistributedLog]:
    """Read a log as `reading.opened` does, with all workers of a cluster.

    Parameters
    ----------
    address : str
        Of the scheduler.
    folder : path
        Where the parts are stored until the context ends.
    path : path
        As in `reading.opened`.
    state : path, optional
        As in `reading.opened`.
    memory : str, default "1GiB"
        As in `reading.opened`, for each thread of a worker.

    Yields
    ------
    DistributedLog
        As many parts as the workers have threads.

    Raises
    ------
    ImportError, RuntimeError
        As in `connected` and `run`.
    ValueError
        As in `connected` and `reading.opened`.

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
    source.warn_of_keys(found, _USER)
    with connected(address) as client, _scratch(folder) as scratch:
        n, state = sum(client.nthreads().values()), state and Path(state).absolute()
        parts = shuffling.pieces(found, state, n)
        arguments = [(source, part, n, scratch, memory) for part in parts]
        tally, stored, folders = reading.not_read(unknown), [], {}
        for counted, where in run(client, _scatter, arguments, "reading"):
            tally.update(counted)
            stored.append(where)
        arguments = [(files, stored, k, scratch, memory) for k in range(n)]
        for counted, where, n_pages in run(client, _gather, arguments, "grouping"):
            tally.update(counted)
            folders[where] = n_pages
        for where in stored:  # their rows are sorted now, in other files
            shutil.rmtree(where, ignore_errors=True)
        tally.report(path, state=state)
        with reading.saved(folders, what, memory=memory) as log:
            local = log.connection, tally, log.n_pages, what
            yield DistributedLog(*local, client, folders, memory)
        tally.report(path, state=state)


@contextlib.contextmanager
def _scratch(folder):
    """Create a temporary folder in a folder that workers can reach."""
    scratch = tempfile.mkdtemp(dir=Path(folder).absolute(), prefix=".recrawl-")
    try:
        yield scratch
    finally:
        # Tasks of a failed run may still write. Once the folder is renamed, they
        # cannot create files in it while it is removed.
        removed = Path(scratch).rename(f"{scratch}-removed")
        shutil.rmtree(removed, ignore_errors=True)


def _scatter(source, part, n, folder, memory):
    """Task: store the rows of a part of the log by page; its tally and folder."""
    # a folder of this attempt alone: a worker that was thought lost may still
    # be at work on the same part
    where = tempfile.mkdtemp(dir=folder)
    return shuffling.scatter(source, part, n, where, memory), where


def _gather(files, stored, share, folder, memory):
    """Task: group and save a share of the pages; its tally, folder and pages."""
    where, tally = tempfile.mkdtemp(dir=folder), Tally()
    parts = shuffling.stored(stored, share)
    everything = itertools.chain.from_iterable(parts.values())
    with database(memory, everything) as (connection, _):
        connection.execute("set threads = 1")
        connection.execute(sql("tables"))
        shuffling.gather(connection, parts)
        reading.collect(connection, files, tally)
        log = reading.grouped(connection, tally, "")
        reading.save(log, where)
    return tally, where, log.n_pages


def _map(folder, n_pages, memory, function):
    """Task: save a function's tables of each batch; tally and files."""
    where, batches = tempfile.mkdtemp(dir=folder), []
    with reading.saved({folder: n_pages}, "", memory=memory) as log:
        for number, batch in enumerate(log.batches()):
            batches.append([])
            for k, table in enumerate(function(batch)):
                path = f"{where}/{number}-{k}.parquet"
                pq.write_table(table, path, compression="zstd")
                batches[-1].append(path)
    return log.tally, batches
