"""What several readers of formats share."""

import contextlib
import json
from typing import Any

from recrawl.log.database import quoted

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
        found = json.loads(head.lstrip().partition(b"\n")[0])
        if isinstance(found, dict):
            return found
    return {}


def fields(*paths: Any, metadata: str = "$.metadata", keys: Any = ()) -> str:
    """Query of the fields of the JSON objects in a file, one object a line.

    Parameters
    ----------
    *paths : str
        JSON paths of the fields.
    metadata : str
        The path of an object whose keys are read in any case: programs write them in
        the case of their settings, or in small letters.
    keys : sequence of str
        Those keys, in small letters.

    Returns
    -------
    str
        SELECT of row, given, the list f of the texts at the paths, which is null where
        a line is no JSON, and the list m of the values of the keys as texts: of lists,
        also those of URLFrontier, {"values": []}, their first.

    Examples
    --------
    >>> print(fields("$.url", "$.status", keys=["code"]))
    select
        n as row,
        line as given,
        try(json_extract_string(line, ['$.url', '$.status'])) as f,
        try(json_extract(line, '$.metadata')) as object,
        try_cast(object as map(varchar, json)) as metadata,
        list_transform(['code']::varchar[], lambda key: list_filter(
            map_entries(metadata), lambda entry: lower(entry.key) = key
        )[1].value) as found,
        list_transform(found, lambda value: value_of(case json_type(value)
            when 'ARRAY' then value ->> '$[0]'
            when 'OBJECT' then value ->> '$.values[0]'
            else value ->> '$'
        end)) as m
    from lines(getvariable('file'))
    where line <> ''
    """
    listed, listed_keys = (", ".join(map(quoted, each)) for each in (paths, keys))
    return f"""\
select
    n as row,
    line as given,
    try(json_extract_string(line, [{listed}])) as f,
    try(json_extract(line, {quoted(metadata)})) as object,
    try_cast(object as map(varchar, json)) as metadata,
    list_transform([{listed_keys}]::varchar[], lambda key: list_filter(
        map_entries(metadata), lambda entry: lower(entry.key) = key
    )[1].value) as found,
    list_transform(found, lambda value: value_of(case json_type(value)
        when 'ARRAY' then value ->> '$[0]'
        when 'OBJECT' then value ->> '$.values[0]'
        else value ->> '$'
    end)) as m
from lines(getvariable('file'))
where line <> \'\'"""
