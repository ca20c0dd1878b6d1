r"""Greedy crawling: the page of largest crawl value in every slot, exactly.

The algorithm. The full arg max computes the value of every page in every slot;
here a slot looks at a few pages. A *pruning threshold* lies a little below the
values that win slots. A page whose value is surely below it waits, and only
the pages of the *active set* are compared. For a waiting page an upper bound
of its value gives the time at which the value can first reach the threshold;
the page is then *due*. A *calendar queue* holds the due times of the near
future in buckets, each about as long as a slot; a bucket that a slot has
reached is opened, and its pages become active, or wait on if a sharper bound
says so. The pages of the active set are compared by lower and upper bounds,
which cost a few operations, and only where the bounds of two pages overlap are
their values computed; a value gives new and sharper bounds. If the largest
value found is below the threshold, a waiting page might be larger: the
threshold is lowered, to about the `target`-th largest value of all pages, and
the slot is decided anew. If the active set has grown too large, the threshold
is raised, to about the `target`-th largest of its values. A page that was
never crawled has a value that does not change (that of an infinite time): such
pages are kept in a heap. Signals come one by one, or are known ahead, as in a
simulated world; then a page waits through those that do not make it due, and
they are counted when the page is next examined.

Why the schedule is that of the full arg max. The value of a page only grows
between its crawls, with time and with signals. A waiting page is below the
threshold until it is due, because an upper bound of its value gives the due
time, and each signal brings the due time forward. So the winner of the active
set and of the heap wins among all pages if its value reaches the threshold.
Bounds decide only with a margin, `_SAFE`, for rounding; all else is decided by
`crawl_value.value` itself, which never falls in floating point. Ties go to the
lower index, as in `argmax`.

Why the bounds are bounds. Let v be the value in a state of effective time
iota, and d the effective time from there, or back for d < 0. By Lemma 4 of
[www25]_ dV/diota = slope psi, where slope = importance alpha exp(-alpha iota)
falls and psi, the mean time in which time and signals add up to iota, never
falls and grows no faster than iota: 0 <= psi' <= 1. Integrating these,

    v + d slope psi (1 - alpha d) <= V <= v + d slope (psi + d / 2),

with slope and psi taken at iota. For d < 0 the left side holds where
alpha |d| <= 1: it uses (e^x - 1) / x <= 1 + x for x <= 1. Taylor's formula
gives sharper bounds near the state,

    |V - v - d slope (psi + d (psi' - alpha psi) / 2)| <= |d|^3 slope c / 6,

where c bounds, in absolute value and between the two states, the second
derivative in d of psi(iota + d) exp(-alpha d), which is

    (psi'' - 2 alpha psi' + alpha^2 psi) exp(-alpha d).

It is c = (kink + max(2 alpha, alpha^2 psi + alpha / e)) exp(max(-alpha d, 0)),
because |psi''| <= kink, 0 <= 2 alpha psi' <= 2 alpha and, for d > 0,
alpha^2 (psi + d) exp(-alpha d) <= alpha^2 psi + alpha / e. The kink: psi' is
exp(-gamma iota) up to beta, and from there on it relaxes to its value a time
beta ago, psi''(iota) = gamma (psi'(iota - beta) - psi'(iota)). So psi' stays
in the range that it has up to beta, of length min(gamma beta, 1) at most, and
|psi''| <= gamma min(gamma beta, 1) from beta on; before beta, and where the
sums are cut off (APPROX-j), it is at most gamma. With one term psi'' = -gamma
psi', and psi' falls.

A page remembers two states with their bounds (`EXPANSION`), which hold after
every crawl as long as the parameters of the page do not change: `low`, the
state of highest value seen below the threshold, tells until when the page
waits; `high`, where its value was last computed to compare it with others.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from recrawl.kernels import allocating, array_at, compiled, fields, inlined, plain
from recrawl.kernels.crawl_value import (
    CONSTANTS,
    effective,
    initial_curvature,
    rounded,
    value,
    value_and_slope,
)

# The place of a page. ABSENT: no such page, the place of an empty record. WAITING: due
# beyond the calendar. QUEUED: in the calendar. ACTIVE: in the active set. NEW: in the
# heap of the pages never crawled.
ABSENT, WAITING, QUEUED, ACTIVE, NEW = range(5)


# In a time d from `at` the value is `value` + d `rise` + d^2 x with
# x <= `max_curve` and |x - `curve`| <= |d| `cubic`. In a page, `at` is the
# effective time since its crawl; in the active set, a time on the clock.
EXPANSION = np.dtype(fields("f8", "value at rise max_curve curve cubic"))
PAGE = np.dtype(
    [
        ("constants", CONSTANTS),
        ("low", EXPANSION),
        ("high", EXPANSION),
        # last: time of the last crawl; due: time at which the page may reach
        # the threshold, or the value of a NEW page; beta: effective time of a
        # signal; safe_time: effective time from a crawl until due, at
        # threshold `safe_for`; coming: when the next known signal comes, here
        # because in `State.signals` it is a miss of the cache
        *fields("f8", "last due beta safe_time safe_for coming"),
        # n_signals: counted since the last crawl, all before `next_signal`;
        # position: in the active set or the heap, or the bucket; before,
        # after: neighbours in the bucket; sharp: whether safe_time needs no
        # better bound
        *fields("i4", "n_signals position before after place sharp"),
        # the signals known ahead and not yet counted, in `State.signals`
        *fields("i8", "next_signal stop_signal"),
    ]
)
# A page of the active set: until: when its next known signal comes.
ENTRY = np.dtype([("bounds", EXPANSION), ("until", "f8"), ("page", "i8")])
SCALARS = np.dtype(
    # start, end: of the calendar; width: of its buckets
    fields("f8", "threshold start end width discard_window")
    # bucket: the first that is not open; n_slots: since the calendar began;
    # n_since: slots since the threshold was lowered; pause: slots until it may
    # be raised; runner_up: page of the second largest upper bound; target:
    # size of the active set to aim at; n_values: values computed so far
    + fields("i8", "n_active n_new bucket n_slots n_since target pause")
    + fields("i8", "runner_up n_values")
)


class State(NamedTuple):
    """State of the scheduler; all of it is written in place."""

    pages: np.ndarray  # PAGE, shape (n_pages,)
    active: np.ndarray  # ENTRY, as long as pages; the first n_active count
    heap: np.ndarray  # NEW pages by falling value; the first n_new count
    candidates: np.ndarray  # entries that can win the present slot
    calendar: np.ndarray  # first page of each bucket, -1 for none
    signals: np.ndarray  # times of signals known ahead, page after page
    scalars: np.void  # SCALARS


# The lowest threshold, the smallest positive number: a page of value 0 need
# not be active, for if all values are 0 the first page wins.
_LEAST = 5e-324
_SAFE = 1.0 - 1e-7  # the rounding of a value, 1e-11, and of a bound stay inside
_IDLE = 1e300  # effective time until due for a page that only a signal makes due
# A new calendar takes a pass over all pages, once in as many slots as there
# are buckets: at most 16 pages for each slot.
_MIN_BUCKETS, _PAGES_PER_BUCKET = 256, 16
# A page may become active this many slots too early: to compare it in these
# slots costs less than to compute its value for a sharper due time.
_SLACK = 8.0
# To set the threshold, a lower bound above this share of the upper bound
# stands for the value.
_TIGHT = 0.95
# Slots until the threshold may be raised again: to schedule a page anew costs
# as much as to compare it in this many slots.
_PAUSE = 128
_MIN_TARGET = 8
# The active set may grow to so many times the target before the threshold
# rises.
_CROWDED = 4
# To lower the threshold takes a pass over all pages, and for a page that costs
# some 16 times as much as to compare an active page in a slot. Both costs are
# equal if the threshold falls once in 16 n_pages / target slots. The target
# doubles if it fell after fewer than 4 n_pages / target slots, and is halved
# if it fell after more than 32 n_pages / target.
_OFTEN, _RARELY = 4, 32
_NO_SIGNALS = np.empty(0)


# ------------------------------------------------------------ what callers use


def new_state(
    constants,
    last,
    n_signals,
    present,
    *,
    discard_window=0.0,
    signals=_NO_SIGNALS,
    start=0,
    stop=0,
):
    """`State` of pages last crawled at `last`, -inf for never.

    constants : records of dtype `CONSTANTS`; n_signals : signals since the
    last crawl; present : which pages are there; these and `last` have shape
    (n_pages,). Signals within `discard_window` after a crawl of their page are
    ignored. The times of the signals of page i that are known ahead are
    signals[start[i] : stop[i]].
    """
    n_pages = len(constants)
    pages, scalars = np.zeros(n_pages, PAGE), np.zeros(1, SCALARS)[0]
    pages["constants"], pages["last"], pages["n_signals"] = constants, last, n_signals
    pages["next_signal"], pages["stop_signal"] = start, stop
    scalars["threshold"], scalars["discard_window"] = -1.0, discard_window
    scalars["target"], scalars["runner_up"] = _MIN_TARGET, -1
    state = State(
        pages,
        np.zeros(n_pages, ENTRY),
        np.zeros(n_pages, int),
        np.zeros(n_pages, int),
        np.zeros(max(_MIN_BUCKETS, n_pages // _PAGES_PER_BUCKET), int),
        signals,
        scalars,
    )
    change_pages(state, np.flatnonzero(present), True, 0.0)
    return state


def padded(array, size):
    """An array continued by zeros up to a length."""
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def longer(state, size):
    """The state with room for `size` pages."""
    names = "pages", "active", "heap", "candidates"
    return state._replace(
        **{name: padded(getattr(state, name), size) for name in names}
    )


@plain
def change_pages(state, which, present, t):
    """Pages come or go at time t, or have new constants from then on."""
    for i in which:
        _take_out(state, i)
        if present:
            _insert(state, i, t)
        else:
            state.pages[i].place = ABSENT


@plain
def next_slot(state, t):
    """Page of the slot at time t, now crawled; -1 if there is no page."""
    scalars = state.scalars
    late = t >= scalars.end or scalars.n_slots > 2 * state.calendar.size
    if scalars.threshold < 0.0:  # the very first slot
        _lower_threshold(state, t)
    elif t > scalars.start and late:
        _renew_calendar(state, t)
    else:
        _open_buckets(state, t)
    scalars.n_slots += 1
    scalars.n_since += 1
    scalars.pause -= 1
    # The pause: pages may be alike, so that no threshold makes fewer of them
    # active, and each slot would try again.
    if scalars.n_active > _CROWDED * scalars.target and scalars.pause < 0:
        _raise_threshold(state, t)
    best, winner = _largest(state, t)
    if best < scalars.threshold and scalars.threshold > _LEAST:
        _set_target(state)
        _lower_threshold(state, t)
        best, winner = _largest(state, t)
    if best <= 0.0:
        winner = _first_present(state)
    if winner >= 0:
        _take_out(state, winner)
        _count_signals(state, winner, t)
        state.pages[winner].last, state.pages[winner].n_signals = t, 0
        _schedule(state, winner, t)
    return winner


@njit(inline="always")  # numba cannot return a record that is in a tuple
def _state_at(table):
    """The State that is at `addresses`."""
    return State(
        array_at(table, 0, PAGE),
        array_at(table, 1, ENTRY),
        array_at(table, 2, np.int64),
        array_at(table, 3, np.int64),
        array_at(table, 4, np.int64),
        array_at(table, 5, np.float64),
        array_at(table, 6, SCALARS)[0],
    )


@compiled
def one_slot(table, t):
    """`next_slot`, called from Python with the `addresses` of the state."""
    return next_slot(_state_at(table), t)


@compiled
def one_signal(table, i, t):
    """`next_signal`, likewise."""
    next_signal(_state_at(table), i, t)


@plain
def greedy_slots(state, slots, signal_page, signal_time, out):
    """Page of each slot, each after the signals up to then.

    slots, signal_time : rising times, no signal after the last slot;
    signal_page : page of each signal; out : shape (n_slots,), written in
    place, -1 where there is no page.
    """
    k = 0
    for j in range(slots.size):
        while k < signal_time.size and signal_time[k] <= slots[j]:
            next_signal(state, signal_page[k], signal_time[k])
            k += 1
        out[j] = next_slot(state, slots[j])


# ------------------------------------------ one page: its time and its value


@inlined
def _copy(source, to):
    """Copy an EXPANSION; numba would assign the record byte by byte."""
    to.value, to.at, to.rise = source.value, source.at, source.rise
    to.max_curve, to.curve, to.cubic = source.max_curve, source.curve, source.cubic


@inlined
def _effective_time(page, t):
    """Effective time since the last crawl of a page."""
    counted = page.beta * page.n_signals if page.n_signals > 0 else 0.0
    return t - page.last + counted


@plain
def _value(page, scalars, elapsed):
    """Value of a page for the time since its crawl, counted in n_values."""
    scalars.n_values += 1
    return value(page.constants, elapsed, page.n_signals)


@inlined
def _kink(page, at, creep):
    """Bound of |psi''| from effective time `at` on, where psi' is creep."""
    c, gamma = page.constants, page.constants.ratio * page.constants.alpha
    if c.n_terms == np.inf and page.beta <= at:
        return gamma * min(gamma * page.beta, 1.0)
    if c.n_terms == 1.0 or page.beta == np.inf:
        return gamma * creep
    return gamma


@plain
def _remember(page, scalars, u):
    """Compute the value at u = alpha iota, and remember the state.

    `u` is already rounded by `crawl_value.rounded`. Returns `page.low` or
    `page.high`, which holds the state.
    """
    scalars.n_values += 1
    alpha = page.constants.alpha
    v, g, passed, creep = value_and_slope(page.constants, u)
    known = page.high
    if page.low.value < v < scalars.threshold * _SAFE:
        known, page.safe_for = page.low, -1.0
    known.value, known.at, known.rise = v, u / alpha, g * alpha * passed
    known.max_curve = half = 0.5 * g * alpha * alpha  # slope / 2
    known.curve = half * (creep - passed)
    # alpha psi + 1 / e: see c in the module's docstring
    most = _kink(page, known.at, creep) + alpha * max(2.0, passed + 0.37)
    known.cubic = half * most / 3.0
    return known


@plain
def _forget(page):
    """Set the low state to the one known beforehand: 0 at a crawl."""
    c, low = page.constants, page.low
    low.value = low.at = low.rise = 0.0
    low.max_curve = low.curve = 0.5 * initial_curvature(c) * c.alpha * c.alpha
    low.cubic = low.max_curve * (c.ratio * c.alpha + 2.0 * c.alpha) / 3.0


@plain
def _find_safe_time(page, scalars):
    """Set how long after its crawl a page is surely below the threshold.

    That is an effective time since the crawl, found from the low state. The
    bound is sharp far from that state too, as it keeps the fall of exp(-u):
    psi grows by d at most in a time d, so that the value rises in d by no more
    than the integral of slope exp(-alpha s) (psi + s) over s < d. With
    z = 1 - exp(-alpha d) this is slope / alpha^2 times

        alpha psi z + (z + (1 - z) log(1 - z)) <= alpha psi z + c z^2,

    c = 1 / 2 + z / 6 + z^2 / 3: the series of the bracket is the sum of
    z^k / (k (k - 1)), and from z^4 on its coefficients add up to 1 / 3.
    """
    threshold, alpha = scalars.threshold * _SAFE, page.constants.alpha
    if page.low.value < page.high.value < threshold:
        _copy(page.high, page.low)
    elif not page.low.value < threshold:
        _copy(page.low, page.high)
        _forget(page)
    low, slope = page.low, 2.0 * page.low.max_curve
    page.safe_time, page.safe_for, page.sharp = _IDLE, scalars.threshold, True
    if slope > 0.0:
        y = (threshold - low.value) / slope * alpha * alpha
        passed = alpha * low.rise / slope
        # z is the root of passed z + c z^2 = y. The first c is too small, so
        # the first z is too large; the c of that z holds for all smaller ones.
        z, c = 0.0, 0.5
        for _ in range(2):
            half = 0.5 * (passed + math.sqrt(passed * passed + 4.0 * c * y))
            z = min(y / half, 1.0) if half > 0.0 else 0.0
            c = 0.5 + z * (1.0 / 6.0 + z / 3.0)
        d = -math.log1p(-z) / alpha
        page.safe_time = low.at + d
        # The difference of the upper and the lower bound, divided by the rise
        # of the value, is a time: it is compared with some slots.
        page.sharp = alpha * d * d * (0.5 + 0.5 * passed) <= (
            _SLACK * scalars.width * passed
        )


@inlined
def _earlier(page, due, n):
    """When a page is due after n more signals, with a margin for rounding."""
    if n > 0 and page.beta > 0.0:
        due = due - n * page.beta * (1.0 + 1e-9) - abs(due) * 1e-15
    return due


# ------------------------------------------------------- signals known ahead


@inlined
def _set_coming(state, page):
    """Note when the next known signal of a page comes."""
    more = page.next_signal < page.stop_signal
    page.coming = state.signals[page.next_signal] if more else np.inf


@inlined
def _count_signals(state, i, t):
    """Count the signals of page i up to time t; returns how many are new."""
    page, before = state.pages[i], state.pages[i].n_signals
    while page.coming <= t:
        page.n_signals += page.coming - page.last >= state.scalars.discard_window
        page.next_signal += 1
        _set_coming(state, page)
    return page.n_signals - before


@inlined
def _due_with_signals(state, i, due):
    """When page i is due with the signals known ahead; `due` without them."""
    page, signals = state.pages[i], state.signals
    # no signal makes it due from inf
    if page.beta > 0.0 and page.coming < due < np.inf:
        k = page.next_signal
        while k < page.stop_signal and signals[k] < due:
            if signals[k] - page.last >= state.scalars.discard_window:
                due = max(_earlier(page, due, 1), signals[k])
            k += 1
    return due


@inlined
def next_signal(state, i, t):
    """Count a signal of page i at time t; it may be due now."""
    page, scalars = state.pages[i], state.scalars
    if t - page.last < scalars.discard_window:
        return
    page.n_signals += 1
    if page.place == ACTIVE:
        _add_signals(state, state.active[page.position], 1, t)
    elif page.place != NEW and page.beta > 0.0 and page.due < np.inf:
        page.due = _earlier(page, page.due, 1)
        if page.due < scalars.end:
            _take_out(state, i)
            _queue_or_review(state, i, t)


# ----------------------------------------------------- bounds of active pages


@inlined
def _expand(page, entry, t, known):
    """Take the bounds of an active page from a known state.

    At time t the page is at most 1 / alpha of effective time from it. `at` is
    the time on the clock at which the page was, or will be, in that state; it
    is set a rounding error too early, which `_lower_bound` makes up for.
    """
    c, now = page.constants, _effective_time(page, t)
    bounds = entry.bounds
    _copy(known, bounds)
    bounds.at = t - (now - known.at) - abs(t) * 1e-15
    if now < known.at:
        # exp(x) <= 1 + 1.72 x up to x = 1
        bounds.cubic *= 1.0 + 1.72 * c.alpha * (known.at - now)
        if now < page.beta or c.n_terms < np.inf:  # the kink is gamma there
            bounds.cubic += bounds.max_curve * c.ratio * c.alpha / 3.0


@plain
def _evaluate(state, entry, t):
    """Value of an active page at t, from which its bounds begin anew."""
    page, bounds = state.pages[entry.page], entry.bounds
    c, elapsed = page.constants, t - page.last
    if c.alpha > 0.0 and _effective_time(page, t) < np.inf:
        u = rounded(effective(c, elapsed, page.n_signals))
        _copy(_remember(page, state.scalars, u), bounds)
    else:
        bounds.value = _value(page, state.scalars, elapsed)
        bounds.rise = bounds.max_curve = bounds.curve = bounds.cubic = 0.0
    bounds.at = t
    return bounds.value


@inlined
def _expand_high(state, entry, t):
    """Begin the bounds at the high state and return True, if it is nearer."""
    page = state.pages[entry.page]
    back = abs(_effective_time(page, t) - page.high.at)
    if back < 0.5 * abs(t - entry.bounds.at) and page.constants.alpha * back < 1.0:
        _expand(page, entry, t, page.high)
        return True
    return False


@inlined
def _upper_bound(entry, t):
    """Upper bound of the value of an active page at t."""
    b, d = entry.bounds, t - entry.bounds.at
    return b.value + d * (b.rise + d * min(b.max_curve, b.curve + abs(d) * b.cubic))


@inlined
def _lower_bound(state, entry, t):
    """Lower bound of the value of an active page at t."""
    b, d = entry.bounds, t - entry.bounds.at
    d = min(d, max(d - abs(t) * 2e-15, 0.0))  # `at` may be too early: see `_expand`
    floor = -b.rise * state.pages[entry.page].constants.alpha
    least = b.value + d * (b.rise + d * max(b.curve - abs(d) * b.cubic, floor))
    return max(least, b.value if d > 0.0 else 0.0) * _SAFE


@inlined
def _add_signals(state, entry, n, t):
    """Move the bounds of an active page that has n more signals."""
    beta = state.pages[entry.page].beta
    if n > 0 and beta > 0.0:
        if beta < np.inf:
            entry.bounds.at -= n * beta
        else:
            _evaluate(state, entry, t)


# ------------------------------------------------------------ places of a page


@inlined
def _enter_calendar(state, i):
    """Queue page i, in no place, or let it wait; False if it is due by now."""
    page, scalars, calendar = state.pages[i], state.scalars, state.calendar
    page.place = WAITING
    if not page.due > scalars.start:
        return False
    if page.due < scalars.end:
        place = int((page.due - scalars.start) / scalars.width)
        bucket = min(place, calendar.size - 1)
        if bucket < scalars.bucket:
            return False
        page.place, page.position = QUEUED, bucket
        page.before, page.after = -1, calendar[bucket]
        if page.after >= 0:
            state.pages[page.after].before = i
        calendar[bucket] = i
    return True


@inlined
def _activate(state, i, t):
    """Page i, in no place, joins the active set."""
    page, scalars = state.pages[i], state.scalars
    entry = state.active[scalars.n_active]
    page.place, page.position, entry.page = ACTIVE, scalars.n_active, i
    scalars.n_active += 1
    entry.until = page.coming
    alpha, back = page.constants.alpha, _effective_time(page, t) - page.low.at
    if alpha == 0.0 or back == np.inf:
        _evaluate(state, entry, t)
    else:
        if alpha * back < -1.0:  # too far back for the lower bound: long buckets
            _forget(page)
            page.safe_for = -1.0
        _expand(page, entry, t, page.low)


@inlined
def _schedule(state, i, t):
    """Find when page i, in no place, is due and queue it, or activate it."""
    page, scalars = state.pages[i], state.scalars
    threshold = scalars.threshold * _SAFE
    if page.constants.limit < threshold:
        page.due = np.inf
    elif page.constants.alpha == 0.0:  # time alone does not change its value
        if _value(page, scalars, t - page.last) >= threshold:
            page.due = t
        else:
            page.due = _due_with_signals(state, i, _IDLE)
    else:
        if page.safe_for != scalars.threshold:
            _find_safe_time(page, scalars)
        due = _earlier(page, page.last + page.safe_time, page.n_signals)
        page.due = _due_with_signals(state, i, due)
    if not _enter_calendar(state, i):
        _activate(state, i, t)


@inlined
def _review(state, i, t):
    """Schedule page i, which may have reached the threshold.

    Where that is not known sharply enough, the value at its safe time gives a
    sharper bound. One such step only: the threshold may soon be another.
    """
    _count_signals(state, i, t)
    page, scalars = state.pages[i], state.scalars
    late = page.safe_time + _SLACK * scalars.width
    if (
        page.safe_for == scalars.threshold
        and not page.sharp
        and page.safe_time <= _effective_time(page, t) <= late
    ):
        _remember(page, scalars, rounded(page.safe_time * page.constants.alpha))
    _schedule(state, i, t)


@inlined
def _queue_or_review(state, i, t):
    """Queue page i, in no place, if it is not due yet; otherwise review it."""
    if state.pages[i].due <= t or not _enter_calendar(state, i):
        _review(state, i, t)


@inlined
def _take_out(state, i):
    """Take page i out of the place in which it is."""
    pages, scalars = state.pages, state.scalars
    page = pages[i]
    if page.place == ACTIVE:
        scalars.n_active -= 1
        entry, last = state.active[page.position], state.active[scalars.n_active]
        _copy(last.bounds, entry.bounds)
        entry.until, entry.page = last.until, last.page
        pages[entry.page].position = page.position
    elif page.place == QUEUED:
        if page.before >= 0:
            pages[page.before].after = page.after
        else:
            state.calendar[page.position] = page.after
        if page.after >= 0:
            pages[page.after].before = page.before
    elif page.place == NEW:
        scalars.n_new -= 1
        moved = state.heap[scalars.n_new]
        if moved != i:
            pages[moved].position = page.position
            _sift(state, moved)
    page.place = WAITING


@inlined
def _precedes(pages, i, j):
    """Whether NEW page i comes before j: by value, then by index."""
    return pages[i].due > pages[j].due or (pages[i].due == pages[j].due and i < j)


@plain
def _sift(state, i):
    """Move NEW page i in the heap to where its value belongs."""
    pages, heap, n = state.pages, state.heap, state.scalars.n_new
    p = pages[i].position
    while p > 0 and _precedes(pages, i, heap[(p - 1) // 2]):
        heap[p] = heap[(p - 1) // 2]
        pages[heap[p]].position = p
        p = (p - 1) // 2
    while True:
        q = 2 * p + 1
        if q + 1 < n and _precedes(pages, heap[q + 1], heap[q]):
            q += 1
        if q >= n or not _precedes(pages, heap[q], i):
            break
        heap[p] = heap[q]
        pages[heap[p]].position = p
        p = q
    heap[p], pages[i].position = i, p


@plain
def _insert(state, i, t):
    """Find the place at time t of page i, of which no state is known."""
    page, scalars = state.pages[i], state.scalars
    c = page.constants
    _set_coming(state, page)
    _count_signals(state, i, t)
    page.beta = c.b / c.alpha if c.b > 0.0 else 0.0
    page.high.value, page.high.at, page.safe_for = 0.0, np.inf, -1.0
    _forget(page)
    if page.last == -np.inf and c.alpha > 0.0:
        page.place, page.position = NEW, scalars.n_new
        page.due = _value(page, scalars, np.inf)
        scalars.n_new += 1
        _sift(state, i)
    elif scalars.threshold > 0.0:
        _schedule(state, i, t)
    else:
        page.place = WAITING


# ---------------------------------------------------------------- the calendar


@plain
def _begin_calendar(state, t):
    """Begin an empty calendar at t, with buckets of the recent mean slot."""
    scalars = state.scalars
    if scalars.threshold > 0.0:
        mean = (t - scalars.start) / max(scalars.n_slots, 1)
        # After a pause between slots the mean is too long: at most 4 times.
        scalars.width = min(mean, 4.0 * scalars.width) if scalars.width > 0.0 else mean
    scalars.start, scalars.end = t, t + scalars.width * state.calendar.size
    scalars.n_slots, scalars.bucket = 0, 1
    state.calendar[:] = -1


@plain
def _renew_calendar(state, t):
    """Begin a calendar at t and queue the pages that are due in it."""
    _begin_calendar(state, t)
    for i in range(state.pages.size):
        page = state.pages[i]
        if page.place == WAITING or page.place == QUEUED:
            page.place = WAITING
            _queue_or_review(state, i, t)


@inlined
def _open_buckets(state, t):
    """Review the pages in all buckets that begin by time t."""
    scalars, calendar = state.scalars, state.calendar
    stop = min(int((t - scalars.start) / scalars.width) + 1, calendar.size)
    while scalars.bucket < stop:
        i = calendar[scalars.bucket]
        scalars.bucket += 1
        while i >= 0:
            after = np.int64(state.pages[i].after)
            _review(state, i, t)
            i = after


# --------------------------------------------------------------- the threshold


@compiled
def add_to_pool(pool, size, least, v):
    """Add v to the `size` values of a pool if it is above `least`.

    When the pool is full, its larger half stays. Returns the new size and
    least value.
    """
    if v > least:
        pool[size] = v
        size += 1
        if size == pool.size:
            pool.sort()
            size //= 2
            for k in range(size):  # to assign a slice takes seconds to compile
                pool[k] = pool[size + k]
            least = pool[0]
    return size, least


@compiled
def kth_largest(pool, size):
    """The k-th largest value of a pool of length 2 k; of fewer, the least."""
    pool[:size].sort()
    return pool[max(size - pool.size // 2, 0)] if size > 0 else 0.0


@inlined
def _rough_value(state, entry, most, t):
    """Lower bound of a value if it is near its upper bound, or the value."""
    least = _lower_bound(state, entry, t)
    return least if most * _TIGHT < least else _evaluate(state, entry, t)


@allocating
def _lower_threshold(state, t):
    """Set the threshold to about the target-th largest value of all pages.

    All pages but the NEW are scheduled by it.
    """
    _begin_calendar(state, t)
    # The active set is emptied here, so that its first entry is free for use.
    pages, scalars, entry = state.pages, state.scalars, state.active[0]
    pool = np.empty(2 * scalars.target)
    size, least, scalars.n_active = 0, -np.inf, 0
    for i in range(pages.size):
        page = pages[i]
        if page.place == ABSENT or page.place == NEW:
            continue
        page.place = WAITING
        entry.page, most, alpha = i, page.constants.limit, page.constants.alpha
        if most <= least:  # its signals need not be counted either
            continue
        _count_signals(state, i, t)
        back = abs(_effective_time(page, t) - page.low.at)
        bounded = alpha > 0.0 and alpha * back < 1.0
        if bounded:
            _expand(page, entry, t, page.low)
            most = min(_upper_bound(entry, t), most)
        if most > least:
            if bounded:
                v = _rough_value(state, entry, most, t)
            else:
                v = _evaluate(state, entry, t)
            size, least = add_to_pool(pool, size, least, v)
    scalars.threshold = max(kth_largest(pool, size), _LEAST)
    for i in range(pages.size):
        if pages[i].place == WAITING:
            _schedule(state, i, t)
    scalars.pause = _PAUSE


@allocating
def _raise_threshold(state, t):
    """Raise the threshold to about the target-th largest active value."""
    scalars = state.scalars
    pool = np.empty(2 * scalars.target)
    size, least = 0, -np.inf
    for p in range(scalars.n_active):
        entry = state.active[p]
        v = _rough_value(state, entry, _upper_bound(entry, t), t)
        size, least = add_to_pool(pool, size, least, v)
    scalars.threshold = max(kth_largest(pool, size), scalars.threshold)
    for p in range(scalars.n_active - 1, -1, -1):
        i = state.active[p].page
        _take_out(state, i)
        _schedule(state, i, t)
    scalars.pause = _PAUSE


@plain
def _set_target(state):
    """Balance the cost of lowering the threshold and of a large active set."""
    scalars, n_pages = state.scalars, state.pages.size
    if scalars.n_since * scalars.target < _OFTEN * n_pages:
        scalars.target = min(2 * scalars.target, n_pages)
    elif scalars.n_since * scalars.target > _RARELY * n_pages:
        scalars.target = max(scalars.target // 2, _MIN_TARGET)
    scalars.n_since = 0


# ------------------------------------------------------- the winner of a slot


@inlined
def _better(state, p, t, best, leader):
    """The larger of `best` and the lower bound of entry p, and its entry."""
    least = _lower_bound(state, state.active[p], t)
    return (least, p) if least > best else (best, leader)


@inlined
def _collect(state, t):
    """Collect entries whose upper bound reaches the largest lower bound.

    Returns their number, the largest lower bound, and the entry that has it:
    -1 if it is the value of the first NEW page, or if there is no page.
    """
    pages, scalars = state.pages, state.scalars
    best, leader, n = -1.0, -1, 0
    if scalars.n_new > 0:
        best = pages[state.heap[0]].due
    # The runner-up of the last slot first: few entries reach its bound.
    runner_up = scalars.runner_up
    if runner_up >= 0 and pages[runner_up].place == ACTIVE:
        p = np.int64(pages[runner_up].position)
        best, leader = _better(state, p, t, best, leader)
    for p in range(scalars.n_active):
        entry = state.active[p]
        if entry.until <= t:
            _add_signals(state, entry, _count_signals(state, entry.page, t), t)
            entry.until = state.pages[entry.page].coming
        if _upper_bound(entry, t) >= best * _SAFE:
            state.candidates[n] = p
            n += 1
            best, leader = _better(state, p, t, best, leader)
    return n, best, leader


@inlined
def _sharpen(state, n, t, best, leader):
    """Sharpen the bounds of candidates by their high states, if nearer."""
    for p in state.candidates[:n]:
        entry = state.active[p]
        if (
            entry.bounds.max_curve > 0.0
            and _upper_bound(entry, t) >= best * _SAFE
            and _expand_high(state, entry, t)
        ):
            best, leader = _better(state, p, t, best, leader)
    return best, leader


@inlined
def _decide(state, n, t, best, leader):
    """Largest value and its page: values are computed where bounds overlap.

    The leader is compared by its lower bound, and by its value only if another
    page comes as near, or the threshold does.
    """
    scalars, favourite = state.scalars, -1
    winner = state.heap[0] if scalars.n_new > 0 else -1
    if leader >= 0:
        winner = favourite = state.active[leader].page
    for p in state.candidates[:n]:
        entry = state.active[p]
        v = _upper_bound(entry, t)
        if p == leader or v < best * _SAFE:
            continue
        if entry.bounds.at != t and entry.bounds.max_curve > 0.0:
            v = _evaluate(state, entry, t)
        ahead = winner == favourite or entry.page < winner
        if v > best or (v == best and ahead):
            best, winner = v, entry.page
    if leader >= 0:
        entry = state.active[leader]
        if winner == favourite:
            near = best < scalars.threshold
        else:
            near = _upper_bound(entry, t) >= best * _SAFE
        if near:
            v = _evaluate(state, entry, t)
            if v > best or (v == best and favourite < winner):
                best, winner = v, favourite
    return best, winner


@inlined
def _largest(state, t):
    """Largest value at t of the active set and the NEW pages, and its page.

    The page is -1 if there is none. Where the largest value is not below the
    threshold, a lower bound of it that is not below the threshold either may
    be returned in its place.
    """
    n, best, leader = _collect(state, t)
    if n > 1:
        best, leader = _sharpen(state, n, t, best, leader)
    best, winner = _decide(state, n, t, best, leader)
    most, state.scalars.runner_up = 0.0, -1
    for p in state.candidates[:n]:
        entry = state.active[p]
        v = _upper_bound(entry, t)
        if v > most and entry.page != winner:
            most, state.scalars.runner_up = v, entry.page
    return best, winner


@plain
def _first_present(state):
    """The first page that is there; -1 if there is none."""
    for i in range(state.pages.size):
        if state.pages[i].place != ABSENT:
            return i
    return -1
