"""Limits of hosts: how a host saves up crawls.

Every host has a bucket of tokens; a crawl takes one, and one comes every `spacing`.
The pages of a host can be crawled while it has a token. The bucket is stored as
`full_at`, the time at which it is full again.
"""

import numpy as np

from recrawl.kernels import compiled, fields

# Tokens that a host can save up. With one, a token that comes between two
# slots would lose the time until the next slot.
_BURST = 2

HOST = np.dtype(fields("f8", "spacing full_at"))


@compiled
def free_at(host):
    """The time from which a host has a token; inf for one that allows no crawl."""
    if host.spacing == np.inf:
        return np.inf
    return host.full_at - (_BURST - 1) * host.spacing


@compiled
def waits(host, t):
    """Whether a host has no token at time t."""
    return free_at(host) > t


@compiled
def spend_token(host, t):
    """Take one token of a host for a crawl at time t."""
    host.full_at = max(host.full_at, t) + host.spacing
