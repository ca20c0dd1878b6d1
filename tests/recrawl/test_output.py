"""What commands write: one state of two runs, cells of spreadsheets, progress."""

import csv
import io
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl.log.files import alone
from recrawl.log.output import table
from recrawl.progress import bar
from tests.recrawl import crawl_logs
from tests.recrawl.crawl_logs import START, write

DAY = 86_400


def log_of(path, site, n_pages=50):
    """Crawls of some pages of a site, each ten times."""
    rows = [
        (f"https://{site}.org/{page}", START + day * DAY, day * page % 3 == 0)
        for page in range(n_pages)
        for day in range(11)
    ]
    return write(path, crawl_logs.table(rows))


def first_line(run):
    """What a run says first; nothing if it says nothing for a minute."""
    end = threading.Timer(60, run.kill)
    end.start()
    said = run.stderr.readline()
    end.cancel()
    return said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_of_two_runs_on_one_state_none_loses_its_crawls(tmp_path):
    """Both wait for a third one, so that they surely run at once."""
    state, runs = tmp_path / "state.parquet", []
    with alone(state):
        for site in "ab":
            log = log_of(tmp_path / f"{site}.csv", site)
            command = [sys.executable, "-m", "recrawl", "estimate", log]
            command += ["-o", log.with_suffix(".parquet"), "--state", state]
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
            runs.append(subprocess.Popen(command, text=True, **pipes))
        said = [first_line(run) for run in runs]
        assert not state.exists()
    assert said == [f"recrawl: waiting for another run that has {state}\n"] * 2
    known = f"recrawl: 0 of 50 pages of this log were in the state {state}: it may be "
    said = sorted(run.communicate()[1] for run in runs)
    assert said == ["", f"{known}that of another log\n"]
    assert [run.returncode for run in runs] == [0, 0]
    assert pq.read_table(state)["n_crawls"].to_pylist() == [10] * 100


@pytest.mark.filterwarnings("ignore:rows left out", "ignore:0 of 2 pages")
def test_a_log_repeated_with_its_state_keeps_the_drift(tmp_path):
    log, rates = log_of(tmp_path / "log.csv", "a", 250), tmp_path / "rates.parquet"
    given = {"state": tmp_path / "state.parquet", "force": True}
    first = recrawl.estimate(log, rates, **given)
    assert first.drift is not None
    again = recrawl.estimate(log, rates, **given)
    assert again.counts.get("rows", 0) == 0
    assert again.drift == first.drift
    few = log_of(tmp_path / "few.csv", "b", n_pages=2)
    assert recrawl.estimate(few, rates, **given).drift == first.drift


@pytest.mark.parametrize(
    ("name", "first"), [("OUT.CSV", b'"url'), ("S.PARQUET", b"PAR1")]
)
def test_endings_in_capitals_are_those_in_small_letters(tmp_path, name, first):
    log = write(tmp_path / "log.csv", "url,time,changed\na,2026-01-01,0\n")
    recrawl.convert(log, tmp_path / name)
    assert (tmp_path / name).read_bytes()[:4] == first


def test_no_cell_of_a_spreadsheet_is_a_formula(tmp_path):
    urls = ["=1+1", "+1", "-1", "@a", "\t=1", "a=1", "https://a.org/?q==1"]
    for suffix in ("csv", "parquet"):
        with table(tmp_path / f"rates.{suffix}") as out:
            out.write(pa.table({"url": urls, "log_rate": [-1.0] * 7}))
            out.describe({})
    assert pq.read_table(tmp_path / "rates.parquet")["url"].to_pylist() == urls
    with open(tmp_path / "rates.csv", newline="") as file:
        _, *rows = csv.reader(file)
    assert [cell for cell, _ in rows] == [f"'{u}" for u in urls[:5]] + urls[5:]
    assert {rate for _, rate in rows} == {"-1"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_output_follows_umask_and_keeps_the_mode(tmp_path, suffix):
    path, mask = tmp_path / f"rates.{suffix}", os.umask(0o027)
    try:
        for mode in (0o640, 0o604):  # of a new file, and of one that is replaced
            with table(path) as out:
                out.write(pa.table({"url": ["a"]}))
            assert path.stat().st_mode & 0o777 == mode
            path.chmod(0o604)
    finally:
        os.umask(mask)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_shows_after_two_seconds_in_a_terminal():
    for file in (Terminal(), io.StringIO()):
        with bar(total=3, file=file, mininterval=0) as steps:
            steps.update()
            assert file.getvalue() == ""
            for name in {"start_t", "last_print_t"} & vars(steps).keys():
                setattr(steps, name, getattr(steps, name) - 3)
            steps.update()
            assert ("2/3" in file.getvalue()) == file.isatty()
