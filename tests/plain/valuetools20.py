"""Avrachenkov, Patil and Thoppe 2020; peva22 has the same, its numbers second.

`peva22` has SAM, `grimes08` the naive estimator and the MLE, and `aaai20` the
method of moments.
"""

import itertools

import numpy as np
from scipy.integrate import quad

__all__ = [
    "asymptotic_variances", "fisher_information", "lln", "online_moments",
    "poisson_freshness", "predicted_probability", "predicted_probability_poisson", "sa",
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


# Derived: how far the estimators are off under crawls at Poisson times.


def online_moments(estimate, change_rate, crawl_rate, n_crawls):
    """Exact bias and RMSE after n crawls of estimate(changed)[-1]."""
    # The mean over all 2^n sequences of bits.
    q, bias, square = predicted_probability_poisson(change_rate, crawl_rate), 0.0, 0.0
    for bits in itertools.product([0, 1], repeat=n_crawls):
        weight = q ** sum(bits) * (1 - q) ** (n_crawls - sum(bits))
        error = estimate(bits)[-1] - change_rate
        bias, square = bias + weight * error, square + weight * error**2
    return bias, np.sqrt(square)


def fisher_information(change_rate, crawl_rate):
    """Fisher information of one crawl."""
    # E[w^2 q / (1 - q)], q = exp(-Delta w), w ~ Exp(p).
    both = crawl_rate + change_rate

    def integrand(x):  # x = (Delta + p) w
        return x * x * np.exp(-x) / -np.expm1(-x * change_rate / both)

    return crawl_rate / both**3 * quad(integrand, 0, np.inf, epsabs=0, epsrel=1e-12)[0]


def asymptotic_variances(change_rate, crawl_rate, c):
    """Asymptotic variances of MLE, MM, LLN and SA, times the number of crawls."""
    # MM is E[q (1 - q)] / E[w q]^2, q = exp(-Delta w), in one fraction; SA has the
    # steps c / k.
    p, both = crawl_rate, crawl_rate + change_rate
    contraction = 2 * c * p / both - 1
    return {
        "MLE": 1 / fisher_information(change_rate, crawl_rate),
        "MM": change_rate * both**3 / (p * (both + change_rate)),
        "LLN": change_rate * both**2 / p,
        "SA": p * change_rate * c**2 / contraction if contraction > 0 else np.inf,
    }
