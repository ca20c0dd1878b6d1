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
    """Whether a crawl of page i in slot j at time t reports a change."""
    changed = changes.false.size > 0 and changes.false[j]
    while changes.next[i] < changes.stop[i] and changes.time[changes.next[i]] <= t:
        changed = True
        changes.next[i] += 1
    return changed
