"""Notebooks run in forks of one process that has imported what all of them need.

A kernel takes 2 s of processor time to start and to import matplotlib, pandas and
numba, which is as long as most notebooks compute. The server of forks that
`multiprocessing` has makes these imports once, in `imported`. Every notebook still
has a process and a kernel of its own, in which it imports and computes everything
itself. Where a system cannot fork, Jupyter starts the kernels as usual.
"""

import multiprocessing
import os
from unittest import mock


def fork():
    """Let nbval fork its kernels. Builds of figures start theirs as they always do."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        import nbval.kernel
        from jupyter_client.provisioning import local_provisioner

        start = nbval.kernel.start_new_kernel

        def start_fork(*args, **kwargs):
            with mock.patch.object(local_provisioner, "launch_kernel", _Kernel):
                return start(*args, **kwargs)

        # Found where `make` runs, in the folder of the project. Elsewhere each fork
        # imports for itself.
        multiprocessing.set_forkserver_preload(["tests.imported"])
        nbval.kernel.start_new_kernel = start_fork


class _Kernel:
    """A forked kernel, with the part of `subprocess.Popen` that Jupyter uses."""

    stdin = stdout = stderr = None

    def __init__(self, command, *, env, cwd, **_):
        context = multiprocessing.get_context("forkserver")
        arguments = command[command.index("-f") :]
        ready, is_ready = context.Pipe(duplex=False)
        self._fork = context.Process(target=_run, args=(arguments, env, cwd, is_ready))
        self._fork.start()
        is_ready.close()  # so that recv fails, and does not wait, for a fork that died
        ready.recv()
        self.pid = self._fork.pid

    def poll(self):
        return self._fork.exitcode

    def wait(self):
        self._fork.join()
        return self._fork.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self._fork.kill()


def _run(arguments, env, cwd, is_ready):
    """Be the kernel that `python -m ipykernel_launcher` with these arguments is."""
    import matplotlib as mpl
    import pandas as pd
    from ipykernel import kernelapp

    os.setsid()  # Jupyter sends signals to the process group of a kernel
    is_ready.send(True)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    # Both look when they are imported whether that is in a kernel.
    mpl.rcParams["backend"] = "module://matplotlib_inline.backend_inline"
    pd.set_option("display.max_columns", 20)
    # The fork ends when its parent does.
    parent = f"--IPKernelApp.parent_handle={os.getppid()}"
    kernelapp.launch_new_instance([*arguments, parent])
