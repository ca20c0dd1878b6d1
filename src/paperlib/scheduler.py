"""Which page to crawl next: the greedy policy for real use, exact and fast.

`Scheduler` gives the page of largest crawl value in every slot, at a cost that
hardly depends on the number of pages, and can be saved and loaded.
"""

import io
import math
from pathlib import Path

import numpy as np

from paperlib import checks
from paperlib._kernels import crawl_value
from paperlib._kernels import scheduler as kernels
from paperlib.files import write_atomic
from paperlib.signals import PARAMETERS, SignalledPages

__all__ = ["Scheduler"]


def __dir__():
    return __all__  # completion offers the public names alone


_VERSION = 1  # of the file format
_STATE = "crawled", "n_signals", "present", "clock", "terms", "discard_window"
_SAVED = "version", *PARAMETERS, *_STATE
_SPARE = 5 / 4  # arrays that are too short grow by so much, not page by page


class Scheduler:
    r"""Greedy crawl scheduler: the page of largest crawl value in each slot.

    Algorithm 1 of [www25]_: the slot at time t goes to

    .. math:: \arg\max_i V_i(\tau_i + \beta_i n_i)

    with `freshness.crawl_value` V, the time tau and the number n of signals
    since the last crawl of the page; ties go to the lower index. The schedule
    is that of the full arg max, slot for slot, but a slot looks at a few pages
    only.

    Parameters
    ----------
    policy : SignalledPages or a policy of the greedy family
        Pages as they are believed to be, with recall 0 and false_rate 0 for a
        page without signals, which stand for `policies.GreedyNCIS` of them; or
        `policies.Greedy`, `GreedyCIS`, `GreedyCISPlus` or `GreedyNCIS`.
    terms : int, optional
        Terms of the crawl value, as in `policies.GreedyNCIS`; by default all.
        Only with SignalledPages: a policy has its own.
    discard_window : float, time, default 0
        Signals so soon after a crawl of their page are ignored. Only with
        SignalledPages: a policy has its own.
    crawled : float or array_like, shape (n_pages,), time, default -inf
        Time of the last crawl of each page; ``-inf`` for never, whose value is
        that of an infinite elapsed time.

    Raises
    ------
    ValueError
        Arguments out of range, or of shapes that do not match.

    Notes
    -----
    Time never goes back: a slot or a signal earlier than one before it is an
    error. Pages keep their index; the index of a removed page
    is not used again. The plain form is the arg max over
    `paperlib.reference.crawl_value`.

    Examples
    --------
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1)
    >>> scheduler = Scheduler(pages, crawled=0.0)
    >>> scheduler.signal(1, time=0.25)
    >>> scheduler.next(time=0.5), scheduler.next(time=1.0)
    (1, 0)
    """

    def __init__(self, policy, *, terms=None, discard_window=0.0, crawled=-np.inf):
        pages = policy
        if not isinstance(policy, SignalledPages):
            pages, terms = policy.believed, policy.terms
            discard_window = policy.discard_window
        self._terms = crawl_value.EXACT
        if terms is not None:
            self._terms = checks.count("terms", terms)
        self._discard_window = checks.scalar(
            checks.non_negative, "discard_window", discard_window
        )
        self._belief = _belief(pages)
        n_pages = self._belief.shape[1]
        crawled = _crawled(crawled, n_pages)
        self._build(crawled, np.zeros(n_pages, np.int32), np.ones(n_pages, bool))
        self._clock = crawled.max()

    def _build(self, crawled, n_signals, present):
        """Make the kernels' state, and count the pages with those removed."""
        self._n_pages = self._belief.shape[1]
        self._state = kernels.new_state(
            crawl_value.page_constants(*self._belief, self._terms),
            crawled,
            n_signals,
            present,
            discard_window=self._discard_window,
        )

    def __len__(self):
        """Return the number of pages, without those removed."""
        return np.count_nonzero(self._present())

    def _present(self):
        return self._state.pages["place"] != kernels.ABSENT

    @property
    def n_values(self):
        """Crawl values computed so far.

        The measure of the scheduler's cost: the full arg max computes one for
        every page and slot.
        """
        return self._state.scalars["n_values"].item()

    def signal(self, page, time):
        """Tell that a signal of a page arrived.

        Parameters
        ----------
        page : int
            Index of the page.
        time : float, time
            When the signal arrived.

        Raises
        ------
        ValueError
            An unknown page, or a time before the last event.
        """
        page = self._known(page)[0]
        self._advance(time)
        kernels.next_signal(self._state, page, self._clock)

    def next(self, time):
        """Return the page to crawl now; from then on it counts as crawled.

        Parameters
        ----------
        time : float, time
            When the slot is.

        Returns
        -------
        int
            Index of the page.

        Raises
        ------
        ValueError
            A time before the last event.
        LookupError
            There is no page.
        """
        self._advance(time)
        page = kernels.next_slot(self._state, self._clock)
        if page < 0:
            raise LookupError("there is no page to crawl")
        return page

    def run(self, times, signal_page=(), signal_time=()):
        """Return the pages of many slots, as `signal` and `next` would.

        Parameters
        ----------
        times : array_like, shape (n_slots,), time
            Slots, never decreasing.
        signal_page : array_like of int, shape (n_signals,)
            Index of the page of each signal.
        signal_time : array_like, shape (n_signals,), time
            When each signal arrives, never decreasing. A signal at the time of
            a slot comes before the slot; one after the last slot is ignored.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            Indices of the pages, -1 where there is no page.

        Raises
        ------
        ValueError
            Times that go back or are not finite, unknown pages, or arrays of
            different lengths.
        """
        times = self._in_order("times", times)
        signal_time = self._in_order("signal_time", signal_time)
        signal_page = self._known(signal_page, "signal_page")
        if signal_page.size != signal_time.size:
            raise ValueError(
                "signal_page and signal_time must have the same length, got "
                f"{signal_page.size} and {signal_time.size}"
            )
        pages = np.empty(times.size, np.int64)
        if times.size:
            n = np.searchsorted(signal_time, times[-1], side="right")
            kernels.greedy_slots(
                self._state, times, signal_page[:n], signal_time[:n], pages
            )
            self._clock = times[-1]
        return pages

    def add(self, pages, *, crawled=-np.inf):
        """Add pages.

        Parameters
        ----------
        pages : SignalledPages
            Pages as they are believed to be; of a policy, its `believed`.
        crawled : float or array_like, shape (n_added,), time, default -inf
            Time of the last crawl of each page; ``-inf`` for never.

        Returns
        -------
        ndarray of int, shape (n_added,)
            Indices of the new pages.

        Raises
        ------
        ValueError
            `crawled` lies after the last event, or has another shape.
        """
        new = _belief(pages)
        crawled = _crawled(crawled, new.shape[1])
        if crawled.max() > self._clock:
            raise ValueError(
                "crawled must not lie after the last event, "
                f"{self._clock}, got {crawled.max().item()!r}"
            )
        index = np.arange(self._n_pages, self._n_pages + new.shape[1])
        self._n_pages += new.shape[1]
        if self._n_pages > len(self._state.pages):
            size = int(self._n_pages * _SPARE)
            self._state = kernels.longer(self._state, size)
            self._belief = kernels.padded(self._belief.T, size).T
        self._state.pages["last"][index] = crawled
        self._believe(index, new)
        return index

    def update(self, page, pages):
        """Believe other parameters of pages from now on.

        The time and the signals since the last crawl stay.

        Parameters
        ----------
        page : int or array_like of int, shape (n_updated,)
            Indices of the pages.
        pages : SignalledPages
            The new parameters, one entry for each page.

        Raises
        ------
        ValueError
            An unknown page, or `pages` of another length.
        """
        page, new = self._known(page), _belief(pages)
        if page.size != new.shape[1]:
            raise ValueError(
                "pages must have one entry for each page, "
                f"{page.size}, got {new.shape[1]}"
            )
        self._believe(page, new)

    def remove(self, page):
        """Remove pages.

        Parameters
        ----------
        page : int or array_like of int
            Indices of the pages.

        Raises
        ------
        ValueError
            An unknown page.
        """
        kernels.change_pages(self._state, self._known(page), False, self._clock)

    def _believe(self, page, new):
        self._belief[:, page] = new
        constants = crawl_value.page_constants(*new, self._terms)
        self._state.pages["constants"][page] = constants
        kernels.change_pages(self._state, page, True, self._clock)

    def save(self, path):
        """Write the scheduler to a file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            An npz file, with a version; the archive has checksums.

        Raises
        ------
        OSError
            The file cannot be written; what was there before is left as it
            was.
        """
        n = self._n_pages
        pages = self._state.pages[:n]
        state = pages["last"], pages["n_signals"], self._present()[:n], self._clock
        options = self._terms, self._discard_window
        values = _VERSION, *self._belief[:, :n], *state, *options
        arrays = dict(zip(_SAVED, map(np.ascontiguousarray, values), strict=True))
        file = io.BytesIO()
        np.savez(file, **arrays)
        write_atomic(path, file.getvalue())

    @classmethod
    def load(cls, path):
        """Return the scheduler that was saved to a file.

        It gives exactly the schedule that the saved one would have given.
        Nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            A file written by `save`.

        Returns
        -------
        Scheduler

        Raises
        ------
        ValueError
            The file is damaged, of another version, or no saved scheduler.
        OSError
            The file cannot be read.
        """
        arrays = _read(path)
        try:
            return cls._restored(arrays)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved scheduler: {error}") from None

    @classmethod
    def _restored(cls, arrays):
        """Return the scheduler of the arrays that were saved."""
        pages = SignalledPages(*(arrays[name] for name in PARAMETERS))
        crawled, n_signals, present, *scalars = (arrays[name] for name in _STATE)
        clock, terms, window = (scalar.item() for scalar in scalars)
        scheduler = cls(
            pages, terms=terms or None, discard_window=window, crawled=crawled
        )
        if (
            not clock >= scheduler._clock
            or not n_signals.shape == present.shape == crawled.shape
            or (n_signals.dtype, present.dtype) != (np.int32, bool)
            or (n_signals < 0).any()
        ):
            raise ValueError("its state contradicts itself")
        scheduler._build(crawled, n_signals, present)
        scheduler._clock = clock
        return scheduler

    def _advance(self, time):
        """Set the clock to a time that is not before it."""
        time = checks.scalar(checks.finite, "time", time)
        if time < self._clock:
            raise ValueError(f"time must not go back, got {time!r} after {self._clock}")
        self._clock = time

    def _in_order(self, name, times):
        """Times as an array of one axis, finite, rising from the clock on."""
        times = checks.finite(name, times)
        if times.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {times.shape}")
        back = np.flatnonzero(np.diff(times, prepend=self._clock) < 0.0)
        if back.size:
            raise ValueError(
                f"{name} must not go back, got {times[back[0]].item()!r} "
                f"at index {back[0]}"
            )
        return times

    def _known(self, page, name="page"):
        """Indices of pages that are there, as an array."""
        page = np.asarray(page, dtype=None if np.size(page) else np.int64)
        if page.dtype.kind not in "iu" or page.ndim > 1:
            raise ValueError(
                f"{name} must be an index or an array of them, got {page.dtype} "
                f"of shape {page.shape}"
            )
        page = np.atleast_1d(page)
        good = (page >= 0) & (page < self._n_pages)
        good[good] = self._present()[page[good]]
        if not good.all():
            raise ValueError(
                f"{name} must be the index of a page that is there, "
                f"got {page[~good][0].item()!r}"
            )
        return page.astype(np.int64)


def _belief(pages):
    """Parameters of pages as one array, shape (4, n_pages)."""
    return np.array(list(vars(pages).values()))


def _crawled(crawled, n_pages):
    """Times of the last crawls, finite or -inf, shape (n_pages,)."""
    try:
        crawled = np.broadcast_to(np.asarray(crawled, dtype=float), n_pages)
    except (TypeError, ValueError):
        raise ValueError(
            f"crawled must be a time for each of {n_pages} pages, got {crawled!r}"
        ) from None
    checks.finite("crawled", crawled[crawled != -math.inf])
    return crawled


def _read(path):
    """Arrays of a saved scheduler, undamaged and of this version."""
    content = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if damaged := file.zip.testzip():
                raise ValueError(f"{damaged} is damaged")
            arrays = {name: file[name] for name in _SAVED}
    except Exception as error:  # a damaged archive fails in many ways
        raise ValueError(f"{path} is not a saved scheduler: {error}") from None
    version = arrays["version"].tolist()
    if version != [_VERSION]:
        raise ValueError(f"{path} must be of version {_VERSION}, got {version!r}")
    return arrays
