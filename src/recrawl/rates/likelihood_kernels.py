"""The likelihood of histories, page by page: its maximum, its limits, its spread.

A crawl that ends an interval w finds a change with probability
1 - exp(-rate w); changes that are known one by one add a factor rate each (see
`History.likelihood_terms`).

The maximum is the root that `paperlib.estimators.batch.mle_root` finds.

The log-likelihood is concave in the logarithm of the rate, so that Newton's
method for the two rates at which it has fallen by a given amount converges from any
point on the right side of the maximum.

The kernels draw no random numbers and check nothing.
"""

import math

import numpy as np

from paperlib.estimators.batch import mle_root
from recrawl.compiled import compiled

# Steps of the search for a limit, in log(rate): how many from a far start, the
# largest, which keeps exp() finite, and the one that ends it, with an error of its
# square.
_MOST_STEPS = 200
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

# Blocks of a history: long ones hold the dependence of their crawls, many blocks
# estimate the dispersion of one page well. Of 4, 5 and 8, 4 covered best where changes
# cluster over some ten crawls, and elsewhere as well (benchmarks/coverage.py).
_N_BLOCKS = 4


@compiled
def unchanged_time(interval, changed):
    """Total interval of the crawls that found no change."""
    time = 0.0
    for j in range(interval.size):
        # A selection, not a branch: which crawls find a change cannot be predicted.
        time += 0.0 if changed[j] else interval[j]
    return time


@compiled
def _sift(interval, changed, begin, end, out):
    """Write the changed intervals from begin to end into `out`, of at least this size.

    Returns how many there are, and the sum of the other intervals.
    """
    n = 0
    unchanged_time = 0.0
    for k in range(begin, end):
        # Selections, not branches: which crawls find a change cannot be predicted.
        out[n] = interval[k]
        n += changed[k]
        unchanged_time += 0.0 if changed[k] else interval[k]
    return n, unchanged_time


@compiled
def maxima(interval, changed, offsets, n_known, out):
    """Rate of the largest likelihood of every page; writes `out`, shape (n_pages,).

    interval, changed, n_known: shape (n_crawls,); offsets: shape (n_pages + 1,).
    0 without a change, inf with nothing but changes, NaN without crawls.
    """
    sifted = np.empty(interval.size)
    for i in range(out.size):
        begin, end = offsets[i], offsets[i + 1]
        n, time = _sift(interval, changed, begin, end, sifted)
        out[i] = mle_root(sifted[:n], time, n_known[begin:end].sum(), 0.0)


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
    for _ in range(_MOST_STEPS):
        value, slope, _curvature = _log_likelihood(x, *crawls)
        step = (level - value) / slope
        x += min(max(step, -_MAX_LIMIT_STEP), _MAX_LIMIT_STEP)
        if abs(step) <= _LIMIT_TOLERANCE:
            return math.exp(x)
    return np.nan


@compiled
def _crawls(i, interval, changed, offsets, n_known):
    """The crawls of page i, as `_log_likelihood` takes them."""
    own = slice(offsets[i], offsets[i + 1])
    t_unchanged = unchanged_time(interval[own], changed[own])
    return t_unchanged, n_known[own].sum(), interval[own], changed[own]


@compiled
def limits(rate, drop, interval, changed, offsets, n_known, low, high):
    """Where the log-likelihood is `drop` below its maximum, on either side.

    The maximum is at `rate`, positive and finite. All four are of shape (n_pages,),
    of which `low` and `high` are written; NaN where not converged.
    """
    for i in range(offsets.size - 1):
        crawls = _crawls(i, interval, changed, offsets, n_known)
        x = math.log(rate[i])
        value, _slope, curvature = _log_likelihood(x, *crawls)
        # where a parabola of this curvature has fallen by `drop`
        width = min(math.sqrt(-2.0 * drop[i] / curvature), _MAX_FIRST_WIDTH)
        low[i] = _limit(x - width, value - drop[i], *crawls)
        high[i] = _limit(x + width, value - drop[i], *crawls)


@compiled
def log_information(rate, interval, changed, offsets, n_known, out):
    """Minus the curvature of the log-likelihood at `rate`; writes `out`.

    Both have the shape (n_pages,); 0 for a page without crawls.
    """
    for i in range(offsets.size - 1):
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


@compiled
def mean_log_rate(rate, dispersion, interval, changed, offsets, n_known, out):
    """Posterior mean of the log rate, all rates equally likely before; writes `out`.

    The mode is at `rate`; the likelihood is raised to the power 1 / `dispersion`.
    All three have the shape (n_pages,).
    """
    for i in range(offsets.size - 1):
        crawls = _crawls(i, interval, changed, offsets, n_known)
        out[i] = _mean_log_rate(math.log(rate[i]), dispersion[i], *crawls)


@compiled
def _dispersion(rate, interval, changed, n_known):
    """Dispersion of one page and its degrees of freedom, see `dispersions`."""
    score, expected = np.zeros(_N_BLOCKS), np.zeros(_N_BLOCKS)
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
        block = min(int(_N_BLOCKS * before / total + 1e-9), _N_BLOCKS - 1)
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


@compiled
def dispersions(rate, interval, changed, offsets, n_known, dispersion, freedom):
    """Dispersion of the score of each page, and its degrees of freedom.

    The scores of blocks of neighbouring crawls are compared with the information;
    a block begins where the expected information before it passes a multiple of
    its mean. Writes `dispersion` and `freedom`, shape (n_pages,); 1 and 0 where
    nothing is known.
    """
    for i in range(offsets.size - 1):
        dispersion[i], freedom[i] = 1.0, 0.0
        own = slice(offsets[i], offsets[i + 1])
        if offsets[i + 1] > offsets[i] and 0.0 < rate[i] < np.inf:
            crawls = interval[own], changed[own], n_known[own]
            dispersion[i], freedom[i] = _dispersion(rate[i], *crawls)
