r"""Freshness of the copy of one page: shares of time, crawl value, Lemma 4.

Changes are a Poisson process of rate Delta. A copy is fresh from a crawl to the
next change. At the time tau after the crawl it is therefore fresh with probability
:math:`e^{-\Delta\tau}`. `poisson` and `interval` are the shares of time in which
the copy is fresh, under crawls at Poisson times and at equal intervals.
`poisson_time` and `interval_time` are the expected fresh times within a duration.
`mean_crawl_interval`, `fresh_time` and `crawl_value` are psi, w and V of Lemma 4 of
Busa-Fekete et al. (2025), for a page that is crawled at a threshold of time and
signals.

One signal lowers the probability that the copy is fresh by the same factor as a
time beta without signals. With n signals in the time tau since the last crawl, the
*effective elapsed time* is :math:`\iota = \tau + \beta n`.

All arguments broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import exprel, hyp1f1

from . import checks
from .lemma_4 import lemma_4, lemma_4_rates
from .signals import SignalledPages


@np.errstate(invalid="ignore")
def poisson(change_rate: ArrayLike, crawl_rate: ArrayLike) -> NDArray:
    r"""Share of time in which a copy is fresh, under crawls at Poisson times.

    Eq. (5) of Upadhyay et al. (2020), eq. (10) of Avrachenkov, Patil, Thoppe
    (2020): :math:`F = p / (p + \Delta)`.

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time
        A page that never changes is fresh even if it is not crawled.

    Examples
    --------
    >>> poisson([0.0, 1.0, 3.0], 1.0)
    array([1.  , 0.5 , 0.25])
    """
    change_rate, crawl_rate = checks.broadcast(
        change_rate=change_rate, crawl_rate=crawl_rate
    )
    return np.where(change_rate > 0, crawl_rate / (crawl_rate + change_rate), 1.0)[()]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def interval(change_rate: ArrayLike, crawl_rate: ArrayLike) -> NDArray:
    r"""Share of time in which a copy is fresh, under crawls at equal intervals.

    Eq. (5) of Busa-Fekete et al. (2025), and appendix C of Upadhyay et al. (2020) at
    p = R / m: :math:`F = \frac{p}{\Delta} (1 - e^{-\Delta / p})`. It is never below
    `poisson`.

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time
        A page that never changes is fresh even if it is not crawled.
    """
    change_rate, crawl_rate = checks.broadcast(
        change_rate=change_rate, crawl_rate=crawl_rate
    )
    return np.where(change_rate > 0, exprel(-change_rate / crawl_rate), 1.0)[()]


def _lasting(rate, duration):
    """The integral of exp(-rate t) over the duration."""
    return duration * exprel(-duration * rate)


def _time_and_state(duration, initial):
    """Check the duration, and the probability that the copy is fresh at its start."""
    return (
        checks.numbers("duration", duration),
        checks.numbers("initial", initial, 0.0, 1.0),
    )


def poisson_time(
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    duration: ArrayLike,
    *,
    initial: ArrayLike = 0.0,
) -> NDArray:
    r"""Expected fresh time within a duration from now, at Poisson crawl times.

    The integral of eq. (4) of Upadhyay et al. (2020) over the duration T, with the
    freshness F of `poisson` and the probability s that the copy is fresh now:

    .. math:: F\,T + (s - F) \int_0^T e^{-(p + \Delta) t}\,dt

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time
    duration : array_like, time
    initial : array_like, in [0, 1], default 0
        Probability that the copy is fresh now.

    Returns
    -------
    ndarray, time
    """
    change_rate, crawl_rate = checks.broadcast(
        change_rate=change_rate, crawl_rate=crawl_rate
    )
    duration, initial = _time_and_state(duration, initial)
    fresh = poisson(change_rate, crawl_rate)
    lasting = _lasting(change_rate + crawl_rate, duration)
    return fresh * duration + (initial - fresh) * lasting


@np.errstate(divide="ignore", invalid="ignore")
def interval_time(
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    duration: ArrayLike,
    *,
    initial: ArrayLike = 0.0,
    phase: ArrayLike | None = None,
) -> NDArray:
    r"""Expected fresh time within a duration from now, at equal crawl intervals.

    Appendix C of Upadhyay et al. (2020) (derived), for crawls at :math:`t_0 + k / p`,
    k = 0, 1, ...:

    .. math:: \int_0^{t_0} s\, e^{-\Delta t}\, dt
        + \int_{t_0}^{T} e^{-\Delta\,((t - t_0) \bmod 1/p)}\, dt .

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time
    duration : array_like, time
        T.
    initial : array_like, in [0, 1], default 0
        s, the probability that the copy is fresh now.
    phase : array_like, in (0, 1], optional
        :math:`p\,t_0`, time until the first crawl as a share of the interval. By
        default the result is the mean over all phases.

    Returns
    -------
    ndarray, time
    """
    change_rate, crawl_rate = checks.broadcast(
        change_rate=change_rate, crawl_rate=crawl_rate
    )
    duration, initial = _time_and_state(duration, initial)
    fresh = interval(change_rate, crawl_rate)
    gap = 1.0 / crawl_rate
    if phase is None:
        first = np.minimum(duration, gap)
        before = _before_first_crawl(change_rate, first, first / gap, initial)
        return before + (duration - first) * fresh
    first = np.minimum(duration, checks.numbers("phase", phase, 0.0, 1.0) * gap)
    before = initial * _lasting(change_rate, first)
    rest = duration - first
    part = np.fmod(rest, gap)
    return before + (rest - part) * fresh + _lasting(change_rate, part)


def _before_first_crawl(change_rate, first, share, initial):
    r"""Fresh time up to `first`; a share of the pages has been crawled by then.

    The first crawl comes at a uniform time. By the time t the page has therefore been
    crawled with probability share t / first. The new copies are fresh for

    .. math:: \frac{share}{first} \int_0^{first} \int_0^t e^{-\Delta (t - u)}\,du\,dt
              = share\;first\;\frac{x - 1 + e^{-x}}{x^2}, \qquad x = \Delta\,first .

    The fraction is 1F1(1; 3; -x) / 2, which avoids cancellation.
    """
    lasting = _lasting(change_rate, first)
    crawled = share * first * hyp1f1(1, 3, -first * change_rate) / 2
    # the integral of (1 - share t / first) exp(-change_rate t)
    uncrawled = lasting - share * lasting + crawled
    return initial * uncrawled + crawled


def mean(fresh: ArrayLike, importance: ArrayLike) -> NDArray:
    r"""Share of requests that are served fresh, :math:`\sum \mu_i F_i / \sum \mu_i`.

    F of eq. (10) of Avrachenkov, Patil, Thoppe (2020), divided by the sum of weights;
    called accuracy in section 6.2 of Busa-Fekete et al. (2025).

    Parameters
    ----------
    fresh : array_like, shape (..., n_pages)
        Freshness of each page.
    importance : array_like, shape (n_pages,) or (..., n_pages)
        Weights, at least one of them positive.

    Returns
    -------
    float or ndarray, shape (...)
    """
    fresh = np.asarray(fresh, dtype=float)
    importance = checks.numbers("importance", importance)
    return np.vecdot(fresh, importance) / checks.total("importance", importance)


def probability(
    elapsed: ArrayLike, n_signals: ArrayLike, pages: SignalledPages
) -> NDArray:
    r"""Probability that copies are fresh, given time and signals since the last crawl.

    Eq. (1) of Busa-Fekete et al. (2025): :math:`e^{-\alpha\tau} (\nu / \gamma)^n
    = e^{-\alpha\tau^{EFF}}`, with the effective elapsed time :math:`\tau^{EFF} =
    \tau + \beta n` and beta of `SignalledPages`.

    Parameters
    ----------
    elapsed : array_like, shape (..., n_pages), time
        tau.
    n_signals : array_like, shape (..., n_pages)
        n.
    pages : SignalledPages
    """
    elapsed = checks.numbers("elapsed", elapsed)
    n_signals = checks.numbers("n_signals", n_signals)
    return np.exp(-pages.alpha * elapsed) * (1.0 - pages.precision) ** n_signals


def crawl_value(
    elapsed: ArrayLike,
    n_signals: ArrayLike,
    pages: SignalledPages,
    *,
    terms: int | None = None,
) -> NDArray:
    r"""Crawl value of pages: the gain in freshness from a crawl now.

    V of Lemma 4 of Busa-Fekete et al. (2025), at :math:`\iota = \tau + \beta n`,

    .. math:: V(\iota) = \mu\,\bigl(w(\iota) - e^{-\alpha\iota}\,\psi(\iota)\bigr),

    where w is `fresh_time` and psi is `mean_crawl_interval`. V rises to
    :math:`\mu / \Delta`, with slope :math:`V' = \mu\alpha\,e^{-\alpha\iota} \psi`
    (Lemma 2). Section 5.1 has two special cases. Without signals, V is
    :math:`\mu / \Delta\,(1 - (1 + \Delta\tau) e^{-\Delta\tau})`. Without false signals,
    V is :math:`\mu / \Delta` after a signal, and before the first signal it is
    :math:`\mu\,\bigl((1 - e^{-\Delta\tau}) / \Delta - e^{-\alpha\tau} (1 -
    e^{-\gamma\tau}) / \gamma\bigr)`.

    Parameters
    ----------
    elapsed : array_like, shape (..., n_pages), time
        tau; inf gives the limit. At recall 1 (alpha = 0) only signals count: V is 0
        at every finite tau before the first signal. After n signals V is the limit
        of the sums (docs/formulas.md).
    n_signals : array_like, shape (..., n_pages)
        n.
    pages : SignalledPages
    terms : int, optional
        j of APPROX-j, the first j terms of the sums (appendix A.1), with the limit
        :math:`(\mu / \Delta) (1 - (\nu / (\Delta + \nu))^j)`. By default all terms.

    Returns
    -------
    ndarray, importance x time

    Examples
    --------
    >>> pages = SignalledPages([0.7], 1.0, recall=0.5, false_rate=0.3)
    >>> crawl_value([[1.0], [3.0], [np.inf]], 0, pages).ravel().round(3)
    array([0.114, 0.494, 1.429])
    """
    terms = np.inf if terms is None else float(checks.count("terms", terms))
    value, _, _ = _lemma_4("elapsed", elapsed, n_signals, pages, terms)
    return pages.importance * value


def mean_crawl_interval(threshold: ArrayLike, pages: SignalledPages) -> NDArray:
    r"""Mean time between two crawls of pages that are crawled at a threshold.

    psi of Lemma 4 of Busa-Fekete et al. (2025): a page is crawled whenever its
    effective elapsed time reaches iota. 1 / psi is the crawl rate f of Theorem 1.
    :math:`R^i(x)` is the probability that a Poisson number of mean x exceeds i.

    .. math:: \psi(\iota) = \frac{1}{\gamma} \sum_{i=0}^{\lfloor\iota/\beta\rfloor}
              R^i\bigl(\gamma (\iota - i \beta)\bigr)

    Parameters
    ----------
    threshold : array_like, shape (..., n_pages), time
        iota; inf for a page that is never crawled.
    pages : SignalledPages

    Returns
    -------
    ndarray, time
    """
    return _lemma_4("threshold", threshold, 0, pages)[1]


def fresh_time(threshold: ArrayLike, pages: SignalledPages) -> NDArray:
    r"""Mean fresh time between two crawls of pages that are crawled at a threshold.

    w of Lemma 4 of Busa-Fekete et al. (2025). With psi of `mean_crawl_interval`, the
    freshness is w / psi, and mu w / psi is o in the proof of Theorem 1.

    .. math:: w(\iota) = \sum_{i=0}^{\lfloor\iota/\beta\rfloor}
              \frac{\nu^i}{(\Delta + \nu)^{i+1}}
              R^i\bigl((\alpha + \gamma) (\iota - i \beta)\bigr)

    Parameters
    ----------
    threshold : array_like, shape (..., n_pages), time
        iota; inf for a page that is never crawled.
    pages : SignalledPages

    Returns
    -------
    ndarray, time
    """
    return _lemma_4("threshold", threshold, 0, pages)[2]


@np.errstate(all="ignore")  # infinite times, pages that never change
def _lemma_4(name, time, n_signals, pages, terms=np.inf):
    """V / mu, psi and w of pages; an error names the time `name`."""
    time = checks.floats(name, time)
    checks.require(name, time, "non-negative", time >= 0)
    n_signals = checks.numbers("n_signals", n_signals)
    alpha, gamma, beta = lemma_4_rates(pages, terms)
    every = np.vectorize(lemma_4, otypes="ddd")
    iota = time + beta * n_signals
    return every(iota, pages.change_rate, pages.false_rate, alpha, gamma, beta, terms)
