"""Online estimators: printed recursions, exact moments, restarts."""

import functools
import itertools
import math
import re
import warnings

import numpy as np
import pytest
from scipy import stats

from recrawl.science.estimators import (
    LLN,
    SA,
    SAM,
    DegenerateHistoryWarning,
    Naive,
    OnlineEstimator,
    mle,
    mle_path,
    path,
    paths,
    rmse,
)
from recrawl.science.processes import History, simulate_history


def power(x):
    return lambda k: (k + 1.0) ** -x


# the papers' own choices, sequences given as functions, and starts other than
# zero
MAKE = {
    "Naive": Naive,
    "LLN": LLN,
    "LLN sqrt": lambda p: LLN(p, offset=np.sqrt),
    "SA": SA,
    "SA 1": lambda p: SA(p, step=1.0, initial=2.0),
    "SA 2/(k+3)": lambda p: SA(p, step=lambda k: 2 / (k + 3)),
    "SAM": SAM,
    "SAM 0.8": lambda p: SAM(p, step=0.8, momentum=0.5, omega=0.7, initial=1.5),
    "SAM f": lambda p: SAM(p, step=power(1.2), momentum=lambda k: 1.5 * power(0.6)(k)),
}
every = pytest.mark.parametrize("name", MAKE)


def ragged(history, sizes):
    """The first `sizes` crawls of each page."""
    here = np.arange(history.interval.shape[-1]) < np.array(sizes)[:, np.newaxis]
    return History(
        history.interval[here], history.changed[here], np.append(0, np.cumsum(sizes))
    )


# --------------------------------- the papers' recursions, page by page and bit by bit


def printed_lln(bits, p):
    return [p * seen / (k + 1.0 - seen) for k, seen in enumerate(np.cumsum(bits), 1)]


def printed_naive(bits, p):
    return [p * seen / k for k, seen in enumerate(np.cumsum(bits), 1)]


def printed_sa(bits, p, gamma=0.75, y=0.0):
    out = []
    for k, bit in enumerate(bits):
        y = y + (k + 1) ** -gamma * (bit * (y + p) - y)
        out.append(y)
    return out


def printed_sam(bits, p, eta=1.3, beta=0.75, omega=1.0, z=0.0):
    """Heavy ball, eq. (3) with zeta of eq. (10) of [peva22], zeta_0 = 0."""
    out, before = [], z
    for k, bit in enumerate(bits):
        eta_k, beta_k = (k + 1) ** -eta, (k + 1) ** -beta
        zeta = (beta_k - omega * eta_k) / k**-beta if k else 0.0
        z, before = z + eta_k * (bit * (z + p) - z) + zeta * (z - before), z
        out.append(z)
    return out


@pytest.mark.parametrize(
    ("make", "printed"),
    [
        (Naive, printed_naive),
        (LLN, printed_lln),
        (SA, printed_sa),
        (
            lambda p: SA(p, step=0.5, initial=4.0),
            lambda b, p: printed_sa(b, p, 0.5, 4.0),
        ),
        (SAM, printed_sam),
        (
            lambda p: SAM(p, step=0.8, momentum=0.5, omega=0.6, initial=4.0),
            lambda b, p: printed_sam(b, p, 0.8, 0.5, 0.6, 4.0),
        ),
    ],
    ids=["Naive", "LLN", "SA", "SA 0.5", "SAM", "SAM 0.8"],
)
def test_estimators_are_the_printed_recursions(make, printed):
    history = simulate_history([5.0, 0.1, 300.0], crawl_rate=3.0, n_crawls=300, rng=1)
    expected = [printed(bits.astype(int), 3.0) for bits in history.changed]
    np.testing.assert_allclose(
        path(make(3.0), history), expected, rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("gamma", [0.5, 0.75, 1.0])
def test_momentum_equal_to_step_is_sa(gamma):
    history = simulate_history(5.0, crawl_rate=3.0, n_crawls=300, rng=2)
    np.testing.assert_allclose(
        path(SAM(3.0, step=gamma, momentum=gamma), history),
        path(SA(3.0, step=gamma), history),
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("SA", SA(3.0, step=power(0.75))),
        ("SAM", SAM(3.0, step=power(1.3), momentum=power(0.75))),
    ],
)
def test_an_exponent_stands_for_its_sequence(name, same):
    history = simulate_history(5.0, crawl_rate=3.0, n_crawls=100, rng=3)
    np.testing.assert_allclose(
        path(MAKE[name](3.0), history), path(same, history), rtol=1e-12
    )


@every
def test_path_is_update_after_update_on_a_copy(name):
    history = simulate_history([5.0, 0.5], crawl_rate=3.0, n_crawls=30, n_runs=3, rng=4)
    estimator = MAKE[name](3.0)
    whole = path(estimator, history)
    assert whole.shape == history.changed.shape
    np.testing.assert_array_equal(path(estimator, history), whole)
    before = estimator.estimate
    for k in range(30):
        returned = estimator.update(
            history.changed[..., k], interval=history.interval[..., k]
        )
        np.testing.assert_array_equal(returned, whole[..., k])
        np.testing.assert_array_equal(estimator.estimate, whole[..., k])
    assert before == (2.0 if name == "SA 1" else 1.5 if name == "SAM 0.8" else 0.0)
    # from where it stands, path goes on
    np.testing.assert_array_equal(
        path(estimator, history)[..., 0], estimator.update(history.changed[..., 0])
    )


@every
def test_ragged_path_is_each_page_alone(name):
    rates, sizes = np.array([1.0, 2.0, 5.0, 3.0]), [7, 1, 20, 12]
    history = ragged(simulate_history(rates, crawl_rate=3.0, n_crawls=20, rng=5), sizes)
    together = np.split(path(MAKE[name](rates), history), history.offsets[1:-1])
    bits = np.split(history.changed, history.offsets[1:-1])
    for rate, mine, changed in zip(rates, together, bits, strict=True):
        np.testing.assert_allclose(
            mine,
            path(MAKE[name](rate), History(np.ones(changed.size), changed)),
            rtol=1e-12,
        )


@every
def test_memory_per_page_does_not_grow(name):
    n_pages, estimator = 1000, MAKE[name](np.full(1000, 3.0))

    def held():
        values = itertools.chain.from_iterable(
            v if isinstance(v, tuple) else (v,) for v in vars(estimator).values()
        )
        return sum(v.nbytes for v in values if isinstance(v, np.ndarray))

    for _ in range(20):
        estimator.update(np.zeros(n_pages, dtype=bool))
    assert held() <= 5 * 8 * n_pages


# ----------------------------------------------------------- the MLE after every crawl


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change_rate", "crawl_rate"), [(0.01, 3.0), (5.0, 3.0), (500.0, 3.0), (5.0, 300.0)]
)
def test_mle_path_is_the_mle_of_every_prefix(change_rate, crawl_rate):
    n = 400
    histories = simulate_history(
        change_rate, crawl_rate=crawl_rate, n_crawls=n, n_runs=3, rng=6
    )
    paths_ = mle_path(histories)  # without a warning, though degenerate at first
    for w, changed, mine in zip(
        histories.interval, histories.changed, paths_, strict=True
    ):
        prefixes = ragged(
            History(np.tile(w, (n, 1)), np.tile(changed, (n, 1))), np.arange(1, n + 1)
        )
        with pytest.warns(DegenerateHistoryWarning):
            expected = mle(prefixes)
        np.testing.assert_allclose(mine, expected, rtol=1e-10)
    some = [31, 400, 1]
    np.testing.assert_array_equal(
        mle_path(ragged(histories, some)),
        np.concatenate([row[:m] for row, m in zip(paths_, some, strict=True)]),
    )


@pytest.mark.parametrize("rate_times_interval", [1.0, 10.0, 20.0])
def test_mle_path_where_pages_change_many_times_between_crawls(rate_times_interval):
    # n changed crawls at interval 1 and one unchanged of length e: n /
    # (exp(rate) - 1) = e
    e = np.exp(-rate_times_interval)
    estimate = mle_path(History(np.append(e, np.ones(300)), np.arange(301) > 0))
    np.testing.assert_allclose(
        estimate[1:], np.log1p(np.arange(1, 301) / e), rtol=1e-10
    )


def test_mle_path_with_intervals_over_twelve_decades():
    rng, n = np.random.default_rng(7), 60
    w, changed = 10 ** rng.uniform(-6, 6, n), rng.random(n) < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateHistoryWarning)
        prefixes = mle(
            ragged(
                History(np.tile(w, (n, 1)), np.tile(changed, (n, 1))),
                np.arange(1, n + 1),
            )
        )
    np.testing.assert_allclose(mle_path(History(w, changed)), prefixes, rtol=1e-10)


# ---------------------------------------------------------------- exact moments


@every
@pytest.mark.parametrize(
    ("change_rate", "crawl_rate"), [(5.0, 3.0), (0.2, 3.0), (500.0, 10.0)]
)
def test_moments_are_the_sum_over_all_bit_sequences(name, change_rate, crawl_rate):
    n = 11
    bits = np.array(list(itertools.product([False, True], repeat=n)))
    q = change_rate / (change_rate + crawl_rate)
    weight = np.prod(np.where(bits, q, 1 - q), axis=1)
    error = (
        path(MAKE[name](crawl_rate), History(np.ones(bits.shape), bits)) - change_rate
    )
    bias, root = MAKE[name](crawl_rate).moments(change_rate, n)
    np.testing.assert_allclose(
        bias, weight @ error, rtol=1e-10, atol=1e-10 * change_rate
    )
    np.testing.assert_allclose(root, np.sqrt(weight @ error**2), rtol=1e-10)


@pytest.mark.parametrize(
    ("change_rate", "crawl_rate", "gamma"),
    [(5.0, 3.0, 0.75), (500.0, 10.0, 0.5), (0.2, 3.0, 1.0)],
)
def test_moments_of_sa_follow_the_scalar_recursion(change_rate, crawl_rate, gamma):
    d, p, n = change_rate, crawl_rate, 300
    a, v = p / (p + d), d * p / (d + p) ** 2
    e, s, expected = -d, d**2, []
    for k in range(n):
        eta = (k + 1.0) ** -gamma
        s = (1 - a * eta) ** 2 * s + eta**2 * v * (s + 2 * (d + p) * e + (d + p) ** 2)
        e = (1 - a * eta) * e
        expected.append((e, np.sqrt(s)))
    np.testing.assert_allclose(
        SA(p, step=gamma).moments(d, n),
        np.array(expected).T,
        rtol=1e-10,
        atol=1e-10 * d,
    )


@pytest.mark.parametrize("n", [1, 40, 3000])
def test_moments_of_lln_and_naive_are_the_binomial_sum(n):
    d, p = np.array([5.0, 0.01, 900.0]), 3.0
    seen = np.arange(n + 1)
    for estimator, value in (
        (LLN(p, offset=np.sqrt), p * seen / (n + np.sqrt(n) - seen)),
        (Naive(p), p * seen / n),
    ):
        error = value - d[:, np.newaxis]
        weight = stats.binom.pmf(seen, n, (d / (d + p))[:, np.newaxis])
        bias, root = estimator.moments(d, [n])
        np.testing.assert_allclose(
            bias[:, 0], (weight * error).sum(axis=1), rtol=1e-9, atol=1e-10
        )
        np.testing.assert_allclose(
            root[:, 0], np.sqrt((weight * error**2).sum(axis=1)), rtol=1e-10
        )


def test_bias_of_sa_at_gamma_1_decays_as_papers_3_says():
    bias = SA(3.0, step=1.0).moments(5.0, [200, 2000])[0]
    assert np.log(bias[0] / bias[1]) / np.log(10) == pytest.approx(
        3 / 8, rel=1e-3, abs=0
    )  # k^-a, a = p / (p + D)


def test_momentum_is_a_larger_step():
    """At (500, 10) SAM(0.8, 0.5) has the bias of SA(0.5); printed to integers."""
    k = [10, 30, 100, 300, 1000, 3000]
    np.testing.assert_allclose(
        SA(10.0, step=0.5).moments(500.0, k)[0],
        [-453, -414, -347, -260, -149, -60],
        atol=0.5,
    )
    np.testing.assert_allclose(
        SAM(10.0, step=0.8, momentum=0.5).moments(500.0, k)[0],
        [-453, -414, -346, -259, -148, -59],
        atol=0.5,
    )


@every
def test_moments_broadcast_over_change_rates_and_counts(name):
    rates = np.array([[0.5, 5.0], [50.0, 1.0]])
    some, all_ = (
        MAKE[name](3.0).moments(rates, [2, 7, 7]),
        MAKE[name](3.0).moments(rates, 7),
    )
    assert all_[0].shape == all_[1].shape == (2, 2, 7)
    np.testing.assert_allclose(some, np.array(all_)[..., [1, 6, 6]], rtol=1e-12)
    np.testing.assert_allclose(
        np.array(all_)[:, 1, 0], MAKE[name](3.0).moments(50.0, 7), rtol=1e-12
    )


@functools.cache
def simulated(change_rate, crawl_rate):
    return simulate_history(
        change_rate, crawl_rate=crawl_rate, n_crawls=100, n_runs=10_000, rng=8
    )


@every
@pytest.mark.parametrize(("change_rate", "crawl_rate"), [(5.0, 3.0), (500.0, 10.0)])
def test_moments_agree_with_simulation(name, change_rate, crawl_rate):
    runs, k = 10_000, np.array([1, 10, 100])
    error = (
        path(MAKE[name](crawl_rate), simulated(change_rate, crawl_rate))[:, k - 1]
        - change_rate
    )
    bias, root = MAKE[name](crawl_rate).moments(change_rate, k)
    # 5 standard errors, of the mean and of the mean square
    assert (
        np.abs(error.mean(axis=0) - bias) < 5 * error.std(axis=0) / np.sqrt(runs)
    ).all()
    square = error**2
    assert (
        np.abs(square.mean(axis=0) - root**2) < 5 * square.std(axis=0) / np.sqrt(runs)
    ).all()


# ---------------------------------------------------------------- limits


def test_limits():
    rates = np.array([5.0, 500.0])
    np.testing.assert_allclose(
        Naive(3.0).limit(rates), [1.875, 1500 / 503], rtol=1e-12
    )  # 1.875: fig. 1(a) of [valuetools20]
    for name in ("LLN", "SA", "SAM"):
        np.testing.assert_array_equal(MAKE[name](3.0).limit(rates), rates)


@pytest.mark.parametrize("name", ["Naive", "LLN", "LLN sqrt", "SA", "SAM"])
def test_estimates_go_to_their_limit(name):
    estimator = MAKE[name](3.0)
    bias, root = estimator.moments(5.0, [100, 3000])
    gap = bias + 5.0 - estimator.limit(5.0)
    spread = np.sqrt(root**2 - bias**2)
    assert (
        abs(gap[1]) <= abs(gap[0]) / 4 + 1e-10
    )  # the slowest, LLN with sqrt(k), at last as k^-1/2: 1 / 5.5
    assert (
        spread[1] < spread[0] / 3
    )  # the slowest, SA and SAM at gamma = 0.75, as k^-3/8: 1 / 3.6


# ---------------------------------------------------------------- a new crawl rate


@pytest.mark.parametrize("name", ["Naive", "LLN", "LLN sqrt"])
def test_a_new_crawl_rate_restarts_the_counts_of_the_pages_whose_rate_is_new(name):
    old, new = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 3.0])
    bits = np.random.default_rng(9).random((40, 3)) < 0.6
    estimator, unmoved, fresh = MAKE[name](old), MAKE[name](old), MAKE[name](5.0)
    for row in bits[:20]:
        estimator.update(row)
        unmoved.update(row)
    for i, row in enumerate(bits[20:]):
        estimate = estimator.update(row, crawl_rate=new if i == 0 else None)
        expected = unmoved.update(row)
        expected[1] = fresh.update(row[1])
        np.testing.assert_allclose(estimate, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["Naive", "LLN"])
def test_counts_go_on_when_the_rate_is_the_old_one_and_restart_when_it_is_not(name):
    bits = np.random.default_rng(10).random((10, 4)) < 0.5
    one, other, moved = MAKE[name](2.0), MAKE[name](2.0), MAKE[name](2.0)
    for row in bits[:9]:
        np.testing.assert_array_equal(
            one.update(row, crawl_rate=2.0), other.update(row)
        )
        moved.update(row)
    np.testing.assert_array_equal(
        moved.update(bits[9], crawl_rate=3.0), MAKE[name](3.0).update(bits[9])
    )


@pytest.mark.parametrize("name", ["SA", "SAM"])
def test_sa_and_sam_go_on_under_a_new_crawl_rate(name):
    rng = np.random.default_rng(11)
    bits, rates = rng.integers(0, 2, 60), np.repeat(rng.uniform(1, 9, 6), 10)
    estimator = MAKE[name](rates[0])
    mine = [
        float(estimator.update(bit, crawl_rate=rate))
        for bit, rate in zip(bits, rates, strict=True)
    ]
    y = z = u = 0.0
    expected = []
    for k, (bit, p) in enumerate(zip(bits, rates, strict=True)):
        y += (k + 1) ** -0.75 * (bit * (y + p) - y)
        u += (k + 1) ** (0.75 - 1.3) * (bit * (z + p) - z - u)
        z += (k + 1) ** -0.75 * u
        expected.append(y if name == "SA" else z)
    np.testing.assert_allclose(mine, expected, rtol=1e-10)


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize("unit", [1e-12, 60.0, 1e12])
@pytest.mark.parametrize(
    "make",
    [Naive, LLN, lambda p: SA(p, initial=p), lambda p: SAM(p, initial=p)],
    ids=["Naive", "LLN", "SA", "SAM"],
)
def test_another_unit_of_time_rescales_estimates(make, unit):
    history = simulate_history(5.0, crawl_rate=3.0, n_crawls=200, rng=12)
    np.testing.assert_allclose(
        path(make(3.0 / unit), history) * unit, path(make(3.0), history), rtol=1e-10
    )


def test_another_unit_of_time_rescales_mle_path():
    history = simulate_history(5.0, crawl_rate=3.0, n_crawls=200, rng=12)
    for unit in (1e-12, 60.0, 1e12):
        np.testing.assert_allclose(
            mle_path(History(history.interval * unit, history.changed)) * unit,
            mle_path(history),
            rtol=1e-10,
        )


@every
def test_permuting_pages_permutes_estimates(name):
    rates, order = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 3, 1])
    history = simulate_history(5.0, crawl_rate=rates, n_crawls=50, rng=13)
    shuffled = History(history.interval[order], history.changed[order])
    np.testing.assert_array_equal(
        path(MAKE[name](rates[order]), shuffled),
        path(MAKE[name](rates), history)[order],
    )
    np.testing.assert_array_equal(mle_path(shuffled), mle_path(history)[order])


# ---------------------------------------------------------------- helpers over runs


def test_helpers_over_runs():
    history = simulate_history(5.0, crawl_rate=3.0, n_crawls=20, n_runs=50, rng=14)
    got = paths(history, lln=LLN(3.0), likely=mle_path)
    assert list(got) == ["lln", "likely"]
    np.testing.assert_array_equal(got["lln"], path(LLN(3.0), history))
    np.testing.assert_array_equal(got["likely"], mle_path(history))
    error = rmse(got, 5.0)["lln"]
    assert error.shape == (20,)
    assert error[3] == pytest.approx(
        np.sqrt(((got["lln"][:, 3] - 5.0) ** 2).mean()), rel=1e-12, abs=0
    )
    with pytest.raises(ValueError, match="change_rate must be a single number"):
        rmse(got, (5.0,))


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[
            (
                lambda make=make, bad=bad: make(bad),
                f"crawl_rate must be positive and finite, got {float(bad)!r}",
            )
            for make in (Naive, LLN, SA, SAM)
            for bad in (0.0, -1.0, np.nan, np.inf)
        ],
        (
            lambda: LLN([1.0, 0.0]),
            "crawl_rate must be positive and finite, got 0.0 at index (1,)",
        ),
        (lambda: LLN(1.0, offset=0.0), "offset must be positive and finite, got 0.0"),
        (lambda: LLN(1.0, offset=-1.0), "offset must be positive and finite, got -1.0"),
        (
            lambda: LLN(1.0, offset=math.log),
            "offset must be positive and finite from the first crawl on, got 0.0 "
            "at k = 1",
        ),
        (lambda: SA(1.0, step=0.0), "step must be positive and finite, got 0.0"),
        (lambda: SA(1.0, step=-0.5), "step must be positive and finite, got -0.5"),
        (
            lambda: SA(1.0, step=[0.5, 1.0]),
            "step must be a single number, got shape (2,)",
        ),
        (lambda: SA(1.0, initial=np.nan), "initial must be finite, got nan"),
        (lambda: SAM(1.0, step=np.nan), "step must be positive and finite, got nan"),
        (
            lambda: SAM(1.0, momentum=0.0),
            "momentum must be positive and finite, got 0.0",
        ),
        (lambda: SAM(1.0, omega=0.0), "omega must be positive and finite, got 0.0"),
        (
            lambda: SAM(1.0, initial=[0.0, np.inf]),
            "initial must be finite, got inf at index (1,)",
        ),
        *[
            (
                lambda make=make: make(1.0).update([0, 1, 2]),
                "changed must be boolean or 0/1, got 2 at index (2,)",
            )
            for make in (Naive, LLN, SA, SAM)
        ],
        (
            lambda: SA(1.0).update([0.0, np.nan]),
            "changed must be boolean or 0/1, got nan at index (1,)",
        ),
        *[
            (
                lambda make=make: make(1.0).update(True, crawl_rate=-2.0),
                "crawl_rate must be positive and finite, got -2.0",
            )
            for make in (Naive, LLN, SA, SAM)
        ],
        *[
            (
                lambda make=make: make([1.0, 2.0]).moments(1.0, 3),
                "crawl_rate must be a single number for moments, got shape (2,)",
            )
            for make in (LLN, SA)
        ],
        (
            lambda: LLN(1.0).moments(0.0, 3),
            "change_rate must be positive and finite, got 0.0",
        ),
        (lambda: SA(1.0).moments(1.0, 0), "n_crawls must be a positive integer, got 0"),
        (
            lambda: SA(1.0).moments(1.0, 1.5),
            "n_crawls must be a positive integer, got 1.5",
        ),
        (
            lambda: SA(1.0).moments(1.0, [3, 0]),
            "n_crawls must be a positive integer, got 0",
        ),
        (
            lambda: Naive(1.0).limit(-1.0),
            "change_rate must be non-negative and finite, got -1.0",
        ),
        (lambda: LLN(1.0, offset="a"), "offset must be positive and finite, got 'a'"),
        *[
            (
                lambda make=make: make(1.0).update([1, 0, 1], crawl_rate=[1.0, 2.0]),
                "got changed (3,), crawl_rate (2,), earlier crawls ()",
            )
            for make in (Naive, LLN, SA, SAM)
        ],
    ],
)
def test_online_estimators_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@every
def test_a_refused_update_changes_nothing(name):
    estimator = MAKE[name](2.0)
    estimator.update([True, False])
    before = estimator.estimate.copy()
    with pytest.raises(
        ValueError,
        match=re.escape("got changed (3,), crawl_rate (), earlier crawls (2,)"),
    ):
        estimator.update([True, False, True])
    with pytest.raises(ValueError, match="crawl_rate"):
        estimator.update([True, True], crawl_rate=0.0)
    with pytest.raises(ValueError, match="changed"):
        estimator.update([3, True], crawl_rate=4.0)
    np.testing.assert_array_equal(estimator.estimate, before)
    np.testing.assert_array_equal(estimator.crawl_rate, 2.0)


def test_moments_are_those_of_a_fresh_estimator():
    used = SAM(3.0, initial=1.0)
    for bit in (True, False, True):
        used.update(bit)
    np.testing.assert_array_equal(
        used.moments(5.0, 4), SAM(3.0, initial=1.0).moments(5.0, 4)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: SA(3.0, initial=[1.0, 2.0]).moments(5.0, 3),
            "initial must be a single number for moments, got shape (2,)",
        ),
        (
            lambda: SA(3.0).moments(5.0, [2.5]),
            "n_crawls must be a positive integer, got 2.5",
        ),
        (
            lambda: LLN(3.0, offset=np.inf),
            "offset must be positive and finite, got inf",
        ),
    ],
)
def test_more_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_an_estimator_of_ones_own_needs_estimate_and_update():
    class Last(OnlineEstimator):
        estimate = 0.0

        def update(self, changed, *, interval=None, crawl_rate=None):
            self.estimate = changed / interval
            return self.estimate

    history = History([2.0, 4.0], [True, True])
    np.testing.assert_array_equal(path(Last(), history), [0.5, 0.25])
    assert Last().limit(3.0) == 3.0
    with pytest.raises(TypeError, match="abstract"):
        OnlineEstimator()


# --------------------------------------------------- path with crawl rates that change


def with_rates(seed=15, n=30):
    """Three pages with a new crawl rate every ten crawls, the third one later."""
    rng = np.random.default_rng(seed)
    rate = np.repeat(rng.uniform(1, 9, (3, n // 10)), 10, axis=1)
    rate[2, :20] = rate[2, 0]
    return simulate_history([5.0, 0.5, 2.0], crawl_rate=3.0, n_crawls=n, rng=rng), rate


@every
def test_path_hands_each_crawl_its_rate(name):
    history, rate = with_rates()
    whole = path(MAKE[name](7.0), history, crawl_rate=rate)
    estimator = MAKE[name](7.0)
    for k in range(30):
        np.testing.assert_array_equal(
            whole[:, k], estimator.update(history.changed[:, k], crawl_rate=rate[:, k])
        )
    constant = np.full(rate.shape, 3.0)
    np.testing.assert_array_equal(
        path(MAKE[name](3.0), history, crawl_rate=constant),
        path(MAKE[name](3.0), history),
    )
    np.testing.assert_array_equal(
        path(
            MAKE[name](3.0),
            History(history.interval[0], history.changed[0]),
            crawl_rate=list(rate[0]),
        ).ndim,
        1,
    )


@every
def test_ragged_path_hands_each_page_its_rates(name):
    history, rate = with_rates()
    sizes = [25, 30, 7]
    pages = ragged(history, sizes)
    rates = ragged(History(rate, history.changed), sizes).interval
    together = np.split(
        path(MAKE[name](7.0), pages, crawl_rate=rates), pages.offsets[1:-1]
    )
    for page, (mine, n) in enumerate(zip(together, sizes, strict=True)):
        alone = History(history.interval[page, :n], history.changed[page, :n])
        np.testing.assert_array_equal(
            mine, path(MAKE[name](7.0), alone, crawl_rate=rate[page, :n])
        )


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (3.0, "crawl_rate must have the shape of changed, (2, 4), got ()"),
        (np.ones(4), "crawl_rate must have the shape of changed, (2, 4), got (4,)"),
        (
            np.ones((2, 3)),
            "crawl_rate must have the shape of changed, (2, 4), got (2, 3)",
        ),
        (
            np.array([[1, 1, 1, 1], [1, 0, 1, 1]]),
            "crawl_rate must be positive and finite, got 0.0 at index (1, 1)",
        ),
    ],
)
def test_path_refuses_rates(rate, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        path(LLN(3.0), History(np.ones((2, 4)), np.ones((2, 4))), crawl_rate=rate)
