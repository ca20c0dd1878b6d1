"""Pages that send noisy signals of their changes, and the quality of the signals.

Section 3 of Busa-Fekete et al. (2025): a change of a page is signalled with a
probability, the recall; signals without a change arrive at a rate of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks

RANGES = {
    "change_rate": np.inf,
    "importance": np.inf,
    "recall": 1.0,
    "false_rate": np.inf,
}


@dataclass(frozen=True, eq=False)
class SignalledPages:
    r"""Parameters of pages, each a number or one number a page.

    Section 3 of Busa-Fekete et al. (2025): changes without a signal have the
    rate alpha, signals the rate gamma, and one signal is as much evidence of a
    change as the time beta.

    .. math:: \alpha = (1 - \lambda)\,\Delta, \qquad
        \gamma = \lambda\Delta + \nu, \qquad
        \beta = \frac{1}{\alpha} \log\frac{\gamma}{\nu}

    Parameters
    ----------
    change_rate : array_like, 1/time
        Delta. All four are kept as read-only arrays of shape (n_pages,).
    importance : array_like
        mu, the rate of requests or any other weight.
    recall : array_like, in [0, 1], default 0
        lambda, the probability that a change is signalled.
    false_rate : array_like, 1/time, default 0
        nu, the rate of signals without a change.

    Examples
    --------
    >>> pages = SignalledPages(0.7, 1.0, recall=[0.5, 0.0], false_rate=0.3)
    >>> pages.gamma, pages.precision.round(3)
    (array([0.65, 0.3 ]), array([0.538, 0.   ]))
    """

    change_rate: NDArray
    importance: NDArray
    recall: NDArray = 0.0  # type: ignore[assignment]
    false_rate: NDArray = 0.0  # type: ignore[assignment]

    def __post_init__(self):
        given = {k: checks.numbers(k, vars(self)[k], 0.0, RANGES[k]) for k in RANGES}
        for name, array in zip(given, checks.broadcast(**given), strict=True):
            array = np.array(array, ndmin=1)
            if array.ndim > 1 or not array.size:
                raise ValueError(
                    "pages must have one axis and at least one page, "
                    f"got shape {array.shape}"
                )
            array.flags.writeable = False
            vars(self)[name] = array  # because the dataclass is frozen

    @classmethod
    def from_precision(
        cls,
        change_rate: ArrayLike,
        importance: ArrayLike,
        *,
        precision: ArrayLike,
        recall: ArrayLike,
    ) -> SignalledPages:
        r"""Pages of given precision, which sets the rate of false signals.

        .. math:: \nu = \lambda\Delta\,(1 - precision) / precision

        Parameters
        ----------
        change_rate, importance, recall : array_like
            As for the class.
        precision : array_like, in [0, 1]
            Probability that a signal reports a change; positive where recall is.

        Returns
        -------
        SignalledPages
        """
        precision = checks.numbers("precision", precision, 0.0, 1.0)
        good = (precision > 0) | (np.asarray(recall) == 0)
        checks.require("precision", precision, "positive where recall is", good)
        odds = (1.0 - precision) / np.where(precision > 0, precision, 1.0)
        pages = cls(change_rate, importance, recall)
        false_rate = pages.recall * pages.change_rate * odds
        return cls(change_rate, importance, recall, false_rate)

    @cached_property
    def alpha(self) -> NDArray:
        """Rate of changes without a signal, shape (n_pages,), 1/time."""
        return (1.0 - self.recall) * self.change_rate

    @cached_property
    def gamma(self) -> NDArray:
        """Rate of signals, true and false, shape (n_pages,), 1/time."""
        return self.recall * self.change_rate + self.false_rate

    @cached_property
    def precision(self) -> NDArray:
        """Probability that a signal reports a change; NaN without signals."""
        with np.errstate(invalid="ignore"):
            return self.recall * self.change_rate / self.gamma

    @cached_property
    def beta(self) -> NDArray:
        """Time that is as much evidence as one signal, shape (n_pages,).

        inf where one signal is more evidence than any time: a sure change, or
        recall 1. 0 where signals are no evidence, and without signals.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            hazard = np.log1p(self.recall * self.change_rate / self.false_rate)
            return np.where(hazard > 0, hazard / self.alpha, 0.0)
