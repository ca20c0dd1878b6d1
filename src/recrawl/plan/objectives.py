r"""What a stale copy costs: objectives of crawling at equal intervals.

An objective says what a page costs per unit of time, c(t), when its last crawl
was a time t ago; c(0) = 0, and c never falls. What a crawl at t saves is the
**crawl value**, the utility of Olston and Pandey (2008, eq. 4), and for freshness
that of Busa-Fekete et al. (2025) without signals:

.. math:: V(t) = t\,c(t) - \int_0^t c(s)\,ds .

With the crawl rate :math:`\rho`, the mean cost and what one more crawl saves are

.. math:: J(\rho) = \rho \int_0^{1/\rho} c, \qquad -J'(\rho) = V(1/\rho) .

Changes are a Poisson process of rate :math:`\Delta`. With :math:`x = \Delta t`, the
objectives are, for a page of importance 1:

=========== ============================== =========================================
objective   cost per unit of time          crawl value
=========== ============================== =========================================
`freshness` 1 while the copy is stale      (1 - (1 + x) exp(-x)) / Delta
`age`       time since the first change    (x^2 / 2 - 1 + (1 + x) exp(-x)) / Delta^2
`harmonic`  1 + 1/2 + ... + 1/n, n changes (x - 1 + exp(-x)) / Delta
=========== ============================== =========================================

The crawl value of freshness has the limit 1 / Delta. Pages that change too fast for
their importance are therefore never crawled.

Without cancellation for small x, the three are differences of probabilities
:math:`R^i(x)` that a Poisson number of mean x exceeds i, and of :math:`x R^0(x)` or
:math:`x^2 R^0(x) / 2`. The largest term is at most seven times the result.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from paperlib.lemma_4 import inverse_value, residual
from recrawl.compiled import compiled, ufunc
from recrawl.types import Values

__all__ = ["CODES", "cost", "rates"]

#: Numbers of the objectives in the compiled functions.
CODES = {"freshness": 0, "age": 1, "harmonic": 2}
_FRESHNESS, _AGE, _HARMONIC = CODES.values()

_CLOSE = 1e-5  # relative step after which Newton's method has an error of 1e-10
_SMALL = 1e-4  # below this x two terms of a series are precise to 1e-9


@compiled
def _profile(objective, x):
    """The crawl value at x = change_rate * time, for change_rate = 1."""
    any_change = -math.expm1(-x)
    if objective == _AGE:
        return x * x / 2 * any_change - residual(2, x)
    return x * any_change - residual(1, x)


@compiled
def _inverse_profile(objective, y):
    """The x at which the profile reaches y; inf if it never does.

    The profiles of age and harmonic cost are convex. After one step of Newton's
    method, further steps therefore fall towards the root.
    """
    if not 0 < y < np.inf:
        return y
    if objective == _FRESHNESS:
        return inverse_value(y) if y < 1 else np.inf
    x = np.cbrt(3 * y) if objective == _AGE else math.sqrt(2 * y)  # root for small y
    step = np.inf
    while abs(step) > _CLOSE * x:
        slope = -math.expm1(-x)
        if objective == _AGE:
            slope *= x
        step = (_profile(objective, x) - y) / slope
        x -= step
    return x


@ufunc("f8(i8,f8,f8,f8,f8,f8)")
def rates(objective, change_rate, value, low, high, v):
    """The crawl rate, within its limits, at which value * V(1 / crawl_rate) = 1 / v^2.

    Parameters
    ----------
    objective : array_like of int
        Its number in `CODES`.
    change_rate, value : array_like
        1/time, and any unit.
    low, high : array_like, 1/time
        The limits.
    v : array_like
        In the unit that follows.

    Returns
    -------
    float or ndarray, 1/time
    """
    if change_rate == 0 or value == 0 or v == 0:
        return low
    level = 1 / v / v / value * change_rate
    if objective == _AGE:
        level *= change_rate
    return min(max(change_rate / _inverse_profile(objective, level), low), high)


@np.errstate(all="ignore")  # pages without crawls, or without changes
def cost(objective: str, change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
    """Mean cost of a page, J.

    Parameters
    ----------
    objective : str
        A key of `CODES`.
    change_rate, crawl_rate : array_like, 1/time

    Returns
    -------
    float or ndarray
        Time for `age`, else no unit. 0 for a page that never changes.

    Examples
    --------
    >>> cost("age", 2.0, 2.0).round(4)
    np.float64(0.0661)
    """
    x = np.divide(change_rate, crawl_rate)
    stale = -np.expm1(-x) - special.gammainc(2, x) / x
    if objective == "freshness":
        found = stale
    elif objective == "age":
        share = special.gammainc(3, x) / x / x + stale - special.gammainc(1, x) / 2
        found = share / crawl_rate
    else:
        # The mean over (0, x) of Ein, the integral of (1 - exp(-s)) / s.
        ein = np.euler_gamma + np.log(x) + special.exp1(x)
        found = np.where(x < _SMALL, x / 2 * (1 - x / 6), ein - stale)
    return np.where(np.equal(change_rate, 0), 0.0, found)[()]
