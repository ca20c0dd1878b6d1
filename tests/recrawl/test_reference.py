"""Every fast form agrees with its plain form in `plain`.

Unless a comment says otherwise, both sides are exact up to rounding and the
tolerance is a relative 1e-12 (`EXACT`), or 1e-10 (`ROOT`) where both sides are
roots of an equation that rounding moves. Arguments are random, over several powers
of ten, with the edges of their ranges among them.
"""

import importlib
import inspect
import re
import warnings
from fractions import Fraction
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import gamma
from tests.recrawl.thinned import every

from tests import plain as reference
from recrawl.science import allocation, estimators, freshness, objectives, periodic, policies, priors, regret, schedules, signals, simulate
from recrawl.kernels import indices
from recrawl.science.processes import History, simulate_history, simulate_sequential_history

EXACT = 1e-12
ROOT = 1e-10


def rates(rng, size, low=-4.0, high=4.0):
    """Random rates, log-uniform over powers of ten."""
    return 10 ** rng.uniform(low, high, size)


# ------------------------------------------------------- one bit of each crawl


def histories():
    """Histories of one page: moderate, extreme, equal intervals, and edges."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(2, 60))
        interval = rng.exponential(1 / 3, n)
        yield interval, rng.random(n) < reference.predicted_probability(5.0, interval)
    for _ in range(30):  # intervals over ten powers of ten, any bits
        n = int(rng.integers(2, 12))
        yield rates(rng, n, -5, 5), rng.random(n) < 0.5
    for n_changed in range(6):  # equal intervals; no change, and nothing but changes
        yield np.full(5, 0.7), np.arange(5) < n_changed
    for scale in (1e-9, 1.0, 1e9):  # one crawl, unequal intervals, units of time
        for bit in (False, True):
            yield np.array([scale]), np.array([bit])
            yield scale * np.array([0.1, 1.0, 3.0]), np.full(3, bit)


def quiet(function, *arguments, **options):
    """The result without the warning that there is no interior root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
        return function(*arguments, **options)


@pytest.mark.parametrize(
    ("fast", "plain", "rtol"),
    [
        (estimators.naive, reference.naive, EXACT),
        # the equation's terms have relative errors of 1e-16 each, and its
        # slope at the root may be small: both roots are good to some 1e-13
        (estimators.mle, reference.mle, ROOT),
        (
            lambda h: estimators.mle(h, edges="substitute"),
            reference.mle_substitute,
            ROOT,
        ),
        (estimators.moment_matching, reference.moment_matching, ROOT),
        (
            lambda h: estimators.moment_matching(h, bounds=(0.5, 6.0)),
            lambda w, z: reference.moment_matching(w, z, 0.5, 6.0),
            ROOT,
        ),
    ],
    ids=["naive", "mle", "substitute", "moments", "clipped"],
)
def test_batch_estimators(fast, plain, rtol):
    for interval, changed in histories():
        expected = plain(interval, changed)
        found = quiet(fast, History(interval, changed))
        assert_allclose(found, expected, rtol=rtol, atol=0)


def test_the_mle_after_every_crawl():
    for interval, changed in list(histories())[:40]:
        expected = [
            reference.mle(interval[:k], changed[:k]) for k in range(1, len(changed) + 1)
        ]
        found = estimators.mle_path(History(interval, changed))
        assert_allclose(found, expected, rtol=ROOT, atol=0)


def test_bias_reduced():
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 500):
        for n_changed in {0, n // 3, n}:
            length = rates(rng, 1)[0]
            changed = rng.permutation(n) < n_changed
            expected = reference.bias_reduced(length, changed)
            found = estimators.bias_reduced(History(np.full(n, length), changed))
            # log of nearly 1 loses digits in both: a relative 1e-13 at n = 500
            assert found == pytest.approx(expected, rel=EXACT, abs=1e-15)


@pytest.mark.slow
def test_false_changes():
    for interval, changed in list(histories())[:30]:
        found = quiet(estimators.false_changes, History(interval, changed))
        page = interval, changed
        b = -np.log1p(-found.false_change)
        # expectation maximisation gains a digit in a number of steps that grows
        # towards the edges
        expected_b, rates = reference.false_changes([page], 3000)
        assert b == pytest.approx(expected_b, abs=1e-3)
        assert found.change_rate == pytest.approx(rates[0], rel=1e-3)
        value = reference.false_change_log_likelihood(found.change_rate, b, *page)
        assert found.log_likelihood == pytest.approx(value, rel=EXACT)
        plain = reference.false_change_log_likelihood(rates[0], expected_b, *page)
        assert value >= plain - EXACT * abs(plain)
        rate = reference.mle(*page)
        slope, variance = reference.false_change_score(rate, *page)
        found = estimators.false_change_score(History(*page), rate)
        assert found == pytest.approx(slope / np.sqrt(variance), rel=ROOT)


def test_design_variance():
    rng = np.random.default_rng(3)
    for known in (False, True):
        for _ in range(20):
            arguments = rates(rng, 1, -1, 1)[0], rng.random(), rates(rng, 4, -1, 1)
            share = rng.dirichlet(np.ones(4))
            expected = reference.design_variance(*arguments, share, known)
            found = estimators.design_variance(
                arguments[0],
                false_change=arguments[1],
                interval=arguments[2],
                share=share,
                known=known,
            )
            # the inverse matrix of the plain form loses digits
            assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_likelihood_interval(level):
    for interval, changed in histories():
        found = estimators.likelihood_interval(History(interval, changed), level=level)
        expected = reference.likelihood_interval(interval, changed, level)
        # the log-likelihood has an error of some 1e-16 times its largest term,
        # which its slope at the ends, never small at these levels, passes on
        assert_allclose(found, expected, rtol=1e-9, atol=0)


def test_log_likelihood_is_greatest_at_the_mle():
    for interval, changed in histories():
        rate = quiet(estimators.mle, History(interval, changed))
        if 0 < rate < np.inf:
            at = [
                reference.log_likelihood(x * rate, interval, changed)
                for x in (0.99, 1.0, 1.01)
            ]
            assert at[1] > max(at[0], at[2])


def test_confidence_radius():
    for interval, changed in histories():
        for level, max_rate in [
            (0.9, 0.3 / interval.max()),
            (0.5, 3 / interval.mean()),
        ]:
            found = estimators.confidence_radius(
                History(interval, changed), max_rate=max_rate, level=level
            )
            expected = reference.confidence_radius(interval, max_rate, level)
            assert found == pytest.approx(expected, rel=EXACT, abs=0)


def test_affinity():
    rng = np.random.default_rng(4)
    for _ in range(30):  # at moderate intervals the plain form loses no digits
        interval, (rate, other) = rates(rng, 50, -1, 1), rates(rng, 2, -0.3, 0.3)
        assert_allclose(
            estimators.affinity(rate, other, interval),
            reference.affinity(rate, other, interval),
            rtol=EXACT,
        )


def test_information_and_asymptotic_variances():
    rng = np.random.default_rng(3)
    pairs = [(5.0, 3.0), (0.5, 0.25), (0.5, 0.75), *rates(rng, (40, 2), -3, 3)]
    for change_rate, crawl_rate in pairs:
        # quadrature to a relative 1e-12 against Hurwitz's zeta function
        assert estimators.fisher_information(
            change_rate, crawl_rate=crawl_rate
        ) == pytest.approx(
            reference.fisher_information(change_rate, crawl_rate), rel=1e-11, abs=0
        )
        for constant in (0.3, 1.0, (crawl_rate + change_rate) / crawl_rate):
            found = estimators.asymptotic_variances(
                change_rate, crawl_rate=crawl_rate, constant=constant
            )
            expected = reference.asymptotic_variances(change_rate, crawl_rate, constant)
            for name, value in expected.items():
                assert found[name] == pytest.approx(value, rel=1e-11, abs=0)


@pytest.mark.parametrize("change_rate", [1e-17, 1e-15, 1e-8, 1.0, 1e8])
def test_variance_of_moment_matching_in_exact_arithmetic(change_rate):
    p, d = Fraction(0.75), Fraction(change_rate)
    mean, square, weighted = p / (p + d), p / (p + 2 * d), p / (p + d) ** 2
    exact = float((mean - square) / weighted**2)
    found = (
        reference.asymptotic_variances(change_rate, 0.75, 1.0),
        estimators.asymptotic_variances(change_rate, crawl_rate=0.75),
    )
    assert [of["MM"] for of in found] == pytest.approx([exact] * 2, rel=1e-14, abs=0)


def test_information_against_the_numbers_of_the_papers_page():
    # PAPERS 1.5: n times the variance of MLE, MM and LLN, three digits
    for crawl_rate, change_rate, expected in [
        (3.0, 5.0, (59.2, 65.6, 106.7)),
        (0.25, 0.5, (0.603, 0.675, 1.125)),
        (0.75, 0.5, (0.706, 0.744, 1.042)),
    ]:
        found = reference.asymptotic_variances(change_rate, crawl_rate, 1.0)
        assert_allclose([found[k] for k in ("MLE", "MM", "LLN")], expected, rtol=1e-3)


def test_simulated_bits_have_the_predicted_probability():
    # Monte Carlo: five standard errors of a share
    n, rng = 200_000, np.random.default_rng(4)
    for change_rate, length in [(1e-3, 1.0), (0.7, 2.0), (40.0, 0.2)]:
        bits = simulate_history(change_rate, interval=length, n_crawls=n, rng=rng)
        q = reference.predicted_probability(change_rate, length)
        assert abs(bits.changed.mean() - q) < 5 * np.sqrt(q * (1 - q) / n) + 1e-12
        bits = simulate_history(change_rate, crawl_rate=3.0, n_crawls=n, rng=rng)
        q = reference.predicted_probability_poisson(change_rate, 3.0)
        assert abs(bits.changed.mean() - q) < 5 * np.sqrt(q * (1 - q) / n)


# ----------------------------------------------------------- online estimators


def power(exponent):
    """The sequence (k + 1)^-exponent."""
    return lambda k: (k + 1.0) ** -exponent


def alpha_sqrt(k):
    """An offset of LLN that grows."""
    return np.sqrt(k)


ONLINE = {
    "naive": (
        lambda p: estimators.Naive(p),
        lambda z, p: p * np.cumsum(z) / np.arange(1, len(z) + 1),
    ),
    "lln": (
        lambda p: estimators.LLN(p),
        lambda z, p: reference.lln(z, p, lambda k: 1.0),
    ),
    "lln-sqrt": (
        lambda p: estimators.LLN(p, offset=alpha_sqrt),
        lambda z, p: reference.lln(z, p, alpha_sqrt),
    ),
    "sa": (
        lambda p: estimators.SA(p),
        lambda z, p: reference.sa(z, np.full(len(z), p), power(0.75)),
    ),
    "sa-1": (
        lambda p: estimators.SA(p, step=1.0, initial=2.0),
        lambda z, p: reference.sa(z, np.full(len(z), p), power(1.0), 2.0),
    ),
    "sam": (
        lambda p: estimators.SAM(p),
        lambda z, p: reference.sam(z, np.full(len(z), p), power(1.3), power(0.75)),
    ),
    "sam-sa": (  # beta = eta and omega = 1 is SA
        lambda p: estimators.SAM(p, step=0.6, momentum=0.6),
        lambda z, p: reference.sa(z, np.full(len(z), p), power(0.6)),
    ),
    "sam-omega": (
        lambda p: estimators.SAM(p, step=0.8, momentum=0.5, omega=1.7, initial=3.0),
        lambda z, p: reference.sam(
            z, np.full(len(z), p), power(0.8), power(0.5), 1.7, 3.0
        ),
    ),
}


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("crawl_rate", [1e-6, 3.0, 1e6])
def test_online_estimators(name, crawl_rate):
    fast, plain = ONLINE[name]
    rng = np.random.default_rng(5)
    for changed in [
        np.zeros(200, bool),
        np.ones(200, bool),
        *(rng.random((3, 200)) < [[0.05], [0.5], [0.98]]),
    ]:
        found = estimators.path(fast(crawl_rate), History(np.ones(200), changed))
        expected = plain(changed, crawl_rate)
        # 200 steps of rounding, relative to the largest iterate on the way
        assert_allclose(
            found, expected, rtol=EXACT, atol=EXACT * np.abs(expected).max()
        )


def test_sa_and_sam_take_a_crawl_rate_that_varies():
    rng = np.random.default_rng(6)
    changed, p = rng.random(100) < 0.6, rates(rng, 100, -1, 1)
    history = History(1 / p, changed)
    for estimator, expected in [
        (estimators.SA(1.0), reference.sa(changed, p, power(0.75))),
        (estimators.SAM(1.0), reference.sam(changed, p, power(1.3), power(0.75))),
    ]:
        found = estimators.path(estimator, history, crawl_rate=p)
        assert_allclose(found, expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("name", ONLINE)
def test_exact_moments_are_the_mean_over_all_sequences_of_bits(name):
    fast, plain = ONLINE[name]
    for change_rate, crawl_rate in [(5.0, 3.0), (0.02, 3.0), (500.0, 3.0)]:
        found = fast(crawl_rate).moments(change_rate, [1, 2, 9])
        for k, n in enumerate([1, 2, 9]):
            expected = reference.online_moments(
                lambda z, p=crawl_rate: plain(np.array(z), p),
                change_rate,
                crawl_rate,
                n,
            )
            # the binomial weights of scipy are good to some 1e-13
            assert_allclose(
                [found[0][k], found[1][k]], expected, rtol=1e-11, atol=1e-11
            )


def test_rmse_of_sa_against_the_papers_page():
    # PAPERS 3: SA(5, 3, gamma = 0.75, k = 200) has RMSE 0.7308 +- 0.009 (n =
    # 4000)
    found = estimators.SA(3.0).moments(5.0, [200])[1][0]
    assert found == pytest.approx(0.7308, abs=0.02)


# ------------------------------------------------------------------- freshness


def test_long_run_freshness_and_penalty():
    rng = np.random.default_rng(7)
    d, p = rates(rng, (2, 300), -9, 9)
    for fast, plain in [
        (freshness.poisson, reference.poisson_freshness),
        (freshness.interval, reference.interval_freshness),
        (freshness.harmonic_penalty, reference.harmonic_penalty),
    ]:
        assert_allclose(fast(d, p), plain(d, p), rtol=EXACT, atol=0)
    # limits that the formulas do not reach in floating point: Delta = 0, rho =
    # 0
    assert freshness.poisson(0.0, 0.0) == freshness.interval(0.0, 2.0) == 1
    assert freshness.interval(1.0, 0.0) == freshness.harmonic_penalty(0.0, 0.0) == 0


def test_freshness_at_one_change_per_crawl():
    # PAPERS 0: 0.6321 at equal intervals, 0.5 at Poisson times
    assert reference.interval_freshness(2.0, 2.0) == pytest.approx(0.6321, abs=5e-5)
    assert reference.poisson_freshness(2.0, 2.0) == 0.5


def test_poisson_fresh_time_is_the_integral_of_eq_4():
    rng = np.random.default_rng(8)
    for d, p, time in rates(rng, (60, 3), -3, 3):
        initial = rng.choice([0.0, 1.0, rng.random()])
        found = freshness.poisson_time(d, p, time, initial=initial)
        expected = reference.poisson_fresh_time(d, p, time, initial)
        # the transient cancels the stationary part where little time passes
        assert found == pytest.approx(expected, rel=EXACT, abs=1e-15 * time)
        if (d + p) * time < 30:
            integral = quad(
                lambda t, d=d, p=p, s=initial: reference.utility(
                    np.array([d]), np.ones(1), np.array([p]), t, s
                ),
                0,
                time,
                epsabs=0,
                epsrel=1e-12,
            )[0]
            assert found == pytest.approx(integral, rel=1e-10, abs=0)


def test_interval_fresh_time():
    rng = np.random.default_rng(9)
    for d, p, time in rates(rng, (60, 3), -2, 1.5):
        phase, initial = 1 - rng.random(), rng.random()
        found = freshness.interval_time(d, p, time, initial=initial, phase=phase)
        expected = reference.interval_fresh_time(d, p, time, initial, phase)
        # up to 1,000 crawls: the times of the reference have errors of 1e-16
        # each
        assert found == pytest.approx(expected, rel=EXACT, abs=0)


def test_interval_fresh_time_at_a_random_phase_is_the_mean_over_phases():
    for d, p, time in [
        (1.0, 1.0, 0.4),
        (0.3, 2.0, 1.7),
        (20.0, 0.5, 7.3),
        (1e-6, 3.0, 2.0),
    ]:
        jump = time * p % 1  # the number of crawls changes there
        expected = quad(
            lambda u, d=d, p=p, t=time: reference.interval_fresh_time(d, p, t, 0.4, u),
            0,
            1,
            points=[jump],
            epsabs=0,
            epsrel=1e-12,
        )[0]
        found = freshness.interval_time(d, p, time, initial=0.4)
        # the series for few changes ends at the third order, 1e-10 at worst
        # there
        assert found == pytest.approx(expected, rel=1e-10, abs=0)


def test_utility():
    rng = np.random.default_rng(10)
    for elapsed in (0.0, 1e-6, 0.3, 50.0, np.inf):
        d, p, mu = rates(rng, (3, 20), -3, 3)
        initial = rng.random(20)
        found = regret.utility(d, mu, p, elapsed=elapsed, initial=initial)
        expected = reference.utility(d, mu, p, elapsed, initial)
        assert found == pytest.approx(expected, rel=EXACT, abs=0)


# ------------------------------------------------------------------ allocation


def problems():
    """Change rates, importance and bandwidth: random, extreme and special."""
    rng = np.random.default_rng(11)
    for _ in range(15):
        n = int(rng.integers(1, 40))
        yield rng.random(n) + 1e-3, rng.random(n), n * rng.uniform(0.05, 3)
    for _ in range(25):  # rates and importances over eight powers of ten
        n = int(rng.integers(1, 20))
        yield *rates(rng, (2, n)), rates(rng, 1, -3, 3)[0]
    zeros = rng.random(12) * (np.arange(12) % 3 > 0)
    yield zeros, rng.random(12), 2.0  # pages that never change
    yield rng.random(12), zeros, 2.0  # pages without importance
    yield np.full(7, 0.3), np.full(7, 2.0), 3.0  # equal pages
    yield np.array([2.0]), np.array([1e-8]), 5.0  # one page
    yield np.array([1e-6, 1.0, 1e6]), np.ones(3), 1e-6
    yield np.array([1e-6, 1.0, 1e6]), np.ones(3), 1e6


def same_plan(found, expected, change_rate, bandwidth, rtol=ROOT, lost=0.0):
    """Rates and multiplier agree, to the precision that their equation allows.

    A rate is a difference of numbers of the size of rate + change rate, and an
    error e of the multiplier moves it by about e times that; the multiplier comes
    from the sum of the rates, so that the other pages' errors count, too.
    """
    rate, multiplier = expected
    assert found.multiplier == pytest.approx(multiplier, rel=rtol, abs=0)
    slack = rtol * (rate + change_rate * (rate > 0)) + 1e-13 * (change_rate + bandwidth)
    assert (np.abs(found.crawl_rate - rate) <= slack + lost * rate).all()


def test_optimal_poisson():
    for d, mu, bandwidth in problems():
        plan = allocation.optimal_poisson(d, mu, bandwidth)
        same_plan(plan, reference.optimal_poisson(d, mu, bandwidth), d, bandwidth)


def test_optimal_poisson_with_a_floor():
    for d, mu, bandwidth in problems():
        for epsilon in (1e-3, 0.4, 0.99):
            floor = epsilon * bandwidth / d.size
            plan = allocation.optimal_poisson(d, mu, bandwidth, min_rate=floor)
            expected = reference.optimal_poisson(d, mu, bandwidth, floor)
            # 1 - epsilon of the bandwidth is left to fix the multiplier
            same_plan(plan, expected, d, bandwidth, rtol=1e-9)


def test_optimal_interval():
    n_checked = 0
    for d, mu, bandwidth in problems():
        plan = allocation.optimal_interval(d, mu, bandwidth)
        rate, multiplier = reference.optimal_interval(d, mu, bandwidth)
        # 1 - (1 + x) exp(-x), x = d / rate, has an absolute error of 1e-16,
        # and the slope x exp(-x): where x is large, x has few digits in both
        # forms
        spent = plan.crawl_rate
        x = np.divide(d, spent, out=np.zeros(d.size), where=spent > 0)
        lost = 4e-15 * (1 + np.exp(np.minimum(x, 300)) / np.maximum(x, 1) ** 2)
        if lost[spent > 1e-3 * bandwidth].max(initial=0.0) < 1e-3:
            n_checked += 1
            same_plan(plan, (rate, multiplier), d, bandwidth, 1e-9, lost)
    assert n_checked >= 30


def test_optimal_harmonic():
    for d, mu, bandwidth in problems():
        plan = allocation.harmonic(d, mu, bandwidth)
        rate, multiplier = reference.optimal_harmonic(d, mu, bandwidth)
        assert plan.multiplier == pytest.approx(multiplier, rel=ROOT, abs=0)
        assert_allclose(plan.crawl_rate, rate, rtol=ROOT, atol=0)


def test_freshness_of_a_plan_is_the_weighted_mean():
    for d, mu, bandwidth in problems():
        on = d > 0
        for plan, plain in [
            (allocation.optimal_poisson(d, mu, bandwidth), reference.poisson_freshness),
            (allocation.harmonic(d, mu, bandwidth), reference.poisson_freshness),
        ]:
            fresh = np.ones(d.size)
            fresh[on] = plain(d[on], plan.crawl_rate[on])
            assert plan.freshness == pytest.approx(mu @ fresh / mu.sum(), rel=EXACT)


def test_allocations_against_cho_and_garcia_molina():
    # PAPERS 2.2: Delta = 1..5, equal importance, R = 5; three digits
    d, mu = np.arange(1.0, 6.0), np.ones(5)
    for plan, plain, expected in [
        (
            allocation.optimal_interval,
            reference.optimal_interval,
            (1.150, 1.358, 1.354, 1.138, 0.0),
        ),
        (
            allocation.optimal_poisson,
            reference.optimal_poisson,
            (1.386, 1.374, 1.133, 0.772, 0.335),
        ),
    ]:
        assert_allclose(plan(d, mu, 5.0).crawl_rate, expected, atol=5.01e-4)
        assert_allclose(plain(d, mu, 5.0)[0], expected, atol=5.01e-4)


def test_polite():
    rng = np.random.default_rng(12)
    for _ in range(30):
        n, n_hosts = int(rng.integers(1, 30)), int(rng.integers(1, 5))
        d, mu = rng.random((2, n)) + 1e-3
        host = np.concatenate([np.arange(n), rng.integers(n_hosts, size=n)])[-n:]
        labels = np.unique(host)
        limit = {h: rng.choice([1e-3, 0.3, 1.0, 100.0]) for h in labels.tolist()}
        found = allocation.polite(d, mu, 2.0, host, limit)
        expected = reference.polite(d, mu, 2.0, host, limit)
        assert_allclose(found.crawl_rate, expected, rtol=ROOT, atol=1e-12)


def test_optimal_harmonic_with_announced_changes():
    rng = np.random.default_rng(60)
    for d, mu, bandwidth in problems():
        announced = rng.random(d.size) < 0.5
        announced[0] = False  # or bandwidth may be left over
        plan = allocation.harmonic(d, mu, bandwidth, announced=announced)
        expected, multiplier = reference.optimal_harmonic(d, mu, bandwidth, announced)
        assert plan.multiplier == pytest.approx(multiplier, rel=ROOT, abs=0)
        assert_allclose(plan.crawl_rate, expected, rtol=ROOT, atol=0)


def test_optimal_conditional():
    rng = np.random.default_rng(61)
    for _ in range(40):
        d, mu = rates(rng, (2, int(rng.integers(1, 30))), -2, 2)
        costs = {"request_cost": rates(rng, None), "change_cost": rates(rng, None)}
        bandwidth = rates(rng, None, -1, 2) * sum(costs.values())
        plan = allocation.conditional(d, mu, bandwidth, **costs)
        expected, multiplier = reference.optimal_conditional(
            d, mu, bandwidth, *costs.values()
        )
        assert plan.multiplier == pytest.approx(multiplier, rel=ROOT, abs=0)
        # Delta is taken off a square root
        assert_allclose(plan.crawl_rate, expected, rtol=1e-9, atol=1e-9 * d.max())


GAINS = {
    "interval": lambda objective: lambda p, d: objective.value(1 / p, d),
    "poisson": lambda objective: lambda p, d: objective.poisson_value(d, p),
}


@pytest.mark.parametrize("crawls", GAINS)
@pytest.mark.parametrize(
    "objective",
    every(3, [objectives.freshness, objectives.age, objectives.harmonic]),
    ids=repr,
)
def test_optimal(objective, crawls):
    rng = np.random.default_rng(62)
    for _ in range(5):
        n = 12
        d, mu, cost = rates(rng, (3, n), -1, 1)
        low, bandwidth = rng.uniform(1e-3, 0.1, n), 2.0 * cost.sum()
        high = low + rates(rng, n, -1, 2)
        host = np.arange(n) % 3
        limit = cost.sum() * np.array([0.1, 0.3, 3.0]) + np.bincount(host, cost * low)
        found = allocation.optimal(
            d, mu, bandwidth, objective=objective, crawls=crawls, min_rate=low,
            max_rate=high, cost=cost, host=host, host_limit=dict(enumerate(limit)),
        )  # fmt: skip
        expected, multiplier = reference.optimal(
            d, mu, bandwidth, GAINS[crawls](objective), low, high, cost, host, limit
        )
        assert_allclose(found.crawl_rate, expected, rtol=1e-9)
        assert found.multiplier == pytest.approx(multiplier, rel=1e-9, abs=0)


# --------------------------------------------------- change-indicating signals


def one_page(change_rate, importance, recall, false_rate):
    """A `SignalledPages` of one page."""
    return signals.SignalledPages([change_rate], importance, recall, false_rate)


def signalled(seed, n):
    """Parameters of pages with signals, from moderate to extreme."""
    rng = np.random.default_rng(seed)
    for k in range(n):
        d, mu = rates(rng, 2, -3, 3) if k % 2 else rng.uniform(0.1, 2, 2)
        recall = rng.choice([0.0, 1.0, 1e-3, 0.999, *rng.beta(0.25, 0.25, 4)])
        false_rate = rng.choice([0.0, 0.1 * d, d, 30 * d])
        yield d, mu, float(recall), float(false_rate)


def test_parameters_of_signalled_pages():
    for d, mu, recall, false_rate in signalled(13, 60):
        if recall * d + false_rate == 0:
            continue  # no signal at all: no precision
        page = one_page(d, mu, recall, false_rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = reference.signal_parameters(d, recall, false_rate)
        for name, value in zip(
            ("alpha", "gamma", "precision", "beta"), expected, strict=True
        ):
            if name == "beta" and recall == 0:
                continue  # 0: signals without information
            # beta: log(gamma / nu) loses digits where the ratio is nearly 1
            lost = 1e-15 * (1 + false_rate / (recall * d)) if name == "beta" else 0.0
            got = getattr(page, name)[0]
            assert got == pytest.approx(value, rel=EXACT + lost, abs=0)
        alpha, gamma, precision, _ = expected
        if recall == 0:
            continue
        back = signals.SignalledPages.from_observed(
            mu, alpha=alpha, precision=precision, gamma=gamma
        )
        plain = reference.observed_parameters(alpha, precision, gamma)
        for name, value in zip(
            ("change_rate", "recall", "false_rate"), plain, strict=True
        ):
            got = getattr(back, name)[0]
            assert got == pytest.approx(value, rel=EXACT, abs=1e-300)
        again = signals.SignalledPages.from_precision(
            d, mu, precision=precision, recall=recall
        )
        # 1 - precision cancels where nearly all signals are true
        assert again.false_rate[0] == pytest.approx(
            false_rate, rel=1e-11, abs=1e-15 * d
        )


def states(seed, n, max_u=12.0):
    """Pages with signals, elapsed times and numbers of signals."""
    rng = np.random.default_rng(seed)
    for page in signalled(seed, n):
        elapsed = rng.choice([1e-4, 0.1, 1.0, 3.0, max_u]) / page[0]
        yield page, float(elapsed), int(rng.choice([0, 0, 1, 2, 7]))


@pytest.mark.slow
@pytest.mark.parametrize("terms", [None, 1, 2, 3])
def test_crawl_value(terms):
    largest = 0.0
    for page, elapsed, n in states(14, 400):
        d, mu, recall, false_rate = page
        if recall * d + false_rate == 0:
            n = 0  # a page without signals gets none
        if 0 < recall < 1e-4:
            continue  # the plain form has a million terms and more
        if recall == 0 and false_rate > 0 and terms is None:
            n = 0  # without information; the plain form then has no number of signals
        found = freshness.crawl_value(elapsed, n, one_page(*page), terms=terms)[0]
        expected = reference.crawl_value(elapsed, n, *page, terms)
        # the difference w - exp(-alpha iota) psi of the plain form cancels:
        # its error is that of w, some 1e-15 a term of importance min(1 /
        # Delta, w); and b = log(gamma / nu) has an absolute error of 1e-16
        # where it is small
        n_terms = 1 + n + (1 + false_rate / (recall * d) if recall else 1)
        slack = 1e-11 * expected + 4e-15 * mu / d * n_terms
        assert abs(found - expected) <= slack, (page, elapsed, n)
        largest = max(largest, abs(found - expected) / (mu / d))
    assert largest < 1e-10


@pytest.mark.slow
def test_crawl_value_where_nothing_cancels():
    """A relative 1e-11, the precision that the fast form promises."""
    for page, elapsed, n in states(15, 400, max_u=8.0):
        d, _, recall, _ = page
        if not 0.05 < recall < 0.95 or d * elapsed < 0.5:
            continue
        found = freshness.crawl_value(elapsed, n, one_page(*page))[0]
        expected = reference.crawl_value(elapsed, n, *page)
        assert found == pytest.approx(expected, rel=2e-11, abs=0)


def test_special_cases_of_the_crawl_value():
    rng = np.random.default_rng(16)
    for d, mu, elapsed in rates(rng, (40, 3), -2, 2):
        silent = freshness.crawl_value(elapsed, 0, one_page(d, mu, 0.0, 0.0))[0]
        expected = reference.crawl_value_no_signals(elapsed, d, mu)
        # the fast form rounds its argument to 38 bits
        assert silent == pytest.approx(expected, rel=1e-11, abs=0)
        for recall in (0.2, 0.9):
            for n in (0, 1, 4):
                found = freshness.crawl_value(elapsed, n, one_page(d, mu, recall, 0.0))
                expected = reference.crawl_value_no_false_signals(
                    elapsed, n, d, mu, recall
                )
                # the difference of V_GREEDY_CIS cancels, as above
                assert found[0] == pytest.approx(
                    expected, rel=1e-11, abs=1e-15 * mu / d
                )


def test_limits_of_the_crawl_value():
    # PAPERS 5.1: APPROX-j tends to 1.0, 1.3, 1.39 at Delta 0.7, nu 0.3; V to
    # 1.4286
    page = (0.7, 1.0, 0.5, 0.3)
    for terms, expected in [(1, 1.0), (2, 1.3), (3, 1.39), (None, 1 / 0.7)]:
        plain = reference.crawl_value(200.0, 0, *page, terms)
        assert plain == pytest.approx(expected, rel=1e-12)
        fast = freshness.crawl_value(np.inf, 0, one_page(*page), terms=terms)[0]
        assert fast == pytest.approx(expected, rel=1e-11)


def test_lemma_4_against_the_papers_page():
    # PAPERS 5.1: iota 3, Delta 0.7, recall 0.5, nu 0.3: psi 1.4650, w 1.0066
    assert reference.cycle_length(3.0, 0.7, 0.5, 0.3) == pytest.approx(1.4650, abs=5e-5)
    assert reference.fresh_time(3.0, 0.7, 0.5, 0.3) == pytest.approx(1.0066, abs=5e-5)


@pytest.mark.slow
def test_cycle_length_and_fresh_time():
    for page, threshold, _ in states(17, 300):
        d, _, recall, false_rate = page
        if 0 < recall < 1e-3:
            continue  # the plain form has too many terms
        pages = one_page(*page)
        # b = log(gamma / nu) of a ratio near 1 has an absolute error of 1e-16
        lost = 1e-15 * (1 + false_rate / (recall * d)) if recall else 0.0
        for fast, plain in [
            (freshness.cycle_length, reference.cycle_length),
            (freshness.fresh_time, reference.fresh_time),
        ]:
            expected = plain(threshold, d, recall, false_rate)
            found = fast(threshold, pages)[0]
            assert found == pytest.approx(expected, rel=EXACT + lost, abs=0), page
    assert freshness.fresh_time(np.inf, one_page(0.7, 1.0, 0.5, 0.3))[0] == (
        pytest.approx(1 / 0.7, rel=EXACT)
    )


def test_lemma_3_holds_for_the_plain_forms():
    # V(iota) = mu int_0^iota alpha exp(-alpha s) psi(s) ds, from w' = exp()
    # psi'
    for d, mu, recall, false_rate in [(0.7, 2.0, 0.5, 0.3), (3.0, 0.1, 0.9, 5.0)]:
        alpha = (1 - recall) * d
        for iota in (0.2, 1.0, 4.0):
            integral = quad(
                lambda s, a=alpha, d=d, r=recall, f=false_rate: (
                    a * np.exp(-a * s) * reference.cycle_length(s, d, r, f)
                ),
                0,
                iota,
                limit=200,
                epsrel=1e-11,
            )[0]
            found = reference.crawl_value(iota, 0, d, mu, recall, false_rate)
            # psi has kinks at the multiples of beta, which slow quadrature
            # down
            assert found == pytest.approx(mu * integral, rel=1e-8)


def signalled_problems():
    """Pages with signals of recall below 1, and bandwidths."""
    rng = np.random.default_rng(18)
    for n in (1, 1, 3, 6, 6):
        recall = rng.choice([0.0, 0.3, 0.8, 0.99], n)
        nu = rng.choice([0.0, 0.2, 1.0], n)
        yield rng.uniform(0.1, 2, n), rng.uniform(0.1, 2, n), recall, nu, 0.4 * n
    yield *np.full((4, 5), [[0.5], [1.0], [0.6], [0.2]]), 2.0  # equal pages
    yield *rates(rng, (2, 5), -2, 2), np.full(5, 0.5), np.full(5, 0.1), 3.0


@pytest.mark.slow
def test_optimal_thresholds():
    n_checked = 0
    for *arrays, bandwidth in signalled_problems():
        plan = allocation.optimal_thresholds(signals.SignalledPages(*arrays), bandwidth)
        iota, rate, multiplier = reference.optimal_thresholds(*arrays, bandwidth)
        assert plan.multiplier == pytest.approx(multiplier, rel=ROOT)
        d, mu, recall, nu = arrays
        jumps = (nu == 0) & (recall > 0) & (np.abs(mu / d / multiplier - 1) < 1e-9)
        if jumps.any():
            continue  # the next test
        n_checked += 1
        assert_array_equal(plan.crawl_rate > 0, rate > 0)
        # near its limit V is flat, and its rounding errors move the threshold
        # far
        assert_allclose(plan.crawl_rate, rate, rtol=1e-6, atol=0)
        assert_allclose(plan.threshold, iota, rtol=1e-6, atol=0)
        # Theorem 1 at the thresholds of the fast form, without that loss
        on = plan.crawl_rate > 0
        fresh = np.zeros(on.size)
        for i in np.flatnonzero(on):
            d, mu, recall, nu = (float(array[i]) for array in arrays)
            value = reference.crawl_value(plan.threshold[i], 0, d, mu, recall, nu)
            assert value == pytest.approx(plan.multiplier, rel=1e-11)
            psi = reference.cycle_length(plan.threshold[i], d, recall, nu)
            # where V is flat the rate, interpolated to spend the bandwidth,
            # and the threshold of the last multiplier differ by 3e-8
            # (measured)
            assert plan.crawl_rate[i] == pytest.approx(1 / psi, rel=1e-7)
            fresh[i] = reference.fresh_time(plan.threshold[i], d, recall, nu) / psi
        assert (arrays[1] / arrays[0] <= plan.multiplier)[~on].all()
        assert plan.crawl_rate.sum() == pytest.approx(bandwidth, rel=EXACT)
        expected = arrays[1] @ fresh / arrays[1].sum()
        assert plan.freshness == pytest.approx(expected, rel=1e-7)
    assert n_checked >= 5


def test_optimal_thresholds_without_false_signals_at_scarce_bandwidth():
    """The crawl rate jumps at V(inf): a page is crawled at some signals."""
    d, recall, bandwidth = 1.943, 0.3, 0.4  # signals come at a rate of 0.583
    plan = allocation.optimal_thresholds(one_page(d, 1.171, recall, 0.0), bandwidth)
    assert plan.crawl_rate[0] == pytest.approx(bandwidth, rel=EXACT)
    _, rate, multiplier = reference.optimal_thresholds(
        np.array([d]), np.array([1.171]), np.array([recall]), np.zeros(1), bandwidth
    )
    assert rate[0] == pytest.approx(recall * d, rel=1e-3) or rate[0] == 0
    assert plan.multiplier == pytest.approx(multiplier, rel=ROOT)
    # fresh for 1 / Delta after each crawl
    assert plan.freshness == pytest.approx(bandwidth / d, rel=1e-9)


def test_optimal_thresholds_at_recall_1_meet_theorem_1():
    """A page of recall 1 is crawled after the first n signals with V >= L."""
    d, mu = np.array([0.5, 0.8, 1.2, 0.7]), np.array([1.0, 2.0, 0.7, 1.5])
    recall, nu = np.array([1.0, 1.0, 0.5, 0.0]), np.array([0.4, 0.0, 0.3, 0.0])
    plan = allocation.optimal_thresholds(signals.SignalledPages(d, mu, recall, nu), 1.7)
    assert plan.crawl_rate.sum() == pytest.approx(1.7, rel=EXACT)
    for i in range(4):
        page = d[i], mu[i], recall[i], nu[i]
        if plan.crawl_rate[i] == 0:
            assert mu[i] / d[i] <= plan.multiplier
            continue
        if recall[i] < 1:
            value = reference.crawl_value(plan.threshold[i], 0, *page)
            assert value == pytest.approx(plan.multiplier, rel=1e-9)
            continue
        n = (d[i] + nu[i]) / plan.crawl_rate[i]
        above, below = np.ceil(n - 1e-9), np.ceil(n - 1e-9) - 1
        assert reference.crawl_value(0.0, int(above), *page) >= plan.multiplier * (
            1 - 1e-9
        )
        assert reference.crawl_value(0.0, int(below), *page) <= plan.multiplier


def signal_histories():
    """Interior data: random pages, intervals and counts of several sizes."""
    rng = np.random.default_rng(19)
    for change_rate, recall, false_rate, length in [
        (0.7, 0.5, 0.3, 1.0),
        (2.0, 0.9, 0.1, 0.4),
        (0.05, 0.3, 1.0, 20.0),
        (40.0, 0.6, 5.0, 0.02),
    ]:
        pages = one_page(change_rate, 1.0, recall, false_rate)
        history, counts = signals.simulate_signalled_history(
            pages, crawl_rate=1 / length, n_crawls=300, rng=rng
        )
        yield history.interval[0], counts[0], history.changed[0]


def test_fit_of_signals():
    for interval, counts, changed in signal_histories():
        found = signals.fit(History(interval, changed), counts)
        alpha, b = reference.fit_signals(interval, counts, changed)
        # both solve the score equations; the plain form one inside the other
        assert found.alpha == pytest.approx(alpha, rel=1e-8)
        assert found.b == pytest.approx(b, rel=1e-8)
        gamma = counts.sum() / interval.sum()
        expected = reference.observed_parameters(alpha, 1 - np.exp(-b), gamma)
        names = ("change_rate", "recall", "false_rate")
        assert_allclose([getattr(found, k) for k in names], expected, rtol=1e-8)
        best = reference.signal_log_likelihood(
            found.alpha, found.b, interval, counts, changed
        )
        for factor in (0.99, 1.01):
            for pair in [(factor * alpha, b), (alpha, factor * b)]:
                nearby = reference.signal_log_likelihood(
                    *pair, interval, counts, changed
                )
                assert nearby < best


def test_naive_precision_and_recall():
    for interval, counts, changed in signal_histories():
        found = signals.naive_precision_recall(History(interval, changed), counts)
        expected = reference.naive_precision_recall(counts, changed)
        assert_allclose(found, expected, rtol=EXACT)


def test_the_chance_of_a_change_is_eq_1():
    """Monte Carlo, five standard errors: bits after some number of signals."""
    page, length = (0.7, 1.0, 0.5, 0.3), 1.3
    history, counts = signals.simulate_signalled_history(
        one_page(*page), interval=length, n_crawls=200_000, rng=20
    )
    for n in range(3):
        bits = history.changed[counts == n]
        q = 1 - reference.fresh_probability(length, n, page[0], *page[2:])
        assert abs(bits.mean() - q) < 5 * np.sqrt(q * (1 - q) / bits.size)


# ------------------------------------------------------------------- schedules


def believed(kind, page):
    """What a policy of the greedy family believes of a page."""
    d, mu, recall, false_rate = page
    if kind == "greedy":
        return d, mu, 0.0, 0.0
    if kind == "cis":
        return d, mu, recall, 0.0
    if kind == "cis+":
        precision = recall * d / max(recall * d + false_rate, 1e-300)
        good = precision > 0.7 and recall > 0.6
        return (d, mu, recall, 0.0) if good else (d, mu, 0.0, 0.0)
    return page


GREEDY = {
    "greedy": policies.Greedy,
    "cis": policies.GreedyCIS,
    "cis+": policies.GreedyCISPlus,
    "ncis": policies.GreedyNCIS,
    "ncis-1": lambda pages: policies.GreedyNCIS(pages, terms=1),
    "ncis-2": lambda pages: policies.GreedyNCIS(pages, terms=2),
    "ncis-d": lambda pages: policies.GreedyNCIS(pages, discard_window=0.3),
}


def draw_pages(rng, n, kind):
    """Random pages; some special ones among them."""
    d, mu = rng.uniform(0.05, 1, (2, n))
    recall, nu = rng.uniform(0.05, 0.95, n), rng.uniform(0.1, 0.6, n)
    if kind == "edges":
        recall, nu = rng.choice([0.0, 0.5, 1.0], n), rng.choice([0.0, 0.1, 0.5], n)
        nu[recall == 0] = 0.0
        mu[0] = 0.0
    if kind == "equal":
        d[:], mu[:], recall[:], nu[:] = 0.5, 0.7, 0.8, 0.1
    return signals.SignalledPages(d, mu, recall, nu)


@pytest.mark.slow
@pytest.mark.parametrize("name", GREEDY)
@pytest.mark.parametrize("kind", ["random", "edges", "equal", "one"])
def test_algorithm_1(name, kind):
    """Slot for slot; the fast form compares only the pages that can win."""
    rng = np.random.default_rng(21)
    n, bandwidth, horizon = (1, 2.0, 10.0) if kind == "one" else (6, 4.0, 20.0)
    pages = draw_pages(rng, n, kind)
    world = simulate.draw_world(pages, horizon, rng=22)
    run = simulate.crawl(world, GREEDY[name](pages), bandwidth)
    page, arrival = world.in_order
    rows = zip(
        pages.change_rate, pages.importance, pages.recall, pages.false_rate, strict=True
    )
    plain = [believed(name, tuple(map(float, row))) for row in rows]
    uses = np.array([name != "greedy" and row[2] > 0 for row in plain])
    expected = reference.greedy_slots(
        plain,
        bandwidth,
        run.page.size,
        arrival[uses[page]],
        page[uses[page]],
        discard=0.3 if name == "ncis-d" else 0.0,
        terms=int(name[-1]) if name[-1].isdigit() else None,
    )
    assert_array_equal(run.page, expected)


def test_accuracy_is_the_mean_of_eq_1():
    rng = np.random.default_rng(23)
    for kind in ("random", "edges", "equal"):
        pages = draw_pages(rng, 5, kind)
        if kind == "edges":  # eq. (1) needs a rate of signals
            pages = signals.SignalledPages(
                pages.change_rate, pages.importance, np.maximum(pages.recall, 0.1), 0.2
            )
        world = simulate.draw_world(pages, 30.0, rng=24)
        run = simulate.crawl(world, policies.GreedyNCIS(pages), 2.0)
        page, arrival = world.in_order
        rows = list(
            zip(
                pages.change_rate,
                pages.importance,
                pages.recall,
                pages.false_rate,
                strict=True,
            )
        )
        expected = reference.accuracy(rows, run.time, run.page, arrival, page, 30.0)
        assert run.freshness == pytest.approx(expected, rel=EXACT)


def test_low_discrepancy():
    rng = np.random.default_rng(25)
    for n in (1, 2, 7, 30):
        for rate in (rng.random(n), np.ones(n), rates(rng, n, -3, 3)):
            n_slots = 500
            found = schedules.low_discrepancy(rate, n_slots)
            assert_array_equal(found, reference.low_discrepancy(rate, n_slots))
            # PAPERS 2.3: at every time within one visit of its share
            done = np.cumsum(found[:, np.newaxis] == np.arange(n), axis=0)
            share = np.arange(1, n_slots + 1)[:, np.newaxis] * rate / rate.sum()
            assert np.abs(done - share).max() <= 1 + 1e-9
    # a page without crawls is not in the plain form
    found = schedules.low_discrepancy([1.0, 0.0, 2.0], 30)
    assert_array_equal(found // 2, reference.low_discrepancy(np.array([1.0, 2.0]), 30))


# --------------------------------------------------------------- regret bounds


def test_bounds_of_aaai20():
    rng = np.random.default_rng(26)
    for _ in range(50):
        n = int(rng.integers(1, 30))
        d, e, mu = rates(rng, (3, n), -3, 3)
        low, tolerance = rates(rng, 2, -3, 3)
        expected = reference.burn_in(mu, tolerance, low)
        assert regret.burn_in(mu, tolerance, min_rate=low) == pytest.approx(
            expected, rel=EXACT
        )
        expected = reference.sensitivity_bound(d, e, mu)
        found = regret.sensitivity_bound(d, e, mu)
        assert found == pytest.approx(expected, rel=EXACT)
        chosen, _ = reference.optimal_poisson(e, mu, 2.0)
        sharp = regret.sensitivity_bound(d, e, mu, crawl_rate=chosen)
        assert sharp == pytest.approx(
            reference.sharp_sensitivity_bound(d, e, mu, chosen), rel=1e-11
        )
        lost = regret.suboptimality(d, e, mu, 2.0)
        # the plain form subtracts two utilities, each up to the sum of mu
        slack = 1e-12 * mu.sum()
        assert lost == pytest.approx(
            reference.suboptimality(d, e, mu, 2.0), rel=ROOT, abs=slack
        )
        # Lemma 4, and the constant 1/4 that is enough (derived)
        assert lost <= sharp + slack
        assert sharp <= 0.25 * expected * (1 + 1e-12)


def test_lemma_5_and_theorem_1():
    rng = np.random.default_rng(27)
    for _ in range(50):
        m, level = int(rng.integers(1, 200)), float(rng.choice([0.5, 0.9, 0.999]))
        bandwidth, low = m * rng.uniform(0.1, 5), 10 ** rng.uniform(-3, 0)
        bounds = (low, low * rng.uniform(1.5, 30))
        tau, horizon, mu = m / bandwidth * 7, m / bandwidth * 1e4, rng.random(m)
        found = regret.exploration_radius(
            m, bandwidth, tau, max_rate=bounds[1], level=level
        )
        expected = reference.exploration_radius(m, bandwidth, tau, bounds[1], level)
        assert found == pytest.approx(expected, rel=EXACT)
        found = regret.regret_bound(
            mu, bandwidth, exploration=tau, horizon=horizon, bounds=bounds, level=level
        )
        expected = reference.regret_bound(tau, horizon, mu, bandwidth, bounds, level)
        assert found == pytest.approx(expected, rel=EXACT)
        best = reference.exploration_horizon(horizon, m, bandwidth, bounds, level)
        found = regret.exploration_horizon(
            m, bandwidth, horizon=horizon, bounds=bounds, level=level
        )
        rounds = max(np.round(best * bandwidth / m), 1.0)
        assert found == pytest.approx(rounds * m / bandwidth, rel=EXACT)
        # Theorem 1: the minimum of eq. (12), and about twice tau* times sum mu
        # there
        at = [
            reference.regret_bound(x * best, horizon, mu, bandwidth, bounds, level)
            for x in (0.99, 1.0, 1.01)
        ]
        assert at[1] < min(at[0], at[2])
        assert (
            at[1]
            <= 2 * best * mu.sum()
            <= at[1] + best**2 / horizon * mu.sum() * (1 + 1e-9)
        )


# ----------------------------------------------------------- learning policies

PAGES = np.array([0.2, 0.5, 1.0, 2.0]), np.array([1.0, 3.0, 0.5, 2.0])
BOUNDS = (0.05, 4.0)


def test_explore_then_commit_given_its_estimates():
    """Exact: the estimates determine the fresh time after exploration."""
    d, mu = PAGES
    policy = policies.ExploreThenCommit(exploration=20.0, bounds=BOUNDS)
    run = policy.run(d, mu, 4.0, 100.0, n_runs=20, rng=28)
    possible = [
        reference.moment_matching(np.ones(20), np.arange(20) < k, *BOUNDS)
        for k in range(21)
    ]
    for k in range(20):
        believed = run.believed[k]
        # every estimate is one of the 21 that 20 equal intervals allow
        assert np.abs(believed[:, np.newaxis] / possible - 1).min(axis=1).max() < ROOT
        rate, _ = reference.optimal_poisson(believed, mu, 4.0)
        phases = [
            20.0 * mu @ reference.interval_freshness(d, 1.0),
            mu @ reference.poisson_fresh_time(d, rate, 80.0, 1.0),
        ]
        assert_allclose(run.expected[k], phases, rtol=ROOT)
    best, _ = reference.optimal_poisson(d, mu, 4.0)
    expected = 100.0 * reference.utility(d, mu, best, np.inf, 0.0) - run.expected.sum(1)
    assert_allclose(run.regret(), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n_phases", "epsilon"), [(1, 0.0), (3, 0.7)])
def test_learning_policies_have_the_distribution_of_the_plain_loop(n_phases, epsilon):
    """Monte Carlo, 4.5 standard errors of a difference of two means."""
    d, mu = PAGES
    if n_phases == 1:
        policy = policies.ExploreThenCommit(exploration=6.0, bounds=BOUNDS)
    else:
        policy = policies.PhasedEpsilonGreedy(
            exploration=6.0, bounds=BOUNDS, n_phases=n_phases, epsilon=epsilon
        )
    run = policy.run(d, mu, 4.0, 30.0, n_runs=300, rng=29)
    rng = np.random.default_rng(30)
    plain = [
        reference.phased_epsilon_greedy(
            d, mu, 4.0, 6.0, 30.0, BOUNDS, n_phases, epsilon, rng
        )
        for _ in range(150)
    ]
    fresh, believed = map(np.array, zip(*plain, strict=True))
    if n_phases == 1:  # the same regret, with what follows exploration in closed form
        many = regret.explore_then_commit(
            policy, d, mu, 4.0, exploration=[6.0], horizon=[30.0], n_runs=300, rng=36
        )[:, 0, 0]
        best, _ = reference.optimal_poisson(d, mu, 4.0)
        lost = 30.0 * reference.utility(d, mu, best, np.inf, 0.0) - fresh
        lost /= mu.sum()
        error = np.sqrt(many.var() / many.size + lost.var() / lost.size)
        assert abs(many.mean() - lost.mean()) < 4.5 * error
    for one, other in [
        (run.expected.sum(axis=1), fresh),
        (np.log(run.believed), np.log(believed)),
        (run.believed**2, believed**2),
    ]:
        error = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
        assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4.5 * error).all()


@pytest.mark.parametrize("name", ["lln", "sa", "sam"])
def test_reoptimise(name):
    """The same bits give the same rates: LLN restarts, SA and SAM go on."""
    d, mu = np.array([0.6, 0.6, 1e-6, 0.02, 0.3]), np.array([2.0, 2.0, 1.0, 1.0, 0.0])
    fast = {"lln": estimators.LLN, "sa": estimators.SA, "sam": estimators.SAM}[name](
        1.0
    )
    found = simulate.reoptimise(
        fast, d, mu, 1.0, n_phases=4, n_crawls=30, n_runs=2, rng=31
    )

    def estimate(phases):
        if name == "lln":
            p, bits = phases[-1]
            return np.array(
                [
                    reference.lln(z, r, lambda k: 1.0)[-1]
                    for z, r in zip(bits, p, strict=True)
                ]
            )
        p = np.concatenate([np.tile(p[:, np.newaxis], 30) for p, _ in phases], axis=1)
        bits = np.concatenate([bits for _, bits in phases], axis=1)
        steps = (power(0.75),) if name == "sa" else (power(1.3), power(0.75))
        path = {"sa": reference.sa, "sam": reference.sam}[name]
        return np.array([path(z, r, *steps)[-1] for z, r in zip(bits, p, strict=True)])

    for run, stream in enumerate(np.random.default_rng(31).spawn(2)):

        def observe(p, stream=stream):
            return simulate_history(d, crawl_rate=p, n_crawls=30, rng=stream).changed

        expected = reference.reoptimise(estimate, observe, mu, 1.0, 4, 1e-3)
        # the optimum turns errors of the estimates into errors of the rates
        assert_allclose(found[run], expected, rtol=1e-8, atol=1e-12)


# ---------------------------------------------------------------------- priors


def priors_of_two():
    """Lengths of the two pseudo-observations, over ten powers of ten."""
    rng = np.random.default_rng(32)
    return [
        (0.5, 0.5),
        (1e-6, 1.0),
        (1e6, 1.0),
        (1.0, 1e6),
        *rates(rng, (20, 2), -3, 3),
    ]


def test_prior_of_two_pseudo_observations():
    for a, b in priors_of_two():
        prior = priors.FakeIntervals(a, b)
        rate = np.geomspace(1e-4, 20, 50) / b
        expected = reference.prior_density(rate, a, b)
        assert_allclose(prior.density(rate), expected, rtol=EXACT, atol=0)
        mean, variance = reference.prior_moments(a, b)
        assert prior.mean == pytest.approx(mean, rel=EXACT)
        assert prior.variance == pytest.approx(variance, rel=EXACT)
        # log(1 + a / b) of the plain form loses digits at small a / b
        mode = reference.prior_mode(a, b)
        assert prior.mode == pytest.approx(mode, rel=EXACT + 1e-15 * b / a)
        assert prior.initial_interval == pytest.approx(1 / prior.mode, rel=EXACT)
        # the mode is the MLE of the two (derived)
        both = reference.mle(np.array([a, b]), np.array([True, False]))
        assert prior.mode == pytest.approx(both, rel=ROOT)
        # the density integrates to 1 and has that mean, by quadrature in units
        # of b
        for power_, value in [(0, 1.0), (1, mean)]:
            total = quad(
                lambda x, k=power_, a=a, b=b: (
                    (x / b) ** k * reference.prior_density(x / b, a, b) / b
                ),
                0,
                np.inf,
                points=None,
                epsrel=1e-10,
                limit=200,
            )[0]
            if 1e-2 < a / b < 1e2:
                assert total == pytest.approx(value, rel=1e-8)
    # PAPERS 6: a = b = 0.5 is LambdaCrawl's ln 2 / 0.5
    assert reference.prior_mode(0.5, 0.5) == pytest.approx(np.log(2) / 0.5, rel=EXACT)


def test_posterior_mode_is_the_mle_with_both_among_the_crawls():
    prior = priors.FakeIntervals(0.5, 2.0)
    for interval, changed in histories():
        expected = reference.mle(
            np.append([0.5, 2.0], interval), np.append([True, False], changed)
        )
        found = prior.estimate(History(interval, changed))
        assert found == pytest.approx(expected, rel=ROOT)


def test_prior_on_a_grid_of_periods():
    rng = np.random.default_rng(33)
    period = np.sort(rng.uniform(1, 2000, 300))
    rate = 1 / np.clip(360 * np.exp(rng.standard_normal(200)), 2, 8760)
    for a, b in [(1.0, 60.0), (50.0, 400.0), (3000.0, 10.0)]:
        prior = priors.FakeIntervals(a, b)
        expected = reference.prior_probabilities(period, a, b)
        assert_allclose(prior.probabilities(period), expected, rtol=1e-11, atol=0)
        expected = reference.prior_distance(rate, period, a, b)
        assert prior.distance(rate, period) == pytest.approx(expected, rel=EXACT)


def test_gamma_marginal():
    """Of two bits it has four terms E exp(-Delta t) = (b / (b + t))^a."""
    for shape, rate in ((0.3, 2.0), (1.0, 0.01), (20.0, 30.0)):
        one, two, both = ((rate / (rate + t)) ** shape for t in (1.5, 0.2, 1.7))
        for changed, expected in (
            ([False, False], both),
            ([True, False], two - both),
            ([True, True], 1 - one - two + both),
        ):
            found = reference.gamma_marginal([1.5, 0.2], changed, shape, rate)
            assert_allclose(found, expected, rtol=1e-10)


def test_gamma_prior():
    """Both maximise the same function, up to the stopping of the plain form."""
    interval = np.array([[1.0, 2.0, 0.5], [4.0, 0.1, 3.0], [1.0, 1.0, 9.0]] * 2)
    changed = np.array([[1, 1, 1], [0, 0, 0], [0, 1, 1]] * 2, dtype=bool)
    found = priors.gamma_prior(History(interval, changed))
    pages = list(zip(interval, changed, strict=True))
    assert_allclose(found, reference.gamma_prior(pages), rtol=1e-3)


def test_gamma_bits():
    """By quadrature, and the mean that of the posterior on a grid."""
    rng = np.random.default_rng(35)
    for shape, rate in ((0.3, 2.0), (1.0, 0.5), (20.0, 30.0)):
        prior = priors.GammaPrior(shape, rate)
        for n in (1, 3, 6):
            interval, changed = rng.exponential(1.0, n), rng.random(n) < 0.6
            marginal, mean = reference.gamma_bits(interval, changed, shape, rate)
            expected = reference.gamma_marginal(interval, changed, shape, rate)
            assert marginal == pytest.approx(expected, rel=1e-9)
            found = prior.posterior(History(interval, changed)).mean
            assert found == pytest.approx(mean, rel=1e-6)


def test_count_marginal():
    """An integral over the rate, and the mean of the conjugate posterior."""
    for n, time in ((0, 2.0), (3, 0.7), (40, 9.0)):
        log, mean = reference.count_marginal(n, time, 0.8, 2.5)
        density = gamma(0.8, scale=1 / 2.5).pdf

        def likelihood(rate, n=n, time=time, density=density):
            return rate**n * np.exp(-rate * time) * density(rate)

        total = quad(likelihood, 0, 1, epsabs=0)[0] + quad(likelihood, 1, 60)[0]
        assert log == pytest.approx(np.log(total), abs=1e-6)
        history = History([time], [n > 0], count=[n])
        found = priors.GammaPrior(0.8, 2.5).posterior(history)
        assert found.mean == pytest.approx(mean, rel=EXACT)


def test_host_marginal():
    """Means drawn at random; a host of almost no spread is a population."""
    pages = [([0.5, 2.0], [True, False]), ([1.0, 1.0], [True, True])]
    alike = [reference.gamma_bits(*page, 1.5, 1.5 / 0.8)[0] for page in pages]
    found = reference.host_marginal(pages, 1.5, 0.8, 1e-6)
    assert found == pytest.approx(np.prod(alike), rel=1e-9)
    mean = 0.8 * np.exp(1.2 * np.random.default_rng(36).standard_normal(200_000))
    drawn = np.prod(
        [reference.gamma_bits(*page, 1.5, 1.5 / mean)[0] for page in pages], axis=0
    )
    error = drawn.std() / np.sqrt(drawn.size)
    found = reference.host_marginal(pages, 1.5, 0.8, 1.2)
    assert found == pytest.approx(drawn.mean(), abs=4 * error)


def test_grid_posterior():
    rate = np.concatenate([[0.0], np.geomspace(1e-3, 50, 200)])
    prior = np.random.default_rng(34).random(rate.size)
    for interval, changed in histories():
        if not (changed.size and interval.max() < 50 and interval.min() > 1e-3):
            continue
        found = priors.grid_posterior(History(interval, changed), rate, prior)
        expected = reference.grid_posterior(interval, changed, rate, prior)
        # 1 - q of the plain form has an absolute error of 1e-16 at each change
        slack = 1e-11 + 1e-15 / (1e-3 * interval.min())
        assert_allclose(found, expected, rtol=slack, atol=1e-300)


@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_adaptive_intervals(factor):
    """The intervals of sections 4.1 and 5 of grimes08 follow from the bits."""
    prior = priors.FakeIntervals(1.0, 2.0)
    both = np.array([1.0, 2.0]), np.array([True, False])
    for fast, plain in [
        (
            lambda h: estimators.mle(h, edges="substitute"),
            reference.mle_substitute,
        ),
        (
            prior.estimate,
            lambda w, z: reference.mle(np.append(both[0], w), np.append(both[1], z)),
        ),
        (lambda h: quiet(estimators.mle, h), reference.mle),  # rates 0 and inf
    ]:
        history, _ = simulate_sequential_history(
            np.array([0.01, 1.0, 30.0]),
            fast,
            initial=3.0,
            factor=factor,
            limits=(0.05, 40.0),
            n_crawls=25,
            rng=35,
        )
        for interval, changed in zip(history.interval, history.changed, strict=True):
            expected = reference.adaptive_intervals(
                changed, plain, 3.0, factor, (0.05, 40.0)
            )
            assert_allclose(interval, expected, rtol=1e-9)


def test_crawl_value_under_a_gamma_distribution():
    rng = np.random.default_rng(12)
    shape, scale, elapsed, mu = (rates(rng, 60, -1, 1) for _ in range(4))
    shape[:3] = 1.0, 1.0 + 1e-9, 0.9999999
    found = freshness.bayes_crawl_value(elapsed, mu, shape=shape, rate=scale)
    expected = [
        reference.bayes_crawl_value(*page)
        for page in zip(elapsed, mu, shape, scale, strict=True)
    ]
    assert_allclose(found, expected, rtol=1e-10)  # of a quadrature


# ------------------------------------------------------------------ objectives


@pytest.mark.parametrize(
    "name",
    ["freshness", "age", "delay", "harmonic", "age_of_information", "deadline"],
)
def test_objectives(name):
    objective = getattr(objectives, name)
    if name == "deadline":
        objective = objective(0.8)
    rng = np.random.default_rng(11)
    for elapsed, change_rate in zip(
        rates(rng, 30, -1, 1), rates(rng, 30, -1, 1), strict=True
    ):
        arguments = name, elapsed, change_rate, objective.tau
        # the plain forms cancel, and hold quadratures
        assert_allclose(
            objective.cost(elapsed, change_rate),
            reference.objective_cost(*arguments),
            rtol=1e-11,
        )
        assert_allclose(
            objective.value(elapsed, change_rate),
            reference.objective_value(*arguments),
            rtol=1e-9,
            atol=1e-13,
        )


# -------------------------------------------------------------- periodic rates


@pytest.mark.parametrize("seed", range(10))
def test_exposures_and_stale_times_of_periodic_rates(seed):
    rng = np.random.default_rng([21, seed])
    n_bins, period = int(rng.integers(2, 9)), rates(rng, 1, -2, 2).item()
    weight, demand = rng.random((2, n_bins)) * rng.integers(0, 2, (2, n_bins))
    weight[0], demand[-1] = 1.0, 0.3
    profile = periodic.Profile(weight, period=period)
    start, length = period * rng.uniform(-2, 2), period * rates(rng, 1, -2, 0.7).item()
    bins = n_bins, period
    # edges of bins are rounded
    assert_allclose(
        profile.exposure(start, start + length),
        reference.exposure(start, start + length, *bins),
        atol=1e-8 * period,
    )
    change_rate = rates(rng, 1, -1, 1).item() / period
    assert_allclose(
        periodic.stale_time(profile, change_rate, start, start + length, demand=demand),
        reference.periodic_stale_time(
            change_rate, weight, demand, period, start, start + length
        ),
        rtol=1e-9,  # of a quadrature
        atol=1e-12 * period,
    )


@pytest.mark.parametrize("smoothing", [0.0, 2.0])
def test_a_fitted_profile_is_where_em_stands_still(smoothing):
    rng = np.random.default_rng(22)
    interval = rng.uniform(0.1, 1.5, (5, 60))
    history = periodic.simulate_periodic_history(
        np.geomspace(0.5, 3.0, 5), periodic.Profile([3, 1, 2]), interval=interval, rng=1
    )
    fit = periodic.fit_profile(history, n_bins=3, smoothing=smoothing)
    exposure = fit.profile.exposure(history.time - interval, history.time)
    crawls = (
        np.repeat(np.arange(5), 60),
        exposure.reshape(-1, 3),
        history.changed.ravel(),
    )
    found = fit.change_rate, fit.profile.weight
    for one, other in zip(
        reference.periodic_em(*found, *crawls, smoothing), found, strict=True
    ):
        assert_allclose(one, other, rtol=1e-6)  # a search that ends early
    plain = reference.periodic_log_likelihood(*found, *crawls)
    assert fit.log_likelihood == pytest.approx(plain, rel=EXACT)


# ----------------------------------------------------------------------- slots


@pytest.mark.parametrize("seed", range(20))
def test_lagrangian_index_at_whole_slots(seed):
    rng = np.random.default_rng([17, seed])
    rates = 0.4 * np.exp(rng.normal(size=5)), rng.random(5)
    pages = signals.SignalledPages(*rates, 0.0, 0.0)
    policy = policies.LagrangianIndex(pages, bandwidth=1.0)
    state = policy.start(np.zeros(5))
    for i, page in enumerate(state.pages):
        plain, _ = reference.lagrangian_index(
            *(given[i] for given in rates), 1.0, policy.multiplier
        )
        fast = [indices.index(page, state.scalars, float(k)) for k in range(plain.size)]
        # the multiplier is a root, and a page in two minds moves by its error
        assert_allclose(fast, plain, rtol=1e-10, atol=1e-10 * policy.multiplier)


@pytest.mark.parametrize("n_pages", [1, 2, 4])
def test_best_slots_of_equal_pages_are_in_turn(n_pages):
    pages, stale = np.full((2, n_pages), [[0.3], [2.0]]), np.arange(n_pages)
    in_turn = 2.0 * np.sum(1 - np.exp(-0.3 * stale) * -np.expm1(-0.3) / 0.3)
    found = reference.best_slots(*pages, 1.0, [8] * n_pages, 1e-10)
    assert found == pytest.approx(in_turn, abs=1e-9)


# -------------------------------------------------------------------- the page


def test_every_function_is_public_documented_and_used_in_a_test():
    names = [f"plain.{m.name}" for m in iter_modules(reference.__path__)]
    functions = {
        name: member
        for module in map(importlib.import_module, names)
        for name, member in vars(module).items()
        if inspect.isfunction(member) and member.__module__ == module.__name__
        if not module.__name__.endswith("._searching")
    }
    public = {name for name in functions if not name.startswith("_")}
    assert sorted(public) == sorted(reference.__all__)  # each is in one module
    for function in functions.values():
        assert function.__doc__.split("\n")[0].endswith(".")
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    assert all(f"reference.{name}" in tests for name in public)


def test_names_on_the_page_of_formulas_exist_and_no_plain_form_is_missing():
    page = Path(__file__).parents[1] / "docs" / "formulas.md"
    names = set(re.findall(r"`recrawl\.([\w.]+)`", page.read_text()))
    for name in names:
        module, *attributes = name.split(".")
        member = importlib.import_module(f"paperlib.{module}")
        for attribute in attributes:
            member = getattr(member, attribute)
    listed = {n.removeprefix("reference.") for n in names if n.startswith("reference.")}
    assert listed == set(reference.__all__)
