"""Checks of the arguments of `science.allocation`, by its names for them."""

from functools import partial

from paperlib.checks import number, numbers, require
from paperlib.checks import together as broadcast

__all__ = ["broadcast", "non_negative", "positive_number", "require"]

positive_number = partial(number, above=True)
non_negative = numbers
