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
def move_known(age, count, interval, changed, n_known):
    """Move the changes of known age or number from the bits to `n_known`.

    All of shape (n_crawls,); the last three are written in place, see
    `History.likelihood_terms`.
    """
    for j in prange(interval.size):
        if changed[j] and not (math.isnan(age[j]) and math.isnan(count[j])):
            changed[j] = False
            n_known[j] = 1.0 if math.isnan(count[j]) else count[j]
            if age[j] < interval[j]:  # no for NaN: the interval was seen to its end
                interval[j] = age[j]
