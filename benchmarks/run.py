"""Speed of the library against other implementations, in one run on one machine.

`make bench` runs it and writes benchmarks/README.md.
"""

import contextlib
import functools
import math
import multiprocessing
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import cvxpy
import lifelines
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit
from scipy import optimize

import recrawl
from paperlib.signals import SignalledPages
from recrawl.files import write_atomic
from recrawl.kernels import crawl_value, indices
from recrawl.scheduler import Scheduler
from recrawl.science import (
    allocation,
    estimators,
    objectives,
    periodic,
    policies,
    priors,
    simulate,
)
from recrawl.science.processes import History
from tests.recrawl.made import simulate_history

PAGE = Path(__file__).with_name("README.md")


def seconds(function, repeat=5):
    """Least of `repeat` wall-clock times.

    The first call is not counted, for compilation and page faults.
    """
    function()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def batch(n_pages=200_000, n_crawls=100, n_peer=100):
    rng = np.random.default_rng(1)
    lengths = rng.integers(n_crawls // 2, n_crawls * 3 // 2, n_pages)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rate = np.repeat(rng.lognormal(0, 1, n_pages), lengths)
    interval = rng.exponential(size=rate.size)
    history = History(
        interval, rng.random(rate.size) < -np.expm1(-rate * interval), offsets
    )
    few = [slice(offsets[i], offsets[i + 1]) for i in range(n_peer)]
    pages = [
        (interval[s], history.changed[s])
        for s in few
        if 0 < history.changed[s].sum() < s.stop - s.start
    ]

    def peer_root():
        for w, i in pages:
            optimize.brentq(
                lambda r, w=w, i=i: (w[i] / np.expm1(r * w[i])).sum() - w[~i].sum(),
                1e-6,
                1e3,
            )

    def peer_lifelines():
        for w, i in pages:
            lifelines.ExponentialFitter().fit_interval_censoring(
                np.where(i, 0.0, w), np.where(i, w, np.inf)
            )

    ours = seconds(lambda: estimators.mle(history)) / n_pages
    root, fitter = (
        seconds(peer, repeat=2) / len(pages) for peer in (peer_root, peer_lifelines)
    )
    found = (
        f"{interval.size / (ours * n_pages) / 1e6:.0f} million crawls/s, "
        f"{ours * 1e6:.2f} µs a page"
    )
    target = "20 million crawls/s on 2 cores, 100 times the peers"
    peers = (
        f"{root / ours:,.0f} times scipy's brentq per page, "
        f"{fitter / ours:,.0f} times lifelines"
    )
    yield f"mle, {n_pages:,} ragged pages of {n_crawls} crawls", found, target, peers

    # the same bits, with the age of every change or of every second one
    age = np.where(history.changed, interval * rng.random(rate.size), np.nan)
    half = np.where(np.arange(rate.size) % 2, age, np.nan)
    bits, every, second = (
        seconds(  # as a user pays: a new history, of which nothing is kept
            lambda told=told: estimators.mle(
                History(interval, history.changed, offsets, age=told)
            )
        )
        for told in (None, age, half)
    )
    for name, theirs in (("ages", every), ("ages of half the changes", second)):
        found = f"{bits / theirs:.2f}"
        yield f"History and mle with {name}", found, ".8", "times bits"


def false_changes(n_pages=100_000, n_crawls=100, n_hosts=1000):
    rng = np.random.default_rng(1)
    host = rng.integers(n_hosts, size=n_pages)
    history = simulate_history(
        rng.lognormal(0, 1, n_pages),
        crawl_rate=1.0,
        n_crawls=n_crawls,
        false_change=rng.uniform(0, 0.2, n_hosts)[host],
        rng=1,
    )
    alone = seconds(lambda: estimators.false_changes(history), repeat=2)
    pooled = seconds(lambda: estimators.false_changes(history, group=host), repeat=2)
    what = f"false_changes, {n_pages:,} pages of {n_crawls} crawls, "
    yield what + "each alone", f"{alone:.2f} s", "under 5 s", ""
    yield what + f"{n_hosts:,} hosts", f"{pooled:.2f} s", "under 5 s", ""


def allocations(n_many=10_000_000, n_pages=1_000_000, n_peer=50_000):
    rng = np.random.default_rng(1)
    change, weight = rng.lognormal(0, 1.3, n_many), rng.lognormal(0, 1.2, n_many)
    few = change[:n_peer], weight[:n_peer], 0.2 * n_peer

    def peer():
        rate = cvxpy.Variable(n_peer, nonneg=True)
        stale = cvxpy.sum(cvxpy.multiply(few[1] * few[0], cvxpy.inv_pos(rate + few[0])))
        cvxpy.Problem(cvxpy.Minimize(stale), [cvxpy.sum(rate) == few[2]]).solve(
            solver=cvxpy.CLARABEL
        )

    ours = seconds(lambda: allocation.optimal(*few, crawls="poisson"))
    yield (
        f"optimal, Poisson, {n_peer:,} pages",
        f"{1e3 * ours:.0f} ms",
        "",
        f"{seconds(peer, repeat=2) / ours:,.0f} times cvxpy (Clarabel)",
    )
    ours = seconds(lambda: allocation.optimal(change, weight, 0.2 * n_many), repeat=2)
    yield f"optimal, {n_many:,} pages", f"{ours:.2f} s", "", ""
    host = rng.integers(n_pages // 10, size=n_pages)
    limits = dict.fromkeys(np.unique(host[: n_pages // 20]).tolist(), 1.0)
    ours = seconds(
        lambda: allocation.optimal(
            change[:n_pages],
            weight[:n_pages],
            0.2 * n_pages,
            host=host,
            host_limit=limits,
        )
    )
    yield (
        f"optimal, {n_pages:,} pages, {n_pages // 10:,} hosts, "
        f"{len(limits):,} of them limited",
        f"{ours:.2f} s",
        "",
        "",
    )


def threads(sizes=(50_000, 200_000, 1_000_000), repeat=200):
    """All threads against one, with the cores free and taken by other processes."""
    before = numba.get_num_threads()
    for taken in (False, True):
        with _busy_cores(os.cpu_count() if taken else 0):
            for n_pages in sizes:
                rng = np.random.default_rng(1)
                pages = rng.lognormal(0, 1, n_pages), rng.random(n_pages)
                times = [], []
                for _ in range(repeat):
                    for n_threads, took in zip((1, before), times, strict=True):
                        numba.set_num_threads(n_threads)
                        began = time.perf_counter()
                        allocation.optimal(*pages, n_pages / 5)
                        took.append(time.perf_counter() - began)
                one, every = (1e3 * np.median(took) for took in times)
                yield (
                    f"optimal, {n_pages:,} pages, cores "
                    f"{'taken' if taken else 'free'}, medians",
                    f"{every:.2f} ms on {before} threads, {one:.2f} ms on one",
                    "at most 1.1 times one thread",
                    f"{every / one:.2f} times one thread",
                )
    numba.set_num_threads(before)


@contextlib.contextmanager
def _busy_cores(number):
    """Context in which other processes compute without end."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(number)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def limited_allocations(n_pages=1_000_000):
    """`optimal` for each objective, and with all limits at once."""
    rng = np.random.default_rng(1)
    pages = rng.lognormal(0, 1.3, n_pages), rng.lognormal(0, 1.2, n_pages)
    bandwidth = 0.2 * n_pages
    every = (
        objectives.freshness,
        objectives.age,
        objectives.delay,
        objectives.harmonic,
        objectives.age_of_information,
        objectives.deadline(0.5),
    )
    for objective in every:
        interval, poisson = (
            seconds(
                lambda objective=objective, crawls=crawls: allocation.optimal(
                    *pages, bandwidth, objective=objective, crawls=crawls
                ),
                repeat=3,
            )
            for crawls in ("interval", "poisson")
        )
        found = f"{interval:.2f} s interval, {poisson:.2f} s Poisson"
        yield f"optimal, {objective!r}, {n_pages:,} pages", found, "1 s", ""
    host = rng.integers(n_pages // 5, size=n_pages)
    limits = {
        "cost": rng.uniform(0.5, 2, n_pages),
        "min_rate": np.where(rng.random(n_pages) < 0.3, 0.01, 0.0),
        "max_rate": np.where(rng.random(n_pages) < 0.3, 1.0, np.inf),
        "host": host,
    }
    limited = np.unique(host[host < n_pages // 8]).tolist()
    limits["host_limit"] = dict.fromkeys(limited, 0.3)
    for crawls, target in [("poisson", "1.5 s"), ("interval", "5 s")]:

        def run(crawls=crawls):
            return allocation.optimal(*pages, bandwidth, crawls=crawls, **limits)

        full = len(run().price_host)
        yield (
            f"optimal, {crawls}, bounds, costs, {full:,} saturated hosts, "
            f"{n_pages:,} pages",
            f"{seconds(run, repeat=3):.2f} s",
            target,
            "",
        )


def posteriors(n_pages=100_000, n_grid=1000, n_peer=10_000):
    rng = np.random.default_rng(1)
    rate = np.geomspace(1e-4, 1, n_grid)
    prior = priors.FakeIntervals(100.0, 200.0).density(rate)
    history = simulate_history(
        1 / rng.lognormal(6, 1, n_pages),
        interval=rng.lognormal(6, 1, (n_pages, 1)),
        rng=rng,
    )
    few = History(history.interval[:n_peer], history.changed[:n_peer])

    def peer():
        exponent = -few.interval * rate
        posterior = prior * np.where(few.changed, -np.expm1(exponent), np.exp(exponent))
        return posterior / posterior.sum(axis=1, keepdims=True)

    ours, small = (
        seconds(lambda h=h: priors.grid_posterior(h, rate, prior))
        for h in (history, few)
    )
    found = f"{n_pages * n_grid / ours / 1e6:.0f} million grid updates/s"
    against = f"{seconds(peer) / small:.1f} times NumPy on {n_peer:,} pages"
    yield (
        f"grid_posterior, {n_pages:,} pages, {n_grid:,} rates",
        found,
        "50 million grid updates/s",
        against,
    )


def pooled(n_pages=100_000, n_hosts=1000, n_crawls=10):
    """`host_priors` with bits, and with ages, which need no quadrature."""
    for observation in ("bit", "age"):
        _, peak, took = alone(seconds_of_hosts, n_pages, n_hosts, n_crawls, observation)
        what = f"host_priors, {n_pages:,} pages of {n_crawls} crawls, {n_hosts:,} hosts"
        found = f"{took:.1f} s, {peak / 2**30:.2f} GiB"
        yield f"{what}, {observation}s", found, "1 GiB", ""


def seconds_of_hosts(n_pages, n_hosts, n_crawls, observation):
    """Seconds to learn the priors of hosts and the posteriors of pages."""
    rng = np.random.default_rng(1)
    host = rng.integers(n_hosts, size=n_pages)
    mean = rng.lognormal(0, 1, n_hosts)
    history = simulate_history(
        rng.gamma(1.5, mean[host] / 1.5),
        interval=rng.exponential(size=(n_pages, n_crawls)),
        observation=observation,
        rng=rng,
    )
    few = History(history.interval[:100], history.changed[:100])
    priors.host_priors(few, host[:100])  # compiles
    began = time.perf_counter()
    priors.host_priors(history, host)
    return time.perf_counter() - began


def profiles(n_pages=10_000, n_crawls=100, n_bins=168, n_phases=288, n_times=24):
    rng = np.random.default_rng(1)
    profile = periodic.Profile(rng.lognormal(0, 0.5, n_bins), period=7.0)
    interval = rng.uniform(0.02, 0.3, (n_pages, n_crawls)) * profile.period
    start = rng.uniform(0, profile.period, n_pages)
    history = periodic.simulate_periodic_history(
        rng.lognormal(0, 1, n_pages), profile, interval=interval, start=start, rng=rng
    )
    options = {"n_bins": n_bins, "period": profile.period}
    ours = seconds(lambda: periodic.fit_profile(history, start, **options), repeat=2)
    what = f"fit_profile, {interval.size:,} crawls, {n_bins} bins"
    yield what, f"{ours:.1f} s", "5 s", ""
    best = functools.partial(periodic.best_crawl_times, n_phases=n_phases)
    ours = seconds(lambda: best(profile, 2.0, n_times), repeat=2)
    what = f"best_crawl_times, {n_times} crawls on a grid of {n_phases}"
    yield what, f"{ours:.1f} s", "some seconds", ""


def logs(
    sizes=(100_000, 1_000_000, 10_000_000, 100_000_000),
    rows_per_url=100,
    n_scheduled=18_500_000,
):
    """Crawl logs from Parquet to rates, and a schedule for as many URLs as Bing's.

    Each runs in a process of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        log, rates, out = (
            Path(folder, f"{name}.parquet") for name in ("log", "rates", "out")
        )
        targets = {10_000_000: "15 s, 2 GiB", 100_000_000: "150 s, 2 GiB"}
        for n_rows in sizes:
            write_log(log, n_rows, n_rows // rows_per_url)
            took, peak, _ = alone(recrawl.estimate, log, out, force=True)
            n_urls = n_rows // rows_per_url
            what = f"recrawl estimate, {n_rows:,} rows of {n_urls:,} URLs, Parquet"
            yield (
                what,
                f"{took:.1f} s, {peak / 2**30:.2f} GiB",
                targets.get(n_rows, ""),
                "",
            )
        write_rates(rates, n_scheduled)
        for policy in ("interval", "poisson"):
            took, peak, _ = alone(
                recrawl.schedule, rates, out, 1e6, policy=policy, force=True
            )
            yield (
                f"recrawl schedule --policy {policy}, {n_scheduled:,} URLs",
                f"{took:.1f} s, {peak / 2**30:.2f} GiB",
                "10 s, 4 GiB",
                "",
            )


def write_log(path, n_rows, n_urls, chunk=5_000_000):
    rng = np.random.default_rng(1)
    url = pa.array(
        [f"https://host{k % 997}.example.org/page/{k}" for k in range(n_urls)]
    )
    with pq.ParquetWriter(
        path,
        pa.schema(
            {
                "url": pa.string(),
                "time": pa.timestamp("us", "UTC"),
                "changed": pa.bool_(),
            }
        ),
    ) as writer:
        for n in [chunk] * (n_rows // chunk) + [n_rows % chunk]:
            micros = pa.array(
                rng.integers(1_700_000_000_000_000, 1_710_000_000_000_000, n)
            ).cast(pa.timestamp("us", "UTC"))
            rows = {
                "url": url.take(pa.array(rng.integers(n_urls, size=n))),
                "time": micros,
                "changed": rng.random(n) < 0.3,
            }
            writer.write_table(pa.table(rows, schema=writer.schema))


def write_rates(path, n_urls, chunk=1_000_000):
    rng = np.random.default_rng(1)
    with contextlib.ExitStack() as stack:
        writer = None
        for start in range(0, n_urls, chunk):
            n = min(chunk, n_urls - start)
            rows = {
                "url": [
                    f"https://host{k % 997}.example.org/page/{k}"
                    for k in range(start, start + n)
                ]
            }
            rows |= {
                "change_rate": rng.lognormal(-3, 1.5, n),
                "importance": rng.lognormal(0, 1.2, n),
                "n_crawls": np.full(n, 30),
            }
            micros = rng.integers(1_700_000_000_000_000, 1_710_000_000_000_000, (2, n))
            rows |= {
                f"{name}_crawl": pa.array(t).cast(pa.timestamp("us", "UTC"))
                for name, t in zip(
                    ("first", "last"), np.sort(micros, axis=0), strict=True
                )
            }
            writer = writer or stack.enter_context(
                pq.ParquetWriter(path, pa.table(rows).schema)
            )
            writer.write_table(pa.table(rows))


def alone(function, *arguments, **options):
    """Seconds, peak memory and result of a function in a process of its own."""
    with ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn")
    ) as child:
        return child.submit(_alone, function, arguments, options).result()


def _alone(function, arguments, options):
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    result = function(*arguments, **options)
    took = time.perf_counter() - began
    # of ru_maxrss a child inherits that of its parent
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]
    return took, 1024 * int(peak), result


@njit
def full_argmax(pages, slots, signal_page, signal_time):
    """Page of each slot by the value of every page, which must be there."""
    out = np.empty(slots.size, np.int64)
    k = 0
    for j in range(slots.size):
        while k < signal_time.size and signal_time[k] <= slots[j]:
            pages[signal_page[k]].n_signals += 1
            k += 1
        best = -1.0
        for i in range(pages.size):
            page = pages[i]
            elapsed = slots[j] - page.last
            value = crawl_value.value(page.constants, elapsed, page.n_signals)
            if value > best:
                best, out[j] = value, i
        pages[out[j]].last, pages[out[j]].n_signals = slots[j], 0
    return out


@njit
def full_argmax_by_index(pages, slots):
    """The same for an index without signals, `policies.Greedy`."""
    out = np.empty(slots.size, np.int64)
    for j in range(slots.size):
        best = -1.0
        for i in range(pages.size):
            value = indices.index(pages[i], slots[j] - pages[i].last)
            if value > best:
                best, out[j] = value, i
        pages[out[j]].last = slots[j]
    return out


def scheduling(n_slots=100_000, n_full=50, bandwidth=100.0):
    for n_pages, noisy, target in (
        (10_000, False, "1.5 µs a slot"),
        (1_000_000, False, "5 µs a slot, 300 times the full arg max"),
        (10_000, True, "100 times the full arg max"),
    ):
        rng = np.random.default_rng(1)
        recall, false_rate = (
            (rng.beta(0.25, 0.25, n_pages), rng.uniform(0.1, 0.6, n_pages))
            if noisy
            else (0.0, 0.0)
        )
        pages = SignalledPages(
            rng.random(n_pages), rng.random(n_pages), recall, false_rate
        )
        world = simulate.draw_world(pages, 2 * n_slots / bandwidth, rng=rng)
        times = simulate.slot_times(bandwidth, world.horizon)
        page, arrival = world.in_order
        middle = np.searchsorted(arrival, times[n_slots])
        policy = pages if noisy else policies.Greedy(pages)
        Scheduler(policy, crawled=0.0).run(times[:1], page[:1], arrival[:1])  # compiles
        scheduler = Scheduler(policy, crawled=0.0)
        began = time.perf_counter()
        scheduler.run(times[:n_slots], page[:middle], arrival[:middle])
        start = (time.perf_counter() - began) / n_slots
        # the full arg max takes a few slots of the second half, from the very state
        # in which the scheduler begins it
        state = scheduler._engine.state
        plain = state.pages.copy()
        few = slice(n_slots, n_slots + n_full)
        signals = page[middle:].astype(np.int64), arrival[middle:]

        def every(plain, state=state, slots=times[few], signals=signals, noisy=noisy):
            if noisy:
                return full_argmax(plain, slots, *signals)
            return full_argmax_by_index(plain, slots)

        every(plain.copy())  # compiles
        began = time.perf_counter()
        expected = every(plain)
        full = (time.perf_counter() - began) / n_full
        began = time.perf_counter()
        found = scheduler.run(times[n_slots:], *signals)
        ours = (time.perf_counter() - began) / n_slots
        assert (found[:n_full] == expected).all()
        what = f"scheduler, {n_pages:,} pages, " + (
            f"{signals[0].size / n_slots:.0f} noisy signals a slot"
            if noisy
            else "no signals"
        )
        size = sum(array.nbytes for array in state) / 1e6
        yield (
            what,
            f"{ours * 1e6:.1f} µs a slot, {start * 1e6:.1f} in the first {n_slots:,} "
            f"slots from a fresh start; {size:.0f} MB",
            target,
            (f"{full / ours:,.0f} times the full arg max"),
        )


def varied_pages(n_pages):
    """Pages whose change rates differ as in a crawl: ln Delta ~ N(0, 1.5^2)."""
    rng = np.random.default_rng(1)
    return SignalledPages(rng.lognormal(0, 1.5, n_pages), rng.random(n_pages), 0.0, 0.0)


def by_index(n_pages=1_000_000, n_first=100_000, n_slots=1_000_000):
    """What a slot of GREEDY costs, at one crawl a page and unit of time."""
    pages = varied_pages(n_pages)
    times = simulate.slot_times(n_pages, (n_first + n_slots) / n_pages)
    policy = policies.Greedy(pages)
    Scheduler(policy, crawled=0.0).run(times[:1])  # compiles
    scheduler = Scheduler(policy, crawled=0.0)
    start, later = (
        microseconds(scheduler.run, slots) for slots in np.split(times, [n_first])
    )
    yield (
        f"Scheduler of Greedy, {n_pages:,} pages",
        f"{later:.1f} µs a slot, {start:.1f} in the first {n_first:,} slots "
        "from a fresh start",
        "",
        "",
    )
    n_large = 10 * n_pages
    _, peak, (start, early, late) = alone(slots_of_greedy, n_large, n_first, n_slots)
    yield (
        f"Scheduler of Greedy, {n_large:,} pages",
        f"{start:.1f} µs a slot in the first {n_first:,}, {early:.1f} in the next "
        f"{n_slots:,}, {late:.1f} in the last {n_slots:,} of {n_large:,}; "
        f"{peak / 2**30:.2f} GiB",
        "10, 5 and 5 µs a slot, 3.5 GiB",
        "",
    )


def microseconds(run, times):
    """Microseconds a slot of a run of many slots."""
    began = time.perf_counter()
    run(times)
    return (time.perf_counter() - began) / times.size * 1e6


def slots_of_greedy(n_pages, n_first, n_slots):
    """Microseconds a slot at the start, soon after, and after one crawl a page."""
    few = policies.Greedy(varied_pages(10))
    Scheduler(few, crawled=0.0).run([1.0])  # compiles
    scheduler = Scheduler(policies.Greedy(varied_pages(n_pages)), crawled=0.0)
    times = simulate.slot_times(n_pages, 1.0)
    parts = np.split(times, [n_first, n_first + n_slots, times.size - n_slots])
    start, early, _, late = (microseconds(scheduler.run, part) for part in parts)
    return start, early, late


def learning_slots(
    sizes=(10_000, 1_000_000),
    n_first=100_000,
    n_slots=1_000_000,
    n_calls=10_000,
    n_parallel=100,
):
    """`BayesGreedy`, which takes in what every crawl finds.

    In a world a kernel looks up the changes, as `simulate.crawl` does it; in
    Python each of `n_calls` slots is a call of `next` and one of `report`; a crawler
    that fetches `n_parallel` pages at once calls `run` and `report` once for them, and
    only these two are timed.
    The start ends when there have been two slots for each page.
    """
    for n_pages in sizes:
        pages = varied_pages(n_pages)
        policy = policies.BayesGreedy(pages.importance, shape=0.5, rate=0.5)
        n_start = max(n_first, 2 * n_pages)
        world = simulate.draw_world(pages, (n_start + n_slots) / n_pages, rng=1)
        times = simulate.slot_times(n_pages, world.horizon)
        assert world.changes  # drawn here, not in the first run
        never = np.zeros(n_pages)  # all were crawled at 0
        choose = functools.partial(policy.choose, world, last=never)
        choose(times[:1])  # compiles

        def total(n, choose=choose, times=times):
            return microseconds(choose, times[:n]) * n

        start = total(n_first)
        early = total(n_first + n_slots) - start
        later = total(times.size) - total(n_start)
        target = "2 µs a slot" if n_pages < 100_000 else "5 µs a slot, 40 at the start"
        found = (
            f"{later / n_slots:.1f} µs a slot after the start, "
            f"{start / n_first:.1f} in the first {n_first:,}, "
            f"{early / n_slots:.1f} in the next {n_slots:,}"
        )
        what = f"BayesGreedy, {n_pages:,} pages"
        yield f"{what}, in a world", found, target, ""
        scheduler, last = Scheduler(policy, crawled=0.0), np.zeros(n_pages)

        def batches(slots, scheduler=scheduler, last=last, rate=pages.change_rate):
            chance, seconds = np.random.default_rng(1), 0.0
            for batch in slots.reshape(-1, n_parallel):
                began = time.perf_counter()
                crawled = scheduler.run(batch)
                seconds += time.perf_counter() - began
                found, k = np.unique(crawled, return_index=True)
                gone = -np.expm1(-rate[found] * (batch[k] - last[found]))
                changed = chance.random(found.size) < gone
                began = time.perf_counter()
                scheduler.report(found, changed)
                seconds += time.perf_counter() - began
                last[found] = batch[k]
            return seconds / slots.size * 1e6

        batches(times[:n_start])
        at_once, single = np.split(
            times[n_start:][: n_slots // 10 + n_calls], [-n_calls]
        )
        by_batches = batches(at_once)
        last, rate, chance = last.tolist(), pages.change_rate.tolist(), random.Random(1)

        def calls(slots, scheduler=scheduler, last=last, rate=rate, chance=chance):
            for slot in slots.tolist():
                page = scheduler.next(slot)
                gone = -math.expm1(-rate[page] * (slot - last[page]))
                scheduler.report(page, chance.random() < gone)
                last[page] = slot

        calls(single[:1])  # loads the kernels
        by_calls = microseconds(calls, single[1:])
        target = target.partition(",")[0]
        for how, slot in (
            ("Scheduler.next and .report from Python", by_calls),
            (f"Scheduler.run and .report of {n_parallel} slots at once", by_batches),
        ):
            yield f"{what}, {how}", f"{slot:.1f} µs a slot", target, ""


def main():
    """Run everything and write the table."""
    warnings.simplefilter("ignore")
    rows = []
    for part in (
        batch,
        false_changes,
        allocations,
        threads,
        limited_allocations,
        posteriors,
        pooled,
        profiles,
        scheduling,
        by_index,
        learning_slots,
        logs,
    ):
        for row in part():
            print("  ".join(row), flush=True)
            rows.append("| " + " | ".join(row) + " |")
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    text = (
        "# Speed\n\n"
        f"Written by `make bench` on {os.cpu_count()} cores ({machine}). Least of\n"
        "several wall-clock times; ratios are taken in one run, side by side.\n\n"
    )
    text += (
        "| what | measured | target | against |\n|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )
    write_atomic(PAGE, text)


if __name__ == "__main__":
    main()
