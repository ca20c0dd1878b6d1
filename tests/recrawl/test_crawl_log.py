"""Rates, schedules and backtests of crawl logs.

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
from recrawl import BadRowsWarning, backtest, estimate, schedule
from recrawl.log import reading
from recrawl.log.history import History
from recrawl.plan import allocation, problem
from recrawl.rates import likelihood
from recrawl.rates.host_prior import choose
from recrawl.rates.prior import PseudoObservations
from tests.recrawl.crawl_logs import START, parquet
from tests.recrawl.made import simulate_history

DAY = 86_400.0


def log_of(path, rows):
    """Write a Parquet log of rows (url, seconds, changed, ...)."""
    names = ("url", "time", "changed", "importance", "status")[: len(rows[0])]
    columns = map(list, zip(*rows, strict=True))
    return parquet(path, **dict(zip(names, columns, strict=True)))


def in_days(crawls):
    """Rows of crawls (url, day, changed, ...)."""
    return [
        (url, START + DAY * day, bool(bit), *more) for url, day, bit, *more in crawls
    ]


def simulated(n_pages, *, n_crawls, seed, rate=None):
    """Rows of Poisson pages, crawled at random times that are whole seconds apart."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(-1, 1.2, n_pages)) if rate is None else rate
    rows = []
    for page in range(n_pages):
        steps = np.ceil(rng.standard_exponential(rng.poisson(n_crawls)) * DAY)
        times = 1.6e9 + np.cumsum(np.append(rng.integers(0, 10 * DAY), steps))
        changed = rng.random(times.size) < -np.expm1(
            -rate[page] * np.diff(times, prepend=1.6e9) / DAY
        )
        url, importance = f"http://h{page % 5}/{page}", float(rng.integers(1, 5))
        rows += [
            (url, t, bool(x), importance) for t, x in zip(times, changed, strict=True)
        ]
    return [rows[k] for k in rng.permutation(len(rows))]


def rows_of(history, url=str):
    """Rows of pages by their number, whose first crawls are at one time."""
    interval, changed, offsets = history.ragged()
    rows = []
    for page, (start, end) in enumerate(itertools.pairwise(offsets)):
        seconds = DAY * np.append(0.0, np.cumsum(interval[start:end]))
        bits = [True, *changed[start:end].tolist()]
        rows += [
            (url(page), START + round(t), x) for t, x in zip(seconds, bits, strict=True)
        ]
    return rows


def daily(bits):
    """Rows of pages that are crawled once a day, a row of bits for each."""
    return rows_of(History(np.ones(bits.shape), bits))


def by_page(rows, *, after=0.0, until=np.inf):
    """Intervals (days) and bits of each URL that end between two times."""
    pages = {}
    for url, time, changed, *_ in rows:
        pages.setdefault(url, []).append((time, changed))
    return {
        url: [
            ((b[0] - a[0]) / DAY, b[1])
            for a, b in itertools.pairwise(sorted(crawls))
            if after < b[0] <= until
        ]
        for url, crawls in pages.items()
    }


def estimated(folder, rows, **options):
    """Estimate from a log of these rows; the result, and the rates as a table."""
    log, rates = log_of(folder / "log.parquet", rows), folder / "rates.parquet"
    found = estimate(log, rates, force=True, **options)
    return found, pq.read_table(rates)


@pytest.fixture(scope="module")
def rows():
    return [*simulated(300, n_crawls=12, seed=0), ("http://one/", 1.6e9, True, 1.0)]


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

    def slope(rate):
        return (seen / np.expm1(rate * seen)).sum() - sum(unseen)

    with np.errstate(over="ignore"):
        return brentq(slope, 1e-12, 1e6, xtol=1e-14, rtol=1e-14)


@pytest.mark.slow
def test_rates_are_those_of_each_page_alone(rows, rates):
    output, found = rates
    prior = PseudoObservations(found.changed, found.unchanged)
    pseudo = [(prior.changed, True), (prior.unchanged, False)]
    assert found.scales is None
    assert found.counts == {"rows": len(rows), "repeated": 0}
    given = {page["url"]: page for page in pq.read_table(output).to_pylist()}
    pages = by_page(rows)
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
        limits = likelihood.spread(history, rate, page["dispersion"])[:2]
        assert (page["low"], page["high"]) == pytest.approx(limits, rel=1e-7)
        if not n:  # pseudo-observations are independent
            assert page["dispersion"] == 1.0
    for kind in ("never", "always"):
        n_pages = sum(page["degenerate"] == kind for page in given.values())
        assert found.kinds[f"{kind} changed"] == n_pages > 0
    stored = json.loads(pq.read_metadata(output).metadata[b"recrawl"])
    assert stored.items() >= json.loads(json.dumps(dataclasses.asdict(found))).items()


def test_a_log_is_in_the_state_only_when_its_rates_are_written(tmp_path, monkeypatch):
    rename, state = os.replace, tmp_path / "state.parquet"

    def full_disk(source, target):
        if os.path.basename(target) == "rates.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        estimated(tmp_path, daily(np.ones((1, 2), dtype=bool)), state=state)
    assert not state.exists()


def test_pages_whose_urls_name_no_host_are_counted(tmp_path):
    urls = ["https://h/1", "/relative/path", "foo bar", "Title"]
    found, _ = estimated(tmp_path, [(url, START, False) for url in urls])
    assert found.kinds["whose URL names no host"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(("n_pages", "n_crawls"), [(1, 4), (3, 4), (50, 10)])
def test_a_log_in_which_nothing_changed_has_rates_above_zero(
    tmp_path, n_pages, n_crawls
):
    """To say that nothing ever changes would predict all of its last bits."""
    _, table = estimated(tmp_path, daily(np.zeros((n_pages, n_crawls - 1), bool)))
    assert np.min(table["change_rate"]) > 0


# ---------------------------------------------------------------- state


@pytest.mark.slow
@pytest.mark.parametrize(("n_parts", "some_fail"), [(2, True), (4, False)])
def test_logs_one_after_the_other_give_what_the_whole_log_gives(
    rows, tmp_path, n_parts, some_fail, monkeypatch
):
    monkeypatch.setattr(reading, "ROWS_PER_BATCH", 300)
    rows = sorted(rows, key=lambda row: row[1])
    # of one host: whether hosts have priors is decided by the last bits of a log
    rows = [(re.sub("//h[0-9]", "//h", url), *others) for url, *others in rows]
    if some_fail:
        draw, shares = np.random.default_rng(5).choice, [0.6, 0.2, 0.1, 0.1]
        statuses = draw([200, 304, 404, 500], len(rows), p=shares).tolist()
        rows = [(*row, status) for row, status in zip(rows, statuses, strict=True)]
    _, whole = estimated(tmp_path, rows)
    for part in np.array_split(np.array(rows, dtype=object), n_parts):
        state = tmp_path / "state.parquet"
        found, parts = estimated(tmp_path, list(map(tuple, part)), state=state)
    assert found.n_pages == 301
    same = "url host importance n_crawls n_changed n_failed first_crawl last_crawl gone"
    for name in [*same.split(), "degenerate"]:
        assert whole[name].equals(parts[name]), name
    np.testing.assert_allclose(parts["change_rate"], whole["change_rate"], rtol=1e-4)
    # how much intervals are widened, each log tells by itself
    alike = np.isclose(parts["dispersion"], whole["dispersion"], rtol=1e-9)
    for name in ("low", "high"):
        widths = [np.asarray(rates[name])[alike] for rates in (parts, whole)]
        np.testing.assert_allclose(*widths, rtol=1e-4, atol=0)


def of_hosts(path, spread, n_pages=600, n_hosts=20, n_crawls=3):
    """Log of hosts whose mean rates differ by e^spread, the rates, and the hosts."""
    rng = np.random.default_rng(2)
    host = rng.integers(n_hosts, size=n_pages)
    mean = np.exp(rng.normal(0, spread, n_hosts))
    rate = rng.gamma(1.5, mean[host] / 1.5)
    history = simulate_history(
        rate, interval=rng.exponential(size=(n_pages, n_crawls)) + 1e-3, rng=rng
    )
    log_of(path, rows_of(history, lambda page: f"https://h{host[page]}.org/{page}"))
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
    assert found.why.startswith(
        "one prior for all pages: the log loss of the last bits "
    )


def test_a_page_with_one_bit_has_none_to_be_predicted_from():
    history = History(np.ones(5), [True, False, True, False, True], [0, 2, 4, 5])
    found = choose(history, bits=history, host=pa.array(["a", "b", "b"]))
    assert "the last bits of 2 pages" in found.why


@pytest.mark.filterwarnings("ignore:rows left out")
def test_a_state_keeps_by_how_much_intervals_are_widened(tmp_path):
    rng, state = np.random.default_rng(5), tmp_path / "state.parquet"
    runs = np.repeat(rng.random((40, 12)) < 0.4, 5, axis=1)  # changes cluster
    # the second time there is nothing new
    once, again = (estimated(tmp_path, daily(runs), state=state) for _ in range(2))
    assert once[0].dispersion > 1.5
    assert again[0].dispersion == pytest.approx(once[0].dispersion, rel=0.05)
    wide = [np.divide(table["high"], table["low"]) for _, table in (once, again)]
    np.testing.assert_allclose(*wide, rtol=0.05)


@pytest.mark.slow
def test_pages_that_the_new_log_lacks_are_kept_and_old_rows_left_out(tmp_path):
    state = tmp_path / "state.parquet"
    first = [("a", 0, 0, 2.0), ("a", 1, 1, 2.0), ("b", 0, 0, 3.0), ("b", 2, 0, 3.0)]
    second = [("a", 0.5, 1, 9.0), ("a", 1, 1, 9.0), ("a", 3, 0, 7.0), ("c", 0, 1, 5.0)]
    estimated(tmp_path, in_days(first), state=state)
    with pytest.warns(
        BadRowsWarning, match="2 not after the last row of their page in the state"
    ):
        found, table = estimated(tmp_path, in_days(second), state=state)
    assert found.counts["rows"] == 2
    table = table.sort_by("url")
    names = "url", "n_crawls", "n_changed", "importance"
    pages = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    assert pages == [("a", 2, 1, 7.0), ("b", 1, 0, 3.0), ("c", 0, 0, 5.0)]
    pseudo = [(found.changed, True), (found.unchanged, False)]
    crawls = [(1.0, True), (2.0, False)], [(2.0, False)]
    rates = [root([*pseudo, *each]) for each in crawls]
    np.testing.assert_allclose(table["change_rate"][:2], rates, rtol=1e-9)


def test_a_state_keeps_the_shortest_interval_of_a_page_exactly(tmp_path):
    """It is the substitute for a rate without an upper limit."""
    state = tmp_path / "state.parquet"
    days = np.cumsum([0.0, 1.001, 1.0, 1.002])
    rows = [("a", START + DAY * day, True) for day in days]
    estimated(tmp_path, rows, state=state)
    kept = pq.read_table(state, columns=["interval", "n"])
    assert kept["n"].to_pylist() == [[1, 2]]
    np.testing.assert_allclose(kept["interval"][0].as_py(), [1.0, 1.0015], rtol=1e-9)


# ---------------------------------------------------------------- schedule


def test_a_schedule_is_the_hedged_optimal_allocation(rates, tmp_path):
    before = pq.read_table(rates[0])
    change_rate, weight = (np.asarray(before[k]) for k in ("change_rate", "importance"))
    found = schedule(rates[0], tmp_path / "plan.parquet", 40.0)
    plan = pq.read_table(tmp_path / "plan.parquet")
    assert plan["url"].equals(before["url"])
    crawl_rate = plan["crawl_rate"].to_numpy()
    best = allocation.optimal(change_rate, weight, 40.0).crawl_rate
    even = allocation.even(weight, 40.0).crawl_rate
    np.testing.assert_allclose(crawl_rate, 0.75 * best + 0.25 * even, rtol=1e-12)
    fresh = freshness.interval(change_rate, crawl_rate)
    now = before["freshness_now"].to_numpy()
    known = ~np.isnan(now)
    turn = freshness.interval(change_rate, even)
    assert list(found.compared.values()) == pytest.approx(
        [np.average(x[known], weights=weight[known]) for x in (now, turn, fresh)]
    )
    # what is promised allows for the errors of the rates
    errors = (before[name].to_numpy() for name in ("log_stderr", "log_rate"))
    promised = problem.expected(
        lambda rate: freshness.interval(rate, crawl_rate), change_rate, *errors
    )
    np.testing.assert_allclose(plan["freshness"], promised, rtol=1e-12)
    due, last = plan["due"].to_numpy(), before["last_crawl"].to_numpy()
    crawled = crawl_rate > 0
    assert np.isnat(due[~crawled]).all()
    wait = (1e6 * DAY / crawl_rate[crawled]).astype("timedelta64[us]")
    late = np.abs(due[crawled] - last[crawled] - wait)
    assert (late <= np.timedelta64(1, "us")).all()
    bandwidths = [each["bandwidth"] for each in found.budgets]
    worth = [each["scheduled"] for each in found.budgets]
    np.testing.assert_allclose(bandwidths, [10, 20, 40, 80, 160])
    assert worth[2] == pytest.approx(found.freshness, rel=1e-12)
    assert (np.diff(worth) > 0).all()


# ---------------------------------------------------------------- backtest


def test_log_loss_of_known_cases():
    """Probabilities are clipped to within 1e-4 of 0 and 1."""
    rate, time = [[np.log(2)], [0.0], [np.inf]], [[1.0], [5.0], [5.0]]
    half, rare, often = -np.log([0.5, 1e-4, 1 - 1e-4])
    wanted = [[half, half], [rare, often], [often, rare]]
    np.testing.assert_allclose(recrawl.log_loss(rate, time, [True, False]), wanted)
    np.testing.assert_allclose(recrawl.log_loss([0.5, 2.0], 1.0, False), [0.5, 2.0])


@pytest.mark.slow
def test_backtest_against_a_direct_computation(rows, log):
    """Losses, calibration, and standard errors: leave one page out at a time."""
    found = backtest(log, share=0.7)
    cut = sorted(time for _, time, *_ in rows)[int(np.ceil(0.7 * len(rows))) - 1]
    early, late = by_page(rows, until=cut), by_page(rows, after=cut)
    flat = [crawl for page in early.values() for crawl in page]
    offsets = np.cumsum([0, *map(len, early.values())])
    prior = PseudoObservations.learn(History(*zip(*flat, strict=True), offsets))
    together = root(flat)
    pseudo = [(prior.changed, True), (prior.unchanged, False)]
    rules = {
        "prior": lambda crawls: root([*pseudo, *crawls]),
        "one rate": lambda crawls: together,
    }
    assert list(found.log_loss) == ["prior", "one rate"]
    known = [url for url, crawls in early.items() if crawls]
    n_bits = np.array([len(late[url]) for url in known])
    assert found.n_bits == n_bits.sum()
    sums = {}
    for name, rule in rules.items():
        p, bit, page = np.array(
            [
                (1 - np.exp(-rule(early[url]) * w), bit, k)
                for k, url in enumerate(known)
                for w, bit in late[url]
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


@pytest.mark.parametrize(
    "crawls",
    [
        [("a", 0, True)],
        [("a", 0, True), ("a", 1, True)],
        [("a", 0, False), ("b", 1, True), ("b", 2, True)],
    ],
)
def test_logs_that_hold_too_few_crawls(tmp_path, crawls):
    rule = "must hold a page with intervals before and after 0.8 of its rows"
    with pytest.raises(ValueError, match=rule):
        backtest(log_of(tmp_path / "log.parquet", in_days(crawls)))


# ---------------------------------------------------------------- adaptive crawlers
