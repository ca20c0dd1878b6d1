"""The field side by side: kinds of worlds, and policies that compete in them.

For `simulate.benchmark`. Time is in units of the median time between changes of a
page: the median change rate is 1 (1.06 in the world with drift).

`Entry` says what a policy knows before its first crawl: all change rates, how those
of other pages are distributed, or nothing. Policies of the literature that are
patented or rest on private data are left out (Han et al., WWW 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl import checks
from recrawl.science import (
    allocation,
    estimators,
    objectives,
    policies,
    priors,
    schedules,
)
from recrawl.science.signals import SignalledPages
from recrawl.science.simulate import Nature, draw_world, replay
from recrawl.types import Function

if TYPE_CHECKING:
    from paperfigs.traces import Panel

__all__ = ["BUDGETS", "POLICIES", "RUNS", "Entry", "real_worlds", "worlds"]


#: Crawls of a page in the median time between changes.
BUDGETS = (0.1, 0.3, 1.0, 3.0)
#: Number of worlds at each budget. In Poisson worlds a difference of .002 between
#: policies that crawl nearly as GREEDY does is three standard errors or more: paired
#: differences spread less where crawls are many. Differences between unlike policies
#: spread more, those of uniform crawling and Nutch to GREEDY twice and five times as
#: much.
RUNS = (300, 150, 80, 30)
_FALSE = 0.05  # probability that a crawl reports a change that is none
_OFFICE = 8, 18  # hours between which pages change
_BURN_IN = 50  # mean times between changes
_GROWTH = 1.5  # of the time from phase to phase


class Entry(NamedTuple):
    """A policy of the field.

    Parameters
    ----------
    make : callable
        Function of a `simulate.Situation`.
    knows : {"nothing", "prior", "rates"}, default "nothing"
        What it knows before its first crawl.
    sees : {"bit", "age", "signals"}, default "bit"
        What a crawl tells: the age of the last change is that of Last-Modified.

    Examples
    --------
    >>> POLICIES["Bayes value"].knows, POLICIES["phases, ages"].sees
    ('prior', 'age')
    """

    make: Callable
    knows: str = "nothing"
    sees: str = "bit"


# ------------------------------------------------------------------------- worlds


def worlds(*, n_pages: int = 100, horizon: float = 100.0) -> dict[str, Nature]:
    """Kinds of worlds, by name.

    Importances are uniform on [0, 1].

    ================== ===========================================================
    "lognormal 1"      Poisson, rates lognormal with sigma 1
    "lognormal 1.5"    the same with sigma 1.5; so are the rates of those below
    "heavy tail"       Poisson, rates Pareto with index 1.2
    "bursty"           times between changes gamma with shape 0.4
    "regular"          the same with shape 3
    "office hours"     all changes in 10 of 24 hours, if the median is one a day
    "drift"            half of the pages double their rate at half time, the
                       others halve it
    "false changes"    one crawl in twenty reports a change that is none
    "signals"          some changes are announced; precision and recall are
                       distributed as in section 6 of [www25]_, independently
    ================== ===========================================================

    Content that fades at a rate delta, of which nu appears in a unit of time, is
    the same problem as freshness with change rate delta and importance nu
    (Avrachenkov and Borkar 2018), and has no world of its own.

    Parameters
    ----------
    n_pages : int, default 100
        Pages of a world.
    horizon : float, default 100.0
        End of the worlds, in median times between changes.

    Returns
    -------
    dict of Nature
        Kinds of worlds by name.

    Examples
    --------
    >>> natures = worlds(n_pages=5)
    >>> world = natures["bursty"].draw(np.random.default_rng(1))
    >>> world.start.size, natures["bursty"].change_rate
    (5, 1.0)
    """
    kinds: dict[str, Function] = {
        "lognormal 1": partial(_poisson, draw_rates=partial(_lognormal, 1.0)),
        "lognormal 1.5": partial(_poisson, draw_rates=_lognormal_wide),
        "heavy tail": partial(_poisson, draw_rates=_pareto),
        "bursty": partial(_renewal, shape=0.4),
        "regular": partial(_renewal, shape=3.0),
        "office hours": _office,
        "drift": _drift,
        "false changes": _false_changes,
        "signals": _signals,
    }
    return {
        name: Nature(partial(draw, n_pages, horizon), 1.0)
        for name, draw in kinds.items()
    }


def real_worlds(
    panel: Panel, *, least_window: float = 0.0, n_pages: int | None = None
) -> Nature:
    """Worlds of real pages: samples with replacement, each from a random time on.

    A world is as long as the shortest window of its pages, so that no page lives
    through its history twice. The rates that policies may know are those of the
    world, in hindsight.

    Parameters
    ----------
    panel : repro.traces.Panel
        The pages.
    least_window : float, time, default 0.0
        Pages that were observed for less time are left out.
    n_pages : int, optional
        Pages of a world; by default as many as there are to draw from, so that the
        spread over the worlds is that of samples as large as this one.

    Returns
    -------
    Nature
        Worlds, whose budgets are measured by the median page.

    Raises
    ------
    ValueError
        No page was observed for so long.

    Examples
    --------
    >>> from paperfigs import traces
    >>> nature = real_worlds(traces.panel(), least_window=14 * 365.25, n_pages=5)
    >>> world = nature.draw(np.random.default_rng(1))
    >>> world.start.size, round(world.horizon), round(nature.change_rate, 4)
    (5, 5328, 0.0069)
    """
    old = np.flatnonzero(panel.window >= least_window)
    if not old.size:
        raise ValueError(
            "least_window must be at most the longest window, "
            f"{panel.window.max():g}, got {least_window:g}"
        )
    horizon = float(panel.window[old].min())
    size = old.size if n_pages is None else checks.count("n_pages", n_pages)

    def draw(rng):
        chosen = rng.choice(old, size)
        times = [panel.segment(page, horizon, rng=rng) for page in chosen]
        return replay(times, horizon, importance=panel.importance[chosen])

    return Nature(draw, float(np.median(panel.change_rate[old])), bootstrap=True)


def _lognormal(sigma, n, rng):
    return np.exp(sigma * rng.standard_normal(n))


_lognormal_wide = partial(_lognormal, 1.5)


def _pareto(n, rng):
    """Rates with P(rate > x) = (least / x)^1.2, where the median is 1."""
    return 0.5 ** (1 / 1.2) * (1 + rng.pareto(1.2, n))


def _poisson(n_pages, horizon, rng, draw_rates):
    pages = SignalledPages(draw_rates(n_pages, rng), rng.random(n_pages), 0.0, 0.0)
    return draw_world(pages, horizon, rng=rng)


def _renewal(n_pages, horizon, rng, shape):
    """Gamma times between changes, begun so long before that they are stationary."""
    rate = _lognormal_wide(n_pages, rng)
    times = []
    for one in rate.tolist():
        mean, before = 1 / one, (_BURN_IN + rng.random()) / one
        n = _enough((horizon + before) * one, shape)
        times.append(rng.gamma(shape, mean / shape, n).cumsum() - before)
    return _replayed(rate, times, horizon, rng)


def _enough(n, shape):
    """So many gamma times that they all but surely outlast n means of one."""
    return int(n + 8 * np.sqrt(n / shape) + 8 / shape)


def _office(n_pages, horizon, rng):
    """Changes in the office hours of days that are one unit of time long."""
    rate, times = _poisson_times(n_pages, horizon, rng)
    begin, end = _OFFICE
    times = [np.floor(t) + (begin + (end - begin) * (t % 1)) / 24 for t in times]
    return _replayed(rate, times, horizon, rng)


def _drift(n_pages, horizon, rng):
    """Rates that are doubled or halved at half time; known are their means."""
    # More than long enough for the rates that double: 1.5 horizons are.
    rate, times = _poisson_times(n_pages, 3 * horizon, rng)
    factor = rng.choice([0.5, 2.0], n_pages)
    half = horizon / 2
    # A Poisson process whose time runs faster or slower from half time on.
    times = [
        np.where(t < half, t, half + (t - half) / f)
        for t, f in zip(times, factor, strict=True)
    ]
    return _replayed(rate * (1 + factor) / 2, times, horizon, rng)


def _false_changes(n_pages, horizon, rng):
    world = _poisson(n_pages, horizon, rng, _lognormal_wide)
    return world.with_false_changes(_FALSE, rng=rng)


def _signals(n_pages, horizon, rng):
    """Signals with the beta distributions of `repro.traces.signalled_population`.

    Here precision and recall are independent; there the best of both come together.
    """
    precision = np.maximum(rng.beta(0.703, 2.108, n_pages), 0.01)
    pages = SignalledPages.from_precision(
        _lognormal_wide(n_pages, rng),
        rng.random(n_pages),
        precision=precision,
        recall=rng.beta(0.666, 2.665, n_pages),
    )
    return draw_world(pages, horizon, rng=rng)


def _poisson_times(n_pages, horizon, rng):
    """Change rates, and the change times of each page."""
    rate = _lognormal_wide(n_pages, rng)
    time, offsets = schedules.poisson(rate, horizon, rng=rng)
    return rate, np.split(time, offsets[1:-1])


def _replayed(rate, times, horizon, rng):
    importance = rng.random(rate.size)
    return replay(times, horizon, importance=importance, change_rate=rate)


# ----------------------------------------------------------------------- policies


def _at_intervals(rates):
    """Fixed rates, every page at equal intervals."""
    return lambda at: policies.Rates(rates(at))


def _at_random(rates):
    """The same, but every slot goes to a page at random: Poisson times."""

    def make(at):
        def draw(crawl_rate, n_slots):
            share = crawl_rate / crawl_rate.sum()
            return at.rng.choice(share.size, n_slots, p=share)

        return policies.Rates(rates(at), schedule=draw)

    return make


def _one_round(at):
    """The time in which all pages can be crawled once."""
    return at.importance.size / at.bandwidth


def _equal(at):
    return np.full(at.importance.size, 1 / _one_round(at))


def _allocated(allocate):
    """Crawl rates that an allocation finds for the true change rates."""
    return lambda at: (
        allocate(at.pages.change_rate, at.importance, at.bandwidth).crawl_rate
    )


def _vague(at):
    """The prior of `BayesGreedy` for want of a better one."""
    return {"shape": 0.5, "rate": 0.5 * _one_round(at)}


def _learnt(at):
    return at.prior._asdict()


def _bayes(prior, **options):
    return lambda at: policies.BayesGreedy(at.importance, **prior(at), **options)


def _posterior(prior, **options):
    return lambda at: policies.PosteriorGreedy(
        at.importance, rng=at.rng, **prior(at), **options
    )


def _phases(estimator, borders, **options):
    """`RatesInPhases`; estimator and borders are made for the situation."""
    return lambda at: policies.RatesInPhases(
        at.importance, borders(at), estimator(at), rng=at.rng, **options
    )


def _growing(at):
    """Borders of phases that grow, after two rounds, until the horizon."""
    first = 2.0 * _one_round(at)
    growths = np.log(at.horizon / first) / np.log(_GROWTH)
    return first * _GROWTH ** np.arange(max(np.ceil(growths), 1))


def _daily(at):
    """As published: 21 phases in which a page is crawled 0.2 times on average.

    From then on the phases grow.
    """
    days = 0.2 * _one_round(at) * np.arange(1, 22)
    return np.append(days, days[-1] * _GROWTH ** np.arange(1, 20))


def _pseudo(at):
    """Maximum likelihood, with one changed and one unchanged crawl for each page."""
    typical = 0.5 * _one_round(at)
    return priors.FakeIntervals(typical, typical).estimate


def _posterior_mean(at):
    return lambda history: at.prior.posterior(history).mean


def _moments(at):
    """Moment matching, within bounds that hold 99.8% of the learnt prior."""
    low, high = at.prior.interval(level=0.998)
    return lambda history: estimators.moment_matching(history, bounds=(low, high))


def _if_signals(make):
    """A policy that uses signals competes only where some arrive."""
    return lambda at: make(at) if at.signals else None


_harmonic = partial(allocation.optimal, objective=objectives.harmonic, crawls="poisson")


#: The policies that are compared, by name.
POLICIES = {
    # what may be known or not does not matter to these
    "uniform": Entry(_at_intervals(_equal)),
    "uniform, Poisson times": Entry(_at_random(_equal)),
    "by importance": Entry(_at_intervals(lambda at: at.importance)),
    # known rates
    "by change rate": Entry(_at_intervals(lambda at: at.pages.change_rate), "rates"),
    "Poisson optimum": Entry(
        _at_intervals(_allocated(allocation.optimal_poisson)), "rates"
    ),
    "Poisson optimum, Poisson times": Entry(
        _at_random(_allocated(allocation.optimal_poisson)), "rates"
    ),
    "interval optimum": Entry(
        _at_intervals(_allocated(allocation.optimal_interval)), "rates"
    ),
    "interval optimum, Poisson times": Entry(
        _at_random(_allocated(allocation.optimal_interval)), "rates"
    ),
    "GREEDY": Entry(lambda at: policies.Greedy(at.pages), "rates"),
    "GREEDY-CIS": Entry(
        _if_signals(lambda at: policies.GreedyCIS(at.pages)), "rates", "signals"
    ),
    "GREEDY-NCIS": Entry(
        _if_signals(lambda at: policies.GreedyNCIS(at.pages)), "rates", "signals"
    ),
    # a prior that was learnt from other pages
    "Bayes value": Entry(_bayes(_learnt), "prior"),
    "Bayes value, ages": Entry(
        _bayes(_learnt, observation="last_modified"), "prior", "age"
    ),
    "Thompson": Entry(_posterior(_learnt, how="thompson"), "prior"),
    "Thompson, held": Entry(_posterior(_learnt, how="held"), "prior"),
    "plug-in mean": Entry(_posterior(_learnt), "prior"),
    "phases, posterior mean": Entry(_phases(_posterior_mean, _growing), "prior"),
    "explore, then commit, posterior mean": Entry(
        _phases(_posterior_mean, _one_round), "prior"
    ),
    "explore, then commit, moments": Entry(_phases(_moments, _one_round), "prior"),
    # nothing
    "Bayes value, vague": Entry(_bayes(_vague)),
    "plug-in mean, vague": Entry(_posterior(_vague)),
    "epsilon-greedy, vague": Entry(_posterior(_vague, exploration=0.1)),
    "phases": Entry(_phases(_pseudo, _growing)),
    "phases, ages": Entry(_phases(_pseudo, _growing, ages=True), sees="age"),
    "phases, epsilon-greedy": Entry(_phases(_pseudo, _growing, epsilon=0.1)),
    "LambdaLearnAndCrawl": Entry(
        _phases(_pseudo, _daily, allocation=_harmonic, spacing="poisson"),
    ),
    "Nutch": Entry(lambda at: policies.Nutch(day=_one_round(at) / 30, cap=None)),
    "StormCrawler": Entry(lambda at: policies.StormCrawler(day=_one_round(at))),
}
