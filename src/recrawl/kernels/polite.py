"""Greedy slots under limits of hosts, and slots that explore.

The algorithm. Every host has a bucket of tokens; a crawl takes one, and one
comes every `spacing`. The pages of a host can be crawled while it has a token.
The bucket is stored as `full_at`, the time at which it is full again. Which
pages can be crawled changes from slot to slot, so a slot looks at all of them;
it goes to the page of largest crawl value, ties to the lower index. A slot
that explores goes to the page crawled longest ago.

A value is computed only where an upper bound lets it win. Since the slot `at`
in which it was `known`, in the state u = alpha iota, a value has grown in the
time d by at most slope d (u + alpha d / 2) with slope = importance exp(-u): by
Lemma 4 of [www25]_ V' = importance alpha exp(-alpha iota) psi, the exponential
falls, and psi is at most iota. A signal makes the value unknown.
"""

import math

import numpy as np

from recrawl.kernels import compiled, fields
from recrawl.kernels.changes import look
from recrawl.kernels.crawl_value import CONSTANTS, effective, value

# Tokens that a host can save up. With one, a token that comes between two
# slots would lose the time until the next slot.
_BURST = 2
_SAFE = 1.0 - 1e-7  # the rounding of a value and of its bound stays well inside

PAGE = np.dtype(
    [
        ("constants", CONSTANTS),
        *fields("f8", "importance last known at u slope"),
        *fields("i8", "host n_signals"),
    ]
)
HOST = np.dtype(fields("f8", "spacing full_at"))
# time and explore are given; the others say which page is crawled (-1 for
# none), after which interval and how many signals, and whether it had changed
SLOT = np.dtype(
    fields("f8", "time interval")
    + fields("i8", "page n_signals")
    + fields("?", "explore changed")
)


@compiled
def free_at(host):
    """The time from which a host has a token; inf for one that allows no crawl."""
    if host.spacing == np.inf:
        return np.inf
    return host.full_at - (_BURST - 1) * host.spacing


@compiled
def waits(host, t):
    """Whether a host has no token at time t."""
    return free_at(host) > t


@compiled
def spend_token(host, t):
    """Take one token of a host for a crawl at time t."""
    host.full_at = max(host.full_at, t) + host.spacing


@compiled
def _longest_ago(pages, hosts, t):
    """Page crawled longest ago of those that can be crawled; -1 for none."""
    winner = -1
    for i in range(pages.size):
        if not waits(hosts[pages[i].host], t) and (
            winner < 0 or pages[i].last < pages[winner].last
        ):
            winner = i
    return winner


@compiled
def _largest_value(pages, hosts, t):
    """Page of largest value of those that can be crawled; -1 for none."""
    best, winner = -1.0, -1
    for i in range(pages.size):
        page = pages[i]
        if waits(hosts[page.host], t):
            continue
        if page.known < np.inf:
            d = t - page.at
            rise = page.slope * d * (page.u + 0.5 * page.constants.alpha * d)
            if page.known + rise < best * _SAFE:
                continue
        elapsed = t - page.last
        page.known = value(page.constants, elapsed, page.n_signals)
        page.at, page.u = t, effective(page.constants, elapsed, page.n_signals)
        page.slope = page.importance * math.exp(-page.u)
        if page.slope == 0.0:  # not inf times 0, which is NaN
            page.u = 0.0
        if page.known > best:
            best, winner = page.known, i
    return winner


@compiled
def _crawl(page, hosts, slot):
    """Crawl a page in a slot: after which interval is written to the slot."""
    t = slot.time
    slot.interval, slot.n_signals = t - page.last, page.n_signals
    page.last, page.n_signals = t, 0
    page.known, page.at, page.u, page.slope = 0.0, t, 0.0, page.importance
    spend_token(hosts[page.host], t)


@compiled
def polite_slots(pages, hosts, slots, signals, changes, again, in_pairs):
    """Give each slot to a page.

    Parameters
    ----------
    pages, hosts, slots : records of dtype `PAGE`, `HOST`, `SLOT`
        Written in place.
    signals : tuple of ndarray
        Page and time of each signal, in order of time.
    changes : Changes
        What the crawls find, or `UNTOLD`.
    again : int
        Page that the next slot that explores takes, if it can; -1 for none.
    in_pairs : bool
        Whether a page that is explored is taken again by the next such slot.

    Returns
    -------
    int
        `again` for the slots to come.
    """
    for i in range(pages.size):
        pages[i].known = np.inf
    signal_page, signal_time = signals
    k = 0
    for j in range(slots.size):
        slot = slots[j]
        while k < signal_time.size and signal_time[k] <= slot.time:
            page = pages[signal_page[k]]
            page.n_signals += 1
            page.known = np.inf
            k += 1
        if not slot.explore:
            winner = _largest_value(pages, hosts, slot.time)
        elif again >= 0 and not waits(hosts[pages[again].host], slot.time):
            winner, again = again, -1
        else:
            winner = _longest_ago(pages, hosts, slot.time)
            again = winner if in_pairs else again
        slot.page = winner
        if winner >= 0:
            _crawl(pages[winner], hosts, slot)
            if changes.next.size > 0:
                slot.changed, _ = look(changes, winner, j, slot.time)
    return again
