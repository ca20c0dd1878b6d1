"""A spider of Scrapy that fetches what is due and logs each fetch.

    scrapy runspider scrapy_spider.py -a due=due.jsonl -o fetched.jsonl
    recrawl estimate fetched.jsonl -o rates.parquet

`due.jsonl` has one object a line, as `recrawl export --to jsonl` writes it: url, and
due; what is due later is left for the next run. Add etag and last_modified of the
last fetch, and servers can answer that nothing has changed. `-o` appends to
fetched.jsonl, which thus becomes the log; `-O` would overwrite it. Tested with
Scrapy 2.13 and newer.
"""

import hashlib
import json
from datetime import UTC, datetime

import scrapy


class DueSpider(scrapy.Spider):
    """Fetch the pages of a file, and tell of every fetch, failed ones too."""

    name = "due"
    custom_settings = {  # noqa: RUF012, as Scrapy wants it
        "HTTPERROR_ALLOW_ALL": True,  # 404 and 304 come to `parse` too
        "REDIRECT_ENABLED": False,  # a redirect is no content of this page
        "HTTPCACHE_ENABLED": False,
        "RETRY_ENABLED": False,  # one line a fetch
        "FEED_EXPORT_ENCODING": "utf-8",
    }

    async def start(self):
        with open(self.due, encoding="utf-8") as lines:
            for page in map(json.loads, lines):
                due = page.get("due")
                if due and datetime.fromisoformat(due) > datetime.now(UTC):
                    continue
                # with these a server can answer 304, without a body
                known = {
                    "If-None-Match": page.get("etag"),
                    "If-Modified-Since": page.get("last_modified"),
                }
                yield scrapy.Request(
                    page["url"],
                    headers={name: value for name, value in known.items() if value},
                    callback=self.parse,
                    errback=self.failed,
                    dont_filter=True,
                    # the request's own URL is escaped
                    cb_kwargs={"url": page["url"]},
                )

    def parse(self, response, url):
        digest = None
        if response.status == 200:
            digest = "sha256:" + hashlib.sha256(response.body).hexdigest()
        yield {
            "url": url,
            "time": _now(),
            "status": response.status,
            "etag": _header(response, "ETag"),
            "last_modified": _header(response, "Last-Modified"),
            "digest": digest,
            "bytes": len(response.body),
        }

    def failed(self, failure):
        yield {
            "url": failure.request.cb_kwargs["url"],
            "time": _now(),
            "status": -1,
            "error": failure.type.__name__,
        }


def _now():
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _header(response, name):
    value = response.headers.get(name)
    return value.decode("latin-1") if value else None
