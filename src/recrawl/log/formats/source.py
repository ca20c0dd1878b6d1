"""What a user calls a log: files and folders, their format, their columns."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from paperlib.errors import ArgumentError
from recrawl.log.formats import NAMES, recognise
from recrawl.log.formats.base import Format, beginning
from recrawl.log.formats.tables import OPTIONAL, REQUIRED, SIGNALS
from recrawl.types import PathLike

__all__ = ["Source"]

_COLUMNS = (*REQUIRED, *SIGNALS, *OPTIONAL)
_NAMES_SHOWN = 3
_BYTES_SHOWN = 30
# How files of bzip2, xz, Zstandard and zip begin, and arrays of objects in JSON.
_PACKED = (b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")


@dataclass(frozen=True)
class Source:
    """Files of one log, and how to read them.

    Wherever an argument is a log, a path, a sequence of paths, or a `Source` can
    be given.

    Parameters
    ----------
    path : path or sequence of path
        Files, also gzipped, and folders that hold files at any depth.
    format : str
        A name in `recrawl.log.formats.FORMATS`; "auto" recognises files by their first
        bytes.
    columns : mapping from str to str, optional
        For tables: the column to take for each of ours, such as
        ``{"time": "fetched_at"}``.
    as_of : datetime, optional
        When sitemaps and feeds were downloaded, by default when each file was last
        modified; or the last run of the job whose log of git is read, by default
        its last commit. UTC if it names no zone.

    Raises
    ------
    ValueError
        No path; an unknown format or column.

    Examples
    --------
    >>> str(Source(["today.csv", "yesterday.csv"]))
    'today.csv and 1 more'
    """

    path: object
    _: KW_ONLY
    format: str = "auto"
    columns: dict = field(default_factory=dict)
    as_of: datetime | None = None

    def __post_init__(self):
        given = self.path
        given = [given] if isinstance(given, str | os.PathLike) else list(given)
        if not given:
            raise ValueError("path must name at least one file or folder, got none")
        object.__setattr__(self, "path", tuple(map(Path, given)))
        object.__setattr__(self, "columns", dict(self.columns or {}))
        if self.format not in ("auto", *NAMES):
            names = ", ".join(NAMES)
            rule = f"must be auto, {names}, got {self.format!r}"
            raise ArgumentError("format", rule)
        if unknown := self.columns.keys() - {*_COLUMNS}:
            some = ", ".join(map(repr, sorted(unknown)))
            rule = f"must be for some of {', '.join(_COLUMNS)}, got {some}"
            raise ArgumentError("columns", rule)

    def __str__(self):
        first, *others = self.path
        return f"{first} and {len(others)} more" if others else str(first)

    @classmethod
    def of(cls, log: PathLike | Sequence[PathLike] | Source) -> Source:
        """Make a source of what a user calls a log.

        Parameters
        ----------
        log : path, sequence of path, or Source
            The log.

        Returns
        -------
        Source
        """
        return log if isinstance(log, cls) else cls(log)

    def absolute(self) -> Source:
        """Make the same source with absolute paths.

        Returns
        -------
        Source
        """
        return replace(self, path=[path.absolute() for path in self.path])

    def files(self) -> tuple[list[tuple[Path, Format]], list[Path]]:
        """Files in the order in which they are read, and the format of each.

        Returns
        -------
        files : list of tuple of pathlib.Path and Format
            All of one format.
        unknown : list of pathlib.Path
            Files in the folders that no format recognises.

        Raises
        ------
        FileNotFoundError
            No such file or folder; a link, in a folder too, that leads nowhere.
        PermissionError
            A file or folder that may not be read.
        ValueError
            An empty file; a file of a format that is not known or not the one
            asked for; files of several formats; a pipe, a socket or a device.
        """
        found, unknown = [], []
        for path in self.path:
            for file in _members(path):
                if "\ufffd" in os.fsencode(file).decode("utf-8", "replace"):
                    raise ValueError(
                        f"{str(file)!r} must be a name in UTF-8, as DuckDB needs it: "
                        "rename it"
                    )
                # an empty answer of a server is an answer, among others
                empty = not file.is_dir() and not file.stat().st_size
                format = None if empty else recognise(file, self.format)
                is_json = format and format.name == "jsonl"
                is_array = is_json and _ARRAY.match(beginning(file))
                if is_array or (format is None and file == path):
                    raise ValueError(_refusal(file))
                if format:
                    found.append((file, format))
                else:
                    unknown.append(file)
        if not found:
            raise ValueError(
                f"{self} must hold files of a known format ({', '.join(NAMES)}), "
                f"got {_few(unknown) or 'no file'}"
            )
        _check_one_format(found)
        return found, unknown


def _members(path):
    """Files of a folder, without hidden ones; or what is read as a whole."""
    _check_kind(path)
    if not path.is_dir():
        return [path]
    found = sorted(_walked(path))
    for file in found:
        _check_kind(file)
    return found if recognise(path) is None else [path]


def _walked(path):
    """Yield what is in a folder, but for hidden files; links are followed."""
    # a folder that holds this one would be read again through a link to it
    seen = {*path.resolve().parents}
    for folder, inner, names in os.walk(path, onerror=_raise, followlinks=True):
        real = Path(folder).resolve()
        if real in seen:
            inner.clear()
            continue
        seen.add(real)
        inner.sort()  # of two links to a folder, the first is followed
        yield from (Path(folder, n) for n in names if not n.startswith((".", "_")))


def _check_kind(path):
    """Raise an error unless a path is a file or a folder."""
    if path.is_file() or path.is_dir():
        return
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError(f"{path} is a link that leads nowhere")
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    raise ValueError(
        f"{path} must be a file or a folder, got a pipe, a socket or a device, which "
        "cannot be read twice: write it to a file first"
    )


def _raise(error):
    raise error


def _refusal(file):
    """Why a file that no format recognises is not read."""
    head, log = beginning(file), f"{file} must be a log, plain or gzipped"
    if not file.stat().st_size:
        return f"{file} must not be empty"
    if head.startswith(_PACKED):
        return f"{log}, got one that is packed in another way: unpack it first"
    if _ARRAY.match(head):
        return f"{log}, got an array of JSON: write one object a line (jq -c '.[]')"
    return (
        f"{file} must be of a known format ({', '.join(NAMES)}), got one that begins "
        f"with {head[:_BYTES_SHOWN]!r}; format (--from NAME) says which it is"
    )


def _check_one_format(found):
    """Raise a ValueError if files are of several formats."""
    groups = {}
    for file, format in found:
        groups.setdefault(format.name, []).append(file)
    if len(groups) > 1:
        shown = "; ".join(f"{name}: {_few(files)}" for name, files in groups.items())
        raise ValueError(f"files must be of one format, got {shown}")


def _few(files):
    """Names of the first files, and how many there are besides."""
    more = len(files) - _NAMES_SHOWN
    names = ", ".join(str(file) for file in files[:_NAMES_SHOWN])
    return f"{names} and {more} more" if more > 0 else names
