"""Variance inflation of the estimated rate when changes are not Poisson."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recrawl.log.history import History
from recrawl.rates import likelihood_kernels as kernels
from recrawl.rates.likelihood import each_page
from recrawl.types import Array, Values

__all__ = ["dispersion", "pooled_dispersion", "shrunk_dispersion"]

# In the mean dispersion of a log, the model's dispersion 1 has the weight of this many
# degrees of freedom, so that a few crawls do not determine the mean (our choice).
_MODEL_WEIGHT = 20.0


def dispersion(history: History, change_rate: ArrayLike) -> tuple[Values, Values]:
    r"""Variance of a page's score, in units of that of a Poisson page.

    The crawls of a page are cut into at most 4 blocks of neighbours with about
    equal information. With the score (the slope of the log-likelihood in the
    logarithm of the rate) and the expected information of a block,

    .. math:: S_b = \sum_{n \in b} \begin{cases}
        x_n / (e^{x_n} - 1) & \text{changed} \\ -x_n & \text{unchanged}
        \end{cases}, \qquad
        V_b = \sum_{n \in b} \frac{x_n^2}{e^{x_n} - 1}, \qquad x_n = \Delta w_n ,

    shares :math:`s_b = V_b / V` of the sum of the latter, and the observed
    information J of `log_information`, the dispersion is

    .. math:: \hat\varphi = \frac{\sum_b (S_b - s_b S)^2}
        {J\,(1 - \sum_b s_b^2)} , \qquad S = \sum_b S_b .

    It is about 1 if changes are Poisson, whatever chose the intervals; above 1 if
    they cluster over times up to a block, and below 1 if they are regular. The
    sandwich variance of the logarithm of `mle` is :math:`\varphi / J` (textbook:
    M-estimation; batch means).

    Parameters
    ----------
    history : History
        In either form.
    change_rate : array_like, shape ``history.shape``, 1/time
        As an estimator gives it; where it is 0, inf or NaN, nothing is known.

    Returns
    -------
    value : ndarray or float, shape ``history.shape``
        The dispersion; 1 where nothing is known.
    freedom : ndarray or float, shape ``history.shape``
        Its degrees of freedom, whole: one less than the smallest of the
        effective number of blocks :math:`1 / \sum s_b^2`, the number of crawls
        that found a change, and the number of those that found none (with one of
        either the dispersion would be 1 whatever the process is). 0 where nothing is
        known; the noise of `value` has a relative variance of about 2 / `freedom`.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.rates.dispersion import dispersion
    >>> from recrawl.rates.likelihood import mle
    >>> from recrawl.log.history import History
    >>> bursts = History(np.ones(40), np.repeat([True, False] * 2, 10))
    >>> value, freedom = dispersion(bursts, mle(bursts))
    >>> float(value.round(3)), float(freedom)
    (13.333, 3.0)
    """
    value, freedom = each_page(kernels.dispersions, history, change_rate, n=2)
    return value[()], freedom[()]


def pooled_dispersion(value: Array, freedom: Array) -> tuple[float, float]:
    r"""Mean dispersion of a log's pages, and how much they differ.

    The mean weights pages by their degrees of freedom :math:`\nu_i`, and the
    model's dispersion 1 by 20. The squared differences from the mean
    :math:`\varphi_0` are larger than noise alone would cause; the excess is
    the variance :math:`\tau^2` of the true dispersions of the pages. If these
    dispersions are drawn from a scaled inverse chi-squared distribution with
    this variance, it has

    .. math:: \nu_0 = 4 + 2 \varphi_0^2 / \tau^2

    degrees of freedom (empirical Bayes, by moments; textbook).

    Parameters
    ----------
    value, freedom : ndarray, shape (n_pages,)
        As `dispersion` gives them.

    Returns
    -------
    mean : float
        Mean dispersion; 1 where nothing is known.
    weight : float
        Degrees of freedom that it counts as beside a page's own; inf where pages
        do not differ.

    Examples
    --------
    >>> mean, weight = pooled_dispersion(np.array([1.0, 9.0] * 2), np.full(4, 7.0))
    >>> round(mean, 3), round(weight, 2)
    (3.333, 5.83)
    """
    total, n = freedom.sum(), np.count_nonzero(freedom)
    mean = (value @ freedom + _MODEL_WEIGHT) / (total + _MODEL_WEIGHT)
    # E (value - mean)^2 = tau^2 + 2 (mean^2 + tau^2) / freedom
    excess = freedom @ (value - mean) ** 2 - 2 * mean**2 * n
    if excess <= 0:
        return float(mean), np.inf
    return float(mean), float(4 + 2 * mean**2 * (total + 2 * n) / excess)


def shrunk_dispersion(
    value: Array, freedom: Array, mean: ArrayLike, weight: float
) -> Array:
    r"""Dispersion of pages, shrunk to a mean.

    .. math:: \tilde\varphi = \frac{\nu \hat\varphi + \nu_0 \varphi_0}{\nu + \nu_0}

    with the degrees of freedom of the page and those of the mean.

    Parameters
    ----------
    value, freedom : ndarray
        As `dispersion` gives them.
    mean, weight : array_like, float
        As `pooled_dispersion` gives them; the mean may be one for each page.

    Returns
    -------
    ndarray
        Between `value` and `mean`.

    Examples
    --------
    >>> shrunk_dispersion(np.array([5.0, 5.0]), np.array([0.0, 7.0]), 1.0, 7.0)
    array([1., 3.])
    """
    return mean + freedom / (freedom + weight) * (value - mean)
