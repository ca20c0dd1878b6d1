"""Estimates after every crawl, and their errors over runs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.science.estimators.online import OnlineEstimator
from recrawl.science.processes import History
from recrawl.types import Array, ByName

__all__ = ["after", "path", "paths", "rmse", "snapshots", "summary"]


def path(
    estimator: OnlineEstimator, history: History, *, crawl_rate: ArrayLike | None = None
) -> Array:
    """Estimate of an online estimator after every crawl.

    Pages or runs advance together, one crawl after the other.

    Parameters
    ----------
    estimator : OnlineEstimator
        Its copy is updated; the estimator itself stays as it is.
    history : History
        In either form; its ages and counts are for an estimator whose
        ``takes_ages`` is true.
    crawl_rate : array_like, shape of ``history.changed``, 1/time, optional
        The rate at which each crawl was made, if it changed over time.

    Returns
    -------
    ndarray, shape of ``history.changed``
        Estimates, 1/time.

    Raises
    ------
    ValueError
        Crawl rates of another shape, or not positive and finite.

    Examples
    --------
    >>> from recrawl.science.estimators import LLN, path
    >>> from recrawl.science.processes import History
    >>> history = History([0.1, 0.5, 0.2], [True, False, True])
    >>> path(LLN(crawl_rate=3.0), history)
    array([3. , 1.5, 3. ])
    """
    checks.instance("history", history, History)
    shape = history.changed.shape
    arrays = {"changed": history.changed, "interval": history.interval}
    if getattr(estimator, "takes_ages", False):  # any object that has `update`
        arrays = history._arrays
    if crawl_rate is not None:
        crawl_rate = checks.positive("crawl_rate", crawl_rate)
        if crawl_rate.shape != shape:
            raise ValueError(
                f"crawl_rate must have the shape of changed, {shape}, "
                f"got {crawl_rate.shape}"
            )
        arrays["crawl_rate"] = crawl_rate
    estimator = copy.deepcopy(estimator)
    if history.offsets is None:
        return _estimates(estimator, **arrays)
    # a shorter page is continued with ones, whose estimates are then dropped; an age
    # of one and a count of one agree with an interval of one
    here = np.arange(history.n_crawls.max()) < history.n_crawls[:, np.newaxis]
    for name, values in arrays.items():
        arrays[name] = np.ones(here.shape, values.dtype)
        arrays[name][here] = values
    return _estimates(estimator, **arrays)[here]


def _estimates(estimator, changed, **arrays):
    """Update with one crawl of all pages after the other; time is the last axis."""
    out = np.empty((changed.shape[-1], *changed.shape[:-1]))
    for k in range(len(out)):
        column = {name: values[..., k] for name, values in arrays.items()}
        out[k] = estimator.update(changed[..., k], **column)
    return np.moveaxis(out, 0, -1)


def paths(history: History, **estimators: Any) -> ByName:
    """Estimates after every crawl, for each named estimator.

    Parameters
    ----------
    history : History
        In either form.
    **estimators : OnlineEstimator or callable
        `path` is taken of an online estimator; a function, such as
        `mle_path`, is called with the history.

    Returns
    -------
    dict of str to ndarray, shape of ``history.changed``
        Estimates by name, 1/time.

    Examples
    --------
    >>> from recrawl.science.estimators import LLN, mle_path, paths
    >>> from recrawl.science.processes import History
    >>> history = History([0.5, 0.5, 0.5], [False, True, False])
    >>> found = paths(history, LLN=LLN(crawl_rate=2.0), MLE=mle_path)
    >>> found["LLN"].round(3), found["MLE"].round(3)
    (array([0.   , 1.   , 0.667]), array([0.   , 1.386, 0.811]))
    """
    return {
        name: e(history) if callable(e) else path(e, history)
        for name, e in estimators.items()
    }


def snapshots(history: History, counts: ArrayLike, **estimators: Any) -> ByName:
    """Estimates after some numbers of crawls, for each named estimator.

    Parameters
    ----------
    history : History
        Without offsets.
    counts : sequence of int
        Numbers of crawls, rising, at most those of `history`.
    **estimators : OnlineEstimator or callable
        `path` is taken of an online estimator; a function, such as `mle`, is
        called with each shorter history.

    Returns
    -------
    dict of str to ndarray, shape ``(*history.shape, n_counts)``
        Estimates by name, 1/time.

    Raises
    ------
    ValueError
        A history in the ragged form; numbers of crawls that do not rise, or are
        out of range.

    Examples
    --------
    >>> from recrawl.science.estimators import LLN, naive, snapshots
    >>> from recrawl.science.processes import History
    >>> history = History([0.5, 0.5, 0.5], [False, True, False])
    >>> snapshots(history, [2, 3], LLN=LLN(2.0), naive=naive)["LLN"].round(3)
    array([1.   , 0.667])
    """
    counts = np.asarray(counts)
    if counts.ndim != 1 or not counts.size or (np.diff(counts) <= 0).any():
        raise ValueError(f"counts must be numbers that rise, got {counts.tolist()}")
    shorter = [history.prefix(n) for n in counts.tolist()]
    return {
        name: np.stack([e(h) for h in shorter], axis=-1)
        if callable(e)
        else path(e, shorter[-1])[..., counts - 1]
        for name, e in estimators.items()
    }


def after(paths: ByName, n_crawls: int) -> ByName:
    """Estimates of all runs after a number of crawls.

    Parameters
    ----------
    paths : dict of str to ndarray, shape (n_runs, n_crawls)
        Estimates after every crawl by name, as `paths` gives them.
    n_crawls : int
        From 1 to the length of the shortest path.

    Returns
    -------
    dict of str to ndarray, shape (n_runs,)
        Estimates by name.

    Raises
    ------
    ValueError
        A number of crawls that some path does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import after
    >>> after({"LLN": np.array([[3.0, 1.5], [0.0, 1.0]])}, 2)
    {'LLN': array([1.5, 1. ])}
    """
    shortest = min(values.shape[-1] for values in paths.values())
    if not 1 <= n_crawls <= shortest:
        raise ValueError(
            f"n_crawls must be from 1 to {shortest}, the number of crawls in a run, "
            f"got {n_crawls!r}"
        )
    return {name: values[:, n_crawls - 1] for name, values in paths.items()}


def rmse(paths: ByName, change_rate: float) -> ByName:
    r"""Root mean squared error over runs after every crawl.

    .. math:: \sqrt{\mathrm{mean}_r\,(\hat\Delta_{r, n} - \Delta)^2}

    Parameters
    ----------
    paths : dict of str to ndarray, shape (n_runs, n_crawls)
        Estimates after every crawl by name, as `paths` gives them, 1/time.
    change_rate : float, 1/time
        The true change rate.

    Returns
    -------
    dict of str to ndarray, shape (n_crawls,)
        Root mean squared errors by name, 1/time.

    Raises
    ------
    ValueError
        `change_rate` is not one number, negative, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import rmse
    >>> rmse({"LLN": np.array([[4.0, 2.0], [0.0, 2.0]])}, 1.0)["LLN"].round(3)
    array([2.236, 1.   ])
    """
    change_rate = checks.scalar(checks.non_negative, "change_rate", change_rate)
    return {
        name: np.sqrt(np.mean((values - change_rate) ** 2, axis=0))
        for name, values in paths.items()
    }


def summary(paths: ByName, change_rate: float) -> str:
    """Table of the errors after the last crawl.

    Parameters
    ----------
    paths : dict of str to ndarray, shape (n_runs, n_crawls)
        Estimates after every crawl by name, as `paths` gives them, 1/time.
    change_rate : float, 1/time
        The true change rate.

    Returns
    -------
    str
        Bias, standard deviation and root mean squared error over the runs,
        one line per name.

    Raises
    ------
    ValueError
        `change_rate` is not one number, negative, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.science.estimators import summary
    >>> print(summary({"LLN": np.array([[4.0, 2.0], [0.0, 3.0]])}, 1.0))
    estimator         bias        sd      RMSE
    LLN                1.5       0.5      1.58
    """
    change_rate = checks.scalar(checks.non_negative, "change_rate", change_rate)
    rows = [("estimator", "bias", "sd", "RMSE")]
    for name, values in paths.items():
        error = values[:, -1] - change_rate
        numbers = error.mean(), error.std(), np.sqrt(np.mean(error**2))
        rows.append((name, *(f"{number:.3g}" for number in numbers)))
    return "\n".join("{:<12}{:>10}{:>10}{:>10}".format(*row) for row in rows)
