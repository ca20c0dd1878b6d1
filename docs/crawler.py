"""A crawler that learns how often pages change: python crawler.py URLS FOLDER RATE

URLS is a file with one URL a line, FOLDER keeps what was learnt, and RATE is the
number of fetches a minute. Interrupt it whenever you like, and start it again.
"""

import asyncio
import contextlib
import hashlib
import json
import math
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from paperlib.files import write_atomic
from paperlib.policies import BayesGreedy
from paperlib.scheduler import Scheduler

DAY = 86_400  # seconds; the scheduler's times are in days
AT_ONCE, TIMEOUT, SAVE_EVERY = 16, 30, 300  # fetches, seconds, seconds
MOST = 10_000_000  # bytes of a page
LIMITS = {"host_limit": DAY / 10, "min_interval": 2 * TIMEOUT / DAY}
AGENT = "example-crawler/1.0 (+https://www.example.org/crawler)"  # who you are


class Crawler:
    def __init__(self, urls, folder, per_day, *, clock=time.time, sleep=asyncio.sleep):
        self.per_day, self.clock, self.sleep = per_day, clock, sleep
        self.running, self.now = set(), clock()
        self.saved = self.now
        self.learnt, self.known = Path(folder, "learnt.npz"), Path(folder, "pages.json")
        self.pages = json.loads(self.known.read_text()) if self.known.exists() else []
        old = {page["url"] for page in self.pages}
        self.pages += [{"url": url} for url in dict.fromkeys(urls) if url not in old]
        self.scheduler = Scheduler.load(self.learnt) if self.learnt.exists() else None
        if new := self.pages[len(self.scheduler or ()) :]:
            policy = BayesGreedy(
                importance=[1.0] * len(new),
                shape=0.5,
                rate=0.5 * len(self.pages) / per_day,
                host=[urlsplit(page["url"]).netloc for page in new],
                **LIMITS,
            )
            if self.scheduler:
                self.scheduler.add(policy)
            else:
                self.scheduler = Scheduler(policy)

    async def crawl(self):
        """Fetch one page a slot, until it is cancelled."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE))
        try:
            while True:
                self.now = max(self.now, self.clock())  # clocks are set back at times
                if len(self.running) < AT_ONCE:
                    with contextlib.suppress(LookupError):  # every host has to wait
                        page = self.scheduler.next(time=self.now / DAY)
                        task = asyncio.create_task(self.visit(page, self.now))
                        self.running.add(task)
                        task.add_done_callback(self.running.discard)
                if self.now > self.saved + SAVE_EVERY:
                    self.save()
                await self.sleep(DAY / self.per_day)
        finally:
            await asyncio.gather(*self.running)
            self.save()

    async def visit(self, page, now):
        """Fetch a page and report what was found; a fetch that fails tells nothing."""
        known = self.pages[page]
        try:
            async with asyncio.timeout(TIMEOUT):
                headers, body = await asyncio.to_thread(fetch, known)
        except (OSError, ValueError, HTTPException) as error:
            print(f"{known['url']}: {error!r}", file=sys.stderr)
            return
        found = {} if body is None else {"digest": hashlib.sha256(body).hexdigest()}
        changed = found.get("digest", known.get("digest")) != known.get("digest")
        for name in ("ETag", "Last-Modified"):
            if body is not None or name in headers:
                found[name] = headers[name]
        known.update(found)
        age = (now - modified(known["Last-Modified"])) / DAY
        # many servers give the time of the fetch
        age = age if age > 2 / DAY else math.nan
        self.scheduler.report(page, changed, age=[age])
        if changed:
            self.keep(known["url"], body)

    def keep(self, url, body):
        """Do with a new or changed page what you crawl for."""

    def save(self):
        self.saved = self.now
        write_atomic(self.known, json.dumps(self.pages))
        self.scheduler.save(self.learnt)  # last: what it lacks is added at the start


class SameHost(HTTPRedirectHandler):
    """Follow no redirect to another scheme or host: its content is another page's."""

    def redirect_request(self, request, file, code, message, headers, url):
        if urlsplit(url)[:2] != urlsplit(request.full_url)[:2]:
            file.close()
            raise ValueError(f"redirected to {url}")
        return super().redirect_request(request, file, code, message, headers, url)


def fetch(known):
    """Headers and body of a page; the body is None if it is as it was."""
    asked = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
    sent = {name: known[of] for name, of in asked.items() if known.get(of)}
    if urlsplit(known["url"]).scheme not in ("http", "https"):  # file: and ftp: work
        raise ValueError("a URL must begin with http:// or https://")
    request = Request(known["url"], headers=sent | {"User-Agent": AGENT})
    try:
        with build_opener(SameHost).open(request, timeout=TIMEOUT) as response:
            if len(body := response.read(MOST + 1)) > MOST:
                raise ValueError(f"more than {MOST} bytes")
            return response.headers, body
    except HTTPError as error:
        error.close()
        if error.code != 304:
            raise
        return error.headers, None


def modified(text):
    """Seconds since 1970 of an HTTP date, NaN for none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return math.nan


async def main(urls, folder, per_minute):
    crawler = Crawler(Path(urls).read_text().split(), folder, 1440 * float(per_minute))
    stop = asyncio.current_task().cancel
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop)
    await crawler.crawl()


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(main(*sys.argv[1:]))
