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

from paperlib._kernels import compiled, ufunc
from paperlib._kernels.allocation import inverse_gamma2
from paperlib._kernels.crawl_value import without_signals as gamma2

FRESHNESS, AGE, DELAY, HARMONIC, AGE_OF_INFORMATION, DEADLINE = range(6)

# The last term, of x^19, is below 1e-16 of the sum for x <= 1.
_TERMS = range(19, 1, -1)  # the highest power first, for Horner's rule
_EXCESS = tuple((k - 1) / math.factorial(k) for k in _TERMS)
_EXCESS2 = tuple((k * (k - 1) / 2 - 1) / math.factorial(k) for k in _TERMS)
_INTEGRAL = tuple((k - 1) * (k - 2) / 2 / math.factorial(k) for k in _TERMS)
# For larger x the copy is stale up to rounding, and x exp(-x) is not needed.
_CERTAIN = 45.0
# Newton squares the error: after a step of 1e-8 it is of the order of 1e-16.
_LAST_STEP = 1e-8
_MAX_STEPS = 100


@compiled
def _series(x, coefficients):
    """exp(-x) times the sum of coefficients x^k, k from 19 down to 2."""
    total = 0.0
    for c in coefficients:
        total = total * x + c
    return total * x * x * math.exp(-x)


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

    excess is convex and at most x and x^2 / 2, so that the start is left of
    the root; the first step of Newton's method leads to its right, and the
    others come down to it.
    """
    x = max(y, math.sqrt(2.0 * y))
    for _ in range(_MAX_STEPS):
        if not 0.0 < x < np.inf:
            break
        step = (y - excess(x)) / -math.expm1(-x)
        x += step
        if abs(step) <= _LAST_STEP * x:
            break
    return x


@compiled
def inverse_excess2(y):
    """The x with excess2(x) = y >= 0; as `inverse_excess`, the slope is
    x (1 - exp(-x)), and the bounds are x^2 / 2 and x^3 / 3.
    """
    x = max(math.sqrt(2.0 * y), (3.0 * y) ** (1.0 / 3.0))
    for _ in range(_MAX_STEPS):
        if not 0.0 < x < np.inf:
            break
        step = (y - excess2(x)) / (x * -math.expm1(-x))
        x += step
        if abs(step) <= _LAST_STEP * x:
            break
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
    return scale * profile(objective, rate * elapsed) if scale > 0.0 else 0.0


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

    Newton's method for the logarithm of the left side as a function of log p.
    It falls with a slope between -2 and -3, and p is at most either bound of
    the start.
    """
    p = min(1.0 / math.sqrt(value), (2.0 * change_rate / value) ** (1.0 / 3.0))
    for _ in range(_MAX_STEPS):
        both = p + change_rate
        off = math.log(change_rate / p / p * (p / both + 1.0) / both / value)
        # the derivative of log(2 p + D) - 2 log p - 2 log(p + D) in log p
        step = off / (2.0 + 2.0 * p / both - 2.0 * p / (both + p))
        p *= math.exp(step)
        if abs(step) <= _LAST_STEP:
            break
    return p


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
