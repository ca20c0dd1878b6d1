"""Change rates of the pages of a log, with confidence intervals."""

import contextlib
import functools
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paperlib import checks, estimators
from paperlib.crawl_log import choosing, cluster, reading
from paperlib.crawl_log.choosing import ESTIMATORS
from paperlib.crawl_log.output import check_absent, parquet
from paperlib.crawl_log.state import compress

__all__ = ["Estimates", "estimate"]

# Columns of the rates that are those of the log's pages.
_COPIED = (
    "url",
    "host",
    "importance",
    "n_failed",
    "first_crawl",
    "last_crawl",
    "gone",
)
_PATTERN = 3  # standard deviations of the score of a Poisson page


@dataclass(frozen=True)
class Estimates:
    """What `estimate` did.

    Parameters
    ----------
    counts : dict of int
        Number of rows used ("rows", some of which are "repeated" or disagree
        with another one), and of those left out, by reason.
    n_pages : int
        Number of pages.
    estimator : str
        The estimator.
    why : str
        Why it is this one.
    changed, unchanged : float
        The two pseudo-observations of the prior, days.

    Examples
    --------
    >>> Estimates({"rows": 2}, 1, "mle", "asked for", 0.5, 2.0).counts["rows"]
    2
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
    """Estimate the change rate of each page of a log, with its interval.

    The first crawl of a URL starts its first interval; each later one ends an
    interval, with or without a change. Rows whose `status` is given and
    neither 2xx nor 304 are counted and left out; a page whose last row has
    status 404 or 410 is `gone`. Crawls of a page at one time count as one,
    which found a change if one of them did.

    Parameters
    ----------
    path : path
        A CSV or TSV (also gzipped) or Parquet file, or a folder of them.
        Columns url, time (ISO 8601, without a zone UTC; or a number since
        1970, in seconds, milli-, micro- or nanoseconds by its size) and
        changed (true, yes, 1 or the like); optional importance (the last one
        counts, else 1), host (else that of the URL) and status. Rows and
        columns may be in any order.
    output : path
        Parquet file to write, one row for each page: url, host, importance,
        n_crawls (with an interval), n_changed, n_failed, first_crawl,
        last_crawl, gone, change_rate (1/day), low and high
        (`estimators.likelihood_interval`), degenerate ("never" or "always"
        changed, or null), serial_score, and pattern ("bursty" or "regular"
        where `estimators.serial_score` is beyond 3, or null). The metadata
        "paperlib" are the `Estimates` as JSON.
    state : path, optional
        What earlier logs left: read if it exists, and written anew. Rows that
        are not after a page's last one are left out, so that none counts
        twice.
    estimator : {"prior", "mle", "moment_matching", "naive"}, optional
        "prior" is the posterior mode under two pseudo-observations that are
        learnt from the log (`FakeIntervals.learn`), for pages of few crawls;
        the others have the substitutes of `estimators.mle`. By default
        "prior", unless another predicts the last bit of pages from those
        before better, by two standard errors. A page without an interval gets
        the mode of the prior.
    level : float
        Level of the confidence intervals, in (0, 1).
    force : bool
        Overwrite an output that exists.
    memory : str
        Memory that the database may use to sort, such as "1GiB"; larger logs
        are sorted in the system's folder for temporary files. It needs some
        50 MiB, and 10 MiB for each core; the rest of the process needs some
        700 MiB more.
    dask : str, optional
        Address of a Dask scheduler such as "tcp://10.0.0.5:8786", whose
        workers do the same: each of their threads reads all of the log and
        keeps a part of the pages, by a hash of the URL, in `memory` of its
        own. They must have the file system of this process, for all paths, and
        this version of paperlib; parts lie beside the output until it is
        written. A lost worker's part is done again. One thread a worker is
        best.

    Returns
    -------
    Estimates
        Counts of rows and pages, and the estimator.

    Raises
    ------
    ImportError
        `dask` is given, and the package distributed is missing.
    FileExistsError
        The output exists, and `force` is false.
    FileNotFoundError
        No such log.
    ValueError
        A file of another kind, empty or without a required column; no row
        that can be used; an unknown estimator; a file at `state` that is no
        state; no scheduler at `dask`, or workers of another version.
    OSError
        No space left; outputs are whole or as they were.
    RuntimeError
        Workers were lost one after the other, for want of memory perhaps.

    Warns
    -----
    BadRowsWarning
        Rows were left out, or disagreed with others of the same time.

    Notes
    -----
    With `state`, counts are those of all logs together, and so are rates and
    limits, to a relative 1e-4 (at most 3e-5 was measured, on uniform,
    exponential and lognormal intervals): intervals of one page and bit that
    differ by less than 1.1% are kept as their mean. The score is summed log by
    log. When the estimator is chosen, the last bit of a page that is not in
    this log is any of its bits.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, rates = Path(folder, "log.csv"), Path(folder, "rates.parquet")
    ...     _ = log.write_text(
    ...         "url,time,changed\\n"
    ...         "a,2026-01-01,no\\na,2026-01-03,yes\\na,2026-01-04,no\\n"
    ...     )
    ...     found = estimate(log, rates, estimator="mle")
    ...     found.n_pages, found.counts
    ...     pq.read_table(rates)["change_rate"].to_numpy().round(3)
    (1, {'rows': 3, 'repeated': 0})
    array([0.549])
    """
    level = checks.probability("level", level)
    if estimator is not None and estimator not in ESTIMATORS:
        names = ", ".join(ESTIMATORS)
        raise ValueError(f"estimator must be one of {names}, got {estimator!r}")
    check_absent(output, force)
    opened = reading.opened
    if dask is not None:
        opened = functools.partial(cluster.opened, dask, Path(output).parent)
    known = state if state is not None and Path(state).exists() else None
    no_state = contextlib.nullcontext()
    with (
        opened(path, state=known, memory=memory) as log,
        # The state is renamed after the rates: if the rates cannot be written,
        # the log is not yet in the state and counts when it is tried again.
        no_state if state is None else parquet(state) as states,
        parquet(output) as rates,
    ):
        sample = log.sample(choosing.SAMPLE).all_crawls
        prior, chosen, why = choosing.choose(sample, estimator)
        function = functools.partial(
            _tables,
            prior=prior,
            estimator=chosen,
            level=level,
            with_state=state is not None,
        )
        for tables in log.map(function):
            # one table without a state, two with it
            for writer, table in zip([rates, states], tables, strict=False):
                writer.write(table)
        learnt = chosen, why, prior.changed, prior.unchanged
        found = Estimates(dict(log.tally.counts), log.n_pages, *learnt)
        rates.describe(asdict(found))
    return found


def _tables(batch, *, prior, estimator, level, with_state):
    """Yield the rates of a batch, then its state.

    One after the other, so that only one of these large tables is in memory.
    """
    history = batch.all_crawls
    sums = _serial_sums(batch, history)
    rate = ESTIMATORS[estimator](history, prior)
    yield _rates(batch.page, history, rate, prior, level, sums)
    if with_state:
        yield compress(batch.page, history, sums)


def _serial_sums(batch, history):
    """Sums for the serial score of each page, with those of earlier logs."""
    # at the rates 0 and inf all bits are certain and add nothing
    certain = estimators.DegenerateHistoryWarning
    with warnings.catch_warnings(action="ignore", category=certain):
        rate = estimators.mle(history)
    new = estimators.serial_sums(batch.bits, rate)
    old = [np.asarray(batch.page[name]) for name in ("lag", "lag_squares")]
    return [a + b for a, b in zip(old, new, strict=True)]


def _rates(page, history, rate, prior, level, sums):
    """Table of what `estimate` writes of each page."""
    n, n_changed = history.n_crawls, history.total(history.changed).astype(int)
    low, high = estimators.likelihood_interval(history, level=level)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = sums[0] / np.sqrt(np.maximum(sums[1], np.maximum(n - 1, 0)))
    never, always = (n > 0) & (n_changed == 0), (n > 0) & (n_changed == n)
    return pa.table(
        {name: page[name] for name in _COPIED}
        | {
            "n_crawls": n,
            "n_changed": n_changed,
            "change_rate": np.where(n > 0, rate, prior.mode),
            "low": np.where(n > 0, low, 0.0),
            "high": np.where(n > 0, high, np.inf),
            "degenerate": _label(never=never, always=always),
            "serial_score": pa.array(score, mask=np.isnan(score)),
            "pattern": _label(bursty=score > _PATTERN, regular=score < -_PATTERN),
        }
    )


def _label(**where):
    """Text column with the name of the condition that is true, or null."""
    conditions = list(where.values())
    text = np.select(conditions, list(where), "")
    return pa.array(text, mask=~np.any(conditions, axis=0))
