"""WARC, the files of web archives: one record a fetch, .warc or .warc.gz.

Heritrix, wget (``--warc-file``), Browsertrix and others write them. Read are the
records response and revisit: time, status, digest, ETag and Last-Modified; no
body is read. Needs FastWARC. Of a file that is truncated or damaged, the records
before the damage are used.

Pitfalls: a revisit with an identical digest refers to any earlier record with
that content, so its digest is compared like any other; only "not modified by the
server" is "unchanged". Some programs digest chunked bodies as they were sent, so
that the same page may differ at each fetch. Captures that people asked for
follow the changes of a page, and make its rate look higher.
"""

import contextlib
import gzip
import re
import zlib
from collections import deque

from recrawl.formats.base import Format, is_packed
from recrawl.formats.captures import EMPTY, OTHER_METHOD
from recrawl.formats.checking import sound_members
from recrawl.formats.records import LOST, batches, needed

__all__ = ["FORMATS"]

_ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 20  # bytes that are read at a time
_APART = 1000  # records between a request and its answer, at most
_OTHER = re.compile(r"(?!GET )[A-Z]+ ")


def _read(path, as_of):
    with open(path, "rb") as file:
        if file.read(4) == _ZSTD:
            raise ValueError(
                f"{path} must be a plain or a gzipped WARC file, got one packed by "
                f"zstd: unpack it with `zstd -d {path.name}`"
            )
    return batches(_rows(path), "fetches")


def _rows(path):
    """Rows of the records of fetches, and of what is missing among them."""
    waiting, others = deque(), set()
    for ids, record in _records(path):
        if record is None:  # a request of another method
            others |= ids
        else:
            waiting.append((ids, record))
        if len(waiting) > _APART:
            yield _judged(*waiting.popleft(), others)
    for ids, record in waiting:
        yield _judged(ids, record, others)


def _judged(ids, row, others):
    """The row of a record, with the reason if its request was no GET."""
    return row | {"reason": OTHER_METHOD} if ids & others else row


def _records(path):
    """Of each fetch its identifiers and its row, of other requests none.

    One that cannot be read, or is shorter or longer than it says, does not end the
    reading: it goes on with the next one that begins as a record does.
    """
    warc = needed("fastwarc.warc", path)
    kinds = warc.WarcRecordType
    start, row = 0, 0
    while start is not None:
        last, held, damage = start, [], None
        with open(path, "rb") as file:
            file.seek(start)
            try:
                for record in warc.ArchiveIterator(file, parse_http=True):
                    # FastWARC checks a gzip member when it goes on to the next one
                    yield from held
                    last, held, row = record.stream_pos, [], row + 1
                    ids = _ids(record)
                    if record.record_type in (kinds.response, kinds.revisit):
                        revisit = record.record_type == kinds.revisit
                        held = [(ids, _fetch(record, revisit) | {"row": row})]
                    elif record.record_type == kinds.request:
                        http = record.http_headers
                        if http and _OTHER.match(http.status_line or ""):
                            held = [(ids, None)]
            except (OSError, ValueError) as error:
                damage = str(error)
        if not is_packed(path) or sound_members(path, last):
            yield from held
        start = None
        if damage := damage or _end(path, last):
            start = _next_record(path, last + 1)
            given = f"{path.name}, behind byte {last}: {damage}"
            reason = LOST if start is None else "damaged records"
            yield set(), {"row": row + 1, "given": given, "reason": reason}


def _ids(record):
    """Identifiers of a record and of those that were written with it."""
    names = ("warc-record-id", "warc-concurrent-to")
    return {value for name, value in record.headers if name.lower() in names}


def _next_record(path, position):
    """Where the next record begins, from a position on, or None."""
    packed = is_packed(path)
    mark = b"\x1f\x8b\x08" if packed else b"\nWARC/"
    with open(path, "rb") as file:
        while True:
            file.seek(position)
            block = file.read(_BLOCK)
            place = block.find(mark)
            if place < 0:
                if len(block) < _BLOCK:
                    return None
                position += len(block) - len(mark)
                continue
            position += place + (0 if packed else 1)
            file.seek(position)
            with contextlib.suppress(zlib.error):
                head = file.read(_BLOCK)
                head = (
                    zlib.decompressobj(wbits=31).decompress(head, 5) if packed else head
                )
                if head.startswith(b"WARC/"):
                    return position
            position += 1


def _fetch(record, revisit):
    """What one record tells of a fetch."""
    head, http = record.headers, record.http_headers
    answered = http is not None  # with no header at all, perhaps
    url = head.get("WARC-Target-URI", "").strip("<>")
    date, profile = head.get("WARC-Date", ""), head.get("WARC-Profile", "")
    status = http.status_code if answered else None
    digest = head.get("WARC-Payload-Digest")
    value = (digest or "").rpartition(":")[2].upper().rstrip("=")
    # whatever its profile, a revisit with a digest is compared like others, and one
    # without is an answer that nothing changed
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
        "etag": http.get("ETag") if answered else None,
        "last_modified": http.get("Last-Modified") if answered else None,
        "same": same or None,
        "reason": reason,
    }


def _end(path, position):
    """What is wrong from the record at a position on, or None.

    FastWARC takes the end of the file for the end of the record.
    """
    with open(path, "rb") as packed:
        packed.seek(position)
        gzipped = packed.read(2) == b"\x1f\x8b"
        packed.seek(position)
        file = gzip.GzipFile(fileobj=packed) if gzipped else packed
        try:
            while line := file.readline():
                if line.strip() and not _skip_record(file):
                    return "the last record is not whole"
        except (EOFError, OSError, ValueError, zlib.error) as error:
            return str(error)
    return None


def _skip_record(file):
    """Read a record whose first line has been read; whether it is whole."""
    missing = None
    while line := file.readline():
        if not line.strip():
            break
        if line.lower().startswith(b"content-length:"):
            missing = int(line.partition(b":")[2])
    while missing and (block := file.read(min(missing, _BLOCK))):
        missing -= len(block)
    return missing == 0 and line != b""


FORMATS = (
    Format(
        "warc",
        "a WARC file",
        "fetches",
        lambda head, path: (
            head.startswith(b"WARC/")
            or (head.startswith(_ZSTD) and ".warc" in path.name)
        ),
        read=_read,
        checks_members=True,
    ),
)
