r"""Which page to crawl next: the page of largest crawl value, exactly.

The crawl value of a page rises from 0 at its crawl with the effective time iota:
the time since the crawl, more by beta for each signal (Lemma 4 of Busa-Fekete et
al., 2025). Where the change rate is known by a gamma distribution, iota is the time
alone, and the value that of `bayes`. Two ideas spare computing the value of every
page in every slot; they are those of `paperlib.policies.Greedy`, where all signals
are known beforehand, and here signals, reports, pages and limits come at any time.

*Remember one state of a page*, with the bounds of `paperlib.lemma_4`. With a gamma
distribution of shape a and rate b, curve = mu a / b (1 + iota / b)^-(a + 1) and decay =
(a + 1) / (b + iota), and a new state begins at each crawl and report, so that d >= 0.
V is computed again only if the bounds do not decide which page wins.

*Compare few pages.* A threshold lies a little below the values that win. Before the
effective time `reach` of a page, its upper bound is below the threshold, and the page
waits. The pages that do not wait are the active set. If no active page is above the
threshold, it is lowered, and the slot is decided again.

A page that limits forbid to crawl waits until they allow it: until its least interval
is over and its host has a token. The value of a page that was never crawled is the
limit of V. After its greatest interval a page is overdue, and overdue pages come before
all others, by deadline. So there are three queues (`queue`): of the pages that wait, by
the time until which they do; of those never crawled, by value; and of all that have a
greatest interval, by deadline, without those that are overdue and forbidden. Whatever
happens to a page, `_place` puts it where it belongs then.
"""

import math
from typing import NamedTuple

import numpy as np

from paperlib import lemma_4
from recrawl.compiled import allocating, array_at, compiled, fields, plain
from recrawl.live import bayes
from recrawl.live.gamma import gamma_step
from recrawl.live.queue import ENTRY, new_queue, set_key, write

PAGE = np.dtype(
    # The state: at is its iota; start: the last crawl, less beta for each signal
    fields("f8", "start at value slope curve limit decay stale")
    # initial: curve at iota = 0; sharp_for: the threshold for which reach is good
    + fields("f8", "initial reach sharp_for importance")
    + fields("f8", "shape rate")  # a gamma distribution; shape is 0 for known rates
    # last: crawl; copied: the crawl reported last
    + fields("f8", "last copied min_interval max_interval")
    # host: -1 for none; place: index of an active page
    + fields("i4", "n_signals host place present")
    # known rates, of `lemma_4`; stale: iota from which V is at its limit
    + fields("f8", "change_rate false_rate alpha gamma beta")
)
HOST = np.dtype(fields("f8", "spacing full_at"))
SCALARS = np.dtype(
    # expected, found: means over recent reports of the probability of a change, and
    # of the bit; usual: that of the bit over a time that is BULK_LASTING times as long
    fields("f8", "threshold window time gap expected found usual")
    + fields("i8", "n_active rank crowd n_slots lowered n_values n_pages")
)


class State(NamedTuple):
    """State of a scheduler, written in place."""

    pages: np.ndarray
    hosts: np.ndarray
    active: np.ndarray  # upper bounds and pages, the first n_active count
    waiting: np.ndarray
    new: np.ndarray  # by -limit
    limited: np.ndarray
    scalars: np.ndarray  # SCALARS, shape (1,)


# The threshold is set to the value of a rank, and raised when CROWDED times as many
# pages are active. To lower it is a pass over all pages: too often, the rank doubles.
LEAST_RANK, CROWDED, TOO_OFTEN = 4, 4, 8
SLACK = 4  # a page may be active so many slots too early
SAFE = 1 - 1e-7  # bounds decide with a margin for the rounding of values and of times
MOST = np.finfo(float).max  # keys of pages that are in a queue are at most this
BURST = 2  # tokens that a host can save: one alone would be lost between two slots
RECENT = 0.05  # weight of the last slot in the mean time between slots
# Bulk changes: reports of so large a share of the pages are recent, at least so many;
# and so many changes are added to both means, since few changes say little.
BULK_SHARE, BULK_LEAST, BULK_PRIOR = 0.03, 30.0, 3.0
BULK_LASTING = 100.0  # three rounds; more changes than expected so long are no event


def new_state(n_pages, n_hosts, window=0.0):
    """State of no pages, with room for some."""
    state = State(
        np.zeros(n_pages, PAGE),
        np.zeros(n_hosts, HOST),
        np.empty(n_pages, ENTRY),
        new_queue(n_pages),
        new_queue(n_pages),
        new_queue(n_pages),
        np.zeros(1, SCALARS),
    )
    scalars = state.scalars[0]
    scalars["threshold"], scalars["window"] = np.inf, window
    scalars["rank"], scalars["crowd"] = LEAST_RANK, CROWDED * LEAST_RANK
    return state


@compiled  # as the functions that call it: `plain` would not let it make arrays
def _state_at(table):
    """The state whose arrays are at `addresses`."""
    return State(
        array_at(table, 0, PAGE),
        array_at(table, 1, HOST),
        array_at(table, 2, ENTRY),
        array_at(table, 3, ENTRY),
        array_at(table, 4, ENTRY),
        array_at(table, 5, ENTRY),
        array_at(table, 6, SCALARS),
    )


# ---------------------------------------------------------------- one page


@plain
def _forget(page):
    """Return to the state at iota = 0, for values that have become others."""
    page.at = page.value = page.slope = page.reach = page.sharp_for = 0.0
    if page.shape > 0.0:
        page.curve = page.importance * page.shape / page.rate
        page.decay = (page.shape + 1.0) / page.rate
        page.limit = page.importance * bayes.value(page.shape, page.rate, np.inf)
        if page.importance == 0.0:
            page.limit = 0.0
    else:
        page.curve, page.decay = page.importance * page.alpha, page.alpha
    page.initial = page.curve


@plain
def _evaluate(page, iota, scalars):
    """Compute the value at iota, and remember that state."""
    scalars.n_values += 1
    if page.shape > 0.0:
        page.value = page.importance * bayes.value(page.shape, page.rate, iota)
        cost_slope = bayes.cost_slope(page.shape, page.rate, iota)
        page.curve = page.importance * cost_slope
        page.slope = page.curve * iota
        page.decay = (page.shape + 1.0) / (page.rate + iota)
    else:
        state = lemma_4.evaluate(page, iota, np.inf)
        page.value, page.slope, page.curve, page.decay = state
    page.at = iota


@plain
def _upper(page, t):
    """Upper bound of the value at time t."""
    return lemma_4.upper(page, t - page.start - page.at)


@plain
def _is_above(page, t, other):
    """Whether the lower bound of the value at time t is above another value."""
    iota = t - page.start
    if iota >= page.stale:
        return SAFE * page.limit > other
    return SAFE * lemma_4.lower(page, iota - page.at) > other


@plain
def _find_reach(page, s):
    """Raise `reach` to where an upper bound is at the threshold, from two states."""
    goal = SAFE * s.threshold
    if goal == 0.0:
        return  # no value is below it
    page.reach = max(page.reach, math.sqrt(2.0 * goal / page.initial))  # iota = 0
    d = lemma_4.reach(page, goal)
    if not np.isnan(d):
        page.reach = max(page.reach, page.at + d)
        # the bounds differ by less than V rises in the slack
        rise = SLACK * s.gap * page.slope
        if d * d * (0.5 * page.curve + page.decay * page.slope) <= rise:
            page.sharp_for = s.threshold


@plain
def _due(page, t, s):
    """Time before which the value is below the threshold, precise if it is soon."""
    if page.limit < SAFE * s.threshold:
        return np.inf
    _find_reach(page, s)
    soon = t + SLACK * s.gap
    if page.start + page.reach <= soon and page.sharp_for != s.threshold:
        _evaluate(page, t - page.start, s)
        _find_reach(page, s)
    return page.start + page.reach


@plain
def _free_at(hosts, page):
    """When limits allow to crawl the page again."""
    free = page.last + page.min_interval
    if not page.present:
        return np.inf
    if page.host >= 0:
        host = hosts[page.host]
        if host.spacing == np.inf:
            return np.inf
        free = max(free, host.full_at - (BURST - 1) * host.spacing)
    return free


# ---------------------------------------------------------------- places


@plain
def _leave(state, i):
    """Take a page out of the active set, where it is in it."""
    s, active, k = state.scalars[0], state.active, state.pages[i].place
    if k < s.n_active and active[k].page == i:
        s.n_active -= 1
        last = active[s.n_active]
        write(active[k], last.key, last.page)
        state.pages[last.page].place = k


@plain
def _place(state, i, t):
    """Put a page where it belongs at time t."""
    s, page = state.scalars[0], state.pages[i]
    _leave(state, i)
    free = _free_at(state.hosts, page)
    waits, new, deadline = np.inf, np.inf, np.inf
    if page.max_interval < np.inf:
        deadline = page.last + page.max_interval
    if free > t and deadline <= t:
        waits, deadline = free, np.inf
    elif free > t:
        waits = max(free, page.start + page.reach)
    elif page.last == -np.inf:
        new = -page.limit
    else:
        waits = _due(page, t, s)
        if waits <= t + SLACK * s.gap:
            waits, page.place = np.inf, s.n_active
            write(state.active[s.n_active], 0.0, i)
            s.n_active += 1
    set_key(state.waiting, i, waits)
    set_key(state.new, i, new)
    set_key(state.limited, i, deadline)


@plain
def _is_free(state, i, t):
    """Whether limits allow the page now; if not, it waits until they do."""
    if _free_at(state.hosts, state.pages[i]) <= t:
        return True
    _place(state, i, t)
    return False


# ---------------------------------------------------------------- the largest


@plain
def _first(state, queue, t, until):
    """The first page of a queue that limits allow, if its key is at most `until`."""
    while queue[1].key <= until:
        if _is_free(state, queue[1].page, t):
            return queue[1].page
    return -1


@plain
def _largest(state, t):
    """The page of largest value of the active and the new; -1 below the threshold."""
    s, pages, active = state.scalars[0], state.pages, state.active
    for k in range(s.n_active - 1, -1, -1):
        page = pages[active[k].page]
        if page.host < 0 or _is_free(state, active[k].page, t):
            active[k].key = _upper(page, t)
    new = _first(state, state.new, t, MOST)
    while True:
        best, second, i, where = -1.0, -1.0, new, -1
        if new >= 0:
            best = pages[new].limit
        for k in range(s.n_active):
            upper = active[k].key
            if upper > best or (upper == best and active[k].page < i):
                best, second, i, where = upper, best, active[k].page, k
            elif upper > second:
                second = upper
        if best < s.threshold:
            return -1
        other = max(second, s.threshold)
        page = pages[i]
        iota = t - page.start
        if where < 0 or iota == page.at or _is_above(page, t, other):
            return i
        _evaluate(page, iota, s)
        active[where].key = page.value
        if page.value > other:
            return i


@allocating
def _of_rank(values, rank):
    """The value of this rank, from the largest; the least if there are fewer."""
    last = max(values.size - rank, 0)
    return np.partition(values, last)[last]


@allocating
def _value_of_rank(state, chosen, t):
    """The value of the rank among chosen pages, about.

    It is that among the pages of the largest upper bounds, which are computed.
    """
    s, pages = state.scalars[0], state.pages
    values = np.empty(chosen.size)
    for k in range(chosen.size):
        values[k] = _upper(pages[chosen[k]], t)
    least = _of_rank(values, CROWDED * s.rank)
    for k in range(chosen.size):
        page = pages[chosen[k]]
        if values[k] < least:
            values[k] = -1.0
        else:
            _evaluate(page, t - page.start, s)
            values[k] = page.value
    return _of_rank(values, s.rank)


@allocating
def _lower(state, t):
    """Lower the threshold to the value of a rank; whether a page can be crawled."""
    s, pages = state.scalars[0], state.pages
    often = (s.n_slots - s.lowered) * s.rank < TOO_OFTEN * s.n_pages
    s.rank = 2 * s.rank if often else max(s.rank // 2, LEAST_RANK)
    s.crowd, s.lowered = CROWDED * s.rank, s.n_slots
    chosen, n = np.empty(s.n_pages, np.int64), 0
    for i in range(s.n_pages):
        page = pages[i]
        page.reach = page.sharp_for = 0.0
        if page.last > -np.inf and _free_at(state.hosts, page) <= t:
            chosen[n] = i
            n += 1
    s.threshold = _value_of_rank(state, chosen[:n], t) if n > 0 else 0.0
    for i in range(s.n_pages):
        _place(state, i, t)
    return n > 0 or _first(state, state.new, t, MOST) >= 0


@allocating
def _raise(state, t):
    """Raise the threshold, if it can be, where too many pages are active."""
    s = state.scalars[0]
    if (s.n_slots - s.lowered) * s.rank > TOO_OFTEN * s.n_pages:
        s.rank = max(s.rank // 2, LEAST_RANK)
    crowd = np.empty(s.n_active, np.int64)
    for k in range(crowd.size):
        crowd[k] = state.active[k].page
    s.threshold = max(s.threshold, _value_of_rank(state, crowd, t))
    for i in crowd:
        _place(state, i, t)
    s.crowd = max(CROWDED * s.rank, 2 * s.n_active)  # equal pages stay together


# ---------------------------------------------------------------- events


@plain
def next_page(state, t):
    """Page of the slot at t, which then counts as crawled; -1 if there is none."""
    s, pages = state.scalars[0], state.pages
    if s.n_slots > 0:
        s.gap += (RECENT if s.n_slots > 1 else 1.0) * (t - s.time - s.gap)
    s.time, s.n_slots = t, s.n_slots + 1
    while state.waiting[1].key <= t:
        _place(state, state.waiting[1].page, t)
    i = _first(state, state.limited, t, t)
    if i < 0:
        i = _largest(state, t)
        if i < 0 and _lower(state, t):
            i = _largest(state, t)
    if i < 0:
        return i
    page = pages[i]
    if page.host >= 0:
        host = state.hosts[page.host]
        host.full_at = max(host.full_at, t) + host.spacing
    page.last = page.start = t
    page.n_signals = 0
    if page.shape > 0.0:
        _forget(page)
    _place(state, i, t)
    if s.n_active > s.crowd:
        _raise(state, t)
    return i


@plain
def receive_signal(state, i, t):
    """Count a signal of page i."""
    page = state.pages[i]
    if page.beta > 0.0 and t - page.last >= state.scalars[0].window:
        page.n_signals += 1
        page.start = page.last - page.beta * page.n_signals
        _place(state, i, t)


@plain
def _bulk(state, page, interval, changed):
    """Weight of the evidence of one report, less than 1 in a bulk change.

    A redesign or a new template changes many pages at once, and the next round finds
    each of them changed: that is one event, and says little of the rates of single
    pages. It shows as more changes lately than the posteriors predicted, and than
    usual: else a prior of far too low rates would never be corrected. The square is
    our choice (measured on real histories).
    """
    s = state.scalars[0]
    recent = 1.0 / max(BULK_SHARE * s.n_pages, BULK_LEAST)
    expected = 1.0 - (page.rate / (page.rate + interval)) ** page.shape
    s.expected += recent * (expected - s.expected)
    bit = 1.0 if changed else 0.0
    s.found += recent * (bit - s.found)
    s.usual += recent / BULK_LASTING * (bit - s.usual)
    if not changed:
        return 1.0
    few = BULK_PRIOR * recent
    return min(1.0, ((max(s.expected, s.usual) + few) / (s.found + few)) ** 2)


@plain
def report(state, i, changed, age, t):
    """Take in what the last crawl of page i found; False if it is reported already.

    age : time since the last change at the crawl, NaN where it is not known.
    """
    page = state.pages[i]
    if not page.last > page.copied:
        return False
    interval, page.copied = page.last - page.copied, page.last
    shape, rate, weight = page.shape, page.rate, 1.0
    if interval < np.inf:
        weight = _bulk(state, page, interval, changed)
    if 0.0 < age <= interval and age < np.inf and (changed or interval == np.inf):
        # no change within the age, and one at its beginning
        shape, rate = shape + 1.0, rate + age
    elif interval < np.inf:
        shape, rate = gamma_step(changed, interval, shape, rate)
    page.shape += weight * (shape - page.shape)
    page.rate += weight * (rate - page.rate)
    _forget(page)
    _place(state, i, t)
    return True


@plain
def insert(state, page, t):
    """Take in pages whose records are new or have changed."""
    for i in page:
        record = state.pages[i]
        _forget(record)
        record.start = record.last
        if record.n_signals > 0:
            record.start -= record.beta * record.n_signals
        _place(state, i, t)


@plain
def run(state, slots, signal_page, signal_time, out):
    """Page of each slot, after the signals up to then; -1 where there is none."""
    k = 0
    for j, t in enumerate(slots):
        while k < signal_time.size and signal_time[k] <= t:
            receive_signal(state, signal_page[k], signal_time[k])
            k += 1
        out[j] = next_page(state, t)


@plain
def free_from(state):
    """When limits allow the next crawl; inf if never."""
    time = np.inf
    for page in state.pages:
        time = min(time, _free_at(state.hosts, page))
    return time


# From Python in every slot: one table of addresses costs less than seven arrays.


@compiled
def one_page(table, t):
    """`next_page`, of the state at the addresses."""
    return next_page(_state_at(table), t)


@compiled
def one_signal(table, i, t):
    """`receive_signal`, likewise."""
    receive_signal(_state_at(table), i, t)


@compiled
def one_report(table, i, changed, t):
    """`report` without an age, likewise."""
    return report(_state_at(table), i, changed, np.nan, t)
