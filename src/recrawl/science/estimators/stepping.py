"""Online estimators that move by steps."""

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import online as kernels
from recrawl.science.estimators.online import (
    _at,
    _PoissonCrawls,
    _sequence,
)
from recrawl.types import Function

__all__ = ["SA", "SAM"]


class _Stepping(_PoissonCrawls):
    """Estimators that move a state by steps that shrink.

    `_advance(changed, k, crawl_rate, *state)` returns the next state; it is
    affine in the state and changes nothing. The first entry of the state is
    the estimate; the first `_n_rates` entries tend to the change rate, the
    others to 0.
    """

    _n_rates = 1

    def __init__(self, crawl_rate, *start):
        super().__init__(crawl_rate)
        self._state = self._start = start
        self._k = 0

    @property
    def estimate(self):
        """Present estimates, 1/time; `initial` before the first crawl."""
        return self._state[0]

    def update(self, changed, *, interval=None, crawl_rate=None):
        """Take in one more crawl of every page.

        Parameters
        ----------
        changed : array_like of bool or 0/1, shape of the pages
            True where the crawl found a change.
        interval : object, optional
            Ignored: the crawl rate stands for the intervals.
        crawl_rate : array_like, 1/time, optional
            The crawl rate from now on; iterates and steps are continued.

        Returns
        -------
        ndarray
            The new estimates, 1/time.
        """
        changed = self._bits(changed, crawl_rate, self.estimate)
        if crawl_rate is not None:
            self.crawl_rate = checks.positive("crawl_rate", crawl_rate)
        self._state = self._advance(changed, self._k, self.crawl_rate, *self._state)
        self._k += 1
        return self.estimate

    def moments(self, change_rate, n_crawls):
        r"""Exact bias and root mean squared error under Poisson crawls.

        A step is affine in the state, with coefficients that depend on the
        bit only. For the deviation x of the state from its limit, with an
        entry 1 appended to it, one crawl is :math:`x \mapsto M_k(I)\,x`. The
        bits I are independent, True with probability
        :math:`q = \Delta / (\Delta + p)`, so that the matrix of second
        moments :math:`S = E[x x^T]` follows

        .. math:: S \leftarrow (1-q)\,M_k(0)\,S\,M_k(0)^T
            + q\,M_k(1)\,S\,M_k(1)^T .

        Its first row holds the mean squared error first and the bias last.

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
        points = self._points(change_rate)
        second = self._first_second_moment(points[..., -1, :])
        probability = np.stack([1 - q, q])[..., np.newaxis, np.newaxis]
        out = np.empty((2, change_rate.size, crawls.max()))
        for k in range(crawls.max()):
            step = self._step_matrices(k, points)
            second = (probability * (step @ second @ step.swapaxes(2, 3))).sum(axis=0)
            # rounding may leave a mean square just below 0
            out[:, :, k] = second[:, 0, -1], np.sqrt(np.maximum(second[:, 0, 0], 0.0))
        return out[..., crawls - 1].reshape(2, *shape, crawls.size)

    def _points(self, change_rate):
        """States a unit from the limit in each direction, and the limit.

        Shape (n_state, n_state + 1, n_rates): the images of these points
        determine an affine map.
        """
        size = len(self._start)
        limit = np.zeros((size, 1, change_rate.size))
        limit[: self._n_rates] = change_rate
        return limit + np.eye(size, size + 1)[..., np.newaxis]

    def _first_second_moment(self, limit):
        """S before the first crawl, shape (n_rates, n + 1, n + 1)."""
        if any(np.ndim(value) for value in self._start):
            raise ValueError(
                "initial must be a single number for moments, "
                f"got shape {np.shape(self._start[0])}"
            )
        deviation = np.ones((limit.shape[1], limit.shape[0] + 1))
        deviation[:, :-1] = np.array(self._start) - limit.T
        return deviation[:, :, np.newaxis] * deviation[:, np.newaxis]

    def _step_matrices(self, k, points):
        """M_k of both bits and each rate, shape (2, n_rates, n + 1, n + 1)."""
        changed = np.array([False, True])[:, np.newaxis, np.newaxis]
        image = np.array(self._advance(changed, k, self.crawl_rate, *points))
        image -= points[:, np.newaxis, -1:]
        image[:, :, :-1] -= image[:, :, -1:]
        size = len(points)
        step = np.zeros((2, points.shape[-1], size + 1, size + 1))
        step[..., :size, :] = image.transpose(1, 3, 0, 2)
        step[..., size, size] = 1.0
        return step


class SA(_Stepping):
    r"""Online estimator by stochastic approximation.

    .. math:: y_{k+1} = y_k + \eta_k\,(I_{k+1}\,(y_k + p) - y_k)

    with crawls at rate p that find a change (I = 1) or not, eq. (3) of
    [valuetools20]_ and eq. (2) of [peva22]_.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        Rate of the Poisson crawls, one number or one for each page.
    step : float or callable, default 0.75
        The sequence eta_k: the exponent gamma of (k + 1)^-gamma, or a
        function of k = 0, 1, ...
    initial : array_like, 1/time, default 0.0
        The first estimate y_0.

    Raises
    ------
    ValueError
        A crawl rate or exponent that is not positive and finite, an initial
        estimate that is not finite.

    Notes
    -----
    The plain form is `tests.plain.sa`.

    Examples
    --------
    >>> from recrawl.science.estimators import SA
    >>> estimator = SA(crawl_rate=3.0, step=1.0)
    >>> [float(estimator.update(bit).round(3)) for bit in (True, False, True)]
    [3.0, 1.5, 2.5]
    """

    def __init__(
        self,
        crawl_rate: ArrayLike,
        *,
        step: float | Function = 0.75,
        initial: ArrayLike = 0.0,
    ) -> None:
        self.step = _sequence("step", step)
        super().__init__(crawl_rate, checks.finite("initial", initial))

    def _advance(self, changed, k, crawl_rate, y):
        return (kernels.stochastic_step(changed, y, crawl_rate, _at(self.step, k)),)


class SAM(_Stepping):
    r"""Stochastic approximation with heavy-ball momentum.

    .. math::
        u_{k+1} &= u_k + (\eta_k / \beta_k)
            (I_{k+1}\,(z_k + p) - z_k - \omega u_k), \\
        z_{k+1} &= z_k + \beta_k u_{k+1} ,

    eqs. (3) and (10) of [peva22]_ in the form of their eqs. (12) and (13). It
    follows SA with steps beta / omega. An estimate may fall below 0.

    Parameters
    ----------
    crawl_rate : array_like, 1/time, positive
        Rate of the Poisson crawls, one number or one for each page.
    step, momentum : float or callable, default 1.3 and 0.75
        The sequences eta_k and beta_k: exponents x of (k + 1)^-x, or
        functions of k = 0, 1, ...
    omega : float, default 1.0
        Friction, positive.
    initial : array_like, 1/time, default 0.0
        The first estimate z_0; u_0 is 0.

    Raises
    ------
    ValueError
        A crawl rate, exponent or friction that is not positive and finite, an
        initial estimate that is not finite.

    Notes
    -----
    The plain form is `tests.plain.sam`.

    Examples
    --------
    >>> from recrawl.science.estimators import SAM
    >>> estimator = SAM(crawl_rate=3.0)
    >>> [float(estimator.update(bit).round(3)) for bit in (True, False, True)]
    [3.0, 2.347, 2.848]
    """

    def __init__(
        self,
        crawl_rate: ArrayLike,
        *,
        step: float | Function = 1.3,
        momentum: float | Function = 0.75,
        omega: float = 1.0,
        initial: ArrayLike = 0.0,
    ) -> None:
        self.step = _sequence("step", step)
        self.momentum = _sequence("momentum", momentum)
        self.omega = checks.positive_number("omega", omega)
        super().__init__(crawl_rate, checks.finite("initial", initial), np.asarray(0.0))

    def _advance(self, changed, k, crawl_rate, z, u):
        beta = _at(self.momentum, k)
        step = _at(self.step, k) / beta
        u = kernels.momentum_step(changed, u, z, crawl_rate, step, self.omega)
        return z + beta * u, u
