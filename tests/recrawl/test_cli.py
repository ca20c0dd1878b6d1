"""The command: arguments, exit statuses, and messages without a traceback."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl import __version__, cli, reading, scheduling
from recrawl.errors import ArgumentError

LOG = Path(__file__).parents[2] / "data" / "example_log.csv.gz"
COMMANDS = "convert", "estimate", "schedule", "export", "compare", "backtest", "report"
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
        ("compare log.csv --profile paper", "unrecognized arguments: --profile paper"),
        ("estimate log.csv", "the following arguments are required: -o/--output"),
        ("estimate log.csv -o r --as-of noon", "--as-of: Invalid isoformat string"),
        ("estimate log.csv -o r --column x", "--column: must be OURS=THEIRS, got 'x'"),
        ("export s.parquet -o x", "the following arguments are required: --to"),
        ("schedule r -o s", "the following arguments are required: --bandwidth"),
        (f"{PLAN} 5/day --per-host a=0/hour", f"--per-host: {RATE}, got '0/hour'"),
        (f"{PLAN} 5/day --least-interval 1M", "--least-interval: must be a positive"),
        (f"{PLAN} 5/day --policy best", "argument --policy: invalid choice: 'best'"),
        ("backtest log.csv --share most", "--share: invalid float value: 'most'"),
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


def test_estimate(rates, tmp_path, monkeypatch, capsys):
    """What it prints is what the file holds."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["estimate", str(LOG), "-o", "rates.csv"]) == 0
    first, why, spread, drift, failed, pages, pace = (
        capsys.readouterr().out.splitlines()
    )
    found = json.loads(pq.read_metadata(rates).metadata[b"recrawl"])
    assert first == (
        f"rates.csv: {found['counts']['rows']:,} rows (beside 256 of failed fetches) "
        "of 62 pages, read from a table in text"
    )
    assert why == f"rates by {found['why']}"
    assert spread == (
        f"dispersion {found['dispersion']:.2f}, which is 1 if changes are Poisson"
    )
    factors = ", ".join(f"{factor:.2g}" for factor in found["drift"])
    assert drift == (
        f"in later parts of the log pages changed {factors} times as often as predicted"
    )
    assert failed == "failed fetches by status: 247 of 503, 9 of 404"
    columns = pq.read_table(rates)
    for name, kinds in {
        "degenerate": ("never changed", "always changed"),
        "pattern": ("bursty", "regular"),
    }.items():
        for kind in kinds:
            n = columns[name].to_pylist().count(kind.split()[0])
            assert f"{n} {kind}" in pages
    assert f"{sum(columns['gone'].to_pylist())} gone" in pages
    assert pace == (
        f"the log's pace is {found['pace']:.6g} crawls a day without the first crawl "
        f"of each page, {found['pace_of_all']:.6g} with it"
    )
    assert cli.main(["estimate", str(LOG), "-o", "rates.csv"]) == 2
    assert "rates.csv exists; say --force" in capsys.readouterr().err


def numbers(line):
    """Columns of a line of a table, without the first."""
    return re.split("  +", line)[1:]


def test_schedule(rates, tmp_path, capsys):
    path = tmp_path / "schedule.parquet"
    command = ["schedule", str(rates), "--bandwidth", "700/week", "-o", str(path)]
    assert cli.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    plan = recrawl.schedule(rates, tmp_path / "again.parquet", 100.0)
    assert path.read_bytes() == (tmp_path / "again.parquet").read_bytes()
    assert lines[0] == f"{path}: 100 crawls a day"
    names = ("freshness_now", "freshness_compared", "freshness")
    now, *fresh = (f"{getattr(plan, name):.4f}" for name in names)
    low, middle, high = (f"{each:.4f}" for each in plan.promise)
    assert [numbers(line) for line in lines[1:5]] == [
        ["now", "scheduled"],
        [now, fresh[0]],
        [fresh[1]],
        [middle],
    ]
    assert lines[5].startswith(f"range of the promise: {low} to {high} (")
    assert lines[6] == (
        f"value of one more crawl a day: {plan.one_more:.2g} of freshness, "
        f"one fewer costs {plan.one_fewer:.2g}"
    )
    cost = plan.prices["hedge"]["cost"]
    assert lines[7] == f"price of the hedge of 25%: {cost:.2g} of freshness"
    assert lines[8].startswith("9 pages without crawls, being gone: 404 or 410 ")
    assert [line.split() for line in lines[10:]] == [
        [f"{crawls:g}", f"{fresh:.4f}", f"{promised:.4f}"]
        for crawls, fresh, promised in plan.worth
    ]
    assert len({len(line) for line in lines[9:]}) == 1, "columns"


def test_a_plan_that_loses_changes_is_warned_of(tmp_path, capsys):
    rates, output = tmp_path / "rates.parquet", str(tmp_path / "plan.parquet")
    urls = [f"https://a.org/{k}" for k in range(4)]
    for change_rate, warned in (([0.1, 0.1, 5.0, 5.0], True), ([1.0] * 4, False)):
        pq.write_table(pa.table({"url": urls, "change_rate": change_rate}), rates)
        command = ["schedule", str(rates), "--bandwidth", "1/day", "-o", output]
        assert cli.main([*command, "--force"]) == 0
        said = capsys.readouterr().out
        assert ("of all changes are seen by no crawl" in said) is warned


def test_limits(rates, tmp_path, capsys):
    limits = ["--per-host", "1/hour", "--per-host", "bokeh.example=0.01/minute"]
    limits += ["--least-interval", "2h", "--hedge", "0", "--bandwidth", "100/day"]
    path = tmp_path / "plan.parquet"
    assert cli.main(["schedule", str(rates), *limits, "-o", str(path)]) == 0
    said = capsys.readouterr().out
    assert "of these only 38.4: the limits allow no more" in said
    assert "price of the limits of hosts: 0." in said
    assert "price of the least intervals: " in said
    crawled = pq.read_table(path)["crawl_rate"].to_numpy()
    hosts = pq.read_table(rates)["host"].to_numpy()
    assert crawled[hosts == "debian.example"].sum() == pytest.approx(24)
    assert crawled[hosts == "bokeh.example"].sum() == pytest.approx(14.4)
    assert crawled.max() <= 12


@pytest.mark.slow
def test_compare(capsys):
    assert cli.main(["compare", str(LOG)]) == 0
    head, *rows, pages = capsys.readouterr().out.splitlines()
    assert pages == "from 53 pages, crawled twice or more and not gone"
    assert re.split("  +", head) == ["rule", "freshness if changes were Poisson"]
    fresh = [float(numbers(row)[0]) for row in rows]
    assert fresh == sorted(fresh)
    rules = {re.split("  +", row)[0] for row in rows}
    assert rules == {"the log", "uniform", "proportional", "optimal"}


@pytest.mark.slow
def test_backtest(capsys):
    assert cli.main(["backtest", str(LOG), "--share", "0.7"]) == 0
    first, _, *rows = capsys.readouterr().out.splitlines()
    found = recrawl.backtest(LOG, share=0.7)
    assert first == f"{found.n_bits:,} bits predicted"
    best = min(found.log_loss.values())
    assert [re.split("  +", row) for row in rows] == [
        [name, f"{loss:.4f}", f"{loss - best:.4f} ± {found.stderr[name]:.4f}"]
        for name, loss in found.log_loss.items()
    ]


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
        ("report bad.csv -o r.pdf", "--output must end in .html or .htm, got r.pdf"),
        (f"{PLAN} 1/day", "recrawl: no such file: r.parquet\n"),
        (
            "schedule bad.csv -o s.parquet --bandwidth 1/day",
            "rates must be the Parquet file that `recrawl estimate` wrote, got "
            "bad.csv: run `recrawl estimate LOG -o rates.parquet`\n",
        ),
        (
            "export bad.csv --to urls -o urls.txt",
            "schedule must be the Parquet file that `recrawl schedule` wrote, got "
            "bad.csv: run `recrawl schedule rates.parquet --bandwidth RATE "
            "-o schedule.parquet`\n",
        ),
        (
            f"{PLAN} 1/day --least-interval 2d --greatest-interval 1d",
            "recrawl: --least-interval must be at most greatest_interval, 1 days",
        ),
        (f"{PLAN} 1/day --hedge 2", "recrawl: --hedge must be in [0, 1], got 2.0"),
        ("backtest bad.csv --share 0", "--share must be strictly between 0 and 1, got"),
        (
            "compare bad.csv --column when=x",
            "--column must be for some of url, time",
        ),
        ("compare bad.csv", "must have a column 'changed'"),
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


def test_every_argument_of_a_function_has_its_option(monkeypatch, capsys):
    """An error names the option that sets the argument, and keeps the rest."""
    for argument in cli._OPTIONS:
        error = ArgumentError(argument, "must be at most greatest_interval, got x")
        monkeypatch.setattr(recrawl, "backtest", lambda *_, e=error, **__: raising(e))
        assert cli.main(["backtest", "log.csv"]) == 2
        said = capsys.readouterr().err.split(" must be at most greatest_interval, ")
        called = said[0].removeprefix("recrawl: ")
        assert any(
            called in action.option_strings or called == action.dest
            for command in cli._parser()._subparsers._group_actions[0].choices.values()
            for action in command._actions
            if action.dest == argument
        ), argument


def raising(error):
    raise error


@pytest.mark.parametrize(
    "command",
    [
        f"convert {LOG} -o no/log.parquet",
        f"estimate {LOG} -o rates.csv --state no/state.parquet",
        "schedule r --bandwidth 1/day -o no/plan.csv",
        "schedule r --bandwidth 1/day --to urls -o no/urls",
        f"report {LOG} -o no/report.html",
    ],
)
def test_a_folder_that_is_missing_shows_before_a_log_is_read(
    tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    for module in (reading, scheduling):
        for name in {"opened", "gathered", "_open"} & vars(module).keys():
            monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("too early"))
    assert cli.main(command.split()) == 2
    reason = "cannot write in the folder, No such file or directory: 'no'"
    assert capsys.readouterr() == ("", f"recrawl: [Errno 2] {reason}\n")
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
    pages = [f"https://evil\x9b2J\x1b[2J.org/{k}" for k in range(5)]
    columns = {"url": [url for url in pages for _ in range(9)]}
    columns["time"] = [f"2026-01-0{day}" for _ in pages for day in range(1, 10)]
    columns["changed"] = [True] * 45
    pq.write_table(pa.table(columns), "\x1b[1m.parquet")
    assert cli.main(["estimate", "\x1b[1m.parquet", "-o", "\x1b[2m.parquet"]) == 0
    said = capsys.readouterr().out
    assert r"flagged: evil\x9b2j\x1b[2j.org" in said
    assert not {"\x1b", "\x9b"} & set(said)


# ---- as a process


def run_process(*arguments, code=None, **options):
    """Run the command, or some Python, in a process of its own."""
    start = ["-m", "recrawl"] if code is None else ["-c", code]
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.slow
def test_nobody_reads_the_output():
    """As of ``recrawl compare LOG | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as pipe:
        run = run_process("compare", LOG, stdout=pipe)
    assert (run.returncode, run.stderr) == (141, "")


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
        ("compare log.csv", "pyarrow"),
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
    assert found.stderr.endswith(": pip install 'paperlib-crawl[log]'\n")
    assert found.stderr.count("\n") == 1
