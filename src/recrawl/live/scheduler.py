"""Which page to crawl next: a scheduler for a running crawler, exact and fast.

`Scheduler` gives the page of largest crawl value in every slot, at a cost that
hardly depends on the number of pages. It uses change rates and signals that are
known, or learns change rates from what the crawls find; it keeps limits of pages and
hosts, and can be saved and loaded.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib import checks
from paperlib.lemma_4 import lemma_4_rates, saturation
from paperlib.signals import SignalledPages
from recrawl.compiled import addresses
from recrawl.errors import NoPageError
from recrawl.live import slots
from recrawl.live.gamma import from_log
from recrawl.log.files import write_atomic
from recrawl.types import PathLike

__all__ = ["LearnedPages", "Limits", "NoPageError", "Scheduler"]

_VERSION = 4  # of the file format
_YEAR_2200 = 84_006.0  # days since 1970; a later time is in seconds
_SPARE = 5 / 4  # arrays that are too short grow by so much, not page by page
_NO_SIGNALS = np.empty(0, np.int64), np.empty(0)
_KNOWN = "importance", "change_rate", "false_rate", "alpha", "gamma", "beta", "limit"
_LEARNED = "importance", "shape", "rate"
_SCALARS = "window", "expected", "found", "usual"
# What a file holds of each page; the rest follows from it.
_SAVED = (
    *(*_KNOWN, "shape", "rate", "min_interval", "max_interval"),
    *("last", "copied", "n_signals", "host", "present"),
)


@dataclass(frozen=True, eq=False)
class LearnedPages:
    r"""Pages whose change rates are learnt, from gamma distributions on.

    A crawl of a page whose rate has a gamma distribution of shape a and rate b finds
    a change with the probability :math:`1 - (b / (b + t))^a` after the time t, and
    its crawl value is (derived)

    .. math:: V(t) = \frac{\mu}{a - 1} \Bigl(b
              - (b + a t) \Bigl(\frac{b}{b + t}\Bigr)^a\Bigr), \qquad
              V(\infty) = \frac{\mu\,b}{a - 1}\ (a > 1), \quad \infty\ (a \le 1) .

    A page of which little is known keeps a large value in the long run, so that a
    rate that was once taken for too high is corrected. In none of the papers.

    Parameters
    ----------
    importance : array_like, shape (n_pages,)
        Weight of each page, non-negative.
    shape : array_like
        Shape of the prior, positive, one number or one for each page: the prior
        counts as so many changes, seen in the time `rate`.
    rate : array_like, time
        Rate of the prior, positive; shape / rate is the mean change rate. Without
        knowledge take shape 1 and rate n_pages / bandwidth: one change in the mean
        time between crawls of a page. A shape below 1 gains a little more where pages
        differ much, and loses against crawling in turn where they change in bulk. With
        ten times that rate, learnt rates are a third too low after 60 rounds.
    """

    importance: Any
    shape: Any
    rate: Any

    def __post_init__(self):
        importance = checks.numbers("importance", np.atleast_1d(self.importance))
        shape, rate = (
            checks.numbers(name, getattr(self, name), above=True)
            for name in ("shape", "rate")
        )
        arrays = checks.broadcast(importance=importance, shape=shape, rate=rate)
        vars(self).update(zip(_LEARNED, arrays, strict=True))  # frozen


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of pages and hosts, each a number or one for each page.

    Parameters
    ----------
    min_interval : array_like, time, default 0
        No page is crawled again sooner: at least the longest time that a fetch takes,
        where several pages are fetched at once.
    max_interval : array_like, time, default inf
        A page whose last crawl is longer ago, or that was never crawled, is overdue:
        it comes before all that are not, in the order of the deadlines.
    host : array_like, shape (n_pages,), optional
        Label of the host of each page, a number or a string.
    host_limit : float or mapping from label to float, 1/time, default inf
        Crawls per unit time of every host, or of those named. A host can save up
        two crawls.
    """

    min_interval: Any = 0.0
    max_interval: Any = np.inf
    host: Any = None
    host_limit: Any = np.inf

    def __post_init__(self):
        low = checks.numbers("min_interval", self.min_interval)
        high = np.asarray(self.max_interval, dtype=float)
        low, high = np.broadcast_arrays(low, high)
        checks.require("max_interval", high, "at least min_interval", high >= low)


class Scheduler:
    r"""The page to crawl in each slot, by the largest crawl value, exact and fast.

    The slot at time t goes to the page of largest crawl value, ties to the lower
    number. With known rates this is Algorithm 1 of Busa-Fekete et al. (2025),

    .. math:: \arg\max_i V_i(\tau_i + \beta_i n_i)

    with the crawl value V, the time tau and the number n of signals since the last
    crawl of the page. The slots are those of the full arg max, but a slot looks at a
    few pages only.

    Parameters
    ----------
    pages : SignalledPages or LearnedPages
        Pages as they are believed to be, or whose change rates are to be learnt:
        then `report` each crawl.
    limits : Limits, optional
        By default none.
    discard_window : float, time, default 0
        Signals so soon after a crawl of their page are ignored.
    crawled : float or array_like, shape (n_pages,), time, default -inf
        Time of the last crawl of each page; ``-inf`` for never, whose value is that
        of an infinite elapsed time.

    Notes
    -----
    Time never goes back: a slot or a signal earlier than one before it is an error.
    A call that is refused by a ValueError changes nothing. Pages keep their number;
    the number of a removed page is not used again. The plain form is the arg max
    over `tests.plain.crawl_value`.

    Examples
    --------
    >>> from paperlib.signals import SignalledPages
    >>> pages = SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1)
    >>> scheduler = Scheduler(pages, crawled=0.0)
    >>> scheduler.signal(1, time=0.25)
    >>> scheduler.next(time=0.5), scheduler.next(time=1.0)
    (1, 0)

    Without change rates to begin with:

    >>> scheduler = Scheduler(LearnedPages([1.0, 0.5], shape=1.0, rate=1.0))
    >>> page = scheduler.next(time=1.0)
    >>> scheduler.report(page, changed=True)
    """

    _latest = math.inf  # later times are those of another unit

    def __init__(
        self,
        pages: SignalledPages | LearnedPages,
        limits: Limits | None = None,
        *,
        discard_window: float = 0.0,
        crawled: ArrayLike = -np.inf,
    ) -> None:
        window = checks.number("discard_window", discard_window)
        self.learns = isinstance(pages, LearnedPages)
        self._n_pages, self._hosts = 0, {}
        self._set_state(slots.new_state(0, 0, window))
        self._clock = math.inf  # of the crawls before, whatever they are
        self.add(pages, limits, crawled=crawled)
        self._clock = self._pages["last"].max().item()

    @classmethod
    def from_rates(
        cls, rates: PathLike, *, discard_window: float = 0.0, **limits: Any
    ) -> Scheduler:
        """Return a scheduler that goes on where a crawl log ends.

        Page k is row k of the file. Its change rate is learnt further, from the gamma
        distribution whose logarithm has the mean and the deviation that were
        estimated; its copy is that of its last crawl. If the file tells of signals,
        the estimated rates count as known, and `signal` is to be called. Pages that
        are gone are removed. Times are days since 1970.

        Parameters
        ----------
        rates : path
            The Parquet file that `recrawl.estimate` wrote.
        discard_window : float, days, default 0
            Signals so soon after a crawl of their page are ignored.
        **limits
            `min_interval`, `max_interval` and `host_limit` of `Limits`, in days and
            crawls a day. The hosts are those of the file.

        Raises
        ------
        FileNotFoundError
            No such file.
        ModuleNotFoundError
            PyArrow is missing: ``pip install '.[log]'`` brings it.
        ValueError
            The file is damaged, lacks a column, or holds a value that is none.
            A time that is given later is after the year 2200, as seconds are.

        Examples
        --------
        >>> import tempfile
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> days = pa.array([19_000, 19_001], pa.date32()).cast(pa.timestamp("us"))
        >>> columns = {"url": ["/news", "/about"], "change_rate": [1.1, 0.02]}
        >>> columns |= {"log_rate": [0.0, -4.5], "log_stderr": [0.3, 0.8]}
        >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        ...     pq.write_table(pa.table(columns | {"last_crawl": days}), file.name)
        ...     scheduler = Scheduler.from_rates(file.name, min_interval=0.1)
        >>> page = scheduler.next(time=19_001.5)
        >>> columns["url"][page]
        '/news'
        >>> scheduler.next(time=19_001.5 * 86_400)
        Traceback (most recent call last):
        ValueError: time must be days since 1970, got 1641729600.0
        >>> scheduler.report(page, changed=True)
        """
        # Reading needs pyarrow, and scheduling does not.
        from recrawl.plan.inputs import Rates, column

        needed = ["log_rate", "log_stderr"]
        if "host_limit" in limits:
            needed.append("host")
        file = Rates(rates, needed)
        signals = [name for name in ("recall", "false_rate") if name in file.names]
        names = ["change_rate", "log_rate", "log_stderr", "importance", *signals]
        table = file.read([*names, "gone", "last_crawl", "host"])
        known = {
            name: checks.numbers(name, column(table, name), low=-np.inf)
            for name in names
        }
        mean, stderr = known.pop("log_rate"), known.pop("log_stderr")
        checks.require("log_stderr", stderr, "positive", stderr > 0)
        if signals:
            pages = SignalledPages(**known)
        else:
            pages = LearnedPages(known["importance"], *from_log(mean, stderr))
        if "host_limit" in limits:
            limits["host"] = [str(host) for host in table["host"].to_pylist()]
        last = column(table, "last_crawl")
        day = (last - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        crawled = np.where(np.isnat(last), -np.inf, day)
        scheduler = cls(
            pages, Limits(**limits), discard_window=discard_window, crawled=crawled
        )
        scheduler._latest = _YEAR_2200
        scheduler.remove(np.flatnonzero(column(table, "gone")))
        return scheduler

    def __repr__(self):
        how = "learnt" if self.learns else "known"
        return f"<Scheduler of {len(self)} pages of {how} rates, at {self._clock}>"

    def __len__(self):
        """Return the number of pages, without those removed."""
        return np.count_nonzero(self._pages["present"])

    def __setstate__(self, attributes):
        """Find the addresses again: the arrays of a copy are elsewhere."""
        vars(self).update(attributes)
        self._set_state(self._state)

    def _make_room(self):
        """Lengthen the arrays of the state for the pages and hosts that there are."""
        old = self._state
        n_pages, n_hosts = old.pages.size, len(self._hosts)
        if self._n_pages > n_pages:
            n_pages = int(self._n_pages * _SPARE)
        if (n_pages, n_hosts) != (old.pages.size, old.hosts.size):
            state = slots.new_state(n_pages, n_hosts)
            state.pages[: old.pages.size] = old.pages
            state.hosts[: old.hosts.size] = old.hosts
            state.scalars[:] = old.scalars
            self._set_state(state)
            self._insert_all()

    def _insert_all(self):
        """Put the pages into a state that has their records only."""
        self._state.scalars["n_active"] = 0
        slots.insert(self._state, self._pages["present"].nonzero()[0], self._clock)

    def _set_state(self, state):
        self._state, self._table = state, addresses(state)

    @property
    def _pages(self):
        return self._state.pages[: self._n_pages]

    @property
    def n_values(self) -> int:
        """Crawl values computed so far; a full arg max needs one a page and slot."""
        return self._state.scalars["n_values"].item()

    @property
    def posterior(self) -> tuple[NDArray, NDArray]:
        """Shape and rate (time) of the gamma distribution of each page's change rate.

        Only where change rates are learnt.
        """
        self._must_learn()
        return self._pages["shape"].copy(), self._pages["rate"].copy()

    def signal(self, page: int, time: float) -> None:
        """Report that a signal of a page arrived; ignored where rates are learnt.

        Parameters
        ----------
        page : int
            Number of the page, from 0.
        time : float, time
            When the signal arrived, not before the last event.
        """
        if np.ndim(page):
            raise ValueError(f"page must be the number of one page, got {page!r}")
        if not self._is_usual(page):
            page = self._known(page).item()
        self._advance(time)
        slots.one_signal(self._table, page, self._clock)

    def next(self, time: float) -> int:
        """Return the page to crawl now; from then on it counts as crawled.

        A page can come again before its report: a report is for its last crawl.

        Parameters
        ----------
        time : float, time
            When the slot is, not before the last event.

        Raises
        ------
        NoPageError
            There is no page, or limits forbid to crawl any at this time, which is
            then the last event; the message says until when.
        """
        self._advance(time)
        page = slots.one_page(self._table, self._clock)
        if page < 0:
            why, free_from = "", slots.free_from(self._state)
            if free_from < math.inf:
                why = f": limits forbid all pages until time {free_from}"
            raise NoPageError(f"there is no page to crawl at time {self._clock}{why}")
        return page

    def report(
        self, page: ArrayLike, changed: ArrayLike, *, age: ArrayLike = np.nan
    ) -> None:
        """Report what the last crawl of pages found.

        A crawl that failed is not reported: the next report is then for the time
        since the last copy was made. The first crawl of a page says nothing of its
        changes, unless their age is known; report it all the same. While more pages
        change than their posteriors predict, as after a redesign, a change counts
        less.

        Parameters
        ----------
        page : int or array_like of int, shape (n_reported,)
            Numbers of the pages, each once.
        changed : bool or array_like of bool, shape (n_reported,)
            Whether the page had changed since its copy was made.
        age : float or array_like, shape (n_reported,), time, optional
            Age of the last change at the crawl, as by the header Last-Modified; NaN
            where it is unknown. One that contradicts `changed` is ignored.

        Raises
        ------
        ValueError
            Rates are not learnt; a page that is unknown, that was not crawled since
            its last report, or that is named twice; lengths that do not match.
        """
        # The usual call, in a fraction of the time; what it refuses is checked below.
        usual = self.learns and self._is_usual(page) and type(changed) is bool
        usual = usual and isinstance(age, float) and math.isnan(age)
        if usual and slots.one_report(self._table, page, changed, self._clock):
            return
        self._must_learn()
        page = self._known(page)
        changed = np.atleast_1d(checks.bits("changed", changed))
        if changed.shape != page.shape:
            raise ValueError(
                f"changed must have one entry for each page, {page.size}, "
                f"got shape {changed.shape}"
            )
        age = np.broadcast_to(np.asarray(age, dtype=float), page.shape)
        _require_once(page)
        reported = self._pages["last"][page] <= self._pages["copied"][page]
        if reported.any():
            raise ValueError(
                "page must have been crawled since its last report, "
                f"got {page[reported][0].item()!r}"
            )
        for one in zip(page, changed, age, strict=True):
            slots.report(self._state, *one, self._clock)

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
            When each signal arrives, never decreasing. A signal at the time of a
            slot comes before the slot; one after the last slot is ignored.

        Returns
        -------
        ndarray of int, shape (n_slots,)
            Numbers of the pages, -1 where there is no page.
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
            slots.run(self._state, times, signal_page, signal_time, pages)
            self._clock = times[-1].item()
        return pages

    def add(
        self,
        pages: SignalledPages | LearnedPages,
        limits: Limits | None = None,
        *,
        crawled: ArrayLike = -np.inf,
    ) -> NDArray[np.integer]:
        """Add pages.

        Parameters
        ----------
        pages : SignalledPages or LearnedPages
            Of the kind of those that are there.
        limits : Limits, optional
            A host that is known already must have the same limit.
        crawled : float or array_like, shape (n_added,), time, default -inf
            Time of the last crawl of each page; ``-inf`` for never.

        Returns
        -------
        ndarray of int, shape (n_added,)
            Numbers of the new pages.
        """
        records = self._records(pages)
        last = _for_pages("crawled", checks.floats("crawled", crawled), records.shape)
        checks.require("crawled", last, "finite or -inf", last < np.inf)
        if (last > self._clock).any():
            raise ValueError(
                f"crawled must not lie after the last event, {self._clock}, "
                f"got {last.max().item()!r}"
            )
        self._limit(records, limits or Limits())
        records["last"] = records["copied"] = last
        index = np.arange(self._n_pages, self._n_pages + records.size)
        self._n_pages += records.size
        self._make_room()
        self._pages[index] = records
        self._state.scalars["n_pages"] = self._n_pages
        slots.insert(self._state, index, last.max())
        return index

    def update(
        self,
        page: ArrayLike,
        pages: SignalledPages | LearnedPages,
        limits: Limits | None = None,
    ) -> None:
        """Believe other parameters of pages from now on.

        The time and the signals since the last crawl stay. What was learnt is
        replaced: to keep it, give the `posterior` of the pages as their prior.

        Parameters
        ----------
        page : int or array_like of int, shape (n_updated,)
            Numbers of the pages, each once.
        pages : SignalledPages or LearnedPages
            The new parameters, one entry for each page.
        limits : Limits, optional
            By default the limits of before.
        """
        page = self._known(page)
        _require_once(page)
        records = self._records(pages)
        if records.size != page.size:
            raise ValueError(
                f"pages must have one entry for each page, {page.size}, "
                f"got {records.size}"
            )
        names = [*(_LEARNED if self.learns else (*_KNOWN, "stale"))]
        if limits is not None:
            self._limit(records, limits)
            names += ["min_interval", "max_interval", "host"]
        for name in names:
            self._pages[name][page] = records[name]
        slots.insert(self._state, page, self._clock)

    def remove(self, page: ArrayLike) -> None:
        """Remove pages, by their numbers."""
        page = self._known(page)
        self._pages["present"][page] = False
        slots.insert(self._state, page, self._clock)

    def save(self, path: PathLike) -> None:
        """Write the scheduler to an npz file, whole or not at all."""
        state = self._state
        arrays = {name: self._pages[name] for name in _SAVED}
        arrays |= {name: state.hosts[name] for name in ("spacing", "full_at")}
        arrays |= {"version": _VERSION, "clock": self._clock, "learns": self.learns}
        arrays |= {name: state.scalars[name] for name in _SCALARS}
        arrays["hosts"] = json.dumps([*self._hosts])
        file = io.BytesIO()
        np.savez(file, **{k: np.ascontiguousarray(v) for k, v in arrays.items()})
        write_atomic(path, file.getvalue())

    @classmethod
    def load(cls, path: PathLike) -> Scheduler:
        """Return the scheduler that was saved to a file.

        It gives exactly the slots that the saved one would have given. Nothing in
        the file is executed; a file that is damaged, of another version, or no saved
        scheduler is a ValueError.
        """
        try:
            scheduler = cls.__new__(cls)
            scheduler._restore(_read(Path(path).read_bytes()))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved scheduler: {error}") from None
        return scheduler

    def _restore(self, arrays):
        """Take the state from the arrays of a file."""
        self.learns, self._clock = arrays["learns"].item(), arrays["clock"].item()
        labels = json.loads(arrays["hosts"].item())
        self._hosts = {label: k for k, label in enumerate(labels)}
        self._n_pages = arrays["last"].size
        state = slots.new_state(self._n_pages, len(labels))
        for name in _SAVED:
            state.pages[name] = arrays[name]
        for name in _SCALARS:
            state.scalars[name] = arrays[name]
        state.scalars["n_pages"] = self._n_pages
        for name in "spacing", "full_at":
            state.hosts[name] = arrays[name]
        pages = state.pages
        numbers = [pages[name] for name in _SAVED]
        if (
            np.isnan(numbers).any()
            or (pages["host"] < -1).any()
            or (pages["host"] >= len(labels)).any()
            or (pages["n_signals"] < 0).any()
            or (pages["shape"] > 0).any() != self.learns
            or (pages["last"] > self._clock).any()
        ):
            raise ValueError("its state contradicts itself")
        pages["stale"] = _stale(pages["alpha"], self.learns)
        self._set_state(state)
        self._insert_all()

    def _records(self, pages):
        """Records of pages of the right kind, without limits."""
        kind = LearnedPages if self.learns else SignalledPages
        if not (isinstance(pages, kind) and pages.importance.size):
            raise ValueError(
                f"pages must be {kind.__name__}, one or more, got {pages!r}"
            )
        records = np.zeros(pages.importance.size, slots.PAGE)
        if self.learns:
            for name in _LEARNED:
                records[name] = getattr(pages, name)
        else:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                limit = pages.importance / pages.change_rate
            limit[pages.change_rate == 0] = 0.0
            values = (
                pages.importance,
                pages.change_rate,
                pages.false_rate,
                *lemma_4_rates(pages),
                limit,
            )
            for name, value in zip(_KNOWN, values, strict=True):
                records[name] = value
        records["stale"] = _stale(records["alpha"], self.learns)
        records["present"] = True
        return records

    def _limit(self, records, limits):
        """Write limits into records, and new hosts into the state."""
        for name in "min_interval", "max_interval":
            records[name] = _for_pages(name, getattr(limits, name), records.shape)
        records["host"] = -1
        if limits.host is None:
            return
        host = _for_pages("host", limits.host, records.shape)
        labels, member = np.unique(host, return_inverse=True)
        labels, limit = labels.tolist(), limits.host_limit
        if isinstance(limit, Mapping):
            if unknown := [label for label in limit if label not in labels]:
                raise ValueError(
                    f"host_limit must name hosts that have pages, got {unknown[:5]}"
                )
            limit = [limit.get(label, np.inf) for label in labels]
        limit = _for_pages(
            "host_limit", checks.floats("host_limit", limit), len(labels)
        )
        checks.require("host_limit", limit, "non-negative", limit >= 0)
        with np.errstate(divide="ignore"):
            spacing = 1.0 / limit
        old = self._state.hosts["spacing"]
        for label, new in zip(labels, spacing, strict=True):
            if label in self._hosts and old[self._hosts[label]] != new:
                raise ValueError(
                    f"host_limit of host {label!r} must stay as it is, got another"
                )
        known = len(self._hosts)
        for label in labels:
            self._hosts.setdefault(label, len(self._hosts))
        index = np.array([self._hosts[label] for label in labels])
        self._make_room()
        new = index >= known
        self._state.hosts["spacing"][index[new]] = spacing[new]
        self._state.hosts["full_at"][index[new]] = -np.inf
        records["host"] = index[member]

    def _must_learn(self):
        if not self.learns:
            raise ValueError("pages must be LearnedPages for a report or a posterior")

    def _is_usual(self, page):
        """Whether a page is a plain int that is there; a fast check."""
        usual = type(page) is int and 0 <= page < self._n_pages
        return usual and self._state.pages[page]["present"]

    def _advance(self, time):
        """Set the clock to a time that is not before it."""
        if not (type(time) is float and self._clock <= time < self._latest):
            time = checks.number("time", time, low=-math.inf)
            if time > self._latest:
                raise ValueError(f"time must be days since 1970, got {time!r}")
            if time < self._clock:
                raise ValueError(
                    f"time must not go back, got {time!r} after {self._clock}"
                )
        self._clock = time

    def _in_order(self, name, times):
        """Times as an array of one axis, finite, rising from the clock on."""
        times = checks.numbers(name, times, low=-np.inf, high=self._latest)
        if times.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {times.shape}")
        back = np.diff(times, prepend=self._clock) < 0
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
        good = (page >= 0) & (page < self._n_pages)
        good[good] = self._pages["present"][page[good]]
        if not good.all():
            raise ValueError(
                f"{name} must be the number of a page that is there, "
                f"got {page[~good][0].item()!r}"
            )
        return page.astype(np.int64)


def _for_pages(name, value, shape):
    """The value, one or one for each page, in the shape of the pages."""
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(
            f"{name} must be one value, or one for each page, shape {shape}, "
            f"got shape {np.shape(value)}"
        ) from None


def _require_once(page):
    """Raise if a page is named twice."""
    if np.unique(page).size < page.size:
        raise ValueError(f"page must name each page once, got {page.tolist()}")


def _stale(alpha, learns):
    """Effective time from which V is at its limit."""
    if learns:
        return np.inf
    return saturation(alpha)[1]


def _read(content):
    """Arrays of a saved scheduler, undamaged and of this version."""
    try:
        if not content.startswith(b"PK"):  # NumPy would advise to unpickle it
            raise ValueError("it is no npz file")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if damaged := file.zip.testzip():
                raise ValueError(f"{damaged} is damaged")
            arrays = dict(file)
    except Exception as error:  # a damaged archive fails in many ways
        raise ValueError(str(error)) from None
    if (version := arrays["version"].tolist()) != [_VERSION]:
        raise ValueError(f"its version must be {_VERSION}, got {version!r}")
    return arrays
