r"""Online estimators Naive, LLN, SA, SAM for Poisson crawls, with exact moments.

A crawl at rate p finds a change (I = 1) with probability
:math:`q = \Delta / (\Delta + p)`, eq. (4) of Avrachenkov, Patil, Thoppe (2020); SAM
is in their paper of 2022. `Naive` and `LLN` count changes. `SA` and `SAM` move an
estimate by shrinking steps. `moments` gives the exact bias and RMSE after k crawls.
`path`, `paths` and `rmse` follow any estimator over a history.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..processes import History, change_probability


@dataclass(eq=False)
class OnlineEstimator:
    """Base class of estimators that process one crawl of every page at a time.

    Your own estimator needs no base class, only a method `update`.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        One number, or one for each page.

    Examples
    --------
    An estimator of changes per unit of time that gradually forgets old crawls:

    >>> from paperlib.estimators import path
    >>> from paperlib.processes import History
    >>> class Fading:
    ...     changes = time = 0.0
    ...
    ...     def __init__(self, kept):
    ...         self.kept = kept
    ...
    ...     def update(self, changed, *, interval=None, crawl_rate=None):
    ...         self.changes = self.kept * self.changes + changed
    ...         self.time = self.kept * self.time + interval
    ...         return self.changes / self.time
    >>> path(Fading(0.5), History([1.0, 1.5, 1.0], [True, False, True]))
    array([1.   , 0.25 , 0.625])
    """

    crawl_rate: Any

    def __post_init__(self):
        self.crawl_rate = checks.numbers("crawl_rate", self.crawl_rate, above=True)

    def update(
        self,
        changed: ArrayLike,
        *,
        interval: ArrayLike | None = None,
        crawl_rate: ArrayLike | None = None,
    ) -> Any:
        """Process one more crawl of every page and return the new estimates.

        Parameters
        ----------
        changed : array_like of bool or 0/1, shape of the pages
            True if the crawl found a change.
        interval : array_like, time, optional
            Time since the previous crawl. `Naive`, `LLN`, `SA` and `SAM` use
            the crawl rate instead.
        crawl_rate : array_like, 1/time, optional
            New crawl rate, which holds from this crawl on.

        Returns
        -------
        ndarray or float, shape of the pages, 1/time
        """
        before = self.crawl_rate
        if crawl_rate is not None:
            self.crawl_rate = checks.numbers("crawl_rate", crawl_rate, above=True)
        return self._take(checks.bits("changed", changed), self.crawl_rate == before)

    def moments(self, change_rate: float, n_crawls: ArrayLike) -> NDArray:
        r"""Exact bias and root mean squared error.

        Derived. Each bit is 1 with probability :math:`q = \Delta / (\Delta + p)`, eq.
        (4) of Avrachenkov, Patil, Thoppe (2020).
        For `Naive` and `LLN` the bias after k crawls is
        :math:`\sum_i \mathrm{Binom}(i; k, q) (x_k(i) - \Delta)`, with the estimate
        :math:`x_k(i)` after i bits of 1. For `SA` and `SAM` one crawl maps the state
        x, which ends with the constant 1, to :math:`M_k(I) x`. The bits are
        independent, so that :math:`S = E[x x^T]` follows

        .. math:: S \leftarrow (1 - q) M_k(0) S M_k(0)^T
            + q M_k(1) S M_k(1)^T .

        Parameters
        ----------
        change_rate : float, 1/time
            The true change rate, non-negative. The crawl rate and the initial
            estimate must also be one number.
        n_crawls : sequence of int
            Numbers of crawls. Entry 0 is the error of the initial estimate; NaN for
            `Naive` and for `LLN` with offset 0, which have no initial estimate.

        Returns
        -------
        ndarray, shape (2, n_counts), 1/time
            Bias and RMSE.
        """
        rate = checks.number("change_rate", change_rate)
        q = change_probability(rate, crawl_rate=self.crawl_rate)
        return np.transpose([*self._moments(rate, q, n_crawls)])


@dataclass(eq=False)
class Naive(OnlineEstimator):
    r"""Crawl rate times the share of crawls that found a change.

    .. math:: \hat\Delta_k = p \hat I_k / k

    where :math:`\hat I_k` of k crawls found a change: section 3.3 of Avrachenkov,
    Patil, Thoppe (2020), section 3.4 of the same authors (2022). It is inconsistent:
    it tends to :math:`p \Delta / (p + \Delta)`, because several changes between two
    crawls count as one. A new crawl rate resets the counts of a page.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        One number, or one for each page.
    """

    n_crawls = n_changed = 0.0

    def _take(self, changed, kept):
        self.n_crawls = self.n_crawls * kept + 1.0
        self.n_changed = self.n_changed * kept + changed
        return self._value(self.n_crawls, self.n_changed)

    def _value(self, n, n_changed):
        return self.crawl_rate * n_changed / n

    def _moments(self, change_rate, q, n_crawls):
        for n in n_crawls:
            n_changed = np.arange(n + 1)
            weight = scipy.stats.binom.pmf(n_changed, n, q)
            error = self._value(n, n_changed) - change_rate
            yield weight @ error, np.sqrt(weight @ error**2)


@dataclass(eq=False, kw_only=True)
class LLN(Naive):
    r"""Estimator from the law of large numbers.

    .. math:: \hat\Delta_k = p \hat I_k / (k + \alpha_k - \hat I_k)

    eq. (2) of Avrachenkov, Patil, Thoppe (2020), eq. (1) of the same authors
    (2022). Theorem 1: if :math:`\alpha_k / k \to 0`, it converges to the
    change rate almost surely. If also :math:`\log(k / \alpha_k) / k \to 0`,
    its mean absolute error is :math:`O(\max(k^{-1/2}, \alpha_k / k))`. A new
    crawl rate resets the counts of a page.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        One number, or one for each page.
    offset : callable, default `numpy.ones_like`
        The sequence alpha_k, positive, as a function of an array of
        k = 1, 2, ... The papers' example log k is 0 at k = 1, so that a change
        at the first crawl gives inf: use log(k + 1) instead.

    Examples
    --------
    >>> from paperlib.estimators import LLN
    >>> estimator = LLN(crawl_rate=3.0)
    >>> [float(estimator.update(bit)) for bit in (True, False, True)]
    [3.0, 1.5, 3.0]
    """

    offset: Callable = np.ones_like

    def _value(self, n, n_changed):
        return self.crawl_rate * n_changed / (n + self.offset(n) - n_changed)


@dataclass(eq=False, kw_only=True)
class SA(OnlineEstimator):
    r"""Stochastic approximation.

    .. math:: y_{k+1} = y_k + \eta_k (I_{k+1} (y_k + p) - y_k)

    with :math:`\eta_k = (k + 1)^{-\gamma}`, eq. (3) of Avrachenkov, Patil,
    Thoppe (2020), eq. (2) of the same authors (2022). Theorem 2: it converges
    to the change rate almost surely if :math:`1/2 < \gamma \le 1`. Its mean
    absolute error is :math:`O(k^{-\gamma/2})` if :math:`0 < \gamma < 1`. With
    :math:`\gamma = 1` the error falls as :math:`k^{-a}` if :math:`a = p /
    (\Delta + p)` is below 1/2 (derived). The iteration continues under a new
    crawl rate.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        One number, or one for each page.
    step : float, default 0.75
        The exponent gamma, positive.
    initial : array_like, 1/time, default 0.0
        The initial estimate y_0, non-negative.
    """

    step: float = 0.75
    initial: Any = 0.0

    def __post_init__(self):
        super().__post_init__()
        checks.number("step", self.step, above=True)
        self.initial = checks.numbers("initial", self.initial)
        self._k = 0
        self._state = self._start()

    def _start(self):
        """State before the first crawl: first the estimate, last the constant 1."""
        return self.initial, 1.0

    def _advance(self, k, changed, y, one):
        """State after crawl k + 1: for each bit, linear in the previous state."""
        drift = np.where(changed, self.crawl_rate * one, -y)
        return y + (k + 1.0) ** -self.step * drift, one

    def _take(self, changed, kept):
        self._state = self._advance(self._k, changed, *self._state)
        self._k += 1
        return self._state[0]

    def _matrix(self, k, changed):
        """M_k(changed): row i gives entry i of the state after crawl k + 1."""
        return np.array(self._advance(k, changed, *np.eye(len(self._start()))))

    def _moments(self, change_rate, q, n_crawls):
        start = np.array(self._start())
        second = np.outer(start, start)
        moments = []
        for k in range(max(n_crawls) + 1):
            mean = second[0, -1]
            square = second[0, 0] - change_rate * (2 * mean - change_rate)
            # rounding may leave a mean square just below 0
            moments.append((mean - change_rate, np.sqrt(abs(square))))
            unchanged = self._matrix(k, False)
            changed = self._matrix(k, True)
            second = (1 - q) * unchanged @ second @ unchanged.T + (
                q * changed @ second @ changed.T
            )
        return [moments[n] for n in n_crawls]


@dataclass(eq=False, kw_only=True)
class SAM(SA):
    r"""Stochastic approximation with heavy-ball momentum.

    .. math::
        u_{k+1} &= u_k + (\eta_k / \beta_k)
            (I_{k+1} (z_k + p) - z_k - \omega u_k), \\
        z_{k+1} &= z_k + \beta_k u_{k+1} ,

    with :math:`\eta_k = (k + 1)^{-\eta}` and
    :math:`\beta_k = (k + 1)^{-\beta}`. This is eq. (3) of Avrachenkov, Patil,
    Thoppe (2022), :math:`z_{k+1} = z_k + \eta_k (I_{k+1} (z_k + p) - z_k) +
    \zeta_k (z_k - z_{k-1})`, with eq. (10), :math:`\zeta_k = (\beta_k - \omega
    \eta_k) / \beta_{k-1}`. Like eqs. (12) and (13), it is written with
    :math:`u_k = (z_k - z_{k-1}) / \beta_{k-1}`. An estimate may fall below 0.

    - Proved (Theorem 3; Remark 4 for these powers): almost sure convergence to
      the change rate if :math:`1/2 < \beta \le 1` and :math:`\beta + 1/2 < \eta <
      2 \beta` (two timescales) or :math:`\eta = 2 \beta` (one timescale).
    - Conjectured there: convergence if :math:`0 < \beta \le 1/2` and
      :math:`\beta < \eta \le 2 \beta` (below eq. (3)), or
      :math:`0 < \beta \le 1` and :math:`\beta < \eta < 2 \beta` (section 4.3);
      an error of :math:`k^{-\beta/2}` up to logarithms (Remark 8).
    - Derived: if :math:`\beta < \eta < 2 \beta`, it approaches `SA` with steps
      :math:`(k + 1)^{-\beta} / \omega`. For :math:`\beta = 1` and
      :math:`\omega = 1` its error therefore falls as :math:`k^{-a}`, not as
      :math:`k^{-1/2}`, if :math:`a = p / (\Delta + p)` is below 1/2.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        One number, or one for each page.
    step, momentum : float, default 1.3 and 0.75
        The exponents eta and beta, positive. If they are equal and omega is 1,
        this is `SA`.
    omega : float, default 1.0
        Friction, positive.
    initial : array_like, 1/time, default 0.0
        The initial estimate z_0, non-negative. It is also z_{-1} (our choice).
    """

    step: float = 1.3
    momentum: float = 0.75
    omega: float = 1.0

    def _start(self):
        return self.initial, 0.0, 1.0

    def _advance(self, k, changed, z, u, one):
        beta = (k + 1.0) ** -self.momentum
        drift = np.where(changed, self.crawl_rate * one, -z)
        u = u + (k + 1.0) ** -self.step / beta * (drift - self.omega * u)
        return z + beta * u, u, one


def path(
    estimator: OnlineEstimator | Callable[[History], ArrayLike], history: History
) -> NDArray:
    """Estimates after every crawl.

    Parameters
    ----------
    estimator : OnlineEstimator or callable
        A copy of an online estimator processes the crawls of all pages in
        order. A function is called with the history. If it returns an array in
        the shape of ``history.changed``, as `mle_path` does, this is the
        result. If it returns one number for each page, as `mle` does, it is
        called with the first n crawls for every n.
    history : History
        Dense, or also ragged for a function such as `mle_path`.

    Returns
    -------
    ndarray, shape of ``history.changed``, 1/time
    """
    checks.instance("history", history, History)
    estimate = checks.function("estimator", copy.deepcopy(estimator), "update")
    online = hasattr(estimator, "update")
    if not online and np.shape(whole := estimate(history)) == history.changed.shape:
        return whole
    if history.offsets is not None:
        raise ValueError("history must be without offsets for this estimator")
    each = [
        # a copy, because an estimator may change its array in place
        np.array(estimate(history.changed[..., k], interval=history.interval[..., k]))
        if online
        else estimate(history.prefix(k + 1))
        for k in range(history.changed.shape[-1])
    ]
    estimates = np.stack(each, axis=-1)
    checks.shape("estimates", estimates, history.changed.shape)
    return estimates


def paths(
    history: History, **estimators: OnlineEstimator | Callable[[History], ArrayLike]
) -> dict[str, NDArray]:
    """Estimates after every crawl, for each named estimator.

    Parameters
    ----------
    history : History
        Crawls of pages or runs.
    **estimators : OnlineEstimator or callable
        Estimators as in `path`, by name.

    Returns
    -------
    dict of str to ndarray, shape of ``history.changed``, 1/time

    Examples
    --------
    >>> from paperlib.estimators import LLN, mle_path, paths
    >>> from paperlib.processes import History
    >>> history = History([0.5, 0.5, 0.5], [False, True, False])
    >>> found = paths(history, LLN=LLN(crawl_rate=2.0), MLE=mle_path)
    >>> found["LLN"].round(3), found["MLE"].round(3)
    (array([0.   , 1.   , 0.667]), array([0.   , 1.386, 0.811]))
    """
    return {name: path(e, history) for name, e in estimators.items()}


def rmse(paths: dict[str, NDArray], change_rate: float) -> dict[str, NDArray]:
    r"""Root mean squared error over runs, after every crawl.

    The error in figures of Avrachenkov, Patil, Thoppe (2022):

    .. math:: \sqrt{\mathrm{mean}_r (\hat\Delta_{r, n} - \Delta)^2}

    Parameters
    ----------
    paths : dict of str to ndarray, shape (n_runs, n_crawls)
        Estimates by name, as `paths` returns them, 1/time.
    change_rate : float, 1/time
        The true change rate.

    Returns
    -------
    dict of str to ndarray, shape (n_crawls,), 1/time
    """
    return {
        name: np.sqrt(np.mean((values - change_rate) ** 2, axis=0))
        for name, values in paths.items()
    }
