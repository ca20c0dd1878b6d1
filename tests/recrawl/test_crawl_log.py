"""Rates, schedules, comparisons and backtests of crawl logs.

They are compared with page by page computations from the raw rows.
"""

import dataclasses
import errno
import itertools
import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import brentq

import recrawl
from paperlib import freshness
from paperlib.allocation import optimal_interval, optimal_thresholds
from paperlib.signals import SignalledPages
from recrawl import (
    BadRowsWarning,
    backtest,
    choosing,
    compare,
    estimate,
    planning,
    reading,
    schedule,
)
from recrawl.science import allocation, estimators
from recrawl.science.priors import FakeIntervals
from recrawl.science.processes import History
from tests.recrawl.crawl_logs import START, adapted, parquet, recorded
from tests.recrawl.made import simulate_history

DAY = 86_400.0


def log_of(path, rows):
    """Write a Parquet log of rows (url, seconds, changed, ...)."""
    names = ("url", "time", "changed", "importance", "status")[: len(rows[0])]
    columns = map(list, zip(*rows, strict=True))
    return parquet(path, **dict(zip(names, columns, strict=True)))


def simulated(n_pages, *, n_crawls, seed, rate=None):
    """Rows of Poisson pages, and their change rates by number, 1/day.

    They are crawled at random times that are whole seconds apart.
    """
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(-1, 1.2, n_pages)) if rate is None else rate
    rows = []
    for page in range(n_pages):
        steps = (
            np.ceil(rng.standard_exponential(rng.poisson(n_crawls)) * DAY)
            if n_crawls
            else []
        )
        times = 1.6e9 + np.cumsum(np.append(rng.integers(0, 10 * DAY), steps))
        bits = rng.random(times.size) < -np.expm1(
            -rate[page] * np.diff(times, prepend=1.6e9) / DAY
        )
        importance = float(rng.integers(1, 5))
        rows += [
            (f"http://h{page % 5}/{page}", time, bool(bit), importance)
            for time, bit in zip(times, bits, strict=True)
        ]
    return [rows[k] for k in rng.permutation(len(rows))], dict(enumerate(rate))


def by_page(rows):
    """Intervals (days) and bits of each URL by its sorted times."""
    pages = {}
    for url, time, changed, *_ in rows:
        pages.setdefault(url, []).append((time, changed))
    out = {}
    for url, crawls in pages.items():
        crawls.sort()
        out[url] = [((b[0] - a[0]) / DAY, b[1]) for a, b in itertools.pairwise(crawls)]
    return out


def rates_of(path):
    """The rows of a Parquet file by URL."""
    return {row["url"]: row for row in pq.read_table(path).to_pylist()}


@pytest.fixture(scope="module")
def rows():
    found, _ = simulated(300, n_crawls=12, seed=0)
    return [*found, ("http://one/", 1.6e9, True, 1.0)]


@pytest.fixture(scope="module")
def log(rows, tmp_path_factory):
    return log_of(tmp_path_factory.mktemp("log") / "log.parquet", rows)


@pytest.fixture(scope="module")
def rates(log):
    output = log.parent / "rates.parquet"
    return output, estimate(log, output)


# ---------------------------------------------------------------- estimate


def root(crawls):
    """MLE by Brent's method, with the substitutes of Cho and Garcia-Molina."""
    seen, unseen = ([w for w, bit in crawls if bit is which] for which in (True, False))
    if not seen:
        return 1 / sum(unseen)
    if not unseen:
        return 1 / min(seen)
    seen = np.array(seen)
    with np.errstate(over="ignore"):
        return brentq(
            lambda rate: (seen / np.expm1(rate * seen)).sum() - sum(unseen),
            1e-12,
            1e6,
            xtol=1e-14,
            rtol=1e-14,
        )


@pytest.mark.slow
def test_rates_are_those_of_each_page_alone(rows, rates):
    output, found = rates
    prior = FakeIntervals(found.changed, found.unchanged)
    pseudo = [(prior.changed, True), (prior.unchanged, False)]
    assert found.scales is None
    assert found.counts == {"rows": len(rows), "repeated": 0}
    given, pages = rates_of(output), by_page(rows)
    assert found.n_pages == len(given) == len(pages) == 301
    times = {url: [] for url in pages}
    for url, time, *_ in rows:
        times[url].append(time)
    for url, crawls in pages.items():
        page = given[url]
        n, n_changed = len(crawls), sum(bit for _, bit in crawls)
        assert page["n_crawls"] == n
        assert page["n_changed"] == n_changed
        assert page["n_failed"] == page["gone"] == 0
        ends = page["first_crawl"].timestamp(), page["last_crawl"].timestamp()
        assert ends == (min(times[url]), max(times[url]))
        kind = (
            None if 0 < n_changed < n or n == 0 else "always" if n_changed else "never"
        )
        assert page["degenerate"] == kind
        rate = root([*pseudo, *crawls])
        assert page["change_rate"] == pytest.approx(rate, rel=1e-9)
        history = History(*zip(*pseudo, *crawls, strict=True))
        limits = estimators.likelihood_interval(history, rate, page["dispersion"])
        assert (page["low"], page["high"]) == pytest.approx(limits, rel=1e-7)
        if not n:  # pseudo-observations are independent
            assert (page["serial_score"], page["pattern"]) == (None, None)
            assert page["dispersion"] == 1.0
        if 0 < n_changed < n:
            history = History(*zip(*crawls, strict=True))
            products, squares = estimators.serial_sums(history, root(crawls))
            score = products / np.sqrt(max(squares, n - 1))
            assert page["serial_score"] == pytest.approx(score, rel=1e-7, abs=1e-12)
    stored = json.loads(pq.read_metadata(output).metadata[b"recrawl"])
    assert stored.items() >= json.loads(json.dumps(dataclasses.asdict(found))).items()


@pytest.mark.slow
def test_results_do_not_depend_on_the_size_of_batches(
    log, rates, tmp_path, monkeypatch
):
    monkeypatch.setattr(reading, "ROWS_PER_BATCH", 50)
    assert estimate(log, tmp_path / "again.parquet") == rates[1]
    whole, again = pq.read_table(rates[0]), pq.read_table(tmp_path / "again.parquet")
    assert pq.ParquetFile(tmp_path / "again.parquet").num_row_groups > 10
    for name in whole.column_names:
        if pa.types.is_floating(
            whole[name].type
        ):  # numpy's sums depend on where a page lies to the last digits
            np.testing.assert_allclose(
                again[name].to_numpy(),
                whole[name].to_numpy(),
                rtol=1e-12,
                atol=1e-13,
                err_msg=name,
            )
        else:
            assert again[name].equals(whole[name]), name


@pytest.mark.slow
def test_results_do_not_depend_on_the_order_of_rows_or_their_files(
    rows, rates, tmp_path
):
    (tmp_path / "parts").mkdir()
    for k in range(3):
        log_of(tmp_path / "parts" / f"{k}.parquet", sorted(rows)[k::3])
    assert estimate(tmp_path / "parts", tmp_path / "again.parquet") == rates[1]
    assert pq.read_table(rates[0]).equals(pq.read_table(tmp_path / "again.parquet"))


@pytest.mark.slow
def test_a_page_is_bursty_from_a_score_of_three_on(tmp_path):
    rng = np.random.default_rng(1)
    stays = np.repeat(np.linspace(0.5, 0.75, 60), 5)  # probabilities of the same bit
    flips = rng.random((stays.size, 100)) >= stays[:, np.newaxis]
    bits = np.cumsum(flips, axis=1) % 2 == 0
    logs = [
        (str(page), START + k * DAY, bool(bit))
        for page, history in enumerate(bits)
        for k, bit in enumerate(history)
    ]
    estimate(log_of(tmp_path / "log.parquet", logs), tmp_path / "rates.parquet")
    pages = rates_of(tmp_path / "rates.parquet").values()
    score = np.array([page["serial_score"] for page in pages], dtype=float)
    assert ((score > 3) & (score < 4)).sum() > 20
    bursty = [page["pattern"] == "bursty" for page in pages]
    np.testing.assert_array_equal(bursty, score > 3)


def test_a_log_is_in_the_state_only_when_its_rates_are_written(tmp_path, monkeypatch):
    log = log_of(
        tmp_path / "log.parquet", [("a", START + k * DAY, True) for k in (1, 2)]
    )
    rename = os.replace

    def full_disk(source, target):
        if os.path.basename(target) == "rates.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        estimate(log, tmp_path / "rates.parquet", state=tmp_path / "state.parquet")
    assert not (tmp_path / "state.parquet").exists()


def test_pages_whose_urls_name_no_host_are_counted(tmp_path):
    urls = ["https://h/1", "/relative/path", "foo bar", "Title"]
    rows = [(url, START + k * DAY, False) for url in urls for k in range(3)]
    found = estimate(log_of(tmp_path / "log.parquet", rows), tmp_path / "r.parquet")
    assert found.kinds["whose URL names no host"] == 3


# ---------------------------------------------------------------- state


def compare_rates(whole, parts, rtol):
    whole, parts = pq.read_table(whole), pq.read_table(parts)
    for name in (
        "url",
        "host",
        "importance",
        "n_crawls",
        "n_changed",
        "n_failed",
        "first_crawl",
        "last_crawl",
        "gone",
        "degenerate",
    ):
        assert whole[name].equals(parts[name]), name
    np.testing.assert_allclose(parts["change_rate"], whole["change_rate"], rtol=rtol)
    # how much intervals are widened, each log tells by itself
    same = np.isclose(parts["dispersion"], whole["dispersion"], rtol=1e-9)
    for name in ("low", "high"):
        widths = [np.asarray(rates[name])[same] for rates in (parts, whole)]
        np.testing.assert_allclose(*widths, rtol=rtol, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("n_parts", [2, 4])
def test_logs_one_after_the_other_give_what_the_whole_log_gives(
    rows, tmp_path, n_parts, monkeypatch
):
    monkeypatch.setattr(reading, "ROWS_PER_BATCH", 300)
    # of one host: whether hosts have priors is decided by the last bits of a log
    rows = [(re.sub("//h[0-9]", "//h", row[0]), *row[1:]) for row in rows]
    estimate(log_of(tmp_path / "log.parquet", rows), tmp_path / "whole.parquet")
    state = tmp_path / "state.parquet"
    for part in np.array_split(
        np.array(sorted(rows, key=lambda row: row[1]), dtype=object), n_parts
    ):
        log_of(tmp_path / "part.parquet", list(map(tuple, part)))
        found = estimate(
            tmp_path / "part.parquet",
            tmp_path / "parts.parquet",
            state=state,
            force=True,
        )
    assert found.n_pages == 301
    compare_rates(tmp_path / "whole.parquet", tmp_path / "parts.parquet", 1e-4)


def of_hosts(path, spread, n_pages=600, n_hosts=20, n_crawls=3):
    """Log of hosts whose mean rates differ by e^spread, the rates, and the hosts."""
    rng = np.random.default_rng(2)
    host = rng.integers(n_hosts, size=n_pages)
    mean = np.exp(rng.normal(0, spread, n_hosts))
    rate = rng.gamma(1.5, mean[host] / 1.5)
    history = simulate_history(
        rate, interval=rng.exponential(size=(n_pages, n_crawls)) + 1e-3, rng=rng
    )
    time = np.cumsum(history.interval * DAY, axis=1)
    log_of(
        path,
        [
            (f"https://h{host[page]}.org/{page}", START + round(t), bool(bit))
            for page in range(n_pages)
            for t, bit in zip(
                np.append(0.0, time[page]),
                np.append(False, history.changed[page]),
                strict=True,
            )
        ],
    )
    return rate, mean


@pytest.mark.slow
def test_hosts_of_different_rates_have_a_prior_each(tmp_path):
    path, one = tmp_path / "log.parquet", tmp_path / "one.parquet"
    rate, mean = of_hosts(path, 1.5)
    table = pq.read_table(path)
    pq.write_table(table.append_column("host", pa.array(["h"] * len(table))), one)
    error = []
    for log in (path, one):
        found = estimate(log, rates := tmp_path / f"rates of {log.name}")
        table = pq.read_table(rates)
        page = [int(url.rpartition("/")[2]) for url in table["url"].to_pylist()]
        names = "change_rate", "low", "high", "log_rate", "log_stderr"
        column = {name: table[name].to_numpy() for name in names}
        true = rate[page]
        error.append(np.sqrt(np.mean(np.log(column["change_rate"] / true) ** 2)))
        if log == one:
            assert found.scales is None
            continue
        assert found.why.startswith("one prior for each host: ")
        assert np.mean((column["low"] <= true) & (true <= column["high"])) > 0.85
        expected = np.sqrt(np.mean(column["log_stderr"] ** 2))
        off = column["log_rate"] - np.log(true)
        assert np.std(off) == pytest.approx(expected, rel=0.3)
        own = [found.scales[f"h{k}.org"] for k in range(mean.size)]
        assert np.corrcoef(np.log(own), np.log(mean))[0, 1] > 0.9
    assert error[0] < 0.85 * error[1]


@pytest.mark.slow
def test_hosts_of_equal_rates_have_one_prior(tmp_path):
    of_hosts(tmp_path / "log.parquet", 0.0, n_crawls=6)
    found = estimate(tmp_path / "log.parquet", tmp_path / "rates.parquet")
    assert found.scales is None
    assert found.why.startswith("one prior for all pages: log loss of the last bit ")


def statuses(rows):
    """Rows with a status, some of which failed."""
    rng = np.random.default_rng(5)
    return [
        (*row, int(status))
        for row, status in zip(
            rows,
            rng.choice([200, 304, 404, 500], len(rows), p=[0.6, 0.2, 0.1, 0.1]),
            strict=True,
        )
    ]


@pytest.mark.slow
def test_failed_rows_through_a_state(rows, tmp_path):
    rows = sorted(statuses(rows), key=lambda row: row[1])
    state, half = tmp_path / "state.parquet", len(rows) // 2
    estimate(
        log_of(tmp_path / "log.parquet", rows),
        tmp_path / "whole.parquet",
    )
    for part in (rows[:half], rows[half:]):
        estimate(
            log_of(tmp_path / "log.parquet", part),
            tmp_path / "parts.parquet",
            state=state,
            force=True,
        )
    compare_rates(tmp_path / "whole.parquet", tmp_path / "parts.parquet", 1e-4)


def test_a_state_keeps_by_how_much_intervals_are_widened(tmp_path):
    rng, state = np.random.default_rng(5), tmp_path / "state.parquet"
    runs = np.repeat(rng.random((40, 12)) < 0.4, 5, axis=1)  # changes cluster
    rows = [
        (f"p{k}", START + day * DAY, bit)
        for k, bits in enumerate(runs.tolist())
        for day, bit in enumerate(bits)
    ]
    log = log_of(tmp_path / "log.parquet", rows)
    found, wide = [], []
    for _ in range(2):  # the second time there is nothing new
        rates = tmp_path / f"rates{len(found)}.parquet"
        found.append(recorded(estimate, log, rates, state=state)[0].dispersion)
        read = pq.read_table(rates)
        wide.append(np.divide(read["high"], read["low"]))
    assert found[0] > 1.5
    assert found[1] == pytest.approx(found[0], rel=0.05)
    np.testing.assert_allclose(wide[1], wide[0], rtol=0.05)


@pytest.mark.slow
def test_pages_that_the_new_log_lacks_are_kept_and_old_rows_left_out(tmp_path):
    state = tmp_path / "state.parquet"
    first = [
        ("a", START, False),
        ("a", START + DAY, True),
        ("b", START, False),
        ("b", START + 2 * DAY, False),
    ]
    estimate(
        log_of(tmp_path / "1.parquet", first),
        tmp_path / "rates.parquet",
        state=state,
    )
    second = [
        ("a", START + DAY / 2, True),
        ("a", START + DAY, True),
        ("a", START + 3 * DAY, False),
        ("c", START, True),
    ]
    with pytest.warns(
        BadRowsWarning, match="2 not after the last row of their page in the state"
    ):
        found = estimate(
            log_of(tmp_path / "2.parquet", second),
            tmp_path / "rates.parquet",
            state=state,
            force=True,
        )
    assert found.counts["rows"] == 2
    pages = rates_of(tmp_path / "rates.parquet")
    assert {
        url: (page["n_crawls"], page["n_changed"]) for url, page in pages.items()
    } == {"a": (2, 1), "b": (1, 0), "c": (0, 0)}
    pseudo = [(found.changed, True), (found.unchanged, False)]
    for url, crawls in {"a": [(1.0, True), (2.0, False)], "b": [(2.0, False)]}.items():
        rate = root([*pseudo, *crawls])
        assert pages[url]["change_rate"] == pytest.approx(rate, rel=1e-9)


# ---------------------------------------------------------------- outputs


class Full:
    """Write as often as that, and then no more."""

    def __init__(self, times):
        self.times, self.write = times, pq.ParquetWriter.write_table

    def __get__(self, writer, _):
        def write(table, *arguments):
            self.times -= 1
            if self.times < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.write(writer, table, *arguments)

        return write


@pytest.mark.slow
@pytest.mark.parametrize("times", [0, 1, 5])
def test_no_space_left_leaves_nothing_half_written(
    log, rates, tmp_path, monkeypatch, times
):
    monkeypatch.setattr(reading, "ROWS_PER_BATCH", 500)
    (tmp_path / "old.parquet").write_text("old")
    for function, arguments in ((estimate, (log,)), (schedule, (rates[0],))):
        options = (
            {"state": tmp_path / "state.parquet"}
            if function is estimate
            else {"bandwidth": 10.0}
        )
        for name in ("old.parquet", "new.parquet"):
            with monkeypatch.context() as patch:
                patch.setattr(
                    pq.ParquetWriter,
                    "write_table",
                    Full(times if function is estimate else 0),
                )
                with pytest.raises(OSError, match="No space left on device") as error:
                    function(*arguments, tmp_path / name, force=True, **options)
            assert error.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["old.parquet"]
    assert (tmp_path / "old.parquet").read_text() == "old"


# ---------------------------------------------------------------- schedule


def pages_of(path):
    table = pq.read_table(path)
    return {
        name: np.asarray(table[name])
        for name in ("url", "change_rate", "importance", "host", "gone")
    }, table


def test_a_schedule_is_the_optimal_allocation(rates, tmp_path):
    columns, before = pages_of(rates[0])
    found = schedule(rates[0], tmp_path / "plan.parquet", 40.0, hedge=0.0)
    plan = pq.read_table(tmp_path / "plan.parquet")
    weight = columns["importance"]
    best = allocation.optimal(columns["change_rate"], weight, 40.0)
    assert plan["url"].equals(before["url"])
    crawl_rate = plan["crawl_rate"].to_numpy()
    np.testing.assert_array_equal(crawl_rate, best.crawl_rate)
    assert crawl_rate.sum() == pytest.approx(40.0, rel=1e-9)
    fresh = freshness.interval(columns["change_rate"], crawl_rate)
    assert found.freshness_if_exact == pytest.approx(fresh @ weight / weight.sum())
    # what is promised allows for the errors of the rates
    errors = before["log_stderr"].to_numpy()
    given = columns["change_rate"], errors, before["log_rate"].to_numpy()
    promised = planning.expected(
        lambda rate: freshness.interval(rate, crawl_rate), *given
    )
    np.testing.assert_allclose(plan["freshness"], promised, rtol=1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        late = before["last_crawl"].to_numpy() + (1 / crawl_rate * DAY * 1e6).astype(
            "timedelta64[us]"
        )
    # that of the log's own intervals, where it has any
    now = before["freshness_now"].to_numpy()
    np.testing.assert_array_equal(plan["freshness_now"].to_numpy(), now)
    known = ~np.isnan(now)
    weighted = np.average(now[known], weights=columns["importance"][known])
    assert found.freshness_now == pytest.approx(weighted, rel=1e-12)
    due = plan["due"].to_numpy()
    crawled = crawl_rate > 0
    assert np.isnat(due[~crawled]).all()
    assert (np.abs(due - late)[crawled] <= np.timedelta64(1, "us")).all()

    bandwidths, worth, _ = found.worth.T
    np.testing.assert_allclose(bandwidths, [10, 20, 40, 80, 160])
    assert worth[2] == pytest.approx(found.freshness, rel=1e-12)
    assert (np.diff(worth) > 0).all()
    stored = json.loads(
        pq.read_metadata(tmp_path / "plan.parquet").metadata[b"recrawl"]
    )
    assert (stored["policy"], stored["bandwidth"]) == ("interval", 40.0)


def test_gone_pages_get_nothing_and_few_columns_will_do(tmp_path):
    path = parquet(
        tmp_path / "rates.parquet",
        url=["a", "b", "c"],
        change_rate=[1.0, 1.0, 2.0],
        gone=[False, True, False],
    )
    found = schedule(path, tmp_path / "plan.parquet", 4.0, hedge=0.0)
    plan = rates_of(tmp_path / "plan.parquet")
    best = allocation.optimal([1.0, 2.0], 1.0, 4.0)
    assert plan["b"]["crawl_rate"] == 0.0
    np.testing.assert_allclose(
        [plan["a"]["crawl_rate"], plan["c"]["crawl_rate"]], best.crawl_rate
    )
    fresh = freshness.interval([1.0, 2.0], best.crawl_rate).mean()
    assert found.freshness == pytest.approx(fresh, rel=1e-12)
    assert {page["due"] for page in plan.values()} == {None}, "no last crawl is known"


@pytest.mark.slow
def test_thresholds(tmp_path):
    rng = np.random.default_rng(4)
    n = 30
    rate, recall, false_rate = rng.lognormal(0, 1, n), rng.random(n), rng.random(n)
    last = np.datetime64("2020-01-01T00:00:00", "us") + np.arange(n) * np.timedelta64(
        3600, "s"
    )
    path = parquet(
        tmp_path / "rates.parquet",
        url=[str(k) for k in range(n)],
        change_rate=rate,
        recall=recall,
        false_rate=false_rate,
        last_crawl=last,
    )
    found = schedule(path, tmp_path / "plan.parquet", 12.0, policy="thresholds")
    best = optimal_thresholds(SignalledPages(rate, 1.0, recall, false_rate), 12.0)
    plan = pq.read_table(tmp_path / "plan.parquet")
    np.testing.assert_allclose(plan["crawl_rate"], best.crawl_rate)
    np.testing.assert_allclose(plan["threshold"], best.threshold)
    beta = SignalledPages(rate, 1.0, recall, false_rate).beta
    np.testing.assert_allclose(plan["signal_days"], beta)
    assert found.freshness == pytest.approx(best.freshness)
    assert found.worth[2, 1] == pytest.approx(found.freshness)
    due, soon = plan["due"].to_numpy(), np.isfinite(best.threshold)
    np.testing.assert_allclose(
        (due - last)[soon] / np.timedelta64(1, "D"),
        best.threshold[soon],
        rtol=1e-9,
        atol=1e-10,
    )
    assert np.isnat(due[~soon]).all()


def test_bad_rates(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nix"):
        schedule(tmp_path / "nix", tmp_path / "plan", 1.0)
    (tmp_path / "text").write_text("url,change_rate")
    with pytest.raises(ValueError, match=r"rates must be the Par.*, got .*text: run"):
        schedule(tmp_path / "text", tmp_path / "plan", 1.0)
    for rule, columns in {
        "/rates without change_rate: run `recrawl estimate LOG": {"url": ["a"]},
        "rates must hold at least one page": {
            "url": pa.array([], "string"),
            "change_rate": pa.array([], "double"),
        },
        "rates must hold a page with importance that is not gone, got none of 1": {
            "url": ["a"],
            "change_rate": [1.0],
            "gone": [True],
        },
        "change_rate must be non-negative and finite, got nan at index (1,)": {
            "url": ["a", "b"],
            "change_rate": [1.0, None],
        },
        "change_rate must be non-negative and finite, got -1.0 at index (0,)": {
            "url": ["a"],
            "change_rate": [-1.0],
        },
    }.items():
        with pytest.raises(ValueError, match=re.escape(rule)):
            schedule(parquet(tmp_path / "rates", **columns), tmp_path / "plan", 1.0)
    path = parquet(
        tmp_path / "rates", url=["a"], change_rate=[1.0], recall=[0.5], false_rate=[0.5]
    )
    with pytest.raises(
        ValueError,
        match="rates must have a column 'host', got url, change_rate, recall",
    ):
        schedule(path, tmp_path / "plan", 1.0, per_host=1.0)
    with pytest.raises(
        ValueError, match="per_host must be None for policy 'thresholds'"
    ):
        schedule(path, tmp_path / "plan", 1.0, per_host=1.0, policy="thresholds")
    assert not (tmp_path / "plan").exists()


# ---------------------------------------------------------------- compare


def test_compare_against_a_direct_computation(rows, log, tmp_path):
    found = compare(log).freshness
    assert list(found.values()) == sorted(found.values())
    assert set(found) == {"the log", "uniform", "proportional", "optimal"}
    estimate(log, tmp_path / "rates.parquet")
    pages, crawls = rates_of(tmp_path / "rates.parquet"), by_page(rows)
    crawls = {url: page for url, page in crawls.items() if page}
    rate, weight = (
        np.array([pages[url][name] for url in crawls])
        for name in ("change_rate", "importance")
    )
    days = np.array([sum(w for w, _ in page) for page in crawls.values()])
    fresh = [
        sum(
            (1 - np.exp(-pages[url]["change_rate"] * w)) / pages[url]["change_rate"]
            for w, _ in page
        )
        for url, page in crawls.items()
    ]
    assert found["the log"] == pytest.approx(
        np.average(fresh / days, weights=weight), rel=1e-10
    )
    bandwidth = sum(
        len(page) / d for page, d in zip(crawls.values(), days, strict=True)
    )
    for name, x in {
        "uniform": np.full(rate.size, bandwidth / rate.size),
        "proportional": bandwidth * rate / rate.sum(),
    }.items():
        assert found[name] == pytest.approx(
            np.average(x / rate * -np.expm1(-rate / x), weights=weight), rel=1e-10
        )
    best = optimal_interval(rate, weight, bandwidth).freshness
    assert found["optimal"] == pytest.approx(best, rel=1e-10)
    few = compare(log, n_pages=40).freshness
    assert few["the log"] != found["the log"], "of pages taken at random"
    with pytest.raises(ValueError, match="n_pages must be a positive integer"):
        compare(log, n_pages=0)


def test_compare_of_logs_without_intervals_or_changes(tmp_path):
    for rows in (
        [("a", START, True), ("b", START + 5, False)],
        [("a", START + k * DAY, False) for k in range(9)],
    ):
        with pytest.raises(
            ValueError,
            match="must hold a page that was crawled twice, and one that changed",
        ):
            compare(log_of(tmp_path / "log.parquet", rows))


# ---------------------------------------------------------------- backtest


def test_log_loss_of_known_cases():
    np.testing.assert_allclose(
        recrawl.log_loss(np.log(2), 1.0, [True, False]), np.log(2)
    )
    np.testing.assert_allclose(
        recrawl.log_loss(0.0, 5.0, [True, False]), -np.log([1e-4, 1 - 1e-4])
    )
    np.testing.assert_allclose(
        recrawl.log_loss(np.inf, 5.0, [True, False]), -np.log([1 - 1e-4, 1e-4])
    )
    np.testing.assert_allclose(recrawl.log_loss([0.5, 2.0], 1.0, False), [0.5, 2.0])


@pytest.mark.slow
def test_backtest_against_a_direct_computation(rows, log):
    """Losses, calibration, and standard errors: leave one page out at a time."""
    found = backtest(log, share=0.7)
    cut = sorted(time for _, time, *_ in rows)[int(np.ceil(0.7 * len(rows))) - 1]
    before, after = {}, {}
    for url in {row[0] for row in rows}:
        times = sorted((time, bit) for other, time, bit, *_ in rows if other == url)
        steps = [
            (b[0], (b[0] - a[0]) / DAY, b[1]) for a, b in itertools.pairwise(times)
        ]
        if any(time <= cut for time, *_ in steps):
            before[url] = [step[1:] for step in steps if step[0] <= cut]
            after[url] = [step[1:] for step in steps if step[0] > cut]
    n_empty = len({row[0] for row in rows}) - len(before)
    flat = [crawl for page in before.values() for crawl in page]
    n = [len(page) for page in before.values()] + [0] * n_empty
    sample = History(*zip(*flat, strict=True), np.append(0, np.cumsum(n)))
    prior = choosing.learn_prior(sample)
    together = root(flat)
    pseudo = [(prior.changed, True), (prior.unchanged, False)]
    rules = {
        "prior": lambda crawls: root([*pseudo, *crawls]),
        "one rate": lambda crawls: together,
    }
    assert list(found.log_loss) == ["prior", "one rate"]
    assert found.n_bits == sum(map(len, after.values()))
    sums, n_bits = {}, np.array([len(after[url]) for url in before])
    for name, rule in rules.items():
        p, bit, page = np.array(
            [
                (1 - np.exp(-rule(crawls) * w), bit, k)
                for k, (url, crawls) in enumerate(before.items())
                for w, bit in after[url]
            ]
        ).T
        clipped = np.clip(p, 1e-4, 1 - 1e-4)
        loss = -np.log(np.where(bit == 1, clipped, 1 - clipped))
        sums[name] = np.bincount(page.astype(int), loss, n_bits.size)
        # the prior is the same but for the order of pages
        assert found.log_loss[name] == pytest.approx(loss.mean(), rel=1e-6)
        at = np.minimum((p * 10).astype(int), 9)
        for k, (mean, share, n) in enumerate(found.calibration[name]):
            assert n == (at == k).sum()
            if n:
                assert mean == pytest.approx(p[at == k].mean(), rel=1e-5)
                assert share == pytest.approx(bit[at == k].mean(), rel=1e-12)
    behind = sums["one rate"] - sums["prior"]
    without = (behind.sum() - behind) / (n_bits.sum() - n_bits)
    spread = np.sqrt(((without - without.mean()) ** 2).sum() * (1 - 1 / n_bits.size))
    assert found.stderr["one rate"] == pytest.approx(spread, rel=0.01)
    assert found.stderr["prior"] == 0


@pytest.mark.slow
def test_the_learnt_prior_wins_where_rates_are_drawn_from_one(tmp_path):
    rng, n = np.random.default_rng(11), 2000
    # the prior of two pseudo-observations of a day each
    rate = rng.exponential(1.0, n) + rng.exponential(0.5, n)
    rows, _ = simulated(n, n_crawls=5, seed=12, rate=rate)
    found = backtest(log_of(tmp_path / "log.parquet", rows))
    assert list(found.log_loss) == ["prior", "one rate"]
    gain = found.log_loss["one rate"] - found.log_loss["prior"]
    assert gain > 3 * found.stderr["one rate"] > 0
    mean, share, n = found.calibration["prior"].T
    off = np.nansum(np.abs(share - mean) * n) / found.n_bits
    assert off < 0.1, "a mode is no mean, but not far from it"


def test_bad_backtests(log, tmp_path):
    with pytest.raises(
        ValueError, match=r"share must be strictly between 0 and 1, got 1.0"
    ):
        backtest(log, share=1.0)
    for rows in (
        [("a", START, True)],
        [("a", START, True), ("a", START + DAY, True)],
        [
            ("a", START, False),
            ("b", START + DAY, True),
            ("b", START + 2 * DAY, True),
        ],
    ):
        with pytest.raises(
            ValueError,
            match=r"must hold a page with intervals before and after 0.8 of its rows",
        ):
            backtest(log_of(tmp_path / "log.parquet", rows))


# ---------------------------------------------------------------- adaptive crawlers


@pytest.mark.slow
def test_logs_of_a_crawler_that_adapts_are_not_called_bursty(tmp_path):
    """Intervals that follow the bits, as in Nutch, do not make changes cluster."""
    rate = np.exp(np.random.default_rng(14).normal(0, 1, 1000))
    history = adapted(
        rate,
        initial=1.0,
        shrink=0.8,
        grow=1.4,
        limits=(0.01, 50.0),
        n_crawls=40,
        rng=15,
    )
    times = START + np.round(np.cumsum(history.interval * DAY, axis=1), 6)
    rows = [
        (str(page), float(time), bool(bit))
        for page in range(1000)
        for time, bit in zip(
            np.append(START, times[page]),
            np.append(True, history.changed[page]),
            strict=True,
        )
    ]
    estimate(log_of(tmp_path / "log.parquet", rows), tmp_path / "rates.parquet")
    table = pq.read_table(tmp_path / "rates.parquet")
    beyond = 1000 - table["pattern"].null_count
    assert beyond <= 1000 * 0.0027 + 4 * np.sqrt(1000 * 0.0027)


# ---------------------------------------------------------------- extras


@pytest.mark.slow
def test_a_log_in_which_nothing_changed_has_rates_above_zero(tmp_path):
    """To say that nothing ever changes would predict all of its last bits."""
    for n_pages, n_crawls in ((1, 4), (3, 4), (50, 10)):
        rows = [
            (f"u{i}", START + k * DAY, False)
            for i in range(n_pages)
            for k in range(n_crawls)
        ]
        log = log_of(tmp_path / "log.parquet", rows)
        rates = tmp_path / "rates.parquet"
        estimate(log, rates, force=True)
        assert np.min(pq.read_table(rates)["change_rate"]) > 0
