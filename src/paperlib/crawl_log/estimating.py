"""Change rates of the pages of a log, with confidence intervals."""

import contextlib
import functools
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paperlib import checks, estimators
from paperlib.crawl_log import cluster, reading
from paperlib.crawl_log.output import _check_absent, _parquet
from paperlib.priors import DegeneratePriorWarning, FakeIntervals
from paperlib.processes import History, join

_SAMPLE = (
    2000  # pages from which the prior is learnt and on which estimators are compared
)
_BINS = 64  # of the state, to a doubling of the interval


def _mle(history, prior):
    return estimators.mle(history, edges="substitute")


def _moments(history, prior):
    never, always = (
        history.total(bits) == 0 for bits in (history.changed, ~history.changed)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estimators.DegenerateHistoryWarning)
        return np.where(
            never | always, _mle(history, prior), estimators.moment_matching(history)
        )


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


def estimate(
    path,
    output,
    *,
    state=None,
    estimator=None,
    level=0.95,
    force=False,
    memory="1GiB",
    dask=None,
):
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
    level = checks.probability("level", level)
    if estimator is not None and estimator not in ESTIMATORS:
        raise ValueError(
            f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}"
        )
    known = state if state is not None and Path(state).exists() else None
    _check_absent(output, force)
    opened = (
        reading.opened
        if dask is None
        else functools.partial(cluster.opened, dask, Path(output).parent)
    )
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(opened(path, state=known, memory=memory))
        # the state takes its place after the rates, so that a log whose rates could not be written counts when it is tried again
        states = [] if state is None else [stack.enter_context(_parquet(state, True))]
        rates = stack.enter_context(_parquet(output, force))
        sample = log.sample(_SAMPLE)
        prior, chosen, why = _choose(
            join(_expanded(sample.page), sample.history), estimator
        )
        for tables in log.map(
            functools.partial(
                _tables,
                prior=prior,
                estimator=chosen,
                level=level,
                with_state=state is not None,
            )
        ):
            for writer, table in zip([rates, *states], tables, strict=True):
                writer.write(table)
        found = Estimates(
            log.counts, log.n_pages, chosen, why, prior.changed, prior.unchanged
        )
        rates.describe(asdict(found))
    return found


def _tables(batch, *, prior, estimator, level, with_state):
    """Rates of the pages of a batch, and what the state holds of them; one after the other, for they are large."""
    history = join(_expanded(batch.page), batch.history)
    sums = [np.asarray(batch.page[name]) for name in ("lag", "lag_squares")]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", estimators.DegenerateHistoryWarning
        )  # at the limits 0 and inf bits are certain and score nothing
        rate = estimators.mle(history)
    sums = [
        old + new
        for old, new in zip(
            sums, estimators.serial_sums(batch.history, rate), strict=True
        )
    ]
    yield _rates(
        batch.page, history, ESTIMATORS[estimator](history, prior), prior, level, sums
    )
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
    before = History(
        sample.interval[kept],
        sample.changed[kept],
        np.append(0, np.cumsum(n - (n >= 2))),
    )
    loss = {
        name: log_loss(
            rule(before, prior)[n >= 2], sample.interval[last], sample.changed[last]
        )
        for name, rule in ESTIMATORS.items()
    }
    order = sorted(loss, key=lambda name: loss[name].mean())
    gain = loss["prior"] - loss[order[0]]
    best = order[0] if gain.mean() > 2 * gain.std() / np.sqrt(gain.size) else "prior"
    listed = ", ".join(f"{name} {loss[name].mean():.4f}" for name in order)
    return (
        prior,
        best,
        f"log loss of the last bit of {last.size} pages, where another must be better by two standard errors: {listed}",
    )


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
        return FakeIntervals.learn(
            sample, np.geomspace(rate.min() / 10, rate.max() * 10, 500)
        )


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
        "degenerate": _either(
            (n > 0) & (n_changed == 0), "never", (n > 0) & (n_changed == n), "always"
        ),
        "serial_score": pa.array(score, mask=np.isnan(score)),
        "pattern": _either(score > 3, "bursty", score < -3, "regular"),
    }
    table = page.select(
        ["url", "host", "importance", "n_failed", "first_crawl", "last_crawl", "gone"]
    )
    for name, column in {"n_crawls": n, "n_changed": n_changed, **named}.items():
        table = table.append_column(name, pa.array(column))
    return table


def _either(first, name, second, other):
    return pa.array(
        np.select([first, second], [name, other], ""), mask=~(first | second)
    )


def _expanded(page):
    """The crawls that a state stands for: each bin's mean interval, as often as it was crawled."""
    lists = page["n"].combine_chunks()
    interval, bits, n = (
        np.asarray(page[name].combine_chunks().flatten())
        for name in ("interval", "bits", "n")
    )
    ends = np.append(0, np.cumsum(n))[
        np.append(0, np.cumsum(pc.list_value_length(lists)))
    ]
    return History(np.repeat(interval, n), np.repeat(bits, n), ends)


def _state(page, history, sums):
    """What a later log needs: of each page, crawls whose interval and bit are about the same as their number and mean interval."""
    owner = np.repeat(np.arange(page.num_rows), history.n_crawls)
    shortest = np.minimum.reduceat(
        np.append(history.interval, np.inf), history.offsets[:-1]
    )[owner]  # is what edges="substitute" needs
    bin_ = np.where(
        history.interval == shortest,
        -np.inf,
        np.floor(np.log2(history.interval) * _BINS),
    )
    order = np.lexsort((history.changed, bin_, owner))
    keys = [key[order] for key in (owner, bin_, history.changed)]
    starts = np.flatnonzero(
        np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0))[
            : owner.size
        ]
    )
    n = np.diff(np.append(starts, owner.size))
    mean = np.add.reduceat(np.append(history.interval[order], 0.0), starts) / n
    offsets = pa.array(
        np.searchsorted(owner[order][starts], np.arange(page.num_rows + 1)), pa.int32()
    )
    table = page.select(
        [
            "url",
            "host",
            "importance",
            "first_crawl",
            "last_crawl",
            "last_row",
            "gone",
            "n_failed",
        ]
    )
    for name, column in {
        "interval": mean,
        "bits": history.changed[order][starts],
        "n": n,
    }.items():
        table = table.append_column(
            name, pa.ListArray.from_arrays(offsets, pa.array(column))
        )
    for name, column in zip(("lag", "lag_squares"), sums, strict=True):
        table = table.append_column(name, pa.array(column))
    return table
