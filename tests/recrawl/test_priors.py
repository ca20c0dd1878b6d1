"""Priors: closed forms of the two pseudo-observations, grid posteriors, fits."""

import decimal
import itertools
import re
import warnings
from decimal import Decimal

import numpy as np
import pytest
from scipy import optimize, special, stats

from recrawl.science import priors
from recrawl.science.estimators import ConvergenceError, DegenerateHistoryWarning, mle
from recrawl.science.priors import (
    DegeneratePriorWarning,
    FakeIntervals,
    gamma_prior,
    grid_posterior,
)
from recrawl.science.processes import History
from tests.recrawl.made import simulate_history

PAIRS = [(0.5, 0.5), (1.0, 60.0), (7.7e3, 271.0), (1e-6, 2.0), (3.0, 1e-3)]
pair = pytest.mark.parametrize(
    "prior", [FakeIntervals(*lengths) for lengths in PAIRS], ids=str
)


# ------------------------------------------------------------ the induced distribution


@pair
def test_distribution_against_quadrature(prior):
    a, b = prior.changed, prior.unchanged
    x = (
        np.exp(np.linspace(-60, 20, 40_001)) / b
    )  # in the logarithm the trapezoidal rule is almost exact

    def moment(k):
        return (
            x ** (k + 1) * -np.expm1(-a * x) * np.exp(-b * x)
        ).sum()  # the two bits for a likelihood, with a flat base

    mean = moment(1) / moment(0)
    np.testing.assert_allclose(
        prior.density(x),
        -np.expm1(-a * x) * np.exp(-b * x) / (moment(0) * 80 / 40_000),
        rtol=1e-10,
        atol=1e-290,
    )
    np.testing.assert_allclose(prior.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(
        prior.variance, moment(2) / moment(0) - mean**2, rtol=1e-10
    )
    assert 0.5 <= prior.variance / prior.mean**2 <= 1


@pair
def test_distribution_against_simulation(prior):
    """The sum of two exponentials, and rates of pages that show the two bits."""
    rng = np.random.default_rng(1)
    total = rng.exponential(1 / prior.unchanged, 20_000) + rng.exponential(
        1 / (prior.changed + prior.unchanged), 20_000
    )
    assert abs(total.mean() - prior.mean) < 5 * np.sqrt(prior.variance / total.size)
    pages = rng.uniform(0, 30 * prior.mean, 400_000)
    seen = simulate_history(
        pages, interval=[prior.changed, prior.unchanged], rng=2
    ).changed
    kept = pages[seen[:, 0] & ~seen[:, 1]]
    assert kept.size > 10 or prior.changed < 1e-3
    if kept.size > 10:
        assert stats.ks_2samp(kept, total).pvalue > 1e-4


# ---------------------------------------------------------------- estimates


def test_estimate_is_the_mode_of_the_posterior():
    prior = FakeIntervals(30.0, 200.0)
    history = History([5.0, 80.0, 3.0, 3.0, 700.0], [0, 1, 1, 1, 0], [0, 2, 2, 4, 5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = prior.estimate(history)
    for i, (start, end) in enumerate(
        zip(history.offsets[:-1], history.offsets[1:], strict=True)
    ):

        def loss(rate, w=history.interval[start:end], z=history.changed[start:end]):
            return (
                -np.log(prior.density(rate))
                - np.where(z, np.log(-np.expm1(-rate * w)), -rate * w).sum()
            )

        best = optimize.minimize_scalar(
            loss, bounds=(1e-6, 1.0), options={"xatol": 1e-12}, method="bounded"
        ).x
        assert got[i] == pytest.approx(best, rel=1e-5)
    mode = np.log1p(30.0 / 200.0) / 30.0
    assert got[1] == pytest.approx(mode, rel=1e-12), "of a page not crawled yet"


def test_estimate_takes_both_forms_and_tends_to_the_mle():
    history = simulate_history([0.1, 0.3], interval=3.0, n_crawls=2000, n_runs=3, rng=3)
    got = FakeIntervals(1.0, 1.0).estimate(history)
    assert got.shape == (3, 2)
    np.testing.assert_allclose(got, mle(history), rtol=3e-3)
    one = History(history.interval[0, 0], history.changed[0, 0])
    assert FakeIntervals(1.0, 1.0).estimate(one) == got[0, 0]


# ---------------------------------------------------------------- posteriors on a grid


def test_posterior_against_decimals():
    rng = np.random.default_rng(4)
    rate, prior = np.geomspace(1e-4, 50, 40), rng.random(40)
    history = History(
        rng.lognormal(0, 3, 60), rng.random(60) < 0.4, [0, 20, 20, 59, 60]
    )
    got = grid_posterior(history, rate, prior)
    with decimal.localcontext(prec=60):
        for i, (start, end) in enumerate(
            zip(history.offsets[:-1], history.offsets[1:], strict=True)
        ):
            row = [Decimal(p) for p in prior.tolist()]
            for w, z in zip(
                history.interval[start:end].tolist(),
                history.changed[start:end].tolist(),
                strict=True,
            ):
                unchanged = [(-Decimal(x) * Decimal(w)).exp() for x in rate.tolist()]
                row = [
                    p * (1 - q if z else q) for p, q in zip(row, unchanged, strict=True)
                ]
            np.testing.assert_allclose(
                got[i], [float(p / sum(row)) for p in row], rtol=1e-11, atol=1e-300
            )


def test_posterior_online_is_the_posterior_of_all():
    history = simulate_history(
        [[0.1, 3.0]], interval=np.geomspace(0.1, 5, 9), n_runs=2, rng=5
    )
    rate = np.linspace(0, 10, 101)
    prior = FakeIntervals(1.0, 1.0).density(rate)
    whole = now = grid_posterior(history, rate, prior)
    now = prior
    for k in range(9):
        now = grid_posterior(
            History(history.interval[..., k : k + 1], history.changed[..., k : k + 1]),
            rate,
            now,
        )
    assert whole.shape == (2, 1, 2, 101)
    np.testing.assert_allclose(now, whole, rtol=1e-10, atol=1e-300)


def test_posterior_of_pseudo_observations_is_the_prior():
    prior = FakeIntervals(7.0, 2.0)
    rate = np.linspace(0, 12, 200_001)
    got = grid_posterior(History([7.0, 2.0], [1, 0]), rate, np.ones(rate.size))
    assert got @ rate == pytest.approx(prior.mean, rel=1e-8)
    assert got @ (rate - prior.mean) ** 2 == pytest.approx(prior.variance, rel=1e-7)


@pytest.mark.parametrize("interval", [1e-200, 1e5])
def test_posterior_of_bits_that_are_almost_impossible(interval):
    """Thousands of bits of tiny probability do not underflow."""
    rate = np.array([0.0, 1.0, 2.0])
    changed = interval < 1
    got = grid_posterior(
        History(np.full(3000, interval), np.full(3000, changed)), rate, [0.0, 1.0, 1.0]
    )
    np.testing.assert_allclose(got, [0, 0, 1] if changed else [0, 1, 0], atol=1e-300)


def test_posterior_of_a_long_history_on_a_wide_grid():
    """Where the likelihood is largest it is below the smallest number."""
    rate = np.geomspace(1e-9, 100.0, 2000)
    history = History(np.full(20_000, 0.3), np.arange(20_000) % 5 > 0)
    found = grid_posterior(history, rate, np.ones(2000))
    # the number of changes is binomial
    expected = stats.binom.logpmf(16_000, 20_000, -np.expm1(-0.3 * rate))
    expected = np.exp(expected - expected.max())
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)
    assert rate[found.argmax()] == pytest.approx(-np.log(0.2) / 0.3, rel=0.02)


@pytest.mark.slow
def test_posterior_is_calibrated():
    """Of pages drawn from the prior 80% lie between the 10% and 90% quantiles."""
    rng = np.random.default_rng(6)
    rate = np.geomspace(0.01, 10, 300)
    prior = rng.random(300)
    true = rng.choice(300, 20_000, p=prior / prior.sum())
    below = np.cumsum(
        grid_posterior(
            simulate_history(rate[true], crawl_rate=1.0, n_crawls=5, rng=rng),
            rate,
            prior,
        ),
        axis=1,
    )
    at = np.take_along_axis(below, true[:, np.newaxis], 1)[:, 0]
    inside = np.mean((at > 0.1) & (at < 0.9))
    assert abs(inside - 0.8) < 0.02


# ---------------------------------------------------------------- fits


@pytest.mark.slow
def test_learn_finds_the_pair_from_one_bit_a_page():
    prior, rng = FakeIntervals(300.0, 200.0), np.random.default_rng(9)
    pages = rng.exponential(1 / prior.unchanged, 30_000) + rng.exponential(
        1 / (prior.changed + prior.unchanged), 30_000
    )
    history = simulate_history(
        pages, interval=rng.lognormal(5, 1, (30_000, 1)), rng=rng
    )
    rate = np.geomspace(1e-6, 1, 400)
    got = FakeIntervals.learn(history, rate)
    likelihood = grid_posterior(history, rate, np.ones(400))

    def marginal(candidate):
        return np.log(likelihood @ (candidate.density(rate) * np.gradient(rate))).sum()

    # twice the difference has the distribution of chi2 with two degrees of
    # freedom, if and only if the right likelihood is maximised
    assert 0 <= 2 * (marginal(got) - marginal(prior)) < stats.chi2.isf(1e-4, 2)
    assert marginal(got) > marginal(FakeIntervals(300.0, 300.0)) + 100


def test_two_pages_are_enough_to_learn_a_prior_and_copies_of_them_change_nothing():
    two = History([[1.0] * 8] * 2, [[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0, 0]])
    four = History(np.tile(two.interval, (2, 1)), np.tile(two.changed, (2, 1)))
    rate = np.geomspace(1e-3, 30.0, 300)
    pair, pair_of_four = (FakeIntervals.learn(h, rate) for h in (two, four))
    np.testing.assert_allclose(pair.changed, pair_of_four.changed, rtol=1e-6)
    np.testing.assert_allclose(pair.unchanged, pair_of_four.unchanged, rtol=1e-6)
    np.testing.assert_allclose(gamma_prior(two), gamma_prior(four), rtol=1e-6)


# ------------------------------------------------------------ the gamma prior


def exact_loss(logs, pages):
    """By E exp(-Delta t) = (b / (b + t))^a, for each term of the product."""
    shape, rate = np.exp(logs)
    loss = 0.0
    for interval, changed in pages:
        probability, widths = 0.0, interval[changed]
        for k in range(widths.size + 1):
            for some in itertools.combinations(widths, k):
                time = interval[~changed].sum() + sum(some)
                probability += (-1) ** k * (rate / (rate + time)) ** shape
        loss -= np.log(probability)
    return loss


@pytest.fixture(scope="module")
def few_bits():
    """Fifty pages crawled up to five times, and their histories by page."""
    rng = np.random.default_rng(21)
    count = rng.integers(1, 6, 50)
    rates = np.repeat(rng.gamma(0.8, 1 / 2.0, 50), count)
    interval = rng.lognormal(0, 1, count.sum())
    changed = rng.random(interval.size) < -np.expm1(-rates * interval)
    offsets = np.append(0, np.cumsum(count))
    pages = [
        (interval[start:stop], changed[start:stop])
        for start, stop in itertools.pairwise(offsets)
    ]
    return History(interval, changed, offsets), pages


@pytest.mark.slow
def test_gamma_prior_is_the_maximum_of_the_exact_likelihood(few_bits):
    history, pages = few_bits
    found = gamma_prior(history)
    best = optimize.minimize(exact_loss, [0.0, 0.0], args=(pages,), tol=1e-9)
    np.testing.assert_allclose(np.log(found), best.x, atol=1e-4)
    assert found.shape == found[0]
    assert found.rate == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "rate", "n_crawls"), [(0.1, 0.3, 5), (0.6, 0.2, 10), (5.0, 9.0, 20)]
)
def test_gamma_prior_recovers_a_population(shape, rate, n_crawls):
    """Over twenty populations it is as often too high as too low."""
    off = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 5])
        rates = rng.gamma(shape, 1 / rate, 400)
        interval = rng.lognormal(0, 1, (400, n_crawls))
        found = gamma_prior(simulate_history(rates, interval=interval, rng=rng))
        off.append(np.log(found) - np.log([shape, rate]))
    error = np.std(off, axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(np.mean(off, axis=0)) < 3 * error).all()
    assert (error < 0.1).all()


def test_gamma_prior_in_another_unit_and_another_order(few_bits):
    history, pages = few_bits
    shape, rate = gamma_prior(history)
    hours = gamma_prior(
        History(24 * history.interval, history.changed, history.offsets)
    )
    np.testing.assert_allclose(hours, [shape, 24 * rate], rtol=1e-4)
    interval, changed = (np.concatenate(of) for of in zip(*pages[::-1], strict=True))
    offsets = np.append(0, np.cumsum(history.n_crawls[::-1]))
    found = gamma_prior(History(interval, changed, offsets))
    np.testing.assert_allclose(found, [shape, rate], rtol=1e-4)


@pytest.mark.slow
def test_gamma_prior_of_long_histories():
    """The likelihood of thousands of crawls is narrow, and tiny elsewhere."""
    rates = np.random.default_rng(22).gamma(0.7, 1 / 2.0, 60)
    history = simulate_history(rates, interval=0.3, n_crawls=4000, rng=23)
    grid, count = np.exp(np.arange(-20, 5, 0.002)), history.changed.sum(axis=1)
    bits = stats.binom.pmf(count[:, np.newaxis], 4000, -np.expm1(-0.3 * grid))

    def loss(logs):
        density = stats.gamma.pdf(grid, np.exp(logs[0]), scale=np.exp(-logs[1]))
        return -np.log(bits @ (density * grid)).sum()

    best = optimize.minimize(loss, [0.0, 1.0], method="Nelder-Mead", tol=1e-7)
    np.testing.assert_allclose(np.log(gamma_prior(history)), best.x, atol=1e-5)


@pytest.mark.parametrize("observation", ["age", "count"])
def test_gamma_prior_from_known_changes_of_pages_that_always_change(observation):
    """With K changes in a time S the marginal likelihood has a closed form."""
    rates = 1.0 + np.random.default_rng(24).gamma(2.0, 50.0, 400)
    history = simulate_history(
        rates, interval=12.0, n_crawls=3, observation=observation, rng=25
    )
    assert history.changed.all()
    n = 3 if observation == "age" else history.count.sum(axis=1)
    time = 36.0 if observation == "count" else history.age.sum(axis=1)

    def loss(logs):
        shape, rate = np.exp(logs)
        known = special.gammaln(shape + n) - (shape + n) * np.log(rate + time)
        prior = shape * np.log(rate) - special.gammaln(shape)
        return -np.mean(known + prior)

    best = optimize.minimize(loss, [0.0, 0.0], method="Nelder-Mead", tol=1e-10)
    np.testing.assert_allclose(np.log(gamma_prior(history)), best.x, atol=1e-4)


def test_gamma_prior_of_pages_that_are_alike_says_so():
    changed = np.tile([True, False], (30, 4))  # less spread than chance allows
    with pytest.warns(
        DegeneratePriorWarning, match="shape ended at its bound, 400$"
    ) as warned:
        shape, rate = gamma_prior(History(np.ones((30, 8)), changed))
    assert warned[0].filename == __file__, "it points to the call"
    assert shape / rate == pytest.approx(np.log(2), rel=1e-3)


@pytest.mark.parametrize("distribution", ["lognormal", "log-logistic"])
def test_population(distribution):
    period = 1 / priors.population(100_000, distribution=distribution, rng=10)
    quartiles = (
        15
        * 24
        * (
            np.exp(stats.norm.ppf([0.25, 0.5, 0.75]))
            if distribution == "lognormal"
            else np.array([1 / 3, 1, 3])
        )
    )
    np.testing.assert_allclose(
        np.quantile(period, [0.25, 0.5, 0.75]), quartiles, rtol=0.02
    )
    assert period.min() >= 2
    assert period.max() == 365 * 24


# ---------------------------------------------------------------- what is refused

HISTORY = History([[1.0], [2.0]], [[1], [0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: FakeIntervals(0.0, 1.0),
            "changed must be positive and finite, got 0.0",
        ),
        (
            lambda: FakeIntervals(1.0, [1.0]),
            "unchanged must be a single number, got shape (1,)",
        ),
        (
            lambda: FakeIntervals(1.0, 1.0).density([-1.0]),
            "rate must be non-negative and finite, got -1.0 at index (0,)",
        ),
        (
            lambda: FakeIntervals.learn(History([1.0], [1]), [0.1, 0.2]),
            "history must hold at least two pages, got shape ()",
        ),
        (
            lambda: FakeIntervals.learn(HISTORY, [0.0, 0.2]),
            "rate must be positive and finite, got 0.0 at index (0,)",
        ),
        (
            lambda: gamma_prior(History([1.0, 2.0], [1, 0])),
            "history must hold at least two pages, got shape ()",
        ),
        (
            lambda: gamma_prior(History([], np.zeros(0, bool), [0, 0, 0])),
            "history must hold crawls with a change and crawls without, "
            "got 0 of 0 with a change",
        ),
        (
            lambda: gamma_prior(History([[1.0, 2.0]] * 3, np.ones((3, 2)))),
            "history must hold crawls with a change and crawls without, "
            "got 6 of 6 with a change",
        ),
        (
            lambda: gamma_prior(History([[1.0, 2.0]] * 3, np.zeros((3, 2)))),
            "got 0 of 6 with a change",
        ),
        (
            lambda: gamma_prior(History([[2.0], [2.0]], [[1], [0]])),
            "history must hold a page of two crawls or two different intervals, "
            "got one crawl of a page, at the interval 2",
        ),
        (
            lambda: gamma_prior(HISTORY, max_iterations=0),
            "max_iterations must be a positive integer, got 0",
        ),
        (
            lambda: grid_posterior(HISTORY, [0.2, 0.1], [1.0, 1.0]),
            "rate must rise along one axis, got [0.2 0.1]",
        ),
        (
            lambda: grid_posterior(HISTORY, [0.1, 0.2], [1.0, -1.0]),
            "prior must be non-negative and finite, got -1.0 at index (1,)",
        ),
        (
            lambda: grid_posterior(HISTORY, [0.1, 0.2], [1.0]),
            "prior must be of shape (2,) or (2, 2), got (1,)",
        ),
        (
            lambda: grid_posterior(HISTORY, [0.0, 0.2], [1.0, 0.0]),
            "prior must allow what the history has, at index (0,)",
        ),
        (
            lambda: priors.population(10, distribution="flat"),
            "distribution must be 'lognormal' or 'log-logistic', got 'flat'",
        ),
        (lambda: priors.population(0), "n_pages must be a positive integer, got 0"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_gamma_prior_that_does_not_converge_says_where_it_stood(few_bits):
    with pytest.raises(
        ConvergenceError, match="no fit within 1 iterations, last at GammaPrior"
    ):
        gamma_prior(few_bits[0], max_iterations=1)


# ---------------------------------------------------------------- substitutes


def test_substitutes_of_the_mle():
    history = History([1.0, 2, 3, 4, 0.5, 7], [0, 0, 1, 1, 1, 0], [0, 2, 2, 5, 6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(
            mle(history, edges="substitute"), [1 / 3, np.nan, 2.0, 1 / 7], rtol=1e-15
        )
    with pytest.warns(DegenerateHistoryWarning):
        np.testing.assert_array_equal(mle(history), [0, np.nan, np.inf, 0])
    assert mle(History([4.0, 2.0], [1, 1]), edges="substitute") == 0.5
    np.testing.assert_array_equal(
        mle(History([[4.0, 2.0], [4.0, 2.0]], [[1, 1], [0, 1]]), edges="substitute")[0],
        0.5,
    )
    assert (
        mle(History([4.0, 2.0], [1, 1]), edges="substitute", bounds=(0.0, 0.3)) == 0.3
    )
    with pytest.raises(
        ValueError, match="edges must be 'limits' or 'substitute', got 'cho'"
    ):
        mle(history, edges="cho")
