"""Readers of WARC, changedetection.io, sitemaps, feeds, git and JSON Lines."""

import hashlib
import json
import shutil
import subprocess
import sys
from base64 import b32encode
from datetime import UTC, datetime
from io import BytesIO
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from recrawl.log.database import database, sql
from recrawl.log.formats import recognise
from recrawl.log.formats.records import LOST, batches
from recrawl.log.formats.source import Source
from tests.recrawl.crawl_logs import all_pages, recorded, write

SAMPLES = Path(__file__).parent / "formats"
BEGIN = 1_767_225_600  # 2026-01-01, seconds since 1970
AS_OF = datetime(2026, 10, 4, tzinfo=UTC)
URL = "https://www.example.org/"
# warcio does not close the temporary files in which it keeps bodies
LEAKY = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SITES_OWN = "whose lastmod is that of most pages, or of the download"
CHUNKED = b"3\r\nabc\r\n0\r\n\r\n"


def time(text):
    return datetime.fromisoformat(text + "+00:00")


def rows(path, as_of=AS_OF):
    """Rows that the reader of a file gives, as dicts without the nulls."""
    format = recognise(path)
    if format.query:
        with database("200MiB") as (connection, _):
            connection.execute(sql("tables"))
            found = batches(format.read(path, as_of), "captures")
            connection.register("records", found)
            found = connection.sql(format.query).to_arrow_table()
    else:
        found = batches(format.read(path, as_of), format.kind).read_all()
    found = found.to_pylist()
    return [{k: v for k, v in row.items() if v is not None} for row in found]


def pages(log):
    """Intervals and bits of each page."""
    interval, changed, offsets = log.history.ragged()
    ends = zip(log.page["url"].to_pylist(), offsets[:-1], offsets[1:], strict=True)
    return {url: (interval[a:b], changed[a:b]) for url, a, b in ends}


def json_lines(*rows):
    """Text of JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_bad_lines_of_json_lines_are_counted_and_named(tmp_path):
    text = "nonsense\n" + json_lines(
        {"url": "a", "time": 1767225600, "status": "200", "etag": 'W/"x"', "more": []},
        {"url": "a", "time": "2026-01-02T00:00:00Z", "status": "ok"},
        {"url": "a", "time": None},
        {"url": "a", "time": "2026-01-03T00:00:00Z", "etag": "y"},
    )
    path = write(tmp_path / "log.jsonl", (text + "\n{no\n").encode())
    log, (message,) = recorded(all_pages, path)
    assert pages(log)["a"][1].tolist() == [True]
    assert "2 that are no JSON (log.jsonl line 1: nonsense; log.jsonl line 7" in message
    assert "1 whose status is not a number (log.jsonl row 3: a,2026-01-02T" in message
    assert "1 whose time cannot be read (log.jsonl row 4: a,,)" in message


@pytest.mark.parametrize("name", ["log.jsonl", "log.ndjson.gz", "fetches.txt"])
def test_json_lines_are_a_table(name, tmp_path):
    """Keys by other names, in other letters, and absent from the first lines."""
    text = json_lines(
        {"URL": "http://a/", 'fetched "at"': "2026-01-01", "n": {"url": 1}},
        {"URL": "http://a/", 'fetched "at"': "2026-01-03", "Changed": True},
        {"URL": "http://a/", 'fetched "at"': 1767571200, "Changed": 0, "host": "b"},
    )
    columns = {"time": 'fetched "at"'}
    path = write(tmp_path / name, text.encode())
    source = Source(path, format="jsonl", columns=columns)
    log, messages = recorded(all_pages, source)
    (interval, changed) = pages(log)["http://a/"]
    assert (interval.tolist(), changed.tolist()) == ([2.0, 2.0], [True, False])
    assert log.page["host"].to_pylist() == ["b"]
    assert not messages


def sitemap(*lastmods):
    entries = (
        f"<url><loc>{URL}{k}</loc><lastmod>{text}</lastmod></url>"
        for k, text in enumerate(lastmods)
    )
    return f"<urlset>{''.join(entries)}</urlset>"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", "2024-01-01T00:00", "2025-01-01T00:00"),
        ("2024-02", "2024-02-01T00:00", "2024-03-01T00:00"),
        ("2026-10-01", "2026-10-01T00:00", "2026-10-02T00:00"),
        ("2026/10/01", "2026-10-01T00:00", "2026-10-02T00:00"),
        ("Thu, 01 Oct 2026", "2026-10-01T00:00", "2026-10-02T00:00"),
        ("2026-10-01T06:12+02:00", "2026-10-01T04:12", None),
        ("2026-10-01T06:12:08.5Z", "2026-10-01T06:12:08.500", None),
        ("2026-10-01T06:12:08.123456789Z", "2026-10-01T06:12:08.123456", None),
        ("20261001061208", "2026-10-01T06:12:08", None),
        ("1790835128", "2026-10-01T06:12:08", None),
    ],
)
def test_a_lastmod_stands_for_a_span_or_a_moment(tmp_path, text, first, last):
    found, *rest = rows(write(tmp_path / "sitemap.xml", sitemap(text)))
    assert found["start"] == time(first)
    if last is None:
        assert found["last_modified"] == time(first)
        assert not rest
    else:
        assert found["time"] == time(last)
        assert [(row["start"], row["changed"]) for row in rest] == [(time(last), False)]


NO_LASTMOD = ["yesterday", "2026-13", "0000-00-00", "0001-01-01T00:00:00", "9999"]


@pytest.mark.parametrize(
    ("lastmods", "reason", "n"),
    [
        (NO_LASTMOD, "whose lastmod cannot be read", 5),
        (["2026-10-04", "2027"], "whose lastmod is not before the download", 2),
        # of the build, and of the download; three may be equal by chance
        (["2026-10-01"] * 4 + ["2026-09-01"] * 2, SITES_OWN, 4),
        (["2026-10-01"] * 3 + ["2026-09-01"], None, 0),
        (["2026-10-03T23:59:30Z", "2026-10-03T23:59:58Z", "2026-09-01"], SITES_OWN, 2),
        (["2026-10-03T23:59:30Z", "2026-09-01"], None, 0),
    ],
)
def test_lastmods_that_say_nothing(lastmods, reason, n, tmp_path):
    path = write(tmp_path / "sitemap.xml", sitemap(*lastmods))
    assert [row["reason"] for row in rows(path) if "reason" in row] == [reason] * n


def test_of_a_truncated_sitemap_what_lies_before_is_used(tmp_path):
    text = sitemap(*(f"2026-09-{day:02}" for day in range(1, 29)))
    *whole, end = rows(write(tmp_path / "sitemap.xml", text[: len(text) // 2]))
    assert len(whole) > 10
    assert not any("reason" in row for row in whole)
    assert end["reason"] == LOST


@pytest.mark.parametrize(("size", "n_whole"), [(330, 1), (400, 2)])
def test_a_feed_that_is_cut_is_told(tmp_path, size, n_whole):
    """The entries before the cut are used, as they are whole."""
    path = tmp_path / "feed.xml"
    path.write_bytes((SAMPLES / "feed.xml").read_bytes()[:size])
    fault, *items = rows(path)
    assert fault["reason"] == LOST
    assert fault["given"] == "feed.xml: its last element is not closed"
    whole = rows(SAMPLES / "feed.xml")
    assert [row["given"] for row in items] == [row["given"] for row in whole][:n_whole]


def test_items_of_the_future_and_of_the_download_are_left_out(tmp_path):
    dates = "2026-10-04T00:00:00Z", "2027-01-01T00:00:00Z", "2026-10-01T00:00:00Z"
    entries = (f"<entry><id>{d}</id><updated>{d}</updated></entry>" for d in dates)
    head = '<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://a.example/"/>'
    text = f"{head}{''.join(entries)}</feed>"
    now, later, row = rows(write(tmp_path / "atom.xml", text))
    assert now["reason"] == later["reason"] == "dated at the download or later"
    assert (row["start"], row["stop"]) == (time("2026-10-01T00:00"), AS_OF)


def test_a_deletion_ends_a_window_of_git_and_a_last_commit_can_be_the_end(tmp_path):
    lines = [("A", 6), ("D", 4), ("M", 3), ("A", 1)]
    text = "".join(f"@{BEGIN + t}\n\n{kind}\ta\n" for kind, t in lines)
    path = write(tmp_path / "git.txt", text)
    found = rows(path, datetime.fromtimestamp(BEGIN + 5, UTC))  # before the last commit
    spans = [
        tuple(row[k].timestamp() - BEGIN for k in ("start", "stop", "time") if k in row)
        for row in found
    ]
    assert spans == [(), (3, 4), (1, 3, 3)]
    assert found[0]["reason"] == "of files that are new at the end"
    assert rows(write(path, text + "what?\n"))[-1]["reason"].startswith("that are no")


UNITS = ["<!--", "<loc>", "<![CDATA[", "<url ", "<?", "<!["]
BEGINS = ["", sitemap("2026-09-01")[:-9] + "<url>"]


@pytest.mark.parametrize(
    ("begin", "unit"),
    [*product(BEGINS, UNITS), ('[["timestamp", "original"],', '["\\"')],
)
def test_time_does_not_grow_as_the_square_of_what_has_no_end(tmp_path, begin, unit):
    """A guard against a run that hangs: by the square these would take hours."""
    path = write(tmp_path / "sitemap.xml", begin + unit * (1_500_000 // len(unit)))
    code = (
        "import sys; from pathlib import Path; "
        "from recrawl.log.formats import recognise; path = Path(sys.argv[1]); "
        "format = recognise(path); format and list(format.read(path, None))"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True, timeout=60)


def test_entries_behind_comments_that_never_end_are_read(tmp_path):
    comments = ("<loc>", "<!-- page -><loc>"), ("<lastmod>", "<!-- a -- b --><lastmod>")
    text = sitemap("2026-09-01", "2026-09-03")
    path = tmp_path / "sitemap.xml"
    whole = rows(write(path, text))
    for tag, commented in comments:
        assert rows(write(path, text.replace(tag, commented))) == whole


def test_no_entity_of_a_file_is_replaced(tmp_path):
    declared = '<!DOCTYPE urlset [<!ENTITY a "b"><!ENTITY c SYSTEM "/etc/hostname">]>'
    text = sitemap("2026-09-01").replace(f"{URL}0", f"{URL}&a;&c;&amp;")
    (row, _) = rows(write(tmp_path / "sitemap.xml", declared + text))
    assert row["url"] == f"{URL}&a;&c;&"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (sitemap(*["2026-09-01"] * 200_001), "at most 200,000 entries, and has more"),
        (sitemap("2026-09-01") + " " * (50 << 20), "at most 52,428,800 bytes"),
    ],
    ids=["entries", "bytes"],
)
def test_the_limits_of_a_sitemap_are_named(tmp_path, text, rule):
    *entries, end = rows(write(tmp_path / "sitemap.xml.gz", text.encode()))
    assert (end["reason"], rule in end["given"]) == (LOST, True)
    assert entries


def test_a_long_line_of_git_and_a_long_entry_are_left_out(tmp_path):
    git = f"@{BEGIN + 3}\n\nM\ta\nM\t{'b' * 2_000_001}\n@{BEGIN + 1}\n\nA\ta\n"
    long = sitemap("2026-09-01").replace("0<", "0" * 2_000_000 + "<")
    text = f"{long[:-9]}{sitemap('2026-09-01')[8:]}"
    for path in (tmp_path / "git.txt", tmp_path / "sitemap.xml"):
        found = rows(write(path, git if path.suffix == ".txt" else text))
        reasons = [row.get("reason") for row in found]
        assert reasons.count("of more than 2,000,000 bytes") == 1
        assert None in reasons


@pytest.fixture
def watch(tmp_path):
    """The watch.json of a copy of the sample of changedetection.io."""
    shutil.copytree(SAMPLES / "cdio", tmp_path / "cdio")
    return next(tmp_path.glob("cdio/095*/watch.json"))


@pytest.mark.parametrize("state", [{"paused": True}, {"last_error": "404"}])
def test_a_watch_that_stopped_is_known_to_its_last_change(watch, state, tmp_path):
    watch.write_text(json.dumps(json.loads(watch.read_text()) | state))
    last = watch.with_name("history.txt")
    last.write_text("".join(last.read_text().splitlines(True)[:3]) + "junk\n")
    *checks, _ = rows(tmp_path / "cdio")
    reason = "that are no line of a history, or out of its order"
    assert checks.pop(0)["reason"] == reason
    assert checks[-1]["time"] == time("2026-09-16T06:12:08")
    assert checks[-1]["changed"]


def write_bytes(path, data):
    path.write_bytes(data)
    return path


def sha1(body):
    """The digest of a payload, as WARC files have it."""
    return f"sha1:{b32encode(hashlib.sha1(body).digest()).decode()}"


def add_record(writer, kind, url, date, body=b"", profile="", **http):
    """Write one record; `http` has status and headers, or status None for none.

    A revisit has the digest of the body, and no body.
    """
    status = http.pop("status", "200 OK")
    headers = {"WARC-Date": date}
    if profile:
        headers["WARC-Profile"] = f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    if kind == "revisit":
        headers["WARC-Payload-Digest"] = sha1(body)
        body = b""
    answer = None
    if status is not None:
        fields = [(name.replace("_", "-"), value) for name, value in http.items()]
        answer = StatusAndHeaders(status, fields, protocol="HTTP/1.1")
    record = writer.create_warc_record(
        url,
        kind,
        payload=BytesIO(body),
        http_headers=answer,
        warc_headers_dict=headers,
        warc_content_type="application/http" if answer else "text/dns",
    )
    writer.write_record(record)


def warc(path, **options):
    """A WARC file with each kind of record, written by warcio."""
    first, same = "01T06:12:08Z", {"profile": "identical-payload-digest"}
    dated = {"ETag": 'W/"v1"', "Last_Modified": "Wed, 30 Sep 2026 20:00:00 GMT"}
    not_modified = {"profile": "server-not-modified", "status": "304 Not Modified"}
    gone, chunked = {"status": "404 Not Found"}, {"Transfer_Encoding": "chunked"}
    records = [
        ("response", URL, first, b"one", dated),
        ("revisit", URL, "02T06:12:08.123456789Z", b"one", same),
        ("revisit", URL, "03T06:12:08Z", b"", not_modified),
        ("response", f"{URL}gone", first, b"gone", gone),
        ("response", f"<{URL}chunked>", first, CHUNKED, chunked),
        ("response", "dns:www.example.org", first, b"x", {"status": None}),
        ("revisit", URL, first, b"", {"profile": "uri-agnostic"}),
        ("metadata", URL, first, b"via: x", {"status": None}),
    ]
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz", **options)
        writer.write_record(writer.create_warcinfo_record("a.warc", {"software": "x"}))
        for kind, url, moment, body, more in records:
            add_record(writer, kind, url, f"2026-10-{moment}", body, **more)
    return path


@LEAKY
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_records_of_a_warc_file(tmp_path, name, version):
    path = warc(tmp_path / name, warc_version=version)
    found = rows(path)
    first = time("2026-10-01T06:12:08")
    dns = "that are no web page (dns:, whois:)"
    assert [row.get("reason") for row in found] == [None] * 5 + [dns, None]
    for row in found:
        del row["given"]
    assert found[:5] == [
        {"row": 2, "url": URL, "time": first, "status": 200, "digest": sha1(b"one"),
         "etag": 'W/"v1"', "last_modified": time("2026-09-30T20:00")},
        {"row": 3, "url": URL, "time": time("2026-10-02T06:12:08.123456"),
         "status": 200, "digest": sha1(b"one")},
        {"row": 4, "url": URL, "time": time("2026-10-03T06:12:08"), "status": 304,
         "same": True},
        {"row": 5, "url": f"{URL}gone", "time": first, "status": 404,
         "digest": sha1(b"gone")},
        {"row": 6, "url": f"{URL}chunked", "time": first, "status": 200,
         "digest": sha1(CHUNKED)},
    ]  # fmt: skip


@LEAKY
@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_records_behind_a_long_one_are_read(tmp_path, name):
    """Most of a long body is passed by; a packed file must be read to do so."""
    long = np.random.default_rng(1).bytes(300_000)
    path = tmp_path / name
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz")
        for number, body in ((1, long), (2, b"short")):
            add_record(writer, "response", URL, f"2026-10-0{number}T00:00:00Z", body)
    assert [row["digest"] for row in rows(path)] == [sha1(long), sha1(b"short")]


@LEAKY
def test_of_a_truncated_or_damaged_warc_file_what_lies_before_is_used(tmp_path):
    for name in ("a.warc", "a.warc.gz"):
        whole = warc(tmp_path / name).read_bytes()
        n = len(rows(tmp_path / name))
        for size in range(len(whole) // 2, len(whole) - 4, 97):
            found = rows(write_bytes(tmp_path / f"cut-{name}", whole[:size]))
            assert found[-1]["reason"] == LOST
            assert 2 <= len(found) <= n + 1
        middle = len(whole) // 2
        damaged = whole[:middle] + b"\xff" * 200 + whole[middle + 200 :]
        found = rows(write_bytes(tmp_path / f"damaged-{name}", damaged))
        assert {LOST, "damaged records"} & {row.get("reason") for row in found}
        assert found[0]["digest"] == sha1(b"one")
    # of a damaged member of a gzip file, the members after it are used
    second = whole.find(b"\x1f\x8b\x08", 1) + 40
    damaged = whole[:second] + b"\xff" * 20 + whole[second + 20 :]
    found = rows(write_bytes(tmp_path / "second-a.warc.gz", damaged))
    assert "damaged records" in {row.get("reason") for row in found}
    assert found[-1] == rows(tmp_path / "a.warc.gz")[-1]


@LEAKY
def test_a_warc_file_gzipped_as_a_whole(tmp_path):
    plain = warc(tmp_path / "a.warc")
    whole = write(tmp_path / "b.warc.gz", plain.read_bytes())
    assert rows(whole) == rows(plain)
