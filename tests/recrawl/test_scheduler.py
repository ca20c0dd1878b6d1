"""The scheduler: the schedule of the full arg max, saved runs, bad input."""

import re

import numpy as np
import pytest
from numba import njit

from paperlib.signals import SignalledPages
from recrawl.kernels import crawl_value as kernel
from recrawl.kernels import scheduler as kernels
from recrawl.scheduler import NoPageError, Scheduler
from recrawl.science import freshness, policies, simulate


@njit
def full_argmax(pages, last, n_signals, present, slots, signals, discard_window):
    """Page of each slot by the value of every page in every slot."""
    signal_page, signal_time = signals
    out = np.empty(slots.size, np.int64)
    k = 0
    for j in range(slots.size):
        while k < signal_time.size and signal_time[k] <= slots[j]:
            i = signal_page[k]
            n_signals[i] += signal_time[k] - last[i] >= discard_window
            k += 1
        best, winner = -1.0, -1
        for i in range(pages.size):
            if present[i]:
                v = kernel.value(pages[i], slots[j] - last[i], n_signals[i])
                if v > best:
                    best, winner = v, i
        out[j] = winner
        if winner >= 0:
            last[winner], n_signals[winner] = slots[j], 0
    return out


class FullArgMax:
    """The plain loop over all pages, with the scheduler's interface."""

    def __init__(self, pages, *, terms=None, discard_window=0.0, crawled=-np.inf):
        self.terms, self.discard_window = terms, discard_window
        self.pages = np.zeros(0, kernel.CONSTANTS)
        self.last, self.n_signals = np.zeros(0), np.zeros(0, int)
        self.present = np.zeros(0, bool)
        self.add(pages, crawled=crawled)

    def add(self, pages, *, crawled=-np.inf):
        first, n_new = self.last.size, pages.change_rate.size
        self.pages = np.append(self.pages, np.zeros(n_new, kernel.CONSTANTS))
        self.last = np.append(self.last, np.full(n_new, crawled))
        self.n_signals = np.append(self.n_signals, np.zeros(n_new, int))
        self.present = np.append(self.present, np.ones(n_new, bool))
        self.update(np.arange(first, first + n_new), pages)

    def update(self, page, pages):
        self.pages[page] = constants_of(pages, self.terms)

    def remove(self, page):
        self.present[page] = False

    def run(self, times, signal_page, signal_time):
        signals = signal_page.astype(int), signal_time
        return full_argmax(
            self.pages,
            self.last,
            self.n_signals,
            self.present,
            times,
            signals,
            self.discard_window,
        )


def constants_of(pages, terms):
    arrays = pages.change_rate, pages.importance, pages.recall, pages.false_rate
    return kernel.page_constants(*arrays, terms or 0)


def believed(rng, n_pages, kind):
    """Pages as believed; `kind` says what signals they have."""
    change_rate, importance = rng.random((2, n_pages)) * rng.choice([0.01, 1.0, 30.0])
    recall = np.zeros(n_pages) if kind == "none" else rng.beta(0.25, 0.25, n_pages)
    false_rate = (
        rng.uniform(0.1, 0.6, n_pages)
        if kind in ("noisy", "extreme")
        else np.zeros(n_pages)
    )
    if kind == "extreme":
        recall = rng.choice([0.0, 1e-9, 0.5, 1.0 - 1e-9, 1.0], n_pages)
        false_rate = rng.choice([0.0, 1e-12, 0.3, 5.0], n_pages)
        change_rate = rng.choice([0.0, 1e-12, 0.3, 1e4], n_pages)
        importance = rng.choice([0.0, 0.0, 1e-200, 1.0], n_pages)
    if kind == "same":
        change_rate[:], importance[:], recall[:], false_rate[:] = 0.5, 0.7, 0.3, 0.2
    return SignalledPages(change_rate, importance, recall, false_rate)


def slot_times(rng, now, n_slots):
    """Bandwidth that changes, pauses, slots at the same time."""
    gap = (
        rng.choice([1.0, 1.0, 1.0, 0.1])
        * rng.choice([0.0, 1.0, 1.0, 1.0], n_slots)
        * rng.choice([0.003, 0.05, 1.0])
    )
    if rng.random() < 0.5:
        gap = np.full(n_slots, gap[-1])
    gap[rng.random(n_slots) < 0.01] = rng.choice([1.0, 300.0])
    return now + np.cumsum(gap)


def signal_times(rng, times, now, pages, rate):
    """Signals that do not follow the beliefs: few pages, in bursts."""
    n_signals = rng.poisson(min(rate * (times[-1] - now), 5000.0))
    signal_time = np.sort(
        now + (times[-1] - now) * rng.random(n_signals) ** rng.choice([1.0, 3.0])
    )
    return rng.choice(
        pages, n_signals, p=rng.dirichlet(np.full(len(pages), 0.3))
    ), signal_time


def instance(seed, kind, tmp_path):
    """A random run of both, in which pages come, go and change.

    The scheduler is saved and restored on the way. Returns the number of
    slots.
    """
    rng = np.random.default_rng(seed)
    n_pages = int(rng.choice([1, 2, 7, 40, 90]))
    crawled = rng.choice([0.0, -np.inf, np.nan])
    crawled = (
        rng.choice([-np.inf, 0.0, -2.0], n_pages)
        if np.isnan(crawled)
        else np.full(n_pages, crawled)
    )
    options = {
        "terms": rng.choice([None, None, 1, 2, 3]),
        "discard_window": rng.choice([0.0, 0.0, 0.1, 4.0]),
        "crawled": crawled,
    }
    pages = believed(rng, n_pages, kind)
    ours, plain = Scheduler(pages, **options), FullArgMax(pages, **options)
    now, present, count = float(rng.choice([0.0, 1e4])), list(range(n_pages)), 0
    for _ in range(4):
        times = slot_times(rng, now, int(rng.integers(1, 150)))
        signals = signal_times(
            rng, times, now, present, 0.0 if kind == "none" else rng.choice([1.0, 30.0])
        )
        expected = plain.run(times, *signals)
        np.testing.assert_array_equal(
            ours.run(times, *signals), expected, err_msg=f"seed {seed}"
        )
        now, count = times[-1], count + times.size
        if rng.random() < 0.5:
            ours.save(tmp_path / "state.npz")
            ours = Scheduler.load(tmp_path / "state.npz")
        if rng.random() < 0.5:
            new, crawled = (
                believed(rng, int(rng.integers(1, 30)), kind),
                rng.choice([-np.inf, now]),
            )
            plain.add(new, crawled=crawled)
            present += ours.add(new, crawled=crawled).tolist()
        if rng.random() < 0.5 and len(present) > 1:
            gone = rng.choice(
                present, int(rng.integers(1, len(present))), replace=False
            )
            present = sorted({*present} - {*gone.tolist()})
            ours.remove(gone)
            plain.remove(gone)
        if rng.random() < 0.5:
            some = rng.choice(
                present, int(rng.integers(1, len(present) + 1)), replace=False
            )
            new = believed(rng, some.size, kind)
            ours.update(some, new)
            plain.update(some, new)
    assert len(ours) == len(present)
    return count


# ---------------------------------------------------------------- the same
# schedule


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "true", "noisy", "extreme", "same"])
def test_every_slot_goes_to_the_page_of_the_full_arg_max(kind, tmp_path):
    n_instances = 40 if kind == "extreme" else 100
    assert (
        sum(instance(seed, kind, tmp_path) for seed in range(n_instances))
        > 200 * n_instances
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_pages", "n_slots", "kind", "terms"),
    [(4000, 8000, "none", None), (500, 4000, "noisy", None), (500, 4000, "noisy", 1)],
)
@pytest.mark.parametrize("crawled", [0.0, -np.inf])
def test_larger_instances_through_a_rise_and_a_fall_of_the_bandwidth_and_a_pause(
    n_pages, n_slots, kind, terms, crawled
):
    rng = np.random.default_rng(5)
    pages = believed(rng, n_pages, kind)
    pages = SignalledPages(
        rng.random(n_pages), rng.random(n_pages), pages.recall, pages.false_rate
    )
    rate = np.repeat([100.0, 150.0, 100.0, 20.0, 100.0], n_slots // 5)
    times = np.cumsum(1.0 / rate)
    times[n_slots // 2 :] += 1000.0
    n_signals = 0 if kind == "none" else 30_000
    signals = (
        rng.integers(0, n_pages, n_signals),
        np.sort(rng.random(n_signals)) * times[-1],
    )
    ours, plain = (
        make(pages, terms=terms, crawled=crawled) for make in (Scheduler, FullArgMax)
    )
    np.testing.assert_array_equal(ours.run(times, *signals), plain.run(times, *signals))


# not all terms of the extreme pages: those with a billion signals a cycle have
# as many
@pytest.mark.parametrize(
    ("kind", "terms"),
    [
        ("none", None),
        ("noisy", None),
        ("noisy", 1),
        ("noisy", 2),
        ("extreme", 1),
        ("extreme", 2),
    ],
)
def test_values_lie_within_bounds_and_waiting_pages_below_the_threshold(kind, terms):
    rng = np.random.default_rng(8)
    state = Scheduler(believed(rng, 400, kind), terms=terms, crawled=0.0)._engine.state
    scalars, entry = state.scalars, state.active[0]
    n = rng.choice([0, 1, 5], 400) * (kind != "none")
    scalars["width"] = 1e-3
    checked = 0
    for i, (page, known) in enumerate(zip(state.pages, n, strict=True)):
        c, t = page["constants"], rng.choice([0.0, 1e-3, 0.1, 1.0, 10.0])
        alpha = c["alpha"]
        u, value = evaluate(c, t, known)
        if alpha == 0.0 or not u < np.inf:
            continue  # such a page has no bounds: its value is computed
        reached = kernels._remember(page, scalars, u)
        assert reached["value"] == value
        entry["page"] = i
        for d in (1e-6, 1e-3, 0.1, 1.0, 10.0, -1e-6, -1e-3, -0.1, -1.0):
            if -d <= min(1.0 / alpha, u / alpha):
                there = kernel.value(c, (u + alpha * d) / alpha, 0)
                margin = 1e-10 * c["limit"]
                for begun in (0.0, d) if d > 0 else (d,):
                    page["last"] = -(u / alpha + begun)
                    kernels._expand(page, entry, 0.0, reached)
                    least = kernels._lower_bound(state, entry, d - begun)
                    most = kernels._upper_bound(entry, d - begun)
                    assert least - margin <= there <= most + margin
        share = np.array([1e-6, 0.1, 0.5, 0.9, 0.999])
        for threshold in value + (c["limit"] - value) * share:
            scalars["threshold"] = max(threshold, 5e-324)
            page["low"] = reached
            kernels._find_safe_time(page, scalars)
            if page["safe_time"] > u / alpha:
                assert kernel.value(c, page["safe_time"], 0) < scalars["threshold"]
                checked += 1
    assert checked > (900 if kind != "extreme" else 100)


def evaluate(constants, elapsed, n_signals):
    """u as the kernels round it, and the value."""
    u = kernel.rounded(kernel.effective(constants, elapsed, n_signals))
    return u, kernel.value(constants, elapsed, n_signals)


@pytest.mark.slow
def test_the_full_arg_max_itself_is_that_of_the_crawl_value():
    rng = np.random.default_rng(2)
    pages = believed(rng, 30, "noisy")
    last, n = np.zeros(30), np.zeros(30, int)
    times = np.arange(1, 201) * 0.05
    signal_page, signal_time = signal_times(rng, times, 0.0, np.arange(30), 20.0)
    expected, k = [], 0
    for time in times:
        while k < signal_time.size and signal_time[k] <= time:
            n[signal_page[k]] += signal_time[k] - last[signal_page[k]] >= 0.1
            k += 1
        page = np.argmax(freshness.crawl_value(time - last, n, pages))
        expected.append(page)
        last[page], n[page] = time, 0
    found = FullArgMax(pages, crawled=0.0, discard_window=0.1).run(
        times, signal_page, signal_time
    )
    np.testing.assert_array_equal(found, expected)


def test_one_by_one_and_all_at_once_are_the_same():
    rng = np.random.default_rng(3)
    pages = believed(rng, 50, "noisy")
    times = slot_times(rng, 0.0, 300)
    signals = signal_times(rng, times, 0.0, np.arange(50), 10.0)
    expected = Scheduler(pages, crawled=0.0).run(times, *signals)
    ours, k = Scheduler(pages, crawled=0.0), 0
    for time, page in zip(times, expected, strict=True):
        while k < signals[0].size and signals[1][k] <= time:
            ours.signal(signals[0][k], signals[1][k])
            k += 1
        assert ours.next(time) == page


def test_a_signal_at_the_very_time_of_the_last_slot_counts_in_it():
    pages = SignalledPages([1.0, 1.0], 1.0, 0.9, 0.01)
    without = Scheduler(pages, crawled=0.0).run([1.0])
    with_signal = Scheduler(pages, crawled=0.0).run([1.0], [1], [1.0])
    assert (without.item(), with_signal.item()) == (0, 1)


def test_pages_never_crawled_come_first_by_value_and_equal_ones_in_order():
    pages = SignalledPages(
        np.repeat([1.0, 0.5], 500), 1.0, 0.0, 0.0
    )  # limits 1 and 2: no page crawled at 0 gets back to 1 by 0.1
    expected = np.concatenate([np.arange(500, 1000), np.arange(500)])
    np.testing.assert_array_equal(
        Scheduler(pages).run(np.arange(1000) * 1e-4), expected
    )


def test_a_page_never_crawled_whose_changes_are_all_signalled_waits_for_its_signals():
    scheduler = Scheduler(
        SignalledPages([1.0, 1.0, 0.1], [1.0, 0.9, 0.01], [1.0, 1.0, 0.5], 0.1)
    )
    assert scheduler.next(1.0) == 2  # of value 0.1; the others' is 0
    scheduler.signal(1, 1.5)
    scheduler.signal(0, 1.6)
    assert [scheduler.next(time) for time in (2.0, 2.1, 2.2)] == [0, 1, 2]


def test_a_million_times_later_or_faster_is_the_same():
    rng = np.random.default_rng(4)
    pages, times = believed(rng, 60, "noisy"), np.arange(1, 1001) / 64.0
    signals = signal_times(rng, times, 0.0, np.arange(60), 10.0)
    expected = Scheduler(pages, crawled=0.0).run(times, *signals)
    scale = 2.0**20  # exact in binary
    faster = SignalledPages(
        pages.change_rate * scale,
        pages.importance,
        pages.recall,
        pages.false_rate * scale,
    )
    np.testing.assert_array_equal(
        Scheduler(faster, crawled=0.0).run(
            times / scale, signals[0], signals[1] / scale
        ),
        expected,
    )


def test_a_slot_takes_few_values_whatever_the_number_of_pages():
    later = []
    for n_pages in (200, 5000):
        scheduler = Scheduler(
            SignalledPages(*np.random.default_rng(6).random((2, n_pages)), 0.0, 0.0),
            crawled=0.0,
        )
        assert scheduler.n_values == 0
        scheduler.run(np.arange(1, 20_001) / 100.0)
        later.append(-scheduler.n_values)
        scheduler.run(np.arange(20_001, 30_001) / 100.0)
        later[-1] += scheduler.n_values
    assert 0 < later[0] < 10_000  # most slots are decided by bounds alone
    assert later[1] < 3 * later[0]


def test_a_scheduler_without_pages_says_so_and_takes_new_ones():
    ours = Scheduler(SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0))
    ours.remove([0, 1])
    assert len(ours) == 0
    with pytest.raises(NoPageError, match=r"no page to crawl at time 1\.0"):
        ours.next(1.0)
    np.testing.assert_array_equal(ours.run([2.0, 3.0]), [-1, -1])
    assert ours.add(SignalledPages(1.0, 1.0, 0.0, 0.0)).tolist() == [2]
    assert ours.next(4.0) == 2


def test_a_signal_in_the_discard_window_is_ignored_and_one_at_its_end_is_not():
    pages = SignalledPages([1.0, 1.0], [1.0, 1.1], 0.9, 0.1)
    for delay, page in ((0.4, 1), (0.5, 0)):
        ours = Scheduler(pages, discard_window=0.5, crawled=0.0)
        ours.signal(0, delay)
        assert ours.next(1.0) == page


# ---------------------------------------------------------------- files


@pytest.fixture
def saved(tmp_path):
    ours = Scheduler(
        believed(np.random.default_rng(6), 20, "noisy"),
        terms=2,
        discard_window=0.1,
        crawled=0.0,
    )
    ours.run(np.arange(1, 30) / 10.0, [3, 4], [0.5, 0.7])
    ours.remove(7)
    ours.save(tmp_path / "state.npz")
    return tmp_path / "state.npz"


def rewritten(path, **changes):
    """Write the file with other arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | changes)


@pytest.mark.slow
def test_a_damaged_file_is_refused(saved):
    content = saved.read_bytes()
    with np.load(saved) as file:
        arrays = dict(file)
    rng = np.random.default_rng(7)
    for cut in [*range(0, len(content), 97), len(content) - 1]:
        saved.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=r"state\.npz"):
            Scheduler.load(saved)
    refused = 0
    for where in rng.integers(0, len(content), 300):
        saved.write_bytes(
            content[:where] + bytes([content[where] ^ 255]) + content[where + 1 :]
        )
        try:
            Scheduler.load(saved)
        except ValueError:
            refused += 1
        else:  # a byte that no reader looks at, such as a date in the archive
            with np.load(saved) as file:
                for name, array in arrays.items():
                    np.testing.assert_array_equal(file[name], array)
    assert refused > 200


@pytest.mark.parametrize(
    "changes",
    [
        {"version": [2]},
        {"version": [1, 1]},
        {"change_rate": np.full(20, -1.0)},
        {"importance": np.full(20, np.nan)},
        {"recall": np.ones(19)},
        {"crawled": np.full(20, np.inf)},
        {"crawled": np.full(20, 1e9)},
        {"n_signals": np.full(20, -1, np.int32)},
        {"n_signals": np.zeros(20)},
        {"present": np.ones(5, bool)},
        {"present": np.full(20, 2)},
        {"clock": np.nan},
        {"clock": [0.0, 1.0]},
        {"terms": -1},
        {"terms": "x"},
        {"discard_window": -1.0},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_file_that_contradicts_itself_is_refused(saved, changes):
    rewritten(saved)
    Scheduler.load(saved)
    rewritten(saved, **changes)
    with pytest.raises(ValueError, match=r"state\.npz"):
        Scheduler.load(saved)


def test_nothing_in_a_file_is_executed(saved, tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("executed").touch, ())

    kept = Scheduler.load(saved)
    np.savez(saved, version=np.array([Evil()], dtype=object))
    with pytest.raises(ValueError, match="not a saved scheduler"):
        Scheduler.load(saved)
    assert not (tmp_path / "executed").exists()
    with pytest.raises(FileNotFoundError):
        Scheduler.load(tmp_path / "absent.npz")
    with pytest.raises(FileNotFoundError, match="no"):
        kept.save(tmp_path / "no" / "state.npz")
    (tmp_path / "plan.csv").write_text("url,crawl_rate\na,1\n")
    with pytest.raises(ValueError, match=r"not a saved scheduler: it is no npz file$"):
        Scheduler.load(tmp_path / "plan.csv")


# ---------------------------------------------------------------- bad input


BAD = {
    "signal(2, 9.0)": "page must be the number of a page that is there, got 2",
    "signal(-1, 9.0)": "page must be the number of a page that is there, got -1",
    # page 1 was removed
    "signal(1, 9.0)": "page must be the number of a page that is there, got 1",
    "signal(0.5, 9.0)": "page must be a page number",
    "signal([0], 9.0)": "page must be the number of one page, got [0]",
    "signal([], 9.0)": "page must be the number of one page, got []",
    "signal(2**70, 9.0)": "page must be a page number",
    "signal(0, None)": "time must be finite, got None",
    "next(np.timedelta64(9, 'D'))": "time must be finite, got np.timedelta64",
    "signal(0, 4.0)": "time must not go back, got 4.0 after 5.0",
    "signal(0, np.nan)": "time must be finite",
    "next(4.0)": "time must not go back",
    "next(np.inf)": "time must be finite",
    "next([6.0])": "time must be a single number",
    "run([6.0, 5.5])": "times must not go back, got 5.5 at index 1",
    "run([4.0])": "times must not go back",
    "run([[6.0]])": "times must have one axis",
    "run([6.0, np.nan])": "times must be finite",
    "run([6.0], [0], [])": "signal_page and signal_time must have the same length",
    "run([6.0], [0, 0], [5.8, 5.7])": "signal_time must not go back",
    "run([6.0], [1], [5.5])": "signal_page must be the number of a page that is there",
    "remove(1)": "page must be",
    "update(1, ONE)": "page must be",
    "update([0, 2], ONE)": "page must be",
    "update([0, 0], ONE)": "page must name each page once, got [0, 0]",
    "update(0, TWO)": "pages must have one entry for each page, 1, got 2",
    "add(ONE, crawled=6.0)": "crawled must not lie after the last event",
    "add(ONE, crawled=np.inf)": "crawled must be finite",
    "add(ONE, crawled=[1.0, 2.0])": "crawled must be a time for each of 1 pages",
}


@pytest.mark.parametrize("call", BAD)
def test_bad_calls_say_what_is_wrong_and_change_nothing(call):
    one, two = (SignalledPages(np.ones(n), 1.0, 0.0, 0.0) for n in (1, 2))
    ours = Scheduler(SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1), crawled=0.0)
    assert ours.next(5.0) == 0
    ours.remove(1)
    with pytest.raises(ValueError, match=re.escape(BAD[call])):
        eval(f"ours.{call}", {"ours": ours, "ONE": one, "TWO": two, "np": np})
    assert ours.next(5.0) == 0
    assert len(ours) == 1


def test_an_added_page_may_be_crawled_up_to_now_and_none_of_several_later():
    scheduler = Scheduler(SignalledPages([1.0], 1.0, 0.0, 0.0), crawled=0.0)
    scheduler.next(5.0)
    two = SignalledPages([1.0, 1.0], 1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"after the last event, 5\.0, got 6\.0"):
        scheduler.add(two, crawled=[1.0, 6.0])
    scheduler.add(two, crawled=[1.0, 5.0])
    assert [scheduler.next(6.0) for _ in range(3)] == [1, 0, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": 0}, "terms must be a positive integer"),
        ({"discard_window": -1.0}, "discard_window must be non-negative"),
        ({"crawled": [0.0, 1.0, 2.0]}, "crawled must be a time for each of 2 pages"),
        ({"crawled": np.nan}, "crawled must be finite"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Scheduler(SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1), **options)


def test_a_policy_is_run_as_in_a_simulation():
    rng = np.random.default_rng(1)
    pages = SignalledPages(
        rng.random(50),
        rng.random(50),
        rng.beta(0.25, 0.25, 50),
        rng.uniform(0.1, 0.6, 50),
    )
    world = simulate.draw_world(pages, 40.0, rng=2)
    times = simulate.slot_times(20.0, 40.0)
    for policy in (
        policies.Greedy(pages),
        policies.GreedyCIS(pages),
        policies.GreedyCISPlus(pages),
        policies.GreedyNCIS(pages, terms=2, discard_window=0.1),
    ):
        found = Scheduler(policy, crawled=0.0).run(times, *world.in_order)
        np.testing.assert_array_equal(found, policy.choose(world, times, np.zeros(50)))


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0), "2 pages by time and signals"),
        (policies.Greedy(SignalledPages([1.0], 1.0, 0.0, 0.0)), "1 pages by an index"),
        (policies.BayesGreedy([1.0], shape=1.0, rate=1.0), "1 pages by a learning in"),
    ],
)
def test_a_scheduler_shows_what_it_is(policy, shown):
    scheduler = Scheduler(policy, crawled=0.5)
    assert shown in repr(scheduler)
    assert repr(scheduler).endswith("at time 0.5>")


@pytest.mark.parametrize(
    "kind",
    [policies.GreedyNCIS, policies.GreedyCIS, policies.GreedyCISPlus],
)
def test_pages_to_come_are_believed_as_the_first_ones(kind, tmp_path):
    """False signals, of which GreedyCIS knows nothing, came back by an update."""
    rng = np.random.default_rng(5)
    pages = SignalledPages(*rng.uniform(0.2, 1.0, (4, 20)))
    times, some = np.arange(1.0, 201.0) / 8, rng.permutation(20)
    signals = rng.integers(0, 20, 100), np.sort(rng.uniform(0, 25, 100))
    expected = Scheduler(kind(pages), crawled=0.0).run(times, *signals)

    def added(new):
        scheduler = Scheduler(kind(some_of(pages, [0])), crawled=0.0)
        scheduler.add(new(some_of(pages, slice(1, None))), crawled=0.0)
        return scheduler

    def updated(new):
        scheduler = Scheduler(kind(pages), crawled=0.0)
        scheduler.save(tmp_path / "scheduler.npz")
        scheduler = Scheduler.load(tmp_path / "scheduler.npz")
        scheduler.update(some, new(some_of(pages, some)))
        return scheduler

    for scheduler in (added, updated):
        for new in (kind, lambda pages: pages):
            found = scheduler(new).run(times, *signals)
            np.testing.assert_array_equal(found, expected)


def some_of(pages, which):
    names = "change_rate", "importance", "recall", "false_rate"
    return SignalledPages(*(getattr(pages, name)[which] for name in names))


def test_the_thresholds_of_the_policy_are_saved(tmp_path):
    pages = SignalledPages([1.0, 1.5], 1.0, 0.5, 0.0)
    one = Scheduler(policies.GreedyCISPlus(pages, min_recall=0.4), crawled=0.0)
    one.save(tmp_path / "scheduler.npz")
    other = Scheduler.load(tmp_path / "scheduler.npz")
    for scheduler in (one, other):
        scheduler.update(0, some_of(pages, [1]))
    signals = [0] * 5, np.arange(5.0)
    times = np.arange(1.0, 40.0) / 8
    assert one.run(times, *signals).tolist() == other.run(times, *signals).tolist()
