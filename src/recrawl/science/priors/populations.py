"""Populations of change rates for experiments."""

from typing import Literal

import numpy as np

from recrawl import checks
from recrawl.types import Array, Seed

__all__ = ["population"]

_HOURS_A_DAY = 24
# Median of the mean times between changes, chosen so that the best first
# interval of the simulations, 9.5 days, is near the 11 days of figure 4 of
# [grimes08].
_MEDIAN_PERIOD = 15 * _HOURS_A_DAY
_SHORTEST_PERIOD, _LONGEST_PERIOD = 2.0, 365 * _HOURS_A_DAY


def population(
    n_pages: int,
    *,
    distribution: Literal["lognormal", "log-logistic"] = "lognormal",
    rng: Seed = None,
) -> Array:
    """Draw change rates of pages that stand in for the data of [grimes08]_.

    Their data are private. Mean times between changes have a median of 15
    days, chosen so that the best first interval of their figure 4 is near the
    11 days of the paper: it is 9.5 days. They are clipped to 2 hours and 1
    year (our choice).

    Parameters
    ----------
    n_pages : int
        Number of pages.
    distribution : {"lognormal", "log-logistic"}, default "lognormal"
        That of the mean times between changes: "lognormal" with
        standard deviation 1 of the logarithm, or "log-logistic" with shape 1,
        whose tail is so heavy that it has no mean without the clip.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Returns
    -------
    ndarray, shape (n_pages,), 1/hour
        Change rates.

    Raises
    ------
    ValueError
        Another distribution, a number of pages that is not positive.

    Examples
    --------
    >>> from recrawl.science import priors
    >>> (1 / priors.population(3, rng=1) / 24).round(1)  # in days
    array([21.2, 34.1, 20.9])
    """
    rng = np.random.default_rng(rng)
    draws = {"lognormal": rng.standard_normal, "log-logistic": rng.logistic}
    checks.one_of("distribution", distribution, draws)
    log_ratio = draws[distribution](size=checks.count("n_pages", n_pages))
    period = _MEDIAN_PERIOD * np.exp(log_ratio)
    return 1 / np.clip(period, _SHORTEST_PERIOD, _LONGEST_PERIOD)
