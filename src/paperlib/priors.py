"""Priors of Grimes and Ford (2008): pseudo-observations, and a grid.

Section 4 of their paper: the distribution of a page's change rate before its
first crawl (`PseudoObservations`) and after a few crawls (`grid_posterior`).
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

# A fitted logarithm this close to its bound counts as at the bound.
AT_BOUND = 1e-3
# Exponent of the rate in a density over periods that is uniform in this quantity.
BASES = {"period": 0, "rate": 2}


@dataclass(frozen=True)
class PseudoObservations:
    r"""Prior given by two pseudo-observations, one changed and one unchanged.

    Section 4.4 of Grimes and Ford (2008): every page gets one crawl that found
    a change after an interval a, and one crawl that found no change after an
    interval b. If all change rates are equally likely before these two, the
    density after them is

    .. math:: \pi(\Delta) = \frac{b (a + b)}{a}
        (1 - e^{-a \Delta})\,e^{-b \Delta} ,

    the density of the sum of two exponential variables of means 1/b and
    1/(a + b) (derived).

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
        for name, value in vars(self).items():  # not setattr: the dataclass is frozen
            vars(self)[name] = checks.number(name, value, above=True)

    def density(self, rate: ArrayLike) -> NDArray:
        """Density (unit: time) at non-negative change rates (1/time)."""
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

        This is `estimators.mle` from the crawls and the two
        pseudo-observations, so that no history is degenerate (section 4.4 of
        Grimes and Ford, 2008).

        Parameters
        ----------
        history : History
            Dense or ragged.

        Returns
        -------
        ndarray or float, shape ``history.shape``, 1/time
            Change rates; for a page without crawls, the mode of the prior.
        """
        observed = self.observed(history)
        return history.by_page(mle(observed))

    def observed(self, history: History) -> History:
        """Append a history to the two pseudo-observations.

        The likelihood of the result is the posterior, if all rates are equally likely
        before the pseudo-observations.

        Parameters
        ----------
        history : History
            Dense or ragged.

        Returns
        -------
        History
            Ragged, of the same class. No page is degenerate.
        """
        checks.instance("history", history, History)
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
            Quantity that is uniform before the two pseudo-observations: the
            period or the rate, as in `density`. Grimes and Ford (2008) do not say
            which. With "period" the integral of the prior is infinite unless there
            is a largest period.

        Returns
        -------
        ndarray, shape (n_grid,)
            Probabilities that sum to 1.
        """
        period = checks.rising("period", period, above=True)
        rate = 1 / period
        # relative to the longest period, so that not all weights underflow
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

        Section 4.4 of Grimes and Ford (2008): with the `probabilities` p_k of
        the grid points, and the share s_k of the pages that are nearest to
        each point,

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
        """Fit the prior to known change rates at minimum `distance`.

        Section 4.4 of Grimes and Ford (2008). They use simulated annealing. We use
        the simplex of Nelder and Mead, which starts at the best point of a grid
        and finds the same minimum.

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
            An interval ended at its bound. With base "period", `changed` does so
            for a population with a heavy tail of periods.
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
            # six digits of an interval, and the rounding of a loss
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
    """Share of pages whose mean time between changes is nearest to each grid point.

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
        Shares that sum to 1.
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

    for each page (section 4.3 of Grimes and Ford, 2008). The result can be the
    prior of the next call, with only the new crawls.

    Parameters
    ----------
    history : History
        Dense or ragged.
    rate : array_like, shape (n_grid,), 1/time
        Change rates, non-negative.
    prior : array_like, shape (n_grid,) or ``(*history.shape, n_grid)``
        Probabilities up to a factor for each page, non-negative.

    Returns
    -------
    ndarray, shape ``(*history.shape, n_grid)``
        Probabilities that sum to 1 for each page.

    Raises
    ------
    ValueError
        The bits of a page are impossible under its prior.

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
