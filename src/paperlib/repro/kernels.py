"""Kernels that end with the build that started them."""

import sys

from jupyter_client.manager import AsyncKernelManager

from paperlib.repro import guard

__all__ = ["GuardedManager"]


class GuardedManager(AsyncKernelManager):
    """Manager that starts its kernel under `paperlib.repro.guard`.

    Parameters
    ----------
    *args, **kwargs
        Those of the manager of Jupyter.

    Examples
    --------
    >>> from paperlib.repro.kernels import GuardedManager
    >>> command = GuardedManager(kernel_name="python3").format_kernel_cmd()
    >>> command[2].endswith("guard.py"), "ipykernel_launcher" in command
    (True, True)
    """

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Command that starts the guard, and by it the kernel.

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
        return [sys.executable, "-IS", guard.__file__, *command]
