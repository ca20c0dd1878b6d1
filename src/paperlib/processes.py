"""Poisson pages: their changes, their crawls, and the bits that crawls reveal.

A page changes at the times of a Poisson process. A crawl reveals one bit: whether
the page has changed since the previous crawl. `History` holds the bits and the
intervals between crawls, for many pages or runs at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks


@dataclass(frozen=True, eq=False)
class History:
    """Observations of a crawler: intervals between crawls, and a bit for each.

    There are two forms. In the dense form all pages have the same number of
    crawls: the last axis is the crawl, and the axes before it are pages or
    runs. In the ragged form the crawls of all pages follow each other in flat
    arrays, and `offsets` says where each page begins.

    Parameters
    ----------
    interval : array_like, shape (..., n_crawls) or (n,), time
        Time between a crawl and the previous one, positive.
    changed : array_like of bool or 0/1, same shape
        True if the crawl found a change.
    offsets : array_like of int, shape (n_pages + 1,), optional
        Page i has the entries ``offsets[i]:offsets[i + 1]`` of the flat
        arrays. A page may have no crawls.

    Examples
    --------
    >>> from paperlib.processes import History
    >>> history = History([1.0, 2.0, 1.0, 4.0], [1, 0, 1, 1], [0, 3, 4])
    >>> history.n_crawls, history.total(history.interval)
    (array([3, 1]), array([4., 4.]))
    """

    interval: Any
    changed: Any
    offsets: Any = None

    def __post_init__(self):
        interval = checks.numbers("interval", self.interval, above=True)
        changed = checks.bits("changed", self.changed)
        offsets = self.offsets
        if interval.ndim == 0 or interval.shape != changed.shape:
            raise ValueError(
                "interval and changed must be arrays of one shape, "
                f"got {interval.shape} and {changed.shape}"
            )
        if offsets is not None:
            offsets = _checked_offsets(offsets, interval)
        # in place, because the dataclass is frozen
        vars(self).update(interval=interval, changed=changed, offsets=offsets)

    def _unchecked(self, **arrays):
        """A copy of the history with some arrays replaced, without checks."""
        history = copy(self)
        vars(history).update(arrays)
        return history

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an array with one number for each page."""
        if self.offsets is None:
            return self.interval.shape[:-1]
        return (self.offsets.size - 1,)

    @property
    def n_crawls(self) -> NDArray:
        """Number of crawls of each page, an int array of `shape`."""
        return np.diff(self.ragged()[2]).reshape(self.shape)

    def per_crawl(self, values: ArrayLike) -> NDArray:
        """Repeat each page's number for each of its crawls.

        `values` broadcasts to `shape`; the result broadcasts with `interval`.
        """
        values = np.broadcast_to(values, self.shape)
        if self.offsets is None:
            return values[..., None]
        return np.repeat(values, self.n_crawls)

    def by_page(self, values: NDArray) -> Any:
        """Reshape a flat array, with one number for each page, to `shape`."""
        return values.reshape(self.shape)[()]

    def total(self, values: ArrayLike) -> Any:
        """Sum the numbers of all crawls of each page.

        The sum is 0 for a page without crawls.
        """
        if self.offsets is None:
            return np.sum(values, axis=-1)
        # For a page without crawls, reduceat returns the value at its start. Such a
        # page may start at the very end, where a value must then exist.
        values = np.append(np.asarray(values, dtype=float), 0.0)
        sums = np.add.reduceat(values, self.offsets[:-1])
        return np.where(self.n_crawls > 0, sums, 0.0)

    def ragged(self) -> tuple[NDArray, NDArray, NDArray]:
        """Flat intervals, flat bits and offsets, from either form."""
        offsets = self.offsets
        if offsets is None:
            offsets = self.interval.shape[-1] * np.arange(math.prod(self.shape) + 1)
        return self.interval.ravel(), self.changed.ravel(), offsets

    def prefix(self, n_crawls: int) -> History:
        """Return the first `n_crawls` crawls of every page of a dense history."""
        # Not checked again: the whole was checked, and a simulation takes all prefixes.
        return self._unchecked(
            interval=self.interval[..., :n_crawls], changed=self.changed[..., :n_crawls]
        )

    def join(self, later: History) -> History:
        """Append the crawls of a later history to the crawls of each page.

        Parameters
        ----------
        later : History
            History of the same pages, dense or ragged.

        Returns
        -------
        History
            Ragged.

        Examples
        --------
        >>> from paperlib.processes import History
        >>> first = History([[1.0], [2.0]], [[False], [True]])
        >>> joined = first.join(History([[3.0], [4.0]], [[True], [True]]))
        >>> joined.interval, joined.offsets
        (array([1., 3., 2., 4.]), array([0, 2, 4]))
        """
        checks.instance("later", later, History)
        interval, changed, starts = self.ragged()
        more_interval, more_changed, more_starts = later.ragged()
        # one entry for each page
        checks.shape("later", more_starts[1:], starts[1:].shape)
        places = np.repeat(starts[1:], np.diff(more_starts))
        return self._unchecked(
            interval=np.insert(interval, places, more_interval),
            changed=np.insert(changed, places, more_changed),
            offsets=starts + more_starts,
        )


def _checked_offsets(offsets, interval):
    """Offsets as int64, checked against the intervals of the crawls."""
    offsets = checks.unmasked("offsets", offsets)
    steps = np.diff(offsets, prepend=0, append=interval.size)
    flat = offsets.ndim == interval.ndim == 1 and offsets.size > 0
    rises = flat and not steps[0] and not steps[-1] and (steps >= 0).all()
    rule = f"integers that rise from 0 to {interval.size}, beside flat arrays"
    checks.require("offsets", offsets, rule, rises and offsets.dtype.kind in "iu")
    return offsets.astype(np.int64)


def observe(change_times: ArrayLike, crawl_times: ArrayLike) -> History:
    """Bits that crawls at given times reveal about changes at given times.

    The first interval starts at time 0. If a change and a crawl have the same
    time, the crawl finds the change. The bit is I_k in section 2 of Avrachenkov,
    Patil, Thoppe (2020, 2022), and 1 minus the bit in eq. (1) of Upadhyay et al.
    (2020).

    Parameters
    ----------
    change_times : array_like, shape (n_changes,), time
        Sorted. May be empty.
    crawl_times : array_like, shape (..., n_crawls), time
        Rising along the last axis, positive.

    Returns
    -------
    History
        Dense, in the shape of `crawl_times`.

    Examples
    --------
    >>> from paperlib.processes import observe
    >>> observe([0.5, 2.0, 2.5], crawl_times=[1.0, 2.0, 4.0, 5.0]).changed
    array([ True,  True,  True, False])
    """
    changes = checks.floats("change_times", change_times)
    crawls = checks.floats("crawl_times", crawl_times)
    rising = np.diff(changes, prepend=-np.inf) >= 0  # False for NaN
    checks.require("change_times", changes, "sorted", rising)
    interval = np.diff(crawls, prepend=0.0)
    start, end = (np.searchsorted(changes, t, side="right") for t in (0.0, crawls))
    return History(interval, np.diff(end, prepend=start) > 0)


def change_probability(
    change_rate: ArrayLike,
    *,
    crawl_rate: ArrayLike | None = None,
    interval: ArrayLike | None = None,
) -> NDArray:
    r"""Probability that a crawl finds a change.

    After the interval w it is :math:`1 - e^{-\Delta w}`. At Poisson times of rate p it
    is eq. (4) of Avrachenkov, Patil, Thoppe (2020),

    .. math:: P = \frac{\Delta}{\Delta + p} .

    Parameters
    ----------
    change_rate : array_like, 1/time
        Non-negative.
    crawl_rate : array_like, 1/time, optional
        Rate of Poisson crawls, positive.
    interval : array_like, time, optional
        Time since the previous crawl, positive; replaces `crawl_rate`.

    Returns
    -------
    ndarray, in the common shape
    """
    change_rate = checks.numbers("change_rate", change_rate)
    if interval is not None:
        interval = checks.numbers("interval", interval, above=True)
        return -np.expm1(-change_rate * interval)
    crawl_rate = checks.numbers("crawl_rate", crawl_rate, above=True)
    return change_rate / (change_rate + crawl_rate)


def replicate(function: Callable, n_runs: int, *, rng: Any = None) -> list:
    """Call ``function(rng)`` for each run; run i depends on the seed and i alone.

    As many runs go on at a time as the machine has cores, in threads: compiled code
    and NumPy let other threads work.
    """
    streams = np.random.default_rng(rng).spawn(checks.count("n_runs", n_runs))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, streams))


def each_run(draw: Callable, n_runs: int | None, rng: Any) -> NDArray:
    """The array draw(generator), or the arrays of all runs, stacked."""
    if n_runs is None:
        return draw(np.random.default_rng(rng))
    return np.stack(replicate(draw, n_runs, rng=rng))


def simulate_history(
    change_rate: ArrayLike,
    *,
    crawl_rate: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    n_crawls: int = 1,
    n_runs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> History:
    r"""Simulate crawls of Poisson pages, at Poisson times or after given intervals.

    Crawls find changes independently, each with probability `change_probability`.

    Parameters
    ----------
    change_rate : array_like, 1/time
        One number, or one for each page, non-negative.
    crawl_rate : array_like, 1/time, optional
        Rate of Poisson crawls, positive; broadcasts with the pages.
    interval : array_like, shape (..., n_crawls), time, optional
        Given intervals, positive, in place of `crawl_rate`. The axes before the
        last broadcast with the pages.
    n_crawls : int, default 1
        Crawls of each page, unless `interval` is an array.
    n_runs : int, optional
        Independent runs along a new first axis.
    rng : None, int or Generator, optional
        Source of random numbers. Run i depends on the seed and i alone.

    Returns
    -------
    History
        Shape ``(*pages, n_crawls)``, with n_runs before it if it is set.

    Examples
    --------
    >>> from paperlib.processes import simulate_history
    >>> rates = [0.1, 2.0]
    >>> history = simulate_history(rates, interval=1.0, n_crawls=1000, rng=1)
    >>> history.changed.mean(axis=1)
    array([0.088, 0.868])
    """
    change_rate = checks.numbers("change_rate", change_rate)[..., None]
    if (crawl_rate is None) == (interval is None):
        raise ValueError("exactly one of crawl_rate and interval must be given")
    if interval is None:
        mean = 1.0 / checks.numbers("crawl_rate", crawl_rate, above=True)[..., None]
    else:
        mean = checks.numbers("interval", interval, above=True)
    n_crawls = checks.count("n_crawls", n_crawls)
    shape = np.broadcast_shapes(change_rate.shape, mean.shape, (n_crawls,))

    def draw(stream):
        unit = (
            stream.standard_exponential(shape) if interval is None else np.ones(shape)
        )
        return np.stack([unit, stream.random(shape)], axis=-1)

    drawn = each_run(draw, n_runs, rng)
    length = mean * drawn[..., 0]
    chance = change_probability(change_rate, interval=length)
    return History(length, drawn[..., 1] < chance)
