"""Greedy crawling with signals while change rate, recall and false rate are learnt, and while hosts allow only so many crawls."""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from paperlib import _checks, _kernels, _value, allocation, estimators
from paperlib.processes import History
from paperlib.signals import SignalledPages, fit

_PARAMETERS = "change_rate", "importance", "recall", "false_rate"
_SAFE = 1.0 - 1e-7  # rounding of a value stays well inside
_BURST = 2  # tokens that a host can save up: with one, a token that falls between two slots would lose the time until the next


@dataclass(frozen=True, eq=False)
class PoliteGreedy:
    """GREEDY-NCIS of [www25] among the pages whose hosts can be crawled now.

    Every host has a bucket of at most two tokens that come at its limit; a crawl takes one, and while there is one its pages can be
    crawled: in any time w a host is crawled at most limit w + 2 times. No bandwidth is allocated to hosts: one whose pages are worth more
    than others' is crawled as often as its limit allows, and the others share the slots left over, which comes near the optimum,
    `polite_thresholds`.

    Parameters
    ----------
    pages : SignalledPages, as they are believed to be
    host : array of integers or strings, shape (n_pages,), optional
        The host of each page; by default all have one.
    host_limit : float, or mapping from host to float, 1/time, positive
        As in `allocation.polite`; ``inf``, the default, is none.
    """

    pages: SignalledPages
    host: np.ndarray | None = None
    host_limit: float = np.inf

    def __post_init__(self):
        _hosts(self.host, self.host_limit, self.pages.change_rate.size)

    def choose(self, world, time, last):
        """The page of each slot of a `simulate.World`, -1 where all hosts have to wait; arguments as in `policies.Greedy.choose`."""
        crawler = _Crawler(world, time, last, _hosts(self.host, self.host_limit, self.pages.change_rate.size))
        crawler.crawl(self.pages, np.zeros(time.size, dtype=bool))
        return crawler.page


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
        importance = np.atleast_1d(_checks.non_negative("importance", self.importance))
        _checks.scalar(_checks.positive, "first", self.first)
        if not self.growth > 1:
            raise ValueError(f"growth must be above 1, got {self.growth!r}")
        _checks.scalar(_checks.share, "exploration", self.exploration)
        _hosts(self.host, self.host_limit, importance.size)

    def choose(self, world, time, last):
        """The page of each slot, as `PoliteGreedy.choose`."""
        return self.learn(world, time, last).page

    def learn(self, world, time, last):
        """`choose`, and what was believed when: `Learnt`."""
        importance = np.atleast_1d(np.asarray(self.importance, dtype=float))
        hosts = _hosts(self.host, self.host_limit, importance.size)
        crawler = _Crawler(world, time, last, hosts, listen=self.listen, look=True)
        n_phases = 1 + int(max(np.log(world.horizon / self.first), 0.0) / np.log(self.growth))
        start = self.first * float(self.growth) ** np.arange(n_phases)
        start = start[start < world.horizon]
        slots = np.searchsorted(time, [*start, np.inf])
        crawler.crawl(None, np.ones(slots[0], dtype=bool))
        believed = []
        for now, n in zip(start, np.diff(slots), strict=True):
            believed.append(estimate(*crawler.seen(), importance, crawler.heard(now) if self.listen else None))
            due = np.floor(np.arange(n + 1) * self.exploration * np.sqrt(self.first / now))
            crawler.crawl(believed[-1], np.diff(due) > 0)
        return Learnt(crawler.page, start, believed)


class _Crawler:
    """A world's slots, given to pages some at a time."""

    def __init__(self, world, time, last, hosts, *, listen=True, look=False):
        member, limit = hosts
        if member.size != world.start.size:
            raise ValueError(f"world must hold the pages of the policy, {member.size}, got {world.start.size}")
        if world.n_moving:
            raise ValueError(f"world must hold all pages all the time, got {world.n_moving} that come or go")
        self._signals = world.in_order if listen else (world.signal_page[:0], world.arrival[:0])
        change_time, offsets = world.changes if look else (np.empty(0), np.zeros(member.size + 1, dtype=np.int64))
        self._time, self._done, self._told = time, 0, 0
        self.page = np.empty(time.size, dtype=np.int64)
        self._bits = np.empty(time.size), np.empty(time.size, dtype=np.int64), np.empty(time.size, dtype=bool)
        self._fixed = change_time, offsets[1:], member, 1.0 / limit
        self._state = last, np.zeros(member.size, dtype=np.int64), offsets[:-1].copy(), np.zeros(limit.size), np.array([-1])

    def crawl(self, pages, explore):
        """The next slots: by the crawl value of `pages`, or to the page crawled longest ago (all of them, if pages is None)."""
        now = slice(self._done, self._done + explore.size)
        self._done += explore.size
        time = self._time[now]
        if time.size:
            heard = slice(self._told, int(np.searchsorted(self._signals[1], time[-1], side="right")))
            self._told = heard.stop
            rows = np.empty((0, _value.N_CONSTANTS)), np.empty(0), np.empty(0)
            if pages:
                rows = _value.rows(*(getattr(pages, name) for name in _PARAMETERS), _value.EXACT), pages.alpha, pages.importance.copy()
            signals = (a[heard] for a in self._signals)
            _polite_slots(*rows, time, explore, *signals, *self._fixed, *self._state, self.page[now], *(a[now] for a in self._bits))

    def seen(self):
        """Page, interval, signals and bit of every crawl so far that had one before."""
        good = np.flatnonzero((self.page[: self._done] >= 0) & np.isfinite(self._bits[0][: self._done]))
        return self.page[good], *(a[good] for a in self._bits)

    def heard(self, now):
        """Rate of signals of each page until now; half a one is added, for none yet is not none ever."""
        page, arrival = self._signals
        return (np.bincount(page[: np.searchsorted(arrival, now)], minlength=self._state[0].size) + 0.5) / now


@njit(cache=True, error_model="numpy")
def _polite_slots(rows, alpha, importance, time, explore, signal_page, signal_time, change_time, ends, host, spacing,
                  last, n, seen, full_at, again, page, interval, n_signals, changed):  # fmt: skip
    """Every slot compares all pages that can be crawled, for these change from slot to slot. The kernel checks nothing.

    A value is computed only where a bound lets it win: since the slot `at` in which it was `known`, it has grown by at most
    slope d (u + alpha d / 2) in the time d, for V' = importance alpha exp(-u) psi with psi at most u / alpha (Lemma 4 of [www25]).
    """
    known, slope, at, u = np.full((4, last.size), np.inf)
    k = 0
    for j in range(time.size):
        t = time[j]
        while k < signal_time.size and signal_time[k] <= t:
            n[signal_page[k]] += 1
            known[signal_page[k]] = np.inf
            k += 1
        best, winner = -1.0, -1
        i = again[0]
        if explore[j] and i >= 0 and full_at[host[i]] - (_BURST - 1) * spacing[host[i]] <= t:
            winner, again[0] = i, -1
        else:
            for i in range(last.size):
                if full_at[host[i]] - (_BURST - 1) * spacing[host[i]] > t:
                    continue
                if explore[j]:
                    if winner < 0 or last[i] < last[winner]:
                        winner = i
                    continue
                if known[i] < np.inf:
                    d = t - at[i]
                    if known[i] + slope[i] * d * (u[i] + 0.5 * alpha[i] * d) < best * _SAFE:
                        continue
                elapsed = t - last[i]
                known[i], at[i], u[i] = _value.value(rows[i], elapsed, n[i]), t, _value.effective(rows[i], elapsed, n[i])
                slope[i] = importance[i] * math.exp(-u[i])
                if slope[i] == 0.0:
                    u[i] = 0.0
                if known[i] > best:
                    best, winner = known[i], i
            if explore[j] and rows.size:
                again[0] = winner
        page[j] = winner
        if winner >= 0:
            interval[j], n_signals[j], changed[j] = t - last[winner], n[winner], False
            while seen[winner] < ends[winner] and change_time[seen[winner]] <= t:
                seen[winner] += 1
                changed[j] = True
            last[winner], n[winner] = t, 0
            known[winner], slope[winner], at[winner], u[winner] = 0.0, importance[winner], t, 0.0
            full_at[host[winner]] = max(full_at[host[winner]], t) + spacing[host[winner]]


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
    made_up = np.tile(np.array([1.0, 1.0, 1e-9, 1e-9])[:n] * time, importance.size), np.tile([0, 0, 1, 1][:n], importance.size)
    order = np.argsort(np.concatenate([page, np.repeat(np.arange(importance.size), n)]), kind="stable")
    made_up = *made_up, np.arange(n * importance.size) % 2 == 1
    interval, n_signals, changed = (np.concatenate(two)[order] for two in zip((interval, n_signals, changed), made_up, strict=True))
    history = History(interval, changed, np.append(0, np.cumsum(np.bincount(page, minlength=importance.size) + n)))
    if gamma is None:
        return SignalledPages(estimators.mle(history), importance, 0.0, 0.0)
    with _kernels.threads_for(interval.size):
        found = fit(history, n_signals)
    return SignalledPages.from_observed(importance, alpha=found.alpha, precision=found.precision, gamma=gamma)


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


def polite_thresholds(pages, bandwidth, host, host_limit):
    """`allocation.optimal_thresholds` when each host allows its pages so much bandwidth together and no more.

    Exact, as `allocation.polite` is.

    Parameters
    ----------
    pages : SignalledPages
    bandwidth : float, 1/time, positive
    host, host_limit : as in `PoliteGreedy`

    Returns
    -------
    Allocation
        The multiplier is that of the hosts below their limits, 0 when there is none.
    """
    member, limit = _hosts(host, host_limit, pages.change_rate.size)
    rate, threshold, fresh = np.zeros((3, member.size))

    def spend(which, bandwidth):
        rate[:] = 0.0
        return rate, spend_on(which[member], bandwidth) if which.any() else 0.0

    def spend_on(here, bandwidth):
        with _kernels.threads_for(member.size):
            plan = allocation.optimal_thresholds(SignalledPages(*(getattr(pages, name)[here] for name in _PARAMETERS)), bandwidth)
        rate[here], threshold[here], fresh[here] = plan.crawl_rate, plan.threshold, plan.freshness
        return plan.multiplier

    within, _, multiplier = allocation._within_limits(spend, bandwidth, member, limit)
    for h in np.flatnonzero(~within):
        spend_on(member == h, limit[h])
    # each page has the freshness of all that were planned with it
    return allocation.Allocation(rate, multiplier, fresh @ pages.importance / pages.importance.sum(), threshold)


def _hosts(host, host_limit, n_pages):
    """The number of each page's host, and the limit of each host."""
    host = np.zeros(n_pages, dtype=np.int64) if host is None else np.asarray(host)
    if host.shape != (n_pages,):
        raise ValueError(f"host must have one label for each of {n_pages} pages, got shape {host.shape}")
    labels, member = np.unique(host, return_inverse=True)
    limit = allocation._host_limits(labels, host_limit)
    if not (limit > 0).all():
        raise ValueError(f"host_limit must be positive, got {limit.min().item()!r}")
    return member, limit
