"""Checks of arguments: errors that name the argument, the rule and the value.

A check takes the name of an argument and its value. It returns the value as a NumPy
array or as a Python number. The value may be a list, a pandas Series, or an array
of any type, byte order and memory layout.
"""

import operator

import numpy as np

from .errors import ArgumentError


def require(name, array, rule, good):
    """Raise an error that names the first entry for which `good` is false.

    The error names the whole array if `good` is a single truth value.
    """
    if not np.all(good):
        array = np.asarray(array)
        index = tuple(np.argwhere(~np.asarray(good))[0].tolist())
        place = f" at index {index}" if index else ""
        raise ArgumentError(name, f"must be {rule}, got {array[index]}{place}")


def instance(name, value, kind):
    """Raise an error that names the class of the value unless it is of this kind."""
    require(name, type(value), f"a {kind.__name__}", isinstance(value, kind))


def function(name, value, method):
    """The method of the value, or the value itself if it is a function.

    A class is an error: its method would take the first argument for the object.
    """
    found = getattr(value, method, value)
    good = callable(found) and not isinstance(value, type)
    require(name, value, f"a function, or an object with `{method}`", good)
    return found


def shape(name, value, wanted):
    """Raise an error unless a value has this shape."""
    found = np.shape(value)
    require(name, str(found), f"of shape {wanted}", found == wanted)


def total(name, weight):
    """The sums along the last axis, which must be positive."""
    total = weight.sum(axis=-1)
    require(name, total, "positive for at least one page", total > 0)
    return total


def unmasked(name, value):
    """The value as an array. Masked entries are an error: NumPy would count them."""
    if np.ma.is_masked(value):
        raise ArgumentError(name, f"must have no masked entries, got {value}")
    try:
        return np.asarray(value)
    except ValueError:
        raise ArgumentError(name, f"must be rectangular, got {value!r}") from None


def floats(name, value):
    """The value as a new array of floats or NaN. Dates and texts are errors."""
    array = unmasked(name, value)
    try:
        return np.asarray(np.add(array, 0.0, dtype=float))  # not a scalar
    except (TypeError, ValueError):
        raise ArgumentError(name, f"must be numbers, got {value!r}") from None


def numbers(name, value, low=0.0, high=np.inf, *, above=False):
    """The value as new, finite floats in [low, high]; `above` excludes low."""
    array = floats(name, value)
    rule = "positive and finite" if above else "non-negative and finite"
    if (low, high) != (0.0, np.inf):
        bracket = "(" if above else "["
        rule = f"in {bracket}{low:g}, {high:g}]"
    high_enough = array > low if above else array >= low
    require(name, array, rule, high_enough & (array <= high) & np.isfinite(array))
    return array


def number(name, value, low=0.0, high=np.inf, *, above=False):
    """The value as one finite float in [low, high]; `above` excludes low."""
    array = numbers(name, value, low, high, above=above)
    if array.ndim:
        raise ArgumentError(name, f"must be one number, got shape {array.shape}")
    return float(array)


def rising(name, value, least=2, *, above=False):
    """The value as a 1-D array of `least` or more rising floats."""
    array = numbers(name, value, above=above)
    rises = array.ndim == 1 and array.size >= least and (np.diff(array) > 0).all()
    require(name, array, f"rising, at least {least} numbers", rises)
    return array


def count(name, value, least=1):
    """The value as an int of at least `least`, which is 1 or 0."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = -1
    require(name, value, f"an integer of at least {least}", whole >= least)
    return whole


def bits(name, value):
    """The value as an array of bool; 0 and 1 are allowed."""
    array = unmasked(name, value)
    if array.dtype != bool:
        require(name, array, "boolean, or 0 and 1", (array == 0) | (array == 1))
    return array.astype(bool)


def one_of(name, value, options):
    """The value, which must be one of the options."""
    if value not in options:
        raise ArgumentError(name, f"must be one of {[*options]}, got {value!r}")
    return value


def broadcast(*, above=False, **values):
    """The values as floats in their common shape; an error names all of them."""
    arrays = {name: numbers(name, x, above=above) for name, x in values.items()}
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{k} {np.shape(v)}" for k, v in arrays.items())
        raise ArgumentError("shapes", f"must fit together, got {shapes}") from None
