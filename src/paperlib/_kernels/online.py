"""Steps of the online estimators."""

from numba import njit

from paperlib._kernels import ufunc


@ufunc("f8(b1,f8,f8,f8)")
def stochastic_step(changed, estimate, crawl_rate, step):
    """estimate + step (changed (estimate + crawl_rate) - estimate)."""
    return estimate + step * (crawl_rate if changed else -estimate)


@ufunc("f8(f8,f8,f8,f8)")
def counted_rate(n_changed, n, offset, crawl_rate):
    """crawl_rate n_changed / (n + offset - n_changed)."""
    return crawl_rate * n_changed / (n + offset - n_changed)


@ufunc("f8(b1,f8,f8,f8,f8,f8)")
def momentum_step(changed, momentum, estimate, crawl_rate, step, omega):
    """momentum + step (changed (estimate + crawl_rate) - estimate - omega momentum)."""
    return momentum + step * ((crawl_rate if changed else -estimate) - omega * momentum)


@njit(cache=True, error_model="numpy", fastmath=True)
def expm1(x):
    """exp(x) - 1 for x from 0 to 40, to a relative 1e-14; above, some large number. A loop over it becomes vector instructions."""
    y = min(x, 300.0) / 128.0
    e = y * (
        1.0
        + y
        / 2.0
        * (
            1.0
            + y
            / 3.0
            * (
                1.0
                + y
                / 4.0
                * (1.0 + y / 5.0 * (1.0 + y / 6.0 * (1.0 + y / 7.0 * (1.0 + y / 8.0))))
            )
        )
    )
    e *= 2.0 + e  # exp(2 y) - 1, and six times more up to exp(x) - 1
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    e *= 2.0 + e
    return e


@njit(cache=True, error_model="numpy", fastmath=True)
def gamma_update(changed, interval, shape, rate):
    """Take one crawl of each page into its gamma posterior, in place."""
    for i in range(changed.size):
        per_change = rate[i] / shape[i]
        x = min(
            max(interval[i] / per_change, 1e-100), 40.0
        )  # beyond, a change tells nothing
        e = expm1(x)
        seen = x / e
        count = seen * seen * (1.0 + e)
        time = (
            count - seen if x > 1e-3 else x * (0.5 - x / 6.0)
        )  # the difference of small numbers is all rounding
        bit = 1.0 if changed[i] else 0.0
        shape[i] += bit * count
        rate[i] += bit * time * per_change + (1.0 - bit) * interval[i]
