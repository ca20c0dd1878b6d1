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
"""

import math

import numpy as np

from recrawl.compiled import compiled

# Below this max(a, 1) s the series is used: its first term left out is below
# 1e-14 of W, and above it (1) and (2) lose two digits of sixteen.
_NEAR, _TERMS = 0.02, 8


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
