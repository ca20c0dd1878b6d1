"""Which worker of pytest-xdist gets which tests; kernels of notebooks are forks.

And what is collected is left out of garbage collection.
"""

import gc
from pathlib import PurePath

import psutil
import pytest

collect_ignore = ["typed.py"]  # for mypy, and not to be run

# These call the greedy scheduler, which compiles for 25 s in a fresh clone: on two
# workers at once they would compile it twice, as its cache is not there yet.
SCHEDULER = {
    "test_due",
    "test_greedy",
    "test_learning",
    "test_policies",
    "test_properties",
    "test_reference",
    "test_replay",
    "test_scheduler",
    "test_scheduler_learning",
    "test_simulate",
    "test_value",
}


# Servers of paperlib, multiprocessing and joblib, which end with their user.
SERVERS = (
    "multiprocessing.forkserver",
    "paperlib.repro.forks",
    "resource_tracker",
    "loky",
)


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left():
    """Fail when the tests end, here or in a worker, and a process of theirs runs."""
    yield
    children = {
        child: " ".join(child.cmdline())
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    }
    _, alive = psutil.wait_procs(
        [c for c, line in children.items() if not any(map(line.count, SERVERS))], 10
    )
    left = [children[child] for child in alive]
    for child in alive:
        child.kill()
    assert not left, "processes that the tests have left"


def pytest_configure(config):
    if config.getoption("nbval", default=False):
        import nbval.kernel

        from paperlib.repro.kernels import Guarded
        from paperlib.repro.running import DRAWN_ONCE

        class Manager(Guarded, nbval.kernel.KernelManager):
            """Forks, as the kernels of builds are; pictures are not compared."""

            def format_kernel_cmd(self, extra_arguments=None):
                return super().format_kernel_cmd([*(extra_arguments or ()), DRAWN_ONCE])

        nbval.kernel.KernelManager = Manager


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """No garbage collection looks through what is imported and collected.

    All of it stays until the end, and every look takes a third of a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure():
    """At the end all of it goes, as libraries report what they hold then."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)  # so that pytest works without pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadscope`, where the tests of the scheduler are one scope."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            scope = super()._split_scope(nodeid)
            return "scheduler" if PurePath(scope).stem in SCHEDULER else scope

    return Together(config, log) if config.getvalue("dist") == "loadscope" else None
