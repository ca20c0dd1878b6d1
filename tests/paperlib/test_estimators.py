"""Estimators of change rates, against closed forms, plain forms and other programs."""

import itertools
import re
import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from paperlib.errors import DegenerateHistoryWarning
from paperlib.estimators import (
    LLN,
    SA,
    SAM,
    Naive,
    bias_reduced,
    log_likelihood,
    mle,
    mle_path,
    moment_matching,
    naive,
    path,
    paths,
    rmse,
)
from paperlib.processes import History, simulate_history
from tests import plain

BATCH = {"naive": naive, "mle": mle, "moment_matching": moment_matching}
each_batch = pytest.mark.parametrize("estimator", BATCH.values(), ids=BATCH)
each_root = pytest.mark.parametrize("estimator", [mle, moment_matching])


def irregular(seed, n_pages=12, spread=1.0):
    """Pages of 3 to 30 crawls, none degenerate; `spread` in decades either way."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 31, n_pages)
    interval = 10.0 ** rng.uniform(-spread, spread, sizes.sum())
    changed = [rng.permutation(np.arange(n) < rng.integers(1, n)) for n in sizes]
    return History(interval, np.concatenate(changed), np.append(0, np.cumsum(sizes)))


def pages(history):
    """Intervals and bits of each page of a ragged history."""
    parts = [
        np.split(x, history.offsets[1:-1]) for x in (history.interval, history.changed)
    ]
    return list(zip(*parts, strict=True))


def quiet(estimator, *arguments, **options):
    """The estimate without the warning of degenerate pages."""
    with warnings.catch_warnings(action="ignore", category=DegenerateHistoryWarning):
        return estimator(*arguments, **options)


def one_page_histories():
    """Moderate, extreme, equal intervals, one crawl, no change, only changes."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        w = rng.exponential(1 / 3, rng.integers(2, 60))
        yield w, rng.random(w.size) < plain.predicted_probability(5.0, w)
    for _ in range(30):  # intervals over ten powers of ten, any bits
        w = 10 ** rng.uniform(-5, 5, rng.integers(2, 12))
        yield w, rng.random(w.size) < 0.5
    for n_changed in range(6):
        yield np.full(5, 0.7), np.arange(5) < n_changed
    for n in range(7, 120, 7):  # 49 / 49 is not 1 by a reciprocal
        yield rng.exponential(size=n), np.zeros(n, dtype=bool)
    for scale, bit in itertools.product((1e-9, 1.0, 1e9), (False, True)):
        yield np.array([scale]), np.array([bit])
        yield scale * np.array([0.1, 1.0, 3.0]), np.full(3, bit)


# ---------------------------------------------------------- from a whole history


@pytest.mark.parametrize(
    ("n", "k", "w"),
    [(2, 1, 1.0), (10, 3, 0.2), (50, 49, 7.0), (1000, 1, 1e-6), (1000, 999, 1e6)],
)
def test_equal_intervals_have_closed_forms(n, k, w):
    history = History(np.full(n, w), np.arange(n) < k)
    root = np.log(n / (n - k)) / w
    reduced = -np.log((n - k + 0.5) / (n + 0.5)) / w
    found = [f(history) for f in (mle, moment_matching, naive, bias_reduced)]
    assert_allclose(found, [root, root, k / (n * w), reduced], rtol=1e-10)


@pytest.mark.parametrize("x", [1.0, 10.0, 20.0])
def test_mle_of_pages_that_change_many_times_between_crawls(x):
    # n changed crawls at interval 1 and one unchanged of length e: the equation is
    # n / (exp(rate) - 1) = e
    e, n = np.exp(-x), np.arange(1, 300)
    sizes = np.append(0, np.cumsum(n + 1))
    interval = np.concatenate([np.append(e, np.ones(k)) for k in n])
    history = History(interval, ~np.isin(np.arange(interval.size), sizes), sizes)
    assert_allclose(mle(history), np.log1p(n / e), rtol=1e-10)


@pytest.mark.parametrize("spread", [1.0, 3.0, 6.0])
def test_estimates_solve_their_equations(spread):
    history = irregular(1, n_pages=300, spread=spread)
    likely, matched = mle(history), moment_matching(history)
    for (w, z), a, b in zip(pages(history), likely, matched, strict=True):
        f = w[z] * np.exp(-a * w[z]) / -np.expm1(-a * w[z])
        assert f.sum() / w[~z].sum() == pytest.approx(1, abs=1e-10)
        assert np.exp(-b * w).sum() == pytest.approx((~z).sum(), abs=1e-10)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (naive, plain.naive),
        (mle, plain.mle),
        (partial(mle, substitute=True), plain.mle_substitute),
        (moment_matching, plain.moment_matching),
    ],
)
def test_estimates_are_the_plain_ones(estimator, expected):
    for w, z in one_page_histories():
        assert_allclose(quiet(estimator, History(w, z)), expected(w, z), rtol=1e-10)


def test_bias_reduced_is_the_plain_form_also_at_the_edges():
    rng = np.random.default_rng(2)
    for n, w in ((1, 2.0), (2, 1e-6), (7, 0.3), (500, 1e6)):
        for k in {0, n // 3, n}:
            z = rng.permutation(n) < k
            found = bias_reduced(History(np.full(n, w), z))
            assert found == pytest.approx(plain.bias_reduced(w, z), rel=1e-12)


def test_a_page_without_crawls_has_no_estimate():
    history = History([1.0, 2.0], [True, False], [0, 0, 2])
    for estimator in (naive, bias_reduced, mle, moment_matching):  # and no warning
        assert_array_equal(np.isnan(estimator(history)), [True, False])


def test_log_likelihood_is_that_of_censored_exponential_times():
    history = irregular(3, n_pages=40)
    rate = np.random.default_rng(3).uniform(0.1, 5, 40)
    found = log_likelihood(history, rate)
    for i, (w, z) in enumerate(pages(history)):
        time = stats.expon(scale=1 / rate[i])
        expected = time.logcdf(w[z]).sum() + time.logsf(w[~z]).sum()
        assert found[i] == pytest.approx(expected, rel=1e-12)
        assert found[i] == pytest.approx(plain.log_likelihood(rate[i], w, z), rel=1e-12)
    best = mle(history)
    at = [log_likelihood(history, best * x) for x in (0.99, 1.0, 1.01)]
    assert (at[1] > np.maximum(at[0], at[2])).all()
    never = History([[1.0, 2.0], [1.0, 2.0]], [[0, 0], [0, 1]])
    assert log_likelihood(never, 0.0).tolist() == [0.0, -np.inf]


def test_mle_agrees_with_the_censored_fit_of_scipy():
    history = irregular(5)
    for (w, z), rate in zip(pages(history), mle(history), strict=True):
        data = stats.CensoredData(left=w[z], right=w[~z])
        _, scale = stats.expon.fit(data, floc=0, scale=1.2 / rate)
        assert rate * scale == pytest.approx(1, abs=1e-3)  # its search stops there


@each_batch
def test_ragged_and_dense_forms_agree(estimator):
    history = irregular(7)
    alone = [estimator(History(w, z)) for w, z in pages(history)]
    assert_allclose(estimator(history), alone, rtol=1e-12)
    rates = np.geomspace(0.5, 5, 6).reshape(2, 3)
    dense = simulate_history(rates, crawl_rate=1.0, n_crawls=40, rng=8)
    assert estimator(dense).shape == (2, 3)
    flat = estimator(History(*dense.ragged()))
    assert_allclose(flat.reshape(2, 3), estimator(dense), rtol=1e-12)


@each_batch
@pytest.mark.parametrize("unit", [1e-9, 24.0, 1e9])
def test_another_unit_of_time_rescales_rates(estimator, unit):
    history = irregular(13)
    there = History(history.interval * unit, history.changed, history.offsets)
    assert_allclose(estimator(there) * unit, estimator(history), rtol=1e-10)


@each_batch
def test_order_of_pages_and_of_crawls_does_not_matter(estimator):
    rates, rng = np.geomspace(0.5, 3, 9), np.random.default_rng(14)
    history = simulate_history(rates, crawl_rate=1.0, n_crawls=50, rng=15)
    found, order, crawls = estimator(history), rng.permutation(9), rng.permutation(50)
    shuffled = History(history.interval[order], history.changed[order])
    assert_array_equal(estimator(shuffled), found[order])
    turned = History(history.interval[:, crawls], history.changed[:, crawls])
    assert_allclose(estimator(turned), found, rtol=1e-10)


NEVER, ALWAYS, ONCE = [0, 0, 0], [1, 1, 1], [0, 1, 0]


@each_root
@pytest.mark.parametrize(
    ("changed", "expected", "n_degenerate"),
    [
        ([NEVER], [0.0], 1),
        ([ALWAYS], [np.inf], 1),
        ([NEVER, ONCE, ALWAYS], [0.0, np.log(1.5), np.inf], 2),
        ([ONCE, ONCE], [np.log(1.5)] * 2, 0),
    ],
)
def test_degenerate_pages_warn_and_get_the_edge(
    estimator, changed, expected, n_degenerate
):
    history = History(np.ones((len(changed), 3)), changed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_allclose(estimator(history), expected, rtol=1e-10)
    texts = [str(each.message) for each in caught]
    start = f"{n_degenerate} of {len(changed)} pages changed at no crawl"
    assert [text[: len(start)] for text in texts] == [start] * bool(n_degenerate)
    assert {each.filename for each in caught} <= {__file__}, "it points at the caller"


def test_substitutes_come_without_a_warning():
    interval = [2.0, 1.0, 5.0]
    history = History([interval] * 3, [NEVER, ALWAYS, ONCE])
    likely = mle(History(interval, ONCE))
    assert_allclose(mle(history, substitute=True), [1 / 8, 1.0, likely], rtol=1e-12)


def test_a_root_that_rounding_hides_is_not_searched_for_without_end():
    wide = History([1e-7, 1e6, 1e5], [True, False, True])  # 13 decades
    assert not moment_matching(wide) < 0.0
    assert mle(wide) == pytest.approx(plain.mle(wide.interval, wide.changed))


def test_pages_without_crawls_are_nan():
    history = History([1.0, 2.0, 1.0, 3.0], [0, 1, 1, 0], [0, 0, 2, 2, 4, 4])
    empty = np.array([True, False, True, False, True])
    calls = *BATCH.values(), partial(mle, substitute=True)
    with np.errstate(invalid="ignore"):
        for estimator in (*calls, bias_reduced):
            assert_array_equal(np.isnan(estimator(history)), empty)
    assert_array_equal(log_likelihood(history, 1.0) == 0, empty)


# ------------------------------------------------------------------------ online


def plain_naive(z, p):
    return p * np.cumsum(z) / np.arange(1, len(z) + 1)


def plain_lln(z, p, alpha=lambda k: 1.0):
    return plain.lln(z, p[0], alpha)


def plain_sa(z, p, gamma=0.75, y=0.0):
    return plain.sa(z, p, lambda k: (k + 1.0) ** -gamma, y)


def plain_sam(z, p, eta=1.3, beta=0.75, *start):
    powers = [lambda k, x=x: (k + 1.0) ** -x for x in (eta, beta)]
    return plain.sam(z, p, *powers, *start)


GIVEN = {"step": 0.8, "momentum": 0.5, "omega": 1.7, "initial": 3.0}
# the estimator at a crawl rate, and its plain form from bits and the crawls' rates
ONLINE = {
    "naive": (Naive, plain_naive),
    "lln": (LLN, plain_lln),
    "lln-sqrt": (partial(LLN, offset=np.sqrt), partial(plain_lln, alpha=np.sqrt)),
    "sa": (SA, plain_sa),
    "sa-1": (partial(SA, step=1.0, initial=2.0), partial(plain_sa, gamma=1.0, y=2.0)),
    "sam": (SAM, plain_sam),
    "sam-given": (partial(SAM, **GIVEN), lambda z, p: plain_sam(z, p, *GIVEN.values())),
    "sam-sa": (partial(SAM, step=0.6, momentum=0.6), partial(plain_sa, gamma=0.6)),
}
each_online = pytest.mark.parametrize("name", ONLINE)


@each_online
@pytest.mark.parametrize("crawl_rate", [1e-6, 3.0, 1e6])
def test_online_paths_are_the_plain_recursions(name, crawl_rate):
    make, recursion = ONLINE[name]
    draws = np.random.default_rng(5).random((3, 200)) < [[0.05], [0.5], [0.98]]
    bits = np.vstack([np.zeros(200), np.ones(200), draws])  # no change, all changes
    found = path(make(crawl_rate), History(np.ones(bits.shape), bits))
    for z, mine in zip(bits.astype(bool), found, strict=True):
        expected = recursion(z, np.full(200, crawl_rate))
        # 200 steps of rounding, relative to the largest iterate on the way
        assert_allclose(mine, expected, rtol=1e-12, atol=1e-12 * abs(expected).max())


@each_online
def test_path_is_update_after_update_of_a_copy(name):
    rates = np.array([1.0, 2.0, 5.0])
    history = simulate_history(rates, crawl_rate=3.0, n_crawls=30, n_runs=2, rng=4)
    estimator = ONLINE[name][0](rates)  # a crawl rate for each page
    whole = path(estimator, history)
    for k in range(30):
        assert_array_equal(estimator.update(history.changed[..., k]), whole[..., k])
    for i, rate in enumerate(rates):  # each page is alone
        one = History(history.interval[:, i], history.changed[:, i])
        assert_allclose(path(ONLINE[name][0](rate), one), whole[:, i], rtol=1e-12)
    order = np.array([2, 0, 1])
    turned = History(history.interval[:, order], history.changed[:, order])
    assert_array_equal(path(ONLINE[name][0](rates[order]), turned), whole[:, order])


@pytest.mark.parametrize("make", [Naive, LLN])
def test_counts_restart_for_the_pages_whose_crawl_rate_is_new(make):
    old, new = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 3.0])
    bits = np.random.default_rng(9).random((40, 3)) < 0.6
    estimator, unmoved, fresh = make(old), make(old), make(5.0)
    for row in bits[:20]:
        assert_array_equal(estimator.update(row, crawl_rate=old), unmoved.update(row))
    for row in bits[20:]:
        expected = unmoved.update(row)
        expected[1] = fresh.update(row[1])
        assert_array_equal(estimator.update(row, crawl_rate=new), expected)


@pytest.mark.parametrize("name", ["sa", "sa-1", "sam", "sam-given"])
def test_steps_go_on_under_a_new_crawl_rate(name):
    make, recursion = ONLINE[name]
    rng = np.random.default_rng(6)
    bits, p = rng.random(60) < 0.6, np.repeat(rng.uniform(1, 9, 6), 10)
    estimator = make(p[0])
    found = [estimator.update(z, crawl_rate=r) for z, r in zip(bits, p, strict=True)]
    assert_allclose(found, recursion(bits, p), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 60.0, 1e9])
@pytest.mark.parametrize("make", [Naive, LLN, SA, SAM])
def test_another_unit_of_time_rescales_online_estimates(make, unit):
    history = simulate_history(5.0, crawl_rate=3.0, n_crawls=200, rng=12)
    there = path(make(3.0 / unit), history) * unit
    assert_allclose(there, path(make(3.0), history), rtol=1e-10)


# ----------------------------------------------------------------- exact moments


@each_online
@pytest.mark.parametrize(
    ("change_rate", "crawl_rate"), [(5.0, 3.0), (0.02, 3.0), (500.0, 10.0), (0.0, 3.0)]
)
def test_moments_are_the_mean_over_all_sequences_of_bits(name, change_rate, crawl_rate):
    make, recursion = ONLINE[name]

    def estimate(bits):
        return recursion(np.array(bits, bool), np.full(len(bits), crawl_rate))

    found = make(crawl_rate).moments(change_rate, [1, 9, 2])
    for n, mine in zip([1, 9, 2], found.T, strict=True):
        expected = plain.online_moments(estimate, change_rate, crawl_rate, n)
        assert_allclose(mine, expected, rtol=1e-10, atol=1e-10 * (change_rate or 1))


@pytest.mark.slow
@each_online
@pytest.mark.parametrize(("change_rate", "crawl_rate"), [(5.0, 3.0), (500.0, 10.0)])
def test_moments_agree_with_simulation(name, change_rate, crawl_rate):
    options = {"n_crawls": 100, "n_runs": 10_000, "rng": 8}
    history = simulate_history(change_rate, crawl_rate=crawl_rate, **options)
    estimator, k = ONLINE[name][0](crawl_rate), np.array([1, 10, 100])
    error = path(estimator, history)[:, k - 1] - change_rate
    bias, root = estimator.moments(change_rate, k)
    for values, expected in ((error, bias), (error**2, root**2)):
        limit = 5 * values.std(axis=0) / 100  # five standard errors
        assert (np.abs(values.mean(axis=0) - expected) < limit).all()


def decay(estimator, change_rate):
    """Exponents with which bias and RMSE fall from 300 to 3,000 crawls."""
    return -np.diff(np.log10(np.abs(estimator.moments(change_rate, [300, 3000]))))


def test_errors_fall_as_the_docstrings_say():
    # with gamma = 1, and beta = 1, as k^-a with a = p / (Delta + p) below 1/2
    for estimator in (SA(10.0, step=1.0), SAM(10.0, step=1.6, momentum=1.0)):
        assert_allclose(decay(estimator, 500.0), 10 / 510, rtol=1e-3)
    assert decay(SA(3.0, step=1.0), 5.0)[0] == pytest.approx(3 / 8, rel=1e-3)
    # the root mean square falls at the rates of the theorems
    sam = SAM(3.0, step=0.8, momentum=0.6)
    for estimator, rate in ((LLN(3.0), 0.5), (SA(3.0, step=0.6), 0.3), (sam, 0.3)):
        assert decay(estimator, 5.0)[1] == pytest.approx(rate, abs=0.02)
    bias, _ = Naive(3.0).moments(5.0, [10_000])
    assert 5.0 + bias == pytest.approx(1.875)  # its limit p Delta / (p + Delta)


# ------------------------------------------- paths of estimators and of functions


class Fading:
    """Changes per unit of time, of which each crawl forgets a part."""

    changes = time = 0.0

    def __init__(self, kept):
        self.kept = kept

    def update(self, changed, *, interval=None, crawl_rate=None):
        self.changes = self.kept * self.changes + changed
        self.time = self.kept * self.time + interval
        return self.changes / self.time


def test_paths_of_estimators_and_functions_of_ones_own():
    history = simulate_history([5.0, 1.0], crawl_rate=3.0, n_crawls=20, n_runs=4, rng=1)
    found = quiet(
        paths,
        history,
        all=Fading(1.0),
        fading=Fading(0.5),
        naive=naive,
        last=lambda h: 1 / h.interval[..., -1],
        each=lambda h: 1 / h.interval,
        MLE=mle,
        whole=mle_path,
        LLN=LLN(3.0),
    )
    assert {values.shape for values in found.values()} == {(4, 2, 20)}
    assert_allclose(found["all"], found["naive"], rtol=1e-12)
    assert_array_equal(found["last"], found["each"])
    assert_allclose(found["MLE"], found["whole"], rtol=1e-10)
    for k in (0, 6, 19):
        assert_array_equal(found["MLE"][..., k], quiet(mle, history.prefix(k + 1)))
    short = History([2.0, 1.0], [True, False])
    one = quiet(paths, short, f=Fading(0.5), m=mle, n=mle_path)
    assert_allclose(one["f"], [0.5, 0.25])
    assert_allclose([one["m"], one["n"]], [[np.inf, np.log(3) / 2]] * 2)


def test_mle_path_is_the_plain_mle_after_every_crawl():
    for w, z in list(one_page_histories())[:40]:
        expected = [plain.mle(w[:k], z[:k]) for k in range(1, len(z) + 1)]
        assert_allclose(mle_path(History(w, z)), expected, rtol=1e-10)


def test_mle_path_starts_from_the_root_before_on_either_side_of_the_next():
    # after a long unchanged interval the root falls by a factor of 10^6, and
    # after short changed ones it rises as far: Newton starts far above and below
    w = np.array([1e-3, 2e-3, 1e-3, 1e3, 1e-6, 2e-6, 1e-6, 1e-7, 1e6, 1.0])
    z = np.array([1, 0, 1, 0, 1, 1, 1, 1, 0, 1], dtype=bool)
    expected = [plain.mle(w[:k], z[:k]) for k in range(1, len(z) + 1)]
    assert_allclose(mle_path(History(w, z)), expected, rtol=1e-10)


def test_mle_path_of_pages_with_their_own_numbers_of_crawls():
    history = History([1.0, 2.0, 1.0, 3.0], [True, False, False, True], [0, 3, 3, 4])
    expected = [np.inf, np.log(3 / 2), np.log(4 / 3), np.inf]
    assert_allclose(mle_path(history), expected, rtol=1e-10)


def test_rmse_is_over_the_runs():
    runs = {"a": np.array([[4.0, 2.0], [0.0, 2.0]]), "b": np.full((2, 2), 3.0)}
    found = rmse(runs, 1.0)
    assert_allclose(found["a"], [np.sqrt(5), 1.0], rtol=1e-12)
    assert_allclose(found["b"], 2.0, rtol=1e-12)


# --------------------------------------------------------------------- bad input
UPDATES = "estimator must be a function, or an object with `update`, got"
FOUR = History(np.ones((4, 2)), np.zeros((4, 2)))
GOOD, RAGGED = History([1.0, 2.0, 1.0], ONCE), History(np.ones(3), ONCE, [0, 1, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_likelihood(GOOD, -1.0), "change_rate must be non-negative"),
        (lambda: LLN([1.0, 0.0]), "crawl_rate must be positive and finite, got 0.0 at"),
        (lambda: Naive(1.0).update([0, 2]), "changed must be boolean, or 0 and 1"),
        (lambda: SA(1.0).update([0, 2]), "changed must be boolean, or 0 and 1"),
        (lambda: LLN(1.0).update(1, crawl_rate=-2), "crawl_rate must be positive"),
        (lambda: SAM(1.0).update(1, crawl_rate=-2), "crawl_rate must be positive"),
        (lambda: LLN(1.0).moments(-1.0, [3]), "change_rate must be non-negative"),
        (lambda: path(LLN(1.0), RAGGED), "history must be without offsets"),
        (lambda: mle([]), "history must be a History, got <class 'list'>"),
        (lambda: paths([1, 0], MLE=mle), "history must be a History, got <class 'l"),
        (lambda: path(LLN, GOOD), f"{UPDATES} <class 'paperlib.estimators.online.LLN'"),
        (lambda: path(3, GOOD), f"{UPDATES} 3"),
        (lambda: path(lambda history: 5.0, FOUR), "estimates must be of shape (4, 2)"),
    ],
)
def test_refusals_name_the_argument(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_an_estimator_may_change_its_array_in_place():
    class InPlace(LLN):
        def update(self, changed, **options):
            self.array[:] = super().update(changed, **options)
            return self.array

    estimator = InPlace(2.0)
    estimator.array = np.zeros(3)
    history = simulate_history(np.ones(3), crawl_rate=2.0, n_crawls=9, rng=1)
    assert_array_equal(path(estimator, history), path(LLN(2.0), history))
