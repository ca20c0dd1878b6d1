"""Run the notebooks headless, in parallel, only what changed; refresh and verify them."""

import ast
import contextlib
import difflib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import yaml

from paperlib.files import sha256, write_atomic
from paperlib.repro import ledger

ROOT = Path(__file__).resolve().parents[3]
PROFILES = ("paper", "preview")
_SUFFIXES = (".png", ".svg", ".json", ".npz")
# this environment's kernel, whatever the notebook was saved with; silent, for what it logs as it ends would tear the progress bar
_KERNEL = {"kernel_name": "python3", "extra_arguments": ["--log-level=50"]}
_LINES = ["__import__('logging').getLogger('tornado.general').setLevel(60)"]
if (
    sys.platform == "linux"
):  # a kernel ends with the build, however that ends; elsewhere not before a compiled call returns
    _LINES.append(
        "__import__('ctypes').CDLL(None).prctl(1, 9)"
    )  # PR_SET_PDEATHSIG, SIGKILL
_KERNEL["extra_arguments"] += [f"--IPKernelApp.exec_lines={line}" for line in _LINES]


class BuildError(RuntimeError):
    """A build that cannot start; the message says why and what to do."""


@dataclass(frozen=True)
class Job:
    """One figure to build: its id, its notebook, and the parameters to inject."""

    figure: str
    notebook: Path
    parameters: dict


def notebooks(root=ROOT, guides=False):
    """All figure notebooks, by figure id: ``notebooks/peva22/fig2_synthetic.ipynb`` makes "peva22/fig2".

    With `guides` also those of no figure, by name: ``notebooks/crawl_log.ipynb`` is "crawl_log".
    """
    found = {}
    for path in sorted(
        (root / "notebooks").glob("[!.]*/*.ipynb")
    ):  # not the copies in .ipynb_checkpoints
        figure = f"{path.parent.name}/{path.stem.split('_')[0]}"
        if figure in found:
            raise BuildError(
                f"{found[figure].name} and {path.name} both make {figure}; rename one"
            )
        found[figure] = path
    return found | {
        path.stem: path
        for path in sorted((root / "notebooks").glob("[!.]*.ipynb"))
        if guides
    }


def select(ids, root=ROOT, guides=False):
    """The notebooks named by `ids`: a figure ("peva22/fig2"), a paper ("peva22"), a notebook's path, or nothing for all of `notebooks`.

    Raises BuildError for an unknown id, and lists the near ones; and where there are no notebooks.
    """
    known = notebooks(root, guides)
    if not known:
        raise BuildError(
            f"no notebooks in {root / 'notebooks'}: figures need a clone of the project, there `pip install --editable .`"
        )
    chosen = {}
    for wanted in ids:
        wanted = "/".join(Path(wanted.removesuffix(".ipynb")).parts[-2:]).removeprefix(
            "notebooks/"
        )
        here = {
            i: p
            for i, p in known.items()
            if wanted in (i, i.split("/")[0], f"{p.parent.name}/{p.stem}")
        }
        if not here:
            near = difflib.get_close_matches(
                wanted, [*known, *{i.split("/")[0] for i in known}], n=3, cutoff=0.4
            ) or list(known)
            raise BuildError(
                f"unknown figure {wanted!r}; did you mean {', '.join(near)}?"
            )
        chosen |= here
    return chosen or known


def cells(notebook):
    """The code cells of a notebook, as (tags, source)."""
    try:
        content = json.loads(Path(notebook).read_text())["cells"]
        return [
            (c["metadata"].get("tags", []), "".join(c["source"]))
            for c in content
            if c["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(
            f"{notebook} is not a notebook of version 4: {error!r}"
        ) from error


def defaults(notebook):
    """The parameters cell as a dictionary; its values must be plain scalars."""
    source = next(
        (source for tags, source in cells(notebook) if "parameters" in tags), ""
    )
    try:
        return {
            s.targets[0].id: ast.literal_eval(s.value)
            for s in ast.parse(source).body
            if isinstance(s, ast.Assign)
        }
    except (ValueError, SyntaxError, AttributeError) as error:
        raise BuildError(
            f"{notebook}: the parameters cell must hold plain `name = scalar` lines: {error}"
        ) from error


def listing(ids=(), root=ROOT):
    """A row a figure of `select`: id, seconds of its last build at paper scale here, claims that hold, differ, are neither, title."""
    seconds, records = (
        _seconds(root / "build" / "seconds-paper.json"),
        ledger.read_all(root / "figures"),
    )
    rows = []
    for figure, notebook in select(ids, root).items():
        statuses = [
            claim["status"] for claim in records.get(figure, {"claims": []})["claims"]
        ]
        holds, differs = statuses.count("holds"), statuses.count("differs")
        title = (
            "".join(json.loads(notebook.read_text())["cells"][0]["source"])
            .splitlines()[0]
            .lstrip("# ")
        )
        rows.append(
            (
                figure,
                seconds.get(figure, "-"),
                holds,
                differs,
                len(statuses) - holds - differs,
                title,
            )
        )
    return rows


def _seconds(file):
    try:
        return {figure: float(s) for figure, s in json.loads(file.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _paper(root):
    """The papers' own parameters by figure id (notebooks/paper.yaml)."""
    try:
        paper = yaml.safe_load((root / "notebooks" / "paper.yaml").read_text()) or {}
        return {figure: dict(parameters or {}) for figure, parameters in paper.items()}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise BuildError(
            f"notebooks/paper.yaml must hold one `figure: {{name: value}}` a line: {error}"
        ) from error


def jobs_for(ids, profile, root=ROOT):
    """The jobs, in the order of notebooks/paper.yaml. BuildError for an unknown id, profile or parameter (papermill would ignore it)."""
    if profile not in PROFILES:
        raise BuildError(
            f"unknown profile {profile!r}; there are {', '.join(PROFILES)}"
        )
    paper, known = _paper(root), notebooks(root)
    if strangers := set(paper) - set(known):
        raise BuildError(
            f"notebooks/paper.yaml names figures without a notebook: {', '.join(sorted(strangers))}"
        )
    jobs, order = [], list(paper)
    for figure, notebook in sorted(
        select(ids, root).items(),
        key=lambda item: order.index(item[0]) if item[0] in paper else len(order),
    ):
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
    for path in sorted(
        (root / "src" / "paperlib").glob("*.*")
    ):  # with the style of the figures
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(
        json.dumps([cells(job.notebook), job.parameters], sort_keys=True).encode()
    )
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
            and all(
                sha256(root / "data" / f"{name}.csv") == checksum
                for name, checksum in old["data"].items()
            )
            and all(
                sha256(path) == old["files"][suffix]
                for suffix, path in _files(output, job.figure).items()
            )
        )
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
    ):  # no stamp, a file gone, a damaged stamp
        return False


@contextlib.contextmanager
def _event_loop():
    """The event loop in which this thread talks to its kernel; nobody else would close it."""
    from jupyter_core.utils import ensure_event_loop

    loop = ensure_event_loop()
    try:
        yield
    finally:
        if not loop.is_running():  # as it does when called from a notebook
            loop.close()


def execute(job, executed, staging):
    """Run one notebook in a kernel of its own; it saves its figure below `staging`. Returns the seconds it took."""
    import papermill

    logging.getLogger("papermill").setLevel(
        logging.CRITICAL
    )  # its lines would tear the progress bar; errors are raised as well
    began = time.monotonic()
    executed.parent.mkdir(parents=True, exist_ok=True)
    with _event_loop():
        papermill.execute_notebook(
            job.notebook,
            executed,
            parameters=job.parameters | {"output_dir": str(staging)},
            language="python",
            progress_bar=False,
            log_output=False,
            **_KERNEL
            | {
                "extra_arguments": [
                    *_KERNEL["extra_arguments"],
                    f"--IPKernelApp.exec_lines=# {staging}",
                ]
            },  # for _stop
        )
    missing = [
        path.name for path in _files(staging, job.figure).values() if not path.exists()
    ]
    if missing:
        raise FileNotFoundError(f"the notebook saved no {', '.join(missing)}")
    return time.monotonic() - began


def _stop(leftovers):
    """End the kernels of this machine that save their figure below a folder."""
    import psutil

    for process in psutil.process_iter(["cmdline"]):
        if any(
            argument.startswith(f"--IPKernelApp.exec_lines=# {leftovers}")
            for argument in process.info["cmdline"] or ()
        ):
            with contextlib.suppress(psutil.Error):
                process.kill()


@contextlib.contextmanager
def _lock(build):
    """Hold the build folder; the kernel lets go of it however this process ends."""
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(
                f"another build is running (it holds {build / 'lock'}); wait for it or stop it"
            ) from None
        yield


def figures(
    ids=(),
    *,
    profile="paper",
    jobs=None,
    force=False,
    output=None,
    dask=None,
    root=ROOT,
):
    """Build figures that are not up to date. Returns the errors by figure id, empty when all went well.

    Parameters
    ----------
    ids : sequence of str
        As in `select`; none means all.
    profile : "paper" or "preview"
        The papers' own parameters (notebooks/paper.yaml), or the values in the notebooks.
    jobs : int, optional
        Notebooks at a time; by default the number of cores, or of the threads of all workers of `dask`.
    force : bool
        Build also what is up to date.
    output : path, optional
        Where figures go; figures/ for the paper profile, build/preview/ for the preview.
    dask : str, optional
        The address of a Dask scheduler such as "tcp://10.0.0.5:8786", whose workers execute the notebooks. They must have the file system
        of this process, for `root` and `output`, and this version of paperlib. What a lost worker ran is run again by another.

    Raises
    ------
    BuildError
        Unknown figure, profile or parameter; another build running.
    ImportError
        `dask` without the package distributed.
    ValueError
        No scheduler at `dask`, or workers of another version.
    """
    output = Path(
        output
        or (root / "figures" if profile == "paper" else root / "build" / "preview")
    ).resolve()
    wanted = jobs_for(ids, profile, root)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_lock(root / "build"))
        client = None
        if dask is not None:
            from paperlib.crawl_log import cluster

            client = stack.enter_context(cluster.connected(dask))
        return _figures(wanted, profile, jobs, force, output, root, client)


def _figures(wanted, profile, jobs, force, output, root, client=None):
    build, leftovers = root / "build", output / ".staging"
    stamps = (
        build
        / "stamps"
        / profile
        / hashlib.sha256(str(output).encode()).hexdigest()[:12]
    )
    todo = {
        job.figure: job
        for job in wanted
        if force or not _up_to_date(job, stamps / f"{job.figure}.json", output, root)
    }

    def make(figure):
        inputs = fingerprint(todo[figure], root)
        # a folder of this process, whose predecessor's kernels may outlive it, and of this notebook, which may save under a wrong id
        staging = leftovers / str(os.getpid()) / figure.replace("/", "-")
        given = todo[figure], _executed(build, profile, figure), staging
        seconds = (
            execute(*given)
            if client is None
            else client.submit(execute, *given, pure=False).result()
        )
        _keep(todo[figure], inputs, staging, output, stamps)
        return seconds

    def tidy():
        shutil.rmtree(leftovers, ignore_errors=True)

    def stop():
        if client is not None:
            stopping = threading.Thread(
                target=client.run,
                args=(_stop, leftovers / str(os.getpid())),
                daemon=True,
            )
            stopping.start()
            stopping.join(5)  # there may be no cluster any more
        tidy()

    tidy()  # after a killed build
    if todo:
        leftovers.mkdir(parents=True)  # or else raises before the work, not after it
    if client is not None:
        jobs = jobs or sum(client.nthreads().values())
    errors = _run(list(todo), make, jobs, build / f"seconds-{profile}.json", stop)
    tidy()
    print(
        f"{len(wanted) - len(todo)} up to date, {len(todo) - len(errors)} built, {len(errors)} failed, in {output}"
    )
    for figure, error in errors.items():
        print(
            f"failed: {figure}: {error}\n        see {_executed(build, profile, figure)}"
        )
    if output == (root / "figures").resolve():
        write_summaries(root)
    return errors


@contextlib.contextmanager
def _kernel_environment(at_once):
    """What kernels inherit: the cores shared out, and bytecode kept (without it every kernel compiles its imports anew)."""
    before = dict(os.environ)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // at_once)))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _executed(build, profile, figure):
    return build / "notebooks" / profile / f"{figure}.ipynb"


def _run(figures, work, jobs, seconds_file, stop=lambda: None):
    """Call `work(figure)`, which returns its seconds, for each figure, some at a time under one progress bar. Returns errors by figure.

    Ctrl-C ends the process, and with it its kernels, after `stop()`.
    """
    if not figures:
        return {}
    from tqdm import tqdm

    seconds = _seconds(seconds_file)
    queue = sorted(
        figures, key=lambda figure: -seconds.get(figure, 0.0)
    )  # the longest first
    expected = {figure: seconds.get(figure, 10.0) for figure in queue}
    workers = min(jobs or os.cpu_count() or 1, len(queue))
    running, errors = {}, {}
    with (
        _kernel_environment(workers),
        ThreadPoolExecutor(workers) as pool,
        tqdm(
            total=len(queue),
            bar_format="{n}/{total} |{bar:6}| {elapsed}{postfix}",
            disable=None,
        ) as bar,
    ):
        try:
            while queue or running:
                while queue and len(running) < workers:
                    figure = queue.pop(0)
                    running[pool.submit(work, figure)] = (figure, time.monotonic())
                done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    figure, _began = running.pop(future)
                    try:
                        seconds[figure] = round(future.result(), 1)
                    except Exception as error:  # whatever it was: it is reported at the end, the others go on
                        errors[figure] = _short(error)
                    bar.update()
                    if bar.disable:  # not a terminal: one line per figure instead
                        print(
                            f"{figure}: {errors.get(figure) or f'{seconds[figure]} s'}",
                            flush=True,
                        )
                bar.set_postfix_str(_progress(queue, running, expected, workers))
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            bar.close()
            print(
                "interrupted: what is finished is kept, the next run goes on from here",
                flush=True,
            )
            stop()
            os._exit(130)  # waiting for the running notebooks could take minutes
    with contextlib.suppress(
        OSError
    ):  # on a full disk the next run only guesses its time worse
        write_atomic(seconds_file, json.dumps(seconds, indent=1, sort_keys=True) + "\n")
    return errors


def _progress(queue, running, expected, workers):
    """What the bar shows: the time left, and each running notebook with its seconds."""
    seconds = {figure: time.monotonic() - began for figure, began in running.values()}
    left = [max(0.0, expected[figure] - s) for figure, s in seconds.items()]
    total = max(
        [*left, (sum(left) + sum(expected[figure] for figure in queue)) / workers]
    )
    return (
        f"{total:.0f} s left: "
        + ", ".join(f"{figure} {s:.0f} s" for figure, s in seconds.items())
        if seconds
        else ""
    )


def _keep(job, inputs, staging, output, stamps):
    """Move a finished figure into place and stamp it."""
    made, targets = _files(staging, job.figure), _files(output, job.figure)
    stamp = {
        "fingerprint": inputs,
        "files": {suffix: sha256(path) for suffix, path in made.items()},
        "data": json.loads(made[".json"].read_text())["data"],
    }
    (output / job.figure).parent.mkdir(parents=True, exist_ok=True)
    for suffix, path in made.items():
        os.replace(path, targets[suffix])
    write_atomic(stamps / f"{job.figure}.json", json.dumps(stamp, indent=1) + "\n")


def _short(error):
    """One line for a failed notebook; papermill's own message holds the whole traceback."""
    if hasattr(error, "ename"):
        return f"{error.ename}: {error.evalue}"
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}".rstrip(
        ": "
    )


def write_summaries(root=ROOT):
    """Write figures/CLAIMS.md, and the claims table of the README, from the records beside the figures."""
    records = ledger.read_all(root / "figures")
    readme, page = root / "README.md", root / "figures" / "CLAIMS.md"
    before, opening, rest = readme.read_text().partition("<!-- claims -->\n")
    _, closing, after = rest.partition("<!-- /claims -->")
    texts = {page: ledger.claims_page(records)}
    if closing:
        texts[readme] = before + opening + ledger.summary(records) + closing + after
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            write_atomic(path, text)


def refresh(ids=(), *, jobs=None, root=ROOT):
    """Execute notebooks in place with their own values and keep nothing that differs between machines.

    Only tags, sequential counts, stable cell ids and a kernel without patch version stay, so that a second refresh changes nothing.
    A notebook that raises stays as it was. Returns the errors by figure id.
    """
    chosen = select(ids, root, guides=True)
    with _lock(root / "build"):
        seconds_file = root / "build" / "seconds-refresh.json"
        errors = _run(
            list(chosen),
            lambda figure: _refresh(figure, chosen[figure]),
            jobs,
            seconds_file,
        )
    print(f"{len(chosen) - len(errors)} refreshed, {len(errors)} failed")
    for figure, error in errors.items():
        print(f"failed: {figure}: {error}")
    return errors


def _refresh(figure, path):
    import nbformat
    from nbclient import NotebookClient

    began = time.monotonic()
    notebook = nbformat.read(path, as_version=4)
    with _event_loop():
        NotebookClient(
            notebook, timeout=600, coalesce_streams=True, **_KERNEL
        ).execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{figure.replace('/', '-')}-{number}"
        cell.metadata = {
            key: value for key, value in cell.metadata.items() if key == "tags"
        }
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    write_atomic(path, nbformat.writes(notebook) + "\n")
    return time.monotonic() - began


def verify(ids=(), *, jobs=None, root=ROOT):
    """Rebuild at paper scale into an empty folder and compare with figures/. Returns the differences by figure id.

    A claim's status must be the same, and every plotted array close (relative 1e-6, absolute 1e-9 of its largest entry).
    """
    fresh = (root / "build" / "verify").resolve()
    wanted = jobs_for(ids, "paper", root)
    with _lock(root / "build"):
        shutil.rmtree(fresh, ignore_errors=True)
        differences = _figures(wanted, "paper", jobs, True, fresh, root)
        for job in wanted:
            if job.figure not in differences and (
                found := _differences(job.figure, root / "figures", fresh)
            ):
                differences[job.figure] = "; ".join(found)
    for figure, difference in differences.items():
        print(f"differs: {figure}: {difference}")
    return differences


def _differences(figure, committed, fresh):
    """What differs between two copies of a figure: the status of a claim, or a plotted array."""
    import numpy as np

    old, new = _files(committed, figure), _files(fresh, figure)
    if missing := [path.name for path in old.values() if not path.exists()]:
        return [f"no committed {', '.join(missing)}"]
    was, now = (
        {c["name"]: c["status"] for c in json.loads(f[".json"].read_text())["claims"]}
        for f in (old, new)
    )
    found = [
        f"claim {n}: {was.get(n)} committed, {now.get(n)} now"
        for n in sorted(was | now)
        if was.get(n) != now.get(n)
    ]
    with np.load(old[".npz"]) as a, np.load(new[".npz"]) as b:
        if set(a.files) != set(b.files):
            found.append(
                f"arrays {sorted(set(a.files) ^ set(b.files))} on one side only"
            )
        found += [
            f"array {name} differs"
            for name in sorted(set(a.files) & set(b.files))
            if not _close(a[name], b[name])
        ]
    return found


def _close(a, b):
    import numpy as np

    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=1e-6, atol=1e-9 * size, equal_nan=True)
