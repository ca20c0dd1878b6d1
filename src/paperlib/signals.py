"""Pages that send noisy signals of their changes, and the quality of the signals.

Section 3 of Busa-Fekete et al. (2025): a change of a page is signalled with a
probability, the recall. Signals without a change arrive at another rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from . import checks
from .processes import History, simulate_history

# The search ends if the predicted relative gain in log-likelihood is below LAST_GAIN,
# some 1e-8 standard errors. It halves a step that lowers the log-likelihood by a larger
# share than ROUNDING.
LAST_GAIN, ROUNDING, MOST_STEPS = 1e-20, 1e-12, 500
# A relative and an absolute term on the diagonal of the information matrix. They keep
# the matrix regular without signals, and with signals in proportion to the intervals.
RELATIVE_RIDGE, RIDGE = 1e-13, 1e-99


@dataclass(frozen=True, eq=False)
class SignalledPages:
    r"""Parameters of pages, each one number, or one number for each page.

    Section 3 of Busa-Fekete et al. (2025): changes without a signal have the
    rate alpha, and signals have the rate gamma. One signal is as much evidence
    of a change as the time beta.

    .. math:: \alpha = (1 - \lambda)\,\Delta, \qquad
        \gamma = \lambda\Delta + \nu, \qquad
        \beta = \frac{1}{\alpha} \log\frac{\gamma}{\nu}

    Parameters
    ----------
    change_rate : array_like, 1/time
        Delta. All four parameters are stored as arrays of shape (n_pages,).
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

    change_rate: Any
    importance: Any
    recall: Any = 0.0
    false_rate: Any = 0.0

    def __post_init__(self):
        parameters = {name: np.atleast_1d(x) for name, x in vars(self).items()}
        checks.numbers("recall", parameters["recall"], high=1.0)
        arrays = checks.broadcast(**parameters)
        for name, array in zip(parameters, arrays, strict=True):
            if not array.size:
                raise ValueError(f"{name} must have at least one page, got none")
            vars(self)[name] = array.copy()  # because the dataclass is frozen

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
        precision : array_like, in (0, 1]
            Probability that a signal reports a change.

        Returns
        -------
        SignalledPages
        """
        precision = checks.numbers("precision", precision, 0.0, 1.0, above=True)
        odds = (1.0 - precision) / precision
        false_rate = np.multiply(recall, change_rate) * odds
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

        inf if one signal is more evidence than any time: without false
        signals, or at recall 1. 0 if signals are no evidence, or without
        signals.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            hazard = np.log1p(self.recall * self.change_rate / self.false_rate)
            return np.where(hazard > 0, hazard / self.alpha, 0.0)


def simulate_signalled_history(
    pages: SignalledPages, *, rng: Any = None, **crawls: Any
) -> tuple[History, NDArray]:
    r"""Simulate crawls of pages, and the signals between them.

    A crawl after the time :math:`\tau` with n signals finds a change with
    probability :math:`1 - e^{-\alpha\tau} (\nu / \gamma)^n` (appendix E of
    Busa-Fekete et al. 2025). Corrected: the paper prints the probability of no
    change.

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
        Shape (n_pages, n_crawls).
    n_signals : int ndarray, shape (n_pages, n_crawls)
        Number of signals between each crawl and the previous one.

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


@np.errstate(invalid="ignore")
def naive_precision_recall(
    history: History, n_signals: ArrayLike
) -> tuple[NDArray, NDArray]:
    r"""Estimate precision and recall by counting signals; mostly too high.

    These estimates assume exactly one change in each interval with a change (appendix
    E of Busa-Fekete et al. 2025). Precision is the share of signals in these intervals.
    Recall is the share of these intervals with a signal. At equal intervals w they tend
    to limits that are never below the true values (derived):

    .. math:: 1 - (1 - precision)\,e^{-\Delta w}, \qquad
        1 - e^{-\gamma w} \frac{1 - e^{-\alpha w}}{1 - e^{-\Delta w}}.

    Parameters
    ----------
    history : History
    n_signals : array_like of int, shape of ``history.interval``
        Number of signals between each crawl and the previous one.

    Returns
    -------
    precision, recall : ndarray, shape ``history.shape``
        NaN without signals, or without changes.
    """
    n_signals = np.asarray(n_signals)
    changed = history.changed
    precision = history.total(n_signals * changed) / history.total(n_signals)
    recall = history.total((n_signals > 0) & changed) / history.total(changed)
    return precision, recall


class SignalFit(NamedTuple):
    """Estimates of `fit`, each of shape ``history.shape``.

    Parameters
    ----------
    change_rate : ndarray, 1/time
        Rate of all changes.
    precision, recall : ndarray
        Quality of the signals.
    """

    change_rate: NDArray
    precision: NDArray
    recall: NDArray


@np.errstate(all="ignore")  # pages without changes or signals
def fit(history: History, n_signals: ArrayLike) -> SignalFit:
    r"""Estimate change rates and the quality of signals by maximum likelihood.

    Appendix E of Busa-Fekete et al. (2025): after an interval w with n signals

    .. math:: P(\mathrm{changed}) = 1 - e^{-(\alpha w + b n)}.

    Corrected: the paper prints the probability of no change. The log-likelihood is
    concave in alpha and b, which are not negative. With gamma signals per unit of
    time,

    .. math:: precision = 1 - e^{-b}, \quad
        \Delta = \alpha + precision\,\gamma, \quad
        recall = precision\,\gamma / \Delta.

    Parameters
    ----------
    history : History
    n_signals : array_like of int, shape of ``history.interval``
        Number of signals between each crawl and the previous one.

    Returns
    -------
    SignalFit
        A page that never changed has change rate 0 and recall NaN. A page that
        changed at every crawl has change rate inf, precision and recall NaN. A
        page without signals has recall 0 and precision NaN. If signals are in
        proportion to intervals, the maximum is a line; one point is returned.

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
    n_signals, _ = checks.broadcast(n_signals=n_signals, interval=history.interval)
    time = history.total(history.interval)
    gamma = history.total(n_signals) / time
    interval, changed, offsets = history.ragged()
    x = np.column_stack([interval, n_signals.ravel()])
    pages = map(slice, offsets[:-1], offsets[1:])
    found = np.transpose([_maximum(x[page], changed[page]) for page in pages])
    alpha, b = map(history.by_page, found)
    p = -np.expm1(-b)
    rate = np.fmax(alpha, alpha + p * gamma)
    recall = p * gamma / rate
    precision = np.where(gamma > 0, p, np.nan)[()]
    return SignalFit(rate, precision, recall)


def _maximum(x, changed):
    """alpha and b of maximum likelihood, for rows x = (w, n).

    A step maximises the quadratic function with the same derivatives for alpha, b >= 0,
    which is a least-squares problem. It is halved if the log-likelihood falls.
    """
    unchanged = x[~changed].sum(axis=0)  # time and signals in unchanged intervals
    all_time = x[:, 0].sum()
    x = x[changed]
    if unchanged[0] == 0:  # changes only
        return np.inf if len(x) else np.nan, np.nan
    sure = unchanged[1] == 0  # all signals came with a change, so that b is inf
    if sure:
        x = x[x[:, 1] == 0]
    theta = np.array([len(x) / all_time, 0.0 if sure else 0.5])
    value = -np.inf
    step = 0.0
    for _ in range(MOST_STEPS):
        odds = 1 / np.expm1(x @ (theta + step))  # odds of no change, for each row
        new = -np.log1p(odds).sum() - unchanged @ (theta + step)
        if new < value - ROUNDING * abs(value):
            step = step / 2
            continue
        theta = theta + step
        value = new
        gradient = odds @ x - unchanged
        step = _step_to_maximum(x, odds, gradient, theta)
        if gradient @ step <= LAST_GAIN * abs(value):
            break
    alpha, b = theta + step
    return alpha, np.inf if sure else b


def _step_to_maximum(x, odds, gradient, theta):
    """Step to the maximum of the quadratic function for alpha, b >= 0."""
    information = x.T * (odds + odds**2) @ x
    information = information * (1 + RELATIVE_RIDGE * np.eye(2)) + RIDGE * np.eye(2)
    # With information = root.T root, the function is -|root (theta + step) - target|^2.
    root = np.linalg.cholesky(information).T
    target = root @ theta + np.linalg.solve(root.T, gradient)
    return optimize.nnls(root, target)[0] - theta
