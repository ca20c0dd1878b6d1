"""Posteriors on a grid of change rates, page by page. They draw no random numbers and check nothing."""

import math

import numpy as np
from numba import njit, prange


@njit(cache=True, error_model="numpy")
def _posterior(interval, changed, rate, before, row):
    n = rate.size
    unchanged = 0.0
    for j in range(interval.size):
        if not changed[j]:
            unchanged += interval[j]
    most = before.max()
    row[:] = before / most
    if unchanged > 0.0:
        first = 0
        while first < n - 1 and before[first] == 0.0:
            first += 1
        for k in range(
            n
        ):  # against the least rate possible, so that not all of them vanish
            row[k] *= (
                math.exp((rate[first] - rate[k]) * unchanged) if k >= first else 0.0
            )
    for j in range(interval.size):
        if changed[j]:
            most = 0.0
            for k in range(n):
                row[k] *= -math.expm1(-rate[k] * interval[j])
                most = max(most, row[k])
            if most < 1e-50:  # 0 gives NaN: impossible
                for k in range(n):
                    row[k] /= most
    total = row.sum()
    for k in range(n):
        row[k] /= total


@njit(cache=True, parallel=True, error_model="numpy")
def grid_posteriors(interval, changed, offsets, rate, prior, posterior):
    """Prior (one row, or one for each page) times likelihood on a grid of rates, each row of sum 1; NaN where it is 0 everywhere."""
    for i in prange(offsets.size - 1):
        crawls = slice(offsets[i], offsets[i + 1])
        _posterior(
            interval[crawls],
            changed[crawls],
            rate,
            prior[np.int64(i) if prior.shape[0] > 1 else 0],
            posterior[i],
        )
