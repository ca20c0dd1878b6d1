"""How well a history determines the change rate."""

from __future__ import annotations

import warnings

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.errors import ConvergenceError, DegenerateHistoryWarning
from recrawl.kernels import batch as kernels
from recrawl.kernels import threads_for
from recrawl.science.estimators.batch import mle
from recrawl.science.processes import History
from recrawl.types import Values

__all__ = ["likelihood_interval"]


def likelihood_interval(
    history: History, *, level: float = 0.95, dispersion: ArrayLike = 1.0
) -> tuple[Values, Values]:
    r"""Likelihood-ratio confidence interval of the change rate.

    All rates whose log-likelihood is close to the maximum,

    .. math::
        \ell(\Delta) \ge \ell(\hat\Delta)
            - \varphi\,\chi^2_1(\mathrm{level}) / 2 ,

    of about nominal coverage where the dispersion :math:`\varphi` is right: 1 if
    changes are Poisson, else that of `estimators.dispersion`. A degenerate history
    has its maximum at the edge; there the interval is the set of rates that give
    these bits a probability of at least :math:`(1 - \mathrm{level})^\varphi` (for a
    Poisson page that never changed: up to -log(1 - level) / time, the "rule of
    three").

    Parameters
    ----------
    history : History
        In either form.
    level : float, default 0.95
        Confidence level, in (0, 1).
    dispersion : array_like, default 1.0
        Variance of the score in units of that of a Poisson page, positive; one
        number, or one for each page.

    Returns
    -------
    low, high : ndarray or float, shape ``history.shape``, 1/time
        Low is 0 without a change, high is inf with nothing but changes; both
        are NaN for a page without crawls.

    Raises
    ------
    ValueError
        A level outside (0, 1), a dispersion that is not positive and finite.
    ConvergenceError
        A limit was not found.

    Notes
    -----
    The plain form is `tests.recrawl.plain.likelihood_interval`. Of ten crawls at an
    interval in which one change is expected, an interval of level 0.95 covers
    0.9409 +- 0.0005 with ages, and 0.9552 with bits (measured).

    Examples
    --------
    >>> from recrawl.science.estimators import likelihood_interval
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 2.0, 1.0], [True, False, True])
    >>> low, high = likelihood_interval(history)
    >>> float(low.round(3)), float(high.round(3))
    (0.113, 2.233)
    """
    level = checks.probability("level", level)
    dispersion = checks.positive("dispersion", dispersion)
    dispersion = np.ravel(checks.for_pages("dispersion", dispersion, history.shape))
    terms = history.likelihood_terms()
    with warnings.catch_warnings(action="ignore", category=DegenerateHistoryWarning):
        rate = np.ravel(mle(history))
    low, high = np.empty_like(rate), np.empty_like(rate)
    # half a quantile of chi2(1), and the same for a degenerate page
    drops = scipy.special.gammaincinv(0.5, level), -np.log1p(-level)
    drops = [drop * dispersion for drop in drops]
    with threads_for(history.interval.size):
        kernels.likelihood_limits(rate, *drops, *terms, low, high)
    failed = np.isnan(low + high) & ~np.isnan(rate)
    if failed.any():
        raise ConvergenceError(
            f"{failed.sum()} of {rate.size} intervals did not converge", (low, high)
        )
    return history.by_page(low), history.by_page(high)
