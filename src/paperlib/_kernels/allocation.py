"""Crawl rates that spend a bandwidth: fixed points over many pages. They draw no random numbers and check nothing."""

import math

import numpy as np
from numba import njit, prange
from scipy import special

_MAX_STEPS = 200


@njit(cache=True, error_model="numpy")
def _above(root, change_rate, least, above):
    """(least + above) root - change_rate without the cancellation; 0 for a page that gains nothing by crawls."""
    return root * (above - (change_rate / root - least)) if root > 0.0 else 0.0


@njit(cache=True, parallel=True, error_model="numpy")
def poisson_rates(change_rate, importance, bandwidth, min_rate, rate):
    """Rates max(min_rate, c root - change_rate) with root = sqrt(importance change_rate) that sum to `bandwidth`.

    Returns c, 0 if no page gains by crawls, NaN if not converged. The sum of the rates is convex and piecewise linear in c, and all
    pages at once bound it from below: Newton starts right of the root, falls, and is exact once the set of pages above their minimum
    has settled. Where bandwidth is scarce, so that c is hardly above the least change_rate / root of all pages, the same steps in the
    distance between the two keep what rounding would lose. `min_rate` holds one entry for all pages, or one for each.
    """
    n = rate.size
    each = 1 if min_rate.size > 1 else 0
    roots = changes = 0.0
    least = np.inf
    for i in prange(n):
        root = math.sqrt(importance[i] * change_rate[i])
        rate[i] = root
        roots += root
        changes += change_rate[i] if root > 0.0 else 0.0
        least = min(least, change_rate[i] / root if root > 0.0 else np.inf)
    if roots == 0.0:
        for i in prange(n):
            rate[i] = min_rate[i * each]
        return 0.0
    c = (bandwidth + changes) / roots
    for _ in range(_MAX_STEPS):
        active = rest = 0.0
        for i in prange(n):
            if c * rate[i] > change_rate[i] + min_rate[i * each]:
                active += rate[i]
                rest += change_rate[i]
            else:
                rest += -min_rate[i * each]
        new = (bandwidth + rest) / active if active > 0.0 else c
        if not new < c * (1.0 - 1e-15):
            break
        c = new
    above = c - least
    if above > 1e-2 * c:  # at most two digits are lost
        for i in prange(n):
            rate[i] = max(c * rate[i] - change_rate[i], min_rate[i * each])
        return c
    if above < 1e-6 * c:
        gaps = 0.0
        for i in prange(n):
            gaps += -_above(rate[i], change_rate[i], least, 0.0)
        above = (bandwidth + gaps) / roots
    for _ in range(_MAX_STEPS):
        active = rest = 0.0
        for i in prange(n):
            gain = _above(rate[i], change_rate[i], least, above)
            if gain > min_rate[i * each]:
                active += rate[i]
                rest += rate[i] * above - gain
            else:
                rest += -min_rate[i * each]
        new = (bandwidth + rest) / active if active > 0.0 else above
        settled = abs(new - above) <= 1e-13 * new
        above = new
        if settled:
            for i in prange(n):
                rate[i] = max(
                    _above(rate[i], change_rate[i], least, above), min_rate[i * each]
                )
            return least + above
    return np.nan


_PIECES, _DEGREE = 128, 8
_FEW = 0.8  # below it x is smooth in sqrt(2 y), above it in -log(1 - y), which is at most 36.8 in floating point
_START = -math.log1p(-_FEW)
_DENSITY = _PIECES / np.array([math.sqrt(2.0 * _FEW), 37.0 - _START])  # pieces to one


def _gamma2_pieces():
    """Polynomials through x / sqrt(2 y) and x at Chebyshev nodes of each piece, where 1 - (1 + x) exp(-x) = y; good to 4e-15."""
    node = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    low, high = (np.arange(_PIECES)[:, np.newaxis] + 0.5 + 0.5 * node) / _DENSITY[
        :, np.newaxis, np.newaxis
    ]
    value = np.stack(
        [
            special.gammaincinv(2, 0.5 * low**2) / low,
            special.gammainccinv(2, np.exp(-_START - high)),
        ]
    )
    return np.linalg.solve(np.vander(node), value[..., np.newaxis])[..., 0]


_GAMMA2 = _gamma2_pieces()


@njit(cache=True, error_model="numpy")
def _inverse_gamma2(y):
    """x with 1 - (1 + x) exp(-x) = y, 0 <= y < 1."""
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


@njit(cache=True, parallel=True, error_model="numpy")
def interval_rates(multiplier, change_rate, importance, rate):
    """Crawl rates change_rate / x with 1 - (1 + x) exp(-x) = multiplier change_rate / importance; returns their sum."""
    total = 0.0
    for i in prange(rate.size):
        if importance[i] > multiplier * change_rate[i] and change_rate[i] > 0.0:
            rate[i] = change_rate[i] / _inverse_gamma2(
                multiplier * change_rate[i] / importance[i]
            )
        else:
            rate[i] = 0.0
        total += rate[i]
    return total


# the body of poisson_rates once more, without threads, to run inside prange; not cached by itself, for the two would share one cache entry
_poisson_rates_serial = njit(error_model="numpy")(poisson_rates.py_func)


@njit(cache=True, parallel=True, error_model="numpy")
def host_rates(change_rate, importance, bandwidth, offsets, rate):
    """`poisson_rates` inside every host h: pages offsets[h]:offsets[h + 1] share bandwidth[h]. NaN where not converged."""
    none = np.zeros(1)
    for h in prange(bandwidth.size):
        pages = slice(offsets[h], offsets[h + 1])
        if math.isnan(
            _poisson_rates_serial(
                change_rate[pages], importance[pages], bandwidth[h], none, rate[pages]
            )
        ):
            rate[pages] = np.nan


@njit(cache=True, error_model="numpy")
def _harmonic_rate(change_rate, importance, v):
    """The positive root of rate (rate + change_rate) = importance change_rate v, without cancellation, and its slope in v."""
    if not (change_rate > 0.0 and importance > 0.0):
        return 0.0, 0.0
    q = math.sqrt(1.0 + 4.0 * importance * v / change_rate)
    return 2.0 * importance * v / (1.0 + q), importance / q


@njit(cache=True, parallel=True, error_model="numpy")
def harmonic_rates(change_rate, importance, bandwidth, rate):
    """Rates of `_harmonic_rate` that sum to `bandwidth`. Returns v, 0 if no page gains by crawls, NaN if not converged.

    The sum of the rates is concave in v, and its log has a slope in log v between 1/2 and 1. So Newton from the left never overshoots,
    and each step at least halves the error in log v. A rate is at most importance v and sqrt(importance change_rate v): the start.
    """
    n = rate.size
    weights = roots = 0.0
    for i in prange(n):
        root = math.sqrt(importance[i] * change_rate[i])
        roots += root
        weights += importance[i] if root > 0.0 else 0.0
    if roots == 0.0:
        rate[:] = 0.0
        return 0.0
    v = max(bandwidth / weights, (bandwidth / roots) ** 2)
    for _ in range(_MAX_STEPS):
        total = slope = 0.0
        for i in prange(n):
            here, slope_here = _harmonic_rate(change_rate[i], importance[i], v)
            total += here
            slope += slope_here
        step = (bandwidth - total) / (slope * v)
        v *= 1.0 + step
        if abs(step) <= 1e-8:  # the error after this step is of the order of its square
            for i in prange(n):
                rate[i] = _harmonic_rate(change_rate[i], importance[i], v)[0]
            return v
    return np.nan
