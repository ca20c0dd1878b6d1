"""A log of any format as one table with our own columns."""

from collections.abc import Sequence

import pyarrow as pa

from recrawl.log import reading
from recrawl.log.database import MEMORY, sql
from recrawl.log.formats.source import Source
from recrawl.log.output import check_output, table
from recrawl.log.tally import FAILED
from recrawl.types import PathLike

__all__ = ["convert"]

_ROWS = 100_000  # at a time


def convert(
    path: PathLike | Sequence[PathLike] | Source,
    output: PathLike,
    *,
    force: bool = False,
    memory: str = MEMORY,
) -> tuple[str, dict[str, int]]:
    r"""Read a log, and write it as a table that all functions take.

    Parameters
    ----------
    path : path, sequence of path, or Source
        As in `estimate`.
    output : path
        A Parquet file (or CSV, if the name says so) to write, sorted by page and
        time: url, time, changed (null for failed fetches), status (-1 of a fetch that
        failed without one), importance, host, start (of an interval that no crawl
        began, else null) and last_modified (when the page last changed, as known at
        `time`, or null).
    force : bool, default False
        Overwrite an output that exists.
    memory : str, default "50%"
        As in `estimate`.

    Returns
    -------
    what : str
        The format that the files were taken for.
    counts : dict of int
        Number of rows used ("rows"), and of those left out, by reason.

    Raises
    ------
    FileExistsError, FileNotFoundError, ValueError, OSError
        As `estimate`.

    Warns
    -----
    BadRowsWarning
        Rows were left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, output = Path(folder, "log.csv"), Path(folder, "log.parquet")
    ...     _ = log.write_text("url,time,etag\na,2026-01-01,x\na,2026-01-02,y\n")
    ...     what, counts = convert(log, output)
    ...     pq.read_table(output)["changed"].to_pylist()
    [False, True]
    """
    source = Source.of(path)
    check_output(output, force, reading.inputs(source))
    with (
        reading.gathered(source, memory=memory) as (connection, tally, what),
        table(output, force) as out,
    ):
        tally.report(source)
        rows = connection.sql(sql("convert"), params={"failed": FAILED})
        for batch in rows.to_arrow_reader(_ROWS):
            out.write(pa.Table.from_batches([batch]))
    return what, dict(tally.counts)
