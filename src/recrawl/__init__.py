"""Your own crawl: change rates with intervals out of a log, schedules for a budget.

`estimate` reads a log of any size and writes the change rate of each page,
`schedule` spends a bandwidth on them, `export` writes the schedule for a crawler,
`compare` sets what the log did beside other rules, `backtest` shows how well
rates are known. Times are in days. `recrawl.science` holds what these rest on,
`recrawl.scheduler` picks one page after the other.
"""

import importlib

from paperlib import cache

__version__ = "0.1.0"

# Modules are imported when a name of theirs is first used: the science needs none
# of the packages for logs, and the command starts without all of them.
_HOMES = {
    "TARGETS": "targets.crawlers",
    "Backtest": "backtesting",
    "BadRowsWarning": "tally",
    "ColumnsWarning": "formats.tables",
    "Comparison": "comparing",
    "CrawlLog": "science.processes",
    "Estimates": "estimating",
    "ExportWarning": "targets.exporting",
    "Report": "reporting",
    "Schedule": "scheduling",
    "Source": "formats.source",
    "backtest": "backtesting",
    "compare": "comparing",
    "convert": "converting",
    "estimate": "estimating",
    "export": "targets.exporting",
    "log_loss": "choosing",
    "read_crawl_log": "reading",
    "report": "reporting",
    "schedule": "scheduling",
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
            f"recrawl.{name} needs the package {error.name}: "
            "pip install 'paperlib-crawl[log]'",
            name=error.name,
        ) from None
