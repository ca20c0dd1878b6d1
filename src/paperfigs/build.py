"""Build the figures: run the notebooks that are out of date, verify, refresh.

Papermill runs every notebook in its own kernel, as many at a time as the machine has
cores. A figure is out of date if an input has changed since it was built: the code of
its notebook, its parameters and criteria, the data, the lock file, or the packages of
this project. It is also out of date if its files are not those that the build wrote. A
stamp beside the figures keeps the checksums.
"""

import contextlib
import difflib
import hashlib
import json
import os
import platform
import shutil
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from paperfigs import ledger, project, report, traces
from paperfigs.files import STAGING, PathLike, sha256, write_atomic
from paperfigs.project import BuildError

PROFILES = {"paper": "figures", "preview": "build/preview"}  # where figures go
_SUFFIXES = ".png", ".svg", ".npz", ".json"  # the files of a figure
_PACKAGES = "paperlib", "paperfigs", "recrawl"
_CODE = {".py", ".mplstyle", ".yaml", ".sql", ".jinja", ".csv", ".gz"}  # of figures
# Tolerances of `verify`. Other machines round the last digits differently, and
# simulations amplify the difference a little.
_RELATIVE = 1e-6
_ABSOLUTE = 1e-9  # relative to the largest entry of the array
_MEMORY = 2e9  # bytes that the largest notebooks need
_BAR = "{bar:10} {elapsed} passed, {remaining} left"
# Default environment of kernels: one thread each, so that notebooks do not wait for
# one another; and that kernel called python3 that belongs to this Python.
_ENVIRONMENT = {
    "NUMBA_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",
}
if platform.machine() == "x86_64":
    # The vector instructions that most of these processors have. Wider ones add in
    # another order, which changes the last digits, and are not faster here.
    _ENVIRONMENT["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
    _ENVIRONMENT["OPENBLAS_CORETYPE"] = "Haswell"
_KERNEL = [
    "--log-level=50",  # no warnings of the connection by TCP, and of the kernel's end
    "--IPKernelApp.exec_lines="
    "import paperfigs.kernels; paperfigs.kernels.end_with_build()",
]
# Metadata of a notebook and its cells that a refresh keeps.
_METADATA = {"kernelspec", "language_info", "tags", "mystnb", "alt", "caption"}
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Job(NamedTuple):
    """One figure to build.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    notebook : Path
        The notebook that draws the figure.
    parameters : dict
        Values that replace those of the notebook.
    """

    figure: str
    notebook: Path
    parameters: dict[str, Any]


def select(ids: list[str] | tuple[str, ...], guides: bool = False) -> dict[str, Path]:
    """Find notebooks by the names that a user types.

    Parameters
    ----------
    ids : list or tuple of str
        Figures ("peva22/fig2") or papers ("peva22"); an empty list selects all
        figures.
    guides : bool, default False
        As in `paperfigs.project.notebooks`.

    Returns
    -------
    dict of Path
        Notebooks by figure id.

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
            if name in (figure, path.parent.name)
        }
        if not matching:
            near = difflib.get_close_matches(name, known, cutoff=0)
            raise BuildError(
                f"unknown figure {name!r}, near {near}; `paperfigs list` shows all"
            )
        chosen |= matching
    return chosen or known


def jobs_for(
    ids: list[str] | tuple[str, ...],
    profile: str,
    parameters: dict[str, Any],
) -> list[Job]:
    """List the figures to build.

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`.
    profile : {"paper", "preview"}
        The papers' own parameters, or those of the notebooks.
    parameters : dict
        Other values by name, for all of the figures.

    Returns
    -------
    list of Job
        One job per figure.

    Raises
    ------
    BuildError
        A parameter that a notebook does not have; papermill would ignore it.
    """
    chosen = select(ids)
    jobs = []
    for figure, notebook in chosen.items():
        values = project.settings(figure).get(profile, {}) | parameters
        known = project.defaults(notebook)
        unknown = values.keys() - known
        if unknown:
            raise BuildError(
                f"{figure} has no parameter {', '.join(unknown)}; it has "
                f"{', '.join(known)}"
            )
        jobs.append(Job(figure, notebook, values))
    return jobs


def checksum_of_code() -> str:
    """SHA-256 of the packages, the data and the lock file."""
    files = [*project.root().glob(".ci/requirements.lock")]
    packages = [Path(__file__).parents[1] / name for name in _PACKAGES]
    for folder in (*packages, traces.DATA):
        files += [path for path in sorted(folder.rglob("*")) if path.suffix in _CODE]
    sums = [(str(path), sha256(path)) for path in files]
    return hashlib.sha256(repr(sums).encode()).hexdigest()


def fingerprint(job: Job) -> str:
    """Checksum of all inputs of a figure.

    Parameters
    ----------
    job : Job
        The figure.

    Returns
    -------
    str
        SHA-256 of the notebook's code, the parameters, the criteria of the claims,
        and `checksum_of_code`.
    """
    code = project.cells(job.notebook)
    criteria = [*map(project.limits, project.claims(job.figure).values())]
    inputs = json.dumps([code, job.parameters, criteria, checksum_of_code()])
    return hashlib.sha256(inputs.encode()).hexdigest()


# ---- build


def execute(notebook: Path, executed: Path, **parameters: Any) -> None:
    """Run one notebook in a kernel that ends with this process.

    Parameters
    ----------
    notebook : Path
        The notebook.
    executed : Path
        File for the executed notebook, which is written even if the run fails.
    **parameters
        Values that replace those of the notebook.
    """
    import papermill

    executed.parent.mkdir(parents=True, exist_ok=True)
    papermill.execute_notebook(
        notebook,
        executed,
        parameters=parameters,
        kernel_name="python3",  # that of this environment, not the one in the file
        progress_bar=False,
        extra_arguments=_KERNEL,
    )


def figures(
    ids: list[str] | tuple[str, ...] = (),
    *,
    profile: str = "paper",
    parameters: dict[str, Any] | None = None,
    output: PathLike | None = None,
    jobs: int | None = None,
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
        Other values by name, for all of the figures.
    output : path, optional
        Folder of the figures; by default ``figures/``, or ``build/preview/``,
        and with `parameters` ``build/custom/``.
    jobs : int, optional
        Notebooks at a time; by default `at_a_time`.
    force : bool, default False
        Whether to build figures that are up to date too.

    Returns
    -------
    dict of str
        The errors by figure id, empty if there was none. A notebook that
        fails leaves the last good figure in its place.

    Raises
    ------
    BuildError
        Unknown figure or parameter; another build running; no checkout.
    """
    wanted = jobs_for(ids, profile, parameters or {})
    root = project.root()
    folder = "build/custom" if parameters else PROFILES[profile]
    output = Path(output or root / folder).resolve()
    # An impossible folder raises before the work, not after it.
    output.mkdir(parents=True, exist_ok=True)
    with prepared():
        todo = {
            job.figure: job
            for job in wanted
            if force or _read_stamp(job.figure, output) != _state(job, output)
        }
        for unfinished in output.glob(f"{STAGING}*"):  # left by a killed build
            shutil.rmtree(unfinished)
        errors = run_all(todo, lambda job: _make(job, output), jobs)
    for job in wanted:
        if parameters and job.figure not in errors:
            for claim in project.entry(output / f"{job.figure}.json", "claims"):
                says = f"{claim['status']}, {ledger.measurement(claim)}"
                print(f"{job.figure} {claim['id']}: {says}")
    print(
        f"{len(wanted) - len(todo)} up to date, {len(todo) - len(errors)} built in "
        f"{output}, {len(errors)} failed (their notebooks: build/notebooks/)"
    )
    if output == root / PROFILES["paper"]:
        report.write()
    return errors


def _make(job, output):
    """Build one figure and stamp it."""
    if job.figure not in job.notebook.read_text():  # it would replace another figure
        raise BuildError(f"{job.notebook} must name its figure, {job.figure}")
    inputs = fingerprint(job)
    execute(job.notebook, _executed(job), **job.parameters, output_dir=str(output))
    state = _state(job._replace(notebook=_executed(job)), output)
    if None in state:
        raise FileNotFoundError(f"the notebook did not save all of {job.figure}")
    # If an input was edited during the run, it is not known which one the figure has.
    if state[0] == inputs:
        write_atomic(_stamp(job.figure, output), json.dumps(state))


def _state(job, output):
    """Checksums of the inputs of a figure and of its files; None for a missing file."""
    state = [fingerprint(job)]
    for suffix in _SUFFIXES:
        path = output / f"{job.figure}{suffix}"
        state.append(sha256(path) if path.exists() else None)
    return state


def _stamp(figure, output):
    """File of the stamp of a figure."""
    return output / ".stamps" / f"{figure}.json"


def _read_stamp(figure, output):
    """State of a figure when it was built; None without a stamp, or a damaged one."""
    try:
        return json.loads(_stamp(figure, output).read_text())
    except (OSError, ValueError, RecursionError):
        return None


def _executed(job):
    """File of the executed notebook of a figure."""
    return project.root() / "build" / "notebooks" / f"{job.figure}.ipynb"


# ---- several notebooks at a time


def at_a_time() -> int:
    """How many notebooks run at a time: one for each core, if memory allows."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(os.cpu_count(), int(memory / _MEMORY) or 1)


def run_all(todo, work, workers):
    """Call a function with every job, some at a time, the longest first.

    Ctrl-C ends this process, and its kernels with it.

    Parameters
    ----------
    todo : dict
        The jobs by name; a name begins with a figure id, whose ``seconds`` in
        ``paper.yaml`` tell the time.
    work : callable
        Called with each job.
    workers : int or None
        Jobs at a time; None stands for `at_a_time`.

    Returns
    -------
    dict of str
        The errors by name.
    """
    # A notebook of which paper.yaml does not tell the time counts as short.
    seconds = {
        name: project.settings(name.split(" ")[0]).get("seconds", 10) for name in todo
    }

    def timed(name):
        began = time.monotonic()
        work(todo[name])
        return f"{time.monotonic() - began:.1f} s"

    errors = {}
    with (
        ThreadPoolExecutor(workers or at_a_time()) as pool,
        tqdm(total=sum(seconds.values()), bar_format=_BAR, disable=None) as bar,
    ):
        queue = sorted(todo, key=seconds.get, reverse=True)
        running = {pool.submit(timed, name): name for name in queue}
        try:
            for count, future in enumerate(as_completed(running), 1):
                name = running[future]
                error = future.exception()
                if error:
                    # papermill's message ends with the notebook's own error.
                    text = str(error).strip() or repr(error)
                    errors[name] = text.splitlines()[-1]
                result = errors.get(name) or future.result()
                bar.write(f"{count} of {len(todo)}  {name}: {result}")
                bar.update(seconds[name])
        except KeyboardInterrupt:
            bar.write("interrupted: the next run goes on from here")
            os._exit(130)  # waiting for the running notebooks could take minutes
    return errors


@contextlib.contextmanager
def prepared():
    """Exclude other builds, and set the environment of kernels.

    Every state of the packages has its own folder of compiled functions, because
    numba does not compile a function anew when a callee in another module changes.
    """
    import fcntl

    folder = project.root() / "build"
    folder.mkdir(exist_ok=True)
    own = dict(os.environ)
    with open(folder / "lock", "a") as file:
        try:  # the system releases the lock however this process ends
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(f"another build is running, in {folder}") from None
        os.environ.update(_ENVIRONMENT | own | {"JUPYTER_PATH": ""})
        os.environ["NUMBA_CACHE_DIR"] = str(folder / "numba" / checksum_of_code())
        # Without bytecode every kernel would compile all that it imports.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(own)


# ---- refresh and verify


def refresh(
    ids: list[str] | tuple[str, ...] = (), *, jobs: int | None = None
) -> dict[str, str]:
    """Execute notebooks in place, with their own parameters.

    Nothing that differs between machines is kept, so that a second refresh
    changes nothing. A notebook that raises stays as it was.

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`, with the guides.
    jobs : int, optional
        Notebooks at a time; by default `at_a_time`.

    Returns
    -------
    dict of str
        The errors by figure id, empty if there was none.
    """
    chosen = {
        figure: Job(figure, path, {})
        for figure, path in select(ids, guides=True).items()
    }
    with prepared():
        errors = run_all(chosen, _refresh, jobs)
    print(f"{len(chosen) - len(errors)} refreshed, {len(errors)} failed")
    return errors


def _refresh(job):
    """Execute one notebook in place, and drop what differs from run to run."""
    import nbformat

    execute(job.notebook, _executed(job))
    notebook = nbformat.read(_executed(job), as_version=4)
    notebook.metadata.language_info.pop("version", None)
    for part in (notebook, *notebook.cells):
        for name in list(part.metadata):
            if name not in _METADATA or not part.metadata[name]:
                del part.metadata[name]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{job.figure.replace('/', '-')}-{number}"
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(_WIDGET, None)  # its id is random
    write_atomic(job.notebook, nbformat.writes(notebook) + "\n")


def verify(
    ids: list[str] | tuple[str, ...] = (), *, jobs: int | None = None
) -> dict[str, str]:
    """Rebuild figures at paper scale in an empty folder, and compare.

    The status of each claim must be that in ``figures/``, and every array
    close to the one there (relative 1e-6, absolute 1e-9 of its largest entry).

    Parameters
    ----------
    ids : list or tuple of str
        As in `select`.
    jobs : int, optional
        Notebooks at a time; by default `at_a_time`.

    Returns
    -------
    dict of str
        The differences and the errors by figure id; empty if there are none.
    """
    committed = project.root() / "figures"
    rebuilt = project.root() / "build" / "verify"
    differing = figures(ids, output=rebuilt, jobs=jobs, force=True)
    wanted = select(ids)
    for figure in wanted.keys() - differing:
        old = _contents(committed / figure)
        new = _contents(rebuilt / figure)
        names = [n for n in old | new if not _are_close(old.get(n), new.get(n))]
        if names:
            differing[figure] = ", ".join(names)
            print(f"{figure} differs in {differing[figure]}")
    print(f"{len(wanted) - len(differing)} of {len(wanted)} as in {committed}")
    return differing


def _contents(stem):
    """Arrays of a figure, and statuses of its claims, by name."""
    if not Path(f"{stem}.json").exists():
        return {}
    contents = {}
    for claim in project.entry(f"{stem}.json", "claims"):
        contents[f"claim {claim['id']}"] = claim["status"]
    with np.load(f"{stem}.npz") as arrays:
        for name in arrays:
            contents[f"array {name}"] = arrays[name]
    return contents


def _are_close(a, b):
    """Whether two arrays agree: real numbers up to rounding, others exactly."""
    a = np.asarray(a)
    b = np.asarray(b)
    if a.shape != b.shape or a.dtype.kind != "f":
        return np.array_equal(a, b)
    size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=_RELATIVE, atol=_ABSOLUTE * size, equal_nan=True)
