"""Greedy crawling by the posteriors of change rates."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from recrawl import checks
from recrawl.kernels import indices as kernels
from recrawl.kernels import learning
from recrawl.science.policies.by_index import IndexPolicy
from recrawl.science.policies.fixed_rates import check_n_pages
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Ints, Seed, Values

__all__ = ["BayesGreedy", "PosteriorGreedy"]

_HOW = {"mean": learning.MEAN, "thompson": learning.THOMPSON, "held": learning.HELD}


@dataclass(frozen=True, eq=False)
class BayesGreedy(IndexPolicy):
    r"""Each slot goes to the page of largest crawl value under its posterior.

    What is known of a change rate is a gamma distribution of shape a and rate
    b, which every crawl that is reported updates. The copy of
    a page is stale at the elapsed time t with probability

    .. math:: c(t) = 1 - \left(\frac{b}{b + t}\right)^a ,

    and the crawl value of this cost is (derived)

    .. math:: V(t) = \frac{\mu}{a - 1} \Bigl(b
              - (b + a t) \Bigl(\frac{b}{b + t}\Bigr)^a\Bigr), \qquad
              V(\infty) = \frac{\mu\,b}{a - 1}\ (a > 1), \quad
              \infty\ (a \le 1) .

    A page of which little is known keeps a large value in the long run, so
    that a change rate that was once taken for too high is corrected: the
    policy explores without a parameter. In none of the papers.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), non-negative
        Importances.
    min_interval, max_interval, host, host_limit : optional
        Limits, as in `IndexPolicy`.
    shape : array_like, positive
        Shape of the prior of the change rates, one number or one for each
        page. The prior counts as `shape` changes seen in the time `rate`;
        `priors.gamma_prior` learns both from other pages. Without other pages
        take 0.5.
    rate : array_like, time, positive
        Rate of the prior, likewise: shape / rate is the mean change rate.
        Without other pages take 0.5 n_pages / bandwidth, half the mean time
        between crawls of a page.

    Raises
    ------
    ValueError
        Arguments out of range, or limits that do not fit the pages.

    Notes
    -----
    In a world the policy learns from each crawl whether the page had changed;
    in a `scheduler.Scheduler`, `Scheduler.report` passes this on to it.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.2, 1.0, 5.0], 1.0, 0.0, 0.0)
    >>> world = simulate.draw_world(pages, 300.0, rng=1)
    >>> policy = BayesGreedy(pages.importance, shape=0.5, rate=0.5)
    >>> simulate.crawl(world, policy, bandwidth=2.0).n_crawls.tolist()
    [163, 245, 192]
    """

    importance: Values
    _: KW_ONLY
    shape: Values
    rate: Values

    def __post_init__(self):
        _check_prior(self)
        super().__post_init__()

    kind = kernels.BAYES  # no field: it has no type

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return self.importance.size

    def _describe(self, records):
        records["scale"] = self.importance
        records["gamma_shape"], records["rate"] = self.shape, self.rate

    def _told(self, world, n_slots):
        return world.unseen(n_slots)


@dataclass(frozen=True, eq=False)
class PosteriorGreedy:
    r"""Greedy crawling by one change rate from each posterior, the usual way.

    This policy is for comparison with `BayesGreedy`. The posterior is the
    same, but the crawl value of a page is that of one change rate, as if it
    were known:

    .. math:: V_i(t) = \frac{\mu_i}{\hat\Delta_i}
              \bigl(1 - (1 + \hat\Delta_i t)\,e^{-\hat\Delta_i t}\bigr) .

    With the mean, a page once believed to change too fast may never be crawled
    again, and so never be corrected, as its value stays below
    :math:`\mu_i / \hat\Delta_i`. Exploration or draws from the posterior
    (Thompson sampling) are the usual remedies.

    Parameters
    ----------
    importance : array_like, shape (n_pages,), non-negative
        Importances.
    shape : array_like, positive
        Shape of the prior, as in `BayesGreedy`.
    rate : array_like, time, positive
        Rate of the prior, likewise.
    how : {"mean", "thompson", "held"}, default "mean"
        The change rate: the posterior mean; a draw of each page for each slot;
        or a draw that is held until the next crawl of its page.
    exploration : float, in [0, 1], default 0
        Share of slots that go to a page at random (epsilon-greedy).
    rng : None, int, SeedSequence or Generator, optional
        Source of random numbers.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    A slot takes time linear in the number of pages. The plain form of the
    crawl value is `tests.plain.crawl_value_no_signals`.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([0.2, 1.0, 5.0], 1.0, 0.0, 0.0)
    >>> world = simulate.draw_world(pages, 300.0, rng=1)
    >>> policy = PosteriorGreedy(pages.importance, shape=0.5, rate=0.5)
    >>> simulate.crawl(world, policy, bandwidth=2.0).n_crawls.tolist()
    [165, 243, 192]
    """

    importance: Values
    _: KW_ONLY
    shape: Values
    rate: Values
    how: str = "mean"
    exploration: float = 0.0
    rng: Seed = None

    def __post_init__(self):
        _check_prior(self)
        checks.one_of("how", self.how, _HOW)
        checks.scalar(checks.share, "exploration", self.exploration)

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot.

        Parameters
        ----------
        world : World
            When pages come, go and change.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where there is no page.
        """
        check_n_pages("importance", self.importance.size, world)
        out = np.empty(time.size, dtype=np.int64)
        learning.slots(
            _HOW[self.how],
            float(self.exploration),
            (self.importance, last),
            (self.shape.copy(), self.rate.copy()),
            (world.start, world.stop),
            world.unseen(time.size),
            time,
            np.random.default_rng(self.rng),
            out,
        )
        return out


def _check_prior(policy):
    """Check importance, shape and rate of a policy, and broadcast them."""
    importance = checks.per_page("importance", policy.importance)
    importance, shape, rate = checks.broadcast(
        importance=importance,
        shape=checks.positive("shape", policy.shape),
        rate=checks.positive("rate", policy.rate),
    )
    checks.per_page("importance, shape and rate", importance)
    # in place, because the dataclass is frozen
    vars(policy).update(importance=importance, shape=shape, rate=rate)
