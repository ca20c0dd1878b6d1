"""Status documents of StormCrawler, exported from OpenSearch: one row a page.

Export the index ``status``, one hit a line, with ``helpers.scan(client,
index="status")`` of opensearch-py, or with elasticdump. By default none of the
dates is stored: add ``lastProcessedDate``, ``fetch.statusCode``,
``signatureChangeDate``, ``signature`` and ``fetchInterval`` to
``metadata.persist``, with ``AdaptiveScheduler`` and ``MD5SignatureParseFilter``.

Without lastProcessedDate the last fetch is nextFetchDate minus the interval:
fetchInterval, which is in minutes, else StormCrawler's defaults of a day, and of
two hours after an error. signatureChangeDate is the fetch that saw the last
change. Whenever a fetch fails it is removed, and the second fetch after that, as
the second one of a new page, sets it whether or not it sees a change: the rates
of pages that fail often come out high.
One document holds no change with its interval: export again from time to time,
and read all the exports.
"""

from recrawl.log.database import quoted
from recrawl.log.formats.base import Format
from recrawl.log.formats.pieces import NEVER, fields, first_object
from recrawl.log.tally import FAILED

__all__ = ["FORMATS"]

_FIELDS = fields(
    "$._source.url",
    "$._source.status",
    "$._source.nextFetchDate",
    metadata="$._source.metadata",
    keys=(
        "lastprocesseddate",
        "signaturechangedate",
        "fetchinterval",
        "fetch%2estatuscode",
    ),
)
# The status of an older fetch stays where the last one met no answer.
_QUERY = f"""
with fields as ({_FIELDS}),

read as (
    select
        row,
        given,
        f[1] as url,
        f[2] as name,
        time_of(f[3]) as next_fetch,
        m as text,
        sound(time_of(text[1])) as processed,
        sound(time_of(text[2])) as changed,
        case
            when name = 'FETCH_ERROR' then 120
            when text[3] is null then 1440
            else try_cast(text[3] as bigint)
        end as minutes,
        try_cast(text[4] as integer) as code
    from fields
)

select
    row,
    given,
    url,
    case
        when name = 'DISCOVERED' then null
        when text[1] is null then next_fetch - to_minutes(minutes)
        else processed
    end as last_fetch,
    changed as last_change,
    case
        when name = 'FETCHED' then code
        when code not between 200 and 299 and code <> 304 then code
        when name = 'REDIRECTION' then 302
        when name = 'ERROR' then 404  -- never fetched again
    end as status,
    case
        when url is null then 'that are no status documents of StormCrawler'
        when name = 'DISCOVERED' then {quoted(NEVER)}
        when name is null or name not in
                ('FETCHED', 'REDIRECTION', 'FETCH_ERROR', 'ERROR')
            then 'whose status is unknown'
        when last_fetch is null and text[1] is not null
            then 'whose lastProcessedDate cannot be read'
        when last_fetch is null
            then 'without lastProcessedDate, and nextFetchDate with its interval'
        when name = 'FETCH_ERROR' and status is null then {quoted(FAILED)}
        when name = 'FETCHED' and last_change is null and text[2] is not null
            then 'whose signatureChangeDate cannot be read'
        when name = 'FETCHED' and last_change is null
            then 'fetched once, or without signatureChangeDate in metadata.persist'
    end as reason
from read
"""


def _recognises(head, path):
    """Whether the first hit is a status document."""
    source = first_object(head).get("_source")
    return isinstance(source, dict) and {"url", "status", "metadata"} <= source.keys()


FORMATS = (
    Format(
        "storm",
        "an export of StormCrawler's status index",
        "states",
        _recognises,
        _QUERY,
    ),
)
