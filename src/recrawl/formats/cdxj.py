r"""CDXJ files, indices of WARC files with JSON: one line a capture.

pywb (``wb-manager``) and cdxj-indexer write them: a key, a time of 14 digits, a
JSON object. Hosts are taken in lower case and without the ports :80 and :443, so
that captures of one page stay together. Captures are not planned visits: people
save pages when they change, so that rates come out high. The draft of CDXJ that
OpenWayback had in 2015, with times in ISO 8601, is recognised, and refused.
"""

import re

from recrawl.formats import captures
from recrawl.formats.base import Format
from recrawl.formats.pieces import refusal

__all__ = ["FORMATS"]

# Lines with an exclamation mark are about the file.
_QUERY = captures.query(r"""
    select
        n as row,
        line as given,
        regexp_extract(
            line, '^(\S+) (\d{14}(?:\d{3})?) (\{.*)$', ['key', 'stamp', 'object']
        ) as part,
        try(json_extract_string(nullif(part['object'], ''), [
            '$.url', '$.mime', '$.status', '$.digest', '$.method'
        ])) as j,
        case when j is not null then [part['key'], part['stamp']] || j end as f
    from lines($file)
    where line <> '' and line not like '!%'
""")

FORMATS = (
    Format(
        "cdxj",
        "a CDXJ file",
        "fetches",
        lambda head, path: bool(
            re.match(rb"(!(?!OpenWayback)[^\n]*\n)*[^\s!]\S* \d{14}(\d{3})? \{", head)
        ),
        _QUERY,
    ),
    Format(
        "cdxj",
        "a file of OpenWayback's draft of CDXJ",
        "fetches",
        lambda head, path: bool(
            re.match(rb"!OpenWayback-CDXJ|\(\S+ \d{4}-\d\d-\d\dT\S+ \w+ \{", head)
        ),
        read=refusal(
            "must be CDXJ with times of 14 digits, got OpenWayback's draft of 2015: "
            "index the WARC files again, with cdxj-indexer"
        ),
    ),
)
