"""Crawl rates that are learnt by gradient steps, without a model of changes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from recrawl import checks
from recrawl.science.policies.fixed_rates import check_n_pages
from recrawl.science.policies.in_phases import at_intervals
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Ints, Seed, Values

__all__ = ["MirrorSync", "mirror_step", "probe_gradient"]


@dataclass(frozen=True, eq=False)
class MirrorSync:
    r"""Learn crawl rates from probes, however the pages change.

    MirrorSync of Kolobov, Bubeck and Zimmert (ICML 2020). A crawl either
    replaces the copy of a page, or it is a probe, which only looks whether the
    copy is stale. Of R slots in a unit of time, :math:`R / (1 + \epsilon)`
    replace copies. Crawl rates are fixed for a round; `probe_gradient` then
    estimates the slope of the cost of each page, and `mirror_step` changes the
    rates:

    .. math:: r \leftarrow \arg\min_x\; \eta \sum_i \hat g_i x_i + \sum_i
        \left(\frac{x_i}{r_i} - 1 - \ln\frac{x_i}{r_i}\right) .

    The only assumption on the changes is that an older copy is stale more
    often. This generality is expensive: 240 rounds, as published, are 3,840
    slots for each page, where a policy that assumes Poisson changes needs
    tens.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), non-negative, not all 0
        Importances; only the shares count.
    step : float, positive, default 5.0
        Step size eta, as published for 100 pages of importance 1. It has no
        unit, and neither the unit of time nor that of importance matters,
        because the slope is that of the weighted mean of the costs. With other
        numbers of pages, ``5.0 * n_pages / 100`` moves rates as far in a round.
    probes : float, in (0, 1], default 0.05
        Probability epsilon of a probe in an interval between two crawls.
    limits : tuple of float, default (1 / 16, 15.0)
        Least and greatest crawl rate of a page, relative to the mean rate
        bandwidth / n_pages; as published, .025 and 6 at a mean rate of 0.4. The
        greatest is divided by 1 + epsilon, because probes come on top. A round
        is one interval at the least rate.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers for the probes.

    Raises
    ------
    ValueError
        Arguments out of range; limits that leave no room for the mean rate.

    Notes
    -----
    The slots of probes are spread evenly and are -1 in the result, because a
    probe does not replace the copy. Which pages are probed, and when, is drawn
    independently of these slots: in each interval with probability epsilon, at
    a uniform time. So the slots are spent on average only, and a probe may lie
    between two slots.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> from recrawl.science.signals import SignalledPages
    >>> pages = SignalledPages([0.1, 0.5, 40.0], 1.0, 0.0, 0.0)
    >>> world = simulate.draw_world(pages, 3000.0, rng=1)
    >>> policy = MirrorSync(pages.importance, step=0.15, rng=1)
    >>> late = simulate.crawl(world, policy, 3.0, borders=[2000.0, 3000.0])
    >>> late.crawl_rate.round(1).tolist(), int(late.n_idle)
    ([0.8, 1.4, 0.6], 143)
    """

    importance: Values
    _: KW_ONLY
    step: float = 5.0
    probes: float = 0.05
    limits: tuple = (1 / 16, 15.0)
    rng: Seed = None

    def __post_init__(self):
        # in place, because the dataclass is frozen
        vars(self)["importance"] = checks.per_page("importance", self.importance)
        if not self.importance.any():
            raise ValueError("importance must not be 0 for all pages")
        checks.positive_number("step", self.step)
        checks.scalar(_probability, "probes", self.probes)
        low, high = checks.low_high("limits", self.limits)
        if not low * (1 + self.probes) < 1 < high:
            raise ValueError(
                "limits must enclose the mean rate: the lower one must be below "
                f"1 / (1 + probes) and the upper one above 1, got {self.limits!r}"
            )

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            What the crawls find.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            A page, whether it is there or not; -1 in the slots of probes.
        """
        check_n_pages("importance", self.importance.size, world)
        if not time.size:
            return np.empty(0, dtype=np.int64)
        weight = self.importance / self.importance.sum()
        share = 1 / (1 + self.probes)
        mean = time.size / world.horizon / last.size
        bandwidth = share * mean * last.size
        limits = mean * self.limits[0], share * mean * self.limits[1]
        rate = np.full(last.size, share * mean)
        rng, latest = np.random.default_rng(self.rng), last.copy()
        page = np.full(time.size, -1)
        crawls = np.flatnonzero(np.diff(np.floor(share * np.arange(time.size + 1))))
        rounds = np.arange(0.0, world.horizon, 1 / limits[0])
        edges = np.searchsorted(time[crawls], np.append(rounds, np.inf))
        for start, (first, end) in zip(rounds, pairwise(edges), strict=True):
            slot = crawls[first:end]
            page[slot] = at_intervals(rate, latest, start, slot.size)
            crawled = time[slot], page[slot], latest
            slope = weight * probe_gradient(world, *crawled, self.probes, rng=rng)
            rate = mirror_step(rate, slope, bandwidth, limits, self.step)
            np.maximum.at(latest, page[slot], time[slot])
        return page


def probe_gradient(
    world: World,
    time: Array,
    page: Ints,
    last: Array,
    probability: float,
    *,
    rng: Seed = None,
) -> Array:
    r"""Slope of the cost of each page in its crawl rate, from probes.

    The cost J(r) = r C(1 / r) of a page at crawl rate r is the share of time in
    which its copy is stale. In an interval w between two crawls, with
    probability epsilon, a probe looks at a uniform time whether the copy is
    stale. The crawl looks too, and

    .. math::
        \hat g = \frac{w}{\epsilon}\,(\text{stale at the probe}
        - \text{stale at the crawl}), \qquad 0 \text{ without a probe},

    has the mean J'(1 / w), however the pages change.

    Parameters
    ----------
    world : World
        What the crawls find.
    time : ndarray, shape (n_crawls,), time, rising
        When pages are crawled.
    page : ndarray of int, shape (n_crawls,)
        The page of each crawl.
    last : ndarray, shape (n_pages,), time
        Crawls before, -inf for none.
    probability : float, in (0, 1]
        Probability epsilon of a probe in an interval.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Returns
    -------
    ndarray, shape (n_pages,), time
        Means over the crawls of each page that had one before; 0 without any.

    Raises
    ------
    ValueError
        A probability out of range.

    Notes
    -----
    The method is that of MirrorSync of Kolobov, Bubeck and Zimmert (ICML 2020).

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> world = simulate.replay([[1.9], []], 8.0)
    >>> time, page = np.array([2.0, 4.0, 8.0]), np.array([0, 1, 0])
    >>> probe_gradient(world, time, page, np.zeros(2), 1.0, rng=1).tolist()
    [-1.0, 0.0]
    """
    checks.scalar(_probability, "probability", probability)
    rng = np.random.default_rng(rng)
    known = np.flatnonzero(np.isfinite(last))
    page = np.append(known, page)
    time = np.append(last[known], time)
    order = np.argsort(page, kind="stable")
    page, time = page[order], time[order]
    again = np.flatnonzero(page[1:] == page[:-1]) + 1
    probed = again[rng.random(again.size) < probability]
    since, until, where = time[probed - 1], time[probed], page[probed]
    probe = since + rng.random(probed.size) * (until - since)
    before = _n_changes(world, where, since)
    stale = np.array([_n_changes(world, where, t) > before for t in (probe, until)])
    # Of false reports only their probability matters here, not their slots.
    stale |= rng.random(stale.shape) < world.false_change
    gained = (until - since) / probability * (stale[0] - 1.0 * stale[1])
    total = np.bincount(where, gained, minlength=last.size)
    return total / np.maximum(np.bincount(page[again], minlength=last.size), 1)


def _n_changes(world, page, time):
    """Number of changes of each page up to a time, plus a constant of the page."""
    change, offsets = world.changes
    return np.array(
        [
            bisect_right(change, t, offsets[i], offsets[i + 1])
            for i, t in zip(page, time, strict=True)
        ],
        dtype=np.int64,
    )


def mirror_step(
    crawl_rate: ArrayLike,
    gradient: ArrayLike,
    bandwidth: float,
    limits: tuple[float, ...],
    step: float,
) -> Array:
    r"""Step of mirror descent over crawl rates that share a bandwidth.

    The rates x that minimise

    .. math::
        \eta \sum_i g_i x_i + \sum_i \left(\frac{x_i}{r_i} - 1
        - \ln\frac{x_i}{r_i}\right), \qquad \sum_i x_i \le B,

    within limits, are, clipped to the limits,

    .. math:: x_i = 1 / (1 / r_i + \eta g_i + \nu),

    where :math:`\nu` is 0, or the root at which the bandwidth is spent.

    Parameters
    ----------
    crawl_rate : array_like, shape (n_pages,), 1/time, positive
        The rates r so far.
    gradient : array_like, shape (n_pages,), time
        Slope g of the cost in each rate.
    bandwidth : float, 1/time, positive
        Largest sum B of the rates.
    limits : tuple of float, 1/time
        Least and greatest rate of a page.
    step : float, positive
        Step size eta.

    Returns
    -------
    ndarray, shape (n_pages,), 1/time
        The new rates.

    Raises
    ------
    ValueError
        Arguments out of range; least rates that take up the bandwidth.

    Notes
    -----
    The step of MirrorSync of Kolobov, Bubeck and Zimmert (ICML 2020), whose
    program searches numerically. The plain form is
    `tests.plain.mirror_step`.

    Examples
    --------
    >>> mirror_step([0.5, 0.5], [-0.8, -0.2], 1.0, (0.1, 2.0), 5.0).round(3).tolist()
    [0.768, 0.232]
    """
    crawl_rate = checks.positive("crawl_rate", crawl_rate)
    gradient = checks.finite("gradient", gradient)
    checks.fit(crawl_rate=crawl_rate, gradient=gradient)
    bandwidth = checks.positive_number("bandwidth", bandwidth)
    low, high = checks.low_high("limits", limits)
    step = checks.positive_number("step", step)
    if low * crawl_rate.size >= bandwidth:
        raise ValueError(
            f"limits must let {crawl_rate.size} pages share the bandwidth "
            f"{bandwidth:g}, got {limits!r}"
        )
    with np.errstate(over="ignore"):
        steps = checks.finite("step times gradient", step * gradient)
    slope = 1 / crawl_rate + steps
    bounds = 1 / high, 1 / low

    def rates(base, y):  # the page of slope `base` has 1 / rate = y
        return 1 / np.clip(slope - base + y, *bounds)

    def excess(base, y):
        return rates(base, y).sum() - bandwidth

    if excess(0.0, 0.0) <= 0:
        return rates(0.0, 0.0)
    # The page of least slope whose rate is below the greatest. Seen from its slope, the
    # rates lose no digits, however large the slopes are.
    base = slope.min()
    if excess(base, bounds[0]) <= 0:
        ordered = np.sort(slope)
        first = bisect_right(ordered, 0.0, key=lambda base: excess(base, bounds[0]))
        base = ordered[min(first, slope.size - 1)]
    if excess(base, bounds[1]) >= 0:
        return rates(base, bounds[1])
    return rates(base, brentq(lambda y: excess(base, y), *bounds, xtol=1e-15 / high))


def _probability(name, value):
    """`value` as a float array; all entries in (0, 1]."""
    checks.share(name, value)
    return checks.positive(name, value)
