"""Revision times of one page of a MediaWiki, such as Wikipedia.

The API answers with up to 500 revisions at a time and a continuation. Every
answer is kept in a partial file, one line of JSON each, so that the same call
goes on after an interruption.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError
from tqdm import tqdm
from urllib3.util import Retry

from recrawl import __version__
from paperfigs.traces.files import Trace, instant, read, write
from recrawl.types import PathLike

__all__ = ["ApiError", "ApiWarning", "wikipedia"]

_TRIES = 5
# Bytes of one answer, of which some 50 kB are usual, and of all kept ones.
_MOST, _MOST_KEPT = 1 << 24, 1 << 30
_BLOCK = 1 << 16
# Statuses only: _ask retries broken connections, truncated answers and maxlag.
_RETRY = Retry(
    None,
    connect=0,
    read=0,
    other=0,
    status=_TRIES - 1,
    status_forcelist=(429, 500, 502, 503, 504),
    backoff_factor=1,
)
_BROKEN = (
    requests.ConnectionError,
    requests.Timeout,
    json.JSONDecodeError,
    UnicodeDecodeError,
    ChunkedEncodingError,
    ContentDecodingError,
)
_LICENCE = (
    "times of revisions, no text; the terms of the wiki apply (Wikipedia: CC BY-SA 4.0)"
)


class ApiError(RuntimeError):
    """An error that the MediaWiki API answered with.

    Parameters
    ----------
    code, info : str
        The error's code and its explanation; attributes, too.

    Examples
    --------
    >>> print(ApiError("badvalue", "Unrecognized value"))
    the MediaWiki API answered badvalue: Unrecognized value
    """

    def __init__(self, code: str, info: str) -> None:
        super().__init__(f"the MediaWiki API answered {code}: {info}")
        self.code, self.info = code, info


class ApiWarning(UserWarning):
    """A warning of the MediaWiki API, or of a page that is only a redirect.

    Examples
    --------
    >>> issubclass(ApiWarning, UserWarning)
    True
    """


def wikipedia(
    title: str,
    start: str,
    end: str,
    *,
    path: PathLike,
    contact: str | None = None,
    api: str = "https://en.wikipedia.org/w/api.php",
    progress: bool = True,
) -> Trace:
    """Download the revision times of one page of a MediaWiki.

    Requests go out one after the other and give way to a busy server. Each
    answer is kept in ``PATH.partial``, so that the same call goes on after an
    interruption. A finished file for the same query is verified and returned
    without a request.

    Parameters
    ----------
    title : str
        Title of the page with its namespace. A page that is younger than
        `start` counts as observed, without changes, from `start`.
    start, end : str, date, datetime or datetime64
        The window, both ends included, UTC unless an offset is given. A date
        as `end` means its last second. The window must be over.
    path : path
        The CSV file to write, see `traces.write`.
    contact : str, optional
        Your mail address or web page, for the User-Agent; default the
        environment variable ``PAPERLIB_CONTACT``.
    api : str, optional
        Address of the wiki's api.php, with its scheme, https or http. A server that
        redirects to another address is not followed.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Trace
        The revision times, as read back from the file.

    Raises
    ------
    ValueError
        A title that is empty, holds ``|``, is invalid, or names no page, or
        none with revisions in the window; a time that cannot be read; a
        window that is empty or not over; no contact; a file at `path` that
        is no trace; an `api` without a scheme, that redirects, or
        has no api.php; an answer that is too large; a title that names another
        page than in the kept answers, because the page was moved meanwhile.
    ApiError
        Any other error that the API answers with.
    ConnectionError
        No usable answer in five tries, or a refusal. What was downloaded is
        kept, and the message says what to do.

    Warns
    -----
    ApiWarning
        The API sent a warning, or the page is a redirect, as a page is after
        it was moved: the revisions are those of the redirect.

    Examples
    --------
    >>> wikipedia("A|B", "2020-04-01", "2020-08-31", path="page.csv")
    Traceback (most recent call last):
        ...
    ValueError: title must be the title of one page, not empty and without '|', ...
    """
    first, last = _window(title, start, end)
    address = urlsplit(api)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError(
            "api must be an address that begins with https:// or http://, such as "
            f"'https://en.wikipedia.org/w/api.php', got {api!r}"
        )
    query = {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "prop": "revisions|info",  # info tells of redirects
        "titles": title.replace("_", " ").strip(),
        "rvprop": "ids|timestamp",
        "rvdir": "newer",
        "rvlimit": "max",
        "rvstart": f"{first}Z",
        "rvend": f"{last}Z",
        "maxlag": 5,
    }
    source = requests.Request("GET", api, params=query).prepare().url
    partial = Path(f"{path}.partial")
    if Path(path).exists() and not partial.exists():
        trace = read(path)
        if trace.source == source:
            return trace
    batches = _kept(partial, source)
    if not batches or batches[-1]["continue"]:
        contact = contact or os.environ.get("PAPERLIB_CONTACT")
        if not contact:
            raise ValueError(
                "contact must be a mail address or web page of yours: Wikimedia's "
                "User-Agent policy asks for one and blocks programs without; pass "
                "contact=... or set the environment variable PAPERLIB_CONTACT"
            )
        partial.parent.mkdir(parents=True, exist_ok=True)
        with (
            requests.Session() as session,
            tqdm(desc=title, unit=" revisions", disable=not progress) as bar,
        ):
            session.headers["User-Agent"] = (
                f"paperlib/{__version__} ({contact}) requests/{requests.__version__}"
            )
            session.mount(api, HTTPAdapter(max_retries=_RETRY))
            _download(session, api, query, source, partial, batches, bar)
    # a revision that two answers hold counts once
    revisions = dict(revision for batch in batches for revision in batch["revisions"])
    if not revisions:
        partial.unlink()
        raise ValueError(
            f"title must name a page with revisions from {first} to {last}, "
            f"got {title!r}"
        )
    trace = write(
        path,
        [moment.removesuffix("Z") for moment in revisions.values()],
        title=batches[0]["title"],
        source=source,
        licence=_LICENCE,
        start=first,
        end=last,
    )
    partial.unlink()
    return trace


def _window(title, start, end):
    """The window of a query, after its arguments have been checked."""
    if not isinstance(title, str) or not title.strip(" _") or "|" in title:
        raise ValueError(
            "title must be the title of one page, not empty and without '|', "
            f"got {title!r}"
        )
    first = instant("start", start)
    last = instant("end", end, whole_day=True)
    if first >= last:
        raise ValueError(f"start must be before end, got {start!r} and {end!r}")
    if last > np.datetime64("now"):
        raise ValueError(f"end must not be in the future, got {end!r}")
    return first, last


def _download(session, api, query, source, partial, batches, bar):
    """Append the missing answers to the list `batches` and to `partial`."""
    resumed = bool(batches)
    more = batches[-1]["continue"] if resumed else {}
    while more is not None:
        try:
            answer = _ask(session, api, query | more)
        except ApiError as error:
            if error.code != "badcontinue" or not resumed:
                raise
            # the continuation of an earlier call is no longer valid: start over
            partial.unlink()
            batches.clear()
            more, resumed = {}, False
            continue
        except (requests.RequestException, *_BROKEN) as error:
            raise ConnectionError(
                f"download stopped, {len(batches)} answers are kept: {_advice(error)}"
            ) from error
        page = _page(answer, query["titles"])
        revisions = _revisions(page, query, api)
        if batches and page["pageid"] != batches[-1].get("pageid"):
            partial.unlink()
            raise ValueError(
                f"title must name one page throughout, got {query['titles']!r}, which "
                "was moved during the download: give the page's new title; what was "
                "downloaded is deleted"
            )
        if page.get("redirect"):
            warnings.warn(
                f"{api}: {page['title']!r} is a redirect; its revisions are not those "
                "of the page that it leads to: give the title of that page",
                ApiWarning,
                stacklevel=3,
            )
        more = answer.get("continue")
        batch = {"query": source, "title": page["title"], "pageid": page["pageid"]}
        batches.append(batch | {"revisions": revisions, "continue": more})
        with open(partial, "a", encoding="utf-8") as file:
            file.write(json.dumps(batches[-1]) + "\n")
            if file.tell() > _MOST_KEPT:
                raise ValueError(
                    f"the answers of {api} must be at most {_MOST_KEPT} bytes together"
                )
        bar.update(len(revisions))
        for module, text in answer.get("warnings", {}).items():
            warnings.warn(
                f"{api}, {module}: {text['warnings']}", ApiWarning, stacklevel=3
            )


def _ask(session, api, query):
    """One answer of the API, after up to `_TRIES` requests."""
    pause = 0.0
    for attempt in range(_TRIES):
        time.sleep(pause)
        pause = 2.0**attempt
        try:
            answer, response = _answer(session, api, query)
        except _BROKEN as error:
            failure = error
            continue
        # one error, or a list of them, as errorformat has it
        errors = answer.get("errors") or [answer.get("error")]
        if not errors[0]:
            return answer
        error = errors[0]
        failure = ApiError(error["code"], error.get("info") or error.get("text"))
        if failure.code != "maxlag":
            break
        pause = _RETRY.get_retry_after(response.raw) or pause
    raise failure


def _answer(session, api, query):
    """One answer, as it was decoded and as it came; redirects are not followed."""
    given = {"params": query, "timeout": 60}
    with session.get(api, **given, allow_redirects=False, stream=True) as response:
        if response.is_redirect:
            raise ValueError(
                f"api must be the address that answers, got {api!r}, which redirects "
                f"to {response.headers['Location']!r}; give that one if you trust it"
            )
        response.raise_for_status()
        content = bytearray()
        for block in response.iter_content(_BLOCK):
            content += block
            if len(content) > _MOST:
                raise ValueError(
                    f"an answer of {api} must be at most {_MOST} bytes, got more: "
                    "api must be the address of the api.php of a MediaWiki"
                )
        answer = json.loads(content)
        if not isinstance(answer, dict):
            raise json.JSONDecodeError("no object", content.decode(), 0)
        return answer, response


def _advice(error):
    """What happened to a request, and what to do."""
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return (
            "the answer is not JSON; if api is not the address of an api.php, or a "
            "network asks for a log-in, mend that; then the same call goes on "
            f"({error})"
        )
    response = getattr(error, "response", None)
    status = None if response is None else response.status_code
    if status in (404, 410):
        todo = "nothing is at this address: api must be that of the wiki's api.php"
    elif status in (401, 403):
        todo = "the server refuses: give a contact that is yours, or wait, or ask it"
    else:
        todo = "the same call goes on"
    return f"{todo} ({error})"


def _revisions(page, query, api):
    """Number and time of each revision that an answer gives of a page."""
    try:
        found = [
            (each["revid"], each["timestamp"]) for each in page.get("revisions", ())
        ]
        times = [np.datetime64(time.removesuffix("Z")) for _, time in found]
        first, last = (np.datetime64(query[k][:-1]) for k in ("rvstart", "rvend"))
        good = all(first <= time <= last for time in times)
        good = (
            good and isinstance(page["pageid"], int) and isinstance(page["title"], str)
        )
    except (TypeError, KeyError, AttributeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"api must be the api.php of a MediaWiki, got {api!r}, whose answer is not "
            "a page with its pageid, and revisions in the window"
        )
    return found


def _page(answer, title):
    """The one page of an answer."""
    query = answer.get("query", {})
    pages = query.get("pages", ()) if isinstance(query, dict) else ()
    if isinstance(pages, dict):  # a wiki that knows formatversion 1 only
        pages = list(pages.values())
    if len(pages) != 1:
        raise ValueError(
            f"title must name one page, got {title!r}, for which the API answers with "
            f"{len(pages)}"
        )
    [page] = pages
    page = page if isinstance(page, dict) else {}
    if "invalid" in page:
        reason = page.get("invalidreason", "no reason given")
        raise ValueError(f"title must be a valid title, got {title!r}: {reason}")
    if "missing" in page:
        raise ValueError(f"title must name a page that exists, got {title!r}")
    return page


def _kept(partial, source):
    """Answers that an earlier call for the same query left in `partial`.

    What follows the last whole answer there is cut off.
    """
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
