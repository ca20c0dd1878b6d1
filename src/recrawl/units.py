"""Rates, durations and numbers of things as text: 10/hour, 30d, 1 page."""

import math
import re
from datetime import UTC, datetime

__all__ = [
    "A_DAY",
    "NAMES",
    "as_text",
    "counted",
    "days",
    "in_utc",
    "per_day",
    "rounded",
    "shown",
]

_UNITS = {  # names, by how many make a day; M, which may be a month, is none
    86_400: "second seconds s S sec secs",
    1440: "minute minutes m min mins",
    24: "hour hours h H hr hrs",
    1: "day days d D",
    1 / 7: "week weeks w W wk wks",
}
#: How many of each unit make a day, by all names of it.
A_DAY = {name: n for n, names in _UNITS.items() for name in names.split()}
#: The units in words.
NAMES = "second or s, minute or min, hour or h, day or d, week or w"


def _number(text):
    """A number, NaN if the text is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def per_day(text: str) -> float:
    """A rate such as 10/hour or 10/h, in 1/day."""
    number, _, unit = text.partition("/")
    value = _number(number) * A_DAY.get(unit.strip(), math.nan)
    if not 0 < value < math.inf:
        raise ValueError(
            f"must be a positive number and a unit of time, such as 10/hour (units: "
            f"{NAMES}), got {text!r}"
        )
    return value


def days(text: str) -> float:
    """A duration such as 12h or 1.5 days, in days."""
    number, unit = re.fullmatch(r"(.*?)\s*([a-zA-Z]*)\s*", text, re.DOTALL).groups()
    value = _number(number) / A_DAY.get(unit, math.nan)
    if not 0 < value < math.inf:
        raise ValueError(
            f"must be a positive number with a unit ({NAMES}), such as 12h, got "
            f"{text!r}"
        )
    return value


def in_utc(text: str) -> datetime:
    """A time in ISO 8601, UTC if it names no zone."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def as_text(duration: float) -> str:
    """Days as text, in the greatest unit of which they are at least one."""
    units = [name for name in ("day", "hour", "minute") if duration * A_DAY[name] >= 1]
    name = units[0] if units else "second"
    number = rounded(duration * A_DAY[name])
    return f"{number} {name}{'' if number == '1' else 's'}"


def rounded(number: float) -> str:
    """A number as text of three digits: 0.0123, 91.6, 7,160,000."""
    number = float(f"{number:.3g}")
    return f"{number:,.0f}" if number >= 1000 else f"{number:g}"


def shown(text: str, most: int = 160) -> str:
    r"""Text that is safe to print: of one line, without control characters.

    Parameters
    ----------
    text : str
        Text that may come from anywhere; it could steer a terminal.
    most : int, default 160
        Characters of the text that are shown.

    Returns
    -------
    str
        With an escape in place of each character that is not printable.

    Examples
    --------
    >>> print(shown("\x1b[2J" + "a" * 200, 12))
    \x1b[2Jaaaaaaaa...
    """
    kept = text[:most] + "..." if len(text) > most else text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in kept
    )


def counted(n: int, name: str) -> str:
    """A number of things as text, of which `name` is one: 1 page, 1,000 pages."""
    return f"{n:,} {name}{'' if n == 1 else 's'}"
