"""What crawls have found: histories of pages, with ages and counts of changes.

A crawl reveals one bit, and some crawls reveal more: when the page changed last, or
how many times. `History` holds all this for many pages or runs at once, `CrawlLog`
with the addresses of the pages.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from paperlib import checks, processes
from paperlib.errors import ArgumentError
from recrawl.errors import DistrustedAgeWarning
from recrawl.log import history_kernels as kernels
from recrawl.types import Array, Bits, Ints, Values

__all__ = ["CrawlLog", "DistrustedAgeWarning", "History"]


# Relative difference up to which an age and an interval count as equal: rounding
# of differences of times.
_SAME_TIME = 1e-9
_NOTHING = np.empty(0)


@dataclass(frozen=True, eq=False)
class History(processes.History):
    """What a crawler has seen: intervals between crawls, a bit for each, and more.

    Beside the bit, a crawl may have revealed the age of the last change, as the
    header Last-Modified does, or the number of changes, as a list of revisions
    does, or both, as a feed of a limited number of entries does. Estimators from
    likelihoods use what is there.

    Parameters
    ----------
    interval, changed, offsets
        As in `paperlib.processes.History`.
    age : array_like, same shape, time, optional
        Time from the last change to the crawl, NaN where unknown. With a count,
        the age of the oldest change that was counted: nothing is known of the
        time before. The first fetch of a page, which ends no interval, can be
        entered as a changed crawl whose interval is its age; but not for estimates
        from bits alone, because this interval is not one that was chosen. An age
        known to the day alone, between a and b, is two crawls: one that found no
        change after the time a, and one that found a change, by its bit alone, after
        b - a.
    count : array_like, same shape, optional
        Number of changes since the crawl before, or since the `age` that goes
        with it; whole, NaN where unknown. A feed that shows what is newer than a
        time L, shorter than the interval, is a count with the age L or, if it is
        empty, a crawl that found no change after the interval L.

    Warns
    -----
    DistrustedAgeWarning
        Ages below 0, above the interval of a crawl that found a change, or within
        that of a crawl that found none; counts that contradict the bit. They
        become NaN, so that the bit is used.

    Examples
    --------
    A page that was crawled after one day and then after two, when it had changed
    half a day before:

    >>> from recrawl.rates.likelihood import mle
    >>> from recrawl.log.history import History
    >>> float(mle(History([1.0, 2.0], [False, True], age=[np.nan, 0.5])).round(4))
    0.6667
    """

    _: KW_ONLY
    age: Values | None = None
    count: Values | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.has_ages_or_counts:
            age, count = _trusted(self)
            vars(self).update(age=age, count=count)  # because the dataclass is frozen

    @property
    def has_ages_or_counts(self) -> bool:
        """Whether an age or a count is known beside the bits."""
        return self.age is not None or self.count is not None

    def join(self, later: processes.History) -> History:
        """Append a later history, as in `paperlib.processes.History`.

        Parameters
        ----------
        later : History
            Of the same pages; ages and counts that only one of both has are NaN for
            the crawls of the other.

        Returns
        -------
        History
            In the ragged form.
        """
        joined = super().join(later)
        vars(joined).pop("_likelihood_terms", None)  # those of this history
        starts = self.ragged()[2]
        more_starts = later.ragged()[2]
        for name in ("age", "count"):
            one = getattr(self, name)
            other = getattr(later, name, None)
            if one is not None or other is not None:
                vars(joined)[name] = processes.interleave(
                    _or_nan(one, self), starts, _or_nan(other, later), more_starts
                )
        return joined

    def likelihood_terms(
        self,
    ) -> tuple[Array, Bits, Ints, Array]:
        r"""Return what enters the likelihood of a change rate, in the ragged form.

        .. math:: \log L(\Delta) = K \log \Delta - \Delta S
            + \sum_\mathrm{changed} \log(1 - e^{-\Delta w_n}) ,

        with the number K of changes that are known one by one, and the time S in
        which no other change can hide (derived). A known age or count thus turns
        a crawl that found a change into one that found none, after as much time
        as is known, and adds its changes to K.

        Returns
        -------
        interval : ndarray, shape (n,)
            As in `ragged`, but for crawls with a known change the time to the
            oldest of their known changes, or all of the interval if no change is
            missed. May be 0.
        changed : ndarray of bool, shape (n,)
            True where only the bit says that there was a change.
        offsets : ndarray of int, shape (n_pages + 1,)
            Where each page begins.
        n_known : ndarray, shape (n,)
            Number of known changes.

        Notes
        -----
        The plain form is `tests.recrawl.plain.likelihood_terms`. Ages and counts are
        taken in once for each history, which then holds the arrays.
        """
        return self._likelihood_terms

    @cached_property
    def _likelihood_terms(self):
        interval, changed, offsets = self.ragged()
        if not self.has_ages_or_counts:
            return interval, changed, offsets, np.zeros(interval.size)
        terms = [np.empty(interval.size, dtype) for dtype in (float, bool, float)]
        reported = [_flat(values) for values in (self.age, self.count)]
        kernels.likelihood_terms(interval, changed, *reported, *terms)
        time, bits, n_known = terms
        return time, bits, offsets, n_known


def _flat(values):
    """Numbers of crawls in the ragged form; an empty array if there are none."""
    return _NOTHING if values is None else values.ravel()


def _or_nan(values, history):
    """Numbers of crawls in the ragged form; NaN if there are none."""
    if values is None:
        return np.full(history.interval.size, np.nan)
    return values.ravel()


def _trusted(history):
    """Ages and counts, NaN where they contradict the bit."""
    shape = history.interval.shape
    reported = {}
    for name in ("age", "count"):
        values = getattr(history, name)
        if values is not None:
            values = checks.floats(name, values)
            if values.shape != shape:
                rule = f"must have the shape of interval, {shape}"
                raise ArgumentError(name, f"{rule}, got {values.shape}")
        reported[name] = values
    count = reported["count"]
    if count is not None:
        whole = (count >= 0) & (count < np.inf) & (count == np.floor(count))
        rule = "a whole number, at least 0, or NaN"
        checks.require("count", count, rule, whole | np.isnan(count))
    flat = [_flat(values) for values in reported.values()]
    trusted = [np.empty(values.size) for values in flat]
    interval, changed, _ = history.ragged()
    n_wrong = kernels.trust(interval, changed, *flat, _SAME_TIME, *trusted)
    if n_wrong:
        warnings.warn(
            f"{n_wrong} of {interval.size} crawls have an age or a count "
            "that contradicts their bit, which is used instead",
            DistrustedAgeWarning,
            stacklevel=_users_line(),
        )
    return [
        None if values is None else believed.reshape(shape)
        for values, believed in zip(reported.values(), trusted, strict=True)
    ]


def _users_line():
    """Stack level, for a warning of the caller, of the line that called the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals["__name__"].startswith("recrawl."):
        frame, level = frame.f_back, level + 1
    return level


class CrawlLog(NamedTuple):
    """What a crawler knows about its pages.

    Parameters
    ----------
    url : ndarray of str, shape (n_pages,)
    history : History, shape (n_pages,)
        Intervals in days, and whether each crawl found a change.
    importance : ndarray of float, shape (n_pages,)
    host : ndarray of str, shape (n_pages,)
    """

    url: np.ndarray
    history: History
    importance: np.ndarray
    host: np.ndarray
