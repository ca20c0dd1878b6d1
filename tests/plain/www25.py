"""Crawling with change-indicating signals (anonymous draft, 2025).

lambda is the recall and nu the false rate; R^i(x) is gammainc(i + 1, x), iota the
effective elapsed time tau + beta n.
"""

import heapq
import math
from fractions import Fraction

import numpy as np
from scipy.special import exprel, gammainc, gammaincinv

from tests.plain._searching import root, spend

__all__ = [
    "accuracy", "crawl_value", "crawl_value_no_false_signals", "crawl_value_no_signals",
    "fit_signals", "fresh_probability", "fresh_time", "greedy_slots",
    "interval_freshness", "low_discrepancy", "mean_crawl_interval",
    "naive_precision_recall", "observed_parameters", "optimal_interval",
    "optimal_thresholds", "signal_log_likelihood", "signal_parameters",
]  # fmt: skip


def signal_parameters(change_rate, recall, false_rate):
    """Section 3: alpha, gamma, precision and beta of a page with signals."""
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate + false_rate
    precision = recall * change_rate / gamma
    with np.errstate(divide="ignore"):  # beta = inf at nu = 0, and at recall 1
        beta = -np.log(np.divide(false_rate, gamma)) / alpha
    return alpha, gamma, precision, beta


def observed_parameters(alpha, precision, gamma):
    """Section 3, solved: change rate, recall and false rate."""
    change_rate = alpha + precision * gamma
    return change_rate, precision * gamma / change_rate, (1 - precision) * gamma


def fresh_probability(elapsed, n_signals, change_rate, recall, false_rate):
    """Eq. (1): probability that a copy is fresh, given elapsed time and signals."""
    alpha, gamma, _, _ = signal_parameters(change_rate, recall, false_rate)
    return np.exp(-alpha * elapsed) * (false_rate / gamma) ** n_signals


def accuracy(pages, crawl_time, crawl_page, signal_time, signal_page, horizon):
    """Eq. (2): mean of eq. (1) over time and importance, given crawls and signals."""
    total = 0.0
    for i, (change_rate, importance, recall, false_rate) in enumerate(pages):
        events = [(t, True) for t in crawl_time[crawl_page == i]]
        events += [(t, False) for t in signal_time[signal_page == i]]
        alpha, gamma, _, _ = signal_parameters(change_rate, recall, false_rate)
        fresh, now = 1.0, 0.0
        for t, crawl in [*sorted(events), (horizon, False)]:
            length = t - now  # between two events freshness falls by exp(-alpha s)
            total += importance * fresh * length * exprel(-alpha * length)
            fresh *= np.exp(-alpha * length) * false_rate / gamma
            fresh, now = 1.0 if crawl else fresh, t
    return total / (horizon * sum(importance for _, importance, _, _ in pages))


def interval_freshness(change_rate, crawl_rate):
    """Eq. (5): G(xi) / mu, freshness under crawls at equal intervals."""
    return crawl_rate / change_rate * -np.expm1(-change_rate / crawl_rate)


def optimal_interval(change_rate, importance, bandwidth):
    """Eq. (5): rates of interval crawls of highest freshness, and the multiplier."""
    # KKT: mu / Delta R^1(Delta / xi) = Lambda, or xi = 0 where mu / Delta <= Lambda.
    on = (change_rate > 0) & (importance > 0)
    d, mu = np.where(on, change_rate, 1.0), np.where(on, importance, 0.0)

    def rate(multiplier):
        level = np.divide(multiplier * d, mu, out=np.ones(d.size), where=on)
        return d / gammaincinv(2, np.minimum(level, 1.0))

    return spend(rate, bandwidth, 2 * np.max(mu / d))


def low_discrepancy(crawl_rate, n_slots):
    """Section 6.4, LDS: page of each slot, earliest deadline first."""
    # Liu and Layland 1973; algorithm 3 of Azar et al. 2018. Visit k of a page of share
    # p is due in the slots from floor((k - 1) / p) to ceil(k / p), our choice.
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


def _lemma_4(elapsed, n_signals, change_rate, recall, false_rate, terms=None):
    """psi and w of Lemma 4 at iota = tau + n beta; the first terms of the sums."""
    alpha, gamma, _, beta = signal_parameters(change_rate, recall, false_rate)
    if np.isinf(beta):  # nu = 0 or recall 1: a signal counts for all time
        x = np.array([np.inf] * n_signals + [elapsed])[:terms]
    elif beta == 0:  # recall 0: the limit of the first terms for recall -> 0
        x = np.full(terms, elapsed)
    else:
        n_terms = n_signals + int(elapsed // beta) + 1
        i = np.arange(min(n_terms, terms or n_terms))
        x = np.maximum(elapsed + (n_signals - i) * beta, 0.0)  # iota - i beta
    i, both = np.arange(len(x)), alpha + gamma
    psi = np.sum(gammainc(i + 1, gamma * x)) / gamma
    return psi, np.sum((false_rate / both) ** i * gammainc(i + 1, both * x)) / both


def mean_crawl_interval(threshold, change_rate, recall, false_rate):
    """Lemma 4, eq. (7): psi, the expected time between crawls at a threshold."""
    if recall * change_rate == 0:  # no information: crawls at equal intervals
        return threshold
    return _lemma_4(threshold, 0, change_rate, recall, false_rate)[0]


def fresh_time(threshold, change_rate, recall, false_rate):
    """Lemma 4, eq. (6): w, the expected fresh time between these crawls."""
    if recall * change_rate == 0:
        return -np.expm1(-change_rate * threshold) / change_rate
    return _lemma_4(threshold, 0, change_rate, recall, false_rate)[1]


def crawl_value_no_signals(elapsed, change_rate, importance):
    """Section 5.1: V_GREEDY, the crawl value of a page without signals."""
    return importance / change_rate * gammainc(2, change_rate * elapsed)


def crawl_value_no_false_signals(elapsed, n_signals, change_rate, importance, recall):
    """Section 5.1: V_GREEDY_CIS, that of a page without false signals."""
    if n_signals > 0:
        return importance / change_rate
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate
    stale = np.exp(-alpha * elapsed) * -np.expm1(-gamma * elapsed) / gamma
    return importance * (-np.expm1(-change_rate * elapsed) / change_rate - stale)


def crawl_value(
    elapsed, n_signals, change_rate, importance, recall, false_rate, terms=None
):
    """Lemma 4: V = mu (w - exp(-alpha iota) psi); terms = j is APPROX-j of A.1."""
    # At recall 1 the limit alpha -> 0 (derived).
    # Corrected (Fig. 6): only the exact V tends to mu / Delta, not APPROX-j.
    if recall == 0 and (terms is None or false_rate == 0):
        return crawl_value_no_signals(elapsed, change_rate, importance)
    page = change_rate, recall, false_rate
    psi, w = _lemma_4(elapsed, n_signals, *page, terms)
    return importance * (w - fresh_probability(elapsed, n_signals, *page) * psi)


def optimal_thresholds(change_rate, importance, recall, false_rate, bandwidth):
    """Theorem 1, Lemma 2: thresholds, crawl rates and multiplier; recall below 1."""
    # V(iota_i) = Lambda, or iota_i = inf where V(inf) = mu / Delta < Lambda. At
    # recall 1 the crawl rate jumps.
    pages = list(zip(change_rate, importance, recall, false_rate, strict=True))

    def threshold(multiplier, page):
        def excess(iota):
            return crawl_value(iota, 0, *page) - multiplier

        longest = 60 / ((1 - page[2]) * page[0])  # exp(-60) is below rounding
        return root(excess, 0.0, longest) if excess(longest) > 0 else np.inf

    def crawl_rate(iota, page):
        return (
            0.0 if np.isinf(iota) else 1 / mean_crawl_interval(iota, page[0], *page[2:])
        )

    def rates(multiplier):
        return np.array([crawl_rate(threshold(multiplier, p), p) for p in pages])

    rate, multiplier = spend(rates, bandwidth, 2 * np.max(importance / change_rate))
    return np.array([threshold(multiplier, p) for p in pages]), rate, multiplier


def greedy_slots(
    pages, bandwidth, n_slots, signal_time, signal_page, discard=0.0, terms=None
):
    """Algorithm 1: page of each slot; `pages` holds the last four arguments of V."""
    # GREEDY believes recall and false rate 0, GREEDY-CIS false rate 0; NCIS-D of
    # appendix C discards signals until `discard` after a crawl. All pages are
    # crawled at time 0 (the draft does not say).
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


def signal_log_likelihood(alpha, b, interval, n_signals, changed):
    """Appendix E: log-likelihood of alpha and b = alpha beta."""
    # Corrected: P(changed) = 1 - exp(-(alpha tau + b n)); printed is P(unchanged).
    x = alpha * interval + b * n_signals
    return np.sum(np.log(-np.expm1(-x[changed]))) - np.sum(x[~changed])


def fit_signals(interval, n_signals, changed):
    """Appendix E: its maximum, interior; the slope in b along the best alpha."""

    def score(log_alpha, b, factor):
        x = np.exp(log_alpha) * interval + b * n_signals
        ratio = np.exp(-x) / -np.expm1(-x)
        return np.sum((factor * ratio)[changed]) - np.sum(factor[~changed])

    def best(b):
        low = -np.log(interval.mean()) - 30  # stands for alpha = 0
        if score(low, b, interval) < 0:
            return low
        return root(lambda a: score(a, b, interval), low, low + 40)

    b = root(lambda b: score(best(b), b, n_signals), 1e-9, 50.0)
    return np.exp(best(b)), b


def naive_precision_recall(n_signals, changed):
    """Appendix E: as if a crawl that found a change had found one; biased."""
    precision = n_signals[changed].sum() / n_signals.sum()
    return precision, np.mean(n_signals[changed] > 0)
