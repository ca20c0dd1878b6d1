"""Files that are whole or absent."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path


def sha256(path):
    """Hexadecimal SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def replacing(path):
    """A temporary path beside `path`, which takes its place when the context ends well, and goes when it does not.

    Raises the OSError of the step that failed, with the name of `path`; what was there before is left as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(
                error.errno, error.strerror or str(error), str(path)
            ) from error
        raise


def write_atomic(path, content):
    """Write text or bytes to a temporary name beside `path`, flush it to disk, then rename it. Errors as in `replacing`."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
