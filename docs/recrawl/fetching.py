"""Fetches of pages that may be as they were, for crawler.py."""

import hashlib
import math
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

TIMEOUT = 30  # seconds
MOST = 10_000_000  # bytes of a page
AGENT = "example-crawler/1.0 (+https://www.example.org/crawler)"  # who you are
FAILURES = OSError, ValueError, HTTPException


class SameHost(HTTPRedirectHandler):
    """Follow no redirect to another scheme or host: its content is another page's."""

    def redirect_request(self, request, file, code, message, headers, url):
        if urlsplit(url)[:2] != urlsplit(request.full_url)[:2]:
            file.close()
            raise ValueError(f"redirected to {url}")
        return super().redirect_request(request, file, code, message, headers, url)


def fetch(known):
    """Body of a page, and what identifies it; without a body if it is as it was."""
    asked = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
    sent = {name: known[of] for name, of in asked.items() if known.get(of)}
    if urlsplit(known["url"]).scheme not in ("http", "https"):  # file: and ftp: work
        raise ValueError("a URL must begin with http:// or https://")
    request = Request(known["url"], headers=sent | {"User-Agent": AGENT})
    try:
        with build_opener(SameHost).open(request, timeout=TIMEOUT) as response:
            if len(body := response.read(MOST + 1)) > MOST:
                raise ValueError(f"more than {MOST} bytes")
            found = {name: response.headers[name] for name in asked.values()}
            return body, found | {"digest": hashlib.sha256(body).hexdigest()}
    except HTTPError as error:
        error.close()
        if error.code != 304:
            raise
        return None, {name: v for name in asked.values() if (v := error.headers[name])}


def age(known, now):
    """Seconds since the page changed, NaN if they are not known."""
    try:
        seconds = now - parsedate_to_datetime(known["Last-Modified"]).timestamp()
    except (TypeError, ValueError):
        return math.nan
    return seconds if seconds > 2 else math.nan  # many give the time of the fetch
