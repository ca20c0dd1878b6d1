"""How well an estimator can do: information, variances, affinity, a radius."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import zeta

from .. import checks
from ..processes import History


def fisher_information(
    change_rate: ArrayLike,
    *,
    crawl_rate: ArrayLike | None = None,
    interval: ArrayLike | None = None,
) -> NDArray:
    r"""Fisher information of the bit of one crawl about the change rate.

    .. math:: I = \frac{w^2}{e^{\Delta w} - 1}, \qquad
        I = \frac{2 p}{\Delta^3} \zeta(3, 1 + p / \Delta)

    for crawls at an interval w, and at Poisson times of rate p, with Hurwitz's
    zeta function (derived). No unbiased estimator from n crawls has a variance
    below 1 / (n I); that of `mle` tends to it.

    Parameters
    ----------
    change_rate : array_like, 1/time, positive
        The change rate.
    crawl_rate : array_like, 1/time, optional
        Rate of crawls at Poisson times, positive.
    interval : array_like, time, optional
        Given interval between crawls instead, positive.

    Returns
    -------
    ndarray or float, time^2

    Examples
    --------
    >>> from paperlib.estimators import fisher_information
    >>> float((1 / fisher_information(5.0, crawl_rate=3.0)).round(1))
    59.2
    """
    rate = checks.numbers("change_rate", change_rate, above=True)
    if (crawl_rate is None) == (interval is None):
        raise ValueError("exactly one of crawl_rate and interval must be given")
    if interval is not None:
        w = checks.numbers("interval", interval, above=True)
        return w**2 * np.exp(-rate * w) / -np.expm1(-rate * w)
    p = checks.numbers("crawl_rate", crawl_rate, above=True)
    return 2 * p / rate**3 * zeta(3, 1 + p / rate)


def asymptotic_variances(
    change_rate: ArrayLike, *, crawl_rate: ArrayLike
) -> dict[str, NDArray]:
    r"""Asymptotic variance of each estimator, for crawls at Poisson times.

    After n crawls the variance is about :math:`\sigma^2 / n`, with this
    :math:`\sigma^2` (derived):

    - "MLE": 1 / `fisher_information`
    - "MM", `moment_matching`:
      :math:`\Delta (p + \Delta)^3 / (p (p + 2 \Delta))`
    - "LLN": :math:`\Delta (p + \Delta)^2 / p`

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time, positive
        They broadcast.

    Returns
    -------
    dict of str to ndarray or float, 1/time^2
    """
    mle = 1 / fisher_information(change_rate, crawl_rate=crawl_rate)
    rate, p = np.asarray(change_rate, float), np.asarray(crawl_rate, float)
    both = p + rate
    return {
        "MLE": mle,
        "MM": rate * both**3 / (p * (both + rate)),
        "LLN": rate * both**2 / p,
    }


def affinity(change_rate: float, other_rate: float, interval: ArrayLike) -> NDArray:
    r"""Affinity (Bhattacharyya) of the bits under two change rates.

    .. math:: \rho_n = \prod_{k=1}^{n} \Bigl(\sqrt{q_k q'_k}
        + \sqrt{(1 - q_k)(1 - q'_k)}\Bigr), \qquad
        q_k = e^{-\Delta w_k}, \quad q'_k = e^{-\Delta' w_k} .

    By Kakutani's theorem, infinitely many bits distinguish the two rates
    without error if and only if it tends to 0: the question of Lemma 2 of
    Upadhyay et al. (2020), for two rates (derived). The best test after n
    crawls errs with a probability between
    :math:`(1 - \sqrt{1 - \rho_n^2}) / 2` and :math:`\rho_n / 2`.

    Parameters
    ----------
    change_rate, other_rate : array_like, 1/time
        Non-negative; they broadcast with the intervals.
    interval : array_like, shape (..., n_crawls), time
        Intervals between crawls, chosen before any bit is seen, positive.

    Returns
    -------
    ndarray, shape (..., n_crawls)
        After each crawl: 1 where the bits have the same distribution under
        both rates, 0 where they distinguish the rates.
    """
    w = checks.numbers("interval", interval, above=True)
    a = w * checks.numbers("change_rate", change_rate)
    b = w * checks.numbers("other_rate", other_rate)
    factor = np.exp(-(a + b) / 2) + np.sqrt(np.expm1(-a) * np.expm1(-b))
    # rounding may leave a factor just above 1
    return np.cumprod(np.minimum(factor, 1.0), axis=-1)


def confidence_radius(
    history: History, *, max_rate: float, level: float = 0.95
) -> NDArray:
    r"""Radius around `moment_matching` of guaranteed coverage.

    .. math:: \Big[\frac{1}{n} \sum_n w_n e^{-\Delta_\max w_n}\Big]^{-1}
        \sqrt{\frac{\log(2 / \delta)}{2 n}},
        \qquad \delta = 1 - \mathrm{level},

    Lemma 3 of Upadhyay et al. (2020): the estimate, clipped to known bounds,
    is within the radius of the true rate with a probability of at least
    `level`. Valid for intervals chosen before any bit is seen; loose.

    Parameters
    ----------
    history : History
        In either form.
    max_rate : float, 1/time
        Upper bound of the true rate, positive.
    level : float, default 0.95
        Confidence level, in (0, 1].

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        NaN for a page without crawls.
    """
    max_rate = checks.number("max_rate", max_rate)
    level = checks.number("level", level, 0.0, 1.0)
    n, w = history.n_crawls, history.interval
    slope = history.total(w * np.exp(-max_rate * w))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(n / 2 * (np.log(2) - np.log1p(-level))) / slope
