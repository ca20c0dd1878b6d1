"""The greedy family: each slot goes to the page of largest crawl value."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from paperlib.signals import SignalledPages
from recrawl import checks
from recrawl.checks import parameters
from recrawl.kernels import crawl_value, indices
from recrawl.kernels import scheduler as kernels
from recrawl.science import objectives
from recrawl.science.policies.by_index import IndexPolicy, in_spans
from recrawl.science.policies.fixed_rates import check_n_pages
from recrawl.science.simulate.worlds import World
from recrawl.types import Array, Bits, Ints

__all__ = ["Greedy", "GreedyCIS", "GreedyCISPlus", "GreedyNCIS"]


@dataclass(frozen=True, eq=False)
class Greedy(IndexPolicy):
    r"""Greedy policy without signals, for any objective: GREEDY of [www25]_.

    Algorithm 1: each slot goes to the page of largest crawl value,

    .. math:: \arg\max_i \mu_i V_i(\tau_i) , \qquad V(\tau) =
              \tau c(\tau) - \int_0^\tau c ,

    with elapsed time :math:`\tau_i`; ties go to the lower index. In the paper
    the objective is freshness, c(t) = 1 - exp(-Delta t). The limits of
    `IndexPolicy` are ours.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be; their signals are not used.
    min_interval, max_interval, host, host_limit : optional
        Limits, as in `IndexPolicy`.
    objective : Objective, default `objectives.freshness`
        What a stale copy costs.

    Raises
    ------
    ValueError
        Limits out of range or that do not fit the pages; no objective.

    Notes
    -----
    The plain form is `tests.plain.greedy_slots`.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> pages = SignalledPages([1.0, 1.0, 1.0], [1.0, 1.1, 0.3], 0.0, 0.0)
    >>> world = simulate.draw_world(pages, 4.0, rng=1)
    >>> simulate.crawl(world, Greedy(pages), bandwidth=1.0).page.tolist()
    [1, 0, 1, 0]
    >>> aging = Greedy(pages, objective=objectives.age, max_interval=3.0)
    >>> simulate.crawl(world, aging, bandwidth=1.0).page.tolist()
    [1, 0, 2, 1]
    """

    pages: SignalledPages
    _: KW_ONLY
    objective: objectives.Objective = objectives.freshness

    def __post_init__(self):
        if not isinstance(self.objective, objectives.Objective):
            raise ValueError(
                "objective must be one of recrawl.science.objectives, "
                f"got {self.objective!r}"
            )
        checks.instance("pages", self.pages, SignalledPages)
        super().__post_init__()

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return self.pages.change_rate.size

    @property
    def kind(self) -> int:
        """Which index it is, for the kernels."""
        return self.objective.code

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot; see `IndexPolicy.choose`.

        Parameters
        ----------
        world : World
            When pages come and go.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where no page can be crawled.
        """
        least, most, _, limit = self._limits
        limited = least.any() or np.isfinite(most).any() or np.isfinite(limit).any()
        if self.objective == objectives.freshness and not limited:
            # The same slots, in a half to a third of the time: bounds of the
            # crawl value of freshness are sharper than those of any index.
            return _WithoutSignals(self.pages).choose(world, time, last)
        return super().choose(world, time, last)

    def _describe(self, records):
        indices.fill_objective(
            records,
            self.objective.code,
            self.objective.tau,
            self.pages.change_rate,
            self.pages.importance,
        )


@dataclass(frozen=True, eq=False)
class _WithSignals:
    """A greedy policy that uses signals: Algorithm 1 of [www25]_ in full."""

    pages: SignalledPages
    terms = None
    discard_window = 0.0

    def __post_init__(self):
        checks.instance("pages", self.pages, SignalledPages)

    @property
    def uses_signals(self):
        """Pages whose signals are used, bool array of shape (n_pages,)."""
        return np.ones(self.pages.change_rate.size, dtype=bool)

    @property
    def believed(self):
        """The pages as the crawl value takes them.

        Where signals are not used, recall and false_rate are 0.
        """
        used = self.uses_signals
        return replace(
            self.pages,
            recall=self.pages.recall * used,
            false_rate=self.pages.false_rate * used,
        )

    def choose(self, world, time, last):
        """Page of each slot.

        Parameters
        ----------
        world : World
            Signals, and when pages come and go.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where there is no page.
        """
        check_n_pages("pages", self.pages.change_rate.size, world)
        state = self._state(world, last)
        none = np.empty(0, dtype=np.int64), np.empty(0)
        return in_spans(
            world,
            time,
            lambda span, out: kernels.greedy_slots(state, time[span], *none, out),
            lambda *move: kernels.change_pages(state, *move),
        )

    def _state(self, world, last):
        """State of the scheduler at time 0, with all signals to come."""
        constants = crawl_value.page_constants(
            **parameters(self.believed), terms=self.terms or crawl_value.EXACT
        )
        start, stop = world.offsets[:-1], world.offsets[1:]
        return kernels.new_state(
            constants,
            last,
            np.zeros(last.size, dtype=np.int32),
            world.start == 0,
            discard_window=self.discard_window,
            signals=world.received,
            start=start,
            stop=np.where(self.uses_signals, stop, start),
        )


class _WithoutSignals(_WithSignals):
    """GREEDY by the kernel of the policies with signals."""

    @property
    def uses_signals(self):
        return np.zeros(self.pages.change_rate.size, dtype=bool)


@dataclass(frozen=True, eq=False)
class GreedyNCIS(_WithSignals):
    r"""Greedy policy with noisy signals: GREEDY-NCIS of [www25]_.

    Algorithm 1 with the crawl value of Lemma 4, `freshness.crawl_value`,

    .. math:: \arg\max_i V_i(\tau_i + \beta_i n_i),

    at the effective elapsed time of a page that has sent :math:`n_i` signals
    in the time :math:`\tau_i` since its last crawl.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be.
    terms : int, optional
        APPROX-j: this many terms of the crawl value; by default all.
    discard_window : float, time, default 0.0
        NCIS-D of appendix C: signals that arrive within this time after a
        crawl of their page do not count, because the change that they report
        may have come before the crawl.

    Raises
    ------
    ValueError
        Options out of range.

    Notes
    -----
    The plain form is `tests.plain.greedy_slots`.

    Examples
    --------
    >>> from recrawl.science import simulate
    >>> pages = SignalledPages([1.0, 1.0], [1.0, 1.1], 0.9, 0.1)
    >>> world = simulate.draw_world(pages, 100.0, rng=1)
    >>> runs = [
    ...     simulate.crawl(world, policy, bandwidth=1.0)
    ...     for policy in (Greedy(pages), GreedyNCIS(pages))
    ... ]
    >>> bool(runs[1].freshness > runs[0].freshness)
    True
    """

    _: KW_ONLY
    terms: int | None = None
    discard_window: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.terms is not None:
            checks.count("terms", self.terms)
        checks.scalar(checks.non_negative, "discard_window", self.discard_window)


@dataclass(frozen=True, eq=False)
class GreedyCIS(_WithSignals):
    r"""Greedy policy that treats every signal as true: GREEDY-CIS of [www25]_.

    A page that has sent a signal is certainly stale: its effective elapsed time
    is infinite, that of a page without signals is the time t. With the recall
    :math:`\lambda` and :math:`\alpha = (1 - \lambda) \Delta`, the values are

    .. math:: V(\infty) = \frac{\mu}{\Delta}, \qquad
        V(t) = \mu \left(\frac{1 - e^{-\Delta t}}{\Delta}
        - e^{-\alpha t}\, \frac{1 - e^{-\lambda\Delta t}}{\lambda\Delta}\right).

    The draft does not say what is believed where there are false signals; here
    the rate of believed signals is :math:`\lambda\Delta`.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be; false_rate is not used.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> GreedyCIS(pages).believed.precision.tolist()
    [1.0, 1.0]
    """

    @property
    def believed(self) -> SignalledPages:
        """The pages as the crawl value takes them: without false signals."""
        return replace(super().believed, false_rate=0.0)


@dataclass(frozen=True, eq=False)
class GreedyCISPlus(GreedyCIS):
    r"""Greedy policy that uses only good signals: GREEDY-CIS+ of [www25]_.

    Section 6.7: GREEDY-CIS on the pages whose believed precision and recall
    are high,

    .. math:: \mathrm{precision}_i > 0.7 \text{ and } \mathrm{recall}_i > 0.6,

    GREEDY on the others.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be.
    min_precision, min_recall : float, in [0, 1], default 0.7 and 0.6
        The signals of a page are used if it is above both.

    Raises
    ------
    ValueError
        `min_precision` or `min_recall` outside [0, 1].

    Examples
    --------
    >>> pages = SignalledPages(1.0, 1.0, [0.8, 0.8, 0.5], [0.1, 0.8, 0.1])
    >>> GreedyCISPlus(pages).uses_signals.tolist()
    [True, False, False]
    """

    _: KW_ONLY
    min_precision: float = 0.7
    min_recall: float = 0.6

    def __post_init__(self):
        super().__post_init__()
        checks.scalar(checks.share, "min_precision", self.min_precision)
        checks.scalar(checks.share, "min_recall", self.min_recall)

    @property
    def uses_signals(self) -> Bits:
        """Pages of good signals, bool array of shape (n_pages,)."""
        precise = np.nan_to_num(self.pages.precision) > self.min_precision
        return precise & (self.pages.recall > self.min_recall)
