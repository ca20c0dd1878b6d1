"""Policies: which page is crawled next.

A policy has ``choose(world, time, last)``. It gets a `simulate.World`, the
times of the slots, shape (n_slots,), and the last crawl of each page, shape
(n_pages,), -inf for a page that was never crawled; it returns the page of each
slot, an integer array of shape (n_slots,), -1 where no page is crawled.
`simulate.crawl` runs such a policy. It may use of the world what a crawler can
know: the signals that it has received, and whether pages had changed when it
crawled them. It does not know the true parameters of the pages: it holds the
pages as it believes them to be (``believed``).
"""

from recrawl.science.policies.bayes import BayesGreedy, PosteriorGreedy
from recrawl.science.policies.by_index import IndexPolicy
from recrawl.science.policies.crawlers import Nutch, StormCrawler
from recrawl.science.policies.fixed_rates import Rates
from recrawl.science.policies.greedy import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS
from recrawl.science.policies.in_phases import RatesInPhases

__all__ = [
    "BayesGreedy",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyNCIS",
    "IndexPolicy",
    "Nutch",
    "PosteriorGreedy",
    "Rates",
    "RatesInPhases",
    "StormCrawler",
]
