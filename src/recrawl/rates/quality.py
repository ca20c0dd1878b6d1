"""Precision and recall of signals of changes beside a log, page by page.

A signal is a ping (IndexNow, WebSub), a new date in a sitemap, or an entry of a
feed. It says that a page may have changed: some changes send none, and some
signals come without a change.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paperlib.signals import fit
from recrawl.log.state import kept
from recrawl.rates.dispersion import by_host, encoded

if TYPE_CHECKING:
    from recrawl.log.history import History

__all__ = ["SOURCES", "Quality"]

#: Whose estimates the precision and recall of a page are; "none" without a signal.
SOURCES = ["none", "page", "host", "all"]

# Precision and recall of a page count if both standard errors are at most this.
_PRECISE = 0.1
_LEAST = 10  # signals of a page; with fewer it is hardly ever so precise (our choice)
_ENOUGH = 100  # signals, and changes, of a host


class Quality:
    """Precision and recall of signals, of pages, of hosts, and of all.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random; intervals in days.
    n_signals : ndarray of int, shape (n_intervals,)
        Signals in each interval.
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Attributes
    ----------
    of_all : ndarray of float
        Precision and recall of the signals of all pages.

    Notes
    -----
    A page's own estimates (`paperlib.signals.fit`) are taken if it has 10 signals and
    its crawls determine both to a standard error of 0.1; else those of its host, if the
    sample has 100 signals and 100 changes of it; else those of all pages. Those of
    several pages are the sums of their estimated numbers: signals with a change over
    all signals, and over all changes. (One fit of their crawls together would be
    biased, for it takes them for one page with one change rate.) With few crawls of
    each page the recall of a host comes out too low: .75 in place of .8 from 60 crawls
    of each of 400 pages, .785 from 150. A page that has had no signal has the recall
    0: nothing shows that one would come.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from recrawl.log.history import History
    >>> history = History([1.0] * 400, [True, False] * 200, [0, 200, 400])
    >>> n_signals, host = np.tile([1, 0], 200), pa.array(["a.org", "b.org"])
    >>> quality = Quality(history, n_signals, host)
    >>> quality.columns(history, n_signals, host)["recall"]
    array([1., 1.])
    """

    def __init__(
        self, sample: History, n_signals: NDArray[np.integer], host: Any
    ) -> None:
        n = sample.total(n_signals)
        found = _fit(sample, n_signals, n > 0)
        with np.errstate(invalid="ignore"):
            n_changes = found.change_rate * sample.total(sample.interval)
            counts = np.array([found.precision * n, n, n_changes])
        counts = np.where(np.isfinite(counts).all(axis=0), counts, 0.0)
        names, member = encoded(host)
        of_host = np.array([np.bincount(member, each, len(names)) for each in counts])
        self.of_all = _ratios(of_host.sum(axis=1))
        enough = (of_host[1:] >= _ENOUGH).all(axis=0)
        self._of_host = dict(
            compress(zip(names, _ratios(of_host).T, strict=True), enough)
        )

    def columns(
        self, history: History, n_signals: NDArray[np.integer], host: Any
    ) -> dict[str, NDArray[Any]]:
        """Find precision, recall and rate of false signals of pages.

        Parameters
        ----------
        history : History, shape (n_pages,)
            The pages' crawls; intervals in days.
        n_signals : ndarray of int, shape (n_intervals,)
            Signals in each interval.
        host : pyarrow.Array or ChunkedArray
            Host of each page.

        Returns
        -------
        dict of ndarray
            ``recall``, ``precision``, ``false_rate`` (1/day), and
            ``signals_from``: "page", "host", "all", or "none" of pages without a
            signal.
        """
        n = history.total(n_signals)
        own = _fit(history, n_signals, n >= _LEAST)
        precise = _precise(history, n_signals, own)
        others = by_host(self._of_host, self.of_all, host)
        precision, recall = np.where(precise, [own.precision, own.recall], others.T)
        with np.errstate(invalid="ignore"):
            gamma = np.nan_to_num(n / history.total(history.interval))
        of_host = by_host(dict.fromkeys(self._of_host, True), False, host)
        return {
            "precision": precision,
            "recall": np.where(n == 0, 0.0, recall),
            "false_rate": gamma * (1 - precision),
            "signals_from": np.select([n == 0, precise, of_host], SOURCES[:3], "all"),
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


@np.errstate(all="ignore")  # hosts without signals or changes
def _ratios(counts):
    """Precision and recall from numbers of true signals, signals and changes."""
    return np.nan_to_num(counts[0] / counts[1:])
