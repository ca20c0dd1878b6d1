"""A spider of Scrapy that fetches pages by a schedule and logs each fetch.

    scrapy runspider scrapy_spider.py -a plan=plan.jsonl -a per_day=5000 \
        -a log=fetched.jsonl -o fetched.jsonl
    recrawl estimate fetched.jsonl -o rates.parquet

It needs choosing.py beside it. `recrawl export --to jsonl` writes `plan.jsonl`.
The spider goes on until it is stopped: in each slot the page of the longest wait, in
units of its interval, is next. It takes a new plan.jsonl when that appears, and leaves
a host alone that answers 503 or 429, for as long as Retry-After says. `-a rates=` in
place of `-a plan=` takes the rates.parquet of `recrawl estimate`, and goes on to learn
from each fetch (recrawl must then be installed beside Scrapy). It keeps the limits that
`-a host_limit=` (crawls of each host a day), `-a min_interval=` and `-a max_interval=`
(days, of each page) give. With `-a log=` it begins with the validators and digests of
its own log. `-o` appends to that; `-O` would overwrite it. Tested with Scrapy 2.13 and
newer.
"""

import asyncio
import hashlib
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import scrapy

sys.path.insert(0, str(Path(__file__).parent))  # Scrapy loads the file by its path
from choosing import DAY, chosen


class PlanSpider(scrapy.Spider):
    """Fetch one page a slot, and tell of every fetch, failed ones too."""

    name = "plan"
    custom_settings = {  # noqa: RUF012, as Scrapy wants it
        "HTTPERROR_ALLOW_ALL": True,  # 404 and 304 come to `parse` too
        "REDIRECT_ENABLED": False,  # a redirect is no content of this page
        "HTTPCACHE_ENABLED": False,
        "RETRY_ENABLED": False,  # one line a fetch
        "FEED_EXPORT_ENCODING": "utf-8",
    }
    own = {"log", "per_day"}  # noqa: RUF012, of -a; `chosen` takes the others
    log, per_day = None, 1000
    now = staticmethod(time.time)

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        self.known = self.copies()
        others = {name: given[name] for name in given if name not in self.own}
        self.pages = chosen(**others)

    def period(self):
        """Seconds between two slots."""
        return DAY / float(self.per_day)

    def copies(self):
        """The last digest and validators of each page in the log."""
        known = {}
        if self.log and Path(self.log).exists():
            with open(self.log, encoding="utf-8") as lines:
                for row in map(json.loads, lines):
                    if row["status"] in (200, 304):
                        kept = {name: row[name] for name in row if row[name]}
                        known[row["url"]] = known.get(row["url"], {}) | kept
        return known

    async def start(self):
        slot = time.monotonic()
        while True:
            if url := self.pages.choose(self.now()):
                yield self.request(url)
            slot = max(slot + self.period(), time.monotonic() - 1)
            await asyncio.sleep(slot - time.monotonic())

    def request(self, url):
        copy = self.known.get(url, {})
        # with these a server can answer 304, without a body
        validators = {
            "If-None-Match": copy.get("etag"),
            "If-Modified-Since": copy.get("last_modified"),
        }
        return scrapy.Request(
            url,
            headers={name: value for name, value in validators.items() if value},
            callback=self.parse,
            errback=self.failed,
            dont_filter=True,
            cb_kwargs={"url": url},  # the request's own URL is escaped
        )

    def parse(self, response, url):
        copy, digest, changed = self.known.get(url, {}), None, None
        if response.status == 200:
            digest = "sha256:" + hashlib.sha256(response.body).hexdigest()
            if "digest" in copy:
                changed = digest != copy["digest"]
        elif response.status == 304:
            changed = False
        row = {
            "url": url,
            "time": self.stamp(),
            "status": response.status,
            "etag": _header(response, "ETag"),
            "last_modified": _header(response, "Last-Modified"),
            "digest": digest,
            "bytes": len(response.body),
        }
        if response.status in (200, 304):
            kept = {name: row[name] for name in row if row[name]}
            self.known[url] = copy | kept
        pause = _header(response, "Retry-After")
        status = response.status
        self.pages.done(url, self.now(), status, retry_after=pause, changed=changed)
        yield row

    def failed(self, failure):
        url = failure.request.cb_kwargs["url"]
        self.pages.done(url, self.now(), -1)
        error = failure.type.__name__
        yield {"url": url, "time": self.stamp(), "status": -1, "error": error}

    def stamp(self):
        return datetime.fromtimestamp(self.now(), UTC).isoformat(
            timespec="milliseconds"
        )


def _header(response, name):
    value = response.headers.get(name)
    return value.decode("latin-1") if value else None
