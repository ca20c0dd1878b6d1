"""The greedy family and fixed rates: every slot goes to the page of the full arg max.

`test_plain.py` compares the same policies with the plain form.
"""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from paperlib import freshness, schedules
from paperlib.policies import (
    ArgMax,
    Greedy,
    GreedyCIS,
    GreedyCISPlus,
    GreedyNCIS,
    Rates,
)
from paperlib.signals import SignalledPages
from paperlib.worlds import Signals, draw_world, slot_times

POLICIES = {
    "greedy": Greedy,
    "cis": GreedyCIS,
    "cis+": GreedyCISPlus,
    "ncis": GreedyNCIS,
    "ncis-1": lambda pages: GreedyNCIS(pages, terms=1),
    "ncis-3": lambda pages: GreedyNCIS(pages, terms=3),
    "ncis-d": lambda pages: GreedyNCIS(pages, discard_window=0.25),
    "ncis-1-d": lambda pages: GreedyNCIS(pages, terms=1, discard_window=0.05),
}
each = pytest.mark.parametrize("name", POLICIES)
NAMES = "change_rate", "importance", "recall", "false_rate"


def full_arg_max(policy, time, signals):
    """Every slot looks at every page (`policies.arg_max`): the first of the best."""
    believed = policy.believed

    def value(elapsed, n_signals):
        return freshness.crawl_value(elapsed, n_signals, believed, terms=policy.terms)

    return ArgMax(value, policy.discard_window).choose(time, signals)


def random_pages(rng, n, kind):
    """Pages of figure 4 of Busa-Fekete et al. (2025), or more special ones."""
    change_rate, importance = rng.random((2, n))
    recall, false_rate = rng.beta(0.25, 0.25, n), rng.uniform(0.1, 0.6, n)
    if kind == "extreme":
        change_rate = rng.choice([0.0, 0.3, 20.0], n)
        importance *= rng.integers(0, 2, n)
        recall, false_rate = rng.choice([0, 0.5, 1], n), rng.choice([0, 0.3, 3], n)
    elif kind == "sure":
        recall, false_rate = np.ones(n), rng.choice([0.0, 0.3], n)
    elif kind == "good":
        recall = rng.choice([0.2, 0.65, 0.9], n)
        false_rate = rng.choice([0.0, 0.05, 1.0], n) * change_rate
    elif kind == "same":
        change_rate, importance, recall, false_rate = np.full((4, n), 0.5)
    return SignalledPages(change_rate, importance, recall, false_rate)


def random_case(seed):
    """Pages, slots of a bandwidth that may change, and signals that may be late."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["noisy", "noisy", "extreme", "sure", "good", "same"])
    pages = random_pages(rng, int(rng.choice([1, 2, 5, 12, 30])), kind)
    world = draw_world(pages, 30.0, rng=rng)
    late = rng.exponential(rng.choice([1e-9, 0.1, 1.0]), world.sent.size)
    world = world.delayed(late)
    pieces = np.array([0.0, 9.0, 12.0, 20.0]), np.array([4.0, 0.0, 8.0, 3.0])
    time = slot_times(pieces if seed % 2 else 4.0, 30.0)
    return pages, time, Signals(world.offsets, world.received)


def signals_of(n_pages, *events):
    """Signals, each a time and a page."""
    times = [sorted(t for t, page in events if page == i) for i in range(n_pages)]
    offsets = np.append(0, np.cumsum([len(own) for own in times]))
    return Signals(offsets, np.array([t for own in times for t in own], dtype=float))


def chosen(policy, time, *events):
    signals = signals_of(policy.pages.alpha.size, *events)
    return policy.choose(np.array(time, dtype=float), signals, None).tolist()


# --------------------------------------------------------------------------- by hand

TWO = SignalledPages(1.0, [1.0, 1.1], 0.9, 0.1)
LIMITS = SignalledPages([1.0, 2.0, 0.5], [1.0, 1.0, 0.4], 0.1, 0.3)  # 1, 0.5, 0.8
GOOD = SignalledPages(1.0, [1.0, 1.0, 1.3], [0.9, 0.5, 0.5], 0.1)
WINDOW = GreedyNCIS(TWO, discard_window=0.5)


@pytest.mark.parametrize(
    ("policy", "time", "events", "expected"),
    [
        # V rises with elapsed time and importance
        (Greedy(SignalledPages(1.0, [1.0, 1.1, 0.3])), [1, 2, 3, 4], [], [1, 0, 1, 0]),
        # a signal counts from its arrival on, also in the slot of that time
        (GreedyNCIS(TWO), [1.0], [(1.0, 0)], [0]),
        (GreedyNCIS(TWO), [1.0], [(1.001, 0)], [1]),
        # and up to the crawl
        (GreedyNCIS(TWO), [0.5, 1.0, 1.6, 1.7], [(0.9, 0), (1.5, 0)], [1, 0, 0, 1]),
        # a sure signal leads to the limit, and the next one adds nothing
        (GreedyCIS(LIMITS), [0.6, 0.7, 0.8],
         [(0.1, 1), (0.2, 1), (0.3, 1), (0.4, 2), (0.5, 0)], [0, 2, 1]),
        (Greedy(LIMITS), [0.6], [(0.4, 2), (0.5, 0)], [1]),
        # only signals of good pages count
        (GreedyCISPlus(GOOD), [0.6, 0.7, 0.8], [(0.5, 0), (0.5, 1)], [0, 2, 1]),
        (GreedyCIS(GOOD), [0.6, 0.7, 0.8], [(0.5, 0), (0.5, 1)], [0, 1, 2]),
        # within the window after a crawl none does, but at its end
        (WINDOW, [1.0], [(0.4, 0)], [1]),
        (WINDOW, [1.0], [(0.5, 0)], [0]),
        (WINDOW, [1.0, 2.0], [(1.4, 1)], [1, 0]),
        (WINDOW, [1.0, 2.0], [(1.5, 1)], [1, 1]),
    ],
)  # fmt: skip
def test_slots_by_hand(policy, time, events, expected):
    assert chosen(policy, time, *events) == expected
    signals = signals_of(policy.pages.alpha.size, *events)
    assert full_arg_max(policy, np.array(time), signals).tolist() == expected


def test_good_signals_are_strictly_above_both_limits():
    above, ratio = np.nextafter(0.6, 1.0), [0.3, 0.29, 0.0, 0.0, 0.3, 0.0, 0.0]
    pages = SignalledPages(1.0, 1.0, [0.7, 0.7, 0.6, above, above, 0.0, 1.0], ratio)
    assert pages.precision[0] == 0.7
    used = GreedyCISPlus(pages).believed.recall > 0
    assert used.tolist() == [False, True, False, True, False, False, True]


@each
def test_ties_go_to_the_lower_index(name):
    """Equal pages take turns; a slot without value is the first page's."""
    policy, slots = POLICIES[name], range(1, 8)
    same = SignalledPages([1.0] * 3, 1.0, 0.5, 0.1)
    assert chosen(policy(same), slots) == [0, 1, 2, 0, 1, 2, 0]
    nothing = SignalledPages([0.0, 1.0, 0.0], [1.0, 0.0, 1.0], 0.5, 0.1)
    assert chosen(policy(nothing), slots) == [0] * 7
    if name not in ("greedy", "cis+"):  # without a signal nothing has changed
        sure = SignalledPages(1.0, [0.0, 1.0, 5.0], 1.0, 0.0)
        assert chosen(policy(sure), slots, (2.5, 2)) == [0, 0, 2, 0, 0, 0, 0]


@each
def test_few_pages_of_value_among_many_without(name):
    importance = np.zeros(500)
    importance[[100, 400]] = 1.0, 1.01
    pages = SignalledPages(0.5, importance, 0.3, 0.2)
    assert chosen(POLICIES[name](pages), range(1, 7)) == [400, 100] * 3


# ------------------------------------------------------------------ the full arg max


@each
def test_every_slot_goes_to_the_page_of_the_full_arg_max(name):
    n_other = 0
    for seed in range(40):
        pages, time, signals = random_case(seed)
        if seed % 3 == 0:  # what is believed decides, not what is true
            pages = random_pages(np.random.default_rng(seed), pages.alpha.size, "good")
        policy = POLICIES[name](pages)
        expected = full_arg_max(policy, time, signals)
        found = policy.choose(time, signals, None)
        assert_array_equal(found, expected, err_msg=f"seed {seed}")
        n_other += np.sum(Greedy(pages).choose(time, signals) != expected)
    assert n_other == 0 if name == "greedy" else n_other > 300


@pytest.mark.parametrize("kind", ["noisy", "sure"])
@pytest.mark.parametrize("name", ["greedy", "cis", "ncis", "ncis-1", "ncis-d"])
def test_many_pages(name, kind):
    """The threshold moves; bandwidth is scarce, ample, and scarce again.

    Where all changes are signalled, there is at times no page that gains by a crawl.
    """
    pages = random_pages(np.random.default_rng(1), 250, kind)
    world = draw_world(pages, 30.0, rng=2)
    time = slot_times(([0.0, 10.0, 12.0], [20.0, 300.0, 20.0]), 30.0)
    policy, signals = POLICIES[name](pages), Signals(world.offsets, world.received)
    expected = full_arg_max(policy, time, signals)
    assert_array_equal(policy.choose(time, signals, None), expected)


def age_state(page, iota):
    """Value, slope, curve, decay if a stale copy costs the time for which it is stale.

    With x = change_rate iota, V = mu (x^2 / 2 - 1 + (1 + x) exp(-x)) / change_rate^2
    and V' = mu iota (1 - exp(-x)). V'' is at most (1 + exp(-2)) mu, and at least 0.
    """
    x = page.change_rate * iota
    fresh = math.exp(-x)
    value = (0.5 * x * x - 1.0 + (1.0 + x) * fresh) / page.change_rate**2
    slope = iota * (1.0 - fresh)
    # V' falls to no less than (1 - s)^2 of itself before a share s of iota, so that
    # V(iota + d) >= V + slope d - slope d^2 / iota
    decay = 1.0 / max(iota, 1e-300)
    return (
        page.importance * value,
        page.importance * slope,
        1.2 * page.importance,
        decay,
    )


class GreedyAge(Greedy):
    """The page whose crawl lowers the mean age of copies most."""

    evaluate = staticmethod(age_state)

    def saturation(self):
        """The value grows without limit."""
        return np.inf, 0.0, np.inf


def test_a_crawl_value_of_ones_own():
    """One function is all that the fast loop needs; it is exact, as its bounds are."""
    rng = np.random.default_rng(3)
    pages = SignalledPages(rng.uniform(0.1, 2.0, 40), rng.random(40))
    rate, importance = pages.change_rate, pages.importance

    def value(elapsed, n_signals):
        x = rate * elapsed
        return importance * (0.5 * x**2 - 1 + (1 + x) * np.exp(-x)) / rate**2

    time = slot_times(8.0, 100.0)
    expected = ArgMax(value).choose(time, signals_of(40))
    assert_array_equal(GreedyAge(pages).choose(time, signals_of(40)), expected)
    assert np.mean(expected == Greedy(pages).choose(time, signals_of(40))) < 0.5


# ------------------------------------------------------------- limits and invariances


@pytest.mark.parametrize(
    ("make", "like", "changes"),
    [
        (GreedyNCIS, Greedy, {"recall": 0.0}),
        (GreedyCIS, Greedy, {"recall": 0.0}),
        (GreedyNCIS, GreedyCIS, {"false_rate": 0.0}),
        (GreedyCISPlus, Greedy, {"recall": 0.6}),
        (GreedyCISPlus, GreedyCIS, {"recall": 0.61, "false_rate": 0.0}),
        (lambda p: GreedyNCIS(p, terms=999), GreedyNCIS, {"false_rate": 0.4}),
    ],
)
def test_policies_that_must_agree(make, like, changes):
    for seed in range(100, 115):
        pages, time, signals = random_case(seed)
        pages = SignalledPages(**{n: getattr(pages, n) for n in NAMES} | changes)
        expected = like(pages).choose(time, signals, None)
        assert_array_equal(make(pages).choose(time, signals, None), expected)


@each
def test_units_order_and_future(name):
    """Other units and the slots to come change nothing; pages may be renumbered."""
    rng, scale = np.random.default_rng(3), 64.0  # exact in binary
    for seed in range(200, 206):
        pages, time, signals = random_case(seed)
        policy = POLICIES[name](pages)
        expected = policy.choose(time, signals, None)
        assert_array_equal(policy.choose(time, signals, None), expected)
        assert_array_equal(policy.choose(time[:50], signals, None), expected[:50])
        slow = SignalledPages(pages.change_rate / scale, 8 * pages.importance,
                              pages.recall, pages.false_rate / scale)  # fmt: skip
        other = POLICIES[name](slow)
        if isinstance(other, GreedyNCIS):
            window = scale * other.discard_window
            other = GreedyNCIS(slow, terms=other.terms, discard_window=window)
        later = Signals(signals.offsets, scale * signals.time)
        assert_array_equal(other.choose(scale * time, later, None), expected)
    pages = random_pages(rng, 30, "noisy")
    world, order = draw_world(pages, 30.0, rng=4), rng.permutation(30)
    own = np.split(world.received, world.offsets[1:-1])
    moved = SignalledPages(*(getattr(pages, n)[order] for n in NAMES))
    signals = signals_of(30, *((t, k) for k, i in enumerate(order) for t in own[i]))
    time, here = slot_times(5.0, 30.0), Signals(world.offsets, world.received)
    expected = POLICIES[name](pages).choose(time, here, None)
    assert_array_equal(
        order[POLICIES[name](moved).choose(time, signals, None)], expected
    )


@each
def test_one_page_and_no_slot(name):
    policy = POLICIES[name](SignalledPages(0.5, 1.0, 0.5, 0.1))
    assert chosen(policy, [1.0, 2.0], (0.5, 0), (1.5, 0)) == [0, 0]
    assert chosen(policy, []) == []


# ---------------------------------------------------------------- fixed rates, errors


def test_fixed_rates_follow_low_discrepancy():
    time, rate = np.arange(1, 200) / 20, np.random.default_rng(1).random(12)
    found = Rates(rate).choose(time, signals_of(12), None)
    assert_array_equal(found, schedules.low_discrepancy(rate, 199))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Greedy([1.0, 2.0]),
         "pages must be a SignalledPages, got <class 'list'>"),
        (lambda: GreedyNCIS("ncis"),
         "pages must be a SignalledPages, got <class 'str'>"),
        (lambda: Greedy(TWO).choose(np.ones(1), signals_of(3)),
         "pages must be as many as the pages of the world, 3, got 2"),
        (lambda: ArgMax(3), "crawl_value must be a Callable, got <class 'int'>"),
        (lambda: ArgMax(lambda *_: 1.0).choose(np.ones(1), signals_of(3)),
         "crawl_value must be of shape (3,), got ()"),
        (lambda: ArgMax(lambda *_: np.ones(2)).choose(np.ones(1), signals_of(3)),
         "crawl_value must be of shape (3,), got (2,)"),
        (lambda: GreedyNCIS(TWO, terms=0).choose(np.ones(1), signals_of(2)),
         "terms must be an integer of at least 1, got 0"),
        (lambda: GreedyNCIS(TWO, terms=1.5).choose(np.ones(1), signals_of(2)),
         "terms must be an integer of at least 1, got 1.5"),
        (lambda: GreedyNCIS(TWO, discard_window=-1.0),
         "discard_window must be non-negative and finite, got -1.0"),
        (lambda: GreedyNCIS(TWO, discard_window=[1.0, 2.0]),
         "discard_window must be one number, got shape (2,)"),
    ],
)  # fmt: skip
def test_refuses(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_no_pages_are_refused_where_they_are_made():
    """A slot of no pages would have no page to crawl."""
    message = "change_rate must have at least one page, got none"
    for pages in (([], []), ([7.5], [])):
        with pytest.raises(ValueError, match=message):
            SignalledPages(*pages)
