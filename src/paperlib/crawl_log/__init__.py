"""Your own crawl log: change rates with intervals, schedules for a budget.

`estimate` reads a log of any size and writes the change rate of each page,
`schedule` spends a bandwidth on them, `export` writes the schedule for a crawler,
`compare` sets what the log did beside other rules, `backtest` shows how well
rates are known. Times are in days.
"""

try:
    import duckdb  # noqa: F401
    import pyarrow  # noqa: F401
    import tqdm  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"paperlib.crawl_log needs the package {error.name}: "
        "pip install 'paperlib-crawl[log]'"
    ) from error

from paperlib.crawl_log.backtesting import Backtest, backtest
from paperlib.crawl_log.calibrating import Calibration
from paperlib.crawl_log.choosing import ESTIMATORS, log_loss
from paperlib.crawl_log.comparing import Comparison, compare
from paperlib.crawl_log.converting import convert
from paperlib.crawl_log.estimating import Estimates, estimate
from paperlib.crawl_log.formats.source import Source
from paperlib.crawl_log.formats.tables import ColumnsWarning
from paperlib.crawl_log.reading import read_crawl_log
from paperlib.crawl_log.reporting import Report, report
from paperlib.crawl_log.scheduling import Schedule, schedule
from paperlib.crawl_log.tally import BadRowsWarning
from paperlib.crawl_log.targets import TARGETS, ExportWarning, export
from paperlib.processes import CrawlLog

__all__ = [
    "ESTIMATORS",
    "TARGETS",
    "Backtest",
    "BadRowsWarning",
    "Calibration",
    "ColumnsWarning",
    "Comparison",
    "CrawlLog",
    "Estimates",
    "ExportWarning",
    "Report",
    "Schedule",
    "Source",
    "backtest",
    "compare",
    "convert",
    "estimate",
    "export",
    "log_loss",
    "read_crawl_log",
    "report",
    "schedule",
]


def __dir__():
    return __all__  # completion offers the public names alone
