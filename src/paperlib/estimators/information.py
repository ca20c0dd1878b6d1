"""How well any estimator, and each online one, can do in the long run."""

import numpy as np
import scipy

from paperlib import checks


def fisher_information(change_rate, *, crawl_rate):
    """Information of one crawl at Poisson times about the change rate, time^2; n crawls bound the variance by 1 / (n x it).

    E[w^2 q / (1 - q)] with q = exp(-change_rate w) and w ~ Exp(crawl_rate), which is 2 p / D^3 zeta(3, 1 + p / D) (Hurwitz's
    zeta). The MLE attains the bound asymptotically. Rates in 1/time, positive; arrays broadcast.
    """
    change_rate, crawl_rate = (
        checks.positive("change_rate", change_rate),
        checks.positive("crawl_rate", crawl_rate),
    )
    return (
        2
        * crawl_rate
        / change_rate**3
        * scipy.special.zeta(3, 1 + crawl_rate / change_rate)
    )


def asymptotic_variances(change_rate, *, crawl_rate, constant=1.0):
    """n times the variance of estimates after many crawls n at Poisson times, dictionary by estimator of arrays, 1/time^2.

    "MLE": the bound, 1 / `fisher_information`. "MM": `moment_matching`. "LLN": Delta (Delta + p)^2 / p, also that of `Averaged` SA,
    and of SA with the best constant, (p + Delta) / p, for which one would have to know the change rate.
    "SA": with steps constant / k, p Delta c^2 / (2 c p / (p + Delta) - 1), inf where 2 c p <= p + Delta, for then the error falls slower.

    Rates in 1/time, positive; arrays broadcast. `constant` is positive.
    """
    change_rate, crawl_rate = (
        checks.positive("change_rate", change_rate),
        checks.positive("crawl_rate", crawl_rate),
    )
    constant, both = checks.positive("constant", constant), crawl_rate + change_rate
    unchanged, twice = (
        crawl_rate / both,
        crawl_rate / (both + change_rate),
    )  # means of exp(-change_rate w) and its square
    contraction = 2 * constant * unchanged - 1
    with np.errstate(divide="ignore"):
        found = {
            "MLE": 1 / fisher_information(change_rate, crawl_rate=crawl_rate),
            "MM": (unchanged - twice) * both**4 / crawl_rate**2,
            "LLN": change_rate * both**2 / crawl_rate,
            "SA": np.where(
                contraction > 0,
                constant**2 * crawl_rate * change_rate / np.maximum(contraction, 0.0),
                np.inf,
            ),
        }
    return {name: value[()] for name, value in found.items()}
