"""How well any estimator, and each of the papers', can do in the long run."""

import numpy as np
import scipy

from paperlib import checks

__all__ = ["asymptotic_variances", "fisher_information"]


def fisher_information(change_rate, *, crawl_rate):
    r"""Fisher information of one crawl at Poisson times about the change rate.

    .. math:: E\Big[w^2 \frac{q}{1 - q}\Big]
        = \frac{2 p}{\Delta^3}\,\zeta\Big(3, 1 + \frac{p}{\Delta}\Big),
        \qquad q = e^{-\Delta w}, \quad w \sim \mathrm{Exp}(p),

    with Hurwitz's zeta function (derived). No unbiased estimator from n
    crawls has a variance below 1 / (n x information); the MLE attains the
    bound asymptotically.

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time, positive
        They broadcast.

    Returns
    -------
    ndarray or float
        Information of one crawl, time^2.

    Raises
    ------
    ValueError
        A rate that is not positive and finite.

    Notes
    -----
    The plain form is `paperlib.reference.fisher_information`.

    Examples
    --------
    >>> from paperlib.estimators import fisher_information
    >>> float((1 / fisher_information(5.0, crawl_rate=3.0)).round(1))
    59.2
    """
    change_rate = checks.positive("change_rate", change_rate)
    crawl_rate = checks.positive("crawl_rate", crawl_rate)
    zeta = scipy.special.zeta(3, 1 + crawl_rate / change_rate)
    return 2 * crawl_rate / change_rate**3 * zeta


def asymptotic_variances(change_rate, *, crawl_rate, constant=1.0):
    r"""Asymptotic variance of each estimator, for one crawl at Poisson times.

    After many crawls n an estimate has the variance of this table divided by
    n (derived).

    ======  ===================================================================
    "MLE"   1 / `fisher_information`, the bound
    "MM"    :math:`E[q(1-q)] / E[w q]^2`, of `moment_matching`
    "LLN"   :math:`\Delta (\Delta + p)^2 / p`; also that of `Averaged` SA, and
            of SA with the best constant, (p + Delta) / p
    "SA"    :math:`p \Delta c^2 / (2 c p / (p + \Delta) - 1)` with steps c / k,
            inf where 2 c p <= p + Delta: there the error falls more slowly
    ======  ===================================================================

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time, positive
        They broadcast.
    constant : array_like, default 1.0
        The constant c of SA, positive.

    Returns
    -------
    dict of str to ndarray or float
        Variances by name of the estimator, 1/time^2.

    Raises
    ------
    ValueError
        A rate or constant that is not positive and finite.

    Notes
    -----
    The plain form is `paperlib.reference.asymptotic_variances`.

    Examples
    --------
    >>> from paperlib.estimators import asymptotic_variances
    >>> variances = asymptotic_variances(5.0, crawl_rate=3.0)
    >>> {name: float(value.round(1)) for name, value in variances.items()}
    {'MLE': 59.2, 'MM': 65.6, 'LLN': 106.7, 'SA': inf}
    """
    change_rate = checks.positive("change_rate", change_rate)
    crawl_rate = checks.positive("crawl_rate", crawl_rate)
    constant = checks.positive("constant", constant)
    both = crawl_rate + change_rate
    # means of q and of q^2
    unchanged, twice = crawl_rate / both, crawl_rate / (both + change_rate)
    # positive where the error falls as k^-1/2
    contraction = 2 * constant * unchanged - 1
    noise = constant**2 * crawl_rate * change_rate
    with np.errstate(divide="ignore"):
        sa = np.where(contraction > 0, noise / np.maximum(contraction, 0.0), np.inf)
    variances = {
        "MLE": 1 / fisher_information(change_rate, crawl_rate=crawl_rate),
        "MM": (unchanged - twice) * both**4 / crawl_rate**2,
        "LLN": change_rate * both**2 / crawl_rate,
        "SA": sa,
    }
    return {name: value[()] for name, value in variances.items()}
