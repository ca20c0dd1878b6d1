"""How kernels are compiled. They stand beside what they serve.

The kernels draw no random numbers and check no arguments: their callers do both.
"""

import contextlib
import functools
import os
from types import FunctionType

import numpy as np
from numba import carray, get_num_threads, njit, set_num_threads, types, vectorize
from numba.extending import intrinsic

# IEEE division, as in NumPy: 1 / 0 is inf, and no test for 0 interrupts a loop.
compiled = njit(cache=True, error_model="numpy")
# For kernels that neither make nor keep arrays: not to count references to them
# saves half of the time of a slot (measured).
plain = njit(cache=True, error_model="numpy", _nrt=False)
# A kernel that makes arrays and is called by a plain one, which without `_nrt`
# here would make it plain too.
allocating = njit(cache=True, error_model="numpy", _nrt=True)
# A call that passes all arrays costs as much as a short kernel.
inlined = njit(cache=True, error_model="numpy", _nrt=False, forceinline=True)

# Threads that wait for others sleep, and do not spin: while other processes take
# the cores, spinning takes the time of the thread that is waited for, and a call
# of 1 ms took 100 to 400 ms (measured). OpenMP reads it when the first parallel
# kernel runs. Threads of our own over chunks would wait between loops as well.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# GNU OpenMP, on which numba runs several threads, ends a process whose parent has
# used it, and a `multiprocessing.Pool` then waits for ever: in a fork of this process
# one thread computes. Other processes of the pool have the other cores.
_PROCESS = os.getpid()

# Array size from which a second thread may save more than it costs. Of a pass over
# pages that does little for each, two threads took up to 7 times as long as one at
# 50,000 and 100,000 pages beside other work (measured).
_MIN_SIZE_FOR_THREADS = 200_000


def parallel(function):
    """Compile for one thread and for several, each when it is first needed.

    For several threads it takes four times as long, and most arrays are small.
    `threads_for` decides. Other kernels call the form for one thread, `alone`.
    """
    alone = compiled(function)
    # numba keeps two forms of one name in one entry of its cache.
    twin = FunctionType(function.__code__, function.__globals__)
    twin.__qualname__ = f"{function.__qualname__}_in_threads"
    threaded = njit(cache=True, error_model="numpy", parallel=True)(twin)

    @functools.wraps(function)
    def kernel(*args):
        in_threads = os.getpid() == _PROCESS and get_num_threads() > 1
        return (threaded if in_threads else alone)(*args)

    kernel.py_func, kernel.alone = function, alone
    return kernel


@contextlib.contextmanager
def threads_for(size):
    """Use one thread for a small array and all threads for a large one."""
    before = get_num_threads()
    set_num_threads(before if size >= _MIN_SIZE_FOR_THREADS else 1)
    try:
        yield
    finally:
        set_num_threads(before)


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
