"""Results that several notebooks of a build need are computed once."""

import contextlib
import functools
import hashlib
import os
import pickle
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.science.policies import Greedy
from paperfigs.project import SHARED_RESULTS
from recrawl.science.simulate import World
from recrawl.types import Array, Ints

__all__ = ["Shared", "SharedSlots"]

_PATIENCE = 60.0  # seconds to wait until another notebook has written


class Shared:
    """Results on disk, for the notebooks of one build.

    A result is found by all that it depends on: what the caller says, which is
    compared bit for bit, and the code of paperlib. Where no build runs, as in
    Jupyter, everything is computed and nothing is kept.

    Examples
    --------
    >>> from paperfigs.sharing import Shared
    >>> shared = Shared()
    >>> shared(("a sum", 1, 2), lambda: 1 + 2)
    3
    """

    def __init__(self) -> None:
        self._file = os.environ.get(SHARED_RESULTS)
        if self._file:
            self._code = _code()

    def __call__(self, depends_on: Any, compute: Callable[[], Any]) -> Any:
        """Return the result of `compute`, or the one kept of an equal call.

        Parameters
        ----------
        depends_on : picklable
            All that the result depends on: numbers, texts, arrays, policies,
            generators of random numbers in their present state. Two different
            results never have this in common.
        compute : callable
            Without arguments; what it returns can be pickled.

        Returns
        -------
        object
            The result.
        """
        if not self._file:
            return compute()
        key = hashlib.sha256(self._code + pickle.dumps(depends_on)).digest()
        with contextlib.closing(
            sqlite3.connect(self._file, timeout=_PATIENCE)
        ) as database:
            # A power cut may damage the file: the next build begins a new one.
            database.execute("PRAGMA synchronous = OFF")
            database.execute(
                "CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, result BLOB)"
            )
            found = database.execute("SELECT result FROM results WHERE key = ?", [key])
            if row := found.fetchone():
                return pickle.loads(row[0])
            result = compute()
            with database:
                database.execute(
                    "INSERT OR REPLACE INTO results VALUES (?, ?)",
                    [key, pickle.dumps(result)],
                )
        return result


class SharedSlots:
    """GREEDY for figures whose pages have the same rates, and other signals.

    GREEDY uses no signals, so it crawls the same pages in all of them.

    Parameters
    ----------
    policy : Greedy
        The policy.

    Examples
    --------
    >>> from recrawl.science import policies, signals, simulate
    >>> from paperfigs.sharing import SharedSlots
    >>> pages = signals.SignalledPages([1.0, 2.0], 1.0, recall=0.5, false_rate=0.1)
    >>> policy = SharedSlots(policies.Greedy(pages))
    >>> world = simulate.draw_world(pages, 3.0, rng=1)
    >>> simulate.crawl(world, policy, bandwidth=1.0).page.tolist()
    [1, 0, 1]
    """

    def __init__(self, policy: Greedy) -> None:
        self._policy = policy

    def choose(self, world: World, time: Array, last: Array) -> Ints:
        """Page of each slot, as `Greedy.choose` or an equal call found them.

        Parameters
        ----------
        world : World
            When pages come and go.
        time : ndarray, shape (n_slots,), time
            The slots.
        last : ndarray, shape (n_pages,), time
            Last crawl of each page, -inf for none.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            -1 where no page can be crawled.
        """
        pages = replace(self._policy.pages, recall=0.0, false_rate=0.0)
        without_signals = replace(self._policy, pages=pages)
        depends_on = without_signals, world.start, world.stop, time, last

        def short():
            slots = self._policy.choose(world, time, last)
            return slots.astype(np.min_scalar_type(-last.size))

        return Shared()(depends_on, short).astype(np.int64)


@functools.cache  # read once: a process keeps the code that it has imported
def _code():
    """Checksum of the code of paperlib, which may change during a build."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
