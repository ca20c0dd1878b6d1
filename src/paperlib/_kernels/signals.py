"""Maximum likelihood of signals and times."""

import math

import numpy as np
from numba import njit, prange

from paperlib._kernels.batch import _MAX_STEPS, MLE, _root, _start


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
    value, first_a, first_b, aa, ab, bb = _signal_score(
        alpha, b, interval, changed, n_signals
    )
    for _ in range(_MAX_STEPS):
        det = aa * bb - ab * ab
        if (
            not det > 1e-12 * aa * bb
        ):  # interval and n_signals in proportion: the maximum is a line, any point of it will do
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
            new = _signal_score(
                alpha + size * step_a, b + size * step_b, interval, changed, n_signals
            )
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
                guess = (
                    0.5 * only_b
                    if only_b > 0.0
                    else min(0.5 * alpha * t.sum() / n.sum(), 1.0)
                )
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
        _value, _first_a, _first_b, aa, ab, bb = _signal_score(
            alpha, 0.0, t[bare], z[bare], n[bare]
        )
    det = aa * bb - ab * ab
    if alpha == 0.0:
        variances[1] = 1.0 / bb
    elif (
        b == 0.0 and (t * n).sum() ** 2 > (1.0 - 1e-12) * (t * t).sum() * (n * n).sum()
    ):
        variances[:] = (
            np.inf
        )  # in proportion: the slope in b is 0 but for rounding, which led to this bound
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
        crawls = slice(
            offsets[i], offsets[i + 1]
        )  # copies are writable, whatever came in: one compiled version of each function
        _signal_rates(
            interval[crawls].copy(),
            changed[crawls].copy(),
            n_signals[crawls].copy(),
            rates[i],
            variances[i],
        )
