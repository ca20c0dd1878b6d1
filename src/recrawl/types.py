"""Names for the types in signatures; docstrings give shapes and units."""

from collections.abc import Callable
from os import PathLike as _PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Bits", "ByName", "Function", "Ints", "PathLike", "Seed", "Values"]

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer]
Bits: TypeAlias = NDArray[np.bool_]
ByName: TypeAlias = dict[str, NDArray[Any]]
Function: TypeAlias = Callable[..., Any]
# An array, or a number where all arguments are numbers. Any is what stubs use
# for this, as it spares callers to ask which of both they have.
Values: TypeAlias = Array | Any
PathLike: TypeAlias = str | _PathLike[str]
# What numpy.random.default_rng takes.
Seed: TypeAlias = (
    int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None
)
