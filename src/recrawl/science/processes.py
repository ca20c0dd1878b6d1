"""Poisson pages: their changes, their crawls, and what a crawl reveals.

A page changes at the times of a Poisson process. A crawl reveals one bit:
whether the page has changed since the crawl before. Some crawls reveal more:
when the page changed last, or how many times. `History` holds all this and the
intervals between crawls, of many pages or runs at once, `CrawlLog` with the
addresses of the pages; the functions of this module observe or simulate histories.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.errors import DistrustedAgeWarning
from recrawl.kernels import processes as kernels
from recrawl.kernels import threads_for
from recrawl.types import Array, Bits, Ints, Seed, Values

__all__ = [
    "CrawlLog",
    "DistrustedAgeWarning",
    "History",
    "join",
    "observe",
    "observe_feed",
    "poisson_times",
    "simulate_history",
]


# What a crawl of `simulate_history` can reveal beside the bit, and what it then is
# at a crawl that found no change.
_UNCHANGED = {"bit": None, "age": np.nan, "count": 0.0}
# Expected changes up to which it is faster to count them than to look for a root.
_FEW = 30.0
# Relative difference up to which an age and an interval count as equal: rounding
# of differences of times.
_SAME_TIME = 1e-9


@dataclass(frozen=True, eq=False)
class History:
    """What a crawler has seen: intervals between crawls, and a bit for each.

    Beside the bit, a crawl may have told the age of the last change, as the
    header Last-Modified does, or the number of changes, as a list of revisions
    does, or both, as a feed of a limited number of entries does (see
    `observe_feed`). Estimators from likelihoods use what is there.

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
    >>> history.time
    array([1., 3., 4., 4.])

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
    _n_distrusted: int = field(default=0, init=False, repr=False)

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
            age, count, n_wrong = _trusted(interval, changed, self.age, self.count)
            own.update(age=age, count=count, _n_distrusted=n_wrong)

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

    @property
    def time(self) -> Array:
        """Time of each crawl since the page became known, shaped as `changed`."""
        interval, _, offsets = self.ragged()
        time = np.empty(interval.size)
        kernels.times(interval, offsets, time)
        return time.reshape(self.interval.shape)

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

    def likelihood_totals(self) -> tuple[Values, Values, Values, Values]:
        """Return sums of `likelihood_terms` over the crawls of each page.

        Returns
        -------
        n_known : ndarray or float, of `shape`
            Number of known changes, K.
        time : ndarray or float, of `shape`, time
            Time in which no other change can hide, S.
        n_bits : ndarray or float, of `shape`
            Number of crawls of which only the bit says that there was a change.
        bits_time : ndarray or float, of `shape`, time
            Sum of their intervals.
        """
        interval, changed, offsets = self.ragged()
        totals = np.empty((4, offsets.size - 1))
        with threads_for(interval.size):
            kernels.likelihood_totals(interval, changed, *self._told(), offsets, totals)
        return tuple(map(self.by_page, totals))

    def require_told(self, rule: str, good: Bits) -> None:
        """Raise unless ages or counts are known where an estimator needs them.

        Parameters
        ----------
        rule : str
            What ends the sentence "age must be known at".
        good : ndarray of bool
            Whether they are known, of each page or of each crawl.

        Raises
        ------
        ValueError
            Naming the first that is not, and how many ages and counts are
            distrusted.
        """
        if self._n_distrusted:
            rule += f" ({self._n_distrusted} contradict their bit and count as unknown)"
        checks.require("age", np.where(good, 0.0, np.nan), f"known at {rule}", good)

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

    def prefix(self, n_crawls: int) -> History:
        """Return the first crawls of every page of a dense history.

        Parameters
        ----------
        n_crawls : int
            Number of crawls that are kept, from 1 to those that there are.

        Returns
        -------
        History
            With ages and counts, if there are any.

        Raises
        ------
        ValueError
            A history in the ragged form; a number of crawls out of range.
        """
        if self.offsets is not None:
            raise ValueError(
                "history must be in the dense form, without offsets, got offsets of "
                f"{self.offsets.size - 1} pages"
            )
        n_crawls, most = checks.count("n_crawls", n_crawls), self.interval.shape[-1]
        if n_crawls > most:
            raise ValueError(
                f"n_crawls must be at most the {most} crawls of a page, got {n_crawls}"
            )
        return History(
            **{name: array[..., :n_crawls] for name, array in self._arrays.items()}
        )


def _frozen(array):
    """The array itself, which can no longer be written to."""
    array.flags.writeable = False
    return array


# Read-only as ages and counts are: a kernel is compiled anew for each type.
_NOTHING = _frozen(np.empty(0))


def _trusted(interval, changed, age, count):
    """Read-only ages and counts, NaN where they contradict the bit, and how often."""
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
    return *(
        None if values is None else _frozen(flat).reshape(interval.shape)
        for values, flat in zip(given.values(), trusted, strict=True)
    ), n_wrong


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


def poisson_times(rate: float, horizon: float, *, rng: Seed = None) -> Array:
    """Simulate the event times of a Poisson process on (0, horizon].

    Parameters
    ----------
    rate : float, 1/time
        Rate of the events, non-negative.
    horizon : float, time
        End of the observation, positive.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Returns
    -------
    ndarray, shape (n_events,), time
        Sorted event times.

    Raises
    ------
    ValueError
        A rate that is negative or not finite, a horizon that is not positive
        and finite.

    Examples
    --------
    >>> from recrawl.science.processes import poisson_times
    >>> poisson_times(0.5, 10.0, rng=1).round(2)
    array([2.12, 2.46, 4.5 , 4.62, 6.7 , 6.97, 9.72])
    """
    rate = checks.scalar(checks.non_negative, "rate", rate)
    horizon = checks.positive_number("horizon", horizon)
    rng = np.random.default_rng(rng)
    return np.sort(_uniform_times(rng, rng.poisson(rate * horizon), horizon))


def _uniform_times(rng, n, horizon):
    """Times uniform on (0, horizon]: one may be the horizon, none is 0."""
    return horizon * (1.0 - rng.random(n))


def observe(change_times: ArrayLike, crawl_times: ArrayLike) -> History:
    """Observe a page that changes at given times by crawls at given times.

    The page is known at time 0. A change at the very moment of a crawl is
    seen by that crawl, as by I_k of section 2 of [peva22]_.

    Parameters
    ----------
    change_times : array_like, shape (n_changes,), time
        Sorted; equal times are separate changes. May be empty.
    crawl_times : array_like, shape (..., n_crawls), time
        Strictly rising along the last axis, positive.

    Returns
    -------
    History
        Of the shape of `crawl_times`.

    Raises
    ------
    ValueError
        Change times that are not sorted; crawl times that do not rise from
        above 0.

    Examples
    --------
    >>> from recrawl.science.processes import observe
    >>> history = observe([0.5, 2.0, 2.5], crawl_times=[1.0, 2.0, 4.0, 5.0])
    >>> history.interval, history.changed
    (array([1., 1., 2., 1.]), array([ True,  True,  True, False]))
    """
    _, crawl_times, interval, n_new = _observed(change_times, crawl_times)
    return History(interval, n_new > 0)


def observe_feed(
    change_times: ArrayLike,
    crawl_times: ArrayLike,
    *,
    n_entries: int | None = None,
    start: float = 0.0,
) -> History:
    """Observe a page by the entries of a feed that shows its last changes.

    The header Last-Modified is a feed of one entry, a full list of revisions one
    without a limit. A crawl tells all changes since the crawl before, as long as
    they are fewer than the feed shows; otherwise it tells the last ones, and
    nothing about the time before them.

    It also reads recorded feeds: the times of all entries that were ever seen,
    and the times of the fetches, give the same history as the fetches themselves.

    Parameters
    ----------
    change_times : array_like, shape (n_changes,), time
        Sorted; equal times are separate changes. May be empty.
    crawl_times : array_like, shape (..., n_crawls), time
        Strictly rising along the last axis, positive.
    n_entries : int, optional
        Number of entries that the feed shows; all by default.
    start : float, time, default 0.0
        When the page became known, before the first crawl: the first interval begins
        here. Times since another moment, such as 1970, need it.

    Returns
    -------
    History
        Of the shape of `crawl_times`, with counts, and with the age of the oldest
        entry where a crawl may have missed a change.

    Raises
    ------
    ValueError
        As `observe`; a number of entries that is not positive.

    Notes
    -----
    The plain form is `tests.recrawl.plain.feed_terms`.

    Examples
    --------
    >>> from recrawl.science.processes import observe_feed
    >>> history = observe_feed([0.5, 2.0, 2.5, 3.0], [1.0, 4.0, 5.0], n_entries=2)
    >>> history.count, history.age
    (array([1., 2., 0.]), array([nan, 1.5, nan]))
    """
    start = checks.scalar(checks.finite, "start", start)
    change_times = checks.finite("change_times", change_times) - start
    crawl_times = checks.finite("crawl_times", crawl_times) - start
    change_times, crawl_times, interval, n_new = _observed(change_times, crawl_times)
    if n_entries is None:
        return History(interval, n_new > 0, count=n_new)
    n_entries = checks.count("n_entries", n_entries)
    age = np.full(n_new.shape, np.nan)
    full = n_new >= n_entries
    if full.any():
        n_before = np.searchsorted(change_times, crawl_times[full], side="right")
        age[full] = crawl_times[full] - change_times[n_before - n_entries]
    return History(interval, n_new > 0, age=age, count=np.minimum(n_new, n_entries))


def _observed(change_times, crawl_times):
    """Both times checked, the intervals, and the number of changes in each."""
    change_times = checks.finite("change_times", change_times)
    crawl_times = checks.positive("crawl_times", crawl_times)
    if change_times.ndim != 1 or (np.diff(change_times) < 0).any():
        raise ValueError(
            f"change_times must be flat and sorted, got shape {change_times.shape}"
        )
    if crawl_times.ndim == 0:
        raise ValueError(
            "crawl_times must be an array, "
            f"got the single number {crawl_times.item()!r}"
        )
    interval = np.diff(crawl_times, axis=-1, prepend=0.0)
    checks.require("crawl_times", crawl_times, "rising strictly", interval > 0)
    n_before_0 = np.searchsorted(change_times, 0.0, side="right")
    n_before = np.searchsorted(change_times, crawl_times, side="right")
    n_new = np.diff(n_before, axis=-1, prepend=n_before_0)
    return change_times, crawl_times, interval, n_new


def _each_run(draw, n_runs, rng):
    """Arrays that `draw(generator)` returns, stacked over runs if there are any.

    Every run has its own generator: run i depends on the seed and i alone.
    """
    rng = np.random.default_rng(rng)
    if n_runs is None:
        return draw(rng)
    runs = [draw(stream) for stream in rng.spawn(checks.count("n_runs", n_runs))]
    return [np.stack(arrays) for arrays in zip(*runs, strict=True)]


def simulate_history(
    change_rate: ArrayLike,
    *,
    crawl_rate: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    n_crawls: int | None = None,
    n_runs: int | None = None,
    observation: Literal["bit", "age", "count"] = "bit",
    false_change: ArrayLike = 0.0,
    rng: Seed = None,
) -> History:
    r"""Simulate crawls of Poisson pages, at Poisson times or given intervals.

    .. math:: P(\mathrm{changed}) = 1 - e^{-\Delta w}

    independently for each crawl after an interval w; over Poisson crawls of
    rate p this is Delta / (Delta + p), eq. (4) of [valuetools20]_.
    False changes raise it to :math:`1 - (1 - q) e^{-\Delta w}`.

    Parameters
    ----------
    change_rate : array_like, 1/time
        One number or one for each page, non-negative.
    crawl_rate : array_like, 1/time, optional
        Rate of Poisson crawls, positive; broadcasts with the pages and needs
        `n_crawls`.
    interval : array_like, shape (..., n_crawls), time, optional
        Given intervals instead, positive; leading axes broadcast with the
        pages. A single number needs `n_crawls`.
    n_crawls : int, optional
        Crawls of each page.
    n_runs : int, optional
        Independent runs along a new first axis.
    observation : {"bit", "age", "count"}, default "bit"
        What a crawl reveals beside the bit: nothing, the age of the last change
        since the crawl before, or the number of changes. The bits are the same.
    false_change : array_like, default 0.0
        Probability q that a crawl finds a change that is none, in [0, 1];
        broadcasts with the pages. Such a change has no age and no count.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers. Run i depends on the seed and i alone.

    Returns
    -------
    History
        Of shape ``(*pages, n_crawls)``, with n_runs before it if given.

    Raises
    ------
    ValueError
        A rate, interval or probability out of range; both or neither of crawl_rate
        and interval; n_crawls that is missing or contradicts interval; another
        observation.

    Examples
    --------
    >>> from recrawl.science.processes import simulate_history
    >>> rates = [0.1, 2.0]
    >>> history = simulate_history(rates, interval=1.0, n_crawls=1000, rng=1)
    >>> history.changed.mean(axis=1)
    array([0.088, 0.868])
    """
    change_rate = checks.non_negative("change_rate", change_rate)[..., np.newaxis]
    if (crawl_rate is None) == (interval is None):
        raise ValueError("exactly one of crawl_rate and interval must be given")
    if interval is None:
        mean = 1.0 / checks.positive("crawl_rate", crawl_rate)[..., np.newaxis]
        given = {"crawl_rate": mean}
    else:
        mean = checks.positive("interval", interval)
        given = {"interval": mean}
        if mean.ndim:
            n_crawls = _length(mean, n_crawls)
    n_crawls = checks.count("n_crawls", n_crawls)
    checks.one_of("observation", observation, _UNCHANGED)
    given["false_change"] = q = checks.share("false_change", false_change)[..., None]
    pages = checks.broadcast(change_rate=change_rate, **given)[0].shape[:-1]
    shape = (*pages, n_crawls)

    def draw(stream):
        if interval is None:
            length = mean * stream.standard_exponential(shape)
        else:
            length = np.broadcast_to(mean, shape)
        chance, expected = stream.random(shape), change_rate * length
        is_true = chance < -np.expm1(-expected)
        changed = chance < -np.expm1(-expected) + q * np.exp(-expected)
        if observation == "bit":
            return length, changed
        # One uniform number decides whether there was a change, and by the inverse
        # of the distribution when the last one was, or how many there were.
        if observation == "age":
            with np.errstate(divide="ignore", invalid="ignore"):
                reported = -np.log1p(-chance) / change_rate
        else:
            reported = np.ones(shape)
            reported[is_true] = _changes(1 - chance[is_true], expected[is_true])
        reported = np.where(is_true, reported, _UNCHANGED[observation])
        reported[changed & ~is_true] = np.nan  # a false change reveals its bit alone
        return length, changed, reported

    interval, changed, *reported = _each_run(draw, n_runs, rng)
    return History(interval, changed, **{observation: reported[0]} if reported else {})


def _changes(share, expected):
    """Quantiles of Poisson distributions, at least 1.

    `scipy.stats.poisson.ppf` looks for a root, which takes five to ten times as
    long as to count from 1 where few changes are expected.
    """
    n = np.ones(share.size)
    many = expected > _FEW
    n[many] = np.maximum(scipy.stats.poisson.ppf(share[many], expected[many]), 1.0)
    left = np.flatnonzero(~many)
    while left.size:
        left = left[scipy.special.pdtr(n[left], expected[left]) < share[left]]
        n[left] += 1.0
    return n


def _length(interval, n_crawls):
    """Number of crawls of given intervals; `n_crawls` must agree."""
    length = interval.shape[-1]
    if n_crawls is not None and n_crawls != length:
        raise ValueError(
            f"n_crawls must be the length of interval, {length}, got {n_crawls!r}"
        )
    return length


@dataclass(frozen=True, eq=False)
class CrawlLog:
    """What a crawler knows about its pages.

    The arrays are read-only views of those that are given.

    Parameters
    ----------
    url : array_like, shape (n_pages,)
        Address or identifier of each page.
    history : History, shape (n_pages,)
        Intervals in days, and whether each crawl found a change.
    importance : array_like of float, shape (n_pages,)
        Importance of each page, non-negative, in any unit.
    host : array_like, shape (n_pages,)
        Name or identifier of each page's host.
    constrained : array_like of bool, shape (n_pages,), optional
        True where the host limits how often it is crawled.
    known_rate : array_like of float, shape (n_pages,), optional
        Change rate known from elsewhere, 1/day; NaN where it is unknown.

    Raises
    ------
    ValueError
        An array that is not flat and as long as the history has pages; an
        importance or a known rate that is negative or infinite; `constrained`
        that is neither boolean nor 0/1.

    Examples
    --------
    >>> history = History([1.0, 2.0, 0.5], [True, False, True], [0, 2, 3])
    >>> log = CrawlLog(["a", "b"], history, [1.0, 3.0], ["h", "h"])
    >>> log.importance
    array([1., 3.])
    """

    url: np.ndarray
    history: History
    importance: np.ndarray
    host: np.ndarray
    constrained: np.ndarray | None = None
    known_rate: np.ndarray | None = None

    def __post_init__(self):
        columns = {
            "url": np.asarray(self.url),
            "host": np.asarray(self.host),
            "importance": checks.non_negative("importance", self.importance),
        }
        if self.constrained is not None:
            columns["constrained"] = checks.bits("constrained", self.constrained)
        if self.known_rate is not None:
            rate = checks.numbers("known_rate", self.known_rate)
            bad = (rate < 0) | np.isinf(rate)
            checks.require("known_rate", rate, "non-negative and finite, or NaN", ~bad)
            columns["known_rate"] = rate
        for name, column in columns.items():
            if column.shape != self.history.shape:
                raise ValueError(
                    f"{name} must have one entry per page of history, shape "
                    f"{self.history.shape}, got {column.shape}"
                )
            # in place, because the dataclass is frozen
            vars(self)[name] = _frozen(column.view())
