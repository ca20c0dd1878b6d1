"""Run policies in worlds, and count what was served fresh."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import simulate as kernels
from recrawl.science.allocation import Allocation
from recrawl.science.processes import History
from recrawl.science.simulate.worlds import World, draw_world
from recrawl.types import Array, ByName, Function, Ints, Seed

__all__ = ["CrawlRun", "compare", "crawl", "replicate", "slot_times"]

# `slot_times` accepts a sum of the bandwidth this much, relatively, off a
# whole number: the rounding error of a sum of some thousand pieces.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class CrawlRun:
    r"""What a policy did in a world.

    .. math:: \mathrm{freshness} = \frac{\sum_i \mu_i\,\mathrm{fresh}_i}
              {\sum_i \mu_i\,\mathrm{there}_i}

    Parameters
    ----------
    time : ndarray, shape (n_slots,), time
        The slots.
    page : ndarray of int, shape (n_slots,)
        The page that was crawled in each slot, -1 for none.
    borders : ndarray, shape (n_windows + 1,), time
        Borders of the windows that are counted.
    fresh : ndarray, shape (n_windows, n_pages), time
        How long each copy was fresh, in expectation given slots and signals.
    there : ndarray, shape (n_windows, n_pages), time
        How long each page was there.
    importance : ndarray, shape (n_pages,)
        Weight of each page.

    Examples
    --------
    >>> from recrawl.science import policies, simulate
    >>> world = simulate.replay([[1.5], []], 4.0)
    >>> run = simulate.crawl(world, policies.Rates([1.0, 1.0]), bandwidth=1.0)
    >>> run.page.tolist(), run.page_freshness.tolist()
    ([0, 1, 0, 1], [0.625, 1.0])
    """

    time: np.ndarray
    page: np.ndarray
    borders: np.ndarray
    fresh: np.ndarray
    there: np.ndarray
    importance: np.ndarray

    def history(
        self, world: World, *, start: float = 0.0, stop: float = np.inf
    ) -> History:
        """What the crawls found.

        Parameters
        ----------
        world : World
            The world of the run.
        start, stop : float, time, default 0.0 and inf
            Crawls after `start` and up to `stop` count. The first of them of a
            page has nothing to compare with and gives no interval.

        Returns
        -------
        History
            Intervals and changes of every page, ragged.
        """
        counted = (self.time > start) & (self.time <= stop)
        return world.observe(self.time, np.where(counted, self.page, -1))

    @property
    def freshness(self) -> float:
        """Share of requests served fresh; NaN without any."""
        return _ratio(
            self.fresh.sum(axis=0) @ self.importance,
            self.there.sum(axis=0) @ self.importance,
        )

    @property
    def window_freshness(self) -> Array:
        """Share of requests served fresh in each window, shape (n_windows,)."""
        return _ratio(self.fresh @ self.importance, self.there @ self.importance)

    @property
    def page_freshness(self) -> Array:
        """Freshness of each page, shape (n_pages,); NaN for one never there."""
        return _ratio(self.fresh.sum(axis=0), self.there.sum(axis=0))

    @property
    def n_crawls(self) -> Ints:
        """Crawls of every page within the windows, shape (n_pages,)."""
        pages = self.page[self._counted & (self.page >= 0)]
        return np.bincount(pages, minlength=self.importance.size)

    @property
    def n_idle(self) -> int:
        """Number of slots within the windows in which no page was crawled."""
        return np.count_nonzero(self._counted & (self.page < 0))

    @property
    def crawl_rate(self) -> Array:
        """Crawls of every page per unit of time that it was there, 1/time.

        Within the windows; shape (n_pages,), NaN for a page never there.
        """
        return _ratio(self.n_crawls, self.there.sum(axis=0))

    @property
    def _counted(self):
        return (self.borders[0] <= self.time) & (self.time <= self.borders[-1])


def _ratio(some, whole):
    with np.errstate(invalid="ignore"):
        return some / whole


def slot_times(bandwidth: float | tuple[ArrayLike, ArrayLike], horizon: float) -> Array:
    r"""Times of the slots: slot j comes when the bandwidth has added up to j.

    .. math:: \int_0^{t_j} B(s)\,ds = j

    Parameters
    ----------
    bandwidth : float, or tuple of array_like, 1/time
        A number, or ``(times, rates)``: the rate from each of the times on,
        which rise from 0. A rate may be 0.
    horizon : float, time
        No slot is later.

    Returns
    -------
    ndarray, shape (n_slots,), time
        Rising.

    Raises
    ------
    ValueError
        A negative rate or horizon; times that do not rise from 0.

    Examples
    --------
    >>> slot_times(2.0, 1.5).tolist()
    [0.5, 1.0, 1.5]
    >>> slot_times(([0.0, 1.0, 3.0], [1.0, 0.0, 2.0]), 4.0).tolist()
    [1.0, 3.5, 4.0]
    """
    times, rates = bandwidth if isinstance(bandwidth, tuple) else ([0.0], [bandwidth])
    horizon = checks.scalar(checks.non_negative, "horizon", horizon)
    times = checks.non_negative("bandwidth times", times)
    rates = checks.non_negative("bandwidth", rates)
    if (
        times.ndim != 1
        or times.shape != rates.shape
        or not times.size
        or times[0] != 0
        or not (np.diff(times) > 0).all()
    ):
        raise ValueError(
            "bandwidth must be a number, or rates and the times from which they "
            f"hold, rising from 0, got {bandwidth!r}"
        )
    edges = np.append(times[times < horizon], horizon)
    total = np.append(0.0, np.cumsum(rates[: edges.size - 1] * np.diff(edges)))
    number = np.arange(1, int(total[-1] * (1 + _ROUNDING)) + 1)
    # the first edge by which the sum is reached: it may stand still before a
    # later one
    after = np.searchsorted(total, number * (1 - _ROUNDING), side="left")
    before = np.minimum(after, edges.size - 1) - 1
    return np.minimum(edges[before] + (number - total[before]) / rates[before], horizon)


def crawl(
    world: World,
    policy: Any,
    bandwidth: float | tuple[ArrayLike, ArrayLike],
    *,
    initial: Literal["fresh", "empty"] = "fresh",
    borders: ArrayLike | None = None,
) -> CrawlRun:
    r"""Run a policy in a world.

    Freshness is eq. (1) of [www25]_,

    .. math:: e^{-\alpha t} (1 - precision)^n ,

    at time t after the last crawl, in true parameters and with the n signals
    sent since then, arrived or not. It is the expectation given slots and
    signals, so that no request has to be drawn. This also holds for policies
    with due dates: a due date depends only on what earlier crawls found.

    Parameters
    ----------
    world : World
        Where to run it.
    policy : object
        A policy that picks pages (see `recrawl.science.policies`): its
        ``choose(world, time, last)`` returns the page of each slot.
    bandwidth : float or tuple, 1/time
        As in `slot_times`.
    initial : {"fresh", "empty"}, default "fresh"
        Whether the pages that are there at time 0 have just been crawled.
        Pages that come later have never been crawled.
    borders : array_like, time, rising, optional
        Borders of the windows to count; by default the whole time is one.

    Returns
    -------
    CrawlRun
        Slots, pages and fresh time.

    Raises
    ------
    ValueError
        Arguments out of range; a policy for other pages.

    Notes
    -----
    The plain form of the freshness is `tests.plain.accuracy`.

    Examples
    --------
    >>> from paperlib import signals
    >>> from recrawl.science import policies
    >>> pages = signals.SignalledPages([0.5, 2.0], 1.0, 0.5, 0.1)
    >>> world = draw_world(pages, 50.0, rng=1)
    >>> run = crawl(world, policies.GreedyNCIS(pages), bandwidth=2.0)
    >>> int(run.n_crawls.sum()), bool(0.5 < run.freshness < 0.9)
    (100, True)
    """
    checks.one_of("initial", initial, ("fresh", "empty"))
    borders = _windows(borders, world.horizon)
    time = slot_times(bandwidth, world.horizon)
    last = np.where((world.start == 0) & (initial == "fresh"), 0.0, -np.inf)
    page = _checked(policy.choose(world, time, last.copy()), time.size, last.size)
    begin, end = borders[:-1, np.newaxis], borders[1:, np.newaxis]
    there = np.minimum(end, world.stop) - np.maximum(begin, world.start)
    return CrawlRun(
        time,
        page,
        borders,
        _fresh_time(world, time, page, last, borders),
        np.maximum(there, 0.0),
        world.pages.importance,
    )


def _checked(page, n_slots, n_pages):
    """The page of each slot as an array, if it is one."""
    page = np.asarray(page)
    if page.shape != (n_slots,) or page.dtype.kind != "i":
        raise ValueError(
            f"policy must choose an integer for each of {n_slots} slots, "
            f"got {page.dtype} of shape {page.shape}"
        )
    if page.size and not (page.min() >= -1 and page.max() < n_pages):
        wrong = page[(page < -1) | (page >= n_pages)][0]
        raise ValueError(
            f"policy must choose pages from 0 to {n_pages - 1}, or -1, got {wrong}"
        )
    return page


def _windows(borders, horizon):
    """The borders of windows as a checked array; by default the whole time."""
    borders = checks.non_negative(
        "borders", [0, horizon] if borders is None else borders
    )
    if (
        borders.ndim != 1
        or borders.size < 2
        or not (np.diff(borders) > 0).all()
        or borders[-1] > horizon
    ):
        raise ValueError(
            f"borders must rise within the horizon, {horizon:g}, at least two of "
            f"them, got {borders}"
        )
    return borders


def _fresh_time(world, time, page, last, borders):
    """Expected fresh time of every page in every window."""
    pages = np.empty(last.size, kernels.PAGE)
    pages["alpha"], pages["last"] = world.pages.alpha, last
    pages["start"], pages["stop"] = world.start, world.stop
    with np.errstate(invalid="ignore"):
        pages["doubt"] = world.pages.false_rate / world.pages.gamma
    # a stable sort of few bits is linear
    few_bits = page.astype(np.min_scalar_type(-last.size))
    order = np.argsort(few_bits, kind="stable")
    offsets = np.searchsorted(page[order], np.arange(last.size + 1))
    # what lies before the first window is counted in a window of its own
    edges = borders if borders[0] == 0 else np.append(0.0, borders)
    fresh = np.zeros((edges.size - 1, last.size))
    kernels.fresh_time(
        pages,
        kernels.Events(time[order], offsets),
        kernels.Events(world.signal_time, world.offsets),
        edges,
        fresh,
    )
    return fresh[edges.size - borders.size :]


def replicate(
    function: Function, n_runs: int, *, rng: Seed = None, jobs: int = 1
) -> list[Any]:
    """Call ``function(rng)`` for every run.

    Parameters
    ----------
    function : callable
        Function of a Generator.
    n_runs : int
        Number of runs.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers; run i depends on it and i alone.
    jobs : int, default 1
        Number of processes, or of threads of a joblib backend; -1 for all.

    Returns
    -------
    list
        The results in the order of the runs.

    Raises
    ------
    ValueError
        A number of runs that is not a positive integer; no job at all.
    ImportError
        More than one job without joblib.

    Notes
    -----
    On a Dask cluster, with the same results to the last bit, call it with
    ``jobs=-1`` within ``with distributed.Client(address),
    joblib.parallel_config("dask"):``.

    Examples
    --------
    >>> first = replicate(lambda rng: rng.random(), 2, rng=1)
    >>> replicate(lambda rng: rng.random(), 3, rng=1)[:2] == first
    True
    """
    streams = np.random.default_rng(rng).spawn(checks.count("n_runs", n_runs))
    if jobs == 0:
        raise ValueError("jobs must be positive, or -1 for all processors, got 0")
    try:
        import joblib  # optional, and one job does without it
    except ImportError:
        if jobs != 1:
            raise ImportError(
                "jobs other than 1 need joblib: pip install 'paperlib-crawl[dask]'"
            ) from None
        return [function(stream) for stream in streams]
    # also for one job: an active backend, such as a Dask cluster, decides
    # where
    return joblib.Parallel(n_jobs=jobs)(map(joblib.delayed(function), streams))


def compare(
    draw: Function,
    policies: Function,
    bandwidth: float | tuple[ArrayLike, ArrayLike],
    horizon: float,
    *,
    n_runs: int,
    rng: Seed = None,
    keep: Function = attrgetter("freshness"),
    jobs: int = 1,
    arrivals: tuple[Any, ...] | None = None,
    delays: dict[str, Any] | None = None,
    remember: Function = lambda depends_on, compute: compute(),
    **options: Any,
) -> ByName:
    """Run policies in the same worlds.

    Every run has new pages and a new world.

    Parameters
    ----------
    draw : callable
        Function of a Generator: the SignalledPages of a run.
    policies : callable
        Function of those pages and a Generator: a dictionary of policies by
        name. An `Allocation` among them stands for its freshness, the
        continuous optimum. A pair of a policy and the name of a delay receives
        the same signals later.
    bandwidth : float or tuple, 1/time
        As in `slot_times`.
    horizon : float, time
        End of the worlds.
    n_runs : int
        Number of runs.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers; run i depends on it and i alone.
    keep : callable, optional
        Function of a CrawlRun: what to keep of it; by default its freshness.
    jobs : int, default 1
        As in `replicate`.
    arrivals : tuple, optional
        As in `draw_world`.
    delays : dict, optional
        By name, a signal_delay as in `World.delayed`.
    remember : callable, optional
        Function of a tuple of all that a result depends on, and of a function
        that computes it; returns the result, which it may have kept from an
        earlier call. It is not called for results with a delay.
    **options
        As in `crawl`.

    Returns
    -------
    dict of ndarray, shape (n_runs, ...)
        What was kept, by name.

    Raises
    ------
    ValueError
        Arguments out of range, as in the functions named above.

    Examples
    --------
    >>> from paperlib import signals
    >>> from recrawl.science import policies
    >>> found = compare(
    ...     lambda rng: signals.SignalledPages(rng.random(9), 1.0, 0.5, 0.1),
    ...     lambda pages, rng: {
    ...         "greedy": policies.Greedy(pages),
    ...         "with signals": policies.GreedyNCIS(pages),
    ...     },
    ...     bandwidth=2.0,
    ...     horizon=100.0,
    ...     n_runs=3,
    ...     rng=1,
    ... )
    >>> bool((found["with signals"] > found["greedy"]).all())
    True
    """

    def one_run(rng):
        of_pages, of_world, of_policies, of_delays = rng.spawn(4)
        pages = draw(of_pages)
        nature = pages, horizon, arrivals, copy.deepcopy(of_world)
        world = draw_world(pages, horizon, arrivals=arrivals, rng=of_world)
        worlds = {None: world} | {
            name: world.delayed(delay, rng=of_delays)
            for name, delay in (delays or {}).items()
        }
        results = {}
        for name, policy in policies(pages, of_policies).items():
            policy, delay = policy if isinstance(policy, tuple) else (policy, None)
            if isinstance(policy, Allocation):
                results[name] = policy.freshness
                continue

            def result(world=worlds[delay], policy=policy):
                return keep(crawl(world, policy, bandwidth, **options))

            depends_on = nature, policy, bandwidth, options, keep
            results[name] = result() if delay else remember(depends_on, result)
        return results

    runs = replicate(one_run, n_runs, rng=rng, jobs=jobs)
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}
