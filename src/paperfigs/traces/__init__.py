"""Real change times of web pages, and populations of pages for experiments.

A trace is a CSV file of the times at which one page changed, with its
checksum beside it; two are shipped, and `wikipedia` downloads others. `panel`
gives the change times of many pages, `jodie` reads them from a file.
"""

from recrawl.science.processes import CrawlLog
from paperfigs.traces.bing_data import MalformedLinesWarning, bing
from paperfigs.traces.files import (
    DATA,
    DOWNLOADS,
    Trace,
    instant,
    load,
    read,
    write,
)
from paperfigs.traces.panels import Panel, jodie, panel
from paperfigs.traces.populations import population, signalled_population

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
    "signalled_population",
    "write",
]

_ONLINE = "ApiError", "ApiWarning", "wikipedia"


def __getattr__(name):
    """What needs a network client, which is imported when it is used."""
    if name in _ONLINE:
        from paperfigs.traces import mediawiki

        return getattr(mediawiki, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
