"""Repositories of git into which a job commits what it has fetched.

Export the log of names: ``git -c core.quotepath=false log --no-renames
--no-merges --format='@%ct' --name-status > git.txt``. A file that a commit adds
(A) is known from then on, each commit that modifies it (M) is a change, one that
deletes it (D) ends what is known. The last run of the job is ``--as-of``, or else
the repository's last commit to any file.

Pitfalls: times are those of the job's runs, not of the changes. Where many runs
found nothing to commit at the end, give ``--as-of``. A shallow clone lacks
the beginning: a file whose A is missing is known from its first M on. A file that
was deleted is not marked as gone.
"""

import re
from datetime import UTC, datetime, timedelta

from recrawl.log.formats.base import Format, unpacked
from recrawl.log.formats.records import LONGEST, TOO_LONG, in_order

__all__ = ["FORMATS"]

_FIRST = datetime(1990, 1, 1, tzinfo=UTC)
_NO_LINE = "that are no line of the log of names of git"
_COMMIT = re.compile(r"@(\d{1,11})")
_NAME = re.compile(r"([A-Z])\d*\t(.+)")
_HEAD = re.compile(rb"@\d{1,11}\r?\n(\r?\n[A-Z]\d*\t|@\d)")


def _rows(path, as_of):
    """Rows of a log, from the last commit backwards.

    Each row is the window from its commit to the next one that names the file,
    which ends with a change if that one modified it. Windows that touch are
    joined later, so that only one commit has to be kept for each file.
    """
    latest = (as_of or datetime.now(UTC)) + timedelta(days=1)
    times = (_time(line) for line, _ in _lines(path))
    _, oldest = in_order([t for t in times if t and _FIRST <= t <= latest], latest)
    after, time, reason = {}, None, _NO_LINE
    for row, (line, is_long) in enumerate(_lines(path), 1):
        about, found = {"row": row, "given": line}, _NAME.fullmatch(line)
        if is_long:
            yield about | {"reason": TOO_LONG}
        elif not line:
            continue
        elif commit := _time(line):
            time, reason = commit, "of commits whose time cannot be"
            # before the oldest in order, a clock was wrong
            if oldest <= time <= latest:
                # the log begins with the last commit
                as_of, reason = max(as_of or time, time), ""
        elif reason or not found:
            yield about | {"reason": reason or _NO_LINE}
        else:
            kind, url = found.groups()
            page = hash(url)  # there may be many names, and long ones
            stop, modified = after.get(page, (as_of, False))
            after[page] = time, kind not in "AD"
            if kind != "D" and time < stop:
                window = {"url": url, "start": time, "stop": stop}
                yield about | window | {"time": stop if modified else None}
            elif kind == "A" and stop == as_of:
                yield about | {"url": url, "reason": "of files that are new at the end"}


def _time(line):
    """Time of a commit, or None if a line begins none."""
    found = _COMMIT.fullmatch(line)
    return datetime.fromtimestamp(int(found[1]), UTC) if found else None


def _lines(path):
    """Text of each line, or its beginning, and whether it is too long to be read."""
    with unpacked(path) as file:
        while line := file.readline(LONGEST + 1):
            yield line.decode("utf-8", "replace").rstrip("\r\n"), len(line) > LONGEST
            while len(line) > LONGEST and not line.endswith(b"\n"):
                line = file.readline(LONGEST + 1)


FORMATS = (
    Format(
        "git",
        "a log of git with names",
        "changes",
        lambda head, path: _HEAD.match(head) is not None,
        read=_rows,
    ),
)
