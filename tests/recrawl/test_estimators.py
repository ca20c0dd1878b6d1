"""Estimates from the likelihood: closed forms, plain forms, oracles, invariances."""

import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import digamma, polygamma

from paperlib.processes import simulate_history
from recrawl.log.history import History
from recrawl.rates.dispersion import (
    dispersion,
    pooled_dispersion,
    shrunk_dispersion,
)
from recrawl.rates.likelihood import log_information, log_stderr, mle, spread
from recrawl.rates.prior import PseudoObservations
from tests.plain import log_likelihood
from tests.recrawl import plain as reference

NAN = np.nan
# Nine changes that are known by their ages: the likelihood is that of a gamma
# distribution of shape 10 and rate 4.5.
KNOWN = History(np.full(9, 2.0), np.ones(9), age=np.full(9, 0.5))


def irregular(seed, n_pages=60, decades=1.0):
    """Pages of both kinds of bits; intervals over some decades either way."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 30, n_pages)
    bits = [rng.permutation(np.arange(n) < rng.integers(1, n)) for n in sizes]
    interval = 10.0 ** rng.uniform(-decades, decades, sizes.sum())
    return History(interval, np.concatenate(bits), np.append(0, sizes.cumsum()))


def pages(history):
    interval, changed, offsets = history.ragged()
    return [(interval[a:b], changed[a:b]) for a, b in itertools.pairwise(offsets)]


# ------------------------------------------------- the maximum and where it falls off


@pytest.mark.parametrize(
    ("n", "k", "w"),
    [(2, 1, 1.0), (10, 3, 0.2), (50, 49, 7.0), (1000, 1, 1e-6), (1000, 999, 1e6)],
)
def test_equal_intervals_have_a_closed_form(n, k, w):
    found = mle(History(np.full(n, w), np.arange(n) < k))
    assert found == pytest.approx(np.log(n / (n - k)) / w, rel=1e-10, abs=0)


# Of one tiny interval among huge ones the likelihood is flat over 25 units of log rate.
FLAT = History([1e6] * 5 + [1e-6], [1] * 5 + [0], [0, 6])


@pytest.mark.parametrize(
    "history", [*(irregular(1, decades=decades) for decades in (1.0, 3.0, 6.0)), FLAT]
)
@pytest.mark.parametrize("widened", [1.0, 2.5])
def test_the_maximum_and_the_limits_solve_their_equations(history, widened):
    found = mle(history), *spread(history, mle(history), widened)[:2]
    drop = widened * stats.chi2.ppf(0.95, 1) / 2
    for (w, changed), rate, *ends in zip(pages(history), *found, strict=True):
        with np.errstate(over="ignore"):
            score = (w[changed] / np.expm1(rate * w[changed])).sum()
        assert score == pytest.approx(w[~changed].sum(), rel=1e-9, abs=0)
        assert ends[0] < rate < ends[1]
        top = log_likelihood(rate, w, changed)
        for end in ends:
            at = log_likelihood(end, w, changed)
            assert top - at == pytest.approx(drop, abs=1e-10 * (1 + abs(at)))


@pytest.mark.slow
def test_mle_agrees_with_lifelines():
    history, scales = irregular(5, n_pages=10), []
    with warnings.catch_warnings(action="ignore"):  # of the oracle and its imports
        from lifelines import ExponentialFitter

        for w, changed in pages(history):
            # a changed crawl is left-censored, an unchanged one right-censored
            ends = np.where(changed, 0.0, w), np.where(changed, w, np.inf)
            tight = {"fit_options": {"ftol": 0, "gtol": 1e-12}}
            starts = np.array([0.3, 1.0, 3.0])[:, np.newaxis] * w.mean()
            fits = [
                ExponentialFitter().fit_interval_censoring(
                    *ends, initial_point=x, **tight
                )
                for x in starts
            ]
            scales.append([fit.lambda_ for fit in fits])  # a scale, not a rate
    error = np.abs(mle(history)[:, np.newaxis] * np.array(scales) - 1)
    # some fits stop short at about 1e-6, depending on the start
    assert error.min(axis=1).max() < 1e-8


def test_pages_without_a_root_and_their_substitutes():
    history = History([1.0, 2, 3, 4, 0.5, 7], [0, 0, 1, 1, 1, 0], [0, 2, 2, 5, 6])
    assert_array_equal(mle(history), [0, NAN, np.inf, 0])
    assert_allclose(mle(history, substitute=True), [1 / 3, NAN, 2.0, 1 / 7], rtol=1e-15)
    assert mle(History([4.0, 2.0], [1, 1]), substitute=True) == 0.5
    assert mle(History([3.0], [True], age=[3.0])) == pytest.approx(1 / 3, rel=1e-12)
    assert np.isinf(mle(History([3.0], [True], age=[0.0])))


def test_neither_form_nor_order_nor_unit_nor_other_pages_matter():
    made = simulate_history([[0.3, 1.0, 4.0]], crawl_rate=1.0, n_crawls=40, rng=7)
    dense = History(made.interval, made.changed)
    changed, interval, _ = made.changed, *made.ragged()[::2]
    flat = History(interval * 8, changed.ravel(), np.arange(4) * 40)
    turned = History(dense.interval[:, ::-1], changed[:, ::-1])

    def found(history):
        rate = mle(history)
        low, high, mean = spread(history, rate, 1.5)
        columns = (
            *(rate, low, high, *dispersion(history, rate)),
            *(log_information(history, rate), np.exp(mean)),
        )
        return np.array([np.ravel(column) for column in columns])

    per_time = np.array([1, 1, 1, 0, 0, 0, 1])[:, np.newaxis]
    assert_allclose(found(flat) * 8.0**per_time, found(dense), rtol=1e-10)
    assert_allclose(found(turned)[:, ::-1], found(dense), rtol=1e-9)
    alone = History(dense.interval[0, 1], changed[0, 1])
    assert_allclose(found(alone)[:, 0], found(dense)[:, 1], rtol=1e-12)
    strided = np.repeat(changed, 2, axis=-1)[..., ::2]
    assert_array_equal(mle(History(dense.interval, strided)), mle(dense))


# ------------------------------------------------- ages


def test_known_changes_have_closed_forms():
    rate, information = mle(KNOWN), log_information(KNOWN, mle(KNOWN))
    assert rate == pytest.approx(2.0, rel=1e-12)
    assert information == pytest.approx(9.0, rel=1e-12)
    assert log_stderr(information) == pytest.approx(np.sqrt(polygamma(1, 10)))
    mean = spread(KNOWN, rate)[2]
    assert mean == pytest.approx(digamma(10) - np.log(4.5), abs=1e-5)


def test_estimates_of_each_kind_of_crawl_are_those_of_the_plain_forms():
    rng = np.random.default_rng(5)
    for _ in range(60):
        n, rate = int(rng.integers(2, 40)), 10 ** rng.uniform(-2, 2)
        interval = rng.exponential(1 / rate, n)
        changed, dated = rng.poisson(rate * interval) > 0, rng.random(n) < 0.5
        age = np.where(dated & changed, interval * rng.random(n), NAN)
        history = History(interval, changed, age=age)
        terms = reference.likelihood_terms(interval, changed, age)
        if not terms[0]:
            continue
        best = reference.known_mle(*terms)
        assert mle(history) == pytest.approx(best, rel=1e-9)
        top = reference.known_log_likelihood(best, *terms)
        for end in spread(history, best)[:2]:
            fallen = top - reference.known_log_likelihood(end, *terms)
            assert fallen == pytest.approx(stats.chi2.ppf(0.95, 1) / 2, rel=1e-6)


# ------------------------------------------------- spread of a posterior, dispersion


def test_information_and_dispersion_are_their_plain_forms():
    rng = np.random.default_rng(0)
    for interval, changed in pages(irregular(0, n_pages=100)):
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


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_standard_errors_against_the_posterior_on_a_grid(power):
    rng, errors, off = np.random.default_rng(2), [], []
    rate = np.geomspace(1e-7, 1e5, 3000)
    for n, share in zip(range(40), itertools.cycle([0.0, 0.1, 0.5, 1.0])):
        prior = PseudoObservations(*np.exp(rng.normal(0, 1, 2)))
        crawls = np.exp(rng.normal(0, 2, n)), rng.random(n) < share
        history = prior.observed(History(*crawls, [0, n]))
        w, bits, _ = history.ragged()
        logs = np.array([log_likelihood(x, w, bits) for x in rate])
        # equally likely rates: the density of their logarithm is the rate times it
        weight = rate * np.exp((logs - np.max(logs)) / power)
        weight /= weight.sum()
        mean = weight @ np.log(rate)
        exact = np.sqrt(weight @ (np.log(rate) - mean) ** 2)
        mode = mle(history)
        errors.append(log_stderr(log_information(history, mode), power)[0] / exact - 1)
        off.append(spread(history, mode, power)[2][0] - mean)
    assert np.abs(errors).max() < 0.35  # few crawls at very different intervals
    assert np.abs(np.median(errors)) < 0.03
    assert np.abs(off).max() < 2e-3


def test_what_bits_show_of_the_dispersion():
    one = History(np.ones(40), np.arange(40) == 7)
    for rate in (mle(one), 0.0, np.inf, NAN):
        assert dispersion(one, rate) == (1.0, 0.0)
    turns = History(np.ones(40), np.arange(40) % 2 == 0)
    assert dispersion(turns, mle(turns))[0] < 0.1
    # equal crawls fall into equal blocks, whatever the rounding of their sum
    for n in (40, 60, 84, 120):
        bits = np.arange(n) % 3 == 0
        assert dispersion(History(np.full(n, 0.1), bits), 4.1)[1] == 3.0


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
    assert pooled_dispersion(np.ones(2), np.zeros(2)) == (1.0, np.inf)
    found = shrunk_dispersion(np.full(3, 9.0), np.array([0.0, 3.0, 3.0]), 1.0, 9.0)
    assert_allclose(found, [1.0, 3.0, 3.0])


# ------------------------------------------------- forks

FORKED = """
import multiprocessing
import numpy as np
from recrawl.rates.likelihood import mle
from recrawl.log.history import History

history = History(np.ones((100_000, 3)), np.arange(300_000).reshape(-1, 3) % 7 < 3)
expected = mle(history)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert (pool.map(mle, [history] * 2) == expected).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_of_a_process_that_has_estimated_computes():
    hang = 200
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=hang)
