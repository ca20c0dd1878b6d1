"""changedetection.io: the folder of its data, one folder a page.

Copy the folder (``/datastore`` of the container) while the program stands still,
and give it as the log. DATASTORE/UUID/watch.json (before version 0.53,
url-watches.json of all pages) says when the page was checked last,
DATASTORE/UUID/history.txt when a check found a change. Where the page has an
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

from recrawl.log.formats.base import Format
from recrawl.log.formats.records import in_order, moments

__all__ = ["FORMATS"]

_MICROSECOND = timedelta(microseconds=1)
_MOST_ROWS = 10_000  # of a page
_LARGEST = 16 << 20  # bytes of a file
_NO_LINE = "that are no line of a history, or out of its order"
_ALL = "url-watches.json"  # of all pages, before version 0.53


def _rows(path, as_of):
    """Rows of all pages, in the order of their folders."""
    watches = list(_watches(path))
    urls = Counter(str(watch.get("url")) for watch in watches)
    read = moments(
        text
        for watch in watches
        for text in (str(watch.get("last_checked")), *map(_stamp, watch["lines"]))
    )
    for row, watch in enumerate(watches, 1):
        url, lines = watch.get("url"), watch["lines"]
        last = read.get(str(watch.get("last_checked")))
        given = f"{watch['folder']}/watch.json: {watch.get('error', '')}"
        about = {"row": row, "given": given, "time": last}
        if not isinstance(url, str):
            yield about | {"reason": "whose watch.json cannot be read"}
            continue
        # two watches of a page, with other filters, are two observers
        about["url"] = f"{url}#{watch['folder']}" if urls[url] > 1 else url
        times = [read.get(_stamp(line)) for line in lines]
        _, oldest = in_order([time for time in times[::-1] if time], last)
        for line, time in zip(lines, times, strict=True):
            if time is None or time < oldest:
                yield about | {"given": line, "reason": _NO_LINE}
        times = sorted({time for time in times if time and time >= oldest})
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


def _watches(path):
    """Each watch, with the name of its folder, and the lines of its history."""
    folder = path if path.is_dir() else path.parent
    places = {place.name: place for place in folder.iterdir() if place.is_dir()}
    found = {file.parent.name: _object(file) for file in folder.glob("*/watch.json")}
    if not found:
        found = _object(folder / _ALL).get("watching")
        if not isinstance(found, dict):
            raise ValueError(f"{folder / _ALL} must hold the object 'watching' in JSON")
    for name, watch in sorted(found.items()):
        watch = watch if isinstance(watch, dict) else {}
        lines = _history(places[name], watch) if name in places else []
        if isinstance(watch.get("history"), dict):  # as in 2021
            lines = [*watch["history"]] or lines
        yield watch | {"folder": name, "lines": lines}


def _object(file):
    """The object in a file, or one that says why there is none."""
    try:
        found = json.loads(_text(file), parse_float=str)  # with an exponent, if any
    except (OSError, ValueError, RecursionError) as error:
        return {"error": str(error)}
    return found if isinstance(found, dict) else {}


def _history(place, watch):
    """Lines of the history of a page; each processor may have its own."""
    own = f"history-{watch.get('processor')}.txt"
    files = {file.name: file for file in place.iterdir()}
    file = files.get(own, files.get("history.txt"))
    try:
        return _text(file).splitlines() if file else []
    except (OSError, ValueError) as error:
        return [str(error)]


def _text(file):
    """Text of a file of bounded size."""
    with open(file, "rb") as opened:
        data = opened.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"{file} must have at most {_LARGEST:,} bytes, and has more")
    return data.decode("utf-8", "replace")


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
    """One row a check; those at the first `found` times found a change.

    Of many checks, all of those between two times are one row.
    """
    few = (times[-1] - times[0]) / interval <= _MOST_ROWS
    for k, (start, end) in enumerate(pairwise(times), 1):
        n = max(1, round((end - start) / interval))
        checks = [start, end - (end - start) / n, end]
        if few:
            checks = [start + (end - start) * j / n for j in range(n + 1)]
        for before, time in pairwise(checks):
            if before < time:
                changed = time == end and k < found
                yield {"start": before, "time": time, "changed": changed}


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
            any(path.glob("*/watch.json"))
            or path.name == _ALL
            or (path / _ALL).is_file()
        ),
        read=_rows,
        checks_itself=True,
    ),
)
