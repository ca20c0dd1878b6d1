"""Intervals that hold their rate, also where changes cluster; drift of the rates."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from recrawl import estimate
from recrawl.log.history import History
from recrawl.log.reading import Batch
from recrawl.rates.dispersion import Dispersion, dispersion
from recrawl.rates.drift import drift, most_changes
from recrawl.rates.freshness import crawled
from recrawl.rates.likelihood import mle
from tests.recrawl.crawl_logs import START, parquet, table, write
from tests.recrawl.made import observe

DAY = 86_400.0


def each_page(history):
    """Intervals and bits of each page."""
    interval, changed, offsets = history.ragged()
    for start, end in itertools.pairwise(offsets):
        yield interval[start:end], changed[start:end]


def log_of(path, history, first=1.6e9, host=None):
    """Write a log of pages named by their number, the first crawls at one time."""
    url, time, changed = [], [], []
    for page, (interval, bits) in enumerate(each_page(history)):
        url += [str(page)] * (bits.size + 1)
        time.append(first + DAY * np.append(0.0, np.cumsum(interval)))
        changed += [False, *bits.tolist()]
    columns = {"url": url, "time": np.concatenate(time), "changed": changed}
    return parquet(path, **columns, host=url if host is None else [host] * len(url))


def written(path):
    """Columns of a file of rates, pages in the order of their numbers."""
    table = pq.read_table(path)
    order = np.argsort(np.array(table["url"].to_pylist(), dtype=int))
    return {
        name: np.array(table[name].to_pylist())[order] for name in table.schema.names
    }


def clusters(rng, horizon, spread=2.0):
    """Change times at rate 1 in clusters of 4 on average, within some days."""
    parents = rng.uniform(-20 * spread, horizon, rng.poisson(horizon / 4 + 5 * spread))
    sizes = rng.geometric(1 / 4, parents.size)
    times = np.repeat(parents, sizes) + rng.exponential(spread, sizes.sum())
    return np.sort(times[(times > 0) & (times < horizon)])


# ------------------------------------------------- drift


def batch_of(bits):
    """Pages that are crawled once a day, a row of bits for each."""
    history = History(*History(np.ones(bits.shape), bits).ragged())
    time = np.tile(np.arange(bits.shape[1]), bits.shape[0])
    return Batch(None, history, time, np.ones(bits.size, dtype=bool))


def test_drift_is_what_the_rates_were_multiplied_by():
    """Between 60 and 80% of the time pages change twice as often, then half as."""
    rng = np.random.default_rng(3)
    rate = rng.lognormal(-1.5, 0.5, 2000)
    factor = np.repeat([1.0, 1.0, 2.0, 0.5], [40, 20, 20, 20])
    bits = rng.random((2000, 100)) < -np.expm1(-np.outer(rate, factor))
    log, spread = np.log(rate), np.zeros(2000)
    columns = {"change_rate": rate, "log_rate": log, "log_stderr": spread}
    found = drift(batch_of(bits), lambda early: columns)
    # some 9,000, 17,000 and 5,000 changes
    assert_allclose(found, [1.0, 2.0, 0.5], rtol=4 / np.sqrt(5000))
    # rates that are lognormal are averaged over: a mean of the rate of exp(1/8)
    columns |= {"log_rate": np.full(2000, -1.5), "log_stderr": np.full(2000, 0.5)}
    found = drift(batch_of(bits), lambda early: columns)
    assert_allclose(found, [1.0, 2.0, 0.5], rtol=4 / np.sqrt(5000) + 0.02)


def test_only_what_was_before_a_part_predicts_it():
    lengths = []

    def posterior(early):
        lengths.append(early.history.n_crawls.tolist())
        ones = np.ones(5)
        return {"change_rate": ones, "log_rate": 0 * ones, "log_stderr": 0 * ones}

    drift(batch_of(np.ones((5, 200), dtype=bool)), posterior)
    assert lengths == [[80] * 5, [120] * 5, [160] * 5]


def test_drift_where_nothing_or_everything_changed():
    rate = np.full(20, 0.5)
    columns = {"change_rate": rate, "log_rate": np.log(rate), "log_stderr": 0 * rate}
    for bit, factor in ((0, np.exp(-3)), (1, 2 * np.log(800))):
        bits = np.full((20, 200), bit, dtype=bool)
        found = drift(batch_of(bits), lambda early: columns)
        # all but half of 800 changed: 1 - exp(-rate c) is 1 - 1 / 1600
        expected = [factor] * 3 if not bit else [np.log(1600) / 0.5] * 3
        assert_allclose(found, expected, rtol=1e-5)
    # of five changes predicted none was found: half a change stands for it
    rare = columns | {"log_rate": np.full(20, np.log(5 / 800))}
    none = drift(batch_of(np.zeros((20, 200), dtype=bool)), lambda early: rare)
    assert_allclose(none, np.full(3, 0.1), rtol=5e-3)
    few = batch_of(np.zeros((5, 100), dtype=bool))
    assert drift(few, lambda early: columns) is None  # 300 bits


@pytest.mark.parametrize(("n_crawls", "n_factors"), [(4, 2), (3, 1), (2, 1), (1, None)])
def test_a_log_of_a_few_rounds_has_a_factor_for_each_part_with_bits(
    n_crawls, n_factors
):
    """All pages are crawled at the same times, so that some cuts fall together."""
    bits = np.random.default_rng(6).random((2000, n_crawls)) < 0.5
    rate = np.full(2000, np.log(2))
    columns = {"change_rate": rate, "log_rate": np.log(rate), "log_stderr": 0 * rate}
    found = drift(batch_of(bits), lambda early: columns)
    if n_factors is None:
        assert found is None
    else:
        assert_allclose(found, np.ones(n_factors), atol=4 * 2 / np.sqrt(2000))
    # intervals that no crawl began make no part
    more = batch_of(np.column_stack([bits, np.zeros(2000, dtype=bool)]))
    more = replace(more, crawled=more.time < n_crawls)
    again = drift(more, lambda early: columns)
    assert again == (found if found is None else pytest.approx(found))


def test_a_day_on_which_all_pages_change_raises_one_factor(tmp_path):
    rng = np.random.default_rng(8)
    bits = rng.random((300, 50)) < 0.02
    usual, bits[:, 35] = bits.copy(), True
    found, expected, rates = [], [], tmp_path / "rates.parquet"
    for each in (usual, bits):
        log = log_of(tmp_path / "log.parquet", batch_of(each).history)
        found.append(estimate(log, rates, force=True))
        expected.append(found[-1].usual * written(rates)["change_rate"].mean())
    without, with_day = (each.drift for each in found)
    first, second, third = np.divide(with_day, without)
    assert first == pytest.approx(1.0)
    assert second > 4
    assert third < 0.6  # the day is in the rates that predict the last part
    # the middle of a promise is that of the other days
    assert expected[1] == pytest.approx(expected[0], rel=0.05)
    assert found[0].usual == pytest.approx(np.exp(np.log(without).mean()))


def test_most_changes_are_those_of_a_lognormal_rate():
    """Within one of SciPy's negative binomial; nominal cover of simulated changes."""
    rng = np.random.default_rng(4)
    log_rate, stderr = rng.normal(-1, 2, 5000), rng.uniform(0.05, 1.2, 5000)
    most = most_changes(log_rate, stderr, 20.0, None)
    shape = 1 / np.expm1(stderr**2)
    mean = 20 * np.exp(log_rate + stderr**2 / 2)
    exact = stats.nbinom.ppf(0.975, shape, shape / (shape + mean))
    assert np.abs(most - exact).max() <= 1
    number = rng.poisson(20 * np.exp(log_rate + stderr * rng.standard_normal(5000)))
    assert np.mean(number <= most) > 0.975 - 4 * 0.0022
    for factors, period in (([0.5, 2.0, 1.0], 40.0), ([0.5], 20.0)):
        found = most_changes(log_rate, stderr, 20.0, factors)
        assert_allclose(found, most_changes(log_rate, stderr, period, None))


# ------------------------------------------------- properties and invariances


def test_a_rate_lies_within_its_interval(tmp_path):
    rng = np.random.default_rng(4)
    n = rng.integers(0, 30, 150)
    interval = np.exp(rng.normal(0, 2, n.sum()))
    share = np.repeat(rng.choice([0.0, 0.1, 0.5, 1.0], 150), n)
    history = History(interval, rng.random(n.sum()) < share, np.append(0, n.cumsum()))
    estimate(log_of(tmp_path / "log.parquet", history), tmp_path / "rates.parquet")
    page = written(tmp_path / "rates.parquet")
    assert (page["low"] > 0).all()
    assert (page["low"] < page["change_rate"]).all()
    assert (page["change_rate"] < page["high"]).all()
    assert (page["dispersion"] >= 1).all()
    finite = np.isfinite([page["high"], page["log_stderr"], page["log_rate"]])
    assert finite.all()


def test_a_page_of_few_crawls_has_the_dispersion_of_its_host():
    rng = np.random.default_rng(9)
    bits = np.repeat(rng.random((60, 20)) < 0.5, 10, axis=1)  # runs of ten crawls
    bits = np.concatenate([bits, rng.random((60, 200)) < 0.5])
    history = History(np.ones(bits.shape).ravel(), bits.ravel(), np.arange(121) * 200)
    host = pa.array(["bursty"] * 60 + ["calm"] * 60)
    learnt = Dispersion.learn(*dispersion(history, mle(history)), host)
    assert learnt.hosts["bursty"] > 2 * learnt.mean / 1.5 > 2 * learnt.hosts["calm"] / 3
    short = History([1.0, 1.0] * 3, [True, False] * 3, [0, 2, 4, 6])
    names = pa.chunked_array([["bursty", "calm"], ["unknown"]])
    found = learnt.of(*dispersion(short, np.ones(3)), names)
    assert found[0] > found[2] > found[1] >= 1


def test_a_dispersion_that_is_known_badly_widens_by_students_t():
    freedom = np.array([0.0, 3.0])
    found = Dispersion(2.0, 5.0, {}).of(np.full(2, 2.0), freedom, pa.array(["a", "b"]))
    ratio = stats.t.ppf(0.975, freedom + 5) / stats.norm.ppf(0.975)
    assert_allclose(found, 2.0 * ratio**2, rtol=1e-12)
    # and no interval is narrower than that of Poisson changes
    regular = Dispersion(0.5, 1e6, {"a": 0.3})
    found = regular.of(np.full(2, 0.2), freedom, pa.array(["a", "b"]))
    assert found.tolist() == [1.0, 1.0]


# ------------------------------------------------- Monte Carlo


def polled(draw, rng, n_pages, n_polls):
    """Histories of pages that are polled once a day."""
    polls = np.arange(1, n_polls + 1.0)
    pages = [observe(draw(rng, n_polls + 1.0), polls) for _ in range(n_pages)]
    changed = np.concatenate([page.changed for page in pages])
    return History(np.ones(changed.size), changed, np.arange(n_pages + 1) * n_polls)


def poisson(rng, horizon):
    return np.sort(rng.uniform(0, horizon, rng.poisson(horizon)))


@pytest.mark.slow
@pytest.mark.parametrize("draw", [poisson, clusters])
def test_written_intervals_hold_the_rate_that_many_polls_would_give(tmp_path, draw):
    rng = np.random.default_rng(10)
    log = log_of(tmp_path / "log.parquet", polled(draw, rng, 400, 200))
    estimate(log, tmp_path / "rates.parquet")
    page = written(tmp_path / "rates.parquet")
    many = -np.log1p(-polled(draw, rng, 40, 5000).changed.mean())
    held = np.mean((page["low"] <= many) & (many <= page["high"]))
    error = np.sqrt(0.95 * 0.05 / 400)
    assert 0.95 - 4 * error < held < 0.95 + 4 * error
    # and as wide as that only where it must be
    assert (np.mean(page["dispersion"]) > 1.5) == (draw is clusters)


# ------------------------------------------------- one "now", and what a rule does


def test_what_estimate_writes_of_a_month(tmp_path):
    """Of 120 pages that are crawled every few days: freshness, period and drift."""
    rng, n = np.random.default_rng(14), 12
    interval = rng.exponential(2.5, (120, n)) + 0.01
    rate = rng.lognormal(-1.5, 1, (120, 1))
    bits = rng.random(interval.shape) < -np.expm1(-rate * interval)
    history = History(interval.ravel(), bits.ravel(), np.arange(121) * n)
    log = log_of(tmp_path / "log.parquet", history)
    found = estimate(log, tmp_path / "rates.parquet")
    page = written(tmp_path / "rates.parquet")
    expected = crawled(history, page["change_rate"])
    assert_allclose(page["freshness_now"], expected, rtol=1e-9)
    assert found.period == pytest.approx(history.total(history.interval).max() / 5)
    # some 280 bits in each part, of which a third changed
    assert_allclose(found.drift, 1.0, atol=4 / np.sqrt(90))


def test_the_period_is_a_fifth_of_the_crawls_of_this_log(tmp_path):
    """Without the time back to the first Last-Modified, or to the state."""
    state, log = tmp_path / "state.parquet", tmp_path / "log.csv"
    names = "url", "time", "changed", "last_modified"
    for first, n in ((0, 10), (20, 5)):
        days = range(first, first + n + 1)
        rows = [("a", START + DAY * day, 0, START - 8e6) for day in days]
        write(log, table(rows, names))
        found = estimate(log, tmp_path / "rates.csv", state=state, force=True)
        assert found.period == pytest.approx(n / 5)
