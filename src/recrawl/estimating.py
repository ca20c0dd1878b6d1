"""Change rates of the pages of a log, with confidence intervals."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl import calibrating, checks, choosing, cluster, reading
from recrawl.choosing import ESTIMATORS
from recrawl.dependence import Dependence, measured
from recrawl.files import alone
from recrawl.output import check_output, parquet, table
from recrawl.science import estimators, freshness
from recrawl.science.processes import History
from recrawl.signalling import Quality
from recrawl.state import compress
from recrawl.suspects import Suspects
from recrawl.tally import BadRowsWarning
from recrawl.types import PathLike
from recrawl.units import counted, shown

if TYPE_CHECKING:
    from recrawl.formats.source import Source

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
_COUNTS = "n_crawls", "n_changed"
_PATTERN = 3  # standard deviations of the score of a Poisson page
_SHOWN = 3  # pages named in a warning


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
    dispersion : float
        Mean dispersion of the log's pages (`estimators.pooled_dispersion`): 1 if
        their changes are Poisson.
    calibration : dict or None
        Points of the `calibrating.Calibration`; None with fewer than 400 bits to
        measure it on.
    what : str
        The format that the files were taken for.
    pace : float
        Crawls a day that the log made: its intervals between crawls, and its
        fetches with nothing to compare, by its length; 0 if it does not tell, as
        a dump of states.
    suspects : list of Suspect
        Hosts whose pages are not what they seem.
    scales : dict of float or None
        Mean change rates of hosts over that of an average host, by which the two
        pseudo-observations are divided for a page of each; None where one prior
        for all hosts predicts as well.
    kinds : dict of int
        Number of pages by kind, such as "never changed" or "gone".
    failed : dict of int
        Number of failed fetches by status of HTTP; "none" of those without one.
    signals : dict
        "used", how many signals, their "precision" and "recall" on all pages, and
        the number of pages by signals_from; empty without signals.
    pace_of_all : float
        The pace with the first crawl of each page, which ends no interval; 0 if
        the log tells no pace.

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
    dispersion: float = 1.0
    calibration: dict | None = None
    what: str = ""
    pace: float = 0.0
    suspects: list = field(default_factory=list)
    scales: dict | None = None
    kinds: dict = field(default_factory=dict)
    failed: dict = field(default_factory=dict)
    signals: dict = field(default_factory=dict)
    pace_of_all: float = 0.0


@dataclass(frozen=True)
class _Model:
    """What was learnt from a sample, for all batches."""

    chosen: choosing.Chosen
    dependence: Dependence
    level: float
    quality: Quality | None = None


def estimate(
    path: PathLike | Sequence[PathLike] | Source,
    output: PathLike,
    *,
    state: PathLike | None = None,
    signals: PathLike | None = None,
    estimator: Literal["prior", "mle", "moment_matching", "naive"] | None = None,
    level: float = 0.95,
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
        a crawler stored (`recrawl.formats`), or a table in CSV, TSV, JSON Lines or
        Parquet. Columns of a table: url, time (ISO 8601 without a zone is UTC, times
        of HTTP and mail and the like, or a number since 1970 in seconds, milli-,
        micro- or nanoseconds by its size; from 1990 to a year from now), and
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
        last_crawl, gone, change_rate (1/day), low and high
        (`estimators.likelihood_interval`), outside ("below" or "above" where the
        rate is not within low and high, or null), log_stderr (standard
        deviation of the logarithm of the change rate in its posterior,
        `estimators.log_stderr`), log_rate (mean of that logarithm in the same
        posterior, of 1/day, `estimators.mean_log_rate`), dispersion (by which
        the interval and the posterior are widened, 1 or more), freshness_now
        (expected between the crawls of this log, at change_rate; null without
        any), degenerate ("never" or "always" changed, or null), serial_score, and
        pattern ("bursty" or "regular" where `estimators.serial_score` is beyond
        3, or null). The metadata "recrawl" are the `Estimates` as JSON.
    state : path, optional
        What earlier logs left: read if it exists, and written anew. Rows that
        are not after a page's last one are left out, so that none counts
        twice.
    signals : path, optional
        Signals of changes (pings of IndexNow or WebSub, dates in sitemaps,
        entries of feeds): a CSV or Parquet file with the columns url and time.
        Then there are columns recall, precision, false_rate (1/day) and
        signals_from ("page", "host" or "all": whose estimates they are, see
        `recrawl.signalling`; "none" of pages without a signal), which `schedule`
        needs for thresholds.
    estimator : {"prior", "mle", "moment_matching", "naive"}, optional
        "prior" is the posterior mode under two pseudo-observations that are
        learnt from the log (`FakeIntervals.learn`), for pages of few crawls;
        the others have the substitutes of `estimators.mle`. By default
        "prior", unless another predicts the last bit of pages from those
        before better, by two standard errors. If pages of hosts with a mean rate
        of their own predict better than that, each host has a prior, which
        differs from that of all pages in its unit of time alone. A page without
        an interval gets the mode of the prior.
    level : float, default 0.95
        Level of the confidence intervals, in (0, 1).
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
        Rows were left out, or disagreed with others of the same time; the URLs of
        some pages name no host, while those of others do.

    Notes
    -----
    Of the estimator "prior", low and high are those of the likelihood of the crawls
    and the pseudo-observations, whose maximum the rate is. Of others they are those
    of the crawls alone; a biased estimator, or the substitute for a rate of 0 or
    inf, may then lie outside. log_stderr and log_rate are always those of the crawls
    and pseudo-observations.

    Intervals are widened where changes depend on each other: the likelihood is
    raised to the power 1 / dispersion. The dispersion of a page, from its crawls in
    this log (`estimators.dispersion`), is shrunk to that of its host and of the log
    (`recrawl.dependence`), and counts as much as the page's crawls do beside the
    pseudo-observations. The intervals hold the rate that very many crawls at such
    intervals would give; where changes cluster within one interval, several count
    as one, and the mean number of changes a day is higher.

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
    read = [*reading.inputs(path), signals]
    check_output(output, force, [*read, state])
    if state is not None:
        check_output(state, True, read)
        if Path(state).resolve() == Path(output).resolve():
            raise ValueError(f"state must be another file than output, got {state}")
    opened = functools.partial(reading.opened, signals=signals)
    if dask is not None:
        if signals is not None:
            raise ValueError(f"signals must be None with dask, got {signals}")
        opened = functools.partial(cluster.opened, dask, Path(output).parent)
    no_state = contextlib.nullcontext()
    with (
        no_state if state is None else alone(state),
        opened(path, state=_existing(state), memory=memory) as log,
        # The state is renamed after the rates: if the rates cannot be written,
        # the log is not yet in the state and counts when it is tried again.
        no_state if state is None else parquet(state) as states,
        table(output) as rates,
    ):
        sample = log.sample(choosing.SAMPLE)
        model = _learn(sample, estimator, level)
        suspects = Suspects(log.connection, sample)
        function = functools.partial(_tables, model=model, with_state=state is not None)
        n_crawls, first, last, kinds, quality = 0, [], [], Counter(), Counter()
        n_first, n_hostless, hostless = 0, 0, []
        for found in log.map(function):
            # one table without a state, two with it
            for writer, rows in zip([rates, states], found, strict=False):
                writer.write(rows)
                if writer is rates:
                    suspects.add(rows)
                    kinds.update(_kinds(rows))
                    names = rows["url"].filter(pc.equal(rows["host"], ""))
                    n_hostless += len(names)
                    hostless += names[: _SHOWN - len(hostless)].to_pylist()
                    if model.quality is not None:
                        quality.update(rows["signals_from"].to_pylist())
                    for name in ("n_crawls", "n_incomparable"):
                        n_crawls += pc.sum(rows[name]).as_py()
                    n_first += pc.count(rows["first_crawl"]).as_py()
                    first.append(pc.min(rows["first_crawl"]).as_py())
                    last.append(pc.max(rows["last_crawl"]).as_py())
        if model.quality is not None:
            n_signals = "select sum(n_signals)::bigint from sorted"
            (quality["used"],) = log.connection.execute(n_signals).fetchone()
            both = map(float, model.quality.of_all)
            quality["precision"], quality["recall"] = both
        rate = functools.partial(model.chosen.rate, host=sample.page["host"])
        calibration = calibrating.learn(sample, rate)
        found = Estimates(
            dict(log.tally.counts),
            log.n_pages,
            model.chosen.estimator,
            model.chosen.why,
            model.chosen.prior.changed,
            model.chosen.prior.unchanged,
            model.dependence.mean,
            None if calibration is None else calibration.to_dict(),
            log.what,
            _pace(n_crawls, first, last),
            suspects.found(),
            model.chosen.scales,
            dict(kinds),
            {str(status or "none"): n for status, n in log.tally.failed.most_common()},
            dict(quality),
            _pace(n_crawls and n_crawls + n_first, first, last),
        )
        rates.describe(asdict(found))
    if 0 < n_hostless < found.n_pages:  # names of pages need not be URLs
        named = ", ".join(shown(repr(url)) for url in hostless)
        message = f"{counted(n_hostless, 'page')} whose URL names no host: {named}"
        more = ", ..." if n_hostless > _SHOWN else ""
        warnings.warn(message + more, BadRowsWarning, stacklevel=2)
    return found


def _kinds(rows):
    """How many pages of a table of rates are of which kind."""
    unknown = pc.and_not(pc.is_null(rows["last_crawl"]), rows["gone"])
    fetched = pc.greater(rows["n_incomparable"], 0)
    kinds = {
        "never changed": pc.equal(rows["degenerate"], "never"),
        "always changed": pc.equal(rows["degenerate"], "always"),
        "bursty": pc.equal(rows["pattern"], "bursty"),
        "regular": pc.equal(rows["pattern"], "regular"),
        "gone": rows["gone"],
        "never fetched successfully": pc.and_not(unknown, fetched),
        "fetched, but with nothing to compare": pc.and_(unknown, fetched),
    }
    return {kind: pc.sum(pages).as_py() or 0 for kind, pages in kinds.items()}


def _pace(n_crawls, first, last):
    """Crawls a day, from the times of the first and last crawl of batches."""
    first, last = ([t for t in times if t is not None] for times in (first, last))
    days = (max(last) - min(first)) / timedelta(days=1) if first else 0.0
    return n_crawls / days if days else 0.0


def _existing(path):
    """The path of a file that exists, else None."""
    return path if path is not None and Path(path).exists() else None


def _learn(sample, estimator, level):
    """Learn the model from a sample of pages."""
    history, bits, host = sample.all_crawls, sample.all_bits, sample.page["host"]
    chosen = choosing.choose(history, estimator, bits=bits, host=host)
    rate = replace(chosen, estimator="prior").rate(history, host)
    dependence = Dependence.learn(sample.bits, rate, host, sample.page)
    quality = None
    if sample.n_signals is not None:
        quality = Quality(sample.bits, *_signalled(sample))
    return _Model(chosen, dependence, level, quality)


def _signalled(batch):
    """Signals in the intervals between crawls, and the host of each page."""
    return batch.n_signals[batch.crawled], batch.page["host"].to_pylist()


def _tables(batch, *, model, with_state):
    """Yield the rates of a batch, then its state.

    One after the other, so that only one of these large tables is in memory.
    """
    history = batch.all_crawls
    sums = _serial_sums(batch, history)
    rates = _rates(batch, history, model, sums)
    change_rate = np.array(rates["change_rate"])
    yield rates
    del rates
    if with_state:
        dispersion = measured(batch.bits, change_rate, batch.page)
        yield compress(batch.page, history, _counts(batch), sums, dispersion)


def _counts(batch):
    """Crawls of each page that had one before, and that changed, of all logs."""
    bits = batch.bits
    new = bits.n_crawls, bits.total(bits.changed).astype(int)
    return [n + batch.page[k].to_numpy() for n, k in zip(new, _COUNTS, strict=True)]


def _serial_sums(batch, history):
    """Sums for the serial score of each page, with those of earlier logs."""
    # at the rates 0 and inf all bits are certain and add nothing
    certain = estimators.DegenerateHistoryWarning
    with warnings.catch_warnings(action="ignore", category=certain):
        rate = estimators.mle(history)
    new = estimators.serial_sums(batch.bits, rate)
    old = [np.asarray(batch.page[name]) for name in ("lag", "lag_squares")]
    return [a + b for a, b in zip(old, new, strict=True)]


def _rates(batch, history, model, sums):
    """Table of what `estimate` writes of each page."""
    n, n_changed = _counts(batch)
    any_change = history.total(history.changed) > 0
    by_bits = (history.n_crawls == n) & (_n_ages(history) == 0)
    quality = {}
    if model.quality is not None:
        quality = model.quality.columns(batch.bits, *_signalled(batch))
    posterior = _posterior(batch, history, model)
    rate = posterior["change_rate"]
    now = freshness.crawled(batch.bits, rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = sums[0] / np.sqrt(np.maximum(sums[1], np.maximum(n - 1, 0)))
    never = (history.n_crawls > 0) & ~any_change
    always = (n > 0) & (n_changed == n) & by_bits  # an age bounds the rate
    low, high = posterior["low"], posterior["high"]
    return pa.table(
        {name: batch.page[name] for name in _COPIED}
        | {"n_crawls": n, "n_changed": n_changed}
        | posterior
        | {
            "outside": _label(below=rate < low, above=rate > high),
            "freshness_now": pa.array(now, mask=np.isnan(now)),
            "degenerate": _label(never=never, always=always),
            "serial_score": pa.array(score, mask=np.isnan(score)),
            "pattern": _label(bursty=score > _PATTERN, regular=score < -_PATTERN),
        }
        | quality
    )


def _n_ages(history):
    """Number of crawls of each page that showed the age of the last change."""
    if history.age is None:
        return np.zeros(history.shape, dtype=int)
    return history.total(~np.isnan(history.age)).astype(int)


def _posterior(batch, history, model):
    """Rates, their intervals and standard errors, with the dispersion."""
    prior, host = model.chosen.prior, batch.page["host"]
    history, scale = choosing.scaled(history, model.chosen.scales, host)
    posterior, mode = prior.observed(history), prior.estimate(history)
    information = estimators.log_information(posterior, mode)
    own = estimators.log_information(history, mode)
    wider = _wider(batch, mode * scale, model)
    dispersion = 1 + (wider - 1) * own / information
    found = {
        "change_rate": mode * scale,
        "low": None,
        "high": None,
        "log_stderr": estimators.log_stderr(information, dispersion),
        "log_rate": estimators.mean_log_rate(posterior, mode, dispersion)
        + np.log(scale),
        "dispersion": dispersion,
    }
    limits = functools.partial(estimators.likelihood_interval, level=model.level)
    if model.chosen.estimator == "prior":
        low, high = limits(posterior, dispersion=dispersion)
        return found | {"low": low * scale, "high": high * scale}
    # pages without crawls have the prior alone
    empty = history.n_crawls == 0
    only = limits(prior.observed(History([], [], [0, 0])))
    both = zip(limits(history, dispersion=wider), only, strict=True)
    low, high = (np.where(empty, alone, own) for own, alone in both)
    rate = np.where(empty, mode, model.chosen.rate(history, host))
    return found | {"change_rate": rate, "low": low, "high": high, "dispersion": wider}


def _wider(batch, rate, model):
    """Dispersion of each page's crawls in this log and those before, at least 1."""
    found = measured(batch.bits, rate, batch.page)
    return model.dependence.of(*found, batch.page["host"], model.level)


def _label(**where):
    """Text column with the name of the condition that is true, or null."""
    conditions = list(where.values())
    text = np.select(conditions, list(where), "")
    return pa.array(text, mask=~np.any(conditions, axis=0))
