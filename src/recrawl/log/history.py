"""What crawls have found: histories of pages, with the ages of changes.

A crawl reveals one bit, and some crawls reveal more: when the page changed last.
`History` holds this for many pages or runs at once.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from paperlib import checks, processes
from paperlib.errors import ArgumentError
from recrawl.errors import DistrustedAgeWarning
from recrawl.log.tally import warn
from recrawl.types import Array, Bits, Ints, Values

__all__ = ["DistrustedAgeWarning", "History"]


# Relative difference up to which an age and an interval count as equal: rounding
# of differences of times.
_SAME_TIME = 1e-9


@dataclass(frozen=True, eq=False)
class History(processes.History):
    """What a crawler has seen: intervals between crawls, a bit for each, and more.

    Beside the bit, a crawl may have revealed the age of the last change, as the
    header Last-Modified does. Estimators from likelihoods use what is there.

    Parameters
    ----------
    interval, changed, offsets
        As in `paperlib.processes.History`.
    age : array_like, same shape, time, optional
        Time from the last change to the crawl, NaN where unknown. The first fetch
        of a page, which ends no interval, can be
        entered as a changed crawl whose interval is its age; but not for estimates
        from bits alone, because this interval is not one that was chosen. An age
        known to the day alone, between a and b, is two crawls: one that found no
        change after the time a, and one that found a change, by its bit alone, after
        b - a.

    Warns
    -----
    DistrustedAgeWarning
        Ages below 0, above the interval of a crawl that found a change, or within
        that of a crawl that found none. They become NaN, so that the bit is used.

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

    def __post_init__(self):
        super().__post_init__()
        if self.age is not None:
            # because the dataclass is frozen
            vars(self).update(age=_trusted(self))

    @property
    def all_ages(self) -> Array:
        """Ages in the ragged form, all NaN if none is known."""
        if self.age is None:
            return np.full(self.interval.size, np.nan)
        return self.age.ravel()

    def join(self, later: Any) -> History:
        """Append a later history, as in `paperlib.processes.History`.

        Parameters
        ----------
        later : History
            Of the same pages; if only one of both has ages, they are NaN for the
            crawls of the other.

        Returns
        -------
        History
            In the ragged form.
        """
        joined = super().join(later)
        if self.age is not None or later.age is not None:
            places = np.repeat(self.ragged()[2][1:], np.diff(later.ragged()[2]))
            vars(joined)["age"] = np.insert(self.all_ages, places, later.all_ages)
        return joined

    def likelihood_terms(
        self,
    ) -> tuple[Array, Bits, Ints, Array]:
        r"""Return what enters the likelihood of a change rate, in the ragged form.

        .. math:: \log L(\Delta) = K \log \Delta - \Delta S
            + \sum_\mathrm{changed} \log(1 - e^{-\Delta w_n}) ,

        with the number K of changes that are known one by one, and the time S in
        which no other change can hide (derived). A known age thus turns a crawl that
        found a change into one that found none, after as much time as is known, and
        adds its change to K.

        Returns
        -------
        interval : ndarray, shape (n,)
            As in `ragged`, but for crawls with a known change its age. May be 0.
        changed : ndarray of bool, shape (n,)
            True where only the bit says that there was a change.
        offsets : ndarray of int, shape (n_pages + 1,)
            Where each page begins.
        n_known : ndarray, shape (n,)
            Number of known changes: 0 or 1.

        Notes
        -----
        The plain form is `tests.recrawl.plain.likelihood_terms`.
        """
        interval, changed, offsets = self.ragged()
        if self.age is None:
            return interval, changed, offsets, np.zeros(interval.size)
        age = self.all_ages
        known = changed & ~np.isnan(age)
        # an age may be the longer one by rounding
        time = np.where(known, np.minimum(age, interval), interval)
        return time, changed & ~known, offsets, known.astype(float)


def _trusted(history):
    """Ages, NaN where they contradict the bit."""
    interval, age = history.interval, checks.floats("age", history.age)
    if age.shape != interval.shape:
        rule = f"must have the shape of interval, {interval.shape}, got {age.shape}"
        raise ArgumentError("age", rule)
    # no comparison with NaN is true
    too_long = history.changed & (age > interval * (1.0 + _SAME_TIME))
    too_short = age < np.where(history.changed, 0.0, interval * (1.0 - _SAME_TIME))
    wrong = too_long | too_short
    if wrong.any():
        warn(
            f"{wrong.sum()} of {wrong.size} crawls have an age that contradicts their "
            "bit, which is used instead",
            DistrustedAgeWarning,
        )
    return np.where(wrong, np.nan, age)
