"""The greedy family."""

from dataclasses import dataclass

import numpy as np

from paperlib import checks
from paperlib._kernels import crawl_value
from paperlib._kernels import scheduler as kernels
from paperlib.policies.fixed_rates import _of_the_world
from paperlib.signals import SignalledPages


@dataclass(frozen=True, eq=False)
class Greedy:
    """Each slot goes to the page of largest `freshness.crawl_value`, without signals. GREEDY of algorithm 1 of [www25].

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    """

    pages: SignalledPages
    terms = None
    discard_window = 0.0

    @property
    def listens(self):
        """Pages whose signals count, bool array of shape (n_pages,)."""
        return np.zeros(self.pages.change_rate.size, dtype=bool)

    @property
    def believed(self):
        """The pages as the crawl value takes them: without signals where it does not listen."""
        recall, false_rate = (
            self.pages.recall * self.listens,
            self.pages.false_rate * self.listens,
        )
        return SignalledPages(
            self.pages.change_rate, self.pages.importance, recall, false_rate
        )

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, shape (n_slots,), -1 where there is no page.

        time : array, shape (n_slots,); last : array, shape (n_pages,), the last crawl of each page, -inf for none
        """
        _of_the_world("pages", self.pages.change_rate.size, world)
        believed = self.believed
        constants = crawl_value.page_constants(
            *(
                getattr(believed, name)
                for name in ("change_rate", "importance", "recall", "false_rate")
            ),
            self.terms or 0,
        )
        signals = {}
        if self.listens.any():
            start, stop = world.offsets[:-1], world.offsets[1:]
            signals = {
                "signals": world.heard,
                "start": start,
                "stop": np.where(self.listens, stop, start),
            }
        state = kernels.new_state(
            constants,
            last,
            np.zeros(last.size, dtype=np.int32),
            world.start == 0,
            discard_window=self.discard_window,
            **signals,
        )
        out = np.empty(time.size, dtype=np.int64)
        none = np.empty(0, dtype=np.int64), np.empty(0)
        moves = np.unique(
            np.concatenate(
                [world.start[world.start > 0], world.stop[np.isfinite(world.stop)]]
            )
        )
        edges = np.concatenate([[0], np.searchsorted(time, moves), [time.size]])
        for k, moment in enumerate([*moves, None]):
            s = slice(edges[k], edges[k + 1])
            kernels.greedy_slots(state, time[s], *none, out[s])
            if moment is not None:
                # in this order, for a page that goes as it comes
                kernels.change_pages(
                    state, np.flatnonzero(world.start == moment), True, moment
                )
                kernels.change_pages(
                    state, np.flatnonzero(world.stop == moment), False, moment
                )
        return out


@dataclass(frozen=True, eq=False)
class GreedyNCIS(Greedy):
    """Greedy with noisy signals: the crawl value of elapsed time and signals. GREEDY-NCIS of [www25].

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    terms : int, optional
        APPROX-j: so many terms of the crawl value instead of all.
    discard_window : float, time
        Signals that come within it after a crawl of their page do not count: they may tell of changes before it. NCIS-D.
    """

    terms: int | None = None
    discard_window: float = 0.0

    def __post_init__(self):
        if self.terms is not None:
            checks.count("terms", self.terms)
        checks.scalar(checks.non_negative, "discard_window", self.discard_window)

    @property
    def listens(self):
        """All pages."""
        return np.ones(self.pages.change_rate.size, dtype=bool)


@dataclass(frozen=True, eq=False)
class GreedyCIS(Greedy):
    """Greedy with signals that are all taken for true: a page that sent one is surely stale. GREEDY-CIS of [www25].

    With false signals the draft does not say what is believed; here gamma is, that is, recall x change_rate.
    """

    @property
    def listens(self):
        """All pages."""
        return np.ones(self.pages.change_rate.size, dtype=bool)

    @property
    def believed(self):
        """The pages without false signals."""
        silent = super().believed
        return SignalledPages(silent.change_rate, silent.importance, silent.recall, 0.0)


@dataclass(frozen=True, eq=False)
class GreedyCISPlus(GreedyCIS):
    """GreedyCIS on the pages whose believed precision and recall are high, Greedy on the others. GREEDY-CIS+ of section 6.7 of [www25].

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    min_precision, min_recall : float in [0, 1]
        A page is listened to above both.
    """

    min_precision: float = 0.7
    min_recall: float = 0.6

    @property
    def listens(self):
        """The pages of high precision and recall."""
        return (np.nan_to_num(self.pages.precision) > self.min_precision) & (
            self.pages.recall > self.min_recall
        )
