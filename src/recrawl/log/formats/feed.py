"""Feeds, RSS and Atom: the changes of the page that a feed belongs to.

Download them (``curl -O https://www.example.org/feed.xml``) and give the time of
the download, ``--as-of``, unless the file's own time is that. A new item is a
change of the feed's page; all changes are known from the oldest item of the feed
to the download. Several downloads of one feed join where they overlap: put them
into one folder.

Pitfalls: a feed keeps its last items only, so that downloads far apart leave
gaps, of which nothing is known. The oldest item only begins the window; one that
is out of order, pinned perhaps, does not. Items that are dated at the download or
later have made-up dates and are left out.
"""

from urllib.parse import urljoin

from recrawl.log.formats.base import Format
from recrawl.log.formats.markup import document, root
from recrawl.log.formats.records import LOST, downloaded, in_order, moments

__all__ = ["FORMATS"]

_UPDATED = "updated", "modified", "date"  # the last one of Dublin Core
_DATES = "pubdate", "published", "issued", *_UPDATED, "created"
_NAMES = "link", "guid", "id", "title"  # of an item, in messages


def _rows(path, as_of):
    """Rows of a feed, one for each item."""
    as_of = downloaded(path, as_of)
    head, entries, fault = document(path, ("item", "entry"))
    url = _page(head)
    if fault:
        given = f"{path.name}: {fault}"
        yield {"row": 0, "url": url, "given": given, "reason": LOST}
    entries = list(entries)
    dates = (texts[n] for texts, _ in entries for n in _DATES if n in texts)
    read = moments(dates, as_of)
    times = [_date(texts, _DATES, read) for texts, _ in entries]
    known, updated = [], []
    for (texts, _), time in zip(entries, times, strict=True):
        if time and time < as_of:
            known.append(time)
            updated.append(_date(texts, _UPDATED, read) or time)
    oldest, start = _starts(known, updated, as_of)
    for row, ((texts, reason), time) in enumerate(zip(entries, times, strict=True), 1):
        name = next((texts[name] for name in _NAMES if texts.get(name)), "")
        about = {"row": row, "url": url, "given": f"{path.name}: {name}"}
        if reason:
            yield about | {"reason": reason}
        elif url is None:
            yield about | {"reason": "of a feed that names no page"}
        elif time is None:
            yield about | {"reason": "without a date that can be read"}
        elif time >= as_of:
            yield about | {"reason": "dated at the download or later"}
        elif time < oldest:
            yield about | {"reason": "older than the items of a feed in their order"}
        else:
            window = {"start": start, "stop": as_of}
            yield about | window | {"time": time if time > start else None}


def _page(head):
    """URL of the page that a feed belongs to, else its own, else None."""
    links, others = [], []
    for parent, name, text, attributes in head:
        if parent not in ("channel", "feed"):
            continue
        href = urljoin(attributes.get("xml:base", ""), attributes.get("href", text))
        if name == "link" and attributes.get("rel", "alternate") == "alternate":
            links.append(href)
        elif name in ("link", "id"):
            others.append(href)
    found = (url for url in links + others if url.startswith("http"))
    return next(found, None)


def _date(texts, names, read):
    """The first date by some names that can be read, or None."""
    return next((read[texts[name]] for name in names if texts.get(name) in read), None)


def _starts(times, updated, as_of):
    """When the items begin that are in order, and when the window does.

    A pinned item stands before newer ones, and an edited one among newer ones where a
    feed is sorted by updates: from its own date on, others may be missing. Where the
    updates are in order and tell of as many items, all since the first are known.
    """
    n, oldest = max(in_order(times, as_of), in_order(times[::-1], as_of))
    start = in_order(updated, as_of)[1]
    n_changes = sum(time > start for time in times)
    if start > oldest and n_changes >= n - 1 > 0:
        return oldest, start
    return oldest, oldest


FORMATS = (
    Format(
        "feed",
        "a feed, RSS or Atom",
        "changes",
        lambda head, path: root(head) in ("rss", "feed", "RDF"),
        read=_rows,
    ),
)
