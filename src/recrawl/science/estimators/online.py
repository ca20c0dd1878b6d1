"""The base of all online estimators, and those that count changes."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import online as kernels
from recrawl.types import Array, Function, Values

__all__ = ["LLN", "Naive", "OnlineEstimator"]


class OnlineEstimator(ABC):
    """Base class of estimators that take in one crawl of every page at a time.

    A subclass defines `estimate` and `update`; `recrawl.science.estimators.path`,
    ``paths`` and `recrawl.science.processes.simulate_sequential_history` use nothing
    else.

    Attributes
    ----------
    takes_ages : bool
        Whether `update` takes the ages and counts of a `History` too, as ``age``
        and ``count``; False unless a subclass says otherwise.

    Examples
    --------
    >>> from recrawl.science.estimators import OnlineEstimator
    >>> class Last(OnlineEstimator):
    ...     estimate = 0.0
    ...
    ...     def update(self, changed, *, interval=None, crawl_rate=None):
    ...         self.estimate = changed / interval
    ...         return self.estimate
    >>> Last().update(True, interval=4.0)
    0.25
    """

    takes_ages = False

    @property
    @abstractmethod
    def estimate(self) -> Values:
        """Present estimate of each page, 1/time."""

    @abstractmethod
    def update(
        self,
        changed: ArrayLike,
        *,
        interval: ArrayLike | None = None,
        crawl_rate: ArrayLike | None = None,
    ) -> Array:
        """Take in one more crawl of every page.

        Parameters
        ----------
        changed : array_like of bool or 0/1, shape of the pages
            True where the crawl found a change.
        interval : array_like, time, optional
            Time since the crawl before, positive.
        crawl_rate : array_like, 1/time, optional
            Rate of the Poisson crawls from this crawl on, if it is a new one.

        Returns
        -------
        ndarray
            The new estimate of each page, 1/time.
        """

    def limit(self, change_rate: ArrayLike) -> Values:
        """Value to which the estimate converges, given the true change rate.

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            The true change rate.

        Returns
        -------
        ndarray or float
            The change rate itself, unless the estimator is inconsistent.
        """
        return checks.non_negative("change_rate", change_rate)[()]


def _sequence(name, value):
    """A step sequence: a function of k, or the exponent x of (k + 1)^-x."""
    return value if callable(value) else checks.positive_number(name, value)


def _at(sequence, k):
    """Entry k of a step sequence."""
    return sequence(k) if callable(sequence) else (k + 1.0) ** -sequence


class _PoissonCrawls(OnlineEstimator):
    """Estimators that need crawls at Poisson times of a known rate."""

    def __init__(self, crawl_rate):
        self.crawl_rate = checks.positive("crawl_rate", crawl_rate)

    def _bits(self, changed, crawl_rate, state):
        """`changed` as booleans; all checks, before anything is updated."""
        changed = checks.bits("changed", changed)
        if crawl_rate is None:
            crawl_rate = self.crawl_rate
        shapes = {"changed": changed, "crawl_rate": crawl_rate, "earlier crawls": state}
        checks.fit(**shapes)
        return changed

    def _moment_grid(self, change_rate, n_crawls):
        """Shape of the change rates, flat rates, P(changed), crawl counts."""
        if self.crawl_rate.ndim:
            raise ValueError(
                "crawl_rate must be a single number for moments, "
                f"got shape {self.crawl_rate.shape}"
            )
        change_rate = checks.positive("change_rate", change_rate)
        if np.ndim(n_crawls) == 0:
            crawls = np.arange(1, checks.count("n_crawls", n_crawls) + 1)
        else:
            crawls = np.array([checks.count("n_crawls", n) for n in n_crawls])
        flat = change_rate.ravel()
        return change_rate.shape, flat, flat / (flat + self.crawl_rate), crawls


class _Counting(_PoissonCrawls):
    """Estimators that count the crawls and the changes of each page."""

    def __init__(self, crawl_rate):
        super().__init__(crawl_rate)
        self.n_crawls = np.asarray(0.0)
        self.n_changed = np.asarray(0.0)

    @property
    def estimate(self):
        """Present estimates, 1/time; 0 before the first crawl."""
        return self._value(np.maximum(self.n_crawls, 1.0), self.n_changed)

    def update(self, changed, *, interval=None, crawl_rate=None):
        """Take in one more crawl of every page.

        Parameters
        ----------
        changed : array_like of bool or 0/1, shape of the pages
            True where the crawl found a change.
        interval : object, optional
            Ignored: the crawl rate stands for the intervals.
        crawl_rate : array_like, 1/time, optional
            The crawl rate from now on. Pages whose rate differs from the one
            before start their counts anew.

        Returns
        -------
        ndarray
            The new estimates, 1/time.
        """
        changed = self._bits(changed, crawl_rate, self.n_changed)
        if crawl_rate is not None:
            new = checks.positive("crawl_rate", crawl_rate)
            kept = new == self.crawl_rate
            self.n_crawls = self.n_crawls * kept
            self.n_changed = self.n_changed * kept
            self.crawl_rate = new
        self.n_crawls = self.n_crawls + 1.0
        self.n_changed = self.n_changed + changed
        return self.estimate

    def moments(self, change_rate, n_crawls):
        """Exact bias and root mean squared error under Poisson crawls.

        Sums over the binomial distribution of the number of changes. What
        lies more than 12 standard deviations and 12 changes from its mean has
        a probability below 1e-20 and is left out.

        Parameters
        ----------
        change_rate : array_like, 1/time, positive
            The true change rates.
        n_crawls : int or sequence of int
            Numbers of crawls; a single number stands for all from 1 up to it.

        Returns
        -------
        bias, rmse : ndarray, shape (*change_rate.shape, n_counts), 1/time
            Moments of the error after each number of crawls.
        """
        shape, change_rate, q, crawls = self._moment_grid(change_rate, n_crawls)
        out = np.empty((2, change_rate.size, crawls.size))
        for i, (rate, p) in enumerate(zip(change_rate, q, strict=True)):
            for j, n in enumerate(crawls.tolist()):
                spread = 12.0 * np.sqrt(n * p * (1 - p)) + 12.0
                least, most = max(0, int(n * p - spread)), min(n, int(n * p + spread))
                n_changed = np.arange(least, most + 1)
                error = self._value(float(n), n_changed) - rate
                weight = scipy.stats.binom.pmf(n_changed, n, p)
                out[:, i, j] = weight @ error, np.sqrt(weight @ error**2)
        return out.reshape(2, *shape, crawls.size)


class Naive(_Counting):
    r"""Naive online estimator: crawl rate times the share of changed crawls.

    .. math:: \hat\Delta_k = p\,\hat I_k / k

    after k crawls at rate p of which :math:`\hat I_k` found a change, section
    3.4 of [peva22]_. It is inconsistent: several changes between two crawls
    count as one.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        Rate of the Poisson crawls, one number or one for each page.

    Attributes
    ----------
    n_crawls, n_changed : ndarray
        Crawls at the present crawl rate, and how many of them found a change.

    Examples
    --------
    >>> from recrawl.science.estimators import Naive
    >>> estimator = Naive(crawl_rate=3.0)
    >>> [float(estimator.update(bit)) for bit in (True, False, True)]
    [3.0, 1.5, 2.0]
    >>> float(estimator.limit(5.0))
    1.875
    """

    def _value(self, n, n_changed):
        return self.crawl_rate * n_changed / n

    def limit(self, change_rate: ArrayLike) -> Values:
        r"""Value to which the estimate converges, below the change rate.

        .. math:: p \Delta / (p + \Delta)

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            The true change rate.

        Returns
        -------
        ndarray or float
            The limit, 1/time; section 3.4 of [peva22]_.
        """
        change_rate = super().limit(change_rate)
        return self.crawl_rate * change_rate / (self.crawl_rate + change_rate)


class LLN(_Counting):
    r"""Online estimator from the law of large numbers.

    .. math:: \hat\Delta_k = p\,\hat I_k / (k + \alpha_k - \hat I_k)

    after k crawls at rate p of which :math:`\hat I_k` found a change, eq. (2)
    of [valuetools20]_ and eq. (1) of [peva22]_.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        Rate of the Poisson crawls, one number or one for each page.
    offset : float or callable, default 1.0
        The sequence alpha_k, positive: a number for a constant, or a function
        of the array of crawl counts k = 1, 2, ... (log k, which the papers
        name, is 0 at k = 1: use log(k + 1)).

    Attributes
    ----------
    n_crawls, n_changed : ndarray
        Crawls at the present crawl rate, and how many of them found a change.

    Raises
    ------
    ValueError
        A crawl rate or an offset that is not positive and finite.

    Notes
    -----
    The plain form is `tests.plain.lln`.

    Examples
    --------
    >>> from recrawl.science.estimators import LLN
    >>> estimator = LLN(crawl_rate=3.0)
    >>> [float(estimator.update(bit)) for bit in (True, False, True)]
    [3.0, 1.5, 3.0]
    >>> bias, rmse = LLN(crawl_rate=3.0).moments(5.0, n_crawls=[1, 10])
    >>> bias.round(3), rmse.round(3)
    (array([-3.125, -0.045]), array([3.446, 3.76 ]))
    """

    def __init__(
        self, crawl_rate: ArrayLike, *, offset: float | Function = 1.0
    ) -> None:
        super().__init__(crawl_rate)
        self.offset = _sequence("offset", offset)
        if not 0 < self._offset(1.0) < np.inf:
            raise ValueError(
                "offset must be positive and finite from the first crawl on, "
                f"got {self._offset(1.0)!r} at k = 1"
            )

    def _offset(self, n):
        return self.offset(n) if callable(self.offset) else self.offset

    def _value(self, n, n_changed):
        return kernels.counted_rate(n_changed, n, self._offset(n), self.crawl_rate)
