"""Which page a crawler fetches next: by a schedule, or by rates that it learns on.

`ByPlan` and `ByRates` have the same two methods: `choose` gives the URL for a slot, or
None, and `done` takes what became of a fetch. Times are seconds since 1970.
"""

import contextlib
import json
import math
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

DAY = 86_400
BUSY = 429, 503, -1  # -1: no answer
FIRST_PAUSE, LONGEST_PAUSE = 60, DAY  # seconds, where a host names none
TRIES = 100  # pages of hosts that pause, passed over in one slot
LIMITS = {"host_limit", "min_interval", "max_interval"}  # of `from_rates`


def chosen(plan=None, rates=None, **limits):
    """`ByPlan` or `ByRates`, of what a command line gives, as texts."""
    if unknown := limits.keys() - LIMITS:
        known = ", ".join(["plan", "rates", *sorted(LIMITS)])
        raise ValueError(f"no such option: {', '.join(unknown)}; there are {known}")
    if (plan is None) == (rates is None):
        raise ValueError("give plan=plan.jsonl or rates=rates.parquet, one of the two")
    if rates:
        return ByRates(rates, **{name: float(limits[name]) for name in limits})
    if limits:
        raise ValueError("limits go with rates: a plan has those of `recrawl schedule`")
    return ByPlan(plan)


class Hosts:
    """Hosts that ask for a pause, or do not answer."""

    def __init__(self):
        self.until, self.pause = {}, {}

    def is_open(self, url, now):
        return self.until.get(urlsplit(url).netloc, -math.inf) <= now

    def answered(self, url, now, status, retry_after=None):
        """Whether a host answered; else it is left alone, each time twice as long."""
        host = urlsplit(url).netloc
        if status not in BUSY:
            self.pause.pop(host, None)
            return True
        pause = self.pause.get(host, FIRST_PAUSE)
        self.pause[host] = min(2 * pause, LONGEST_PAUSE)
        asked = pause_asked(retry_after, now)
        self.until[host] = now + (asked if asked > 0 else pause)
        return False


def pause_asked(retry_after, now):
    """Seconds of a Retry-After, which has a number or a date; 0 without either."""
    try:
        if retry_after.strip().isdigit():
            return int(retry_after)
        return parsedate_to_datetime(retry_after).timestamp() - now
    except (AttributeError, TypeError, ValueError):
        return 0


class ByPlan:
    """Pages of a schedule by rank: the longest wait, in units of its interval, is next.

    No slot stays unused, as it would if pages were fetched on their dates only. The
    file has one object a line, as `recrawl export --to jsonl` writes it: url, due
    and interval_s, of which the last two may be missing. A new file takes the place
    of the old one as soon as it is there.
    """

    def __init__(self, path):
        self.path, self.version, self.hosts = Path(path), None, Hosts()
        self.interval, self.last, self.running = {}, {}, set()
        self.take()

    def take(self):
        """Read the file if it is not the one that was read."""
        state = self.path.stat()
        version = state.st_mtime_ns, state.st_ino
        if version == self.version:
            return
        with open(self.path, encoding="utf-8") as lines:
            pages = [json.loads(line) for line in lines]
        self.version = version
        self.interval = {page["url"]: page.get("interval_s") or DAY for page in pages}
        last = {}
        for page in pages:
            url, planned = page["url"], -math.inf
            if page.get("due"):
                due = datetime.fromisoformat(page["due"]).timestamp()
                planned = due - self.interval[url]
            last[url] = max(planned, self.last.get(url, -math.inf))
        self.last = last

    def choose(self, now):
        with contextlib.suppress(OSError):  # while the file is being replaced
            self.take()
        best, longest = None, -math.inf
        for url, interval in self.interval.items():
            wait = (now - self.last[url]) / interval
            free = wait > longest and url not in self.running
            if free and self.hosts.is_open(url, now):
                best, longest = url, wait
        if best is not None:
            self.running.add(best)
        return best

    def done(self, url, now, status, *, retry_after=None, changed=None):
        self.running.discard(url)
        if self.hosts.answered(url, now, status, retry_after):
            self.last[url] = now


class ByRates:
    """Pages by `Scheduler.from_rates`, which learns from every fetch.

    The file is that of `recrawl estimate`; `limits` are those of `from_rates`.
    """

    def __init__(self, path, **limits):
        import pyarrow.parquet as pq

        from recrawl.live.scheduler import Scheduler

        self.scheduler = Scheduler.from_rates(path, **limits)
        self.urls = pq.read_table(path, columns=["url"])["url"].to_pylist()
        self.number = {url: k for k, url in enumerate(self.urls)}
        self.clock, self.hosts = 0.0, Hosts()

    def choose(self, now):
        self.clock = max(self.clock, now / DAY)  # clocks are set back at times
        for _ in range(TRIES):
            try:
                url = self.urls[self.scheduler.next(self.clock)]
            except LookupError:  # limits forbid every page
                return None
            if self.hosts.is_open(url, now):
                return url
        return None

    def done(self, url, now, status, *, retry_after=None, changed=None):
        answered = self.hosts.answered(url, now, status, retry_after)
        if answered and changed is not None:
            self.scheduler.report(self.number[url], changed)
