"""Freshness between crawls whose times are known."""

import numpy as np
import pytest
from scipy import integrate

from paperlib.freshness import interval
from recrawl.science.freshness import crawled
from recrawl.science.processes import History


def test_crawled_against_quadrature():
    history = History([1.0, 2.5, 0.5, 4.0, 9.0], [0, 1, 1, 0, 0], [0, 3, 3, 5])
    rates = np.array([0.3, 0.7, 2.0])
    first, nothing, last = crawled(history, rates)
    for found, rate, lengths in [
        (first, 0.3, [1.0, 2.5, 0.5]),
        (last, 2.0, [4.0, 9.0]),
    ]:
        fresh = [
            integrate.quad(lambda t, rate=rate: np.exp(-rate * t), 0, w)[0]
            for w in lengths
        ]
        assert found == pytest.approx(sum(fresh) / sum(lengths), rel=1e-12)
    assert np.isnan(nothing), "of a page without crawls"


def test_crawled_at_equal_intervals():
    rates = np.array([0.0, 0.2, 5.0])
    history = History(np.full((3, 40), 0.5), np.zeros((3, 40)))
    np.testing.assert_allclose(
        crawled(history, rates), interval(rates, 2.0), rtol=1e-12
    )
