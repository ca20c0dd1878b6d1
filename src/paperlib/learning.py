"""Greedy crawling that learns: names of `policies` and `allocation`.

Earlier versions defined them here, and they stay importable from here.
"""

from paperlib.allocation import polite_thresholds
from paperlib.policies import (
    LearningGreedy,
    Learnt,
    PoliteGreedy,
    estimate,
    parameter_errors,
)

__all__ = [
    "LearningGreedy",
    "Learnt",
    "PoliteGreedy",
    "estimate",
    "parameter_errors",
    "polite_thresholds",
]


def __dir__():
    return __all__  # completion offers the public names alone
