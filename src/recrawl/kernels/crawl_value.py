r"""Crawl value of a page with change-indicating signals: Lemma 4 of [www25]_.

The algorithm. Everything is written in u = -log P(fresh), the cumulative hazard
of the copy (eq. (1)). With the rate alpha of changes without a signal, the rate
gamma of all signals, and the hazard b = log(gamma / false_rate) that one signal
adds, u = alpha tau + b n: it is the effective elapsed time iota in units of
1 / alpha, and finite where beta = b / alpha is not (see `Constants`). Lemma 4
gives the value as a difference, V = importance (w - exp(-u) psi), which cancels
for small u. Here V is a sum over the number i of signals,

    gamma V / importance = sum_i T_i,
    T_i = exp(-i b) int_0^(u - i b) exp(-s) P(i + 1, ratio s) ds,

over all i with i b < u, where P is the regularised incomplete gamma function (and
Q = 1 - P).
With p(j; x) = exp(-x) x^j / j!, x_i = ratio (u - i b), y_i = x_i + u - i b,
q = false_rate / (alpha + gamma), rho = gamma / (alpha + gamma) and
d_k = 1 - rho^k, each term takes one of three forms, and none of them cancels
where it is used:

    (a) T_i = exp(-u) sum_(k >= 1) p(i + 1; x_i)
                      y_i^k / ((i + 2) ... (i + 1 + k)) d_k
    (b) T_i = (1 - exp(-u)) - (1 - rho q^i) + exp(-u) N_i
    (c) rho q^i - T_i = exp(-u) (1 - N_i)
    where N_i = sum_(j <= i) p(j; x_i) d_(i + 1 - j).

The first terms, y_i >= i + 1, use (b) for u <= 1, if ratio >= 1: T_i is of the
order of the ratio where that is small, and (b) would cancel. For u > 1 they
use (c), which gives the distance of the value to its limit: there it is small,
and V = limit - distance is exact to rounding. N_i is a sum of i + 1 terms;
it is left out where Chernoff's bound puts it below rounding. All other terms
use (a), which has positive terms only; so do all terms for u <= 1, if ratio < 1.

Why the series stop. In (a) term k + 1 is y_i / (i + 2 + k) d_(k + 1) / d_k of
term k. The first factor is below 1, the second is at most (k + 1) / k, and both
fall, so the series stops at a term below rounding. The sum over i falls faster
than geometrically there: P(i + 2, x) is at most x / (i + 2) of P(i + 1, x), and
x_i <= y_i < i + 1. So it stops at a term below rounding too. Where u <= 1 and
ratio < 1, y_0 may be above 1, but x_i <= x_0 < 1 and y_i < 2, which is enough.

Why the value never falls. The arg max over pages must not depend on rounding:
V must not fall as u grows, in floating point. So u is rounded to 38 bits
(`rounded`, which never decreases). From one such number to the next, V (for
u <= 1), or the distance (above), moves by more than 1e-12 of itself; both are
computed to about 1e-14, so two states have either the same rounded u, and then
the same bits, or values in the right order. The rounding moves V by less than
1e-11 of itself, which is the error of this module.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from recrawl.kernels import compiled, parallel, ufunc

EXACT = 0  # `terms` of the value with all its terms
# For larger u the distance of V to its limit is below rounding: some
# (2 u + 1) exp(-u) of the limit.
_LARGEST_U = 45.0
_EPS = 1e-15  # a series stops at a term below this share of its sum
# Stands for ratio = inf: its square overflows to inf, its product with a time
# does not, so that no inf - inf arises.
_LARGEST_RATIO = 1e150
# Up to so many factors p(n; x) is a product: shorter than Stirling's series.
_SHORT = 16
# (x - i)^2 > 85 x: by Chernoff's bound a Poisson variable of mean x is at most
# i with a probability of less than exp(-85 / 2), below rounding.
_CHERNOFF = 85.0
# Below this ratio N_i is so near 1 that 1 - N_i is computed on its own.
_SMALL_RATIO = 0.01
_MAX_STEPS = 200  # of Newton's method and bisection together; some 5 are usual
_SETTLED = 1e-13  # relative step of Newton's method that needs no other
_NARROW = 2e-15  # relative width of a bracket of a few adjacent numbers
# Where V is smooth (a ratio below 1000) the error after a step of Newton's
# method is of the order of the square of the step.
_QUADRATIC, _SMOOTH_RATIO = 1e-9, 1e3
_VELTKAMP = 2.0**15 + 1.0  # keeps 53 - 15 = 38 bits
# 1 / (12 n) - 1 / (360 n^3) + ...: Stirling's series, the last term first
_STIRLING = (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
# 1 / k! for even and for odd k, the last term first
_EVEN = tuple(1 / math.factorial(k) for k in range(14, 0, -2))
_ODD = tuple(1 / math.factorial(k) for k in range(13, 1, -2))
_LAST_ODD = float(math.factorial(15))
# 1 / j, because a product takes a third of the time of a quotient.
_INVERSE = np.array([0.0] + [1.0 / j for j in range(1, 256)])


class Constants(NamedTuple):
    """What the value needs of a page, computed once.

    A kernel takes it as this tuple or as a record of dtype `CONSTANTS`: the
    names are the same.
    """

    limit: float  # of V for u -> inf; importance / change_rate with all terms
    alpha: float  # rate of changes without a signal
    b: float  # alpha beta: what one signal adds to u
    ratio: float  # gamma / alpha; 0 for a page without informative signals
    rho: float  # gamma / (alpha + gamma)
    one_minus_rho: float
    one_minus_q: float  # change_rate / (alpha + gamma)
    log_q: float  # q = false_rate / (alpha + gamma)
    n_terms: float  # of the sum over i: j for APPROX-j, inf for the exact value
    scale: float  # importance / gamma


CONSTANTS = np.dtype([(name, "f8") for name in Constants._fields])


# ------------------------------------------------------------------ the pages


@compiled
def _signal_model(change_rate, recall, false_rate):
    """Rates alpha, gamma, and b = alpha beta = log(gamma / false_rate)."""
    signalled = recall * change_rate
    if false_rate > 0.0:
        b = math.log1p(signalled / false_rate)
    else:
        b = np.inf if signalled > 0.0 else 0.0
    return (1.0 - recall) * change_rate, signalled + false_rate, b


@compiled
def constants(change_rate, importance, recall, false_rate, terms):
    """`Constants` of a page; terms <= 0 is the exact value, j > 0 is APPROX-j.

    A page whose signals carry no information (b = 0: recall 0) has the value
    without signals. APPROX-j (appendix A.1) of it is the limit of APPROX-j for
    recall -> 0, a different number unless there are no signals at all.
    """
    alpha, gamma, b = _signal_model(change_rate, recall, false_rate)
    if change_rate == 0.0 or importance == 0.0:
        return Constants(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    limit = importance / change_rate
    if gamma == 0.0 or (b == 0.0 and terms <= 0):
        return Constants(limit, change_rate, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, np.inf, 0.0)
    n_terms = float(terms) if terms > 0 else np.inf
    both = change_rate + false_rate  # alpha + gamma
    one_minus_q = change_rate / both
    if false_rate < 0.5 * both:  # the form of log q that does not cancel
        log_q = math.log(false_rate / both)
    else:
        log_q = math.log1p(-one_minus_q)
    return Constants(
        limit * -math.expm1(n_terms * log_q),
        alpha,
        b,
        min(gamma / alpha, _LARGEST_RATIO) if alpha > 0.0 else _LARGEST_RATIO,
        gamma / both,
        alpha / both,
        one_minus_q,
        log_q,
        n_terms,
        importance / gamma,
    )


@compiled
def _fill(table, change_rate, importance, recall, false_rate, terms):
    """Write the `constants` of each page to its row of the table."""
    for i in range(change_rate.size):
        page = constants(change_rate[i], importance[i], recall[i], false_rate[i], terms)
        for k, constant in enumerate(page):
            table[i, k] = constant


def page_constants(change_rate, importance, recall, false_rate, terms):
    """Records of dtype `CONSTANTS`, shape (n_pages,), from arrays."""
    pages = np.empty(change_rate.size, CONSTANTS)
    table = pages.view(("f8", len(CONSTANTS)))
    _fill(table, change_rate, importance, recall, false_rate, terms)
    return pages


@compiled
def effective(page, elapsed, n_signals):
    """u = alpha elapsed + b n_signals.

    Also where alpha = 0 meets an infinite time or b = inf meets no signal,
    whose products would be NaN.
    """
    u = page.alpha * elapsed if page.alpha > 0.0 else 0.0
    return u + page.b * n_signals if n_signals > 0 else u


@compiled
def rounded(u):
    """u rounded to 38 bits by Veltkamp's splitting, which is monotone."""
    c = _VELTKAMP * u
    return c - (c - u)


@compiled
def initial_curvature(page):
    """The second derivative of V in u at u = 0: g of `value_and_slope` there."""
    return page.scale * page.ratio if page.ratio > 0.0 else page.limit


# ------------------------------------------------ Poisson sums of one term


@compiled
def _horner(total, x, coefficients):
    """Evaluate a polynomial in x by Horner's rule, beginning with `total`."""
    for c in coefficients:
        total = c + x * total
    return total


@compiled
def _poisson(n, x):
    """p(n; x) = exp(-x) x^n / n!, with a relative error of some n 1e-16."""
    if n <= _SHORT:
        p = math.exp(-x)
        for j in range(1, n + 1):
            p *= x * _INVERSE[j]
        return p
    v = 1.0 / n
    series = v * _horner(_STIRLING[0], v * v, _STIRLING[1:])
    z = x / n
    power = math.exp(n * (math.log(z) - (z - 1.0)) - series)
    return power / math.sqrt(2.0 * math.pi * n)


@compiled
def _poisson_cdf(i, x, rho, one_minus_rho):
    """Weighted and plain Poisson sums up to i: N_i and Q(i + 1, x); and p(i; x)."""
    d = one_minus_rho  # d_(i + 1 - j): 1 - rho^(k + 1) = (1 - rho) + rho d_k
    if i <= _SHORT:
        weighted, plain, p = d, 1.0, 1.0
        for j in range(i, 0, -1):
            d = one_minus_rho + rho * d
            z = x * _INVERSE[j]
            weighted = d + weighted * z
            plain = 1.0 + plain * z
            p *= z
        decay = math.exp(-x)
        return weighted * decay, plain * decay, p * decay
    p = term = plain = _poisson(i, x)
    weighted, inverse = term * d, 1.0 / x
    for j in range(i, 0, -1):
        term *= j * inverse
        d = one_minus_rho + rho * d
        weighted += term * d
        plain += term
        # For j < x the terms fall geometrically from here on.
        if term <= _EPS * weighted and j < x:
            break
    return weighted, plain, p


@compiled
def _poisson_tail(i, x, y, rho, one_minus_rho, so_far):
    """Form (a) of exp(u) T_i, P(i + 1, x) and p(i; x), by positive terms only.

    The series stops at a term below rounding of `so_far` + exp(u) T_i, where
    `so_far` is the sum to which T_i is to be added.
    """
    first = term = other = plain = _poisson(i + 1, x)
    d = one_minus_rho
    total = 0.0
    j = i + 1
    while True:
        j += 1
        inverse = _INVERSE[j] if j < _INVERSE.size else 1.0 / j
        term *= y * inverse
        other *= x * inverse
        total += term * d
        plain += other
        # For y < j the terms fall; a NaN ends the loop too.
        if not y >= j and (term == 0.0 or not term > _EPS * (total + so_far)):
            return total, plain, first * (i + 1) / x
        d = one_minus_rho + rho * d


@compiled
def _gamma_p(a, x, so_far):
    """P(a, x) for a whole number a: `_poisson_tail` with d_k = 1 and y = x."""
    return _poisson_tail(a - 2, x, x, 0.0, 1.0, so_far)[0]


@compiled
def _one_minus_cdf(i, x, rho):
    """1 - N_i where it is near 0 (small ratio), P(i + 1, x) and p(i; x).

    1 - N_i = P(i + 1, x) + sum_(j <= i) p(j; x) rho^(i + 1 - j).
    """
    weighted = power = rho
    p = decay = math.exp(-x)
    for j in range(i, 0, -1):
        power *= rho
        weighted = power + weighted * x / j
        p *= x / j
    tail = _gamma_p(i + 1, x, 0.0)
    return weighted * decay + tail, tail, p


@compiled
def without_signals(u):
    """V / limit without signals, 1 - (1 + u) exp(-u), to rounding."""
    if u > 1.0:
        return 1.0 - (1.0 + u) * math.exp(-u)
    # exp(-u) sum_(k >= 2) u^k / k!, which does not cancel; even and odd powers
    # apart, so that the processor computes both at the same time
    z = u * u
    even = _horner(_EVEN[0], z, _EVEN[1:])
    odd = _horner(_ODD[0] + z / _LAST_ODD, z, _ODD[1:])
    return z * (even + u * odd) * math.exp(-u)


# ------------------------------------------------------------- the sum over i


@compiled
def _remaining(page, u, i):
    """u - i b, also for i = 0 where b is inf."""
    return u - i * page.b if i > 0 else u


@compiled
def _first_terms(page, u, decay):
    """Number of the terms with y_i >= i + 1, and three sums over them.

    The sums of the terms, of P(i + 1, x_i) and of p(i; x_i). A term is T_i for
    u <= 1, by form (b), and 1 - N_i for u > 1, by form (c). `decay` is
    exp(-u). There are no such terms for u <= 1 and ratio < 1, where (b) would
    cancel.
    """
    early, stale = u <= 1.0, -math.expm1(-u)
    total = psi_sum = psi_slope = 0.0
    i = 0
    if early and page.ratio < 1.0:
        return i, total, psi_sum, psi_slope
    g = page.one_minus_rho  # 1 - rho q^i
    while i < page.n_terms:
        t = _remaining(page, u, i)
        x = page.ratio * t
        if not t > 0.0 or x + t < i + 1:
            break
        excess = x - i
        if not early and page.ratio < _SMALL_RATIO:
            term, tail, p = _one_minus_cdf(i, x, page.rho)
            total += term
        else:
            n_i = cdf = p = 0.0
            if not (excess > 0.0 and excess * excess > _CHERNOFF * x):
                n_i, cdf, p = _poisson_cdf(i, x, page.rho, page.one_minus_rho)
            total += (stale - g) + decay * n_i if early else 1.0 - n_i
            tail = 1.0 - cdf
        psi_sum += tail
        psi_slope += p
        g = g * (1.0 - page.one_minus_q) + page.one_minus_q
        i += 1
    return i, total, psi_sum, psi_slope


@compiled
def _last_terms(page, u, unit, sums):
    """Sum of exp(u) T_i over the terms after the first, by form (a).

    Also returns the sums of P(i + 1, x_i) and of p(i; x_i) over all terms.
    `sums` is the result of `_first_terms`, and `unit` the factor that converts
    the terms here to the scale of those: exp(-u) for u <= 1, otherwise 1. The
    sum stops at a term below rounding of it and the first terms together (for
    u <= 1, `unit` is between 1/3 and 1, which the last test leaves out).
    """
    i, total, psi_sum, psi_slope = sums
    rest = 0.0
    while i < page.n_terms:
        t = _remaining(page, u, i)
        if not t > 0.0:
            break
        x = page.ratio * t
        term, tail, p = _poisson_tail(
            i, x, x + t, page.rho, page.one_minus_rho, rest + total / unit
        )
        rest += term
        psi_sum += tail
        psi_slope += p
        if term == 0.0 or term <= _EPS * (total + rest):
            break
        i += 1
    return rest, psi_sum, psi_slope


@compiled
def sums(page, u):
    """V, its distance limit - V, and two sums for bounds, at u as it is.

    `u` is not rounded here. V is the more precise for u <= 1, the distance above
    that. The others are alpha psi = sum_i P(i + 1, x_i) / ratio and its
    derivative sum_i p(i; x_i), to a relative 1e-9.
    """
    limit = page.limit
    if not u > 0.0 or limit == 0.0:
        return 0.0, limit, 0.0, 1.0
    if u > _LARGEST_U:
        return limit, 0.0, np.nan, np.nan
    decay = math.exp(-u)
    if page.ratio == 0.0:
        return limit * without_signals(u), limit * (1.0 + u) * decay, u, 1.0
    early = u <= 1.0
    head = _first_terms(page, u, decay)
    first, total = head[:2]
    rest, psi_sum, psi_slope = _last_terms(page, u, decay if early else 1.0, head)
    if early:
        value = page.scale * (total + decay * rest)
        return value, limit - value, psi_sum / page.ratio, psi_slope
    # The distance of the first terms to their limits is exp(-u) (1 - N_i) each by
    # (c); that of all others together sum_(i >= first) rho q^i - exp(-u) rest.
    others = 0.0
    if first < page.n_terms:
        others = (
            page.rho
            * (math.exp(first * page.log_q) if first > 0 else 1.0)
            * -math.expm1((page.n_terms - first) * page.log_q)
            / page.one_minus_q
        )
    distance = page.scale * (decay * (total - rest) + others)
    return limit - distance, distance, psi_sum / page.ratio, psi_slope


@compiled
def value_and_slope(page, u):
    """V at u, which is rounded already; g, alpha psi and its derivative.

    dV/du = g alpha psi (Lemma 4) with g = `initial_curvature` x exp(-u); alpha psi
    never falls and grows no faster than u. For bounds, to a relative 1e-9.
    """
    if not u <= _LARGEST_U:
        return page.limit, 0.0, 0.0, 0.0
    v, _, psi, psi_slope = sums(page, u)
    return v, initial_curvature(page) * math.exp(-u), psi, psi_slope


@compiled
def value(page, elapsed, n_signals):
    """V in the state (elapsed, n_signals): never falls in floating point."""
    u = effective(page, elapsed, n_signals)
    if not u <= _LARGEST_U:
        return page.limit
    if page.ratio == 0.0:  # the whole of `sums` costs twice as much
        return page.limit * without_signals(rounded(u))
    return sums(page, rounded(u))[0]


# ------------------------------------------------------- the cycle of a page


@compiled
def signals_per_cycle(x, step):
    """gamma psi = sum_i P(i + 1, x - i step).

    x = gamma iota, step = gamma beta.

    It is the expected number of signals between two crawls, with the one that
    leads to a crawl. The terms fall with i, so the sum stops at one below
    rounding. For large x it is a straight line, by Wald's identity: a signal
    crosses the threshold with probability step / (1 + step), and then exceeds
    it by an amount that is uniform on (0, step).
    """
    if x > 100.0 * (1.0 + step) ** 3:
        return (x + 0.5 * step * step / (1.0 + step)) / (1.0 + step)
    total = 0.0
    i = 0
    while True:
        y = x - i * step if i > 0 else x
        if not y > 0.0:
            break
        excess = y - i
        if excess > 0.0 and excess * excess > _CHERNOFF * y:
            term = 1.0
        elif y < i + 1:
            term = _gamma_p(i + 1, y, total)
        else:
            term = 1.0 - _poisson_cdf(i, y, 0.0, 1.0)[0]
        total += term
        if term <= _EPS * total:
            break
        i += 1
    return total


@compiled
def _psi(iota, change_rate, recall, false_rate):
    """Expected time between crawls at the threshold iota, psi of Lemma 4."""
    alpha, gamma, b = _signal_model(change_rate, recall, false_rate)
    if b == 0.0 or iota == np.inf:  # signals without information move no crawl
        return iota
    step = gamma / alpha * b if alpha > 0.0 else np.inf
    return signals_per_cycle(gamma * iota, step) / gamma


@ufunc("f8(f8,f8,f8,f8,f8,f8,f8)")
def crawl_values(
    elapsed, n_signals, change_rate, importance, recall, false_rate, terms
):
    """V of Lemma 4 in the state (elapsed, n_signals), broadcast."""
    page = constants(change_rate, importance, recall, false_rate, terms)
    return value(page, elapsed, n_signals)


@ufunc("f8(f8,f8,f8,f8)")
def psis(iota, change_rate, recall, false_rate):
    """psi of Lemma 4, broadcast: expected time between crawls at iota."""
    return _psi(iota, change_rate, recall, false_rate)


@ufunc("f8(f8,f8,f8,f8)")
def ws(iota, change_rate, recall, false_rate):
    """w of Lemma 4, broadcast: expected fresh time between crawls at iota.

    As V + exp(-alpha iota) psi for importance 1: both are positive.
    """
    if change_rate == 0.0:
        return iota
    if iota == np.inf:  # without crawls, fresh until the first change
        return 1.0 / change_rate
    alpha = (1.0 - recall) * change_rate
    u = alpha * iota if alpha > 0.0 else 0.0
    gained = sums(constants(change_rate, 1.0, recall, false_rate, EXACT), u)[0]
    remains = math.exp(-alpha * iota) if alpha > 0.0 else 1.0
    return gained + remains * _psi(iota, change_rate, recall, false_rate)


# ------------------------------- states in which pages have a given value


@compiled
def _newton(page, u, early, target, at_u):
    """One step of Newton's method towards V = target, from u.

    `at_u` is the result of `sums` at u. If `early`, for a solution u <= 1, the
    step is for log V as a function of log u, otherwise for the log of the
    distance as a function of u: each is nearly a straight line.
    """
    reached, distance, psi, _ = at_u
    slope = math.exp(-u) * initial_curvature(page) * psi
    if early:
        return u * math.exp(math.log(target / reached) * reached / (u * slope))
    return u + math.log(distance / (page.limit - target)) * distance / slope


@compiled
def _state_at(page, at_one, target, u):
    """u with V = target, 0 < target < limit, from a guess u (0 for none).

    Newton's method in a bracket; it would leave the bracket where V' jumps
    (recall 1, or nearly so), and then the bracket is halved. `at_one` is V and
    its distance at u = 1. NaN when it has not converged.
    """
    early, distance = target <= at_one[0], page.limit - target
    low, high = (0.0, 1.0) if early else (1.0, _LARGEST_U)
    if not low < u < high:
        # At first V rises about as u^2, and later the distance falls as exp(-u).
        if early:
            u = math.sqrt(target / at_one[0])
        else:
            u = 1.0 + math.log(at_one[1] / distance)
        u = min(max(u, low), high)
    for _ in range(_MAX_STEPS):
        at_u = sums(page, u)
        if at_u[0] < target if early else at_u[1] > distance:
            low = u
        else:
            high = u
        new = _newton(page, u, early, target, at_u)
        step = abs(new - u)
        if step <= _SETTLED * u:
            return u
        if not low < new < high:
            new = 0.5 * (low + high)
            if high - low <= _NARROW * high:
                return new
        u = new
        if step <= _QUADRATIC * u and page.ratio < _SMOOTH_RATIO:
            return u
    return np.nan


@compiled
def values_at_one(pages):
    """V and its distance to the limit at u = 1 of each page, shape (n_pages, 2)."""
    out = np.empty((pages.size, 2))
    for i in range(pages.size):
        # To assign both at once takes 1.5 s to compile.
        out[i, 0], out[i, 1] = sums(pages[i], 1.0)[:2]
    return out


@parallel
def threshold_rates(multiplier, pages, at_one, gamma, state, rate):
    """Crawl rates 1 / psi of pages that are crawled when V is the multiplier.

    Parameters
    ----------
    multiplier : float
        The crawl value at which a page is crawled, positive.
    pages : records of dtype `CONSTANTS`, shape (n_pages,)
    at_one : result of `values_at_one`
    gamma : shape (n_pages,)
        Rate of all signals of a page.
    state : shape (n_pages,), written in place
        u = alpha iota at which V is the multiplier, inf if it never is. The
        search starts from the state of an earlier call; zeros for none.
    rate : shape (n_pages,), written in place

    Returns
    -------
    float
        Sum of the rates.
    """
    total = 0.0
    for i in prange(rate.size):
        page = pages[i]
        if page.limit > multiplier:
            u = _state_at(page, at_one[i], multiplier, state[i])
            state[i] = u
            if page.ratio == 0.0:
                rate[i] = page.alpha / u
            else:
                rate[i] = gamma[i] / signals_per_cycle(
                    page.ratio * u, page.ratio * page.b
                )
        else:
            state[i] = np.inf
            rate[i] = 0.0
        total += rate[i]
    return total
