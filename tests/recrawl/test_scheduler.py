"""The scheduler (`live.slots`): every slot beside the full arg max, limits, errors."""

import copy
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import recrawl
from paperlib.freshness import lemma_4, lemma_4_rates
from paperlib.signals import SignalledPages
from recrawl.live import bayes
from recrawl.live.scheduler import LearnedPages, Limits, NoPageError, Scheduler
from tests.recrawl import plain

INF = np.inf
EXAMPLE = Path(__file__).parents[2] / "data" / "example_log.csv.gz"
# Values of pages that are stale for sure differ by rounding, and so does their order.
ROUNDING = 1e-14


class Plain:
    """The rules of the class, as loops over all pages.

    Values are those of the kernels, so that ties of equal pages are equal here too;
    the kernels themselves are compared with plain forms below and elsewhere.
    """

    def __init__(self, window=0.0):
        self.pages, self.hosts, self.window = [], {}, window
        self.expected = self.found = self.usual = 0.0

    def add(self, pages, limits, crawled):
        numbers = range(len(self.pages), len(self.pages) + pages.importance.size)
        self.pages += [None] * len(numbers)
        self.update(numbers, pages, limits)
        for i, last in zip(numbers, crawled, strict=True):
            self.pages[i] |= {"last": last, "copied": last, "n": 0}

    def update(self, numbers, pages, limits=None):
        known = {k: x for k, x in vars(pages).items() if not k.startswith("_")}
        if isinstance(pages, SignalledPages):
            rates = lemma_4_rates(pages)
            known |= dict(zip(("alpha", "gamma", "beta"), rates, strict=True))
        if limits is not None:
            for name, of in ("low", "min_interval"), ("high", "max_interval"):
                known[name] = np.broadcast_to(getattr(limits, of), len(numbers))
            known["host"] = np.broadcast_to(limits.host, len(numbers))
        for k, i in enumerate(numbers):
            self.pages[i] = (self.pages[i] or {}) | {n: x[k] for n, x in known.items()}
            host = self.pages[i]["host"]
            if limits is not None and host is not None:
                limit = limits.host_limit[host]
                self.hosts.setdefault(host, [1 / limit if limit else INF, -INF])

    def value(self, page, t):
        iota = t - page["last"]
        if "shape" in page:
            if page["importance"] == 0:
                return 0.0
            return page["importance"] * bayes.value(page["shape"], page["rate"], iota)
        if page["change_rate"] == 0:
            return 0.0
        limit = page["importance"] / page["change_rate"]
        if iota == INF:
            return limit
        iota = t - (page["last"] - page["beta"] * page["n"])
        rates = [page[name] for name in ("change_rate", "false_rate", "alpha")]
        if page["alpha"] * iota >= 45:
            return limit
        found = lemma_4(iota, *rates, page["gamma"], page["beta"], INF)[0]
        return min(page["importance"] * found, limit)

    def rounding(self, i):
        """Of a value: its sums cancel where nearly all changes are signalled."""
        page = self.pages[i]
        scale = page.get("alpha", 0.0) + page.get("gamma", 0.0)
        return ROUNDING * page["importance"] / scale if page.get("gamma") else 0.0

    def free(self, page, t):
        spacing, full_at = self.hosts.get(page["host"], (0.0, -INF))
        has_token = spacing < INF and full_at - spacing <= t
        return has_token and page["last"] + page["low"] <= t

    def candidates(self, t):
        """Pages that may be crawled, and whether they are overdue; ordered keys."""
        free = [i for i, p in enumerate(self.pages) if p and self.free(p, t)]
        late = [i for i in free if self.deadline(i) <= t]
        if late:
            return {i: -self.deadline(i) for i in late}
        return {i: self.value(self.pages[i], t) for i in free}

    def crawl(self, i, t):
        page = self.pages[i]
        if page["host"] is not None:
            host = self.hosts[page["host"]]
            host[1] = max(host[1], t) + host[0]
        page["last"], page["n"] = t, 0

    def deadline(self, i):
        return self.pages[i]["last"] + self.pages[i]["high"]

    def signal(self, i, t):
        page = self.pages[i]
        page["n"] += page["beta"] > 0 and t - page["last"] >= self.window

    def report(self, i, changed, age):
        page = self.pages[i]
        interval, page["copied"] = page["last"] - page["copied"], page["last"]
        known = age if 0 < age <= interval and (changed or interval == INF) else None
        if known is None and interval == INF:
            return
        before = np.array([page["shape"], page["rate"]])
        bit = changed or known is not None
        after = np.array(plain.gamma_step(*before, bit, interval, known))
        weight = 1.0 if interval == INF else self.weight(*before, interval, changed)
        page["shape"], page["rate"] = before + weight * (after - before)

    def weight(self, shape, rate, interval, changed):
        """Of a report: changes count less while more is found than expected."""
        recent = 1 / max(0.03 * len(self.pages), 30)
        expected = 1 - (rate / (rate + interval)) ** shape
        self.expected += recent * (expected - self.expected)
        self.found += recent * (changed - self.found)
        self.usual += recent / 100 * (changed - self.usual)
        least = max(self.expected, self.usual)
        ratio = (least + 3 * recent) / (self.found + 3 * recent)
        return min(1, ratio**2) if changed else 1


def believed(rng, n, kind):
    """Pages of one kind: what is known of them, and how extreme they are."""
    importance = rng.choice([rng.random(n), np.ones(n)], axis=0)
    if kind.startswith("learnt"):
        shape, rate = rng.choice([0.1, 0.5, 1.0, 3.0], n), rng.random(n) * 3 + 1e-3
        if kind == "learnt alike":
            shape, rate, importance = 0.5, 1.0, np.ones(n)
        return LearnedPages(importance, shape, rate)
    change_rate = rng.random(n) * rng.choice([0.01, 1.0, 30.0])
    recall, false_rate = np.zeros(n), np.zeros(n)
    if kind != "no signals":
        recall, false_rate = rng.beta(0.25, 0.25, n), rng.uniform(0.1, 0.6, n)
    if kind == "extreme":
        recall = rng.choice([0.0, 1e-9, 0.5, 1.0 - 1e-9, 1.0], n)
        false_rate = rng.choice([0.0, 1e-12, 0.3, 5.0], n)
        change_rate = rng.choice([0.0, 1e-12, 0.3, 1e4], n)
        importance = rng.choice([0.0, 1e-200, 1.0], n)
    if kind == "alike":
        change_rate, importance = np.full(n, 0.5), np.full(n, 0.7)
        recall, false_rate = np.full(n, 0.3), np.full(n, 0.2)
    return SignalledPages(change_rate, importance, recall, false_rate)


def some_limits(rng, n, kind):
    """Limits of pages and of four hosts of given limits, or none."""
    if kind == "none":
        return Limits()
    low = rng.choice([0.0, 0.3, 3.0], n)
    high = rng.choice([INF, INF, 4.0, 30.0], n)
    if kind == "pages":
        return Limits(low, high)
    host = rng.integers(0, 4, n)
    every = dict(enumerate([0.0, 0.5, 3.0, INF]))
    limit = {label: every[label] for label in set(host.tolist())}
    return Limits(low, high, host.tolist(), limit)


def instance(seed, kind, limited, folder):
    """One random life of both forms, in which pages come, go and change."""
    rng = np.random.default_rng(seed)
    window, n = rng.choice([0.0, 0.1]), int(rng.choice([1, 3, 30, 80]))
    ours, full = None, Plain(window)
    now, here = float(rng.choice([0.0, 1e4])), []
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(4):
            n_new = n if ours is None else int(rng.integers(1, 9))
            new, limits = believed(rng, n_new, kind), some_limits(rng, n_new, limited)
            crawled = rng.choice([-INF, now - 2.0, now], n_new)
            if ours is None:
                ours = Scheduler(new, limits, discard_window=window, crawled=crawled)
                here = [*range(n)]
            else:
                here += ours.add(new, limits, crawled=crawled).tolist()
            full.add(new, limits, crawled)
            gap = rng.choice([0.003, 0.05, 1.0])
            for _ in range(int(rng.integers(1, 120))):
                now += gap * rng.choice([0.0, 1.0, 1.0, 1.0, 20.0])
                one_event(rng, ours, full, here, now)
            if rng.random() < 0.5:
                ours.save(folder / "state.npz")
                ours = Scheduler.load(folder / "state.npz")
            if rng.random() < 0.5:
                ours = copy.deepcopy(ours)
            if rng.random() < 0.5 and len(here) > 1:
                gone = rng.choice(here, int(rng.integers(1, len(here))), replace=False)
                here = sorted({*here} - {*gone.tolist()})
                ours.remove(gone)
                for i in gone:
                    full.pages[i] = None
            if rng.random() < 0.5:
                some = rng.choice(here, len(here) // 2 + 1, replace=False)
                new = believed(rng, some.size, kind)
                ours.update(some, new)
                full.update(some, new)
    assert len(ours) == len(here)


def one_event(rng, ours, full, here, now):
    """A slot, and signals and reports beside it."""
    try:
        page = ours.next(now)
    except NoPageError:
        page = -1
    keys = full.candidates(now)
    assert (page >= 0) == bool(keys)
    if page >= 0:
        best = max(keys, key=keys.get)
        slack = full.rounding(page) + full.rounding(best) + ROUNDING * abs(keys[best])
        assert keys[page] >= keys[best] - slack or keys[page] == keys[best]
        if not ours.learns:  # of pages that are equal in all, the first
            assert page == min(i for i in keys if full.pages[i] == full.pages[page])
        full.crawl(page, now)
    crawled = page >= 0 and now > full.pages[page].get("copied")
    if ours.learns and crawled and rng.random() < 0.8:
        changed, age = bool(rng.random() < 0.5), rng.choice([np.nan, np.nan, 0.2])
        ours.report(page, changed, age=float(age))
        full.report(page, changed, age)
        known = [full.pages[page][name] for name in ("shape", "rate")]
        found = np.take(ours.posterior, page, axis=1)
        np.testing.assert_allclose(found, known, rtol=1e-9)
    for i in rng.choice(here, rng.poisson(0.5)):
        ours.signal(int(i), now)
        if not ours.learns:
            full.signal(i, now)


KINDS = "no signals", "noisy", "extreme", "alike", "learnt", "learnt alike"


@pytest.mark.slow
@pytest.mark.parametrize("limited", ["none", "pages", "hosts"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_slot_goes_to_the_page_of_the_full_arg_max(kind, limited, tmp_path):
    for seed in range(20):
        instance(seed, kind, limited, tmp_path)


def test_a_large_instance_with_signals_and_one_that_learns():
    rng = np.random.default_rng(5)
    times = np.cumsum(1 / np.repeat([100.0, 150.0, 20.0, 100.0], 100))
    times[200:] += 1000.0  # a pause
    for kind in "noisy", "learnt":
        pages, full = believed(rng, 1000, kind), Plain()
        ours = Scheduler(pages, crawled=0.0)
        full.add(pages, Limits(), np.zeros(1000))
        for t in times:
            one_event(rng, ours, full, [*range(1000)], t)


# ----------------------------------------------------------------- single rules


def test_one_by_one_and_all_at_once_are_the_same():
    rng = np.random.default_rng(1)
    pages, times = believed(rng, 50, "noisy"), np.arange(1.0, 200.0)
    signal_time = np.sort(rng.uniform(0, 210, 300))
    signal_page = rng.integers(0, 50, 300)
    at_once, single = (Scheduler(pages, crawled=0.0) for _ in range(2))
    found = []
    for t, before in zip(times, [0.0, *times], strict=False):
        for k in np.flatnonzero((before < signal_time) & (signal_time <= t)):
            single.signal(int(signal_page[k]), signal_time[k])
        found.append(single.next(t))
    assert at_once.run(times, signal_page, signal_time).tolist() == found


@pytest.mark.parametrize(("time", "page"), [(0.49, 0), (0.5, 1), (1.0, 1)])
def test_a_signal_counts_from_the_end_of_the_discard_window_to_the_slot(time, page):
    pages = SignalledPages([1.0, 1.0], 1.0, 0.5, 0.1)
    scheduler = Scheduler(pages, discard_window=0.5, crawled=0.0)
    assert scheduler.run([1.0], [1], [time]).tolist() == [page]


def test_pages_never_crawled_come_first_by_value_and_equal_ones_in_order():
    known = Scheduler(SignalledPages([1.0, 2.0, 2.0, 0.5], 1.0))
    assert known.run([1.0, 1.1, 1.2, 1.3]).tolist() == [3, 0, 1, 2]
    learnt = Scheduler(LearnedPages([1.0, 2.0, 1.0], 0.5, 1.0))
    assert learnt.run([1.0, 1.1, 1.2]).tolist() == [0, 1, 2]
    equal = Scheduler(LearnedPages(np.ones(300), 0.5, 1.0), crawled=0.0)
    assert equal.run(np.arange(1.0, 301.0)).tolist() == [*range(300)]


def test_a_slot_takes_few_values_whatever_the_number_of_pages():
    rng = np.random.default_rng(4)
    for n in 1_000, 30_000:
        scheduler = Scheduler(SignalledPages(rng.random(n), rng.random(n)), crawled=0.0)
        scheduler.run(np.arange(1, 2 * n) / n)  # the start is over
        before = scheduler.n_values
        scheduler.run(2 + np.arange(2000) / n)
        assert scheduler.n_values - before < 6 * 2000


def test_pages_without_a_token_are_named_with_the_time_of_the_next():
    limits = Limits(host=["a", "a"], host_limit={"a": 0.25})
    scheduler = Scheduler(LearnedPages([1.0, 1.0], 0.5, 1.0), limits, crawled=0.0)
    assert scheduler.run([1.0, 2.0, 3.0]).tolist() == [0, 1, -1]
    with pytest.raises(NoPageError, match=r"time 4\.0: .* until time 5\.0"):
        scheduler.next(4.0)
    assert scheduler.next(5.0) == 0


def test_an_empty_scheduler_says_so_and_takes_new_pages():
    scheduler = Scheduler(SignalledPages([1.0], 1.0))
    scheduler.remove(0)
    with pytest.raises(NoPageError, match=r"no page to crawl at time 1\.0$"):
        scheduler.next(1.0)
    assert scheduler.add(SignalledPages([2.0, 2.0], 1.0)).tolist() == [1, 2]
    assert (scheduler.next(1.0), len(scheduler)) == (1, 2)
    assert repr(scheduler) == "<Scheduler of 2 pages of known rates, at 1.0>"


def test_a_log_starts_the_scheduler(tmp_path):
    """With each page's posterior and copy, without pages that are gone."""
    more, path = tmp_path / "more.csv", tmp_path / "rates.parquet"
    more.write_text(
        "url,time,changed,importance,status\n"
        "never,2025-07-01,,1000,500\n"
        "gone,2025-07-01,,1,200\ngone,2025-07-02,0,1,304\ngone,2025-07-03,,1,404\n"
    )
    recrawl.estimate([EXAMPLE, more], path)
    rates, scheduler = pq.read_table(path), Scheduler.from_rates(path)
    shape, rate = scheduler.posterior
    log = stats.loggamma(shape, scale=1.0)  # of the rate, in units of 1 / rate
    assert_allclose(log.mean() - np.log(rate), rates["log_rate"], rtol=1e-9)
    assert_allclose(log.std(), rates["log_stderr"], rtol=1e-9)
    last = rates["last_crawl"].cast("int64").to_numpy() / 86_400e6
    assert f"at {np.nanmax(last)}>" in repr(scheduler)
    gone = rates["gone"].to_numpy()
    assert "gone" in rates["url"].filter(rates["gone"]).to_pylist()
    assert len(scheduler) == np.count_nonzero(~gone)
    first = scheduler.next(np.nanmax(last) + 0.01)
    assert rates["url"][first].as_py() == "never"
    limited = Scheduler.from_rates(path, host_limit=0.0)
    with pytest.raises(NoPageError, match="no page to crawl"):
        limited.next(5e4)
    with pytest.raises(ValueError, match=r"times must be in .*, got 1800000000.0 at"):
        limited.run([1.8e9])  # seconds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_stderr": None}, "must have a column 'log_stderr'"),
        ({"log_stderr": [0.5, 0.0]}, "log_stderr must be positive, got 0.0"),
        ({"log_rate": [0.0, np.nan]}, "log_rate must be in [-inf, inf], got nan"),
        ({"importance": [1.0, -1.0]}, "importance must be non-negative"),
        ({"gone": ["yes", "no"]}, "must hold true or false in the column 'gone'"),
        ({"recall": [0.5, 0.5], "false_rate": [0.1, 0.1]}, None),
    ],
)
def test_a_file_of_rates_is_checked(change, message, tmp_path):
    columns = {"url": ["a", "b"], "change_rate": [1.0, 2.0]}
    columns |= {"log_rate": [0.0, 0.5], "log_stderr": [0.5, 0.5], **change}
    columns = {name: values for name, values in columns.items() if values is not None}
    pq.write_table(pa.table(columns), tmp_path / "rates.parquet")
    if message is None:  # with signals the rates are known
        assert not Scheduler.from_rates(tmp_path / "rates.parquet").learns
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        Scheduler.from_rates(tmp_path / "rates.parquet")


# ------------------------------------------------------------------------- files


@pytest.fixture
def saved(tmp_path):
    scheduler = Scheduler(SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1), crawled=0.0)
    scheduler.run([1.0, 2.0])
    scheduler.save(tmp_path / "state.npz")
    return tmp_path / "state.npz"


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {**file, **changes}
    np.savez(path, **{name: x for name, x in arrays.items() if x is not None})


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"last", b"lost")),
        lambda path: rewritten(path, version=1),
        lambda path: rewritten(path, last=None),
        lambda path: rewritten(path, last=np.array([1.0, 9.0])),
        lambda path: rewritten(path, last=np.array([1.0, np.nan])),
        lambda path: rewritten(path, host=np.array([0, 5])),
        lambda path: rewritten(path, n_signals=np.array([0, -1])),
        lambda path: rewritten(path, limit=np.ones(3)),
        lambda path: rewritten(path, hosts=np.array("{")),
        lambda path: rewritten(path, learns=True),
        lambda path: rewritten(path, last=np.array([{}, {}])),  # a pickle
    ],
)
def test_a_damaged_file_is_refused(saved, damage):
    damage(saved)
    with pytest.raises(ValueError, match="is not a saved scheduler"):
        Scheduler.load(saved)


# --------------------------------------------------------------------- bad input

KNOWN, LEARNT = SignalledPages([1.0, 2.0], 1.0), LearnedPages([1.0, 2.0], 0.5, 1.0)
BAD_CALLS = {
    "time must not go back, got 1.0 after 2.0": lambda s: s.next(1.0),
    "time must be one number": lambda s: s.next([3.0]),
    "time must be in [-inf, inf], got nan": lambda s: s.next(np.nan),
    "page must be the number of one page": lambda s: s.signal([0], 3.0),
    "page must be the number of a page that is there, got 2": lambda s: s.signal(2, 3),
    "page must be a page number": lambda s: s.remove(0.5),
    "times must not go back, got 2.5 at index 1": lambda s: s.run([3.0, 2.5]),
    "times must have one axis": lambda s: s.run(3.0),
    "signal_page and signal_time must have": lambda s: s.run([3.0], [0], [2.5, 2.5]),
    "changed must have one entry": lambda s: s.report(0, [True, False]),
    "page must have been crawled since": lambda s: s.report([0, 1], [True, True]),
    "page must name each page once": lambda s: s.report([0, 0], [True, True]),
    "crawled must not lie after": lambda s: s.add(LEARNT, crawled=2.5),
    "crawled must be one value, or one for each page, shape (2,)": lambda s: s.add(
        LEARNT, crawled=[0.0] * 3
    ),
    "pages must be LearnedPages": lambda s: s.add(KNOWN),
    "pages must have one entry for each page, 1, got 2": lambda s: s.update(0, LEARNT),
    "max_interval must be one value, or one for each page, shape (1,)": (
        lambda s: s.update(0, LearnedPages(1.0, 1.0, 1.0), Limits(0.0, [9, 9]))
    ),
    "host must be one value, or one for each page, shape (2,)": (
        lambda s: s.add(LEARNT, Limits(host=["a", "b", "c"]))
    ),
    "host_limit must name hosts": (
        lambda s: s.add(LEARNT, Limits(host=["a", "b"], host_limit={"c": 1.0}))
    ),
    "host_limit of host 'a' must stay": (
        lambda s: s.add(LEARNT, Limits(host="a", host_limit=7.0))
    ),
}


@pytest.mark.parametrize("message", BAD_CALLS)
def test_bad_calls_say_what_is_wrong_and_change_nothing(message):
    limits = Limits(host=["a", "b"], host_limit=5.0)
    scheduler = Scheduler(LEARNT, limits, crawled=0.0)
    assert scheduler.run([1.0, 2.0]).tolist() == [1, 0]
    scheduler.report(1, changed=True)
    before = copy.deepcopy(scheduler)
    with pytest.raises(ValueError, match=re.escape(message)):
        BAD_CALLS[message](scheduler)
    np.testing.assert_array_equal(scheduler.posterior, before.posterior)
    times = np.arange(2.0, 9.0, 0.5)
    assert scheduler.run(times).tolist() == before.run(times).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scheduler([1.0]), "pages must be SignalledPages, one or more"),
        (lambda: Scheduler(KNOWN, crawled=np.inf), "crawled must be finite or -inf"),
        (lambda: Scheduler(KNOWN, discard_window=-1), "discard_window must be"),
        (lambda: Scheduler(KNOWN).posterior, "pages must be LearnedPages"),
        (lambda: LearnedPages([1.0], 0.0, 1.0), "shape must be positive"),
        (lambda: LearnedPages([-1.0], 1.0, 1.0), "importance must be non-negative"),
        (lambda: Limits(-1.0), "min_interval must be non-negative"),
        (lambda: Limits(3.0, 2.0), "max_interval must be at least min_interval"),
        (lambda: Limits(np.ones(2), np.ones(3)), "shape mismatch"),
        (
            lambda: Scheduler(KNOWN, Limits(host="a", host_limit=-1)),
            "host_limit must be non-negative",
        ),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
