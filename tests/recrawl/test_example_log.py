"""The example log is reproducible, labelled, and has the bits of real changes."""

import csv
import gzip
import itertools
import runpy
from collections import Counter, defaultdict

import numpy as np
import pytest

from paperfigs import traces
from paperfigs.files import sha256

PATH = traces.DATA / "example_log.csv.gz"


@pytest.fixture(scope="module")
def rows():
    with gzip.open(PATH, "rt") as file:
        return list(csv.DictReader(file))


def checksum(path):
    """The checksum that is written beside a file."""
    text = path.with_name(f"{path.name}.sha256").read_text()
    return text.removesuffix(f"  {path.name}\n")


@pytest.mark.slow
def test_the_script_makes_the_shipped_log_again(tmp_path, capsys):
    script = runpy.run_path(str(traces.DATA / "make_example_log.py"))
    made = []
    for _ in range(2):
        script["main"](tmp_path)
        made.append((tmp_path / PATH.name).read_bytes())
    assert made[0] == made[1]
    # another zlib may pack the same text otherwise
    assert gzip.decompress(made[0]) == gzip.decompress(PATH.read_bytes())
    assert checksum(tmp_path / PATH.name) == sha256(tmp_path / PATH.name)
    assert "fetches of 62 URLs" in capsys.readouterr().out


def test_checksum_and_label(rows):
    assert checksum(PATH) == sha256(PATH)
    readme = (traces.DATA / "README.md").read_text()
    assert f"| `{PATH.name}` | `{sha256(PATH)}` |" in readme
    assert f"{len(rows):,} fetches" in readme
    for status in ("503", "404"):
        n = sum(row["status"] == status for row in rows)
        assert f"{status} {n} times" in readme


def test_shape(rows):
    assert list(rows[0]) == ["url", "time", "changed", "importance", "status"]
    pages = defaultdict(set)
    for row in rows:
        pages[row["url"]].add(row["importance"])
    assert {len(importances) for importances in pages.values()} == {1}
    assert Counter(url.split("/")[2] for url in pages) == {
        "debian.example": 45,
        "bokeh.example": 17,
    }
    fetches = [(row["time"], row["url"]) for row in rows]
    assert fetches == sorted(set(fetches))
    bits = {(row["changed"], row["status"]) for row in rows}
    assert bits == {("1", "200"), ("0", "304"), ("", "503"), ("", "404")}


NAMED = {"debian_firefox_esr": ("debian", 26), "bokeh_commits": ("bokeh", 13)}


@pytest.mark.parametrize(("name", "host", "weeks"), [(k, *v) for k, v in NAMED.items()])
def test_bits_are_those_of_the_real_changes(rows, name, host, weeks):
    trace = traces.load(name)
    changes = trace.start + np.round(trace.times * 86400).astype("timedelta64[s]")
    week = np.timedelta64(7 * 86400, "s")
    fetched = defaultdict(list)
    for row in rows:
        if row["url"].split("/")[2] == f"{host}.example":
            fetched[row["url"]].append(row)
    n_bits = 0
    for number, url in enumerate(sorted(fetched)):
        log = fetched[url]
        times = np.array([row["time"].rstrip("Z") for row in log], "datetime64[s]")
        began = trace.start + number * weeks * week
        assert url.endswith(str(began.astype("datetime64[D]")))
        # the shift is a whole number of weeks; each fetch falls into its window
        shift = (times[0] - began) // week * week
        times = times - shift
        seen = [i for i, row in enumerate(log) if row["changed"]]
        assert times[0] >= began
        assert times[seen[-1]] <= began + weeks * week
        assert log[0]["changed"] == "1", "new to the crawler"
        for before, i in itertools.pairwise(seen):
            happened = ((times[before] < changes) & (changes <= times[i])).any()
            assert (log[i]["changed"] == "1") == happened, (url, log[i]["time"])
            n_bits += 1
        gone = [i for i, row in enumerate(log) if row["status"] == "404"]
        assert gone in ([], [len(log) - 1])
        assert all(times[i] > began + weeks * week for i in gone)
    assert n_bits > 7000
