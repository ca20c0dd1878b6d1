"""Greedy crawling slot by slot: the page of largest crawl value, found without looking at the others. The kernels check nothing.

A page sleeps until its value can first reach a level below the values that win, and only pages awake are compared. Every page is ABSENT,
ASLEEP until `due`, QUEUED in the calendar's bucket that holds `due`, AWAKE, or NEW: never crawled, in a heap, for its value stands still.

Few values are computed, for each bounds those around it. The value grows at the rate slope psi, where slope falls as exp(-u) and psi, the
mean time that time and signals take to add up to u / alpha, never falls and grows no faster than time. So from a state of value v, and
in the effective time d from there on (or back, if d < 0),

    v + d psi slope (1 - alpha |d|) <= V <= v + d slope (psi + d / 2)
    |V - v - d slope (psi + d (psi' - alpha psi) / 2)| <= |d|^3 slope c / 6

with c = (kink + max(2 alpha, alpha^2 psi + alpha / e)) exp(max(-alpha d, 0)), the most that V'' / slope changes in a unit of d. Here psi'
starts as exp(-gamma iota), and from beta on is drawn to what it was a time beta ago: psi'' = gamma (psi'(iota - beta) - psi'(iota)). So it
stays in the range that it has up to beta, and |psi''| <= kink = gamma min(gamma beta, 1); but gamma before beta, and where terms are left
out. With one term it is gamma psi', and falls.

A page remembers two such states, and as its parameters stand still they hold in every cycle of crawls: `low`, the highest seen below the
level, tells until when it sleeps, and `high`, where it was last among the best, how it then compares. Where the bounds of two pages
overlap their values are computed, so that what is compared is `value` itself. A value only grows between crawls, which keeps this
exact: a page asleep or queued is below the level; a slot whose winner would be below the level is decided anew after the level has been
lowered. Bounds leave a margin for rounding.

Signals come one by one, or are known ahead, as in a simulated world: then a page sleeps through those that will not bring it to the
level, and they are counted only when it is looked at.

State is three arrays of records (plain arrays of their own would cost a reference count at every use): `pages`, where record k also
holds the k-th page of the heap and the k-th near the best; a `desk` of 64 bytes for the k-th page awake and the k-th bucket; and `me`, what
there is once; and `signals`, the times of the signals known ahead, page after page."""

import math

import numpy as np
from numba import njit

from paperlib._kernels.crawl_value import (
    N_CONSTANTS,
    effective,
    rounded,
    value,
    value_and_rise,
)

ABSENT, ASLEEP, QUEUED, AWAKE, NEW = range(5)
# `due` of a NEW page is its value; `at` is the bucket, or the position among those awake or in the heap, `before` and `after` are the
# neighbours in the bucket; `beta` is the time that a signal is worth; `rest` is the effective time from a crawl until due, if the level
# is `rest_for`, and `settled` whether it is known well enough; `n` signals are counted, all before `next`
PAGE = np.dtype(
    [("row", "f8", (N_CONSTANTS,))]
    + [(name, "f8") for name in ("last", "due", "beta", "rest", "rest_for")]
    + [
        (which + name, "f8")
        for which in ("low", "high")
        for name in ("", "_at", "_rise", "_half", "_bend", "_cube")
    ]
    + [
        (name, "i4")
        for name in ("n", "at", "before", "after", "place", "settled", "heap", "near")
    ]
    + [(name, "i8") for name in ("next", "stop")]
)
# d after `seen_at`, and until the next signal, the value is seen + d rise + d^2 x, where x is at most `half` and `bend` up to |d| cube
DESK = np.dtype(
    [
        (name, "f8")
        for name in ("seen_at", "seen", "rise", "half", "bend", "cube", "until")
    ]
    + [(name, "i4") for name in ("awake", "head")]
)
SELF = np.dtype(
    [(name, "f8") for name in ("level", "start", "end", "width", "discard")]
    + [
        (name, "i8")
        for name in (
            "n_buckets",
            "n_awake",
            "n_new",
            "bucket",
            "slot",
            "since",
            "keep",
            "pause",
            "second",
            "n_values",
        )
    ]
)
_LEAST = 5e-324  # the lowest level: no page of value 0 need be awake, for if all are 0 the first page wins
_SAFE = 1.0 - 1e-7  # rounding of a value stays well inside
_SLACK = 8.0  # slots for which a page may be awake in vain: they cost less than a value
_IDLE = 1e300  # due when a signal comes
_TIGHT = 0.95  # of the upper bound: above it the lower one will do to set the level
_PAUSE = 128  # slots until the level may be raised again: to file a page anew costs as much as to compare it so often
_NONE = np.empty(0)
# these neither make arrays nor keep them: not to count references to them saves up to a third of the time of a slot
_plain = njit(cache=True, error_model="numpy", _nrt=False)
_inline = njit(
    cache=True, error_model="numpy", _nrt=False, forceinline=True
)  # a call with its arrays costs as much as these do


@njit(cache=True, error_model="numpy")
def full_argmax_slots(pages, slots, signal_page, signal_time, discard, out):
    """What `greedy_slots` must give: every slot looks at every page."""
    k = 0
    for j in range(slots.size):
        while k < signal_time.size and signal_time[k] <= slots[j]:
            page = pages[signal_page[k]]
            if signal_time[k] - page.last >= discard:
                page.n += 1
            k += 1
        best, winner = -1.0, -1
        for i in range(pages.size):
            if pages[i].place != ABSENT:
                v = value(pages[i].row, slots[j] - pages[i].last, pages[i].n)
                if v > best:
                    best, winner = v, i
        out[j] = winner
        if winner >= 0:
            pages[winner].last, pages[winner].n = slots[j], 0


def make(rows, last, n, present, discard=0.0, signals=_NONE, start=0, stop=0):
    """pages, desk, me and signals, for pages with these constants, last crawled at `last` (-inf: never), with n signals since.

    Signals within `discard` after a crawl of their page are ignored. Those of page i known ahead are signals[start[i] : stop[i]].
    """
    pages, me = np.zeros(len(rows), PAGE), np.zeros(1, SELF)
    pages["row"], pages["last"], pages["n"], pages["place"] = (
        rows,
        last,
        n,
        np.where(present, ASLEEP, ABSENT),
    )
    pages["next"], pages["stop"] = start, stop
    me["n_buckets"], me["discard"] = max(256, len(rows) // 16), discard
    state = pages, np.zeros(max(len(rows), 256), DESK), me, signals
    _settle(*state)
    return state


@_plain
def _settle(pages, desk, mes, signals):
    me = mes[0]
    me.level, me.keep, me.second = -1.0, 8, -1
    for i in range(pages.size):
        if pages[i].place != ABSENT:
            _put(pages, desk, me, signals, i, 0.0)


@_plain
def _value(page, me, elapsed, n):
    me.n_values += 1
    return value(page.row, elapsed, n)


@_inline
def _hear(pages, me, signals, i, t):
    """Count the signals of page i up to time t; returns how many are new."""
    page = pages[i]
    n = page.n
    while page.next < page.stop and signals[page.next] <= t:
        page.n += signals[page.next] - page.last >= me.discard
        page.next += 1
    return page.n - n


@_inline
def _sooner(page, due, n):
    """When a page is due after n more signals."""
    return (
        due - n * page.beta * (1.0 + 1e-9) - abs(due) * 1e-15
        if n > 0 and page.beta > 0.0
        else due
    )


@_inline
def _foresee(pages, me, signals, i, due):
    """When page i, due then without signals, is due with those to come."""
    page = pages[i]
    if page.beta > 0.0 and due < np.inf:  # from inf no signal brings it back
        k = page.next
        while k < page.stop and signals[k] < due:
            if signals[k] - page.last >= me.discard:
                due = max(_sooner(page, due, 1), signals[k])
            k += 1
    return due


@_inline
def _elapsed(page, t):
    """Effective time since the crawl."""
    return (
        t - page.last + (page.beta * page.n if page.n > 0 and page.beta > 0.0 else 0.0)
    )


@_plain
def _learn(page, me, u):
    """The page remembers the state at u = alpha iota, rounded; returns its value, iota, and what `DESK` needs of it."""
    me.n_values += 1
    alpha, gamma, at = page.row[1], page.row[3] * page.row[1], u / page.row[1]
    v, g, rho, creep = value_and_rise(page.row, u)
    kink = gamma
    if page.row[8] == np.inf and page.beta <= at:
        kink *= min(gamma * page.beta, 1.0)
    elif page.row[8] == 1.0 or page.beta == np.inf:
        kink *= creep
    half = 0.5 * g * alpha * alpha
    state = (
        v,
        at,
        g * alpha * rho,
        half,
        half * (creep - rho),
        half * (kink + alpha * max(2.0, rho + 0.37)) / 3.0,
    )
    if page.low < v < me.level * _SAFE:
        (
            page.low,
            page.low_at,
            page.low_rise,
            page.low_half,
            page.low_bend,
            page.low_cube,
        ) = state
        page.rest_for = -1.0
    else:
        (
            page.high,
            page.high_at,
            page.high_rise,
            page.high_half,
            page.high_bend,
            page.high_cube,
        ) = state
    return state


@_inline
def _low(page):
    return (
        page.low,
        page.low_at,
        page.low_rise,
        page.low_half,
        page.low_bend,
        page.low_cube,
    )


@_inline
def _high(page):
    return (
        page.high,
        page.high_at,
        page.high_rise,
        page.high_half,
        page.high_bend,
        page.high_cube,
    )


@_plain
def _rest(page, me):
    """See how long after its crawl, in effective time, the page stays below the level: by the upper bound from its low state.

    Far from there it is sharper to know that exp(-u) falls: the rise in a time d is at most slope (rho z + z^2 c) / alpha^2 with
    z = 1 - exp(-alpha d), rho = alpha psi and c from 1 / 2 (short times) to 1.
    """
    level, alpha = me.level * _SAFE, page.row[1]
    if page.low < page.high < level:
        (
            page.low,
            page.low_at,
            page.low_rise,
            page.low_half,
            page.low_bend,
            page.low_cube,
        ) = _high(page)
    elif not page.low < level:
        (
            page.high,
            page.high_at,
            page.high_rise,
            page.high_half,
            page.high_bend,
            page.high_cube,
        ) = _low(page)
        _forget(page)
    page.rest, page.rest_for, page.settled = _IDLE, me.level, True
    if page.low_half > 0.0:
        y, rho = (
            (level - page.low) / (2.0 * page.low_half) * alpha * alpha,
            alpha * page.low_rise / (2.0 * page.low_half),
        )
        z, c = 0.0, 0.5
        for _ in range(
            2
        ):  # too late by the first c; the second is right for all z up to that
            half = 0.5 * (rho + math.sqrt(rho * rho + 4.0 * c * y))
            z = min(y / half, 1.0) if half > 0.0 else 0.0
            c = 0.5 + z * (1.0 / 6.0 + z / 3.0)
        d = -math.log1p(-z) / alpha
        page.rest = page.low_at + d
        page.settled = alpha * d * d * (0.5 + 0.5 * rho) <= _SLACK * me.width * rho


@_plain
def _forget(page):
    """Of a page nothing is known but that it is worth nothing when it has just been crawled."""
    alpha, r = page.row[1], page.row[3]
    page.low = page.low_at = page.low_rise = 0.0
    page.low_half = page.low_bend = (
        0.5 * (page.row[9] * r if r > 0.0 else page.row[0]) * alpha * alpha
    )
    page.low_cube = page.low_half * (r * alpha + 2.0 * alpha) / 3.0


@_inline
def _sleep(pages, desk, me, signals, i, t):
    """Put page i away until it is due, which may be now."""
    page, level = pages[i], me.level * _SAFE
    if page.row[0] < level:
        page.due = np.inf
    elif page.row[1] == 0.0:
        page.due = (
            t
            if _value(page, me, t - page.last, page.n) >= level
            else _foresee(pages, me, signals, i, _IDLE)
        )
    else:
        if page.rest_for != me.level:
            _rest(page, me)
        page.due = _foresee(
            pages, me, signals, i, _sooner(page, page.last + page.rest, page.n)
        )
    if not _file(pages, desk, me, i):
        _rouse(pages, desk, me, signals, i, t)


@_inline
def _wake(pages, desk, me, signals, i, t):
    """Page i may have reached the level. If that is not known well enough, learn more, one step: the level may soon be another."""
    _hear(pages, me, signals, i, t)
    page = pages[i]
    if (
        page.rest_for == me.level
        and not page.settled
        and page.rest <= _elapsed(page, t) <= page.rest + _SLACK * me.width
    ):
        _learn(page, me, rounded(page.rest * page.row[1]))
    _sleep(pages, desk, me, signals, i, t)


@_inline
def _rouse(pages, desk, me, signals, i, t):
    """Page i joins those awake."""
    page, look = pages[i], desk[me.n_awake]
    page.place, page.at = AWAKE, me.n_awake
    look.awake = i
    look.until = signals[page.next] if page.next < page.stop else np.inf
    me.n_awake += 1
    back = _elapsed(page, t) - page.low_at
    if page.row[1] == 0.0 or back == np.inf:
        _look(pages, desk, me, np.int64(page.at), t)
    else:
        if (
            page.row[1] * back < -1.0
        ):  # a calendar of long days: too far back for the lower bound
            _forget(page)
            page.rest_for, back = -1.0, _elapsed(page, t)
        _begin(page, look, t, _low(page))


@_inline
def _begin(page, look, t, state):
    """Bound the value from that in a state, in effective time at most 1 / alpha from now on; at t itself it has to be looked at."""
    v, at, look.rise, look.half, look.bend, look.cube = state
    now = _elapsed(page, t)
    look.seen_at, look.seen = t - (now - at) - abs(t) * 1e-15, v
    if now < at:
        look.cube *= 1.0 + 1.72 * page.row[1] * (
            at - now
        )  # exp(x) is at most that up to x = 1
        if now < page.beta or page.row[8] < np.inf:
            look.cube += look.half * page.row[3] * page.row[1] / 3.0


@_plain
def _look(pages, desk, me, p, t):
    """Value at t of the p-th page awake, and the bounds that start from it."""
    look = desk[p]
    page = pages[look.awake]
    if page.row[1] > 0.0 and _elapsed(page, t) < np.inf:
        v, _, look.rise, look.half, look.bend, look.cube = _learn(
            page, me, rounded(effective(page.row, t - page.last, page.n))
        )
    else:
        v = _value(page, me, t - page.last, page.n)
        look.rise = look.half = look.bend = look.cube = 0.0
    look.seen_at, look.seen = t, v
    return v


@_inline
def _recall(pages, desk, p, t):
    """Begin the bounds of the p-th page awake at its high state, if that is much nearer; whether it is."""
    look = desk[p]
    page = pages[look.awake]
    back = _elapsed(page, t) - page.high_at
    if abs(back) < 0.5 * abs(t - look.seen_at) and page.row[1] * abs(back) < 1.0:
        _begin(page, look, t, _high(page))
        return True
    return False


@_inline
def _most(look, t):
    """What the value of this page awake is at most at t."""
    d = t - look.seen_at
    return look.seen + d * (
        look.rise + d * min(look.half, look.bend + abs(d) * look.cube)
    )


@_inline
def _least(pages, look, t):
    """What it is at least."""
    d = t - look.seen_at
    d = min(d, max(d - abs(t) * 2e-15, 0.0))
    least = look.seen + d * (
        look.rise
        + d * max(look.bend - abs(d) * look.cube, -look.rise * pages[look.awake].row[1])
    )
    return max(least, look.seen if d > 0.0 else 0.0) * _SAFE


@_inline
def _shift(pages, desk, me, p, n, t):
    """The p-th page awake has n more signals."""
    beta = pages[desk[p].awake].beta
    if n > 0 and beta > 0.0:
        if beta < np.inf:
            desk[p].seen_at -= n * beta
        else:
            _look(pages, desk, me, p, t)


@_inline
def _file(pages, desk, me, i):
    """File page i, in no place, in the calendar, or beyond it; false if it is due by now."""
    page = pages[i]
    page.place = ASLEEP
    if not page.due > me.start:
        return False
    if page.due < me.end:
        bucket = min(int((page.due - me.start) / me.width), me.n_buckets - 1)
        if bucket < me.bucket:
            return False
        page.place, page.at, page.before, page.after = (
            QUEUED,
            bucket,
            -1,
            desk[bucket].head,
        )
        if page.after >= 0:
            pages[page.after].before = i
        desk[bucket].head = i
    return True


@_inline
def _take(pages, desk, me, i):
    """Page i leaves the place where it is."""
    page = pages[i]
    if page.place == AWAKE:
        me.n_awake -= 1
        look, other = desk[page.at], desk[me.n_awake]
        look.awake, look.seen_at, look.seen, look.until = (
            other.awake,
            other.seen_at,
            other.seen,
            other.until,
        )
        look.rise, look.half, look.bend, look.cube = (
            other.rise,
            other.half,
            other.bend,
            other.cube,
        )
        pages[look.awake].at = page.at
    elif page.place == QUEUED:
        if page.before >= 0:
            pages[page.before].after = page.after
        else:
            desk[page.at].head = page.after
        if page.after >= 0:
            pages[page.after].before = page.before
    elif page.place == NEW:
        me.n_new -= 1
        other = np.int64(pages[me.n_new].heap)
        if other != i:
            pages[other].at = page.at
            _sift(pages, desk, me, other)
    page.place = ASLEEP


@_plain
def _before(pages, i, j):
    return pages[i].due > pages[j].due or (pages[i].due == pages[j].due and i < j)


@_plain
def _sift(pages, desk, me, i):
    """Move page i of the heap to where its value belongs."""
    p = pages[i].at
    while p > 0 and _before(pages, i, pages[(p - 1) // 2].heap):
        pages[p].heap = pages[(p - 1) // 2].heap
        pages[pages[p].heap].at = p
        p = (p - 1) // 2
    while True:
        q = 2 * p + 1
        if q + 1 < me.n_new and _before(pages, pages[q + 1].heap, pages[q].heap):
            q += 1
        if q >= me.n_new or not _before(pages, pages[q].heap, i):
            break
        pages[p].heap = pages[q].heap
        pages[pages[p].heap].at = p
        p = q
    pages[p].heap, pages[i].at = i, p


@_plain
def _put(pages, desk, me, signals, i, t):
    """Page i, in no place, finds its own at time t."""
    page = pages[i]
    _hear(pages, me, signals, i, t)
    page.beta = page.row[2] / page.row[1] if page.row[2] > 0.0 else 0.0
    page.high, page.high_at, page.rest_for = 0.0, np.inf, -1.0
    _forget(page)
    if page.last == -np.inf and page.row[1] > 0.0:
        page.place, page.at, page.due = NEW, me.n_new, _value(page, me, np.inf, page.n)
        pages[me.n_new].heap = i
        me.n_new += 1
        _sift(pages, desk, me, i)
    elif me.level > 0.0:
        _sleep(pages, desk, me, signals, i, t)
    else:
        page.place = ASLEEP


@_plain
def change(pages, desk, mes, signals, which, present, t):
    """From time t on these pages are there or not, and their constants may be other ones."""
    for k in range(which.size):
        _take(pages, desk, mes[0], which[k])
        if present:
            _put(pages, desk, mes[0], signals, which[k], t)
        else:
            pages[which[k]].place = ABSENT


@_plain
def _signal(pages, desk, me, signals, i, t):
    """A signal for page i at time t that was not known ahead."""
    page = pages[i]
    if t - page.last < me.discard:
        return
    page.n += 1
    if page.place == AWAKE:
        _shift(pages, desk, me, np.int64(page.at), np.int64(1), t)
    elif page.place != NEW and page.beta > 0.0 and page.due < np.inf:
        page.due = _sooner(page, page.due, 1)
        if page.due < me.end:
            _take(pages, desk, me, i)
            if page.due <= t or not _file(pages, desk, me, i):
                _wake(pages, desk, me, signals, i, t)


@njit(cache=True, error_model="numpy")
def _rank(pool, size, least, v):
    """Add v to the `size` values in the pool, the larger half of which stays when it is full, from `least` up; returns both anew."""
    if v > least:
        pool[size] = v
        size += 1
        if size == pool.size:
            pool.sort()
            size //= 2
            for k in range(
                size
            ):  # a slice would bring the message for one that does not fit, seconds of compiling
                pool[k] = pool[size + k]
            least = pool[0]
    return size, least


@njit(cache=True, error_model="numpy")
def _top(pool, size):
    """The k-th largest of the values added to a pool for 2 k, the least when there are fewer."""
    pool[:size].sort()
    return pool[max(size - pool.size // 2, 0)] if size > 0 else 0.0


@_plain
def _calendar(desk, me, t):
    """Begin a calendar at t, its buckets as long as a slot has lately been."""
    if me.level > 0.0:
        mean = (t - me.start) / max(me.slot, 1)
        me.width = (
            min(mean, 4.0 * me.width) if me.width > 0.0 else mean
        )  # a pause is no slot
    me.start, me.end = t, t + me.width * me.n_buckets
    me.slot, me.bucket = 0, 1
    for k in range(me.n_buckets):
        desk[k].head = -1


@_plain
def _turn(pages, desk, me, signals, t):
    """The calendar's next days: file who is due in them."""
    _calendar(desk, me, t)
    for i in range(pages.size):
        page = pages[i]
        if page.place == ASLEEP or page.place == QUEUED:
            page.place = ASLEEP
            if page.due <= t or not _file(pages, desk, me, i):
                _wake(pages, desk, me, signals, i, t)


@njit(cache=True, error_model="numpy")
def _lower(pages, desk, me, signals, t):
    """Set the level to about the keep-th largest value at t of all pages once crawled, and file all by it."""
    _calendar(desk, me, t)
    pool = np.empty(2 * me.keep)
    size, least, me.n_awake = np.int64(0), -np.inf, 0
    look = desk[0]
    for i in range(pages.size):
        page = pages[i]
        if page.place != ABSENT and page.place != NEW:
            _hear(pages, me, signals, i, t)
            page.place = ASLEEP
            look.awake, most, v = i, page.row[0], -1.0
            back = _elapsed(page, t) - page.low_at
            if page.row[1] > 0.0 and page.row[1] * abs(back) < 1.0:
                _begin(page, look, t, _low(page))
                most, v = min(_most(look, t), most), _least(pages, look, t)
            if most > least:
                size, least = _rank(
                    pool,
                    size,
                    least,
                    v if most * _TIGHT < v else _look(pages, desk, me, np.int64(0), t),
                )
    me.level = max(_top(pool, size), _LEAST)
    for i in range(pages.size):
        if pages[i].place == ASLEEP:
            _sleep(pages, desk, me, signals, i, t)
    me.pause = _PAUSE


@njit(cache=True, error_model="numpy")
def _raise(pages, desk, me, signals, t):
    """Raise the level to about the keep-th largest value of those awake; the others go to sleep."""
    pool = np.empty(2 * me.keep)
    size, least = np.int64(0), -np.inf
    for p in range(me.n_awake):
        v = _least(pages, desk[p], t)
        size, least = _rank(
            pool,
            size,
            least,
            v if _most(desk[p], t) * _TIGHT < v else _look(pages, desk, me, p, t),
        )
    me.level = max(_top(pool, size), me.level)
    for p in range(me.n_awake - 1, -1, -1):
        i = np.int64(desk[p].awake)
        _take(pages, desk, me, i)
        _sleep(pages, desk, me, signals, i, t)
    me.pause = _PAUSE


@_plain
def _best(pages, desk, me, signals, t):
    """Page of largest value (-1 if there is none), and that value, or if it is not below the level no more than it.

    Of pages asleep only if the value is below the level.
    """
    best, winner, first = -1.0, -1, -1
    if me.n_new > 0:
        winner = pages[0].heap
        best = pages[winner].due
    if (
        me.second >= 0 and pages[me.second].place == AWAKE
    ):  # with a high bound to begin with few pages come near it
        least = _least(pages, desk[pages[me.second].at], t)
        if least > best:
            best, first, winner = least, pages[me.second].at, me.second
    n = 0
    for p in range(me.n_awake):
        look = desk[p]
        if look.until <= t:
            page = pages[look.awake]
            _shift(
                pages,
                desk,
                me,
                p,
                _hear(pages, me, signals, np.int64(look.awake), t),
                t,
            )
            look.until = signals[page.next] if page.next < page.stop else np.inf
        if _most(look, t) >= best * _SAFE:
            pages[n].near = p
            n += 1
            least = _least(pages, look, t)
            if least > best:
                best, first, winner = least, p, look.awake
    for k in range(n if n > 1 else 0):
        p = np.int64(pages[k].near)
        look = desk[p]
        if (
            look.half > 0.0
            and _most(look, t) >= best * _SAFE
            and _recall(pages, desk, p, t)
        ):
            least = _least(pages, look, t)
            if least > best:
                best, first, winner = least, p, look.awake
    favourite = winner if first >= 0 else -1
    for k in range(n):
        p = np.int64(pages[k].near)
        look = desk[p]
        v = _most(look, t)
        if p != first and v >= best * _SAFE:
            if look.seen_at != t and look.half > 0.0:
                v = _look(pages, desk, me, p, t)
            if v > best or (v == best and (winner == favourite or look.awake < winner)):
                best, winner = v, look.awake
    if first >= 0 and (
        best < me.level
        if winner == favourite
        else _most(desk[first], t) >= best * _SAFE
    ):
        v = _look(pages, desk, me, first, t)
        if v > best or (v == best and favourite < winner):
            best, winner = v, favourite
    most, me.second = 0.0, -1
    for k in range(n):
        look = desk[pages[k].near]
        v = _most(look, t)
        if v > most and look.awake != winner:
            most, me.second = v, look.awake
    return best, winner


@njit(cache=True, error_model="numpy")
def _crawl(pages, desk, me, signals, t):
    """Give the slot at time t to the page of largest value; -1 if there is no page."""
    if me.level < 0.0:
        _lower(pages, desk, me, signals, t)
    elif t > me.start and (t >= me.end or me.slot > 2 * me.n_buckets):
        _turn(pages, desk, me, signals, t)
    else:
        stop = min(int((t - me.start) / me.width) + 1, me.n_buckets)
        while me.bucket < stop:
            i = np.int64(desk[me.bucket].head)
            me.bucket += 1
            while i >= 0:
                after = np.int64(pages[i].after)
                _wake(pages, desk, me, signals, i, t)
                i = after
    me.slot += 1
    me.since += 1
    me.pause -= 1
    if (
        me.n_awake > 4 * me.keep and me.pause < 0
    ):  # pages may be alike, so that no level tells them apart
        _raise(pages, desk, me, signals, t)
    best, winner = _best(pages, desk, me, signals, t)
    if best < me.level and me.level > _LEAST:
        # a pass over all pages costs some 16 times what a slot costs for each page awake
        if me.since * me.keep < 4 * pages.size:
            me.keep = min(2 * me.keep, pages.size)
        elif me.since * me.keep > 32 * pages.size:
            me.keep = max(me.keep // 2, 8)
        me.since = 0
        _lower(pages, desk, me, signals, t)
        best, winner = _best(pages, desk, me, signals, t)
    if best <= 0.0:
        winner = 0
        while winner < pages.size and pages[winner].place == ABSENT:
            winner += 1
        if winner == pages.size:
            return -1
    _take(pages, desk, me, winner)
    _hear(pages, me, signals, winner, t)
    pages[winner].last, pages[winner].n = t, 0
    _sleep(pages, desk, me, signals, winner, t)
    return winner


@njit(cache=True, error_model="numpy")
def next_slot(pages, desk, mes, signals, t):
    return _crawl(pages, desk, mes[0], signals, t)


@_plain
def next_signal(pages, desk, mes, signals, i, t):
    _signal(pages, desk, mes[0], signals, i, t)


@njit(cache=True, error_model="numpy")
def greedy_slots(pages, desk, mes, signals, slots, signal_page, signal_time, out):
    """The page of every slot, each after the signals that came until then, and the signals after the last; both in order of time."""
    me = mes[0]
    k = 0
    for j in range(slots.size):
        while k < signal_time.size and signal_time[k] <= slots[j]:
            _signal(pages, desk, me, signals, signal_page[k], signal_time[k])
            k += 1
        out[j] = _crawl(pages, desk, me, signals, slots[j])
    while k < signal_time.size:
        _signal(pages, desk, me, signals, signal_page[k], signal_time[k])
        k += 1
