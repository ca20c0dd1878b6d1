"""Loops over the crawls, slots and signals of a simulation."""

import math

import numpy as np
from numba import njit, prange


@njit(cache=True, parallel=True, error_model="numpy")
def crawl_pages(
    time,
    offsets,
    start,
    stop,
    exponentials,
    change_rate,
    last,
    change_at,
    interval,
    changed,
    fresh,
):
    """What crawls at `time` find, and the time from `start` to `stop` in which each copy is fresh.

    `last` and `change_at`, when a page was crawled and when it first changed after that, are brought up to `stop`; minus infinity
    stands for a page that was never crawled.
    """
    for i in prange(last.size):
        total = 0.0
        begin = start
        for j in range(offsets[i], offsets[i + 1]):
            interval[j] = time[j] - last[i]
            changed[j] = change_at[i] <= time[j]
            total += max(min(change_at[i], time[j]) - begin, 0.0)
            begin = last[i] = time[j]
            change_at[i] = begin + exponentials[j] / change_rate[i]
        fresh[i] = total + max(min(change_at[i], stop) - begin, 0.0)


@njit(cache=True)
def by_page(page, time, n_pages):
    """(time, offsets): rising times filed by page, those of page i being time[offsets[i] : offsets[i + 1]]; page -1 is none."""
    offsets = np.zeros(n_pages + 1, np.int64)
    for i in page:
        offsets[i + 1] += 1
    offsets[0] = 0  # here page -1 was counted
    for i in range(n_pages):
        offsets[i + 1] += offsets[i]
    at, out = offsets[:-1].copy(), np.empty(offsets[-1])
    for k in range(page.size):
        i = page[k]
        if i >= 0:
            out[at[i]] = time[k]
            at[i] += 1
    return out, offsets


@njit(cache=True)
def sort_pages(time, offsets):
    """Sort the times of each page in place, in a linear number of steps where each is near its place."""
    for i in range(offsets.size - 1):
        own = time[offsets[i] : offsets[i + 1]]
        steps = 0
        for k in range(1, own.size):
            t, j = own[k], k
            while j > 0 and own[j - 1] > t:
                own[j] = own[j - 1]
                j -= 1
            own[j] = t
            steps += k - j
            if steps > 32 * own.size:
                own.sort()
                break


@njit(cache=True, error_model="numpy")
def fresh_time(
    crawls,
    crawl_offsets,
    signals,
    signal_offsets,
    alpha,
    doubt,
    start,
    stop,
    last,
    borders,
    fresh,
):
    """Expected fresh time of every page in every window between `borders`, given its crawls and its signals, each as from `by_page`.

    Freshness is exp(-alpha t) after a crawl, and a signal multiplies it by doubt = 1 - precision. A page exists from `start` to `stop`;
    `last` is its last crawl, -inf for none.
    """
    for i in range(alpha.size):
        begin, since, window = last[i], max(start[i], borders[0]), 0
        decay, decay_at = 1.0, begin  # exp(-alpha t), known at that time
        belief = most = (
            1.0 if begin > -np.inf else 0.0
        )  # most: what freshness is at most
        j, k = crawl_offsets[i], signal_offsets[i]
        while window < borders.size - 1:
            crawl = crawls[j] if j < crawl_offsets[i + 1] else np.inf
            if (
                most * (borders[window + 1] - since) <= 1e-17 * fresh[window, i]
            ):  # less is lost in rounding
                belief = most = 0.0
                k += np.searchsorted(
                    signals[k : signal_offsets[i + 1]], min(crawl, borders[window + 1])
                )
            signal = signals[k] if k < signal_offsets[i + 1] else np.inf
            time = min(crawl, signal)
            over = borders[window + 1] <= time
            end = min(time, borders[window + 1], stop[i])
            if end > since:
                if belief > 0.0:
                    if decay_at != since:
                        decay = math.exp(-alpha[i] * (since - begin))
                    x = alpha[i] * (end - since)
                    if (
                        x < 1e-3
                    ):  # the difference of the two exponentials would be all rounding
                        piece = (
                            decay
                            * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0)))
                            * (end - since)
                        )
                        decay -= alpha[i] * piece
                    else:
                        later = math.exp(-alpha[i] * (end - begin))
                        piece = (decay - later) / alpha[i]
                        decay = later
                    decay_at = end
                    piece *= belief
                    fresh[window, i] += piece
                    most = piece / (end - since)
                since = end
            if over:
                window += 1
            else:
                there = start[i] <= time < stop[i]
                if signal <= crawl:
                    k += 1
                    if there:
                        belief *= doubt[i]
                        most *= doubt[i]
                else:
                    j += 1
                    if there:
                        belief = most = decay = 1.0
                        begin = decay_at = time
