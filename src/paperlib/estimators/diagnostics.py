"""Whether a page is Poisson."""

import numpy as np


def serial_score(history, change_rate):
    """Whether changes cluster: about standard normal if the page is Poisson, high if it is bursty, low if it is regular.

    The sum of the products of neighbouring residuals, (bit - p) / sqrt(p (1 - p)) with p = 1 - exp(-change_rate interval), over the root
    of their number, or of the sum of their squares if that is larger: with few changes it stays near 0. Under Poisson changes each
    residual has mean 0 whatever came before, also where bits chose the intervals, so that the products are a martingale; that the rate
    is estimated lowers the score by some 0.3 at 10 crawls and 0.1 at 400 (measured).

    Parameters
    ----------
    history : History, either form
    change_rate : array of ``history.shape``, 1/time
        As `mle` gives it.

    Returns
    -------
    array of ``history.shape``; NaN for a page with fewer than two crawls, or whose bits are impossible under its rate, 0 if certain
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        products, squares = serial_sums(history, change_rate)
        return products / np.sqrt(
            np.maximum(squares, np.maximum(history.n_crawls - 1, 0))
        )


def serial_sums(history, change_rate):
    """Sums of the products of neighbouring residuals and of their squares, arrays of ``history.shape``."""
    exponent = -history.interval * history.per_crawl(change_rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        residual = np.where(
            history.changed,
            np.exp(exponent / 2) / np.sqrt(-np.expm1(exponent)),
            -np.sqrt(np.expm1(-exponent)),
        )
    product = np.zeros(residual.shape)
    product[..., 1:] = residual[..., 1:] * residual[..., :-1]
    if history.offsets is not None:
        product[history.offsets[:-1][np.diff(history.offsets) > 0]] = 0.0
    return history.total(product), history.total(product**2)
