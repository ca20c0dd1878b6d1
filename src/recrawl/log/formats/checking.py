r"""Files are checked before they are read: gzip members, UTF-8, long lines, quotes.

DuckDB compares neither the checksum nor the length at the end of a gzip member,
so that a flipped bit becomes wrong rows. In a table, it takes all that follows a
quote that is never closed for one value. In other texts, it refuses a file for
one line that is not in UTF-8 or too long. `mended` finds such places in one pass
over the file, and writes a copy without them, if there are any. It holds a few
lines at a time.

A value in quotes that goes on for more lines than any row is refused at once, with
its line: nothing tells where a row begins again.

A member whose checksum is wrong is left out as a whole, and with it all that
follows, for nothing tells which of its bytes are right. A member that is cut
off has no checksum; its whole lines are used.
"""

from __future__ import annotations

import math
import re
import shutil
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from recrawl.log.files import named
from recrawl.log.formats.base import is_packed, members
from recrawl.log.formats.records import LOST
from recrawl.log.tally import Tally
from recrawl.types import PathLike

__all__ = ["SHOWN", "Quotes", "Utf8", "mended"]

_BLOCK = 1 << 18  # bytes that are looked at at a time
_LONGEST = 2_000_000  # bytes of a row, as in DuckDB's reader
_MOST_LINES = 1000  # of a row; behind a quote that is open for longer, none is found
_TIME_DIGITS = 4  # the fewest of a time in any form
#: Bytes of a line in a message.
SHOWN = 80
_TOO_LONG = f"of more than {_LONGEST:,} bytes"
_TOO_MANY = f"of more than {_MOST_LINES:,} lines"
_NO_UTF8 = "that are not in UTF-8"
_NEVER_CLOSED = "with a quote that is never closed"


class Utf8:
    r"""Check that each line of a text is in UTF-8.

    Examples
    --------
    >>> utf8 = Utf8()
    >>> utf8.is_faulty(b"caf\xe9\n")
    True
    >>> list(utf8.rows([b"ab\n", b"caf\xe9\n"]))
    [(b'ab\n', 1, ''), (b'caf\xe9\n', 1, 'that are not in UTF-8')]
    """

    def is_faulty(self, lines: bytes) -> bool:
        """Whether one of some whole lines may have a fault.

        Parameters
        ----------
        lines : bytes
            The lines.

        Returns
        -------
        bool
        """
        try:
            lines.decode()
        except UnicodeDecodeError:
            return True
        return False

    def rows(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, int, str]]:
        """Find the lines that have a fault.

        Parameters
        ----------
        lines : iterable of bytes
            With their line breaks.

        Yields
        ------
        text : bytes
            The line, or all lines of a row.
        n_lines : int
            How many they are.
        reason : str
            Why it is left out, or empty.
        """
        for line in lines:
            faulty = _NO_UTF8 if self.is_faulty(line) else ""
            yield line, 1, _TOO_LONG if len(line) > _LONGEST else faulty


class Quotes(Utf8):
    r"""Check that each quote of a table in text is closed, and its rows are in UTF-8.

    A value in quotes may hold line breaks. But if a line behind an open quote is a
    row by itself, or the lines up to the next quote make no row, then the quote
    was never closed: the line that opened it is left out, and the next one is read.

    Parameters
    ----------
    delimiter : str
        Between two values.
    n_columns : int
        In each row.
    time : int
        The place of the column that must hold a time, from 0: an inner line is a
        row only if it has four digits there.

    Examples
    --------
    >>> quotes = Quotes(",", 2, 1)
    >>> quotes.is_faulty(b'"a,2025\n')
    True
    >>> lines = [b"url,time\n", b'"a,2025\n', b'"b"\n', b'"c\n', b'd",2026\n']
    >>> list(quotes.rows(lines))  # doctest: +NORMALIZE_WHITESPACE
    [(b'url,time\n', 1, ''), (b'"a,2025\n', 1, 'with a quote that is never closed'),
     (b'"b"\n', 1, ''), (b'"c\nd",2026\n', 2, '')]
    """

    def __init__(self, delimiter: str, n_columns: int, time: int) -> None:
        inside = '"[^"{0}]*+(?:""[^"{0}]*+)*+'
        whole = rf'(?<![^{delimiter}\r\n]){inside}"(?![^{delimiter}\r\n])'
        self._whole = re.compile(whole.format(r"\r\n").encode())
        # quotes inside of a value that does not begin with one are characters
        inside = inside.format("")
        field = rf'(?:{inside}"|[^"{delimiter}\r\n][^{delimiter}\r\n]*+|)'
        opens = f"(?:{field}{delimiter})*+{inside}"
        self._opens = re.compile(opens.encode())
        self._stays_open = re.compile(rf'{inside[1:]}(?:"{delimiter}{opens})?'.encode())
        plain = rf'(?:{inside}"|[^"{delimiter}\r\n]*+)'
        before, after = f"(?:{plain}{delimiter})", f"(?:{delimiter}{plain})"
        row = rf"{before}{{{time}}}({plain}){after}{{{n_columns - time - 1}}}\s*"
        self._row = re.compile(row.encode())

    def is_faulty(self, lines: bytes) -> bool:
        """Whether quotes are left besides those around a value within its line.

        Parameters
        ----------
        lines : bytes
            Whole lines.

        Returns
        -------
        bool
        """
        opened = b'"' in lines and b'"' in self._whole.sub(b"", lines)
        return opened or super().is_faulty(lines)

    def rows(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, int, str]]:
        """Find the lines that have a fault, and the lines of each row.

        Parameters
        ----------
        lines : iterable of bytes
            With their line breaks.

        Yields
        ------
        text, n_lines, reason
            As `Utf8.rows`.
        """
        lines, ahead = iter(lines), deque()

        def following():
            return ahead.popleft() if ahead else next(lines, b"")

        # a name that is not in UTF-8 may be that of a column which is not read
        yield following().decode("utf-8", "replace").encode(), 1, ""
        while line := following():
            texts, size, reason = [line], len(line), ""
            is_open = b'"' in line and self._opens.fullmatch(line)
            while is_open and not reason:
                inner = following()
                texts.append(inner)
                size += len(inner)
                # the lines before are not looked at again, as they may be many
                is_open = self._stays_open.fullmatch(inner)
                if not inner or size > _LONGEST or self._is_row(inner):
                    reason = _NEVER_CLOSED
                elif len(texts) > _MOST_LINES:
                    reason = _TOO_MANY
            text = b"".join(texts)
            if len(line) > _LONGEST:
                reason = _TOO_LONG
            elif super().is_faulty(text):
                reason = _NO_UTF8
            elif len(texts) > 1 and not reason and not self._is_row(text):
                reason = _NEVER_CLOSED
            if reason:
                ahead.extendleft(reversed(texts[1:]))
                yield line, 1, reason
            else:
                yield text, len(texts), ""

    def _is_row(self, text):
        """Whether a text has all columns, and digits where the time must be."""
        found = self._row.fullmatch(text)
        return bool(found) and len(re.findall(rb"\d", found[1])) >= _TIME_DIGITS


def mended(
    file: Path,
    folder: PathLike,
    check: Utf8 | Quotes | None,
    number: int,
    tally: Tally,
) -> Path:
    """Make a copy of a file without what is wrong in it.

    Parameters
    ----------
    file : pathlib.Path
        The file.
    folder : path
        An empty folder for the copy.
    check : Utf8, Quotes, or None
        What is checked beside the checksums of a gzip file.
    number : int
        The file's number, for the tally.
    tally : Tally
        Gets what is left out.

    Returns
    -------
    pathlib.Path
        The file itself, if nothing is wrong.

    Raises
    ------
    ValueError
        A gzip file that is damaged from its beginning on; a value in quotes that
        does not end within the limits.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> from recrawl.log.tally import Tally
    >>> tally = Tally()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "text.gz")
    ...     _ = file.write_bytes(gzip.compress(b"one\\ntwo\\n") + b"and more")
    ...     mended(file, tempfile.mkdtemp(dir=folder), None, 0, tally).read_text()
    'one\\ntwo\\n'
    >>> print(tally.places[LOST][0][2])  # doctest: +NORMALIZE_WHITESPACE
    text.gz, behind line 2: no sound gzip member at byte 28
    (Error -3 while decompressing data: incorrect header check)
    """
    if check is None and not is_packed(file):
        return file
    content = _Content(file)
    groups = content if check is None else _whole_lines(content, _LONGEST)
    n_faulty = sum(
        check is not None and (len(lines) > _LONGEST or check.is_faulty(lines))
        for lines in groups
    )
    if not content.damage and not n_faulty:
        return file
    target = Path(folder, file.name)
    # what is not read by lines may be a single one
    longest = _LONGEST if check else math.inf
    groups = _whole_lines(content.sound(), longest)
    lines = (line for some in groups for line in some.splitlines(keepends=True))
    rows = check.rows(lines) if check else ((line, 1, "") for line in lines)
    with named(target), open(target, "wb") as out:
        n_lines = _write_sound(rows, out, content.damage, number, file, tally)
    if content.damage and not n_lines:
        raise ValueError(
            f"{file} cannot be read: {content.damage}, and nothing before it is sound"
        )
    shutil.copystat(file, target)  # its time may be that of the download
    return target


class _Content:
    """The bytes of a file, unpacked: how many can be used, and why no more can.

    Both are known when it has been read to its end.
    """

    def __init__(self, path):
        self.path, self.size, self.damage = path, 0, ""

    def __iter__(self):
        start = before = 0
        with named(self.path), open(self.path, "rb") as file:
            streams = members(file) if is_packed(self.path) else [(0, file)]
            try:
                for start, stream in streams:  # noqa: B007
                    before = self.size
                    while block := stream.read1(_BLOCK):
                        self.size += len(block)
                        yield block
            except zlib.error as error:
                self.size = before
                self.damage = f"no sound gzip member at byte {start:,} ({error})"
            except EOFError as error:
                self.damage = str(error)

    def sound(self):
        """Yield the bytes that can be used."""
        left = self.size
        for block in _Content(self.path):
            yield block[:left]
            left -= min(left, len(block))


def _whole_lines(blocks, longest):
    """Some whole lines at a time; of one that is too long, a part that is too long."""
    parts, size = [], 0
    for block in blocks:
        end = block.rfind(b"\n") + 1 or block.rfind(b"\r") + 1
        if end:
            yield b"".join([*parts, block[:end]])
            parts, size = [], 0
        if size <= longest:
            parts.append(block[end:])
            size += len(block) - end
    yield b"".join(parts)


def _write_sound(rows, out, damage, number, file, tally):
    """Write rows, and empty lines in place of those that have a fault.

    Returned is the number of lines; of a damaged file, of its whole ones.
    """
    n_lines, name = 0, file.name
    for text, n, reason in rows:
        if damage and not text.endswith(b"\n"):
            break
        shown = text[:SHOWN].decode("utf-8", "replace").rstrip()
        if reason == _TOO_MANY:
            raise ValueError(
                f"{file} line {n_lines + 1:,}: a value in quotes must end within "
                f"{_MOST_LINES:,} lines, got {shown!r}"
            )
        if reason:
            place = number, n_lines + 1, f"{name} line {n_lines + 1}: {shown}"
            tally.add(reason, 1, [place])
            text = text[len(text.rstrip(b"\r\n")) :]
        out.write(text)
        n_lines += n
    if damage:
        where = f"{name}, behind line {n_lines:,}: {damage}"
        tally.add(LOST, 1, [(number, 0, where)])
    return n_lines
