r"""From crawl rates to crawl times, and to slots.

Given how often each page is to be crawled, the functions say when: at Poisson
times (`poisson`), at equal intervals (`regular`), or, for a crawler that does
one crawl per slot, which page gets each slot (`low_discrepancy`). Times of
many pages come as one flat array with offsets.
"""

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import schedules as kernels
from recrawl.kernels.heaps import ENTRY
from recrawl.types import Array, Ints, Seed

__all__ = ["low_discrepancy", "poisson", "regular"]


# A crawl due at the end of the duration counts. That end is often computed as
# a number of rounds times their length, off by some roundings.
_ROUNDING = 1e-9


def poisson(
    crawl_rate: ArrayLike, duration: float, *, rng: Seed = None
) -> tuple[Array, Ints]:
    """Crawl times of Poisson processes.

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time, non-negative
        Crawl rates.
    duration : float, time, positive
        End of the schedule.
    rng : None, int, SeedSequence or Generator, optional
        Draws the times.

    Returns
    -------
    time : ndarray, shape (n_crawls,), time
        In (0, duration]; ordered within each page.
    offsets : int ndarray, shape (n_pages + 1,)
        The crawls of page i are ``time[offsets[i]:offsets[i + 1]]``.

    Raises
    ------
    ValueError
        Arguments out of range.

    Examples
    --------
    >>> time, offsets = poisson([0.5, 2.0], 3.0, rng=1)
    >>> time.round(2), offsets
    (array([1.13, 2.66, 1.03, 1.16, 1.64, 1.72, 2.29, 2.58]), array([0, 2, 8]))
    """
    crawl_rate, duration = _rates(crawl_rate, duration)
    rng = np.random.default_rng(rng)
    offsets = _offsets(rng.poisson(crawl_rate * duration))
    time = np.empty(offsets[-1])
    drawn = rng.standard_exponential(time.size + crawl_rate.size)
    kernels.ordered_times(drawn, offsets, duration, time)
    return time, offsets


def regular(
    crawl_rate: ArrayLike,
    duration: float,
    *,
    phase: ArrayLike | None = None,
    rng: Seed = None,
) -> tuple[Array, Ints]:
    r"""Crawl times at equal intervals.

    .. math:: t_{ik} = (\phi_i + k) / p_i, \qquad k = 0, 1, \dots

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time, non-negative
        Crawl rates.
    duration : float, time, positive
        End of the schedule; a crawl that is due then is included.
    phase : float or array_like, shape (n_pages,), optional
        The first crawl comes after so many intervals, in (0, 1]; by default
        uniform, drawn for each page.
    rng : None, int, SeedSequence or Generator, optional
        Draws the phases.

    Returns
    -------
    time : ndarray, shape (n_crawls,), time
        In (0, duration]; ordered within each page.
    offsets : int ndarray, shape (n_pages + 1,)
        The crawls of page i are ``time[offsets[i]:offsets[i + 1]]``.

    Raises
    ------
    ValueError
        Arguments out of range.

    Examples
    --------
    >>> regular([0.5, 1.0], 3.0, phase=1.0)
    (array([2., 1., 2., 3.]), array([0, 1, 4]))
    """
    crawl_rate, duration = _rates(crawl_rate, duration)
    if phase is None:
        phase = 1.0 - np.random.default_rng(rng).random(crawl_rate.size)
    phase, _ = checks.broadcast(
        phase=checks.positive("phase", phase), crawl_rate=crawl_rate
    )
    if phase.max(initial=0.0) > 1 or phase.shape != crawl_rate.shape:
        raise ValueError(
            f"phase must be at most 1, one number or one for each page, got {phase!r}"
        )
    due = duration * crawl_rate
    count = np.floor(due + 1.0 - phase + _ROUNDING * np.maximum(due, 1.0))
    count = count.astype(np.int64) * (crawl_rate > 0)
    offsets = _offsets(count)
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
    number = number + np.repeat(phase, count)  # last, or small phases are lost
    return np.minimum(number / np.repeat(crawl_rate, count), duration), offsets


def low_discrepancy(crawl_rate: ArrayLike, n_slots: int) -> Ints:
    r"""Page of each slot, every page with its share of the slots at all times.

    LDS of [www25]_, algorithm 3 of Azar et al. 2018: earliest deadline first
    (Liu and Layland 1973) on the visits of each page. For the share p, visit
    k = 1, 2, ... is released and due at the slots

    .. math:: \lfloor (k - 1) / p \rfloor, \qquad \lceil k / p \rceil ,

    so that at any slot t a page has had p t visits, within one. The papers do
    not say how to round; these are the usual windows. Ties go to the lower
    index. O(log n_pages) for each slot.

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), non-negative, not all 0
        In any unit: only the shares of the total count.
    n_slots : int
        Number of slots.

    Returns
    -------
    int ndarray, shape (n_slots,)
        Index of the page that is crawled.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.plain.low_discrepancy`.

    Examples
    --------
    >>> low_discrepancy([2.0, 1.0, 1.0], 8)
    array([0, 1, 0, 2, 0, 1, 0, 2])
    """
    crawl_rate, _ = _rates(crawl_rate, 1.0)
    if not crawl_rate.any():
        raise ValueError(
            "crawl_rate must be positive for at least one page, got only zeros"
        )
    page = np.empty(checks.count("n_slots", n_slots), dtype=np.int64)
    heaps = np.empty((2, crawl_rate.size), ENTRY)
    kernels.earliest_deadline_first(crawl_rate, crawl_rate.sum(), *heaps, page)
    return page


def _rates(crawl_rate, duration):
    crawl_rate = np.atleast_1d(checks.non_negative("crawl_rate", crawl_rate))
    if crawl_rate.ndim != 1:
        raise ValueError(
            f"crawl_rate must be a flat array of pages, got shape {crawl_rate.shape}"
        )
    return crawl_rate, checks.positive_number("duration", duration)


def _offsets(count):
    return np.concatenate([[0], np.cumsum(count)])
