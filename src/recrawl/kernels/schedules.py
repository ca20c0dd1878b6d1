"""From crawl rates to crawl times, and to slots.

`ordered_times` turns exponential variables into ordered uniform times, which
is what the times of a Poisson process are, given their number.

`earliest_deadline_first` gives every slot to a page. The visits of a page are
unit jobs: visit k = 1, 2, ... may run from slot floor((k - 1) / share) on, its
release, and has to be done before slot ceil(k / share), its deadline. Of the
released visits the one with the earliest deadline runs; Liu and Layland (1973)
show that if any schedule meets all deadlines, this one does, and the shares
sum to one. A page has one visit at a time, either waiting for its release or
ready to run. Two heaps hold the pages: those that wait, by release, and
those that are ready, by deadline; a slot moves the pages that are due from the
first heap to the second and takes the first of it, O(log n_pages).

The kernels draw no random numbers and check no arguments.
"""

import numpy as np

from recrawl.kernels import compiled
from recrawl.kernels.heaps import pop, push


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
def earliest_deadline_first(rate, total, waiting, ready, out):
    """Write the page of each slot into `out`, shape (n_slots,).

    The share of a page is its rate, shape (n_pages,), divided by `total`.
    Rounding may leave a slot in which no visit is released: the visit that is
    released next then runs. The release and deadline of a visit are computed
    from its number, not added up, so that no rounding accumulates. `waiting` and
    `ready` give room for heaps, shape (n_pages,).
    """
    visits = np.zeros(rate.size)
    n_waiting = n_ready = 0
    for i in range(rate.size):
        if rate[i] > 0.0:
            n_waiting = push(waiting, n_waiting, 0.0, i)
    for slot in range(out.size):
        while n_waiting and (waiting[0].key <= slot or n_ready == 0):
            i = waiting[0].page
            n_waiting = pop(waiting, n_waiting)
            deadline = np.ceil((visits[i] + 1) * total / rate[i])
            n_ready = push(ready, n_ready, deadline, i)
        i = out[slot] = ready[0].page
        n_ready = pop(ready, n_ready)
        visits[i] += 1
        n_waiting = push(waiting, n_waiting, np.floor(visits[i] * total / rate[i]), i)
