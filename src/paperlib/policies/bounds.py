r"""Bounds of a crawl value from one remembered state: four functions of one page.

A *state* is the value V at some effective time, with its slope there and two numbers,
curve and decay, such that V a further effective time d later is within

    V + slope d (1 - decay d) <= V(iota + d) <= V + slope d + curve d^2 / 2,

or earlier for d < 0 (then the left side holds for decay d >= -1). For the value of
Lemma 4 of Busa-Fekete et al. (2025) the slope is mu alpha exp(-alpha iota) psi(iota).
As psi never falls and grows no faster than iota, the bounds hold with

    curve = mu alpha exp(-alpha iota),    decay = alpha.
"""

import math

from ..freshness import compiled, lemma_4

# Upper bounds are larger by some roundings, so that they hide no tie.
ABOVE = 1 + 1e-14


def evaluate_lemma_4(page, iota):
    """Value, slope, curve and decay of the crawl value of Lemma 4."""
    if iota >= page.stale:
        return page.limit, 0.0, 0.0, page.alpha
    value, psi, _ = lemma_4(
        iota,
        page.change_rate,
        page.false_rate,
        page.alpha,
        page.gamma,
        page.beta,
        page.terms,
    )
    curve = page.importance * page.alpha * math.exp(-page.alpha * iota)
    return min(page.importance * value, page.limit), curve * psi, curve, page.alpha


@compiled
def remember(page, iota, state):
    """Keep the state at an effective time."""
    page.at = iota
    page.value, page.slope, page.curve, page.decay = state


@compiled
def upper(page, iota):
    """Upper bound of the value at an effective time."""
    if iota < page.fresh:
        return 0.0
    d = iota - page.at
    bound = page.value + d * (page.slope + 0.5 * d * page.curve)
    if d != 0.0:
        bound *= ABOVE
    return min(bound, page.limit)


@compiled
def lower(page, iota):
    """Lower bound of the value at an effective time."""
    if iota >= page.stale:
        return page.limit
    if iota < page.fresh:
        return 0.0
    d = iota - page.at
    if page.decay * d < -1.0:
        return 0.0
    rise = d * page.slope * (1.0 - page.decay * d)
    if d > 0.0:
        rise = max(rise, 0.0)  # the value never falls
    return page.value + rise


@compiled
def reach(page, goal):
    """Effective time at which the upper bound is at the goal; -inf if at none."""
    rise = goal - page.value
    root = page.slope**2 + 2.0 * page.curve * rise
    if not root > 0.0:
        return -math.inf
    return page.at + 2.0 * rise / (page.slope + math.sqrt(root))
