"""What a log did, beside what other rules would have done."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow.compute as pc
import scipy

from paperlib.signals import SignalledPages
from recrawl import calibrating, checks, choosing, reading
from recrawl.science import allocation, freshness, policies, simulate
from recrawl.types import PathLike, Seed

__all__ = ["Comparison", "compare"]

_CYCLES = 200  # crawls of the average page in a simulation; half of them count
_SHORTEST = 365.0  # days of a simulation; Nutch's largest interval
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Comparison:
    """Freshness of rules that crawl as many pages a day as a log.

    Parameters
    ----------
    days : float
        From the first crawl of the log to the last.
    in_log : dict of float
        Freshness by rule within as many days, from a fresh copy of each page.
    long_run : dict of float
        Freshness by rule when the rule has been followed for long; that of the
        log as above. Both have the worst rule in the long run first.
    n_pages : int
        Pages on which it rests, see `compare`.
    calibrated : dict of float
        As `long_run`, but by the `Calibration` of the log in place of Poisson
        changes, of the log and the rules with equal intervals; empty if the log has
        too few bits to measure it on.

    Examples
    --------
    >>> found = Comparison(31.0, {"Nutch": 0.215}, {"Nutch": 0.562}, 62)
    >>> found.in_log["Nutch"]
    0.215
    """

    days: float
    in_log: dict
    long_run: dict
    n_pages: int
    calibrated: dict = field(default_factory=dict)


def compare(
    path: PathLike,
    *,
    n_pages: int = 10_000,
    horizon: float | None = None,
    rng: Seed = None,
    memory: str = "50%",
) -> Comparison:
    r"""Compare what a log did with other rules that crawl as many pages a day.

    The freshness of the log is the mean over the time between its crawls of

    .. math:: \frac{1 - e^{-x}}{x}, \qquad x = \Delta w ,

    with the change rate :math:`\Delta` and the interval :math:`w`
    (`freshness.crawled`). `policies.Nutch` and `policies.StormCrawler` crawl
    by due date in a simulated world, from a fresh copy, with the bandwidth of
    the log: for as long as the log lasts, and in the long run, where the second
    half of a longer time counts. A rule that has to learn the pages' intervals
    may be far from its long run when the log ends.

    Parameters
    ----------
    path : path
        As in `estimate`.
    n_pages : int, default 10000
        Pages drawn at random from the log, at most; those with two crawls or
        more that are not gone are used.
    horizon : float, optional
        Days of the simulation of the long run; by default 200 times the mean
        time between crawls of a page, and at least a year.
    rng : None, int, SeedSequence or Generator, optional
        Of the simulation, passed through `numpy.random.default_rng`.
    memory : str, default "50%"
        As in `estimate`.

    Returns
    -------
    Comparison
        Freshness weighted by importance, in [0, 1], by rule.

    Raises
    ------
    ValueError
        As `estimate`; no page with two crawls, or none that changed.

    Notes
    -----
    Change rates are those that `estimate` would give, and are taken as true.
    This favours the rules that use them, "proportional" and "optimal", most
    where pages have few crawls; `backtest` shows how well rates are known.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder, "log.csv")
    ...     rows = [f"a,2026-01-0{day},{day % 2}" for day in range(1, 10)]
    ...     rows += [f"b,2026-01-0{day},{day // 9}" for day in range(1, 10)]
    ...     _ = log.write_text("\n".join(["url,time,changed", *rows]))
    ...     found = compare(log, rng=1)
    >>> sorted(found.long_run)
    ['Nutch', 'StormCrawler', 'optimal', 'proportional', 'the log', 'uniform']
    >>> found.long_run["optimal"] > found.long_run["uniform"]
    True
    """
    n_pages = checks.count("n_pages", n_pages)
    if horizon is not None:
        horizon = checks.scalar(checks.positive, "horizon", horizon)
    with reading.opened(path, memory=memory) as log:
        batch = log.sample(n_pages)
        few = log.sample(min(n_pages, choosing.SAMPLE))
    gone = batch.page["gone"].to_numpy()
    history, crawled = batch.bits, (batch.bits.n_crawls > 0) & ~gone
    # as `estimate` does
    given = {"bits": few.all_bits, "host": few.page["host"]}
    chosen = choosing.choose(few.all_crawls, **given)
    rate = chosen.rate(batch.all_crawls, batch.page["host"])
    rule = functools.partial(chosen.rate, host=few.page["host"])
    calibration = calibrating.learn(few, rule)
    if not batch.all_crawls.total(batch.all_crawls.changed)[crawled].any():
        raise ValueError(
            f"{path} must hold a page that was crawled twice, "
            "and one that changed, got none"
        )
    weight = np.asarray(batch.page["importance"])[crawled]
    fresh = freshness.crawled(history, np.nan_to_num(rate))[crawled]
    observed = history.total(history.interval)[crawled]
    bandwidth = (history.n_crawls[crawled] / observed).sum()
    days = _days(batch.page)
    log = {"the log": freshness.mean(fresh, weight).item()}
    given = rate[crawled], weight, bandwidth
    at_first, fixed, calibrated = _allocated(*given, days, calibration)
    if calibration is not None:
        interval, _, offsets = history.ragged()
        owner = np.repeat(np.arange(rate.size), np.diff(offsets))
        fresh = calibration.freshness(np.nan_to_num(rate)[owner], 1 / interval)
        fresh = np.bincount(owner, interval * fresh, rate.size)[crawled] / observed
        calibrated |= {"the log": freshness.mean(fresh, weight).item()}
    long_run = log | fixed | _simulated(*given, horizon, 0.5, rng)
    long_run = dict(sorted(long_run.items(), key=lambda item: item[1]))
    in_log = log | at_first | _simulated(*given, days, 0.0, rng)
    in_log = {name: in_log[name] for name in long_run}
    n_pages = int(np.count_nonzero(crawled))
    return Comparison(days, in_log, long_run, n_pages, calibrated)


def _days(page):
    """Days from the first crawl of the pages to the last."""
    first, last = pc.min(page["first_crawl"]), pc.max(page["last_crawl"])
    return (last.as_py() - first.as_py()) / _DAY


def _allocated(rate, weight, bandwidth, days, calibration):
    """Freshness of rules that give each page a fixed crawl rate.

    In so many days from a fresh copy, in the long run, and this calibrated.
    """
    given, model = (rate, weight, bandwidth), freshness.interval
    plans = {
        "uniform": allocation.uniform(*given, model=model),
        "proportional": allocation.proportional(*given, model=model),
        "optimal": allocation.optimal(*given),
    }
    in_log = {
        name: freshness.mean(_at_first(rate, plan.crawl_rate, days), weight).item()
        for name, plan in plans.items()
    }
    calibrated = {
        name: freshness.mean(
            calibration.freshness(rate, plan.crawl_rate), weight
        ).item()
        for name, plan in plans.items()
        if calibration is not None
    }
    long_run = {name: float(plan.freshness) for name, plan in plans.items()}
    return in_log, long_run, calibrated


def _at_first(rate, crawl_rate, days):
    """Freshness in the first days, from a fresh copy, at equal intervals."""
    with np.errstate(divide="ignore"):
        interval = np.minimum(1 / crawl_rate, days)
    n = days // interval
    rest = np.maximum(days - n * interval, 0.0)
    # the mean of exp(-rate t) over an interval is exprel(-rate interval)
    fresh = n * interval * scipy.special.exprel(-rate * interval)
    return (fresh + rest * scipy.special.exprel(-rate * rest)) / days


def _simulated(rate, weight, bandwidth, horizon, skipped, rng):
    """Freshness of the rules of production crawlers, in one world for both.

    What counts begins after a share of the time that is skipped.
    """
    if horizon is None:
        horizon = max(_CYCLES * rate.size / bandwidth, _SHORTEST)
    pages = SignalledPages(rate, weight, 0.0, 0.0)
    world = simulate.draw_world(pages, horizon, rng=rng)
    rules = {"Nutch": policies.Nutch(), "StormCrawler": policies.StormCrawler()}
    borders = [skipped * horizon, horizon]
    runs = {
        name: simulate.crawl(world, rule, bandwidth, borders=borders)
        for name, rule in rules.items()
    }
    return {name: float(run.freshness) for name, run in runs.items()}
