"""No process is left, and less garbage collection."""

import gc
import sys
from importlib.util import find_spec

import pytest

# Of multiprocessing, joblib and `tests.kernels`: they end with their user.
SERVERS = "multiprocessing.forkserver", "resource_tracker", "loky", "tests.kernels"


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left():
    """Fail when the tests end, here or in a worker, and a process of theirs runs."""
    yield
    if not find_spec("psutil"):  # where paperlib alone is tested, none is started
        return
    import psutil

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
    if find_spec("hypothesis"):  # on Python 3.14 it warns of its own generator
        text = "ignore:It looks like `register_random`"
        rule = f"{text}:hypothesis.errors.HypothesisWarning"
        config.addinivalue_line("filterwarnings", rule)
    if sys.platform == "linux" and config.getoption("nbval", False):
        from tests import kernels

        kernels.use()


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
