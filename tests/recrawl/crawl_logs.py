"""Helpers of the tests of crawl logs: files of a log, and what is read back."""

import csv
import gzip
import io
import itertools
import warnings

import numpy as np
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


def read(path, **options):
    """Read a log; its pages by URL, their columns, the counts, and the warnings.

    A page is a list of (days from `START` to the crawl, interval, changed, age).
    """
    (crawls, columns, counts), messages = recorded(_read, path, **options)
    return crawls, columns, counts, messages


def _read(path, **options):
    crawls, columns = {}, {}
    with opened(path, **options) as log:
        for batch in log.batches():
            history, days = batch.history, (batch.time / 1e6 - START) / 86_400
            age = [None if np.isnan(a) else round(a, 9) for a in history.all_ages]
            parts = days.tolist(), history.interval.tolist(), history.changed.tolist()
            rows = list(zip(*parts, age, strict=True))
            ends = itertools.pairwise(history.offsets)
            for page, (start, end) in zip(batch.page.to_pylist(), ends, strict=True):
                crawls[page["url"]], columns[page["url"]] = rows[start:end], page
        assert log.n_pages == len(crawls)
    return crawls, columns, dict(log.tally.counts)
