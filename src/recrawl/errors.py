"""Errors and warnings of the science.

Each is re-exported by the public modules whose functions raise or issue it,
for example `recrawl.science.estimators.ConvergenceError`.
"""

from typing import Any

__all__ = [
    "BoundsWarning",
    "ConvergenceError",
    "DegenerateHistoryWarning",
    "DegeneratePriorWarning",
    "DegenerateSignalsWarning",
    "DistrustedAgeWarning",
    "NoPageError",
    "UnexploredWarning",
    "UnidentifiedWarning",
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

    Examples
    --------
    >>> from recrawl.errors import ConvergenceError
    >>> ConvergenceError("1 of 2 pages did not converge", last=[0.5, 0.1]).last
    [0.5, 0.1]
    """

    def __init__(self, message: str, last: Any) -> None:
        super().__init__(message)
        self.last = last


class DegenerateHistoryWarning(UserWarning):
    """A page never changed, or changed at every crawl: no interior estimate.

    The likelihood has its supremum at a change rate of 0 or inf, which the
    estimators of `recrawl.science.estimators` then return.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import DegenerateHistoryWarning
    >>> warnings.simplefilter("ignore", DegenerateHistoryWarning)
    """


class DegeneratePriorWarning(UserWarning):
    """A parameter of a fitted prior ended at the bound of its search.

    Issued by `recrawl.science.priors.FakeIntervals.fit` and ``learn``.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import DegeneratePriorWarning
    >>> warnings.simplefilter("ignore", DegeneratePriorWarning)
    """


class DegenerateSignalsWarning(UserWarning):
    """The history of a page does not determine the quality of its signals.

    Issued by `recrawl.science.signals.fit`, which says for how many pages, and why.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import DegenerateSignalsWarning
    >>> warnings.simplefilter("ignore", DegenerateSignalsWarning)
    """


class DistrustedAgeWarning(UserWarning):
    """An age or a count contradicts the bit of its crawl, so that the bit is used.

    Issued by `recrawl.science.processes.History`, which says how many there are.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import DistrustedAgeWarning
    >>> warnings.simplefilter("error", DistrustedAgeWarning)
    """


class NoPageError(LookupError):
    """A slot has no page to crawl: there is none, or limits forbid all of them.

    Examples
    --------
    >>> from recrawl.errors import NoPageError
    >>> issubclass(NoPageError, LookupError)
    True
    """


class UnexploredWarning(UserWarning):
    """Pages were given crawl rates although none of them had been crawled yet.

    Issued by the learning policies of `recrawl.science.policies`.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import UnexploredWarning
    >>> warnings.simplefilter("ignore", UnexploredWarning)
    """


class UnidentifiedWarning(UserWarning):
    """The crawls of a page or group do not tell false changes from true ones.

    Issued by `recrawl.science.estimators.false_changes` and
    ``false_change_test``, which say of how many, and return NaN for them.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import UnidentifiedWarning
    >>> warnings.simplefilter("ignore", UnidentifiedWarning)
    """


class BoundsWarning(UserWarning):
    """The bounds given for the change rates exclude some true change rates.

    Issued by the learning policies of `recrawl.science.policies`.

    Examples
    --------
    >>> import warnings
    >>> from recrawl.errors import BoundsWarning
    >>> warnings.simplefilter("ignore", BoundsWarning)
    """
