"""The root of an equation, and the multiplier that spends a bandwidth."""

import numpy as np
from scipy.optimize import brentq


def root(function, low, high):
    """Root of a function that changes its sign once, to rounding."""
    return brentq(function, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)


def spend(rate, bandwidth, high):
    """Rates that spend a bandwidth, and the multiplier, at most `high`.

    `rate` gives the rates at a multiplier; they fall as it grows.
    """
    low = high
    while rate(low).sum() < bandwidth:
        low /= 4

    def excess(log_multiplier):
        return rate(np.exp(log_multiplier)).sum() - bandwidth

    multiplier = np.exp(root(excess, np.log(low), np.log(high)))
    return rate(multiplier), multiplier
