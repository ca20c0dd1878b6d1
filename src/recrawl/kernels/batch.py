"""The likelihood of histories, page by page: estimates and limits.

A crawl that ends an interval w finds a change with probability
1 - exp(-rate w); changes that are known one by one add a factor rate each (see
`History.likelihood_terms`). Two computations are done here, one page per thread:
the root of an estimating equation (maximum likelihood or moments), and the two
rates at which the log-likelihood has fallen by a given amount.

The root is found by Halley's method for the logarithm of the equation in the
logarithm of the rate, where the function is nearly straight: three or four
sums over the crawls are enough. If that does not converge, Newton's method
starts anew at a lower bound of the root. Logarithms of the two sums
sum w / (exp(rate w) - 1) and sum exp(-rate w) are convex and decreasing in
the rate, because each term is log-convex and sums of log-convex functions are
log-convex; so is the term known / rate of known changes. Newton's method from the
left of the root of such a function never passes the root, so that this second
attempt cannot diverge.

The lower bound is the rate that solves the equation when all intervals equal
their mean: both sums are convex in w, so by Jensen's inequality the true sum
is at least as large there, and the root lies to the right. With known changes
that rate has no closed form; a few steps of Newton's method from its left come
close to it, each as cheap as one more crawl.

The log-likelihood is concave in the logarithm of the rate, so that Newton's
method for its two limits converges from any point on the right side of the
maximum.

The kernels draw no random numbers and check nothing.
"""

import math

import numpy as np
from numba import njit, prange

from recrawl.kernels import compiled, parallel
from recrawl.kernels.online import expm1
from recrawl.kernels.processes import term

# The two estimating equations.
MLE, MOMENTS = 0, 1

# Halley's method takes 3 to 5 steps; 20 mean that rounding keeps it from
# settling.
_MAX_HALLEY_STEPS = 20
# Steps in log(rate) of more than a factor of e^3 = 20 come from a bad start.
_MAX_LOG_STEP = 3.0
# The error after a Halley step is of the order of its cube, 3e-14 here.
_HALLEY_TOLERANCE = 3e-5
# Newton's method doubles the digits of a start that is good to a factor of 2.
_BOUND_STEPS = 4
# Newton from a far bound gains a constant amount a step before it converges.
MAX_NEWTON_STEPS = 200
# The error after a Newton step is of the order of its square, 1e-16 here.
_NEWTON_TOLERANCE = 1e-8

# A sum of which the logarithm has a smaller slope in log(rate) than this is known
# too badly for its root: rounding moves the root by 1e-16 over the slope.
_FLAT = 1e-7
# The rate times the longest interval is at least this, and times the shortest at
# most that: there is a root at 1 / n or more, and at log n or less.
_LOWEST, _HIGHEST = 1e-9, 100.0

_ROUNDING = 1e-15

# Steps of the search for a confidence limit, in log(rate): the largest, which
# keeps exp() finite, and the one that ends it, with an error of its square.
_MAX_LIMIT_STEP = 20.0
_LIMIT_TOLERANCE = 1e-9
# A likelihood that is almost flat gives no useful first guess of a limit's
# distance.
_MAX_FIRST_WIDTH = 4.0

# Step of the trapezoidal rule for a posterior of log(rate), in units of about its
# standard deviation. For a normal density the rule is then exact to 1e-15, for the
# logarithm of a gamma distribution of shape 1, the widest, to 1e-3.
_STEP = 0.75
# The sum ends where a node has this share of it. The density is log-concave, so
# that the nodes beyond have less and less.
_LEAST_SHARE = 1e-5


@compiled
def page_totals(interval, changed):
    """Number of changed crawls, total interval of changed, and of unchanged."""
    n_changed = 0
    t_changed = t_unchanged = 0.0
    for j in range(interval.size):
        # Selections, not branches: which crawls find a change cannot be predicted.
        n_changed += changed[j]
        t_changed += interval[j] if changed[j] else 0.0
        t_unchanged += 0.0 if changed[j] else interval[j]
    return n_changed, t_changed, t_unchanged


@njit(cache=True, error_model="numpy", fastmath=True)
def _log_sum(kind, rate, known, interval, changed):
    """Log of the rate-dependent side of the equation, and two derivatives.

    With r = w / (exp(rate w) - 1) the derivative of r is -r (r + w); with
    r = exp(-rate w) it is -r w. `fastmath` lets the loop use vector
    instructions.
    """
    total = first = second = 0.0
    if kind == MOMENTS:
        for j in range(interval.size):
            w = interval[j]
            r = 1.0 / (1.0 + expm1(rate * w))
            total += r
            first -= r * w
            second += r * w * w
    else:
        total = known / rate
        first = -total / rate
        second = -2.0 * first / rate
        for j in range(interval.size):
            w = interval[j]
            r = w / expm1(rate * w) if changed[j] else 0.0
            total += r
            first -= r * (r + w)
            second += r * (r + w) * (2.0 * r + w)
    first /= total
    return math.log(total), first, second / total - first * first


@compiled
def _root(kind, rate, bound, target, known, interval, changed):
    """Root of log sum = `target`: Halley from `rate`, Newton from `bound`.

    `bound` lies left of the root, see the head of the module. NaN when
    neither converges.
    """
    for _ in range(_MAX_HALLEY_STEPS):
        value, first, second = _log_sum(kind, rate, known, interval, changed)
        # derivatives in log(rate)
        first, second = first * rate, second * rate * rate + first * rate
        step = (target - value) / first
        step /= 1.0 + 0.5 * step * second / first
        if not abs(step) < _MAX_LOG_STEP or -first < _FLAT:
            break
        rate *= math.exp(step)
        if abs(step) <= _HALLEY_TOLERANCE:
            return rate
    rate = bound
    for _ in range(MAX_NEWTON_STEPS):
        value, first, _second = _log_sum(kind, rate, known, interval, changed)
        step = (target - value) / first
        flat = -first * rate < _FLAT
        rate += step
        if abs(step) <= _NEWTON_TOLERANCE * rate and not flat:
            return rate
    return np.nan


@compiled
def _mle_bound(known, n_changed, t_changed, t_unchanged):
    """Lower bound of the MLE, see the head of the module."""
    bound = math.log1p(t_changed / t_unchanged) * n_changed / t_changed
    if known > 0.0:
        # w / (exp(rate w) - 1) is at least 1 / rate - w / 2
        bound = max(bound, (known + n_changed) / (t_unchanged + 0.5 * t_changed))
        w = t_changed / n_changed
        for _ in range(_BOUND_STEPS):
            r = w / math.expm1(bound * w)
            value = known / bound + n_changed * r
            slope = known / (bound * bound) + n_changed * r * (r + w)
            bound += (value - t_unchanged) / slope
    return bound


@compiled
def page_root(kind, known, interval, changed):
    """Root of the equation of one page, which has at least one crawl.

    0 without a change, inf with nothing but changes, NaN if not converged.
    `known` is the number of known changes, which the moments do not take.
    """
    n_changed, t_changed, t_unchanged = page_totals(interval, changed)
    n = interval.size
    if n_changed == 0:
        return known / t_unchanged
    if t_unchanged == 0.0:
        return np.inf
    if kind == MOMENTS:
        bound = math.log(n / (n - n_changed)) * n / (t_changed + t_unchanged)
        target = math.log(n - n_changed)
    else:
        bound = _mle_bound(known, n_changed, t_changed, t_unchanged)
        target = math.log(t_unchanged)
    return _root(kind, bound, bound, target, known, interval, changed)


@parallel
def estimating_equation_roots(interval, changed, offsets, n_known, kind, out):
    """Solve equation `kind` for every page; writes `out`, shape (n_pages,).

    interval, changed, n_known: shape (n_crawls,); offsets: shape (n_pages + 1,).
    0 and inf where degenerate, NaN for a page without crawls, and for one whose
    root was not found; `bisected_moments` finds that of the moments.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        out[i] = np.nan
        if offsets[i + 1] > offsets[i]:
            known = n_known[own].sum()
            out[i] = page_root(kind, known, interval[own], changed[own])


@compiled
def _bisected(interval, n_changed):
    """Root of sum exp(-rate w) = n - n_changed, where w spans many decades.

    Almost all terms of the sum are then 0 or 1, and what decides is below their
    rounding. The equation is therefore written as the terms of the `n_changed`
    longest intervals = what the others lack of 1, whose difference falls in the
    rate; the exponent of the rate is bisected.
    """
    w = np.sort(interval)
    few = w.size - n_changed
    low, high = math.log(_LOWEST / w[-1]), math.log(_HIGHEST / w[0])
    while high - low > _ROUNDING * max(abs(low), abs(high), 1.0):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        excess = 0.0
        for j in range(w.size):
            x = math.exp(middle) * w[j]
            excess += math.expm1(-x) if j < few else math.exp(-x)
        if excess > 0.0:
            low = middle
        else:
            high = middle
    return math.exp(middle)


@parallel
def bisected_moments(interval, changed, offsets, out):
    """Write the roots of the moments where `out` is NaN and a page has crawls.

    A kernel of its own, as such pages are rare: to compile the sort takes 1.5 s, and
    made every kernel that contained it slower to compile.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        if np.isnan(out[i]) and offsets[i + 1] > offsets[i]:
            out[i] = _bisected(interval[own], changed[own].sum())


@parallel
def told_roots(interval, changed, offsets, age, count, out):
    """MLE of every page from ages and counts; writes `out`, shape (n_pages,).

    The same as `estimating_equation_roots` of the terms of the likelihood, but for
    rounding. Only one page's are made at a time, and crawls that enter by their sum
    become one: the search for the root passes over the other crawls alone.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        n = offsets[i + 1] - offsets[i]
        w, bits = np.empty(n + 1), np.ones(n + 1, np.bool_)
        n_bits, known, quiet = 0, 0.0, 0.0
        for j in range(offsets[i], offsets[i + 1]):
            time, bit, reported = term(interval, changed, age, count, j)
            w[n_bits] = time  # the next crawl overwrites it if it is in the sum
            n_bits += 1 if bit else 0
            quiet += 0.0 if bit else time
            known += reported
        w[n_bits], bits[n_bits] = quiet, False
        if known > 0.0:
            out[i] = page_root(MLE, known, w[: n_bits + 1], bits[: n_bits + 1])
        else:  # exactly what bits give
            out[i] = page_root(MLE, 0.0, interval[own], changed[own]) if n else np.nan


@compiled
def _log_likelihood(x, t_unchanged, known, interval, changed):
    """Log-likelihood at rate e^x, its slope and its curvature in x."""
    rate = math.exp(x)
    curvature = -rate * t_unchanged
    value, slope = known * x + curvature, known + curvature
    for j in range(interval.size):
        if changed[j]:
            a = rate * interval[j]
            p = -math.expm1(-a)
            r = a * math.exp(-a) / p
            value += math.log(p)
            slope += r
            curvature += r * (1.0 - a - r)
    return value, slope, curvature


@compiled
def _limit(x, level, t_unchanged, known, interval, changed):
    """Rate at which the log-likelihood is `level`, by Newton from e^x."""
    crawls = t_unchanged, known, interval, changed
    for _ in range(MAX_NEWTON_STEPS):
        value, slope, _curvature = _log_likelihood(x, *crawls)
        step = (level - value) / slope
        x += min(max(step, -_MAX_LIMIT_STEP), _MAX_LIMIT_STEP)
        if abs(step) <= _LIMIT_TOLERANCE:
            return math.exp(x)
    return np.nan


@compiled
def _page_limits(rate, drop, drop_degenerate, known, interval, changed):
    """Lower and upper limit of one page; its MLE is `rate`."""
    n_changed, t_changed, t_unchanged = page_totals(interval, changed)
    if math.isnan(rate):
        return np.nan, np.nan
    if rate == 0.0:
        return 0.0, drop_degenerate / t_unchanged
    if math.isinf(rate):
        if n_changed == 0:  # ages of 0 are all that is known
            return 0.0, np.inf
        x = math.log(n_changed / t_changed)
        return _limit(x, -drop_degenerate, 0.0, 0.0, interval, changed), np.inf
    x = math.log(rate)
    crawls = t_unchanged, known, interval, changed
    value, _slope, curvature = _log_likelihood(x, *crawls)
    # where a parabola of this curvature has fallen by `drop`
    width = min(math.sqrt(-2.0 * drop / curvature), _MAX_FIRST_WIDTH)
    level = value - drop
    return _limit(x - width, level, *crawls), _limit(x + width, level, *crawls)


@parallel
def likelihood_limits(
    rate, drop, drop_degenerate, interval, changed, offsets, n_known, low, high
):
    """Where the log-likelihood is `drop` below its maximum, on either side.

    The maximum is at `rate`, the MLE. On a degenerate page the supremum of the
    log-likelihood is 0, at rate 0 or inf, and the only limit is where it has
    fallen by `drop_degenerate`. These three and `low` and `high`, which are
    written, have the shape (n_pages,); NaN where not converged and for pages
    without crawls.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        crawls = n_known[own].sum(), interval[own], changed[own]
        drops = drop[i], drop_degenerate[i]
        low[i], high[i] = _page_limits(rate[i], *drops, *crawls)


@compiled
def _crawls(i, interval, changed, offsets, n_known):
    """The crawls of page i, as `_log_likelihood` takes them."""
    own = slice(offsets[i], offsets[i + 1])
    _, _, t_unchanged = page_totals(interval[own], changed[own])
    return t_unchanged, n_known[own].sum(), interval[own], changed[own]


@parallel
def log_information(rate, interval, changed, offsets, n_known, out):
    """Minus the curvature of the log-likelihood at `rate`; writes `out`.

    Both have the shape (n_pages,); 0 for a page without crawls.
    """
    for i in prange(offsets.size - 1):
        crawls = _crawls(i, interval, changed, offsets, n_known)
        out[i] = -_log_likelihood(math.log(rate[i]), *crawls)[2]


@compiled
def _mean_log_rate(x, dispersion, t_unchanged, known, interval, changed):
    """Mean of the log rate in the posterior whose mode is the rate e^x."""
    if t_unchanged == 0.0:
        return np.inf
    crawls = t_unchanged, known, interval, changed
    top, _slope, curvature = _log_likelihood(x, *crawls)
    # about the standard deviation of the logarithm of a gamma distribution, which
    # is the root of trigamma(1 + information)
    step = _STEP / math.sqrt(0.6 - curvature / dispersion)
    total, moment = 1.0, 0.0
    for direction in (-step, step):
        shift, weight = 0.0, np.inf
        while weight > _LEAST_SHARE * total:
            shift += direction
            value = _log_likelihood(x + shift, *crawls)[0]
            weight = math.exp((value - top) / dispersion + shift)
            total += weight
            moment += weight * shift
    return x + moment / total


@parallel
def mean_log_rate(rate, dispersion, interval, changed, offsets, n_known, out):
    """Posterior mean of the log rate, all rates equally likely before; writes `out`.

    The mode is at `rate`; the likelihood is raised to the power 1 / `dispersion`.
    All three have the shape (n_pages,).
    """
    for i in prange(offsets.size - 1):
        crawls = _crawls(i, interval, changed, offsets, n_known)
        out[i] = _mean_log_rate(math.log(rate[i]), dispersion[i], *crawls)


@compiled
def _dispersion(rate, n_blocks, interval, changed, n_known):
    """Dispersion of one page and its degrees of freedom, see `dispersions`."""
    score, expected = np.zeros(n_blocks), np.zeros(n_blocks)
    total = observed = n_changes = 0.0
    n_unchanged = 0
    for j in range(interval.size):  # the information that is cut into blocks
        a = rate * interval[j]
        total += a * a / math.expm1(a) if a > 0.0 else 0.0
    before = 0.0
    for j in range(interval.size):
        a = rate * interval[j]
        r = a / math.expm1(a) if a > 0.0 else 1.0
        # 1e-9: equal crawls fall into equal blocks, whatever the rounding
        block = min(int(n_blocks * before / total + 1e-9), n_blocks - 1)
        before += a * r
        expected[block] += a * r
        if changed[j]:
            n_changes += 1.0
            score[block] += r
            observed += r * (a + r - 1.0)
        else:
            n_unchanged += 1
            n_changes += n_known[j]
            score[block] += n_known[j] - a
            observed += a
    share = expected / total
    concentration = np.sum(share * share)
    # 1e-9: equal blocks are whole in number but for rounding
    freedom = math.floor(min(1.0 / concentration + 1e-9, n_changes, n_unchanged)) - 1
    if not freedom > 0.0 or not observed > 0.0:
        return 1.0, 0.0
    spread = np.sum((score - share * score.sum()) ** 2)
    return spread / (observed * (1.0 - concentration)), freedom


@parallel
def dispersions(
    rate, n_blocks, interval, changed, offsets, n_known, dispersion, freedom
):
    """Dispersion of the score of each page, and its degrees of freedom.

    The scores of blocks of neighbouring crawls are compared with the information;
    a block begins where the expected information before it passes a multiple of
    its mean. Writes `dispersion` and `freedom`, shape (n_pages,); 1 and 0 where
    nothing is known.
    """
    for i in prange(offsets.size - 1):
        dispersion[i], freedom[i] = 1.0, 0.0
        own = slice(offsets[i], offsets[i + 1])
        if offsets[i + 1] > offsets[i] and 0.0 < rate[i] < np.inf:
            crawls = interval[own], changed[own], n_known[own]
            dispersion[i], freedom[i] = _dispersion(rate[i], n_blocks, *crawls)
