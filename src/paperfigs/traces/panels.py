"""Panels: the change times of many pages, for experiments on real histories.

One panel is shipped (`panel`: packages of Debian); `jodie` reads files in the
format of the JODIE data sets, such as the edits of a thousand Wikipedia pages.
`Panel.segment` reads a history of any length from a page's window, and
`field.real_worlds` makes worlds of such histories.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from recrawl import checks
from recrawl.files import verified
from paperfigs.traces.files import DATA, instant
from recrawl.types import Array, PathLike, Seed

__all__ = ["Panel", "jodie", "panel"]

# Of the random pairs of pages and importances.
_PAIRING = 20
_JODIE = "user_id,item_id,timestamp,state_label"


@dataclass(frozen=True, eq=False)
class Panel:
    """Change times of many pages, each in its own window of observation.

    Parameters
    ----------
    time : ndarray of float, shape (n_changes,), days
        Change times since the start of the page's window, after 0: page after
        page, rising for each page.
    offsets : ndarray of int, shape (n_pages + 1,)
        The changes of page i are ``time[offsets[i] : offsets[i + 1]]``.
    start : ndarray of datetime64[s], shape (n_pages,)
        Starts of the windows, UTC; NaT where they are not known.
    window : ndarray of float, shape (n_pages,), days
        Lengths of the windows.
    importance : ndarray of float, shape (n_pages,)
        Importances, with mean 1.

    Notes
    -----
    The arrays are read-only.

    Examples
    --------
    >>> pages = panel()
    >>> pages.n_pages, pages.time.size
    (106, 7496)
    >>> pages.times(0)[:3].round(1)
    array([410. , 419.5, 426.6])
    """

    time: np.ndarray
    offsets: np.ndarray
    start: np.ndarray
    window: np.ndarray
    importance: np.ndarray

    def __post_init__(self):
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return self.window.size

    @property
    def change_rate(self) -> Array:
        """Changes per day in the window of each page, shape (n_pages,)."""
        return np.diff(self.offsets) / self.window

    def times(self, page: int) -> Array:
        """Change times of one page.

        Parameters
        ----------
        page : int
            Number of the page.

        Returns
        -------
        ndarray of float, shape (n_changes,), days
            Since the start of its window.
        """
        page = range(self.n_pages)[page]  # an IndexError, or counted from the end
        return self.time[self.offsets[page] : self.offsets[page + 1]]

    def segment(self, page: int, horizon: float, *, rng: Seed = None) -> Array:
        """Part of one page's history, from a uniformly random time on.

        After the end of the window comes its beginning, so that every change
        is as likely as any other, and the expected number of changes is that of
        the page's change rate. Two intervals that do not belong together meet
        at that place. A window shorter than `horizon` repeats.

        Parameters
        ----------
        page : int
            Number of the page.
        horizon : float, days
            Length of the part, positive.
        rng : None, int, SeedSequence or Generator, optional
            Source of the random time.

        Returns
        -------
        ndarray of float, days
            Change times in [0, `horizon`], rising.

        Raises
        ------
        ValueError
            A horizon that is not positive and finite.

        Examples
        --------
        >>> panel().segment(0, 365.0, rng=1).round(1)
        array([129.3, 130.1, 158.7, 179.4])
        """
        horizon = checks.scalar(checks.positive, "horizon", horizon)
        window = self.window[page]
        begin = np.random.default_rng(rng).random() * window
        once = np.sort((self.times(page) - begin) % window)
        laps = np.arange(np.ceil(horizon / window))
        time = (once + window * laps[:, np.newaxis]).ravel()
        return time[time <= horizon]


def panel(*, min_changes: int = 30) -> Panel:
    """Change times of Debian packages, with npm download counts as importances.

    A change is an upload of the package to Debian's unstable or experimental
    suite. A page's window begins with an upload, which is not counted, and ends on
    2023-02-12. The importances are monthly downloads of other software: 455
    of the 10,000 largest counts of npm, **paired with the pages at random**.
    ``data/README.md`` says what was selected and what is missing.

    Parameters
    ----------
    min_changes : int, default 30
        Pages with fewer changes are left out; 1 keeps all 455. Many changes in a
        window mean a fast page or a long window.

    Returns
    -------
    Panel
        Pages in the order of their first uploads.

    Raises
    ------
    ValueError
        A file differs from its checksum; no page has so many changes.

    Examples
    --------
    >>> pages = panel(min_changes=1)
    >>> pages.n_pages, pages.time.size
    (455, 11272)
    >>> float(np.median(pages.change_rate).round(4))
    0.0064
    """
    end, page, moment = _read_changes(DATA / "debian_panel.csv")
    downloads = _read_downloads(DATA / "npm_downloads.csv")
    first = np.flatnonzero(np.diff(page, prepend=-1))
    start = moment[first]
    time = (moment - start[page]) / np.timedelta64(1, "D")
    counted = np.delete(np.arange(page.size), first)
    return _selected(
        page[counted],
        time[counted],
        start,
        (end - start) / np.timedelta64(1, "D"),
        np.random.default_rng(_PAIRING).permutation(downloads),
        min_changes,
    )


def _lines(path):
    """Comments of a file, as a dictionary, and the lines below its title line."""
    verified(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
    return dict(comments), lines[len(comments) + 1 :]


def _read_changes(path):
    """End of the windows, and page and time of each upload."""
    comments, lines = _lines(path)
    end = instant("end", comments["end"])
    page, moment = np.char.partition(np.char.rstrip(lines, "Z"), ",")[:, ::2].T
    return end, page.astype(int), moment.astype("datetime64[s]")


def _read_downloads(path):
    _, lines = _lines(path)
    return np.array(lines, dtype=float)


def jodie(path: PathLike, *, min_changes: int = 30) -> Panel:
    """Change times of the items in a file of the JODIE data sets.

    The files hold interactions of users with items: one line each, with the
    numbers of the user and the item, the seconds since the first interaction, and
    more that is not read. Where an interaction is an edit, as in the set
    ``wikipedia.csv`` of [kumar19]_, an item is a page that changes.

    Parameters
    ----------
    path : path
        CSV file with the columns ``user_id,item_id,timestamp,state_label`` and
        any further ones.
    min_changes : int, default 30
        Items with fewer changes are left out.

    Returns
    -------
    Panel
        Items in the order of their numbers, all equally important. Every window
        runs from 0 to the last interaction in the file; an item's interactions at
        0 are not counted, and those at equal times are one change.

    Raises
    ------
    ValueError
        The first line has other columns; a line has no item or no time; a time is
        negative; no item has so many changes.

    References
    ----------
    .. [kumar19] S. Kumar, X. Zhang, J. Leskovec, "Predicting Dynamic Embedding
       Trajectory in Temporal Interaction Networks", KDD 2019.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> lines = ["user_id,item_id,timestamp,state_label,features"]
    >>> lines += ["0,7,0.0,0,0.1", "1,7,43200.0,0,0.3", "1,8,172800.0,0,0.2"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "edits.csv"
    ...     _ = path.write_text("\\n".join(lines))
    ...     pages = jodie(path, min_changes=1)
    >>> pages.time, pages.window
    (array([0.5, 2. ]), array([2., 2.]))
    """
    item, second = _read_interactions(path)
    window = second.max(initial=0.0) / 86400
    # sorted by item, then time; each pair once
    pairs = np.unique(np.column_stack([item, second])[second > 0], axis=0)
    items, page = np.unique(pairs[:, 0], return_inverse=True)
    return _selected(
        page,
        pairs[:, 1] / 86400,
        np.full(items.size, np.datetime64("NaT", "s")),
        np.full(items.size, window),
        np.ones(items.size),
        min_changes,
    )


def _read_interactions(path):
    """Item and second of each line of a JODIE file."""
    item, second = [], []
    with open(path, encoding="utf-8") as file:
        if not (header := file.readline()).startswith(_JODIE):
            raise ValueError(f"{path} must begin with {_JODIE}, got {header[:60]!r}")
        for number, line in enumerate(file, 2):
            try:
                _, name, moment, *_ = line.split(",", 3)
                item.append(int(name))
                second.append(float(moment))
            except ValueError:
                raise ValueError(
                    f"{path}, line {number} must begin with numbers of {_JODIE}, "
                    f"got {line[:60]!r}"
                ) from None
    return np.array(item), checks.non_negative("timestamp", second)


def _selected(page, time, start, window, importance, min_changes):
    """Panel of the pages with enough changes; `page` and `time` are sorted."""
    n_changes = np.bincount(page, minlength=window.size)
    kept = n_changes >= checks.count("min_changes", min_changes)
    if not kept.any():
        raise ValueError(
            "min_changes must be at most the largest number of changes of a page, "
            f"{n_changes.max(initial=0)}, got {min_changes}"
        )
    return Panel(
        time[kept[page]],
        np.append(0, np.cumsum(n_changes[kept])),
        start[kept],
        window[kept],
        importance[kept] / importance[kept].mean(),
    )
