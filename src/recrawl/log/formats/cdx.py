r"""CDX files, indices of WARC files: one line a capture.

The tools of web archives write them, cdx-indexer or ``cdxj-indexer -11``. The
first line is the legend: a delimiter, which may be any character, CDX, and a
letter for each field, of which a (URL), b (time), m (type), s (status) and k
(digest) are read. Servers answer without it, in fields that begin with N b a m s
k. Hosts are taken in lower case and without the ports :80 and :443, so that
captures of one page stay together. Captures are not planned visits: people save
pages when they change, so that rates come out high. Never take an index from
which the unchanged captures (warc/revisit) were left out.
"""

from recrawl.log.formats import captures
from recrawl.log.formats.base import Format

__all__ = ["FORMATS"]

_QUERY = captures.query("""
    -- files that were joined have a legend each
    with legends as (
        select
            n as begins,
            line[1] as delimiter,
            string_split(trim(line[2:]), line[1])[2:] as l
        from lines(getvariable('file'))
        where line[2:4] = 'CDX' and line[5] = line[1]
    )

    select
        n as row,
        line as given,
        string_split(line, delimiter) as texts,
        case when len(texts) >= len(l) then list_transform(
            ['N', 'b', 'a', 'm', 's', 'k'],
            lambda letter: texts[list_position(l, letter)]
        ) end as f
    from lines(getvariable('file'))
    asof join legends on n >= begins
    where line <> '' and n <> begins
""")

FORMATS = (
    Format(
        "cdx",
        "a CDX file",
        "fetches",
        lambda head, path: head[1:4] == b"CDX" and head[4:5] == head[:1] != b"",
        _QUERY,
    ),
    Format(
        "cdx",
        "a CDX file without its legend",
        "fetches",
        lambda head, path: captures.n_fields(head) > 7,
        captures.PLAIN,
    ),
)
