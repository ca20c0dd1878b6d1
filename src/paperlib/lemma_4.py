r"""Lemma 4 of Busa-Fekete et al. (2025), compiled: one page, no checks.

`lemma_4` computes V / mu, psi and w (formulas: `paperlib.freshness`), and
`lemma_4_rates` its arguments. `saturation` is the range of effective times in which V
changes, and `threshold` inverts V. A greedy crawler uses four functions: `evaluate`
computes a *state* of a page, and `upper`, `lower` and `reach` bound V by this state.

A state is the value V at an effective time iota, its slope, and two numbers, curve and
decay. They bound V at the effective time iota + d, where d may be negative:

    V + slope d (1 - decay d) <= V(iota + d) <= V + slope d + curve d^2 / 2.

The lower bound holds if decay d >= -1. By Lemma 4 the slope of V is
mu alpha exp(-alpha iota) psi(iota), and psi never falls and grows no faster than iota.
Both bounds therefore hold for

    curve = mu alpha exp(-alpha iota),    decay = alpha.

A state remains valid after later crawls, because V depends on iota alone.
"""

import math

import numpy as np
from numba import njit
from scipy.special import gammainccinv, gammaincinv

compiled = njit(cache=True, error_model="numpy", nogil=True)

# Limits of alpha iota, the cumulative hazard of a copy. A hazard below FRESH counts as
# 0, as at recall 1 without a signal. From STALE on, V is at its limit, to rounding.
FRESH, STALE = 1e-50, 45.0
# Finite substitutes: alpha = LEAST_ALPHA change_rate at recall 1, and log(gamma / nu) =
# MOST_EVIDENCE without false signals, so that effective times are finite.
LEAST_ALPHA, MOST_EVIDENCE = 1e-100, 1e100
SMALL = 1e-14  # sums end at a term below this share of the sum
# A Poisson number of mean x exceeds i, to rounding, if (x - i)^2 > 75 x (Chernoff).
# This holds if x > i + 75 + sqrt(75 i).
CHERNOFF = 75.0
# Wald's identity is exact to rounding after MANY step (1 + step) signals, and V does
# not cancel if alpha iota > FAR. After MOST_SIGNALS signals the identity is always
# used: its relative error is then below 1 / MOST_SIGNALS.
MANY, FAR, MOST_SIGNALS = 8.0, 0.1, 1e5
# The search for a threshold ends at this error of V / mu, relative to V / mu + slope.
VALUE_ERROR = 1e-13
# Newton's method usually needs some ten steps, and at most 50 for rates within four
# decades either way. After MOST_STEPS, V itself is rounding (measured).
MOST_STEPS = 100
LEAST_LEFT = 0.1  # a step leaves at least this share of iota and of exp(-alpha iota)
# Factor on upper bounds: some roundings, so that rounding hides no tie.
ABOVE = 1 + 1e-14


def lemma_4_rates(pages, terms=np.inf):
    """alpha, gamma and beta for `lemma_4`: all finite, gamma = 0 without signals.

    Signals at recall 0 carry no information and are left out. With a limited number
    of terms they stay, because the sums then have another limit for recall -> 0.
    """
    signalled = pages.recall * pages.change_rate
    alpha = np.maximum(pages.alpha, LEAST_ALPHA * pages.change_rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.minimum(np.log1p(signalled / pages.false_rate), MOST_EVIDENCE)
        beta = np.where(signalled > 0, evidence / alpha, 0.0)
    return alpha, pages.gamma * ((beta > 0) | (terms < np.inf)), beta


def saturation(alpha):
    """Effective times up to which V is 0 and from which V is at its limit."""
    with np.errstate(divide="ignore", over="ignore"):  # a page that never changes
        return FRESH / alpha, STALE / alpha


@compiled
def _above(i, x, weight, share):
    """Weighted probability that a Poisson number of mean x exceeds i.

    With weight = 0, the term i + 1 + k has weight 1 - (1 - share)^k.
    """
    # probability of i; 1e-300 avoids log 0
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
    if i < x and i < 16:  # the sum up to i is shorter, and exp(-x) is not tiny
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
        # Wald: after many signals, a signal crosses the threshold with probability
        # step / (1 + step), and the overshoot is uniform on (0, beta).
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


# ---- inverse of the value

# Without signals V reaches the share y = 1 - (1 + x) exp(-x) of its limit at iota =
# x / change_rate. With u = sqrt(-2 log(1 - y)), at most 8.6 in floating point, x / u is
# a smooth function of u, tabulated as polynomials on equal pieces. The table takes a
# third to a tenth of the time of three steps of Halley's method (measured), and its
# relative error is below 1e-14.
LONGEST, PIECES, DEGREE = 8.6, 128, 8


def _inverse_table():
    """Coefficients of x / u, highest power first; each piece is scaled to [-1, 1]."""
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

    Newton's method starts at the threshold without signals. V is a convex function of
    exp(-alpha iota), so that the method converges from any start. The result is inf for
    shares of 1 and more.
    """
    if not share < 1.0:
        return np.inf, np.inf
    goal = share / change_rate
    iota = inverse_value(share) / change_rate
    for _ in range(MOST_STEPS):
        value, psi, _ = lemma_4(
            iota, change_rate, false_rate, alpha, gamma, beta, math.inf
        )
        slope = psi * math.exp(-alpha * iota)
        rest = goal - value
        if abs(rest) <= VALUE_ERROR * (goal + slope):
            break
        step = math.log1p(-min(rest / slope, 1 - LEAST_LEFT)) / alpha
        iota = max(iota - step, LEAST_LEFT * iota)
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
    """Upper bound of the value at an effective time d after a state."""
    bound = state.value + d * (state.slope + 0.5 * d * state.curve)
    if d != 0.0:
        bound *= ABOVE
    return min(bound, state.limit)


@compiled
def lower(state, d):
    """Lower bound of the value at an effective time d after a state."""
    if state.decay * d < -1.0:
        return 0.0
    rise = d * state.slope * (1.0 - state.decay * d)
    if d > 0.0:
        rise = max(rise, 0.0)  # the value never falls
    return state.value + rise


@compiled
def reach(state, goal):
    """Effective time d at which the upper bound meets a goal; NaN if it never does."""
    rise = goal - state.value
    root = state.slope**2 + 2.0 * state.curve * rise
    if not root > 0.0:
        return np.nan
    return 2.0 * rise / (state.slope + math.sqrt(root))
