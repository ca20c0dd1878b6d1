"""Dumps of URLFrontier 2.x: one row a page.

``java -jar urlfrontier-client-2.6.jar DumpURLs -o frontier.jsonl`` writes one
item a line. The frontier stores no last fetch: only a crawler's own metadata
tell it. They are read as StormCrawler writes them, if ``metadata.persist`` has
``lastProcessedDate``, ``signatureChangeDate`` and ``fetch.statusCode``.
One dump holds no change with its interval: dump again from time to time, and
read all the dumps.
"""

from recrawl.log.database import quoted
from recrawl.log.formats.base import Format
from recrawl.log.formats.pieces import NEVER, fields, first_object

__all__ = ["FORMATS"]

_FIELDS = fields(
    "$.known.info.url",
    "$.discovered.info.url",
    metadata="$.known.info.metadata",
    keys=("lastprocesseddate", "signaturechangedate", "fetch.statuscode"),
)
_QUERY = f"""
with fields as ({_FIELDS}),

read as (
    select
        row,
        given,
        coalesce(f[1], f[2]) as url,
        f[1] is null as discovered,
        m as text,
        sound(time_of(text[1])) as last_fetch,
        sound(time_of(text[2])) as last_change,
        try_cast(text[3] as integer) as status,
    from fields
)

select
    row,
    given,
    url,
    last_fetch,
    last_change,
    status,
    case
        when url is null then 'that are no items of URLFrontier'
        when discovered then {quoted(NEVER)}
        when last_fetch is null and text[1] is not null
            then 'whose lastProcessedDate cannot be read'
        when last_fetch is null
            then 'without lastProcessedDate in metadata.persist'
        when last_change is null and text[2] is not null
            then 'whose signatureChangeDate cannot be read'
        when last_change is null
                and coalesce(status between 200 and 299 or status = 304, true)
            then 'fetched once, or without signatureChangeDate in metadata.persist'
    end as reason
from read
"""


def _recognises(head, path):
    """Whether the first line is an item of the frontier."""
    item = first_object(head)
    state = item.get("known", item.get("discovered"))
    return isinstance(state, dict) and "url" in (state.get("info") or ())


FORMATS = (
    Format(
        "frontier",
        "a dump of URLFrontier",
        "states",
        _recognises,
        _QUERY,
    ),
)
