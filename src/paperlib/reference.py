"""The five papers in plain NumPy and SciPy, one function for each formula.

This module is the specification: it is written to be read with a paper beside
the screen, and every fast form of the library is tested against it. It is slow,
checks no argument and has no options. The comment above a block names the paper
and the equation, and says what was corrected. "Derived" marks what follows from
the papers but is not printed there, or not in our text of them. Arrays of pages
or of crawls have one axis; a function of one page takes plain numbers.
"""

import heapq
import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import exprel, gammainc, gammaincinv, gammaln, polygamma
from scipy.stats import chi2, poisson

__all__ = [
    "accuracy", "adaptive_intervals", "affinity", "asymptotic_variances",
    "bayes_crawl_value", "best_slots", "bias_reduced", "burn_in", "confidence_radius",
    "costs", "count_marginal", "counting_interval", "crawl_value",
    "crawl_value_no_false_signals", "crawl_value_no_signals", "cycle_length",
    "design_variance", "dispersion", "empirical_crawl_value", "exploration_horizon",
    "exploration_radius", "exposure", "false_change_log_likelihood",
    "false_change_score", "false_changes", "feed_terms", "fisher_information",
    "fit_signals", "fresh_probability", "fresh_time", "gamma_bits", "gamma_marginal",
    "gamma_prior", "greedy_slots", "grid_posterior", "harmonic_penalty",
    "host_marginal", "interval_fresh_time", "interval_freshness",
    "known_log_likelihood", "known_mle", "lagrangian_index", "last_modified",
    "likelihood_interval", "likelihood_terms", "lln", "log_information",
    "log_likelihood", "log_stderr",
    "low_discrepancy", "mean_log_rate", "mirror_step", "mle", "mle_substitute",
    "moment_matching", "naive", "naive_precision_recall", "objective_cost",
    "objective_value",
    "observed_information", "observed_parameters", "online_moments", "optimal",
    "optimal_conditional", "optimal_harmonic", "optimal_interval", "optimal_poisson",
    "optimal_thresholds", "periodic_em", "periodic_log_likelihood",
    "periodic_stale_time", "phased_epsilon_greedy", "poisson_fresh_time",
    "poisson_freshness", "polite", "predicted_probability",
    "predicted_probability_poisson", "prior_density", "prior_distance", "prior_mode",
    "prior_moments", "prior_probabilities", "pseudo_counts", "regret_bound",
    "reoptimise", "sa", "sam", "scoring_step", "sensitivity_bound",
    "sharp_sensitivity_bound", "signal_log_likelihood", "signal_parameters",
    "suboptimality", "utility",
]  # fmt: skip


def __dir__():
    return __all__  # completion offers the public names alone


def _root(function, low, high):
    """Root of a function that changes its sign once; brentq, to rounding."""
    return brentq(function, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)


# ------------------------------------------------------- one bit of each crawl


# Poisson changes: all five papers; E[I | tau] above eq. (4) of peva22.
def predicted_probability(change_rate, interval):
    """Probability that a crawl after an interval finds a change."""
    return 1 - np.exp(-change_rate * interval)


# valuetools20 and peva22, eq. (4): the mean over tau ~ Exp(p).
def predicted_probability_poisson(change_rate, crawl_rate):
    """Probability that a crawl at Poisson times finds a change."""
    return change_rate / (change_rate + crawl_rate)


# grimes08, section 3.2; peva22, section 3.4 has p I_k / k for Poisson crawls.
def naive(interval, changed):
    """Changes seen per unit of time; biased low."""
    return np.sum(changed) / np.sum(interval)


# grimes08, eq. (1). Corrected: r = C / Delta = lambda C, printed Delta / C.
def bias_reduced(interval, changed):
    """Bias-reduced change rate for crawls at one fixed interval."""
    n, unchanged = len(changed), len(changed) - np.sum(changed)
    return -np.log((unchanged + 0.5) / (n + 0.5)) / interval


# aaai20, above eq. (7): concave in the rate.
def log_likelihood(change_rate, interval, changed):
    """Log-likelihood of a change rate."""
    x = change_rate * interval
    return np.sum(np.log(-np.expm1(-x[changed]))) - np.sum(x[~changed])


# valuetools20 eq. (9), peva22 eq. (16), grimes08 eq. (2).
# Corrected: valuetools20 and peva22 print "I_j = ..., for all k", read j.
def mle(interval, changed):
    """Maximum likelihood estimate; 0 or inf where the equation has no root."""
    if not changed.any() or changed.all():
        return np.inf if changed.any() else 0.0
    w, unchanged = interval[changed], interval[~changed].sum()

    def equation(rate):  # w / (exp(x) - 1) = w exp(-x) / (1 - exp(-x))
        return np.sum(w * np.exp(-rate * w) / -np.expm1(-rate * w)) - unchanged

    guess = np.log1p(w.sum() / unchanged)  # derived: brackets the root
    return _root(equation, 0.5 * guess / w.max(), 2 * guess / w.min())


# grimes08, section 3.3: substitutes for the period, sum t and min t.
def mle_substitute(interval, changed):
    """MLE with the substitutes of Cho and Garcia-Molina at the edges."""
    if not changed.any():
        return 1 / interval.sum()
    return 1 / interval.min() if changed.all() else mle(interval, changed)


# aaai20, eq. (7), as printed in peva22, section 3.4: the expected number of
# unchanged crawls, sum exp(-rate w), is the number seen.
def moment_matching(interval, changed, low=0.0, high=np.inf):
    """Moment-matching estimate, clipped to known bounds."""
    unchanged = np.sum(~changed)
    if unchanged in (0, len(changed)):
        return low if unchanged else high

    def equation(rate):
        return np.sum(np.exp(-rate * interval)) - unchanged

    guess = -np.log(unchanged / len(changed))  # the root for equal intervals
    rate = _root(equation, 0.5 * guess / interval.max(), 2 * guess / interval.min())
    return min(max(rate, low), high)


# Derived: likelihood ratio; without an interior maximum, the rates under which
# the bits have a probability of at least 1 - level.
def likelihood_interval(interval, changed, level, dispersion=1):
    """Likelihood-ratio interval of the change rate."""
    best, drop = mle(interval, changed), dispersion * chi2.ppf(level, 1) / 2
    if best == 0:
        return 0.0, -dispersion * np.log(1 - level) / interval.sum()
    top = 0.0 if np.isinf(best) else log_likelihood(best, interval, changed)
    drop = -dispersion * np.log(1 - level) if np.isinf(best) else drop

    def excess(log_rate):
        return log_likelihood(np.exp(log_rate), interval, changed) - top + drop

    middle = np.log(40 / interval.min() if np.isinf(best) else best)
    low = np.exp(_root(excess, middle - 300, middle))
    if np.isinf(best):
        return low, np.inf
    return low, np.exp(_root(excess, middle, middle + 300))


# Derived: sandwich variance of a score that depends on its neighbours, by sums
# over blocks; a block ends where the information passes a multiple of its mean.
def dispersion(change_rate, interval, changed, n_blocks=4):
    """Variance of the score in units of the information."""
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


# Derived: minus the second derivative of the log-likelihood in log(change_rate).
def log_information(change_rate, interval, changed):
    """Observed information of the logarithm of the change rate."""
    x = change_rate * interval
    r = x / np.expm1(x)
    return np.sum(np.where(changed, r * (x + r - 1), x))


# Derived: of a gamma density with this curvature at its mode; exact for one.
def log_stderr(information, dispersion):
    """Standard deviation of the logarithm of the change rate."""
    return np.sqrt(polygamma(1, 1 + information / dispersion))


# Derived: by the trapezoidal rule in the logarithm, in which the density is the
# rate times the likelihood, to the power 1 / dispersion.
def mean_log_rate(interval, changed, dispersion):
    """Posterior mean of the log rate; all rates are equally likely before."""
    x = np.linspace(-30, 30, 6001)
    logs = np.array([log_likelihood(np.exp(u), interval, changed) for u in x])
    log_density = logs / dispersion + x
    return np.average(x, weights=np.exp(log_density - log_density.max()))


# aaai20, Lemma 3 (derived from the steps of its proof); level = 1 - delta.
def confidence_radius(interval, max_rate, level):
    """Radius around `moment_matching` that holds the true rate."""
    hoeffding = np.sqrt(np.log(2 / (1 - level)) / (2 * len(interval)))
    return hoeffding / np.mean(interval * np.exp(-max_rate * interval))


# Derived: P(changed) = 1 - (1 - q) exp(-Delta w), b = -log(1 - q); concave.
def false_change_log_likelihood(change_rate, b, interval, changed):
    """Log-likelihood of a change rate and of false changes."""
    u = b + change_rate * interval
    return np.sum(np.log(-np.expm1(-u[changed]))) - np.sum(u[~changed])


# Derived, expectation maximisation: b and Delta w are two additive hazards, and
# a changed crawl has the expected events b / (1 - e^-u) and Delta w / (1 - e^-u).
def false_changes(pages, n_steps):
    """Shared b of pages, and their change rates; a page is two arrays."""
    b, rates = 1.0, np.array([1 / np.mean(interval) for interval, _ in pages])
    for _ in range(n_steps):
        false = 0.0
        for i, (interval, changed) in enumerate(pages):
            events = changed / -np.expm1(-(b + rates[i] * interval))
            false += np.sum(events)
            rates[i] *= np.sum(events * interval) / np.sum(interval)
        b *= false / sum(len(interval) for interval, _ in pages)
    return b, rates


# Derived: slope of the log-likelihood in b at b = 0, and its variance where the
# rate is estimated.
def false_change_score(change_rate, interval, changed):
    """Score of false changes at the MLE without them, and its variance."""
    v = 1 / np.expm1(change_rate * interval)
    slope = np.sum(v[changed]) - np.sum(~changed)
    variance = np.sum(v) - np.sum(v * interval) ** 2 / np.sum(v * interval**2)
    return slope, variance


# Derived: the inverse of the Fisher information of (b, Delta) per crawl.
def design_variance(change_rate, false_change, interval, share, known):
    """Times n the variance of the MLE of the change rate after n crawls."""
    v = share / np.expm1(change_rate * interval - np.log(1 - false_change))
    design = np.stack([np.ones(len(interval)), interval])
    information = design * v @ design.T
    return 1 / information[1, 1] if known else np.linalg.inv(information)[1, 1]


# Derived, for Lemma 2 of aaai20; by Kakutani's theorem the whole sequence of
# bits tells the rates apart exactly if this tends to 0.
def affinity(change_rate, other_rate, interval):
    """Affinity of the bits under two change rates, after each crawl."""
    q, other_q = np.exp(-change_rate * interval), np.exp(-other_rate * interval)
    return np.cumprod(np.sqrt(q * other_q) + np.sqrt((1 - q) * (1 - other_q)))


# Derived: E[w^2 q / (1 - q)], q = exp(-Delta w), w ~ Exp(p), of one crawl.
def fisher_information(change_rate, crawl_rate):
    """Fisher information of one crawl at Poisson times."""
    both = crawl_rate + change_rate

    def integrand(x):  # x = (Delta + p) w
        return x * x * np.exp(-x) / -np.expm1(-x * change_rate / both)

    return crawl_rate / both**3 * quad(integrand, 0, np.inf, epsabs=0, epsrel=1e-12)[0]


# Derived: n times the variance after n crawls; MM with q = exp(-Delta w) is
# E[q (1 - q)] / E[w q]^2; SA has the steps c / k.
def asymptotic_variances(change_rate, crawl_rate, c):
    """Asymptotic variances of MLE, MM, LLN and SA at Poisson crawls."""
    p, both = crawl_rate, crawl_rate + change_rate
    contraction = 2 * c * p / both - 1
    return {
        "MLE": 1 / fisher_information(change_rate, crawl_rate),
        "MM": (p / both - p / (both + change_rate)) / (p / both**2) ** 2,
        "LLN": change_rate * both**2 / p,
        "SA": p * change_rate * c**2 / contraction if contraction > 0 else np.inf,
    }


# ------------------------------------------- more than a bit of some crawls


# Derived: known changes are points of the process, and an unchanged time is empty.
def likelihood_terms(interval, changed, age, count):
    """Known changes, the time they are known for, and intervals known by a bit."""
    n_known, time, bits = 0, 0.0, []
    for w, z, a, m in zip(interval, changed, age, count, strict=True):
        if not z:
            time += w
        elif np.isnan(a) and np.isnan(m):
            bits.append(w)
        else:
            n_known += 1 if np.isnan(m) else m
            time += w if np.isnan(a) else min(a, w)
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

    return _root(slope, 1e-9 * n_known / time, 2 * (n_known + len(bits)) / time)


# Derived. A feed shows the last N changes.
def feed_terms(change_times, crawl_times, n_entries):
    """Known changes and the time they are known for, of each crawl."""
    terms, before = [], 0.0
    for now in crawl_times:
        new = [t for t in change_times if before < t <= now][-n_entries:]
        full = len(new) == n_entries
        terms.append((len(new), now - new[0] if full else now - before))
        before = now
    return terms


# Cho and Garcia-Molina, TOIS 2003, for N = 1 (recalled); its bias, and both for
# feeds of N entries, are derived.
def last_modified(n_known, time, interval, n_entries):
    """Maximum likelihood estimate, and the same without its bias of first order."""
    rate = n_known / time
    m = np.arange(1000)
    seen = excess = 0.0
    for w in interval:
        p = poisson.pmf(m, rate * w)
        seen += np.sum(np.minimum(m, n_entries) * p)
        excess += n_entries * np.sum(p[m > n_entries])
    return rate, (n_known - excess / seen) / time


# Derived: waiting for changes K + 1 takes longer than the time, for K it takes less.
def counting_interval(n_known, time, level):
    """Interval of the change rate that covers it with at least this probability."""
    low = chi2.ppf((1 - level) / 2, 2 * n_known) if n_known else 0.0
    return low / (2 * time), chi2.ppf((1 + level) / 2, 2 * n_known + 2) / (2 * time)


# Derived: minus the expected second derivative of the log-likelihood.
def observed_information(change_rate, interval, observation, n_entries=None):
    """Fisher information of one crawl, by what it reveals."""
    if observation == "bit":
        return interval**2 / np.expm1(change_rate * interval)
    if observation == "age":
        n_entries = 1
    m = np.arange(1000)
    seen = m if observation == "count" else np.minimum(m, n_entries)
    return np.sum(seen * poisson.pmf(m, change_rate * interval)) / change_rate**2


# Derived; Kaplan and Meier's estimator of the distribution of the age.
def empirical_crawl_value(interval, changed, age, elapsed):
    """Crawl value for an importance of 1, without a model of the changes."""
    span = np.where(changed, age, interval)
    above, value = 1.0, 0.0
    for a in np.unique(span[changed]):
        if a < elapsed:
            share = above * np.mean(age[changed] == a) * np.sum(changed)
            share /= np.sum(span >= a)
            value += a * share
            above -= share
    return value


# Derived: the first two derivatives of log(1 - exp(-rate w)) at an estimate are those
# of count log(rate) - rate time.
def pseudo_counts(estimate, interval):
    """What a crawl that found a change adds to the shape and rate of a gamma."""
    x = estimate * interval
    q = np.exp(-x)
    count = x**2 * q / (1 - q) ** 2
    return count, (count - x * q / (1 - q)) / estimate


# Derived: Fisher's scoring in log(rate), with the shape as the information so far.
def scoring_step(shape, rate, changed, interval, false_change):
    """Shape and rate of a gamma after a bit that may be a false change."""
    estimate = shape / rate
    x = estimate * interval
    unchanged = (1 - false_change) * np.exp(-x)
    slope = x * unchanged / (1 - unchanged) if changed else -x
    shape = shape + x**2 * unchanged / (1 - unchanged)
    estimate *= np.exp(np.clip(slope / shape, -1, 1))
    return shape, shape / estimate


# ----------------------------------------------------------- online estimators


# valuetools20 eq. (2), peva22 eq. (1). alpha_k = log k is 0 at k = 1: the
# estimate is infinite after I_1 = 1, use log(k + 1).
def lln(changed, crawl_rate, alpha):
    """LLN estimate after every crawl; alpha is a function of k = 1, 2, ..."""
    x, total = [], 0
    for k, bit in enumerate(changed, start=1):
        total += bit
        x.append(crawl_rate * total / (k + alpha(k) - total))
    return np.array(x)


# valuetools20 eq. (3), peva22 eq. (2); crawl_rate holds one p for each crawl.
# Corrected: the step of the rate of Theorem 2 is (k+1)^-gamma, printed ^gamma.
def sa(changed, crawl_rate, eta, y=0.0):
    """SA estimate after every crawl; eta is a function of k = 0, 1, ..."""
    path = []
    for k, (bit, p) in enumerate(zip(changed, crawl_rate, strict=True)):
        y = y + eta(k) * (bit * (y + p) - y)
        path.append(y)
    return np.array(path)


# peva22 eq. (3), with zeta_k of eq. (10) and beta_-1 = infinity.
def sam(changed, crawl_rate, eta, beta, omega=1.0, z=0.0):
    """SAM estimate after every crawl; eta and beta are functions of k."""
    path, before = [], z
    for k, (bit, p) in enumerate(zip(changed, crawl_rate, strict=True)):
        zeta = (beta(k) - omega * eta(k)) / beta(k - 1) if k else 0.0
        z, before = z + eta(k) * (bit * (z + p) - z) + zeta * (z - before), z
        path.append(z)
    return np.array(path)


# Derived: the mean over all 2^n sequences of bits, for Poisson crawls.
def online_moments(estimate, change_rate, crawl_rate, n_crawls):
    """Exact bias and RMSE after n crawls of estimate(changed)[-1]."""
    q, bias, square = predicted_probability_poisson(change_rate, crawl_rate), 0.0, 0.0
    for bits in itertools.product([0, 1], repeat=n_crawls):
        weight = q ** sum(bits) * (1 - q) ** (n_crawls - sum(bits))
        error = estimate(bits)[-1] - change_rate
        bias, square = bias + weight * error, square + weight * error**2
    return bias, np.sqrt(square)


# ------------------------------------------------------------------- freshness


# aaai20 eq. (5), valuetools20 F(p).
# Corrected: valuetools20 sums over pages from i = 0, read 1.
def poisson_freshness(change_rate, crawl_rate):
    """Freshness under Poisson crawls."""
    return crawl_rate / (crawl_rate + change_rate)


# www25 eq. (5): G(xi) / mu.
def interval_freshness(change_rate, crawl_rate):
    """Freshness under crawls at equal intervals."""
    return crawl_rate / change_rate * -np.expm1(-change_rate / crawl_rate)


# aaai20: the integral over the duration of F of eq. (4) for mu = 1.
def poisson_fresh_time(change_rate, crawl_rate, duration, initial):
    """Expected fresh time under Poisson crawls from a given freshness."""
    both, f = crawl_rate + change_rate, poisson_freshness(change_rate, crawl_rate)
    return f * duration + (initial - f) * -np.expm1(-both * duration) / both


# Derived: from crawl to crawl, the first after `phase` intervals.
def interval_fresh_time(change_rate, crawl_rate, duration, initial, phase):
    """Expected fresh time under crawls at equal intervals."""
    start, fresh, end, n = 0.0, initial, phase / crawl_rate, 0
    total = 0.0
    while start < duration:
        length = min(end, duration) - start
        total += fresh * -np.expm1(-change_rate * length) / change_rate
        start, fresh, n = end, 1.0, n + 1
        end = (phase + n) / crawl_rate
    return total


# Kolobov et al. 2019: E[1 + 1/2 + ... + 1/N] = -ln(rho / (rho + Delta)).
def harmonic_penalty(change_rate, crawl_rate):
    """Expected harmonic penalty under Poisson crawls."""
    return np.log1p(change_rate / crawl_rate)


# Derived: what a page costs per unit of time when its last crawl was a time t ago.
# The harmonic cost is the mean of 1 + 1/2 + ... + 1/N, N ~ Poisson(Delta t).
def objective_cost(name, elapsed, change_rate, tau=np.inf):
    """Cost of a page per unit of time; `name` as in `paperlib.objectives`."""
    t, x = elapsed, change_rate * elapsed
    if name == "freshness":
        return 1 - np.exp(-x)
    if name == "age":
        return t - (1 - np.exp(-x)) / change_rate
    if name == "delay":
        return x
    if name == "harmonic":
        return quad(lambda s: exprel(-s), 0, x)[0]
    if name == "age_of_information":
        return t
    if name == "deadline":
        return change_rate if t > tau else 0.0
    raise KeyError(name)


# Derived, and eq. (4) of Olston and Pandey (2008): V = t c(t) - int_0^t c.
def objective_value(name, elapsed, change_rate, tau=np.inf):
    """Crawl value of a page under an objective: what a crawl saves."""

    def cost(t):
        return objective_cost(name, t, change_rate, tau)

    jump = min(tau, elapsed)
    total = quad(cost, 0, jump)[0] + quad(cost, jump, elapsed)[0]
    return elapsed * cost(elapsed) - total


# aaai20 eq. (4), and eq. (5) for elapsed = inf.
def utility(change_rate, importance, crawl_rate, elapsed, initial):
    """Requests served fresh per unit of time, some time after a state."""
    decay = np.exp(-(crawl_rate + change_rate) * elapsed)
    stationary = poisson_freshness(change_rate, crawl_rate)
    return np.sum(importance * (decay * initial + (1 - decay) * stationary))


# ------------------------------------------------------------------ allocation


def _spend(rate, bandwidth, high):
    """Rates that spend a bandwidth, and the multiplier, at most `high`.

    `rate` gives the rates at a multiplier; they fall as it grows.
    """
    low = high
    while rate(low).sum() < bandwidth:
        low /= 4

    def excess(log_multiplier):
        return rate(np.exp(log_multiplier)).sum() - bandwidth

    multiplier = np.exp(_root(excess, np.log(low), np.log(high)))
    return rate(multiplier), multiplier


# aaai20 eq. (6), Azar et al. 2018, algorithm 2; with a floor it is
# BinaryLambdaCrawl of Kolobov et al. 2019.
# KKT: mu Delta / (rho + Delta)^2 = lambda.
def optimal_poisson(change_rate, importance, bandwidth, min_rate=0.0):
    """Poisson crawl rates of highest freshness, and the multiplier."""

    def rate(multiplier):
        inside = np.sqrt(importance * change_rate / multiplier) - change_rate
        return np.maximum(min_rate, inside)

    on = (change_rate > 0) & (importance > 0)
    high = 2 * np.max(importance[on] / change_rate[on])  # all rates are the floor
    return _spend(rate, bandwidth, high)


# www25 eq. (5).
# KKT: mu / Delta R^1(Delta / xi) = Lambda, where R^1(x) is gammainc(2, x).
def optimal_interval(change_rate, importance, bandwidth):
    """Rates of interval crawls of highest freshness, and the multiplier."""
    on = (change_rate > 0) & (importance > 0)
    d, mu = np.where(on, change_rate, 1.0), np.where(on, importance, 0.0)

    def rate(multiplier):  # xi = 0 where mu / Delta is at most Lambda
        level = np.divide(multiplier * d, mu, out=np.ones(d.size), where=on)
        return d / gammaincinv(2, np.minimum(level, 1.0))

    return _spend(rate, bandwidth, 2 * np.max(mu / d))


# Kolobov et al. 2019 (LambdaCrawl).
# KKT: mu Delta / (rho (rho + Delta)) = lambda, of which the root is
# rho = (-Delta + sqrt(Delta^2 + 4 mu Delta / lambda)) / 2; here without the
# cancellation of that difference. Where all changes are announced a page is
# crawled at a change with the probability q = rho / Delta, at the penalty
# -ln q: mu / rho = lambda. One multiplier for both kinds (derived), where the
# paper searches for the split of the bandwidth.
def optimal_harmonic(change_rate, importance, bandwidth, announced=False):
    """Crawl rates of least harmonic penalty, and the multiplier."""
    on = (change_rate > 0) & (importance > 0)
    d, mu = np.where(on, change_rate, 1.0), np.where(on, importance, 0.0)

    def rate(multiplier):
        poisson = 2 * mu / multiplier / (1 + np.sqrt(1 + 4 * mu / (d * multiplier)))
        return np.where(announced, np.minimum(d, mu / multiplier), poisson)

    return _spend(rate, bandwidth, 2 * mu.sum() / bandwidth)  # rho < mu / lambda


# Derived: a request spends c_0, and c_1 more where the page has changed.
# KKT: mu F'(rho) = lambda (c_0 + c_1 Delta F'(rho)), F' = Delta / (rho + Delta)^2.
def optimal_conditional(change_rate, importance, bandwidth, request_cost, change_cost):
    """Poisson crawl rates of highest freshness under conditional requests."""
    d, mu = change_rate, importance

    def rate(multiplier):
        square = d * (mu / multiplier - change_cost * d) / request_cost
        return np.maximum(np.sqrt(np.maximum(square, 0)) - d, 0)

    def spent(multiplier):
        changed = d * poisson_freshness(d, rate(multiplier))
        return request_cost * rate(multiplier) + change_cost * changed

    _, multiplier = _spend(spent, bandwidth, 2 * np.max(mu / d / request_cost))
    return rate(multiplier), multiplier


def _saturate(solve, bandwidth, cost, host, host_limit):
    """Rates under limits of hosts; `solve` spends a bandwidth on some pages."""
    rate, free, multiplier = np.zeros(host.size), np.ones(host.size, dtype=bool), 0.0
    while free.any():
        rate[free], multiplier = solve(free, bandwidth)
        spent = {h: (cost * rate)[host == h].sum() for h in np.unique(host[free])}
        above = [h for h in spent if spent[h] > host_limit[h]]
        if not above:
            break
        for h in above:
            on = host == h
            rate[on], _ = solve(on, host_limit[h])
            bandwidth, free = bandwidth - host_limit[h], free & ~on
    return rate, multiplier


# Kolobov et al. 2019 (SIGIR), algorithm 2: saturate, remove, recurse.
def polite(change_rate, importance, bandwidth, host, host_limit):
    """Optimal Poisson rates when each host has a limit of its own."""

    def solve(on, bandwidth):
        return optimal_poisson(change_rate[on], importance[on], bandwidth)

    return _saturate(solve, bandwidth, np.ones(host.size), host, host_limit)[0]


# Derived: any objective, of which gain(rho, Delta) is what one more crawl saves:
# V(1 / rho) at equal intervals, E V(A) with A ~ Exp(rho) at Poisson times.
# KKT: mu gain = c lambda between the limits of a page, less at the lower one,
# more at the upper one. Limits are finite, the lower ones positive.
def optimal(
    change_rate, importance, bandwidth, gain, low, high, cost, host, host_limit
):
    """Rates of least cost under limits of pages and hosts, and the multiplier."""

    def rate(i, multiplier):
        def excess(p):
            return importance[i] * gain(p, change_rate[i]) - cost[i] * multiplier

        if excess(low[i]) <= 0 or excess(high[i]) >= 0:
            return low[i] if excess(low[i]) <= 0 else high[i]
        return _root(excess, low[i], high[i])

    def solve(on, bandwidth):
        pages = np.flatnonzero(on)

        def spent(multiplier):
            return np.array([cost[i] * rate(i, multiplier) for i in pages])

        if spent(0.0).sum() <= bandwidth:
            return spent(0.0) / cost[pages], 0.0
        top = np.max(importance / cost * gain(low, change_rate))
        spent_best, multiplier = _spend(spent, bandwidth, 2 * top)
        return spent_best / cost[pages], multiplier

    return _saturate(solve, bandwidth, cost, host, host_limit)


# --------------------------------------------------- change-indicating signals


# www25, section 3; lambda is the recall and nu the false rate.
def signal_parameters(change_rate, recall, false_rate):
    """Parameters alpha, gamma, precision and beta of a page with signals."""
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate + false_rate
    precision = recall * change_rate / gamma
    with np.errstate(divide="ignore"):  # beta = inf at nu = 0, and at recall 1
        beta = -np.log(np.divide(false_rate, gamma)) / alpha
    return alpha, gamma, precision, beta


# www25, section 3, solved for the page; precision = 1 - exp(-alpha beta).
def observed_parameters(alpha, precision, gamma):
    """Change rate, recall and false rate from what can be estimated."""
    change_rate = alpha + precision * gamma
    return change_rate, precision * gamma / change_rate, (1 - precision) * gamma


# www25 eq. (1).
def fresh_probability(elapsed, n_signals, change_rate, recall, false_rate):
    """Probability that a copy is fresh, given elapsed time and signals."""
    alpha, gamma, _, _ = signal_parameters(change_rate, recall, false_rate)
    return np.exp(-alpha * elapsed) * (false_rate / gamma) ** n_signals


def _remaining(elapsed, n_signals, beta, terms=None):
    """Times iota - i beta = tau + (n - i) beta, to i = floor(iota / beta)."""
    if np.isinf(beta):  # nu = 0 or recall 1: a signal counts for all time
        return np.array([np.inf] * n_signals + [elapsed])[:terms]
    n_terms = n_signals + int(elapsed // beta) + 1
    i = np.arange(min(n_terms, terms or n_terms))
    return np.maximum(elapsed + (n_signals - i) * beta, 0.0)


def _lemma_4(x, change_rate, recall, false_rate):
    """psi and w of Lemma 4, the sums over the times x = iota - i beta."""
    alpha, gamma, _, _ = signal_parameters(change_rate, recall, false_rate)
    i, both = np.arange(len(x)), alpha + gamma
    psi = np.sum(gammainc(i + 1, gamma * x)) / gamma
    return psi, np.sum((false_rate / both) ** i * gammainc(i + 1, both * x)) / both


# www25, psi of Lemma 4; R^i(x) = gammainc(i + 1, x).
# Corrected: the sums end at floor(iota / beta), not at i / beta or t / beta.
def cycle_length(threshold, change_rate, recall, false_rate):
    """Expected time between crawls at a threshold; psi."""
    if recall * change_rate == 0:  # no information: crawls at equal intervals
        return threshold
    _, _, _, beta = signal_parameters(change_rate, recall, false_rate)
    x = _remaining(threshold, 0, beta)
    return _lemma_4(x, change_rate, recall, false_rate)[0]


# www25, w of Lemma 4. Corrected: also nu^i in the proof, where it has gamma^i.
def fresh_time(threshold, change_rate, recall, false_rate):
    """Expected fresh time between crawls at a threshold; w."""
    if recall * change_rate == 0:
        return -np.expm1(-change_rate * threshold) / change_rate
    _, _, _, beta = signal_parameters(change_rate, recall, false_rate)
    x = _remaining(threshold, 0, beta)
    return _lemma_4(x, change_rate, recall, false_rate)[1]


# www25, section 5.1, the special cases of V.
def crawl_value_no_signals(elapsed, change_rate, importance):
    """Crawl value of a page without signals; V_GREEDY."""
    return importance / change_rate * gammainc(2, change_rate * elapsed)


def crawl_value_no_false_signals(elapsed, n_signals, change_rate, importance, recall):
    """Crawl value of a page without false signals; V_GREEDY_CIS."""
    if n_signals > 0:
        return importance / change_rate
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate
    stale = np.exp(-alpha * elapsed) * -np.expm1(-gamma * elapsed) / gamma
    return importance * (-np.expm1(-change_rate * elapsed) / change_rate - stale)


# www25, Theorem 1: V = mu (w - exp(-alpha iota) psi); `terms` is j of APPROX-j
# of appendix A.1. At recall 1 the limit alpha -> 0 (derived).
# Corrected (Fig. 6): only the exact V tends to mu / Delta, not APPROX-j.
def crawl_value(
    elapsed, n_signals, change_rate, importance, recall, false_rate, terms=None
):
    """Crawl value of a page, V."""
    if recall == 0 and (terms is None or false_rate == 0):
        return crawl_value_no_signals(elapsed, change_rate, importance)
    _, _, _, beta = signal_parameters(change_rate, recall, false_rate)
    if recall == 0:  # beta = 0: APPROX-j is its limit for recall -> 0
        x = np.full(terms, elapsed)
    else:
        x = _remaining(elapsed, n_signals, beta, terms)
    psi, w = _lemma_4(x, change_rate, recall, false_rate)
    fresh = fresh_probability(elapsed, n_signals, change_rate, recall, false_rate)
    return importance * (w - fresh * psi)


# Derived: Delta ~ Gamma(a, b), and V = mu int_0^t s c'(s) ds, c = 1 - (b/(b+t))^a.
def bayes_crawl_value(elapsed, importance, shape, rate):
    """Crawl value of a page without signals under a gamma distribution."""

    def integrand(s):
        return s * shape / (rate + s) * (rate / (rate + s)) ** shape

    return importance * quad(integrand, 0, elapsed, epsabs=0)[0]


# www25, Theorem 1 and Lemma 2: V(iota_i) = Lambda for all pages, except where
# V(inf) = mu / Delta < Lambda: there iota_i = inf. For recall below 1, because
# the crawl rate jumps at recall 1.
def optimal_thresholds(change_rate, importance, recall, false_rate, bandwidth):
    """Optimal thresholds, crawl rates and the multiplier."""
    pages = list(zip(change_rate, importance, recall, false_rate, strict=True))

    def threshold(page, multiplier):
        longest = 60 / ((1 - page[2]) * page[0])  # exp(-60) is below rounding

        def excess(iota):
            return crawl_value(iota, 0, *page) - multiplier

        return _root(excess, 0.0, longest) if excess(longest) > 0 else np.inf

    def crawl_rate(page, multiplier):
        (d, _, lam, nu), iota = page, threshold(page, multiplier)
        return 0.0 if np.isinf(iota) else 1 / cycle_length(iota, d, lam, nu)

    def rates(multiplier):
        return np.array([crawl_rate(page, multiplier) for page in pages])

    rate, multiplier = _spend(rates, bandwidth, 2 * np.max(importance / change_rate))
    return np.array([threshold(page, multiplier) for page in pages]), rate, multiplier


# www25, appendix E, with b = alpha beta.
# Corrected: P(changed) = 1 - exp(-(alpha tau + b n)); printed is P(unchanged).
def signal_log_likelihood(alpha, b, interval, n_signals, changed):
    """Log-likelihood of alpha and b."""
    x = alpha * interval + b * n_signals
    return np.sum(np.log(-np.expm1(-x[changed]))) - np.sum(x[~changed])


# The same: both derivatives vanish; the one in b along the best alpha.
def fit_signals(interval, n_signals, changed):
    """Maximum likelihood estimates of alpha and b, interior."""

    def score(log_alpha, b, factor):
        x = np.exp(log_alpha) * interval + b * n_signals
        ratio = np.exp(-x) / -np.expm1(-x)
        return np.sum((factor * ratio)[changed]) - np.sum(factor[~changed])

    def best(b):
        low = -np.log(interval.mean()) - 30  # stands for alpha = 0
        if score(low, b, interval) < 0:
            return low
        return _root(lambda a: score(a, b, interval), low, low + 40)

    b = _root(lambda b: score(best(b), b, n_signals), 1e-9, 50.0)
    return np.exp(best(b)), b


# www25, appendix E: as if a crawl that found a change had found exactly one.
def naive_precision_recall(n_signals, changed):
    """Naive precision and recall; biased."""
    precision = n_signals[changed].sum() / n_signals.sum()
    return precision, np.mean(n_signals[changed] > 0)


# ------------------------------------------------------------------- schedules


# www25, Algorithm 1. GREEDY believes recall and false rate 0, GREEDY-CIS false
# rate 0; NCIS-D of appendix C discards signals until `discard` after a crawl.
# All pages are crawled at time 0 (the draft does not say).
def greedy_slots(
    pages, bandwidth, n_slots, signal_time, signal_page, discard=0.0, terms=None
):
    """Page of each slot; `pages` holds the last four arguments of V."""
    last, n = np.zeros(len(pages)), np.zeros(len(pages), dtype=int)
    signals, chosen = sorted(zip(signal_time, signal_page, strict=True)), []
    for t in np.arange(1, n_slots + 1) / bandwidth:
        while signals and signals[0][0] <= t:
            arrival, i = signals.pop(0)
            n[i] += arrival - last[i] >= discard
        value = [
            crawl_value(t - last[i], n[i], *page, terms) for i, page in enumerate(pages)
        ]
        chosen.append(int(np.argmax(value)))
        last[chosen[-1]], n[chosen[-1]] = t, 0
    return np.array(chosen)


# www25 eq. (2): the mean of eq. (1) over time, weighted by importance. Between
# two events a copy is fresh for exp(-alpha s), from the probability at the
# first.
def accuracy(pages, crawl_time, crawl_page, signal_time, signal_page, horizon):
    """Share of requests served fresh, given crawls and signals."""
    total = 0.0
    for i, (change_rate, importance, recall, false_rate) in enumerate(pages):
        events = [(t, True) for t in crawl_time[crawl_page == i]]
        events += [(t, False) for t in signal_time[signal_page == i]]
        alpha, gamma, _, _ = signal_parameters(change_rate, recall, false_rate)
        fresh, now = 1.0, 0.0
        for t, crawl in [*sorted(events), (horizon, False)]:
            length = t - now
            total += importance * fresh * length * exprel(-alpha * length)
            fresh *= np.exp(-alpha * length) * false_rate / gamma
            fresh, now = 1.0 if crawl else fresh, t
    return total / (horizon * sum(importance for _, importance, _, _ in pages))


# What a copy lacks, from its changes one by one. A change that is never seen counts
# until the horizon.
def costs(change_times, crawl_times, importance, horizon):
    """Mean delay, the delay of 95% of the changes, mean age and harmonic cost."""
    delays, weights, age, harmonic = [], [], 0.0, 0.0
    for changes, crawls, weight in zip(
        change_times, crawl_times, importance, strict=True
    ):
        begin = 0.0
        for end in [*crawls, horizon]:
            new = [t for t in changes if begin < t <= end]
            delays += [end - t for t in new]
            weights += [weight] * len(new)
            if new:
                age += weight * (end - min(new)) ** 2 / 2
            harmonic += sum(weight * (end - t) / k for k, t in enumerate(new, 1))
            begin = end
    whole = sum(importance) * horizon
    ranked = sorted(zip(delays, weights, strict=True))
    total = sum(weights)
    shares = np.cumsum([weight for _, weight in ranked]) / total
    late = min(d for (d, _), share in zip(ranked, shares, strict=True) if share >= 0.95)
    mean = sum(d * w for d, w in ranked) / total
    return mean, late, age / whole, harmonic / whole


# Avrachenkov, Borkar and Shah 2024; derived for a page in slots, of which slot s
# after a crawl costs the stale time in it. The page pays the multiplier for each
# crawl; rho is its least mean cost per slot and h(k) its relative value k slots
# after a crawl, h(0) = 0, by policy iteration. Ages stop where a copy is
# certainly stale. The index is Q(wait) - Q(crawl), plus the multiplier, which
# is the same for all pages and changes no decision.
def lagrangian_index(change_rate, importance, slot, multiplier):
    """Lagrangian index of a page after 0, 1, ... slots, and its mean cost rho."""
    n = math.ceil(40 / (change_rate * slot))  # exp(-40) is below rounding
    age, cost = np.arange(n), _slot_costs(change_rate, importance, slot, n)
    older, crawl = np.minimum(age + 1, n - 1), np.zeros(n, dtype=bool)
    while True:
        # h(k) + rho = cost + h(next); the unknown of column 0 is rho
        system = np.eye(n)
        system[age, np.where(crawl, 1, older)] -= 1
        system[:, 0] = 1
        h = np.linalg.solve(system, np.where(crawl, multiplier + cost[0], cost))
        rho, h[0] = h[0], 0.0
        index = cost + h[older] - cost[0] - h[1]
        gain = np.where(crawl, multiplier - index, index - multiplier)
        if (gain <= 1e-12 * multiplier).all():  # where both are as good, none moves
            return index, rho
        crawl ^= gain > 1e-12 * multiplier


def _slot_costs(change_rate, importance, slot, n):
    """Stale time, times importance, in slots 0 to n - 1 after a crawl."""
    fresh = np.exp(-change_rate * slot * np.arange(n))
    return importance * (slot - fresh * -np.expm1(-change_rate * slot) / change_rate)


# Derived: relative value iteration over the ages of all pages in slots; half
# steps, because the best schedule is periodic. The least and the greatest step
# enclose the optimum. A page of age `longest` stays so, at the cost of this age:
# exact if the copy is then certainly stale or the page long due, else too low.
def best_slots(change_rate, importance, slot, longest, tolerance):
    """Least mean cost per slot of all schedules of a few pages, from below."""
    pages = list(zip(change_rate, importance, longest, strict=True))
    cost = sum(np.ix_(*(_slot_costs(d, mu, slot, n + 1) for d, mu, n in pages)))
    older = np.ix_(*(np.minimum(np.arange(1, n + 2), n) for n in longest))
    h = np.zeros([n + 1 for n in longest])
    while True:
        cost_to_go, step = cost + h[older], np.inf
        for i in range(len(pages)):  # a crawl sets the age of page i to 0
            step = np.minimum(step, cost_to_go.take([0], axis=i))
        step = step - h
        if np.ptp(step) <= tolerance:
            return step.min()
        h += step / 2
        h -= h.flat[0]


# Azar et al. 2018, algorithm 3; Liu and Layland 1973. Visit k of a page of
# share p is due in slots from floor((k - 1) / p) to ceil(k / p), our choice.
def low_discrepancy(crawl_rate, n_slots):
    """Page of each slot, earliest deadline first."""
    period = [Fraction(float(np.sum(crawl_rate))) / Fraction(p) for p in crawl_rate]
    waiting = [(0, math.ceil(period[i]), i, 1) for i in range(len(period))]
    heapq.heapify(waiting)
    ready, chosen = [], []
    for slot in range(n_slots):
        while waiting and waiting[0][0] <= slot:
            heapq.heappush(ready, heapq.heappop(waiting)[1:])
        _, i, k = heapq.heappop(ready)
        chosen.append(i)
        window = math.floor(k * period[i]), math.ceil((k + 1) * period[i])
        heapq.heappush(waiting, (*window, i, k + 1))
    return np.array(chosen)


# ------------------------------------------------------------- periodic rates


# Derived: rates Delta_i g(t), g of mean 1 and constant on equal bins of a period.
def exposure(start, end, n_bins, period):
    """Time that an interval spends in each bin, piece by piece."""
    spent, width, t = np.zeros(n_bins), period / n_bins, start
    while t < end:
        piece = math.floor(t / width + 1e-9)  # at an edge, the bin that begins
        until = min((piece + 1) * width, end)
        spent[piece % n_bins] += until - t
        t = until
    return spent


# Derived: u = Delta_i sum_b g_b e_kb; `page` is the page of each crawl.
def periodic_log_likelihood(change_rate, weight, page, exposure, changed):
    """Log-likelihood of change rates and of a profile with these weights."""
    u = change_rate[page] * (exposure @ weight)
    return np.sum(np.log(-np.expm1(-u[changed]))) - np.sum(u[~changed])


# Derived: the expected changes of crawl k in bin b, given its bit; then the rates
# that fit them. With s pseudo-changes in each bin.
def periodic_em(change_rate, weight, page, exposure, changed, s):
    """One EM step for change rates and profile."""
    rate = change_rate[page, None] * weight * exposure
    changes = changed[:, None] * rate / -np.expm1(-rate.sum(axis=1, keepdims=True))
    change_rate = np.bincount(page, changes.sum(axis=1)) / np.bincount(
        page, exposure @ weight
    )
    weight = (changes.sum(axis=0) + s) / (change_rate[page] @ exposure + s)
    return change_rate * weight.mean(), weight / weight.mean()


# Derived: demand m(t) and profile g(t) are given as weights of equal bins.
def periodic_stale_time(change_rate, weight, demand, period, start, end):
    """Stale time between two crawls, weighted by demand, by quadrature."""
    n, width = len(weight), period / len(weight)

    def changes(t):
        return change_rate * exposure(start, t, n, period) @ weight / np.mean(weight)

    def stale(t):
        m = demand[math.floor(t / width) % n] / np.mean(demand)
        return -m * np.expm1(-changes(t))

    edges = width * np.arange(math.floor(start / width) + 1, math.ceil(end / width))
    pieces = itertools.pairwise([start, *edges, end])
    return sum(quad(stale, *piece, epsabs=0, epsrel=1e-12)[0] for piece in pieces)


# --------------------------------------------------------------- regret bounds


# aaai20, Lemma 1, two-sided. Derived: no factor 2 inside the logarithm.
def burn_in(importance, tolerance, min_rate):
    """Time after which the utility is within a tolerance of eq. (5)."""
    return max(np.log(np.sum(importance) / tolerance), 0.0) / min_rate


# aaai20, left side of Lemma 4: F(rho*; Delta) - F(rho^; Delta).
def suboptimality(change_rate, estimated_rate, importance, bandwidth):
    """Utility lost by rates that are optimal for estimates."""
    best, _ = optimal_poisson(change_rate, importance, bandwidth)
    chosen, _ = optimal_poisson(estimated_rate, importance, bandwidth)
    return utility(change_rate, importance, best, np.inf, 0.0) - utility(
        change_rate, importance, chosen, np.inf, 0.0
    )


# aaai20, Lemma 4; the constant 1 is not confirmed, 1/4 is enough (derived).
def sensitivity_bound(change_rate, estimated_rate, importance):
    """Bound on `suboptimality`."""
    least = np.minimum(estimated_rate, change_rate)
    error = estimated_rate - change_rate
    return np.sum(importance * error**2 / (estimated_rate * least))


# Derived: the sharper first step of the proof, at the chosen rates rho^.
def sharp_sensitivity_bound(change_rate, estimated_rate, importance, crawl_rate):
    """Sharper bound on `suboptimality`."""
    now, believed = crawl_rate + change_rate, crawl_rate + estimated_rate
    error = np.sqrt(change_rate) / now - np.sqrt(estimated_rate) / believed
    return np.sum(importance * now * error**2)


# aaai20, Lemma 5; derived from Lemma 3 with w = m/R, N = tau R/m at level
# 1 - delta/m, and a union bound.
def exploration_radius(n_pages, bandwidth, exploration, max_rate, level):
    """Radius that holds all true rates at once after exploration."""
    m, r, tau = n_pages, bandwidth, exploration
    hoeffding = np.sqrt(r * np.log(2 * m / (1 - level)) / (2 * tau * m))
    return np.exp(max_rate * m / r) * hoeffding


# aaai20, Theorem 1, eq. (12) (derived).
def regret_bound(exploration, horizon, importance, bandwidth, bounds, level):
    """Bound on the regret of explore-then-commit."""
    m, r, tau, (low, high) = len(importance), bandwidth, exploration, bounds
    error = np.exp(2 * high * m / r) * r * np.log(2 * m / (1 - level))
    slope = error / (2 * m * low**2)
    return np.sum(importance) * (tau + (horizon - tau) / tau * slope)


# aaai20, Theorem 1. Corrected: at tau* the bound is least, printed "maximum".
def exploration_horizon(horizon, n_pages, bandwidth, bounds, level):
    """Exploration that minimises eq. (12), before rounding."""
    m, r, (low, high) = n_pages, bandwidth, bounds
    root = np.sqrt(horizon * r * np.log(2 * m / (1 - level)) / (2 * m))
    return np.exp(high * m / r) / low * root


# ----------------------------------------------------------- learning policies


# aaai20, section 6.3, our reading; one phase with epsilon = 0 is
# explore-then-commit of section 5. Exploration is at equal intervals m / R
# from a crawl of all pages on.
def phased_epsilon_greedy(
    change_rate, importance, bandwidth, exploration, horizon, bounds,
    n_phases, epsilon, rng,
):  # fmt: skip
    """One run: expected requests served fresh, and the last estimates."""
    m, d = len(change_rate), len(change_rate) / bandwidth
    interval = [np.full(round(exploration / d), d)] * m
    changed, age = [np.empty(0, dtype=bool)] * m, np.zeros(m)
    for i in range(m):
        q = predicted_probability(change_rate[i], interval[i])
        changed[i] = rng.random(q.size) < q
    fresh = exploration * importance @ interval_freshness(change_rate, 1 / d)
    length = (horizon - exploration) / n_phases
    for _ in range(n_phases):
        believed = [
            moment_matching(*history, *bounds)
            for history in zip(interval, changed, strict=True)
        ]
        best, _ = optimal_poisson(np.array(believed), importance, bandwidth)
        rate = (1 - epsilon) * best + epsilon * bandwidth / m
        start = np.exp(-change_rate * age)
        fresh += importance @ poisson_fresh_time(change_rate, rate, length, start)
        for i in range(m):
            times = np.sort(rng.uniform(0, length, rng.poisson(rate[i] * length)))
            w = np.diff(times, prepend=-age[i])
            z = rng.random(w.size) < predicted_probability(change_rate[i], w)
            interval[i] = np.append(interval[i], w)
            changed[i] = np.append(changed[i], z)
            age[i] = length - times[-1] if w.size else age[i] + length
    return fresh, np.array(believed)


# peva22, section 5. Corrected: the constraint under eq. (17) sums to N,
# printed n. `observe(p)` crawls all pages at the rates p and returns their
# bits, pages first; `estimate` gets the list of all (p, bits) so far. The
# floor is our choice.
def reoptimise(estimate, observe, importance, bandwidth, n_phases, min_rate):
    """Crawl rates in use in every phase."""
    rates, phases = [np.full(len(importance), bandwidth / len(importance))], []
    for _ in range(n_phases):
        phases.append((rates[-1], observe(rates[-1])))
        believed = np.maximum(estimate(phases), min_rate)
        rates.append(optimal_poisson(believed, importance, bandwidth, min_rate)[0])
    return np.array(rates)


# Kolobov, Bubeck and Zimmert 2020 (MirrorSync), as printed; the minimum by SLSQP, in
# x / r.
def mirror_step(crawl_rate, gradient, bandwidth, limits, step):
    """Crawl rates after a step of mirror descent."""

    def divergence(y):
        return np.sum(step * gradient * crawl_rate * y + y - 1 - np.log(y))

    def slope(y):
        return step * gradient * crawl_rate + 1 - 1 / y

    spare = {"type": "ineq", "fun": lambda y: 1 - crawl_rate @ y / bandwidth}
    bounds = [(limits[0] / r, limits[1] / r) for r in crawl_rate]
    start = np.full(len(crawl_rate), bandwidth / len(crawl_rate)) / crawl_rate
    found = minimize(
        divergence, start, jac=slope, bounds=bounds, constraints=spare,
        method="SLSQP", options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    return crawl_rate * found.x


# ---------------------------------------------------------------------- priors


# grimes08, section 4.4, derived: two pseudo-observations, a changed interval a
# and an unchanged interval b; flat in the rate without them.
def prior_density(rate, a, b):
    """Density of the change rate."""
    return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)


def prior_moments(a, b):
    """Mean and variance of the prior, of Exp(b) + Exp(a + b)."""
    return 1 / b + 1 / (a + b), 1 / b**2 + 1 / (a + b) ** 2


def prior_mode(a, b):
    """Mode of the prior, the MLE of the two pseudo-observations."""
    return np.log(1 + a / b) / a


# grimes08, section 4.4: their posterior on a grid of periods, flat in the
# period.
def prior_probabilities(period, a, b):
    """Probabilities of the mean times between changes on a grid."""
    weight = np.exp(-b / period) * -np.expm1(-a / period) * np.gradient(period)
    return weight / weight.sum()


# grimes08, section 4.4: what simulated annealing minimises.
def prior_distance(change_rate, period, a, b):
    """L2 distance of a prior to a population of change rates on a grid."""
    nearest = [np.argmin(np.abs(period - 1 / rate)) for rate in change_rate]
    share = np.bincount(nearest, minlength=period.size) / len(change_rate)
    return np.sqrt(np.sum((prior_probabilities(period, a, b) - share) ** 2))


# grimes08, section 4.3.
def grid_posterior(interval, changed, rate, prior):
    """Posterior probabilities of change rates on a grid."""
    posterior = np.array(prior, dtype=float)
    for w, z in zip(interval, changed, strict=True):
        q = np.exp(-rate * w)
        posterior *= (1 - q) if z else q
        posterior /= posterior.sum()
    return posterior


# Derived: Delta ~ Gamma(a, b), y = log(b Delta); for a above 0.2.
def gamma_marginal(interval, changed, shape, rate):
    """Probability of the bits of a page whose change rate has a gamma density."""
    y = np.linspace(-150, 5, 15_501)
    q = np.exp(-np.exp(y) / rate * np.asarray(interval)[:, np.newaxis])
    bits = np.prod(np.where(np.asarray(changed)[:, np.newaxis], 1 - q, q), axis=0)
    return np.trapezoid(bits * np.exp(shape * y - np.exp(y) - gammaln(shape)), y)


# Derived: the product of the (1 - exp(-Delta w)) is a sum over the sets of changed
# intervals, and E exp(-Delta t) = (b / (b + t))^a. Its terms alternate: all digits
# are lost from some 15 changes on.
def gamma_bits(interval, changed, shape, rate):
    """Probability of the bits of a page, and posterior mean of its change rate."""
    interval, changed = np.asarray(interval, dtype=float), np.asarray(changed, bool)
    total = mean = 0.0
    for chosen in itertools.product([0, 1], repeat=changed.sum()):
        after = rate + interval[~changed].sum() + interval[changed] @ chosen
        term = (-1) ** sum(chosen) * (rate / after) ** shape
        total, mean = total + term, mean + term * shape / after
    return total, mean / total


# Derived: n changes in a time t have the likelihood Delta^n exp(-Delta t).
def count_marginal(n_changes, time, shape, rate):
    """Log probability of counted changes, and posterior mean of the change rate."""
    log = gammaln(shape + n_changes) - gammaln(shape) + shape * np.log(rate)
    after = shape + n_changes, rate + time
    return log - after[0] * np.log(after[1]), after[0] / after[1]


# Beyond the papers: hosts share a shape, the log of their mean rates is normal.
def host_marginal(pages, shape, median, spread):
    """Probability of the bits of all pages of a host; `pages` as in gamma_prior."""
    x = np.linspace(-8, 8, 401)  # standard deviations of the log of the mean
    rate = shape / (median * np.exp(spread * x))
    bits = [gamma_bits(*page, shape, rate)[0] for page in pages]
    return np.trapezoid(np.prod(bits, axis=0) * np.exp(-(x**2) / 2), x) / np.sqrt(
        2 * np.pi
    )


# Empirical Bayes; `pages` holds intervals and bits of each page.
def gamma_prior(pages, start=(1.0, 1.0)):
    """Shape and rate of maximum marginal likelihood."""

    def loss(logs):
        return -sum(np.log(gamma_marginal(*page, *np.exp(logs))) for page in pages)

    return np.exp(minimize(loss, np.log(start), method="Nelder-Mead").x)


# grimes08, sections 4.1 (factor 0.8) and 5 (factor 1).
def adaptive_intervals(changed, estimate, initial, factor, limits):
    """Intervals of a page that is crawled again after factor / estimate."""
    interval = [initial]
    for k in range(1, len(changed)):
        rate = estimate(np.array(interval), np.array(changed[:k]))
        period = np.inf if rate == 0 else factor / rate
        interval.append(min(max(period, limits[0]), limits[1]))
    return np.array(interval)
