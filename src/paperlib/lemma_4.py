r"""Lemma 4 of Busa-Fekete et al. (2025), compiled: one page, no checks.

`lemma_4` gives V / mu, psi and w, of which `paperlib.freshness` has the formulas, and
`lemma_4_rates` its arguments; `saturation` has the effective times between which V
changes, and `threshold` inverts V. The tools of a greedy crawler are four functions:
`evaluate` computes a *state* of a page, and `upper`, `lower` and `reach` bound V by it.

A state is the value V at some effective time iota, its slope, and two numbers, curve
and decay, such that V a further effective time d later is within

    V + slope d (1 - decay d) <= V(iota + d) <= V + slope d + curve d^2 / 2,

or earlier for d < 0 (then the left side holds for decay d >= -1). By Lemma 4 the slope
of V is mu alpha exp(-alpha iota) psi(iota), where psi never falls and grows no faster
than iota. So the bounds hold for

    curve = mu alpha exp(-alpha iota),    decay = alpha.

The state holds after later crawls too, because V depends on iota alone.
"""

import math

import numpy as np
from numba import njit
from scipy.special import gammainccinv, gammaincinv

compiled = njit(cache=True, error_model="numpy")

# Limits of alpha iota, the cumulative hazard of a copy. Recall 1 and no signal mean no
# hazard, which is below FRESH. From STALE on the value is at its limit to rounding.
FRESH, STALE = 1e-50, 45.0
# Finite substitutes: alpha = LEAST_ALPHA change_rate at recall 1, and log(gamma / nu) =
# MOST_EVIDENCE without false signals, so that effective times are finite.
LEAST_ALPHA, MOST_EVIDENCE = 1e-100, 1e100
SMALL = 1e-14  # sums end at a term below this share
# A Poisson number of mean x exceeds i, to rounding, if (x - i)^2 > 75 x (Chernoff),
# and so it does for x > i + 75 + sqrt(75 i).
CHERNOFF = 75.0
# Wald's identity is exact to rounding after so many signals, times step (1 + step), and
# does not cancel in V where alpha iota is above FAR. After MOST_SIGNALS it is used in
# any case: its relative error is less than their inverse.
MANY, FAR, MOST_SIGNALS = 8.0, 0.1, 1e5
# Error of V / mu at which the search of a threshold ends, relative to V / mu and slope.
VALUE_ERROR = 1e-13
# Newton's method needs some ten steps. Where it does not, bisection of the exponents of
# floating-point numbers ends within 80 more.
NEWTON_STEPS, MOST_STEPS = 50, 130
LEAST_LEFT = 0.1  # a step leaves at least this share of iota, of exp(-alpha iota)
TINY = 1e-300  # a time that is shorter than any
# Upper bounds are larger by some roundings, so that they hide no tie.
ABOVE = 1 + 1e-14


def lemma_4_rates(pages, terms=np.inf):
    """alpha, gamma and beta for `lemma_4`: all finite, gamma = 0 without signals.

    Signals of recall 0 say nothing and count as none; but the first terms of the
    sums are continued by their limit for recall -> 0, a different number.
    """
    signalled = pages.recall * pages.change_rate
    alpha = np.maximum(pages.alpha, LEAST_ALPHA * pages.change_rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.minimum(np.log1p(signalled / pages.false_rate), MOST_EVIDENCE)
        beta = np.where(signalled > 0, evidence / alpha, 0.0)
    return alpha, pages.gamma * ((beta > 0) | (terms < np.inf)), beta


def saturation(alpha):
    """Effective times up to which V is 0, and from which it is at its limit."""
    with np.errstate(divide="ignore", over="ignore"):  # a page that never changes
        return FRESH / alpha, STALE / alpha


@compiled
def _above(i, x, weight, share):
    """Weighted probability that a Poisson number of mean x exceeds i.

    The weight is 1 - (1 - share)^k at i + 1 + k, if it begins at 0.
    """
    # of i; log 0 is avoided
    p = math.exp(i * math.log(x + 1e-300) - x - math.lgamma(i + 1.0))
    total = 0.0
    while True:
        i += 1
        p *= x / i
        total += p * weight
        weight += share * (1.0 - weight)
        if not p > SMALL * total:
            return total


@compiled
def residual(i, x):
    """R^i: probability that a Poisson number of mean x exceeds i."""
    if x > i + CHERNOFF + math.sqrt(CHERNOFF * i):
        return 1.0
    if i < x and i < 16:  # the sum up to i is shorter, and exp(-x) not too small
        p, total = math.exp(-x), -math.expm1(-x)
        for k in range(i):
            p *= x / (k + 1)
            total -= p
        return total
    return _above(i, x, 1.0, 0.0)


@compiled
def lemma_4(iota, change_rate, false_rate, alpha, gamma, beta, terms):
    """V / mu, psi and w at iota, from the first `terms` terms of the sums."""
    x = alpha * iota
    if alpha == 0.0:  # never stale
        return 0.0, iota, iota
    if gamma == 0.0:  # section 5.1
        return residual(1, x) / alpha, iota, residual(0, x) / alpha
    fresh, both, step = math.exp(-x), alpha + gamma, gamma * beta
    value = psi = 0.0
    least = min(MANY * step * (1 + step), MOST_SIGNALS) if x > FAR else MOST_SIGNALS
    if terms == math.inf and gamma * iota > (1 + step) * least:
        # Wald: one of many signals crosses the threshold with the probability
        # step / (1 + step), by a time uniform on (0, beta).
        psi = (iota + 0.5 * beta * step / (1 + step)) / (1 + step)
        w = 1 / change_rate - fresh / (alpha * (1 + step))
        return w - (fresh * psi if fresh > 0.0 else 0.0), psi, w
    share, i = 1.0, 0
    while i < terms and iota > i * beta:
        t = iota - i * beta
        r = residual(i, gamma * t)
        if both * t > i + 1:
            more = share * residual(i, both * t) / both - fresh * r / gamma
        else:  # the same, without cancellation
            more = share / both * _above(i, both * t, 0.0, alpha / both)
        psi += r / gamma
        value += more
        if r < SMALL * gamma * psi and abs(more) < SMALL * value:
            break
        share *= false_rate / both
        i += 1
    w = value + fresh * psi
    return value if x > FRESH else 0.0, psi, w


# ---- the value inverted

# Without signals V reaches the share y = 1 - (1 + x) exp(-x) of its limit at iota =
# x / change_rate. With u = sqrt(-2 log(1 - y)), which is at most 8.6 in floating point,
# x / u is a smooth function of u: a table of polynomials on equal pieces, which takes a
# third to a tenth of the time of three steps of Halley's method (measured). The
# relative error is below 1e-14.
LONGEST, PIECES, DEGREE = 8.6, 128, 8


def _inverse_table():
    """Coefficients of x / u on each piece, scaled to [-1, 1], highest power first."""
    node = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))  # Chebyshev's
    place = np.arange(PIECES)[:, np.newaxis] + 0.5 + 0.5 * node
    u = place * LONGEST / PIECES
    hazard = u**2 / 2
    few = gammaincinv(2, -np.expm1(-hazard))
    many = gammainccinv(2, np.exp(-hazard))
    ratio = np.where(hazard < 1, few, many) / u
    return np.linalg.solve(np.vander(node), ratio[..., np.newaxis])[..., 0]


INVERSE = _inverse_table()


@compiled
def inverse_value(y):
    """The x at which 1 - (1 + x) exp(-x) is y, for 0 <= y < 1."""
    u = math.sqrt(-2.0 * math.log1p(-y))
    place = u * PIECES / LONGEST
    piece = min(int(place), PIECES - 1)
    t = 2.0 * (place - piece) - 1.0
    ratio = INVERSE[piece, 0]
    for k in range(1, DEGREE + 1):
        ratio = ratio * t + INVERSE[piece, k]
    return u * ratio


@compiled
def threshold(share, change_rate, false_rate, alpha, gamma, beta):
    """Effective time at which V reaches a share of its limit, and psi there.

    By Newton's method from the time without signals. V is a convex function of
    exp(-alpha iota), so that it converges from anywhere, but it may take long: then
    the exponents of the bracket are bisected. inf for shares of 1 and more.
    """
    if not share < 1.0:
        return np.inf, np.inf
    goal = share / change_rate
    iota = inverse_value(share) / change_rate
    low = TINY
    high = np.inf
    for k in range(MOST_STEPS):
        rates = change_rate, false_rate, alpha, gamma, beta
        value, psi, _ = lemma_4(iota, *rates, math.inf)
        slope = psi * math.exp(-alpha * iota)
        rest = goal - value
        if abs(rest) <= VALUE_ERROR * (goal + slope):
            break
        if rest > 0.0:
            low = iota
        else:
            high = iota
        step = math.log1p(-min(rest / slope, 1 - LEAST_LEFT)) / alpha
        iota = max(iota - step, LEAST_LEFT * iota)
        if k > NEWTON_STEPS and high < np.inf:
            iota = math.sqrt(low) * math.sqrt(high)
    return iota, psi


# ---- bounds of the value from a state


@compiled
def evaluate(page, iota, terms):
    """Value, slope, curve and decay at an effective time."""
    if iota >= page.stale:
        return page.limit, 0.0, 0.0, page.alpha
    value, psi, _ = lemma_4(
        iota,
        page.change_rate,
        page.false_rate,
        page.alpha,
        page.gamma,
        page.beta,
        terms,
    )
    curve = page.importance * page.alpha * math.exp(-page.alpha * iota)
    return min(page.importance * value, page.limit), curve * psi, curve, page.alpha


@compiled
def upper(state, d):
    """Upper bound of the value an effective time d later than a state."""
    bound = state.value + d * (state.slope + 0.5 * d * state.curve)
    if d != 0.0:
        bound *= ABOVE
    return min(bound, state.limit)


@compiled
def lower(state, d):
    """Lower bound of the value an effective time d later than a state."""
    if state.decay * d < -1.0:
        return 0.0
    rise = d * state.slope * (1.0 - state.decay * d)
    if d > 0.0:
        rise = max(rise, 0.0)  # the value never falls
    return state.value + rise


@compiled
def reach(state, goal):
    """Effective time d at which the upper bound is at a goal; NaN if it never is."""
    rise = goal - state.value
    root = state.slope**2 + 2.0 * state.curve * rise
    if not root > 0.0:
        return np.nan
    return 2.0 * rise / (state.slope + math.sqrt(root))
