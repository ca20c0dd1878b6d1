"""Intervals that hold their rate, also where changes cluster; fading; calibration."""

import copy
import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, polygamma

from paperlib import freshness
from recrawl import (
    ESTIMATORS,
    Calibration,
    calibrating,
    compare,
    estimate,
)
from recrawl.dependence import Dependence, measured
from recrawl.reading import Batch
from recrawl.science.estimators import (
    dispersion,
    likelihood_interval,
    log_information,
    log_stderr,
    mean_log_rate,
    mle,
    pooled_dispersion,
    shrunk_dispersion,
)
from recrawl.science.freshness import crawled
from recrawl.science.priors import FakeIntervals
from recrawl.science.processes import History, observe
from tests.plain import log_likelihood
from tests.recrawl import plain as reference
from tests.recrawl.crawl_logs import parquet
from tests.recrawl.thinned import every

DAY = 86_400.0


def ragged(rng, n_pages, most=30):
    """Random histories: empty, of one bit, of one kind of bit, of both."""
    n = rng.integers(0, most, n_pages)
    n[:3] = 0, 1, most
    interval = np.exp(rng.normal(0, 2, n.sum()))
    share = np.repeat(rng.choice([0.0, 0.1, 0.5, 1.0], n_pages), n)
    return History(interval, rng.random(n.sum()) < share, np.append(0, n.cumsum()))


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


# ------------------------------------------------- closed forms and plain forms


def test_standard_errors_are_exact_where_all_changes_are_known():
    # the likelihood of known ages is that of a gamma distribution of shape K + 1
    history = History(np.full(9, 2.0), np.ones(9), age=np.full(9, 0.5))
    information = log_information(history, mle(history))
    assert information == pytest.approx(9.0, rel=1e-12)
    assert log_stderr(information) == pytest.approx(
        np.sqrt(polygamma(1, 10)), rel=1e-12
    )


def test_plain_forms_of_the_dispersion():
    rng = np.random.default_rng(0)
    for interval, changed in each_page(ragged(rng, 100)):
        if not 2 <= changed.sum() <= changed.size - 2:
            continue
        history, rate = History(interval, changed), np.exp(rng.normal())
        expected = reference.log_information(rate, interval, changed)
        assert log_information(history, rate) == pytest.approx(expected, rel=1e-10)
        value, freedom = dispersion(history, rate)
        assert 0 <= freedom <= 3
        if freedom:
            expected = reference.dispersion(rate, interval, changed)
            assert value == pytest.approx(expected, rel=1e-8)
        assert log_stderr(7.0, value) == pytest.approx(reference.log_stderr(7.0, value))
        found = likelihood_interval(history, dispersion=2.5)
        expected = reference.likelihood_interval(interval, changed, 0.95, 2.5)
        assert_allclose(found, expected, rtol=1e-9)


def test_information_is_the_curvature_of_the_log_likelihood():
    rng = np.random.default_rng(1)
    interval, changed, h = rng.exponential(1, 30), rng.random(30) < 0.5, 1e-4
    at = [log_likelihood(np.exp(k * h), interval, changed) for k in (-1, 0, 1)]
    expected = -(at[0] - 2 * at[1] + at[2]) / h**2
    found = log_information(History(interval, changed), 1.0)
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_standard_errors_against_the_posterior_on_a_grid(power):
    rng, errors, off = np.random.default_rng(2), [], []
    rate = np.geomspace(1e-7, 1e5, 3000)
    for interval, changed in each_page(ragged(rng, 40)):
        prior = FakeIntervals(*np.exp(rng.normal(0, 1, 2)))
        history = prior.observed(History(interval, changed, [0, changed.size]))
        w, bits, _ = history.ragged()
        x = rate[:, np.newaxis] * w
        logs = np.where(bits, np.log(-np.expm1(-x)), -x).sum(axis=1)
        # equally likely rates: the density of their logarithm is the rate times it
        weight = rate * np.exp((logs - np.max(logs)) / power)
        weight /= weight.sum()
        mean = weight @ np.log(rate)
        exact = np.sqrt(weight @ (np.log(rate) - mean) ** 2)
        mode = mle(history)
        errors.append(log_stderr(log_information(history, mode), power)[0] / exact - 1)
        off.append(mean_log_rate(history, mode, power)[0] - mean)
    assert np.abs(errors).max() < 0.35  # few crawls at very different intervals
    assert np.abs(np.median(errors)) < 0.03
    assert np.abs(off).max() < 2e-3


def test_the_mean_log_rate_in_closed_form_and_in_plain_form():
    # of known ages the likelihood is that of a gamma distribution of shape K + 1
    history = History(np.full(9, 2.0), np.ones(9), age=np.full(9, 0.5))
    exact = digamma(10) - np.log(4.5)
    assert mean_log_rate(history, mle(history)) == pytest.approx(exact, abs=1e-5)
    assert mean_log_rate(history, 1.0) == pytest.approx(exact, abs=1e-5)
    interval, changed = np.array([1.0, 7.0, 1.5, 3.0]), np.array([1, 1, 0, 1]) == 1
    plain = reference.mean_log_rate(interval, changed, 2.5)
    history = History(interval, changed)
    mode = mle(history)
    assert mean_log_rate(history, mode, 2.5) == pytest.approx(plain, abs=2e-3)
    assert plain > np.log(mode) + 0.4  # the long right tail
    faster = mean_log_rate(History(interval / 8, changed), 8 * mode, 2.5)
    assert faster == pytest.approx(plain + np.log(8), abs=2e-3)
    pages = History([1.0, 2.0], [True, False], [0, 1, 1, 2])
    found = mean_log_rate(pages, [1.0, 1.0, 0.01])
    expected = [np.inf, np.inf, digamma(1) - np.log(2)]
    assert_allclose(found, expected, atol=2e-3)


def path(filter_, history):
    """Estimates after every crawl; the filter itself stays as it is."""
    filter_ = copy.deepcopy(filter_)
    crawls = zip(
        np.moveaxis(history.changed, -1, 0),
        np.moveaxis(history.interval, -1, 0),
        strict=True,
    )
    found = [filter_.update(bits, interval=interval) for bits, interval in crawls]
    return np.stack(found, axis=-1)


def test_calibration_by_poisson_changes_is_the_formula():
    x = np.array([0.0, 0.3, 1.0, 2.5])
    calibration = Calibration(x, np.exp(-x))
    change, crawl = np.meshgrid([1e-9, 0.1, 1.0, 30.0], [1e-3, 0.5, 2.0])
    expected = freshness.interval(change, crawl)
    assert_allclose(calibration.freshness(change, crawl), expected, rtol=1e-12)
    assert calibration.freshness(0.0, 0.0) == 1.0
    assert calibration.freshness(1.0, 0.0) == 0.0
    again = Calibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert again.freshness(1.0, 0.7) == calibration.freshness(1.0, 0.7)


def test_calibration_against_numerical_integration():
    calibration = Calibration([0.0, 0.5, 2.0], [1.0, 0.7, 0.7])
    points = (np.arange(200_000) + 0.5) / 200_000
    for end in (0.2, 0.5, 1.7, 6.0):
        x = end * points
        logs = np.interp(x, [0.0, 0.5, 2.0], np.log([1.0, 0.7, 0.7]))
        mean = np.exp(logs - np.maximum(x - 2.0, 0.0)).mean()
        assert calibration.freshness(end, 1.0) == pytest.approx(mean, rel=1e-8)


# ------------------------------------------------- properties and invariances


@pytest.mark.parametrize("name", every(3, ESTIMATORS))
@pytest.mark.parametrize("level", [0.2, 0.95])
def test_a_rate_lies_within_its_interval_or_the_column_says_where(
    tmp_path, name, level
):
    log = log_of(tmp_path / "log.parquet", ragged(np.random.default_rng(4), 150))
    estimate(log, tmp_path / "rates.parquet", estimator=name, level=level)
    page = written(tmp_path / "rates.parquet")
    rate, low, high = (page[name] for name in ("change_rate", "low", "high"))
    where = np.select([rate < low, rate > high], ["below", "above"], "within")
    assert np.array_equal(where, [text or "within" for text in page["outside"]])
    if name == "prior":
        assert (where == "within").all()
        assert (low > 0).all()
        assert np.isfinite(high).all()
    assert np.isfinite(page["log_stderr"]).all()
    assert np.isfinite(page["log_rate"]).all()
    assert (page["dispersion"] >= 1).all()


def test_the_dispersion_does_not_depend_on_the_unit_of_time_or_other_pages():
    rng = np.random.default_rng(6)
    history = ragged(rng, 40)
    rate = np.exp(rng.normal(size=40))
    found = dispersion(history, rate)
    interval, changed, offsets = history.ragged()
    scaled = dispersion(History(interval * 8, changed, offsets), rate / 8)
    assert_allclose(scaled, found, rtol=1e-10)
    for page, (w, bits) in enumerate(each_page(history)):
        alone = dispersion(History(w, bits, [0, bits.size]), rate[page])
        assert_allclose(np.ravel(alone), [x[page] for x in found], rtol=1e-12)


def test_what_bits_show_of_the_dispersion():
    one = History(np.ones(40), np.arange(40) == 7)
    assert dispersion(one, mle(one)) == (1.0, 0.0)
    for rate in (0.0, np.inf, np.nan):
        assert dispersion(one, rate) == (1.0, 0.0)
    turns = History(np.ones(40), np.arange(40) % 2 == 0)
    assert dispersion(turns, mle(turns))[0] < 0.1


def test_intervals_grow_with_the_dispersion():
    history = ragged(np.random.default_rng(7), 50)
    lows, highs = zip(
        *(likelihood_interval(history, dispersion=d) for d in (0.5, 1.0, 4.0)),
        strict=True,
    )
    crawled = history.n_crawls > 0
    assert (np.diff(lows, axis=0)[:, crawled] <= 0).all()
    with np.errstate(invalid="ignore"):  # inf - inf
        assert not (np.diff(highs, axis=0)[:, crawled] < 0).any()


def test_pooling():
    rng = np.random.default_rng(8)
    freedom = np.full(20_000, 7.0)
    alike = 2.0 * rng.chisquare(7, 20_000) / 7
    mean, weight = pooled_dispersion(alike, freedom)
    assert mean == pytest.approx(2.0, abs=0.03)
    assert weight > 100
    # true dispersions of 2, scaled by 12 degrees of freedom: their mean is 2.4
    true = 2.0 * 12 / rng.chisquare(12, 20_000)
    mean, weight = pooled_dispersion(true * alike / 2.0, freedom)
    assert mean == pytest.approx(2.4, abs=0.05)
    assert weight == pytest.approx(12, rel=0.2)
    assert pooled_dispersion([], []) == (1.0, np.inf)
    assert pooled_dispersion([1.0, 1.0], [0.0, 0.0]) == (1.0, np.inf)
    mean = shrunk_dispersion(9.0, 3.0, 1.0, 9.0)
    assert mean == 3.0


def test_a_page_of_few_crawls_has_the_dispersion_of_its_host():
    rng = np.random.default_rng(9)
    bits = np.repeat(rng.random((60, 20)) < 0.5, 10, axis=1)  # runs of ten crawls
    bits = np.concatenate([bits, rng.random((60, 200)) < 0.5])
    history = History(np.ones(bits.shape).ravel(), bits.ravel(), np.arange(121) * 200)
    host = pa.array(["bursty"] * 60 + ["calm"] * 60)
    rate = mle(history)
    learnt = Dependence.learn(history, rate, host)
    assert learnt.hosts["bursty"] > 2 * learnt.mean / 1.5 > 2 * learnt.hosts["calm"] / 3
    short = History([1.0, 1.0] * 3, [True, False] * 3, [0, 2, 4, 6])
    names = pa.chunked_array([["bursty", "calm"], ["unknown"]])
    found = learnt.of(*measured(short, np.ones(3)), names, 0.95)
    assert found[0] > found[2] > found[1] >= 1


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
    estimate(log, tmp_path / "rates.parquet", estimator="prior")
    page = written(tmp_path / "rates.parquet")
    many = -np.log1p(-polled(draw, rng, 40, 5000).changed.mean())
    held = np.mean((page["low"] <= many) & (many <= page["high"]))
    error = np.sqrt(0.95 * 0.05 / 400)
    assert 0.95 - 4 * error < held < 0.95 + 4 * error
    # and as wide as that only where it must be
    assert (np.mean(page["dispersion"]) > 1.5) == (draw is clusters)


def drifting(rng, n_pages, n_crawls, spread, memory):
    """Bits at uneven intervals of pages whose log rate wanders by a spread."""
    interval = rng.exponential(1, (n_pages, n_crawls)) + 0.01
    state = rng.normal(size=n_pages)
    mean, bits = rng.normal(-1, 0.5, n_pages), []
    for w in interval.T:
        kept = np.exp(-w / memory)
        state = kept * state + np.sqrt(1 - kept**2) * rng.normal(size=n_pages)
        bits.append(rng.random(n_pages) < -np.expm1(-np.exp(mean + spread * state) * w))
    offsets = np.arange(n_pages + 1) * n_crawls
    return History(interval.ravel(), np.array(bits).T.ravel(), offsets)


def logged(draw, rng, n_pages, n_crawls):
    """Batch of pages crawled at random times, some often and some rarely."""
    interval, changed, time = [], [], []
    for _ in range(n_pages):
        crawls = np.cumsum(rng.exponential(np.exp(rng.normal(0, 1)), n_crawls) + 1e-3)
        page = observe(draw(rng, crawls[-1]), crawls)
        interval.append(page.interval)
        changed.append(page.changed)
        time.append(np.arange(n_crawls))
    offsets = np.arange(n_pages + 1) * n_crawls
    history = History(np.concatenate(interval), np.concatenate(changed), offsets)
    every = np.ones(history.interval.size, dtype=bool)
    return Batch(None, history, np.concatenate(time), every)


@pytest.mark.slow
def test_calibration_of_poisson_pages_is_their_exponential():
    batch = logged(poisson, np.random.default_rng(12), 150, 200)
    learnt = calibrating.learn(batch, lambda h: mle(h, edges="substitute"))
    assert learnt.x.size > 30
    error = 0.5 / np.sqrt(150 * 200 / 5 / (learnt.x.size - 1))
    assert_allclose(learnt.unchanged, np.exp(-learnt.x), atol=4 * error)


@pytest.mark.slow
def test_calibrated_freshness_of_clusters_is_nearer_to_the_truth():
    rng = np.random.default_rng(13)

    def draw(rng, horizon):
        return clusters(rng, horizon, spread=0.1)

    batch = logged(draw, rng, 150, 200)
    learnt = calibrating.learn(batch, lambda h: mle(h, edges="substitute"))
    rate = np.median(mle(batch.history, edges="substitute"))
    near = (learnt.x > 0) & (learnt.x < 0.1)
    assert (learnt.unchanged[near] < np.exp(-learnt.x[near])).mean() > 0.7
    for interval in (0.5, 2.0):
        horizon = 20_000.0
        changes, at = (
            clusters(rng, horizon, spread=0.1),
            rng.uniform(0, horizon, 50_000),
        )
        crawl = interval * np.floor(at / interval)
        true = np.mean(np.searchsorted(changes, at) == np.searchsorted(changes, crawl))
        promised = freshness.interval(rate, 1 / interval)
        calibrated = learnt.freshness(rate, 1 / interval)
        assert abs(calibrated - true) < abs(promised - true)


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
    now = np.mean(page["freshness_now"])
    assert compare(log).freshness["the log"] == pytest.approx(now, rel=1e-12)
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
    calibration = Calibration.from_dict(learnt)
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
    assert found.estimator == kept["estimator"] == "prior"
    assert kept["dispersion"] == found.dispersion
    assert found.calibration is None  # 120 pages times 2 bits
    long = log_of(
        tmp_path / "long.parquet", polled(poisson, np.random.default_rng(15), 50, 50)
    )
    found = estimate(long, tmp_path / "rates.parquet", force=True)
    calibration = Calibration.from_dict(found.calibration)
    assert calibration.unchanged[1] == pytest.approx(np.exp(-calibration.x[1]), abs=0.1)


# ------------------------------------------------- bad input


def test_without_degrees_of_freedom_the_dispersion_is_the_mean():
    """Of the page and of the mean: their share was 0 / 0."""
    assert shrunk_dispersion(5.0, 0.0, 2.0, 0.0) == 2.0
    assert pooled_dispersion(9.0, 7.0) == pooled_dispersion([9.0], [7.0])


def test_bad_numbers():
    history = History([1.0, 2.0], [True, False])
    for call, rule in (
        (
            lambda: likelihood_interval(history, dispersion=0.0),
            "dispersion must be pos",
        ),
        (lambda: log_information(history, 0.0), "change_rate must be positive"),
        (lambda: log_stderr(-1.0), "information must be non-negative"),
        (lambda: log_stderr(1.0, 0.0), "dispersion must be positive"),
        (lambda: mean_log_rate(history, 0.0), "change_rate must be positive"),
        (lambda: mean_log_rate(history, 1.0, 0.0), "dispersion must be positive"),
        (
            lambda: mean_log_rate(history, 1.0, [1.0, 2.0]),
            "dispersion must be a number, or one for each page",
        ),
        (lambda: pooled_dispersion([-1.0], [1.0]), "value must be non-negative"),
        (lambda: shrunk_dispersion("a", 1, 1, 1), "value must be non-negative"),
        (
            lambda: dispersion(history, [1.0, 2.0]),
            "change_rate must be a number, or one for each page",
        ),
        (lambda: Calibration([0.0, 0.0], [1.0, 0.5]), "x must be rising from 0"),
        (lambda: Calibration([1.0], [1.0]), "x must be rising from 0"),
        (lambda: Calibration([0.0, 1.0], [1.0, 1.1]), "unchanged must be falling"),
        (lambda: Calibration([0.0, 1.0], [0.9, 0.5]), "unchanged must be falling"),
        (lambda: Calibration([0.0, 1.0], [1.0]), "a value for each x"),
    ):
        with pytest.raises(ValueError, match=rule):
            call()
