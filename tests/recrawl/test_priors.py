"""The prior of two pseudo-observations: the mode that it gives, how it is learnt."""

import itertools

import numpy as np
from numpy.testing import assert_allclose
from scipy import special

from recrawl.log.history import History
from recrawl.rates.likelihood import mle
from recrawl.rates.prior import PseudoObservations
from tests import plain
from tests.recrawl.made import simulate_history


def test_estimate_takes_both_forms_tends_to_the_mle_and_begins_with_the_mode():
    history = simulate_history([[0.1, 0.3]] * 3, interval=3.0, n_crawls=2000, rng=3)
    found = PseudoObservations(1.0, 1.0).estimate(history)
    assert found.shape == (3, 2)
    assert_allclose(found, mle(history), rtol=3e-3)
    one = History(history.interval[0, 0], history.changed[0, 0])
    assert PseudoObservations(1.0, 1.0).estimate(one) == found[0, 0]
    mode = PseudoObservations(30.0, 200.0).estimate(History([], [], [0, 0]))
    assert_allclose(mode, np.log1p(30.0 / 200.0) / 30.0, rtol=1e-12)


def log_marginal(prior, history, rate):
    """Log-probability of the bits under a prior, by the plain sum over a grid."""
    density = np.log(prior.density(rate) * np.gradient(rate))
    total = 0.0
    for start, end in itertools.pairwise(history.offsets):
        page = history.interval[start:end], history.changed[start:end]
        logs = [plain.log_likelihood(x, *page) for x in rate]
        total += special.logsumexp(logs + density)
    return total


def test_learnt_is_the_maximum_of_the_marginal_likelihood():
    """Also where the likelihood of a page is below the smallest number."""
    rng = np.random.default_rng(5)
    bits = np.concatenate([rng.random(30) < 0.4, np.arange(1500) % 5 > 0])
    interval = np.append(rng.lognormal(0, 1, 30), np.full(1500, 0.3))
    history = History(interval, bits, [0, 9, 15, 20, 30, 1530])
    found = PseudoObservations.learn(history)
    estimates = mle(history, substitute=True)
    rate = np.geomspace(estimates.min() / 10, estimates.max() * 10, 600)
    factors = np.exp([[0, 0], [0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]])
    best, *others = (
        log_marginal(PseudoObservations(*pair), history, rate)
        for pair in factors * [found.changed, found.unchanged]
    )
    assert max(others) < best


def test_ages_and_copies_of_pages():
    two = History([[1.0] * 8] * 2, [[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0, 0]])
    four = History(np.tile(two.interval, (2, 1)), np.tile(two.changed, (2, 1)))
    # an age turns a change into one known change and an unchanged time
    aged = History(two.interval, two.changed, age=np.where(two.changed, 1.0, np.nan))
    found = [PseudoObservations.learn(history) for history in (two, four, aged)]
    pairs = [(prior.changed, prior.unchanged) for prior in found]
    assert_allclose(pairs[1], pairs[0], rtol=1e-5)
    assert pairs[2][1] > pairs[0][1]
