"""Arrays of histories, written crawl by crawl.

One pass over the crawls does what NumPy's indexed assignments do in several,
which take two to three times as long (measured).
"""

import math

from numba import prange

from paperlib._kernels import compiled, parallel


@compiled
def interleave(first, offsets_1, second, offsets_2, out):
    """Write page after page the crawls of two histories, in the ragged form.

    `first` and `second` hold a number of each crawl; `out` has the length of both
    together.
    """
    k = 0
    for i in range(offsets_1.size - 1):
        for j in range(offsets_1[i], offsets_1[i + 1]):
            out[k] = first[j]
            k += 1
        for j in range(offsets_2[i], offsets_2[i + 1]):
            out[k] = second[j]
            k += 1


@parallel
def likelihood_terms(interval, changed, age, count, time, bits, n_known):
    """Write the terms of `History.likelihood_terms` into the last three arrays.

    All have shape (n_crawls,), but age or count may be empty: nothing is known.
    """
    for j in prange(interval.size):
        a = age[j] if age.size else math.nan
        m = count[j] if count.size else math.nan
        time[j], bits[j], n_known[j] = interval[j], changed[j], 0.0
        if changed[j] and not (math.isnan(a) and math.isnan(m)):
            bits[j] = False
            n_known[j] = 1.0 if math.isnan(m) else m
            if a < interval[j]:  # no for NaN: the interval was seen to its end
                time[j] = a
