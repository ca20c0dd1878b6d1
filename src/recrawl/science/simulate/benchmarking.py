"""Compare many policies in many worlds at many budgets, cell by cell."""

from __future__ import annotations

import io
import operator
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.files import write_atomic
from recrawl.kernels.changes import look
from recrawl.science import priors
from recrawl.science.processes import History
from recrawl.science.schedules import low_discrepancy
from recrawl.science.signals import SignalledPages
from recrawl.science.simulate.measures import costs
from recrawl.science.simulate.runs import crawl, replicate, slot_times
from recrawl.types import Array, Function, PathLike, Seed

__all__ = ["MEASURES", "Benchmark", "Nature", "Situation", "benchmark"]

#: What is kept of each run, before its freshness in each of the windows.
MEASURES = (
    "freshness",
    "delay",
    "late",
    "age",
    "harmonic",
    "never_crawled",
    "used",
)
_CELL = "world", "budget", "policy"
_RUNS = "runs of "  # before the names of policies in the file of a cell
# What NumPy raises for a file that is none of its own, or that is not whole.
_UNREADABLE = EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error
_N_PRIOR = 10  # worlds of other pages that the prior is learnt from


class Nature(NamedTuple):
    """A kind of worlds.

    Parameters
    ----------
    draw : callable
        Function of a Generator that draws a `World` whose pages all stay.
    change_rate : float, 1/time
        The median change rate of the pages, by which budgets are measured.
    bootstrap : bool, default False
        Whether a world is a sample with replacement of pages that are given. The
        standard error of a mean is then the standard deviation over the worlds,
        because more worlds do not bring more pages.

    Examples
    --------
    >>> from recrawl.science.simulate import draw_world
    >>> pages = SignalledPages([0.5, 2.0], 1.0, 0.0, 0.0)
    >>> nature = Nature(lambda rng: draw_world(pages, 9.0, rng=rng), 1.25)
    >>> nature.draw(np.random.default_rng(1)).horizon
    9.0
    """

    draw: Callable
    change_rate: float
    bootstrap: bool = False


class Situation(NamedTuple):
    """Information from which a policy is made, before its first crawl.

    Parameters
    ----------
    pages : SignalledPages
        The true parameters of the pages: only for policies that are said to know
        them.
    importance : ndarray, shape (n_pages,)
        Importances.
    bandwidth : float, 1/time
        Slots per unit of time.
    horizon : float, time
        End of the world.
    prior : GammaPrior
        Gamma distribution of change rates, learnt from other pages that were
        crawled alike at the same bandwidth.
    rng : Generator
        Source of random numbers, one for each run and policy.
    signals : bool, default False
        Whether signals arrive.

    Examples
    --------
    >>> from recrawl.science.policies import BayesGreedy
    >>> def make(situation):
    ...     prior = situation.prior._asdict()
    ...     return BayesGreedy(situation.importance, **prior)
    """

    pages: SignalledPages
    importance: np.ndarray
    bandwidth: float
    horizon: float
    prior: priors.GammaPrior
    rng: np.random.Generator
    signals: bool = False


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What `benchmark` measured.

    Parameters
    ----------
    runs : dict
        By world, budget and policy: an array of shape (n_runs, n_measures +
        n_windows) with `MEASURES` and then the freshness in each window.
    bootstrap : dict
        By world: whether the worlds are samples of given pages, see `Nature`.

    Examples
    --------
    Two runs of one policy, whose freshness was 0.5 and 0.7:

    >>> runs = np.zeros((2, len(MEASURES)))
    >>> runs[:, 0] = 0.5, 0.7
    >>> cell = "quiet", 1.0, "greedy"
    >>> found = Benchmark({cell: runs}, {"quiet": False})
    >>> [round(float(x), 3) for x in found.measure(*cell, "freshness")]
    [0.6, 0.1]
    """

    runs: dict
    bootstrap: dict

    def measure(
        self, world: str, budget: float, policy: str, name: str
    ) -> tuple[float, float]:
        """Mean of a measure, and its standard error.

        Parameters
        ----------
        world : str
            Name of the world.
        budget : float
            The budget.
        policy : str
            Name of the policy.
        name : str
            One of `MEASURES`.

        Returns
        -------
        mean, stderr : float
            The standard error is NaN for one run.

        Raises
        ------
        ValueError
            No such measure.
        """
        values = self.runs[world, budget, policy][:, _column(name)]
        return self._mean(world, values)

    def gain(
        self,
        world: str,
        budget: float,
        policy: str,
        over: str,
        *,
        name: str = "freshness",
    ) -> tuple[float, float]:
        """Difference between two policies in the same worlds.

        Parameters
        ----------
        world : str
            Name of the world.
        budget : float
            The budget.
        policy, over : str
            Names of the policies.
        name : str, default "freshness"
            One of `MEASURES`.

        Returns
        -------
        mean, stderr : float
            Of the paired differences; the standard error is NaN for one run.

        Raises
        ------
        ValueError
            No such measure.
        """
        return self._gain(world, budget, policy, over, _column(name))

    def gain_over_time(
        self, world: str, budget: float, policy: str, over: str
    ) -> tuple[Array, Array]:
        """Paired difference of freshness in each window.

        Parameters
        ----------
        world : str
            Name of the world.
        budget : float
            The budget.
        policy, over : str
            Names of the policies.

        Returns
        -------
        mean, stderr : ndarray, shape (n_windows,)
            Of the paired differences.
        """
        return self._gain(world, budget, policy, over, slice(len(MEASURES), None))

    def rows(self, *, over: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Make a table with a row for each policy in each cell.

        Parameters
        ----------
        over : sequence of str, optional
            Policies that the others are compared with, where they were run.

        Returns
        -------
        list of dict
            World, budget, policy, number of runs, and each measure with its
            standard error; then the paired difference in freshness "over" each
            of the others.
        """
        table = []
        for cell, runs in self.runs.items():
            row = dict(zip(_CELL, cell, strict=True)) | {"runs": len(runs)}
            for name in MEASURES:
                row[name], row[f"{name} ±"] = self.measure(*cell, name)
            for other in over:
                if (*cell[:2], other) in self.runs:
                    pair = self.gain(*cell, over=other)
                    row[f"over {other}"], row[f"over {other} ±"] = pair
            table.append(row)
        return table

    def rows_over_time(self, over: str) -> list[dict[str, Any]]:
        """Make a table with a row for each policy in each window of each cell.

        Parameters
        ----------
        over : str
            The policy that the others are compared with.

        Returns
        -------
        list of dict
            World, budget, policy, the end of the window as a share of the
            horizon, and the paired difference in freshness with its standard
            error.
        """
        return [
            dict(zip(_CELL, cell, strict=True))
            | {
                "until": (k + 1) / (runs.shape[1] - len(MEASURES)),
                f"over {over}": mean,
                f"over {over} ±": stderr,
            }
            for cell, runs in self.runs.items()
            for k, (mean, stderr) in enumerate(
                zip(*self.gain_over_time(*cell, over), strict=True)
            )
        ]

    def _gain(self, world, budget, policy, over, columns):
        one, other = (self.runs[world, budget, who] for who in (policy, over))
        return self._mean(world, (one - other)[:, columns])

    def _mean(self, world, values):
        n = values.shape[0]
        spread = values.std(axis=0, ddof=1) if n > 1 else values.mean(axis=0) * np.nan
        return values.mean(axis=0), spread if self.bootstrap[world] else spread / n**0.5


def _column(name):
    checks.one_of("name", name, MEASURES)
    return MEASURES.index(name)


def benchmark(
    worlds: dict[str, Nature],
    policies: Mapping[str, Function],
    budgets: ArrayLike,
    *,
    n_runs: ArrayLike,
    rng: Seed = None,
    n_windows: int = 20,
    folder: PathLike | None = None,
    jobs: int = 1,
    progress: Function | None = None,
) -> Benchmark:
    """Run every policy in the same worlds, at every budget.

    A cell is a kind of worlds at a budget. Its runs depend on `rng`, the name of
    the world, the budget and the number of the run alone, and the random
    numbers of a policy also depend on its name. More cells or policies do not
    change the other results.

    Parameters
    ----------
    worlds : dict of Nature
        Kinds of worlds by name.
    policies : dict of callable
        By name, a function of a `Situation` that makes a policy. It has
        ``choose(world, time, last)`` as in `crawl`; or it is like a
        `scheduler.Scheduler`, with ``next(time)``, which returns a page or -1,
        and ``report(page, changed)``. A function that returns None does not
        compete in that world.
    budgets : array_like, positive
        Crawls of a page in the median time between changes, on average.
    n_runs : int or sequence of int
        Number of worlds of each cell; one number, or one for each budget.
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers. Cells that were kept are found again by an
        integer.
    n_windows : int, default 20
        Number of equal windows of time.
    folder : path, optional
        Where finished cells are kept. Policies that a kept cell has are not run
        again, as long as seed, numbers of runs and windows, the change rate of the
        `Nature`, and the first world are the same. Whether a policy of the same
        name has changed is not seen: delete the folder then.
    jobs : int, default 1
        As in `replicate`; also on a Dask cluster.
    progress : callable, optional
        Called after each cell with two numbers: the share done of the slots
        that no kept cell has, and the seconds since the start.

    Returns
    -------
    Benchmark
        The measures of every run.

    Raises
    ------
    ValueError
        Arguments out of range, a policy that returns pages that do not exist,
        or a kept cell that cannot be read.

    Examples
    --------
    >>> from recrawl.science import policies
    >>> from recrawl.science.simulate import draw_world
    >>> def draw(rng):
    ...     pages = SignalledPages(9 * rng.random(9) ** 3, 1.0, 0.0, 0.0)
    ...     return draw_world(pages, 50.0, rng=rng)
    >>> found = benchmark(
    ...     {"even": Nature(draw, 1.0)},
    ...     {
    ...         "greedy": lambda at: policies.Greedy(at.pages),
    ...         "uniform": lambda at: policies.Rates(at.importance),
    ...     },
    ...     [1.0],
    ...     n_runs=4,
    ...     rng=1,
    ... )
    >>> gain, stderr = found.gain("even", 1.0, "greedy", over="uniform")
    >>> bool(gain > 3 * stderr)
    True
    """
    budgets = np.atleast_1d(checks.positive("budgets", budgets)).tolist()
    if np.ndim(budgets) > 1:
        raise ValueError(f"budgets must be numbers in one list, got {budgets!r}")
    named = {"worlds": worlds, "policies": policies, "budgets": budgets}
    for name, given in named.items():
        if not given:
            raise ValueError(f"{name} must not be empty, got {given!r}")
    if np.size(n_runs) not in (1, len(budgets)):
        raise ValueError(
            "n_runs must be one number, or one for each of the "
            f"{len(budgets)} budgets, got {n_runs!r}"
        )
    numbers = np.broadcast_to(n_runs, len(budgets)).tolist()
    numbers = [checks.count("n_runs", n) for n in numbers]
    settings = _seed(rng), checks.count("n_windows", n_windows)
    cells = [
        _Cell(world, nature, budget, n, *settings)
        for world, nature in worlds.items()
        for budget, n in zip(budgets, numbers, strict=True)
    ]
    kept = [cell.kept(folder) for cell in cells]
    work = np.array(
        [
            cell.budget * cell.n_runs * len(policies.keys() - have)
            for cell, have in zip(cells, kept, strict=True)
        ]
    )
    shares = work.cumsum() / work.sum() if work.any() else np.ones(work.size)
    runs, begun = {}, time.monotonic()
    for cell, have, share in zip(cells, kept, shares.tolist(), strict=True):
        found = cell.run(policies, have, folder, jobs)
        runs |= {(cell.world, cell.budget, policy): found[policy] for policy in found}
        if progress:
            progress(share, time.monotonic() - begun)
    bootstrap = {world: nature.bootstrap for world, nature in worlds.items()}
    return Benchmark(runs, bootstrap)


def _seed(rng):
    """Seed for a source of random numbers; a non-negative integer is its own seed."""
    if isinstance(rng, (int, np.integer)) and rng >= 0:
        return int(rng)
    return int(np.random.default_rng(rng).integers(2**63))


class _Cell(NamedTuple):
    """Worlds of one kind at one budget."""

    world: str
    nature: Nature
    budget: float
    n_runs: int
    seed: int
    n_windows: int

    def run(self, policies, kept, folder, jobs):
        """Runs of all policies; some may be kept, the others are added."""
        missing = {name: make for name, make in policies.items() if name not in kept}
        if missing:
            prior = self._prior(self._stream("prior"))
            found = replicate(
                lambda rng: self._one_run(missing, prior, rng),
                self.n_runs,
                rng=self._stream("runs"),
                jobs=jobs,
            )
            for name in found[0]:
                kept[name] = np.stack([one[name] for one in found])
            if folder is not None:
                self._keep(kept, folder)
        return {name: kept[name] for name in policies if kept[name].size}

    def _stream(self, what):
        """Random numbers that depend on the seed and on the cell alone."""
        name = f"{self.world}, {self.budget:g}, {what}"
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def _bandwidth(self, world):
        return self.budget * world.start.size * self.nature.change_rate

    def _prior(self, rng):
        """Gamma distribution learnt from other pages that are crawled in turn."""
        found = []
        for stream in rng.spawn(_N_PRIOR):
            world = self.nature.draw(stream)
            time = slot_times(self._bandwidth(world), world.horizon)
            page = low_discrepancy(np.ones(world.start.size), time.size)
            found.append(world.observe(time, page, np.zeros(world.start.size)))
        pages = History(
            np.concatenate([one.interval for one in found]),
            np.concatenate([one.changed for one in found]),
            np.append(0, np.cumsum(np.concatenate([one.n_crawls for one in found]))),
        )
        return priors.gamma_prior(pages)

    def _one_run(self, policies, prior, rng):
        """Measures of all policies in one world."""
        of_world, of_policies = rng.spawn(2)
        world = self.nature.draw(of_world)
        seeds = of_policies.bit_generator.seed_seq
        windows = np.linspace(0.0, world.horizon, self.n_windows + 1)
        measured = {}
        for name, make in policies.items():
            key = (*seeds.spawn_key, zlib.crc32(name.encode()))
            own = np.random.SeedSequence(seeds.entropy, spawn_key=key)
            situation = Situation(
                world.pages,
                world.pages.importance,
                self._bandwidth(world),
                world.horizon,
                prior,
                np.random.default_rng(own),
                bool(np.isfinite(world.arrival).any()),
            )
            policy = make(situation)
            measured[name] = np.empty(0)
            if policy is not None:
                if not hasattr(policy, "choose"):
                    policy = _Asked(policy)
                run = crawl(world, policy, situation.bandwidth, borders=windows)
                measured[name] = _measures(run, world)
        return measured

    def kept(self, folder):
        """Kept runs of this cell, by policy; empty if the file is of another cell."""
        if folder is None or not self._path(folder).exists():
            return {}
        try:
            # NumPy would leave a file open that it cannot read
            with open(self._path(folder), "rb") as raw, np.load(raw) as file:
                settings = file.get("settings", np.empty(0)).tolist()
                runs = {k[len(_RUNS) :]: file[k] for k in file if k != "settings"}
        except _UNREADABLE as error:
            raise ValueError(
                f"{self._path(folder)} is no cell of a benchmark, or damaged: delete "
                "it, and the cell is run again"
            ) from error
        return runs if settings == self._settings() else {}

    def _keep(self, runs, folder):
        content = io.BytesIO()
        named = {_RUNS + name: of for name, of in runs.items()}
        np.savez_compressed(content, settings=self._settings(), **named)
        write_atomic(self._path(folder), content.getvalue())

    def _path(self, folder):
        return Path(folder) / f"{_slug(self.world)}-{self.budget:g}.npz"

    def _settings(self):
        """What runs depend on, with a checksum of the first world."""
        (first,) = self._stream("runs").spawn(1)
        world = self.nature.draw(first.spawn(2)[0])
        parts = (
            (self.nature.change_rate, world.horizon, world.false_change),
            *world.changes,
            world.signal_time,
            world.arrival,
            *vars(world.pages).values(),
        )
        seen = b"".join(np.asarray(part).tobytes() for part in parts)
        return [self.n_runs, self.seed, self.n_windows, zlib.crc32(seen)]


class _Asked:
    """Policy that takes pages from a scheduler and reports what the crawls find."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def choose(self, world, time, last):
        """Page of each slot."""
        changes, page = world.unseen(time.size), np.empty(time.size, dtype=np.int64)
        report = getattr(self.scheduler, "report", None)
        for j, t in enumerate(time.tolist()):
            # without the check the kernel would read beyond its array
            i = page[j] = _checked(self.scheduler.next(t), last.size)
            if i >= 0 and report:
                report(int(i), bool(look(changes, i, j, t)[0]))
        return page


def _checked(page, n_pages):
    """A page, or -1, as an int."""
    try:
        index = operator.index(page)
    except TypeError:
        index = n_pages
    if not -1 <= index < n_pages:
        raise ValueError(
            f"next must return an integer from 0 to {n_pages - 1}, or -1, got {page!r}"
        )
    return index


def _measures(run, world):
    """`MEASURES` of a run, and its freshness in each window."""
    of = costs(run, world)
    never, used = (run.n_crawls == 0).mean(), 1 - run.n_idle / run.time.size
    return np.array([run.freshness, *of, never, used, *run.window_freshness])


def _slug(name):
    """A name for a file, in which only letters, digits and minus signs are left."""
    return "-".join("".join(c if c.isalnum() else " " for c in name).split()).lower()
