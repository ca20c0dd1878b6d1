"""Policies: which page is crawled when.

Policies of Busa-Fekete et al. (2025): `Greedy`, `GreedyCIS`, `GreedyNCIS`,
`GreedyCISPlus` (Algorithm 1), `ArgMax` for any crawl value, `Rates` (LDS). Four others
learn change rates: `ExploreThenCommit` and `PhasedEpsilonGreedy` of Upadhyay et al.
(2020), `reoptimise`, section 5 of Avrachenkov, Patil, Thoppe (2022), and
`next_interval`, section 4.1 of Grimes and Ford (2008).
"""

from .adaptive import next_interval, simulate_sequential_history
from .arg_max import ArgMax
from .fixed_rates import Rates
from .greedy import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS
from .learning import (
    ExploreThenCommit,
    LearningRun,
    PhasedEpsilonGreedy,
    reoptimise,
)

__all__ = [
    "ArgMax",
    "ExploreThenCommit",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyNCIS",
    "LearningRun",
    "PhasedEpsilonGreedy",
    "Rates",
    "next_interval",
    "reoptimise",
    "simulate_sequential_history",
]
