"""The greedy family and fixed rates.

Every slot goes to the page of the full arg max; thresholds and windows hold to
the last bit.
"""

import re

import numpy as np
import pytest

from paperlib import schedules
from paperlib.signals import SignalledPages
from recrawl.science import freshness, policies, simulate
from recrawl.science.policies import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS, Rates
from tests.recrawl.thinned import every

POLICIES = {
    "greedy": lambda pages: Greedy(pages),
    "cis": lambda pages: GreedyCIS(pages),
    "cis+": lambda pages: GreedyCISPlus(pages),
    "ncis": lambda pages: GreedyNCIS(pages),
    "ncis-1": lambda pages: GreedyNCIS(pages, terms=1),
    "ncis-2": lambda pages: GreedyNCIS(pages, terms=2),
    "ncis-3": lambda pages: GreedyNCIS(pages, terms=3),
    "ncis-d": lambda pages: GreedyNCIS(pages, discard_window=0.3),
    "ncis-1-d": lambda pages: GreedyNCIS(pages, terms=1, discard_window=0.05),
}
TWO = SignalledPages([1.0, 2.0], 1.0, 0.5, 0.1)
WITH_SIGNALS = [name for name in POLICIES if name != "greedy"]


def beliefs(name, pages):
    """Pages as the oracle believes them, those whose signals count, terms, window."""
    d, mu, recall, nu = (
        pages.change_rate,
        pages.importance,
        pages.recall,
        pages.false_rate,
    )
    all_of_them = np.ones(d.size, bool)
    kind, *rest = name.split("-")
    if kind == "greedy":
        return SignalledPages(d, mu, 0.0, 0.0), ~all_of_them, None, 0.0
    if kind == "cis":
        return SignalledPages(d, mu, recall, 0.0), all_of_them, None, 0.0
    if kind == "cis+":
        good = np.array(
            [
                r > 0.6 and r * x > 0.7 * (r * x + v)
                for r, x, v in zip(recall, d, nu, strict=True)
            ]
        )
        return SignalledPages(d, mu, np.where(good, recall, 0.0), 0.0), good, None, 0.0
    terms = next((int(word) for word in rest if word.isdigit()), None)
    return pages, all_of_them, terms, {"ncis-d": 0.3, "ncis-1-d": 0.05}.get(name, 0.0)


def full_arg_max(name, pages, world, time, last):
    """Every slot looks at every page that is there; the first of the best gets it."""
    believed, uses, terms, discard = beliefs(name, pages)
    last, n, chosen, k = last.copy(), np.zeros(last.size), [], 0
    signals = sorted(
        zip(
            world.arrival.tolist(),
            world.signal_time.tolist(),
            world.signal_page.tolist(),
            strict=True,
        )
    )
    for now in time:
        while k < len(signals) and signals[k][0] <= now:
            arrival, sent, i = signals[k]
            if (
                uses[i]
                and world.start[i] <= sent
                and arrival < world.stop[i]
                and arrival - last[i] >= discard
            ):
                n[i] += 1
            k += 1
        there = (world.start <= now) & (now < world.stop)
        if not there.any():
            chosen.append(-1)
            continue
        value = freshness.crawl_value(now - last, n, believed, terms=terms)
        i = int(np.argmax(np.where(there, value, -1.0)))
        chosen.append(i)
        last[i], n[i] = now, 0
    return np.array(chosen)


def random_pages(rng, n_pages, kind):
    change_rate, importance = rng.random((2, n_pages))
    recall, false_rate = rng.beta(0.25, 0.25, n_pages), rng.uniform(0.1, 0.6, n_pages)
    if kind == "extreme":
        change_rate, importance = (
            rng.choice([0.0, 0.3, 0.3, 20.0], n_pages),
            rng.choice([0.0, 0.5, 1.0], n_pages),
        )
        recall, false_rate = (
            rng.choice([0.0, 0.5, 1.0], n_pages),
            rng.choice([0.0, 0.3, 3.0], n_pages),
        )
    if kind == "true":
        false_rate[:] = 0.0
    if kind == "good":
        recall, false_rate = (
            rng.choice([0.2, 0.65, 0.9], n_pages),
            rng.choice([0.0, 0.05, 1.0], n_pages) * change_rate,
        )
    if kind == "same":
        change_rate[:], importance[:], recall[:], false_rate[:] = 0.5, 0.7, 0.7, 0.1
    return SignalledPages(change_rate, importance, recall, false_rate)


def random_world(rng, *, moves=False, delays=True):
    """A small world, its slots and last crawls; bandwidth changes and pauses."""
    n_pages, rate = int(rng.choice([1, 2, 5, 12])), rng.choice([2.0, 5.0])
    pages = random_pages(
        rng, n_pages, rng.choice(["noisy", "noisy", "true", "good", "extreme", "same"])
    )
    horizon = 100.0 / rate
    lag = [None, 0.4 / rate, lambda rng, n: rng.poisson(6.0, n) / rate][
        rng.integers(3) if delays else 0
    ]
    arrivals = None
    if moves:
        start, stop = np.sort(horizon * rng.random((2, n_pages)), axis=0)
        start[rng.random(n_pages) < 0.4], stop[rng.random(n_pages) < 0.4] = 0.0, horizon
        arrivals = start, stop
    world = simulate.draw_world(
        pages, horizon, signal_delay=lag, arrivals=arrivals, rng=rng
    )
    bandwidth = [
        rate,
        (
            horizon * np.array([0.0, 0.3, 0.4, 0.7]),
            rate * np.array([1.0, 0.0, 2.0, 0.7]),
        ),
    ][rng.integers(2)]
    return (
        world,
        simulate.slot_times(bandwidth, horizon),
        np.where((world.start == 0) & (rng.random() < 0.7), 0.0, -np.inf),
    )


def world_of(pages, signals=(), *, horizon=10.0, arrival=None, start=0.0, stop=np.inf):
    """A world by hand; signals are (time, page)."""
    arrival = [time for time, _ in signals] if arrival is None else arrival
    signals = sorted(
        (page, sent, arrived)
        for (sent, page), arrived in zip(signals, arrival, strict=True)
    )
    page, sent, arrived = (
        np.array([signal[k] for signal in signals], kind)
        for k, kind in enumerate((np.int32, float, float))
    )
    there = (
        np.array(np.broadcast_to(edge, pages.change_rate.size), float)
        for edge in (start, stop)
    )
    return simulate.World(
        pages, horizon, sent, page, arrived, np.ones(page.size, bool), *there
    )


def chosen(policy, world, times, *, last=0.0):
    return policy.choose(
        world, np.array(times, float), np.full(world.start.size, last)
    ).tolist()


# ---------------------------------------------------------------- by hand


def test_without_signals_the_value_rises_with_elapsed_time_and_importance():
    pages = SignalledPages([1.0, 1.0, 1.0], [1.0, 1.1, 0.3], 0.0, 0.0)
    assert chosen(Greedy(pages), world_of(pages), [1.0, 2.0, 3.0, 4.0]) == [1, 0, 1, 0]


def test_equal_pages_take_turns_and_pages_without_value_leave_the_slot_to_the_first():
    same = SignalledPages([1.0] * 3, 1.0, 0.5, 0.1)
    nothing = SignalledPages([0.0, 1.0, 0.0], [1.0, 0.0, 1.0], 0.5, 0.1)
    for make in POLICIES.values():
        assert chosen(make(same), world_of(same), range(1, 8)) == [0, 1, 2, 0, 1, 2, 0]
        assert chosen(make(nothing), world_of(nothing), range(1, 4)) == [0, 0, 0]
        assert chosen(
            make(nothing), world_of(nothing, start=[5.0, 2.0, 0.0]), [1, 3, 6]
        ) == [2, 1, 0]


def test_a_signal_taken_for_true_gives_the_limit_and_the_next_one_adds_nothing():
    pages = SignalledPages(
        [1.0, 2.0, 0.5], [1.0, 1.0, 0.4], 0.1, 0.3
    )  # limits 1, 0.5, 0.8
    signals = [(0.1, 1), (0.2, 1), (0.3, 1), (0.4, 2), (0.5, 0)]
    assert chosen(GreedyCIS(pages), world_of(pages, signals), [0.6, 0.7, 0.8]) == [
        0,
        2,
        1,
    ]
    assert chosen(GreedyCIS(pages), world_of(pages, signals[:4]), [0.6, 0.7]) == [2, 1]
    assert (
        chosen(Greedy(pages), world_of(pages, signals), [0.6])[0] == 1
    )  # signals apart, the one that changes most
    quiet = SignalledPages(
        1.0, [1.0, 0.9], [0.0, 0.5], 0.3
    )  # a signal of a page of recall 0 tells of no change
    assert chosen(GreedyCIS(quiet), world_of(quiet, [(0.5, 0), (0.6, 1)]), [1.0]) == [1]


@pytest.mark.parametrize(("sent", "first"), [(0.4, 1), (0.5, 0), (0.7, 0)])
def test_a_signal_within_the_discard_window_is_dropped_and_one_at_its_end_is_not(
    sent, first
):
    pages = SignalledPages(1.0, [1.0, 1.1], 0.9, 0.1)
    policy = GreedyNCIS(pages, discard_window=0.5)
    assert chosen(policy, world_of(pages, [(sent, 0)]), [1.0]) == [first]
    assert chosen(policy, world_of(pages, [(0.1, 0)], arrival=[sent]), [1.0]) == [
        first
    ]  # it is the arrival that counts
    assert chosen(GreedyNCIS(pages), world_of(pages, [(sent, 0)]), [1.0]) == [0]
    assert chosen(policy, world_of(pages, [(1.0 + sent, 1)]), [1.0, 2.0])[1] == (
        0 if sent == 0.4 else 1
    )  # after a later crawl
    assert chosen(policy, world_of(pages, [(sent, 0)]), [1.0], last=-np.inf) == [
        1
    ]  # never crawled: by the limit


def test_signals_count_from_their_arrival_and_a_crawl_clears_only_what_has_arrived():
    pages = SignalledPages(1.0, [1.0, 1.1], 0.9, 0.1)
    world = world_of(pages, [(0.1, 0), (0.2, 0)], arrival=[1.5, 0.9])
    assert chosen(GreedyNCIS(pages), world, [0.5, 1.0, 1.6, 1.7]) == [1, 0, 0, 1]


def test_a_signal_at_the_time_of_a_slot_counts_in_that_slot():
    pages = SignalledPages(1.0, [1.0, 1.1], 0.9, 0.1)
    assert chosen(GreedyNCIS(pages), world_of(pages, [(1.0, 0)]), [1.0]) == [0]
    assert chosen(GreedyNCIS(pages), world_of(pages, [(1.0001, 0)]), [1.0]) == [1]


def test_signals_of_pages_that_are_not_there_do_not_count():
    pages = SignalledPages(1.0, [1.0, 1.1, 0.0], 0.9, 0.1)
    world = world_of(
        pages, [(0.3, 0), (2.5, 0)], start=[1.0, 0.0, 0.0], stop=[2.0, np.inf, np.inf]
    )
    assert chosen(GreedyNCIS(pages), world, [0.5, 1.5, 1.6, 3.0]) == [1, 0, 1, 1]
    for sent, page in ((0.3, 1), (1.0, 0)):
        early = world_of(pages, [(sent, 0)], arrival=[1.55], start=[1.0, 0.0, 0.0])
        assert chosen(GreedyNCIS(pages), early, [0.5, 1.5, 1.6]) == [1, 0, page]
    late = world_of(pages, [(0.1, 0)], arrival=[2.0], stop=[2.0, np.inf, np.inf])
    assert chosen(GreedyNCIS(pages), late, [1.0, 2.0]) == [1, 1]


def test_a_page_is_there_from_its_start_until_before_its_stop():
    pages = SignalledPages([1.0, 5.0], [1.0, 5.0], 0.0, 0.0)
    world = world_of(pages, start=[0.0, 1.0], stop=[np.inf, 3.0])
    assert chosen(Greedy(pages), world, [0.5, 1.0, 2.9, 3.0]) == [0, 1, 1, 0]
    assert chosen(
        Greedy(pages), world_of(pages, start=1.0, stop=2.0), [0.5, 1.0, 2.0]
    ) == [-1, 1, -1]


def test_a_signal_before_another_page_comes_or_goes_counts_too():
    pages = SignalledPages(1.0, [1.0, 1.1, 0.0], 0.9, 0.1)
    for move in ({"start": [0.0, 0.0, 0.5]}, {"stop": [np.inf, np.inf, 0.5]}):
        assert chosen(
            GreedyNCIS(pages), world_of(pages, [(0.3, 0)], **move), [1.0]
        ) == [0]


def test_a_page_that_goes_as_it_comes_is_never_there():
    pages = SignalledPages(1.0, [1.0, 0.5], 0.0, 0.0)
    assert (
        chosen(
            Greedy(pages),
            world_of(pages, start=[3.0, 0.0], stop=[3.0, np.inf]),
            range(1, 6),
        )
        == [1] * 5
    )


def test_high_precision_and_recall_are_strictly_above_the_thresholds():
    above = np.nextafter(0.6, 1.0)
    pages = SignalledPages(
        1.0,
        1.0,
        [0.7, 0.7, 0.6, above, above, 0.0, 1.0],
        [0.3, 0.29, 0.0, 0.0, 0.3, 0.0, 0.0],
    )
    assert pages.precision[0] == 0.7
    assert GreedyCISPlus(pages).uses_signals.tolist() == [
        False,
        True,
        False,
        True,
        False,
        False,
        True,
    ]
    half = SignalledPages(1.0, 1.0, [0.5, 0.5, 0.625], [0.5, 0.25, 0.5])
    assert GreedyCISPlus(
        half, min_precision=0.5, min_recall=0.5
    ).uses_signals.tolist() == [
        False,
        False,
        True,
    ]
    assert GreedyCISPlus(
        half, min_precision=0.5, min_recall=0.4
    ).uses_signals.tolist() == [
        False,
        True,
        True,
    ]
    for policy in (GreedyCIS, GreedyNCIS):
        assert policy(half).uses_signals.all()


def test_only_signals_of_high_precision_and_recall_are_used():
    pages = SignalledPages(1.0, [1.0, 1.0, 1.3], [0.9, 0.5, 0.5], 0.1)
    world = world_of(pages, [(0.5, 0), (0.5, 1)])
    assert chosen(GreedyCISPlus(pages), world, [0.6, 0.7, 0.8]) == [0, 2, 1]
    assert chosen(GreedyCIS(pages), world, [0.6, 0.7, 0.8]) == [0, 1, 2]


def test_fixed_rates_follow_their_schedule_where_the_page_is_there():
    pages = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    world = world_of(pages, start=[0.0, 2.0], stop=[4.0, np.inf])
    assert chosen(
        Rates(np.array([1.0, 1.0])), world, [0.5, 1.0, 1.5, 2.0, 4.0, 4.5]
    ) == [0, -1, 0, 1, -1, 1]
    backwards = Rates(
        np.array([2.0, 1.0]), schedule=lambda rate, n: np.arange(n)[::-1] % 2
    )
    assert chosen(backwards, world_of(pages), [1.0, 2.0, 3.0, 4.0]) == [1, 0, 1, 0]
    assert chosen(Rates(np.array([2.0, 1.0])), world_of(pages), []) == []
    rate = np.random.default_rng(1).random(12)
    many = world_of(SignalledPages(1.0, np.ones(12), 0.0, 0.0))
    np.testing.assert_array_equal(
        chosen(Rates(rate), many, np.arange(1, 200) / 20),
        schedules.low_discrepancy(rate, 199),
    )


# ---------------------------------------------------------------- the full arg max


def compared(name, seeds, **kind):
    """Slots of all instances, and those where signals make a difference."""
    n_slots = n_other = 0
    for seed in seeds:
        world, time, last = random_world(np.random.default_rng(seed), **kind)
        expected = full_arg_max(name, world.pages, world, time, last)
        before = last.copy()
        np.testing.assert_array_equal(
            POLICIES[name](world.pages).choose(world, time, last),
            expected,
            err_msg=f"seed {seed}",
        )
        np.testing.assert_array_equal(last, before)
        n_slots += time.size
        n_other += (Greedy(world.pages).choose(world, time, last) != expected).sum()
    return n_slots, n_other


@pytest.mark.parametrize("name", every(4, POLICIES))
def test_every_slot_goes_to_the_page_of_the_full_arg_max(name):
    n_slots, n_other = compared(name, range(30))
    assert n_slots > 2500
    assert n_other == 0 if name == "greedy" else n_other > 200


@pytest.mark.parametrize("name", every(4, ["greedy", *WITH_SIGNALS]))
def test_every_slot_goes_to_the_full_arg_max_of_the_pages_that_are_there(name):
    n_slots, n_other = compared(name, range(100, 130), moves=True)
    assert n_slots > 2500
    assert n_other == 0 if name == "greedy" else n_other > 100


@pytest.mark.parametrize("name", every(4, POLICIES))
def test_what_is_believed_decides_not_what_is_true(name):
    n_other = 0
    for seed in range(200, 215):
        rng = np.random.default_rng(seed)
        world, time, last = random_world(rng)
        n_pages = last.size
        wrong = random_pages(rng, n_pages, "noisy" if seed % 2 else "good")
        found = POLICIES[name](wrong).choose(world, time, last)
        np.testing.assert_array_equal(
            found, full_arg_max(name, wrong, world, time, last), err_msg=f"seed {seed}"
        )
        n_other += (
            found != POLICIES[name](world.pages).choose(world, time, last)
        ).sum()
    assert n_other > 300


# ---------------------------------------------------------------- limits


def worlds(*, seeds=range(300, 320), **changes):
    """Random worlds with the parameters of the pages that policies believe."""
    for seed in seeds:
        world, time, last = random_world(np.random.default_rng(seed))
        fields = {
            name: getattr(world.pages, name)
            for name in ("change_rate", "importance", "recall", "false_rate")
        }
        yield SignalledPages(**{**fields, **changes}), world, time, last


@pytest.mark.parametrize(
    ("make", "like", "changes"),
    [
        (GreedyNCIS, Greedy, {"recall": 0.0}),
        (GreedyCIS, Greedy, {"recall": 0.0}),
        (GreedyNCIS, GreedyCIS, {"false_rate": 0.0}),
        (GreedyCISPlus, Greedy, {"recall": 0.6}),
        (GreedyCISPlus, Greedy, {"recall": 0.7, "false_rate": 100.0}),
        (GreedyCISPlus, Greedy, {"change_rate": 0.0}),
        (lambda pages: GreedyCISPlus(pages, min_precision=1.0), Greedy, {}),
        (
            lambda pages: GreedyNCIS(pages, terms=1000),
            GreedyNCIS,
            {"recall": 0.5, "false_rate": 0.4},
        ),
        (
            lambda pages: GreedyNCIS(pages, discard_window=1e9),
            lambda pages: GreedyNCIS(pages),
            {"recall": 0.0},
        ),
    ],
)
def test_policies_that_must_agree(make, like, changes):
    for pages, world, time, last in worlds(**changes):
        np.testing.assert_array_equal(
            make(pages).choose(world, time, last), like(pages).choose(world, time, last)
        )


def test_cis_plus_on_good_pages_alone_is_cis():
    n_other = 0
    for pages, world, time, last in worlds(
        recall=0.61, false_rate=0.0, change_rate=0.5
    ):
        found = GreedyCISPlus(pages).choose(world, time, last)
        np.testing.assert_array_equal(found, GreedyCIS(pages).choose(world, time, last))
        n_other += (found != Greedy(pages).choose(world, time, last)).sum()
    assert n_other > 100


def test_a_discard_window_longer_than_all_intervals_leaves_elapsed_time_alone():
    for pages, world, time, last in worlds(recall=0.5, false_rate=0.4):
        late = GreedyNCIS(pages, discard_window=2 * world.horizon)
        silent = world_of(world.pages, horizon=world.horizon)
        np.testing.assert_array_equal(
            late.choose(world, time, last), GreedyNCIS(pages).choose(silent, time, last)
        )


def test_another_unit_of_time_or_of_importance_changes_nothing():
    for pages, world, time, last in worlds():
        scale = 64.0  # exact in binary
        slow = SignalledPages(
            pages.change_rate / scale,
            pages.importance * 8,
            pages.recall,
            pages.false_rate / scale,
        )
        other = simulate.World(
            slow,
            world.horizon * scale,
            world.signal_time * scale,
            world.signal_page,
            world.arrival * scale,
            world.true,
            world.start * scale,
            world.stop,
        )
        for make in (Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS):
            expected = make(pages).choose(world, time, last)
            np.testing.assert_array_equal(
                make(slow).choose(other, time * scale, last), expected
            )


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": 0}, "terms must be a positive integer, got 0"),
        ({"terms": 1.5}, "terms must be a positive integer, got 1.5"),
        ({"terms": True}, "terms must be a positive integer, got True"),
        (
            {"discard_window": -1.0},
            "discard_window must be non-negative and finite, got -1.0",
        ),
        (
            {"discard_window": np.nan},
            "discard_window must be non-negative and finite, got nan",
        ),
        (
            {"discard_window": [1.0, 2.0]},
            "discard_window must be a single number, got shape (2,)",
        ),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GreedyNCIS(SignalledPages(1.0, 1.0, 0.5, 0.1), **options)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ([0.0, 0.0], "crawl_rate must be positive for at least one page"),
        (
            [1.0, -1.0],
            "crawl_rate must be non-negative and finite, got -1.0 at index (1,)",
        ),
        ([[1.0, 1.0]], "crawl_rate must have one axis, got shape (1, 2)"),
    ],
)
def test_bad_rates(rate, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        chosen(
            Rates(np.array(rate)),
            world_of(SignalledPages([1.0, 1.0], 1.0, 0.0, 0.0)),
            [1.0, 2.0],
        )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            lambda: policies.GreedyCISPlus(TWO, min_precision=5.0),
            "min_precision must be in [0, 1], got 5.0",
        ),
        (
            lambda: policies.GreedyCISPlus(TWO, min_recall=np.nan),
            "min_recall must be in [0, 1], got nan",
        ),
        (
            lambda: policies.Greedy(TWO, min_interval=[[1.0], [2.0]]),
            "pages, min_interval and max_interval must have one axis, got shape (2, 2)",
        ),
        (
            lambda: policies.BayesGreedy([1.0, 2.0], shape=[[1.0], [2.0]], rate=1.0),
            "importance, shape and rate must have one axis, got shape (2, 2)",
        ),
    ],
)
def test_pages_have_one_axis_and_options_their_range(policy, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        policy()


def test_a_policy_is_not_changed_by_use():
    policy = policies.GreedyNCIS(
        SignalledPages([1.0, 1.2], 1.0, 0.5, 0.1), terms=2, discard_window=0.1
    )
    world = simulate.draw_world(policy.pages, 20.0, rng=1)
    time, last = simulate.slot_times(3.0, 20.0), np.zeros(2)
    first = policy.choose(world, time, last)
    np.testing.assert_array_equal(policy.choose(world, time, last), first)
    np.testing.assert_array_equal(
        policy.choose(world, time[:30], last), first[:30]
    )  # the future does not matter


def test_a_signal_at_the_very_time_of_the_last_slot_counts_in_it():
    pages = SignalledPages([1.0, 1.0], 1.0, 0.9, 0.01)
    here = np.zeros(2), np.full(2, np.inf)
    for moment, page in ((1.0, 1), (np.nextafter(1.0, 2.0), 0)):
        sent, by = np.array([moment]), np.array([1], np.int32)
        world = simulate.World(pages, 2.0, sent, by, sent, np.array([True]), *here)
        chosen = GreedyNCIS(pages).choose(world, np.array([1.0]), np.zeros(2))
        assert chosen.tolist() == [page]


@pytest.mark.parametrize(
    "policy",
    [
        policies.Greedy,
        policies.GreedyNCIS,
        policies.GreedyCIS,
    ],
)
def test_pages_are_signalled_pages(policy):
    with pytest.raises(ValueError, match=r"pages must be SignalledPages, got \[1, 2\]"):
        policy([1, 2])
