r"""Files are checked before they are read: gzip members, UTF-8, quotes of tables.

DuckDB compares neither the checksum nor the length at the end of a gzip member,
so that a flipped bit becomes wrong rows. In a table, it takes all that follows a
quote that is never closed for one value. In other texts, it refuses a file for
one line that is not in UTF-8. `mended` finds such places in one pass over the
file, and writes a copy without them, if there are any.

A member whose checksum is wrong is left out as a whole, and with it all that
follows, for nothing tells which of its bytes are right. A member that is cut
off has no checksum; its whole lines are used.
"""

from __future__ import annotations

import codecs
import io
import re
import shutil
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.formats.base import is_packed
from recrawl.formats.records import LOST, unpacked
from recrawl.types import PathLike

if TYPE_CHECKING:
    from recrawl.tally import Tally

__all__ = ["Quotes", "Utf8", "mended", "sound_members"]

_BLOCK = 1 << 16  # bytes that are read at a time, at most 1032 times as many unpacked
_LONGEST = 2_000_000  # characters of a row, as in DuckDB's reader
_MOST_LINES = 1000  # of a row
_TIME_DIGITS = 4  # the fewest of a time in any form
_SHOWN = 3  # lines named in a warning
_LINE_BREAK = re.compile("\r\n|\r|\n")


@dataclass
class _Scan:
    """What one pass over a file finds."""

    n_bytes: int = 0  # of a gzip file, unpacked, that can be used
    n_members: int = 0  # of a gzip file, whose checksums are right
    damage: str = ""  # of a gzip file, and where it is
    padded: bool = False  # zeros follow a gzip member, as on tapes
    faulty: bool = False  # some line has a fault


class Utf8:
    r"""Check that each line of a text is in UTF-8.

    Examples
    --------
    >>> utf8 = Utf8()
    >>> utf8.is_faulty(b"caf\xe9")
    False
    >>> utf8.is_faulty(b"", final=True)
    True
    >>> list(utf8.lines(["ab\n", "caf\xe9\n"]))
    [('ab\n', True), ('\n', False)]
    """

    reason = "that are not in UTF-8"
    fault = "bytes that are no UTF-8"

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def is_faulty(self, block: bytes, final: bool = False) -> bool:
        """Whether the next bytes of a file may hold a fault.

        Parameters
        ----------
        block : bytes
            The bytes.
        final : bool, default False
            No more follow.

        Returns
        -------
        bool
        """
        try:
            self._decoder.decode(block, final)
        except UnicodeDecodeError:
            return True
        return False

    def lines(self, lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Empty the lines that have a fault.

        Parameters
        ----------
        lines : iterable of str
            With their line breaks; each character stands for a byte.

        Yields
        ------
        text : str
            The line, or its line break alone.
        good : bool
            Whether the line stays.
        """
        for line in lines:
            try:
                line.encode("latin-1").decode("utf-8")
                yield line, True
            except UnicodeDecodeError:
                yield _line_break(line), False


class Quotes:
    r"""Check that each quote of a table in text is closed.

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
    >>> list(quotes.lines(['"a,2025\n', '"b"\n', '"c\n', 'd",2026\n']))
    ... # doctest: +NORMALIZE_WHITESPACE
    [('\n', False), ('"b"\n', True), ('"c\nd",2026\n', True)]
    """

    reason = "that do not fit the columns"
    fault = "a quote that is never closed"

    def __init__(self, delimiter: str, n_columns: int, time: int) -> None:
        self._rest = b""
        inside = '"[^"{0}]*+(?:""[^"{0}]*+)*+'
        whole = rf'(?<![^{delimiter}\r\n]){inside}"(?![^{delimiter}\r\n])'
        self._whole = re.compile(whole.format(r"\r\n").encode())
        # quotes inside of a value that does not begin with one are characters
        inside = inside.format("")
        field = rf'(?:{inside}"|[^"{delimiter}\r\n][^{delimiter}\r\n]*+|)'
        self._opens = re.compile(rf"(?:{field}{delimiter})*+{inside}")
        plain = rf'(?:{inside}"|[^"{delimiter}\r\n]*+)'
        before, after = f"(?:{plain}{delimiter})", f"(?:{delimiter}{plain})"
        self._row = re.compile(
            rf"{before}{{{time}}}({plain}){after}{{{n_columns - time - 1}}}\s*"
        )

    def is_faulty(self, block: bytes, final: bool = False) -> bool:
        """Whether the next bytes of a file may hold a fault.

        They may if quotes are left besides those around a value within its line.

        Parameters
        ----------
        block : bytes
            The bytes.
        final : bool, default False
            No more follow.

        Returns
        -------
        bool
        """
        text = self._rest + block
        end = len(text) if final else max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        text, self._rest = text[:end], text[end:]
        return b'"' in text and b'"' in self._whole.sub(b"", text)

    def lines(self, lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Empty the lines that have a fault.

        Parameters
        ----------
        lines : iterable of str
            With their line breaks; each character stands for a byte.

        Yields
        ------
        text : str
            One line or all lines of a row, or the line break alone.
        good : bool
            Whether the text stays.
        """
        lines, ahead = iter(lines), deque()
        while line := ahead.popleft() if ahead else next(lines, ""):
            text, n_inner = line, 0
            while text and '"' in text and self._opens.fullmatch(text):
                if n_inner == len(ahead):
                    ahead.append(next(lines, ""))
                inner, n_inner = ahead[n_inner], n_inner + 1
                lost = not inner or len(text) > _LONGEST or n_inner > _MOST_LINES
                text = "" if lost or self._is_row(inner) else text + inner
            if n_inner and not self._is_row(text):
                yield _line_break(line), False
                continue
            for _ in range(n_inner):
                ahead.popleft()
            yield text, True

    def _is_row(self, text):
        """Whether a text has all columns, and digits where the time must be."""
        found = self._row.fullmatch(text)
        return bool(found) and sum(map(str.isdigit, found[1])) >= _TIME_DIGITS


def _line_break(line):
    """The line break at the end of a line."""
    found = _LINE_BREAK.search(line, max(len(line) - 2, 0))
    return found[0] if found else ""


def _blocks(path, scan, start=0):
    """Yield the bytes of a file, unpacked, from a position on; note what is wrong."""
    with open(path, "rb") as file:
        file.seek(start)
        if is_packed(path):
            yield from _unpacked(file, scan)
        else:
            while block := file.read(_BLOCK):
                yield block


def _unpacked(file, scan):
    """Yield the bytes of gzip members; stop at one that is not sound."""
    data = file.read(_BLOCK)
    while data:
        position, n_bytes = file.tell() - len(data), 0
        inflate = zlib.decompressobj(wbits=31)  # compares checksum and length
        while not inflate.eof:
            if not data:
                scan.n_bytes += n_bytes
                scan.damage = (
                    f"the file ends at byte {file.tell():,}, inside of the gzip "
                    f"member that begins at byte {position:,}"
                )
                return
            try:
                block = inflate.decompress(data)
            except zlib.error as error:
                why = str(error).rpartition(": ")[2]
                scan.damage = (
                    f"what begins at byte {position:,} is no sound gzip member ({why})"
                )
                return
            n_bytes += len(block)
            yield block
            data = inflate.unused_data or file.read(_BLOCK)
        scan.n_bytes, scan.n_members = scan.n_bytes + n_bytes, scan.n_members + 1
        while data and not (data := data.lstrip(b"\0")):
            data, scan.padded = file.read(_BLOCK), True


def sound_members(path: PathLike, start: int = 0) -> int:
    """Number of gzip members whose checksum and length are right, 2 for more.

    Parameters
    ----------
    path : path
        A gzip file.
    start : int, default 0
        The byte at which the first member to be counted begins.

    Returns
    -------
    int
        Of 0, 1 and 2; those behind a member that is damaged do not count.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "text.gz")
    ...     _ = path.write_bytes(gzip.compress(b"text") + gzip.compress(b"more")[:-1])
    ...     sound_members(path)
    1
    """
    scan = _Scan()
    for _ in _blocks(path, scan, start):
        if scan.n_members == 2:
            break
    return min(scan.n_members, 2)


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
        A gzip file that is damaged from its beginning on.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> from recrawl.tally import Tally
    >>> tally = Tally()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "text.gz")
    ...     _ = file.write_bytes(gzip.compress(b"one\\ntwo\\n") + b"and more")
    ...     mended(file, folder, None, 0, tally).read_text().split()
    ['one', 'two']
    >>> print(tally.places[LOST][0][2])  # doctest: +NORMALIZE_WHITESPACE
    text.gz, behind line 2: what begins at byte 28 is no sound gzip member
    (incorrect header check)
    """
    packed, whole = is_packed(file), file
    if file.suffix == ".gz" and not packed and file.stat().st_size:
        raise ValueError(
            f"{file} cannot be read: it is not gzipped, as its name says; rename it"
        )
    if not packed and check is None:
        return file
    scan = _scan(file, check)
    # DuckDB knows gzip files by their names, and no zeros behind them
    if scan.damage or scan.padded or (packed and file.suffix != ".gz"):
        whole = _sound_part(file, folder, scan, number, tally)
    if scan.faulty:
        whole = _without_faults(whole, folder, check, number, tally)
    if whole != file:
        shutil.copystat(file, whole)  # its time may be that of the download
    return whole


def _scan(file, check):
    """Read a file once."""
    scan = _Scan()
    for block in _blocks(file, scan):
        scan.faulty = scan.faulty or (check is not None and check.is_faulty(block))
    if check is not None and not scan.faulty:
        scan.faulty = check.is_faulty(b"", final=True)
    return scan


def _sound_part(file, folder, scan, number, tally):
    """Write what can be used of a gzip file: if it is damaged, its whole lines."""
    target = _target(file, folder, "sound")
    missing, n_lines, rest = scan.n_bytes, 0, b""
    with open(target, "wb") as out:
        for block in _blocks(file, _Scan()):
            block, missing = block[:missing], missing - min(missing, len(block))
            lines, line_break, rest = (rest + block).rpartition(b"\n")
            out.write(lines + line_break)
            n_lines += lines.count(b"\n") + len(line_break)
        if not scan.damage:
            out.write(rest)
    if scan.damage:
        if not n_lines:
            raise ValueError(
                f"{file} cannot be read: {scan.damage}, and nothing before it is sound"
            )
        where = f"{file.name}, behind line {n_lines:,}: {scan.damage}"
        tally.add(LOST, 1, [(number, 0, where)])
    return target


def _without_faults(file, folder, check, number, tally):
    """Write a file with empty lines in place of those that have a fault."""
    target, faults, n_lines = _target(file, folder, "mended"), [], 0
    with (
        # each byte is a character; line breaks stay as they are
        io.TextIOWrapper(unpacked(file), "latin-1", newline="") as lines,
        open(target, "w", encoding="latin-1", newline="") as out,
    ):
        for text, good in check.lines(lines):
            out.write(text)
            if not good:
                faults.append(n_lines + 1)
            n_lines += len(_LINE_BREAK.findall(text))
    if faults:
        shown = [(number, n, f"{file.name} line {n}: {check.fault}") for n in faults]
        tally.add(check.reason, len(faults), shown[:_SHOWN])
    return target if faults else file


def _target(file, folder, step):
    """Path of a copy that is no gzip file, in a new folder."""
    target = Path(folder, step, file.name.removesuffix(".gz"))
    target.parent.mkdir()
    return target
