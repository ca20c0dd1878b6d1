"""Schedules as files of crawlers: exact texts, limits of each system, bad input."""

import gzip
import json
import random
import subprocess
import time
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pytest

from recrawl import ExportWarning, cli, convert, estimate, export, schedule
from tests.recrawl.crawl_logs import parquet, table, write

NEWS = "https://www.example.org/news?cat=a,b"
HOME = "https://www.example.org/"
NEAR = "https://www.example.org/näher"
GONE = "https://www.example.org/gone"
KEYS = (  # SHA-256 of the three
    "e403ac6b035327f498eca4d6d1c05af11985919d6cafcd52489c8ab4e67e1347",
    "69bb248aeeeb9049570c4e672360a12cbe2a7fd50eb72c4399f21ed1ee818247",
    "f4b802a519a50969342872e36a29696a61eadd59e0e5046573d824a47a7ae29d",
)


def plan_of(path, *rows, **columns):
    """Write a schedule of rows (url, crawl_rate, due)."""
    url, rate, due = zip(*rows, strict=True)
    moments = [None if t is None else datetime.fromisoformat(t) for t in due]
    times = pa.array(moments, pa.timestamp("us", "UTC"))
    rate = pa.array(rate, pa.float64())
    return parquet(path, url=pa.array(url), crawl_rate=rate, due=times, **columns)


@pytest.fixture
def plan(tmp_path):
    """A page of every interval that matters, in the order of the schedule."""
    return plan_of(
        tmp_path / "plan.parquet",
        (HOME, 0.5, "2026-10-03T06:12:08Z"),
        (NEWS, 1 / 30, "2026-10-31T06:12:08Z"),
        (NEAR, 24.0, "2026-10-01T07:12:08Z"),
        (GONE, 0.0, None),
    )


NAMES = {"heritrix": "due.force", "changedetection": "set.sh"}


def written(schedule, to, **options):
    """The text of an export, and what is said of it."""
    output = schedule.parent / NAMES.get(to, f"{to}.txt")
    said = export(schedule, output, to, force=True, **options)
    return output.read_text(encoding="utf-8"), said


def storm_dump(tmp_path):
    """Two documents: one that an own rule routes, one that is not routed at all."""
    hits = [
        {"_index": "pages", "_id": "one", "_routing": "org", "_source": {"url": NEAR}},
        {"_index": "pages", "_id": "two", "_source": {"url": HOME}},
    ]
    dump = tmp_path / "storm.jsonl"
    dump.write_text("".join(f"{json.dumps(hit)}\n" for hit in hits), encoding="utf-8")
    return dump


FRONTIER = (
    '{"known":{"info":{"url":"https://www.example.org/","key":"www.example.org",'
    '"metadata":{"note":{"values":["ä, b"]}},"crawlID":"DEFAULT"},'
    '"refetchableFromDate":"1790880128"},"creationDate":"1788243128"}\n'
    '{"known":{"info":{"url":"https://www.example.org/else","key":"www.example.org",'
    '"crawlID":"DEFAULT"},"refetchableFromDate":"1"},"creationDate":"1788243128"}\n'
    '{"discovered":{"info":{"url":"https://www.example.org/new"}}}\n'
)


@pytest.fixture
def watches(tmp_path):
    """The datastore of changedetection.io, in a folder whose name looks like a glob."""
    folder = tmp_path / "data[1]*"
    for uuid, url in (("095be615-a8ad", NEWS), ("0aa", GONE), ("0bb", HOME)):
        (folder / uuid).mkdir(parents=True)
        watch = {"uuid": uuid, "url": url, "paused": False, "check_count": 61}
        (folder / uuid / "watch.json").write_text(json.dumps(watch))
    return folder


DOCUMENT = (
    '{"update":{"_index":"status","_id":"%s","routing":"www.example.org"}}\n'
    '{"doc":{"nextFetchDate":"%s","metadata":{"scheduler%%2Edelay%%2Emins":["%s"]}}}\n'
)


@pytest.mark.parametrize(
    ("to", "text"),
    [
        (
            "nutch",
            f"{HOME}\tnutch.fetchInterval=172800\n"
            f"{NEWS}\tnutch.fetchInterval=2592001\n"  # the default would be ignored
            f"{NEAR}\tnutch.fetchInterval=3600\n",
        ),
        (
            "storm",
            DOCUMENT % (KEYS[0], "2026-10-03T06:12:08.000Z", 2880)
            + DOCUMENT % (KEYS[1], "2026-10-31T06:12:08.000Z", 43200)
            + DOCUMENT % (KEYS[2], "2026-10-01T07:12:08.000Z", 60),
        ),
        (
            "jsonl",
            f'{{"url":"{NEAR}","due":"2026-10-01T07:12:08Z","interval_s":3600,'
            '"rate":24.0}\n'
            f'{{"url":"{HOME}","due":"2026-10-03T06:12:08Z","interval_s":172800,'
            '"rate":0.5}\n'
            f'{{"url":"{NEWS}","due":"2026-10-31T06:12:08Z","interval_s":2592000,'
            f'"rate":{1 / 30}}}\n',
        ),
        ("urls", f"{NEAR}\n{HOME}\n{NEWS}\n"),
    ],
)
def test_the_file_of_a_crawler(plan, to, text):
    found, said = written(plan, to)
    assert found == text
    assert said.startswith("3 pages; next:\n")
    pace = "-a per_day=24.5 -a log=fetched.jsonl -o fetched.jsonl\n"  # 24, 0.5, 1/30
    assert (pace in said) == (to == "jsonl")
    assert said.endswith(
        "\n1 page of crawl rate 0: left out, and the crawler keeps its interval"
    )


def test_storm_takes_identifiers_of_a_dump(plan, tmp_path):
    with pytest.warns(ExportWarning, match=r"1 that the export lacks \('.*news"):
        text, said = written(plan, "storm", exported=storm_dump(tmp_path))
    requests = [json.loads(line) for line in text.splitlines()]
    assert [request["update"] for request in requests[::2]] == [
        {"_index": "pages", "_id": "two"},  # without routing, not with null
        {"_index": "pages", "_id": "one", "routing": "org"},
    ]
    assert said.startswith("2 pages; next:\n")


def test_frontier_edits_the_dumped_line(plan, tmp_path):
    frontier = tmp_path / "frontier.jsonl"
    frontier.write_text(FRONTIER, encoding="utf-8")
    with pytest.warns(ExportWarning, match="2 that the export lacks"):
        text, said = written(plan, "frontier", exported=frontier)
    (item,) = map(json.loads, text.splitlines())
    before = json.loads(FRONTIER.splitlines()[0])
    assert item["known"].pop("refetchableFromDate") == "1791007928"
    del before["known"]["refetchableFromDate"]
    assert item == before
    assert "ä, b" in text
    assert said.startswith("1 page; next:\njava -jar urlfrontier-client")


def test_heritrix(plan):
    text, said = written(plan, "heritrix", until="2026-10-03T08:00:00Z")
    assert text == f"F+ {NEAR}\nF+ {HOME}\n"
    assert "1 page of crawl rate 0" in written(plan, "heritrix", until="1999-01-01")[1]
    assert said.startswith("2 pages; next:\nmv ")


def test_changedetection(plan, watches, tmp_path, monkeypatch):
    """With a curl that writes its arguments down."""
    with pytest.warns(ExportWarning, match=r"1 that the export lacks \('.*näher'\)"):
        said = written(plan, "changedetection", exported=watches)[1]
    assert said.startswith("3 pages; next:\nAPI_KEY=... sh ")
    assert said.endswith("\n1 page of crawl rate 0: paused")
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >> "$0.log"\n')
    curl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    script = ["sh", tmp_path / "set.sh"]
    refused = subprocess.run(script, capture_output=True, text=True)
    assert "API_KEY" in refused.stderr
    monkeypatch.setenv("API_KEY", "se cret")
    subprocess.run(script, check=True, capture_output=True)
    sent = (tmp_path / "curl.log").read_text().splitlines()
    assert sent.count("x-api-key: se cret") == 3
    changes = {
        line.rpartition("/")[2]: json.loads(sent[sent.index("-d", k) + 1])
        for k, line in enumerate(sent)
        if line.startswith("http://localhost:5000/api/v1/watch/")
    }
    assert changes["0aa"] == {"paused": True}
    units = ("weeks", "days", "hours", "minutes", "seconds")
    assert changes["095be615-a8ad"] == {
        "time_between_check_use_default": False,
        "time_between_check": dict(zip(units, (4, 2, 0, 0, 0), strict=True)),
    }
    assert changes["0bb"]["time_between_check"]["days"] == 2


def test_an_older_datastore_is_refused(plan, tmp_path):
    place = write(tmp_path / "data" / "url-watches.json", '{"watching": {}}').parent
    with pytest.raises(ValueError, match=r"datastore \(version 0.53 or later\), got"):
        export(plan, tmp_path / "set.sh", "changedetection", exported=place)


def test_nutch_takes_whole_seconds_within_its_limits(tmp_path):
    seconds = [1.0, 60.4, 3600.5001, 2_592_000.4, 7_776_001.0, 1e9]
    rows = [(f"http://u/{k}", 86_400 / s, "2026-10-01") for k, s in enumerate(seconds)]
    text, _ = written(plan_of(tmp_path / "plan.parquet", *rows), "nutch")
    found = [int(line.partition("=")[2]) for line in text.splitlines()]
    assert found == [60, 60, 3601, 2_592_001, 7_776_000, 7_776_000]


NO_WEB = "#a", "--output-document=/tmp/x", "file:///etc/passwd", "/etc/passwd", "http:"
FIT = "l", 'm"n', "ö\\p"
ODD = ["h i", *(f"a{chr(k)}b" for k in (*range(1, 32), 127))]
ODD = (*NO_WEB, *(f"HTTPS://a/{text}" for text in [*ODD, *FIT]))
LINES = *NO_WEB, *ODD[6:-3]


@pytest.mark.parametrize(
    ("to", "unfit"),
    [
        ("nutch", LINES),
        ("urls", LINES),
        ("heritrix", ODD[:-3]),
        ("jsonl", NO_WEB),
        ("storm", NO_WEB),
    ],
)
def test_urls_that_a_file_cannot_hold_are_left_out_and_named(
    tmp_path, recwarn, to, unfit
):
    rows = [(url, 1.0, "2026-10-01") for url in ODD]
    plan = plan_of(tmp_path / "plan.parquet", *rows)
    said = export(plan, tmp_path / NAMES.get(to, "out"), to)
    assert said.startswith(f"{len(ODD) - len(unfit)} pages; next:\n")
    (told,) = recwarn
    assert f"{len(unfit)} with URLs" in str(told.message)
    assert ", ".join(map(repr, unfit[:3])) in str(told.message)
    lines = (tmp_path / NAMES.get(to, "out")).read_text().splitlines()
    assert len(lines) == (len(ODD) - len(unfit)) * (1 + (to == "storm"))
    if to == "jsonl":
        assert [json.loads(line)["url"] for line in lines] == list(ODD[5:])


def test_until(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Honolulu")
    time.tzset()

    def due(until):
        return written(plan, "urls", until=until)[0].split()

    assert due("2026-10-03T06:12:08Z") == [NEAR, HOME]
    assert due("2026-10-03T08:12:07+02:00") == [NEAR]
    assert due("2026-10-03") == [NEAR], "UTC"
    assert due(datetime(2026, 10, 3, 6, 12, 8, tzinfo=UTC)) == [NEAR, HOME]
    soon = plan_of(
        tmp_path / "soon.parquet",
        ("http://past", 1.0, "2020-01-01"),
        ("http://ahead", 1.0, "2100-01-01"),
        ("http://new", 1.0, None),
    )
    assert written(soon, "urls", until="now")[0] == "http://past\nhttp://new\n"
    found = written(soon, "heritrix")[0]
    assert found == "F+ http://past\nF+ http://new\n", "now is its default"
    assert written(soon, "urls")[0] == "http://past\nhttp://new\nhttp://ahead\n"
    monkeypatch.undo()
    time.tzset()


def test_a_schedule_that_is_none(plan, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        export(plan, tmp_path / "out", "storm", exported=tmp_path / "nowhere")
    rates = parquet(tmp_path / "rates.parquet", url=["a"], change_rate=[1.0])
    with pytest.raises(ValueError, match=r"rates.parquet without crawl_rate, due: run"):
        export(rates, tmp_path / "out", "urls")


def test_names_never_become_sql(tmp_path):
    """A folder whose name is SQL and a pattern, and URLs that are SQL."""
    folder = tmp_path / "it's [a] *; drop table page; --"
    folder.mkdir()
    url = "https://example.org/'); drop table page; --"
    plan = plan_of(folder / "plan.parquet", (url, 1.0, "2026-10-01"))
    assert written(plan, "urls")[0] == f"{url}\n"
    dump = storm_dump(folder)
    with pytest.warns(ExportWarning, match="drop table page"):
        assert written(plan, "storm", exported=dump)[0] == ""


def test_the_command_refuses_to_write_over_a_file(plan, capsys, monkeypatch):
    monkeypatch.chdir(plan.parent)
    command = ["export", "plan.parquet", "--to", "nutch", "-o", "seeds.txt"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.startswith("seeds.txt: 3 pages; next:")
    assert cli.main(command) == 2
    assert "seeds.txt exists" in capsys.readouterr().err
    assert cli.main([*command, "--force", "--due", "2026-10-02"]) == 0
    assert (plan.parent / "seeds.txt").read_text().startswith(NEAR)


ENDS = "must end in "


@pytest.mark.filterwarnings("ignore::recrawl.ExportWarning")
@pytest.mark.parametrize(
    ("to", "name", "rule"),
    [
        ("heritrix", "due.force.gz", None),
        ("heritrix", "due.txt", ".force or .force.gz in small"),
        ("heritrix", "due.FORCE", ENDS),
        ("nutch", "seeds.txt.gz", None),
        ("nutch", "SEEDS.TXT.GZ", ".txt or .gz or .txt.gz in small"),
        ("nutch", "seeds.txt.bz2", ENDS),
        ("nutch", "_seeds.txt", "and not begin with . or _"),
        ("frontier", "items.jsonl.gz", None),
        ("frontier", "items.jsonl.zst", ENDS),
        ("storm", "bulk.jsonl.gz", ENDS),
        ("jsonl", "due.xlsx", ENDS),
        ("urls", "due.txt.gz", ".txt in small letters"),
        ("changedetection", "due.bat", ENDS),
        ("changedetection", "due.sh", None),
    ],
)
def test_a_name_promises_what_the_file_is(plan, watches, tmp_path, to, name, rule):
    """Gzipped if the name says so, and the crawler unpacks it; else refused."""
    dumps = {"frontier": tmp_path / "frontier.jsonl", "changedetection": watches}
    write(tmp_path / "frontier.jsonl", FRONTIER)
    options = {"exported": dumps.get(to), "until": "2099-01-01"}
    if rule is not None:
        with pytest.raises(ValueError, match=f"^output .*{rule}.*got .*{name}$"):
            export(plan, tmp_path / name, to, **options)
        assert not (tmp_path / name).exists()
        return
    twice = []
    for _ in range(2):
        said = export(plan, tmp_path / name, to, force=True, **options)
        twice.append((tmp_path / name).read_bytes())
    assert name in said
    content = twice[0]
    assert content == twice[1]
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    assert content.decode() == written(plan, to, **options)[0]


DUMPS = {
    "storm": '{{"_index":"i{1}","_id":"{0}{1}","_source":{{"url":"{0}"}}}}',
    "frontier": '{{"known":{{"info":{{"url":"{0}","key":"{1}"}}}}}}',
}


@pytest.mark.filterwarnings("ignore::recrawl.BadRowsWarning")
def test_outputs_do_not_depend_on_threads_and_the_order_of_rows(tmp_path, monkeypatch):
    """All of them, byte for byte: from logs with rows, keys and dumps that tie."""
    connect, rng = duckdb.connect, random.Random(7)
    columns = ("url", "time", "digest", "status")
    urls = [f"https://h{k % 9}.example.org/{k}?id={k % 2}" for k in range(900)]
    rows = [
        # as many digests of one kind as of another
        (url, 1.7e9 + day * 86_400 * (1 + k % 3), f"{kind}:{k * day % 4}", 200)
        for k, url in enumerate(urls)
        for day in range(8)
        for kind in ["md5" if day in (0, 2, 5, 7) else "sha1"]
    ]
    dumps = {
        to: [line.format(url, n) for url in urls for n in range(3)]
        for to, line in DUMPS.items()
    }
    found = []
    for n_threads in (1, 2, 2):
        monkeypatch.setattr(
            duckdb,
            "connect",
            lambda n=n_threads, **given: connect(
                config=given.pop("config", {}) | {"threads": n}, **given
            ),
        )
        write(tmp_path / "log.csv", table(rows, columns))
        convert(tmp_path / "log.csv", tmp_path / "table.csv", force=True)
        estimate(tmp_path / "log.csv", tmp_path / "rates.parquet", force=True)
        plan = tmp_path / "plan.parquet"
        schedule(tmp_path / "rates.parquet", plan, 200.0, force=True)
        for to, lines in dumps.items():
            write(tmp_path / f"{to}.dump", "\n".join(lines))
            written(plan, to, exported=tmp_path / f"{to}.dump")
        for to in ("nutch", "urls", "jsonl", "heritrix"):
            written(plan, to, until="2099-01-01")
        files = [
            *tmp_path.glob("*.txt"),
            tmp_path / "due.force",
            tmp_path / "table.csv",
        ]
        found.append({file.name: file.read_bytes() for file in files})
        lines = [json.loads(line) for line in found[-1]["storm.txt"].splitlines()]
        assert len(lines) == 2 * 3 * 900
        assert all("update" in line for line in lines[::2])
        assert all("doc" in line for line in lines[1::2])
        for lines in (rows, *dumps.values()):
            rng.shuffle(lines)
    assert len(found[0]) == 7
    assert found[0] == found[1]
    assert found[0] == found[2]
