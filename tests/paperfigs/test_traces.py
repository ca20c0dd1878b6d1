"""Traces: shipped files, the format, downloads from a local MediaWiki."""

import datetime
import errno
import json
import os
import re
import runpy
import time

import mediawiki_server as server
import numpy as np
import pytest
from scipy import stats

from recrawl.science.processes import History
from paperfigs import traces
from paperfigs.traces import mediawiki

# ten revisions in two days; 13 and 14 within one second, 19 after the window
REVISIONS = [(10 + i, f"2020-04-01T{i:02d}:00:00Z") for i in range(4)]
REVISIONS += [
    (14, "2020-04-01T03:00:00Z"),
    (15, "2020-04-01T23:59:59Z"),
    (16, "2020-04-02T12:00:00Z"),
    (17, "2020-04-02T23:59:59Z"),
]
REVISIONS += [(18, "2020-03-31T23:59:59Z"), (19, "2020-04-03T00:00:00Z")]
HOURS = np.array([0, 1, 2, 3, 3, 24 - 1 / 3600, 36, 48 - 1 / 3600])


@pytest.fixture
def wiki():
    with server.serve(server.Wiki(REVISIONS)) as running:
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Seconds that were waited for, without waiting."""
    recorded = []
    monkeypatch.setattr(
        time, "sleep", lambda seconds: recorded.append(seconds) if seconds else None
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("PAPERLIB_CONTACT", raising=False)
    return recorded


@pytest.fixture
def fetch(wiki, tmp_path):
    def fetch(
        title="Template_talk:Did_you_know",
        start="2020-04-01",
        end="2020-04-02",
        **options,
    ):
        options = {
            "path": tmp_path / "wikipedia.csv",
            "contact": "tests@example.org",
            "api": wiki.api,
            "progress": False,
        } | options
        return traces.wikipedia(title, start, end, **options)

    return fetch


def _files(folder):
    return sorted(path.name for path in folder.iterdir())


DONE = ["wikipedia.csv", "wikipedia.csv.sha256"]
PARTIAL = "wikipedia.csv.partial"


# shipped traces


@pytest.mark.parametrize(
    ("name", "n_events", "variation", "tolerance", "rate"),
    [
        ("debian_firefox_esr", 597, 0.985, 1e-3, 596 / 8274.784),
        ("bokeh_commits", 4849, 3.3, 0.02, 4848 / 1575.0931),
    ],
)
def test_shipped(name, n_events, variation, tolerance, rate):
    trace = traces.load(name)
    intervals = np.diff(trace.times)
    assert trace.times.shape == (n_events,)
    assert intervals.min() > 0
    assert intervals.std(ddof=1) / intervals.mean() == pytest.approx(
        variation, abs=tolerance
    )
    assert trace.times[0] == 0
    assert trace.times[-1] == trace.horizon
    assert trace.change_rate == pytest.approx(rate, rel=1e-6)
    assert trace.name == name
    readme = (traces.DATA / "README.md").read_text()
    assert f"| `{name}.csv` | `{trace.sha256}` |" in readme
    # sha256sum -c reads the line beside it
    assert (
        traces.DATA / f"{name}.csv.sha256"
    ).read_text() == f"{trace.sha256}  {name}.csv\n"
    # nothing but times below the comments, no address above
    text = (traces.DATA / f"{name}.csv").read_text()
    assert re.fullmatch(
        r"(# [^@]+\n){5}time\n(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n)+", text
    )


def test_debian_script_keeps_what_the_page_shows(tmp_path, monkeypatch, capsys):
    entries = [
        ("sid", "03:00:00 +0000"),
        ("UNRELEASED", "02:30:00 +0000"),
        ("bookworm-security", "02:00:00 +0000"),
    ]
    entries += [("experimental", "01:00:00 -0500"), ("unstable", "01:00:00 +0900")]
    entry = (
        "page (1~{0}) {0}; urgency=low\n\n  * text\n\n"
        " -- A Name <name@example.org>  Wed, 01 Apr 2020 {1}\n\n"
    )
    (tmp_path / "changelog").write_text("".join(entry.format(*e) for e in entries))
    script = runpy.run_path(str(traces.DATA / "make_debian_firefox_esr.py"))
    monkeypatch.setattr(traces, "DATA", tmp_path)
    script["main"](tmp_path / "changelog")
    trace = traces.read(tmp_path / "debian_firefox_esr.csv")
    assert trace.start == np.datetime64("2020-03-31T16:00:00")
    assert trace.times * 24 == pytest.approx([0, 11, 14])
    assert "1~sid" in trace.source
    assert "3 events" in capsys.readouterr().out


# the file format


def _write(path, **options):
    times = np.array(
        ["2020-01-03T00:00:00", "2020-01-01T12:00:00", "2020-01-03T00:00:00"],
        "datetime64[s]",
    )
    return traces.write(
        path,
        times,
        **({"title": "A page", "source": "a\nsource: x", "licence": "free"} | options),
    )


def test_write_and_read_back(tmp_path):
    trace = _write(tmp_path / "page.csv")
    assert trace.times == pytest.approx([0, 1.5, 1.5])
    assert (trace.name, trace.title, trace.source, trace.licence) == (
        "page",
        "A page",
        "a source: x",
        "free",
    )
    assert trace.horizon == 1.5
    assert (
        trace.change_rate == 2 / 1.5
    )  # the first opens the window, both of a tie count
    assert (tmp_path / "page.csv.sha256").read_text() == f"{trace.sha256}  page.csv\n"
    with pytest.raises(ValueError, match="read-only"):
        trace.times[0] = 1
    window = _write(
        tmp_path / "page.csv",
        start=np.datetime64("2020-01-01", "s"),
        end=np.datetime64("2020-01-05", "s"),
    )
    assert window.times == pytest.approx([0.5, 2, 2])
    assert window.change_rate == 3 / 4
    assert traces.load("page", folder=tmp_path).sha256 == window.sha256 != trace.sha256


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[:-21],
        lambda b: b[:-5],
        lambda b: b.replace(b"12:00", b"12:01"),
        lambda b: b"",
    ],
)
def test_damaged_file(tmp_path, damage):
    path = tmp_path / "page.csv"
    _write(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        ValueError,
        match=r"page\.csv is corrupted or truncated: its sha256 .* \w{64}, got \w{64}",
    ):
        traces.load("page", folder=tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "12:00:00Z\n2020",
            "noon\n2020",
            "line 7 must be an ISO 8601 date or time, got '2020-01-01Tnoon'",
        ),
        ("time\n", "time\n\n", "line 7 must be an ISO 8601"),
        (
            "time\n",
            "time\n2020-01-02T00:00:00Z\n",
            "line 8: times must ascend within the window, "
            "got '2020-01-01T12:00:00Z' after 2020-01-02",
        ),
        (
            "time\n",
            "time\n2020-01-01T11:59:59Z\n",
            "line 7: times must ascend within the window",
        ),
        (
            "00:00:00Z\n2020-01-03T00:00:00Z\n",
            "00:00:00Z\n2020-01-03T00:00:01Z\n",
            "line 9: times must ascend within the window",
        ),
        ("time\n", "", "missing: time$"),
        ("# title: A page\n", "", "missing: # title"),
        ("# end: 2020-01-03T00:00:00Z\n", "", "missing: # end"),
        ("# end: 2020-01-03T00:00:00Z", "# end: soon", "end must be an ISO 8601"),
        (
            "# end: 2020-01-03T00:00:00Z",
            "# end: 2020-01-01T12:00:00Z",
            "start must be before end",
        ),
        (
            "00:00:00Z\n2020-01-03T00:00:00Z\n",
            "00:00:00Z\n2020-01-03T00:0",
            "truncated after '2020-01-03T00:0'",
        ),
        ("A page", "\udcff", "must be UTF-8"),
    ],
)
def test_bad_file_without_checksum(tmp_path, old, new, message):
    path = tmp_path / "page.csv"
    _write(path)
    path.with_name("page.csv.sha256").unlink()
    assert traces.read(path).times.size == 3
    text = path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new).encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"page\.csv.*{message}"):
        traces.read(path)


def test_file_without_times(tmp_path):
    path = tmp_path / "page.csv"
    _write(path)
    path.with_name("page.csv.sha256").unlink()
    path.write_text(path.read_text().split("time\n")[0] + "time\n")
    with pytest.raises(ValueError, match="must hold at least one time"):
        traces.read(path)


def test_unknown_trace(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"\(bokeh_commits, debian_firefox_esr.*\), got 'debian'.*paperlib wiki",
    ):
        traces.load("debian")
    with pytest.raises(FileNotFoundError, match=r"\(none\)"):
        traces.load("wikipedia", folder=tmp_path)
    _write(tmp_path / "page.csv")
    (tmp_path / "page.csv.sha256").unlink()
    with pytest.raises(FileNotFoundError, match=r"page\.csv\.sha256 is missing"):
        traces.load("page", folder=tmp_path)


# downloads


def test_download(wiki, fetch, tmp_path, waits):
    trace = fetch()
    assert trace.times * 24 == pytest.approx(HOURS)
    assert (trace.title, trace.name) == (server.TITLE, "wikipedia")
    assert (str(trace.start), str(trace.end)) == (
        "2020-04-01T00:00:00",
        "2020-04-02T23:59:59",
    )
    assert trace.source.startswith(wiki.api)
    assert "rvend=2020-04-02T23" in trace.source
    assert traces.load("wikipedia", folder=tmp_path).times == pytest.approx(trace.times)
    assert _files(tmp_path) == DONE
    assert waits == []


def test_what_is_sent(wiki, fetch):
    fetch()
    assert len(wiki.queries) == 3
    common = {
        "action": "query",
        "format": "json",
        "formatversion": "2",
        "prop": "revisions|info",
        "rvprop": "ids|timestamp",
        "rvdir": "newer",
    }
    common |= {
        "titles": server.TITLE,
        "rvlimit": "max",
        "maxlag": "5",
        "rvstart": "2020-04-01T00:00:00Z",
        "rvend": "2020-04-02T23:59:59Z",
    }
    more = [
        {},
        {"rvcontinue": "20200401000000|3", "continue": "||"},
        {"rvcontinue": "20200401000000|6", "continue": "||"},
    ]
    assert wiki.queries == [common | m for m in more]
    assert all(
        re.fullmatch(
            r"paperlib/\S+ \(tests@example\.org\) requests/\S+", h["User-Agent"]
        )
        for h in wiki.headers
    )
    assert wiki.most_at_once == 1


def test_contact_from_the_environment(wiki, fetch, monkeypatch):
    with pytest.raises(
        ValueError, match=r"contact must be .* User-Agent policy .* PAPERLIB_CONTACT"
    ):
        fetch(contact=None)
    assert wiki.queries == []
    monkeypatch.setenv("PAPERLIB_CONTACT", "environment@example.org")
    fetch(contact=None)
    assert "environment@example.org" in wiki.headers[0]["User-Agent"]


def test_progress_bar_and_new_folder(fetch, tmp_path, capsys):
    fetch(progress=True, path=tmp_path / "new" / "page.csv")
    assert "8 revisions" in capsys.readouterr().err


def test_finished_file_needs_no_request(wiki, fetch, tmp_path):
    first = fetch()
    assert fetch(title=server.TITLE, contact=None).sha256 == first.sha256
    assert fetch(end=np.datetime64("2020-04-02"), contact=None).sha256 == first.sha256
    assert len(wiki.queries) == 3
    # another window is another query
    assert fetch(end="2020-04-01").times.size == 6
    assert len(wiki.queries) == 5
    (tmp_path / "wikipedia.csv").write_text("time\n")
    with pytest.raises(ValueError, match="corrupted or truncated"):
        fetch()
    assert len(wiki.queries) == 5


def test_another_file_is_not_overwritten(wiki, fetch, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(ValueError, match="must begin with comments"):
        fetch(path=path)
    assert path.read_text() == "mine\n"
    assert wiki.queries == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"title": ""}, "title must be .* got ''"),
        ({"title": " _ "}, "title must be"),
        ({"title": None}, "title must be .* got None"),
        ({"title": "A|B"}, r"title must be .* got 'A\|B'"),
        (
            {"start": "notadate"},
            "start must be an ISO 8601 date or time, got 'notadate'",
        ),
        (
            {"end": "2020-02-30"},
            "end must be an ISO 8601 date or time, got '2020-02-30'",
        ),
        ({"end": ""}, "end must be an ISO 8601"),
        (
            {"start": "2020-04-03"},
            "start must be before end, got '2020-04-03' and '2020-04-02'",
        ),
        (
            {"start": "2020-04-02", "end": "2020-04-02T00:00:00"},
            "start must be before end",
        ),
        ({"end": "2999-01-01"}, "end must not be in the future, got '2999-01-01'"),
    ],
)
def test_bad_arguments(wiki, fetch, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch(**arguments)
    assert wiki.queries == []
    assert _files(tmp_path) == []


@pytest.mark.parametrize(
    "end",
    [
        "2020-04-01T12:00:00+02:00",
        "2020-04-01T10:00Z",
        datetime.datetime(2020, 4, 1, 10),
    ],
)
def test_times_of_day(wiki, fetch, end):
    assert str(fetch(end=end).end) == "2020-04-01T10:00:00"
    assert wiki.queries[0]["rvend"] == "2020-04-01T10:00:00Z"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (server.MISSING, "title must name a page that exists, got 'Template talk"),
        (server.MISSING_1, "title must name a page that exists"),
        (
            server.INVALID,
            f"title must be a valid title, got .*{re.escape(server.INVALID_REASON)}",
        ),
        (server.NO_TITLES, "title must name one page, got .* answers with 0"),
        (server.TWO_PAGES, "title must name one page, got .* answers with 2"),
        (
            server.NO_REVISIONS,
            "title must name a page with revisions from 2020-04-01T00:00:00 "
            "to 2020-04-02T23:59:59",
        ),
    ],
)
def test_no_such_revisions(wiki, fetch, tmp_path, answer, message):
    wiki.script = [answer]
    with pytest.raises(ValueError, match=message):
        fetch()
    assert len(wiki.queries) == 1
    assert _files(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "code", "info"),
    [
        (server.BAD_CONTINUE, "badcontinue", "Invalid continue param"),
        (server.BAD_TIMESTAMP, "badtimestamp", 'Invalid value "notadate"'),
        (server.BAD_MIX, "invalidparammix", '"titles"'),
        (server.BAD_ACTION, "badvalue", "Unrecognized value"),
        (server.BAD_ACTION_PLAIN, "badvalue", "Unrecognized value"),
    ],
)
def test_api_errors(wiki, fetch, answer, code, info, waits):
    wiki.script = [answer]
    with pytest.raises(traces.ApiError, match=f"{code}: {info}") as caught:
        fetch()
    assert caught.value.code == code
    assert caught.value.info.startswith(info)
    assert len(wiki.queries) == 1
    assert waits == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (server.RVLIMIT_WARNING, "revisions: The value"),
        (server.UNKNOWN_WARNING, "main: Unrecognized parameter: foo"),
    ],
)
def test_api_warnings(wiki, fetch, answer, text):
    wiki.script = [answer]
    with pytest.warns(traces.ApiWarning, match=text) as caught:
        assert fetch().times.size == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("answer", [server.LAST, server.FORMAT_1])
def test_single_answers(wiki, fetch, answer):
    wiki.script = [answer]
    assert fetch().times * 86400 == pytest.approx([3 * 3600 + 57 * 60 + 39])
    assert len(wiki.queries) == 1


@pytest.mark.parametrize("answer", [server.MAXLAG, server.MAXLAG_PLAIN])
def test_maxlag(wiki, fetch, answer, waits, tmp_path):
    wiki.script = [None, answer, answer]
    assert fetch().times.size == 8
    assert waits == [5, 5]
    wiki.script, wiki.queries = [None] + 9 * [answer], []
    with pytest.raises(traces.ApiError, match="maxlag: Waiting for a database server"):
        fetch(path=tmp_path / "other.csv")
    assert len(wiki.queries) == 6
    assert waits[2:] == [5] * 4


def test_too_many_requests(wiki, fetch, waits):
    wiki.script = [server.TOO_MANY, None, server.TOO_MANY, server.TOO_MANY]
    assert fetch().times.size == 8
    assert waits == [7, 7, 7]


def test_server_errors_without_end(wiki, fetch, tmp_path, waits):
    wiki.script = [None] + 20 * [server.SERVER_ERROR]
    with pytest.raises(
        ConnectionError, match=r"1 answers are kept: the same call goes on.*500"
    ):
        fetch()
    assert len(wiki.queries) == 6
    assert waits == [2, 4, 8]
    assert _files(tmp_path) == [PARTIAL]


def test_refusal_is_not_asked_again(wiki, fetch, waits):
    wiki.script = [server.FORBIDDEN]
    with pytest.raises(ConnectionError, match="403"):
        fetch()
    assert len(wiki.queries) == 1
    assert waits == []


def test_no_server(fetch, waits):
    with pytest.raises(ConnectionError, match="0 answers are kept"):
        fetch(api="http://127.0.0.1:9/w/api.php")
    assert waits == [1, 2, 4, 8]


@pytest.mark.parametrize("answer", [server.BROKEN, server.CUT_JSON, server.PORTAL])
def test_broken_answers_and_resume(wiki, fetch, tmp_path, waits, answer):
    wiki.script = [None, answer, None] + 20 * [answer]
    with pytest.raises(ConnectionError, match="2 answers are kept"):
        fetch()
    assert waits == [1, 1, 2, 4, 8]
    assert len(wiki.queries) == 8
    assert _files(tmp_path) == [PARTIAL]
    wiki.script, wiki.queries = [], []
    assert fetch().times * 24 == pytest.approx(HOURS)
    assert [query["rvcontinue"] for query in wiki.queries] == ["20200401000000|6"]
    assert _files(tmp_path) == DONE


def _interrupted(wiki, fetch):
    """A partial file of two answers; forgets the requests."""
    wiki.script = [None, None, server.FORBIDDEN]
    with pytest.raises(ConnectionError):
        fetch()
    wiki.script, wiki.queries = [], []


@pytest.mark.parametrize("n_bytes", [1, 30])
def test_half_written_partial(wiki, fetch, tmp_path, n_bytes):
    _interrupted(wiki, fetch)
    partial = tmp_path / PARTIAL
    partial.write_bytes(partial.read_bytes()[:-n_bytes])
    wiki.script = [None, server.FORBIDDEN]
    with pytest.raises(ConnectionError):
        fetch()
    assert [
        len(json.loads(line)["revisions"]) for line in partial.read_text().splitlines()
    ] == [3, 3]
    assert fetch().times * 24 == pytest.approx(HOURS)
    assert [query["rvcontinue"][-1] for query in wiki.queries] == ["3", "6", "6"]


def test_other_arguments_start_over(wiki, fetch):
    _interrupted(wiki, fetch)
    assert fetch(start="2020-04-01T02:00:00").times.size == 6
    assert "rvcontinue" not in wiki.queries[0]


def test_bad_continuation_starts_over(wiki, fetch, tmp_path):
    _interrupted(wiki, fetch)
    wiki.revisions = REVISIONS[
        1:
    ]  # deleted since: the answers of the first attempt must not come back
    wiki.script = [server.BAD_CONTINUE, None, server.FORBIDDEN]
    with pytest.raises(ConnectionError, match="1 answers are kept"):
        fetch()
    assert len((tmp_path / PARTIAL).read_text().splitlines()) == 1
    assert fetch().times * 24 == pytest.approx(HOURS[1:])
    assert [query.get("rvcontinue", "start")[-1] for query in wiki.queries] == [
        "6",
        "t",
        "3",
        "3",
        "6",
    ]


def test_errors_when_resuming(wiki, fetch, tmp_path):
    _interrupted(wiki, fetch)
    kept = (tmp_path / PARTIAL).read_text()
    wiki.script = [server.BAD_ACTION]
    with pytest.raises(traces.ApiError, match="badvalue"):
        fetch()
    assert (tmp_path / PARTIAL).read_text() == kept
    wiki.script = [
        server.BAD_CONTINUE,
        None,
        server.BAD_CONTINUE,
    ]  # it starts over once
    with pytest.raises(traces.ApiError, match="badcontinue"):
        fetch()
    assert len(wiki.queries) == 4


def test_revision_twice_counts_once(wiki, fetch):
    # the last of the first answer comes again as the first of the second
    first = wiki.answer(
        {"rvstart": "2020-04-01", "rvend": "2020-04-03", "rvdir": "newer"}
    )
    first.body["continue"] |= {"rvcontinue": "20200401000000|2"}
    wiki.script = [first]
    assert fetch().times * 24 == pytest.approx(HOURS)
    assert len(wiki.queries) == 3


@pytest.mark.parametrize("n_written", [0, 1])
def test_full_disk_at_the_end(wiki, fetch, tmp_path, monkeypatch, n_written):
    old = fetch(end="2020-04-01")
    left = iter(range(n_written))

    def full(_):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            fetch()
    assert _files(tmp_path) == ["wikipedia.csv", PARTIAL, "wikipedia.csv.sha256"]
    if n_written:  # the new file is there, its checksum is not
        with pytest.raises(ValueError, match="corrupted"):
            traces.load("wikipedia", folder=tmp_path)
    else:
        assert traces.load("wikipedia", folder=tmp_path).sha256 == old.sha256
    # everything was downloaded: once there is space, no request is needed
    wiki.queries = []
    assert fetch(contact=None).times.size == 8
    assert wiki.queries == []
    assert _files(tmp_path) == DONE


def test_full_disk_in_mid_download(wiki, fetch, tmp_path, monkeypatch):
    def half(path, *arguments, **options):
        file = open(path, *arguments, **options)  # noqa: SIM115
        whole = file.write

        def write(text):
            if len(wiki.queries) < 2:
                return whole(text)
            whole(text[: len(text) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        file.write = write
        return file

    with monkeypatch.context() as patch:
        patch.setattr(mediawiki, "open", half, raising=False)
        with pytest.raises(OSError, match="No space left"):
            fetch()
    assert _files(tmp_path) == [PARTIAL]
    wiki.queries = []
    assert fetch().times * 24 == pytest.approx(HOURS)
    assert [query["rvcontinue"][-1] for query in wiki.queries] == ["3", "6"]


# ---------------------------------------------------------------- populations


def test_the_stand_in_population():
    rate, importance = traces.population("stand-in", 20_000, rng=1)
    assert rate.shape == importance.shape == (20_000,)
    assert 5e-4 <= rate.min() < 0.01
    assert rate.max() == 7.0
    # the log of the median has a standard error of 1.25 sigma / sqrt(n)
    assert abs(np.log(np.median(rate) / 0.15)) < 5 * 1.25 * 1.3 / np.sqrt(20_000)
    assert importance.mean() == pytest.approx(1, rel=1e-12)
    assert abs(np.log(importance).std() - 1.2) < 5 * 1.2 / np.sqrt(2 * 20_000)
    np.testing.assert_array_equal(rate, traces.population("stand-in", 20_000, rng=1)[0])


def test_the_population_of_the_panel():
    pages = traces.panel(min_changes=1)
    rate, importance = traces.population("panel", 5_000, rng=1)
    assert importance.mean() == pytest.approx(1, rel=1e-12)
    assert set(rate) <= set(pages.change_rate)
    # with replacement: all pages but some, and importances stay with their pages
    assert abs(rate.mean() / pages.change_rate.mean() - 1) < 5 * 1.3 / np.sqrt(5_000)
    assert len(set(rate)) > 450
    assert len(set(zip(rate, importance, strict=True))) <= 455
    np.testing.assert_array_equal(rate, traces.population("panel", 5_000, rng=1)[0])
    *_, labelled = traces.signalled_population("panel", 5_000, rng=1)
    assert abs(labelled.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 5_000)


def test_the_quality_of_stand_in_signals():
    n = 50_000
    rate, importance, precision, recall, labelled = traces.signalled_population(
        "stand-in", n, rng=1
    )
    for found, expected in zip(
        (rate, importance), traces.population("stand-in", n, rng=1), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert abs(labelled.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / n)
    for quality, (a, b), mean, border in (
        (precision, (0.703, 2.108), 0.25, 0.7),
        (recall, (0.666, 2.665), 0.2, 0.6),
    ):
        assert quality[labelled].min() > quality[~labelled].max() - 1e-3, (
            "the top twentieth, but for the borders"
        )
        assert abs(quality[labelled].min() - border) < 0.01
        assert abs(quality.mean() - mean) < 0.005
        # about one page in twenty is labelled: each distribution is whole
        assert (
            stats.kstest(
                quality[quality > 0.01], lambda x, a=a, b=b: _above(stats.beta(a, b), x)
            ).pvalue
            > 1e-3
        )
    assert precision.min() == 0.01
    assert abs(
        np.corrcoef(precision[~labelled], recall[~labelled])[0, 1]
    ) < 5 / np.sqrt(n)


def _above(distribution, x, floor=0.01):
    """Distribution function of what lies above the floor."""
    below = distribution.cdf(floor)
    return (distribution.cdf(x) - below) / distribution.sf(floor)


@pytest.mark.parametrize(
    "known", [None, [np.nan, 1.0, 1.0, np.nan, np.nan, 2.0, np.nan, np.nan]]
)
def test_signals_of_real_pages_follow_the_label(bing, known):
    bing(known)
    quality = traces.signalled_population("there", 4, rng=1)
    for found, expected in zip(
        quality[:2], traces.population("there", 4, rng=1), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    *_, precision, recall, labelled = quality
    np.testing.assert_array_equal(labelled, precision > 0.7)
    np.testing.assert_array_equal(labelled, recall > 0.6)
    if known is not None:
        np.testing.assert_array_equal(labelled, np.isin(quality[1] * 3.5, [2.0, 5.0]))


@pytest.fixture
def bing(monkeypatch):
    def log(known_rate=None, asked=8):
        def read(folder, *, sample, rng):
            assert (folder, sample) == ("there", asked)
            bits = np.array(
                [[0, 0], [1, 1], [0, 1], [1, 0], [0, 1], [1, 0], [0, 0], [1, 1]]
            )
            history = History(np.ones(16), bits.ravel(), np.arange(0, 17, 2))
            return traces.CrawlLog(
                np.arange(8),
                history,
                np.arange(8.0),
                np.zeros(8, int),
                known_rate=known_rate,
            )

        monkeypatch.setattr(traces.populations, "bing", read)

    return log


def test_a_population_of_real_pages(bing):
    bing()
    rate, importance = traces.population("there", 4, rng=1)
    np.testing.assert_allclose(
        rate, np.log(2), rtol=1e-10
    )  # half the crawls, a day apart, found a change
    np.testing.assert_allclose(
        np.sort(importance), np.array([2, 3, 4, 5]) / 3.5, rtol=1e-12
    )
    bing(asked=10)
    with pytest.raises(
        ValueError,
        match=r"n_pages must be at most 4, the pages with an estimate .*, got 5",
    ):
        traces.population("there", 5)
