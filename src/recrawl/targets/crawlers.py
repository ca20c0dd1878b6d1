"""What each crawler takes, from what, and by which command."""

from collections.abc import Callable
from dataclasses import dataclass

from recrawl.targets import writers

__all__ = ["CRAWLERS", "Crawler"]

# Others would be options of a command, or files of the machine.
_WEB = "that do not begin with http:// or https://"
_CONTROL = r"[\x00-\x1f\x7f]"  # ends a line or a field in most formats


@dataclass(frozen=True)
class Crawler:
    """How one crawler takes a schedule.

    Parameters
    ----------
    apply : str
        The command that applies the file, with ``{file}`` in its place.
    unfit : str
        Regular expression of the URLs that the file cannot hold, beside those
        that are not of http or https; none by default.
    why : str
        What these URLs have, after "with URLs".
    exported : str
        What the user exports before; empty if nothing.
    optional : bool
        Whether it can do without `exported`.
    write : callable
        Of `writers`, which writes what the query gives.
    until : str, optional
        The time by which pages are due that are written, if no other is given.
    pauses : bool
        Whether it takes pages that are never to be crawled.

    Examples
    --------
    >>> Crawler("wget -i {file}").apply.format(file="due.txt")
    'wget -i due.txt'
    """

    apply: str
    unfit: str = r"[^\x00-\x{10FFFF}]"  # no character at all
    why: str = _WEB
    exported: str = ""
    optional: bool = False
    write: Callable = writers.write_lines
    until: str | None = None
    pauses: bool = False


_LINE = {"unfit": _CONTROL, "why": f"with control characters, or {_WEB}"}
CRAWLERS = {
    "jsonl": Crawler(
        "scrapy runspider scrapy_spider.py -a due={file} -o fetched.jsonl"
    ),
    "nutch": Crawler(
        "mkdir SEEDDIR && cp {file} SEEDDIR && "
        "bin/nutch inject crawl/crawldb SEEDDIR -update -noFilter -noNormalize",
        unfit=_CONTROL,
        why=f"with control characters, or {_WEB}",
    ),
    "storm": Crawler(
        "split -l 10000 {file} bulk. && for part in bulk.*; do curl -s "
        "-H 'Content-Type: application/x-ndjson' -XPOST localhost:9200/_bulk "
        '--data-binary "@$part"; done\n'
        'pause the topology before, and look at "errors" of each answer',
        exported="the documents of the index `status`, one hit a line",
        optional=True,
    ),
    "frontier": Crawler(
        "java -jar urlfrontier-client-2.6.jar PutURLs -f {file}",
        exported="the lines that DumpURLs of URLFrontier wrote",
    ),
    "heritrix": Crawler(
        "mv {file} JOB/action/",
        unfit=rf"{_CONTROL}| ",
        why=f"with spaces or control characters, or {_WEB}",
        until="now",
    ),
    "changedetection": Crawler(
        "API_KEY=... sh {file}",
        exported="the folder of changedetection.io's datastore",
        write=writers.write_changedetection,
        pauses=True,
    ),
    "crontab": Crawler(
        "crontab {file}\n"
        "write your command for fetch before; the crontab that you have is replaced",
        write=writers.write_crontab,
        **_LINE,
    ),
    "urls": Crawler("wget -i {file}", **_LINE),
}
