"""Greedy crawling that learns: the names of `policies` and `allocation` that earlier versions kept here."""

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
