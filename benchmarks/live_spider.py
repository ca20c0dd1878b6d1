"""The spider of docs/recrawl in the accelerated time of benchmarks/live.py."""

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "recrawl"))
import scrapy_spider


class LiveSpider(scrapy_spider.PlanSpider):
    """It begins when the file `go` names a time, and ends by a clock of its own."""

    own = scrapy_spider.PlanSpider.own | {"folder", "begin", "end", "speed"}
    custom_settings = scrapy_spider.PlanSpider.custom_settings | {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
    }

    def now(self):
        since = (time.time() - self.wall) * float(self.speed)
        return min(float(self.begin) + max(since, 0.0), float(self.end))

    def period(self):
        return super().period() / float(self.speed)

    async def start(self):
        folder = Path(self.folder)
        (folder / "ready").touch()
        while not (folder / "go").exists():
            await asyncio.sleep(0.02)
        self.wall = float((folder / "go").read_text())
        await asyncio.sleep(max(self.wall - time.time(), 0.0))
        async for request in super().start():
            if self.now() >= float(self.end):
                return
            yield request
