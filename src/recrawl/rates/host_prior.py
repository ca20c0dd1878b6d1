"""The prior of a log's change rates: one for all pages, or one for each host."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl.log.history import History
from recrawl.log.state import kept
from recrawl.rates import likelihood
from recrawl.rates.dependence import encoded
from recrawl.rates.prior import PseudoObservations
from recrawl.types import Array

__all__ = ["SAMPLE", "Chosen", "choose", "learn_prior", "learnt", "log_loss"]

# Pages from which the prior is learnt and on which predictions are compared.
# The standard error of a mean log loss is then about 0.01.
SAMPLE = 2000

# Predicted probabilities are kept this far from 0 and 1, so that one bit that
# was thought impossible does not outweigh all others.
_SURE = 1e-4

# Variance of the logarithm of the rate of a host, times its crawls: the least at the
# best interval is 1.5, and pages of one host differ (our choice).
_LOG_VARIANCE = 3.0


def log_loss(change_rate: ArrayLike, interval: ArrayLike, changed: ArrayLike) -> Array:
    r"""Logarithmic loss of the probability that a rate gave to a bit.

    .. math:: -\log P(\text{bit}), \qquad
       P(\text{changed}) = 1 - e^{-\Delta w},

    with probabilities kept within 1e-4 of 0 and 1 (our choice).

    Parameters
    ----------
    change_rate : array_like
        Predicted change rates, 1/time.
    interval : array_like
        Interval before each crawl, time.
    changed : array_like of bool
        Whether the crawl found a change. The three broadcast.

    Returns
    -------
    ndarray
        The loss of each bit, in nats.

    Examples
    --------
    >>> log_loss(0.5, 1.0, [True, False]).round(3)
    array([0.933, 0.5  ])
    """
    probability = -np.expm1(-np.multiply(change_rate, interval))
    probability = np.clip(probability, _SURE, 1 - _SURE)
    return -np.log(np.where(changed, probability, 1 - probability))


def learn_prior(sample: History) -> PseudoObservations:
    """Learn the prior of two pseudo-observations from a sample of pages.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random.

    Returns
    -------
    PseudoObservations
        Of `PseudoObservations.learn`; with fewer than two pages that have an
        interval, both pseudo-observations are as long as the mean interval.

    Examples
    --------
    >>> history = History([1.0, 3.0], [True, False], [0, 2])
    >>> learn_prior(history).changed
    2.0
    """
    crawled = sample.n_crawls > 0
    if crawled.sum() < 2:
        mean = float(sample.interval.mean()) if sample.interval.size else 1.0
        return PseudoObservations(mean, mean)
    rate = likelihood.mle(sample, substitute=True)[crawled]
    grid = np.geomspace(rate.min() / 10, rate.max() * 10, 500)
    return PseudoObservations.learn(sample, grid)


@dataclass(frozen=True)
class Chosen:
    """What was learnt from a sample of pages.

    Parameters
    ----------
    prior : PseudoObservations
        In units of `scaled` where there are scales.
    why : str
        Why each host has a prior of its own, or not, with the log losses.
    scales : dict of float, optional
        Mean change rates of hosts over that of an average host, where each host has
        its own prior.

    Examples
    --------
    >>> import pyarrow as pa
    >>> chosen = Chosen(PseudoObservations(1.0, 2.0), "", {"a": 4.0})
    >>> history, scale = chosen.scaled(History([1.0], [1], [0, 1]), pa.array(["a"]))
    >>> history.interval, scale
    (array([4.]), array([4.]))
    """

    prior: PseudoObservations
    why: str
    scales: dict[str, float] | None = None

    def rate(self, history: History, host: Any) -> Array:
        """Change rates of pages, 1/time; their times and hosts as in `scaled`."""
        history, scale = self.scaled(history, host)
        return self.prior.estimate(history) * scale

    def scaled(self, history: History, host: Any) -> tuple[History, Array]:
        """Crawls in units of time in which hosts have equal mean rates.

        Parameters
        ----------
        history : History, shape (n_pages,)
            Of any pages.
        host : pyarrow.Array or ChunkedArray
            Host of each page.

        Returns
        -------
        history : History
            With the times of each page multiplied by its scale.
        scale : ndarray, shape (n_pages,)
            By which rates are to be multiplied; 1 for hosts without a scale.
        """
        return _scaled(history, self.scales, host)


def choose(sample: History, *, bits: History, host: Any) -> Chosen:
    """Learn the prior, of all pages or of each host, by the last bit of pages.

    Scales of hosts and priors are learnt from the bits before the last one of each
    page. Each host has its own scale if the log loss of the last bits is smaller by two
    standard errors. A scale is the MLE of all crawls of a host as if they were of one
    page, the logarithm of which is shrunk to the mean of all hosts, the more the fewer
    crawls there are.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random.
    bits : History, shape (n_pages,)
        The crawls that are compared, of the same pages: where the sample has
        observations that no crawl made, only crawls can be predicted.
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Returns
    -------
    Chosen

    Examples
    --------
    >>> import pyarrow as pa
    >>> history = History([1.0, 3.0], [True, False], [0, 1, 2])
    >>> choose(history, bits=history, host=pa.array(["a", "a"])).why
    'one prior for all pages: nothing to compare'
    """
    compared = bits.n_crawls >= 2
    last = bits.offsets[1:][compared] - 1
    if not compared.any() or len(encoded(host)[0]) < 2:
        return learnt(sample, host, None, "one prior for all pages: nothing to compare")
    keep = np.ones(bits.interval.size, dtype=bool)
    keep[last] = False
    before = kept(bits, keep)

    def loss(scales):
        rate = learnt(before, host, scales).rate(before, host)[compared]
        return log_loss(rate, bits.interval[last], bits.changed[last])

    one, own = loss(None), loss(_host_scales(before, host))
    gain = one - own
    better = gain.mean() > 2 * gain.std() / np.sqrt(gain.size)
    why = (
        f"one prior for {'each host' if better else 'all pages'}: log loss of the "
        f"last bit of {gain.size} pages {own.mean():.4f} with one for each host, which "
        f"must be better by two standard errors, {one.mean():.4f} without"
    )
    return learnt(sample, host, _host_scales(sample, host) if better else None, why)


def learnt(
    sample: History, host: Any, scales: dict[str, float] | None, why: str = ""
) -> Chosen:
    """Learn the prior with given scales of hosts, or with one for all pages.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random.
    host : pyarrow.Array or ChunkedArray
        Host of each page.
    scales : dict of float or None
        As in `Chosen`.
    why : str, default ""
        As in `Chosen`.

    Returns
    -------
    Chosen
    """
    return Chosen(learn_prior(_scaled(sample, scales, host)[0]), why, scales)


def _host_scales(history, host):
    """Mean change rates of hosts with crawls, over that of an average host."""
    names, member = encoded(host)
    owner = history.per_crawl(member)
    order = np.argsort(owner, kind="stable")
    n = np.bincount(owner, minlength=len(names))
    age = None if history.age is None else history.age[order]
    crawls = history.interval[order], history.changed[order]
    together = History(*crawls, np.append(0, np.cumsum(n)), age=age)
    rate = likelihood.mle(together, substitute=True)
    known = (n > 0) & (rate > 0) & (rate < np.inf)
    log, error = np.log(rate[known]), _LOG_VARIANCE / n[known]
    spread = max(log.var() - error.mean(), 0.0)
    log = spread / (spread + error) * (log - log.mean())
    names = [names[k] for k in np.flatnonzero(known)]
    return dict(zip(names, np.exp(log).tolist(), strict=True))


def _scaled(history, scales, host):
    """Crawls and scales of `Chosen.scaled`."""
    if not scales:
        return history, np.ones(history.shape)
    names, member = encoded(host)
    scale = np.array([scales.get(name, 1.0) for name in names])[member]
    by = history.per_crawl(scale)
    age = None if history.age is None else history.age * by
    crawls = history.interval * by, history.changed, history.offsets
    return History(*crawls, age=age), scale
