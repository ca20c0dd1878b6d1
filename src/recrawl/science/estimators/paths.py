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

__all__ = ["path", "paths", "rmse"]


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
