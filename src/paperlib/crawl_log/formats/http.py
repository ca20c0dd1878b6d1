"""JSON Lines with one fetch a line, as a spider of Scrapy writes them.

The keys are the columns of our own tables: url, time, and what is known of
status, etag, last_modified and digest ("algorithm:value"); others are passed
over. `scrapy runspider spider.py -o fetched.jsonl` appends such lines; see
docs/scrapy_spider.py for one. The same as CSV is a table, see `tables`.

Pitfalls: a digest of raw bytes sees every advertisement, token and clock. Log the
fetches that failed too, with their status or with -1, and the answers 304.
"""

import json

from paperlib.crawl_log.formats.base import Format

__all__ = ["FORMATS"]

_KEYS = {"status", "etag", "last_modified", "digest"}


def _recognises(head, path):
    """Whether the first line is an object with our keys."""
    try:
        found = json.loads(head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0])
    except ValueError:
        return False
    return (
        isinstance(found, dict)
        and {"url", "time"} <= found.keys()
        and any(key in found for key in _KEYS)
    )


FORMATS = (
    Format(
        "http",
        "JSON Lines of fetches",
        "fetches",
        _recognises,
        query="""
with parsed as (
    select
        n,
        line,
        json_valid(line) as valid,
        case when json_valid(line) then from_json(line, '{
            "url": "varchar",
            "time": "varchar",
            "status": "varchar",
            "etag": "varchar",
            "last_modified": "varchar",
            "digest": "varchar"
        }') end as found
    from lines($file)
    where trim(line) <> ''
)

select
    n as row,
    line as given,
    found.url as url,
    make_timestamptz(parse_time(found.time)) as time,
    try_cast(found.status as integer) as status,
    -- digests of one page are compared if they are of one algorithm
    case
        when found.digest like '%:%' then found.digest
        when found.digest <> '' then 'digest:' || found.digest
    end as digest,
    nullif(found.etag, '') as etag,
    make_timestamptz(parse_time(found.last_modified)) as last_modified,
    null::boolean as same,
    case
        when not valid then 'that are no JSON'
        when found.status is not null and status is null
            then 'whose status is not a number'
    end as reason
from parsed
""",
    ),
)
