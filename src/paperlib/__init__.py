"""Five papers on keeping copies of web pages fresh: their estimators and policies.

A crawler may crawl only so often, and each crawl tells one bit: whether the page
has changed since the last crawl. How often does each page change, and which page
should be crawled next?

processes
    Poisson pages, crawl times, and `History`: what a crawler has seen.
estimators
    Change rates from a history, online and at once.
priors
    What is known of a page before its first crawls.
signals
    Pages that send signals of their changes, and the quality of the signals.
freshness
    Freshness, crawl value and time between crawls in closed form.
allocation
    Crawl rates that spend a bandwidth.
schedules
    From crawl rates to crawl times and slots.
policies
    Which page to crawl next, also while change rates are being learnt.
regret
    Requests served fresh, burn-in, and the cost of not knowing the change rates.
worlds
    Draw a world, crawl it by policies, and compare them.
copies
    The copies of a crawler that follows schedules of crawl rates.
"""

from . import (
    allocation,
    copies,
    errors,
    estimators,
    freshness,
    policies,
    priors,
    processes,
    regret,
    schedules,
    signals,
    worlds,
)
