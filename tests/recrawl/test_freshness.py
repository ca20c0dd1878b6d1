"""Freshness of pages between their crawls: quadrature, equal intervals."""

import numpy as np
import pytest
from scipy import integrate

from paperlib.freshness import interval
from recrawl.log.history import History
from recrawl.rates import freshness
from tests.recrawl.made import simulate_history


def test_crawled_against_quadrature():
    history = History([1.0, 2.5, 0.5, 4.0, 9.0], [0, 1, 1, 0, 0], [0, 3, 3, 5])
    rates = np.array([0.3, 0.7, 2.0])
    got = freshness.crawled(history, rates)
    pages = np.split(history.interval, history.offsets[1:-1])
    for value, rate, gaps in zip(got, rates, pages, strict=True):
        if not gaps.size:
            assert np.isnan(value)
            continue
        fresh = [integrate.quad(lambda t, r=rate: np.exp(-r * t), 0, w) for w in gaps]
        assert value == pytest.approx(sum(f for f, _ in fresh) / gaps.sum(), rel=1e-12)


def test_crawled_at_equal_intervals_and_in_both_forms():
    history = simulate_history([0.2, 5.0], interval=0.5, n_crawls=40, n_runs=3, rng=1)
    got = freshness.crawled(history, [0.2, 5.0])
    assert got.shape == (3, 2)
    np.testing.assert_allclose(got - interval([0.2, 5.0], 2.0), 0.0, atol=1e-12)
    ragged = freshness.crawled(History(*history.ragged()), np.tile([0.2, 5.0], 3))
    np.testing.assert_allclose(ragged, got.ravel(), rtol=1e-12)
