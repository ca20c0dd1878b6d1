"""Run a command, and end all that it started when it or its parent ends.

Where kernels are no forks (`paperfigs.forks`), they are started by ``python
guard.py COMMAND``, in a process group of their own. A build that is killed cannot
end its kernels, and a kernel that computes in compiled code cannot notice that its
parent is gone: this process can. It needs the standard library only, and starts in
some 20 ms.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

__all__ = ["end_together", "main"]

_POLL = 0.05  # seconds between two looks


def end_together(is_running: Callable[[], bool], is_wanted: Callable[[], bool]) -> None:
    """Wait while a kernel runs and is wanted, then end this process group.

    Parameters
    ----------
    is_running : callable
        Whether the kernel runs.
    is_wanted : callable
        Whether the build runs that started it.

    Examples
    --------
    >>> from paperfigs import guard
    >>> guard.end_together(lambda: True, lambda: False)  # doctest: +SKIP
    Killed
    """
    # Jupyter sends these to the whole group; they are for the kernel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while is_running() and is_wanted():
        time.sleep(_POLL)
    os.killpg(0, signal.SIGKILL)  # this process too


def main(command: list[str], parent: int) -> None:
    """Run a command in this process group, which ends with it or with the parent.

    It works on Linux and macOS, and however the parent ends, as the system then
    gives this process another parent.

    Parameters
    ----------
    command : list of str
        The program and its arguments.
    parent : int
        Process id of the build.

    Examples
    --------
    >>> from paperfigs import guard
    >>> guard.main(["sleep", "60"], os.getppid())  # doctest: +SKIP
    """
    running = subprocess.Popen(command)
    end_together(lambda: running.poll() is None, lambda: os.getppid() == parent)


if __name__ == "__main__":
    main(sys.argv[1:], int(os.environ["JPY_PARENT_PID"]))  # set by Jupyter
