"""Errors and warnings of recrawl; the others are in paperlib."""

__all__ = ["DistrustedAgeWarning", "NoPageError"]


class DistrustedAgeWarning(UserWarning):
    """An age or a count contradicts the bit of its crawl, so that the bit is used."""


class NoPageError(LookupError):
    """A slot has no page to crawl: there is none, or limits forbid all of them."""
