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
from recrawl.types import Values

__all__ = [
    "mle",
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
