r"""Dumps of the CrawlDb of Apache Nutch 1.x: one row a page.

``NUTCH_OPTS=-Duser.timezone=UTC bin/nutch readdb crawl/crawldb -dump OUT
-format json`` writes OUT/part-r-00000 and so on; ``-format csv`` is read too,
but quotes nothing and spoils URLs that are not ASCII, so ask for JSON. On a
cluster the reducers' Java machines need the option, for most names of zones, such
as IST, stand for several.

A dump tells when the crawler saw the last change (modified time: that fetch,
or the first one) and when it fetches next; the last fetch is the fetch time
minus the interval, a day after an error. This holds for
``DefaultFetchSchedule``, until the interval is changed by ``inject -update``.
``AdaptiveFetchSchedule`` with ``sync_delta``, its default, moves the next fetch
of a page that was not modified forward by 0.3 times its age: last fetches then
come out too early, and the dump does not show by how much. Set sync_delta to
false, or read the segments (readseg).
One dump holds no change with its interval: keep every dump and read them all.
"""

from recrawl.log.database import quoted
from recrawl.log.formats.base import Format
from recrawl.log.formats.pieces import NEVER, fields, first_object
from recrawl.log.tally import FAILED

__all__ = ["FORMATS", "ZONE", "failed_without_status", "status"]

#: Reason of dates of Java in another zone.
ZONE = (
    "whose time or zone cannot be read "
    "(dump with NUTCH_OPTS=-Duser.timezone=UTC bin/nutch ...)"
)

_CSV_HEADER = b"Url,Status code,Status name,Fetch Time,"
# Nothing inside quotes is escaped, so that commas do not tell the columns.
_CSV_LINE = (
    r'^"(.*)",[0-9]+,"(\w+)",([^,"]*),([^,"]*),([0-9]+),([0-9.E]+),[^,"]*,[^,"]*,'
    r'"[^,"]*","(.*)$'
)


def status(name: str, code: str) -> str:
    """SQL of the HTTP status that agrees with a status of Nutch.

    The HTTP status of an older fetch stays where the last one met no answer.

    Parameters
    ----------
    name : str
        SQL of the name, such as fetch_gone or db_gone.
    code : str
        SQL of the HTTP status, an integer, perhaps null.

    Returns
    -------
    str

    Examples
    --------
    >>> import duckdb
    >>> names = "(values ('db_gone', 200), ('db_gone', 403), ('fetch_retry', 200))"
    >>> query = f"select {status('name', 'code')} from {names} as t(name, code)"
    >>> duckdb.sql(query).fetchall()
    [(404,), (403,), (None,)]
    """
    return f"""case
        when split_part({name}, '_', 2) in
                ('fetched', 'success', 'notmodified', 'duplicate', 'orphan')
            then {code}
        when {code} not between 200 and 299 and {code} <> 304 then {code}
        when {name} like '%\\_gone' escape '\\' then 404
        when {name} like '%\\_redir\\_temp' escape '\\' then 302
        when {name} like '%\\_redir\\_perm' escape '\\' then 301
    end"""


def failed_without_status(name: str, status: str) -> str:
    """SQL of the reason of a fetch that met no answer, null for others.

    Parameters
    ----------
    name : str
        SQL of the name of Nutch's status.
    status : str
        SQL of the HTTP status.

    Returns
    -------
    str

    Examples
    --------
    >>> "of failed fetches" in failed_without_status("name", "status")
    True
    """
    return f"""case
        when {status} is not null then null
        when split_part({name}, '_', 2) in ('unfetched', 'retry', 'parse')
            then {quoted(FAILED)}
        when split_part({name}, '_', 2) not in
                ('fetched', 'success', 'notmodified', 'duplicate', 'orphan')
            then 'whose status is unknown'
    end"""


def _query(fields):
    """Query of a dump, whose fields are given as text."""
    return f"""
with fields as ({fields}),

read as (
    select
        *,
        time_of(fetch_time) as next_fetch,
        time_of(modified_time) as modified,
        try_cast(retries as integer) as n_retries,
        try_cast(try_cast(interval_text as double) as bigint) as seconds,
        {status("name", "code")} as status,
        {failed_without_status("name", "status")} as failed
    from fields
)

select
    row,
    given,
    url,
    case
        when name = 'db_unfetched' and n_retries = 0 then null
        when name = 'db_unfetched' then next_fetch - interval 1 day
        else next_fetch - to_seconds(seconds)
    end as last_fetch,
    sound(modified) as last_change,
    status,
    case
        when url is null then 'that are no rows of a dump of Nutch'
        when name = 'db_unfetched' and n_retries = 0 then {quoted(NEVER)}
        when next_fetch is null or modified is null then {quoted(ZONE)}
        when seconds is null then 'without an interval'
        when spoilt
            then 'whose url a CSV dump may have spoilt (dump with -format json)'
        when failed is not null then failed
        when last_change is null
                and coalesce(status between 200 and 299 or status = 304, true)
            then 'without a modified time'
    end as reason
from read
"""


_FIELDS = fields(
    "$.url",
    "$.statusName",
    "$.fetchTime",
    "$.modifiedTime",
    "$.retriesSinceFetch",
    "$.retryIntervalSeconds",
    keys=("nutch.protocol.code",),
)
_JSON = _query(f"""
    select
        row,
        given,
        f[1] as url,
        f[2] as name,
        f[3] as fetch_time,
        f[4] as modified_time,
        f[5] as retries,
        f[6] as interval_text,
        try_cast(m[1] as integer) as code,
        false as spoilt
    from ({_FIELDS})
""")

# Up to Nutch 1.22 a character is written as its low byte, so that a file need
# not be UTF-8; as Latin-1 any can be read.
_CSV = _query(rf"""
    select
        row,
        given,
        nullif(f.url, '') as url,
        f.name,
        f.fetch_time,
        f.modified_time,
        f.retries,
        f.interval_text,
        try_cast(regexp_extract(
            f.metadata, '(^|\|\|\|)nutch\.protocol\.code:([0-9]+)', 2
        ) as integer) as code,
        f.url <> '' and not regexp_full_match(f.url, '[ -~]*') as spoilt
    from (
        select
            row,
            line as given,
            regexp_extract(line, {quoted(_CSV_LINE)}, [
                'url', 'name', 'fetch_time', 'modified_time', 'retries',
                'interval_text', 'metadata'
            ]) as f
        from (
            select row_number() over () as row, line
            from read_csv(
                getvariable('file'), compression = getvariable('compression'),
                auto_detect = false, header = false,
                columns = {{line: 'varchar'}}, delim = '\x01', quote = '',
                escape = '', strict_mode = false, encoding = 'latin-1',
                hive_partitioning = false
            )
        )
        where line <> '' and line not like 'Url,Status code,%'
    )
""")


FORMATS = (
    Format(
        "nutch",
        "a JSON dump of Nutch's CrawlDb",
        "states",
        lambda head, path: "retryIntervalSeconds" in first_object(head),
        _JSON,
    ),
    Format(
        "nutch",
        "a CSV dump of Nutch's CrawlDb",
        "states",
        lambda head, path: head.startswith(_CSV_HEADER),
        _CSV,
        in_utf8=False,
    ),
)
