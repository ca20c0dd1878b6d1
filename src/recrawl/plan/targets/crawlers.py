"""What each crawler takes, and the command that applies it; lines: ``sql/to_*``."""

from dataclasses import dataclass

__all__ = ["CRAWLERS", "TARGETS", "Crawler"]

_CONTROL = r"[\x00-\x1f\x7f]"  # ends a line or a field in most formats
_TEXT = "", ".txt"
_LINES = (*_TEXT, ".json", ".jsonl", ".ndjson", ".jl")
_CHANGEDETECTION = """\
#!/bin/sh
# Set API_KEY, and API where changedetection.io does not run on this machine.
api="${API:-http://localhost:5000/api/v1}"
put() {
    curl -fsS -X PUT "$api/watch/$1" -H "x-api-key: ${API_KEY:?}" \\
        -H 'Content-Type: application/json' -d "$2" && echo
}
"""


@dataclass(frozen=True)
class Crawler:
    """How one crawler takes a schedule.

    Parameters
    ----------
    apply : str
        The command that applies the file, with ``{file}`` in its place, and
        ``{per_day}`` for the crawls of its pages a day.
    unfit : str
        Regular expression of the URLs that the file cannot hold, beside those
        that are not of http or https; none by default.
    exported : str
        What the user exports before; empty if nothing.
    optional : bool
        Whether it can do without `exported`.
    head : str
        The first lines of the file.
    until : str, optional
        The time by which pages are due that are written, if no other is given.
    pauses : bool
        Whether it takes pages that are never to be crawled.
    endings : tuple of str
        Of names that it reads as the file is; .gz if it unpacks.
    """

    apply: str
    unfit: str = r"[^\x00-\x{10FFFF}]"  # no character at all
    exported: str = ""
    optional: bool = False
    head: str = ""
    until: str | None = None
    pauses: bool = False
    endings: tuple[str, ...] = _LINES


CRAWLERS = {
    "jsonl": Crawler(
        "scrapy runspider scrapy_spider.py -a plan={file} -a per_day={per_day} "
        "-a log=fetched.jsonl -o fetched.jsonl\n"
        "A crawler that waits for each date in `due` leaves some 5% of its fetches "
        "unused. A crawler uses all of them if it always fetches next the page with "
        "the greatest (days since its last crawl) x crawl_rate."
    ),
    "nutch": Crawler(
        "mkdir SEEDDIR && cp {file} SEEDDIR && "
        "bin/nutch inject crawl/crawldb SEEDDIR -update -noFilter -noNormalize",
        unfit=_CONTROL,
        endings=(*_TEXT, ".gz", ".txt.gz"),
    ),
    "storm": Crawler(
        "rm -f bulk.* && split -l 10000 {file} bulk. && for part in bulk.*; do curl -s "
        "-H 'Content-Type: application/x-ndjson' -XPOST localhost:9200/_bulk "
        '--data-binary "@$part"; done\n'
        'pause the topology before, and look at "errors" of each answer',
        exported="the documents of the index `status`, one hit a line",
        optional=True,
    ),
    "frontier": Crawler(
        "java -jar urlfrontier-client-2.6.jar PutURLs -f {file}",
        exported="the lines that DumpURLs of URLFrontier wrote",
        endings=(*_LINES, ".gz", ".jsonl.gz"),
    ),
    "heritrix": Crawler(
        "mv {file} JOB/action/",
        unfit=rf"{_CONTROL}| ",
        until="now",
        endings=(".force", ".force.gz"),  # it ignores others
    ),
    "changedetection": Crawler(
        "API_KEY=... sh {file}",
        exported="the folder of changedetection.io's datastore (version 0.53 or later)",
        head=_CHANGEDETECTION,
        pauses=True,
        endings=("", ".sh"),
    ),
    "urls": Crawler("wget -i {file}", unfit=_CONTROL, endings=_TEXT),
}
TARGETS = tuple(CRAWLERS)
