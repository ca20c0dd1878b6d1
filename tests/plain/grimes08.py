"""Grimes and Ford 2008. Delta of the paper is 1 / `change_rate`."""

import numpy as np

from tests.plain._searching import root

__all__ = [
    "adaptive_intervals", "bias_reduced", "grid_posterior", "mle", "mle_substitute",
    "naive", "prior_density", "prior_distance", "prior_mode", "prior_moments",
    "prior_probabilities",
]  # fmt: skip


def naive(interval, changed):
    """Section 3.2: changes seen per unit of time; biased low."""
    # peva22, section 3.4, has p I_k / k for Poisson crawls.
    return np.sum(changed) / np.sum(interval)


def bias_reduced(interval, changed):
    """Eq. (1): bias-reduced change rate for crawls at one fixed interval."""
    # Corrected: r = C / Delta = lambda C; printed is Delta / C.
    n, unchanged = len(changed), len(changed) - np.sum(changed)
    return -np.log((unchanged + 0.5) / (n + 0.5)) / interval


def mle(interval, changed):
    """Eq. (2): the MLE; 0 or inf where the equation has no root."""
    # Also eq. (9) of valuetools20 and (16) of peva22.
    # Corrected: both print "I_j = ..., for all k"; read "for all j".
    if not changed.any() or changed.all():
        return np.inf if changed.any() else 0.0
    w, unchanged = interval[changed], interval[~changed].sum()

    def equation(rate):  # w / (exp(x) - 1) = w exp(-x) / (1 - exp(-x))
        return np.sum(w * np.exp(-rate * w) / -np.expm1(-rate * w)) - unchanged

    guess = np.log1p(w.sum() / unchanged)  # derived: brackets the root
    return root(equation, 0.5 * guess / w.max(), 2 * guess / w.min())


def mle_substitute(interval, changed):
    """Section 3.3: the MLE; at its edges the period is sum t, or min t."""
    if not changed.any():
        return 1 / interval.sum()
    return 1 / interval.min() if changed.all() else mle(interval, changed)


def adaptive_intervals(changed, estimate, initial, factor, limits):
    """Sections 4.1 (factor 0.8) and 5 (1): crawled again after factor / estimate."""
    interval = [initial]
    for k in range(1, len(changed)):
        rate = estimate(np.array(interval), np.array(changed[:k]))
        period = np.inf if rate == 0 else factor / rate
        interval.append(min(max(period, limits[0]), limits[1]))
    return np.array(interval)


def grid_posterior(interval, changed, rate, prior):
    """Section 4.3: posterior probabilities of change rates on a grid."""
    posterior = np.array(prior, dtype=float)
    for w, z in zip(interval, changed, strict=True):
        q = np.exp(-rate * w)
        posterior *= (1 - q) if z else q
        posterior /= posterior.sum()
    return posterior


# Section 4.4: the prior is two pseudo-observations, a changed interval a and an
# unchanged interval b.


def prior_density(rate, a, b):
    """Density of the change rate (derived), flat in it without a and b."""
    return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)


def prior_moments(a, b):
    """Mean and variance of this density (derived), of Exp(b) + Exp(a + b)."""
    return 1 / b + 1 / (a + b), 1 / b**2 + 1 / (a + b) ** 2


def prior_mode(a, b):
    """Mode of this density (derived), the MLE of the two pseudo-observations."""
    return np.log(1 + a / b) / a


def prior_probabilities(period, a, b):
    """The prior of the paper, on a grid of periods, flat in the period."""
    weight = np.exp(-b / period) * -np.expm1(-a / period) * np.gradient(period)
    return weight / weight.sum()


def prior_distance(change_rate, period, a, b):
    """What simulated annealing minimises: L2 distance to a population."""
    nearest = [np.argmin(np.abs(period - 1 / rate)) for rate in change_rate]
    share = np.bincount(nearest, minlength=period.size) / len(change_rate)
    return np.sqrt(np.sum((prior_probabilities(period, a, b) - share) ** 2))
