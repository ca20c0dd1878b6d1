"""How well the first part of a log predicts the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paperlib import checks
from recrawl.log import reading
from recrawl.log.history import History
from recrawl.log.state import kept
from recrawl.rates import host_prior, likelihood
from recrawl.types import PathLike

__all__ = ["Backtest", "backtest"]

_RULES = "prior", "one rate"
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
        host = sample.page["host"]
        _, before, _ = _split(sample, cut)
        chosen = host_prior.choose(before, bits=before, host=host)
        together = History(before.interval, before.changed)
        one_rate = likelihood.mle(together, substitute=True)
        found = [_predicted(batch, cut, chosen, one_rate) for batch in log.batches()]
    n_bits, bits = (np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
    if not bits.size:
        raise ValueError(
            f"{path} must hold a page with intervals before and after {share:g} "
            "of its rows, got none"
        )
    return _summary(np.repeat(np.arange(n_bits.size), n_bits), *bits)


def _split(batch, cut):
    """Crawls of each page, those up to a time, and which come after one of these."""
    early = batch.time[batch.crawled] <= cut
    bits = batch.bits
    before = kept(bits, early)
    return bits, before, ~early & bits.per_crawl(before.n_crawls > 0)


def _predicted(batch, cut, chosen, one_rate):
    """Number of bits of each page after a time; the bits, and rates from before."""
    bits, before, late = _split(batch, cut)
    rate = bits.per_crawl(chosen.rate(before, batch.page["host"]))[late]
    one_rate = np.full(rate.size, one_rate)
    columns = bits.changed[late], bits.interval[late], rate, one_rate
    return kept(bits, late).n_crawls, np.array(columns)


def _summary(page, changed, interval, *rates):
    """Summarise bits, the pages that they are of, and their predictions by rule."""
    n = page.size
    loss = host_prior.log_loss(rates, interval, changed)
    mean = loss.mean(axis=1)
    behind = loss - loss[mean.argmin()]
    # Pages are independent, bits of a page are not: the standard error is that
    # of a ratio of sums over pages.
    behind -= behind.mean(axis=1, keepdims=True)
    stderr = [np.linalg.norm(np.bincount(page, each)).item() / n for each in behind]
    calibration = [_calibration(rate * interval, changed) for rate in rates]
    order = mean.argsort(kind="stable")
    mean, stderr, calibration = (
        {_RULES[k]: values[k] for k in order}
        for values in (mean.tolist(), stderr, calibration)
    )
    return Backtest(n, mean, stderr, calibration)


def _calibration(n_changes, changed):
    """Mean probability, share of changes, and number of crawls, by bin.

    The probabilities follow from the expected numbers of changes.
    """
    probability = -np.expm1(-n_changes)
    place = np.minimum((probability * _N_BINS).astype(int), _N_BINS - 1)
    n = np.bincount(place, minlength=_N_BINS)
    sums = [np.bincount(place, each, _N_BINS) for each in (probability, changed)]
    with np.errstate(invalid="ignore"):  # 0 / 0 of an empty bin
        return np.column_stack([*(sums / n), n])
