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

import html
import re
from collections import Counter
from datetime import timedelta

from recrawl.formats.base import Format, unpacked
from recrawl.formats.records import LOST, batches, downloaded, moments, root

__all__ = ["FORMATS"]

_LARGEST = 200 << 20  # bytes; the protocol allows 50 MiB
_ROOT = re.compile(r"<([\w.-]+:)?(?:urlset|sitemapindex)\b")
# How long a lastmod lasts: a year, a month, a day if it has no time of day.
_YEAR, _MONTH = re.compile(r"\d{4}"), re.compile(r"\d{4}-\d\d")
_CLOCK = re.compile(r":|\dT\d|^\d{9,}$")
_NEAR = timedelta(minutes=1)
_FEW = 3  # as many pages may well have changed at once
_SITES_OWN = "whose lastmod is that of most pages, or of the download"


def _read(path, as_of):
    return batches(_rows(path, downloaded(path, as_of)), "observations")


def _rows(path, as_of):
    """Rows of a sitemap: two of an entry whose lastmod is a day or longer."""
    entries, whole = _entries(path)
    n = Counter(lastmod for _, lastmod in entries)
    spans = _spans(n, as_of)
    ignored = _ignored(n, spans, as_of)
    for row, (url, lastmod) in enumerate(entries, 1):
        about = {"row": row, "url": url, "time": as_of, "given": f"{url} {lastmod}"}
        first, last = spans.get(lastmod, (None, None))
        if not lastmod:
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
    if not whole:
        given = f"{path.name}: its last element is not closed, or beyond 200 MiB"
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


def _entries(path):
    """URL and lastmod of each entry, and whether the file is whole.

    An entry goes on to the next one, so that a fault spoils no other: many
    generators write & in a URL as it is, where a parser of XML would stop.
    """
    with unpacked(path) as file:
        data = file.read(_LARGEST)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("windows-1252", "replace")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    found = _ROOT.search(text)
    prefix = (found and found[1]) or ""
    _, *entries = re.split(rf"<{prefix}(?:url|sitemap)(?=[\s>])", text)
    whole = re.search(rf"(</{prefix}(urlset|sitemapindex)\s*|/)>\s*$", text)
    ends = f"</{prefix}url>", f"</{prefix}sitemap>"
    if not whole and entries and not any(end in entries[-1] for end in ends):
        entries.pop()
    names = f"{prefix}loc", f"{prefix}lastmod"
    return [tuple(_element(e, name) for name in names) for e in entries], bool(whole)


def _element(entry, name):
    """Text of an element of an entry, not of an image inside of it; or empty."""
    found = re.search(rf"<{name}(?:\s[^>]*)?>(.*?)</{name}\s*>", entry, re.DOTALL)
    text = found[1] if found else ""
    if "<![CDATA[" in text:
        return text.replace("<![CDATA[", "").replace("]]>", "").strip()
    return html.unescape(text).strip()


FORMATS = (
    Format(
        "sitemap",
        "a sitemap",
        "observations",
        lambda head, path: root(head) in ("urlset", "sitemapindex"),
        read=_read,
    ),
)
