"""Freshness and cost of one page."""

import math

from paperlib._kernels import ufunc


@ufunc("f8(f8,f8)")
def poisson_freshness(change_rate, crawl_rate):
    """crawl_rate / (crawl_rate + change_rate), 1 for a page that never changes."""
    return crawl_rate / (crawl_rate + change_rate) if change_rate > 0.0 else 1.0


@ufunc("f8(f8,f8)")
def interval_freshness(change_rate, crawl_rate):
    """(1 - exp(-x)) / x with x = change_rate / crawl_rate, 1 for a page that never changes."""
    if change_rate == 0.0:
        return 1.0
    return (
        -math.expm1(-change_rate / crawl_rate) * crawl_rate / change_rate
        if crawl_rate > 0.0
        else 0.0
    )


@ufunc("f8(f8,f8)")
def harmonic_penalty(change_rate, crawl_rate):
    """log(1 + change_rate / crawl_rate), 0 for a page that never changes."""
    if change_rate == 0.0:
        return 0.0
    return math.log1p(change_rate / crawl_rate) if crawl_rate > 0.0 else math.inf
