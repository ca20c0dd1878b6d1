"""Which page to crawl next: policies for real use, exact and fast.

`Scheduler` gives the page of largest priority in every slot, at a cost that hardly
depends on the number of pages. It learns change rates from what the crawls find,
keeps limits of pages and hosts, and can be saved and loaded.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.signals import SignalledPages
from recrawl import checks
from recrawl.errors import NoPageError
from recrawl.files import write_atomic
from recrawl.kernels import addresses, crawl_value, indices
from recrawl.kernels import scheduler as kernels
from recrawl.kernels.changes import UNTOLD
from recrawl.kernels.hosts import HOST
from recrawl.science.policies import (
    Greedy,
    GreedyCIS,
    GreedyCISPlus,
    GreedyNCIS,
    IndexPolicy,
)
from recrawl.science.processes import History
from recrawl.types import Array, PathLike

__all__ = ["NoPageError", "Scheduler"]


_VERSION = 1  # of the file format
_SPARE = 5 / 4  # arrays that are too short grow by so much, not page by page
# What a file holds, by name: of `_WithSignals`, and of `_ByIndex`.
_STATE = (
    *("crawled", "n_signals", "present", "clock"),
    *("terms", "discard_window", "policy"),
)
PARAMETERS = "change_rate", "importance", "recall", "false_rate"
_SIGNALS = *PARAMETERS, *_STATE
_RECORDS = *indices.DESCRIBED, "kind", "place", "last", "seen"
_HOSTS = HOST.names
_NO_SIGNALS = np.empty(0, np.int64), np.empty(0)
_BY_SIGNALS = {kind.__name__: kind for kind in (GreedyNCIS, GreedyCIS, GreedyCISPlus)}
_INDEX = *_RECORDS, *_HOSTS, "labels", "clock"


class Scheduler:
    r"""The page to crawl in each slot, by the largest priority, exact and fast.

    The slot goes to the page of the largest priority index of the policy; ties
    go to the lower page number. With `policies.GreedyNCIS` this is Algorithm 1
    of [www25]_: the slot at time t goes to

    .. math:: \arg\max_i V_i(\tau_i + \beta_i n_i)

    with the crawl value V, the time tau and the number n of signals since the
    last crawl of the page. The schedule is that of the full arg max, slot for
    slot, but a slot looks at a few pages only.

    To begin without change rates, schedule `policies.BayesGreedy`, and `report`
    after each crawl whether the page had changed.

    Parameters
    ----------
    policy : SignalledPages or a policy
        Pages as they are believed to be, with recall 0 and false_rate 0 for a
        page without signals, which stand for `policies.GreedyNCIS` of them; or
        a policy that goes by a priority index or signals: `policies.Greedy`,
        `BayesGreedy`, `GreedyCIS`, `GreedyCISPlus` or `GreedyNCIS`. Where no
        page has signals, `policies.Greedy` of the pages gives the same schedule,
        and is fast from the first slot.
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
    error. A call that is refused by a ValueError changes nothing. Pages keep
    their number; the number of a removed page is not used again. The plain form
    is the arg max over `tests.plain.crawl_value`.

    Examples
    --------
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1)
    >>> scheduler = Scheduler(pages, crawled=0.0)
    >>> scheduler.signal(1, time=0.25)
    >>> scheduler.next(time=0.5), scheduler.next(time=1.0)
    (1, 0)

    Without change rates to begin with:

    >>> from recrawl.science.policies import BayesGreedy
    >>> scheduler = Scheduler(BayesGreedy([1.0, 0.5], shape=0.5, rate=1.0))
    >>> page = scheduler.next(time=1.0)
    >>> scheduler.report(page, changed=True)
    """

    def __init__(
        self,
        policy: Any,
        *,
        terms: int | None = None,
        discard_window: float = 0.0,
        crawled: ArrayLike = -np.inf,
    ) -> None:
        if isinstance(policy, SignalledPages):
            policy = GreedyNCIS(policy, terms=terms, discard_window=discard_window)
        elif terms is not None or discard_window:
            raise ValueError(
                "terms and discard_window must be given with SignalledPages only, "
                f"got {terms!r} and {discard_window!r} with {policy!r}"
            )
        by_index = isinstance(policy, IndexPolicy)
        if not (by_index or isinstance(policy, (GreedyNCIS, GreedyCIS))):
            raise ValueError(
                "policy must be SignalledPages or a policy that goes by an index or "
                f"signals, got {policy!r}"
            )
        n_pages = policy.n_pages if by_index else policy.pages.change_rate.size
        if not n_pages:
            raise ValueError("policy must have at least one page, got none")
        crawled = _crawled(crawled, n_pages)
        begun = _ByIndex.begun if by_index else _WithSignals
        self._engine = begun(policy, crawled)
        self._clock = crawled.max().item()

    def __repr__(self):
        rule = "time and signals"
        if isinstance(self._engine, _ByIndex):
            rule = "a learning index" if self._engine.learns else "an index"
        return f"<Scheduler of {len(self)} pages by {rule}, at time {self._clock}>"

    def __len__(self):
        """Return the number of pages, without those removed."""
        return np.count_nonzero(self._engine.present())

    @property
    def n_values(self) -> int:
        """Crawl values computed so far.

        The measure of the scheduler's cost: the full arg max computes one for
        every page and slot.
        """
        return self._engine.state.scalars["n_values"].item()

    @property
    def posterior(self) -> tuple[Array, Array]:
        """Shape and rate of the gamma distribution of each page's change rate.

        Two arrays of shape (n_pages,), the second in time; only where the
        policy learns, `policies.BayesGreedy`.
        """
        self._must_learn()
        pages = self._engine.pages
        return pages["gamma_shape"].copy(), pages["rate"].copy()

    def signal(self, page: int, time: float) -> None:
        """Report that a signal of a page arrived.

        It changes nothing where the policy uses no signals.

        Parameters
        ----------
        page : int
            Number of the page, from 0.
        time : float, time
            When the signal arrived.

        Raises
        ------
        ValueError
            An unknown page, or several; a time before the last event.
        """
        usual = type(page) is int and 0 <= page < self._engine.n_pages
        if not (usual and self._engine.present(page)):
            if np.ndim(page):
                raise ValueError(f"page must be the number of one page, got {page!r}")
            page = self._known(page).item()
        self._advance(time)
        self._engine.signal(page, self._clock)

    def next(self, time: float) -> int:
        """Return the page to crawl now; from then on it counts as crawled.

        A page can come again before its report: give a policy the longest time that
        a fetch takes as `min_interval` where several are fetched at once. A report is
        for the last crawl of its page.

        Parameters
        ----------
        time : float, time
            When the slot is.

        Returns
        -------
        int
            Number of the page.

        Raises
        ------
        ValueError
            A time before the last event.
        NoPageError
            There is no page, or limits forbid to crawl any at this time, which
            is then the last event; the message says until when.
        """
        self._advance(time)
        page = self._engine.next(self._clock)
        if page < 0:
            why, free_from = "", self._engine.free_from()
            if free_from < math.inf:
                why = f": limits forbid all pages until time {free_from}"
            raise NoPageError(f"there is no page to crawl at time {self._clock}{why}")
        return page

    def report(
        self,
        page: ArrayLike,
        changed: ArrayLike,
        *,
        age: ArrayLike | None = None,
        count: ArrayLike | None = None,
    ) -> None:
        """Report what the last crawl of pages found.

        The posterior of the page's change rate takes it in. A crawl that
        failed is not reported: the next report is then for the time since the
        last copy was made. The first crawl of a page says nothing of its
        changes; report it all the same, changed or not. Two crawls of a page
        at one time are one.

        Parameters
        ----------
        page : int or array_like of int, shape (n_reported,)
            Numbers of the pages, each once.
        changed : bool or array_like of bool, shape (n_reported,)
            Whether the page had changed since its copy was made.
        age : array_like, shape (n_reported,), time, optional
            Age of the last change at the crawl, as by the header Last-Modified;
            NaN where unknown, see `processes.History`. At the first crawl of a page
            it dates a change too, if it is positive and finite; a count does not, and
            is ignored then.
        count : array_like, shape (n_reported,), optional
            Number of changes, as there.

        Raises
        ------
        ValueError
            The policy does not learn; an unknown page, one that was not crawled
            since its last report, or one that is named twice; `changed`, ages or
            counts of another length; a count that is negative or not whole.

        Warns
        -----
        DistrustedAgeWarning
            Ages or counts contradict the bit, which is then used.
        """
        # The usual call, in a fraction of the time; what it refuses is checked below.
        engine = self._engine
        usual = (
            type(page) is int
            and engine.learns
            and 0 <= page < engine.n_pages
            and isinstance(changed, (bool, np.bool_))
            and age is None
            and count is None
        )
        if usual and engine.report_bit(page, changed, self._clock):
            return
        self._must_learn()
        page = self._known(page)
        changed = np.atleast_1d(checks.bits("changed", changed))
        if changed.shape != page.shape:
            raise ValueError(
                "changed must have one entry for each page, "
                f"{page.size}, got shape {changed.shape}"
            )
        pages = self._engine.pages
        last_crawl, last_report = pages["last"][page], pages["seen"][page]
        reported = last_crawl <= last_report
        if reported.any():
            raise ValueError(
                "page must have been crawled since its last report, "
                f"got {page[reported][0].item()!r}"
            )
        _require_once(page)
        found = _likelihood_terms(changed, last_crawl - last_report, age, count)
        self._engine.report(page, found, self._clock)

    def run(
        self, times: ArrayLike, signal_page: ArrayLike = (), signal_time: ArrayLike = ()
    ) -> NDArray[np.integer]:
        """Return the pages of many slots, as `signal` and `next` would.

        Parameters
        ----------
        times : array_like, shape (n_slots,), time
            Slots, never decreasing.
        signal_page : array_like of int, shape (n_signals,), optional
            Number of the page of each signal.
        signal_time : array_like, shape (n_signals,), time, optional
            When each signal arrives, never decreasing. A signal at the time of
            a slot comes before the slot; one after the last slot is ignored.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            Numbers of the pages, -1 where there is no page.

        Raises
        ------
        ValueError
            Times that go back or are not finite, unknown pages, or arrays of
            different lengths.
        """
        times = self._in_order("times", times)
        if np.size(signal_page) or np.size(signal_time):
            signal_time = self._in_order("signal_time", signal_time)
            signal_page = self._known(signal_page, "signal_page")
        else:  # the checks of nothing cost as much as ten slots
            signal_page, signal_time = _NO_SIGNALS
        if signal_page.size != signal_time.size:
            raise ValueError(
                "signal_page and signal_time must have the same length, got "
                f"{signal_page.size} and {signal_time.size}"
            )
        pages = np.empty(times.size, np.int64)
        if times.size:
            n = np.searchsorted(signal_time, times[-1], side="right")
            self._engine.slots(times, signal_page[:n], signal_time[:n], pages)
            self._clock = times[-1].item()
        return pages

    def add(self, pages: Any, *, crawled: ArrayLike = -np.inf) -> NDArray[np.integer]:
        """Add pages.

        Parameters
        ----------
        pages : SignalledPages or a policy
            Pages as they are believed to be; the policy that is scheduled takes
            them as it took those it began with. Or a policy of its kind, of the
            new pages: with their limits, but without its other options. A host
            that is already known keeps its tokens, and must have the same limit.
        crawled : float or array_like, shape (n_added,), time, default -inf
            Time of the last crawl of each page; ``-inf`` for never.

        Returns
        -------
        ndarray of int, shape (n_added,)
            Numbers of the new pages.

        Raises
        ------
        ValueError
            `crawled` lies after the last event, or has another shape; pages
            that do not fit the policy, or have no hosts where all have one.
        """
        n_added, new = self._engine.checked(pages)
        crawled = _crawled(crawled, n_added)
        if crawled.max() > self._clock:
            raise ValueError(
                "crawled must not lie after the last event, "
                f"{self._clock}, got {crawled.max().item()!r}"
            )
        return self._engine.add(new, crawled, self._clock)

    def update(self, page: ArrayLike, pages: Any) -> None:
        """Believe other parameters of pages from now on.

        The time and the signals since the last crawl stay, and nothing else: a
        policy replaces limits and hosts too, and the prior of `BayesGreedy`
        replaces what was learnt. To keep it, give the `posterior` of the pages
        as their prior.

        Parameters
        ----------
        page : int or array_like of int, shape (n_updated,)
            Numbers of the pages, each once.
        pages : SignalledPages or a policy
            The new parameters, one entry for each page, as in `add`.

        Raises
        ------
        ValueError
            An unknown page, or one that is named twice; `pages` of another
            length, or without hosts where all pages have one.

        Examples
        --------
        Another importance:

        >>> from recrawl.science.policies import BayesGreedy
        >>> scheduler = Scheduler(BayesGreedy([1.0, 0.5], shape=0.5, rate=1.0))
        >>> shape, rate = scheduler.posterior
        >>> new = BayesGreedy([3.0], shape=shape[1], rate=rate[1])
        >>> scheduler.update(1, new)
        """
        page = self._known(page)
        _require_once(page)
        n_new, new = self._engine.checked(pages)
        if page.size != n_new:
            raise ValueError(
                f"pages must have one entry for each page, {page.size}, got {n_new}"
            )
        self._engine.update(page, new, self._clock)

    def remove(self, page: ArrayLike) -> None:
        """Remove pages.

        Parameters
        ----------
        page : int or array_like of int
            Numbers of the pages.

        Raises
        ------
        ValueError
            An unknown page.
        """
        self._engine.set_present(self._known(page), False, self._clock)

    def _must_learn(self):
        if not self._engine.learns:
            raise ValueError("the policy must learn, as policies.BayesGreedy does")

    def save(self, path: PathLike) -> None:
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
        arrays = {"version": _VERSION, "clock": self._clock, **self._engine.arrays()}
        file = io.BytesIO()
        np.savez(file, **{k: np.ascontiguousarray(v) for k, v in arrays.items()})
        write_atomic(path, file.getvalue())

    @classmethod
    def load(cls, path: PathLike) -> Scheduler:
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
        engine = _ByIndex if "kind" in arrays else _WithSignals
        scheduler = cls.__new__(cls)
        scheduler._clock = arrays["clock"].item()
        scheduler._engine, last = engine.restored(arrays, scheduler._clock)
        if last.size and not scheduler._clock >= last.max():
            raise ValueError("its state contradicts itself")
        return scheduler

    def _advance(self, time):
        """Set the clock to a time that is not before it."""
        if not (isinstance(time, float) and self._clock <= time < math.inf):
            time = checks.scalar(checks.finite, "time", time)
            if time < self._clock:
                raise ValueError(
                    f"time must not go back, got {time!r} after {self._clock}"
                )
        self._clock = float(time)

    def _in_order(self, name, times):
        """Times as an array of one axis, finite, rising from the clock on."""
        times = checks.finite(name, times)
        if times.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {times.shape}")
        before = np.concatenate(([self._clock], times[:-1]))
        back = times < before
        if back.any():
            first = back.argmax().item()
            raise ValueError(
                f"{name} must not go back, got {times[first].item()!r} at index {first}"
            )
        return times

    def _known(self, page, name="page"):
        """Numbers of pages that are there, as an array."""
        page = np.asarray(page, dtype=None if np.size(page) else np.int64)
        if page.dtype.kind not in "iu" or page.ndim > 1:
            raise ValueError(
                f"{name} must be a page number or an array of them, got {page.dtype} "
                f"of shape {page.shape}"
            )
        page = np.atleast_1d(page)
        good = (page >= 0) & (page < self._engine.n_pages)
        good[good] = self._engine.present(page[good])
        if not good.all():
            raise ValueError(
                f"{name} must be the number of a page that is there, "
                f"got {page[~good][0].item()!r}"
            )
        return page.astype(np.int64)


def _require_once(page):
    """Raise if a page is named twice."""
    ordered = np.sort(page)
    if (ordered[1:] == ordered[:-1]).any():
        raise ValueError(f"page must name each page once, got {page.tolist()}")


class _Engine:
    """The state of a kernel module, `_kernels`, and the calls of it.

    A subclass has `n_pages` and `learns`, and the methods `signal`, `free_from`
    (when limits allow a crawl), `slots`, `checked` (the number of new pages, and
    what `add` and `update` take), `add`, `update`, `arrays` (what a file holds) and
    `restored` (the engine of such arrays, and the last crawls). One that learns has
    `report_bit` and `report` too. Arguments are checked by `Scheduler`.

    Calls of one slot are faster with the addresses of the arrays of the state.
    """

    @property
    def state(self):
        *arrays, scalars = self._arrays  # a copy of a record alone has no array
        return self._kernels.State(*arrays, scalars[0])

    @state.setter
    def state(self, state):
        *arrays, scalars = state
        self._arrays = *arrays, scalars.base
        self._table = addresses(self._arrays)

    def __setstate__(self, attributes):
        """Make the addresses anew: the arrays of a copy are elsewhere."""
        vars(self).update(attributes)
        self.state = self.state

    @property
    def pages(self):
        return self._arrays[0][: self.n_pages]

    def present(self, page=slice(None)):
        return self.pages["place"][page] != self._kernels.ABSENT

    def next(self, time):
        return self._kernels.one_slot(self._table, time)

    def added(self, n_added):
        """Numbers of new pages, for which there is room from now on."""
        first, self.n_pages = self.n_pages, self.n_pages + n_added
        if self.n_pages > len(self._arrays[0]):
            self.grow(int(self.n_pages * _SPARE))
        return np.arange(first, self.n_pages)

    def grow(self, size):
        self.state = self._kernels.longer(self.state, size)

    def set_present(self, page, present, clock):
        """Add or remove pages, or take in that their records have changed."""
        self._kernels.change_pages(self.state, page, present, clock)


class _WithSignals(_Engine):
    """Policies by signals, also of pages without any: beliefs, state of `kernels`."""

    _kernels = kernels
    learns = False

    def __init__(self, policy, crawled, *, n_signals=None, present=True):
        self._policy = policy  # pages to come are believed as it believes them
        self._options = {}
        if isinstance(policy, GreedyCISPlus):
            names = "min_precision", "min_recall"
            self._options = {name: float(getattr(policy, name)) for name in names}
        self._belief = _belief(policy.believed)
        self._terms = policy.terms or crawl_value.EXACT
        self._discard_window = policy.discard_window
        n_pages = self.n_pages = crawled.size
        self.state = kernels.new_state(
            crawl_value.page_constants(*self._belief, self._terms),
            crawled,
            np.zeros(n_pages, np.int32) if n_signals is None else n_signals,
            np.broadcast_to(present, n_pages),
            discard_window=self._discard_window,
        )

    def signal(self, page, time):
        kernels.one_signal(self._table, page, time)

    def free_from(self):
        return math.inf  # no limits: it is asked only where there is no page

    def slots(self, times, signal_page, signal_time, out):
        kernels.greedy_slots(self.state, times, signal_page, signal_time, out)

    def checked(self, pages):
        """Number of new pages, or of those of a policy, and the belief of them."""
        if type(pages) is type(self._policy):
            pages = pages.pages
        if not isinstance(pages, SignalledPages):
            kind = type(self._policy).__name__
            raise ValueError(f"pages must be SignalledPages or {kind}, got {pages!r}")
        belief = _belief(replace(self._policy, pages=pages).believed)
        return belief.shape[1], belief

    def add(self, new, crawled, clock):
        index = self.added(new.shape[1])
        self.pages["last"][index] = crawled
        self.update(index, new, clock)
        return index

    def grow(self, size):
        super().grow(size)
        self._belief = kernels.padded(self._belief.T, size).T

    def update(self, page, new, clock):
        self._belief[:, page] = new
        constants = crawl_value.page_constants(*new, self._terms)
        self.pages["constants"][page] = constants
        self.set_present(page, True, clock)

    def arrays(self):
        return {
            **dict(zip(PARAMETERS, self._belief[:, : self.n_pages], strict=True)),
            "crawled": self.pages["last"],
            "n_signals": self.pages["n_signals"],
            "present": self.present(),
            "terms": self._terms,
            "discard_window": self._discard_window,
            "policy": json.dumps([type(self._policy).__name__, self._options]),
        }

    @classmethod
    def restored(cls, arrays, clock):
        crawled, n_signals, present, _, terms, window, policy = (
            arrays[name] for name in _STATE
        )
        kind, options = json.loads(policy.item())
        if kind not in _BY_SIGNALS:
            raise ValueError(f"its policy {kind!r} is not known")
        if kind == "GreedyNCIS":
            options = {"terms": terms.item() or None, "discard_window": window.item()}
        pages = SignalledPages(*(arrays[name] for name in PARAMETERS))
        policy = _BY_SIGNALS[kind](pages, **options)
        crawled = _crawled(crawled, policy.pages.change_rate.size)
        if (
            not n_signals.shape == present.shape == crawled.shape
            or (n_signals.dtype, present.dtype) != (np.int32, bool)
            or (n_signals < 0).any()
        ):
            raise ValueError("its state contradicts itself")
        return cls(policy, crawled, n_signals=n_signals, present=present), crawled


def _likelihood_terms(changed, interval, age, count):
    """Bits, time and known changes of crawls, see `History.likelihood_terms`.

    The interval of a first crawl is inf. Its age dates a change all the same, and
    stands for the interval, if it is positive.
    """
    changed, n_known = changed.copy(), np.zeros(changed.size)
    reported = {}
    if age is not None:
        reported["age"] = np.atleast_1d(checks.numbers("age", age))
    if count is not None:
        reported["count"] = np.atleast_1d(checks.counts("count", count))
    for name, values in reported.items():
        if values.shape != changed.shape:
            raise ValueError(
                f"{name} must have one entry for each page, {changed.size}, "
                f"got shape {values.shape}"
            )
    if age is not None:
        first = np.isinf(interval)
        interval = np.where(first, reported["age"], interval)
        changed = changed | first
        if count is not None:  # of changes since an earlier copy, which there is not
            reported["count"] = np.where(first, np.nan, reported["count"])
    crawls = (interval > 0) & (interval < np.inf)
    if reported and crawls.any():
        reported = {name: values[crawls] for name, values in reported.items()}
        history = History(interval[crawls], changed[crawls], **reported)
        interval[crawls], changed[crawls], _, n_known[crawls] = (
            history.likelihood_terms()
        )
    return changed, interval, n_known


class _ByIndex(_Engine):
    """Policies by a priority index, under limits: the state of `indices`."""

    _kernels = indices

    def __init__(self, kind, labels, state, n_pages):
        self._kind, self._labels, self.n_pages = kind, labels, n_pages
        self.learns = kind == indices.BAYES
        self.state = state

    @classmethod
    def begun(cls, policy, crawled):
        """The engine of a policy, for pages last crawled at some times."""
        labels = _lasting(policy.labels)
        state = policy.start(crawled, time=crawled.max())
        return cls(policy.kind, labels, state, crawled.size)

    def signal(self, page, time):
        """Signals are not used."""

    def free_from(self):
        return indices.free_from(*self._arrays[:2])

    def slots(self, times, signal_page, signal_time, out):
        indices.slots(self.state, times, UNTOLD, out)

    def report_bit(self, page, changed, clock):
        return indices.report_bit(self._table, page, changed, clock)

    def report(self, page, found, clock):
        indices.report(self.state, page, *found, clock)

    def checked(self, pages):
        """Number of new pages; their records, labels of their hosts, and hosts."""
        if isinstance(pages, SignalledPages):
            pages = Greedy(pages)
        fits = isinstance(pages, IndexPolicy) and pages.kind == self._kind
        if not (fits and pages.n_pages):
            raise ValueError(
                f"pages must go by the same index, one or more, got {pages!r}"
            )
        labels = _lasting(pages.labels)
        if labels == [None] and None not in self._labels:
            raise ValueError(
                "host must be given, because all pages before have one, got None"
            )
        records, hosts = pages.records()
        spacing = dict(zip(self._labels, self.state.hosts["spacing"], strict=True))
        for label, new in zip(labels, hosts["spacing"], strict=True):
            if spacing.get(label, new) != new:
                with np.errstate(divide="ignore"):  # inf: no limit
                    before, limit = 1 / spacing[label], 1 / new
                raise ValueError(
                    f"host_limit must be {before} for host {label!r}, "
                    f"as it has been, got {limit}"
                )
        return records.size, (records, labels, hosts)

    def _settled(self, records, labels, hosts):
        """The records on the hosts of all pages, to which new hosts are added."""
        added = [k for k, label in enumerate(labels) if label not in self._labels]
        self._labels = [*self._labels, *(labels[k] for k in added)]
        hosts = np.append(self.state.hosts, hosts[added])
        self.state = self.state._replace(hosts=hosts)
        place = {label: k for k, label in enumerate(self._labels)}
        records["host"] = np.array([place[label] for label in labels])[records["host"]]
        return records

    def add(self, new, crawled, clock):
        records = self._settled(*new)
        records["last"] = records["seen"] = crawled
        index = self.added(records.size)
        self.pages[index] = records
        self.set_present(index, True, clock)
        return index

    def update(self, page, new, clock):
        records = self._settled(*new)
        for name in indices.DESCRIBED:
            self.pages[name][page] = records[name]
        self.set_present(page, True, clock)

    def arrays(self):
        indices.place_crawled(self.state)
        hosts = self.state.hosts
        return {
            **{name: self.pages[name] for name in _RECORDS},
            **{name: hosts[name] for name in _HOSTS},
            "labels": json.dumps(self._labels),  # numbers, strings, None
        }

    @classmethod
    def restored(cls, arrays, clock):
        pages = np.zeros(arrays["last"].size, indices.PAGE)
        hosts = np.zeros(arrays["spacing"].size, HOST)
        for records, names in ((pages, _RECORDS), (hosts, _HOSTS)):
            for name in names:
                records[name] = arrays[name]
        kinds, labels = np.unique(pages["kind"]), json.loads(arrays["labels"].item())
        if (
            kinds.size > 1
            or not np.isin(kinds, np.arange(indices.BAYES + 1)).all()
            or len(labels) != hosts.size
            or not ((pages["host"] >= 0) & (pages["host"] < hosts.size)).all()
            or np.isnan([pages[name] for name in _RECORDS]).any()
        ):
            raise ValueError("its state contradicts itself")
        last = pages["last"].copy()
        pages["place"] = np.where(
            pages["place"] == indices.ABSENT, indices.ABSENT, indices.IDLE
        )
        state = indices.new_state(pages, hosts, clock)
        return cls(int(kinds.max(initial=0)), labels, state, last.size), last


def _lasting(labels):
    """Labels of hosts, of types that a file of `Scheduler.save` can hold."""
    for label in labels:
        if not isinstance(label, str | float | int | None):
            raise ValueError(f"host must hold numbers or strings, got {label!r}")
    return labels


def _belief(pages):
    """Parameters of pages as one array, shape (4, n_pages)."""
    return np.array([getattr(pages, name) for name in PARAMETERS])


def _crawled(crawled, n_pages):
    """Times of the last crawls, finite or -inf, shape (n_pages,)."""
    try:
        crawled = np.broadcast_to(checks.numbers("crawled", crawled), n_pages)
    except ValueError:
        raise ValueError(
            f"crawled must be a time for each of {n_pages} pages, got {crawled!r}"
        ) from None
    checks.finite("crawled", crawled[crawled != -math.inf])
    return crawled


def _read(path):
    """Arrays of a saved scheduler, undamaged and of this version."""
    content = Path(path).read_bytes()
    try:
        if not content.startswith(b"PK"):  # NumPy would advise to unpickle it
            raise ValueError("it is no npz file")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if damaged := file.zip.testzip():
                raise ValueError(f"{damaged} is damaged")
            names = _INDEX if "kind" in file.files else _SIGNALS
            arrays = {name: file[name] for name in ("version", *names)}
    except Exception as error:  # a damaged archive fails in many ways
        raise ValueError(f"{path} is not a saved scheduler: {error}") from None
    version = arrays["version"].tolist()
    if version != [_VERSION]:
        raise ValueError(f"{path} must be of version {_VERSION}, got {version!r}")
    return arrays
