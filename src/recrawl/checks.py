"""Checks of arguments at the public edge of the library.

Every check takes the name of an argument and its value, returns the value in
the form that the library computes with, and raises a ValueError that names the
argument, the rule and the first value that breaks it, with its index. Behind
the public functions nothing is checked again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.types import Array, Bits

__all__ = [
    "bits",
    "broadcast",
    "count",
    "counts",
    "finite",
    "fit",
    "for_pages",
    "instance",
    "labels",
    "low_high",
    "non_negative",
    "non_negative_or_inf",
    "numbers",
    "one_of",
    "per_page",
    "positive",
    "positive_number",
    "positive_or_inf",
    "probability",
    "require",
    "rising",
    "scalar",
    "share",
]


# What NumPy raises for what is no array of floats; an int may be too large for one.
_NOT_FLOAT = TypeError, ValueError, OverflowError


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
    ValueError
        Naming the first entry that is not good, and its index.

    Examples
    --------
    >>> rate = np.array([1.0, -2.0])
    >>> require("rate", rate, "non-negative", rate >= 0)
    Traceback (most recent call last):
        ...
    ValueError: rate must be non-negative, got -2.0 at index (1,)
    """
    if good.all():
        return
    bad = np.argwhere(~good)[0]
    where = f" at index {tuple(bad.tolist())}" if array.ndim else ""
    value = array.item(*bad)
    raise ValueError(f"{name} must be {rule}, got {value!r}{where}")


def _numbers(name, value, rule, within):
    """`value` as a float array whose entries are all `within`, an interval."""
    try:
        given, array = _as_floats(value)
    except _NOT_FLOAT:
        raise ValueError(f"{name} must be {rule}, got {value!r}") from None
    # The rules are intervals, so that the extremes decide: two passes and no
    # temporary array. NaN passes through min and max, and no comparison with
    # it is true.
    if array.size and not (within(array.min()) and within(array.max())):
        # an object, such as None, is shown as it was given
        require(name, given if given.dtype == object else array, rule, within(array))
    return array


def _as_floats(value):
    """`value` as an array, and that as floats.

    Dates, durations and strings are not numbers; a mask would be lost.
    """
    given = np.asarray(value)
    if given.dtype.kind in "mMcSU" or np.ma.is_masked(value):
        raise TypeError
    return given, given.astype(float, copy=False)


def positive(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; all entries positive and finite."""
    return _numbers(
        name, value, "positive and finite", lambda x: (x > 0) & (x < np.inf)
    )


def non_negative(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; all entries non-negative and finite."""
    return _numbers(
        name, value, "non-negative and finite", lambda x: (x >= 0) & (x < np.inf)
    )


def positive_or_inf(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; all entries positive, and some may be inf."""
    return _numbers(name, value, "positive", lambda x: x > 0)


def non_negative_or_inf(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; all entries non-negative, and some may be inf."""
    return _numbers(name, value, "non-negative", lambda x: x >= 0)


def finite(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; all entries finite."""
    return _numbers(name, value, "finite", np.isfinite)


def share(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; all entries in [0, 1]."""
    return _numbers(name, value, "in [0, 1]", lambda x: (x >= 0) & (x <= 1))


def scalar(
    check: Callable[[str, ArrayLike], Array], name: str, value: ArrayLike
) -> float:
    """`value` as a float; one number that passes `check`."""
    array = check(name, value)
    if array.ndim:
        raise ValueError(f"{name} must be a single number, got shape {array.shape}")
    return array.item()


def positive_number(name: str, value: ArrayLike) -> float:
    """`value` as a float; one number, positive and finite."""
    return scalar(positive, name, value)


def low_high(
    name: str,
    value: ArrayLike,
    check: Callable[[str, ArrayLike], Array] = positive,
    *,
    equal: bool = False,
) -> tuple[float, float]:
    """`value` as two floats, the lower first, or two that may be `equal`."""
    pair = check(name, value)
    if pair.shape != (2,) or pair[0] > pair[1] or (pair[0] == pair[1] and not equal):
        raise ValueError(
            f"{name} must be two numbers, the lower one first, got {value!r}"
        )
    low, high = pair.tolist()
    return low, high


def rising(name: str, value: ArrayLike, *, least: int = 2) -> Array:
    """`value` as a positive array that rises along one axis."""
    array = positive(name, value)
    if array.ndim != 1 or array.size < least or not (np.diff(array) > 0).all():
        raise ValueError(
            f"{name} must rise along one axis of at least {least} points, got {array}"
        )
    return array


def per_page(
    name: str,
    value: ArrayLike,
    check: Callable[[str, ArrayLike], Array] = non_negative,
) -> Array:
    """`value` as an array that passes `check` and has one axis, that of the pages."""
    array = check(name, value)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    return array


def _open_share(name, value):
    return _numbers(
        name, value, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1)
    )


def probability(name: str, value: ArrayLike) -> float:
    """`value` as a float strictly between 0 and 1."""
    return scalar(_open_share, name, value)


def count(name: str, value: object) -> int:
    """`value` as a positive int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def one_of(name: str, value: object, choices: Iterable[Any]) -> None:
    """Raise unless `value` is one of the choices."""
    choices = list(choices)
    if value not in choices:
        known = " or ".join(", ".join(map(repr, choices)).rsplit(", ", 1))
        raise ValueError(f"{name} must be {known}, got {value!r}")


def instance(name: str, value: object, kind: type) -> None:
    """Raise unless `value` is of a class."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {kind.__name__}, got {value!r}")


def numbers(name: str, value: ArrayLike) -> Array:
    """`value` as a float array; entries may be NaN."""
    try:
        return _as_floats(value)[1]
    except _NOT_FLOAT:
        raise ValueError(f"{name} must be numbers, got {value!r}") from None


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
        raise ValueError(f"{name} must be boolean or 0/1, got dtype {array.dtype}")
    require(name, array, "boolean or 0/1", (array == 0) | (array == 1))
    return array.astype(bool)


def labels(
    name: str, value: ArrayLike, shape: tuple[int, ...]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted labels, and the index of each entry's label among them, flat.

    `value` holds a label for each page, of which `shape` is the shape.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        array = np.empty(0)
    if array.shape != shape:
        raise ValueError(
            f"{name} must have one label for each page, shape {shape}, "
            f"got shape {array.shape}"
        )
    if array.dtype.kind in "US" and not isinstance(value, np.ndarray):
        # of [1, "a"] NumPy makes two strings, and the label 1 would be lost
        strings = [
            isinstance(label, str) for label in np.ravel(np.array(value, object))
        ]
        if len(set(strings)) > 1:
            raise ValueError(
                f"{name} must be labels of one type, got strings and others"
            )
    try:
        found, member = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name} must be labels that can be sorted: {error}") from None
    if found.dtype.kind == "f":  # NaNs would be one label
        require(name, array, "labels, which NaN is not", ~np.isnan(array))
    return found, np.ravel(member)


def fit(**arrays: Any) -> None:
    """Raise unless the named arrays broadcast against each other."""
    try:
        np.broadcast(*arrays.values())
    except ValueError:
        shapes = ", ".join(
            f"{name} {np.shape(array)}" for name, array in arrays.items()
        )
        raise ValueError(
            f"{' and '.join(arrays)} must have shapes that broadcast, got {shapes}"
        ) from None


def for_pages(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """`value`, one number or one for each page, in the shape of the pages."""
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(
            f"{name} must be a number, or one for each page, shape {shape}, "
            f"got shape {np.shape(value)}"
        ) from None


def broadcast(**arrays: Any) -> Sequence[NDArray[Any]]:
    """The named arrays, broadcast against each other, in a tuple or list."""
    fit(**arrays)
    return np.broadcast_arrays(*arrays.values())


def parameters(pages: Any) -> dict[str, Array]:
    """The four parameters of `paperlib.signals.SignalledPages` by name."""
    names = "change_rate", "importance", "recall", "false_rate"
    return {name: getattr(pages, name) for name in names}
