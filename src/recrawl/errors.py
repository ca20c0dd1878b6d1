"""Errors and warnings of the science."""

from typing import Any

__all__ = [
    "ConvergenceError",
    "DegenerateHistoryWarning",
    "DistrustedAgeWarning",
    "NoPageError",
]


class ConvergenceError(RuntimeError):
    """A numerical solver did not reach its tolerance.

    Parameters
    ----------
    message : str
        What did not converge, and how much of it.
    last : object
        The last iterate of the solver, kept as the attribute ``last``; an
        array of estimates has NaN where there is none.
    """

    def __init__(self, message: str, last: Any) -> None:
        super().__init__(message)
        self.last = last


class DegenerateHistoryWarning(UserWarning):
    """A page never changed, or changed at every crawl: no interior estimate.

    The likelihood has its supremum at a change rate of 0 or inf, which the
    estimators then return.
    """


class DistrustedAgeWarning(UserWarning):
    """An age or a count contradicts the bit of its crawl, so that the bit is used."""


class NoPageError(LookupError):
    """A slot has no page to crawl: there is none, or limits forbid all of them."""
