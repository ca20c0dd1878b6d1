"""Spend a bandwidth on pages: the crawl rate of each, from its change rate and importance."""

import math
from dataclasses import dataclass

import numpy as np

from paperlib import checks, freshness
from paperlib._kernels import allocation as kernels
from paperlib._kernels import crawl_value, threads_for
from paperlib.errors import ConvergenceError
from paperlib.hosts import _host_limits, _hosts, _within_limits
from paperlib.signals import PARAMETERS, SignalledPages

_MANY = 1_000_000  # pages
_SECANT_STEPS = 8


@dataclass(frozen=True, eq=False)
class Allocation:
    """Crawl rates that spend a bandwidth.

    crawl_rate : array, shape (..., n_pages), 1/time; sums to the bandwidth over the last axis
    multiplier : array, shape (...), marginal freshness of bandwidth at the optimum, importance x time; NaN for a heuristic.
        Of `harmonic`, the marginal harmonic cost instead, in the same unit
    freshness : array, shape (...), expected freshness over pages weighted by importance, in [0, 1]
    threshold : array, shape (n_pages,), effective elapsed time at which a page is due, time; None for a rule that has none
    """

    crawl_rate: np.ndarray
    multiplier: np.ndarray
    freshness: np.ndarray
    threshold: np.ndarray | None = None


def _problem(change_rate, importance, bandwidth):
    change_rate = checks.non_negative("change_rate", change_rate)
    importance = checks.non_negative("importance", importance)
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    if change_rate.ndim == importance.ndim == 0:
        raise ValueError("change_rate must be an array of pages, got a single number")
    change_rate, importance = checks.broadcast(
        change_rate=change_rate, importance=importance
    )
    if not change_rate.shape[-1]:
        raise ValueError(
            f"change_rate must hold at least one page, got shape {change_rate.shape}"
        )
    return change_rate, importance, bandwidth


def _allocation(crawl_rate, multiplier, change_rate, importance, model):
    return Allocation(
        crawl_rate,
        multiplier,
        freshness.mean(model(change_rate, crawl_rate), importance),
    )


def uniform(change_rate, importance, bandwidth, *, model=freshness.poisson):
    """Every page at the same rate, bandwidth / n_pages.

    Parameters
    ----------
    change_rate, importance : arrays, shape (..., n_pages), non-negative; they broadcast
    bandwidth : float, 1/time, positive
    model : function of change rate and crawl rate
        Gives the freshness that is reported: `freshness.poisson` or `freshness.interval`.

    Returns
    -------
    Allocation
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    rate = np.full(change_rate.shape, bandwidth / change_rate.shape[-1])
    return _allocation(
        rate, np.full(rate.shape[:-1], np.nan)[()], change_rate, importance, model
    )


def proportional(
    change_rate, importance, bandwidth, *, to="change_rate", model=freshness.poisson
):
    """Rates in proportion to the change rates, or to the importances (``to="importance"``).

    Parameters and result as in `uniform`. Raises ValueError when what the rates are proportional to is zero for all pages.
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    if to not in ("change_rate", "importance"):
        raise ValueError(f"to must be 'change_rate' or 'importance', got {to!r}")
    share = change_rate if to == "change_rate" else importance
    total = share.sum(axis=-1, keepdims=True)
    if not (total > 0).all():
        raise ValueError(f"{to} must be positive for at least one page, got only zeros")
    rate = bandwidth * share / total
    return _allocation(
        rate, np.full(rate.shape[:-1], np.nan)[()], change_rate, importance, model
    )


def optimal_poisson(change_rate, importance, bandwidth, *, min_rate=0.0):
    """The rates of Poisson crawls with the highest freshness, sum importance crawl_rate / (crawl_rate + change_rate).

    Azar et al. 2018 (algorithm 2 there, used by [valuetools20], [peva22], eq. (6) of [aaai20]):
    crawl_rate = max(min_rate, sqrt(importance change_rate / multiplier) - change_rate). Pages that change too fast for their
    importance are not crawled. Found by Newton's method on 1 / sqrt(multiplier), without a sort; linear in the number of pages.
    BinaryLambdaCrawl(epsilon) of Kolobov et al. 2019 is ``min_rate=epsilon * bandwidth / n_pages``.

    Parameters
    ----------
    change_rate, importance : arrays, shape (..., n_pages), non-negative
        They broadcast; each leading index is a problem of its own.
    bandwidth : float, 1/time, positive
    min_rate : float or array, 1/time
        Every page gets at least this much.

    Returns
    -------
    Allocation
        A page that never changes or has no importance gets `min_rate`; if all are such, bandwidth is left over and the multiplier is 0.

    Raises
    ------
    ValueError
        Arguments out of range; minimum rates that need more than the bandwidth.
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    min_rate = checks.non_negative("min_rate", min_rate)
    needed = checks.broadcast(min_rate=min_rate, change_rate=change_rate)[0].sum(
        axis=-1
    )
    if not (needed <= bandwidth * (1 + 1e-12)).all():
        raise ValueError(
            f"min_rate must sum to at most the bandwidth, {bandwidth}, got {needed.max()}"
        )
    min_rate = np.broadcast_to(
        min_rate,
        (*change_rate.shape[:-1], change_rate.shape[-1] if min_rate.ndim else 1),
    )
    rate, multiplier = _poisson(change_rate, importance, bandwidth, min_rate)
    return _allocation(rate, multiplier, change_rate, importance, freshness.poisson)


def optimal_interval(change_rate, importance, bandwidth):
    """The rates of crawls at equal intervals with the highest freshness, sum importance `freshness.interval`.

    Eq. (5) of [www25], Cho and Garcia-Molina 2003: (importance / change_rate) (1 - (1 + x) exp(-x)) = multiplier on the pages
    that are crawled, with x = change_rate / crawl_rate; pages with importance / change_rate below the multiplier are not.

    Parameters and result as in `optimal_poisson`. Where bandwidth is so scarce that pages lie within a rounding error of the
    multiplier, what they share is split in proportion; freshness does not depend on it.
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)

    rate, multiplier = _interval(change_rate, importance, bandwidth)
    return _allocation(rate, multiplier, change_rate, importance, freshness.interval)


def optimal_thresholds(pages, bandwidth):
    """When to crawl pages with signals: the thresholds of effective elapsed time with the highest freshness.

    Theorem 1 and Lemma 2 of [www25]: `freshness.crawl_value` at its threshold is the same for all pages that are crawled, the
    multiplier, and importance / change_rate is at most that for those that are not.

    Parameters
    ----------
    pages : SignalledPages
    bandwidth : float, 1/time, positive
        Crawls of all pages.

    Returns
    -------
    Allocation
        threshold, shape (n_pages,), time: inf for a page that is never crawled, and also for one whose changes are all signalled
        (recall 1), which no time alone makes due: its crawl_rate, positive, says it is crawled after gamma / crawl_rate signals.
        Where no page gains by more crawls, bandwidth is left over and the multiplier is 0: pages that never change or have no
        importance get none, and one of recall 1 is crawled at each signal.
        The crawl rate of a page of recall 1, or within some 1e-12 of it, jumps from one whole number of signals to the next at one
        multiplier: a page that is there when the bandwidth runs out gets a share of the jump, and is the only one whose crawl rate
        is not 1 / `freshness.cycle_length`.

    Raises
    ------
    ValueError
        A bandwidth that is not positive and finite.
    ConvergenceError
    """
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    change_rate, importance = pages.change_rate, pages.importance
    constants = crawl_value.page_constants(
        change_rate, importance, pages.recall, pages.false_rate, crawl_value.EXACT
    )
    limit, alpha, gamma = constants["limit"], constants["alpha"], pages.gamma
    gains = limit > 0
    state, rate = np.zeros(limit.size), np.where(gains, gamma, 0.0)
    multiplier = 0.0
    if (gains & (alpha > 0)).any() or rate.sum() > bandwidth:
        at_one = crawl_value.at_one(constants)

        def spent(multiplier):
            return crawl_value.threshold_rates(
                multiplier, constants, at_one, gamma, state, rate
            )

        # signals change the multiplier by little
        guess = 1.0 / np.sqrt(
            optimal_interval(change_rate, importance, bandwidth).multiplier
        )
        multiplier = _spend(
            spent, rate, bandwidth, guess / 1.05, guess * 1.05, width=1e-13
        )
        if np.isnan(rate).any():
            raise ConvergenceError("the thresholds did not converge", rate)
        crawl_value.threshold_rates(
            multiplier, constants, at_one, gamma, state, np.empty_like(rate)
        )
    crawled = rate > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = np.where(crawled & (alpha > 0), state / alpha, np.inf)
        # w / psi = V / (importance psi) + exp(-alpha iota)
        fresh = np.where(
            crawled, multiplier * rate / importance + np.exp(-state), change_rate == 0
        )
    return Allocation(rate, multiplier, freshness.mean(fresh, importance), threshold)


def harmonic(change_rate, importance, bandwidth):
    """The rates of Poisson crawls with the least harmonic cost, sum importance `freshness.harmonic_penalty`.

    Kolobov et al. 2019 (NeurIPS; LambdaCrawl for incomplete observations):
    crawl_rate = (-change_rate + sqrt(change_rate^2 + 4 importance change_rate / multiplier)) / 2. No page that changes and has
    importance goes without crawls. Deviates from the paper in the search for the multiplier: Newton's method to rounding instead
    of a bisection; linear in the number of pages.

    Parameters and errors as in `optimal_poisson`.

    Returns
    -------
    Allocation
        The multiplier is the cost that a little more bandwidth saves, in importance x time; freshness is that of Poisson crawls.
        A page that never changes or has no importance gets 0; if all are such, bandwidth is left over and the multiplier is 0.
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)

    def one_problem(change_rate, importance, rate):
        v = kernels.harmonic_rates(change_rate, importance, bandwidth, rate)
        return 1.0 / v if v else 0.0

    rate, multiplier = _each_problem(one_problem, change_rate, importance)
    return _allocation(rate, multiplier, change_rate, importance, freshness.poisson)


def polite(
    change_rate, importance, bandwidth, host, host_limit, *, model=freshness.poisson
):
    """The rates of `optimal_poisson`, or of `optimal_interval`, when each host allows its pages so much bandwidth together and no more.

    Kolobov et al. 2019 (SIGIR, algorithm 2): saturate, remove, repeat. Hosts above their limit are taken out with the bandwidth
    that they may use, the others share what remains; inside a saturated host the limit is spent in the same way.

    Parameters
    ----------
    change_rate, importance : arrays, shape (n_pages,), non-negative; they broadcast
    bandwidth : float, 1/time, positive
    host : array of integers or strings, shape (n_pages,)
        Label of the host of each page.
    host_limit : float, or mapping from host to float, 1/time, non-negative
        The limit of every host; or of the hosts named, the others have none. ``inf`` is no limit; at 0 no page of the host is crawled.
    model : `freshness.poisson` or `freshness.interval`
        Crawls at Poisson times, as in the paper, or at equal intervals, where saturated hosts are solved one by one, some ms each.

    Returns
    -------
    Allocation
        Rates sum to the bandwidth, or to less where the limits leave some over; then the multiplier, which is that of the bandwidth, is 0.

    Raises
    ------
    ValueError
        Arguments out of range; host labels not one for each page; a limit for a host that has no page.

    Examples
    --------
    >>> plan = polite([1.0, 1.0, 2.0], 1.0, 6.0, ["a", "a", "b"], {"a": 2.0})
    >>> plan.crawl_rate
    array([1., 1., 4.])
    """
    change_rate, importance, bandwidth = _problem(change_rate, importance, bandwidth)
    if model not in (freshness.poisson, freshness.interval):
        raise ValueError(
            f"model must be freshness.poisson or freshness.interval, got {model!r}"
        )
    host = np.asarray(host)
    if not host.shape == change_rate.shape == (change_rate.size,):
        raise ValueError(
            f"host must have one label for each page of one problem, got shape {host.shape} for pages of shape {change_rate.shape}"
        )
    labels, member = np.unique(host, return_inverse=True)
    limit = _host_limits(labels, host_limit)

    def spend(within, rest):
        if model is freshness.poisson:
            return _poisson(change_rate, importance * within[member], rest, np.zeros(1))
        return _interval(change_rate, importance * within[member], rest)

    within, rate, multiplier = _within_limits(spend, bandwidth, member, limit)
    if not within.all():
        pages = np.flatnonzero(~within[member])
        pages = pages[np.argsort(member[pages], kind="stable")]
        offsets = np.append(0, np.cumsum(np.bincount(member)[~within]))

        def saturated(change_rate, importance, rate):
            if model is freshness.poisson:
                kernels.host_rates(
                    change_rate, importance, limit[~within], offsets, rate
                )
            else:
                for allowed, start, end in zip(
                    limit[~within], offsets[:-1], offsets[1:], strict=True
                ):
                    rate[start:end], _ = _interval(
                        change_rate[start:end], importance[start:end], allowed
                    )
            return 0.0

        rate[pages], _ = _each_problem(saturated, change_rate[pages], importance[pages])
    return _allocation(rate, multiplier, change_rate, importance, model)


def _poisson(change_rate, importance, bandwidth, min_rate):
    """Rates and multiplier of `optimal_poisson`, without its checks."""

    def one_problem(change_rate, importance, min_rate, rate):
        c = kernels.poisson_rates(change_rate, importance, bandwidth, min_rate, rate)
        return 1.0 / c**2 if c else 0.0

    return _each_problem(one_problem, change_rate, importance, min_rate)


def _interval(change_rate, importance, bandwidth):
    """Rates and multiplier of `optimal_interval`, without its checks."""

    def one_problem(change_rate, importance, rate):
        changing = (change_rate > 0) & (importance > 0)
        rate[:] = 0.0
        if not changing.any() or not bandwidth > 0:
            return 0.0

        def spent(multiplier):
            return kernels.interval_rates(multiplier, change_rate, importance, rate)

        guess = (
            _interval(change_rate[::10], importance[::10], bandwidth / 10)[1]
            if rate.size >= _MANY
            else 0.0
        )
        multiplier = _secant(spent, bandwidth, guess**-0.5) if guess else 0.0
        if multiplier:
            return multiplier
        # no page is crawled below the first bound; 1 - (1 + x) exp(-x) <= x^2 / 2 gives the second; 0.999 is for rounding
        scale = np.sqrt(importance * change_rate).sum()
        least = 0.999 * max(
            np.sqrt((change_rate[changing] / importance[changing]).min()),
            bandwidth * np.sqrt(2.0) / scale,
        )
        return _spend(spent, rate, bandwidth, least, 2.0 * least)

    return _each_problem(one_problem, change_rate, importance)


def _secant(spent, bandwidth, v):
    """As `_spend`, from a good guess of 1 / sqrt(multiplier), to which the sum is about in proportion; 0 where it does not settle soon."""
    slope, before, step = 1.0, 0.0, 0.0
    for _ in range(_SECANT_STEPS):
        total = spent(v**-2)
        if abs(total - bandwidth) <= 1e-12 * bandwidth:
            return v**-2
        off = math.log(total / bandwidth) if total > 0 else math.nan
        slope = (off - before) / step if step else slope
        if not slope > 0:
            break
        before, step = off, min(max(-off / slope, -1.0), 1.0)
        v *= math.exp(step)
    return 0.0


def _spend(spent, rate, bandwidth, left, right, *, width=1e-10):
    """The multiplier at which ``spent(multiplier)``, which also sets the rates, is the bandwidth; it falls with the multiplier.

    left, right : guesses of 1 / sqrt(multiplier) below and above; width : relative, of the last bracket
    """
    from scipy.optimize import (
        elementwise,  # here, for it takes as long as all of this module
    )

    def excess(
        v,
    ):  # bandwidth spent at the multiplier 1 / v^2 beyond what there is: rises with v
        return np.array([spent(v.item() ** -2)]) - bandwidth

    left, right = np.array([left]), np.array([right])
    while excess(left) > 0:  # with growing strides
        left, right = left * (left / right) ** 2, left
    while excess(right) < 0:
        left, right = right, right * (right / left) ** 2
    root = elementwise.find_root(
        excess,
        (left, right),
        tolerances={"xatol": 0, "xrtol": width, "fatol": 0, "frtol": 0},
    )
    # linear between the ends of the last bracket: an error of its width squared; and where even neighbouring numbers jump
    # across the bandwidth (scarce bandwidth, equal pages), a fair share of the jump
    above = excess(root.bracket[1])
    upper = rate.copy()
    below = excess(root.bracket[0])
    share = below / (below - above) if above > below else 0.0
    rate += (upper - rate) * share
    return np.interp(share, [0.0, 1.0], np.ravel(root.bracket)).item() ** -2


def _each_problem(solve, *arrays):
    """Call `solve` on every leading index, with contiguous rows and an output row; returns the rates and what it returned."""
    shape = arrays[0].shape
    rows = [
        np.ascontiguousarray(a, dtype=float).reshape(-1, a.shape[-1]).view()
        for a in arrays
    ]
    for row in rows:
        row.flags.writeable = (
            False  # whatever came in, so that one compiled kernel serves all
        )
    rate = np.empty(rows[0].shape)
    with threads_for(shape[-1]):
        multiplier = np.array([solve(*row) for row in zip(*rows, rate, strict=True)])
    if np.isnan(multiplier).any() or np.isnan(rate).any():
        raise ConvergenceError("the allocation did not converge", rate.reshape(shape))
    return rate.reshape(shape), multiplier.reshape(shape[:-1])[()]


def polite_thresholds(pages, bandwidth, host, host_limit):
    """`optimal_thresholds` when each host allows its pages so much bandwidth together and no more.

    Exact, as `allocation.polite` is.

    Parameters
    ----------
    pages : SignalledPages
    bandwidth : float, 1/time, positive
    host, host_limit : as in `PoliteGreedy`

    Returns
    -------
    Allocation
        The multiplier is that of the hosts below their limits, 0 when there is none.
    """
    member, limit = _hosts(host, host_limit, pages.change_rate.size)
    rate, threshold, fresh = np.zeros((3, member.size))

    def spend(which, bandwidth):
        rate[:] = 0.0
        return rate, spend_on(which[member], bandwidth) if which.any() else 0.0

    def spend_on(here, bandwidth):
        with threads_for(member.size):
            plan = optimal_thresholds(
                SignalledPages(*(getattr(pages, name)[here] for name in PARAMETERS)),
                bandwidth,
            )
        rate[here], threshold[here], fresh[here] = (
            plan.crawl_rate,
            plan.threshold,
            plan.freshness,
        )
        return plan.multiplier

    within, _, multiplier = _within_limits(spend, bandwidth, member, limit)
    for h in np.flatnonzero(~within):
        spend_on(member == h, limit[h])
    # each page has the freshness of all that were planned with it
    return Allocation(
        rate, multiplier, fresh @ pages.importance / pages.importance.sum(), threshold
    )
