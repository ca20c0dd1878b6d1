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

# A rate is within its limits, of level 0.95, if its log-likelihood is at most this much
# below the maximum: half of the quantile of the chi-squared distribution.
_DROP = 1.9207294103470614

# A logarithm takes as long as all else that is done for a crawl: the probabilities of
# changes are multiplied until their product is below this, so far above the smallest
# number, 1e-308, that one factor more leaves the product above it.
_TINY = 1e-50

# Steps of the search for a limit, in log(rate): how many from a far start, the
# largest, which keeps exp() finite, and the one that ends it, with an error of its
# square.
_MOST_STEPS = 200
_MAX_LIMIT_STEP = 20.0
_LIMIT_TOLERANCE = 1e-9
# A likelihood that is almost flat gives no useful first guess of a limit's
# distance.
_MAX_FIRST_WIDTH = 4.0

# Blocks of a history: long ones hold the dependence of their crawls, many blocks
# estimate the dispersion of one page well. Of 4, 5 and 8, 4 covered best where changes
# cluster over some ten crawls, and elsewhere as well (benchmarks/coverage.py).
_N_BLOCKS = 4

# Step of the trapezoidal rule for a posterior of log(rate), in units of about its
# standard deviation. For a normal density the rule is then exact to 1e-15, for the
# logarithm of a gamma distribution of shape 1, the widest, to 1e-3.
_STEP = 0.75
# The sum ends where a node has this share of it. The density is log-concave, so
# that the nodes beyond have less and less.
_LEAST_SHARE = 1e-5


@compiled
def page_of(i, interval, changed, offsets, n_known, sifted):
    """Time without a change, number of known changes, changed intervals of page i.

    The latter are written to the beginning of `sifted`, an array for all crawls.
    """
    n = 0
    unchanged_time = known = 0.0
    for k in range(offsets[i], offsets[i + 1]):
        # Selections, not branches: which crawls find a change cannot be predicted.
        sifted[n] = interval[k]
        n += changed[k]
        unchanged_time += 0.0 if changed[k] else interval[k]
        known += n_known[k]
    return unchanged_time, known, sifted[:n]


@compiled
def maxima(interval, changed, offsets, n_known, out):
    """Rate of the largest likelihood of every page; writes `out`, shape (n_pages,).

    interval, changed, n_known: shape (n_crawls,); offsets: shape (n_pages + 1,).
    0 without a change, inf with nothing but changes, NaN without crawls.
    """
    sifted = np.empty(interval.size)
    for i in range(out.size):
        page = page_of(i, interval, changed, offsets, n_known, sifted)
        unchanged_time, known, intervals = page
        out[i] = mle_root(intervals, unchanged_time, known, 0.0)


@compiled
def _log_likelihood(x, unchanged_time, known, interval):
    """Log-likelihood of a page at rate e^x, its slope and its curvature in x."""
    rate = math.exp(x)
    curvature = -rate * unchanged_time
    value = known * x + curvature
    slope = known + curvature
    product = 1.0
    before = p = r = bend = 0.0
    for w in interval:
        if w != before:  # most crawlers keep to their intervals
            before = w
            a = rate * w
            p = -math.expm1(-a)
            r = a * (1.0 - p) / p
            bend = r * (1.0 - a - r)
        slope += r
        curvature += bend
        product *= p
        if product < _TINY:
            value += math.log(product)
            product = 1.0
    return value + math.log(product), slope, curvature


@compiled
def likelihoods(log_rate, interval, changed, offsets, n_known, out):
    """Likelihood of every page at every rate, of sum 1; shape (n_pages, n_grid).

    With thousands of crawls the likelihood is below the smallest number, on the whole
    grid or where it is largest, so that its logarithm is added up first.
    """
    sifted = np.empty(interval.size)
    for i in range(offsets.size - 1):
        page = page_of(i, interval, changed, offsets, n_known, sifted)
        for k in range(log_rate.size):
            out[i, k] = _log_likelihood(log_rate[k], *page)[0]
        out[i] = np.exp(out[i] - out[i].max())
        out[i] /= out[i].sum()


@compiled
def log_information(rate, interval, changed, offsets, n_known, out):
    """Minus the curvature of the log-likelihood at `rate`; writes `out`.

    Both have the shape (n_pages,); 0 for a page without crawls.
    """
    sifted = np.empty(interval.size)
    for i in range(out.size):
        page = page_of(i, interval, changed, offsets, n_known, sifted)
        out[i] = -_log_likelihood(math.log(rate[i]), *page)[2]


@compiled
def _limit(x, level, page):
    """Rate at which the log-likelihood is `level`, by Newton from e^x."""
    for _ in range(_MOST_STEPS):
        value, slope, _curvature = _log_likelihood(x, *page)
        step = (level - value) / slope
        x += min(max(step, -_MAX_LIMIT_STEP), _MAX_LIMIT_STEP)
        if abs(step) <= _LIMIT_TOLERANCE:
            return math.exp(x)
    return np.nan


@compiled
def _mean(x, top, step, dispersion, page):
    """Mean of the log rate in the posterior whose mode is the rate e^x."""
    if page[0] == 0.0:
        return np.inf
    total, moment = 1.0, 0.0
    for direction in (-step, step):
        shift, weight = 0.0, np.inf
        while weight > _LEAST_SHARE * total:
            shift += direction
            value = _log_likelihood(x + shift, *page)[0]
            weight = math.exp((value - top) / dispersion + shift)
            total += weight
            moment += weight * shift
    return x + moment / total


@compiled
def spread(rate, dispersion, interval, changed, offsets, n_known, low, high, mean):
    """Limits of the rate of every page, and the posterior mean of its logarithm.

    The log-likelihood has its maximum at `rate`, positive and finite. It is divided by
    `dispersion`. The limits are where it is `_DROP` below the maximum, NaN where not
    converged. Writes the last three; all numbers of pages are of shape (n_pages,).
    """
    sifted = np.empty(interval.size)
    for i in range(rate.size):
        page = page_of(i, interval, changed, offsets, n_known, sifted)
        x = math.log(rate[i])
        top, _slope, curvature = _log_likelihood(x, *page)
        drop = _DROP * dispersion[i]
        # where a parabola of this curvature has fallen by `drop`
        width = min(math.sqrt(-2.0 * drop / curvature), _MAX_FIRST_WIDTH)
        low[i] = _limit(x - width, top - drop, page)
        high[i] = _limit(x + width, top - drop, page)
        # about the standard deviation of the logarithm of a gamma distribution, which
        # is the root of trigamma(1 + information)
        step = _STEP / math.sqrt(0.6 - curvature / dispersion[i])
        mean[i] = _mean(x, top, step, dispersion[i], page)


@compiled
def _dispersion(x, changed, n_known):
    """Dispersion of one page and its degrees of freedom, see `dispersions`."""
    r = x / np.expm1(x)
    information = x * r
    total = information.sum()
    if not total > 0.0:  # no crawls, or a rate that tells nothing
        return 1.0, 0.0
    before = np.cumsum(information) - information
    # 1e-9: equal crawls fall into equal blocks, whatever the rounding
    block = (_N_BLOCKS * before / total + 1e-9).astype(np.int64)
    block = np.minimum(block, _N_BLOCKS - 1)
    share = np.bincount(block, information, _N_BLOCKS) / total
    score = np.bincount(block, np.where(changed, r, n_known - x), _N_BLOCKS)
    observed = np.where(changed, r * (x + r - 1.0), x).sum()
    concentration = np.sum(share * share)
    n = changed.sum()
    # 1e-9: equal blocks are whole in number but for rounding
    least = min(1.0 / concentration + 1e-9, n + n_known.sum(), x.size - n)
    if least < 2.0 or not observed > 0.0:
        return 1.0, 0.0
    spread = np.sum((score - share * score.sum()) ** 2)
    return spread / (observed * (1.0 - concentration)), math.floor(least) - 1.0


@compiled
def dispersions(rate, interval, changed, offsets, n_known, dispersion, freedom):
    """Dispersion of the score of each page, and its degrees of freedom.

    The scores of blocks of neighbouring crawls are compared with the information;
    a block begins where the expected information before it passes a multiple of
    its mean. Writes `dispersion` and `freedom`, shape (n_pages,); 1 and 0 where
    nothing is known.
    """
    for i in range(rate.size):
        own = slice(offsets[i], offsets[i + 1])
        x = rate[i] * interval[own]
        dispersion[i], freedom[i] = _dispersion(x, changed[own], n_known[own])
