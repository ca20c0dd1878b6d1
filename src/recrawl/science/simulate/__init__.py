"""Draw a world, run policies in it, and count what was served fresh.

`draw_world` and `replay` make a `World`: one draw of nature, in which every
policy is run, so that comparisons are paired. `crawl` runs a policy that picks
pages in a world, `compare` runs several policies in many worlds, and
`replicate` repeats any function with independent random numbers.
"""

from recrawl.science.simulate.runs import (
    CrawlRun,
    compare,
    crawl,
    replicate,
    slot_times,
)
from recrawl.science.simulate.worlds import World, draw_world, replay

__all__ = [
    "CrawlRun",
    "World",
    "compare",
    "crawl",
    "draw_world",
    "replay",
    "replicate",
    "slot_times",
]
