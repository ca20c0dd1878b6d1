"""Real change times of web pages, and populations of pages for experiments.

A trace is a CSV file of the times at which one page changed, with its
checksum beside it; two are shipped, and `wikipedia` downloads others. `panel`
gives the change times of many pages, `jodie` reads them from a file.
"""

from paperlib.crawl_log import CrawlLog, read_crawl_log
from paperlib.repro.traces.bing_data import MalformedLinesWarning, bing
from paperlib.repro.traces.files import (
    DATA,
    DOWNLOADS,
    Trace,
    instant,
    load,
    read,
    write,
)
from paperlib.repro.traces.panels import Panel, jodie, panel
from paperlib.repro.traces.populations import population, signalled_population

__all__ = [
    "DATA",
    "DOWNLOADS",
    "CrawlLog",
    "MalformedLinesWarning",
    "Panel",
    "Trace",
    "bing",
    "instant",
    "jodie",
    "load",
    "panel",
    "population",
    "read",
    "read_crawl_log",
    "signalled_population",
    "write",
]


def __getattr__(name):
    """What needs a network client, which is imported when it is used."""
    if name in ("ApiError", "ApiWarning", "wikipedia"):
        from paperlib.repro.traces import mediawiki

        return getattr(mediawiki, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
