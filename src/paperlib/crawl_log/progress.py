"""One kind of progress bar for all steps that may take long."""

from tqdm import tqdm

__all__ = ["bar"]


def bar(total, **options):
    """Progress bar, in a terminal only, of a step of more than two seconds.

    Parameters
    ----------
    total : int
        Number of units of the whole step.
    **options
        Of tqdm, such as ``unit`` and ``desc``.

    Returns
    -------
    tqdm
        A context manager; its ``update(n)`` adds finished units.

    Examples
    --------
    >>> with bar(3, unit=" files") as files:
    ...     for _ in range(3):
    ...         _ = files.update()
    >>> files.n
    3
    """
    return tqdm(total=total, **{"delay": 2, "disable": None, "leave": False} | options)
