"""A schedule for a bandwidth: crawl rates and due times from change rates."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paperlib import checks
from paperlib.errors import ArgumentError
from paperlib.freshness import interval
from recrawl.log.output import check_once, check_output, table
from recrawl.plan.inputs import Rates, column, limit_arrays, read_pages
from recrawl.plan.limits import read_limits
from recrawl.plan.objectives import CODES
from recrawl.plan.problem import Problem
from recrawl.types import PathLike
from recrawl.units import as_text, rounded

__all__ = ["HEDGE", "Schedule", "schedule"]

#: The hedge, which is the share of the bandwidth at equal rates. Of those in
#: benchmarks/hedge.py that keep all limits, this one adds most to the mean freshness
#: where rates are learnt: .0014.
HEDGE = 0.25

_POLICIES = "interval", "thresholds"
_SIGNALS = ["recall", "false_rate"]
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the bandwidth, to show its value
_DAY = np.timedelta64(1, "D")
_MICROSECONDS = 86_400_000_000  # in a day
_LONGEST_WAIT = 365_000  # days; later times are beyond the years of a timestamp
_ROUNDING = 1e-12  # relative error of a sum of rates
_LOG_COLUMNS = ["n_crawls", "first_crawl", "last_crawl", "freshness_now"]
_SHOWN = 3  # URLs, where pages are counted


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `schedule` found.

    Parameters
    ----------
    bandwidth : float
        Crawls a day.
    spent : float
        What is spent of it.
    freshness_now : float
        Expected freshness between the crawls of the log, in [0, 1], of the pages
        that have intervals in it; NaN if none has. Without the column
        freshness_now, that of as many crawls at equal intervals.
    freshness_compared : float
        That of the schedule for the same pages, if the estimates were exact.
    freshness_if_exact : float
        Expected freshness of the schedule if the estimates were exact.
    freshness : float
        The same, with an allowance for errors of the estimates where the rates have
        the column log_stderr, and the policy is "interval".
    promise : tuple of float or None
        Low, middle and high freshness of the next fifth of the log's length, by what
        later parts of the log gave where earlier ones promised (`Problem.promise`);
        None if the rates have no `drift`, and for thresholds.
    unseen, unseen_in_turn : float or None
        Share of the changes that no crawl sees, as others come before it, with the
        schedule, and with equal intervals within the limits; None for thresholds.
    loss : float
        Mean cost of the objective: 1 - freshness, days ("age") or the harmonic cost.
    one_more, one_fewer : float or None
        By how much one more crawl a day lowers the loss, and one less raises
        it; None where the greatest intervals need all crawls.
    prices : dict of dict
        By kind of limit in force ("greatest interval", "least interval",
        "hosts"): its "cost", by which the loss would be less without
        it, and the "share" of pages (or hosts) that it holds.
    budgets : ndarray, shape (n, 3)
        Crawls a day, at multiples of the bandwidth, expected freshness, and the
        middle of the promise, from a sample of pages, without limits of hosts. NaN
        where the greatest intervals need more, or without a promise.
    pages : dict of dict
        By kind, how many "pages" there are, how many "crawls" a day these get, and
        the "first" URLs. Pages were never fetched ("unfetched"), have nothing to
        compare ("incomparable"), of which both have no expected freshness and the
        change rate of the prior; or there are no two crawls of them ("unmeasured"):
        their change rate is by ages or changes, if the log has them, else the prior's.
        Others are "gone"; get no crawls, as all other pages gain more by them
        ("uncrawled"); or are on hosts that `estimate` flagged ("suspect"), with the
        names of hosts in place of URLs.
    tables : dict of dict
        With a table of "importance": how many pages it names ("named"), how many
        it does not ("others"), and how many of its rows are "unknown" pages, the
        "first" of them.

    Notes
    -----
    Each freshness is a mean over pages, weighted by importance:

    ===================  =======================  ======================
    field                pages                    assumes
    ===================  =======================  ======================
    freshness_now        with intervals           Poisson, exact rates
    freshness_compared   with intervals           Poisson, exact rates
    freshness_if_exact   fetched                  Poisson, exact rates
    freshness            fetched                  Poisson
    promise              fetched                  that rates drift as they did
    ===================  =======================  ======================
    """

    bandwidth: float
    spent: float
    freshness_now: float
    freshness_compared: float
    freshness_if_exact: float
    freshness: float
    promise: tuple | None
    unseen: float | None
    unseen_in_turn: float | None
    loss: float
    one_more: float
    one_fewer: float | None
    prices: dict
    budgets: np.ndarray
    pages: dict
    tables: dict


def schedule(
    rates: PathLike,
    output: PathLike,
    bandwidth: float,
    *,
    policy: Literal["interval", "thresholds"] = "interval",
    objective: Literal["freshness", "age", "harmonic"] = "freshness",
    least_interval: float | None = None,
    greatest_interval: float | None = None,
    limits: PathLike | None = None,
    per_host: float | Mapping[str, float] | None = None,
    importance: PathLike | None = None,
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
        overdue; null where it is never), freshness_now (that of the rates, or
        at the rate of the log, which is 0 without dates of crawls) and freshness
        (at crawl_rate). Pages that are gone get no crawls; the freshness of pages
        that were never fetched successfully, or have nothing to compare, is null.
    bandwidth : float
        Crawls a day.
    policy : {"interval", "thresholds"}, default "interval"
        Crawls at equal intervals (`allocation.optimal`), or
        `paperlib.allocation.optimal_thresholds`. The latter needs the columns recall
        and false_rate (1/day) and writes the columns threshold and signal_days
        (days): a page is to be crawled when the time since its last crawl plus
        signal_days for each signal since then reaches the threshold; due is when
        the time alone does. It has no limits.
    objective : {"freshness", "age", "harmonic"}, default "freshness"
        What is optimised, see `objectives`.
    least_interval, greatest_interval : float, optional
        Days between crawls of a page, at least and at most. Pages that are
        gone have none.
    limits : path, optional
        A CSV file of other limits by host or URL, see `limits.read_limits`.
    per_host : float or mapping from str to float, optional
        Crawls a day that each host allows, or that those named allow; the key
        None is for all others.
    importance : path, optional
        A table of the importance of pages, see `weights.weighted`; pages that it
        does not name keep that of the rates.
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
    1 - `HEDGE`, and the one of equal rates. Thresholds are the optimum alone.

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
    intervals = least_interval, greatest_interval
    _check_arguments(policy, objective, per_host, intervals, limits)
    check_output(output, force, [rates, limits, importance])
    rows = [] if limits is None else read_limits(limits)
    needed = list(_SIGNALS) if policy == "thresholds" else []
    tables = {} if importance is None else {"importance": importance}
    if per_host is not None or any(limit.is_host for limit in rows):
        needed.append("host")
    file = Rates(rates, needed)
    pages = read_pages(file, needed, tables)
    limit_of = limit_arrays(file, pages, rows, intervals, per_host)
    problem = _problem(pages, limit_of, policy, objective)
    _check_possible(problem, pages.hosts, bandwidth)
    with ThreadPoolExecutor(1) as thread:  # the solution leaves a core idle
        once = thread.submit(check_once, rates)
        plan = problem.solve(bandwidth)
        once.result()
    fresh, exact = _freshness(problem, plan)
    expected = problem.mean(fresh)
    prices, one_more, one_fewer = problem.prices(bandwidth, plan)
    drift = unseen = in_turn = None
    if policy == "interval":
        drift = file.metadata.get("drift")
        unseen = problem.unseen(plan)
        in_turn = problem.unseen(problem.in_turn(bandwidth))
    with table(output, force) as out:
        now, kinds = _write(out, file, pages, problem, plan, fresh)
        found = Schedule(
            bandwidth=bandwidth,
            spent=plan.crawl_rate.sum().item(),
            freshness_now=problem.mean(now),
            freshness_compared=problem.mean(np.where(np.isnan(now), np.nan, exact)),
            freshness_if_exact=problem.mean(exact),
            freshness=expected,
            promise=problem.promise(plan, drift) if drift else None,
            unseen=unseen,
            unseen_in_turn=in_turn,
            loss=1 - expected if objective == "freshness" else problem.loss(plan),
            one_more=one_more,
            one_fewer=one_fewer,
            prices=prices,
            budgets=_budgets(problem, bandwidth, drift),
            pages=kinds,
            tables=pages.counts,
        )
        as_json = asdict(found) | {"budgets": found.budgets.tolist(), "policy": policy}
        out.describe(_finite(as_json))
    return found


def _finite(value):
    """The same, with None in place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


# ---- arguments


def _check_arguments(policy, objective, per_host, intervals, limits):
    """Raise a ValueError for arguments out of range, or that contradict each other."""
    checks.one_of("policy", policy, _POLICIES)
    checks.one_of("objective", objective, CODES)
    least, greatest = intervals
    given = {"least_interval": least, "greatest_interval": greatest}
    for name, value in given.items():
        if value is not None:
            checks.number(name, value, above=True)
    if None not in (least, greatest) and least > greatest:
        rule = f"must be at most greatest_interval, {greatest:g} days, got {least:g}"
        raise ArgumentError("least_interval", rule)
    each = per_host.values() if isinstance(per_host, Mapping) else [per_host]
    if not all(limit is None or limit >= 0 for limit in each):
        raise ArgumentError("per_host", f"must be non-negative, got {per_host!r}")
    given |= {"per_host": per_host, "limits": limits}
    given |= {"objective": None if objective == "freshness" else objective}
    for name, value in given.items():
        if policy == "thresholds" and value is not None:
            rule = (
                "must be None for policy 'thresholds', which maximises freshness "
                f"without limits, got {value!r}"
            )
            raise ArgumentError(name, rule)


def _check_possible(problem, hosts, bandwidth):
    """Raise a ValueError if the greatest intervals need more than there is."""
    least = problem.least_spent()
    needed, allowed = np.array([least.sum()]), np.array([bandwidth])
    if problem.host is not None:
        of_hosts = np.bincount(problem.host, least, problem.host_limit.size)
        needed = np.append(needed, of_hosts)
        allowed = np.append(allowed, problem.host_limit)
    above = np.flatnonzero(needed * (1 - _ROUNDING) > allowed)
    if not above.size:
        return
    worst = above[np.argmax(needed[above] - allowed[above])]
    name, here = "the bandwidth", problem.min_rate > 0
    if worst > 0:  # all others are limits of hosts
        name = f"the limit of host {hosts.dictionary[worst - 1].as_py()!r}"
        here &= problem.host == worst - 1
    rates = problem.min_rate[here]
    shortest, longest = as_text(1 / rates.max()), as_text(1 / rates.min())
    intervals, need = f"interval of {shortest}", "it needs"
    if shortest != longest:
        intervals, need = f"intervals, {shortest} to {longest},", "they need"
    most, least, excess = map(
        rounded, (allowed[worst], needed[worst], needed[worst] - allowed[worst])
    )
    others = f" (and {above.size - 1} other limits are exceeded)"
    raise ValueError(
        f"the greatest {intervals} must fit {name}, {most} crawls a day: "
        f"{need} {least}, {excess} too many" + (others if above.size > 1 else "")
    )


# ---- planning


def _problem(pages, limits, policy, objective):
    """The `Problem` of the pages under limits, given as arrays."""
    columns, signals = pages.columns, None
    if policy == "thresholds":
        signals = tuple(columns[name] for name in _SIGNALS)
    return Problem(
        columns["change_rate"],
        columns["importance"],
        objective=objective,
        hedge=HEDGE if policy == "interval" else 0.0,
        log_stderr=columns.get("log_stderr"),
        log_rate=columns.get("log_rate"),
        signals=signals,
        promised=~pages.unknown if pages.unknown.any() else None,
        **limits,
    )


def _freshness(problem, plan):
    """Expected freshness of each page, and that if the estimates were exact."""
    fresh = problem.page_freshness(plan)
    if problem.log_stderr is None:
        return fresh, fresh
    return fresh, replace(problem, log_stderr=None).page_freshness(plan)


def _budgets(problem, bandwidth, drift):
    """Freshness at multiples of the bandwidth, and promised, of every n-th page."""
    few, share = problem.sample()
    least = few.least_spent().sum()
    budgets = np.full((len(_FACTORS), 3), np.nan)
    budgets[:, 0] = np.multiply(_FACTORS, bandwidth)
    for row in budgets:
        if least <= row[0] * share:
            plan = few.solve(row[0] * share)
            row[1] = few.mean(few.page_freshness(plan))
            row[2] = few.promise(plan, drift)[1] if drift else np.nan
    return budgets


# ---- writing


def _write(out, file, pages, problem, plan, fresh):
    """Write the schedule batch by batch.

    URLs and crawls are read from the file once more, to hold only a batch. A thread
    writes one batch while the next one is computed. Returns the freshness of each page
    between the crawls of the log, NaN if it has none, and the pages of each kind.
    """
    rate, gone, unknown = plan.crawl_rate, pages.kinds["gone"], pages.unknown
    masks = pages.kinds | {"uncrawled": (rate == 0) & ~gone}
    kinds = {kind: _counted(mask, rate) for kind, mask in masks.items()}
    flagged = file.metadata.get("suspects", ()) if "host" in file.names else ()
    flagged = list(dict.fromkeys(each["host"] for each in flagged))
    suspect = np.zeros(rate.size, dtype=bool)
    now, start, writing = np.empty(rate.size), 0, None
    names = ["url", *_LOG_COLUMNS, *(["host"] if flagged else [])]
    with ThreadPoolExecutor(1) as thread:
        for log in file.batches(names):
            here = slice(start, start := start + log.num_rows)
            columns, now[here] = _outcome(problem, plan, log, here)
            for name, of in (("freshness_now", now), ("freshness", fresh)):
                mask = unknown[here] | np.isnan(of[here])
                columns[name] = pa.array(of[here], mask=mask)
            if flagged:
                found = pc.is_in(log["host"], pa.array(flagged))
                suspect[here] = found.to_numpy(False)
            for kind, mask in masks.items():
                more = _SHOWN - len(kinds[kind]["first"])
                rows = pa.array(np.flatnonzero(mask[here])[:more])
                kinds[kind]["first"] += log["url"].take(rows).to_pylist()
            if writing is not None:
                writing.result()  # two tables in memory at most
            writing = thread.submit(out.write, pa.table({"url": log["url"]} | columns))
        writing.result()
    kinds["suspect"] = _counted(suspect, rate) | {"first": flagged[:_SHOWN]}
    return now, kinds


def _counted(mask, crawl_rate):
    """How many pages there are of a kind, and their crawls a day."""
    crawls = crawl_rate[mask].sum().item()
    return {"pages": int(mask.sum()), "crawls": crawls, "first": []}


@np.errstate(divide="ignore", invalid="ignore")  # pages without crawls
def _outcome(problem, plan, log, here):
    """Columns of a schedule, of a batch of pages, and their freshness in the log."""
    change_rate, crawl_rate = problem.change_rate[here], plan.crawl_rate[here]
    log = pa.table(log)
    n, first, last, now = (column(log, name) for name in _LOG_COLUMNS)
    wait = 1 / crawl_rate if plan.threshold is None else plan.threshold[here]
    if "freshness_now" not in log.column_names:
        # 0 without dates of crawls: then a page counts as not crawled so far
        days = np.nan_to_num((last - first) / _DAY)
        now = interval(change_rate, np.where(days > 0, n / days, 0.0))
    wait = np.where((crawl_rate > 0) & (wait < _LONGEST_WAIT), wait, np.nan)
    due = last + (wait * _MICROSECONDS).astype("m8[us]")  # NaT where NaN
    columns = {
        "crawl_rate": crawl_rate,
        "due": pa.array(due, pa.timestamp("us", "UTC")),  # null where NaT
    }
    if plan.threshold is not None:
        columns["threshold"] = plan.threshold[here]
        columns["signal_days"] = problem.signalled(here).beta
    return columns, now
