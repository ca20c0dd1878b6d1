"""Nothing is silently wrong: what could be lost or misread is refused or told."""

import pytest
from crawl_logs import START, table

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
