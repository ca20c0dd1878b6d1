"""A crawler that learns how often pages change: python crawler.py URLS FOLDER RATE

URLS is a file with one URL a line, FOLDER keeps what was learnt, and RATE is the
number of fetches a minute. Interrupt it whenever you like, and start it again.
"""

import asyncio
import contextlib
import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from fetching import FAILURES, TIMEOUT, age, fetch

from recrawl.live.scheduler import LearnedPages, Limits, Scheduler
from recrawl.log.files import write_atomic

DAY = 86_400  # seconds; the scheduler's times are in days
AT_ONCE, SAVE_EVERY = 16, 300  # fetches, seconds
PER_HOST = DAY / 10  # fetches a day of one host
MIN_INTERVAL = 2 * TIMEOUT / DAY  # so that no page is fetched twice at once
GONE = 3  # answers 404 or 410 in a row, after which a page is not fetched again


class Crawler:
    def __init__(self, urls, folder, per_day, *, clock=time.time, sleep=asyncio.sleep):
        self.per_day, self.clock, self.sleep = per_day, clock, sleep
        self.running, self.now, self.saved = set(), clock(), clock()
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.learnt, self.known = Path(folder, "learnt.npz"), Path(folder, "pages.json")
        self.pages = json.loads(self.known.read_text()) if self.known.exists() else []
        old = {page["url"] for page in self.pages}
        self.pages += [{"url": url} for url in dict.fromkeys(urls) if url not in old]
        self.scheduler = Scheduler.load(self.learnt) if self.learnt.exists() else None
        # removed pages keep their numbers, so that `len` would not do
        n_known = self.scheduler.posterior[0].size if self.scheduler else 0
        if new := self.pages[n_known:]:
            rate = len(self.pages) / per_day  # one change in one round
            pages = LearnedPages([1.0] * len(new), shape=1.0, rate=rate)
            host = [urlsplit(page["url"]).netloc for page in new]
            limits = Limits(MIN_INTERVAL, host=host, host_limit=PER_HOST)
            if n_known:
                self.scheduler.add(pages, limits)
            else:
                self.scheduler = Scheduler(pages, limits)

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
                body, found = await asyncio.to_thread(fetch, known)
        except FAILURES as error:
            print(f"{known['url']}: {error!r}", file=sys.stderr)
            is_gone = getattr(error, "code", None) in (404, 410)
            known["gone"] = known.get("gone", 0) + 1 if is_gone else 0
            if known["gone"] >= GONE:
                self.scheduler.remove(page)
            return
        changed = found.get("digest", known.get("digest")) != known.get("digest")
        known.update(found, gone=0)
        self.scheduler.report(page, changed, age=age(known, now) / DAY)
        if changed:
            self.keep(known["url"], body)

    def keep(self, url, body):
        """Do with a new or changed page what you crawl for."""

    def save(self):
        self.saved = self.now
        write_atomic(self.known, json.dumps(self.pages).encode())
        self.scheduler.save(self.learnt)  # last: what it lacks is added at the start


if __name__ == "__main__":
    urls, folder, per_minute = sys.argv[1:]
    # A shell starts programs in the background with this signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    crawler = Crawler(Path(urls).read_text().split(), folder, 1440 * float(per_minute))
    with contextlib.suppress(KeyboardInterrupt):  # asyncio lets the crawler end
        asyncio.run(crawler.crawl())
