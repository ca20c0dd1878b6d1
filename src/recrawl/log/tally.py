"""Rows of a log by what became of them, and the warning of bad ones."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recrawl.types import PathLike
from recrawl.units import shown

__all__ = [
    "DATED_NOW",
    "FAILED",
    "KNOWN",
    "OVERLAP",
    "TORN",
    "UNSIGNED",
    "USED",
    "BadRowsWarning",
    "Tally",
    "warn",
]

# Reasons that the code distinguishes; `sql/check_rows.sql` has the others.
USED = "rows"
FAILED = "of failed fetches"
KNOWN = "not after the last row of their page in the state"
UNSIGNED = (
    "of fetches that cannot be compared: they lack the digest, ETag or date that is "
    "compared for their page"
)
DATED_NOW = "of fetches that cannot be compared: Last-Modified is when they were made"
TORN = "two crawls at one time that disagree, taken as changed"
OVERLAP = "whose interval begins before the page's previous row, so that it is left out"
# Of rows that count as crawls all the same.
_USED_IN_PART = (
    OVERLAP,
    "whose changed is neither yes nor no",
    "whose importance is not a number from 0",
    "whose last_modified cannot be read",
    "whose last_modified is after its time by more than a day",
)

_SHOWN = 3  # places named in a warning
_OURS = ("recrawl", "contextlib")  # between the user's line and a warning


class BadRowsWarning(UserWarning):
    """Rows that were left out or changed: how many, why, and the first places.

    Also pages whose URL names no host, among others that have one.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", BadRowsWarning)  # on purpose
    """


class Tally:
    """Numbers of rows by what became of them, and the first places of each.

    Attributes
    ----------
    counts : collections.Counter
        Number of rows by reason; those used under "rows".
    places : dict of list
        The first places by reason, ``(file, row, text)`` or
        ``(url, time, text)``, in order.
    failed : collections.Counter
        Number of failed fetches by status of HTTP; None of those without one.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add("rows", 7)
    >>> tally.add("without a url", 2, [(0, 5, "log.csv row 5: ,0,1")])
    >>> dict(tally.counts)
    {'rows': 7, 'without a url': 2}
    """

    def __init__(self) -> None:
        self.counts, self.places, self.failed = Counter(), {}, Counter()

    def add(self, reason: str, n: int, places: Sequence[tuple[Any, ...]] = ()) -> None:
        """Count more rows of one kind.

        Parameters
        ----------
        reason : str
            What became of them.
        n : int
            How many they are.
        places : sequence of tuple, optional
            Where the first of them are.
        """
        self.counts[reason] += n
        if places:
            places = [*self.places.get(reason, []), *places]
            self.places[reason] = sorted(places)[:_SHOWN]

    def update(self, other: Tally) -> None:
        """Add what another tally has counted.

        Parameters
        ----------
        other : Tally
            Of another part of the log.
        """
        for reason, n in other.counts.items():
            self.add(reason, n, other.places.get(reason, ()))
        self.failed.update(other.failed)

    def report(self, path: PathLike, *, state: PathLike | None = None) -> None:
        """Warn of bad rows, once for each place.

        Parameters
        ----------
        path : path
            The log, to be named.
        state : path, optional
            What earlier logs left. If it is there, failed fetches are news enough.

        Raises
        ------
        ValueError
            Not a single row could be used.

        Warns
        -----
        BadRowsWarning
            Rows with a place to show: not failed fetches.
        """
        left_out, in_part = [], []
        for reason, places in sorted(self.places.items()):
            where = "; ".join(shown(text) for *_, text in places)
            n = f"{self.counts[reason]:,}"
            if reason == TORN:
                warn(f"{n} times {reason} ({where})", BadRowsWarning)
            else:
                what = in_part if reason in _USED_IN_PART else left_out
                what.append(f"{n} {reason} ({where})")
        for begin, rows in (
            (f"rows left out of {path}: ", left_out),
            (f"rows of {path} that are crawls all the same: ", in_part),
        ):
            if rows:
                warn(begin + ", ".join(rows), BadRowsWarning)
        self.places.clear()
        known = state is not None and Path(state).exists()
        if not self.counts.keys() & {USED, KNOWN, *_USED_IN_PART, *[FAILED] * known}:
            found = ", ".join(f"{n:,} {why}" for why, n in sorted(self.counts.items()))
            raise ValueError(
                f"{path} must hold at least one row that can be used, "
                f"got {found or 'none at all'}"
            )


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package.

    Parameters
    ----------
    message : str
        The warning.
    category : type
        Its class.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
