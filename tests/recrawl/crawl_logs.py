"""Helpers of the tests of crawl logs: files of a log, and what is read back."""

import csv
import gzip
import io
import warnings

import pyarrow as pa
import pyarrow.parquet as pq

from recrawl import BadRowsWarning, ColumnsWarning
from recrawl.log.reading import opened

START = 1_577_836_800  # seconds since 1970: 2020-01-01, when the logs of tests begin


def write(path, content):
    """Write text or bytes to a file, gzipped if its name says so."""
    content = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def table(rows, columns=("url", "time", "changed"), delimiter=","):
    """Rows as the text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(
        [columns, *rows]
    )
    return out.getvalue()


def parquet(path, **columns):
    """Write columns to a Parquet file."""
    pq.write_table(pa.table(columns), path)
    return path


def recorded(function, *arguments, **options):
    """Call a function that may warn of a log; its result, and the messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = function(*arguments, **options)
    told = BadRowsWarning, ColumnsWarning
    assert all(issubclass(w.category, told) for w in caught)
    return found, [str(w.message) for w in caught]


def all_pages(path):
    """All pages of a log, as one batch."""
    with opened(path) as log:
        return log.sample(log.n_pages)
