"""Populations of pages for experiments: their change rates and importances."""

from __future__ import annotations

import warnings

import numpy as np
import scipy

from recrawl import checks
from recrawl.science import estimators
from paperfigs.traces.bing_data import bing
from paperfigs.traces.panels import panel
from recrawl.types import Array, Bits, PathLike, Seed

__all__ = ["population", "signalled_population"]


def population(
    source: PathLike, n_pages: int, *, rng: Seed = None
) -> tuple[Array, Array]:
    """True change rates and importances of pages, for experiments.

    From the Bing data, pages that changed at none or at all of their crawls
    are left out, as in section 6 of [aaai20]_. The rates are maximum
    likelihood estimates, and the importances those of the data. Where the
    data are not at hand there is a stand-in: change rates lognormal with
    median 0.15 and sigma 1.3, clipped to [0.0005, 7], and importances
    lognormal with sigma 1.2, independent. Results on it say nothing about
    real pages. From all pages of `panel`, a sample is drawn with replacement:
    changes per day and importances, which are real but not of the same pages.

    Parameters
    ----------
    source : str or path
        "stand-in", "panel", or the folder of the Bing data set, see `bing`.
    n_pages : int
        Number of pages.
    rng : None, int, SeedSequence or Generator, optional
        Source of the sample, or of the stand-in.

    Returns
    -------
    change_rate : ndarray of float, shape (n_pages,)
        True change rates, 1/day.
    importance : ndarray of float, shape (n_pages,)
        Importances, with mean 1.

    Raises
    ------
    ValueError
        A sample of twice `n_pages` URLs has fewer pages with an estimate.

    Examples
    --------
    >>> change_rate, importance = population("stand-in", 3, rng=1)
    >>> change_rate.round(3).tolist()
    [0.235, 0.436, 0.23]
    """
    rate, importance, _ = _population(source, n_pages, rng)
    return rate, importance


def signalled_population(
    source: PathLike, n_pages: int, *, rng: Seed = None
) -> tuple[Array, Array, Array, Array, Bits]:
    """Pages of `population` with change-indicating signals of realistic quality.

    Precision and recall follow section 6.7 of [www25]_. In the Bing data
    those pages are labelled whose change rate is known from sitemaps; without
    them, one page in twenty is. Precision and recall of labelled pages come
    from the top 5% of two distributions, those of the others from the rest.
    The paper's distributions, its figure 1, are private. The stand-in is
    Beta(0.703, 2.108) for precision (mean 0.25, 95% below 0.7), kept at 0.01
    or above, and Beta(0.666, 2.665) for recall (mean 0.2, 95% below 0.6),
    independent.

    Parameters
    ----------
    source : str or path
        As in `population`.
    n_pages : int
        Number of pages.
    rng : None, int, SeedSequence or Generator, optional
        Source of everything that is drawn.

    Returns
    -------
    change_rate, importance : ndarray of float, shape (n_pages,)
        As in `population`.
    precision, recall : ndarray of float, shape (n_pages,)
        Quality of the signals, see `signals.SignalledPages.from_precision`.
    labelled : ndarray of bool, shape (n_pages,)
        Pages whose signals are of high quality.

    Examples
    --------
    >>> *_, precision, recall, labelled = signalled_population("stand-in", 100, rng=1)
    >>> int(labelled.sum()), bool(precision[labelled].min() > 0.69)
    (8, True)
    """
    rng = np.random.default_rng(rng)
    rate, importance, labelled = _population(source, n_pages, rng)
    if labelled is None:
        labelled = rng.random(n_pages) < 0.05
    top = 0.95 + 0.05 * rng.random((2, n_pages))
    rank = np.where(labelled, top, 0.95 * rng.random((2, n_pages)))
    precision, recall = scipy.special.betaincinv(
        [[0.703], [0.666]], [[2.108], [2.665]], rank
    )
    return rate, importance, np.maximum(precision, 0.01), recall, labelled


def _population(source, n_pages, rng):
    """Change rates, importances, and labels where there are any."""
    n_pages, rng = checks.count("n_pages", n_pages), np.random.default_rng(rng)
    labelled = None
    if source == "stand-in":
        rate = np.clip(rng.lognormal(np.log(0.15), 1.3, n_pages), 5e-4, 7.0)
        importance = rng.lognormal(0.0, 1.2, n_pages)
    elif source == "panel":
        pages = panel(min_changes=1)
        drawn = rng.integers(pages.n_pages, size=n_pages)
        rate, importance = pages.change_rate[drawn], pages.importance[drawn]
    else:
        log = bing(source, sample=2 * n_pages, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
            rate = estimators.mle(log.history)
        kept = np.flatnonzero((rate > 0) & (rate < np.inf))
        if kept.size < n_pages:
            raise ValueError(
                f"n_pages must be at most {kept.size}, the pages with an estimate in "
                f"a sample of twice as many, got {n_pages}"
            )
        kept = rng.choice(kept, n_pages, replace=False)
        rate, importance = rate[kept], log.importance[kept]
        if log.known_rate is not None:
            labelled = ~np.isnan(log.known_rate[kept])
    return rate, importance / importance.mean(), labelled
