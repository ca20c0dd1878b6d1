"""Errors and warnings of the library."""


class ArgumentError(ValueError):
    """An argument breaks a rule. A command can name the option that sets it.

    Parameters
    ----------
    argument : str
        Name of the argument.
    rule : str
        The rest of the message, such as "must be positive, got -1".

    Examples
    --------
    >>> print(ArgumentError("bandwidth", "must be positive, got -1"))
    bandwidth must be positive, got -1
    """

    def __init__(self, argument: str, rule: str) -> None:
        super().__init__(argument, rule)  # pickle needs both
        self.argument = argument
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.argument} {self.rule}"


class ConvergenceError(RuntimeError):
    """An iteration that did not reach its tolerance."""


class DegenerateHistoryWarning(UserWarning):
    """Pages that changed at no crawl or at every crawl have estimates of 0 or inf."""


class DegeneratePriorWarning(UserWarning):
    """A parameter of a fitted prior is at its bound."""
