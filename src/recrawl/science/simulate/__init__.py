"""Draw a world, run policies in it, and count what was served fresh.

`draw_world` and `replay` make a `World`: one draw of nature, in which every
policy is run, so that comparisons are paired. `crawl` runs a policy that picks
pages in a world, `compare` runs several policies in many worlds, and
`replicate` repeats any function with independent random numbers.

`Copies` simulates the copies of a crawler that follows crawl rates, for the
policies that set rates; `explore_then_commit` evaluates one such policy for
many lengths of exploration at once.
"""

from recrawl.science.simulate.copies import EXPLORE, Copies
from recrawl.science.simulate.explore_then_commit import explore_then_commit
from recrawl.science.simulate.runs import (
    CrawlRun,
    compare,
    crawl,
    replicate,
    slot_times,
)
from recrawl.science.simulate.worlds import World, draw_world, replay

__all__ = [
    "EXPLORE",
    "Copies",
    "CrawlRun",
    "World",
    "compare",
    "crawl",
    "draw_world",
    "explore_then_commit",
    "replay",
    "replicate",
    "slot_times",
]
