"""Real change times of web pages, and populations of pages for experiments.

A trace is a CSV file of the times at which one page changed, with its
checksum beside it; two are shipped, and `wikipedia` downloads others. `panel`
gives the change times of many pages, `jodie` reads them from a file.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from paperlib import checks, estimators
from paperlib.crawl_log import CrawlLog, read_crawl_log
from paperlib.files import verified, write_checked
from paperlib.repro.bing import MalformedLinesWarning, bing
from paperlib.types import Array, PathLike, Seed

__all__ = [
    "DATA",
    "DOWNLOADS",
    "CrawlLog",
    "MalformedLinesWarning",
    "Trace",
    "bing",
    "instant",
    "load",
    "population",
    "read",
    "read_crawl_log",
    "signalled_population",
    "write",
]

# A wheel carries the data files in the package, a checkout has them at its root.
_PACKAGED = Path(__file__).resolve().parents[1] / "data"
_CHECKOUT = Path(__file__).resolve().parents[3] / "data"
DATA, DOWNLOADS = (_PACKAGED, Path()) if _PACKAGED.is_dir() else (_CHECKOUT, _CHECKOUT)

_COMMENTS = ("title", "source", "licence", "start", "end")
_DAY = np.timedelta64(1, "D")


def __getattr__(name):
    """Names of modules that build on this one: imported when used."""
    if name in ("ApiError", "ApiWarning", "wikipedia"):
        from paperlib.repro import mediawiki

        return getattr(mediawiki, name)
    if name in ("Panel", "jodie", "panel"):
        from paperlib.repro import panels

        return getattr(panels, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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


def population(
    source: PathLike, n_pages: int, *, rng: Seed = None
) -> tuple[Array, Array]:
    """True change rates and importances of pages, for experiments.

    From the Bing data, pages that changed at none or at all of their crawls
    are left out, as in section 6 of [aaai20]_. The rates are maximum
    likelihood estimates, and the importances those of the data. Where the
    data are not at hand there is a stand-in: change rates lognormal with
    median 0.15 and sigma 1.3, clipped to [0.0005, 7], and importances
    lognormal with sigma 1.2, independent. Results on it say nothing about
    real pages. From all pages of `panel`, a sample is drawn with replacement:
    changes per day and importances, which are real but not of the same pages.

    Parameters
    ----------
    source : str or path
        "stand-in", "panel", or the folder of the Bing data set, see `bing`.
    n_pages : int
        Number of pages.
    rng : None, int or numpy.random.Generator, optional
        Source of the sample, or of the stand-in.

    Returns
    -------
    change_rate : ndarray of float, shape (n_pages,)
        True change rates, 1/day.
    importance : ndarray of float, shape (n_pages,)
        Importances, with mean 1.

    Raises
    ------
    ValueError
        A sample of twice `n_pages` URLs has fewer pages with an estimate.

    Examples
    --------
    >>> change_rate, importance = population("stand-in", 3, rng=1)
    >>> change_rate.round(3).tolist()
    [0.235, 0.436, 0.23]
    """
    rate, importance, _ = _population(source, n_pages, rng)
    return rate, importance


def signalled_population(
    source: PathLike, n_pages: int, *, rng: Seed = None
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Pages of `population` with change-indicating signals of realistic quality.

    Precision and recall follow section 6.7 of [www25]_. In the Bing data
    those pages are labelled whose change rate is known from sitemaps; without
    them, one page in twenty is. Precision and recall of labelled pages come
    from the top 5% of two distributions, those of the others from the rest.
    The paper's distributions, its figure 1, are private. The stand-in is
    Beta(0.703, 2.108) for precision (mean 0.25, 95% below 0.7), kept at 0.01
    or above, and Beta(0.666, 2.665) for recall (mean 0.2, 95% below 0.6),
    independent.

    Parameters
    ----------
    source : str or path
        As in `population`.
    n_pages : int
        Number of pages.
    rng : None, int or numpy.random.Generator, optional
        Source of everything that is drawn.

    Returns
    -------
    change_rate, importance : ndarray of float, shape (n_pages,)
        As in `population`.
    precision, recall : ndarray of float, shape (n_pages,)
        Quality of the signals, see `signals.SignalledPages.from_precision`.
    labelled : ndarray of bool, shape (n_pages,)
        Pages whose signals are of high quality.

    Examples
    --------
    >>> *_, precision, recall, labelled = signalled_population("stand-in", 100, rng=1)
    >>> int(labelled.sum()), bool(precision[labelled].min() > 0.69)
    (8, True)
    """
    rng = np.random.default_rng(rng)
    rate, importance, labelled = _population(source, n_pages, rng)
    if labelled is None:
        labelled = rng.random(n_pages) < 0.05
    top = 0.95 + 0.05 * rng.random((2, n_pages))
    rank = np.where(labelled, top, 0.95 * rng.random((2, n_pages)))
    precision, recall = scipy.special.betaincinv(
        [[0.703], [0.666]], [[2.108], [2.665]], rank
    )
    return rate, importance, np.maximum(precision, 0.01), recall, labelled


def _population(source, n_pages, rng):
    """Change rates, importances, and labels where there are any."""
    n_pages, rng = checks.count("n_pages", n_pages), np.random.default_rng(rng)
    labelled = None
    if source == "stand-in":
        rate = np.clip(rng.lognormal(np.log(0.15), 1.3, n_pages), 5e-4, 7.0)
        importance = rng.lognormal(0.0, 1.2, n_pages)
    elif source == "panel":
        from paperlib.repro import panels

        panel = panels.panel(min_changes=1)
        drawn = rng.integers(panel.n_pages, size=n_pages)
        rate, importance = panel.change_rate[drawn], panel.importance[drawn]
    else:
        log = bing(source, sample=2 * n_pages, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
            rate = estimators.mle(log.history)
        kept = np.flatnonzero((rate > 0) & (rate < np.inf))
        if kept.size < n_pages:
            raise ValueError(
                f"n_pages must be at most {kept.size}, the pages with an estimate in "
                f"a sample of twice as many, got {n_pages}"
            )
        kept = rng.choice(kept, n_pages, replace=False)
        rate, importance = rate[kept], log.importance[kept]
        if log.known_rate is not None:
            labelled = ~np.isnan(log.known_rate[kept])
    return rate, importance / importance.mean(), labelled
