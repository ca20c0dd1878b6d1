"""Crawling by due date: rules of production crawlers, slots, steady state.

Every page has an interval and a due date. A crawl changes the interval by a
rule (`following`): shorter if the page had changed, longer if not, and kept
within limits; the page is due again after the interval, or a little sooner.

`due_slots` gives each slot to the page whose due date lies furthest back. The
pages wait in a heap ordered by due date, the lower index first among
equal ones, so a slot costs a logarithm of the number of pages. Only the page
on top of the heap can be due, because no other page has an earlier date; and
after its crawl its own due date is the only one that has changed. A page that
has gone is removed when it reaches the top, for before that it does no harm.

`from_change_to_change` describes one Poisson page that is crawled when it is
due. The interval at a crawl that finds a change is a Markov chain: until the
next such crawl the intervals follow without chance, and only which of the
crawls finds the change is random. The chain is put on a grid of intervals with
equal steps of the logarithm; an interval between two grid points is split
between both so that its mean logarithm is kept.

The kernels check nothing.
"""

import math
from collections import namedtuple

import numpy as np

from recrawl.kernels import compiled, plain
from recrawl.kernels.changes import look
from recrawl.kernels.heaps import pop, replace_first

NO_SYNC = -1.0  # Rule.sync of a rule that ignores the last change; others are >= 0
# The probability that no crawl has found a change yet, below which the rest is
# given to the last crawl: far below the error of the grid, a relative 1e-3.
_NEVER = 1e-12


# A rule of due dates, all times in one unit. A change takes the interval to
# base + shrink (interval - base), no change to grow x interval, and both keep
# it from `low` to `high`. `sync` is `Nutch.sync_delta`, or NO_SYNC; a page
# that would be due later than `cap` after its crawl is crawled again after
# `cycle`.
Rule = namedtuple("Rule", "base shrink grow low high sync cap cycle")
# Arrays of shape (n_pages,) of `due_slots`, which updates all but `stop`. `found`
# is the last crawl that found a change. A page that was never crawled has `last`
# = -inf. A page is never crawled from `stop` on.
DuePages = namedtuple("DuePages", "interval last found stop")


@compiled
def following(interval, since, changed, rule):
    """The next interval after a crawl, and how long until the page is due.

    `since` is the time since the last crawl that found a change, 0 if this one
    did.
    """
    if changed:
        interval = rule.base + rule.shrink * (interval - rule.base)
    else:
        interval = rule.grow * interval
    shift = 0.0
    if rule.sync != NO_SYNC:
        interval = max(interval, since)
        shift = rule.sync * since
        if shift > rule.high:
            shift = 0.0
    interval = min(max(interval, rule.low), rule.high)
    wait = max(interval - shift, rule.low)
    if wait > rule.cap:  # Nutch: 0.9 is a constant of its source
        return min(interval, 0.9 * rule.cap), rule.cycle
    return interval, wait


@plain
def due_slots(time, changes, pages, heap, rule, out):
    """Give each slot to the most overdue page, or to none (-1).

    `time` and `out` have shape (n_slots,); `out` is written. `pages` are
    `DuePages`. `heap` holds an `ENTRY` for the due date of each page, in order; it
    is used up.
    """
    last, found = pages.last, pages.found
    size = heap.size
    for j in range(time.size):
        t = time[j]
        while size and pages.stop[heap[0].page] <= t:
            size = pop(heap, size)
        out[j] = -1
        if size == 0 or heap[0].key > t:
            continue
        i = heap[0].page
        changed = look(changes, i, j, t)
        first = last[i] == -np.inf  # nothing to compare with
        if changed or first:
            found[i] = t
        wait = pages.interval[i]
        if not first:
            pages.interval[i], wait = following(wait, t - found[i], changed, rule)
        out[j], last[i] = i, t
        replace_first(heap, size, t + wait, i)


@compiled
def from_change_to_change(grid, change_rate, rule):
    """The chain of intervals at crawls that find a change, on a grid.

    Returns, for each interval of `grid`, shape (n,), rising by equal steps of
    its logarithm: the transition probabilities, shape (n, n), to the interval
    at the next crawl that finds a change; and the mean number of crawls and
    the mean time until then, shape (n,).
    """
    transition = np.zeros((grid.size, grid.size))
    crawls, time = np.zeros(grid.size), np.zeros(grid.size)
    step = math.log(grid[1] / grid[0])
    for a in range(grid.size):
        since, left = 0.0, 1.0  # left: probability of no change so far
        interval, wait = following(grid[a], 0.0, True, rule)
        while left > 0.0:
            kept = left * math.exp(-change_rate * wait)
            if kept < _NEVER:
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
    return transition, crawls, time
