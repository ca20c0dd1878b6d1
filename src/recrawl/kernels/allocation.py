"""Pages with signals that are crawled at thresholds."""

import math

from paperlib.lemma_4 import lemma_4
from recrawl.kernels import compiled


@compiled
def cycles(threshold, change_rate, false_rate, alpha, gamma, beta, psi, w):
    """psi and w of Lemma 4 at thresholds."""
    for i in range(threshold.size):
        rates = change_rate[i], false_rate[i], alpha[i], gamma[i], beta[i]
        _, psi[i], w[i] = lemma_4(threshold[i], *rates, math.inf)
