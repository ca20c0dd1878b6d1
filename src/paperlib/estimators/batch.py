r"""Change rates from a whole history: MLE, moment matching, bias-reduced, naive.

The MLE from bits alone is in all papers but Busa-Fekete et al. (2025), moment matching
is eq. (7) of Upadhyay et al. (2020), and `bias_reduced` is eq. (1) of Grimes and Ford
(2008).

`naive` and `bias_reduced` have closed forms. `mle` and `moment_matching` are
roots of an estimating equation :math:`\sum f_n(\Delta) = \mathrm{goal}`. Each
:math:`f_n` is log-convex and falls, and so does their sum. Newton's method for
the logarithm of the sum (`_newton`) therefore rises to the root from any rate below
it, and from a rate above it the first step leads below. `mle_root` and
`_moments_root` are the two equations.
"""

import math
import warnings

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..errors import DegenerateHistoryWarning
from ..processes import History

# These permissions of fast-math allow vector instructions in sums and keep inf.
_FAST = {"arcp", "contract", "reassoc"}
_compiled = njit(cache=True, error_model="numpy", fastmath=_FAST)
# The error after a step of Newton's method is of the order of its square.
_TOLERANCE = 1e-8
# It takes 3 to 8 steps, and more from a far bound. Rounding can hide the root if the
# intervals are over twelve decades.
_MOST_STEPS = 200


@_compiled
def expm1(x):
    """exp(x) - 1 to a relative 4e-14 for x up to 10, and 2e-11 up to 20.

    A Taylor series at x / 128, and exp(2 y) - 1 = e (2 + e) seven times. A
    call of the C library instead keeps a loop from using vector instructions,
    which takes five times as long. The absolute error of x / (exp(x) - 1) is below
    1e-15.
    """
    y = min(x, 300.0) / 128.0  # the doublings of more than 300 would overflow
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
    for k in range(interval.size):  # faster than over items
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

    `slope` is minus that of the total. (The two roots share this step and not the
    loop: numba does not cache a function that calls one with a function argument.)
    """
    return max(low, rate + math.log(total / goal) * total / slope)


@_compiled
def mle_root(interval, unchanged_time, known=0.0, start=0.0):
    r"""Maximum likelihood estimate of one page.

    The root of known / rate + the sum of w / (e^(rate w) - 1) = unchanged_time.

    Parameters
    ----------
    interval : ndarray
        Intervals w of the crawls of which the bit says that there was a change.
    unchanged_time : float
        Sum of the other intervals.
    known : float, default 0
        Number of changes that are known one by one, as by their ages.
    start : float, default 0
        A rate near the root, for fewer steps.

    Returns
    -------
    float
        0 without a change, inf without unchanged time, NaN without both, or if
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
    # The larger of two lower bounds. One is the root if all n intervals were equal and
    # nothing else known: the summands are convex in the interval (Jensen's inequality).
    # The other follows from w / (e^(rate w) - 1) > 1 / rate - w / 2.
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
    """Rate at which n_unchanged of the intervals are expected without a change."""
    n = interval.size
    if n_unchanged == n:
        return 0.0
    if n_unchanged == 0:
        return math.inf
    # the root if all intervals were equal, as above
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
    """`mle_root` of each page, and of the crawls up to each if `every` is true."""
    rate = np.full(offsets.size - 1, math.nan)
    path = np.empty(interval.size)
    sifted = np.empty(interval.size)  # the changed intervals
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
    """Write finite rates over 0 and inf, those of Cho and Garcia-Molina.

    Section 3.3 of Grimes and Ford (2008): one change in the whole time if the page
    never changed, one in the shortest interval if it changed at every crawl.
    """
    for i in np.flatnonzero((rate == 0) | np.isinf(rate)):
        own = interval[offsets[i] : offsets[i + 1]]
        time = own.sum() if rate[i] == 0 else own.min()
        rate[i] = 1 / time


def _finish(history, rate):
    """Rates by page; warn at the estimator's caller."""
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

    eq. (9) of Avrachenkov, Patil, Thoppe (2020), eq. (16) of the same (2022),
    eq. (2) of Grimes and Ford (2008); the maximum of `log_likelihood`, above eq. (7)
    of Upadhyay et al. (2020).

    Parameters
    ----------
    history : History
        In either form.
    substitute : bool, default False
        Whether a page without a root gets the values that Grimes and Ford
        (2008) recommend in section 3.3: one change in the whole time if it
        never changed, one in the shortest interval if it changed at every
        crawl. Otherwise it gets 0, or inf, and a `DegenerateHistoryWarning`.

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        NaN for a page without crawls, or where rounding hides the root because
        the intervals are over more than twelve decades.

    Examples
    --------
    >>> from paperlib.estimators import mle
    >>> from paperlib.processes import History
    >>> float(mle(History([1.0, 2.0, 1.0], [True, False, True])).round(4))
    0.6931
    """
    interval, changed, offsets = history.ragged()
    rate, _ = _mle(interval, changed, offsets, every=False)
    if substitute:
        replace_degenerate(rate, interval, offsets)
    return _finish(history, rate)


def moment_matching(history: History) -> NDArray:
    r"""Moment-matching estimate.

    The rate at which as many unchanged crawls are expected as were found, the
    root of

    .. math:: \sum_n e^{-\Delta w_n} = n_\mathrm{unchanged} ,

    eq. (7) of Upadhyay et al. (2020), section 3.3 of Avrachenkov, Patil, Thoppe
    (2020), section 3.4 of the same (2022). Where the intervals of a page equal d, it
    is :math:`-\log(n_\mathrm{unchanged} / n) / d`, and so is `mle`. Upadhyay et al.
    clip it to known bounds.

    Parameters
    ----------
    history : History
        In either form.

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        0 for a page that never changed and inf for one that changed at every
        crawl, with a `DegenerateHistoryWarning`; NaN as in `mle`.
    """
    return _finish(history, _moments(*history.ragged()))


def mle_path(history: History) -> NDArray:
    """Maximum likelihood estimate after every crawl: `mle` of each prefix.

    In figures of Avrachenkov, Patil, Thoppe: eq. (9) of 2020, eq. (16) of 2022.

    Parameters
    ----------
    history : History
        In either form.

    Returns
    -------
    ndarray, shape of ``history.changed``, 1/time
        0 or inf as long as the crawls found no change or nothing but changes,
        without a warning.

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
        In either form.

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

    Eq. (1) of Grimes and Ford (2008). Corrected: the paper prints the inverse
    of the ratio of the interval to the mean time between changes. It is finite
    also if every crawl found a change.

    Parameters
    ----------
    history : History
        In either form. If the intervals of a page are not equal, w is their
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

    Above eq. (7) of Upadhyay et al. (2020). Concave; `mle` is where it is
    greatest.

    Parameters
    ----------
    history : History
        In either form.
    change_rate : array_like, broadcasts to ``history.shape``, 1/time
        Non-negative. The likelihood of rate 0 is 0 where a crawl found a
        change.

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
