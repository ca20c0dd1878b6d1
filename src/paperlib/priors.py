"""Priors of Grimes and Ford (2008): pseudo-observations, and a grid.

Their section 4: what is known about a page before its first
crawl (`PseudoObservations`, its first interval), and after a few crawls
(`grid_posterior`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from . import checks
from .errors import ConvergenceError, DegeneratePriorWarning
from .estimators import log_likelihood, mle
from .processes import History

# A logarithm this close to its bound has ended there.
AT_BOUND = 1e-3
# Exponent of the rate in a density over periods that is uniform in either quantity.
BASES = {"period": 0, "rate": 2}


@dataclass(frozen=True)
class PseudoObservations:
    r"""Prior given by two pseudo-observations, one changed and one unchanged.

    Section 4.4 of Grimes and Ford (2008): every page gets a crawl that found a
    change after an interval a, and one that found none after an interval b. If
    all change rates are equally likely before the two, the density after them
    is

    .. math:: \pi(\Delta) = \frac{b (a + b)}{a}
        (1 - e^{-a \Delta})\,e^{-b \Delta} ,

    that of the sum of two exponential variables of means 1/b and 1/(a + b)
    (derived).

    Parameters
    ----------
    changed, unchanged : float, time
        The intervals a and b, positive.

    Examples
    --------
    >>> from paperlib.priors import PseudoObservations
    >>> from paperlib.processes import History
    >>> prior = PseudoObservations(changed=2.0, unchanged=1.0)
    >>> round(prior.mode, 3), round(prior.initial_interval, 3)
    (0.549, 1.82)
    >>> float(prior.estimate(History([1.0, 1.0], [False, False])).round(3))
    0.255
    """

    changed: float
    unchanged: float

    def __post_init__(self):
        for name, value in vars(self).items():  # so, because the dataclass is frozen
            vars(self)[name] = checks.number(name, value, above=True)

    def density(self, rate: ArrayLike) -> NDArray:
        """Density (time) of non-negative change rates (1/time)."""
        a, b = self.changed, self.unchanged
        rate = checks.numbers("rate", rate)
        return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)

    @property
    def mode(self) -> float:
        """Most likely change rate, log(1 + a / b) / a, 1/time (derived)."""
        return float(np.log1p(self.changed / self.unchanged)) / self.changed

    @property
    def initial_interval(self) -> float:
        """First interval of a page that was never crawled, 1 / mode, time.

        Section 5 of Grimes and Ford (2008), step 1.
        """
        return 1 / self.mode

    def estimate(self, history: History) -> Any:
        r"""Posterior mode of the change rate.

        .. math:: \arg\max_\Delta \; (1 - e^{-a\Delta})\,e^{-b\Delta}
                  \prod_k P(\mathrm{bit}_k \mid \Delta)

        It is `estimators.mle` with the two pseudo-observations among the
        crawls, so that no history is degenerate; section 4.4 of Grimes and
        Ford (2008).

        Parameters
        ----------
        history : History
            In either form.

        Returns
        -------
        ndarray or float, shape ``history.shape``, 1/time
            Change rates; the mode of the prior for a page without crawls.
        """
        return history.by_page(mle(self.observed(history)))

    def observed(self, history: History) -> History:
        """Append a history to the two pseudo-observations.

        Its likelihood is the posterior if all rates are equally likely before the
        two.

        Parameters
        ----------
        history : History
            In either form.

        Returns
        -------
        History
            Of the same class, in the ragged form; no page of it is degenerate.
        """
        pages = (*history.shape, 1)
        interval = np.tile([self.changed, self.unchanged], pages)
        pseudo = type(history)(interval, np.tile([True, False], pages))
        return pseudo.join(history)

    def probabilities(
        self, period: ArrayLike, *, base: Literal["period", "rate"] = "period"
    ) -> NDArray:
        r"""Distribution of the mean time between changes on a grid.

        Section 4.4 of Grimes and Ford (2008):

        .. math:: p_k \propto (1 - e^{-a / T_k})\,e^{-b / T_k}\,f(T_k)\,
                  \delta T_k, \qquad f(T) = 1 \text{ or } T^{-2} \text{, see base.}

        Parameters
        ----------
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising.
        base : {"period", "rate"}, default "period"
            Quantity that is uniform without the two pseudo-observations: the
            period, as in Grimes and Ford (2008), where the prior has no finite
            integral without a largest period, or the rate, as in `density`.

        Returns
        -------
        ndarray, shape (n_grid,)
            Probabilities of sum 1.
        """
        period = checks.rising("period", period, above=True)
        rate = 1 / period
        # relative to the longest period, so that not all of them vanish
        unchanged = np.exp(-self.unchanged * (rate - rate[-1]))
        weight = -np.expm1(-self.changed * rate) * unchanged
        weight *= (
            np.gradient(period) * rate ** BASES[checks.one_of("base", base, BASES)]
        )
        return weight / weight.sum()

    def distance(
        self,
        change_rate: ArrayLike,
        period: ArrayLike,
        *,
        base: Literal["period", "rate"] = "period",
    ) -> float:
        r"""L2 distance of the prior to a population of pages, on a grid.

        Section 4.4 of Grimes and Ford (2008): with the `probabilities` p of
        the grid, and the shares s of the pages that are nearest to its points,

        .. math:: \sqrt{\textstyle\sum_k (p_k - s_k)^2} .

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Change rates of the pages, positive.
        period, base
            As in `probabilities`.

        Returns
        -------
        float
        """
        difference = self.probabilities(period, base=base) - shares(change_rate, period)
        return float(np.linalg.norm(difference))

    @classmethod
    def fit(
        cls,
        change_rate: ArrayLike,
        period: ArrayLike,
        *,
        base: Literal["period", "rate"] = "period",
    ) -> PseudoObservations:
        """Fit the prior to known change rates by the least `distance`.

        Section 4.4 of Grimes and Ford (2008). They use simulated annealing; here
        it is the simplex of Nelder and Mead from the best point of a grid, which
        finds the same minimum.

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Change rates of the pages, positive.
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising; both intervals stay
            within this grid.
        base : {"period", "rate"}, default "period"
            As in `probabilities`.

        Returns
        -------
        PseudoObservations

        Raises
        ------
        ConvergenceError
            The simplex did not converge.

        Warns
        -----
        DegeneratePriorWarning
            An interval ended at its bound, as `changed` does for a population
            with a heavy tail of periods and base "period".
        """
        period = checks.rising("period", period, above=True)
        known = shares(change_rate, period)

        def loss(logs):
            prior = cls(*np.exp(logs))
            return np.linalg.norm(prior.probabilities(period, base=base) - known)

        ends = np.log(period[[0, -1]])
        start = scipy.optimize.brute(loss, [ends, ends], finish=None)
        fitted = scipy.optimize.minimize(
            loss,
            start,
            method="Nelder-Mead",
            bounds=[ends, ends],
            # six digits of an interval; the rounding of a loss
            options={"xatol": 1e-6, "fatol": 1e-12 * loss(start)},
        )
        if not fitted.success:
            raise ConvergenceError(f"no fit after {fitted.nit} iterations")
        prior = cls(*np.exp(fitted.x))
        for name, value in vars(prior).items():
            if np.abs(np.log(value) - ends).min() < AT_BOUND:
                warnings.warn(
                    f"{name} ended at its bound, {value:.6g}",
                    DegeneratePriorWarning,
                    stacklevel=2,
                )
        return prior


def shares(change_rate: ArrayLike, period: ArrayLike) -> NDArray:
    """Share of the pages nearest to each mean time between changes of a grid.

    The empirical prior of section 4.3 of Grimes and Ford (2008): the distribution of
    known change rates, for `grid_posterior`.

    Parameters
    ----------
    change_rate : array_like, shape (n_pages,), 1/time
        Change rates, positive.
    period : array_like, shape (n_grid,), time
        Mean times between changes, positive, rising.

    Returns
    -------
    ndarray, shape (n_grid,)
        Of sum 1.
    """
    change_rate = checks.numbers("change_rate", change_rate, above=True)
    period = checks.rising("period", period, above=True)
    nearest = np.searchsorted(0.5 * (period[1:] + period[:-1]), 1 / change_rate)
    return np.bincount(nearest, minlength=period.size) / change_rate.size


def grid_posterior(history: History, rate: ArrayLike, prior: ArrayLike) -> NDArray:
    r"""Posterior probabilities of change rates on a grid, for any prior.

    .. math:: P(\Delta \mid \mathrm{bits}) \propto P(\Delta)
        \prod_\mathrm{changed} (1 - e^{-\Delta w_n})
        \prod_\mathrm{unchanged} e^{-\Delta w_n}

    for each page; section 4.3 of Grimes and Ford (2008). The result can be the
    prior of the next call, which gets the new crawls alone.

    Parameters
    ----------
    history : History
        In either form.
    rate : array_like, shape (n_grid,), 1/time
        Change rates, non-negative.
    prior : array_like, shape (n_grid,) or ``(*history.shape, n_grid)``
        Probabilities up to a factor for each page, non-negative.

    Returns
    -------
    ndarray, shape ``(*history.shape, n_grid)``
        Probabilities, of sum 1 for each page.

    Raises
    ------
    ValueError
        A page whose bits are impossible under its prior.

    Examples
    --------
    >>> from paperlib.priors import grid_posterior
    >>> from paperlib.processes import History
    >>> history = History([1.0, 2.0], [True, False])
    >>> grid_posterior(history, [0.1, 0.5, 2.0], [1.0, 1.0, 1.0]).round(3)
    array([0.327, 0.607, 0.066])
    """
    rate = checks.numbers("rate", rate)
    prior = checks.numbers("prior", prior)
    likelihood = [log_likelihood(history, one) for one in rate]
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf
        log = np.stack(likelihood, axis=-1) + np.log(prior)
    best = log.max(axis=-1)
    name = "log-probability of the bits under the prior"
    checks.require(name, best, "finite", best > -np.inf)
    return scipy.special.softmax(log, axis=-1)
