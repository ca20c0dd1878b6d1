"""Captures of web archives: what WARC, CDX, CDXJ and their kin share.

A reader gives each capture as the list of its texts: key, time, URL, MIME type,
status, digest, method of the request, and why the body was cut off, in the order of
CDX. The status by other names follows, and what only WARC files have: ETag,
Last-Modified, the profile of a revisit, and why a record cannot be read. A line that
is no capture has a null in place of the list.

A capture of type warc/revisit says by itself that the fetch found a body seen
before: what its status column holds, 0, -1 or nothing, is then no status. Without
a digest, or with that of an empty body, the server answered that nothing changed.
"""

import re

from recrawl.log.database import quoted

__all__ = [
    "CUT",
    "CUT_PREFIX",
    "IN_JSON",
    "OTHER_METHOD",
    "PLAIN",
    "n_fields",
    "query",
]

OTHER_METHOD = "of requests other than GET"
#: Reason of bodies that have no digest of the page.
CUT = "whose body was cut off"
#: Before the digest of a body cut at a length, which is compared with its like only.
CUT_PREFIX = "cut-"
#: Paths of what a capture in JSON has from its URL on.
IN_JSON = (
    "'$.url', '$.mime', '$.status', '$.digest', '$.method', '$.truncated', "
    "'$.statuscode', '$.status_code'"
)
# What programs write where nothing was cut off, in small letters.
_WHOLE = ("", "-", "0", "false", "no", "none", "null")
# Digests of nothing, as an answer 304 has them: MD5, SHA-1 and SHA-256, each in base 32
# and base 16, without the = at its end.
_EMPTY = (
    "2QOYZWMPACZAJ2MABGMOZ6CCPY",
    "D41D8CD98F00B204E9800998ECF8427E",
    "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
    "4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ",
    "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
)
# A line of CDX, whose first fields are N b a m s k, whatever follows.
_BARE = r"^\S+ \d{14}(\d{3})? \S+ \S+ (-?\d+|-) \S+( \S+)+\s*$"


def n_fields(head: bytes) -> int:
    """Number of fields in the first line, if it is one of CDX without a legend.

    Parameters
    ----------
    head : bytes
        The beginning of a file.

    Returns
    -------
    int
        0 of another line.
    """
    line = head.partition(b"\n")[0]
    return len(line.split()) if re.match(_BARE.encode(), line) else 0


def query(captures: str, *, as_written: bool = False) -> str:
    r"""Query of fetches, from one of captures.

    Archives name one page by several URLs. Here the host is in lower case and
    without the ports :80 of http and :443 of https, so that the captures of a
    page stay together; http and https, and www or not, remain apart. A SHA-1 is
    the digest where it says nothing else. The digest of a 304 is that of an
    empty body, or missing, and left out.

    Parameters
    ----------
    captures : str
        SELECT of row, given and the list f.
    as_written : bool
        Whether the URLs stay as the crawler has written them.

    Returns
    -------
    str

    Examples
    --------
    >>> import duckdb
    >>> from recrawl.log.database import sql
    >>> connection = duckdb.connect()
    >>> _ = connection.execute(sql("tables"))
    >>> f = "['k', '20261001061208', 'http://A.org:80/B', 'text/html', '-', 'QELU']"
    >>> found = connection.sql(query(f"select 1 as row, '...' as given, {f} as f"))
    >>> found.select("url, status, digest").fetchall()
    [('http://a.org/B', None, 'sha1:QELU')]
    """
    empty = ", ".join(map(quoted, _EMPTY))
    origin = "lower(origin)"
    for ending in ("^(http://.*):80$", "^(https://.*):443$"):
        origin = rf"regexp_replace({origin}, '{ending}', '\1')"
    origin = "origin" if as_written else origin
    return rf"""
with captures as ({captures}),

named as (
    select
        row,
        given,
        case
            when regexp_full_match(f[2], '\d{{14}}(\d{{3}})?|\d{{4}}-.*') then f[2]
        end as stamp,
        trim(f[3], '<>') as address,
        coalesce(f[4] in ('revisit', 'warc/revisit'), false) as revisit,
        value_of(coalesce(f[5], f[9], f[10])) as code,
        value_of(f[6]) as hash,
        split_part(hash, ':', -1) as hash_value,
        case
            when not revisit and lower(f[8]) not in {_WHOLE} then lower(f[8])
        end as cut,
        coalesce(f[7], regexp_extract(f[1], '__wb_method=(\w+)', 1), '') as method,
        regexp_extract(address, '^[a-zA-Z]+://[^/?#]*') as origin,
        case
            when not revisit or try_cast(code as integer) between 100 and 599
                then try_cast(code as integer)
        end as status,
        coalesce(
            status = 304
            or revisit and (
                hash is null
                or rtrim(upper(hash_value), '=') in ({empty})
                or contains(f[13], 'server-not-modified')
            ),
            false
        ) as still,
        f[11] as etag,
        sound(time_of(f[12])) as last_modified,
        f[14] as damage
    from captures
)

select
    row,
    given,
    {origin} || address[length(origin) + 1:] as url,
    sound(time_of(stamp)) as time,
    status,
    case
        when still then null
        else case when cut is not null then {quoted(CUT_PREFIX)} else '' end
            || case when contains(hash, ':') then '' else 'sha1:' end
            || hash
    end as digest,
    etag,
    last_modified,
    nullif(still, false) as same,
    case
        when damage is not null then damage
        when address is null or stamp is null
                or not coalesce(regexp_full_match(hash_value, '[\w+/=-]+'), true)
                or contains(hash, '://')
            then 'that are no captures'
        when upper(method) not in ('', 'GET') or contains(given, '__wb_post_data=')
            then {quoted(OTHER_METHOD)}
        when origin = '' or not lower(origin) like 'http%'
            then 'that are no web page (dns:, whois:)'
        when code is not null and status is null and not revisit
            then 'whose status is not a number'
        when cut <> 'length' then {quoted(CUT)}
    end as reason
from named
"""


#: Query of lines of CDX without a legend, or with one at places.
PLAIN = query(rf"""
    select
        n as row,
        line as given,
        case when regexp_matches(line, '{_BARE}') then string_split(line, ' ')[:6] end
            as f
    from lines(getvariable('file'))
    -- a list that goes on ends in an empty row and the key to resume it
    where line <> '' and not regexp_matches(line, '^\S+\+[0-9]{{14}}%21$|^ CDX ')
""")
