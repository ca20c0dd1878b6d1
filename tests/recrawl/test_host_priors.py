"""Gamma priors: closed forms of ages and counts, and one prior for each host."""

import itertools
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, optimize, special, stats

from recrawl.science.estimators import ConvergenceError
from recrawl.science.priors import (
    DegeneratePriorWarning,
    GammaPrior,
    gamma_prior,
    host_priors,
)
from recrawl.science.processes import History, simulate_history
from tests.recrawl import plain as reference

K, S = np.array([3, 0, 5, 1, 0]), np.array([2, 1.5, 1, 4, 3])


def counted(n_changes, time):
    """One crawl of each page, which counts its changes."""
    n_changes = np.asarray(n_changes, dtype=float)[:, np.newaxis]
    return History(np.asarray(time)[:, np.newaxis], n_changes > 0, count=n_changes)


def world(seed, *, size, shape=1.5, spread=1.0, **crawls):
    """Hosts of given sizes: their labels, change rates, and a history."""
    rng = np.random.default_rng(seed)
    host = np.repeat(np.arange(len(size)), size)
    mean = np.exp(rng.normal(0.3, spread, len(size)))
    rates = rng.gamma(shape, mean[host] / shape)
    return host, rates, simulate_history(rates, rng=rng, **crawls)


# --------------------------------------------------------- one gamma distribution


def test_the_posterior_of_bits_has_the_mean_of_the_alternating_sum():
    history = History([3.2, 1, 0.4, 2, 1], [0, 1, 1, 1, 1])
    assert GammaPrior(0.7, 0.5).posterior(history).mean == pytest.approx(
        0.87204443698, rel=1e-10
    )
    found = GammaPrior(0.7, 0.5).posterior(History([1.0], [1]))
    assert found.mean == pytest.approx(2.2062175869, rel=2e-9)


@pytest.mark.parametrize("shape", [2e3, 1e6])
def test_posteriors_of_narrow_priors(shape):
    page = [1.0, 2.0, 0.5], [True, False, True]
    found = GammaPrior(shape, shape / 1.3).posterior(History(*page))
    _, mean = reference.gamma_bits(*page, shape, shape / 1.3)
    assert found.mean == pytest.approx(mean, rel=1e-8)
    assert found.shape == pytest.approx(shape, rel=2e-3)
    with pytest.raises(ValueError, match=r"shape must be at most 1e\+06, got 2e\+06"):
        GammaPrior(2e6, 2e6).posterior(History(*page))


@pytest.mark.parametrize(
    ("interval", "changed", "marginal"),
    [
        ([3.2, 1, 0.4, 2, 1], [0, 1, 1, 1, 1], 0.0017196811276),
        ([1.0], [1], 0.5365369432),
    ],
)
def test_marginals_of_bits(interval, changed, marginal):
    found = reference.gamma_bits(interval, changed, 0.7, 0.5)[0]
    assert found == pytest.approx(marginal, rel=1e-10)
    by_quadrature = reference.gamma_marginal(interval, changed, 0.7, 0.5)
    assert by_quadrature == pytest.approx(marginal, rel=1e-10)


def test_the_prior_of_counts_is_the_best_negative_binomial():
    history = counted(K, S)
    found = gamma_prior(history)
    assert_allclose(found, [0.42898772, 0.34705582], rtol=5e-7)
    total = sum(
        reference.count_marginal(*page, *found)[0] for page in zip(K, S, strict=True)
    )
    assert total == pytest.approx(-7.0238502143, abs=1e-10)
    means = [1.46097408, 0.23225487, 4.03026187, 0.32872541, 0.12816868]
    assert_allclose(found.posterior(history).mean, means, rtol=5e-7)


@pytest.mark.parametrize(
    ("n_changes", "time"), [(K, S), (np.array([1, 9, 2, 25]), np.full(4, 3.0))]
)
def test_the_prior_of_counts_is_the_maximum_of_the_likelihood_of_scipy(n_changes, time):
    """Also if all have changed in one interval, which bits would leave undecided."""

    def loss(logs):  # scipy counts failures before the a-th success
        shape, rate = np.exp(logs)
        return -stats.nbinom.logpmf(n_changes, shape, rate / (rate + time)).sum()

    best = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8})
    found = gamma_prior(counted(n_changes, time))
    assert_allclose(np.log(found), best.x, atol=2e-6)


def test_posteriors_of_counts_are_conjugate():
    found = GammaPrior(0.8, 2.5).posterior(counted(K, S))
    assert_allclose(found.shape, 0.8 + K, rtol=1e-12)
    assert_allclose(found.rate, 2.5 + S, rtol=1e-12)
    # pages with bits among them: the grid for all
    mixed = counted(np.append(K, 1), np.append(S, 2.0))
    count = np.append(mixed.count[:-1], [[np.nan]], axis=0)
    mixed = History(mixed.interval, mixed.changed, count=count)
    on_grid = GammaPrior(0.8, 2.5).posterior(mixed)
    assert_allclose(on_grid.shape[:-1], found.shape, rtol=1e-5)
    assert_allclose(on_grid.mean[:-1], found.mean, rtol=1e-7)


def test_the_posterior_has_the_two_means_of_the_exact_one():
    """Of the rate and of its logarithm; a page of unchanged bits is conjugate."""
    interval, changed = np.array([0.5, 2.0, 1.0]), np.array([1, 0, 1], dtype=bool)
    for shape, rate in ((0.05, 0.3), (1.5, 0.75), (30.0, 9.0)):

        def moment(weight, shape=shape, rate=rate):
            def density(x):
                bits = np.where(changed, -np.expm1(-np.exp(x) * interval), 1).prod()
                log = shape * x - np.exp(x) * (rate + interval[~changed].sum())
                return weight(x) * bits * np.exp(log)

            return integrate.quad(density, -60, 8, limit=500, epsabs=0)[0]

        total = moment(lambda x: 1.0)
        prior = GammaPrior(shape, rate)
        found = prior.posterior(History(interval, changed))
        assert found.mean == pytest.approx(moment(np.exp) / total, rel=1e-7)
        log = special.digamma(found.shape) - np.log(found.rate)
        assert log == pytest.approx(moment(lambda x: x) / total, abs=1e-6)
        still = prior.posterior(History(interval, ~changed & changed))
        assert_allclose(still, [shape, rate + interval.sum()], rtol=1e-10)


@pytest.mark.parametrize("observation", ["bit", "count"])
def test_the_prior_is_a_fixed_point_of_expectation_maximisation(observation):
    """ln a - psi(a) = ln M - L and b = a / M, means of the posterior moments."""
    rates = np.random.default_rng(1).gamma(0.8, 1 / 2.0, 300)
    history = simulate_history(
        rates, interval=[0.5, 3.0], observation=observation, rng=2
    )
    prior = gamma_prior(history)
    after = prior.posterior(history)
    mean = after.mean.mean()
    mean_log = (special.digamma(after.shape) - np.log(after.rate)).mean()
    gap = np.log(prior.shape) - special.digamma(prior.shape)
    assert gap == pytest.approx(np.log(mean) - mean_log, abs=1e-5)
    assert prior.mean == pytest.approx(mean, rel=1e-5)


def test_intervals_are_quantiles_of_the_gamma_distribution():
    found = GammaPrior(np.array([0.3, 5.0]), np.array([2.0, 0.1])).interval(level=0.9)
    expected = stats.gamma.ppf([[0.05], [0.95]], [0.3, 5.0], scale=[0.5, 10.0])
    assert_allclose(found, expected, rtol=1e-10)


# ------------------------------------------------------------------------ hosts


def count_loss(logs, host, n_changes, time):
    """Minus the log likelihood of counts, hosts integrated out one by one."""
    shape, median, spread = np.exp(logs)
    x = np.linspace(-7, 7, 281)  # step 0.05
    rate = shape / (median * np.exp(spread * x))[:, np.newaxis]
    log = stats.nbinom.logpmf(n_changes, shape, rate / (rate + time))
    of_hosts = [log[:, host == h].sum(axis=1) for h in np.unique(host)]
    density = stats.norm.pdf(x) * 0.05
    return -special.logsumexp(of_hosts, b=density, axis=1).sum()


def test_host_priors_of_counts_are_the_maximum_of_the_exact_likelihood():
    host, _, history = world(
        3, size=[1, 2, 5, 9, 30, 1, 4], n_crawls=4, interval=1.0, observation="count"
    )
    n_changes, time = history.total(history.count), history.total(history.interval)
    best = optimize.minimize(
        count_loss, np.zeros(3), args=(host, n_changes, time), method="BFGS"
    )
    found = host_priors(history, host)
    assert_allclose(np.log(found[4:]), best.x, atol=1e-3)
    # posterior means of the rates of pages and hosts, at the same three numbers
    shape, median, spread = found[4:]
    x = np.linspace(-7, 7, 2001)
    mean = median * np.exp(spread * x)
    rate = (shape / mean)[:, np.newaxis]
    log = stats.nbinom.logpmf(n_changes, shape, rate / (rate + time))
    for k, h in enumerate(found.host):
        of = log[:, host == h].sum(axis=1) - x**2 / 2
        weight = np.exp(of - of.max())
        weight /= weight.sum()
        expected = weight @ ((shape + n_changes) / (rate + time))[:, host == h]
        assert_allclose(found.posterior.mean[host == h], expected, rtol=5e-4)
        assert found.prior.mean[k] == pytest.approx(weight @ mean, rel=1e-3)


def test_host_priors_of_bits_are_the_maximum_of_the_plain_likelihood():
    host, _, history = world(4, size=[3, 1, 4, 2, 3, 1], interval=[0.2, 0.7, 1.5])
    pages = list(zip(history.interval, history.changed, strict=True))
    of_hosts = [list(itertools.compress(pages, host == h)) for h in np.unique(host)]

    def loss(logs):
        each = [reference.host_marginal(own, *np.exp(logs)) for own in of_hosts]
        return -np.log(each).sum()

    found = host_priors(history, host)
    best = optimize.minimize(loss, np.log(found[4:]), method="BFGS")
    assert_allclose(np.log(found[4:]), best.x, atol=5e-3)
    assert loss(np.log(found[4:])) - best.fun < 1e-5


def test_one_host_has_the_prior_of_the_population():
    host, _, history = world(5, size=[600], interval=[0.3, 1.0, 2.0])
    one, found = gamma_prior(history), host_priors(history, host)
    assert_allclose(
        np.log([found.prior.shape[0], found.shape]), np.log(one.shape), atol=0.01
    )
    assert found.prior.mean[0] == pytest.approx(one.mean, rel=0.005)
    assert_allclose(found.posterior.mean, one.posterior(history).mean, rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("observation", ["bit", "age"])
def test_host_priors_recover_what_rates_were_drawn_from(observation):
    """Over ten populations each number is as often too high as too low."""
    off, covered = [], []
    for seed in range(10):
        host, rates, history = world(
            [seed, 6],
            size=[1] * 40 + [5] * 30 + [40] * 10,
            interval=[0.2, 0.5, 1.0, 2.0],
            observation=observation,
        )
        found = host_priors(history, host)
        off.append(np.log(found[4:]) - [np.log(1.5), 0.3, 0.0])
        low, high = found.posterior.interval(level=0.9)
        covered.append(((low < rates) & (rates < high)).mean())
    error = np.std(off, axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(np.mean(off, axis=0)) < 3 * error).all()
    assert (error < 0.1).all()
    assert np.mean(covered) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("observation", ["bit", "count"])
def test_other_units_and_another_order(observation):
    host, _, history = world(
        7, size=[2, 30, 9, 1, 12], interval=[0.3, 1.0, 2.0], observation=observation
    )
    count = history.count
    found = host_priors(history, host)
    hours = host_priors(
        History(24 * history.interval, history.changed, count=count), host
    )
    assert_allclose(hours.posterior.mean, found.posterior.mean / 24, rtol=1e-3)
    shape, median, spread = found[4:]
    assert_allclose(hours[4:], [shape, median / 24, spread], rtol=2e-3)
    assert_allclose(hours.new, found.new * np.array([1, 24]), rtol=2e-3)
    order = np.random.default_rng(8).permutation(host.size)
    names = np.array(["e", "c", "d", "a", "b"])
    moved = History(
        history.interval[order],
        history.changed[order],
        count=None if count is None else count[order],
    )
    again = host_priors(moved, names[host[order]])
    assert_array_equal(again.host, ["a", "b", "c", "d", "e"])
    assert_allclose(again.prior.mean, found.prior.mean[[3, 4, 1, 2, 0]], rtol=1e-6)
    assert_allclose(again.posterior.mean, found.posterior.mean[order], rtol=1e-6)


def test_a_host_of_more_pages_is_drawn_less_to_the_others():
    """Hosts of 1, 4, 16 and 64 pages that all have changed in every second crawl."""
    many, _, history = world(9, size=[20] * 30, spread=0.7, interval=[1.0] * 4)
    size = 4 ** np.arange(4)
    busy = np.tile([True, False, True, True], (size.sum(), 1))
    changed = np.concatenate([history.changed, busy])
    host = np.append(many, np.repeat(np.arange(30, 34), size))
    found = host_priors(History(np.ones(changed.shape), changed), host)
    mean, shape = found.prior.mean[30:], found.prior.shape[30:]
    assert found.new.shape < shape[0]
    assert (np.diff(shape) > 0).all()
    assert shape[-1] < found.shape
    own = optimize.brentq(  # what the bits of a large host say, under its shape
        lambda m: (
            GammaPrior(found.shape, found.shape / m)
            .posterior(History(np.ones(4), busy[0]))
            .mean
            - m
        ),
        0.1,
        100,
    )
    drawn = np.log(own / mean)
    assert (np.abs(np.diff(np.abs(drawn))) > 0).all()
    assert (np.diff(np.abs(drawn)) < 0).all()
    assert np.abs(drawn[-1]) < 0.1


def test_pages_without_crawls_have_the_prior_of_their_host():
    host, _, history = world(10, size=[10, 10], spread=2.0, interval=[0.5, 1.0])
    interval, changed, offsets = history.ragged()
    with_empty = History(interval, changed, np.append(offsets, offsets[-1]))
    found = host_priors(with_empty, np.append(host, 1))
    assert_allclose(found.posterior.mean[-1], found.prior.mean[1], rtol=1e-3)
    assert_allclose(found.posterior.shape[-1], found.prior.shape[1], rtol=1e-3)


def test_pages_that_are_alike_are_said_to_be():
    changed = np.tile([True, False], (30, 4))  # less spread than chance allows
    with pytest.warns(
        DegeneratePriorWarning, match="shape ended at its bound, 400$"
    ) as w:
        host_priors(History(np.ones((30, 8)), changed), np.arange(30) % 3)
    assert w[0].filename == __file__, "it points to the call"


def test_hosts_that_change_always_or_never_are_said_to_end_at_a_bound():
    changed = np.repeat([[True], [False]], 20, axis=0) & np.ones((1, 400), dtype=bool)
    history, host = History(np.ones(changed.shape), changed), np.arange(40)
    with (
        pytest.warns(DegeneratePriorWarning, match="shape ended at its bound, 400"),
        pytest.warns(DegeneratePriorWarning, match="spread ended at its bound"),
    ):
        host_priors(history, host // 20)
    with pytest.warns(DegeneratePriorWarning, match="median ended at its bound, 40$"):
        host_priors(history, host % 2)


def test_a_search_that_does_not_converge_says_where_it_stood():
    host, _, history = world(11, size=[4, 4], interval=[1.0, 2.0])
    with pytest.raises(ConvergenceError, match="no fit within 1 iterations"):
        host_priors(history, host, max_iterations=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: host_priors(counted(K, S), ["a", "b"]),
            "host must have one label for each page, shape (5,), got shape (2,)",
        ),
        (
            lambda: host_priors(History([[2.0], [2.0]], [[1], [0]]), ["a", "b"]),
            "history must hold a page of two crawls or two different intervals",
        ),
        (
            lambda: host_priors(counted([0, 0], [1.0, 2.0]), ["a", "b"]),
            "got 0 of 2 with a change",
        ),
        (
            lambda: gamma_prior(History([[1.0], [2.0]], [[1], [1]], age=[[0.0]] * 2)),
            "got 2 of 2 with a change",
        ),
        (
            lambda: GammaPrior(np.ones(5), np.ones(5)).posterior(counted(K, S)),
            "shape must be a single number, got shape (5,)",
        ),
        (
            lambda: GammaPrior(1.0, -2.0).posterior(counted(K, S)),
            "rate must be positive and finite, got -2.0",
        ),
        (
            lambda: GammaPrior(1.0, 1.0).interval(level=1.0),
            "level must be strictly between 0 and 1, got 1.0",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_pages_may_have_two_axes():
    rate = np.random.default_rng(3).gamma(1.0, 1.0, (2, 30))
    history = simulate_history(rate, interval=1.0, n_crawls=4, rng=4)
    host = np.arange(60) % 3
    learnt = host_priors(history, host.reshape(2, 30))
    flat = History(history.interval.reshape(60, 4), history.changed.reshape(60, 4))
    wanted = host_priors(flat, host)
    assert learnt.posterior.mean.shape == (2, 30)
    assert_allclose(learnt.posterior.mean.ravel(), wanted.posterior.mean, rtol=1e-12)


def test_a_history_without_an_interval_tells_nothing():
    with pytest.raises(ValueError, match="history must hold an interval"):
        GammaPrior(0.5, 2.0).posterior(History([], [], [0, 0]))


@pytest.mark.parametrize(
    ("shape", "rate", "interval", "n_changed", "unchanged"),
    [
        (400.0, 400.0, 1 / 24, 250, 0.0),
        (20.0, 20.0, 1 / 1440, 1000, 0.0),
        (400.0, 0.04, 1.0, 1, 40.0),  # the prior is beyond what the page tells
        (30.0, 30e3, 1.0, 50, 2.0),
    ],
)
def test_a_page_may_be_far_from_the_prior(shape, rate, interval, n_changed, unchanged):
    x = np.linspace(-12.0, 16.0, 200_001)
    log = shape * x - (rate + unchanged) * np.exp(x)
    log += n_changed * np.log(-np.expm1(-interval * np.exp(x)))
    weight = np.exp(log - log.max())
    crawls = [interval] * n_changed + [unchanged] * (unchanged > 0)
    with warnings.catch_warnings(action="error"):
        found = GammaPrior(shape, rate).posterior(
            History(crawls, np.arange(len(crawls)) < n_changed)
        )
    assert found.mean == pytest.approx(weight @ np.exp(x) / weight.sum(), rel=1e-5)


def test_over_all_bits_the_posterior_means_average_to_the_prior():
    interval, prior = np.array([0.3, 1.0, 2.5, 0.7]), GammaPrior(0.8, 1.7)
    bits = np.array(list(itertools.product([False, True], repeat=interval.size)))
    posterior = prior.posterior(History(np.tile(interval, (len(bits), 1)), bits))
    chance = [reference.gamma_bits(interval, z, 0.8, 1.7)[0] for z in bits]
    assert_allclose(np.sum(chance), 1.0, rtol=1e-12)
    assert_allclose(np.dot(chance, posterior.mean), prior.mean, rtol=1e-5)
