"""The command: arguments, exit statuses, and messages without a traceback."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl import __version__, cli, reading, scheduling

LOG = Path(__file__).parents[2] / "data" / "example_log.csv.gz"
RATE = (
    "must be a positive number and a unit of time, such as 10/hour (units: second or "
    "s, minute or min, hour or h, day or d, week or w)"
)
COMMANDS = (
    "convert",
    "estimate",
    "schedule",
    "export",
    "compare",
    "backtest",
    "report",
)


@pytest.mark.slow
def test_nobody_reads_the_output():
    """As of ``recrawl compare LOG | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "recrawl", "compare", LOG]
    with os.fdopen(writer) as pipe:
        run = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr) == (141, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["figure"], "invalid choice: 'figure'"),
        (
            ["compare", "log.csv", "--profile", "paper"],
            "recrawl compare: error: unrecognized arguments: --profile",
        ),
        (
            [
                *("schedule", "r.parquet", "-o", "s.parquet", "--bandwidth", "5/day"),
                "--gratest-interval=7d",
            ],
            "recrawl schedule: error: unrecognized arguments: --gratest-interval=7d; "
            "do you mean --greatest-interval or --least-interval",
        ),
        (["estimate", "log.csv"], "the following arguments are required: -o/--output"),
        (
            ["estimate", "log.csv", "-o", "rates.txt"],
            "argument -o/--output: must end in .parquet or .csv, got 'rates.txt'",
        ),
        (
            ["estimate", "log.csv", "-o", "r.parquet", "--level", "1"],
            "argument --level: must be a number strictly between 0 and 1, got '1'",
        ),
        (
            ["estimate", "log.csv", "-o", "r.parquet", "--level", "nan"],
            "argument --level: must be a number strictly between 0 and 1, got 'nan'",
        ),
        (
            ["estimate", "log.csv", "-o", "r.parquet", "--estimator", "best"],
            "argument --estimator: invalid choice: 'best'",
        ),
        (
            ["schedule", "r.parquet", "-o", "s.parquet"],
            "the following arguments are required: --bandwidth",
        ),
        *[
            (
                ["schedule", "r.parquet", "-o", "s.parquet", "--bandwidth", text],
                f"argument --bandwidth: {RATE}, got {text!r}",
            )
            for text in (
                "0/day",
                "-5/day",
                "-.5/day",
                "inf/day",
                "nan/day",
                "1000",
                "/day",
                "many/day",
                "10/fortnight",
                "10/M",
                "10/ms",
                "10/",
                "",
                "1/2/day",
            )
        ],
        (
            ["schedule", "r.parquet", "-o", "s.parquet", "--bandwidth"],
            "argument --bandwidth: expected one argument",
        ),
        (
            [
                "schedule",
                "r.parquet",
                "-o",
                "s.parquet",
                "--bandwidth",
                "5/day",
                "--per-host",
                "0/hour",
            ],
            f"--per-host: {RATE}, got '0/hour'",
        ),
        (
            [
                "schedule",
                "r.parquet",
                "-o",
                "s.parquet",
                "--bandwidth",
                "5/day",
                "--per-host",
                "a=",
            ],
            f"--per-host: {RATE}, got ''",
        ),
        (
            [
                "schedule",
                "r.parquet",
                "-o",
                "s.parquet",
                "--bandwidth",
                "5/day",
                "--per-host",
                "=1/day",
            ],
            "argument --per-host: must name a host before the =, got '=1/day'",
        ),
        (
            [
                "schedule",
                "r.parquet",
                "-o",
                "s.parquet",
                "--bandwidth",
                "5/day",
                "--policy",
                "best",
            ],
            "argument --policy: invalid choice: 'best'",
        ),
        (
            ["backtest", "log.csv", "--share", "0"],
            "argument --share: must be a number strictly between 0 and 1, got '0'",
        ),
        (
            ["backtest", "log.csv", "--share", "most"],
            "argument --share: must be a number strictly between 0 and 1, got 'most'",
        ),
    ],
)
def test_wrong_arguments(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    words = capsys.readouterr().out.split()
    assert words[:2] == ["usage:", "recrawl"]
    assert set(COMMANDS) < set(words)
    assert "--print-completion" in words


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_parse(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([name, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: recrawl {name}")
    assert "exit status" in shown
    examples = [line for line in shown.splitlines() if line.startswith("  recrawl ")]
    assert examples
    for example in examples:
        assert cli._parser().parse_args(shlex.split(example)[1:]).command == name


# ---- a crawl log


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "rates.parquet"
    assert cli.main(["estimate", str(LOG), "-o", str(path)]) == 0
    return path


@pytest.mark.slow
def test_estimate(tmp_path, capsys):
    path, state = tmp_path / "rates.parquet", tmp_path / "state.parquet"
    command = [
        "estimate",
        str(LOG),
        "-o",
        str(path),
        "--state",
        str(state),
        "--estimator",
        "mle",
        "--level",
        "0.5",
        "--memory",
        "500MiB",
    ]
    assert cli.main(command) == 0
    out = capsys.readouterr().out.splitlines()
    first, begun, second, spread, failed, third, *rest = out
    assert begun == f"{state}: a new state"
    pages = pq.read_table(path)
    written = json.loads(pq.read_metadata(path).metadata[b"recrawl"])
    counts = f"{written['counts']['rows']:,} rows (beside 256 of failed fetches)"
    assert first == f"{path}: {counts} of 62 pages, read from a table in text"
    assert rest == [
        f"the log's pace is {written['pace']:.6g} crawls a day without the first "
        f"crawl of each page, {written['pace_of_all']:.6g} with it",
        f"next: recrawl schedule {path} --bandwidth {written['pace']:.6g}/day "
        "-o schedule.parquet",
    ]
    assert second == "estimator mle (asked for)"
    assert spread == (
        f"dispersion {written['dispersion']:.2f}, which is 1 if changes are Poisson; "
        f"calibration: {'done' if written['calibration'] else 'none, for too few bits'}"
    )
    kinds = pages["degenerate"].to_pylist() + pages["pattern"].to_pylist()
    never, always, bursty, regular = (
        kinds.count(kind) for kind in ("never", "always", "bursty", "regular")
    )
    gone = pages["gone"].to_pylist().count(True)
    assert third == (
        f"pages: {never} never changed, {always} always changed, {bursty} bursty, "
        f"{regular} regular, {gone} gone, 0 never fetched successfully, "
        "0 fetched, but with nothing to compare"
    )
    assert failed == "failed fetches by status: 247 of 503, 9 of 404"
    assert gone == 9
    assert bursty > 0
    assert pq.read_table(state).num_rows == 62
    with warnings.catch_warnings(action="default"):
        assert cli.main([*command, "--force"]) == 0
    told = capsys.readouterr()
    assert f"{state}: added to this state, 0 of 62 pages new" in told.out
    assert "17,405 not after the last row of their page" in told.err
    before = path.read_bytes()
    assert cli.main(["estimate", str(LOG), "-o", str(path)]) == 2
    assert f"{path} exists" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert (
        cli.main([*command[:2], "-o", str(tmp_path / "rates.csv"), *command[6:]]) == 0
    )
    assert third in capsys.readouterr().out, "a CSV file tells it too"
    assert cli.main(["estimate", str(LOG), "-o", str(path), "--force"]) == 0
    assert "log loss of the last bit of 62 pages" in capsys.readouterr().out


def test_degenerate_pages_are_counted(tmp_path, capsys):
    rows = [
        f"https://{page}/,2026-01-{day:02d},{bit}"
        for day in range(1, 12)
        for page, bit in (("a", 0), ("b", 0), ("c", 1), ("d", day % 2))
    ]
    (tmp_path / "log.csv").write_text("\n".join(["url,time,changed", *rows, ""]))
    assert (
        cli.main(
            [
                "estimate",
                str(tmp_path / "log.csv"),
                "-o",
                str(tmp_path / "rates.parquet"),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("44 rows of 4 pages, read from a table in text")
    assert out[3].startswith("pages: 2 never changed, 1 always changed, ")
    assert out[4] == (  # four pages, ten intervals of a day
        "the log's pace is 4 crawls a day without the first crawl of each page, "
        "4.4 with it"
    )


@pytest.mark.slow
def test_now_and_the_schedule_are_compared_on_the_same_pages(rates, tmp_path, capsys):
    told = pq.read_table(rates)
    now = [None, *told["freshness_now"].to_pylist()[1:]]
    place = told.column_names.index("freshness_now")
    path, out = tmp_path / "some.parquet", tmp_path / "schedule.parquet"
    pq.write_table(told.set_column(place, "freshness_now", pa.array(now)), path)
    assert (
        cli.main(["schedule", str(path), "--bandwidth", "9/day", "-o", str(out)]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    plan = recrawl.schedule(path, out, 9.0, force=True)
    assumed = "if changes were Poisson and estimates exact"
    now, then = f"{plan.freshness_now:.4f}", f"{plan.freshness_compared:.4f}"
    everywhere = f"{plan.freshness_if_exact:.4f}"
    assert [re.split("  +", line) for line in lines[2:4]] == [
        [f"{assumed}, pages with intervals", now, then],
        [f"{assumed}, all fetched pages", everywhere],
    ]


@pytest.mark.slow
def test_a_log_of_other_pages_joins_a_state_and_this_is_told(tmp_path, capsys):
    log, state = tmp_path / "log.csv", tmp_path / "state.parquet"
    rows = "".join(
        f"{{site}}/{k % 4},{1.7e9 + 86_400 * k},{k % 2}\n" for k in range(40)
    )
    command = ["estimate", str(log), "-o", str(tmp_path / "rates.parquet"), "--force"]
    for site in "ab":
        log.write_text("url,time,changed\n" + rows.format(site=site))
        assert cli.main([*command, "--state", str(state)]) == 0
    first, second = re.findall(r"state.parquet: (.*)", capsys.readouterr().out)
    assert first == "a new state"
    assert second == "added to this state, 4 of 8 pages new"


def test_schedule(rates, tmp_path, capsys):
    path = tmp_path / "schedule.parquet"
    assert (
        cli.main(["schedule", str(rates), "--bandwidth", "700/week", "-o", str(path)])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    plan = recrawl.schedule(rates, tmp_path / "again.parquet", 100.0)
    assert lines[0] == f"{path}: 100 crawls a day"
    now, exact, allowing, calibrated = (
        f"{getattr(plan, name):.4f}"
        for name in ("freshness_now", "freshness_if_exact", "freshness", "calibrated")
    )
    assert [re.split("  +", line) for line in lines[1:5]] == [
        ["expected freshness", "now", "scheduled"],
        ["if changes were Poisson and estimates exact", now, exact],
        [
            "if changes were Poisson, with an allowance for errors of estimates",
            allowing,
        ],
        ["calibrated on the log", calibrated],
    ]
    del lines[1]
    assert lines[4] == (
        f"value of one more crawl a day: {plan.one_more:.2g} of freshness, "
        f"one fewer costs {plan.one_fewer:.2g}"
    )
    cost = plan.prices["hedge"]["cost"]
    assert lines[5] == (
        f"the hedge of 25% costs {cost:.2g} of freshness if changes are Poisson"
    )
    assert lines[6] == (
        "9 pages without crawls, being gone: 404 or 410 when last fetched: "
        f"{', '.join(map(repr, plan.gone['first']))}, ..."
    )
    assert re.split("  +", lines[7]) == [
        "crawls a day", "freshness if Poisson", "calibrated"
    ]  # fmt: skip
    assert [line.split() for line in lines[8:]] == [
        [f"{crawls:g}", f"{fresh:.4f}", f"{calibrated:.4f}"]
        for (crawls, fresh), calibrated in zip(
            plan.worth, plan.worth_calibrated, strict=True
        )
    ]
    assert len({len(line) for line in lines[7:]}) == 1, "columns"
    scarce = ["--bandwidth", "0.5/day", "--hedge", "0", "-o", str(tmp_path / "b.csv")]
    assert cli.main(["schedule", str(rates), *scarce]) == 0
    told = r"[1-9]\d* pages without crawls, as others gain more by them: 'http"
    assert re.search(told, capsys.readouterr().out)
    assert np.sum(pq.read_table(path)["crawl_rate"].to_numpy()) == pytest.approx(100)
    assert (
        cli.main(["schedule", str(rates), "--bandwidth", "5/day", "-o", str(path)]) == 2
    )
    assert f"{path} exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (["--per-host", "1/hour"], {"debian.example": 24, "bokeh.example": 24}),
        (["--per-host", "debian.example=1/hour"], {"debian.example": 24}),
        (
            [
                "--per-host",
                "debian.example=1/hour",
                "--per-host",
                "bokeh.example=0.5/minute",
            ],
            {"debian.example": 24, "bokeh.example": 720},
        ),
    ],
)
def test_limits_of_hosts(rates, tmp_path, capsys, limits, most):
    path = tmp_path / "schedule.parquet"
    assert (
        cli.main(
            [
                "schedule",
                str(rates),
                "--bandwidth",
                "100/day",
                *limits,
                "-o",
                str(path),
                "--policy",
                "poisson",
            ]
        )
        == 0
    )
    assert "freshness if Poisson without limits of hosts" in capsys.readouterr().out
    crawled, hosts = (
        pq.read_table(path)["crawl_rate"].to_numpy(),
        np.array(pq.read_table(rates)["host"].to_pylist()),
    )
    for host, limit in most.items():
        assert crawled[hosts == host].sum() <= limit * (1 + 1e-6)
    assert crawled[hosts == "debian.example"].sum() == pytest.approx(24), (
        "it would take more"
    )


def test_a_bandwidth_that_the_hosts_do_not_allow(rates, tmp_path, capsys):
    def lines(*limit):
        path = tmp_path / f"{' '.join(limit).replace('/', ' a ')}.parquet"
        assert (
            cli.main(
                [
                    "schedule",
                    str(rates),
                    "--bandwidth",
                    "100/day",
                    "-o",
                    str(path),
                    *limit,
                ]
            )
            == 0
        )
        return capsys.readouterr().out.splitlines()[:2]

    assert (
        lines("--per-host", "1/hour")[1] == "of these only 48: the hosts allow no more"
    ), "two hosts of 24 a day"
    assert lines("--per-host", "100/hour")[1].startswith("expected freshness  ")
    assert lines()[1].startswith("expected freshness  ")


@pytest.mark.parametrize(
    ("unit", "a_day"),
    [
        ("second", 86400),
        ("minute", 1440),
        ("hour", 24),
        ("day", 1),
        ("week", 1 / 7),
        (" day", 1),
        ("d", 1),
        ("days", 1),
        ("hr", 24),
    ],
)
def test_units(monkeypatch, unit, a_day):
    seen = []

    def schedule(*arguments, **options):
        seen.append((arguments[2], options["per_host"]))
        raise ValueError("enough")

    monkeypatch.setattr(recrawl, "schedule", schedule)
    cli.main(
        [
            "schedule",
            "r",
            "-o",
            "s",
            "--bandwidth",
            f"1.5e1/{unit}",
            "--per-host",
            f"x=y=2/{unit}",
        ]
    )
    ((bandwidth, per_host),) = seen
    assert bandwidth == pytest.approx(15 * a_day, rel=1e-12)
    assert per_host == {"x=y": pytest.approx(2 * a_day, rel=1e-12)}


@pytest.mark.slow
def test_compare(capsys):
    assert cli.main(["compare", str(LOG)]) == 0
    head, *rows, pages = [
        re.split("  +", line) for line in capsys.readouterr().out.splitlines()
    ]
    assert pages == ["from 53 pages, crawled twice or more and not gone"]
    assert head[0] == "freshness if changes were Poisson"
    assert re.fullmatch(r"in the log's \d+ days", head[1])
    assert head[2:] == ["in the long run", "calibrated on the log"]
    fresh = [float(row[2]) for row in rows]
    calibrated = {name for name, *numbers in rows if len(numbers) == 3}
    assert calibrated == {"the log", "uniform", "proportional", "optimal"}
    assert fresh == sorted(fresh)
    assert {name for name, *_ in rows} == {
        "the log",
        "uniform",
        "proportional",
        "optimal",
        "Nutch",
        "StormCrawler",
    }


@pytest.mark.slow
def test_backtest(capsys):
    assert cli.main(["backtest", str(LOG), "--share", "0.7"]) == 0
    first, head, *rows = capsys.readouterr().out.splitlines()
    found = recrawl.backtest(LOG, share=0.7)
    assert first == f"{found.n_bits:,} bits predicted"
    assert head.split() == ["estimator", "log", "loss", "behind", "the", "best"]
    best = min(found.log_loss.values())
    expected = [
        [name, f"{loss:.4f}", f"{loss - best:.4f}", f"{found.stderr[name]:.4f}"]
        for name, loss in found.log_loss.items()
    ]
    assert [row.rsplit(maxsplit=4) for row in rows] == [
        [name, loss, more, "±", error] for name, loss, more, error in expected
    ]


@pytest.mark.filterwarnings("default")
def test_rows_left_out_are_told_of_in_one_line(tmp_path, capsys, monkeypatch):
    message = (
        "rows left out of log.csv: 2 whose time cannot be read (log.csv row 3:\na,b)"
    )

    def estimate(*_, **__):
        warnings.warn(message, recrawl.BadRowsWarning, stacklevel=2)
        raise ValueError("nothing left")

    monkeypatch.setattr(recrawl, "estimate", estimate)
    show = warnings.showwarning
    assert cli.main(["estimate", "log.csv", "-o", str(tmp_path / "r.parquet")]) == 2
    assert capsys.readouterr() == (
        "",
        f"recrawl: {message.replace(chr(10), ' ')}\nrecrawl: nothing left\n",
    )
    assert warnings.showwarning is show


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["estimate", "no.csv", "-o", "r.parquet"], "no such file or folder: no.csv"),
        (
            ["estimate", "bad.csv", "-o", "r.parquet"],
            "must have a column 'changed' (or 'digest', 'etag', 'last_modified') in "
            "its first line, got url, time, chnged; --column OURS=THEIRS takes another",
        ),
        (
            ["estimate", "bad.csv", "-o", "r.parquet", "--memory", "lots"],
            "--memory must be a size such as '1GiB', got 'lots'",
        ),
        (["estimate", "bad.csv", "-o", "r.parquet", "--state", "bad.csv"], "bad.csv"),
        (
            ["schedule", "no.parquet", "-o", "s.parquet", "--bandwidth", "1/day"],
            "recrawl: no such file: no.parquet\n",
        ),
        (
            ["schedule", "bad.csv", "-o", "s.parquet", "--bandwidth", "1/day"],
            "rates must be the Parquet file that `recrawl estimate` wrote, got "
            "bad.csv: run `recrawl estimate LOG -o rates.parquet`\n",
        ),
        (
            ["export", "bad.csv", "--to", "urls", "-o", "urls.txt"],
            "schedule must be the Parquet file that `recrawl schedule` wrote, got "
            "bad.csv: run `recrawl schedule rates.parquet --bandwidth RATE "
            "-o schedule.parquet`\n",
        ),
        (
            [
                "schedule",
                str(LOG),
                "-o",
                "s.parquet",
                "--bandwidth",
                "1/day",
                "--per-host",
                "1/day",
                "--per-host",
                "2/day",
            ],
            "--per-host must be given once for each host, or for the rest",
        ),
        (
            [
                *("schedule", "r", "-o", "s.csv", "--bandwidth", "1/day"),
                *("--least-interval", "2d", "--greatest-interval", "1d"),
            ],
            "recrawl: --least-interval must be at most --greatest-interval, 1 days",
        ),
        (
            ["compare", "bad.csv", "--column", "when=x"],
            "recrawl: --column must be for some of url, time, digest, etag, "
            "last_modified, changed, start,",
        ),
        # what is in a file is not called by the names of options
        (
            [
                *("schedule", "r", "-o", "s.csv", "--bandwidth", "1/day"),
                *("--limits", "bad.csv"),
            ],
            "only of least_interval, greatest_interval, rate, got url, time, chnged",
        ),
        (["compare", "no.csv"], "no such file or folder: no.csv"),
        (["compare", "bad.csv"], "must have a column 'changed'"),
        (["backtest", "bad.csv"], "must have a column 'changed'"),
    ],
)
def test_what_the_user_can_mend(tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("url,time,chnged\na,2026-01-01,1\n")
    assert cli.main(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("recrawl: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


@pytest.mark.parametrize(
    "command",
    [
        ["convert", LOG, "-o", "no/log.parquet"],
        ["estimate", LOG, "-o", "no/rates.csv"],
        ["estimate", LOG, "-o", "rates.csv", "--state", "no/state.parquet"],
        ["schedule", "r", "--bandwidth", "1/day", "-o", "no/plan.csv"],
        ["schedule", "r", "--bandwidth", "1/day", "--to", "urls", "-o", "no/urls"],
        ["report", LOG, "-o", "no/report.html"],
    ],
)
def test_a_folder_that_is_missing_shows_before_a_log_is_read(
    tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    for module in (reading, scheduling):
        for name in {"opened", "gathered", "_open"} & vars(module).keys():
            monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("too early"))
    assert cli.main(list(map(str, command))) == 2
    reason = "cannot write in the folder, No such file or directory: 'no'"
    assert capsys.readouterr() == ("", f"recrawl: [Errno 2] {reason}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "nutch", "--due", "31.12.2026"], "--due must be a time in ISO 8601"),
        (["--to", "frontier"], "--exported must be the lines that DumpURLs"),
    ],
)
def test_a_wrong_export_shows_before_a_schedule_is_made(
    rates, tmp_path, capsys, options, message
):
    command = ["schedule", str(rates), "--bandwidth", "9/day", *options]
    assert cli.main([*command, "-o", str(tmp_path / "seeds.txt")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err


def test_an_output_that_is_a_folder(tmp_path, capsys):
    path = tmp_path / "rates.csv"
    path.mkdir()
    assert cli.main(["estimate", str(LOG), "-o", str(path), "--force"]) == 2
    message = f"recrawl: [Errno 21] Is a directory: '{path}'\n"
    assert capsys.readouterr() == ("", message)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with a name are of Unix")
def test_an_output_that_is_a_pipe_shows_before_a_log_is_read(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(reading, "opened", lambda *_, **__: pytest.fail("too early"))
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    assert cli.main(["estimate", str(LOG), "-o", str(path), "--force"]) == 2
    assert "a pipe or a device is there" in capsys.readouterr().err
    assert path.is_fifo()


def run_process(*arguments, code=None):
    """Run the command, or some Python, in a process of its own."""
    start = ["-m", "recrawl"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)], capture_output=True, text=True
    )


@pytest.mark.slow
def test_as_a_process():
    """The real command, without a traceback for what the user can mend."""
    assert run_process("--version").stdout == f"recrawl {__version__}\n"
    wrong = run_process("compare", "nowhere.csv")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("recrawl: no such file or folder: nowhere.csv")
    assert wrong.stderr.count("\n") == 1


# Prints which modules the command has imported, after its own output.
LOADED = """
import sys
from recrawl import cli
try:
    cli.main()
except SystemExit:
    pass
print(*sys.modules)
"""


@pytest.mark.parametrize("name", [[], *([name] for name in COMMANDS)])
def test_help_imports_no_large_library(name):
    # as on Windows, where there is none
    without = "import sys; sys.modules['fcntl'] = None"
    found = run_process(*name, "--help", code=without + LOADED).stdout.split()
    assert "argparse" in found
    large = {"duckdb", "pyarrow", "numpy", "numba", "matplotlib", "pandas", "shtab"}
    assert large.isdisjoint(found)
    assert "paperfigs" not in found


@pytest.mark.slow
def test_logs_are_read_without_what_builds_figures(tmp_path):
    path = tmp_path / "rates.parquet"
    found = run_process("estimate", LOG, "-o", path, code=LOADED).stdout.split()
    assert path.exists()
    assert "recrawl" in found
    assert {"paperfigs", "matplotlib", "papermill"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["estimate", "log.csv", "-o", "rates.parquet"], "duckdb", "log"),
        (["compare", "log.csv"], "pyarrow", "log"),
    ],
)
def test_an_extra_that_is_missing_is_named(arguments, package, extra):
    code = f"import sys; sys.modules[{package!r}] = None\n"
    code += "from recrawl import cli; sys.exit(cli.main())"
    found = run_process(*arguments, code=code)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("recrawl: ")
    assert found.stderr.endswith(f": pip install 'paperlib-crawl[{extra}]'\n")
    assert found.stderr.count("\n") == 1


def test_debug_shows_where_an_error_comes_from(capsys):
    assert cli.main(["compare", "nowhere.csv"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        cli.main(["compare", "nowhere.csv", "--debug"])


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_the_commands(shell, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--print-completion", shell])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_completion_is_optional(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "completion" not in capsys.readouterr().out
