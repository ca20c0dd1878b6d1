"""Greedy crawling with signals while their parameters are learnt, under limits of hosts."""

from dataclasses import dataclass

import numpy as np

from paperlib import checks, estimators
from paperlib._kernels import threads_for
from paperlib.hosts import members
from paperlib.policies.polite import _Crawler
from paperlib.processes import History
from paperlib.signals import SignalledPages, fit


@dataclass(frozen=True, eq=False)
class Learnt:
    """What `LearningGreedy` did in a world; a policy too, which does it again.

    page : int array, shape (n_slots,), -1 for nobody
    time : array, shape (n_phases,), when the phases after the first began
    believed : list of SignalledPages, what was believed from then on
    """

    page: np.ndarray
    time: np.ndarray
    believed: list

    def choose(self, world, time, last):
        """The pages chosen before, whatever the arguments."""
        return self.page


@dataclass(frozen=True, eq=False)
class LearningGreedy:
    """`PoliteGreedy` that has to learn the pages' parameters: phases, at the start of each of which they are estimated from all crawls.

    In the first phase all slots go to the page crawled longest ago. After it they go by the crawl value, but for a share that explores:
    the page crawled longest ago, whose value may be wrong for ever, and the same page once more in the next slot that explores, because
    after a long time a crawl finds a change whatever the change rate. Copies, elapsed times and signals carry over from phase to phase.
    Answers what [www25] leaves open.

    Parameters
    ----------
    importance : array, shape (n_pages,)
    first : float, time
        The length of the first phase.
    growth : float above 1
        The phases end at first, first growth, first growth^2, ...; with ``inf`` the first estimates stay: explore, then commit.
    exploration : float in [0, 1]
        In a phase that starts at t, the share exploration sqrt(first / t) of the slots explores. An insurance: in `beyond/learning` it
        costs more than it brings.
    listen : bool
        Whether signals count; otherwise only change rates are learnt, and the policy is GREEDY of [www25].
    host, host_limit : as in `PoliteGreedy`

    Raises
    ------
    ValueError
        Arguments out of range; a world with other pages, or with pages that come and go.

    Examples
    --------
    >>> from paperlib import simulate
    >>> pages = SignalledPages([0.5, 1.0], 1.0, 0.5, 0.1)
    >>> world = simulate.draw_world(pages, 40.0, rng=1)
    >>> int(simulate.crawl(world, LearningGreedy(pages.importance, first=4.0), bandwidth=1.0).n_crawls.sum())
    40
    """

    importance: np.ndarray
    first: float
    growth: float = 1.5
    exploration: float = 0.05
    listen: bool = True
    host: np.ndarray | None = None
    host_limit: float = np.inf

    def __post_init__(self):
        importance = np.atleast_1d(checks.non_negative("importance", self.importance))
        checks.scalar(checks.positive, "first", self.first)
        if not self.growth > 1:
            raise ValueError(f"growth must be above 1, got {self.growth!r}")
        checks.scalar(checks.share, "exploration", self.exploration)
        members(self.host, self.host_limit, importance.size)

    def choose(self, world, time, last):
        """The page of each slot, as `PoliteGreedy.choose`."""
        return self.learn(world, time, last).page

    def learn(self, world, time, last):
        """`choose`, and what was believed when: `Learnt`."""
        importance = np.atleast_1d(np.asarray(self.importance, dtype=float))
        hosts = members(self.host, self.host_limit, importance.size)
        crawler = _Crawler(world, time, last, hosts, listen=self.listen, look=True)
        n_phases = 1 + int(
            max(np.log(world.horizon / self.first), 0.0) / np.log(self.growth)
        )
        start = self.first * float(self.growth) ** np.arange(n_phases)
        start = start[start < world.horizon]
        slots = np.searchsorted(time, [*start, np.inf])
        crawler.crawl(None, np.ones(slots[0], dtype=bool))
        believed = []
        for now, n in zip(start, np.diff(slots), strict=True):
            believed.append(
                estimate(
                    *crawler.seen(),
                    importance,
                    crawler.heard(now) if self.listen else None,
                )
            )
            due = np.floor(
                np.arange(n + 1) * self.exploration * np.sqrt(self.first / now)
            )
            crawler.crawl(believed[-1], np.diff(due) > 0)
        return Learnt(crawler.page, start, believed)


def estimate(page, interval, n_signals, changed, importance, gamma=None):
    """Pages as they are to be believed after some crawls: `signals.fit` to these and to four made up for each page.

    Those keep every estimate inside its bounds, as the fake intervals of [grimes08] do, and count for less with every crawl: one with and
    one without a change after a time typical of all pages, and one with and one without after a signal.

    Parameters
    ----------
    page : int array, shape (n_crawls,)
    interval, n_signals, changed : arrays of that shape
        Time and signals since the crawl before, and what this one found.
    importance : array, shape (n_pages,)
    gamma : array, shape (n_pages,), 1/time, optional
        Rate of signals; by default there are none, and change rates are those of `estimators.mle`.

    Returns
    -------
    SignalledPages
    """
    n = 2 if gamma is None else 4
    time = np.log(2.0) * interval.sum() / (1 + changed.sum()) if interval.size else 1.0
    made_up = (
        np.tile(np.array([1.0, 1.0, 1e-9, 1e-9])[:n] * time, importance.size),
        np.tile([0, 0, 1, 1][:n], importance.size),
    )
    order = np.argsort(
        np.concatenate([page, np.repeat(np.arange(importance.size), n)]), kind="stable"
    )
    made_up = *made_up, np.arange(n * importance.size) % 2 == 1
    interval, n_signals, changed = (
        np.concatenate(two)[order]
        for two in zip((interval, n_signals, changed), made_up, strict=True)
    )
    history = History(
        interval,
        changed,
        np.append(0, np.cumsum(np.bincount(page, minlength=importance.size) + n)),
    )
    if gamma is None:
        return SignalledPages(estimators.mle(history), importance, 0.0, 0.0)
    with threads_for(interval.size):
        found = fit(history, n_signals)
    return SignalledPages.from_observed(
        importance, alpha=found.alpha, precision=found.precision, gamma=gamma
    )


def parameter_errors(pages, believed):
    """Medians over pages of the errors of what was believed: |log| of the ratio of change rates, |difference| of recalls and of precisions.

    pages : SignalledPages, as they are; those that never change, or never send a signal, do not count
    believed : SignalledPages

    Returns an array, shape (3,).
    """
    good = (pages.change_rate > 0) & (pages.gamma > 0)
    off = (
        np.log(believed.change_rate[good] / pages.change_rate[good]),
        believed.recall[good] - pages.recall[good],
        np.nan_to_num(believed.precision[good]) - pages.precision[good],
    )
    return np.median(np.abs(off), axis=1)
