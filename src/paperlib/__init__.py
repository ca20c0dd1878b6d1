"""Estimators and policies of five papers on keeping copies of web pages fresh.

A crawler has a limited bandwidth, and each crawl reveals one bit: whether the page
has changed since the last crawl. How often does each page change, and which page
should be crawled next?

The papers: valuetools20 and peva22 (Avrachenkov, Patil, Thoppe 2020, 2022), aaai20
(Upadhyay et al. 2020), www25 (Busa-Fekete et al. 2025), grimes08 (Grimes, Ford 2008).

processes
    The model of all five papers: Poisson pages, the probability that a crawl finds a
    change, the bits of crawls (`History`), and simulated histories.
estimators
    Estimators of change rates. `online`: LLN, SA, SAM of valuetools20 and peva22.
    `batch`: MLE (also with the substitutes of grimes08), moment matching, the
    bias-reduced estimator of grimes08.
    `information`: Lemmas 2 and 3 of aaai20, Fisher information.
priors
    Pseudo-observations, first interval and posterior on a grid: section 4 of grimes08.
signals
    Pages with noisy signals, and the quality of the signals: section 3 and
    appendix E of www25.
freshness
    Closed forms for one page: share of fresh time under crawls at Poisson times and at
    equal intervals; eq. (1), Lemma 4 and the crawl value of www25 (compiled:
    `lemma_4`).
allocation
    Crawl rates that spend a bandwidth: uniform, proportional, and optimal for
    Poisson times, equal intervals (eq. (5) of www25) and thresholds (its Theorem 1).
schedules
    Crawl times for crawl rates, and slots of low discrepancy (LDS).
policies
    Algorithm 1 of www25 chooses the page to crawl next. These policies learn change
    rates: explore-then-commit (section 5) and phased epsilon-greedy (section 6.3) of
    aaai20, section 5 of peva22, the next interval of grimes08 (section 4.1). The
    requests served fresh, eq. (2) of aaai20, are `LearningRun.utility`.
regret
    Closed forms of aaai20 for all pages together: utility F, burn-in (Lemma 1),
    sensitivity (Lemma 4), exploration (Lemma 5) and the regret bound (Theorem 1).
worlds
    Simulations of www25: draw a world, and crawl it with a policy. The objective of
    eq. (2) is `CrawlRun.freshness`.
copies
    Simulated copies of a crawler that follows crawl rates, for policies that learn.
"""

import importlib

from . import cache

__all__ = [
    "allocation",
    "copies",
    "errors",
    "estimators",
    "freshness",
    "lemma_4",
    "policies",
    "priors",
    "processes",
    "regret",
    "schedules",
    "signals",
    "worlds",
]

__version__ = "0.1.0"

cache.ensure()  # before numba compiles


def __getattr__(name):
    """Import a module at its first use, so that a command starts without numba."""
    if name not in __all__:
        raise AttributeError(f"module 'paperlib' has no attribute {name!r}")
    return importlib.import_module(f"paperlib.{name}")


def __dir__():
    return __all__
