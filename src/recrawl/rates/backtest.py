"""How well the first part of a log predicts the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib import checks
from recrawl.log import reading
from recrawl.log.history import History
from recrawl.log.state import kept
from recrawl.rates import host_prior, likelihood
from recrawl.types import PathLike

__all__ = ["Backtest", "backtest", "split"]

_N_BINS = 10  # of the calibration, of equal width in probability


@dataclass(frozen=True, eq=False)
class Backtest:
    """How well rates from the first part of a log predict the rest.

    Parameters
    ----------
    n_bits : int
        Number of bits predicted.
    log_loss : dict of float
        Mean `log_loss` of a bit by rule, the best first.
    stderr : dict of float
        Standard errors, over pages, of the differences from the best.
    calibration : dict of ndarray, shape (10, 3)
        Mean predicted probability of a change, share of crawls that found one,
        and number of crawls.
    """

    n_bits: int
    log_loss: dict
    stderr: dict
    calibration: dict


def backtest(path: PathLike, *, share: float = 0.8, memory: str = "50%") -> Backtest:
    """Estimate on the first part of a log, and predict the bits of the rest.

    Two rules predict: "prior" is the rate of `estimate`; "one rate" gives all pages
    the MLE of all of them together. Pages without an interval in the first part are
    left out.

    Parameters
    ----------
    path : path
        As in `estimate`.
    share : float, default 0.8
        Share of the rows of the log, the first in time, that is estimated on,
        in (0, 1).
    memory : str, default "50%"
        As in `estimate`.

    Returns
    -------
    Backtest
        Losses and calibration by rule.

    Raises
    ------
    ValueError
        As `estimate`; no bit to predict.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder, "log.csv")
    ...     rows = [f"a,2026-01-0{day},{day % 2}" for day in range(1, 10)]
    ...     rows += [f"b,2026-01-0{day},{day // 9}" for day in range(1, 10)]
    ...     _ = log.write_text("\\n".join(["url,time,changed", *rows]))
    ...     found = backtest(log, share=0.5)
    >>> found.n_bits, sorted(found.log_loss)
    (8, ['one rate', 'prior'])
    """
    share = checks.number("share", share, high=1.0)
    checks.require("share", share, "strictly between 0 and 1", 0.0 < share < 1.0)
    with reading.opened(path, memory=memory) as log:
        cut = log.time_at(share)
        sample = log.sample(host_prior.SAMPLE)
        rules = _rules(split(sample, cut)[0], sample.page["host"])
        scores = [_score(batch, cut, rules) for batch in log.batches()]
    loss, n_bits, counts = zip(*scores, strict=True)
    n_bits = np.concatenate(n_bits)
    if not n_bits.any():
        raise ValueError(
            f"{path} must hold a page with intervals before and after {share:g} "
            "of its rows, got none"
        )
    return _summary(list(rules), np.concatenate(loss, axis=1), n_bits, sum(counts))


def split(batch: Any, cut: int) -> tuple[History, History, NDArray[np.integer]]:
    """Split the history of pages that have intervals before a time.

    Parameters
    ----------
    batch : reading.Batch
        Any pages of a log.
    cut : int
        Microseconds since 1970; a crawl at this time is before it.

    Returns
    -------
    before : History, shape (n_pages,)
        The crawls before it.
    after : History, shape (1,)
        Those after it, of all pages together that have some before.
    owner : ndarray of int
        The page of each of the latter.

    Examples
    --------
    >>> from recrawl.log.reading import Batch
    >>> history = History([1.0, 2.0, 3.0], [0, 1, 1], [0, 2, 3])
    >>> time, crawled = np.array([1, 3, 4]), np.ones(3, dtype=bool)
    >>> batch = Batch(None, history, time, crawled)
    >>> before, after, owner = split(batch, 2)
    >>> before.interval, after.interval, owner
    (array([1.]), array([2.]), array([0]))
    """
    interval, changed, offsets = batch.bits.ragged()
    early = batch.time[batch.crawled] <= cut
    before = kept(batch.bits, early)
    owner = np.repeat(np.arange(before.n_crawls.size), np.diff(offsets))
    late = ~early & (before.n_crawls > 0)[owner]
    after = History(interval[late], changed[late], [0, np.count_nonzero(late)])
    return before, after, owner[late]


def _rules(sample, host):
    """Functions from a history and hosts to change rates, learnt from a sample."""
    interval, changed, _ = sample.ragged()
    together = History(interval, changed, [0, interval.size])
    one_rate = likelihood.mle(together, substitute=True)
    return {
        "prior": host_prior.choose(sample, bits=sample, host=host).rate,
        "one rate": lambda history, host: np.full(history.shape, one_rate),
    }


def _score(batch, cut, rules):
    """Score the predictions of the crawls after a time from those before.

    Returns the sum of losses by rule and page; the number of bits by page; and
    by rule and bin of probability the sum of probabilities, the number of
    changes, and the number of bits.
    """
    before, after, owner = split(batch, cut)
    (n_pages,) = before.shape
    losses, counts = [], []
    for rule in rules.values():
        rate = rule(before, batch.page["host"])[owner]
        loss = host_prior.log_loss(rate, after.interval, after.changed)
        losses.append(np.bincount(owner, loss, minlength=n_pages))
        probability = -np.expm1(-rate * after.interval)
        place = np.minimum((probability * _N_BINS).astype(int), _N_BINS - 1)
        columns = [
            np.bincount(place, weight, minlength=_N_BINS)
            for weight in (probability, after.changed, np.ones(owner.size))
        ]
        counts.append(np.column_stack(columns))
    return np.array(losses), np.bincount(owner, minlength=n_pages), np.array(counts)


def _summary(names, loss, n_bits, counts):
    """Summarise losses by rule and page, and counts by rule and bin."""
    n = n_bits.sum()
    mean = loss.sum(axis=1) / n
    order = mean.argsort(kind="stable")
    behind, best = loss - loss[order[0]], mean[order[0]]
    # Pages are independent, bits of a page are not: the standard error is that
    # of a ratio of sums over pages.
    residual = behind - n_bits * (mean - best)[:, np.newaxis]
    stderr = np.sqrt((residual**2).sum(axis=1)) / n
    with np.errstate(invalid="ignore"):
        calibration = np.dstack([counts[..., :2] / counts[..., 2:], counts[..., 2]])
    return Backtest(
        int(n),
        {names[k]: mean[k].item() for k in order},
        {names[k]: stderr[k].item() for k in order},
        dict(zip(names, calibration, strict=True)),
    )
