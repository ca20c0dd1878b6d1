r"""Periodic rates: the likelihood of bits, stale time, and the best cycle.

**Likelihood.** A profile is constant on n equal bins of a period. Call `bin` and
`fraction` the place of a time in its period. The time that the first f of bin b
and all bins before it take is a mean of two steps, 1 - f times the bins below b
and f times the bins below b + 1. So the exposure of an interval, the time that it
spends in each bin, is a combination of five such steps, however long it is: two
of its end, two of its start, and whole periods. Sums over crawls of exposures,
and of their outer products, are collected in this basis at a cost that does not
depend on the number of bins, and turned into sums for bins at the end.

**Stale time.** Between a crawl and the next, the expected number of changes x
grows linearly on each bin. A piece on which x rises by h is stale for the share
1 - exp(-x) (1 - exp(-h)) / h of its length. Whole periods repeat the first one,
with a geometric series of weights.

**Best cycle.** The crawls of a period at the places 0..m-1 of a grid: for every
first crawl, least costs from it to each later place by 1, 2, ... intervals,
extended by one interval at a time.

The kernels draw no random numbers and check no arguments.
"""

import math

import numpy as np

from recrawl.kernels import compiled
from recrawl.kernels.objectives import excess

_N_STEPS = 5


@compiled
def _steps(first, bin, fraction, periods, n_bins, index, weight):
    """The interval between two ends as five steps, the last one whole periods."""
    for k in range(2):
        end, sign = first + k, 2.0 * k - 1.0
        index[2 * k], weight[2 * k] = bin[end], sign * (1.0 - fraction[end])
        index[2 * k + 1], weight[2 * k + 1] = bin[end] + 1, sign * fraction[end]
    index[4], weight[4] = n_bins, periods[first + 1] - periods[first]


@compiled
def _add_outer(scale, index, weight, out):
    """Add to `out` half the scaled outer product of a sparse vector with itself.

    The other half is the transpose.
    """
    for i in range(index.size):
        row = scale * weight[i]
        for j in range(i):
            out[index[i], index[j]] += row * weight[j]
        out[index[i], index[i]] += 0.5 * row * weight[i]


@compiled
def log_likelihood(
    change_rate, operational, changed, offsets, ends, gradient, curvature
):
    """Log-likelihood, and its first two derivatives in the profile, in steps.

    operational, changed: shape (n_crawls,); ends: bin, fraction and periods of the
    start and all crawls of every page, shape (n_crawls + n_pages,). Adds to
    `gradient`, shape (n_bins + 1,), and to `curvature`, the same squared. These
    are those of the log-likelihood and of its negative, the curvature together
    with its transpose.
    """
    bin, fraction, periods = ends
    index, weight = np.empty(_N_STEPS, np.int64), np.empty(_N_STEPS)
    total = 0.0
    for i in range(offsets.size - 1):
        rate = change_rate[i]
        for j in range(offsets[i], offsets[i + 1]):
            _steps(i + j, bin, fraction, periods, gradient.size - 1, index, weight)
            x = rate * operational[j]
            if changed[j]:
                seen = -math.expm1(-x)
                slope = rate * (1.0 - seen) / seen
                total += math.log(seen)
                _add_outer(slope * rate / seen, index, weight, curvature)
            else:
                slope = -rate
                total -= x
            for k in range(_N_STEPS):
                gradient[index[k]] += slope * weight[k]
    return total


@compiled
def contrasts(interval, offsets, ends, gram):
    """Gram matrix of what the bits determine of a profile at unknown rates.

    The sum of outer products of differences: between the shares of an interval in
    the bins, and those of the next interval of the page. In steps; added to
    `gram`, of which the transpose is the other half.
    """
    bin, fraction, periods = ends
    index, weight = np.empty(2 * _N_STEPS, np.int64), np.empty(2 * _N_STEPS)
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1] - 1):
            for k in range(2):
                own = slice(k * _N_STEPS, (k + 1) * _N_STEPS)
                place = bin, fraction, periods, gram.shape[0] - 1
                _steps(i + j + k, *place, index[own], weight[own])
                weight[own] *= (2.0 * k - 1.0) / interval[j + k]
            _add_outer(1.0, index, weight, gram)


@compiled
def _within_a_period(weight, demand, width, rate, x, start, length):
    """Stale time of one stretch, at whose start x changes are expected."""
    place = start / width
    b = math.floor(place)
    left_of_bin = width * (1.0 - (place - b))
    b %= weight.size
    total = 0.0
    while length > 0.0:
        piece = min(left_of_bin, length)
        h = rate * weight[b] * piece
        # 1 - exp(-x) (1 - exp(-h)) / h, without cancellation
        late = math.exp(-x) * excess(h) / h if h > 0.0 else 0.0
        total += demand[b] * piece * (late - math.expm1(-x))
        x += h
        length -= piece
        left_of_bin = width
        b = (b + 1) % weight.size
    return total


@compiled
def stale_times(weight, demand, width, change_rate, start, end, out):
    """Stale time of copies crawled at `start`, up to `end`; all of one shape (n,).

    `weight` and `demand`, of the bins, have mean 1.
    """
    period = width * weight.size
    for i in range(out.size):
        rate, length = change_rate[i], end[i] - start[i]
        whole = math.floor(length / period)
        total = x = 0.0
        if whole > 0:
            x = rate * period * whole
            # the sum of exp(-rate period j), j = 0..whole - 1
            fresh = math.expm1(-x) / math.expm1(-rate * period) if rate > 0.0 else whole
            once = _within_a_period(weight, demand, width, rate, 0.0, start[i], period)
            total = period * (whole - fresh) + once * fresh
        rest = length - whole * period
        out[i] = total + _within_a_period(
            weight, demand, width, rate, x, start[i], rest
        )


@compiled
def best_cycle(cost, chosen):
    """Least cost of a cycle through the grid; writes its places to `chosen`.

    cost: shape (m, m + 1), of an interval from a place over a number of steps.
    chosen: shape (n_crawls,).
    """
    m, n_crawls = cost.shape[0], chosen.size
    least = np.inf
    total = np.empty((n_crawls + 1, m + 1))  # by intervals, and steps since the first
    for first in range(m):
        total[:] = np.inf
        total[0, 0] = 0.0
        for n in range(n_crawls):
            for p in range(n, m):
                row = cost[(first + p) % m]
                before = total[n, p]
                for q in range(p + 1, m + 1):
                    total[n + 1, q] = min(total[n + 1, q], before + row[q - p])
        if total[n_crawls, m] >= least:
            continue
        least = total[n_crawls, m]
        q = m
        for n in range(n_crawls - 1, -1, -1):  # which place led there
            for p in range(n, q):
                if total[n, p] + cost[(first + p) % m, q - p] == total[n + 1, q]:
                    q = p
                    break
            chosen[n] = (first + q) % m
    return least
