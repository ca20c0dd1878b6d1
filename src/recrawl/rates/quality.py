"""Precision and recall of signals of changes beside a log, page by page.

A signal is a ping (IndexNow, WebSub), a new date in a sitemap, or an entry of a
feed. It says that a page may have changed: some changes send none, and some
signals come without a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paperlib.signals import fit
from recrawl.log.state import kept

if TYPE_CHECKING:
    from recrawl.log.history import History

__all__ = ["SOURCES", "Quality"]

#: Whose estimates the precision and recall of a page are; "none" without a signal.
SOURCES = ["none", "page", "all"]

# Precision and recall of a page count if both standard errors are at most this.
_PRECISE = 0.1
_LEAST = 10  # signals of a page; with fewer it is hardly ever so precise (our choice)


class Quality:
    """Precision and recall of signals, of pages and of all.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random; intervals in days.
    n_signals : ndarray of int, shape (n_intervals,)
        Signals in each interval.

    Attributes
    ----------
    of_all : ndarray of float
        Precision and recall of the signals of all pages.

    Notes
    -----
    A page's own estimates (`paperlib.signals.fit`) are taken if it has 10 signals and
    its crawls determine both to a standard error of 0.1; else those of all pages, which
    are the sums of the pages' estimated numbers: signals with a change over all
    signals, and over all changes. (One fit of all crawls together would be biased,
    because it takes them for one page with one change rate.) With few crawls of each
    page the recall of all comes out too low: .75 in place of .8 from 60 crawls of each
    of 400 pages, .785 from 150. A page that has had no signal has the recall 0:
    nothing shows that one would come.

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> history = History([1.0] * 400, [True, False] * 200, [0, 200, 400])
    >>> n_signals = np.tile([1, 0], 200)
    >>> Quality(history, n_signals).columns(history, n_signals)["recall"]
    array([1., 1.])
    """

    def __init__(self, sample: History, n_signals: NDArray[np.integer]) -> None:
        n = sample.total(n_signals)
        found = _fit(sample, n_signals, n > 0)
        with np.errstate(invalid="ignore"):
            n_changes = found.change_rate * sample.total(sample.interval)
            counts = np.array([found.precision * n, n, n_changes])
        known = np.isfinite(counts).all(axis=0)
        true, *others = counts[:, known].sum(axis=1)
        with np.errstate(all="ignore"):  # no signals, or no changes
            self.of_all = np.nan_to_num(true / others)

    def columns(
        self, history: History, n_signals: NDArray[np.integer]
    ) -> dict[str, NDArray[Any]]:
        """Find precision, recall and rate of false signals of pages.

        Parameters
        ----------
        history : History, shape (n_pages,)
            The pages' crawls; intervals in days.
        n_signals : ndarray of int, shape (n_intervals,)
            Signals in each interval.

        Returns
        -------
        dict of ndarray
            ``recall``, ``precision``, ``false_rate`` (1/day), and
            ``signals_from``: "page", "all", or "none" of pages without a signal.
        """
        n = history.total(n_signals)
        own = _fit(history, n_signals, n >= _LEAST)
        precise = _precise(history, n_signals, own)
        precision = np.where(precise, own.precision, self.of_all[0])
        recall = np.where(precise, own.recall, self.of_all[1])
        with np.errstate(invalid="ignore"):
            gamma = np.nan_to_num(n / history.total(history.interval))
        return {
            "precision": precision,
            "recall": np.where(n == 0, 0.0, recall),
            "false_rate": gamma * (1 - precision),
            "signals_from": np.select([n == 0, precise], SOURCES[:2], "all"),
        }


def _fit(history, n_signals, pages):
    """Estimates of some pages, NaN of the others."""
    keep = history.per_crawl(pages)
    return fit(kept(history, keep), n_signals[keep])


@np.errstate(all="ignore")  # pages without an estimate
def _precise(history, n_signals, found):
    """Whether both standard errors of pages are small.

    They follow from the observed information on alpha and b, of the likelihood of
    `paperlib.signals.fit`, by the delta method.
    """
    time, p, rate = history.total(history.interval), found.precision, found.change_rate
    gamma, alpha = history.total(n_signals) / time, rate * (1 - found.recall)
    w, n = history.interval, n_signals
    eta = history.per_crawl(alpha) * w - history.per_crawl(np.log1p(-p)) * n
    weight = np.where(history.changed, -1 / (np.expm1(eta) * np.expm1(-eta)), 0.0)
    aa, ab, bb = (history.total(weight * x) for x in (w * w, w * n, n * n))
    determinant = aa * bb - ab**2
    of_precision = (1 - p) ** 2 * aa / determinant
    # derivatives of the recall in alpha, b and gamma, times the squared rate
    x, y, z = -p * gamma, (1 - p) * gamma * alpha, p * alpha
    of_recall = (x**2 * bb + y**2 * aa - 2 * x * y * ab) / determinant
    of_recall = (of_recall + z**2 * gamma / time) / rate**4
    return np.maximum(of_precision, of_recall) <= _PRECISE**2
