"""Batch estimators: closed forms, oracles, coverage, invariances, bad input."""

import re
import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import brentq

from paperfigs import traces
from recrawl.kernels import batch as kernels
from recrawl.science.estimators import (
    ConvergenceError,
    DegenerateHistoryWarning,
    fisher_information,
    likelihood_interval,
    mle,
    moment_matching,
    naive,
    serial_score,
)
from recrawl.science.processes import History
from tests.recrawl.made import observe, simulate_history
from tests.recrawl.crawl_logs import adapted

BATCH = {
    "naive": naive,
    "mle": mle,
    "moment_matching": moment_matching,
    "low": lambda h: likelihood_interval(h)[0],
    "high": lambda h: likelihood_interval(h)[1],
}


def irregular(seed, n_pages=12, spread=1.0, n=(3, 30)):
    """Pages of unequal length, none degenerate; `spread` in decades either way."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*n, n_pages)
    interval = [10.0 ** rng.uniform(-spread, spread, size) for size in sizes]
    changed = [
        rng.permutation(np.arange(size) < rng.integers(1, size)) for size in sizes
    ]
    return History(
        np.concatenate(interval),
        np.concatenate(changed),
        np.append(0, np.cumsum(sizes)),
    )


def pages(history):
    return [
        (history.interval[a:b], history.changed[a:b])
        for a, b in zip(history.offsets[:-1], history.offsets[1:], strict=True)
    ]


def log_likelihood(rate, interval, changed):
    return (
        np.log(-np.expm1(-rate * interval[changed])).sum()
        - rate * interval[~changed].sum()
    )


@pytest.fixture
def plain(monkeypatch):
    """Every kernel as the plain Python that was compiled."""
    for name, kernel in vars(kernels).copy().items():
        if hasattr(kernel, "py_func"):
            monkeypatch.setattr(kernels, name, kernel.py_func)


# --------------------------------------------------------- closed forms and identities


@pytest.mark.parametrize(
    ("n", "k", "w"),
    [(2, 1, 1.0), (10, 3, 0.2), (50, 49, 7.0), (1000, 1, 1e-6), (1000, 999, 1e6)],
)
def test_equal_intervals_have_closed_forms(n, k, w):
    history = History(np.full(n, w), np.arange(n) < k)
    for estimator in (mle, moment_matching):
        assert estimator(history) == pytest.approx(
            np.log(n / (n - k)) / w, rel=1e-10, abs=0
        )
    assert naive(history) == pytest.approx(k / (n * w), rel=1e-10, abs=0)


@pytest.mark.parametrize("spread", [1.0, 3.0, 6.0])  # 6: intervals over 12 decades
def test_estimates_solve_their_equations(spread):
    history = irregular(1, n_pages=300, spread=spread)
    likely, matched = mle(history), moment_matching(history)
    for (w, changed), a, b in zip(pages(history), likely, matched, strict=True):
        with np.errstate(over="ignore"):
            score = (w[changed] / np.expm1(a * w[changed])).sum() / w[~changed].sum()
        assert score == pytest.approx(1, abs=1e-10)
        assert np.exp(-b * w).sum() == pytest.approx((~changed).sum(), abs=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_likelihood_interval_ends_where_the_likelihood_has_fallen_enough(level, spread):
    history = irregular(2, n_pages=100, spread=spread)
    low, high = likelihood_interval(history, level=level)
    drop = stats.chi2.ppf(level, 1) / 2
    for (w, changed), rate, *ends in zip(
        pages(history), mle(history), low, high, strict=True
    ):
        assert ends[0] < rate < ends[1]
        for end in ends:
            fallen = log_likelihood(rate, w, changed) - log_likelihood(end, w, changed)
            assert fallen == pytest.approx(
                drop, abs=1e-10 * (1 + abs(log_likelihood(end, w, changed)))
            )


def test_one_tiny_interval_among_huge_ones():
    """The likelihood is flat over 25 units of log rate."""
    w, changed = np.array([1e6] * 5 + [1e-6]), np.arange(6) < 5
    history, drop = History(w, changed), stats.chi2.ppf(0.95, 1) / 2
    rate, (low, high) = mle(history), likelihood_interval(history)
    assert rate == pytest.approx(
        np.log1p(5e12) / 1e6, rel=1e-10, abs=0
    )  # 5 w / (exp(rate w) - 1) = 1e-6
    for end in (low, high):
        assert log_likelihood(rate, w, changed) - log_likelihood(
            end, w, changed
        ) == pytest.approx(drop, abs=1e-8)
    w = np.array([1.4e-6, 5.8e5])
    root = brentq(
        lambda x: np.exp(-x * w[1]) + np.expm1(-x * w[0]),
        1e-6,
        1e-3,
        xtol=1e-300,
        rtol=1e-14,
    )
    # the error of the root is that of the sum, 1e-16, over its slope in x
    assert moment_matching(History(w, [True, False])) == pytest.approx(
        root, rel=4e-16 / np.exp(-root * w[1]) / (root * w[1])
    )


def test_likelihood_interval_of_degenerate_pages():
    w, n, level = 0.25, 8, 0.95
    low, high = likelihood_interval(
        History(np.full((2, n), w), np.array([[0] * n, [1] * n])), level=level
    )
    # never changed: exp(-high n w) = 1 - level, the rule of three; always
    # changed: (1 - exp(-low w))^n = 1 - level
    np.testing.assert_allclose(
        low, [0, -np.log(1 - (1 - level) ** (1 / n)) / w], rtol=1e-10
    )
    np.testing.assert_allclose(high, [-np.log(1 - level) / (n * w), np.inf], rtol=1e-10)
    assert high[0] * n * w == pytest.approx(3, rel=2e-3, abs=0)


def test_likelihood_intervals_are_nested_in_level():
    history = irregular(3)
    ends = np.array(
        [likelihood_interval(history, level=level) for level in (0.5, 0.9, 0.99)]
    )
    assert (np.diff(ends[:, 0], axis=0) < 0).all()
    assert (np.diff(ends[:, 1], axis=0) > 0).all()


@pytest.mark.parametrize(
    ("change_rate", "crawl_rate", "printed"),
    [(5.0, 3.0, 59.2), (0.5, 0.25, 0.603), (0.5, 0.75, 0.706)],
)
def test_fisher_information_is_the_integral_and_the_variance_of_papers_1_5(
    change_rate, crawl_rate, printed
):
    def integrand(w):
        q = np.exp(-change_rate * w)
        return w**2 * q / (1 - q) * crawl_rate * np.exp(-crawl_rate * w)

    information = fisher_information(change_rate, crawl_rate=crawl_rate)
    assert information == pytest.approx(
        integrate.quad(integrand, 0, np.inf, epsabs=0, epsrel=1e-12)[0], rel=1e-10
    )
    assert 1 / information == pytest.approx(
        printed, rel=1e-3, abs=0
    )  # three digits are given


# ---------------------------------------------------------------- independent oracles


@pytest.mark.slow
def test_mle_agrees_with_lifelines():
    history = irregular(5, n_pages=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the oracle and of what it imports
        from lifelines import ExponentialFitter

        scales = []
        for w, changed in pages(
            history
        ):  # a changed crawl is left-censored, an unchanged one right-censored
            data, tight = (
                (np.where(changed, 0.0, w), np.where(changed, w, np.inf)),
                {"ftol": 0, "gtol": 1e-12},
            )
            starts = (0.3 * w.mean(), w.mean(), 3 * w.mean())
            fits = [
                ExponentialFitter().fit_interval_censoring(
                    *data, fit_options=tight, initial_point=np.array([x])
                )
                for x in starts
            ]
            scales.append([fit.lambda_ for fit in fits])  # a scale, not a rate
    error = np.abs(mle(history)[:, np.newaxis] * np.array(scales) - 1)
    # one fit in ten stops short at about 1e-6, depending on its start; of
    # three starts, one went through for each of 160 pages tried
    assert error.max() < 1e-3
    assert error.min(axis=1).max() < 1e-8


def test_estimates_agree_with_a_root_finder():
    history = irregular(6, n_pages=40)
    low, high = likelihood_interval(history, level=0.9)
    drop = stats.chi2.ppf(0.9, 1) / 2
    tight = {"xtol": 1e-300, "rtol": 1e-14}
    for i, (w, changed) in enumerate(pages(history)):
        likely = brentq(
            lambda x, w=w, c=changed: (
                (w[c] * np.exp(-x * w[c]) / -np.expm1(-x * w[c])).sum() - w[~c].sum()
            ),
            1e-6,
            500,
            **tight,
        )
        matched = brentq(
            lambda x, w=w, c=changed: np.exp(-x * w).sum() - (~c).sum(),
            1e-6,
            500,
            **tight,
        )
        assert mle(history)[i] == pytest.approx(likely, rel=1e-10, abs=0)
        assert moment_matching(history)[i] == pytest.approx(matched, rel=1e-10, abs=0)
        floor = log_likelihood(likely, w, changed) - drop

        def above(x, w=w, c=changed, floor=floor):
            return log_likelihood(x, w, c) - floor

        assert low[i] == pytest.approx(
            brentq(above, 1e-9, likely, **tight), rel=1e-10, abs=0
        )
        assert high[i] == pytest.approx(
            brentq(above, likely, 1e4, **tight), rel=1e-10, abs=0
        )


@pytest.mark.parametrize("name", BATCH)
def test_ragged_and_dense_forms_agree(name):
    history = irregular(7)
    together = BATCH[name](history)
    alone = [BATCH[name](History(w, changed)) for w, changed in pages(history)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    dense = simulate_history(
        np.geomspace(0.5, 5, 6).reshape(2, 3), crawl_rate=1.0, n_crawls=40, rng=8
    )
    result = BATCH[name](dense)
    assert result.shape == (2, 3)
    np.testing.assert_allclose(
        BATCH[name](History(*dense.ragged())).reshape(2, 3), result, rtol=1e-12
    )


def test_compiled_kernels_agree_with_their_python_source(request):
    history = irregular(9, n_pages=6)
    compiled = [f(history) for f in (mle, moment_matching)] + [
        *likelihood_interval(history)
    ]
    request.getfixturevalue("plain")
    plain = [f(history) for f in (mle, moment_matching)] + [
        *likelihood_interval(history)
    ]
    for a, b in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


# ---------------------------------------------------------------- Monte Carlo


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change_rate", "crawl_rate", "printed"),
    [(5.0, 3.0, (59.2, 65.6)), (0.5, 0.25, (0.603, 0.675))],
)
def test_asymptotic_variances_of_papers_1_5(change_rate, crawl_rate, printed):
    n, runs = 600, 6000
    history = simulate_history(
        change_rate, crawl_rate=crawl_rate, n_crawls=n, n_runs=runs, rng=10
    )
    rates = np.array([mle(history), moment_matching(history)])
    p, d = crawl_rate, change_rate
    expected = np.array(
        [
            1 / fisher_information(d, crawl_rate=p),
            (p / (p + d) - p / (p + 2 * d)) * (p + d) ** 4 / p**2,
        ]
    )
    np.testing.assert_allclose(expected, printed, rtol=1e-3)
    # 5 standard errors of a variance from `runs` values, and 10 / n for the
    # next order in 1 / n (measured: 0.7 % to 2 %)
    np.testing.assert_allclose(
        rates.var(axis=1) * n, expected, rtol=5 * np.sqrt(2 / runs) + 10 / n
    )
    assert rates.var(axis=1)[0] < rates.var(axis=1)[1]
    # the bias, of order 1 / n, is a small part of the standard deviation
    assert (
        np.abs(rates.mean(axis=1) - d) < 5 * np.sqrt(expected / n / runs) + 10 * d / n
    ).all()


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(
    ("change_rate", "n_crawls"), [(5.0, 200), (1.0, 200), (5.0, 10)]
)
def test_likelihood_interval_covers_about_as_promised(change_rate, n_crawls, level):
    runs = 10_000
    history = simulate_history(
        change_rate, crawl_rate=3.0, n_crawls=n_crawls, n_runs=runs, rng=11
    )
    low, high = likelihood_interval(history, level=level)
    coverage = ((low <= change_rate) & (change_rate <= high)).mean()
    # 5 standard errors, and the error of the chi-square distribution: of order
    # 1 / n, and steps of the discrete bits
    assert coverage == pytest.approx(
        level, abs=5 * np.sqrt(level * (1 - level) / runs) + 0.2 / n_crawls + 0.003
    )


@pytest.mark.parametrize(("n", "least"), [(5, 0.92), (10, 0.89), (50, 0.90)])
def test_likelihood_interval_at_small_counts_exactly(n, least):
    """Equal intervals make the coverage a binomial sum, which oscillates about 0.95."""
    low, high = likelihood_interval(
        History(np.ones((n + 1, n)), np.arange(n) < np.arange(n + 1)[:, np.newaxis]),
        level=0.95,
    )
    rate = np.geomspace(0.3 / n, np.log(n / 0.3), 400)
    covers = (low[:, np.newaxis] <= rate) & (rate <= high[:, np.newaxis])
    coverage = (
        stats.binom.pmf(np.arange(n + 1)[:, np.newaxis], n, -np.expm1(-rate)) * covers
    ).sum(axis=0)
    assert coverage.min() > least  # measured 0.932, 0.897, 0.911
    assert (
        0.95 < coverage.mean() < 0.975
    )  # measured 0.972, 0.967, 0.962: the edges, with their exact limits, cover more


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize("name", BATCH)
@pytest.mark.parametrize("unit", [1e-12, 24.0, 1e12])
def test_another_unit_of_time_rescales_rates(name, unit):
    history, estimate = irregular(13), BATCH[name]
    there = estimate(History(history.interval * unit, history.changed, history.offsets))
    np.testing.assert_allclose(there * unit, estimate(history), rtol=1e-10)


@pytest.mark.parametrize("name", BATCH)
def test_order_of_pages_and_of_crawls_does_not_matter(name):
    rng = np.random.default_rng(14)
    history = simulate_history(
        np.geomspace(0.5, 3, 9), crawl_rate=1.0, n_crawls=50, rng=15
    )
    estimate, order, crawls = (
        BATCH[name](history),
        rng.permutation(9),
        rng.permutation(50),
    )
    np.testing.assert_array_equal(
        BATCH[name](History(history.interval[order], history.changed[order])),
        estimate[order],
    )
    np.testing.assert_allclose(
        BATCH[name](History(history.interval[:, crawls], history.changed[:, crawls])),
        estimate,
        rtol=1e-10,
    )


@pytest.mark.parametrize("estimator", [mle, moment_matching])
def test_one_more_change_raises_the_estimate(estimator):
    w = np.random.default_rng(16).exponential(size=12)
    rates = estimator(
        History(np.tile(w, (11, 1)), np.arange(12) < np.arange(1, 12)[:, np.newaxis])
    )
    assert (np.diff(rates) > 0).all()


def test_results_do_not_depend_on_the_layout_of_the_arrays():
    history = simulate_history(np.ones(4), crawl_rate=1.0, n_crawls=30, rng=17)
    strided = History(
        np.asfortranarray(history.interval), np.repeat(history.changed, 2, axis=0)[::2]
    )
    np.testing.assert_array_equal(mle(strided), mle(history))


# --------------------------------------------------------- degenerate pages, bad input

NEVER, ALWAYS, BOTH = [0, 0, 0], [1, 1, 1], [0, 1, 0]


@pytest.mark.parametrize("estimator", [mle, moment_matching])
@pytest.mark.parametrize(
    ("changed", "bounds", "expected", "message"),
    [
        (
            [NEVER],
            None,
            [0.0],
            "of 1 pages 1 never changed .* and 0 changed at every crawl",
        ),
        (
            [ALWAYS],
            None,
            [np.inf],
            "of 1 pages 0 never changed .* and 1 changed at every crawl",
        ),
        (
            [NEVER, BOTH, ALWAYS, ALWAYS],
            (0.25, 8.0),
            [0.25, np.log(1.5), 8.0, 8.0],
            "of 4 pages 1 never changed .* and 2 changed",
        ),
        (
            [NEVER, ALWAYS],
            (0.0, np.inf),
            [0.0, np.inf],
            "of 2 pages 1 never changed .* and 1 changed",
        ),
    ],
)
def test_degenerate_pages_warn_and_get_the_edge(
    estimator, changed, bounds, expected, message
):
    with pytest.warns(DegenerateHistoryWarning, match=message) as record:
        rates = estimator(History(np.ones((len(changed), 3)), changed), bounds=bounds)
    np.testing.assert_allclose(rates, expected, rtol=1e-10)
    assert [w.filename for w in record] == [
        __file__
    ]  # one warning, and it points at the caller


@pytest.mark.parametrize(("changed", "expected"), [([0], 0.0), ([1], np.inf)])
def test_a_single_crawl_is_degenerate(changed, expected):
    history = History([2.0], changed)
    with pytest.warns(DegenerateHistoryWarning):
        assert mle(history) == expected
    assert naive(history) == changed[0] / 2.0
    assert np.isfinite(likelihood_interval(history)).tolist() == [True, not changed[0]]


def test_pages_without_crawls_are_nan_and_silent():
    history = History([1.0, 2.0, 1.0, 3.0], [0, 1, 1, 0], [0, 0, 2, 2, 4, 4])
    empty = np.array([True, False, True, False, True])
    for name, estimator in BATCH.items():
        np.testing.assert_array_equal(np.isnan(estimator(history)), empty, err_msg=name)
    np.testing.assert_array_equal(np.isnan(mle(history, bounds=(0.1, 1.0))), empty)


def test_bounds_clip_both_ways_without_a_warning():
    history = History(np.ones((2, 4)), [[1, 0, 0, 0], [1, 1, 1, 0]])
    np.testing.assert_array_equal(mle(history, bounds=(0.5, 1.0)), [0.5, 1.0])
    np.testing.assert_allclose(
        mle(history, bounds=(0.0, np.inf)), np.log([4 / 3, 4]), rtol=1e-10
    )


def test_a_solver_that_gives_up_raises_with_its_last_iterate(monkeypatch):
    def give_up(*arguments):
        *_, low, high = arguments
        low[:] = high[:] = np.nan

    monkeypatch.setattr(kernels, "likelihood_limits", give_up)
    history = History([[1.0, 2.0, 3.0]], [[0, 1, 0]])
    with pytest.raises(
        ConvergenceError, match="1 of 1 intervals did not converge"
    ) as error:
        likelihood_interval(history)
    assert np.isnan(error.value.last).all()
    for name in ("estimating_equation_roots", "bisected_moments"):
        monkeypatch.setattr(kernels, name, lambda *given: given[-1].fill(np.nan))
    for estimator, lost in (
        (mle, "1 of 1 pages"),
        (moment_matching, "1 of 1 pages"),
    ):
        with pytest.raises(ConvergenceError, match=f"{lost} did not converge") as error:
            estimator(history)
        assert np.isnan(error.value.last).all()


GOOD = History([1.0, 2.0, 1.0], [0, 1, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[
            (
                lambda f=f, bounds=bounds: f(GOOD, bounds=bounds),
                f"bounds must be {rule}, got {got}",
            )
            for f in (mle, moment_matching)
            for bounds, rule, got in [
                ((2.0, 1.0), "two numbers, the lower one first", "(2.0, 1.0)"),
                ((1.0, 1.0), "two numbers, the lower one first", "(1.0, 1.0)"),
                ((1, 2, 3), "two numbers, the lower one first", "(1, 2, 3)"),
                ((-1.0, 1.0), "non-negative", "-1.0 at index (0,)"),
                ((np.nan, 1.0), "non-negative", "nan at index (0,)"),
                ((0.0, np.nan), "non-negative", "nan at index (1,)"),
            ]
        ],
        *[
            (lambda f=f: f([True, False]), "history must be History, got [True, False]")
            for f in (mle, moment_matching, naive)
        ],
        *[
            (
                lambda level=level: likelihood_interval(GOOD, level=level),
                f"level must be strictly between 0 and 1, got {level}",
            )
            for level in (0.0, 1.0, -0.5, 95.0, np.nan)
        ],
        (
            lambda: likelihood_interval(GOOD, level=[0.9, 0.95]),
            "level must be a single number, got shape (2,)",
        ),
        (
            lambda: fisher_information(0.0, crawl_rate=1.0),
            "change_rate must be positive and finite, got 0.0",
        ),
        (
            lambda: fisher_information(1.0, crawl_rate=-1.0),
            "crawl_rate must be positive and finite, got -1.0",
        ),
    ],
)
def test_batch_estimators_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# ------------------------------------------------------------- whether changes cluster


def score_of(history):
    """The score of each page under its own MLE, degenerate pages left out."""
    rate = mle(history, edges="substitute")
    n_changed = history.total(history.changed)
    return serial_score(history, rate)[(n_changed > 0) & (n_changed < history.n_crawls)]


def test_serial_score_by_hand():
    history = History([1.0, 2.0, 0.5, 1.0], [True, False, True, True])
    p = 1 - np.exp(-0.7 * np.array([1.0, 2.0, 0.5, 1.0]))
    residual = (np.array([1, 0, 1, 1]) - p) / np.sqrt(p * (1 - p))
    product = residual[1:] * residual[:-1]
    assert serial_score(history, 0.7) == pytest.approx(
        product.sum() / np.sqrt(max(3, (product**2).sum())), rel=1e-12
    )


def test_serial_score_of_ragged_and_dense_histories_agree():
    dense = simulate_history([0.3, 1.0, 4.0], crawl_rate=1.0, n_crawls=50, rng=0)
    flat = History(*dense.ragged())
    rate = mle(dense)
    np.testing.assert_allclose(
        serial_score(flat, rate), serial_score(dense, rate), rtol=1e-10
    )
    short = History([1.0, 1.0, 2.0, 1.0], [True, False, True, True], [0, 0, 1, 3, 4])
    score = serial_score(short, 1.0)
    np.testing.assert_array_equal(np.isnan(score), [True, True, False, True])
    assert score[2] == pytest.approx(
        float(serial_score(History([1.0, 2.0], [False, True]), 1.0))
    )
    for bit, certain, impossible in ((True, np.inf, 0.0), (False, 0.0, np.inf)):
        history = History([1.0, 1.0, 1.0], [bit] * 3)
        assert serial_score(history, certain) == 0.0
        assert np.isnan(serial_score(history, impossible))


def adaptive(change_rate, n_crawls, rng):
    rule = {"initial": 1.0, "shrink": 0.8, "grow": 1.4, "limits": (0.01, 50.0)}
    return adapted(change_rate, **rule, n_crawls=n_crawls, rng=rng)


@pytest.mark.parametrize("crawled", ["poisson", "equal", "adaptive"])
@pytest.mark.parametrize(
    "n_crawls", [10, 40, pytest.param(400, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("change_rate", [0.1, 0.7, 3.0])
def test_serial_score_of_poisson_pages_is_about_standard_normal(
    crawled, n_crawls, change_rate
):
    rates, seed = np.full(4000, change_rate), 1
    score = score_of(
        {
            "poisson": lambda: simulate_history(
                rates, crawl_rate=1.0, n_crawls=n_crawls, rng=seed
            ),
            "equal": lambda: simulate_history(
                rates, interval=1.0, n_crawls=n_crawls, rng=seed
            ),
            "adaptive": lambda: adaptive(rates, n_crawls, seed),
        }[crawled]()
    )
    nominal = 2 * stats.norm.sf(3)
    beyond = np.mean(np.abs(score) > 3)
    assert beyond <= nominal + 4 * np.sqrt(nominal / score.size), (
        "no more pages are called bursty or regular than chance allows"
    )
    if n_crawls == 400:
        assert abs(score.mean()) < 0.25
        assert (0.9 if change_rate == 0.7 else 0.5) < score.std() < 1.05, (
            "near 0 where few bits differ from the others"
        )


def crawled_every(trace, step):
    return observe(trace.times, np.arange(step, trace.times[-1], step))


@pytest.mark.parametrize("name", ["bokeh_commits", "debian_firefox_esr"])
def test_serial_score_of_traces(name):
    trace = traces.load(name)
    scores = [
        float(score_of(History(*crawled_every(trace, days).ragged()))[0])
        for days in (0.25, 1.0, 2.0)
    ]
    if name == "bokeh_commits":
        assert max(scores) > 5
    else:
        assert np.abs(scores).max() < 3


def test_serial_score_of_a_page_that_changes_at_regular_times_is_low():
    history = observe(
        np.arange(1.0, 800.0), np.arange(0.5, 800.0, 0.5)
    )  # every second crawl finds a change
    assert serial_score(history, mle(history)) < -10
    rng = np.random.default_rng(2)
    crawls = np.cumsum(rng.uniform(0.3, 0.7, 1500))
    history = observe(np.arange(0.9, crawls[-1], 1.0), crawls)
    assert serial_score(history, mle(history)) < -3
