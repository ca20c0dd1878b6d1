r"""Change rates from a whole history: MLE, moment matching, bias-reduced, naive.

All papers except Busa-Fekete et al. (2025) have the MLE from bits alone. Moment
matching is eq. (7) of Upadhyay et al. (2020), and `bias_reduced` is eq. (1) of Grimes
and Ford (2008).

`naive` and `bias_reduced` have closed forms. `mle` and `moment_matching` are
roots of an estimating equation :math:`\sum f_n(\Delta) = \mathrm{goal}`. Each
:math:`f_n` is log-convex and falling, and so is their sum. Newton's method for
the logarithm of the sum (`_newton`) therefore rises to the root from any rate below
the root. From a rate above, the first step leads below. `mle_root` and
`_moments_root` solve the two equations.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..errors import DegenerateHistoryWarning
from ..processes import History

# These flags of fast-math allow vector instructions in sums and keep inf.
_FAST = {"arcp", "contract", "reassoc"}
_compiled = njit(cache=True, error_model="numpy", fastmath=_FAST, nogil=True)
# The error after a step of Newton's method is of the order of the step squared.
_TOLERANCE = 1e-8
# The method takes 3 to 8 steps, and more from a distant bound. Rounding can hide the
# root if the intervals span twelve decades.
_MOST_STEPS = 200


@_compiled
def expm1(x):
    """exp(x) - 1 with relative error 4e-14 for x up to 10, and 2e-11 up to 20.

    A Taylor series gives e = exp(y) - 1 at y = x / 128. Then y is doubled seven times:
    exp(2 y) - 1 = e (2 + e). A call of the C library would prevent vector
    instructions and take five times as long. The absolute error of x / (exp(x) - 1)
    is below 1e-15.
    """
    y = min(x, 300.0) / 128.0  # the doublings of a larger x would overflow
    e = 1.0
    for j in range(8, 1, -1):
        e = 1.0 + y / j * e
    e *= y
    for _ in range(7):
        e *= 2.0 + e
    return e


@_compiled
def _score(rate, interval):
    """Sum of w / (e^(rate w) - 1) over the intervals, and minus its slope."""
    total = slope = 0.0
    for k in range(interval.size):  # faster than a loop over items
        w = interval[k]
        term = w / expm1(rate * w)
        total += term
        slope += term * (term + w)
    return total, slope


@_compiled
def _survival(rate, interval):
    """Sum of e^(-rate w) over the intervals, and minus its slope."""
    total = slope = 0.0
    for k in range(interval.size):
        w = interval[k]
        term = 1.0 / (1.0 + expm1(rate * w))
        total += term
        slope += term * w
    return total, slope


@_compiled
def _newton(rate, total, slope, goal, low):
    """The rate after a step towards log(total) = log(goal), at least low.

    `slope` is minus the slope of the total. (The two roots share this step but not the
    loop: numba does not cache a function that passes a function to another.)
    """
    return max(low, rate + math.log(total / goal) * total / slope)


@_compiled
def mle_root(interval, unchanged_time, known=0.0, start=0.0):
    r"""Maximum likelihood estimate of one page.

    The root of known / rate + the sum of w / (e^(rate w) - 1) = unchanged_time.

    Parameters
    ----------
    interval : ndarray
        Intervals w of the crawls that found a change.
    unchanged_time : float
        Sum of the other intervals.
    known : float, default 0
        Number of changes with known times, for example from ages.
    start : float, default 0
        A rate near the root, which saves steps.

    Returns
    -------
    float
        0 without a change, inf without unchanged time, NaN without crawls, or if
        rounding hides the root.
    """
    n = interval.size
    if n == 0:
        return known / unchanged_time
    if unchanged_time == 0.0:
        return math.inf
    time = 0.0
    for k in range(n):
        time += interval[k]
    # The larger of two lower bounds. The first is the root for n equal intervals of the
    # same sum and known = 0. It is a bound by Jensen's inequality, because the summands
    # are convex in w. The second follows from w / (e^(rate w) - 1) > 1 / rate - w / 2.
    if_equal = math.log1p(time / unchanged_time) * n / time
    low = max(if_equal, (known + n) / (unchanged_time + 0.5 * time))
    rate = max(low, start)
    for _ in range(_MOST_STEPS):
        before = rate
        total, slope = _score(rate, interval)
        if known > 0.0:
            total += known / rate
            slope += known / rate / rate
        rate = _newton(before, total, slope, unchanged_time, low)
        if abs(rate - before) <= _TOLERANCE * rate:
            return rate
    return math.nan


@_compiled
def _moments_root(interval, n_unchanged):
    """Rate at which n_unchanged intervals are expected to have no change."""
    n = interval.size
    if n_unchanged == n:
        return 0.0
    if n_unchanged == 0:
        return math.inf
    # a lower bound, as above: the root for equal intervals of the same sum
    low = math.log(n / n_unchanged) * n / interval.sum()
    rate = low
    for _ in range(_MOST_STEPS):
        before = rate
        total, slope = _survival(rate, interval)
        rate = _newton(before, total, slope, n_unchanged, low)
        if abs(rate - before) <= _TOLERANCE * rate:
            return rate
    return math.nan


@_compiled
def _mle(interval, changed, offsets, every):
    """`mle_root` of each page, and also after each crawl if `every` is true."""
    rate = np.full(offsets.size - 1, math.nan)
    path = np.empty(interval.size)
    sifted = np.empty(interval.size)  # the intervals with a change
    for i in range(rate.size):
        n = 0
        unchanged_time = root = 0.0
        for k in range(offsets[i], offsets[i + 1]):
            if changed[k]:
                sifted[n] = interval[k]
                n += 1
            else:
                unchanged_time += interval[k]
            if every or k == offsets[i + 1] - 1:
                start = root if root < math.inf else 0.0
                root = mle_root(sifted[:n], unchanged_time, 0.0, start)
                path[k] = root
                rate[i] = root
    return rate, path


@_compiled
def _moments(interval, changed, offsets):
    """`_moments_root` of each page; NaN without crawls."""
    rate = np.full(offsets.size - 1, math.nan)
    for i in range(rate.size):
        own = slice(offsets[i], offsets[i + 1])
        if interval[own].size > 0:
            rate[i] = _moments_root(interval[own], np.sum(~changed[own]))
    return rate


@_compiled
def replace_degenerate(rate, interval, offsets):
    """Replace rates of 0 and inf by the finite rates of Cho and Garcia-Molina.

    Section 3.3 of Grimes and Ford (2008): one change in the whole time if the page
    never changed, one change in the shortest interval if it changed at every crawl.
    """
    for i in np.flatnonzero((rate == 0) | np.isinf(rate)):
        own = interval[offsets[i] : offsets[i + 1]]
        time = own.sum() if rate[i] == 0 else own.min()
        rate[i] = 1 / time


def _finish(history, rate):
    """Rates by page; warn the estimator's caller of rates 0 and inf."""
    degenerate = np.count_nonzero((rate == 0) | np.isinf(rate))
    if degenerate:
        warnings.warn(
            f"{degenerate} of {rate.size} pages changed at no crawl (estimate 0) or "
            "at every crawl (estimate inf)",
            DegenerateHistoryWarning,
            stacklevel=3,
        )
    return history.by_page(rate)


def mle(history: History, *, substitute: bool = False) -> NDArray:
    r"""Maximum likelihood estimate.

    The root of

    .. math:: \sum_\mathrm{changed} \frac{w_n}{e^{\Delta w_n} - 1}
        = \sum_\mathrm{unchanged} w_n ,

    eq. (9) of Avrachenkov, Patil, Thoppe (2020), eq. (16) of the same authors (2022),
    eq. (2) of Grimes and Ford (2008). It maximises `log_likelihood`, above eq. (7) of
    Upadhyay et al. (2020).

    Parameters
    ----------
    history : History
        Dense or ragged.
    substitute : bool, default False
        Whether a page without a root gets the rate that Grimes and Ford (2008)
        recommend in section 3.3: one change in the whole time if it never
        changed, one change in the shortest interval if it changed at every
        crawl. By default it gets 0 or inf, with a `DegenerateHistoryWarning`.

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        NaN for a page without crawls, or if its intervals span more than twelve
        decades and rounding hides the root.

    Examples
    --------
    >>> from paperlib.estimators import mle
    >>> from paperlib.processes import History
    >>> float(mle(History([1.0, 2.0, 1.0], [True, False, True])).round(4))
    0.6931
    """
    checks.instance("history", history, History)
    interval, changed, offsets = history.ragged()
    rate, _ = _mle(interval, changed, offsets, every=False)
    if substitute:
        replace_degenerate(rate, interval, offsets)
    return _finish(history, rate)


def moment_matching(history: History) -> NDArray:
    r"""Moment-matching estimate.

    The rate at which the expected number of unchanged crawls equals the observed
    number, the root of

    .. math:: \sum_n e^{-\Delta w_n} = n_\mathrm{unchanged} ,

    eq. (7) of Upadhyay et al. (2020), section 3.3 of Avrachenkov, Patil, Thoppe
    (2020), section 3.4 of the same authors (2022). If all intervals of a page equal d,
    it is :math:`-\log(n_\mathrm{unchanged} / n) / d`, and so is `mle`. Upadhyay et al.
    clip it to known bounds.

    Parameters
    ----------
    history : History
        Dense or ragged.

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        0 for a page that never changed and inf for a page that changed at every
        crawl, with a `DegenerateHistoryWarning`; NaN as in `mle`.
    """
    return _finish(history, _moments(*history.ragged()))


def mle_path(history: History) -> NDArray:
    """Maximum likelihood estimate after every crawl: `mle` of each prefix.

    Avrachenkov, Patil, Thoppe have it in figures: eq. (9) of 2020, eq. (16) of 2022.

    Parameters
    ----------
    history : History
        Dense or ragged.

    Returns
    -------
    ndarray, shape of ``history.changed``, 1/time
        0 while no crawl found a change, inf while every crawl found one; without
        a warning.

    Examples
    --------
    >>> from paperlib.estimators import mle_path
    >>> from paperlib.processes import History
    >>> mle_path(History([1.0, 2.0, 1.0], [True, False, True])).round(4)
    array([   inf, 0.4055, 0.6931])
    """
    _, path = _mle(*history.ragged(), every=True)
    return path.reshape(history.changed.shape)


@np.errstate(invalid="ignore")  # 0 / 0
def _ratio(changes, time):
    """Changes per time; NaN for a page without crawls."""
    return changes / time


def naive(history: History) -> NDArray:
    r"""Changed crawls per unit of time.

    .. math:: \hat\Delta = n_\mathrm{changed} \Big/ \sum_n w_n

    Section 3.2 of Grimes and Ford (2008). It is biased low: several changes
    between two crawls count as one.

    Parameters
    ----------
    history : History
        Dense or ragged.

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        NaN for a page without crawls.
    """
    return _ratio(history.total(history.changed), history.total(history.interval))


def bias_reduced(history: History) -> NDArray:
    r"""Bias-reduced estimate for crawls of a page at one fixed interval w.

    .. math:: \hat\Delta = -\frac{1}{w}
        \log \frac{n_\mathrm{unchanged} + 1/2}{n + 1/2}

    Eq. (1) of Grimes and Ford (2008). Corrected: the logarithm estimates w
    divided by the mean time between changes; the paper prints the inverse. The
    estimate is finite even if every crawl found a change.

    Parameters
    ----------
    history : History
        Dense or ragged. If the intervals of a page are not equal, w is their
        mean, and `mle` is the better choice.

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        NaN for a page without crawls.
    """
    n = history.n_crawls
    unchanged = history.total(~history.changed)
    exponent = -np.log((unchanged + 0.5) / (n + 0.5))
    return _ratio(exponent * n, history.total(history.interval))


def log_likelihood(history: History, change_rate: ArrayLike) -> NDArray:
    r"""Log-likelihood of a change rate, given the bits.

    .. math:: \log L(\Delta) = \sum_\mathrm{changed} \log(1 - e^{-\Delta w_n})
        - \Delta \sum_\mathrm{unchanged} w_n

    Above eq. (7) of Upadhyay et al. (2020). It is concave; `mle` maximises it.

    Parameters
    ----------
    history : History
        Dense or ragged.
    change_rate : array_like, broadcasts to ``history.shape``, 1/time
        Non-negative. The likelihood of rate 0 is 0 if a crawl found a change.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        0 for a page without crawls.
    """
    rate = history.per_crawl(checks.numbers("change_rate", change_rate))
    expected = rate * history.interval
    with np.errstate(divide="ignore"):
        log_changed = np.log(-np.expm1(-expected))
    return history.total(np.where(history.changed, log_changed, -expected))
