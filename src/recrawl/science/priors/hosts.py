"""A gamma distribution of change rates for each host, learnt from all hosts.

The logarithm of the mean rate of a host is the one unknown number of the host,
so that its distribution is a row of a table: hosts by a grid of that logarithm.
For a given shape, the entry is the product of the marginal likelihoods of the
pages of the host. They are computed on a coarse grid, because their logarithm
is smooth, and carried to a fine one by cubic splines, because their product is
narrow for a host of many pages. Means of smooth functions over the posterior
of a host need the coarse grid only: the splines turn probabilities on the fine
grid into weights on the coarse one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import digamma, ndtr

from recrawl import checks
from recrawl.science.priors.gamma import GammaPrior, gamma_of, require_telling
from recrawl.science.priors.marginals import LEAST_SHAPE, MOST_SHAPE, TINY, marginal
from recrawl.science.priors.searching import require_convergence, search, warn_at_bound
from recrawl.science.processes import History

__all__ = ["HostPriors", "host_priors"]

# Step of the coarse grid. It changes a shape of 1.5 by a relative 3e-5, and one
# of 20 by 1e-3 (measured).
_COARSE = 0.3
# The step of the fine grid is the width of the likelihood of the largest host,
# between these limits.
_FINEST, _FINE = 0.02, 0.1


class HostPriors(NamedTuple):
    """Change rates of hosts and their pages, by `host_priors`.

    Parameters
    ----------
    host : ndarray, shape (n_hosts,)
        The labels, sorted.
    prior : GammaPrior
        For one more page of each host, arrays of shape (n_hosts,).
    new : GammaPrior
        For a page of a host that has not been seen.
    posterior : GammaPrior
        Of each page after its crawls, arrays of ``history.shape``: change rates
        are ``posterior.mean``, limits ``posterior.interval()``.
    shape : float
        Shape of the distribution within each host.
    median : float, 1/time
        Median of the mean rates of the hosts.
    spread : float
        Standard deviation of the logarithm of these mean rates.

    Examples
    --------
    The prior of each page of a log, for a scheduler that learns:

    >>> import numpy as np
    >>> new = GammaPrior(0.5, 2.0)
    >>> prior = GammaPrior(np.array([0.7, 0.8]), np.array([3.0, 0.2]))
    >>> learnt = HostPriors(np.array(["a", "b"]), prior, new, prior, 1.0, 0.4, 1.4)
    >>> host = np.searchsorted(learnt.host, ["b", "a", "b"])
    >>> learnt.prior.shape[host], learnt.prior.rate[host]
    (array([0.8, 0.7, 0.8]), array([0.2, 3. , 0.2]))
    """

    host: np.ndarray
    prior: GammaPrior
    new: GammaPrior
    posterior: GammaPrior
    shape: float
    median: float
    spread: float


def host_priors(
    history: History, host: ArrayLike, *, max_iterations: int = 1000
) -> HostPriors:
    r"""Learn a gamma distribution of change rates for each host.

    The change rates of the pages of host h have a gamma distribution with mean
    :math:`m_h` and a shape a that all hosts share, and the means of the hosts
    have a lognormal distribution:

    .. math:: \Delta_i \sim \mathrm{Gamma}(a, a / m_h), \qquad
        \log m_h \sim \mathrm{Normal}(\log M, s^2) .

    The three numbers a, M and s are those of maximum marginal likelihood: they
    maximise the probability of what the crawls of all pages have found, when
    all rates and all means are integrated out. The rates of pages and hosts
    then have posterior distributions. The mean of a host with many pages is
    estimated from these pages, that of a host with a single page is nearly the
    mean of all hosts. In the same way the rate of a page with many crawls is
    estimated from these crawls, and that of a page with few crawls is near the
    mean of its host.

    Each distribution is given as the gamma distribution with the same means
    of the rate and of its logarithm. For a host of few pages its shape is
    below a, because the mean of the host is not known.

    Parameters
    ----------
    history : History
        In either form, at any intervals, two pages or more. The quadrature
        needs some 5 kB for each page.
    host : array_like, shape ``history.shape``
        Label of the host of each page.
    max_iterations : int, default 1000
        Iterations of each search.

    Returns
    -------
    HostPriors
        Distributions for hosts, pages, and a new host.

    Raises
    ------
    ValueError
        Histories that `gamma_prior` refuses; labels that are not one for each
        page.
    ConvergenceError
        Not within `max_iterations`.

    Warns
    -----
    DegeneratePriorWarning
        The shape ended at a bound, 0.01 or 400, or the median or the spread at
        the end of the grid, because hosts have changed always or never.

    Notes
    -----
    The plain form of the likelihood is `tests.recrawl.plain.host_marginal`.
    The spread is at least the step of the grid of means, which is 0.1, or
    less for hosts of more than a hundred pages: hosts that are alike get this
    spread. With one host the result is close to that of `gamma_prior`.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.priors import host_priors
    >>> from recrawl.science.processes import simulate_history
    >>> rng = np.random.default_rng(1)
    >>> host = rng.integers(100, size=3000)
    >>> mean = np.exp(rng.normal(0.0, 1.0, 100))
    >>> rates = rng.gamma(1.5, mean[host] / 1.5)
    >>> history = simulate_history(rates, interval=0.5, n_crawls=3, rng=2)
    >>> learnt = host_priors(history, host)
    >>> round(learnt.shape, 1), round(learnt.median, 1), round(learnt.spread, 1)
    (1.4, 1.1, 1.0)
    """
    require_telling(history)
    max_iterations = checks.count("max_iterations", max_iterations)
    labels, member = checks.labels("host", host, history.shape)
    table = _Table(marginal(history), member, max_iterations)
    bounds = np.log([LEAST_SHAPE, MOST_SHAPE])
    found = minimize_scalar(
        lambda log_shape: table.fit(log_shape).loss,
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-6, "maxiter": max_iterations},
    )
    learnt = HostPriors(labels, *table.learnt(found.x))
    posterior = GammaPrior(*(of.reshape(history.shape) for of in learnt.posterior))
    learnt = learnt._replace(posterior=posterior)
    require_convergence(learnt[4:], found.success, max_iterations)
    medians, spreads = table.bounds
    # equal hosts have the least spread, which needs no warning
    ends = {"shape": bounds, "median": medians, "spread": spreads[1:]}
    for name, of in ends.items():
        warn_at_bound(name, np.log(getattr(learnt, name)), of, stacklevel=3)
    return learnt


class _Fit(NamedTuple):
    """Most likely distribution of the means of hosts, for one shape."""

    loss: float
    log_median: float
    spread: float
    posterior: np.ndarray  # of the means, (n_hosts, n_fine)


class _Table:
    """Hosts by the logarithms of their mean rates."""

    def __init__(self, pages, member, max_iterations):
        self._pages, self._member = pages, member
        self._max_iterations = max_iterations
        size = np.bincount(member)
        self._sum = csr_array((np.ones(member.size), (member, np.arange(member.size))))
        step = np.clip(size.max() ** -0.5, _FINEST, _FINE)
        self._coarse, self._fine = (_grid(pages.ends, by) for by in (_COARSE, step))
        self._edges = (self._fine[:-1] + self._fine[1:]) / 2
        # of the logarithms of median and spread
        spreads = self._fine[1] - self._fine[0], np.ptp(self._fine)
        self.bounds = [self._fine[[0, -1]], np.log(spreads)]
        # values on the coarse grid times this are splines on the fine one
        self._spline = CubicSpline(self._coarse, np.eye(self._coarse.size))(self._fine)

    def fit(self, log_shape):
        """Maximise the marginal likelihood over median and spread."""
        log = self._sum @ self._pages.log(log_shape, self._coarse) @ self._spline.T
        most = log.max(axis=1, keepdims=True)
        likelihood = np.exp(log - most)

        def losses(logs):
            probability = likelihood @ self._normal(logs).T
            return -np.log(np.maximum(probability, TINY)).sum(axis=0)

        best, converged = search(losses, self.bounds, self._max_iterations)
        require_convergence(np.exp(best), converged, self._max_iterations)
        posterior = likelihood * self._normal([best])
        posterior /= posterior.sum(axis=1, keepdims=True)
        loss = losses([best])[0] - most.sum()
        return _Fit(loss, best[0], np.exp(best[1]), posterior)

    def _normal(self, logs):
        """Probabilities of the cells of the fine grid, a row for each distribution.

        `logs` are rows too: the logarithms of median and spread.
        """
        log_median, log_spread = np.asarray(logs)[:, :1], np.asarray(logs)[:, 1:]
        below = ndtr((self._edges - log_median) / np.exp(log_spread))
        # as np.diff does with 0 before and 1 after them, in half of the time
        cells = np.empty((len(below), self._fine.size))
        cells[:, 0], cells[:, -1] = below[:, 0], 1.0 - below[:, -1]
        np.subtract(below[:, 1:], below[:, :-1], out=cells[:, 1:-1])
        return cells

    def learnt(self, log_shape):
        """What `HostPriors` has beside the labels."""
        _, log_median, spread, posterior = self.fit(log_shape)
        shape, median = np.exp(log_shape).item(), np.exp(log_median).item()
        within = digamma(shape) - log_shape  # mean of log(rate / mean of the host)
        means, logs = posterior @ np.exp(self._fine), posterior @ self._fine
        prior = gamma_of(means, logs + within)
        new = gamma_of(median * np.exp(spread**2 / 2), log_median + within)
        weights = (posterior @ self._spline)[self._member]
        moments = self._pages.moments(log_shape, self._coarse)
        of_pages = gamma_of(*((weights * of).sum(axis=1) for of in moments))
        return prior, new, of_pages, shape, median, spread.item()


def _grid(ends, step):
    """Equidistant points between the ends."""
    return np.linspace(*ends, 1 + int(np.ceil(np.diff(ends).item() / step)))
