"""Fast forms of what crawl engineers use agree with their plain forms.

Unless a comment says otherwise, both sides are exact up to rounding and the
tolerance is a relative 1e-12 (`EXACT`), or 1e-10 (`ROOT`) where both sides are
roots of an equation that rounding moves. Arguments are random, over several powers
of ten, with the edges of their ranges among them.
"""

import inspect
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paperlib.signals import SignalledPages
from recrawl.science import (
    allocation,
    estimators,
    freshness,
    objectives,
    policies,
    simulate,
)
from recrawl.science.processes import History
from tests import plain as reference
from tests.recrawl import plain as beyond
from tests.recrawl.thinned import every

EXACT = 1e-12
ROOT = 1e-10


def rates(rng, size, low=-4.0, high=4.0):
    """Random rates, log-uniform over powers of ten."""
    return 10 ** rng.uniform(low, high, size)


# ------------------------------------------------------- one bit of each crawl


def histories():
    """Histories of one page: moderate, extreme, equal intervals, and edges."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(2, 60))
        interval = rng.exponential(1 / 3, n)
        yield interval, rng.random(n) < reference.predicted_probability(5.0, interval)
    for _ in range(30):  # intervals over ten powers of ten, any bits
        n = int(rng.integers(2, 12))
        yield rates(rng, n, -5, 5), rng.random(n) < 0.5
    for n_changed in range(6):  # equal intervals; no change, and nothing but changes
        yield np.full(5, 0.7), np.arange(5) < n_changed
    for scale in (1e-9, 1.0, 1e9):  # one crawl, unequal intervals, units of time
        for bit in (False, True):
            yield np.array([scale]), np.array([bit])
            yield scale * np.array([0.1, 1.0, 3.0]), np.full(3, bit)


def test_batch_estimators():
    """Equal to some 1e-13: the slope of the equation at its root may be small."""
    for interval, changed in histories():
        history = History(interval, changed)
        for substitute, plain in (
            (False, reference.mle),
            (True, reference.mle_substitute),
        ):
            found = estimators.mle(history, substitute=substitute)
            assert_allclose(found, plain(interval, changed), rtol=ROOT, atol=0)
        rate = estimators.mle(history)
        if 0 < rate < np.inf:
            found = estimators.likelihood_interval(history, rate, 1.7)
            expected = beyond.likelihood_interval(interval, changed, 1.7)
            # the log-likelihood has an error of some 1e-16 times its largest term,
            # which its slope at the ends, never small, passes on
            assert_allclose(found, expected, rtol=1e-9, atol=0)


# ------------------------------------------------------------------ allocation


def problems():
    """Change rates, importance and bandwidth: random, extreme and special."""
    rng = np.random.default_rng(11)
    for _ in range(15):
        n = int(rng.integers(1, 40))
        yield rng.random(n) + 1e-3, rng.random(n), n * rng.uniform(0.05, 3)
    for _ in range(25):  # rates and importances over eight powers of ten
        n = int(rng.integers(1, 20))
        yield *rates(rng, (2, n)), rates(rng, 1, -3, 3)[0]
    zeros = rng.random(12) * (np.arange(12) % 3 > 0)
    yield zeros, rng.random(12), 2.0  # pages that never change
    yield rng.random(12), zeros, 2.0  # pages without importance
    yield np.full(7, 0.3), np.full(7, 2.0), 3.0  # equal pages
    yield np.array([2.0]), np.array([1e-8]), 5.0  # one page
    yield np.array([1e-6, 1.0, 1e6]), np.ones(3), 1e-6
    yield np.array([1e-6, 1.0, 1e6]), np.ones(3), 1e6


def same_plan(found, expected, change_rate, bandwidth, rtol=ROOT, lost=0.0):
    """Rates and multiplier agree, to the precision that their equation allows.

    A rate is a difference of numbers of the size of rate + change rate, and an
    error e of the multiplier moves it by about e times that; the multiplier comes
    from the sum of the rates, so that the other pages' errors count, too.
    """
    rate, multiplier = expected
    assert found.multiplier == pytest.approx(multiplier, rel=rtol, abs=0)
    slack = rtol * (rate + change_rate * (rate > 0)) + 1e-13 * (change_rate + bandwidth)
    assert (np.abs(found.crawl_rate - rate) <= slack + lost * rate).all()


def test_optimal_poisson():
    for d, mu, bandwidth in problems():
        plan = allocation.optimal(d, mu, bandwidth, crawls="poisson")
        same_plan(plan, reference.optimal_poisson(d, mu, bandwidth), d, bandwidth)


def test_optimal_poisson_with_a_floor():
    for d, mu, bandwidth in problems():
        for epsilon in (1e-3, 0.4, 0.99):
            floor = epsilon * bandwidth / d.size
            plan = allocation.optimal(
                d, mu, bandwidth, crawls="poisson", min_rate=floor
            )
            expected = reference.optimal_poisson(d, mu, bandwidth, floor)
            # 1 - epsilon of the bandwidth is left to fix the multiplier
            same_plan(plan, expected, d, bandwidth, rtol=1e-9)


def test_optimal_interval():
    n_checked = 0
    for d, mu, bandwidth in problems():
        plan = allocation.optimal(d, mu, bandwidth)
        rate, multiplier = reference.optimal_interval(d, mu, bandwidth)
        # 1 - (1 + x) exp(-x), x = d / rate, has an absolute error of 1e-16,
        # and the slope x exp(-x): where x is large, x has few digits in both
        # forms
        spent = plan.crawl_rate
        x = np.divide(d, spent, out=np.zeros(d.size), where=spent > 0)
        lost = 4e-15 * (1 + np.exp(np.minimum(x, 300)) / np.maximum(x, 1) ** 2)
        if lost[spent > 1e-3 * bandwidth].max(initial=0.0) < 1e-3:
            n_checked += 1
            same_plan(plan, (rate, multiplier), d, bandwidth, 1e-9, lost)
    assert n_checked >= 30


def test_freshness_of_a_plan_is_the_weighted_mean():
    for d, mu, bandwidth in problems():
        plan = allocation.optimal(d, mu, bandwidth, crawls="poisson")
        fresh, on = np.ones(d.size), d > 0
        fresh[on] = reference.poisson_freshness(d[on], plan.crawl_rate[on])
        assert plan.freshness == pytest.approx(mu @ fresh / mu.sum(), rel=EXACT)


def test_allocations_against_cho_and_garcia_molina():
    # PAPERS 2.2: Delta = 1..5, equal importance, R = 5; three digits
    d, mu = np.arange(1.0, 6.0), np.ones(5)
    for plan, plain, expected in [
        (
            allocation.optimal,
            reference.optimal_interval,
            (1.150, 1.358, 1.354, 1.138, 0.0),
        ),
        (
            partial(allocation.optimal, crawls="poisson"),
            reference.optimal_poisson,
            (1.386, 1.374, 1.133, 0.772, 0.335),
        ),
    ]:
        assert_allclose(plan(d, mu, 5.0).crawl_rate, expected, atol=5.01e-4)
        assert_allclose(plain(d, mu, 5.0)[0], expected, atol=5.01e-4)


GAINS = {
    "interval": lambda objective: lambda p, d: objective.value(1 / p, d),
    "poisson": lambda objective: lambda p, d: objective.poisson_value(d, p),
}


@pytest.mark.parametrize("crawls", GAINS)
@pytest.mark.parametrize(
    "objective",
    every(3, [objectives.freshness, objectives.age, objectives.harmonic]),
    ids=repr,
)
def test_optimal(objective, crawls):
    rng = np.random.default_rng(62)
    for _ in range(5):
        n = 12
        d, mu, cost = rates(rng, (3, n), -1, 1)
        low, bandwidth = rng.uniform(1e-3, 0.1, n), 2.0 * cost.sum()
        high = low + rates(rng, n, -1, 2)
        host = np.arange(n) % 3
        limit = cost.sum() * np.array([0.1, 0.3, 3.0]) + np.bincount(host, cost * low)
        found = allocation.optimal(
            d, mu, bandwidth, objective=objective, crawls=crawls, min_rate=low,
            max_rate=high, cost=cost, host=host, host_limit=dict(enumerate(limit)),
        )  # fmt: skip
        expected, multiplier = beyond.optimal(
            d, mu, bandwidth, GAINS[crawls](objective), low, high, cost, host, limit
        )
        assert_allclose(found.crawl_rate, expected, rtol=1e-9)
        assert found.multiplier == pytest.approx(multiplier, rel=1e-9, abs=0)


# --------------------------------------------------- change-indicating signals


def one_page(change_rate, importance, recall, false_rate):
    """A `SignalledPages` of one page."""
    return SignalledPages([change_rate], importance, recall, false_rate)


def signalled(seed, n):
    """Parameters of pages with signals, from moderate to extreme."""
    rng = np.random.default_rng(seed)
    for k in range(n):
        d, mu = rates(rng, 2, -3, 3) if k % 2 else rng.uniform(0.1, 2, 2)
        recall = rng.choice([0.0, 1.0, 1e-3, 0.999, *rng.beta(0.25, 0.25, 4)])
        false_rate = rng.choice([0.0, 0.1 * d, d, 30 * d])
        yield d, mu, float(recall), float(false_rate)


def states(seed, n, max_u=12.0):
    """Pages with signals, elapsed times and numbers of signals."""
    rng = np.random.default_rng(seed)
    for page in signalled(seed, n):
        elapsed = rng.choice([1e-4, 0.1, 1.0, 3.0, max_u]) / page[0]
        yield page, float(elapsed), int(rng.choice([0, 0, 1, 2, 7]))


@pytest.mark.slow
@pytest.mark.parametrize("terms", [None, 1, 2, 3])
def test_crawl_value(terms):
    largest = 0.0
    for page, elapsed, n in states(14, 400):
        d, mu, recall, false_rate = page
        if recall * d + false_rate == 0:
            n = 0  # a page without signals gets none
        if 0 < recall < 1e-4:
            continue  # the plain form has a million terms and more
        if recall == 0 and false_rate > 0 and terms is None:
            n = 0  # without information; the plain form then has no number of signals
        found = freshness.crawl_value(elapsed, n, one_page(*page), terms=terms)[0]
        expected = reference.crawl_value(elapsed, n, *page, terms)
        # the difference w - exp(-alpha iota) psi of the plain form cancels:
        # its error is that of w, some 1e-15 a term of importance min(1 /
        # Delta, w); and b = log(gamma / nu) has an absolute error of 1e-16
        # where it is small
        n_terms = 1 + n + (1 + false_rate / (recall * d) if recall else 1)
        slack = 1e-11 * expected + 4e-15 * mu / d * n_terms
        assert abs(found - expected) <= slack, (page, elapsed, n)
        largest = max(largest, abs(found - expected) / (mu / d))
    assert largest < 1e-10


@pytest.mark.slow
def test_crawl_value_where_nothing_cancels():
    """A relative 1e-11, the precision that the fast form promises."""
    for page, elapsed, n in states(15, 400, max_u=8.0):
        d, _, recall, _ = page
        if not 0.05 < recall < 0.95 or d * elapsed < 0.5:
            continue
        found = freshness.crawl_value(elapsed, n, one_page(*page))[0]
        expected = reference.crawl_value(elapsed, n, *page)
        assert found == pytest.approx(expected, rel=2e-11, abs=0)


def test_special_cases_of_the_crawl_value():
    rng = np.random.default_rng(16)
    for d, mu, elapsed in rates(rng, (40, 3), -2, 2):
        silent = freshness.crawl_value(elapsed, 0, one_page(d, mu, 0.0, 0.0))[0]
        expected = reference.crawl_value_no_signals(elapsed, d, mu)
        # the fast form rounds its argument to 38 bits
        assert silent == pytest.approx(expected, rel=1e-11, abs=0)
        for recall in (0.2, 0.9):
            for n in (0, 1, 4):
                found = freshness.crawl_value(elapsed, n, one_page(d, mu, recall, 0.0))
                expected = reference.crawl_value_no_false_signals(
                    elapsed, n, d, mu, recall
                )
                # the difference of V_GREEDY_CIS cancels, as above
                assert found[0] == pytest.approx(
                    expected, rel=1e-11, abs=1e-15 * mu / d
                )


def test_limits_of_the_crawl_value():
    # PAPERS 5.1: APPROX-j tends to 1.0, 1.3, 1.39 at Delta 0.7, nu 0.3; V to
    # 1.4286
    page = (0.7, 1.0, 0.5, 0.3)
    for terms, expected in [(1, 1.0), (2, 1.3), (3, 1.39), (None, 1 / 0.7)]:
        plain = reference.crawl_value(200.0, 0, *page, terms)
        assert plain == pytest.approx(expected, rel=1e-12)
        fast = freshness.crawl_value(np.inf, 0, one_page(*page), terms=terms)[0]
        assert fast == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
def test_cycle_length_and_fresh_time():
    for page, threshold, _ in states(17, 300):
        d, _, recall, false_rate = page
        if 0 < recall < 1e-3:
            continue  # the plain form has too many terms
        pages = one_page(*page)
        # b = log(gamma / nu) of a ratio near 1 has an absolute error of 1e-16
        lost = 1e-15 * (1 + false_rate / (recall * d)) if recall else 0.0
        for fast, plain in [
            (freshness.cycle_length, reference.mean_crawl_interval),
            (freshness.fresh_time, reference.fresh_time),
        ]:
            expected = plain(threshold, d, recall, false_rate)
            found = fast(threshold, pages)[0]
            assert found == pytest.approx(expected, rel=EXACT + lost, abs=0), page
    assert freshness.fresh_time(np.inf, one_page(0.7, 1.0, 0.5, 0.3))[0] == (
        pytest.approx(1 / 0.7, rel=EXACT)
    )


def signalled_problems():
    """Pages with signals of recall below 1, and bandwidths."""
    rng = np.random.default_rng(18)
    for n in (1, 1, 3, 6, 6):
        recall = rng.choice([0.0, 0.3, 0.8, 0.99], n)
        nu = rng.choice([0.0, 0.2, 1.0], n)
        yield rng.uniform(0.1, 2, n), rng.uniform(0.1, 2, n), recall, nu, 0.4 * n
    yield *np.full((4, 5), [[0.5], [1.0], [0.6], [0.2]]), 2.0  # equal pages
    yield *rates(rng, (2, 5), -2, 2), np.full(5, 0.5), np.full(5, 0.1), 3.0


@pytest.mark.slow
def test_optimal_thresholds():
    n_checked = 0
    for *arrays, bandwidth in signalled_problems():
        plan = allocation.optimal_thresholds(SignalledPages(*arrays), bandwidth)
        iota, rate, multiplier = reference.optimal_thresholds(*arrays, bandwidth)
        assert plan.multiplier == pytest.approx(multiplier, rel=ROOT)
        d, mu, recall, nu = arrays
        jumps = (nu == 0) & (recall > 0) & (np.abs(mu / d / multiplier - 1) < 1e-9)
        if jumps.any():
            continue  # the next test
        n_checked += 1
        assert_array_equal(plan.crawl_rate > 0, rate > 0)
        # near its limit V is flat, and its rounding errors move the threshold
        # far
        assert_allclose(plan.crawl_rate, rate, rtol=1e-6, atol=0)
        assert_allclose(plan.threshold, iota, rtol=1e-6, atol=0)
        # Theorem 1 at the thresholds of the fast form, without that loss
        on = plan.crawl_rate > 0
        fresh = np.zeros(on.size)
        for i in np.flatnonzero(on):
            d, mu, recall, nu = (float(array[i]) for array in arrays)
            value = reference.crawl_value(plan.threshold[i], 0, d, mu, recall, nu)
            assert value == pytest.approx(plan.multiplier, rel=1e-11)
            psi = reference.mean_crawl_interval(plan.threshold[i], d, recall, nu)
            # where V is flat the rate, interpolated to spend the bandwidth,
            # and the threshold of the last multiplier differ by 3e-8
            # (measured)
            assert plan.crawl_rate[i] == pytest.approx(1 / psi, rel=1e-7)
            fresh[i] = reference.fresh_time(plan.threshold[i], d, recall, nu) / psi
        assert (arrays[1] / arrays[0] <= plan.multiplier)[~on].all()
        assert plan.crawl_rate.sum() == pytest.approx(bandwidth, rel=EXACT)
        expected = arrays[1] @ fresh / arrays[1].sum()
        assert plan.freshness == pytest.approx(expected, rel=1e-7)
    assert n_checked >= 5


def test_optimal_thresholds_without_false_signals_at_scarce_bandwidth():
    """The crawl rate jumps at V(inf): a page is crawled at some signals."""
    d, recall, bandwidth = 1.943, 0.3, 0.4  # signals come at a rate of 0.583
    plan = allocation.optimal_thresholds(one_page(d, 1.171, recall, 0.0), bandwidth)
    assert plan.crawl_rate[0] == pytest.approx(bandwidth, rel=EXACT)
    _, rate, multiplier = reference.optimal_thresholds(
        np.array([d]), np.array([1.171]), np.array([recall]), np.zeros(1), bandwidth
    )
    assert rate[0] == pytest.approx(recall * d, rel=1e-3) or rate[0] == 0
    assert plan.multiplier == pytest.approx(multiplier, rel=ROOT)
    # fresh for 1 / Delta after each crawl
    assert plan.freshness == pytest.approx(bandwidth / d, rel=1e-9)


def test_optimal_thresholds_at_recall_1_meet_theorem_1():
    """A page of recall 1 is crawled after the first n signals with V >= L."""
    d, mu = np.array([0.5, 0.8, 1.2, 0.7]), np.array([1.0, 2.0, 0.7, 1.5])
    recall, nu = np.array([1.0, 1.0, 0.5, 0.0]), np.array([0.4, 0.0, 0.3, 0.0])
    plan = allocation.optimal_thresholds(SignalledPages(d, mu, recall, nu), 1.7)
    assert plan.crawl_rate.sum() == pytest.approx(1.7, rel=EXACT)
    for i in range(4):
        page = d[i], mu[i], recall[i], nu[i]
        if plan.crawl_rate[i] == 0:
            assert mu[i] / d[i] <= plan.multiplier
            continue
        if recall[i] < 1:
            value = reference.crawl_value(plan.threshold[i], 0, *page)
            assert value == pytest.approx(plan.multiplier, rel=1e-9)
            continue
        n = (d[i] + nu[i]) / plan.crawl_rate[i]
        above, below = np.ceil(n - 1e-9), np.ceil(n - 1e-9) - 1
        assert reference.crawl_value(0.0, int(above), *page) >= plan.multiplier * (
            1 - 1e-9
        )
        assert reference.crawl_value(0.0, int(below), *page) <= plan.multiplier


# ------------------------------------------------------------------- schedules


def believed(kind, page):
    """What a policy of the greedy family believes of a page."""
    d, mu, recall, false_rate = page
    if kind == "greedy":
        return d, mu, 0.0, 0.0
    if kind == "cis":
        return d, mu, recall, 0.0
    if kind == "cis+":
        precision = recall * d / max(recall * d + false_rate, 1e-300)
        good = precision > 0.7 and recall > 0.6
        return (d, mu, recall, 0.0) if good else (d, mu, 0.0, 0.0)
    return page


GREEDY = {
    "greedy": policies.Greedy,
    "cis": policies.GreedyCIS,
    "cis+": policies.GreedyCISPlus,
    "ncis": policies.GreedyNCIS,
    "ncis-1": lambda pages: policies.GreedyNCIS(pages, terms=1),
    "ncis-2": lambda pages: policies.GreedyNCIS(pages, terms=2),
    "ncis-d": lambda pages: policies.GreedyNCIS(pages, discard_window=0.3),
}


def draw_pages(rng, n, kind):
    """Random pages; some special ones among them."""
    d, mu = rng.uniform(0.05, 1, (2, n))
    recall, nu = rng.uniform(0.05, 0.95, n), rng.uniform(0.1, 0.6, n)
    if kind == "edges":
        recall, nu = rng.choice([0.0, 0.5, 1.0], n), rng.choice([0.0, 0.1, 0.5], n)
        nu[recall == 0] = 0.0
        mu[0] = 0.0
    if kind == "equal":
        d[:], mu[:], recall[:], nu[:] = 0.5, 0.7, 0.8, 0.1
    return SignalledPages(d, mu, recall, nu)


@pytest.mark.slow
@pytest.mark.parametrize("name", GREEDY)
@pytest.mark.parametrize("kind", ["random", "edges", "equal", "one"])
def test_algorithm_1(name, kind):
    """Slot for slot; the fast form compares only the pages that can win."""
    rng = np.random.default_rng(21)
    n, bandwidth, horizon = (1, 2.0, 10.0) if kind == "one" else (6, 4.0, 20.0)
    pages = draw_pages(rng, n, kind)
    world = simulate.draw_world(pages, horizon, rng=22)
    run = simulate.crawl(world, GREEDY[name](pages), bandwidth)
    page, arrival = world.in_order
    rows = zip(
        pages.change_rate, pages.importance, pages.recall, pages.false_rate, strict=True
    )
    plain = [believed(name, tuple(map(float, row))) for row in rows]
    uses = np.array([name != "greedy" and row[2] > 0 for row in plain])
    expected = reference.greedy_slots(
        plain,
        bandwidth,
        run.page.size,
        arrival[uses[page]],
        page[uses[page]],
        discard=0.3 if name == "ncis-d" else 0.0,
        terms=int(name[-1]) if name[-1].isdigit() else None,
    )
    assert_array_equal(run.page, expected)


def test_accuracy_is_the_mean_of_eq_1():
    rng = np.random.default_rng(23)
    for kind in ("random", "edges", "equal"):
        pages = draw_pages(rng, 5, kind)
        if kind == "edges":  # eq. (1) needs a rate of signals
            pages = SignalledPages(
                pages.change_rate, pages.importance, np.maximum(pages.recall, 0.1), 0.2
            )
        world = simulate.draw_world(pages, 30.0, rng=24)
        run = simulate.crawl(world, policies.GreedyNCIS(pages), 2.0)
        page, arrival = world.in_order
        rows = list(
            zip(
                pages.change_rate,
                pages.importance,
                pages.recall,
                pages.false_rate,
                strict=True,
            )
        )
        expected = reference.accuracy(rows, run.time, run.page, arrival, page, 30.0)
        assert run.freshness == pytest.approx(expected, rel=EXACT)


# ---------------------------------------------------------------------- priors


# ------------------------------------------------------------------ objectives


@pytest.mark.parametrize(
    "name",
    ["freshness", "age", "delay", "harmonic", "age_of_information", "deadline"],
)
def test_objectives(name):
    objective = getattr(objectives, name)
    if name == "deadline":
        objective = objective(0.8)
    rng = np.random.default_rng(11)
    for elapsed, change_rate in zip(
        rates(rng, 30, -1, 1), rates(rng, 30, -1, 1), strict=True
    ):
        arguments = name, elapsed, change_rate, objective.tau
        # the plain forms cancel, and hold quadratures
        assert_allclose(
            objective.cost(elapsed, change_rate),
            beyond.objective_cost(*arguments),
            rtol=1e-11,
        )
        assert_allclose(
            objective.value(elapsed, change_rate),
            beyond.objective_value(*arguments),
            rtol=1e-9,
            atol=1e-13,
        )


# -------------------------------------------------------------------- the page


def test_every_plain_form_is_used_and_on_the_page_of_formulas():
    folder = Path(__file__).parent
    tests = "".join(path.read_text() for path in folder.glob("test_*.py"))
    page = (folder.parents[1] / "docs" / "recrawl" / "formulas.md").read_text()
    public = {
        name
        for name, member in inspect.getmembers(beyond, inspect.isfunction)
        if member.__module__ == beyond.__name__ and not name.startswith("_")
    }
    assert {n for n in public if re.search(rf"\b\w+\.{n}\(", tests)} == public
    assert set(re.findall(r"\| `(\w+)` \|$", page, flags=re.MULTILINE)) == public
