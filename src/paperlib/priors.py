"""What is known about a page before it is crawled, and after a few crawls."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from paperlib import checks
from paperlib._kernels import priors as kernels
from paperlib._kernels import threads_for
from paperlib.errors import ConvergenceError, DegeneratePriorWarning
from paperlib.estimators import mle
from paperlib.processes import History, join, simulate_sequential_history

__all__ = [
    "DegeneratePriorWarning",
    "FakeIntervals",
    "GammaPrior",
    "gamma_prior",
    "grid_posterior",
    "population",
    "prior_from_arrivals",
]


def __dir__():
    return __all__  # completion offers the public names alone


_HOURS_A_DAY = 24
# Median of the mean times between changes, chosen so that the best first
# interval of the simulations, 9.5 days, is near the 11 days of figure 4 of
# [grimes08].
_MEDIAN_PERIOD = 15 * _HOURS_A_DAY
_SHORTEST_PERIOD, _LONGEST_PERIOD = 2.0, 365 * _HOURS_A_DAY

# Two annealings must agree on the distance to this relative difference.
_AGREEMENT = 1e-3
# A logarithm this close to its bound has ended there.
_AT_BOUND = 1e-3

# Bounds of the shape that `gamma_prior` looks for: at the least, nine of ten
# rates are below a thousandth of their mean; at the greatest all are within
# some 5% of it.
_LEAST_SHAPE, _MOST_SHAPE = 0.01, 400.0
# Changes in an interval beyond which a change is certain, and changes in all
# intervals of a page below which there is none: the likelihood is constant.
_CERTAIN, _NONE = 40.0, 1e-6


def population(n_pages, *, law="lognormal", rng=None):
    """Draw change rates of pages that stand in for the data of [grimes08].

    Their data are private. Mean times between changes have a median of 15
    days, chosen so that the best first interval of their figure 4 is near the
    11 days of the paper: it is 9.5 days. They are clipped to 2 hours and 1
    year (our choice).

    Parameters
    ----------
    n_pages : int
        Number of pages.
    law : {"lognormal", "log-logistic"}
        Distribution of the mean times between changes: "lognormal" with
        standard deviation 1 of the logarithm, or "log-logistic" with shape 1,
        whose tail is so heavy that it has no mean without the clip.
    rng : seed or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    ndarray, shape (n_pages,), 1/hour
        Change rates.

    Raises
    ------
    ValueError
        Another distribution, a number of pages that is not positive.

    Examples
    --------
    >>> from paperlib import priors
    >>> (1 / priors.population(3, rng=1) / 24).round(1)  # in days
    array([21.2, 34.1, 20.9])
    """
    rng = np.random.default_rng(rng)
    draws = {"lognormal": rng.standard_normal, "log-logistic": rng.logistic}
    if law not in draws:
        raise ValueError(
            f"law must be one of {', '.join(map(repr, draws))}, got {law!r}"
        )
    log_ratio = draws[law](size=checks.count("n_pages", n_pages))
    period = _MEDIAN_PERIOD * np.exp(log_ratio)
    return 1 / np.clip(period, _SHORTEST_PERIOD, _LONGEST_PERIOD)


@dataclass(frozen=True)
class FakeIntervals:
    r"""Prior given by two pseudo-observations, one changed and one unchanged.

    Section 4.4 of [grimes08]: every page gets a crawl that found a change
    after an interval a and one that found none after an interval b. If all
    change rates are equally likely before the two, the density after them is

    .. math:: \pi(\Delta) = \frac{b (a + b)}{a}
        (1 - e^{-a \Delta})\,e^{-b \Delta} ,

    which is that of the sum of two exponential variables of means 1/b and
    1/(a + b) (derived).

    Parameters
    ----------
    changed, unchanged : float, time
        The intervals a and b, positive.

    Raises
    ------
    ValueError
        An interval that is not positive and finite.

    Notes
    -----
    The plain forms are `paperlib.reference.prior_density`,
    ``prior_moments``, ``prior_mode``, ``prior_probabilities`` and
    ``prior_distance``.

    Examples
    --------
    >>> from paperlib.priors import FakeIntervals
    >>> from paperlib.processes import History
    >>> prior = FakeIntervals(changed=2.0, unchanged=1.0)
    >>> round(prior.mean, 3), round(prior.mode, 3)
    (1.333, 0.549)
    >>> float(prior.estimate(History([1.0, 1.0], [False, False])).round(3))
    0.255
    """

    changed: float
    unchanged: float

    def __post_init__(self):
        for name in ("changed", "unchanged"):
            value = checks.scalar(checks.positive, name, getattr(self, name))
            object.__setattr__(self, name, value)

    def density(self, rate):
        """Density of the change rate.

        Parameters
        ----------
        rate : array_like, 1/time
            Change rates, non-negative.

        Returns
        -------
        ndarray, time
            The density at each rate.
        """
        rate = checks.non_negative("rate", rate)
        return _density(self.changed, self.unchanged, rate)

    @property
    def mean(self):
        """Mean change rate, 1/time."""
        return 1 / self.unchanged + 1 / (self.changed + self.unchanged)

    @property
    def variance(self):
        """Variance of the change rate, 1/time^2."""
        return 1 / self.unchanged**2 + 1 / (self.changed + self.unchanged) ** 2

    @property
    def mode(self):
        """Most likely change rate, log(1 + a / b) / a, 1/time."""
        return np.log1p(self.changed / self.unchanged).item() / self.changed

    @property
    def initial_interval(self):
        """First interval of a page never crawled before, 1 / mode, time."""
        return 1 / self.mode

    def estimate(self, history):
        """Posterior mode of the change rate.

        It is `estimators.mle` with the two pseudo-observations among the
        crawls, so that no history is degenerate; section 4.4 of [grimes08].

        Parameters
        ----------
        history : History
            In either form.

        Returns
        -------
        ndarray or float, shape ``history.shape``, 1/time
            Change rates; the mode of the prior for a page without crawls.
        """
        shape = history.shape
        pseudo = History(
            np.broadcast_to([self.changed, self.unchanged], (*shape, 2)),
            np.broadcast_to([True, False], (*shape, 2)),
        )
        return mle(join(pseudo, history)).reshape(shape)[()]

    def probabilities(self, period, *, base="period"):
        """Distribution of the mean time between changes on a grid.

        Parameters
        ----------
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising.
        base : {"period", "rate"}
            What is flat without the two pseudo-observations: the period, as
            in [grimes08], where the prior has no finite integral without a
            largest period, or the rate, as in `density`.

        Returns
        -------
        ndarray, shape (n_grid,)
            Probabilities of sum 1.
        """
        if base not in ("period", "rate"):
            raise ValueError(f"base must be 'period' or 'rate', got {base!r}")
        rate = 1 / _rising("period", period)
        # relative to the longest period, so that not all of them vanish
        unchanged = np.exp(-self.unchanged * (rate - rate[-1]))
        weight = -np.expm1(-self.changed * rate) * unchanged
        weight *= np.gradient(period) * (rate**2 if base == "rate" else 1.0)
        return weight / weight.sum()

    def distance(self, change_rate, period, *, base="period"):
        """L2 distance of the prior to a population of pages, on a grid.

        Section 4.4 of [grimes08].

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Change rates of two pages or more, positive.
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising.
        base : {"period", "rate"}
            As in `probabilities`.

        Returns
        -------
        float
            Distance between `probabilities` and the shares of the pages.
        """
        shares = _shares(change_rate, period)
        return np.linalg.norm(self.probabilities(period, base=base) - shares).item()

    @classmethod
    def fit(
        cls,
        change_rate,
        period,
        *,
        base="period",
        method="search",
        max_iterations=1000,
        rng=None,
    ):
        """Fit the prior to known change rates by the least `distance`.

        Section 4.4 of [grimes08].

        Parameters
        ----------
        change_rate : array_like, shape (n_pages,), 1/time
            Change rates of two pages or more, positive.
        period : array_like, shape (n_grid,), time
            Mean times between changes, positive, rising; both intervals stay
            within this grid.
        base : {"period", "rate"}
            As in `probabilities`.
        method : {"search", "annealing"}
            "annealing": simulated annealing as in the paper, twice, which
            must agree on the distance to 0.1%. "search": a grid, and the
            simplex of Nelder and Mead from its best point.
        max_iterations : int, default 1000
            Iterations of the annealing or of the simplex.
        rng : seed or numpy.random.Generator, optional
            Source of randomness of the annealing.

        Returns
        -------
        FakeIntervals
            The fitted prior.

        Raises
        ------
        ValueError
            Fewer than two pages, a rate that is not positive and finite, a
            grid that does not rise.
        ConvergenceError
            Not within `max_iterations`; ``last`` holds the last prior.

        Warns
        -----
        DegeneratePriorWarning
            An interval ended at its bound, as `changed` does for a population
            with a heavy tail of periods and base "period": its prior is close
            to exp(-unchanged / period) / period. Both do where no pair is
            near the population.
        """
        wanted, period = _shares(change_rate, period), _rising("period", period)
        max_iterations = checks.count("max_iterations", max_iterations)

        def losses(logs):
            priors = [cls(*pair) for pair in np.exp(logs)]
            found = [prior.probabilities(period, base=base) for prior in priors]
            return np.array([np.linalg.norm(each - wanted) for each in found])

        bounds = np.log(period[[0, -1]])
        if method == "annealing":
            best, converged = _anneal(losses, bounds, max_iterations, rng)
        elif method == "search":
            best, converged = _search(losses, [bounds] * 2, max_iterations)
        else:
            raise ValueError(f"method must be 'annealing' or 'search', got {method!r}")
        return cls._fitted(best, converged, bounds, max_iterations)

    @classmethod
    def learn(cls, history, rate, *, max_iterations=1000):
        r"""Fit the prior to histories by maximum marginal likelihood.

        The two intervals that maximise the probability of the bits,

        .. math:: \prod_\mathrm{pages} \int
            P(\mathrm{bits} \mid \Delta)\,\pi(\Delta)\,d\Delta ,

        an empirical-Bayes prior of base "rate". Beyond [grimes08]: pages need
        not have been crawled until their rates are known, one bit of each is
        enough.

        Parameters
        ----------
        history : History
            In either form, two pages or more.
        rate : array_like, shape (n_grid,), 1/time
            The grid of rates for the integral, positive, rising; both
            intervals stay within the periods that it spans.
        max_iterations : int, default 1000
            Iterations of the simplex.

        Returns
        -------
        FakeIntervals
            The fitted prior.

        Raises
        ------
        ValueError
            Fewer than two pages, a grid that does not rise from above 0.
        ConvergenceError
            Not within `max_iterations`; ``last`` holds the last prior.

        Warns
        -----
        DegeneratePriorWarning
            An interval ended at its bound.
        """
        rate = _rising("rate", rate)
        if np.prod(history.shape, dtype=int) < 2:
            raise ValueError(
                f"history must hold at least two pages, got shape {history.shape}"
            )
        max_iterations = checks.count("max_iterations", max_iterations)
        likelihood = grid_posterior(history, rate, np.ones(rate.size))
        likelihood = likelihood.reshape(-1, rate.size)
        width = np.gradient(rate)

        # a prior that makes a history almost impossible has a loss of inf
        @np.errstate(divide="ignore")
        def losses(logs):
            density = _density(*np.exp(logs).T[..., np.newaxis], rate)
            return -np.log(likelihood @ (density * width).T).sum(axis=0)

        bounds = -np.log(rate[[-1, 0]])
        best, converged = _search(losses, [bounds] * 2, max_iterations)
        return cls._fitted(best, converged, bounds, max_iterations)

    @classmethod
    def _fitted(cls, best, converged, bounds, max_iterations):
        """The prior of two logarithms, if the search for them converged."""
        prior = cls(*np.exp(best))
        _require_convergence(prior, converged, max_iterations)
        for name, value in zip(("changed", "unchanged"), best, strict=True):
            _warn_at_bound(name, value, bounds, stacklevel=4)
        return prior


def _density(a, b, rate):
    """Density of `FakeIntervals.density`; `a` and `b` are numbers or arrays."""
    return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)


def _anneal(losses, bounds, max_iterations, rng):
    """Minimum by simulated annealing, and whether a second one agrees."""
    first, second = (
        scipy.optimize.dual_annealing(
            lambda logs: losses([logs])[0], [bounds] * 2, maxiter=max_iterations, rng=r
        )
        for r in np.random.default_rng(rng).spawn(2)
    )
    return first.x, abs(first.fun - second.fun) <= _AGREEMENT * first.fun


def _search(losses, bounds, max_iterations):
    """Minimum by the simplex of Nelder and Mead from the best point of a grid.

    `losses` takes many points, shape (n_points, 2), at once. Returns the
    minimum and whether the simplex converged.
    """
    axes = [np.linspace(*of, 20) for of in bounds]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    at = np.array([losses(row) for row in grid])
    found = scipy.optimize.minimize(
        lambda logs: losses([logs])[0],
        grid[np.unravel_index(at.argmin(), at.shape)],
        method="Nelder-Mead",
        bounds=bounds,
        options={
            "xatol": 1e-6,  # of a logarithm: six digits of an interval
            "fatol": 1e-12 * abs(at.min()),  # rounding of a loss
            "maxiter": max_iterations,
        },
    )
    return found.x, found.success


def _require_convergence(prior, converged, max_iterations):
    """Refuse a prior at which the search had not converged."""
    if not converged:
        raise ConvergenceError(
            f"no fit within {max_iterations} iterations, last at {prior}", prior
        )


def _warn_at_bound(name, value, bounds, stacklevel):
    """Warn of a logarithm that has ended at its bound."""
    if np.abs(value - np.asarray(bounds)).min() < _AT_BOUND:
        warnings.warn(
            f"{name} ended at its bound, {np.exp(value):.6g}",
            DegeneratePriorWarning,
            stacklevel=stacklevel,
        )


def _rising(name, values):
    """`values` as a positive array that rises along one axis."""
    values = checks.positive(name, values)
    if values.ndim != 1 or values.size < 2 or not (np.diff(values) > 0).all():
        raise ValueError(
            f"{name} must rise along one axis of at least two points, got {values}"
        )
    return values


def _shares(change_rate, period):
    """Share of the pages nearest to each period of the grid."""
    change_rate = checks.positive("change_rate", change_rate)
    period = _rising("period", period)
    if change_rate.ndim != 1 or change_rate.size < 2:
        raise ValueError(
            f"change_rate must hold at least two pages, got shape {change_rate.shape}"
        )
    nearest = np.searchsorted(0.5 * (period[1:] + period[:-1]), 1 / change_rate)
    return np.bincount(nearest, minlength=period.size) / change_rate.size


class GammaPrior(NamedTuple):
    """Gamma distribution of the change rates of a population, by `gamma_prior`.

    Parameters
    ----------
    shape : float
        Shape, positive.
    rate : float, time
        Rate, positive: shape / rate is the mean change rate.

    Examples
    --------
    A page of which nothing else is known, crawled once without a change:

    >>> from paperlib.estimators import GammaFilter
    >>> prior = GammaPrior(shape=0.5, rate=2.0)
    >>> GammaFilter(**prior._asdict()).update(False, interval=3.0).item()
    0.1
    """

    shape: float
    rate: float


def gamma_prior(history, *, max_iterations=1000):
    r"""Learn the gamma distribution of change rates from the histories of pages.

    Shape a and rate b of maximum marginal likelihood: those that maximise the
    probability of the bits of all pages,

    .. math:: \prod_\mathrm{pages} \int P(\mathrm{bits} \mid \Delta)\,
        \frac{b^a \Delta^{a - 1}}{\Gamma(a)}\,e^{-b \Delta}\,d\Delta ,

    the prior of `estimators.GammaFilter` and `policies.BayesGreedy` for other
    pages of the same kind. As in `FakeIntervals.learn`, two or three crawls of
    each page are enough. A gamma distribution of small shape has many slow
    pages and a few fast ones, which two pseudo-observations cannot describe.

    Parameters
    ----------
    history : History
        In either form, at any intervals, two pages or more: some thousand are
        plenty. The quadrature needs some 4 kB for each page.
    max_iterations : int, default 1000
        Iterations of the simplex.

    Returns
    -------
    GammaPrior
        Shape and rate.

    Raises
    ------
    ValueError
        Fewer than two pages; crawls of which all have found a change, or none
        has; one crawl of each page, and all at one interval: all of these fit
        distributions of any shape.
    ConvergenceError
        Not within `max_iterations`; ``last`` holds the last prior.

    Warns
    -----
    DegeneratePriorWarning
        The shape ended at a bound: at 400 if the pages differ no more than
        pages of one change rate do, or at 0.01. Or the mean ended at one.

    Notes
    -----
    The plain form is `paperlib.reference.gamma_prior`. Trapezoidal rule on the
    logarithm of the rate, relative error of the likelihood below 1e-5.

    Examples
    --------
    >>> import numpy as np
    >>> from paperlib.priors import gamma_prior
    >>> from paperlib.processes import simulate_history
    >>> rates = np.random.default_rng(3).gamma(0.5, 1 / 2.0, 5000)
    >>> history = simulate_history(rates, interval=1.0, n_crawls=10, rng=2)
    >>> shape, rate = gamma_prior(history)
    >>> round(shape, 2), round(rate, 2)
    (0.52, 2.16)
    """
    _require_telling(history)
    max_iterations = checks.count("max_iterations", max_iterations)
    longest = history.total(history.interval).max()
    # The likelihood of n crawls is no narrower in log rate than n^-1/2, because
    # the information of a crawl is at most 0.65; nor is the prior of most shape
    step = max(history.n_crawls.max(), _MOST_SHAPE) ** -0.5
    ends = np.log([_NONE / longest, _CERTAIN / history.interval.min()])
    log_rate = np.linspace(*ends, 1 + int(np.ceil(np.diff(ends).item() / step)))
    rate = np.exp(log_rate)
    likelihood = grid_posterior(history, rate, np.ones(rate.size))
    likelihood = likelihood.reshape(-1, rate.size)

    def losses(logs):
        weights = [_gamma_weights(shape, mean, log_rate) for shape, mean in logs]
        with np.errstate(divide="ignore"):  # impossible bits have a loss of inf
            return -np.log(likelihood @ np.transpose(weights)).sum(axis=0)

    bounds = [np.log([_LEAST_SHAPE, _MOST_SHAPE]), ends]
    best, converged = _search(losses, bounds, max_iterations)
    prior = GammaPrior(np.exp(best[0]).item(), np.exp(best[0] - best[1]).item())
    _require_convergence(prior, converged, max_iterations)
    for name, value, of in zip(("shape", "mean"), best, bounds, strict=True):
        _warn_at_bound(name, value, of, stacklevel=3)
    return prior


def _require_telling(history):
    """Refuse a history that fits gamma distributions of any shape."""
    n_pages = np.prod(history.shape, dtype=int)
    if n_pages < 2:
        raise ValueError(
            f"history must hold at least two pages, got shape {history.shape}"
        )
    n_changed = np.count_nonzero(history.changed)
    if n_changed in (0, history.changed.size):
        raise ValueError(
            "history must hold crawls with a change and crawls without, "
            f"got {n_changed} of {history.changed.size} with a change"
        )
    if history.n_crawls.max() < 2 and np.ptp(history.interval) == 0:
        raise ValueError(
            "history must hold a page of two crawls or two different intervals, "
            f"got one crawl of a page, at the interval {history.interval.flat[0]:g}"
        )


def _gamma_weights(log_shape, log_mean, log_rate):
    """Weights of the integral over a gamma distribution of change rates.

    `log_rate` are equidistant points. What lies beyond them has the weight of
    the distribution there, because the likelihood is constant.
    """
    log_scaled = log_rate + log_shape - log_mean  # of the rate b Delta
    shape, scaled = np.exp(log_shape), np.exp(log_scaled)
    density = np.exp(shape * log_scaled - scaled - scipy.special.gammaln(shape))
    weights = density * (log_rate[1] - log_rate[0])
    weights[[0, -1]] /= 2
    weights[0] += scipy.special.gammainc(shape, scaled[0])
    weights[-1] += scipy.special.gammaincc(shape, scaled[-1])
    return weights


def grid_posterior(history, rate, prior):
    r"""Posterior probabilities of change rates on a grid, for any prior.

    .. math:: P(\Delta \mid \mathrm{bits}) \propto P(\Delta)
        \prod_\mathrm{changed} (1 - e^{-\Delta w_n})
        \prod_\mathrm{unchanged} e^{-\Delta w_n}

    for each page; section 4.3 of [grimes08]. Known ages and counts enter as in
    `History.likelihood_terms`. It can be used online: what is
    returned is the prior of the next call, which gets the new crawls alone.

    Parameters
    ----------
    history : History
        In either form.
    rate : array_like, shape (n_grid,), 1/time
        Change rates, non-negative, rising.
    prior : array_like, shape (n_grid,) or ``(*history.shape, n_grid)``
        Probabilities up to a factor for each page, non-negative.

    Returns
    -------
    ndarray, shape ``(*history.shape, n_grid)``
        Probabilities, of sum 1 for each page.

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not match; a page whose
        bits are impossible under its prior.

    Notes
    -----
    The plain form is `paperlib.reference.grid_posterior`.

    Examples
    --------
    >>> from paperlib.priors import grid_posterior
    >>> from paperlib.processes import History
    >>> history = History([1.0, 2.0], [True, False])
    >>> grid_posterior(history, [0.1, 0.5, 2.0], [1.0, 1.0, 1.0]).round(3)
    array([0.327, 0.607, 0.066])
    """
    rate, prior = checks.non_negative("rate", rate), checks.non_negative("prior", prior)
    if rate.ndim != 1 or not (np.diff(rate) > 0).all():
        raise ValueError(f"rate must rise along one axis, got {rate}")
    shape = (*history.shape, rate.size)
    if prior.shape not in (shape, rate.shape):
        raise ValueError(
            f"prior must be of shape {rate.shape} or {shape}, got {prior.shape}"
        )
    terms = history.likelihood_terms()
    posterior = np.empty((np.prod(history.shape, dtype=int), rate.size))
    rows = np.ascontiguousarray(prior).reshape(-1, rate.size)
    with threads_for(history.interval.size * rate.size):
        kernels.grid_posteriors(*terms, rate, rows, posterior)
    posterior = posterior.reshape(shape)
    impossible = np.isnan(posterior[..., 0])
    if impossible.any():
        first = tuple(np.argwhere(impossible)[0].tolist())
        raise ValueError(
            "prior must allow what the history has, "
            f"at index {first} it gives it probability 0"
        )
    return posterior


def prior_from_arrivals(batches, start, rate, *, n_crawls, limits, rng=None):
    r"""Learn a prior from pages that arrive batch by batch, beginning with any.

    Simulates a crawler that knows nothing beforehand. The pages of batch k are
    crawled by the prior :math:`\pi_{k-1}` that the batches before have taught:

    .. math:: w_1 = 1 / \mathrm{mode}(\pi_{k-1}), \qquad
              w_{n+1} = 1 / \hat\Delta_n ,

    where :math:`\hat\Delta_n` is the posterior mode after n crawls of the page.
    Then :math:`\pi_k` is learnt from the bits of all pages so far by maximum
    marginal likelihood, `FakeIntervals.learn`. Beyond [grimes08]_, whose prior
    is fitted to pages with known change rates.

    Parameters
    ----------
    batches : sequence of array_like, shape (n_pages,), 1/time
        True change rates of the pages of each batch, non-negative.
    start : FakeIntervals
        The prior for the first batch.
    rate : array_like, shape (n_grid,), 1/time
        The grid of rates of `FakeIntervals.learn`.
    n_crawls : int
        Crawls of each page.
    limits : (float, float), time
        Shortest and longest interval.
    rng : seed or numpy.random.Generator, optional
        Source of randomness. Batch k has the seed ``[*rng, k]`` where `rng` is
        an integer or a list of them, and otherwise a stream of its own.

    Returns
    -------
    learnt : list of FakeIntervals, length n_batches + 1
        `start`, then the prior after each batch.
    history : History, shape (n_pages_in_all,)
        What was crawled, in the order of arrival.

    Raises
    ------
    ValueError
        As `processes.simulate_sequential_history` and `FakeIntervals.learn`.
    ConvergenceError
        As `FakeIntervals.learn`.

    Warns
    -----
    DegeneratePriorWarning
        An interval ended at its bound, as it may with few pages.

    Notes
    -----
    The plain forms are `paperlib.reference.adaptive_intervals` for the crawls
    of a page and ``grid_posterior`` for the likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from paperlib import priors
    >>> rng = np.random.default_rng(11)
    >>> rates = rng.exponential(1 / 20, 100) + rng.exponential(1 / 30, 100)
    >>> learnt, history = priors.prior_from_arrivals(
    ...     [rates[:40], rates[40:]],
    ...     priors.FakeIntervals(1.0, 1.0),
    ...     np.geomspace(1e-3, 2.0, 60),
    ...     n_crawls=3,
    ...     limits=(1.0, 300.0),
    ...     rng=1,
    ... )
    >>> [round(prior.initial_interval) for prior in learnt], history.shape
    ([1, 85, 24], (100,))
    """
    learnt, crawled = [start], []
    for pages, stream in zip(batches, _streams(rng, len(batches)), strict=True):
        prior = learnt[-1]
        history, _ = simulate_sequential_history(
            pages,
            prior.estimate,
            initial=np.clip(prior.initial_interval, *limits),
            limits=limits,
            n_crawls=n_crawls,
            rng=stream,
        )
        crawled.append(history)
        seen = History(
            np.concatenate([batch.interval for batch in crawled]),
            np.concatenate([batch.changed for batch in crawled]),
        )
        learnt.append(FakeIntervals.learn(seen, rate))
    return learnt, seen


def _streams(rng, n):
    """Sources of random numbers: number k depends on `rng` and k alone."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng).spawn(n)
    return [[*np.atleast_1d(rng).tolist(), k] for k in range(n)]
