"""The benchmark of the field, as the command runs it and the notebooks read it."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import re
import runpy
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from recrawl.science import field, simulate
from recrawl.files import write_atomic
from paperfigs import traces
from recrawl.types import PathLike

if TYPE_CHECKING:
    from recrawl.science.simulate.benchmarking import Benchmark, Nature

__all__ = ["PREVIEW", "entrant", "run", "worlds", "write"]

_SEED = 20
_LONG = 14 * 365.25  # days; half of the panel's pages were observed for longer
_DIGITS = 5  # significant ones in the files; standard errors are above 1e-5

#: What a preview runs: worlds, policies, budgets and the number of runs.
PREVIEW = {
    "worlds": ("lognormal 1.5", "bursty", "real pages, 14 years"),
    "policies": ("GREEDY", "Bayes value", "LearningGreedy", "Nutch", "uniform"),
    "budgets": (0.3, 1.0),
    "n_runs": 20,
}
_BAR = "{l_bar}{bar}| {elapsed} passed, {remaining} left"
_COMPARED = (
    "GREEDY",
    "interval optimum",
    "Bayes value",
    "Thompson",
    "LearningGreedy, no exploration",
    "uniform",
    "Nutch",
)
# Whose delays the page on policies compares, and where.
_DELAYED = (
    "uniform",
    "Nutch",
    "LambdaCrawl",
    "GREEDY",
    "Thompson",
    "Bayes value",
    "Bayes value, ages",
    "Bayes value, vague",
    "phases",
    "phases, hedged",
)
_DELAYED_IN = "lognormal 1.5", "real pages, 14 years"


def worlds(pages: PathLike | None = None) -> dict[str, Nature]:
    """Kinds of worlds of the benchmark: those of `field`, and real pages.

    Parameters
    ----------
    pages : path, optional
        Change times of other real pages, in the format of JODIE (`traces.jodie`).

    Returns
    -------
    dict of Nature
        By name; that of `pages` is the name of the file without its ending.

    Raises
    ------
    ValueError
        A file that has the name of another kind of worlds.

    Examples
    --------
    >>> list(worlds())[-3:]
    ['signals', 'real pages, 3 years', 'real pages, 14 years']
    """
    panel = traces.panel()
    kinds = field.worlds() | {
        "real pages, 3 years": field.real_worlds(panel),
        "real pages, 14 years": field.real_worlds(panel, least_window=_LONG),
    }
    if pages is not None:
        name = Path(pages).stem
        if name in kinds:
            raise ValueError(
                f"pages must be a file that is not named as a world is, got {pages}"
            )
        kinds[name] = field.real_worlds(traces.jodie(pages))
    return kinds


def entrant(text: str) -> tuple[str, Callable[..., Any]]:
    """Find a policy that somebody wants to enter.

    Parameters
    ----------
    text : str
        ``FILE.py:NAME``: a function or class of a `simulate.Situation`.

    Returns
    -------
    name : str
        NAME.
    make : callable
        What the file has under this name.

    Raises
    ------
    ValueError
        No such form, nothing callable under this name, or the name of a policy of
        the field.
    FileNotFoundError
        No such file.
    RuntimeError
        The file cannot be run; the message has the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/mine.py").write_text("def mine(at): return None")
    ...     entrant(f"{folder}/mine.py:mine")[0]
    'mine'
    """
    path, colon, name = text.rpartition(":")
    if not (colon and path.endswith(".py") and name.isidentifier()):
        raise ValueError(f"a policy must be given as FILE.py:NAME, got {text!r}")
    with open(path, "rb"):  # a FileNotFoundError of this file, not of one it opens
        pass
    with _blamed(path):
        make = runpy.run_path(path).get(name)
    if not callable(make):
        raise ValueError(f"{path} must have a function or class {name}, got {make!r}")
    if name in field.POLICIES:
        raise ValueError(f"{path}: the field has a {name}; give yours another name")
    return name, make


@contextlib.contextmanager
def _blamed(path: str) -> Iterator[None]:
    """Context in which errors are those of a file: with its name and the line."""
    try:
        yield
    except Exception as error:
        # The text, because an error in another process brings no frames.
        text = "".join(traceback.format_exception(error))
        lines = re.findall(rf'File "{re.escape(path)}", line (\d+)', text)
        where = f"{path}, line {lines[-1]}" if lines else path
        raise RuntimeError(f"{where}: {type(error).__name__}: {error}") from error


def run(
    entrants: Sequence[str] = (),
    *,
    preview: bool = False,
    pages: PathLike | None = None,
    cells: PathLike | None = None,
    jobs: int = 1,
) -> Benchmark:
    """Run the benchmark, with a bar that shows the time left.

    Parameters
    ----------
    entrants : sequence of str, optional
        Policies beside those of the field, as in `entrant`.
    preview : bool, default False
        Whether to run `PREVIEW` only.
    pages : path, optional
        As in `worlds`.
    cells : path, optional
        Where finished cells of the field are kept, see `simulate.benchmark`.
        Entrants, which may change from run to run, always run, in the same
        worlds, and before the field.
    jobs : int, default 1
        Processes.

    Returns
    -------
    Benchmark
        The measures of every run.

    Raises
    ------
    ValueError, FileNotFoundError, RuntimeError
        As in `entrant`, and for pages that cannot be read; two entrants of one
        name; an error in an entrant.

    Examples
    --------
    >>> found = run(["mypolicy.py:MyPolicy"], preview=True)  # doctest: +SKIP
    """
    kinds = worlds(pages)
    known = {name: entry.make for name, entry in field.POLICIES.items()}
    budgets, n_runs = field.BUDGETS, field.RUNS
    if preview:
        extra = [Path(pages).stem] if pages is not None else []
        kinds = {name: kinds[name] for name in (*PREVIEW["worlds"], *extra)}
        known = {name: known[name] for name in PREVIEW["policies"]}
        budgets, n_runs = PREVIEW["budgets"], PREVIEW["n_runs"]
    new = [(text.rpartition(":")[0], *entrant(text)) for text in entrants]
    names = [name for _, name, _ in new]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"entrants must have names of their own, got two {name}")
    given = {"n_runs": n_runs, "rng": _SEED, "jobs": jobs}

    def compete(makers, what, folder=None):
        with tqdm(total=100.0, unit="%", desc=what, bar_format=_BAR) as bar:

            def progress(share, seconds):
                bar.update(100.0 * share - bar.n)

            options = given | {"folder": folder, "progress": progress}
            return simulate.benchmark(kinds, makers, budgets, **options)

    own = {}
    for path, name, make in new:
        with _blamed(path):
            own |= compete({name: make}, name).runs
    found = compete(known, "field", None if preview else cells)
    return dataclasses.replace(found, runs=found.runs | own)


def write(found: Benchmark, folder: PathLike) -> list[Path]:
    """Write ``benchmark.csv``, and pairs that it leaves out.

    In ``benchmark_over_time.csv`` are the pairs in each window, of real pages; in
    ``benchmark_delay.csv`` those of the delays, of some policies in two worlds.

    Parameters
    ----------
    found : Benchmark
        What was measured.
    folder : path
        Where to write.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> write(found, "data")  # doctest: +SKIP
    """
    over_time = found.rows_over_time("GREEDY")
    tables = {
        "benchmark": found.rows(over=_COMPARED),
        "benchmark_over_time": [r for r in over_time if found.bootstrap[r["world"]]],
        "benchmark_delay": _delays(found),
    }
    paths = []
    for name, rows in tables.items():
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows({k: _rounded(v) for k, v in row.items()} for row in rows)
        paths.append(Path(folder) / f"{name}.csv")
        write_atomic(paths[-1], text.getvalue())
    return paths


def _delays(found):
    """Paired differences in delay to uniform crawling."""
    rows = []
    for world, budget, policy in found.runs:
        if world in _DELAYED_IN and policy in _DELAYED:
            pair = found.gain(world, budget, policy, "uniform", name="delay")
            row = {"world": world, "budget": budget, "policy": policy}
            row["over uniform"], row["over uniform ±"] = pair
            rows.append(row)
    return rows


def _rounded(value):
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else value
