"""Revision times of one page of a MediaWiki, such as Wikipedia."""

import numpy as np
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from paperfigs import traces
from paperfigs.files import PathLike

# Waits as long as the server asks for in Retry-After.
_RETRY = Retry(4, status_forcelist=(429, 500, 502, 503, 504), backoff_factor=1)
_LICENCE = (
    "times of revisions, no text; the terms of the wiki apply (Wikipedia: CC BY-SA 4.0)"
)


def download(
    title: str,
    start: str,
    end: str,
    *,
    contact: str,
    path: PathLike = traces.DATA / "wikipedia.csv",
    api: str = "https://en.wikipedia.org/w/api.php",
) -> traces.Trace:
    """Download the revision times of one page and write them as a trace.

    Requests follow one another, and wait if the server is busy.

    Parameters
    ----------
    title : str
        Title of the page with its namespace.
    start, end : str
        The window, UTC, in ISO 8601; a date means its first second.
    contact : str
        Your mail address or web page: Wikimedia blocks programs without one.
    path : path, optional
        The CSV file to write; by default ``wikipedia.csv`` beside the data.
    api : str, optional
        Address of the wiki's api.php.

    Returns
    -------
    Trace
        The revision times, as read back from the file.

    Raises
    ------
    ValueError
        The title names no page, or a page without revisions in the window.
    RuntimeError
        Any other error in the answer of the API.
    requests.RequestException
        No usable answer in five tries.
    """
    first = np.datetime64(start, "s")
    last = np.datetime64(end, "s")
    query = {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "prop": "revisions",
        "titles": title,
        "rvprop": "timestamp",
        "rvdir": "newer",
        "rvlimit": "max",
        "rvstart": f"{first}Z",
        "rvend": f"{last}Z",
    }
    moments = []
    more = {}
    with requests.Session() as session:
        session.headers["User-Agent"] = f"paperfigs ({contact})"
        session.mount(api, HTTPAdapter(max_retries=_RETRY))
        while more is not None:
            response = session.get(api, params=query | more, timeout=60)
            response.raise_for_status()
            answer = response.json()
            if "error" in answer:
                raise RuntimeError(f"the wiki answers {answer['error']}")
            page = answer["query"]["pages"][0]
            for revision in page.get("revisions", ()):
                moments.append(revision["timestamp"].removesuffix("Z"))
            more = answer.get("continue")
    if not moments:
        raise ValueError(
            f"title must name a page with revisions from {first} to {last}, "
            f"got {title!r}"
        )
    return traces.write(
        path,
        moments,
        window=(first, last),
        title=page["title"],
        source=response.url,
        licence=_LICENCE,
    )
