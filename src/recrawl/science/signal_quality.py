"""Precision and recall of the signals of many pages, by compiled code.

The estimates of `paperlib.signals.fit`, of which a log of millions of pages needs
some without waiting: a hundredth of its time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import ConvergenceError
from recrawl.kernels import signals as kernels
from recrawl.kernels import threads_for
from recrawl.science.processes import History
from recrawl.types import Array

__all__ = ["SignalFit", "fit"]


class SignalFit(NamedTuple):
    """Estimates of `fit`, one for each page.

    Parameters
    ----------
    change_rate, gamma : ndarray, shape (n_pages,), 1/time
        Rates of changes and of signals.
    precision, recall : ndarray, shape (n_pages,)
        Probability that a signal reports a change; that a change is signalled.
    precision_stderr, recall_stderr : ndarray, shape (n_pages,)
        Standard errors; NaN where nothing is uncertain or known.
    """

    change_rate: Array
    gamma: Array
    precision: Array
    recall: Array
    precision_stderr: Array
    recall_stderr: Array


@np.errstate(invalid="ignore", divide="ignore")
def fit(history: History, n_signals: ArrayLike) -> SignalFit:
    r"""Estimate the quality of signals by maximum likelihood.

    Appendix E of Busa-Fekete et al. (2025): after an interval w with n signals

    .. math:: P(\mathrm{changed}) = 1 - e^{-(\alpha w + b n)} , \quad
        \mathrm{precision} = 1 - e^{-b} , \quad
        \mathrm{recall} = \mathrm{precision}\,\gamma / \Delta ,

    with the signals per unit of time, gamma, and the change rate
    :math:`\Delta = \alpha + \mathrm{precision}\,\gamma`.

    Parameters
    ----------
    history : History
        Crawls of the pages.
    n_signals : array_like of int, shape of ``history.interval``
        Signals between each crawl and the one before.

    Returns
    -------
    SignalFit
        Precision is NaN without signals, recall without changes. A page that
        changed at every crawl has an infinite change rate and NaN.

    Raises
    ------
    ConvergenceError
        The maximum of a page was not found.
    """
    interval, changed, offsets = history.ragged()
    n_pages, flat = offsets.size - 1, np.ascontiguousarray(n_signals, dtype=float)
    rates, covariance = np.empty((n_pages, 2)), np.empty((n_pages, 3))
    with threads_for(interval.size):
        kernels.signal_rates(interval, changed, flat, offsets, rates, covariance)
    if (np.isnan(rates[:, 0]) & (np.diff(offsets) > 0)).any():
        raise ConvergenceError("quality of signals did not converge", rates)
    covariance[np.isinf(covariance)] = np.nan  # many maxima
    (alpha, b), (var_alpha, var_b, both) = rates.T, covariance.T
    time = history.total(history.interval)
    gamma = history.total(flat) / time
    silent = np.isnan(b) & (gamma == 0)
    precision, q = -np.expm1(-b), np.exp(-b)
    true = np.where(silent, 0.0, precision)
    rate = np.where(np.isinf(alpha), np.inf, alpha + true * gamma)
    # derivatives of the recall in alpha, b and gamma, for the delta method
    x = -true * gamma / rate**2
    y = np.where(silent, 0.0, q) * gamma * alpha / rate**2
    z = true * alpha / rate**2
    variance = x**2 * var_alpha + y**2 * var_b + 2 * x * y * both + z**2 * gamma / time
    errors = np.sqrt([q**2 * var_b, variance])
    errors = np.where(errors > 0, errors, np.nan)
    return SignalFit(rate, gamma, precision, true * gamma / rate, *errors)
