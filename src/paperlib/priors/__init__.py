"""What is known about a page before it is crawled, and after a few crawls."""

from paperlib.errors import DegeneratePriorWarning
from paperlib.priors.gamma import GammaPrior, gamma_prior
from paperlib.priors.grid import grid_posterior
from paperlib.priors.hosts import HostPriors, host_priors
from paperlib.priors.populations import population
from paperlib.priors.pseudo_observations import FakeIntervals, prior_from_arrivals

__all__ = [
    "DegeneratePriorWarning",
    "FakeIntervals",
    "GammaPrior",
    "HostPriors",
    "gamma_prior",
    "grid_posterior",
    "host_priors",
    "population",
    "prior_from_arrivals",
]


def __dir__():
    return __all__  # completion offers the public names alone
