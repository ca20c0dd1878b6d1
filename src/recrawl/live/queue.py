"""Priority queue of pages by a key, as a winner tree.

Each page has a leaf. A node has the smaller entry of its two children, ties to the
lower page, so that node 1 has the first page of all. A new key of a page is compared on
the way up to the root, until a node stays as it is. A page that is not in the queue
has the key infinity.
"""

import numpy as np

from recrawl.compiled import plain

ENTRY = np.dtype([("key", "f8"), ("page", "i8")])


def new_queue(n_pages):
    """A queue of no page, with a leaf for each."""
    queue = np.zeros(max(2 * n_pages, 2), ENTRY)
    queue["key"] = np.inf
    queue["page"][n_pages:] = np.arange(queue.size - n_pages)
    return queue


@plain
def write(entry, key, page):
    """Write an entry; numba would assign the record byte by byte."""
    entry.key, entry.page = key, page


@plain
def set_key(queue, page, key):
    """Give a page another key."""
    k = queue.size // 2 + page
    if queue[k].key == key:
        return
    queue[k].key = key
    while k > 1:
        first, other = queue[k], queue[k ^ 1]
        if other.key < first.key or (
            other.key == first.key and other.page < first.page
        ):
            first = other
        k //= 2
        if queue[k].key == first.key and queue[k].page == first.page:
            return
        write(queue[k], first.key, first.page)
