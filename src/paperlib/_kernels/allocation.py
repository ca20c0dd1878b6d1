r"""Crawl rates that spend a bandwidth: one unknown, many pages.

Every optimum of `paperlib.allocation` has one multiplier for all pages. Given
the multiplier, each crawl rate is known by itself, so that the kernels look
for the number at which the crawl rates sum to the bandwidth; one pass over all
pages, in parallel, gives the sum. No pages are sorted.

* **Poisson crawls** (`poisson_rates`). With r = sqrt(importance change_rate)
  and c = 1 / sqrt(multiplier) the rate is max(min_rate, c r - change_rate).
  The sum is convex and piecewise linear in c, and Newton's method on it is an
  active-set method: each step solves the problem exactly for the pages that
  are above their minimum at present. Two phases: Newton in c, and, where
  bandwidth is scarce, Newton in the distance of c above the least threshold.
* **Hosts** (`host_rates`). The same, once for each host; the hosts in
  parallel, the pages of one host in one thread.
* **Equal intervals** (`interval_rates`). Given the multiplier, x = change_rate
  / crawl_rate is the inverse of the incomplete gamma function P(2, x), which
  is tabulated as piecewise polynomials; `paperlib.allocation` looks for the
  multiplier.
* **Harmonic cost** (`harmonic_rates`). The rate is the positive root of a
  quadratic equation; the sum is concave in v = 1 / multiplier, and Newton's
  method rises to the root from the left.

Each proof that a search converges stands beside its code. The kernels draw no
random numbers and check no arguments; they write the rates in place.
`poisson_rates` and `harmonic_rates` return 0 where no page gains by crawls,
and NaN where they did not converge.

The helpers with inline="always" become part of the kernel that calls them:
their prange loops are parallel in a parallel kernel and plain loops otherwise.
`stride` is 1 where `min_rate` has an entry for each page, and 0 where its one
entry is for all pages.
"""

import math

import numpy as np
from numba import njit, prange
from scipy import special

from paperlib._kernels import compiled, parallel

# Newton's method needs some ten steps; a search that needs more than this has
# met numbers that are not finite.
_MAX_STEPS = 200

# The distance c - least is a difference of nearly equal numbers. Where it is
# 1e-2 of c two decimal digits cancel, and a relative error of 1e-14 remains:
# good enough as it is. At 1e-6 six digits cancel: good enough as a start, from
# which one step of Newton's method restores them.
_TWO_DIGITS, _SIX_DIGITS = 1e-2, 1e-6

# A step of Newton's method in c of less than about ten rounding errors of c is
# rounding itself. The distance above the least threshold has converged after a
# relative step of 1e-13: rounding of sums over millions of pages is below it.
_ROUNDING, _SETTLED = 1e-15, 1e-13


@njit(inline="always")
def _square_roots(change_rate, importance, root):
    """Write sqrt(importance change_rate); sums, and the least threshold.

    Returns the sum of the roots, the sum of the change rates of the pages that
    gain by crawls (root > 0), and the least change_rate / root of these: for c
    below this, no page gets more than its minimum rate.
    """
    roots = changes = 0.0
    least = np.inf
    for i in prange(root.size):
        r = math.sqrt(importance[i] * change_rate[i])
        root[i] = r
        roots += r
        changes += change_rate[i] if r > 0.0 else 0.0
        least = min(least, change_rate[i] / r if r > 0.0 else np.inf)
    return roots, changes, least


@njit(inline="always")
def _newton(change_rate, root, bandwidth, min_rate, stride, c):
    """The c at which the rates sum to `bandwidth`.

    The rates are max(min_rate, c root - change_rate). `c` is a start at or
    right of the solution; a page is active where its rate is above its
    minimum. The tangent of a convex function lies below it, so that the root
    of the tangent is not left of the solution: c falls from step to step and
    never passes the solution. As c falls pages only leave the active set, each
    at most once; once none leaves, the tangent is the function itself and c is
    exact.
    """
    for _ in range(_MAX_STEPS):
        active = rest = 0.0
        for i in prange(root.size):
            if c * root[i] > change_rate[i] + min_rate[i * stride]:
                active += root[i]
                rest += change_rate[i]
            else:
                rest += -min_rate[i * stride]
        new = (bandwidth + rest) / active if active > 0.0 else c
        if not new < c * (1.0 - _ROUNDING):
            break
        c = new
    return c


@compiled
def _rate_above(root, change_rate, least, above):
    """(least + above) root - change_rate without the cancellation.

    0 for a page that gains nothing by crawls.
    """
    return root * (above - (change_rate / root - least)) if root > 0.0 else 0.0


@njit(inline="always")
def _newton_above(change_rate, root, bandwidth, min_rate, stride, least, above):
    """The solution of `_newton`, as its distance above the least threshold.

    The same steps in the unknown above = c - least. A start that rounding has
    put left of the solution does no harm: the first step from there leads to
    its right. Returns NaN where the steps did not converge.
    """
    for _ in range(_MAX_STEPS):
        active = rest = 0.0
        for i in prange(root.size):
            gain = _rate_above(root[i], change_rate[i], least, above)
            if gain > min_rate[i * stride]:
                active += root[i]
                rest += root[i] * above - gain
            else:
                rest += -min_rate[i * stride]
        new = (bandwidth + rest) / active if active > 0.0 else above
        settled = abs(new - above) <= _SETTLED * new
        above = new
        if settled:
            return above
    return np.nan


@parallel
def poisson_rates(change_rate, importance, bandwidth, min_rate, rate):
    """Rates max(min_rate, c root - change_rate) that sum to `bandwidth`.

    root = sqrt(importance change_rate). `change_rate`, `importance` and `rate`
    have shape (n_pages,), `min_rate` one entry for each page or one for all;
    `rate` holds the roots while the search runs and the rates at the end.
    Returns c.

    Where bandwidth is scarce, c is hardly above the least threshold
    change_rate / root, and c root - change_rate is a difference of nearly
    equal numbers. In the second phase c is written as least + above and the
    rate as root (above - (change_rate / root - least)). The page of the least
    threshold then has the rate root x above, without any cancellation, and
    the other differences are small only where the rates hardly count.
    """
    stride = 1 if min_rate.size > 1 else 0
    roots, changes, least = _square_roots(change_rate, importance, rate)
    if roots == 0.0:
        for i in prange(rate.size):
            rate[i] = min_rate[i * stride]
        return 0.0
    # At this c the rates c root - change_rate of all pages that gain by crawls
    # sum to the bandwidth, the negative ones among them. Raised to the minimum
    # rate, which is not negative, they sum to as much or more: c is not left
    # of the solution.
    c = (bandwidth + changes) / roots
    c = _newton(change_rate, rate, bandwidth, min_rate, stride, c)
    above = c - least
    if above > _TWO_DIGITS * c:
        for i in prange(rate.size):
            rate[i] = max(c * rate[i] - change_rate[i], min_rate[i * stride])
        return c
    # Too few digits: start from the right again, in the new unknown.
    if above < _SIX_DIGITS * c:
        gaps = 0.0
        for i in prange(rate.size):
            gaps += -_rate_above(rate[i], change_rate[i], least, 0.0)
        above = (bandwidth + gaps) / roots
    above = _newton_above(change_rate, rate, bandwidth, min_rate, stride, least, above)
    for i in prange(rate.size):
        rate[i] = max(
            _rate_above(rate[i], change_rate[i], least, above), min_rate[i * stride]
        )
    return least + above


# The body of poisson_rates once more, without threads, to run inside prange.
# It is not cached by itself: the two would share one entry of the cache.
_poisson_rates_serial = njit(error_model="numpy")(poisson_rates.py_func)


@parallel
def host_rates(change_rate, importance, bandwidth, offsets, rate):
    """`poisson_rates` inside every host.

    The pages offsets[h]:offsets[h + 1] of host h share bandwidth[h], the limit
    of the host; `offsets` has shape (n_hosts + 1,). Writes
    `rate`, shape (n_pages,); NaN for pages of a host that did not converge.
    """
    none = np.zeros(1)
    for h in prange(bandwidth.size):
        pages = slice(offsets[h], offsets[h + 1])
        if math.isnan(
            _poisson_rates_serial(
                change_rate[pages], importance[pages], bandwidth[h], none, rate[pages]
            )
        ):
            rate[pages] = np.nan


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


@parallel
def interval_rates(multiplier, change_rate, importance, rate):
    """Optimal rates of equal intervals at a multiplier; returns their sum.

    rate = change_rate / x where 1 - (1 + x) exp(-x) = multiplier change_rate
    / importance, and 0 where that is 1 or more. All arrays have shape
    (n_pages,); `rate` is written.
    """
    total = 0.0
    for i in prange(rate.size):
        if importance[i] > multiplier * change_rate[i] and change_rate[i] > 0.0:
            rate[i] = change_rate[i] / inverse_gamma2(
                multiplier * change_rate[i] / importance[i]
            )
        else:
            rate[i] = 0.0
        total += rate[i]
    return total


@compiled
def _harmonic_rate(change_rate, importance, v):
    """Positive root of rate (rate + change_rate) = importance change_rate v.

    Written without cancellation; returns it and its slope in v. Both are 0 for
    a page that never changes or has no importance.
    """
    if not (change_rate > 0.0 and importance > 0.0):
        return 0.0, 0.0
    q = math.sqrt(1.0 + 4.0 * importance * v / change_rate)
    return 2.0 * importance * v / (1.0 + q), importance / q


# Newton squares the error: after a step of 1e-8 it is of the order of 1e-16.
_LAST_STEP = 1e-8


@parallel
def harmonic_rates(change_rate, importance, bandwidth, rate):
    """Rates of `_harmonic_rate` that sum to `bandwidth`. Returns v.

    All arrays have shape (n_pages,); `rate` is written. A rate is at most
    importance v, and at most sqrt(importance change_rate v), as both factors
    of rate (rate + change_rate) show. The v at which the sum of either bound
    is the bandwidth is therefore left of the solution, and the larger one is
    the start. The sum is concave in v: its tangents lie above it, and Newton's
    method from the left never overshoots. The logarithm of a rate has a slope
    in log v between 1/2 and 1, and so has that of the sum: every step at least
    halves the error in log v.
    """
    weights = roots = 0.0
    for i in prange(rate.size):
        root = math.sqrt(importance[i] * change_rate[i])
        roots += root
        weights += importance[i] if root > 0.0 else 0.0
    if roots == 0.0:
        rate[:] = 0.0
        return 0.0
    v = max(bandwidth / weights, (bandwidth / roots) ** 2)
    for _ in range(_MAX_STEPS):
        total = slope = 0.0
        for i in prange(rate.size):
            here, slope_here = _harmonic_rate(change_rate[i], importance[i], v)
            total += here
            slope += slope_here
        step = (bandwidth - total) / (slope * v)
        v *= 1.0 + step
        if abs(step) <= _LAST_STEP:
            for i in prange(rate.size):
                rate[i] = _harmonic_rate(change_rate[i], importance[i], v)[0]
            return v
    return np.nan
