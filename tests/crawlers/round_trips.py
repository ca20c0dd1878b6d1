"""Round trips with the crawlers themselves, which `make test-crawlers` installs.

A server on this machine has two pages, of which one changes between two fetches. The
crawler fetches them, recrawl reads what it stored and writes a schedule, and the
crawler takes it.
"""

import contextlib
import functools
import http.server
import json
import os
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import recrawl

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "build/crawlers/bin"
PAGES = "news", "steady"


class Server(http.server.ThreadingHTTPServer):
    """Two pages; `version` is that of the news, and the other one answers with 304."""

    version = 1
    daemon_threads = True

    def url(self, page):
        return f"http://localhost:{self.server_port}/{page}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = self.path.strip("/")
        if page not in PAGES:
            self.send_error(404)
            return
        version = self.server.version if page == "news" else 0
        known = self.headers["If-None-Match"] == f'"{version}"'
        body = b"" if known else f"<p>Version {version}.</p>".encode()
        self.send_response(304 if known else 200)
        self.send_header("ETag", f'"{version}"')
        self.send_header("Content-Type", "text/html")
        if not known:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def found(path, rates):
    """The crawls and changes of each page, as `recrawl estimate` tells them."""
    recrawl.estimate(path, rates, force=True)
    rows = pq.read_table(rates).to_pylist()
    return {row["url"].rpartition("/")[2]: row for row in rows}


def test_scrapy(server, tmp_path):
    plan, fetched = tmp_path / "plan.jsonl", tmp_path / "fetched.jsonl"
    plan.write_text("".join(f'{{"url": "{server.url(page)}"}}\n' for page in PAGES))

    def crawl(n_fetches):
        """Start the spider until it has fetched so often; all rows of its log."""
        spider = ROOT / "docs/recrawl/scrapy_spider.py"
        command = [PROGRAMS / "scrapy", "runspider", spider, "-o", fetched, "--nolog"]
        for option in (f"plan={plan}", f"log={fetched}", "per_day=172800"):
            command += ["-a", option]
        command += ["-s", f"CLOSESPIDER_ITEMCOUNT={n_fetches}"]
        subprocess.run(command, check=True, cwd=tmp_path)
        return [json.loads(line) for line in fetched.read_text().splitlines()]

    for server.version in (1, 2, 3):
        rows = crawl(2)
    assert sorted(row["status"] for row in rows) == [200] * 4 + [304] * 2

    rates, schedule = tmp_path / "rates.parquet", tmp_path / "plan.parquet"
    pages = found(fetched, rates)
    counts = {page: (row["n_crawls"], row["n_changed"]) for page, row in pages.items()}
    assert counts == {"news": (2, 2), "steady": (2, 0)}
    recrawl.schedule(rates, schedule, 172_800.0)
    recrawl.export(schedule, plan, "jsonl", force=True)
    rows = crawl(10)[6:]
    assert len(rows) == 10
    n_news = sum(row["url"] == server.url("news") for row in rows)
    assert 5 <= n_news < 10, "the page that changes is fetched more often"


@contextlib.contextmanager
def changedetection(data):
    """The program, with its API as a function."""
    port = 20_000 + os.getpid() % 40_000  # it takes none of its own choice
    environment = os.environ | {
        "ALLOW_IANA_RESTRICTED_ADDRESSES": "true",  # this machine's
        "DISABLE_VERSION_CHECK": "true",
    }
    command = [PROGRAMS / "changedetection.io", "-d", data, "-p", str(port)]
    program = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://localhost:{port}/api/v1"

    def key():
        settings = json.loads((data / "changedetection.json").read_text())["settings"]
        return settings["application"]["api_access_token"]

    def api(path, content=None):
        request = urllib.request.Request(f"{address}/{path}")
        request.add_header("x-api-key", key())
        if content:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(content).encode()
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    try:
        until(lambda: api("systeminfo"))
        yield api, {"API": address, "API_KEY": key()}
    finally:
        program.terminate()
        program.wait()


def until(done, seconds=60):
    """Wait until something is true, and raises no error."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, KeyError):
            if done():
                return
        time.sleep(0.2)
    raise TimeoutError(f"not within {seconds} s")


def test_changedetection(server, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with changedetection(data) as (api, access):
        for example in api("watch"):  # of its own, on the Internet
            request = urllib.request.Request(f"{access['API']}/watch/{example}")
            request.add_header("x-api-key", access["API_KEY"])
            request.method = "DELETE"
            urllib.request.urlopen(request).close()
        watches = {
            page: api("watch", {"url": server.url(page)})["uuid"] for page in PAGES
        }

        def checked():
            return [api(f"watch/{uuid}")["last_checked"] for uuid in watches.values()]

        def later(before):
            return all(a > b for a, b in zip(checked(), before, strict=True))

        until(lambda: later([0, 0]))
        for server.version in (2, 3):
            before = checked()
            time.sleep(1.1)  # its times are whole seconds
            api("watch?recheck_all=1")
            until(functools.partial(later, before))

        rates, script = tmp_path / "rates.parquet", tmp_path / "apply.sh"
        pages = found(data, rates)
        assert set(pages) == set(PAGES)
        assert pages["news"]["change_rate"] > pages["steady"]["change_rate"]
        recrawl.schedule(rates, tmp_path / "plan.parquet", 500.0)
        recrawl.export(
            tmp_path / "plan.parquet", script, "changedetection", exported=data
        )
        subprocess.run(["sh", script], env=os.environ | access, check=True)
        rows = pq.read_table(tmp_path / "plan.parquet").to_pylist()
        for row in rows:
            watch = api(f"watch/{watches[row['url'].rpartition('/')[2]]}")
            assert not watch["time_between_check_use_default"]
            units = {"weeks": 7, "days": 1, "hours": 1 / 24, "minutes": 1 / 1440}
            units["seconds"] = 1 / 86400
            interval = sum(watch["time_between_check"][u] * d for u, d in units.items())
            assert interval == pytest.approx(1 / row["crawl_rate"], abs=1 / 86400)
