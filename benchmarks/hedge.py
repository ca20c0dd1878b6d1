"""What a hedged schedule costs if pages are Poisson, and saves if they are not.

A hedge gives a share of the bandwidth to all pages at equal rates; the rest is
optimal. Two forms are compared: "floor", the optimum among the schedules that
give every page at least share x bandwidth / n_pages, and "sum", these rates
plus the optimum for the rest of the bandwidth. A third one was added after the
first run: "mix", the mean of equal and optimal rates with the weights share and
1 - share, which keeps every limit that both keep.

The world. 1,000 pages of mean change rates lognormal with sigma 1.3, whose
changes are a Poisson process, a renewal process of gamma intervals of shape
0.5, or bursts (each change is followed by another one after a hundredth of the
mean interval with probability 0.75); and windows of the two shipped traces,
each with a random start and a change of scale, lognormal with sigma 1, so that
pages differ. Every page is polled 20 times at equal intervals; from these bits
the rates are learnt as `recrawl estimate` does, with the prior of two
pseudo-observations. Each schedule then crawls at equal intervals of random
phase for the time of 20 more polls, and is judged by the true changes. The
bandwidth is 0.3 or 1 crawl a change. 20 runs; differences from no hedge are
taken run by run, and their standard errors are over runs. Those of the traces
are over windows of two pages only, and say nothing of other pages.

Prediction, written before the first run:

* Poisson: freshness falls with the share, by less than .003 at a quarter and by
  .003 to .015 at a half; about half of what uniform loses at three quarters.
* Gamma 0.5 and bursts: within .003 of no hedge at a quarter, better by up to
  .01 at a budget of 0.3, because pages that were given up are crawled again.
* Traces: better at a quarter by up to .02, for their rates drift.
* "floor" loses less than "sum" at equal shares if pages are Poisson, for it is
  the optimum under its constraint; if they are not, the two are within .003.

What came out differs: "sum" gains where "floor" does not, and gains if pages are
Poisson too, because rates are estimated from 20 bits, and a page whose rate was
estimated too high is else given up. Uniform rates lose little at all. The rows
"Poisson, rates known", added after the first run, have no such errors.

Rule for the default share, fixed before the first run: the share of the better
form with the highest mean over the five kinds of pages and both budgets, each
counting alike, if it is above no hedge there by two standard errors, and does
not lose more than .005 if pages are Poisson at any budget; else none.

Run it: ``python benchmarks/hedge.py``; docs/recrawl/honest.md has some of
the numbers that it prints.
"""

import numpy as np

from paperfigs import traces
from recrawl.log.history import History
from recrawl.plan import allocation
from recrawl.rates.prior import PseudoObservations

N_PAGES, N_POLLS, N_RUNS = 1000, 20, 20
BUDGETS = (0.3, 1.0)
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
AGAIN, SOON = 0.75, 0.01  # of a burst: probability and time of one more change


def poisson(rng, rate, horizon):
    """Change times of one page."""
    return np.sort(rng.random(rng.poisson(rate * horizon))) * horizon


def clustered(rng, rate, horizon):
    """Intervals are gamma of shape 0.5; a start long before makes it stationary."""
    n = int(3 * rate * horizon + 100)
    times = rng.gamma(0.5, 2.0 / rate, n).cumsum()
    start = rng.random() * 30.0 / rate
    return times[(times > start) & (times < start + horizon)] - start


def bursts(rng, rate, horizon):
    """Poisson bursts of a geometric number of changes, 4 on average."""
    first = poisson(rng, rate * (1 - AGAIN), horizon)
    owner = np.repeat(np.arange(first.size), rng.geometric(1 - AGAIN, first.size))
    rank = np.arange(owner.size) - np.searchsorted(owner, owner)
    times = first[owner] + rank * SOON / rate
    return np.sort(times[times < horizon])


def windows_of(name):
    """A process of windows of a trace, which goes round at its end."""
    trace = traces.load(name)

    def window(rng, rate, horizon):
        scale = rate / trace.change_rate
        start, length = rng.random() * trace.horizon, scale * horizon
        laps = np.arange(2 + int(length / trace.horizon))
        times = (trace.times + trace.horizon * laps[:, None]).ravel() - start
        return times[(times > 0) & (times < length)] / scale

    return window


KNOWN = "Poisson, rates known"
PROCESSES = {
    KNOWN: (poisson, 1.3),
    "Poisson": (poisson, 1.3),
    "gamma 0.5": (clustered, 1.3),
    "bursts": (bursts, 1.3),
    "Debian": (windows_of("debian_firefox_esr"), 1.0),
    "Bokeh": (windows_of("bokeh_commits"), 1.0),
}


def true_freshness(changes, interval, phase, horizon):
    """Share of the time for which the copy of one page is fresh."""
    crawls = [0.0]
    if interval < np.inf:
        crawls = np.append(crawls, np.arange(phase * interval, horizon, interval))
    crawls = np.append(crawls, horizon)
    ahead = np.append(changes, np.inf)
    stale = ahead[np.searchsorted(changes, crawls[:-1], side="right")]
    return (np.minimum(stale, crawls[1:]) - crawls[:-1]).sum() / horizon


def schedules(rate, bandwidth):
    """Crawl rates by form and share."""
    even = bandwidth / rate.size
    best = allocation.optimal(rate, 1.0, bandwidth).crawl_rate
    yield ("floor", 0.0), best
    for share in SHARES:
        plan = allocation.optimal(rate, 1.0, bandwidth, min_rate=share * even)
        yield ("floor", share), plan.crawl_rate
        yield ("mix", share), share * even + (1 - share) * best
        if share < 1.0:
            rest = allocation.optimal(rate, 1.0, bandwidth * (1 - share))
            yield ("sum", share), share * even + rest.crawl_rate


def run(process, sigma, budget, known, seed):
    """Freshness of each schedule in one world."""
    rng = np.random.default_rng(seed)
    rate = np.exp(sigma * rng.standard_normal(N_PAGES) - sigma**2 / 2)
    bandwidth = budget * rate.sum()
    poll = N_PAGES / bandwidth
    learnt = N_POLLS * poll
    changes = [process(rng, each, 2 * learnt) for each in rate]
    polls = poll * np.arange(1, N_POLLS + 1)
    seen = np.array([np.searchsorted(times, polls, "right") for times in changes])
    bits = np.diff(seen, axis=1, prepend=0) > 0
    history = History(np.full(bits.shape, poll), bits)
    estimate = rate if known else PseudoObservations.learn(history).estimate(history)
    later = [times[times > learnt] - learnt for times in changes]
    phase = rng.random(N_PAGES)
    found = {}
    for name, crawl_rate in schedules(estimate, bandwidth):
        with np.errstate(divide="ignore"):
            interval = 1.0 / crawl_rate
        fresh = map(true_freshness, later, interval, phase, [learnt] * N_PAGES)
        found[name] = np.mean(list(fresh))
    return found


def main():
    """Print freshness without a hedge, and differences in thousandths."""
    names = [(form, s) for form in ("floor", "sum", "mix") for s in SHARES[:-1]]
    names.append(("floor", 1.0))  # all forms are one there
    print("| changes | budget | none |", *(f"{f} {s} |" for f, s in names))
    print("|---" * (len(names) + 3) + "|")
    gains = []
    for kind, (process, sigma) in PROCESSES.items():
        for budget in BUDGETS:
            known = kind == KNOWN
            runs = [run(process, sigma, budget, known, s) for s in range(N_RUNS)]
            none = np.array([found["floor", 0.0] for found in runs])
            gain = np.array([[found[name] for name in names] for found in runs])
            gain -= none[:, None]
            gains += [] if known else [gain]
            cells = [f"{none.mean():.4f}", *_with_errors(gain)]
            print(f"| {kind} | {budget} |", " | ".join(cells), "|", flush=True)
    cells = _with_errors(np.mean(gains, axis=0))
    print("| mean | | |", " | ".join(cells), "|")


def _with_errors(gain):
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    pairs = zip(1e3 * gain.mean(axis=0), 1e3 * error, strict=True)
    return [f"{mean:+.1f} ± {error:.1f}" for mean, error in pairs]


if __name__ == "__main__":
    main()
