"""Histories: ages and counts of crawls beside their bits, and what is refused."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from recrawl.errors import DistrustedAgeWarning
from recrawl.log.history import History
from recrawl.rates.likelihood import mle, spread
from recrawl.rates.prior import PseudoObservations
from tests.recrawl import plain

NAN = np.nan

# ---------------------------------------------------------------- join


def test_join_keeps_ages_and_counts_and_has_nan_where_there_were_none():
    first = History([1.0, 2.0, 4.0], [1, 0, 1], [0, 2, 3], age=[0.5, NAN, 3.0])
    second = History([8.0, 16.0], [1, 1], [0, 1, 2], count=[2, NAN])
    both = first.join(second)
    assert isinstance(both, History)
    assert both.offsets.tolist() == [0, 3, 5]
    assert both.interval.tolist() == [1.0, 2.0, 8.0, 4.0, 16.0]
    assert both.changed.tolist() == [True, False, True, True, True]
    assert_array_equal(both.age, [0.5, NAN, NAN, 3.0, NAN])
    assert_array_equal(both.count, [NAN, NAN, 2, NAN, NAN])
    bits = History([1.0], [True]).join(History([2.0], [False]))
    assert bits.age is None
    assert bits.count is None


def test_pseudo_observations_of_pages_without_a_crawl():
    nothing = History(np.empty(0), np.empty(0, dtype=bool), [0, 0, 0])
    assert_array_equal(mle(nothing), [NAN, NAN])
    prior = PseudoObservations(1.0, 2.0)
    assert_allclose(prior.estimate(nothing), np.log1p(1.0 / 2.0))


# ------------------------------------------------------------------ ages and counts

# The example of the theory: five ages, then two bits, an unchanged crawl, a count.
INTERVAL = [1.0, 1.0, 2.0, 0.5, 3.0, 0.7, 2.0, 1.5, 2.5]
CHANGED = [1, 0, 1, 0, 1, 1, 1, 0, 1]
AGE = [0.3, NAN, 1.1, NAN, 0.4, NAN, NAN, NAN, NAN]
COUNT = [NAN] * 8 + [3.0]


def example(n=9):
    """The first n crawls of the example."""
    return History(INTERVAL[:n], CHANGED[:n], age=AGE[:n], count=COUNT[:n])


def terms(history):
    """Plain terms of the likelihood of one page."""
    nothing = np.full(history.interval.shape, NAN)
    age, count = (nothing if a is None else a for a in (history.age, history.count))
    return plain.likelihood_terms(history.interval, history.changed, age, count)


def mixed_histories(n=60):
    """Random histories of one page in which each crawl tells something else."""
    rng = np.random.default_rng(5)
    for _ in range(n):
        n_crawls, rate = int(rng.integers(2, 40)), 10 ** rng.uniform(-2, 2)
        interval = rng.exponential(1 / rate, n_crawls)
        count = rng.poisson(rate * interval)
        newest = interval * rng.random(n_crawls)
        kind = rng.integers(0, 4, n_crawls)  # bit, age, count, both
        yield History(
            interval,
            count > 0,
            age=np.where((kind % 2 == 1) & (count > 0), newest, NAN),
            count=np.where(kind >= 2, count, NAN),
        )


def test_the_example_of_the_theory():
    assert terms(example(5))[0] == 3
    assert_allclose(terms(example(5))[1], 3.3, rtol=1e-12)
    assert_allclose(mle(example(5)), 0.9090909091, rtol=1e-9)
    assert_allclose(mle(example()), 0.9628987881, rtol=1e-9)
    limits = spread(example(), mle(example()))[:2]
    assert_allclose(limits, (0.4353474412, 1.8197896575), rtol=1e-9)


def test_estimates_from_ages_and_counts_are_those_of_the_plain_forms():
    for history in mixed_histories():
        n_known, time, bits = terms(history)
        flat, changed, _, known = history.likelihood_terms()
        assert_allclose((known.sum(), flat[~changed].sum()), (n_known, time), 1e-12)
        assert_array_equal(np.sort(flat[changed]), np.sort(bits))
        if n_known:
            wanted = plain.known_mle(n_known, time, bits)
            assert_allclose(mle(history), wanted, rtol=1e-9)
            drop = stats.chi2.ppf(0.95, 1) / 2
            top = plain.known_log_likelihood(wanted, n_known, time, bits)
            for limit in spread(history, wanted)[:2]:
                at = plain.known_log_likelihood(limit, n_known, time, bits)
                assert_allclose(top - at, drop, rtol=1e-6)


def test_a_first_fetch_gives_an_estimate():
    history = History([3.0], [True], age=[3.0])
    assert_allclose(mle(history), 1 / 3, rtol=1e-12)
    assert np.isfinite(spread(history, mle(history))).all()


@pytest.mark.parametrize(
    ("changed", "age", "count"),
    [
        (True, -0.1, NAN),
        (True, 2.1, NAN),
        (False, 1.9, NAN),
        (False, NAN, 1),
        (True, NAN, 0),
        (True, 2.1, 3),
        (True, 2.0001, NAN),
    ],
)
def test_what_contradicts_the_bit_is_distrusted(changed, age, count):
    bits = History([2.0, 1.0, 1.0], [changed, 1, 0])
    with pytest.warns(DistrustedAgeWarning, match="1 of 3 crawls") as caught:
        history = History(
            [2.0, 1.0, 1.0], [changed, 1, 0], age=[age, NAN, NAN], count=[count, NAN, 0]
        )
    assert caught[0].filename == __file__
    assert np.isnan([history.age[0], history.count[0]]).all()
    assert mle(history) == mle(bits)


def test_rounding_is_no_contradiction():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = History(
            [0.3, 0.3], [1, 0], age=[0.1 + 0.2, np.nextafter(0.3, 0)], count=[1, 0]
        )
        History([1.0], [False], age=[np.inf])
    assert history.likelihood_terms()[0].tolist() == [0.3, 0.3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"age": [0.5]}, r"age must have the shape of interval, \(2,\), got \(1,\)"),
        ({"count": [[1, 0]]}, r"count must have the shape of interval, \(2,\), got"),
        ({"count": [1.5, 0]}, "count must be a whole number, at least 0, or NaN"),
        ({"count": [-1, 0]}, "count must be a whole number, at least 0, or NaN"),
        ({"count": [np.inf, 0]}, "got inf at index"),
        ({"age": ["old", "new"]}, "age must be numbers"),
        ({"age": np.array([1, 2], "m8[s]")}, "age must be numbers, got array"),
    ],
)
def test_bad_ages_and_counts_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        History([1.0, 2.0], [1, 0], **given)
