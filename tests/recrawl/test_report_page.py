"""The page that `recrawl.report` writes: its numbers, and that it is harmless."""

import base64
import html
import math
import re
import shlex
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import recrawl
from recrawl import cli, report_page, units
from recrawl.log import reading
from tests.recrawl.crawl_logs import recorded, table, write

VOID = {"meta", "img"}
PAGES = "and only pages with intervals in the log counted"
COLUMNS = ("url", "time", "changed", "status")
ATTACKS = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
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

    def commands(self):
        lines = [html.unescape(data) for tag, data in self.texts if tag == "pre"]
        return [cli._parser().parse_args(shlex.split(line)[1:]) for line in lines]


def rows(n_pages=12, n_days=40):
    """A log of pages of all kinds, on three hosts."""
    rng = np.random.default_rng(1)
    return [
        (
            f"https://h{page % 3}.example/{page}",
            date(2026, 1, 1) + timedelta(day),
            int(rng.random() < ((page + 0.5) / n_pages if page > 1 else page)),
            200,
        )
        for page in range(n_pages)
        for day in range(n_days)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A log, the page of it, and what the function returned."""
    folder = tmp_path_factory.mktemp("report")
    failing = [("https://h2.example/moved", "2026-01-05", 0, 301)] * 4
    log = write(folder / "log.csv", table([*rows(), *failing], COLUMNS))
    found = recrawl.report(log, folder / "report.html")
    return log, Page(folder / "report.html"), found


def test_numbers_are_those_of_the_functions(made, tmp_path):
    log, page, found = made
    rates, text = tmp_path / "rates.parquet", page.text()
    assert found.estimates == recrawl.estimate(log, rates)
    pace = found.estimates.pace
    assert pace == pytest.approx((12 * 40 + 4) / 39)
    plan = recrawl.schedule(rates, tmp_path / "plan.parquet", pace)
    assert found.schedule.budgets == plan.budgets
    for factor, each in zip((0.25, 0.5, 1, 2, 4), plan.budgets, strict=True):
        fresh, turn = each["scheduled"], each["in turn"]
        assert f"{fresh:.3f} at {pace * factor:.3g} (in turn {turn:.3f})" in text
    now, turn, fresh = (f"{100 * share:.3g}%" for share in plan.compared.values())
    exact = f"{fresh} by a schedule, {turn} with all pages in turn, {now} by the crawls"
    assert f"If the estimated rates were exact, {PAGES}: {exact}" in text
    fresh = f"{100 * plan.freshness:.3g}% of copies fresh"
    assert (
        f"With errors of the rates, a schedule of 12.4 fetches a day keeps {fresh}"
        in text
    )
    backtest = recrawl.backtest(log)
    for name, loss in backtest.log_loss.items():
        assert f", {name}: {loss:.3g}" in text
    p, share, n = np.nan_to_num(backtest.calibration["prior"]).T
    came, told = share @ n / 96, p @ n / 96
    said = f"Of 96 crawls {came:.1%} found a change, and {told:.1%} were predicted."
    assert said in text


@pytest.mark.parametrize(
    ("n_crawls", "said"),
    [
        (400, "Last point, of 400 crawls: predicted 80%, 100% had changed."),
        (20, "Last point, of 20 crawls: predicted 80%, 100% had changed."),
        (19, "Last point, of 68 crawls: predicted 56%, 29% had changed."),
    ],
)
def test_the_last_point_that_is_told_is_drawn(
    made, tmp_path, monkeypatch, n_crawls, said
):
    """Bins of fewer than 20 crawls are not drawn, but count in the totals."""
    bins = np.array([[0.56, 0.29, 68], [0.8, 1.0, n_crawls], [np.nan, np.nan, 0]])
    n = 68 + n_crawls
    found = recrawl.Backtest(n, {"prior": 0.7}, {"prior": 0.0}, {"prior": bins})
    monkeypatch.setattr(report_page, "backtest", lambda *_, **__: found)
    recrawl.report(made[0], tmp_path / "report.html")
    text = Page(tmp_path / "report.html").text()
    changed = (0.29 * 68 + n_crawls) / n
    assert f"Of {n} crawls {changed:.1%} found a change" in text
    assert said in text


@pytest.mark.parametrize(
    ("in_turn", "gain"),
    [(0.7076, "70.8%: +1.9 points."), (0.73, "73%: -0.3 points.")],
)
def test_the_page_begins_with_what_a_schedule_promises(
    made, tmp_path, monkeypatch, in_turn, gain
):
    """The gain is the difference of the percentages as they are shown."""
    promises = {
        "promise": (0.684, 0.7274, 0.76),
        "promise_in_turn": (0.6, in_turn, 0.8),
    }

    def promised(*given):
        return replace(recrawl.schedule(*given), **promises)

    monkeypatch.setattr(report_page, "schedule", promised)
    recrawl.report(made[0], tmp_path / "report.html")
    text = Page(tmp_path / "report.html").text()
    fresh = "12.4 fetches a day: 72.7% of copies fresh (68.4% to 76%)"
    first = f"log.csv Promised by a schedule of {fresh}, with all pages in turn {gain}"
    assert first in text


def line(picture, color):
    """Points of the longest line of a color in SVG: those of errors are short."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*stroke: {color}', picture)
    points = [re.findall(r"[ML] (\S+) (\S+)", path) for path in paths]
    return np.array(max(points, key=len), float)


def test_predictions_that_come_true_are_on_the_diagonal(made, tmp_path, monkeypatch):
    p = np.array([0.1, 0.4, 0.8])
    bins = np.column_stack([p, p, [100.0] * 3])
    found = recrawl.Backtest(300, {"prior": 0.7}, {"prior": 0.0}, {"prior": bins})
    monkeypatch.setattr(report_page, "backtest", lambda *_, **__: found)
    recrawl.report(made[0], tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    pictures = [each["src"].partition("base64,")[2] for each in page.all("img")]
    drawn = [base64.b64decode(picture).decode() for picture in pictures]
    (picture,) = [text for text in drawn if "b4b4b4" in text]
    start, end = line(picture, "#b4b4b4")
    points = line(picture, "#0b62a4")
    slope = (end[1] - start[1]) / (end[0] - start[0])
    expected = start[1] + slope * (points[:, 0] - start[0])
    assert len(points) == 3
    np.testing.assert_allclose(points[:, 1], expected, atol=1e-3)


def test_pages_that_are_crawled_too_rarely_and_too_often(made):
    """All were crawled once a day; those that gain most come first."""
    log, page, report = made
    rates, plan = (log.with_name(f"{name}.parquet") for name in ("rates", "plan"))
    recrawl.estimate(log, rates, force=True)
    recrawl.schedule(rates, plan, report.estimates.pace, force=True)
    planned = pd.read_parquet(plan).dropna(subset="freshness")
    planned["gain"] = planned.freshness - planned.freshness_now
    more = planned[planned.crawl_rate > 1].sort_values("gain", ascending=False)
    less = planned[planned.crawl_rate < 1].sort_values("crawl_rate")
    assert 0 < min(len(more), len(less)) <= max(len(more), len(less)) <= 10
    lines = [
        f"{url} 1 day {units.as_text(1 / rate) if rate else '(never)'}"
        for each in (more, less)
        for url, rate in zip(each.url, each.crawl_rate, strict=True)
    ]
    places = [page.text().index(line) for line in lines]
    assert places == sorted(places)


def test_pages_of_flagged_hosts_are_not_listed(tmp_path):
    """They would be crawled more, or less, and their changes may be false."""
    flagged = [
        (f"https://bad.example/{page}", date(2026, 1, 1) + timedelta(day), 1, 200)
        for page in range(3)
        for day in range(40)
    ]
    file = write(tmp_path / "log.csv", table([*rows(), *flagged], COLUMNS))
    recrawl.report(file, tmp_path / "r.html")
    text = Page(tmp_path / "r.html").text()
    assert " bad.example 3 changed at every crawl" in text
    assert "The pages listed below are of other hosts." in text
    assert "https://h1.example/" in text
    assert "https://bad.example/" not in text


def test_what_the_log_is(made):
    text = made[1].text()
    for part in (
        "taken for a table in text, 1 file",
        "rows 480 used; 4 of failed fetches",
        "pages 13 on 3 hosts; 1 never changed; 1 always changed; 1 never fetched "
        "successfully ",
        "first and last crawl 2026-01-01 00:00 to 2026-02-09 00:00 UTC (39 days)",
        "intervals observed 468, of which ",
        "pace 12.4 fetches a day, first and failed ones too",
    ):
        assert part in text, part


def test_a_page_loads_nothing_and_runs_nothing(made):
    page = made[1]
    images = page.all("img")
    assert len(images) == 2
    assert all(len(attributes["alt"]) > 40 for attributes in images)
    assert "default-src 'none'; " in page.source
    assert "script-src" not in page.source
    assert not {"script", "link", "iframe", "a"} & {tag for tag, _ in page.elements}
    css = "".join(data for tag, data in page.texts if tag == "style")
    assert "url(" not in css
    for attributes in images:  # nor do the pictures
        kind, _, data = attributes["src"].partition(",")
        assert kind == "data:image/svg+xml;base64"
        svg = base64.b64decode(data).decode()
        assert "<script" not in svg
        for address in re.findall(r"(?:href=\"|src=\"|url\()([^\")]*)", svg):
            assert address.startswith("#")


@pytest.mark.slow
def test_urls_hosts_and_file_names_are_shown_as_text(tmp_path):
    """Each is the host of pages that always changed, which are flagged, and a page."""
    log = [
        (f"{attack}{page}", f"2026-01-{day:02d}", bit, host)
        for attack in ATTACKS
        for page, host in enumerate([attack] * 3 + ["b.org"])
        for day in range(1, 12)
        for bit in [1 if page < 3 else day % 2]
    ]
    columns = ("url", "time", "changed", "host")
    file = write(tmp_path / "<b onload='x'>&\".csv", table(log, columns))
    recrawl.report(file, tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    for attack in ATTACKS[:3]:
        assert f" {attack} 3 changed" in page.text()
        assert f" {attack}3 1 day" in page.text()
        assert attack not in page.source
    for more in (" 3 changed", "3 1 day"):
        assert rf" https://a.org/\u202egnp.exe\x07{more}" in page.text()
    assert file.name in page.text()
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "b", "a"})


def test_commands_run(made):
    log, page, found = made
    estimate, schedule, export = page.commands()
    assert (estimate.command, estimate.log) == ("estimate", [log])
    assert (export.command, export.schedule) == ("export", schedule.output)
    assert schedule.bandwidth == pytest.approx(found.estimates.pace, rel=5e-3)
    assert "every 7.8 days" in page.text()


def crawled(pages, days, bit, status=200):
    """Rows of pages of one host that are all crawled on these days."""
    return [
        (f"https://a.org/{page}", f"2026-01-{day:02d}", bit, status)
        for page in range(pages)
        for day in days
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "parts"),
    [
        (
            crawled(1, [1], 1),
            ["pages 1 on 1 host",
             "No budgets: the log tells no pace", "No calibration: "],
        ),
        (crawled(1, range(1, 9), 0), ["1 never changed"]),
        (
            crawled(4, range(1, 9), 1),
            ["4 always changed", "Hosts whose pages are not what they seem"],
        ),
        (
            [*crawled(3, [1, 2], 0, 404), ("https://b.org/", "2026-01-01", 0, 200)],
            ["3 gone"],
        ),
    ],
    ids=["one row", "no change", "only changes", "failed fetches"],
)  # fmt: skip
def test_logs_that_tell_little(tmp_path, log, parts):
    file = write(tmp_path / "log.csv", table(log, COLUMNS))
    recrawl.report(file, tmp_path / "report.html")
    text = Page(tmp_path / "report.html").text()
    for part in parts:
        assert part in text, part
    recrawl.report(file, tmp_path / "at.html", bandwidth=10.0)
    text += Page(tmp_path / "at.html").text()
    assert not {"nan", "nan%", "None"} & set(text.split())


def test_a_log_without_a_page_to_promise_anything_of(tmp_path):
    """One page is gone, and of the other one the dates are those of the fetches."""
    rows = [("https://a.org/", "2026-01-01", 200, "2025-01-01"),
            ("https://a.org/", "2026-01-02", 404, "")]  # fmt: skip
    rows += [("https://b.org/", f"2026-01-0{k}", 200, f"2026-01-0{k}") for k in (1, 2)]
    columns = ("url", "time", "status", "last_modified")
    file = write(tmp_path / "log.csv", table(rows, columns))
    recorded(recrawl.report, file, tmp_path / "r.html", bandwidth=7016.4)
    text = Page(tmp_path / "r.html").text()
    assert "--bandwidth 7020/day " in text
    assert "No budgets: the log has no fetch that can be compared." in text


@pytest.mark.slow
def test_a_log_is_read_once_and_its_bad_rows_are_told_of_once(tmp_path, monkeypatch):
    read, gathered = [], reading.gathered
    monkeypatch.setattr(
        reading, "gathered", lambda *a, **k: read.append(a) or gathered(*a, **k)
    )
    bad = [("", "2026-01-01", 1, 200)]
    file = write(tmp_path / "log.csv", table([*rows(4, 9), *bad], COLUMNS))
    _, (message,) = recorded(recrawl.report, file, tmp_path / "r.html")
    assert len(read) == 1
    assert "without a url" in message
    assert "1 without a url" in Page(tmp_path / "r.html").text()


@pytest.mark.parametrize("bandwidth", [0.0, math.nan, math.inf])
def test_a_bandwidth_must_be_positive(tmp_path, bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        recrawl.report("log.csv", tmp_path / "r.html", bandwidth=bandwidth)


def test_the_command(made, tmp_path, capsys):
    output = tmp_path / "report.html"
    command = ["report", str(made[0]), "-o", str(output)]
    assert cli.main(command) == 0
    rows = "480 rows (beside 4 of failed fetches) of 13 pages"
    assert capsys.readouterr().out == f"{output}: {rows}, 12.4 fetches a day\n"
    assert Page(output).source == made[1].source
    assert cli.main(command) == 2
    assert "exists; say --force" in capsys.readouterr().err
    assert cli.main([*command, "--force", "--bandwidth", "1/hour"]) == 0
    assert "a schedule of 24 fetches a day" in Page(output).text()
