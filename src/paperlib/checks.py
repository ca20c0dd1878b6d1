"""Checks at the public edge: each error names the argument, the rule and the first offending value with its index."""

import numpy as np


def _require(name, array, rule, good):
    bad = np.argwhere(~good)[0]
    value = array[tuple(bad)]
    where = f" at index {tuple(bad.tolist())}" if array.ndim else ""
    raise ValueError(f"{name} must be {rule}, got {value.item()!r}{where}")


def _numbers(name, value, rule, within):
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {rule}, got {value!r}") from None
    # NaN passes through min and max, and no comparison with it is true: two passes, no temporary array
    if array.size and not (within(array.min()) and within(array.max())):
        _require(name, array, rule, within(array))
    return array


def positive(name, value):
    """`value` as a float array; all entries positive and finite."""
    return _numbers(
        name, value, "positive and finite", lambda x: (x > 0) & (x < np.inf)
    )


def non_negative(name, value):
    """`value` as a float array; all entries non-negative and finite."""
    return _numbers(
        name, value, "non-negative and finite", lambda x: (x >= 0) & (x < np.inf)
    )


def finite(name, value):
    """`value` as a float array; all entries finite."""
    return _numbers(name, value, "finite", np.isfinite)


def share(name, value):
    """`value` as a float array; all entries in [0, 1]."""
    return _numbers(name, value, "in [0, 1]", lambda x: (x >= 0) & (x <= 1))


def scalar(check, name, value):
    """`value` as a float; one number that passes `check`."""
    if np.ndim(value):
        raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    return check(name, value).item()


def probability(name, value):
    """`value` as a float strictly between 0 and 1."""
    return scalar(
        lambda n, v: _numbers(
            n, v, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1)
        ),
        name,
        value,
    )


def count(name, value):
    """`value` as a positive int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def bits(name, value):
    """`value` as a boolean array; booleans, or numbers that are 0 or 1."""
    array = np.asarray(value)
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be boolean or 0/1, got dtype {array.dtype}")
    good = (array == 0) | (array == 1)
    if not good.all():
        _require(name, array, "boolean or 0/1", good)
    return array.astype(bool)


def fit(**arrays):
    """The named arrays broadcast against each other."""
    try:
        np.broadcast(*arrays.values())
    except ValueError:
        shapes = ", ".join(
            f"{name} {np.shape(array)}" for name, array in arrays.items()
        )
        raise ValueError(
            f"{' and '.join(arrays)} must have shapes that broadcast, got {shapes}"
        ) from None


def broadcast(**arrays):
    """The named arrays, broadcast against each other."""
    fit(**arrays)
    return np.broadcast_arrays(*arrays.values())
