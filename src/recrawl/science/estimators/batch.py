"""The change rate from a whole history."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from recrawl import checks
from recrawl.errors import ConvergenceError, DegenerateHistoryWarning
from recrawl.kernels import batch as kernels
from recrawl.kernels import threads_for
from recrawl.science.processes import History
from recrawl.types import Array, Values

__all__ = [
    "bias_reduced",
    "mle",
    "mle_path",
    "moment_matching",
    "naive",
]

# Relative difference up to which intervals count as equal: rounding of sums of
# times.
_SAME_INTERVAL = 1e-9


def naive(history: History) -> Values:
    r"""Naive estimate: changed crawls per unit of time.

    .. math:: \hat\Delta = n_\mathrm{changed} \Big/ \sum_n w_n

    Section 3.4 of [peva22]_. It is biased low: several changes between two
    crawls count as one. A crawl of known age or count enters with its known
    changes, and with the time in which no other change can hide.

    Parameters
    ----------
    history : History
        In either form.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        Change rates, 1/time; NaN for a page without crawls.

    Notes
    -----
    The plain form is `tests.plain.naive`.

    Examples
    --------
    >>> from recrawl.science.estimators import naive
    >>> from recrawl.science.processes import History
    >>> float(naive(History([1.0, 2.0, 1.0], [True, False, True])))
    0.5
    """
    checks.instance("history", history, History)
    if history.tells_more:
        n_known, time, n_bits, bits_time = history.likelihood_totals()
        changes, time = n_known + n_bits, time + bits_time
    else:
        changes, time = history.total(history.changed), history.total(history.interval)
    return _ratio(changes, time)


def _ratio(changes, time):
    """Changes per unit of time; NaN for a page without crawls."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return changes / time


def bias_reduced(history: History) -> Values:
    r"""Bias-reduced estimate for crawls at one fixed interval per page.

    .. math:: \hat\Delta = -\frac{1}{w}
        \log \frac{n_\mathrm{unchanged} + 1/2}{n + 1/2}

    Eq. (1) of [grimes08]_, corrected: the paper prints the inverse of the
    ratio of the interval to the mean time between changes. The estimate is
    finite also when every crawl found a change.

    Parameters
    ----------
    history : History
        In either form; the intervals w of a page are equal up to a relative
        1e-9.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        Change rates, 1/time; NaN for a page without crawls.

    Raises
    ------
    ValueError
        A page whose intervals differ.

    Notes
    -----
    The plain form is `tests.plain.bias_reduced`.

    Examples
    --------
    >>> from recrawl.science.estimators import bias_reduced
    >>> from recrawl.science.processes import History
    >>> history = History([[2.0] * 4, [2.0] * 4], [[1, 0, 0, 1], [1, 1, 1, 1]])
    >>> bias_reduced(history).round(3)
    array([0.294, 1.099])
    """
    n = history.n_crawls
    with np.errstate(invalid="ignore", divide="ignore"):
        interval = history.total(history.interval) / n
    per_crawl = history.per_crawl(interval)
    even = ~(np.abs(history.interval - per_crawl) > _SAME_INTERVAL * per_crawl)
    rule = "the same for all crawls of a page (mle takes any)"
    checks.require("interval", history.interval, rule, even)
    return -np.log((n - history.total(history.changed) + 0.5) / (n + 0.5)) / interval


def mle(
    history: History,
    *,
    edges: Literal["limits", "substitute"] = "limits",
    bounds: tuple[float, ...] | None = None,
) -> Values:
    r"""Maximum likelihood estimate of the change rate, for any intervals.

    The root of

    .. math:: \sum_\mathrm{changed} \frac{w_n}{e^{\Delta w_n} - 1}
        = \sum_\mathrm{unchanged} w_n ,

    eq. (9) of [valuetools20]_, eq. (16) of [peva22]_, eq. (2) of [grimes08]_.

    Parameters
    ----------
    history : History
        In either form.
    edges : {"limits", "substitute"}, default "limits"
        The estimate of a page without a root. "limits": 0 without a change,
        inf with nothing but changes. "substitute": the values that Cho and
        Garcia-Molina put in their place (section 3.3 of [grimes08]_), one
        change in the whole time, and one in the shortest interval.
    bounds : tuple of float, optional
        Low and high, 1/time; the estimate is clipped to them.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        Change rates, 1/time; NaN for a page without crawls.

    Raises
    ------
    ValueError
        Other edges; bounds that are not in order.
    ConvergenceError
        The root of a page was not found.

    Warns
    -----
    DegenerateHistoryWarning
        Pages without a root got the limits.

    Notes
    -----
    The plain forms are `tests.plain.mle` and
    `tests.plain.mle_substitute`.

    Examples
    --------
    >>> from recrawl.science.estimators import mle
    >>> from recrawl.science.processes import History
    >>> float(mle(History([1.0, 2.0, 1.0], [True, False, True])).round(4))
    0.6931
    """
    checks.instance("history", history, History)
    checks.one_of("edges", edges, ("limits", "substitute"))
    if history.tells_more:
        rate = _solved(kernels.told_roots, *history.ragged(), *history._told())
    else:
        terms = history.likelihood_terms()
        rate = _solved(kernels.estimating_equation_roots, *terms, kernels.MLE)
    if edges == "limits":
        _warn_degenerate(rate, history.tells_more)
    else:
        _substitute(rate, history)
    return _finish(rate, history, bounds)


def moment_matching(
    history: History, *, bounds: tuple[float, ...] | None = None
) -> Values:
    r"""Moment-matching estimate of the change rate, for any intervals.

    The rate at which the expected number of unchanged crawls is the number
    seen, the root of

    .. math:: \sum_n e^{-\Delta w_n} = n_\mathrm{unchanged} ,

    eq. (7) of [aaai20]_ (our text of it lacks the formula; it is printed in
    section 3.4 of [peva22]_). It agrees with `mle` when the intervals of a
    page are equal. A page all of whose changes are known by their ages or counts
    gets their number over the time in which no other can hide, as from `mle`; of
    other pages the bits alone are used.

    Parameters
    ----------
    history : History
        In either form.
    bounds : tuple of float, optional
        Low and high, 1/time; the estimate is clipped to them as in [aaai20]_.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        Change rates, 1/time; 0 without a change, inf with nothing but
        changes, NaN for a page without crawls.

    Raises
    ------
    ValueError
        Bounds that are not in order.
    ConvergenceError
        The root of a page was not found.

    Warns
    -----
    DegenerateHistoryWarning
        Pages have no root.

    Notes
    -----
    The plain form is `tests.plain.moment_matching`.

    Examples
    --------
    >>> from recrawl.science.estimators import moment_matching
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 2.0, 1.0], [True, False, True])
    >>> float(moment_matching(history).round(4))
    0.8814
    """
    checks.instance("history", history, History)
    terms = bits_alone(history)
    rate = _solved(_moments, *terms)
    if history.tells_more:
        n_known, time, n_bits, _ = map(np.ravel, history.likelihood_totals())
        told = (n_known > 0) & (n_bits == 0)
        rate = np.where(told, _ratio(n_known, time), rate)
    _warn_degenerate(rate, history.tells_more)
    return _finish(rate, history, bounds)


def bits_alone(history):
    """What `History.likelihood_terms` would be without ages and counts."""
    n_known = np.empty(0)  # sums over the crawls of a page are then 0
    n_known.flags.writeable = False  # else the kernel is compiled for both types
    return *history.ragged(), n_known


def _moments(interval, changed, offsets, n_known, rate):
    """Write the roots of the moments, as a kernel does."""
    crawls = interval, changed, offsets
    kernels.estimating_equation_roots(*crawls, n_known, kernels.MOMENTS, rate)
    if (np.isnan(rate) & (np.diff(offsets) > 0)).any():
        kernels.bisected_moments(*crawls, rate)


def _solved(roots, interval, changed, offsets, *told):
    """Roots of an estimating equation by a kernel, one for each page, flat."""
    rate = np.empty(offsets.size - 1)
    with threads_for(interval.size):
        roots(interval, changed, offsets, *told, rate)
    failed = np.isnan(rate) & (np.diff(offsets) > 0)
    if failed.any():
        raise ConvergenceError(
            f"{failed.sum()} of {rate.size} pages did not converge", rate
        )
    return rate


def _warn_degenerate(rate, told=False):
    """Warn of rates of 0 and inf, at the line that called the estimator."""
    always = "changed at every crawl" + told * ", or only at ages of 0"
    n_never, n_always = np.count_nonzero(rate == 0), np.count_nonzero(np.isinf(rate))
    if n_never or n_always:
        warnings.warn(
            f"of {rate.size} pages {n_never} never changed (estimate 0) "
            f"and {n_always} {always} (estimate inf)",
            DegenerateHistoryWarning,
            stacklevel=3,
        )


def _substitute(rate, history):
    """Replace rates of 0 and inf by the substitutes of `mle`, in place."""
    never, always = rate == 0, np.isinf(rate)
    if never.any() or always.any():
        interval, _changed, offsets = history.ragged()
        rate[never] = 1 / np.ravel(history.total(history.interval))[never]
        # reduceat needs a value at the very end, where an empty page may start
        shortest = np.minimum.reduceat(np.append(interval, np.inf), offsets[:-1])
        rate[always] = 1 / shortest[always]


def _finish(rate, history, bounds):
    """Clip rates to the bounds and give them the shape of the history."""
    if bounds is not None:
        rate = np.clip(
            rate, *checks.low_high("bounds", bounds, checks.non_negative_or_inf)
        )
    return history.by_page(rate)


def mle_path(history: History) -> Array:
    """Maximum likelihood estimate after every crawl.

    The same as `mle` of each prefix of the history, in a time linear in the
    number of crawls.

    Parameters
    ----------
    history : History
        In either form.

    Returns
    -------
    ndarray, shape of ``history.changed``
        Change rates, 1/time; 0 or inf as long as the crawls found no change
        or nothing but changes, without a warning.

    Raises
    ------
    ConvergenceError
        The root of a prefix was not found.

    Examples
    --------
    >>> from recrawl.science.estimators import mle_path
    >>> from recrawl.science.processes import History
    >>> mle_path(History([1.0, 2.0, 1.0], [True, False, True])).round(4)
    array([   inf, 0.4055, 0.6931])
    """
    out = np.empty(history.interval.size)
    with threads_for(out.size):
        kernels.mle_paths(*history.likelihood_terms(), out)
    if np.isnan(out).any():
        raise ConvergenceError(f"{np.isnan(out).sum()} prefixes did not converge", out)
    return out.reshape(history.changed.shape)
