"""The crawl value of a page with signals, one page and one state at a time: Lemma 4 of [www25], safe in every limit.

Everything is written in u = alpha tau + b n, the effective elapsed time in units of 1 / alpha, so that exp(-u) is the probability
that the page is fresh (eq. (1) of [www25]). It stays finite where beta = b / alpha does not. With r = gamma / alpha,
rho = gamma / (alpha + gamma), q = nu / (alpha + gamma), d_k = 1 - rho^k, x_i = r (u - i b) and p(j; x) = exp(-x) x^j / j!,

    gamma V / importance = sum_i T_i,   T_i = exp(-i b) int_0^(u - i b) exp(-s) P(i + 1, r s) ds

over all i with i b < u, and the difference w - exp(-u) psi of Lemma 4, which cancels, becomes one of the forms

    T_i = exp(-u) sum_(k >= 1) p(i + 1; x_i) y^k / ((i + 2) ... (i + 1 + k)) d_k,   y = x_i + u - i b     (no difference at all)
    T_i = (1 - exp(-u)) - (1 - rho q^i) + exp(-u) N_i,      N_i = sum_(j <= i) p(j; x_i) d_(i + 1 - j)
    rho q^i - T_i = exp(-u) (1 - N_i)                       (what is missing to the limit, for large u)

An error in the scheduler's order of pages must not come from rounding: the value must never fall as u grows. u is rounded to 38
bits, a step in which the value (for u <= 1) or what it lacks to its limit (above) moves by more than 1e-12 of itself, and these are
computed to some 1e-14. The rounding moves the value by less than 1e-11 of itself."""

import math

import numpy as np
from numba import njit, prange

from paperlib._kernels import ufunc

EXACT = 0
N_CONSTANTS = 10
_SURE = 45.0  # beyond, what is missing to the limit, some (2 u + 1) exp(-u), is below rounding
_EPS = 1e-15
_SPLIT = 2.0**15 + 1.0
_UNBOUNDED = 1e150  # stands for r = inf: its square overflows to inf, its product with a time does not
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_INVERSE = np.array(
    [0.0] + [1.0 / j for j in range(1, 256)]
)  # a product takes a third of the time of a quotient


@njit(cache=True, error_model="numpy")
def _poisson(n, x):
    """exp(-x) x^n / n!, with a relative error of some n 1e-16."""
    if n <= 16:
        p = math.exp(-x)
        for j in range(1, n + 1):
            p *= x * _INVERSE[j]
        return p
    v = 1.0 / n
    v2 = v * v
    series = v * (
        _STIRLING[0]
        + v2
        * (_STIRLING[1] + v2 * (_STIRLING[2] + v2 * (_STIRLING[3] + v2 * _STIRLING[4])))
    )
    z = x / n
    return math.exp(n * (math.log(z) - (z - 1.0)) - series) / math.sqrt(
        2.0 * math.pi * n
    )


@njit(cache=True, error_model="numpy")
def _below(i, x, rho, d1):
    """N_i, the Poisson distribution function Q(i + 1, x), and p(i; x)."""
    if i <= 16:
        h = d = d1
        all_ = p = 1.0
        for j in range(i, 0, -1):
            d = d1 + rho * d
            z = x * _INVERSE[j]
            h = d + h * z
            all_ = 1.0 + all_ * z
            p *= z
        e = math.exp(-x)
        return h * e, all_ * e, p * e
    p = term = all_ = _poisson(i, x)
    d = d1
    total, once = term * d, 1.0 / x
    for j in range(i, 0, -1):
        term *= j * once
        d = d1 + rho * d
        total += term * d
        all_ += term
        if term <= _EPS * total and j < x:
            break
    return total, all_, p


@njit(cache=True, error_model="numpy")
def _above(i, x, y, rho, d1, so_far):
    """exp(u) T_i, as precisely as a sum with `so_far` needs it, and about as precisely P(i + 1, x) and p(i; x). Positive terms only."""
    first = term = other = all_ = _poisson(i + 1, x)
    d = d1
    total = 0.0
    j = i + 1
    while True:
        j += 1
        once = _INVERSE[j] if j < 256 else 1.0 / j
        term *= y * once
        other *= x * once
        total += term * d
        all_ += other
        if not y >= j and (term == 0.0 or not term > _EPS * (total + so_far)):
            return total, all_, first * (i + 1) / x
        d = d1 + rho * d


@njit(cache=True, error_model="numpy")
def _one_minus_below(i, x, rho):
    """1 - N_i for small x, where N_i is all but 1: P(i + 1, x) + sum_(j <= i) p(j; x) rho^(i + 1 - j). Also P(i + 1, x) and p(i; x)."""
    h = power = rho
    p = e = math.exp(-x)
    for j in range(i, 0, -1):
        power *= rho
        h = power + h * x / j
        p *= x / j
    rest = _above(i - 1, x, x, 0.0, 1.0, 0.0)[0]
    return h * e + rest, rest, p


@njit(cache=True, error_model="numpy")
def _gamma2(x):
    """1 - (1 + x) exp(-x), to rounding, and what it lacks to 1 exactly where x > 1."""
    if x > 1.0:
        return 1.0 - (1.0 + x) * math.exp(-x)
    # exp(-x) sum_(k >= 2) x^k / k!, even and odd powers apart so that the processor does both at once
    z = x * x
    even = 1 / 2 + z * (
        1 / 24
        + z
        * (
            1 / 720
            + z
            * (
                1 / 40320
                + z * (1 / 3628800 + z * (1 / 479001600 + z * (1 / 87178291200)))
            )
        )
    )
    odd = 1 / 6 + z * (
        1 / 120
        + z
        * (
            1 / 5040
            + z
            * (
                1 / 362880
                + z * (1 / 39916800 + z * (1 / 6227020800 + z / 1307674368000))
            )
        )
    )
    return z * (even + x * odd) * math.exp(-x)


@njit(cache=True, error_model="numpy")
def constants(change_rate, importance, recall, false_rate, terms):
    """What `value` needs of a page, `N_CONSTANTS` floats; terms <= 0 is the exact value, terms = j is APPROX-j of appendix A.1.

    A page whose signals say nothing (b = 0: recall 0) has the value without signals. APPROX-j of it is the limit of APPROX-j for
    recall -> 0, which is another, unless there are no signals at all.
    """
    signalled = recall * change_rate
    alpha = (1.0 - recall) * change_rate
    gamma = signalled + false_rate
    if change_rate == 0.0 or importance == 0.0:
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    b = (
        math.log1p(signalled / false_rate)
        if false_rate > 0.0
        else (np.inf if signalled > 0.0 else 0.0)
    )
    n_terms = float(terms) if terms > 0 else np.inf
    if gamma == 0.0 or (b == 0.0 and terms <= 0):
        return (
            importance / change_rate,
            change_rate,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            np.inf,
            0.0,
        )
    both = change_rate + false_rate
    missing = change_rate / both
    log_q = (
        math.log(false_rate / both) if false_rate < 0.5 * both else math.log1p(-missing)
    )
    limit = importance / change_rate * -math.expm1(n_terms * log_q)
    r = min(gamma / alpha, _UNBOUNDED) if alpha > 0.0 else _UNBOUNDED
    return (
        limit,
        alpha,
        b,
        r,
        gamma / both,
        alpha / both,
        missing,
        log_q,
        n_terms,
        importance / gamma,
    )


@njit(cache=True, error_model="numpy")
def rows(change_rate, importance, recall, false_rate, terms):
    """`constants` of many pages, shape (n_pages, N_CONSTANTS)."""
    out = np.empty((change_rate.size, N_CONSTANTS))
    for i in range(change_rate.size):
        for k, constant in enumerate(
            constants(change_rate[i], importance[i], recall[i], false_rate[i], terms)
        ):
            out[i, k] = constant
    return out


@njit(cache=True, error_model="numpy")
def effective(row, elapsed, n_signals):
    """u = alpha elapsed + b n_signals, also where alpha = 0 meets an infinite time or b = inf meets no signal."""
    u = row[1] * elapsed if row[1] > 0.0 else 0.0
    return u + row[2] * n_signals if n_signals > 0 else u


@njit(cache=True, error_model="numpy")
def value_and_lack(row, u):
    """V at u = alpha iota, not rounded, and what it lacks to its limit: for u > 1 the second is the more precise."""
    value, lack, _, _ = _sums(row, u)
    return value, lack


@njit(cache=True, error_model="numpy")
def value_and_rise(row, u):
    """V at u = alpha iota, rounded already, and (g, rho, rho') there, where dV/du = g rho and g = constant x exp(-u).

    rho = alpha psi, which never falls and grows no faster than u, and its derivative are for bounds: to a relative 1e-9.
    """
    if not u <= _SURE:
        return row[0], 0.0, 0.0, 0.0
    if row[3] == 0.0:
        return row[0] * _gamma2(u), row[0] * math.exp(-u), u, 1.0
    value, _, rho, creep = _sums(row, u)
    return value, row[9] * row[3] * math.exp(-u), rho, creep


@njit(cache=True, error_model="numpy")
def _sums(row, u):
    """`value_and_lack`, and sums of the same terms: alpha psi = sum_i P(i + 1, x_i) / r and its derivative sum_i p(i; x_i)."""
    limit, b, r = row[0], row[2], row[3]
    if not u > 0.0 or limit == 0.0:
        return 0.0, limit, 0.0, 1.0
    if u > _SURE:
        return limit, 0.0, np.nan, np.nan
    if r == 0.0:
        value = limit * _gamma2(u)
        return value, limit * (1.0 + u) * math.exp(-u), u, 1.0
    rho, d1, missing, log_q, n_terms, scale = (
        row[4],
        row[5],
        row[6],
        row[7],
        row[8],
        row[9],
    )
    q = 1.0 - missing
    decay = math.exp(-u)
    early = u <= 1.0
    gone = -math.expm1(-u)
    total = tail = passed = creep = 0.0
    g = d1  # 1 - rho q^i
    i = 0
    while i < n_terms and not (early and r < 1.0):
        t = u - i * b if i > 0 else u
        x = r * t
        if not t > 0.0 or x + t < i + 1:
            break
        gap = x - i
        if not early and r < 0.01:
            term, beyond, p = _one_minus_below(i, x, rho)
            total += term
        else:
            # by Chernoff's bound N_i < exp(-42.5) far below the mean
            near, below, p = (
                (0.0, 0.0, 0.0)
                if gap > 0.0 and gap * gap > 85.0 * x
                else _below(i, x, rho, d1)
            )
            total += (gone - g) + decay * near if early else 1.0 - near
            beyond = 1.0 - below
        passed += beyond
        creep += p
        g = g * q + missing
        i += 1
    first = i
    while i < n_terms:
        t = u - i * b if i > 0 else u
        if not t > 0.0:
            break
        x = r * t
        term, beyond, p = _above(
            i, x, x + t, rho, d1, tail + (total / decay if early else total)
        )
        tail += term
        passed += beyond
        creep += p
        if term == 0.0 or term <= _EPS * (total + tail):
            break
        i += 1
    if early:
        value = scale * (total + decay * tail)
        return value, limit - value, passed / r, creep
    missed = 0.0
    if first < n_terms:
        missed = (
            rho
            * (math.exp(first * log_q) if first > 0 else 1.0)
            * -math.expm1((n_terms - first) * log_q)
            / missing
        )
    lack = scale * (decay * (total - tail) + missed)
    return limit - lack, lack, passed / r, creep


@njit(cache=True, error_model="numpy")
def rounded(u):
    """u to 38 bits (Veltkamp's splitting): never decreasing."""
    c = _SPLIT * u
    return c - (c - u)


@njit(cache=True, error_model="numpy")
def value(row, elapsed, n_signals):
    """V in the state (elapsed, n_signals) of the page with these `constants`; never decreasing in either, in floating point."""
    u = effective(row, elapsed, n_signals)
    if not u <= _SURE:
        return row[0]
    if row[3] == 0.0:
        return row[0] * _gamma2(rounded(u))
    return value_and_lack(row, rounded(u))[0]


@njit(cache=True, error_model="numpy")
def crawl_value(elapsed, n_signals, change_rate, importance, recall, false_rate, terms):
    """V of Lemma 4 in the state (elapsed, n_signals); terms <= 0 for the exact value, terms = j for APPROX-j."""
    return value(
        constants(change_rate, importance, recall, false_rate, terms),
        elapsed,
        n_signals,
    )


@njit(cache=True, error_model="numpy")
def _signals(x, step):
    """The sum in `signals_per_cycle`."""
    total = 0.0
    i = 0
    while True:
        y = x - i * step if i > 0 else x
        if not y > 0.0:
            break
        gap = y - i
        if gap > 0.0 and gap * gap > 85.0 * y:
            term = 1.0
        elif y < i + 1:
            term = _above(i - 1, y, y, 0.0, 1.0, total)[0]
        else:
            term = 1.0 - _below(i, y, 0.0, 1.0)[0]
        total += term
        if term <= _EPS * total:
            break
        i += 1
    return total


@njit(cache=True, error_model="numpy")
def signals_per_cycle(x, step):
    """gamma psi = sum_i P(i + 1, x - i step), the expected number of signals between two crawls, the one that leads to a crawl too.

    x = gamma iota, step = gamma beta. Far out, by Wald's identity, with a jump over the threshold that is uniform on (0, step).
    """
    if x > 100.0 * (1.0 + step) ** 3:
        return (x + 0.5 * step * step / (1.0 + step)) / (1.0 + step)
    return _signals(x, step)


@njit(cache=True, error_model="numpy")
def psi(iota, change_rate, recall, false_rate):
    """Expected time between two crawls of a page that is crawled once its effective elapsed time reaches iota; Lemma 4."""
    signalled = recall * change_rate
    alpha = (1.0 - recall) * change_rate
    gamma = signalled + false_rate
    b = (
        math.log1p(signalled / false_rate)
        if false_rate > 0.0
        else (np.inf if signalled > 0.0 else 0.0)
    )
    if b == 0.0 or iota == np.inf:  # signals that say nothing move no crawl
        return iota
    return (
        signals_per_cycle(gamma * iota, gamma / alpha * b if alpha > 0.0 else np.inf)
        / gamma
    )


@njit(cache=True, error_model="numpy")
def w(iota, change_rate, recall, false_rate):
    """Expected time that the copy is fresh in such a cycle, as V + exp(-alpha iota) psi: both positive; Lemma 4."""
    if (
        change_rate == 0.0 or iota == np.inf
    ):  # without crawls, fresh until the first change
        return iota if change_rate == 0.0 else 1.0 / change_rate
    alpha = (1.0 - recall) * change_rate
    gained = value_and_lack(
        constants(change_rate, 1.0, recall, false_rate, EXACT),
        alpha * iota if alpha > 0.0 else 0.0,
    )[0]
    remains = math.exp(-alpha * iota) if alpha > 0.0 else 1.0
    return gained + remains * psi(iota, change_rate, recall, false_rate)


@njit(cache=True, error_model="numpy")
def _state_at(row, at_one, target, u):
    """u with V = target, 0 < target < limit, from a guess (0 for none), given the value and lack at 1; NaN when not converged.

    Newton on log V against log u below u = 1 and on the log of the lack above, where each is nearly straight, in a bracket: V' jumps
    where recall is 1 or nearly so.
    """
    first, lack = at_one
    early = target <= first
    lacking = row[0] - target
    low, high = (0.0, 1.0) if early else (1.0, _SURE)
    if not low < u < high:
        u = math.sqrt(target / first) if early else 1.0 + math.log(lack / lacking)
        u = min(max(u, low), high)
    for _ in range(200):
        reached, lack, rho, _ = _sums(row, u)
        if reached < target if early else lack > lacking:
            low = u
        else:
            high = u
        slope = math.exp(-u) * (row[0] if row[3] == 0.0 else row[9] * row[3]) * rho
        new = (
            u * math.exp(math.log(target / reached) * reached / (u * slope))
            if early
            else u + math.log(lack / lacking) * lack / slope
        )
        step = new - u
        if abs(step) <= 1e-13 * u:
            return u
        if not low < new < high:
            new = 0.5 * (low + high)
            if high - low <= 2e-15 * high:
                return new
        u = new
        if (
            abs(step) <= 1e-9 * u and row[3] < 1e3
        ):  # smooth: the error is of the order of its square
            return u
    return np.nan


@njit(cache=True, error_model="numpy")
def at_one(rows):
    """Value and lack of each page at u = 1, shape (n_pages, 2)."""
    out = np.empty((rows.shape[0], 2))
    for i in range(rows.shape[0]):
        out[i] = value_and_lack(rows[i], 1.0)
    return out


@njit(cache=True, parallel=True, error_model="numpy")
def threshold_rates(multiplier, rows, at_one, gamma, state, rate):
    """The states u = alpha iota at which the value of each page is the multiplier, inf if it never is, and the crawl rates 1 / psi.

    Returns the sum of the rates. States of an earlier call are where the search starts; zeros otherwise. `at_one` holds the value and
    lack of each page at u = 1.
    """
    total = 0.0
    for i in prange(rate.size):
        row = rows[i]
        if row[0] > multiplier:
            u = _state_at(row, at_one[i], multiplier, state[i])
            state[i] = u
            rate[i] = (
                row[1] / u
                if row[3] == 0.0
                else gamma[i] / signals_per_cycle(row[3] * u, row[3] * row[2])
            )
        else:
            state[i] = np.inf
            rate[i] = 0.0
        total += rate[i]
    return total


@ufunc("f8(f8,f8,f8,f8,f8,f8,f8)")
def crawl_values(
    elapsed, n_signals, change_rate, importance, recall, false_rate, terms
):
    """`crawl_value`, broadcast."""
    return crawl_value(
        elapsed, n_signals, change_rate, importance, recall, false_rate, terms
    )


@ufunc("f8(f8,f8,f8,f8)")
def psis(iota, change_rate, recall, false_rate):
    """`psi`, broadcast."""
    return psi(iota, change_rate, recall, false_rate)


@ufunc("f8(f8,f8,f8,f8)")
def ws(iota, change_rate, recall, false_rate):
    """`w`, broadcast."""
    return w(iota, change_rate, recall, false_rate)
