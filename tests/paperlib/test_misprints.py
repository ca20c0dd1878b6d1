r"""Misprints of the papers, beside the corrected formulas and what these must give."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import factorial

from paperlib import freshness
from paperlib.estimators import SA, SAM
from paperlib.signals import SignalledPages

# ---- Busa-Fekete et al. (2025), appendix A

PAGE = SignalledPages(0.7, 1.0, 0.5, 0.3)
ALPHA, GAMMA, BETA = (float(np.squeeze(v)) for v in (PAGE.alpha, PAGE.gamma, PAGE.beta))
THRESHOLD = 3 + 2 * BETA


def psi(threshold):
    """Mean time between crawls."""
    return float(np.squeeze(freshness.mean_crawl_interval(threshold, PAGE)))


def w(threshold):
    """Mean fresh time between crawls."""
    return float(np.squeeze(freshness.fresh_time(threshold, PAGE)))


def slope(function, x, step=1e-5):
    """Central difference."""
    return (function(x + step) - function(x - step)) / (2 * step)


def test_the_crawl_value_has_a_factor_f():
    # freshness per unit of time is w f, a function of the crawl rate f = 1 / psi
    value = slope(lambda x: w(x) / psi(x), THRESHOLD) / slope(
        lambda x: 1 / psi(x), THRESHOLD
    )
    f, f_slope = 1 / psi(THRESHOLD), slope(lambda x: 1 / psi(x), THRESHOLD)
    corrected = w(THRESHOLD) + f * slope(w, THRESHOLD) / f_slope
    printed = w(THRESHOLD) + slope(w, THRESHOLD) / f_slope
    assert corrected == pytest.approx(value, rel=1e-6)
    assert freshness.crawl_value(THRESHOLD, 0, PAGE)[0] == pytest.approx(
        value, rel=1e-6
    )
    assert abs(printed / value - 1) > 0.3
    # printed for 1 / f'
    assert f / f_slope == pytest.approx(
        -psi(THRESHOLD) / slope(psi, THRESHOLD), rel=1e-6
    )


def test_the_first_signal_is_late_after_the_threshold_less_i_beta():
    i = int(THRESHOLD // BETA)
    rest = THRESHOLD - i * BETA
    early = quad(
        lambda t: GAMMA * np.exp(-GAMMA * t) * (t + psi(THRESHOLD - BETA - t)), 0, rest
    )[0]
    corrected, printed = (
        early + np.exp(-GAMMA * late) * (rest + psi(i * BETA)) for late in (rest, BETA)
    )
    assert corrected == pytest.approx(psi(THRESHOLD), rel=1e-8)
    assert abs(printed / psi(THRESHOLD) - 1) > 0.01


@pytest.mark.parametrize(("rate", "right"), [(GAMMA, True), (0.3, False)])
def test_the_slope_of_the_fresh_time_has_the_rate_of_signals_as_printed(rate, right):
    i = np.arange(int(THRESHOLD // BETA) + 1)
    rest = THRESHOLD - i * BETA
    exponent = ALPHA * THRESHOLD + GAMMA * rest
    printed = np.sum((rate * rest) ** i / factorial(i) * np.exp(-exponent))
    assert np.isclose(printed, slope(w, THRESHOLD), rtol=1e-6) == right


# ---- footnote 2 of the same, which leaves several sources to the reader


def test_signals_of_two_sources_multiply_the_probability_of_freshness():
    # Where a change is signalled by one source at most, a signal of source j is false
    # with probability nu_j / gamma_j, whatever the others say: eq. (1) has a factor
    # for each source. Simulated: the copy is fresh if no change has come.
    rng = np.random.default_rng(1)
    change, recall, false, n = 0.5, np.array([0.4, 0.3]), np.array([0.2, 0.6]), 400_000
    signalled = rng.poisson(change * recall, (n, 2))  # changes that one source signals
    unsignalled = rng.poisson(change * (1 - recall.sum()), n)
    signals = signalled + rng.poisson(false, (n, 2))
    fresh = (signalled.sum(axis=1) + unsignalled) == 0
    seen = (signals == [1, 2]).all(axis=1)
    factor = false / (recall * change + false)
    predicted = np.exp(-change * (1 - recall.sum())) * np.prod(factor ** [1, 2])
    error = np.sqrt(predicted * (1 - predicted) / seen.sum())
    assert abs(fresh[seen].mean() - predicted) < 4 * error


# ---- Avrachenkov, Patil, Thoppe (2020, 2022)


def test_squared_steps_have_a_finite_sum_only_above_one_half():
    k = np.arange(1.0, 1e6 + 1)
    for exponent, finite in ((0.4, False), (0.5, False), (0.6, True), (1.0, True)):
        sums = np.cumsum(k ** (-2 * exponent))[[10**2 - 1, 10**6 - 1]]
        assert (sums[1] < 2 * sums[0]) == finite
    # the rate of the mean error, k^(-exponent / 2), holds below one half too
    error = SA(3.0, step=0.3).moments(5.0, [100, 1000])[1]
    assert np.log10(error[0] / error[1]) == pytest.approx(0.15, abs=0.02)


def test_the_printed_1_1098_is_a_rate():
    hours = 153 * 24
    assert 4043 / hours == pytest.approx(1.1098, rel=0.01)
    assert hours / 4043 == pytest.approx(1 / 1.1098, rel=0.01)
    crawls = np.array([0.5, 0.1]) * hours
    deviations = ([1723, 340] - crawls) / np.sqrt(crawls)
    np.testing.assert_allclose(deviations, [-2.64, -1.42], atol=0.01)


@pytest.mark.parametrize(("rate", "crawl_rate"), [(500.0, 10.0), (50.0, 10.0)])
def test_steps_of_one_over_k_follow_the_page(rate, crawl_rate):
    share = crawl_rate / (rate + crawl_rate)
    for estimator in (SA(crawl_rate, step=1.0), SAM(crawl_rate, step=1.75, momentum=1)):
        error = estimator.moments(rate, [300, 3000])[1]
        assert np.log10(error[0] / error[1]) == pytest.approx(share, rel=0.05)


def test_iterates_grow_where_the_damping_dies_out():
    k = np.arange(30, 3001, 30)
    for eta, beta, grows in ((1.4, 0.6, False), (1.9, 0.5, True), (1.9, 0.6, True)):
        error = SAM(3.0, step=eta, momentum=beta).moments(5.0, k)[1]
        assert (
            (error[k > 300].max() > error[k <= 300].max()) == grows == (eta > 1 + beta)
        )
