"""A simulated crawl written as crawlers and archives write theirs.

Each function takes a folder and a list of crawls ``(url, time, content)``, with
whole seconds since 1970, and a number that names the content, or None for a
failed fetch; and writes the crawl into the folder. Content that is still the
same is written as 304 or as a revisit where the format has one.
"""

import base64
import hashlib
import itertools
import json
import time
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

_DAY = 86_400


def table(folder, crawls):
    """Write the columns of `recrawl.estimate`: what the others are held to."""
    rows = [
        f"{url},{at},{int(number > 1 and not same)},{200 if content else 503}"
        for url, at, content, same, number in _fetches(crawls)
    ]
    _lines(folder / "log.csv", ["url,time,changed,status", *rows])


def heritrix(folder, crawls):
    """Write a crawl.log, unchanged content by turns as a 304 and as a digest."""
    lines = ["2026-01-01T00:00:00.000Z 1 53 dns:a.org P - text/dns #1 - - - -"]
    for url, at, content, same, number in _fetches(crawls):
        still = same and number % 2 == 0
        status = -2 if content is None else 304 if still else 200
        digest = "-" if content is None else f"sha1:{_sha1('' if still else content)}"
        start = "-" if content is None else f"{_digits(at)}000+12"
        lines.append(
            f"{_iso(at)} {status:5} {'-':>10} {url} L - text/html #001 {start} "
            f"{digest} - -"
        )
    _lines(folder / "crawl.log", lines)


def cdx(folder, crawls):
    """Write a CDX file."""
    lines = [" CDX N b a m s k r V g"]
    for url, at, content, same, _ in _fetches(crawls):
        kind, status, digest = _capture(content, same)
        lines.append(f"{url} {_digits(at)} {url} {kind} {status} {digest} - 0 a.gz")
    _lines(folder / "index.cdx", lines)


def wayback_text(folder, crawls):
    """Write lines of seven fields, some with the port in the URL."""
    lines = []
    for url, at, content, same, number in _fetches(crawls):
        kind, status, digest = _capture(content, same)
        written = url.replace(".org/", ".org:443/") if number % 3 == 0 else url
        lines.append(f"{url} {_digits(at)} {written} {kind} {status} {digest} 1")
    _lines(folder / "wayback.txt", lines)


def wayback_json(folder, crawls):
    """Write one array of arrays of the fields that were asked for."""
    rows = [["timestamp", "original", "statuscode", "digest"]]
    for url, at, content, same, _ in _fetches(crawls):
        _, status, digest = _capture(content, same)
        rows.append([_digits(at), url, status, digest])
    text = ",\n".join(map(json.dumps, [*rows, [], ["key"]]))
    _lines(folder / "wayback.json", [f"[{text}]"])


def cdxj(folder, crawls):
    """Write a CDXJ file, with and without the name of the digest."""
    lines = []
    for url, at, content, same, number in _fetches(crawls):
        kind, status, digest = _capture(content, same)
        digest = f"sha1:{digest}" if content and number % 2 else digest
        fields = {"url": url, "mime": kind, "status": status, "digest": digest}
        lines.append(f"{url} {_digits(at)} {json.dumps(fields)}")
    _lines(folder / "index.cdxj", lines)


def commoncrawl(folder, crawls):
    """Write JSON lines, unchanged content as a 304 without a digest."""
    lines = []
    for url, at, content, same, _ in _fetches(crawls):
        fields = {"urlkey": url, "timestamp": _digits(at), "url": url}
        status, digest = _answer(content, same)
        fields["status"] = str(status)
        lines.append(json.dumps(fields | ({"digest": digest} if digest else {})))
    _lines(folder / "index.jsonl", lines)


def commoncrawl_table(folder, crawls):
    """Write the columns of the Parquet table of Common Crawl."""
    fetches = list(_fetches(crawls))
    answers = [_answer(content, same) for _, _, content, same, _ in fetches]
    columns = {
        "url": [url for url, *_ in fetches],
        "fetch_time": [datetime.fromtimestamp(at, UTC) for _, at, *_ in fetches],
        "fetch_status": pa.array([status for status, _ in answers], pa.int16()),
        "content_digest": [digest for _, digest in answers],
    }
    pq.write_table(pa.table(columns), folder / "part-00000.parquet")


def readseg(folder, crawls):
    """Write a segment for each round of crawls, the signature in its datum."""
    rounds = itertools.groupby(_fetches(crawls, by_round=True), lambda row: row[-1])
    for number, fetches in rounds:
        lines = []
        for record, (url, at, content, same, _) in enumerate(fetches):
            name = "33 (fetch_success)" if content else "34 (fetch_retry)"
            name = "38 (fetch_notmodified)" if same else name
            lines += ["", f"Recno:: {record}", f"URL:: {url}", ""]
            lines += ["CrawlDatum::", f"Status: {name}", f"Fetch time: {_java(at)}"]
            lines += ["Signature: null", "Metadata: ", " "]
            if content and not same:
                lines += ["CrawlDatum::", "Status: 65 (signature)"]
                lines += [
                    f"Fetch time: {_java(at + 90)}",
                    f"Signature: {_md5(content)}",
                ]
        _lines(folder / f"dump-{number:03}.txt", lines)


def nutch_json(folder, crawls):
    """Write a JSON dump of the CrawlDb after each round of crawls."""
    for number, pages in _dumps(crawls):
        lines = []
        for name, url, due, changed, retries, digest in map(_nutch, pages):
            fields = {"url": url, "statusName": name, "fetchTime": due}
            fields |= {"modifiedTime": changed, "retriesSinceFetch": retries}
            fields |= {"retryIntervalSeconds": _DAY, "signature": digest}
            lines.append(json.dumps(fields | {"metadata": {}}))
        _lines(folder / f"part-{number:03}.jsonl", lines)


def nutch_csv(folder, crawls):
    """Write a CSV dump of the CrawlDb after each round of crawls."""
    header = "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,"
    header += "Retry interval seconds,Retry interval days,Score,Signature,Metadata"
    for number, pages in _dumps(crawls):
        lines = [header]
        for name, url, due, changed, retries, digest in map(_nutch, pages):
            lines.append(
                f'"{url}",2,"{name}",{due},{changed},{retries},{_DAY}.0,1.0,1.0,'
                f'"{digest}",""'
            )
        _lines(folder / f"part-{number:03}.csv", lines)


def storm(folder, crawls):
    """Write an export of the status index after each round of crawls."""
    for number, pages in _dumps(crawls, dated_from=2):
        lines = []
        for url, at, changed, content in pages:
            values = _persisted(at, changed)
            metadata = {key.replace(".", "%2E"): [v] for key, v in values.items()}
            source = {"url": url, "metadata": metadata}
            source["status"] = "FETCHED" if content else "FETCH_ERROR"
            lines.append(json.dumps({"_index": "status", "_source": source}))
        _lines(folder / f"status-{number:03}.jsonl", lines)


def frontier(folder, crawls):
    """Write a dump of URLFrontier after each round of crawls."""
    for number, pages in _dumps(crawls, dated_from=2):
        lines = []
        for url, at, changed, _ in pages:
            values = _persisted(at, changed)
            metadata = {key: {"values": [v]} for key, v in values.items()}
            item = {"info": {"url": url, "metadata": metadata}}
            lines.append(json.dumps({"known": item}))
        _lines(folder / f"frontier-{number:03}.jsonl", lines)


def _fetches(crawls, *, by_round=False):
    """Crawls with whether content is as before, and their number in the page."""
    last, n_crawls, rows = {}, {}, []
    for url, at, content in sorted(crawls, key=lambda crawl: crawl[1]):
        n_crawls[url] = n_crawls.get(url, 0) + 1
        same = content is not None and last.get(url) == content
        rows.append((url, at, content, same, n_crawls[url]))
        last[url] = last.get(url) if content is None else content
    return sorted(rows, key=lambda row: row[-1]) if by_round else rows


def _dumps(crawls, *, dated_from=1):
    """States after each round: url, fetch, change, content.

    From the fetch on of which the number is given, pages have a time of change;
    that fetch sets it, whatever it finds.
    """
    changed, state = {}, {}
    rounds = itertools.groupby(_fetches(crawls, by_round=True), lambda row: row[-1])
    for number, fetches in rounds:
        for url, at, content, same, _ in fetches:
            if content and (not same or number == dated_from):
                changed[url] = at
            state[url] = url, at, changed.get(url, 0) * (number >= dated_from), content
        yield number, list(state.values())


def _nutch(page):
    """Status, URL, next fetch, modified time, retries and signature of a page."""
    url, at, changed, content = page
    name = "db_fetched" if changed == at else "db_notmodified"
    name = name if content else "db_unfetched"
    digest = _md5(content) if content else "null"
    return name, url, _java(at + _DAY), _java(changed), int(not content), digest


def _persisted(at, changed):
    """What StormCrawler stores of a page: the change some ms after the fetch."""
    values = {"lastProcessedDate": _iso(at), "fetch.statusCode": "200"}
    return values | (
        {"signatureChangeDate": _iso(changed).replace(".000", ".231")}
        if changed
        else {}
    )


def _capture(content, same):
    """Kind, status and digest of a capture; a revisit where it is the same."""
    if content is None:
        return "text/html", "503", "-"
    kind, status = ("warc/revisit", "-") if same else ("text/html", "200")
    return kind, status, _sha1(content)


def _answer(content, same):
    """Status and digest, of which a 304 and a failed fetch have none."""
    if content is None:
        return 503, None
    return (304, None) if same else (200, _sha1(content))


def _lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _iso(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _digits(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S")


def _java(at):
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(at))


def _md5(content):
    return hashlib.md5(str(content).encode()).hexdigest()


def _sha1(content):
    return base64.b32encode(hashlib.sha1(str(content).encode()).digest()).decode()
