"""Your own crawl log: change rates with intervals, a schedule for a budget, and what the crawler loses today. Times in days."""

import contextlib
import functools
import json
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paperlib import __version__, _checks, _dask, _log, allocation, estimators, freshness, policies, simulate
from paperlib._files import replacing
from paperlib._log import BadRowsWarning  # noqa: F401 (public here)
from paperlib.priors import DegeneratePriorWarning, FakeIntervals
from paperlib.processes import History, join
from paperlib.signals import SignalledPages

_SAMPLE = 2000  # pages from which the prior is learnt and on which estimators are compared
_BINS = 64  # of the state, to a doubling of the interval
_DAY = np.timedelta64(1, "D")


# ---------------------------------------------------------------- estimate


def _mle(history, prior):
    return estimators.mle(history, edges="substitute")


def _moments(history, prior):
    never, always = (history.total(bits) == 0 for bits in (history.changed, ~history.changed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
        return np.where(never | always, _mle(history, prior), estimators.moment_matching(history))


ESTIMATORS = {
    "prior": lambda history, prior: prior.estimate(history),
    "mle": _mle,
    "moment_matching": _moments,
    "naive": lambda history, prior: estimators.naive(history),
}


@dataclass(frozen=True)
class Estimates:
    """What `estimate` did.

    counts : number of rows used ("rows", of which some are "repeated" or disagree with another one), and left out, by reason
    n_pages : int
    estimator, why : which estimator, and why
    changed, unchanged : the two fake intervals of the prior, days
    """

    counts: dict
    n_pages: int
    estimator: str
    why: str
    changed: float
    unchanged: float


def estimate(path, output, *, state=None, estimator=None, level=0.95, force=False, memory="1GiB", dask=None):
    """Change rates of the pages of a log, with confidence intervals, as a Parquet file of one row a page.

    The first crawl of a URL makes it known, each later one is an interval and a bit. Rows whose `status` is given and neither 2xx nor 304
    are counted and left out; a page whose last row has status 404 or 410 is `gone`. Crawls of a page at one time count as one, which found
    a change if one of them did.

    Parameters
    ----------
    path : path of a CSV or TSV (also gzipped) or Parquet file, or of a folder of them
        Columns url, time (ISO 8601, without a zone UTC; or a number since 1970, in seconds, milli-, micro- or nanoseconds by its size) and
        changed (true, yes, 1 or the like); optional importance (the last one counts, else 1), host (else that of the URL) and status. Rows
        and columns in any order.
    output : path of the Parquet file to write
        url, host, importance, n_crawls (with an interval), n_changed, n_failed, first_crawl, last_crawl, gone, change_rate (1/day), low and
        high (`estimators.likelihood_interval`), degenerate ("never" or "always" changed, or null), serial_score, and pattern ("bursty" or
        "regular" where `estimators.serial_score` is beyond 3, or null). The metadata "paperlib" are `Estimates` as JSON.
    state : path, optional
        What earlier logs left: read if it is there, and written anew. Rows not after a page's last one are left out, so that none counts
        twice. Counts are those of all logs together; rates and limits too, to a relative 1e-4 (at most 3e-5 off was measured, on uniform,
        exponential and lognormal intervals), for intervals of one page and bit that differ by less than 1.1% are kept as their mean. The
        score is summed log by log, and the last bit of a page that is not in this log is any of its bits.
    estimator : "prior", "mle", "moment_matching" or "naive", optional
        "prior" is the posterior mode under two fake intervals that are learnt from the log (`FakeIntervals.learn`), for pages of few
        crawls; the others have the substitutes of `estimators.mle`. By default "prior", unless another predicts the last bit of
        pages from those before better, by two standard errors. A page without an interval gets the mode of the prior.
    level : float in (0, 1)
    force : bool
        Write over an output that exists.
    memory : str
        What the database may use to sort, such as "1GiB"; larger logs are sorted in the system's folder for temporary files. It needs some
        50MiB, and 10MiB for each core; the rest of the process needs some 700MiB more.
    dask : str, optional
        The address of a Dask scheduler such as "tcp://10.0.0.5:8786", whose workers do the same: each of their threads reads all of the log
        and keeps a part of the pages, by a hash of the URL, in `memory` of its own. They must have the file system of this process, for all
        paths, and this version of paperlib; parts lie beside the output until it is written. A lost worker's part is done again. One
        thread a worker is best.

    Returns
    -------
    Estimates

    Warns
    -----
    BadRowsWarning

    Raises
    ------
    ImportError
        `dask` without the package distributed.
    FileExistsError
        An output that exists, without `force`.
    FileNotFoundError, ValueError
        No such log; a file of another kind, empty or without a column that is needed; no row that can be used; an unknown estimator; a
        state that is none; no scheduler at `dask`, or workers of another version.
    OSError
        No space left; outputs are whole or as they were.
    RuntimeError
        Worker after worker lost, as for want of memory.
    """
    level = _checks.probability("level", level)
    if estimator is not None and estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    known = state if state is not None and Path(state).exists() else None
    _check_absent(output, force)
    opened = _log.opened if dask is None else functools.partial(_dask.opened, dask, Path(output).parent)
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(opened(path, state=known, memory=memory))
        # the state takes its place after the rates, so that a log whose rates could not be written counts when it is tried again
        states = [] if state is None else [stack.enter_context(_parquet(state, True))]
        rates = stack.enter_context(_parquet(output, force))
        sample = log.sample(_SAMPLE)
        prior, chosen, why = _choose(join(_expanded(sample.page), sample.history), estimator)
        for tables in log.map(functools.partial(_tables, prior=prior, estimator=chosen, level=level, with_state=state is not None)):
            for writer, table in zip([rates, *states], tables, strict=True):
                writer.write(table)
        found = Estimates(log.counts, log.n_pages, chosen, why, prior.changed, prior.unchanged)
        rates.describe(asdict(found))
    return found


def _tables(batch, *, prior, estimator, level, with_state):
    """Rates of the pages of a batch, and what the state holds of them; one after the other, for they are large."""
    history = join(_expanded(batch.page), batch.history)
    sums = [np.asarray(batch.page[name]) for name in ("lag", "lag_squares")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)  # at the limits 0 and inf bits are certain and score nothing
        rate = estimators.mle(history)
    sums = [old + new for old, new in zip(sums, estimators._serial_sums(batch.history, rate), strict=True)]
    yield _rates(batch.page, history, ESTIMATORS[estimator](history, prior), prior, level, sums)
    if with_state:
        yield _state(batch.page, history, sums)


def _choose(sample, estimator):
    """The prior that the sample teaches, the estimator that predicts its last bits best, and why it is that one."""
    prior = _learn(sample)
    if estimator is not None:
        return prior, estimator, "asked for"
    n = sample.n_crawls
    last = sample.offsets[1:][n >= 2] - 1
    if not last.size:
        return prior, "prior", "no page has two intervals to compare estimators on"
    kept = np.ones(sample.interval.size, dtype=bool)
    kept[last] = False
    before = History(sample.interval[kept], sample.changed[kept], np.append(0, np.cumsum(n - (n >= 2))))
    loss = {name: log_loss(rule(before, prior)[n >= 2], sample.interval[last], sample.changed[last]) for name, rule in ESTIMATORS.items()}
    order = sorted(loss, key=lambda name: loss[name].mean())
    gain = loss["prior"] - loss[order[0]]
    best = order[0] if gain.mean() > 2 * gain.std() / np.sqrt(gain.size) else "prior"
    listed = ", ".join(f"{name} {loss[name].mean():.4f}" for name in order)
    return prior, best, f"log loss of the last bit of {last.size} pages, where another must be better by two standard errors: {listed}"


def log_loss(change_rate, interval, changed):
    """-log of the probability that a rate gave to a bit, kept within 1e-4 of 0 and 1: array, broadcast; rates in 1/time."""
    p = np.clip(-np.expm1(-np.multiply(change_rate, interval)), 1e-4, 1 - 1e-4)
    return -np.log(np.where(changed, p, 1 - p))


def _learn(sample):
    crawled = sample.n_crawls > 0
    if crawled.sum() < 2:
        one = sample.interval.mean() if sample.interval.size else 1.0
        return FakeIntervals(one, one)
    rate = _mle(sample, None)[crawled]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegeneratePriorWarning)  # it is written down
        return FakeIntervals.learn(sample, np.geomspace(rate.min() / 10, rate.max() * 10, 500))


def _first(history, n):
    interval, changed, offsets = history.ragged()
    offsets = offsets[: n + 1]
    return History(interval[: offsets[-1]], changed[: offsets[-1]], offsets)


def _rates(page, history, rate, prior, level, sums):
    n, n_changed = history.n_crawls, history.total(history.changed).astype(int)
    low, high = estimators.likelihood_interval(history, level=level)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = sums[0] / np.sqrt(np.maximum(sums[1], np.maximum(n - 1, 0)))
    named = {
        "change_rate": np.where(n > 0, rate, prior.mode),
        "low": np.where(n > 0, low, 0.0),
        "high": np.where(n > 0, high, np.inf),
        "degenerate": _either((n > 0) & (n_changed == 0), "never", (n > 0) & (n_changed == n), "always"),
        "serial_score": pa.array(score, mask=np.isnan(score)),
        "pattern": _either(score > 3, "bursty", score < -3, "regular"),
    }
    table = page.select(["url", "host", "importance", "n_failed", "first_crawl", "last_crawl", "gone"])
    for name, column in {"n_crawls": n, "n_changed": n_changed, **named}.items():
        table = table.append_column(name, pa.array(column))
    return table


def _either(first, name, second, other):
    return pa.array(np.select([first, second], [name, other], ""), mask=~(first | second))


def _expanded(page):
    """The crawls that a state stands for: each bin's mean interval, as often as it was crawled."""
    lists = page["n"].combine_chunks()
    interval, bits, n = (np.asarray(page[name].combine_chunks().flatten()) for name in ("interval", "bits", "n"))
    ends = np.append(0, np.cumsum(n))[np.append(0, np.cumsum(pc.list_value_length(lists)))]
    return History(np.repeat(interval, n), np.repeat(bits, n), ends)


def _state(page, history, sums):
    """What a later log needs: of each page, crawls whose interval and bit are about the same as their number and mean interval."""
    owner = np.repeat(np.arange(page.num_rows), history.n_crawls)
    shortest = np.minimum.reduceat(np.append(history.interval, np.inf), history.offsets[:-1])[owner]  # is what edges="substitute" needs
    bin_ = np.where(history.interval == shortest, -np.inf, np.floor(np.log2(history.interval) * _BINS))
    order = np.lexsort((history.changed, bin_, owner))
    keys = [key[order] for key in (owner, bin_, history.changed)]
    starts = np.flatnonzero(np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0))[: owner.size])
    n = np.diff(np.append(starts, owner.size))
    mean = np.add.reduceat(np.append(history.interval[order], 0.0), starts) / n
    offsets = pa.array(np.searchsorted(owner[order][starts], np.arange(page.num_rows + 1)), pa.int32())
    table = page.select(["url", "host", "importance", "first_crawl", "last_crawl", "last_row", "gone", "n_failed"])
    for name, column in {"interval": mean, "bits": history.changed[order][starts], "n": n}.items():
        table = table.append_column(name, pa.ListArray.from_arrays(offsets, pa.array(column)))
    for name, column in zip(("lag", "lag_squares"), sums, strict=True):
        table = table.append_column(name, pa.array(column))
    return table


# ---------------------------------------------------------------- files


class _Writer:
    """Writes tables to a Parquet file, which is there when all is written, and not before."""

    def __init__(self, path):
        self._path, self._writer = path, None

    def write(self, table):
        if self._writer is None:
            # limits of URLs help no reader, and cost as much as the rest of their encoding
            limits = [name for name in table.column_names if name != "url"]
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="snappy", use_dictionary=False, write_statistics=limits)
        self._writer.write_table(table)

    def describe(self, what):
        self._writer.add_key_value_metadata({"paperlib": json.dumps({"version": __version__} | what)})

    def close(self):
        if self._writer is not None:
            self._writer.close()


def _check_absent(path, force):
    if Path(path).exists() and not force:
        raise FileExistsError(f"{path} exists; say --force (force=True) to write over it")


@contextlib.contextmanager
def _parquet(path, force):
    _check_absent(path, force)
    with replacing(path) as temporary, contextlib.closing(_Writer(temporary)) as writer:
        yield writer


# ---------------------------------------------------------------- schedule


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


def schedule(rates, output, bandwidth, *, policy="interval", per_host=None, force=False):
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
    bandwidth = _checks.scalar(_checks.positive, "bandwidth", bandwidth)
    if policy not in _POLICIES:
        raise ValueError(f"policy must be one of {', '.join(_POLICIES)}, got {policy!r}")
    _check_absent(output, force)
    try:
        file = pq.ParquetFile(rates)
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {rates}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"rates must be a Parquet file, got {rates}: {error}") from None
    more = ("recall", "false_rate") if policy == "thresholds" else () if per_host is None else ("host",)
    named = file.schema_arrow.names
    for name in ("url", "change_rate", *more):
        if name not in named:
            raise ValueError(f"rates must have a column {name!r}, got {', '.join(named)}")
    if not file.metadata.num_rows:
        raise ValueError("rates must hold at least one page, got none")
    columns = _columns(file.read(columns=[name for name in ("change_rate", "importance", "gone", *more) if name in named]))
    change_rate, importance = columns["change_rate"], np.where(columns.pop("gone"), 0.0, columns.pop("importance"))
    if not importance.any():
        raise ValueError(f"rates must hold a page with importance that is not gone, got none of {importance.size}")
    plan = _plan(policy, columns, importance, bandwidth, per_host)
    few = slice(None, None, -(-change_rate.size // 100_000))  # a sample
    share, weight = importance[few].size / change_rate.size, importance[few].copy()
    sample = {name: columns[name][few].copy() for name in columns.keys() & {"change_rate", "recall", "false_rate"}}
    worth = [(factor * bandwidth, _plan(policy, sample, weight, factor * bandwidth * share, None).freshness) for factor in _FACTORS]
    with _parquet(output, force) as out, ThreadPoolExecutor(1) as thread:
        start, now, written = 0, 0.0, None
        more = [name for name in ("n_crawls", "first_crawl", "last_crawl") if name in named]
        for batch in file.iter_batches(_BATCH, columns=["url", *more]):
            here = slice(start, start := start + batch.num_rows)
            crawl_rate, threshold = (None if values is None else values[here] for values in (plan.crawl_rate, plan.threshold))
            added = _added(policy, _columns(pa.table(batch.select(more))), change_rate[here], crawl_rate, threshold)
            now += added["freshness_now"] @ importance[here]
            if written is not None:
                written.result()
            written = thread.submit(out.write, pa.table({"url": batch["url"]} | added))
        written.result()
        total = importance.sum()
        found = Schedule(
            bandwidth, (now / total).item(), float(plan.freshness), float(plan.multiplier) / total, np.array(worth, dtype=float)
        )
        out.describe(asdict(found) | {"policy": policy, "worth": found.worth.tolist()})
    return found


_POLICIES = ("interval", "poisson", "thresholds")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_BATCH = 1_000_000  # pages


def _columns(table):
    """The columns of a table of rates as arrays, with what stands in for those that are optional."""
    never = np.datetime64("NaT", "us")
    columns = {"importance": 1.0, "gone": False, "n_crawls": 0.0, "first_crawl": never, "last_crawl": never}
    columns = {name: np.broadcast_to(value, table.num_rows) for name, value in columns.items()}
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
        wait = np.where(crawl_rate > 0, 1 / crawl_rate if threshold is None else threshold, np.inf)
    return {
        "crawl_rate": crawl_rate,
        "due": _due(columns["last_crawl"], wait),
        "freshness_now": freshness.interval(change_rate, pace),
        "freshness": (freshness.poisson if policy == "poisson" else freshness.interval)(change_rate, crawl_rate),
    } | ({} if threshold is None else {"threshold": threshold})


def _plan(policy, columns, importance, bandwidth, per_host):
    change_rate = columns["change_rate"]
    if policy == "thresholds":
        if per_host is not None:
            raise ValueError("per_host must be None for policy 'thresholds', which has no limits for hosts")
        pages = SignalledPages(change_rate, importance, columns["recall"], columns["false_rate"])
        return allocation.optimal_thresholds(pages, bandwidth)
    if per_host is not None:
        return _polite(policy, columns, importance, bandwidth, per_host)
    return getattr(allocation, f"optimal_{policy}")(change_rate, importance, bandwidth)


def _polite(policy, columns, importance, bandwidth, per_host):
    labels, named = columns["host"].dictionary.to_pylist(), isinstance(per_host, Mapping)
    for limit in per_host.values() if named else [per_host]:
        if not limit >= 0:
            raise ValueError(f"per_host must be non-negative, got {per_host!r}")
    if named:
        unknown = sorted(per_host.keys() - set(labels))
        if unknown:
            raise ValueError(f"per_host must name hosts that have pages, got {len(unknown)} without: {unknown[:5]}")
        per_host = {labels.index(name): limit for name, limit in per_host.items()}
    model = freshness.poisson if policy == "poisson" else freshness.interval
    return allocation.polite(columns["change_rate"], importance, bandwidth, np.asarray(columns["host"].indices), per_host, model=model)


def _due(last_crawl, wait):
    """When the wait is over, as Arrow timestamps; null where it never is, or lies beyond the years that those have."""
    days = np.where(wait < 365_000, wait, 0.0)
    due = last_crawl + (days * 86_400_000_000).astype("timedelta64[us]")
    return pa.array(due, pa.timestamp("us", "UTC"), mask=np.isnat(last_crawl) | (wait >= 365_000))


# ---------------------------------------------------------------- what the log did, and what it foretells


def compare(path, *, n_pages=10_000, horizon=None, rng=None, memory="1GiB"):
    """Expected freshness of what the log did and of other rules with as many crawls a day, on pages drawn at random from the log.

    Change rates are those that `estimate` would give, and taken for true, which flatters the rules that use them, "proportional" and
    "optimal", most where pages have few crawls; `backtest` tells how well rates are known. "the log" is the mean of
    (1 - exp(-x)) / x, x = change_rate interval, over the time between its crawls. `policies.Nutch` and `policies.StormCrawler` run by due
    date in a simulated world, from a fresh copy, with the bandwidth of the log; the second half of the time counts.

    Parameters
    ----------
    path : as in `estimate`
    n_pages : int
        Of the log, at most, those with two crawls or more.
    horizon : float, days, optional
        Of the simulation; by default 200 times the mean time between crawls of a page, and at least a year.
    rng : seed or numpy Generator
    memory : as in `estimate`

    Returns
    -------
    dict of float
        Freshness weighted by importance, in [0, 1], by rule, the worst first.

    Raises
    ------
    ValueError
        As `estimate`; no page with two crawls, or none that changed.
    """
    n_pages = _checks.count("n_pages", n_pages)
    with _log.opened(path, memory=memory) as log:
        page, history = (batch := log.sample(n_pages)).page, batch.history
    prior, chosen, _ = _choose(_first(history, _SAMPLE), None)
    rate = ESTIMATORS[chosen](history, prior)
    crawled = history.n_crawls > 0
    if not rate[crawled].any():
        raise ValueError(f"{path} must hold a page that was crawled twice, and one that changed, got none")
    days, weight = history.total(history.interval)[crawled], np.asarray(page["importance"])[crawled]
    fresh = freshness.crawled(history, np.nan_to_num(rate))[crawled]
    rate, bandwidth = rate[crawled], (history.n_crawls[crawled] / days).sum()
    found = {"the log": freshness.mean(fresh, weight).item()}
    for name in ("uniform", "proportional"):
        found[name] = float(getattr(allocation, name)(rate, weight, bandwidth, model=freshness.interval).freshness)
    found["optimal"] = float(allocation.optimal_interval(rate, weight, bandwidth).freshness)
    horizon = max(200 * rate.size / bandwidth, 365.0) if horizon is None else _checks.scalar(_checks.positive, "horizon", horizon)
    world = simulate.draw_world(SignalledPages(rate, weight, 0.0, 0.0), horizon, rng=rng)
    for name in ("Nutch", "StormCrawler"):
        run = simulate.crawl(world, getattr(policies, name)(), bandwidth, borders=[horizon / 2, horizon])
        found[name] = float(run.accuracy)
    return dict(sorted(found.items(), key=lambda item: item[1]))


@dataclass(frozen=True, eq=False)
class Backtest:
    """How well rates from the first part of a log foretell the bits of the rest.

    n_bits : int, foretold
    log_loss : dict of float, `log_loss` a bit by estimator, the best first
    stderr : dict of float, standard errors of the differences from the best, over pages
    calibration : dict of array, shape (n_bins, 3): mean foretold probability of a change, share of crawls that found one, number of crawls
    """

    n_bits: int
    log_loss: dict
    stderr: dict
    calibration: dict


def backtest(path, *, share=0.8, n_bins=10, memory="1GiB"):
    """Estimate on the first part of a log and foretell the bits of the rest, by every estimator of `estimate` and two simple rules.

    "one rate" gives all pages the MLE of all of them together; "Nutch" the rate at which its interval, after the bits so far, would stay
    as it is. Pages without an interval in the first part are left out.

    Parameters
    ----------
    path, memory : as in `estimate`
    share : float in (0, 1)
        Of the rows of the log, the first in time.
    n_bins : int
        Of the calibration, of equal width in probability.

    Returns
    -------
    Backtest

    Raises
    ------
    ValueError
        As `estimate`; no bit to foretell.
    """
    share, n_bins = _checks.probability("share", share), _checks.count("n_bins", n_bins)
    rules = ESTIMATORS | {"Nutch": lambda history, prior: _nutch_rate(history)}
    totals, table = [], {}
    with _log.opened(path, memory=memory) as log:
        cut = log.time_at(share)
        sample, *_ = _split(log.sample(_SAMPLE), cut)
        prior, one = _learn(sample), _mle(History(*sample.ragged()[:2], [0, sample.interval.size]), None)
        for batch in log.batches():
            before, after, owner = _split(batch, cut)
            rates = {name: rule(before, prior) for name, rule in rules.items()} | {"one rate": np.full(before.shape, one)}
            table_here = np.zeros((len(rates), before.shape[0]))
            for k, (name, rate) in enumerate(rates.items()):
                loss = log_loss(rate[owner], after.interval, after.changed)
                table_here[k] = np.bincount(owner, loss, minlength=before.shape[0])
                p = -np.expm1(-rate[owner] * after.interval)
                bin_ = np.minimum((p * n_bins).astype(int), n_bins - 1)
                counts = [np.bincount(bin_, weights, minlength=n_bins) for weights in (p, after.changed, np.ones(p.size))]
                table[name] = table.get(name, 0) + np.stack(counts, axis=1)
            totals.append(np.vstack([table_here, np.bincount(owner, minlength=before.shape[0])]))
    *losses, bits = np.concatenate(totals, axis=1)
    n = int(bits.sum())
    if not n:
        raise ValueError(f"{path} must hold a page with intervals before and after {share:g} of its rows, got none")
    mean = dict(sorted(((name, loss.sum() / n) for name, loss in zip(table, losses, strict=True)), key=lambda item: item[1]))
    by_name = dict(zip(table, losses, strict=True))
    best = by_name[next(iter(mean))]
    # pages are independent: the variance of a ratio of sums over them
    stderr = {name: float(np.sqrt((((by_name[name] - best) - bits * (mean[name] - best.sum() / n)) ** 2).sum()) / n) for name in mean}
    with np.errstate(invalid="ignore"):
        calibration = {
            name: np.column_stack([counts[:, 0] / counts[:, 2], counts[:, 1] / counts[:, 2], counts[:, 2]])
            for name, counts in table.items()
        }
    return Backtest(n, {name: float(loss) for name, loss in mean.items()}, stderr, calibration)


def _split(batch, cut):
    """Histories before and after a time, of pages that have intervals before it; of the crawls after, which page each is of."""
    interval, changed, offsets = batch.history.ragged()
    early = batch.time <= cut
    n = np.append(0, np.cumsum(early))[offsets]
    owner = np.repeat(np.arange(n.size - 1), np.diff(offsets))
    late = ~early & (np.diff(n) > 0)[owner]
    after = History(interval[late], changed[late], [0, np.count_nonzero(late)])
    return History(interval[early], changed[early], n), after, owner[late]


def _nutch_rate(history):
    """The change rate at which Nutch's interval, after these bits, is as likely to grow as to shrink."""
    rule = policies.Nutch()
    _, changed, offsets = history.ragged()
    now = np.full(history.shape, rule.initial)
    for k in range(int(history.n_crawls.max(initial=0))):
        at = offsets[:-1] + k
        some = at < offsets[1:]
        now[some] = np.clip(now[some] * np.where(changed[at[some]], rule.shrink, rule.grow), *rule.limits)
    balance = np.log(rule.grow) / np.log(rule.grow / rule.shrink)  # the share of changes that leaves it as it is
    return -np.log1p(-balance) / now
