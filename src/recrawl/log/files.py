"""Files that are either whole or absent, whatever happens during a write.

A file is written under a temporary name in the same folder, flushed to the
disk, and renamed. A rename within a folder is atomic: whoever reads finds the
old file or the new one, never a part. A temporary folder is removed at the end,
or by the next run if its own run was killed.
"""

import contextlib
import errno
import functools
import glob
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from recrawl.types import PathLike

if sys.platform == "win32":  # nothing is locked, and nothing left behind is found
    fcntl = None
else:
    import fcntl

__all__ = [
    "alone",
    "named",
    "replacing",
    "target",
    "temporary_folder",
    "write_atomic",
]

# Of nothing that something else makes: what has it and no lock is removed.
_SCRATCH, _UNLOCKED, _UNFINISHED = (
    ".recrawl-scratch-",
    ".new-",
    ".recrawl-unfinished-",
)


def target(path: PathLike) -> Path:
    """File that a path names, behind symbolic links, if it may be replaced.

    Parameters
    ----------
    path : str or Path
        A file, which need not exist.

    Returns
    -------
    Path
        The same, or where the link leads.

    Raises
    ------
    OSError
        A folder; or a pipe or a device, which others would lose.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        reason = "a folder, a pipe or a device is there, which is not written over"
        raise OSError(errno.EEXIST, reason, str(path))
    return path.resolve() if path.is_symlink() else path


@contextlib.contextmanager
def replacing(path: PathLike, force: bool = True) -> Iterator[str]:
    """Context of a temporary path that replaces `path` at its end.

    Parameters
    ----------
    path : str or Path
        The file to write; of a symbolic link, that to which it leads.
    force : bool, optional
        False if a file must stay that another run has made meanwhile: it is looked
        for right before the rename.

    Yields
    ------
    str
        A path in the same folder, of an empty file; what writes it does so in the
        context `named`. When the context ends without an exception it is flushed
        and renamed to `path`; otherwise it is removed, and what was at `path`
        before stays as it was.

    Raises
    ------
    FileExistsError
        The file exists at the end, and `force` is false.
    OSError
        That of the step that failed, with the name of `path`; or as `target`.
    """
    path = target(path)
    _remove_abandoned(path.parent, _UNFINISHED, Path.unlink)
    # It gets the name that is searched for when it is locked, not before.
    unlocked = str(path.with_name(_UNLOCKED + uuid4().hex))
    temporary = str(path.with_name(_UNFINISHED + os.path.basename(unlocked)))
    try:
        # that of a file which others may not read is never open to them
        mode = 0o600 if path.exists() else 0o666
        Path(unlocked).touch(mode, exist_ok=False)
        with _locked(unlocked):
            os.rename(unlocked, temporary)
            yield temporary
            with named(temporary):
                with open(temporary, "rb") as file:
                    os.fsync(file.fileno())
                if path.exists():
                    if not force:
                        reason = "another run has made this file"
                        raise FileExistsError(errno.EEXIST, reason, str(path))
                    shutil.copymode(path, temporary)
                os.replace(temporary, path)
    except BaseException as error:  # an interrupt leaves no temporary file either
        for name in (unlocked, temporary):  # it may come right after the renaming
            Path(name).unlink(missing_ok=True)
        # not the error of another file that is written within this context
        if isinstance(error, OSError) and error.filename in (unlocked, temporary):
            reason = error.strerror or str(error)
            raise OSError(error.errno, reason, str(path)) from error
        raise


@contextlib.contextmanager
def named(path: PathLike) -> Iterator[None]:
    """Context in which an OSError without a name gets that of a file.

    Parameters
    ----------
    path : str or Path
        The file that is read or written.

    Yields
    ------
    None

    Examples
    --------
    >>> with named("rates.parquet"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'rates.parquet'
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            reason = error.strerror or str(error)
            raise OSError(error.errno, reason, str(path)) from error
        raise


@contextlib.contextmanager
def alone(path: PathLike) -> Iterator[None]:
    """Context in which no other process that asks for it has the folder of a file.

    It is for a file that is read, changed and replaced: of two processes at once,
    one would lose what the other one added. The folder is locked, because the file
    itself is replaced. The system releases the lock of a killed process.

    Parameters
    ----------
    path : path
        The file, which need not exist.

    Yields
    ------
    None
        When it has the folder. A warning says that it has to wait.

    Raises
    ------
    FileExistsError
        Where folders cannot be locked (Windows), in place of waiting.
    """
    if fcntl is None:  # a file that only one can make; it outlives a killed process
        lock = Path(f"{path}.lock")
        try:
            lock.touch(exist_ok=False)
        except FileExistsError:
            reason = "another run has the state, or was killed and left this file"
            raise FileExistsError(errno.EEXIST, reason, str(lock)) from None
        try:
            yield
        finally:
            lock.unlink()
        return
    folder = Path(path).resolve().parent
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(folder))
        except BlockingIOError:
            warnings.warn(f"waiting for another run that has {path}", stacklevel=3)
            stack.enter_context(_locked(folder, wait=True))
        yield


def write_atomic(path: PathLike, content: bytes, force: bool = True) -> None:
    """Write a file as a whole.

    Parameters
    ----------
    path : str or Path
        The file to write.
    content : bytes
        What is written.
    force : bool, optional
        As of `replacing`.

    Raises
    ------
    OSError
        As `replacing`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(f"{folder}/note.txt", b"whole")
    ...     print(Path(f"{folder}/note.txt").read_text())
    whole
    """
    with replacing(path, force) as temporary, named(temporary):
        Path(temporary).write_bytes(content)


@contextlib.contextmanager
def temporary_folder(place: PathLike | None = None) -> Iterator[Path]:
    """Context of a temporary folder, which does not outlive this process for long.

    The folder is locked as long as this process lives. A killed process cannot
    remove its folder, but the system releases its lock: the next process that
    calls this function for the same place removes such folders of the same user.

    Parameters
    ----------
    place : path, optional
        The folder in which it is made, by default the system's for temporary files.

    Yields
    ------
    Path
        The folder, which is empty.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    place = Path(place or tempfile.gettempdir()).absolute()
    _remove_abandoned(place, _SCRATCH, shutil.rmtree)
    # It gets the name that is searched for when it is locked, not before.
    made = Path(tempfile.mkdtemp(dir=place, prefix=_UNLOCKED))
    with _locked(made):
        folder = made.rename(made.with_name(_SCRATCH + made.name))
        try:
            yield folder
        finally:
            # what a process that is not this one still writes there finds no folder
            removed = folder.rename(f"{folder}-removed")
            shutil.rmtree(removed, ignore_errors=True)


@functools.cache  # once in a process is enough
def _remove_abandoned(place, prefix, remove):
    """Remove what dead processes of this user left."""
    for path in Path(place).glob(f"{glob.escape(prefix)}*") if fcntl else ():
        # It is in use, is another user's, or another process has removed it.
        with contextlib.suppress(OSError), _locked(path) as handle:
            if os.fstat(handle).st_uid == os.getuid():
                remove(path)


@contextlib.contextmanager
def _locked(path, wait=False):
    """Hold a file or folder; a BlockingIOError, unless it waits, if another does."""
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle
    finally:
        os.close(handle)
