r"""What a stale copy costs: objectives of crawling at equal intervals.

An objective says what a page costs per unit of time, c(t), when its last crawl
was a time t ago; c(0) = 0, and c never falls. What a crawl at t saves is the
**crawl value**, the utility of Olston and Pandey (2008, eq. 4), and for freshness
that of Busa-Fekete et al. (2025) without signals:

.. math:: V(t) = t\,c(t) - \int_0^t c(s)\,ds .

With the crawl rate :math:`\rho`, the mean cost and what one more crawl saves are

.. math:: J(\rho) = \rho \int_0^{1/\rho} c, \qquad -J'(\rho) = V(1/\rho) .

Changes are a Poisson process of rate :math:`\Delta`. The objectives are, for a
page of importance 1:

============= =================================== ===========
objective     cost per unit of time               limit of V
============= =================================== ===========
`freshness`   1 while the copy is stale           1 / Delta
`age`         time since the first change unseen  inf
`harmonic`    1 + 1/2 + ... + 1/n at n unseen     inf
============= =================================== ===========

Where the limit of V is finite, pages that change too fast for their importance are
never crawled. Relative errors are below 1e-11 for change_rate / crawl_rate from
1e-12 to 1e12; `rate` of `freshness` is less precise near the limit of V, where V
hardly depends on the time.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from recrawl.kernels import objectives as kernels
from recrawl.types import Values

__all__ = ["CODES", "cost", "gain", "rate"]

#: Numbers of the objectives in the kernels.
CODES = {
    "freshness": kernels.FRESHNESS,
    "age": kernels.AGE,
    "harmonic": kernels.HARMONIC,
}

# Of the mean over (0, x) of Ein(x) = sum_k (-1)^(k + 1) x^k / (k k!), up to x = 4:
# the last term is below 1e-19, and as terms grow to nine times the sum, one digit is
# lost. From there on exp1 is fast; at 1 it takes longer than the whole series.
_SMALL = 4.0
_POWERS = np.arange(1, 35)
_SERIES = -((-1.0) ** _POWERS) / _POWERS / special.factorial(_POWERS) / (_POWERS + 1)


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
    """
    if objective != "harmonic":
        return kernels.costs(CODES[objective], change_rate, crawl_rate)
    x = np.where(np.equal(change_rate, 0), 0.0, np.divide(change_rate, crawl_rate))
    mean = np.euler_gamma + np.log(x) + special.exp1(x) - 1 - np.expm1(-x) / x
    few = np.minimum(x, _SMALL)
    series = few * np.polynomial.polynomial.polyval(few, _SERIES)
    return np.where(x < _SMALL, series, mean)[()]


def gain(objective: str, change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
    """What one more crawl per unit of time saves, V(1 / crawl_rate).

    Parameters
    ----------
    objective : str
        A key of `CODES`.
    change_rate, crawl_rate : array_like, 1/time

    Returns
    -------
    float or ndarray
        In the unit of the cost times time.

    Examples
    --------
    >>> gain("age", 3.0, 5.0).round(4)
    np.float64(0.0065)
    """
    return kernels.gains(CODES[objective], change_rate, crawl_rate)


def rate(objective: str, change_rate: ArrayLike, gain: ArrayLike) -> Values:
    """Crawl rate at which one more crawl saves so much, the inverse of `gain`.

    Parameters
    ----------
    objective : str
        A key of `CODES`.
    change_rate : array_like, 1/time
    gain : array_like
        In the unit of `gain`.

    Returns
    -------
    float or ndarray, 1/time
        0 where no crawl saves so much.
    """
    v = 1 / np.sqrt(gain)
    return kernels.rates(CODES[objective], change_rate, 1.0, 0.0, np.inf, v)
