r"""Periodic rates: pages that change more by day than by night.

Page i changes at the rate :math:`\Delta_i g(t)`, with a **profile** g of mean 1
that repeats after a period, a day or a week, and is shared by a group of pages.
The integral of the profile,

.. math:: G(t) = \int_0^t g , \qquad
    P(\mathrm{changed}) = 1 - e^{-\Delta_i (G(t) - G(s))}

for a crawl at t after one at s, is the **operational time**: in it the changes
of a page are a Poisson process of constant rate. Whatever takes elapsed times
takes operational ones. `policies.Greedy` for slots is the example: give
`scheduler.Scheduler.run` the slots at ``profile.cumulative(times)``, and it
crawls the page of largest

.. math:: V = \frac{\mu_i}{\Delta_i} \left(1 - (1 + x) e^{-x}\right),
    \qquad x = \Delta_i (G(\mathrm{now}) - G(\mathrm{last})) .

`fit_profile` learns a profile from the bits of a group, `flatness_test` says
whether there is one, and `best_crawl_times` says when to crawl one page.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, special

from recrawl import checks
from recrawl.errors import ConvergenceError, DegenerateHistoryWarning
from recrawl.kernels import periodic as kernels
from recrawl.science import estimators
from recrawl.science.processes import History, simulate_history
from recrawl.types import Seed, Values

__all__ = [
    "ConvergenceError",
    "CrawlTimes",
    "DegenerateHistoryWarning",
    "Flatness",
    "Profile",
    "ProfileFit",
    "best_crawl_times",
    "fit_profile",
    "flatness_test",
    "simulate_periodic_history",
    "slot_staleness",
    "stale_time",
    "staleness",
]

# Gain of a step, relative to the log-likelihood, that ends the search. Each step is
# Newton's at fixed change rates, and leaves less than a tenth of the error near the
# maximum (measured): after this gain, the weights have some seven digits.
_TOLERANCE = 1e-13
_MAX_STEPS = 200
# A step leaves every rate at least this share of itself, so that it stays positive.
_LEAST_SHARE = 0.01
# Keeps the equations of a step solvable where no crawl that found a change was
# exposed to a bin, relative to the mean curvature.
_RIDGE = 1e-12
# Two intervals of a page whose shares in the bins differ by less than the root of
# this, as by a few seconds of a day, tell nothing of the profile.
_SAME_SHARES = 1e-8
# Fewest times of the default grid of `best_crawl_times`: every quarter of an hour.
_LEAST_GRID = 96
# Operational length of an interval where the profile is 0, or in which the times
# of both crawls are equal up to rounding: intervals must be positive.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Profile:
    """Relative change rate over the bins of a period, with mean 1.

    Parameters
    ----------
    weight : array_like, shape (n_bins,)
        Relative rates in equal bins of the period, at least two, non-negative
        and not all 0; they are divided by their mean.
    period : float, time, default 1.0
        Length of the period, positive. Times are counted from the start of one.

    Raises
    ------
    ValueError
        Fewer than two bins, weights out of range, a period that is not
        positive and finite.

    Notes
    -----
    The plain form of `exposure` is `tests.recrawl.plain.exposure`.

    Examples
    --------
    Three times the mean rate from 8 to 16 o'clock:

    >>> office = Profile([0.0] * 8 + [1.0] * 8 + [0.0] * 8, period=24.0)
    >>> office.rate([4.0, 12.0, 36.0])
    array([0., 3., 3.])
    >>> office.cumulative([4.0, 12.0, 36.0])
    array([ 0., 12., 36.])
    """

    weight: np.ndarray
    _: KW_ONLY
    period: float = 1.0
    _knots: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        weight = checks.non_negative("weight", self.weight)
        if weight.ndim != 1 or weight.size < 2:
            raise ValueError(
                "weight must be a flat array of at least two bins, "
                f"got shape {weight.shape}"
            )
        if not weight.any():
            raise ValueError("weight must be positive in some bin, got zeros only")
        period = checks.positive_number("period", self.period)
        weight = weight / weight.mean()
        weight.flags.writeable = False
        knots = np.append(0.0, np.cumsum(weight)) * period / weight.size
        knots[-1] = period  # not up to rounding
        # in place, because the dataclass is frozen
        vars(self).update(weight=weight, period=period, _knots=knots)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.weight.size

    def rate(self, time: ArrayLike) -> Values:
        r"""Relative change rate at given times.

        .. math:: g(t) = g_b, \qquad
                  b = \lfloor B\,(t \bmod P) / P \rfloor,

        with B bins of the period P.

        Parameters
        ----------
        time : array_like, time
            Any times.

        Returns
        -------
        float or ndarray
            At the edge of two bins the rate of the later one, up to rounding.
        """
        return self.weight[_places(time, self)[0]]

    def cumulative(self, time: ArrayLike) -> Values:
        r"""Operational time, the integral of the profile from 0.

        .. math:: G(t) = \int_0^t g(s)\,ds

        Parameters
        ----------
        time : array_like, time
            Any times, also many periods from 0, and before it.

        Returns
        -------
        float or ndarray, time
            Equal to `time` at whole periods.
        """
        return _cumulative(self._knots, _places(time, self))


def _places(time, profile):
    """Bin, fraction of it, and number of periods of each time."""
    place = checks.finite("time", time) * (profile.n_bins / profile.period)
    index, fraction = np.divmod(place, 1.0)
    periods, bin = np.divmod(index, profile.n_bins)
    return bin.astype(np.int64), fraction, periods


def _cumulative(knots, places):
    """The integral of a profile, given its values at the edges of the bins."""
    bin, fraction, periods = places
    return periods * knots[-1] + knots[bin] + fraction * (knots[bin + 1] - knots[bin])


def simulate_periodic_history(
    change_rate: ArrayLike,
    profile: Profile,
    *,
    interval: ArrayLike,
    start: ArrayLike = 0.0,
    n_crawls: int | None = None,
    rng: Seed = None,
) -> History:
    r"""Simulate crawls of pages whose rates follow a profile.

    In operational time G it is `processes.simulate_history`: after a crawl at
    s, that at t finds a change with probability

    .. math:: 1 - e^{-\Delta\,(G(t) - G(s))} .

    Parameters
    ----------
    change_rate : array_like, shape (n_pages,) or (), 1/time
        Mean change rates, non-negative.
    profile : Profile
        Of all pages.
    interval : array_like, shape (..., n_crawls), time
        Intervals between crawls, positive; leading axes broadcast with the
        pages. A single number needs `n_crawls`.
    start : array_like, shape of the pages, time, default 0.0
        When each page became known.
    n_crawls : int, optional
        Crawls of each page, where `interval` is a number.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Returns
    -------
    History
        Of shape (n_pages, n_crawls).

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not fit.

    Examples
    --------
    >>> day = Profile([1.0, 3.0])
    >>> history = simulate_periodic_history(
    ...     1.0, day, interval=0.5, n_crawls=10_000, rng=1
    ... )
    >>> history.changed.reshape(-1, 2).mean(axis=0).round(2)
    array([0.22, 0.52])
    """
    interval = checks.positive("interval", interval)
    if interval.ndim == 0:
        interval = np.full(checks.count("n_crawls", n_crawls), interval)
    if not interval.size:
        raise ValueError(
            f"interval must hold at least one crawl, got shape {interval.shape}"
        )
    change_rate = checks.non_negative("change_rate", change_rate)
    start = checks.finite("start", start)
    shape = checks.broadcast(
        change_rate=change_rate, interval=interval[..., 0], start=start
    )[0].shape
    ends = np.cumsum(np.broadcast_to(interval, (*shape, interval.shape[-1])), axis=-1)
    ends = np.insert(ends, 0, 0.0, axis=-1) + start[..., np.newaxis]
    operational = np.maximum(np.diff(profile.cumulative(ends), axis=-1), _TINY)
    drawn = simulate_history(
        change_rate, interval=operational, n_crawls=n_crawls, rng=rng
    )
    return History(np.broadcast_to(interval, operational.shape), drawn.changed)


class ProfileFit(NamedTuple):
    """A profile learnt from bits, and what comes with it.

    Parameters
    ----------
    profile : Profile
        Shared by the pages.
    change_rate : ndarray or float, shape ``history.shape``, 1/time
        Mean change rate of each page.
    log_likelihood : float
        Of profile and change rates, without the smoothing.

    Examples
    --------
    >>> ProfileFit(Profile([1.0, 3.0]), 2.0, -5.0).profile.weight
    array([0.5, 1.5])
    """

    profile: Profile
    change_rate: np.ndarray
    log_likelihood: float


class Flatness(NamedTuple):
    r"""A likelihood ratio test of a flat profile.

    .. math:: 2\,\bigl(\ell(\hat g, \hat\Delta) - \ell(1, \tilde\Delta)\bigr)

    Parameters
    ----------
    statistic : float
        Twice the difference of the log-likelihoods.
    n_freedom : int
        Degrees of freedom of its chi-square distribution.
    pvalue : float
        Probability of a larger statistic if the profile is flat.

    Examples
    --------
    >>> Flatness(3.84, 1, 0.05).pvalue
    0.05
    """

    statistic: float
    n_freedom: int
    pvalue: float


def fit_profile(
    history: History,
    start: ArrayLike = 0.0,
    *,
    n_bins: int,
    period: float = 1.0,
    smoothing: float = 1.0,
) -> ProfileFit:
    r"""Learn the profile of a group of pages from their bits, at any intervals.

    Maximises the likelihood over profile and change rates at once,

    .. math:: \sum_\mathrm{changed} \log(1 - e^{-u_k})
        - \sum_\mathrm{unchanged} u_k
        + s \sum_b (\log g_b - g_b) , \qquad u_k = \Delta_i \sum_b g_b e_{kb} ,

    with the time :math:`e_{kb}` that the interval before crawl k spends in bin
    b, and s pseudo-changes in each bin. Crawls need not fall within one bin.

    Parameters
    ----------
    history : History
        In either form. Ages and counts of changes are not used.
    start : array_like, number or shape ``history.shape``, time, default 0.0
        When each page became known: the time of a crawl is that of
        ``history.time`` plus this.
    n_bins : int, at least 2
        Bins of the profile.
    period : float, time, positive, default 1.0
        Length of the period.
    smoothing : float, non-negative, default 1.0
        Pseudo-changes s in each bin, and the exposure in which a flat profile
        expects as many. 1 keeps rates from being 0 by chance; 0 is maximum
        likelihood.

    Returns
    -------
    ProfileFit
        Profile, change rates and log-likelihood.

    Raises
    ------
    ValueError
        Arguments out of range; no page with both changed and unchanged crawls;
        crawls that do not tell the bins apart: daily crawls at noon say
        nothing of the hour.
    ConvergenceError
        The maximum was not found, or there is none: with few crawls and no
        smoothing a change rate may grow without bound as bins fall to 0.

    Warns
    -----
    DegenerateHistoryWarning
        Pages never changed (rate 0) or changed at every crawl (rate inf). They
        say nothing of the profile.

    Notes
    -----
    The change rates are maximised for each trial profile by `estimators.mle`,
    in operational time, and the profile moves by steps of Newton's method at
    these change rates, halved until none lowers the likelihood. Some ten
    steps are usual. The EM algorithm, of which
    `tests.recrawl.plain.periodic_em` is the plain form, has the same maximum
    and takes thousands of steps where intervals are longer than a bin.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> office = Profile([1.0, 6.0, 2.0])
    >>> history = simulate_periodic_history(
    ...     2.0, office, interval=rng.uniform(0.1, 0.5, 20_000), rng=rng
    ... )
    >>> fit = fit_profile(history, n_bins=3)
    >>> office.weight.round(2), fit.profile.weight.round(2)
    (array([0.33, 2.  , 0.67]), array([0.33, 2.05, 0.62]))
    >>> round(float(fit.change_rate), 2)
    2.01
    """
    bits = _Bits.of(history, start, n_bins, period)
    smoothing = checks.scalar(checks.non_negative, "smoothing", smoothing)
    weight, fitted, value = bits.maximum(smoothing)
    n_changed, n = np.ravel(history.total(history.changed)), np.ravel(history.n_crawls)
    change_rate = np.where(n_changed > 0, np.inf, 0.0)
    change_rate[n == 0] = np.nan
    change_rate[bits.kept] = fitted
    rates = history.by_page(change_rate)
    return ProfileFit(Profile(weight, period=period), rates, value)


def flatness_test(
    history: History, start: ArrayLike = 0.0, *, n_bins: int, period: float = 1.0
) -> Flatness:
    r"""Test whether the change rates of a group of pages have a profile at all.

    The likelihood ratio of the best profile, without smoothing, to the flat
    one, with the log-likelihood :math:`\ell` of `fit_profile`,

    .. math:: 2\,\bigl(\max_{\Delta, g} \ell(\Delta, g)
              - \max_\Delta \ell(\Delta, 1)\bigr) .

    For many crawls it has a chi-square distribution with ``n_bins - 1``
    degrees of freedom if the profile is flat.

    Parameters
    ----------
    history, start, n_bins, period
        As in `fit_profile`.

    Returns
    -------
    Flatness
        Statistic, degrees of freedom and p-value.

    Raises
    ------
    ValueError
        As `fit_profile`.
    ConvergenceError
        The maximum was not found.

    Warns
    -----
    DegenerateHistoryWarning
        As `fit_profile`.

    Notes
    -----
    The plain form of the likelihood is
    `tests.recrawl.plain.periodic_log_likelihood`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> interval = rng.uniform(0.1, 0.5, 1000)
    >>> for weight in ([1.0, 1.0, 1.0], [1.0, 2.0, 1.0]):
    ...     history = simulate_periodic_history(
    ...         2.0, Profile(weight), interval=interval, rng=2
    ...     )
    ...     print(round(flatness_test(history, n_bins=3).pvalue, 4))
    0.7324
    0.0
    """
    bits = _Bits.of(history, start, n_bins, period)
    best, flat = bits.maximum(0.0)[2], bits.at(np.ones(n_bins))[0]
    statistic = max(2.0 * (best - flat), 0.0)
    return Flatness(statistic, n_bins - 1, special.chdtrc(n_bins - 1, statistic).item())


class _Bits(NamedTuple):
    """Crawls of the pages with both kinds of bits, and where in the period."""

    kept: np.ndarray  # which pages of the history these are
    history: History
    ends: tuple  # places of the start and of each crawl of every page
    crawl: np.ndarray  # which of the ends are crawls; the one before began the interval
    to_bins: np.ndarray  # from steps to bins, shape (n_bins, n_bins + 1)

    @classmethod
    def of(cls, history, start, n_bins, period):
        """The bits of a history whose pages became known at `start`."""
        if checks.count("n_bins", n_bins) < 2:
            raise ValueError(f"n_bins must be at least 2, got {n_bins!r}")
        profile = Profile(np.ones(n_bins), period=period)
        start = checks.finite("start", start)
        if start.ndim and start.shape != history.shape:
            raise ValueError(
                f"start must be a number or have the shape of the pages, "
                f"{history.shape}, got {start.shape}"
            )
        start = np.broadcast_to(start, history.shape).ravel()
        interval, changed, _offsets = history.ragged()
        n_crawls, n_changed = history.n_crawls.ravel(), history.total(history.changed)
        never, always = n_changed.ravel() == 0, n_changed.ravel() == n_crawls
        kept = ~(never | always)
        if not kept.any():
            raise ValueError(
                "history must have a page with changed and unchanged crawls, got none"
            )
        if not kept.all():
            n_never, n_always = np.sum(never & (n_crawls > 0)), np.sum(always & ~never)
            if n_never or n_always:  # the others have no crawls
                warnings.warn(
                    f"of {kept.size} pages {n_never} never changed (estimate 0) and "
                    f"{n_always} changed at every crawl (estimate inf)",
                    DegenerateHistoryWarning,
                    stacklevel=3,
                )
        own, offsets = np.repeat(kept, n_crawls), np.append(0, n_crawls[kept].cumsum())
        history = History(interval[own], changed[own], offsets)
        time = history.time + history.per_crawl(start[kept])
        ends = _places(np.insert(time, offsets[:-1], start[kept]), profile)
        crawl = np.arange(time.size) + history.per_crawl(np.arange(1, offsets.size))
        width = profile.period / profile.n_bins
        to_bins = width * np.tri(profile.n_bins + 1, profile.n_bins, -1).T
        bits = cls(kept, history, ends, crawl, to_bins)
        bits.check_identified()
        return bits

    def check_identified(self):
        """Raise if different profiles give all bits the same probabilities."""
        n_bins = self.to_bins.shape[0]
        gram = np.zeros((n_bins + 1, n_bins + 1))
        crawls = self.history.interval, self.history.offsets
        kernels.contrasts(*crawls, self.ends, gram)
        size = linalg.eigvalsh(self.to_bins @ (gram + gram.T) @ self.to_bins.T)
        n_told = np.count_nonzero(size > _SAME_SHARES * self.crawl.size)
        if n_told == 0:
            raise ValueError(
                "history must have crawls at different times of the period, or at "
                "intervals that are not whole periods: all crawls of a page cover "
                "the bins in the same proportions, which says nothing of the profile"
            )
        if n_told < n_bins - 1:
            raise ValueError(
                f"n_bins must be at most what the crawls can tell apart: they "
                f"determine {n_told} of the {n_bins - 1} differences between "
                f"{n_bins} bins; take fewer bins, or crawls at other times"
            )

    def at(self, weight):
        """Log-likelihood, gradient and curvature at a profile, and change rates.

        The change rates are those of maximum likelihood for this profile, so
        that the gradient is also that of the maximum over them.
        """
        knots = np.append(0.0, weight @ self.to_bins[:, 1:])
        time = _cumulative(knots, self.ends)
        operational = np.maximum(time[self.crawl] - time[self.crawl - 1], _TINY)
        changed, offsets = self.history.changed, self.history.offsets
        rate = estimators.mle(History(operational, changed, offsets))
        gradient, curvature = np.zeros(knots.size), np.zeros((knots.size, knots.size))
        value = kernels.log_likelihood(
            rate, operational, changed, offsets, self.ends, gradient, curvature
        )
        bins = self.to_bins
        curvature = bins @ (curvature + curvature.T) @ bins.T
        return value, bins @ gradient, curvature, rate

    def maximum(self, smoothing):
        """Weights, change rates and log-likelihood of the best profile."""
        weight = np.ones(self.to_bins.shape[0])
        found = self.at(weight)
        try:
            for _ in range(_MAX_STEPS):
                weight, found, ended = self.step(weight, found, smoothing)
                if ended:
                    return weight, found[-1], found[0]
        except (linalg.LinAlgError, ConvergenceError):
            pass  # change rates that grow beyond all bounds, and bins near 0
        raise ConvergenceError(
            "the profile did not converge: the likelihood of few crawls may have no "
            "maximum, and more smoothing gives it one",
            weight,
        )

    def step(self, weight, found, smoothing):
        """One step of Newton's method, halved until the likelihood does not fall.

        Weights, what `at` gives there, and whether the search has ended.
        """

        def penalised(value, weight):
            return value + smoothing * np.sum(np.log(weight) - weight)

        value, gradient, curvature, _rate = found
        # in units of the weights, so that all bins have like curvatures
        slope = weight * gradient + smoothing * (1.0 - weight)
        bend = curvature * np.outer(weight, weight)
        bend[np.diag_indices_from(bend)] += smoothing + _RIDGE * np.trace(bend)
        change = linalg.solve(bend, slope, assume_a="pos")
        before = penalised(value, weight)
        allowed = _TOLERANCE * abs(before)
        while True:
            trial = weight * np.maximum(1.0 + change, _LEAST_SHARE)
            trial /= trial.mean()
            found = self.at(trial)
            gain = penalised(found[0], trial) - before
            if gain >= -allowed:  # a smaller loss is rounding
                return trial, found, gain <= allowed
            change *= 0.5


def stale_time(
    profile: Profile,
    change_rate: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    *,
    demand: ArrayLike | None = None,
) -> Values:
    r"""Expected stale time of a copy between a crawl and the next, exactly.

    .. math:: \int_s^e m(t) \left(1 - e^{-\Delta (G(t) - G(s))}\right) dt

    Parameters
    ----------
    profile : Profile
        Of the changes.
    change_rate : array_like, 1/time
        Mean change rates, non-negative.
    start, end : array_like, time
        Of the crawl, and of the next one, not before it; all broadcast.
    demand : array_like, shape (profile.n_bins,), optional
        When users ask: relative rates m of requests in the bins, divided by
        their mean; default the same at all times.

    Returns
    -------
    float or ndarray, time
        The time, weighted by demand.

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not fit.

    Notes
    -----
    The plain form is `tests.recrawl.plain.periodic_stale_time`.

    Examples
    --------
    >>> office = Profile([0.0, 1.0, 0.0], period=24.0)
    >>> float(stale_time(office, 1 / 24, start=16.0, end=40.0).round(6))
    2.943036
    """
    change_rate, start, end = checks.broadcast(
        change_rate=checks.non_negative("change_rate", change_rate),
        start=checks.finite("start", start),
        end=checks.finite("end", end),
    )
    checks.require("end", end, "at least start", end >= start)
    out = np.empty(end.size)
    flat = [np.ascontiguousarray(a).ravel() for a in (change_rate, start, end)]
    width = profile.period / profile.n_bins
    demand = _demand(profile, demand).weight
    kernels.stale_times(profile.weight, demand, width, *flat, out)
    return out.reshape(end.shape)[()]


@functools.lru_cache
def _even(n_bins, period):
    """Profile that is the same at all times; kept for the next call."""
    return Profile(np.ones(n_bins), period=period)


def _demand(profile, demand):
    """Demand as a profile."""
    if demand is None:
        return _even(profile.n_bins, profile.period)
    if np.shape(demand) != (profile.n_bins,):
        raise ValueError(
            f"demand must have one weight for each of the {profile.n_bins} bins, "
            f"got shape {np.shape(demand)}"
        )
    try:
        return Profile(demand, period=profile.period)
    except ValueError as error:
        raise ValueError(str(error).replace("weight", "demand", 1)) from None


def staleness(
    profile: Profile,
    change_rate: ArrayLike,
    crawl_time: ArrayLike,
    *,
    demand: ArrayLike | None = None,
) -> Values:
    r"""Staleness of a page that is crawled at the same times of every period.

    With the crawls :math:`s_k` of a period of length P, their successors
    :math:`s_{k+1}` and the demand m, of mean 1,

    .. math:: \frac{1}{P} \sum_k \int_{s_k}^{s_{k+1}}
        m(t) \left(1 - e^{-\Delta\,(G(t) - G(s_k))}\right) dt .

    Parameters
    ----------
    profile : Profile
        Of the changes.
    change_rate : array_like, 1/time
        Mean change rate, non-negative.
    crawl_time : array_like, shape (..., n_crawls), time
        Times of the crawls, in any period and order; leading axes broadcast
        with the change rates.
    demand : array_like, shape (profile.n_bins,), optional
        As in `stale_time`.

    Returns
    -------
    float or ndarray
        Share of time, or of requests, that meets a stale copy.

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not fit; no crawl.

    Notes
    -----
    The plain form of the integral is `tests.recrawl.plain.periodic_stale_time`.

    Examples
    --------
    >>> office = Profile([0.0] * 8 + [1.0] * 8 + [0.0] * 8, period=24.0)
    >>> staleness(office, 1 / 24, [[16.0], [4.0]]).round(4)
    array([0.1226, 0.4387])
    """
    crawl_time = checks.finite("crawl_time", crawl_time)
    if crawl_time.ndim == 0 or crawl_time.shape[-1] == 0:
        raise ValueError(
            "crawl_time must hold at least one crawl along its last axis, "
            f"got shape {crawl_time.shape}"
        )
    start = np.sort(crawl_time % profile.period, axis=-1)
    end = np.roll(start, -1, axis=-1)
    end[..., -1] += profile.period
    change_rate = np.asarray(change_rate)[..., np.newaxis]
    stale = stale_time(profile, change_rate, start, end, demand=demand)
    return np.minimum(stale.sum(axis=-1) / profile.period, 1.0)  # 1 + 2e-16, rounded


class CrawlTimes(NamedTuple):
    """Times of the period at which a page is crawled.

    Parameters
    ----------
    time : ndarray, shape (n_crawls,), time
        Sorted.
    staleness : float
        Share of time, or of requests, that meets a stale copy.

    Examples
    --------
    >>> CrawlTimes(np.array([16.0]), 0.12).time
    array([16.])
    """

    time: np.ndarray
    staleness: float


def best_crawl_times(
    profile: Profile,
    change_rate: float,
    n_crawls: int,
    *,
    demand: ArrayLike | None = None,
    n_phases: int | None = None,
) -> CrawlTimes:
    r"""Find the best times of the period at which to crawl one page.

    .. math:: \min_{t_1 < \cdots < t_n} \sum_{k=1}^n S(t_k, t_{k+1}),
              \qquad t_{n+1} = t_1 + P,

    with the expected stale time S of `stale_time` between two crawls.
    Dynamic programming over a grid of times; on the grid the result is the
    optimum.

    Parameters
    ----------
    profile : Profile
        Of the changes.
    change_rate : float, 1/time
        Mean change rate, non-negative.
    n_crawls : int
        Crawls in a period.
    demand : array_like, shape (profile.n_bins,), optional
        As in `stale_time`.
    n_phases : int, optional
        Times of the grid, at least `n_crawls`. By default the least multiple
        of the bins that has 96 or more; the edges of the bins are then on it.

    Returns
    -------
    CrawlTimes
        The times and their staleness.

    Raises
    ------
    ValueError
        Arguments out of range; more crawls than times.

    Notes
    -----
    The plain form of the cost is `tests.recrawl.plain.periodic_stale_time`. The
    search takes a time of the order of n_crawls n_phases^3.

    Examples
    --------
    >>> office = Profile([0.0] * 8 + [1.0] * 8 + [0.0] * 8, period=24.0)
    >>> best = best_crawl_times(office, 1 / 24, n_crawls=2)
    >>> best.time, round(best.staleness, 7)
    (array([12., 16.]), 0.0710204)
    """
    n_crawls = checks.count("n_crawls", n_crawls)
    if not isinstance(profile, Profile):
        raise ValueError(f"profile must be a Profile, got {profile!r}")
    if n_phases is None:
        n_phases = -(-_LEAST_GRID // profile.n_bins) * profile.n_bins
        n_phases *= -(-n_crawls // n_phases)
    if checks.count("n_phases", n_phases) < n_crawls:
        raise ValueError(
            f"n_phases must be at least n_crawls, {n_crawls}, got {n_phases}"
        )
    change_rate = checks.scalar(checks.non_negative, "change_rate", change_rate)
    step = profile.period / n_phases
    start = step * np.arange(n_phases)[:, np.newaxis]
    end = start + step * np.arange(n_phases + 1)
    cost = stale_time(profile, change_rate, start, end, demand=demand)
    place = np.empty(n_crawls, np.int64)
    least = kernels.best_cycle(cost, place)
    return CrawlTimes(step * np.sort(place), least / profile.period)


def slot_staleness(
    profile: Profile,
    change_rate: ArrayLike,
    time: ArrayLike,
    page: ArrayLike,
    *,
    horizon: float,
    importance: ArrayLike = 1.0,
    demand: ArrayLike | None = None,
) -> float:
    r"""Staleness of pages that are crawled in slots, exactly.

    All pages are crawled at time 0; crawls that the slots bring are given.
    With the expected stale time S of `stale_time` between two crawls of a
    page, and the demand m,

    .. math:: \frac{\sum_i \mu_i \sum_k S_i(t_{i,k}, t_{i,k+1})}
              {\sum_i \mu_i \int_0^T m(t)\,dt} .

    Parameters
    ----------
    profile : Profile
        Of the changes of all pages.
    change_rate : array_like, shape (n_pages,), 1/time
        Mean change rates, non-negative.
    time : array_like, shape (n_slots,), time
        The slots, from 0 to `horizon`.
    page : array_like of int, shape (n_slots,)
        Page of each slot, -1 for none; from `policies` or `scheduler`.
    horizon : float, time
        End of the time that is judged, positive.
    importance : array_like, shape (n_pages,), default 1.0
        Request rates of the pages, non-negative, not all 0.
    demand : array_like, shape (profile.n_bins,), optional
        As in `stale_time`.

    Returns
    -------
    float
        Share of the requests that meets a stale copy.

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not fit.

    Examples
    --------
    By the crawl value of elapsed time, and of operational time:

    >>> from recrawl.science.policies import Greedy
    >>> from recrawl.scheduler import Scheduler
    >>> from paperlib.signals import SignalledPages
    >>> office = Profile([0.0] * 8 + [1.0] * 8 + [0.0] * 8)
    >>> rate = np.geomspace(0.1, 10.0, 60)
    >>> greedy = Greedy(SignalledPages(rate, 1.0, 0.0, 0.0))
    >>> time = np.arange(1, 60 * 20 + 1) / 60
    >>> for when in (time, office.cumulative(time)):
    ...     page = Scheduler(greedy, crawled=0.0).run(when)
    ...     stale = slot_staleness(office, rate, time, page, horizon=20.0)
    ...     print(round(stale, 4))
    0.3514
    0.3405
    """
    change_rate, importance = checks.broadcast(
        change_rate=np.atleast_1d(checks.non_negative("change_rate", change_rate)),
        importance=checks.non_negative("importance", importance),
    )
    checks.require("importance", importance, "not all 0", importance.any(keepdims=True))
    horizon = checks.positive_number("horizon", horizon)
    time, page = checks.finite("time", time), np.asarray(page)
    checks.require("time", time, "in [0, horizon]", (time >= 0) & (time <= horizon))
    if page.shape != time.shape or (page.size and page.dtype.kind not in "iu"):
        raise ValueError(
            f"page must hold one integer for each slot, {time.shape}, got shape "
            f"{page.shape} and dtype {page.dtype}"
        )
    n_pages = change_rate.size
    within = (page >= -1) & (page < n_pages)
    checks.require("page", page, f"at least -1 and below {n_pages}", within)
    crawled = page >= 0
    page = np.append(np.arange(n_pages), page[crawled].astype(np.int64))
    start = np.append(np.zeros(n_pages), time[crawled])
    order = np.lexsort((start, page))
    page, start = page[order], start[order]
    end = np.append(start[1:], horizon)
    end[np.flatnonzero(np.diff(page))] = horizon  # the last crawl of each page
    stale = stale_time(profile, change_rate[page], start, end, demand=demand)
    requests = importance.sum() * _demand(profile, demand).cumulative(horizon)
    return (importance[page] @ stale / requests).item()
