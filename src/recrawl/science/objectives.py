r"""What a stale copy costs: objectives of crawling, and the value of a crawl.

An objective says what a page costs per unit of time, c(t), when its last crawl
was a time t ago; c(0) = 0, and c never falls. All else follows from c. The
**crawl value** is what a crawl at t saves,

.. math:: V(t) = t\,c(t) - \int_0^t c(s)\,ds = \int_0^t s\,c'(s)\,ds .

It is the utility of Olston and Pandey (2008, eq. 4), for freshness the crawl
value of [www25]_ without signals, and the Whittle index of the page. It is also
the marginal value of a crawl rate: one more crawl lowers the mean cost by V of
the interval where the intervals are equal, and by the mean of V over an
exponential time where crawls are at Poisson times. With crawl rate
:math:`\rho`,

.. math:: J_I(\rho) = \rho \int_0^{1/\rho} c, \qquad
    J_P(\rho) = E\,c(A), \qquad -J_I'(\rho) = V(1/\rho), \qquad
    -J_P'(\rho) = E\,V(A), \qquad A \sim \mathrm{Exp}(\rho) .

Changes are a Poisson process of rate :math:`\Delta`. The
objectives, for a page of importance 1:

===================== ==================================== ====================
objective             cost per unit of time                limit of V
===================== ==================================== ====================
`freshness`           1 while the copy is stale            1 / Delta
`age`                 time since the first change unseen   inf
`delay`               number of changes unseen             inf
`harmonic`            1 + 1/2 + ... + 1/n at n unseen      inf
`age_of_information`  time since the last crawl            inf
`deadline`            rate of changes seen later than tau  Delta tau
===================== ==================================== ====================

`delay` adds up the times from each change to the crawl that sees it; it is also
the number of versions by which the copy lags. Where the limit of V is finite,
pages that change too fast for their importance are never crawled. The costs and
values of a page are its importance times those given here.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from recrawl import checks
from recrawl.kernels import objectives as kernels
from recrawl.types import Values

__all__ = [
    "Objective",
    "age",
    "age_of_information",
    "deadline",
    "delay",
    "freshness",
    "harmonic",
]


# Of sum_k (-1)^(k + 1) x^k / (k k!) and of the same with k (k + 1) k! below
# it, up to x = 4: the last term is below 1e-19, and as terms grow to nine times
# the sum, one digit is lost. From there on exp1 is fast; at 1 it takes longer
# than the whole series.
_SMALL = 4.0
_POWERS = np.arange(1, 35)
_EIN = np.append(0.0, -((-1.0) ** _POWERS) / _POWERS / special.factorial(_POWERS))
_EIN_MEAN = np.append(0.0, _EIN[1:] / (_POWERS + 1))


# Beyond this and its inverse change_rate / crawl_rate hardly matters to freshness.
_TINY = 1e-300


def _early_and_late(x, series, late):
    """A power series for small x, and a function for the others."""
    early, y = x < _SMALL, np.empty_like(x)
    y[early] = np.polynomial.polynomial.polyval(x[early], series)
    y[~early] = late(x[~early])
    return y


def _ein_late(x):
    return np.euler_gamma + np.log(x) + special.exp1(x)


def _ein(x):
    """Ein(x), the integral of (1 - exp(-s)) / s from 0 to x."""
    return _early_and_late(x, _EIN, _ein_late)


def _ein_mean(x):
    """The mean of Ein over (0, x), Ein(x) - excess(x) / x."""
    return _early_and_late(
        x, _EIN_MEAN, lambda x: _ein_late(x) - 1.0 - np.expm1(-x) / x
    )


class Objective:
    r"""Cost of a stale copy, and what follows from it.

    .. math:: c(t), \qquad V(t) = t\,c(t) - \int_0^t c(s)\,ds .

    The module has its instances: `freshness`, `age`, `delay`, `harmonic`,
    `age_of_information` and, for any time tau, ``deadline(tau)``.

    Attributes
    ----------
    name : str
        Its name in this module.
    code : int
        The number by which the kernels know the objective.
    tau : float, time
        The deadline; inf for the others.

    Notes
    -----
    The plain forms are `tests.recrawl.plain.objective_cost` and, by quadrature,
    `tests.recrawl.plain.objective_value`. The relative error of all methods is
    below 1e-11 for change_rate x time from 1e-12 to 1e12. Only `elapsed_at` of
    `freshness` is less precise near its limit, where the value hardly depends
    on the time.

    Examples
    --------
    >>> age.cost(3.0, 0.2).round(4), age.value(3.0, 0.2).round(4)
    (np.float64(0.7441), np.float64(1.4525))
    """

    name = code = None
    tau = np.inf

    def __init__(self) -> None:
        if self.code is None:
            known = ", ".join(__all__[1:])
            raise ValueError(
                "Objective must be one of those in recrawl.science.objectives "
                f"({known}), got {type(self).__name__}()"
            )

    def __repr__(self):
        return f"objectives.{self.name}"

    def __eq__(self, other):
        same = isinstance(other, Objective)
        return same and (self.code, self.tau) == (other.code, other.tau)

    def __hash__(self):
        return hash((self.code, self.tau))

    def cost(self, elapsed: ArrayLike, change_rate: ArrayLike) -> Values:
        r"""Cost per unit of time at an elapsed time, c.

        Parameters
        ----------
        elapsed : array_like, time, non-negative
            Time since the last crawl; inf for never.
        change_rate : array_like, 1/time, non-negative
            Change rates; they broadcast with `elapsed`.

        Returns
        -------
        float or ndarray
            No unit for `freshness`, `delay` and `harmonic`; time for `age` and
            `age_of_information`; 1/time for a deadline.

        Raises
        ------
        ValueError
            Arguments out of range, or of shapes that do not broadcast.
        """
        return self._on(self._cost, elapsed=elapsed, change_rate=change_rate)

    def value(self, elapsed: ArrayLike, change_rate: ArrayLike) -> Values:
        r"""Crawl value of an elapsed time, V: what a crawl saves.

        Parameters
        ----------
        elapsed : array_like, time, non-negative
            Time since the last crawl; inf for never.
        change_rate : array_like, 1/time, non-negative
            Change rates; they broadcast with `elapsed`.

        Returns
        -------
        float or ndarray
            In the unit of `cost` times time.

        Raises
        ------
        ValueError
            Arguments out of range, or of shapes that do not broadcast.
        """
        return self._compiled(kernels.values, elapsed=elapsed, change_rate=change_rate)

    def elapsed_at(self, value: ArrayLike, change_rate: ArrayLike) -> Values:
        r"""Time after a crawl at which the crawl value reaches a value.

        Parameters
        ----------
        value : array_like, non-negative
            In the unit of `value`.
        change_rate : array_like, 1/time, non-negative
            Change rates; they broadcast with `value`.

        Returns
        -------
        float or ndarray
            Time; inf where the value is never reached.

        Raises
        ------
        ValueError
            Arguments out of range, or of shapes that do not broadcast.
        """
        return self._compiled(
            kernels.elapsed_times, value=value, change_rate=change_rate
        )

    def limit(self, change_rate: ArrayLike) -> Values:
        """Crawl value of a page that was never crawled, V(inf).

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            Change rates.

        Returns
        -------
        float or ndarray
            In the unit of `value`. Finite for `freshness` and `deadline`;
            otherwise inf. 0 for a page that never changes, except with
            `age_of_information`.

        Raises
        ------
        ValueError
            Change rates that are negative or not finite.
        """
        return self.value(np.inf, change_rate)

    def interval_cost(self, change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
        r"""Mean cost under crawls at equal intervals, J_I.

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            Change rates; they broadcast with `crawl_rate`.
        crawl_rate : array_like, 1/time, non-negative
            Crawl rates; at 0 the cost is that of a page never crawled.

        Returns
        -------
        float or ndarray
            In the unit of `cost`.

        Raises
        ------
        ValueError
            Arguments out of range, or of shapes that do not broadcast.
        """
        return self._on(
            self._interval_cost, crawl_rate=crawl_rate, change_rate=change_rate
        )

    def poisson_cost(self, change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
        r"""Mean cost under crawls at Poisson times, J_P.

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            Change rates; they broadcast with `crawl_rate`.
        crawl_rate : array_like, 1/time, non-negative
            Crawl rates; at 0 the cost is that of a page never crawled.

        Returns
        -------
        float or ndarray
            In the unit of `cost`.

        Raises
        ------
        ValueError
            Arguments out of range, or of shapes that do not broadcast.
        """
        return self._on(
            self._poisson_cost, crawl_rate=crawl_rate, change_rate=change_rate
        )

    def poisson_value(self, change_rate: ArrayLike, crawl_rate: ArrayLike) -> Values:
        r"""Marginal value of the rate of crawls at Poisson times, E V(A).

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            Change rates; they broadcast with `crawl_rate`.
        crawl_rate : array_like, 1/time, non-negative
            Crawl rates; at 0 the result is `limit`.

        Returns
        -------
        float or ndarray
            In the unit of `value`.

        Raises
        ------
        ValueError
            Arguments out of range, or of shapes that do not broadcast.
        """
        return self._compiled(
            kernels.poisson_values, crawl_rate=crawl_rate, change_rate=change_rate
        )

    def _compiled(self, kernel, **state):
        first, change_rate = _checked(**state)
        with np.errstate(all="ignore"):  # kernels may divide on both branches
            return kernel(self.code, change_rate, self.tau, first)

    def _on(self, formula, **state):
        """A formula, where pages change; 0 where there is nothing to miss."""
        first, change_rate = _checked(**state)
        with np.errstate(all="ignore"):  # formulas may divide on both branches
            cost = formula(first, change_rate)
        return np.where(change_rate > 0, cost, 0.0)[()]


class _Freshness(Objective):
    name = "freshness"
    code = kernels.FRESHNESS

    def _cost(self, t, d):
        return -np.expm1(-d * t)

    def _interval_cost(self, p, d):
        x = np.clip(d / p, _TINY, 1.0 / _TINY)  # 0 / 0 and inf / inf are no numbers
        return kernels.excesses(x) / x

    def _poisson_cost(self, p, d):
        return d / (p + d)


class _Age(Objective):
    name = "age"
    code = kernels.AGE

    def _cost(self, t, d):
        return kernels.excesses(d * t) / d

    def _interval_cost(self, p, d):
        # at most half the interval, also where the rest is beyond floating point
        return np.fmin(0.5 / p, kernels.integrals(d / p) * p / d / d)

    def _poisson_cost(self, p, d):
        return d / p / (p + d)


class _Delay(Objective):
    name = "delay"
    code = kernels.DELAY

    def _cost(self, t, d):
        return d * t

    def _interval_cost(self, p, d):
        return 0.5 * d / p

    def _poisson_cost(self, p, d):
        return d / p


class _Harmonic(Objective):
    name = "harmonic"
    code = kernels.HARMONIC

    def _cost(self, t, d):
        return _ein(d * t)

    def _interval_cost(self, p, d):
        return _ein_mean(d / p)

    def _poisson_cost(self, p, d):
        return np.log1p(d / p)


class _AgeOfInformation(_Delay):
    """That of `delay` at change rate 1, whatever the change rate is."""

    name = "age_of_information"
    code = kernels.AGE_OF_INFORMATION

    def _on(self, formula, **state):
        first, change_rate = _checked(**state)
        with np.errstate(divide="ignore"):
            return (formula(first, 1.0) + 0.0 * change_rate)[()]


class deadline(Objective):
    r"""Rate of the changes that a crawl sees later than a time tau.

    .. math:: c(t) = \Delta\, [t > \tau]

    Parameters
    ----------
    tau : float, time, positive
        The time allowed.

    Raises
    ------
    ValueError
        A time that is not positive and finite.

    Examples
    --------
    >>> deadline(0.5).poisson_cost(change_rate=1.0, crawl_rate=4.0).round(4)
    np.float64(0.1353)
    """

    name = "deadline"
    code = kernels.DEADLINE

    def __init__(self, tau: float) -> None:
        self.tau = checks.positive_number("tau", tau)

    def __repr__(self):
        return f"objectives.deadline({self.tau!r})"

    def _cost(self, t, d):
        return d * (t > self.tau)

    def _interval_cost(self, p, d):
        return d * np.maximum(0.0, 1.0 - self.tau * p)

    def _poisson_cost(self, p, d):
        return d * np.exp(-p * self.tau)


freshness = _Freshness()
age = _Age()
delay = _Delay()
harmonic = _Harmonic()
age_of_information = _AgeOfInformation()


def _checked(**arguments):
    """Arguments that are not negative, broadcast; rates are finite, too."""
    for name, value in arguments.items():
        if name.endswith("rate"):
            arguments[name] = checks.non_negative(name, value)
        else:
            arguments[name] = checks.non_negative_or_inf(name, value)
    return checks.broadcast(**arguments)
