"""Names for the types in signatures; docstrings give shapes and units."""

from os import PathLike as _PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Bits", "Ints", "PathLike", "Values"]

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer]
Bits: TypeAlias = NDArray[np.bool_]
# An array, or a number where all arguments are numbers. Any is what stubs use
# for this, as it spares callers to ask which of both they have.
Values: TypeAlias = Array | Any
PathLike: TypeAlias = str | _PathLike[str]
