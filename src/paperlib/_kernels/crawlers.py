"""Crawling by due date: the rules of production crawlers, their slots, and their law on one page. The kernels check nothing.

A rule is a tuple (base, shrink, grow, low, high, sync, cap, cycle), times in one unit."""

import math

import numpy as np
from numba import njit

from paperlib._kernels.schedules import _sift_down

NO_SYNC = -1.0  # for sync


@njit(cache=True)
def following(interval, since, changed, rule):
    """The next interval, and how long until the page is due, after a crawl; `since` the last crawl that found a change (0 if this did)."""
    base, shrink, grow, low, high, sync, cap, cycle = rule
    interval = base + shrink * (interval - base) if changed else grow * interval
    shift = 0.0
    if sync != NO_SYNC:
        interval = max(interval, since)
        shift = sync * since
        if shift > high:
            shift = 0.0
    interval = min(max(interval, low), high)
    wait = max(interval - shift, low)
    if wait > cap:
        return min(interval, 0.9 * cap), cycle
    return interval, wait


@njit(cache=True)
def due_slots(time, change_time, offsets, last, stop, due, heap, initial, rule, out):
    """Each slot goes to the page whose due date lies furthest back, the lower index first, or to none (-1).

    The changes of page i are change_time[offsets[i]:offsets[i + 1]]. `heap` holds all pages in the order of `due`; `last`, `due` and
    `heap` are used up.
    """
    size = heap.size
    interval = np.full(size, initial)
    found, seen = (
        last.copy(),
        offsets[:-1].copy(),
    )  # the last crawl that found a change, and the changes before the last crawl
    for j in range(time.size):
        t = time[j]
        while size and stop[heap[0]] <= t:
            size -= 1
            heap[0] = heap[size]
            _sift_down(heap, due, size, 0)
        out[j] = -1
        if size == 0 or due[heap[0]] > t:
            continue
        i = heap[0]
        changed = False
        while seen[i] < offsets[i + 1] and change_time[seen[i]] <= t:
            changed = True
            seen[i] += 1
        wait = initial
        if last[i] == -np.inf:  # nothing to compare with
            found[i] = t
        else:
            if changed:
                found[i] = t
            interval[i], wait = following(interval[i], t - found[i], changed, rule)
        out[j], last[i], due[i] = i, t, t + wait
        _sift_down(heap, due, size, 0)


@njit(cache=True)
def from_change_to_change(grid, change_rate, rule, transition, crawls, time):
    """From a crawl that found a change, its interval on the grid, to the next one: crawls and time that it takes, and the interval then.

    The intervals between follow from the first. Their law is spread over the two neighbours on the grid, even in the logarithm,
    so that its mean is kept.
    """
    step = math.log(grid[1] / grid[0])
    for a in range(grid.size):
        since, left = 0.0, 1.0
        interval, wait = following(grid[a], 0.0, True, rule)
        while left > 0.0:
            kept = left * math.exp(-change_rate * wait)
            if kept < 1e-12:
                kept = 0.0
            crawls[a] += left
            time[a] += left * wait
            place = math.log(interval / grid[0]) / step
            b = min(max(int(place), 0), grid.size - 2)
            part = min(max(place - b, 0.0), 1.0)
            transition[a, b] += (left - kept) * (1.0 - part)
            transition[a, b + 1] += (left - kept) * part
            left = kept
            since += wait
            interval, wait = following(interval, since, False, rule)
