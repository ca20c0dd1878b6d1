"""Reading crawl logs, from files in any format to batches of pages.

Formats and columns, the meaning of each row, bad input, independence of order,
files and batches, bounded memory.
"""

import contextlib
import datetime
import errno
import gzip
import itertools
import re
import subprocess
import sys
import tempfile
import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl import BadRowsWarning, Source, formats, read_crawl_log, reading
from recrawl.database import database
from tests.recrawl.crawl_logs import START, parquet, recorded, table, write
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
    """Read a log; its pages by URL, their columns, the counts, and the warnings.

    A page is a list of (days from `START` to the crawl, interval, changed).
    """
    (crawls, columns, counts), messages = recorded(_read, path, **options)
    return crawls, columns, counts, messages


def _read(path, **options):
    crawls, columns = {}, {}
    with reading.opened(path, **options) as log:
        for batch in log.batches():
            history, days = batch.history, (batch.time / 1e6 - START) / DAY
            offsets = history.offsets
            for k, page in enumerate(batch.page.to_pylist()):
                here = slice(offsets[k], offsets[k + 1])
                parts = [days[here], history.interval[here], history.changed[here]]
                crawls[page["url"]] = list(
                    zip(*(part.tolist() for part in parts), strict=True)
                )
                columns[page["url"]] = page
        assert log.n_pages == len(crawls)
    return crawls, columns, dict(log.tally.counts)


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


@pytest.mark.parametrize(
    "name",
    every(
        3,
        [
            "log.csv",
            "log.csv.gz",
            "log.tsv",
            "log.tsv.gz",
            "semicolon.csv",
            "it's.csv",
            "log[1].csv",
            "*?.csv",
        ],
    ),
)
def test_text_formats(tmp_path, name):
    write(
        tmp_path / "log1.csv", HEADER + "other,2020-01-01,0\n"
    )  # which the pattern log[1].csv would match
    delimiter = "\t" if ".tsv" in name else ";" if "semicolon" in name else ","
    assert clean(write(tmp_path / name, table(ROWS, delimiter=delimiter))) == WANTED


def test_parquet(tmp_path):
    url, time, changed = map(list, zip(*ROWS, strict=True))
    pq.write_table(
        pa.table({"url": url, "time": time, "changed": changed}),
        tmp_path / "log.parquet",
    )
    assert clean(tmp_path / "log.parquet") == WANTED
    pq.write_table(
        pa.table(
            {
                "URL ": pa.array(url).dictionary_encode(),
                "Time": time,
                "changed": np.array(changed, np.int8),
            }
        ),
        tmp_path / "b.parquet",
    )
    assert clean(tmp_path / "b.parquet") == WANTED


@pytest.mark.parametrize("unit", every(3, ["s", "ms", "us", "ns"]))
@pytest.mark.parametrize("zone", every(2, [None, "UTC", "Asia/Tokyo"]))
def test_parquet_timestamps(tmp_path, unit, zone):
    days = np.array([18_262, 18_264], "datetime64[D]").astype(f"datetime64[{unit}]")
    pq.write_table(
        pa.table(
            {
                "url": ["a", "a"],
                "time": pa.array(days, pa.timestamp(unit, zone)),
                "changed": [True, True],
            }
        ),
        tmp_path / "l.parquet",
    )
    assert clean(tmp_path / "l.parquet") == {"a": [(2.0, 2.0, True)]}


def test_parquet_dates_and_texts(tmp_path):
    dates = pa.array([datetime.date(2020, 1, 2), datetime.date(2020, 1, 4)])
    for column in (dates, pa.array(["2020-01-02", "2020-01-04T02:00+02"])):
        pq.write_table(
            pa.table({"url": ["a", "a"], "time": column, "changed": ["no", "yes"]}),
            tmp_path / "l.parquet",
        )
        assert clean(tmp_path / "l.parquet") == {"a": [(3.0, 2.0, True)]}


@pytest.mark.parametrize(
    ("first", "second"),
    every(
        3,
        [
            ("2020-01-01", "2020-01-02"),
            ("2020-01-01T00:00:00", "2020-01-02 00:00"),  # without a zone it is UTC
            ("2020-01-01T00:00:00Z", "2020-01-02T02:00:00+02:00"),
            ("2019-12-31T19:00:00.000000-05", "2020-01-02T05:30:00+0530"),
            ("2020-01-01 01:00:00 Europe/Berlin", "2020-01-02 00:00:00 UTC"),
            ("1577836800", "1577923200.0"),
            ("1577836800000", "1577923200"),
            ("1577836800000000", "1577923200000"),
            ("1577836800000000000", "1.5779232e15"),
        ],
    ),
)
def test_times(tmp_path, first, second):
    crawls = clean(write(tmp_path / "log.csv", f"{HEADER}a,{first},0\na,{second},1\n"))
    assert crawls == {"a": [(1.0, 1.0, True)]}


def test_a_microsecond_is_not_lost(tmp_path):
    rows = (
        "a,1577836800.000001,0\na,2020-01-01T00:00:00.000002Z,1\n"
        "a,1577836800000003,1\na,1577836800000004000,1\n"
    )
    ((_, interval, _), *rest) = clean(write(tmp_path / "log.csv", HEADER + rows))["a"]
    assert [
        round(step * DAY * 1e6) for step in (interval, *(row[1] for row in rest))
    ] == [1, 1, 1]


@pytest.mark.parametrize(
    ("yes", "no"),
    every(
        3,
        [
            ("yes", "no"),
            ("1", "0"),
            ("TRUE", "False"),
            ("t", "f"),
            ("Y", "N"),
            ("1.0", "0.0"),
            ("changed", " unchanged "),
        ],
    ),
)
def test_changed_as_text(tmp_path, yes, no):
    crawls = clean(
        write(
            tmp_path / "log.csv",
            f"{HEADER}a,2020-01-01,{no}\na,2020-01-02,{yes}\na,2020-01-03,{no}\n",
        )
    )
    assert [bit for _, _, bit in crawls["a"]] == [True, False]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_and_byte_order_mark(tmp_path, end):
    text = ("\ufeff" + HEADER + "a,2020-01-01,0\n\na,2020-01-02,1").replace("\n", end)
    assert clean(write(tmp_path / "log.csv", text)) == {"a": [(1.0, 1.0, True)]}


def test_line_ends_of_two_kinds(tmp_path):
    text = HEADER + "a,2020-01-01,0\r\na,2020-01-02,1\n"
    assert clean(write(tmp_path / "log.csv", text)) == {"a": [(1.0, 1.0, True)]}


def test_a_folder_whose_files_differ_in_their_columns(tmp_path):
    write(tmp_path / "a.csv", "changed,note,Time,url\n0,x,2020-01-01,u\n")
    write(
        tmp_path / "b.tsv.gz",
        "url\ttime\tchanged\timportance\thost\nu\t2020-01-02\t1\t2.5\th\n",
    )
    write(tmp_path / "header.csv", HEADER)
    (tmp_path / "deep").mkdir()
    pq.write_table(
        pa.table(
            {
                "time": [START + 2 * DAY],
                "url": ["u"],
                "changed": [False],
                "status": [200],
            }
        ),
        tmp_path / "deep" / "c.parquet",
    )
    write(tmp_path / "notes.txt", "not a log")
    crawls, columns, counts, told = read(tmp_path)
    assert crawls == {"u": [(1.0, 1.0, True), (2.0, 1.0, False)]}
    assert (columns["u"]["importance"], columns["u"]["host"]) == (2.5, "h")
    unknown = "files of a format that is not known"
    assert counts == {"rows": 3, "repeated": 0, unknown: 1}
    assert told == [f"rows left out of {tmp_path}: 1 {unknown} (notes.txt)"]


# ---------------------------------------------------------------- what a row means


def test_hosts_and_importance(tmp_path):
    rows = [
        ("https://A.b:8/c", START, 0, 5, ""),
        ("https://A.b:8/c", START + 1, 0, 3, ""),
        ("https://A.b:8/c", START + 2, 0, "", ""),
        ("x", START, 0, 0, "h"),
        ("y", START, 0, "", ""),
    ]
    _, columns, _, _ = read(
        write(
            tmp_path / "log.csv",
            table(rows, ("url", "time", "changed", "importance", "host")),
        )
    )
    assert {
        url: (page["host"], page["importance"]) for url, page in columns.items()
    } == {
        "https://A.b:8/c": ("a.b:8", 3.0),  # the last importance that is given
        "x": ("h", 0.0),
        "y": ("", 1.0),
    }


@pytest.mark.parametrize(
    ("url", "host"),
    every(
        3,
        [
            ("http://a.b/c", "a.b"),
            ("HTTP://A.B:80/c", "a.b"),
            ("https://user:p@ss@a.b:443?c", "a.b"),
            ("https://a.b:80/c", "a.b:80"),
            ("http://[2001:DB8::1]:8080/", "[2001:db8::1]:8080"),
            ("www.a-b.org:8/c", "www.a-b.org:8"),
            ("a.b", ""),
            ("/a.org/b", ""),
            ("ftp://a.b:21#c", "a.b:21"),
        ],
    ),
)
def test_a_server_has_one_name(tmp_path, url, host):
    text = table([(url, START, 0)], ("url", "time", "changed"))
    _, columns, _, _ = read(write(tmp_path / "log.csv", text))
    assert columns[url]["host"] == host


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
    assert crawls["ok"] == [(1.0, 1.0, False), (2.0, 1.0, True), (5.0, 3.0, True)], (
        "the failed fetch between does not split the interval"
    )
    assert crawls["gone"] == [(1.0, 1.0, True)]
    assert crawls["back"] == [(2.0, 2.0, True)]
    assert crawls["away"] == crawls["never"] == crawls["dead"] == []
    assert {url for url, page in columns.items() if page["gone"]} == {"gone", "dead"}
    assert {url: page["n_failed"] for url, page in columns.items()} == {
        "ok": 1,
        "gone": 1,
        "back": 1,
        "away": 1,
        "never": 2,
        "dead": 2,
    }
    assert columns["never"]["first_crawl"] is columns["never"]["last_crawl"] is None
    assert (counts, told) == ({"rows": 9, "of failed fetches": 8, "repeated": 0}, []), (
        "counted, and no warning"
    )


def test_one_crawl_only(tmp_path):
    crawls, columns, _, told = read(
        write(tmp_path / "log.csv", HEADER + "a,2020-01-02,1\n")
    )
    assert (crawls, told) == ({"a": []}, [])
    assert (
        columns["a"]["first_crawl"]
        == columns["a"]["last_crawl"]
        == datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
    )


def test_rows_at_one_time(tmp_path):
    rows = (
        "a,2020-01-01,0\na,2020-01-02,1\na,2020-01-02,1\na,2020-01-02,1\n"
        "b,2020-01-01,0\nb,2020-01-02,1\nb,2020-01-02,0\nb,2020-01-02,0\n"
        "c,2020-01-01,0\nc,2020-01-01,1\nc,2020-01-02,0\n"
    )
    crawls, _, counts, told = read(write(tmp_path / "log.csv", HEADER + rows))
    assert crawls == {
        "a": [(1.0, 1.0, True)],
        "b": [(1.0, 1.0, True)],
        "c": [(1.0, 1.0, False)],
    }
    assert counts == {
        "rows": 11,
        "repeated": 3,
        "two crawls at one time that disagree, taken as changed": 2,
    }
    assert len(told) == 1
    assert "2 times two crawls at one time that disagree" in told[0]
    assert "b at 2020-01-02" in told[0]
    assert "c at 2020-01-01" in told[0]


@pytest.mark.parametrize("copies", [2, 3])
def test_a_copy_of_a_row_with_a_digest_does_not_disagree_with_it(tmp_path, copies):
    """As in two exports that overlap; two digests at one time do disagree."""
    rows = ["a,2020-01-01,x", *["a,2020-01-02,y"] * copies, "a,2020-01-03,y"]
    torn = ["b,2020-01-01,x", "b,2020-01-02,x", "b,2020-01-02,y"]
    text = "\n".join(["url,time,digest", *rows, *torn])
    crawls, _, counts, told = read(write(tmp_path / "log.csv", text + "\n"))
    assert crawls == {
        "a": [(1.0, 1.0, True), (2.0, 1.0, False)],
        "b": [(1.0, 1.0, True)],
    }
    assert counts == {
        "rows": copies + 5,
        "repeated": copies - 1,
        "two crawls at one time that disagree, taken as changed": 1,
    }
    assert "b at 2020-01-02" in told[0]


# ---------------------------------------------------------------- bad input

GOOD = "a,2020-01-01,0\na,2020-01-02,1\n"


@pytest.mark.parametrize(
    ("bad", "reason", "where"),
    every(3, [
        ("b,yesterday,1\n", "whose time cannot be read", "row 3: b,yesterday,1"),
        (
            "b,2020-02-30,1\nb,infinity,0\nb,nan,1\nb,1e300,1\n",
            "whose time cannot be read",
            "row 3: b,2020-02-30",
        ),
        (
            "b,0,1\nb,1989-12-31,0\nb,9e18,1\nb,-9e18,0\n",
            "whose time is before 1990 or more than a year from now",
            "row 3: b,0,1,, (read as 1970-01-01 00:00:00)",
        ),
        (
            "b,9e21,1\nb,-9e21,1\n",
            "whose time is before 1990 or more than a year from now",
            "row 3: b,9e21,1,, (read as 287168-08-24 16:00:00)",
        ),
        ("b,,1\n", "whose time cannot be read", "row 3: b,,1"),
        (",2020-01-01,1\n", "without a url", "row 3: ,2020-01-01,1"),
        ("b,2020-01-01\n", "that do not fit the columns", "line 4: "),
        ("http://b.de/x,y,2020-01-01,1\n", "that do not fit the columns", "line 4: "),
        (b"http://\xe9/,2020-01-01,0\n", "that do not fit the columns", "line 4: "),
    ]),
)  # fmt: skip
def test_bad_rows_are_named_counted_and_left_out(tmp_path, bad, reason, where):
    bad = bad if isinstance(bad, bytes) else bad.encode()
    crawls, _, counts, (told,) = read(
        write(
            tmp_path / "log.csv", (HEADER + GOOD).encode() + bad + b"a,2020-01-03,0\n"
        )
    )
    assert crawls["a"] == [(1.0, 1.0, True), (2.0, 1.0, False)], (
        "good rows before and after are kept"
    )
    assert set(crawls) == {"a"}
    n = bad.count(b"\n")
    assert counts == {"rows": 3, reason: n, "repeated": 0}
    assert f"{n} {reason}" in told
    assert f"log.csv {where}" in told


def test_bad_numbers_in_optional_columns(tmp_path):
    rows = (
        "a,2020-01-01,0,1,200\na,2020-01-01T01,0,-1,200\na,2020-01-01T02,0,nan,200\n"
        "a,2020-01-01T03,0,x,200\na,2020-01-01T04,0,inf,\na,2020-01-01T05,0,1,OK\n"
        "a,2020-01-02,1,2,200\n"
    )
    crawls, _, counts, (told, in_part) = read(
        write(tmp_path / "log.csv", "url,time,changed,importance,status\n" + rows)
    )
    times = [t for t, _, _ in crawls["a"]]
    np.testing.assert_allclose(times, np.array([1, 2, 3, 4, 24]) / 24)
    assert counts == {
        "rows": 2,
        "whose importance is not a number from 0": 4,
        "whose status is not a number": 1,
        "repeated": 0,
    }
    assert (
        "row 2: a,2020-01-01T01,0,-1,200; log.csv row 3: a,2020-01-01T02,0,nan,200; "
        "log.csv row 4: a,2020-01-01T03,0,x,200)" in in_part
    )
    assert told.startswith(f"rows left out of {tmp_path / 'log.csv'}: 1 whose status")


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
    rows = "".join(
        f"{status},2020-01-01,0,200\n{status},2020-01-02,1,{status}\n"
        for status in statuses
    )
    log = write(tmp_path / "log.csv", "url,time,changed,status\n" + rows)
    _, columns, _, _ = read(log)
    failed = {int(url) for url, page in columns.items() if page["n_failed"]}
    assert failed == {100, 199, 300, 301, 303, 305, 404, 500}


def test_bad_rows_of_several_files_add_up(tmp_path):
    for name in ("a.csv", "b.csv", "c.csv.gz"):
        write(tmp_path / name, HEADER + "a,2020-01-01,0\na,1\na,x,1\n")
    _, _, counts, (told,) = read(tmp_path)
    assert counts == {
        "rows": 3,
        "that do not fit the columns": 3,
        "whose time cannot be read": 3,
        "repeated": 2,
    }
    for name in ("a.csv", "b.csv", "c.csv.gz"):
        assert f"{name} line 3" in told
        assert f"{name} row 2: a,x,1" in told


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "uri,time,changed\na,0,1\n",
            "must have a column 'url', got uri, time, changed; "
            "do you mean --column url=uri (columns={'url': 'uri'})?",
        ),
        (
            "url,timestamp,has_changed\na,0,1\n",
            "must have a column 'time' and 'changed' (or 'digest', 'etag', "
            "'last_modified'), got url, timestamp, has_changed; "
            "do you mean --column time=timestamp --column changed=has_changed (",
        ),
        (
            "a,0,1\nb,0,1\n",
            "must have a column 'url' and 'time' and 'changed' (or 'digest', 'etag', "
            "'last_modified'), got a, 0, 1; the first line of a table must name its "
            "columns",
        ),
        (
            "\n\n",
            "must have a column 'url' and 'time' and 'changed' (or 'digest', 'etag', "
            "'last_modified'), got none; the first line of a table must name its "
            "columns",
        ),
        ("", "must not be empty"),
        (HEADER, "must hold at least one row that can be used, got none at all"),
        (
            HEADER + "a,x,1\n",
            "must hold at least one row that can be used, "
            "got 1 whose time cannot be read",
        ),
    ],
)
def test_files_without_a_usable_row(tmp_path, text, rule):
    path = write(tmp_path / "log.csv", text)
    with pytest.raises(ValueError, match=re.escape(rule)) as error:
        read(path)
    assert str(path) in str(error.value)


def test_a_column_that_the_user_named_and_the_file_lacks(tmp_path):
    path = write(tmp_path / "log.csv", "url,time\na,0\n")
    rule = "must have a column 'nope' for time and 'changed' (or 'digest', 'etag', "
    with pytest.raises(ValueError, match=re.escape(rule)):
        read(Source(path, columns={"time": "nope"}))


def test_missing_columns_of_parquet(tmp_path):
    pq.write_table(
        pa.table({"url": ["a"], "tiem": [0], "changed": [True]}),
        tmp_path / "log.parquet",
    )
    with pytest.raises(
        ValueError,
        match=r"log.parquet must have a column 'time', got url, tiem, changed; "
        r"do you mean --column time=tiem \(columns=\{'time': 'tiem'\}\)\?",
    ):
        read(tmp_path / "log.parquet")


LONG = HEADER + "".join(
    f"http://h/{i % 1000},{START + i},{i % 7 == 0:d}\n" for i in range(50_000)
)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.9, 0.9999])
def test_what_can_be_read_of_a_truncated_gzip_is_kept(tmp_path, share):
    whole = gzip.compress(LONG.encode())
    path = tmp_path / "log.csv.gz"
    path.write_bytes(whole[: int(len(whole) * share)])
    crawls, _, counts, (told,) = read(path)
    assert counts["rows"] == sum(len(page) + 1 for page in crawls.values())
    assert share - 0.1 < counts["rows"] / 50_000 <= 1
    assert counts["end of a truncated or damaged file"] == 1
    assert "end of a truncated or damaged file (log.csv.gz," in told
    reference = {
        f"http://h/{i}": [(i + 1000 * k) % 7 == 0 for k in range(1, 50)]
        for i in range(1000)
    }
    assert all(
        [bit for _, _, bit in page] == reference[url][: len(page)]
        for url, page in crawls.items()
    ), "no half line is taken for one"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.csv.gz", HEADER.encode()),
        ("log.csv.gz", gzip.compress(LONG.encode(), mtime=0)[:12]),
        ("log.parquet", b"PAR1 and no more"),
        ("log.parquet", HEADER.encode()),
    ],
)
def test_what_cannot_be_read_at_all(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} cannot be read: "):
        read(tmp_path / name)


def test_a_truncated_parquet(tmp_path):
    pq.write_table(
        pa.table({"url": ["a"] * 1000, "time": range(1000), "changed": [True] * 1000}),
        tmp_path / "log.parquet",
    )
    whole = (tmp_path / "log.parquet").read_bytes()
    (tmp_path / "log.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"log.parquet cannot be read: "):
        read(tmp_path / "log.parquet")


def test_paths_that_are_no_log(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: .*nix"):
        read(tmp_path / "nix.csv")
    with pytest.raises(ValueError, match=r"must hold files of .*\), got no file"):
        read(tmp_path)
    path = write(tmp_path / "log.json", "{}")
    with pytest.raises(
        ValueError,
        match=r"log.json must be of a known format \(.*csv.*\), got one that "
        r"begins with b'\{\}'",
    ):
        read(path)
    with pytest.raises(ValueError, match=r"must hold .*, got .*/log.json$"):
        read(tmp_path)
    for k in range(4):
        write(tmp_path / f"{k}.txt", "")
    with pytest.raises(ValueError, match=r"must hold .*, got .*2.txt and 2 more$"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"0\.txt must not be empty"):
        read(tmp_path / "0.txt")


@pytest.mark.parametrize("memory", ["much", "1 parsec"])
def test_memory_that_is_no_size(tmp_path, memory):
    with pytest.raises(
        ValueError, match=f"memory must be a size such as '1GiB', got '{memory}'"
    ):
        read(write(tmp_path / "log.csv", HEADER + GOOD), memory=memory)


def test_memory_that_is_not_enough(tmp_path):
    with pytest.raises(
        ValueError, match="memory must be enough to sort the log, got '1MiB'"
    ):
        read(write(tmp_path / "log.csv", LONG), memory="1MiB")


def test_no_space_left_for_the_database(tmp_path, monkeypatch):
    def full(*_, **__):
        raise duckdb.IOException(
            "IO Error: Could not write file: No space left on device"
        )

    path = write(tmp_path / "log.csv", HEADER + GOOD)
    for module in (formats.tables, reading):  # of a file, and of the pages
        with monkeypatch.context() as patch:
            patch.setattr(module, "run", full)
            with pytest.raises(OSError, match="No space left") as error:
                read(path)
        assert error.value.errno == errno.ENOSPC


def test_the_database_goes_with_its_context(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = write(tmp_path / "log.csv", HEADER + GOOD)
    with contextlib.suppress(KeyboardInterrupt), reading.opened(path) as log:
        assert len(list((tmp_path / "tmp").iterdir())) == 1
        next(log.batches())
        raise KeyboardInterrupt
    assert list((tmp_path / "tmp").iterdir()) == []


# ---------------------------------------------------------------- invariances


@pytest.fixture(scope="module")
def many():
    """Rows of 200 pages in random order, some twice, some contradicted."""
    rng = np.random.default_rng(0)
    rows = [
        (
            f"http://h{page % 7}/{page}",
            int(time),
            bit,
            int(rng.integers(5)),
            int(rng.choice([200, 200, 404])),
        )
        for page in range(200)
        for time in (START + rng.integers(0, 2000, rng.integers(1, 60))).tolist()
        for bit in rng.choice([0, 1], rng.choice([1, 1, 2])).tolist()
    ]
    return [rows[k] for k in rng.permutation(len(rows))]


COLUMNS = ("url", "time", "changed", "importance", "status")


def reference(rows):
    """The same by a dictionary of crawls."""
    times, pages = {}, {}
    for url, time, changed, importance, status in rows:
        seen = times.setdefault(url, {})
        if status == 200:
            seen[time] = seen.get(time, False) or bool(changed)
        page = pages.setdefault(url, {"n_failed": 0, "last": (-1, 0), "gone": (-1, 0)})
        page["n_failed"] += status != 200
        page["last"] = max(page["last"], (time, importance))
        page["gone"] = max(page["gone"], (time, status == 404))
    crawls = {}
    for url, seen in times.items():
        days = sorted(seen)
        crawls[url] = [
            ((b - START) / DAY, (b - a) * 1_000_000 / 86_400_000_000, seen[b])
            for a, b in itertools.pairwise(days)
        ]
    return crawls, pages


@pytest.fixture(scope="module")
def expected(many):
    return reference(many)


def agrees(path, expected, **options):
    crawls, columns, counts, told = read(path, **options)
    assert crawls == expected[0]
    for url, page in expected[1].items():
        assert columns[url]["n_failed"] == page["n_failed"]
        assert columns[url]["importance"] == page["last"][1]
        assert columns[url]["gone"] == page["gone"][1]
    return counts, told


@pytest.mark.slow
def test_agrees_with_a_dictionary_of_crawls(tmp_path, many, expected):
    counts, (told,) = agrees(
        write(tmp_path / "log.csv", table(many, COLUMNS)), expected
    )
    kept = [
        (url, time, changed) for url, time, changed, _, status in many if status == 200
    ]
    n_times = len({(url, time) for url, time, _ in kept})
    torn = len(set(kept)) - n_times
    assert counts["rows"] == len(kept)
    assert counts["of failed fetches"] == len(many) - len(kept)
    assert counts["two crawls at one time that disagree, taken as changed"] == torn
    assert counts["repeated"] == len(kept) - n_times - torn
    assert f"{torn} times two crawls" in told


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
    pq.write_table(
        pa.table(
            dict(zip(COLUMNS, map(list, zip(*many[2::3], strict=True)), strict=True))
        ),
        parts / "c.parquet",
    )
    assert agrees(parts, expected) == whole


def test_pages_of_a_sample_are_the_first_of_the_batches(tmp_path, many, monkeypatch):
    path = write(tmp_path / "log.csv", table(many, COLUMNS))
    with warnings.catch_warnings(), reading.opened(path) as log:
        warnings.simplefilter("ignore", BadRowsWarning)
        monkeypatch.setattr(reading, "ROWS_PER_BATCH", 100)
        sample, first = log.sample(50), next(log.batches())
        assert sample.page.num_rows == 50
        n = min(first.page.num_rows, 50)
        assert sample.page["url"][:n] == first.page["url"][:n]
        np.testing.assert_array_equal(sample.time[: first.time.size], first.time)
        assert log.sample(10**9).page.num_rows == log.n_pages
        # in an order that has nothing to do with what the pages are
        numbers = [
            int(url.split("/")[-1]) for url in log.sample(200).page["url"].to_pylist()
        ]
    assert abs(np.corrcoef(numbers, np.arange(200))[0, 1]) < 4 / np.sqrt(200)


def test_time_at(tmp_path):
    with reading.opened(
        write(
            tmp_path / "log.csv",
            HEADER + "".join(f"u{k % 3},{START + k},0\n" for k in range(1, 11)),
        )
    ) as log:
        assert [log.time_at(share) / 1e6 - START for share in (0.1, 0.5, 0.8)] == [
            1,
            5,
            8,
        ]


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


@pytest.mark.parametrize(
    ("memory", "size", "in_file"),
    [
        ("100MiB", 49 * 2**20, False),
        ("100MiB", 51 * 2**20, True),
        ("0.1TiB", 49 * 2**30, False),
        ("0.1TiB", 52 * 2**30, True),
    ],
)
def test_tables_of_a_large_log_are_in_a_file(tmp_path, memory, size, in_file):
    log = tmp_path / "log.csv"
    with open(log, "wb") as file:
        file.truncate(size)  # takes no room on the disk
    with database(memory, [log]) as (connection, folder):
        connection.execute("create table crawl as select 1 as t")
        assert (folder / "tables.duckdb").exists() == in_file
        assert connection.execute("select t from crawl").fetchall() == [(1,)]


@pytest.mark.slow
def test_a_log_in_a_file_gives_the_same(tmp_path):
    rng, n_rows = np.random.default_rng(1), 200_000
    name = f"https://example.org/{'a-long-path/' * 30}"
    log = {
        "url": [f"{name}{i}" for i in rng.integers(0, 1000, n_rows)],
        "time": rng.integers(1_500_000_000, 1_600_000_000, n_rows),
        "changed": rng.random(n_rows) < 0.4,
    }
    path, plain = tmp_path / "log.parquet", {"use_dictionary": False}
    pq.write_table(pa.table(log), path, compression="none", **plain)
    assert path.stat().st_size > 60 * 2**20
    assert read(path) == read(path, memory="120MiB")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads memory in /proc")
def test_a_log_larger_than_memory(tmp_path):
    """Sort rows of 350 MB in a database of 100 MiB.

    With batches of pages, and all else, the process grows by less than 500 MiB. The
    names are long because the time goes into rows, and the memory into bytes.
    """
    rng, path = np.random.default_rng(1), tmp_path / "log.parquet"
    n_rows, n_pages = 80_000, 2_000
    page = rng.integers(0, n_pages, n_rows)
    long = "a-rather-long-path/" * 230
    names = pa.array(
        [
            f"https://www.example{i % 100:02d}.org/{long}{i:08d}.html"
            for i in range(n_pages)
        ]
    )
    time = rng.integers(1_500_000_000, 1_600_000_000, n_rows)
    log = pa.table(
        {
            "url": names.take(pa.array(page)),
            "time": time,
            "changed": rng.random(n_rows) < 0.4,
        }
    )
    pq.write_table(log, path, row_group_size=10_000)
    assert n_rows * (len(names[0].as_py()) + 9) > 3 * 100 * 2**20
    command = [
        sys.executable,
        "-c",
        CHILD,
        str(path),
        str(tmp_path / "out.parquet"),
        "100MiB",
    ]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    found, used, more = map(int, run.stdout.split())
    assert (found, used) == (np.unique(page).size, n_rows)
    assert more < 500
    repeated = n_rows - np.unique(page * 10**10 + time).size
    assert (
        pq.read_table(tmp_path / "out.parquet", columns=["n_crawls"])["n_crawls"]
        .to_numpy()
        .sum()
        == n_rows - found - repeated
    )


def test_read_crawl_log_has_all_of_a_log_in_memory(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "url,time,changed,importance\n"
        "https://b.org/x,2024-01-03,1,2\n"
        "https://b.org/x,2024-01-01,0,3\n"
        "https://a.org/,2024-01-01,0,\n"
        "https://b.org/x,2024-01-04,0,5\n"
    )
    log = read_crawl_log(path)
    pages = {
        url: (host, weight, n)
        for url, host, weight, n in zip(
            log.url, log.host, log.importance, log.history.n_crawls, strict=True
        )
    }
    assert pages == {
        "https://b.org/x": ("b.org", 5.0, 2),
        "https://a.org/": ("a.org", 1.0, 0),
    }
    np.testing.assert_array_equal(log.history.interval, [2.0, 1.0])
    np.testing.assert_array_equal(log.history.changed, [True, False])


def test_an_empty_changed_begins_an_interval_and_ends_none(tmp_path):
    """At a page's first crawl there is nothing to compare with."""
    rows = "a,2020-01-01,\na,2020-01-02,1\na,2020-01-05, \na,2020-01-07,0\n"
    text = write(tmp_path / "log.csv", HEADER + rows + "b,2020-01-01,\n")
    file = parquet(
        tmp_path / "log.parquet",
        url=["a"] * 4 + ["b"],
        time=[START + DAY * day for day in (0, 1, 4, 6, 0)],
        changed=[None, True, None, False, None],
    )
    for path in (text, file):
        with reading.opened(path) as log:
            batch = log.sample(2)
        history = batch.history
        a = batch.page["url"].to_pylist().index("a")
        crawls = slice(history.offsets[a], history.offsets[a + 1])
        assert history.interval[crawls].tolist() == [1.0, 2.0]
        assert history.changed[crawls].tolist() == [True, False]
        assert history.n_crawls.sum() == 2
        assert log.tally.counts["rows"] == 5
