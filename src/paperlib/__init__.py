"""Keep a copy of the web fresh: change rates, crawl rates and crawl schedules.

Five papers ask how to keep copies of web pages fresh when only so many crawls
can be made, and each crawl tells one bit: changed since the last crawl, or not.
The library implements their estimators and policies; every figure of the papers
is rebuilt with it by the notebooks of the project.

The science (needs NumPy, SciPy and numba):

reference
    The formulas of the five papers in plain form, to be read beside the paper.
processes
    Poisson pages, crawl times, and `History`: what a crawler has seen.
estimators
    The change rate from what was seen: batch, online, with intervals.
priors
    What is known of a page before its first crawls.
signals
    Change-indicating signals: parameters, precision and recall, estimation.
objectives
    What a stale copy costs, and the crawl value that follows from it.
freshness
    Freshness, delay and crawl value of given crawl rates and thresholds.
periodic
    Change rates that follow the hour of the day, and when to crawl then.
allocation
    Crawl rates that spend a bandwidth.
hosts
    Limits on the crawl rates of hosts.
schedules
    From crawl rates to crawl times and slots.
policies
    Which page is crawled next, also while change rates are being learnt.
regret
    The cost of not knowing the change rates.
simulate
    Draw a world, run policies in it, and compare them.
scheduler
    The greedy policies for real use, exact and fast, saved and restored.
field
    The worlds and policies of the field, compared side by side.
learning
    Greedy crawling that learns: names that now live in `policies`.
errors
    The errors and warnings of the science.

Your own crawl log (needs the extra "log"):

crawl_log
    Estimate change rates from a crawl log, and schedule, compare, backtest.

The reproduction (needs the extra "figures"):

repro
    Builds, claims, plotting and real data of the figures.
"""

import importlib

__version__ = "0.1.0"

__all__ = [
    "allocation",
    "crawl_log",
    "errors",
    "estimators",
    "field",
    "freshness",
    "hosts",
    "learning",
    "objectives",
    "periodic",
    "policies",
    "priors",
    "processes",
    "reference",
    "regret",
    "repro",
    "scheduler",
    "schedules",
    "signals",
    "simulate",
]


def __getattr__(name):
    # Modules are imported when they are first used, so that `import paperlib`
    # takes no time and needs none of the extras.
    if name in __all__:
        return importlib.import_module(f"paperlib.{name}")
    raise AttributeError(f"module 'paperlib' has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]
