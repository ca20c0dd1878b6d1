"""Freshness of what a log did, beside that of other rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paperlib import checks, freshness
from recrawl.log import reading
from recrawl.plan import allocation
from recrawl.rates import host_prior
from recrawl.rates.freshness import crawled as between_crawls
from recrawl.types import PathLike

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Freshness of rules that crawl as many pages a day as a log.

    Parameters
    ----------
    freshness : dict of float
        By rule if changes were Poisson, in the long run, the worst first; that of the
        log between its crawls.
    n_pages : int
        Pages on which it rests, see `compare`.
    """

    freshness: dict
    n_pages: int


def compare(
    path: PathLike, *, n_pages: int = 10_000, memory: str = "50%"
) -> Comparison:
    r"""Compare what a log did with other rules that crawl as many pages a day.

    The freshness of the log is the mean over the time between its crawls of

    .. math:: \frac{1 - e^{-x}}{x}, \qquad x = \Delta w ,

    with the change rate :math:`\Delta` and the interval :math:`w`
    (`freshness.crawled`). The rules crawl each page at equal intervals: all at one
    rate ("uniform"), in proportion to the change rates, or at the optimal rates.

    Parameters
    ----------
    path : path
        As in `estimate`.
    n_pages : int, default 10000
        Pages drawn at random from the log, at most; those with two crawls or
        more that are not gone are used.
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
    ...     found = compare(log)
    >>> list(found.freshness)
    ['proportional', 'the log', 'uniform', 'optimal']
    """
    n_pages = checks.count("n_pages", n_pages)
    with reading.opened(path, memory=memory) as log:
        batch = log.sample(n_pages)
        few = log.sample(min(n_pages, host_prior.SAMPLE))
    gone = batch.page["gone"].to_numpy()
    history, crawled = batch.bits, (batch.bits.n_crawls > 0) & ~gone
    # as `estimate` does
    given = {"bits": few.all_bits, "host": few.page["host"]}
    chosen = host_prior.choose(few.all_crawls, **given)
    change_rate = chosen.rate(batch.all_crawls, batch.page["host"])
    if not batch.all_crawls.total(batch.all_crawls.changed)[crawled].any():
        raise ValueError(
            f"{path} must hold a page that was crawled twice, "
            "and one that changed, got none"
        )
    rate, weight = change_rate[crawled], np.asarray(batch.page["importance"])[crawled]
    observed = history.total(history.interval)[crawled]
    bandwidth = (history.n_crawls[crawled] / observed).sum()
    plans = {
        "uniform": np.full(rate.size, bandwidth / rate.size),
        "proportional": bandwidth * rate / rate.sum(),
        "optimal": allocation.optimal(rate, weight, bandwidth).crawl_rate,
    }
    fresh = {name: freshness.interval(rate, plan) for name, plan in plans.items()}
    fresh["the log"] = between_crawls(history, np.nan_to_num(change_rate))[crawled]
    means = {name: freshness.mean(each, weight).item() for name, each in fresh.items()}
    means = dict(sorted(means.items(), key=lambda item: item[1]))
    return Comparison(means, int(np.count_nonzero(crawled)))
