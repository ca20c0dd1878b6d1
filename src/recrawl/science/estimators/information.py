"""How well any estimator, and each of the papers', can do."""

from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.types import Array, Values

__all__ = ["affinity", "asymptotic_variances", "fisher_information"]


def affinity(
    change_rate: ArrayLike, other_rate: ArrayLike, interval: ArrayLike
) -> Array:
    r"""Affinity of the bits of a page under two change rates, after each crawl.

    Crawls after intervals :math:`w_1, w_2, \ldots` that are given in advance
    find no change with probabilities :math:`q_k = e^{-\Delta w_k}` under one
    rate and :math:`q'_k = e^{-\Delta' w_k}` under the other. The affinity
    (Bhattacharyya coefficient) of the first n bits is

    .. math:: \rho_n = \prod_{k=1}^{n} \Bigl(\sqrt{q_k q'_k}
              + \sqrt{(1 - q_k)(1 - q'_k)}\Bigr) .

    It is 1 if the bits have the same distribution under both rates, and 0 if
    they distinguish the rates without error. By Kakutani's theorem the whole
    sequence of bits does so if and only if the affinity tends to 0: this is
    the question of Lemma 2 of [aaai20]_, for two rates (derived).

    Parameters
    ----------
    change_rate, other_rate : array_like, shape (...), 1/time, positive
        The two change rates.
    interval : array_like, shape (..., n_crawls), time, positive
        Intervals between crawls; the rates broadcast against their leading
        axes.

    Returns
    -------
    ndarray, shape (..., n_crawls)
        The affinity after each crawl, in [0, 1], falling.

    Raises
    ------
    ValueError
        A rate or an interval that is not positive and finite.

    Notes
    -----
    The best test of the one rate against the other, both equally likely
    beforehand, errs with a probability between
    :math:`(1 - \sqrt{1 - \rho_n^2}) / 2` and :math:`\rho_n / 2`.

    The plain form is `tests.plain.affinity`. A factor near 1 is computed
    as 1 minus a squared Hellinger distance without cancellation, so that short
    intervals lose no digits.

    Examples
    --------
    >>> from recrawl.science.estimators import affinity
    >>> affinity(1.0, 1.5, [1.0, 1.0, 1.0]).round(4)
    array([0.9873, 0.9747, 0.9623])
    """
    change_rate = checks.positive("change_rate", change_rate)[..., np.newaxis]
    other_rate = checks.positive("other_rate", other_rate)[..., np.newaxis]
    interval = checks.positive("interval", interval)
    low = np.minimum(change_rate, other_rate) * interval  # rates in either order
    apart = np.abs(other_rate - change_rate) * interval
    found_low, found_high = -np.expm1(-low), -np.expm1(-(low + apart))
    factor = np.exp(-low - apart / 2) + np.sqrt(found_low * found_high)
    # Near 1 by its distance from 1: half the squared differences of the square
    # roots of the probabilities, in which nothing cancels.
    unchanged = np.exp(-low / 2) * -np.expm1(-apart / 2)
    changed = np.exp(-low) * -np.expm1(-apart)
    changed /= np.sqrt(found_low) + np.sqrt(found_high)
    distance = np.minimum((unchanged**2 + changed**2) / 2, 0.5)
    logarithm = np.where(distance < 0.5, np.log1p(-distance), np.log(factor))
    return np.exp(np.cumsum(logarithm, axis=-1))


def fisher_information(
    change_rate: ArrayLike,
    *,
    crawl_rate: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    observation: Literal["bit", "age", "last n", "count"] = "bit",
    n_entries: int | None = None,
) -> Values:
    r"""Fisher information of one crawl about the change rate.

    With the probability of what a crawl observes, it is

    .. math:: I(\Delta) = E\left[\left(
              \frac{\partial \ln P}{\partial \Delta}\right)^2\right] .

    For crawls at an interval w, with :math:`x = \Delta w`, and for crawls at
    Poisson times of rate p, with :math:`r = \Delta / (\Delta + p)` (derived), it is
    :math:`\Delta^{-2}` times

    ========  ==================================  ===============================
    "bit"     :math:`x^2 / (e^x - 1)`             :math:`2 (p / \Delta)\,
                                                  \zeta(3, 1 + p / \Delta)`
    "age"     :math:`1 - e^{-x}`                  r
    "last n"  :math:`\sum_{j=1}^N P(M \ge j)`     :math:`r (1 - r^N) / (1 - r)`
    "count"   x                                   :math:`\Delta / p`
    ========  ==================================  ===============================

    with Hurwitz's zeta function and M, Poisson with mean x. "age" is the age of the
    last change, "last n" are the times of the last N changes, "count" is the number
    of changes. No unbiased estimator from n crawls has a variance below
    1 / (n x information); the MLE attains the bound asymptotically. The
    information of a bit is largest at x = 1.59; that of an age never falls as the
    interval grows.

    Parameters
    ----------
    change_rate : array_like, 1/time, positive
        The change rate.
    crawl_rate : array_like, 1/time, optional
        Rate of crawls at Poisson times, positive; broadcasts with the change rate.
    interval : array_like, time, optional
        Given interval between crawls instead, positive; broadcasts too.
    observation : {"bit", "age", "last n", "count"}, default "bit"
        What a crawl reveals.
    n_entries : int, optional
        The number N; needed for "last n", and for nothing else.

    Returns
    -------
    ndarray or float
        Information of one crawl, time^2.

    Raises
    ------
    ValueError
        A rate or interval that is not positive and finite; both or neither of
        crawl_rate and interval; another observation; n_entries that is missing or
        without use.

    Notes
    -----
    The plain forms are `tests.plain.fisher_information`, of bits at Poisson
    times, and `tests.recrawl.plain.observed_information`.

    Examples
    --------
    >>> from recrawl.science.estimators import fisher_information
    >>> float((1 / fisher_information(5.0, crawl_rate=3.0)).round(1))
    59.2
    >>> float(fisher_information(1.0, interval=2.0, observation="age").round(4))
    0.8647
    """
    change_rate = checks.positive("change_rate", change_rate)
    if (crawl_rate is None) == (interval is None):
        raise ValueError("exactly one of crawl_rate and interval must be given")
    checks.one_of("observation", observation, ("bit", "age", "last n", "count"))
    if (observation == "last n") != (n_entries is not None):
        raise ValueError(
            f"n_entries must be given for 'last n' alone, got {n_entries!r} "
            f"for {observation!r}"
        )
    n = None if n_entries is None else checks.count("n_entries", n_entries)
    if interval is None:
        ratio = change_rate / checks.positive("crawl_rate", crawl_rate)
        relative = _at_poisson_times(ratio, observation, n)
    else:
        x = change_rate * checks.positive("interval", interval)
        relative = _at_intervals(x, observation, n)
    return relative / change_rate**2


def _at_poisson_times(ratio, observation, n_entries):
    """Information times the squared rate; `ratio` is the rate over that of crawls."""
    if observation == "bit":
        return 2 / ratio * scipy.special.zeta(3, 1 + 1 / ratio)
    seen = ratio / (1 + ratio)
    if observation == "count":
        return ratio
    # r (1 - r^N) / (1 - r), with log(r) = -log(1 + 1 / ratio)
    return (
        seen
        if n_entries is None
        else -ratio * np.expm1(-n_entries * np.log1p(1 / ratio))
    )


def _at_intervals(x, observation, n_entries):
    """Information times the squared rate, at `x` expected changes."""
    if observation == "bit":
        # not x^2, which is 0 below 1e-162
        return x * np.exp(-x) * (x / -np.expm1(-x))
    if observation == "age":
        return -np.expm1(-x)
    if observation == "count":
        return x
    # E min(M, N) = x P(M < N) + N P(M > N)
    fewer = scipy.special.gammaincc(n_entries, x)
    return x * fewer + n_entries * scipy.special.gammainc(n_entries + 1, x)


def asymptotic_variances(
    change_rate: ArrayLike, *, crawl_rate: ArrayLike, constant: ArrayLike = 1.0
) -> Values:
    r"""Asymptotic variance of each estimator, for one crawl at Poisson times.

    For the estimate after many crawls n at Poisson times of rate p,

    .. math:: \sqrt n\,(\hat\Delta_n - \Delta) \to N(0, \sigma^2),
              \qquad q = e^{-\Delta w},

    with the variance :math:`\sigma^2` of this table (derived):

    ======  ===================================================================
    "MLE"   1 / `fisher_information`, the bound
    "MM"    :math:`E[q(1-q)] / E[w q]^2`, of `moment_matching`
    "LLN"   :math:`\Delta (\Delta + p)^2 / p`; also that of averaged SA, and
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
    The plain form is `tests.plain.asymptotic_variances`.

    Examples
    --------
    >>> from recrawl.science.estimators import asymptotic_variances
    >>> variances = asymptotic_variances(5.0, crawl_rate=3.0)
    >>> {name: float(value.round(1)) for name, value in variances.items()}
    {'MLE': 59.2, 'MM': 65.6, 'LLN': 106.7, 'SA': inf}
    """
    change_rate = checks.positive("change_rate", change_rate)
    crawl_rate = checks.positive("crawl_rate", crawl_rate)
    constant = checks.positive("constant", constant)
    both = crawl_rate + change_rate
    # positive where the error falls as k^-1/2
    contraction = 2 * constant * (crawl_rate / both) - 1
    noise = constant**2 * crawl_rate * change_rate
    with np.errstate(divide="ignore"):
        sa = np.where(contraction > 0, noise / np.maximum(contraction, 0.0), np.inf)
    variances = {
        "MLE": 1 / fisher_information(change_rate, crawl_rate=crawl_rate),
        # E[q] - E[q^2] in one fraction: of a small change rate no digit is lost
        "MM": change_rate * both**3 / (crawl_rate * (both + change_rate)),
        "LLN": change_rate * both**2 / crawl_rate,
        "SA": sa,
    }
    return {name: value[()] for name, value in variances.items()}
