"""Freshness and harmonic penalty of one page, in closed form.

Ratios and differences are written so that no digits are lost where crawls are
rare or frequent (expm1, log1p), and the limits are explicit: a page that never
changes is fresh whether or not it is crawled, and one that changes and is
never crawled is stale in the long run. Each of these kernels is a NumPy ufunc of
change rates and crawl rates, which broadcast.

`empirical_crawl_values` works page by page, on the ages of changes.
"""

import math

import numpy as np
from numba import prange

from recrawl.kernels import compiled, parallel, ufunc

# Probability that is left by rounding when the last age was subtracted.
_ROUNDING = 1e-12
# Below this x, (1 - exp(-x)) / x is 1 to two rounding errors.
_FRESH = 1e-15


@ufunc("f8(f8,f8)")
def poisson_freshness(change_rate, crawl_rate):
    """crawl_rate / (crawl_rate + change_rate).

    1 for a page that never changes.
    """
    return crawl_rate / (crawl_rate + change_rate) if change_rate > 0.0 else 1.0


@ufunc("f8(f8,f8)")
def interval_freshness(change_rate, crawl_rate):
    """(1 - exp(-x)) / x with x = change_rate / crawl_rate.

    1 for a page that never changes.
    """
    if change_rate == 0.0:
        return 1.0
    if crawl_rate == 0.0:
        return 0.0
    if change_rate < _FRESH * crawl_rate:  # rounding must not lead above 1
        return 1.0
    return -math.expm1(-change_rate / crawl_rate) * crawl_rate / change_rate


@compiled
def _empirical_crawl_value(span, changed, elapsed, value):
    """Sum of ages times their probabilities by Kaplan and Meier, into `value`.

    The probability of each age is the probability of no smaller age, divided by
    the number of crawls whose span is at least as long. Where an age and a span
    without a change are equal, the age comes first.
    """
    order = np.argsort(span)
    above, total, k = 1.0, 0.0, 0
    for j in range(elapsed.size):
        while k < span.size and span[order[k]] < elapsed[j]:
            # all spans of this length, of which `n` are ages
            first, n, length = k, 0, span[order[k]]
            while k < span.size and span[order[k]] == length:
                n += changed[order[k]]
                k += 1
            probability = above * n / (span.size - first)
            above -= probability
            total += probability * length
        # beyond all spans the rest of the probability lies anywhere
        beyond = k == span.size and above > _ROUNDING
        value[j] = np.nan if beyond else total


@parallel
def empirical_crawl_values(span, changed, offsets, elapsed, value):
    """Crawl value of every page; writes `value`, shape (n_pages, n_elapsed).

    span: shape (n_crawls,), the age of a change or the interval without one;
    elapsed: rising.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        _empirical_crawl_value(span[own], changed[own], elapsed, value[i])
