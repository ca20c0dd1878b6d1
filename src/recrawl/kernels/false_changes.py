"""The likelihood of bits with false changes, maximised over each page's rate.

A crawl that ends an interval w finds no change with probability exp(-u),
u = b + rate w, where exp(-b) is the probability of no false change. For a
given b, the rate of a page is the root of

    sum over changed w / (exp(u) - 1) = total interval of unchanged crawls,

or 0 where the left side is below the right side at rate 0. Only changed crawls
enter the sum, so that the kernels read nothing else.

The logarithm of the left side is convex and falls in the rate: each term is
log-convex, and so are sums of log-convex functions. Newton's method for such a
function stays left of the root once it is there, and from the right of it the
next point is on the left. A point below 0 is replaced by 0, which also lies
left of the root. The method therefore converges from every start at which
`expm1` is accurate, u < 40 for some crawl; here it starts near the best rate of
a slightly different b.

The likelihood is concave in (b, rate). Its maximum over the rate is therefore
concave in b; the second derivative is that of b alone, less what the rate
takes up (the Schur complement). `estimators.false_changes` adds both
derivatives over the pages of a group, and moves b.

The kernels draw no random numbers and check nothing.
"""

import math

import numpy as np
from numba import njit, prange

from recrawl.kernels import compiled, parallel
from recrawl.kernels.batch import MAX_NEWTON_STEPS
from recrawl.kernels.online import expm1

# The error after a Newton step is of the order of its square, 1e-16 here.
_TOLERANCE = 1e-8
# Logarithms of two equal sums differ by this much from rounding.
_ROUNDING = 1e-14


@njit(cache=True, error_model="numpy", fastmath=True)
def _sums(b, rate, interval):
    """Sums over changed crawls of r and w r, and of r (1 + r) times 1, w, w^2.

    r = 1 / (exp(u) - 1), and r (1 + r) is minus its derivative in u. `fastmath`
    lets the loop use vector instructions.
    """
    in_b = in_rate = bb = cross = rr = 0.0
    for j in range(interval.size):
        w = interval[j]
        r = 1.0 / expm1(b + rate * w)
        curve = r * (1.0 + r)
        in_b += r
        in_rate += r * w
        bb += curve
        cross += curve * w
        rr += curve * w * w
    return in_b, in_rate, bb, cross, rr


@compiled
def _best_rate(b, rate, t_unchanged, interval):
    """The change rate of one page at b > 0, by Newton from `rate`; or NaN."""
    if interval.sum() <= t_unchanged * math.expm1(b):
        return 0.0
    for _ in range(MAX_NEWTON_STEPS):
        _in_b, in_rate, _bb, _cross, rr = _sums(b, rate, interval)
        excess = math.log(in_rate / t_unchanged)
        step = excess * in_rate / rr
        rate = max(rate + step, 0.0)
        if abs(step) <= _TOLERANCE * rate or abs(excess) <= _ROUNDING:
            return rate
    return np.nan


@parallel
def profiles(b, wanted, t_unchanged, interval, starts, rate, sums):
    """Best change rate of each wanted page at its b, and sums at that rate.

    b, wanted, t_unchanged: shape (n_pages,), the last positive where wanted;
    interval: of the changed crawls only, those of page i are
    ``starts[i]:starts[i + 1]``, at least one. `rate`, shape (n_pages,), holds
    the start of the search and is overwritten; at b = 0 it must be the
    maximum. Writes `sums`, shape (n_pages, 4): the sum of r, and the three of
    r (1 + r). A rate that was not found is NaN.
    """
    for i in prange(b.size):
        if wanted[i]:
            own = interval[starts[i] : starts[i + 1]]
            if b[i] > 0.0:
                rate[i] = _best_rate(b[i], rate[i], t_unchanged[i], own)
            in_b, _in_rate, bb, cross, rr = _sums(b[i], rate[i], own)
            sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = in_b, bb, cross, rr


@parallel
def information(rate, interval, offsets, out):
    """Expected information on b at b = 0 in each page, as its rate is not known.

    rate: shape (n_pages,); interval: of all crawls. Writes `out`, shape (n_pages,);
    0 unless the rate is positive and finite.
    """
    for i in prange(rate.size):
        out[i] = 0.0
        if 0.0 < rate[i] < np.inf:
            bb = cross = rr = 0.0
            for j in range(offsets[i], offsets[i + 1]):
                w = interval[j]
                v = 1.0 / expm1(rate[i] * w)
                bb += v
                cross += v * w
                rr += v * w * w
            out[i] = max(bb - cross * cross / rr, 0.0) if rr > 0.0 else 0.0
