"""A local MediaWiki for tests.

One page with revisions, and answers as a real MediaWiki 1.39 was recorded to
give them.
"""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

TITLE = "Template talk:Did you know"


@dataclass
class Answer:
    """One HTTP answer; with `cut`, the body breaks off after so many bytes."""

    body: str | dict
    status: int = 200
    headers: dict = field(default_factory=dict)
    cut: int | None = None


def _error(code, info, **more):
    return Answer(
        {
            "error": {
                "code": code,
                "info": info,
                **more,
                "docref": "See api.php for API usage.",
            }
        },
        headers={"MediaWiki-API-Error": code},
    )


def _pages(*pages, **more):
    return Answer({"batchcomplete": True, "query": {"pages": list(pages)}} | more)


_LIMITS = {"limits": {"revisions": 500}}
_PAGE = {"pageid": 2, "ns": 11, "title": TITLE}
_REVISION = {"revid": 1204, "parentid": 1203, "timestamp": "2020-04-01T03:57:39Z"}
_LAG = {"Retry-After": "5", "X-Database-Lag": "-1", "MediaWiki-API-Error": "maxlag"}
_LAGGED = "Waiting for a database server: -1 second lagged."

MISSING = _pages({"ns": 0, "title": "No such page", "missing": True}, **_LIMITS)
MISSING_1 = Answer(
    {
        "batchcomplete": "",
        "query": {"pages": {"-1": {"ns": 0, "title": "No such page", "missing": ""}}},
    }
)
INVALID_REASON = 'The requested page title contains invalid characters: "[".'
INVALID = _pages(
    {"title": "Bad[title", "invalidreason": INVALID_REASON, "invalid": True}, **_LIMITS
)
NO_TITLES = Answer({"batchcomplete": True} | _LIMITS)
NO_REVISIONS = _pages(_PAGE)  # also what a window whose start is after its end gives
TWO_PAGES = _pages(
    {"ns": 0, "title": "No", "missing": True}, _PAGE | {"revisions": [_REVISION]}
)
FORMAT_1 = Answer(
    {"batchcomplete": "", "query": {"pages": {"2": _PAGE | {"revisions": [_REVISION]}}}}
)
LAST = _pages(_PAGE | {"revisions": [_REVISION]})
RVLIMIT_WARNING = _pages(
    _PAGE | {"revisions": [_REVISION]},
    warnings={
        "revisions": {
            "warnings": 'The value "5000" for parameter "rvlimit" '
            "must be between 1 and 500."
        }
    },
)
UNKNOWN_WARNING = _pages(
    _PAGE | {"revisions": [_REVISION]},
    warnings={"main": {"warnings": "Unrecognized parameter: foo."}},
)

BAD_CONTINUE = _error(
    "badcontinue",
    "Invalid continue param. "
    "You should pass the original value returned by the previous query.",
)
BAD_TIMESTAMP = _error(
    "badtimestamp", 'Invalid value "notadate" for timestamp parameter "rvstart".'
)
BAD_MIX = _error(
    "invalidparammix",
    '"titles", "pageids" or a generator was used to supply multiple pages, but ...',
)
BAD_ACTION = _error("badvalue", 'Unrecognized value for parameter "action": qqq.')
BAD_ACTION_PLAIN = Answer(
    {
        "errors": [
            {"code": "badvalue", "text": "Unrecognized value.", "module": "main"}
        ],
        "docref": "See api.php.",
    }
)
MAXLAG = Answer(
    {"error": {"code": "maxlag", "info": _LAGGED, "host": "", "lag": -1, "type": "db"}},
    headers=_LAG,
)
MAXLAG_PLAIN = Answer(
    {
        "errors": [
            {"code": "maxlag", "text": _LAGGED, "data": {"lag": -1}, "module": "main"}
        ]
    },
    headers=_LAG,
)

HTML = {"Content-Type": "text/html; charset=utf-8"}
TOO_MANY = Answer(
    "<!DOCTYPE html><title>Too many requests</title>",
    status=429,
    headers=HTML | {"Retry-After": "7"},
)
FORBIDDEN = Answer("<!DOCTYPE html><title>Forbidden</title>", status=403, headers=HTML)
SERVER_ERROR = Answer(
    "<!DOCTYPE html><title>Internal error</title>", status=500, headers=HTML
)
PORTAL = Answer("<!DOCTYPE html><title>Please log in</title>", headers=HTML)
BROKEN = Answer(LAST.body, cut=40)
CUT_JSON = Answer(json.dumps(LAST.body)[:40])


@dataclass
class Wiki:
    """The page's `revisions` (id, time), of which an answer has up to `limit`.

    `script` holds answers to give first, None for the page's own.
    """

    revisions: list
    limit: int = 3
    script: list = field(default_factory=list)
    queries: list = field(default_factory=list)
    headers: list = field(default_factory=list)
    most_at_once: int = 0
    api: str = ""

    def answer(self, query):
        """The page's revisions as the query asks for them."""
        found = sorted(
            (stamp, revid)
            for revid, stamp in self.revisions
            if query["rvstart"] <= stamp <= query["rvend"]
        )
        found = found if query.get("rvdir") == "newer" else found[::-1]
        at = int(query.get("rvcontinue", "0|0").split("|")[1])
        batch = [
            {"revid": revid, "parentid": 0, "timestamp": stamp}
            for stamp, revid in found[at : at + self.limit]
        ]
        body = {"query": {"pages": [_PAGE | ({"revisions": batch} if batch else {})]}}
        if at + self.limit < len(found):
            return Answer(
                {
                    "continue": {
                        "rvcontinue": f"20200401000000|{at + self.limit}",
                        "continue": "||",
                    }
                }
                | body
            )
        return Answer({"batchcomplete": True} | body)


@contextmanager
def serve(wiki):
    """Serve a Wiki on a free port of this machine; sets its `api`."""
    lock, now = threading.Lock(), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body in one write

        def do_GET(self):
            query = dict(parse_qsl(urlsplit(self.path).query))
            with lock:
                now.append(query)
                wiki.most_at_once = max(wiki.most_at_once, len(now))
                wiki.queries.append(query)
                wiki.headers.append(self.headers)
                answer = (wiki.script.pop(0) if wiki.script else None) or wiki.answer(
                    query
                )
            threading.Event().wait(
                0.002
            )  # long enough for a second request to arrive, were there one
            with lock:
                now.remove(query)
            body = (
                answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            ).encode()
            self.send_response(answer.status)
            for name, value in (
                {"Content-Type": "application/json; charset=utf-8"} | answer.headers
            ).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: answer.cut])
            self.close_connection = answer.cut is not None

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    wiki.api = f"http://127.0.0.1:{server.server_port}/w/api.php"
    try:
        yield wiki
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
