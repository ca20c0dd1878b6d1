"""Sitemaps, sitemap.xml or sitemap.xml.gz: when each page changed last.

Download them (``curl -O https://www.example.org/sitemap.xml``) and give the time
of the download, ``--as-of``, unless the file's own time is that. An entry tells
the age of its page: the page changed at lastmod, and not from then on to the
download; a lastmod without a time of day stands for the whole day, month or
year. Of a sitemapindex the entries are its sitemaps, not pages.

Pitfalls: many sites write the time of the build or of the download as the
lastmod of all pages, which then says nothing and is left out. A page's creation
counts as a change. Of several downloads each tells what happened since the one
before, so that a change counts once.
"""

import re
from collections import Counter
from datetime import timedelta

from recrawl.log.formats.base import Format
from recrawl.log.formats.markup import document, root
from recrawl.log.formats.records import LOST, downloaded, moments

__all__ = ["FORMATS"]

# How long a lastmod lasts: a year, a month, a day if it has no time of day.
_YEAR, _MONTH = re.compile(r"\d{4}"), re.compile(r"\d{4}-\d\d")
_CLOCK = re.compile(r":|\dT\d|^\d{9,}$")
_NEAR = timedelta(minutes=1)
_FEW = 3  # as many pages may well have changed at once
_SITES_OWN = "whose lastmod is that of most pages, or of the download"


def _rows(path, as_of):
    """Rows of a sitemap: two of an entry whose lastmod is a day or longer."""
    as_of = downloaded(path, as_of)
    _, entries, fault = document(path, ("url", "sitemap"))
    entries = [(t.get("loc", ""), t.get("lastmod", ""), why) for t, why in entries]
    n = Counter(lastmod for _, lastmod, _ in entries)
    spans = _spans(n, as_of)
    ignored = _ignored(n, spans, as_of)
    for row, (url, lastmod, reason) in enumerate(entries, 1):
        about = {"row": row, "url": url, "time": as_of, "given": f"{url} {lastmod}"}
        first, last = spans.get(lastmod, (None, None))
        if reason:
            yield about | {"reason": reason}
        elif not lastmod:
            yield about | {"reason": "without a lastmod"}
        elif first is None:
            yield about | {"reason": "whose lastmod cannot be read"}
        elif first >= as_of:
            yield about | {"reason": "whose lastmod is not before the download"}
        elif lastmod in ignored:
            yield about | {"reason": _SITES_OWN}
        elif first == last:
            yield about | {"start": first, "changed": True, "last_modified": first}
        else:
            # the change was in (first, last], and nothing changed from then on
            end = min(last, as_of)
            yield about | {"start": first, "time": end, "changed": True}
            if last < as_of:
                yield about | {"start": last, "changed": False}
    if fault:
        given = f"{path.name}: {fault}"
        yield {"row": len(entries) + 1, "time": as_of, "given": given, "reason": LOST}


def _spans(texts, as_of):
    """First moment that each lastmod can mean, and the first one that it cannot."""
    # of a year alone, which a table would take for seconds since 1970
    whole = {text: f"{text}-01" if _YEAR.fullmatch(text) else text for text in texts}
    read, spans = moments(whole.values(), as_of), {}
    for text in texts:
        if first := read.get(whole[text]):
            last = first
            if _YEAR.fullmatch(text):
                last = first.replace(year=first.year + 1)
            elif _MONTH.fullmatch(text):
                last = (first + timedelta(days=31)).replace(day=1)
            elif not _CLOCK.search(text):
                last = first + timedelta(days=1)
            spans[text] = first, last
    return spans


def _ignored(n, spans, as_of):
    """Lastmods that say nothing: of the download, or of most of the n entries."""
    near = {text for text in spans if abs(spans[text][0] - as_of) <= _NEAR}
    total = sum(n[text] for text in spans)
    if 2 * sum(n[text] for text in near) > total:
        return near
    return {text for text in spans if n[text] > max(_FEW, total / 2)}


FORMATS = (
    Format(
        "sitemap",
        "a sitemap",
        "observations",
        lambda head, path: root(head) in ("urlset", "sitemapindex"),
        read=_rows,
    ),
)
