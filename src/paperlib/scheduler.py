"""Who is crawled next: at every slot the page of largest crawl value, exactly, at a cost that hardly depends on the number of pages."""

import hashlib
import io
import math
from pathlib import Path

import numpy as np

from paperlib import checks
from paperlib._kernels import crawl_value
from paperlib._kernels import scheduler as kernels
from paperlib.files import write_atomic
from paperlib.signals import SignalledPages

_VERSION = 1
_BELIEF = ("change_rate", "importance", "recall", "false_rate")
_SAVED = (
    "version",
    *_BELIEF,
    "crawled",
    "n_signals",
    "present",
    "clock",
    "terms",
    "discard_window",
)


class Scheduler:
    """The greedy policy of algorithm 1 of [www25]: each slot goes to the page of largest `freshness.crawl_value`, ties to the lower index.

    The schedule is that of the full arg max, slot for slot, but a slot looks at a few pages only (see `paperlib._slots`).

    Parameters
    ----------
    policy : of the greedy family of `policies`, or SignalledPages, which stand for `policies.GreedyNCIS` of them
        It holds the pages as they are believed to be; recall 0 and false_rate 0 for pages without signals.
    terms, discard_window : of `policies.GreedyNCIS`; they belong to SignalledPages, a policy has its own
    crawled : float or array, shape (n_pages,), time
        When each page was last crawled; -inf for never, which is the default: its value is then that of an infinite elapsed time.

    Raises
    ------
    ValueError
        Arguments out of range or of shapes that do not match.

    Notes
    -----
    Time never goes back: a slot or signal earlier than another that came before is a ValueError. Pages keep their index; that of a
    removed page is not used again.

    Examples
    --------
    >>> scheduler = Scheduler(SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1), crawled=0.0)
    >>> scheduler.signal(1, time=0.25)
    >>> scheduler.next(time=0.5), scheduler.next(time=1.0)
    (1, 0)
    """

    def __init__(self, policy, *, terms=None, discard_window=0.0, crawled=-np.inf):
        pages = policy
        if not isinstance(policy, SignalledPages):
            pages, terms, discard_window = (
                policy.believed,
                policy.terms,
                policy.discard_window,
            )
        self._terms = (
            crawl_value.EXACT if terms is None else checks.count("terms", terms)
        )
        self._discard_window = checks.scalar(
            checks.non_negative, "discard_window", discard_window
        )
        self._belief = _belief(pages)
        n_pages = self._belief.shape[1]
        crawled = _crawled(crawled, n_pages)
        self._build(crawled, np.zeros(n_pages, np.int32), np.ones(n_pages, bool))
        self._clock = crawled.max()

    def _build(self, crawled, n_signals, present):
        self._n_pages = self._belief.shape[1]
        self._state = kernels.new_state(
            crawl_value.page_constants(*self._belief, self._terms),
            crawled,
            n_signals,
            present,
            discard_window=self._discard_window,
        )

    def __len__(self):
        """Number of pages, without those removed."""
        return np.count_nonzero(self._state.pages["place"] != kernels.ABSENT)

    @property
    def n_values(self):
        """Crawl values computed so far, the measure of its cost: the full arg max computes one for every page and slot."""
        return self._state.scalars["n_values"].item()

    def signal(self, page, time):
        """Tell that a signal of `page` arrived at `time`. Raises ValueError for an unknown page or a time before the last event."""
        page = self._known(page)[0]
        self._advance(time)
        kernels.next_signal(self._state, page, self._clock)

    def next(self, time):
        """Index of the page to crawl in the slot at `time`; from then on it counts as crawled.

        Raises ValueError for a time before the last event, LookupError when there is no page.
        """
        self._advance(time)
        page = kernels.next_slot(self._state, self._clock)
        if page < 0:
            raise LookupError("there is no page to crawl")
        return page

    def run(self, times, signal_page=(), signal_time=()):
        """Pages of many slots at once, as `signal` and `next` would give them; a signal at the time of a slot comes before it.

        Parameters
        ----------
        times : array, shape (n_slots,), never decreasing
        signal_page, signal_time : arrays, shape (n_signals,), in order of time
            Those later than the last slot are ignored.

        Returns
        -------
        int array, shape (n_slots,)
            -1 where there is no page.

        Raises
        ------
        ValueError
            Times that go back or are not finite; unknown pages; arrays of different lengths.
        """
        times, signal_time = (
            self._in_order("times", times),
            self._in_order("signal_time", signal_time),
        )
        signal_page = self._known(signal_page, "signal_page")
        if signal_page.size != signal_time.size:
            raise ValueError(
                f"signal_page and signal_time must have the same length, got {signal_page.size} and {signal_time.size}"
            )
        pages = np.empty(times.size, np.int64)
        if times.size:
            heard = slice(np.searchsorted(signal_time, times[-1], side="right"))
            kernels.greedy_slots(
                self._state, times, signal_page[heard], signal_time[heard], pages
            )
            self._clock = times[-1]
        return pages

    def add(self, pages, *, crawled=-np.inf):
        """Add `pages`, last crawled at `crawled`, -inf for never; returns their indices, shape (n_added,).

        They are SignalledPages; of a policy, those it `believed`.

        Raises ValueError when `crawled` lies after the last event, or has another shape.
        """
        new = _belief(pages)
        crawled = _crawled(crawled, new.shape[1])
        if crawled.max() > self._clock:
            raise ValueError(
                f"crawled must not lie after the last event, {self._clock}, got {crawled.max().item()!r}"
            )
        index = np.arange(self._n_pages, self._n_pages + new.shape[1])
        self._n_pages += new.shape[1]
        if self._n_pages > len(self._state.pages):
            size = self._n_pages * 5 // 4
            longer = {
                name: _longer(getattr(self._state, name), size)
                for name in kernels.PER_PAGE
            }
            self._state = self._state._replace(**longer)
            self._belief = _longer(self._belief.T, size).T
        self._state.pages["last"][index] = crawled
        self._believe(index, new)
        return index

    def update(self, page, pages):
        """From now on believe other parameters of a page, or of an array of them; time and signals since the last crawl stay.

        Raises ValueError for an unknown page or when `pages` (SignalledPages) has another length.
        """
        page, new = self._known(page), _belief(pages)
        if page.size != new.shape[1]:
            raise ValueError(
                f"pages must have one entry for each page, {page.size}, got {new.shape[1]}"
            )
        self._believe(page, new)

    def remove(self, page):
        """Forget a page, or an array of them. Raises ValueError for an unknown page."""
        kernels.change_pages(self._state, self._known(page), False, self._clock)

    def _believe(self, page, new):
        self._belief[:, page] = new
        self._state.pages["constants"][page] = crawl_value.page_constants(
            *new, self._terms
        )
        kernels.change_pages(self._state, page, True, self._clock)

    def save(self, path):
        """Write the scheduler to `path`, an npz file with its version and checksum; whole or not at all."""
        records = self._state.pages[: self._n_pages]
        belief = dict(zip(_BELIEF, self._belief[:, : self._n_pages], strict=True))
        arrays = dict(
            belief,
            crawled=records["last"],
            n_signals=records["n_signals"],
            present=records["place"] != kernels.ABSENT,
        )
        arrays.update(
            version=_VERSION,
            clock=self._clock,
            terms=self._terms,
            discard_window=self._discard_window,
        )
        arrays = {name: np.ascontiguousarray(arrays[name]) for name in _SAVED}
        file = io.BytesIO()
        np.savez(file, **arrays, checksum=_checksum(arrays))
        write_atomic(path, file.getvalue())

    @classmethod
    def load(cls, path):
        """The scheduler that was saved to `path`; it says exactly what the original would. Nothing in the file is executed.

        Raises ValueError when the file is damaged, of another version or none of ours; OSError when it cannot be read.
        """
        content = Path(path).read_bytes()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in (*_SAVED, "checksum")}
        except Exception as error:  # a damaged archive fails in many ways
            raise ValueError(f"{path} is not a saved scheduler: {error}") from None
        if arrays["version"].tolist() != [_VERSION]:
            raise ValueError(
                f"{path} must be of version {_VERSION}, got {arrays['version'].tolist()!r}"
            )
        if arrays.pop("checksum").tolist() != _checksum(arrays).tolist():
            raise ValueError(f"{path} is damaged: its checksum does not match")
        try:
            terms, window = arrays["terms"].item(), arrays["discard_window"].item()
            pages = SignalledPages(*(arrays[name] for name in _BELIEF))
            scheduler = cls(
                pages,
                terms=terms or None,
                discard_window=window,
                crawled=arrays["crawled"],
            )
            clock, n_signals, present = (
                arrays["clock"].item(),
                arrays["n_signals"],
                arrays["present"],
            )
            good = (
                clock >= scheduler._clock
                and n_signals.shape == present.shape == arrays["crawled"].shape
                and (n_signals >= 0).all()
            )
            if not good or n_signals.dtype != np.int32 or present.dtype != bool:
                raise ValueError("its state contradicts itself")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved scheduler: {error}") from None
        scheduler._build(arrays["crawled"], n_signals, present)
        scheduler._clock = clock
        return scheduler

    def _advance(self, time):
        time = checks.scalar(checks.finite, "time", time)
        if time < self._clock:
            raise ValueError(f"time must not go back, got {time!r} after {self._clock}")
        self._clock = time

    def _in_order(self, name, times):
        times = checks.finite(name, times)
        if times.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {times.shape}")
        back = np.flatnonzero(np.diff(times, prepend=self._clock) < 0.0)
        if back.size:
            raise ValueError(
                f"{name} must not go back, got {times[back[0]].item()!r} at index {back[0]}"
            )
        return times

    def _known(self, page, name="page"):
        """`page` as an array of indices of pages that are there."""
        page = np.atleast_1d(
            np.asarray(page, dtype=np.int64 if np.size(page) == 0 else None)
        )
        if page.dtype.kind not in "iu" or page.ndim > 1:
            raise ValueError(
                f"{name} must be an index or an array of them, got {page.dtype} of shape {page.shape}"
            )
        good = (page >= 0) & (page < self._n_pages)
        good[good] = self._state.pages["place"][page[good]] != kernels.ABSENT
        if not good.all():
            raise ValueError(
                f"{name} must be the index of a page that is there, got {page[~good][0].item()!r}"
            )
        return page.astype(np.int64)


def _belief(pages):
    return np.array([getattr(pages, name) for name in _BELIEF])


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


def _longer(array, size):
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _checksum(arrays):
    digest = hashlib.sha256()
    for name in _SAVED:
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name]))
    return np.frombuffer(digest.digest(), np.uint8)
