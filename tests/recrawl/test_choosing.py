"""What a crawler fetches next, by a plan and by rates: docs/recrawl/choosing.py."""

import json
import runpy
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DOCS = Path(__file__).parents[2] / "docs" / "recrawl"
choosing = SimpleNamespace(**runpy.run_path(str(DOCS / "choosing.py")))
NOW = 1_790_000_000.0
HOUR = 3600.0


def write(path, *pages):
    """Write a plan of (url, interval, time since the last crawl), whole at once."""
    rows = []
    for url, interval, wait in pages:
        due = datetime.fromtimestamp(NOW - wait + interval, UTC).isoformat()
        rows.append({"url": url, "interval_s": interval, "due": due})
    part = path.with_suffix(".part")
    part.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    part.replace(path)


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.jsonl"
    write(path, ("http://a/1", HOUR, 60), ("http://a/2", 60, 50), ("http://b/3", 9, 7))
    return path


def crawl(pages, times, answer=lambda url: {"status": 200}):
    """Fetch one page at each time; the URLs."""
    urls = []
    for now in times:
        urls.append(pages.choose(now))
        if urls[-1]:
            pages.done(urls[-1], now, **answer(urls[-1]))
    return urls


def test_the_longest_wait_in_units_of_its_interval_is_next(plan):
    pages = choosing.ByPlan(plan)
    found = [pages.choose(NOW) for _ in range(4)]
    assert found == ["http://a/2", "http://b/3", "http://a/1", None], "all are fetched"
    for url in found[:3]:
        pages.done(url, NOW, 200)
    assert pages.choose(NOW + 1) == "http://b/3"


def test_fetches_are_about_in_proportion_to_rates_and_no_slot_is_idle(plan):
    urls = crawl(choosing.ByPlan(plan), NOW + np.arange(1, 3601) * 3.0)
    counts = [urls.count(url) for url in ("http://a/1", "http://a/2", "http://b/3")]
    rates = np.array([1 / HOUR, 1 / 60, 1 / 9])
    assert sum(counts) == 3600
    np.testing.assert_allclose(counts, 3600 * rates / rates.sum(), rtol=0.2)


def test_a_page_that_was_never_fetched_comes_first(tmp_path):
    (tmp_path / "plan.jsonl").write_text('{"url": "http://new/"}\n')
    pages = choosing.ByPlan(tmp_path / "plan.jsonl")
    assert crawl(pages, [NOW]) == ["http://new/"]
    write(pages.path, ("http://a/1", 60, 1e6), ("http://new/", 60, 2e6))
    assert crawl(pages, [NOW + 1, NOW + 2]) == ["http://a/1", "http://new/"]


def test_a_new_plan_is_taken_with_the_fetches_since(plan):
    pages = choosing.ByPlan(plan)
    crawl(pages, [NOW, NOW, NOW])
    write(plan, ("http://b/3", 9, 100), ("http://c/4", HOUR, 36))
    assert crawl(pages, [NOW + 0.05, NOW + 0.5]) == ["http://c/4", "http://b/3"]
    plan.unlink()
    assert crawl(pages, [NOW + 99]) == ["http://b/3"], "the old one is kept"


@pytest.mark.parametrize(
    ("status", "asked", "pause"),
    [
        (503, "120", 120),
        (429, "0", 60),
        (503, formatdate(NOW + 300), 300),
        (503, formatdate(NOW - 300), 60),
        (503, "soon", 60),
        (-1, None, 60),
        (404, "120", 0),
    ],
)
def test_a_host_that_asks_for_a_pause_is_left_alone(plan, status, asked, pause):
    pages, times = choosing.ByPlan(plan), NOW + np.arange(0.0, 400.0)

    def answer(url):
        if url.startswith("http://a/"):
            return {"status": status, "retry_after": asked}
        return {"status": 200}

    urls = crawl(pages, times, answer)
    first, second = [k for k, url in enumerate(urls) if url.startswith("http://a/")][:2]
    assert second - first >= pause
    assert second - first < pause + 60
    assert urls.count("http://b/3") > 250, "the other host goes on"


def test_pauses_double_until_the_host_answers():
    hosts = choosing.Hosts()
    pauses = []
    for _ in range(14):
        assert not hosts.answered("http://a/1", NOW, 503)
        pauses.append(hosts.until["a"] - NOW)
    assert pauses[:4] == [60, 120, 240, 480]
    assert pauses[-1] == choosing.LONGEST_PAUSE
    assert hosts.answered("http://a/1", NOW, 200)
    assert not hosts.answered("http://a/1", NOW, 503)
    assert hosts.until["a"] - NOW == 60


@pytest.fixture
def rates(tmp_path):
    last = np.full(3, NOW * 1e6, "M8[us]")
    columns = {"url": ["http://a/1", "http://a/2", "http://b/3"], "last_crawl": last}
    columns |= {"change_rate": [1.0, 2.0, 9.0], "log_stderr": [0.5] * 3}
    table = pa.table(columns | {"log_rate": np.log([1.0, 2.0, 9.0])})
    pq.write_table(table, tmp_path / "rates.parquet")
    return tmp_path / "rates.parquet"


def test_rates_are_learnt_from_every_fetch_that_was_compared(rates):
    pages = choosing.ByRates(rates, min_interval=0.01)
    before = pages.scheduler.posterior[0].copy()
    found = {"http://a/1": True, "http://a/2": None, "http://b/3": False}
    urls = crawl(
        pages,
        NOW + HOUR * np.arange(1.0, 60.0),
        lambda url: {"status": 200, "changed": found[url]},
    )
    assert set(urls) == set(found)
    learnt = pages.scheduler.posterior[0] > before
    assert learnt.tolist() == [True, False, False]
    pages.clock += 1  # the clock is set back
    assert pages.choose(NOW) in found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "give plan=plan.jsonl or rates=rates.parquet, one of the two"),
        ("plan=p rates=r", "give plan=plan.jsonl or rates=rates.parquet, one of the"),
        ("rates=r host=3", "no such option: host; there are plan, rates, host_limit"),
        ("plan=p host_limit=3", "limits go with rates"),
    ],
)
def test_options_that_do_not_fit(given, message):
    with pytest.raises(ValueError, match=message):
        choosing.chosen(**dict(each.split("=") for each in given.split()))


def test_options_choose_what_is_next(plan, rates):
    assert isinstance(choosing.chosen(plan), choosing.ByPlan)
    pages = choosing.chosen(rates=rates, min_interval="1", max_interval="9")
    urls = crawl(pages, NOW + HOUR * np.arange(1.0, 60.0))
    fetched = [url for url in urls if url]
    assert sorted(fetched) == sorted([*pages.urls, *pages.urls]), "in 59 hours"


def test_rates_pass_over_hosts_that_pause(rates):
    pages = choosing.ByRates(rates)

    def answer(url):
        return {"status": 503 if url == "http://b/3" else 200, "retry_after": "1e9"}

    urls = crawl(pages, NOW + 20 * np.arange(1.0, 40.0), answer)
    assert urls.count("http://b/3") < 20
    assert None not in urls
