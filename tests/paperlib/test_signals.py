"""Signals: their parameters, simulated histories, and the fit.

`test_plain.py` compares the same functions with the plain forms.
"""

import math
import re
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paperlib.errors import DegenerateHistoryWarning
from paperlib.estimators import mle
from paperlib.processes import History
from paperlib.signals import (
    SignalFit,
    SignalledPages,
    fit,
    naive_precision_recall,
    simulate_signalled_history,
)

NAMES = "change_rate", "precision", "recall"


def population(seed, n):
    """Pages of figures 10 and 11 of Busa-Fekete et al. (2025)."""
    rng = np.random.default_rng(seed)
    precision, recall = rng.uniform(0.2, 0.95, (2, n))
    return SignalledPages.from_precision(
        1 / rng.uniform(2, 20, n), rng.random(n), precision=precision, recall=recall
    )


def crawled(seed, n, n_crawls, crawls_per_change=1.0):
    """Such pages, and simulated crawls of them."""
    pages = population(seed, n)
    rate = crawls_per_change * pages.change_rate
    return pages, *simulate_signalled_history(
        pages, crawl_rate=rate, n_crawls=n_crawls, rng=seed
    )


def evidence(found, i):
    """alpha and b of a fitted page."""
    with np.errstate(divide="ignore"):
        b = -np.log1p(-found.precision[i])
    return (1 - found.recall[i]) * found.change_rate[i], b


def log_likelihood(alpha, b, interval, changed, n_signals):
    eta = alpha * interval + b * n_signals
    return np.log(-np.expm1(-eta[changed])).sum() - eta[~changed].sum()


# ------------------------------------------------------------------------- parameters


def test_the_parameters_of_section_3():
    pages = SignalledPages(0.7, [1.0, 2.0], 0.5, [0.3, 0.0])
    for field in fields(pages):
        array = getattr(pages, field.name)
        assert array.shape == (2,)
    assert_allclose(pages.gamma, [0.65, 0.35], rtol=1e-14)
    assert_allclose(pages.alpha, 0.35, rtol=1e-14)
    assert_allclose(pages.precision, [0.35 / 0.65, 1.0], rtol=1e-14)
    assert_allclose(pages.beta, [np.log(0.65 / 0.3) / 0.35, np.inf], rtol=1e-14)
    assert_array_equal(SignalledPages(1.0, [1.0, 2.0]).gamma, 0.0)
    pages = SignalledPages(
        [0.7, 0.7, 0.7, 0.0], 1.0, [0, 0, 1, 0.5], [0, 0.3, 0.3, 0.3]
    )
    assert_array_equal(pages.beta, [0.0, 0.0, np.inf, 0.0])
    assert_array_equal(pages.precision, [np.nan, 0.0, 0.7, 0.0])


def test_pages_of_given_precision():
    pages = SignalledPages.from_precision(
        0.7, 1.0, precision=[0.2, 0.8, 1.0], recall=0.5
    )
    assert_allclose(pages.precision, [0.2, 0.8, 1.0], rtol=1e-14)
    assert_array_equal(pages.recall, 0.5)
    silent = SignalledPages.from_precision(0.7, 1.0, precision=[0.1, 0.5], recall=0.0)
    assert_array_equal(silent.false_rate, 0.0)


# ------------------------------------------------------------------------------ naive


def test_naive_tends_to_its_biased_limits():
    """Of figure 10: too high, the more so the rarer the crawls."""
    n, precision, recall = 100_000, 0.4, 0.6
    for w in (1.0, 10.0):
        quality = {"precision": precision, "recall": recall}
        pages = SignalledPages.from_precision(0.1, 1.0, **quality)
        data = simulate_signalled_history(pages, interval=w, n_crawls=n, rng=3)
        alpha, gamma, d = pages.alpha[0], pages.gamma[0], 0.1
        missed = np.expm1(-alpha * w) / np.expm1(-d * w)
        limits = 1 - 0.6 * np.exp(-d * w), 1 - np.exp(-gamma * w) * missed
        found = np.ravel(naive_precision_recall(*data))
        assert_allclose(found, limits, atol=5 / np.sqrt(n * min(gamma, d) * w))
        assert (found > [precision, recall]).all()


# -------------------------------------------------------------------------------- fit


def test_the_fit_recovers_the_truth():
    """Unbiased, and its error falls as the root of the number of crawls."""
    spread = []
    for n in (750, 3000):
        options = 5, 300, n, np.random.default_rng(6).uniform(0.25, 4, 300)
        pages, *data = crawled(*options)
        found = fit(*data)
        inside = found.recall < 1  # at the bound alpha = 0 it is no normal error
        assert inside.mean() > 0.95
        error = [(getattr(found, x) / getattr(pages, x) - 1)[inside] for x in NAMES]
        spread.append(np.std(error, axis=1))
        # bias and skewness are of the order of 1 / n
        assert (np.abs(np.mean(error, axis=1)) < spread[-1] / 3).all()
    assert_allclose(spread[0] / spread[1], 2, rtol=0.25)


@pytest.mark.parametrize("n_crawls", [6, 40, 400])
def test_slopes_vanish_inside_and_point_outwards_at_the_bounds(n_crawls):
    """The log-likelihood is concave: these conditions are a maximum."""
    _, history, n_signals = crawled(n_crawls, 800, n_crawls)
    found, checked = fit(history, n_signals), np.zeros(3, dtype=int)
    for i in range(800):
        alpha, b = evidence(found, i)
        if not np.isfinite(alpha + b) or alpha + b < 1e-9:
            continue
        bits, eta = history.changed[i], alpha * history.interval[i] + b * n_signals[i]
        with np.errstate(divide="ignore", over="ignore"):
            weight = np.where(bits, 1 / np.expm1(eta), -1.0)
        for x, factor in ((alpha, history.interval[i]), (b, n_signals[i])):
            slope = factor @ weight / (np.abs(factor) @ np.abs(weight))
            assert slope <= 1e-9
            assert slope >= -1e-9 or x < 1e-9
        checked += [alpha > 1e-9 and b > 1e-9, alpha < 1e-9, b < 1e-9]
    assert checked[0] > 50
    assert checked.min() > 10 or n_crawls > 6


def test_bounds_and_degenerate_pages():
    interval = np.ones((7, 6))
    interval[4:] = [1.0, 2.0, 1.0, 3.0, 2.0, 1.0]
    changed, n_signals = np.zeros((2, 7, 6), dtype=int)
    changed[1:3] = [1] * 6, [1, 0, 1, 0, 0, 0]
    changed[4:] = [1, 0, 1, 0, 0, 0], [1, 0, 1, 0, 0, 1], [1, 1, 0, 0, 1, 0]
    n_signals[:2] = [1, 0, 0, 2, 0, 0]
    n_signals[4:] = [1, 0, 2, 0, 0, 0], [1, 0, 2, 0, 0, 0], [0, 0, 1, 2, 0, 1]
    # never changed; always; no signal; neither; signals with the changes only, all of
    # them and some of them; signals without changes only
    history, nan = History(interval, changed), np.nan
    found = fit(history, n_signals)
    assert_array_equal(found.precision, [0, nan, nan, nan, 1, 1, 0])
    with pytest.warns(DegenerateHistoryWarning):
        bare, silent = n_signals[5] == 0, mle(history)
    alpha = mle(History(interval[5, bare], changed[5, bare]))
    expected = [0, np.inf, silent[2], 0, 0.3, alpha + 0.3, silent[6]]
    assert_allclose(found.change_rate, expected, rtol=1e-9)
    assert_allclose(found.recall, [nan, nan, 0, nan, 1, 0.3 / (alpha + 0.3), 0], 1e-9)


@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e6, 1e12])
def test_a_short_interval_without_and_a_long_one_with_a_change(ratio):
    """Also where nearly all is explained, so that the log-likelihood is nearly 0."""
    found = fit(History([[1.0, ratio]], [[0, 1]]), [[0, 0]])
    # the slope of the log-likelihood, ratio / expm1(alpha ratio) - 1, is 0
    assert found.change_rate[0] == pytest.approx(math.log1p(ratio) / ratio, rel=1e-12)


def test_signals_in_proportion_to_the_intervals_leave_one_parameter_open():
    """Of the maximum, a line, one point; its sum is that without signals."""
    history = History([[1.0, 2.0, 3.0, 1.0, 2.0]], [[1, 0, 1, 0, 1]])
    found = fit(history, [[1, 2, 3, 1, 2]])
    assert sum(evidence(found, 0)) == pytest.approx(mle(history)[0], rel=1e-6)


def test_short_histories_have_a_maximum():
    rng = np.random.default_rng(10)
    for _ in range(300):
        n = rng.integers(2, 7)
        bits, w = rng.random(n) < 0.6, rng.lognormal(0, 2, n)
        counts = rng.poisson(rng.choice([0.3, 5.0]), n)
        rate = fit(History(w, bits), counts).change_rate
        assert rate == np.inf if bits.all() else 0 <= rate < np.inf


def test_order_units_and_unequal_lengths():
    _, history, n_signals = crawled(11, 30, 100)
    expected, rng = fit(history, n_signals), np.random.default_rng(12)
    order = rng.permutation(30)
    moved = History(history.interval[order], history.changed[order])
    moved = fit(moved, n_signals[order])
    hours = fit(History(24 * history.interval, history.changed), n_signals)
    length = rng.integers(60, 101, 30)
    keep = np.arange(100) < length[:, np.newaxis]
    offsets = np.append(0, np.cumsum(length))
    parts = History(history.interval[keep], history.changed[keep], offsets)
    parts = fit(parts, n_signals[keep])
    for name in SignalFit._fields:
        one, scale = getattr(expected, name), 24 if "rate" in name else 1
        assert_array_equal(getattr(moved, name), one[order])
        assert_allclose(scale * getattr(hours, name), one, rtol=1e-7)
    n = length[7]
    one = fit(
        History(history.interval[7, :n], history.changed[7, :n]), n_signals[7, :n]
    )
    for name in SignalFit._fields:
        assert_allclose(getattr(parts, name)[7], getattr(one, name), 1e-12)
    empty = fit(History([1.0, 2.0, 1.0], [1, 0, 1], [0, 3, 3]), [1, 1, 0])
    assert np.isnan(empty.change_rate[1])


# ----------------------------------------------------------------------------- errors

HISTORY = History([1.0, 2.0, 1.0], [1, 0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SignalledPages(-1.0, 1.0),
         "change_rate must be non-negative and finite, got -1.0 at index (0,)"),
        (lambda: SignalledPages([1.0, 1.0], [1.0] * 3),
         "shapes must fit together, got change_rate (2,), importance (3,), "
         "recall (1,), false_rate (1,)"),
        (lambda: SignalledPages(1.0, 1.0, [0.5, 1.5], 0.1),
         "recall must be in [0, 1], got 1.5 at index (1,)"),
        (lambda: SignalledPages.from_precision(1, 1, precision=[0.5, 0], recall=0.5),
         "precision must be in (0, 1], got 0.0 at index (1,)"),
        (lambda: fit(HISTORY, [1, -1, 0]),
         "n_signals must be non-negative and finite, got -1.0 at index (1,)"),
    ],
)  # fmt: skip
def test_refuses(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
