"""Work for the workers of a Dask cluster, which have this version of paperlib and the file system of this process."""

import contextlib
import tempfile
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from paperlib.crawl_log import reading
from paperlib.processes import History

_SECONDS = 8  # for a scheduler to answer


@contextlib.contextmanager
def connected(address):
    """A client of the scheduler at an address.

    Raises
    ------
    ImportError
        The package distributed is missing.
    ValueError
        No scheduler answers in time; no workers; workers with another version than this process, whose results would differ.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ImportError(
            "dask needs the package distributed: pip install 'paperlib[dask]'"
        ) from None
    try:
        get_address_host_port(
            address
        )  # a client of what is no address at all may never end
        client = Client(address, timeout=_SECONDS, set_as_default=False)
    except Exception as error:  # whatever an address can mean
        why = str(error) or type(error).__name__
        raise ValueError(
            f"dask must be the address of a running scheduler, got {address!r}: {why}"
        ) from None

    def version():  # goes to the workers as it stands, for theirs may be another
        import hashlib
        from pathlib import Path

        import duckdb

        import paperlib

        sources = b"".join(
            path.read_bytes()
            for path in sorted(Path(paperlib.__file__).parent.rglob("*.*"))
        )
        return f"paperlib {paperlib.__version__} ({hashlib.sha256(sources).hexdigest()[:8]}), DuckDB {duckdb.__version__}"

    with client:
        workers = client.run(version, on_error="return")
        if not workers:
            raise ValueError(
                f"dask must be the address of a scheduler with workers, got {address!r}, which has none"
            )
        if others := [
            f"{worker} has {found}"
            for worker, found in workers.items()
            if found != version()
        ]:
            raise ValueError(
                f"dask must have workers with {version()}, as here, but {'; '.join(others)}"
            )
        yield client


def run(client, function, arguments, what):
    """What a function gives for each of some tuples of arguments, in their order, under a progress bar.

    What a lost worker ran or held is run again by others, after four of them a RuntimeError.
    """
    from distributed import KilledWorker, as_completed

    futures = [client.submit(function, *given, pure=False) for given in arguments]
    done = {}
    try:
        with tqdm(
            total=len(futures),
            desc=what,
            unit=" parts",
            delay=2,
            disable=None,
            leave=False,
        ) as bar:
            for future, result in as_completed(
                futures, loop=client.loop, with_results=True
            ):
                done[future.key] = result
                bar.update()
    except (KilledWorker, CancelledError) as error:
        raise RuntimeError(
            f"{what} was given up: {error or 'the scheduler is lost'}"
        ) from error
    finally:
        client.cancel(futures)
    return [done[future.key] for future in futures]


@dataclass(frozen=True)
class Log:
    """As `reading.Log`, in parts: folders that `reading.save` wrote, in the order of their pages, with the number of these."""

    client: object
    folders: dict
    tally: reading.Tally
    memory: str

    @property
    def counts(self):
        return dict(self.tally.counts)

    @property
    def n_pages(self):
        return sum(self.folders.values())

    def sample(self, n_pages):
        """As `reading.Log.sample`, the same pages; read here."""
        batches = []
        for folder, size in self.folders.items():
            if n_pages > 0 and size:
                with reading.saved(folder, memory=self.memory) as log:
                    batches.append(log.sample(n_pages))
                n_pages -= size
        interval, changed, offsets = zip(
            *(batch.history.ragged() for batch in batches), strict=True
        )
        ends = np.cumsum(np.concatenate([np.diff(o) for o in offsets]))
        history = History(
            np.concatenate(interval), np.concatenate(changed), np.append(0, ends)
        )
        return reading.Batch(
            pa.concat_tables([batch.page for batch in batches]),
            history,
            np.concatenate([b.time for b in batches]),
        )

    def map(self, function):
        """As `reading.Log.map`, of a function that gives several tables a batch; all parts are done before the first batch comes."""
        parts = run(
            self.client,
            _map,
            [(folder, self.memory, function) for folder in self.folders],
            "estimating",
        )
        for tally, paths in parts:
            self.tally.update(tally)
            files = [pq.ParquetFile(path) for path in paths]
            for k in range(
                files[0].num_row_groups if files else 0
            ):  # as many as there were batches
                yield [file.read_row_group(k) for file in files]


@contextlib.contextmanager
def opened(address, folder, path, *, state=None, memory="1GiB"):
    """As `reading.opened`, read by all workers of a cluster: each thread takes those of its pages, to a place in `folder`."""
    reading.files_of(path)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(connected(address))
        Path(folder).mkdir(parents=True, exist_ok=True)
        # tasks of this run may still write when it fails
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(
                dir=Path(folder).absolute(),
                prefix=".paperlib-",
                ignore_cleanup_errors=True,
            )
        )
        n, state = sum(client.nthreads().values()), state and Path(state).absolute()
        parts = run(
            client,
            _open,
            [(Path(path).absolute(), (k, n), state, memory, folder) for k in range(n)],
            "reading",
        )
        log = Log(
            client,
            {where: n_pages for _, where, n_pages in parts},
            reading.Tally(),
            memory,
        )
        for tally, *_ in parts:
            log.tally.update(tally)
        log.tally.report(path)
        yield log
        log.tally.report(path)


def _open(path, share, state, memory, folder):
    where = tempfile.mkdtemp(
        dir=folder
    )  # of this attempt alone: there may be another, by a worker that is lost but alive
    with reading.part(path, share, state=state, memory=memory) as log:
        reading.save(log, where)
    return log.tally, where, log.n_pages


def _map(folder, memory, function):
    where, writers = tempfile.mkdtemp(dir=folder), []
    with reading.saved(folder, memory=memory) as log, contextlib.ExitStack() as stack:
        for batch in log.batches():
            for k, table in enumerate(function(batch)):
                if k == len(writers):
                    writers.append(
                        stack.enter_context(
                            pq.ParquetWriter(
                                f"{where}/{k}.parquet", table.schema, compression="zstd"
                            )
                        )
                    )
                writers[k].write_table(table)
    return log.tally, [f"{where}/{k}.parquet" for k in range(len(writers))]
