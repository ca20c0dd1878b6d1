r"""Crawl values of the objectives without signals, and their inverses.

A page that costs c(t) at the elapsed time t has the crawl value

    V(t) = t c(t) - int_0^t c = int_0^t s c'(s) ds .

In x = change_rate elapsed the values of freshness, of the harmonic cost and of
age are three functions that begin with x^2 / 2, x^2 / 2 and x^3 / 3:

    gamma2(x) = 1 - (1 + x) exp(-x)
    excess(x) = x - 1 + exp(-x)
    excess2(x) = x^2 / 2 - 1 + (1 + x) exp(-x)

and integral(x) = x^2 / 2 - x + 1 - exp(-x), the integral of excess, is the
cost of age over an interval. As they stand they cancel for small x. exp(x)
times each is a power series with positive coefficients only, which is used up
to x = 1:

    exp(x) gamma2(x) = sum_(k >= 2) x^k / k!
    exp(x) excess(x) = sum_(k >= 2) x^k (k - 1) / k!
    exp(x) excess2(x) = sum_(k >= 3) x^k (k (k - 1) / 2 - 1) / k!
    exp(x) integral(x) = sum_(k >= 3) x^k (k - 1) (k - 2) / 2 / k!

The kernels take an objective as its number (`FRESHNESS`, ...) and draw no
random numbers and check nothing.
"""

import math

import numpy as np
from scipy import special

from recrawl.kernels import compiled, ufunc
from recrawl.kernels.crawl_value import without_signals as gamma2

FRESHNESS, AGE, DELAY, HARMONIC, AGE_OF_INFORMATION, DEADLINE = range(6)

# The last term, of x^19, is below 1e-16 of the sum for x <= 1.
_TERMS = range(19, 1, -1)  # the highest power first, for Horner's rule
_EXCESS = tuple((k - 1) / math.factorial(k) for k in _TERMS)
_EXCESS2 = tuple((k * (k - 1) / 2 - 1) / math.factorial(k) for k in _TERMS)
_INTEGRAL = tuple((k - 1) * (k - 2) / 2 / math.factorial(k) for k in _TERMS)
# For larger x the copy is stale up to rounding, and x exp(-x) is not needed.
_CERTAIN = 45.0

# The inverse of y = P(2, x) = 1 - (1 + x) exp(-x), as polynomials on equal
# pieces of two ranges. Below y = 0.8, x / sqrt(2 y) is smooth in sqrt(2 y), as
# y = x^2 / 2 - x^3 / 3 + ...; above, x is smooth in -log(1 - y), which is at
# most 36.8 in floating point: 37 is the end of the table. 128 pieces of degree
# 8 have a relative error below 4e-15.
_PIECES, _DEGREE = 128, 8
_FEW = 0.8
_START = -math.log1p(-_FEW)
# pieces to one unit of sqrt(2 y), and of -log(1 - y) beyond _START
_DENSITY = _PIECES / np.array([math.sqrt(2.0 * _FEW), 37.0 - _START])


def _gamma2_pieces():
    """Coefficients of both ranges, shape (2, _PIECES, _DEGREE + 1).

    Through the values at the Chebyshev nodes of each piece, scaled to [-1, 1];
    the highest power comes first.
    """
    node = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    place = np.arange(_PIECES)[:, np.newaxis] + 0.5 + 0.5 * node
    low, high = place / _DENSITY[:, np.newaxis, np.newaxis]
    value = np.stack(
        [
            special.gammaincinv(2, 0.5 * low**2) / low,
            special.gammainccinv(2, np.exp(-_START - high)),
        ]
    )
    return np.linalg.solve(np.vander(node), value[..., np.newaxis])[..., 0]


_GAMMA2 = _gamma2_pieces()


@compiled
def inverse_gamma2(y):
    """The x with 1 - (1 + x) exp(-x) = y, for 0 <= y < 1."""
    few = y < _FEW
    scale = math.sqrt(2.0 * y) if few else 1.0
    half = 0 if few else 1
    place = (scale if few else -math.log1p(-y) - _START) * _DENSITY[half]
    piece = min(int(place), _PIECES - 1)
    u = 2.0 * (place - piece) - 1.0
    x = _GAMMA2[half, piece, 0]
    for k in range(1, _DEGREE + 1):
        x = x * u + _GAMMA2[half, piece, k]
    return scale * x


@compiled
def _series(x, coefficients):
    """exp(-x) times the sum of coefficients x^k, k from 19 down to 2.

    Odd and even powers apart: the processor computes both at the same time.
    """
    odd = even = 0.0
    z = x * x
    for k in range(0, len(coefficients), 2):
        odd = odd * z + coefficients[k]
        even = even * z + coefficients[k + 1]
    return (odd * x + even) * z * math.exp(-x)


@compiled
def excess(x):
    """x - 1 + exp(-x), to rounding."""
    return _series(x, _EXCESS) if x < 1.0 else x - 1.0 + math.exp(-x)


@compiled
def excess2(x):
    """x^2 / 2 - 1 + (1 + x) exp(-x), to rounding."""
    if x < 1.0:
        return _series(x, _EXCESS2)
    return 0.5 * x * x - (gamma2(x) if x < _CERTAIN else 1.0)


@ufunc("f8(f8)")
def excesses(x):
    """`excess`, broadcast."""
    return excess(x)


@ufunc("f8(f8)")
def integrals(x):
    """x^2 / 2 - x + 1 - exp(-x), to rounding."""
    return _series(x, _INTEGRAL) if x < 1.0 else x * (0.5 * x - 1.0) - math.expm1(-x)


@compiled
def inverse_excess(y):
    """The x with excess(x) = y >= 0.

    Two steps of Halley's method, which cubes the error, from a start that is
    right to 2e-3: a polynomial in sqrt(2 y), as excess begins with x^2 / 2, or
    one step of x = 1 + y - exp(-x).
    """
    if not 0.0 < y < np.inf:
        return y
    s = math.sqrt(2.0 * y)
    near = s * (1.0 + s * (0.16 + 0.0387 * s))
    x = near if s < 2.5 else 1.0 + y - math.exp(-1.0 - y)
    for _ in range(2):
        here = excess(x)
        off, slope = here - y, x - here if x < _CERTAIN else 1.0  # 1 - exp(-x)
        newton = off / slope
        x -= newton / (1.0 - 0.5 * newton * (1.0 - slope) / slope)
    return x


@compiled
def inverse_excess2(y):
    """The x with excess2(x) = y >= 0; as `inverse_excess`.

    The polynomial is in (3 y)^(1/3), and far out excess2 is x^2 / 2 - 1.
    """
    if not 0.0 < y < np.inf:
        return y
    s = np.cbrt(3.0 * y)
    near = s * (1.0 + s * (0.1276 + 0.0119 * s))
    x = near if s < 3.0 else math.sqrt(2.0 + 2.0 * y)
    for _ in range(2):
        off = excess2(x) - y
        slope = x * (x - excess(x) if x < _CERTAIN else 1.0)
        curve = slope / x + x - slope
        newton = off / slope
        x -= newton / (1.0 - 0.5 * newton * curve / slope)
    return x


@compiled
def scale_and_rate(objective, importance, change_rate, deadline):
    """The factors of V(t) = scale profile(rate t); 0 where nothing is gained."""
    if objective == AGE_OF_INFORMATION:
        return 0.5 * importance, 1.0
    if change_rate == 0.0 or importance == 0.0:
        return 0.0, 0.0
    if objective == DELAY:
        return 0.5 * importance * change_rate, 1.0
    if objective == DEADLINE:
        return importance * change_rate * deadline, 1.0 / deadline
    if objective == AGE:
        return importance / change_rate / change_rate, change_rate
    return importance / change_rate, change_rate


@compiled
def profile(objective, x):
    """V / scale at x = rate t."""
    if objective == FRESHNESS:
        return gamma2(x) if x < _CERTAIN else 1.0
    if objective == AGE:
        return excess2(x)
    if objective == HARMONIC:
        return excess(x)
    if objective == DEADLINE:
        return 1.0 if x > 1.0 else 0.0
    return x * x


@compiled
def profile_slope(objective, x):
    """Slope of the profile in x^2, for age in x^3; inf for a deadline."""
    if objective == FRESHNESS:
        return 0.5 * math.exp(-x)
    if objective == AGE:
        return math.expm1(-x) / (-3.0 * x)
    if objective == HARMONIC:
        return math.expm1(-x) / (-2.0 * x)
    return np.inf if objective == DEADLINE else 1.0


@compiled
def inverse_profile(objective, y):
    """The first x at which the profile reaches y; inf if it never does."""
    if y <= 0.0:
        return 0.0
    if objective == FRESHNESS:
        return inverse_gamma2(y) if y < 1.0 else np.inf
    if objective == AGE:
        return inverse_excess2(y)
    if objective == HARMONIC:
        return inverse_excess(y)
    if objective == DEADLINE:
        return 1.0 if y <= 1.0 else np.inf
    return math.sqrt(y)


@compiled
def value(objective, change_rate, deadline, elapsed):
    """V(elapsed) of one page of importance 1."""
    scale, rate = scale_and_rate(objective, 1.0, change_rate, deadline)
    share = profile(objective, rate * elapsed)
    return scale * share if scale > 0.0 and share > 0.0 else 0.0


@compiled
def elapsed_at(objective, change_rate, deadline, value):
    """The elapsed time at which V reaches a value; inf if it never does."""
    if value <= 0.0:
        return 0.0
    scale, rate = scale_and_rate(objective, 1.0, change_rate, deadline)
    return inverse_profile(objective, value / scale) / rate if scale > 0.0 else np.inf


@compiled
def poisson_value(objective, change_rate, deadline, crawl_rate):
    """E V(A) for A ~ Exp(crawl_rate): minus the slope of the mean cost."""
    p, both = crawl_rate, crawl_rate + change_rate
    if objective == AGE_OF_INFORMATION:
        return 1.0 / p / p
    if change_rate == 0.0:
        return 0.0
    if objective == FRESHNESS:
        return change_rate / both / both
    if objective == AGE:
        return change_rate / p / p * (p / both + 1.0) / both
    if objective == DELAY:
        return change_rate / p / p
    if objective == HARMONIC:
        return change_rate / p / both
    return change_rate * deadline * math.exp(-p * deadline)


@compiled
def _poisson_age(change_rate, value):
    """The p with 1 / p^2 - 1 / (p + change_rate)^2 = value.

    With q = p / change_rate, w = q (q + 1) and y = change_rate^2 value it is
    y w^2 = sqrt(4 w + 1), or y^2 w^4 = 4 w + 1. Both terms on the right bound
    w from below; the larger bound is at most a fifth below w, and three steps
    of Halley's method, which cubes the error, lead from there to rounding.
    """
    y = change_rate * change_rate * value
    root = np.cbrt(2.0 / y)
    bound = max(1.0 / math.sqrt(y), root * root)
    least = y * bound * bound
    constant = 1.0 / least / least
    linear = 4.0 * bound * constant
    r = 1.0  # w / bound, a root of r^4 = linear r + constant
    for _ in range(3):
        cube = r * r * r
        off, slope = r * (cube - linear) - constant, 4.0 * cube - linear
        newton = off / slope
        r -= newton / (1.0 - 6.0 * newton * r * r / slope)
    w = bound * r
    return 2.0 * w / (1.0 + math.sqrt(1.0 + 4.0 * w)) * change_rate


@compiled
def poisson_rate(objective, change_rate, deadline, value):
    """The crawl rate at which `poisson_value` is a value > 0, or 0."""
    if objective == AGE_OF_INFORMATION:
        return 1.0 / math.sqrt(value)
    if change_rate == 0.0:
        return 0.0
    if objective == FRESHNESS:
        return max(math.sqrt(change_rate / value) - change_rate, 0.0)
    if objective == AGE:
        return _poisson_age(change_rate, value)
    if objective == DELAY:
        return math.sqrt(change_rate / value)
    if objective == HARMONIC:
        return 2.0 / (value + math.sqrt(value) * math.sqrt(value + 4.0 / change_rate))
    y = change_rate * deadline / value
    return math.log(y) / deadline if y > 1.0 else 0.0


@ufunc("f8(i8,f8,f8,f8)")
def values(objective, change_rate, deadline, elapsed):
    """`value`, broadcast."""
    return value(objective, change_rate, deadline, elapsed)


@ufunc("f8(i8,f8,f8,f8)")
def elapsed_times(objective, change_rate, deadline, value):
    """`elapsed_at`, broadcast."""
    return elapsed_at(objective, change_rate, deadline, value)


@ufunc("f8(i8,f8,f8,f8)")
def poisson_values(objective, change_rate, deadline, crawl_rate):
    """`poisson_value`, broadcast."""
    return poisson_value(objective, change_rate, deadline, crawl_rate)
