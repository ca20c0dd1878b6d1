"""Greedy crawling slot by slot: the page of largest crawl value, found without looking at the others. The kernels check nothing.

A page sleeps until its value can first reach a level below the values that win, and only pages awake are compared. Every page is ABSENT,
ASLEEP until `due`, QUEUED in the calendar's bucket that holds `due`, AWAKE, or NEW: never crawled, in a heap, for its value stands still.
A value only grows between crawls, which keeps this exact: a page asleep or queued is below the level; a slot whose winner would be below
the level is decided anew after the level has been lowered; and a page awake is passed over only if an upper bound of its value is
below a value that another page has now or had before. Bounds leave a margin for rounding, and what is compared is always `value` itself.

Signals come one by one, or are known ahead, as in a simulated world: then a page sleeps through those that will not bring it to the
level, and they are counted only when it is looked at.

State is three arrays of records (plain arrays of their own would cost a reference count at every use): `pages`; a `desk` whose record k
holds the k-th page awake, the k-th of the heap, the k-th bucket and the k-th page near the best; and `me`, what there is once; and
`signals`, the times of the signals known ahead, page after page.
"""

import math

import numpy as np
from numba import njit

from paperlib._value import N_CONSTANTS, effective, value

ABSENT, ASLEEP, QUEUED, AWAKE, NEW = range(5)
# `due` of a NEW page is its value; `at` is the bucket, or the position among those awake or in the heap, `before` and `after` are the
# neighbours in the bucket; `beta` is the time that a signal is worth; `known` is the value at the effective time `known_at` / alpha;
# `rest` is the effective time from a crawl until due, if the level is `rest_for`; `n` signals are counted, all before `next`
PAGE = np.dtype(
    [("row", "f8", (N_CONSTANTS,))]
    + [(name, "f8") for name in ("last", "due", "beta", "known", "known_at", "rest", "rest_for")]
    + [(name, "i4") for name in ("n", "at", "before", "after", "place", "_")]
    + [(name, "i8") for name in ("next", "stop")]
)
# until the next signal the value is at least seen and, d after `seen_at`, at most seen + slope d (reach + d / 2)
DESK = np.dtype(
    [(name, "f8") for name in ("seen_at", "seen", "slope", "reach", "until")] + [(name, "i4") for name in ("awake", "heap", "head", "near")]
)
SELF = np.dtype(
    [(name, "f8") for name in ("level", "start", "end", "width", "discard")]
    + [(name, "i8") for name in ("n_buckets", "n_awake", "n_new", "bucket", "slot", "since", "keep", "most", "n_values")]
)
_LEAST = 5e-324  # the lowest level: no page of value 0 need be awake, for if all are 0 the first page wins
_SAFE = 1.0 - 1e-7  # rounding of a value stays well inside
_IDLE = 1e300  # due when a signal comes
_NONE = np.empty(0)


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
    pages["row"], pages["last"], pages["n"], pages["place"] = rows, last, n, np.where(present, ASLEEP, ABSENT)
    pages["next"], pages["stop"] = start, stop
    me["n_buckets"], me["discard"] = max(256, len(rows) // 16), discard
    state = pages, np.zeros(max(len(rows), 256), DESK), me, signals
    _settle(*state)
    return state


@njit(cache=True, error_model="numpy")
def _settle(pages, desk, mes, signals):
    me = mes[0]
    me.level, me.keep = -1.0, 8
    for i in range(pages.size):
        if pages[i].place != ABSENT:
            _put(pages, desk, me, signals, i, 0.0)


@njit(cache=True, error_model="numpy")
def _value(pages, me, i, t):
    me.n_values += 1
    return value(pages[i].row, t - pages[i].last, pages[i].n)


@njit(cache=True, error_model="numpy")
def _hear(pages, me, signals, i, t):
    """Count the signals of page i up to time t; returns how many are new."""
    page = pages[i]
    n = page.n
    while page.next < page.stop and signals[page.next] <= t:
        page.n += signals[page.next] - page.last >= me.discard
        page.next += 1
    return page.n - n


@njit(cache=True, error_model="numpy")
def _sooner(page, due):
    """When a page is due after one more signal."""
    return due - page.beta * (1.0 + 1e-9) - abs(due) * 1e-15


@njit(cache=True, error_model="numpy")
def _foresee(pages, me, signals, i, due):
    """When page i, due then without signals, is due with those to come."""
    page = pages[i]
    if page.beta > 0.0 and due < np.inf:  # from inf no signal brings it back
        k = page.next
        while k < page.stop and signals[k] < due:
            if signals[k] - page.last >= me.discard:
                due = max(_sooner(page, due), signals[k])
            k += 1
    return due


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
def _sleep(pages, desk, me, signals, i, t, v, n_steps):
    """Put page i, of value v at t, away until it is due, which Newton's steps from below approach to within a bucket.

    The level seldom moves: a page just crawled rests as long as last time, or begins where its value was last seen below the level.
    """
    page, low = pages[i], me.level * _SAFE
    seen_at, seen = t, v
    crawled = t == page.last and page.n == 0
    if crawled and page.rest_for == me.level:
        t += page.rest
    else:
        if crawled and 0.0 < page.known < low:
            t += page.known_at / page.row[1] * _SAFE
            v = page.known
        for k in range(n_steps):
            if v < low and not v <= page.known < low and page.row[1] > 0.0:  # of the values below the level the largest
                page.known, page.known_at, page.rest_for = v, effective(page.row, t - page.last, page.n), -1.0
            wait = _wait(pages, me, i, t, v)
            t += wait
            if k + 1 == n_steps or not me.width < wait < _IDLE:
                break
            v = _value(pages, me, i, t)
        if crawled:
            page.rest, page.rest_for = t - page.last, me.level
    page.due = _foresee(pages, me, signals, i, t)
    if not _file(pages, desk, me, i):
        _rouse(pages, desk, me, signals, i, seen_at, seen)


@njit(cache=True, error_model="numpy")
def _wake(pages, desk, me, signals, i, t):
    """See whether page i may have reached the level; one step, for the level is likely to have moved again by then."""
    _hear(pages, me, signals, i, t)
    page = pages[i]
    if 0.0 < page.known < me.level * _SAFE:  # a value seen shortly before will do
        d = (effective(page.row, t - page.last, page.n) - page.known_at) / page.row[1]
        if t - 2.0 * me.width <= t - d < t:
            _rouse(pages, desk, me, signals, i, t - d, page.known)
            return
    _sleep(pages, desk, me, signals, i, t, _value(pages, me, i, t), 1)


@njit(cache=True, error_model="numpy")
def _rouse(pages, desk, me, signals, i, t, v):
    """Page i, of value v at t, joins those awake."""
    page, look = pages[i], desk[me.n_awake]
    page.place, page.at = AWAKE, me.n_awake
    look.awake, look.seen_at, look.seen = i, t, v
    look.slope, look.reach = _bound(pages, i, t)
    look.until = signals[page.next] if page.next < page.stop else np.inf
    me.n_awake += 1


@njit(cache=True, error_model="numpy")
def _shift(page, look, n):
    """Bound the value of this page awake after n more signals."""
    if n > 0 and page.beta > 0.0:
        if look.slope > 0.0 and page.beta < np.inf:
            look.seen_at -= n * page.beta * (1.0 + 1e-9)
        else:  # no more is known than what has been seen
            look.seen_at, look.slope, look.reach = -np.inf, 1.0, 1.0


@njit(cache=True, error_model="numpy")
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
        page.place, page.at, page.before, page.after = QUEUED, bucket, -1, desk[bucket].head
        if page.after >= 0:
            pages[page.after].before = i
        desk[bucket].head = i
    return True


@njit(cache=True, error_model="numpy")
def _take(pages, desk, me, i):
    """Page i leaves the place where it is."""
    page = pages[i]
    if page.place == AWAKE:
        me.n_awake -= 1
        look, other = desk[page.at], desk[me.n_awake]
        look.awake, look.seen_at, look.seen, look.slope, look.reach = other.awake, other.seen_at, other.seen, other.slope, other.reach
        look.until = other.until
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
def _put(pages, desk, me, signals, i, t):
    """Page i, in no place, finds its own at time t."""
    page = pages[i]
    _hear(pages, me, signals, i, t)
    page.known, page.rest_for = 0.0, -1.0
    page.beta = page.row[2] / page.row[1] if page.row[2] > 0.0 else 0.0
    if page.last == -np.inf and page.row[1] > 0.0:
        page.place, page.at, page.due = NEW, me.n_new, _value(pages, me, i, 0.0)
        desk[me.n_new].heap = i
        me.n_new += 1
        _sift(pages, desk, me, i)
    elif me.level > 0.0:
        _sleep(pages, desk, me, signals, i, t, _value(pages, me, i, t), 8)
    else:
        page.place = ASLEEP


@njit(cache=True, error_model="numpy")
def change(pages, desk, mes, signals, which, present, t):
    """From time t on these pages are there or not, and their constants may be other ones."""
    for i in which:
        _take(pages, desk, mes[0], i)
        if present:
            _put(pages, desk, mes[0], signals, i, t)
        else:
            pages[i].place = ABSENT


@njit(cache=True, error_model="numpy")
def _signal(pages, desk, me, signals, i, t):
    """A signal for page i at time t that was not known ahead."""
    page = pages[i]
    if t - page.last < me.discard:
        return
    page.n += 1
    if page.place == AWAKE:
        _shift(page, desk[page.at], 1)
    elif page.place != NEW and page.beta > 0.0 and page.due < np.inf:
        page.due = _sooner(page, page.due)
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
            pool[:size] = pool[size:].copy()
            least = pool[0]
    return size, least


@njit(cache=True, error_model="numpy")
def _top(pool, size):
    """The k-th largest of the values added to a pool for 2 k, the least when there are fewer."""
    pool[:size].sort()
    return pool[max(size - pool.size // 2, 0)] if size > 0 else 0.0


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
    """Set the level to the keep-th largest value at t of all pages once crawled, and file all by it."""
    _calendar(desk, me, t)
    values, pool = np.full(pages.size, -1.0), np.empty(2 * me.keep)
    size, least = 0, -np.inf
    for i in range(pages.size):
        page = pages[i]
        if page.place != ABSENT and page.place != NEW:
            _hear(pages, me, signals, i, t)
            page.place, page.due = ASLEEP, np.inf
            if page.row[0] > least:
                values[i] = _value(pages, me, i, t)
                size, least = _rank(pool, size, least, values[i])
    me.level, me.n_awake = max(_top(pool, size), _LEAST), 0
    for i in range(pages.size):
        if pages[i].place == ASLEEP and not pages[i].row[0] < me.level * _SAFE:
            _sleep(pages, desk, me, signals, i, t, values[i] if values[i] >= 0.0 else _value(pages, me, i, t), 1)
    me.most = max(4 * me.keep, 2 * me.n_awake)


@njit(cache=True, error_model="numpy")
def _raise(pages, desk, me, signals, t):
    """Raise the level to the keep-th largest value of those awake; the others go to sleep."""
    pool = np.empty(2 * me.keep)
    size, least = 0, -np.inf
    for p in range(me.n_awake):
        size, least = _rank(pool, size, least, _look(pages, desk, me, p, t))
    me.level = max(_top(pool, size), me.level)
    for p in range(me.n_awake - 1, -1, -1):
        if desk[p].seen < me.level * _SAFE:
            i, v = desk[p].awake, desk[p].seen
            _take(pages, desk, me, i)
            _sleep(pages, desk, me, signals, i, t, v, 8)
    me.most = max(4 * me.keep, 2 * me.n_awake)


@njit(cache=True, error_model="numpy")
def _look(pages, desk, me, p, t):
    """Value at t of the p-th page awake, and the bound that starts from it."""
    look = desk[p]
    look.seen_at, look.seen = t, _value(pages, me, look.awake, t)
    look.slope, look.reach = _bound(pages, look.awake, t)
    return look.seen


@njit(cache=True, error_model="numpy")
def _limit(look, t):
    """What the value of this page awake is at most at t."""
    d = t - look.seen_at
    return look.seen + look.slope * d * (look.reach + 0.5 * d) if look.slope > 0.0 else look.seen


@njit(cache=True, error_model="numpy")
def _best(pages, desk, me, signals, t):
    """Page of largest value (-1 if there is none), and that value, or if it is not below the level no more than it.

    Of pages asleep only if the value is below the level.
    """
    best, winner, first = -1.0, -1, -1
    if me.n_new > 0:
        winner = desk[0].heap
        best = pages[winner].due
    n = 0
    for p in range(me.n_awake):
        look = desk[p]
        if look.until <= t:
            page = pages[look.awake]
            _shift(page, look, _hear(pages, me, signals, look.awake, t))
            look.until = signals[page.next] if page.next < page.stop else np.inf
        if _limit(look, t) >= best * _SAFE:
            desk[n].near = p
            n += 1
            if look.seen > best:  # values never fall
                best, first, winner = look.seen, p, look.awake
    favourite = winner if first >= 0 else -1
    for k in range(n):
        p = desk[k].near
        look = desk[p]
        v = _limit(look, t)
        if p != first and v >= best * _SAFE:
            if look.seen_at < t and look.slope > 0.0:
                v = _look(pages, desk, me, p, t)
            if v > best or (v == best and (winner == favourite or look.awake < winner)):
                best, winner = v, look.awake
    if first >= 0 and (best < me.level if winner == favourite else _limit(desk[first], t) >= best * _SAFE):
        v = _look(pages, desk, me, first, t)
        if v > best or (v == best and favourite < winner):
            best, winner = v, favourite
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
            i = desk[me.bucket].head
            me.bucket += 1
            while i >= 0:
                after = pages[i].after
                _wake(pages, desk, me, signals, i, t)
                i = after
    me.slot += 1
    me.since += 1
    if me.n_awake > me.most:
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
    _sleep(pages, desk, me, signals, winner, t, 0.0, 8)
    return winner


@njit(cache=True, error_model="numpy")
def next_slot(pages, desk, mes, signals, t):
    return _crawl(pages, desk, mes[0], signals, t)


@njit(cache=True, error_model="numpy")
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
