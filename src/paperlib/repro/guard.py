"""Run a command, and end all that it started when it or its parent ends.

Kernels are started by ``python guard.py COMMAND``, in a process group of their own
(`paperlib.repro.kernels`). A build that is killed cannot end its kernels, and a
kernel that computes in compiled code cannot notice that its parent is gone: this
process can. It needs the standard library only, and starts in some 20 ms.
"""

import contextlib
import os
import signal
import subprocess
import sys

__all__ = ["main"]

_POLL = 0.5  # seconds between two looks at the parent


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
    >>> from paperlib.repro import guard
    >>> guard.main(["sleep", "60"], os.getppid())  # doctest: +SKIP
    """
    running = subprocess.Popen(command)
    # Jupyter sends these to the whole group; they are for the command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while os.getppid() == parent and running.returncode is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(_POLL)
    os.killpg(0, signal.SIGKILL)  # this process too


if __name__ == "__main__":
    main(sys.argv[1:], int(os.environ["JPY_PARENT_PID"]))  # set by Jupyter
