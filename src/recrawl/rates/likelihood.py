"""The likelihood of a change rate: its maximum, its limits, its spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from paperlib.estimators.batch import replace_degenerate
from recrawl.log.history import History
from recrawl.rates import likelihood_kernels as kernels
from recrawl.types import Array, Values

__all__ = [
    "LEVEL",
    "each_page",
    "log_information",
    "log_stderr",
    "mle",
    "spread",
]

#: Confidence level of all intervals.
LEVEL = 0.95


def each_page(kernel: Any, history: History, *of_pages: ArrayLike, n: int = 1) -> Array:
    """Find `n` numbers of each page by a kernel.

    Parameters
    ----------
    kernel : callable
        Takes numbers of pages, `History.likelihood_terms`, and arrays to write to.
    history : History
        In either form.
    *of_pages : array_like
        Numbers of pages, which broadcast to ``history.shape``.
    n : int, default 1
        How many numbers the kernel writes.

    Returns
    -------
    ndarray, shape (n, *history.shape)
    """
    flat = [
        np.array(np.broadcast_to(x, history.shape), float).ravel() for x in of_pages
    ]
    found = np.empty((n, np.prod(history.shape, dtype=int)))
    kernel(*flat, *history.likelihood_terms(), *found)
    return found.reshape(n, *history.shape)


def mle(history: History, *, substitute: bool = False) -> Values:
    r"""Maximum likelihood estimate of the change rate, for any intervals.

    The root of

    .. math:: \sum_\mathrm{changed} \frac{w_n}{e^{\Delta w_n} - 1}
        = \sum_\mathrm{unchanged} w_n ,

    to whose left side known ages and counts add their changes over the rate.

    Parameters
    ----------
    history : History
        In either form.
    substitute : bool, default False
        Replace 0 and inf by the values of Cho and Garcia-Molina (section 3.3 of
        Grimes and Ford 2008): one change in the whole time, and one in the
        shortest interval.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        Change rates, 1/time; 0 without a change, inf with nothing but changes, NaN
        without crawls.

    Examples
    --------
    >>> from recrawl.rates.likelihood import mle
    >>> from recrawl.log.history import History
    >>> float(mle(History([1.0, 2.0, 1.0], [True, False, True])).round(4))
    0.6931
    """
    rate = each_page(kernels.maxima, history)
    if substitute:
        interval, _, offsets = history.ragged()
        replace_degenerate(rate.reshape(-1), interval, offsets)  # a view
    return rate[0][()]


def spread(
    history: History, change_rate: ArrayLike, dispersion: ArrayLike = 1.0
) -> tuple[Values, Values, Values]:
    r"""Confidence interval of the change rate, and mean of its logarithm.

    The interval, of level 0.95, has all rates whose log-likelihood is close to the
    maximum,

    .. math::
        \ell(\Delta) \ge \ell(\hat\Delta) - \varphi\,\chi^2_1(0.95) / 2 ,

    of about nominal coverage where the dispersion :math:`\varphi` is right: 1 if
    changes are Poisson, else that of `dispersion.dispersion`. The mean is that of the
    posterior, all rates being equally likely before the history,

    .. math:: \frac{\int \ln\Delta \; L(\Delta)^{1/\varphi}\,d\Delta}
        {\int L(\Delta)^{1/\varphi}\,d\Delta} .

    Where bits are few, and most of them changed, the posterior has a long right
    tail, and this mean lies far above the logarithm of the mode: many changes in
    one interval look like one.

    Parameters
    ----------
    history : History
        In either form.
    change_rate : array_like, shape ``history.shape``, 1/time
        Where the likelihood is largest: positive and finite, as it is with the
        pseudo-observations of `PseudoObservations.observed`.
    dispersion : array_like, default 1.0
        Variance of the score in units of that of a Poisson page, positive.

    Returns
    -------
    low, high : ndarray or float, shape ``history.shape``, 1/time
        The limits of the interval.
    mean : ndarray or float, shape ``history.shape``
        With an error below 2e-3; inf where no crawl was unchanged, for then very
        high rates are as likely as others.

    Notes
    -----
    Of ten crawls at an interval in which one change is expected, the interval
    covers 0.9409 +- 0.0005 with ages, and 0.9552 with bits (measured).

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> history = History([1.0, 2.0, 1.0], [True, False, True])
    >>> low, high, mean = spread(history, mle(history))
    >>> float(low.round(3)), float(high.round(3)), float(mean.round(3))
    (0.113, 2.233, -0.105)
    """
    found = each_page(kernels.spread, history, change_rate, dispersion, n=3)
    return found[0][()], found[1][()], found[2][()]


def log_information(history: History, change_rate: ArrayLike) -> Values:
    r"""Observed information of the logarithm of the change rate.

    .. math:: J = \sum_\mathrm{unchanged} x_n
        + \sum_\mathrm{changed} r_n (x_n + r_n - 1), \qquad
        x_n = \Delta w_n, \quad r_n = \frac{x_n}{e^{x_n} - 1} ,

    minus the second derivative of the log-likelihood, which is positive at every
    rate because the log-likelihood is concave in the logarithm of the rate.

    Parameters
    ----------
    history : History
        In either form.
    change_rate : array_like, shape ``history.shape``, 1/time
        Positive.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        0 for a page without crawls.
    """
    return each_page(kernels.log_information, history, change_rate)[0][()]


def log_stderr(information: ArrayLike, dispersion: ArrayLike = 1.0) -> Values:
    r"""Standard deviation of the logarithm of a change rate in its posterior.

    .. math:: \sqrt{\psi_1(1 + J / \varphi)} ,

    with the trigamma function. It is that of the gamma distribution whose density
    has the same mode, and there the same curvature in the logarithm, as the
    posterior: the likelihood to the power :math:`1 / \varphi`, all rates being
    equally likely before the crawls and pseudo-observations in it (derived). It is
    exact where all changes are known by their ages.

    Parameters
    ----------
    information : array_like
        J of `log_information` at the posterior mode, non-negative.
    dispersion : array_like, default 1.0
        As `dispersion` estimates it, positive.

    Returns
    -------
    ndarray or float

    Examples
    --------
    >>> log_stderr([0.0, 4.0, 100.0]).round(3)
    array([1.283, 0.47 , 0.1  ])
    """
    return np.sqrt(scipy.special.polygamma(1, 1 + np.divide(information, dispersion)))
