r"""CDXJ files, indices of WARC files with JSON: one line a capture.

pywb (``wb-manager``) and cdxj-indexer write them: a key, a time of 14 digits, a
JSON object. Hosts are taken in lower case and without the ports :80 and :443, so
that captures of one page stay together. Captures are not planned visits: people
save pages when they change, so that rates come out high.
"""

import re

from recrawl.log.formats import captures
from recrawl.log.formats.base import Format

__all__ = ["FORMATS"]

# Lines with an exclamation mark are about the file.
_QUERY = captures.query(rf"""
    select
        n as row,
        line as given,
        regexp_extract(
            line, '^(\S+) (\d{{14}}(?:\d{{3}})?) (\{{.*)$', ['key', 'stamp', 'object']
        ) as part,
        try(json_extract_string(
            nullif(part['object'], ''), [{captures.IN_JSON}]
        )) as j,
        case when j is not null then [part['key'], part['stamp']] || j end as f
    from lines(getvariable('file'))
    where line <> '' and line not like '!%'
""")

FORMATS = (
    Format(
        "cdxj",
        "a CDXJ file",
        "fetches",
        lambda head, path: bool(
            re.match(rb"(![^\n]*\n)*[^\s!]\S* \d{14}(\d{3})? \{", head)
        ),
        _QUERY,
    ),
)
