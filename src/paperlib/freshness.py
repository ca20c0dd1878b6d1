"""How fresh a crawl rate keeps the copy of a Poisson page: the long-run share of time in which copy and page agree."""

import numpy as np

from paperlib import _checks, _kernels


def _rates(change_rate, crawl_rate):
    change_rate, crawl_rate = _checks.non_negative("change_rate", change_rate), _checks.non_negative("crawl_rate", crawl_rate)
    return _checks.broadcast(change_rate=change_rate, crawl_rate=crawl_rate)


def poisson(change_rate, crawl_rate):
    """Freshness under Poisson crawls, crawl_rate / (crawl_rate + change_rate). Eq. (5) of [aaai20], eq. (10) of [valuetools20].

    Arrays broadcast; rates in 1/time, non-negative. A page that never changes is fresh even when it is not crawled again.
    """
    return _kernels.poisson_freshness(*_rates(change_rate, crawl_rate))


def interval(change_rate, crawl_rate):
    """Freshness under crawls at equal intervals, (crawl_rate / change_rate) (1 - exp(-change_rate / crawl_rate)). Eq. (5) of [www25].

    Arrays broadcast; rates in 1/time, non-negative. Never below `poisson` at the same rate. A page that never changes is fresh.
    """
    return _kernels.interval_freshness(*_rates(change_rate, crawl_rate))


def mean(fresh, importance):
    """Freshness over pages: the mean of `fresh` along the last axis weighted by `importance`, the share of requests served fresh.

    Raises ValueError when all importances are zero.
    """
    fresh, importance = _checks.broadcast(fresh=fresh, importance=_checks.non_negative("importance", importance))
    total = importance.sum(axis=-1)
    if not (total > 0).all():
        raise ValueError("importance must be positive for at least one page, got only zeros")
    return np.vecdot(fresh, importance) / total
