"""Means over the posterior of a change rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.types import Array

__all__ = ["expected"]

# Of Gauss and Hermite. With 15 the error of the mean freshness is below 4e-4
# for standard deviations up to 2 (measured).
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def expected(
    function: Callable[..., Any],
    change_rate: Array,
    log_stderr: Array | None = None,
    log_rate: Array | None = None,
) -> Array:
    r"""Mean of a function of the change rate over its posterior.

    The logarithm of the rate is taken as normal with the mean and the standard
    deviation that it has in the posterior, so that a sum by the rule of Gauss and
    Hermite with 15 nodes will do:

    .. math:: \frac{1}{\sqrt{2\pi}} \int f(m e^{\sigma z}) e^{-z^2/2}\,dz .

    Where its mean ln m is not known, it is the logarithm of the estimate, which is too
    low: the posterior of few bits has a long right tail.

    Parameters
    ----------
    function : callable
        From change rates to an array of the same shape.
    change_rate : ndarray, 1/time
        Estimated change rates, the modes of their posteriors.
    log_stderr : ndarray, optional
        Standard deviations of the logarithm of the rate; without them the
        estimates are taken as exact.
    log_rate : ndarray, optional
        Means of the logarithm of the rate, NaN where they are not known.

    Returns
    -------
    ndarray
        The means.

    Examples
    --------
    >>> rate, stderr = np.array([1.0, 1.0]), np.array([0.0, 1.0])
    >>> expected(lambda r: r, rate, stderr, np.log([2.0, np.nan])).round(2)
    array([2.  , 1.65])
    """
    if log_stderr is None:
        return function(change_rate)
    middle = change_rate
    if log_rate is not None:
        middle = np.where(np.isnan(log_rate), change_rate, np.exp(log_rate))
    terms = zip(_NODES, _WEIGHTS, strict=True)
    return sum(w * function(middle * np.exp(z * log_stderr)) for z, w in terms)
