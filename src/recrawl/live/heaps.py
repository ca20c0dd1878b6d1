"""Heaps of pages by a key: equal keys come in the order of the pages.

A heap is an array of `ENTRY`, of which the first n count. Entries have four
children, which are in one or two lines of the cache: half as many lines are read as
for two. An array in order is a heap.
"""

import numpy as np

from recrawl.compiled import inlined, plain

ENTRY = np.dtype([("key", "f8"), ("page", "i8")])
_CHILDREN = 4


@inlined
def _before(heap, p, key, page):
    """Whether an entry precedes another: by key, then by page."""
    return heap[p].key < key or (heap[p].key == key and heap[p].page < page)


@inlined
def _set(entry, key, page):
    """Write an entry; numba would assign the record byte by byte."""
    entry.key, entry.page = key, page


@plain
def push(heap, n, key, page):
    """Add an entry to the n of a heap; returns their number."""
    p = n
    while p > 0 and not _before(heap, (p - 1) // _CHILDREN, key, page):
        parent = heap[(p - 1) // _CHILDREN]
        _set(heap[p], parent.key, parent.page)
        p = (p - 1) // _CHILDREN
    _set(heap[p], key, page)
    return n + 1


@plain
def replace_first(heap, n, key, page):
    """Replace the first of the n entries; the new one sinks to its place."""
    p = 0
    while True:
        first = _CHILDREN * p + 1
        q = first
        for r in range(first + 1, min(first + _CHILDREN, n)):
            if _before(heap, r, heap[q].key, heap[q].page):
                q = r
        if q >= n or not _before(heap, q, key, page):
            break
        _set(heap[p], heap[q].key, heap[q].page)
        p = q
    _set(heap[p], key, page)


@plain
def pop(heap, n):
    """Take the first of the n entries out; returns their number."""
    replace_first(heap, n - 1, heap[n - 1].key, heap[n - 1].page)
    return n - 1
