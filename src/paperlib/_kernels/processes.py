"""Two histories of the same pages in one.

The crawls of page i in the joined history are those of the first history, then
those of the second. One pass over the pages writes them in this order. The
same with NumPy's indexed assignment takes two to three times as long, because
it needs an index for every crawl (measured).
"""

from paperlib._kernels import compiled


@compiled
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
    """Write page after page the crawls of both histories, in the ragged form.

    `interval` and `changed` have the length of both histories together.
    """
    k = 0
    for i in range(offsets_1.size - 1):
        for j in range(offsets_1[i], offsets_1[i + 1]):
            interval[k], changed[k] = interval_1[j], changed_1[j]
            k += 1
        for j in range(offsets_2[i], offsets_2[i + 1]):
            interval[k], changed[k] = interval_2[j], changed_2[j]
            k += 1
