"""Checks of the arguments of `science.allocation`, by its names for them."""

from functools import partial

from paperlib.checks import number, numbers, require  # noqa: F401
from paperlib.checks import together as broadcast  # noqa: F401

positive_number = partial(number, above=True)
non_negative = numbers
