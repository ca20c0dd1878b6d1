"""The plain forms: against the fast ones, the print, and each other.

Both sides are exact up to rounding. Where a tolerance is wider, a comment says what
loses digits. Estimators, priors, regret, schedules, worlds and policies that learn
are compared with their plain forms in the files of their own; the last test sees to
it that no function is left out.
"""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import factorial
from scipy.stats import expon

from paperlib import allocation, freshness, signals
from paperlib.policies import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS
from paperlib.processes import simulate_history
from paperlib.signals import SignalledPages
from paperlib.worlds import Signals
from tests import plain


def rates(rng, size, low=-4.0, high=4.0):
    """Random rates, log-uniform over powers of ten."""
    return 10 ** rng.uniform(low, high, size)


def signalled(seed, n):
    """Parameters of a page with signals each, from moderate to extreme.

    The sums of the plain forms have some n_signals + (1 + nu / (recall Delta)) times
    alpha iota terms: recall below 1e-3 is left out.
    """
    rng = np.random.default_rng(seed)
    for k in range(n):
        d, mu = rates(rng, 2, -3, 3) if k % 2 else rng.uniform(0.1, 2, 2)
        recall = rng.choice([0.0, 1.0, 1e-3, 0.999, *rng.uniform(0.05, 0.95, 4)])
        false_rate = rng.choice([0.0, 0.1 * d, d, 30 * d])
        yield d, mu, float(recall), float(false_rate)


def one(change_rate, importance, recall, false_rate):
    """`SignalledPages` of one page."""
    return SignalledPages([change_rate], importance, recall, false_rate)


# ------------------------------------------------------------------- freshness


@pytest.mark.parametrize(
    ("fast", "form", "names"),
    [
        (freshness.poisson, plain.poisson_freshness, "dp"),
        (freshness.interval, plain.interval_freshness, "dp"),
        (
            lambda d, p, t, s: freshness.poisson_time(d, p, t, initial=s),
            plain.poisson_fresh_time,
            "dpts",
        ),
        (
            lambda d, p, t, s, u: freshness.interval_time(d, p, t, initial=s, phase=u),
            plain.interval_fresh_time,
            "dptsu",
        ),
    ],
    ids=["poisson", "interval", "poisson_time", "interval_time"],
)
def test_freshness_of_crawl_rates(fast, form, names):
    rng, n = np.random.default_rng(7), 60
    d, p = rates(rng, (2, n), -2, 2)
    t, s, u = rates(rng, n, -2, 2) / p, rng.random(n), 1 - rng.random(n)
    arguments = [{"d": d, "p": p, "t": t, "s": s, "u": u}[name] for name in names]
    expected = [form(*page) for page in zip(*arguments, strict=True)]
    # the plain integral of eq. (4) cancels where s is near the long run
    assert_allclose(fast(*arguments), expected, rtol=1e-11, atol=1e-13 * np.max(t))


def test_fresh_time_is_the_integral_of_eq_4():
    rng = np.random.default_rng(8)
    for d, p, t, s in zip(*rates(rng, (3, 10), -1, 1), rng.random(10), strict=True):
        ones = np.ones(1)
        integral = quad(lambda x: plain.utility(d, ones, p, x, s), 0, t)[0]  # noqa: B023
        assert plain.poisson_fresh_time(d, p, t, s) == pytest.approx(integral, rel=1e-9)


def test_share_of_changed_poisson_crawls_is_the_mean_over_intervals():
    for d, p in ((0.2, 3.0), (5.0, 3.0), (100.0, 3.0)):
        density = expon(scale=1 / p).pdf
        mean = quad(
            lambda w: density(w) * plain.predicted_probability(d, w),  # noqa: B023
            0,
            np.inf,
            epsabs=0,
        )[0]
        expected = plain.predicted_probability_poisson(d, p)
        assert mean == pytest.approx(expected, rel=1e-9)
        bits = simulate_history(d, crawl_rate=p, n_crawls=100_000, rng=9).changed
        error = np.sqrt(expected * (1 - expected) / bits.size)
        assert abs(bits.mean() - expected) < 5 * error


# ------------------------------------------------------ change-indicating signals


def test_parameters_of_signalled_pages():
    for d, mu, recall, false_rate in signalled(13, 60):
        if recall * d == 0:
            continue  # beta of the fast form is 0: no information
        page = one(d, mu, recall, false_rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = plain.signal_parameters(d, recall, false_rate)
        # log(gamma / nu) of the plain form loses digits at a ratio near 1
        lost = 1e-12 + 1e-15 * false_rate / (recall * d)
        found = page.alpha, page.gamma, page.precision, page.beta
        assert_allclose(np.ravel(found), expected, rtol=lost)
        alpha, gamma, precision, _ = expected
        back = plain.observed_parameters(alpha, precision, gamma)
        assert_allclose(back, (d, recall, false_rate), rtol=1e-12, atol=1e-15 * d)
        again = SignalledPages.from_precision(
            [d], mu, precision=precision, recall=recall
        )
        # 1 - precision cancels where nearly all signals are true
        assert_allclose(again.false_rate, false_rate, rtol=1e-11, atol=1e-15 * d)


def states(seed, n):
    """Pages with signals, elapsed times, and numbers of signals."""
    rng = np.random.default_rng(seed)
    for page in signalled(seed, n):
        elapsed = rng.choice([1e-4, 0.1, 1.0, 3.0, 12.0]) / page[0]
        informed = page[2] * page[0] > 0
        yield page, float(elapsed), int(rng.choice([0, 0, 1, 2, 7]) * informed)


@pytest.mark.parametrize("terms", [None, 1, 2, 3])
def test_crawl_values(terms):
    for page, elapsed, n in states(14, 200):
        d, mu, recall, false_rate = page
        if recall == 0 and terms is not None:
            continue  # without information there are no sums
        found = freshness.crawl_value(elapsed, n, one(*page), terms=terms)[0]
        expected = plain.crawl_value(elapsed, n, *page, terms)
        # the plain difference w - exp(-alpha iota) psi cancels, and log(gamma / nu)
        # loses digits: some 1e-15 of the limit for each term
        n_terms = 1 + n + (1 + false_rate / (recall * d) if recall else 1)
        slack = 1e-11 * expected + 4e-15 * mu / d * n_terms
        assert abs(found - expected) <= slack, (page, elapsed, n)


def test_special_cases_of_the_crawl_value():
    rng = np.random.default_rng(16)
    for d, mu, elapsed in rates(rng, (40, 3), -2, 2):
        silent = freshness.crawl_value(elapsed, 0, one(d, mu, 0.0, 0.0))[0]
        expected = plain.crawl_value_no_signals(elapsed, d, mu)
        assert silent == pytest.approx(expected, rel=1e-12)
        for recall, n in ((0.2, 0), (0.2, 1), (0.9, 0), (0.9, 4)):
            page = one(d, mu, recall, 0.0)
            found = freshness.crawl_value(elapsed, n, page)[0]
            expected = plain.crawl_value_no_false_signals(elapsed, n, d, mu, recall)
            # the plain difference cancels
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-15 * mu / d)


def test_mean_crawl_interval_fresh_time_and_probability():
    for (d, mu, recall, false_rate), elapsed, n in states(17, 200):
        page, known = one(d, mu, recall, false_rate), (d, recall, false_rate)
        lost = 1e-11 + 1e-15 * (false_rate / (recall * d) if recall else 0)
        for fast, form in (
            (freshness.mean_crawl_interval, plain.mean_crawl_interval),
            (freshness.fresh_time, plain.fresh_time),
        ):
            found, expected = fast(elapsed, page)[0], form(elapsed, *known)
            assert found == pytest.approx(expected, rel=lost, abs=0), (page, elapsed)
        if recall * d + false_rate > 0:
            found = freshness.probability(elapsed, n, page)[0]
            expected = plain.fresh_probability(elapsed, n, *known)
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-300)


PAGE = 0.7, 0.5, 0.3  # change rate, recall, false rate


def test_lemma_4_in_numbers():
    """Simulated: psi 1.4643 +- 0.0027, w 1.0055 +- 0.0025; and limits of V."""
    assert plain.mean_crawl_interval(3.0, *PAGE) == pytest.approx(1.4650, abs=5e-5)
    assert plain.fresh_time(3.0, *PAGE) == pytest.approx(1.0066, abs=5e-5)
    page = PAGE[0], 1.0, *PAGE[1:]
    for terms, limit in ((1, 1.0), (2, 1.3), (3, 1.39), (None, 1 / 0.7)):
        value = plain.crawl_value(200.0, 0, *page, terms)
        assert value == pytest.approx(limit, rel=1e-12)
        value = freshness.crawl_value(np.inf, 0, one(*page), terms=terms)[0]
        assert value == pytest.approx(limit, rel=1e-12)


def test_derivatives_in_the_proof_of_lemma_4():
    """w' has gamma^i, as printed, and w' = exp(-alpha iota) psi' (Lemma 3)."""
    alpha, gamma, _, beta = plain.signal_parameters(*PAGE)
    iota, step = 3.0 + 2 * beta, 1e-5
    i = np.arange(int(iota // beta) + 1)
    rest = gamma * (iota - i * beta)
    printed = np.sum(rest**i / factorial(i) * np.exp(-alpha * iota - rest))
    slope = [
        (form(iota + step, *PAGE) - form(iota - step, *PAGE)) / (2 * step)
        for form in (plain.fresh_time, plain.mean_crawl_interval)
    ]
    assert printed == pytest.approx(0.0303161, abs=5e-8)
    assert slope[0] == pytest.approx(printed, rel=1e-8)
    assert slope[0] == pytest.approx(np.exp(-alpha * iota) * slope[1], rel=1e-8)


@pytest.mark.parametrize("page", [(0.7, 2.0, 0.5, 0.3), (3.0, 0.1, 0.9, 5.0)])
def test_lemma_3_by_quadrature(page):
    """V(iota) = mu int_0^iota alpha exp(-alpha s) psi(s) ds."""
    d, mu, recall, false_rate = page
    alpha = (1 - recall) * d

    def slope(s):
        psi = plain.mean_crawl_interval(s, d, recall, false_rate)
        return mu * alpha * np.exp(-alpha * s) * psi

    for iota in (0.2, 1.0, 4.0):
        # psi has kinks at the multiples of beta, which slow quadrature down
        integral = quad(slope, 0, iota, limit=200, epsrel=1e-11)[0]
        found = plain.crawl_value(iota, 0, *page)
        assert found == pytest.approx(integral, rel=1e-8)


@pytest.mark.parametrize(
    ("page", "length"),
    [
        ((0.7, 0.5, 0.3), 1.0),
        ((2.0, 0.9, 0.1), 0.4),
        ((0.05, 0.3, 1.0), 20.0),
        ((40.0, 0.6, 5.0), 0.02),
    ],
)
def test_estimates_from_signals(page, length):
    """The maximum of the log-likelihood of appendix E, and the naive counts."""
    history, counts = signals.simulate_signalled_history(
        one(page[0], 1.0, *page[1:]), crawl_rate=1 / length, n_crawls=300, rng=19
    )
    data = history.interval[0], counts[0], history.changed[0]
    alpha, b = plain.fit_signals(*data)
    gamma = counts.sum() / history.interval.sum()
    expected = plain.observed_parameters(alpha, 1 - np.exp(-b), gamma)
    fit = signals.fit(history, counts)
    false_rate = gamma * (1 - fit.precision)
    found = np.ravel((fit.change_rate, fit.recall, false_rate))
    assert_allclose(found, expected, rtol=1e-8)
    best = plain.signal_log_likelihood(alpha, b, *data)
    for x, y in ((0.99, 1.0), (1.01, 1.0), (1.0, 0.99), (1.0, 1.01)):
        assert plain.signal_log_likelihood(x * alpha, y * b, *data) < best
    naive = np.ravel(signals.naive_precision_recall(history, counts))
    assert_allclose(naive, plain.naive_precision_recall(*data[1:]), rtol=1e-12)


def test_the_chance_of_a_change_is_eq_1():
    """Bits after some number of signals; five standard errors."""
    history, counts = signals.simulate_signalled_history(
        one(PAGE[0], 1.0, *PAGE[1:]), interval=1.3, n_crawls=100_000, rng=20
    )
    for n in range(3):
        bits = history.changed[counts == n]
        q = 1 - plain.fresh_probability(1.3, n, *PAGE)
        assert abs(bits.mean() - q) < 5 * np.sqrt(q * (1 - q) / bits.size)


# ------------------------------------------------------------------- allocation


def problems():
    """Change rates, importances and bandwidths, over powers of ten."""
    rng = np.random.default_rng(9)
    for n in (1, 2, 5, 20):
        for spread in (0.3, 2.0):
            d, mu = rates(rng, (2, n), -spread, spread)
            for bandwidth in (0.3 * d.sum(), 30 * d.sum()):
                yield d, mu, bandwidth
    d, mu = rates(rng, (2, 6), -1, 1)
    yield d * [0, 1, 1, 1, 0, 1], mu * [1, 1, 0, 1, 1, 1], 2.0
    yield np.full(5, 2.0), np.ones(5), 3.0


def test_optimal_rates():
    for d, mu, bandwidth in problems():
        problem, least = (d, mu, bandwidth), 0.7 * bandwidth / d.size
        for found, (rate, multiplier) in (
            (allocation.optimal_interval(*problem), plain.optimal_interval(*problem)),
            (allocation.optimal_poisson(*problem), plain.optimal_poisson(*problem)),
            (
                allocation.optimal_poisson(*problem, min_rate=least),
                plain.optimal_poisson(*problem, least),
            ),
        ):
            assert_allclose(found.crawl_rate, rate, rtol=1e-9, atol=1e-9 * bandwidth)
            assert found.multiplier == pytest.approx(multiplier, rel=1e-10)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_optimal_thresholds(n):
    rng = np.random.default_rng([18, n])
    d, mu = rng.uniform(0.1, 2, (2, n))
    recall, nu = rng.choice([0.0, 0.3, 0.8], n), rng.choice([0.2, 1.0], n)
    pages = SignalledPages(d, mu, recall, nu)
    found = allocation.optimal_thresholds(pages, 0.4 * n)
    iota, rate, multiplier = plain.optimal_thresholds(d, mu, recall, nu, 0.4 * n)
    assert found.multiplier == pytest.approx(multiplier, rel=1e-10)
    # V is flat near its limit
    assert_allclose(found.crawl_rate, rate, rtol=1e-6)
    assert_allclose(found.threshold, iota, rtol=1e-6)


# ------------------------------------------------------------------------ slots


@pytest.mark.parametrize(
    ("policy", "believe", "options"),
    [
        (Greedy, lambda d, mu, r, nu: (d, mu, 0.0, 0.0), {}),
        (GreedyCIS, lambda d, mu, r, nu: (d, mu, r, 0.0), {}),
        (
            GreedyCISPlus,
            lambda d, mu, r, nu: (
                d, mu, r * (r > 0.6 and r * d / (r * d + nu) > 0.7), 0.0,
            ),
            {},
        ),
        (GreedyNCIS, lambda *page: page, {}),
        (GreedyNCIS, lambda *page: page, {"terms": 1}),
        (GreedyNCIS, lambda *page: page, {"terms": 2}),
        (GreedyNCIS, lambda *page: page, {"discard_window": 0.4}),
    ],
    ids=["greedy", "cis", "cis+", "ncis", "approx-1", "approx-2", "ncis-d"],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_algorithm_1(policy, believe, options, seed):
    rng = np.random.default_rng([22, seed])
    n, bandwidth, n_slots = (1, 3, 8, 8)[seed], 3.0, 60
    page = [rng.uniform(0.2, 2, n), rng.uniform(0.2, 2, n)]
    page += [rng.choice([0.1, 0.5, 0.7, 0.95], n), rng.choice([0.05, 0.3, 1.0], n)]
    count = rng.poisson((page[2] * page[0] + page[3]) * n_slots / bandwidth)
    owner = np.repeat(np.arange(n), count)
    time = rng.uniform(0, n_slots / bandwidth, owner.size)
    time = time[np.lexsort((time, owner))]
    received = Signals(np.append(0, np.cumsum(count)), time)
    slots = np.arange(1, n_slots + 1) / bandwidth
    found = policy(SignalledPages(*page), **options).choose(slots, received)
    believed = [believe(*one) for one in zip(*page, strict=True)]
    window, terms = options.get("discard_window", 0.0), options.get("terms")
    expected = plain.greedy_slots(
        believed, bandwidth, n_slots, time, owner, window, terms
    )
    assert_array_equal(found, expected)


# ----------------------------------------------------------------- completeness


def test_every_plain_form_is_documented_and_compared():
    paths = Path(__file__).parents[1].glob("paper*/test_*.py")
    tests = "".join(path.read_text() for path in paths)
    left = [name for name in plain.__all__ if not re.search(rf"plain\.{name}\b", tests)]
    assert not left
    functions = [getattr(plain, name) for name in plain.__all__]
    assert len({function.__name__ for function in functions}) == len(functions)
    for function in functions:
        module = inspect.getmodule(function)
        assert function.__name__ in module.__all__
        assert function.__doc__.split("\n")[0].endswith(".")
        assert not re.search(r"\b(paperlib|recrawl)\b", inspect.getsource(module))
