"""What a log itself says of the probability that a copy is still fresh."""

from dataclasses import dataclass

import numpy as np

from paperlib import checks

__all__ = ["Calibration"]


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Measured probability that a page is unchanged, by changes expected.

    If changes were Poisson it would be exp(-x) at x = change_rate x elapsed
    time; real changes cluster, and rates are estimated. Between the values of
    x it is interpolated, from 1 at 0; beyond the last one it stays as it is
    there.

    Parameters
    ----------
    x : array_like, shape (n,)
        Changes that the estimated rate expects, ascending, non-negative.
    unchanged : array_like, shape (n,)
        Share of pages that had not changed there, in [0, 1].

    Raises
    ------
    ValueError
        Arrays that are empty or not of one shape, or values out of range.

    Examples
    --------
    >>> measured = Calibration([1.0, 3.0], [0.5, 0.2])
    >>> measured.freshness([1.0, 1.0, 1.0], [1.0, 0.5, 0.0])
    array([0.75  , 0.5875, 0.    ])
    """

    x: np.ndarray
    unchanged: np.ndarray

    def __post_init__(self):
        x = checks.non_negative("x", self.x)
        unchanged = checks.share("unchanged", self.unchanged)
        if not (x.ndim == 1 and x.size and x.shape == unchanged.shape):
            raise ValueError(
                "x and unchanged must be lists of the same length, at least 1, "
                f"got shapes {x.shape} and {unchanged.shape}"
            )
        rises = np.append(True, np.diff(x) > 0)
        checks.require("x", x, "above the one before", rises)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "unchanged", unchanged)

    def freshness(self, change_rate, crawl_rate):
        r"""Expected freshness under crawls at equal intervals.

        .. math:: \frac{1}{X} \int_0^X u(x)\,dx, \qquad X = \Delta / \rho .

        Parameters
        ----------
        change_rate : array_like, 1/time, non-negative
            Estimated change rates.
        crawl_rate : array_like, 1/time, non-negative
            Crawl rates; they broadcast with `change_rate`.

        Returns
        -------
        float or ndarray
            In [0, 1]. As in `freshness.interval`, a page that is never crawled
            has 0, and one that never changes 1.

        Raises
        ------
        ValueError
            Rates that are negative or not finite, or that do not broadcast.
        """
        change_rate, crawl_rate = checks.broadcast(
            change_rate=checks.non_negative("change_rate", change_rate),
            crawl_rate=checks.non_negative("crawl_rate", crawl_rate),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            until = np.where(change_rate > 0, change_rate / crawl_rate, 0.0)
        # The integral of a piecewise linear function: trapezoids up to the
        # last knot before the end, and one more from there.
        x, u = self.x, self.unchanged
        if x[0] > 0:
            x, u = np.append(0.0, x), np.append(1.0, u)
        area = np.append(0.0, np.cumsum(np.diff(x) * (u[1:] + u[:-1]) / 2))
        knot = np.searchsorted(x, until, side="right") - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            last = (until - x[knot]) * (u[knot] + np.interp(until, x, u)) / 2
            mean = (area[knot] + last) / until
        mean = np.where(until > 0, mean, 1.0)
        return np.where(until < np.inf, mean, 0.0)[()]

    def to_dict(self):
        """As JSON can hold it.

        Returns
        -------
        dict of list
            Arguments of `Calibration`.
        """
        return {"x": self.x.tolist(), "unchanged": self.unchanged.tolist()}

    @classmethod
    def from_dict(cls, values):
        """From what `to_dict` returned.

        Parameters
        ----------
        values : dict of list
            Arguments of `Calibration`; other keys are ignored.

        Returns
        -------
        Calibration
            The same.
        """
        return cls(values["x"], values["unchanged"])
