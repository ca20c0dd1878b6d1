"""A schedule for a bandwidth: crawl rates and due times from change rates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl import checks
from recrawl.calibrating import LEAST_BITS, Calibration
from recrawl.database import database, pattern
from recrawl.errors import ArgumentError
from recrawl.limits import page_limits, read_limits
from recrawl.output import check_output, opened, sound, table
from recrawl.planning import OBJECTIVES, POLICIES, Problem
from recrawl.science import freshness
from recrawl.types import PathLike
from recrawl.units import as_text, rounded
from recrawl.weights import weighted

__all__ = ["HEDGE", "Schedule", "schedule"]

#: The hedge, which is the share of the bandwidth at equal rates, by default. Of those
#: in benchmarks/hedge.py that keep all limits, this one adds most to the mean freshness
#: where rates are learnt: .0014.
HEDGE = 0.25

PAGES_PER_BATCH = 1_000_000  # written at a time: some 200 MB

_MEMORY = "1GiB"  # to find URLs that occur twice
_SIGNALS = ("recall", "false_rate")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the bandwidth, to show its value
_DAY = np.timedelta64(1, "D")
_MICROSECONDS = 86_400_000_000  # in a day
_LONGEST_WAIT = 365_000  # days; later times are beyond the years of a timestamp
_ROUNDING = 1e-12  # relative error of a sum of rates
_LOG_COLUMNS = ("n_crawls", "first_crawl", "last_crawl", "freshness_now")
_SHOWN = 3  # URLs, where pages are counted
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

    Parameters
    ----------
    bandwidth : float
        Crawls a day, or what they may cost.
    freshness_now : float
        Expected freshness between the crawls of the log, in [0, 1], of the pages
        that have intervals in it; NaN if none has. Without the column
        freshness_now, that of as many crawls at equal intervals.
    freshness : float
        Expected freshness of the schedule, in [0, 1], with an allowance for
        errors of the estimates where the rates have the column log_stderr.
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
        Freshness of the schedule by the `Calibration` of the log.
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
        In the same form, pages on hosts that `estimate` flagged, with the names of
        hosts in place of URLs.
    freshness_compared : float
        As `freshness_if_exact`, but of the pages of `freshness_now` alone: to be
        compared with it.
    weights : dict, optional
        Of a table of importance: how many pages it names ("named"), how many it
        does not ("others"), and how many of its rows are "unknown" pages, the
        "first" of them.
    costs : dict, optional
        The same of a table of costs.
    expected_crawls : float, optional
        Crawls a day that thresholds lead to, with an allowance for errors of the
        change rates.
    worth_calibrated : list of float
        Calibrated freshness at the bandwidths of `worth`; empty if there is none.

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
    calibrated           fetched                  the log's calibration
    ===================  =======================  ======================

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
        at the rate of the log, which is 0 without dates of crawls) and freshness
        (at crawl_rate). Pages that are gone get no crawls; the freshness of pages
        that were never fetched successfully, or have nothing to compare, is null.
    bandwidth : float
        Crawls a day, or what they may cost a day.
    policy : {"interval", "poisson", "thresholds"}, default "interval"
        Crawls at equal intervals, at Poisson times (`allocation.optimal`), or
        `allocation.optimal_thresholds`. The last one needs the columns recall
        and false_rate (1/day) and writes the columns threshold and signal_days
        (days): a page is to be crawled when the time since its last crawl plus
        signal_days for each signal since then reaches the threshold; due is when
        the time alone does. It has no limits.
    objective : {"freshness", "delay", "age", "harmonic"}, default "freshness"
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
    needed = list(_SIGNALS) if policy == "thresholds" else []
    tables = {} if importance is None else {"importance": importance}
    if cost is not None and Path(cost).is_file():
        tables["cost"], cost = cost, "cost"
    elif cost is not None:
        needed.append(cost)
    if by_host:
        needed.append("host")
    file = _Rates(rates, needed)
    pages = _read(file, needed, tables)
    limit_arrays = _limits(file, pages, rows, limited, per_host)
    problem = _problem(pages, limit_arrays, policy, objective, cost, hedge)
    _check_possible(problem, pages.hosts, bandwidth)
    with ThreadPoolExecutor(1) as thread:  # the solution leaves a core idle
        once = thread.submit(_check_once, rates)
        plan = problem.solve(bandwidth)
        once.result()
    fresh, exact = _fresh(problem, plan)
    prices, one_more, one_fewer = problem.prices(bandwidth, plan)
    calibration, why_not = _calibration(file, policy)
    worth, worth_calibrated = _worth(problem, bandwidth, calibration)
    totals = _Totals(file, pages, problem, plan, exact, calibration)
    with table(output) as out:
        _write(out, file, problem, plan, fresh, totals)
        now, compared, calibrated = totals.means()
        found = Schedule(
            bandwidth=bandwidth,
            freshness_now=now,
            freshness=problem.mean(fresh),
            multiplier=float(plan.best.multiplier) / problem.importance.sum().item(),
            worth=worth,
            worth_calibrated=worth_calibrated,
            expected_crawls=problem.expected_crawls(plan) if problem.signals else None,
            spent=problem.spent(plan.crawl_rate).sum().item(),
            freshness_if_exact=problem.mean(exact),
            freshness_compared=compared,
            calibrated=calibrated,
            not_calibrated=why_not,
            objective=objective,
            loss=problem.loss(plan, fresh),
            hedge=hedge,
            prices=prices,
            one_more=one_more,
            one_fewer=one_fewer,
            weights=pages.counts.get("importance"),
            costs=pages.counts.get("cost"),
            **totals.kinds,
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
        rule = f"must be at most greatest_interval, {greatest:g} days, got {least:g}"
        raise ArgumentError("least_interval", rule)
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
                rule = (
                    "must be None for policy 'thresholds', which maximises freshness "
                    f"without limits, got {value!r}"
                )
                raise ArgumentError(name, rule)
    named = isinstance(per_host, Mapping)
    for limit in per_host.values() if named else [per_host]:
        if limit is not None and not limit >= 0:
            rule = f"must be non-negative, got {per_host!r}"
            raise ArgumentError("per_host", rule)


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
    unit = "crawls" if problem.cost is None else "units of cost"
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
        f"the greatest {intervals} must fit {name}, {most} {unit} a day: "
        f"{need} {least}, {excess} too many" + (others if above.size > 1 else "")
    )


# ---- reading


class _Rates:
    """A file of rates, with the columns that are needed.

    The checksums of its pages are compared when they are read.
    """

    def __init__(self, path, needed):
        self._path, self._file = path, opened(path, "rates", ("url", "change_rate"))
        self.names = self._file.schema_arrow.names
        for name in needed:
            if name not in self.names:
                rule = f"must have a column {name!r}, got {', '.join(self.names)}"
                raise ArgumentError("rates", rule)
        if not self._file.metadata.num_rows:
            raise ArgumentError("rates", "must hold at least one page, got none")
        #: What `estimate` wrote into the metadata.
        text = (self._file.metadata.metadata or {}).get(b"recrawl", b"{}")
        self.metadata = json.loads(text)

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


@dataclass(frozen=True)
class _Pages:
    """What is known of the pages, from the rates and tables of weights.

    `columns` are arrays by name, `kinds` masks of the pages that `Schedule` counts,
    `hosts` is a pyarrow.DictionaryArray if hosts have limits, and `counts` are those
    of `weighted` by column.
    """

    columns: dict
    kinds: dict
    hosts: pa.DictionaryArray | None
    counts: dict

    @property
    def unknown(self):
        """Pages for which no freshness is predicted."""
        return self.kinds["unfetched"] | self.kinds["incomparable"]


def _read(file, needed, tables):
    """Read what decides the crawl rates; gone pages have no importance."""
    optional = {"log_stderr", "log_rate", "n_crawls", "n_incomparable", "last_crawl"}
    optional |= {"url"} if tables else set()
    names = {"change_rate", "importance", "gone", *needed, *tables}
    table = file.read(list(names | optional))
    columns = {name: _column(table, name) for name in names - {"host"}}
    hosts, counts = None, {}
    if "host" in names:
        hosts = table["host"].dictionary_encode().combine_chunks()
    if "log_stderr" in table.column_names:
        stderr = np.nan_to_num(_column(table, "log_stderr"))  # unknown: none
        columns["log_stderr"] = checks.non_negative("log_stderr", stderr)
    if "log_rate" in table.column_names:
        columns["log_rate"] = _column(table, "log_rate")
    for name, path in tables.items():
        found = weighted(path, table["url"], columns[name], name)
        columns[name], counts[name] = found
    weight = np.where(columns["gone"], 0.0, columns["importance"])
    columns["importance"] = checks.non_negative("column importance", weight)
    with np.errstate(over="ignore"):
        total = columns["importance"].sum()
    if total == np.inf:
        raise ValueError(
            "column importance must have a finite sum, got inf; use another unit"
        )
    if not columns["importance"].any():
        rule = "must hold a page with importance that is not gone, got none of "
        raise ArgumentError("rates", f"{rule}{columns['importance'].size}")
    return _Pages(columns, _kinds(table, columns["gone"]), hosts, counts)


def _kinds(table, gone):
    """Masks of pages of which little is known, by the reason, and of those gone."""
    no_interval = np.zeros(table.num_rows, dtype=bool)
    if "n_crawls" in table.column_names:
        no_interval = (_column(table, "n_crawls") == 0) & ~gone
    no_crawl = no_interval
    if "last_crawl" in table.column_names:
        no_crawl = np.isnat(_column(table, "last_crawl")) & ~gone
    incomparable = no_crawl & (_column(table, "n_incomparable") > 0)
    return {
        "unfetched": no_crawl & ~incomparable,
        "incomparable": incomparable,
        "unmeasured": no_interval & ~no_crawl,
        "gone": gone,
    }


def _column(table, name):
    """Array of a column of a table, or of its default."""
    if name not in table.column_names:
        return np.broadcast_to(_DEFAULTS[name], table.num_rows)
    column, types = table[name], pa.types
    wanted = {"gone": "boolean", "first_crawl": "timestamp", "last_crawl": "timestamp"}
    kind = wanted.get(name, "floating" if types.is_floating(column.type) else "integer")
    if not (types.is_null(column.type) or getattr(types, f"is_{kind}")(column.type)):
        what = {"boolean": "true or false", "timestamp": "times"}.get(kind, "numbers")
        rule = f"must hold {what} in the column {name!r}, got {column.type}"
        raise ArgumentError("rates", rule)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.to_numpy()


def _limits(file, pages, rows, intervals, per_host):
    """Limits of pages and hosts as arrays of a `Problem`, only those in force."""
    found, (least, greatest, unfetched) = {}, intervals
    if any(intervals) or rows:
        names = ["change_rate"]
        if rows:
            names = ["url"] if pages.hosts is None else ["url", "host"]
        low, high = page_limits(file.batches(names), rows, least, greatest)
        if unfetched is not None:
            high[pages.unknown] = 1 / unfetched
            low = np.minimum(low, high)
        low = np.where(pages.kinds["gone"], 0.0, low)
        found |= {"min_rate": low} if low.any() else {}
        found |= {"max_rate": high} if (high < np.inf).any() else {}
    if pages.hosts is not None:
        names = pages.hosts.dictionary.to_pylist()
        given = per_host if isinstance(per_host, Mapping) else {None: per_host}
        given = {host: limit for host, limit in given.items() if limit is not None}
        _check_hosts("per_host", given.keys() - {None}, names)
        of_rows = {row.pattern: row.rate for row in rows if row.rate is not None}
        _check_hosts("limits", of_rows.keys(), names)
        given |= of_rows
        if given:
            others = given.get(None, np.inf)
            limit = np.array([float(given.get(name, others)) for name in names])
            found |= {"host": np.asarray(pages.hosts.indices), "host_limit": limit}
    return found


def _check_hosts(argument, named, hosts):
    """Raise a ValueError if hosts are named that have no page."""
    if unknown := sorted(named - set(hosts)):
        some = ", ".join(map(repr, unknown[:5]))
        rule = f"must name hosts that have pages, got {len(unknown)} without: {some}"
        raise ArgumentError(argument, rule)


def _problem(pages, limits, policy, objective, cost, hedge):
    """The `Problem` of the pages under limits, given as arrays."""
    columns, signals = pages.columns, None
    if policy == "thresholds":
        signals = tuple(columns[name] for name in _SIGNALS)
    if cost is not None:
        checks.positive(f"column {cost}", columns[cost])
    return Problem(
        columns["change_rate"],
        columns["importance"],
        policy=policy,
        objective=objective,
        hedge=hedge,
        log_stderr=columns.get("log_stderr"),
        log_rate=columns.get("log_rate"),
        signals=signals,
        cost=columns.get(cost),
        promised=~pages.unknown if pages.unknown.any() else None,
        **limits,
    )


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


class _Totals:
    """What a `Schedule` holds of sums over pages, which come in batches.

    These are the freshness at the crawls of the log, that of the schedule on the
    same pages, both with the estimates taken as exact, that by the calibration, and
    the pages of each kind.
    """

    def __init__(self, file, pages, problem, plan, exact, calibration):
        self._problem, self._plan = problem, plan
        self._exact, self._calibration = exact, calibration
        self.unknown, self.hosts = pages.unknown, _flagged(file)
        self._weight = np.where(self.unknown, 0.0, problem.importance)
        uncrawled = (plan.crawl_rate == 0) & ~pages.kinds["gone"]
        self._masks = pages.kinds | {"uncrawled": uncrawled}
        self.kinds = {kind: _none() for kind in (*self._masks, "suspect")}
        self._sums = np.zeros(4)

    def add(self, log, here, now):
        """Add the pages of a batch, their slice, with their freshness in the log."""
        weight, crawl_rate = self._weight[here], self._plan.crawl_rate[here]
        known, calibrated = ~np.isnan(now), 0.0
        if self._calibration is not None:
            rates = self._problem.change_rate[here], crawl_rate
            calibrated = self._calibration.freshness(*rates) @ weight
        compared = self._exact[here][known] @ weight[known]
        now = now[known] @ weight[known]
        self._sums += now, compared, weight[known].sum(), calibrated
        masks = {kind: pages[here] for kind, pages in self._masks.items()}
        if self.hosts:
            flagged = pc.is_in(log["host"], pa.array(self.hosts))
            masks["suspect"] = flagged.to_numpy(False)
        for kind, pages in masks.items():
            _count(self.kinds[kind], log["url"], pages, crawl_rate)
        self.kinds["suspect"]["first"] = self.hosts[:_SHOWN]

    def means(self):
        """Mean freshness in the log, of the schedule there, and by the calibration."""
        now, compared, known, calibrated = self._sums
        with np.errstate(invalid="ignore"):  # NaN if no page was fetched, or none twice
            means = now / known, compared / known, calibrated / self._weight.sum()
        now, compared, calibrated = (each.item() for each in means)
        return now, compared, None if self._calibration is None else calibrated


def _write(out, file, problem, plan, fresh, totals):
    """Write the schedule batch by batch, and add each batch to the totals.

    URLs and crawls are read from the file once more, to hold only a batch. A thread
    writes one batch while the next one is computed.
    """
    names = ["url", *_LOG_COLUMNS, *(["host"] if totals.hosts else [])]
    start, writing = 0, None
    with ThreadPoolExecutor(1) as thread:
        for log in file.batches(names):
            here = slice(start, start := start + log.num_rows)
            columns = _outcome(problem, plan, fresh, log, here)
            now = columns["freshness_now"]
            totals.add(log, here, now)
            unknown = totals.unknown[here]
            columns["freshness_now"] = pa.array(now, mask=unknown | np.isnan(now))
            columns["freshness"] = pa.array(columns["freshness"], mask=unknown)
            if writing is not None:
                writing.result()  # two tables in memory at most
            writing = thread.submit(out.write, pa.table({"url": log["url"]} | columns))
        writing.result()


def _count(counted, url, pages, crawl_rate):
    """Add pages of a batch to those of a kind, their crawls, and the first URLs."""
    rows = np.flatnonzero(pages)
    counted["pages"] += rows.size
    counted["crawls"] += crawl_rate[rows].sum().item()
    more = rows[: _SHOWN - len(counted["first"])]
    counted["first"] += url.take(pa.array(more)).to_pylist()


def _flagged(file):
    """Hosts that `estimate` flagged, those with the most pages first."""
    if "host" not in file.names:
        return []
    flagged = file.metadata.get("suspects", ())
    return list(dict.fromkeys(each["host"] for each in flagged))


def _calibration(file, policy):
    """The `Calibration` in the metadata of a file of rates, or None and why."""
    if policy != "interval":
        return None, f"this needs crawls at equal intervals, not policy {policy!r}"
    if "calibration" not in file.metadata:
        return None, "the rates lack the metadata of `recrawl estimate`"
    if file.metadata["calibration"] is None:
        return None, f"the log has fewer than {LEAST_BITS} bits to measure it on"
    return Calibration.from_dict(file.metadata["calibration"]), ""


def _outcome(problem, plan, fresh, log, here):
    """Columns of a schedule, of a batch of pages."""
    change_rate, crawl_rate = problem.change_rate[here], plan.crawl_rate[here]
    log = pa.table(log)
    n, first, last, now = (_column(log, name) for name in _LOG_COLUMNS)
    days = np.nan_to_num((last - first) / _DAY)
    threshold = plan.best.threshold
    with np.errstate(divide="ignore", invalid="ignore"):
        # 0 without dates of crawls: then a page counts as not crawled so far
        rate_now = np.where(days > 0, n / days, 0.0)
        wait = 1 / crawl_rate if threshold is None else threshold[here]
    wait = np.where((crawl_rate > 0) & (wait < _LONGEST_WAIT), wait, np.nan)
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
