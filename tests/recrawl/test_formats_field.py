"""Files as programs really write them: each was once read wrongly, or ended a run.

An expected row is page, day of the month of the fetch, and whether it changed.
"""

import csv
import gzip
import json
import re
import shlex
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl import Source
from recrawl.log.reading import gathered
from tests.recrawl.crawl_logs import all_pages, parquet, recorded, table

WWW = "https://www.example.org/"
PAGE = WWW + "page"
A, B, C = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ23456" + end for end in "ABC")
NOTHING = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"  # SHA-1 of an empty body
LEGEND = " CDX N b a m s k r M S V g\n"
AS_OF = datetime(2026, 9, 1, tzinfo=UTC)
UNCHANGED = [(PAGE, 1, "false"), (PAGE, 2, "false"), (PAGE, 3, "true")]
CHANGED = [(PAGE, 1, "false"), (PAGE, 2, "true"), (PAGE, 3, "true")]
ENDS = [(PAGE, 1, "false"), (PAGE, 3, "true")]


def lines(*texts):
    return "\n".join(texts) + "\n"


def day(number, month=8):
    return int(datetime(2026, month, number, tzinfo=UTC).timestamp())


def cdx(day, status=200, digest=A, mime="text/html", key="org,example)/page"):
    rest = "- - 0 0 part.warc.gz"
    return f"{key} 202608{day:02}000000 {PAGE} {mime} {status} {digest} {rest}"


def three_cdx(*middle, legend=LEGEND):
    return legend + lines(cdx(1), *middle, cdx(3, digest=B))


def cdx_revisit(status, digest=A, legend=LEGEND):
    return three_cdx(cdx(2, status, digest, "warc/revisit"), legend=legend)


def cdxj(*captures, stamp="000000"):
    """Captures: day, digest, and other keys."""
    return lines(
        *(
            f"{more.pop('key', 'org,example)/page')} 202608{day:02}{stamp} "
            + json.dumps({"url": PAGE, "mime": "text/html", "status": "200"} | more)
            for day, more in captures
        )
    )


def with_post(**post):
    """A page that never changes, and the answers to a POST after each fetch."""
    own = [(day, {"digest": A}) for day in (1, 2)]
    other = [(day, {"digest": digest} | post) for day, digest in ((1, B), (2, C))]
    return cdxj(*own, *other, (3, {"digest": B}))


def wayback(*captures):
    names = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest"]
    rows = [["k", f"202608{day:02}000000", PAGE, *rest] for day, *rest in captures]
    return "[" + ",\n".join(json.dumps(row) for row in [names, *rows]) + "]\n"


def crawl_log(*middles, json_of="{}"):
    """Lines of a crawl.log whose fields from the MIME type on are given."""
    return lines(
        *(
            f"2026-08-{day:02}T00:00:09.000Z   200        900 {PAGE} B {WWW} {middle} "
            f"202608{day:02}000000000+120 sha1:{digest} {WWW} {note} {json_of}"
            for day, middle, digest, note in middles
        )
    )


def three_lines(note, value=A):
    """A crawl.log whose second line has a note."""
    return crawl_log((1, "- -", A, "-"), (2, "- -", value, note), (3, "- -", B, "-"))


def segment(*fetches):
    """A dump of a segment of Nutch, from day, signature and why the body was cut."""
    said = "http.content.truncated"
    return lines(*(
        f"Recno:: {k}\nURL:: {PAGE}\n\nCrawlDatum::\nStatus: 33 (fetch_success)\n"
        f"Fetch time: 2026-08-0{k} 00:00:00 UTC\nSignature: {signature}\n\nContent::\n"
        f"metadata: {cut and f'{said}=true {said}.reason={cut}'}\n"
        for k, signature, cut in fetches
    ))  # fmt: skip


def truncated(kind):
    """The second of four fetches of a page is cut off, in each format that says so."""
    whole = (1, A, None), (3, A, None), (4, B, None)
    days = sorted([*whole, (2, C, kind)])
    note = {"length": "lenTrunc", "time": "timeTrunc,3t"}.get(kind, "headerTrunc")
    cut = [(day, {"digest": d} | ({"truncated": c} if c else {})) for day, d, c in days]
    return {
        "warc": [
            record(
                "response", k, k, **digest(d), **({"WARC_Truncated": c} if c else {})
            )
            for k, d, c in days
        ],
        "cdxj": cdxj(*cut),
        "commoncrawl": "".join(
            json.dumps(json.loads(answer(k, A)) | more) + "\n" for k, more in cut
        ),
        "crawl-log": crawl_log(
            *((k, "- -", d, note if c else "-") for k, d, c in days)
        ),
        "readseg": segment(*((k, d, c or "") for k, d, c in days)),
    }


WHOLE = [(PAGE, 1, "false"), (PAGE, 3, "false"), (PAGE, 4, "true")]
MIMES = ["text/html -", " -", "text/html; charset=utf-8 #004"]


def storm(*names, last="2026-08-03T00:00:00Z"):
    values = "2026-08-02T00:00:00Z", last, "1440", "200"
    metadata = {name: [value] for name, value in zip(names, values, strict=False)}
    page = {"url": PAGE, "status": "FETCHED", "metadata": metadata}
    page["nextFetchDate"] = "2099-12-31T00:00:00Z"
    return json.dumps({"_source": page}) + "\n"


def frontier(*names):
    values = "2026-08-02T00:00:00Z", "2026-08-03T00:00:00Z", "200"
    metadata = {
        name: {"values": [value]} for name, value in zip(names, values, strict=False)
    }
    return json.dumps({"known": {"info": {"url": PAGE, "metadata": metadata}}}) + "\n"


def answer(day, digest):
    capture = {"urlkey": "k", "timestamp": f"202608{day:02}000000", "url": PAGE}
    return json.dumps(capture | {"status": "200", "digest": digest}) + "\n"


def record(kind, day, n, body="x", size=0, **headers):
    """One record of a WARC file, whose Content-Length is off by `size`."""
    block = f"{headers.pop('http', 'HTTP/1.1 200 OK')}\r\nHost: x\r\n\r\n{body}\r\n"
    named = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    return (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {PAGE}\r\n"
        f"WARC-Date: 2026-08-{day:02}T00:00:00Z\r\nWARC-Record-ID: <urn:x:{n}>\r\n"
        f"{named}Content-Type: application/http\r\n"
        f"Content-Length: {len(block) + size}\r\n\r\n{block}\r\n\r\n"
    ).encode()


def digest(value):
    return {"WARC_Payload_Digest": f"sha1:{value}"}


def warc(second, *more):
    return [record("response", 1, 1, **digest(A)), second, *more,
            record("response", 3, 9, **digest(B))]  # fmt: skip


GET = record("response", 2, 2, **digest(A))


def another(**headers):
    return record("response", 2, 4, **digest(C), **headers)


def warc_revisit(profile, value=A):
    headers = digest(value) if value else {}
    profile = f"http://netpreserve.org/warc/1.0/revisit/{profile}"
    return warc(record("revisit", 2, 2, WARC_Profile=profile, **headers))


def warc_post(first, then, method="POST"):
    """The second of three fetches has an answer to another method beside it."""
    kinds = {
        "response": record("response", 2, 5, WARC_Concurrent_To="<urn:x:6>",
                           **digest(C)),
        "request": record("request", 2, 6, http=f"{method} /page HTTP/1.1",
                          WARC_Concurrent_To="<urn:x:5>"),
    }  # fmt: skip
    get = record("response", 2, 4, **digest(A))
    asked = record(
        "request", 2, 3, http="GET / HTTP/1.1", WARC_Concurrent_To="<urn:x:4>"
    )
    return warc(get, asked, kinds[first], kinds[then])


FETCHES = {
    # a revisit is a good fetch, whatever its status column holds
    **{f"cdx-revisit-{s}": (cdx_revisit(s), UNCHANGED) for s in ("0", "-1", "-", 200)},
    "cdx-revisit-404": (cdx_revisit(404), ENDS),
    "cdx-failed-0": (three_cdx(cdx(2, 0)), ENDS),
    "cdx-revisit-no-digest": (cdx_revisit("-", "-"), UNCHANGED),
    "cdx-revisit-of-nothing": (cdx_revisit("-", NOTHING), UNCHANGED),
    "cdx-revisit-changed": (cdx_revisit(0, C), CHANGED),
    **{
        f"warc-{profile}-{value}": (warc_revisit(profile, value), UNCHANGED)
        for profile, value in [
            ("identical-payload-digest", A),
            ("uri-agnostic-identical-payload-digest", A),
            ("server-not-modified", ""), ("server-not-modified", NOTHING),
            ("something-new", A), ("something-new", ""),
        ]
    },
    "crawl-log-not-modified": (
        three_lines("warcRevisit:notModified", NOTHING), UNCHANGED
    ),
    # files that were joined: each part has its own names
    "cdx-two-legends": (
        three_cdx(" CDX N b a m s c k",
                  f"org,example)/page 20260802000000 {PAGE} text/html 200 {C} {A}",
                  LEGEND.rstrip()),
        UNCHANGED,
    ),
    # a status by another name, whose page is an error
    **{
        f"{format}-{name}": (
            "".join(make(k, d, {"status": None, name: s})
                    for k, d, s in ((1, A, 200), (2, C, "500"), (3, B, "200"))),
            ENDS,
        )
        for name in ("statuscode", "status_code")
        for format, make in (
            ("cdxj", lambda k, d, more: cdxj((k, {"digest": d} | more))),
            ("commoncrawl",
             lambda k, d, more: json.dumps(json.loads(answer(k, d)) | more) + "\n"),
        )
    },
    "wayback-status": (
        wayback((1, "text/html", "200", A), (2, "text/html", "500", C),
                (3, "text/html", "200", B)).replace('"statuscode"', '"Status"'),
        ENDS,
    ),
    "wayback-other-names": (
        wayback((1, "text/html", "200", A)) + json.dumps(
            [["digest", "timestamp", "original", "urlkey"],
             [A, "20260802000000", PAGE, "k"], [B, "20260803000000", PAGE, "k"]]),
        UNCHANGED,
    ),
    "wayback-lines": (
        "\ufeff" + wayback((1, "text/html", "200", A), (2, "text/html", "200", A),
                           (3, "text/html", "200", B))[1:-2].replace("],", "]"),
        UNCHANGED,
    ),
    # a part of a page, and what is none
    "cdx-206": (three_cdx(cdx(2, 206, C)), ENDS),
    "warc-206": (
        warc(record("response", 2, 2, http="HTTP/1.1 206 Part", **digest(C))), ENDS
    ),
    "table-206": (
        lines("url,time,status,digest",
              *(f"{PAGE},2026-08-0{k},{s},{d}"
                for k, s, d in ((1, 200, A), (2, 206, C), (3, 200, B)))),
        ENDS,
    ),
    "crawl-log-abort": (three_lines("midFetchAbort", C), ENDS),
    **{
        f"cdxj-truncated-{word}": (
            cdxj((1, {"digest": A}), (2, {"digest": A, "truncated": word}),
                 (3, {"digest": B})),
            UNCHANGED,
        )
        for word in (False, None, "None", "null", "no", "0")
    },
    # a revisit stands for a whole body; parts of one length are compared
    "warc-truncated-revisit": (
        warc(record("revisit", 2, 2, **digest(A), WARC_Truncated="length")), UNCHANGED
    ),
    "warc-truncated-all": (
        [record("response", k, k, **digest(value), WARC_Truncated="length")
         for k, value in enumerate([A, A, B], 1)],
        UNCHANGED,
    ),
    "readseg-truncated-all": (
        segment(*((k, d, "length") for k, d in enumerate([A, A, B], 1))), UNCHANGED
    ),
    "warc-truncated-false": (
        warc(record("response", 2, 2, WARC_Truncated="False", **digest(A))), UNCHANGED
    ),
    # answers to other methods are not the page
    "cdxj-method": (with_post(method="POST"), UNCHANGED),
    "cdxj-key": (with_post(key="org,example)/page?__wb_method=post&q=1"), UNCHANGED),
    "cdxj-head": (with_post(method="HEAD"), UNCHANGED),
    "cdx-key": (
        three_cdx(cdx(2), cdx(2, 200, C, key="org,example)/page?__wb_method=POST")),
        UNCHANGED,
    ),
    "warc-post-request-first": (warc_post("request", "response"), UNCHANGED),
    "warc-post-request-last": (warc_post("response", "request"), UNCHANGED),
    "warc-head": (warc_post("response", "request", "HEAD"), UNCHANGED),
    "crawl-log-post": (
        three_lines("-") + crawl_log((2, "- -", C, "-"), json_of='{"method":"POST"}'),
        UNCHANGED,
    ),
    # fields are recognised, not counted
    **{
        f"crawl-log-mime-{mime}": (
            crawl_log(*((k, mime, d, "-") for k, d in ((1, A), (2, B), (3, C)))),
            CHANGED,
        )
        for mime in MIMES
    },
    "cdx-without-legend": (cdx_revisit(200, legend=""), UNCHANGED),
    "cdxj-17-digits": (
        cdxj(*((k, {"digest": d}) for k, d in ((1, A), (2, A), (3, B))),
             stamp="000000000"),
        UNCHANGED,
    ),
    # dates that cannot be, and one bad item
    "cdx-year-0": (three_cdx(cdx(2).replace("20260802", "00000000")), ENDS),
    **{
        f"warc-length-{size}": (
            warc(record("response", 2, 2, size=size, **digest(A))), UNCHANGED
        )
        for size in (-1, -7)
    },
    **{
        f"warc-length-{size}": (
            warc(GET, re.sub(rb"(Content-Length: ).*", rb"\g<1>" + size.encode(),
                             another())),
            UNCHANGED,
        )
        for size in ("1" * 19, "1" * 20, "1" * 5000, "-5", "1e9", "9" * 15)
    },
    "warc-long-line": (warc(GET, another(X="x" * 70_000)), UNCHANGED),
    "warc-many-lines": (warc(GET, another(X="x\r\na: b" * 20_000)), UNCHANGED),
    "warc-date": (warc(GET.replace(b"2026-08", b"0000-00")), ENDS),
}  # fmt: skip


def put(path, content):
    """Write a text, or the records of a WARC file, packed one by one or plain."""
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, str):
        path.write_text(content, newline="")
    else:
        packed = map(gzip.compress, content) if path.suffix == ".gz" else content
        path.write_bytes(b"".join(packed))
    return path


def converted(path, folder, **options):
    """Rows of a log with a bit: all columns as text."""
    output = folder / "converted.csv"
    recorded(recrawl.convert, Source(path, **options), output, force=True)
    with open(output, newline="") as file:
        return [row for row in csv.DictReader(file) if row["changed"]]


def counts(path, folder, **options):
    """What became of the rows of a log."""
    (_, found), _ = recorded(
        recrawl.convert, path, folder / "rows.csv", force=True, **options
    )
    return dict(found)


def short(rows):
    return [(row["url"], int(row["time"][8:10]), row["changed"]) for row in rows]


def spans(rows):
    """When each interval began, when it ended, and its bit."""
    return [(row["start"][5:16], row["time"][5:16], row["changed"]) for row in rows]


@pytest.mark.parametrize("name", FETCHES)
def test_fetches(tmp_path, name):
    content, expected = FETCHES[name]
    for suffix in ("", ".gz") if isinstance(content, list) else ("",):
        path = put(tmp_path / f"log{suffix}", content)
        assert short(converted(path, tmp_path)) == expected


@pytest.mark.parametrize("kind", ["disconnect", "time", "unspecified", "length"])
@pytest.mark.parametrize(
    "name", ["warc", "cdxj", "commoncrawl", "crawl-log", "readseg"]
)
def test_the_digest_of_a_part_is_not_that_of_the_page(tmp_path, name, kind):
    path = put(tmp_path / "log", truncated(kind)[name])
    assert short(converted(path, tmp_path)) == WHOLE


def test_a_table_of_common_crawl_says_what_is_cut(tmp_path):
    table = {"url": [PAGE] * 4, "fetch_status": [200] * 4}
    table["fetch_time"] = [datetime(2026, 8, k, tzinfo=UTC) for k in range(1, 5)]
    table["content_digest"] = [A, C, A, B]
    table["content_truncated"] = [None, "disconnect", "None", None]
    pq.write_table(pa.table(table), tmp_path / "part.parquet")
    assert short(converted(tmp_path / "part.parquet", tmp_path)) == WHOLE
    # a URL that is not in UTF-8 is left out alone
    table["url"] = [url.encode() for url in table["url"]]
    table["url"][1] = b"https://www.example.org/caf\xe9"
    pq.write_table(pa.table(table), tmp_path / "part.parquet")
    assert short(converted(tmp_path / "part.parquet", tmp_path)) == WHOLE


DUMPS = [
    storm("signatureChangeDate", "lastProcessedDate", "fetchInterval",
          "fetch%2EstatusCode"),
    frontier("signatureChangeDate", "lastProcessedDate", "fetch.statusCode"),
]  # fmt: skip
DATES = "Mon, 03 Aug 2026 00:00:00 UTC", "2026-08-03T02:00:00+02:00[Europe/Berlin]"


@pytest.mark.parametrize(
    "content",
    [
        *DUMPS,
        # keys in any case, whose values keep theirs
        storm("signaturechangedate", "lastprocesseddate", "fetchinterval",
              "fetch%2Estatuscode"),
        storm("SignatureChangeDate", "LASTPROCESSEDDATE", "fetchInterval",
              "fetch%2estatuscode", last="2026-08-03 00:00:00"),
        frontier("signaturechangedate", "lastprocesseddate", "fetch.statuscode"),
        *(dump.replace("2026-08-03T00:00:00Z", d) for dump in DUMPS for d in DATES),
        # texts in place of lists, and lists in place of objects
        re.sub(r'\[("[^"]*")\]', r"\1", DUMPS[0]),
        re.sub(r'\{"values": (\[[^]]*\])\}', r"\1", DUMPS[1]),
    ],
)  # fmt: skip
def test_keys_and_values_of_metadata(tmp_path, content):
    row = "08-02 00:00", "08-03 00:00", "false"
    assert spans(converted(put(tmp_path / "log", content), tmp_path)) == [row]


@pytest.mark.parametrize("dump", DUMPS)
def test_a_date_that_cannot_be_read_is_not_replaced(tmp_path, dump):
    late = dump.replace("2026-08-03T", "late")
    soon = dump.replace("2026-08-02T", "soon")
    path = put(tmp_path / "log", late + soon + dump)
    assert counts(path, tmp_path) == {
        "rows": 1,
        "whose lastProcessedDate cannot be read": 1,
        "whose signatureChangeDate cannot be read": 1,
    }


WORDS = ["NA", "NULL", r"\N", "nan", "None", "-", "null", "<NA>", "N/A", "NaN",
         "(null)", "#N/A", "NaT", "undefined", "nil", "#N/A N/A", "-1.#IND", "1.#QNAN",
         "#VALUE!", "#REF!", "#DIV/0!", "missing", "---", "\u2013", "\u2014", "?", "[]",
         "{}"]  # fmt: skip


AROUND = ["false", 'W/""', '""', '"null"', "md5:None", []]


@pytest.mark.parametrize("word", [*WORDS, *AROUND])
@pytest.mark.parametrize("name", ["digest", "etag", "sha1"])
def test_words_for_nothing_are_no_content(tmp_path, word, name):
    """In JSON what stands around nothing is none either."""
    values = ["aa", word, "aa"]
    if name == "sha1":
        name = "digest"
        values = values if word in AROUND else [f"sha1:{value}" for value in values]
    rows = [(PAGE, f"2026-08-0{day}", value) for day, value in enumerate(values, 1)]
    names = "url", "time", name
    keyed = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    texts = {"jsonl": lines(*keyed)}
    if word not in AROUND:
        texts["csv"] = table(rows, names)
    for suffix, text in texts.items():
        path = put(tmp_path / f"log.{suffix}", text)
        assert short(converted(path, tmp_path)) == [(PAGE, k, "false") for k in (1, 3)]


@pytest.mark.parametrize("word", WORDS)
def test_words_for_nothing_are_empty_cells(tmp_path, word):
    """In a row whose only values are its page, its time and its bit."""
    names = "changed,start,status,importance,host,last_modified"
    cells = f"0{f',{word}' * 5}"
    path = put(tmp_path / "log.csv", lines(
        f"url,time,{names}", f"{PAGE},2026-08-01{f',{word}' * 6}",
        f"{PAGE},2026-08-02,{cells}", f"{word},2026-08-02,{cells}",
    ))  # fmt: skip
    assert counts(path, tmp_path) == {"rows": 2, "without a url": 1}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Status Code", "status"), ("statusCode", "status"), ("http-status", "status"),
        ("sc-status", "status"), ("fetch_status", "status"),
        ("responseCode", "status"), ("resp_code", "status"), ("ret_code", "status"),
        ("res_code", "status"), ("http_resp_code", "status"), ("crawl_code", "status"),
        ("http_response", "status"), ("Code HTTP", "status"), ("Statut", "status"),
        ("C\u00f3digo de respuesta", "status"), ("Antwortcode", "status"),
        ("Estado", "status"), ("countryCode", None),
        ("HTTP Status", "status"), ("hasChanged", "changed"), ("host_name", "host"),
        ("Content Digest", "digest"), ("page.importance", "importance"),
        ("Last-Modified", None), ("LastModified", None), ("E-Tag", None),
        ("STATUS", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_column_that_is_nearly_ours_is_taken_or_named(tmp_path, name, other, suffix):
    path = tmp_path / f"log.{suffix}"
    rows = [("a", f"2026-08-0{day}", "200", "x") for day in (1, 2)]
    names = ["url", "time", name, "digest" if name == "E-Tag" else "etag"]
    if suffix == "csv":
        path.write_text(table(rows, names))
    elif suffix == "jsonl":
        keyed = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
        path.write_text(lines(*keyed))
    else:
        parquet(path, **dict(zip(names, zip(*rows, strict=True), strict=True)))
    _, told = recorded(recrawl.convert, path, tmp_path / "rows.csv")
    hints = [text for text in told if "do you mean" in text]
    assert len(hints) == (other is not None)
    assert all(f"--column {other}={shlex.quote(name)}?" in hint for hint in hints)
    if other == "status":
        named = Source(path, columns={"status": name.lower()})
        _, told = recorded(recrawl.convert, named, tmp_path / "named.csv")
        assert not any("do you mean" in text for text in told)


def test_a_status_inside_of_an_object_is_named_and_can_be_taken(tmp_path):
    row = '{"url": "a", "time": "2026-08-0%d", "changed": 0, "crawl": {%s}}'
    rows = (row % (k, f'"httpStatusCode": {s}') for k, s in ((1, 200), (2, 500)))
    path = put(tmp_path / "log.jsonl", lines(*rows))
    _, told = recorded(recrawl.convert, path, tmp_path / "rows.csv")
    assert "--column status=crawl.httpStatusCode?" in "".join(told)
    source = Source(path, columns={"status": "crawl.httpStatusCode"})
    assert counts(source, tmp_path) == {"rows": 1, "of failed fetches": 1}


def test_a_column_of_truncated_bodies_is_named(tmp_path):
    text = "url,time,digest,content_truncated\na,2026-08-01,x,\n"
    path = put(tmp_path / "log.csv", text)
    with pytest.warns(recrawl.ColumnsWarning, match="leave such rows out"):
        all_pages(path)


def test_keys_that_are_not_ours_cost_no_memory(tmp_path):
    """One line has many, and others have one each of their own."""
    wide = {f"key{k}": 1 for k in range(50_000)}
    rows = [{"url": "a", "time": 1_780_000_000 + k, "changed": 0, f"k{k}": 1}
            for k in range(5_000)]  # fmt: skip
    text = lines(*(json.dumps(row) for row in [wide | rows[0], *rows[1:]]))
    deep = '{"url": ' + "[" * 900_000
    path = put(tmp_path / "log.jsonl", lines(text + deep))
    found = counts(path, tmp_path, memory="200MB")
    assert found == {"rows": 5_000, "that are no JSON": 1}


@pytest.mark.parametrize("url", [["https://a.org/"], {"href": "https://a.org/"}])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_url_that_is_no_text_is_left_out(tmp_path, url, suffix):
    path = tmp_path / f"log.{suffix}"
    if suffix == "parquet":
        parquet(path, url=[url, "a"][:1], time=["2026-08-01"], changed=[0])
    else:
        put(path, json.dumps({"url": url, "time": "2026-08-01", "changed": 0}))
    with gathered(path) as (connection, _, _):
        found = connection.sql("select reason from crawl").fetchall()
    assert found == [("without a url",)]


@pytest.mark.parametrize("time", ["", "NaT", "soon"])
@pytest.mark.parametrize("names", [",url,time,changed", "url,time,changed,"])
def test_a_row_without_a_time_names_no_columns(tmp_path, time, names):
    """Though a column of the file, such as the index of pandas, has no name."""
    rows = [f"a,{time},0", "a,2026-08-02,0", "a,2026-08-03,1"]
    if names.startswith(","):
        rows = [f"{k},{row}" for k, row in enumerate(rows)]
    else:
        rows = [f"{row}," for row in rows]
    path = put(tmp_path / "log.csv", lines(names, *rows))
    assert counts(path, tmp_path) == {"rows": 2, "whose time cannot be read": 1}


def test_names_of_columns_are_repeated_in_any_form(tmp_path):
    names = "url,time,last_modified,etag"
    again = "URL,time,Last-Modified,etag", '\ufeff"url","time",last_modified,etag'
    text = lines(names, "a,2026-08-01,,x", *again, "a,2026-08-02,,x")
    expected = {"rows": 2, "that repeat the names of columns": 2}
    assert counts(put(tmp_path / "log.csv", text), tmp_path) == expected


@pytest.mark.parametrize(
    "columns",
    [
        "url,time,etag,digest", "time,url,digest,etag", "url,time,digest,title",
        "address,fetched,md5,etag",
    ],
)  # fmt: skip
def test_rows_behind_the_names_of_other_columns_are_left_out(tmp_path, columns):
    """Up to the next names of the file's own columns."""
    names, first = "url,time,digest,etag", f"{PAGE},2026-08-01,a,x"
    text = lines(
        names, first, columns, f"{PAGE},2026-08-02,x,a", f"{PAGE},2026-08-03,x,a",
        "\ufeff" + names, f"{PAGE},2026-08-04,a,x",
    )  # fmt: skip
    assert counts(put(tmp_path / "log.csv", text), tmp_path) == {
        "rows": 2,
        "that name other columns": 1,
        "that repeat the names of columns": 1,
        "behind a row that names other columns": 2,
    }


def test_texts_of_parquet_without_the_mark_of_text(tmp_path):
    """A digest may be bytes; a URL that is no UTF-8 is left out."""
    it, near = f"{WWW}it's\\", f"{WWW}n\u00e4h"
    path = parquet(
        tmp_path / "log.parquet",
        url=[*[it.encode(), near.encode()] * 2, b"\xff"],
        time=[b"2026-08-01"] * 2 + [b"2026-08-02"] * 3,
        digest=[b"\xff\x00", b"\xfe\x00", b"\xff\x00", b"\xff\x00", b"a"],
    )
    bits = (it, 1, "false"), (it, 2, "false"), (near, 1, "false"), (near, 2, "true")
    assert short(converted(path, tmp_path)) == [*bits]


NO_CAPTURES = '{"message": "No Captures found for: www.example.org/page"}\n'
PAGES = (1, "text/html", "200", A), (3, "text/html", "200", B)
ANSWERS = [
    (format, answer(1, A), other, answer(3, B))
    for format in ("auto", "commoncrawl")
    for other in (NO_CAPTURES, "", "<html>503</html>\n")
]


@pytest.mark.parametrize(
    ("format", "first", "other", "last"),
    [*ANSWERS, ("auto", wayback(PAGES[0]), "[]\n", wayback(PAGES[1]))],
)
def test_an_answer_without_captures_is_one(tmp_path, format, first, other, last):
    for k, text in enumerate([first, other, last]):
        put(tmp_path / "answers" / f"{k}.json", text)
    assert short(converted(tmp_path / "answers", tmp_path, format=format)) == ENDS


@pytest.mark.parametrize("indent", [None, 1])
def test_an_answer_in_lines_of_any_kind(tmp_path, indent):
    """Beside another one, that of each client; and two in one line."""
    whole = [json.loads(wayback((1, *PAGES[0][1:]), (3, *PAGES[1][1:])))] * 2
    folder = tmp_path / "answers"
    put(folder / "0.json", wayback((2, "text/html", "200", A)))
    put(folder / "1.json", "".join(json.dumps(each, indent=indent) for each in whole))
    assert short(converted(folder, tmp_path)) == UNCHANGED


def test_what_is_no_array_of_an_answer_is_counted(tmp_path):
    text = wayback(*PAGES).replace("],", "], oops", 1) + '["cut off'
    with gathered(put(tmp_path / "a.json", text)) as (_, tally, _):
        assert tally.counts["that are no captures"] == 2


def feed(*dates):
    items = (f"<item><guid>{d}</guid><pubDate>{d}</pubDate></item>" for d in dates)
    head = '<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>'
    return f"{head}<link>{PAGE}</link>{''.join(items)}</channel></rss>"


@pytest.mark.parametrize(
    "bad",
    [
        "Thu, 01 Jan 1970 00:00:00 +0000", "0000-00-00 00:00:00", "yesterday", "",
        "0001-01-01T00:00:00Z", "Tue, 19 Jan 2038 03:14:07 GMT", "99999999999999999",
    ],
)  # fmt: skip
def test_a_date_of_a_feed_that_cannot_be_ends_and_spoils_nothing(tmp_path, bad):
    dates = [f"{day} Aug 2026 12:00:00 GMT" for day in (5, 4, 2)]
    found = [
        converted(put(tmp_path / name, feed(*given)), tmp_path, as_of=AS_OF)
        for name, given in [("a.xml", dates), ("b.xml", [*dates, bad])]
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 3


@pytest.mark.parametrize(
    ("form", "clock"),
    [
        ("2026/08/%02d 10:00:00", "10:00"), ("%d August 2026", "00:00"),
        ("%d Aug 2026 10:00 +0200", "08:00"), ("202608%02d100000", "10:00"),
    ],
)  # fmt: skip
def test_dates_of_feeds_in_the_forms_of_tables(tmp_path, form, clock):
    path = put(tmp_path / "feed.xml", feed(form % 4, form % 2))
    assert spans(converted(path, tmp_path, as_of=AS_OF)) == [
        (f"08-02 {clock}", f"08-04 {clock}", "false"),
        (f"08-04 {clock}", "09-01 00:00", "true"),
    ]


@pytest.mark.parametrize("stamp", [0, 946_684_800, 2**32 - 1, 10**10])
def test_a_commit_of_a_wrong_clock_spoils_no_other(tmp_path, stamp):
    text = f"@{stamp}\n\nM\tb\n@{day(5)}\n\nM\ta\n@{day(2)}\n\nA\ta\n"
    path = put(tmp_path / "git.txt", text)
    assert spans(converted(path, tmp_path, as_of=AS_OF)) == [
        ("08-02 00:00", "08-05 00:00", "false"),
        ("08-05 00:00", "09-01 00:00", "true"),
    ]


def test_lastmods_and_a_damaged_entry(tmp_path):
    """The first entry has no end, the second a URL that is no XML."""
    lastmod = "2026-08-21T13:31:28"
    entries = [
        "<url><loc>https://www.example.org/",
        f"<url><loc>{PAGE}?a=1&b=2</loc><lastmod>{lastmod}</lastmod></url>",
        f"<url><loc><![CDATA[{PAGE}]]></loc><lastmod>0000-00-00</lastmod></url>",
        f"<!-- <url><loc>{WWW}old</loc><lastmod>{lastmod}</lastmod></url> -->",
        f"<url><loc>{PAGE}?a&amp;b</loc><lastmod>{lastmod}</lastmod></url>",
    ]
    path = put(tmp_path / "sitemap.xml", f"<urlset>{''.join(entries)}</urlset>")
    found = converted(path, tmp_path, as_of=AS_OF)
    assert [row["url"] for row in found] == [f"{PAGE}?a&b", f"{PAGE}?a=1&b=2"]
    assert spans(found) == [("08-21 13:31", "09-01 00:00", "true")] * 2


def dated(*dates):
    """An Atom feed of items: published, and perhaps updated, in August or as a text."""
    items = ""
    for published, *updated in dates:
        names = ("published", published), *(("updated", text) for text in updated)
        items += "<entry><id>x</id>"
        for name, given in names:
            text = given if isinstance(given, str) else f"2026-08-{given:02}T00:00:00Z"
            items += f"<{name}>{text}</{name}>"
        items += "</entry>"
    return f'<feed><link href="{PAGE}"/>{items}</feed>'


@pytest.mark.parametrize(
    ("dates", "start", "n_changes"),
    [
        ([(27,), (26,), (25,), (23,)], 23, 3),
        ([(23,), (25,), (26,), (27,)], 23, 3),
        # the newest day first, but each day in order of time
        ([(f"2026-08-{k}T0{h}:00:00Z",) for k in (27, 26, 23) for h in (8, 9)], 23, 5),
        # pinned: one, two, in a feed whose newest item is the last
        ([("2018-05-11",), (27,), (26,), (25,), (23,)], 23, 3),
        ([("2019-05-11",), ("2018-05-11",), (27,), (26,), (25,), (23,)], 23, 3),
        ([("2018-05-11",), (27,), (26,)], 26, 1),
        ([(23,), (25,), ("2018-05-11",), (26,), (27,)], 23, 3),
        # sorted by updates: without them, with them, the last one edited
        ([(27,), ("2019-01-01",), (26,), ("2020-01-01",), (25,)], 25, 2),
        ([(27, 27), ("2019-01-01", 26), (25, 25), ("2018-01-01", 24)], 24, 2),
        # an update of all items when the site was built
        ([(27, 30), (26, 30), (25, 30), (23, 30)], 23, 3),
    ],
)  # fmt: skip
def test_items_out_of_order_begin_no_window(tmp_path, dates, start, n_changes):
    path = put(tmp_path / "feed.xml", dated(*dates))
    found = converted(path, tmp_path, as_of=AS_OF)
    assert min(row["start"] for row in found)[:10] == f"2026-08-{start}"
    assert [row["changed"] for row in found].count("true") == n_changes


def datastore(folder, **watches):
    """A folder of changedetection.io: by its name, a watch and its histories."""
    for name, (watch, histories) in watches.items():
        place = folder / name
        place.mkdir(parents=True)
        put(place / "watch.json", json.dumps(watch))
        for file, stamps in histories.items():
            put(place / file, lines(*(f"{stamp},x.txt" for stamp in stamps)))
    return folder


DAILY = {
    "url": PAGE,
    "last_checked": day(4),
    "time_between_check": {"days": 1, "hours": None},
    "time_between_check_use_default": False,
}
HISTORY = {"history.txt": [day(1), day(3)]}
CHECKS = [(PAGE, 2, "false"), (PAGE, 3, "true"), (PAGE, 4, "false")]


@pytest.mark.parametrize(
    ("watch", "histories"),
    [
        ({}, HISTORY),
        ({"processor": "text_json_diff"}, HISTORY),
        ({"processor": "restock_diff"},
         {"history-restock_diff.txt": HISTORY["history.txt"],
          "history.txt": [day(9, 7), day(10, 7)]}),
        # as releases wrote it whose processors shared one history
        ({"processor": "restock_diff"}, HISTORY),
        ({}, {"history.txt": [0, day(1), 2**32 - 1, day(3), "junk", 10**30]}),
        ({}, {"history.txt": [day(1), 946_684_800, day(3)]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "other",
    [
        {"url": PAGE + "2"},
        {"url": None}, {},
        {"url": PAGE + "2", "time_between_check_use_default": False,
         "time_between_check": ["x"]},
        {"url": PAGE + "2", "last_checked": "never"},
    ],
)  # fmt: skip
def test_watches(tmp_path, watch, histories, other):
    folder = datastore(
        tmp_path / "data",
        a=(other, {"history.txt": [day(1)]}),
        b=(DAILY | watch, histories),
    )
    assert short(converted(folder, tmp_path)) == CHECKS


@pytest.mark.parametrize(
    ("last_checked", "expected"),
    [(day(4), [(PAGE, 3, "false"), (PAGE, 4, "true")]),
     ("never", [(PAGE, 3, "false"), (PAGE, 3, "true")])],
)  # fmt: skip
def test_without_an_interval_of_its_own_a_watch_tells_its_changes(
    tmp_path, last_checked, expected
):
    watch = {"url": PAGE, "last_checked": last_checked}
    found = converted(datastore(tmp_path / "data", a=(watch, HISTORY)), tmp_path)
    assert short(found) == expected
    quiet, change = found
    assert quiet["start"].startswith("2026-08-01")
    assert change["last_modified"].startswith("2026-08-03")


def test_one_file_of_all_watches(tmp_path):
    """As versions before 0.53 wrote it, with the name of a folder that is none."""
    folder = datastore(tmp_path / "data", a=(DAILY, HISTORY), b=({}, HISTORY))
    for name in "ab":
        (folder / name / "watch.json").unlink()
    put(tmp_path / "history.txt", f"{day(1)},x.txt\n")
    text = json.dumps({"watching": {"a": DAILY, "b": [], "..": DAILY}})
    path = put(folder / "url-watches.json", text)
    expected = [(f"{PAGE}#a", *rest) for _, *rest in CHECKS]
    for log in (folder, path):
        assert short(converted(log, tmp_path)) == expected
    # as in 2021, with the history inside, and a time that has lost its digits
    stored = DAILY | {"history": {str(day(k)): "x.txt" for k in (1, 3)}}
    other = {"url": WWW, "last_checked": "E", "history": {str(day(1)): "x.txt"}}
    text = json.dumps({"watching": {"c": stored, "d": other}})
    put(path, text.replace('"E"', "1.79e12"))
    assert short(converted(folder, tmp_path)) == CHECKS
    with pytest.raises(ValueError, match="must hold the object 'watching'"):
        converted(put(path, "["), tmp_path)


@pytest.mark.parametrize("seconds", [1, 1e-6, 10, 86_400])
def test_checks_without_a_change_become_one_row_where_they_are_many(tmp_path, seconds):
    watch = DAILY | {"time_between_check": {"seconds": seconds}}
    folder = datastore(tmp_path / "data", a=(watch, HISTORY))
    found = converted(folder, tmp_path)
    assert len(found) == (3 if seconds > 100 else 4)
    (row,) = (row for row in found if row["changed"] == "true")
    start, end = (datetime.fromisoformat(row[name]) for name in ("start", "time"))
    assert end.day == 3
    assert (end - start).total_seconds() == pytest.approx(seconds)


def test_a_watch_that_is_too_deep_loses_no_other(tmp_path):
    folder = datastore(tmp_path / "data", a=({}, HISTORY), b=(DAILY, HISTORY))
    put(folder / "a" / "watch.json", "[" * 200_000)
    assert short(converted(folder, tmp_path)) == CHECKS
    assert counts(folder, tmp_path)["whose watch.json cannot be read"] == 1


def test_two_watches_of_one_url_are_two_pages(tmp_path):
    folder = datastore(tmp_path / "data", a=(DAILY, HISTORY), b=(DAILY, HISTORY))
    expected = [(f"{PAGE}#{name}", *rest) for name in "ab" for _, *rest in CHECKS]
    assert short(converted(folder, tmp_path)) == expected


LASTMOD = f"<url><loc>{PAGE}</loc><lastmod>2026-08-04</lastmod></url>"


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (b'<?xml version="1.0" encoding="utf-8\x9b"?><rss></rss>',
         feed("2 Aug 2026", "4 Aug 2026")),
        (b"<urlset></urlset>", f"<urlset>{LASTMOD}</urlset>"),
    ],
)  # fmt: skip
def test_a_file_without_anything_spoils_no_other(tmp_path, bad, good):
    (tmp_path / "bad.xml").write_bytes(bad)
    put(tmp_path / "good.xml", good)
    assert len(converted(tmp_path, tmp_path, as_of=AS_OF)) == 2
