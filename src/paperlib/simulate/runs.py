"""Run policies in worlds, and count what was served fresh."""

from dataclasses import dataclass

import joblib
import numpy as np

from paperlib import checks
from paperlib._kernels import simulate as kernels
from paperlib.allocation import Allocation
from paperlib.processes import History
from paperlib.simulate.worlds import draw_world


@dataclass(frozen=True, eq=False)
class CrawlRun:
    """What a policy did in a world.

    time, page : arrays, shape (n_slots,); the slots, and who got them, -1 for nobody
    borders : array, shape (n_windows + 1,), time
    fresh : array, shape (n_windows, n_pages), time; how long each copy was fresh, in expectation given slots and signals
    there : array, shape (n_windows, n_pages), time; how long each page was there
    importance : array, shape (n_pages,)
    """

    time: np.ndarray
    page: np.ndarray
    borders: np.ndarray
    fresh: np.ndarray
    there: np.ndarray
    importance: np.ndarray

    def history(self, world, start=0.0, stop=np.inf):
        """What the crawls after `start` and up to `stop` found in the `World` of the run: a ragged History.

        A page's first crawl there makes it known and gives no interval.
        """
        here = (self.page >= 0) & (self.time > start) & (self.time <= stop)
        order = np.lexsort((self.time[here], self.page[here]))
        page, time = self.page[here][order], self.time[here][order]
        change, offsets = world.changes
        # one search for all pages: their times laid end to end
        ends = 2 * world.horizon * np.arange(offsets.size)
        seen = np.searchsorted(
            np.repeat(ends[:-1], np.diff(offsets)) + change,
            ends[page] + time,
            side="right",
        )
        again = page[1:] == page[:-1]
        crawls = np.bincount(page[1:][again], minlength=offsets.size - 1)
        return History(
            np.diff(time)[again],
            (np.diff(seen) > 0)[again],
            np.append(0, np.cumsum(crawls)),
        )

    @property
    def accuracy(self):
        """Share of requests served fresh; NaN without any."""
        return _ratio(
            self.fresh.sum(axis=0) @ self.importance,
            self.there.sum(axis=0) @ self.importance,
        )

    @property
    def window_accuracy(self):
        """The same in every window, shape (n_windows,)."""
        return _ratio(self.fresh @ self.importance, self.there @ self.importance)

    @property
    def page_accuracy(self):
        """The same for every page, shape (n_pages,); NaN for a page that was never there."""
        return _ratio(self.fresh.sum(axis=0), self.there.sum(axis=0))

    @property
    def n_crawls(self):
        """Crawls of every page within the windows, shape (n_pages,)."""
        return np.bincount(
            self.page[self._counted & (self.page >= 0)], minlength=self.importance.size
        )

    @property
    def _counted(self):
        return (self.borders[0] <= self.time) & (self.time <= self.borders[-1])

    @property
    def n_idle(self):
        """Slots within the windows that nobody got."""
        return np.count_nonzero(self._counted & (self.page < 0))

    @property
    def crawl_rate(self):
        """Crawls of every page within the windows over its time there, shape (n_pages,), 1/time; NaN for a page that was never there."""
        return _ratio(self.n_crawls, self.there.sum(axis=0))


def _ratio(some, whole):
    with np.errstate(invalid="ignore"):
        return some / whole


def slot_times(bandwidth, horizon):
    """Times of the slots within the horizon: the j-th when the bandwidth has added up to j.

    bandwidth : a number, 1/time, or (times, rates): the rate from each of the times on, which rise from 0; a rate may be 0.
    """
    times, rates = bandwidth if isinstance(bandwidth, tuple) else ([0.0], [bandwidth])
    times, rates = (
        checks.non_negative("bandwidth times", times),
        checks.non_negative("bandwidth", rates),
    )
    if (
        times.ndim != 1
        or times.shape != rates.shape
        or not times.size
        or times[0] != 0
        or not (np.diff(times) > 0).all()
    ):
        raise ValueError(
            f"bandwidth must be a number, or rates and the times from which they hold, rising from 0, got {bandwidth!r}"
        )
    edges = np.append(times[times < horizon], horizon)
    total = np.append(0.0, np.cumsum(rates[: edges.size - 1] * np.diff(edges)))
    number = np.arange(1, int(total[-1] * (1 + 1e-12)) + 1)
    # where the sum stands still there is no slot: the first edge that reaches it counts
    after = (
        1
        if edges.size == 2
        else np.clip(
            np.searchsorted(total, number * (1 - 1e-12), side="left"), 1, edges.size - 1
        )
    )
    return np.minimum(
        edges[after - 1] + (number - total[after - 1]) / rates[after - 1], horizon
    )


def crawl(world, policy, bandwidth, *, initial="fresh", borders=None):
    """Run a policy in a world.

    Parameters
    ----------
    world : World
    policy : of `policies`: one of the greedy family, Rates, Nutch or StormCrawler
        It knows the pages as it believes them to be; those that keep due dates know only whether a page had changed when they crawled it.
    bandwidth : float, 1/time, or (times, rates), see `slot_times`
    initial : "fresh" or "empty"
        Whether the pages that are there at time 0 have just been crawled. Pages that come later have never been.
    borders : array, rising, time, optional
        Of the windows that accuracy is asked for; by default one, the whole time.

    Returns
    -------
    CrawlRun
        Freshness is exp(-alpha t) (1 - precision)^n since the last crawl, eq. (1) of [www25], in true parameters and with the n
        signals sent since then, arrived or not: its expectation given slots and signals, so that no request has to be drawn. Due dates
        tell of later changes as little, for a crawl is due by what earlier crawls found.
    """
    if initial not in ("fresh", "empty"):
        raise ValueError(f"initial must be 'fresh' or 'empty', got {initial!r}")
    n_pages = world.start.size
    borders = (
        np.array([0.0, world.horizon])
        if borders is None
        else checks.non_negative("borders", borders)
    )
    if (
        borders.ndim != 1
        or borders.size < 2
        or not (np.diff(borders) > 0).all()
        or borders[-1] > world.horizon
    ):
        raise ValueError(
            f"borders must rise within the horizon, {world.horizon:g}, at least two of them, got {borders}"
        )
    time = slot_times(bandwidth, world.horizon)
    last = np.where((world.start == 0) & (initial == "fresh"), 0.0, -np.inf)
    page = policy.choose(world, time, last.copy())
    with np.errstate(invalid="ignore"):
        doubt = world.pages.false_rate / world.pages.gamma
    # what lies before the first window is counted in a window of its own
    edges = borders if borders[0] == 0 else np.append(0.0, borders)
    counted = np.zeros((edges.size - 1, n_pages))
    crawls = kernels.by_page(page, time, n_pages)
    kernels.fresh_time(
        *crawls,
        world.signal_time,
        world.offsets,
        world.pages.alpha,
        doubt,
        world.start,
        world.stop,
        last,
        edges,
        counted,
    )
    fresh = counted[edges.size - borders.size :]
    there = np.maximum(
        np.minimum(borders[1:, np.newaxis], world.stop)
        - np.maximum(borders[:-1, np.newaxis], world.start),
        0.0,
    )
    return CrawlRun(time, page, borders, fresh, there, world.pages.importance)


def replicate(function, n_runs, *, seed, jobs=1):
    """Call ``function(rng)`` for every run and return the results in order.

    n_runs : int. seed : seed or numpy Generator; run i depends on it and i alone. jobs : processes, or threads of a joblib backend.

    On a Dask cluster, with the same results to the last bit: ``with distributed.Client(address), joblib.parallel_config("dask"):`` around
    the call, and ``jobs=-1``.
    """
    streams = np.random.default_rng(seed).spawn(checks.count("n_runs", n_runs))
    return joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(function)(stream) for stream in streams
    )


def compare(draw, policies, bandwidth, horizon, *, n_runs, seed, keep=lambda run: run.accuracy, jobs=1,
            arrivals=None, delays=None, **options):  # fmt: skip
    """Run policies in the same worlds, new pages and a new world in every run.

    Parameters
    ----------
    draw : function of a Generator
        The pages of a run, SignalledPages.
    policies : function of those pages and a Generator
        A dictionary of policies by name; an `Allocation` among them stands for its freshness, the continuous optimum. A pair of a policy
        and the name of a delay hears the same signals late.
    bandwidth, horizon, arrivals, options : as in `crawl` and `draw_world`
    n_runs, seed, jobs : as in `replicate`
    delays : dict of signal_delay, as in `World.delayed`, by name
    keep : function of a CrawlRun
        What to keep of it; by default its accuracy.

    Returns
    -------
    dict of arrays, shape (n_runs, ...), by name
    """

    def one_run(rng):
        of_pages, of_world, of_policies, of_delays = rng.spawn(4)
        pages = draw(of_pages)
        world = draw_world(pages, horizon, arrivals=arrivals, rng=of_world)
        late = {
            name: world.delayed(delay, rng=of_delays)
            for name, delay in (delays or {}).items()
        }
        results = {}
        for name, policy in policies(pages, of_policies).items():
            policy, heard = (
                (policy[0], late[policy[1]])
                if isinstance(policy, tuple)
                else (policy, world)
            )
            results[name] = (
                policy.freshness
                if isinstance(policy, Allocation)
                else keep(crawl(heard, policy, bandwidth, **options))
            )
        return results

    runs = replicate(one_run, n_runs, seed=seed, jobs=jobs)
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}
