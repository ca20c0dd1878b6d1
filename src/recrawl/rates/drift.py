"""How much more, or less, the pages of a log changed than its earlier part predicts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy

from recrawl.log.state import kept
from recrawl.rates.posterior import expected
from recrawl.types import Array

if TYPE_CHECKING:
    from recrawl.log.reading import Batch

__all__ = ["drift", "most_changes"]

_CUTS = 0.4, 0.6, 0.8, 1.0  # shares of the crawls, in time, at which parts end
LEAST_BITS = 400  # to predict; with fewer, a factor has an error of a fifth and more
_MOST_BITS = 100_000  # of a part: every n-th of more
_MOST = 3.0  # of the logarithm of a factor, where nothing or everything changed
_LEVEL = 0.975  # of the upper limit of a number of changes


def drift(
    sample: Batch, posterior: Callable[[Batch], dict[str, Array]]
) -> list[float] | None:
    r"""Factors by which pages changed faster than predicted, in three parts of a log.

    The log is cut at 40, 60 and 80% of its crawls in time; a cut at the same time as
    another one does not count. What was learnt before a cut predicts the bits
    :math:`I_j` up to the next one. The factor c solves

    .. math:: \sum_j E\left[1 - e^{-c \Delta w_j}\right] = \sum_j I_j ,

    with the expectation over the posterior of the change rate :math:`\Delta`. A day
    on which many pages changed at once raises one factor.

    Parameters
    ----------
    sample : Batch
        Pages drawn at random from a log.
    posterior : callable
        From a batch to arrays of its pages: change_rate, log_stderr and log_rate.

    Returns
    -------
    list of float or None
        Factors from 1/20 to 20, of each part with bits; None with fewer than 400 bits
        to predict.

    Examples
    --------
    >>> from recrawl.log.reading import Batch
    >>> from recrawl.log.history import History
    >>> bits = np.random.default_rng(1).random((50, 100)) < 1 - np.exp(-0.5)
    >>> history = History(*History(np.ones((50, 100)), bits).ragged())
    >>> batch = Batch(None, history, np.tile(np.arange(100), 50), np.ones(5000, bool))
    >>> values = {"change_rate": 0.25, "log_stderr": 0.0, "log_rate": np.log(0.25)}
    >>> columns = {name: np.full(50, value) for name, value in values.items()}
    >>> np.round(drift(batch, lambda early: columns), 1)
    array([2.2, 2.1, 1.9])
    """
    time, crawled = sample.time, sample.crawled
    if not crawled.any():
        return None
    cuts = np.quantile(time[crawled], _CUTS, method="lower")
    if np.count_nonzero(crawled & (time > cuts[0])) < LEAST_BITS:
        return None
    interval, changed, offsets = sample.history.ragged()
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    factors = []
    for cut, end in itertools.pairwise(np.unique(cuts)):
        early = time <= cut
        history = kept(sample.history, early)
        learnt = posterior(
            replace(sample, history=history, time=time[early], crawled=crawled[early])
        )
        later = np.flatnonzero(crawled & (time > cut) & (time <= end))
        later = later[:: later.size // _MOST_BITS + 1]
        names = "change_rate", "log_stderr", "log_rate"
        rates = [learnt[name][owner[later]] for name in names]
        factors.append(_factor(rates, interval[later], changed[later]))
    return factors


def _factor(rates, interval, changed):
    """The factor of `drift` for the bits of one part."""
    # half a change stands for none
    found = np.clip(changed.sum(), 0.5, max(changed.size - 0.5, 0.5))

    def missing(log):
        time = np.exp(log) * interval
        unchanged = expected(lambda rate: np.exp(-rate * time), *rates)
        return interval.size - unchanged.sum() - found

    if missing(-_MOST) >= 0 or missing(_MOST) <= 0:
        return float(np.exp(np.copysign(_MOST, -missing(0.0))))
    return float(np.exp(scipy.optimize.brentq(missing, -_MOST, _MOST, xtol=1e-6)))


def most_changes(
    log_rate: Array, log_stderr: Array, period: float, factors: list[float] | None
) -> Array:
    r"""Upper limit of the number of changes of each page in a period.

    With a probability of .975 a page changes no more often. At a lognormal rate, the
    number has the mean and the variance

    .. math:: m = T e^{\mu + \sigma^2 / 2}, \qquad v = m + m^2 (e^{\sigma^2} - 1) ,

    at the greatest of the factors of `drift` and 1. The limit is that of the gamma
    distribution with these two, rounded: within one change of that of the negative
    binomial distribution (measured), at a tenth of its time.

    Parameters
    ----------
    log_rate, log_stderr : ndarray, shape (n_pages,)
        Mean and standard deviation of the logarithm of the change rate, 1/day.
    period : float
        T, days.
    factors : list of float or None
        Of `drift`.

    Returns
    -------
    ndarray, shape (n_pages,)

    Examples
    --------
    >>> most_changes(np.log([0.01, 1.0]), np.array([0.5, 0.1]), 30.0, [0.8, 1.5])
    array([ 3., 62.])
    """
    mean = period * np.exp(log_rate + log_stderr**2 / 2) * max([1.0, *(factors or [])])
    per_change = 1 + mean * np.expm1(log_stderr**2)  # variance over mean
    quantile = scipy.special.gammaincinv(mean / per_change, _LEVEL)
    return np.rint(quantile * per_change)
