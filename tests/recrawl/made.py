"""Histories of `recrawl` from the simulations of `paperlib`."""

from paperlib import processes
from recrawl.log.history import History


def observe(change_times, crawl_times):
    """What crawls at these times see of these changes."""
    seen = processes.observe(change_times, crawl_times)
    return History(seen.interval, seen.changed)


def simulate_history(change_rate, **options):
    """Crawls of Poisson pages, with the options of `paperlib.processes`."""
    made = processes.simulate_history(change_rate, **options)
    return History(made.interval, made.changed)
