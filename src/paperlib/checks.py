"""Checks of arguments: errors that name the argument, the rule and the value."""

import operator

import numpy as np


def require(name, array, rule, good):
    """Raise ValueError naming the first entry of the array that is not good."""
    if not np.all(good):
        where = np.argwhere(~np.broadcast_to(good, array.shape))[0].tolist()
        place = f" at index {tuple(where)}" if array.ndim else ""
        raise ValueError(f"{name} must be {rule}, got {array[tuple(where)]}{place}")


def numbers(name, value, low=0.0, high=np.inf, *, above=False):
    """The value as floats within low and high, finite; `above` excludes low."""
    try:
        array = np.add(value, 0.0, dtype=float)  # refuses dates and texts
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {value!r}") from None
    rule = "positive and finite" if above else "non-negative and finite"
    if (low, high) != (0.0, np.inf):
        rule = f"in {'(' if above else '['}{low:g}, {high:g}]"
    good = (array > low if above else array >= low) & (array <= high)
    require(name, array, rule, good & np.isfinite(array))
    return array


def number(name, value, low=0.0, high=np.inf, *, above=False):
    """The value as one float within low and high, finite; `above` excludes low."""
    if np.ndim(value):
        raise ValueError(f"{name} must be one number, got shape {np.shape(value)}")
    return float(numbers(name, value, low, high, above=above))


def rising(name, value, least=2, *, above=False):
    """The value as rising floats along one axis, at least so many."""
    array = numbers(name, value, above=above)
    if array.ndim != 1 or array.size < least or not (np.diff(array) > 0).all():
        raise ValueError(f"{name} must rise, at least {least} numbers, got {value}")
    return array


def count(name, value, least=1):
    """The value as an int of at least 1, or 0."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = -1
    if whole < least:
        rule = "a positive integer" if least else "a non-negative integer"
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return whole


def bits(name, value):
    """The value as an array of bool; 0 and 1 are allowed."""
    array = np.asarray(value)
    if array.dtype != bool:
        require(name, array, "boolean, or 0 and 1", (array == 0) | (array == 1))
    return array.astype(bool)


def choice(name, value, options):
    """The option of this name."""
    if value not in options:
        raise ValueError(f"{name} must be one of {[*options]}, got {value!r}")
    return options[value]


def broadcast(*, above=False, **values):
    """The values as floats in their common shape; an error names all of them."""
    arrays = {name: numbers(name, x, above=above) for name, x in values.items()}
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{k} {np.shape(v)}" for k, v in arrays.items())
        raise ValueError(f"shapes must fit together, got {shapes}") from None
