"""Posteriors on a grid of change rates, page by page.

The posterior is the prior times the likelihood of every crawl, on each point
of the grid. The product of thousands of probabilities would underflow to 0 on
the whole grid, so it is rescaled on the way, which changes nothing because
the posterior is divided by its sum in the end:

- unchanged crawls multiply by exp(-rate t) with t their total time; the factor
  used is relative to the least rate that the prior allows, whose own factor is
  then 1;
- each changed crawl multiplies by 1 - exp(-rate w), at most 1; when the
  largest entry has become tiny, the row is divided by it.

A row that is 0 everywhere becomes NaN: the history is impossible under the
prior. The kernels draw no random numbers and check nothing.
"""

import math

import numpy as np
from numba import prange

from paperlib._kernels import compiled, parallel
from paperlib._kernels.batch import page_totals

# Far above the smallest number, 1e-308, so that entries 1e-250 times the
# largest still count; far below 1, so that a row is rarely divided.
_TINY = 1e-50


@compiled
def _posterior(interval, changed, rate, prior, row):
    """Posterior of one page, into `row`; all on the grid of `rate`."""
    n = rate.size
    _n_changed, _t_changed, t_unchanged = page_totals(interval, changed)
    # A loop compiles in half the time of an assignment of one array to another.
    most = prior.max()
    for k in range(n):
        row[k] = prior[k] / most
    if t_unchanged > 0.0:
        first = 0
        while first < n - 1 and prior[first] == 0.0:
            first += 1
        for k in range(first, n):
            row[k] *= math.exp((rate[first] - rate[k]) * t_unchanged)
    for j in range(interval.size):
        if changed[j]:
            most = 0.0
            for k in range(n):
                row[k] *= -math.expm1(-rate[k] * interval[j])
                most = max(most, row[k])
            if most < _TINY:
                for k in range(n):
                    row[k] /= most
    row /= row.sum()


@parallel
def grid_posteriors(interval, changed, offsets, rate, prior, posterior):
    """Prior times likelihood of every page, of sum 1; writes `posterior`.

    rate: shape (n_grid,); prior: (1, n_grid) for all pages or
    (n_pages, n_grid); posterior: (n_pages, n_grid). NaN where the likelihood
    is 0 wherever the prior is positive.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        row = np.int64(i) if prior.shape[0] > 1 else 0
        _posterior(interval[own], changed[own], rate, prior[row], posterior[i])
