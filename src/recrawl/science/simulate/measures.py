"""Costs of a schedule of crawls in measures other than freshness."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.science.simulate.runs import CrawlRun
from recrawl.science.simulate.worlds import World

__all__ = ["Costs", "costs"]

_MOST = 0.95  # share of the changes whose delay does not exceed `Costs.late`


class Costs(NamedTuple):
    """Costs of a run, weighted by importance.

    Parameters
    ----------
    delay : float, time
        Mean time from a change to the next crawl of its page.
    late : float, time
        The delay that 95% of the changes do not exceed.
    age : float, time
        Mean over time of the time since the first change that the copy lacks.
    harmonic : float
        Mean over time of 1 + 1/2 + ... + 1/N, with the N changes that the copy
        lacks.

    Examples
    --------
    >>> Costs(delay=1.25, late=1.5, age=0.5, harmonic=0.25).late
    1.5
    """

    delay: float
    late: float
    age: float
    harmonic: float


def costs(run: CrawlRun, world: World) -> Costs:
    r"""Measure the costs of a run by the changes of its world.

    For the changes at times t, each seen by a crawl at s(t), as the k-th that
    this crawl sees,

    .. math:: \mathrm{delay} = \frac{\sum \mu\,(s - t)}{\sum \mu}, \qquad
        \mathrm{age} = \frac{\sum_{k=1} \mu\,(s - t)^2 / 2}{T \sum_i \mu_i},
        \qquad \mathrm{harmonic} = \frac{\sum \mu\,(s - t) / k}{T \sum_i \mu_i} .

    A change that no crawl has seen counts as if it were seen at the end of the
    world, so that delays are slightly too short where crawls are rare.

    Parameters
    ----------
    run : CrawlRun
        A run over the whole time of the world, whose pages all stay.
    world : World
        Its world.

    Returns
    -------
    Costs
        NaN delays if nothing changed; all NaN if all importances are 0.

    Notes
    -----
    The plain form is `tests.plain.costs`.

    Examples
    --------
    >>> from recrawl.science import policies, simulate
    >>> world = simulate.replay([[1.5, 2.0], []], 4.0)
    >>> run = simulate.crawl(world, policies.Rates([1.0, 1.0]), bandwidth=1.0)
    >>> costs(run, world)  # the page is crawled at 1 and 3
    Costs(delay=1.25, late=1.5, age=0.140625, harmonic=0.25)
    """
    change, offsets = world.changes
    page = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    slots = np.flatnonzero(run.page >= 0)
    slots = slots[np.argsort(run.page[slots], kind="stable")]
    # One search for all pages, each of which is crawled at the horizon at last:
    # their times laid end to end.
    far = 2 * world.horizon
    last = np.arange(offsets.size - 1)
    crawls = np.append(run.page[slots] * far + run.time[slots], last * far)
    crawls[slots.size :] += world.horizon
    crawls.sort()
    laid = page * far + change
    seen_by = np.searchsorted(crawls, laid)
    delay = crawls[seen_by] - laid
    # The first change that a crawl sees, for the copy is stale from then on.
    first = np.diff(seen_by, prepend=-1) > 0
    begin = np.flatnonzero(first)
    # Of the changes that one crawl sees: 1 for the first, 2 for the second, ...
    length = np.diff(begin, append=page.size)
    number = 1 + np.arange(page.size) - np.repeat(begin, length)
    weight = run.importance[page]
    whole = run.importance.sum() * world.horizon or np.nan
    return Costs(
        *_mean_and_late(delay, weight),
        float((weight * delay**2)[first].sum() / 2 / whole),
        float((weight * delay / number).sum() / whole),
    )


def _mean_and_late(delay, weight):
    """Weighted mean and 95% quantile; NaN without a change."""
    if not weight.any():
        return np.nan, np.nan
    order = np.argsort(delay)
    share = np.cumsum(weight[order]) / weight.sum()
    late = delay[order][np.searchsorted(share, _MOST)]
    # Not delay @ weight: threads of BLAS wait for one another on busy cores.
    return float((delay * weight).sum() / weight.sum()), float(late)
