r"""Crawl value of a page whose change rate is known by a gamma distribution.

With shape a and rate b, the copy of the page is stale at the elapsed time t
with probability 1 - (b / (b + t))^a. The crawl value of this cost is b W(u),
u = t / b. With m = a - 1, L = log(1 + u) and s = u / (1 + u) it is one of

    W = (1 - (1 + a u) (1 + u)^-a) / m                                      (1)
      = (1 - exp(-m L)) / m - s exp(-m L)                                   (2)
      = a int_0^s r (1 - r)^(a - 2) dr                                      (3)

(1) is short; (2) has a limit at a = 1, its first term L; (3) has only one
term, and its power series in s is good to rounding where a s and s are small.
The other two cancel there, (1) also near a = 1, and (2) for small a: its two
terms are of the order of u and W of the order of a u. So (3) is used where
max(a, 1) s is small, else (1) where a and a L are below one half, else (2).

The inverse. Y = -log(1 - m W) / m = (a L - log(1 + a u)) / m, at a = 1 Y = W,
is a convex function of L, because its slope a u / (1 + a u) rises with u, from
0 to 1: it begins with a L^2 / 2 and ends as L - log(a) / m. Halley's method
for L needs two or three steps from a start that has the first two terms of L
for small Y, in r = sqrt(2 Y / a), and the limit for large Y. The residual of Y
is computed from that of W, so that both functions agree to rounding.
"""

import math

import numpy as np

from recrawl.kernels import compiled

# Below this max(a, 1) s the series is used: its first term left out is below
# 1e-14 of W, and above it (1) and (2) lose two digits of sixteen.
_NEAR, _TERMS = 0.02, 8
# Halley's method cubes the error (times 0.2): after a step of 1e-4 of L it is
# below 1e-11. The steps are limited for values that rounding keeps from their
# limit: no step is small there.
_LAST_STEP, _MAX_STEPS = 1e-4, 20
_TINY = 1e-280  # below it W is a u^2 / 2 up to rounding, and Y would underflow
_LATEST = 690.0  # of L: exp(L) is not far from the largest number


@compiled
def _near(a, s):
    """W by (3), term by term: a s^2 (1/2 + s (2 - a) / 1 (1/3 + ...))."""
    total = 1.0 / (_TERMS + 2)
    for k in range(_TERMS, 0, -1):
        total = total * s * (k + 1 - a) * (1.0 / k) + 1.0 / (k + 1)
    return a * s * s * total


@compiled
def _far(a, u, log):
    """W by (1) or (2), for log = log(1 + u)."""
    if a < 0.5 and a * log < 0.5:
        less = math.expm1(-a * log)
        return (less + a * u * (1.0 + less)) / (1.0 - a)
    m = a - 1.0
    less = math.expm1(-m * log)
    mean = -less / m if m != 0.0 else log
    return mean - (1.0 + less) * (u / (1.0 + u))


@compiled
def value(shape, rate, elapsed):
    """V(elapsed) of one page of importance 1."""
    u = elapsed / rate
    if u == np.inf:
        return rate / (shape - 1.0) if shape > 1.0 else np.inf
    s = u / (1.0 + u)
    if max(shape, 1.0) * s < _NEAR:
        return rate * _near(shape, s)
    return rate * _far(shape, u, math.log1p(u))


@compiled
def cost_slope(shape, rate, elapsed):
    """Slope of the cost at an elapsed time: a / b (1 + u)^-(a + 1)."""
    return shape / rate * math.exp(-(shape + 1.0) * math.log1p(elapsed / rate))


@compiled
def _convex(m, w):
    """-log(1 - m w) / m, Y of W; w at m = 0."""
    return -math.log1p(-m * w) / m if m != 0.0 else w


@compiled
def elapsed_at(shape, rate, value):
    """The elapsed time at which V reaches a value; inf if it never does.

    inf also if it does so after more than 1e299 rate.
    """
    a, m, w = shape, shape - 1.0, value / rate
    if w < _TINY:
        return rate * math.sqrt(2.0 * max(w, 0.0) / a)
    if w == np.inf or m * w >= 1.0:
        return np.inf
    y = _convex(m, w)
    if y > _LATEST:
        return np.inf
    # log(a) / m is 1 / the mean of a^x over (0, 1), here by Simpson's rule.
    r, mean = math.sqrt(2.0 * y / a), (1.0 + 4.0 * math.sqrt(a) + a) / 6.0
    p = 0.2 * a  # any other p keeps both limits: this one is the best in between
    log = y + r * (1.0 + p * r) / (1.0 + (p + (a + 1.0) / 6.0 + p * r * mean) * r)
    for _ in range(_MAX_STEPS):
        u = math.expm1(log)
        s, z = u / (1.0 + u), a * u
        now = _near(a, s) if max(a, 1.0) * s < _NEAR else _far(a, u, log)
        step = _convex(m, (w - now) / (1.0 - m * now)) * (1.0 + z) / z
        step /= max(0.5, 1.0 + 0.5 * step * (1.0 + u) / (u * (1.0 + z)))
        log = max(log + step, y)  # the slope of Y is at most 1
        if abs(step) <= _LAST_STEP * log:
            break
    return rate * math.expm1(log)
