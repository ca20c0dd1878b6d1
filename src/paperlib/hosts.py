"""Limits of hosts."""

from collections.abc import Mapping
from numbers import Real

import numpy as np


def _within_limits(spend, bandwidth, member, limit):
    """Which hosts stay below their limits, and what spend(those hosts, the bandwidth that others leave) gives: rates, multiplier.

    Exact: what a host loses when it is taken out goes to the others, so that the multiplier falls from round to round and every page
    asks for more. A host once above its limit would thus stay above it: at its limit, bandwidth is worth more there than elsewhere.
    """
    within = np.ones(limit.size, dtype=bool)
    while True:
        rate, multiplier = spend(
            within, max(bandwidth - limit[~within].sum(), 0.0)
        )  # never below but for rounding
        above = within & (np.bincount(member, rate) > limit)
        if not above.any():
            return within, rate, multiplier
        within &= ~above


def _host_limits(labels, host_limit):
    """The limit of each of the labels; inf for a host without."""
    named = isinstance(host_limit, Mapping)
    for label, value in host_limit.items() if named else [(None, host_limit)]:
        if not (isinstance(value, Real) and value >= 0):
            where = f" for host {label!r}" if named else ""
            raise ValueError(
                f"host_limit must be a non-negative number, or a mapping from host to such, got {value!r}{where}"
            )
    if not named:
        return np.full(labels.size, float(host_limit))
    labels = labels.tolist()
    unknown = list(host_limit.keys() - set(labels))
    if unknown:
        raise ValueError(
            f"host_limit must name hosts that have pages, got {len(unknown)} without: {sorted(unknown, key=str)[:5]}"
        )
    return np.array([float(host_limit.get(label, np.inf)) for label in labels])


def _hosts(host, host_limit, n_pages):
    """The number of each page's host, and the limit of each host."""
    host = np.zeros(n_pages, dtype=np.int64) if host is None else np.asarray(host)
    if host.shape != (n_pages,):
        raise ValueError(
            f"host must have one label for each of {n_pages} pages, got shape {host.shape}"
        )
    labels, member = np.unique(host, return_inverse=True)
    limit = _host_limits(labels, host_limit)
    if not (limit > 0).all():
        raise ValueError(f"host_limit must be positive, got {limit.min().item()!r}")
    return member, limit
