"""One kind of progress bar for all steps that may take long."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

__all__ = ["bar"]


def bar(iterable: Iterable[Any] | None = None, **options: Any) -> Any:
    """Progress bar, in a terminal only, of a step of more than two seconds.

    Parameters
    ----------
    iterable : iterable, optional
        What the step goes through.
    **options
        Of tqdm, such as ``unit`` and ``desc``; ``total`` without an iterable.

    Returns
    -------
    tqdm
        An iterable, or a context manager whose ``update(n)`` adds finished
        units.

    Examples
    --------
    >>> sum(bar([1, 2, 3], unit=" files"))
    6
    """
    return tqdm(iterable, delay=2, disable=None, leave=False, **options)
