"""Checks of arguments at the public edge of the library.

Every check takes the name of an argument and its value, returns the value in
the form that the library computes with, and raises an `ArgumentError` that names
the rule and the first value that breaks it, with its index. Behind the public
functions nothing is checked again.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ArgumentError
from recrawl.types import Array, Bits

__all__ = [
    "bits",
    "broadcast",
    "count",
    "counts",
    "finite",
    "for_pages",
    "non_negative",
    "non_negative_or_inf",
    "numbers",
    "one_of",
    "positive",
    "positive_number",
    "probability",
    "require",
    "scalar",
    "share",
]


def require(name: str, array: Array, rule: str, good: Bits) -> None:
    """Raise unless an array is good everywhere.

    Parameters
    ----------
    name : str
        The argument, for the message.
    array : ndarray
        Its value.
    rule : str
        What ends the sentence "`name` must be".
    good : bool ndarray
        Whether each entry keeps the rule, in the shape of `array`.

    Raises
    ------
    ArgumentError
        Naming the first entry that is not good, and its index.

    Examples
    --------
    >>> rate = np.array([1.0, -2.0])
    >>> require("rate", rate, "non-negative", rate >= 0)
    Traceback (most recent call last):
        ...
    recrawl.errors.ArgumentError: rate must be non-negative, got -2.0 at index (1,)
    """
    if not good.all():
        bad = tuple(np.argwhere(~good)[0].tolist())
        where = f" at index {bad}" if bad else ""
        raise ArgumentError(name, f"must be {rule}, got {array.item(*bad)!r}{where}")


def numbers(name: str, value: ArrayLike, rule: str = "numbers") -> Array:
    """`value` as a float array; entries may be NaN.

    Dates, durations and strings are not numbers; a mask would be lost.
    """
    try:
        given = np.asarray(value)
        if given.dtype.kind in "mMcSU" or np.ma.is_masked(value):
            raise TypeError
        return given.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):  # an int may be too large
        raise ArgumentError(name, f"must be {rule}, got {value!r}") from None


def _numbers(name, value, rule, within):
    """`value` as a float array whose entries are all `within` an interval."""
    array = numbers(name, value, rule)
    # The extremes decide: two passes and no temporary array. NaN passes through min
    # and max, and no comparison with it is true.
    if array.size and not (within(array.min()) and within(array.max())):
        given = np.asarray(value)  # None is shown as it was given, not as NaN
        shown = given if given.dtype == object else array
        require(name, shown, rule, within(array))
    return array


def _all(rule, within):
    """A check that all numbers are within an interval."""
    return functools.partial(_numbers, rule=rule, within=within)


positive = _all("positive and finite", lambda x: (x > 0) & (x < np.inf))
non_negative = _all("non-negative and finite", lambda x: (x >= 0) & (x < np.inf))
non_negative_or_inf = _all("non-negative", lambda x: x >= 0)
finite = _all("finite", np.isfinite)
share = _all("in [0, 1]", lambda x: (x >= 0) & (x <= 1))
_open_share = _all("strictly between 0 and 1", lambda x: (x > 0) & (x < 1))


def scalar(
    check: Callable[[str, ArrayLike], Array], name: str, value: ArrayLike
) -> float:
    """`value` as a float; one number that passes `check`."""
    array = check(name, value)
    if array.ndim:
        raise ArgumentError(name, f"must be a single number, got shape {array.shape}")
    return array.item()


positive_number = functools.partial(scalar, positive)
probability = functools.partial(scalar, _open_share)


def count(name: str, value: object) -> int:
    """`value` as a positive int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(name, f"must be a positive integer, got {value!r}")
    return int(value)


def one_of(name: str, value: object, choices: Iterable[Any]) -> None:
    """Raise unless `value` is one of the choices."""
    choices = list(choices)
    if value not in choices:
        known = " or ".join(", ".join(map(repr, choices)).rsplit(", ", 1))
        raise ArgumentError(name, f"must be {known}, got {value!r}")


def counts(name: str, value: ArrayLike) -> Array:
    """`value` as `numbers`; all entries are whole and non-negative, or NaN."""
    array = numbers(name, value)
    whole = np.isnan(array) | (
        (array >= 0) & (array < np.inf) & (array == np.floor(array))
    )
    require(name, array, "a whole number, at least 0, or NaN", whole)
    return array


def bits(name: str, value: ArrayLike) -> Bits:
    """`value` as a boolean array; booleans, or numbers that are 0 or 1."""
    array = np.asarray(value)
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iuf":
        raise ArgumentError(name, f"must be boolean or 0/1, got dtype {array.dtype}")
    require(name, array, "boolean or 0/1", (array == 0) | (array == 1))
    return array.astype(bool)


def for_pages(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """`value`, one or one for each page, in the shape of the pages."""
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        rule = f"must be one value, or one for each page, shape {shape}"
        raise ArgumentError(name, f"{rule}, got shape {np.shape(value)}") from None


def broadcast(**arrays: Any) -> Sequence[NDArray[Any]]:
    """The named arrays, broadcast against each other, in a tuple or list."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(
            f"{name} {np.shape(array)}" for name, array in arrays.items()
        )
        rule = f"must have shapes that broadcast, got {shapes}"
        raise ArgumentError(" and ".join(arrays), rule) from None
