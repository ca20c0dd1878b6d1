"""The rules of today's crawlers."""

from dataclasses import dataclass

import numpy as np

from recrawl import checks
from recrawl.kernels import crawlers as kernels
from recrawl.kernels.heaps import ENTRY

__all__ = ["Nutch", "StormCrawler"]

# Ratio of neighbouring intervals in the grid of `settled`, in logarithms:
# steps of 2% give a relative error of some 1e-3.
_STEP = 0.02


class _DueDates:
    """Each page has an interval, which a crawl shortens or lengthens.

    The most overdue page gets the slot; a slot without a page that is due
    stays empty. Ties go to the lower index. A page never crawled is due at
    once. The parameters are fields of the two kinds.
    """

    # of `Nutch` only
    sync_delta = cap = None
    cycle = 0.0
    # a change shortens the interval towards it
    _base = 0.0

    def __post_init__(self):
        checks.positive_number("day", self.day)
        checks.positive_number("initial", self.initial)
        checks.probability("shrink", self.shrink)
        if not checks.positive_number("grow", self.grow) > 1:
            raise ValueError(f"grow must be above 1, got {self.grow!r}")
        checks.low_high("limits", self.limits)

    def _rule(self):
        """The rule in the unit of the world."""
        cap = np.inf if self.cap is None else self.cap
        sync = kernels.NO_SYNC if self.sync_delta is None else float(self.sync_delta)
        base, low, high, cap, cycle = (
            float(length) * self.day
            for length in (self._base, *self.limits, cap, self.cycle)
        )
        shrink, grow = float(self.shrink), float(self.grow)
        return kernels.Rule(base, shrink, grow, low, high, sync, cap, cycle)

    def choose(self, world, time, last):
        """Page of each slot.

        Parameters
        ----------
        world : World
            Changes, which a crawl finds, and when pages come and go.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where no page is due.
        """
        interval = np.full(last.size, float(self.initial) * self.day)
        due = np.where(last == -np.inf, world.start, last + interval)
        last = last.copy()
        pages = kernels.DuePages(interval, last, last.copy(), world.stop)
        heap = np.empty(due.size, ENTRY)
        heap["page"] = np.argsort(due, kind="stable")
        heap["key"] = due[heap["page"]]
        out = np.empty(time.size, dtype=np.int64)
        changes = world.unseen(time.size)
        kernels.due_slots(time, changes, pages, heap, self._rule(), out)
        return out

    def settled(self, change_rate):
        """Steady state of the rule on Poisson pages that are crawled when due.

        The intervals from one crawl that finds a change to the next follow
        from the interval at the first: a Markov chain, here on a grid of steps
        of 2%. The relative error is 1e-3, and up to 5% near the change rates
        at which `Nutch.cap` begins to matter.

        Parameters
        ----------
        change_rate : array_like, 1/time, positive
            True change rates.

        Returns
        -------
        crawl_rate : ndarray, 1/time
            Crawls per unit of time in the long run.
        freshness : ndarray
            Share of changes that a crawl is the first to find, because after
            it the copy is fresh until the next change.

        Raises
        ------
        ValueError
            A change rate that is not positive and finite.
        """
        change_rate = checks.positive("change_rate", change_rate)
        low, high = self.limits
        n_steps = int(np.log(high / low) / _STEP)
        grid = self.day * np.geomspace(low, high, 2 + n_steps)
        found = np.empty((2, change_rate.size))
        for k, rate in enumerate(change_rate.ravel()):
            chain, crawls, time = kernels.from_change_to_change(
                grid, rate, self._rule()
            )
            # the stationary distribution: one balance equation gives way to
            # the sum
            balance = chain.T - np.eye(grid.size)
            balance[-1] = 1.0
            share = np.linalg.solve(balance, np.append(np.zeros(grid.size - 1), 1.0))
            time = share @ time
            found[:, k] = share @ crawls / time, 1.0 / (time * rate)
        return tuple(found.reshape(2, *change_rate.shape))


@dataclass(frozen=True, eq=False, kw_only=True)
class Nutch(_DueDates):
    r"""Due dates by AdaptiveFetchSchedule of Apache Nutch 1.x.

    .. math:: w \leftarrow \begin{cases} w \cdot \mathrm{shrink} & \text{changed} \\
        w \cdot \mathrm{grow} & \text{unchanged} \end{cases}

    The code is that since NUTCH-1564 is repaired, the defaults are those of
    nutch-default.xml. A crawl multiplies the interval by `shrink` if it found
    a change, else by `grow`. Without a change and with `sync_delta`, where
    delta is the time since a crawl last found one: the interval is at least
    delta; kept within the limits, it starts sync_delta x delta before the
    crawl (at the crawl itself where that is more than the upper limit).

    Three things differ from Nutch: the most overdue page comes first, not the
    one of best score; a page is due no sooner than the lower limit after its
    crawl; crawls do not come in cycles of generate, fetch and update.

    Parameters
    ----------
    day : float, time, default 1.0
        Length of a day in the unit of the world; times below are in days.
    initial : float, default 30.0
        First interval; db.fetch.interval.default.
    shrink, grow : float, default 0.8 and 1.4
        1 - dec_rate and 1 + inc_rate. Where no configuration is read, the code
        of Nutch uses 0.8 and 1.2.
    limits : tuple of float, default (1 / 1440, 365.0)
        min_interval and max_interval: a minute and a year.
    sync_delta : float, in [0, 1], or None, default 0.3
        sync_delta_rate, None for off; without a configuration 0.2.
    cap : float or None, default 90.0
        db.fetch.interval.max, None for none. It does not bound the interval: a
        page that is due later than this counts as lost, gets the interval 0.9
        cap and is fetched in the next cycle. If it does not change, its due
        date is soon too late again, so that it is fetched in every cycle.
    cycle : float, default 1.0
        Time from one cycle to the next, which Nutch leaves to its operator; it
        matters only with `cap`.

    Raises
    ------
    ValueError
        Arguments out of range.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> world = simulate.replay([[]], 200.0)
    >>> run = simulate.crawl(world, Nutch(cap=None), bandwidth=1.0)
    >>> run.time[run.page == 0].tolist()
    [30.0, 63.0, 108.0, 184.0]
    """

    day: float = 1.0
    initial: float = 30.0
    shrink: float = 0.8
    grow: float = 1.4
    limits: tuple = (1 / 1440, 365.0)
    sync_delta: float | None = 0.3
    cap: float | None = 90.0
    cycle: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.sync_delta is not None:
            checks.scalar(checks.share, "sync_delta", self.sync_delta)
        if self.cap is not None:
            checks.positive_number("cap", self.cap)
        checks.positive_number("cycle", self.cycle)


@dataclass(frozen=True, eq=False, kw_only=True)
class StormCrawler(_DueDates):
    r"""Due dates by AdaptiveScheduler of Apache StormCrawler.

    .. math:: w \leftarrow \begin{cases}
        \mathrm{low} + \mathrm{shrink}\,(w - \mathrm{low}) & \text{changed} \\
        \min(w \cdot \mathrm{grow}, \mathrm{high}) & \text{unchanged} \end{cases}

    The defaults are its own. A crawl that found a change takes the interval
    the share 1 - `shrink` of the way to the lower limit; any other crawl
    multiplies it by `grow`, up to the upper limit. Intervals are not rounded
    down to minutes.

    Parameters
    ----------
    day : float, time, default 1.0
        Length of a day in the unit of the world; times below are in days.
    initial : float, default 1.0
        First interval; fetchInterval.default.
    shrink, grow : float, default 0.5 and 1.5
        1 - rate.decr and 1 + rate.incr.
    limits : tuple of float, default (1 / 24, 14.0)
        scheduler.adaptive.fetchInterval.min and max: an hour and two weeks.

    Raises
    ------
    ValueError
        Arguments out of range.

    Examples
    --------
    >>> crawl_rate, freshness = StormCrawler().settled([0.1, 1.0])
    >>> crawl_rate.round(2).tolist(), freshness.round(2).tolist()
    ([0.2, 1.76], [0.73, 0.7])
    """

    day: float = 1.0
    initial: float = 1.0
    shrink: float = 0.5
    grow: float = 1.5
    limits: tuple = (1 / 24, 14.0)

    @property
    def _base(self):
        return self.limits[0]
