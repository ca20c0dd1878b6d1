"""A schedule for a bandwidth: crawl rates and due times from change rates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paperlib import checks, freshness
from paperlib.crawl_log.calibrating import LEAST_BITS, Calibration
from paperlib.crawl_log.database import database, pattern
from paperlib.crawl_log.limits import page_limits, read_limits
from paperlib.crawl_log.output import check_output, opened, sound, table
from paperlib.crawl_log.planning import OBJECTIVES, POLICIES, Problem
from paperlib.crawl_log.weights import weighted
from paperlib.types import PathLike

__all__ = ["HEDGE", "Schedule", "schedule"]

#: Share of the bandwidth at equal rates by default. Of the hedges that keep all limits,
#: which benchmarks/hedge.py compares, it gains most where rates are learnt: .0014.
HEDGE = 0.25

PAGES_PER_BATCH = 1_000_000  # written at a time: some 200 MB

_MEMORY = "1GiB"  # to find URLs that occur twice
_SIGNALS = ("recall", "false_rate")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the bandwidth, to show its value
_DAY = np.timedelta64(1, "D")
_MICROSECONDS = 86_400_000_000  # in a day
_FOREVER = 365_000  # days; later times are beyond the years of a timestamp
_ENOUGH = 1 - 1e-12  # of what is needed: rates sum to no better than this
_NOW = ("n_crawls", "first_crawl", "last_crawl", "freshness_now")
_NAMED = 3  # URLs, where pages are counted
_UNKNOWN = ("unfetched", "incomparable", "unmeasured")
_DEFAULTS = {
    "importance": 1.0,
    "cost": 1.0,
    "gone": False,
    "n_crawls": 0.0,
    "n_incomparable": 0,
    "first_crawl": np.datetime64("NaT", "us"),
    "last_crawl": np.datetime64("NaT", "us"),
    "freshness_now": np.nan,
}


def _none():
    """No pages, as the default of a field."""
    return {"pages": 0, "crawls": 0.0, "first": []}


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
        Freshness by the `Calibration` of the log.
    not_calibrated : str
        Why there is none; empty where there is.
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
    unfetched, incomparable, unmeasured : dict
        Pages that were never fetched successfully, and those that were but have
        nothing to compare, of which both have no expected freshness; and those that
        have no interval yet. Their change rate is that of the prior: "pages", how many,
        "crawls", how many these get a day, and "first", some URLs.
    gone, uncrawled : dict
        In the same form, pages that are gone; and others that get no crawls, as all
        other pages gain more by a crawl.
    suspect : dict
        In the same form, pages on hosts that `estimate` found suspect, with the
        names of hosts in place of URLs.
    freshness_compared : float
        As `freshness_if_exact`, but of the pages of `freshness_now` alone: to be
        compared with it.
    weights : dict, optional
        Of a table of importance: how many pages it names ("named") and how many
        are "others", and how many of its rows are "unknown" pages.
    costs : dict, optional
        The same of a table of costs.
    expected_crawls : float, optional
        Crawls a day that thresholds lead to, with an allowance for errors of the
        change rates.
    worth_calibrated : list of float
        Calibrated freshness at the bandwidths of `worth`; empty if there is none.

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
    not_calibrated: str = ""
    objective: str = "freshness"
    loss: float = np.nan
    hedge: float = 0.0
    prices: dict = field(default_factory=dict)
    one_more: float = np.nan
    one_fewer: float | None = None
    unfetched: dict = field(default_factory=_none)
    incomparable: dict = field(default_factory=_none)
    unmeasured: dict = field(default_factory=_none)
    gone: dict = field(default_factory=_none)
    uncrawled: dict = field(default_factory=_none)
    suspect: dict = field(default_factory=_none)
    freshness_compared: float = np.nan
    weights: dict | None = None
    costs: dict | None = None
    expected_crawls: float | None = None
    worth_calibrated: list = field(default_factory=list)


def schedule(
    rates: PathLike,
    output: PathLike,
    bandwidth: float,
    *,
    policy: Literal["interval", "poisson", "thresholds"] = "interval",
    objective: Literal["freshness", "delay", "age", "harmonic"] = "freshness",
    least_interval: float | None = None,
    greatest_interval: float | None = None,
    unfetched_interval: float | None = None,
    limits: PathLike | None = None,
    per_host: float | Mapping[str, float] | None = None,
    importance: PathLike | None = None,
    cost: PathLike | None = None,
    hedge: float | None = None,
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
        at the rate of the log) and freshness (at crawl_rate). Pages that are
        gone get no crawls; the freshness of pages that were never fetched
        successfully, or have nothing to compare, is null.
    bandwidth : float
        Crawls a day, or what they may cost a day.
    policy : {"interval", "poisson", "thresholds"}
        Crawls at equal intervals, at Poisson times (`allocation.optimal`), or
        `allocation.optimal_thresholds`. The last one needs the columns recall
        and false_rate (1/day) and writes the columns threshold and signal_days
        (days): a page is to be crawled when the time since its last crawl plus
        signal_days for each signal since then reaches the threshold; due is when
        the time alone does. It has no limits.
    objective : {"freshness", "delay", "age", "harmonic"}
        What is optimised, see `objectives`.
    least_interval, greatest_interval : float, optional
        Days between crawls of a page, at least and at most. Pages that are
        gone have none.
    unfetched_interval : float, optional
        Days between crawls, at least, of pages that were never fetched successfully
        or have nothing to compare; for these it overrules `greatest_interval`.
    limits : path, optional
        A CSV file of other limits by host or URL, see `limits.read_limits`.
    per_host : float or mapping from str to float, optional
        Crawls a day (or what they may cost) that each host allows, or that
        those named allow; the key None is for all others.
    importance : path, optional
        A table of the importance of pages, see `weights.weighted`; pages that it
        does not name keep that of the rates.
    cost : str or path, optional
        Column of the rates with the cost of a crawl; or a file, which is a table as
        for importance, with the columns url and cost; by default 1.
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
    >>> import pyarrow.parquet as pq, tempfile
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
    if unfetched_interval is not None:
        checks.scalar(checks.positive, "unfetched_interval", unfetched_interval)
    hedge = _check_hedge(hedge, policy)
    limited = *intervals, unfetched_interval
    _check_policy(policy, objective, per_host, limited, limits, cost, hedge)
    check_output(output, force, [rates, limits, importance, cost])
    rows = [] if limits is None else read_limits(limits)
    by_host = per_host is not None or any(limit.is_host for limit in rows)
    tables = {"importance": importance}
    if cost is not None and Path(cost).is_file():
        tables["cost"], cost = cost, "cost"
    needed = [] if cost is None or "cost" in tables else [cost]
    needed += _SIGNALS if policy == "thresholds" else ()
    needed += ["host"] if by_host else []
    file = _Rates(rates, ("url", "change_rate", *needed))
    columns = _read(file, needed, tables)
    columns |= _limits(file, columns, rows, limited, per_host)
    problem = _problem(columns, policy, objective, cost, hedge)
    _check_possible(problem, columns, bandwidth)
    with ThreadPoolExecutor(1) as thread:  # the solution leaves a core idle
        once = thread.submit(_check_once, rates)
        plan = problem.solve(bandwidth)
        once.result()
    fresh, exact = _fresh(problem, plan)
    prices, one_more, one_fewer = problem.prices(bandwidth, plan)
    calibration, why_not = _calibration(file, policy)
    worth, worth_calibrated = _worth(problem, bandwidth, calibration)
    kinds = {name: columns[name] for name in (*_UNKNOWN, "gone")}
    kinds["uncrawled"] = (plan.crawl_rate == 0) & ~columns["gone"]
    with table(output) as out:
        arrays = fresh, exact, columns["unpromised"]
        written = _write(out, file, problem, plan, arrays, calibration, kinds)
        found = Schedule(
            bandwidth=bandwidth,
            freshness=problem.mean(fresh),
            multiplier=float(plan.best.multiplier) / problem.importance.sum().item(),
            worth=worth,
            worth_calibrated=worth_calibrated,
            expected_crawls=problem.expected_crawls(plan) if problem.signals else None,
            spent=problem.spent(plan.crawl_rate).sum().item(),
            freshness_if_exact=problem.mean(exact),
            not_calibrated=why_not,
            objective=objective,
            loss=problem.loss(plan, fresh),
            hedge=hedge,
            prices=prices,
            one_more=one_more,
            one_fewer=one_fewer,
            weights=columns.get("importance counts"),
            costs=columns.get("cost counts"),
            **written,
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
        least, greatest, unfetched = intervals
        for name, value in {
            "per_host": per_host,
            "least_interval": least,
            "greatest_interval": greatest,
            "unfetched_interval": unfetched,
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


class _Rates:
    """A file of rates, with the columns that are needed.

    The checksums of its pages are compared when they are read.
    """

    def __init__(self, path, needed):
        self._path, self._file = path, opened(path, "rates")
        self.names = self._file.schema_arrow.names
        for name in needed:
            if name not in self.names:
                raise ValueError(
                    f"rates must have a column {name!r}, got {', '.join(self.names)}"
                )
        if not self._file.metadata.num_rows:
            raise ValueError("rates must hold at least one page, got none")
        #: What `estimate` told in the metadata.
        told = (self._file.metadata.metadata or {}).get(b"paperlib", b"{}")
        self.told = json.loads(told)

    def read(self, columns):
        """Table of columns; the file may lack some."""
        with sound(self._path):
            return self._file.read(columns=columns)

    def batches(self, columns):
        """Yield the same in batches, to hold only one of them."""
        with sound(self._path):
            yield from self._file.iter_batches(PAGES_PER_BATCH, columns=columns)


def _check_once(rates):
    """Raise an error if a URL occurs twice in a file of rates."""
    file, given = "read_parquet(?, hive_partitioning = false)", pattern(rates)
    with database(_MEMORY) as (connection, _):
        # To sort hashes takes half the time of grouping by URL, and less memory.
        query = connection.execute(f"select hash(url) as h from {file}", [given])
        hashes = query.fetchnumpy()["h"]
        hashes.sort()
        twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not twice.size:
            return
        connection.register("twice", pa.table({"h": twice}))
        query = (  # two URLs may have one hash
            f"select url from {file} where hash(url) in (select h from twice) "
            "group by url having count(*) > 1 limit 1"
        )
        for (url,) in connection.execute(query, [given]).fetchall():
            raise ValueError(f"{rates} must name each URL once, got {url!r} again")


def _read(file, needed, tables):
    """Read what decides the crawl rates; gone pages have no importance."""
    optional = {"log_stderr", "log_rate", "n_crawls", "n_incomparable", "last_crawl"}
    tables = {name: path for name, path in tables.items() if path is not None}
    optional |= {"url"} if tables else set()
    names = {"change_rate", "importance", "gone", *needed, *tables}
    table = file.read(list(names | optional))
    columns = {name: _column(table, name) for name in names - {"host"}}
    columns |= _unknown(table, columns["gone"])
    if "host" in names:
        columns["hosts"] = table["host"].dictionary_encode().combine_chunks()
    if "log_stderr" in table.column_names:
        stderr = np.nan_to_num(_column(table, "log_stderr"))  # unknown: none
        columns["log_stderr"] = checks.non_negative("log_stderr", stderr)
    if "log_rate" in table.column_names:
        columns["log_rate"] = _column(table, "log_rate")
    for name, path in tables.items():
        found = weighted(path, table["url"], columns[name], name)
        columns[name], columns[f"{name} counts"] = found
    weight = np.where(columns["gone"], 0.0, columns["importance"])
    columns["importance"] = checks.non_negative("column importance", weight)
    with np.errstate(over="ignore"):
        total = columns["importance"].sum()
    if total == np.inf:
        raise ValueError(
            "column importance must have a finite sum, got inf; use another unit"
        )
    if not columns["importance"].any():
        raise ValueError(
            "rates must hold a page with importance that is not gone, "
            f"got none of {columns['importance'].size}"
        )
    return columns


def _unknown(table, gone):
    """Pages of which nothing is promised, by the reason, and those without interval."""
    unpromised = unmeasured = np.zeros(table.num_rows, dtype=bool)
    if "n_crawls" in table.column_names:
        unpromised = unmeasured = (_column(table, "n_crawls") == 0) & ~gone
    if "last_crawl" in table.column_names:
        unpromised = np.isnat(_column(table, "last_crawl")) & ~gone
    incomparable = unpromised & (_column(table, "n_incomparable") > 0)
    masks = (unpromised & ~incomparable, incomparable, unmeasured & ~unpromised)
    return {"unpromised": unpromised} | dict(zip(_UNKNOWN, masks, strict=True))


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
    found, (*every, unfetched) = {}, intervals
    if any(intervals) or rows:
        names = ["change_rate"]
        if rows:
            names = ["url", "host"] if "hosts" in columns else ["url"]
        low, high = page_limits(file.batches(names), rows, *every)
        if unfetched is not None:
            high[columns["unpromised"]] = 1 / unfetched
            low = np.minimum(low, high)
        low = np.where(columns["gone"], 0.0, low)
        found |= {"min_rate": low} if low.any() else {}
        found |= {"max_rate": high} if (high < np.inf).any() else {}
    if "hosts" in columns:
        names = columns["hosts"].dictionary.to_pylist()
        given = per_host if isinstance(per_host, Mapping) else {None: per_host}
        given = {host: limit for host, limit in given.items() if limit is not None}
        _check_hosts("per_host", given.keys() - {None}, names)
        of_rows = {row.pattern: row.rate for row in rows if row.rate is not None}
        _check_hosts("limits", of_rows.keys(), names)
        given |= of_rows
        if given:
            every = given.get(None, np.inf)
            limit = np.array([float(given.get(name, every)) for name in names])
            found |= {"host": np.asarray(columns["hosts"].indices)}
            found |= {"host_limit": limit, "names": names}
    return found


def _check_hosts(argument, named, hosts):
    """Raise a ValueError if hosts are named that have no page."""
    if unknown := sorted(named - set(hosts)):
        raise ValueError(
            f"{argument} must name hosts that have pages, "
            f"got {len(unknown)} without: {', '.join(map(repr, unknown[:5]))}"
        )


def _problem(columns, policy, objective, cost, hedge):
    """The `Problem` of the columns."""
    signals = None
    if policy == "thresholds":
        signals = tuple(columns[name] for name in _SIGNALS)
    if cost is not None:
        checks.positive(f"column {cost}", columns[cost])
    names = {each.name for each in fields(Problem)}
    given = {name: array for name, array in columns.items() if name in names}
    given |= {"cost": columns.get(cost), "signals": signals, "hedge": hedge}
    promised = ~columns["unpromised"] if columns["unpromised"].any() else None
    return Problem(policy=policy, objective=objective, promised=promised, **given)


def _fresh(problem, plan):
    """Expected freshness of each page, and that if the estimates were exact."""
    fresh = problem.page_freshness(plan)
    if problem.log_stderr is None:
        return fresh, fresh
    return fresh, replace(problem, log_stderr=None).page_freshness(plan)


def _worth(problem, bandwidth, calibration):
    """Freshness at multiples of the bandwidth, and calibrated, of every n-th page."""
    few, share = problem.sample()
    least, worth, calibrated = few.least_spent().sum(), [], []
    for here in (factor * bandwidth for factor in _FACTORS):
        plan = few.solve(here * share) if least <= here * share else None
        worth.append((here, np.nan if plan is None else few.freshness(plan)))
        if calibration is not None:
            fresh = np.nan if plan is None else few.calibrated(plan, calibration)
            calibrated.append(fresh)
    return np.array(worth, dtype=float), calibrated


# ---- writing


def _write(out, file, problem, plan, arrays, calibration, kinds):
    """Write the schedule batch by batch.

    URLs and crawls are read from the file once more, to hold only a batch.
    Returns what a `Schedule` tells of sums over these: the mean freshness at the
    crawls of the log, that of the schedule on the same pages, both with the estimates
    taken as exact, that by the calibration, and the pages of each kind, given as
    masks, and of suspect hosts. A thread writes one batch while the next one is
    computed.
    """
    (fresh, exact, unpromised), hosts = arrays, _suspects(file)
    names = ["url", *_NOW, *(["host"] if hosts else [])]
    weight = np.where(unpromised, 0.0, problem.importance)
    counted = {kind: _none() for kind in (*kinds, "suspect")}
    start, writing, sums = 0, None, np.zeros(4)
    with ThreadPoolExecutor(1) as thread:
        for log in file.batches(names):
            here = slice(start, start := start + log.num_rows)
            found = _outcome(problem, plan, fresh, log, here)
            now, by = found["freshness_now"], weight[here]
            told, calibrated = ~np.isnan(now), 0.0
            if calibration is not None:
                rates = problem.change_rate[here], plan.crawl_rate[here]
                calibrated = calibration.freshness(*rates) @ by
            compared = now[told] @ by[told], exact[here][told] @ by[told]
            sums += (*compared, by[told].sum(), calibrated)
            masks = {kind: pages[here] for kind, pages in kinds.items()}
            if hosts:
                there = pc.is_in(log["host"], pa.array(hosts))
                masks["suspect"] = there.to_numpy(False)
            for kind, pages in masks.items():
                _count(counted[kind], log["url"], pages, found["crawl_rate"])
            for name, unknown in (("freshness_now", ~told), ("freshness", False)):
                found[name] = pa.array(found[name], mask=unpromised[here] | unknown)
            if writing is not None:
                writing.result()  # two tables in memory at most
            writing = thread.submit(out.write, pa.table({"url": log["url"]} | found))
        writing.result()
    counted["suspect"]["first"] = hosts[:_NAMED]
    with np.errstate(invalid="ignore"):  # NaN if no page was fetched, or none twice
        now, compared = (sums[:2] / sums[2]).tolist()
        calibrated = (sums[3] / weight.sum()).item()
    return counted | {
        "freshness_now": now,
        "freshness_compared": compared,
        "calibrated": None if calibration is None else calibrated,
    }


def _count(counted, url, pages, crawl_rate):
    """Add pages of a batch to those of a kind, their crawls, and the first URLs."""
    rows = np.flatnonzero(pages)
    counted["pages"] += rows.size
    counted["crawls"] += crawl_rate[rows].sum().item()
    more = rows[: _NAMED - len(counted["first"])]
    counted["first"] += url.take(pa.array(more)).to_pylist()


def _suspects(file):
    """Hosts that `estimate` found suspect, those with the most pages first."""
    if "host" not in file.names:
        return []
    return list(dict.fromkeys(each["host"] for each in file.told.get("suspects", ())))


def _calibration(file, policy):
    """The `Calibration` in the metadata of a file of rates, or None and why."""
    if policy != "interval":
        return None, f"this needs crawls at equal intervals, not policy {policy!r}"
    if "calibration" not in file.told:
        return None, "the rates lack the metadata of `paperlib estimate`"
    if file.told["calibration"] is None:
        return None, f"the log has fewer than {LEAST_BITS} bits to measure it on"
    return Calibration.from_dict(file.told["calibration"]), ""


def _outcome(problem, plan, fresh, log, here):
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
        "freshness": fresh[here],
    }
    if threshold is not None:
        columns["threshold"] = threshold[here]
        columns["signal_days"] = problem.signalled(here).beta
    return columns
