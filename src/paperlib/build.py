"""Run the notebooks headless, in parallel, only what changed; refresh and verify them."""

import ast
import contextlib
import difflib
import fcntl
import hashlib
import json
import os
import shutil
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import yaml

from paperlib import ledger
from paperlib._files import sha256, write_atomic

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ("paper", "preview")
_SUFFIXES = (".png", ".svg", ".json", ".npz")


class BuildError(RuntimeError):
    """A build that cannot start; the message says why and what to do."""


@dataclass(frozen=True)
class Job:
    """One figure to build: its id, its notebook, and the parameters to inject."""

    figure: str
    notebook: Path
    parameters: dict


def notebooks(root=ROOT):
    """All figure notebooks, by figure id: ``notebooks/peva22/fig2_synthetic.ipynb`` makes "peva22/fig2"."""
    found = sorted((root / "notebooks").glob("*/*.ipynb"))
    return {f"{path.parent.name}/{path.stem.split('_')[0]}": path for path in found}


def select(ids, root=ROOT):
    """The notebooks named by `ids`: a figure ("peva22/fig2"), a paper ("peva22"), a notebook's path, or nothing for all.

    Raises BuildError for an unknown id; it lists the near ones.
    """
    known = notebooks(root)
    chosen = {}
    for wanted in ids:
        wanted = wanted.removesuffix(".ipynb").removeprefix("notebooks/").strip("/")
        here = {i: p for i, p in known.items() if wanted in (i, i.split("/")[0], f"{p.parent.name}/{p.stem}")}
        if not here:
            near = difflib.get_close_matches(wanted, [*known, *{i.split("/")[0] for i in known}], n=3, cutoff=0.4) or list(known)
            raise BuildError(f"unknown figure {wanted!r}; did you mean {', '.join(near)}?")
        chosen |= here
    return chosen or known


def cells(notebook):
    """The code cells of a notebook, as (tags, source)."""
    content = json.loads(Path(notebook).read_text())
    return [(c["metadata"].get("tags", []), "".join(c["source"])) for c in content["cells"] if c["cell_type"] == "code"]


def defaults(notebook):
    """The parameters cell as a dictionary; its values must be plain scalars."""
    source = next((source for tags, source in cells(notebook) if "parameters" in tags), "")
    return {s.targets[0].id: ast.literal_eval(s.value) for s in ast.parse(source).body if isinstance(s, ast.Assign)}


def jobs_for(ids, profile, root=ROOT):
    """The jobs of a build. Raises BuildError for an unknown id, profile, or parameter name (papermill would ignore it)."""
    if profile not in PROFILES:
        raise BuildError(f"unknown profile {profile!r}; there are {', '.join(PROFILES)}")
    paper = yaml.safe_load((root / "notebooks" / "paper.yaml").read_text()) or {}
    known = notebooks(root)
    if strangers := set(paper) - set(known):
        raise BuildError(f"notebooks/paper.yaml names figures without a notebook: {', '.join(sorted(strangers))}")
    jobs = []
    for figure, notebook in select(ids, root).items():
        parameters = paper.get(figure, {}) if profile == "paper" else {}
        allowed = defaults(notebook)
        if strangers := set(parameters) - set(allowed):
            raise BuildError(
                f"notebooks/paper.yaml gives {figure} unknown parameters: {', '.join(sorted(strangers))}; it has {', '.join(allowed)}"
            )
        jobs.append(Job(figure, notebook, parameters))
    return jobs


def fingerprint(job, root=ROOT):
    """What a figure depends on: paperlib's sources, the notebook's code, the parameters, the lock file."""
    digest = hashlib.sha256()
    for path in sorted((root / "src" / "paperlib").glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(json.dumps([cells(job.notebook), job.parameters], sort_keys=True).encode())
    digest.update((root / "requirements.lock").read_bytes())
    return digest.hexdigest()


def _files(folder, figure):
    return {suffix: (folder / figure).with_suffix(suffix) for suffix in _SUFFIXES}


def _up_to_date(job, stamp, output, root):
    """True if this machine last built the figure from the same inputs and the files are still the ones it wrote."""
    try:
        old = json.loads(stamp.read_text())
        return (
            old["fingerprint"] == fingerprint(job, root)
            and all(sha256(root / "data" / f"{name}.csv") == checksum for name, checksum in old["data"].items())
            and all(sha256(path) == old["files"][suffix] for suffix, path in _files(output, job.figure).items())
        )
    except (OSError, KeyError, ValueError):
        return False


def execute(job, executed, staging):
    """Run one notebook in a kernel of its own; it saves its figure below `staging`. Returns the seconds it took."""
    import papermill

    began = time.monotonic()
    executed.parent.mkdir(parents=True, exist_ok=True)
    papermill.execute_notebook(
        job.notebook,
        executed,
        parameters=job.parameters | {"output_dir": str(staging)},
        progress_bar=False,
        log_output=False,
        extra_arguments=["--log-level=40"],
    )
    missing = [path.name for path in _files(staging, job.figure).values() if not path.exists()]
    if missing:
        raise FileNotFoundError(f"the notebook saved no {', '.join(missing)}")
    return time.monotonic() - began


@contextlib.contextmanager
def _lock(build):
    """Hold the build folder; the kernel lets go of it however this process ends."""
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(f"another build is running (it holds {build / 'lock'}); wait for it or stop it") from None
        yield


def figures(ids=(), *, profile="paper", jobs=None, force=False, output=None, root=ROOT):
    """Build figures that are not up to date. Returns the errors by figure id, empty when all went well.

    Parameters
    ----------
    ids : sequence of str
        As in `select`; none means all.
    profile : "paper" or "preview"
        The papers' own parameters (notebooks/paper.yaml), or the values in the notebooks.
    jobs : int, optional
        Notebooks at a time; the number of cores by default.
    force : bool
        Build also what is up to date.
    output : path, optional
        Where figures go; figures/ for the paper profile, build/preview/ for the preview.

    Raises
    ------
    BuildError
        Unknown figure, profile or parameter; another build running.
    """
    build = root / "build"
    output = Path(output) if output else root / "figures" if profile == "paper" else build / "preview"
    wanted = jobs_for(ids, profile, root)
    with _lock(build):
        stamps = build / "stamps" / profile / hashlib.sha256(str(output.resolve()).encode()).hexdigest()[:12]
        todo = [job for job in wanted if force or not _up_to_date(job, stamps / f"{job.figure}.json", output, root)]
        errors = _run(todo, jobs or os.cpu_count() or 1, profile, output, stamps, build, root) if todo else {}
    if output == root / "figures":
        write_summaries(root)
    print(f"{len(wanted) - len(todo)} up to date, {len(todo) - len(errors)} built, {len(errors)} failed, in {output}")
    for figure, error in errors.items():
        print(f"failed: {figure}: {error}\n        see {_executed(build, profile, figure)}")
    return errors


def _let_kernels_cache():
    """Where this variable is set, every kernel compiles all that it imports anew: twice the time of a small notebook."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _executed(build, profile, figure):
    return build / "notebooks" / profile / f"{figure}.ipynb"


def _run(todo, workers, profile, output, stamps, build, root):
    from tqdm import tqdm

    staging = output / ".staging"
    shutil.rmtree(staging, ignore_errors=True)  # what a killed build left
    _let_kernels_cache()
    os.environ.setdefault("NUMBA_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // min(workers, len(todo)))))
    seconds_file = build / f"seconds-{profile}.json"
    seconds = json.loads(seconds_file.read_text()) if seconds_file.exists() else {}
    todo = sorted(todo, key=lambda job: -seconds.get(job.figure, 0.0))  # the longest first
    expected = {job.figure: seconds.get(job.figure, 10.0) for job in todo}
    queue, running, errors = list(todo), {}, {}
    pool = ThreadPoolExecutor(workers)
    with tqdm(total=len(todo), bar_format="{n}/{total} figures |{bar:20}| {elapsed} {postfix}", disable=None) as bar:
        try:
            while queue or running:
                while queue and len(running) < workers:
                    job = queue.pop(0)
                    inputs = fingerprint(job, root)
                    future = pool.submit(execute, job, _executed(build, profile, job.figure), staging)
                    running[future] = (job, inputs, time.monotonic())
                done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    job, inputs, _began = running.pop(future)
                    try:
                        seconds[job.figure] = round(future.result(), 1)
                        _keep(job, inputs, staging, output, stamps, root)
                    except Exception as error:  # whatever it was: it is reported at the end, the others go on
                        errors[job.figure] = _short(error)
                    bar.update()
                    if bar.disable:  # not a terminal: one line per figure instead
                        print(f"{job.figure}: {errors.get(job.figure) or f'{seconds[job.figure]} s'}", flush=True)
                now = time.monotonic()
                left = sum(expected[job.figure] for job in queue)
                left += sum(max(0.0, expected[job.figure] - (now - began)) for job, _inputs, began in running.values())
                shown = ", ".join(f"{job.figure} {now - began:.0f} s" for job, _inputs, began in running.values())
                bar.set_postfix_str(f"about {left / workers:.0f} s left, running {shown}" if shown else "")
        except KeyboardInterrupt:
            bar.close()
            print("interrupted: finished figures are kept, the next run goes on from here", flush=True)
            os._exit(130)  # the kernels end with this process; waiting for them would not
    pool.shutdown()
    shutil.rmtree(staging, ignore_errors=True)
    write_atomic(seconds_file, json.dumps(seconds, indent=1, sort_keys=True) + "\n")
    return errors


def _keep(job, inputs, staging, output, stamps, root):
    """Move a finished figure into place and stamp it."""
    files = {}
    (output / job.figure).parent.mkdir(parents=True, exist_ok=True)
    for suffix, target in _files(output, job.figure).items():
        source = _files(staging, job.figure)[suffix]
        files[suffix] = sha256(source)
        os.replace(source, target)
    data = json.loads(_files(output, job.figure)[".json"].read_text())["data"]
    stamp = {"fingerprint": inputs, "files": files, "data": data}
    write_atomic(stamps / f"{job.figure}.json", json.dumps(stamp, indent=1) + "\n")


def _short(error):
    """One line for a failed notebook; papermill's own message holds the whole traceback."""
    if hasattr(error, "ename"):
        return f"{error.ename}: {error.evalue}"
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}".rstrip(": ")


def write_summaries(root=ROOT):
    """Write figures/CLAIMS.md, and the claims table of the README, from the records beside the figures."""
    records = ledger.read_all(root / "figures")
    write_atomic(root / "figures" / "CLAIMS.md", ledger.claims_page(records))
    readme = root / "README.md"
    before, _, rest = readme.read_text().partition("<!-- claims -->\n")
    _, mark, after = rest.partition("<!-- /claims -->")
    if mark:
        write_atomic(readme, f"{before}<!-- claims -->\n{ledger.summary(records)}{mark}{after}")


def refresh(ids=(), *, root=ROOT):
    """Execute notebooks in place with their own values and keep nothing that differs between machines.

    Only tags, sequential counts, stable cell ids and a kernel without patch version stay, so that a second refresh changes nothing.
    """
    import nbformat
    from nbclient import NotebookClient
    from tqdm import tqdm

    _let_kernels_cache()
    for figure, path in tqdm(select(ids, root).items(), unit="notebook", disable=None):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, kernel_name="python3", extra_arguments=["--log-level=40"]).execute()
        for number, cell in enumerate(notebook.cells):
            cell.id = f"{figure.replace('/', '-')}-{number}"
            cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        notebook.metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        write_atomic(path, nbformat.writes(notebook) + "\n")


def verify(ids=(), *, jobs=None, root=ROOT):
    """Rebuild at paper scale into an empty folder and compare with figures/. Returns the differences by figure id.

    A claim's status must be the same, and every plotted array close (relative 1e-6, absolute 1e-9 of its largest entry).
    """
    import numpy as np

    fresh = root / "build" / "verify"
    shutil.rmtree(fresh, ignore_errors=True)
    differences = dict(figures(ids, jobs=jobs, force=True, output=fresh, root=root))
    committed = ledger.read_all(root / "figures")
    for figure, record in ledger.read_all(fresh).items():
        if figure not in committed:
            differences[figure] = "no committed figure"
            continue
        old, new = ({c["name"]: c["status"] for c in r["claims"]} for r in (committed[figure], record))
        found = [f"claim {n}: {old.get(n)} committed, {new.get(n)} now" for n in sorted(old | new) if old.get(n) != new.get(n)]
        with np.load(root / "figures" / f"{figure}.npz") as a, np.load(fresh / f"{figure}.npz") as b:
            if set(a.files) != set(b.files):
                found.append(f"arrays {sorted(set(a.files) ^ set(b.files))} on one side only")
            for name in sorted(set(a.files) & set(b.files)):
                if not _close(a[name], b[name]):
                    found.append(f"array {name} differs")
        if found:
            differences[figure] = "; ".join(found)
    for figure, difference in differences.items():
        print(f"differs: {figure}: {difference}")
    return differences


def _close(a, b):
    import numpy as np

    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=1e-6, atol=1e-9 * size, equal_nan=True)
