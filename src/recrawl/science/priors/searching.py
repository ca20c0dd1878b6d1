"""What the fits of priors share: a search for the maximum, and its warnings."""

import warnings
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recrawl.errors import ConvergenceError, DegeneratePriorWarning
from recrawl.types import Function, Values

__all__ = []

# A logarithm this close to its bound has ended there.
_AT_BOUND = 1e-3


def search(losses: Function, bounds: ArrayLike, max_iterations: int) -> Any:
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


def require_convergence(prior: object, converged: bool, max_iterations: int) -> None:
    """Refuse a prior at which the search had not converged."""
    if not converged:
        raise ConvergenceError(
            f"no fit within {max_iterations} iterations, last at {prior}", prior
        )


def warn_at_bound(name: str, value: Values, bounds: ArrayLike, stacklevel: int) -> None:
    """Warn of a logarithm that has ended at its bound."""
    if np.abs(value - np.asarray(bounds)).min() < _AT_BOUND:
        warnings.warn(
            f"{name} ended at its bound, {np.exp(value):.6g}",
            DegeneratePriorWarning,
            stacklevel=stacklevel,
        )
