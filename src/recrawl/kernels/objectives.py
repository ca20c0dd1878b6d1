r"""Crawl values of the objectives, their inverses, and mean costs of one page.

In x = change_rate elapsed the crawl values of freshness, age and harmonic cost are
scales times three profiles, which begin with x^2 / 2, x^3 / 3 and x^2 / 2:

    gamma2(x) = 1 - (1 + x) exp(-x)
    excess2(x) = x^2 / 2 - 1 + (1 + x) exp(-x)
    excess(x) = x - 1 + exp(-x)

and integral(x) = x^2 / 2 - x + 1 - exp(-x), the integral of excess, is the cost of
age over an interval. As they stand they cancel for small x. exp(x) times each is a
power series with positive coefficients only, which is used up to x = 1:

    exp(x) gamma2(x) = sum_(k >= 2) x^k / k!
    exp(x) excess2(x) = sum_(k >= 3) x^k (k (k - 1) / 2 - 1) / k!
    exp(x) excess(x) = sum_(k >= 2) x^k (k - 1) / k!
    exp(x) integral(x) = sum_(k >= 3) x^k (k - 1) (k - 2) / 2 / k!

An objective is its number here. The kernels check nothing.
"""

import math

import numpy as np

from paperlib.lemma_4 import inverse_value
from recrawl.kernels import compiled, ufunc

FRESHNESS, AGE, HARMONIC = range(3)

# The last term, of x^19, is below 1e-16 of the sum for x <= 1.
_TERMS = range(19, 1, -1)  # the highest power first, for Horner's rule
_GAMMA2 = tuple(1 / math.factorial(k) for k in _TERMS)
_EXCESS2 = tuple((k * (k - 1) / 2 - 1) / math.factorial(k) for k in _TERMS)
_EXCESS = tuple((k - 1) / math.factorial(k) for k in _TERMS)
_INTEGRAL = tuple((k - 1) * (k - 2) / 2 / math.factorial(k) for k in _TERMS)
# For larger x the copy is stale up to rounding, and x exp(-x) is not needed.
_CERTAIN = 45.0


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
def _excess(x):
    return _series(x, _EXCESS) if x < 1.0 else x - 1.0 + math.exp(-x)


@compiled
def _integral(x):
    return _series(x, _INTEGRAL) if x < 1.0 else x * (0.5 * x - 1.0) - math.expm1(-x)


@compiled
def profile(objective, x):
    """The crawl value at x = change_rate elapsed, in units of `scale`."""
    if objective == HARMONIC:
        return _excess(x)
    if objective == AGE:
        if x < 1.0:
            return _series(x, _EXCESS2)
        stale = x > _CERTAIN
        return 0.5 * x * x - 1.0 + (0.0 if stale else (1.0 + x) * math.exp(-x))
    if x < 1.0:
        return _series(x, _GAMMA2)
    return 1.0 - (1.0 + x) * math.exp(-x) if x < _CERTAIN else 1.0


@compiled
def inverse_profile(objective, y):
    """The x at which the profile reaches y; inf if it never does.

    For age and harmonic cost, two steps of Halley's method, which cubes the error,
    from a start that is right to 2e-3: a polynomial in the root with which the
    profile begins, or its form far out.
    """
    if not 0.0 < y < np.inf:
        return y
    if objective == FRESHNESS:
        return inverse_value(y) if y < 1.0 else np.inf
    if objective == AGE:
        s = np.cbrt(3.0 * y)
        near = s * (1.0 + s * (0.1276 + 0.0119 * s))
        x = near if s < 3.0 else math.sqrt(2.0 + 2.0 * y)
    else:
        s = math.sqrt(2.0 * y)
        near = s * (1.0 + s * (0.16 + 0.0387 * s))
        x = near if s < 2.5 else 1.0 + y - math.exp(-1.0 - y)
    for _ in range(2):
        off = profile(objective, x) - y
        slope = x - _excess(x) if x < _CERTAIN else 1.0  # 1 - exp(-x)
        curve = 1.0 - slope
        if objective == AGE:
            slope, curve = x * slope, slope + x * curve
        newton = off / slope
        x -= newton / (1.0 - 0.5 * newton * curve / slope)
    return x


@compiled
def scale(objective, change_rate):
    """The unit of the crawl value of a page of importance 1."""
    return 1.0 / change_rate / (change_rate if objective == AGE else 1.0)


@ufunc("f8(i8,f8,f8)")
def gains(objective, change_rate, crawl_rate):
    """What one more crawl per unit of time saves: V(1 / crawl_rate)."""
    if change_rate == 0.0:
        return 0.0
    x = change_rate / crawl_rate
    return scale(objective, change_rate) * profile(objective, x)


@ufunc("f8(i8,f8,f8,f8,f8,f8)")
def rates(objective, change_rate, value, low, high, v):
    """The crawl rate, within its limits, at which value x gain = 1 / v^2."""
    if change_rate == 0.0 or value == 0.0 or v == 0.0:
        return low
    level = 1.0 / v / v / value / scale(objective, change_rate)
    return min(max(change_rate / inverse_profile(objective, level), low), high)


@ufunc("f8(i8,f8,f8)")
def costs(objective, change_rate, crawl_rate):
    """Mean cost of freshness or age at equal intervals."""
    if change_rate == 0.0:
        return 0.0
    x = change_rate / crawl_rate
    if objective == FRESHNESS:
        return _excess(x) / x if 0.0 < x < np.inf else min(x, 1.0)
    # at most half the interval, also where the rest is beyond floating point
    return min(0.5 / crawl_rate, _integral(x) / x / change_rate) if x > 0.0 else 0.0
