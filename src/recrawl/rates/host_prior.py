"""The prior of a log's change rates: one for all pages, or one for each host."""

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl.log.history import History
from recrawl.log.state import kept
from recrawl.rates import likelihood_kernels as kernels
from recrawl.rates.dispersion import by_host, encoded
from recrawl.rates.likelihood import substituted
from recrawl.rates.prior import PseudoObservations
from recrawl.types import Array

__all__ = ["SAMPLE", "Chosen", "choose", "learnt", "log_loss", "scaled"]

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
    >>> history = History([0.25], [True], [0, 1])
    >>> chosen.rate(history, pa.array(["a"])).round(3)
    array([2.773])
    """

    prior: PseudoObservations
    why: str
    scales: dict[str, float] | None = None

    def rate(self, history: History, host: Any) -> Array:
        """Change rates of pages, 1/time; their times and hosts as in `scaled`."""
        history, scale = scaled(history, self.scales, host)
        return self.prior.estimate(history) * scale


def scaled(
    history: History, scales: dict[str, float] | None, host: Any
) -> tuple[History, Array]:
    """Crawls in units of time in which hosts have equal mean rates.

    Parameters
    ----------
    history : History, shape (n_pages,)
        Of any pages.
    scales : dict of float or None
        Of `Chosen`.
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Returns
    -------
    history : History
        With the times of each page multiplied by its scale.
    scale : ndarray, shape (n_pages,)
        By which rates are to be multiplied; 1 for hosts without a scale.

    Examples
    --------
    >>> import pyarrow as pa
    >>> history = History([1.0], [True], [0, 1])
    >>> history, scale = scaled(history, {"a": 4.0}, pa.array(["a"]))
    >>> history.interval, scale
    (array([4.]), array([4.]))
    """
    if not scales:
        return history, np.ones(history.shape)
    scale = by_host(scales, 1.0, host)
    by = history.per_crawl(scale)
    times = {"interval": history.interval * by}
    if history.age is not None:
        times["age"] = history.age * by
    return replace(history, **times), scale


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
        f"one prior for {'each host' if better else 'all pages'}: the log loss of the "
        f"last bits of {gain.size} pages is {one.mean():.4f} with one prior for all "
        f"pages and {own.mean():.4f} with one for each host, which must be lower by "
        "two standard errors to be used"
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
    sample, _ = scaled(sample, scales, host)
    return Chosen(PseudoObservations.learn(sample), why, scales)


def _host_scales(history, host):
    """Mean change rates of hosts with crawls, over that of an average host."""
    names, member = encoded(host)
    owner = history.per_crawl(member)
    order = np.argsort(owner, kind="stable")
    n = np.bincount(owner, minlength=len(names))
    starts = np.append(0, np.cumsum(n))
    interval, changed, _, n_known = history.likelihood_terms()
    interval = interval[order]
    rate = np.empty(n.size)
    kernels.maxima(interval, changed[order], starts, n_known[order], rate)
    log = np.log(substituted(rate, interval, starts))
    known = np.isfinite(log)
    log, error = log[known], _LOG_VARIANCE / n[known]
    spread = max(log.var() - error.mean(), 0.0)
    log = spread / (spread + error) * (log - log.mean())
    return dict(zip(compress(names, known), np.exp(log).tolist(), strict=True))
