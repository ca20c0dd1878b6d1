"""Posterior probabilities of change rates on a grid, for any prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import priors as kernels
from recrawl.kernels import threads_for
from recrawl.science.processes import History
from recrawl.types import Array

__all__ = ["grid_posterior"]


def grid_posterior(history: History, rate: ArrayLike, prior: ArrayLike) -> Array:
    r"""Posterior probabilities of change rates on a grid, for any prior.

    .. math:: P(\Delta \mid \mathrm{bits}) \propto P(\Delta)
        \prod_\mathrm{changed} (1 - e^{-\Delta w_n})
        \prod_\mathrm{unchanged} e^{-\Delta w_n}

    for each page; section 4.3 of [grimes08]_. Known ages and counts enter as
    in `History.likelihood_terms`. It can be used online: what is returned is
    the prior of the next call, which gets the new crawls alone.

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
    The plain form is `tests.plain.grid_posterior`.

    Examples
    --------
    >>> from recrawl.science.priors import grid_posterior
    >>> from recrawl.science.processes import History
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
