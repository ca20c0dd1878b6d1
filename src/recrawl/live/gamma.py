"""Gamma distributions of the change rate: one step of a posterior, and one from logs.

Nothing is checked here.
"""

import numpy as np
from numba import njit
from scipy.special import digamma, polygamma

from paperlib.estimators.batch import expm1

# Beyond x = rate * interval = 40 a change is certain up to 4e-18: it carries no
# information.
_MAX_EXPONENT = 40.0
# Below, the difference of two nearly equal numbers would be rounding only.
_SMALL_EXPONENT = 1e-3
# Keeps x / (exp(x) - 1) defined where rate * interval underflows.
_MIN_EXPONENT = 1e-100


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


def from_log(mean, stderr):
    """Shape and rate of the gamma whose logarithm has this mean and deviation.

    The variance of the logarithm is the trigamma function of the shape. Newton's
    method for its inverse converges from the start that is used, which is at most
    a half away, in five steps (measured, for deviations up to 10).
    """
    variance = stderr**2
    shape = 0.5 + 1.0 / variance
    for _ in range(5):
        trigamma = polygamma(1, shape)
        slope = polygamma(2, shape)
        shape += trigamma * (1.0 - trigamma / variance) / slope
    return shape, np.exp(digamma(shape) - mean)
