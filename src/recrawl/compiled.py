"""How kernels are compiled. They stand beside what they serve.

The kernels draw no random numbers and check no arguments: their callers do both. They
run in one thread: a second one saves 6% of the time of an estimate with a million rows
(measured), and a process that forks afterwards would be ended by GNU OpenMP.
"""

import functools

import numpy as np
from numba import carray, njit, types, vectorize
from numba.extending import intrinsic

# IEEE division, as in NumPy: 1 / 0 is inf, and no test for 0 interrupts a loop.
compiled = njit(cache=True, error_model="numpy")
# For kernels that neither make nor keep arrays: not to count references to them
# saves half of the time of a slot (measured).
plain = njit(cache=True, error_model="numpy", _nrt=False)
# A kernel that makes arrays and is called by a plain one, which without `_nrt`
# here would make it plain too.
allocating = njit(cache=True, error_model="numpy", _nrt=True)


def addresses(arrays):
    """Address and length of each array, for `array_at`.

    For a kernel that is called from Python in every slot: to pass one such table
    instead of seven arrays saves a microsecond (measured), and the slot itself
    takes two or three. The caller keeps the arrays alive, and makes a new table
    when it replaces one of them.
    """
    return np.array([(array.ctypes.data, array.size) for array in arrays])


@intrinsic
def _pointer(typing_context, address):
    """The pointer to an address; numba has no function for it."""

    def convert(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), convert


@compiled
def array_at(table, k, dtype):
    """Array k of a table of `addresses`."""
    return carray(_pointer(table[k, 0]), table[k, 1], dtype)


def fields(kind, names):
    """Fields of one kind for a record, with these names between spaces."""
    return [(name, kind) for name in names.split()]


def ufunc(signature):
    """Return a decorator like `numba.vectorize`, compiled at the first call.

    Making a ufunc takes a tenth of a second even when it comes from the cache:
    the import of the package would pay that for each of them. Floating-point
    warnings are off: where the processor computes both branches of a condition,
    the flags come from the branch that is not taken.
    """

    def decorate(function):
        made = functools.cache(lambda: vectorize([signature], cache=True)(function))

        @functools.wraps(function)
        def call(*args):
            with np.errstate(all="ignore"):
                return made()(*args)

        return call

    return decorate
