"""Greedy crawling slot by slot: the page of largest crawl value, found without looking at the others. The kernels check nothing.

A page sleeps until its value can first reach a level below the values that win, and only pages awake are compared. Every page is ABSENT,
ASLEEP until `due`, QUEUED in the calendar's bucket that holds `due`, AWAKE, or NEW: never crawled, in a heap, for its value stands still.
A value only grows between crawls, which keeps this exact: a page asleep or queued is below the level; a slot whose winner would be below
the level is decided anew after the level has been lowered; and a page awake is passed over only if an upper bound of its value is
below a value found. Bounds leave a margin for rounding, and what is compared is always `value` itself.

State is three arrays of records (plain arrays of their own would cost a reference count at every use): `pages`; a `desk` whose record k
holds the k-th page awake, the k-th of the heap and the k-th bucket; and `me`, what there is once.
"""

import math

import numpy as np
from numba import njit

from paperlib._value import N_CONSTANTS, effective, value

ABSENT, ASLEEP, QUEUED, AWAKE, NEW = range(5)
# `due` of a NEW page is its value; `at` is the bucket, or the position among those awake or in the heap, `before` and `after` are the
# neighbours in the bucket; `beta` is the time that a signal is worth; `known` is the value at the effective time `known_at` / alpha
PAGE = np.dtype(
    [("row", "f8", (N_CONSTANTS,))]
    + [(name, "f8") for name in ("last", "due", "beta", "known", "known_at")]
    + [(name, "i4") for name in ("n", "at", "before", "after", "place", "_")]
)
# the value d after `seen_at` is at most seen + slope d (reach + d / 2)
DESK = np.dtype(
    [(name, "f8") for name in ("seen_at", "seen", "slope", "reach")] + [(name, "i4") for name in ("awake", "heap", "head", "_")]
)
SELF = np.dtype(
    [(name, "f8") for name in ("level", "start", "end", "width")]
    + [(name, "i8") for name in ("n_buckets", "n_awake", "n_new", "bucket", "slot", "since", "keep", "most", "second", "n_values")]
)
_LEAST = 5e-324  # the lowest level: no page of value 0 need be awake, for if all are 0 the first page wins
_SAFE = 1.0 - 1e-7  # rounding of a value stays well inside
_IDLE = 1e300  # due when a signal comes


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


def make(rows, last, n, present):
    """pages, desk and me for pages with these constants, last crawled at `last` (-inf: never), with n signals since."""
    pages, me = np.zeros(len(rows), PAGE), np.zeros(1, SELF)
    pages["row"], pages["last"], pages["n"], pages["place"] = rows, last, n, np.where(present, ASLEEP, ABSENT)
    me["n_buckets"] = max(256, len(rows) // 16)
    state = pages, np.zeros(max(len(rows), 256), DESK), me
    _settle(*state)
    return state


@njit(cache=True, error_model="numpy")
def _settle(pages, desk, mes):
    me = mes[0]
    me.level, me.second, me.keep = -1.0, -1, 32
    for i in range(pages.size):
        if pages[i].place != ABSENT:
            _put(pages, desk, me, i, 0.0)


@njit(cache=True, error_model="numpy")
def _value(pages, me, i, t):
    me.n_values += 1
    return value(pages[i].row, t - pages[i].last, pages[i].n)


@njit(cache=True, error_model="numpy")
def _bound(pages, i, t):
    """(slope, reach) with value(t + d) <= value(t) + slope d (reach + d / 2).

    V' = importance alpha exp(-u) psi, and psi, the mean time that time and signals take to add up to u / alpha, is at most u / alpha, and
    at most (u + b) / (alpha + gamma b), for the last signal adds b at most.
    """
    page = pages[i]
    alpha, b, r = page.row[1], page.row[2], page.row[3]
    u = effective(page.row, t - page.last, page.n)
    slope = (page.row[9] * r if r > 0.0 else page.row[0]) * alpha * alpha * math.exp(-u)
    if not slope > 0.0:
        return 0.0, 0.0
    return slope, (min(u, (u + b) / (1.0 + r * b) if b < np.inf else 1.0 / r) if r > 0.0 else u) / alpha


@njit(cache=True, error_model="numpy")
def _wait(pages, me, i, t, v):
    """Time from t on for which page i, of value v, stays below the level whatever happens but a signal; inf if no signal helps.

    By `_bound` and because exp(-u) falls, the rise in a time d is at most slope (rho z + z^2 c) / alpha^2 with z = 1 - exp(-alpha d),
    rho = alpha reach and c from 1 / 2 (short times) to 1.
    """
    row = pages[i].row
    if row[0] < me.level * _SAFE:
        return np.inf
    rise = me.level * _SAFE - v
    if rise <= 0.0:
        return 0.0
    slope, reach = _bound(pages, i, t)
    alpha = row[1]
    if slope == 0.0:
        return _IDLE
    y, rho = rise / slope * alpha * alpha, alpha * reach
    z, c = 0.0, 0.5
    for _ in range(2):  # too late by the first c; the second is right for all z up to that
        half = 0.5 * (rho + math.sqrt(rho * rho + 4.0 * c * y))
        z = min(y / half, 1.0) if half > 0.0 else 0.0
        c = 0.5 + z * (1.0 / 6.0 + z / 3.0)
    return -math.log1p(-z) / alpha


@njit(cache=True, error_model="numpy")
def _sleep(pages, desk, me, i, t, v, n_steps):
    """Put page i, of value v at t, away until it is due, which Newton's steps from below approach to within a bucket.

    The level seldom moves: a page just crawled begins where its value was last seen below it.
    """
    page, low = pages[i], me.level * _SAFE
    if t == page.last and page.n == 0 and 0.0 < page.known < low:  # just crawled
        t += page.known_at / page.row[1] * _SAFE
        v = page.known
    for k in range(n_steps):
        if v < low and not v <= page.known < low and page.row[1] > 0.0:  # of the values below the level the largest
            page.known, page.known_at = v, effective(page.row, t - page.last, page.n)
        wait = _wait(pages, me, i, t, v)
        t += wait
        if k + 1 == n_steps or not me.width < wait < _IDLE:
            break
        v = _value(pages, me, i, t)
    pages[i].due = t
    _file(pages, desk, me, i)


@njit(cache=True, error_model="numpy")
def _wake(pages, desk, me, i, t):
    """See whether page i has reached the level; one step, for the level is likely to have moved again by then."""
    _sleep(pages, desk, me, i, t, _value(pages, me, i, t), 1)


@njit(cache=True, error_model="numpy")
def _unseen(pages, look):
    """Of the value of this page awake no more is known than its limit."""
    look.seen_at, look.seen, look.slope, look.reach = -np.inf, pages[look.awake].row[0], 0.0, 0.0


@njit(cache=True, error_model="numpy")
def _file(pages, desk, me, i):
    """A page that is nowhere goes where its due time says: awake, to a bucket, or beyond the calendar."""
    page = pages[i]
    page.place = ASLEEP
    bucket = -1
    if page.due > me.start:
        if not page.due < me.end:
            return
        bucket = min(int((page.due - me.start) / me.width), me.n_buckets - 1)
    if bucket < me.bucket:
        page.place, page.at = AWAKE, me.n_awake
        desk[me.n_awake].awake = i
        _unseen(pages, desk[me.n_awake])
        me.n_awake += 1
    else:
        page.place, page.at, page.before, page.after = QUEUED, bucket, -1, desk[bucket].head
        if page.after >= 0:
            pages[page.after].before = i
        desk[bucket].head = i


@njit(cache=True, error_model="numpy")
def _take(pages, desk, me, i):
    """Page i leaves the place where it is."""
    page = pages[i]
    if page.place == AWAKE:
        me.n_awake -= 1
        look, other = desk[page.at], desk[me.n_awake]
        look.awake, look.seen_at, look.seen, look.slope, look.reach = other.awake, other.seen_at, other.seen, other.slope, other.reach
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
        other = desk[me.n_new].heap
        if other != i:
            pages[other].at = page.at
            _sift(pages, desk, me, other)
    page.place = ASLEEP


@njit(cache=True, error_model="numpy")
def _before(pages, i, j):
    return pages[i].due > pages[j].due or (pages[i].due == pages[j].due and i < j)


@njit(cache=True, error_model="numpy")
def _sift(pages, desk, me, i):
    """Move page i of the heap to where its value belongs."""
    p = pages[i].at
    while p > 0 and _before(pages, i, desk[(p - 1) // 2].heap):
        desk[p].heap = desk[(p - 1) // 2].heap
        pages[desk[p].heap].at = p
        p = (p - 1) // 2
    while True:
        q = 2 * p + 1
        if q + 1 < me.n_new and _before(pages, desk[q + 1].heap, desk[q].heap):
            q += 1
        if q >= me.n_new or not _before(pages, desk[q].heap, i):
            break
        desk[p].heap = desk[q].heap
        pages[desk[p].heap].at = p
        p = q
    desk[p].heap, pages[i].at = i, p


@njit(cache=True, error_model="numpy")
def _put(pages, desk, me, i, t):
    """Page i, in no place, finds its own at time t."""
    page = pages[i]
    page.known = 0.0
    page.beta = page.row[2] / page.row[1] if page.row[2] > 0.0 else 0.0
    if page.last == -np.inf:
        page.place, page.at, page.due = NEW, me.n_new, _value(pages, me, i, 0.0)
        desk[me.n_new].heap = i
        me.n_new += 1
        _sift(pages, desk, me, i)
    elif me.level > 0.0:
        _sleep(pages, desk, me, i, t, _value(pages, me, i, t), 8)
    else:
        page.place = ASLEEP


@njit(cache=True, error_model="numpy")
def change(pages, desk, mes, which, present, t):
    """From time t on these pages are there or not, and their constants may be other ones."""
    for i in which:
        _take(pages, desk, mes[0], i)
        if present:
            _put(pages, desk, mes[0], i, t)
        else:
            pages[i].place = ABSENT


@njit(cache=True, error_model="numpy")
def _signal(pages, desk, me, i, t, discard):
    """A signal for page i at time t, ignored within `discard` after its last crawl."""
    page = pages[i]
    if t - page.last < discard:
        return
    page.n += 1
    if page.place == ASLEEP or page.place == QUEUED:
        if page.beta > 0.0 and page.due < np.inf:  # from inf no signal brings it back
            page.due -= page.beta * (1.0 + 1e-9) + abs(page.due) * 1e-15
            if page.due < me.end:
                _take(pages, desk, me, i)
                if page.due <= t:
                    _wake(pages, desk, me, i, t)
                else:
                    _file(pages, desk, me, i)
    elif page.place == AWAKE:
        _unseen(pages, desk[page.at])
    elif page.place == NEW:
        page.due = _value(pages, me, i, t)
        _sift(pages, desk, me, i)


@njit(cache=True, error_model="numpy")
def _top(values, k):
    """The k-th largest of the values, the least when there are fewer."""
    pool = np.empty(2 * k)
    size, least = 0, -np.inf
    for v in values:
        if v > least:
            pool[size] = v
            size += 1
            if size == 2 * k:
                pool.sort()
                pool[:k] = pool[k:].copy()
                size, least = k, pool[0]
    pool[:size].sort()
    return pool[max(size - k, 0)] if size > 0 else 0.0


@njit(cache=True, error_model="numpy")
def _calendar(desk, me, t):
    """Begin a calendar at t, its buckets as long as a slot has lately been."""
    if me.level > 0.0:
        mean = (t - me.start) / max(me.slot, 1)
        me.width = min(mean, 4.0 * me.width) if me.width > 0.0 else mean  # a pause is no slot
    me.start, me.end = t, t + me.width * me.n_buckets
    me.slot, me.bucket = 0, 1
    for k in range(me.n_buckets):
        desk[k].head = -1


@njit(cache=True, error_model="numpy")
def _turn(pages, desk, me, t):
    """The calendar's next days: file who is due in them."""
    _calendar(desk, me, t)
    for i in range(pages.size):
        page = pages[i]
        if page.place == ASLEEP or page.place == QUEUED:
            page.place = ASLEEP
            if page.due <= t:
                _wake(pages, desk, me, i, t)
            elif page.due < me.end:
                _file(pages, desk, me, i)


@njit(cache=True, error_model="numpy")
def _lower(pages, desk, me, t):
    """Set the level to the keep-th largest value at t of all pages once crawled, and file all by it."""
    _calendar(desk, me, t)
    values = np.empty(pages.size)
    n = 0
    for i in range(pages.size):
        if pages[i].place != ABSENT and pages[i].place != NEW:
            values[n] = _value(pages, me, i, t)
            n += 1
    me.level, me.n_awake = max(_top(values[:n], me.keep), _LEAST), 0
    n = 0
    for i in range(pages.size):
        if pages[i].place != ABSENT and pages[i].place != NEW:
            pages[i].due = t + _wait(pages, me, i, t, values[n])
            _file(pages, desk, me, i)
            n += 1
    me.most = max(4 * me.keep, 2 * me.n_awake)


@njit(cache=True, error_model="numpy")
def _raise(pages, desk, me, t):
    """Raise the level to the keep-th largest value of those awake; the others go to sleep."""
    values = np.empty(me.n_awake)
    for p in range(me.n_awake):
        values[p] = _look(pages, desk, me, p, t)
    me.level = max(_top(values, me.keep), me.level)
    for p in range(me.n_awake - 1, -1, -1):
        if desk[p].seen < me.level * _SAFE:
            i, v = desk[p].awake, desk[p].seen
            _take(pages, desk, me, i)
            _sleep(pages, desk, me, i, t, v, 8)
    me.most = max(4 * me.keep, 2 * me.n_awake)


@njit(cache=True, error_model="numpy")
def _look(pages, desk, me, p, t):
    """Value at t of the p-th page awake, and the bound that starts from it."""
    look = desk[p]
    look.seen_at, look.seen = t, _value(pages, me, look.awake, t)
    look.slope, look.reach = _bound(pages, look.awake, t)
    return look.seen


@njit(cache=True, error_model="numpy")
def _best(pages, desk, me, t):
    """Largest value, its page (-1 if there is none); of those asleep only if it is below the level."""
    best, winner, second, runner = -1.0, -1, -1.0, -1
    if me.n_new > 0:
        winner = desk[0].heap
        best = pages[winner].due
    guess = me.second
    if guess >= 0 and pages[guess].place == AWAKE:  # with a good value first, few others are looked at
        v = _look(pages, desk, me, pages[guess].at, t)
        if v > best or (v == best and guess < winner):
            best, winner = v, guess
    for p in range(me.n_awake):
        look = desk[p]
        d = t - look.seen_at
        bound = look.seen + look.slope * d * (look.reach + 0.5 * d) if look.slope > 0.0 else look.seen
        i = look.awake
        if i == winner or not (bound > second or bound >= best * _SAFE):
            continue
        if bound >= best * _SAFE and d > 0.0:
            bound = _look(pages, desk, me, p, t)
        if bound > best or (bound == best and i < winner):
            second, runner = best, winner
            best, winner = bound, i
        elif bound > second:
            second, runner = bound, i
    me.second = runner
    return best, winner


@njit(cache=True, error_model="numpy")
def _crawl(pages, desk, me, t):
    """Give the slot at time t to the page of largest value; -1 if there is no page."""
    if me.level < 0.0:
        _lower(pages, desk, me, t)
    elif t > me.start and (t >= me.end or me.slot > 2 * me.n_buckets):
        _turn(pages, desk, me, t)
    else:
        stop = min(int((t - me.start) / me.width) + 1, me.n_buckets)
        while me.bucket < stop:
            i = desk[me.bucket].head
            me.bucket += 1
            while i >= 0:
                after = pages[i].after
                _wake(pages, desk, me, i, t)
                i = after
    me.slot += 1
    me.since += 1
    if me.n_awake > me.most:
        _raise(pages, desk, me, t)
    best, winner = _best(pages, desk, me, t)
    if best < me.level and me.level > _LEAST:
        # a pass over all pages costs some 16 times what a slot costs for each page awake
        if me.since * me.keep < 4 * pages.size:
            me.keep = min(2 * me.keep, pages.size)
        elif me.since * me.keep > 32 * pages.size:
            me.keep = max(me.keep // 2, 8)
        me.since = 0
        _lower(pages, desk, me, t)
        best, winner = _best(pages, desk, me, t)
    if best <= 0.0:
        winner = 0
        while winner < pages.size and pages[winner].place == ABSENT:
            winner += 1
        if winner == pages.size:
            return -1
    _take(pages, desk, me, winner)
    pages[winner].last, pages[winner].n = t, 0
    _sleep(pages, desk, me, winner, t, 0.0, 8)
    return winner


@njit(cache=True, error_model="numpy")
def next_slot(pages, desk, mes, t):
    return _crawl(pages, desk, mes[0], t)


@njit(cache=True, error_model="numpy")
def next_signal(pages, desk, mes, i, t, discard):
    _signal(pages, desk, mes[0], i, t, discard)


@njit(cache=True, error_model="numpy")
def greedy_slots(pages, desk, mes, slots, signal_page, signal_time, discard, out):
    """The page of every slot, each after the signals that came until then, and the signals after the last; both in order of time."""
    me = mes[0]
    k = 0
    for j in range(slots.size):
        while k < signal_time.size and signal_time[k] <= slots[j]:
            _signal(pages, desk, me, signal_page[k], signal_time[k], discard)
            k += 1
        out[j] = _crawl(pages, desk, me, slots[j])
    while k < signal_time.size:
        _signal(pages, desk, me, signal_page[k], signal_time[k], discard)
        k += 1
