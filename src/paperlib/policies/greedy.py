r"""Greedy crawling: each slot goes to the page of largest crawl value.

Algorithm 1 of Busa-Fekete et al. (2025). The crawl value V of a page depends only on
its effective time iota = tau + beta n, and rises from 0 at a crawl (Lemma 4). `ArgMax`
computes V for every page in every slot. `Greedy` and its variants choose the same
pages, and two ideas save most of these computations.

*Remember one state of a page*: V at some iota, with its slope and bounds of its
curvature (`paperlib.lemma_4`). The state remains valid after later crawls, and
bounds V at any other time. V is computed again only if these bounds do not decide
which page has the largest value.

*Compare few pages.* A pruning threshold lies a little below the largest values. Before
the effective time `reach` of a page, its upper bound is below the threshold, and the
page waits. The other pages are the active set. If no active page is above the
threshold, the threshold is lowered and the slot is decided again. The chosen pages are
therefore exactly those of the arg max over all pages, with ties to the lower index. The
waiting pages are in a calendar queue: time is cut into pieces as long as the mean slot,
and each piece has a list of the pages that wait for it.

A slot has four steps: wake the pages that have waited until now, and place them; choose
the page of largest value; if there is none, lower the threshold; crawl, and raise the
threshold if the active set is crowded.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from .. import checks, lemma_4
from ..freshness import crawl_value
from ..lemma_4 import compiled, lemma_4_rates
from ..signals import SignalledPages

# One page. Its parameters come first. The state is the value, slope, curve and decay at
# the effective time `at`. last: time of the last crawl; start: last, minus beta for
# each signal since then, so that iota = t - start; sharp_for: the threshold for which
# `reach` is precise enough; next, stop: range of the signals not yet counted; due: the
# piece of time for which the page waits; after: the next page in the list of the piece.
PAGE = np.dtype(
    [
        (name, "f8")
        for name in (
            *("change_rate", "importance", "false_rate", "alpha", "gamma", "beta"),
            *("terms", "window", "limit", "fresh", "stale"),
            *("at", "value", "slope", "curve", "decay"),
            *("last", "start", "reach", "sharp_for"),
        )
    ]
    + [(name, "i8") for name in ("next", "stop", "due", "after")]
)
# width: length of a piece of time; piece: the first piece that is still to come;
# lowered: the slot in which the threshold was last lowered.
SCALARS = np.dtype(
    [(name, "f8") for name in ("width", "threshold")]
    + [(name, "i8") for name in ("piece", "rank", "lowered", "n_active", "n_moved")]
)
# The threshold is set to the value of a rank, and raised if more pages than CROWDED
# times the rank are active. Lowering takes a pass over all pages. If fewer than
# TOO_OFTEN n_pages / rank slots have passed since the last time, the rank doubles.
# Measured: with rank 4 and CROWDED 4, a slot of the first round of 100,000 pages takes
# twice as long, and a later slot as long as with these values.
LEAST_RANK, CROWDED, TOO_OFTEN = 1, 8, 8
SLACK = 4  # a page may be active this many slots too early
SAFE = 1 - 1e-9  # bounds decide with a margin for rounding

# Inlined, because reference counting at each call would double the run time.
inlined = njit(inline="always", error_model="numpy")


class State(NamedTuple):
    """State of the slot loop, written in place."""

    pages: NDArray  # PAGE
    signals: NDArray  # those of page i are signals[pages[i].next : pages[i].stop]
    queue: NDArray  # the first page that waits for each piece of time, -1 for none
    active: NDArray  # of these, the first n_active count
    upper: NDArray  # upper bound of the value of each active page
    moved: NDArray  # the first n_moved have to be placed
    scalars: NDArray  # SCALARS, shape (1,)


def _evaluate(page, iota):
    """Value, slope, curve and decay of the crawl value of Lemma 4."""
    return lemma_4.evaluate(page, iota, page.terms)


@dataclass(frozen=True, eq=False)
class Greedy:
    r"""Greedy policy without signals: GREEDY of Busa-Fekete et al. (2025).

    Algorithm 1 with the crawl value of section 5.1,

    .. math:: V(\tau) = \frac{\mu}{\Delta}
              \bigl(1 - (1 + \Delta\tau)\, e^{-\Delta\tau}\bigr).

    All pages are crawled at time 0 (our choice). Ties go to the lower index. The first
    call of a greedy policy compiles the slot loop, which takes some seconds, once.

    Parameters
    ----------
    pages : SignalledPages
        The pages with believed parameters.

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
    evaluate = staticmethod(_evaluate)

    def __post_init__(self):
        checks.instance("pages", self.pages, SignalledPages)
        checks.number("discard_window", self.discard_window)

    @property
    def believed(self) -> SignalledPages:
        """The pages with the parameters that the crawl value uses."""
        return replace(self.pages, recall=0.0, false_rate=0.0)

    def saturation(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return the largest value of each page, and two effective times.

        To rounding, the value is 0 up to the first time, and largest from the second
        time on. For a crawl value of your own, 0 and inf are valid times.
        """
        alpha, _, _ = lemma_4_rates(self.believed)
        largest = crawl_value(np.inf, 0, self.believed, terms=self.terms)
        return largest, *lemma_4.saturation(alpha)

    def choose(self, time: NDArray, signals: Any, crawl: Any = None) -> NDArray:
        """Page of each slot; see `paperlib.worlds`."""
        believed = self.believed
        n_pages = signals.offsets.size - 1
        pages = np.zeros(believed.alpha.size, PAGE)
        checks.require(
            "pages",
            pages.size,
            f"as many as the pages of the world, {n_pages}",
            pages.size == n_pages,
        )
        for name in ("change_rate", "importance", "false_rate"):
            pages[name] = getattr(believed, name)
        pages["terms"] = self.terms or np.inf
        pages["window"] = self.discard_window
        pages["alpha"], pages["gamma"], pages["beta"] = lemma_4_rates(
            believed, pages["terms"]
        )
        pages["limit"], pages["fresh"], pages["stale"] = self.saturation()
        pages["next"] = signals.offsets[:-1]
        pages["stop"] = signals.offsets[1:]
        pages["stop"][pages["gamma"] == 0] = 0  # signals without effect are not read
        return _slot_loop(self.evaluate)(pages, time, signals.time)


@dataclass(frozen=True, eq=False)
class GreedyCIS(Greedy):
    r"""Greedy policy that treats every signal as true: GREEDY-CIS.

    After a signal the page counts as certainly stale, and its crawl value is the
    limit :math:`\mu / \Delta`. Before a signal, V is the second case of section 5.1
    of Busa-Fekete et al. (2025), without false signals. The paper does not say how
    the policy models false signals; here signals have the rate
    :math:`\lambda\Delta`.

    Parameters
    ----------
    pages : SignalledPages
        The pages with believed parameters; false_rate is not used.
    """

    @property
    def believed(self) -> SignalledPages:
        """The pages with the parameters that the crawl value uses."""
        return replace(self.pages, false_rate=0.0)


@dataclass(frozen=True, eq=False)
class GreedyCISPlus(Greedy):
    """Greedy policy that uses only good signals: GREEDY-CIS+.

    Section 6.7 of Busa-Fekete et al. (2025): GREEDY-CIS on pages with a precision
    above 0.7 and a recall above 0.6, GREEDY on the others.

    Parameters
    ----------
    pages : SignalledPages
        The pages with believed parameters.
    """

    @property
    def believed(self) -> SignalledPages:
        """The pages with the parameters that the crawl value uses."""
        good = (np.nan_to_num(self.pages.precision) > 0.7) & (self.pages.recall > 0.6)
        return replace(self.pages, recall=self.pages.recall * good, false_rate=0.0)


@dataclass(frozen=True, eq=False)
class GreedyNCIS(Greedy):
    r"""Greedy policy with noisy signals: GREEDY-NCIS of Busa-Fekete et al. (2025).

    Algorithm 1 with the crawl value of Lemma 4, `paperlib.freshness.crawl_value`.
    Pages that cannot win a slot are skipped, as section 5.2 proposes. The choice is
    still exact, as the head of this module explains.

    Parameters
    ----------
    pages : SignalledPages
        The pages with believed parameters.
    terms : int, optional
        APPROX-j of appendix A: j terms of the crawl value; by default all.
    discard_window : float, time, default 0
        NCIS-D of appendix C: signals that arrive sooner than this after a crawl of
        their page are ignored, because they may report an earlier change.
    """

    _: KW_ONLY
    terms: int | None = None
    discard_window: float = 0.0

    @property
    def believed(self) -> SignalledPages:
        """The pages with the parameters that the crawl value uses."""
        return self.pages


@cache
def _slot_loop(evaluate):
    """The slot loop for one crawl value, a plain Python function.

    Only the loop of the library's own value is kept on disk: numba would not notice
    that the text of another function has changed, and use the old one.
    """
    value = register_jitable(evaluate)

    def slot_loop(pages, slots, signals):
        return _slots(value, pages, slots, signals)

    keep = evaluate is _evaluate
    return njit(cache=keep, error_model="numpy", nogil=True)(slot_loop)


@inlined
def _slots(evaluate, pages, slots, signals):
    """Page of each slot."""
    state = State(
        pages,
        signals,
        np.full(slots.size + 2, -1),
        np.empty(pages.size, np.int64),
        np.empty(pages.size),
        np.arange(pages.size),
        np.zeros(1, SCALARS),
    )
    scalars = state.scalars[0]
    # Irregular slots take longer, because more pages wait for the same piece.
    scalars.width = slots[-1:].sum() / slots.size
    scalars.threshold = np.inf
    scalars.rank = LEAST_RANK
    chosen = np.empty(slots.size, np.int64)
    for j in range(slots.size):
        t = slots[j]
        _wake(state, t)
        while True:
            _place(evaluate, state, t)
            where = _largest(evaluate, state, t)
            if where >= 0:
                break
            _lower_threshold(state, j, t)
        chosen[j] = state.active[where]
        _crawl(state, where, t)
        if scalars.n_active > CROWDED * scalars.rank:
            _raise_threshold(state, t)
    return chosen


@compiled
def _remember(page, iota, state):
    """Keep the state of a page at an effective time."""
    page.at = iota
    page.value, page.slope, page.curve, page.decay = state


@compiled
def _upper(page, t):
    """Upper bound of the value of a page at time t."""
    iota = t - page.start
    if iota < page.fresh:
        return 0.0
    return lemma_4.upper(page, iota - page.at)


@compiled
def _lower(page, t):
    """Lower bound of the value of a page at time t, with a margin for rounding."""
    iota = t - page.start
    if iota < page.fresh:
        return 0.0
    if iota >= page.stale:
        return SAFE * page.limit
    return SAFE * lemma_4.lower(page, iota - page.at)


@compiled
def _count_signals(page, t, signals):
    """Count the signals up to time t."""
    while page.next < page.stop and signals[page.next] <= t:
        if signals[page.next] - page.last >= page.window:
            page.start -= page.beta
        page.next += 1


@inlined
def _wake(state, t):
    """Take the pages that have waited until t out of the queue."""
    s = state.scalars[0]
    while s.piece < state.queue.size and s.piece * s.width <= t:
        i = state.queue[s.piece]
        while i >= 0:
            state.moved[s.n_moved] = i
            s.n_moved += 1
            i = state.pages[i].after
        s.piece += 1


@inlined
def _place(evaluate, state, t):
    """Put each moved page into the active set or into the queue."""
    s = state.scalars[0]
    soon = t + SLACK * s.width
    for k in range(s.n_moved):
        i = state.moved[k]
        page = state.pages[i]
        _count_signals(page, t, state.signals)
        due = _due(evaluate, page, soon, s, state.signals)
        if due <= soon:
            state.active[s.n_active] = i
            s.n_active += 1
        else:
            page.due = int(min(due / s.width, state.queue.size - 1.0))
            page.after = state.queue[page.due]
            state.queue[page.due] = i
    s.n_moved = 0


@inlined
def _due(evaluate, page, soon, s, signals):
    """Time before which the value is below the threshold, future signals included.

    If this time is soon, a nearby state is computed to make the time precise.
    """
    if page.limit < SAFE * s.threshold:
        return np.inf
    _find_reach(page, s)
    due = _time_of_reach(page, signals)
    if due <= soon and page.sharp_for != s.threshold:
        _remember(page, page.reach, evaluate(page, page.reach))
        _find_reach(page, s)
        due = _time_of_reach(page, signals)
    return due


@compiled
def _find_reach(page, s):
    """Raise `reach` to the effective time when the upper bound meets the threshold."""
    d = lemma_4.reach(page, SAFE * s.threshold)
    if not np.isnan(d) and s.threshold > 0.0:  # no page is below the threshold 0
        page.reach = max(page.reach, page.at + d)
        # the bounds differ by less than the rise of V in the slack
        rise = SLACK * s.width * page.slope
        if d * d * (0.5 * page.curve + page.decay * page.slope) <= rise:
            page.sharp_for = s.threshold


@compiled
def _time_of_reach(page, signals):
    """Time at which the effective time is `reach`, future signals included."""
    due = page.start + page.reach
    k = page.next
    while k < page.stop and signals[k] < due:
        if signals[k] - page.last >= page.window:
            due = max(due - page.beta, signals[k])
        k += 1
    return due


@inlined
def _largest(evaluate, state, t):
    """Index in `active` of the page of largest value, -1 if below the threshold."""
    pages = state.pages
    active = state.active
    bound = state.upper
    threshold = state.scalars[0].threshold
    n = state.scalars[0].n_active
    for k in range(n):
        page = pages[active[k]]
        _count_signals(page, t, state.signals)
        bound[k] = _upper(page, t)
    while True:
        best, second = -1.0, -1.0
        where = -1
        for k in range(n):
            if bound[k] > best or (bound[k] == best and active[k] < active[where]):
                second = best
                best = bound[k]
                where = k
            else:
                second = max(second, bound[k])
        if best < threshold:
            return -1
        page = pages[active[where]]
        iota = t - page.start
        if iota == page.at or _lower(page, t) > max(second, threshold):
            return where
        _remember(page, iota, evaluate(page, iota))
        bound[where] = page.value


@inlined
def _lower_threshold(state, slot, t):
    """Lower the threshold below the largest value; all pages must then be placed."""
    s = state.scalars[0]
    n_pages = state.pages.size
    if (slot - s.lowered) * s.rank < TOO_OFTEN * n_pages:
        s.rank = 2 * s.rank
    else:
        s.rank = max(s.rank // 2, LEAST_RANK)
    s.lowered = slot
    for i in range(n_pages):
        page = state.pages[i]
        state.moved[i] = i
        state.queue[page.due] = -1
        page.reach = 0.0
        page.sharp_for = -1.0
    s.n_active = 0
    s.n_moved = n_pages
    s.threshold = _value_of_rank(state.pages, state.moved, t, s.rank)


@inlined
def _raise_threshold(state, t):
    """Raise the threshold to a value of the active pages; then place them again."""
    s = state.scalars[0]
    n = s.n_active
    active = state.active[:n]
    s.threshold = max(s.threshold, _value_of_rank(state.pages, active, t, s.rank))
    for k in range(n):
        state.moved[s.n_moved + k] = active[k]
    s.n_moved += n
    s.n_active = 0


@compiled
def _value_of_rank(pages, chosen, t, rank):
    """Lower bound of the value with this rank among the chosen pages."""
    bound = np.empty(chosen.size)
    for k in range(chosen.size):
        page = pages[chosen[k]]
        bound[k] = _lower(page, t)
    # np.partition takes four seconds more to compile
    return np.sort(bound)[-min(rank, bound.size)]


@inlined
def _crawl(state, where, t):
    """Crawl an active page, which must then be placed again."""
    s = state.scalars[0]
    i = state.active[where]
    page = state.pages[i]
    page.last = t
    page.start = t
    s.n_active -= 1
    state.active[where] = state.active[s.n_active]
    state.moved[s.n_moved] = i
    s.n_moved += 1
