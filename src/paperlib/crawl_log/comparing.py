"""What a log did, beside what other rules would have done."""

import numpy as np

from paperlib import allocation, checks, freshness, policies, simulate
from paperlib.crawl_log import choosing, reading
from paperlib.signals import SignalledPages

__all__ = ["compare"]

_CYCLES = 200  # crawls of the average page in a simulation; half of them count
_SHORTEST = 365.0  # days of a simulation; Nutch's largest interval


def compare(path, *, n_pages=10_000, horizon=None, rng=None, memory="1GiB"):
    r"""Compare what a log did with other rules that crawl as many pages a day.

    The freshness of the log is the mean over the time between its crawls of

    .. math:: \frac{1 - e^{-x}}{x}, \qquad x = \Delta w ,

    with the change rate :math:`\Delta` and the interval :math:`w`
    (`freshness.crawled`). `policies.Nutch` and `policies.StormCrawler` crawl
    by due date in a simulated world, from a fresh copy, with the bandwidth of
    the log; the second half of the time counts.

    Parameters
    ----------
    path : path
        As in `estimate`.
    n_pages : int
        Pages drawn at random from the log, at most; those with two crawls or
        more are used.
    horizon : float, optional
        Days of the simulation; by default 200 times the mean time between
        crawls of a page, and at least a year.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Of the simulation, passed through `numpy.random.default_rng`.
    memory : str
        As in `estimate`.

    Returns
    -------
    dict of float
        Freshness weighted by importance, in [0, 1], by rule, the worst first.

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
    >>> sorted(found)
    ['Nutch', 'StormCrawler', 'optimal', 'proportional', 'the log', 'uniform']
    >>> found["optimal"] > found["uniform"]
    True
    """
    n_pages = checks.count("n_pages", n_pages)
    if horizon is not None:
        horizon = checks.scalar(checks.positive, "horizon", horizon)
    with reading.opened(path, memory=memory) as log:
        batch = log.sample(n_pages)
        few = log.sample(min(n_pages, choosing.SAMPLE)).history
    history, crawled = batch.history, batch.history.n_crawls > 0
    prior, estimator, _ = choosing.choose(few)  # as `estimate` does
    rate = choosing.ESTIMATORS[estimator](history, prior)
    if not rate[crawled].any():
        raise ValueError(
            f"{path} must hold a page that was crawled twice, "
            "and one that changed, got none"
        )
    weight = np.asarray(batch.page["importance"])[crawled]
    fresh = freshness.crawled(history, np.nan_to_num(rate))[crawled]
    days = history.total(history.interval)[crawled]
    bandwidth = (history.n_crawls[crawled] / days).sum()
    found = {"the log": freshness.mean(fresh, weight).item()}
    found |= _allocated(rate[crawled], weight, bandwidth)
    found |= _simulated(rate[crawled], weight, bandwidth, horizon, rng)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _allocated(rate, weight, bandwidth):
    """Freshness of rules that give each page a fixed crawl rate."""
    given, model = (rate, weight, bandwidth), freshness.interval
    plans = {
        "uniform": allocation.uniform(*given, model=model),
        "proportional": allocation.proportional(*given, model=model),
        "optimal": allocation.optimal_interval(*given),
    }
    return {name: float(plan.freshness) for name, plan in plans.items()}


def _simulated(rate, weight, bandwidth, horizon, rng):
    """Freshness of the rules of production crawlers, in one world for both."""
    if horizon is None:
        horizon = max(_CYCLES * rate.size / bandwidth, _SHORTEST)
    pages = SignalledPages(rate, weight, 0.0, 0.0)
    world = simulate.draw_world(pages, horizon, rng=rng)
    rules = {"Nutch": policies.Nutch(), "StormCrawler": policies.StormCrawler()}
    halves = [horizon / 2, horizon]
    runs = {
        name: simulate.crawl(world, rule, bandwidth, borders=halves)
        for name, rule in rules.items()
    }
    return {name: float(run.accuracy) for name, run in runs.items()}
