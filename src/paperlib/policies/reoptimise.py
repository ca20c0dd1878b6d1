"""Crawl rates that are re-optimised while online estimators learn."""

import copy

import numpy as np

from paperlib import allocation, checks
from paperlib.processes import simulate_history


def reoptimise(
    estimator,
    change_rate,
    importance,
    bandwidth,
    *,
    n_phases,
    n_crawls=50,
    min_rate=1e-3,
    n_runs=1,
    rng=None,
):
    """Crawl rates that are re-optimised from the estimates after every phase, section 5 of [peva22].

    All pages start at the uniform rate. In a phase every page is crawled `n_crawls` times, at Poisson times of its present rate; then
    `allocation.optimal_poisson` of the estimates gives the next rates. The estimator goes on over phases as its class does when the
    crawl rate changes: SA and SAM keep iterate and step index, LLN and Naive restart their counts.

    Deviates from the paper in two guards, without which a page estimated at 0 would never be seen again: estimates and crawl
    rates are kept at `min_rate` or above.

    Parameters
    ----------
    estimator : online estimator, fresh; it is copied
    change_rate, importance : arrays, shape (n_pages,)
        The true change rates, 1/time, and the weights of the pages.
    bandwidth : float, 1/time
    n_phases, n_crawls, n_runs : int
    min_rate : float, 1/time
    rng : seed or numpy Generator
        Run i depends on the seed and i alone.

    Returns
    -------
    array, shape (n_runs, n_phases + 1, n_pages), 1/time
        The rates in use in every phase, the uniform ones first.
    """
    change_rate, importance = np.broadcast_arrays(
        checks.non_negative("change_rate", change_rate), importance
    )
    min_rate = checks.scalar(checks.positive, "min_rate", min_rate)
    estimator = copy.deepcopy(estimator)
    rates = np.empty(
        (
            checks.count("n_runs", n_runs),
            checks.count("n_phases", n_phases) + 1,
            change_rate.size,
        )
    )
    rates[:, 0] = allocation.uniform(change_rate, importance, bandwidth).crawl_rate
    streams = np.random.default_rng(rng).spawn(n_runs)
    for phase in range(n_phases):
        now = rates[:, phase]
        runs = [
            simulate_history(change_rate, crawl_rate=p, n_crawls=n_crawls, rng=s)
            for p, s in zip(now, streams, strict=True)
        ]
        for changed in np.moveaxis([run.changed for run in runs], -1, 0):
            estimate = estimator.update(changed, crawl_rate=now)
        believed = np.maximum(estimate, min_rate)
        rates[:, phase + 1] = allocation.optimal_poisson(
            believed, importance, bandwidth, min_rate=min_rate
        ).crawl_rate
    return rates
