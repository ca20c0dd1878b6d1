"""A schedule for a bandwidth."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paperlib import allocation, checks, freshness
from paperlib.crawl_log.output import _check_absent, _parquet
from paperlib.signals import SignalledPages


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `schedule` found.

    bandwidth : float, crawls a day
    freshness_now, freshness : expected freshness of the crawls of the log, if they go on at equal intervals, and of the schedule, in [0, 1]
    multiplier : what one more crawl a day adds to the freshness
    worth : array, shape (n, 2), crawls a day and expected freshness at multiples of the bandwidth, from a sample of pages, without limits
        of hosts
    """

    bandwidth: float
    freshness_now: float
    freshness: float
    multiplier: float
    worth: np.ndarray


def schedule(
    rates, output, bandwidth, *, policy="interval", per_host=None, force=False
):
    """Crawl rates and due times for a bandwidth, from what `estimate` wrote, as a Parquet file of one row a page, in the same order.

    Parameters
    ----------
    rates : path of a Parquet file
        Columns url, change_rate (1/day); optional importance, host, gone, n_crawls, first_crawl, last_crawl.
    output : path of the Parquet file to write
        url, crawl_rate (1/day), due (last_crawl + 1 / crawl_rate: in the past if overdue, the earliest first; null where it is never),
        freshness_now (at the pace of the log), freshness (at crawl_rate). Pages that are gone get no crawls.
    bandwidth : float, crawls a day
    policy : "interval" (`allocation.optimal_interval`), "poisson" (`allocation.optimal_poisson`) or "thresholds"
        (`allocation.optimal_thresholds`, with columns recall and false_rate, 1/day; then there is a column threshold, days, and due is when
        the time alone makes the page due)
    per_host : float, or mapping from host to float, crawls a day, optional
        What each host, or those named, allow (`allocation.polite`).
    force : bool
        Write over an output that exists.

    Returns
    -------
    Schedule

    Raises
    ------
    FileExistsError, FileNotFoundError, ValueError
    """
    bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    if policy not in _POLICIES:
        raise ValueError(
            f"policy must be one of {', '.join(_POLICIES)}, got {policy!r}"
        )
    _check_absent(output, force)
    try:
        file = pq.ParquetFile(rates)
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {rates}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"rates must be a Parquet file, got {rates}: {error}"
        ) from None
    more = (
        ("recall", "false_rate")
        if policy == "thresholds"
        else ()
        if per_host is None
        else ("host",)
    )
    named = file.schema_arrow.names
    for name in ("url", "change_rate", *more):
        if name not in named:
            raise ValueError(
                f"rates must have a column {name!r}, got {', '.join(named)}"
            )
    if not file.metadata.num_rows:
        raise ValueError("rates must hold at least one page, got none")
    columns = _columns(
        file.read(
            columns=[
                name
                for name in ("change_rate", "importance", "gone", *more)
                if name in named
            ]
        )
    )
    change_rate, importance = (
        columns["change_rate"],
        np.where(columns.pop("gone"), 0.0, columns.pop("importance")),
    )
    if not importance.any():
        raise ValueError(
            f"rates must hold a page with importance that is not gone, got none of {importance.size}"
        )
    plan = _plan(policy, columns, importance, bandwidth, per_host)
    few = slice(None, None, -(-change_rate.size // 100_000))  # a sample
    share, weight = importance[few].size / change_rate.size, importance[few].copy()
    sample = {
        name: columns[name][few].copy()
        for name in columns.keys() & {"change_rate", "recall", "false_rate"}
    }
    worth = [
        (
            factor * bandwidth,
            _plan(policy, sample, weight, factor * bandwidth * share, None).freshness,
        )
        for factor in _FACTORS
    ]
    with _parquet(output, force) as out, ThreadPoolExecutor(1) as thread:
        start, now, written = 0, 0.0, None
        more = [
            name for name in ("n_crawls", "first_crawl", "last_crawl") if name in named
        ]
        for batch in file.iter_batches(_BATCH, columns=["url", *more]):
            here = slice(start, start := start + batch.num_rows)
            crawl_rate, threshold = (
                None if values is None else values[here]
                for values in (plan.crawl_rate, plan.threshold)
            )
            added = _added(
                policy,
                _columns(pa.table(batch.select(more))),
                change_rate[here],
                crawl_rate,
                threshold,
            )
            now += added["freshness_now"] @ importance[here]
            if written is not None:
                written.result()
            written = thread.submit(out.write, pa.table({"url": batch["url"]} | added))
        written.result()
        total = importance.sum()
        found = Schedule(
            bandwidth,
            (now / total).item(),
            float(plan.freshness),
            float(plan.multiplier) / total,
            np.array(worth, dtype=float),
        )
        out.describe(asdict(found) | {"policy": policy, "worth": found.worth.tolist()})
    return found


_DAY = np.timedelta64(1, "D")
_POLICIES = ("interval", "poisson", "thresholds")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_BATCH = 1_000_000  # pages


def _columns(table):
    """The columns of a table of rates as arrays, with what stands in for those that are optional."""
    never = np.datetime64("NaT", "us")
    columns = {
        "importance": 1.0,
        "gone": False,
        "n_crawls": 0.0,
        "first_crawl": never,
        "last_crawl": never,
    }
    columns = {
        name: np.broadcast_to(value, table.num_rows) for name, value in columns.items()
    }
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            columns[name] = column.dictionary_encode().combine_chunks()
        elif pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.timestamp("us")).to_numpy()
        else:
            columns[name] = column.to_numpy()
    return columns


def _added(policy, columns, change_rate, crawl_rate, threshold):
    """What a schedule says of each page."""
    days = np.nan_to_num((columns["last_crawl"] - columns["first_crawl"]) / _DAY)
    with np.errstate(divide="ignore", invalid="ignore"):
        pace = np.where(days > 0, columns["n_crawls"] / days, 0.0)
        wait = np.where(
            crawl_rate > 0, 1 / crawl_rate if threshold is None else threshold, np.inf
        )
    return {
        "crawl_rate": crawl_rate,
        "due": _due(columns["last_crawl"], wait),
        "freshness_now": freshness.interval(change_rate, pace),
        "freshness": (freshness.poisson if policy == "poisson" else freshness.interval)(
            change_rate, crawl_rate
        ),
    } | ({} if threshold is None else {"threshold": threshold})


def _plan(policy, columns, importance, bandwidth, per_host):
    change_rate = columns["change_rate"]
    if policy == "thresholds":
        if per_host is not None:
            raise ValueError(
                "per_host must be None for policy 'thresholds', which has no limits for hosts"
            )
        pages = SignalledPages(
            change_rate, importance, columns["recall"], columns["false_rate"]
        )
        return allocation.optimal_thresholds(pages, bandwidth)
    if per_host is not None:
        return _polite(policy, columns, importance, bandwidth, per_host)
    return getattr(allocation, f"optimal_{policy}")(change_rate, importance, bandwidth)


def _polite(policy, columns, importance, bandwidth, per_host):
    labels, named = (
        columns["host"].dictionary.to_pylist(),
        isinstance(per_host, Mapping),
    )
    for limit in per_host.values() if named else [per_host]:
        if not limit >= 0:
            raise ValueError(f"per_host must be non-negative, got {per_host!r}")
    if named:
        unknown = sorted(per_host.keys() - set(labels))
        if unknown:
            raise ValueError(
                f"per_host must name hosts that have pages, got {len(unknown)} without: {unknown[:5]}"
            )
        per_host = {labels.index(name): limit for name, limit in per_host.items()}
    model = freshness.poisson if policy == "poisson" else freshness.interval
    return allocation.polite(
        columns["change_rate"],
        importance,
        bandwidth,
        np.asarray(columns["host"].indices),
        per_host,
        model=model,
    )


def _due(last_crawl, wait):
    """When the wait is over, as Arrow timestamps; null where it never is, or lies beyond the years that those have."""
    days = np.where(wait < 365_000, wait, 0.0)
    due = last_crawl + (days * 86_400_000_000).astype("timedelta64[us]")
    return pa.array(
        due, pa.timestamp("us", "UTC"), mask=np.isnat(last_crawl) | (wait >= 365_000)
    )
