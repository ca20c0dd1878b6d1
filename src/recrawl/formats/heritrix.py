r"""Logs of Heritrix 3, crawl.log: one line a fetch.

The crawler writes ``logs/crawl.log`` of a job by itself, rotated as
crawl.log.cp00001-... and perhaps gzipped. A job fetches a URL once, so that
changes need the logs of several jobs, or of one with
``rescheduleDelaySeconds``: put them into a folder. Digests of chunked answers
depend on the chunks where the job uses HTTP/1.1 (up to 3.9.0 at least): pages
that seem to change always may not. A 304 has the digest of an empty body, which
is not read; ``duplicate:digest`` may mean another page, and is not read either.
"""

import re

from recrawl.formats.base import Format

__all__ = ["FORMATS"]

_LINE = r"^\d{4}-\d\d-\d\dT[\d:.]+Z\s+-?\d+\s+(\d+|-)\s"

# Runs of spaces part the fields. The ninth begins with the time of the fetch,
# if there was one; the first has the time at which the line was written.
_QUERY = rf"""
with fields as (
    select
        n as row,
        line as given,
        string_split_regex(trim(line), '\s+') as f,
        regexp_matches(line, '{_LINE}') and len(f) >= 12 as whole
    from lines($file)
    where line <> ''
)

select
    row,
    given,
    case when whole then f[4] end as url,
    case when whole then coalesce(
        try_strptime(
            regexp_extract(f[9], '^[0-9]{{17}}'), '%Y%m%d%H%M%S%g'
        )::timestamptz,
        try_cast(f[1] as timestamptz)
    ) end as time,
    case when whole then try_cast(f[2] as integer) end as status,
    case when whole and status <> 304 then nullif(f[10], '-') end as digest,
    null::varchar as etag,
    null::timestamptz as last_modified,
    case when whole then nullif(
        status = 304 or contains(f[12], 'duplicate:server-not-modified'), false
    ) end as same,
    case
        when not whole then 'that are no lines of a crawl.log'
        when not regexp_matches(url, '^(?i)https?://')
            then 'that are no web page (dns:, whois:)'
    end as reason
from fields
"""

FORMATS = (
    Format(
        name="heritrix",
        what="a crawl.log of Heritrix 3",
        kind="fetches",
        recognises=lambda head, path: bool(re.match(_LINE.encode(), head)),
        query=_QUERY,
    ),
)
