r"""Crawling by an index without signals: the page of largest index, exactly.

The index of a page is a function of the time t since its crawl that never
falls: the crawl value of an objective, or of what is known of a change
rate (`bayes`). Both have an inverse: after each crawl one root gives the time at
which the index of the page reaches a threshold, and until then no slot looks at
the page.

The algorithm. Two thresholds, low < high, divide the pages into three groups.
Pages whose index has not reached the low threshold are *far*, in a heap by the
time at which they reach it. Pages between the two thresholds are *near*, in a
second heap by the time at which they reach the high one. The others are
*active*, and a slot compares the indices of these. If no active page reaches
the high threshold, it is lowered so that about `_TARGET` of the active and
near pages are above it. Only if no page reaches the low threshold either, one
pass over all pages sets both thresholds anew. If too many pages are active or
near, the thresholds rise. With some sqrt(n_pages) near pages there is one pass
over all pages in about n_pages slots; lowering the high threshold costs as
little per slot.

The start. When all pages were crawled at the same time, all indices are small
and grow by large factors: every page would be queued again and again as the
thresholds rise. So these pages are *deferred*, in the order of a bound of
their indices that is the same power of the time for all: V(t) <= b t^2,
because c' never rises (for age, <= b t^3).
Where pages differ in importance alone, the index itself is the bound. The
first deferred page is activated when its bound reaches the largest index of a
slot: before that its index cannot be the largest.

The index of a page that was never crawled does not change, it is that of an
infinite time: such pages are in a heap of their own, by falling index.

A root takes some ten exponentials and logarithms. It is computed once after a
crawl, for a far page. Later a line replaces it where the threshold is near
(`_reaches`): the index is a concave function of t^2 (for age, of t^3), so that
its tangent is above it, and a square root gives the time at which the tangent
reaches the threshold. Where this time is far ahead, the tangent would be far
above the index, and the root is computed again.

Limits. A page is not crawled before its least interval, nor while its host has
no token (as in `hosts`). A page that has reached its greatest interval is
*overdue*: its index is above all others, and grows with its lateness, so that
overdue pages are crawled in the order of their deadlines.

Why the schedule is that of the full arg max. A page that is far or near is
below its threshold by the margin `_SAFE`, because its index only grows and the
margin is above the rounding of the index and of the time. So the largest index
of the active pages and of the pages never crawled is the largest of all if it
reaches the high threshold. Ties go to the lower index, as in `argmax`.

When a page moves, its entry stays in the heap. The entry is skipped when it
becomes the first, because the page is then in another place or has another due
time. Every page has one valid entry.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from recrawl.kernels import (
    allocating,
    array_at,
    bayes,
    compiled,
    fields,
    inlined,
    objectives,
    plain,
)
from recrawl.kernels.changes import look
from recrawl.kernels.crawl_value import rounded
from recrawl.kernels.heaps import ENTRY, pop, push
from recrawl.kernels.hosts import HOST, free_at, spend_token, waits
from recrawl.kernels.online import gamma_step
from recrawl.kernels.scheduler import add_to_pool, kth_largest, padded

# The kinds of an index: the objectives have the numbers below this one.
BAYES = 6

# The place of a page. ABSENT: no such page, the place of an empty record. IDLE: below
# the low threshold for ever, or not placed yet. FAR: below the low threshold at least
# until it is due. NEAR: between the thresholds. ACTIVE: above the high one. NEW: never
# crawled. HELD: never crawled, and its host has no token until it is due. DEFERRED:
# since the start, see above. CRAWLED: placed when the report of its crawl arrives.
ABSENT, IDLE, FAR, NEAR, ACTIVE, NEW, HELD, DEFERRED, CRAWLED = range(9)

PAGE = np.dtype(
    # scale, rate: of an objective, index = scale profile(rate t). BAYES: scale
    # is the importance, gamma_shape and rate are of the gamma distribution.
    fields("f8", "scale rate gamma_shape")
    # last: time of the last crawl; due: the key of its entry in a heap; least,
    # most: intervals between crawls; seen: the crawl of which the copy is;
    # base, slope: the line above the index of a near or active page, see `_line`;
    # known: the threshold that a near page reaches when it is due
    + fields("f8", "last due least most seen base slope known")
    + fields("i4", "kind place position host")
)
# What a policy says of a page; `kind` is one for all pages.
DESCRIBED = "scale", "rate", "gamma_shape", "least", "most", "host"
SCALARS = np.dtype(
    # origin: when the deferred pages were crawled; n_activated: how many of them have
    # been activated
    # awaited: pages of place CRAWLED need no place before this time
    fields("f8", "high low origin awaited")
    # active_crowd, near_crowd: with more active or near pages a threshold rises;
    # n_values: indices computed so far; alike: whether the deferred pages differ in
    # importance alone
    + fields("i8", "n_active n_far n_near n_new n_activated active_crowd near_crowd")
    + fields("i8", "n_crawled n_values alike")
)


class State(NamedTuple):
    """State of the scheduler; all of it is written in place."""

    pages: np.ndarray  # PAGE, shape (n_pages,)
    hosts: np.ndarray  # HOST of `kernels.hosts`
    active: np.ndarray  # int, the first n_active count
    far: np.ndarray  # heap of ENTRY by due time, also of HELD pages
    near: np.ndarray  # heap of ENTRY by due time
    new: np.ndarray  # heap of ENTRY by -index
    deferred: np.ndarray  # deferred pages, by falling bound
    crawled: np.ndarray  # pages, those of place CRAWLED among the first n_crawled
    scalars: np.void  # SCALARS


_HEAPS = "far", "near", "new"  # each has room for as many entries again

_TINY = 1e-280  # smaller indices are not exact to 1e-11
_LEAST = 5e-324  # the lowest threshold: a page of index 0 need not be active
_SAFE = 1.0 - 1e-7  # a margin above the rounding of an index, 1e-11, and of a time
# Indices of overdue pages begin here, far above all other indices.
_OVERDUE, _LATENESS = 1e120, 1e200
_TARGET = 8  # wanted number of active pages
# A threshold rises when this many times its target of pages are above it, or, if
# equal pages cannot be separated by a threshold, this many times the number that
# were above it when it was last set.
_CROWDED = 4
# Where pages are crawled rarely, a slot took 4.5 us with 1 here, 3.3 with .1, and 2.1
# with .03; elsewhere it makes no difference.
_BENT = 0.03
_MOST_AWAITED = 1024  # greatest number of pages of place CRAWLED
_MIN_NEAR = 64  # wanted number of near pages, if its square is above n_pages


# ------------------------------------------------------------ what callers use


def new_state(pages, hosts, t):
    """`State` of pages at time t.

    pages : records of dtype `PAGE`, shape (n_pages,); those of place ABSENT
    are not there. hosts : records of dtype `HOST`.
    """
    scalars = np.zeros(1, SCALARS)[0]
    scalars["low"] = scalars["high"] = -1.0
    scalars["awaited"] = np.inf
    there = np.flatnonzero(pages["place"] != ABSENT)
    deferred = np.zeros(0, np.int64)
    if there.size:
        last = pages["last"][there]
        scalars["origin"] = last[0]
        if (last == last[0]).all() and np.isfinite(last[0]):
            deferred = _defer(pages, there, scalars)
    heaps = (np.zeros(0, ENTRY) for _ in range(3))
    crawled = np.zeros(_MOST_AWAITED, int)
    state = State(pages, hosts, np.zeros(0, int), *heaps, deferred, crawled, scalars)
    state = longer(state, len(pages))
    change_pages(state, there[pages["place"][there] != DEFERRED], True, t)
    return state


def _defer(pages, there, scalars):
    """Defer the pages that have a bound; returns them by falling bound."""
    bounds = np.empty(len(pages))
    fill_bounds(pages, bounds)
    later = there[(pages["most"][there] == np.inf) & (bounds[there] > 0.0)]
    pages["place"][later] = DEFERRED
    one = pages[later[:1]]
    alike = all(
        (pages[name][later] == one[name]).all() for name in ("gamma_shape", "rate")
    )
    scalars["alike"] = alike
    # pages of different importance may have equal bounds, by rounding
    key = pages["scale"] if alike else bounds
    return later[np.argsort(-key[later], kind="stable")]


def longer(state, size):
    """The state with room for `size` pages."""
    heaps = {name: padded(getattr(state, name), 2 * size) for name in _HEAPS}
    return state._replace(
        pages=padded(state.pages, size), active=padded(state.active, size), **heaps
    )


@compiled
def fill_objective(pages, objective, deadline, change_rate, importance):
    """Write what the index of an objective needs to the records of pages."""
    for i in range(pages.size):
        pages[i].kind = objective
        pages[i].scale, pages[i].rate = objectives.scale_and_rate(
            objective, importance[i], change_rate[i], deadline
        )


# ------------------------------------------------------------ the index of a page


@inlined
def index(page, elapsed):
    """Index of a page at a time since its crawl, without limits."""
    if page.scale == 0.0:
        return 0.0
    if page.kind == BAYES:
        return page.scale * bayes.value(page.gamma_shape, page.rate, elapsed)
    x = page.rate * elapsed
    return page.scale * objectives.profile(page.kind, rounded(x) if x < np.inf else x)


@plain
def _time_until(page, index):
    """The elapsed time at which `index` reaches an index, inf if it never does."""
    if page.scale == 0.0:
        return np.inf
    if page.kind == BAYES:
        return bayes.elapsed_at(page.gamma_shape, page.rate, index / page.scale)
    return objectives.inverse_profile(page.kind, index / page.scale) / page.rate


@plain
def _bound(page, elapsed):
    """A bound of an index: b t^2, or b t^3 for age, by the slope c'(0) of the cost.

    There is no bound for a deadline: 0.
    """
    x = page.rate * elapsed
    if page.kind == BAYES:
        return 0.5 * page.scale * page.gamma_shape * elapsed * elapsed / page.rate
    if page.kind == objectives.AGE:
        return page.scale * x * x * x / 3.0
    if page.kind == objectives.FRESHNESS or page.kind == objectives.HARMONIC:
        return 0.5 * page.scale * x * x
    return page.scale * x * x if page.kind < objectives.DEADLINE else 0.0


@compiled
def fill_bounds(pages, bounds):
    """Write the bound of each page a unit of time after its crawl."""
    for i in range(pages.size):
        bounds[i] = _bound(pages[i], 1.0)


# ----------------------------------------------------------------------- limits


@inlined
def _may(state, page, t):
    """Whether a page may be crawled at time t.

    Here and in `_value` a limit is reached a little early: the difference of
    two times is rounded.
    """
    return t - page.last >= page.least * _SAFE and not waits(state.hosts[page.host], t)


@inlined
def _value(state, page, t):
    """Index of a page at time t, with its greatest interval."""
    elapsed = t - page.last
    if page.most < np.inf and elapsed >= page.most * _SAFE:
        return max(_LATENESS * (elapsed - page.most), _OVERDUE)
    state.scalars.n_values += 1
    return index(page, elapsed)


@inlined
def _in_time(page, wait):
    """The time of a wait since the crawl, with the limits; never too late."""
    if wait == np.inf and page.most == np.inf:
        return np.inf
    due = page.last + max(min(wait, page.most * _SAFE), page.least * _SAFE)
    return due - abs(due) * 1e-15


@plain
def _due(state, page, threshold):
    """The time at which a page can reach a threshold; inf for never."""
    safe = threshold * _SAFE
    if safe <= _OVERDUE:
        return _in_time(page, _time_until(page, safe))
    return page.last + page.most * _SAFE + safe / _LATENESS * _SAFE


# ------------------------------------------------------------------------ heaps


@plain
def _counts(state, entry, place):
    """Whether an entry is the one of its page; HELD pages are among the FAR."""
    page = state.pages[entry.page]
    here = page.place == place or (place == FAR and page.place == HELD)
    return here and page.due == entry.key


@plain
def _queue(state, heap, n, place, i):
    """Add page i, which is now in `place`, to the n entries of a heap by its key.

    In a full heap at least half of the entries do not count, or are there twice,
    from crawls at the same time: they are dropped.
    """
    if n == heap.size:
        for p in range(n):
            if _counts(state, heap[p], place):
                state.pages[heap[p].page].position = 0
        state.pages[i].position = 1  # of those that have an entry by now
        full, n = n, 0
        for p in range(full):
            page = state.pages[heap[p].page]
            if _counts(state, heap[p], place) and page.position == 0:
                page.position = 1
                n = push(heap, n, heap[p].key, heap[p].page)
    return push(heap, n, state.pages[i].due, i)


@plain
def _queue_far(state, i):
    """Queue page i among the far ones, or not, if it is never due."""
    if state.pages[i].due == np.inf:
        state.pages[i].place = IDLE
    else:
        scalars = state.scalars
        scalars.n_far = _queue(state, state.far, scalars.n_far, FAR, i)


# ------------------------------------------------------------- places of a page


@inlined
def _power(page, elapsed):
    """The power of the elapsed time in which the index of a page is concave."""
    square = elapsed * elapsed
    return square * elapsed if page.kind == objectives.AGE else square


@inlined
def _line(page, elapsed, v, slope):
    """Set the line above the index, which is v at a time since the crawl.

    The crawl value is the integral of s c'(s), and c' never rises; for age,
    c' / s never rises. So the index is a concave function of t^2, or t^3: from here
    on it is below a line through this point with the slope of an earlier tangent,
    or with the slope of the line from the origin. The slope is inf where there is
    no such line.
    """
    power = _power(page, elapsed)
    page.slope = min(slope, v / power) if v > _TINY and slope < np.inf else np.inf
    page.base = v - page.slope * power


@plain
def _draw(page, t, v):
    """Set the line to the tangent of the index of a page, which is v at time t."""
    elapsed = t - page.last
    if page.kind == BAYES:
        slope = (
            0.5 * page.scale * bayes.cost_slope(page.gamma_shape, page.rate, elapsed)
        )
    else:
        slope = (
            page.scale
            * _power(page, page.rate)
            * objectives.profile_slope(page.kind, page.rate * elapsed)
        )
    _line(page, elapsed, v, slope)


@plain
def _reaches(state, page, t, threshold):
    """When a page with a line may reach a threshold; never later than `_due`.

    Where the slope of the cost falls by more than `_BENT` until then, the line is too
    far above the index: the page would be due too early again and again, which costs
    more than a root.
    """
    safe, elapsed = threshold * _SAFE, t - page.last
    if 0.0 < page.slope < np.inf and safe <= _OVERDUE:
        ratio = max(safe - page.base, 0.0) / page.slope
        wait = ratio ** (1.0 / 3.0) if page.kind == objectives.AGE else math.sqrt(ratio)
        falls = page.rate
        if page.kind == BAYES:
            falls = (page.gamma_shape + 1.0) / (page.rate + elapsed)
        if (wait - elapsed) * falls < _BENT:
            return _in_time(page, wait)
    return _due(state, page, threshold)


@plain
def _approach(state, i, t):
    """Page i, in no place, is above the low threshold: near, or active."""
    page, scalars = state.pages[i], state.scalars
    # The due time of a near page is kept if it was computed for the present threshold:
    # so a page without a line needs no second root.
    if page.place != NEAR or page.known != scalars.high:
        page.due = _reaches(state, page, t, scalars.high)
    if page.due <= t:
        page.place, page.position = ACTIVE, scalars.n_active
        state.active[scalars.n_active] = i
        scalars.n_active += 1
    else:
        page.place, page.known = NEAR, scalars.high
        scalars.n_near = _queue(state, state.near, scalars.n_near, NEAR, i)


@plain
def _place(state, i, t, v):
    """Find the place of page i, in no place, of index v, or v < 0 if unknown."""
    page, low = state.pages[i], state.scalars.low
    if low < 0.0:  # before the first slot
        page.place = IDLE
        return
    page.place = FAR
    if v < 0.0:
        page.due = _due(state, page, low)
        if page.due > t:
            _queue_far(state, i)
            return
        v = _value(state, page, t)
    _draw(page, t, v)
    page.due = _reaches(state, page, t, low) if v < low else t
    if page.due > t:
        _queue_far(state, i)
    else:
        _approach(state, i, t)


@plain
def place_crawled(state):
    """Place the crawled pages whose reports have not arrived."""
    scalars = state.scalars
    for p in range(scalars.n_crawled):
        i = state.crawled[p]
        if state.pages[i].place == CRAWLED:
            _place(state, i, state.pages[i].last, -1.0)
    scalars.n_crawled, scalars.awaited = 0, np.inf


@plain
def _await_report(state, i, t):
    """Find the place of page i, crawled at time t.

    A page that learns from its report is placed when the report arrives, and not
    before as well, as long as its bound is below the low threshold.
    """
    page, scalars = state.pages[i], state.scalars
    bound = _bound(page, 1.0)
    if page.kind != BAYES or bound == 0.0 or not _LEAST < scalars.low <= _OVERDUE:
        _place(state, i, t, -1.0)
        return
    if scalars.n_crawled == state.crawled.size:
        place_crawled(state)
    page.place, state.crawled[scalars.n_crawled] = CRAWLED, i
    scalars.n_crawled += 1
    until = _in_time(page, math.sqrt(scalars.low * _SAFE / bound))
    scalars.awaited = min(scalars.awaited, until)


@plain
def _queue_new(state, i):
    """Queue page i, in no place, which was never crawled."""
    page, scalars = state.pages[i], state.scalars
    page.place, page.due = NEW, -_value(state, page, np.inf)
    scalars.n_new = _queue(state, state.new, scalars.n_new, NEW, i)


@plain
def _take_out(state, i):
    """Take page i out of its place."""
    page, scalars = state.pages[i], state.scalars
    if page.place == ACTIVE:
        scalars.n_active -= 1
        moved = state.active[scalars.n_active]
        state.active[page.position] = moved
        state.pages[moved].position = page.position
    page.place = IDLE


@plain
def _insert(state, i, t):
    """Find the place of page i, in no place."""
    if state.pages[i].last == -np.inf:
        _queue_new(state, i)
    else:
        _place(state, i, t, -1.0)


@plain
def _activate_deferred(state, t, floor, best, winner):
    """Activate the deferred pages whose index may reach both `floor` and `best`.

    `best` is the largest index so far and `winner` its page. Returns both, updated
    by the activated pages.
    """
    scalars = state.scalars
    while scalars.n_activated < state.deferred.size:
        i = state.deferred[scalars.n_activated]
        page = state.pages[i]
        if page.place == DEFERRED:
            least, elapsed = max(best, floor), t - scalars.origin
            if scalars.alike:  # no later page has a larger index, or wins a tie
                v = index(page, elapsed)
                loses = v < least or (v == best and i > winner)
            else:
                loses = _bound(page, elapsed) < least * _SAFE
            if loses:
                break
            v = _value(state, page, t)
            _place(state, i, t, v)
            if (v > best or (v == best and i < winner)) and _may(state, page, t):
                best, winner = v, i
        scalars.n_activated += 1
    return best, winner


@plain
def _activate_first(state):
    """Activate the first deferred pages: the thresholds are set by their indices."""
    scalars = state.scalars
    end = min(scalars.n_activated + 2 * _near_target(state), state.deferred.size)
    for i in state.deferred[scalars.n_activated : end]:
        if state.pages[i].place == DEFERRED:
            state.pages[i].place = IDLE
    scalars.n_activated = end


@plain
def _advance(state, t):
    """Move the pages that are due by time t to their places."""
    scalars, far, near = state.scalars, state.far, state.near
    while scalars.n_far > 0 and far[0].key <= t:
        i, counts = far[0].page, _counts(state, far[0], FAR)
        scalars.n_far = pop(far, scalars.n_far)
        if not counts:
            continue
        page = state.pages[i]
        if page.place == HELD:
            _queue_new(state, i)
        else:  # it may have been queued for a lower threshold
            _place(state, i, t, _value(state, page, t))
    while scalars.n_near > 0 and near[0].key <= t:
        i, counts = near[0].page, _counts(state, near[0], NEAR)
        scalars.n_near = pop(near, scalars.n_near)
        if counts:
            _approach(state, i, t)


# --------------------------------------------------------------- the thresholds


@compiled
def _gather(state, near):
    """Take out the active pages, and the near ones if asked; returns them."""
    scalars, heap = state.scalars, state.near
    members = np.empty(scalars.n_active + (scalars.n_near if near else 0), np.int64)
    n = scalars.n_active
    for p in range(n):
        members[p] = state.active[p]
        state.pages[members[p]].place = IDLE
    scalars.n_active = 0
    if near:
        for p in range(scalars.n_near):
            if _counts(state, heap[p], NEAR):
                members[n] = heap[p].page
                state.pages[members[n]].place = IDLE
                n += 1
        scalars.n_near = 0
    return members[:n]


@compiled
def _values(state, members, t):
    """Index of each page that may be crawled at time t, -1 of the others."""
    values = np.empty(members.size)
    for k, i in enumerate(members):
        page = state.pages[i]
        values[k] = _value(state, page, t) if _may(state, page, t) else -1.0
    return values


@compiled
def _kth(values, k):
    """The k-th largest value of pages that may be crawled, at least `_LEAST`."""
    pool, size, least = np.empty(2 * k), 0, -0.5  # not the -1 of `_values`
    for v in values:
        size, least = add_to_pool(pool, size, least, v)
    return max(kth_largest(pool, size), _LEAST)


@plain
def _near_target(state):
    """Wanted number of near pages."""
    n_pages = state.pages.size
    return max(_MIN_NEAR, int(math.sqrt(n_pages)))


@allocating
def _set_high(state, t, lower):
    """Set the high threshold so that about `_TARGET` pages are above it."""
    scalars = state.scalars
    members = _gather(state, lower)
    kth = _kth(_values(state, members, t), _TARGET)
    scalars.high = max(kth, scalars.low if lower else scalars.high)
    for i in members:
        _approach(state, i, t)
    scalars.active_crowd = _CROWDED * max(scalars.n_active, _TARGET)


@compiled
def _set_both(state, members, values, least, t):
    """Set both thresholds by the values of pages in no place, and place these.

    The low threshold is at least `least`.
    """
    scalars, target = state.scalars, _near_target(state)
    scalars.low = max(_kth(values, target), least)
    scalars.high = max(_kth(values, _TARGET), scalars.low)
    for k, i in enumerate(members):
        _place(state, i, t, values[k])
    scalars.active_crowd = _CROWDED * max(scalars.n_active, _TARGET)
    scalars.near_crowd = _CROWDED * max(scalars.n_near, target)


@allocating
def _thin_out(state, t):
    """Raise each threshold that has too many pages above it."""
    scalars = state.scalars
    if scalars.n_near > scalars.near_crowd:
        members = _gather(state, True)
        values = _values(state, members, t)
        _set_both(state, members, values, scalars.low, t)
    if scalars.n_active > scalars.active_crowd:
        _set_high(state, t, False)


@allocating
def _renew(state, t):
    """Set both thresholds by all pages that are not deferred."""
    scalars, pages = state.scalars, state.pages
    members = np.empty(pages.size, np.int64)
    n = 0
    for i in range(pages.size):
        place = pages[i].place
        if place != ABSENT and place != DEFERRED and pages[i].last > -np.inf:
            members[n] = i
            n += 1
    members = members[:n]
    values = _values(state, members, t)
    if n > 0 and values.max() < 0.0:  # no page may be crawled: no index to set by
        return
    held, scalars.n_far = scalars.n_far, 0
    for p in range(held):
        entry = state.far[p]
        if pages[entry.page].place == HELD and _counts(state, entry, FAR):
            scalars.n_far = push(state.far, scalars.n_far, entry.key, entry.page)
    scalars.n_active = scalars.n_near = 0
    _set_both(state, members, values, _LEAST, t)


# ------------------------------------------------------------------------ slots


@plain
def _first_new(state, t):
    """Remove pages from the top of the heap `new` until the first may be crawled."""
    scalars, new = state.scalars, state.new
    while scalars.n_new > 0:
        i, counts = new[0].page, _counts(state, new[0], NEW)
        if counts:
            page = state.pages[i]
            host = state.hosts[page.host]
            if not waits(host, t):
                return
            page.place, page.due = HELD, free_at(host)
        scalars.n_new = pop(new, scalars.n_new)
        if counts:
            _queue_far(state, i)


@inlined
def _upper_bound(page, t):
    """Upper bound at t of the index of an active page."""
    elapsed = t - page.last
    if not (page.slope < np.inf and elapsed < page.most * _SAFE):
        return np.inf
    return page.base + page.slope * _power(page, elapsed)


@plain
def _largest(state, t):
    """Largest index at t of the active pages and those never crawled."""
    scalars, best, winner = state.scalars, -1.0, -1
    if scalars.n_new > 0:
        best, winner = -state.new[0].key, state.new[0].page
    for p in range(scalars.n_active):
        i = state.active[p]
        page = state.pages[i]
        if _upper_bound(page, t) >= best * _SAFE and _may(state, page, t):
            v = _value(state, page, t)
            _line(page, t - page.last, v, page.slope)
            if v > best or (v == best and i < winner):
                best, winner = v, i
    return best, winner


@plain
def _first_that_may(state, t):
    """The first page that may be crawled at time t; -1 if there is none."""
    for i in range(state.pages.size):
        if state.pages[i].place != ABSENT and _may(state, state.pages[i], t):
            return i
    return -1


@plain
def _bring_up(state, t):
    """Move all pages that are not deferred to their places at time t."""
    _advance(state, t)
    _thin_out(state, t)


@plain
def _choose(state, t):
    """Page of largest index at time t; -1 if none may be crawled."""
    scalars = state.scalars
    if t >= scalars.awaited:
        place_crawled(state)
    if scalars.low < 0.0:
        _activate_first(state)
        _renew(state, t)
    if scalars.low > 0.0:
        _bring_up(state, t)
    _first_new(state, t)
    best, winner = _largest(state, t)
    # If no activated page is above the low threshold, deferred pages below it may be
    # activated at the end, after the threshold was lowered.
    best, winner = _activate_deferred(state, t, max(scalars.low, _LEAST), best, winner)
    if best < scalars.high and scalars.high > scalars.low:
        _set_high(state, t, True)
        best, winner = _largest(state, t)
    if best < scalars.low and scalars.low != _LEAST:
        _renew(state, t)
        _bring_up(state, t)
        best, winner = _largest(state, t)
    best, winner = _activate_deferred(state, t, _LEAST, best, winner)
    return winner if best > 0.0 else _first_that_may(state, t)


@inlined
def _crawl(state, i, t):
    """Page i is crawled at time t; it is then in no place."""
    page = state.pages[i]
    _take_out(state, i)
    page.last = t
    spend_token(state.hosts[page.host], t)


@plain
def _learn(page, changed, interval, n_known):
    """Take what the last crawl of a page found into its posterior.

    The interval is the time from the copy that the crawl was compared with, which
    the first crawl did not have, and `n_known` the number of known changes in it
    (see `History.likelihood_terms`).
    """
    if 0.0 < interval < np.inf:
        page.gamma_shape, page.rate = gamma_step(
            changed, interval, page.gamma_shape, page.rate
        )
    page.gamma_shape += n_known
    page.seen = page.last


@plain
def slots(state, times, changes, out):
    """Page of each slot; `out` has the shape of `times` and is written.

    After each crawl the page is learnt from, unless `changes` are `UNTOLD`.
    """
    for j in range(times.size):
        t = times[j]
        i = out[j] = _choose(state, t)
        if i < 0:
            continue
        _crawl(state, i, t)
        if changes.next.size == 0:
            _await_report(state, i, t)
            continue
        page = state.pages[i]
        _learn(page, look(changes, i, j, t), page.last - page.seen, 0.0)
        _place(state, i, t, -1.0)


@njit(inline="always")  # numba cannot return a record that is in a tuple
def _state_at(table):
    """The State that is at `addresses`."""
    return State(
        array_at(table, 0, PAGE),
        array_at(table, 1, HOST),
        array_at(table, 2, np.int64),
        array_at(table, 3, ENTRY),
        array_at(table, 4, ENTRY),
        array_at(table, 5, ENTRY),
        array_at(table, 6, np.int64),
        array_at(table, 7, np.int64),
        array_at(table, 8, SCALARS)[0],
    )


@compiled
def one_slot(table, t):
    """Page of the slot at time t, now crawled; -1 if none may be crawled.

    One slot of `slots`, called from Python, with the `addresses` of the state.
    """
    state = _state_at(table)
    i = _choose(state, t)
    if i >= 0:
        _crawl(state, i, t)
        _await_report(state, i, t)
    return i


@compiled
def report_bit(table, i, changed, t):
    """Learn whether page i had changed; False if there is no such crawl to learn from.

    Arguments are those of `one_slot`.
    """
    state = _state_at(table)
    page = state.pages[i]
    if page.place == ABSENT or not page.last > page.seen:
        return False
    _learn(page, changed, page.last - page.seen, 0.0)
    _take_out(state, i)
    _place(state, i, t, -1.0)
    return True


@plain
def free_from(pages, hosts):
    """The first time at which a page may be crawled; inf if there is no page."""
    first = np.inf
    for i in range(pages.size):
        page = pages[i]
        if page.place != ABSENT:
            first = min(first, max(page.last + page.least, free_at(hosts[page.host])))
    return first


@compiled
def report(state, which, changed, interval, n_known, t):
    """Learn what the last crawls of pages found."""
    for k, i in enumerate(which):
        _learn(state.pages[i], changed[k], interval[k], n_known[k])
        _take_out(state, i)
        _place(state, i, t, -1.0)


@compiled
def change_pages(state, which, present, t):
    """Pages come or go at time t, or have other parameters from then on."""
    for i in which:
        _take_out(state, i)
        if present:
            _insert(state, i, t)
        else:
            state.pages[i].place = ABSENT
