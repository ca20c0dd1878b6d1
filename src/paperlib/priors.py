"""What is believed of a page before it has been crawled, and after a few crawls."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy

from paperlib import checks
from paperlib._kernels import priors as kernels
from paperlib._kernels import threads_for
from paperlib.errors import ConvergenceError, DegeneratePriorWarning
from paperlib.estimators import mle
from paperlib.processes import History, join


def population(n_pages, *, law="lognormal", rng=None):
    """Change rates of pages that stand in for the private ones of [grimes08], array of shape (n_pages,), 1/hour.

    Mean times between changes have a median of 15 days, calibrated so that the best first interval is about the 11 days of the paper,
    and are clipped to 2 hours and 1 year. law : "lognormal", of unit deviation of the logarithm, or "log-logistic", of shape 1, whose
    tail is so heavy that without the clip it has no mean. rng : seed or numpy Generator.
    """
    rng = np.random.default_rng(rng)
    if law not in (
        laws := {"lognormal": rng.standard_normal, "log-logistic": rng.logistic}
    ):
        raise ValueError(
            f"law must be one of {', '.join(map(repr, laws))}, got {law!r}"
        )
    return 1 / np.clip(
        15 * 24 * np.exp(laws[law](size=checks.count("n_pages", n_pages))),
        2.0,
        365 * 24,
    )


@dataclass(frozen=True)
class FakeIntervals:
    """A prior as two crawls that never were, one that found a change and one that did not. Section 4.4 of [grimes08].

    With a flat base over rates they induce the law of the sum of two exponential times, of rates `unchanged` and `changed` + `unchanged`
    (derived): density (b (a + b) / a) (1 - exp(-a rate)) exp(-b rate), a = changed, b = unchanged.

    Parameters
    ----------
    changed, unchanged : float, time, positive
        Lengths of the two intervals.
    """

    changed: float
    unchanged: float

    def __post_init__(self):
        for name in ("changed", "unchanged"):
            object.__setattr__(
                self, name, checks.scalar(checks.positive, name, getattr(self, name))
            )

    def density(self, rate):
        """Density of the change rate, time; `rate` is an array, 1/time, non-negative."""
        a, b, rate = self.changed, self.unchanged, checks.non_negative("rate", rate)
        return b * (a + b) / a * -np.expm1(-a * rate) * np.exp(-b * rate)

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
        """Most likely change rate, log(1 + a / b) / a, 1/time: what `mle` says of the two intervals alone."""
        return np.log1p(self.changed / self.unchanged).item() / self.changed

    @property
    def initial_interval(self):
        """When to come back to a page never crawled before, 1 / mode, time."""
        return 1 / self.mode

    def estimate(self, history):
        """Posterior mode of the change rate: `estimators.mle` with the two intervals among the crawls, so that no history is degenerate.

        history : History, either form; returns an array of ``history.shape``, 1/time. Section 4.4 of [grimes08].
        """
        shape = history.shape
        fake = History(
            np.broadcast_to([self.changed, self.unchanged], (*shape, 2)),
            np.broadcast_to([True, False], (*shape, 2)),
        )
        return mle(join(fake, history)).reshape(shape)[()]

    def probabilities(self, period, *, base="period"):
        """The induced law of the mean time between changes on a grid, array of its shape, of sum 1.

        period : array, shape (n_grid,), time, rising. base : "period" or "rate"; what the law is flat in without the two intervals: in the
            period, as in [grimes08], where it has no finite integral without a largest period, or in the rate, as in `density`.
        """
        if base not in ("period", "rate"):
            raise ValueError(f"base must be 'period' or 'rate', got {base!r}")
        rate = 1 / _rising("period", period)
        weight = -np.expm1(-self.changed * rate) * np.exp(
            -self.unchanged * (rate - rate[-1])
        )
        weight *= np.gradient(period) * (rate**2 if base == "rate" else 1.0)
        return weight / weight.sum()

    def distance(self, change_rate, period, *, base="period"):
        """L2 distance of `probabilities` to those of a population of change rates on the same grid, section 4.4 of [grimes08].

        change_rate : array, shape (n_pages,), 1/time, positive, of two pages or more; others as in `probabilities`.
        """
        return np.linalg.norm(
            self.probabilities(period, base=base) - _shares(change_rate, period)
        ).item()

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
        """The two intervals whose induced law is nearest to a population, by `distance`; section 4.4 of [grimes08].

        Parameters
        ----------
        change_rate, period, base : as in `distance`
            Both intervals stay within the grid of periods.
        method : "annealing", simulated annealing as in the paper, twice, which must agree on the distance to 0.1%; or "search", a grid and
            Nelder and Mead's simplex from its best point
        max_iterations : int
        rng : seed or numpy Generator, for annealing

        Warns
        -----
        DegeneratePriorWarning
            An interval ended at its bound, as `changed` does for a population with a heavy tail of periods and base "period": its prior
            is all but exp(-unchanged / period) / period. So do both where no pair is anywhere near the population.

        Raises
        ------
        ValueError
            Fewer than two pages, a rate that is not positive and finite, a grid that does not rise.
        ConvergenceError
            Not within `max_iterations`; `last` holds the two intervals where it stood.
        """
        wanted, period = _shares(change_rate, period), _rising("period", period)

        def losses(logs):
            return np.array(
                [
                    np.linalg.norm(cls(*pair).probabilities(period, base=base) - wanted)
                    for pair in np.exp(logs)
                ]
            )

        bounds = [tuple(np.log(period[[0, -1]]))] * 2
        if method == "annealing":
            streams = np.random.default_rng(rng).spawn(2)
            found, again = (
                scipy.optimize.dual_annealing(
                    lambda logs: losses([logs])[0],
                    bounds,
                    maxiter=checks.count("max_iterations", max_iterations),
                    rng=stream,
                )
                for stream in streams
            )
            converged = abs(found.fun - again.fun) <= 1e-3 * found.fun
        elif method == "search":
            found = _search(losses, bounds, max_iterations)
            converged = found.success
        else:
            raise ValueError(f"method must be 'annealing' or 'search', got {method!r}")
        return cls._found(found, converged, bounds, max_iterations)

    @classmethod
    def learn(cls, history, rate, *, max_iterations=1000):
        """The two intervals under which the histories of a population are most likely: an empirical-Bayes prior, of base "rate".

        Beyond [grimes08]: pages need not have been crawled until their rates are known, one bit of each will do.

        Parameters
        ----------
        history : History, either form, two pages or more
        rate : array, shape (n_grid,), 1/time, positive, rising
            The grid on which rates are integrated over; the intervals stay within the periods that it spans.

        Warns and raises as `fit`.
        """
        rate = _rising("rate", rate)
        if np.prod(history.shape, dtype=int) < 2:
            raise ValueError(
                f"history must hold at least two pages, got shape {history.shape}"
            )
        likelihood = grid_posterior(history, rate, np.ones(rate.size)).reshape(
            -1, rate.size
        )
        width = np.gradient(rate)

        @np.errstate(
            divide="ignore"
        )  # a prior that makes a history all but impossible has a loss of inf
        def losses(logs):
            density = np.array([cls(*pair).density(rate) for pair in np.exp(logs)])
            return -np.log(likelihood @ (density * width).T).sum(axis=0)

        bounds = [tuple(-np.log(rate[[-1, 0]]))] * 2
        found = _search(losses, bounds, max_iterations)
        return cls._found(found, found.success, bounds, max_iterations)

    @classmethod
    def _found(cls, found, converged, bounds, max_iterations):
        prior = cls(*np.exp(found.x))
        if not converged:
            raise ConvergenceError(
                f"no fit within {max_iterations} iterations, last at {prior}", prior
            )
        for name, value, edges in zip(
            ("changed", "unchanged"), found.x, bounds, strict=True
        ):
            if min(abs(value - edges[0]), abs(value - edges[1])) < 1e-3:
                warnings.warn(
                    f"{name} ended at its bound, {getattr(prior, name):.6g}",
                    DegeneratePriorWarning,
                    stacklevel=3,
                )
        return prior


def _search(losses, bounds, max_iterations):
    """Nelder and Mead's simplex from the best point of a grid of logarithms; `losses` takes many points, shape (n_points, 2), at once."""
    checks.count("max_iterations", max_iterations)
    axis = np.linspace(*bounds[0], 20)
    grid = np.array([[(a, b) for b in axis] for a in axis])
    at = np.array([losses(row) for row in grid])
    options = {"xatol": 1e-6, "fatol": 1e-12 * abs(at.min()), "maxiter": max_iterations}
    start = grid[np.unravel_index(at.argmin(), at.shape)]
    return scipy.optimize.minimize(
        lambda logs: losses([logs])[0],
        start,
        method="Nelder-Mead",
        bounds=bounds,
        options=options,
    )


def _rising(name, values):
    values = checks.positive(name, values)
    if values.ndim != 1 or values.size < 2 or not (np.diff(values) > 0).all():
        raise ValueError(
            f"{name} must rise along one axis of at least two points, got {values}"
        )
    return values


def _shares(change_rate, period):
    """Share of the pages nearest to each period of the grid; those beyond its ends count there."""
    change_rate, period = (
        checks.positive("change_rate", change_rate),
        _rising("period", period),
    )
    if change_rate.ndim != 1 or change_rate.size < 2:
        raise ValueError(
            f"change_rate must hold at least two pages, got shape {change_rate.shape}"
        )
    nearest = np.searchsorted(0.5 * (period[1:] + period[:-1]), 1 / change_rate)
    return np.bincount(nearest, minlength=period.size) / change_rate.size


def grid_posterior(history, rate, prior):
    """Posterior probabilities of change rates on a grid, for any prior and many pages at once. Section 4.3 of [grimes08].

    Online: what is returned is the prior of the next call, which gets the new crawls alone.

    Parameters
    ----------
    history : History, either form
    rate : array, shape (n_grid,), 1/time, non-negative, rising
    prior : array, shape (n_grid,) or (*history.shape, n_grid), non-negative
        Probabilities, up to a factor for each page.

    Returns
    -------
    array, shape (*history.shape, n_grid), of sum 1 for each page

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not match; a page whose bits are impossible under its prior.
    """
    rate, prior = checks.non_negative("rate", rate), checks.non_negative("prior", prior)
    if rate.ndim != 1 or not (np.diff(rate) > 0).all():
        raise ValueError(f"rate must rise along one axis, got {rate}")
    shape = (*history.shape, rate.size)
    if prior.shape not in (shape, rate.shape):
        raise ValueError(
            f"prior must be of shape {rate.shape} or {shape}, got {prior.shape}"
        )
    interval, changed, offsets = history.ragged()
    posterior = np.empty(shape)
    rows = np.ascontiguousarray(prior).reshape(-1, rate.size)
    with threads_for(interval.size * rate.size):
        kernels.grid_posteriors(
            interval, changed, offsets, rate, rows, posterior.reshape(-1, rate.size)
        )
    impossible = np.isnan(posterior[..., 0])
    if impossible.any():
        first = tuple(np.argwhere(impossible)[0].tolist())
        raise ValueError(
            f"prior must allow what the history has, at index {first} it gives it probability 0"
        )
    return posterior
