"""Fisher information, asymptotic variances, blocks of Lemma 2, radius of Lemma 3."""

import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paperlib.estimators import (
    LLN,
    block_share,
    confidence_radius,
    disjoint_blocks,
    fisher_information,
    mle,
    moment_matching,
)
from paperlib.processes import History, simulate_history
from tests import plain


def random_pairs(n=40):
    """Pairs of a change rate and a crawl rate."""
    rng = np.random.default_rng(3)
    return [(5.0, 3.0), (0.5, 0.25), *10 ** rng.uniform(-3, 3, (n, 2))]


def test_information_is_the_plain_one():
    for d, p in random_pairs():
        expected = plain.fisher_information(d, p)  # by quadrature
        assert fisher_information(d, crawl_rate=p) == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "p"), [(5.0, 3.0), (0.5, 0.25)])
def test_estimates_have_their_asymptotic_variances(d, p):
    n, runs = 600, 6000
    history = simulate_history(d, crawl_rate=p, n_crawls=n, n_runs=runs, rng=10)
    expected = plain.asymptotic_variances(d, p, 1.0)
    # five standard errors of a variance, and 10 / n for the next order in 1 / n
    tolerance = 5 * np.sqrt(2 / runs) + 10 / n
    for name, estimator in (("MLE", mle), ("MM", moment_matching)):
        variance = estimator(history).var() * n
        assert variance == pytest.approx(expected[name], rel=tolerance)
    _, root = LLN(p).moments(d, [100_000])
    assert root[0] ** 2 * 100_000 == pytest.approx(expected["LLN"], rel=1e-3)


# ---------------------------------------------- the constructive part of Lemma 2


def test_blocks_are_disjoint_and_have_a_mass_of_at_least_1():
    mass = np.random.default_rng(8).uniform(0, 0.7, 500)
    borders = disjoint_blocks(mass)
    blocks = [mass[i:j] for i, j in itertools.pairwise(borders)]
    assert borders[0] == 0
    assert all(block.sum() >= 1 > block[:-1].sum() for block in blocks)
    assert mass[borders[-1] :].sum() < 1  # no block is missing
    assert list(disjoint_blocks([0.5, 0.25])) == [0]
    with pytest.raises(ValueError, match="mass must be"):
        disjoint_blocks([0.5, -1.0])


def test_share_of_blocks_of_bits_and_of_probabilities():
    borders = np.array([0, 2, 3, 5])
    absent = np.array([[1, 0, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0]], dtype=bool)
    assert_allclose(block_share(absent, borders), [1 / 3, 0.0])
    q = np.array([0.9, 0.5, 0.2, 0.4, 1.0, 0.0])
    expected = 1 - np.mean([0.9 * 0.5, 0.2, 0.4])
    assert block_share(q, borders) == pytest.approx(expected)


@pytest.mark.parametrize("long", [False, True])
def test_the_statistic_is_strictly_monotone_and_comes_to_its_expectation(long):
    n, rates, runs = np.arange(1, 3001), np.linspace(0.5, 1.5, 21), 400
    w = 0.5 * np.log(n + 1) if long else n**-0.5
    borders = disjoint_blocks(np.exp(-w) if long else w)

    def expected(rate):
        q = np.exp(-rate * w)
        return block_share(1 - q if long else q, borders)

    steps = np.diff([expected(rate) for rate in rates])
    assert (steps < 0).all() if long else (steps > 0).all()
    changed = simulate_history(1.0, interval=w, n_runs=runs, rng=9).changed
    found = block_share(changed if long else ~changed, borders)
    error = found.std() / np.sqrt(runs)
    assert abs(found.mean() - expected(1.0)) < 4 * error
    n_blocks = borders.size - 1
    p = expected(1.0)
    assert found.var() <= 1.3 * p * (1 - p) / n_blocks  # blocks are independent


# ------------------------------------------------------------------------ Lemma 3


def test_radius_is_the_plain_one_and_has_a_closed_form_at_equal_intervals():
    n, w, b, level = 40, 0.3, 1.5, 0.9
    closed = np.exp(b * w) / w * np.sqrt(np.log(2 / (1 - level)) / (2 * n))
    history = History(np.full(n, w), np.arange(n) % 2)
    found = confidence_radius(history, max_rate=b, level=level)
    assert found == pytest.approx(closed, rel=1e-10)
    rng, offsets = np.random.default_rng(7), [0, 5, 5, 17, 40]
    interval = rng.exponential(size=40)
    history = History(interval, rng.random(40) < 0.5, offsets)
    found = confidence_radius(history, max_rate=b, level=level)
    expected = [
        plain.confidence_radius(interval[i:j], b, level) if j > i else np.nan
        for i, j in itertools.pairwise(offsets)
    ]
    assert_allclose(found, expected, rtol=1e-12)
    scaled = History(interval * 60, history.changed, offsets)
    there = confidence_radius(scaled, max_rate=b / 60, level=level)
    assert_allclose(there * 60, expected, rtol=1e-10)
    assert found[0] < confidence_radius(history, max_rate=b, level=1.0)[0] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("crawls", [{"crawl_rate": 1.0}, {"interval": 0.8}])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_lemma_3_covers_at_least_as_promised(crawls, level):
    rate, b, runs = 0.9, 1.0, 4000
    history = simulate_history(rate, **crawls, n_crawls=60, n_runs=runs, rng=12)
    error = np.abs(moment_matching(history).clip(0.1, b) - rate)
    covered = error <= confidence_radius(history, max_rate=b, level=level)
    assert covered.mean() >= level - 5 * np.sqrt(level * (1 - level) / runs)


GOOD = History([1.0, 2.0], [True, False])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fisher_information(0.0, crawl_rate=1.0), "change_rate must be"),
        (lambda: fisher_information(1.0, crawl_rate=0.0), "crawl_rate must be"),
        (lambda: confidence_radius(GOOD, max_rate=0.0), "max_rate must be positive"),
        (lambda: confidence_radius(GOOD, max_rate=1.0, level=1.5), "level must be in"),
    ],
)
def test_refusals_name_the_argument(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
