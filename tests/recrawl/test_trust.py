"""Nothing is silently wrong: what could be lost or misread is refused or told."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl import cli
from recrawl.log.tally import OVERLAP
from tests.recrawl.crawl_logs import START, parquet, recorded, table, write
from tests.recrawl.thinned import every

DAY = 86_400
NAMES = ("url", "time", "changed")
ROWS = [(f"http://h/{k % 4}", START + DAY * (k // 4), k % 3 == 0) for k in range(80)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a log, its rates and a schedule, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(table(ROWS))
    assert cli.main(["estimate", "log.csv", "-o", "rates.parquet"]) == 0
    recrawl.schedule("rates.parquet", "plan.parquet", 1.0)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    every(4, [
        "estimate log.csv -o log.csv",
        "estimate log.csv -o log.csv --force",
        "estimate . -o log.csv --force --from csv",
        "estimate log.csv -o new.parquet --state new.parquet",
        "estimate log.csv -o rates.parquet --state rates.parquet --force",
        "estimate log.csv -o new.parquet --state log.csv",
        "estimate log.csv -o signals.csv --signals signals.csv --force",
        "convert log.csv -o log.csv --force",
        "convert log.csv -o link.csv --force",
        "report log.html -o log.html --from csv --force",
        "schedule rates.parquet --bandwidth 1/day -o rates.parquet --force",
        "schedule rates.parquet --bandwidth 1/h --limits log.csv -o log.csv --force",
        "schedule rates.parquet --bandwidth 1/d --importance signals.csv "
        "-o signals.csv --force",
        "schedule rates.parquet --bandwidth 1/d --pages signals.csv "
        "-o signals.csv --force",
        "export plan.parquet --to urls -o plan.parquet --force",
    ]),
)  # fmt: skip
def test_no_output_replaces_what_is_read(folder, capsys, command):
    (folder / "signals.csv").write_text("url,time\n")
    (folder / "log.html").write_text(table(ROWS))
    (folder / "link.csv").symlink_to("log.csv")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    capsys.readouterr()
    assert cli.main(command.split()) == 2
    assert " must be another file than " in capsys.readouterr().err
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def bits(values):
    """The text of a log whose bits are these."""
    return table([(*row[:2], value) for row, value in zip(ROWS, values, strict=True)])


@pytest.mark.parametrize(
    ("yes", "no", "message"),
    [
        ("2", "0", "got '2' in 27 of 80 rows"),
        ("ja", "nein", "got 'nein', 'ja' in 80 of 80 rows"),
        ("", "", "got nothing in all 80;"),
    ],
)
def test_a_column_changed_that_holds_something_else(tmp_path, yes, no, message):
    path = write(tmp_path / "log.csv", bits([yes if row[2] else no for row in ROWS]))
    with pytest.raises(ValueError, match=message):
        recrawl.estimate(path, tmp_path / "rates.parquet")
    with pytest.raises(ValueError, match=message):
        recrawl.convert(path, tmp_path / "new.parquet")


def test_pages_that_are_new_need_no_bits(tmp_path):
    rows = [(f"http://h/{k}", START, "") for k in range(80)]
    path = write(tmp_path / "log.csv", table(rows))
    assert recrawl.estimate(path, tmp_path / "rates.parquet").n_pages == 80


def overlapping(path, days):
    """A log whose rows begin some days before the row before them."""
    rows = [(u, t, bit, t - (1 + days) * DAY) for u, t, bit in ROWS]
    return write(path, table(rows, ("url", "time", "changed", "start")))


def measured(path, **options):
    """Number of intervals and changes, mean rate, and what was told of overlaps."""
    rates = path.with_suffix(".parquet")
    options = {"force": True, **options}
    found, told = recorded(recrawl.estimate, path, rates, **options)
    read = pq.read_table(rates).to_pandas()
    return found.counts.get(OVERLAP, 0), read.change_rate.mean(), " ".join(told)


def test_a_small_overlap_loses_no_change(tmp_path):
    n, rate, told = measured(overlapping(tmp_path / "log.csv", 0))
    assert (n, told) == (0, "")
    n, other, told = measured(overlapping(tmp_path / "log.csv", 1 / DAY))
    assert (n, told) == (0, "")
    assert other == pytest.approx(rate, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("days", [1 / DAY, 0.5])
def test_a_state_and_an_overlap(tmp_path, days):
    """Two days are a log, whose rows begin before the last of the state."""
    text = overlapping(tmp_path / "log.csv", days).read_text().splitlines()
    lost = 0
    for day in range(0, 20, 2):
        lines = [text[0], *text[1 + 4 * day : 9 + 4 * day]]
        path = write(tmp_path / "days.csv", "\n".join(lines))
        n, rate, told = measured(path, state=tmp_path / "state.parquet")
        lost += n
    assert bool(lost) == bool(told) == (days == 0.5)
    if not lost:
        assert rate == pytest.approx(measured(tmp_path / "log.csv")[1], rel=1e-4)


def test_a_log_without_any_importance_that_can_be_read_is_used(tmp_path):
    text = table([(*row, "high") for row in ROWS], (*NAMES, "importance"))
    path = write(tmp_path / "log.csv", text)
    found, (told,) = recorded(recrawl.estimate, path, tmp_path / "rates.parquet")
    assert found.n_pages == 4
    assert told.startswith(f"rows of {path} that are crawls all the same: 80 whose imp")


def said(capsys, *command, status=2):
    """What a command says on its way to an exit status."""
    capsys.readouterr()
    assert cli.main(list(map(str, command))) == status
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("change_rate", ["1", "2"], "rates must hold numbers in the column 'change_ra"),
        ("n_crawls", ["1", "2"], "rates must hold numbers in the column 'n_crawls', g"),
        ("gone", ["no", "no"], "rates must hold true or false in the column 'gone', g"),
        ("last_crawl", [1.0, 2.0], "rates must hold times in the column 'last_crawl'"),
        ("importance", [1e308] * 2, "importance must have a finite sum, got inf;"),
        ("importance", [1.0, -1.0], "recrawl: column importance must be non-negative"),
        ("change_rate", [1.0, None], "non-negative and finite, got nan at index (1,)"),
        ("change_rate", [1.0, -1.0], "non-negative and finite, got -1.0 at index (1,)"),
        ("gone", [True, True], "page with importance that is not gone, got none of 2"),
        ("url", [b"a", b"b"], "bytes in the column 'url', not text"),
        ("change_rate", [], "rates must hold at least one page"),
        ("change_rate", None, "rates.parquet without change_rate: run `recrawl estima"),
    ],
)
def test_rates_that_cannot_be_used(tmp_path, capsys, column, values, message):
    columns = {"url": ["a", "b"], "change_rate": [1.0, 2.0], column: values}
    if values == []:
        columns = {"url": pa.array([], "string"), column: pa.array([], "double")}
    elif values is None:
        del columns[column]
    path = parquet(tmp_path / "rates.parquet", **columns)
    plan = tmp_path / "plan.parquet"
    assert message in said(capsys, "schedule", path, "--bandwidth", "1/day", "-o", plan)
    assert not plan.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("importance", -5.0), ("importance", np.nan), ("dispersion", np.nan),
        ("freedom", 1e308), ("n_failed", -1), ("n_crawls", 1 << 60),
        ("n_changed", 99), ("n", [1 << 42]), ("interval", [-1.0]),
        ("interval", [np.inf]), ("interval", [1.0, 2.0]), ("aged", []),
        ("bits", []), ("n", [0]), ("n", []),
        ("importance", np.inf), ("last_change", None), ("url", None), ("url", ""),
        ("dispersion", -1.0), ("freedom", -1.0), ("n_crawls", -1), ("n_crawls", None),
        ("first_crawl", datetime(2224, 1, 1, tzinfo=UTC)),
        ("last_crawl", datetime(2224, 1, 1, tzinfo=UTC)),
        ("last_row", datetime(2224, 1, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_state_that_was_not_written_so_is_refused(folder, capsys, column, value):
    state = folder / "state.parquet"
    given = ["log.csv", "-o", "r.parquet", "--state", state, "--force"]
    assert said(capsys, "estimate", *given, status=0) == ""
    stored = pq.read_table(state)
    k = stored.schema.get_field_index(column)
    values = stored[column].to_pylist()
    if isinstance(value, list):  # as many as there were, or none
        value = value * len(values[3])
    damaged = pa.array([*values[:3], value], stored.schema.field(k).type)
    pq.write_table(stored.set_column(k, column, damaged), state)
    assert "--state must be as estimate wrote it" in said(capsys, "estimate", *given)


@pytest.mark.filterwarnings("default")
def test_no_value_of_a_log_steers_the_terminal(tmp_path, capsys):
    evil = "\x1b[2J\u202e"
    rows = [
        (f"http://h/{k}{evil}", "never" + evil + "x" * 9000, "no") for k in range(3)
    ]
    path = write(tmp_path / "log.csv", table([*rows, ("a", START, "no")]))
    message = said(capsys, "convert", path, "-o", tmp_path / "new.csv", status=0)
    assert "3 whose time cannot be read" in message
    assert "\\x1b[2J\\u202e" in message
    assert not {*message} & {*evil} - {*"[2J"}
    assert len(message) < 1000


FAR = "294247-01-10T04:00:54Z"


@pytest.mark.parametrize("column", ["time", "start", "last_modified"])
def test_a_time_beyond_all_calendars_is_one_bad_row(tmp_path, column):
    names, rows = (*NAMES, "start", "last_modified"), [(*row, "", "") for row in ROWS]
    row = dict(zip(names, rows[7], strict=True)) | {column: FAR}
    rows[7] = tuple(row.values())
    path = write(tmp_path / "log.csv", table(rows, names))
    (_, counts), _ = recorded(recrawl.convert, path, tmp_path / "new.csv")
    assert counts["rows"] == 79


GIVEN = ["-o", "new.parquet", "--force"]
ESTIMATE = ["estimate", "log.csv", *GIVEN]


def commands_on(file):
    """Commands that read a file in place of one of ours, by the name of that."""
    return {
        "rates": ["schedule", file, "--bandwidth", "1/day", *GIVEN],
        "state": [*ESTIMATE, "--state", file],
        "plan": ["export", file, "--to", "urls", "-o", "urls"],
        "log": ["estimate", file, *GIVEN],
        "pings": [*ESTIMATE, "--signals", file],
    }


@pytest.mark.parametrize("name", every(5, ["rates", "state", "plan", "log", "pings"]))
@pytest.mark.parametrize(
    ("byte", "value"),
    # of the description of the file, and its length, at its end; of its schema
    every(4, [(-1, 0), (-5, 9), (-9, 0xFF), (-300, 0x0F), (-420, 0)]),
)
def test_a_damaged_footer_is_named_with_its_file(folder, capsys, name, byte, value):
    assert said(capsys, *ESTIMATE, "--state", "state.parquet", status=0) == ""
    recrawl.convert("log.csv", "log.parquet")
    parquet("pings.parquet", url=["http://h/1"], time=["2020-01-02"])
    data = bytearray((folder / f"{name}.parquet").read_bytes())
    data[byte] = value
    (folder / "bad.parquet").write_bytes(data)
    commands = commands_on("bad.parquet")
    message = said(capsys, *commands[name])
    assert "bad.parquet" in message
    assert "fault of recrawl" not in message


@pytest.mark.parametrize(
    "text",
    [
        *["{", "[]", "5", "\udcff", '{"drift": [-1.0]}', '{"drift": [NaN]}'],
        *['{"drift": 5}', '{"drift": ["1"]}', '{"suspects": [5]}', "[" * 200_000],
    ],
)
def test_a_damaged_description_is_named_with_its_file(folder, capsys, text):
    stored = pq.read_table("rates.parquet")
    described = {"recrawl": text.encode("utf-8", "surrogateescape")}
    pq.write_table(stored.replace_schema_metadata(described), "bad.parquet")
    given = "bad.parquet", "--bandwidth", "1/day", "-o", "new.parquet"
    message = said(capsys, "schedule", *given)
    assert message.startswith("recrawl: bad.parquet is damaged: ")


@pytest.mark.parametrize("name", ["rates", "state"])
@pytest.mark.filterwarnings("ignore:rows left out")
def test_a_file_in_which_a_url_stands_twice_is_refused(folder, capsys, name):
    commands = commands_on("twice.parquet")
    assert said(capsys, *ESTIMATE, "--state", "state.parquet", status=0) == ""
    stored = pq.read_table(f"{name}.parquet")
    pq.write_table(pa.concat_tables([stored, stored.slice(2, 1)]), "twice.parquet")
    twice = stored["url"][2].as_py()
    message = f"recrawl: twice.parquet must name each URL once, got {twice!r} again\n"
    assert said(capsys, *commands[name]).endswith(message)


@pytest.mark.filterwarnings("default")
def test_how_many_pages_the_state_knew(folder, capsys):
    first = [("http://h/x", START, 0), ("http://h/y", START, 0)]
    later = [(u, t + 99 * DAY, c) for u, t, c in ROWS[:3]]
    for rows, told in (
        (ROWS, "\nstate.parquet is new: it begins with this log\n"),
        (first + later, "\n3 of 5 pages of this log were in the state\n"),
    ):
        (folder / "log.csv").write_text(table(rows))
        assert cli.main([*ESTIMATE, "--state", "state.parquet"]) == 0
        assert told in capsys.readouterr().out
    (folder / "log.csv").write_text(table([("http://z", START, 0)]))
    told = said(capsys, *ESTIMATE, "--state", "state.parquet", status=0)
    assert "0 of 1 page of this log were in the state state.parquet: it may" in told


@pytest.mark.parametrize("name", every(3, ["rates", "state", "plan"]))
def test_a_flipped_bit_in_a_file_of_ours_is_told(folder, capsys, name):
    assert said(capsys, *ESTIMATE, "--state", "state.parquet", status=0) == ""
    path = folder / f"{name}.parquet"
    data = bytearray(path.read_bytes())
    data[data.index(b"http://h/") + 9] ^= 4  # a URL becomes another one
    path.write_bytes(data)
    message = said(capsys, *commands_on(path)[name])
    assert f"{name}.parquet is damaged: " in message
