"""The rules of today's crawlers."""

from dataclasses import dataclass

import numpy as np

from paperlib import checks
from paperlib._kernels import crawlers as kernels


@dataclass(frozen=True, eq=False, kw_only=True)
class _DueDates:
    """Every page has an interval that a crawl shortens if it found a change and lengthens if not; the most overdue page gets the slot.

    A slot without a page that is due stays empty. Ties go to the lower index. A page never crawled is due at once.
    """

    day: float
    initial: float
    shrink: float
    grow: float
    limits: tuple

    def __post_init__(self):
        checks.scalar(checks.positive, "day", self.day)
        checks.scalar(checks.positive, "initial", self.initial)
        checks.probability("shrink", self.shrink)
        if not checks.scalar(checks.positive, "grow", self.grow) > 1:
            raise ValueError(f"grow must be above 1, got {self.grow!r}")
        limits = checks.positive("limits", self.limits)
        if limits.shape != (2,) or not limits[0] < limits[1]:
            raise ValueError(
                f"limits must be two numbers, the lower one first, got {self.limits!r}"
            )

    def _rule(self, base=0.0, sync=kernels.NO_SYNC, cap=np.inf, cycle=0.0):
        low, high, base, cap, cycle = (
            float(length) * self.day for length in (*self.limits, base, cap, cycle)
        )
        return (
            base,
            float(self.shrink),
            float(self.grow),
            low,
            high,
            float(sync),
            cap,
            cycle,
        )

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, shape (n_slots,), -1 where no page is due.

        time : array, shape (n_slots,); last : array, shape (n_pages,), the last crawl of each page, -inf for none
        """
        initial = float(self.initial) * self.day
        due = np.where(last == -np.inf, world.start, last + initial)
        out = np.empty(time.size, dtype=np.int64)
        kernels.due_slots(
            time,
            *world.changes,
            last,
            world.stop,
            due,
            np.argsort(due, kind="stable"),
            initial,
            self._rule(),
            out,
        )
        return out

    def settled(self, change_rate):
        """Where the rule settles on Poisson pages that are crawled as soon as they are due.

        The intervals from one crawl that finds a change to the next follow from the interval at the first: a Markov chain, here on a grid
        of steps of 2%. Accurate to a relative 1e-3; near the change rates at which `Nutch.cap` begins to matter, to 5%.

        Parameters
        ----------
        change_rate : array, 1/time, positive

        Returns
        -------
        crawl_rate : array, 1/time, in the long run
        freshness : array
            The share of changes that a crawl is the first to find, for after it the copy is fresh until the next change.
        """
        change_rate = checks.positive("change_rate", change_rate)
        rule = self._rule()
        low, high = self.limits
        grid = self.day * np.geomspace(low, high, 2 + int(np.log(high / low) / 0.02))
        found = np.empty((2, change_rate.size))
        for k, rate in enumerate(change_rate.ravel()):
            transition, crawls, time = (
                np.zeros((grid.size, grid.size)),
                np.zeros(grid.size),
                np.zeros(grid.size),
            )
            kernels.from_change_to_change(grid, rate, rule, transition, crawls, time)
            balance = transition.T - np.eye(grid.size)
            balance[-1] = 1.0
            law = np.linalg.solve(balance, np.append(np.zeros(grid.size - 1), 1.0))
            found[:, k] = law @ crawls / (law @ time), 1.0 / (law @ time * rate)
        return tuple(found.reshape(2, *change_rate.shape))


@dataclass(frozen=True, eq=False, kw_only=True)
class Nutch(_DueDates):
    """Due dates by AdaptiveFetchSchedule of Apache Nutch 1.x since NUTCH-1564 is repaired; the defaults are those of nutch-default.xml.

    A crawl multiplies the interval by `shrink` if it found a change, else by `grow`. Without a change and with `sync_delta`, where delta
    is the time since a crawl last found one: the interval is at least delta; kept within the limits, it starts sync_delta x delta
    before the crawl (at the crawl itself where that is more than the upper limit).

    Not as in Nutch: the most overdue page comes first, not the one of best score; a page is due no sooner than the lower limit after its
    crawl; crawls do not come in cycles of generate, fetch and update.

    Parameters
    ----------
    day : float, time
        The length of a day in the unit of the world; all times below are in days.
    initial : float
        First interval; db.fetch.interval.default.
    shrink, grow : float
        1 - dec_rate and 1 + inc_rate. Where no configuration is read, the code falls back on 0.8 and 1.2.
    limits : (low, high)
        min_interval and max_interval: a minute and a year.
    sync_delta : float in [0, 1], or None for off
        sync_delta_rate; the code falls back on 0.2.
    cap : float, or None for none
        db.fetch.interval.max. It is no bound of the interval: a page due later than this is taken for lost, gets the interval 0.9 cap
        and is fetched in the next cycle. Without a change it is soon due too late again, and so it is fetched in every cycle.
    cycle : float
        From one cycle to the next, which Nutch leaves to who runs it; matters only with `cap`.
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
            checks.scalar(checks.positive, "cap", self.cap)
        checks.scalar(checks.positive, "cycle", self.cycle)

    def _rule(self):
        sync, cap = (
            other if value is None else value
            for value, other in ((self.sync_delta, kernels.NO_SYNC), (self.cap, np.inf))
        )
        return super()._rule(sync=sync, cap=cap, cycle=self.cycle)


@dataclass(frozen=True, eq=False, kw_only=True)
class StormCrawler(_DueDates):
    """Due dates by AdaptiveScheduler of Apache StormCrawler, with its defaults.

    A crawl that found a change takes the interval the share 1 - `shrink` of the way to the lower limit, another one multiplies it by
    `grow`, up to the upper limit. Not rounded down to minutes.

    Parameters
    ----------
    day : float, time
        The length of a day in the unit of the world; all times below are in days.
    initial : float
        First interval; fetchInterval.default.
    shrink, grow : float
        1 - rate.decr and 1 + rate.incr.
    limits : (low, high)
        scheduler.adaptive.fetchInterval.min and max: an hour and two weeks.
    """

    day: float = 1.0
    initial: float = 1.0
    shrink: float = 0.5
    grow: float = 1.5
    limits: tuple = (1 / 24, 14.0)

    def _rule(self):
        return super()._rule(base=self.limits[0])
