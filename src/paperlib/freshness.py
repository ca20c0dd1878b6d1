"""How fresh a crawl rate keeps the copy of a Poisson page: the long-run share of time in which copy and page agree."""

import numpy as np
from scipy import special

from paperlib import checks
from paperlib._kernels import crawl_value as values
from paperlib._kernels import freshness as kernels


def _rates(change_rate, crawl_rate):
    change_rate, crawl_rate = (
        checks.non_negative("change_rate", change_rate),
        checks.non_negative("crawl_rate", crawl_rate),
    )
    return checks.broadcast(change_rate=change_rate, crawl_rate=crawl_rate)


def poisson(change_rate, crawl_rate):
    """Freshness under Poisson crawls, crawl_rate / (crawl_rate + change_rate). Eq. (5) of [aaai20], eq. (10) of [valuetools20].

    Arrays broadcast; rates in 1/time, non-negative. A page that never changes is fresh even when it is not crawled again.
    """
    return kernels.poisson_freshness(*_rates(change_rate, crawl_rate))


def interval(change_rate, crawl_rate):
    """Freshness under crawls at equal intervals, (crawl_rate / change_rate) (1 - exp(-change_rate / crawl_rate)). Eq. (5) of [www25].

    Arrays broadcast; rates in 1/time, non-negative. Never below `poisson` at the same rate. A page that never changes is fresh.
    """
    return kernels.interval_freshness(*_rates(change_rate, crawl_rate))


def poisson_time(change_rate, crawl_rate, duration, *, initial=0.0):
    """Expected fresh time within `duration` under Poisson crawls that begin now: the integral of eq. (4) of [aaai20].

    Parameters
    ----------
    change_rate, crawl_rate : float or array, 1/time, non-negative; they broadcast, also with the others
    duration : float or array, time, non-negative
    initial : float or array in [0, 1]
        Probability that the copy is fresh now.

    Returns
    -------
    array, time
        `poisson` x duration, and a transient that dies out as exp(-(change_rate + crawl_rate) t).
    """
    change_rate, crawl_rate = _rates(change_rate, crawl_rate)
    duration, initial = _transient(duration, initial)
    stationary = poisson(change_rate, crawl_rate)
    return stationary * duration + (initial - stationary) * _decayed(
        change_rate + crawl_rate, duration
    )


def interval_time(change_rate, crawl_rate, duration, *, initial=0.0, phase=None):
    """Expected fresh time within `duration` under crawls at equal intervals that begin now.

    Arguments and result as in `poisson_time`. The first crawl comes after `phase` intervals, in (0, 1]; by default that is uniform.
    Derived; after the first crawl the mean over an interval is `interval`.
    """
    change_rate, crawl_rate = _rates(change_rate, crawl_rate)
    duration, initial = _transient(duration, initial)
    with np.errstate(divide="ignore", over="ignore"):
        gap = 1.0 / crawl_rate
    stationary = interval(change_rate, crawl_rate)
    if phase is not None:
        phase = checks.positive("phase", phase)
        if (phase > 1).any():
            raise ValueError(f"phase must be at most 1, got {phase.max()}")
        first = np.minimum(duration, phase * gap)
        rest = duration - first
        whole = np.where(
            crawl_rate > 0,
            np.floor(rest * crawl_rate) / np.maximum(crawl_rate, 1e-300),
            0.0,
        )
        return (
            initial * _decayed(change_rate, first)
            + whole * stationary
            + _decayed(change_rate, rest - whole)
        )
    first = np.minimum(duration, gap)
    x = change_rate * first
    with np.errstate(divide="ignore", invalid="ignore"):  # (x - 1 + exp(-x)) / x^2
        lost = np.where(x < 1e-3, 0.5 - x / 6 + x**2 / 24, (x + np.expm1(-x)) / x**2)
    kept = _decayed(change_rate, first)
    return (
        initial * (kept - crawl_rate * first * (kept - first * lost))
        + crawl_rate * first**2 * lost
        + (duration - first) * stationary
    )


def _transient(duration, initial):
    duration, initial = (
        checks.non_negative("duration", duration),
        checks.non_negative("initial", initial),
    )
    if (initial > 1).any():
        raise ValueError(f"initial must be from 0 to 1, got {initial.max()}")
    return duration, initial


def _decayed(rate, duration):
    """The integral of exp(-rate t) over `duration`."""
    return duration * special.exprel(-rate * duration)


def crawled(history, change_rate, *, horizon=None):
    """Expected freshness of pages whose crawls are known, fresh at time 0: the mean of exp(-change_rate x time since the last crawl).

    Parameters
    ----------
    history : History, either form; its bits do not count
    change_rate : array of ``history.shape``, 1/time, non-negative
    horizon : float, time, optional
        The mean is over (0, horizon]; by default up to the last crawl of each page.

    Returns
    -------
    array of ``history.shape``, in [0, 1]; NaN for a page without crawls that has no horizon
    """
    change_rate = checks.non_negative("change_rate", change_rate)
    rate, length = history.per_crawl(change_rate), history.interval
    total = history.total(length)
    if horizon is None:
        with np.errstate(invalid="ignore"):
            return history.total(_decayed(rate, length)) / total
    horizon = checks.scalar(checks.positive, "horizon", horizon)
    fresh = history.total(
        _decayed(rate, np.clip(horizon - history.time + length, 0.0, length))
    )
    return (fresh + _decayed(change_rate, np.maximum(horizon - total, 0.0))) / horizon


def harmonic_penalty(change_rate, crawl_rate):
    """Expected harmonic penalty under Poisson crawls, log(1 + change_rate / crawl_rate). Kolobov et al. 2019 (LambdaCrawl).

    The mean of 1 + 1/2 + ... + 1/N over the number N of changes since the last crawl: a cost, without an upper bound.
    Arrays broadcast; rates in 1/time, non-negative. Infinite for a page that changes and is never crawled, 0 for one that never changes.
    """
    return kernels.harmonic_penalty(*_rates(change_rate, crawl_rate))


def mean(fresh, importance):
    """Freshness over pages: the mean of `fresh` along the last axis weighted by `importance`, the share of requests served fresh.

    Raises ValueError when all importances are zero.
    """
    fresh, importance = checks.broadcast(
        fresh=fresh, importance=checks.non_negative("importance", importance)
    )
    total = importance.sum(axis=-1)
    if not (total > 0).all():
        raise ValueError(
            "importance must be positive for at least one page, got only zeros"
        )
    return np.vecdot(fresh, importance) / total


def crawl_value(elapsed, n_signals, pages, *, terms=None):
    """What a crawl of a page is worth in a state: importance (w - exp(-alpha iota) psi) at iota = elapsed + beta n_signals.

    V of Lemma 4 of [www25], with the sums to floor(iota / beta); rises to importance / change_rate. Without signals it is
    importance / change_rate (1 - (1 + x) exp(-x)), x = change_rate elapsed. Accurate to a relative 1e-11, and never decreasing in
    elapsed and n_signals, in floating point too.

    Parameters
    ----------
    elapsed : array, time, non-negative; inf gives the limit
        Since the last crawl.
    n_signals : array, non-negative
        Signals since then.
    pages : SignalledPages
        Shape (n_pages,); elapsed and n_signals broadcast against it, pages on the last axis.
    terms : int, optional
        APPROX-j of appendix A.1: the first j terms of the sums only. Where signals say nothing (recall 0) the exact value is the one
        without signals, and APPROX-j is not, but the limit of APPROX-j for recall -> 0.

    Returns
    -------
    array, importance x time

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not broadcast.
    """
    elapsed = _times("elapsed", elapsed)
    n_signals = checks.non_negative("n_signals", n_signals)
    terms = values.EXACT if terms is None else checks.count("terms", terms)
    elapsed, n_signals, change_rate = checks.broadcast(
        elapsed=elapsed, n_signals=n_signals, pages=pages.change_rate
    )
    with np.errstate(
        all="ignore"
    ):  # the compiler divides first and then looks whether it should
        return values.crawl_values(
            elapsed,
            n_signals,
            change_rate,
            pages.importance,
            pages.recall,
            pages.false_rate,
            terms,
        )


def cycle_length(threshold, pages):
    """Expected time between two crawls of pages that are crawled at a threshold of effective elapsed time, psi of Lemma 4 of [www25].

    threshold : array, time, non-negative; broadcasts against the pages; inf for a page that is never crawled
        The result is an array, time; its inverse is the crawl rate.
    """
    threshold, change_rate = checks.broadcast(
        threshold=_times("threshold", threshold), pages=pages.change_rate
    )
    with np.errstate(
        all="ignore"
    ):  # the compiler divides first and then looks whether it should
        return values.psis(threshold, change_rate, pages.recall, pages.false_rate)


def fresh_time(threshold, pages):
    """Expected time that the copy is fresh between two crawls, w of Lemma 4 of [www25]; arguments as in `cycle_length`.

    ``fresh_time / cycle_length`` is the freshness. Never crawled, a page is fresh until its first change: 1 / change_rate.
    """
    threshold, change_rate = checks.broadcast(
        threshold=_times("threshold", threshold), pages=pages.change_rate
    )
    with np.errstate(
        all="ignore"
    ):  # the compiler divides first and then looks whether it should
        return values.ws(threshold, change_rate, pages.recall, pages.false_rate)


def _times(name, value):
    """Non-negative, and possibly inf."""
    array = np.asarray(value, dtype=float)
    checks.non_negative(name, np.where(array == np.inf, 0.0, array))
    return array
