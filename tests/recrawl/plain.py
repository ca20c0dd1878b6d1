"""Plain forms of what the five papers do not have, in NumPy and SciPy.

One function a formula, as in `tests.plain`, which has those of the papers. Derived
where no source is named.
"""

import numpy as np
from scipy.integrate import quad
from scipy.special import exprel, gammainc
from scipy.stats import chi2

from tests.plain import log_likelihood, mle
from tests.plain._searching import root, spend

# ------------------------------------------------------- one bit of each crawl


def likelihood_interval(interval, changed, dispersion):
    """Likelihood-ratio interval of the change rate, of level 0.95."""
    # Of a page with both kinds of bits.
    best = mle(interval, changed)
    least = log_likelihood(best, interval, changed) - dispersion * chi2.ppf(0.95, 1) / 2

    def excess(log_rate):
        return log_likelihood(np.exp(log_rate), interval, changed) - least

    low, high = (root(excess, np.log(best), np.log(best) + d) for d in (-300, 300))
    return np.exp(low), np.exp(high)


def dispersion(change_rate, interval, changed, n_blocks=4):
    """Variance of the score in units of the information."""
    # Sandwich variance of a score that depends on its neighbours, by sums over
    # blocks; a block ends where the information passes a multiple of its mean.
    x = change_rate * interval
    score = np.where(changed, x / np.expm1(x), -x)
    information = x**2 / np.expm1(x)
    total = information.sum()
    before = (np.cumsum(information) - information) / total
    block = (n_blocks * before + 1e-9).astype(int)
    sums = np.array([score[block == b].sum() for b in range(n_blocks)])
    share = np.array([information[block == b].sum() for b in range(n_blocks)]) / total
    spread = np.sum((sums - share * sums.sum()) ** 2)
    observed = log_information(change_rate, interval, changed)
    return spread / (observed * (1 - np.sum(share**2)))


def log_information(change_rate, interval, changed):
    """Observed information of the logarithm of the change rate."""
    # Minus the second derivative of the log-likelihood in log(change_rate).
    x = change_rate * interval
    r = x / np.expm1(x)
    return np.sum(np.where(changed, r * (x + r - 1), x))


# ------------------------------------------- more than a bit of some crawls


def likelihood_terms(interval, changed, age):
    """Known changes, the time they are known for, and intervals known by a bit."""
    # Known changes are points of the process, and an unchanged time is empty.
    n_known, time, bits = 0, 0.0, []
    for w, z, a in zip(interval, changed, age, strict=True):
        if not z:
            time += w
        elif np.isnan(a):
            bits.append(w)
        else:
            n_known += 1
            time += min(a, w)
    return n_known, time, np.array(bits)


def known_log_likelihood(change_rate, n_known, time, bits):
    """Log-likelihood of a change rate, from `likelihood_terms`."""
    certain = n_known * np.log(change_rate) - change_rate * time
    return certain + np.sum(np.log(-np.expm1(-change_rate * bits)))


def known_mle(n_known, time, bits):
    """Change rate of the greatest log-likelihood, for a known change or more."""

    def slope(rate):  # times the rate
        x = rate * bits
        return n_known - rate * time + np.sum(x * np.exp(-x) / -np.expm1(-x))

    return root(slope, 1e-9 * n_known / time, 2 * (n_known + len(bits)) / time)


def gamma_step(shape, rate, changed, interval, age=None, count=None):
    """Shape and rate of a gamma after a crawl; known changes are conjugate."""
    if count is not None or age is not None:
        time = interval if age is None else age
        return shape + (1 if count is None else count), rate + time
    if not changed:
        return shape, rate + interval
    # The first two derivatives of log(1 - exp(-rate w)) at the estimate are those of
    # count log(rate) - rate time.
    estimate = shape / rate
    x = estimate * interval
    seen = x * np.exp(-x) / -np.expm1(-x)
    more = x * seen / -np.expm1(-x)
    return shape + more, rate + (more - seen) / estimate


def objective_cost(name, elapsed, change_rate):
    """Cost of a page per unit of time, a time t after its last crawl."""
    # The harmonic cost is the mean of 1 + 1/2 + ... + 1/N, N ~ Poisson(Delta t).
    x = change_rate * elapsed
    return {
        "freshness": lambda: 1 - np.exp(-x),
        "age": lambda: elapsed - (1 - np.exp(-x)) / change_rate,
        "harmonic": lambda: quad(lambda s: exprel(-s), 0, x)[0],
    }[name]()


def objective_value(name, elapsed, change_rate):
    """Crawl value of a page under an objective: what a crawl saves."""
    # Eq. (4) of Olston and Pandey (2008): V = t c(t) - int_0^t c.
    last = elapsed * objective_cost(name, elapsed, change_rate)
    return last - quad(lambda t: objective_cost(name, t, change_rate), 0, elapsed)[0]


@np.errstate(divide="ignore")  # pages without crawls
def gain(name, change_rate, crawl_rate):
    """Crawl value of a page at the end of an interval, in closed form."""
    d, x = change_rate, np.divide(change_rate, crawl_rate)
    x = np.minimum(x, 1e200)
    return {
        "freshness": lambda: gammainc(2, x) / d,
        "age": lambda: (-np.expm1(-x) * x**2 / 2 - gammainc(3, x)) / d**2,
        "harmonic": lambda: (-np.expm1(-x) * x - gammainc(2, x)) / d,
    }[name]()
