"""Feeds, RSS and Atom: the changes of the page that a feed belongs to.

Download them (``curl -O https://www.example.org/feed.xml``) and give the time of
the download, ``--as-of``, unless the file's own time is that. A new item is a
change of the feed's page; all changes are known from the oldest item of the feed
to the download. Several downloads of one feed join where they overlap: put them
into one folder.

Pitfalls: a feed keeps its last items only, so that downloads far apart leave
gaps, of which nothing is known. The oldest item only begins the window. Items
that are dated at the download or later have made-up dates and are left out.
"""

import io
import itertools
from xml.sax import SAXException

from recrawl.formats.base import Format, unpacked
from recrawl.formats.records import batches, downloaded, moments, root

__all__ = ["FORMATS"]

_FAULTY = "of XML with a fault, behind which entries may be missing"


def _read(path, as_of):
    return batches(_rows(path, downloaded(path, as_of)), "changes")


def _rows(path, as_of):
    """Rows of a feed, one for each item."""
    import feedparser  # it takes long, and no other format needs it

    with unpacked(path) as file:
        content = file.read()
    try:
        # feedparser would take bytes for a name of a file
        feed = feedparser.parse(io.BytesIO(content))
        fault = feed.get("bozo_exception")
    except Exception as error:  # of its own, by a declared encoding perhaps
        feed, fault = feedparser.FeedParserDict(feed={}, entries=[]), error
    url = _page(feed.feed)
    if isinstance(fault, SAXException) or (fault and not feed.entries):
        given = f"{path.name}: {fault}"
        yield {"row": 0, "url": url, "given": given, "reason": _FAULTY}
    texts = [_dates(item) for item in feed.entries]
    read = moments(itertools.chain(*texts), as_of)
    times = [next((read[t] for t in each if t in read), None) for each in texts]
    oldest = min((t for t in times if t and t < as_of), default=None)
    for row, (item, time) in enumerate(zip(feed.entries, times, strict=True), 1):
        link = item.get("link") or item.get("id") or item.get("title") or ""
        about = {"row": row, "url": url, "given": f"{path.name}: {link}"}
        if url is None:
            yield about | {"reason": "of a feed that names no page"}
        elif time is None:
            yield about | {"reason": "without a date that can be read"}
        elif time >= as_of:
            yield about | {"reason": "dated at the download or later"}
        else:
            window = {"start": oldest, "stop": as_of}
            yield about | window | {"time": time if time > oldest else None}


def _page(feed):
    """URL of the page that a feed belongs to, else its own, else None."""
    own = (link.get("href") for link in feed.get("links", ()))
    found = (feed.get("link"), *own, feed.get("id"))
    return next((url for url in found if url and url.startswith("http")), None)


def _dates(item):
    """The dates of an item as texts: feedparser guesses where it cannot read one."""
    # feedparser answers get("updated") with the date of publication
    names = (name for name in ("published", "updated", "created") if name in item)
    return [item[name].strip() for name in names if item[name]]


FORMATS = (
    Format(
        "feed",
        "a feed, RSS or Atom",
        "changes",
        lambda head, path: root(head) in ("rss", "feed", "RDF"),
        read=_read,
    ),
)
