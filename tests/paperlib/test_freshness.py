"""Freshness and crawl values: 120 digits, integrals, simulation, limits, errors.

`test_plain.py` compares the same functions with the plain forms.
"""

import collections
import decimal
import itertools
import math
import re
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.optimize import minimize_scalar
from scipy.special import gammainc

from paperlib import freshness
from paperlib.lemma_4 import evaluate, lemma_4, lower, reach, upper
from paperlib.signals import SignalledPages

RATES = np.geomspace(1e-6, 1e6, 25)
TIMES = {"poisson": freshness.poisson_time, "interval": freshness.interval_time}
THRESHOLDS = freshness.mean_crawl_interval, freshness.fresh_time
both = pytest.mark.parametrize("kind", TIMES)
D = decimal.Decimal


def random_pages(seed, n, ratio=10.0):
    """Pages of all recalls; false_rate up to `ratio` times the change rate."""
    rng = np.random.default_rng(seed)
    change_rate, importance = 10 ** rng.uniform(-2, 2, (2, n))
    recall = rng.choice([rng.random(n), rng.beta(0.25, 0.25, n)])
    false_rate = change_rate * ratio ** rng.uniform(-1, 1, n)
    return SignalledPages(change_rate, importance, recall, false_rate)


# ------------------------------------------------------------------ crawl rates


@both
def test_limits_order_and_units(kind):
    fresh = getattr(freshness, kind)
    assert_array_equal(fresh([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), [0.0, 1.0, 1.0])
    assert fresh(1e12, 1e-12) == pytest.approx(1e-24, rel=1e-10)
    values = fresh(RATES[:, np.newaxis], RATES)
    assert ((values > 0) & (values <= 1)).all()
    assert (np.diff(values, axis=1) >= 0).all()
    assert (np.diff(values, axis=0) <= 0).all()
    assert (freshness.interval(RATES, 1.0) >= freshness.poisson(RATES, 1.0)).all()
    assert_allclose(fresh(60 * RATES, 60.0), fresh(RATES, 1.0), rtol=1e-12)
    assert isinstance(fresh(1.0, 2.0), float)
    x = 10.0 ** np.arange(-12, -3)  # where 1 - exp(-x) would cancel
    assert_allclose(freshness.interval(x, 1.0), 1 - x / 2 + x**2 / 6, rtol=1e-12)


def test_mean_is_weighted_by_importance():
    assert freshness.mean([0.5, 1.0], [3.0, 1.0]) == 0.625
    rows = freshness.mean([[0.5, 1.0], [0.2, 0.4]], [1.0, 0.0])
    assert_array_equal(rows, [0.5, 0.2])


# --------------------------------------------------------- fresh time from a state on

CASES = [
    (1.0, 1.0), (0.3, 2.0), (40.0, 0.5), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0),
    (1e-6, 1.0), (1e6, 2.0), (3.0, 1e-9),
]  # fmt: skip


def integral(function, duration, breaks, scale):
    """Of a function that jumps at breaks and decays at a rate after them."""
    scales = np.add.outer(breaks, np.array([0, 1, 5, 20, 50]) / max(scale, 1e-300))
    borders = np.unique(np.clip(np.append(scales.ravel(), [0, duration]), 0, duration))
    accuracy = {"epsabs": 1e-18, "epsrel": 1e-12}
    return sum(quad(function, *x, **accuracy)[0] for x in itertools.pairwise(borders))


@pytest.mark.parametrize("duration", [0.2, 7.3])
@pytest.mark.parametrize("initial", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("d", "p"), CASES)
def test_fresh_time_is_an_integral(d, p, initial, duration):
    """Of eq. (4) of Upadhyay et al. (2020), and over equal intervals."""
    limit = p / (p + d) if p + d else 1.0
    expected = integral(
        lambda t: limit + (initial - limit) * np.exp(-(p + d) * t), duration, 0, p + d
    )
    found = freshness.poisson_time(d, p, duration, initial=initial)
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-14)

    def at(t, phase):
        since = (t - phase / p) % (1 / p) if p and t * p >= phase else t
        return np.exp(-d * since) * (1 if p and t * p >= phase else initial)

    for phase in (0.25, 1.0):
        crawls = (np.arange(20) + phase) / p if p else np.zeros(1)
        expected = integral(lambda t: at(t, phase), duration, [0, *crawls], d)  # noqa: B023
        found = freshness.interval_time(d, p, duration, initial=initial, phase=phase)
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("d", "p"), [*CASES[:6], (2e-3, 1.0), (1e-9, 1.0)])
def test_fresh_time_at_equal_intervals_is_the_mean_over_phases(d, p):
    phase = (np.arange(200_000) + 0.5) / 200_000
    for duration in (0.2, 0.5, 7.3):
        each = freshness.interval_time(d, p, duration, initial=0.3, phase=phase)
        found = freshness.interval_time(d, p, duration, initial=0.3)
        assert found == pytest.approx(each.mean(), rel=1e-8)


@both
def test_fresh_time_in_the_end_in_parts_and_in_other_units(kind):
    time, (d, p) = TIMES[kind], np.random.default_rng(2).lognormal(0, 1, (2, 50))
    lasting = time(d, p, [[300.0], [301.0]], initial=0.3)
    assert_allclose(np.diff(lasting, axis=0)[0], getattr(freshness, kind)(d, p), 1e-9)
    assert_allclose(time(d / 60, p / 60, 60 * 7.0), 60 * time(d, p, 7.0), rtol=1e-12)
    assert (time(d, p, 7.0, initial=1.0) > time(d, p, 7.0)).all()
    assert_array_equal(time(d, p, 0.0, initial=0.5), np.zeros(50))


# --------------------------------------------------------------------------- Lemma 4


def exact(tau, n, change_rate, recall, false_rate, terms=None):
    """V / mu, w and psi as printed, in 120 digits: nothing cancels."""
    with decimal.localcontext(decimal.Context(prec=120, Emin=-(10**9), Emax=10**9)):
        tau, d, lam, nu = (D(float(x)) for x in (tau, change_rate, recall, false_rate))
        alpha, gamma = (1 - lam) * d, lam * d + nu
        beta = (gamma / nu).ln() / alpha
        iota, w, psi = tau + beta * n, D(0), D(0)

        def residual(i, x):
            term = total = D(1)
            for j in range(1, i + 1):
                term *= x / j
                total += term
            return 1 - (-x).exp() * total

        for i in range(min(int(iota / beta) + 1, terms or 10**9)):
            rest = iota - i * beta
            more = residual(i, gamma * rest) / gamma
            psi += more
            w += nu**i / (d + nu) ** (i + 1) * residual(i, (alpha + gamma) * rest)
            if more < D("1e-40") * psi:
                break
        return float(w - (-alpha * iota).exp() * psi), float(w), float(psi)


def test_lemma_4_where_the_limit_of_many_signals_is_not_yet_exact():
    """There Wald's identity is off by up to 2e-10: too few signals have come."""
    for recall in (0.5, 0.6, 0.7):
        page = SignalledPages(1.0, 1.0, recall, 0.1)
        beta = float(page.beta[0])
        tau = 8.2 * (1 + float(page.gamma[0]) * beta) * beta
        _, w, psi = exact(tau, 0, 1.0, recall, 0.1)
        assert freshness.fresh_time(tau, page)[0] == pytest.approx(w, rel=1e-12)
        found = freshness.mean_crawl_interval(tau, page)[0]
        assert found == pytest.approx(psi, rel=1e-12)


@pytest.mark.parametrize("small", [1.0, 1e-3, 1e-6])
def test_lemma_4_in_120_digits(small):
    """Relative errors, also where w and exp(-alpha iota) psi nearly cancel."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        d, recall, tau = 10 ** rng.uniform(-2, 2), rng.random(), rng.exponential(3)
        nu, tau = d * 10 ** rng.uniform(-2, 1), small * tau / d
        n, terms = int(rng.choice([0, 0, 1, 3, 8])), rng.choice([None, 1, 2, 3])
        page = SignalledPages(d, 1.0, recall, nu)
        value, _, _ = exact(tau, n, d, recall, nu, terms)
        found = freshness.crawl_value(tau, n, page, terms=terms)[0]
        assert found == pytest.approx(value, rel=1e-11)
        _, w, psi = exact(tau, 0, d, recall, nu)
        assert freshness.fresh_time(tau, page)[0] == pytest.approx(w, rel=1e-12)
        found = freshness.mean_crawl_interval(tau, page)[0]
        assert found == pytest.approx(psi, rel=1e-12)


def test_wald_s_identity_takes_over_from_the_sums():
    """`terms` that are many, but not all, leave it out."""
    pages = random_pages(4, 300, ratio=100.0)
    most = np.minimum(20 / pages.alpha, 300 / pages.gamma)
    for iota in np.linspace(0.02, 1, 50)[:, np.newaxis] * most:
        value = freshness.crawl_value(iota, 0, pages)
        sums = freshness.crawl_value(iota, 0, pages, terms=10**6)
        assert_allclose(value, sums, rtol=3e-11)
    # 2,000 signals are expected: exp(-2000) is 0 in floating point, the sums are not
    page = SignalledPages(1.0, 1.0, recall=0.5, false_rate=1000.0)
    sums = freshness.crawl_value(2.0, 0, page, terms=10**5)
    assert_allclose(freshness.crawl_value(2.0, 0, page), sums, rtol=3e-11)


def test_cycles_of_the_true_process():
    """Time between crawls and fresh time of simulated changes and signals."""
    rng, n, most = np.random.default_rng(6), 20_000, 80
    for d, recall, nu, iota in [(0.7, 0.5, 0.3, 3.0), (1.0, 0.8, 1.0, 2.0)]:
        page = SignalledPages(d, 1.0, recall, nu)
        signals = np.cumsum(rng.exponential(1 / page.gamma, (n, most)), axis=1)
        # with k signals a crawl is due at iota - beta k, when the k-th has come
        came = np.column_stack([np.zeros(n), signals])
        length = np.maximum(came, iota - page.beta * np.arange(most + 1)).min(axis=1)
        true = np.where(rng.random((n, most)) < page.precision, signals, np.inf)
        change = np.minimum(true.min(axis=1), rng.exponential(1 / page.alpha, n))
        fresh = np.minimum(change, length)
        for function, sample in zip(THRESHOLDS, (length, fresh), strict=True):
            error = 5 * sample.std() / np.sqrt(n)
            assert sample.mean() == pytest.approx(function(iota, page)[0], abs=error)


def test_special_pages():
    """No signals; all of them true; all changes signalled; none that says anything."""
    elapsed, n = np.geomspace(1e-6, 30, 40), np.arange(6)
    silent = SignalledPages(0.7, 2.0, 0.0, [0.0, 0.4])
    expected = 2 / 0.7 * gammainc(2, 0.7 * elapsed)
    for page in freshness.crawl_value(elapsed[:, np.newaxis], 0, silent).T:
        assert_allclose(page, expected, rtol=1e-12)
    assert_array_equal(freshness.mean_crawl_interval(3.0, silent), 3.0)
    sure = SignalledPages(0.7, 2.0, 0.7, 0.0)
    assert_array_equal(freshness.crawl_value(0.1, [[1], [9]], sure), [[2 / 0.7]] * 2)
    # recall 1: the value of n signals, whatever the time; 0 without any
    announced, q = SignalledPages(0.7, 2.0, 1.0, 0.3), 0.3
    expected = 2 * ((1 - q**n) / 0.7 - q**n * n)
    for tau in (0.0, 1.0, 1e6):
        found = freshness.crawl_value(tau, n[:, np.newaxis], announced)[:, 0]
        assert_allclose(found, expected, rtol=1e-12)
    assert freshness.crawl_value(5.0, 0, announced)[0] == 0
    found = freshness.mean_crawl_interval(3.0, announced)
    assert_allclose(found, -np.expm1(-3.0), rtol=1e-14)
    # false signals that are nearly all: as without signals, at the rate alpha
    many = SignalledPages(1.0, 1.0, 0.4, 1e9)
    found = freshness.crawl_value([[0.1], [1.0], [9.0]], 0, many)[:, 0]
    assert_allclose(found, gammainc(2, 0.6 * np.array([0.1, 1.0, 9.0])), rtol=1e-7)


def test_limits_and_pages_without_value():
    pages = SignalledPages(
        [0.7, 0.7, 0.7, 0.7, 0.7, 0.0, 0.7], [2.0] * 6 + [0.0],
        [0.0, 0.5, 0.5, 1.0, 1e-7, 0.5, 0.5], [0.0, 0.0, 0.3, 0.3, 0.3, 0.3, 0.3],
    )  # fmt: skip
    limit = np.array([2 / 0.7] * 5 + [0.0] * 2)
    for elapsed in (1e12, np.inf):
        value = freshness.crawl_value(elapsed, 60, pages)
        assert_allclose(value, limit, rtol=1e-13)
    assert_array_equal(freshness.crawl_value(0.0, 0, pages), 0)
    never = freshness.mean_crawl_interval(np.inf, pages)
    assert_array_equal(never, np.inf)
    expected = [1 / 0.7] * 5 + [np.inf, 1 / 0.7]
    assert_allclose(freshness.fresh_time(np.inf, pages), expected, rtol=1e-14)
    for function in THRESHOLDS:
        assert_array_equal(function(0.0, pages), 0)
    assert freshness.fresh_time(3.0, pages)[5] == 3.0
    # APPROX-j misses a power of the share of false signals
    for j in (1, 2, 3):
        found = freshness.crawl_value(np.inf, 0, pages, terms=j)[2]
        assert found == pytest.approx(2 / 0.7 * (1 - 0.3**j), rel=1e-13)


def long_run_cost(log_interval, price, change_rate, importance, return_rate=0.0):
    """Cost a time of a page that is crawled at equal intervals: crawls, staleness.

    A Markov chain: the page leaves the content of the copy at the change rate, and
    goes back to it at the return rate.
    """
    interval = math.exp(log_interval)
    chain = np.zeros((4, 4))  # the exponential has the time in each state at the right
    chain[:2, :2] = [[-change_rate, change_rate], [return_rate, -return_rate]]
    chain[:2, 2:] = np.eye(2)
    stale = expm(chain * interval)[0, 3]
    return (price + importance * stale) / interval


PAGES = [(1.0, 1.0), (0.02, 3.0), (40.0, 0.5)]  # change rate, importance


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_the_crawl_value_is_the_whittle_index(page, share):
    """It equals the price of a crawl at the end of the interval of least cost."""
    change_rate, importance = page
    price = share * importance / change_rate
    bounds = np.log(np.array([1e-3, 1e3]) / change_rate)
    options = {"bounds": bounds, "options": {"xatol": 1e-12}}
    best = minimize_scalar(long_run_cost, args=(price, *page), **options).x
    value = freshness.crawl_value(math.exp(best), 0, SignalledPages(*page))
    assert_allclose(value, price, rtol=1e-6)


@pytest.mark.parametrize("page", PAGES)
def test_no_crawl_is_worth_more_than_the_limit_of_the_whittle_index(page):
    """At a higher price the cost falls with the interval: never to crawl is best."""
    change_rate, importance = page
    interval = np.geomspace(1e-3, 1e3, 200) / change_rate
    cost = [
        long_run_cost(w, 1.001 * importance / change_rate, *page)
        for w in np.log(interval)
    ]
    assert (np.diff(cost) < 0).all()


@pytest.mark.parametrize("return_rate", [0.1, 5.0])
@pytest.mark.parametrize("page", PAGES)
def test_pages_that_change_back_are_pages_of_other_parameters(page, return_rate):
    """Their index is that of both rates together, and of a share of the importance."""
    change_rate, importance = page
    both = change_rate + return_rate
    as_usual = SignalledPages(both, importance * change_rate / both)
    price = 0.3 * as_usual.importance.item() / both
    bounds = np.log(np.array([1e-3, 1e3]) / both)
    options = {"bounds": bounds, "options": {"xatol": 1e-12}}
    best = minimize_scalar(long_run_cost, args=(price, *page, return_rate), **options)
    value = freshness.crawl_value(math.exp(best.x), 0, as_usual)
    assert_allclose(value, price, rtol=1e-6)


@pytest.mark.parametrize("recall", [0.1, 0.9, 0.999, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("ratio", [1e4, 1e6, 1e9])
def test_work_is_bounded_whatever_the_rate_of_false_signals(recall, ratio):
    page, start = SignalledPages(1.0, 1.0, recall, ratio), time.process_time()
    elapsed = np.append(np.geomspace(1e-9, 1e5, 20), np.inf)[:, np.newaxis]
    value = freshness.crawl_value(elapsed, 0, page)[:, 0]
    more = freshness.crawl_value(1.0, np.geomspace(1, 1e12, 20)[:, np.newaxis], page)
    lasting = [function(elapsed, page)[:, 0] for function in THRESHOLDS]
    assert time.process_time() - start < 20  # some 0.2 s
    for rising in (value, more[:, 0], *lasting):
        assert (rising[1:] >= rising[:-1] * (1 - 1e-9)).all()
    assert value[-1] == pytest.approx(1.0, rel=1e-12)


def test_order_units_and_shapes():
    pages, rng = random_pages(7, 60), np.random.default_rng(8)
    elapsed, n = rng.exponential(1, (4, 60)) / pages.change_rate, rng.integers(0, 5, 60)
    value = freshness.crawl_value(elapsed, n, pages)
    order = rng.permutation(60)
    names = "change_rate", "importance", "recall", "false_rate"
    moved = SignalledPages(*(getattr(pages, name)[order] for name in names))
    found = freshness.crawl_value(elapsed[:, order], n[order], moved)
    assert_array_equal(found, value[:, order])
    rates = {name: 24 * getattr(pages, name) for name in names[::3]}
    days = SignalledPages(importance=3 * pages.importance, recall=pages.recall, **rates)
    found = freshness.crawl_value(elapsed / 24, n, days)
    assert_allclose(found, value / 8, rtol=1e-11)
    for function in THRESHOLDS:
        rows = function(elapsed, pages)
        assert_allclose(24 * function(elapsed / 24, days), rows, rtol=1e-11)
    assert (freshness.crawl_value(1.01 * elapsed, n, pages) >= value).all()
    assert (freshness.crawl_value(elapsed, n + 1, pages) >= value * (1 - 1e-12)).all()
    terms = [freshness.crawl_value(elapsed, n, pages, terms=j) for j in (1, 2, 3, 500)]
    assert (np.diff(terms, axis=0) >= -1e-12 * value).all()
    assert_allclose(terms[-1], value, rtol=1e-11)


# ----------------------------------------------------------------------------- errors

PAGES = SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: freshness.poisson(-1.0, 1.0),
         "change_rate must be non-negative and finite, got -1.0"),
        (lambda: freshness.interval([1.0, np.nan], 1.0),
         "change_rate must be non-negative and finite, got nan at index (1,)"),
        (lambda: freshness.mean([1.0, 1.0], [0.0, 0.0]),
         "importance must be positive for at least one page, got 0.0"),
        (lambda: freshness.crawl_value(-1.0, 0, PAGES),
         "elapsed must be non-negative, got -1.0"),
        (lambda: freshness.crawl_value([1.0, np.nan], 0, PAGES),
         "elapsed must be non-negative, got nan at index (1,)"),
        (lambda: freshness.crawl_value(1.0, 0, PAGES, terms=0),
         "terms must be an integer of at least 1, got 0"),
        (lambda: freshness.mean_crawl_interval(-1.0, PAGES),
         "threshold must be non-negative, got -1.0"),
        (lambda: freshness.poisson_time(1.0, 1.0, -5.0),
         "duration must be non-negative and finite, got -5.0"),
        (lambda: freshness.interval_time(1.0, 1.0, [1.0, np.nan]),
         "duration must be non-negative and finite, got nan at index (1,)"),
        (lambda: freshness.poisson_time(1.0, 1.0, np.inf),
         "duration must be non-negative and finite, got inf"),
        (lambda: freshness.poisson_time(1.0, 1.0, 5.0, initial=7.0),
         "initial must be in [0, 1], got 7.0"),
        (lambda: freshness.interval_time(1.0, 1.0, 5.0, phase=1.5),
         "phase must be in [0, 1], got 1.5"),
        (lambda: freshness.probability(-1.0, 0, PAGES),
         "elapsed must be non-negative and finite, got -1.0"),
    ],
)  # fmt: skip
def test_refuses(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_walds_identity_is_used_only_where_it_is_exact():
    """Against the sums, in which a number of terms turns the identity off."""
    rng = np.random.default_rng(4)
    false_rate, alpha, signalled = 10 ** rng.uniform(-1, 2, (3, 2000))
    gamma = signalled + false_rate
    beta = np.log(gamma / false_rate) / alpha
    step = gamma * beta
    # around the number of signals from which on the identity is used
    iota = 8 * step * (1 + step) ** rng.uniform(0.5, 2.5, 2000) / gamma
    for i in np.flatnonzero((alpha * iota > 0.1) & (gamma * iota < 5000)):
        rates = alpha[i] + signalled[i], false_rate[i], alpha[i], gamma[i], beta[i]
        exact = lemma_4(iota[i], *rates, 1e6)
        assert_allclose(lemma_4(iota[i], *rates, np.inf), exact, rtol=1e-11)


Page = collections.namedtuple(
    "Page", "importance change_rate false_rate alpha gamma beta limit stale"
)
State = collections.namedtuple("State", "value slope curve decay limit")


def test_the_bounds_from_a_state_enclose_the_crawl_value():
    """The state is the value with its derivative, and `reach` inverts `upper`."""
    rng = np.random.default_rng(5)
    for x in rng.exponential(1.5, 60):
        pages = random_pages(rng, 1)
        iota = float(x / pages.alpha[0])
        limit = float(pages.importance[0] / pages.change_rate[0])
        rates = [float(getattr(pages, name)[0]) for name in Page._fields[:-2]]
        page = Page(*rates, limit, stale=math.inf)
        state = State(*evaluate(page, iota, math.inf), limit)
        times = iota * (1 + np.array([0, -1e-5, 1e-5, -0.9, -0.3, -0.01, 0.01, 0.3, 2]))
        value = [freshness.crawl_value(time, 0, pages)[0] for time in times]
        slope = (value[2] - value[1]) / (times[2] - times[1])
        assert state[:2] == pytest.approx([value[0], slope], rel=1e-6)
        for d, true in zip(times[3:] - iota, value[3:], strict=True):
            bound = upper(state, d)
            assert lower(state, d) <= true * (1 + 1e-11)
            assert true <= bound * (1 + 1e-11)
            if d > 0 and bound < limit:
                assert reach(state, bound) == pytest.approx(d, rel=1e-9)
