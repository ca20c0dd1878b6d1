"""The estimators of a log's change rates, and which of them predicts best."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl.dependence import encoded
from recrawl.science import estimators
from recrawl.science.priors import DegeneratePriorWarning, FakeIntervals
from recrawl.science.processes import History
from recrawl.state import kept
from recrawl.types import Array

__all__ = [
    "ESTIMATORS",
    "SAMPLE",
    "Chosen",
    "choose",
    "choose_scales",
    "host_scales",
    "learn_prior",
    "log_loss",
    "scaled",
]

# Pages from which the prior is learnt and on which estimators are compared.
# The standard error of a mean log loss is then about 0.01.
SAMPLE = 2000

# Predicted probabilities are kept this far from 0 and 1, so that one bit that
# was thought impossible does not outweigh all others.
_SURE = 1e-4

# Variance of the logarithm of the rate of a host, times its crawls: the least at the
# best interval is 1.5, and pages of one host differ (our choice).
_LOG_VARIANCE = 3.0


def _prior(history, prior):
    return prior.estimate(history)


def _mle(history, prior):
    return estimators.mle(history, edges="substitute")


def _moment_matching(history, prior):
    # at its limits 0 and inf the substitutes of the MLE stand in
    limits = estimators.DegenerateHistoryWarning
    with warnings.catch_warnings(action="ignore", category=limits):
        rate = estimators.moment_matching(history)
    return np.where((rate > 0) & (rate < np.inf), rate, _mle(history, prior))


def _naive(history, prior):
    return estimators.naive(history)


#: Functions of a `History` and a `FakeIntervals` prior, by name.
ESTIMATORS = {
    "prior": _prior,
    "mle": _mle,
    "moment_matching": _moment_matching,
    "naive": _naive,
}


def log_loss(change_rate: ArrayLike, interval: ArrayLike, changed: ArrayLike) -> Array:
    r"""Logarithmic loss of the probability that a rate gave to a bit.

    .. math:: -\log P(\text{bit}), \qquad
       P(\text{changed}) = 1 - e^{-\Delta w},

    with probabilities kept within 1e-4 of 0 and 1 (our choice).

    Parameters
    ----------
    change_rate : array_like
        Predicted change rates, 1/time; ``inf`` is possible.
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


def learn_prior(sample: History) -> FakeIntervals:
    """Learn the prior of two pseudo-observations from a sample of pages.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random.

    Returns
    -------
    FakeIntervals
        Of `FakeIntervals.learn`; with fewer than two pages that have an
        interval, both pseudo-observations are as long as the mean interval.

    Examples
    --------
    >>> history = History([1.0, 3.0], [True, False], [0, 2])
    >>> learn_prior(history).changed
    2.0
    """
    crawled = sample.n_crawls > 0
    if crawled.sum() < 2:
        mean = sample.interval.mean() if sample.interval.size else 1.0
        return FakeIntervals(mean, mean)
    rate = estimators.mle(sample, edges="substitute")[crawled]
    grid = np.geomspace(rate.min() / 10, rate.max() * 10, 500)
    # the prior is written down in any case, for the user to see
    with warnings.catch_warnings(action="ignore", category=DegeneratePriorWarning):
        return FakeIntervals.learn(sample, grid)


@dataclass(frozen=True)
class Chosen:
    """An estimator and what it learnt from a sample.

    Parameters
    ----------
    prior : FakeIntervals
        Learnt from the sample; in units of `scaled` where there are scales.
    estimator : str
        A name in `ESTIMATORS`.
    why : str
        Why it is this one, with the log losses.
    scales : dict of float, optional
        Of `host_scales`, where each host has its own prior.

    Examples
    --------
    >>> import pyarrow as pa
    >>> history = History([1.0, 3.0], [True, False], [0, 2])
    >>> chosen = Chosen(FakeIntervals(1.0, 2.0), "naive", "asked for")
    >>> chosen.rate(history, pa.array(["a"]))
    array([0.25])
    """

    prior: FakeIntervals
    estimator: str
    why: str
    scales: dict[str, float] | None = None

    def rate(self, history: History, host: Any) -> Array:
        """Change rates of pages.

        Parameters
        ----------
        history : History, shape (n_pages,)
            Of any pages.
        host : pyarrow.Array or ChunkedArray
            Host of each page.

        Returns
        -------
        ndarray, 1/time
        """
        history, scale = scaled(history, self.scales, host)
        return ESTIMATORS[self.estimator](history, self.prior) * scale


def choose(
    sample: History,
    estimator: str | None = None,
    *,
    bits: History | None = None,
    host: Any = None,
) -> Chosen:
    """Choose the estimator that predicts the last bit of pages best.

    Each estimator sees the crawls of each page but the last one. The prior is
    kept unless another estimator has a smaller log loss by two standard
    errors; each host may then have its own, see `choose_scales`.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random.
    estimator : str, optional
        A name in `ESTIMATORS`, which is then chosen.
    bits : History, shape (n_pages,), optional
        The crawls that are compared, of the same pages: where the sample has
        observations that no crawl made, only crawls can be predicted.
    host : pyarrow.Array or ChunkedArray, optional
        Host of each page.

    Returns
    -------
    Chosen

    Examples
    --------
    >>> history = History([1.0, 3.0], [True, False], [0, 1, 2])
    >>> choose(history).why
    'no page has two intervals to compare estimators on'
    """
    prior = learn_prior(sample)
    if estimator is not None:
        return Chosen(prior, estimator, "asked for")
    bits = sample if bits is None else bits
    name, why = _best(bits, prior)
    if name != "prior" or host is None:
        return Chosen(prior, name, why)
    prior, scales, more = choose_scales(sample, prior, host, bits=bits)
    return Chosen(prior, name, why + more, scales)


def _best(bits, prior):
    """The estimator that predicts the last bit of pages best, and why."""
    last = bits.changed[bits.offsets[1:][bits.n_crawls >= 2] - 1]
    if not last.size:
        return "prior", "no page has two intervals to compare estimators on"
    if last.all() or not last.any():  # a rate of 0 or infinity would seem perfect
        return "prior", "the last bits of all pages are the same"
    loss = _losses(bits, prior)
    order = sorted(loss, key=lambda name: loss[name].mean())
    gain = loss["prior"] - loss[order[0]]
    listed = ", ".join(f"{name} {loss[name].mean():.4f}" for name in order)
    why = (
        f"log loss of the last bit of {gain.size} pages, where another must be "
        f"better by two standard errors: {listed}"
    )
    return order[0] if _better(gain) else "prior", why


def _better(gain):
    """Whether a mean gain of log loss is above two standard errors."""
    return gain.mean() > 2 * gain.std() / np.sqrt(gain.size)


def host_scales(history: History, host: Any) -> dict[str, float]:
    """Mean change rates of hosts, over that of an average host.

    The MLE of all crawls of a host as if they were of one page, the logarithm of
    which is shrunk to the mean of all hosts, the more the fewer crawls there are.

    Parameters
    ----------
    history : History, shape (n_pages,)
        Of a random sample.
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Returns
    -------
    dict of float
        By host, of hosts with crawls.

    Examples
    --------
    >>> import pyarrow as pa
    >>> history = History([1.0] * 6, [1, 1, 0, 0, 0, 1], [0, 3, 6])
    >>> host_scales(history, pa.array(["a", "b"]))
    {'a': 1.0, 'b': 1.0}
    """
    names, member = encoded(host)
    owner = history.per_crawl(member)
    order = np.argsort(owner, kind="stable")
    n = np.bincount(owner, minlength=len(names))
    offsets = np.append(0, np.cumsum(n))
    optional = {
        name: values if values is None else values[order]
        for name, values in (("age", history.age), ("count", history.count))
    }
    crawls = history.interval[order], history.changed[order]
    rate = estimators.mle(History(*crawls, offsets, **optional), edges="substitute")
    known = (n > 0) & (rate > 0) & (rate < np.inf)
    if not known.any():
        return {}
    log, error = np.log(rate[known]), _LOG_VARIANCE / n[known]
    spread = max(log.var() - error.mean(), 0.0)
    log = spread / (spread + error) * (log - log.mean())
    names = [names[k] for k in np.flatnonzero(known)]
    return dict(zip(names, np.exp(log).tolist(), strict=True))


def scaled(
    history: History, scales: dict[str, float] | None, host: Any
) -> tuple[History, Array]:
    """Crawls in units of time in which hosts have equal mean rates.

    Parameters
    ----------
    history : History, shape (n_pages,)
        Of any pages.
    scales : dict of float, or None
        Of `host_scales`; None for no hosts.
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
    >>> history = History([1.0], [1], [0, 1])
    >>> history, scale = scaled(history, {"a": 2.0}, pa.array(["a"]))
    >>> history.interval, scale
    (array([2.]), array([2.]))
    """
    if not scales:
        return history, np.ones(history.shape)
    names, member = encoded(host)
    scale = np.array([scales.get(name, 1.0) for name in names])[member]
    by = history.per_crawl(scale)
    age = None if history.age is None else history.age * by
    crawls = history.interval * by, history.changed, history.offsets
    return History(*crawls, age=age, count=history.count), scale


def choose_scales(
    sample: History, prior: FakeIntervals, host: Any, *, bits: History
) -> tuple[FakeIntervals, dict[str, float] | None, str]:
    """Choose whether each host has a scale of its own, by the last bit of pages.

    Scales and priors are learnt from the bits before the last one of each page. Scales
    are chosen if the log loss is smaller with them by two standard errors.

    Parameters
    ----------
    sample : History, shape (n_pages,)
        Pages drawn at random.
    prior : FakeIntervals
        Learnt from the sample.
    host : pyarrow.Array or ChunkedArray
        Host of each page.
    bits : History, shape (n_pages,)
        As in `choose`.

    Returns
    -------
    prior : FakeIntervals
        In units of `scaled` where scales were chosen.
    scales : dict of float, or None
        Of `host_scales`.
    why : str
        The reason, with the log losses; empty where nothing is compared.

    Examples
    --------
    >>> import pyarrow as pa
    >>> history = History([1.0, 3.0], [True, False], [0, 1, 2])
    >>> prior = FakeIntervals(1.0, 1.0)
    >>> choose_scales(history, prior, pa.array(["a", "a"]), bits=history)[1:]
    (None, '')
    """
    before, compared, last = _without_last(bits)
    if not compared.any() or len(encoded(host)[0]) < 2:
        return prior, None, ""

    def loss(scales):
        history, scale = scaled(before, scales, host)
        rate = learn_prior(history).estimate(history) * scale
        return log_loss(rate[compared], *last)

    one, own = loss(None), loss(host_scales(before, host))
    gain = one - own
    why = f"; one prior {one.mean():.4f}, one for each host {own.mean():.4f}"
    if not _better(gain):
        return prior, None, f"{why}, of which the first is taken"
    why += ", of which the second is taken"
    scales = host_scales(sample, host)
    return learn_prior(scaled(sample, scales, host)[0]), scales, why


def _losses(sample, prior):
    """Log loss of the last bit of pages with two intervals, by estimator."""
    before, compared, last = _without_last(sample)
    return {
        name: log_loss(rule(before, prior)[compared], *last)
        for name, rule in ESTIMATORS.items()
    }


def _without_last(sample):
    """Crawls without the last of pages that have two, which pages, and the last."""
    compared = sample.n_crawls >= 2
    last = sample.offsets[1:][compared] - 1
    keep = np.ones(sample.interval.size, dtype=bool)
    keep[last] = False
    return kept(sample, keep), compared, (sample.interval[last], sample.changed[last])
