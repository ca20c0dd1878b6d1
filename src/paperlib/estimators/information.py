"""Information in crawls: Fisher information, Lemmas 2 and 3 of Upadhyay et al. (2020).

Lemma 2 uses disjoint blocks to say which sequences of crawls allow learning. Lemma 3
has a confidence radius.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import zeta

from .. import checks
from ..processes import History


def fisher_information(change_rate: ArrayLike, *, crawl_rate: ArrayLike) -> NDArray:
    r"""Fisher information of the bit of one crawl about the change rate.

    .. math:: I = E \frac{w^2}{e^{\Delta w} - 1}
        = \frac{2 p}{\Delta^3} \zeta(3, 1 + p / \Delta)

    The expectation is over the interval w before a crawl, for crawls at Poisson times
    of rate p, and zeta is Hurwitz's function (derived). No unbiased estimator from n
    crawls has a variance below 1 / (n I), the asymptotic variance of `mle`.

    Parameters
    ----------
    change_rate, crawl_rate : array_like, 1/time, positive
        They broadcast.

    Returns
    -------
    ndarray or float, time^2

    Examples
    --------
    >>> from paperlib.estimators import fisher_information
    >>> float((1 / fisher_information(5.0, crawl_rate=3.0)).round(1))
    59.2
    """
    rate, p = checks.broadcast(
        above=True, change_rate=change_rate, crawl_rate=crawl_rate
    )
    return 2 * p / rate**3 * zeta(3, 1 + p / rate)


def disjoint_blocks(mass: ArrayLike) -> NDArray:
    r"""Borders of consecutive blocks of crawls, each of a mass of at least 1.

    The disjoint subsets of Lemma 2 of Upadhyay et al. (2020) (derived): the mass
    of crawl n is :math:`w_n` if intervals are short, and
    :math:`e^{-\Delta w_n}`, with a guess of the change rate, if they are long.
    There are infinitely many blocks if and only if the masses have an infinite sum.

    Parameters
    ----------
    mass : array_like, shape (n_crawls,)
        Mass of each crawl, non-negative.

    Returns
    -------
    ndarray of int, shape (n_blocks + 1,)
        Block k has the crawls ``borders[k]:borders[k + 1]``. Crawls after the last
        border are in no block.

    Examples
    --------
    >>> from paperlib.estimators import disjoint_blocks
    >>> disjoint_blocks([0.5, 0.6, 1.0, 0.2, 0.9, 0.3])
    array([0, 2, 3, 5])
    """
    borders = [0]
    total = 0.0
    for n, one in enumerate(checks.numbers("mass", mass), start=1):
        total += one
        if total >= 1:
            borders.append(n)
            total = 0.0
    return np.array(borders)


def block_share(absent: ArrayLike, borders: NDArray) -> NDArray:
    r"""Share of the blocks of `disjoint_blocks` in which an event occurs.

    The statistic of Lemma 2 of Upadhyay et al. (2020) and its expectation
    (derived), for the event "a change" if intervals are short and "no change" if
    they are long:

    .. math:: \frac1K \sum_{k=1}^{K} \Bigl(1 - \prod_{n \in I_k} a_n\Bigr) .

    Blocks are independent, so that the statistic approaches its expectation as K
    grows. The expectation is strictly monotone in the change rate.

    Parameters
    ----------
    absent : array_like, shape (..., n_crawls)
        For the statistic, whether the event is absent at each crawl. For the
        expectation, the probability that it is absent.
    borders : ndarray of int, shape (n_blocks + 1,)
        At least one block.

    Returns
    -------
    ndarray, shape (...)
    """
    borders = np.asarray(borders)
    inside = np.asarray(absent)[..., : borders[-1]]
    return 1 - np.multiply.reduceat(inside, borders[:-1], axis=-1).mean(axis=-1)


def confidence_radius(
    history: History, *, max_rate: float, level: float = 0.95
) -> NDArray:
    r"""Radius around the estimate of `moment_matching` with guaranteed coverage.

    .. math:: \Big[\frac{1}{n} \sum_n w_n e^{-\Delta_\max w_n}\Big]^{-1}
        \sqrt{\frac{\log(2 / \delta)}{2 n}},
        \qquad \delta = 1 - \mathrm{level},

    Lemma 3 of Upadhyay et al. (2020): the estimate, clipped to known bounds,
    is within the radius of the true rate with a probability of at least
    `level` (derived). It is loose, and valid if intervals are chosen before any bit is
    known. For crawls at Poisson times of rate p the first factor tends to
    :math:`(p + \Delta_\max)^2 / p`.

    Parameters
    ----------
    history : History
        Dense or ragged.
    max_rate : float, 1/time
        Upper bound of the true rate, positive.
    level : float, default 0.95
        Confidence level, in (0, 1].

    Returns
    -------
    ndarray or float, shape ``history.shape``, 1/time
        NaN for a page without crawls.
    """
    max_rate = checks.number("max_rate", max_rate, above=True)
    level = checks.number("level", level, 0.0, 1.0, above=True)
    n = history.n_crawls
    w = history.interval
    slope = history.total(w * np.exp(-max_rate * w))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(n / 2 * (np.log(2) - np.log1p(-level))) / slope
