"""Traces: CSV files of the times at which one page changed, with a checksum."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from recrawl.files import verified, write_checked
from recrawl.types import PathLike

__all__ = ["DATA", "DOWNLOADS", "Trace", "instant", "load", "read", "write"]

# A wheel carries the data files in the package, a checkout has them at its root.
_PACKAGED = Path(__file__).resolve().parents[1] / "data"
_CHECKOUT = Path(__file__).resolve().parents[3] / "data"
DATA, DOWNLOADS = (_PACKAGED, Path()) if _PACKAGED.is_dir() else (_CHECKOUT, _CHECKOUT)

_COMMENTS = ("title", "source", "licence", "start", "end")
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, eq=False)
class Trace:
    """Times at which one page changed.

    Parameters
    ----------
    name : str
        Name of the file without its suffix; what `load` takes.
    title : str
        Title of the page.
    times : ndarray of float, shape (n_events,)
        Change times in days since `start`, ascending, ties kept. Read-only.
    start, end : numpy.datetime64
        The window of observation, UTC, to the second.
    source, licence, sha256 : str
        Where the times come from, on what terms, and the checksum of the
        file.

    Examples
    --------
    >>> trace = load("debian_firefox_esr")
    >>> trace.times.size, round(trace.horizon)
    (597, 8275)
    """

    name: str
    title: str
    times: np.ndarray
    start: np.datetime64
    end: np.datetime64
    source: str
    licence: str
    sha256: str

    def __post_init__(self):
        self.times.flags.writeable = False

    @property
    def horizon(self) -> float:
        """Length of the window, days."""
        return float((self.end - self.start) / _DAY)

    @property
    def change_rate(self) -> float:
        """Changes per day over the window.

        A change at the very start of the window (the shipped traces begin
        with one) is not counted; ties are.
        """
        return np.count_nonzero(self.times > 0) / self.horizon


def load(name: str, *, folder: PathLike = DATA) -> Trace:
    """Read a trace of the data folder, verified against its checksum.

    Parameters
    ----------
    name : str
        Shipped are ``"debian_firefox_esr"`` (close to a Poisson process) and
        ``"bokeh_commits"`` (bursty); ``"wikipedia"`` once it is downloaded.
    folder : path, optional
        Where ``NAME.csv`` and ``NAME.csv.sha256`` are.

    Returns
    -------
    Trace
        The trace.

    Raises
    ------
    FileNotFoundError
        There is no trace of that name, or no checksum beside it.
    ValueError
        As in `read`.

    Examples
    --------
    >>> round(float(load("bokeh_commits").change_rate), 2)
    3.08
    """
    path = Path(folder) / f"{name}.csv"
    if not path.is_file():
        known = ", ".join(sorted(_names(path.parent))) or "none"
        raise FileNotFoundError(
            f"name must be one of the traces in {folder} ({known}), got {name!r}; "
            "to download 'wikipedia': "
            'paperlib wikipedia "Template talk:Did you know" 2020-04-01 2020-08-31'
        )
    checksum = Path(f"{path}.sha256")
    if not checksum.is_file():
        raise FileNotFoundError(
            f"{path} must have its checksum beside it, {checksum.name} is missing"
        )
    return read(path)


def _names(folder):
    """Names of the files in a folder that begin as traces do."""
    for path in folder.glob("*.csv"):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.readline().startswith(f"# {_COMMENTS[0]}: "):
                yield path.stem


def read(path: PathLike) -> Trace:
    """Read a trace from a file in the format of `write`.

    Parameters
    ----------
    path : path
        The file; verified if its checksum lies beside it.

    Returns
    -------
    Trace
        The trace.

    Raises
    ------
    ValueError
        The checksum differs (the file is corrupted or truncated), a comment
        or the line ``time`` is missing, a line is no time, times descend or
        leave the window, or there are none. The message has the number of
        the line where there is one.

    Examples
    --------
    >>> read(DATA / "debian_firefox_esr.csv").title
    "Debian's Firefox package"
    """
    path = Path(path)
    digest = verified(path)
    try:
        *lines, rest = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8: {error}") from None
    if rest:
        raise ValueError(
            f"{path} must end with a line break, it is truncated after {rest!r}"
        )
    comments, body = _header(path, lines)
    start, end = (instant(f"{path}, {key}", comments[key]) for key in ("start", "end"))
    if start >= end:
        raise ValueError(f"{path}: start must be before end, got {start} and {end}")
    times = [start]
    for number, line in enumerate(lines[body:], body + 1):
        times.append(instant(f"{path}, line {number}", line))
        if not times[-2] <= times[-1] <= end:
            raise ValueError(
                f"{path}, line {number}: times must ascend within the window, "
                f"got {line!r} after {times[-2]}Z"
            )
    if len(times) == 1:
        raise ValueError(f"{path} must hold at least one time, got none")
    return Trace(
        name=path.stem,
        title=comments["title"],
        times=(np.array(times[1:]) - start) / _DAY,
        start=start,
        end=end,
        source=comments["source"],
        licence=comments["licence"],
        sha256=digest,
    )


def _header(path, lines):
    """Comments of a file, as a dictionary, and the number of header lines."""
    comments, body = {}, 0
    while body < len(lines) and lines[body].startswith("#"):
        key, _, text = lines[body][2:].partition(": ")
        comments[key] = text
        body += 1
    missing = [f"# {key}: ..." for key in _COMMENTS if key not in comments]
    if lines[body : body + 1] != ["time"]:
        missing.append("time")
    if missing:
        raise ValueError(
            f"{path} must begin with comments and the line 'time', "
            f"missing: {', '.join(missing)}"
        )
    return comments, body + 1


def write(
    path: PathLike,
    times: ArrayLike,
    *,
    title: str,
    source: str,
    licence: str,
    start: np.datetime64 | None = None,
    end: np.datetime64 | None = None,
) -> Trace:
    """Write a trace and its checksum, each whole or absent.

    Parameters
    ----------
    path : path
        The file ``NAME.csv``; ``NAME.csv.sha256`` is written beside it.
    times : array_like, shape (n_events,)
        Times as datetime64[s], or as seconds since 1970, UTC, in any order.
    title, source, licence : str
        Title of the page, where the times come from, and on what terms.
    start, end : numpy.datetime64, optional
        The window; default from the first time to the last.

    Returns
    -------
    Trace
        As read back.

    Raises
    ------
    ValueError
        As in `read`.

    Examples
    --------
    >>> import tempfile
    >>> about = {"title": "A page", "source": "invented", "licence": "none"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trace = write(f"{folder}/page.csv", [0, 86400, 129600], **about)
    >>> trace.times.tolist()
    [0.0, 1.0, 1.5]
    """
    times = np.sort(np.asarray(times, dtype="datetime64[s]"))
    start = times[0] if start is None else start
    end = times[-1] if end is None else end
    comments = zip(
        _COMMENTS, (title, source, licence, f"{start}Z", f"{end}Z"), strict=True
    )
    lines = [f"# {key}: {' '.join(text.split())}" for key, text in comments]
    lines += ["time", *(f"{moment}Z" for moment in times)]
    write_checked(path, "\n".join(lines) + "\n")
    return read(path)


def instant(name: str, value: str, *, whole_day: bool = False) -> np.datetime64:
    """Convert a date or time to UTC, to the second.

    Parameters
    ----------
    name : str
        What the value is called in the error message.
    value : str, date, datetime or datetime64
        ISO 8601; UTC unless an offset is given.
    whole_day : bool, optional
        A date without a time means its last second.

    Returns
    -------
    numpy.datetime64
        The time.

    Raises
    ------
    ValueError
        The value is no date or time.

    Examples
    --------
    >>> str(instant("end", "2020-08-31", whole_day=True))
    '2020-08-31T23:59:59'
    """
    text = str(value)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{name} must be an ISO 8601 date or time, got {value!r}"
        ) from None
    if whole_day and len(text) <= len("2020-08-31"):
        moment += timedelta(days=1, seconds=-1)
    if moment.tzinfo:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(moment, "s")
