r"""Crawl rates that spend a bandwidth: one unknown, many pages.

Every optimum of `recrawl.science.allocation` has one multiplier for all pages. Given
the multiplier, each crawl rate is known by itself, so that the kernels look
for the number at which the crawl rates sum to the bandwidth; one pass over all
pages, in parallel where that gains, gives the sum. No pages are sorted.

In `limited_rates` the rate of a page is that at which the crawl value is the
price of a crawl, between the limits of the page; a bracketed search, as the sum
may jump. The same once for each host that exceeds its limit (`host_rates`): the
hosts in parallel, the pages of one host in one thread.

Each proof that a search converges stands beside its code. The kernels draw no
random numbers and check no arguments; they write the rates in place.
`limited_rates` returns NaN where it did not converge.

The helpers with inline="always" become part of the kernel that calls them:
their prange loops are parallel in a parallel kernel and plain loops otherwise.
"""

import math

import numpy as np
from numba import njit, prange

from recrawl.kernels import compiled, fields, parallel, plain
from recrawl.kernels.objectives import (
    elapsed_at,
    poisson_rate,
    poisson_value,
    value,
)

# Newton's method needs some ten steps; a search that needs more than this has
# met numbers that are not finite.
_MAX_STEPS = 200

# Relative error to which rates sum to the bandwidth. One correction reaches it,
# unless it takes a rate below its minimum.
_SPENT, _MAX_CORRECTIONS = 1e-12, 4


# One page under limits: value_per_cost is importance / cost, or 0 where no crawl
# gains anything; low and high are the least and the greatest rate.
PAGE = np.dtype(fields("f8", "change_rate value_per_cost cost low high"))


@compiled
def pages_by_host(member, offsets):
    """Indices of the pages, sorted by host: a counting sort, which is stable.

    `member` is the host of each page, and host h has the places
    offsets[h]:offsets[h + 1].
    """
    free, order = offsets[:-1].copy(), np.empty_like(member)
    for i in range(member.size):
        order[free[member[i]]] = i
        free[member[i]] += 1
    return order


@compiled
def _rate_at(page, kind, multiplier):
    """Rate of a page at a multiplier, within its limits."""
    objective, tau, poisson = kind
    level = multiplier / page["value_per_cost"]  # NaN or inf where that is 0
    if not level < np.inf:
        return page["low"]
    if level == 0.0:
        return page["high"]
    if poisson:
        rate = poisson_rate(objective, page["change_rate"], tau, level)
    else:
        rate = 1.0 / elapsed_at(objective, page["change_rate"], tau, level)
    return min(max(rate, page["low"]), page["high"])


@compiled
def _gain_at(page, kind, rate):
    """What the first unit of bandwidth beyond a rate gains on a page."""
    objective, tau, poisson = kind
    if page["value_per_cost"] == 0.0:
        return 0.0
    if poisson:
        gain = poisson_value(objective, page["change_rate"], tau, rate)
    else:
        gain = value(objective, page["change_rate"], tau, 1.0 / rate)
    return page["value_per_cost"] * gain


@compiled
def _next_share(x, fx, y, fy, z, fz):
    """Where to look next between x and y, as a share of the way to y.

    Chandrupatla's rule (1997): inverse quadratic interpolation where the three
    points show that it is safe, else bisection. The secant as long as z, the
    third point, is at infinity.
    """
    if z == np.inf:
        return fx / (fx - fy)
    xi, phi = (x - y) / (z - y), (fx - fy) / (fz - fy)
    if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
        straight = fx / (fy - fx) * fz / (fy - fz)
        return straight + (z - x) / (y - x) * fx / (fz - fx) * fy / (fz - fy)
    return 0.5


@njit(inline="always")
def _ask(pages, kind, multiplier, offsets, limit, rate, asked):
    """Write the rates at a multiplier, and what the pages of each host spend.

    Returns the bandwidth that is granted: no host gets more than its limit.
    """
    granted = 0.0
    for i in prange(rate.size):
        rate[i] = _rate_at(pages[i], kind, multiplier)
    for h in prange(limit.size):
        total = 0.0
        for i in range(offsets[h], offsets[h + 1]):
            total += pages[i]["cost"] * rate[i]
        asked[h] = total
        granted += min(total, limit[h])
    return granted


@njit(inline="always")
def _first_guess(pages, kind, bandwidth):
    """A guess of 1 / sqrt(multiplier), from rates that are all the same.

    Exact where V is proportional to the square of time and no limit is active.
    """
    cost = 0.0
    for i in prange(pages.size):
        cost += pages[i]["cost"] if pages[i]["value_per_cost"] > 0.0 else 0.0
    even, roots = bandwidth / cost, 0.0
    while roots == 0.0 and even > 0.0:  # rates that are too high gain nothing
        for i in prange(pages.size):
            page = pages[i]
            gain = _gain_at(page, kind, min(max(even, page["low"]), page["high"]))
            roots += page["cost"] * math.sqrt(gain) if gain < np.inf else 0.0
        even *= 0.5
    return cost / roots


@compiled
def _greatest_gain(pages, kind, offsets, limit, asked):
    """What a little more bandwidth gains where all rates are the least ones."""
    greatest = 0.0
    for h in range(limit.size):
        if asked[h] < limit[h]:
            for i in range(offsets[h], offsets[h + 1]):
                page = pages[i]
                if page["low"] < page["high"]:
                    greatest = max(greatest, _gain_at(page, kind, page["low"]))
    return greatest


@plain
def _copy(source, to):
    """Copy an array; to compile the check of sizes in `to[:] = source` takes 4 s."""
    for i in range(source.size):
        to[i] = source[i]


# Relative width of the last bracket: inside it the sum of the rates is noise.
_WIDTH = 1e-14
# Between numbers that differ by a larger factor the search is for the exponent:
# bisection of c itself would take a step for each power of 2.
_BISECT_EXPONENT_ABOVE = 1e3


@parallel
def limited_rates(pages, kind, offsets, limit, bandwidth, rate, asked):
    """Rates under limits that spend `bandwidth`. Returns the multiplier.

    `pages` holds records of PAGE, sorted by host: the pages
    offsets[h]:offsets[h + 1] of host h may spend limit[h]. `kind` is the
    number of the objective, its tau, and whether crawls are at Poisson times.
    Writes the rates of all pages, and what the pages of each host spend at
    them; a host whose pages spend more than its limit is left to `host_rates`.
    The multiplier is 0 where bandwidth is left over, and NaN if the search did
    not converge.

    At a multiplier each host is granted what its pages spend, or its limit if
    that is less. The sum of what is granted rises with
    c = 1 / sqrt(multiplier), often in proportion, and is the bandwidth at the
    c of the optimum. There the active limits are those of the hosts whose pages would
    spend more: one search, without rounds. It keeps the rates at both ends of
    its bracket of c, and interpolates between them at last. So it spends the
    bandwidth also where rates jump: where pages are given up (a deadline at
    equal intervals), and where the step from one floating-point number to the
    next is large. Where several multipliers spend the bandwidth, it finds the
    least, which is what a little more bandwidth gains.
    """
    granted = 0.0
    # A loop because each call of `_ask` takes 2 s to compile.
    for multiplier in (0.0, np.inf):
        granted = _ask(pages, kind, multiplier, offsets, limit, rate, asked)
        if multiplier == 0.0 and granted <= bandwidth:
            return 0.0
    # x is the newest c, y the other end of the bracket, z one of both before
    x, fx = 0.0, granted - bandwidth
    if fx >= 0.0:
        return _greatest_gain(pages, kind, offsets, limit, asked)
    # Rows for both ends of the bracket and for the newest c. Rows change roles
    # by number: numba mixes up arrays that are swapped between parallel loops.
    rates, asks = np.empty((3, rate.size)), np.empty((3, asked.size))
    below, above, trial = 0, 1, 2
    _copy(rate, rates[below])
    _copy(asked, asks[below])
    y = fy = z = fz = np.inf
    new, stride = _first_guess(pages, kind, bandwidth), 2.0
    for _ in range(_MAX_STEPS):
        multiplier = 1.0 / (new * new)
        off = _ask(pages, kind, multiplier, offsets, limit, rates[trial], asks[trial])
        off -= bandwidth
        if (off > 0.0) == (fx > 0.0):
            z, fz = x, fx
        else:
            z, fz, y, fy = y, fy, x, fx
        x, fx = new, off
        if off > 0.0:
            above, trial = trial, above
        else:
            below, trial = trial, below
        if y == np.inf:  # c is larger by an unknown factor
            new, stride = x * stride, stride * stride
            continue
        if y == 0.0 and z < np.inf:  # likewise smaller; the secant was no help
            new, stride = x / stride, stride * stride
            continue
        if min(x, y) * _BISECT_EXPONENT_ABOVE < max(x, y) and y > 0.0:
            new = math.sqrt(x) * math.sqrt(y)  # halve the range of the exponents
            continue
        least = _WIDTH * max(x, y) / abs(y - x)
        if least >= 0.5:
            break
        share = _next_share(x, fx, y, fy, z, fz)
        new = x + min(max(share, least), 1.0 - least) * (y - x)
    else:
        return np.nan
    if fx > 0.0:
        x, fx, y, fy = y, fy, x, fx
    if fy == np.inf and fx < -_SPENT * bandwidth:  # the multiplier has underflowed
        return np.nan
    share = fx / (fx - fy)
    for h in prange(limit.size):
        low, high = asks[below, h], asks[above, h]
        rise = min(high, limit[h]) - min(low, limit[h])
        part = share * rise / (high - low) if share * rise > 0.0 else 0.0
        for i in range(offsets[h], offsets[h + 1]):
            jump = rates[above, i] - rates[below, i] if part > 0.0 else 0.0
            rate[i] = rates[below, i] + part * jump
        asked[h] = low
    return (x + share * (y - x) if share > 0.0 else x) ** -2


# A host is searched by one thread, inside a loop over hosts.
_limited_rates_alone = limited_rates.alone


@parallel
def host_rates(pages, kind, offsets, limit, asked, rate, multiplier):
    """Rates inside the hosts that asked for more than their limits.

    Arguments are those of `limited_rates`. Writes the rates of these hosts,
    and their own multipliers.
    """
    for h in prange(limit.size):
        if asked[h] > limit[h]:
            here = slice(offsets[h], offsets[h + 1])
            alone = np.array([0, offsets[h + 1] - offsets[h]])
            multiplier[h] = _limited_rates_alone(
                pages[here], kind, alone, np.array([np.inf]), limit[h],
                rate[here], np.empty(1),
            )  # fmt: skip
