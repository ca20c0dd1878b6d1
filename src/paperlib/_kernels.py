"""Small compiled functions: of one page, of one crawl, of times and histories. They draw no random numbers and check nothing."""

import contextlib
import functools
import math

from numba import get_num_threads, njit, prange, set_num_threads, vectorize

_WORTH_A_THREAD = 50_000


@contextlib.contextmanager
def threads_for(size):
    """One thread for a small array: on a busy machine the wait for a second thread takes longer than the work."""
    before = get_num_threads()
    set_num_threads(before if size >= _WORTH_A_THREAD else 1)
    try:
        yield
    finally:
        set_num_threads(before)


def ufunc(signature):
    """`numba.vectorize` for one signature, at the first call: every one takes a tenth of a second, from the cache too."""

    def decorate(function):
        made = functools.cache(lambda: vectorize([signature], cache=True)(function))
        return functools.wraps(function)(lambda *args: made()(*args))

    return decorate


@ufunc("f8(b1,f8,f8,f8)")
def stochastic_step(changed, estimate, crawl_rate, step):
    """estimate + step (changed (estimate + crawl_rate) - estimate)."""
    return estimate + step * (crawl_rate if changed else -estimate)


@ufunc("f8(f8,f8)")
def poisson_freshness(change_rate, crawl_rate):
    """crawl_rate / (crawl_rate + change_rate), 1 for a page that never changes."""
    return crawl_rate / (crawl_rate + change_rate) if change_rate > 0.0 else 1.0


@ufunc("f8(f8,f8)")
def interval_freshness(change_rate, crawl_rate):
    """(1 - exp(-x)) / x with x = change_rate / crawl_rate, 1 for a page that never changes."""
    if change_rate == 0.0:
        return 1.0
    return -math.expm1(-change_rate / crawl_rate) * crawl_rate / change_rate if crawl_rate > 0.0 else 0.0


@ufunc("f8(f8,f8,f8,f8)")
def counted_rate(n_changed, n, offset, crawl_rate):
    """crawl_rate n_changed / (n + offset - n_changed)."""
    return crawl_rate * n_changed / (n + offset - n_changed)


@ufunc("f8(b1,f8,f8,f8,f8,f8)")
def momentum_step(changed, momentum, estimate, crawl_rate, step, omega):
    """momentum + step (changed (estimate + crawl_rate) - estimate - omega momentum)."""
    return momentum + step * ((crawl_rate if changed else -estimate) - omega * momentum)


@ufunc("f8(f8,f8)")
def harmonic_penalty(change_rate, crawl_rate):
    """log(1 + change_rate / crawl_rate), 0 for a page that never changes."""
    if change_rate == 0.0:
        return 0.0
    return math.log1p(change_rate / crawl_rate) if crawl_rate > 0.0 else math.inf


@njit(cache=True, error_model="numpy", fastmath=True)
def expm1(x):
    """exp(x) - 1 for x from 0 to 40, to a relative 1e-14; above, some large number. A loop over it becomes vector instructions."""
    y = min(x, 300.0) / 128.0
    e = y * (1.0 + y / 2.0 * (1.0 + y / 3.0 * (1.0 + y / 4.0 * (1.0 + y / 5.0 * (1.0 + y / 6.0 * (1.0 + y / 7.0 * (1.0 + y / 8.0)))))))
    e *= 2.0 + e  # exp(2 y) - 1, and six times more up to exp(x) - 1
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    return e


@njit(cache=True, error_model="numpy", fastmath=True)
def gamma_update(changed, interval, shape, rate):
    """Take one crawl of each page into its gamma posterior, in place."""
    for i in range(changed.size):
        per_change = rate[i] / shape[i]
        x = min(max(interval[i] / per_change, 1e-100), 40.0)  # beyond, a change tells nothing
        e = expm1(x)
        seen = x / e
        count = seen * seen * (1.0 + e)
        time = count - seen if x > 1e-3 else x * (0.5 - x / 6.0)  # the difference of small numbers is all rounding
        bit = 1.0 if changed[i] else 0.0
        shape[i] += bit * count
        rate[i] += bit * time * per_change + (1.0 - bit) * interval[i]


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


@njit(cache=True, parallel=True, error_model="numpy")
def crawl_pages(time, offsets, start, stop, exponentials, change_rate, last, change_at, interval, changed, fresh):
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
def interleave(interval_1, changed_1, offsets_1, interval_2, changed_2, offsets_2, interval, changed):
    """Page after page, the crawls of the first history and then those of the second."""
    k = 0
    for i in range(offsets_1.size - 1):
        for j in range(offsets_1[i], offsets_1[i + 1]):
            interval[k], changed[k] = interval_1[j], changed_1[j]
            k += 1
        for j in range(offsets_2[i], offsets_2[i + 1]):
            interval[k], changed[k] = interval_2[j], changed_2[j]
            k += 1
