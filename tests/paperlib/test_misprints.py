r"""Misprints of the papers: the corrected formula has the right value, not the print."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import factorial

from paperlib import freshness
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
