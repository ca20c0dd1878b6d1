"""Arrays of histories, written crawl by crawl.

One pass over the crawls does what NumPy's indexed assignments do in several,
which take two to three times as long (measured).
"""

import math

from recrawl.compiled import compiled


@compiled
def trust(interval, changed, age, count, same, trusted_age, trusted_count):
    """Copy ages and counts, NaN where they contradict the bit; return how many do.

    Ages and intervals that differ by the relative `same` count as equal. age or
    count may be empty: nothing is known, and nothing is written.
    """
    n_wrong = 0
    for j in range(interval.size):
        a = age[j] if age.size else math.nan
        m = count[j] if count.size else math.nan
        # Selections, not branches, as below; no comparison with NaN is true.
        least = 0.0 if changed[j] else interval[j] * (1.0 - same)
        most = interval[j] * (1.0 + same) if changed[j] else math.inf
        wrong = (a < least) | (a > most) | ((m == m) & ((m > 0.0) != changed[j]))
        n_wrong += wrong
        if age.size:
            trusted_age[j] = math.nan if wrong else a
        if count.size:
            trusted_count[j] = math.nan if wrong else m
    return n_wrong


@compiled
def term(interval, changed, age, count, j):
    """Time, bit and known changes of crawl j, see `History.likelihood_terms`.

    age or count may be empty: nothing is known.
    """
    a = age[j] if age.size else math.nan
    m = count[j] if count.size else math.nan
    # Selections, not branches: which crawls find a change cannot be predicted.
    reported = changed[j] & ((a == a) | (m == m))
    n = m if m == m else 1.0
    # no comparison with NaN is true: the interval was then seen to its end
    time = a if reported & (a < interval[j]) else interval[j]
    return time, changed[j] & (not reported), n if reported else 0.0


@compiled
def likelihood_terms(interval, changed, age, count, time, bits, n_known):
    """Write the terms of each crawl into the last three arrays, shape (n_crawls,)."""
    for j in range(interval.size):
        time[j], bits[j], n_known[j] = term(interval, changed, age, count, j)
