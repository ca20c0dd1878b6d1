"""Steps of a gamma posterior of the change rate.

The update is a loop over flat arrays that writes its state in place.

That loop and the sums of `batch` spend their time in exp(x) - 1. A call of the
C library keeps a loop from using vector instructions; `expm1` is therefore
written as a polynomial and seven doublings, which are straight-line code.
exp(x) - 1 follows from e = exp(y) - 1 at y = x / 128 by applying
exp(2 y) - 1 = e (2 + e) seven times. The polynomial is the Taylor series of
e up to y^8. Its relative error y^8 / 9! grows with x: that of the result is
below 4e-14 for x up to 10, 2e-11 up to 20 and 8e-9 up to 40 (measured). The
callers add up x / (exp(x) - 1), which is e^-x small where the error is large:
its absolute error is below 1e-15.

The kernels draw no random numbers and check nothing.
"""

import math

from numba import njit, prange

from recrawl.kernels import compiled, parallel

# Beyond x = rate * interval = 40 a change is certain up to 4e-18: it carries no
# information.
_MAX_EXPONENT = 40.0
# Below, the difference of two nearly equal numbers would be rounding only.
_SMALL_EXPONENT = 1e-3
# Largest step of the logarithm of the rate where changes may be false.
_MAX_STEP = 1.0
# Keeps x / (exp(x) - 1) defined where rate * interval underflows.
_MIN_EXPONENT = 1e-100


@njit(cache=True, error_model="numpy", fastmath=True)
def expm1(x):
    """exp(x) - 1 for x in [0, 40], see above; beyond, some large number."""
    y = min(x, 300.0) / 128.0  # 300: the doublings stay below overflow
    # one expression: fast-math may round another order of evaluation
    # differently
    # fmt: off
    e = y * (1.0 + y / 2.0 * (1.0 + y / 3.0 * (1.0 + y / 4.0 * (1.0 + y / 5.0 * (
        1.0 + y / 6.0 * (1.0 + y / 7.0 * (1.0 + y / 8.0)))))))
    # fmt: on
    for _ in range(7):
        e *= 2.0 + e
    return e


@njit(cache=True, error_model="numpy", fastmath=True)
def gamma_step(changed, interval, shape, rate):
    """Shape and rate of the gamma posterior of one page after one more crawl.

    An unchanged crawl adds its interval to the rate, a changed one the
    pseudo-counts of `estimators.GammaFilter`.
    """
    per_change = rate / shape
    x = min(max(interval / per_change, _MIN_EXPONENT), _MAX_EXPONENT)
    e = expm1(x)
    seen = x / e
    count = seen * seen * (1.0 + e)
    # count - seen, or the first terms of its series
    time = count - seen if x > _SMALL_EXPONENT else x * (0.5 - x / 6.0)
    bit = 1.0 if changed else 0.0
    return (
        shape + bit * count,
        rate + (bit * time * per_change + (1.0 - bit) * interval),
    )


@njit(cache=True, error_model="numpy", fastmath=True)
def gamma_update(changed, interval, n_known, shape, rate):
    """`gamma_step` of each page; flat arrays, the last two written in place.

    Known changes are conjugate: their number is added to the shape.
    """
    for i in range(changed.size):
        shape[i], rate[i] = gamma_step(changed[i], interval[i], shape[i], rate[i])
        shape[i] += n_known[i]


@parallel
def gamma_paths(
    elapsed, changed, interval, n_known, offsets, prior, half_life, predicted, posterior
):
    """`gamma_update` of whole histories that fade, page by page.

    Before each crawl, shape and rate approach those of `prior`, shape (2,):
    what they are above it is halved in each `half_life` of the time elapsed (of
    which `interval` may be a part), never if inf. Writes the
    estimate before each crawl to `predicted`, shape (n_crawls,), and shape and rate
    after the last one to `posterior`, shape (2, n_pages).
    """
    for i in prange(offsets.size - 1):
        shape, rate = prior[0], prior[1]
        for j in range(offsets[i], offsets[i + 1]):
            kept = 2.0 ** (-elapsed[j] / half_life)
            shape = prior[0] + kept * (shape - prior[0])
            rate = prior[1] + kept * (rate - prior[1])
            predicted[j] = shape / rate
            shape, rate = gamma_step(changed[j], interval[j], shape, rate)
            shape += n_known[j]
        posterior[0, i], posterior[1, i] = shape, rate


@compiled
def gamma_update_noisy(changed, interval, n_known, false_change, shape, rate):
    """`gamma_update` where a crawl finds a false change with this probability.

    A step of Fisher's scoring in the logarithm of the change rate, for bits of
    either kind: the expected information is added to the shape, and the estimate
    moves by the slope of the log-likelihood over the shape. Pseudo-counts of a
    changed crawl, as in `gamma_step`, would learn too slowly beside unchanged crawls
    that add all of their interval: the error was up to eight times the bound, and
    intervals of 95% covered half of the rates (measured).
    """
    for i in range(changed.size):
        if n_known[i] > 0.0 or false_change[i] == 0.0:
            shape[i], rate[i] = gamma_step(changed[i], interval[i], shape[i], rate[i])
            shape[i] += n_known[i]
            continue
        estimate = shape[i] / rate[i]
        x = min(estimate * interval[i], _MAX_EXPONENT)
        seen = x / math.expm1(x - math.log1p(-false_change[i]))
        shape[i] += x * seen
        step = (seen if changed[i] else -x) / shape[i]
        # a weak prior must not throw the estimate away
        estimate *= math.exp(min(max(step, -_MAX_STEP), _MAX_STEP))
        rate[i] = shape[i] / estimate
