"""Signals: parameters, the fit of appendix E of www25 against scipy, thresholds."""

import re
import warnings
from dataclasses import fields

import numpy as np
import pytest
from scipy import optimize, stats

from recrawl.kernels import crawl_value as _value
from recrawl.kernels import signals as kernels
from recrawl.science import freshness
from recrawl.science.allocation import optimal, optimal_thresholds
from recrawl.science.estimators import ConvergenceError, DegenerateHistoryWarning, mle
from recrawl.science.processes import History
from recrawl.science.signals import (
    DegenerateSignalsWarning,
    SignalledPages,
    corrupt,
    fit,
    naive_precision_recall,
    simulate_signalled_history,
)


def population(seed, n, low=0.2):
    """Pages of figure 10 of www25: uniform precision, recall and period."""
    rng = np.random.default_rng(seed)
    precision, recall = rng.uniform(low, 0.95, (2, n))
    return SignalledPages.from_precision(
        1 / rng.uniform(2, 20, n), rng.random(n), precision=precision, recall=recall
    )


# ---------------------------------------------------------------- parameters


def test_the_parameters_of_section_2():
    pages = SignalledPages(0.7, [1.0, 2.0], 0.5, [0.3, 0.0])
    for array in (pages.change_rate, pages.importance, pages.recall, pages.false_rate):
        assert array.shape == (2,)
        assert not array.flags.writeable
    np.testing.assert_allclose(pages.gamma, [0.65, 0.35], rtol=1e-14)
    np.testing.assert_allclose(pages.alpha, 0.35, rtol=1e-14)
    np.testing.assert_allclose(pages.precision, [0.35 / 0.65, 1.0], rtol=1e-14)
    np.testing.assert_allclose(
        pages.beta, [np.log(0.65 / 0.3) / 0.35, np.inf], rtol=1e-14
    )


def test_beta_and_precision_in_the_limits():
    pages = SignalledPages(
        [0.7, 0.7, 0.7, 0.0], 1.0, [0.0, 0.0, 1.0, 0.5], [0.0, 0.3, 0.3, 0.3]
    )
    np.testing.assert_array_equal(pages.beta, [0.0, 0.0, np.inf, 0.0])
    np.testing.assert_array_equal(pages.precision, [np.nan, 0.0, 0.7, 0.0])


def test_parameters_are_recovered_from_quality_and_from_observed_rates():
    rng = np.random.default_rng(1)
    pages = SignalledPages(
        rng.lognormal(size=100),
        rng.random(100),
        rng.uniform(0.01, 0.99, 100),
        rng.lognormal(size=100),
    )
    quality = SignalledPages.from_precision(
        pages.change_rate,
        pages.importance,
        precision=pages.precision,
        recall=pages.recall,
    )
    observed = SignalledPages.from_observed(
        pages.importance,
        alpha=pages.alpha,
        precision=pages.precision,
        gamma=pages.gamma,
    )
    by_beta = SignalledPages.from_observed(
        pages.importance,
        alpha=pages.alpha,
        precision=-np.expm1(-pages.alpha * pages.beta),
        gamma=pages.gamma,
    )
    for other in (quality, observed, by_beta):
        for field in fields(pages):
            np.testing.assert_allclose(
                getattr(other, field.name), getattr(pages, field.name), rtol=1e-12
            )


def test_pages_without_signals_have_any_precision():
    pages = SignalledPages.from_precision(
        0.7, 1.0, precision=[0.0, 0.5, 1.0], recall=0.0
    )
    np.testing.assert_array_equal(pages.false_rate, 0.0)
    never = SignalledPages.from_observed(1.0, alpha=0.0, precision=0.0, gamma=[0.3])
    assert (never.change_rate[0], never.recall[0], never.false_rate[0]) == (
        0.0,
        0.0,
        0.3,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: SignalledPages(-1.0, 1.0, 0.5, 0.1),
            "change_rate must be non-negative and finite, got -1.0",
        ),
        (
            lambda: SignalledPages(1.0, np.nan, 0.5, 0.1),
            "importance must be non-negative and finite, got nan",
        ),
        (
            lambda: SignalledPages(1.0, 1.0, [0.5, 1.5], 0.1),
            "recall must be in [0, 1], got 1.5 at index (1,)",
        ),
        (
            lambda: SignalledPages(1.0, 1.0, np.nan, 0.1),
            "recall must be in [0, 1], got nan",
        ),
        (
            lambda: SignalledPages(1.0, 1.0, 0.5, np.inf),
            "false_rate must be non-negative and finite, got inf",
        ),
        (
            lambda: SignalledPages([], 1.0, 0.5, 0.1),
            "change_rate must hold one number per page, at least one page, got "
            "shape (0,)",
        ),
        (
            lambda: SignalledPages(np.ones((2, 2)), 1.0, 0.5, 0.1),
            "one number per page, at least one page, got shape (2, 2)",
        ),
        (
            lambda: SignalledPages([1.0, 1.0], [1.0] * 3, 0.5, 0.1),
            "must have shapes that broadcast, got change_rate (2,), importance (3,)",
        ),
        (
            lambda: SignalledPages.from_precision(
                1.0, 1.0, precision=[0.5, 0.0], recall=0.5
            ),
            "precision must be positive where recall is, got 0.0 at index (1,)",
        ),
        (
            lambda: SignalledPages.from_precision(1.0, 1.0, precision=1.5, recall=0.5),
            "precision must be in [0, 1], got 1.5",
        ),
        (
            lambda: SignalledPages.from_observed(
                1.0, alpha=-1.0, precision=0.5, gamma=1.0
            ),
            "alpha must be non-negative and finite, got -1.0",
        ),
    ],
)
def test_pages_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# -------------------------------------------------------- corrupted beliefs


def test_a_share_of_the_beliefs_is_uniform_noise():
    pages = population(1, 100_000)
    right, half, noise = corrupt(pages, [0.0, 0.5, 1.0], rng=2)
    for name in ("precision", "recall", "gamma"):
        np.testing.assert_allclose(getattr(right, name), getattr(pages, name))
    for name in ("precision", "recall"):
        true, drawn = getattr(pages, name), getattr(noise, name)
        np.testing.assert_allclose(getattr(half, name), (true + drawn) / 2, atol=0.01)
        above = drawn[drawn > 0.01]  # precisions are kept at that or above
        assert stats.kstest(above, "uniform", args=(0.01, 0.99)).pvalue > 0.001
        assert abs(np.corrcoef(drawn, true)[0, 1]) < 4 / np.sqrt(true.size)
    between = np.corrcoef(noise.precision, noise.recall)[0, 1]
    assert abs(between) < 4 / np.sqrt(true.size)


def test_corrupted_beliefs_keep_change_rates_and_the_least_precision():
    pages = SignalledPages(0.7, [1.0, 2.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.3, 0.0])
    for believed in corrupt(pages, [0.0, 0.3, 1.0], least_precision=0.4, rng=1):
        np.testing.assert_array_equal(believed.change_rate, pages.change_rate)
        np.testing.assert_array_equal(believed.importance, pages.importance)
        signalled = believed.recall > 0
        assert (believed.precision[signalled] > 0.4 - 1e-12).all()
    (one,), (_, two) = corrupt(pages, 0.3, rng=1), corrupt(pages, [0.1, 0.3], rng=1)
    np.testing.assert_array_equal(one.false_rate, two.false_rate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corruption": [0.1, 1.2]}, "corruption must be in [0, 1], got 1.2"),
        (
            {"corruption": 0.1, "least_precision": 0.0},
            "least_precision must be positive, got 0.0",
        ),
    ],
)
def test_corrupted_beliefs_refuse(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        corrupt(SignalledPages(0.7, 1.0, 0.5, 0.3), **options)


# ---------------------------------------------------------------- naive


def test_naive_by_hand():
    history = History(
        [[1.0] * 5, [1.0] * 5, [2.0] * 5], [[1, 0, 1, 1, 0], [0] * 5, [1] * 5]
    )
    precision, recall = naive_precision_recall(
        history, [[2, 1, 0, 1, 0], [0] * 5, [1, 0, 0, 0, 0]]
    )
    np.testing.assert_allclose(precision, [3 / 4, np.nan, 1.0], rtol=1e-15)
    np.testing.assert_allclose(recall, [2 / 3, np.nan, 1 / 5], rtol=1e-15)


def test_naive_is_biased_and_the_fit_is_not():
    """Figure 10: with rare crawls nearly every interval has a change."""
    pages = SignalledPages.from_precision(
        np.full(200, 0.1), 1.0, precision=0.3, recall=0.6
    )
    history, n_signals = simulate_signalled_history(
        pages, crawl_rate=0.025, n_crawls=2000, rng=2
    )
    naive, found = (
        naive_precision_recall(history, n_signals)[0],
        fit(history, n_signals),
    )
    assert naive.mean() > 0.7
    # 5 standard errors, and the bias of one fit, of the order of 1 / n_crawls
    assert found.precision.mean() == pytest.approx(
        0.3, abs=5 * found.precision.std() / np.sqrt(200) + 1e-3
    )


# ---------------------------------------------------------------- the fit


def log_likelihood(alpha, b, interval, changed, n_signals):
    eta = alpha * interval + b * n_signals
    with np.errstate(divide="ignore"):  # an unchanged crawl without evidence
        return np.where(changed, np.log(-np.expm1(-eta)), -eta).sum()


def score(alpha, b, interval, changed, n_signals):
    """Derivatives in alpha and b, relative to the sum of their absolute terms."""
    with np.errstate(divide="ignore", over="ignore"):
        weight = np.where(changed, 1 / np.expm1(alpha * interval + b * n_signals), -1.0)
    return [
        (x * weight).sum() / np.abs(x * weight).sum() for x in (interval, n_signals)
    ]


@pytest.mark.slow
def test_recovers_the_truth_within_its_standard_errors():
    pages = population(3, 300)
    history, n_signals = simulate_signalled_history(
        pages,
        crawl_rate=pages.change_rate * np.random.default_rng(5).uniform(0.25, 4, 300),
        n_crawls=3000,
        rng=4,
    )
    found = fit(history, n_signals)
    inside = (found.alpha > 0) & (found.b > 0) & (found.b < np.inf)
    assert inside.mean() > 0.99
    for name in ("change_rate", "precision", "recall", "false_rate"):
        z = (
            (getattr(found, name) - getattr(pages, name))
            / getattr(found, f"{name}_stderr")
        )[inside]
        assert np.abs(z).max() < 5
        # to the errors of mean and standard deviation come bias and skewness,
        # of the order of 1 / sqrt(n_crawls)
        assert z.mean() == pytest.approx(0, abs=5 / np.sqrt(z.size) + 0.1)
        assert z.std() == pytest.approx(1, abs=5 / np.sqrt(2 * z.size) + 0.05)
    np.testing.assert_allclose(
        found.change_rate, found.alpha + found.precision * found.gamma, rtol=1e-12
    )
    np.testing.assert_allclose(found.precision, -np.expm1(-found.b), rtol=1e-12)


@pytest.mark.slow
def test_the_score_is_zero_inside_and_points_outwards_on_the_bounds():
    """The log-likelihood is concave: these conditions are a maximum."""
    pages, checked = population(6, 1500), np.zeros(3, dtype=int)
    for n_crawls in (8, 40, 400):
        history, n_signals = simulate_signalled_history(
            pages, crawl_rate=pages.change_rate, n_crawls=n_crawls, rng=n_crawls
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateSignalsWarning)
            found = fit(history, n_signals)
        for i, (alpha, b) in enumerate(zip(found.alpha, found.b, strict=True)):
            if not (np.isfinite(alpha) and np.isfinite(b)) or alpha == b == 0:
                continue
            in_alpha, in_b = score(
                alpha, b, history.interval[i], history.changed[i], n_signals[i]
            )
            assert in_alpha <= 1e-12 if alpha == 0 else abs(in_alpha) <= 1e-9
            assert in_b <= 1e-12 if b == 0 else abs(in_b) <= 1e-9
            checked += [alpha > 0 and b > 0, alpha == 0, b == 0]
    assert (checked > [1000, 50, 50]).all()


def test_agrees_with_scipy():
    pages, checked = population(7, 60), 0
    history, n_signals = simulate_signalled_history(
        pages, crawl_rate=pages.change_rate, n_crawls=25, rng=8
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSignalsWarning)
        found = fit(history, n_signals)
    for i in range(60):
        if (
            not (np.isfinite(found.alpha[i]) and np.isfinite(found.b[i]))
            or found.alpha[i] == found.b[i] == 0
        ):
            continue
        data = history.interval[i], history.changed[i], n_signals[i]
        best = optimize.minimize(
            lambda x, data=data: -log_likelihood(*x, *data),
            [0.1, 0.1],
            bounds=[(1e-12, None)] * 2,
            method="L-BFGS-B",
            options={"ftol": 1e-15},
        )
        assert log_likelihood(found.alpha[i], found.b[i], *data) >= -best.fun - 1e-9
        np.testing.assert_allclose(
            [found.alpha[i], found.b[i]], best.x, rtol=1e-3, atol=1e-5
        )
        checked += 1
    assert checked > 40


def test_standard_errors_are_the_observed_information():
    """By differences of the log-likelihood; the rate of signals adds gamma / time."""
    pages = SignalledPages.from_precision(0.2, 1.0, precision=0.6, recall=0.5)
    history, n_signals = simulate_signalled_history(
        pages, crawl_rate=0.2, n_crawls=500, rng=9
    )
    found, data = (
        fit(history, n_signals),
        (history.interval[0], history.changed[0], n_signals[0]),
    )
    x, h = np.array([found.alpha[0], found.b[0]]), 1e-4
    hessian = np.empty((2, 2))
    for i, j in np.ndindex(2, 2):
        e, f = h * np.eye(2)[i] * x, h * np.eye(2)[j] * x
        corners = [
            log_likelihood(*(x + s * e + t * f), *data) * s * t
            for s in (1, -1)
            for t in (1, -1)
        ]
        hessian[i, j] = sum(corners) / (4 * h * h * x[i] * x[j])
    cov = np.zeros((3, 3))
    cov[:2, :2] = np.linalg.inv(-hessian)
    cov[2, 2] = found.gamma[0] / data[0].sum()

    def derived(alpha, b, gamma):
        precision = 1 - np.exp(-b)
        change = alpha + precision * gamma
        return np.array(
            [change, precision, precision * gamma / change, gamma * np.exp(-b)]
        )

    at = np.array([*x, found.gamma[0]])
    slopes = np.array(
        [
            (derived(*(at + e)) - derived(*(at - e))) / (2 * e.sum())
            for e in 1e-5 * np.diag(at)
        ]
    )
    expected = np.sqrt(np.diag(slopes.T @ cov @ slopes))
    names = (
        "change_rate_stderr",
        "precision_stderr",
        "recall_stderr",
        "false_rate_stderr",
    )
    np.testing.assert_allclose(
        [getattr(found, name)[0] for name in names], expected, rtol=1e-4
    )
    known = fit(history, n_signals, signal_rate=found.gamma)
    assert known.change_rate_stderr[0] < found.change_rate_stderr[0]
    assert known.change_rate[0] == found.change_rate[0]


def test_bounds_and_degenerate_pages():
    interval = np.ones((7, 6))
    interval[4] = interval[5] = interval[6] = [1.0, 2.0, 1.0, 3.0, 2.0, 1.0]
    changed = np.array(
        [
            [0] * 6,
            [1] * 6,
            [1, 0, 1, 0, 0, 0],
            [0] * 6,
            [1, 0, 1, 0, 0, 0],
            [1, 0, 1, 0, 0, 1],
            [1, 1, 0, 0, 1, 0],
        ]
    )
    n_signals = np.array(
        [
            [1, 0, 0, 2, 0, 0],
            [1, 0, 0, 2, 0, 0],
            [0] * 6,
            [0] * 6,
            [1, 0, 2, 0, 0, 0],
            [1, 0, 2, 0, 0, 0],
            [0, 0, 1, 2, 0, 1],
        ]
    )
    history = History(interval, changed)
    counted = (
        "2 of 7 pages never changed; 1 of 7 pages always changed; "
        "2 of 7 pages had no signal"
    )
    with pytest.warns(DegenerateSignalsWarning, match=f"^{counted}$"):
        found = fit(history, n_signals)
    # never changed; always; no signal; neither; signals with the changes only,
    # and all of them; some of them; signals without changes only
    np.testing.assert_array_equal(found.alpha[[0, 1, 3, 4]], [0, np.inf, 0, 0])
    np.testing.assert_array_equal(
        found.b, [0, np.nan, np.nan, np.nan, np.inf, np.inf, 0]
    )
    np.testing.assert_array_equal(found.precision, [0, np.nan, np.nan, np.nan, 1, 1, 0])
    np.testing.assert_allclose(
        found.change_rate[[0, 1, 3, 4]], [0, np.inf, 0, 0.3], rtol=1e-15
    )
    np.testing.assert_allclose(
        found.recall[[0, 1, 2, 3, 4, 6]], [np.nan, np.nan, 0, np.nan, 1, 0], rtol=1e-15
    )
    np.testing.assert_allclose(
        found.false_rate, [0.5, np.nan, 0, 0, 0, 0, 0.4], rtol=1e-15
    )
    with pytest.warns(DegenerateHistoryWarning):
        expected = mle(history)
    np.testing.assert_allclose(found.change_rate[[2, 6]], expected[[2, 6]], rtol=1e-12)
    bare = (
        n_signals[5] == 0
    )  # a signal is as good as a crawl there: what remains is a page without signals
    assert found.alpha[5] == pytest.approx(
        mle(History(interval[5, bare], changed[5, bare])).item(), rel=1e-12, abs=0
    )
    assert np.isnan(found.change_rate_stderr[[0, 1, 3]]).all()
    assert np.isnan(found.precision_stderr[[0, 1, 2, 3, 4, 5, 6]]).all()
    assert (found.change_rate_stderr[[2, 4, 5, 6]] > 0).all()
    with pytest.warns(DegenerateSignalsWarning):
        known = fit(history, n_signals, signal_rate=0.5)
    assert np.isnan(known.precision[[2, 3]]).all()
    assert np.isnan(
        known.change_rate[[2, 3]]
    ).all()  # signals are there, but not in this history


def test_signals_in_proportion_to_the_intervals_leave_one_parameter_open():
    history = History([[1.0, 2.0, 3.0, 1.0, 2.0]], [[1, 0, 1, 0, 1]])
    with pytest.warns(
        DegenerateSignalsWarning,
        match="1 of 1 pages had signals in proportion to the intervals",
    ):
        found = fit(history, [[1, 2, 3, 1, 2]])
    assert found.alpha[0] + found.b[0] == pytest.approx(
        mle(history)[0], rel=1e-9, abs=0
    )
    assert np.isnan(found.change_rate_stderr[0])


def test_proportion_is_told_whatever_the_rounding_and_from_almost_proportion():
    rng = np.random.default_rng(5)
    n_signals = rng.integers(1, 6, (300, 12))
    changed = rng.random(n_signals.shape) < 0.5
    changed[:, :2] = True, False
    per_signal = rng.lognormal(0.0, 3.0, (300, 1))
    history = History(n_signals * per_signal, changed)
    with pytest.warns(DegenerateSignalsWarning, match="^300 of 300 pages had signals"):
        found = fit(history, n_signals)
    np.testing.assert_allclose(
        found.alpha + found.b / per_signal[:, 0], mle(history), rtol=1e-9
    )
    assert np.isnan(found.change_rate_stderr).all()
    assert np.isnan(found.precision_stderr).all()
    almost = History(
        history.interval * (1 + 1e-3 * rng.random(n_signals.shape)), changed
    )
    assert (fit(almost, n_signals).change_rate_stderr > 0).all()


def test_histories_of_unequal_length_and_other_units():
    pages = population(10, 30)
    history, n_signals = simulate_signalled_history(
        pages, crawl_rate=pages.change_rate, n_crawls=100, rng=11
    )
    expected = fit(history, n_signals)
    length = np.random.default_rng(12).integers(60, 101, 30)
    keep = np.arange(100) < length[:, np.newaxis]
    ragged = History(
        history.interval[keep], history.changed[keep], np.append(0, np.cumsum(length))
    )
    found = fit(ragged, n_signals[keep])
    for i in (0, 7, 29):
        one = fit(
            History(history.interval[i, : length[i]], history.changed[i, : length[i]]),
            n_signals[i, : length[i]],
        )
        for field in fields(one):
            np.testing.assert_allclose(
                getattr(found, field.name)[i], getattr(one, field.name), rtol=1e-10
            )
    hours = fit(History(history.interval * 24, history.changed), n_signals)
    for field in fields(hours):
        scale = (
            1
            if "precision" in field.name or "recall" in field.name or field.name == "b"
            else 24
        )
        np.testing.assert_allclose(
            getattr(hours, field.name) * scale, getattr(expected, field.name), rtol=1e-7
        )
    empty = fit(History([1.0, 2.0, 1.0], [1, 0, 1], [0, 3, 3]), [1, 1, 0])
    assert np.isnan(empty.change_rate[1])
    deep = fit(
        History(
            history.interval.reshape(2, 15, 100), history.changed.reshape(2, 15, 100)
        ),
        n_signals.reshape(2, 15, 100),
    )
    np.testing.assert_array_equal(deep.change_rate.ravel(), expected.change_rate)


def test_a_fit_that_does_not_converge_says_so(monkeypatch):
    def give_up(interval, changed, n_signals, offsets, rates, variances):
        rates[:] = [[0.5, 0.1], [np.nan, 0.0]]
        variances[:] = 1.0

    monkeypatch.setattr(kernels, "signal_rates", give_up)
    with pytest.raises(
        ConvergenceError, match="1 of 2 pages did not converge"
    ) as error:
        fit(History(np.ones((2, 3)), [[1, 0, 1]] * 2), np.ones((2, 3)))
    np.testing.assert_array_equal(error.value.last, [[0.5, 0.1], [np.nan, np.nan]])


@pytest.mark.parametrize("function", [fit, naive_precision_recall])
@pytest.mark.parametrize(
    ("n_signals", "message"),
    [
        (
            [1, -1, 0],
            "n_signals must be non-negative and finite, got -1.0 at index (1,)",
        ),
        ([1, 0.5, 0], "n_signals must be whole numbers, got 0.5 at index (1,)"),
        ([1, 0], "n_signals must have the shape of the history, (3,), got (2,)"),
    ],
)
def test_counts_are_checked(function, n_signals, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(History([1.0, 2.0, 1.0], [1, 0, 1]), n_signals)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (-1.0, "signal_rate must be non-negative and finite, got -1.0"),
        ([1.0, 2.0], "signal_rate must be a number or of shape (), got shape (2,)"),
    ],
)
def test_the_signal_rate_is_checked(rate, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(History([1.0, 2.0, 1.0], [1, 0, 1]), [1, 1, 0], signal_rate=rate)


# ---------------------------------------------------------------- thresholds


def noisy(seed, n):
    """The pages of figure 4 of www25."""
    rng = np.random.default_rng(seed)
    return SignalledPages(
        rng.random(n),
        rng.random(n),
        np.clip(rng.beta(0.25, 0.25, n), 0, 1 - 1e-6),
        rng.uniform(0.1, 0.6, n),
    )


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [0.01, 1.0, 30.0, 300.0])
def test_the_thresholds_are_optimal(bandwidth):
    pages = noisy(13, 300)
    best = optimal_thresholds(pages, bandwidth)
    assert best.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-9, abs=0)
    crawled = best.crawl_rate > 0
    np.testing.assert_array_equal(np.isfinite(best.threshold), crawled)
    value = freshness.crawl_value(best.threshold, 0, pages)
    np.testing.assert_allclose(value[crawled], best.multiplier, rtol=1e-9)
    assert (value[~crawled] <= best.multiplier).all()
    cycle, fresh = (
        freshness.cycle_length(best.threshold, pages),
        freshness.fresh_time(best.threshold, pages),
    )
    np.testing.assert_allclose(best.crawl_rate[crawled], 1 / cycle[crawled], rtol=1e-9)
    share = np.where(crawled, fresh / cycle, 0.0)
    assert best.freshness == pytest.approx(
        np.average(share, weights=pages.importance), rel=1e-9, abs=0
    )
    assert (
        best.freshness
        >= optimal(pages.change_rate, pages.importance, bandwidth).freshness
    )


@pytest.mark.parametrize("bandwidth", [1e-3, 0.5, 30.0, 1e4])
def test_without_signals_they_are_equal_intervals(bandwidth):
    rng = np.random.default_rng(14)
    change, importance = rng.random((2, 300))
    change[0] = importance[1] = 0.0
    best, plain = (
        optimal_thresholds(SignalledPages(change, importance, 0.0, 0.0), bandwidth),
        optimal(change, importance, bandwidth),
    )
    np.testing.assert_allclose(
        best.crawl_rate, plain.crawl_rate, rtol=1e-9, atol=1e-9 * plain.crawl_rate.max()
    )
    assert best.multiplier == pytest.approx(plain.multiplier, rel=1e-9, abs=0)
    assert best.freshness == pytest.approx(plain.freshness, rel=1e-9, abs=0)
    crawled = best.crawl_rate > 0
    np.testing.assert_allclose(
        best.threshold[crawled], 1 / best.crawl_rate[crawled], rtol=1e-9
    )


def test_no_other_thresholds_are_fresher():
    """Three pages, against a general solver of scipy over logs of thresholds."""
    pages = SignalledPages(
        [0.5, 1.0, 0.2], [1.0, 2.0, 1.5], [0.5, 0.8, 0.2], [0.3, 0.2, 0.1]
    )
    best = optimal_thresholds(pages, 1.0)

    def rate(x):
        return 1 / freshness.cycle_length(np.exp(x), pages)

    other = optimize.minimize(
        lambda x: (
            -np.average(
                freshness.fresh_time(np.exp(x), pages) * rate(x),
                weights=pages.importance,
            )
        ),
        np.zeros(3),
        constraints={"type": "eq", "fun": lambda x: rate(x).sum() - 1.0},
        options={"ftol": 1e-14},
    )
    assert best.freshness == pytest.approx(-other.fun, rel=1e-8, abs=0)
    np.testing.assert_allclose(best.threshold, np.exp(other.x), rtol=1e-3)


def test_pages_whose_changes_are_all_signalled():
    """Crawled after a whole number of signals; time alone never makes them due."""
    pages = SignalledPages(
        [0.5, 0.5, 0.7], [1.0, 1.0, 1.0], [1.0, 1.0, 0.5], [0.3, 0.0, 0.3]
    )
    best = optimal_thresholds(pages, 1.2)
    np.testing.assert_array_equal(np.isinf(best.threshold), [True, True, False])
    per_crawl = pages.gamma[:2] / best.crawl_rate[:2]
    np.testing.assert_allclose(per_crawl, np.round(per_crawl), rtol=1e-9)
    n = round(per_crawl[0])
    value = freshness.crawl_value(1.0, [[n - 1], [n]], pages)[:, 0]
    assert value[0] < best.multiplier <= value[1]
    assert best.crawl_rate.sum() == pytest.approx(1.2, rel=1e-12, abs=0)
    # a crawl at every signal leaves nothing to gain; one less is a share of
    # the jump to one crawl in two signals
    all_signalled = SignalledPages([0.5, 0.0], 1.0, [1.0, 0.5], 0.3)
    lots = optimal_thresholds(all_signalled, 5.0)
    np.testing.assert_array_equal(lots.crawl_rate, [0.8, 0.0])
    assert (lots.multiplier, lots.freshness) == (0.0, 1.0)
    share = optimal_thresholds(all_signalled, 0.6)
    assert share.crawl_rate[0] == pytest.approx(0.6, rel=1e-12, abs=0)
    q = (
        0.3 / 0.8
    )  # at one crawl in two signals fresh 1, then q, of the time; the mix is linear
    assert share.freshness == pytest.approx(
        ((1 + q) / 2 * 0.5 + 1 * 0.5 + 1) / 2, rel=1e-9, abs=0
    )


@pytest.mark.slow
def test_order_units_and_more_bandwidth():
    pages = noisy(15, 200)
    best, order = (
        optimal_thresholds(pages, 20.0),
        np.random.default_rng(16).permutation(200),
    )
    shuffled = SignalledPages(
        *(getattr(pages, field.name)[order] for field in fields(pages))
    )
    np.testing.assert_allclose(
        optimal_thresholds(shuffled, 20.0).crawl_rate, best.crawl_rate[order], rtol=1e-8
    )
    day = SignalledPages(
        pages.change_rate * 24,
        pages.importance * 5,
        pages.recall,
        pages.false_rate * 24,
    )
    again = optimal_thresholds(day, 480.0)
    np.testing.assert_allclose(again.crawl_rate, 24 * best.crawl_rate, rtol=1e-8)
    np.testing.assert_allclose(again.threshold, best.threshold / 24, rtol=1e-8)
    fresher = [
        optimal_thresholds(pages, bandwidth).freshness
        for bandwidth in np.geomspace(0.1, 1000, 12)
    ]
    assert (np.diff(fresher) > 0).all()


def test_thresholds_refuse():
    pages = noisy(17, 3)
    for bandwidth in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="bandwidth must be positive and finite"):
            optimal_thresholds(pages, bandwidth)
    with pytest.raises(ValueError, match="bandwidth must be a single number"):
        optimal_thresholds(pages, [1.0, 2.0])
    with pytest.raises(
        ValueError, match="importance must be positive for at least one page"
    ):
        optimal_thresholds(SignalledPages(1.0, 0.0, 0.5, 0.1), 1.0)


def test_thresholds_that_do_not_converge_say_so(monkeypatch):
    def give_up(multiplier, rows, at_one, gamma, state, rate):
        rate[:] = np.nan
        return 1.0 if multiplier < 1.0 else 0.0

    monkeypatch.setattr(_value, "threshold_rates", give_up)
    with pytest.raises(ConvergenceError, match="the thresholds did not converge"):
        optimal_thresholds(noisy(18, 3), 0.5)


# ---------------------------------------------------------------- simulated histories


@pytest.mark.parametrize(
    ("recall", "false_rate"),
    [(0.5, 0.3), (0.0, 0.3), (1.0, 0.3), (1.0, 0.0), (0.0, 0.0)],
)
def test_simulated_changes_follow_equation_1(recall, false_rate):
    pages, n = SignalledPages(np.full(20, 0.7), 1.0, recall, false_rate), 20_000
    history, n_signals = simulate_signalled_history(
        pages, interval=2.0, n_crawls=n, rng=1
    )
    assert history.changed.shape == n_signals.shape == (20, n)
    gamma = pages.gamma[0]
    assert abs(n_signals.mean() - 2 * gamma) <= 5 * np.sqrt(2 * gamma / n_signals.size)
    for k in range(4):
        of = history.changed[n_signals == k]
        expected = (
            -np.expm1(-2 * pages.alpha[0])
            if k == 0
            else 1 - np.exp(-2 * pages.alpha[0]) * (1 - pages.precision[0]) ** k
        )
        assert (
            abs(of.mean() - expected)
            <= 5 * np.sqrt(expected * (1 - expected) / of.size) + 1e-15
            if of.size
            else gamma == 0
        )


def test_simulated_signalled_histories_depend_on_the_seed_alone():
    pages = SignalledPages([0.7, 0.2], 1.0, 0.5, 0.3)
    one, other, third = (
        simulate_signalled_history(pages, crawl_rate=[1.0, 2.0], n_crawls=50, rng=seed)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one[0].interval, other[0].interval)
    np.testing.assert_array_equal(one[1], other[1])
    assert (one[1] != third[1]).any()
    with pytest.raises(
        ValueError, match="exactly one of crawl_rate and interval must be given"
    ):
        simulate_signalled_history(pages, n_crawls=50)


@pytest.mark.slow
def test_the_fit_of_long_histories_has_a_score_of_zero_up_to_rounding():
    pages = population(31, 250)
    interval = np.broadcast_to(
        1 / (2 * pages.change_rate)[:, np.newaxis], (250, 10_000)
    )
    history, n_signals = simulate_signalled_history(pages, interval=interval, rng=32)
    found = fit(history, n_signals)
    with np.errstate(all="raise"):
        odds = 1 / np.expm1(
            found.alpha[:, np.newaxis] * history.interval
            + found.b[:, np.newaxis] * n_signals
        )
    for weight in (history.interval, n_signals):
        score = np.where(history.changed, odds, -1.0) * weight
        np.testing.assert_allclose(
            score.sum(axis=1), 0.0, atol=1e-9 * np.abs(score).sum(axis=1).max()
        )


@pytest.mark.parametrize("n", [3400, 8000, 20_000])
def test_fit_of_a_long_history_with_two_signals(n):
    rng = np.random.default_rng(2)
    interval, changed, n_signals = (
        rng.exponential(3.0, size=n),
        rng.random(n) < 0.6,
        np.zeros(n, dtype=int),
    )
    n_signals[[np.flatnonzero(changed)[0], np.flatnonzero(~changed)[0]]] = 1
    found = fit(History(interval, changed), n_signals)
    assert 0 < found.precision < 1
    assert found.change_rate == pytest.approx(
        mle(History(interval, changed)), rel=1e-3
    )  # of which the two say little


def test_corrupt_draws_the_noise_of_precision_and_recall_apart():
    """At p = 1 the beliefs are the noise itself, a row of it for each."""
    pages = SignalledPages.from_precision(np.ones(50), 1.0, precision=0.5, recall=0.5)
    (noise,) = corrupt(pages, 1.0, least_precision=1e-9, rng=3)
    first, second = np.random.default_rng(3).random((2, 50))
    np.testing.assert_allclose(noise.precision, first, rtol=1e-9)
    np.testing.assert_allclose(noise.recall, second, rtol=1e-9)


def test_pages_that_announce_all_changes_are_crawled_at_each_where_this_is_possible():
    pages = SignalledPages([1.0, 1.0], [1.0, 0.0], 1.0, 0.0)
    plan = optimal_thresholds(pages, 5.0)
    assert plan.crawl_rate.tolist() == [1.0, 0.0]
    assert plan.multiplier == 0.0
