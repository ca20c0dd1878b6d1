"""From crawl rates to crawl times, and to slots.

`ordered_times` turns exponential variables into ordered uniform times, which
is what the times of a Poisson process are, given their number.

`earliest_deadline_first` gives every slot to a page. The visits of a page are
unit jobs: visit k = 1, 2, ... may run from slot floor((k - 1) / share) on, its
release, and has to be done before slot ceil(k / share), its deadline. Of the
released visits the one with the earliest deadline runs; Liu and Layland (1973)
show that if any schedule meets all deadlines, this one does, and the shares
sum to one. A page has one visit at a time, either waiting for its release or
ready to run. Two binary heaps hold the pages: those that wait, by release, and
those that are ready, by deadline; a slot moves the pages that are due from the
first heap to the second and takes the first of it, O(log n_pages).

The kernels draw no random numbers and check no arguments.
"""

import numpy as np

from paperlib._kernels import compiled


@compiled
def ordered_times(exponentials, offsets, duration, time):
    """Write the ordered times in (0, duration] of every page.

    Page i has the times time[offsets[i]:offsets[i + 1]], and one exponential
    variable more than it has times: the partial sums of n + 1 exponentials,
    divided by their total, are n ordered uniform variables.
    """
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


@compiled
def _first(key, i, j):
    """Whether page i comes before page j: by key, then by index."""
    return key[i] < key[j] or (key[i] == key[j] and i < j)


@compiled
def _sift_down(heap, key, size, k):
    """Move entry k of a heap of pages down to where its key belongs."""
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


@compiled
def _pop(heap, key, size):
    """Take the first page off a heap of `size` pages."""
    page = heap[0]
    heap[0] = heap[size - 1]
    _sift_down(heap, key, size - 1, 0)
    return page


@compiled
def _push(heap, key, size, page):
    """Add a page to a heap of `size` pages."""
    heap[size] = page
    k = size
    while k and _first(key, heap[k], heap[(k - 1) // 2]):
        # a swap compiles to faster code than moving a hole
        heap[k], heap[(k - 1) // 2] = heap[(k - 1) // 2], heap[k]
        k = (k - 1) // 2


@compiled
def earliest_deadline_first(rate, total, out):
    """Write the page of each slot into `out`, shape (n_slots,).

    The share of a page is its rate, shape (n_pages,), divided by `total`.
    Rounding may leave a slot in which no visit is released: the visit that is
    released next then runs. The release and deadline of a visit are computed
    from its number, not added up, so that no rounding accumulates.
    """
    n = rate.size
    release, deadline, visits = np.zeros(n), np.ceil(total / rate), np.zeros(n)
    waiting, ready = np.empty(n, np.int64), np.empty(n, np.int64)
    n_waiting = n_ready = 0
    # All are released at 0: indices that rise are a heap. (A loop compiles in a
    # third of the time of NumPy's functions with an assignment to a slice.)
    for i in range(n):
        if rate[i] > 0.0:
            waiting[n_waiting] = i
            n_waiting += 1
    for slot in range(out.size):
        while n_waiting and (release[waiting[0]] <= slot or n_ready == 0):
            _push(ready, deadline, n_ready, _pop(waiting, release, n_waiting))
            n_ready += 1
            n_waiting -= 1
        i = _pop(ready, deadline, n_ready)
        out[slot] = i
        visits[i] += 1
        release[i] = np.floor(visits[i] * total / rate[i])
        deadline[i] = np.ceil((visits[i] + 1) * total / rate[i])
        _push(waiting, release, n_waiting, i)
        n_ready -= 1
        n_waiting += 1
