"""The change rate where crawls may find false changes."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.errors import ConvergenceError, UnidentifiedWarning
from recrawl.kernels import false_changes as kernels
from recrawl.kernels import threads_for
from recrawl.kernels.batch import (
    MAX_NEWTON_STEPS,
    MLE,
    estimating_equation_roots,
)
from recrawl.science.estimators.batch import (
    _SAME_INTERVAL,
    _solved,
    _warn_degenerate,
    bits_alone,
)
from recrawl.science.processes import History
from recrawl.types import Values

__all__ = [
    "FalseChangeFit",
    "FalseChangeTest",
    "design_variance",
    "false_change_test",
    "false_changes",
]

# Relative slope of the log-likelihood in b that counts as 0: equal intervals that
# differ by rounding cause as much.
_FLAT = _SAME_INTERVAL
# Information on b below which its standard error, above 1, leaves q open. At 400 daily
# crawls of a page of rate 1 the error is 1135 if they are some 5 s early or late, 1.6
# if an hour, and 0.4 if four (derived).
_LEAST_INFORMATION = 1.0
# The error of b after a Newton step is of the order of its square.
_TOLERANCE = 1e-8
# Logarithms of two equal sums over many crawls differ by this much from rounding.
_ROUNDING = 1e-14


class FalseChangeFit(NamedTuple):
    """Change rates and probabilities of false changes of a history.

    What `false_changes` returns. Arrays "for each group" have the order of the
    sorted labels; without groups they have the shape of the history.

    Parameters
    ----------
    change_rate : ndarray or float, shape ``history.shape``, 1/time
        Rates of the true changes.
    false_change : ndarray or float, for each group
        Probability q that a crawl finds a false change.
    change_rate_stderr : ndarray or float, shape ``history.shape``, 1/time
        Standard errors from the observed information; NaN at a change rate of
        0 or inf. At q = 0 they are those of a known q, and too small.
    false_change_stderr : ndarray or float, for each group
        Standard errors of q; NaN at q = 0.
    log_likelihood : ndarray or float, for each group
        Its maximum; NaN where q is.

    Examples
    --------
    >>> from recrawl.science.estimators import false_changes
    >>> from recrawl.science.processes import History
    >>> fit = false_changes(History([0.1, 0.1, 0.1, 4.0, 4.0], [1, 0, 0, 0, 1]))
    >>> float(fit.false_change.round(3)), float(fit.change_rate.round(3))
    (0.328, 0.074)
    """

    change_rate: np.ndarray
    false_change: np.ndarray
    change_rate_stderr: np.ndarray
    false_change_stderr: np.ndarray
    log_likelihood: np.ndarray


def false_changes(
    history: History, *, group: ArrayLike | None = None
) -> FalseChangeFit:
    r"""Estimate change rates and the probability of false changes together.

    A crawl may find a page changed that has not changed: a clock, a counter or
    an advertisement differs. If this happens with probability q,

    .. math:: P(\mathrm{changed}) = 1 - (1 - q)\,e^{-\Delta w}
        = 1 - e^{-(b + \Delta w)}, \qquad b = -\log(1 - q) .

    To ignore it adds about :math:`b / w` to the estimated change rate, most on
    the pages that are crawled most often. The log-likelihood is concave in b
    and Delta together; this function returns its maximum over b >= 0 and
    Delta >= 0 (derived, in none of the papers).

    Parameters
    ----------
    history : History
        In either form; ages and counts are not used.
    group : array_like, shape ``history.shape``, optional
        A label of each page, such as its host. The pages of a group have one
        q in common, and each its own change rate. Without it each page has its
        own q.

    Returns
    -------
    FalseChangeFit
        Both estimates, their standard errors, and the log-likelihood. A page
        with nothing but changes gives no information on q and has the rate
        inf; where all pages of a group are like this, q is NaN. A page without
        crawls has the rate NaN. Where the crawls of a group cannot distinguish
        false changes from true ones, q and the rates of its other pages are
        NaN.

    Raises
    ------
    ValueError
        Labels of another shape; or the crawls of no group can distinguish
        false changes from true ones: the standard error of b, if q = 0, would
        be above 1 in each. This is so where each page of a group is crawled at
        one interval, or nearly one. Then b + Delta w is known but neither of
        the two. A group of which a page never changed has q = 0 all the same.
    ConvergenceError
        The maximum of a group was not found.

    Warns
    -----
    DegenerateHistoryWarning
        Pages that never changed (rate 0, and q = 0 of their group) or changed
        at every crawl (rate inf).
    UnidentifiedWarning
        The crawls of some groups cannot distinguish false changes from true
        ones.

    Notes
    -----
    A few crawls soon after the one before determine q: without time for a
    change, every change is a false one; see `design_variance`.

    Missed changes are another matter. If each change is missed for ever with
    probability m, the estimate is of (1 - m) Delta, which is the rate that
    matters to a copy.

    The plain forms are `tests.recrawl.plain.false_change_log_likelihood` and
    `tests.recrawl.plain.false_changes`.

    Examples
    --------
    Two pages of one host, which has false changes at 20% of crawls:

    >>> from recrawl.science.estimators import false_changes, mle
    >>> from recrawl.science.processes import simulate_history
    >>> history = simulate_history(
    ...     [0.1, 1.0], interval=[0.01, 2.0] * 400, false_change=0.2, rng=1
    ... )
    >>> fit = false_changes(history, group=["host", "host"])
    >>> fit.false_change.round(3), fit.change_rate.round(2)
    (array([0.186]), array([0.1 , 0.93]))
    >>> mle(history).round(2)  # as if there were none
    array([0.32, 1.36])
    """
    pages = _Pages(history, group)
    rate = _bits_mle(history)
    _warn_degenerate(rate)
    b, rate, sums = _maximum(pages, rate)
    rate_stderr, stderr = _standard_errors(pages, b, rate, sums)
    return FalseChangeFit(
        change_rate=history.by_page(rate),
        false_change=-np.expm1(-b).reshape(pages.shape)[()],
        change_rate_stderr=history.by_page(rate_stderr),
        false_change_stderr=stderr.reshape(pages.shape)[()],
        log_likelihood=_log_likelihood(pages, b, rate).reshape(pages.shape)[()],
    )


class FalseChangeTest(NamedTuple):
    """Test of whether there are false changes, as `false_change_test` returns it.

    Parameters
    ----------
    statistic : ndarray or float, for each group
        Twice the gain in log-likelihood from q > 0.
    pvalue : ndarray or float, for each group
        Probability of a statistic at least as large if q = 0.

    Examples
    --------
    >>> from recrawl.science.estimators import FalseChangeTest
    >>> FalseChangeTest(statistic=2.7055, pvalue=0.05).pvalue
    0.05
    """

    statistic: np.ndarray
    pvalue: np.ndarray


def false_change_test(
    history: History, *, group: ArrayLike | None = None
) -> FalseChangeTest:
    r"""Likelihood ratio test of q = 0, that there are no false changes.

    The statistic is twice the difference of the maxima of the log-likelihood
    with q >= 0 and with q = 0. As q = 0 is at the edge, half of all histories
    without false changes have the statistic 0, and the others have it
    distributed as chi square with one degree of freedom:

    .. math:: T \sim \tfrac12 \chi^2_0 + \tfrac12 \chi^2_1 ,

    of which 2.7055 is the 5% critical value (derived).

    Parameters
    ----------
    history : History
        In either form.
    group : array_like, shape ``history.shape``, optional
        As in `false_changes`.

    Returns
    -------
    FalseChangeTest
        Statistic and p-value, shaped as ``false_change`` of `FalseChangeFit`;
        NaN where q is.

    Raises
    ------
    ValueError, ConvergenceError
        As `false_changes`.

    Warns
    -----
    DegenerateHistoryWarning, UnidentifiedWarning
        As `false_changes`.

    Notes
    -----
    The distribution is for many crawls of each page. It does not hold for
    groups of pages with few crawls each, nor where the intervals were chosen by
    the bits before.

    The plain form of the likelihood is
    `tests.recrawl.plain.false_change_log_likelihood`.

    Examples
    --------
    >>> from recrawl.science.estimators import false_change_test
    >>> from recrawl.science.processes import simulate_history
    >>> history = simulate_history(
    ...     1.0, interval=[0.1, 1.5] * 100, false_change=0.2, rng=1
    ... )
    >>> test = false_change_test(history)
    >>> float(test.statistic.round(1)), bool(test.pvalue < 1e-4)
    (16.4, True)
    """
    pages = _Pages(history, group)
    without = _bits_mle(history)
    _warn_degenerate(without)
    b, rate, _sums = _maximum(pages, without)
    gain = _log_likelihood(pages, b, rate) - _log_likelihood(pages, 0 * b, without)
    statistic = 2 * np.maximum(gain, 0.0)
    pvalue = np.where(statistic > 0, scipy.special.chdtrc(1, statistic) / 2, 1.0)
    pvalue = np.where(np.isnan(statistic), np.nan, pvalue)
    return FalseChangeTest(
        statistic.reshape(pages.shape)[()], pvalue.reshape(pages.shape)[()]
    )


def design_variance(
    change_rate: ArrayLike,
    *,
    false_change: ArrayLike,
    interval: ArrayLike,
    share: ArrayLike | None = None,
    known: bool = False,
) -> Values:
    r"""Variance of the estimated change rate under given intervals, for one crawl.

    After many crawls n the variance of the maximum likelihood estimate is this
    over n. With :math:`s_k` the share of crawls that have the interval
    :math:`w_k`, and :math:`v_k = 1 / (e^{b + \Delta w_k} - 1)`, it is

    .. math:: \Big[\sum_k s_k v_k (w_k - c)^2\Big]^{-1}, \qquad
        c = \frac{\sum_k s_k v_k w_k}{\sum_k s_k v_k}, \qquad b = -\log(1 - q)

    where q is estimated too, and the same with c = 0 where q is known
    (derived).

    Parameters
    ----------
    change_rate : array_like, 1/time
        Positive.
    false_change : array_like
        Probability q that a crawl finds a false change, in [0, 1).
    interval : array_like, shape (..., n_intervals), time
        Positive; the leading axes broadcast with the rates.
    share : array_like, shape (..., n_intervals), optional
        Crawls at each interval, in any unit, non-negative and not all 0; equal
        numbers by default.
    known : bool, default False
        Whether q is known.

    Returns
    -------
    ndarray or float, 1/time^2
        inf where q is not known and all crawls have one interval (up to a
        relative 1e-9).

    Raises
    ------
    ValueError
        An argument out of its range; shapes that do not broadcast.

    Notes
    -----
    The plain form is `tests.recrawl.plain.design_variance`.

    Examples
    --------
    Half of the crawls come 1.5 after the one before, the others earlier. The
    less the two intervals differ, the less is known of the change rate, unless
    q is known:

    >>> from recrawl.science.estimators import design_variance
    >>> designs = [[0.1, 1.5], [0.5, 1.5], [1.0, 1.5], [1.5, 1.5]]
    >>> design_variance(1.0, false_change=0.1, interval=designs).round(2)
    array([ 4.29,  9.62, 48.  ,   inf])
    >>> design_variance(1.0, false_change=0.1, interval=designs, known=True).round(2)
    array([3.28, 2.31, 1.89, 1.77])
    """
    change_rate = checks.positive("change_rate", change_rate)[..., np.newaxis]
    false_change = checks.share("false_change", false_change)[..., np.newaxis]
    checks.require("false_change", false_change, "below 1", false_change < 1)
    interval = checks.positive("interval", interval)
    share = checks.non_negative("share", 1.0 if share is None else share)
    change_rate, false_change, interval, share = checks.broadcast(
        change_rate=change_rate,
        false_change=false_change,
        interval=interval,
        share=share,
    )
    checks.require("share", total := share.sum(axis=-1), "not all 0", total > 0)
    u = change_rate * interval - np.log1p(-false_change)
    v = share / total[..., np.newaxis] * np.exp(-u) / -np.expm1(-u)
    with np.errstate(divide="ignore", invalid="ignore"):
        if not known:
            centre = (v * interval).sum(axis=-1) / v.sum(axis=-1)
            apart = interval - centre[..., np.newaxis]
            interval = np.where(np.abs(apart) > _SAME_INTERVAL * interval, apart, 0.0)
        return 1 / (v * interval**2).sum(axis=-1)


def _bits_mle(history):
    """MLE of each page from the bits alone, as if all changes were true."""
    return _solved(estimating_equation_roots, *bits_alone(history), MLE)


class _Pages:
    """What the likelihood needs of each page, flat, and the groups of pages."""

    def __init__(self, history, group):
        interval, changed, _offsets = history.ragged()
        self.history = history
        unchanged = np.where(history.changed, 0.0, history.interval)
        self.interval = interval[changed]  # of changed crawls only
        self.n_changed = np.ravel(history.total(history.changed)).astype(np.int64)
        self.starts = np.append(0, np.cumsum(self.n_changed))
        self.n_unchanged = np.ravel(history.n_crawls) - self.n_changed
        self.t_unchanged = np.ravel(history.total(unchanged))
        # the others have their rates, 0 or inf, at every b
        self.mixed = (self.n_changed > 0) & (self.n_unchanged > 0)
        if group is None:
            self.labels, self.shape = None, history.shape
            self.member = np.arange(self.mixed.size)
        else:
            self.labels, self.member = checks.labels("group", group, history.shape)
            self.shape = self.labels.shape

    def by_group(self, values):
        """Sum a number of each page over the pages of each group."""
        return np.bincount(self.member, values, math.prod(self.shape))


def _maximum(pages, rate):
    """b of each group, and rate and sums of each page.

    `rate` holds the best rates at b = 0. Newton's method is for the logarithms
    of both sides of the equation: sum of r = number of unchanged crawls. A step
    that leaves the bracket of the root is replaced by its middle. The sum of r
    is largest where all rates are 0, which gives the upper end.
    """
    n_unchanged = pages.by_group(pages.n_unchanged)
    n_changed = pages.by_group(np.where(pages.n_unchanged > 0, pages.n_changed, 0))
    b, low = np.zeros((2, n_changed.size))
    sums = np.zeros((rate.size, 4))
    sums[~pages.mixed, 3] = 1.0  # these keep their rates: no division by 0
    active = n_changed > 0
    rate = rate.copy()
    _profile(pages, b, active, rate, sums)
    slope = pages.by_group(sums[:, 0]) - n_unchanged
    flat = _FLAT * (n_changed + n_unchanged)
    information = np.empty(rate.size)
    interval, _changed, offsets = pages.history.ragged()
    with threads_for(interval.size):
        kernels.information(rate, interval, offsets, information)
    unknown = (n_changed > 0) & (pages.by_group(information) < _LEAST_INFORMATION)
    # a slope of -1 or less leaves b small, as the crawls of pages that never changed
    unknown &= slope > flat - 1
    if unknown.any():
        _tell_unknown(pages, unknown)
    active = ~unknown & (slope > flat)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.log1p(n_changed / n_unchanged)
    for _ in range(MAX_NEWTON_STEPS):
        if not active.any():
            b[unknown | (n_unchanged == 0)] = np.nan
            rate[pages.mixed & unknown[pages.member]] = np.nan
            return b, rate, sums
        with np.errstate(divide="ignore", invalid="ignore"):
            total = pages.by_group(sums[:, 0])
            excess = np.log(total / n_unchanged)
            newton = excess * total / pages.by_group(_effective(rate, sums))
        low, high = np.where(excess > 0, b, low), np.where(excess > 0, high, b)
        done = (np.abs(newton) <= _TOLERANCE * b) | (np.abs(excess) <= _ROUNDING)
        inside = (low < b + newton) & (b + newton < high)
        new = np.where(inside, b + newton, (low + high) / 2)
        new = np.where(done, np.clip(b + newton, low, high), new)
        step = np.where(active, new - b, 0.0)
        b = b + step
        # the rate follows b along its slope: exact enough for the last step
        slope = np.where(rate > 0, sums[:, 2] / sums[:, 3], 0.0)
        rate = np.maximum(rate - slope * step[pages.member], 0.0)
        active = active & ~done
        _profile(pages, b, active, rate, sums)
    raise ConvergenceError(f"{active.sum()} of {b.size} groups did not converge", b)


def _profile(pages, b, active, rate, sums):
    """Set the best rates at b of the pages of active groups, and their sums."""
    member, wanted = pages.member, pages.mixed & active[pages.member]
    with threads_for(pages.interval.size):
        kernels.profiles(
            b[member], wanted, pages.t_unchanged, pages.interval, pages.starts,
            rate, sums,
        )  # fmt: skip


def _effective(rate, sums):
    """Observed information on b in each page, as its rate is not known."""
    _total, bb, cross, rr = sums.T
    return np.where(rate > 0, np.maximum(bb - cross**2 / rr, 0.0), bb)


def _tell_unknown(pages, unknown):
    """Warn of groups with an unknown q; raise if q of all groups is unknown."""
    page = np.flatnonzero(pages.mixed & unknown[pages.member])[0]
    interval, _changed, offsets = pages.history.ragged()
    own = interval[offsets[page] : offsets[page + 1]]
    index = tuple(map(int, np.unravel_index(page, pages.history.shape)))
    found = f"{own.size} crawls at intervals from {own.min():.6g} to {own.max():.6g}"
    where, kind = f"on page {index}", "pages"
    if pages.labels is not None:
        where += f" of group {str(pages.labels[pages.member[page]])!r}"
        kind = "groups"
    if unknown.all():
        raise ValueError(
            "interval must differ enough, over enough crawls, to tell false changes "
            f"from true ones, got {found} {where}"
        )
    warnings.warn(
        f"{np.count_nonzero(unknown)} of {unknown.size} {kind} do not tell false "
        f"changes from true ones (estimate NaN), the first with {found} {where}",
        UnidentifiedWarning,
        stacklevel=4,  # of _tell_unknown, _maximum, the estimator and its caller
    )


def _standard_errors(pages, b, rate, sums):
    """Standard errors of the rates and of q, from the observed information."""
    _total, _bb, cross, rr = sums.T
    with np.errstate(divide="ignore"):
        variance = np.where(b > 0, 1 / pages.by_group(_effective(rate, sums)), 0.0)
    # an error of b moves the rate along its slope
    rate_variance = 1 / rr + (cross / rr) ** 2 * variance[pages.member]
    inside = pages.mixed & (rate > 0)
    return (
        np.where(inside, np.sqrt(rate_variance), np.nan),
        np.where(b > 0, np.exp(-b) * np.sqrt(variance), np.nan),
    )


def _log_likelihood(pages, b, rate):
    """Log-likelihood of each group."""
    b = b[pages.member]
    # a page with nothing but changes has the limit 0, at the rate inf
    rate_unchanged = np.where(pages.n_unchanged > 0, rate, 0.0)
    unchanged = b * pages.n_unchanged + rate_unchanged * pages.t_unchanged
    u = (
        np.repeat(b, pages.n_changed)
        + np.repeat(rate, pages.n_changed) * pages.interval
    )
    changed = np.bincount(
        np.repeat(pages.member, pages.n_changed),
        np.log(-np.expm1(-u)),
        math.prod(pages.shape),
    )
    return changed - pages.by_group(unchanged)
