"""Policies: what is crawled when."""

from .fixed_rates import Rates
from .greedy import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS
from .learning import (
    ExploreThenCommit,
    LearningRun,
    explore_then_commit,
    reoptimise,
)

__all__ = [
    "ExploreThenCommit",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyNCIS",
    "LearningRun",
    "Rates",
    "explore_then_commit",
    "reoptimise",
]
