"""The likelihood of one-bit histories, page by page: estimates, paths, limits. They draw no random numbers and check nothing."""

import math

import numpy as np
from numba import njit, prange

from paperlib._kernels import expm1

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
    return math.log1p(t_changed / t_unchanged) * n_changed / t_changed, math.log(t_unchanged)


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
            safe, target = _start(kind, n_changed, t_changed, t_unchanged, n, t_changed + t_unchanged)
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
                lost = abs(series[_ORDER] * shift**_ORDER)  # large where centre x interval is
                if not (centre > 0.0 and abs(shift) <= _REACH * centre and lost <= 1e-11 * centre * abs(series[1])):
                    safe, target = _start(MLE, n_changed, t_changed, t_unchanged, 0, 0.0)
                    centre = _root(MLE, max(centre, safe), safe, target, interval[start : j + 1], changed[start : j + 1])
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
def likelihood_limits(rate, drop, interval, changed, offsets, drop_degenerate, low, high):
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
                value, _slope, curvature = _log_likelihood(x, t_unchanged, interval, changed, offsets[i], offsets[i + 1])
                level = value - drop
                width = min(math.sqrt(-2.0 * drop / curvature), 4.0)  # the likelihood may be all but flat
            low[i] = _limit(x - width, level, t_unchanged, interval, changed, offsets[i], offsets[i + 1])
            if not math.isinf(rate[i]):
                high[i] = _limit(x + width, level, t_unchanged, interval, changed, offsets[i], offsets[i + 1])


@njit(cache=True, error_model="numpy")
def _limit(x, level, t_unchanged, interval, changed, start, stop):
    for _ in range(_MAX_STEPS):
        value, slope, _curvature = _log_likelihood(x, t_unchanged, interval, changed, start, stop)
        step = (level - value) / slope
        x += min(max(step, -20.0), 20.0)
        if abs(step) <= 1e-9:
            return math.exp(x)
    return np.nan


@njit(cache=True, error_model="numpy")
def _signal_score(alpha, b, interval, changed, n_signals):
    """Log-likelihood of P(changed) = 1 - exp(-(alpha interval + b n_signals)), its gradient, and minus its second derivatives."""
    value = first_a = first_b = aa = ab = bb = 0.0
    for j in range(interval.size):
        t, n = interval[j], n_signals[j]
        eta = alpha * t + b * n
        if changed[j]:
            r = 1.0 / math.expm1(eta)
            value += math.log(-math.expm1(-eta))
            first_a += t * r
            first_b += n * r
            curve = r * (1.0 + r)
            aa += t * t * curve
            ab += t * n * curve
            bb += n * n * curve
        else:
            value -= eta
            first_a -= t
            first_b -= n
    return value, first_a, first_b, aa, ab, bb


@njit(cache=True, error_model="numpy")
def _one_rate(interval, changed):
    """The root of the MLE's estimating equation for one page, 0 when nothing changed; at least one entry is unchanged."""
    n_changed = 0
    t_changed = t_unchanged = 0.0
    for j in range(interval.size):
        if changed[j]:
            n_changed += 1
            t_changed += interval[j]
        else:
            t_unchanged += interval[j]
    if n_changed == 0:
        return 0.0
    safe, target = _start(MLE, n_changed, t_changed, t_unchanged, 0, 0.0)
    return _root(MLE, safe, safe, target, interval, changed)


@njit(cache=True, error_model="numpy")
def _inner_rates(alpha, b, interval, changed, n_signals):
    """Damped Newton from (alpha, b) for a maximum with both positive, where there is one: the log-likelihood is concave."""
    rounding = 4e-16 * (interval.size + 250)  # of a sum over all crawls
    value, first_a, first_b, aa, ab, bb = _signal_score(alpha, b, interval, changed, n_signals)
    for _ in range(_MAX_STEPS):
        det = aa * bb - ab * ab
        if not det > 1e-12 * aa * bb:  # interval and n_signals in proportion: the maximum is a line, any point of it will do
            det = aa * bb * (1.0 + 1e-6) ** 2 - ab * ab
            aa *= 1.0 + 1e-6
            bb *= 1.0 + 1e-6
        step_a = (bb * first_a - ab * first_b) / det
        step_b = (aa * first_b - ab * first_a) / det
        gain = first_a * step_a + first_b * step_b
        size = 1.0
        if step_a < 0.0:
            size = min(size, -0.9 * alpha / step_a)
        if step_b < 0.0:
            size = min(size, -0.9 * b / step_b)
        # such a step is beyond what rounding lets the likelihood judge, and the error after it is of the order of its square
        if size == 1.0 and abs(step_a) <= 1e-8 * alpha and abs(step_b) <= 1e-8 * b:
            return alpha + step_a, b + step_b
        while True:
            new = _signal_score(alpha + size * step_a, b + size * step_b, interval, changed, n_signals)
            if new[0] >= value + 1e-4 * size * gain - rounding * abs(value):
                break
            size *= 0.5
            if size < 1e-12:
                return np.nan, np.nan
        alpha += size * step_a
        b += size * step_b
        value, first_a, first_b, aa, ab, bb = new
    return np.nan, np.nan


@njit(cache=True, error_model="numpy")
def _signal_rates(t, z, n, rates, variances):
    """One page of `signal_rates`. A function of its own compiles in a third of the time."""
    rates[:] = variances[:] = np.nan
    if t.size == 0:
        return
    bare_changed = False
    signalled_changed = signalled_unchanged = 0.0
    for j in range(t.size):
        if z[j]:
            bare_changed = bare_changed or n[j] == 0.0
            signalled_changed += n[j]
        else:
            signalled_unchanged += n[j]
    if z.all():
        rates[0] = np.inf
        return
    if signalled_unchanged == 0.0:
        bare = n == 0.0
        alpha = _one_rate(t[bare], z[bare])
        b = np.inf if signalled_changed > 0.0 else np.nan
    else:
        alpha, b = _one_rate(t, z), 0.0
        if alpha > 0.0 and _signal_score(alpha, b, t, z, n)[2] > 0.0:
            only_b = 0.0 if bare_changed else _one_rate(n, z)
            if not bare_changed and _signal_score(0.0, only_b, t, z, n)[1] <= 0.0:
                alpha, b = 0.0, only_b
            else:
                guess = 0.5 * only_b if only_b > 0.0 else min(0.5 * alpha * t.sum() / n.sum(), 1.0)
                alpha, b = _inner_rates(0.5 * alpha, guess, t, z, n)
    if math.isnan(alpha):
        rates[0] = -1.0
        return
    rates[0], rates[1] = alpha, b
    if not (alpha > 0.0 or b > 0.0):  # never changed
        return
    variances[:] = 0.0
    if alpha == 0.0 and b == np.inf:
        return
    if 0.0 <= b < np.inf:
        _value, _first_a, _first_b, aa, ab, bb = _signal_score(alpha, b, t, z, n)
    else:
        bare = n == 0.0
        _value, _first_a, _first_b, aa, ab, bb = _signal_score(alpha, 0.0, t[bare], z[bare], n[bare])
    det = aa * bb - ab * ab
    if alpha == 0.0:
        variances[1] = 1.0 / bb
    elif b == 0.0 and (t * n).sum() ** 2 > (1.0 - 1e-12) * (t * t).sum() * (n * n).sum():
        variances[:] = np.inf  # in proportion: the slope in b is 0 but for rounding, which led to this bound
    elif not 0.0 < b < np.inf:
        variances[0] = 1.0 / aa
    elif det > 1e-10 * aa * bb:
        variances[0], variances[1], variances[2] = bb / det, aa / det, -ab / det
    else:
        variances[:] = np.inf


@njit(cache=True, parallel=True, error_model="numpy")
def signal_rates(interval, changed, n_signals, offsets, rates, variances):
    """MLE of alpha >= 0 and b >= 0 for every page, and the variances and covariance of those two that are off their bounds.

    rates[i] = alpha, b: 0, 0 when never changed, inf, NaN when always changed; b is NaN without a signal, and inf where no unchanged
    crawl had one though a changed one did. NaN, NaN for an empty page; alpha = -1 when not converged. The bounds are tried first, so
    that Newton's method in two dimensions is only asked for a maximum inside.
    """
    for i in prange(offsets.size - 1):
        crawls = slice(offsets[i], offsets[i + 1])  # copies are writable, whatever came in: one compiled version of each function
        _signal_rates(interval[crawls].copy(), changed[crawls].copy(), n_signals[crawls].copy(), rates[i], variances[i])
