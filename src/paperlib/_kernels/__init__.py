"""Everything compiled. The kernels draw no random numbers and check nothing."""

import contextlib
import functools

from numba import get_num_threads, set_num_threads, vectorize

_WORTH_A_THREAD = 50_000


@contextlib.contextmanager
def threads_for(size):
    """One thread for a small array: on a busy machine the wait for a second thread takes longer than the work."""
    before = get_num_threads()
    set_num_threads(before if size >= _WORTH_A_THREAD else 1)
    try:
        yield
    finally:
        set_num_threads(before)


def ufunc(signature):
    """`numba.vectorize` for one signature, at the first call: every one takes a tenth of a second, from the cache too."""

    def decorate(function):
        made = functools.cache(lambda: vectorize([signature], cache=True)(function))
        return functools.wraps(function)(lambda *args: made()(*args))

    return decorate
