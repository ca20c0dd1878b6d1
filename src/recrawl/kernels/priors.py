"""Posteriors on a grid of change rates, page by page.

The posterior is the prior times the likelihood of every crawl, on each point
of the grid. With thousands of crawls the likelihood is below the smallest
number, on the whole grid or where it is largest, so that its logarithm is
added up; the posterior is then relative to its largest entry. A logarithm
takes as long as all else that is done for a crawl: the probabilities of changes
are multiplied until their product is tiny, and then its logarithm is taken.

A row that is 0 everywhere becomes NaN: the history is impossible under the
prior. The kernels draw no random numbers and check nothing.
"""

import math

import numpy as np
from numba import prange

from recrawl.kernels import compiled, parallel
from recrawl.kernels.batch import page_totals

# So far above the smallest number, 1e-308, that one factor more leaves the
# product above it.
_TINY = 1e-50


@compiled
def _posterior(interval, changed, known, rate, prior, row):
    """Posterior of one page, into `row`; all on the grid of `rate`."""
    _n_changed, _t_changed, t_unchanged = page_totals(interval, changed)
    most = -np.inf
    for k in range(rate.size):
        log, product = math.log(prior[k]) - rate[k] * t_unchanged, 1.0
        if known > 0.0:  # else a rate of 0 would make 0 log(0)
            log += known * math.log(rate[k])
        time = probability = 0.0
        for j in range(interval.size):
            if changed[j]:
                if interval[j] != time:  # most crawlers keep to their intervals
                    time = interval[j]
                    probability = -math.expm1(-rate[k] * time)
                product *= probability
                if product < _TINY:
                    log += math.log(product)
                    product = 1.0
        row[k] = log + math.log(product)
        most = max(most, row[k])
    for k in range(rate.size):
        row[k] = math.exp(row[k] - most)
    row /= row.sum()


@parallel
def grid_posteriors(interval, changed, offsets, n_known, rate, prior, posterior):
    """Prior times likelihood of every page, of sum 1; writes `posterior`.

    rate: shape (n_grid,); prior: (1, n_grid) for all pages or
    (n_pages, n_grid); posterior: (n_pages, n_grid). NaN where the likelihood
    is 0 wherever the prior is positive.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        row = np.int64(i) if prior.shape[0] > 1 else 0
        crawls = interval[own], changed[own], n_known[own].sum()
        _posterior(*crawls, rate, prior[row], posterior[i])
