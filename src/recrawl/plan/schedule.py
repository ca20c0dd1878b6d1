"""A schedule for a bandwidth: crawl rates and due times from change rates."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from paperlib import checks
from paperlib.freshness import interval
from recrawl.log.output import check_once, check_output, table
from recrawl.plan.inputs import Rates, column, limit_arrays, read_pages
from recrawl.plan.limits import CrawlLimits, read_limits
from recrawl.plan.objectives import CODES
from recrawl.plan.problem import Problem
from recrawl.types import PathLike
from recrawl.units import rounded

__all__ = ["HEDGE", "Schedule", "schedule"]

#: The hedge, which is the share of the bandwidth at equal rates. Of those in
#: benchmarks/hedge.py that keep all limits, this one adds most to the mean freshness
#: where rates are learnt: .0014.
HEDGE = 0.25

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the bandwidth, to show its value
_MICROSECONDS = 86_400_000_000  # in a day
_LONGEST_WAIT = 365_000  # days; later times are beyond the years of a timestamp
_ROUNDING = 1e-12  # relative error of a sum of rates
# Where ranges of promises were measured: bandwidths, in paces of the log; and by the
# number of crawls of a page, which shares held (docs/recrawl/honest.md).
_PACES = 0.3, 3.0
_HELD = {3: ("73%", "83%"), 10: ("85%", "100%")}
_LOG_COLUMNS = ["n_crawls", "first_crawl", "last_crawl", "freshness_now"]
_DAY = np.timedelta64(1, "D")
_SHOWN = 3  # URLs, where pages are counted


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `schedule` found.

    Each freshness is a mean over pages, weighted by importance, in [0, 1]; None if no
    page counts.

    Parameters
    ----------
    bandwidth : float
        Crawls a day.
    spent : float
        What is spent of it.
    compared : dict of float or None
        Freshness of the pages that have intervals in the log, if changes were Poisson
        and the estimates exact: between the crawls of the log ("now"), when pages are
        crawled in turn, at equal rates within the limits ("in turn"), and of the
        schedule ("scheduled"). Rates without the column freshness_now: "now" is that
        of as many crawls at equal intervals.
    freshness : float or None
        Of the schedule and all pages that were fetched, if changes were Poisson; with
        an allowance for errors of the estimates where the rates have the column
        log_stderr.
    promise : tuple of float or None
        Low, middle and high freshness of the next fifth of the log's length, by what
        later parts of the log gave where earlier ones promised (`Problem.promise`);
        None if the rates have no `drift`.
    promise_in_turn : tuple of float or None
        The same of pages crawled in turn.
    prices : dict of float
        Of `Problem.prices`.
    budgets : list of dict
        At multiples of the bandwidth: the "bandwidth", "in turn", "scheduled" and
        "promise" as `freshness` and `promise` are, from at most 100,000 pages and
        without limits of hosts. None where the greatest intervals need more.
    pages : dict of dict
        By kind, how many "pages" there are, how many "crawls" a day these get, and
        the "first" URLs. Pages were never fetched ("unfetched"), have nothing to
        compare ("incomparable"), of which both have no expected freshness and the
        change rate of the prior; or there are no two crawls of them ("unmeasured"):
        their change rate is by ages or changes, if the log has them, else the prior's.
        Others are "gone"; get no crawls, as all other pages gain more by them
        ("uncrawled").
    n_due : int
        How many pages are due by the last crawl of all.
    importance : dict
        Of a table of importance: the counts of `weighted`; empty without one.
    added : dict of int
        Of a list of pages: how many are "new", how many are "known" from the rates, and
        how many lines are "repeated"; empty without one.
    n_crawls, pace : float
        Median number of intervals between crawls of a page in the log, and all its
        fetches a day; 0 if the rates do not tell.
    """

    bandwidth: float
    spent: float
    compared: dict
    freshness: float | None
    promise: tuple | None
    promise_in_turn: tuple | None
    prices: dict
    budgets: list
    pages: dict
    n_due: int
    importance: dict
    added: dict
    n_crawls: float
    pace: float

    @property
    def held(self) -> str:
        """How often such ranges of a promise held what came true, in words.

        Measured on 13 histories, in logs with 3 and with 10 crawls of a page.
        """
        low, high = _PACES
        fewest, most = _HELD
        if not low * self.pace <= self.bandwidth <= high * self.pace:
            return (
                f"a guess: such ranges were measured at {low:g} to {high:g} times the "
                "pace of the log only"
            )
        if self.n_crawls < fewest:
            return f"a guess: all were measured with {fewest} crawls of a page or more"
        n = most if self.n_crawls >= most else fewest
        return (
            f"this log has {rounded(self.n_crawls)} intervals between crawls of a "
            f"page; measured on other logs with {n}, {_HELD[n][0]} of such ranges held "
            "the freshness of the next fifth of the log's length, and "
            f"{_HELD[n][1]} that of the next whole length"
        )


def schedule(
    rates: PathLike,
    output: PathLike,
    bandwidth: float,
    *,
    limits: CrawlLimits | None = None,
    pages: PathLike | None = None,
    importance: PathLike | None = None,
    objective: Literal["freshness", "age", "harmonic"] = "freshness",
    force: bool = False,
) -> Schedule:
    """Schedule crawls for a bandwidth, from the output of `estimate`.

    Parameters
    ----------
    rates : path
        Parquet file with the columns url and change_rate (1/day); optional
        importance, host, gone, n_crawls, n_incomparable, first_crawl, last_crawl,
        freshness_now (at the intervals of the log), log_stderr and log_rate
        (standard deviation and mean of the logarithm of the rate).
    output : path
        Parquet file to write, one row for each page in the same order: url,
        crawl_rate (1/day), due (last_crawl + 1 / crawl_rate: in the past if
        overdue; null where it is never; the last crawl of all pages for one that
        was never fetched), freshness_now (that of the rates, or
        at the rate of the log, which is 0 without dates of crawls) and freshness
        (at crawl_rate). Pages that are gone get no crawls; the freshness of pages
        that were never fetched successfully, or have nothing to compare, is null.
    bandwidth : float
        Crawls a day.
    limits : CrawlLimits, optional
        How often pages and hosts may be crawled; by default no limits.
    pages : path, optional
        A list of URLs, one a line, that the crawler knows: those that have no row in
        the rates are added, with the rate of the prior (of their host, if it has one)
        and the importance 1.
    importance : path, optional
        A table of the importance of pages, see `weights.weighted`; pages that it
        does not name keep that of the rates.
    objective : {"freshness", "age", "harmonic"}, default "freshness"
        What is optimised, see `objectives`.
    force : bool, default False
        Overwrite an output that exists.

    Returns
    -------
    Schedule
        Freshness before and after, prices of the limits, and what more
        bandwidth would add.

    Raises
    ------
    FileExistsError
        The output exists, and `force` is false.
    FileNotFoundError
        No such file of rates or limits.
    ValueError
        An argument out of range, limits for unknown hosts or pages, limits
        that contradict each other or need more than the bandwidth; a file of
        rates that is not Parquet, lacks a column, or has no page that counts.

    Notes
    -----
    The schedule is the mean of two that keep all limits: the optimum, with the weight
    1 - `HEDGE`, and the one of equal rates.

    Examples
    --------
    >>> import pyarrow.parquet as pq, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rates, output = f"{folder}/rates.parquet", f"{folder}/plan.parquet"
    ...     columns = {"url": ["a", "b", "c"], "change_rate": [0.1, 1.0, 9.0]}
    ...     pq.write_table(pa.table(columns), rates)
    ...     found = schedule(rates, output, 2.0)
    ...     pq.read_table(output)["crawl_rate"].to_numpy().round(3)
    array([0.573, 1.26 , 0.167])
    """
    bandwidth = checks.number("bandwidth", bandwidth, above=True)
    limits = limits or CrawlLimits()
    checks.one_of("objective", objective, CODES)
    check_output(output, force, [rates, limits.exceptions, pages, importance])
    exceptions = []
    if limits.exceptions is not None:
        exceptions = read_limits(limits.exceptions)
    needed = []
    if limits.per_host or any(each.is_host for each in exceptions):
        needed.append("host")
    file = Rates(rates, needed)
    check_once(rates)
    added = file.add(pages) if pages is not None else {}
    given = read_pages(file, needed, importance)
    problem = Problem(
        **given.columns,
        objective=objective,
        hedge=HEDGE,
        limits=limit_arrays(file, given, exceptions, limits),
        promised=~given.unknown,
    )
    _check_possible(problem, given.hosts, bandwidth)
    plan = problem.solve(bandwidth)
    turn = problem.in_turn(bandwidth)
    fresh = problem.page_freshness(plan)
    drift = file.metadata.get("drift"), file.metadata.get("usual")
    with table(output, force) as out:
        now, kinds, n_due = _write(out, file, given, problem, plan, fresh)
        found = Schedule(
            bandwidth=bandwidth,
            spent=plan.crawl_rate.sum().item(),
            compared=_compared(problem, now, {"in turn": turn, "scheduled": plan}),
            freshness=problem.mean(fresh),
            promise=problem.promise(plan, *drift),
            promise_in_turn=problem.promise(turn, *drift),
            prices=problem.prices(bandwidth, plan),
            budgets=_budgets(problem, bandwidth, drift),
            pages=kinds,
            n_due=n_due,
            importance=given.counts,
            added=added,
            n_crawls=given.n_crawls,
            pace=file.metadata.get("pace") or 0.0,
        )
        out.describe(asdict(found))
    return found


# ---- arguments


def _check_possible(problem, hosts, bandwidth):
    """Raise a ValueError if the greatest intervals need more than there is."""
    least = problem.least_rate
    _check_fits("the bandwidth", least.sum(), bandwidth)
    if "host" in problem.limits:
        limit = problem.limits["host_limit"]
        of_hosts = np.bincount(problem.limits["host"], least, limit.size)
        worst = np.argmax(of_hosts - limit)
        name = f"the limit of host {hosts.dictionary[worst.item()].as_py()!r}"
        _check_fits(name, of_hosts[worst], limit[worst])


def _check_fits(name, needed, allowed):
    if needed * (1 - _ROUNDING) > allowed:
        raise ValueError(
            f"the greatest intervals must fit {name}, {rounded(allowed)} crawls a "
            f"day: they need {rounded(needed)}, {rounded(needed - allowed)} too many"
        )


# ---- what a schedule is expected to give


def _compared(problem, now, plans):
    """Freshness of pages with intervals in the log, if the estimates were exact."""
    exact = replace(problem, log_stderr=None)
    found = {"now": problem.mean(now)}
    for name, plan in plans.items():
        fresh = exact.page_freshness(plan)
        found[name] = problem.mean(np.where(np.isnan(now), np.nan, fresh))
    return found


def _budgets(problem, bandwidth, drift):
    """What multiples of the bandwidth give, by every n-th page."""
    few, share = problem.sample()
    least = few.least_rate.sum()
    budgets = []
    for factor in _FACTORS:
        crawls = factor * bandwidth * share
        found = dict.fromkeys(["in turn", "scheduled", "promise"])
        if least <= crawls:
            plan, turn = few.solve(crawls), few.in_turn(crawls)
            found["in turn"] = few.mean(few.page_freshness(turn))
            found["scheduled"] = few.mean(few.page_freshness(plan))
            found["promise"] = few.promise(plan, *drift)
        budgets.append({"bandwidth": factor * bandwidth} | found)
    return budgets


# ---- writing


def _write(out, file, pages, problem, plan, fresh):
    """Write the schedule batch by batch.

    URLs and crawls are read from the file once more, to hold only a batch. Returns the
    freshness of each page between the crawls of the log, NaN if it has none; the pages
    of each kind; and how many are due by the last crawl of all.
    """
    rate = plan.crawl_rate
    masks = pages.kinds | {"uncrawled": (rate == 0) & ~pages.kinds["gone"]}
    kinds = {kind: _counted(mask, rate) for kind, mask in masks.items()}
    now, start = np.empty(rate.size), 0
    n_due = 0
    for log in file.batches(["url", *_LOG_COLUMNS]):
        here = slice(start, start + log.num_rows)
        start = here.stop
        now[here] = _freshness_now(log, problem.change_rate[here])
        columns = {"url": log["url"], "crawl_rate": rate[here]}
        due = _due(column(log, "last_crawl"), pages.end, plan, here)
        n_due += (due <= pages.end).sum().item()
        columns["due"] = pa.array(due, pa.timestamp("us", "UTC"))  # null where NaT
        for name, of in (("freshness_now", now), ("freshness", fresh)):
            mask = pages.unknown[here] | np.isnan(of[here])
            columns[name] = pa.array(of[here], mask=mask)
        out.write(pa.table(columns))
        for kind, mask in masks.items():
            first = kinds[kind]["first"]
            rows = np.flatnonzero(mask[here])[: _SHOWN - len(first)]
            first += log["url"].take(pa.array(rows)).to_pylist()
    return now, kinds, n_due


def _counted(mask, crawl_rate):
    """How many pages there are of a kind, and their crawls a day."""
    crawls = crawl_rate[mask].sum().item()
    return {"pages": int(mask.sum()), "crawls": crawls, "first": []}


def _freshness_now(log, change_rate):
    """Freshness of a batch of pages between their crawls in the log."""
    if "freshness_now" in log.column_names:
        return column(log, "freshness_now")
    n, first, last = (column(log, name) for name in _LOG_COLUMNS[:3])
    # 0 without dates of crawls: then a page counts as not crawled so far
    days = np.nan_to_num((last - first) / _DAY)
    rate = np.divide(n, days, out=np.zeros(days.size), where=days > 0)
    return interval(change_rate, rate)


@np.errstate(divide="ignore")  # pages without crawls
def _due(last, end, plan, here):
    """When a batch of pages is due, NaT where that is never or not known."""
    rate = plan.crawl_rate[here]
    wait = 1 / rate
    wait = np.where((rate > 0) & (wait < _LONGEST_WAIT), wait, np.nan)
    due = last + (wait * _MICROSECONDS).astype("m8[us]")
    return np.where(np.isnat(last) & (rate > 0), end, due)  # at once: never fetched
