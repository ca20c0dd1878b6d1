"""Histories of many pages."""

from numba import njit


@njit(cache=True)
def interleave(
    interval_1,
    changed_1,
    offsets_1,
    interval_2,
    changed_2,
    offsets_2,
    interval,
    changed,
):
    """Page after page, the crawls of the first history and then those of the second."""
    k = 0
    for i in range(offsets_1.size - 1):
        for j in range(offsets_1[i], offsets_1[i + 1]):
            interval[k], changed[k] = interval_1[j], changed_1[j]
            k += 1
        for j in range(offsets_2[i], offsets_2[i + 1]):
            interval[k], changed[k] = interval_2[j], changed_2[j]
            k += 1
