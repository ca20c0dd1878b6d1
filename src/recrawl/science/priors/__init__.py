"""What is known about a page before it is crawled."""

from recrawl.science.priors.pseudo_observations import FakeIntervals

__all__ = ["FakeIntervals"]
