"""How well the first part of a log predicts the rest."""

from dataclasses import dataclass

import numpy as np

from paperlib import checks, policies
from paperlib.crawl_log import reading
from paperlib.crawl_log.estimating import (
    _SAMPLE,
    ESTIMATORS,
    _learn,
    _mle,
    log_loss,
)
from paperlib.processes import History

_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, eq=False)
class Backtest:
    """How well rates from the first part of a log foretell the bits of the rest.

    n_bits : int, foretold
    log_loss : dict of float, `log_loss` a bit by estimator, the best first
    stderr : dict of float, standard errors of the differences from the best, over pages
    calibration : dict of array, shape (n_bins, 3): mean foretold probability of a change, share of crawls that found one, number of crawls
    """

    n_bits: int
    log_loss: dict
    stderr: dict
    calibration: dict


def backtest(path, *, share=0.8, n_bins=10, memory="1GiB"):
    """Estimate on the first part of a log and foretell the bits of the rest, by every estimator of `estimate` and two simple rules.

    "one rate" gives all pages the MLE of all of them together; "Nutch" the rate at which its interval, after the bits so far, would stay
    as it is. Pages without an interval in the first part are left out.

    Parameters
    ----------
    path, memory : as in `estimate`
    share : float in (0, 1)
        Of the rows of the log, the first in time.
    n_bins : int
        Of the calibration, of equal width in probability.

    Returns
    -------
    Backtest

    Raises
    ------
    ValueError
        As `estimate`; no bit to foretell.
    """
    share, n_bins = checks.probability("share", share), checks.count("n_bins", n_bins)
    rules = ESTIMATORS | {"Nutch": lambda history, prior: _nutch_rate(history)}
    totals, table = [], {}
    with reading.opened(path, memory=memory) as log:
        cut = log.time_at(share)
        sample, *_ = _split(log.sample(_SAMPLE), cut)
        prior, one = (
            _learn(sample),
            _mle(History(*sample.ragged()[:2], [0, sample.interval.size]), None),
        )
        for batch in log.batches():
            before, after, owner = _split(batch, cut)
            rates = {name: rule(before, prior) for name, rule in rules.items()} | {
                "one rate": np.full(before.shape, one)
            }
            table_here = np.zeros((len(rates), before.shape[0]))
            for k, (name, rate) in enumerate(rates.items()):
                loss = log_loss(rate[owner], after.interval, after.changed)
                table_here[k] = np.bincount(owner, loss, minlength=before.shape[0])
                p = -np.expm1(-rate[owner] * after.interval)
                bin_ = np.minimum((p * n_bins).astype(int), n_bins - 1)
                counts = [
                    np.bincount(bin_, weights, minlength=n_bins)
                    for weights in (p, after.changed, np.ones(p.size))
                ]
                table[name] = table.get(name, 0) + np.stack(counts, axis=1)
            totals.append(
                np.vstack([table_here, np.bincount(owner, minlength=before.shape[0])])
            )
    *losses, bits = np.concatenate(totals, axis=1)
    n = int(bits.sum())
    if not n:
        raise ValueError(
            f"{path} must hold a page with intervals before and after {share:g} of its rows, got none"
        )
    mean = dict(
        sorted(
            ((name, loss.sum() / n) for name, loss in zip(table, losses, strict=True)),
            key=lambda item: item[1],
        )
    )
    by_name = dict(zip(table, losses, strict=True))
    best = by_name[next(iter(mean))]
    # pages are independent: the variance of a ratio of sums over them
    stderr = {
        name: float(
            np.sqrt(
                (
                    ((by_name[name] - best) - bits * (mean[name] - best.sum() / n)) ** 2
                ).sum()
            )
            / n
        )
        for name in mean
    }
    with np.errstate(invalid="ignore"):
        calibration = {
            name: np.column_stack(
                [counts[:, 0] / counts[:, 2], counts[:, 1] / counts[:, 2], counts[:, 2]]
            )
            for name, counts in table.items()
        }
    return Backtest(
        n, {name: float(loss) for name, loss in mean.items()}, stderr, calibration
    )


def _split(batch, cut):
    """Histories before and after a time, of pages that have intervals before it; of the crawls after, which page each is of."""
    interval, changed, offsets = batch.history.ragged()
    early = batch.time <= cut
    n = np.append(0, np.cumsum(early))[offsets]
    owner = np.repeat(np.arange(n.size - 1), np.diff(offsets))
    late = ~early & (np.diff(n) > 0)[owner]
    after = History(interval[late], changed[late], [0, np.count_nonzero(late)])
    return History(interval[early], changed[early], n), after, owner[late]


def _nutch_rate(history):
    """The change rate at which Nutch's interval, after these bits, is as likely to grow as to shrink."""
    rule = policies.Nutch()
    _, changed, offsets = history.ragged()
    now = np.full(history.shape, rule.initial)
    for k in range(int(history.n_crawls.max(initial=0))):
        at = offsets[:-1] + k
        some = at < offsets[1:]
        now[some] = np.clip(
            now[some] * np.where(changed[at[some]], rule.shrink, rule.grow),
            *rule.limits,
        )
    balance = np.log(rule.grow) / np.log(
        rule.grow / rule.shrink
    )  # the share of changes that leaves it as it is
    return -np.log1p(-balance) / now
