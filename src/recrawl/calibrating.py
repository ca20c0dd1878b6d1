"""Probability that a page is unchanged, as measured on the log itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl.backtesting import split
from recrawl.types import Values

__all__ = ["Calibration", "learn"]

_SHARE = 0.8  # of the crawls, the first in time, from which rates are learnt
LEAST_BITS = 400  # held out; with fewer, a standard error is above 0.025
_BITS_PER_BIN, _MOST_BINS = 100, 40
_SAME = 1e-6  # relative difference of equal numbers


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Measured probability that a page is unchanged, at change rate times time.

    Between the points its logarithm is interpolated linearly, beyond the last one
    it falls as that of Poisson changes does: exact if changes are Poisson.

    Parameters
    ----------
    x : array_like, shape (n,)
        Change rate times the time since the last crawl, rising from 0.
    unchanged : array_like, shape (n,)
        Probability that the page is unchanged, falling from 1, positive.

    Examples
    --------
    >>> calibration = Calibration([0.0, 1.0], [1.0, 0.5])
    >>> calibration.freshness(1.0, [1.0, 2.0]).round(3)
    array([0.721, 0.845])
    """

    x: np.ndarray
    unchanged: np.ndarray

    def __post_init__(self):
        vars(self).update(x=np.asarray(self.x), unchanged=np.asarray(self.unchanged))

    def freshness(self, change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
        r"""Mean of the measured probability over an interval between crawls.

        .. math:: \frac{1}{X} \int_0^X S(x)\,dx, \qquad X = \Delta / \rho .

        Parameters
        ----------
        change_rate, crawl_rate : array_like, 1/time, non-negative
            They broadcast.

        Returns
        -------
        ndarray or float
            In [0, 1]; 0 for a page that changes and is never crawled, 1 for one
            that does not change.
        """
        change_rate = np.asarray(change_rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            end = np.where(change_rate > 0, np.divide(change_rate, crawl_rate), 0.0)
        finite = np.where((end > 0) & np.isfinite(end), end, 1.0)
        hazard = np.append(-np.diff(np.log(self.unchanged)) / np.diff(self.x), 1.0)
        pieces = _integral(self.unchanged[:-1], hazard[:-1], np.diff(self.x))
        before = np.append(0.0, np.cumsum(pieces))
        k = np.searchsorted(self.x, finite, side="right") - 1
        rest = _integral(self.unchanged[k], hazard[k], finite - self.x[k])
        mean = (before[k] + rest) / finite
        return np.where(end == 0, 1.0, np.where(np.isfinite(end), mean, 0.0))[()]


def _integral(start, hazard, length):
    """Integral of start exp(-hazard x) for x from 0 to the length."""
    return start * length * scipy.special.exprel(-hazard * length)


def learn(batch: Any, rule: Callable[..., Any]) -> Calibration | None:
    """Measure the probability that pages are unchanged, on bits held out.

    Rates come from the first 80% of the crawls in time; the bits of the rest are
    grouped by rate times interval into bins of equal numbers of bits, 100 or more
    and at most 40 bins, whose shares of unchanged pages are made to fall by
    isotonic regression.

    Parameters
    ----------
    batch : reading.Batch
        A random sample of the pages of a log.
    rule : callable
        From a `History` to change rates, 1/day.

    Returns
    -------
    Calibration or None
        None with fewer than 400 bits to measure it on.

    Examples
    --------
    >>> from recrawl.reading import Batch
    >>> from recrawl.science.processes import History
    >>> rng = np.random.default_rng(1)
    >>> bits, days = rng.random(5000) < 1 - np.exp(-0.5), np.arange(1000)
    >>> history = History(np.ones(5000), bits, np.arange(0, 5001, 1000))
    >>> crawled = np.ones(5000, dtype=bool)
    >>> batch = Batch(None, history, np.tile(days, 5), crawled)
    >>> learnt = learn(batch, lambda before: np.full(before.shape, 0.5))
    >>> learnt.x, learnt.unchanged.round(2)
    (array([0. , 0.5]), array([1. , 0.6]))
    """
    if not batch.time.size:
        return None
    cut = np.quantile(batch.time, _SHARE, method="lower")
    before, after, owner = split(batch, cut)
    x, unchanged = rule(before)[owner] * after.interval, ~after.changed
    if x.size < LEAST_BITS:
        return None
    n_bins = min(x.size // _BITS_PER_BIN, _MOST_BINS)
    edges = np.quantile(x, np.arange(1, n_bins) / n_bins)
    # equal intervals of one page differ by rounding, and are kept together
    edges = edges[np.diff(edges, prepend=0.0) > _SAME * edges] * (1 + _SAME)
    bin_ = np.unique(np.searchsorted(edges, x), return_inverse=True)[1]
    n = np.bincount(bin_)
    # half a bit stands for none, so that no page is certain to have changed
    share = np.maximum(np.bincount(bin_, unchanged), 0.5) / n
    falling = scipy.optimize.isotonic_regression(share, weights=n, increasing=False)
    return Calibration(
        np.append(0.0, np.bincount(bin_, x) / n), np.append(1.0, falling.x)
    )
