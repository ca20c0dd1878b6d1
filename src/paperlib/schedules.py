"""Crawl times for crawl rates, or the page of each slot (LDS).

Upadhyay et al. (2020) use Poisson times and equal intervals. LDS, slots of low
discrepancy, is in section 6 of Busa-Fekete et al. (2025).

The times of all pages are one flat array with offsets: page i is crawled at
``time[offsets[i]:offsets[i + 1]]``, in rising order.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks
from .lemma_4 import compiled

# A crawl due at the end of the duration counts. The end is often a whole number of
# rounds, up to some roundings.
ROUNDING = 1e-9


def poisson(
    crawl_rate: ArrayLike, duration: float, *, rng: Any = None
) -> tuple[NDArray, NDArray]:
    """Crawl times of Poisson processes.

    The crawls of Avrachenkov, Patil, Thoppe (2020, 2022), section 2, and the policies
    of Upadhyay et al. (2020), section 2.

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time
        Crawl rates.
    duration : float, time
        End of the schedule.
    rng : None, int or Generator, optional
        Draws the times.

    Returns
    -------
    time : ndarray, shape (n_crawls,), time
        In (0, duration], page after page.
    offsets : int ndarray, shape (n_pages + 1,)
        Index at which each page begins.

    Examples
    --------
    >>> time, offsets = poisson([0.5, 2.0], 3.0, rng=1)
    >>> time.round(2), offsets
    (array([1.13, 2.66, 1.03, 1.16, 1.64, 1.72, 2.29, 2.58]), array([0, 2, 8]))
    """
    rate = checks.numbers("crawl_rate", crawl_rate).ravel()
    duration = checks.number("duration", duration, above=True)
    rng = np.random.default_rng(rng)
    offsets = np.append(0, np.cumsum(rng.poisson(rate * duration)))
    drawn = rng.standard_exponential(offsets[-1] + rate.size)
    return _ordered_times(drawn, offsets, duration), offsets


def regular(
    crawl_rate: ArrayLike,
    duration: float,
    *,
    phase: float | None = None,
    rng: Any = None,
) -> tuple[NDArray, NDArray]:
    r"""Crawl times at equal intervals, :math:`(\phi_i + k) / p_i`, k = 0, 1, ...

    The deterministic policies of section 5 of Upadhyay et al. (2020).

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time
        Crawl rates.
    duration : float, time
        End of the schedule; a crawl due at the end is included.
    phase : float, optional
        Time until the first crawl as a share of the interval, in (0, 1]. By
        default it is drawn uniformly for each page.
    rng : None, int or Generator, optional
        Draws the phases.

    Returns
    -------
    time, offsets : ndarray
        As from `poisson`.
    """
    rate = checks.numbers("crawl_rate", crawl_rate).ravel()
    duration = checks.number("duration", duration, above=True)
    if phase is None:
        phase = 1.0 - np.random.default_rng(rng).random(rate.size)
    phase = checks.numbers("phase", phase, 0.0, 1.0, above=True)
    count = np.floor(duration * (1 + ROUNDING) * rate + 1.0 - phase).astype(int)
    offsets = np.append(0, np.cumsum(count))
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
    phase = np.repeat(np.broadcast_to(phase, rate.shape), count)
    rate = np.repeat(rate, count)
    return np.minimum((number + phase) / rate, duration), offsets


def low_discrepancy(crawl_rate: ArrayLike, n_slots: int) -> NDArray:
    r"""Page of each slot, such that each page has its share of slots at all times.

    LDS of section 6.4 of Busa-Fekete et al. (2025), algorithm 3 (carousel) of Azar et
    al. (2018): earliest deadline first (Liu and Layland 1973). A page has the share p
    of all crawls. Its visit k = 1, 2, ... is released and due at the slots

    .. math:: \lfloor (k - 1) / p \rfloor, \qquad \lceil k / p \rceil ,

    so that the page has p t visits up to any slot t, to within one. The papers do
    not say how to round; these are the usual windows. Ties go to the lower index.

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), not all 0
        In any unit, because only the shares of the sum count.
    n_slots : int
        Number of slots.

    Returns
    -------
    int ndarray, shape (n_slots,)
        Index of the page that is crawled.

    Examples
    --------
    >>> low_discrepancy([2.0, 1.0, 1.0], 8)
    array([0, 1, 0, 2, 0, 1, 0, 2])
    """
    rate = checks.numbers("crawl_rate", crawl_rate).ravel()
    total = checks.total("crawl_rate", rate)
    return _earliest_deadline(rate, total, checks.count("n_slots", n_slots, 0))


@compiled
def _ordered_times(drawn, offsets, duration):
    """Ordered uniform times of each page.

    The first n partial sums of n + 1 exponential variables, divided by their total,
    are n ordered uniform variables.
    """
    time = np.empty(offsets[-1])
    for i in range(offsets.size - 1):
        sums = np.cumsum(drawn[offsets[i] + i : offsets[i + 1] + i + 1])
        for k in range(sums.size - 1):  # an array expression compiles for a second
            time[offsets[i] + k] = duration * (sums[k] / sums[-1])
    return time


@compiled
def _earliest_deadline(rate, total, n_slots):
    """Page of each slot; see `low_discrepancy`.

    A page has one visit at a time, which waits for its release and is then
    ready. The heaps hold the release or deadline, the page, and its number of
    visits so far. Times are computed from this number, so that rounding does not
    accumulate.
    """
    page = np.empty(n_slots, np.int64)
    waiting = [(0.0, i, 0) for i in np.flatnonzero(rate)]
    ready = waiting[:0]
    for slot in range(n_slots):
        # rounding may leave a slot without a released visit: then the next one runs
        while waiting and (waiting[0][0] <= slot or not ready):
            _, i, k = heapq.heappop(waiting)
            heapq.heappush(ready, (np.ceil((k + 1) * total / rate[i]), i, k + 1))
        _, i, k = heapq.heappop(ready)
        page[slot] = i
        heapq.heappush(waiting, (np.floor(k * total / rate[i]), i, k))
    return page
