"""No process is left, and less garbage collection."""

import gc

import psutil
import pytest

collect_ignore = ["typed.py"]  # for mypy, and not to be run

# Servers of multiprocessing and joblib, which end with their user.
SERVERS = "multiprocessing.forkserver", "resource_tracker", "loky"


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
