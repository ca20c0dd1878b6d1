"""Make bing_pages.csv, a sample of the Bing crawl data set of Kolobov et al. (2019).

README.md describes its text files, some 40 GB. With these in one folder::

    python data/make_bing_pages.py FOLDER

All files are read, with DuckDB, which takes some minutes; hence the sample is made
once. Pages that changed at none or at all of their crawls are left out, as in
section 6 of Upadhyay et al. (2020). The rates are maximum likelihood estimates.
"""

import argparse

import duckdb
import numpy as np

from paperfigs import traces
from paperfigs.files import sha256, write_atomic
from paperlib.estimators import mle
from paperlib.processes import History

SAMPLE = traces.DATA / "bing_pages.csv"

# Lines that cannot be read or used are left out. The sample is ordered by `hash`,
# because it must not depend on the number of threads.
_SAMPLE = r"""
WITH importance AS (
    SELECT id, first(value) AS importance
    FROM read_csv($folder || '/urlid_imp.txt', delim = '\t', header = false,
        columns = {id: 'BIGINT', value: 'DOUBLE'}, auto_detect = false,
        ignore_errors = true)
    WHERE value >= 0 AND value < 'inf' GROUP BY id
), rate AS (
    SELECT id, first(value) AS known_rate
    FROM read_csv($folder || '/urlid_chrate_compl_obs_hist.txt', delim = '\t',
        header = false, columns = {id: 'BIGINT', value: 'DOUBLE'},
        auto_detect = false, ignore_errors = true)
    GROUP BY id
), history AS (
    SELECT id, first(try(from_json(value, '[["DOUBLE"]]'))) AS crawls
    FROM read_csv($folder || '/urlid_offset_history.txt', delim = '\t', quote = '',
        header = false, columns = {id: 'BIGINT', start: 'DOUBLE', value: 'VARCHAR'},
        auto_detect = false, ignore_errors = true)
    GROUP BY id
)
SELECT importance, coalesce(known_rate, 'nan'::DOUBLE) AS known_rate,
    [crawl[1] FOR crawl IN crawls] AS interval,
    [crawl[2] = 1 FOR crawl IN crawls] AS changed
FROM history JOIN importance USING (id) LEFT JOIN rate USING (id)
WHERE len(crawls) > 0 AND list_bool_and([coalesce(len(crawl) = 2 AND crawl[1] > 0
    AND crawl[1] < 'inf' AND crawl[2] IN (0, 1), false) FOR crawl IN crawls])
ORDER BY hash(id, $seed), id LIMIT $n_pages
"""


def read(folder, n_pages, *, seed):
    """Change rates and importances of a sample of pages, and rates from sitemaps.

    The sample has at most n_pages pages that have an estimate. Rates are in 1/day; a
    page without a known rate has NaN.
    """
    # Twice as many as needed, because some have no estimate.
    parameters = {"folder": str(folder), "seed": seed, "n_pages": 2 * n_pages}
    with duckdb.connect() as database:
        pages = database.execute(_SAMPLE, parameters).fetchnumpy()
    history = History(
        np.concatenate(pages["interval"]),
        np.concatenate(pages["changed"]),
        offsets=np.cumsum([0, *map(len, pages["interval"])]),
    )
    rate = mle(history)
    fits = np.flatnonzero((rate > 0) & (rate < np.inf))[:n_pages]
    return rate[fits], pages["importance"][fits], pages["known_rate"][fits]


def write(path, columns):
    """Write the sample and its checksum."""
    lines = [",".join(map(repr, row)) for row in np.transpose(columns).tolist()]
    text = "\n".join(["rate,importance,known_rate", *lines]) + "\n"
    write_atomic(path, text)
    write_atomic(f"{path}.sha256", f"{sha256(path)}  {path.name}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write(SAMPLE, read(given.folder, given.pages, seed=given.seed))
