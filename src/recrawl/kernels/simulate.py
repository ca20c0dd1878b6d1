"""Expected fresh time of the copies in a simulation.

`fresh_time` integrates the probability that a copy is fresh over the windows
of a run. Crawls and signals of a page come in order of time, so one pass over
both, with the borders of the windows as a third list, meets every event once.
Between two events the probability is factor x exp(-alpha t), where t is the
time since the last crawl and factor = (1 - precision)^signals, eq. (1) of
[www25]_; its integral has a closed form. After many signals the factor is so
small that nothing more can be added to the window: the pass then jumps to the
next crawl or border by bisection. The bound for this is an upper bound on the
mean of the probability over what is left of the window: the probability never
rises between crawls, so it stays below its mean over the piece before.
"""

import math
from collections import namedtuple

import numpy as np

from recrawl.kernels import compiled, fields

# In `fresh_time`: what is less than half the spacing of floats (1.1e-16)
# relative to the sum so far would be lost in rounding; ten times less is safe.
_NEGLIGIBLE = 1e-17
# Below it the integral of exp(-x) is taken from its series: the difference of
# two exponentials would lose as many digits as x has leading zeros. The first
# term that the series leaves out is x^4 / 120 < 1e-14.
_SMALL = 1e-3


# Events of page i at time[offsets[i] : offsets[i + 1]], rising.
Events = namedtuple("Events", "time offsets")
# A page of `fresh_time`: `doubt` is 1 - precision of its signals, `start` and
# `stop` are when the page comes and goes, `last` is its last crawl, -inf for
# none.
PAGE = np.dtype(fields("f8", "alpha doubt start stop last"))


@compiled
def fresh_time(pages, crawls, signals, borders, fresh):
    """Add the expected fresh time of every page in every window.

    `pages` is an array of `PAGE`, `crawls` and `signals` are `Events`. Window
    w lasts from borders[w] to borders[w + 1]. The first one begins at time 0,
    because the decay is followed from there on. `fresh`, shape (n_windows,
    n_pages), is added to in place.
    """
    for i in range(pages.size):
        _fresh_time_of_page(
            pages[i],
            crawls.time[crawls.offsets[i] : crawls.offsets[i + 1]],
            signals.time[signals.offsets[i] : signals.offsets[i + 1]],
            borders,
            fresh[:, i],
        )


@compiled
def _fresh_time_of_page(page, crawls, signals, borders, fresh):
    """`fresh_time` of one page, given its events and its column of `fresh`."""
    j = k = window = 0  # the next crawl, the next signal, the present window
    crawled, now = page.last, max(page.start, borders[0])
    # the probability is factor x decay, with decay = exp(-alpha (now - crawled)),
    # and at most `bound` from now on
    decay, factor = 1.0, 1.0 if crawled > -np.inf else 0.0
    bound = factor
    while window < borders.size - 1:
        border = borders[window + 1]
        crawl = crawls[j] if j < crawls.size else np.inf
        if bound * (border - now) <= _NEGLIGIBLE * fresh[window]:
            factor = bound = 0.0
            k += np.searchsorted(signals[k:], min(crawl, border))
        signal = signals[k] if k < signals.size else np.inf
        event = min(crawl, signal)
        end = min(event, border, page.stop)
        if end > now:
            if factor > 0.0:
                piece, decay = _decay(page.alpha, decay, end - now, end - crawled)
                piece *= factor
                fresh[window] += piece
                bound = piece / (end - now)
            now = end
        if border <= event:
            window += 1
            continue
        there = page.start <= event < page.stop
        if signal <= crawl:
            k += 1
            if there:
                factor *= page.doubt
                bound *= page.doubt
        else:
            j += 1
            if there:
                factor = bound = decay = 1.0
                crawled = event


@compiled
def _decay(alpha, decay, duration, elapsed):
    """Integrate exp(-alpha t) over a piece of time; also its last value.

    `decay` is the value at the beginning of the piece; `duration` is the
    length of the piece, and `elapsed` the time from the crawl to its end.
    """
    x = alpha * duration
    if x < _SMALL:
        piece = decay * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0))) * duration
        return piece, decay - alpha * piece
    later = math.exp(-alpha * elapsed)
    return (decay - later) / alpha, later
