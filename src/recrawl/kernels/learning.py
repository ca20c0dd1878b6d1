"""Crawling by draws from, or the means of, the posteriors of change rates.

Every slot goes through all pages, because a draw of each page for each slot
leaves no bound that holds until a later slot. A value is computed only where
its upper bounds, which cost a few products, reach the largest value so far.
With x = change_rate elapsed it is importance / change_rate gamma2(x), and

    gamma2(x) = 1 - (1 + x) exp(-x) <= min(1, x^2 / (2 + 4 x / 3)) .

Both sides of the second bound are 0 at x = 0, and the derivative of the left
one, x exp(-x), is at most that of the right one, x (1 + x / 3) / (1 + 2 x / 3)^2:
term by term, (1 + 2 x / 3)^2 = 1 + 4 x / 3 + 4 x^2 / 9 is at most
exp(x) (1 + x / 3) = 1 + 4 x / 3 + 5 x^2 / 6 + ...
The random numbers come from the Generator of the caller.
"""

import numpy as np

from recrawl.kernels import compiled, objectives
from recrawl.kernels.changes import look
from recrawl.kernels.online import gamma_step

# What is taken for the change rate: the mean of the posterior, a draw for every
# slot, or a draw that is held until the next crawl of its page.
MEAN, THOMPSON, HELD = range(3)
_SAFE = 1.0 - 1e-9  # the rounding of a value and of its bound stay inside


@compiled
def _believed(how, shape, rate, rng):
    """The change rate that a page is taken to have."""
    return (shape if how == MEAN else rng.standard_gamma(shape)) / rate


@compiled
def slots(how, exploration, pages, posterior, presence, changes, times, rng, out):
    """Page of each slot; `posterior`, shape and rate, and `out` are written.

    pages : importance and last crawl of each page, which is written. presence :
    when pages come and go. A slot explores with probability `exploration`.
    """
    (importance, last), (shape, rate) = pages, posterior
    start, stop = presence
    believed = np.empty(last.size)
    for i in range(last.size):
        believed[i] = _believed(how, shape[i], rate[i], rng)
    for j in range(times.size):
        t, best, winner = times[j], -1.0, -1
        explore = exploration > 0.0 and rng.random() < exploration
        for i in range(last.size):
            if not start[i] <= t < stop[i]:
                continue
            if explore:
                value = rng.random()
            else:
                if how == THOMPSON:
                    believed[i] = _believed(how, shape[i], rate[i], rng)
                elapsed, least = t - last[i], _SAFE * best
                x = believed[i] * elapsed
                most = importance[i] * x * elapsed / (2.0 + 4.0 / 3.0 * x)
                if importance[i] < least * believed[i] or most < least:
                    continue
                profile = objectives.profile(objectives.FRESHNESS, x)
                value = importance[i] / believed[i] * profile
            if value > best:
                best, winner = value, i
        i = out[j] = winner
        if i < 0:
            continue
        changed = look(changes, i, j, t)
        if 0.0 < t - last[i] < np.inf:
            shape[i], rate[i] = gamma_step(changed, t - last[i], shape[i], rate[i])
        last[i] = t
        believed[i] = _believed(how, shape[i], rate[i], rng)
