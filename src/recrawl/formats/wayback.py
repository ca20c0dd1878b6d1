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

_LINE = r"^\S+ \d{14} \S+ \S+ (\d{3}|-) \S+ (\d+|-)\s*$"

# A list that goes on ends in an empty row and the key to resume it.
_TEXT = captures.query(r"""
    select
        row,
        given,
        f[3] as address,
        f[2] as stamp,
        f[5] as status_text,
        f[6] as digest_text
    from (
        select
            n as row,
            line as given,
            case when len(string_split(line, ' ')) = 7
                then string_split(line, ' ') end as f
        from lines($file)
        where line <> '' and not regexp_matches(line, '^\S+\+[0-9]{14}%21$')
    )
""")

# The server writes one inner array a line.
_INNER = r"^\s*\[?\s*(\[.*?\])\s*[,\]]?\s*$"
_JSON = captures.query(rf"""
    with arrays as (
        select
            n as row,
            line as given,
            try(regexp_extract(line, '{_INNER}', 1)::json::varchar[]) as f
        from lines($file)
        where line <> ''
    ),

    names as (
        select try(regexp_extract(line, '{_INNER}', 1)::json::varchar[]) as l
        from lines($file)
        limit 1
    )

    select
        row,
        given,
        case when len(f) = len(l) then f[list_position(l, 'original')] end as address,
        case when len(f) = len(l) then f[list_position(l, 'timestamp')] end as stamp,
        f[list_position(l, 'statuscode')] as status_text,
        f[list_position(l, 'digest')] as digest_text
    from arrays
    cross join names
    -- without the names, and the empty row and the key where the list goes on
    where row > 1 and (f is null or len(f) > 1)
""")


def _is_text(head, path):
    """Whether the first line has the seven fields of a capture."""
    return bool(re.match(_LINE.encode(), head.partition(b"\n")[0]))


FORMATS = (
    Format(
        name="wayback",
        what="an answer of the Wayback CDX server in text",
        kind="fetches",
        recognises=_is_text,
        query=_TEXT,
    ),
    Format(
        name="wayback",
        what="an answer of the Wayback CDX server in JSON",
        kind="fetches",
        recognises=lambda head, path: bool(re.match(rb'\s*\[\s*\[\s*"', head)),
        query=_JSON,
    ),
)
