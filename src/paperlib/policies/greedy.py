r"""Greedy crawling: each slot goes to the page of largest crawl value.

Algorithm 1 of Busa-Fekete et al. (2025). The crawl value V of a page rises with its
effective time iota = tau + beta n alone (Lemma 4), from 0 at a crawl. Two ideas spare
computing it for every page in every slot.

*Remember one state of a page*, for it holds after later crawls too: V at some iota,
with

    curve = mu alpha exp(-alpha iota),    slope = dV/diota = curve psi(iota).

As psi never falls and grows no faster than iota, V is a further effective time d later,
or earlier for d < 0 (then the left side holds for alpha d >= -1), within

    V + slope d (1 - alpha d) <= V(iota + d) <= V + slope d + curve d^2 / 2.

V is computed again only where these bounds do not decide which page wins.

*Compare few pages.* A pruning threshold lies a little below the values that win. A page
waits until its effective time comes to `reach`, before which its upper bound is below
the threshold. The others are the active set. If no active page is above the threshold,
it is lowered, and the slot is decided again: slots are exactly those of the arg max
over all pages, with ties to the lower index. Time is cut into pieces as long as the
mean slot, and a list for each piece holds the pages that wait for it.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .. import checks
from ..freshness import (
    NOTHING,
    STALE,
    compiled,
    crawl_value,
    lemma_4,
    lemma_4_rates,
)
from ..signals import SignalledPages

PARAMETERS = "change_rate importance false_rate gamma beta terms window alpha limit"
# last: crawl; start: last, less beta for each signal since, so that iota = t - start;
# sharp_for: threshold for which reach is good enough
STATE = "start at value slope curve last reach sharp_for"
PAGE = np.dtype(
    [(name, "f8") for name in f"{PARAMETERS} {STATE}".split()]
    + [("next", "i8"), ("stop", "i8")]  # the signals not yet counted
    + [("due", "i8"), ("after", "i8")]  # where it waits, and the page after it there
)
# The threshold is set to the value of a rank, and raised when CROWDED times as many
# pages are active. To lower it is a pass over all pages: too often, the rank doubles.
LEAST_RANK, CROWDED, TOO_OFTEN = 4, 4, 8
SLACK = 4  # a page may be active this many slots too early
SAFE = 1 - 1e-9  # bounds decide with a margin for rounding

# At a call numba counts the references to each array, which would take as long as all
# the rest: so these functions are not called, but copied into `_slots`.
inlined = njit(inline="always", error_model="numpy")


@dataclass(frozen=True, eq=False)
class Greedy:
    r"""Greedy policy without signals: GREEDY of Busa-Fekete et al. (2025).

    Algorithm 1 with the crawl value of section 5.1,

    .. math:: V(\tau) = \frac{\mu}{\Delta}
              \bigl(1 - (1 + \Delta\tau)\, e^{-\Delta\tau}\bigr).

    All pages are crawled at time 0, which the paper leaves open. Ties go to the
    lower index.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be.

    Examples
    --------
    >>> from paperlib import worlds
    >>> pages = SignalledPages([1.0, 1.0, 1.0], [1.0, 1.1, 0.3])
    >>> world = worlds.draw_world(pages, 4.0, rng=1)
    >>> worlds.crawl(world, Greedy(pages), bandwidth=1.0).page
    array([1, 0, 1, 0])
    """

    pages: SignalledPages
    terms = None
    discard_window = 0.0

    @property
    def believed(self) -> SignalledPages:
        """The pages as the crawl value takes them."""
        return replace(self.pages, recall=0.0, false_rate=0.0)

    def choose(self, time: NDArray, signals: Any, crawl: Any = None) -> NDArray:
        """Page of each slot; see `paperlib.worlds`."""
        believed, terms = self.believed, self.terms or np.inf
        alpha, gamma, beta = lemma_4_rates(believed, terms)
        values = (
            believed.change_rate,
            believed.importance,
            believed.false_rate,
            gamma,
            beta,
            terms,
            self.discard_window,
            alpha,
            crawl_value(np.inf, 0, believed, terms=self.terms),
        )
        pages = np.zeros(alpha.size, PAGE)
        for name, value in zip(PARAMETERS.split(), values, strict=True):
            pages[name] = value
        pages["next"] = signals.offsets[:-1]
        pages["stop"] = signals.offsets[1:] * (gamma > 0)  # of no effect: not read
        return _slots(pages, time, signals.time)


@dataclass(frozen=True, eq=False)
class GreedyCIS(Greedy):
    r"""Greedy policy that takes every signal for true: GREEDY-CIS.

    A page that has sent a signal is certainly stale, and its crawl value is the
    limit :math:`\mu / \Delta`; before it, V is the second case of section 5.1 of
    Busa-Fekete et al. (2025), without false signals. The paper does not say what is
    believed where there are false signals; here signals have the rate
    :math:`\lambda\Delta`.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be; false_rate is not used.
    """

    @property
    def believed(self) -> SignalledPages:
        """The pages as the crawl value takes them."""
        return replace(self.pages, false_rate=0.0)


@dataclass(frozen=True, eq=False)
class GreedyCISPlus(Greedy):
    """Greedy policy that uses only good signals: GREEDY-CIS+.

    Section 6.7 of Busa-Fekete et al. (2025): GREEDY-CIS on pages with a precision
    above 0.7 and a recall above 0.6, GREEDY on the others.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be.
    """

    @property
    def believed(self) -> SignalledPages:
        """The pages as the crawl value takes them."""
        good = (np.nan_to_num(self.pages.precision) > 0.7) & (self.pages.recall > 0.6)
        return replace(self.pages, recall=self.pages.recall * good, false_rate=0.0)


@dataclass(frozen=True, eq=False)
class GreedyNCIS(Greedy):
    r"""Greedy policy with noisy signals: GREEDY-NCIS of Busa-Fekete et al. (2025).

    Algorithm 1 with the crawl value of Lemma 4, `paperlib.freshness.crawl_value`.
    Pages that cannot win a slot are skipped, as section 5.2 proposes, but exactly:
    the head of this module says how.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be.
    terms : int, optional
        APPROX-j of appendix A: j terms of the crawl value; by default all.
    discard_window : float, time, default 0
        NCIS-D of appendix C: signals that arrive sooner than this after a crawl of
        their page do not count, as they may report an earlier change.
    """

    _: KW_ONLY
    terms: int | None = None
    discard_window: float = 0.0

    def __post_init__(self):
        if self.terms is not None:
            checks.count("terms", self.terms)
        checks.number("discard_window", self.discard_window)

    @property
    def believed(self) -> SignalledPages:
        """The pages as the crawl value takes them."""
        return self.pages


@compiled
def _evaluate(page, iota):
    """Compute the value at iota, and remember that state."""
    page.at, page.value, page.slope, page.curve = iota, page.limit, 0.0, 0.0
    if page.alpha * iota < STALE:
        value, psi, _ = lemma_4(
            iota,
            page.change_rate,
            page.false_rate,
            page.alpha,
            page.gamma,
            page.beta,
            page.terms,
        )
        page.value = min(page.importance * value, page.limit)
        page.curve = page.importance * page.alpha * math.exp(-page.alpha * iota)
        page.slope = page.curve * psi


@compiled
def _bounds(page, t):
    """Lower and upper bound of the value at time t."""
    iota = t - page.start
    d = iota - page.at
    upper = min(page.value + d * (page.slope + 0.5 * d * page.curve), page.limit)
    if page.alpha * iota < NOTHING:
        return 0.0, 0.0
    if page.alpha * iota > STALE:
        return SAFE * page.limit, upper
    if page.alpha * d < -1.0:
        return 0.0, upper
    rise = d * page.slope * (1.0 - page.alpha * d)
    return SAFE * (page.value + (max(rise, 0.0) if d > 0.0 else rise)), upper


@compiled
def _find_reach(page, threshold, slack):
    """Raise `reach` to where the upper bound is at the threshold, if it is there."""
    rise = SAFE * threshold - page.value
    root = page.slope**2 + 2.0 * page.curve * rise
    if min(root, threshold) > 0.0:  # no page is below the threshold 0
        d = 2.0 * rise / (page.slope + math.sqrt(root))
        page.reach = max(page.reach, page.at + d)
        # the bounds differ by less than V rises in the slack
        if d * d * (0.5 * page.curve + page.alpha * page.slope) <= slack * page.slope:
            page.sharp_for = threshold


@compiled
def _count(page, t, signals):
    """Count the signals up to time t."""
    while page.next < page.stop and signals[page.next] <= t:
        if signals[page.next] - page.last >= page.window:
            page.start -= page.beta
        page.next += 1


@inlined
def _due(page, soon, threshold, slack, signals):
    """Time before which the value is below the threshold, with the signals to come.

    Where that is soon, a state nearby is computed, and the time is sharp.
    """
    due = np.inf
    for _ in range(2 if page.limit >= SAFE * threshold else 0):
        _find_reach(page, threshold, slack)
        due, k = page.start + page.reach, page.next
        while k < page.stop and signals[k] < due:
            if signals[k] - page.last >= page.window:
                due = max(due - page.beta, signals[k])
            k += 1
        if due > soon or page.sharp_for == threshold:
            break
        _evaluate(page, page.reach)
    return due


@inlined
def _largest(pages, active, n, upper, t, threshold, signals):
    """Place in `active` of the page of largest value, -1 if below the threshold."""
    for k in range(n):
        page = pages[active[k]]
        _count(page, t, signals)
        upper[k] = _bounds(page, t)[1]
    while True:
        best, second, where = -1.0, -1.0, -1
        for k in range(n):
            if upper[k] > best or (upper[k] == best and active[k] < active[where]):
                best, second, where = upper[k], best, k
            else:
                second = max(second, upper[k])
        if best < threshold:
            return -1
        page = pages[active[where]]
        iota = t - page.start
        if iota == page.at or _bounds(page, t)[0] > max(second, threshold):
            return where
        _evaluate(page, iota)
        upper[where] = page.value


@inlined
def _value_of_rank(pages, chosen, t, rank):
    """A lower bound of the value of this rank among the chosen pages."""
    lower = np.array([_bounds(pages[i], t)[0] for i in chosen])
    return np.sort(lower)[-min(rank, lower.size)]


@compiled
def _slots(pages, slots, signals):
    """Page of each slot; those of page i are signals[pages[i].next : pages[i].stop]."""
    chosen = np.empty(slots.size, np.int64)
    upper = np.empty(pages.size)
    active = np.arange(pages.size)  # n of its entries count
    moved = active.copy()  # n_moved of them: the pages that have to be placed
    n = n_moved = lowered = 0
    threshold, rank = np.inf, LEAST_RANK
    # queue[k] is the first of the pages that wait for the time k width; `after` leads
    # from each to the next, and -1 ends the list. Irregular slots take longer, for more
    # pages wait for the same time.
    width, queue, k = slots[-1:].sum() / slots.size, np.full(slots.size + 2, -1), 0
    for j, t in enumerate(slots):
        where, soon = -1, t + SLACK * width
        while where < 0:
            while k * width <= t and k < queue.size:
                i, k = queue[k], k + 1
                while i >= 0:
                    moved[n_moved] = i
                    n_moved, i = n_moved + 1, pages[i].after
            for i in moved[:n_moved]:
                page = pages[i]
                _count(page, t, signals)
                due = _due(page, soon, threshold, SLACK * width, signals)
                if due <= soon:
                    active[n] = i
                    n += 1
                else:
                    page.due = min(due / width, queue.size - 1.0)
                    page.after, queue[page.due] = queue[page.due], i
            n_moved = 0
            where = _largest(pages, active, n, upper, t, threshold, signals)
            if where < 0:  # a waiting page may be above: lower the threshold
                often = (j - lowered) * rank < TOO_OFTEN * pages.size
                rank, lowered = 2 * rank if often else max(rank // 2, LEAST_RANK), j
                n, n_moved, moved[:] = 0, pages.size, np.arange(pages.size)
                threshold = _value_of_rank(pages, moved, t, rank)
                queue[pages.due], pages.reach[:], pages.sharp_for[:] = -1, 0.0, -1.0
        i = chosen[j] = active[where]
        pages[i].last = pages[i].start = t
        n -= 1
        active[where], moved[0], n_moved = active[n], i, 1
        if n > CROWDED * rank:  # raise it
            threshold = max(threshold, _value_of_rank(pages, active[:n], t, rank))
            moved[1 : n + 1] = active[:n]
            n, n_moved = 0, n + 1
    return chosen
