"""The change rate from a whole history."""

import warnings

import numpy as np

from paperlib._kernels import batch as kernels
from paperlib._kernels import threads_for
from paperlib.errors import ConvergenceError, DegenerateHistoryWarning


def naive(history):
    """Changes seen per unit of time, n_changed / sum of intervals: biased low, it counts many changes as one.

    Section 3.4 of [peva22]. Takes either form of `History`; returns an array of ``history.shape``, 1/time (NaN for a page without crawls).
    """
    with np.errstate(invalid="ignore"):
        return history.total(history.changed) / history.total(history.interval)


def bias_reduced(history):
    """-log((n_unchanged + 1/2) / (n + 1/2)) / interval, for crawls at one fixed interval per page.

    Implements eq. (1) of [grimes08] as corrected in the errata; finite also when every crawl found a change.

    Parameters
    ----------
    history : History, either form

    Returns
    -------
    array of ``history.shape``, 1/time

    Raises
    ------
    ValueError
        A page whose intervals differ by more than a relative 1e-9.
    """
    n = history.n_crawls
    with np.errstate(invalid="ignore", divide="ignore"):
        interval = history.total(history.interval) / n
    per_crawl = (
        np.repeat(interval, n)
        if history.offsets is not None
        else np.asarray(interval)[..., np.newaxis]
    )
    uneven = np.abs(history.interval - per_crawl) > 1e-9 * per_crawl
    if uneven.any():
        first = tuple(np.argwhere(uneven)[0].tolist())
        raise ValueError(
            f"interval must be the same for all crawls of a page, got {history.interval[first].item()!r} at index {first}; mle takes any"
        )
    return -np.log((n - history.total(history.changed) + 0.5) / (n + 0.5)) / interval


def mle(history, *, edges="limits", bounds=None):
    """Maximum likelihood: the root of sum_changed w / (exp(rate w) - 1) = sum_unchanged w.

    Implements eq. (9) of [valuetools20], eq. (16) of [peva22], eq. (2) of [grimes08]; any intervals w.

    Parameters
    ----------
    history : History, either form
    edges : "limits" or "substitute"
        What a page gets where there is no root: without a change the limit 0, with nothing but changes the limit inf; or what Cho and
        Garcia-Molina put in their place (section 3.3 of [grimes08]), one change in the whole time, one in the shortest interval.
    bounds : (low, high), optional
        The estimate is clipped to them, 1/time.

    Returns
    -------
    array of ``history.shape``, 1/time; NaN for a page without crawls.

    Warns
    -----
    DegenerateHistoryWarning
        Of pages without a root, if they get the limits.

    Raises
    ------
    ConvergenceError
    """
    if edges not in ("limits", "substitute"):
        raise ValueError(f"edges must be 'limits' or 'substitute', got {edges!r}")
    return _estimating_equation(
        kernels.MLE, history, bounds, substitute=edges == "substitute"
    )


def moment_matching(history, *, bounds=None):
    """The rate at which the expected number of unchanged crawls is the number seen, sum exp(-rate w) = n_unchanged.

    Implements eq. (7) of [aaai20] (the equation is printed in section 3.4 of [peva22]); clipped to `bounds` as there.
    Parameters, result, warning and error as in `mle`, with which it agrees when all intervals are equal.
    """
    return _estimating_equation(kernels.MOMENTS, history, bounds)


def _estimating_equation(kind, history, bounds, *, substitute=False):
    interval, changed, offsets = history.ragged()
    rate = np.empty(offsets.size - 1)
    with threads_for(interval.size):
        kernels.estimating_equation_roots(kind, interval, changed, offsets, rate)
    if (rate < 0).any():
        raise ConvergenceError(
            f"{(rate < 0).sum()} of {rate.size} pages did not converge",
            np.where(rate < 0, np.nan, rate),
        )
    never, always = rate == 0, np.isinf(rate)
    if not substitute:
        _warn_degenerate(never.sum(), always.sum(), rate.size)
    elif never.any() or always.any():
        rate[never] = 1 / np.ravel(history.total(history.interval))[never]
        rate[always] = (
            1 / np.minimum.reduceat(np.append(interval, np.inf), offsets[:-1])[always]
        )
    if bounds is not None:
        low, high = bounds
        if not 0 <= low < high:
            raise ValueError(f"bounds must satisfy 0 <= low < high, got {bounds!r}")
        rate = np.clip(rate, low, high)
    return rate.reshape(history.shape)[()]


def _warn_degenerate(n_never, n_always, n):
    if n_never or n_always:
        warnings.warn(
            f"of {n} pages {n_never} never changed (estimate 0) and {n_always} changed at every crawl (estimate inf)",
            DegenerateHistoryWarning,
            stacklevel=4,
        )


def mle_path(history):
    """The MLE after every crawl, array of the shape of ``history.changed``; 0 or inf while degenerate, without a warning."""
    interval, changed, offsets = history.ragged()
    out = np.empty(interval.size)
    with threads_for(interval.size):
        kernels.mle_paths(interval, changed, offsets, out)
    if np.isnan(out).any():
        raise ConvergenceError(f"{np.isnan(out).sum()} prefixes did not converge", out)
    return out.reshape(history.changed.shape)
