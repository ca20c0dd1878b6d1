"""Runs of an experiment with several numbers of pages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib import worlds


def window_mean(
    windows: Mapping[Any, Mapping[Any, NDArray]], weights: ArrayLike
) -> dict[Any, dict[Any, NDArray]]:
    """Weigh the freshness in windows of time, run by run.

    Parameters
    ----------
    windows : dict of dict of ndarray
        By number of pages and policy: freshness of shape (n_runs, n_windows), or
        of shape (n_runs,) for a policy whose freshness does not depend on time.
    weights : array_like, shape (n_windows,)
        Weights of the windows, of sum 1.

    Returns
    -------
    dict of dict of ndarray, shape (n_runs,)
        Freshness by number of pages and policy.
    """
    weights = np.asarray(weights)
    means = {}
    for size, policies in windows.items():
        means[size] = dict(policies)
        for name, freshness in policies.items():
            if freshness.ndim > 1:
                means[size][name] = freshness @ weights
    return means


def tables(
    one_run: Callable[[np.random.Generator, int], Any],
    sizes: Sequence[int],
    n_runs: int,
    *,
    seed: int,
) -> Any:
    """Repeat an experiment with several numbers of pages, in one table.

    Parameters
    ----------
    one_run : callable
        Function of a random generator and a number of pages, which returns a
        DataFrame with one row per page.
    sizes : sequence of int
        Numbers of pages.
    n_runs : int
        Runs with every number of pages. Run i depends on `seed`, the number of
        pages and i alone.
    seed : int
        Seed of all random numbers.

    Returns
    -------
    pandas.DataFrame
        All rows, by number of pages ("m"), "run" and "page".
    """
    import pandas as pd

    by_size = {}
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        runs = worlds.replicate(lambda rng, m=size: one_run(rng, m), n_runs, rng=rng)
        by_size[size] = pd.concat(runs, keys=range(n_runs), names=["run", "page"])
    return pd.concat(by_size, names=["m"])
