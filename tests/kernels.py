"""Kernels of notebooks that start at once: forks of a process with the libraries.

To load them takes longer than most notebooks compute. Only Linux has them: elsewhere
forks of a process with graphics fail, and Jupyter starts kernels as usual.
"""

import asyncio
import contextlib
import functools
import gc
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import psutil
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner


def use():
    """Let Jupyter start all kernels of this process as forks."""
    factory = KernelProvisionerFactory.instance()
    factory.provisioners["forked"] = EntryPoint("forked", f"{__name__}:Forked", "")
    factory.default_provisioner_name = "forked"


class Forked(LocalProvisioner):
    """Starts a kernel, and watches it by its process number."""

    async def launch_kernel(self, cmd, cwd, **_):
        """Fork a kernel, with the arguments of the command that would start one."""
        server, request = started(), (cmd[cmd.index("-f") :], str(cwd))
        print(json.dumps(request), file=server.stdin, flush=True)
        self.process = int(server.stdout.readline())
        return self.connection_info

    async def poll(self):
        """None while the kernel runs."""
        return None if psutil.pid_exists(self.process) else 0

    async def wait(self):
        """Wait until the kernel has ended."""
        while await self.poll() is None:
            await asyncio.sleep(0.05)
        self.process = None

    async def send_signal(self, signum):
        """Send a signal, which a kernel that has ended does not need."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signum)


@functools.cache
def started():
    """The process that forks kernels, one for each process of the tests."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import {__name__}; {__name__}.serve()"],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the tests
    )


def serve():
    """Load what notebooks use, and fork a kernel for each line of the input.

    The input ends with the tests, however these end. Then all kernels do, also within
    one long call of compiled code.
    """
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # kernels look for it, too
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    import numba
    from ipykernel.kernelapp import launch_new_instance

    import paperlib  # noqa: F401
    from paperfigs import ledger, plotting  # noqa: F401

    numba.njit(lambda: 0)()  # the compiler is loaded by its first use
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leave no zombies
    gc.freeze()  # keep what is loaded in shared memory, also when a kernel ends
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(2, 1)  # the output is the pipe to Jupyter
        arguments, folder = json.loads(line)
        os.chdir(folder)
        launch_new_instance(argv=[*arguments, "--log-level=50"])  # no warnings
        return
    os.killpg(0, signal.SIGKILL)
