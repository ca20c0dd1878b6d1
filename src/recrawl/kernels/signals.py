"""Maximum likelihood of change rates and of the evidence of signals.

After an interval t with n signals a crawl finds a change with probability
1 - exp(-eta), eta = alpha t + b n, alpha >= 0 and b >= 0. The log-likelihood

    sum over changed log(1 - exp(-eta)) - sum over unchanged eta

is concave in (alpha, b): log(1 - exp(-x)) is concave and eta is linear. A
point is therefore the maximum as soon as the gradient is zero inside, or
points outwards at a bound.

The two bounds are tried first, each of them a problem with one unknown that
`batch.page_root` solves: b = 0 is the history without its signals, alpha = 0
a history whose intervals are the numbers of signals. If the gradient at that
point shows that the other parameter should rise, the maximum is inside, and
Newton's method in two dimensions finds it. A step is shortened so that it
stays inside the bounds (at most 90% of the way to one), and halved until the
likelihood rises by a share of what its gradient promises (Armijo's rule).

A bound at infinity is reached when signals came with changes only: then b is
infinite, crawls with signals hold no more information, and alpha is the estimate of
the crawls without a signal. When intervals and signals are in proportion, the
two unknowns cannot be told apart; the maximum is a line, and its point at b = 0
is returned with infinite variances.

Variances are the inverse of the observed information, which is minus the
matrix of second derivatives. A parameter at a bound counts as known and has
the variance 0.

The kernels draw no random numbers and check nothing.
"""

import math
from collections import namedtuple

import numpy as np
from numba import prange

from recrawl.kernels import compiled, parallel
from recrawl.kernels.batch import MAX_NEWTON_STEPS, MLE, page_root, page_totals

# Share of the predicted rise that a step must reach; the usual one of Armijo's
# rule.
_LEAST_RISE = 1e-4
# Share of the way to a bound that a step may go.
_TO_BOUND = 0.9
# A full step this small leaves an error of its square, below rounding.
_LAST_STEP = 1e-8
# Shorter steps cannot change the parameters: the search has failed.
_SHORTEST = 1e-12
# A determinant below these, relative to aa * bb, is rounding: intervals and
# signals are in proportion. The second is larger because the variances divide
# by it.
_SINGULAR = 1e-12
_UNIDENTIFIED = 1e-10
# A gradient at a bound that is a smaller share of its negative part is rounding:
# the maximum is at the bound, which a search from inside would never reach.
_ZERO = 1e-11
# Added to a singular matrix, relative to its diagonal, so that it can be
# inverted.
_RIDGE = 1e-6

# Log-likelihood, its gradient in alpha and b, and minus its second
# derivatives.
_Score = namedtuple("_Score", "value in_alpha in_b aa ab bb")


@compiled
def _score(alpha, b, t, changed, n):
    """`_Score` of one page at (alpha, b), from its crawls `t, changed, n`."""
    value = in_alpha = in_b = aa = ab = bb = 0.0
    for j in range(t.size):
        eta = alpha * t[j] + b * n[j]
        if changed[j]:
            r = 1.0 / math.expm1(eta)
            value += math.log(-math.expm1(-eta))
            in_alpha += t[j] * r
            in_b += n[j] * r
            curve = r * (1.0 + r)
            aa += t[j] * t[j] * curve
            ab += t[j] * n[j] * curve
            bb += n[j] * n[j] * curve
        else:
            value -= eta
            in_alpha -= t[j]
            in_b -= n[j]
    return _Score(value, in_alpha, in_b, aa, ab, bb)


@compiled
def _newton_step(at):
    """Newton's step in alpha and in b; a singular matrix gets a ridge."""
    aa, bb = at.aa, at.bb
    det = aa * bb - at.ab * at.ab
    if not det > _SINGULAR * aa * bb:
        det = aa * bb * (1.0 + _RIDGE) ** 2 - at.ab * at.ab
        aa *= 1.0 + _RIDGE
        bb *= 1.0 + _RIDGE
    return (
        (bb * at.in_alpha - at.ab * at.in_b) / det,
        (aa * at.in_b - at.ab * at.in_alpha) / det,
    )


@compiled
def _inner_maximum(alpha, b, t, changed, n):
    """Maximum inside the bounds by damped Newton from (alpha, b); or NaN."""
    # rounding error of a sum over all crawls, relative
    rounding = 4e-16 * (t.size + 250)
    at = _score(alpha, b, t, changed, n)
    for _ in range(MAX_NEWTON_STEPS):
        step_a, step_b = _newton_step(at)
        gain = at.in_alpha * step_a + at.in_b * step_b
        size = 1.0
        if step_a < 0.0:
            size = min(size, -_TO_BOUND * alpha / step_a)
        if step_b < 0.0:
            size = min(size, -_TO_BOUND * b / step_b)
        # rounding hides from the likelihood what so small a step does
        small = abs(step_a) <= _LAST_STEP * alpha and abs(step_b) <= _LAST_STEP * b
        if size == 1.0 and small:
            return alpha + step_a, b + step_b
        while True:
            new = _score(alpha + size * step_a, b + size * step_b, t, changed, n)
            least = at.value + _LEAST_RISE * size * gain - rounding * abs(at.value)
            if new.value >= least:
                break
            size *= 0.5
            if size < _SHORTEST:
                return np.nan, np.nan
        alpha += size * step_a
        b += size * step_b
        at = new
    return np.nan, np.nan


@compiled
def _in_proportion(t, n):
    """Whether intervals and signals are in proportion, up to rounding."""
    return (t * n).sum() ** 2 > (1.0 - _SINGULAR) * (t * t).sum() * (n * n).sum()


@compiled
def _maximum(t, changed, n):
    """alpha and b of a page with an unchanged crawl; alpha NaN on failure.

    b is NaN without any signal, inf if signals came with changes only.
    """
    _n, n_with_change, n_without = page_totals(n, changed)
    if n_without == 0.0:
        bare = n == 0.0
        alpha = page_root(MLE, 0.0, t[bare], changed[bare])
        return alpha, np.inf if n_with_change > 0.0 else np.nan
    alpha = page_root(MLE, 0.0, t, changed)
    # in proportion, the gradient in b is 0 but for rounding
    if _in_proportion(t, n):
        return alpha, 0.0
    rise = _score(alpha, 0.0, t, changed, n).in_b if alpha > 0.0 else 0.0
    if not rise > _ZERO * n_without:
        return alpha, 0.0
    guess = min(0.5 * alpha * t.sum() / n.sum(), 1.0)
    # a change without a signal needs alpha > 0
    if n[changed].min() > 0.0:
        only_b = page_root(MLE, 0.0, n, changed)
        t_without = page_totals(t, changed)[2]
        if _score(0.0, only_b, t, changed, n).in_alpha <= _ZERO * t_without:
            return 0.0, only_b
        guess = 0.5 * only_b
    return _inner_maximum(0.5 * alpha, guess, t, changed, n)


@compiled
def _variances(alpha, b, t, changed, n):
    """Variances of alpha and b, not both 0, and their covariance."""
    if alpha == 0.0 and b == np.inf:
        return 0.0, 0.0, 0.0
    if 0.0 <= b < np.inf:
        at = _score(alpha, b, t, changed, n)
    else:
        bare = n == 0.0
        at = _score(alpha, 0.0, t[bare], changed[bare], n[bare])
    det = at.aa * at.bb - at.ab * at.ab
    if alpha == 0.0:
        return 0.0, 1.0 / at.bb, 0.0
    if b == 0.0 and _in_proportion(t, n):
        return np.inf, np.inf, np.inf
    if not 0.0 < b < np.inf:
        return 1.0 / at.aa, 0.0, 0.0
    if det > _UNIDENTIFIED * at.aa * at.bb:
        return at.bb / det, at.aa / det, -at.ab / det
    return np.inf, np.inf, np.inf


@compiled
def _page_rates(t, changed, n, rates, variances):
    """One page of `signal_rates`; a separate function compiles faster."""
    rates[:] = np.nan
    variances[:] = np.nan
    if t.size == 0:
        return
    if changed.all():
        rates[0] = np.inf
        return
    alpha, b = _maximum(t, changed, n)
    rates[0], rates[1] = alpha, b
    if alpha > 0.0 or b > 0.0:
        variances[0], variances[1], variances[2] = _variances(alpha, b, t, changed, n)


@parallel
def signal_rates(interval, changed, n_signals, offsets, rates, variances):
    """Maximum likelihood of alpha >= 0 and b >= 0 for every page.

    interval, changed, n_signals: shape (n_crawls,), the last one float.
    Writes `rates`, shape (n_pages, 2): alpha and b; 0 and 0 for a page that
    never changed, inf and NaN for one that always did, NaN for b without a
    signal, inf for b if signals came with changes only, NaN and NaN without a
    crawl, and NaN for alpha where it was not found. Writes `variances`, shape
    (n_pages, 3): of alpha, of b, and their covariance.
    """
    for i in prange(offsets.size - 1):
        own = slice(offsets[i], offsets[i + 1])
        # copies are writable, whatever came in: one compiled version of each
        # function
        _page_rates(
            interval[own].copy(),
            changed[own].copy(),
            n_signals[own].copy(),
            rates[i],
            variances[i],
        )
