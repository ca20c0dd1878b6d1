"""Logs read and estimated by the workers of a Dask cluster.

Each thread of each worker reads all of the log and keeps the pages of one
range of the hash that orders them (`reading.part`), so that workers exchange
nothing. Its part is stored in a folder beside the output; then other tasks
read the parts, estimate, and store tables that this process puts together.
Workers have the file system of this process and its version of paperlib.
"""

import contextlib
import tempfile
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paperlib.crawl_log import reading
from paperlib.crawl_log.formats import files_of
from paperlib.crawl_log.progress import bar
from paperlib.crawl_log.tally import Tally
from paperlib.processes import History

__all__ = ["DistributedLog", "connected", "opened", "run"]

TIMEOUT = 8  # seconds for a scheduler to answer; one that is there takes less than 1


@contextlib.contextmanager
def connected(address):
    """Connect to a Dask scheduler.

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
    >>> with LocalCluster(  # doctest: +SKIP
    ...     n_workers=2
    ... ) as cluster, connected(cluster.scheduler_address) as client:
    ...     len(client.nthreads())
    2
    """
    with _client(address) as client:
        _check_versions(client, address)
        yield client


def _client(address):
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ImportError(
            "dask needs the package distributed: pip install 'paperlib-crawl[dask]'"
        ) from None
    try:
        get_address_host_port(address)  # else a client of no address may never end
        return Client(address, timeout=TIMEOUT, set_as_default=False)
    except Exception as error:  # of many kinds, by what the address can mean
        why = str(error) or type(error).__name__
        raise ValueError(
            f"dask must be the address of a running scheduler, got {address!r}: {why}"
        ) from None


def _check_versions(client, address):
    """Raise a ValueError if there are no workers, or workers of another version."""

    def version():  # sent to the workers as it is, for their paperlib may differ
        import hashlib
        from pathlib import Path

        import duckdb

        import paperlib

        sources = b"".join(
            path.read_bytes()
            for path in sorted(Path(paperlib.__file__).parent.rglob("*"))
            if path.suffix in (".py", ".sql")
        )
        digest = hashlib.sha256(sources).hexdigest()[:8]
        return (
            f"paperlib {paperlib.__version__} ({digest}), DuckDB {duckdb.__version__}"
        )

    workers, here = client.run(version, on_error="return"), version()
    if not workers:
        raise ValueError(
            "dask must be the address of a scheduler with workers, "
            f"got {address!r}, which has none"
        )
    others = [f"{name} has {there}" for name, there in workers.items() if there != here]
    if others:
        raise ValueError(
            f"dask must have workers with {here}, as here, but {'; '.join(others)}"
        )


def run(client, function, arguments, what):
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
        with bar(len(futures), desc=what, unit=" parts") as parts:
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
class DistributedLog:
    """A log in parts, with the methods of `reading.OpenedLog` that `estimate` needs.

    Parameters
    ----------
    client : distributed.Client
        Of `connected`.
    folders : dict of int
        Number of pages by the folder that `reading.save` wrote, in the order
        of pages.
    tally : Tally
        Of the rows of all parts.
    memory : str
        Memory that the database of each part may use.

    Examples
    --------
    >>> DistributedLog(None, {"part0": 2, "part1": 3}, Tally(), "1GiB").n_pages
    5
    """

    client: object
    folders: dict
    tally: Tally
    memory: str

    @property
    def counts(self):
        """Number of rows by what became of them."""
        return dict(self.tally.counts)

    @property
    def n_pages(self):
        """Number of pages."""
        return sum(self.folders.values())

    def sample(self, n_pages):
        """Read the same pages as `reading.OpenedLog.sample`, in this process.

        Parameters
        ----------
        n_pages : int
            How many.

        Returns
        -------
        Batch
        """
        batches = []
        for folder, size in self.folders.items():
            if n_pages > 0 and size:
                with reading.saved(folder, memory=self.memory) as log:
                    batches.append(log.sample(n_pages))
                n_pages -= size
        pages = pa.concat_tables([batch.page for batch in batches])
        time = np.concatenate([batch.time for batch in batches])
        return reading.Batch(pages, _all([b.history for b in batches]), time)

    def map(self, function):
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
        arguments = [(folder, self.memory, function) for folder in self.folders]
        for tally, paths in run(self.client, _map, arguments, "estimating"):
            self.tally.update(tally)
            files = [pq.ParquetFile(path) for path in paths]
            # a row group for each batch; a part without pages has no files
            for k in range(files[0].num_row_groups if files else 0):
                yield [file.read_row_group(k) for file in files]


def _all(histories):
    """Put the pages of several histories one after the other."""
    interval, changed, _ = zip(*(each.ragged() for each in histories), strict=True)
    n_crawls = np.concatenate([each.n_crawls for each in histories])
    offsets = np.append(0, np.cumsum(n_crawls))
    return History(np.concatenate(interval), np.concatenate(changed), offsets)


@contextlib.contextmanager
def opened(address, folder, path, *, state=None, memory="1GiB"):
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
    memory : str
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
    >>> with opened("tcp://10.0.0.5:8786", "out", "log") as log:  # doctest: +SKIP
    ...     log.n_pages
    """
    files_of(path)  # a wrong path is reported before any connection
    with connected(address) as client, _scratch(folder) as scratch:
        n, state = sum(client.nthreads().values()), state and Path(state).absolute()
        arguments = [
            (Path(path).absolute(), (k, n), state, memory, scratch) for k in range(n)
        ]
        parts = run(client, _open, arguments, "reading")
        folders = {where: n_pages for _, where, n_pages in parts}
        log = DistributedLog(client, folders, Tally(), memory)
        for tally, *_ in parts:
            log.tally.update(tally)
        log.tally.report(path)
        yield log
        log.tally.report(path)


def _scratch(folder):
    """Create a temporary folder in a folder that workers can reach."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(
        dir=Path(folder).absolute(),
        prefix=".paperlib-",
        ignore_cleanup_errors=True,  # tasks may still write there when a run fails
    )


def _open(path, share, state, memory, folder):
    """Task: read a part of the log and save it; its tally, folder and pages."""
    # a folder of this attempt alone: a worker that was thought lost may still
    # be at work on the same part
    where = tempfile.mkdtemp(dir=folder)
    with reading.part(path, share, state=state, memory=memory) as log:
        reading.save(log, where)
    return log.tally, where, log.n_pages


def _map(folder, memory, function):
    """Task: save a function's tables of each batch; the tally, and the files."""
    where, writers = tempfile.mkdtemp(dir=folder), {}
    with reading.saved(folder, memory=memory) as log, contextlib.ExitStack() as stack:
        for batch in log.batches():
            for k, table in enumerate(function(batch)):
                path = f"{where}/{k}.parquet"
                if path not in writers:
                    writer = pq.ParquetWriter(path, table.schema, compression="zstd")
                    writers[path] = stack.enter_context(writer)
                writers[path].write_table(table)
    return log.tally, list(writers)
