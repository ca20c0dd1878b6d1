"""What an attacker can put into a log, a state file, a name or an answer."""

import http.server
import importlib.util
import json
import shutil
import threading
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl.live import scheduler
from recrawl.log.database import database
from tests.recrawl.crawl_logs import recorded
from tests.recrawl.thinned import every

SAMPLES = Path(__file__).with_name("formats")
DOCS = Path(__file__).parents[2] / "docs" / "recrawl"
NASTY = [
    "it's; drop table page; --", '"quoted"', "100%s %(x)s $url", "two\nlines", "*?[a]",
    "{a,b}", "'; drop table crawl; --", "{} {0} {x}", "$1", "$file", "lines($file)",
    "getvariable('file')", '"', "''", "?x=1", "~", "[a]", "b\\s", "\\E(", "$.url",
    "/url", "<script>alert(1)</script>", "javascript:alert(1)",
]  # fmt: skip
IN_NAMES = "it's; drop{} {a,b}?$1", "lines($file)", '*"[a]~\n'
NO_LOGS = {"README.md", "expected.json"}
LOGS = sorted({path.name for path in SAMPLES.iterdir()} - NO_LOGS)


def _rows(url="http://a/"):
    """A table of three crawls of one page."""
    times = ["2026-01-01", "2026-01-03", "2026-01-04"]
    return pa.table({"url": [url] * 3, "time": times, "changed": ["no", "yes", "no"]})


def _write(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".jsonl":
        lines = (json.dumps(row | dict.fromkeys(NASTY, 1) | row) + "\n"
                 for row in table.to_pylist())  # fmt: skip
        path.write_text("".join(lines))
    else:
        pq.write_table(table, path)


def _urls(rates):
    return pq.read_table(rates)["url"].to_pylist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("text", every(4, NASTY))
def test_no_name_and_no_url_is_sql(tmp_path, text, suffix):
    """A name of a file, of its folder and of a column, and a URL, in one."""
    column = text.replace("\n", "%")  # the header of a CSV file is one line
    log = tmp_path / text.replace("/", "") / f"{text.replace('/', '')}{suffix}"
    url = f"http://h/{text}"
    _write(_rows(url).rename_columns({"changed": column}), log)
    # a pattern would also match this one
    _write(_rows("other").rename_columns({"changed": column}), log.with_stem("zz a"))
    source = recrawl.Source(log, columns={"changed": column})
    recrawl.estimate(source, tmp_path / "rates.parquet")
    assert _urls(tmp_path / "rates.parquet") == [url]


def _converted(path, output):
    """What `convert` writes, or says."""
    try:
        recorded(recrawl.convert, path, output)
    except ValueError as error:
        return str(error).replace(str(path), "")
    return output.read_text()


@pytest.mark.parametrize(("sample", "text"), every(3, [*product(LOGS, IN_NAMES)]))
def test_each_format_is_read_under_any_name(tmp_path, sample, text):
    name = text.replace("/", "")
    given = tmp_path / name / f"{name}{sample}"
    copied = shutil.copytree if (SAMPLES / sample).is_dir() else shutil.copy2
    given.parent.mkdir()
    copied(SAMPLES / sample, given)
    plain = _converted(SAMPLES / sample, tmp_path / "plain.csv")
    assert _converted(given, given.with_name(f"{name}out.csv")) == plain


def test_a_name_that_no_pattern_can_match_is_refused(tmp_path):
    _write(_rows(), tmp_path / "\\[a].csv")
    with pytest.raises(ValueError, match="must be a name without a backslash beside"):
        recrawl.convert(tmp_path / "\\[a].csv", tmp_path / "out.csv")


@pytest.mark.parametrize("text", every(9, NASTY))
def test_no_option_is_sql(tmp_path, text):
    """Hosts, and the files of every command, of a name and of names in them."""
    folder = tmp_path / text.replace("/", "")
    name = text.replace("/", "")
    log = folder / f"{name}.parquet"
    _write(_rows("http://h/").append_column("host", pa.array([f"h{text}"] * 3)), log)
    signals = folder / f"{name}signals.csv"
    _write(_rows("http://h/").drop_columns("changed"), signals)
    weights = folder / f"{name}weights.csv"
    weights.write_text("url,importance\nhttp://h/,2\n")
    rates, state, plan = (folder / f"{name}{k}.parquet" for k in range(3))
    recrawl.estimate(log, rates, state=state, signals=signals)
    later = log.with_name(f"{name}later.csv")
    later.write_text("url,time,changed\nhttp://h/,2026-01-09,1\n")
    recrawl.estimate(later, rates, state=state, force=True)
    limits = recrawl.CrawlLimits(per_host=0.5)
    recrawl.schedule(rates, plan, 1, limits=limits, importance=weights)
    (page,) = pq.read_table(plan).to_pylist()
    assert page["crawl_rate"] == pytest.approx(0.5)
    for to in ("jsonl", "nutch", "storm", "heritrix", "urls"):
        output = folder / f"x{name}{'.force' if to == 'heritrix' else '.txt'}"
        recrawl.export(plan, output, to, force=True)
        assert output.read_text()
    recrawl.report(log, folder / f"{name}.html")
    with pytest.raises(ValueError, match="must have a column"):
        recrawl.convert(recrawl.Source(log, columns={"start": f"no {text}"}), "o.csv")


def test_a_key_and_a_name_together_read_no_other_file(tmp_path, monkeypatch):
    """The query held both, and the name went into the quotes of the key."""
    monkeypatch.chdir(tmp_path)
    Path("secret").write_text("a secret")
    name = "||(select content from read_text($$secret$$))||$$)']))--.jsonl"
    row = {"url": "http://h/", "time": "2026-01-01", "etag": "a", "lines($file)": 1}
    text = json.dumps(row) + "\n" + json.dumps(row | {"time": "2026-01-02"}) + "\n"
    Path(name).write_text(text)
    found, told = recorded(recrawl.convert, name, "out.csv")
    assert found[1]["rows"] == 2
    assert "secret" not in Path("out.csv").read_text() + "".join(told)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_name_of_a_folder_is_no_column(tmp_path, suffix):
    log = tmp_path / "url=evil" / f"log{suffix}"
    _write(_rows(), log)
    signals = log.with_name(f"signals{suffix}")
    _write(_rows().drop_columns("changed"), signals)
    rates = log.with_name("rates.parquet")
    found = recrawl.estimate(log, rates, signals=signals)
    assert _urls(rates) == ["http://a/"]
    assert "signals of pages that the log does not have" not in found.counts
    plan, lines = log.with_name("plan.parquet"), tmp_path / "lines"
    recrawl.schedule(rates, plan, 10)
    recrawl.export(plan, lines, "urls")
    assert lines.read_text() == "http://a/\n"


def test_a_database_goes_to_no_network():
    query = "select value from duckdb_settings() where name like 'auto%known%'"
    with database("200MiB") as (connection, _):
        assert connection.sql(query).fetchall() == [("false",), ("false",)]


@pytest.mark.slow
def test_outputs_stay_where_they_were_told(tmp_path, monkeypatch):
    """No URL and no host is a part of a path, of an archive's member neither."""
    inside = tmp_path / "one" / "two"
    names = "../../evil", f"a/{tmp_path}/evil", "a/../../evil", "..\\evil"
    names = [f"https://{name}" for name in names]
    table = pa.concat_tables([_rows(name) for name in names])
    table = table.append_column("host", pa.array(np.repeat(names, 3)))
    _write(table, inside / "log.parquet")
    monkeypatch.chdir(inside)
    recrawl.estimate("log.parquet", "rates.parquet", state="state.parquet")
    recrawl.schedule("rates.parquet", "plan.parquet", 1.0)
    recrawl.report("log.parquet", "report.html")
    written = {"log.parquet", "rates.parquet", "state.parquet", "plan.parquet"}
    for target in ("jsonl", "nutch", "heritrix", "urls"):
        name = "due.force" if target == "heritrix" else f"{target}.txt"
        recrawl.export("plan.parquet", name, target)
        written.add(name)
    found = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {inside / name for name in written | {"report.html"}}


class _Evil:
    def __reduce__(self):
        return (Path("/nowhere").mkdir, ())


@pytest.mark.parametrize("name", ["version", "labels", "kind"])
def test_a_saved_scheduler_runs_no_code(tmp_path, name):
    path = tmp_path / "state.npz"
    np.savez(path, **{name: np.array([_Evil()], dtype=object)})
    with pytest.raises(ValueError, match="is not a saved scheduler"):
        scheduler.Scheduler.load(path)


@contextmanager
def _server(status, headers, body):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            for header in headers.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def fetching():
    spec = importlib.util.spec_from_file_location("fetching", DOCS / "fetching.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("url", ["http://localhost:9/", "ftp://127.0.0.1/"])
def test_the_crawler_stays_on_the_host(fetching, url):
    refused = pytest.raises(ValueError, match="redirected to")
    with _server(302, {"Location": url}, b"") as start, refused:
        fetching.fetch({"url": start})


def test_the_crawler_reads_no_file(fetching, tmp_path):
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(ValueError, match="must begin with http"):
        fetching.fetch({"url": (tmp_path / "secret").as_uri()})


def test_the_crawler_bounds_a_page(fetching, monkeypatch):
    monkeypatch.setattr(fetching, "MOST", 10)
    refused = pytest.raises(ValueError, match="more than 10 bytes")
    with _server(200, {}, b"x" * 11) as start, refused:
        fetching.fetch({"url": start})
    with _server(200, {}, b"x" * 10) as start:
        assert fetching.fetch({"url": start})[0] == b"x" * 10
