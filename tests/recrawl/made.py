"""Histories of `recrawl` from the simulations of `paperlib`."""

import numpy as np

from paperlib import processes
from recrawl.science.processes import History


def observe(change_times, crawl_times):
    """What crawls at these times see of these changes."""
    seen = processes.observe(change_times, crawl_times)
    return History(seen.interval, seen.changed)


def simulate_history(change_rate, **options):
    """Crawls of Poisson pages, with the options of `paperlib.processes`."""
    made = processes.simulate_history(change_rate, **options)
    return History(made.interval, made.changed)


def poisson_times(rate, horizon, rng):
    """Times of a Poisson process up to the horizon, sorted."""
    return np.sort(rng.uniform(0.0, horizon, rng.poisson(rate * horizon)))
