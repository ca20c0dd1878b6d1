"""Change-indicating signals: parameters, precision and recall, estimation.

A change of a page is signalled with a probability, the recall; signals
without a change arrive at a rate of their own. Of a crawl log only bits,
intervals and numbers of signals are seen, from which `fit` estimates the
parameters.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.errors import ConvergenceError, DegenerateSignalsWarning
from recrawl.kernels import signals as kernels
from recrawl.kernels import threads_for
from recrawl.science.processes import History, simulate_history
from recrawl.types import Array, Ints, Seed, Values

__all__ = [
    "PARAMETERS",
    "DegenerateSignalsWarning",
    "SignalFit",
    "SignalledPages",
    "corrupt",
    "fit",
    "naive_precision_recall",
    "simulate_signalled_history",
]


# Fields of `SignalledPages`, in the order of its arguments.
PARAMETERS = "change_rate", "importance", "recall", "false_rate"


@dataclass(frozen=True, eq=False)
class SignalledPages:
    r"""Pages some of whose changes are signalled, among false signals.

    Section 3 of [www25]_: changes without a signal have the rate alpha,
    signals the rate gamma, and a signal counts as much as the time beta.

    .. math:: \alpha = (1 - \lambda)\,\Delta, \qquad
        \gamma = \lambda\Delta + \nu, \qquad
        \beta = \frac{1}{\alpha} \ln\frac{\gamma}{\nu}

    The four arguments broadcast; they are kept as read-only arrays of shape
    (n_pages,).

    Parameters
    ----------
    change_rate : array_like, shape (n_pages,), 1/time
        Delta, non-negative.
    importance : array_like, shape (n_pages,)
        mu, non-negative.
    recall : array_like, shape (n_pages,)
        lambda, the probability that a change is signalled, in [0, 1].
    false_rate : array_like, shape (n_pages,), 1/time
        nu, the rate of signals without a change, non-negative.

    Raises
    ------
    ValueError
        Arguments out of range; shapes that do not broadcast to one axis; no
        page at all.

    Notes
    -----
    The plain form of the derived parameters is
    `tests.plain.signal_parameters`.

    Examples
    --------
    >>> from recrawl.science.signals import SignalledPages
    >>> pages = SignalledPages(0.7, 1.0, recall=[0.5, 0.0], false_rate=0.3)
    >>> pages.gamma, pages.precision.round(3)
    (array([0.65, 0.3 ]), array([0.538, 0.   ]))
    """

    change_rate: Values
    importance: Values
    recall: Values
    false_rate: Values

    def __post_init__(self):
        # in place, because the dataclass is frozen
        vars(self).update(_pages(**vars(self)))

    @classmethod
    def from_precision(
        cls,
        change_rate: ArrayLike,
        importance: ArrayLike,
        *,
        precision: ArrayLike,
        recall: ArrayLike,
    ) -> SignalledPages:
        r"""Make pages with signals of given quality.

        .. math::
            \nu = \lambda \Delta\,(1 - \mathrm{precision}) / \mathrm{precision}

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Non-negative.
        importance : array_like, shape (n_pages,)
            Non-negative.
        precision : array_like, shape (n_pages,)
            Probability that a signal reports a change, in (0, 1]. A page of
            recall 0 has no signals, whatever its precision, which may be 0.
        recall : array_like, shape (n_pages,)
            Probability that a change is signalled, in [0, 1].

        Returns
        -------
        SignalledPages
            The pages.

        Raises
        ------
        ValueError
            As the class, and for precision 0 where recall is positive.
        """
        pages = _pages(
            change_rate=change_rate,
            importance=importance,
            recall=recall,
            precision=precision,
        )
        precision, recall = pages.pop("precision"), pages["recall"]
        impossible = (precision == 0) & (recall > 0)
        checks.require("precision", precision, "positive where recall is", ~impossible)
        odds = _ratio(1.0 - precision, precision)
        return cls(**pages, false_rate=recall * pages["change_rate"] * odds)

    @classmethod
    def from_observed(
        cls,
        importance: ArrayLike,
        *,
        alpha: ArrayLike,
        precision: ArrayLike,
        gamma: ArrayLike,
    ) -> SignalledPages:
        r"""Make pages from parameters that can be estimated.

        .. math:: \Delta = \alpha + \mathrm{precision}\,\gamma, \qquad
            \lambda = \mathrm{precision}\,\gamma / \Delta, \qquad
            \nu = (1 - \mathrm{precision})\,\gamma

        with recall 0 for a page that never changes: the inverse of the
        properties of the same names.

        Parameters
        ----------
        importance : array_like, shape (n_pages,)
            Non-negative.
        alpha : array_like, shape (n_pages,), 1/time
            Rate of changes without a signal, non-negative.
        precision : array_like, shape (n_pages,)
            Probability that a signal reports a change, in [0, 1];
            1 - exp(-alpha beta).
        gamma : array_like, shape (n_pages,), 1/time
            Rate of signals, non-negative.

        Returns
        -------
        SignalledPages
            The pages.

        Raises
        ------
        ValueError
            As the class.

        Notes
        -----
        The plain form is `tests.plain.observed_parameters`.
        """
        pages = _pages(
            importance=importance, alpha=alpha, precision=precision, gamma=gamma
        )
        importance, alpha, precision, gamma = pages.values()
        change_rate = alpha + precision * gamma
        recall = _ratio(precision * gamma, change_rate)
        return cls(change_rate, importance, recall, (1.0 - precision) * gamma)

    @property
    def gamma(self) -> Array:
        """Rate of signals, true and false, shape (n_pages,), 1/time."""
        return self.recall * self.change_rate + self.false_rate

    @property
    def alpha(self) -> Array:
        """Rate of changes without a signal, shape (n_pages,), 1/time."""
        return (1.0 - self.recall) * self.change_rate

    @property
    def precision(self) -> Array:
        """Probability that a signal reports a change; NaN without signals."""
        with np.errstate(invalid="ignore"):
            return self.recall * self.change_rate / self.gamma

    @property
    def beta(self) -> Array:
        """Time that is as much evidence as one signal, log(gamma / nu) / alpha.

        Shape (n_pages,). It is inf where one signal is more evidence of a
        change than any time, and 0 where signals are no evidence and for a
        page without signals.
        """
        signalled = self.recall * self.change_rate
        with np.errstate(divide="ignore", invalid="ignore"):
            time = np.log1p(signalled / self.false_rate) / self.alpha
        return np.where(signalled > 0, time, 0.0)


def _ratio(numerator, denominator):
    """Quotient of arrays, 0 where the denominator is 0."""
    zero = np.zeros_like(denominator)
    return np.divide(numerator, denominator, out=zero, where=denominator > 0)


def _pages(**arrays):
    """The named parameters, checked, as read-only arrays of one length."""
    for name, array in arrays.items():
        share = name in ("recall", "precision")
        arrays[name] = (checks.share if share else checks.non_negative)(name, array)
    first = next(iter(arrays))
    shape = checks.broadcast(**arrays)[0].shape
    if len(shape) > 1 or 0 in shape:
        raise ValueError(
            f"{first} must hold one number per page, at least one page, "
            f"got shape {shape}"
        )
    for name, array in arrays.items():
        arrays[name] = np.array(np.broadcast_to(array, shape)).reshape(-1)
        arrays[name].flags.writeable = False
    return arrays


def corrupt(
    pages: SignalledPages,
    corruption: ArrayLike,
    *,
    least_precision: float = 0.01,
    rng: Seed = None,
) -> list[SignalledPages]:
    r"""Corrupt what is believed of the precision and recall of signals.

    Section 6.7 of [www25]_. A share p of the believed values is noise,

    .. math:: \mathrm{precision}' = (1 - p)\,\mathrm{precision} + p\,\xi, \qquad
        \mathrm{recall}' = (1 - p)\,\mathrm{recall} + p\,\xi',

    with independent uniform noise on [0, 1] for each page. The text prints the
    second formula without the factor p of the noise, which could exceed 1.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are.
    corruption : array_like, shape (n,)
        The shares p of noise, in [0, 1].
    least_precision : float, in (0, 1], default 0.01
        Lower values are raised to it: the believed rate of false signals grows
        without bound as the precision goes to 0. Our choice.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Returns
    -------
    list of SignalledPages
        The pages as they are believed to be, for each share, with the same
        noise for all shares. Change rates and importances are right; rates of
        signals follow from change rate, precision and recall. The precision of
        a page without signals counts as 0.

    Raises
    ------
    ValueError
        Shares or a precision out of range.

    Examples
    --------
    >>> from recrawl.science import signals
    >>> pages = signals.SignalledPages.from_precision(
    ...     1.0, 1.0, precision=[0.2, 0.8], recall=0.5
    ... )
    >>> right, wrong = signals.corrupt(pages, [0.0, 0.2], rng=1)
    >>> right.precision.round(2), wrong.precision.round(2)
    (array([0.2, 0.8]), array([0.26, 0.83]))
    """
    corruption = np.atleast_1d(checks.share("corruption", corruption))
    least = checks.share("least_precision", least_precision)
    checks.require("least_precision", least, "positive", least > 0)
    precision, recall = np.nan_to_num(pages.precision), pages.recall
    noise = np.random.default_rng(rng).random((2, recall.size))
    return [
        SignalledPages.from_precision(
            pages.change_rate,
            pages.importance,
            precision=np.maximum((1 - p) * precision + p * noise[0], least),
            recall=(1 - p) * recall + p * noise[1],
        )
        for p in corruption
    ]


def simulate_signalled_history(
    pages: SignalledPages,
    *,
    crawl_rate: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    n_crawls: int | None = None,
    rng: Seed = None,
) -> tuple[History, Ints]:
    r"""Simulate crawls of pages, and the signals between them.

    After an interval w with n signals, which are Poisson of mean gamma w,

    .. math:: P(\mathrm{changed})
        = 1 - e^{-\alpha w} (1 - \mathrm{precision})^n ,

    eq. (1) of [www25]_.

    Parameters
    ----------
    pages : SignalledPages
        The pages.
    crawl_rate : array_like, 1/time, optional
        As in `processes.simulate_history`.
    interval : array_like, time, optional
        As in `processes.simulate_history`.
    n_crawls : int, optional
        As in `processes.simulate_history`.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Returns
    -------
    history : History
        Of shape (n_pages, n_crawls).
    n_signals : ndarray of int, shape (n_pages, n_crawls)
        Signals between each crawl and the one before.

    Raises
    ------
    ValueError
        As `processes.simulate_history`.

    Examples
    --------
    >>> from recrawl.science import signals
    >>> pages = signals.SignalledPages(0.5, 1.0, recall=0.8, false_rate=0.1)
    >>> history, n_signals = signals.simulate_signalled_history(
    ...     pages, interval=1.0, n_crawls=6, rng=1
    ... )
    >>> history.changed.astype(int), n_signals
    (array([[1, 0, 0, 1, 0, 1]]), array([[1, 0, 0, 1, 0, 1]]))
    """
    rng = np.random.default_rng(rng)
    silent = simulate_history(
        pages.alpha,
        crawl_rate=crawl_rate,
        interval=interval,
        n_crawls=n_crawls,
        rng=rng,
    )
    rates = pages.recall * pages.change_rate, pages.false_rate
    true, false = (rng.poisson(rate[:, np.newaxis] * silent.interval) for rate in rates)
    return History(silent.interval, silent.changed | (true > 0)), true + false


def _counts(history, n_signals):
    """`n_signals` as a float array of whole numbers that fits the history."""
    n_signals = checks.non_negative("n_signals", n_signals)
    if n_signals.shape != history.interval.shape:
        raise ValueError(
            f"n_signals must have the shape of the history, {history.interval.shape}, "
            f"got {n_signals.shape}"
        )
    whole = n_signals == np.floor(n_signals)
    checks.require("n_signals", n_signals, "whole numbers", whole)
    return n_signals


def naive_precision_recall(
    history: History, n_signals: ArrayLike
) -> tuple[Values, Values]:
    r"""Estimate precision and recall by counting signals; biased.

    As if a crawl that found a change had found exactly one: precision is the
    share of signals that came in intervals with a change,
    recall the share of these intervals with a signal; appendix E of [www25]_.
    Both are biased. With equal intervals w they tend to

    .. math:: 1 - (1 - \mathrm{precision})\,e^{-\Delta w}
        \qquad\text{and}\qquad
        1 - e^{-\gamma w} \frac{1 - e^{-\alpha w}}{1 - e^{-\Delta w}}

    (derived), which are both too high.

    Parameters
    ----------
    history : History
        In either form.
    n_signals : array_like of int, shape of ``history.interval``
        Signals between each crawl and the one before.

    Returns
    -------
    precision, recall : ndarray or float, shape ``history.shape``
        NaN where there is no signal, or no change.

    Raises
    ------
    ValueError
        Counts that are not whole numbers, or of another shape.

    Notes
    -----
    The plain form is `tests.plain.naive_precision_recall`.

    Examples
    --------
    >>> from recrawl.science.processes import History
    >>> from recrawl.science.signals import naive_precision_recall
    >>> history = History([1.0] * 5, [True, False, True, True, False])
    >>> precision, recall = naive_precision_recall(history, [2, 1, 0, 1, 0])
    >>> float(precision), float(recall.round(3))
    (0.75, 0.667)
    """
    n_signals = _counts(history, n_signals)
    changed = history.changed
    with np.errstate(invalid="ignore"):
        precision = history.total(n_signals * changed) / history.total(n_signals)
        recall = history.total((n_signals > 0) & changed) / history.total(changed)
    return precision, recall


@dataclass(frozen=True, eq=False)
class SignalFit:
    """Estimates of `fit`, with their standard errors.

    Parameters
    ----------
    change_rate : ndarray, shape ``history.shape``, 1/time
        Rate of all changes.
    precision : ndarray, shape ``history.shape``
        Probability that a signal reports a change.
    recall : ndarray, shape ``history.shape``
        Probability that a change is signalled.
    false_rate : ndarray, shape ``history.shape``, 1/time
        Rate of signals without a change.
    change_rate_stderr, precision_stderr : ndarray
        Standard errors, each in the unit of its estimate.
    recall_stderr, false_rate_stderr : ndarray
        Standard errors, each in the unit of its estimate.
    alpha : ndarray, shape ``history.shape``, 1/time
        Fitted parameter: rate of changes without a signal.
    b : ndarray, shape ``history.shape``
        Fitted parameter: evidence of one signal, -log(1 - precision).
    gamma : ndarray, shape ``history.shape``, 1/time
        Rate of signals.

    Examples
    --------
    >>> from recrawl.science.processes import History
    >>> from recrawl.science.signals import fit
    >>> found = fit(History([1.0] * 4, [1, 0, 1, 0]), [1, 0, 0, 1])
    >>> float(found.recall), float(found.gamma)
    (0.0, 0.5)
    """

    change_rate: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    false_rate: np.ndarray
    change_rate_stderr: np.ndarray
    precision_stderr: np.ndarray
    recall_stderr: np.ndarray
    false_rate_stderr: np.ndarray
    alpha: np.ndarray
    b: np.ndarray
    gamma: np.ndarray


def fit(
    history: History, n_signals: ArrayLike, *, signal_rate: ArrayLike | None = None
) -> SignalFit:
    r"""Estimate change rate, precision and recall by maximum likelihood.

    After an interval w with n signals

    .. math:: P(\mathrm{changed}) = 1 - e^{-(\alpha w + b n)} ,

    appendix E of [www25]_, which prints the probability of no change in its
    place. This is a regression of the bits on w and n through the origin with
    the complementary log-log link, log(-log P(unchanged)) = log(alpha w +
    b n); its log-likelihood is concave in alpha and b, which are kept non-negative.
    With the rate of signals gamma,

    .. math:: \mathrm{precision} = 1 - e^{-b}, \quad
        \Delta = \alpha + \mathrm{precision}\,\gamma, \quad
        \mathrm{recall} = \mathrm{precision}\,\gamma / \Delta, \quad
        \nu = \gamma e^{-b} .

    Parameters
    ----------
    history : History
        In either form.
    n_signals : array_like of int, shape of ``history.interval``
        Signals between each crawl and the one before.
    signal_rate : array_like, broadcasts to ``history.shape``, 1/time, optional
        The rate of signals gamma, if it is known; otherwise it is estimated
        by the signals per unit of time in the history.

    Returns
    -------
    SignalFit
        Standard errors are from the observed information by the delta method.
        A parameter at its bound (alpha = 0, b = 0, or b = inf where signals
        came with changes only) counts as known; an estimate without any other
        uncertainty has the standard error NaN.

    Raises
    ------
    ValueError
        Counts that are not whole numbers, or of another shape; a rate of
        signals out of range.
    ConvergenceError
        The maximum of a page was not found.

    Warns
    -----
    DegenerateSignalsWarning
        Pages that never changed: change rate 0, recall NaN. Nothing but
        changes: change rate inf, the rest NaN. No signal: precision NaN, the
        change rate of `estimators.mle` and recall 0 (NaN both if a positive
        `signal_rate` is given). Signals in proportion to the intervals: of
        many maxima the one at b = 0, standard errors NaN.

    Notes
    -----
    The plain form is `tests.plain.fit_signals`.

    Examples
    --------
    >>> from recrawl.science import signals
    >>> pages = signals.SignalledPages(0.5, 1.0, recall=0.8, false_rate=0.2)
    >>> history, n_signals = signals.simulate_signalled_history(
    ...     pages, crawl_rate=0.5, n_crawls=5000, rng=1
    ... )
    >>> found = signals.fit(history, n_signals)
    >>> found.change_rate.round(2), found.recall.round(2)
    (array([0.48]), array([0.81]))
    """
    n_signals = _counts(history, n_signals)
    gamma, gamma_variance = _signal_rate(history, n_signals, signal_rate)
    alpha, b, covariance = _maximum_likelihood(history, n_signals)
    _warn(history, n_signals, np.isinf(covariance[..., 0]))
    # without signals b is not known, and does not matter
    silent = np.isnan(b) & (gamma == 0)
    precision, false = -np.expm1(-b), np.where(silent, 0.0, np.exp(-b))
    true = np.where(silent, 0.0, precision)
    with np.errstate(invalid="ignore", divide="ignore"):
        change_rate = np.where(np.isinf(alpha), np.inf, alpha + true * gamma)
        recall = true * gamma / change_rate
        zero, one = np.zeros(history.shape), np.ones(history.shape)
        # derivatives of change rate, precision, recall, false rate in each
        # parameter
        square = change_rate**2
        in_alpha = one, zero, -true * gamma / square, zero
        in_b = false * gamma, false, false * gamma * alpha / square, -gamma * false
        in_gamma = true, zero, true * alpha / square, false
        stderr = _standard_errors(
            np.stack([in_alpha, in_b, in_gamma]), covariance, gamma_variance
        )
    estimates = change_rate, precision, recall, gamma * false
    return SignalFit(*estimates, *stderr, alpha=alpha, b=b, gamma=gamma)


def _maximum_likelihood(history, n_signals):
    """alpha, b, and their two variances and covariance along a last axis."""
    interval, changed, offsets = history.ragged()
    rates, covariance = np.empty((offsets.size - 1, 2)), np.empty((offsets.size - 1, 3))
    flat = np.ascontiguousarray(n_signals).reshape(-1)
    with threads_for(interval.size):
        kernels.signal_rates(interval, changed, flat, offsets, rates, covariance)
    failed = (np.isnan(rates[:, 0]) & (np.diff(offsets) > 0))[:, np.newaxis]
    if failed.any():
        raise ConvergenceError(
            f"{failed.sum()} of {failed.size} pages did not converge",
            np.where(failed, np.nan, rates).reshape(*history.shape, 2),
        )
    alpha, b = (rate.reshape(history.shape) for rate in rates.T)
    return alpha, b, covariance.reshape(*history.shape, 3)


def _signal_rate(history, n_signals, signal_rate):
    """The rate of signals of each page, and its variance: 0 if it is given."""
    if signal_rate is None:
        time = history.total(history.interval)
        with np.errstate(invalid="ignore"):
            gamma = history.total(n_signals) / time
            return gamma, gamma / time  # signals are Poisson
    signal_rate = checks.non_negative("signal_rate", signal_rate)
    try:
        return np.broadcast_to(signal_rate, history.shape), 0.0
    except ValueError:
        raise ValueError(
            f"signal_rate must be a number or of shape {history.shape}, "
            f"got shape {signal_rate.shape}"
        ) from None


def _standard_errors(slopes, covariance, gamma_variance):
    """Standard errors by the delta method.

    The variance of an estimate is s^T C s with the slopes s in alpha, b and
    gamma and their covariance C; gamma is independent of the others.
    slopes: shape (3, 4, *pages), of four estimates. NaN where nothing is
    uncertain, or cannot be told.
    """
    in_alpha, in_b, in_gamma = slopes
    covariance = np.where(np.isinf(covariance), np.nan, covariance)
    variance = (
        in_alpha**2 * covariance[..., 0]
        + in_b**2 * covariance[..., 1]
        + 2 * in_alpha * in_b * covariance[..., 2]
        + in_gamma**2 * gamma_variance
    )
    stderr = np.sqrt(variance)
    return np.where(stderr > 0, stderr, np.nan)


def _warn(history, n_signals, proportional):
    """Warn of pages without an interior estimate, at the caller of `fit`."""
    n_changed, n = history.total(history.changed), history.n_crawls
    cases = {
        "never changed": (n_changed == 0) & (n > 0),
        "always changed": (n_changed == n) & (n > 0),
        "had no signal": (history.total(n_signals) == 0) & (n > 0),
        "had signals in proportion to the intervals": proportional,
    }
    found = [
        f"{where.sum()} of {where.size} pages {name}"
        for name, where in cases.items()
        if where.any()
    ]
    if found:
        warnings.warn("; ".join(found), DegenerateSignalsWarning, stacklevel=3)
