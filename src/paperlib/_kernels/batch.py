"""The likelihood of one-bit histories, page by page: estimates, paths, limits. They draw no random numbers and check nothing."""

import math

import numpy as np
from numba import njit, prange

from paperlib._kernels.online import expm1

MLE, MOMENTS = 0, 1
_MAX_STEPS = 200


@njit(cache=True, error_model="numpy", fastmath=True)
def _log_sum(kind, rate, interval, changed):
    """Log of the rate-dependent side of the estimating equation, and its first two derivatives in the rate."""
    total = first = second = 0.0
    if kind == MOMENTS:
        for j in range(interval.size):
            w = interval[j]
            r = 1.0 / (1.0 + expm1(rate * w))
            total += r
            first -= r * w
            second += r * w * w
    else:
        for j in range(interval.size):
            w = interval[j]
            r = w / expm1(rate * w) if changed[j] else 0.0
            total += r
            first -= r * (r + w)
            second += r * (r + w) * (2.0 * r + w)
    first /= total
    return math.log(total), first, second / total - first * first


@njit(cache=True, error_model="numpy")
def _root(kind, rate, safe, target, interval, changed):
    """Root of the log of the estimating equation: Halley in the log of the rate, from the guess `rate`.

    Should that not settle, Newton from `safe`, left of the root: the function is convex and falls, so that it never overshoots.
    NaN when neither converges.
    """
    for _ in range(20):
        value, first, second = _log_sum(kind, rate, interval, changed)
        first, second = first * rate, second * rate * rate + first * rate
        step = (target - value) / first
        step /= 1.0 + 0.5 * step * second / first
        if not abs(step) < 3.0:
            break
        rate *= math.exp(step)
        if abs(step) <= 3e-5:  # the error after this step is of the order of its cube
            return rate
    rate = safe
    for _ in range(_MAX_STEPS):
        value, first, _second = _log_sum(kind, rate, interval, changed)
        step = (target - value) / first
        rate += step
        if abs(step) <= 1e-8 * rate:  # of its square
            return rate
    return np.nan


@njit(cache=True, error_model="numpy")
def _start(kind, n_changed, t_changed, t_unchanged, n, t):
    """Left of the root by Jensen's inequality (all intervals equal to their mean), and the log of the target."""
    if kind == MOMENTS:
        return math.log(n / (n - n_changed)) * n / t, math.log(n - n_changed)
    return math.log1p(t_changed / t_unchanged) * n_changed / t_changed, math.log(
        t_unchanged
    )


@njit(cache=True, parallel=True, error_model="numpy")
def estimating_equation_roots(kind, interval, changed, offsets, out):
    """Solve the MLE's or the moment-matching equation for every page; 0 and inf where degenerate, NaN for an empty page."""
    for i in prange(offsets.size - 1):
        n_changed = 0
        t_changed = t_unchanged = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            if changed[j]:
                n_changed += 1
                t_changed += interval[j]
            else:
                t_unchanged += interval[j]
        n = offsets[i + 1] - offsets[i]
        if n == 0:
            out[i] = np.nan
        elif n_changed == 0:
            out[i] = 0.0
        elif n_changed == n:
            out[i] = np.inf
        else:
            safe, target = _start(
                kind, n_changed, t_changed, t_unchanged, n, t_changed + t_unchanged
            )
            own = slice(offsets[i], offsets[i + 1])
            root = _root(kind, safe, safe, target, interval[own], changed[own])
            out[i] = -1.0 if math.isnan(root) else root


_ORDER = 12  # of the Taylor series in mle_paths, with the reach below: a truncation error of about reach^(order + 1) = 1e-13
_REACH = 0.1


@njit(cache=True, error_model="numpy")
def _add_series(rate, w, series):
    """Add the Taylor series of w / (exp(rate w) - 1) about `rate`: n = 1 / (e^x - 1) solves n' = -n - n^2."""
    c = np.empty(_ORDER + 1)
    c[0] = 1.0 / math.expm1(rate * w)
    power = w
    series[0] += c[0] * power
    for j in range(_ORDER):
        square = 0.0
        for i in range(j + 1):
            square += c[i] * c[j - i]
        c[j + 1] = -(c[j] + square) / (j + 1)
        power *= w
        series[j + 1] += c[j + 1] * power


@njit(cache=True, error_model="numpy")
def _series_root(series, target, shift):
    """Newton from `shift` for the root of the series at `target`; NaN when it does not settle."""
    for _ in range(20):
        value = slope = 0.0
        for j in range(_ORDER, -1, -1):
            slope = slope * shift + value
            value = value * shift + series[j]
        step = (target - value) / slope
        shift += step
        if abs(step) <= 1e-9 * abs(shift) or abs(target - value) <= 1e-15 * target:
            return shift
    return np.nan


@njit(cache=True, parallel=True, error_model="numpy")
def mle_paths(interval, changed, offsets, out):
    """The MLE after every crawl of every page, in a time linear in the crawls.

    The estimating equation is kept as a Taylor series about a recent estimate, to which a crawl adds its own series; only when the
    estimate has moved by more than the series' reach is it solved anew from all crawls so far.
    """
    for i in prange(offsets.size - 1):
        start = offsets[i]
        series = np.zeros(_ORDER + 1)
        n_changed = 0
        t_changed = t_unchanged = centre = shift = 0.0
        for j in range(start, offsets[i + 1]):
            if changed[j]:
                n_changed += 1
                t_changed += interval[j]
                if centre > 0.0:
                    _add_series(centre, interval[j], series)
            else:
                t_unchanged += interval[j]
            if n_changed == 0:
                out[j] = 0.0
            elif t_unchanged == 0.0:
                out[j] = np.inf
            else:
                if centre > 0.0:
                    shift = _series_root(series, t_unchanged, shift)
                lost = abs(
                    series[_ORDER] * shift**_ORDER
                )  # large where centre x interval is
                if not (
                    centre > 0.0
                    and abs(shift) <= _REACH * centre
                    and lost <= 1e-11 * centre * abs(series[1])
                ):
                    safe, target = _start(
                        MLE, n_changed, t_changed, t_unchanged, 0, 0.0
                    )
                    centre = _root(
                        MLE,
                        max(centre, safe),
                        safe,
                        target,
                        interval[start : j + 1],
                        changed[start : j + 1],
                    )
                    shift = 0.0
                    series[:] = 0.0
                    for before in range(start, j + 1):
                        if changed[before]:
                            _add_series(centre, interval[before], series)
                out[j] = centre + shift


@njit(cache=True, error_model="numpy")
def _log_likelihood(x, t_unchanged, interval, changed, start, stop):
    """Log-likelihood at rate e^x, its slope and curvature in x."""
    rate = math.exp(x)
    value = slope = -rate * t_unchanged
    curvature = slope
    for j in range(start, stop):
        if changed[j]:
            a = rate * interval[j]
            p = -math.expm1(-a)
            r = a * math.exp(-a) / p
            value += math.log(p)
            slope += r
            curvature += r * (1.0 - a - r)
    return value, slope, curvature


@njit(cache=True, parallel=True, error_model="numpy")
def likelihood_limits(
    rate, drop, interval, changed, offsets, drop_degenerate, low, high
):
    """Where the log-likelihood has fallen by `drop` on either side of `rate` (its maximum), or from its supremum 0 if degenerate.

    It is concave in the log of the rate, so Newton converges from every point on the right side of the maximum.
    """
    for i in prange(offsets.size - 1):
        t = t_unchanged = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            t += interval[j]
            if not changed[j]:
                t_unchanged += interval[j]
        low[i] = 0.0
        high[i] = np.inf
        if rate[i] == 0.0:
            high[i] = drop_degenerate / t_unchanged
        elif math.isnan(rate[i]):
            low[i] = high[i] = np.nan
        else:
            n = offsets[i + 1] - offsets[i]
            if math.isinf(rate[i]):
                level = -drop_degenerate
                x = math.log(n / t)
                width = 0.0
            else:
                x = math.log(rate[i])
                value, _slope, curvature = _log_likelihood(
                    x, t_unchanged, interval, changed, offsets[i], offsets[i + 1]
                )
                level = value - drop
                width = min(
                    math.sqrt(-2.0 * drop / curvature), 4.0
                )  # the likelihood may be all but flat
            low[i] = _limit(
                x - width,
                level,
                t_unchanged,
                interval,
                changed,
                offsets[i],
                offsets[i + 1],
            )
            if not math.isinf(rate[i]):
                high[i] = _limit(
                    x + width,
                    level,
                    t_unchanged,
                    interval,
                    changed,
                    offsets[i],
                    offsets[i + 1],
                )


@njit(cache=True, error_model="numpy")
def _limit(x, level, t_unchanged, interval, changed, start, stop):
    for _ in range(_MAX_STEPS):
        value, slope, _curvature = _log_likelihood(
            x, t_unchanged, interval, changed, start, stop
        )
        step = (level - value) / slope
        x += min(max(step, -20.0), 20.0)
        if abs(step) <= 1e-9:
            return math.exp(x)
    return np.nan
