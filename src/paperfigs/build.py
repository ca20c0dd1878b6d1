"""Build the figures: find notebooks, run those out of date, verify, refresh.

A figure is out of date when something that it depends on has changed since
this machine built it: the code of its notebook, the parameters, a module that
the notebook imports (directly or not), the data or the lock file; or when its
files are not those that were written. A stamp below ``build/`` keeps the
checksums.
"""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from recrawl.files import sha256, write_atomic
from paperfigs import project, report
from paperfigs.project import (
    ROOT,
    SHARED_RESULTS,
    BuildError,
    cells,
    defaults,
    notebooks,
)
from paperfigs.running import (
    DRAWN_ONCE,
    KERNEL,
    event_loop,
    locked,
    read_seconds,
    run_all,
)
from recrawl.types import PathLike

__all__ = [
    "PROFILES",
    "ROOT",
    "BuildError",
    "Job",
    "cells",
    "defaults",
    "execute",
    "figures",
    "fingerprint",
    "import_graph",
    "jobs_for",
    "listing",
    "notebooks",
    "refresh",
    "select",
    "sources",
    "verify",
    "write_summaries",
]

PROFILES = ("paper", "preview")
_SUFFIXES = (".png", ".svg", ".json", ".npz")  # the files of a figure
# What modules read, apart from data, below src/paperlib.
_READ_BY = {
    "paperfigs.plotting": "paper.mplstyle",
    "paperfigs.report": "repro/pages/*",
    "recrawl": "crawl_log/sql/*.sql",
    "recrawl.reporting": "crawl_log/report.*",
    "paperfigs.traces.bing_data": "repro/traces/bing_data.sql",
}
# `verify` compares a rebuilt array with the committed one. Other machines
# round differently in the last digits, and simulations amplify that a little.
_RELATIVE = 1e-6
_ABSOLUTE = 1e-9  # relative to the largest entry of the array
_CELL_SECONDS = 600  # a cell of a preview that takes longer hangs


@dataclass(frozen=True)
class Job:
    """One figure to build.

    Parameters
    ----------
    figure : str
        Its id, such as "peva22/fig2".
    notebook : Path
        The notebook that makes it.
    parameters : dict
        The parameters that replace those of the notebook.

    Examples
    --------
    >>> from paperfigs import build
    >>> job, = build.jobs_for(["peva22/fig2"], "preview")
    >>> job.figure, job.notebook.name, job.parameters
    ('peva22/fig2', 'fig2_synthetic.ipynb', {})
    """

    figure: str
    notebook: Path
    parameters: dict


# ---- notebooks: which there are, and what is in them


def select(
    ids: Sequence[str], root: Path = ROOT, guides: bool = False
) -> dict[str, Path]:
    """Find the notebooks that are asked for.

    Parameters
    ----------
    ids : sequence of str
        Figures ("peva22/fig2"), papers ("peva22") or paths of notebooks; if
        empty, all of `notebooks`.
    root : Path, optional
        The clone of the project.
    guides : bool, default False
        As in `notebooks`.

    Returns
    -------
    dict of Path
        By figure id.

    Raises
    ------
    BuildError
        An unknown id, with similar ones in the message; or no clone at `root`.

    Examples
    --------
    >>> from paperfigs import build
    >>> list(build.select(["valuetools20"]))
    ['valuetools20/fig1', 'valuetools20/fig2', 'valuetools20/fig3']
    """
    known = notebooks(root, guides)
    if not known:
        raise BuildError(
            f"no notebooks in {root / 'notebooks'}: figures need a clone of the "
            "project, and there `pip install --editable '.[figures]'`"
        )
    chosen = {}
    for wanted in ids:
        name = "/".join(Path(wanted.removesuffix(".ipynb")).parts[-2:])
        name = name.removeprefix("notebooks/")
        matching = {
            figure: path
            for figure, path in known.items()
            if name in (figure, figure.split("/")[0], f"{path.parent.name}/{path.stem}")
        }
        if not matching:
            raise BuildError(_unknown(name, known))
        chosen |= matching
    return chosen or known


def _unknown(name, known):
    """What to say of an unknown id, with similar ones."""
    names = [*known, *{figure.split("/")[0] for figure in known}]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    meant = f"did you mean {', '.join(near)}?" if near else "--list names all"
    return f"unknown figure {name!r}; {meant}"


def listing(ids: Sequence[str] = (), root: Path = ROOT) -> list[tuple[Any, ...]]:
    """List figures with their build times, claims and titles.

    Parameters
    ----------
    ids : sequence of str
        As in `select`.
    root : Path, optional
        The clone of the project.

    Returns
    -------
    list of tuple
        For each figure: its id, the seconds of its last build at paper scale
        on this machine ("-" if there was none), the number of claims that
        hold, that differ, and that do neither, and the title of the notebook.

    Examples
    --------
    >>> from paperfigs import build
    >>> row, = build.listing(["valuetools20/fig1"])
    >>> row[0]
    'valuetools20/fig1'
    """
    seconds = read_seconds(_seconds_file(root, "paper"))
    records = report.read_all(root)
    rows = []
    for figure, notebook in select(ids, root).items():
        claims = records.get(figure, {"claims": []})["claims"]
        statuses = [claim["status"] for claim in claims]
        holds, differs = statuses.count("holds"), statuses.count("differs")
        others = len(statuses) - holds - differs
        took, title = seconds.get(figure, "-"), project.title(notebook)
        rows.append((figure, took, holds, differs, others, title))
    return rows


def _seconds_file(root, kind):
    """Where the seconds of the last builds of one kind are kept."""
    return root / "build" / f"seconds-{kind}.json"


# ---- jobs, and what they depend on


def jobs_for(
    ids: Sequence[str],
    profile: Literal["paper", "preview"],
    root: Path = ROOT,
    *,
    parameters: dict[str, Any] | None = None,
) -> list[Job]:
    """List the figures to build, in the order of ``notebooks/paper.yaml``.

    Parameters
    ----------
    ids : sequence of str
        As in `select`.
    profile : {"paper", "preview"}
        The papers' own parameters, or those of the notebooks.
    root : Path, optional
        The clone of the project.
    parameters : dict, optional
        Other values by name, for each of the figures.

    Returns
    -------
    list of Job
        One for each figure.

    Raises
    ------
    BuildError
        An unknown id, profile or name of a parameter, which papermill would
        ignore; a value of another type than the one in the notebook; a claim
        that nothing can judge.

    Examples
    --------
    >>> from paperfigs import build
    >>> [job.figure for job in build.jobs_for(["valuetools20/fig1"], "paper")]
    ['valuetools20/fig1']
    """
    if profile not in PROFILES:
        raise BuildError(
            f"unknown profile {profile!r}; there are {', '.join(PROFILES)}"
        )
    chosen = select(ids, root)
    paper = project.paper_parameters(root)
    if strangers := set(paper) - set(notebooks(root)):
        raise BuildError(
            "notebooks/paper.yaml names figures without a notebook: "
            f"{', '.join(sorted(strangers))}"
        )
    order = {figure: k for k, figure in enumerate(paper)}
    jobs = []
    for figure in sorted(chosen, key=lambda figure: order.get(figure, len(order))):
        given = paper.get(figure, {}) if profile == "paper" else {}
        given = given | (parameters or {})
        _check_parameters(figure, given, defaults(chosen[figure]))
        project.protocol(figure, root)  # raises if a claim has no criterion
        jobs.append(Job(figure, chosen[figure], given))
    return jobs


def _check_parameters(figure, given, allowed):
    """Refuse a parameter that a notebook does not have, or of another type."""
    for name, value in given.items():
        if name not in allowed or name == "output_dir":
            names = ", ".join(key for key in allowed if key != "output_dir")
            raise BuildError(f"{figure} has no parameter {name!r}; it has {names}")
        usual = allowed[name]
        if isinstance(usual, list):  # one value stands for a list of it
            values, usual = value if isinstance(value, list) else [value], usual[0]
        else:
            values = [value]
        # A whole number serves as a real one; True is not a number.
        types = {float: (int, float)}.get(type(usual), type(usual))
        for one in values if usual is not None else ():
            if not isinstance(one, types) or (
                isinstance(one, bool) and not isinstance(usual, bool)
            ):
                raise BuildError(
                    f"parameter {name!r} of {figure} must be of the type of its "
                    f"default, {allowed[name]!r}, got {value!r}"
                )


def import_graph() -> Any:
    """Find out which module of paperlib imports which.

    Imports inside functions count; imports by a computed name, and those that
    only name types, do not.

    Returns
    -------
    grimp.ImportGraph
        It takes 0.03 s to build, so that no cache of it is kept on disk.

    Examples
    --------
    >>> from paperfigs import build
    >>> graph = build.import_graph()
    >>> "recrawl.files" in graph.find_modules_directly_imported_by(
    ...     "paperfigs.plotting"
    ... )
    True
    """
    import grimp

    # What only names a type is not run.
    return grimp.build_graph(
        "paperlib", exclude_type_checking_imports=True, cache_dir=None
    )


def sources(notebook: PathLike, root: Path = ROOT, *, graph: Any = None) -> list[Path]:
    """List the files of paperlib that a notebook depends on.

    These are the modules that its code cells import, directly or not, the
    packages that contain them, and the files that these modules read.

    Parameters
    ----------
    notebook : path
        A notebook of version 4.
    root : Path, optional
        The clone of the project.
    graph : grimp.ImportGraph, optional
        The result of `import_graph`, for many notebooks.

    Returns
    -------
    list of Path
        Sorted. All files of paperlib if a cell that imports is not plain
        Python, such as one with a command for IPython.

    Examples
    --------
    >>> from paperfigs import build
    >>> notebook = build.notebooks()["peva22/fig2"]
    >>> names = [path.name for path in build.sources(notebook)]
    >>> "plotting.py" in names, "cli.py" in names
    (True, False)
    """
    graph = graph or import_graph()
    try:
        modules = _imported(_names(notebook), graph)
    except SyntaxError:
        modules = graph.modules
    src, files = root / "src", []
    for name in modules:
        stem = src.joinpath(*name.split("."))
        files.append(stem / "__init__.py" if stem.is_dir() else Path(f"{stem}.py"))
        if name in _READ_BY:
            files += (src / "paperlib").glob(_READ_BY[name])
    return sorted(files)


def _names(notebook):
    """The modules, and attributes of modules, that the code cells import."""
    found = set()
    # Other cells are left out because walking all of them takes a second.
    importing = (source for _, source in cells(notebook) if "import" in source)
    for source in importing:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _imported(names, graph):
    """All modules that are loaded when `names` are imported."""
    found, new = set(), set(names)
    while new:
        name = new.pop()
        found.add(name)
        # Importing a module imports its package first.
        parent = name.rpartition(".")[0]
        direct = (
            graph.find_modules_directly_imported_by(name)
            if name in graph.modules
            else set()
        )
        new |= ({parent} | direct) - found
    return found & graph.modules  # without attributes, other libraries and ""


def fingerprint(job: Job, root: Path = ROOT, *, graph: Any = None) -> str:
    """Compute a checksum of what a figure depends on, except for its data.

    Parameters
    ----------
    job : Job
        The figure.
    root : Path, optional
        The clone of the project.
    graph : grimp.ImportGraph, optional
        The result of `import_graph`, for many figures.

    Returns
    -------
    str
        SHA-256 of the notebook's code, the parameters, the criteria of the
        claims, the lock file and `sources`.

    Examples
    --------
    >>> from paperfigs import build
    >>> job, = build.jobs_for(["peva22/fig2"], "preview")
    >>> len(build.fingerprint(job))
    64
    """
    claims = project.protocol(job.figure, root)
    # Criteria are in the record, texts are not.
    criteria = {name: project.limits(claim) for name, claim in claims.items()}
    inputs = [cells(job.notebook), job.parameters, list(criteria.items())]
    code = json.dumps(inputs, sort_keys=True)
    digest = hashlib.sha256(code.encode())
    lock_file = root / "requirements.lock"
    for path in [lock_file, *sources(job.notebook, root, graph=graph)]:
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


# ---- figures


def execute(job: Job, executed: Path, staging: Path) -> float:
    """Run one notebook in a kernel of its own.

    Parameters
    ----------
    job : Job
        The figure.
    executed : Path
        Where the executed notebook goes, also that of a run which fails.
    staging : Path
        The folder below which the notebook saves its figure.

    Returns
    -------
    float
        The seconds that it took.

    Raises
    ------
    FileNotFoundError
        The notebook did not save all files of its figure.

    Examples
    --------
    >>> from paperfigs import build
    >>> job, = build.jobs_for(["valuetools20/fig3"], "preview")
    >>> build.execute(job, Path("run.ipynb"), Path("out"))  # doctest: +SKIP
    3.1
    """
    import papermill

    # Its lines would tear the progress bar; what it logs is also raised.
    logging.getLogger("papermill").setLevel(logging.CRITICAL)
    began = time.monotonic()
    executed.parent.mkdir(parents=True, exist_ok=True)
    with event_loop():
        papermill.execute_notebook(
            job.notebook,
            executed,
            parameters=job.parameters | {"output_dir": str(staging)},
            language="python",
            progress_bar=False,
            log_output=False,
            **KERNEL | {"extra_arguments": [*KERNEL["extra_arguments"], DRAWN_ONCE]},
        )
    files = _files(staging, job.figure).values()
    if missing := [path.name for path in files if not path.exists()]:
        raise FileNotFoundError(f"the notebook saved no {', '.join(missing)}")
    return time.monotonic() - began


def _files(folder, figure):
    """The files of a figure below a folder, by suffix."""
    return {suffix: (folder / figure).with_suffix(suffix) for suffix in _SUFFIXES}


def figures(
    ids: Sequence[str] = (),
    *,
    profile: Literal["paper", "preview"] = "paper",
    parameters: dict[str, Any] | None = None,
    jobs: int | None = None,
    force: bool = False,
    output: PathLike | None = None,
    root: Path = ROOT,
) -> dict[str, str]:
    """Build the figures that are not up to date.

    Parameters
    ----------
    ids : sequence of str
        As in `select`.
    profile : {"paper", "preview"}, default "paper"
        The papers' own parameters, or those of the notebooks.
    parameters : dict, optional
        Other values by name, for each of the figures.
    jobs : int, optional
        Notebooks at a time; by default the number of cores.
    force : bool, default False
        Build also what is up to date.
    output : path, optional
        Where figures go; by default ``figures/``, or ``build/preview/``, and
        with `parameters` ``build/custom/``.
    root : Path, optional
        The clone of the project.

    Returns
    -------
    dict of str
        The errors by figure id, empty when all went well. A notebook that
        fails leaves the last good figure in its place.

    Raises
    ------
    BuildError
        Unknown figure, profile or parameter; another build running; no clone.

    Examples
    --------
    >>> from paperfigs import build
    >>> build.figures(["peva22"], profile="preview")  # doctest: +SKIP
    {}
    """
    wanted = jobs_for(ids, profile, root, parameters=parameters)
    usual = {"paper": root / "figures", "preview": root / "build" / "preview"}
    # With other parameters it is not the paper's figure any more.
    usual_output = root / "build" / "custom" if parameters else usual[profile]
    build = _Build(profile, Path(output or usual_output).resolve(), root)
    with locked(root / "build"):
        errors = build.run(wanted, jobs, force)
        if build.output == usual["paper"].resolve():
            write_summaries(root)
    return errors


@dataclass(frozen=True)
class _Build:
    """One build: where its figures go, and what it knows of those there."""

    profile: str
    output: Path
    root: Path

    def run(self, wanted, jobs, force):
        """Build what is not up to date; returns the errors by figure id."""
        todo = {
            job.figure: job for job in wanted if force or not self.is_up_to_date(job)
        }
        self.clear_staging()  # a build that was killed leaves it behind
        if todo:
            # Where this is impossible it raises before the work, not after it.
            self.staging.mkdir(parents=True)
        errors = run_all(
            list(todo),
            lambda figure: self.make(todo[figure]),
            jobs=jobs,
            seconds_file=_seconds_file(self.root, self.profile),
            interrupted=self.clear_staging,
            environment={SHARED_RESULTS: str(self.staging / "shared.sqlite")},
        )
        self.clear_staging()
        print(
            f"{len(wanted) - len(todo)} up to date, {len(todo) - len(errors)} built, "
            f"{len(errors)} failed, in {self.output}"
        )
        for figure, error in errors.items():
            print(f"failed: {figure}: {error}\n        see {self.executed(figure)}")
        return errors

    def make(self, job):
        """Build one figure and move it into place; returns the seconds."""
        inputs = self.fingerprint(job)  # before the run, as files may change
        # A folder of this process, as kernels of a killed one may outlive it,
        # and of this notebook, as it may save under a wrong id.
        staging = self.staging / str(os.getpid()) / job.figure.replace("/", "-")
        seconds = execute(job, self.executed(job.figure), staging)
        self.keep(job, inputs, staging)
        return seconds

    def keep(self, job, inputs, staging):
        """Move a finished figure into place and stamp it."""
        made, targets = _files(staging, job.figure), _files(self.output, job.figure)
        stamp = {
            "fingerprint": inputs,
            "files": {suffix: sha256(path) for suffix, path in made.items()},
            "data": json.loads(made[".json"].read_text())["data"],
        }
        targets[".json"].parent.mkdir(parents=True, exist_ok=True)
        for suffix, path in made.items():
            os.replace(path, targets[suffix])
        write_atomic(self.stamp(job.figure), json.dumps(stamp, indent=1) + "\n")

    def is_up_to_date(self, job):
        """Whether the stamp has the present inputs, data and files."""
        try:
            stamp = json.loads(self.stamp(job.figure).read_text())
            used = {
                self.root / "data" / f"{n}.csv": s for n, s in stamp["data"].items()
            }
            made = _files(self.output, job.figure)
            used |= {path: stamp["files"][suffix] for suffix, path in made.items()}
            return stamp["fingerprint"] == self.fingerprint(job) and all(
                sha256(path) == checksum for path, checksum in used.items()
            )
        # There is no stamp, or a damaged one, or a file is missing.
        except (OSError, KeyError, ValueError, TypeError, AttributeError):
            return False

    def fingerprint(self, job):
        """The fingerprint of a job."""
        return fingerprint(job, self.root, graph=self.graph)

    @functools.cached_property
    def graph(self):
        """The import graph when the build started."""
        return import_graph()

    def stamp(self, figure):
        """The stamp of a figure, apart for each folder of figures."""
        key = hashlib.sha256(str(self.output).encode()).hexdigest()[:12]
        return self.root / "build" / "stamps" / self.profile / key / f"{figure}.json"

    def executed(self, figure):
        """Where the executed notebook of a figure goes."""
        return self.root / "build" / "notebooks" / self.profile / f"{figure}.ipynb"

    @property
    def staging(self):
        """Where notebooks save figures, before these are moved into place."""
        return self.output / ".staging"

    def clear_staging(self):
        """Remove what notebooks have saved and nobody will use."""
        shutil.rmtree(self.staging, ignore_errors=True)


def write_summaries(root: Path = ROOT) -> None:
    """Write what `report.pages` says of the figures, where it has changed.

    Parameters
    ----------
    root : Path, optional
        The clone of the project; the records are those beside its figures.

    Examples
    --------
    >>> from paperfigs import build
    >>> build.write_summaries()  # doctest: +SKIP
    """
    for path, text in report.pages(root).items():
        if not path.exists() or path.read_text() != text:
            write_atomic(path, text)


# ---- refresh: the notebooks themselves


def refresh(
    ids: Sequence[str] = (), *, jobs: int | None = None, root: Path = ROOT
) -> dict[str, str]:
    """Execute notebooks in place, with their own parameters.

    Nothing that differs between machines is kept: tags, counts in sequence,
    stable ids of cells and a kernel without its version remain, so that a
    second refresh changes nothing. A notebook that raises stays as it was.

    Parameters
    ----------
    ids : sequence of str
        As in `select`; guides too.
    jobs : int, optional
        Notebooks at a time; by default the number of cores.
    root : Path, optional
        The clone of the project.

    Returns
    -------
    dict of str
        The errors by figure id, empty when all went well.

    Raises
    ------
    BuildError
        Unknown figure; another build running; no clone.

    Examples
    --------
    >>> from paperfigs import build
    >>> build.refresh(["peva22/fig2"])  # doctest: +SKIP
    {}
    """
    chosen = select(ids, root, guides=True)
    with locked(root / "build"):
        errors = run_all(
            list(chosen),
            lambda figure: _refresh(figure, chosen[figure]),
            jobs=jobs,
            seconds_file=_seconds_file(root, "refresh"),
        )
    print(f"{len(chosen) - len(errors)} refreshed, {len(errors)} failed")
    for figure, error in errors.items():
        print(f"failed: {figure}: {error}")
    return errors


# What JupyterLab writes into a notebook that it opens: with anything else it
# shows the notebook as changed.
_KERNELSPEC = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}
# Without the version of Python, which the Makefile keeps kernels from giving.
_LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def _refresh(figure, path):
    """Execute one notebook in place; returns the seconds that it took."""
    import nbformat
    from nbclient import NotebookClient

    began = time.monotonic()
    notebook = nbformat.read(path, as_version=4)
    with event_loop():
        client = NotebookClient(
            notebook, timeout=_CELL_SECONDS, coalesce_streams=True, **KERNEL
        )
        client.execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{figure.replace('/', '-')}-{number}"
        tags = {key: value for key, value in cell.metadata.items() if key == "tags"}
        cell.metadata = tags
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(_WIDGET_VIEW, None)  # its id is random
            if "image/png" in output.get("data", {}):
                # For readers who do not see it; exports to HTML show it.
                output.metadata = {"image/png": {"alt": project.description(path)}}
    notebook.metadata = {"kernelspec": _KERNELSPEC, "language_info": _LANGUAGE}
    write_atomic(path, nbformat.writes(notebook) + "\n")
    return time.monotonic() - began


# ---- verify


def verify(
    ids: Sequence[str] = (), *, jobs: int | None = None, root: Path = ROOT
) -> dict[str, str]:
    """Rebuild figures at paper scale in an empty folder, and compare.

    The status of each claim must be that in ``figures/``, and every plotted
    array close to the one there (relative 1e-6, absolute 1e-9 of its largest
    entry).

    Parameters
    ----------
    ids : sequence of str
        As in `select`.
    jobs : int, optional
        Notebooks at a time; by default the number of cores.
    root : Path, optional
        The clone of the project.

    Returns
    -------
    dict of str
        The differences, and the errors, by figure id; empty when there are
        none.

    Raises
    ------
    BuildError
        Unknown figure; another build running; no clone.

    Examples
    --------
    >>> from paperfigs import build
    >>> build.verify(["valuetools20/fig3"])  # doctest: +SKIP
    {}
    """
    wanted = jobs_for(ids, "paper", root)
    build = _Build("paper", (root / "build" / "verify").resolve(), root)
    with locked(root / "build"):
        shutil.rmtree(build.output, ignore_errors=True)
        differences = build.run(wanted, jobs, force=True)
        for figure in [job.figure for job in wanted if job.figure not in differences]:
            if found := _differences(figure, root / "figures", build.output):
                differences[figure] = "; ".join(found)
    print(f"{len(wanted) - len(differences)} of {len(wanted)} as in {root / 'figures'}")
    for figure, difference in differences.items():
        print(f"differs: {figure}: {difference}")
    return differences


def _differences(figure, committed, fresh):
    """What differs between two copies of a figure, a line for each."""
    old, new = _files(committed, figure), _files(fresh, figure)
    if missing := [path.name for path in old.values() if not path.exists()]:
        return [f"no committed {', '.join(missing)}"]
    was, now = (_statuses(files[".json"]) for files in (old, new))
    found = [
        f"claim {name}: {was.get(name)} committed, {now.get(name)} now"
        for name in sorted(was | now)
        if was.get(name) != now.get(name)
    ]
    with np.load(old[".npz"]) as a, np.load(new[".npz"]) as b:
        if others := sorted(set(a.files) ^ set(b.files)):
            found.append(f"arrays {others} on one side only")
        found += [
            f"array {name} differs"
            for name in sorted(set(a.files) & set(b.files))
            if not _are_close(a[name], b[name])
        ]
    return found


def _statuses(record):
    """The status of each claim of a record, by id."""
    claims = json.loads(record.read_text())["claims"]
    return {claim["id"]: claim["status"] for claim in claims}


def _are_close(a, b):
    """Whether two arrays agree; numbers up to rounding, all others exactly."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=_RELATIVE, atol=_ABSOLUTE * size, equal_nan=True)
