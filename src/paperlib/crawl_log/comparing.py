"""What a log did, and what other rules would have done."""

import numpy as np

from paperlib import allocation, checks, freshness, policies, simulate
from paperlib.crawl_log import reading
from paperlib.crawl_log.estimating import _SAMPLE, ESTIMATORS, _choose, _first
from paperlib.signals import SignalledPages


def compare(path, *, n_pages=10_000, horizon=None, rng=None, memory="1GiB"):
    """Expected freshness of what the log did and of other rules with as many crawls a day, on pages drawn at random from the log.

    Change rates are those that `estimate` would give, and taken for true, which flatters the rules that use them, "proportional" and
    "optimal", most where pages have few crawls; `backtest` tells how well rates are known. "the log" is the mean of
    (1 - exp(-x)) / x, x = change_rate interval, over the time between its crawls. `policies.Nutch` and `policies.StormCrawler` run by due
    date in a simulated world, from a fresh copy, with the bandwidth of the log; the second half of the time counts.

    Parameters
    ----------
    path : as in `estimate`
    n_pages : int
        Of the log, at most, those with two crawls or more.
    horizon : float, days, optional
        Of the simulation; by default 200 times the mean time between crawls of a page, and at least a year.
    rng : seed or numpy Generator
    memory : as in `estimate`

    Returns
    -------
    dict of float
        Freshness weighted by importance, in [0, 1], by rule, the worst first.

    Raises
    ------
    ValueError
        As `estimate`; no page with two crawls, or none that changed.
    """
    n_pages = checks.count("n_pages", n_pages)
    with reading.opened(path, memory=memory) as log:
        page, history = (batch := log.sample(n_pages)).page, batch.history
    prior, chosen, _ = _choose(_first(history, _SAMPLE), None)
    rate = ESTIMATORS[chosen](history, prior)
    crawled = history.n_crawls > 0
    if not rate[crawled].any():
        raise ValueError(
            f"{path} must hold a page that was crawled twice, and one that changed, got none"
        )
    days, weight = (
        history.total(history.interval)[crawled],
        np.asarray(page["importance"])[crawled],
    )
    fresh = freshness.crawled(history, np.nan_to_num(rate))[crawled]
    rate, bandwidth = rate[crawled], (history.n_crawls[crawled] / days).sum()
    found = {"the log": freshness.mean(fresh, weight).item()}
    for name in ("uniform", "proportional"):
        found[name] = float(
            getattr(allocation, name)(
                rate, weight, bandwidth, model=freshness.interval
            ).freshness
        )
    found["optimal"] = float(
        allocation.optimal_interval(rate, weight, bandwidth).freshness
    )
    horizon = (
        max(200 * rate.size / bandwidth, 365.0)
        if horizon is None
        else checks.scalar(checks.positive, "horizon", horizon)
    )
    world = simulate.draw_world(
        SignalledPages(rate, weight, 0.0, 0.0), horizon, rng=rng
    )
    for name in ("Nutch", "StormCrawler"):
        run = simulate.crawl(
            world, getattr(policies, name)(), bandwidth, borders=[horizon / 2, horizon]
        )
        found[name] = float(run.accuracy)
    return dict(sorted(found.items(), key=lambda item: item[1]))
