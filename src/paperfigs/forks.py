"""A server of kernels, each of which is a fork of it.

A kernel takes 3 s of processor time to start and to import matplotlib, pandas and
numba, which is longer than many notebooks compute. The server imports them once,
and paperlib with them. A fork imports paperlib again if it has changed on the disk.

`paperfigs.kernels` starts it as ``python -m paperfigs.forks SOCKET``.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import socket
import sys
import time
import warnings

from paperfigs import guard

__all__ = ["serve"]

_IMPORTED = (
    "ipykernel.debugger",
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "pandas",
    "scipy.stats",
    "recrawl.science.policies",
    "paperfigs.ledger",
    "paperfigs.plotting",
    "paperfigs.traces",
    "recrawl.science.simulate",
)


def serve(requests: socket.socket) -> None:
    """Fork a kernel for each socket that arrives, until the build ends.

    Parameters
    ----------
    requests : socket.socket
        Brings a socket for each kernel: what it receives says what to run, it is
        sent the number of the process group, and whoever closes it ends the kernel.

    Examples
    --------
    >>> import socket
    >>> from paperfigs import forks
    >>> build, requests = socket.socketpair()
    >>> build.close()
    >>> forks.serve(requests)  # doctest: +SKIP
    >>> requests.close()
    """
    import numba

    imported = time.time()
    for name in _IMPORTED:
        importlib.import_module(name)
    numba.njit(lambda: None)()  # makes its compiler ready
    gc.freeze()  # no garbage collection of a kernel looks through all of this
    # The threads are those of OpenBLAS, which ends them before each fork.
    warnings.filterwarnings("ignore", ".* is multi-threaded", DeprecationWarning)
    while received := socket.recv_fds(requests, 1, 1)[1]:
        build = socket.socket(fileno=received[0])
        if os.fork() == 0:
            requests.close()
            _guard(build, imported)
        build.close()
        _collect(os.WNOHANG)
    _collect(0)


def _collect(options):
    """Wait for forks that have ended: their processor time then counts as ours."""
    with contextlib.suppress(ChildProcessError):  # there are none
        while os.waitpid(-1, options)[0]:
            pass


def _guard(build, imported):
    """Fork once more, and end with the kernel or the build."""
    os.setsid()  # Jupyter sends signals to the process group of a kernel
    with build.makefile() as lines:
        request = json.loads(lines.readline())
    kernel = os.fork()
    if kernel == 0:
        build.close()
        _run(imported, **request)
    build.sendall(b"%d\n" % os.getpid())
    guard.end_together(
        lambda: os.waitpid(kernel, os.WNOHANG) == (0, 0),
        lambda: not select.select([build], [], [], 0)[0],
    )


def _modules():
    """The modules of paperlib that are imported, by name."""
    return {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "paperlib"
    }


def _has_changed(path, since):
    """Whether a file was changed or removed since a time."""
    return not os.path.exists(path) or os.path.getmtime(path) > since


def _run(imported, arguments, environment, folder):
    """Be the kernel that ``python -m ipykernel_launcher`` with these arguments is."""
    import matplotlib as mpl
    import pandas as pd
    from ipykernel import kernelapp

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    ours = _modules()
    if any(_has_changed(module.__file__, imported) for module in ours.values()):
        for name in ours:
            del sys.modules[name]
    # Both look when they are imported whether that is in a kernel.
    mpl.rcParams["backend"] = "module://matplotlib_inline.backend_inline"
    pd.set_option("display.max_columns", 20)
    kernelapp.launch_new_instance(arguments)
    os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # without a look for what the libraries leave, which gc.freeze keeps
