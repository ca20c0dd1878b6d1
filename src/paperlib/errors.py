"""Errors and warnings of the library."""


class ConvergenceError(RuntimeError):
    """An iteration that did not reach its tolerance."""


class DegenerateHistoryWarning(UserWarning):
    """Pages that changed at no crawl, or at every one: estimates of 0 and inf."""


class DegeneratePriorWarning(UserWarning):
    """A fitted prior at the border of its parameters."""
