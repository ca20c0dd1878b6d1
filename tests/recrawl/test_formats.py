"""What crawlers and archives store is read as it was meant.

The samples in ``formats`` are this project's own, written after the sources of
each program; their hosts are invented.
"""

import json
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.log.database import sql
from recrawl.log.formats import recognise
from recrawl.log.formats.base import read_from
from recrawl.log.tally import FAILED

SAMPLES = Path(__file__).parent / "formats"
WWW = "https://www.example.org/"
EMPTY = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
NEVER, LINE = "of pages that were never fetched", "that are no captures"
NO_WEB = "that are no web page (dns:, whois:)"
NO_DATE = "fetched once, or without signatureChangeDate in metadata.persist"


@pytest.fixture(scope="module")
def connection():
    """An empty database with the macros of a log."""
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute(sql("tables"))
        yield connection


@pytest.fixture
def rows(connection):
    """Rows that a file's own format gives, without `row` and `given`."""

    def rows(path, columns="*"):
        read_from(connection, path)
        found = connection.sql(recognise(path).query).order("row").select(columns)
        kept = [name for name in found.columns if name not in ("row", "given")]
        return found.select(*kept).fetchall()

    return rows


def at(text):
    """Time of a text: month and day of 2026, and a time of day."""
    return datetime.fromisoformat(f"2026-{text}+00:00")


NOON = at("10-01T06:12:08")
NUTCH = json.loads((SAMPLES / "nutch.jsonl").read_text().splitlines()[2])


@pytest.mark.parametrize(
    ("changed", "status", "reason"),
    [
        ({"fetchTime": "Sat Oct 31 06:12:08 IST 2026"}, 200, "zone cannot be read"),
        ({"modifiedTime": "Thu Jan 01 00:00:00 UTC 1970"}, 200, "without a modified"),
        ({"retryIntervalSeconds": None}, 200, "without an interval"),
        ({"statusName": "db_new"}, None, "status is unknown"),
        ({"statusName": "db_parse_failed"}, None, FAILED),
        # the HTTP status of an older fetch
        ({"statusName": "db_gone"}, 404, None),
        ({"statusName": "db_redir_temp", "metadata": {}}, 302, None),
        ({"statusName": "db_duplicate"}, 200, None),
    ],
)
def test_states_of_nutch(rows, tmp_path, changed, status, reason):
    path = tmp_path / "part-r-00000"
    path.write_text(json.dumps(NUTCH | changed))
    [(found, why)] = rows(path, "status, reason")
    assert found == status
    assert why == reason or reason in why


def test_csv_dump_of_nutch_with_quotes_and_bytes_that_are_no_utf8(rows, tmp_path):
    path = tmp_path / "part-r-00000.csv"
    line = (SAMPLES / "nutch.csv").read_bytes().splitlines()[1]
    quote = line.replace(b"org/", b'org/?q=","')
    other = line.replace(b"org/", b"org/\xe9")
    header = (SAMPLES / "nutch.csv").read_bytes().splitlines()[0]
    path.write_bytes(b"\n".join([header, quote, header, other]))
    (url, none), (spoilt, reason) = rows(path, "url, reason")
    assert (url, none, spoilt) == (WWW + '?q=","', None, WWW + "é")
    assert "dump with -format json" in reason


def test_segment_with_links_and_a_page_text(rows, tmp_path):
    record = "Recno:: {}\nURL:: {}\n\n"
    datum = "CrawlDatum::\nStatus: {}\nFetch time: Thu Oct 01 06:12:08 {} 2026\n\n"
    text = record.format(0, WWW) + datum.format("67 (linked)", "UTC")
    text += record.format(1, WWW) + datum.format("37 (fetch_gone)", "UTC")
    text += "ParseText::\nStatus: 1\nSignature: 12\n\n"
    text += record.format(2, WWW) + datum.format("34 (fetch_retry)", "UTC")
    text += record.format(3, WWW) + datum.format("33 (fetch_success)", "IST")
    path = tmp_path / "dump"
    path.write_text(text)
    found = rows(path, "time, status, digest, reason")
    assert found[:3] == [
        (None, None, None, NEVER),
        (NOON, 404, None, None),
        (NOON, None, None, FAILED),
    ]
    assert found[3][0] is None
    assert "user.timezone=UTC" in found[3][3]


STORM = {"url": WWW, "status": "FETCHED", "metadata": {},
         "nextFetchDate": "2026-10-02T06:12:08.000Z"}  # fmt: skip
CODE_200, CODE_304 = ({"fetch%2EstatusCode": [code]} for code in ("200", "304"))
NO_TIME = "without lastProcessedDate, and nextFetchDate with its interval"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (NOON, None, NO_DATE)),
        # fetchInterval in minutes
        ({"metadata": {"fetchInterval": ["1440"], **CODE_304}}, (NOON, 304, NO_DATE)),
        ({"status": "FETCH_ERROR"}, (at("10-02T04:12:08"), None, FAILED)),
        ({"status": "ERROR"}, (NOON, 404, None)),
        ({"status": "REDIRECTION", "metadata": CODE_200}, (NOON, 302, None)),
        ({"status": "LOST"}, (NOON, None, "whose status is unknown")),
        ({"nextFetchDate": None}, (None, None, NO_TIME)),
    ],
)
def test_states_of_stormcrawler(rows, tmp_path, changed, expected):
    path = tmp_path / "status.jsonl"
    path.write_text(json.dumps({"_source": STORM | changed}))
    assert rows(path, "last_fetch, status, reason") == [expected]


def test_items_of_frontier_that_were_only_discovered(rows, tmp_path):
    path = tmp_path / "frontier.jsonl"
    path.write_text(json.dumps({"discovered": {"info": {"url": WWW}}}))
    assert rows(path, "url, reason") == [(WWW, NEVER)]


@pytest.mark.parametrize("delimiter", [" ", "\t", ","])
def test_cdx_is_read_by_its_legend(rows, tmp_path, delimiter):
    legend = ["", "CDX", "k", "s", "b", "a"]
    capture = ["QELU", "-", "20261001061208", "http://WWW.a.org:80/B:80?"]
    lines = [legend, capture, legend, capture[:3], ["-", "2x0", *capture[2:]]]
    path = tmp_path / "index"
    path.write_text("\r\n".join(delimiter.join(line) for line in lines))
    page = "http://www.a.org/B:80?"
    assert rows(path, "url, time, status, digest, reason") == [
        (page, NOON, None, "sha1:QELU", None),
        (None, None, None, None, LINE),
        (page, NOON, None, None, "whose status is not a number"),
    ]


def test_captures_that_are_no_pages_or_have_no_time(rows, tmp_path):
    path = tmp_path / "wayback"
    lines = ["a 20261001061208 dns:a.org text/dns 200 QELU 1"]
    lines += ["a 20260931061208 https://a.org:443/ - 200 sha256:12 -"]
    lines += ["", "org%2Cexample%29%2F+20261015061209%21"]  # the list goes on
    path.write_bytes("\n".join(lines).replace("\n", "\r\n", 1).encode())
    assert rows(path, "time, digest, reason") == [
        (NOON, "sha1:QELU", NO_WEB),
        (None, "sha256:12", None),
    ]


def test_captures_of_common_crawl(rows, tmp_path):
    lines = [
        {"urlkey": "a", "timestamp": "20261001061208", "url": WWW, "status": "200"},
        {"urlkey": "a", "timestamp": "20261001061208", "url": WWW, "status": "304"},
    ]
    lines[1]["digest"] = EMPTY  # of the body that a 304 has not
    lines[0]["digest"], expected = "QELU", [(WWW, NOON, 200, "sha1:QELU", None)]
    expected.append((WWW, NOON, 304, None, True))
    path = tmp_path / "index"
    path.write_text("\n".join(map(json.dumps, lines)))
    columns = "url, time, status, digest, same"
    assert rows(path, columns) == expected
    path = tmp_path / "part-00000.gz.parquet"
    times = pa.array([NOON, NOON]).cast(pa.timestamp("ms"))
    table = {"url": [WWW, WWW], "fetch_time": times}
    table |= {"fetch_status": [200, 304], "content_digest": ["QELU", None]}
    pq.write_table(pa.table(table), path)
    assert recognise(path).name == "commoncrawl"
    assert rows(path, columns) == expected
