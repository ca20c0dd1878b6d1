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

import gzip
import zlib

from recrawl.formats.base import Format, is_packed
from recrawl.formats.checking import sound_members
from recrawl.formats.records import LOST, batches, http_date, w3c

__all__ = ["FORMATS"]

_ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 20  # bytes of the last record that are read at a time


def _read(path, as_of):
    with open(path, "rb") as file:
        if file.read(4) == _ZSTD:
            raise ValueError(
                f"{path} must be a plain or a gzipped WARC file, got one packed by "
                f"zstd: unpack it with `zstd -d {path.name}`"
            )
    return batches(_rows(path), "fetches")


def _rows(path):
    """Rows of the records of fetches, and of what is missing behind them."""
    try:
        from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{path} is a WARC file, which needs the package fastwarc: "
            "pip install 'paperlib-crawl[log]'",
            name="fastwarc",
        ) from None
    fetches = (WarcRecordType.response, WarcRecordType.revisit)
    row, last, held, damage = 0, 0, [], None
    with open(path, "rb") as file:
        try:
            for row, record in enumerate(ArchiveIterator(file, parse_http=True), 1):
                # FastWARC checks a gzip member when it goes on to the next one
                yield from held
                last, held = record.stream_pos, []
                if record.record_type in fetches:
                    held = [_fetch(record) | {"row": row}]
        except OSError as error:
            damage = str(error)
    if not is_packed(path) or sound_members(path, last):
        yield from held
    damage = damage or _end(path, last)
    if damage:
        given = f"{path.name}, behind byte {last}: {damage}"
        yield {"row": row + 1, "given": given, "reason": LOST}


def _fetch(record):
    """What one record tells of a fetch."""
    head, http = record.headers, record.http_headers
    answered = http is not None  # with no header at all, perhaps
    url = head.get("WARC-Target-URI", "").strip("<>")
    date, profile = head.get("WARC-Date", ""), head.get("WARC-Profile", "")
    profile = profile.rpartition("/")[2]
    status = http.status_code if answered else None
    same = profile == "server-not-modified" or status == 304
    digest = head.get("WARC-Payload-Digest")
    reason = None
    if not url.lower().startswith(("http://", "https://")):
        reason = "that are no web page (dns:, whois:)"
    elif profile not in ("", "server-not-modified", "identical-payload-digest"):
        reason = "revisits of an unknown profile"
    elif not profile and status is None:
        reason = "without the answer of a web server"
    return {
        "url": url,
        "given": f"{date} {url}",
        "time": (w3c(date) or [None])[0],
        "status": status,
        # a digest of the body of a 304 is that of no body
        "digest": digest if not same else None,
        "etag": http.get("ETag") if answered else None,
        "last_modified": http_date(http.get("Last-Modified")) if answered else None,
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
        except (EOFError, OSError, zlib.error) as error:
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
