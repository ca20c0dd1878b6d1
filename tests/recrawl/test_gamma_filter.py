"""The gamma filter: its steps, its error, and what it refuses."""

import copy
import math
from decimal import Decimal, getcontext, localcontext

import numpy as np
import pytest
from scipy import stats

from recrawl.science.estimators import (
    GammaFilter,
    fisher_information,
    mle,
)
from recrawl.science.processes import History, simulate_history

getcontext().prec = 50


def log_likelihood(rate, interval):
    return math.log(-math.expm1(-rate * interval))


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


def one_change(shape, rate, interval):
    """The update after a change, in decimals of 50 digits."""
    shape, rate, interval = Decimal(shape), Decimal(rate), Decimal(interval)
    x = interval * shape / rate
    e = x.exp()
    count = x**2 * e / (e - 1) ** 2
    return float(shape + count), float(rate + (count - x / (e - 1)) * rate / shape)


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("x", [1e-9, 9e-4, 1.1e-3, 0.1, 2.0, 15.0, 39.0])
@pytest.mark.parametrize("shape", [0.5, 300.0])
def test_a_change_is_the_closed_form(x, shape):
    filter_ = GammaFilter(shape=shape, rate=2.0)
    filter_.update(True, interval=2.0 * x / shape)
    np.testing.assert_allclose(
        (filter_.shape, filter_.rate),
        one_change(shape, 2.0, 2.0 * x / shape),
        rtol=1e-12,
    )


@pytest.mark.parametrize("x", [1e-12, 1e-9, 1e-6, 9e-4])
def test_a_change_after_a_short_interval_loses_no_digits(x):
    # a prior so weak that the time that is added, about x / 2, outweighs its own
    filter_ = GammaFilter(shape=x, rate=2.0)
    filter_.update(True, interval=2.0)
    assert filter_.rate == pytest.approx(one_change(x, 2.0, 2.0)[1], rel=1e-11, abs=0)


@pytest.mark.parametrize("x", [0.3, 2.0, 8.0])
def test_a_change_has_the_first_two_derivatives_of_its_likelihood(x):
    filter_ = GammaFilter(shape=4.0, rate=1.0)
    filter_.update(True, interval=x / 4.0)
    count, time = filter_.shape - 4.0, filter_.rate - 1.0
    h = 1e-3
    points = [log_likelihood(4.0 + k * h, x / 4.0) for k in (-1, 0, 1)]
    assert count / 4.0 - time == pytest.approx(
        (points[2] - points[0]) / (2 * h), rel=1e-5
    )
    assert -count / 16.0 == pytest.approx(
        (points[2] - 2 * points[1] + points[0]) / h**2, rel=1e-5
    )


def test_without_changes_it_is_the_conjugate_posterior():
    interval = np.array([3.0, 0.5, 2.5])
    filter_ = GammaFilter(shape=1.5, rate=4.0)
    for w in interval:
        filter_.update(False, interval=w)
    assert filter_.shape == 1.5
    assert filter_.rate == 10.0
    assert filter_.estimate == 0.15


def test_the_default_prior_is_half_a_change_in_a_little_of_the_first_interval():
    filter_ = GammaFilter()
    filter_.update([False, False], interval=[1.0, 50.0])
    np.testing.assert_allclose(filter_.shape, 0.5)
    np.testing.assert_allclose(filter_.rate, [1.03, 51.5])


def test_forgetting_goes_back_to_the_prior():
    filter_ = GammaFilter(shape=0.5, rate=2.0, forgetting=0.9)
    for _ in range(500):
        filter_.update(False, interval=3.0)
    assert filter_.shape == pytest.approx(0.5, rel=1e-12)
    assert filter_.rate == pytest.approx(2.0 + 3.0 / 0.1, rel=1e-12)


# --------------------------------------------- independent oracle: the exact posterior


@pytest.mark.slow
@pytest.mark.parametrize("crawl_rate", [0.3, 1.0, 5.0])
def test_the_posterior_is_near_the_exact_one(crawl_rate):
    history = simulate_history(
        1.0, crawl_rate=crawl_rate, n_crawls=400, n_runs=20, rng=3
    )
    rate = np.geomspace(0.2, 5.0, 4001)
    filter_ = GammaFilter(shape=2.0, rate=2.0)
    path_of = [
        filter_.update(history.changed[:, k], interval=history.interval[:, k])
        for k in range(400)
    ]
    exponent = -history.interval[:, np.newaxis] * rate[:, np.newaxis]
    log = np.where(
        history.changed[:, np.newaxis], np.log(-np.expm1(exponent)), exponent
    ).sum(axis=-1)
    log += stats.gamma.logpdf(rate, 2.0, scale=0.5) + np.log(
        rate
    )  # on a logarithmic grid
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = weight @ rate
    sd = np.sqrt(weight @ rate**2 - mean**2)
    # early crawls were linearised at early estimates: 0.27 measured where few
    # crawls find no change, 0.05 elsewhere
    early = 3.0 if crawl_rate < 1 else 1.0
    assert (np.abs(path_of[-1] - rate[log.argmax(axis=1)]) < 0.11 * early * sd).all()
    np.testing.assert_allclose(
        np.sqrt(filter_.shape) / filter_.rate, sd, rtol=0.035 * early
    )


# ---------------------------------------------------------------- Monte Carlo


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_error_reaches_the_bound(ratio):
    n, n_runs = 1000, 3000
    history = simulate_history(1.0, crawl_rate=ratio, n_crawls=n, n_runs=n_runs, rng=11)
    error = np.log(path(GammaFilter(), history)[:, -1])
    bound = 1 / np.sqrt(n * fisher_information(1.0, crawl_rate=ratio))
    # of 1 + O(1 / n), and five standard errors
    near = 0.01 + 5 / np.sqrt(2 * n_runs)
    assert np.sqrt(np.mean(error**2)) / bound == pytest.approx(1.0, abs=near)
    difference = error**2 - np.log(mle(history)) ** 2
    assert abs(difference.mean()) < 0.03 * bound**2 + 5 * difference.std() / np.sqrt(
        n_runs
    )


def test_forgetting_follows_a_jump():
    rng = np.random.default_rng(7)
    rate = np.repeat([1.0, 8.0, 0.25], 500)
    interval = rng.exponential(size=(1500, 400))
    changed = rng.random((1500, 400)) < -np.expm1(-rate[:, np.newaxis] * interval)
    follows, stays = GammaFilter(forgetting=0.98), GammaFilter()
    errors = np.array(
        [
            [np.log(f.update(c, interval=w) / r).mean() for f in (follows, stays)]
            for c, w, r in zip(changed, interval, rate, strict=True)
        ]
    )
    assert np.abs(errors[[499, 999, 1499], 0]).max() < 0.1
    assert np.abs(errors[[999, 1499], 1]).min() > 0.4


# ---------------------------------------------------- invariances, extremes, bad input


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_another_unit_of_time_rescales_estimates(unit):
    history = simulate_history(2.0, crawl_rate=1.0, n_crawls=50, n_runs=4, rng=8)
    found = path(GammaFilter(), History(history.interval * unit, history.changed))
    np.testing.assert_allclose(found * unit, path(GammaFilter(), history), rtol=1e-10)


def test_pages_in_any_shape_are_each_page_alone():
    history = simulate_history(
        np.array([[0.5, 1.0, 4.0], [2.0, 3.0, 9.0]]), crawl_rate=1.0, n_crawls=30, rng=9
    )
    together = path(GammaFilter(forgetting=0.95), history)
    alone = path(
        GammaFilter(forgetting=0.95),
        History(history.interval[1, 2], history.changed[1, 2]),
    )
    np.testing.assert_allclose(together[1, 2], alone, rtol=1e-12)


def test_one_page_is_a_number():
    filter_ = GammaFilter()
    assert filter_.estimate is None
    assert (
        filter_.update(True, interval=1.0)
        == filter_.estimate
        == pytest.approx(one_change(0.5, 0.03, 1.0)[0] / one_change(0.5, 0.03, 1.0)[1])
    )


def test_an_array_of_one_page_takes_a_number_as_its_interval():
    estimate = GammaFilter().update([True], interval=1.0)
    assert estimate.shape == (1,)
    assert estimate[0] == GammaFilter().update(True, interval=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize(
    ("bit", "bounds"), [(False, (1e-6, 1e-2)), (True, (3.0, 50.0))]
)
def test_the_same_bit_for_ever_stays_positive_and_finite(forgetting, bit, bounds):
    filter_ = GammaFilter(forgetting=forgetting)
    for _ in range(20_000):
        estimate = filter_.update(bit, interval=1.0)
    assert bounds[0] <= estimate <= bounds[1] or (forgetting, bit) == (0.9, False)
    assert 0 < estimate < np.inf


def test_rate_that_goes_to_zero_and_comes_back():
    rng = np.random.default_rng(10)
    filter_ = GammaFilter(forgetting=0.98)
    rate = np.concatenate([np.geomspace(1.0, 1e-12, 2000), np.ones(300)])
    path_of = [
        filter_.update(rng.random(200) < -np.expm1(-r), interval=1.0) for r in rate
    ]
    assert np.median(path_of[1999]) == pytest.approx(
        0.5 * 0.02, rel=0.1
    )  # the prior's changes in a memory without one
    assert np.median(path_of[-1]) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_a_filter_of_many_pages_is_one_filter_for_each(forgetting):
    rng = np.random.default_rng(5)
    shape, rate = np.linspace(0.3, 2.0, 6), np.geomspace(0.1, 10.0, 6)
    together = GammaFilter(shape=shape, rate=rate, forgetting=forgetting)
    alone = [
        GammaFilter(shape=a, rate=b, forgetting=forgetting)
        for a, b in zip(shape, rate, strict=True)
    ]
    for _ in range(60):
        page = rng.permutation(6)[: rng.integers(0, 7)]
        changed, interval = rng.random(page.size) < 0.6, rng.exponential(1.0, page.size)
        crawled = together.shape is not None
        before = (together.shape, together.rate) if crawled else (shape, rate)
        before = [values.copy() for values in before]
        found = together.update(changed, interval=interval, page=page)
        single = [
            alone[i].update(bit, interval=w)
            for i, bit, w in zip(page, changed, interval, strict=True)
        ]
        np.testing.assert_allclose(found, np.array(single), rtol=1e-13)
        np.testing.assert_array_equal(found, together.estimate[page])
        untouched = np.delete(np.arange(6), page)
        for now, old in zip((together.shape, together.rate), before, strict=True):
            np.testing.assert_array_equal(now[untouched], old[untouched])


def test_a_crawl_of_some_pages_follows_one_of_all():
    filter_ = GammaFilter()  # the first crawl says how many pages there are
    filter_.update([[True, False], [True, True]], interval=1.0)
    before = filter_.estimate
    found = filter_.update(False, interval=[2.0, 4.0], page=[3, 0])
    assert found[0] == filter_.estimate[1, 1] < before[1, 1]
    assert found[1] == filter_.estimate[0, 0] < before[0, 0]
    np.testing.assert_array_equal(
        filter_.estimate[[0, 1], [1, 0]], before[[0, 1], [1, 0]]
    )
    assert isinstance(filter_.update(True, interval=1.0, page=2), float)
    assert filter_.update([], interval=1.0, page=[]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: GammaFilter(forgetting=0.0),
            r"forgetting must be in \(0, 1\], got 0.0",
        ),
        (
            lambda: GammaFilter(forgetting=1.1),
            r"forgetting must be in \[0, 1\], got 1.1",
        ),
        (lambda: GammaFilter(forgetting=np.nan), "forgetting must be in"),
        (lambda: GammaFilter(shape=0.0), "shape must be positive and finite, got 0.0"),
        (lambda: GammaFilter(rate=-1.0), "rate must be positive and finite, got -1.0"),
        (lambda: GammaFilter().update(True), "interval must be given"),
        (
            lambda: GammaFilter().update(True, interval=0.0),
            "interval must be positive and finite, got 0.0",
        ),
        (
            lambda: GammaFilter().update([True, False], interval=[1.0, 2.0, 3.0]),
            "shapes that broadcast",
        ),
        (
            lambda: GammaFilter(rate=[1.0, 2.0]).update(
                [True, False, True], interval=1.0
            ),
            "shapes that broadcast",
        ),
        (
            lambda: GammaFilter().update(0.5, interval=1.0),
            "changed must be boolean or 0/1",
        ),
        (
            lambda: GammaFilter(rate=2.0).update(True, interval=1.0, page=0),
            "rate must be an array with an entry for each page, before a crawl of "
            "some pages, got 2.0",
        ),
        (
            lambda: GammaFilter(shape=[1.0, 2.0]).update(True, interval=1.0, page=0),
            "rate must be an array .* got None",
        ),
        (
            lambda: GammaFilter(shape=[1.0, 2.0], rate=[1.0, 2.0, 3.0]).update(
                True, interval=1.0, page=0
            ),
            "shape and rate must have shapes that broadcast",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_update_changes_nothing():
    filter_ = GammaFilter()
    before = filter_.update([True, False], interval=1.0).copy()
    for bad in (
        {"changed": [True, False, True], "interval": 1.0},
        {"changed": True, "interval": np.nan},
        {"changed": [[True, False]] * 3, "interval": 1.0},
    ):
        with pytest.raises(ValueError, match="must"):
            filter_.update(**bad)
    np.testing.assert_array_equal(filter_.estimate, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"page": 3}, "page must be at least 0 and below 3, got 3"),
        ({"page": [0, -1]}, r"page must be at least 0 .* got -1 at index \(1,\)"),
        ({"page": 1.0}, "page must be integers, got dtype float64"),
        ({"page": [True, False, True]}, "page must be integers, got dtype bool"),
        ({"page": [1, 2, 1]}, "page must have no index twice, got 1 twice"),
        (
            {"page": 1, "changed": [True, False]},
            "page must have no index twice, got 1 twice",
        ),
        ({"page": [0, 1], "interval": [1.0] * 3}, "changed and interval and page must"),
        ({"page": 1, "interval": 0.0}, "interval must be positive"),
    ],
)
@pytest.mark.parametrize("crawled", [False, True])
def test_a_refused_crawl_of_some_pages_changes_nothing(crawled, call, message):
    filter_ = GammaFilter(rate=[1.0, 2.0, 3.0], forgetting=0.9)
    if crawled:
        filter_.update(True, interval=1.0, page=0)
    before = copy.deepcopy(vars(filter_))
    with pytest.raises(ValueError, match=message):
        filter_.update(**{"changed": True, "interval": 1.0} | call)
    np.testing.assert_equal(vars(filter_), before)


def test_the_state_is_two_arrays():
    filter_ = GammaFilter()
    filter_.update(np.ones(1000, dtype=bool), interval=1.0)
    assert {
        name for name, value in vars(filter_).items() if np.size(value) >= 1000
    } == {"shape", "rate"}


@pytest.mark.parametrize("interval", [1e-6, 5e-4, 0.999e-3, 1.001e-3])
def test_a_change_in_a_short_interval_adds_its_time_to_rounding(interval):
    """The difference of two nearly equal numbers, here in 40 digits."""
    with localcontext() as context:
        context.prec = 40
        x = Decimal(interval)
        seen = x / (x.exp() - 1)
        wanted = float(seen * seen * x.exp() - seen)
    learner = GammaFilter(shape=[1e-9], rate=[1e-9])
    learner.update([True], interval=[interval])
    assert learner.rate[0] - 1e-9 == pytest.approx(wanted, rel=1e-7)
