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

import zlib
from collections import Counter
from datetime import timedelta
from xml.parsers import expat

from recrawl.formats.base import Format
from recrawl.formats.records import (
    LOST,
    batches,
    downloaded,
    root,
    unpacked,
    w3c,
)

__all__ = ["FORMATS"]

_BLOCK = 1 << 16  # bytes that are parsed at a time
_NEAR = timedelta(minutes=1)
_FEW = 3  # as many pages may well have changed at once
_SITES_OWN = "whose lastmod is that of most pages, or of the download"


def _read(path, as_of):
    return batches(_rows(path, downloaded(path, as_of)), "observations")


def _rows(path, as_of):
    """Rows of a sitemap: two of an entry whose lastmod is a day or longer."""
    ignored = _ignored(path, as_of)
    for row, entry in enumerate(_entries(path), 1):
        text = entry.get("lastmod", "")
        about = {"row": row, "url": entry.get("loc"), "time": as_of}
        about["given"] = entry.get(LOST) or f"{entry.get('loc')} {text}"
        first, last = w3c(text) or (None, None)
        reason = None
        if LOST in entry:
            reason = LOST
        elif not text:
            reason = "without a lastmod"
        elif first is None:
            reason = "whose lastmod cannot be read"
        elif first >= as_of:
            reason = "whose lastmod is not before the download"
        elif ignored(text):
            reason = _SITES_OWN
        if reason is not None:
            yield about | {"reason": reason}
        elif last - first <= _NEAR:
            row = {"start": first, "changed": True, "last_modified": first}
            yield about | row
        else:
            # the change was in (first, last], and nothing changed from then on
            end = min(last, as_of)
            yield about | {"start": first, "time": end, "changed": True}
            if last < as_of:
                yield about | {"start": last, "changed": False}


def _ignored(path, as_of):
    """Whether a lastmod is to be ignored, as a function of its text.

    Reads the file once more: it has to be known before the first row is given.
    The protocol limits a file to 50,000 entries, and so the texts that are kept.
    """
    n = Counter(entry.get("lastmod", "") for entry in _entries(path))
    times = {text: found[0] for text in n if (found := w3c(text))}
    near = {text for text, time in times.items() if abs(time - as_of) <= _NEAR}
    total = sum(n[text] for text in times)
    if 2 * sum(n[text] for text in near) > total:
        return near.__contains__
    return lambda text: n[text] > max(_FEW, total / 2)


def _entries(path):
    """Each entry of a sitemap: its loc and lastmod, or the error that ends it.

    ElementTree would expand entities and keep an element for each entry, so
    that a small file could fill the memory.
    """
    parser, found, inside, texts = expat.ParserCreate(), [], [], {}

    def start(name, _attributes):
        inside.append(name.rpartition(":")[2])
        if len(inside) == 2:
            texts.clear()

    def text(part):
        # the third level: not the loc of an image inside of the entry
        if len(inside) == 3 and inside[2] in ("loc", "lastmod"):
            texts[inside[2]] = texts.get(inside[2], "") + part

    def end(_name):
        if len(inside) == 2 and inside[1] in ("url", "sitemap"):
            found.append({name: value.strip() for name, value in texts.items()})
        inside.pop()

    def entity(name, *_declaration):
        raise ValueError(f"{path} must declare no entities, got {name!r}")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = text, entity
    with unpacked(path) as file:
        try:
            while block := file.read1(_BLOCK):
                parser.Parse(block)
                yield from found
                found.clear()
            parser.Parse(b"", True)
        except (expat.ExpatError, EOFError, OSError, zlib.error) as error:
            yield from found
            yield {LOST: f"{path.name}: {error}"}


FORMATS = (
    Format(
        "sitemap",
        "a sitemap",
        "observations",
        lambda head, path: root(head) in ("urlset", "sitemapindex"),
        read=_read,
    ),
)
