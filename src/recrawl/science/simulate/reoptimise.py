"""Crawl rates that are re-optimised while online estimators learn."""

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.science import allocation
from recrawl.science.processes import simulate_history
from recrawl.types import Array, Seed

__all__ = ["reoptimise"]


def reoptimise(
    estimator: Any,
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    n_phases: int,
    n_crawls: int = 50,
    min_rate: float = 1e-3,
    n_runs: int = 1,
    rng: Seed = None,
) -> Array:
    r"""Re-optimise crawl rates from the estimates after every phase.

    Section 5 of [peva22]_:

    .. math:: \rho^{(k+1)} = \arg\max_\rho F(\rho; \hat\Delta^{(k)}) .

    All pages start at the uniform rate. In a phase
    every page is crawled `n_crawls` times, at Poisson times of its present
    rate; then `allocation.optimal_poisson` of the estimates gives the next
    rates. The estimator goes on over phases as its class does when the crawl
    rate changes: SA and SAM keep iterate and step index, LLN and Naive restart
    their counts.

    Deviates from the paper in two guards, without which a page estimated at 0
    would never be seen again: estimates and crawl rates are kept at `min_rate`
    or above.

    Parameters
    ----------
    estimator : online estimator
        Fresh; it is copied.
    change_rate, importance : array_like, shape (n_pages,)
        True change rates, 1/time, and weights of the pages.
    bandwidth : float, 1/time
        Crawls per unit of time over all pages.
    n_phases : int
        Number of phases.
    n_crawls : int, default 50
        Crawls of every page in a phase.
    min_rate : float, 1/time, default 1e-3
        Lower bound of estimates and crawl rates.
    n_runs : int, default 1
        Number of runs.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers; run i depends on it and i alone.

    Returns
    -------
    ndarray, shape (n_runs, n_phases + 1, n_pages), 1/time
        The rates of every phase, the uniform ones first, and those after the
        last phase.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.reoptimise`.

    Examples
    --------
    >>> from recrawl.science.estimators import SA
    >>> rates = reoptimise(SA(1.0), [0.5, 8.0], 1.0, 4.0, n_phases=3, rng=1)
    >>> rates.shape, rates[0, 0].tolist()
    ((1, 4, 2), [2.0, 2.0])
    """
    change_rate, importance = np.broadcast_arrays(
        checks.non_negative("change_rate", change_rate), importance
    )
    min_rate = checks.positive_number("min_rate", min_rate)
    estimator = copy.deepcopy(estimator)
    n_runs, n_phases = (
        checks.count("n_runs", n_runs),
        checks.count("n_phases", n_phases),
    )
    rates = np.empty((n_runs, n_phases + 1, change_rate.size))
    rates[:, 0] = allocation.uniform(change_rate, importance, bandwidth).crawl_rate
    streams = np.random.default_rng(rng).spawn(n_runs)
    for phase in range(n_phases):
        now = rates[:, phase]
        changed = [
            simulate_history(
                change_rate, crawl_rate=p, n_crawls=n_crawls, rng=s
            ).changed
            for p, s in zip(now, streams, strict=True)
        ]
        for crawl in np.moveaxis(changed, -1, 0):
            estimate = estimator.update(crawl, crawl_rate=now)
        rates[:, phase + 1] = allocation.optimal_poisson(
            np.maximum(estimate, min_rate), importance, bandwidth, min_rate=min_rate
        ).crawl_rate
    return rates
