"""Policies: which page is crawled next, and how often while the change rates are still being learnt."""

from paperlib.errors import BoundsWarning, UnexploredWarning
from paperlib.policies.crawlers import Nutch, StormCrawler
from paperlib.policies.fixed_rates import Rates
from paperlib.policies.greedy import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS
from paperlib.policies.learning import (
    LearningGreedy,
    Learnt,
    estimate,
    parameter_errors,
)
from paperlib.policies.phases import ExploreThenCommit, LearningRun, PhasedEpsilonGreedy
from paperlib.policies.polite import PoliteGreedy
from paperlib.policies.reoptimise import reoptimise
from paperlib.simulate.copies import EXPLORE, Copies

__all__ = [
    "EXPLORE",
    "BoundsWarning",
    "Copies",
    "ExploreThenCommit",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyNCIS",
    "LearningGreedy",
    "LearningRun",
    "Learnt",
    "Nutch",
    "PhasedEpsilonGreedy",
    "PoliteGreedy",
    "Rates",
    "StormCrawler",
    "UnexploredWarning",
    "estimate",
    "parameter_errors",
    "reoptimise",
]
