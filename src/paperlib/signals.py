"""Pages that send noisy signals of their changes, and the quality of the signals.

Section 3 of Busa-Fekete et al. (2025): a change of a page is signalled with a
probability, the recall; signals without a change arrive at a rate of their own.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks
from .errors import DegenerateSignalsWarning
from .processes import History, simulate_history

# The search ends with a step that promises a gain of this share of the log-likelihood,
# some 1e-8 standard errors. It halves a step that lowers it by more than rounding.
LAST_GAIN, ROUNDING, MOST_STEPS, HALVINGS = 1e-20, 1e-12, 200, 40


@dataclass(frozen=True, eq=False)
class SignalledPages:
    r"""Parameters of pages, each a number or one number a page.

    Section 3 of Busa-Fekete et al. (2025): changes without a signal have the
    rate alpha, signals the rate gamma, and one signal is as much evidence of a
    change as the time beta.

    .. math:: \alpha = (1 - \lambda)\,\Delta, \qquad
        \gamma = \lambda\Delta + \nu, \qquad
        \beta = \frac{1}{\alpha} \log\frac{\gamma}{\nu}

    Parameters
    ----------
    change_rate : array_like, 1/time
        Delta. All four are kept as read-only arrays of shape (n_pages,).
    importance : array_like
        mu, the rate of requests or any other weight.
    recall : array_like, in [0, 1], default 0
        lambda, the probability that a change is signalled.
    false_rate : array_like, 1/time, default 0
        nu, the rate of signals without a change.

    Examples
    --------
    >>> pages = SignalledPages(0.7, 1.0, recall=[0.5, 0.0], false_rate=0.3)
    >>> pages.gamma, pages.precision.round(3)
    (array([0.65, 0.3 ]), array([0.538, 0.   ]))
    """

    change_rate: NDArray
    importance: NDArray
    recall: NDArray = 0.0  # type: ignore[assignment]
    false_rate: NDArray = 0.0  # type: ignore[assignment]

    def __post_init__(self):
        given = {
            name: checks.numbers(name, value, high=1.0 if name == "recall" else np.inf)
            for name, value in vars(self).items()
        }
        for name, array in zip(given, checks.broadcast(**given), strict=True):
            array = np.array(array, ndmin=1)
            if array.ndim > 1 or not array.size:
                raise ValueError(
                    "pages must have one axis and at least one page, "
                    f"got shape {array.shape}"
                )
            array.flags.writeable = False
            vars(self)[name] = array  # because the dataclass is frozen

    @classmethod
    def from_precision(
        cls,
        change_rate: ArrayLike,
        importance: ArrayLike,
        *,
        precision: ArrayLike,
        recall: ArrayLike,
    ) -> SignalledPages:
        r"""Pages of given precision, which sets the rate of false signals.

        .. math:: \nu = \lambda\Delta\,(1 - precision) / precision

        Parameters
        ----------
        change_rate, importance, recall : array_like
            As for the class.
        precision : array_like, in [0, 1]
            Probability that a signal reports a change; positive where recall is.

        Returns
        -------
        SignalledPages
        """
        precision = checks.numbers("precision", precision, 0.0, 1.0)
        good = (precision > 0) | (np.asarray(recall) == 0)
        checks.require("precision", precision, "positive where recall is", good)
        odds = (1.0 - precision) / np.where(precision > 0, precision, 1.0)
        pages = cls(change_rate, importance, recall)
        false_rate = pages.recall * pages.change_rate * odds
        return cls(change_rate, importance, recall, false_rate)

    @cached_property
    def alpha(self) -> NDArray:
        """Rate of changes without a signal, shape (n_pages,), 1/time."""
        return (1.0 - self.recall) * self.change_rate

    @cached_property
    def gamma(self) -> NDArray:
        """Rate of signals, true and false, shape (n_pages,), 1/time."""
        return self.recall * self.change_rate + self.false_rate

    @cached_property
    def precision(self) -> NDArray:
        """Probability that a signal reports a change; NaN without signals."""
        with np.errstate(invalid="ignore"):
            return self.recall * self.change_rate / self.gamma

    @cached_property
    def beta(self) -> NDArray:
        """Time that is as much evidence as one signal, shape (n_pages,).

        inf where one signal is more evidence than any time: a sure change, or
        recall 1. 0 where signals are no evidence, and without signals.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            hazard = np.log1p(self.recall * self.change_rate / self.false_rate)
            return np.where(hazard > 0, hazard / self.alpha, 0.0)


def corrupt(
    pages: SignalledPages,
    corruption: ArrayLike,
    *,
    least_precision: float = 0.01,
    rng: Any = None,
) -> list[SignalledPages]:
    r"""Corrupt what is believed of the precision and recall of signals.

    Section 6.7 of Busa-Fekete et al. (2025), with uniform noise in [0, 1] for each
    page:

    .. math:: precision' = (1 - p)\,precision + p\,\xi, \qquad
        recall' = (1 - p)\,recall + p\,\xi'

    Corrected: the paper prints the second formula without the factor p of the noise.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are.
    corruption : array_like, shape (n,), in [0, 1]
        Shares p of noise.
    least_precision : float, default 0.01
        Lower values are raised to it, because the believed rate of false signals
        grows without bound as the precision goes to 0. Our choice.
    rng : None, int or Generator, optional
        Draws the noise, which is the same for all shares.

    Returns
    -------
    list of SignalledPages
        The pages as they are believed to be, for each share. Pages without
        signals count as of precision 0.
    """
    corruption = np.atleast_1d(checks.numbers("corruption", corruption, 0.0, 1.0))
    least = checks.number("least_precision", least_precision, 0.0, 1.0)
    noise = np.random.default_rng(rng).random((2, pages.recall.size))
    precision = np.nan_to_num(pages.precision)
    return [
        SignalledPages.from_precision(
            pages.change_rate,
            pages.importance,
            precision=np.maximum((1 - p) * precision + p * noise[0], least),
            recall=(1 - p) * pages.recall + p * noise[1],
        )
        for p in corruption
    ]


def simulate_signalled_history(
    pages: SignalledPages, *, rng: Any = None, **crawls: Any
) -> tuple[History, NDArray]:
    r"""Simulate crawls of pages, and the signals between them.

    Parameters
    ----------
    pages : SignalledPages
    rng : None, int or Generator, optional
        Source of random numbers.
    **crawls
        crawl_rate or interval, and n_crawls, as in
        `paperlib.processes.simulate_history`.

    Returns
    -------
    history : History
        Of shape (n_pages, n_crawls).
    n_signals : int ndarray, shape (n_pages, n_crawls)
        Signals between each crawl and the one before.

    Examples
    --------
    >>> pages = SignalledPages(0.5, 1.0, recall=0.8, false_rate=0.1)
    >>> history, n_signals = simulate_signalled_history(
    ...     pages, interval=1.0, n_crawls=6, rng=1
    ... )
    >>> history.changed.astype(int), n_signals
    (array([[1, 0, 0, 1, 0, 1]]), array([[1, 0, 0, 1, 0, 1]]))
    """
    rng = np.random.default_rng(rng)
    silent = simulate_history(pages.alpha, rng=rng, **crawls)
    rates = pages.recall * pages.change_rate, pages.false_rate
    true, false = (rng.poisson(rate[:, np.newaxis] * silent.interval) for rate in rates)
    return History(silent.interval, silent.changed | (true > 0)), true + false


def _counts(history, n_signals):
    """The numbers of signals as floats, checked."""
    n_signals = checks.numbers("n_signals", n_signals)
    if n_signals.shape != history.interval.shape:
        raise ValueError(
            f"n_signals must have the shape of the history, {history.interval.shape}, "
            f"got {n_signals.shape}"
        )
    checks.require("n_signals", n_signals, "whole numbers", n_signals % 1 == 0)
    return n_signals


@np.errstate(invalid="ignore")
def naive_precision_recall(
    history: History, n_signals: ArrayLike
) -> tuple[NDArray, NDArray]:
    r"""Estimate precision and recall by counting signals; too high.

    As if a crawl that found a change had found exactly one (appendix E of
    Busa-Fekete et al. 2025): precision is the share of signals in intervals with a
    change, recall the share of these intervals with a signal. With equal intervals
    w they tend to (derived)

    .. math:: 1 - (1 - precision)\,e^{-\Delta w}, \qquad
        1 - e^{-\gamma w} \frac{1 - e^{-\alpha w}}{1 - e^{-\Delta w}}.

    Parameters
    ----------
    history : History
    n_signals : array_like of int, shape of ``history.interval``
        Signals between each crawl and the one before.

    Returns
    -------
    precision, recall : ndarray, shape ``history.shape``
        NaN where there is no signal, or no change.
    """
    n_signals, changed = _counts(history, n_signals), history.changed
    precision = history.total(n_signals * changed) / history.total(n_signals)
    recall = history.total((n_signals > 0) & changed) / history.total(changed)
    return precision, recall


@dataclass(frozen=True, eq=False)
class SignalFit:
    """Estimates of `fit` and their standard errors, one for each page.

    Parameters
    ----------
    change_rate, false_rate : ndarray, shape ``history.shape``, 1/time
        Rates of all changes, and of signals without a change.
    precision, recall : ndarray, shape ``history.shape``
        Quality of the signals.
    change_rate_stderr, precision_stderr, recall_stderr, false_rate_stderr : ndarray
        Standard errors; NaN where an estimate has none.
    """

    change_rate: NDArray
    precision: NDArray
    recall: NDArray
    false_rate: NDArray
    change_rate_stderr: NDArray
    precision_stderr: NDArray
    recall_stderr: NDArray
    false_rate_stderr: NDArray


@np.errstate(all="ignore")  # pages without changes or signals
def fit(history: History, n_signals: ArrayLike) -> SignalFit:
    r"""Estimate change rates and the quality of signals by maximum likelihood.

    Appendix E of Busa-Fekete et al. (2025): after an interval w with n signals

    .. math:: P(\mathrm{changed}) = 1 - e^{-(\alpha w + b n)}.

    Corrected: the paper prints the probability of no change. The log-likelihood is
    concave in alpha and b, which are not negative. With the signals per unit of
    time, gamma,

    .. math:: precision = 1 - e^{-b}, \quad
        \Delta = \alpha + precision\,\gamma, \quad
        recall = precision\,\gamma / \Delta, \quad \nu = \gamma e^{-b}.

    Parameters
    ----------
    history : History
    n_signals : array_like of int, shape of ``history.interval``
        Signals between each crawl and the one before.

    Returns
    -------
    SignalFit
        Standard errors are from the observed information by the delta method; a
        parameter at its bound (alpha = 0, b = 0 or b = inf) counts as known.

    Warns
    -----
    DegenerateSignalsWarning
        Pages that never changed (change rate 0, recall NaN) or at every crawl
        (change rate inf, the rest NaN); pages without signals (recall 0, precision
        NaN). Without a warning one point is returned where signals are in
        proportion to the intervals, so that the maximum is a line.

    Examples
    --------
    >>> pages = SignalledPages(0.5, 1.0, recall=0.8, false_rate=0.2)
    >>> history, n_signals = simulate_signalled_history(
    ...     pages, crawl_rate=0.5, n_crawls=5000, rng=1
    ... )
    >>> found = fit(history, n_signals)
    >>> found.change_rate.round(2), found.recall.round(2)
    (array([0.48]), array([0.81]))
    """
    n_signals = _counts(history, n_signals)
    time = history.total(history.interval)
    gamma = history.total(n_signals) / time
    interval, changed, offsets = history.ragged()
    evidence = np.array([interval, n_signals.ravel()])
    pages = [slice(*own) for own in itertools.pairwise(offsets)]
    found = np.array([_maximum(evidence[:, own], changed[own]) for own in pages]).T
    alpha, b, var_alpha, cov, var_b = (history.by_page(x) for x in found)
    p, q = np.where(gamma > 0, [-np.expm1(-b), np.exp(-b)], 0.0)
    rate = np.fmax(alpha, alpha + p * gamma)
    recall = p * gamma / rate
    slopes = (  # of change rate, precision, recall, false rate in alpha, b, gamma
        (1.0, q * gamma, p),
        (0.0, q, 0.0),
        (-recall / rate, q * gamma * alpha / rate**2, p * alpha / rate**2),
        (0.0, -q * gamma, q),
    )
    variances = [
        x**2 * var_alpha + y**2 * var_b + 2 * x * y * cov + z**2 * gamma / time
        for x, y, z in slopes
    ]
    stderr = np.sqrt(np.where(np.array(variances) > 0, variances, np.nan))
    precision = np.where(gamma > 0, p, np.nan)[()]
    unknown = np.isnan(recall + precision + stderr[0])
    if unknown.any():
        warnings.warn(
            f"{unknown.sum()} of {unknown.size} pages do not determine the quality of "
            "their signals",
            DegenerateSignalsWarning,
            stacklevel=3,
        )
    return SignalFit(rate, precision, recall, q * gamma, *stderr)


def _score(x, z, others):
    """Log-likelihood at x = (alpha, b), its gradient and minus its second derivatives.

    z: shape (2, n), intervals and signals of crawls that found a change; others: their
    sums over the other crawls.
    """
    r = 1.0 / np.expm1(x @ z)
    return -x @ others - np.log1p(r).sum(), z @ r - others, z * (r + r * r) @ z.T


def _inverse(h):
    """Of a symmetric matrix of two rows; not finite for a singular one."""
    return h[::-1, ::-1] * [[1, -1], [-1, 1]] / (h[0, 0] * h[1, 1] - h[0, 1] ** 2)


def _maximum(evidence, changed):
    """alpha, b, their variances and covariance for one page; see `fit`.

    Each step leads to, or towards, the maximum for alpha, b >= 0 of the quadratic
    function with the same derivatives: inside, or at one of the bounds.
    """
    z, others = evidence[:, changed], evidence[:, ~changed].sum(axis=1)
    if others[0] == 0:  # there is no crawl without a change
        return np.inf if changed.size else np.nan, np.nan, np.nan, np.nan, np.nan
    sure = others[1] == 0  # signals came with changes only: b = inf
    if sure:
        z = z[:, z[1] == 0]
    x = np.array([z.shape[1] / (z[0].sum() + others[0]), 0.0 if sure else 0.5])
    value, slope, curve = _score(x, z, others)
    for _ in range(MOST_STEPS):
        bounds = x + (slope + curve[0, 1] * x[::-1]) / np.diag(curve)
        to = np.vstack([x + _inverse(curve) @ slope, np.diag(np.maximum(bounds, 0.0))])
        step = to[(to >= 0).all(axis=1)] - x
        step = step[np.argmax(step @ slope - (step @ curve * step).sum(axis=1) / 2)]
        if slope @ step <= LAST_GAIN * abs(value):
            break
        before = value - ROUNDING * abs(value)
        for size in 0.5 ** np.arange(HALVINGS):
            value, slope, curve = _score(x + size * step, z, others)
            if value >= before:
                break
        x = x + size * step
    free = np.outer(x > 0, x > 0)
    cov = free * _inverse(np.where(free, curve, np.eye(2)))
    return x[0], np.inf if sure else x[1], cov[0, 0], cov[0, 1], cov[1, 1]
