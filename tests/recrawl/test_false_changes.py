"""False changes: reference numbers, oracles, coverage, invariances, bad input."""

import itertools
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats

from paperlib import signals
from recrawl.kernels import false_changes as kernels
from recrawl.science.estimators import (
    ConvergenceError,
    DegenerateHistoryWarning,
    UnidentifiedWarning,
    design_variance,
    false_change_test,
    false_changes,
    mle,
)
from recrawl.science.processes import History
from tests.recrawl.made import simulate_history
from tests.plain import log_likelihood
from tests.recrawl import plain as reference

# Twelve crawls of which all numbers are known to ten digits.
TWELVE = History(
    np.repeat([0.25, 1.0, 4.0], 4),
    [bit == "1" for bit in "010001101110"],
)


def pages(history):
    interval, changed, offsets = history.ragged()
    return [
        (interval[a:b], changed[a:b]) for a, b in itertools.pairwise(offsets.tolist())
    ]


def evidence(fit):
    """b = -log(1 - q)."""
    return -np.log1p(-np.asarray(fit.false_change))


def hosts(seed, n_pages=40, n_groups=8, n=(2, 12), spread=1.0):
    """Pages of a few crawls after any intervals, and the group of each.

    Pages that never changed, or always, are among them, and groups with q = 0.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*n, n_pages)
    interval = 10.0 ** rng.uniform(-spread, spread, sizes.sum())
    group = rng.permutation(np.arange(n_pages) % n_groups)
    q = np.repeat(np.linspace(0, 0.6, n_groups)[group], sizes)
    rate = np.repeat(rng.lognormal(0, 1, n_pages), sizes)
    changed = rng.random(interval.size) < 1 - (1 - q) * np.exp(-rate * interval)
    return History(interval, changed, np.append(0, np.cumsum(sizes))), group


def quiet(function, *arguments, **options):
    with warnings.catch_warnings():
        for category in DegenerateHistoryWarning, UnidentifiedWarning:
            warnings.simplefilter("ignore", category)
        return function(*arguments, **options)


# ------------------------------------------------------------------ reference numbers


@pytest.mark.parametrize(
    ("interval", "biased"),
    [(0.1, 2.053605), (0.5, 1.210721), (1.0, 1.105361), (2.0, 1.052680)],
)
def test_an_estimate_that_ignores_false_changes_is_too_high_by_b_over_w(
    interval, biased
):
    assert 1 - np.log(0.9) / interval == pytest.approx(biased, abs=5e-7)
    bits = np.arange(1_000_000) >= round(1e6 * 0.9 * np.exp(-interval))
    found = mle(History(np.full(bits.size, interval), bits))
    # of a million bits the last one is rounded
    assert found == pytest.approx(biased, abs=1e-5 / interval)


def test_joint_estimate_of_twelve_crawls():
    fit = false_changes(TWELVE)
    assert evidence(fit) == pytest.approx(0.25957388, abs=5e-9)
    assert fit.false_change == pytest.approx(0.22861979, abs=5e-9)
    assert fit.change_rate == pytest.approx(0.30706143, abs=5e-9)
    assert fit.log_likelihood == pytest.approx(-7.3272578978, abs=5e-11)
    assert mle(TWELVE) == pytest.approx(0.5043710763, abs=5e-11)
    without = log_likelihood(mle(TWELVE), *pages(TWELVE)[0])
    assert without == pytest.approx(-7.8178417773, abs=5e-11)


@pytest.mark.parametrize(
    ("interval", "found"),
    [(0.1, 0.1308881947), (1.0, 0.5873024750), (5.0, 0.8942727451)],
)
def test_a_missed_comparison_is_a_lost_bit_of_more_false_changes(interval, found):
    """1 - m - (1 - q - m) exp(-w) at q = 0.05, and m = 0.1 of comparisons missed."""
    missed, q = 0.1, 0.05
    b = -np.log1p(-q / (1 - missed))
    log = reference.false_change_log_likelihood(
        1.0, b, np.array([interval]), np.array([True])
    )
    assert (1 - missed) * np.exp(log) == pytest.approx(found, abs=5e-11)


def test_tests_of_twelve_crawls():
    test = false_change_test(TWELVE)
    assert test.statistic == pytest.approx(0.9811677588, abs=5e-11)
    assert test.pvalue == pytest.approx(0.16095534, abs=5e-9)
    # the critical value at 5%
    assert stats.chi2.sf(2.7055, 1) / 2 == pytest.approx(0.05, abs=1e-5)


@pytest.mark.parametrize(
    ("interval", "known", "unknown"),
    [
        ([0.1, 1.5], 3.28277, 4.29349),
        ([0.5, 1.5], 2.30977, 9.62313),
        ([1.0, 1.5], 1.88617, 47.9997),
    ],
)
def test_variance_of_designs(interval, known, unknown):
    options = {"false_change": 0.1, "interval": interval}
    assert design_variance(1.0, known=True, **options) == pytest.approx(known, abs=5e-6)
    assert design_variance(1.0, **options) == pytest.approx(unknown, rel=2e-6)


# ------------------------------------------------------------------------- the oracles


@pytest.mark.parametrize("spread", [0.5, 1.0, 3.0])  # 3: intervals over six decades
def test_estimates_are_the_maximum(spread):
    """No slope inside, none that rises at an edge: enough, as it is concave."""
    edges = set()
    for seed in range(5):
        history, group = hosts(seed, spread=spread)
        fit = quiet(false_changes, history, group=group)
        in_b, n = np.zeros(8), np.bincount(group, history.n_crawls)
        for (w, changed), rate, label in zip(
            pages(history), fit.change_rate, group, strict=True
        ):
            if changed.all():
                assert np.isinf(rate)
                continue
            if np.isnan(evidence(fit)[label]):  # its crawls do not tell
                assert rate == 0 if not changed.any() else np.isnan(rate)
                continue
            u = evidence(fit)[label] + rate * w[changed]
            r = np.exp(-u) / -np.expm1(-u)
            in_b[label] += r.sum() - (~changed).sum()
            in_rate = (w[changed] * r).sum() / w[~changed].sum() - 1
            if rate > 0:
                assert in_rate == pytest.approx(0, abs=1e-10)
            else:
                assert in_rate <= 1e-10
            edges.add((bool(rate > 0), bool(fit.false_change[label] > 0)))
        inside = fit.false_change > 0
        assert inside.any()
        assert_allclose(in_b[inside], 0, atol=1e-10 * n.max())
        assert (in_b < 1e-9 * n).all()
    assert len(edges) == 4


@pytest.mark.parametrize("seed", range(4))
def test_no_other_maximiser_does_better(seed):
    history, group = hosts(seed, n_pages=6, n_groups=2, n=(6, 20))
    fit = quiet(false_changes, history, group=group)
    for label in range(2):
        own = [
            page for page, g in zip(pages(history), group, strict=True) if g == label
        ]
        own = [(w, changed) for w, changed in own if not changed.all()]

        def loss(theta, own=own):
            return -sum(
                reference.false_change_log_likelihood(rate, theta[0], w, changed)
                for rate, (w, changed) in zip(theta[1:], own, strict=True)
            )

        low = 1e-9  # keeps the logarithm finite
        found = optimize.minimize(
            loss,
            np.full(len(own) + 1, 0.3),
            bounds=[(low, None)] * (len(own) + 1),
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        rates = fit.change_rate[(group == label) & np.isfinite(fit.change_rate)]
        assert fit.log_likelihood[label] == pytest.approx(-found.fun, abs=1e-6)
        assert evidence(fit)[label] == pytest.approx(found.x[0], abs=2e-3)
        assert_allclose(rates, found.x[1:], rtol=0.01, atol=2e-3)


def test_expectation_maximisation_finds_the_same():
    b, rates = reference.false_changes(pages(TWELVE), 3000)
    fit = false_changes(TWELVE)
    assert evidence(fit) == pytest.approx(b, abs=1e-9)
    assert fit.change_rate == pytest.approx(rates[0], abs=1e-9)
    history = simulate_history(
        [0.2, 1.0, 4.0], interval=[0.05, 0.3, 2.0] * 20, false_change=0.3, rng=1
    )
    b, rates = reference.false_changes(pages(history), 1000)
    fit = false_changes(history, group=[3, 3, 3])
    assert evidence(fit) == pytest.approx([b], abs=1e-9)
    assert_allclose(fit.change_rate, rates, rtol=1e-8, atol=1e-12)


def test_a_page_alone_is_a_page_with_one_signal_at_each_crawl():
    """`signals.fit` maximises the same likelihood by another method."""
    rng = np.random.default_rng(1)
    interval = 10 ** rng.uniform(-1, 1, (50, 30))
    history = simulate_history(
        rng.lognormal(-1, 0.5, 50), interval=interval, false_change=0.2, rng=2
    )
    fit = quiet(false_changes, history)
    same = signals.fit(history, np.ones(interval.shape, dtype=int))
    unsignalled = same.change_rate * (1 - same.recall)
    assert_allclose(fit.false_change, same.precision, rtol=1e-8, atol=1e-8)
    assert_allclose(fit.change_rate, unsignalled, rtol=1e-8, atol=1e-8)
    assert (fit.false_change == 0).any()
    assert (fit.false_change > 0).any()


def test_standard_errors_are_from_the_curvature():
    rates = [0.3, 1.0, 3.0]
    history = simulate_history(
        rates, interval=[0.05, 0.3, 1.0, 2.0] * 30, false_change=0.2, rng=3
    )
    fit = false_changes(history, group=[0, 0, 0])
    at = np.append(fit.change_rate, fit.false_change)

    def value(theta):
        b = -np.log1p(-theta[-1])
        return sum(
            reference.false_change_log_likelihood(rate, b, w, changed)
            for rate, (w, changed) in zip(theta, pages(history), strict=False)
        )

    step, hessian = 1e-4, np.empty((4, 4))
    for i, j in np.ndindex(4, 4):
        corners = [
            s * t * value(at + step * (s * np.eye(4)[i] + t * np.eye(4)[j]))
            for s in (1, -1)
            for t in (1, -1)
        ]
        hessian[i, j] = sum(corners) / (4 * step**2)
    stderr = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    assert_allclose(fit.change_rate_stderr, stderr[:3], rtol=1e-4)
    assert_allclose(fit.false_change_stderr, stderr[3:], rtol=1e-4)


def test_statistic_is_the_difference_of_two_maxima():
    history, group = hosts(5, n=(5, 30))
    fit = quiet(false_changes, history, group=group)
    test = quiet(false_change_test, history, group=group)
    without = np.zeros(8)
    for label, rate, page in zip(
        group, quiet(mle, history), pages(history), strict=True
    ):
        if 0 < rate < np.inf:  # else the supremum is 0
            without[label] += log_likelihood(rate, *page)
    assert_allclose(test.statistic, 2 * (fit.log_likelihood - without), atol=1e-9)
    assert_array_equal(test.statistic == 0, fit.false_change == 0)
    assert_array_equal(test.pvalue == 1, fit.false_change == 0)
    positive = test.statistic[test.statistic > 0]
    expected = stats.chi2.sf(positive, 1) / 2
    assert_allclose(test.pvalue[test.statistic > 0], expected, rtol=1e-12)


def test_kernels_are_the_python_that_they_were_compiled_from(monkeypatch):
    compiled = false_changes(TWELVE)
    for name, kernel in vars(kernels).copy().items():
        if hasattr(kernel, "py_func"):
            monkeypatch.setattr(kernels, name, kernel.py_func)
    assert_allclose(false_changes(TWELVE), compiled, rtol=1e-10)


def test_newtons_method_converges_from_either_side():
    start = np.append(0.0, np.geomspace(1e-9, 150.0, 50))
    n, w = start.size, np.array([0.2, 0.7, 3.0])
    sums = np.empty((n, 4))
    kernels.profiles(
        np.full(n, 0.1),
        np.full(n, True),
        np.full(n, 2.0),
        np.tile(w, n),
        np.arange(0, 3 * n + 1, 3),
        start,
        sums,
    )
    root = optimize.brentq(
        lambda x: (w / np.expm1(0.1 + x * w)).sum() - 2.0, 0, 10, xtol=1e-14
    )
    assert_allclose(start, root, rtol=1e-10)
    assert_allclose(sums[:, 0], (1 / np.expm1(0.1 + root * w)).sum(), rtol=1e-10)


# ------------------------------------------------------------------------- Monte Carlo


def test_simulated_false_changes_leave_the_other_random_numbers_alone():
    rates, q = [0.2, 2.0], [0.0, 0.3]
    options = {"crawl_rate": 1.0, "n_crawls": 50_000, "rng": 1}
    true = simulate_history(rates, **options)
    history = simulate_history(rates, false_change=q, **options)
    assert_array_equal(history.interval, true.interval)
    assert_array_equal(history.changed[0], true.changed[0])
    assert not (true.changed & ~history.changed).any()
    unchanged = ~true.changed[1]
    found = history.changed[1][unchanged]
    stderr = np.sqrt(0.3 * 0.7 / found.size)
    assert found.mean() == pytest.approx(0.3, abs=3 * stderr)


@pytest.mark.parametrize("observation", ["age", "count"])
def test_false_changes_have_no_age_and_no_count_and_only_bits_are_used(observation):
    options = {"interval": [0.1, 1.5] * 500, "observation": observation, "rng": 1}
    true = simulate_history(1.0, **options)
    history = simulate_history(1.0, false_change=0.3, **options)
    told = getattr(history, observation)
    assert_array_equal(np.isnan(told[history.changed]), ~true.changed[history.changed])
    assert_array_equal(told[true.changed], getattr(true, observation)[true.changed])
    bits = History(history.interval, history.changed)
    assert_array_equal(false_changes(history), false_changes(bits))
    assert_array_equal(false_change_test(history), false_change_test(bits))


@pytest.mark.parametrize("known", [False, True])
def test_estimates_have_the_variance_that_the_design_promises(known):
    n, n_runs, q = 2000, 1000, 0.1
    history = simulate_history(
        1.0, interval=[0.1, 1.5] * (n // 2), false_change=q, n_runs=n_runs, rng=4
    )
    if known:  # the root of the score in the change rate alone
        k = history.changed.reshape(n_runs, -1, 2).sum(axis=1)
        m, w = n // 2, np.array([0.1, 1.5])

        def slope(rate, k):
            return (k * w / (1 - (1 - q) * np.exp(-rate * w)) - m * w).sum()

        estimates = [optimize.brentq(slope, 1e-3, 20, args=(own,)) for own in k]
        stderr = None
    else:
        fit = false_changes(history)
        estimates, stderr = fit.change_rate, fit.change_rate_stderr
    expected = design_variance(1.0, false_change=q, interval=[0.1, 1.5], known=known)
    variance = np.var(estimates) * n
    # n is finite: the relative error of the theory is of the order 1 / n
    assert variance == pytest.approx(expected, rel=3 * np.sqrt(2 / n_runs) + 0.01)
    assert np.mean(estimates) == pytest.approx(
        1, abs=4 * np.sqrt(expected / n / n_runs)
    )
    if stderr is not None:
        assert np.mean(stderr**2) * n == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
def test_size_and_power_of_the_test():
    def rejected(q, n_crawls, n_runs):
        history = simulate_history(
            1.0,
            interval=[0.1, 1.5] * (n_crawls // 2),
            false_change=q,
            n_runs=n_runs,
            rng=5,
        )
        return false_change_test(history).pvalue < 0.05

    n_runs = 4000
    stderr = np.sqrt(0.05 * 0.95 / n_runs)
    size = rejected(0.0, 2000, n_runs).mean()
    assert size == pytest.approx(0.05, abs=3 * stderr)
    assert 0.25 < rejected(0.05, 200, n_runs).mean() < 0.45


# ------------------------------------------------------------------------- invariances


def test_rescaling_time_rescales_rates_only():
    history, group = hosts(6)
    fit = quiet(false_changes, history, group=group)
    for scale in (1e-6, 1e6):
        scaled = History(scale * history.interval, history.changed, history.offsets)
        other = quiet(false_changes, scaled, group=group)
        assert_allclose(other.change_rate * scale, fit.change_rate, rtol=1e-8)
        assert_allclose(other.change_rate_stderr * scale, fit.change_rate_stderr, 1e-6)
        assert_allclose(other.false_change, fit.false_change, rtol=1e-8)
        assert_allclose(other.log_likelihood, fit.log_likelihood, rtol=1e-10)


def test_order_of_pages_and_crawls_and_names_of_groups_do_not_matter():
    history, group = hosts(7)
    fit = quiet(false_changes, history, group=group)
    rng = np.random.default_rng(1)
    order = rng.permutation(group.size)
    crawls = [rng.permutation(np.arange(*history.offsets[i : i + 2])) for i in order]
    offsets = np.append(0, np.cumsum([own.size for own in crawls]))
    crawls = np.concatenate(crawls)
    shuffled = History(history.interval[crawls], history.changed[crawls], offsets)
    names = np.array(list("hgfedcba"))  # in the opposite order
    other = quiet(false_changes, shuffled, group=names[group[order]])
    assert_allclose(other.change_rate, fit.change_rate[order], rtol=1e-9)
    assert_allclose(other.false_change, fit.false_change[::-1], rtol=1e-9)


def test_a_group_of_one_page_is_the_page_alone():
    history, _group = hosts(8, n=(10, 30))
    alone = quiet(false_changes, history)
    labels = np.arange(40) * 7 - 100
    for ours, own in zip(
        quiet(false_changes, history, group=labels), alone, strict=True
    ):
        assert_array_equal(ours, own)


def test_pages_have_any_shape():
    rates = np.array([[0.3, 1.0, 2.0], [0.5, 1.5, 4.0]])
    history = simulate_history(
        rates, interval=[0.1, 1.0] * 50, false_change=0.1, n_runs=4, rng=1
    )
    fit, test = false_changes(history), false_change_test(history)
    assert {np.shape(array) for array in (*fit, *test)} == {(4, 2, 3)}
    ragged = History(*history.ragged())
    flat = false_changes(ragged).change_rate
    assert_allclose(flat, fit.change_rate.ravel(), rtol=1e-12)
    group = np.arange(24).reshape(4, 2, 3) // 6
    grouped = false_changes(history, group=group)
    assert grouped.false_change.shape == grouped.log_likelihood.shape == (4,)
    assert grouped.change_rate.shape == (4, 2, 3)
    one = false_changes(
        History(history.interval[1], history.changed[1]), group=group[1]
    )
    assert grouped.false_change[1] == pytest.approx(one.false_change[0], rel=1e-9)


def test_variance_of_a_design_knows_units_shares_and_order():
    options = {"false_change": 0.2, "interval": [0.1, 1.0, 3.0]}
    shared = design_variance(0.7, share=[0.5, 0.2, 0.3], **options)
    assert design_variance(0.7, share=[5, 2, 3], **options) == pytest.approx(shared)
    options["interval"] = [3.0, 0.1, 1.0]
    turned = design_variance(0.7, share=[3, 5, 2], **options)
    assert turned == pytest.approx(shared)
    options["interval"] = np.array([3.0, 0.1, 1.0]) * 10
    scaled = design_variance(0.07, share=[3, 5, 2], **options)
    assert scaled * 100 == pytest.approx(shared)
    assert design_variance(
        [[1.0], [2.0]], false_change=[0.1, 0.2, 0.3], interval=[1.0, 2.0]
    ).shape == (2, 3)


def test_to_know_false_changes_never_hurts_and_one_interval_tells_nothing():
    rng = np.random.default_rng(1)
    interval, q = 10 ** rng.uniform(-2, 1, (50, 3)), rng.uniform(0, 0.5, 50)
    unknown = design_variance(1.0, false_change=q, interval=interval)
    known = design_variance(1.0, false_change=q, interval=interval, known=True)
    assert (known < unknown).all()
    assert np.isfinite(unknown).all()
    for w in (0.1, 0.3, 7e5):
        same = w * (1 + np.array([0.0, 1e-12, -1e-12]))
        assert design_variance(1.0, false_change=0.1, interval=same) == np.inf


# --------------------------------------------------------------------- edges and errors


def test_pages_without_two_kinds_of_bits():
    # page 0 never changed, 1 and 2 always, 3 is empty, 4 is as usual
    offsets = [0, 2, 3, 5, 5, 9]
    interval = [1.0, 2.0, 1.0, 1.0, 1.0, 0.1, 0.1, 2.0, 2.0]
    changed = [0, 0, 1, 1, 1, 1, 0, 0, 1]
    history = History(interval, changed, offsets)
    with pytest.warns(
        DegenerateHistoryWarning, match=r"1 never changed .* 2 changed at every"
    ) as caught:
        fit = false_changes(history)
    assert [w.filename for w in caught] == [__file__]
    alone = false_changes(History(interval[5:], changed[5:]))
    assert_array_equal(fit.change_rate[:4], [0, np.inf, np.inf, np.nan])
    assert fit.change_rate[4] == alone.change_rate
    assert_array_equal(
        fit.false_change, [0, np.nan, np.nan, np.nan, alone.false_change]
    )
    assert_array_equal(np.isnan(fit.change_rate_stderr), [True] * 4 + [False])
    assert fit.log_likelihood[0] == 0
    with pytest.warns(DegenerateHistoryWarning) as caught:
        test = false_change_test(history)
    assert [w.filename for w in caught] == [__file__]
    assert_array_equal(np.isnan(test.pvalue), np.isnan(fit.false_change))
    assert (test.statistic[0], test.pvalue[0]) == (0, 1)
    # pages that always changed and empty ones tell a group nothing
    group = quiet(false_changes, history, group=[0, 1, 1, 1, 1])
    assert group.false_change[1] == pytest.approx(alone.false_change, rel=1e-12)
    # a page that never changed does
    both = quiet(false_changes, history, group=[1, 1, 1, 1, 1])
    assert both.false_change[0] < alone.false_change


def test_one_interval_is_refused_unless_the_group_helps():
    interval = [0.5, 0.5, 0.5, 2.0, 2.0]
    history = History(interval, [1, 0, 1, 1, 0], [0, 3, 5])
    message = (
        "interval must differ enough, over enough crawls, to tell false changes from "
        "true ones, got 3 crawls at intervals from 0.5 to 0.5 on page (0,)"
    )
    for function in (false_changes, false_change_test):
        with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
            function(history)
        # two pages, each of one interval, do not help each other
        with pytest.raises(ValueError, match=f"{re.escape(message)} of group 'x'$"):
            function(history, group=["x", "x"])
    # a page with two intervals is enough
    interval, changed = [*interval, *[0.1, 3.0] * 5], [1, 0, 1, 1, 0, *[0, 1] * 4, 1, 0]
    helped = History(interval, changed, [0, 3, 5, 15])
    assert np.isfinite(false_changes(helped, group=[1, 1, 1]).change_rate).all()
    # and so is one that never changed: then q = 0
    helped = History([0.5, 0.5, 1.0], [1, 0, 0], [0, 2, 3])
    fit = quiet(false_changes, helped, group=[1, 1])
    assert fit.false_change == 0
    assert fit.change_rate[0] == mle(History([0.5, 0.5], [1, 0]))


@pytest.mark.parametrize(("jitter", "known"), [(0.0, 0), (5 / 86400, 0), (1 / 6, 1)])
def test_intervals_that_hardly_differ_are_refused(jitter, known):
    """Daily crawls, on time, some seconds early or late, or some hours."""
    rng = np.random.default_rng(3)
    interval = np.abs(1 + jitter * rng.standard_normal((20, 400)))
    history = simulate_history(np.ones(20), interval=interval, rng=4)
    for group in (None, np.zeros(20)):
        if known:
            assert np.isfinite(false_changes(history, group=group).change_rate).all()
            continue
        with pytest.raises(ValueError, match="interval must differ enough"):
            false_changes(history, group=group)


@pytest.mark.parametrize("function", [false_changes, false_change_test])
def test_pages_that_tell_nothing_leave_the_others_alone(function):
    interval = np.tile([0.1, 1.0], (5, 50))
    interval[[1, 3]] = 1.0
    history = simulate_history(np.ones(5), interval=interval, false_change=0.1, rng=1)
    message = r"2 of 5 pages do not tell .* 100 crawls at intervals from 1 to 1 on page"
    with pytest.warns(UnidentifiedWarning, match=message) as caught:
        found = function(history)
    assert [w.filename for w in caught] == [__file__]
    told = [0, 2, 4]
    alone = function(History(interval[told], history.changed[told]))
    for ours, theirs in zip(found, alone, strict=True):
        assert_array_equal(ours[told], theirs)
        assert np.isnan(ours[[1, 3]]).all()
    message = "1 of 3 groups do not tell .* of group 'b'"
    with pytest.warns(UnidentifiedWarning, match=message):
        function(history, group=list("abcba"))


def test_a_group_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setitem(false_changes.__globals__, "MAX_NEWTON_STEPS", 1)
    with pytest.raises(ConvergenceError, match="1 of 1 groups did not converge"):
        false_changes(TWELVE)


@pytest.mark.parametrize("group", [0, [0, 1], [[0]]])
def test_groups_of_another_shape_are_refused(group):
    with pytest.raises(ValueError, match="group must have one label for each page"):
        false_changes(History([[0.1, 1.0]] * 3, [[1, 0]] * 3), group=group)
    with pytest.raises(ValueError, match="group must be labels that can be sorted"):
        false_changes(History([[1.0, 2.0]] * 2, [[1, 0]] * 2), group=["a", None])
    with pytest.raises(ValueError, match="group must be labels, which NaN is not"):
        false_changes(History([[1.0, 2.0]] * 2, [[1, 0]] * 2), group=[1.0, np.nan])


@pytest.mark.parametrize(
    ("change_rate", "options", "message"),
    [
        (0.0, {}, "change_rate must be positive and finite, got 0.0"),
        (1.0, {"false_change": 1.0}, "false_change must be below 1, got 1.0"),
        (1.0, {"false_change": -0.1}, r"false_change must be in \[0, 1\], got -0.1"),
        (
            1.0,
            {"interval": [1.0, 0.0]},
            "interval must be positive and finite, got 0.0",
        ),
        (1.0, {"share": [1, -1]}, "share must be non-negative and finite, got -1.0"),
        (1.0, {"share": [0, 0]}, "share must be not all 0, got 0.0"),
        (1.0, {"share": [1, 1, 1]}, "must have shapes that broadcast"),
    ],
)
def test_designs_refuse(change_rate, options, message):
    good = {"false_change": 0.1, "interval": [0.1, 1.0]}
    with pytest.raises(ValueError, match=message):
        design_variance(change_rate, **good | options)


def test_simulated_false_changes_are_probabilities():
    with pytest.raises(ValueError, match=r"false_change must be in \[0, 1\], got 1.5"):
        simulate_history(1.0, interval=[1.0], false_change=1.5)
