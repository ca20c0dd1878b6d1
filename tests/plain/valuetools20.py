"""Avrachenkov, Patil and Thoppe 2020; peva22 has the same, its numbers second.

`peva22` has SAM, `grimes08` the naive estimator and the MLE, and `aaai20` the
method of moments.
"""

import numpy as np

__all__ = [
    "lln", "poisson_freshness", "predicted_probability",
    "predicted_probability_poisson", "sa",
]  # fmt: skip


def predicted_probability(change_rate, interval):
    """Above eq. (4): E[I | tau], the probability that a crawl finds a change."""
    return 1 - np.exp(-change_rate * interval)


def predicted_probability_poisson(change_rate, crawl_rate):
    """Eq. (4): the same of crawls at Poisson times, its mean over tau ~ Exp(p)."""
    return change_rate / (change_rate + crawl_rate)


def lln(changed, crawl_rate, alpha):
    """Eq. (2), eq. (1): LLN after each crawl; alpha is a function of k = 1, 2, ..."""
    # alpha_k = log k is 0 at k = 1: x_1 is infinite if I_1 = 1. Use log(k + 1).
    x, total = [], 0
    for k, bit in enumerate(changed, start=1):
        total += bit
        x.append(crawl_rate * total / (k + alpha(k) - total))
    return np.array(x)


def sa(changed, crawl_rate, eta, y=0.0):
    """Eq. (3), eq. (2): SA after each crawl, which has a p; eta is of k = 0, 1, ..."""
    # Corrected: Theorem 2 has the step (k + 1)^-gamma; printed is (k + 1)^gamma.
    path = []
    for k, (bit, p) in enumerate(zip(changed, crawl_rate, strict=True)):
        y = y + eta(k) * (bit * (y + p) - y)
        path.append(y)
    return np.array(path)


def poisson_freshness(change_rate, crawl_rate):
    """The terms of F(p), eq. (5) of aaai20: freshness under Poisson crawls."""
    # Corrected: F(p) sums over pages from i = 1; printed is 0.
    return crawl_rate / (crawl_rate + change_rate)
