"""The command: arguments, exit statuses, and messages without a traceback."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import recrawl
from paperlib.errors import ArgumentError
from recrawl import __version__, cli, units
from recrawl.log import reading
from recrawl.plan.problem import Problem
from tests.recrawl.crawl_logs import parquet, write

LOG = Path(__file__).parents[2] / "data" / "example_log.csv.gz"
COMMANDS = "convert", "estimate", "schedule", "export", "report"
RATE = (
    "must be a positive number and a unit of time, such as 10/hour (units: second or "
    "s, minute or min, hour or h, day or d, week or w)"
)
PLAN = "schedule r.parquet -o s.parquet --bandwidth"


def stopped(command, capsys):
    """Exit status and output of a command that argparse ends."""
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(command))
    return ended.value.code, "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("figure", "invalid choice: 'figure'"),
        ("report x -o y --profile paper", "unrecognized arguments: --profile paper"),
        ("estimate log.csv", "the following arguments are required: -o/--output"),
        ("estimate log.csv -o r --as-of noon", "--as-of: Invalid isoformat string"),
        ("estimate log.csv -o r --column x", "--column: must be OURS=THEIRS, got 'x'"),
        ("export s.parquet -o x", "the following arguments are required: --to"),
        ("schedule r -o s", "the following arguments are required: --bandwidth"),
        (f"{PLAN} 5/day --per-host 0/hour", f"--per-host: {RATE}, got '0/hour'"),
        (f"{PLAN} 5/day --least-interval 1M", "--least-interval: must be a positive"),
        (f"{PLAN} 5/day --objective x", "argument --objective: invalid choice: 'x'"),
        *[
            (f"{PLAN} {shlex.quote(text)}", f"--bandwidth: {RATE}, got {text!r}")
            for text in ("0/day", "inf/day", "nan/day", "1000", "/day", "10/M", "1/2/d")
        ],
    ],
)
def test_wrong_arguments(capsys, command, message):
    status, said = stopped(command, capsys)
    assert status == 2
    assert message in said


def test_help_names_every_command(capsys):
    status, said = stopped("--help", capsys)
    assert status == 0
    assert set(COMMANDS) < set(said.split())
    assert stopped("--version", capsys) == (0, f"recrawl {__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_parses(name, capsys):
    status, said = stopped(f"{name} --help", capsys)
    said = " ".join(said.split())
    assert status == 0
    assert "exit status" in said
    example = re.search(r"for example: recrawl (.*) \(exit status", said)[1]
    assert cli._parser().parse_args(shlex.split(example)).command == name


# ---- a crawl log


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "rates.parquet"
    assert cli.main(["estimate", str(LOG), "-o", str(path)]) == 0
    return path


def printed(command, capsys):
    """What a command prints that ends well."""
    assert cli.main(list(map(str, command))) == 0
    return capsys.readouterr().out


def test_estimate_prints_what_the_file_holds(rates, tmp_path, capsys):
    command = ["estimate", LOG, "-o", tmp_path / "rates.csv"]
    said = printed(command, capsys)
    found = json.loads(pq.read_metadata(rates).metadata[b"recrawl"])
    for part in (
        f"rates.csv: {found['counts']['rows']:,} rows (beside 256 of failed fetches) "
        "of 62 pages, read from a table in text\n",
        "\nrates by one prior for all pages; ",
        f"intervals {found['dispersion'] ** 0.5:.2g} times as wide as if changes were",
        f"changed {', '.join(f'{each:.2g}' for each in found['drift'])} times",
        "\nfailed fetches by status: 247 of 503, 9 of 404\n",
        "\npages: "
        + ", ".join(f"{n} {kind}" for kind, n in found["kinds"].items() if n)
        + "\n",
        f"the log made {found['pace']:.3g} fetches a day, first and failed ones too",
        "\nthis is for other programs: recrawl schedule takes .parquet, no .csv\n",
    ):
        assert part in said
    assert cli.main(list(map(str, command))) == 2
    assert "rates.csv exists; say --force" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("log", "kinds"),
    [
        (["http://a,2026-01-01,", "http://b,2026-01-02,"], "2 crawled once: "),
        (
            ["http://a,2026-01-01,", "http://a,2026-01-02,1", "http://b,2026-01-02,"],
            "1 always changed, 1 crawled once: ",
        ),
    ],
)
def test_pages_without_an_interval_are_counted(tmp_path, capsys, log, kinds):
    log = write(tmp_path / "log.csv", "url,time,changed\n" + "\n".join(log))
    said = printed(["estimate", log, "-o", tmp_path / "rates.parquet"], capsys)
    assert re.search(
        f"^pages: {kinds}rates of the prior, ages or changes$", said, re.MULTILINE
    )


def cells(line):
    """Columns of a line of a table."""
    return re.split("  +", line)


def test_schedule_prints_what_the_function_finds(rates, tmp_path, capsys):
    path, again = tmp_path / "schedule.parquet", tmp_path / "again.parquet"
    command = ["schedule", rates, "--bandwidth", "700/week", "-o", path]
    lines = printed(command, capsys).splitlines()
    plan = recrawl.schedule(rates, again, 100.0)
    assert path.read_bytes() == again.read_bytes()
    assert lines[0] == f"{path}: 100 crawls a day"
    low, middle, high = plan.promise
    assert cells(lines[1]) == ["expected freshness", "now", "in turn", "scheduled"]
    promised = plan.promise_in_turn[1], middle
    assert [cells(line)[1:] for line in lines[2:4]] == [
        [f"{each:.3f}" for each in row] for row in (plan.compared.values(), promised)
    ]
    assert lines[4] == f"range of the promise: {low:.3f} to {high:.3f}"
    assert lines[5] == f"how sure: {plan.held}"
    assert lines[7].startswith("9 pages without crawls, being gone")
    assert [[float(cell) for cell in line.split()] for line in lines[10:15]] == [
        pytest.approx([each["bandwidth"], *fresh, each["promise"][1]], abs=5.1e-4)
        for each in plan.budgets
        for fresh in [(each["in turn"], each["scheduled"])]
    ]
    assert lines[8].startswith("expected freshness by bandwidth: with the errors")
    assert len({len(line) for line in lines[9:15]}) == 1, "columns"
    assert "some 5% of its fetches" in lines[15]
    assert lines[16:] == [f"next: recrawl export {path} --to CRAWLER -o FILE"]


def test_a_budget_below_the_greatest_intervals_is_impossible(rates, tmp_path, capsys):
    path = tmp_path / "plan.csv"
    command = ["schedule", rates, "--bandwidth", "90/day", "--greatest-interval", "1d"]
    lines = printed([*command, "-o", path], capsys).splitlines()
    rows = [cells(line) for line in lines if line.startswith(("45 ", "90 "))]
    assert rows[0] == ["45", *["impossible"] * 3]
    assert len(rows) == 2
    assert all(float(cell) for cell in rows[1])
    assert lines[-1].startswith("this is for other programs: recrawl export takes")


def test_limits_and_their_prices(rates, tmp_path, capsys):
    paths = tmp_path / "plan.parquet", tmp_path / "again.parquet"
    file = write(tmp_path / "limits.csv", "pattern,rate\nbokeh.example,0.01/minute\n")
    command = ["schedule", rates, "--per-host", "1/hour", "--limits", file]
    known = write(tmp_path / "known.txt", "https://new.example/\n" * 2)
    command += ["--least-interval", "2h", "--bandwidth", "100/day", "-o", paths[0]]
    command += ["--pages", known]
    said = printed(command, capsys)
    assert f"1 page of {known} added; 0 in the rates already, 1 repeated\n" in said
    assert "of these only 50.4: the limits allow no more" in said  # 24, 14.4, 12
    assert "price of the limits of hosts: 0." in said
    assert "price of the least intervals: " in said
    assert "expected freshness by bandwidth, without limits of hosts: with the" in said
    limits = recrawl.CrawlLimits(1 / 12, per_host=24.0, exceptions=file)
    recrawl.schedule(rates, paths[1], 100.0, limits=limits, pages=known)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(("n_pages", "is_told"), [(200, True), (20, False)])
def test_more_pages_due_than_a_day_takes_are_told(
    rates, tmp_path, capsys, n_pages, is_told
):
    """Pages that were never fetched are due at once."""
    path = tmp_path / "plan.parquet"
    urls = [f"https://new.example/{page}\n" for page in range(n_pages)]
    known = write(tmp_path / "known.txt", "".join(urls))
    command = ["schedule", rates, "--pages", known, "--bandwidth", "80/day"]
    said = printed([*command, "-o", path], capsys)
    end = max(filter(None, pq.read_table(rates)["last_crawl"].to_pylist()))
    times = pq.read_table(path)["due"].to_pylist()
    n_due = sum(time is not None and time <= end for time in times)
    assert n_due >= n_pages
    days = units.rounded(n_due / 80)
    line = f"due when the log ends: {n_due} pages, {days} days of the bandwidth\n"
    assert (line in said) == is_told
    assert ("due when" in said) == is_told


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (0.00123456, "price of the limits of hosts: 0.00123 of freshness\n"),
        (-2e-5, "the limits of hosts cost nothing: they gain 2e-05 of freshness, as"),
    ],
)
def test_a_negative_price_is_a_gain(rates, tmp_path, capsys, monkeypatch, cost, said):
    prices = {"limits of hosts": cost}
    monkeypatch.setattr(Problem, "prices", lambda *_: prices)
    command = ["schedule", rates, "--bandwidth", "9/day", "-o", tmp_path / "p.parquet"]
    assert said in printed(command, capsys)


# ---- what the user can mend


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("estimate no.csv -o r.parquet", "no such file or folder: no.csv"),
        (
            "estimate bad.csv -o r.parquet",
            "must have a column 'changed' (or 'digest', 'etag', 'last_modified') in "
            "its first line, got url, time, chnged; --column OURS=THEIRS takes another",
        ),
        (
            "estimate bad.csv -o r.parquet --memory lots",
            "--memory must be a size such as '1GiB', got 'lots'",
        ),
        ("estimate bad.csv -o r.txt", "--output must end in .parquet or .csv, got r.t"),
        ("convert bad.csv -o t.csv.gz", "--output must end in .parquet or .csv, got"),
        (
            "estimate bad.csv -o r.csv --state s.csv",
            "--state must end in .parquet, got s.csv",
        ),
        ("report bad.csv -o r.html.gz", "--output must end in .html or .htm, got r.ht"),
        (f"{PLAN} 1/day", "recrawl: no such file: r.parquet\n"),
        (
            "schedule bad.csv -o s.parquet --bandwidth 1/day",
            "rates must be the Parquet file that `recrawl estimate` wrote, got bad.csv",
        ),
        (
            "export bad.csv --to urls -o urls.txt",
            "schedule must be the Parquet file that `recrawl schedule` wrote, got bad.",
        ),
        (
            f"{PLAN} 1/day --least-interval 2d --greatest-interval 1d",
            "recrawl: --least-interval must be at most greatest_interval, 1 days",
        ),
        (
            "report bad.csv -o r.html --column when=x",
            "--column must be for some of url, time",
        ),
    ],
)
def test_what_the_user_can_mend(tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("url,time,chnged\na,2026-01-01,1\n")
    assert cli.main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("recrawl: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


@pytest.mark.parametrize("argument", cli._OPTIONS)
def test_an_error_names_the_option_of_its_argument(monkeypatch, capsys, argument):
    def refuse(*_, **__):
        raise ArgumentError(argument, "must be at most greatest_interval, got x")

    monkeypatch.setattr(recrawl, "report", refuse)
    assert cli.main(["report", "log.csv", "-o", "r.html"]) == 2
    name, rule = capsys.readouterr().err.removeprefix("recrawl: ").split(maxsplit=1)
    assert rule == "must be at most greatest_interval, got x\n"
    commands = cli._parser()._subparsers._group_actions[0].choices.values()
    actions = [a for c in commands for a in c._actions if a.dest == argument]
    assert name in (actions[0].option_strings or [argument])


@pytest.mark.parametrize(
    "command",
    [
        f"convert {LOG} -o no/log.parquet",
        f"estimate {LOG} -o rates.csv --state no/state.parquet",
        "schedule r --bandwidth 1/day -o no/plan.csv",
        f"report {LOG} -o no/report.html",
    ],
)
def test_a_folder_that_is_missing_shows_before_a_log_is_read(
    tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    for name in ("opened", "gathered"):
        monkeypatch.setattr(reading, name, lambda *_, **__: pytest.fail("too early"))
    assert cli.main(command.split()) == 2
    reason = "cannot write in no: No such file or directory"
    assert capsys.readouterr() == ("", f"recrawl: {reason}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_that_steers_no_terminal(tmp_path, capsys, monkeypatch):
    def estimate(*_, **__):
        warnings.warn("rows\n\x1b]0;evil\x07 left out", UserWarning, stacklevel=2)
        raise OverflowError("date \x1b[2J out of range")

    monkeypatch.setattr(recrawl, "estimate", estimate)
    show = warnings.showwarning
    command = ["estimate", "log.csv", "-o", str(tmp_path / "r.parquet")]
    assert cli.main(command) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == r"recrawl: rows \x1b]0;evil\x07 left out"
    assert second.startswith(r"recrawl: OverflowError, date \x1b[2J out of range; a fi")
    assert warnings.showwarning is show
    with pytest.raises(OverflowError):
        cli.main([*command, "--debug"])


def test_a_host_and_a_file_steer_no_terminal(tmp_path, capsys, monkeypatch):
    """Of pages that always changed, so that their host is flagged."""
    monkeypatch.chdir(tmp_path)
    urls = [f"https://evil\x9b2J\x1b[2J.org/{k}" for k in range(5)] * 9
    times = [f"2026-01-0{1 + k // 5}" for k in range(45)]
    parquet("\x1b[1m.parquet", url=urls, time=times, changed=[True] * 45)
    said = printed(["estimate", "\x1b[1m.parquet", "-o", "\x1b[2m.parquet"], capsys)
    assert r"flagged: evil\x9b2j\x1b[2j.org" in said
    assert not {"\x1b", "\x9b"} & set(said)


# ---- as a process


def run_process(*arguments, code=None, **options):
    """Run the command, or some Python, in a process of its own."""
    start = ["-m", "recrawl"] if code is None else ["-c", code]
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.slow
def test_nobody_reads_the_output(tmp_path):
    """As of ``recrawl estimate LOG ... | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as pipe:
        run = run_process("estimate", LOG, "-o", tmp_path / "r.csv", stdout=pipe)
    assert (run.returncode, run.stderr) == (141, "")


# Runs the command, and sends it a signal when an audited event, such as the import of a
# module, has come so many times. Libraries in C import pandas themselves. Calls of LLVM
# are made events: what its linker has taken over, Python must not free.
SIGNALLED = """
import os, signal, sys
name, event, number, *arguments = sys.argv[1:]
left = int(number)
def hook(seen, given):
    global left
    if seen == event and left:
        left -= 1
        if not left:
            os.kill(os.getpid(), getattr(signal, name))
if event.startswith("LLVM"):
    from llvmlite.binding.ffi import _lib_fn_wrapper as function
    call = function.__call__
    def audited(self, *given):
        result = call(self, *given)
        sys.audit(self._cfn.__name__)
        return result
    function.__call__ = audited
sys.addaudithook(hook)
sys.argv[1:] = arguments
from recrawl.__main__ import main
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    ("command", "event", "number"),
    [
        *[("schedule", "import", 300), ("schedule", "import", 1100)],
        *[("schedule", "ctypes.dlsym", 200), ("schedule", "tempfile.mkstemp", 1)],
        *[("schedule", "tempfile.mkdtemp", 1), ("report", "tempfile.mkdtemp", 2)],
        *[("estimate", "tempfile.mkdtemp", 1), ("estimate", "os.rename", 5)],
        ("schedule", "LLVMPY_LinkModules", 1),
    ],
)
def test_a_signal_ends_a_command_in_one_line(
    rates, tmp_path, name, command, event, number
):
    output, scratch = tmp_path / "output", tmp_path / "scratch"
    scratch.mkdir()
    given = {
        "schedule": [rates, "--bandwidth", "9/day"],
        "estimate": [LOG, "--state", tmp_path / "state"],
        "report": [LOG],
    }
    command = name, event, number, command, *given[command], "-o", output
    environment = os.environ | {"TMPDIR": str(scratch)}
    run = run_process(*command, code=SIGNALLED, env=environment, timeout=300)
    if run.returncode == 0:  # there are not so many of these events
        assert output.exists()
        return
    assert run.returncode == {"SIGINT": 130, "SIGTERM": 143}[name]
    assert run.stderr.startswith(f"recrawl: ended by {name}")
    assert run.stderr.count("\n") == 1
    assert not list(scratch.iterdir())
    left = {path.name for path in tmp_path.iterdir()}
    assert left in ({"scratch"}, {"scratch", "output"}, {"scratch", "output", "state"})


# Prints which modules the command has imported, after its own output.
LOADED = """
import sys
sys.modules["fcntl"] = None  # as on Windows, where there is none
from recrawl import cli
try:
    cli.main()
except SystemExit:
    pass
print(*sys.modules)
"""


@pytest.mark.parametrize("name", [[], ["estimate"]])
def test_help_imports_no_large_library(name):
    found = run_process(*name, "--help", code=LOADED, stdout=subprocess.PIPE)
    loaded = set(found.stdout.split())
    assert "argparse" in loaded
    large = {"duckdb", "pyarrow", "numpy", "numba", "matplotlib", "pandas"}
    assert not (large | {"paperfigs"}) & loaded


@pytest.mark.parametrize(
    ("command", "package"),
    [
        ("estimate log.csv -o rates.parquet", "duckdb"),
        ("report log.csv -o r.html", "pyarrow"),
        ("report log.csv -o r.html", "jinja2"),
        ("report log.csv -o r.html", "matplotlib"),
    ],
)
def test_an_extra_that_is_missing_is_named(command, package):
    code = f"import sys; sys.modules[{package!r}] = None\n"
    code += "from recrawl import cli; sys.exit(cli.main())"
    found = run_process(*command.split(), code=code)
    assert found.returncode == 2
    assert found.stderr.startswith("recrawl: ")
    assert package in found.stderr
    assert found.stderr.endswith(": pip install '.[log]' in a clone\n")
    assert found.stderr.count("\n") == 1
