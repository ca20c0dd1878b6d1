"""Greedy crawling that learns change rates as it crawls."""

from dataclasses import dataclass, field

import numpy as np

from paperlib import checks
from paperlib._kernels import indices as kernels
from paperlib.policies.by_index import IndexPolicy

__all__ = ["BayesGreedy"]


@dataclass(frozen=True, eq=False)
class BayesGreedy(IndexPolicy):
    r"""Each slot goes to the page of largest crawl value under its posterior.

    What is known of a change rate is a gamma distribution of shape a and rate
    b, which every crawl updates as `estimators.GammaFilter` does. The copy of
    a page is stale at the elapsed time t with probability
    :math:`1 - (b / (b + t))^a`, and `freshness.bayes_crawl_value` is the crawl
    value of this cost. A page of which little is known keeps a large value in
    the long run, so that a change rate that was once taken for too high is
    corrected: the policy explores without a parameter. In none of the papers.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), non-negative
        Importances.
    min_interval, max_interval, host, host_limit : optional
        Limits, as in `IndexPolicy`.
    shape : array_like, positive
        Shape of the prior of the change rates, one number or one for each
        page; `priors.gamma_prior` learns it from other pages. For want of a
        better one: 0.5, half a change ...
    rate : array_like, time, positive
        Rate of the prior, likewise: shape / rate is the mean change rate. For
        want of a better one: ... in half the mean time between crawls of a
        page, 0.5 n_pages / bandwidth.

    Raises
    ------
    ValueError
        Arguments out of range, or limits that do not fit the pages.

    Notes
    -----
    In a world the policy is told after each crawl whether the page had
    changed; a `scheduler.Scheduler` of it is told by `Scheduler.report`.

    Examples
    --------
    >>> from paperlib import simulate
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.2, 1.0, 5.0], 1.0, 0.0, 0.0)
    >>> world = simulate.draw_world(pages, 300.0, rng=1)
    >>> policy = BayesGreedy(pages.importance, shape=0.5, rate=0.5)
    >>> simulate.crawl(world, policy, bandwidth=2.0).n_crawls.tolist()
    [163, 245, 192]
    """

    importance: np.ndarray
    shape: np.ndarray = field(kw_only=True)
    rate: np.ndarray = field(kw_only=True)

    def __post_init__(self):
        importance = checks.non_negative("importance", self.importance)
        if importance.ndim != 1:
            raise ValueError(
                f"importance must have one axis, got shape {importance.shape}"
            )
        prior = checks.broadcast(
            importance=importance,
            shape=checks.positive("shape", self.shape),
            rate=checks.positive("rate", self.rate),
        )
        for name, value in zip(("importance", "shape", "rate"), prior, strict=True):
            object.__setattr__(self, name, value)  # because the dataclass is frozen
        super().__post_init__()

    kind = kernels.BAYES  # no field: it has no type

    @property
    def n_pages(self):
        """Number of pages."""
        return self.importance.size

    def _describe(self, records):
        records["scale"] = self.importance
        records["gamma_shape"], records["rate"] = self.shape, self.rate
        return {}

    def _changes(self, world):
        change_time, offsets = world.changes
        return change_time, offsets[:-1].copy(), offsets[1:]
