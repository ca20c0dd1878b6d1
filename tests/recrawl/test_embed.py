"""The crawler of docs/recrawl/crawler.py, against a server with known change rates."""

import asyncio
import contextlib
import importlib
import itertools
import signal
import subprocess
import sys
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path

import numpy as np
import pytest

from paperlib import freshness
from paperlib.allocation import optimal_interval

DOCS = Path(__file__).resolve().parents[2] / "docs" / "recrawl"
DAY = 86_400
START = 1_790_000_000.0  # seconds since 1970, a whole number

# Change rates a day and fetches a day. By `optimal_interval` the best
# schedule for these rates has a freshness of .7480; all pages fetched at equal
# intervals have .7196 (`freshness.interval`). The difference is .0284. Half of it may
# be lost to learning and to chance; by the other half the crawler has to be better
# than uniform fetches of pages that change at the same times. Fixed before the run.
# Learning comes to an end at such rates; at others it does not (`often` of
# benchmarks/learner.py).
RATES = np.geomspace(0.02, 3.0, 20)
PER_DAY = 12.0
MARGIN = 0.0142
LEARNING, END = 100, 250  # days, which is 60 fetches of each page, then 90
N_PERIODS = 12  # of the time after learning, for the standard error


sys.path.insert(0, str(DOCS))  # where it finds fetching.py
crawler = importlib.import_module("crawler")
sys.path.remove(str(DOCS))


class Site:
    """Pages that change at given times, of a server on the loopback.

    Every third page has an ETag, Last-Modified, or neither. Time passes only
    between fetches, in `sleep`, so that runs are equal to the last bit.
    """

    def __init__(self, changes, *, end=END, broken=(), dynamic=False):
        self.changes, self.now, self.end = changes, START, START + end * DAY
        self.broken, self.dynamic, self.gone = broken, dynamic, ()
        self.fetched, self.asked = [], []

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        await asyncio.gather(*self.crawler.running)
        self.now += seconds
        if self.now >= self.end:
            raise asyncio.CancelledError

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        page = int(head[0].split(" ")[1].removeprefix("/"))
        asked = dict(line.split(": ", 1) for line in head[1:] if line)
        self.fetched.append((self.now, page))
        self.asked.append(asked)
        writer.write(self.response(page, asked))
        await writer.drain()
        writer.close()

    def response(self, page, asked):
        if (self.now - START) // DAY in self.broken:
            return b"HTTP/1.0 503 Service Unavailable\r\n\r\n"
        if page in self.gone:
            return b"HTTP/1.0 404 Not Found\r\n\r\n"
        version = np.searchsorted(self.changes[page], self.now, side="right") - 1
        changed = self.now if self.dynamic else self.changes[page][version]
        etag, modified = f'"{version}"', formatdate(int(changed), usegmt=True)
        same, header = False, ""
        if page % 3 == 0:
            same, header = asked.get("If-None-Match") == etag, f"ETag: {etag}\r\n"
        elif page % 3 == 1:
            since = asked.get("If-Modified-Since")
            header = f"Last-Modified: {modified}\r\n"
            same = since and parsedate_to_datetime(since).timestamp() >= int(changed)
        if same:
            return f"HTTP/1.0 304 Not Modified\r\n{header}\r\n".encode()
        return f"HTTP/1.0 200 OK\r\n{header}\r\nversion {version}".encode()

    def crawl(self, folder, per_day=PER_DAY, n_pages=None):
        """Crawl until the end; the crawler."""
        return asyncio.run(self._crawl(folder, per_day, n_pages))

    async def _crawl(self, folder, per_day, n_pages):
        # the same port each time, for it is part of the URLs
        port = getattr(self, "port", 0)
        server = await asyncio.start_server(self.answer, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        n_pages = len(self.changes) if n_pages is None else n_pages
        urls = [f"http://127.0.0.1:{self.port}/{k}" for k in range(n_pages)]
        given = {"clock": self.clock, "sleep": self.sleep}
        self.crawler = crawler.Crawler(urls, folder, per_day, **given)
        async with server:
            with contextlib.suppress(asyncio.CancelledError):
                await self.crawler.crawl()
        return self.crawler


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No proxy, and few writes to the disk, for a day is over in milliseconds."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(crawler, "SAVE_EVERY", 20 * DAY)


def poisson_changes(rates, days, rng):
    """Change times of each page, the first one before the start."""
    changes = []
    for rate in rates:
        n = rng.poisson(rate * days)
        times = np.sort(rng.uniform(0, days, n))
        changes.append(START + DAY * np.r_[-rng.exponential(1 / rate), times])
    return changes


def measured(changes, fetched):
    """Freshness of all pages in each period after learning, at many moments."""
    times, pages = np.array(fetched).T
    days = np.linspace(LEARNING, END, 5000 * N_PERIODS, endpoint=False)
    moments, fresh = START + DAY * days, []
    for k, change in enumerate(changes):
        own = times[pages == k]
        copied = own[np.searchsorted(own, moments, side="right") - 1]
        versions = np.searchsorted(change, [moments, copied], side="right")
        fresh.append(versions[0] == versions[1])
    return np.reshape(np.mean(fresh, axis=0), (N_PERIODS, -1)).mean(axis=1)


def uniform_fetches():
    """Time and page of fetches of one page after the other."""
    k = np.arange(int(END * PER_DAY))
    return np.column_stack([START + k * DAY / PER_DAY, k % RATES.size])


@pytest.mark.slow
def test_it_reaches_the_freshness_promised_for_known_rates(tmp_path):
    """And beats uniform fetches; it is stopped and started again meanwhile."""
    best = optimal_interval(RATES, np.ones(RATES.size), PER_DAY)
    uniform = freshness.interval(RATES, PER_DAY / RATES.size).mean()
    promised = float(best.freshness)
    assert (promised - uniform) / 2 == pytest.approx(MARGIN, abs=1e-4)
    changes = poisson_changes(RATES, END, np.random.default_rng(20))
    site = Site(changes, end=150)
    first = site.crawl(tmp_path)
    site.end = START + END * DAY
    again = site.crawl(tmp_path)
    assert again is not first
    assert len(site.fetched) == END * PER_DAY
    found = measured(changes, site.fetched)
    stderr = found.std(ddof=1) / N_PERIODS**0.5
    by_turns = measured(changes, uniform_fetches()).mean()
    print(f"{found.mean():.4f} ± {stderr:.4f}, {promised:.4f}, {by_turns:.4f}")
    assert abs(found.mean() - promised) < 3 * stderr
    assert found.mean() > by_turns + MARGIN


def steady(n_pages, rate=0.0):
    """Changes at equal intervals, and one before the start."""
    times = np.arange(0.5, END, 1 / rate) if rate else []
    return [START + DAY * np.r_[-3.0, times] for _ in range(n_pages)]


def test_requests_are_conditional(tmp_path):
    site = Site(steady(3), end=2)
    done = site.crawl(tmp_path)
    modified = formatdate(START - 3 * DAY, usegmt=True)
    expected = [{"If-None-Match": '"0"'}, {"If-Modified-Since": modified}, {}]
    for page in range(3):
        asked = [
            a for a, (_, k) in zip(site.asked, site.fetched, strict=True) if k == page
        ]
        names = "If-None-Match", "If-Modified-Since"
        sent = [{n: a[n] for n in names if n in a} for a in asked]
        assert sent == [{}] + [expected[page]] * (len(asked) - 1)
        assert all(a["User-Agent"].startswith("example-crawler") for a in asked)
    assert len(site.fetched) == len(done.scheduler) * 8


@pytest.fixture
def reports(monkeypatch):
    """What the scheduler is told: page, bit, age."""
    told = []

    def report(self, page, changed, *, age):
        told.append((page, changed, age))

    monkeypatch.setattr(crawler.Scheduler, "report", report)
    return told


def test_what_is_reported(tmp_path, reports):
    """Bits by validator or digest, ages by Last-Modified."""
    site = Site(steady(3, rate=1.0), end=1)  # a change at noon
    site.crawl(tmp_path)
    noon = START + DAY / 2
    for page in range(3):
        times = [t for t, k in site.fetched if k == page]
        late = [t >= noon for t in times]
        bits = [bit for k, bit, _ in reports if k == page]
        assert bits == [True] + [b != a for a, b in itertools.pairwise(late)]
        ages = [age for k, _, age in reports if k == page]
        last = [noon if t >= noon else START - 3 * DAY for t in times]
        expected = [(t - m) / DAY for t, m in zip(times, last, strict=True)]
        assert len(times) >= 3
        if page == 1:
            np.testing.assert_allclose(ages, expected)
        else:
            assert np.isnan(ages).all()


def test_a_date_that_is_that_of_the_fetch_is_no_age(tmp_path, reports):
    """Nor is it a change, where the body is the same."""
    site = Site(steady(2), end=1, dynamic=True)
    site.crawl(tmp_path)
    bits = [bit for k, bit, age in reports if k == 1 and np.isnan(age)]
    assert bits == [True] + [False] * (len(bits) - 1)
    assert len(bits) == sum(k == 1 for _, k in site.fetched) > 2


def test_a_fetch_that_fails_tells_nothing(tmp_path, capsys):
    """The page changes while the server is down: the next report counts from before."""
    site = Site(steady(1, rate=0.2), end=5)
    site.broken = range(5)
    done = site.crawl(tmp_path)
    shape, rate = done.scheduler.posterior
    assert (shape[0], rate[0]) == (1.0, 1.0 / PER_DAY), "the prior"
    assert "503" in capsys.readouterr().err
    assert done.pages == [{"url": f"http://127.0.0.1:{site.port}/0", "gone": 0}]
    site.broken, site.end = (), START + 10 * DAY
    shape, rate = site.crawl(tmp_path).scheduler.posterior
    assert rate[0] > 4.0


def test_a_page_that_is_gone_is_not_fetched_for_ever(tmp_path):
    site = Site(steady(3, rate=0.2), end=4)
    site.gone = (1,)
    done = site.crawl(tmp_path)
    assert sum(k == 1 for _, k in site.fetched) == crawler.GONE == 3
    assert len(done.scheduler) == 2
    site.end = START + 8 * DAY
    assert len(site.crawl(tmp_path).scheduler) == 2


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(tmp_path):
    """Two halves are one whole, and learn the same."""
    changes = poisson_changes(RATES, END, np.random.default_rng(3))
    whole, halves = Site(changes, end=20), Site(changes, end=10)
    posterior = whole.crawl(tmp_path / "whole").scheduler.posterior
    halves.crawl(tmp_path / "halves")
    halves.end = START + 20 * DAY
    again = halves.crawl(tmp_path / "halves").scheduler.posterior
    assert halves.fetched == whole.fetched
    np.testing.assert_array_equal(again, posterior)


def test_a_crash_between_the_two_files(tmp_path):
    """New pages are written first; the scheduler may lack the last ones, or all."""
    site = Site(steady(6), end=1)
    site.crawl(tmp_path, n_pages=4)
    before = (tmp_path / "learnt.npz").read_bytes()
    site.end = START + 2 * DAY
    site.crawl(tmp_path)
    (tmp_path / "learnt.npz").write_bytes(before)
    site.end = START + 3 * DAY
    done = site.crawl(tmp_path)
    assert len(done.scheduler) == len(done.pages) == 6
    assert {k for _, k in site.fetched[24:]} == set(range(6))
    (tmp_path / "learnt.npz").unlink()
    site.end = START + 4 * DAY
    assert len(site.crawl(tmp_path).scheduler) == 6


def test_it_is_polite(tmp_path):
    """A host is asked every ten seconds, however many slots there are."""
    site = Site(steady(40), end=0.005)  # 432 seconds
    site.crawl(tmp_path, per_day=DAY)
    times = np.array([t for t, _ in site.fetched])
    assert 43 <= len(times) <= 46, "two at once at the start"
    assert np.diff(times)[2:].min() >= 9.0


def test_a_page_is_not_fetched_twice_at_once(tmp_path):
    site = Site(steady(1, rate=1.0), end=0.02)
    site.crawl(tmp_path, per_day=DAY)  # a slot each second
    times = np.array([t for t, _ in site.fetched])
    assert np.diff(times).min() >= 2 * crawler.TIMEOUT - 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("interrupt", [signal.SIG_DFL, signal.SIG_IGN])
def test_the_program_stops_cleanly(tmp_path, interrupt):
    """As a process, by the wall clock; what it had learnt is on the disk.

    A shell starts programs in the background with SIGINT ignored.
    """

    site = Site(steady(1))

    async def stopped():
        server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
        (tmp_path / "urls").write_text(url)
        command = [DOCS / "crawler.py", tmp_path / "urls", tmp_path / "kept", "600"]
        async with server, asyncio.timeout(120):
            program = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                stderr=subprocess.PIPE,
                preexec_fn=lambda: signal.signal(signal.SIGINT, interrupt),
            )
            while not site.fetched:
                await asyncio.sleep(0.01)
            program.send_signal(signal.SIGTERM)
            _, err = await program.communicate()
        return program.returncode, err, url

    code, err, url = asyncio.run(stopped())
    assert (code, err) == (0, b"")
    (page,) = crawler.json.loads((tmp_path / "kept" / "pages.json").read_text())
    assert page["url"] == url
    assert len(page["digest"]) == 64
    assert len(crawler.Scheduler.load(tmp_path / "kept" / "learnt.npz")) == 1
