"""Days on which many pages change at once are found, and no others."""

import numpy as np
import pytest

import recrawl
from recrawl import cli
from tests.recrawl.crawl_logs import parquet

DAY, START = 86_400, 1_767_225_600  # seconds; 2026-01-01


def log_of(path, rng, every, *, bulk=None, n_pages=200, n_days=120, rate=0.02):
    """A log of Poisson pages that are all crawled every few days, and one bulk day."""
    columns = {"url": [], "time": [], "changed": []}
    for page in range(n_pages):
        changes = rng.uniform(0, n_days, rng.poisson(rate * n_days)).tolist()
        if bulk is not None and rng.random() < 0.8:
            changes.append(bulk + 0.5)
        crawls = np.arange(rng.uniform(0, every), n_days, every)
        before = np.searchsorted(np.sort(changes), crawls)
        columns["url"] += [f"https://h.org/{page}"] * crawls.size
        columns["time"] += (START + DAY * crawls).tolist()
        columns["changed"] += (np.diff(before, prepend=before[0]) > 0).tolist()
    return parquet(path, **columns)


@pytest.mark.parametrize("every", [1.0, 3.0, 10.0])
def test_a_day_on_which_most_pages_changed_is_named(tmp_path, every, capsys):
    log = log_of(tmp_path / "log.parquet", np.random.default_rng(1), every, bulk=60)
    found = recrawl.estimate(log, tmp_path / "rates.parquet").bulk_days
    days = [np.datetime64(each.day) - np.datetime64("2026-01-01") for each in found]
    assert len(days) == 1
    assert abs(days[0].astype(int) - 60) <= 1
    assert 0.7 < found[0].share < 0.95
    assert cli.main(["estimate", str(log), "-o", str(tmp_path / "r.csv")]) == 0
    assert f"on {found[0].day} " in capsys.readouterr().out


@pytest.mark.parametrize("rate", [0.02, 0.3, 3.0])
def test_poisson_pages_have_none(tmp_path, rate):
    log = log_of(tmp_path / "log.parquet", np.random.default_rng(2), 3.0, rate=rate)
    assert recrawl.estimate(log, tmp_path / "rates.parquet").bulk_days == []
