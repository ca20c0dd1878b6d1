"""The prior of Grimes and Ford (2008) by two pseudo-observations, learnt from bits."""

from __future__ import annotations

import math

import numpy as np
import scipy

from paperlib import priors
from recrawl.log.history import History
from recrawl.rates import likelihood_kernels as kernels
from recrawl.rates.likelihood import mle
from recrawl.types import Values

__all__ = ["PseudoObservations"]

# Of the logarithm of the rate, on the grid of the integral. Both intervals differ from
# those on a grid five times as fine by .01 standard errors at most (measured).
_STEP = 0.05
_LEAST = 1e-300  # probability of a page under a prior that makes it impossible
# Of the loss, relative: some 1e-4 standard errors of an interval.
_TOLERANCE = 1e-12
# Where the search starts, in the range of the logarithms: from here it found the
# greatest of the maxima found from six starts in 400 samples of 2 to 59 pages, where
# the middle of the range missed it in 3.
_START = 0.75


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
    def learn(cls, history: History) -> PseudoObservations:
        r"""Fit the prior to histories by maximum marginal likelihood.

        The two intervals that maximise the probability of the bits,

        .. math:: \prod_\mathrm{pages} \int
            P(\mathrm{bits} \mid \Delta)\,\pi(\Delta)\,d\Delta ,

        an empirical-Bayes prior. Beyond Grimes and Ford (2008): the rates
        of the pages need not be known, one bit of each page is enough.

        Parameters
        ----------
        history : History
            Of pages drawn at random, in either form.

        Returns
        -------
        PseudoObservations
            With fewer than two pages that have an interval, both pseudo-observations
            are as long as the mean interval.

        Examples
        --------
        >>> history = History([1.0, 3.0], [True, False], [0, 2])
        >>> PseudoObservations.learn(history).changed
        2.0
        """
        crawled = history.n_crawls > 0
        if np.count_nonzero(crawled) < 2:
            mean = float(history.interval.mean()) if crawled.any() else 1.0
            return cls(mean, mean)
        estimates = mle(history, substitute=True)[crawled]
        ends = np.log([estimates.min() / 10, estimates.max() * 10])
        log_rate = np.linspace(*ends, math.ceil(np.ptp(ends) / _STEP))
        rate = np.exp(log_rate)
        width = np.gradient(rate)
        likelihood = np.empty((crawled.size, rate.size))
        kernels.likelihoods(log_rate, *history.likelihood_terms(), likelihood)

        def loss(logs):
            """Minus the logarithm of the marginal likelihood, and its gradient."""
            a, b = np.exp(logs)
            weight = cls(a, b).density(rate) * width
            # not a product of BLAS, whose threads would wait for each other
            marginal = np.maximum(np.einsum("ij,j", likelihood, weight), _LEAST)
            # of each rate in the posteriors of all pages
            share = weight * np.einsum("ij,i", likelihood, 1 / marginal)
            slopes = (
                a / (a + b) - 1 + 1 / scipy.special.exprel(a * rate),
                b / (a + b) + 1 - b * rate,
            )
            return -np.log(marginal).sum(), [-(share @ slope) for slope in slopes]

        fitted = scipy.optimize.minimize(
            loss,
            np.quantile(-ends, [_START] * 2),
            jac=True,
            method="L-BFGS-B",
            bounds=[np.sort(-ends)] * 2,
            options={"ftol": _TOLERANCE},
        )
        return cls(*np.exp(fitted.x).tolist())
