"""Histories: ages of changes beside the bits of crawls, and what is refused."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from recrawl.errors import DistrustedAgeWarning
from recrawl.log.history import History
from recrawl.rates.likelihood import mle, spread
from recrawl.rates.prior import PseudoObservations
from tests.recrawl import plain

NAN = np.nan


def test_join_keeps_ages_and_has_nan_where_there_were_none():
    first = History([1.0, 2.0, 4.0], [1, 0, 1], [0, 2, 3], age=[0.5, NAN, 3.0])
    second = History([8.0, 16.0], [1, 1], [0, 1, 2])
    both = first.join(second)
    assert isinstance(both, History)
    assert both.offsets.tolist() == [0, 3, 5]
    assert both.interval.tolist() == [1.0, 2.0, 8.0, 4.0, 16.0]
    assert both.changed.tolist() == [True, False, True, True, True]
    assert_array_equal(both.age, [0.5, NAN, NAN, 3.0, NAN])
    assert_array_equal(second.join(first).age, [NAN, 0.5, NAN, NAN, 3.0])
    assert second.join(second).age is None


def test_pseudo_observations_of_pages_without_a_crawl():
    nothing = History(np.empty(0), np.empty(0, dtype=bool), [0, 0, 0])
    assert_array_equal(mle(nothing), [NAN, NAN])
    prior = PseudoObservations(1.0, 2.0)
    assert_allclose(prior.estimate(nothing), np.log1p(1.0 / 2.0))


# The example of the theory: five ages, then two bits and an unchanged crawl.
INTERVAL = [1.0, 1.0, 2.0, 0.5, 3.0, 0.7, 2.0, 1.5]
CHANGED = [1, 0, 1, 0, 1, 1, 1, 0]
AGE = [0.3, NAN, 1.1, NAN, 0.4, NAN, NAN, NAN]


def test_the_example_of_the_theory():
    first = History(INTERVAL[:5], CHANGED[:5], age=AGE[:5])
    n_known, time, _ = plain.likelihood_terms(INTERVAL[:5], CHANGED[:5], AGE[:5])
    assert (n_known, time) == (3, pytest.approx(3.3, rel=1e-12))
    assert_allclose(mle(first), 0.9090909091, rtol=1e-9)
    found, changed, _, known = History(INTERVAL, CHANGED, age=AGE).likelihood_terms()
    n_known, time, bits = plain.likelihood_terms(INTERVAL, CHANGED, AGE)
    assert_allclose((known.sum(), found[~changed].sum()), (n_known, time), 1e-12)
    assert_array_equal(found[changed], bits)


def test_a_first_fetch_gives_an_estimate():
    history = History([3.0], [True], age=[3.0])
    assert_allclose(mle(history), 1 / 3, rtol=1e-12)
    assert np.isfinite(spread(history, mle(history))).all()


@pytest.mark.parametrize(
    ("changed", "age"), [(True, -0.1), (True, 2.1), (False, 1.9), (True, 2.0001)]
)
def test_what_contradicts_the_bit_is_distrusted(changed, age):
    bits = History([2.0, 1.0, 1.0], [changed, 1, 0])
    with pytest.warns(DistrustedAgeWarning, match="1 of 3 crawls") as caught:
        history = History([2.0, 1.0, 1.0], [changed, 1, 0], age=[age, NAN, NAN])
    assert caught[0].filename == __file__
    assert np.isnan(history.age[0])
    assert mle(history) == mle(bits)


def test_rounding_is_no_contradiction():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        age = [0.1 + 0.2, np.nextafter(0.3, 0)]
        history = History([0.3, 0.3], [1, 0], age=age)
        History([1.0], [False], age=[np.inf])
    assert history.likelihood_terms()[0].tolist() == [0.3, 0.3]


@pytest.mark.parametrize(
    ("age", "message"),
    [
        ([0.5], r"age must have the shape of interval, \(2,\), got \(1,\)"),
        (["old", "new"], "age must be numbers"),
        (np.array([1, 2], "m8[s]"), "age must be numbers, got array"),
    ],
)
def test_bad_ages_are_named(age, message):
    with pytest.raises(ValueError, match=message):
        History([1.0, 2.0], [1, 0], age=age)
