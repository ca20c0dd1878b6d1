"""Plain forms of what the five papers do not have, in NumPy and SciPy.

One function a formula, as in `tests.plain`, which has those of the papers. Derived
where no source is named.
"""

import itertools
import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import exprel, gammaln, polygamma
from scipy.stats import chi2, poisson

from tests.plain import (
    log_likelihood,
    mle,
    signal_log_likelihood,
)
from tests.plain._searching import root, spend

# ------------------------------------------------------- one bit of each crawl


def likelihood_interval(interval, changed, level, dispersion=1):
    """Likelihood-ratio interval of the change rate."""
    # Without an interior maximum, the rates under which the bits have a probability
    # of at least 1 - level.
    best, one_sided = mle(interval, changed), -dispersion * np.log(1 - level)
    if best == 0:
        return 0.0, one_sided / interval.sum()
    top, drop = 0.0, one_sided
    if best < np.inf:
        top = log_likelihood(best, interval, changed)
        drop = dispersion * chi2.ppf(level, 1) / 2

    def excess(log_rate):
        return log_likelihood(np.exp(log_rate), interval, changed) - top + drop

    middle = np.log(min(best, 40 / interval.min()))
    low = np.exp(root(excess, middle - 300, middle))
    if best == np.inf:
        return low, np.inf
    return low, np.exp(root(excess, middle, middle + 300))


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


def log_stderr(information, dispersion):
    """Standard deviation of the logarithm of the change rate."""
    # Of a gamma density with this curvature at its mode; exact for one.
    return np.sqrt(polygamma(1, 1 + information / dispersion))


def mean_log_rate(interval, changed, dispersion):
    """Posterior mean of the log rate; all rates are equally likely before."""
    # The density of the logarithm is the rate times the likelihood^(1 / dispersion).
    x = np.linspace(-30, 30, 6001)
    logs = np.array([log_likelihood(np.exp(u), interval, changed) for u in x])
    log_density = logs / dispersion + x
    return np.average(x, weights=np.exp(log_density - log_density.max()))


def false_change_log_likelihood(change_rate, b, interval, changed):
    """Log-likelihood of a change rate and of false changes, concave."""
    # P(changed) = 1 - (1 - q) exp(-Delta w), b = -log(1 - q): as if each crawl had
    # received one signal.
    return signal_log_likelihood(change_rate, b, interval, 1, changed)


def false_changes(pages, n_steps):
    """Shared b of pages, and their change rates; a page is two arrays."""
    # EM: b and Delta w are additive hazards, and a changed crawl has the expected
    # events b / (1 - exp(-u)) and Delta w / (1 - exp(-u)), u = b + Delta w.
    b, rates = 1.0, np.array([1 / np.mean(interval) for interval, _ in pages])
    for _ in range(n_steps):
        false = 0.0
        for i, (interval, changed) in enumerate(pages):
            events = changed / -np.expm1(-(b + rates[i] * interval))
            false += np.sum(events)
            rates[i] *= np.sum(events * interval) / np.sum(interval)
        b *= false / sum(len(interval) for interval, _ in pages)
    return b, rates


def design_variance(change_rate, false_change, interval, share, known):
    """Times n the variance of the MLE of the change rate after n crawls."""
    # The inverse of the Fisher information of (b, Delta) per crawl.
    v = share / np.expm1(change_rate * interval - np.log(1 - false_change))
    design = np.stack([np.ones(len(interval)), interval])
    information = design * v @ design.T
    return 1 / information[1, 1] if known else np.linalg.inv(information)[1, 1]


# ------------------------------------------- more than a bit of some crawls


def likelihood_terms(interval, changed, age, count):
    """Known changes, the time they are known for, and intervals known by a bit."""
    # Known changes are points of the process, and an unchanged time is empty.
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

    return root(slope, 1e-9 * n_known / time, 2 * (n_known + len(bits)) / time)


def feed_terms(change_times, crawl_times, n_entries):
    """Known changes and the time they are known for, of each crawl."""
    # A feed shows the last N changes.
    terms, before = [], 0.0
    for now in crawl_times:
        new = [t for t in change_times if before < t <= now][-n_entries:]
        full = len(new) == n_entries
        terms.append((len(new), now - new[0] if full else now - before))
        before = now
    return terms


def observed_information(change_rate, interval, observation, n_entries=1):
    """Fisher information of one crawl, by what it reveals."""
    # Minus the expected second derivative of the log-likelihood; "age" is N = 1.
    if observation == "bit":
        return interval**2 / np.expm1(change_rate * interval)
    m = np.arange(1000)
    seen = m if observation == "count" else np.minimum(m, n_entries)
    return np.sum(seen * poisson.pmf(m, change_rate * interval)) / change_rate**2


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
    seen = x / np.expm1(x)
    more = seen**2 * np.exp(x)
    return shape + more, rate + (more - seen) / estimate


def objective_cost(name, elapsed, change_rate):
    """Cost of a page per unit of time, a time t after its last crawl."""
    # The harmonic cost is the mean of 1 + 1/2 + ... + 1/N, N ~ Poisson(Delta t).
    t, x = elapsed, change_rate * elapsed
    return {
        "freshness": lambda: 1 - np.exp(-x),
        "age": lambda: t - (1 - np.exp(-x)) / change_rate,
        "harmonic": lambda: quad(lambda s: exprel(-s), 0, x)[0],
    }[name]()


def objective_value(name, elapsed, change_rate):
    """Crawl value of a page under an objective: what a crawl saves."""
    # Eq. (4) of Olston and Pandey (2008): V = t c(t) - int_0^t c.

    def cost(t):
        return objective_cost(name, t, change_rate)

    return elapsed * cost(elapsed) - quad(cost, 0, elapsed)[0]


# ------------------------------------------------------------------ allocation


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


def optimal(
    change_rate, importance, bandwidth, gain, low, high, cost, host, host_limit
):
    """Rates of least cost under limits of pages and hosts, and the multiplier."""
    # Any objective, of which gain(rho, Delta) is what one more crawl saves, V(1 / rho).
    # KKT: mu gain = c lambda between the limits of a page, less at the lower
    # one, more at the upper one. Limits are finite, the lower ones positive.

    def rate(i, multiplier):
        def excess(p):
            return importance[i] * gain(p, change_rate[i]) - cost[i] * multiplier

        if excess(low[i]) <= 0 or excess(high[i]) >= 0:
            return low[i] if excess(low[i]) <= 0 else high[i]
        return root(excess, low[i], high[i])

    def solve(on, bandwidth):
        pages = np.flatnonzero(on)

        def spent(multiplier):
            return np.array([cost[i] * rate(i, multiplier) for i in pages])

        if spent(0.0).sum() <= bandwidth:
            return spent(0.0) / cost[pages], 0.0
        top = np.max(importance / cost * gain(low, change_rate))
        spent_best, multiplier = spend(spent, bandwidth, 2 * top)
        return spent_best / cost[pages], multiplier

    return _saturate(solve, bandwidth, cost, host, host_limit)


# ------------------------------------------------------------------- schedules


# ------------------------------------------------------------- periodic rates


def exposure(start, end, n_bins, period):
    """Time that an interval spends in each bin, piece by piece."""
    # The profile g has mean 1 and is constant on equal bins of a period.
    spent, width, t = np.zeros(n_bins), period / n_bins, start
    while t < end:
        piece = math.floor(t / width + 1e-9)  # at an edge, the bin that begins
        until = min((piece + 1) * width, end)
        spent[piece % n_bins] += until - t
        t = until
    return spent


def periodic_log_likelihood(change_rate, weight, page, exposure, changed):
    """Log-likelihood of change rates and of a profile; `page` is that of each crawl."""
    # As if the interval of crawl k were sum_b g_b e_kb, its operational time.
    return log_likelihood(change_rate[page], exposure @ weight, changed)


def periodic_em(change_rate, weight, page, exposure, changed, s):
    """One EM step for change rates and profile."""
    # The expected changes of crawl k in bin b, given its bit; then the rates
    # that fit them. With s pseudo-changes in each bin.
    rate = change_rate[page, None] * weight * exposure
    changes = changed[:, None] * rate / -np.expm1(-rate.sum(axis=1, keepdims=True))
    change_rate = np.bincount(page, changes.sum(axis=1)) / np.bincount(
        page, exposure @ weight
    )
    weight = (changes.sum(axis=0) + s) / (change_rate[page] @ exposure + s)
    return change_rate * weight.mean(), weight / weight.mean()


def periodic_stale_time(change_rate, weight, demand, period, start, end):
    """Stale time between two crawls, weighted by demand, by quadrature."""
    # Demand m(t) and profile g(t) are given as weights of equal bins.
    n, width = len(weight), period / len(weight)

    def changes(t):
        return change_rate * exposure(start, t, n, period) @ weight / np.mean(weight)

    def stale(t):
        m = demand[math.floor(t / width) % n] / np.mean(demand)
        return -m * np.expm1(-changes(t))

    edges = width * np.arange(math.floor(start / width) + 1, math.ceil(end / width))
    pieces = itertools.pairwise([start, *edges, end])
    return sum(quad(stale, *piece, epsabs=0, epsrel=1e-12)[0] for piece in pieces)


# ---------------------------------------------------------------------- priors


def gamma_marginal(interval, changed, shape, rate):
    """Probability of the bits of a page whose change rate has a gamma density."""
    # Delta ~ Gamma(a, b), y = log(b Delta); for a above 0.2.
    y = np.linspace(-150, 5, 15_501)
    q = np.exp(-np.exp(y) / rate * np.asarray(interval)[:, np.newaxis])
    bits = np.prod(np.where(np.asarray(changed)[:, np.newaxis], 1 - q, q), axis=0)
    return np.trapezoid(bits * np.exp(shape * y - np.exp(y) - gammaln(shape)), y)


def gamma_bits(interval, changed, shape, rate):
    """Probability of the bits of a page, and posterior mean of its change rate."""
    # The product of the (1 - exp(-Delta w)) is a sum over the sets of changed
    # intervals, and E exp(-Delta t) = (b / (b + t))^a. Its terms alternate:
    # all digits are lost from some 15 changes on.
    interval, changed = np.asarray(interval, dtype=float), np.asarray(changed, bool)
    total = mean = 0.0
    for chosen in itertools.product([0, 1], repeat=changed.sum()):
        after = rate + interval[~changed].sum() + interval[changed] @ chosen
        term = (-1) ** sum(chosen) * (rate / after) ** shape
        total, mean = total + term, mean + term * shape / after
    return total, mean / total


def count_marginal(n_changes, time, shape, rate):
    """Log probability of counted changes, and posterior mean of the change rate."""
    # n changes in a time t have the likelihood Delta^n exp(-Delta t).
    log = gammaln(shape + n_changes) - gammaln(shape) + shape * np.log(rate)
    after = shape + n_changes, rate + time
    return log - after[0] * np.log(after[1]), after[0] / after[1]


def host_marginal(pages, shape, median, spread):
    """Probability of the bits of all pages of a host; `pages` as in gamma_prior."""
    # Pages share the shape; the log of the mean rate of hosts is normal.
    x = np.linspace(-8, 8, 401)  # standard deviations of that logarithm
    rate = shape / (median * np.exp(spread * x))
    bits = [gamma_bits(*page, shape, rate)[0] for page in pages]
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return np.trapezoid(np.prod(bits, axis=0) * density, x)


def gamma_prior(pages, start=(1.0, 1.0)):
    """Shape and rate of maximum marginal likelihood."""
    # Empirical Bayes; `pages` holds intervals and bits of each page.

    def loss(logs):
        return -sum(np.log(gamma_marginal(*page, *np.exp(logs))) for page in pages)

    return np.exp(minimize(loss, np.log(start), method="Nelder-Mead").x)
