"""Intervals that hold their rate, also where changes cluster; fading; calibration."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from paperlib import freshness
from recrawl import (
    Calibration,
    calibrating,
    compare,
    estimate,
)
from recrawl.dependence import Dependence, measured
from recrawl.reading import Batch
from recrawl.science.estimators import mle
from recrawl.science.freshness import crawled
from recrawl.science.processes import History
from tests.recrawl.crawl_logs import parquet
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


# ------------------------------------------------- calibration


def test_calibration_by_poisson_changes_is_the_formula():
    x = np.array([0.0, 0.3, 1.0, 2.5])
    calibration = Calibration(x, np.exp(-x))
    change, crawl = np.meshgrid([1e-9, 0.1, 1.0, 30.0], [1e-3, 0.5, 2.0])
    expected = freshness.interval(change, crawl)
    assert_allclose(calibration.freshness(change, crawl), expected, rtol=1e-12)
    assert calibration.freshness(0.0, 0.0) == 1.0
    assert calibration.freshness(1.0, 0.0) == 0.0


def test_intervals_that_are_equal_but_for_rounding_are_calibrated_together():
    rng = np.random.default_rng(3)
    interval = 1 + 1e-9 * rng.standard_normal(5000)
    history = History(interval, rng.random(5000) < 0.4, np.arange(0, 5001, 1000))
    batch = Batch(None, history, np.tile(np.arange(1000), 5), np.ones(5000, bool))
    learnt = calibrating.learn(batch, lambda before: np.full(before.shape, 0.5))
    assert_allclose(learnt.x, [0.0, 0.5], rtol=1e-6)
    late = history.changed.reshape(5, 1000)[:, 800:]
    assert learnt.unchanged[1] == pytest.approx(1 - late.mean(), rel=1e-2)


def test_calibration_against_numerical_integration():
    calibration = Calibration([0.0, 0.5, 2.0], [1.0, 0.7, 0.7])
    points = (np.arange(200_000) + 0.5) / 200_000
    for end in (0.2, 0.5, 1.7, 6.0):
        x = end * points
        logs = np.interp(x, [0.0, 0.5, 2.0], np.log([1.0, 0.7, 0.7]))
        mean = np.exp(logs - np.maximum(x - 2.0, 0.0)).mean()
        assert calibration.freshness(end, 1.0) == pytest.approx(mean, rel=1e-8)


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
    rate = mle(history)
    new = {"dispersion": np.ones(120), "freedom": np.zeros(120)}
    learnt = Dependence.learn(history, rate, pa.table(new | {"host": host}))
    assert learnt.hosts["bursty"] > 2 * learnt.mean / 1.5 > 2 * learnt.hosts["calm"] / 3
    short = History([1.0, 1.0] * 3, [True, False] * 3, [0, 2, 4, 6])
    names = pa.chunked_array([["bursty", "calm"], ["unknown"]])
    new = pa.table({name: values[:3] for name, values in new.items()})
    found = learnt.of(*measured(short, np.ones(3), new), names)
    assert found[0] > found[2] > found[1] >= 1


def test_a_dispersion_that_is_known_badly_widens_by_students_t():
    freedom = np.array([0.0, 3.0])
    found = Dependence(2.0, 5.0, {}).of(np.full(2, 2.0), freedom, pa.array(["a", "b"]))
    ratio = stats.t.ppf(0.975, freedom + 5) / stats.norm.ppf(0.975)
    assert_allclose(found, 2.0 * ratio**2, rtol=1e-12)


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


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """A log of a month, 120 pages that are crawled every few days."""
    rng = np.random.default_rng(14)
    n = 12
    interval = rng.exponential(2.5, (120, n)) + 0.01
    rate = rng.lognormal(-1.5, 1, (120, 1))
    bits = rng.random(interval.shape) < -np.expm1(-rate * interval)
    history = History(interval.ravel(), bits.ravel(), np.arange(121) * n)
    return log_of(tmp_path_factory.mktemp("month") / "log.parquet", history), history


def test_the_log_is_as_fresh_for_estimate_as_for_compare(month, tmp_path):
    log, history = month
    estimate(log, tmp_path / "rates.parquet")
    page = written(tmp_path / "rates.parquet")
    found = compare(log)
    now = np.mean(page["freshness_now"])
    assert found.freshness["the log"] == pytest.approx(now, rel=1e-12)
    expected = crawled(history, page["change_rate"])
    assert_allclose(page["freshness_now"], expected, rtol=1e-9)


def test_compare_calibrates_what_crawls_at_equal_intervals(tmp_path):
    """The same calibration as that of the rates, at the intervals of each rule."""
    rng = np.random.default_rng(15)
    interval = rng.exponential(2.5, (120, 25)) + 0.01
    bits = rng.random(interval.shape) < -np.expm1(-0.3 * interval)
    history = History(interval.ravel(), bits.ravel(), np.arange(121) * 25)
    log = log_of(tmp_path / "log.parquet", history)
    found = compare(log)
    assert found.calibrated.keys() == {"the log", "uniform", "proportional", "optimal"}
    learnt = estimate(log, tmp_path / "rates.parquet").calibration
    calibration = Calibration(**learnt)
    page = pq.read_table(tmp_path / "rates.parquet").to_pandas()
    rate = page["change_rate"].to_numpy()
    even = (history.n_crawls / history.total(history.interval)).sum() / 120
    fresh = calibration.freshness(rate, even).mean()
    assert found.calibrated["uniform"] == pytest.approx(fresh, rel=1e-9)
    of_url = rate[np.argsort(page["url"].astype(int))]
    fresh = calibration.freshness(of_url[:, None], 1 / interval)
    fresh = np.average(fresh, axis=1, weights=interval).mean()
    assert found.calibrated["the log"] == pytest.approx(fresh, rel=1e-6)


def test_what_estimate_keeps_of_the_log(month, tmp_path):
    log, _ = month
    found = estimate(log, tmp_path / "rates.parquet")
    kept = json.loads(pq.read_metadata(tmp_path / "rates.parquet").metadata[b"recrawl"])
    assert kept["dispersion"] == found.dispersion
    assert found.calibration is None  # 120 pages times 2 bits
    long = log_of(
        tmp_path / "long.parquet", polled(poisson, np.random.default_rng(15), 50, 50)
    )
    found = estimate(long, tmp_path / "rates.parquet", force=True)
    calibration = Calibration(**found.calibration)
    assert calibration.unchanged[1] == pytest.approx(np.exp(-calibration.x[1]), abs=0.1)
