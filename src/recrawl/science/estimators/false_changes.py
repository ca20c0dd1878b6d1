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

    >>> from recrawl.science.processes import simulate_history
    >>> history = simulate_history(
    ...     [0.1, 1.0], interval=[0.01, 2.0] * 400, false_change=0.2, rng=1
    ... )
    >>> found = false_changes(history)
    >>> round(found.probability, 3), found.change_rate.round(2), found.pvalue < 1e-9
    (0.186, array([0.1 , 0.93]), True)
    >>> mle(history).round(2)  # as if there were none
    array([0.32, 1.36])
    """
    interval, changed, offsets = history.ragged()
    n = np.diff(offsets)
    page = np.repeat(np.arange(n.size), n)
    n_unchanged = np.bincount(page, ~changed, n.size)
    t_unchanged = np.bincount(page, interval * ~changed, n.size)
    without = mle(History(interval, changed, offsets))
    # the likelihood of the others is known: 1 at the rate inf, or highest at b = 0
    mixed = (without > 0) & (without < np.inf)
    used = changed & mixed[page]
    page, interval = page[used], interval[used]

    def best_rates(b):
        # Newton's method for a sum of log-convex functions, as in the kernel
        rate = without.copy()
        for _ in range(_MOST_STEPS if b else 0):
            r = 1 / np.expm1(b + rate[page] * interval)
            total = np.bincount(page, r * interval, n.size)[mixed]
            slope = np.bincount(page, r * (1 + r) * interval**2, n.size)[mixed]
            step = np.log(total / t_unchanged[mixed]) * total / slope
            before = rate[mixed]
            rate[mixed] = np.maximum(before + step, 0)
            if (np.abs(rate[mixed] - before) <= _TOLERANCE * rate[mixed]).all():
                break
        return rate

    def slope(b):
        u = b + best_rates(b)[page] * interval
        return (1 / np.expm1(u)).sum() - n_unchanged.sum()

    def log_likelihood(b, rate):
        u = b + rate[page] * interval
        unchanged = b * n_unchanged.sum() + rate[mixed] @ t_unchanged[mixed]
        return np.log(-np.expm1(-u)).sum() - unchanged

    b = 0.0
    if used.any() and slope(0.0) > 0:
        # the slope is at most 0 where it is 0 with all rates 0; further, for rounding
        most = (1 + 1e-9) * np.log1p(used.sum() / n_unchanged.sum())
        b = scipy.optimize.brentq(slope, 0.0, most, xtol=_TOLERANCE)
    rate = best_rates(b)
    gain = log_likelihood(b, rate) - log_likelihood(0.0, without)
    pvalue = scipy.special.chdtrc(1, 2 * gain) / 2 if b and gain > 0 else 1.0
    return FalseChanges(float(-np.expm1(-b)), float(pvalue), rate)
