"""A schedule for a bandwidth: crawl rates and due times from change rates."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paperlib import allocation, checks, freshness
from paperlib.crawl_log.output import check_absent, parquet
from paperlib.signals import SignalledPages

__all__ = ["Schedule", "schedule"]

PAGES_PER_BATCH = 1_000_000  # written at a time: some 200 MB

# Freshness at which crawl rates are reported, by policy. A page that is
# crawled by thresholds and receives no signal is crawled at equal intervals.
_MODELS = {
    "interval": freshness.interval,
    "poisson": freshness.poisson,
    "thresholds": freshness.interval,
}
_SIGNALS = ("recall", "false_rate")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the bandwidth, to show its value
_SAMPLE = 100_000  # pages that are enough to show it
_DAY = np.timedelta64(1, "D")
_MICROSECONDS = 86_400_000_000  # in a day
_FOREVER = 365_000  # days; later times are beyond the years of a timestamp
_CRAWLED = ("n_crawls", "first_crawl", "last_crawl")
_DEFAULTS = {
    "importance": 1.0,
    "gone": False,
    "n_crawls": 0.0,
    "first_crawl": np.datetime64("NaT", "us"),
    "last_crawl": np.datetime64("NaT", "us"),
}


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `schedule` found.

    Parameters
    ----------
    bandwidth : float
        Crawls a day.
    freshness_now : float
        Expected freshness if the crawls of the log go on at equal intervals,
        in [0, 1].
    freshness : float
        Expected freshness of the schedule, in [0, 1].
    multiplier : float
        What one more crawl a day adds to the freshness.
    worth : ndarray, shape (n, 2)
        Crawls a day, at multiples of the bandwidth, and expected freshness,
        from a sample of pages, without limits of hosts.

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


def schedule(
    rates, output, bandwidth, *, policy="interval", per_host=None, force=False
):
    """Schedule crawls for a bandwidth, from the output of `estimate`.

    Parameters
    ----------
    rates : path
        Parquet file with the columns url and change_rate (1/day); optional
        importance, host, gone, n_crawls, first_crawl and last_crawl.
    output : path
        Parquet file to write, one row for each page in the same order: url,
        crawl_rate (1/day), due (last_crawl + 1 / crawl_rate: in the past if
        overdue; null where it is never), freshness_now (at the rate of the
        log) and freshness (at crawl_rate). Pages that are gone get no crawls.
    bandwidth : float
        Crawls a day.
    policy : {"interval", "poisson", "thresholds"}
        `allocation.optimal_interval`, `allocation.optimal_poisson` or
        `allocation.optimal_thresholds`. The last one needs the columns recall
        and false_rate (1/day) and writes a column threshold (days); then due
        is when the time alone makes the page due.
    per_host : float or mapping from str to float, optional
        Crawls a day that each host allows, or that those named allow
        (`allocation.polite`).
    force : bool
        Overwrite an output that exists.

    Returns
    -------
    Schedule
        Freshness before and after, and what more bandwidth would add.

    Raises
    ------
    FileExistsError
        The output exists, and `force` is false.
    FileNotFoundError
        No such file of rates.
    ValueError
        An argument out of range, limits for unknown hosts; a file of rates
        that is not Parquet, lacks a column, or has no page that counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rates, output = f"{folder}/rates.parquet", f"{folder}/plan.parquet"
    ...     columns = {"url": ["a", "b", "c"], "change_rate": [0.1, 1.0, 9.0]}
    ...     pq.write_table(pa.table(columns), rates)
    ...     found = schedule(rates, output, 2.0)
    ...     pq.read_table(output)["crawl_rate"].to_numpy().round(3)
    array([0.542, 1.458, 0.   ])
    >>> round(found.freshness, 3)
    0.546
    """
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    _check_policy(policy, per_host)
    check_absent(output, force)
    needed = _SIGNALS if policy == "thresholds" else ()
    needed += () if per_host is None else ("host",)
    file = _open(rates, ("url", "change_rate", *needed))
    columns = _read(file, needed)
    plan = _plan(policy, columns, bandwidth, per_host)
    worth = _worth(policy, columns, bandwidth)
    total = columns["importance"].sum()
    with parquet(output) as out:
        now = _write(out, file, policy, columns, plan) / total
        added = float(plan.multiplier) / total
        found = Schedule(bandwidth, now.item(), float(plan.freshness), added, worth)
        out.describe(asdict(found) | {"policy": policy, "worth": worth.tolist()})
    return found


def _check_policy(policy, per_host):
    """Raise a ValueError for an unknown policy or impossible limits."""
    if policy not in _MODELS:
        raise ValueError(f"policy must be one of {', '.join(_MODELS)}, got {policy!r}")
    if per_host is None:
        return
    if policy == "thresholds":
        raise ValueError(
            "per_host must be None for policy 'thresholds', "
            "which has no limits for hosts"
        )
    for limit in per_host.values() if isinstance(per_host, Mapping) else [per_host]:
        if not limit >= 0:
            raise ValueError(f"per_host must be non-negative, got {per_host!r}")


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


def _read(file, needed):
    """Read what decides the crawl rates; gone pages have no importance."""
    names = {"change_rate", "importance", "gone", *needed}
    table = file.read(columns=list(names))  # the file may lack some
    columns = {name: _column(table, name) for name in names - {"host"}}
    if "host" in names:
        columns["host"] = table["host"].dictionary_encode().combine_chunks()
    columns["importance"] = np.where(columns["gone"], 0.0, columns["importance"])
    if not columns["importance"].any():
        raise ValueError(
            "rates must hold a page with importance that is not gone, "
            f"got none of {columns['importance'].size}"
        )
    del columns["gone"]
    return columns


def _column(table, name):
    """Array of a column of a table, or of its default."""
    if name not in table.column_names:
        return np.broadcast_to(_DEFAULTS[name], table.num_rows)
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.to_numpy()


def _plan(policy, columns, bandwidth, per_host):
    """Optimal `allocation.Allocation` of a policy."""
    pages = columns["change_rate"], columns["importance"]
    if policy == "thresholds":
        signals = [columns[name] for name in _SIGNALS]
        return allocation.optimal_thresholds(
            SignalledPages(*pages, *signals), bandwidth
        )
    if per_host is None:
        return getattr(allocation, f"optimal_{policy}")(*pages, bandwidth)
    host, limits = np.asarray(columns["host"].indices), per_host
    if isinstance(per_host, Mapping):
        limits = _numbered(per_host, columns["host"].dictionary.to_pylist())
    return allocation.polite(*pages, bandwidth, host, limits, model=_MODELS[policy])


def _numbered(per_host, hosts):
    """Limits by number of the host instead of its name."""
    if unknown := sorted(per_host.keys() - set(hosts)):
        raise ValueError(
            "per_host must name hosts that have pages, "
            f"got {len(unknown)} without: {unknown[:5]}"
        )
    return {hosts.index(name): limit for name, limit in per_host.items()}


def _worth(policy, columns, bandwidth):
    """Freshness at multiples of the bandwidth, from every n-th page."""
    n_pages = columns["change_rate"].size
    every = -(-n_pages // _SAMPLE)
    # copies, for strided views are slow to pass over
    sample = {
        name: column[::every].copy()
        for name, column in columns.items()
        if name != "host"
    }
    share = sample["importance"].size / n_pages
    bandwidths = [factor * bandwidth for factor in _FACTORS]
    fresh = [_plan(policy, sample, b * share, None).freshness for b in bandwidths]
    return np.column_stack([bandwidths, fresh]).astype(float)


def _write(out, file, policy, columns, plan):
    """Write the schedule batch by batch.

    URLs and crawls are read from the file once more, to hold only a batch.
    Returns the sum of importance and freshness at the rate of the log. A
    thread writes one batch while the next one is computed.
    """
    decided = {"crawl_rate": plan.crawl_rate, "threshold": plan.threshold}
    names = ["url", *_CRAWLED]
    start, now, writing = 0, 0.0, None
    with ThreadPoolExecutor(1) as thread:
        for log in file.iter_batches(PAGES_PER_BATCH, columns=names):
            here = slice(start, start := start + log.num_rows)
            found = {k: v[here] for k, v in decided.items() if v is not None}
            found = _outcome(policy, log, columns["change_rate"][here], **found)
            now += found["freshness_now"] @ columns["importance"][here]
            if writing is not None:
                writing.result()  # two tables in memory at most
            writing = thread.submit(out.write, pa.table({"url": log["url"]} | found))
        writing.result()
    return now


def _outcome(policy, log, change_rate, crawl_rate, threshold=None):
    """Columns of a schedule, of pages that a log has told of."""
    n, first, last = (_column(pa.table(log), name) for name in _CRAWLED)
    days = np.nan_to_num((last - first) / _DAY)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_now = np.where(days > 0, n / days, 0.0)
        wait = 1 / crawl_rate if threshold is None else threshold
    wait = np.where((crawl_rate > 0) & (wait < _FOREVER), wait, np.nan)
    due = last + (wait * _MICROSECONDS).astype("m8[us]")  # NaT where NaN
    columns = {
        "crawl_rate": crawl_rate,
        "due": pa.array(due, pa.timestamp("us", "UTC")),  # null where NaT
        "freshness_now": freshness.interval(change_rate, rate_now),
        "freshness": _MODELS[policy](change_rate, crawl_rate),
    }
    return columns if threshold is None else columns | {"threshold": threshold}
