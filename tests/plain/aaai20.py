"""Upadhyay, Busa-Fekete, Kotlowski, Pal and Szorenyi 2020.

Our text lacks the formulas: most are derived from the steps of its proofs. m is
the number of pages, R the bandwidth, tau the exploration; level = 1 - delta.
"""

import numpy as np

from tests.plain._searching import root, spend
from tests.plain.valuetools20 import poisson_freshness, predicted_probability
from tests.plain.www25 import interval_freshness

__all__ = [
    "burn_in", "confidence_radius", "exploration_radius",
    "interval_fresh_time", "log_likelihood", "moment_matching", "optimal_exploration",
    "optimal_poisson", "phased_epsilon_greedy", "poisson_fresh_time", "regret_bound",
    "sensitivity_bound", "sharp_sensitivity_bound", "suboptimality", "utility",
]  # fmt: skip


def utility(change_rate, importance, crawl_rate, elapsed, initial):
    """Eq. (4), and eq. (5) for elapsed = inf: requests served fresh per time."""
    decay = np.exp(-(crawl_rate + change_rate) * elapsed)
    stationary = poisson_freshness(change_rate, crawl_rate)
    return np.sum(importance * (decay * initial + (1 - decay) * stationary))


def poisson_fresh_time(change_rate, crawl_rate, duration, initial):
    """Integral of eq. (4) for mu = 1: expected fresh time from a freshness on."""
    both, f = crawl_rate + change_rate, poisson_freshness(change_rate, crawl_rate)
    return f * duration + (initial - f) * -np.expm1(-both * duration) / both


def interval_fresh_time(change_rate, crawl_rate, duration, initial, phase):
    """Appendix C (derived): the same of equal intervals, the first from `phase` on."""
    times = (phase + np.arange(duration * crawl_rate + 1)) / crawl_rate
    w = np.diff(np.minimum(times, duration), prepend=0, append=duration)
    fresh = -np.expm1(-change_rate * w) / change_rate
    return initial * fresh[0] + np.sum(fresh[1:])


def burn_in(importance, tolerance, min_rate):
    """Lemma 1, two-sided: time until eq. (4) is within a tolerance of eq. (5)."""
    # Derived: no factor 2 inside the logarithm.
    return max(np.log(np.sum(importance) / tolerance), 0.0) / min_rate


def optimal_poisson(change_rate, importance, bandwidth, min_rate=0.0):
    """Eq. (6): Poisson crawl rates of highest freshness, and the multiplier."""
    # KKT: mu Delta / (rho + Delta)^2 = lambda. Algorithm 2 of Azar et al. 2018; with
    # a floor it is BinaryLambdaCrawl of Kolobov et al. 2019.

    def rate(multiplier):
        inside = np.sqrt(importance * change_rate / multiplier) - change_rate
        return np.maximum(min_rate, inside)

    on = (change_rate > 0) & (importance > 0)
    high = 2 * np.max(importance[on] / change_rate[on])  # all rates are the floor
    return spend(rate, bandwidth, high)


def log_likelihood(change_rate, interval, changed):
    """Above eq. (7): log-likelihood of a change rate, concave."""
    x = change_rate * interval
    return np.sum(np.log(-np.expm1(-x[changed]))) - np.sum(x[~changed])


def moment_matching(interval, changed, low=0.0, high=np.inf):
    """Eq. (7), section 3.4 of peva22: sum exp(-rate w) is the number unchanged."""
    unchanged = np.sum(~changed)
    if unchanged in (0, len(changed)):
        return low if unchanged else high

    def equation(rate):
        return np.sum(np.exp(-rate * interval)) - unchanged

    guess = -np.log(unchanged / len(changed))  # the root for equal intervals
    rate = root(equation, 0.5 * guess / interval.max(), 2 * guess / interval.min())
    return min(max(rate, low), high)


def confidence_radius(interval, max_rate, level):
    """Lemma 3 (derived): radius around `moment_matching` that holds the true rate."""
    hoeffding = np.sqrt(np.log(2 / (1 - level)) / (2 * len(interval)))
    return hoeffding / np.mean(interval * np.exp(-max_rate * interval))


def suboptimality(change_rate, estimated_rate, importance, bandwidth):
    """Lemma 4, left side: F(rho*; Delta) - F(rho^; Delta)."""

    def served(believed):
        chosen, _ = optimal_poisson(believed, importance, bandwidth)
        return utility(change_rate, importance, chosen, np.inf, 0.0)

    return served(change_rate) - served(estimated_rate)


def sensitivity_bound(change_rate, estimated_rate, importance):
    """Lemma 4: bound on `suboptimality`."""
    # The constant 1 is not confirmed; 1/4 is enough (derived).
    least = np.minimum(estimated_rate, change_rate)
    error = estimated_rate - change_rate
    return np.sum(importance * error**2 / (estimated_rate * least))


def sharp_sensitivity_bound(change_rate, estimated_rate, importance, crawl_rate):
    """Lemma 4 (derived): sharper bound, at the rates chosen for the estimates."""
    now, believed = crawl_rate + change_rate, crawl_rate + estimated_rate
    error = np.sqrt(change_rate) / now - np.sqrt(estimated_rate) / believed
    return np.sum(importance * now * error**2)


def exploration_radius(n_pages, bandwidth, exploration, max_rate, level):
    """Lemma 5 (derived): radius that holds all true rates at once."""
    # Lemma 3 with w = m / R and N = tau R / m at level 1 - delta / m; union bound.
    m, r, tau = n_pages, bandwidth, exploration
    hoeffding = np.sqrt(r * np.log(2 * m / (1 - level)) / (2 * tau * m))
    return np.exp(max_rate * m / r) * hoeffding


def regret_bound(exploration, horizon, importance, bandwidth, bounds, level):
    """Theorem 1, eq. (12) (derived): bound on the regret of explore-then-commit."""
    m, r, tau, (low, high) = len(importance), bandwidth, exploration, bounds
    error = np.exp(2 * high * m / r) * r * np.log(2 * m / (1 - level))
    slope = error / (2 * m * low**2)
    return np.sum(importance) * (tau + (horizon - tau) / tau * slope)


def optimal_exploration(horizon, n_pages, bandwidth, bounds, level):
    """Theorem 1: tau* that minimises eq. (12), before rounding."""
    # Corrected: at tau* the bound is least; printed is "maximum".
    m, r, (low, high) = n_pages, bandwidth, bounds
    best = np.sqrt(horizon * r * np.log(2 * m / (1 - level)) / (2 * m))
    return np.exp(high * m / r) / low * best


def phased_epsilon_greedy(
    change_rate, importance, bandwidth, exploration, horizon, bounds,
    n_phases, epsilon, rng,
):  # fmt: skip
    """Section 6.3, our reading: a run's expected requests served, and estimates.

    One phase with epsilon = 0 is explore-then-commit of section 5. Exploration is at
    equal intervals m / R from a crawl of all pages on.
    """
    m, d = len(change_rate), len(change_rate) / bandwidth

    def find(i, w):
        return rng.random(w.size) < predicted_probability(change_rate[i], w)

    interval, age = [np.full(round(exploration / d), d)] * m, np.zeros(m)
    changed = [find(i, interval[i]) for i in range(m)]
    fresh = exploration * importance @ interval_freshness(change_rate, 1 / d)
    length = (horizon - exploration) / n_phases
    for _ in range(n_phases):
        histories = zip(interval, changed, strict=True)
        believed = np.array([moment_matching(*one, *bounds) for one in histories])
        best, _ = optimal_poisson(believed, importance, bandwidth)
        rate = (1 - epsilon) * best + epsilon * bandwidth / m
        start = np.exp(-change_rate * age)
        fresh += importance @ poisson_fresh_time(change_rate, rate, length, start)
        for i in range(m):
            times = np.sort(rng.uniform(0, length, rng.poisson(rate[i] * length)))
            w = np.diff(times, prepend=-age[i])
            interval[i] = np.append(interval[i], w)
            changed[i] = np.append(changed[i], find(i, w))
            age[i] = length - times[-1] if w.size else age[i] + length
    return fresh, believed
