"""Parquet files that are whole or absent."""

import contextlib
import json
from pathlib import Path

import pyarrow.parquet as pq

from paperlib import __version__
from paperlib.files import replacing


class _Writer:
    """Writes tables to a Parquet file, which is there when all is written, and not before."""

    def __init__(self, path):
        self._path, self._writer = path, None

    def write(self, table):
        if self._writer is None:
            # limits of URLs help no reader, and cost as much as the rest of their encoding
            limits = [name for name in table.column_names if name != "url"]
            self._writer = pq.ParquetWriter(
                self._path,
                table.schema,
                compression="snappy",
                use_dictionary=False,
                write_statistics=limits,
            )
        self._writer.write_table(table)

    def describe(self, what):
        self._writer.add_key_value_metadata(
            {"paperlib": json.dumps({"version": __version__} | what)}
        )

    def close(self):
        if self._writer is not None:
            self._writer.close()


def _check_absent(path, force):
    if Path(path).exists() and not force:
        raise FileExistsError(
            f"{path} exists; say --force (force=True) to write over it"
        )


@contextlib.contextmanager
def _parquet(path, force):
    _check_absent(path, force)
    with replacing(path) as temporary, contextlib.closing(_Writer(temporary)) as writer:
        yield writer
