"""Logs on a Dask cluster of two worker processes, beside one machine.

The same numbers, lost workers, and clusters that cannot be used.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

import recrawl
from recrawl import cli
from recrawl.log import cluster as crawl_log_cluster
from recrawl.log.tally import KNOWN, TORN
from recrawl.rates import host_prior
from tests.recrawl.crawl_logs import recorded, table, write

READING = "recrawl.log.reading"
CLUSTER = "recrawl.log.cluster"


@pytest.fixture(scope="module")
def cluster():
    # Some seconds after it lost a worker, the cluster closes the process that
    # restarts workers of that name if at that moment there is none: as when the
    # next test has just killed the new one.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@contextlib.contextmanager
def patched(client, module, name, change, **options):
    """Change a name of a module on the workers, within the context."""

    def patch(change):
        import importlib

        found = importlib.import_module(module)
        old = getattr(found, name)
        setattr(found, name, change(old))
        return old

    before = client.run(patch, change, **options)
    yield
    for worker in before.keys() & client.nthreads().keys():  # the others are new
        client.run(patch, lambda _, old=before[worker]: old, workers=[worker])


def killing(marker, number=None):
    """Make a function kill a process, by default its own, when it is first called."""

    def change(function):
        def kill_once(*arguments, **options):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                os.kill(number or os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return kill_once

    return change


COLUMNS = ("url", "time", "changed", "importance", "status")
NO_ROWS = "broken,row,with,more,than,five\n"  # what the CSV reader refuses


def log_rows(n_rows, seed, start=0.0):
    """Rows of 200 pages: some repeated, contradicted, failed or bad."""
    rng = np.random.default_rng(seed)
    pages = rng.integers(200, size=n_rows)
    times = 1.6e9 + start + rng.integers(0, 3_000_000, n_rows)
    rows = []
    for page, time in zip(pages, times, strict=True):
        bit = int(rng.random() < (page + 1) / 250)
        importance, status = rng.integers(1, 4), rng.choice([200, 200, 200, 404])
        url = f"http://h{page % 7}/{page}"
        rows.append((url, int(time), bit, float(importance), int(status)))
        if rng.random() < 0.1:
            rows.append((*rows[-1][:2], bit ^ int(rng.random() < 0.5), *rows[-1][3:]))
    for k in rng.integers(len(rows), size=40):
        url, time, bit, importance, _ = rows[k]
        rows[k] = [
            ("", time, bit, importance, 200),
            (url, "soon", bit, 1.0, 200),
            (url, time, "maybe", 1.0, 200),
        ][k % 3]
    return rows


def csv_folder(folder, rows):
    thirds = [rows[k::3] for k in range(3)]
    write(folder / "a.csv", table(thirds[0], COLUMNS) + NO_ROWS)
    write(folder / "b.tsv", table(thirds[1], COLUMNS, "\t"))
    write(folder / "c.csv.gz", table(thirds[2], COLUMNS) + NO_ROWS)
    return folder


def parquet_file(path, rows):
    columns = {name: [str(row[k]) for row in rows] for k, name in enumerate(COLUMNS)}
    pq.write_table(pa.table(columns), path, row_group_size=500)
    return path


def estimated(log, output, **options):
    """What `estimate` returns, and the messages of its warnings."""
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    return recorded(recrawl.estimate, log, output, force=True, **options)


def assert_same(one, other):
    """Check that files have the same rows.

    The last digits of NumPy's sums depend on where in a batch a page lies.
    """
    a, b = pq.read_table(one), pq.read_table(other)
    assert a.column_names == b.column_names
    for name in a.column_names:
        x, y = (column.combine_chunks() for column in (a[name], b[name]))
        if pa.types.is_list(x.type):
            assert x.value_lengths().equals(y.value_lengths())
            x, y = x.flatten(), y.flatten()
        if pa.types.is_floating(x.type):
            x, y = x.to_numpy(False), y.to_numpy(False)
            np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-13, err_msg=name)
        else:
            assert x.equals(y), name


@pytest.mark.slow
@pytest.mark.parametrize("make", [csv_folder, parquet_file])
def test_estimate_gives_what_one_machine_gives(client, tmp_path, make, monkeypatch):
    monkeypatch.setattr(host_prior, "SAMPLE", 150)  # from both parts
    monkeypatch.chdir(tmp_path)  # workers are elsewhere
    Path("new").mkdir()
    suffix = "" if make is csv_folder else ".parquet"
    for number, start in enumerate((0.0, 2_000_000.0)):
        # the second log overlaps with the state of the first
        log = make(Path(f"log{number}{suffix}"), log_rows(3000, number, start))
        local, told = estimated(log, "local.parquet", state="local_state.parquet")
        # many batches to a part
        with patched(client, READING, "ROWS_PER_BATCH", lambda _: 300):
            dask, told_by_dask = estimated(
                log,
                "new/dask.parquet",
                state="dask_state.parquet",
                dask=client.scheduler.address,
            )
        assert dask == local
        assert told_by_dask == told
        assert len(told) in (2, 3)  # left out, used in part, and two at one time
        assert dask.counts[TORN] > 10
        assert (KNOWN in dask.counts) == (number == 1)
        assert_same("local.parquet", "new/dask.parquet")
        assert_same("local_state.parquet", "dask_state.parquet")
    assert pq.ParquetFile("new/dask.parquet").num_row_groups > 10
    assert os.listdir("new") == ["dask.parquet"], "and nothing else"


@pytest.mark.slow
@pytest.mark.parametrize(  # in each kind of task
    ("module", "name"), [(CLUSTER, "insert"), (READING, "grouped"), (CLUSTER, "_saved")]
)
def test_a_worker_killed_while_it_estimates_loses_nothing(
    client, tmp_path, module, name
):
    log = parquet_file(tmp_path / "log.parquet", log_rows(3000, 0))
    expected = estimated(log, tmp_path / "local.parquet")
    output, address = tmp_path / "out/dask.parquet", client.scheduler.address
    before = client.nthreads().keys()
    with patched(client, module, name, killing(str(tmp_path / "died"))):
        assert estimated(log, output, dask=address) == expected
    assert (tmp_path / "died").exists()
    client.wait_for_workers(2, timeout=60)
    assert client.nthreads().keys() != before, "a worker was lost"
    assert_same(tmp_path / "local.parquet", output)
    assert os.listdir(output.parent) == ["dask.parquet"]


@pytest.mark.slow
def test_a_task_that_kills_worker_after_worker(client, tmp_path):
    log = write(tmp_path / "log.csv", "url,time,changed\na,2026-01-01,0\n")
    (tmp_path / "out").mkdir()
    output, address = tmp_path / "out/dask.parquet", client.scheduler.address

    def allow(n_failures, dask_scheduler=None):
        before = dask_scheduler.allowed_failures
        dask_scheduler.allowed_failures = n_failures
        return before

    before = client.run_on_scheduler(allow, 0)
    try:
        with (
            patched(client, READING, "grouped", killing(str(tmp_path / "died"))),
            pytest.raises(
                RuntimeError, match=r"grouping was .* lost worker .* --memory"
            ),
        ):
            recrawl.estimate(log, output, dask=address)
    finally:
        client.run_on_scheduler(allow, before)
    assert os.listdir(output.parent) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "nowhere", "", "127.0.0.1:port"]
)
def test_no_scheduler(tmp_path, capsys, monkeypatch, address):
    monkeypatch.setattr(crawl_log_cluster, "TIMEOUT", 0.5)
    log = write(tmp_path / "log.csv", "url,time,changed\na,2026-01-01,0\n")
    rates = str(tmp_path / "rates.parquet")
    assert cli.main(["estimate", str(log), "-o", rates, "--dask", address]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    rule = "--dask must be the address of a running scheduler"
    assert err.startswith(f"recrawl: {rule}, got {address!r}: ")
    assert err.count("\n") == 1
    assert os.listdir(tmp_path) == ["log.csv"]


@pytest.fixture
def processes(tmp_path):
    """A scheduler and a worker as commands start them: the first's number, address."""
    file = f"{tmp_path}/scheduler.json"
    common = ["--no-dashboard", "--scheduler-file", file]
    host = ["--host", "127.0.0.1", "--port", "0"]
    one = ["--no-nanny", "--nthreads", "1", "--local-directory", str(tmp_path)]
    with contextlib.ExitStack() as stack:
        started = []
        for name, options in (("scheduler", host), ("worker", one)):
            command = [sys.executable, "-m", f"distributed.cli.dask_{name}"]
            process = subprocess.Popen(
                [*command, *common, *options], stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait, 60)
            stack.callback(process.kill)
            started.append(process)
            while not os.path.exists(file):
                assert process.poll() is None
                sleep(0.1)
        with Client(scheduler_file=file, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            yield started[0].pid, client


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"), [(CLUSTER, "insert"), (READING, "grouped"), (CLUSTER, "_saved")]
)
def test_a_scheduler_that_goes_away(
    processes, tmp_path, capfd, monkeypatch, module, name
):
    monkeypatch.setattr(crawl_log_cluster, "TIMEOUT", 2)  # until it is given up
    number, client = processes
    rows = [(page, f"2026-01-{day:02}", day % 2) for page in "ab" for day in (1, 2, 3)]
    log = write(tmp_path / "log.csv", table(rows))
    (tmp_path / "out").mkdir()
    command = ["estimate", str(log), "-o", f"{tmp_path}/out/rates.parquet"]
    address = client.scheduler.address

    def patch(change):
        import importlib

        found = importlib.import_module(module)
        setattr(found, name, change(getattr(found, name)))

    client.run(patch, killing(str(tmp_path / "killed"), number))
    client.close()
    assert cli.main([*command, "--dask", address]) == 2
    err = capfd.readouterr().err
    lines = [line for line in err.splitlines() if "|" not in line]  # no progress
    assert lines == [f"recrawl: the Dask scheduler {address} went away"]
    assert os.listdir(tmp_path / "out") == []
