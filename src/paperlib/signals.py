"""Change-indicating signals: what they say about a page, and how to learn it from a crawl log."""

import warnings
from dataclasses import dataclass

import numpy as np

from paperlib import checks
from paperlib._kernels import signals as kernels
from paperlib.errors import ConvergenceError, DegenerateSignalsWarning
from paperlib.processes import History, simulate_history

PARAMETERS = "change_rate", "importance", "recall", "false_rate"


@dataclass(frozen=True, eq=False)
class SignalledPages:
    """Pages whose changes announce themselves, some of them, among false alarms; section 2 of [www25].

    Parameters
    ----------
    change_rate : array, shape (n_pages,), 1/time, non-negative
    importance : array, shape (n_pages,), non-negative
    recall : array, shape (n_pages,), in [0, 1]
        Probability that a change is signalled, lambda.
    false_rate : array, shape (n_pages,), 1/time, non-negative
        Rate of signals without a change, nu.

    The four broadcast, numbers too; they are kept as read-only arrays of shape (n_pages,).

    Raises
    ------
    ValueError
        Arguments out of range; shapes that do not broadcast to one axis; no page at all.
    """

    change_rate: np.ndarray
    importance: np.ndarray
    recall: np.ndarray
    false_rate: np.ndarray

    def __post_init__(self):
        arrays = _pages(
            change_rate=checks.non_negative("change_rate", self.change_rate),
            importance=checks.non_negative("importance", self.importance),
            recall=checks.share("recall", self.recall),
            false_rate=checks.non_negative("false_rate", self.false_rate),
        )
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @classmethod
    def from_precision(cls, change_rate, importance, *, precision, recall):
        """Pages with signals of given quality: false_rate = recall change_rate (1 - precision) / precision.

        precision : array, shape (n_pages,), in (0, 1]; the share of signals that tell of a change
            A page of recall 0 has no signals at all, whatever its precision, which may then be 0.

        Raises ValueError as the class, and for precision 0 where recall is positive.
        """
        pages = _pages(
            change_rate=checks.non_negative("change_rate", change_rate),
            importance=checks.non_negative("importance", importance),
            recall=checks.share("recall", recall),
            precision=checks.share("precision", precision),
        )
        precision, recall = pages.pop("precision"), pages["recall"]
        impossible = (precision == 0) & (recall > 0)
        if impossible.any():
            first = np.flatnonzero(impossible)[0].item()
            raise ValueError(
                f"precision must be positive where recall is, got 0.0 at index ({first},)"
            )
        odds = np.divide(
            1.0 - precision,
            precision,
            out=np.zeros_like(precision),
            where=precision > 0,
        )
        return cls(**pages, false_rate=recall * pages["change_rate"] * odds)

    @classmethod
    def from_observed(cls, importance, *, alpha, precision, gamma):
        """Pages from what can be estimated: the rate of changes without a signal, the share of true signals, the rate of signals.

        change_rate = alpha + precision gamma, recall = precision gamma / change_rate (0 for a page that never changes),
        false_rate = (1 - precision) gamma; precision = 1 - exp(-alpha beta). The inverse of the properties of the same names.
        """
        pages = _pages(
            importance=checks.non_negative("importance", importance),
            alpha=checks.non_negative("alpha", alpha),
            precision=checks.share("precision", precision),
            gamma=checks.non_negative("gamma", gamma),
        )
        change_rate, recall, false_rate = _from_observed(
            pages["alpha"], pages["precision"], pages["gamma"]
        )
        return cls(change_rate, pages["importance"], recall, false_rate)

    @property
    def gamma(self):
        """Rate of signals, true and false, shape (n_pages,), 1/time."""
        return self.recall * self.change_rate + self.false_rate

    @property
    def alpha(self):
        """Rate of changes without a signal, shape (n_pages,), 1/time."""
        return (1.0 - self.recall) * self.change_rate

    @property
    def precision(self):
        """Probability that a signal tells of a change, shape (n_pages,); NaN for a page without signals."""
        with np.errstate(invalid="ignore"):
            return self.recall * self.change_rate / self.gamma

    @property
    def beta(self):
        """Time that a signal is worth, log(gamma / nu) / alpha, shape (n_pages,); inf where a signal says more than time ever could.

        0 where signals say nothing, and for a page without signals.
        """
        signalled = self.recall * self.change_rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                signalled > 0, np.log1p(signalled / self.false_rate) / self.alpha, 0.0
            )


def _pages(**arrays):
    """The named arrays as read-only arrays of one shape (n_pages,)."""
    pages = dict(zip(arrays, checks.broadcast(**arrays), strict=True))
    name, array = next(iter(pages.items()))
    if array.ndim > 1 or array.size == 0:
        raise ValueError(
            f"{name} must hold one number per page, at least one page, got shape {array.shape}"
        )
    pages = {
        name: np.array(array, dtype=float).reshape(-1) for name, array in pages.items()
    }
    for array in pages.values():
        array.flags.writeable = False
    return pages


def _from_observed(alpha, precision, gamma):
    change_rate = alpha + precision * gamma
    recall = np.divide(
        precision * gamma,
        change_rate,
        out=np.zeros_like(change_rate),
        where=change_rate > 0,
    )
    return change_rate, recall, (1.0 - precision) * gamma


def simulate_signalled_history(
    pages, *, crawl_rate=None, interval=None, n_crawls=None, rng=None
):
    """Simulated `History` of pages, and the signals that came between a crawl and the one before.

    P(changed) = 1 - exp(-alpha interval) (1 - precision)^n after n signals, which are Poisson of mean gamma interval: eq. (1) of [www25].

    Parameters
    ----------
    pages : SignalledPages
    crawl_rate, interval, n_crawls : as in `processes.simulate_history`
    rng : seed or numpy Generator

    Returns
    -------
    history : History of shape (n_pages, n_crawls)
    n_signals : int array, shape (n_pages, n_crawls)
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
    n_signals = checks.non_negative("n_signals", n_signals)
    if n_signals.shape != history.interval.shape:
        raise ValueError(
            f"n_signals must have the shape of the history, {history.interval.shape}, got {n_signals.shape}"
        )
    if (n_signals != np.floor(n_signals)).any():
        first = tuple(np.argwhere(n_signals != np.floor(n_signals))[0].tolist())
        raise ValueError(
            f"n_signals must be whole numbers, got {n_signals[first].item()!r} at index {first}"
        )
    return n_signals


def naive_precision_recall(history, n_signals):
    """Precision and recall as if a crawl that found a change had found exactly one; biased, appendix E of [www25].

    precision = signals in changed intervals / signals; recall = changed intervals with a signal / changed intervals. With equal intervals
    they tend to 1 - (1 - precision) exp(-change_rate interval) and 1 - exp(-gamma interval) (1 - exp(-alpha interval)) / (1 -
    exp(-change_rate interval)) (derived): both too high.

    Parameters
    ----------
    history : History, either form
    n_signals : array of the shape of ``history.interval``
        Signals between a crawl and the one before.

    Returns
    -------
    precision, recall : arrays of ``history.shape``; NaN where there is no signal, or no change

    Raises
    ------
    ValueError
        Counts that are not whole numbers, or of another shape.
    """
    n_signals = _counts(history, n_signals)
    with np.errstate(invalid="ignore"):
        precision = history.total(n_signals * history.changed) / history.total(
            n_signals
        )
        recall = history.total((n_signals > 0) & history.changed) / history.total(
            history.changed
        )
    return precision, recall


@dataclass(frozen=True, eq=False)
class SignalFit:
    """What `fit` found; arrays of ``history.shape``, rates in 1/time, each ``*_stderr`` in the unit of its estimate.

    change_rate, precision, recall, false_rate : estimates, with their standard errors
    alpha, b : the parameters that were fitted: rate of changes without a signal, and evidence of one signal
    gamma : rate of signals
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


def fit(history, n_signals, *, signal_rate=None):
    """Change rate, precision and recall by maximum likelihood: P(changed) = 1 - exp(-(alpha interval + b n_signals)).

    Appendix E of [www25]. Deviates from the paper, which prints the probability of no change. The log-likelihood (a regression with
    the complementary log-log link, through the origin) is concave; alpha and b are kept non-negative. Then precision = 1 - exp(-b),
    change_rate = alpha + precision gamma, recall = precision gamma / change_rate, false_rate = gamma exp(-b).

    Parameters
    ----------
    history : History, either form
    n_signals : array of the shape of ``history.interval``
        Signals between a crawl and the one before.
    signal_rate : float or array of ``history.shape``, 1/time, optional
        The rate of signals gamma, if it is known; else it is estimated by the signals per unit of time in the history.

    Returns
    -------
    SignalFit
        Standard errors are from the observed information by the delta method. A parameter at its bound (alpha = 0, b = 0, or b = inf
        where signals came with changes only) counts as known; an estimate without any other uncertainty gets the standard error NaN.

    Warns
    -----
    DegenerateSignalsWarning
        Never changed: change rate 0, recall NaN. Nothing but changes: change rate inf, the rest NaN. No signal: precision NaN, the
        change rate is that of `estimators.mle` and recall 0 (NaN both when a positive `signal_rate` is given). Signals in proportion
        to the intervals: one of many maxima, standard errors NaN.

    Raises
    ------
    ValueError
        Counts that are not whole numbers, or of another shape; a rate of signals out of range.
    ConvergenceError
    """
    n_signals = _counts(history, n_signals)
    interval, changed, offsets = history.ragged()
    rates, variances = np.empty((offsets.size - 1, 2)), np.empty((offsets.size - 1, 3))
    kernels.signal_rates(
        interval,
        changed,
        np.ascontiguousarray(n_signals).reshape(-1),
        offsets,
        rates,
        variances,
    )
    rates, variances = (
        rates.reshape(*history.shape, 2),
        variances.reshape(*history.shape, 3),
    )
    failed = rates[..., 0] < 0
    if failed.any():
        raise ConvergenceError(
            f"{failed.sum()} of {failed.size} pages did not converge",
            np.where(failed[..., np.newaxis], np.nan, rates),
        )
    alpha, b = rates[..., 0], rates[..., 1]
    time = history.total(history.interval)
    if signal_rate is None:
        with np.errstate(invalid="ignore"):
            gamma = history.total(n_signals) / time
            gamma_variance = gamma / time
    else:
        signal_rate = checks.non_negative("signal_rate", signal_rate)
        try:
            gamma = np.broadcast_to(signal_rate, history.shape)
        except ValueError:
            raise ValueError(
                f"signal_rate must be a number or of shape {history.shape}, got shape {signal_rate.shape}"
            ) from None
        gamma_variance = np.zeros(history.shape)
    _warn(history, n_signals, variances)
    precision, silent = -np.expm1(-b), np.isnan(b) & (gamma == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        true_rate = np.where(silent, 0.0, precision * gamma)
        change_rate = np.where(np.isinf(alpha), np.inf, alpha + true_rate)
        recall, false_rate = (
            true_rate / change_rate,
            np.where(silent, 0.0, gamma * np.exp(-b)),
        )
        recall = np.where(
            silent & (change_rate > 0) & np.isfinite(change_rate), 0.0, recall
        )
        variances = np.where(np.isinf(variances), np.nan, variances)
        # derivatives in alpha, b and gamma; exp(-b) = 0 where b = inf, and what is not known about b does not matter without signals
        s, p = np.exp(-b), precision
        zero, one = np.zeros(history.shape), np.ones(history.shape)
        s, p = np.where(silent, 0.0, s), np.where(silent, 0.0, p)
        slopes = {
            "change_rate": (one, s * gamma, p),
            "precision": (zero, s, zero),
            "recall": (
                -p * gamma / change_rate**2,
                s * gamma * alpha / change_rate**2,
                p * alpha / change_rate**2,
            ),
            "false_rate": (zero, -gamma * s, s),
        }
        stderr = {}
        for name, (in_alpha, in_b, in_gamma) in slopes.items():
            variance = (
                in_alpha**2 * variances[..., 0]
                + in_b**2 * variances[..., 1]
                + 2 * in_alpha * in_b * variances[..., 2]
            )
            stderr[f"{name}_stderr"] = np.sqrt(variance + in_gamma**2 * gamma_variance)
            stderr[f"{name}_stderr"] = np.where(
                stderr[f"{name}_stderr"] > 0, stderr[f"{name}_stderr"], np.nan
            )
    return SignalFit(
        change_rate,
        precision,
        recall,
        false_rate,
        **stderr,
        alpha=alpha,
        b=b,
        gamma=gamma,
    )


def _warn(history, n_signals, variances):
    n_changed, n = history.total(history.changed), history.n_crawls
    cases = {
        "never changed": (n_changed == 0) & (n > 0),
        "always changed": (n_changed == n) & (n > 0),
        "had no signal": (history.total(n_signals) == 0) & (n > 0),
        "had signals in proportion to the intervals": np.isinf(variances[..., 0]),
    }
    found = [
        f"{where.sum()} of {where.size} pages {name}"
        for name, where in cases.items()
        if where.any()
    ]
    if found:
        warnings.warn("; ".join(found), DegenerateSignalsWarning, stacklevel=3)
