"""What several readers of formats share."""

import codecs
import contextlib
import json
from typing import Any

from recrawl.database import quoted

__all__ = ["NEVER", "fields", "first_object"]

#: Reason of pages that a crawler knows, but has not fetched.
NEVER = "of pages that were never fetched"


def first_object(head: bytes) -> dict[str, Any]:
    r"""Object in the first line of a file of JSON lines.

    Parameters
    ----------
    head : bytes
        First bytes of the file.

    Returns
    -------
    dict
        Empty if the line holds no object.

    Examples
    --------
    >>> first_object(b'{"url": "http://a/"}\n{"url": "http://b/"}')
    {'url': 'http://a/'}
    >>> first_object(b"url,time,changed")
    {}
    """
    with contextlib.suppress(ValueError, RecursionError):
        text = head.removeprefix(codecs.BOM_UTF8).lstrip()
        found = json.loads(text.partition(b"\n")[0])
        if isinstance(found, dict):
            return found
    return {}


def fields(*paths: Any, metadata: tuple[str, ...] = ()) -> str:
    """Query of the fields of the JSON objects in a file, one object a line.

    Parameters
    ----------
    *paths : str
        JSON paths of the fields.
    metadata : tuple of str
        Paths, in small letters, of dates and numbers whose keys are read in any
        case: programs write them in the case of their settings, or in small letters.

    Returns
    -------
    str
        SELECT of row, given, and the lists f and m of the texts at the paths, which
        are null where a line is no JSON.

    Examples
    --------
    >>> print(fields("$.url", "$.status"))
    select
        n as row,
        line as given,
        try(json_extract_string(line, ['$.url', '$.status'])) as f,
        try(json_extract_string(lower(line), []::varchar[])) as m
    from lines(getvariable('file'))
    where line <> ''
    """
    listed, any_case = (", ".join(map(quoted, each)) for each in (paths, metadata))
    return f"""\
select
    n as row,
    line as given,
    try(json_extract_string(line, [{listed}])) as f,
    try(json_extract_string(lower(line), [{any_case}]::varchar[])) as m
from lines(getvariable('file'))
where line <> \'\'"""
