"""WARC, the files of web archives: one record a fetch, .warc or .warc.gz.

Heritrix, wget (``--warc-file``), Browsertrix and others write them. Read are the
records response and revisit: time, status, digest, ETag and Last-Modified; no
body is read. Of a file that is truncated or damaged, all records are used that
are not.

Pitfalls: a revisit with an identical digest refers to any earlier record with
that content, so its digest is compared like any other; only "not modified by the
server" is "unchanged". Some programs digest chunked bodies as they were sent, so
that the same page may differ at each fetch. Captures that people asked for
follow the changes of a page, and make its rate look higher.
"""

import contextlib
import io
import mmap
import os
import re
import zlib
from collections import deque

from recrawl.formats.base import Format, is_packed, members
from recrawl.formats.captures import EMPTY, OTHER_METHOD
from recrawl.formats.records import LOST, batches

__all__ = ["FORMATS"]

_BLOCK = 1 << 16  # bytes that are read at a time; a head of HTTP is no longer
_APART = 1000  # records between a request and its answer, at most
_STATUS = re.compile(rb"HTTP/\S+ +(\d{3})\b")
_OTHER = re.compile(rb"(?!GET )[A-Z]+ ")
_IDS = ("warc-record-id", "warc-concurrent-to")


def _read(path, as_of):
    return batches(_rows(path), "fetches")


def _rows(path):
    """Rows of the records of fetches, and of what is damaged among them."""
    waiting, others = deque(), set()
    with open(path, "rb") as file:
        records = _members(file) if is_packed(path) else _records(file)
        for number, (head, http) in enumerate(records, 1):
            ids = {value for name, value in head if name in _IDS}
            head = dict(head)
            kind = head.get("warc-type")
            if kind == "request" and _OTHER.match(http):
                others |= ids
            elif kind in ("response", "revisit"):
                waiting.append((ids, {"row": number} | _fetch(head, http)))
            elif kind == "damaged":
                given = f"{path.name}, record {number}: {head['given']}"
                waiting.append((ids, head | {"row": number, "given": given}))
            if len(waiting) > _APART:
                yield _judged(*waiting.popleft(), others)
    for ids, row in waiting:
        yield _judged(ids, row, others)


def _judged(ids, row, others):
    """The row of a record, with the reason if its request was no GET."""
    return row | {"reason": OTHER_METHOD} if ids & others else row


def _members(file):
    """Records of a gzip file, without those of members that are not sound."""
    start = 0
    while start is not None:
        held, damage = [], None
        try:
            for place, stream in members(file, start):
                start = place
                yield from held  # the member before this one has been checked
                held = []
                for record in _records(stream):
                    held.append(record)
        except zlib.error as error:
            held, damage = [], error
        except EOFError as error:  # what is whole before the end is used
            damage = error
        yield from held
        start = _next_member(file, start) if damage else None
        if damage:
            yield _damaged(damage, start is None)


def _next_member(file, start):
    """Where the next gzip member begins that begins with a record, or None."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        while (start := data.find(b"\x1f\x8b\x08", start + 1)) >= 0:
            with contextlib.suppress(zlib.error):
                inflate = zlib.decompressobj(wbits=31)
                if inflate.decompress(data[start : start + _BLOCK], 5) == b"WARC/":
                    return start
    return None


def _damaged(why, last):
    """What stands for a record that cannot be read."""
    reason = LOST if last else "damaged records"
    return [("warc-type", "damaged"), ("reason", reason), ("given", str(why))], b""


def _records(stream):
    """Head of each record, and the head of HTTP in it.

    Behind a record that is shorter or longer than it says, reading goes on with the
    next line that begins one; in a plain file, with the next after its head.
    """
    body, line = 0, stream.readline(_BLOCK)
    while line:
        damage = None
        if line.startswith(b"WARC/"):
            head = _lines(stream)
            body = stream.tell() if stream.seekable() else 0
            length = dict(head).get("content-length", "")
            n_bytes = int(length) if length.isdecimal() else 0
            http = stream.read(min(n_bytes, _BLOCK))
            if length and _skip(stream, n_bytes - len(http)):
                yield head, http
            else:
                damage = "it is not whole"
        elif line.strip():
            damage = "it does not begin behind the one before"
        if damage and stream.seekable():
            stream.seek(body)
        line = stream.readline(_BLOCK)
        while damage and line and not line.startswith(b"WARC/"):
            line = stream.readline(_BLOCK)
        if damage:
            yield _damaged(damage, stream.seekable() and not line)


def _lines(stream):
    """Names, in small letters, and values of the lines before an empty one."""
    found = []
    while line := stream.readline(_BLOCK).decode("utf-8", "replace").strip():
        name, _, value = line.partition(":")
        found.append((name.lower().strip(), value.strip()))
    return found


def _skip(stream, n_bytes):
    """Go on by a number of bytes; whether there are as many."""
    if stream.seekable():
        return stream.seek(n_bytes, os.SEEK_CUR) <= os.fstat(stream.fileno()).st_size
    while n_bytes and (block := stream.read(min(n_bytes, _BLOCK))):
        n_bytes -= len(block)
    return n_bytes == 0


def _fetch(head, http):
    """What one record tells of a fetch."""
    lines = io.BytesIO(http)
    found = _STATUS.match(lines.readline())
    status, answer = int(found[1]) if found else None, dict(_lines(lines))
    revisit = head["warc-type"] == "revisit"
    url, date = head.get("warc-target-uri", "").strip("<>"), head.get("warc-date", "")
    digest = head.get("warc-payload-digest")
    value = (digest or "").rpartition(":")[2].upper().rstrip("=")
    # whatever its profile, a revisit with a digest is compared like others, and one
    # without is an answer that nothing changed
    profile = head.get("warc-profile", "")
    same = status == 304 or (
        revisit and ("server-not-modified" in profile or not value or value in EMPTY)
    )
    reason = None
    if not url.lower().startswith(("http://", "https://")):
        reason = "that are no web page (dns:, whois:)"
    elif not revisit and status is None:
        reason = "without the answer of a web server"
    return {
        "url": url,
        "given": f"{date} {url}",
        "time": date,
        "status": status,
        # a digest of the body of a 304 is that of no body
        "digest": digest if not same else None,
        "etag": answer.get("etag"),
        "last_modified": answer.get("last-modified"),
        "same": same or None,
        "reason": reason,
    }


FORMATS = (
    Format(
        "warc",
        "a WARC file",
        "fetches",
        lambda head, path: head.startswith(b"WARC/"),
        read=_read,
        checks_itself=True,
    ),
)
