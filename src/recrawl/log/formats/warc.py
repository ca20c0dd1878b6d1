"""WARC, the files of web archives: one record a fetch, .warc or .warc.gz.

Heritrix, wget (``--warc-file``), Browsertrix and others write them. Read are the
records response and revisit: time, status, digest, ETag and Last-Modified; no
body is read. Of a file that is truncated or damaged, all records are used that
are not.

A body that was cut off (WARC-Truncated) has no digest of the page, and is left
out; one that was cut at a length is compared with others that were.

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
from itertools import islice

from recrawl.log.formats import captures
from recrawl.log.formats.base import Format, is_packed, members
from recrawl.log.formats.records import LOST

__all__ = ["FORMATS"]

_BLOCK = 1 << 16  # bytes that are read at a time
_LONGEST_HEAD = 1 << 16  # bytes of the head of a record, and of that of HTTP in it
_LENGTH = re.compile(r"\d{1,12}")  # of a record: below a terabyte
_ENOUGH = 2000  # packed bytes that hold the first of a record
_APART = 1000  # records between a request and its answer, at most
_MOST_IDS = 10 * _APART  # of requests other than GET
_HELD = 100  # records of a gzip member that is not checked yet
_STATUS = re.compile(rb"HTTP/\S+ +(\d{3})\b")
_OTHER = re.compile(rb"(?!GET )[A-Z]+ ")
_IDS = ("warc-record-id", "warc-concurrent-to")
# What a capture has, in the order of `captures`; names of the lines are from the
# head of the record, except ETag and Last-Modified.
_FIELDS = ("", "warc-date", "warc-target-uri", "warc-type", "status",
           "warc-payload-digest", "method", "warc-truncated", "", "",
           "etag", "last-modified", "warc-profile", "damage")  # fmt: skip


def _captures(path, as_of):
    """Captures of the records of fetches, and what is damaged among them."""
    waiting, others = deque(), {}
    with open(path, "rb") as file:
        records = _members(file) if is_packed(path) else _records(file)
        for number, (head, http) in enumerate(records, 1):
            kind = head.get("warc-type")
            if kind == "request" and _OTHER.match(http):
                others |= dict.fromkeys(head["ids"])
                while len(others) > _MOST_IDS:
                    del others[next(iter(others))]
            elif kind in ("response", "revisit", "damaged"):
                waiting.append(_capture(number, head | _answer(http)))
            if len(waiting) > _APART:
                yield _judged(*waiting.popleft(), others)
    for each in waiting:
        yield _judged(*each, others)


def _capture(number, head):
    """What identifies a record, and its row."""
    given = head.get("why") or f"{head.get('warc-date')} {head.get('warc-target-uri')}"
    f = [head.get(name) for name in _FIELDS]
    return head["ids"], {"row": number, "given": given, "f": f}


def _judged(ids, row, others):
    """The row of a record, with a method if its request was no GET."""
    if ids & others.keys():
        row["f"][_FIELDS.index("method")] = "other"
    return row


def _answer(http):
    """What the head of HTTP tells of a fetch."""
    lines = io.BytesIO(http)
    found = _STATUS.match(lines.readline())
    answer = _lines(lines)
    return {
        "status": found[1].decode() if found else "no answer of a web server",
        "etag": answer.get("etag"),
        "last-modified": answer.get("last-modified"),
    }


def _members(file):
    """Records of a gzip file, without those of members that are not sound."""
    start = 0
    while start is not None:
        held, damage = [], None
        try:
            for place, stream in members(file, start):
                start, checked = place, False
                yield from held  # the member before this one has been checked
                held = []
                for record in _records(stream):
                    held.append(record)
                    if len(held) == _HELD and not checked:
                        _check(file.name, start)
                        checked = True
                    if checked:
                        yield from held
                        held = []
        except zlib.error as error:
            held, damage = [], error
        except EOFError as error:  # what is whole before the end is used
            damage = error
        yield from held
        start = _next_member(file, start) if damage else None
        if damage:
            yield _damaged(damage, start is None)


def _check(path, start):
    """Read a gzip member of many records, an error in which is raised, to its end."""
    with open(path, "rb") as file, contextlib.suppress(EOFError):
        list(islice(members(file, start), 2))


def _next_member(file, start):
    """Where the next gzip member begins that begins with a record, or None."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        while (start := data.find(b"\x1f\x8b\x08", start + 1)) >= 0:
            with contextlib.suppress(zlib.error):
                inflate = zlib.decompressobj(wbits=31)
                if inflate.decompress(data[start : start + _ENOUGH], 5) == b"WARC/":
                    return start
    return None


def _damaged(why, last):
    """What stands for a record that cannot be read."""
    damage = LOST if last else "damaged records"
    head = {"warc-type": "damaged", "ids": set(), "damage": damage, "why": str(why)}
    return head, b""


def _records(stream):
    """Head of each record, and the head of HTTP in it.

    Behind a record that is shorter or longer than it says, reading goes on with the
    next line that begins one; in a plain file, with the next after its head.
    """
    body, line = 0, stream.readline(_BLOCK)
    while line:
        damage = ""
        if line.startswith(b"WARC/"):
            head = _lines(stream)
            body = stream.tell() if stream.seekable() else 0
            length = head.get("content-length", "")
            if _LENGTH.fullmatch(length):
                http = stream.read(min(int(length), _LONGEST_HEAD))
                if _skip(stream, int(length) - len(http)):
                    yield head, http
                else:
                    damage = "it is not whole"
            else:
                damage = (
                    f"its head must have at most {_LONGEST_HEAD:,} bytes, and a number "
                    f"as its Content-Length, got {length!r}"
                )
        elif line.strip():
            damage = "it does not begin behind the one before"
        if damage and stream.seekable():
            stream.seek(body)
        line = _next_record(stream) if damage else stream.readline(_BLOCK)
        if damage:
            yield _damaged(damage, stream.seekable() and not line)


def _next_record(stream):
    """The next line that begins a record, or nothing.

    What precedes it is not read by lines, as they may be many.
    """
    last = b"\n"
    while block := stream.peek():
        place = (last + block).find(b"\nWARC/")
        if place >= 0:
            stream.read(place + len(b"\nWARC/") - len(last))
            return b"WARC/" + stream.readline(_BLOCK)
        last = (last + stream.read(len(block)))[-len(b"\nWARC") :]
    return b""


def _lines(stream):
    """Values of the lines before an empty one, by their names in small letters.

    Those that identify a record are a set, "ids". Nothing is kept of lines that are
    too long together.
    """
    found, ids, n_bytes = {}, set(), 0
    while line := stream.readline(_BLOCK).decode("utf-8", "replace").strip():
        n_bytes += len(line)
        if n_bytes > _LONGEST_HEAD:
            return {}
        name, _, value = line.partition(":")
        name = name.lower().strip()
        if name in _IDS:
            ids.add(hash(value.strip()))
        else:
            found[name] = value.strip()
    return found | {"ids": ids}


def _skip(stream, n_bytes):
    """Go on by a number of bytes; whether there are as many."""
    if stream.seekable() and n_bytes:
        stream.seek(n_bytes - 1, os.SEEK_CUR)
        n_bytes = 1
    while n_bytes and (block := stream.read(min(n_bytes, _BLOCK))):
        n_bytes -= len(block)
    return n_bytes == 0


FORMATS = (
    Format(
        "warc",
        "a WARC file",
        "fetches",
        lambda head, path: head.startswith(b"WARC/"),
        captures.query("from records", as_written=True),
        _captures,
        checks_itself=True,
    ),
)
