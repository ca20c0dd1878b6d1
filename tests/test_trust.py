"""Nothing is silently wrong: what could be lost or misread is refused or told."""

import pytest
from crawl_logs import START, recorded, table, write

from paperlib import cli, crawl_log

DAY = 86_400
ROWS = [(f"http://h/{k % 4}", START + DAY * (k // 4), k % 3 == 0) for k in range(80)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a log, its rates and a schedule, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(table(ROWS))
    assert cli.main(["estimate", "log.csv", "-o", "rates.parquet"]) == 0
    crawl_log.schedule("rates.parquet", "plan.parquet", 1.0)
    return tmp_path


# ---- what is read is not written over


@pytest.mark.parametrize(
    "command",
    [
        "estimate log.csv -o log.csv",
        "estimate rates.parquet -o x.parquet --state x.parquet",
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
        "schedule rates.parquet --bandwidth 1/day --to urls -o rates.parquet --force",
        "schedule rates.parquet --bandwidth 1/day --importance signals.csv "
        "-o signals.csv --force",
        "export plan.parquet --to urls -o plan.parquet --force",
    ],
)
def test_no_output_replaces_what_is_read(folder, capsys, command):
    (folder / "signals.csv").write_text("url,time\n")
    (folder / "log.html").write_text(table(ROWS))
    (folder / "link.csv").symlink_to("log.csv")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    capsys.readouterr()
    assert cli.main(command.split()) == 2
    assert " must be another file than " in capsys.readouterr().err
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


# ---- bits that are none


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
        crawl_log.estimate(path, tmp_path / "rates.parquet")
    with pytest.raises(ValueError, match=message):
        crawl_log.convert(path, tmp_path / "new.parquet")


def test_a_few_bits_that_cannot_be_read_are_told_of(tmp_path):
    path = write(tmp_path / "log.csv", bits(["?"] * 10 + ["no", "yes"] * 35))
    _, (told,) = recorded(crawl_log.estimate, path, tmp_path / "rates.parquet")
    assert "10 whose changed is neither yes nor no" in told


def test_pages_that_are_new_need_no_bits(tmp_path):
    rows = [(f"http://h/{k}", START, "") for k in range(80)]
    path = write(tmp_path / "log.csv", table(rows))
    assert crawl_log.estimate(path, tmp_path / "rates.parquet").n_pages == 80
