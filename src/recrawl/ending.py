"""Ctrl-C and SIGTERM end a command by an exception, so that contexts clean up.

An exception that comes at any moment can do harm. If it cuts an import short, half a
module stays, and libraries in C fail with it later, or abort the process. Between a
call of LLVM that takes over an object and the note that it did, it makes Python free
the object a second time, and the process crashes. In a callback from C it is printed
and ignored. In all three cases it is raised anew later.
"""

import re
import signal
import sys
import threading

__all__ = ["Ending", "catch"]

# in the names of files and functions that are not cut short
_WHOLE = re.compile("<frozen importlib._bootstrap>|llvmlite|temporary_folder")
_WAIT = 0.02  # seconds until a signal comes again


class Ending(KeyboardInterrupt):
    """A signal that ends the process.

    Python itself kills the process if code that C runs raises a KeyboardInterrupt;
    this subclass it leaves alone.
    """


def catch(caught: list[signal.Signals]) -> None:
    """Raise `Ending` in the main thread at Ctrl-C and SIGTERM, unless ignored.

    Parameters
    ----------
    caught : list of signal.Signals
        Gets each signal: libraries may raise another error in place of it.
    """

    def end(number, frame):
        if _is_late(frame):
            _again(number)
        else:
            caught.append(signal.Signals(number))
            raise Ending

    def ignored(unraisable):
        if isinstance(unraisable.exc_value, Ending):
            _again(caught[-1])
        elif not caught:  # else an object that was cut short complains
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = ignored
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def _is_late(frame):
    """Whether the end waits until a frame, or one that called it, is done.

    A module that is half imported stays in Python; LLVM and Python must agree on who
    frees an object; and a temporary folder that is made and not yet locked, or renamed
    and not yet removed, would be left.
    """
    while frame:
        code = frame.f_code
        if _WHOLE.search(code.co_filename + code.co_name):
            return True
        frame = frame.f_back
    return False


def _again(number):
    timer = threading.Timer(_WAIT, signal.raise_signal, [number])
    timer.daemon = True
    timer.start()
