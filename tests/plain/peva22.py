"""Avrachenkov, Patil and Thoppe 2022: what valuetools20 does not have."""

import numpy as np

from tests.plain.aaai20 import optimal_poisson

__all__ = ["reoptimise", "sam"]


def sam(changed, crawl_rate, eta, beta, omega=1.0, z=0.0):
    """Eq. (3), zeta_k of eq. (10): SAM after each crawl; beta at -1 is infinite."""
    path, before = [], z
    for k, (bit, p) in enumerate(zip(changed, crawl_rate, strict=True)):
        zeta = (beta(k) - omega * eta(k)) / beta(k - 1) if k else 0.0
        z, before = z + eta(k) * (bit * (z + p) - z) + zeta * (z - before), z
        path.append(z)
    return np.array(path)


def reoptimise(estimate, observe, importance, bandwidth, n_phases, min_rate):
    """Section 5: crawl rates in use in every phase; the floor is our choice.

    ``observe(p)`` crawls all pages at the rates p and returns their bits, pages
    first; `estimate` gets the list of all (p, bits) so far.
    """
    # Corrected: the constraint under eq. (17) sums to N; printed is n.
    rates, phases = [np.full(len(importance), bandwidth / len(importance))], []
    for _ in range(n_phases):
        phases.append((rates[-1], observe(rates[-1])))
        believed = np.maximum(estimate(phases), min_rate)
        rates.append(optimal_poisson(believed, importance, bandwidth, min_rate)[0])
    return np.array(rates)
