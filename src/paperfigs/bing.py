"""The Bing crawl data set of Kolobov et al. (2019), read with DuckDB."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperfigs.files import PathLike

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


def read(
    folder: PathLike, n_pages: int, *, rng: Any = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Read a sample of pages that were crawled daily for 14 weeks.

    Parameters
    ----------
    folder : path
        The unpacked text files of the data set, described at
        https://github.com/microsoft/Optimal-Freshness-Crawl-Scheduling.
        If the archive has no known rates, make an empty file of them.
    n_pages : int
        Number of pages, drawn without replacement.
    rng : None, int or Generator, optional
        Source of the sample.

    Returns
    -------
    change_rate : ndarray of float, shape (n_pages,)
        Maximum likelihood estimates, 1/day; 0 and inf for a page that changed
        at none or at all of its crawls.
    importance : ndarray of float, shape (n_pages,)
        Importances.
    known_rate : ndarray of float, shape (n_pages,)
        Change rates from sitemaps, 1/day; NaN for a page without one.
    """
    import duckdb  # of the extra "log"

    from paperlib.estimators import mle
    from paperlib.processes import History

    parameters = {
        "folder": str(folder),
        "seed": int(np.random.default_rng(rng).integers(2**31)),
        "n_pages": n_pages,
    }
    with duckdb.connect() as database:
        pages = database.execute(_SAMPLE, parameters).fetchnumpy()
    history = History(
        np.concatenate(pages["interval"]),
        np.concatenate(pages["changed"]),
        offsets=np.cumsum([0, *map(len, pages["interval"])]),
    )
    return mle(history), pages["importance"], pages["known_rate"]
