"""What is known about a page before it is crawled, and after a few crawls."""

from recrawl.errors import DegeneratePriorWarning
from recrawl.science.priors.grid import grid_posterior
from recrawl.science.priors.pseudo_observations import FakeIntervals

__all__ = ["DegeneratePriorWarning", "FakeIntervals", "grid_posterior"]
