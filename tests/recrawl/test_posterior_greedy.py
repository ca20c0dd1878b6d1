"""Greedy crawling by one rate of each posterior, against the full arg max."""

import re

import numpy as np
import pytest

from paperlib.signals import SignalledPages
from recrawl.science import simulate
from recrawl.science.policies import PosteriorGreedy
from tests.plain import crawl_value_no_signals
from tests.recrawl import plain as reference

N_PAGES = 12


def draw(seed=1, **options):
    rng = np.random.default_rng(seed)
    pages = SignalledPages(
        rng.lognormal(0, 1.5, N_PAGES), rng.random(N_PAGES), 0.0, 0.0
    )
    return simulate.draw_world(pages, 30.0, rng=rng, **options)


def choose(world, how="mean", last=0.0, rng=3, **options):
    policy = PosteriorGreedy(
        world.pages.importance, shape=0.6, rate=0.3, how=how, rng=rng, **options
    )
    return policy.choose(
        world, simulate.slot_times(8.0, 30.0), np.full(N_PAGES, float(last))
    )


def full_arg_max(world, how, rng=3):
    """Every slot looks at all pages; bits are counted."""
    rng, (change_time, offsets) = np.random.default_rng(rng), world.changes
    shape, rate = np.full(N_PAGES, 0.6), np.full(N_PAGES, 0.3)
    last, chosen = np.zeros(N_PAGES), []
    believed = shape / rate if how == "mean" else rng.standard_gamma(shape) / rate
    for t in simulate.slot_times(8.0, 30.0):
        if how == "thompson":
            believed = rng.standard_gamma(shape) / rate
        value = [
            crawl_value_no_signals(t - last[i], believed[i], world.pages.importance[i])
            for i in range(N_PAGES)
        ]
        i = int(np.argmax(value))
        own = change_time[offsets[i] : offsets[i + 1]]
        changed = ((last[i] < own) & (own <= t)).any()
        shape[i], rate[i] = reference.gamma_step(
            shape[i], rate[i], changed, t - last[i]
        )
        last[i] = t
        one = shape[i] if how == "mean" else rng.standard_gamma(shape[i])
        believed = believed.copy()
        believed[i] = one / rate[i]
        chosen.append(i)
    return chosen


@pytest.mark.parametrize("how", ["mean", "thompson", "held"])
def test_it_is_the_full_arg_max(how):
    world = draw()
    chosen = choose(world, how)
    np.testing.assert_array_equal(chosen, full_arg_max(world, how))
    assert len(set(chosen.tolist())) > 5


def test_exploration_takes_its_share_of_slots_to_all_pages():
    world = draw()
    always = np.bincount(choose(world, exploration=1.0), minlength=N_PAGES)
    # 240 slots, each page binomial with mean 20
    assert (np.abs(always - 20) < 4.5 * np.sqrt(20)).all()
    assert always.min() < always.max()
    np.testing.assert_array_equal(choose(world, exploration=0.0), choose(world))


def test_pages_that_are_not_there_are_not_crawled():
    start, stop = np.zeros(N_PAGES), np.full(N_PAGES, np.inf)
    start[0], stop[1:] = 5.0, 20.0
    world = draw(arrivals=(start, stop))
    time = simulate.slot_times(8.0, 30.0)
    for exploration in (0.0, 1.0):
        page = choose(world, exploration=exploration)
        assert (page[time < 5.0] > 0).all()
        assert (page[time >= 20.0] == 0).all()
    stop[0] = 25.0
    page = choose(draw(arrivals=(start, stop)))
    assert (page[time >= 25.0] == -1).all()


def test_pages_never_crawled_come_by_importance():
    """All have one prior, and a first crawl finds nothing to compare with."""
    world = draw()
    page = choose(world, last=-np.inf)
    pages, first = np.unique(page, return_index=True)
    expected = np.argsort(-world.pages.importance)
    np.testing.assert_array_equal(pages[np.argsort(first)], expected[: pages.size])


def test_random_numbers_depend_on_rng_alone():
    world = draw()
    same, other = (choose(world, "thompson", rng=rng) for rng in (3, 4))
    np.testing.assert_array_equal(same, choose(world, "thompson"))
    assert (same != other).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"how": "best"}, "how must be 'mean', 'thompson' or 'held', got 'best'"),
        ({"exploration": 1.5}, "exploration must"),
        ({"shape": 0.0}, "shape must be positive and finite, got 0.0"),
        ({"rate": -1.0}, "rate must be positive and finite, got -1.0"),
        ({"importance": 1.0}, "importance must have one axis, got shape ()"),
    ],
)
def test_bad_input_is_named(options, message):
    given = {"importance": np.ones(2), "shape": 1.0, "rate": 1.0} | options
    with pytest.raises(ValueError, match=re.escape(message)):
        PosteriorGreedy(given.pop("importance"), **given)


def test_a_world_of_other_pages_is_refused():
    policy = PosteriorGreedy(np.ones(2), shape=1.0, rate=1.0)
    with pytest.raises(ValueError, match="importance must hold the pages of the world"):
        simulate.crawl(draw(), policy, 1.0)
