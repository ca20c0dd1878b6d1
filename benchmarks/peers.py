"""Speed beside other implementations of the same task, on the same numbers.

``python benchmarks/peers.py`` prints the table that `make bench` writes. Each time is
processor time, the least of some runs after one that compiles or warms up.
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import brentq, minimize

from paperlib import allocation, estimators
from paperlib.policies import Greedy
from paperlib.processes import simulate_history
from paperlib.signals import SignalledPages
from paperlib.worlds import crawl, draw_world

HEAD = "task", "here", "there", "ratio", "agreement"


def seconds(function, repeat=3):
    """Result of a function, and the least processor time of some calls."""
    result, times = function(), []
    for _ in range(repeat):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return result, min(times)


def row(task, here, there, unit, agreement):
    """A row of the table: two times in a unit, and their ratio."""
    ratio = f"{there / here:,.2g}" if there < 100 * here else f"{there / here:,.0f}"
    return task, f"{here:.3g} {unit}", f"{there:.3g} {unit}", ratio, agreement


# ---- maximum likelihood


def scipy_mle(interval, changed):
    """The root of the likelihood equation of each page by `brentq`."""

    def score(rate, found, unchanged):
        return np.sum(found / np.expm1(rate * found)) - unchanged

    rates = []
    for w, bit in zip(interval, changed, strict=True):
        given = w[bit], w[~bit].sum()
        rates.append(brentq(score, 1e-6, 1e3, args=given, xtol=1e-12))
    return np.array(rates)


def lifelines_mle(interval, changed):
    """Each page as lifetimes that are censored on both sides."""
    from lifelines import ExponentialFitter

    rates = []
    for w, bit in zip(interval, changed, strict=True):
        low, high = np.where(bit, 0.0, w), np.where(bit, w, np.inf)
        fitted = ExponentialFitter().fit_interval_censoring(low, high)
        rates.append(1 / fitted.lambda_)
    return np.array(rates)


def likelihood(n_pages, peer, name):
    """Rows of the MLE of 50 crawls of a page."""
    many = simulate_history(np.full(20_000, 1.0), crawl_rate=1.0, n_crawls=50, rng=1)
    _, here = seconds(lambda: estimators.mle(many))
    few = many.interval[:n_pages], many.changed[:n_pages]
    found, there = seconds(lambda: peer(*few), 1)
    error = np.max(np.abs(found / estimators.mle(many)[:n_pages] - 1))
    times = 1e6 * here / 20_000, 1e6 * there / n_pages
    return row(
        f"MLE of a page of 50 crawls: {name}", *times, "µs", f"rates to {error:.0e}"
    )


# ---- optimal crawl rates


def slsqp(change_rate, importance, bandwidth):
    """Freshness of the rates that a general solver finds."""

    def stale(rate):
        return -np.sum(importance * rate / (rate + change_rate))

    def slope(rate):
        return -importance * change_rate / (rate + change_rate) ** 2

    n_pages = change_rate.size
    spends = {
        "type": "eq",
        "fun": lambda rate: rate.sum() - bandwidth,
        "jac": lambda rate: np.ones(n_pages),
    }
    found = minimize(
        stale,
        np.full(n_pages, bandwidth / n_pages),
        jac=slope,
        bounds=[(0, None)] * n_pages,
        constraints=[spends],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return -found.fun / importance.sum()


def convex(change_rate, importance, bandwidth):
    """Freshness of the rates of a convex solver: Clarabel by cvxpy."""
    import cvxpy

    rate = cvxpy.Variable(change_rate.size, nonneg=True)
    weight = importance * change_rate
    stale = weight @ cvxpy.inv_pos(rate + change_rate)
    problem = cvxpy.Problem(cvxpy.Minimize(stale), [cvxpy.sum(rate) == bandwidth])
    problem.solve(solver=cvxpy.CLARABEL)
    return 1 - problem.value / importance.sum()


def optimum(n_pages, peer, name):
    """Row of the optimum for Poisson crawl times."""
    rng = np.random.default_rng(2)
    pages = rng.lognormal(0, 1.5, n_pages), rng.lognormal(0, 1, n_pages), n_pages / 3
    best, here = seconds(lambda: allocation.optimal_poisson(*pages), 20)
    found, there = seconds(lambda: peer(*pages), 1)
    what = f"crawl rates of {n_pages:,} pages: {name}"
    lost = f"{best.freshness - found:.0e} of freshness behind ours"
    return row(what, 1e3 * here, 1e3 * there, "ms", lost)


# ---- slots


def full_arg_max(pages, time):
    """Page of each slot: the largest crawl value of all pages, by NumPy."""
    last, chosen = np.zeros(pages.change_rate.size), []
    scale = pages.importance / pages.change_rate
    for now in time.tolist():
        x = pages.change_rate * (now - last)
        page = int(np.argmax(scale * (1 - (1 + x) * np.exp(-x))))
        chosen.append(page)
        last[page] = now
    return np.array(chosen)


def slots(n_pages, n_slots=20_000):
    """Row of the greedy policy without signals, ten slots a page or fewer."""
    rng = np.random.default_rng(3)
    pages = SignalledPages(rng.random(n_pages), rng.random(n_pages))
    bandwidth = n_pages / 10
    world = draw_world(pages, n_slots / bandwidth, rng=4)
    time = crawl(world, Greedy(pages), bandwidth).time
    ours, here = seconds(lambda: Greedy(pages).choose(time, none(n_pages)))
    found, there = seconds(lambda: full_arg_max(pages, time), 1)
    same = f"{np.count_nonzero(ours == found):,} of {time.size:,} slots the same"
    times = 1e6 * here / time.size, 1e6 * there / time.size
    return row(f"a slot of {n_pages:,} pages: NumPy, arg max", *times, "µs", same)


def none(n_pages):
    """No signals of any page."""
    from paperlib.worlds import Signals

    return Signals(np.zeros(n_pages + 1, int), np.empty(0))


# ---- a log


def pandas_rates(path):
    """A script: bias-reduced rates of all pages of a log, without intervals."""
    import pandas as pd

    log = pd.read_csv(path, parse_dates=["time"]).sort_values(["url", "time"])
    gap = log.groupby("url")["time"].diff().dt.total_seconds() / 86_400
    seen = log.assign(gap=gap).dropna()
    of_page = seen.groupby("url").agg(
        n=("changed", "size"), x=("changed", "sum"), gap=("gap", "mean")
    )
    unchanged = of_page["n"] - of_page["x"]
    return -np.log((unchanged + 0.5) / (of_page["n"] + 0.5)) / of_page["gap"]


def log(n_rows=1_000_000, n_urls=50_000):
    """Row of a log from its file to rates."""
    import pandas as pd

    import recrawl

    rng = np.random.default_rng(5)
    stamp = pd.to_datetime(rng.integers(1_700_000_000, 1_710_000_000, n_rows), unit="s")
    columns = {
        "url": [
            f"https://h{k % 997}.example/{k}" for k in rng.integers(n_urls, size=n_rows)
        ],
        "time": stamp,
        "changed": rng.random(n_rows) < 0.3,
    }
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "log.csv"), Path(folder, "rates.parquet")
        pd.DataFrame(columns).to_csv(path, index=False)
        _, here = seconds(lambda: recrawl.estimate(path, out, force=True), 1)
        _, there = seconds(lambda: pandas_rates(path), 1)
    what = f"rates from a log of {n_rows:,} rows: a pandas script"
    other = "other rates: the script has no prior, interval, check or limit of memory"
    return row(what, here, there, "s", other)


def rows():
    """All rows of the table, one after the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield likelihood(2_000, scipy_mle, "SciPy, brentq")
        yield likelihood(50, lifelines_mle, "lifelines, interval censoring")
        yield optimum(100, slsqp, "SciPy, SLSQP")
        yield optimum(1_000, convex, "cvxpy, Clarabel")
        yield slots(100)
        yield slots(1_000)
        yield slots(10_000)
        yield log()


if __name__ == "__main__":
    for each in (HEAD, *rows()):
        print(" | ".join(each), flush=True)
