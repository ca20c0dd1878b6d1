r"""Captures of Common Crawl: JSON lines of its index, or its Parquet table.

``curl 'https://index.commoncrawl.org/CC-MAIN-2026-40-index?url=example.org/*&\
output=json'`` gives the captures of one crawl, one a line; ask for each crawl and
put the answers into a folder. pywb answers in the same way. Of the Parquet table
(``cc-index/table/cc-main/warc``) keep url, fetch_time, fetch_status, content_digest
and content_truncated; ``subset=crawldiagnostics`` has the 304s and the failed
fetches. Hosts are taken in lower case and without the ports :80 and :443, so that
captures of one page stay together. Crawls are weeks apart: a page that changes
more often changes in each.
"""

import contextlib

import pyarrow as pa
import pyarrow.parquet as pq

from recrawl.log.formats import captures
from recrawl.log.formats.base import Format
from recrawl.log.formats.pieces import first_object

__all__ = ["FORMATS"]

_NONE = "No Captures found"  # the answer of a crawl that has none
_JSON = captures.query(f"""
    select
        n as row,
        line as given,
        try(json_extract_string(line, [
            '$.urlkey', '$.timestamp', {captures.IN_JSON}
        ])) as f
    from lines(getvariable('file'))
    where line <> '' and not (contains(line, '{_NONE}') and f[3] is null)
""")

_PARQUET = captures.query("""
    select
        file_row_number + 1 as row,
        concat_ws(' ', url, fetch_time, fetch_status, content_digest) as given,
        [
            '', strftime(fetch_time::timestamptz, '%Y%m%d%H%M%S'), url, '',
            fetch_status::varchar, content_digest, '', content_truncated
        ] as f
    from (
        -- older tables and yours may lack the column
        select null::varchar as content_truncated where false
        union all by name
        -- texts may be stored as bytes, and those of a URL need not be UTF-8
        select
            * replace (
                try(decode(unhex(hex(url)))) as url,
                try(decode(unhex(hex(content_digest)))) as content_digest
            ),
            file_row_number
        from read_parquet(getvariable('file'), hive_partitioning = false)
    )
""")


def _is_answer(head, path):
    """Whether the first line is a capture, or the answer that there is none."""
    first = first_object(head)
    message = first.get("message") or first.get("error")
    return {"urlkey", "timestamp"} <= first.keys() or str(message).startswith(_NONE)


def _is_table(head, path):
    """Whether a Parquet file has the columns of Common Crawl's table."""
    columns = {"url", "fetch_time", "fetch_status", "content_digest"}
    with contextlib.suppress(pa.ArrowException, OSError):
        return head[:4] == b"PAR1" and columns <= set(pq.read_schema(path).names)
    return False


FORMATS = (
    Format(
        "commoncrawl",
        "an answer of Common Crawl's index",
        "fetches",
        _is_answer,
        _JSON,
    ),
    Format(
        "commoncrawl",
        "a Parquet file of Common Crawl's index",
        "fetches",
        _is_table,
        _PARQUET,
        in_utf8=False,
    ),
)
