"""Thresholds of pages with signals, page by page."""

import math

import numpy as np

from paperlib.allocation import LEAST_LEFT, VALUE_ERROR
from paperlib.freshness import lemma_4
from recrawl.kernels import compiled
from recrawl.kernels.objectives import inverse_gamma2


@compiled
def thresholds(share, change_rate, false_rate, alpha, gamma, beta, threshold, psi):
    """Effective times at which V is a share of its limit, and psi there.

    By Newton's method from the thresholds without signals, as in
    `paperlib.allocation`: V is a convex function of exp(-alpha iota), so that it
    converges from anywhere. inf where the share is 1 or more.
    """
    for i in range(share.size):
        d, goal = change_rate[i], share[i] / change_rate[i]
        threshold[i] = psi[i] = np.inf
        if not share[i] < 1.0:
            continue
        iota = inverse_gamma2(share[i]) / d
        while True:
            rates = d, false_rate[i], alpha[i], gamma[i], beta[i]
            value, psi[i], _ = lemma_4(iota, *rates, math.inf)
            slope, rest = psi[i] * math.exp(-alpha[i] * iota), goal - value
            if not abs(rest) > VALUE_ERROR * (goal + slope):
                break
            step = math.log1p(-min(rest / slope, 1 - LEAST_LEFT)) / alpha[i]
            iota = max(iota - step, LEAST_LEFT * iota)
        threshold[i] = iota


@compiled
def cycles(threshold, change_rate, false_rate, alpha, gamma, beta, psi, w):
    """psi and w of Lemma 4 at thresholds."""
    for i in range(threshold.size):
        rates = change_rate[i], false_rate[i], alpha[i], gamma[i], beta[i]
        _, psi[i], w[i] = lemma_4(threshold[i], *rates, math.inf)
