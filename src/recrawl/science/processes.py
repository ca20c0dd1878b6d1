"""What crawls have found: histories of pages.

A page changes at the times of a Poisson process. A crawl reveals one bit:
whether the page has changed since the crawl before. Some crawls reveal more:
when the page changed last, or how many times. `History` holds all this and the
intervals between crawls, of many pages or runs at once, `CrawlLog` with the
addresses of the pages.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.errors import DistrustedAgeWarning
from recrawl.kernels import processes as kernels
from recrawl.kernels import threads_for
from recrawl.types import Array, Bits, Ints, Values

__all__ = [
    "CrawlLog",
    "DistrustedAgeWarning",
    "History",
    "join",
]


# Relative difference up to which an age and an interval count as equal: rounding
# of differences of times.
_SAME_TIME = 1e-9


@dataclass(frozen=True, eq=False)
class History:
    """What a crawler has seen: intervals between crawls, and a bit for each.

    Beside the bit, a crawl may have told the age of the last change, as the
    header Last-Modified does, or the number of changes, as a list of revisions
    does, or both, as a feed of a limited number of entries does. Estimators from
    likelihoods use what is there.

    There are two forms. In the dense form all pages have the same number of
    crawls: time runs along the last axis, leading axes are pages or runs. In
    the ragged form the crawls of all pages follow each other in flat arrays,
    and `offsets` says where each page begins. The arrays are read-only views
    of what was passed in, not copies: do not write to those afterwards.

    Parameters
    ----------
    interval : array_like, shape (..., n_crawls) or (n,), time
        Time between a crawl and the one before, positive.
    changed : array_like of bool or 0/1, same shape
        True where the crawl found the page changed.
    offsets : array_like of int, shape (n_pages + 1,), optional
        Page i is ``offsets[i]:offsets[i + 1]`` of the flat arrays. A page may
        have no crawls, and so may all of them.
    age : array_like, same shape, time, optional
        Time from the last change to the crawl, NaN where unknown. With a count,
        the age of the oldest change that was counted: nothing is known of the
        time before. The first fetch of a page, which ends no interval, can be
        entered as a changed crawl whose interval is its age; but not for estimates
        from bits alone, nor for the bias reduction of `estimators.last_modified`,
        because this interval is not one that was chosen. An age known to the day
        alone, between a and b, is two crawls: one that found no change after the
        time a, and one that found a change, by its bit alone, after b - a.
    count : array_like, same shape, optional
        Number of changes since the crawl before, or since the `age` that goes
        with it; whole, NaN where unknown. A feed that shows what is newer than a
        time L, shorter than the interval, is a count with the age L or, if it is
        empty, a crawl that found no change after the interval L.

    Raises
    ------
    ValueError
        An empty history; an interval that is not positive and finite; bits
        that are not boolean or 0/1; a count that is negative or not whole;
        unequal shapes; offsets that do not rise from 0 to the number of crawls.

    Warns
    -----
    DistrustedAgeWarning
        Ages below 0, above the interval of a crawl that found a change, or within
        that of a crawl that found none; counts that contradict the bit. They
        become NaN, so that the bit is used.

    Examples
    --------
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 2.0, 1.0, 4.0], [1, 0, 1, 1], [0, 3, 4])
    >>> history.n_crawls, history.total(history.interval)
    (array([3, 1]), array([4., 4.]))

    A page that was crawled after one day and then after two, when it had changed
    half a day before:

    >>> from recrawl.science.estimators import mle
    >>> float(mle(History([1.0, 2.0], [False, True], age=[np.nan, 0.5])).round(4))
    0.6667
    """

    interval: Values
    changed: Values
    offsets: Values | None = None
    _: KW_ONLY
    age: Values | None = None
    count: Values | None = None

    def __post_init__(self):
        interval = checks.positive("interval", self.interval).view()
        changed = checks.bits("changed", self.changed).view()
        if interval.shape != changed.shape:
            raise ValueError(
                f"changed must have the shape of interval, {interval.shape}, "
                f"got {changed.shape}"
            )
        if interval.ndim == 0 or (interval.size == 0 and self.offsets is None):
            raise ValueError(
                f"interval must hold at least one crawl, got shape {interval.shape}"
            )
        interval.flags.writeable = changed.flags.writeable = False
        own = vars(self)  # because the dataclass is frozen
        own.update(interval=interval, changed=changed)
        if self.offsets is not None:
            own["offsets"] = _offsets(self.offsets, interval)
        if self.tells_more:
            age, count = _trusted(interval, changed, self.age, self.count)
            own.update(age=age, count=count)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an array with one number for each page."""
        if self.offsets is None:
            return self.interval.shape[:-1]
        return (self.offsets.size - 1,)

    @property
    def tells_more(self) -> bool:
        """Whether an age or a count is known beside the bits."""
        return self.age is not None or self.count is not None

    @property
    def n_crawls(self) -> Ints:
        """Number of crawls of each page, int array of `shape`."""
        if self.offsets is None:
            return np.full(self.shape, self.interval.shape[-1])
        return np.diff(self.offsets)

    def per_crawl(self, values: ArrayLike) -> Array:
        """Repeat a number of each page for each of its crawls.

        Parameters
        ----------
        values : array_like, broadcasts to `shape`
            One number for each page.

        Returns
        -------
        ndarray
            Broadcasts with `interval` and `changed`.
        """
        values = checks.for_pages("values", values, self.shape)
        if self.offsets is None:
            return values[..., np.newaxis]
        return np.repeat(values, self.n_crawls)

    def by_page(self, values: Array) -> Values:
        """Give flat numbers of the pages the shape of the pages.

        Parameters
        ----------
        values : ndarray, shape (n_pages,)
            One number for each page.

        Returns
        -------
        ndarray or float, of `shape`
            The same numbers.
        """
        return values.reshape(self.shape)[()]

    def total(self, values: ArrayLike) -> Values:
        """Sum a number of each crawl over the crawls of each page.

        Parameters
        ----------
        values : array_like, shape of `interval`
            One number for each crawl.

        Returns
        -------
        ndarray or float, of `shape`
            The sums; 0 for a page without crawls.
        """
        if self.offsets is None:
            return np.sum(values, axis=-1)
        # reduceat gives an empty page the value at its start, and needs a
        # value at the very end, where an empty page may start
        values = np.append(np.asarray(values, dtype=float), 0.0)
        sums = np.add.reduceat(values, self.offsets[:-1])
        return np.where(self.n_crawls > 0, sums, 0.0)

    def ragged(self) -> tuple[Array, Bits, Ints]:
        """Return the flat arrays of the ragged form, whichever form this has.

        Returns
        -------
        interval : ndarray, shape (n,)
            Intervals of all pages, one page after the other.
        changed : ndarray of bool, shape (n,)
            Their bits.
        offsets : ndarray of int, shape (n_pages + 1,)
            Where each page begins.
        """
        interval = np.ascontiguousarray(self.interval).reshape(-1)
        changed = np.ascontiguousarray(self.changed).reshape(-1)
        # read-only whatever came in, so that one compiled kernel serves all
        interval.flags.writeable = changed.flags.writeable = False
        offsets = self.offsets
        if offsets is None:
            offsets = np.arange(0, interval.size + 1, self.interval.shape[-1])
        return interval, changed, offsets

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

    @property
    def _arrays(self):
        """The arrays of the crawls that there are, by name."""
        names = "interval", "changed", "age", "count"
        return {
            name: vars(self)[name] for name in names if vars(self)[name] is not None
        }

    def _told(self):
        """Flat ages and counts; an empty array if there are none."""
        return [_flat(values, _NOTHING) for values in (self.age, self.count)]

    @cached_property
    def _likelihood_terms(self):
        interval, changed, offsets = self.ragged()
        if not self.tells_more:
            return interval, changed, offsets, _frozen(np.zeros(interval.size))
        terms = [np.empty(interval.size, dtype) for dtype in (float, bool, float)]
        with threads_for(interval.size):
            kernels.likelihood_terms(interval, changed, *self._told(), *terms)
        time, bits, n_known = map(_frozen, terms)
        return time, bits, offsets, n_known


def _frozen(array):
    """The array itself, which can no longer be written to."""
    array.flags.writeable = False
    return array


# Read-only as ages and counts are: a kernel is compiled anew for each type.
_NOTHING = _frozen(np.empty(0))


def _trusted(interval, changed, age, count):
    """Read-only ages and counts, NaN where they contradict the bit."""
    given = {
        name: None if values is None else check(name, values)
        for name, values, check in (
            ("age", age, checks.numbers),
            ("count", count, checks.counts),
        )
    }
    for name, values in given.items():
        if values is not None and values.shape != interval.shape:
            raise ValueError(
                f"{name} must have the shape of interval, {interval.shape}, "
                f"got {values.shape}"
            )
    reported = [_frozen(_flat(values, _NOTHING).view()) for values in given.values()]
    trusted = [np.empty(values.size) for values in reported]
    bits = _flat(interval, None), _flat(changed, None)
    n_wrong = kernels.trust(*bits, *reported, _SAME_TIME, *trusted)
    if n_wrong:
        warnings.warn(
            f"{n_wrong} of {interval.size} crawls have an age or a count "
            "that contradicts their bit, which is used instead",
            DistrustedAgeWarning,
            stacklevel=_users_line(),
        )
    return [
        None if values is None else _frozen(flat).reshape(interval.shape)
        for values, flat in zip(given.values(), trusted, strict=True)
    ]


def _users_line():
    """Stack level, for a warning of the caller, of the line that called the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals["__name__"].startswith("recrawl."):
        frame, level = frame.f_back, level + 1
    return level


def _flat(values, missing):
    """Numbers of crawls in the ragged form; `missing` if there are none."""
    return missing if values is None else np.ascontiguousarray(values).reshape(-1)


def _or_nan(history, name):
    """Numbers of crawls in the ragged form; NaN if there are none."""
    values = getattr(history, name)
    if values is None:
        values = np.full(history.interval.size, np.nan)
    flat = _flat(values, None)
    flat.flags.writeable = False  # else the kernel is compiled for both types
    return flat


def _offsets(offsets, interval):
    """`offsets` as an int64 array that fits flat intervals."""
    offsets = np.asarray(offsets)
    flat = interval.ndim == offsets.ndim == 1
    if not flat or offsets.dtype.kind not in "iu" or offsets.size < 2:
        raise ValueError(
            "offsets must be a flat array of at least two integers beside flat "
            f"arrays, got shape {offsets.shape} and dtype {offsets.dtype} "
            f"beside shape {interval.shape}"
        )
    offsets = offsets.astype(np.int64)
    ends = offsets[0] == 0 and offsets[-1] == interval.size
    if not ends or (np.diff(offsets) < 0).any():
        raise ValueError(
            f"offsets must rise from 0 to the number of crawls, {interval.size}, "
            f"got {offsets}"
        )
    return offsets


def join(first: History, second: History) -> History:
    """Append to the crawls of each page those of a later history.

    Parameters
    ----------
    first, second : History
        Of the same pages, each in either form.

    Returns
    -------
    History
        In the ragged form; each page has the crawls of `first`, then those of
        `second`.

    Raises
    ------
    ValueError
        Histories of different numbers of pages.

    Examples
    --------
    >>> from recrawl.science.processes import History, join
    >>> first = History([[1.0], [2.0]], [[False], [True]])
    >>> second = History([[3.0], [4.0]], [[True], [True]])
    >>> join(first, second).interval, join(first, second).offsets
    (array([1., 3., 2., 4.]), array([0, 2, 4]))
    """
    if first.shape != second.shape:
        raise ValueError(
            f"second must hold as many pages as first, {first.shape}, "
            f"got {second.shape}"
        )
    starts, later_starts = first.ragged()[2], second.ragged()[2]
    offsets, joined = starts + later_starts, {}
    for name in first._arrays | second._arrays:
        one, other = _or_nan(first, name), _or_nan(second, name)
        joined[name] = np.empty(offsets[-1], dtype=one.dtype)
        kernels.interleave(one, starts, other, later_starts, joined[name])
    return History(**joined, offsets=offsets)


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
