"""Your own crawl log: change rates with intervals, a schedule for a budget, and what the crawler loses today. Times in days."""

from paperlib.crawl_log.backtesting import Backtest, backtest
from paperlib.crawl_log.comparing import compare
from paperlib.crawl_log.estimating import ESTIMATORS, Estimates, estimate, log_loss
from paperlib.crawl_log.reading import BadRowsWarning, CrawlLog, read_crawl_log
from paperlib.crawl_log.scheduling import Schedule, schedule

__all__ = [
    "ESTIMATORS",
    "Backtest",
    "BadRowsWarning",
    "CrawlLog",
    "Estimates",
    "Schedule",
    "backtest",
    "compare",
    "estimate",
    "log_loss",
    "read_crawl_log",
    "schedule",
]
