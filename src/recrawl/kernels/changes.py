"""What crawls find: whether a page has changed since the crawl before."""

from typing import NamedTuple

import numpy as np

from recrawl.kernels import compiled

__all__ = ["UNTOLD", "Changes", "look"]


class Changes(NamedTuple):
    """Changes that no crawl has seen yet, and changes that are reported falsely.

    The changes of page i are those from next[i] to stop[i] of `time`; `next` is
    written as crawls see them. A crawl in slot j reports a change, whatever
    happened, if false[j]; an empty `false` means that there is no such slot.
    """

    time: np.ndarray
    next: np.ndarray
    stop: np.ndarray
    false: np.ndarray


_NONE = np.empty(0, np.int64)
#: For a policy that does not learn what its crawls find.
UNTOLD = Changes(np.empty(0), _NONE, _NONE, np.empty(0, bool))


@compiled
def look(changes, i, j, t):
    """Crawl page i in slot j at time t: is a change reported, and when was the last?

    The time is -inf if there was none since the crawl before.
    """
    latest = -np.inf
    while changes.next[i] < changes.stop[i] and changes.time[changes.next[i]] <= t:
        latest = changes.time[changes.next[i]]
        changes.next[i] += 1
    return latest > -np.inf or (changes.false.size > 0 and changes.false[j]), latest
