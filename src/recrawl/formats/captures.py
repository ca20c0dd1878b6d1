"""Captures in indices of web archives: what CDX, CDXJ and their kin share."""

__all__ = ["query"]


def query(captures: str) -> str:
    r"""Query of fetches, from one of the fields of captures as text.

    Archives name one page by several URLs. Here the host is in lower case and
    without the ports :80 of http and :443 of https, so that the captures of a
    page stay together; http and https, and www or not, remain apart. A SHA-1 is
    the digest where it says nothing else. The digest of a 304 is that of an
    empty body, or missing, and left out.

    Parameters
    ----------
    captures : str
        SELECT of row, given, address, stamp (14 digits), status_text and
        digest_text; address and stamp are null where a line is no capture.

    Returns
    -------
    str

    Examples
    --------
    >>> import duckdb
    >>> row = "1, '...', 'http://A.org:80/B', '20261001061208', '-', 'QELU'"
    >>> names = "row, given, address, stamp, status_text, digest_text"
    >>> found = duckdb.sql(query(f"select * from (values ({row})) as t({names})"))
    >>> found.select("url, status, digest").fetchall()
    [('http://a.org/B', None, 'sha1:QELU')]
    """
    return rf"""
with captures as ({captures}),

named as (
    select
        *,
        nullif(nullif(status_text, '-'), '') as code,
        nullif(nullif(digest_text, '-'), '') as hash,
        regexp_extract(address, '^[a-zA-Z]+://[^/?#]*') as origin
    from captures
)

select
    row,
    given,
    regexp_replace(
        regexp_replace(lower(origin), '^(http://.*):80$', '\1'),
        '^(https://.*):443$',
        '\1'
    ) || address[length(origin) + 1:] as url,
    try_strptime(stamp, '%Y%m%d%H%M%S')::timestamptz as time,
    try_cast(code as integer) as status,
    case
        when status = 304 then null
        when contains(hash, ':') then hash
        else 'sha1:' || hash
    end as digest,
    null::varchar as etag,
    null::timestamptz as last_modified,
    nullif(status = 304, false) as same,
    case
        when address is null or stamp is null then 'that are no captures'
        when origin = '' or not lower(origin) like 'http%'
            then 'that are no web page (dns:, whois:)'
        when code is not null and status is null
            then 'whose status is not a number'
    end as reason
from named
"""
