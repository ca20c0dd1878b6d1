r"""Logs of Heritrix 3, crawl.log: one line a fetch.

The crawler writes ``logs/crawl.log`` of a job by itself, rotated as
crawl.log.cp00001-... and perhaps gzipped. A job fetches a URL once, so that
changes need the logs of several jobs, or of one with
``rescheduleDelaySeconds``: put them into a folder. Digests of chunked answers
depend on the chunks where the job uses HTTP/1.1 (up to 3.9.0 at least): pages
that seem to change always may not. A 304 has the digest of an empty body, which
is not read; ``duplicate:digest`` may mean another page, and is not read either. A
body that was cut off (timeTrunc, headerTrunc, midFetchAbort) is left out; one that
was cut at a length (lenTrunc) is compared with others that were.
"""

import re

from recrawl.log.database import quoted
from recrawl.log.formats.base import Format
from recrawl.log.formats.captures import CUT, CUT_PREFIX, OTHER_METHOD

__all__ = ["FORMATS"]

_LINE = r"^\d{4}-\d\d-\d\dT[\d:.]+Z\s+-?\d+\s+(\d+|-)\s"

# Spaces part the fields. Those in the middle are recognised, not counted: a MIME type
# may be empty, or hold spaces. `began` is the time of the fetch, if there was one;
# the first field is the time at which the line was written. A digest is name:value.
_FIELDS = (
    r"^(\S+)\s+(-?\d+)\s+(?:\d+|-)\s+(\S+)\s+(?:(?:\S+\s+){3,6}?|(?:\S+\s+){2})"
    r"(?:#\d+|-)\s+(?:(\d{17})\S*|-)\s+([\w-]+:\S+|-)\s+\S+\s+(\S.*)$"
)
_NAMES = "'logged', 'status', 'url', 'began', 'digest', 'rest'"
_QUERY = rf"""
with fields as (
    select
        n as row,
        line as given,
        case when regexp_matches(line, '{_LINE}')
            then regexp_extract(trim(line), '{_FIELDS}', [{_NAMES}])
        end as f,
        nullif(f['url'], '') as url,
        split_part(f['rest'], ' ', 1) as notes
    from lines(getvariable('file'))
    where line <> ''
)

select
    row,
    given,
    url,
    coalesce(sound(time_of(f.began)), time_of(f.logged)) as time,
    try_cast(f.status as integer) as status,
    case when contains(notes, 'lenTrunc') then {quoted(CUT_PREFIX)} else '' end
        || case when status <> 304 then value_of(f.digest) end as digest,
    null::varchar as etag,
    null::timestamptz as last_modified,
    nullif(status = 304 or regexp_matches(
        f.rest, 'duplicate:server-not-modified|warcRevisit:notModified'
    ), false) as same,
    case
        when url is null then 'that are no lines of a crawl.log'
        when not regexp_matches(url, '^(?i)https?://')
            then 'that are no web page (dns:, whois:)'
        when regexp_extract(f.rest, '"method": ?"(\w+)"', 1) not in ('', 'GET')
            then {quoted(OTHER_METHOD)}
        when regexp_matches(notes, '(time|header)Trunc|midFetchAbort')
            then {quoted(CUT)}
    end as reason
from fields
"""

FORMATS = (
    Format(
        "heritrix",
        "a crawl.log of Heritrix 3",
        "fetches",
        lambda head, path: bool(re.match(_LINE.encode(), head)),
        _QUERY,
    ),
)
