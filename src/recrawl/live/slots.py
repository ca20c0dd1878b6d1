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

*Compare few pages.* A threshold lies a little below the values that win. A page waits
in a heap until its effective time comes to `reach`, before which its upper bound is
below the threshold. The others are the active set. If no active page is above the
threshold, it is lowered, and the slot is decided again.

Pages that were never crawled have the limit of V as their value; they are in a heap
by it. Limits: a page waits for its least interval, and is held while its host has no
token; after its greatest interval it is overdue, and overdue pages come before all
others, by deadline. Entries of heaps are not removed when their page moves: they are
skipped, since the page has another place or time then.
"""

import math
from typing import NamedTuple

import numpy as np

from paperlib import lemma_4
from recrawl.compiled import allocating, array_at, compiled, fields, plain
from recrawl.live import bayes
from recrawl.live.gamma import gamma_step
from recrawl.live.heaps import ENTRY, pop, push

# WAITING: in the heap until `due`. HELD: likewise, until its host has a token. LATE:
# held, and its deadline has passed. BELOW: under the threshold for ever. NEW: never
# crawled. ABSENT: no such page.
ABSENT, BELOW, WAITING, HELD, LATE, ACTIVE, NEW = range(7)
PAGE = np.dtype(
    # known rates: of `lemma_4`; fresh, stale: iota up to which V is 0, from which limit
    fields("f8", "importance change_rate false_rate alpha gamma beta fresh stale")
    + fields("f8", "shape rate")  # a gamma distribution; shape is 0 for known rates
    + fields("f8", "min_interval max_interval")
    # last: crawl; copied: the crawl reported last; start: last, less beta a signal
    + fields("f8", "last copied start due reach")
    # the state: at is its iota; sharp_for: the threshold for which reach is good
    + fields("f8", "limit at value slope curve decay sharp_for")
    + fields("i4", "n_signals host place position")  # host: -1 for none
)
# What the bounds of an active page need, copied: these are read in every slot.
BOUND = np.dtype(
    fields("f8", "start at value slope curve limit upper") + fields("i4", "page host")
)
HOST = np.dtype(fields("f8", "spacing full_at"))
SCALARS = np.dtype(
    # expected, found: means over recent reports of the probability of a change, and
    # of the bit; usual: that of the bit over a time that is BULK_LASTING times as long
    fields("f8", "threshold window time gap expected found usual")
    + fields("i8", "n_active n_waiting n_new n_limited rank crowd n_slots lowered")
    + fields("i8", "n_values n_pages")
)


class State(NamedTuple):
    """State of a scheduler, written in place."""

    pages: np.ndarray
    hosts: np.ndarray
    active: np.ndarray  # BOUND, the first n_active count
    waiting: np.ndarray  # heap by due time
    new: np.ndarray  # heap by -limit
    limited: np.ndarray  # heap of pages with a greatest interval, by deadline
    scalars: np.ndarray  # SCALARS, shape (1,)


# The threshold is set to the value of a rank, and raised when CROWDED times as many
# pages are active. To lower it is a pass over all pages: too often, the rank doubles.
LEAST_RANK, CROWDED, TOO_OFTEN = 4, 4, 8
SLACK = 4  # a page may be active so many slots too early
SAFE = 1 - 1e-7  # bounds decide with a margin for the rounding of values and of times
BURST = 2  # tokens that a host can save: one alone would be lost between two slots
RECENT = 0.05  # weight of the last slot in the mean time between slots
# Bulk changes: reports of so large a share of the pages are recent, at least so many;
# and so many changes are added to both means, since few changes say little.
BULK_SHARE, BULK_LEAST, BULK_PRIOR = 0.03, 30.0, 3.0
BULK_LASTING = 100.0  # three rounds; more changes than expected so long are no event


def new_state(n_pages, n_hosts, n_limited, window=0.0):
    """State of no pages, with room for some, of which some have a greatest interval."""
    state = State(
        np.zeros(n_pages, PAGE),
        np.zeros(n_hosts, HOST),
        np.empty(n_pages, BOUND),
        # heaps with room for entries of pages that have moved on
        np.empty(2 * n_pages + 8, ENTRY),
        np.empty(n_pages + n_pages // 4 + 8, ENTRY),
        np.empty(2 * n_limited + 8, ENTRY),
        np.zeros(1, SCALARS),
    )
    scalars = state.scalars[0]
    scalars["threshold"], scalars["window"] = np.inf, window
    scalars["rank"], scalars["crowd"] = LEAST_RANK, CROWDED * LEAST_RANK
    return state


def with_room(state, n_pages, n_hosts, n_limited):
    """The state with room for more pages and hosts."""
    larger = new_state(n_pages, n_hosts, n_limited)
    for name in "pages", "hosts", "active", "waiting", "new", "limited", "scalars":
        array = getattr(state, name)
        getattr(larger, name)[: array.size] = array
    return larger


@compiled  # as the functions that call it: `plain` would not let it make arrays
def _state_at(table):
    """The state whose arrays are at `addresses`."""
    return State(
        array_at(table, 0, PAGE),
        array_at(table, 1, HOST),
        array_at(table, 2, BOUND),
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
def _upper(bound, t):
    """Upper bound of the value at time t, of a page or of its BOUND."""
    return lemma_4.upper(bound, t - bound.start - bound.at)


@plain
def _is_above(page, t, other):
    """Whether the lower bound of the value at time t is above another value."""
    iota = t - page.start
    if iota >= page.stale:
        return SAFE * page.limit > other
    return SAFE * lemma_4.lower(page, iota - page.at) > other


@plain
def _find_reach(page, threshold, slack):
    """Raise `reach` to where the upper bound is at the threshold, from two states."""
    goal = SAFE * threshold
    if goal == 0.0:
        return  # no value is below it
    initial = page.importance * page.alpha
    if page.shape > 0.0:
        initial = page.importance * page.shape / page.rate
    zero = math.sqrt(2.0 * goal / initial)  # iota = 0
    if zero > page.reach:  # not if it is NaN
        page.reach = zero
    d = lemma_4.reach(page, goal)
    if page.slope > 0.0 and not np.isnan(d):
        page.reach = max(page.reach, page.at + d)
        # the bounds differ by less than V rises in the slack
        if d * d * (0.5 * page.curve + page.decay * page.slope) <= slack * page.slope:
            page.sharp_for = threshold


@plain
def _free_at(hosts, page):
    """When limits allow to crawl the page again."""
    free = page.last + page.min_interval
    if page.host >= 0:
        host = hosts[page.host]
        if host.spacing == np.inf:
            return np.inf
        free = max(free, host.full_at - (BURST - 1) * host.spacing)
    return free


# ---------------------------------------------------------------- places


@plain
def _is_in_heap(page):
    """Return whether a page is in the heap of waiting pages."""
    return WAITING <= page.place <= LATE


@plain
def _pushed(pages, heap, n, key, i, kind):
    """Push an entry of page i; a full heap is made again of its pages. New length."""
    if n < heap.size:
        return push(heap, n, key, i)
    n = 0
    for k in range(pages.size):
        page = pages[k]
        if kind == WAITING and _is_in_heap(page):
            n = push(heap, n, page.due, k)
        elif kind == NEW and page.place == NEW:
            n = push(heap, n, -page.limit, k)
        elif kind == LATE and page.place != ABSENT and page.max_interval < np.inf:
            n = push(heap, n, page.last + page.max_interval, k)
    return n


@plain
def _wait(state, i, place, due):
    """Put a page into the heap of those that wait."""
    s, page = state.scalars[0], state.pages[i]
    if not (page.place == place and page.due == due):
        page.place, page.due = place, due
        s.n_waiting = _pushed(state.pages, state.waiting, s.n_waiting, due, i, WAITING)


@plain
def _leave(state, i):
    """Take a page out of the active set, where it is in it."""
    s, active, page = state.scalars[0], state.active, state.pages[i]
    if page.place == ACTIVE:
        s.n_active -= 1
        other = active[s.n_active]
        active[page.position] = other
        state.pages[other.page].position = page.position
    page.place = BELOW


@plain
def _write_bound(state, page):
    """Copy what the bounds of an active page need."""
    bound = state.active[page.position]
    bound.start, bound.at, bound.value = page.start, page.at, page.value
    bound.slope, bound.curve, bound.limit = page.slope, page.curve, page.limit
    bound.host = page.host


@plain
def _place(state, i, t):
    """Put a page, which is in no place, where it belongs."""
    s, page = state.scalars[0], state.pages[i]
    page.place = BELOW
    if page.last == -np.inf:
        page.place = NEW
        s.n_new = _pushed(state.pages, state.new, s.n_new, -page.limit, i, NEW)
    elif page.limit >= SAFE * s.threshold:
        due, free = page.start + page.reach, page.last + page.min_interval
        if due <= t + SLACK * s.gap and free <= t:
            page.place, page.position = ACTIVE, s.n_active
            state.active[s.n_active].page = i
            _write_bound(state, page)
            s.n_active += 1
        else:
            _wait(state, i, WAITING, max(due, free))


@plain
def _limit(state, i):
    """Note the deadline of a page, if it has one."""
    s, page = state.scalars[0], state.pages[i]
    if page.max_interval < np.inf:
        deadline = page.last + page.max_interval
        s.n_limited = _pushed(
            state.pages, state.limited, s.n_limited, deadline, i, LATE
        )


@plain
def _wake(state, t):
    """Place the pages that have waited until t."""
    s, pages = state.scalars[0], state.pages
    slack = SLACK * s.gap
    while s.n_waiting > 0 and state.waiting[0].key <= t:
        due, i = state.waiting[0].key, state.waiting[0].page
        s.n_waiting = pop(state.waiting, s.n_waiting)
        page = pages[i]
        if page.due != due or not _is_in_heap(page):
            continue
        if page.place != WAITING:
            free = _free_at(state.hosts, page)
            if free > t:
                _wait(state, i, page.place, free)
                continue
            if page.place == LATE:
                _limit(state, i)
        elif page.last > -np.inf:
            if page.sharp_for != s.threshold:
                _find_reach(page, s.threshold, slack)
            if page.sharp_for != s.threshold:
                _evaluate(page, page.reach, s)
                _find_reach(page, s.threshold, slack)
        _place(state, i, t)


@plain
def _hold(state, i, t):
    """Hold a page until its limits allow a crawl; return False if they do now."""
    free = _free_at(state.hosts, state.pages[i])
    if free <= t:
        return False
    _leave(state, i)
    _wait(state, i, HELD, free)
    return True


# ---------------------------------------------------------------- the largest


@plain
def _overdue(state, t):
    """The overdue page of the earliest deadline; -1 if there is none."""
    s = state.scalars[0]
    while s.n_limited > 0 and state.limited[0].key <= t:
        deadline, i = state.limited[0].key, state.limited[0].page
        page = state.pages[i]
        if page.place != ABSENT and page.last + page.max_interval == deadline:
            if not (page.place == HELD or page.place == LATE or _hold(state, i, t)):
                return i
            page.place = LATE
        s.n_limited = pop(state.limited, s.n_limited)
    return -1


@plain
def _first_new(state, t):
    """The page of the largest value of those never crawled; -1 if there is none."""
    s = state.scalars[0]
    while s.n_new > 0:
        key, i = state.new[0].key, state.new[0].page
        page = state.pages[i]
        if page.place == NEW and -page.limit == key and not _hold(state, i, t):
            return i
        s.n_new = pop(state.new, s.n_new)
    return -1


@plain
def _largest(state, t):
    """The page of largest value of the active and the new; -1 below the threshold."""
    s, pages, active = state.scalars[0], state.pages, state.active
    for k in range(s.n_active - 1, -1, -1):
        bound = active[k]
        if bound.host < 0 or not _hold(state, bound.page, t):
            bound.upper = _upper(bound, t)
    new = _first_new(state, t)
    while True:
        best, second, i, where = -1.0, -1.0, new, -1
        if new >= 0:
            best = pages[new].limit
        for k in range(s.n_active):
            upper = active[k].upper
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
        _write_bound(state, page)
        active[where].upper = page.value
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
    least, n_values = _of_rank(values, CROWDED * s.rank), 0
    for k in range(chosen.size):
        if values[k] >= least:
            page = pages[chosen[k]]
            _evaluate(page, t - page.start, s)
            values[n_values] = page.value
            n_values += 1
    return _of_rank(values[:n_values], s.rank)


@plain
def _settle(state, i, t):
    """Place a page by its bounds, and by its value if it would be active."""
    s, page = state.scalars[0], state.pages[i]
    _find_reach(page, s.threshold, SLACK * s.gap)
    if page.start + page.reach <= t and page.limit >= SAFE * s.threshold:
        _evaluate(page, t - page.start, s)
        _find_reach(page, s.threshold, SLACK * s.gap)
    _place(state, i, t)


@allocating
def _lower(state, t):
    """Lower the threshold to the value of a rank; whether a page can be crawled."""
    s, pages = state.scalars[0], state.pages
    often = (s.n_slots - s.lowered) * s.rank < TOO_OFTEN * pages.size
    s.rank = 2 * s.rank if often else max(s.rank // 2, LEAST_RANK)
    s.crowd, s.lowered = CROWDED * s.rank, s.n_slots
    chosen, n = np.empty(pages.size, np.int64), 0
    for i in range(pages.size):
        page = pages[i]
        crawled = page.place != ABSENT and page.last > -np.inf
        if crawled and _free_at(state.hosts, page) <= t:
            chosen[n] = i
            n += 1
    s.threshold = _value_of_rank(state, chosen[:n], t) if n > 0 else 0.0
    n_entries = s.n_waiting  # of these only those of held pages remain
    s.n_active = s.n_waiting = 0
    for k in range(n_entries):
        due, i = state.waiting[k].key, state.waiting[k].page
        if pages[i].place > WAITING and _is_in_heap(pages[i]) and pages[i].due == due:
            s.n_waiting = push(state.waiting, s.n_waiting, due, i)
    for i in range(pages.size):
        page = pages[i]
        page.reach = page.sharp_for = 0.0
        held = page.place == HELD or page.place == LATE
        if not (held or page.place == ABSENT or page.last == -np.inf):
            _settle(state, i, t)
    return n > 0 or _first_new(state, t) >= 0


@allocating
def _raise(state, t):
    """Raise the threshold, if it can be, where too many pages are active."""
    s = state.scalars[0]
    if (s.n_slots - s.lowered) * s.rank > TOO_OFTEN * state.pages.size:
        s.rank = max(s.rank // 2, LEAST_RANK)
    crowd = np.empty(s.n_active, np.int64)
    for k in range(crowd.size):
        crowd[k] = state.active[k].page
    s.threshold, s.n_active = max(s.threshold, _value_of_rank(state, crowd, t)), 0
    for i in crowd:
        _settle(state, i, t)
    s.crowd = max(CROWDED * s.rank, 2 * s.n_active)  # equal pages stay together


# ---------------------------------------------------------------- events


@plain
def next_page(state, t):
    """Page of the slot at t, which then counts as crawled; -1 if there is none."""
    s, pages = state.scalars[0], state.pages
    if s.n_slots > 0:
        s.gap += (RECENT if s.n_slots > 1 else 1.0) * (t - s.time - s.gap)
    s.time, s.n_slots = t, s.n_slots + 1
    _wake(state, t)
    i = _overdue(state, t)
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
    _leave(state, i)
    page.last = page.start = t
    page.n_signals = 0
    if page.shape > 0.0:
        _forget(page)
    _find_reach(page, s.threshold, 0.0)
    _place(state, i, t)
    _limit(state, i)
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
        if page.place == ACTIVE:
            _write_bound(state, page)
        elif page.place == WAITING:
            free = page.last + page.min_interval
            _wait(state, i, WAITING, max(page.start + page.reach, free))


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
    _find_reach(page, state.scalars[0].threshold, 0.0)
    if not (page.place == HELD or page.place == LATE):
        _leave(state, i)
        _place(state, i, t)
    return True


@plain
def insert(state, page, t):
    """Take in pages whose records are new or have changed."""
    for i in page:
        record = state.pages[i]
        _leave(state, i)
        _forget(record)
        record.start = record.last
        if record.n_signals > 0:
            record.start -= record.beta * record.n_signals
        _find_reach(record, state.scalars[0].threshold, 0.0)
        _place(state, i, t)
        _limit(state, i)


@plain
def remove(state, page):
    """Remove pages."""
    for i in page:
        _leave(state, i)
        state.pages[i].place = ABSENT


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
        if page.place != ABSENT:
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
