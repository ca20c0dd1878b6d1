"""The field side by side: policies of the literature in common worlds.

`worlds` and `real_worlds` say which pages are crawled, `POLICIES` holds the
policies, and `benchmark` runs all of them in the same worlds at the same budgets.
Time is in median times between changes of a page in simulated worlds, in days for
real pages. To write ``data/benchmark.csv`` (ten minutes on two cores)::

    python -m recrawl.science.field data

Policies that are patented or rest on private data are left out.
"""

from __future__ import annotations

import csv
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paperlib.schedules import low_discrepancy
from paperlib.signals import SignalledPages
from recrawl import checks
from recrawl.science import allocation, objectives, policies, priors
from recrawl.science.estimators import moment_matching
from recrawl.science.processes import History
from recrawl.science.simulate import crawl, draw_world, replay, replicate, slot_times
from recrawl.types import Function, PathLike

__all__ = [
    "BUDGETS",
    "MEASURES",
    "POLICIES",
    "RUNS",
    "Nature",
    "Situation",
    "benchmark",
    "real_worlds",
    "worlds",
]

#: Crawls of a page in the median time between changes.
BUDGETS = (0.1, 0.3, 1.0, 3.0)
#: Number of worlds at each budget. A difference of .002 between policies that crawl
#: nearly as GREEDY does is three standard errors or more.
RUNS = (300, 150, 80, 30)
#: What is measured in each run.
MEASURES = "freshness", "delay", "never_crawled", "used"
_OVER = "GREEDY", "interval optimum", "Bayes value", "uniform", "Nutch"

_SEED = 20
_N_PRIOR = 10  # worlds of other pages that the prior is learnt from
_FALSE = 0.05  # probability that a crawl reports a change that is none
_BURN_IN = 50  # mean times between changes
_GROWTH = 1.5  # of the time from phase to phase
_LEAST_CHANGES = 30  # of a real page
_LONG = 14 * 365.25  # days; half of the real pages were observed for longer


class Nature(NamedTuple):
    """A kind of worlds.

    Parameters
    ----------
    draw : callable
        Function of a Generator that draws a `simulate.World`.
    change_rate : float, 1/time
        The median change rate of the pages, by which budgets are measured.
    bootstrap : bool, default False
        Whether a world is a sample of given pages: then the standard deviation
        over the worlds is the standard error.
    """

    draw: Callable
    change_rate: float
    bootstrap: bool = False


class Situation(NamedTuple):
    """What a policy of `POLICIES` is made from.

    Parameters
    ----------
    pages : SignalledPages
        The true pages: only for policies that are said to know them.
    importance : ndarray, shape (n_pages,)
        Weight of each page.
    bandwidth, horizon : float, 1/time and time
        Slots per unit of time, and the end of the world.
    prior : GammaPrior
        Learnt from other pages that were crawled in turn with the same bandwidth.
    rng : Generator
        Source of random numbers, one for each run and policy.
    """

    pages: SignalledPages
    importance: np.ndarray
    bandwidth: float
    horizon: float
    prior: priors.GammaPrior
    rng: np.random.Generator

    @property
    def one_round(self) -> float:
        """The time in which every page can be crawled once."""
        return self.importance.size / self.bandwidth

    @property
    def vague(self) -> priors.GammaPrior:
        """The prior of `BayesGreedy` for want of a better one."""
        return priors.GammaPrior(0.5, 0.5 * self.one_round)


# ------------------------------------------------------------------------- worlds


def worlds(*, n_pages: int = 100, horizon: float = 100.0) -> dict[str, Nature]:
    """Kinds of simulated worlds, by name.

    Importances are uniform on [0, 1], change rates lognormal with sigma 1.5, or
    Pareto with index 1.2 ("heavy tail"). Pages are Poisson; or the times between
    changes have a gamma distribution of shape 0.4 ("bursty") or 3 ("regular"); or
    one crawl in twenty reports a change that is none.

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
    """
    kinds: dict[str, Function] = {
        "lognormal 1.5": _poisson,
        "heavy tail": partial(_poisson, draw_rates=_pareto),
        "bursty": partial(_renewal, shape=0.4),
        "regular": partial(_renewal, shape=3.0),
        "false changes": _false_changes,
    }
    return {
        name: Nature(partial(draw, n_pages, horizon), 1.0)
        for name, draw in kinds.items()
    }


def _lognormal(n, rng):
    return np.exp(1.5 * rng.standard_normal(n))


def _pareto(n, rng):
    """Rates with P(rate > x) = (least / x)^1.2, where the median is 1."""
    return 0.5 ** (1 / 1.2) * (1 + rng.pareto(1.2, n))


def _poisson(n_pages, horizon, rng, draw_rates=_lognormal):
    pages = SignalledPages(draw_rates(n_pages, rng), rng.random(n_pages), 0.0, 0.0)
    return draw_world(pages, horizon, rng=rng)


def _renewal(n_pages, horizon, rng, shape):
    """Gamma times between changes, begun so long before that they are stationary."""
    rate = _lognormal(n_pages, rng)
    times = []
    for one in rate.tolist():
        mean, before = 1 / one, (_BURN_IN + rng.random()) / one
        expected = (horizon + before) * one
        # so many that they all but surely outlast the horizon
        n = int(expected + 8 * np.sqrt(expected / shape) + 8 / shape)
        times.append(rng.gamma(shape, mean / shape, n).cumsum() - before)
    return _replayed(rate, times, horizon, rng)


def _false_changes(n_pages, horizon, rng):
    return _poisson(n_pages, horizon, rng).with_false_changes(_FALSE, rng=rng)


def _replayed(rate, times, horizon, rng):
    importance = rng.random(rate.size)
    return replay(times, horizon, importance=importance, change_rate=rate)


def real_worlds(folder: PathLike, *, least_window: float = 0.0) -> Nature:
    """Worlds of real pages: samples with replacement, each from a random time on.

    The pages are Debian packages with 30 uploads or more, with download counts of
    npm as importances, paired at random. A world is as long as the shortest window
    of its pages. The rates that policies may know are those of the world, in
    hindsight.

    Parameters
    ----------
    folder : path
        Folder with ``debian_panel.csv`` and ``npm_downloads.csv``.
    least_window : float, days, default 0.0
        Pages that were observed for less time are left out.

    Returns
    -------
    Nature
        Worlds, whose budgets are measured by the median page.
    """
    times, window, importance = _read_panel(Path(folder))
    old = np.flatnonzero(window >= least_window)
    horizon = float(window[old].min())

    def draw(rng):
        chosen = rng.choice(old, old.size)
        found = []
        for page in chosen:  # after the end of a window comes its beginning
            moved = times[page] - rng.random() * window[page]
            found.append(np.sort(moved % window[page]))
        return replay(found, horizon, importance=importance[chosen])

    rate = np.array([time.size for time in times]) / window
    return Nature(draw, float(np.median(rate[old])), bootstrap=True)


def _read_panel(folder):
    """Times of the changes of each page, windows in days, and importances."""
    lines = (folder / "debian_panel.csv").read_text(encoding="utf-8").splitlines()
    (end,) = (line[7:-1] for line in lines if line.startswith("# end: "))
    rows = [line.rstrip("Z").split(",") for line in lines if line[:1].isdigit()]
    page = np.array([int(number) for number, _ in rows])
    moment = np.array([time for _, time in rows], "datetime64[s]")
    downloads = np.loadtxt(folder / "npm_downloads.csv", skiprows=3)
    importance = np.random.default_rng(_SEED).permutation(downloads)
    first = np.flatnonzero(np.diff(page, prepend=-1))
    days = (moment - moment[first][page]) / np.timedelta64(1, "D")
    window = (np.datetime64(end) - moment[first]) / np.timedelta64(1, "D")
    # the first upload begins the window, and is not counted
    times = [time[1:] for time in np.split(days, first[1:])]
    kept = [k for k, time in enumerate(times) if time.size >= _LEAST_CHANGES]
    weight = importance[kept] / importance[kept].mean()
    return [times[k] for k in kept], window[kept], weight


# ----------------------------------------------------------------------- policies


def _fixed(rates):
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


def _allocated(crawls):
    """The best crawl rates for the true change rates."""
    return lambda at: (
        allocation.optimal(
            at.pages.change_rate, at.importance, at.bandwidth, crawls=crawls
        ).crawl_rate
    )


def _bayes(at, prior):
    return policies.BayesGreedy(at.importance, **prior._asdict())


def _plug_in(at, prior):
    return policies.PosteriorGreedy(at.importance, rng=at.rng, **prior._asdict())


def _phases(estimator, borders, **options):
    """`RatesInPhases`; estimator and borders are made for the situation."""
    return lambda at: policies.RatesInPhases(
        at.importance, borders(at), estimator(at), rng=at.rng, **options
    )


def _growing(at):
    """Borders of phases that grow, after two rounds, until the horizon."""
    first = 2.0 * at.one_round
    growths = np.log(at.horizon / first) / np.log(_GROWTH)
    return first * _GROWTH ** np.arange(max(np.ceil(growths), 1))


def _daily(at):
    """As published: 21 phases in which a page is crawled 0.2 times on average.

    From then on the phases grow.
    """
    days = 0.2 * at.one_round * np.arange(1, 22)
    return np.append(days, days[-1] * _GROWTH ** np.arange(1, 20))


def _pseudo(at):
    """Maximum likelihood, with one changed and one unchanged crawl for each page."""
    typical = 0.5 * at.one_round
    return priors.FakeIntervals(typical, typical).estimate


def _moments(at):
    """Moment matching, within bounds that hold 99.8% of the learnt prior."""
    bounds = at.prior.interval(level=0.998)
    return partial(moment_matching, bounds=bounds)


_harmonic = partial(allocation.optimal, objective=objectives.harmonic, crawls="poisson")

#: Functions of a `Situation` that make the policies, by name.
POLICIES: dict[str, Function] = {
    "uniform": _fixed(lambda at: np.full(at.importance.size, 1 / at.one_round)),
    "by change rate": _fixed(lambda at: at.pages.change_rate),
    "Poisson optimum, Poisson times": _at_random(_allocated("poisson")),
    "interval optimum": _fixed(_allocated("interval")),
    "GREEDY": lambda at: policies.Greedy(at.pages),
    # a prior learnt from other pages
    "Bayes value": lambda at: _bayes(at, at.prior),
    "plug-in mean": lambda at: _plug_in(at, at.prior),
    "explore, then commit, moments": _phases(_moments, lambda at: at.one_round),
    "Bayes value, vague": lambda at: _bayes(at, at.vague),
    "plug-in mean, vague": lambda at: _plug_in(at, at.vague),
    "phases, epsilon-greedy": _phases(_pseudo, _growing, epsilon=0.1),
    "LambdaLearnAndCrawl": _phases(
        _pseudo, _daily, allocation=_harmonic, spacing="poisson"
    ),
    "Nutch": lambda at: policies.Nutch(day=at.one_round / 30, cap=None),
    "StormCrawler": lambda at: policies.StormCrawler(day=at.one_round),
}


# ----------------------------------------------------------------------- the runs


def benchmark(
    natures: Mapping[str, Nature],
    makers: Mapping[str, Function],
    budgets: Sequence[float] = BUDGETS,
    *,
    n_runs: ArrayLike = RUNS,
    jobs: int = 1,
    progress: Callable[[list], Iterable] = iter,
) -> list[dict[str, Any]]:
    """Run every policy in the same worlds, at every budget.

    A run depends on the name of the world, the budget and its number alone, and the
    random numbers of a policy also on its name: more worlds or policies do not
    change the other results.

    Parameters
    ----------
    natures : dict of Nature
        Kinds of worlds by name.
    makers : dict of callable
        By name, a function of a `Situation` that makes a policy, with
        ``choose(world, time, last)`` as in `simulate.crawl`.
    budgets : sequence of float, default `BUDGETS`
        Crawls of a page in the median time between changes, on average.
    n_runs : int or sequence of int, default `RUNS`
        Number of worlds; one number, or one for each budget.
    jobs : int, default 1
        Processes, as in `simulate.replicate`.
    progress : callable, optional
        Called with the list of cells, such as `tqdm.tqdm`; yields them.

    Returns
    -------
    list of dict
        A row for each policy in each cell: means of `MEASURES`, and of the paired
        differences in freshness "over" some of the policies, where they take
        part; names that end in "±" are standard errors, NaN for one run.
    """
    numbers = np.broadcast_to(n_runs, len(budgets)).tolist()
    cells = [
        (name, budget, checks.count("n_runs", n))
        for name in natures
        for budget, n in zip(budgets, numbers, strict=True)
    ]
    rows = []
    for name, budget, n in progress(cells):
        nature = natures[name]
        stream = partial(_stream, name, budget)
        prior = _learn_prior(nature, budget, stream("prior"))
        run = partial(_one_run, nature, budget, makers, prior)
        found = replicate(run, n, rng=stream("runs"), jobs=jobs)
        runs = {policy: np.array([one[policy] for one in found]) for policy in makers}
        cell = {"world": name, "budget": budget}
        for policy in runs:
            row = cell | {"policy": policy, "runs": n}
            rows.append(row | _summary(runs, policy, nature.bootstrap))
    return rows


def _summary(runs, policy, bootstrap):
    """Means and standard errors of measures and of paired differences."""
    own = runs[policy]
    columns = dict(zip(MEASURES, own.T, strict=True))
    for other in _OVER:
        if other in runs:
            columns[f"over {other}"] = own[:, 0] - runs[other][:, 0]
    if "uniform" in runs:
        columns["delay over uniform"] = own[:, 1] - runs["uniform"][:, 1]
    summary = {}
    for name, values in columns.items():
        n = values.size
        error = values.std(ddof=1) if n > 1 else np.nan
        summary |= {name: values.mean(), f"{name} ±": error}
        if not bootstrap:
            summary[f"{name} ±"] = error / n**0.5
    return summary


def _stream(world, budget, what):
    """Random numbers that depend on the cell alone."""
    name = f"{world}, {budget:g}, {what}"
    return np.random.default_rng([_SEED, zlib.crc32(name.encode())])


def _learn_prior(nature, budget, rng):
    """Gamma distribution learnt from other pages that are crawled in turn."""
    found = []
    for stream in rng.spawn(_N_PRIOR):
        world = nature.draw(stream)
        n_pages = world.pages.importance.size
        time = slot_times(budget * n_pages * nature.change_rate, world.horizon)
        page = low_discrepancy(np.ones(n_pages), time.size)
        found.append(world.observe(time, page, np.zeros(n_pages)))
    pages = History(
        np.concatenate([one.interval for one in found]),
        np.concatenate([one.changed for one in found]),
        np.append(0, np.cumsum(np.concatenate([one.n_crawls for one in found]))),
    )
    return priors.gamma_prior(pages)


def _one_run(nature, budget, makers, prior, rng):
    """Measures of all policies in one world."""
    of_world, of_policies = rng.spawn(2)
    world = nature.draw(of_world)
    bandwidth = budget * world.pages.importance.size * nature.change_rate
    seeds, measured = of_policies.bit_generator.seed_seq, {}
    for name, make in makers.items():
        key = (*seeds.spawn_key, zlib.crc32(name.encode()))
        own = np.random.SeedSequence(seeds.entropy, spawn_key=key)
        at = Situation(
            *(world.pages, world.pages.importance, bandwidth, world.horizon, prior),
            rng=np.random.default_rng(own),
        )
        run = crawl(world, make(at), bandwidth)
        never, used = (run.n_crawls == 0).mean(), 1 - run.n_idle / run.time.size
        measured[name] = np.array([run.freshness, _delay(run, world), never, used])
    return measured


def _delay(run, world):
    """Mean time from a change to the next crawl of its page, by importance.

    A change that no crawl has seen counts as if it were seen at the end.
    """
    change, offsets = world.changes
    page = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    crawled = run.page >= 0
    # one search for all pages: their times laid end to end
    far = 2 * world.horizon
    ends = np.arange(offsets.size - 1) * far + world.horizon
    crawls = np.sort(np.append(run.page[crawled] * far + run.time[crawled], ends))
    laid = page * far + change
    delay, weight = crawls[np.searchsorted(crawls, laid)] - laid, run.importance[page]
    return (delay * weight).sum() / weight.sum() if weight.any() else np.nan


def _rounded(value):
    return f"{value:.5g}" if isinstance(value, float) else value


if __name__ == "__main__":
    from tqdm import tqdm

    folder = Path(sys.argv[1])
    natures = worlds() | {
        "real pages, 3 years": real_worlds(folder),
        "real pages, 14 years": real_worlds(folder, least_window=_LONG),
    }
    found = benchmark(natures, POLICIES, jobs=-1, progress=tqdm)
    path = folder / "benchmark.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        table.writeheader()
        table.writerows({k: _rounded(v) for k, v in row.items()} for row in found)
