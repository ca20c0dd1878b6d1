"""The next interval, and crawls whose intervals follow the estimate."""

import re
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paperlib.errors import DegenerateHistoryWarning
from paperlib.estimators import LLN, mle, path
from paperlib.policies import next_interval, simulate_sequential_history
from paperlib.priors import PseudoObservations
from paperlib.processes import simulate_history
from tests import plain

# ------------------------------ the next interval


@pytest.mark.parametrize("factor", [0.8, 1.0, 3.0])
def test_the_next_interval_is_the_plain_one(factor):
    rate = np.array([0.0, 1e-9, 0.011, 0.3, 2.0, 49.0, 1e9, np.inf])
    limits = 0.02, 80.0
    found = next_interval(rate, factor=factor, limits=limits)
    expected = [
        plain.adaptive_intervals([True, True], lambda *_: one, 1.0, factor, limits)[1]  # noqa: B023
        for one in rate
    ]
    assert_allclose(found, expected, rtol=1e-15)
    assert found[[0, 1]].tolist() == [80.0, 80.0]
    assert found[[-2, -1]].tolist() == [0.02, 0.02]
    assert_allclose(found[3:5], [factor / 0.3, factor / 2.0], rtol=1e-15)


def test_the_next_interval_is_the_estimated_period_by_default():
    assert_allclose(next_interval([0.5, 4.0], limits=(0.1, 9.0)), [2.0, 0.25])
    # in another unit of time
    hours = next_interval([0.5 / 24, 4.0 / 24], limits=(2.4, 216.0))
    assert_allclose(hours, [48.0, 6.0])


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_the_factor_of_the_next_interval_is_positive(factor):
    with pytest.raises(ValueError, match="factor must be positive and finite, got"):
        next_interval(1.0, factor=factor, limits=(0.1, 9.0))


# ------------------------------ simulated crawls

SEQUENTIAL = {"initial": 2.0, "limits": (0.1, 50.0), "n_crawls": 12}
PRIOR = PseudoObservations(1.0, 2.0)


def test_the_next_interval_may_follow_the_bit_just_seen():
    def rule(history):
        return 1 / (history.interval * np.where(history.changed, 0.8, 1.2))[..., -1]

    options = {"initial": 1.0, "limits": (0.1, 8.0), "n_runs": 5, "rng": 1}
    history, _ = simulate_sequential_history(
        [0.0, 0.2, 0.7, 1e9], rule, n_crawls=300, **options
    )
    bits, interval = history.changed, history.interval
    after = np.clip(interval * np.where(bits, 0.8, 1.2), 0.1, 8.0)[..., :-1]
    assert_allclose(interval[..., 1:], after, rtol=1e-15)
    assert (interval[..., 0] == 1.0).all()
    assert bits.sum(axis=-1)[:, [0, 3]].tolist() == [[0, 300]] * 5
    assert interval[:, [0, 3], -1].tolist() == [[8.0, 0.1]] * 5


def plain_mode(interval, changed):
    """Posterior mode with the two pseudo-observations of `PRIOR`."""
    return plain.mle(np.append([1.0, 2.0], interval), np.append([True, False], changed))


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (partial(mle, substitute=True), plain.mle_substitute),
        (PRIOR.estimate, plain_mode),
    ],
)
def test_sequential_intervals_are_the_plain_ones(estimate, expected):
    history, estimates = simulate_sequential_history(
        [0.05, 0.5, 3.0], estimate, factor=0.8, **SEQUENTIAL, n_runs=2, rng=1
    )
    assert history.shape == (2, 3)
    for i in np.ndindex(history.shape):
        bits, interval = history.changed[i], history.interval[i]
        wanted = plain.adaptive_intervals(bits, expected, 2.0, 0.8, (0.1, 50.0))
        assert_allclose(interval, wanted, rtol=1e-10)
        found = [expected(interval[:k], bits[:k]) for k in range(1, 13)]
        assert_allclose(estimates[i], found, rtol=1e-10)


def test_sequential_takes_the_limits_where_the_estimate_is_0_or_inf():
    with pytest.warns(DegenerateHistoryWarning):
        history, estimates = simulate_sequential_history(
            [0.0, 1e9], mle, **SEQUENTIAL, rng=2
        )
    assert estimates.tolist() == [[0.0] * 12, [np.inf] * 12]
    assert history.interval[:, 1:].tolist() == [[50.0] * 11, [0.1] * 11]


def test_sequential_bits_are_those_of_a_poisson_page():
    """Whatever chose the intervals, bits minus probabilities are a martingale."""
    rates = np.full(20_000, 0.3)
    history, _ = simulate_sequential_history(rates, PRIOR.estimate, **SEQUENTIAL, rng=3)
    q = -np.expm1(-0.3 * history.interval)
    error = np.abs((history.changed - q).sum(axis=0))
    assert (error < 5 * np.sqrt((q * (1 - q)).sum(axis=0))).all()


def test_sequential_takes_an_online_estimator_by_its_path():
    def estimate(history):
        return path(LLN(crawl_rate=1.0), history)[..., -1]

    history, estimates = simulate_sequential_history(
        [0.3, 2.0], estimate, **SEQUENTIAL, n_runs=3, rng=4
    )
    assert_array_equal(estimates, path(LLN(crawl_rate=1.0), history))


@pytest.mark.parametrize("n_runs", [2, 5])
def test_run_i_depends_on_the_seed_and_i_alone(n_runs):
    simulate = partial(
        simulate_sequential_history, [0.3, 2.0], PRIOR.estimate, **SEQUENTIAL
    )
    runs, estimates = simulate(n_runs=n_runs, rng=6)
    for i, stream in enumerate(np.random.default_rng(6).spawn(n_runs)):
        alone, estimated = simulate(rng=stream)
        assert_array_equal(runs.interval[i], alone.interval)
        assert_array_equal(runs.changed[i], alone.changed)
        assert_array_equal(estimates[i], estimated)


def test_an_estimate_that_does_not_learn_crawls_at_fixed_intervals():
    def constant(history):
        return np.full(history.shape, 0.5)

    options = {"n_runs": 4, "rng": 3}
    fixed, _ = simulate_sequential_history(
        [0.3, 2.0], constant, **SEQUENTIAL, **options
    )
    given = simulate_history([0.3, 2.0], interval=2.0, n_crawls=12, **options)
    assert_array_equal(fixed.interval, given.interval)
    assert_array_equal(fixed.changed, given.changed)


GOOD = {"change_rate": 1.0, "estimate": lambda history: 0.5, **SEQUENTIAL}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"change_rate": [1, -1]}, "change_rate must be non-negative and"),
        ({"initial": [1, 90]}, "initial must be in [0.1, 50], got 90.0 at"),
        ({"limits": (8.0, 0.1)}, "initial must be in [8, 0.1], got 2.0"),
        ({"factor": 0.0}, "factor must be positive and finite, got 0.0"),
        (
            {"estimate": lambda history: np.nan},
            "interval must be positive and finite, got nan",
        ),
    ],
)
def test_sequential_refuses(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        simulate_sequential_history(**GOOD | arguments)
