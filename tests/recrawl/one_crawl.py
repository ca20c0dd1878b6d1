"""One simulated crawl, written as the programs of several formats would store it."""

import hashlib
import json
from base64 import b32encode
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from io import BytesIO

import numpy as np
from warcio.statusandheaders import StatusAndHeaders

BEGIN = 1_767_225_600  # 2026-01-01, seconds since 1970
DAY = 86_400


def utc(seconds):
    return datetime.fromtimestamp(int(seconds), UTC)


@dataclass
class Crawl:
    """Pages that change as Poisson processes, all fetched once a day."""

    rate: np.ndarray
    n_days: int
    seed: int = 0

    @cached_property
    def url(self):
        return [f"https://host.example/{k}?a=1,2&ä" for k in range(len(self.rate))]

    @property
    def end(self):
        return BEGIN + self.n_days * DAY

    @cached_property
    def fetches(self):
        """Times of the fetches of every page, seconds since 1970."""
        return BEGIN + DAY * np.arange(self.n_days + 1)

    @cached_property
    def changes(self):
        """Times of the changes of each page, in whole seconds."""
        rng = np.random.default_rng(self.seed)
        span = self.end - BEGIN
        return [
            BEGIN + np.unique(rng.integers(1, span, n))
            for n in rng.poisson(self.rate * self.n_days)
        ]

    @cached_property
    def version(self):
        """Number of changes until each fetch, by page."""
        return [np.searchsorted(times, self.fetches, "right") for times in self.changes]

    def found(self, page):
        """Times of the fetches that found a change."""
        return self.fetches[1:][np.diff(self.version[page]) > 0]


def sha1(body):
    """The digest of a payload, as WARC files have it."""
    return f"sha1:{b32encode(hashlib.sha1(body).digest()).decode()}"


def add_record(writer, kind, url, date, body=b"", profile="", **http):
    """Write one record; `http` has status and headers, or status None for none.

    A revisit has the digest of the body, and no body.
    """
    status = http.pop("status", "200 OK")
    headers = {"WARC-Date": date}
    if profile:
        headers["WARC-Profile"] = f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    if kind == "revisit":
        headers["WARC-Payload-Digest"] = sha1(body)
        body = b""
    answer = None
    if status is not None:
        fields = [(name.replace("_", "-"), value) for name, value in http.items()]
        answer = StatusAndHeaders(status, fields, protocol="HTTP/1.1")
    record = writer.create_warc_record(
        url,
        kind,
        payload=BytesIO(body),
        http_headers=answer,
        warc_headers_dict=headers,
        warc_content_type="application/http" if answer else "text/dns",
    )
    writer.write_record(record)


def write_changedetection(folder, crawl):
    """A folder for each page, with the history of what checks found."""
    parts = dict.fromkeys(("weeks", "days", "hours", "minutes", "seconds"))
    for k, url in enumerate(crawl.url):
        page = folder / f"{k:08x}"
        page.mkdir(parents=True)
        watch = {
            "url": url,
            "last_checked": crawl.end,
            "last_error": False,
            "paused": False,
            "time_between_check": parts,
            "time_between_check_use_default": True,
        }
        (page / "watch.json").write_text(json.dumps(watch))
        times = [BEGIN, *crawl.found(k)]
        lines = [f"{time},{n:032x}.txt.br\n" for n, time in enumerate(times)]
        (page / "history.txt").write_text("".join(lines))


def write_git(path, crawl):
    """The log of a job that commits what it finds, the newest commit first."""
    commits = {}
    for k, url in enumerate(crawl.url):
        for j, time in enumerate([BEGIN, *crawl.found(k)]):
            commits.setdefault(int(time), []).append(f"{'M' if j else 'A'}\t{url}\n")
    path.write_text(
        "\n".join(
            f"@{time}\n\n{''.join(lines)}"
            for time, lines in sorted(commits.items(), reverse=True)
        ),
        "utf-8",
    )
