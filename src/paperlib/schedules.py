"""From crawl rates to crawl times, and to slots."""

import numpy as np

from paperlib import checks
from paperlib._kernels import schedules as kernels


def poisson(crawl_rate, duration, *, rng=None):
    """Crawls at Poisson times.

    Parameters
    ----------
    crawl_rate : array, shape (n_pages,), 1/time, non-negative
    duration : float, time
    rng : seed or numpy Generator

    Returns
    -------
    time : array, shape (n_crawls,), in (0, duration]
    offsets : int array, shape (n_pages + 1,)
        The crawls of page i are ``time[offsets[i]:offsets[i + 1]]``, rising.
    """
    crawl_rate, duration = _rates(crawl_rate, duration)
    rng = np.random.default_rng(rng)
    offsets = _offsets(rng.poisson(crawl_rate * duration))
    # given their number n, the times are the partial sums of n + 1 exponentials over the total
    time = np.empty(offsets[-1])
    kernels.ordered_times(
        rng.standard_exponential(time.size + crawl_rate.size), offsets, duration, time
    )
    return time, offsets


def regular(crawl_rate, duration, *, phase=None, rng=None):
    """Crawls at equal intervals 1 / crawl_rate.

    Arguments and result as in `poisson`. The first crawl comes after `phase` intervals, in (0, 1]: one number for all pages, or an
    array; by default uniform, for each page of its own.
    """
    crawl_rate, duration = _rates(crawl_rate, duration)
    if phase is None:
        phase = 1.0 - np.random.default_rng(rng).random(crawl_rate.size)
    phase = checks.broadcast(
        phase=checks.positive("phase", phase), crawl_rate=crawl_rate
    )[0]
    if phase.max(initial=0.0) > 1 or phase.shape != crawl_rate.shape:
        raise ValueError(
            f"phase must be at most 1, one number or one for each page, got {phase!r}"
        )
    due = duration * crawl_rate
    # a crawl at the end itself counts, whatever the rounding
    count = np.floor(due + 1.0 - phase + 1e-9 * np.maximum(due, 1.0)).astype(
        np.int64
    ) * (crawl_rate > 0)
    offsets = _offsets(count)
    number = (
        np.arange(offsets[-1])
        - np.repeat(offsets[:-1], count)
        + np.repeat(phase, count)
    )  # in this order, or small phases are lost
    return np.minimum(number / np.repeat(crawl_rate, count), duration), offsets


def low_discrepancy(crawl_rate, n_slots):
    """Which page gets each slot, so that every page has its share of the slots at all times, within one visit.

    Earliest deadline first [Liu and Layland 1973] on the visits of each page, visit k due from slot floor((k - 1) / p) to slot
    ceil(k / p) for the share p; LDS of [www25], algorithm 3 of Azar et al. 2018, whose rounding is not known: these are the usual
    windows. Ties go to the lower index. O(log n_pages) a slot.

    Parameters
    ----------
    crawl_rate : array, shape (n_pages,), any unit, non-negative, not all 0; only the shares count
    n_slots : int

    Returns
    -------
    page : int array, shape (n_slots,)
    """
    crawl_rate, _ = _rates(crawl_rate, 1.0)
    if not crawl_rate.any():
        raise ValueError(
            "crawl_rate must be positive for at least one page, got only zeros"
        )
    page = np.empty(checks.count("n_slots", n_slots), dtype=np.int64)
    kernels.earliest_deadline_first(crawl_rate, crawl_rate.sum(), page)
    return page


def _rates(crawl_rate, duration):
    crawl_rate = np.atleast_1d(checks.non_negative("crawl_rate", crawl_rate))
    if crawl_rate.ndim != 1:
        raise ValueError(
            f"crawl_rate must be a flat array of pages, got shape {crawl_rate.shape}"
        )
    return crawl_rate, checks.scalar(checks.positive, "duration", duration)


def _offsets(count):
    return np.concatenate([[0], np.cumsum(count)])
