"""Estimates after every crawl, and their errors over runs."""

import copy

import numpy as np

from paperlib import checks
from paperlib.processes import History


def path(estimator, history, *, crawl_rate=None):
    """The estimate after every crawl, array of the shape of ``history.changed``, 1/time.

    Works on a copy: the estimator passed in stays as it was. Pages or runs advance together, one crawl after the other.
    `crawl_rate`, of the same shape, is the rate at which each crawl was made, should it have changed over time.
    """
    estimator = copy.deepcopy(estimator)
    if crawl_rate is not None:
        crawl_rate = checks.positive("crawl_rate", crawl_rate)
        if crawl_rate.shape != history.changed.shape:
            raise ValueError(
                f"crawl_rate must have the shape of changed, {history.changed.shape}, got {crawl_rate.shape}"
            )
    if (
        history.offsets is not None
    ):  # what a shorter page does after its end is not looked at
        here = np.arange(history.n_crawls.max()) < history.n_crawls[:, np.newaxis]

        def dense(values, filler):
            out = np.full(here.shape, filler)
            out[here] = values
            return out

        rate = None if crawl_rate is None else dense(crawl_rate, 1.0)
        return path(
            estimator,
            History(dense(history.interval, 1.0), dense(history.changed, False)),
            crawl_rate=rate,
        )[here]
    out = np.empty((history.changed.shape[-1], *history.shape))
    for k in range(len(out)):
        rate = {} if crawl_rate is None else {"crawl_rate": crawl_rate[..., k]}
        out[k] = estimator.update(
            history.changed[..., k], interval=history.interval[..., k], **rate
        )
    return np.moveaxis(out, 0, -1)


def paths(history, **estimators):
    """`path` of each named online estimator; a function, such as `mle_path`, is called with the history. Dictionary by name."""
    return {
        name: e(history) if callable(e) else path(e, history)
        for name, e in estimators.items()
    }


def snapshots(history, counts, **estimators):
    """Estimates after each of `counts` crawls, dictionary by name of arrays of shape (..., n counts), of a history without offsets.

    As in `paths`, but a function, such as `mle`, is called with each shorter history.
    """
    counts = np.asarray(counts)
    shorter = [
        History(history.interval[..., :n], history.changed[..., :n])
        for n in counts.tolist()
    ]
    return {
        name: np.stack([e(h) for h in shorter], axis=-1)
        if callable(e)
        else path(e, shorter[-1])[..., counts - 1]
        for name, e in estimators.items()
    }


def after(paths, n_crawls):
    """The estimates of all runs after `n_crawls` crawls, for each named array of shape (n_runs, n)."""
    shortest = min(values.shape[-1] for values in paths.values())
    if not 1 <= n_crawls <= shortest:
        raise ValueError(
            f"n_crawls must be from 1 to {shortest}, the number of crawls in a run, got {n_crawls!r}"
        )
    return {name: values[:, n_crawls - 1] for name, values in paths.items()}


def rmse(paths, change_rate):
    """Root mean squared error over runs after every crawl, for each named array of shape (n_runs, n_crawls); 1/time."""
    return {
        name: np.sqrt(np.mean((values - change_rate) ** 2, axis=0))
        for name, values in paths.items()
    }


def summary(paths, change_rate):
    """Bias, standard deviation and RMSE after the last crawl, one line of text per named array of shape (n_runs, n_crawls)."""
    last = {name: values[:, -1] - change_rate for name, values in paths.items()}
    row = "{:<12}{:>10.3g}{:>10.3g}{:>10.3g}".format
    lines = [
        row(name, e.mean(), e.std(), np.sqrt(np.mean(e**2))) for name, e in last.items()
    ]
    return "\n".join(
        ["{:<12}{:>10}{:>10}{:>10}".format("estimator", "bias", "sd", "RMSE"), *lines]
    )
