"""The prior of two pseudo-observations: its density, its mode, how it is learnt."""

import decimal
import functools
import itertools
import operator
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from paperlib.processes import simulate_history
from recrawl.log.history import History
from recrawl.rates.likelihood import mle
from recrawl.rates.prior import PseudoObservations
from tests import plain


def test_density():
    rate = np.geomspace(1e-6, 30, 4000)
    for lengths in (0.5, 0.5), (1.0, 60.0), (3.0, 0.8):
        density = PseudoObservations(*lengths).density(rate)
        expected = [plain.prior_density(x, *lengths) for x in rate]
        assert_allclose(density, expected, rtol=1e-10)
        assert np.trapezoid(density, rate) == pytest.approx(1, abs=1e-4)


def test_estimate_is_the_mode_of_the_posterior():
    prior = PseudoObservations(30.0, 200.0)
    history = History([5.0, 80.0, 3.0, 3.0, 700.0], [0, 1, 1, 1, 0], [0, 2, 2, 4, 5])
    found = prior.estimate(history)
    for i, (start, end) in enumerate(itertools.pairwise(history.offsets)):
        w, z = history.interval[start:end], history.changed[start:end]

        def loss(rate, w=w, z=z):
            return -np.log(prior.density(rate)) - plain.log_likelihood(rate, w, z)

        best = optimize.minimize_scalar(
            loss, bounds=(1e-6, 1.0), options={"xatol": 1e-12}, method="bounded"
        ).x
        assert found[i] == pytest.approx(best, rel=1e-5)
    mode = np.log1p(30.0 / 200.0) / 30.0
    assert found[1] == pytest.approx(mode, rel=1e-12), "of a page not crawled yet"


def test_estimate_takes_both_forms_and_tends_to_the_mle():
    made = simulate_history([[0.1, 0.3]] * 3, interval=3.0, n_crawls=2000, rng=3)
    history = History(made.interval, made.changed)
    found = PseudoObservations(1.0, 1.0).estimate(history)
    assert found.shape == (3, 2)
    assert_allclose(found, mle(history), rtol=3e-3)
    one = History(history.interval[0, 0], history.changed[0, 0])
    assert PseudoObservations(1.0, 1.0).estimate(one) == found[0, 0]


def marginals(priors, history, rate):
    """Log marginal likelihoods on a grid, with pages of 60 digits."""

    @functools.cache
    def unchanged(interval):
        return [(-Decimal(float(x * interval))).exp() for x in rate]

    weights = [p.density(rate) * np.gradient(rate) for p in priors]
    weights = [[Decimal(float(x)) for x in weight] for weight in weights]
    interval, changed, offsets = history.ragged()
    total = [Decimal(0)] * len(priors)
    with decimal.localcontext(prec=60):
        for start, end in itertools.pairwise(offsets.tolist()):
            page = [Decimal(1)] * len(rate)
            for w, z in zip(interval[start:end], changed[start:end], strict=True):
                chance = [1 - q for q in unchanged(w)] if z else unchanged(w)
                page = list(map(operator.mul, page, chance))
            for i, weight in enumerate(weights):
                total[i] += sum(map(operator.mul, page, weight)).ln()
    return list(map(float, total))


def test_learnt_is_the_maximum_of_the_marginal_likelihood():
    """Also where the likelihood of a page is below the smallest number."""
    rng = np.random.default_rng(4)
    rate = np.geomspace(1e-3, 30, 40)
    bits = np.concatenate([rng.random(30) < 0.4, np.arange(1500) % 5 > 0])
    interval = np.append(rng.lognormal(0, 1, 30), np.full(1500, 0.3))
    history = History(interval, bits, [0, 9, 9, 20, 30, 1530])
    found = PseudoObservations.learn(history, rate)
    near = [(1, 1), (1.05, 1), (0.95, 1), (1, 1.05), (1, 0.95)]
    priors = [
        PseudoObservations(found.changed * a, found.unchanged * b) for a, b in near
    ]
    best, *others = marginals(priors, history, rate)
    assert max(others) < best


@pytest.mark.slow
def test_learn_finds_the_pair_from_one_bit_a_page():
    prior, rng, n = PseudoObservations(300.0, 200.0), np.random.default_rng(9), 30_000
    # the sum of two exponential variables
    pages = rng.exponential(1 / 200.0, n) + rng.exponential(1 / 500.0, n)
    interval = rng.lognormal(5, 1, n)
    bits = rng.random(n) < -np.expm1(-pages * interval)
    rate = np.geomspace(1e-6, 1, 400)
    found = PseudoObservations.learn(History(interval, bits, np.arange(n + 1)), rate)

    def log_marginal(candidate):
        weight = candidate.density(rate) * np.gradient(rate)
        unchanged = np.exp(-np.outer(interval, rate)) @ weight
        return np.log(np.where(bits, weight.sum() - unchanged, unchanged)).sum()

    # twice the difference has the distribution of chi2 with two degrees of
    # freedom, if and only if the right likelihood is maximised
    gain = log_marginal(found) - log_marginal(prior)
    assert 0 <= 2 * gain < stats.chi2.isf(1e-4, 2)
    assert log_marginal(found) > log_marginal(PseudoObservations(300.0, 300.0)) + 100


def test_ages_and_copies_of_pages():
    two = History([[1.0] * 8] * 2, [[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0, 0]])
    four = History(np.tile(two.interval, (2, 1)), np.tile(two.changed, (2, 1)))
    # an age turns a change into one known change and an unchanged time
    aged = History(two.interval, two.changed, age=np.where(two.changed, 1.0, np.nan))
    rate = np.geomspace(1e-3, 30.0, 300)
    found = [PseudoObservations.learn(h, rate) for h in (two, four, aged)]
    pairs = [(prior.changed, prior.unchanged) for prior in found]
    assert_allclose(pairs[1], pairs[0], rtol=1e-5)
    assert pairs[2][1] > pairs[0][1]
