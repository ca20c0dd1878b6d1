"""Files of crawlers from pages and intervals, where lines of a query do not do.

Each function writes an open binary file from an iterable of rows, and returns the
number of rows and a list of sentences that the user should know.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

__all__ = ["write_changedetection", "write_crontab", "write_lines"]

_CHECK_LEAST = 3  # seconds: changedetection.io checks no page more often
_UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
# Minutes that divide an hour, a day or a week: cron knows no other even periods.
_PERIODS = (
    *(1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30),
    *(60, 120, 180, 240, 360, 480, 720, 1440, 10_080),
)
_ROUNDING = 1e-9
_HOST = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*))?")  # of any text
_CHANGEDETECTION = """\
#!/bin/sh
# Set API_KEY, and API where changedetection.io does not run on this machine.
api="${API:-http://localhost:5000/api/v1}"
put() {
    curl -fsS -X PUT "$api/watch/$1" -H "x-api-key: ${API_KEY:?}" \\
        -H 'Content-Type: application/json' -d "$2" && echo
}
"""


def write_lines(file: Any, rows: Iterable[tuple[Any, ...]]) -> tuple[int, list[str]]:
    r"""Write rows of one text as lines.

    Parameters
    ----------
    file : binary file
        To which lines are written, in UTF-8.
    rows : iterable of tuple
        ``(line,)``.

    Returns
    -------
    n : int
        Number of rows.
    notes : list of str
        Nothing.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_lines(file, [("a",), ("b",)])
    (2, [])
    >>> file.getvalue()
    b'a\nb\n'
    """
    n = 0
    for (line,) in rows:
        file.write(f"{line}\n".encode())
        n += 1
    return n, []


def write_changedetection(
    file: Any, rows: Iterable[tuple[Any, ...]]
) -> tuple[int, list[str]]:
    """Write a shell script of one request for each watch.

    All five parts of the interval are given, for the interface replaces all of
    them, and the global interval, which would stay in force, is switched off.

    Parameters
    ----------
    file : binary file
        To which the script is written.
    rows : iterable of tuple
        ``(uuid, seconds)``, null seconds for a watch to pause.

    Returns
    -------
    n : int
        Number of rows.
    notes : list of str
        Nothing.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_changedetection(file, [("095be615", None)])
    (1, [])
    >>> file.getvalue().decode().splitlines()[-1]
    'put 095be615 \\'{"paused": true}\\''
    """
    file.write(_CHANGEDETECTION.encode())
    requests = ((f"put {uuid} '{_watch(seconds)}'",) for uuid, seconds in rows)
    return write_lines(file, requests)


def _watch(seconds):
    """Change of a watch, as JSON."""
    if seconds is None:
        return json.dumps({"paused": True})
    interval = _parts(max(_CHECK_LEAST, seconds))
    change = {"time_between_check_use_default": False, "time_between_check": interval}
    return json.dumps(change)


def _parts(seconds):
    """Weeks, days, hours, minutes and seconds of a time, rounded to seconds."""
    rest, parts = max(1, round(seconds)), {}
    for name, size in _UNITS.items():
        parts[name], rest = divmod(rest, size)
    return parts


def write_crontab(file: Any, rows: Iterable[tuple[Any, ...]]) -> tuple[int, list[str]]:
    """Write a crontab of even periods, the nearest ones in the logarithm.

    Parameters
    ----------
    file : binary file
        To which the crontab is written.
    rows : iterable of tuple
        ``(url, seconds)``.

    Returns
    -------
    n : int
        Number of rows.
    notes : list of str
        How many fetches a day there are, and how many there should be; and on how
        many hosts there are more.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_crontab(file, [("https://example.org/n%C3%A4her", 19 * 3600)])
    (1, ['cron has even periods only: 1 fetches a day, planned were 1.26316'])
    >>> print(file.getvalue().decode().splitlines()[1])
    50 8 * * * fetch 'https://example.org/n\\%C3\\%A4her'
    """
    # no gaps at daylight saving, by those versions of cron that know it
    file.write(b"CRON_TZ=UTC\n")
    planned, made, n = Counter(), Counter(), 0  # fetches a day of each host
    for url, seconds in rows:
        period = min(_PERIODS, key=lambda p: abs(math.log(60 * p / seconds)))
        host = _HOST.match(url)[1] or "no host"
        planned[host] += 86_400 / seconds
        made[host] += 1440 / period
        # the shell ends a text at ', cron ends the command at %
        quoted = url.replace("'", r"'\''").replace("%", r"\%")
        file.write(f"{_times(period, _hash(url))} fetch '{quoted}'\n".encode())
        n += 1
    notes = [
        f"cron has even periods only: {made.total():,.6g} fetches a day, "
        f"planned were {planned.total():,.6g}"
    ]
    excess = {host: made[host] / planned[host] - 1 for host in made}
    if more := {host: by for host, by in excess.items() if by > _ROUNDING}:
        most = max(more, key=more.get)
        notes.append(
            f"more than planned on {len(more):,} of {len(made):,} hosts, above their "
            f"limits if they have any; most on {most}: {made[most]:,.6g} a day, "
            f"planned were {planned[most]:,.6g}"
        )
    return n, notes


def _times(period, number):
    """Fields of a crontab for a period in minutes; a number spreads the beginning.

    Not only the minute is spread: else all daily pages would come at midnight.
    """
    hours, minute = divmod(number % period, 60)
    day, hour = divmod(hours, 24)
    return " ".join(
        [
            _step(minute, 59, period) if period < 60 else str(minute),
            _step(hour, 23, period // 60) if period < 1440 else str(hour),
            "* *",
            str(day) if period > 1440 else "*",
        ]
    )


def _step(first, last, every):
    """Field of a crontab: every so many from the first on."""
    if every <= 1:
        return "*"
    return f"{first}-{last}/{every}" if first else f"*/{every}"


def _hash(url):
    """A number of 64 bits, the same on every day and machine."""
    return int.from_bytes(hashlib.sha256(url.encode()).digest()[:8])
