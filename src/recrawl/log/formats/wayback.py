r"""Answers of the Wayback CDX server: one line a capture.

``https://web.archive.org/cdx/search/cdx?url=example.org/&output=json`` gives one
array of arrays, whose first one has the names, broken into lines or not; without
``output=json`` lines of seven fields come without names, and so other fields
(``fl=``) are read from JSON only.

Never use ``collapse=digest``, ``filter=statuscode:200`` or
``filter=mimetype:text/html``: the unchanged captures (warc/revisit) are then
gone, every capture seems a change, and nothing in the file shows it. Captures
are not planned visits either: people save pages when they change, so that rates
come out high. Hosts are taken in lower case and without the ports :80 and :443,
so that captures of one page stay together.
"""

import json
import re

from recrawl.log.formats import captures
from recrawl.log.formats.base import Format, unpacked
from recrawl.log.formats.records import LONGEST

__all__ = ["FORMATS"]

_BLOCK = 1 << 18  # bytes that are read at a time
# An array of texts, not one of arrays. Nothing in it is looked at twice (*+). One that
# begins inside of a text of another takes for outside what that takes for texts, and
# neither goes on behind a bracket or a backslash outside: no third one overlaps them.
_ARRAY = re.compile(rb'\[[^\[\]"\\]*+(?:"(?:[^"\\]|\\.)*+"[^\[\]"\\]*+)*+\]', re.DOTALL)
# A list of arrays, an array of names, or an answer without captures.
_BEGINS = re.compile(
    rb'(?i)(\xef\xbb\xbf)?\s*\[\s*(\[\s*"|[^]]*"timestamp"|(\[\s*\]\s*)?\]\s*$)'
)
_BETWEEN = b"[], \t\r\n\xef\xbb\xbf"
_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest",
           "method", "truncated", "status", "status_code")  # fmt: skip


def _captures(path, as_of):
    """Row, text and fields of each array but those of the names."""
    names = None
    some = (text for text in _arrays(path) if text.strip(_BETWEEN))
    for row, text in enumerate(some, 1):
        texts = _texts(text)
        # without the names, and the empty row and the key where the list goes on
        if texts is not None and len(texts) < 2:
            continue
        # of answers that were joined, each has its names
        lower = [*map(str.lower, texts or ())]
        if texts and (names is None or "timestamp" in lower):
            names = lower
            continue
        fields = None
        if texts is not None and len(texts) == len(names):
            named = dict(zip(names, texts, strict=True))
            fields = [named.get(name) for name in _FIELDS]
        yield {"row": row, "given": text.decode("utf-8", "replace"), "f": fields}


def _texts(array):
    """The texts of an array in JSON, or None."""
    try:
        return ["" if text is None else str(text) for text in json.loads(array)]
    except (ValueError, RecursionError):
        return None


def _arrays(path):
    """Each array of texts, and what stands between two of them."""
    rest = b""
    with unpacked(path) as file:
        while block := file.read(_BLOCK):
            rest, end = rest + block, 0
            for found in _ARRAY.finditer(rest):
                yield from (rest[end : found.start()], found[0])
                end = found.end()
            rest = rest[end:]
            if len(rest) > LONGEST:
                yield rest
                rest = b""
    yield rest


FORMATS = (
    Format(
        "wayback",
        "an answer of the Wayback CDX server in text",
        "fetches",
        lambda head, path: captures.n_fields(head) == 7,
        captures.PLAIN,
    ),
    Format(
        "wayback",
        "an answer of the Wayback CDX server in JSON",
        "fetches",
        lambda head, path: bool(_BEGINS.match(head)),
        captures.query("from records"),
        _captures,
    ),
)
