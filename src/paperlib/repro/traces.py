"""Real change times of web pages: the traces in data/, files in the same format, and revision histories from a MediaWiki."""

import json
import os
import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import requests
import scipy
from requests.exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    JSONDecodeError,
)
from tqdm import tqdm
from urllib3.util import Retry

from paperlib import __version__, checks, estimators
from paperlib.crawl_log import CrawlLog, read_crawl_log  # noqa: F401 (public here)
from paperlib.files import sha256, write_atomic
from paperlib.repro.bing import MalformedLinesWarning, bing  # noqa: F401 (public here)

DATA = Path(__file__).resolve().parents[3] / "data"

_COMMENTS = ("title", "source", "licence", "start", "end")
_DAY = np.timedelta64(1, "D")
_TRIES = 5
# statuses only: _ask sees to broken connections, cut-off answers and maxlag
_RETRY = Retry(
    None,
    connect=0,
    read=0,
    other=0,
    status=_TRIES - 1,
    status_forcelist=(429, 500, 502, 503, 504),
    backoff_factor=1,
)


class ApiError(RuntimeError):
    """An error that the MediaWiki API answered with; attributes `code` and `info`."""

    def __init__(self, code, info):
        super().__init__(f"the MediaWiki API answered {code}: {info}")
        self.code, self.info = code, info


class ApiWarning(UserWarning):
    """A warning that the MediaWiki API sent beside its answer."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Times at which one page changed.

    Parameters
    ----------
    name : str
        The file's name without suffix; what `load` takes.
    title : str
        Title of the page.
    times : array of float, shape (n_events,)
        Change times in days since `start`, ascending, ties kept. Read-only.
    start, end : datetime64[s]
        The window of observation, UTC.
    source, licence, sha256 : str
        Where the times come from, on what terms, and the checksum of the file.
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
    def horizon(self):
        """Length of the window, days."""
        return float((self.end - self.start) / _DAY)

    @property
    def change_rate(self):
        """Changes per day over the window. One at its very start (the shipped traces begin with one) is not counted; ties are."""
        return np.count_nonzero(self.times > 0) / self.horizon


def load(name, *, folder=DATA):
    """The trace ``NAME.csv`` of data/, verified against the checksum beside it.

    Shipped: ``"debian_firefox_esr"`` (close to Poisson) and ``"bokeh_commits"`` (bursty). ``"wikipedia"`` is there once downloaded.
    Raises FileNotFoundError for an unknown name or a missing checksum, ValueError as `read` does.
    """
    path = Path(folder) / f"{name}.csv"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.csv"))) or "none"
        raise FileNotFoundError(
            f"name must be one of the traces in {folder} ({known}), got {name!r}; to download 'wikipedia': "
            'paperlib wikipedia "Template talk:Did you know" 2020-04-01 2020-08-31'
        )
    if not _checksum(path).is_file():
        raise FileNotFoundError(
            f"{path} must have its checksum beside it, {_checksum(path).name} is missing"
        )
    return read(path)


def read(path):
    """A trace from any file in the format of `write`; verified if its checksum lies beside it.

    Raises ValueError, with the line's number where there is one: the checksum differs (corrupted, truncated), a comment or the line
    ``time`` is missing, a line is no time, times descend or leave the window, there are none.
    """
    path = Path(path)
    digest = sha256(path)
    if _checksum(path).is_file() and (
        expected := _checksum(path).read_text().split()[:1]
    ) != [digest]:
        raise ValueError(
            f"{path} is corrupted or truncated: its sha256 must be {''.join(expected)}, got {digest}; restore or delete it"
        )
    try:
        *lines, rest = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8: {error}") from None
    if rest:
        raise ValueError(
            f"{path} must end with a line break, it is truncated after {rest!r}"
        )
    body = next(
        (i for i, line in enumerate(lines) if not line.startswith("#")), len(lines)
    )
    comments = dict(line[2:].split(": ", 1) for line in lines[:body] if ": " in line)
    missing = [f"# {key}: ..." for key in _COMMENTS if key not in comments] + [
        "time"
    ] * (lines[body : body + 1] != ["time"])
    if missing:
        raise ValueError(
            f"{path} must begin with comments and the line 'time', missing: {', '.join(missing)}"
        )
    start, end = (
        _instant(f"{path}, {key}", comments.pop(key)) for key in ("start", "end")
    )
    if start >= end:
        raise ValueError(f"{path}: start must be before end, got {start} and {end}")
    times = [start]
    for number, line in enumerate(lines[body + 1 :], body + 2):
        times.append(_instant(f"{path}, line {number}", line))
        if not times[-2] <= times[-1] <= end:
            raise ValueError(
                f"{path}, line {number}: times must ascend within the window, got {line!r} after {times[-2]}Z"
            )
    if len(times) == 1:
        raise ValueError(f"{path} must hold at least one time, got none")
    texts = {key: comments[key] for key in ("title", "source", "licence")}
    return Trace(
        name=path.stem,
        times=(np.array(times[1:]) - start) / _DAY,
        start=start,
        end=end,
        sha256=digest,
        **texts,
    )


def write(path, times, *, title, source, licence, start=None, end=None):
    """Write ``NAME.csv`` and ``NAME.csv.sha256``, each whole or absent, and return the Trace as read back.

    `times` are datetime64[s] or seconds since 1970, UTC, shape (n_events,), in any order. The window is by default from the first to
    the last.
    """
    times = np.sort(np.asarray(times, dtype="datetime64[s]"))
    start, end = (
        (times[0] if start is None else start),
        (times[-1] if end is None else end),
    )
    comments = zip(
        _COMMENTS, (title, source, licence, f"{start}Z", f"{end}Z"), strict=True
    )
    lines = (
        [f"# {key}: {' '.join(text.split())}" for key, text in comments]
        + ["time"]
        + [f"{moment}Z" for moment in times]
    )
    write_atomic(path, "\n".join(lines) + "\n")
    write_atomic(_checksum(path), f"{sha256(path)}  {Path(path).name}\n")
    return read(path)


def population(source, n_pages, *, rng=None):
    """True change rates and importances of pages for experiments.

    Parameters
    ----------
    source : str or path
        "stand-in", or the folder of the Bing data set, see `bing`. From the latter, pages that changed at none or at all of their
        crawls are left out, as in section 6 of [aaai20]; the rates are maximum likelihood estimates, with the importances of the data.
        The stand-in, where the data are not at hand: change rates lognormal with median 0.15 and sigma 1.3, clipped to [0.0005, 7],
        and importances lognormal with sigma 1.2, independent. Results on it say nothing about real pages.
    n_pages : int
    rng : seed or numpy Generator

    Returns
    -------
    change_rate : array, shape (n_pages,), 1/day
    importance : array, shape (n_pages,), of mean 1
    """
    rate, importance, _ = _population(source, n_pages, rng)
    return rate, importance


def signalled_population(source, n_pages, *, rng=None):
    """Pages of `population` whose signals are as good as section 6.7 of [www25] has them, and the quality of those signals.

    In the Bing data those pages are labelled whose change rate is known from sitemaps; without them, one page in twenty. Precision and
    recall of labelled pages come from the top 5% of two laws, those of the others from below. The paper's laws, its figure 1, are
    private: the stand-in is Beta(0.703, 2.108) for precision (mean 0.25, 95% below 0.7), kept at 0.01 or above, and Beta(0.666, 2.665)
    for recall (mean 0.2, 95% below 0.6), independent.

    Arguments as in `population`.

    Returns
    -------
    change_rate, importance, precision, recall : arrays, shape (n_pages,); see `signals.SignalledPages.from_precision`
    labelled : bool array, shape (n_pages,)
    """
    rng = np.random.default_rng(rng)
    rate, importance, labelled = _population(source, n_pages, rng)
    if labelled is None:
        labelled = rng.random(n_pages) < 0.05
    rank = np.where(
        labelled,
        0.95 + 0.05 * rng.random((2, n_pages)),
        0.95 * rng.random((2, n_pages)),
    )
    precision, recall = scipy.special.betaincinv(
        [[0.703], [0.666]], [[2.108], [2.665]], rank
    )
    return rate, importance, np.maximum(precision, 0.01), recall, labelled


def _population(source, n_pages, rng):
    n_pages, rng = checks.count("n_pages", n_pages), np.random.default_rng(rng)
    if source == "stand-in":
        rate, importance = (
            np.clip(rng.lognormal(np.log(0.15), 1.3, n_pages), 5e-4, 7.0),
            rng.lognormal(0.0, 1.2, n_pages),
        )
        labelled = None
    else:
        log = bing(source, sample=2 * n_pages, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
            rate = estimators.mle(log.history)
        kept = np.flatnonzero((rate > 0) & (rate < np.inf))
        if kept.size < n_pages:
            raise ValueError(
                f"n_pages must be at most {kept.size}, the pages with an estimate in a sample of twice as many, got {n_pages}"
            )
        kept = rng.choice(kept, n_pages, replace=False)
        rate, importance = rate[kept], log.importance[kept]
        labelled = None if log.known_rate is None else ~np.isnan(log.known_rate[kept])
    return rate, importance / importance.mean(), labelled


def wikipedia(
    title,
    start,
    end,
    *,
    path,
    contact=None,
    api="https://en.wikipedia.org/w/api.php",
    progress=True,
):
    """Download the revision times of one page of a MediaWiki.

    Requests go out one after the other and give way to a busy server. Each answer is kept in ``PATH.partial``, so that the same call
    goes on after an interruption. A finished file for the same query is verified and returned without a request.

    Parameters
    ----------
    title : str
        Title of the page with its namespace. One that is younger than `start` counts as observed, without changes, from `start`.
    start, end : str, date, datetime or datetime64
        The window, both ends included, UTC unless an offset is given. A date as `end` means its last second. The window must be over.
    path : path
        The CSV to write, see `write`.
    contact : str, optional
        A mail address or web page of yours for the User-Agent; by default the environment variable ``PAPERLIB_CONTACT``.
    api : str
        Address of the wiki's api.php.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Trace

    Raises
    ------
    ValueError
        A title that is empty, holds ``|``, is invalid, or names no page, or none with revisions in the window; a time that cannot be
        read; a window that is empty or not over; no contact; a file at `path` that is no trace.
    ApiError
        Any other error that the API answers with.
    ConnectionError
        No usable answer in five tries. What was downloaded is kept.

    Warns
    -----
    ApiWarning
        The API sent a warning.
    """
    if not isinstance(title, str) or not title.strip(" _") or "|" in title:
        raise ValueError(
            f"title must be the title of one page, not empty and without '|', got {title!r}"
        )
    first, last = _instant("start", start), _instant("end", end, whole_day=True)
    if first >= last:
        raise ValueError(f"start must be before end, got {start!r} and {end!r}")
    if last > np.datetime64("now"):
        raise ValueError(f"end must not be in the future, got {end!r}")
    query = {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "prop": "revisions",
        "titles": title.replace("_", " ").strip(),
    }
    query |= {
        "rvprop": "ids|timestamp",
        "rvdir": "newer",
        "rvlimit": "max",
        "rvstart": f"{first}Z",
        "rvend": f"{last}Z",
        "maxlag": 5,
    }
    source = requests.Request("GET", api, params=query).prepare().url
    partial = Path(f"{path}.partial")
    if (
        Path(path).exists()
        and not partial.exists()
        and (trace := read(path)).source == source
    ):
        return trace
    batches = _kept(partial, source)
    if not batches or batches[-1]["continue"]:
        contact = contact or os.environ.get("PAPERLIB_CONTACT")
        if not contact:
            raise ValueError(
                "contact must be a mail address or web page of yours: Wikimedia's User-Agent policy asks for one and blocks programs "
                "without; pass contact=... or set the environment variable PAPERLIB_CONTACT"
            )
        partial.parent.mkdir(parents=True, exist_ok=True)
        with (
            requests.Session() as session,
            tqdm(desc=title, unit=" revisions", disable=not progress) as bar,
        ):
            session.headers["User-Agent"] = (
                f"paperlib/{__version__} ({contact}) requests/{requests.__version__}"
            )
            session.mount(api, requests.adapters.HTTPAdapter(max_retries=_RETRY))
            _download(session, api, query, source, partial, batches, bar)
    revisions = dict(revision for batch in batches for revision in batch["revisions"])
    if not revisions:
        partial.unlink()
        raise ValueError(
            f"title must name a page with revisions from {first} to {last}, got {title!r}"
        )
    times = [moment.removesuffix("Z") for moment in revisions.values()]
    licence = "times of revisions, no text; the terms of the wiki apply (Wikipedia: CC BY-SA 4.0)"
    trace = write(
        path,
        times,
        title=batches[0]["title"],
        source=source,
        licence=licence,
        start=first,
        end=last,
    )
    partial.unlink()
    return trace


def _download(session, api, query, source, partial, batches, bar):
    """Append the batches of revisions that are not yet there to the list `batches` and the file `partial`."""
    resumed = bool(batches)
    more = batches[-1]["continue"] if resumed else {}
    while more is not None:
        try:
            answer = _ask(session, api, query | more)
        except ApiError as error:
            if error.code != "badcontinue" or not resumed:
                raise
            partial.unlink()
            batches.clear()
            more, resumed = {}, False
            continue
        except requests.RequestException as error:
            raise ConnectionError(
                f"download stopped, {len(batches)} answers are kept and the same call goes on: {error}"
            ) from error
        page = _page(answer, query["titles"])
        more = answer.get("continue")
        revisions = [
            (revision["revid"], revision["timestamp"])
            for revision in page.get("revisions", ())
        ]
        batches.append(
            {
                "query": source,
                "title": page["title"],
                "revisions": revisions,
                "continue": more,
            }
        )
        with open(partial, "a", encoding="utf-8") as file:
            file.write(json.dumps(batches[-1]) + "\n")
        bar.update(len(revisions))
        for module, text in answer.get("warnings", {}).items():
            warnings.warn(
                f"{api}, {module}: {text['warnings']}", ApiWarning, stacklevel=3
            )


def _ask(session, api, query):
    """One answer of the API. Broken connections, cut-off answers and maxlag are asked again, `_TRIES` times in all."""
    pause = 0.0
    for attempt in range(_TRIES):
        time.sleep(pause)
        pause = 2.0**attempt
        try:
            response = session.get(api, params=query, timeout=60)
            response.raise_for_status()
            answer = response.json()
        except (
            requests.ConnectionError,
            requests.Timeout,
            ChunkedEncodingError,
            ContentDecodingError,
            JSONDecodeError,
        ) as error:
            failure = error
            continue
        errors = answer.get("errors") or (
            [answer["error"]] if "error" in answer else ()
        )
        if not errors:
            return answer
        failure = ApiError(
            errors[0]["code"], errors[0].get("info") or errors[0].get("text")
        )
        if failure.code != "maxlag":
            break
        pause = _RETRY.get_retry_after(response.raw) or pause
    raise failure


def _page(answer, title):
    """The one page of an answer."""
    pages = answer.get("query", {}).get("pages", ())
    pages = list(
        pages.values() if isinstance(pages, dict) else pages
    )  # a wiki that knows formatversion 1 only sends a dict
    if len(pages) != 1:
        raise ValueError(
            f"title must name one page, got {title!r}, for which the API answers with {len(pages)}"
        )
    if "invalid" in pages[0]:
        raise ValueError(
            f"title must be a valid title, got {title!r}: {pages[0].get('invalidreason', 'no reason given')}"
        )
    if "missing" in pages[0]:
        raise ValueError(f"title must name a page that exists, got {title!r}")
    return pages[0]


def _kept(partial, source):
    """The batches that an earlier call for the same query left in `partial`; what follows them there is cut off."""
    batches, size = [], 0
    if partial.exists():
        for line in partial.read_bytes().splitlines(keepends=True):
            try:
                batch = json.loads(line)
            except ValueError:
                break
            if not line.endswith(b"\n") or batch["query"] != source:
                break
            batches.append(batch)
            size += len(line)
        os.truncate(partial, size)
    return batches


def _instant(name, value, *, whole_day=False):
    """A date or time as datetime64[s], UTC; with `whole_day`, a mere date is its last second."""
    text = str(value)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{name} must be an ISO 8601 date or time, got {value!r}"
        ) from None
    if whole_day and len(text) <= 10:
        moment += timedelta(days=1, seconds=-1)
    return np.datetime64(
        moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment, "s"
    )


def _checksum(path):
    return Path(f"{path}.sha256")
