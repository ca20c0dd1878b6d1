"""Draw a world, run policies in it, and count what was served fresh."""

from paperlib.simulate.copies import EXPLORE, Copies
from paperlib.simulate.runs import CrawlRun, compare, crawl, replicate, slot_times
from paperlib.simulate.worlds import World, draw_world, replay

__all__ = [
    "EXPLORE",
    "Copies",
    "CrawlRun",
    "World",
    "compare",
    "crawl",
    "draw_world",
    "replay",
    "replicate",
    "slot_times",
]
