"""Sitemaps and feeds as sites write them: XML that may be damaged at any place.

Each entry is given to expat by itself, so that a fault in one spoils no other:
many generators write & in a URL as it is. Where the entries begin is found in one
pass, for a parser of the whole file would take everything behind a comment that
is never closed for that comment. Time and memory grow as the size of the file.
"""

import contextlib
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from xml.parsers import expat

from recrawl.log.formats.base import unpacked
from recrawl.log.formats.records import LONGEST, TOO_LONG
from recrawl.types import PathLike

__all__ = ["document", "root"]

_LARGEST = 50 << 20  # bytes of a file, the most that the protocol of sitemaps allows
_MOST = 200_000  # entries of a file; the protocol allows 50,000
_ENDS = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
# What may precede the root: comments, processing instructions, a document type. None
# is looked at twice (*+), so that the time is linear where one has no end.
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>\s*(?:<!--.*?-->|<\?.*?\?>|<![^>\[]*+(?:\[.*?\]\s*)?>))*+"
    rb"\s*<([\w.-]+:)?([\w.-]+)",
    re.DOTALL,
)
# No entity but those of XML is ever replaced, whatever a document type declares.
_NO_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});)")


def root(head: bytes) -> str:
    """Name of the first element of a file of XML.

    Parameters
    ----------
    head : bytes
        The beginning of the file.

    Returns
    -------
    str
        Without its prefix; empty if the file does not begin as XML does.

    Examples
    --------
    >>> root(b"<?xml version='1.0'?><!-- <a> --><rss version='2.0'>")
    'rss'
    """
    found = _ROOT.match(head)
    return found[2].decode() if found else ""


def document(
    path: PathLike, names: tuple[str, ...]
) -> tuple[list[tuple], Iterator[tuple[dict[str, str], str]], str]:
    """Read a sitemap or a feed.

    Parameters
    ----------
    path : path
        The file, plain or gzipped.
    names : tuple of str
        Names of its entries.

    Returns
    -------
    head : list of tuple
        Of each element that is closed before the first entry the parent, or an empty
        string, name, text and attributes; names in small letters, without prefixes.
    entries : iterator of tuple of dict and str
        The texts of an entry by the names of its elements, and why it cannot be
        read, or an empty string.
    fault : str
        Why entries may be missing, or empty.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sitemap.xml")
    ...     _ = path.write_text("<urlset><url><loc>http://a/?b&c</loc></url></urlset>")
    ...     _, entries, fault = document(path, ("url",))
    ...     list(entries), fault
    ([({'loc': 'http://a/?b&c'}, '')], '')
    """
    with unpacked(path) as file:
        data = file.read(_LARGEST + 1)
    found = _ROOT.match(data)
    prefix, name = found.groups(b"") if found else (b"", b"")
    # entries of RSS 1.0 lack the prefix of their root
    prefix = b"" if name == b"RDF" else prefix
    tag = prefix + b"(?:" + "|".join(names).encode() + b")"
    content = _without_sections(data)
    starts = re.finditer(b"<" + tag + rb"(?=[\s>])", content)
    places = [found.start() for found in islice(starts, _MOST + 1)]
    rest = content[places[-1] if places else 0 :].rstrip()
    closed = re.search(b"</" + tag, rest)
    fault = ""
    if len(data) > _LARGEST:
        fault = f"it must have at most {_LARGEST:,} bytes, and has more"
    elif len(places) > _MOST:
        fault = f"it must have at most {_MOST:,} entries, and has more"
        closed = None
    elif not re.search(rb"(?:</([\w.-]+:)?" + name + rb"\s*|/)>$", rest):
        fault = "its last element is not closed"
    if closed or not fault:
        places.append(len(content))
    pieces = (content[begin:end] for begin, end in pairwise(places))
    entries = (_texts(piece, names) for piece in pieces)
    return _elements(content[: places[0]] if places else content), entries, fault


def _without_sections(data):
    """A text without comments, and with CDATA as other text.

    Where one has no end, only its beginning is taken away.
    """
    parts, place = [], 0
    last = {begin: data.rfind(end) for begin, end in _ENDS.items()}
    for found in re.finditer(rb"<!--|<!\[CDATA\[", data):
        begin = found[0]
        if found.start() < place:
            continue
        parts.append(data[place : found.start()])
        place = found.end()
        if place <= last[begin]:
            end = data.find(_ENDS[begin], place)
            if begin != b"<!--":
                text = data[place:end].replace(b"&", b"&amp;")
                parts.append(text.replace(b"<", b"&lt;"))
            place = end + len(_ENDS[begin])
    return b"".join([*parts, data[place:]])


def _texts(piece, names):
    """Texts of the elements right inside of an entry, and why they cannot be read."""
    elements = _elements(piece)
    if len(piece) > LONGEST and (not elements or elements[-1][0]):
        return {}, TOO_LONG
    texts = {}
    for parent, name, text, _ in elements:
        if parent in names:
            texts.setdefault(name, text)
    return texts, ""


def _elements(piece):
    """The elements that end before the first fault, in the order of their ends."""
    found, opened = [], []

    def start(name, attributes):
        if opened:
            attributes.setdefault("xml:base", opened[-1][2].get("xml:base", ""))
        opened.append((name.rpartition(":")[2].lower(), [], attributes))

    def end(_):
        name, texts, attributes = opened.pop()
        parent = opened[-1][0] if opened else ""
        found.append((parent, name, "".join(texts).strip(), attributes))

    def text(data):
        if opened:
            opened[-1][1].append(data)

    try:
        content = piece[:LONGEST].decode("utf-8-sig")
    except UnicodeDecodeError:
        content = piece[:LONGEST].decode("windows-1252", "replace")
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    with contextlib.suppress(expat.ExpatError):
        parser.Parse(_NO_ENTITY.sub("&amp;", content.lstrip()), True)
    return found
