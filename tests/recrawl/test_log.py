"""Reading crawl logs, from files in any format to batches of pages.

Formats and columns, the meaning of each row, bad input, independence of order,
files and batches, bounded memory.
"""

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl import BadRowsWarning
from recrawl.log import reading
from recrawl.log.tally import Tally
from tests.recrawl import crawl_logs
from tests.recrawl.crawl_logs import START, parquet, table, write
from tests.recrawl.thinned import every

DAY = 86_400
HEADER = "url,time,changed\n"
URLS = [
    "http://a.de/x,y",
    'http://b.de/"q"',
    "http://c.de/line\nbreak",
    "http://d.de/\u00fc/\u6f22\u5b57?\U0001f600",
    "#e;|\t'",
]


def read(path, **options):
    """What `crawl_logs.read` gives, without the ages."""
    crawls, *others = crawl_logs.read(path, **options)
    return {url: [row[:3] for row in page] for url, page in crawls.items()}, *others


def clean(path, **options):
    """Crawls of a log that must give no warning."""
    crawls, _, _, told = read(path, **options)
    assert told == []
    return crawls


# ---------------------------------------------------------------- formats

ROWS = [
    (url, START + DAY * day, changed)
    for url in URLS
    for day, changed in ((3, True), (1, False), (8, False))
]
WANTED = {url: [(3.0, 2.0, True), (8.0, 5.0, False)] for url in URLS}


def test_parquet(tmp_path):
    url, time, changed = map(list, zip(*ROWS, strict=True))
    path = tmp_path / "log.parquet"
    assert clean(parquet(path, url=url, time=time, changed=changed)) == WANTED
    other = {"URL ": pa.array(url).dictionary_encode(), "Time": time}
    assert clean(parquet(path, **other, changed=np.array(changed, np.int8))) == WANTED


@pytest.mark.parametrize("unit", every(3, ["s", "ms", "us", "ns"]))
@pytest.mark.parametrize("zone", every(2, [None, "UTC", "Asia/Tokyo"]))
def test_parquet_timestamps(tmp_path, unit, zone):
    days = np.array([18_262, 18_264], "datetime64[D]").astype(f"datetime64[{unit}]")
    time, yes = pa.array(days, pa.timestamp(unit, zone)), [True, True]
    path = parquet(tmp_path / "log.parquet", url=["a", "a"], time=time, changed=yes)
    assert clean(path) == {"a": [(2.0, 2.0, True)]}


YES_AND_NO = [
    ("yes", "no"), ("1", "0"), ("TRUE", "False"), ("t", "f"), ("Y", "N"),
    ("1.0", "0.0"), ("changed", " unchanged "),
]  # fmt: skip


@pytest.mark.parametrize(("yes", "no"), every(3, YES_AND_NO))
def test_changed_as_text(tmp_path, yes, no):
    rows = [("a", START + k * DAY, text) for k, text in enumerate((no, yes, no))]
    crawls = clean(write(tmp_path / "log.csv", table(rows)))
    assert [bit for _, _, bit in crawls["a"]] == [True, False]


# ---------------------------------------------------------------- what a row means


def test_hosts_and_importance(tmp_path):
    rows = [
        ("https://A.b:8/c", START, 0, 5, ""),
        ("https://A.b:8/c", START + 1, 0, 3, ""),
        ("https://A.b:8/c", START + 2, 0, "", ""),
        ("x", START, 0, 0, "h"),
        ("y", START, 0, "", ""),
    ]
    names = ("url", "time", "changed", "importance", "host")
    _, columns, _, _ = read(write(tmp_path / "log.csv", table(rows, names)))
    found = {url: (page["host"], page["importance"]) for url, page in columns.items()}
    assert found == {
        "https://A.b:8/c": ("a.b:8", 3.0),  # the last importance that is given
        "x": ("h", 0.0),
        "y": ("", 1.0),
    }


def test_a_server_has_one_name(tmp_path):
    hosts = {
        "http://a.b/c": "a.b",
        "HTTP://A.B:80/c": "a.b",
        "https://user:p@ss@a.b:443?c": "a.b",
        "https://a.b:80/c": "a.b:80",
        "http://[2001:DB8::1]:8080/": "[2001:db8::1]:8080",
        "www.a-b.org:8/c": "www.a-b.org:8",
        "a.b": "",
        "/a.org/b": "",
        "ftp://a.b:21#c": "a.b:21",
    }
    text = table([(url, START, 0) for url in hosts])
    _, columns, _, _ = read(write(tmp_path / "log.csv", text))
    assert {url: page["host"] for url, page in columns.items()} == hosts


def test_failed_fetches_and_pages_that_are_gone(tmp_path):
    rows = [
        ("ok", 0, 0, 200), ("ok", 1, 0, 304), ("ok", 2, 1, ""),
        ("ok", 4, "", 500), ("ok", 5, 1, "206.0"),
        ("gone", 0, 0, 200), ("gone", 1, 1, 200), ("gone", 2, "", 404),
        ("back", 0, 0, 200), ("back", 1, "", 410), ("back", 2, 1, 200),
        ("away", 0, 0, 200), ("away", 1, "", 503),
        ("never", 0, "", 404), ("never", 1, 1, 403),
        ("dead", 1, 1, 410), ("dead", 0, 0, 500),
    ]  # fmt: skip
    text = table(
        [(url, START + day * DAY, *rest) for url, day, *rest in rows],
        ("url", "time", "changed", "status"),
    )
    crawls, columns, counts, told = read(write(tmp_path / "log.csv", text))
    assert crawls == {
        # the failed fetch between does not split the interval
        "ok": [(1.0, 1.0, False), (2.0, 1.0, True), (5.0, 3.0, True)],
        "gone": [(1.0, 1.0, True)],
        "back": [(2.0, 2.0, True)],
        "away": [],
        "never": [],
        "dead": [],
    }
    assert {url for url, page in columns.items() if page["gone"]} == {"gone", "dead"}
    n_failed = {"ok": 1, "gone": 1, "back": 1, "away": 1, "never": 2, "dead": 2}
    assert {url: page["n_failed"] for url, page in columns.items()} == n_failed
    assert columns["never"]["first_crawl"] is columns["never"]["last_crawl"] is None
    assert counts == {"rows": 9, "of failed fetches": 8, "repeated": 0}
    assert told == []


# ---------------------------------------------------------------- bad input

GOOD = "a,2020-01-01,0\na,2020-01-02,1\n"


@pytest.mark.parametrize(
    ("bad", "reason", "where"),
    every(2, [
        ("b,2020-02-30,1\nb,yesterday,0\nb,1e999,1\n", "whose time cannot be read",
         "row 3: b,2020-02-30"),
        ("b,9000000000000000000000,1\nb,-9e21,1\nb,-9e18,0\n",
         "whose time is before 1990 or more than a day from now",
         "row 3: b,9000000000000000000000,1,, (read as 287168-08-24 16:00:00)"),
        (",2020-01-01,1\n", "without a url", "row 3: ,2020-01-01,1"),
        ("b,2020-01-01\n", "that do not fit the columns", "line 4: "),
        ("http://b.de/x,y,2020-01-01,1\n", "that do not fit the columns", "line 4: "),
        (b"http://\xe9/,2020-01-01,0\n", "that are not in UTF-8", "line 4: "),
    ]),
)  # fmt: skip
def test_bad_rows_are_named_counted_and_left_out(tmp_path, bad, reason, where):
    bad = bad if isinstance(bad, bytes) else bad.encode()
    text = (HEADER + GOOD).encode() + bad + b"a,2020-01-03,0\n"
    crawls, _, counts, (told,) = read(write(tmp_path / "log.csv", text))
    assert crawls == {"a": [(1.0, 1.0, True), (2.0, 1.0, False)]}
    n = bad.count(b"\n")
    assert counts == {"rows": 3, reason: n, "repeated": 0}
    assert f"{n} {reason}" in told
    assert f"log.csv {where}" in told


@pytest.mark.parametrize(
    ("second", "reason", "crawls"),
    [
        # the bit after it tells of the day since, not of two days
        ("maybe,1", "whose changed is neither yes nor no", [(2.0, 1.0, True)]),
        (
            '1,"1,5"',
            "whose importance is not a number from 0",
            [(1.0, 1.0, True), (2.0, 1.0, True)],
        ),
    ],
)
def test_a_crawl_with_a_bad_value_still_ends_the_interval_before(
    tmp_path, second, reason, crawls
):
    text = f"url,time,changed,importance\na,2020-01-01,,2\na,2020-01-02,{second}\n"
    path = write(tmp_path / "log.csv", text + "a,2020-01-03,1,2\n")
    found, columns, counts, (told,) = read(path)
    assert found == {"a": crawls}
    assert columns["a"]["importance"] == 2.0
    assert counts == {"rows": 2, reason: 1, "repeated": 0}
    assert f"1 {reason} (log.csv row 2: a,2020-01-02," in told


def test_a_fetch_fails_unless_its_status_is_2xx_or_304(tmp_path):
    statuses = (100, 199, 200, 204, 299, 300, 301, 303, 304, 305, 404, 500)
    rows = [
        (f"{last}", START + day * DAY, day, status)
        for last in statuses
        for day, status in enumerate((200, last))
    ]
    text = table(rows, ("url", "time", "changed", "status"))
    _, columns, _, _ = read(write(tmp_path / "log.csv", text))
    failed = {int(url) for url, page in columns.items() if page["n_failed"]}
    assert failed == {100, 199, 300, 301, 303, 305, 404, 500}


@pytest.mark.parametrize("memory", ["much", "1 parsec"])
def test_memory_that_is_no_size(tmp_path, memory):
    with pytest.raises(ValueError, match=f"memory must be a size .*, got '{memory}'"):
        read(write(tmp_path / "log.csv", HEADER + GOOD), memory=memory)


# ---------------------------------------------------------------- invariances


@pytest.fixture(scope="module")
def many():
    """Rows of 200 pages in random order, some twice, some contradicted."""
    rng = np.random.default_rng(0)
    rows = [
        (f"http://h{page % 7}/{page}", time, bit, int(rng.integers(5)),
         int(rng.choice([200, 200, 404])))
        for page in range(200)
        for time in (START + rng.integers(0, 2000, rng.integers(1, 60))).tolist()
        for bit in rng.choice([0, 1], rng.choice([1, 1, 2])).tolist()
    ]  # fmt: skip
    return [rows[k] for k in rng.permutation(len(rows))]


COLUMNS = ("url", "time", "changed", "importance", "status")


def reference(rows):
    """Crawls and columns of each page, by a dictionary of crawls."""
    crawls, columns, pages = {}, {}, {}
    for url, *row in rows:
        pages.setdefault(url, []).append(row)
    for url, page in pages.items():
        seen = {}
        for time, changed, _, status in page:
            if status == 200:
                seen[time] = seen.get(time, False) or bool(changed)
        crawls[url] = [
            ((b - START) / DAY, (b - a) * 1_000_000 / 86_400_000_000, seen[b])
            for a, b in itertools.pairwise(sorted(seen))
        ]
        columns[url] = {
            "n_failed": sum(status != 200 for *_, status in page),
            "importance": max((time, weight) for time, _, weight, _ in page)[1],
            "gone": max((time, status == 404) for time, *_, status in page)[1],
        }
    return crawls, columns


@pytest.fixture(scope="module")
def expected(many):
    return reference(many)


def agrees(path, expected, **options):
    crawls, columns, counts, told = read(path, **options)
    assert crawls == expected[0]
    for url, page in expected[1].items():
        assert page.items() <= columns[url].items()
    return counts, told


@pytest.mark.slow
def test_agrees_with_a_dictionary_of_crawls(tmp_path, many, expected):
    path = write(tmp_path / "log.csv", table(many, COLUMNS))
    counts, (told,) = agrees(path, expected)
    kept = [row[:3] for row in many if row[-1] == 200]
    n_times = len({(url, time) for url, time, _ in kept})
    torn = len(set(kept)) - n_times
    assert counts["rows"] == len(kept)
    assert counts["of failed fetches"] == len(many) - len(kept)
    assert counts["two crawls at one time that disagree, taken as changed"] == torn
    assert counts["repeated"] == len(kept) - n_times - torn
    assert f"{torn} times two crawls" in told
    assert " at 2020-01-01T00:" in told


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [1, 37, 1000])
def test_batches_hold_whole_pages_whatever_their_size(
    tmp_path, many, expected, n_rows, monkeypatch
):
    path = write(tmp_path / "log.csv", table(many, COLUMNS))
    whole = agrees(path, expected)
    monkeypatch.setattr(reading, "ROWS_PER_BATCH", n_rows)
    assert agrees(path, expected) == whole
    with warnings.catch_warnings(), reading.opened(path) as log:
        warnings.simplefilter("ignore", BadRowsWarning)
        sizes = [batch.page.num_rows for batch in log.batches()]
    assert sum(sizes) == 200
    assert len(sizes) == 200 if n_rows == 1 else 1 < len(sizes) < 200


@pytest.mark.slow
def test_order_of_rows_and_split_into_files_do_not_matter(tmp_path, many, expected):
    whole = agrees(write(tmp_path / "log.csv", table(sorted(many), COLUMNS)), expected)
    parts = tmp_path / "parts"
    write(parts / "a.csv", table(many[::3], COLUMNS))
    write(parts / "b.tsv.gz", table(sorted(many[1::3], reverse=True), COLUMNS, "\t"))
    columns = map(list, zip(*many[2::3], strict=True))
    parquet(parts / "c.parquet", **dict(zip(COLUMNS, columns, strict=True)))
    assert agrees(parts, expected) == whole


def test_the_first_places_are_named_whichever_part_of_a_log_is_read_first():
    """Workers of a cluster are done in any order; three places are named."""
    places = [(file, row, f"{file} row {row}") for file in (0, 1) for row in (2, 11)]
    for order in itertools.permutations(places):
        tally = Tally()
        for place in order:
            other = Tally()
            other.add("bad", 1, [place])
            tally.update(other)
        assert (tally.counts["bad"], tally.places["bad"]) == (4, places[:3])


# ---------------------------------------------------------------- memory

CHILD = r"""
import os, re, sys
from pathlib import Path
# each thread of the database needs memory of its own
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import recrawl
def peak():  # that of getrusage begins with the peak of the parent
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
log, output, memory = sys.argv[1:]
found = recrawl.estimate(log, output, memory=memory)
more = (peak() - before) // 1024
print(found.n_pages, found.counts["rows"], more)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads memory in /proc")
def test_a_log_larger_than_memory(tmp_path):
    """Sort rows of 220 MB in a database of 100 MiB.

    With batches of pages, and all else, the process grows by less than 500 MiB. The
    names are long because the time goes into rows, and the memory into bytes.
    """
    rng, n_rows, n_pages = np.random.default_rng(1), 50_000, 2_000
    page = rng.integers(0, n_pages, n_rows)
    long = "a-rather-long-path/" * 230
    names = pa.array(
        [f"https://www.example{i % 100:02d}.org/{long}{i}.html" for i in range(n_pages)]
    )
    time = rng.integers(1_500_000_000, 1_600_000_000, n_rows)
    log = {"url": names.take(page), "time": time, "changed": rng.random(n_rows) < 0.4}
    log, path, few = pa.table(log), tmp_path / "log.parquet", tmp_path / "few.parquet"
    pq.write_table(log, path, row_group_size=10_000)
    pq.write_table(log.slice(0, 1000), few)
    assert n_rows * (len(names[0].as_py()) + 9) > 2 * 100 * 2**20
    for each in few, path:  # the first one compiles, which takes memory of its own
        output = each.with_name(f"rates-{each.name}")
        command = [sys.executable, "-c", CHILD, str(each), str(output), "100MiB"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    found, used, more = map(int, run.stdout.split())
    assert (found, used) == (np.unique(page).size, n_rows)
    assert more < 500
    n_crawls = np.unique(page * 10**10 + time).size - found
    assert pq.read_table(output)["n_crawls"].to_numpy().sum() == n_crawls


def test_an_empty_changed_begins_an_interval_and_ends_none(tmp_path):
    """At a page's first crawl there is nothing to compare with."""
    time = [START + DAY * day for day in (0, 1, 4, 6, 0)]
    text = table(zip("aaaab", time, ["", 1, " ", 0, ""], strict=True))
    changed = [None, True, None, False, None]
    for path in (
        write(tmp_path / "log.csv", text),
        parquet(tmp_path / "log.parquet", url=[*"aaaab"], time=time, changed=changed),
    ):
        crawls, _, counts, told = read(path)
        assert crawls == {"a": [(1.0, 1.0, True), (6.0, 2.0, False)], "b": []}
        assert (counts["rows"], told) == (5, [])
