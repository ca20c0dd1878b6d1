"""Every sample of a format is recognised, read, and told from all others."""

import gzip
import json
import os
import re
import shutil
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

import recrawl
from recrawl import Source, cli
from recrawl.log.formats import FORMATS, NAMES, recognise
from recrawl.log.formats.records import LOST
from tests.recrawl.crawl_logs import all_pages, recorded, write
from tests.recrawl.thinned import every

SAMPLES = Path(__file__).with_name("formats")
EXPECTED = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
AS_OF = datetime(2026, 10, 4, tzinfo=UTC)  # when sitemaps, feeds and git were read
LATER = datetime(2027, 1, 1, tzinfo=UTC)
HEADER = "url,time,changed\n"
NO_GZIP = gzip.compress(HEADER.encode(), mtime=0)[:10] + b"\xff" * 9
ROW = '{"url": "a", "time": "2026-01-01", "etag": "x"}'
NO_JSON = "log.* must have one object of JSON a line, but no line is JSON"
# Ending, content, and what the message says of it.
NO_LINES = [
    ("jsonl", f"{ROW},\n{ROW},\n".encode(), 'the first is \'{"url": '),
    ("JL", b'{\n  "url": "a",\n  "time": "2026-01-01"\n}\n', "the first is '{'"),
    ("ndjson", f"\x1e{ROW}\n\x1e{ROW}\n".encode(), r"'\\x1e{"),
    ("jsonl", f"{ROW}\n".encode("utf-16"), "; its text must be in UTF-8"),
    ("jsonl", f"{ROW}\n".encode("utf-16-le"), "; its text must be in UTF-8"),
    ("jsonl", f"{ROW},\n".replace("a", "\xe9").encode("latin-1"), "the first is"),
    ("jsonl", b"[" * 200_000 + b"\n", r"the first is '\[\["),
    ("jsonl", b"1\n2\n", "the first is '1'"),
]


def test_all_samples_are_here():
    found = {path.name for path in SAMPLES.iterdir()}
    assert found == {*EXPECTED, "README.md", "expected.json"}
    named = {sample["format"] for sample in EXPECTED.values()}
    # WARC files are written by the tests, tables of Common Crawl are Parquet
    assert {*NAMES} - named == {"warc", "commoncrawl"}


@pytest.mark.parametrize("sample", EXPECTED)
def test_a_sample_is_of_one_format_alone(sample):
    path, name = SAMPLES / sample, EXPECTED[sample]["format"]
    assert recognise(path).name == name
    head = b"" if path.is_dir() else path.read_bytes()
    claimed = {each.name for each in FORMATS if each.recognises(head, path)}
    tables = {"csv", "jsonl"}  # asked last, for they are known by their names
    assert claimed - tables == {name} - tables


@pytest.mark.parametrize("packed", ["", ".gz", ".GZ"])
@pytest.mark.parametrize("sample", EXPECTED)
def test_every_sample_is_converted(tmp_path, sample, packed):
    """The last one with more behind its end, which is left out."""
    path, expected = SAMPLES / sample, EXPECTED[sample]
    more = {}
    if packed and not path.is_dir():
        content = gzip.compress(path.read_bytes())
        path = tmp_path / f"{sample}{packed}"
        more = {LOST: 1} if packed == ".GZ" else {}
        path.write_bytes(content + b"more" * len(more))
    downloaded = sample.startswith(("sitemap", "feed", "atom", "git"))
    log = Source(path, as_of=AS_OF if downloaded else LATER)
    output = tmp_path / "log.csv"
    if error := expected["counts"].get("error"):
        with pytest.raises(ValueError, match="at least one row") as raised:
            recorded(recrawl.convert, log, output)
        assert error in str(raised.value)
        return
    (_, counts), told = recorded(recrawl.convert, log, output)
    assert counts == expected["counts"] | more
    assert "scratch" not in "".join(told)
    assert output.read_text(encoding="utf-8").splitlines()[1:] == expected["rows"]
    # what was written is a log, too
    found, _ = recorded(recrawl.convert, output, tmp_path / "again.csv")
    assert found[1]["rows"] == len([r for r in expected["rows"] if ",false," in r
                                    or ",true," in r])  # fmt: skip


def test_a_format_that_is_none_gets_a_list_of_all(capsys):
    assert cli.main(["report", "log", "-o", "r.html", "--from", "excel"]) == 2
    message = f"recrawl: --from must be auto, {', '.join(NAMES)}, got 'excel'\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_of_another_format_is_refused(tmp_path, name):
    sample = "crawl.log" if name != "heritrix" else "git.txt"
    log = recrawl.Source(SAMPLES / sample, format=name)
    what = recognise(SAMPLES / sample).what
    with pytest.raises(ValueError, match=f"{sample} must be .*, looks like {what}"):
        recrawl.convert(log, tmp_path / "log.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("n", "shown"),
    [(1, "1.log; git"), (3, "1.log, {0}/2.log, {0}/3.log; git"),
     (5, "1.log, {0}/2.log, {0}/3.log and 2 more; git")],
)  # fmt: skip
def test_a_folder_of_several_formats_is_refused(tmp_path, n, shown):
    samples = {f"{k}.log": "crawl.log" for k in range(1, n + 1)}
    for name, sample in (samples | {"git.txt": "git.txt"}).items():
        (tmp_path / name).write_bytes((SAMPLES / sample).read_bytes())
    message = f"of one format, got heritrix: {{0}}/{shown}: {{0}}/git.txt"
    with pytest.raises(ValueError, match=re.escape(message.format(tmp_path))):
        recrawl.convert(tmp_path, tmp_path / "log.parquet")


@pytest.mark.parametrize("name", every(3, ["a.txt", "crawl.log", "table", "a.gz"]))
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_table_is_known_by_the_names_in_its_first_line(tmp_path, name, delimiter):
    rows = ["\ufeffURL,Time,changed", "a,2026-01-01,", "a,2026-01-03,1"]
    path = write(tmp_path / name, "\n".join(rows).replace(",", delimiter))
    assert all_pages(path).history.interval.tolist() == [2.0]


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("log", b"", "must not be empty"),
        (
            "log.csv",
            b"uri,timestamp,changed\na,0,1\n",
            "a column 'url' and 'time' in its",
        ),
        ("log.csv", b"a,0,1\nb,0,1\n", "in its first line, got a, 0, 1;"),
        ("log.csv", b"\n\n", "in its first line, got none;"),
        ("log.csv", b"url,time,changed,URL\n", "have one column 'url', got several"),
        ("log.csv", HEADER.encode(), "row that can be used, got none at all"),
        ("log.csv", f"{HEADER}a,x,1\n".encode(), "used, got 1 whose time cannot be r"),
        ("log.csv", HEADER.encode("utf-16"), "its text must be in UTF-8"),
        ("log.csv", "url,time,geändert\n".encode("cp1252"), "text must be in UTF-8"),
        ("log.csv", b'"url,time,changed\na,2026-01-01,0\n', "must have a column"),
        ("log", b"BZh91AY", "packed in another way: unpack"),
        ("log", b"\x28\xb5\x2f\xfd", "packed in another way: unpack"),
        ("log", b'[{"url": "a"}]', "got an array of JSON"),
        ("log.jsonl", f"[\n{ROW}\n]\n".encode(), r"one object a line \(jq"),
        *((f"log.{end}", text, f"{NO_JSON}.*{hint}") for end, text, hint in NO_LINES),
        ("log.csv", f"url,time,{'x' * 200_000}\n".encode(), "131,072 each, got field"),
        ("log.csv", b"x" * 2_000_000, "names of at most 1,048,576 characters in its"),
        ("log.csv.gz", NO_GZIP, "no sound gzip member at byte 0"),
        ("log.parquet", b"PAR1 and no more", "log.parquet cannot be read: "),
        ("log.parquet", HEADER.encode(), "log.parquet cannot be read: "),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, name, content, rule):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rule) as refused:
        recorded(recrawl.convert, tmp_path / name, tmp_path / "out.csv")
    assert str(tmp_path / name) in str(refused.value)
    assert "scratch" not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    ["LOG.CSV", "log.CSV.GZ", "log.Tsv.Gz", "CRAWL.GZ", "LOG.JSONL.GZ", "a.NDJSON",
     "log.csv.gz", "packed.csv", "log.PARQUET"],
)  # fmt: skip
def test_a_name_in_capitals_or_of_another_packing_is_read(tmp_path, name):
    path, content = tmp_path / name, f"{HEADER}a,2026-01-01,\na,2026-01-03,1\n"
    if "JSON" in name:
        key = '{"url": "a", "time": "2026-01-0'
        content = f'{key}1"}}\n{key}3", "changed": 1}}\n'
    if name == "log.PARQUET":
        log = write(tmp_path / "log.csv", content)
        recrawl.convert(log, tmp_path / "log.parquet")
        (tmp_path / "log.parquet").rename(path)
    elif name in ("log.csv.gz", "LOG.CSV", "a.NDJSON"):
        path.write_text(content)  # the first bytes tell, and not the name
    else:
        path.write_bytes(gzip.compress(content.encode()))
    assert all_pages(tmp_path / name).history.interval.tolist() == [2.0]


@pytest.mark.parametrize(
    "line",
    ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;", "sep=;;;", '"sep=;";;',
     "#TYPE System.Object"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["log.csv", "log.txt"])
def test_the_line_of_excel_before_the_names_is_passed_over(tmp_path, line, end, name):
    rows = [line, "url;time;changed", "a,,,;2026-01-01;", 'a,,,;"2026-01-03";WAHR', ""]
    (tmp_path / name).write_text(end.join(rows), newline="")
    log = all_pages(tmp_path / name)
    assert log.history.interval.tolist() == [2.0]
    assert log.history.changed.tolist() == [True]


def test_a_pipe_and_a_name_that_is_no_utf8_are_refused_by_name(tmp_path):
    pipe, name = tmp_path / "pipe", os.fsencode(tmp_path) + b"/l\xf6g.csv"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="pipe must be a file or a folder"):
        recrawl.convert(pipe, tmp_path / "out.csv")
    with open(name, "wb") as file:
        file.write(b"url,time,changed\na,2026-01-01,1\n")
    with pytest.raises(ValueError, match=r"l\\udcf6g.csv' must be a name in UTF-8"):
        recrawl.convert(os.fsdecode(name), tmp_path / "out.csv")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # the address of a socket is short
        made.bind(path.name)


NOWHERE = "is a link that leads nowhere"
NO_FILE = "must be a file or a folder, got a pipe, a socket or a device"


@pytest.mark.parametrize("sample", ["table", "crawl.log", "cdio"])
@pytest.mark.parametrize("place", ["lost", "2026/11/lost"])
@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda path: path.symlink_to("nowhere"), NOWHERE),
        (lambda path: path.symlink_to(path.name), NOWHERE),
        (os.mkfifo, NO_FILE),
        (bound_socket, NO_FILE),
    ],
)
def test_what_cannot_be_read_in_a_folder_is_an_error(
    tmp_path, monkeypatch, sample, place, make, rule
):
    """In folders of all formats at any depth: nothing of a log is passed over."""
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "log"
    if sample == "cdio":
        shutil.copytree(SAMPLES / sample, log)
    elif sample == "table":
        write(log / "log.csv", f"{HEADER}a,2026-01-01,0\na,2026-01-03,1\n")
    else:
        write(log / sample, (SAMPLES / sample).read_bytes())
    (log / place).parent.mkdir(parents=True, exist_ok=True)
    make(log / place)
    with pytest.raises((ValueError, FileNotFoundError), match=f"{place} {rule}"):
        recrawl.convert(log, tmp_path / "out.csv")
    hidden = log / place
    hidden.rename(hidden.with_name(".lost"))  # such as the lock of an editor
    recorded(recrawl.convert, log, tmp_path / "out.csv")


def test_links_to_folders_are_followed_and_each_is_read_once(tmp_path):
    log, archive = tmp_path / "log", tmp_path / "archive"
    for folder in (log, archive):
        write(folder / f"{folder.name}.csv", f"{HEADER}a,2026-01-01,0\n")
    for name, target in [("2025", archive), ("again", archive), ("up", tmp_path)]:
        (log / name).symlink_to(target)
    (archive / "back").symlink_to(log)
    files, unknown = Source(log).files()
    found = [str(file.relative_to(log)) for file, _ in files]
    assert (found, unknown) == (["2025/archive.csv", "log.csv"], [])


def test_a_folder_that_may_not_be_read_is_an_error(tmp_path, monkeypatch):
    write(tmp_path / "log.csv", f"{HEADER}a,2026-01-01,0\n")
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(PermissionError, match="closed"):
        Source(tmp_path).files()
