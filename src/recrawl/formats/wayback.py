r"""Answers of the Wayback CDX server: one line a capture.

``https://web.archive.org/cdx/search/cdx?url=example.org/&output=json`` gives one
array of arrays, whose first one has the names; without ``output=json`` lines of
seven fields come without names, and so other fields (``fl=``) are read from
JSON only.

Never use ``collapse=digest``, ``filter=statuscode:200`` or
``filter=mimetype:text/html``: the unchanged captures (warc/revisit) are then
gone, every capture seems a change, and nothing in the file shows it. Captures
are not planned visits either: people save pages when they change, so that rates
come out high. Hosts are taken in lower case and without the ports :80 and :443,
so that captures of one page stay together.
"""

import re

from recrawl.formats import captures
from recrawl.formats.base import Format

__all__ = ["FORMATS"]

# The server writes one inner array a line.
_INNER = r"^\s*\[?\s*(\[.*?\])\s*[,\]]?\s*$"
_JSON = captures.query(rf"""
    with arrays as (
        select
            n as row,
            line as given,
            try(regexp_extract(line, '{_INNER}', 1)::json::varchar[]) as texts,
            first(list_transform(texts, lambda name: lower(name))) over (order by n)
                as l
        from lines()
        where line <> ''
    )

    select
        row,
        given,
        case when len(texts) = len(l) then list_transform(
            ['urlkey', 'timestamp', 'original', 'mimetype', 'statuscode', 'digest'],
            lambda name: texts[list_position(l, name)]
        ) end as f
    from arrays
    -- without the names, and the empty row and the key where the list goes on
    where row > 1 and (texts is null or len(texts) > 1)
""")


def _is_text(head, path):
    """Whether the first line has the seven fields of a capture."""
    line = head.partition(b"\n")[0]
    return bool(re.match(captures.BARE.encode(), line)) and line.count(b" ") == 6


FORMATS = (
    Format(
        "wayback",
        "an answer of the Wayback CDX server in text",
        "fetches",
        _is_text,
        captures.PLAIN,
    ),
    Format(
        "wayback",
        "an answer of the Wayback CDX server in JSON",
        "fetches",
        lambda head, path: bool(
            re.match(rb'\s*\[\s*(\[\s*"|(\[\s*\]\s*)?\]\s*$)', head)
        ),
        _JSON,
    ),
)
