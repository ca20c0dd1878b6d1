r"""How fresh crawls keep the copy of a page.

The functions answer: with which probability does the copy of a page agree with
the page, in the long run or over a given time? What does one more crawl gain?
Changes are a Poisson process of rate Delta. After a crawl the copy is fresh until
the next change: at a random time it is fresh with probability

.. math:: F = E\,e^{-\Delta \tau} ,

where tau is the time since the last crawl.

What differs is how the crawls come: at Poisson times (`poisson`; eq. (5) of
[aaai20]_), at equal intervals (`interval`; eq. (5) of [www25]_), at known times
(`crawled`), or when time and signals reach a threshold (`cycle_length`,
`fresh_time`, `crawl_value`: psi, w and V of Lemma 4 of [www25]_).
`empirical_crawl_value` is V of a page whose changes need not be Poisson. `mean`
weights pages by importance.

Of a page with signals, alpha = (1 - recall) Delta is the rate of the changes
without a signal, nu = false_rate, and gamma = recall Delta + nu the rate of
all signals. One signal lowers the probability that the copy is fresh by the
same factor as a time beta = log(gamma / nu) / alpha without signals: the
*effective elapsed time* of n signals in a time tau since the last crawl is
iota = tau + beta n.

All arguments broadcast; `crawled` and `empirical_crawl_value` take a `History`
instead of crawl rates. Change rates, crawl rates and rates of signals are in
1/time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from recrawl import checks
from recrawl.kernels import crawl_value as values
from recrawl.kernels import freshness as kernels
from recrawl.kernels import threads_for
from recrawl.types import Array, Values

if TYPE_CHECKING:
    from paperlib.signals import SignalledPages
    from recrawl.science.processes import History

__all__ = [
    "crawl_value",
    "crawled",
    "cycle_length",
    "empirical_crawl_value",
    "fresh_time",
    "interval",
    "mean",
    "poisson",
]


def _rates(change_rate, crawl_rate):
    return checks.broadcast(
        change_rate=checks.non_negative("change_rate", change_rate),
        crawl_rate=checks.non_negative("crawl_rate", crawl_rate),
    )


def poisson(change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
    r"""Freshness under crawls at Poisson times.

    Eq. (5) of [aaai20]_, eq. (10) of [valuetools20]_:

    .. math:: F = \frac{\rho}{\rho + \Delta} .

    Parameters
    ----------
    change_rate : array_like, 1/time, non-negative
        A page that never changes is fresh even when it is not crawled.
    crawl_rate : array_like, 1/time, non-negative
        Crawl rates; they broadcast with `change_rate`.

    Returns
    -------
    float or ndarray
        Share of time, in [0, 1].

    Raises
    ------
    ValueError
        Rates out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.plain.poisson_freshness`.

    Examples
    --------
    >>> poisson([0.0, 1.0, 3.0], 1.0)
    array([1.  , 0.5 , 0.25])
    """
    return kernels.poisson_freshness(*_rates(change_rate, crawl_rate))


def interval(change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
    r"""Freshness under crawls at equal intervals.

    Eq. (5) of [www25]_; never below `poisson` at the same rate:

    .. math:: F = \frac{\rho}{\Delta} \bigl(1 - e^{-\Delta/\rho}\bigr) .

    Parameters
    ----------
    change_rate : array_like, 1/time, non-negative
        A page that never changes is fresh even when it is not crawled.
    crawl_rate : array_like, 1/time, non-negative
        Crawl rates; they broadcast with `change_rate`.

    Returns
    -------
    float or ndarray
        Share of time, in [0, 1].

    Raises
    ------
    ValueError
        Rates out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.plain.interval_freshness`.

    Examples
    --------
    >>> interval([0.0, 1.0, 3.0], 1.0).round(3)
    array([1.   , 0.632, 0.317])
    """
    with np.errstate(over="ignore"):  # a quotient of inf: stale
        return kernels.interval_freshness(*_rates(change_rate, crawl_rate))


def _decayed(rate, duration):
    """The integral of exp(-rate t) over `duration`."""
    return duration * special.exprel(-rate * duration)


def crawled(
    history: History, change_rate: ArrayLike, *, horizon: float | None = None
) -> Array:
    r"""Expected freshness of pages whose crawl times are known.

    For crawls at times :math:`t_1, t_2, \ldots`, with copies that are fresh at
    :math:`t_0 = 0` (derived),

    .. math:: \frac{1}{T} \sum_k \int_0^{w_k} e^{-\Delta \tau}\,d\tau
              = \frac{1}{T} \sum_k \frac{1 - e^{-\Delta w_k}}{\Delta} ,
              \qquad w_k = t_k - t_{k-1} .

    Parameters
    ----------
    history : History
        Dense or ragged; only the intervals are used, not whether crawls found
        a change.
    change_rate : array_like, shape of the history, 1/time, non-negative
        Change rates.
    horizon : float, time, optional
        The mean is over (0, horizon]; by default up to the last crawl of each
        page.

    Returns
    -------
    ndarray, shape of the history
        In [0, 1]; NaN for a page without crawls where there is no horizon.

    Raises
    ------
    ValueError
        Arguments out of range.

    Examples
    --------
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 1.0, 2.0], [0, 1, 1])
    >>> crawled(history, 1.0).round(3)
    np.float64(0.532)
    """
    change_rate = checks.non_negative("change_rate", change_rate)
    rate, length = history.per_crawl(change_rate), history.interval
    total = history.total(length)
    if horizon is None:
        with np.errstate(invalid="ignore"):  # 0 / 0 of a page without crawls
            return history.total(_decayed(rate, length)) / total
    horizon = checks.positive_number("horizon", horizon)
    before = np.clip(horizon - history.time + length, 0.0, length)
    since = np.maximum(horizon - total, 0.0)
    fresh = history.total(_decayed(rate, before)) + _decayed(change_rate, since)
    return fresh / horizon


def mean(fresh: ArrayLike, importance: ArrayLike) -> Values:
    r"""Freshness over pages, weighted by importance.

    The share of requests that are served fresh,

    .. math:: \frac{\sum_i \mu_i F_i}{\sum_i \mu_i} .

    Parameters
    ----------
    fresh : array_like, shape (..., n_pages)
        Freshness of each page.
    importance : array_like, shape (..., n_pages), non-negative
        Importances; they broadcast with `fresh`.

    Returns
    -------
    float or ndarray, shape (...)
        In [0, 1].

    Raises
    ------
    ValueError
        All importances of a problem are zero, or one is negative.

    Examples
    --------
    >>> mean([0.5, 1.0], [3.0, 1.0])
    np.float64(0.625)
    """
    fresh, importance = checks.broadcast(
        fresh=np.atleast_1d(checks.finite("fresh", fresh)),
        importance=checks.non_negative("importance", importance),
    )
    total = importance.sum(axis=-1)
    if not (total > 0).all():
        raise ValueError(
            "importance must be positive for at least one page, got only zeros"
        )
    return np.vecdot(fresh, importance) / total


def crawl_value(
    elapsed: ArrayLike,
    n_signals: ArrayLike,
    pages: SignalledPages,
    *,
    terms: int | None = None,
) -> Array:
    r"""Crawl value of pages, the gain in freshness from crawling them now.

    V of Lemma 4 of [www25]_ at the effective elapsed time iota; w and psi are
    those of `fresh_time` and `cycle_length`:

    .. math:: V(\iota) = \mu \bigl(w(\iota)
              - e^{-\alpha\iota}\,\psi(\iota)\bigr), \qquad
              \iota = \tau + \beta n .

    It rises to importance / change_rate. Without signals it is
    importance / change_rate x (1 - (1 + x) exp(-x)), x = change_rate elapsed.

    Parameters
    ----------
    elapsed : array_like, shape (..., n_pages), time, non-negative
        Time since the last crawl, tau; inf gives the limit.
    n_signals : array_like, shape (..., n_pages), non-negative
        Signals since the last crawl, n.
    pages : SignalledPages
        Pages and their signals; elapsed and n_signals broadcast against them.
    terms : int, optional
        j of APPROX-j of appendix A.1, which takes the first j terms of the
        sums only; by default all terms. Where signals carry no information
        (recall 0) the exact value is the one without signals; APPROX-j is
        continued by its limit for recall -> 0, a different number.

    Returns
    -------
    ndarray, importance x time
        Relative error below 1e-11; never decreasing in elapsed and n_signals,
        in floating point too.

    Raises
    ------
    ValueError
        Arguments out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.plain.crawl_value`.

    Examples
    --------
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.7], 1.0, recall=0.5, false_rate=0.3)
    >>> crawl_value([[1.0], [3.0], [np.inf]], 0, pages).ravel().round(3)
    array([0.114, 0.494, 1.429])
    """
    elapsed = checks.non_negative_or_inf("elapsed", elapsed)
    n_signals = checks.non_negative("n_signals", n_signals)
    terms = values.EXACT if terms is None else checks.count("terms", terms)
    return _call_kernel(
        values.crawl_values,
        pages,
        pages.importance,
        pages.recall,
        pages.false_rate,
        terms,
        elapsed=elapsed,
        n_signals=n_signals,
    )


def empirical_crawl_value(history: History, elapsed: ArrayLike) -> Array:
    r"""Crawl value of a page from the ages of its changes, without a model.

    .. math:: \hat V(\tau) = \int_0^\tau a\,d\hat F(a) ,

    with the empirical distribution F of the age of the last change, by Kaplan and
    Meier's estimator, since a crawl that found no change shows only that the age is
    above its interval. Where all intervals are at least tau it is the mean of
    :math:`a\,1(a < \tau)` over all crawls (derived). It holds for any stationary
    process of changes, because the time back to the last change and the time on to
    the next have the same distribution; the crawls must not depend on the changes.

    Parameters
    ----------
    history : History
        In either form. The age of every change must be known.
    elapsed : array_like, time
        Times tau since the last crawl, non-negative.

    Returns
    -------
    ndarray, shape ``(*history.shape, *elapsed.shape)``, time
        Crawl values for an importance of 1. NaN for a page without crawls, and
        for elapsed times above the longest observation of a page, if that one is
        an interval without a change.

    Raises
    ------
    ValueError
        A time that is negative or not finite; a change of unknown age.

    Notes
    -----
    The plain form is `tests.recrawl.plain.empirical_crawl_value`. For a count the
    last change is not known: it is refused unless it is 1 and has its age.

    Examples
    --------
    >>> from recrawl.science.freshness import empirical_crawl_value
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 2.0, 2.0], [0, 1, 1], age=[None, 0.5, 1.5])
    >>> empirical_crawl_value(history, [0.4, 1.0, 2.0]).round(3)
    array([0.   , 0.167, 1.167])
    """
    elapsed = checks.non_negative("elapsed", elapsed)
    interval, changed, offsets = history.ragged()
    age = np.full(interval.size, np.nan)
    if history.age is not None:
        age = np.ascontiguousarray(history.age).reshape(-1)
        if history.count is not None:
            age = np.where(history.count.reshape(-1) > 1, np.nan, age)
    unknown = (changed & np.isnan(age)).reshape(history.changed.shape)
    # the end of the message "age must be known at ..."
    rule = "every crawl that found a change, and be that of the last one"
    history.require_told(rule, ~unknown)
    value = np.empty((offsets.size - 1, elapsed.size))
    span = np.where(changed, np.minimum(age, interval), interval)
    order = np.argsort(elapsed, axis=None)
    with threads_for(interval.size):
        kernels.empirical_crawl_values(
            span, changed, offsets, elapsed.ravel()[order], value
        )
    value[:, order] = value.copy()
    return value.reshape(*history.shape, *elapsed.shape)[()]


def cycle_length(threshold: ArrayLike, pages: SignalledPages) -> Array:
    r"""Expected time between two crawls at a threshold.

    psi of Lemma 4 of [www25]_, for pages that are crawled when their effective
    elapsed time reaches iota; K = floor(iota / beta), and P is the regularised
    incomplete gamma function:

    .. math:: \psi(\iota) = \frac{1}{\gamma} \sum_{i=0}^{K}
              P\bigl(i + 1, \gamma (\iota - i \beta)\bigr) .

    Parameters
    ----------
    threshold : array_like, shape (..., n_pages), time, non-negative
        The threshold iota; inf for a page that is never crawled.
    pages : SignalledPages
        Pages and their signals; the threshold broadcasts against them.

    Returns
    -------
    ndarray, time
        Its inverse is the crawl rate.

    Raises
    ------
    ValueError
        Arguments out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.plain.mean_crawl_interval`.

    Examples
    --------
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.7], 1.0, recall=0.5, false_rate=0.3)
    >>> cycle_length(3.0, pages).round(3)
    array([1.465])
    """
    threshold = checks.non_negative_or_inf("threshold", threshold)
    return _call_kernel(
        values.psis, pages, pages.recall, pages.false_rate, threshold=threshold
    )


def fresh_time(threshold: ArrayLike, pages: SignalledPages) -> Array:
    r"""Expected time that the copy is fresh between two crawls at a threshold.

    w of Lemma 4 of [www25]_, with iota and K as in `cycle_length`:

    .. math:: w(\iota) = \sum_{i=0}^{K} \frac{\nu^i}{(\Delta + \nu)^{i+1}}
              P\bigl(i + 1, (\alpha + \gamma) (\iota - i \beta)\bigr) .

    ``fresh_time / cycle_length`` is the freshness.

    Parameters
    ----------
    threshold : array_like, shape (..., n_pages), time, non-negative
        The threshold iota; inf for a page that is never crawled.
    pages : SignalledPages
        Pages and their signals; the threshold broadcasts against them.

    Returns
    -------
    ndarray, time
        1 / change_rate for a page that is never crawled: it is fresh until its
        first change.

    Raises
    ------
    ValueError
        Arguments out of range, or of shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.plain.fresh_time`.

    Examples
    --------
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.7], 1.0, recall=0.5, false_rate=0.3)
    >>> fresh_time(3.0, pages).round(3)
    array([1.007])
    """
    threshold = checks.non_negative_or_inf("threshold", threshold)
    return _call_kernel(
        values.ws, pages, pages.recall, pages.false_rate, threshold=threshold
    )


def _call_kernel(kernel, pages, *parameters, **states):
    """Call a kernel with the states, the change rates and other parameters.

    The states are passed by name, for the message where they do not broadcast.
    """
    *states, change_rate = checks.broadcast(**states, pages=pages.change_rate)
    with np.errstate(all="ignore"):  # kernels may divide on both branches
        return kernel(*states, change_rate, *parameters)
