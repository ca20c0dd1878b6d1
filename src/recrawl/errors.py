"""Errors and warnings of recrawl; the others are in paperlib."""

from typing import Any

from paperlib import errors

__all__ = ["ConvergenceError", "DistrustedAgeWarning", "NoPageError"]


class ConvergenceError(errors.ConvergenceError):
    """A search that did not reach its tolerance.

    Parameters
    ----------
    message : str
        What did not converge, and how much of it.
    last : object
        The last iterate.
    """

    def __init__(self, message: str, last: Any) -> None:
        super().__init__(message)
        self.last = last


class DistrustedAgeWarning(UserWarning):
    """An age or a count contradicts the bit of its crawl, so that the bit is used."""


class NoPageError(LookupError):
    """A slot has no page to crawl: there is none, or limits forbid all of them."""
