"""The formulas of the five papers in plain NumPy and SciPy, one function each.

It is the specification, written to be read with a paper beside the screen: every
fast form of `paperlib` is tested against it. It is slow, checks no argument and has
no options. A paper is a module: `valuetools20`, `peva22`, `aaai20`, `www25` and
`grimes08`; all functions can be imported from here. A docstring begins with the
number of the equation; "Corrected" says what the paper prints, and "derived" marks
what follows from it but is not printed there, or not in our text. Arrays of pages or
of crawls have one axis; a function of one page takes plain numbers.
"""

from tests.plain import aaai20, grimes08, peva22, valuetools20, www25
from tests.plain.aaai20 import *  # noqa: F403
from tests.plain.grimes08 import *  # noqa: F403
from tests.plain.peva22 import *  # noqa: F403
from tests.plain.valuetools20 import *  # noqa: F403
from tests.plain.www25 import *  # noqa: F403

__all__ = []
for _paper in (aaai20, grimes08, peva22, valuetools20, www25):
    __all__ += _paper.__all__
