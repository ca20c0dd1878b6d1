"""Data of the figures: traces, populations, the Bing set, downloads from a wiki."""

import json
import math
import re
import runpy
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from scipy import stats

from paperfigs import cli, traces, wikipedia
from paperfigs.files import sha256, write_atomic
from paperlib.errors import DegenerateHistoryWarning

ABOUT = {"title": "A page", "source": "a\nsource: x", "licence": "free"}

# ---- traces


@pytest.mark.parametrize(
    ("name", "n_events", "variation", "rate"),
    [
        ("debian_firefox_esr", 597, 0.985, 596 / 8274.784),
        ("bokeh_commits", 4849, 3.29, 4848 / 1575.0931),
    ],
)
def test_shipped_traces(name, n_events, variation, rate):
    trace = traces.load(name)
    intervals = np.diff(trace.times)
    assert trace.times.shape == (n_events,)
    assert intervals.min() > 0
    assert intervals.std() / intervals.mean() == pytest.approx(variation, abs=5e-3)
    assert (trace.times[0], trace.times[-1]) == (0, trace.horizon)
    assert trace.change_rate == pytest.approx(rate, rel=1e-6)
    # nothing but times below the comments, no address above
    text = (traces.DATA / f"{name}.csv").read_text()
    assert re.fullmatch(
        r"(# [^@]+\n){5}time\n(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n)+", text
    )


def test_checksums_are_those_of_the_readme_and_of_sha256sum():
    readme = (traces.DATA / "README.md").read_text()
    files = sorted(traces.DATA.glob("*.sha256"))
    assert len(files) >= 4
    for file in files:
        path = file.with_suffix("")
        assert file.read_text() == f"{sha256(path)}  {path.name}\n"
        assert f"| `{path.name}` | `{sha256(path)}` |" in readme


def test_the_pages_of_wikipedia_are_complete_and_have_titles_and_times_only():
    pages = traces.wikipedia_pages()
    assert list(pages) == ["page", "time"]
    assert not pages.duplicated().any()
    assert pages.equals(pages.sort_values(["page", "time"]))
    sizes = pages.groupby("page").size()
    assert (len(pages), len(sizes), (sizes >= 100).sum()) == (68_037, 333, 136)
    assert sizes.max() == sizes["Air France Flight 447"] == 5_726
    assert str(pages["time"].max()) == "2012-01-18 02:36:41+00:00"


def test_the_pages_of_wikipedia_are_read_from_all_versions_in_a_clone(tmp_path):
    """The files have two forms, and later versions lack pages of earlier ones."""
    make = runpy.run_path(str(traces.DATA / "make_wikipedia_pages.py"))
    name = "Category-2001_fires.csv"
    versions = (
        '"1", "31", "A, b", "user", "1000665038", "235661", "528", \n',
        "C,user,1190347031,159319522\nC,user,1190347031,159319523\n",
    )
    git = partial(make["git"], tmp_path)
    git("init", "--quiet")
    for version in versions:
        (tmp_path / name).write_text(version)
        git("add", name)
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "data")
    make["FILES"].clear()
    make["FILES"][name] = git("rev-parse", "HEAD").strip()
    text, n_revisions = make["text_of"](make["read_clone"](tmp_path))
    assert n_revisions == 2
    lines = text.splitlines()[2:]
    assert lines == [
        "page,time",
        '"A, b",2001-09-16T18:30:38Z',
        "C,2007-09-21T03:57:11Z",
    ]


def test_write_and_load(tmp_path):
    path, times = (
        tmp_path / "page.csv",
        ["2020-01-03", "2020-01-01T12:00", "2020-01-03"],
    )
    trace = traces.write(path, times, **ABOUT)
    assert trace.times.tolist() == [0, 1.5, 1.5]
    assert (trace.title, trace.horizon) == ("A page", 1.5)
    assert trace.change_rate == 2 / 1.5, "both of a tie count, the first does not"
    assert "# source: a source: x\n" in path.read_text()
    window = np.datetime64("2020-01-01"), np.datetime64("2020-01-05")
    trace = traces.write(path, times, window=window, **ABOUT)
    assert trace.times.tolist() == [0.5, 2, 2]
    assert trace.change_rate == 3 / 4
    assert traces.load(str(path)).times.tolist() == [0.5, 2, 2]


def test_a_damaged_or_missing_file_is_named(tmp_path):
    path = tmp_path / "page.csv"
    traces.write(path, ["2020-01-03", "2020-01-01"], **ABOUT)
    path.write_text(path.read_text()[:-3])
    with pytest.raises(ValueError, match=r"page\.csv is damaged: its sha256 is \w{64}"):
        traces.load(str(path))
    with pytest.raises(FileNotFoundError, match=r"wikipedia\.csv"):
        traces.load("wikipedia")


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    write_atomic(path, "old é")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28)))
    with pytest.raises(OSError, match="28"):
        write_atomic(path, "new")
    assert path.read_text() == "old é"
    assert list(path.parent.iterdir()) == [path]


# ---- populations


def test_debian_pages_are_those_of_the_file():
    rate, importance = traces.debian_pages()
    lines = (traces.DATA / "debian_panel.csv").read_text().split("\n")[4:-1]
    first = [np.datetime64(x.split(",")[1][:-1]) for x in lines if x.startswith("0,")]
    window = (np.datetime64("2023-02-12") - first[0]) / np.timedelta64(1, "D")
    assert rate.size == importance.size == 455
    assert rate[0] == pytest.approx((len(first) - 1) / window)
    assert importance.mean() == pytest.approx(1)
    assert float(np.median(rate).round(4)) == 0.0064
    assert importance.argmax() == 253, "the pairs are the same every time"
    # as independent of the change rates as pairs at random are
    logs = np.corrcoef(np.log(importance), np.log(rate))
    assert abs(logs[0, 1]) < 3 / np.sqrt(455)


def test_the_stand_in_population():
    rate, importance = traces.population("stand-in", 20_000, rng=1)
    assert 5e-4 <= rate.min() < 0.01
    assert rate.max() == 7.0
    # the log of the median has a standard error of 1.25 sigma / sqrt(n)
    assert abs(np.log(np.median(rate) / 0.15)) < 5 * 1.25 * 1.3 / np.sqrt(20_000)
    assert importance.mean() == pytest.approx(1, rel=1e-12)
    assert abs(np.log(importance).std() - 1.2) < 5 * 1.2 / np.sqrt(2 * 20_000)
    first = traces.population("stand-in", 3, rng=1)[0]
    assert first.round(3).tolist() == [0.235, 0.436, 0.23], "the random stream stays"


def test_the_population_of_real_rates():
    rate, importance = traces.population("panel", 5_000, rng=1)
    pages, _ = traces.debian_pages()
    assert importance.mean() == pytest.approx(1, rel=1e-12)
    assert set(rate) <= set(pages)
    # with replacement: all pages but some, and importances stay with their pages
    assert len(set(rate)) > 440
    assert len(set(zip(rate, importance, strict=True))) <= 455
    *_, labelled = traces.signalled_population("panel", 5_000, rng=1)
    assert abs(labelled.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 5_000)


@pytest.mark.parametrize(
    ("kind", "spread"),
    [("stand-in", 1.0), ("narrow", 0.7), ("log-logistic", np.pi / np.sqrt(3))],
)
def test_hourly_rates_have_one_median(kind, spread):
    rate = traces.hourly_rates(kind, 20_000, rng=1)
    period = np.log(1 / rate)
    # the median has a standard error of 1.25 to 1.3 standard deviations / sqrt(n)
    assert abs(np.median(period) - np.log(17.5 * 24)) < 5 * 1.3 * spread / 141
    # the quartiles of what is not clipped; their error is below 1.6 sd / sqrt(n)
    unit = {"log-logistic": stats.logistic(scale=1.0)}.get(kind, stats.norm(0, spread))
    quartiles = np.quantile(period - np.log(17.5 * 24), (0.25, 0.75))
    np.testing.assert_allclose(quartiles, unit.ppf((0.25, 0.75)), atol=8 * spread / 141)
    # the figures were drawn with periods that rise with the numbers drawn
    rng = np.random.default_rng(1)
    draw = rng.logistic if kind == "log-logistic" else rng.normal
    assert stats.spearmanr(draw(size=20_000), period).statistic > 0.99


def test_hourly_rates_of_debian_are_real_ones_scaled():
    rate = traces.hourly_rates("debian", 2_000, rng=1)
    pages, _ = traces.debian_pages()
    factor = 1 / (17.5 * 24) / np.median(pages)
    assert np.isin(rate.round(12), (pages * factor).round(12)).all()
    assert len(set(rate)) > 200
    with pytest.raises(ValueError, match=r"kind must be .*'debain'"):
        traces.hourly_rates("debain", 1)


def test_uniform_pages_are_those_of_the_simulations():
    n = 20_000
    clean = traces.uniform_pages(n, beta=0.25, rng=1)
    noisy = traces.uniform_pages(n, beta=0.25, false_rate=(0.1, 0.6), rng=1)
    assert not clean.false_rate.any()
    error = 5 / np.sqrt(n)  # standard deviations below 1/2
    for name, distribution in {
        "change_rate": stats.uniform(),
        "importance": stats.uniform(),
        "recall": stats.beta(0.25, 0.25),
        "false_rate": stats.uniform(0.1, 0.5),
    }.items():
        values = getattr(noisy, name)
        assert abs(values.mean() - distribution.mean()) < error / 2, name
        assert abs(values.std() - distribution.std()) < error / 2, name
        if name != "false_rate":  # the same random numbers
            np.testing.assert_array_equal(getattr(clean, name), values)


def test_the_quality_of_stand_in_signals():
    n = 50_000
    rate, importance, precision, recall, labelled = traces.signalled_population(
        "stand-in", n, rng=1
    )
    expected_rate, expected = traces.population("stand-in", n, rng=1)
    np.testing.assert_array_equal(rate, expected_rate)
    # the same importances, but those of labelled pages are 26.4% of the whole
    for pages, share in ((labelled, 0.264), (~labelled, 0.736)):
        assert importance[pages].sum() == pytest.approx(share * n, rel=1e-12)
        ratio = importance[pages] / expected[pages]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    assert abs(labelled.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / n)
    # what sections 2 and 6.7 print: 95% are below the border, few above 0.8 in both
    assert np.mean((precision > 0.8) & (recall > 0.8)) < 1e-3
    assert np.mean(precision < 0.2) < 0.15
    for quality, (a, b), border in (
        (precision, (3.0, 4.39), 0.7),
        (recall, (4.0, 7.148), 0.6),
    ):
        assert quality[labelled].min() > quality[~labelled].max() - 1e-3
        assert abs(quality[labelled].min() - border) < 0.01
        # about one page in twenty is labelled: each distribution is whole
        above = quality[quality > 0.01]
        below = stats.beta(a, b).cdf(0.01)
        rank = (stats.beta(a, b).cdf(above) - below) / (1 - below)
        assert stats.kstest(rank, "uniform").pvalue > 1e-3
    assert precision.min() >= 0.01
    pair = np.corrcoef(precision[~labelled], recall[~labelled])
    assert abs(pair[0, 1]) < 5 / np.sqrt(n)


# ---- the Bing data set

BING = {
    "urlid_imp.txt": "5\t12\n7\t0.5\n3\t7e-1\n11\t0\n7\tmuch\n9\t-1\n2\t1\n",
    "urlid_chrate_compl_obs_hist.txt": "3\t0.125\n",
    "urlid_offset_history.txt": (
        "5\t5.5143055555555556\t[[1.0, 0], [1.0, 1]]\n"
        "11\t0\t[]\n"  # never crawled
        "3\t0.25\t[[1,1],[2.5,0],[1.1574e-05,1]]\n"
        "7\t1e1\t[ [ 0.5 , 1 ] , [3, 0] ]\n"
        "9\t0\t[[1,1],[1,0]]\n"  # without importance
        "2\t0\t[[1,2],[1,0]]\n"  # a bit of 2
        "12\t0\t[[1,1\n"  # cut off
    ),
}


@pytest.fixture
def bing(tmp_path):
    for name, text in BING.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def make_bing_pages():
    return SimpleNamespace(**runpy.run_path(str(traces.DATA / "make_bing_pages.py")))


def test_pages_of_bing_that_can_be_used(bing):
    rate, importance, known_rate = make_bing_pages().read(bing, 99, seed=1)
    order = np.argsort(importance)
    assert importance[order].tolist() == [0.5, 0.7, 12]
    np.testing.assert_array_equal(known_rate[order], [np.nan, 0.125, np.nan])
    # two intervals of a day, one with a change: 1 - exp(-rate) = 1/2
    assert rate[order][2] == pytest.approx(np.log(2), rel=1e-6)


def test_without_known_rates_there_is_none(bing):
    (bing / "urlid_chrate_compl_obs_hist.txt").write_text("")
    assert np.isnan(make_bing_pages().read(bing, 3, seed=1)[2]).tolist() == [True] * 3


def test_pages_of_bing_without_an_estimate_are_left_out(bing):
    (bing / "urlid_offset_history.txt").write_text(
        "5\t0\t[[1,1],[1,1]]\n3\t0\t[[1,0]]\n7\t0\t[[1,0],[1,1]]\n"
    )
    with pytest.warns(DegenerateHistoryWarning):
        assert make_bing_pages().read(bing, 3, seed=1)[1].tolist() == [0.5]


def test_a_sample_of_bing_is_that_of_its_seed(bing):
    read = make_bing_pages().read
    drawn = [read(bing, 1, seed=seed)[1].tolist() for seed in range(12)]
    assert {len(each) for each in drawn} == {1}
    assert len({tuple(each) for each in drawn}) == 3
    assert drawn == [read(bing, 1, seed=seed)[1].tolist() for seed in range(12)]
    (bing / "urlid_imp.txt").unlink()
    with pytest.raises(Exception, match=r"urlid_imp\.txt"):
        read(bing, 2, seed=1)


def test_a_population_of_bing_is_drawn_from_the_sample(tmp_path, monkeypatch):
    columns = [1.0, 2.0, 3.0], [1.0, 3.0, 4.0], [math.nan, 2.5, math.nan]
    make_bing_pages().write(tmp_path / "bing_pages.csv", columns)
    monkeypatch.setattr(traces, "DATA", tmp_path)
    rate, importance, *_, labelled = traces.signalled_population("bing", 500, rng=1)
    assert set(rate) == {1, 2, 3}
    np.testing.assert_array_equal(labelled, rate == 2)
    ratio = importance[rate == 3][0] / importance[rate == 1][0]
    assert ratio == pytest.approx(4, rel=1e-12)


def test_another_source_of_pages_is_refused():
    with pytest.raises(ValueError, match="source"):
        traces.population("folder", 3)


# ---- downloads

# ten revisions in two days; two within one second, the last two outside
REVISIONS = [f"2020-04-01T{hour:02d}:00:00Z" for hour in (0, 1, 2, 3, 3)]
REVISIONS += ["2020-04-01T23:59:59Z", "2020-04-02T12:00:00Z", "2020-04-02T23:59:59Z"]
REVISIONS += ["2020-03-31T23:59:59Z", "2020-04-03T00:00:00Z"]
PAGE = {"pageid": 2, "ns": 11, "title": "Template talk:Did you know"}


class Wiki(BaseHTTPRequestHandler):
    """Answers as a MediaWiki 1.39 gives them, three revisions at a time."""

    disable_nagle_algorithm = True

    def do_GET(self):
        query = dict(parse_qsl(urlsplit(self.path).query))
        self.server.queries.append((query, self.headers["User-Agent"]))
        status, headers, body = 200, {}, self.revisions(query)
        if self.server.script:
            status, headers, body = self.server.script.pop(0)
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def revisions(self, query):
        found = [r for r in REVISIONS if query["rvstart"] <= r <= query["rvend"]]
        at = int(query.get("rvcontinue", "0|0").split("|")[1])
        batch = [{"timestamp": moment} for moment in sorted(found)[at : at + 3]]
        page = PAGE | ({"revisions": batch} if batch else {})
        more = {"rvcontinue": f"20200401000000|{at + 3}", "continue": "||"}
        more = {"continue": more} if at + 3 < len(found) else {"batchcomplete": True}
        return more | {"query": {"pages": [page]}}

    def log_message(self, *arguments):
        pass


@pytest.fixture
def wiki(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Wiki) as server:
        server.queries, server.script = [], []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        api = f"http://127.0.0.1:{server.server_port}/w/api.php"
        yield SimpleNamespace(api=api, queries=server.queries, script=server.script)
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(wiki, tmp_path):
    def fetch(
        title="Template talk:Did you know",
        start="2020-04-01",
        end="2020-04-02T23:59:59",
    ):
        path, contact = tmp_path / "page.csv", "tests@example.org"
        return wikipedia.download(
            title, start, end, contact=contact, path=path, api=wiki.api
        )

    return fetch


def test_a_download_is_a_trace(wiki, fetch, tmp_path):
    trace = fetch()
    hours = [0, 1, 2, 3, 3, 24 - 1 / 3600, 36, 48 - 1 / 3600]
    assert trace.times * 24 == pytest.approx(hours)
    assert (trace.title, trace.horizon * 24) == (PAGE["title"], 48 - 1 / 3600)
    assert {path.name for path in tmp_path.iterdir()} == {"page.csv", "page.csv.sha256"}
    assert f"# source: {wiki.api}?action=query" in (tmp_path / "page.csv").read_text()
    assert [query.get("rvcontinue", "|0")[-1] for query, _ in wiki.queries] == list(
        "036"
    )
    query, agent = wiki.queries[0]
    assert query["rvend"] == "2020-04-02T23:59:59Z"
    assert agent == "paperfigs (tests@example.org)", "Wikimedia blocks programs without"
    assert fetch(end="2020-04-01T02:00").times.size == 3


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_given_time(wiki, fetch, monkeypatch, status):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    wiki.script += [(status, {"Retry-After": "7"}, "<title>Too many"), (503, {}, "")]
    assert fetch().times.size == 8
    assert waits[0] == 7
    assert len(wiki.queries) == 5


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (
            200,
            {"error": {"code": "badvalue", "info": "Unrecognized value."}},
            "the wiki answers .*badvalue.*Unrecognized value",
        ),
        (
            200,
            {"query": {"pages": [{"ns": 0, "title": "No", "missing": True}]}},
            "title must name a page with revisions from 2020-04-01T00:00:00 to",
        ),
        (403, "<title>Forbidden</title>", "403"),
        (404, "<title>Not found</title>", "404"),
        (200, "<title>Please log in</title>", "Expecting value"),
    ],
)
def test_what_does_not_answer_the_question_leaves_no_file(
    wiki, fetch, tmp_path, status, body, message
):
    wiki.script.append((status, {}, body))
    with pytest.raises((RuntimeError, ValueError, OSError), match=message):
        fetch()
    assert list(tmp_path.iterdir()) == []


def test_the_command_downloads(wiki, tmp_path, capsys, monkeypatch):
    def download(*arguments, **options):
        path = tmp_path / "page.csv"
        return original(*arguments, **options, path=path, api=wiki.api)

    original = wikipedia.download
    monkeypatch.setattr(wikipedia, "download", download)
    given = [
        "download",
        "A page",
        "2020-04-01",
        "2020-04-02T23:59:59",
        "--contact",
        "me",
    ]
    assert cli.main(given) == 0
    assert capsys.readouterr().out == f"{PAGE['title']}: 8 changes, 3.5 a day\n"
    with pytest.raises(SystemExit):
        cli.main(given[:-2])
    assert "--contact" in capsys.readouterr().err
    given[2] = "soon"
    assert cli.main(given) == 2
