"""From crawl rates to times and slots."""

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def ordered_times(exponentials, offsets, duration, time):
    """Per page the partial sums of its exponentials, of which it has one more than times, scaled so that all make up `duration`."""
    for i in range(offsets.size - 1):
        start = offsets[i] + i
        n = offsets[i + 1] - offsets[i]
        total = 0.0
        for j in range(start, start + n + 1):
            total += exponentials[j]
        part = 0.0
        for j in range(n):
            part += exponentials[start + j]
            time[offsets[i] + j] = duration * (part / total)


@njit(cache=True)
def _sift_down(heap, key, size, k):
    """Move entry k of a heap of pages to where its key belongs; smaller keys first, then smaller pages."""
    while True:
        child = 2 * k + 1
        if child >= size:
            return
        if child + 1 < size and _first(key, heap[child + 1], heap[child]):
            child += 1
        if not _first(key, heap[child], heap[k]):
            return
        heap[k], heap[child] = heap[child], heap[k]
        k = child


@njit(cache=True)
def _sift_up(heap, key, k):
    while k and _first(key, heap[k], heap[(k - 1) // 2]):
        heap[k], heap[(k - 1) // 2] = heap[(k - 1) // 2], heap[k]
        k = (k - 1) // 2


@njit(cache=True)
def _first(key, i, j):
    return key[i] < key[j] or (key[i] == key[j] and i < j)


@njit(cache=True)
def earliest_deadline_first(rate, total, out):
    """Visit k = 1, 2, ... of page i may take the slots from floor((k - 1) / share) on and must be done before ceil(k / share), where
    its share is rate / total.

    Of the visits that may run, the one with the least deadline gets the slot. Should rounding leave a slot without one, the visit that
    may run next gets it.
    """
    n = rate.size
    release, deadline = np.zeros(n), np.empty(n)
    waiting, ready, visits = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n, np.int64),
    )
    n_waiting = n_ready = 0
    for i in range(n):
        if rate[i] > 0.0:
            waiting[n_waiting] = i
            deadline[i] = np.ceil(total / rate[i])
            n_waiting += 1  # all released at 0: a heap, for pages rise
    for slot in range(out.size):
        while n_waiting and (release[waiting[0]] <= slot or n_ready == 0):
            ready[n_ready] = waiting[0]
            n_ready += 1
            _sift_up(ready, deadline, n_ready - 1)
            n_waiting -= 1
            waiting[0] = waiting[n_waiting]
            _sift_down(waiting, release, n_waiting, 0)
        i = ready[0]
        out[slot] = i
        n_ready -= 1
        ready[0] = ready[n_ready]
        _sift_down(ready, deadline, n_ready, 0)
        visits[i] += 1
        release[i] = np.floor(visits[i] * total / rate[i])
        deadline[i] = np.ceil((visits[i] + 1) * total / rate[i])
        waiting[n_waiting] = i
        n_waiting += 1
        _sift_up(waiting, release, n_waiting - 1)
