"""Build the figures: run the notebooks that are out of date, verify, refresh.

Papermill runs each notebook in a kernel of its own, two at a time. A figure is
out of date when something that it depends on has changed since it was built:
the code of its notebook, its parameters and criteria, the data, the lock file,
the packages of this project that it imports; or when its files are not those
that were written. A stamp beside the figures keeps the checksums.
"""

import ast
import contextlib
import functools
import hashlib
import json
import os
import platform
import shutil
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from tqdm import tqdm

from paperfigs import project, report, traces
from paperfigs.files import STAGING, PathLike, sha256, write_atomic
from paperfigs.project import BuildError

PROFILES = {"paper": "figures", "preview": "build/preview"}  # where figures go
_SUFFIXES = ".png", ".svg", ".npz", ".json"  # the files of a figure
_PACKAGES = "paperlib", "paperfigs", "recrawl"
_CODE = {".py", ".mplstyle", ".yaml", ".sql"}  # the files of a package that count
# `verify` compares a rebuilt array with the committed one. Other machines
# round differently in the last digits, and simulations amplify that a little.
_RELATIVE = 1e-6
_ABSOLUTE = 1e-9  # relative to the largest entry of the array
_UNKNOWN_SECONDS = 10  # of a notebook that has not run here; typical
_PAUSE = 0.5  # seconds between two updates of the time left
_BAR = "{bar:10} {elapsed} passed, {remaining} left{postfix}"
# What kernels inherit unless it is set: no more threads than notebooks, and
_ENVIRONMENT = {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
if platform.machine() == "x86_64":
    # the vectors that most of these processors have: wider ones add in another
    # order, which would show in the last digits, and take as long.
    _ENVIRONMENT["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
    _ENVIRONMENT["OPENBLAS_CORETYPE"] = "Haswell"
_KERNEL = [
    "--log-level=50",  # a kernel warns that it talks by TCP, and of its own end
    "--IPKernelApp.exec_lines="
    "import paperfigs.kernels; paperfigs.kernels.end_with_build()",
]
# What a refresh keeps of the metadata of a notebook and its cells.
_METADATA = {"kernelspec", "language_info", "tags", "mystnb", "alt", "caption"}
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Job(NamedTuple):
    """One figure to build.

    Parameters
    ----------
    figure : str
        Its id, such as "peva22/fig2".
    notebook : Path
        The notebook that makes it.
    parameters : dict
        The parameters that replace those of the notebook.
    """

    figure: str
    notebook: Path
    parameters: dict[str, Any]


def select(ids: list[str] | tuple[str, ...], guides: bool = False) -> dict[str, Path]:
    """Find the notebooks that are asked for.

    Parameters
    ----------
    ids : list or tuple of str
        Figures ("peva22/fig2"), papers ("peva22") or paths of notebooks; if
        empty, all.
    guides : bool, default False
        As in `paperfigs.project.notebooks`.

    Returns
    -------
    dict of Path
        By figure id.

    Raises
    ------
    BuildError
        An unknown id.
    """
    known = project.notebooks(guides)
    chosen = {}
    for name in ids:
        matching = {
            figure: path
            for figure, path in known.items()
            if name in (figure, path.parent.name) or path == Path(name).resolve()
        }
        if not matching:
            raise BuildError(f"unknown figure {name!r}; `paperfigs list` shows all")
        chosen |= matching
    return chosen or known


def jobs_for(
    ids: list[str] | tuple[str, ...],
    profile: str,
    parameters: dict[str, Any] | None = None,
) -> list[Job]:
    """List the figures to build, in the order of ``notebooks/paper.yaml``.

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`.
    profile : {"paper", "preview"}
        The papers' own parameters, or those of the notebooks.
    parameters : dict, optional
        Other values by name, for each of the figures.

    Returns
    -------
    list of Job
        One for each figure.

    Raises
    ------
    BuildError
        A parameter that a notebook does not have; papermill would ignore it.
    """
    paper, chosen, jobs = project.paper_parameters(), select(ids), []
    for figure in paper | chosen:
        if figure not in chosen:
            continue
        given = paper.get(figure, {}) if profile == "paper" else {}
        given = given | (parameters or {})
        usual = project.defaults(chosen[figure])
        if unknown := given.keys() - usual:
            raise BuildError(
                f"{figure} has no parameter {', '.join(unknown)}; it has "
                f"{', '.join(usual)}"
            )
        jobs.append(Job(figure, chosen[figure], given))
    return jobs


def fingerprint(job: Job, code: Path) -> str:
    """Checksum of all that a figure depends on.

    Parameters
    ----------
    job : Job
        The figure.
    code : Path
        The packages and the data, as they are copied for a build.

    Returns
    -------
    str
        SHA-256 of the notebook's code, the parameters, the criteria of the
        claims, the lock file, the data if the notebook reads any, and the
        packages of this project that it imports.
    """
    criteria = {k: project.limits(c) for k, c in project.claims(job.figure).items()}
    text = json.dumps([project.cells(job.notebook), job.parameters, criteria])
    digest = hashlib.sha256(text.encode())
    files = [*project.root().glob(".ci/requirements.lock")]
    if "traces" in text:
        files += sorted(code.glob("paperfigs/data/*.csv"))
    for package in filter(f"paperlib {text}".count, _PACKAGES):
        files += [p for p in sorted(code.glob(f"{package}/**/*")) if p.suffix in _CODE]
    for path in files:
        content = path.read_bytes()
        digest.update(_bare(content) if path.suffix == ".py" else content)
    return digest.hexdigest()


@functools.cache
def _bare(source):
    """Checksum of a module without its comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    code = ast.dump(tree).replace("Expr(value=Constant(value=0)), ", "")
    return hashlib.sha256(code.encode()).digest()


# ---- build


def execute(notebook: Path, executed: Path, **parameters: Any) -> None:
    """Run one notebook in a kernel that ends with this process.

    Parameters
    ----------
    notebook : Path
        The notebook.
    executed : Path
        Where the executed notebook goes, also that of a run which fails.
    **parameters
        The parameters that replace those of the notebook.
    """
    import papermill

    executed.parent.mkdir(parents=True, exist_ok=True)
    papermill.execute_notebook(
        notebook,
        executed,
        parameters=parameters,
        kernel_name="python3",  # of this environment, whatever it was saved with
        progress_bar=False,
        extra_arguments=_KERNEL,
    )


def figures(
    ids: list[str] | tuple[str, ...] = (),
    *,
    profile: str = "paper",
    parameters: dict[str, Any] | None = None,
    output: PathLike | None = None,
    jobs: int = 2,
    force: bool = False,
) -> dict[str, str]:
    """Build the figures that are not up to date.

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`.
    profile : {"paper", "preview"}, default "paper"
        The papers' own parameters, or those of the notebooks.
    parameters : dict, optional
        Other values by name, for each of the figures.
    output : path, optional
        Where figures go; by default ``figures/``, or ``build/preview/``, and
        with `parameters` ``build/custom/``.
    jobs : int, default 2
        Notebooks at a time.
    force : bool, default False
        Build also what is up to date.

    Returns
    -------
    dict of str
        The errors by figure id, empty when all went well. A notebook that
        fails leaves the last good figure in its place.

    Raises
    ------
    BuildError
        Unknown figure or parameter; another build running; no checkout.
    """
    wanted = jobs_for(ids, profile, parameters)
    root = project.root()
    usual = root / ("build/custom" if parameters else PROFILES[profile])
    output = Path(output or usual).resolve()
    todo, seconds = {}, {}
    # Where this is impossible it raises before the work, not after it.
    output.mkdir(parents=True, exist_ok=True)
    with _prepared() as code:
        for job in wanted:
            state, seconds[job.figure] = _read_stamp(job.figure, output)
            if force or state != _state(job, output, code):
                todo[job.figure] = job
        for left in output.glob(f"{STAGING}*"):  # by a build that was killed
            shutil.rmtree(left)
        errors = _run_all(todo, lambda job: _make(job, output, code), jobs, seconds)
    print(
        f"{len(wanted) - len(todo)} up to date, {len(todo) - len(errors)} built in "
        f"{output}, {len(errors)} failed (their notebooks: build/notebooks/)"
    )
    if output == root / PROFILES["paper"]:
        report.write()
    return errors


def _make(job, output, code):
    """Build one figure and stamp it."""
    began, depends = time.monotonic(), fingerprint(job, code)
    execute(job.notebook, _executed(job), **job.parameters, output_dir=str(output))
    state = _state(job._replace(notebook=_executed(job)), output, code)
    if None in state:
        raise FileNotFoundError(f"the notebook did not save all of {job.figure}")
    # Of criteria that were edited during the run, the figure may have these or those.
    if state[0] == depends:
        stamp = {"state": state, "seconds": time.monotonic() - began}
        write_atomic(_stamp(job.figure, output), json.dumps(stamp) + "\n")


def _state(job, output, code):
    """What a figure depends on, and its files: checksums."""
    files = [output / f"{job.figure}{suffix}" for suffix in _SUFFIXES]
    return [fingerprint(job, code), *(sha256(p) if p.exists() else None for p in files)]


def _stamp(figure, output):
    """The stamp of a figure."""
    return output / ".stamps" / f"{figure}.json"


def _read_stamp(figure, output):
    """What a figure was built of, if that is known, and the seconds it took."""
    try:
        stamp = json.loads(_stamp(figure, output).read_text())
        # Whole numbers, whose sum is exact: it is the end of the bar.
        return stamp["state"], 1 + int(stamp["seconds"])
    # There is no stamp, or a damaged one.
    except (OSError, ValueError, OverflowError, TypeError, KeyError):
        return None, _UNKNOWN_SECONDS


def _executed(job):
    """Where the executed notebook of a figure goes."""
    return project.root() / "build" / "notebooks" / f"{job.figure}.ipynb"


# ---- several notebooks at a time


def _run_all(todo, work, workers, seconds):
    """Call a function for each job, some at a time; returns the errors by name.

    Those that are expected to take longest are started first. Ctrl-C ends
    this process, and with it its kernels.
    """
    queue = sorted(todo, key=seconds.get, reverse=True)
    running, errors = {}, {}
    with (
        ThreadPoolExecutor(workers) as pool,
        tqdm(total=sum(map(seconds.get, todo)), bar_format=_BAR, disable=None) as bar,
    ):
        try:
            while queue or running:
                while queue and len(running) < workers:
                    name = queue.pop(0)
                    running[pool.submit(work, todo[name])] = name, time.monotonic()
                for future in wait(running, _PAUSE, FIRST_COMPLETED).done:
                    name, began = running.pop(future)
                    if error := future.exception():
                        # The last line of papermill's is the notebook's own error.
                        text = str(error).strip() or repr(error)
                        errors[name] = text.splitlines()[-1]
                    took = f"{time.monotonic() - began:.1f} s"
                    bar.write(f"{name}: {errors.get(name, took)}")
                    bar.update(seconds[name])
                bar.set_postfix_str(", ".join(name for name, _ in running.values()))
        except KeyboardInterrupt:
            bar.write("interrupted: the next run goes on from here")
            os._exit(130)  # waiting for the running notebooks could take minutes
    return errors


@contextlib.contextmanager
def _prepared():
    """Lock builds out, copy the packages and the data, and set what kernels inherit.

    A kernel runs the copy, which no edit changes. Each state has a folder of its own,
    because Python keeps bytecode by time and size of a file, and numba does not compile
    a function again where one of another module that it calls has changed.
    """
    import fcntl

    folder = project.root() / "build"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "a") as file:
        try:  # the system releases it however this process ends
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(f"another build is running, in {folder}") from None
        code = _copied(folder / "code")
        path = f"{code}{os.pathsep}{os.environ.get('PYTHONPATH', code)}"
        # Afterwards this process has its own again.
        with mock.patch.dict(os.environ, _ENVIRONMENT | os.environ, PYTHONPATH=path):
            # Without bytecode every kernel would compile all that it imports.
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            yield code


def _copied(folder):
    """Copy the packages and the data to a folder that has their checksum as name."""
    new = folder / "new"
    shutil.rmtree(new, ignore_errors=True)
    others = shutil.ignore_patterns("__pycache__", "*.md", "make_*")
    for name in _PACKAGES:
        shutil.copytree(Path(__file__).parents[1] / name, new / name, ignore=others)
    shutil.copytree(
        traces.DATA, new / "paperfigs/data", ignore=others, dirs_exist_ok=True
    )
    files = [path for path in sorted(new.rglob("*")) if path.is_file()]
    sums = repr([(str(path), sha256(path)) for path in files])
    code = folder / hashlib.sha256(sums.encode()).hexdigest()
    for path in files:  # tracebacks lead to the copy, where an edit would do nothing
        path.chmod(0o444)
    if not code.exists():
        new.rename(code)
    return code


# ---- refresh and verify


def refresh(ids: list[str] | tuple[str, ...] = (), *, jobs: int = 2) -> dict[str, str]:
    """Execute notebooks in place, with their own parameters.

    Nothing that differs between machines is kept, so that a second refresh
    changes nothing. A notebook that raises stays as it was.

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`; guides too.
    jobs : int, default 2
        Notebooks at a time.

    Returns
    -------
    dict of str
        The errors by figure id, empty when all went well.
    """
    chosen = {k: Job(k, path, {}) for k, path in select(ids, guides=True).items()}
    seconds = dict.fromkeys(chosen, _UNKNOWN_SECONDS)
    with _prepared():
        errors = _run_all(chosen, _refresh, jobs, seconds)
    print(f"{len(chosen) - len(errors)} refreshed, {len(errors)} failed")
    return errors


def _refresh(job):
    """Execute one notebook in place, and keep only what is always the same."""
    import nbformat

    execute(job.notebook, _executed(job))
    notebook = nbformat.read(_executed(job), as_version=4)
    notebook.metadata.language_info.pop("version", None)
    for part in (notebook, *notebook.cells):
        part.metadata = {k: v for k, v in part.metadata.items() if k in _METADATA and v}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{job.figure.replace('/', '-')}-{number}"
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(_WIDGET, None)  # its id is random
    write_atomic(job.notebook, nbformat.writes(notebook) + "\n")


def verify(ids: list[str] | tuple[str, ...] = (), *, jobs: int = 2) -> dict[str, str]:
    """Rebuild figures at paper scale in an empty folder, and compare.

    The status of each claim must be that in ``figures/``, and every array
    close to the one there (relative 1e-6, absolute 1e-9 of its largest entry).

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`.
    jobs : int, default 2
        Notebooks at a time.

    Returns
    -------
    dict of str
        The differences, and the errors, by figure id; empty when there are
        none.
    """
    committed, fresh = (project.root() / each for each in ("figures", "build/verify"))
    differing = figures(ids, output=fresh, jobs=jobs, force=True)
    wanted = select(ids)
    for figure in wanted.keys() - differing:
        old, new = _contents(committed / figure), _contents(fresh / figure)
        if names := [n for n in old | new if not _are_close(old.get(n), new.get(n))]:
            differing[figure] = ", ".join(names)
            print(f"{figure} differs in {differing[figure]}")
    print(f"{len(wanted) - len(differing)} of {len(wanted)} as in {committed}")
    return differing


def _contents(stem):
    """Arrays of a figure, and statuses of its claims, by name."""
    if not Path(f"{stem}.json").exists():
        return {}
    found = {
        f"claim {each['id']}": each["status"]
        for each in project.entry(f"{stem}.json", "claims")
    }
    with np.load(f"{stem}.npz") as arrays:
        return found | {f"array {name}": arrays[name] for name in arrays}


def _are_close(a, b):
    """Whether two arrays agree; numbers up to rounding, all others exactly."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype.kind != "f":
        return np.array_equal(a, b)
    size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=_RELATIVE, atol=_ABSOLUTE * size, equal_nan=True)
