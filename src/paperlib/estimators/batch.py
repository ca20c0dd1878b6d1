r"""Change rates from a whole history: MLE, moment matching, bias-reduced, naive.

The MLE from bits alone is in all papers but Busa-Fekete et al. (2025), moment matching
is eq. (7) of Upadhyay et al. (2020), and `bias_reduced` is eq. (1) of Grimes and Ford
(2008).

`naive` and `bias_reduced` have closed forms. `mle` and `moment_matching` are
roots of an estimating equation :math:`\sum f_n(\Delta) = \mathrm{goal}`. Each
:math:`f_n` is log-convex and falls, and so does their sum. Newton's method for
the logarithm of the sum therefore rises to the root from any rate below it,
and from a rate above it the first step leads below.
"""

import warnings

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..errors import DegenerateHistoryWarning
from ..processes import History

# These permissions of fast-math allow vector instructions in sums and keep inf.
_compiled = njit(
    cache=True, error_model="numpy", fastmath={"arcp", "contract", "reassoc"}
)
# The error after a step of Newton's method is of the order of its square.
_TOLERANCE = 1e-8


@_compiled
def _expm1(x):
    """exp(x) - 1 to a relative 4e-14 for x up to 10, and 2e-11 up to 20.

    A Taylor series at x / 128, and exp(2 y) - 1 = e (2 + e) seven times. A
    call of the C library instead keeps a loop from using vector instructions,
    which takes five times as long.
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
def _root(interval, goal, moments, substitute, start=0.0):
    """Rate at which a sum over the intervals is the goal, by Newton's method.

    The summands are w / (e^(rate w) - 1), or e^(-rate w) for the moments. It takes
    3 to 8 steps, fewer from near the root.
    """
    n, time = interval.size, interval.sum()
    if goal == 0.0:  # changes only
        return 1.0 / interval.min() if substitute else np.inf
    if n == moments * goal:  # no change
        return 1.0 / goal if substitute else 0.0
    # The root if all n intervals were equal, for the MLE log(1 + S_1 / S_0) n / S_1,
    # with S_1 the time in changed intervals and S_0 that in others. It is at most the
    # root, because the summands are convex in the interval (Jensen's inequality).
    low = (np.log(n / goal) if moments else np.log1p(time / goal)) * n / time
    rate = max(low, start)
    for _ in range(100):  # rounding can hide the root if w is over 12 decades
        total = slope = 0.0
        for k in range(n):  # faster than over items
            w = interval[k]
            e = _expm1(rate * w)
            f = 1.0 / (1.0 + e) if moments else w / e
            total += f
            slope += f * w if moments else f * (f + w)  # minus the slope
        step = np.log(total / goal) * total / slope
        rate = max(low, rate + step)
        if abs(step) <= _TOLERANCE * rate:
            return rate
    return np.nan


@_compiled
def _roots(interval, changed, offsets, moments, substitute, every):
    """Root of every page, or of `every` prefix of it; NaN without crawls."""
    rate = np.full(interval.size if every else offsets.size - 1, np.nan)
    w = np.empty(interval.size)  # of the sum
    for i in range(offsets.size - 1):
        n, goal, root = 0, 0.0, 0.0
        for k in range(offsets[i], offsets[i + 1]):
            if moments or changed[k]:
                w[n] = interval[k]
                n += 1
            if not changed[k]:
                goal += 1.0 if moments else interval[k]
            if every or k == offsets[i + 1] - 1:
                start = root if root < np.inf else 0.0
                root = _root(w[:n], goal, moments, substitute, start)
                rate[k if every else i] = root
    return rate


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
    return _finish(history, _roots(*history.ragged(), False, substitute, False))


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
    return _finish(history, _roots(*history.ragged(), True, False, False))


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
    return _roots(*history.ragged(), False, False, True).reshape(history.changed.shape)


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
    return history.total(history.changed) / history.total(history.interval)


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
    return -np.log((unchanged + 0.5) / (n + 0.5)) * n / history.total(history.interval)


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
        found = np.log(-np.expm1(-expected))
    return history.total(np.where(history.changed, found, -expected))
