"""Make example_log.csv.gz, a crawl log for anyone, from the two shipped traces.

``python data/make_example_log.py``: windows of the traces are pages of their
own, which change at the real times, moved by whole weeks to a common start.
The crawls, the importances and the fetches that fail are invented; each bit
says what its crawl would have seen.
"""

import gzip

import numpy as np

from paperfigs import traces
from paperfigs.files import sha256, write_atomic
from paperlib.processes import observe

START, WEEK = np.datetime64("2025-01-06", "s"), np.timedelta64(7, "D")
# Trace, path of its pages, weeks of a window, windows side by side, and the
# days between crawls to begin with.
SITES = (
    ("debian_firefox_esr", "debian.example/firefox-esr", 26, 1, 0.5),
    ("bokeh_commits", "bokeh.example/commits", 13, 2, 1 / 12),
)
SCHEDULES = ("regular", "rare", "Poisson", "adaptive")
FAILED = 0.015  # share of fetches
# The rule of Apache Nutch's AdaptiveFetchSchedule: the interval is multiplied so
# after a crawl that found a change, and after one that found none.
SHRINK, GROW = 0.8, 1.4


def main(folder=traces.DATA):
    rng = np.random.default_rng(2025)
    rows = [row for site in SITES for row in _site(*site, rng)]
    text = "url,time,changed,importance,status\n" + "".join(
        ",".join(row) + "\n" for row in sorted(rows, key=lambda row: row[1::-1])
    )
    path = folder / "example_log.csv.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    write_atomic(f"{path}.sha256", f"{sha256(path)}  {path.name}\n")
    print(
        f"{path.name}: {len(rows)} fetches of {len({row[0] for row in rows})} URLs, "
        f"sha256 {sha256(path)}"
    )


def _site(name, path, weeks, side_by_side, interval, rng):
    """The rows of a trace's pages, one for each window.

    Of windows side by side, each begins when the one before has ended.
    """
    trace, days = traces.load(name), 7 * weeks
    for k in range(int(trace.horizon // days)):
        began = trace.start + k * weeks * WEEK
        moved = (
            trace.start
            + (START - trace.start) // WEEK * WEEK
            + (1 + k % side_by_side * weeks) * WEEK
        )
        changes = (
            trace.times[(trace.times > k * days) & (trace.times <= (k + 1) * days)]
            - k * days
        )
        importance = f"{rng.lognormal():.2f}"
        times, failed = _crawls(
            SCHEDULES[k // side_by_side % len(SCHEDULES)], changes, days, interval, rng
        )
        first, *later = times[~failed]
        bits = dict(
            zip(
                later,
                observe(changes - first, np.array(later) - first).changed,
                strict=True,
            )
        ) | {first: True}
        url = f"https://{path}/{began.astype('datetime64[D]')}"
        for time, fails in zip(times, failed, strict=True):
            seen = (
                ("", "503") if fails else ("1", "200") if bits[time] else ("0", "304")
            )
            yield url, _iso(moved, time), seen[0], importance, seen[1]
        if k % side_by_side < side_by_side - 1:  # its place is taken by the next
            yield url, _iso(moved, days + interval), "", importance, "404"


def _crawls(schedule, changes, days, interval, rng):
    """Times of the fetches of one page, and which of them fail.

    Within its window, in days, and at whole seconds.
    """
    first = interval * rng.random()
    if schedule == "adaptive":
        times, limits = [first], (interval / 8, interval * 8)
        while times[-1] + interval < days:
            times.append(times[-1] + interval)
            seen = np.searchsorted(changes, times[-2:], side="right")
            factor = SHRINK if seen[0] < seen[1] else GROW
            interval = np.clip(interval * factor, *limits)
    elif schedule == "Poisson":
        n = rng.poisson((days - first) / (2 * interval))
        times = np.append(first, first + np.sort((days - first) * (1 - rng.random(n))))
    else:
        times = np.arange(first, days, interval * {"regular": 1, "rare": 4}[schedule])
    times = np.unique(np.floor(np.array(times) * 86400)) / 86400
    failed = rng.random(times.size) < FAILED
    failed[0] = False
    return times, failed


def _iso(start, days):
    return f"{start + np.timedelta64(round(days * 86400), 's')}Z"


if __name__ == "__main__":
    main()
