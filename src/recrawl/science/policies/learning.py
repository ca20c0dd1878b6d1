"""Greedy crawling that learns the parameters of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import threads_for
from recrawl.science import estimators
from recrawl.science.hosts import members
from recrawl.science.policies.polite import _Crawler
from recrawl.science.processes import History
from recrawl.science.signals import SignalledPages, fit
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Bits, Ints, Values

__all__ = ["LearningGreedy", "Learnt", "estimate", "parameter_errors"]

# Pseudo-observations of `estimate`, the last two only with signals. After a
# signal the interval is so short that only the signal counts.
_PSEUDO_INTERVAL = np.array([1.0, 1.0, 1e-9, 1e-9])
_PSEUDO_SIGNALS = [0, 0, 1, 1]
_PSEUDO_CHANGED = [False, True, False, True]


@dataclass(frozen=True, eq=False)
class Learnt:
    """Pages and estimates of a `LearningGreedy` run; a policy that repeats it.

    Parameters
    ----------
    page : ndarray of int, shape (n_slots,)
        The page of each slot, -1 for none.
    borders : ndarray, shape (n_phases + 1,), time
        Borders of the phases; the first phase has no estimates.
    beliefs : list of SignalledPages, length n_phases - 1
        Estimates that each phase after the first used; the last is `believed`.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> pages = SignalledPages([0.5, 1.0], 1.0, 0.5, 0.1)
    >>> world = simulate.draw_world(pages, 40.0, rng=1)
    >>> slots = simulate.slot_times(1.0, 40.0)
    >>> policy = LearningGreedy(pages.importance, first=10.0, growth=2.0)
    >>> learnt = policy.learn(world, slots, np.zeros(2))
    >>> learnt.borders.tolist(), len(learnt.beliefs)
    ([0.0, 10.0, 20.0, 40.0], 2)
    """

    page: np.ndarray
    borders: np.ndarray
    beliefs: list

    time = property(attrgetter("borders"), doc="Earlier name of `borders`.")

    @property
    def believed(self) -> Any:
        """Estimates of the last phase; None if there was one phase only."""
        return self.beliefs[-1] if self.beliefs else None

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot: those chosen before, whatever the arguments.

        Parameters
        ----------
        world : World
            Not used.
        time : ndarray, shape (n_slots,), time
            Not used.
        last : ndarray, shape (n_pages,), time
            Not used.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 for no page.
        """
        return self.page


@dataclass(frozen=True, eq=False)
class LearningGreedy:
    """`PoliteGreedy` that has to learn the parameters of the pages.

    How the parameters are learnt is left open by [www25]_. Here they are
    estimated at the start of each phase from all crawls so far. In the first
    phase all slots go to the page crawled longest ago. Later slots go to the
    page of the largest crawl value, except for a share of the slots that
    explores. Such a slot goes to the page crawled longest ago, because a wrong
    estimate could otherwise stay for ever. The next exploring slot crawls the
    same page again: after a long interval a crawl almost always finds a
    change, and so gives little information on the rate. Copies, elapsed times
    and signals carry over from phase to phase.

    Parameters
    ----------
    importance : array_like, shape (n_pages,)
        Weight of each page.
    first : float, time
        Length of the first phase.
    growth : float, above 1, default 1.5
        The phases end at first, first growth, first growth^2, ...; with
        ``inf`` the first estimates stay: explore, then commit.
    exploration : float, in [0, 1], default 0.05
        In a phase that starts at t, the share exploration sqrt(first / t) of
        the slots explores. Exploration protects against wrong estimates: in
        the notebook ``beyond/learning_with_signals`` it costs more freshness
        than it brings.
    use_signals : bool, default True
        Whether signals are used; otherwise only change rates are learnt, and
        the policy is GREEDY of [www25]_.
    host : array_like, shape (n_pages,), optional
        As in `PoliteGreedy`.
    host_limit : float or mapping, 1/time, default inf
        As in `PoliteGreedy`.

    Raises
    ------
    ValueError
        Arguments out of range; a world with other pages, or with pages that
        come and go.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> pages = SignalledPages([0.5, 1.0], 1.0, 0.5, 0.1)
    >>> world = simulate.draw_world(pages, 40.0, rng=1)
    >>> policy = LearningGreedy(pages.importance, first=4.0)
    >>> int(simulate.crawl(world, policy, bandwidth=1.0).n_crawls.sum())
    40
    """

    importance: Values
    first: float
    _: KW_ONLY
    growth: float = 1.5
    exploration: float = 0.05
    use_signals: bool = True
    host: Values | None = None
    host_limit: float | Mapping[Any, float] = np.inf

    def __post_init__(self):
        importance = checks.per_page("importance", np.atleast_1d(self.importance))
        checks.positive_number("first", self.first)
        if not self.growth > 1:
            raise ValueError(f"growth must be above 1, got {self.growth!r}")
        checks.scalar(checks.share, "exploration", self.exploration)
        hosts = members(self.host, self.host_limit, importance.size)
        # in place, because the dataclass is frozen
        vars(self).update(importance=importance, _hosts=hosts)

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            Signals, and changes, which a crawl finds.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where all hosts have to wait.
        """
        return self.learn(world, time, last).page

    def learn(self, world: World, time: Array, last: Array) -> Learnt:
        """Page of each slot, and the estimates that each phase used.

        Parameters
        ----------
        world : World
            Signals, and changes, which a crawl finds.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        Learnt
            Pages, phases and beliefs.
        """
        crawler = _Crawler(
            world, time, last, self._hosts, use_signals=self.use_signals, look=True
        )
        starts = self._starts(world.horizon)
        slots = np.searchsorted(time, [*starts, np.inf])
        crawler.crawl(None, np.ones(slots[0], dtype=bool))
        beliefs = []
        for now, n in zip(starts, np.diff(slots), strict=True):
            gamma = crawler.signal_rate(now) if self.use_signals else None
            beliefs.append(estimate(*crawler.seen(), self.importance, gamma=gamma))
            shares = np.arange(n + 1) * self.exploration * np.sqrt(self.first / now)
            crawler.crawl(beliefs[-1], np.diff(np.floor(shares)) > 0)
        return Learnt(crawler.page, np.array([0.0, *starts, world.horizon]), beliefs)

    def _starts(self, horizon):
        """When the phases after the first begin."""
        growths = max(np.log(horizon / self.first), 0.0) / np.log(self.growth)
        starts = self.first * float(self.growth) ** np.arange(1 + int(growths))
        return starts[starts < horizon]


def estimate(
    page: ArrayLike,
    interval: Array,
    n_signals: Ints,
    changed: Bits,
    importance: Array,
    *,
    gamma: Array | None = None,
) -> SignalledPages:
    """Estimate pages from some crawls and a few pseudo-observations.

    The parameters are those of `signals.fit` to the crawls and to four
    pseudo-observations for each page, which keep every estimate inside its
    bounds, as those of [grimes08]_ do, and count for less with every crawl:
    one with and one without a change after a time typical of all pages, and
    one with and one without a change after a signal.

    Parameters
    ----------
    page : array_like of int, shape (n_crawls,)
        The page of each crawl, in any order.
    interval : ndarray, shape (n_crawls,), time
        Time since the crawl before.
    n_signals : ndarray of int, shape (n_crawls,)
        Signals since the crawl before.
    changed : ndarray of bool, shape (n_crawls,)
        Whether the crawl found a change.
    importance : ndarray, shape (n_pages,)
        Weight of each page.
    gamma : ndarray, shape (n_pages,), 1/time, optional
        Rate of signals; by default there are none, and the change rates are
        those of `estimators.mle`.

    Returns
    -------
    SignalledPages
        Pages with the estimated parameters.

    Notes
    -----
    The plain form of the estimate without signals is `tests.plain.mle`.

    Examples
    --------
    >>> pages = estimate(
    ...     np.array([0, 0, 1]), np.ones(3), np.zeros(3, int),
    ...     np.array([True, True, False]), importance=np.ones(2),
    ... )  # fmt: skip
    >>> pages.change_rate.round(3).tolist()
    [1.776, 0.495]
    """
    n_pages, n = importance.size, 2 if gamma is None else len(_PSEUDO_INTERVAL)
    # the median of the interval of a change, if all pages were one
    time = np.log(2.0) * interval.sum() / (1 + changed.sum()) if interval.size else 1.0
    page = np.append(page, np.repeat(np.arange(n_pages), n))
    order = np.argsort(page, kind="stable")
    interval, n_signals, changed = (
        np.append(seen, np.tile(pseudo[:n], n_pages))[order]
        for seen, pseudo in (
            (interval, _PSEUDO_INTERVAL * time),
            (n_signals, _PSEUDO_SIGNALS),
            (changed, _PSEUDO_CHANGED),
        )
    )
    offsets = np.searchsorted(page[order], np.arange(n_pages + 1))
    history = History(interval, changed, offsets)
    if gamma is None:
        return SignalledPages(estimators.mle(history), importance, 0.0, 0.0)
    with threads_for(interval.size):
        found = fit(history, n_signals)
    return SignalledPages.from_observed(
        importance, alpha=found.alpha, precision=found.precision, gamma=gamma
    )


def parameter_errors(pages: SignalledPages, believed: SignalledPages) -> Array:
    r"""Medians over pages of the errors of what was believed.

    .. math:: |\ln \hat\Delta - \ln \Delta|, \qquad |\hat\lambda - \lambda|,
              \qquad |\hat\pi - \pi|,

    with the recall :math:`\lambda` and the precision :math:`\pi` of signals.

    Parameters
    ----------
    pages : SignalledPages
        The true pages; those that never change, or never send a signal, do not
        count.
    believed : SignalledPages
        The pages as they were believed to be.

    Returns
    -------
    ndarray, shape (3,)
        Absolute errors of the logarithm of change rates, of recall, and of
        precision.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.0)
    >>> believed = SignalledPages([1.0, 2.0], 1.0, recall=0.75, false_rate=0.0)
    >>> parameter_errors(pages, believed).tolist()
    [0.0, 0.25, 0.0]
    """
    good = (pages.change_rate > 0) & (pages.gamma > 0)
    errors = (
        np.log(believed.change_rate[good] / pages.change_rate[good]),
        believed.recall[good] - pages.recall[good],
        np.nan_to_num(believed.precision[good]) - pages.precision[good],
    )
    return np.median(np.abs(errors), axis=1)
