"""How well a history determines the change rate."""

import warnings

import numpy as np
import scipy

from paperlib import checks
from paperlib._kernels import batch as kernels
from paperlib._kernels import threads_for
from paperlib.errors import ConvergenceError, DegenerateHistoryWarning
from paperlib.estimators.batch import mle


def likelihood_interval(history, *, level=0.95):
    """Likelihood-ratio confidence interval of the change rate, of about nominal coverage.

    All rates whose log-likelihood is within chi2(1, level) / 2 of the maximum. A degenerate history has its maximum, 0, at the edge;
    there the interval is the set of rates that give these bits a probability of at least 1 - level (for a page that never
    changed: up to -log(1 - level) / time, the "rule of three").

    Parameters
    ----------
    history : History, either form
    level : float in (0, 1)

    Returns
    -------
    low, high : arrays of ``history.shape``, 1/time; low is 0 without a change, high is inf with nothing but changes.
    """
    level = checks.probability("level", level)
    interval, changed, offsets = history.ragged()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateHistoryWarning)
        rate = np.atleast_1d(mle(history)).ravel()
    low, high = np.empty_like(rate), np.empty_like(rate)
    drop = scipy.special.gammaincinv(0.5, level)  # half a quantile of chi2(1)
    with threads_for(interval.size):
        kernels.likelihood_limits(
            rate, drop, interval, changed, offsets, -np.log1p(-level), low, high
        )
    lost = (np.isnan(low) | np.isnan(high)) & ~np.isnan(rate)
    if lost.any():
        raise ConvergenceError(
            f"{lost.sum()} of {rate.size} intervals did not converge", (low, high)
        )
    return low.reshape(history.shape)[()], high.reshape(history.shape)[()]


def confidence_radius(history, *, max_rate, level=0.95):
    """Radius around `moment_matching` clipped to bounds that holds the true rate with probability at least `level`.

    Implements Lemma 3 of [aaai20], with 1 - level for its delta: sqrt(log(2 / (1 - level)) / (2 n)) over the mean of
    w exp(-max_rate w). Valid for intervals chosen before any bit is seen, and a true rate of at most `max_rate`; loose.

    Parameters
    ----------
    history : History, either form
    max_rate : float, upper bound of the change rate, 1/time
    level : float in (0, 1)

    Returns
    -------
    array of ``history.shape``, 1/time; NaN for a page without crawls.
    """
    max_rate = checks.scalar(checks.positive, "max_rate", max_rate)
    level = checks.probability("level", level)
    n = history.n_crawls
    with np.errstate(invalid="ignore", divide="ignore"):
        sensitivity = (
            history.total(history.interval * np.exp(-max_rate * history.interval)) / n
        )
        return np.sqrt(np.log(2 / (1 - level)) / (2 * n)) / sensitivity
