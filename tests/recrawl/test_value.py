"""The crawl value of www25: Lemma 4, its limits, order in floating point."""

import decimal
import re

import numpy as np
import pytest
from numba import njit
from scipy.special import gammainc

from paperlib.signals import SignalledPages
from recrawl.kernels import crawl_value as kernel
from recrawl.science import freshness

D = decimal.Decimal
DIGITS = decimal.Context(prec=120, Emin=-(10**9), Emax=10**9)


def without_warnings(ufunc):
    def call(*args):
        with np.errstate(divide="ignore", invalid="ignore"):
            return ufunc(*args)

    return call


V, psi_of, w_of = map(without_warnings, (kernel.crawl_values, kernel.psis, kernel.ws))


def exact(elapsed, n_signals, change_rate, importance, recall, false_rate, terms=0):
    """V, w and psi of Lemma 4 (and A.1) in 120 digits: nothing cancels.

    As printed, with sums up to floor(iota / beta).
    """
    with decimal.localcontext(DIGITS):
        tau, change, mu, lam, nu = (
            D(float(x)) for x in (elapsed, change_rate, importance, recall, false_rate)
        )
        alpha, gamma = (1 - lam) * change, lam * change + nu
        beta = (gamma / nu).ln() / alpha
        iota = tau + beta * n_signals
        decay = (-alpha * iota).exp()

        def residual(i, x):
            term = total = D(1)
            for j in range(1, i + 1):
                term *= x / j
                total += term
            return 1 - (-x).exp() * total

        w = psi = D(0)
        for i in range(int(iota / beta) + 1):
            if terms and i >= terms:
                break
            more = residual(i, gamma * (iota - i * beta)) / gamma
            psi += more
            w += (
                nu**i
                / (change + nu) ** (i + 1)
                * residual(i, (alpha + gamma) * (iota - i * beta))
            )
            if more < D("1e-60") * psi:
                break
        return float(mu * (w - decay * psi)), float(w), float(psi)


def parameters(seed, n, extreme):
    """Change rate, recall, false rate, elapsed, signals and terms.

    Moderate, or over ten powers with recall within 1e-6 of 0 and 1.
    """
    rng = np.random.default_rng(seed)
    while n:
        change = 10 ** rng.uniform(-4, 3) if extreme else rng.uniform(0.1, 2)
        recall = (
            rng.choice(
                [1e-6 * rng.random(), 1 - 1e-6 * rng.random(), rng.beta(0.25, 0.25)]
            )
            if extreme
            else rng.uniform(0.05, 0.95)
        )
        false = (
            10 ** rng.uniform(-4, 2) * rng.choice([1, change])
            if extreme
            else rng.uniform(0.05, 1)
        )
        elapsed = (
            10 ** rng.uniform(-6, 1.5) / change if extreme else rng.uniform(0.1, 8)
        )
        n_signals = int(rng.choice([0, 1, 2, 5, 30]))
        if 0 < recall < 1 and (recall * change + false) * elapsed < 60:
            n -= 1
            yield (
                change,
                recall,
                false,
                elapsed,
                n_signals,
                int(rng.choice([0, 0, 1, 2, 3])),
            )


# ---------------------------------------------------------------- Lemma 4


@pytest.mark.slow
@pytest.mark.parametrize("extreme", [False, True])
def test_lemma_4_in_120_digits(extreme):
    checked = 0
    for change, recall, false, elapsed, n_signals, terms in parameters(1, 200, extreme):
        expected = exact(elapsed, n_signals, change, 2.0, recall, false, terms)[0]
        row = kernel.constants(change, 2.0, recall, false, terms)
        unrounded = kernel.sums(row, kernel.effective(row, elapsed, n_signals))[0]
        assert unrounded == pytest.approx(expected, rel=1e-13, abs=0)
        assert kernel.value(row, elapsed, n_signals) == pytest.approx(
            expected, rel=1e-11, abs=0
        )
        _, w, psi = exact(elapsed, 0, change, 2.0, recall, false)
        assert psi_of(elapsed, change, recall, false) == pytest.approx(
            psi, rel=1e-12, abs=0
        )
        assert w_of(elapsed, change, recall, false) == pytest.approx(
            w, rel=1e-12, abs=0
        )
        checked += 1
    assert checked == 200


def test_where_the_difference_of_lemma_4_cancels():
    """Small elapsed times, recall near 1; and the lack of V to its limit."""
    for recall, elapsed in [(0.9999, 1e-4), (0.9999, 1e-8), (1e-9, 1e-5), (0.5, 1e-12)]:
        for n_signals in (0, 1, 3):
            expected = exact(elapsed, n_signals, 0.7, 1.0, recall, 0.3)[0]
            assert V(elapsed, n_signals, 0.7, 1.0, recall, 0.3, 0) == pytest.approx(
                expected, rel=1e-11, abs=0
            )
    row = kernel.constants(0.7, 1.0, 0.5, 0.3, 0)
    for u in (1.5, 10.0, 40.0):
        value, lack = kernel.sums(row, u)[:2]
        with decimal.localcontext(DIGITS):
            alpha = D(0.5) * D(0.7)
            gamma, nu, total = D(0.5) * D(0.7) + D(0.3), D(0.3), D(0)
            step = (gamma / nu).ln()
            for i in range(int(D(u) / step) + 1):
                x, tail, term = gamma / alpha * (D(u) - i * step), D(0), D(1)
                y, tail_y, term_y = x + D(u) - i * step, D(0), D(1)
                for j in range(i + 1):
                    term, term_y = (
                        (term * x / j, term_y * y / j) if j else (term, term_y)
                    )
                    tail, tail_y = tail + term, tail_y + term_y
                total += (-D(u)).exp() * (1 - (-x).exp() * tail) / gamma + nu**i / (
                    alpha + gamma
                ) ** (i + 1) * (-y).exp() * tail_y
            q = nu / (D(0.7) + nu)
            total += q ** (int(D(u) / step) + 1) / D(0.7)
        assert lack == pytest.approx(float(total), rel=1e-13, abs=0)
        assert value == pytest.approx(1 / 0.7 - float(total), rel=1e-15, abs=0)


def test_values_of_one_page_and_limits_of_the_approximations():
    """A Monte Carlo of the process at iota 3; the limits of APPROX-j."""
    assert psi_of(3.0, 0.7, 0.5, 0.3) == pytest.approx(1.4650, abs=5e-5)
    assert w_of(3.0, 0.7, 0.5, 0.3) == pytest.approx(1.0066, abs=5e-5)
    # section 5.1: the limits of APPROX-1 to 3 and of the value at these rates
    for terms, limit in [(1, 1.0), (2, 1.3), (3, 1.39), (0, 1 / 0.7)]:
        assert V(1e6, 0, 0.7, 1.0, 0.5, 0.3, terms) == pytest.approx(
            limit, rel=1e-12, abs=0
        )


def test_cycles_are_straight_lines_far_out():
    """Where Wald's identity takes over from the sum, and far beyond."""
    for recall, false in [(0.5, 0.3), (0.9, 0.01), (0.05, 2.0), (1e-6, 1.0)]:
        gamma = recall * 0.7 + false
        step = gamma * np.log1p(recall * 0.7 / false) / ((1 - recall) * 0.7)
        edge = 100 * (1 + step) ** 3 / gamma
        before, after = (
            psi_of(edge * (1 + s), 0.7, recall, false) for s in (-1e-9, 1e-9)
        )
        assert after - before == pytest.approx(
            2e-9 * edge / (1 + step), rel=1e-2, abs=1e-12 * after
        )
        assert psi_of(1e300, 0.7, recall, false) == pytest.approx(
            1e300 / (1 + step), rel=1e-12, abs=0
        )


def slope(function, x):
    """Derivative to fourth order."""
    h = 2e-3
    return (
        8 * (function(x + h) - function(x - h))
        - (function(x + 2 * h) - function(x - 2 * h))
    ) / (12 * h)


def test_the_derivatives_of_lemma_3_and_4():
    """V' = importance alpha exp(-alpha iota) psi, and V = do / df.

    With o = importance w / psi, f = 1 / psi.
    """
    checked = 0
    for change, recall, false, iota, _n_signals, _terms in parameters(2, 60, False):
        alpha, beta = (
            (1 - recall) * change,
            np.log1p(recall * change / false) / ((1 - recall) * change),
        )
        if (
            abs(iota / beta - np.round(iota / beta)) * beta < 0.01
        ):  # the second derivative jumps where iota is a multiple of beta
            continue
        row = kernel.constants(change, 3.0, recall, false, 0)
        psi = psi_of(iota, change, recall, false)
        first = slope(
            lambda t, row=row, alpha=alpha: kernel.sums(row, alpha * t)[0],
            iota,
        )
        assert first == pytest.approx(
            3.0 * alpha * np.exp(-alpha * iota) * psi, rel=1e-8, abs=0
        )
        page = change, recall, false
        per_psi = slope(lambda t, page=page: w_of(t, *page) / psi_of(t, *page), iota)
        rate = slope(lambda t, page=page: 1 / psi_of(t, *page), iota)
        assert 3.0 * per_psi / rate == pytest.approx(
            kernel.sums(row, alpha * iota)[0], rel=1e-8, abs=0
        )
        checked += 1
    assert checked > 40


# ---------------------------------------------------------------- special
# cases


def test_without_signals():
    elapsed = np.geomspace(1e-6, 40, 60)
    for recall, false in [(0.0, 0.0), (0.0, 0.4)]:  # none, or none that says anything
        pages = SignalledPages(0.7, 2.0, recall, false)
        expected = 2.0 / 0.7 * gammainc(2, 0.7 * elapsed)
        np.testing.assert_allclose(
            freshness.crawl_value(elapsed, 5 * (false > 0), pages), expected, rtol=1e-11
        )
        np.testing.assert_allclose(
            freshness.cycle_length(elapsed, pages), elapsed, rtol=1e-15
        )
        np.testing.assert_allclose(
            freshness.fresh_time(elapsed, pages),
            -np.expm1(-0.7 * elapsed) / 0.7,
            rtol=1e-12,
        )


def test_without_false_signals():
    elapsed, alpha, gamma = np.geomspace(1e-3, 40, 60), 0.3 * 0.7, 0.7 * 0.7
    pages = SignalledPages(0.7, 2.0, 0.7, 0.0)
    bracket = (
        -np.expm1(-(alpha + gamma) * elapsed) / (alpha + gamma)
        + np.exp(-alpha * elapsed) * np.expm1(-gamma * elapsed) / gamma
    )
    np.testing.assert_allclose(
        freshness.crawl_value(elapsed, 0, pages), 2.0 * bracket, rtol=1e-9
    )  # the formula cancels, not ours
    np.testing.assert_array_equal(freshness.crawl_value(elapsed, 1, pages), 2.0 / 0.7)
    np.testing.assert_array_equal(
        freshness.crawl_value(0.0, [1, 100], pages), 2.0 / 0.7
    )


def test_when_every_change_is_signalled():
    """The limit recall -> 1 in PAPERS 5.1: time says nothing."""
    gamma, nu = 0.7 + 0.3, 0.3
    q = nu / gamma
    for n in range(6):
        expected = 2.0 * ((1 - q**n) / (1 - q) / gamma - q**n * n / gamma)
        for elapsed in (0.0, 1.0, 1e6, np.inf):
            assert V(elapsed, n, 0.7, 2.0, 1.0, nu, 0) == pytest.approx(
                expected, rel=1e-11, abs=0
            )
    assert V(5.0, 0, 0.7, 2.0, 1.0, 0.0, 0) == 0
    assert V(5.0, 1, 0.7, 2.0, 1.0, 0.0, 0) == 2.0 / 0.7
    assert psi_of(3.0, 0.7, 1.0, 0.3) == pytest.approx(
        -np.expm1(-3.0), rel=1e-14, abs=0
    )


@pytest.mark.parametrize("terms", [0, 1, 2])
@pytest.mark.parametrize("false", [0.3, 1e-9, 1e-300, 0.0])
def test_the_limits_are_continuous(terms, false):
    """Recall within 1e-9 of 0 or 1, and hardly any false signal or none."""
    for elapsed, n_signals in [(3.0, 0), (1e-3, 0), (3.0, 2), (40.0, 0)]:
        for end in (0.0, 1.0):
            near = V(elapsed, n_signals, 0.7, 1.0, abs(end - 1e-9), false, terms)
            here = V(elapsed, n_signals, 0.7, 1.0, end, false, terms)
            if end == 0 and n_signals and false < 1e-3:
                # One sure signal, though hardly ever seen: the limit depends on
                # the order in which recall and false rate vanish.
                continue
            assert near == pytest.approx(here, rel=1e-6, abs=1e-7)
    for n_signals in (0, 2):
        tiny, none = (V(3.0, n_signals, 0.7, 1.0, 0.5, nu, 0) for nu in (1e-300, 0.0))
        assert tiny == pytest.approx(none, rel=1e-10, abs=0)


def test_nothing_to_gain_and_the_ends():
    assert (
        V(3.0, 4, 0.0, 1.0, 0.5, 0.3, 0)
        == V(3.0, 4, 0.0, 1.0, 0.5, 0.0, 1)
        == V(3.0, 4, 0.7, 0.0, 0.5, 0.3, 0)
        == 0
    )
    for recall, false in [
        (0.0, 0.0),
        (0.5, 0.0),
        (0.5, 0.3),
        (1e-7, 0.3),
        (1 - 1e-7, 0.3),
    ]:
        assert V(0.0, 0, 0.7, 2.0, recall, false, 0) == 0
        for elapsed in (1e300, np.inf):
            assert V(elapsed, 3, 0.7, 2.0, recall, false, 0) == pytest.approx(
                2.0 / 0.7, rel=1e-15, abs=0
            )
        assert V(1.0, 10**6, 0.7, 2.0, recall, false, 0) <= 2.0 / 0.7
        assert 0 < V(1e-100, 0, 0.7, 2.0, recall, false, 0) < 1e-190
        assert psi_of(np.inf, 0.7, recall, false) == np.inf
        assert w_of(np.inf, 0.7, recall, false) == pytest.approx(
            1 / 0.7, rel=1e-15, abs=0
        )
    assert V(0.0, 3, 0.7, 1.0, 0.5, 0.3, 0) == pytest.approx(
        exact(0.0, 3, 0.7, 1.0, 0.5, 0.3)[0], rel=1e-11, abs=0
    )


@pytest.mark.parametrize("recall", [0.0, 1e-7, 0.5, 1 - 1e-7])
@pytest.mark.parametrize("false", [0.0, 0.3])
def test_the_far_tail(recall, false):
    alpha, limit = 0.7 * (1 - recall), 2.0 / 0.7
    for u in (50.0, 1e3, 1e100):
        assert V(u / alpha, 0, 0.7, 2.0, recall, false, 0) == limit
        assert w_of(u / alpha, 0.7, recall, false) == pytest.approx(1 / 0.7, rel=1e-15)
    if recall == 0:  # without signals all digits of the lack are known until there
        for u in (20.0, 30.0, 36.0):
            lack = 1 - V(u / alpha, 0, 0.7, 2.0, recall, 0.0, 0) / limit
            assert lack == pytest.approx((1 + u) * np.exp(-u), abs=4e-16)


@pytest.mark.slow
def test_thousands_of_signals():
    for change, recall, false, elapsed, n_signals in [
        (1.0, 0.5, 400.0, 1.0, 400),
        (1.0, 0.9, 900.0, 0.4, 370),
        (0.01, 0.1, 5.0, 0.0, 2000),
    ]:
        value = V(elapsed, n_signals, change, 1.0, recall, false, 0)
        assert value == pytest.approx(
            exact(elapsed, n_signals, change, 1.0, recall, false)[0], rel=1e-10, abs=0
        )


# ---------------------------------------------------------------- order in
# floating point


@njit
def _falls(rows, elapsed, n_signals, step):
    """How often the value falls with a little time, or with another signal."""
    falls = 0
    for k in range(elapsed.size):
        row, later = rows[k % rows.shape[0]], elapsed[k] * (1.0 + step[k])
        here, then = (
            kernel.value(row, elapsed[k], n_signals[k]),
            kernel.value(row, later, n_signals[k]),
        )
        falls += then < here or kernel.value(row, later, n_signals[k] + 1) < then
    return falls


@pytest.mark.slow
def test_the_value_never_falls_in_floating_point():
    """Two million steps, most of 1e-16 to 1e-10 of the elapsed time.

    There rounding would show.
    """
    rng, n_pages, n = np.random.default_rng(3), 20_000, 1_000_000
    change = 10 ** rng.uniform(-3, 3, n_pages)
    near = np.where(
        rng.random(n_pages) < 0.5,
        1e-6 * rng.random(n_pages),
        1 - 1e-6 * rng.random(n_pages),
    )
    recall = np.where(rng.random(n_pages) < 0.5, rng.beta(0.25, 0.25, n_pages), near)
    recall[:200], recall[200:400] = 0.0, 1.0
    false = 10 ** rng.uniform(-4, 1, n_pages) * change
    false[100:150] = false[300:600] = 0.0
    arguments = zip(change, np.ones(n_pages), recall, false, strict=True)
    rows = np.array(
        [kernel.constants(*page, i % 4) for i, page in enumerate(arguments)],
        kernel.CONSTANTS,
    )
    elapsed = 10 ** rng.uniform(-6, 1.7, n) / change[np.arange(n) % n_pages]
    step = np.maximum(10 ** rng.uniform(-16.5, -8, n), 2.3e-16)
    assert _falls(rows, elapsed, rng.integers(0, 4, n), step) == 0
    # where one form of the sum gives way to another
    alpha = np.where(recall < 1, (1 - recall) * change, 1.0)[:, np.newaxis]
    at_one = (1.0 + np.arange(-20, 20) * 2.0**-45) / alpha
    value = freshness.crawl_value(
        at_one.T, 0, SignalledPages(change, 1.0, recall, false)
    ).T
    assert (np.diff(value, axis=1) >= 0).all()


def test_rounding_never_decreases():
    rng = np.random.default_rng(4)
    u = 10 ** rng.uniform(-300, 1.6, 100_000)
    near = np.nextafter(u, np.inf)
    rounded, then = (
        np.array([kernel.rounded(x) for x in array]) for array in (u, near)
    )
    assert (then >= rounded).all()
    np.testing.assert_allclose(rounded, u, rtol=2**-38)
    mantissa = np.frexp(rounded)[0] * 2**38
    np.testing.assert_array_equal(mantissa, np.round(mantissa))


# ---------------------------------------------------------------- the true
# process


def simulate_cycles(rng, n, iota, change, recall, false):
    """Length of n cycles, and the fresh time in them.

    Changes are signalled with probability recall; there are false signals.
    """
    beta = np.log1p(recall * change / false) / ((1 - recall) * change)
    now, n_signals = np.zeros(n), np.zeros(n)
    first_change, length = np.full(n, np.inf), np.full(n, np.nan)
    while np.isnan(length).any():
        event = now + rng.exponential(1 / (change + false), n)
        due = iota - beta * n_signals  # by time alone
        length = np.where(
            np.isnan(length) & (event >= due), np.maximum(due, now), length
        )
        is_change = rng.random(n) < change / (change + false)
        first_change = np.where(
            is_change, np.minimum(first_change, event), first_change
        )
        n_signals += ~is_change | (rng.random(n) < recall)
        length = np.where(
            np.isnan(length) & (event + beta * n_signals >= iota), event, length
        )
        now = event
    return length, np.minimum(first_change, length)


def test_cycles_of_the_true_process():
    """Psi and w of 20 pages within 5 standard errors."""
    for seed, (change, recall, false, iota, _n_signals, _terms) in enumerate(
        parameters(5, 20, False)
    ):
        length, fresh = simulate_cycles(
            np.random.default_rng(seed), 20_000, iota, change, recall, false
        )
        for sample, mean in [
            (length, psi_of(iota, change, recall, false)),
            (fresh, w_of(iota, change, recall, false)),
        ]:
            assert sample.mean() == pytest.approx(
                mean, abs=5 * sample.std() / np.sqrt(sample.size)
            )


# ---------------------------------------------------------------- the public
# functions


def some_pages(seed, n=50):
    rng = np.random.default_rng(seed)
    return SignalledPages(
        rng.uniform(0.1, 1, n),
        rng.random(n),
        rng.beta(0.25, 0.25, n),
        rng.uniform(0.1, 0.6, n),
    )


def test_arrays_are_the_scalar_function():
    pages, rng = some_pages(6), np.random.default_rng(7)
    elapsed, n_signals = rng.exponential(3, (4, 50)), rng.integers(0, 5, (4, 50))
    rows = [
        kernel.page_constants(
            pages.change_rate, pages.importance, pages.recall, pages.false_rate, terms
        )
        for terms in (0, 2)
    ]
    for terms, table in zip((None, 2), rows, strict=True):
        expected = [
            [kernel.value(table[i], elapsed[k, i], n_signals[k, i]) for i in range(50)]
            for k in range(4)
        ]
        np.testing.assert_array_equal(
            freshness.crawl_value(elapsed, n_signals, pages, terms=terms), expected
        )
    assert (
        freshness.crawl_value(1.0, 0, pages).shape
        == freshness.cycle_length(1.0, pages).shape
        == (50,)
    )
    assert freshness.fresh_time(np.ones((3, 1)), pages).shape == (3, 50)


def test_more_terms_and_rescaling():
    pages, elapsed = some_pages(8), 6.0
    values = [freshness.crawl_value(elapsed, 2, pages, terms=j) for j in (1, 2, 3, 100)]
    assert (np.diff(values, axis=0) >= -1e-11 * values[0]).all()
    np.testing.assert_allclose(
        values[-1], freshness.crawl_value(elapsed, 2, pages), rtol=1e-11
    )
    day = SignalledPages(
        pages.change_rate * 24,
        pages.importance * 3,
        pages.recall,
        pages.false_rate * 24,
    )
    np.testing.assert_allclose(
        freshness.crawl_value(elapsed / 24, 2, day), 3 / 24 * values[-1], rtol=2e-11
    )
    for function in (freshness.cycle_length, freshness.fresh_time):
        np.testing.assert_allclose(
            function(elapsed / 24, day), function(elapsed, pages) / 24, rtol=1e-12
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: freshness.crawl_value(-1.0, 0, p),
            "elapsed must be non-negative, got -1.0",
        ),
        (
            lambda p: freshness.crawl_value([1.0] * 49 + [np.nan], 0, p),
            "elapsed must be non-negative, got nan at index (49,)",
        ),
        (
            lambda p: freshness.crawl_value(1.0, -1, p),
            "n_signals must be non-negative and finite, got -1.0",
        ),
        (
            lambda p: freshness.crawl_value(1.0, np.inf, p),
            "n_signals must be non-negative and finite, got inf",
        ),
        (
            lambda p: freshness.crawl_value(1.0, 0, p, terms=0),
            "terms must be a positive integer, got 0",
        ),
        (
            lambda p: freshness.crawl_value([1.0, 2.0], 0, p),
            "elapsed and n_signals and pages must have shapes that broadcast",
        ),
        (
            lambda p: freshness.cycle_length(-1.0, p),
            "threshold must be non-negative, got -1.0",
        ),
        (
            lambda p: freshness.fresh_time([1.0, 2.0], p),
            "threshold and pages must have shapes that broadcast",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(some_pages(9))
