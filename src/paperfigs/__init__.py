"""The reproduction: figures, claims, builds, real data and the site."""

import importlib

__all__ = [
    "benchmarking",
    "build",
    "ledger",
    "plotting",
    "project",
    "report",
    "running",
    "sharing",
    "site",
    "traces",
]


def __getattr__(name):
    # As in `paperlib` itself: a module is imported when it is first used.
    if name in __all__:
        return importlib.import_module(f"paperfigs.{name}")
    raise AttributeError(f"module 'paperfigs' has no attribute {name!r}")
