"""The spider of docs/recrawl in the accelerated time of benchmarks/live.py."""

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "recrawl"))
import scrapy_spider


class LiveSpider(scrapy_spider.PlanSpider):
    """It begins at a wall time, has a clock of its own, and ends by that."""

    custom_settings = scrapy_spider.PlanSpider.custom_settings | {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
    }

    def now(self):
        since = (time.time() - float(self.wall)) * float(self.speed)
        return min(float(self.begin) + max(since, 0.0), float(self.end))

    def period(self):
        return super().period() / float(self.speed)

    async def start(self):
        await asyncio.sleep(max(float(self.wall) - time.time(), 0.0))
        async for request in super().start():
            if self.now() >= float(self.end):
                return
            yield request
