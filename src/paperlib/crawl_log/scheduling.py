"""A schedule for a bandwidth: crawl rates and due times from change rates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paperlib import checks, freshness
from paperlib.crawl_log.calibrating import Calibration
from paperlib.crawl_log.database import database, pattern
from paperlib.crawl_log.limits import page_limits, read_limits
from paperlib.crawl_log.output import check_output, check_pages, table
from paperlib.crawl_log.planning import OBJECTIVES, POLICIES, Problem
from paperlib.crawl_log.weights import weighted
from paperlib.types import PathLike

__all__ = ["HEDGE", "Schedule", "schedule"]

#: Share of the bandwidth at equal rates by default: the best of those that
#: benchmarks/hedge.py compares.
HEDGE = 0.25

PAGES_PER_BATCH = 1_000_000  # written at a time: some 200 MB

_MEMORY = "1GiB"  # to find URLs that stand twice
_SIGNALS = ("recall", "false_rate")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the bandwidth, to show its value
_DAY = np.timedelta64(1, "D")
_MICROSECONDS = 86_400_000_000  # in a day
_FOREVER = 365_000  # days; later times are beyond the years of a timestamp
_ENOUGH = 1 - 1e-12  # of what is needed: rates sum to no better than this
_NOW = ("n_crawls", "first_crawl", "last_crawl", "freshness_now")
_NAMED = 3  # URLs, where pages are counted
_NONE = {"pages": 0, "crawls": 0.0, "first": []}
_DEFAULTS = {
    "importance": 1.0,
    "gone": False,
    "n_crawls": 0.0,
    "first_crawl": np.datetime64("NaT", "us"),
    "last_crawl": np.datetime64("NaT", "us"),
    "freshness_now": np.nan,
}


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `schedule` found.

    All freshness but `calibrated` holds if changes are Poisson, and is that of
    the pages that were fetched.

    Parameters
    ----------
    bandwidth : float
        Crawls a day, or what they may cost.
    freshness_now : float
        Expected freshness between the crawls of the log, in [0, 1], of the pages
        of which it tells; NaN if it tells of none. Without the column
        freshness_now, that of as many crawls at equal intervals.
    freshness : float
        Expected freshness of the schedule, in [0, 1], with an allowance for
        errors of the estimates where the rates tell them.
    multiplier : float
        What a little more bandwidth adds to the freshness of the optimum (or
        takes from the mean cost of another objective), by crawl a day.
    worth : ndarray, shape (n, 2)
        Crawls a day, at multiples of the bandwidth, and expected freshness,
        from a sample of pages, without limits of hosts. NaN where the greatest
        intervals need more.
    spent : float
        What is spent of the bandwidth.
    freshness_if_exact : float
        Expected freshness if the estimates of the rates were exact.
    calibrated : float, optional
        Freshness by the `Calibration` of the log; None if the rates have none,
        or crawls are not at equal intervals.
    objective : str
        The objective.
    loss : float
        Its mean cost: 1 - freshness, changes unseen ("delay"), days ("age") or
        the harmonic cost.
    hedge : float
        Share of the bandwidth at equal rates.
    prices : dict of dict
        By kind of limit in force ("greatest interval", "least interval",
        "hosts", "hedge"): its "cost", by which the loss would be less without
        it, and the "share" of pages (or hosts) that it holds.
    one_more, one_fewer : float, optional
        By how much one more crawl a day lowers the loss, and one less raises
        it; None where the greatest intervals need all crawls.
    unfetched, unmeasured : dict
        Pages that were never fetched well, which are promised no freshness;
        and those that were fetched but have no interval, whose change rate is
        that of the prior: "pages", how many, "crawls", how many these get a day,
        and "first", some URLs.
    gone, uncrawled : dict
        In the same form, pages that are gone; and others that get no crawls, as all
        other pages gain more by a crawl.
    freshness_compared : float
        As `freshness_if_exact`, but of the pages of `freshness_now` alone: to be
        compared with it.
    weights : dict, optional
        Of a table of importance: how many pages it names ("named") and how many
        are "others", and how many of its rows are "unknown" pages.

    Examples
    --------
    >>> Schedule(10.0, 0.5, 0.6, 0.01, np.array([[10.0, 0.6]])).freshness
    0.6
    """

    bandwidth: float
    freshness_now: float
    freshness: float
    multiplier: float
    worth: np.ndarray
    spent: float = np.nan
    freshness_if_exact: float = np.nan
    calibrated: float | None = None
    objective: str = "freshness"
    loss: float = np.nan
    hedge: float = 0.0
    prices: dict = field(default_factory=dict)
    one_more: float = np.nan
    one_fewer: float | None = None
    unfetched: dict = field(default_factory=lambda: dict(_NONE))
    unmeasured: dict = field(default_factory=lambda: dict(_NONE))
    gone: dict = field(default_factory=lambda: dict(_NONE))
    uncrawled: dict = field(default_factory=lambda: dict(_NONE))
    freshness_compared: float = np.nan
    weights: dict | None = None


def schedule(
    rates: PathLike,
    output: PathLike,
    bandwidth: float,
    *,
    policy: Literal["interval", "poisson", "thresholds"] = "interval",
    objective: Literal["freshness", "delay", "age", "harmonic"] = "freshness",
    least_interval: float | None = None,
    greatest_interval: float | None = None,
    limits: PathLike | None = None,
    per_host: float | Mapping[str, float] | None = None,
    importance: PathLike | None = None,
    cost: str | None = None,
    hedge: float | None = None,
    force: bool = False,
) -> Schedule:
    """Schedule crawls for a bandwidth, from the output of `estimate`.

    Parameters
    ----------
    rates : path
        Parquet file with the columns url and change_rate (1/day); optional
        importance, host, gone, n_crawls, first_crawl, last_crawl,
        freshness_now (at the intervals of the log), log_stderr and log_rate
        (standard deviation and mean of the logarithm of the rate).
    output : path
        Parquet file to write, one row for each page in the same order: url,
        crawl_rate (1/day), due (last_crawl + 1 / crawl_rate: in the past if
        overdue; null where it is never), freshness_now (that of the rates, or
        at the rate of the log) and freshness (at crawl_rate). Pages that are
        gone get no crawls; the freshness of pages that were never fetched well
        is null.
    bandwidth : float
        Crawls a day, or what they may cost a day.
    policy : {"interval", "poisson", "thresholds"}
        Crawls at equal intervals, at Poisson times (`allocation.optimal`), or
        `allocation.optimal_thresholds`. The last one needs the columns recall
        and false_rate (1/day) and writes a column threshold (days); then due
        is when the time alone makes the page due. It has no limits.
    objective : {"freshness", "delay", "age", "harmonic"}
        What is optimised, see `objectives`.
    least_interval, greatest_interval : float, optional
        Days between crawls of a page, at least and at most. Pages that are
        gone have none.
    limits : path, optional
        A CSV file of other limits by host or URL, see `limits.read_limits`.
    per_host : float or mapping from str to float, optional
        Crawls a day (or what they may cost) that each host allows, or that
        those named allow; the key None is for all others.
    importance : path, optional
        A table of the importance of pages, see `weights.weighted`; pages that it
        does not name keep that of the rates.
    cost : str, optional
        Column of the rates with the cost of a crawl; by default 1.
    hedge : float, optional
        Share of the bandwidth at equal rates for all pages of importance,
        where limits allow it; the rest is optimal. By default `HEDGE`, and 0
        for thresholds.
    force : bool
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
    A hedged schedule is the mean of two that keep all limits, the optimum and
    the one of equal rates, with weights 1 - hedge and hedge.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rates, output = f"{folder}/rates.parquet", f"{folder}/plan.parquet"
    ...     columns = {"url": ["a", "b", "c"], "change_rate": [0.1, 1.0, 9.0]}
    ...     pq.write_table(pa.table(columns), rates)
    ...     found = schedule(rates, output, 2.0, hedge=0.0)
    ...     pq.read_table(output)["crawl_rate"].to_numpy().round(3)
    array([0.542, 1.458, 0.   ])
    >>> round(found.freshness, 3), round(found.one_fewer, 3)
    (0.546, 0.085)
    """
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    intervals = _check_intervals(least_interval, greatest_interval)
    hedge = _check_hedge(hedge, policy)
    _check_policy(policy, objective, per_host, intervals, limits, cost, hedge)
    check_output(output, force, [rates, limits, importance])
    rows = [] if limits is None else read_limits(limits)
    by_host = per_host is not None or any(limit.is_host for limit in rows)
    needed = [] if cost is None else [cost]
    needed += _SIGNALS if policy == "thresholds" else ()
    needed += ["host"] if by_host else []
    file = _open(rates, ("url", "change_rate", *needed))
    check_pages(rates)
    _check_once(rates)
    columns = _read(file, needed, importance)
    columns |= _limits(file, columns, rows, intervals, per_host)
    problem = _problem(columns, policy, objective, cost, hedge)
    _check_possible(problem, columns, bandwidth)
    plan = problem.solve(bandwidth)
    prices, one_more, one_fewer = problem.prices(bandwidth, plan)
    unfetched, unmeasured = columns["unfetched"], columns["unmeasured"]
    uncrawled = (plan.crawl_rate == 0) & ~columns["gone"]
    with table(output) as out:
        now, compared, calibrated = _write(out, file, problem, plan, unfetched)
        found = Schedule(
            bandwidth=bandwidth,
            freshness_now=now,
            freshness=problem.freshness(plan),
            multiplier=float(plan.best.multiplier) / problem.importance.sum().item(),
            worth=_worth(problem, bandwidth),
            spent=problem.spent(plan.crawl_rate).sum().item(),
            freshness_if_exact=replace(problem, log_stderr=None).freshness(plan),
            calibrated=calibrated,
            objective=objective,
            loss=problem.loss(plan),
            hedge=hedge,
            prices=prices,
            one_more=one_more,
            one_fewer=one_fewer,
            unfetched=_named(file, unfetched, plan),
            unmeasured=_named(file, unmeasured, plan),
            gone=_named(file, columns["gone"], plan),
            uncrawled=_named(file, uncrawled, plan),
            freshness_compared=compared,
            weights=columns.get("weights"),
        )
        out.describe(_as_json(found) | {"policy": policy})
    return found


def _as_json(found):
    """A `Schedule` as JSON can hold it."""
    return _finite(asdict(found) | {"worth": found.worth.tolist()})


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


def _check_intervals(least, greatest):
    """The limits of the intervals: numbers, the least not above the greatest."""
    given = {"least_interval": least, "greatest_interval": greatest}
    for name, value in given.items():
        if value is not None:
            given[name] = checks.scalar(checks.positive, name, value)
    least, greatest = given.values()
    if None not in (least, greatest) and least > greatest:
        raise ValueError(
            f"least_interval must be at most greatest_interval, {greatest:g} days, "
            f"got {least:g}"
        )
    return least, greatest


def _check_hedge(hedge, policy):
    """The share of the hedge, or its default."""
    if hedge is None:
        return 0.0 if policy == "thresholds" else HEDGE
    return checks.scalar(checks.share, "hedge", hedge)


def _check_policy(policy, objective, per_host, intervals, limits, cost, hedge):
    """Raise a ValueError for unknown names or impossible combinations."""
    if policy not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, got {policy!r}")
    if objective not in OBJECTIVES:
        raise ValueError(
            f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}"
        )
    if policy == "thresholds":
        least, greatest = intervals
        for name, value in {
            "per_host": per_host,
            "least_interval": least,
            "greatest_interval": greatest,
            "limits": limits,
            "cost": cost,
            "hedge": hedge or None,
            "objective": None if objective == "freshness" else objective,
        }.items():
            if value is not None:
                raise ValueError(
                    f"{name} must be None for policy 'thresholds', which "
                    f"maximises freshness without limits, got {value!r}"
                )
    named = isinstance(per_host, Mapping)
    for limit in per_host.values() if named else [per_host]:
        if limit is not None and not limit >= 0:
            raise ValueError(f"per_host must be non-negative, got {per_host!r}")


def _check_possible(problem, columns, bandwidth):
    """Raise a ValueError if the greatest intervals need more than there is."""
    least = problem.least_spent()
    needed, allowed = np.array([least.sum()]), np.array([bandwidth])
    if problem.host is not None:
        of_hosts = np.bincount(problem.host, least, problem.host_limit.size)
        needed = np.append(needed, of_hosts)
        allowed = np.append(allowed, problem.host_limit)
    above = np.flatnonzero(needed * _ENOUGH > allowed)
    if not above.size:
        return
    worst = above[np.argmax(needed[above] - allowed[above])]
    unit = "crawls" if problem.cost is None else "units of cost"
    name = "the bandwidth"
    if worst:
        name = f"the limit of host {columns['names'][worst - 1]!r}"
    raise ValueError(
        f"the greatest intervals must fit {name}, {allowed[worst]:.6g} {unit} a day: "
        f"they need {needed[worst]:.6g}, {needed[worst] - allowed[worst]:.6g} too many"
        + (f" (and {above.size - 1} other limits are exceeded)" * (above.size > 1))
    )


# ---- reading


def _open(rates, needed):
    """Open a Parquet file of rates, with the columns that are needed."""
    try:
        file = pq.ParquetFile(rates)
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {rates}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"rates must be a Parquet file, got {rates}: {error}"
        ) from None
    found = file.schema_arrow.names
    for name in needed:
        if name not in found:
            raise ValueError(
                f"rates must have a column {name!r}, got {', '.join(found)}"
            )
    if not file.metadata.num_rows:
        raise ValueError("rates must hold at least one page, got none")
    return file


def _check_once(rates):
    """Raise an error if a URL stands twice in a file of rates."""
    with database(_MEMORY) as (connection, _):
        query = (
            "select url from read_parquet($rates, hive_partitioning = false) "
            "group by url having count(*) > 1 limit 1"
        )
        for (url,) in connection.execute(query, {"rates": pattern(rates)}).fetchall():
            raise ValueError(f"{rates} must name each URL once, got {url!r} again")


def _read(file, needed, importance):
    """Read what decides the crawl rates; gone pages have no importance."""
    optional = {"log_stderr", "log_rate", "n_crawls", "last_crawl"}
    optional |= set() if importance is None else {"url"}
    names = {"change_rate", "importance", "gone", *needed}
    table = file.read(columns=list(names | optional))  # the file may lack some
    columns = {name: _column(table, name) for name in names - {"host"}}
    columns |= _unknown(table, columns["gone"])
    if "host" in names:
        columns["host"] = table["host"].dictionary_encode().combine_chunks()
    if "log_stderr" in table.column_names:
        stderr = np.nan_to_num(_column(table, "log_stderr"))  # unknown: none
        columns["log_stderr"] = checks.non_negative("log_stderr", stderr)
    if "log_rate" in table.column_names:
        columns["log_rate"] = _column(table, "log_rate")
    if importance is not None:
        given = table["url"], columns["importance"]
        columns["importance"], columns["weights"] = weighted(importance, *given)
    columns["importance"] = np.where(columns["gone"], 0.0, columns["importance"])
    with np.errstate(over="ignore"):
        total = columns["importance"].sum()
    if total == np.inf:
        raise ValueError("importance must have a finite sum, got inf; use another unit")
    if not columns["importance"].any():
        raise ValueError(
            "rates must hold a page with importance that is not gone, "
            f"got none of {columns['importance'].size}"
        )
    return columns


def _unknown(table, gone):
    """Pages that were never fetched well, and others without an interval."""
    missing = np.zeros(table.num_rows, dtype=bool)
    unfetched, unmeasured = missing, missing
    if "n_crawls" in table.column_names:
        unmeasured = (_column(table, "n_crawls") == 0) & ~gone
    if "last_crawl" in table.column_names:
        unfetched = np.isnat(_column(table, "last_crawl")) & ~gone
    elif "n_crawls" in table.column_names:
        unfetched = unmeasured
    return {"unfetched": unfetched, "unmeasured": unmeasured & ~unfetched}


def _column(table, name):
    """Array of a column of a table, or of its default."""
    if name not in table.column_names:
        return np.broadcast_to(_DEFAULTS[name], table.num_rows)
    column, types = table[name], pa.types
    wanted = {"gone": "boolean", "first_crawl": "timestamp", "last_crawl": "timestamp"}
    kind = wanted.get(name, "floating" if types.is_floating(column.type) else "integer")
    if not (types.is_null(column.type) or getattr(types, f"is_{kind}")(column.type)):
        what = {"boolean": "true or false", "timestamp": "times"}.get(kind, "numbers")
        raise ValueError(
            f"rates must hold {what} in the column {name!r}, got {column.type}"
        )
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.to_numpy()


def _limits(file, columns, rows, intervals, per_host):
    """Limits of pages and hosts as arrays, only those that are given."""
    found = {}
    if any(intervals) or rows:
        names = ["change_rate"]
        if rows:
            names = ["url", "host"] if "host" in columns else ["url"]
        batches = file.iter_batches(PAGES_PER_BATCH, columns=names)
        low, high = page_limits(batches, rows, *intervals)
        low = np.where(columns["gone"], 0.0, low)
        found |= {"min_rate": low} if low.any() else {}
        found |= {"max_rate": high} if (high < np.inf).any() else {}
    if "host" in columns:
        names = columns["host"].dictionary.to_pylist()
        given = per_host if isinstance(per_host, Mapping) else {None: per_host}
        given = {host: limit for host, limit in given.items() if limit is not None}
        _check_hosts("per_host", given.keys() - {None}, names)
        of_rows = {row.pattern: row.rate for row in rows if row.rate is not None}
        _check_hosts("limits", of_rows.keys(), names)
        given |= of_rows
        if given:
            every = given.get(None, np.inf)
            limit = np.array([float(given.get(name, every)) for name in names])
            found |= {"host_index": np.asarray(columns["host"].indices)}
            found |= {"host_limit": limit, "names": names}
    return found


def _check_hosts(argument, named, hosts):
    """Raise a ValueError if hosts are named that have no page."""
    if unknown := sorted(named - set(hosts)):
        raise ValueError(
            f"{argument} must name hosts that have pages, "
            f"got {len(unknown)} without: {unknown[:5]}"
        )


def _problem(columns, policy, objective, cost, hedge):
    """The `Problem` of the columns."""
    signals = None
    if policy == "thresholds":
        signals = tuple(columns[name] for name in _SIGNALS)
    if cost is not None:
        checks.positive(f"column {cost}", columns[cost])
    return Problem(
        columns["change_rate"],
        columns["importance"],
        policy,
        objective,
        hedge,
        columns.get("log_stderr"),
        columns.get("log_rate"),
        signals,
        columns.get("min_rate"),
        columns.get("max_rate"),
        columns.get(cost),
        columns.get("host_index"),
        columns.get("host_limit"),
        ~columns["unfetched"] if columns["unfetched"].any() else None,
    )


def _worth(problem, bandwidth):
    """Freshness at multiples of the bandwidth, from every n-th page."""
    few, share = problem.sample()
    least = few.least_spent().sum()
    bandwidths = [factor * bandwidth for factor in _FACTORS]
    fresh = [
        few.freshness(few.solve(b * share)) if least <= b * share else np.nan
        for b in bandwidths
    ]
    return np.column_stack([bandwidths, fresh]).astype(float)


def _named(file, pages, plan):
    """How many pages a mask has, their crawls, and the URLs of the first of them."""
    first, start = [], 0
    numbers = np.flatnonzero(pages)[:_NAMED]
    batches = file.iter_batches(PAGES_PER_BATCH, columns=["url"])
    while len(first) < numbers.size:
        batch = next(batches)
        here = numbers[(numbers >= start) & (numbers < start + batch.num_rows)]
        first += batch["url"].take(pa.array(here - start)).to_pylist()
        start += batch.num_rows
    crawls = plan.crawl_rate[pages].sum().item()
    return {"pages": int(np.count_nonzero(pages)), "crawls": crawls, "first": first}


# ---- writing


def _write(out, file, problem, plan, unfetched):
    """Write the schedule batch by batch.

    URLs and crawls are read from the file once more, to hold only a batch.
    Returns the mean freshness at the crawls of the log, that of the schedule on the
    same pages, both with the estimates taken as exact, and that by the calibration
    (or None). A thread writes one batch while the next one is computed.
    """
    calibration = _calibration(file, problem.policy)
    weight = np.where(unfetched, 0.0, problem.importance)
    exact = replace(problem, log_stderr=None)
    start, writing, now, compared, known, calibrated = 0, None, 0.0, 0.0, 0.0, 0.0
    with ThreadPoolExecutor(1) as thread:
        for log in file.iter_batches(PAGES_PER_BATCH, columns=["url", *_NOW]):
            here = slice(start, start := start + log.num_rows)
            found = _outcome(problem, plan, log, here)
            told = ~np.isnan(found["freshness_now"])
            now += found["freshness_now"][told] @ weight[here][told]
            compared += exact.page_freshness(plan, here)[told] @ weight[here][told]
            known += weight[here][told].sum()
            if calibration is not None:
                rates = problem.change_rate[here], plan.crawl_rate[here]
                calibrated += calibration.freshness(*rates) @ weight[here]
            for name, here_null in (
                ("freshness_now", unfetched[here] | ~told),
                ("freshness", unfetched[here]),
            ):
                found[name] = pa.array(found[name], mask=here_null)
            if writing is not None:
                writing.result()  # two tables in memory at most
            writing = thread.submit(out.write, pa.table({"url": log["url"]} | found))
        writing.result()
    with np.errstate(invalid="ignore"):  # NaN if no page was fetched, or none twice
        now, compared = (np.array([now, compared]) / known).tolist()
        calibrated = (calibrated / weight.sum()).item()
    return now, compared, None if calibration is None else calibrated


def _calibration(file, policy):
    """The `Calibration` in the metadata of a file of rates, or None."""
    text = (file.metadata.metadata or {}).get(b"paperlib", b"{}")
    values = json.loads(text).get("calibration")
    if policy != "interval" or values is None:
        return None
    return Calibration.from_dict(values)


def _outcome(problem, plan, log, here):
    """Columns of a schedule, of pages that a log has told of."""
    change_rate, crawl_rate = problem.change_rate[here], plan.crawl_rate[here]
    log = pa.table(log)
    n, first, last, now = (_column(log, name) for name in _NOW)
    days = np.nan_to_num((last - first) / _DAY)
    threshold = plan.best.threshold
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_now = np.where(days > 0, n / days, 0.0)
        wait = 1 / crawl_rate if threshold is None else threshold[here]
    wait = np.where((crawl_rate > 0) & (wait < _FOREVER), wait, np.nan)
    due = last + (wait * _MICROSECONDS).astype("m8[us]")  # NaT where NaN
    columns = {
        "crawl_rate": crawl_rate,
        "due": pa.array(due, pa.timestamp("us", "UTC")),  # null where NaT
        "freshness_now": now
        if "freshness_now" in log.column_names
        else freshness.interval(change_rate, rate_now),
        "freshness": problem.page_freshness(plan, here),
    }
    return columns if threshold is None else columns | {"threshold": threshold[here]}
