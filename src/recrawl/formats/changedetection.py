"""changedetection.io: the folder of its data, one folder a page.

Copy the folder (``/datastore`` of the container) while the program stands still,
and give it as the log. DATASTORE/UUID/watch.json says when the page was checked
last, DATASTORE/UUID/history.txt when a check found a change. Where the page has an
interval of its own, the checks in between are rows without a change; where it has
the program's, times of checks are not known, and all changes of the page from
its first check to its last one are.

Pitfalls: a change is what is left by the page's filters, and an edit of these is
one too. The interval is today's: what it was before is not stored. Of a page that
is paused or in error, what is known ends with the last line of its history.
"""

import contextlib
import json
from collections import Counter
from datetime import timedelta
from itertools import pairwise

from recrawl.formats.base import Format
from recrawl.formats.records import batches, moments

__all__ = ["FORMATS"]

_MICROSECOND = timedelta(microseconds=1)


def _read(path, as_of):
    return batches(_rows(path), "observations")


def _rows(path):
    """Rows of all pages, in the order of their folders."""
    watches = [_watch(file) for file in sorted(path.glob("*/watch.json"))]
    urls = Counter(str(watch.get("url")) for watch, _ in watches)
    read = moments(
        text
        for watch, history in watches
        for text in (str(watch.get("last_checked")), *map(_stamp, history))
    )
    for row, (watch, history) in enumerate(watches, 1):
        url, folder = watch.get("url"), watch["folder"]
        last = read.get(str(watch.get("last_checked")))
        about = {"row": row, "given": f"{folder}/watch.json", "url": url, "time": last}
        if not isinstance(url, str):
            yield about | {"url": None, "reason": "whose watch.json cannot be read"}
            continue
        # two watches of a page, with other filters, are two observers
        about["url"] = f"{url}#{folder}" if urls[url] > 1 else url
        for line in history:
            if _stamp(line) not in read:
                yield about | {"given": line, "reason": "that are no line of a history"}
        times = sorted({read[s] for s in map(_stamp, history) if s in read})
        found = len(times)
        stopped = watch.get("paused") or watch.get("last_error") or last is None
        if not stopped and times and times[-1] < last:
            times.append(last)
        if len(times) < 2:
            yield about | {"reason": "without two checks that found the page"}
            continue
        interval = _interval(watch)
        known = _checks(times, found, interval) if interval else _changes(times, found)
        yield from (about | row for row in known)


def _watch(file):
    """A watch.json with the name of its folder, and the lines of its history."""
    folder = {"folder": file.parent.name}
    try:
        watch = json.loads(file.read_text("utf-8")) | folder
        # each processor has its own history, and the program reads that of its own
        own = file.with_name(f"history-{watch.get('processor')}.txt")
        own = own if own in file.parent.iterdir() else file.with_name("history.txt")
        text = own.read_text("utf-8", "replace") if own.exists() else ""
        return watch, text.splitlines()
    except (OSError, ValueError, TypeError):
        return folder, []


def _stamp(line):
    """The time in a line of a history, as text."""
    return line.partition(",")[0].strip()


def _interval(watch):
    """The page's own interval between checks, or None."""
    if watch.get("time_between_check_use_default", True):
        return None
    with contextlib.suppress(AttributeError, TypeError, ValueError, OverflowError):
        parts = watch.get("time_between_check").items()
        interval = timedelta(**{name: float(n) for name, n in parts if n})
        return interval if interval > timedelta(0) else None
    return None


def _checks(times, found, interval):
    """One row a check; those at the first `found` times found a change."""
    for k, (before, time) in enumerate(pairwise(times), 1):
        n = max(1, round((time - before) / interval))
        ends = [before + (time - before) * j / n for j in range(n + 1)]
        for j, (start, end) in enumerate(pairwise(ends), 1):
            yield {"start": start, "time": end, "changed": j == n and k < found}


def _changes(times, found):
    """One row a change, which lasts to the next one, and the quiet time before."""
    first, *changes = times
    yield {"start": first, "time": changes[0], "changed": False}
    if found == len(times):  # known to the very moment of the last change
        changes.append(changes[-1] + _MICROSECOND)
    for change, end in pairwise(changes):
        row = {"start": change, "last_modified": change}
        yield row | {"time": end, "changed": True}


FORMATS = (
    Format(
        "changedetection",
        "a folder of changedetection.io",
        "observations",
        lambda head, path: any(path.glob("*/watch.json")),
        read=_read,
        checks_itself=True,
    ),
)
