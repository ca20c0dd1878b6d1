"""Signals beside a crawl log, and hosts whose pages are not what they seem."""

import warnings
from bisect import bisect_left

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import recrawl
from paperlib import signals
from recrawl import cli
from recrawl.log import reading
from recrawl.log.history import History
from recrawl.rates.diagnosis import Suspects
from recrawl.rates.quality import Quality
from tests.recrawl.crawl_logs import parquet, recorded, table, write
from tests.recrawl.thinned import every

START = 1_700_000_000  # seconds since 1970
DAY = 86_400


def opened(path, **options):
    """All pages of a log as one batch, and the messages of the warnings."""

    def read():
        with reading.opened(path, **options) as log:
            return log.sample(log.n_pages)

    return recorded(read)


def test_each_signal_belongs_to_the_first_crawl_after_it(tmp_path):
    rng = np.random.default_rng(1)
    crawls, pings, expected = [], [], {}
    for page in ("a", "b", "c"):
        times = np.sort(rng.choice(5000, 40, replace=False)) * 100
        sent = rng.choice(np.arange(25, 490_000, 97), 60, replace=False)
        crawls += [(page, START + t, 0) for t in times]
        pings += [(page, START + t) for t in sent]
        # before the first crawl and after the last one they belong to no interval
        place = [bisect_left(times, t) for t in sent]
        expected[page] = np.bincount(place, minlength=41)[1:40].tolist()
    log = write(tmp_path / "log.csv", table(crawls))
    path = write(tmp_path / "pings.csv", table(pings, ("url", "time")))
    batch, told = opened(log, signals=path)
    assert told == []
    starts = batch.history.offsets
    for k, page in enumerate(batch.page["url"].to_pylist()):
        found = batch.n_signals[starts[k] : starts[k + 1]].tolist()
        assert found == expected[page]


@pytest.mark.parametrize(
    ("seconds", "n"),
    every(
        3,
        [
            ([10], 1),
            ([DAY], 1),  # at the crawl itself
            ([DAY + 1], 0),  # after the last crawl
            ([0], 0),  # at the first crawl, which ends no interval
            ([10, 70], 1),
            ([10, 71], 2),
            ([10, 60, 110], 1),  # each within a minute of the one before
        ],
    ),
)
def test_repeats_within_a_minute_count_once(tmp_path, seconds, n):
    log = write(tmp_path / "log.csv", table([("a", START, 0), ("a", START + DAY, 1)]))
    times = [START + s for s in seconds]
    path = parquet(tmp_path / "s.parquet", url=["a"] * len(times), time=times)
    batch, _ = opened(log, signals=path)
    assert batch.n_signals.tolist() == [n]


def test_what_is_damaged_in_a_file_of_signals_is_told(tmp_path):
    days = range(1, 9)
    rows = [("a", START, 0), *(("a", START + DAY * day, 1) for day in days)]
    log = write(tmp_path / "log.csv", table(rows))
    pings = [("a", START + DAY * day - 5) for day in days]
    lines = table(pings, ("url", "time")).splitlines()
    lines[3] = '"' + lines[3]  # a quote that is never closed
    path = write(tmp_path / "pings.csv", "\n".join(lines) + "\n")
    batch, (told,) = opened(log, signals=path)
    assert batch.n_signals.tolist() == [1, 1, 0, 1, 1, 1, 1, 1]
    assert "pings.csv line 4" in told


def simulated(n_pages, n_crawls, rng):
    """Crawls and signals of pages with recall .8 and precision .7."""
    rate = rng.gamma(1.0, 1.0, n_pages) + 0.05
    pages = signals.SignalledPages(rate, 1.0, 0.8, 0.8 * rate * (1 / 0.7 - 1))
    dense, n_signals = signals.simulate_signalled_history(
        pages, crawl_rate=0.7, n_crawls=n_crawls, rng=rng
    )
    history = History(*dense.ragged())
    return history, n_signals.ravel(), rate


# With few crawls a page's rate of changes without a signal, which is at least 0, is
# too large on average, and the recall of all too small.
@pytest.mark.parametrize(("n_crawls", "bias"), [(60, -0.05), (150, -0.015)])
def test_quality_of_all_pages_against_the_truth(n_crawls, bias):
    history, n_signals, rate = simulated(400, n_crawls, np.random.default_rng(2))
    found = Quality(history, n_signals).columns(history, n_signals)
    of_all = found["signals_from"] == "all"
    assert 50 < of_all.sum() < 390  # some pages know better themselves
    # one fit of all crawls together would give a recall of .88 here
    assert np.unique(found["recall"][of_all]) == pytest.approx([0.8 + bias], abs=0.02)
    assert np.unique(found["precision"][of_all]) == pytest.approx([0.7], abs=0.03)
    true = 0.8 * rate * (1 / 0.7 - 1)
    assert found["false_rate"].mean() == pytest.approx(true.mean(), rel=0.1)


def test_pages_take_their_own_values_where_they_are_known_well():
    history, n_signals, _ = simulated(3, 5000, np.random.default_rng(3))
    found = Quality(history, n_signals).columns(history, n_signals)
    assert set(found["signals_from"]) == {"page"}
    own = signals.fit(history, n_signals)
    assert np.array_equal(found["recall"], own.recall)
    assert np.array_equal(found["precision"], own.precision)


def test_quality_of_all_pages_adds_the_numbers_of_each():
    """Pages of one signal count, too: most pages have few."""
    history, n_signals, _ = simulated(400, 4, np.random.default_rng(4))
    own, n = signals.fit(history, n_signals), history.total(n_signals)
    n_changes = own.change_rate * history.total(history.interval)
    known = np.isfinite(own.precision) & np.isfinite(n_changes)
    assert (n[known] == 1).sum() > 20
    true = (own.precision * n)[known].sum()
    expected = [true / n[known].sum(), true / n_changes[known].sum()]
    assert Quality(history, n_signals).of_all == pytest.approx(expected, rel=1e-12)


def errors(alpha, b, interval, changed, n_signals):
    """Standard errors of precision and recall, by differences of the likelihood."""

    def log_likelihood(a, b):
        eta = a * interval + b * n_signals
        return np.where(changed, np.log(-np.expm1(-eta)), -eta).sum()

    def recall(a, b, gamma):
        p = -np.expm1(-b)
        return p * gamma / (a + p * gamma)

    point, h = np.array([alpha, b]), 1e-4 * np.array([alpha, b])
    step = np.diag(h)
    information = np.empty((2, 2))
    for i, j in np.ndindex(2, 2):
        corners = [
            v * w * log_likelihood(*(point + v * step[i] + w * step[j]))
            for v in (-1, 1)
            for w in (-1, 1)
        ]
        information[i, j] = -sum(corners) / (4 * h[i] * h[j])
    time = interval.sum()
    known = np.append(point, n_signals.sum() / time)
    covariance = np.zeros((3, 3))
    covariance[:2, :2] = np.linalg.inv(information)
    covariance[2, 2] = known[2] / time  # of a Poisson number over the time
    slope = np.array(
        [
            (recall(*(known + d)) - recall(*(known - d))) / (2 * d.max())
            for d in np.diag(1e-6 * known)
        ]
    )
    of_precision = np.exp(-b) * np.sqrt(covariance[1, 1])
    return of_precision, np.sqrt(slope @ covariance @ slope)


def test_pages_are_precise_if_both_standard_errors_are_at_most_a_tenth():
    history, n_signals, _ = simulated(400, 150, np.random.default_rng(6))
    found = Quality(history, n_signals).columns(history, n_signals)["signals_from"]
    own, n = signals.fit(history, n_signals), history.total(n_signals)
    alpha, b = own.change_rate * (1 - own.recall), -np.log1p(-own.precision)
    inside = (alpha > 1e-3) & (b > 1e-3) & np.isfinite(alpha + b) & (n >= 10)
    n_precise = n_checked = 0
    for i in np.flatnonzero(inside):
        part = slice(*history.offsets[i : i + 2])
        crawls = history.interval[part], history.changed[part], n_signals[part]
        largest = max(errors(alpha[i], b[i], *crawls))
        if abs(largest / 0.1 - 1) > 1e-3:  # not a tie, to the error of differences
            assert (found[i] == "page") == (largest < 0.1)
            n_precise += found[i] == "page"
            n_checked += 1
    assert 30 < n_precise < n_checked - 30


# ---------------------------------------------------------------- suspects


def suspects_of(path):
    """Suspects of a log, with the pages' own counts."""
    with reading.opened(path) as log:
        sample = log.sample(log.n_pages)
        suspects = Suspects(log.connection)
        bits = sample.bits
        suspects.add(
            pa.table(
                {
                    "host": sample.page["host"],
                    "n_crawls": bits.n_crawls,
                    "n_changed": bits.total(bits.changed).astype(int),
                }
            )
        )
        return {(found.host, found.what): found for found in suspects.found()}


def rows_of(host, page, digests, step=DAY, modified=None):
    """Fetches of a page at equal intervals."""
    url = f"https://{host}/{page}"
    return [
        (url, START + k * step, digest, modified(START + k * step) if modified else "")
        for k, digest in enumerate(digests)
    ]


COLUMNS = ("url", "time", "digest", "last_modified")


def test_half_of_the_pages_of_a_host_and_three_make_a_suspect():
    """Of its pages with five crawls or more; counted over two batches."""
    connection = duckdb.connect()
    connection.execute("create table dated_now as select unnest(['a', 'b', 'c']) host")
    suspects = Suspects(connection)
    # the pages of a host: (crawls, changes), how many
    hosts = {
        "a": [((5, 5), 4), ((5, 4), 4), ((4, 0), 9)],
        "b": [((5, 5), 4), ((5, 4), 6)],
        "c": [((5, 5), 2), ((4, 4), 9)],
    }
    rows = [
        (host, *counts)
        for host, pages in hosts.items()
        for counts, n in pages
        for _ in range(n)
    ]
    for batch in (rows[::2], rows[1::2]):
        names = "host", "n_crawls", "n_changed"
        suspects.add(pa.table(dict(zip(names, zip(*batch, strict=True), strict=True))))
    assert [(found.host, found.n_pages) for found in suspects.found()] == [("a", 4)]


def test_soft_404s_are_one_digest_under_many_addresses(tmp_path):
    rows = [r for k in range(10) for r in rows_of("a.org", k, ["md5:x", "md5:x"])]
    rows += [r for k in range(9) for r in rows_of("b.org", k, ["md5:x", "md5:x"])]
    rows = [(*row, 200) for row in rows]
    # "not modified" has no body, whatever stands beside it
    rows += [(*r, 304) for k in range(10) for r in rows_of("c.org", k, ["md5:x"])]
    log = write(tmp_path / "log.csv", table(rows, (*COLUMNS, "status")))
    found = suspects_of(log)
    assert list(found) == [("a.org", "one body under 10 addresses")]
    assert found.popitem()[1].cause == "a soft 404"


def test_dates_of_the_fetch_explain_pages_that_always_change(tmp_path):
    rows = [
        row
        for host, lag in (("now.org", 2), ("then.org", 3))
        for page in range(3)
        for row in rows_of(host, page, [""] * 7, modified=lambda t, lag=lag: t - lag)
    ]
    # a page whose dates are all those of the fetch has an ETag beside them
    tagged = [(*row, f"e{k}") for k, row in enumerate(rows)]
    found = suspects_of(write(tmp_path / "log.csv", table(tagged, (*COLUMNS, "etag"))))
    assert found["now.org", "changed at every crawl"].cause == (
        "Last-Modified is the time of the fetch"
    )
    assert "too rarely" in found["then.org", "changed at every crawl"].cause


@pytest.mark.slow
def test_fetches_with_nothing_to_compare_have_their_own_name(tmp_path, capsys):
    """Servers that send the time of the fetch as Last-Modified, and no digest."""
    days = [f"2026-08-{day:02}" for day in range(1, 21)]
    rows = [(f"https://made.org/{k}", day, 200, day) for k in range(5) for day in days]
    rows += [("https://ok.org/", day, 200, "2026-07-31") for day in days]
    rows += [
        (f"https://down.org/{k}", day, 503 if k else 301, "")
        for k in range(3)
        for day in days[:5]
    ]
    columns = ("url", "time", "status", "last_modified")
    log = write(tmp_path / "log.csv", table(rows, columns))
    rates, plan = tmp_path / "rates.parquet", tmp_path / "plan.parquet"
    with warnings.catch_warnings(action="ignore", category=recrawl.BadRowsWarning):
        assert cli.main(["estimate", str(log), "-o", str(rates)]) == 0
        found = recrawl.estimate(log, tmp_path / "rates.csv")
    out = capsys.readouterr().out
    assert "100 of fetches that cannot be compared: Last-Modified is when they" in out
    assert "failed fetches by status: 10 of 503, 5 of 301\n" in out
    assert (
        "3 never fetched successfully, 5 fetched, but with nothing to compare\n" in out
    )
    assert "flagged: made.org, 5 pages without digest or ETag, and Last-Mod" in out
    assert found.kinds["fetched, but with nothing to compare"] == 5
    assert found.pace == pytest.approx((100 + 20 + 15) / 19)
    command = ["schedule", str(rates), "--bandwidth", "10/day", "-o", str(plan)]
    assert cli.main(command) == 0
    out = capsys.readouterr().out
    assert "5 pages fetched, but with nothing to compare: rates of the prior (" in out
    assert "3 pages never fetched successfully: rates of the prior (" in out


@pytest.mark.filterwarnings("default:rows left out")
def test_the_command_says_what_signals_tell(tmp_path, capsys, monkeypatch):
    """Of pages with values of their own, with those of all, and without a signal."""
    rng = np.random.default_rng(7)
    changed = {"a": rng.random(4000) < 0.5, "b": [0, 1, 1, 0], "c": [1] * 9}
    log = [
        (f"https://h.org/{page}", START + k * DAY // 8, bit)
        for page, bits in changed.items()
        for k, bit in enumerate([0, *map(int, bits)])
    ]
    likely = {"a": (0.1, 0.8), "b": (0, 1), "c": (0, 0)}
    pings = [(url, t - 9) for url, t, bit in log if rng.random() < likely[url[-1]][bit]]
    write(tmp_path / "log.csv", table(log))
    write(tmp_path / "pings.csv", table(pings, ("url", "time")))
    names = "log.csv", "-o", "r.csv", "--signals", "pings.csv", "--state", "s.parquet"
    monkeypatch.chdir(tmp_path)
    assert cli.main(["estimate", *names]) == 0
    out = capsys.readouterr().out
    assert f"{len(pings):,} signals used, precision 0." in out
    assert "; pages by whose these are: 1 page, 1 all, 1 none\n" in out
    assert cli.main(["estimate", *names, "--force"]) == 0  # all is in the state
    assert "0 signals used" in capsys.readouterr().out


def test_signals_before_what_a_state_knows_are_not_counted_again(tmp_path):
    first = write(tmp_path / "1.csv", table([("a", START, 0), ("a", START + DAY, 1)]))
    state, rates = tmp_path / "state.parquet", tmp_path / "rates.parquet"
    recrawl.estimate(first, rates, state=state)
    second = write(tmp_path / "2.csv", table([("a", START + 3 * DAY, 0)]))
    times = [START + hours * 3600 for hours in (1, 24, 25, 70)]
    path = parquet(tmp_path / "s.parquet", url=["a"] * 4, time=times)
    batch, _ = opened(second, state=state, signals=path)
    assert batch.history.interval.tolist() == [2.0]
    assert batch.n_signals.tolist() == [2]
