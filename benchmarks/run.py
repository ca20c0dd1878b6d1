"""Speed of the library, in one run on one machine: `make bench`.

``python benchmarks/run.py`` writes benchmarks/README.md: the table of `peers`, and one
of this project alone. `make bench` gives BLAS one thread, without which the times of
`peers` are too long. With the folder of another checkout of this repository, the second
table is measured with both, in turn, and only printed.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peers
import pyarrow as pa
import pyarrow.parquet as pq

PAGE = Path(__file__).with_name("README.md")
SOURCE = Path(__file__).resolve().parents[1] / "src"
REPEAT = 3  # the least of so many times counts


# ------------------------------------------------------------------ what is measured


def mle(n_pages=200_000, n_crawls=100):
    """Seconds for the maximum likelihood of ragged histories."""
    from recrawl.log.history import History
    from recrawl.rates.likelihood import mle

    rng = np.random.default_rng(1)
    lengths = rng.integers(n_crawls // 2, n_crawls * 3 // 2, n_pages)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rate = np.repeat(rng.lognormal(0, 1, n_pages), lengths)
    interval = rng.exponential(size=rate.size)
    changed = rng.random(rate.size) < -np.expm1(-rate * interval)
    history = History(interval, changed, offsets)
    mle(history)
    return least(lambda: mle(history))


def allocation(n_pages=1_000_000):
    """Seconds for the crawl rates of highest freshness at equal intervals."""
    from recrawl.plan.allocation import optimal

    rng = np.random.default_rng(2)
    pages = rng.lognormal(0, 1.5, n_pages), rng.lognormal(0, 1, n_pages)
    optimal(*pages, n_pages / 3)
    return least(lambda: optimal(*pages, n_pages / 3))


def slots(n_pages, signals, learns, n_slots=20_000):
    """Microseconds of processor time a slot, called from Python, once settled."""
    scheduler = make_scheduler(n_pages, signals, learns)
    now, rng = 0.0, np.random.default_rng(3)
    bits = (rng.random(n_pages + n_slots) < 0.5).tolist()

    def crawl(first, last):
        nonlocal now
        began = time.process_time()
        for k in range(first, last):
            now += 1 / n_pages
            page = scheduler.next(now)
            if learns:
                scheduler.report(page, bits[k])
        return 1e6 * (time.process_time() - began) / (last - first)

    crawl(0, n_pages)  # to where each page has been crawled about once
    return crawl(n_pages, n_pages + n_slots)


def make_scheduler(n_pages, signals, learns):
    """A scheduler of known rates, with signals or without, or one that learns."""
    from paperlib.signals import SignalledPages
    from recrawl.live import scheduler

    rng = np.random.default_rng(4)
    crawled = -rng.random(n_pages)
    if learns:
        pages = scheduler.LearnedPages(np.ones(n_pages), shape=0.5, rate=0.5)
    else:
        recall = rng.beta(0.25, 0.25, n_pages) * signals
        false_rate = rng.uniform(0.1, 0.6, n_pages) * signals
        rates = rng.lognormal(0, 1, n_pages), rng.random(n_pages)
        pages = SignalledPages(*rates, recall, false_rate)
    return scheduler.Scheduler(pages, crawled=crawled)


def estimate(folder, n_rows=1_000_000, n_urls=10_000):
    """Seconds of `recrawl.estimate` for a Parquet log."""
    import recrawl

    log = Path(folder, "log.parquet")
    if not log.exists():
        write_log(log, n_rows, n_urls)
    out = Path(folder, "rates.parquet")
    return least(lambda: recrawl.estimate(log, out, force=True), 1)


def schedule(folder, n_urls=1_000_000):
    """Seconds of `recrawl.schedule` for a file of rates."""
    import recrawl

    rates = Path(folder, "many_rates.parquet")
    if not rates.exists():
        write_rates(rates, n_urls)
    out = Path(folder, "plan.parquet")
    return least(lambda: recrawl.schedule(rates, out, n_urls / 3, force=True), 1)


MEASURES = {
    "mle, 200,000 ragged pages of 100 crawls, s": "mle()",
    "optimal, freshness, 1,000,000 pages, s": "allocation()",
    "Scheduler.next, 10,000 pages, µs": "slots(10_000, False, False)",
    "Scheduler.next, 1,000,000 pages, µs": "slots(1_000_000, False, False)",
    "Scheduler.next, 10,000 pages of known signals, µs": "slots(10_000, True, False)",
    "Scheduler.next and .report, 10,000 pages, µs": "slots(10_000, False, True)",
    "Scheduler.next and .report, 1,000,000 pages, µs": "slots(1_000_000, False, True)",
    "recrawl.estimate, 1,000,000 rows of 10,000 URLs, s": "estimate(FOLDER)",
    "recrawl.estimate, 10,000,000 rows of 100,000 URLs, s": (
        "estimate(FOLDER + '/large', 10_000_000, 100_000)"
    ),
    "recrawl.schedule, 1,000,000 URLs, s": "schedule(FOLDER)",
    "recrawl.schedule, 10,000,000 URLs, s": "schedule(FOLDER + '/large', 10_000_000)",
}


# ------------------------------------------------------------------------- the inputs


def write_log(path, n_rows, n_urls):
    """A log of visits at random times."""
    rng = np.random.default_rng(5)
    url = pa.array([f"https://host{k % 997}.example.org/{k}" for k in range(n_urls)])
    seconds = rng.integers(1_700_000_000, 1_710_000_000, n_rows)
    columns = {
        "url": url.take(pa.array(rng.integers(n_urls, size=n_rows))),
        "time": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
        "changed": rng.random(n_rows) < 0.3,
    }
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def write_rates(path, n_urls):
    """Rates as `recrawl estimate` writes them."""
    rng = np.random.default_rng(6)
    when = np.sort(rng.integers(1_700_000_000, 1_710_000_000, (2, n_urls)), axis=0)
    first, last = (
        pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC"))
        for seconds in when
    )
    columns = {
        "url": [f"https://host{k % 997}.example.org/{k}" for k in range(n_urls)],
        "change_rate": rng.lognormal(-3, 1.5, n_urls),
        "importance": rng.lognormal(0, 1.2, n_urls),
        "n_crawls": np.full(n_urls, 30),
        "first_crawl": first,
        "last_crawl": last,
    }
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


# ------------------------------------------------------------------------- the table


def least(function, repeat=REPEAT):
    """Least of some wall-clock times."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def measured(expression, source, folder):
    """Number and peak memory in MB of one measure, in a process of its own."""
    cache = Path(folder, "compiled" + re.sub(r"\W", "_", str(source)))
    environment = os.environ | {
        "PYTHONPATH": str(source),
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, __file__, "--measure", expression, "--folder", folder]
    for _ in range(2):  # the first compiles
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{expression}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", help="to compare with")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        number = eval(given.measure, globals() | {"FOLDER": given.folder})
        # of ru_maxrss a child inherits that of its parent
        peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]
        print(json.dumps([number, int(peak) / 1024]))
        return
    beside = []
    sources = [SOURCE]
    if given.checkout:
        sources.append(Path(given.checkout).resolve() / "src")
    else:
        beside = [f"| {' | '.join(row)} |" for row in (peers.HEAD, *peers.rows())]
        beside.insert(1, "|---" * len(peers.HEAD) + "|")
        print("\n".join(beside), flush=True)
    lines = ["| what | now | MB |" + " before | MB | ratio |" * bool(given.checkout)]
    lines.append(re.sub(r"[^|]+", "---", lines[0]))
    with tempfile.TemporaryDirectory() as folder:
        for what, expression in MEASURES.items():
            found = [measured(expression, source, folder) for source in sources]
            cells = [f"{x:.3g}" for one in found for x in one]
            if given.checkout:
                cells.append(f"{found[0][0] / found[1][0]:.2f}")
            lines.append(f"| {what} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if given.checkout:
        return
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    text = f"""# Speed

Written by `make bench` on {os.cpu_count()} cores ({machine}).

## Beside others

The same task on the same numbers, in processor time with one thread of BLAS; "there" is
the other one, and the ratio says how many times as long it takes.

{chr(10).join(beside)}

## Alone

Each measure in a process of its own, with its peak memory. Slots are processor time,
the rest is wall-clock time.

"""
    PAGE.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
