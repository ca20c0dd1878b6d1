"""Every sample of a format is recognised, read, and told from all others."""

import gzip
from pathlib import Path

import pytest

import recrawl
from recrawl import cli
from recrawl.formats import FORMATS, NAMES, recognise
from tests.recrawl.crawl_logs import recorded
from tests.recrawl.thinned import every

SAMPLES = Path(__file__).with_name("formats")
NAME_OF = {
    "nutch.jsonl": "nutch",
    "nutch.csv": "nutch",
    "readseg.txt": "readseg",
    "storm.jsonl": "storm",
    "frontier.jsonl": "frontier",
    "crawl.log": "heritrix",
    "cdx9.cdx": "cdx",
    "cdx11.cdx": "cdx",
    "wayback.txt": "wayback",
    "wayback.json": "wayback",
    "index.cdxj": "cdxj",
    "cdio": "changedetection",
    "sitemap.xml": "sitemap",
    "feed.xml": "feed",
    "atom.xml": "feed",
    "git.txt": "git",
    "fetched.jsonl": "jsonl",
    "http.csv": "csv",
}


def test_all_samples_are_here():
    found = {path.name for path in SAMPLES.iterdir()} - {"README.md"}
    assert found == set(NAME_OF)
    # WARC files are written by the tests, tables of Common Crawl are Parquet, and
    # http is another name of tables
    assert set(NAMES) - set(NAME_OF.values()) == {"warc", "commoncrawl", "http"}


@pytest.mark.parametrize(("sample", "name"), NAME_OF.items())
def test_a_sample_is_of_one_format_alone(sample, name):
    path = SAMPLES / sample
    assert recognise(path).name == name
    head = b"" if path.is_dir() else path.read_bytes()
    claimed = {each.name for each in FORMATS if each.recognises(head, path)}
    tables = {"csv", "jsonl", "http"}  # asked last, for they are known by their names
    assert claimed - tables == {name} - tables


@pytest.mark.parametrize("sample", every(4, NAME_OF))
def test_every_sample_is_converted_and_read_again(tmp_path, sample):
    if sample in ("atom.xml", "frontier.jsonl"):  # no page, no dates of changes
        with pytest.raises(ValueError, match="must hold at least one row"):
            recorded(recrawl.convert, SAMPLES / sample, tmp_path / "log.parquet")
        return
    (what, counts), _ = recorded(
        recrawl.convert, SAMPLES / sample, tmp_path / "log.parquet"
    )
    assert what == recognise(SAMPLES / sample).what
    found, _ = recorded(
        recrawl.estimate, tmp_path / "log.parquet", tmp_path / "rates.parquet"
    )
    assert found.counts["rows"] == counts["rows"] > 0


def test_the_command_offers_every_format(capsys):
    assert cli._FORMATS == NAMES
    with pytest.raises(SystemExit):
        cli.main(["compare", "--help"])
    shown = capsys.readouterr().out.replace(",", "").split()
    assert set(NAMES) < set(shown)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_of_another_format_is_refused(tmp_path, name):
    sample = "crawl.log" if name != "heritrix" else "git.txt"
    log = recrawl.Source(SAMPLES / sample, format=name)
    what = recognise(SAMPLES / sample).what
    with pytest.raises(ValueError, match=f"{sample} must be .*, looks like {what}"):
        recrawl.estimate(log, tmp_path / "rates.parquet")
    assert not list(tmp_path.iterdir())


def test_a_folder_of_several_formats_is_refused(tmp_path):
    for sample in ("crawl.log", "git.txt"):
        (tmp_path / sample).write_bytes((SAMPLES / sample).read_bytes())
    with pytest.raises(ValueError, match=r"of one format, got heritrix: .*; git: "):
        recrawl.estimate(tmp_path, tmp_path / "rates.parquet")


@pytest.mark.parametrize(
    "name", every(3, ["export.txt", "crawl.log", "table", "packed.gz"])
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_table_is_known_by_the_names_in_its_first_line(tmp_path, name, delimiter):
    rows = ["\ufeffURL,Time,changed", "a,2026-01-01,", "a,2026-01-03,1"]
    content = "\n".join(rows).replace(",", delimiter).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    assert recrawl.read_crawl_log(path).history.interval.tolist() == [2.0]
