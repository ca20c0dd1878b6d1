r"""Crawl rates that spend a bandwidth: one unknown, many pages.

Every optimum of `recrawl.science.allocation` has one multiplier for all pages. Given
the multiplier, each crawl rate is known by itself, so that the kernels look
for the number at which the crawl rates sum to the bandwidth; one pass over all
pages, in parallel where that gains, gives the sum. No pages are sorted.
`poisson_rates` is not parallel: a second thread gained nothing at any number of
pages, and lost where other processes took the cores (measured).

* **Poisson crawls** (`poisson_rates`). With r = sqrt(importance change_rate)
  and c = 1 / sqrt(multiplier) the rate is max(min_rate, c r - change_rate).
  The sum is convex and piecewise linear in c, and Newton's method on it is an
  active-set method: each step solves the problem exactly for the pages that
  are above their minimum at present. Two phases: Newton in c, and, where
  bandwidth is scarce, Newton in the distance of c above the least threshold.
* **Any objective under limits** (`limited_rates`). The rate is that at which
  the crawl value is the price of a crawl, between the limits of the page; a
  bracketed search, as the sum may jump. The same once for each host that
  exceeds its limit (`host_rates`): the hosts in parallel, the pages of one
  host in one thread.

Each proof that a search converges stands beside its code. The kernels draw no
random numbers and check no arguments; they write the rates in place.
`poisson_rates` returns 0 where no page gains by crawls, and NaN where it did
not converge, as `limited_rates` does.

The helpers with inline="always" become part of the kernel that calls them:
their prange loops are parallel in a parallel kernel and plain loops otherwise.
`stride` is 1 where `min_rate` has an entry for each page, and 0 where its one
entry is for all pages.
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

# The distance c - least is a difference of nearly equal numbers. Where it is
# 1e-2 of c two decimal digits cancel, and a relative error of 1e-14 remains:
# good enough as it is. Otherwise it is the start of a search for the distance.
_TWO_DIGITS = 1e-2

# A step of Newton's method in c of less than about ten rounding errors of c is
# rounding itself. The distance above the least threshold has converged after a
# relative step of 1e-13: rounding of sums over millions of pages is below it.
_ROUNDING, _SETTLED = 1e-15, 1e-13

# A page whose rate is rounding itself is not active: beside it the bandwidth of
# all others may be less than the rounding.
_EDGE = 1.0 - _ROUNDING

# Relative error to which rates sum to the bandwidth. One correction reaches it,
# unless it takes a rate below its minimum.
_SPENT, _MAX_CORRECTIONS = 1e-12, 4


@compiled
def _square_roots(change_rate, importance, min_rate, stride, root):
    """Write sqrt(importance change_rate); sums, and the least threshold.

    Returns the sum of the minimum rates; for the pages that gain by crawls
    (root > 0) the sum of the roots, that of change_rate + min_rate, and the
    least (change_rate + min_rate) / root: for c below this, no page gets more
    than its minimum rate.
    """
    minima = roots = changes = 0.0
    least = np.inf
    for i in range(root.size):
        r = math.sqrt(importance[i] * change_rate[i])
        d = change_rate[i] + min_rate[i * stride]
        root[i] = r
        minima += min_rate[i * stride]
        roots += r
        changes += d if r > 0.0 else 0.0
        least = min(least, d / r if r > 0.0 else np.inf)
    return minima, roots, changes, least


@compiled
def _newton(change_rate, root, spare, min_rate, stride, c):
    """The c at which the rates above the minimum sum to `spare`.

    These are max(0, c root - d) with d = change_rate + min_rate. `c` is a start
    at or right of the solution; a page is active where its rate is above its
    minimum. The tangent of a convex function lies below it, so that the root
    of the tangent is not left of the solution: c falls from step to step and
    never passes the solution. As c falls pages only leave the active set, each
    at most once; once none leaves, the tangent is the function itself and c is
    exact.
    """
    for _ in range(_MAX_STEPS):
        active = rest = 0.0
        for i in range(root.size):
            d = change_rate[i] + min_rate[i * stride]
            if c * root[i] * _EDGE > d:
                active += root[i]
                rest += d
        new = (spare + rest) / active if active > 0.0 else c
        if not new < c * (1.0 - _ROUNDING):
            break
        c = new
    return c


@compiled
def _rate_above(root, d, least, above):
    """(least + above) root - d without the cancellation.

    0 for a page that gains nothing by crawls.
    """
    return root * (above - (d / root - least)) if root > 0.0 else 0.0


@compiled
def _newton_above(change_rate, root, spare, min_rate, stride, least, above):
    """The solution of `_newton`, as its distance above the least threshold.

    The same steps in the unknown above = c - least, from any start > 0. One
    left of the solution does no harm: the first step from there leads to its
    right. Returns NaN where the steps did not converge.
    """
    for _ in range(_MAX_STEPS):
        active = rest = 0.0
        for i in range(root.size):
            d = change_rate[i] + min_rate[i * stride]
            gain = _rate_above(root[i], d, least, above)
            if gain > root[i] * above * _ROUNDING:
                active += root[i]
                rest += root[i] * above - gain
        new = (spare + rest) / active if active > 0.0 else above
        settled = abs(new - above) <= _SETTLED * new
        above = new
        if settled:
            return above
    return np.nan


@compiled
def _spend_rest(change_rate, importance, bandwidth, min_rate, stride, rate, total):
    """Give the crawled pages what rounding left of the bandwidth, or took of it.

    `rate` is written, and sums to `total`. A rate far below the change rate of its
    page is a difference of nearly equal numbers, and c is known to rounding only.
    A change of c beyond its digits moves the rates in proportion to the roots.
    """
    for _ in range(_MAX_CORRECTIONS):
        rest = bandwidth - total
        if not abs(rest) > _SPENT * bandwidth:
            break
        active = total = 0.0
        for i in range(rate.size):
            more = rate[i] > min_rate[i * stride]
            active += math.sqrt(importance[i] * change_rate[i]) if more else 0.0
        part = rest / active if active > 0.0 else 0.0
        for i in range(rate.size):
            if rate[i] > min_rate[i * stride]:
                root = math.sqrt(importance[i] * change_rate[i])
                rate[i] = max(rate[i] + part * root, min_rate[i * stride])
            total += rate[i]


@compiled
def poisson_rates(change_rate, importance, bandwidth, min_rate, rate):
    """Rates max(min_rate, c root - change_rate) that sum to `bandwidth`.

    root = sqrt(importance change_rate). `change_rate`, `importance` and `rate`
    have shape (n_pages,), `min_rate` one entry for each page or one for all;
    `rate` holds the roots while the search runs and the rates at the end.
    Returns c.

    The rates are min_rate + max(0, c root - d) with d = change_rate + min_rate:
    what the minimum rates leave is spent as if there were none.

    Where bandwidth is scarce, c is hardly above the least threshold d / root,
    and c root - d is a difference of nearly equal numbers. In the second phase
    c is written as least + above and the rate above the minimum as
    root (above - (d / root - least)). The page of the least threshold then has
    the rate root x above, without any cancellation, and the other differences
    are small only where the rates hardly count.
    """
    stride = 1 if min_rate.size > 1 else 0
    minima, roots, changes, least = _square_roots(
        change_rate, importance, min_rate, stride, rate
    )
    spare = bandwidth - minima
    # At this c the rates c root - d of all pages that gain by crawls sum to what
    # is spare, the negative ones among them. Raised to 0 they sum to as much or
    # more: c is not left of the solution.
    c = (spare + changes) / roots
    if not (roots > 0.0 and spare > 0.0):
        for i in range(rate.size):
            rate[i] = min_rate[i * stride]
        return least if roots > 0.0 else 0.0
    c = _newton(change_rate, rate, spare, min_rate, stride, c)
    above = c - least
    total = 0.0
    if above > _TWO_DIGITS * c:
        for i in range(rate.size):
            rate[i] = max(c * rate[i] - change_rate[i], min_rate[i * stride])
            total += rate[i]
    else:  # too few digits, and none where the difference is rounding itself
        start = max(above, _ROUNDING * c)
        above = _newton_above(change_rate, rate, spare, min_rate, stride, least, start)
        for i in range(rate.size):
            d = change_rate[i] + min_rate[i * stride]
            gain = _rate_above(rate[i], d, least, above)
            rate[i] = min_rate[i * stride] + max(gain, 0.0)
            total += rate[i]
        c = least + above
    # once for both, because each call takes a second to compile
    _spend_rest(change_rate, importance, bandwidth, min_rate, stride, rate, total)
    return c


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
