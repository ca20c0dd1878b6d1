"""Change rates of the pages of a log, with confidence intervals."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paperlib.errors import ArgumentError
from recrawl.log import cluster, reading
from recrawl.log.database import sql
from recrawl.log.files import alone
from recrawl.log.output import check_once, check_output, description, table
from recrawl.log.state import compress
from recrawl.log.tally import warn
from recrawl.rates import freshness, host_prior, likelihood
from recrawl.rates.diagnosis import Suspects, bulk_days
from recrawl.rates.dispersion import Dispersion, measured
from recrawl.rates.drift import drift, most_changes, usual_factor
from recrawl.rates.quality import SOURCES, Quality
from recrawl.types import PathLike
from recrawl.units import counted

if TYPE_CHECKING:
    from recrawl.log.formats.source import Source

__all__ = ["Estimates", "estimate"]

# Columns of the rates that are those of the log's pages.
_COPIED = (
    "url",
    "host",
    "importance",
    "n_failed",
    "n_incomparable",
    "first_crawl",
    "last_crawl",
    "gone",
)
_DEGENERATE = "never changed", "always changed"
_DAY = 86_400_000_000  # microseconds


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
    changed, unchanged : float
        The two pseudo-observations of the prior, days.
    why : str
        Why each host has a prior of its own, or not.
    scales : dict of float or None
        Mean change rates of hosts over that of an average host, by which the two
        pseudo-observations are divided for a page of each; None where one prior
        for all hosts predicts as well.
    dispersion : float
        Mean dispersion of the log's pages (`dispersion.pooled_dispersion`): 1 if
        their changes are Poisson.
    drift : list of float or None
        Factors by which pages changed faster in up to three later parts of the log
        than was predicted from before (`drift.drift`); None with fewer than 400 bits
        to predict.
    usual : float or None
        Factor by which pages change faster than their rates when no bulk day comes
        (`drift.usual_factor`): the middle of a promise.
    period : float
        A fifth of the time from this log's first crawl to its last one, days: the
        upper limits of numbers of changes are of a period as long as this; 0 if the
        log does not tell.
    what : str
        The format that the files were taken for.
    pace : float
        Fetches a day that the log made, also the first one of each page and failed
        ones; 0 if it does not tell, as a dump of states.
    suspects : list of Suspect
        Hosts whose pages are not what they seem.
    bulk_days : list of BulkDay
        Days on which many pages changed at once.
    kinds : dict of int
        Number of pages by kind, such as "never changed" or "gone".
    failed : dict of int
        Number of failed fetches by status of HTTP; "none" of those without one.
    signals : dict
        "used", how many signals, their "precision" and "recall" on all pages, and
        the number of pages by signals_from; empty without signals.
    known : tuple of int or None
        How many pages of the log the state knew before, and how many the log has;
        None without a state, or with a new one.
    """

    counts: dict
    n_pages: int
    changed: float
    unchanged: float
    why: str
    scales: dict | None
    dispersion: float
    drift: list | None
    usual: float | None
    period: float
    what: str
    pace: float
    suspects: list
    bulk_days: list
    kinds: dict
    failed: dict
    signals: dict
    known: tuple | None


def estimate(
    path: PathLike | Sequence[PathLike] | Source,
    output: PathLike,
    *,
    state: PathLike | None = None,
    signals: PathLike | None = None,
    force: bool = False,
    memory: str = "50%",
    dask: str | None = None,
) -> Estimates:
    """Estimate the change rate of each page of a log, with its interval.

    The first crawl of a URL starts its first interval; each later one ends an
    interval, with or without a change. Rows whose `status` is given and
    neither 2xx nor 304 are counted and left out; a page whose last row has
    status 404 or 410 is `gone`. Crawls of a page at one time count as one,
    which found a change if one of them did.

    Parameters
    ----------
    path : path, sequence of path, or Source
        Files, also gzipped, and folders of one format, which is recognised: what
        a crawler stored (`recrawl.log.formats`), or a table in CSV, TSV, JSON Lines or
        Parquet. Columns of a table: url, time (ISO 8601 without a zone is UTC, times
        of HTTP and mail and the like, or a number since 1970 in seconds, milli-,
        micro- or nanoseconds by its size; from 1990 to a day from now), and
        changed (true, yes, 1 or the like), or instead of it digest, etag or
        last_modified; optional importance (the last one counts, else 1), host
        (else that of the URL), status, last_modified (ages of the last change)
        and start (of an interval that no crawl began). Rows and columns may be in
        any order.
    output : path
        Parquet file (or CSV, if the name says so, which `schedule` does not take)
        to write, one row for each page: url, host, importance, n_crawls
        (intervals between crawls), n_changed (of these), n_failed, n_incomparable
        (fetches of this log that have nothing to be compared by), first_crawl,
        last_crawl, gone, change_rate (1/day), its 95% interval from low to high
        (`likelihood.spread`), log_stderr (standard
        deviation of the logarithm of the change rate in its posterior,
        `likelihood.log_stderr`), log_rate (mean of that logarithm in the same
        posterior, of 1/day, `likelihood.spread`), dispersion (by which
        the interval and the posterior are widened, 1 or more), next_high (upper limit
        of the number of changes in the next `period`, which holds with a probability
        of .975, `drift.most_changes`; absent without a period), freshness_now
        (expected between the crawls of this log, at change_rate; null without
        any), degenerate ("never" or "always" changed, or null). The metadata
        "recrawl" are the `Estimates` as JSON.
    state : path, optional
        What earlier logs left: read if it exists, and written anew. Rows that
        are not after a page's last one are left out, so that none counts
        twice.
    signals : path, optional
        Signals of changes (pings of IndexNow or WebSub, dates in sitemaps,
        entries of feeds): a CSV or Parquet file with the columns url and time.
        Then there are columns recall, precision, false_rate (1/day) and
        signals_from ("page" or "all": whose estimates they are, see
        `recrawl.rates.quality`; "none" of pages without a signal), which
        `Scheduler.from_rates` uses.
    force : bool, default False
        Overwrite an output that exists.
    memory : str, default "50%"
        Memory that the database may use to sort, such as "1GiB"; larger logs
        are sorted in the system's folder for temporary files. It needs some
        50 MiB, and 10 MiB for each core; the rest of the process needs some
        700 MiB more.
    dask : str, optional
        Address of a Dask scheduler such as "tcp://10.0.0.5:8786", whose
        workers do the same: each of their threads reads a part of the log,
        then a part of the pages, by a hash of the URL, in `memory` of its
        own. They must have the file system of this process, for all paths, and
        this version of recrawl; parts lie beside the output until it is
        written. A lost worker's part is done again. One thread a worker is
        best.

    Returns
    -------
    Estimates
        Counts of rows and pages, and the prior.

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
        that can be used; a file at `state` that is no state; no scheduler at
        `dask`, or workers of another version; a state that names a URL twice.
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
    The rate is the posterior mode under two pseudo-observations that are learnt from
    the log (`PseudoObservations.learn`); a page without an interval gets the mode of
    the prior. If pages of hosts with a mean rate of their own predict the last bit of
    pages from those before better, by two standard errors, each host has a prior,
    which differs from that of all pages in its unit of time alone
    (`host_prior.choose`). low and high are those of the likelihood of the crawls and
    the pseudo-observations, whose maximum the rate is.

    Intervals are widened where changes depend on each other: the likelihood is
    raised to the power 1 / dispersion. The dispersion of a page, from its crawls in
    this log (`dispersion.dispersion`), is shrunk to that of its host and of the log
    (`recrawl.rates.dispersion`), and counts as much as the page's crawls do beside the
    pseudo-observations. The intervals hold the rate that very many crawls at such
    intervals would give; where changes cluster within one interval, several count
    as one, and the mean number of changes a day is higher.

    With `state`, counts are those of all logs together, and so are rates and
    limits, to a relative 1e-4 (at most 3e-5 was measured, on uniform,
    exponential and lognormal intervals): intervals of one page and bit that
    differ by less than 1.1% are kept as their mean. When the prior is chosen, the
    last bit of a page that is not in this log is any of its bits.

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
    ...     found = estimate(log, rates)
    ...     found.n_pages, found.counts
    ...     pq.read_table(rates)["change_rate"].to_numpy().round(3)
    (1, {'rows': 3, 'repeated': 0})
    array([0.501])
    """
    opened = _check(path, output, state, signals, force, dask)
    no_state = contextlib.nullcontext()
    with (
        no_state if state is None else alone(state),
        opened(path, state=_existing(state), memory=memory) as log,
        # The state is renamed after the rates: if the rates cannot be written,
        # the log is not yet in the state and counts when it is tried again.
        no_state if state is None else table(state) as states,
        table(output, force) as rates,
    ):
        known = _known(log, _existing(state))
        suspects, counts = Suspects(log.connection), Counter()
        model = _learn(log, _existing(state))
        function = functools.partial(_tables, model=model, with_state=state is not None)
        for found in log.map(function):
            # one table without a state, two with it
            for writer, rows in zip([rates, states], found, strict=False):
                writer.write(rows)
                if writer is rates:
                    suspects.add(rows)
                    counts.update(_counted(rows))
        found = _estimates(log, model, counts, suspects, known)
        if state is not None:
            states.describe({"drift": found.drift, "usual": found.usual})
        rates.describe(asdict(found))
    return found


def _known(log, state):
    """How many pages of a log a state knows, and how many the log has."""
    if state is None:
        return None
    check_once(state)
    query = "select count(*) filter (in_state), count(*) from page where in_log"
    known, n_pages = log.connection.execute(query).fetchone()
    if not known:
        # Logs of a day each may share no page, so that this is no error.
        warn(
            f"0 of {counted(n_pages, 'page')} of this log were in the state {state}: "
            "it may be that of another log",
            UserWarning,
        )
    return known, n_pages


def _existing(state):
    """The state, if there is one; asked when no other run has it."""
    return state if state is not None and Path(state).exists() else None


def _check(path, output, state, signals, force, dask):
    """Refuse files that cannot be written; the function that opens a log."""
    read = [*reading.inputs(path), signals]
    check_output(output, force, [*read, state])
    if state is not None:
        endings = "", ".parquet"
        check_output(state, True, read, endings=endings, argument="state")
        if Path(state).resolve() == Path(output).resolve():
            rule = f"must be another file than output, got {state}"
            raise ArgumentError("state", rule)
    if dask is None:
        return functools.partial(reading.opened, signals=signals)
    if signals is not None:
        raise ArgumentError("signals", f"must be None with dask, got {signals}")
    return functools.partial(cluster.opened, dask, Path(output).parent)


@dataclass(frozen=True)
class _Model:
    """What was learnt from a sample, for all batches."""

    chosen: host_prior.Chosen
    dispersion: Dispersion
    drift: list | None
    usual: float | None
    period: float
    quality: Quality | None
    bulk_days: list


def _learn(log, state):
    """Learn the model from a sample of pages, and from a state if there is one."""
    sample = log.sample(host_prior.SAMPLE)
    history, host = sample.all_crawls, sample.page["host"]
    chosen = host_prior.choose(history, bits=sample.all_bits, host=host)
    quality, period = None, 0.0
    if sample.n_signals is not None:
        quality = Quality(*_signalled(sample))
    if sample.time.size:
        # of its crawls: a first Last-Modified, or the state, is from before
        period = (log.time_at(1.0) - log.time_at(0.0)) / _DAY / 5
    posterior = functools.partial(_rates, scales=chosen.scales)
    factors = drift(sample, posterior)
    days = bulk_days(sample, chosen.rate(history, host))
    usual = usual_factor(sample, posterior, factors, days)
    if factors is None and state is not None:
        # a log that adds few bits keeps the drift of the one before
        before = description(state)
        factors, usual = before.get("drift"), before.get("usual")
    dispersion = _dispersion(sample, history, chosen)
    return _Model(chosen, dispersion, factors, usual, period, quality, days)


def _rates(sample, scales):
    """Columns of the posterior of pages of which the prior is learnt, too."""
    history = sample.all_crawls
    chosen = host_prior.learnt(history, sample.page["host"], scales)
    dispersion = _dispersion(sample, history, chosen)
    return _posterior(sample, history, chosen, dispersion)[0]


def _dispersion(sample, history, chosen):
    """Learn how changes depend on each other."""
    host = sample.page["host"]
    rate = chosen.rate(history, host)
    return Dispersion.learn(*measured(sample.bits, rate, sample.page), host)


def _signalled(batch):
    """Crawls of pages, and signals in the intervals between them."""
    return batch.bits, batch.n_signals[batch.crawled]


def _counted(rows):
    """What a table of rates adds to the counts: crawls, and pages by kind."""
    degenerate = pc.value_counts(rows["degenerate"]).to_pylist()
    counts = {f"{each['values']} changed": each["counts"] for each in degenerate}
    counts["n_crawls"] = pc.sum(rows["n_crawls"]).as_py() or 0
    if "signals_from" in rows.column_names:
        counts |= Counter(rows["signals_from"].to_pylist())
    return counts


def _estimates(log, model, counts, suspects, known):
    """Summarise what was read, learnt and written."""
    pages = log.connection.execute(sql("count_pages", "rates"))
    names = [name for name, *_ in pages.description]
    kinds = dict(zip(names, pages.fetchone(), strict=True))
    n_compared = counts["n_crawls"] + kinds.pop("incomparable")
    others, days = kinds.pop("others"), kinds.pop("days")
    kinds = {name: counts[name] for name in _DEGENERATE} | kinds
    signals = {}
    if model.quality is not None:
        query = "select coalesce(sum(n_signals), 0)::bigint from sorted"
        (n_signals,) = log.connection.execute(query).fetchone()
        precision, recall = map(float, model.quality.of_all)
        signals = {"used": n_signals, "precision": precision, "recall": recall}
        signals |= {name: counts[name] for name in SOURCES}
    failed = log.tally.failed.most_common()
    return Estimates(
        counts=dict(log.tally.counts),
        n_pages=log.n_pages,
        changed=model.chosen.prior.changed,
        unchanged=model.chosen.prior.unchanged,
        why=model.chosen.why,
        scales=model.chosen.scales,
        dispersion=model.dispersion.mean,
        drift=model.drift,
        usual=model.usual,
        period=model.period,
        what=log.what,
        pace=(n_compared + others) / days if n_compared and days else 0.0,
        suspects=suspects.found(),
        bulk_days=model.bulk_days,
        kinds=kinds,
        failed={str(status or "none"): n for status, n in failed},
        signals=signals,
        known=known,
    )


def _tables(batch, *, model, with_state):
    """Yield the rates of a batch, then its state.

    One after the other, so that only one of these large tables is in memory.
    """
    history, bits, page = batch.all_crawls, batch.bits, batch.page
    n = np.asarray(page["n_crawls"]) + bits.n_crawls
    n_changed = np.asarray(page["n_changed"]) + bits.total(bits.changed).astype(int)
    posterior, measures = _posterior(batch, history, model.chosen, model.dispersion)
    columns = {name: page[name] for name in _COPIED}
    columns |= {"n_crawls": n, "n_changed": n_changed, **posterior}
    if model.period:
        columns["next_high"] = most_changes(
            posterior["log_rate"], posterior["log_stderr"], model.period, model.drift
        )
    now = freshness.crawled(bits, posterior["change_rate"])
    columns["freshness_now"] = pa.array(now, mask=np.isnan(now))
    columns["degenerate"] = _degenerate(history)
    if model.quality is not None:
        columns |= model.quality.columns(*_signalled(batch))
    yield pa.table(columns)
    if with_state:
        yield compress(page, history, (n, n_changed), measures)


def _posterior(batch, history, chosen, dispersion):
    """Rates, their intervals and standard errors; and the dispersion of this log."""
    host = batch.page["host"]
    history, scale = host_prior.scaled(history, chosen.scales, host)
    posterior = chosen.prior.observed(history)
    mode = likelihood.mle(posterior)
    found = measured(batch.bits, mode * scale, batch.page)
    # the crawls are widened, and the pseudo-observations are not
    information = likelihood.log_information(posterior, mode)
    share = likelihood.log_information(history, mode) / information
    widening = 1 + (dispersion.of(*found, host) - 1) * share
    low, high, log_rate = likelihood.spread(posterior, mode, widening)
    columns = {
        "change_rate": mode * scale,
        "low": low * scale,
        "high": high * scale,
        "log_stderr": likelihood.log_stderr(information, widening),
        "log_rate": log_rate + np.log(scale),
        "dispersion": widening,
    }
    return columns, found


def _degenerate(history):
    """Text column that says of which pages the likelihood alone has no maximum."""
    rate = likelihood.mle(history)
    text = np.select([rate == 0, np.isinf(rate)], ["never", "always"], "")
    return pa.array(text, mask=text == "")
