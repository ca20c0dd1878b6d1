"""Your own crawl: change rates with intervals out of a log, schedules for a budget.

`estimate` reads a log of any size and writes the change rate of each page,
`schedule` spends a bandwidth on them, `export` writes the schedule for a crawler,
`backtest` shows how well rates are known. Times are in days. `recrawl.live.scheduler`
picks one page after the other.

Four rooms: `log` reads, `rates` estimates, `plan` spends a bandwidth, and `live` picks
the next page. Imports go from `plan` to `rates` to `log`.
"""

import importlib

from paperlib import __version__ as __version__
from paperlib import cache

# Modules are imported when a name of theirs is first used: the science needs none
# of the packages for logs, and the command starts without all of them.
_HOMES = {
    "TARGETS": "plan.targets.crawlers",
    "Backtest": "rates.backtest",
    "BadRowsWarning": "log.tally",
    "ColumnsWarning": "log.formats.tables",
    "CrawlLimits": "plan.limits",
    "Estimates": "rates.estimate",
    "ExportWarning": "plan.targets.exporting",
    "Report": "report_page",
    "Schedule": "plan.schedule",
    "Source": "log.formats.source",
    "backtest": "rates.backtest",
    "convert": "log.convert",
    "estimate": "rates.estimate",
    "export": "plan.targets.exporting",
    "log_loss": "rates.host_prior",
    "report": "report_page",
    "schedule": "plan.schedule",
}

__all__ = list(_HOMES)

cache.ensure()  # before numba compiles


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"recrawl.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"recrawl needs the package {error.name} to read and write files: "
            "pip install '.[log]' in a clone",
            name=error.name,
        ) from None
