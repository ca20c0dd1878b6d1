"""The change rate where crawls may find false changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from recrawl.science.estimators.likelihood import mle
from recrawl.science.processes import History
from recrawl.types import Array

__all__ = ["FalseChanges", "false_changes"]

_MOST_STEPS = 200  # of Newton's method, which takes some ten
_TOLERANCE = 1e-10  # of b, and of a rate relative to itself


class FalseChanges(NamedTuple):
    """False changes of a group of pages, as `false_changes` finds them.

    Parameters
    ----------
    probability : float
        Probability q that a crawl finds a false change.
    pvalue : float
        Probability of as much evidence of false changes if there are none.
    change_rate : ndarray, shape (n_pages,), 1/time
        Rates of the true changes; inf of a page with nothing but changes.
    """

    probability: float
    pvalue: float
    change_rate: Array


def false_changes(history: History) -> FalseChanges:
    r"""Estimate how often the crawls of some pages find a false change, and test it.

    A crawl may find a page changed that has not changed: a clock, a counter or
    an advertisement differs. If this happens with probability q,

    .. math:: P(\mathrm{changed}) = 1 - (1 - q)\,e^{-\Delta w}
        = 1 - e^{-(b + \Delta w)}, \qquad b = -\log(1 - q) .

    The pages, such as those of one host, have one q, and each its own change rate.
    The log-likelihood is concave in b and the rates together; this function returns its
    maximum over b >= 0 and rates >= 0. The test is the likelihood ratio test of q = 0.
    As q = 0 is at the edge, half of all histories without false changes have the
    statistic 0, and the others have it distributed as chi square with one degree of
    freedom (derived).

    Parameters
    ----------
    history : History, shape (n_pages,)
        Bits alone are used. A few crawls soon after the one before determine q:
        without time for a change, every change is a false one. Where each page is
        crawled at one interval, only :math:`b + \Delta w` is known, and the p-value
        is high.

    Returns
    -------
    FalseChanges
        With q = 0 where the likelihood does not rise with it.

    Notes
    -----
    The p-value is for many crawls of each page, at intervals that the bits before did
    not choose. The plain form is `tests.recrawl.plain.false_changes`.

    Examples
    --------
    Two pages of one host, which has false changes at 20% of crawls:

    >>> interval, rate = np.tile([0.01, 2.0], 800), np.repeat([0.1, 1.0], 800)
    >>> chance = 1 - 0.8 * np.exp(-rate * interval)
    >>> changed = np.random.default_rng(1).random(1600) < chance
    >>> history = History(interval, changed, [0, 800, 1600])
    >>> found = false_changes(history)
    >>> round(found.probability, 3), found.change_rate.round(2), found.pvalue < 1e-9
    (0.186, array([0.1 , 0.93]), True)
    >>> mle(history).round(2)  # as if there were none
    array([0.32, 1.36])
    """
    interval, changed, offsets = history.ragged()
    n_unchanged = np.count_nonzero(~changed)
    rate = mle(History(interval, changed, offsets))
    # of other pages the likelihood is known: 1 at the rate inf, or highest at b = 0
    mixed = np.flatnonzero((rate > 0) & (rate < np.inf))
    at_0, t_unchanged = rate[mixed], history.total(interval * ~changed)[mixed]
    page = np.repeat(np.arange(rate.size), np.diff(offsets))
    used = changed & np.isin(page, mixed)
    page, interval = np.searchsorted(mixed, page[used]), interval[used]

    def excess(b, rate):  # 1 / (e^u - 1) of each changed crawl
        u = b + rate[page] * interval
        return np.exp(-u) / -np.expm1(-u)

    def best_rates(b):
        # Newton's method for a sum of log-convex functions, as in the kernel
        rate = at_0
        for _ in range(_MOST_STEPS if b else 0):
            r, before = excess(b, rate), rate
            total = np.bincount(page, r * interval)
            slope = np.bincount(page, r * (1 + r) * interval**2)
            step = np.log(total / t_unchanged) * total / slope
            rate = np.maximum(rate + step, 0)
            if (np.abs(rate - before) <= _TOLERANCE * rate).all():
                break
        return rate

    def slope(b):
        return excess(b, best_rates(b)).sum() - n_unchanged

    def log_likelihood(b):
        rate = best_rates(b)
        changed = np.log(-np.expm1(-b - rate[page] * interval)).sum()
        return changed - b * n_unchanged - rate @ t_unchanged

    if not mixed.size or slope(0.0) <= 0:
        return FalseChanges(0.0, 1.0, rate)
    # the slope is at most 0 where it is 0 with all rates 0; further, for rounding
    most = (1 + 1e-9) * np.log1p(page.size / n_unchanged)
    b = scipy.optimize.brentq(slope, 0.0, most, xtol=_TOLERANCE)
    rate[mixed] = best_rates(b)
    gain = max(log_likelihood(b) - log_likelihood(0.0), 0.0)
    pvalue = scipy.special.chdtrc(1, 2 * gain) / 2
    return FalseChanges(float(-np.expm1(-b)), float(pvalue), rate)
