"""How crawlers store what they have seen: one small file a format.

`FORMATS` are tried in their order on a file; tables with the
columns of `recrawl.estimate` come last, for they are known by their names.
"""

from __future__ import annotations

from pathlib import Path

from recrawl.log.formats import (
    cdx,
    cdxj,
    changedetection,
    commoncrawl,
    feed,
    frontier,
    git,
    heritrix,
    nutch,
    readseg,
    sitemap,
    storm,
    tables,
    warc,
    wayback,
)
from recrawl.log.formats.base import Format, beginning

__all__ = ["FORMATS", "NAMES", "recognise"]

_MODULES = (
    nutch,
    readseg,
    storm,
    frontier,
    heritrix,
    warc,
    cdx,
    cdxj,
    wayback,
    commoncrawl,
    changedetection,
    sitemap,
    feed,
    git,
    tables,
)

FORMATS = tuple(format for module in _MODULES for format in module.FORMATS)
NAMES = tuple(dict.fromkeys(format.name for format in FORMATS))


def recognise(path: Path, name: str = "auto") -> Format | None:
    """Find out which format a file is of.

    Parameters
    ----------
    path : pathlib.Path
        A file, or a folder that one program keeps as a whole.
    name : str, default "auto"
        "auto", or the name of a format, which the file must then not contradict.

    Returns
    -------
    Format or None
        None for a file that no format recognises.

    Raises
    ------
    ValueError
        The file is of another format than `name`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("url,time,changed")
    ...     recognise(path).what
    'a table in text'
    """
    head = beginning(path)
    found = [each for each in FORMATS if each.recognises(head, path)]
    named = [each for each in FORMATS if name in ("auto", each.name)]
    if right := [each for each in found if each in named or path.is_dir()]:
        return right[0]
    if found:
        raise ValueError(f"{path} must be {named[0].what}, looks like {found[0].what}")
    return None if name == "auto" else named[0]
