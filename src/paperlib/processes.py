"""Poisson pages: when they change, when they are crawled, and the one bit that a crawl reveals."""

import copy
from dataclasses import dataclass

import numpy as np

from paperlib import checks
from paperlib._kernels import processes as kernels


@dataclass(frozen=True, eq=False)
class History:
    """What a crawler has seen: the time between two crawls, and whether the page had changed.

    The arrays are read-only views of what was passed in, not copies: do not write to those afterwards.

    Parameters
    ----------
    interval : array of float, shape (..., n_crawls) or (n,)
        Time between a crawl and the one before, positive. Time runs along the last axis; leading axes are pages or runs.
    changed : array of bool or 0/1, same shape
        True where the crawl found the page changed.
    offsets : array of int, shape (n_pages + 1,), optional
        Pages of unequal length in flat arrays: page i is ``offsets[i]:offsets[i + 1]``. A page may have no crawls, and so may all of them.

    Raises
    ------
    ValueError
        Empty history; an interval that is not positive and finite; bits that are not boolean or 0/1; unequal shapes;
        offsets that do not run from 0 to the number of crawls without falling.
    """

    interval: np.ndarray
    changed: np.ndarray
    offsets: np.ndarray | None = None

    def __post_init__(self):
        interval = checks.positive("interval", self.interval).view()
        changed = checks.bits("changed", self.changed).view()
        if interval.shape != changed.shape:
            raise ValueError(
                f"changed must have the shape of interval, {interval.shape}, got {changed.shape}"
            )
        if interval.ndim == 0 or (interval.size == 0 and self.offsets is None):
            raise ValueError(
                f"interval must hold at least one crawl, got shape {interval.shape}"
            )
        interval.flags.writeable = changed.flags.writeable = False
        object.__setattr__(self, "interval", interval)
        object.__setattr__(self, "changed", changed)
        if self.offsets is not None:
            offsets = np.asarray(self.offsets)
            if (
                interval.ndim != 1
                or offsets.ndim != 1
                or offsets.dtype.kind not in "iu"
                or offsets.size < 2
            ):
                raise ValueError(
                    f"offsets must be a flat array of at least two integers beside flat arrays, got shape {offsets.shape} "
                    f"and dtype {offsets.dtype} beside shape {interval.shape}"
                )
            offsets = offsets.astype(np.int64)
            if (
                offsets[0] != 0
                or offsets[-1] != interval.size
                or (np.diff(offsets) < 0).any()
            ):
                raise ValueError(
                    f"offsets must rise from 0 to the number of crawls, {interval.size}, got {offsets}"
                )
            object.__setattr__(self, "offsets", offsets)

    @property
    def shape(self):
        """Shape of one number per page."""
        return (
            self.interval.shape[:-1]
            if self.offsets is None
            else (self.offsets.size - 1,)
        )

    @property
    def n_crawls(self):
        """Number of crawls per page, int array of `shape`."""
        return (
            np.full(self.shape, self.interval.shape[-1])
            if self.offsets is None
            else np.diff(self.offsets)
        )

    @property
    def time(self):
        """When each crawl was, from 0 when the page became known: array of the shape of `changed`."""
        if self.offsets is None:
            return np.cumsum(self.interval, axis=-1)
        time = np.cumsum(self.interval)
        return time - np.repeat(np.append(0.0, time)[self.offsets[:-1]], self.n_crawls)

    def per_crawl(self, values):
        """`values`, an array of `shape` or a number, once for each crawl of its page."""
        values = np.broadcast_to(values, self.shape)
        return (
            np.repeat(values, self.n_crawls)
            if self.offsets is not None
            else values[..., np.newaxis]
        )

    def total(self, values):
        """Sum of `values`, one per crawl, over the crawls of each page: array of `shape`."""
        if self.offsets is None:
            return np.sum(values, axis=-1)
        # reduceat gives an empty page the value at its start, and needs a value at the very end
        sums = np.add.reduceat(
            np.append(np.asarray(values, dtype=float), 0.0), self.offsets[:-1]
        )
        return np.where(np.diff(self.offsets) > 0, sums, 0.0)

    def ragged(self):
        """Flat ``interval, changed, offsets``, whichever form the history has."""
        interval, changed = (
            np.ascontiguousarray(a).reshape(-1) for a in (self.interval, self.changed)
        )
        interval.flags.writeable = changed.flags.writeable = (
            False  # whatever came in, so that one compiled kernel serves all
        )
        offsets = (
            self.offsets
            if self.offsets is not None
            else np.arange(0, interval.size + 1, self.interval.shape[-1])
        )
        return interval, changed, offsets


def join(first, second):
    """One ragged history out of two of the same pages, in either form: the crawls of `second` after those of `first`."""
    if first.shape != second.shape:
        raise ValueError(
            f"second must hold as many pages as first, {first.shape}, got {second.shape}"
        )
    before, later = first.ragged(), second.ragged()
    offsets = before[2] + later[2]
    interval, changed = np.empty(offsets[-1]), np.empty(offsets[-1], dtype=bool)
    kernels.interleave(*before, *later, interval, changed)
    return History(interval, changed, offsets)


def poisson_times(rate, horizon, *, rng=None):
    """Event times of a Poisson process with `rate` (1/time) on (0, horizon], sorted, shape (n_events,).

    Raises ValueError for a rate that is negative or not finite, or a horizon that is not positive and finite.
    """
    rate = checks.scalar(checks.non_negative, "rate", rate)
    horizon = checks.scalar(checks.positive, "horizon", horizon)
    rng = np.random.default_rng(rng)
    # uniform on [0, 1) turned round, so that a time may be the horizon and never 0
    return np.sort(horizon * (1.0 - rng.random(rng.poisson(rate * horizon))))


def observe(change_times, crawl_times):
    """The `History` that crawls at `crawl_times` see of a page that changes at `change_times`.

    The page is known at time 0; a change at the very moment of a crawl is seen by that crawl, I_k of section 2 of [peva22].

    Parameters
    ----------
    change_times : array, shape (n_changes,)
        Sorted, unit of time; ties are changes too. May be empty.
    crawl_times : array, shape (..., n_crawls)
        Strictly rising along the last axis, positive.

    Raises
    ------
    ValueError
        Change times that are not sorted; crawl times that do not rise from above 0.
    """
    change_times = checks.finite("change_times", change_times)
    crawl_times = checks.positive("crawl_times", crawl_times)
    if change_times.ndim != 1 or (np.diff(change_times) < 0).any():
        raise ValueError(
            f"change_times must be flat and sorted, got shape {change_times.shape}"
        )
    if crawl_times.ndim == 0:
        raise ValueError(
            f"crawl_times must be an array, got the single number {crawl_times.item()!r}"
        )
    interval = np.diff(crawl_times, axis=-1, prepend=0.0)
    if (interval <= 0).any():
        first = tuple(np.argwhere(interval <= 0)[0].tolist())
        raise ValueError(
            f"crawl_times must rise strictly, got {crawl_times[first].item()!r} at index {first}"
        )
    n_before_0 = np.searchsorted(change_times, 0.0, side="right")
    seen = np.searchsorted(change_times, crawl_times, side="right")
    return History(interval, np.diff(seen, axis=-1, prepend=n_before_0) > 0)


def recrawl(change_times, horizon, *, n_crawls, n_runs, rng=None):
    """Histories of one page under many independent draws of Poisson crawls of (0, horizon], given their number.

    Given how many there are, the times of a Poisson process are independent and uniform; its rate is n_crawls / horizon.

    Parameters
    ----------
    change_times : array, shape (n_changes,), sorted
    horizon : float, time
    n_crawls, n_runs : int
    rng : seed or numpy Generator
        Run i depends on the seed and i alone.

    Returns
    -------
    History of shape (n_runs, n_crawls)
    """
    horizon = checks.scalar(checks.positive, "horizon", horizon)
    n_crawls = checks.count("n_crawls", n_crawls)
    streams = np.random.default_rng(rng).spawn(checks.count("n_runs", n_runs))
    return observe(
        change_times,
        np.sort([horizon * (1.0 - stream.random(n_crawls)) for stream in streams]),
    )


def simulate_history(
    change_rate, *, crawl_rate=None, interval=None, n_crawls=None, n_runs=None, rng=None
):
    """Simulated `History` of Poisson pages, crawled at Poisson times or at given intervals.

    P(changed) = 1 - exp(-change_rate * interval), independent between crawls [eq. 4 of valuetools20 for Poisson crawls].

    Parameters
    ----------
    change_rate : float or array of pages, 1/time, non-negative
    crawl_rate : float or array of pages, 1/time
        Poisson crawls at this rate; needs `n_crawls`.
    interval : float or array, shape (..., n_crawls)
        Given intervals instead; leading axes broadcast with the pages. A single number needs `n_crawls`.
    n_crawls : int
    n_runs : int, optional
        Independent runs along a new first axis, each with a generator of its own: run i depends on the seed and i alone.
    rng : seed or numpy Generator

    Returns
    -------
    History of shape (n_crawls,), with n_runs and pages before it: (n_runs, *pages, n_crawls).

    Raises
    ------
    ValueError
        A rate or interval out of range; both or neither of crawl_rate and interval; n_crawls that is missing or contradicts interval.
    """
    change_rate = checks.non_negative("change_rate", change_rate)[..., np.newaxis]
    if (crawl_rate is None) == (interval is None):
        raise ValueError("exactly one of crawl_rate and interval must be given")
    scale = (
        interval
        if crawl_rate is None
        else 1.0 / checks.positive("crawl_rate", crawl_rate)[..., np.newaxis]
    )
    scale = checks.positive("interval", scale)
    if interval is not None and scale.ndim:
        if n_crawls is not None and n_crawls != scale.shape[-1]:
            raise ValueError(
                f"n_crawls must be the length of interval, {scale.shape[-1]}, got {n_crawls!r}"
            )
        n_crawls = scale.shape[-1]
    n_crawls = checks.count("n_crawls", n_crawls)
    given = {"interval" if crawl_rate is None else "crawl_rate": scale}
    shape = (
        *checks.broadcast(change_rate=change_rate, **given)[0].shape[:-1],
        n_crawls,
    )

    def one_run(stream):
        length = (
            scale * stream.standard_exponential(shape)
            if interval is None
            else np.broadcast_to(scale, shape)
        )
        return length, stream.random(shape) < -np.expm1(-change_rate * length)

    rng = np.random.default_rng(rng)
    if n_runs is None:
        return History(*one_run(rng))
    runs = [one_run(stream) for stream in rng.spawn(checks.count("n_runs", n_runs))]
    return History(*(np.stack(arrays) for arrays in zip(*runs, strict=True)))


def simulate_adaptive_history(
    change_rate, *, initial, shrink, grow, limits, n_crawls, n_runs=None, rng=None
):
    """Simulated `History` of Poisson pages whose next interval depends on the bit just seen.

    After a crawl that found a change the interval is multiplied by `shrink`, otherwise by `grow`, and kept within `limits`: the rule of
    production crawlers such as Apache Nutch. Given the interval, P(changed) = 1 - exp(-change_rate * interval), whatever came before.

    Parameters
    ----------
    change_rate : float or array of pages, 1/time, non-negative
    initial : float or array of pages, time
        The first interval, within the limits.
    shrink, grow : float
        Factors, 0 < shrink <= 1 <= grow.
    limits : (low, high)
        Shortest and longest interval, time.
    n_crawls, n_runs, rng : as in `simulate_history`

    Returns
    -------
    History, shaped as by `simulate_history`

    Raises
    ------
    ValueError
        A rate, interval or factor out of range; limits that cross; a first interval outside of them; pages that do not broadcast.
    """
    shrink, grow = (
        checks.scalar(checks.positive, "shrink", shrink),
        checks.scalar(checks.positive, "grow", grow),
    )
    if shrink > 1:
        raise ValueError(f"shrink must be at most 1, got {shrink!r}")
    if grow < 1:
        raise ValueError(f"grow must be at least 1, got {grow!r}")

    def following(interval, changed):
        return interval[-1] * np.where(changed[-1], shrink, grow)

    return _crawl_in_turn(
        following, change_rate, initial, limits, n_crawls, n_runs, rng
    )


def simulate_sequential_history(
    change_rate,
    estimate,
    *,
    initial,
    factor=1.0,
    limits,
    n_crawls,
    n_runs=None,
    rng=None,
):
    """Simulated `History` of Poisson pages whose next interval is a multiple of the period that was just estimated, and the estimates.

    Crawl, estimate, choose the next interval as factor / estimate within `limits`, crawl: sections 4.1 and 5 of [grimes08].

    Parameters
    ----------
    change_rate : float or array of pages, 1/time, non-negative
    estimate : callable, or an online estimator
        What gets the `History` so far and returns a change rate for each page, 1/time, as `estimators.mle` or the `estimate` of
        `priors.FakeIntervals` do; or what has an `update` as `estimators.LLN` does, of which a copy is used. A rate of 0 asks for
        the longest interval, inf for the shortest.
    initial : float or array of pages, time
        The first interval, within the limits.
    factor : float
        The next interval over the estimated period.
    limits : (low, high)
        Shortest and longest interval, time.
    n_crawls, n_runs, rng : as in `simulate_history`

    Returns
    -------
    history : History, shaped as by `simulate_history`
    estimates : array of the shape of ``history.changed``, 1/time; after each crawl

    Raises
    ------
    ValueError
        A rate, interval or factor out of range; limits that cross; a first interval outside of them; pages that do not broadcast;
        estimates that are negative or NaN, or not one for each page.
    """
    factor = checks.scalar(checks.positive, "factor", factor)
    online = copy.deepcopy(estimate) if hasattr(estimate, "update") else None
    estimates = []

    def following(interval, changed):
        if online is None:
            rate = estimate(
                History(np.moveaxis(interval, 0, -1), np.moveaxis(changed, 0, -1))
            )
        else:
            rate = online.update(changed[-1], interval=interval[-1])
        rate = np.asarray(rate, dtype=float)
        if rate.shape != interval.shape[1:] or not (rate >= 0).all():
            raise ValueError(
                f"estimate must give a non-negative change rate for each page, shape {interval.shape[1:]}, got {rate}"
            )
        estimates.append(rate)
        with np.errstate(divide="ignore", over="ignore"):
            return factor / rate

    history = _crawl_in_turn(
        following, change_rate, initial, limits, n_crawls, n_runs, rng
    )
    return history, np.stack(estimates, axis=-1)


def _crawl_in_turn(following, change_rate, initial, limits, n_crawls, n_runs, rng):
    """History of pages of which `following` chooses the next interval from the intervals and bits so far, time on their first axis."""
    change_rate, initial = (
        checks.non_negative("change_rate", change_rate),
        checks.positive("initial", initial),
    )
    limits = checks.positive("limits", limits)
    if limits.shape != (2,) or limits[0] > limits[1]:
        raise ValueError(
            f"limits must be two numbers, the lower one first, got {limits.tolist()!r}"
        )
    low, high = limits
    checks.require(
        "initial",
        initial,
        f"within limits, {low:g} to {high:g}",
        (low <= initial) & (initial <= high),
    )
    n_crawls = checks.count("n_crawls", n_crawls)
    pages = checks.broadcast(change_rate=change_rate, initial=initial)[0].shape
    rng = np.random.default_rng(rng)
    streams = [rng] if n_runs is None else rng.spawn(checks.count("n_runs", n_runs))
    runs = () if n_runs is None else (n_runs,)
    draw = np.stack(
        [np.moveaxis(stream.random((*pages, n_crawls)), -1, 0) for stream in streams],
        axis=1,
    ).reshape(n_crawls, *runs, *pages)
    interval, changed = np.empty_like(draw), np.empty(draw.shape, dtype=bool)
    now = np.broadcast_to(initial, draw.shape[1:])
    for k in range(n_crawls):
        interval[k] = now
        changed[k] = draw[k] < -np.expm1(-change_rate * now)
        now = np.clip(following(interval[: k + 1], changed[: k + 1]), low, high)
    return History(
        *(
            np.ascontiguousarray(np.moveaxis(values, 0, -1))
            for values in (interval, changed)
        )
    )
