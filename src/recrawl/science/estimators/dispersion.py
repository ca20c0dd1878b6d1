"""How much less the bits of a page determine its rate than Poisson bits."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import batch as kernels
from recrawl.kernels import threads_for
from recrawl.science.processes import History
from recrawl.types import Values

__all__ = [
    "dispersion",
    "log_information",
    "log_stderr",
    "mean_log_rate",
    "pooled_dispersion",
    "shrunk_dispersion",
]

# Blocks of a history: long ones hold the dependence of their crawls, many blocks
# estimate the dispersion of one page well. Of 4, 5 and 8, 4 covered best where changes
# cluster over some ten crawls, and elsewhere as well (benchmarks/coverage.py).
_N_BLOCKS = 4
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
        that found a change, and the number of those that found none. 0 where
        nothing is known; the noise of `value` has a relative variance of about
        2 / `freedom`.

    Raises
    ------
    ValueError
        Change rates that are no numbers, or of another shape.

    Notes
    -----
    The plain form is `tests.recrawl.plain.dispersion`. With one change, or
    one crawl without a change, the dispersion would be 1 whatever the process is:
    hence the two numbers in the degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import dispersion, mle
    >>> from recrawl.science.processes import History
    >>> bursts = History(np.ones(40), np.repeat([True, False] * 2, 10))
    >>> value, freedom = dispersion(bursts, mle(bursts))
    >>> float(value.round(3)), float(freedom)
    (13.333, 3.0)
    """
    terms = history.likelihood_terms()
    rate = checks.numbers("change_rate", change_rate)
    rate = np.ravel(checks.for_pages("change_rate", rate, history.shape))
    value, freedom = np.empty(rate.size), np.empty(rate.size)
    with threads_for(history.interval.size):
        kernels.dispersions(rate, _N_BLOCKS, *terms, value, freedom)
    return history.by_page(value), history.by_page(freedom)


def log_information(history: History, change_rate: ArrayLike) -> Values:
    r"""Observed information of the logarithm of the change rate.

    .. math:: J = \sum_\mathrm{unchanged} x_n
        + \sum_\mathrm{changed} r_n (x_n + r_n - 1), \qquad
        x_n = \Delta w_n, \quad r_n = \frac{x_n}{e^{x_n} - 1} ,

    minus the second derivative of the log-likelihood, which is positive at every
    rate because the log-likelihood is concave in the logarithm of the rate.

    Parameters
    ----------
    history : History
        In either form.
    change_rate : array_like, shape ``history.shape``, 1/time
        Positive.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        0 for a page without crawls.

    Raises
    ------
    ValueError
        A rate that is not positive and finite.

    Notes
    -----
    The plain form is `tests.recrawl.plain.log_information`.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import log_information
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 1.0], [True, False])
    >>> float(log_information(history, np.log(2)).round(4))
    0.9609
    """
    rate = checks.positive("change_rate", change_rate)
    return _each_page(kernels.log_information, history, change_rate=rate)


def _each_page(kernel, history, **of_pages):
    """What a kernel finds of each page from the likelihood and numbers of pages."""
    flat = [
        np.ravel(checks.for_pages(name, each, history.shape))
        for name, each in of_pages.items()
    ]
    out = np.empty(flat[0].size)
    with threads_for(history.interval.size):
        kernel(*flat, *history.likelihood_terms(), out)
    return history.by_page(out)


def log_stderr(information: ArrayLike, dispersion: ArrayLike = 1.0) -> Values:
    r"""Standard deviation of the logarithm of a change rate in its posterior.

    .. math:: \sqrt{\psi_1(1 + J / \varphi)} ,

    with the trigamma function. It is that of the gamma distribution whose density
    has the same mode, and there the same curvature in the logarithm, as the
    posterior: the likelihood to the power :math:`1 / \varphi`, all rates being
    equally likely before the crawls and pseudo-observations in it (derived). It is
    exact where all changes are known by their ages.

    Parameters
    ----------
    information : array_like
        J of `log_information` at the posterior mode, non-negative.
    dispersion : array_like, default 1.0
        As `dispersion` estimates it, positive.

    Returns
    -------
    ndarray or float
        The standard deviation.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The plain form is `tests.recrawl.plain.log_stderr`.

    Examples
    --------
    >>> from recrawl.science.estimators import log_stderr
    >>> log_stderr([0.0, 4.0, 100.0]).round(3)
    array([1.283, 0.47 , 0.1  ])
    """
    information = checks.non_negative("information", information)
    dispersion = checks.positive("dispersion", dispersion)
    return np.sqrt(scipy.special.polygamma(1, 1 + information / dispersion))[()]


def mean_log_rate(
    history: History, change_rate: ArrayLike, dispersion: ArrayLike = 1.0
) -> Values:
    r"""Mean of the logarithm of a change rate in its posterior.

    .. math:: \frac{\int \ln\Delta \; L(\Delta)^{1/\varphi}\,d\Delta}
        {\int L(\Delta)^{1/\varphi}\,d\Delta} ,

    with the likelihood L of the history, all rates being equally likely before
    it. Where bits are few, and most of them changed, the posterior has a long right
    tail, and this mean lies far above the logarithm of the mode: many changes in
    one interval look like one.

    Parameters
    ----------
    history : History
        In either form, with the pseudo-observations of a prior as
        `priors.FakeIntervals.observed` adds them.
    change_rate : array_like, shape ``history.shape``, 1/time
        Positive; about the maximum of the likelihood, where the sum starts.
    dispersion : array_like, default 1.0
        As `dispersion` estimates it, positive.

    Returns
    -------
    ndarray or float, shape ``history.shape``
        With an error below 2e-3. inf where no crawl was unchanged, for
        then very high rates are as likely as others.

    Raises
    ------
    ValueError
        A rate or dispersion that is not positive and finite.

    Notes
    -----
    The plain form is `tests.recrawl.plain.mean_log_rate`.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import mean_log_rate
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 1.0], [True, False])
    >>> float(mean_log_rate(history, np.log(2)).round(3))
    0.116
    """
    rate = checks.positive("change_rate", change_rate)
    dispersion = checks.positive("dispersion", dispersion)
    return _each_page(
        kernels.mean_log_rate, history, change_rate=rate, dispersion=dispersion
    )


def pooled_dispersion(value: ArrayLike, freedom: ArrayLike) -> tuple[float, float]:
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
    value, freedom : array_like, shape (n_pages,)
        As `dispersion` gives them.

    Returns
    -------
    mean : float
        Mean dispersion; 1 where nothing is known.
    weight : float
        Degrees of freedom that it counts as beside a page's own; inf where pages
        do not differ.

    Raises
    ------
    ValueError
        Numbers that are not finite and non-negative.

    Examples
    --------
    >>> from recrawl.science.estimators import pooled_dispersion
    >>> mean, weight = pooled_dispersion([1.0, 9.0, 1.0, 9.0], [7.0] * 4)
    >>> round(mean, 3), round(weight, 2)
    (3.333, 5.83)
    """
    value, freedom = checks.broadcast(
        value=np.atleast_1d(checks.non_negative("value", value)),
        freedom=checks.non_negative("freedom", freedom),
    )
    total = freedom.sum()
    mean = (value @ freedom + _MODEL_WEIGHT) / (total + _MODEL_WEIGHT)
    # E (value - mean)^2 = tau^2 + 2 (mean^2 + tau^2) / freedom
    excess = freedom @ (value - mean) ** 2 - 2 * mean**2 * np.count_nonzero(freedom)
    if excess <= 0:
        return float(mean), np.inf
    variance = excess / (total + 2 * np.count_nonzero(freedom))
    return float(mean), float(4 + 2 * mean**2 / variance)


def shrunk_dispersion(
    value: ArrayLike, freedom: ArrayLike, mean: ArrayLike, weight: ArrayLike
) -> Values:
    r"""Dispersion of pages, shrunk to a mean.

    .. math:: \tilde\varphi = \frac{\nu \hat\varphi + \nu_0 \varphi_0}{\nu + \nu_0}

    with the degrees of freedom of the page and those of the mean.

    Parameters
    ----------
    value, freedom : array_like
        As `dispersion` gives them.
    mean, weight : array_like
        As `pooled_dispersion` gives them; they broadcast with the pages.

    Returns
    -------
    ndarray or float
        Between `value` and `mean`.

    Raises
    ------
    ValueError
        Numbers that are negative or no numbers; shapes that do not broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import shrunk_dispersion
    >>> shrunk_dispersion([5.0, 5.0, 5.0], [0.0, 7.0, 7.0], 1.0, [7.0, 7.0, np.inf])
    array([1., 3., 1.])
    """
    value, freedom, mean, weight = checks.broadcast(
        value=checks.non_negative("value", value),
        freedom=checks.non_negative("freedom", freedom),
        mean=checks.non_negative("mean", mean),
        weight=checks.non_negative_or_inf("weight", weight),
    )
    # without degrees of freedom on either side it is the mean
    own = np.divide(
        freedom, freedom + weight, where=freedom > 0, out=np.zeros(freedom.shape)
    )
    return (mean + own * (value - mean))[()]
