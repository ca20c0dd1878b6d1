"""Kernels that end with the build that started them; on Linux they are forks."""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from paperfigs import guard

__all__ = ["GuardedManager"]

# macOS may end forks of a process that has used its frameworks.
_FORKS = sys.platform == "linux"
# As Jupyter starts kernels, so that their debugger works without a warning.
_LIKE_KERNELS = "-Xfrozen_modules=off", "-m", "paperfigs.forks"
_PATIENCE = 5.0  # seconds
# What the libraries that the server imports read at import, by how names begin.
_READ_AT_IMPORT = "NUMBA_", "NPY_", "OPENBLAS_", "OMP_", "MKL_", "MPL", "PYTHON"


class GuardedManager(AsyncKernelManager):
    """The manager of a build's kernels, each of which has a guard.

    The guard ends the kernel with the process that started it. On Linux a kernel
    is a fork of a process that has made its imports (`paperfigs.forks`).

    Parameters
    ----------
    *args, **kwargs
        Those of the manager of Jupyter.

    Examples
    --------
    >>> from paperfigs.kernels import GuardedManager
    >>> manager = GuardedManager(kernel_name="python3")
    >>> "ipykernel_launcher" in manager.format_kernel_cmd()
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if _FORKS:
            self.provisioner = _Provisioner(parent=self, kernel_spec=self.kernel_spec)

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Command that starts the kernel, by a guard where it is no fork.

        Parameters
        ----------
        extra_arguments : list of str, optional
            Further arguments of the kernel.

        Returns
        -------
        list of str
            The program and its arguments.
        """
        command = super().format_kernel_cmd(extra_arguments)
        # Without the paths and packages that only the kernel needs (-I -S).
        by_guard = [] if _FORKS else [sys.executable, "-IS", guard.__file__]
        return [*by_guard, *command]


class _Provisioner(LocalProvisioner):
    """Starts a kernel as a fork of the server."""

    async def launch_kernel(self, cmd, **kwargs):
        self.process = _Fork(cmd, kwargs["env"], kwargs.get("cwd") or os.getcwd())
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class _Fork:
    """A forked kernel, with the part of `subprocess.Popen` that Jupyter uses."""

    stdin = stdout = stderr = returncode = None

    def __init__(self, command, environment, folder):
        request = {
            "arguments": command[command.index("-f") :],
            "environment": environment,
            "folder": str(folder),
        }
        self._guard, theirs = socket.socketpair()
        with theirs:
            _Server.send(environment, theirs)
        self._guard.sendall(json.dumps(request).encode() + b"\n")
        with self._guard.makefile() as lines:
            self.pid = int(lines.readline() or 0)
        if not self.pid:
            raise ChildProcessError("the server of kernels has ended")

    def poll(self):
        if self.returncode is None and select.select([self._guard], [], [], 0)[0]:
            self._guard.close()
            self.returncode = 0
        return self.returncode

    wait = poll  # Jupyter calls it when the kernel has ended

    def send_signal(self, number):
        os.killpg(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


# glibc returns the memory of freed arrays to the system, which then has to provide it
# again page by page for the next arrays. A kernel lives for minutes only and keeps its
# memory: this saved 5% of the time of six figures (measured). As long as glibc may use
# mmap, it takes arrays above 32 MB from the system each time. Without mmap 12 runs of
# www25/fig8 took .65 s of system time in place of 1.75 s, and four figures up to 53 MB
# more memory (measured). Other C libraries ignore these variables.
_KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
}


class _Server:
    """A server of forks, which ends when its socket is closed here."""

    latest = None
    lock = threading.Lock()

    def __init__(self, environment):
        self.environment = environment
        self.requests, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, *_LIKE_KERNELS, str(theirs.fileno())],
                env=_KEEP_MEMORY | os.environ | environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the build
            )
        atexit.register(self.close)

    def serves(self, environment):
        return self.environment == environment and self.process.poll() is None

    def close(self):
        self.requests.close()
        # It waits for its forks; one that still runs ends when this process does.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE)

    @classmethod
    def send(cls, environment, kernel):
        """Send a kernel's socket to a server that has read the same environment."""
        read = {k: v for k, v in environment.items() if k.startswith(_READ_AT_IMPORT)}
        with cls.lock:
            if not (cls.latest and cls.latest.serves(read)):
                if cls.latest:
                    cls.latest.requests.close()
                cls.latest = cls(read)
            socket.send_fds(cls.latest.requests, [b"."], [kernel.fileno()])
