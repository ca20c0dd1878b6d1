"""How well any estimator can do."""

from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.types import Values

__all__ = ["fisher_information"]


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
