"""Likelihoods on a grid of change rates, page by page.

With thousands of crawls the likelihood is below the smallest number, on the whole
grid or where it is largest, so that its logarithm is added up, and each page's are
then scaled to the sum 1. A logarithm takes as long as all else that is done for a
crawl: the probabilities of changes are multiplied until their product is tiny, and
then its logarithm is taken.

The kernels draw no random numbers and check nothing.
"""

import math

import numpy as np

from recrawl.compiled import compiled
from recrawl.rates.likelihood_kernels import page_of

# So far above the smallest number, 1e-308, that one factor more leaves the
# product above it.
_TINY = 1e-50


@compiled
def _likelihood(unchanged_time, known, interval, rate, row):
    """Likelihood of one page on the grid of `rate`, into `row`."""
    for k in range(rate.size):
        log = known * math.log(rate[k]) - rate[k] * unchanged_time
        product, time, probability = 1.0, 0.0, 0.0
        for w in interval:
            if w != time:  # most crawlers keep to their intervals
                time = w
                probability = -math.expm1(-rate[k] * time)
            product *= probability
            if product < _TINY:
                log += math.log(product)
                product = 1.0
        row[k] = log + math.log(product)
    row[:] = np.exp(row - row.max())
    row /= row.sum()


@compiled
def likelihoods(interval, changed, offsets, n_known, rate, out):
    """Likelihood of every page at every rate, of sum 1; shape (n_pages, n_grid)."""
    sifted = np.empty(interval.size)
    for i in range(offsets.size - 1):
        page = page_of(i, interval, changed, offsets, n_known, sifted)
        _likelihood(*page, rate, out[i])
