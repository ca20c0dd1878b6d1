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
import zlib
from collections import Counter
from datetime import timedelta

from recrawl.formats.base import Format
from recrawl.formats.records import (
    LOST,
    batches,
    downloaded,
    moments,
    root,
    unpacked,
)

__all__ = ["FORMATS"]

_BLOCK = 1 << 16  # bytes that are unpacked at a time
_LARGEST = 200 << 20  # bytes; the protocol allows 50 MiB
_READ = b"loc", b"lastmod"
_ENTRY = re.compile(rb"<((?:[\w.-]+:)?)(url|sitemap)(?:\s[^>]*)?>")
_CLOSED = re.compile(rb"</(?:[\w.-]+:)?(?:urlset|sitemapindex)\s*>\s*$|/>\s*$")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_ENTITY = re.compile(rb"<!ENTITY\s+(?:%\s+)?(\S+)")
_ENCODING = re.compile(rb"\s*<\?xml[^>]*?encoding=[\"']([\w.-]+)")
_YEAR, _MONTH = re.compile(r"\d{4}"), re.compile(r"\d{4}-\d\d")
_CLOCK = re.compile(r":|\dT\d|^\d{9,}$")  # of texts that tell more than the day
_NEAR = timedelta(minutes=1)
_FEW = 3  # as many pages may well have changed at once
_SITES_OWN = "whose lastmod is that of most pages, or of the download"


def _read(path, as_of):
    return batches(_rows(path, downloaded(path, as_of)), "observations")


def _rows(path, as_of):
    """Rows of a sitemap: two of an entry whose lastmod is a day or longer."""
    # the protocol limits a file to 50,000 entries, and so the texts that are kept
    entries = list(_entries(path))
    n = Counter(text for _, text, _ in entries)
    spans = _spans(n, as_of)
    ignored = _ignored(n, spans, as_of)
    for row, (url, text, fault) in enumerate(entries, 1):
        about = {"row": row, "url": url, "time": as_of}
        about["given"] = f"{path.name}: {fault}" if fault else f"{url} {text}"
        first, last = spans.get(text, (None, None))
        reason = None
        if fault:
            reason = LOST
        elif not text:
            reason = "without a lastmod"
        elif first is None:
            reason = "whose lastmod cannot be read"
        elif first >= as_of:
            reason = "whose lastmod is not before the download"
        elif text in ignored:
            reason = _SITES_OWN
        if reason is not None:
            yield about | {"reason": reason}
        elif last - first <= _NEAR:
            yield about | {"start": first, "changed": True, "last_modified": first}
        else:
            # the change was in (first, last], and nothing changed from then on
            end = min(last, as_of)
            yield about | {"start": first, "time": end, "changed": True}
            if last < as_of:
                yield about | {"start": last, "changed": False}


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
    """URL, lastmod and fault of each entry, and of what is missing at the end.

    An entry goes on to the next one, so that a fault spoils no other: many
    generators write & in a URL as it is, where a parser of XML would stop.
    """
    data, fault = _content(path)
    data = _COMMENT.sub(b"", data)
    if found := _ENTITY.search(data):
        name = found[1].decode("utf-8", "replace")
        raise ValueError(f"{path} must declare no entities, got {name!r}")
    found = _ENCODING.match(data)
    encoding = found[1].decode() if found else "utf-8"
    if not fault and not _CLOSED.search(data):
        fault = "the last element is not closed"
    tags = list(_ENTRY.finditer(data))
    ends = [*(tag.start() for tag in tags[1:]), len(data)]
    for tag, end in zip(tags, ends, strict=True):
        entry = data[tag.end() : end]
        if not fault or tag is not tags[-1] or b"</" + tag[1] + tag[2] in entry:
            yield *(_text(entry, tag[1] + name, encoding) for name in _READ), ""
    if fault:
        yield None, "", fault


def _content(path):
    """Bytes of a file, as far as they can be read, and why not farther."""
    blocks, size = [], 0
    with unpacked(path) as file:
        try:
            while block := file.read1(_BLOCK):
                blocks.append(block)
                size += len(block)
                if size > _LARGEST:
                    return b"".join(blocks), f"it is larger than {_LARGEST:,} bytes"
        except (EOFError, OSError, zlib.error) as error:
            return b"".join(blocks), str(error)
    return b"".join(blocks), ""


def _text(entry, name, encoding):
    """Text of an element of an entry, not of an image inside of it; or empty."""
    found = re.search(
        rb"<%b(?:\s[^>]*)?>(.*?)</%b\s*>" % (name, name), entry, re.DOTALL
    )
    if not found:
        return ""
    plain = found[1].replace(b"<![CDATA[", b"").replace(b"]]>", b"")
    try:
        text = plain.decode(encoding, "replace")
    except LookupError:
        text = plain.decode("utf-8", "replace")
    return (text if plain != found[1] else html.unescape(text)).strip()


FORMATS = (
    Format(
        "sitemap",
        "a sitemap",
        "observations",
        lambda head, path: root(head) in ("urlset", "sitemapindex"),
        read=_read,
    ),
)
