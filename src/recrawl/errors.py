"""Errors and warnings."""

from typing import Any

__all__ = [
    "ArgumentError",
    "ConvergenceError",
    "DegenerateHistoryWarning",
    "DistrustedAgeWarning",
    "NoPageError",
]


class ArgumentError(ValueError):
    """An argument breaks a rule. The command names the option that sets it.

    Parameters
    ----------
    argument : str
        Name of the argument.
    rule : str
        The rest of the sentence, such as "must be positive, got -1".

    Examples
    --------
    >>> print(ArgumentError("bandwidth", "must be positive, got -1"))
    bandwidth must be positive, got -1
    """

    def __init__(self, argument: str, rule: str) -> None:
        super().__init__(argument, rule)  # both, for pickle
        self.argument, self.rule = argument, rule

    def __str__(self) -> str:
        return f"{self.argument} {self.rule}"


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
