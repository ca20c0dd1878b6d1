"""Export of a schedule: what is checked, read, left out and written."""

import shlex
import time
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from paperlib import checks
from paperlib.errors import ArgumentError
from recrawl.log.database import database, first_line, pattern, sql
from recrawl.log.files import named, replacing
from recrawl.log.output import check_output, check_pages, opened, sound
from recrawl.plan.targets.crawlers import CRAWLERS, TARGETS
from recrawl.types import PathLike
from recrawl.units import counted, in_utc, rounded

__all__ = ["ExportWarning", "export"]

_MEMORY = "1GiB"
_COLUMNS = ("url", "crawl_rate", "due")
_BATCH = 10_000  # rows in memory at a time
_IGNORED = (".", "_")  # by Hadoop, as first letters of a name
_SHOWN = 3  # URLs named in a warning
_FOREVER = 365_000 * 86_400.0  # seconds; `schedule` gives no due time beyond it


class ExportWarning(UserWarning):
    """Pages that a crawler's file lacks: how many there are, and which."""


def export(
    schedule: PathLike,
    output: PathLike,
    to: str,
    *,
    until: Any = None,
    exported: PathLike | None = None,
    force: bool = False,
) -> str:
    """Write a schedule as the file that a crawler takes.

    Parameters
    ----------
    schedule : path
        Parquet file that `schedule` wrote: url, crawl_rate (1/day) and due.
    output : path
        The file to write, gzipped if its name ends in .gz, which crawlers that do
        not unpack it refuse.
    to : str
        The crawler, one of `TARGETS`: "jsonl" (url, due, interval_s and rate a line),
        "urls" (one URL a line), "nutch" (seeds with intervals), "storm" (bulk
        requests for StormCrawler's index), "frontier" (items of URLFrontier),
        "heritrix" (an action file of what is due), or "changedetection" (a shell
        script).
    until : str or datetime, optional
        Only pages that are due by then: ISO 8601, UTC if it names no zone, or
        "now". By default all; for "heritrix", "now".
    exported : path, optional
        What the crawler has stored. Required for "frontier" (the lines of
        DumpURLs) and "changedetection" (the folder of the datastore); for
        "storm" the documents of the index, whose identifiers are then taken
        instead of made.
    force : bool, default False
        Overwrite an output that exists.

    Returns
    -------
    str
        How many pages were written, and the command that applies the file.

    Raises
    ------
    FileExistsError
        The output exists, and `force` is false.
    FileNotFoundError
        No such schedule or export.
    OSError
        The output cannot be written; what was there before is left as it was.
    ValueError
        An unknown crawler, no time, an export that is missing, not wanted or
        of another format, a schedule that is none, or an output whose name does
        not end as the crawler needs it.

    Warns
    -----
    ExportWarning
        Pages whose URL the file cannot hold, or which the export lacks.

    Notes
    -----
    A page of crawl rate 0 is left out, and keeps the interval that the crawler
    has for it; changedetection.io pauses it. A page that was not crawled yet is
    due now.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan, output = f"{folder}/plan.parquet", f"{folder}/seeds.txt"
    ...     due = pa.array([0], pa.timestamp("us", "UTC"))
    ...     columns = {"url": ["https://example.org/"], "crawl_rate": [0.5], "due": due}
    ...     pq.write_table(pa.table(columns), plan)
    ...     text = export(plan, output, "nutch")
    ...     print(text.splitlines()[0])
    ...     Path(output).read_text()
    1 page; next:
    'https://example.org/\\tnutch.fetchInterval=172800\\n'
    """
    check_output(output, force, [schedule, exported], endings=())
    _check(output, to, exported)
    crawler, now = CRAWLERS[to], time.time_ns() // 1000
    until = _microseconds(crawler.until if until is None else until, now)
    with opened(schedule, "schedule", _COLUMNS):
        check_pages(schedule)
    with database(_MEMORY) as (connection, _):
        parameters = {"schedule": pattern(schedule), "until": until, "now": now}
        parameters |= {"unfit": crawler.unfit, "forever": _FOREVER}
        with sound(schedule):
            connection.execute(sql("read_plan", "plan"), parameters)
        connection.execute(sql("plan", "plan"))
        if crawler.exported:
            _read_items(connection, to, exported)
        left_out, n_never = _left_out(connection, crawler)
        (per_day,) = connection.execute("select sum(crawl_rate) from plan").fetchone()
        n, rows = 0, connection.execute(sql(f"to_{to}", "plan"))
        packed = "gzip" if str(output).endswith(".gz") else None
        with (
            replacing(output, force) as temporary,
            named(temporary),
            pa.output_stream(temporary, compression=packed) as file,
        ):
            file.write(crawler.head.encode())
            while batch := rows.fetchmany(_BATCH):
                file.write("".join(f"{line}\n" for (line,) in batch).encode())
                n += len(batch)
    if left_out:
        message = f"pages left out of {output}: {'; '.join(left_out)}"
        warnings.warn(message, ExportWarning, stacklevel=2)
    said = [f"{counted(n, 'page')}; next:"]
    pace = rounded(per_day or 0.0).replace(",", "")
    said.append(crawler.apply.format(file=shlex.quote(str(output)), per_day=pace))
    if n_never:
        left = "left out, and the crawler keeps its interval"
        fate = "paused" if crawler.pauses else left
        said.append(f"{counted(n_never, 'page')} of crawl rate 0: {fate}")
    return "\n".join(said)


def _check(output, to, exported):
    """Raise a ValueError for a crawler, a dump or a name that do not fit."""
    crawler = CRAWLERS[checks.one_of("to", to, TARGETS)]
    if exported is None and crawler.exported and not crawler.optional:
        rule = f"must be {crawler.exported} for {to!r}, got None"
        raise ArgumentError("exported", rule)
    if exported is not None and not crawler.exported:
        rule = f"must be None for {to!r}, got {str(exported)!r}"
        raise ArgumentError("exported", rule)
    if exported is not None and not Path(exported).exists():
        raise FileNotFoundError(f"no such file: {exported}")
    path = Path(output)
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if ending not in crawler.endings or path.name.startswith(_IGNORED):
        endings = " or ".join(filter(None, crawler.endings))
        rule = f"must end in {endings} in small letters, and not begin with . or _"
        raise ArgumentError("output", f"{rule}, for {to!r}; got {output}")


def _microseconds(until, now):
    """Microseconds since 1970 of a time, None for none."""
    if until is None:
        return None
    if until == "now":
        return now
    try:
        return round(in_utc(str(until)).timestamp() * 1e6)
    except ValueError:
        rule = f"must be a time in ISO 8601 or 'now', got {until!r}"
        raise ArgumentError("until", rule) from None


def _read_items(connection, to, exported):
    """Make the table `item` of what a crawler stores of its pages."""
    if exported is None:
        connection.execute(sql(f"item_{to}", "plan"))
        return
    files, why = pattern(exported), "no page"
    if to == "changedetection":
        files += "/*/watch.json"
    try:
        connection.execute(sql(f"read_{to}", "plan"), {"exported": files})
        ((found,),) = connection.sql("select count(url) from item").fetchall()
    except duckdb.Error as error:
        found, why = 0, first_line(error)
    if not found:
        rule = f"must be {CRAWLERS[to].exported}, got {exported}: {why}"
        raise ArgumentError("exported", rule)


def _left_out(connection, crawler):
    """What to say of pages left out, and the number of those of crawl rate 0."""
    unfit = "with URLs that are not of http or https, or that the file cannot hold"
    reasons = {unfit: "from page where unfit and not never"}
    if crawler.exported:
        reasons["that the export lacks"] = "from plan anti join item using (url)"
    said = []
    for reason, query in reasons.items():
        ((n,),) = connection.sql(f"select count(*) {query}").fetchall()
        urls = connection.sql(f"select url {query} order by row limit {_SHOWN}")
        if n:
            shown = ", ".join(repr(url) for (url,) in urls.fetchall())
            said.append(f"{n:,} {reason} ({shown})")
    never = "from page semi join item using (url)" if crawler.pauses else "from page"
    ((n_never,),) = connection.sql(f"select count(*) {never} where never").fetchall()
    return said, n_never
