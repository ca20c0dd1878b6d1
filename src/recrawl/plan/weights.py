"""Importance of pages, from a table of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.log.database import database, first_line, sql
from recrawl.log.formats.tables import selected
from recrawl.log.output import sound
from recrawl.types import Array, PathLike

__all__ = ["weighted"]

_MEMORY = "1GiB"
_SHOWN = 3  # URLs that name no page


def weighted(path: PathLike, url: Any, values: Array) -> tuple[Array, dict[str, Any]]:
    r"""Importance of pages by a table, where it names them.

    Parameters
    ----------
    path : path
        CSV (with commas, semicolons, tabs or bars), also gzipped, or Parquet with
        the columns url and importance; an empty cell, or a word such as NA, says
        nothing of its page.
    url : pyarrow.ChunkedArray of str, shape (n_pages,)
        The pages.
    values : ndarray, shape (n_pages,)
        Of the pages that the table does not name.

    Returns
    -------
    values : ndarray, shape (n_pages,)
        Of all pages.
    counts : dict
        Number of pages that the table names ("named") and others ("others"), and
        of its rows that name no page ("unknown"), with the "first" URLs of these.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        No table with these columns; a URL that occurs twice; an importance that is
        negative or not finite; no row that names a page.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "views.csv")
    ...     _ = table.write_text("url,importance\nb,30\nx,5\n")
    ...     weighted(table, pa.chunked_array([["a", "b"]]), np.ones(2))
    (array([ 1., 30.]), {'named': 1, 'others': 1, 'unknown': 1, 'first': ['x']})
    """
    names, given, texts = _read(path)
    wrong = np.flatnonzero(~((given >= 0) & (given < np.inf)))
    if wrong.size:
        raise ValueError(
            f"importance in {path} must be non-negative and finite, got "
            f"{texts[wrong[0]].as_py()!r} of {names[wrong[0]].as_py()!r}"
        )
    if pc.count_distinct(names, mode="all").as_py() < len(names):
        counts = pc.value_counts(names)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"]
        raise ValueError(f"{path} must name each URL once, got {twice.as_py()!r} again")
    row = pc.index_in(url.cast(pa.large_string()), value_set=names).combine_chunks()
    named = row.is_valid().to_numpy(zero_copy_only=False)
    if not named.any():
        raise ValueError(
            f"{path} must name pages of the rates, got none of {len(url):,}; its "
            f"first URL is {names[0].as_py() if len(names) else None!r}"
        )
    values = np.array(values, dtype=float)
    row = row.drop_null().to_numpy()
    values[named] = given[row]
    unknown = np.delete(np.arange(len(names)), row)
    counts = {"named": row.size, "others": named.size - row.size}
    first = names.take(pa.array(unknown[:_SHOWN])).to_pylist()
    return values, counts | {"unknown": unknown.size, "first": first}


def _read(path):
    """URLs, their importance (NaN where it is no number), and its texts."""
    with database(_MEMORY) as (connection, _):
        with sound(path):
            query = selected(connection, Path(path), ("url", "importance"))
        connection.execute(sql("tables"))
        numbers = (
            "select *, coalesce(try_cast(importance as double), 'nan') as number "
            f"from ({query}) where not is_nothing(text_of(importance))"
        )
        try:
            table = connection.sql(numbers).to_arrow_table()
        except duckdb.Error as error:
            raise ValueError(f"{path} cannot be read: {first_line(error)}") from None
    names = table["url"].cast(pa.large_string())  # all may be more than 2 GiB
    return names.combine_chunks(), table["number"].to_numpy(), table["importance"]
