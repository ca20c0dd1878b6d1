"""Freshness and harmonic penalty of one page, in closed form.

Ratios and differences are written so that no digits are lost where crawls are
rare or frequent (expm1, log1p), and the limits are explicit: a page that never
changes is fresh whether or not it is crawled, and one that changes and is
never crawled is stale in the long run. Each kernel is a NumPy ufunc of change
rates and crawl rates, which broadcast.
"""

import math

from paperlib._kernels import ufunc


@ufunc("f8(f8,f8)")
def poisson_freshness(change_rate, crawl_rate):
    """crawl_rate / (crawl_rate + change_rate).

    1 for a page that never changes.
    """
    return crawl_rate / (crawl_rate + change_rate) if change_rate > 0.0 else 1.0


@ufunc("f8(f8,f8)")
def interval_freshness(change_rate, crawl_rate):
    """(1 - exp(-x)) / x with x = change_rate / crawl_rate.

    1 for a page that never changes.
    """
    if change_rate == 0.0:
        return 1.0
    if crawl_rate == 0.0:
        return 0.0
    return -math.expm1(-change_rate / crawl_rate) * crawl_rate / change_rate


@ufunc("f8(f8,f8)")
def harmonic_penalty(change_rate, crawl_rate):
    """log(1 + change_rate / crawl_rate); 0 for a page that never changes."""
    if change_rate == 0.0:
        return 0.0
    return math.log1p(change_rate / crawl_rate) if crawl_rate > 0.0 else math.inf
