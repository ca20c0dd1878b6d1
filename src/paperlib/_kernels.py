"""The few loops that NumPy cannot say: ragged batches and fixed points. They draw no random numbers and check nothing."""

import contextlib
import math

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads, vectorize

MLE, MOMENTS = 0, 1
_MAX_STEPS = 200
_WORTH_A_THREAD = 50_000


@contextlib.contextmanager
def threads_for(size):
    """One thread for a small array: on a busy machine the wait for a second thread takes longer than the work."""
    before = get_num_threads()
    set_num_threads(before if size >= _WORTH_A_THREAD else 1)
    try:
        yield
    finally:
        set_num_threads(before)


@vectorize(["f8(b1,f8,f8,f8)"], cache=True)
def stochastic_step(changed, estimate, crawl_rate, step):
    """estimate + step (changed (estimate + crawl_rate) - estimate)."""
    return estimate + step * (crawl_rate if changed else -estimate)


@vectorize(["f8(f8,f8)"], cache=True)
def poisson_freshness(change_rate, crawl_rate):
    """crawl_rate / (crawl_rate + change_rate), 1 for a page that never changes."""
    return crawl_rate / (crawl_rate + change_rate) if change_rate > 0.0 else 1.0


@vectorize(["f8(f8,f8)"], cache=True)
def interval_freshness(change_rate, crawl_rate):
    """(1 - exp(-x)) / x with x = change_rate / crawl_rate, 1 for a page that never changes."""
    if change_rate == 0.0:
        return 1.0
    return -math.expm1(-change_rate / crawl_rate) * crawl_rate / change_rate if crawl_rate > 0.0 else 0.0


@vectorize(["f8(f8,f8,f8,f8)"], cache=True)
def counted_rate(n_changed, n, offset, crawl_rate):
    """crawl_rate n_changed / (n + offset - n_changed)."""
    return crawl_rate * n_changed / (n + offset - n_changed)


@vectorize(["f8(b1,f8,f8,f8,f8,f8)"], cache=True)
def momentum_step(changed, momentum, estimate, crawl_rate, step, omega):
    """momentum + step (changed (estimate + crawl_rate) - estimate - omega momentum)."""
    return momentum + step * ((crawl_rate if changed else -estimate) - omega * momentum)


@njit(cache=True, error_model="numpy")
def _log_sum(kind, rate, interval, changed, start, stop):
    """Log of the rate-dependent side of the estimating equation, and its first two derivatives in the rate."""
    total = first = second = 0.0
    for j in range(start, stop):
        w = interval[j]
        if kind == MOMENTS:
            r = math.exp(-rate * w)
            total += r
            first -= r * w
            second += r * w * w
        elif changed[j]:
            r = w / math.expm1(rate * w)
            total += r
            first -= r * (r + w)
            second += r * (r + w) * (2.0 * r + w)
    first /= total
    return math.log(total), first, second / total - first * first


@njit(cache=True, error_model="numpy")
def _root(kind, rate, safe, target, interval, changed, start, stop):
    """Root of the log of the estimating equation: Halley in the log of the rate, from the guess `rate`.

    Should that not settle, Newton from `safe`, left of the root: the function is convex and falls, so that it never overshoots.
    NaN when neither converges.
    """
    for _ in range(20):
        value, first, second = _log_sum(kind, rate, interval, changed, start, stop)
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
        value, first, _second = _log_sum(kind, rate, interval, changed, start, stop)
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
            root = _root(kind, safe, safe, target, interval, changed, offsets[i], offsets[i + 1])
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
                    centre = _root(MLE, max(centre, safe), safe, target, interval, changed, start, j + 1)
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
                rate[i] = max(_above(rate[i], change_rate[i], least, above), min_rate[i * each])
            return least + above
    return np.nan


@njit(cache=True, parallel=True, error_model="numpy")
def interval_rates(multiplier, change_rate, importance, rate):
    """Crawl rates change_rate / x with 1 - (1 + x) exp(-x) = multiplier change_rate / importance; returns their sum.

    Rates of an earlier call, for another multiplier, are where the search starts; zeros otherwise.
    """
    total = 0.0
    for i in prange(rate.size):
        if importance[i] > multiplier * change_rate[i] and change_rate[i] > 0.0:
            x = change_rate[i] / rate[i] if rate[i] > 0.0 else 0.0
            rate[i] = change_rate[i] / _inverse_gamma2(multiplier * change_rate[i] / importance[i], x)
        else:
            rate[i] = 0.0
        total += rate[i]
    return total


@njit(cache=True, error_model="numpy")
def _gamma2(x, decay):
    """1 - (1 + x) exp(-x) for decay = exp(-x), by its series where the difference would cancel."""
    if x > 0.5:
        return 1.0 - (1.0 + x) * decay
    term = 0.5 * x * x
    total = term
    j = 2
    while term > 1e-17 * total:
        j += 1
        term *= x / j
        total += term
    return decay * total


@njit(cache=True, error_model="numpy")
def _inverse_gamma2(y, x):
    """x with 1 - (1 + x) exp(-x) = y, 0 < y < 1, from the guess x (0 for none)."""
    if x == 0.0:
        x = math.sqrt(2.0 * y) * (1.0 + y) if y < 0.7 else 1.7 - math.log1p(-y) * 1.2
    log_y, log_rest = math.log(y), math.log1p(-y)
    for _ in range(_MAX_STEPS):
        decay = math.exp(-x)
        if y < 0.5:  # Newton on log y against log x, nearly a straight line for small x
            value = _gamma2(x, decay)
            step = value * (log_y - math.log(value)) / (x * x * decay)
            x *= math.exp(min(max(step, -2.0), 2.0)) if abs(step) > 0.1 else 1.0 + step * (1.0 + 0.5 * step)
        else:  # Newton on log(1 - y) against x, concave
            step = (math.log1p(x) - x - log_rest) * (1.0 + x) / (x * x)
            x *= max(1.0 + step, 0.5)
        if abs(step) <= 1e-8:
            return x
    return np.nan


# the body of poisson_rates once more, without threads, to run inside prange; not cached by itself, for the two would share one cache entry
_poisson_rates_serial = njit(error_model="numpy")(poisson_rates.py_func)


@njit(cache=True, parallel=True, error_model="numpy")
def host_rates(change_rate, importance, bandwidth, offsets, rate):
    """`poisson_rates` inside every host h: pages offsets[h]:offsets[h + 1] share bandwidth[h]. NaN where not converged."""
    none = np.zeros(1)
    for h in prange(bandwidth.size):
        pages = slice(offsets[h], offsets[h + 1])
        if math.isnan(_poisson_rates_serial(change_rate[pages], importance[pages], bandwidth[h], none, rate[pages])):
            rate[pages] = np.nan


@vectorize(["f8(f8,f8)"], cache=True)
def harmonic_penalty(change_rate, crawl_rate):
    """log(1 + change_rate / crawl_rate), 0 for a page that never changes."""
    if change_rate == 0.0:
        return 0.0
    return math.log1p(change_rate / crawl_rate) if crawl_rate > 0.0 else math.inf


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


@njit(cache=True, error_model="numpy")
def ordered_times(exponentials, offsets, duration, time):
    """Per page the partial sums of its exponentials, of which it has one more than times, scaled so that all make up `duration`."""
    for i in range(offsets.size - 1):
        start = offsets[i] + i
        n = offsets[i + 1] - offsets[i]
        total = 0.0
        for j in range(start, start + n + 1):
            total += exponentials[j]
        part = 0.0
        for j in range(n):
            part += exponentials[start + j]
            time[offsets[i] + j] = duration * (part / total)


@njit(cache=True, parallel=True, error_model="numpy")
def crawl_pages(time, offsets, start, stop, exponentials, change_rate, last, change_at, interval, changed, fresh):
    """What crawls at `time` find, and the time from `start` to `stop` in which each copy is fresh.

    `last` and `change_at`, when a page was crawled and when it first changed after that, are brought up to `stop`; minus infinity
    stands for a page that was never crawled.
    """
    for i in prange(last.size):
        total = 0.0
        begin = start
        for j in range(offsets[i], offsets[i + 1]):
            interval[j] = time[j] - last[i]
            changed[j] = change_at[i] <= time[j]
            total += max(min(change_at[i], time[j]) - begin, 0.0)
            begin = last[i] = time[j]
            change_at[i] = begin + exponentials[j] / change_rate[i]
        fresh[i] = total + max(min(change_at[i], stop) - begin, 0.0)


@njit(cache=True)
def interleave(interval_1, changed_1, offsets_1, interval_2, changed_2, offsets_2, interval, changed):
    """Page after page, the crawls of the first history and then those of the second."""
    k = 0
    for i in range(offsets_1.size - 1):
        for j in range(offsets_1[i], offsets_1[i + 1]):
            interval[k], changed[k] = interval_1[j], changed_1[j]
            k += 1
        for j in range(offsets_2[i], offsets_2[i + 1]):
            interval[k], changed[k] = interval_2[j], changed_2[j]
            k += 1


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
    return _root(MLE, safe, safe, target, interval, changed, 0, interval.size)


@njit(cache=True, error_model="numpy")
def _inner_rates(alpha, b, interval, changed, n_signals):
    """Damped Newton from (alpha, b) for a maximum with both positive, where there is one: the log-likelihood is concave."""
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
        while True:
            new = _signal_score(alpha + size * step_a, b + size * step_b, interval, changed, n_signals)
            if new[0] >= value + 1e-4 * size * gain - 1e-13 * abs(value):
                break
            size *= 0.5
            if size < 1e-12:
                return np.nan, np.nan
        alpha += size * step_a
        b += size * step_b
        value, first_a, first_b, aa, ab, bb = new
        # the error after this step is of the order of its square
        if size == 1.0 and abs(step_a) <= 1e-8 * alpha and abs(step_b) <= 1e-8 * b:
            return alpha, b
    return np.nan, np.nan


@njit(cache=True, parallel=True, error_model="numpy")
def signal_rates(interval, changed, n_signals, offsets, rates, variances):
    """MLE of alpha >= 0 and b >= 0 for every page, and the variances and covariance of those two that are off their bounds.

    rates[i] = alpha, b: 0, 0 when never changed, inf, NaN when always changed; b is NaN without a signal, and inf where no unchanged
    crawl had one though a changed one did. NaN, NaN for an empty page; alpha = -1 when not converged. The bounds are tried first, so
    that Newton's method in two dimensions is only asked for a maximum inside.
    """
    for i in prange(offsets.size - 1):
        t = interval[offsets[i] : offsets[i + 1]].copy()  # writable, whatever came in: one compiled version of each function
        z = changed[offsets[i] : offsets[i + 1]].copy()
        n = n_signals[offsets[i] : offsets[i + 1]].copy()
        rates[i] = variances[i] = np.nan
        if t.size == 0:
            continue
        bare_changed = False
        signalled_changed = signalled_unchanged = 0.0
        for j in range(t.size):
            if z[j]:
                bare_changed = bare_changed or n[j] == 0.0
                signalled_changed += n[j]
            else:
                signalled_unchanged += n[j]
        if z.all():
            rates[i, 0] = np.inf
            continue
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
                    guess = 0.5 * only_b if only_b > 0.0 else 0.5 * alpha * t.sum() / n.sum()
                    alpha, b = _inner_rates(0.5 * alpha, guess, t, z, n)
        if math.isnan(alpha):
            rates[i, 0] = -1.0
            continue
        rates[i, 0], rates[i, 1] = alpha, b
        if not (alpha > 0.0 or b > 0.0):  # never changed
            continue
        variances[i] = 0.0
        if alpha == 0.0 and b == np.inf:
            continue
        if 0.0 <= b < np.inf:
            _value, _first_a, _first_b, aa, ab, bb = _signal_score(alpha, b, t, z, n)
        else:
            bare = n == 0.0
            _value, _first_a, _first_b, aa, ab, bb = _signal_score(alpha, 0.0, t[bare], z[bare], n[bare])
        det = aa * bb - ab * ab
        if alpha == 0.0:
            variances[i, 1] = 1.0 / bb
        elif not 0.0 < b < np.inf:
            variances[i, 0] = 1.0 / aa
        elif det > 1e-10 * aa * bb:
            variances[i, 0], variances[i, 1], variances[i, 2] = bb / det, aa / det, -ab / det
        else:
            variances[i] = np.inf
