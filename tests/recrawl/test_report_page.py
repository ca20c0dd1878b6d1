"""The page that `recrawl.report` writes: its numbers, and that it is harmless."""

import base64
import hashlib
import html
import math
import re
import shlex
import sys
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import recrawl
from recrawl import cli, reading, reporting
from tests.recrawl.crawl_logs import parquet, recorded, table, write

VOID = {"meta", "img", "br", "link", "input", "hr"}
ATTACKS = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "javascript:alert(1)",
    "https://a.org/?q='\"&lt;b>{{ 7 * 7 }}</pre></script>",
    "https://a.org/\u202egnp.exe\x07",
)


class Page(HTMLParser):
    """A page taken apart; elements must be closed in the order they are opened."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements, self.texts, self._open = [], [], []
        self.feed(self.source)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        assert len(dict(attributes)) == len(attributes), "an attribute twice"
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self._open[-1] if self._open else "", data))

    def text(self):
        return " ".join(" ".join(data for _, data in self.texts).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def rows(n_pages=12, n_days=40, url="https://h{host}.example/{page}"):
    """A log of pages of all kinds, on three hosts."""
    rng = np.random.default_rng(1)
    found = []
    for page in range(n_pages):
        name = url.format(host=page % 3, page=page)
        share = (page + 0.5) / n_pages if page > 1 else page
        for day in range(n_days):
            time = date(2026, 1, 1) + timedelta(day)
            found.append((name, time, int(rng.random() < share), 200))
    return found


COLUMNS = ("url", "time", "changed", "status")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A log, the page of it, and what the function returned."""
    folder = tmp_path_factory.mktemp("report")
    failing = [("https://h2.example/moved", "2026-01-05", 0, 301)] * 4
    log = write(folder / "log.csv", table([*rows(), *failing], COLUMNS))
    found = recrawl.report(log, folder / "report.html")
    return log, Page(folder / "report.html"), found


@pytest.mark.slow
def test_numbers_are_those_of_the_functions(made, tmp_path):
    log, page, found = made
    rates, text = tmp_path / "rates.parquet", page.text()
    assert found.estimates == recrawl.estimate(log, rates)
    assert found.pace == pytest.approx(12 * 39 / 39)
    for factor, plan in zip((0.25, 0.5, 1, 2, 4), found.schedules, strict=True):
        own = recrawl.schedule(rates, tmp_path / f"{factor}.parquet", 12.0 * factor)
        assert plan.bandwidth == own.bandwidth
        assert plan.freshness == pytest.approx(own.freshness, rel=1e-12)
        assert f"{12 * factor:g} {factor:.2f} {100 * own.freshness:.1f}%" in text
    assert f"{100 * found.schedules[2].freshness_now:.1f}% of copies" in text
    rules = recrawl.compare(log)
    assert found.rules == rules
    for rule, fresh in rules.freshness.items():
        behind = rules.freshness["optimal"] - fresh
        assert f"{rule} {fresh:.4f} {behind:.4f}" in text
    backtest = recrawl.backtest(log)
    assert found.backtest.log_loss == backtest.log_loss
    assert f"predict the {backtest.n_bits:,} crawls" in text
    for name, loss in backtest.log_loss.items():
        assert f"{name} {loss:.4f} " in text
    for p, share, n in backtest.calibration[found.estimates.estimator]:
        assert not n or f"{n:g} {p:.3f} {share:.3f}" in text


@pytest.mark.slow
def test_what_the_log_is(made):
    text = made[1].text()
    for part in (
        "taken for a table in text",
        "files 1",
        "rows used 480",
        "pages 13 on 3 hosts",
        "2026-01-01 00:00 to 2026-02-09 00:00 UTC (39 days)",
        "4 of failed fetches",
        "1 never changed",
        "1 always changed",
        "1 never fetched successfully",
        "https://h2.example/moved",
    ):
        assert part in text, part


def test_a_page_is_well_formed_and_loads_nothing(made):
    page = made[1]
    assert page.source.startswith("<!DOCTYPE html>")
    assert {attributes["src"][:26] for attributes in page.all("img")} == {
        "data:image/svg+xml;base64,"
    }
    assert len(page.all("img")) == 5
    assert all(len(attributes["alt"]) > 40 for attributes in page.all("img"))
    ids = {a["id"] for _, a in page.elements if "id" in a}
    assert len(ids) == sum("id" in a for _, a in page.elements)
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "base", "form"}
        assert not [name for name in attributes if name.startswith("on")]
        if "href" in attributes:
            assert attributes["href"].removeprefix("#") in ids
    css = "".join(data for tag, data in page.texts if tag == "style")
    assert "url(" not in css
    assert "@import" not in css
    for attributes in page.all("img"):  # nor do the pictures
        svg = base64.b64decode(attributes["src"].partition(",")[2]).decode()
        found = re.findall(r"(?:href|src)=\"([^\"]*)", svg) + re.findall(
            r"url\((.)", svg
        )
        assert all(address.startswith("#") for address in found)


def test_only_the_own_script_may_run(made):
    page = made[1]
    (policy,) = (
        a["content"] for a in page.all("meta") if "Security" in a.get("http-equiv", "")
    )
    assert policy.startswith("default-src 'none'; ")
    assert "connect-src" not in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    (script,) = (data for tag, data in page.texts if tag == "script")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not page.all("script")[0]


@pytest.mark.slow
def test_urls_hosts_and_file_names_are_shown_as_text(tmp_path):
    log = [
        (url, f"2026-01-{day:02d}", int(day % 3 == 0 or k == 0), attack)
        for k, url in enumerate(ATTACKS)
        for attack in ATTACKS[k : k + 1]
        for day in range(1, 29)
    ]
    columns = ("url", "time", "changed", "host")
    file = write(tmp_path / "<b onload='x'>&\".csv", table(log, columns))
    recrawl.report(file, tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    text = page.text()
    for attack in ATTACKS[:4]:
        assert text.count(attack) >= 2, attack
        assert attack == "javascript:alert(1)" or attack not in page.source
    assert "https://a.org/\ufffdgnp.exe\ufffd" in text
    assert not {"\u202e", "\x07"} & set(page.source)
    assert file.name in text
    assert len(page.all("script")) == 1
    assert not page.all("b")[4:], "only those of the cards"
    assert len(page.all("img")) == 5
    assert {a["href"][:1] for a in page.all("a")} == {"#"}


def test_commands_run(made):
    log, page, found = made
    lines = [
        html.unescape(line)
        for tag, data in page.texts
        if tag == "pre"
        for line in data.splitlines()
    ]
    commands = [cli._parser().parse_args(shlex.split(line)[1:]) for line in lines]
    assert [c.command for c in commands] == [
        *("estimate", "schedule", "estimate", "schedule", "report")
    ]
    assert commands[0].log == [log]
    assert commands[1].bandwidth == pytest.approx(found.pace, rel=5e-3)
    assert "every 7.8 days" in page.text()


@pytest.mark.slow
def test_commands_name_format_columns_and_odd_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ["-log.csv", "my log.csv"]
    for file in files:
        write(tmp_path / file, table(rows(2, 9), ("page", *COLUMNS[1:])))
    time = datetime(2026, 3, 1, tzinfo=UTC)
    source = recrawl.Source(files, columns={"url": "page"}, as_of=time)
    recrawl.report(source, "my log.html")
    page = Page(tmp_path / "my log.html")
    (line, *_, again) = (d for tag, d in page.texts if tag == "pre")
    assert str(cli._parser().parse_args(shlex.split(again)[1:]).output) == "my log.html"
    command = cli._parser().parse_args(shlex.split(line)[1:])
    assert [str(path) for path in command.log] == files
    assert "-log.csv and 1 more" in page.text()
    assert (command.column, command.as_of) == ([("url", "page")], time)


@pytest.mark.slow
def test_a_bandwidth_of_ones_own(made, tmp_path):
    path = tmp_path / "report.html"
    found = recrawl.report(made[0], path, bandwidth=30_000)
    assert [plan.bandwidth for plan in found.schedules] == [
        *(7_500, 15_000, 30_000, 60_000, 120_000)
    ]
    assert "with a schedule at 30,000 crawls a day" in Page(path).text()
    assert "--bandwidth 30000/day" in Page(path).text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "parts"),
    [
        (
            [("https://a.org/", "2026-01-01", 1, 200)],
            [
                "1 page on 1 host",
                "No page was crawled twice",
                "No schedule: the log must",
                "Nothing to compare: the log must",
                "Nothing to predict: the log must",
            ],
        ),
        (
            [("https://a.org/", f"2026-01-{d:02d}", 0, 200) for d in range(1, 9)],
            [
                "1 never changed",
                "the last bits of all pages are",
                "Nothing to compare: ",
            ],
        ),
        (
            [
                (f"https://a.org/{p}", f"2026-01-{d:02d}", 1, 200)
                for p in range(4)
                for d in range(1, 9)
            ],
            ["4 always changed", "Hosts whose pages are not what they seem"],
        ),
        (
            [
                (f"https://a.org/{p}", f"2026-01-0{d}", 0, 404)
                for p in range(3)
                for d in (1, 2)
            ]
            + [("https://b.org/", "2026-01-01", 0, 200)],
            ["3 gone", "3 never fetched successfully", "1 fetched once"],
        ),
    ],
    ids=["one row", "no change", "only changes", "failed fetches"],
)
def test_logs_that_tell_little(tmp_path, log, parts):
    file = write(tmp_path / "log.csv", table(log, COLUMNS))
    recrawl.report(file, tmp_path / "report.html")
    text = Page(tmp_path / "report.html").text()
    for part in parts:
        assert part in text, part
    assert "nan" not in text.split()
    assert "None" not in text.split()


@pytest.mark.slow
def test_a_dump_of_states_has_no_pace(tmp_path):
    dump = Path(__file__).parent / "formats" / "storm.jsonl"
    given = {"force": True}
    found, _ = recorded(recrawl.report, dump, tmp_path / "r.html", **given)
    assert (found.pace, found.schedules) == (0.0, [])
    text = Page(tmp_path / "r.html").text()
    assert "taken for an export of StormCrawler's status index" in text
    assert "pace not known" in text
    assert "with the crawls a day that you can spend; " in text
    assert "--bandwidth CRAWLS/day" in text
    given["bandwidth"] = 3.0
    found, _ = recorded(recrawl.report, dump, tmp_path / "r.html", **given)
    assert [plan.bandwidth for plan in found.schedules] == [0.75, 1.5, 3.0, 6.0, 12.0]
    assert "--bandwidth 3/day" in Page(tmp_path / "r.html").text()


@pytest.mark.slow
def test_tables_are_cut_and_say_so(tmp_path):
    file = parquet(
        tmp_path / "log.parquet",
        url=[f"https://h{k % 130}.example/{'x' * 300}{k}" for k in range(260)] * 5,
        time=np.repeat(np.arange(5) * 86_400 + 1_770_000_000, 260),
        changed=np.arange(1300) % 3 == 0,
    )
    recrawl.report(file, tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    text = page.text()
    assert "The first 100 of 260 pages" in text
    assert "The first 100 of 130 hosts with flagged pages" in text or "of 1" in text
    assert len(page.all("tr")) < 500
    shown = {data for tag, data in page.texts if tag == "bdi" and "xxx" in data}
    assert shown
    assert all(len(url) == 160 and "…" in url for url in shown)


@pytest.mark.slow
def test_a_log_is_read_once_and_its_bad_rows_are_told_of_once(tmp_path, monkeypatch):
    read, gathered = [], reading.gathered

    def counting(*arguments, **options):
        read.append(arguments)
        return gathered(*arguments, **options)

    monkeypatch.setattr(reading, "gathered", counting)
    torn = [("https://h0.example/0", "2026-01-01", 1, 200)]
    bad = [("", "2026-01-01", 1, 200)]
    file = write(tmp_path / "log.csv", table([*rows(4, 9), *torn, *bad], COLUMNS))
    given = {}
    found, messages = recorded(recrawl.report, file, tmp_path / "r.html", **given)
    assert len(read) == 1
    assert len(messages) == 1
    assert "without a url" in messages[0]
    estimates, _ = recorded(recrawl.estimate, file, tmp_path / "rates.parquet")
    assert found.estimates.counts == estimates.counts
    text = Page(tmp_path / "r.html").text()
    for why, n in found.estimates.counts.items():
        assert why == "rows" or not n or f"{n} {why}" in text


# ---- bad input, and nothing half-written


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
def test_a_bandwidth_must_be_positive(tmp_path, bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        recrawl.report("log.csv", tmp_path / "r.html", bandwidth=bandwidth)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, FileNotFoundError, "no such file"),
        ("", ValueError, "must not be empty"),
        ("url,time,changed\n,,\n", ValueError, "at least one row that can be used"),
    ],
)
@pytest.mark.filterwarnings("ignore:rows left out")
def test_logs_that_cannot_be_read(tmp_path, content, error, message):
    file = tmp_path / "log.csv"
    if content is not None:
        file.write_text(content)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=message):
        recrawl.report(file, tmp_path / "report.html")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_an_output_that_exists_is_kept(made, tmp_path, monkeypatch):
    output = write(tmp_path / "report.html", "mine")
    with pytest.raises(FileExistsError, match=r"report\.html exists; say --force"):
        recrawl.report(made[0], output)

    def broken(*_, **__):
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(reporting, "backtest", broken)
        with pytest.raises(RuntimeError, match="in the middle"):
            recrawl.report(made[0], output, force=True)
    assert output.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_the_extra_is_named(tmp_path, monkeypatch, capsys, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert cli.main(["report", "log.csv", "-o", str(tmp_path / "r.html")]) == 2
    told = capsys.readouterr().err
    assert package in told
    assert told.endswith("pip install 'paperlib-crawl[log]'\n")


@pytest.mark.slow
def test_the_command(made, tmp_path, capsys):
    output = tmp_path / "report.html"
    command = ["report", str(made[0]), "-o", str(output)]
    assert cli.main(command) == 0
    (line,) = capsys.readouterr().out.splitlines()
    rows = "480 rows (beside 4 of failed fetches) of 13 pages"
    assert line == f"{output}: {rows}, 12 crawls a day"
    theirs = str(made[0].with_name("report.html"))  # in the last command
    assert Page(output).source == made[1].source.replace(theirs, str(output))
    assert cli.main(command) == 2
    assert "exists; say --force" in capsys.readouterr().err
    assert cli.main([*command, "--force", "--bandwidth", "1/hour"]) == 0
    assert "schedule at 24 crawls a day" in Page(output).text()
    with pytest.raises(SystemExit):
        cli.main(["report", str(made[0]), "-o", "report.pdf"])
    assert "must end in .html" in capsys.readouterr().err
