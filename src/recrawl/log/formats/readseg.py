r"""Dumps of the segments of Apache Nutch 1.x: every fetch.

``NUTCH_OPTS=-Duser.timezone=UTC bin/nutch readseg -dump crawl/segments/NAME OUT
-nocontent -nogenerate -noparsedata -noparsetext`` writes OUT/dump, once for
each segment. This is the complete log of Nutch, and better than dumps of the
CrawlDb. A record holds several datums in any order: that of the fetch, that of
the signature, which was made when the page was parsed, and one for each link to
the page. The signature is an MD5 of the bytes or of the text, as configured;
nothing tells which.
"""

from recrawl.log.database import quoted
from recrawl.log.formats.base import Format
from recrawl.log.formats.captures import CUT, CUT_PREFIX
from recrawl.log.formats.nutch import ZONE, failed_without_status, status
from recrawl.log.formats.pieces import NEVER

__all__ = ["FORMATS"]

_QUERY = rf"""
with parts as (
    select
        n,
        line,
        sum((line like 'Recno:: %')::integer) over so_far as record,
        sum((
            line in ('CrawlDatum::', 'Content::', 'ParseData::', 'ParseText::')
        )::integer) over so_far as datum
    from lines(getvariable('file'))
    where line <> ''
    -- a count with a filter in place of the sum would take quadratic time
    window so_far as (order by n rows unbounded preceding)
),

datums as (
    select
        record,
        datum,
        min(n) as n,
        min(line) filter (line like 'Recno:: %') as head,
        max(line[7:]) filter (line like 'URL:: %') as url,
        max(regexp_extract(line, '^Status: [0-9]+ \((.*)\)$', 1))
            filter (line like 'Status: %') as name,
        max(line[13:]) filter (line like 'Fetch time: %') as fetch_time,
        max(nullif(line[12:], 'null'))
            filter (line like 'Signature: %') as signature,
        max(try_cast(regexp_extract(
            line, '^\s+nutch\.protocol\.code=([0-9]+)', 1
        ) as integer)) as code,
        max(regexp_extract(line, 'http\.content\.truncated\.reason=(\w+)', 1))
            filter (line ilike 'metadata: %http.content.truncated=true%') as cut
    from parts
    group by record, datum
),

records as (
    select
        min(n) as row,
        concat_ws(' ', max(head), max(url)) as given,
        max(url) as url,
        max(name) filter (starts_with(name, 'fetch_')) as name,
        max(fetch_time) filter (starts_with(name, 'fetch_')) as fetch_time,
        max(code) filter (starts_with(name, 'fetch_')) as code,
        max(signature)
            filter (name in ('signature', 'fetch_success')) as signature,
        max(lower(cut)) as cut
    from datums
    group by record
)

select
    row,
    given,
    url,
    time_of(fetch_time) as time,
    {status("name", "code")} as status,
    case when cut is not null then {quoted(CUT_PREFIX)} else '' end
        || 'md5:' || signature as digest,
    null::varchar as etag,
    null::timestamptz as last_modified,
    nullif(name = 'fetch_notmodified', false) as same,
    case
        when url is null then 'that are no records of a segment of Nutch'
        when name is null then {quoted(NEVER)}
        when time is null then {quoted(ZONE)}
        when cut <> 'length' then {quoted(CUT)}
        else {failed_without_status("name", "status")}
    end as reason
from records
"""

FORMATS = (
    Format(
        "readseg",
        "a dump of a segment of Nutch",
        "fetches",
        lambda head, path: head.lstrip().startswith(b"Recno:: "),
        _QUERY,
    ),
)
