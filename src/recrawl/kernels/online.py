"""One step of a gamma posterior of the change rate.

That step and the sums of `batch` spend their time in exp(x) - 1. A call of the
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

from numba import njit

# Beyond x = rate * interval = 40 a change is certain up to 4e-18: it carries no
# information.
_MAX_EXPONENT = 40.0
# Below, the difference of two nearly equal numbers would be rounding only.
_SMALL_EXPONENT = 1e-3
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
    counts of the first two derivatives of log(1 - e^(-rate w)) at the estimate.
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
