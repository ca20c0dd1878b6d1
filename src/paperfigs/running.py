"""Run notebooks: each in a kernel of its own, several at a time."""

import contextlib
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from recrawl.files import write_atomic
from paperfigs.project import BuildError

__all__ = ["DRAWN_ONCE", "KERNEL", "event_loop", "locked", "read_seconds", "run_all"]

# The kernel of this environment, whatever kernel a notebook was saved with.
KERNEL = {
    "kernel_name": "python3",
    "kernel_manager_class": "paperfigs.kernels.GuardedManager",
    "extra_arguments": [
        "--log-level=50",
        # What tornado logs when a kernel ends would tear the progress bar.
        "--IPKernelApp.exec_lines="
        "__import__('logging').getLogger('tornado.general').setLevel(60)",
    ],
}
# An argument of kernels whose pictures nobody looks at: they are not drawn once more to
# cut off their margins, which takes .2 s a notebook (measured).
DRAWN_ONCE = (
    "--IPKernelApp.exec_lines="
    "get_ipython().config.InlineBackend.print_figure_kwargs = {'bbox_inches': None}"
)
# Processors with wider vectors than most x86 ones add in another order, which would
# show in the last digits of the figures. Without them the builds take as long.
_SAME_ROUNDING = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
}
_UNKNOWN_SECONDS = 10.0  # of a notebook that has not run here; typical
_REFRESH_SECONDS = 0.5  # between two updates of the progress bar


@contextlib.contextmanager
def event_loop() -> Iterator[None]:
    """Provide the event loop in which this thread talks to its kernel.

    Yields
    ------
    None
        The loop is closed afterwards; nobody else would close it.

    Examples
    --------
    >>> from paperfigs import running
    >>> with running.event_loop():
    ...     pass
    """
    from jupyter_core.utils import ensure_event_loop

    loop = ensure_event_loop()
    try:
        yield
    finally:
        # It goes on where the caller is itself a notebook, which owns it.
        if not loop.is_running():
            loop.close()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no two builds write there at the same time.

    The operating system releases it however this process ends.

    Parameters
    ----------
    folder : Path
        Made if there is none; the lock is the file ``lock`` in it.

    Yields
    ------
    None
        While no other process holds the folder.

    Raises
    ------
    BuildError
        Another process holds it, or this platform has no such locks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from paperfigs import running
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with running.locked(pathlib.Path(folder)):
    ...         print(os.listdir(folder))
    ['lock']
    """
    try:
        import fcntl
    except ImportError:
        raise BuildError("figures can be built on Linux and macOS only") from None
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(
                f"another build is running (it holds {folder / 'lock'}); "
                "wait for it or stop it"
            ) from None
        yield


def read_seconds(file: Path) -> dict[str, float]:
    """Seconds that notebooks took when they last ran here, by name.

    Parameters
    ----------
    file : Path
        Written by `run_all`.

    Returns
    -------
    dict of float
        Empty if the file is missing or damaged: it only serves to guess times.

    Examples
    --------
    >>> import pathlib
    >>> from paperfigs import running
    >>> running.read_seconds(pathlib.Path("missing.json"))
    {}
    """
    try:
        return {name: float(s) for name, s in json.loads(file.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def run_all(
    names: list[str],
    work: Callable[..., Any],
    *,
    seconds_file: Path,
    jobs: int | None = None,
    interrupted: Callable[..., Any] = lambda: None,
    environment: dict[str, str] | None = None,
) -> dict[str, str]:
    """Call a function for each of some names, several at a time.

    Shows one progress bar, or prints one line per name where the output is not
    a terminal. Ctrl-C ends this process, and with it its kernels.

    Parameters
    ----------
    names : list of str
        Those that took longest when they last ran are started first.
    work : callable
        Takes a name and returns the seconds that it took; called in threads.
    seconds_file : Path
        Where the seconds are kept for the next run.
    jobs : int, optional
        How many at a time; by default as many as there are cores.
    interrupted : callable, optional
        Called on Ctrl-C, before the process ends.
    environment : dict of str, optional
        Variables that kernels inherit besides those of this process.

    Returns
    -------
    dict of str
        One line about each error, by name; the others go on after an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from paperfigs import running
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "seconds.json")
    ...     running.run_all(["a"], lambda name: 1 / 0, seconds_file=file)
    a: ZeroDivisionError: division by zero
    {'a': 'ZeroDivisionError: division by zero'}
    """
    if not names:
        return {}
    progress = _Progress(names, read_seconds(seconds_file), jobs)
    with (
        _kernel_environment(progress.workers, environment or {}),
        ThreadPoolExecutor(progress.workers) as pool,
        progress.bar,
    ):
        try:
            _work_through(pool, work, progress)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            progress.bar.close()
            print(
                "interrupted: what is finished is kept, the next run goes on from here",
                flush=True,
            )
            interrupted()
            # Waiting for the running notebooks could take minutes.
            os._exit(130)
    # On a full disk the next run only guesses its time less well.
    with contextlib.suppress(OSError):
        text = json.dumps(progress.seconds, indent=1, sort_keys=True)
        write_atomic(seconds_file, text + "\n")
    return progress.errors


class _Progress:
    """What waits, what runs since when, what has ended, and the bar."""

    def __init__(self, names, seconds, jobs):
        from tqdm import tqdm

        self.seconds, self.errors, self.running = seconds, {}, {}
        self.expected = {name: seconds.get(name, _UNKNOWN_SECONDS) for name in names}
        self.queue = sorted(names, key=lambda name: -seconds.get(name, 0.0))
        self.workers = min(jobs or os.cpu_count() or 1, len(names))
        layout = "{n}/{total} |{bar:6}| {elapsed}{postfix}"
        # one process draws; a lock of several would outlive Ctrl-C
        tqdm.set_lock(threading.RLock())
        self.bar = tqdm(total=len(names), bar_format=layout, disable=None)

    def ended(self, name, future):
        """Note how a call ended."""
        try:
            self.seconds[name] = round(future.result(), 1)
            line = f"{self.seconds[name]} s"
        except Exception as error:  # of any kind: it is reported at the end
            self.errors[name] = line = _one_line(error)
        self.bar.update()
        if self.bar.disable:  # the output is not a terminal
            print(f"{name}: {line}", flush=True)

    def __str__(self):
        """The time left, and the seconds of each name that is running."""
        if not self.running:
            return ""
        now = time.monotonic()
        elapsed = {name: now - began for name, began in self.running.values()}
        left = [max(0.0, self.expected[name] - s) for name, s in elapsed.items()]
        waiting = sum(self.expected[name] for name in self.queue)
        total = max(*left, (sum(left) + waiting) / self.workers)
        shown = ", ".join(f"{name} {s:.0f} s" for name, s in elapsed.items())
        return f"{total:.0f} s left: {shown}"


def _work_through(pool, work, progress):
    """Submit a call whenever a thread is free, until all have ended."""
    queue, running = progress.queue, progress.running
    while queue or running:
        while queue and len(running) < progress.workers:
            name = queue.pop(0)
            running[pool.submit(work, name)] = name, time.monotonic()
        done, _ = wait(running, _REFRESH_SECONDS, FIRST_COMPLETED)
        for future in done:
            name, _ = running.pop(future)
            progress.ended(name, future)
        progress.bar.set_postfix_str(str(progress))


@contextlib.contextmanager
def _kernel_environment(workers, more):
    """Set what kernels inherit, and restore the environment afterwards."""
    before = dict(os.environ)
    os.environ.update(more)
    if platform.machine() == "x86_64":
        for name, value in _SAME_ROUNDING.items():
            os.environ.setdefault(name, value)
    # Without bytecode every kernel would compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // workers)))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _one_line(error):
    """One line for an error; papermill's message holds a whole traceback."""
    name = getattr(error, "ename", type(error).__name__)
    lines = str(getattr(error, "evalue", error)).strip().splitlines()
    return f"{name}: {lines[0]}" if lines else name
