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

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from recrawl.formats.base import Format
from recrawl.formats.records import batches

__all__ = ["FORMATS"]

_OLD = "url-watches.json"  # until January 2026, all pages in one file
_MICROSECOND = timedelta(microseconds=1)


def _read(path, as_of):
    if not path.is_dir():
        raise ValueError(
            f"{path} must be a folder with a watch.json for each page, got the one "
            "file of an older release: start changedetection.io 0.54 or newer on a "
            "copy of the folder, which splits it"
        )
    return batches(_rows(path), "observations")


def _rows(path):
    """Rows of all pages, in the order of their folders."""
    for row, file in enumerate(sorted(path.glob("*/watch.json")), 1):
        about = {"row": row, "given": f"{file.parent.name}/{file.name}"}
        try:
            watch = json.loads(file.read_text("utf-8"))
            times, broken = _history(file.parent)
            last = datetime.fromtimestamp(watch.get("last_checked") or 0, UTC)
            interval = _interval(watch)
        except (ValueError, TypeError, AttributeError, OverflowError):
            yield about | {"reason": "whose watch.json cannot be read"}
            continue
        about |= {"url": watch.get("url"), "time": last}
        for line in broken:
            yield about | {"given": line, "reason": "that are no line of a history"}
        stopped = watch.get("paused") or watch.get("last_error")
        if not stopped and times and times[-1] < last:
            times.append(last)
            found = len(times) - 1
        else:
            found = len(times)
        if len(times) < 2:
            yield about | {"reason": "without two checks that found the page"}
        elif interval:
            yield from (about | row for row in _checks(times, found, interval))
        else:
            yield from (about | row for row in _changes(times, found))


def _history(folder):
    """Times of the histories of a page, and lines that have none."""
    times, broken = set(), []
    for file in sorted(folder.glob("history*.txt")):
        for line in file.read_text("utf-8", "replace").splitlines():
            try:
                times.add(datetime.fromtimestamp(int(line.partition(",")[0]), UTC))
            except (ValueError, OverflowError):
                broken.append(line)
    return sorted(times), broken


def _interval(watch):
    """The page's own interval between checks, or None."""
    if watch.get("time_between_check_use_default", True):
        return None
    parts = {name: n for name, n in watch["time_between_check"].items() if n}
    return timedelta(**parts) or None


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
        lambda head, path: (
            any(path.glob("*/watch.json")) if path.is_dir() else path.name == _OLD
        ),
        read=_read,
    ),
)
