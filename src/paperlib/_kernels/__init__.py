"""Everything that is compiled, and only that.

A module here is named after the public module that calls it. The kernels draw
no random numbers and check no arguments: their callers do both.
"""

import contextlib
import functools

from numba import get_num_threads, set_num_threads, vectorize

# Array size from which a second thread saves more than it costs (measured: on
# a busy machine waiting for it takes longer than the work on a smaller array).
_MIN_SIZE_FOR_THREADS = 50_000


@contextlib.contextmanager
def threads_for(size):
    """Use one thread for a small array and all threads for a large one."""
    before = get_num_threads()
    set_num_threads(before if size >= _MIN_SIZE_FOR_THREADS else 1)
    try:
        yield
    finally:
        set_num_threads(before)


def ufunc(signature):
    """Return a decorator like `numba.vectorize`, compiled at the first call.

    Making a ufunc takes a tenth of a second even when it comes from the cache:
    the import of the package would pay that for each of them.
    """

    def decorate(function):
        made = functools.cache(lambda: vectorize([signature], cache=True)(function))
        return functools.wraps(function)(lambda *args: made()(*args))

    return decorate
