"""The prior of Grimes and Ford (2008) by two pseudo-observations, learnt from bits."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from paperlib import priors
from recrawl.log.history import History
from recrawl.rates import prior_kernels as kernels
from recrawl.rates.likelihood import mle
from recrawl.types import Values

__all__ = ["PseudoObservations"]


class PseudoObservations(priors.PseudoObservations):
    """`paperlib.priors.PseudoObservations`, also learnt from histories.

    Parameters
    ----------
    changed, unchanged : float, time
        Intervals of the changed pseudo-observation and of the unchanged one.

    Examples
    --------
    >>> from recrawl.rates.prior import PseudoObservations
    >>> from recrawl.log.history import History
    >>> prior = PseudoObservations(changed=2.0, unchanged=1.0)
    >>> float(prior.estimate(History([1.0], [True], age=[0.25])).round(3))
    1.038
    """

    def estimate(self, history: History) -> Values:
        """Posterior mode of the change rate, from bits, ages and counts.

        Parameters
        ----------
        history : History
            In either form.

        Returns
        -------
        ndarray or float, shape ``history.shape``, 1/time
            The mode of the prior for a page without crawls.
        """
        return history.by_page(mle(self.observed(history)))

    @classmethod
    def learn(cls, history: History, rate: ArrayLike) -> PseudoObservations:
        r"""Fit the prior to histories by maximum marginal likelihood.

        The two intervals that maximise the probability of the bits,

        .. math:: \prod_\mathrm{pages} \int
            P(\mathrm{bits} \mid \Delta)\,\pi(\Delta)\,d\Delta ,

        an empirical-Bayes prior. Beyond Grimes and Ford (2008): the rates
        of the pages need not be known, one bit of each page is enough.

        Parameters
        ----------
        history : History
            In either form, two pages or more.
        rate : array_like, shape (n_grid,), 1/time
            The grid of rates for the integral, positive, rising; both
            intervals stay within the periods that it spans.

        Returns
        -------
        PseudoObservations
        """
        rate = np.asarray(rate, dtype=float)
        likelihood = np.empty((np.prod(history.shape, dtype=int), rate.size))
        kernels.likelihoods(*history.likelihood_terms(), rate, likelihood)
        width = np.gradient(rate)

        # of many priors at once, shape (n_priors, 2) to (n_priors,); one that makes a
        # history almost impossible has a loss of inf
        @np.errstate(divide="ignore")
        def losses(logs):
            densities = [cls(*intervals).density(rate) for intervals in np.exp(logs)]
            weight = np.array(densities) * width
            return -np.log(likelihood @ weight.T).sum(axis=0)

        axis = np.linspace(*-np.log(rate[[-1, 0]]), 20)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
        # a row at a time, which takes a twentieth of the memory of all
        first = np.array([losses(row) for row in grid])
        fitted = scipy.optimize.minimize(
            lambda logs: losses(logs[None])[0],
            grid[np.unravel_index(np.argmin(first), first.shape)],
            method="Nelder-Mead",
            bounds=[axis[[0, -1]]] * 2,
            options={
                "xatol": 1e-6,  # of a logarithm: six digits of an interval
                "fatol": 1e-12 * abs(first.min()),  # rounding of a loss
                "maxiter": 1000,  # of which it takes some hundred
            },
        )
        return cls(*np.exp(fitted.x).tolist())
