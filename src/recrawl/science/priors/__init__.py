"""What is known about a page before it is crawled, and after a few crawls."""

from recrawl.errors import DegeneratePriorWarning
from recrawl.science.priors.gamma import GammaPrior, gamma_prior
from recrawl.science.priors.grid import grid_posterior
from recrawl.science.priors.hosts import HostPriors, host_priors
from recrawl.science.priors.populations import population
from recrawl.science.priors.pseudo_observations import FakeIntervals

__all__ = [
    "DegeneratePriorWarning",
    "FakeIntervals",
    "GammaPrior",
    "HostPriors",
    "gamma_prior",
    "grid_posterior",
    "host_priors",
    "population",
]
