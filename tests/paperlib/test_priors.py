"""Priors: two pseudo-observations, posteriors on a grid, fits, stand-in pages."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from paperlib.errors import ConvergenceError, DegeneratePriorWarning
from paperlib.estimators import mle
from paperlib.priors import PseudoObservations, grid_posterior
from paperlib.processes import History, simulate_history
from tests import plain

PAIRS = [(0.5, 0.5), (1.0, 60.0), (7.7e3, 271.0), (1e-6, 2.0), (3.0, 1e-3)]
each_pair = pytest.mark.parametrize(("a", "b"), PAIRS)
HOURS = np.arange(1.0, 365 * 24 + 1)


def population(n_pages, seed):
    """Change rates with mean times between changes of 17.5 days, lognormal."""
    period = 17.5 * 24 * np.random.default_rng(seed).lognormal(0.0, 1.0, n_pages)
    return 1 / np.clip(period, 2.0, 365 * 24)


def histories(history):
    """Intervals and bits of each page."""
    interval, changed, offsets = history.ragged()
    for start, stop in itertools.pairwise(offsets):
        yield interval[start:stop], changed[start:stop]


@pytest.fixture(scope="module")
def ragged():
    """Some 40 pages of up to 9 crawls, some of none, at very different intervals."""
    rng = np.random.default_rng(4)
    count = rng.integers(0, 10, 40)
    interval, bits = rng.lognormal(0, 2, count.sum()), rng.random(count.sum()) < 0.4
    return History(interval, bits, np.append(0, np.cumsum(count)))


@each_pair
def test_closed_forms_are_the_plain_ones(a, b):
    prior = PseudoObservations(a, b)
    rate = np.geomspace(1e-3, 10.0, 50) / b
    np.testing.assert_allclose(
        prior.density(rate), plain.prior_density(rate, a, b), rtol=1e-10
    )
    mode = plain.prior_mode(a, b)
    np.testing.assert_allclose([prior.mode, 1 / prior.initial_interval], mode, 1e-9)
    for base, more in (("period", 1.0), ("rate", HOURS**-2.0)):
        expected = plain.prior_probabilities(HOURS, a, b) * more
        got = prior.probabilities(HOURS, base=base)
        np.testing.assert_allclose(got, expected / expected.sum(), rtol=1e-10)
    # where all probabilities are below the smallest number
    far = PseudoObservations(a, 1e5 + b).probabilities([1.0, 2.0, 4.0])
    assert far.tolist() == [0.0, 0.0, 1.0]


@each_pair
def test_density_is_that_of_pages_with_the_two_bits(a, b):
    prior = PseudoObservations(a, b)
    mean, variance = plain.prior_moments(a, b)

    def moment(k):  # over the logarithm of the rate
        return integrate.quad(
            lambda x: np.exp((k + 1) * x) * prior.density(np.exp(x)),
            *np.log([1e-12 / (a + b), 100 / b]),
            limit=500,
        )[0]

    assert moment(0) == pytest.approx(1, rel=1e-8)
    assert moment(1) == pytest.approx(mean, rel=1e-7)
    assert moment(2) - mean**2 == pytest.approx(variance, rel=1e-6)
    # the grid posterior of the two bits, where all rates are equally likely
    rate = np.linspace(0, 40 / b, 20_001)[1:]
    posterior = grid_posterior(History([a, b], [1, 0]), rate, np.ones(rate.size))
    density = prior.density(rate)
    np.testing.assert_allclose(posterior, density / density.sum(), rtol=1e-10)


def test_estimate_is_the_mode_of_the_posterior(ragged):
    prior = PseudoObservations(0.7, 2.0)
    got = prior.estimate(ragged)
    for rate, (w, z) in zip(got, histories(ragged), strict=True):
        both = np.append([0.7, 2.0], w), np.append([True, False], z)
        assert rate == pytest.approx(plain.mle(*both), rel=1e-10)
        grid = rate * np.linspace(0.99, 1.01, 201)
        posterior = prior.density(grid) * np.exp(
            [np.where(z, np.log(-np.expm1(-r * w)), -r * w).sum() for r in grid]
        )
        assert grid[posterior.argmax()] == pytest.approx(rate, rel=2e-4)
    assert got[ragged.n_crawls == 0] == pytest.approx(prior.mode, rel=1e-12)


def test_estimate_takes_both_forms_and_tends_to_the_mle():
    history = simulate_history([0.1, 0.3], interval=3.0, n_crawls=2000, n_runs=3, rng=3)
    got = PseudoObservations(1.0, 1.0).estimate(history)
    np.testing.assert_allclose(got, mle(history), rtol=3e-3)
    one = History(history.interval[0, 0], history.changed[0, 0])
    assert PseudoObservations(1.0, 1.0).estimate(one) == got[0, 0]


def test_another_unit_of_time_rescales_everything(ragged):
    days, hours = PseudoObservations(3.0, 2.0), PseudoObservations(72.0, 48.0)
    longer = History(24 * ragged.interval, ragged.changed, ragged.offsets)
    for one, other in (
        (24 * hours.estimate(longer), days.estimate(ragged)),
        (24 * days.density(0.5), hours.density(0.5 / 24)),
        (days.probabilities(HOURS), hours.probabilities(24 * HOURS)),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_posterior_is_the_plain_one(ragged):
    rng = np.random.default_rng(5)
    rate, prior = np.geomspace(1e-4, 50, 40), rng.random((40, 40))
    got = grid_posterior(ragged, rate, prior)
    for row, before, (w, z) in zip(got, prior, histories(ragged), strict=True):
        expected = plain.grid_posterior(w, z, rate, before / before.sum())
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-300)


def test_posterior_crawl_by_crawl_is_the_posterior_of_all():
    widths = np.geomspace(0.1, 5, 9)
    history = simulate_history([[0.1, 3.0]], interval=widths, n_runs=2, rng=5)
    rate = np.linspace(0, 10, 101)
    prior = now = PseudoObservations(1.0, 1.0).density(rate)
    for k in range(9):
        crawl = slice(k, k + 1)
        seen = History(history.interval[..., crawl], history.changed[..., crawl])
        now = grid_posterior(seen, rate, now)
    assert now.shape == (2, 1, 2, 101)
    whole = grid_posterior(history, rate, prior)
    np.testing.assert_allclose(now, whole, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("interval", [1e-200, 1e5])
def test_posterior_of_bits_that_are_almost_impossible(interval):
    """Thousands of bits of tiny probability do not underflow."""
    changed = interval < 1
    history = History(np.full(3000, interval), np.full(3000, changed))
    got = grid_posterior(history, [0.0, 1.0, 2.0], [0.0, 1.0, 1.0])
    np.testing.assert_allclose(got, [0, 0, 1] if changed else [0, 1, 0], atol=1e-300)


def test_posterior_of_many_crawls_is_that_of_a_binomial_number():
    rate = np.geomspace(1e-9, 100.0, 2000)
    history = History(np.full(20_000, 0.3), np.arange(20_000) % 5 > 0)
    found = grid_posterior(history, rate, np.ones(2000))
    expected = stats.binom.logpmf(16_000, 20_000, -np.expm1(-0.3 * rate))
    expected = np.exp(expected - expected.max())
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)


def test_distance_is_the_plain_one():
    rates = np.array([1.0, 0.5, 0.45, 1e-9, 1e9, 1 / 3.4])
    grid, prior = np.array([1.0, 2.0, 4.0]), PseudoObservations(1.0, 3.0)
    expected = plain.prior_distance(rates, grid, 1.0, 3.0)
    assert prior.distance(rates, grid) == pytest.approx(expected, rel=1e-12)
    error = prior.probabilities(grid, base="rate") - 1 / 3
    found = prior.distance(rates, grid, base="rate")
    assert found == pytest.approx(np.linalg.norm(error), rel=1e-12)


@pytest.mark.parametrize("base", ["rate", "period"])
def test_fit_finds_the_pair_that_a_population_has(base):
    days, prior = np.arange(1.0, 366.0), PseudoObservations(12.0, 8.0)
    shares = prior.probabilities(days, base=base)
    rates = 1 / np.random.default_rng(7).choice(days, 100_000, p=shares)
    got = PseudoObservations.fit(rates, days, base=base)
    assert [got.changed, got.unchanged] == pytest.approx([12, 8], rel=0.2)
    least = got.distance(rates, days, base=base)
    for a, b in [(1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99), (0.99, 1.01)]:
        other = PseudoObservations(a * got.changed, b * got.unchanged)
        assert other.distance(rates, days, base=base) > least


def test_the_stand_in_pages_put_the_changed_interval_at_its_bound():
    message = "changed ended at its bound, 1$"
    with pytest.warns(DegeneratePriorWarning, match=message) as caught:
        got = PseudoObservations.fit(population(10_000, 8), HOURS)
    assert caught[0].filename == __file__
    assert got.unchanged == pytest.approx(71, rel=0.1)


HISTORY, PRIOR = History([[1.0], [2.0]], [[1], [0]]), PseudoObservations(1.0, 1.0)
fit = PseudoObservations.fit
posterior = partial(grid_posterior, HISTORY)
CHANGE_RATE = "change_rate must be positive and finite, got"
IMPOSSIBLE = "log-probability of the bits under the prior must be finite, got"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PseudoObservations(0.0, 1.0), "changed must be positive and finite"),
        (lambda: PseudoObservations(1.0, [1.0]), "unchanged must be one number, got"),
        (lambda: PRIOR.estimate([1.0]), "history must be a History, got <class 'list'"),
        (
            lambda: PRIOR.probabilities([2, 1]),
            "period must be rising, at least 2 numbers",
        ),
        (lambda: PRIOR.probabilities([0, 1]), "period must be positive and finite"),
        (lambda: fit([0.1, 0.0], HOURS), f"{CHANGE_RATE} 0.0 at index (1,)"),
        (lambda: fit([0.1, np.inf], HOURS), f"{CHANGE_RATE} inf at index (1,)"),
        (
            lambda: fit([0.1], HOURS, base="days"),
            "base must be one of ['period', 'rate'",
        ),
        (lambda: posterior([-0.1], [1]), "rate must be non-negative and finite, got"),
        (lambda: posterior([0.1], [-1]), "prior must be non-negative and finite, got"),
        (lambda: posterior([0.0], [1]), f"{IMPOSSIBLE} -inf at index (0,)"),
    ],
)
def test_priors_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_fit_that_does_not_converge_says_so(monkeypatch):
    short = partial(optimize.minimize, options={"maxiter": 1})
    monkeypatch.setattr(optimize, "minimize", lambda *a, options, **k: short(*a, **k))
    with pytest.raises(ConvergenceError, match="no fit after 1 iterations"):
        fit(population(1000, 11), HOURS, base="rate")
